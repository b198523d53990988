-- The files of a volume in an OME-Zarr result (zarr_volume.lua): the arrays of its pyramid, each
-- with shards at known places. The volumes of an image of several channels and times share the
-- arrays, and have shards of their own.
--
-- A level: {layout (zarr/shards.lua), folder (of the array), place ("0/1/": the indices along the
-- axes before z), files (open_files.lua, those of all levels)}. Files are opened when they are
-- needed. Without shards (layout.kind) a file is a chunk, and counts as a shard of one slice.

local activity = require "moonbeam.internal.command_line.activity"
local core = require "moonbeam.core"
local documents = require "moonbeam.zarr.documents"
local fail = require "moonbeam.internal.fail"
local shards = require "moonbeam.zarr.shards"
local shown_range = require "moonbeam.result.shown_range"

local levels = {}

--- Writes a whole text file.
function levels.write_text(name, text)
    local file, problem = io.open(name, "wb")
    local ok = file
    if file then
        ok, problem = file:write(text)
        local closed, later = file:close()
        ok, problem = ok and closed, problem or later
    end
    if not ok then
        fail("io", "result.create", "path", "cannot write '%s'%s", name,
            problem and ": " .. problem or "")
    end
end

--- A new folder, or one that an earlier process has made.
function levels.folder(name)
    if not core.system.stat(name) then
        core.system.mkdir(name)
    end
    return name
end

-- Raises an error where an earlier process has begun the array in another layout, whose files would
-- stay in the result.
local function check_layout(name, layout)
    local file = io.open(name, "rb")
    local text = file and file:read "a" or ""
    if file then
        file:close()
    end
    local was = text:find "}%s*$" and documents.layout(text)
    if was and was ~= layout.kind then
        fail("argument", "result.create", "zarr_layout", "the result in '%s' was begun with the "
            .. "layout %s, and this run has %s: go on with the option zarr_layout = \"%s\", or "
            .. "start anew with the option discard = true",
            name:match "^(.*)/[^/]*/[^/]*/[^/]*$", was, layout.kind, was)
    end
end

--- The array of a level: its folder and description. `lead`: the axes before the volume's own;
-- `first`: the name of the first of those.
function levels.array(folder, layout, lead, first)
    levels.folder(folder)
    check_layout(folder .. "/zarr.json", layout)
    levels.write_text(folder .. "/zarr.json", documents.array(layout, lead, first))
    levels.folder(folder .. "/c")
end

-- The path of a shard, whose folders are made.
local function shard_path(level, number)
    return level.folder .. "/" .. shards.path(number, level.place)
end

--- The file of a shard, open.
function levels.file(level, number)
    return level.files:file(shard_path(level, number), true)
end

--- The shards of a volume in an array, with the space that they take. What an earlier process has
-- left stays. `files`: those that are open.
function levels.open(folder, layout, place, files)
    local level = {layout = layout, files = files, folder = folder, place = place}
    local within = folder .. "/c"
    for index in place:gmatch "[^/]+" do
        within = levels.folder(within .. "/" .. index)
    end
    for number = 1, layout.count do
        levels.folder(levels.folder(("%s/%d"):format(within, number - 1)) .. "/0")
        local file = levels.file(level, number)
        local _, _, bytes = shards.slices(layout, number)
        local index = shards.index(layout, number)
        if file:bytes() > bytes + #index then
            file:resize(0)
        end
        file:resize(bytes + #index)
        file:put(bytes, index)
    end
    return level
end

--- Calls fn(number, offset, first, last) for the parts of slices z_first ... z_last in each shard.
function levels.each_part(level, z_first, z_last, fn)
    local layout = level.layout
    for number = (z_first - 1) // layout.slices + 1, (z_last - 1) // layout.slices + 1 do
        local first, last = shards.slices(layout, number)
        local from, to = math.max(z_first, first), math.min(z_last, last)
        fn(number, (from - first) * layout.slice_bytes, from, to)
    end
end

--- Where the elements of a part of slices are: {path, offset, base, frames, ...}, as journals have
-- it.
function levels.region(level, number, offset, frames)
    local layout = level.layout
    return {path = shard_path(level, number), offset = offset, base = 0, frames = frames,
        lines = layout.shape[2], line_bytes = layout.row_bytes, line_pitch = layout.row_bytes,
        frame_pitch = layout.slice_bytes}
end

--- The shards with their slices: {path, offset, bytes, first, last}.
function levels.shards(level)
    local list = {}
    for number = 1, level.layout.count do
        local first, last, bytes = shards.slices(level.layout, number)
        list[number] = {path = shard_path(level, number), offset = 0, bytes = bytes, first = first,
            last = last}
    end
    return list
end

-- ---- the pyramid ----

-- The file of a slice, and its offset there.
local function slice_at(level, z)
    local layout = level.layout
    return levels.file(level, (z - 1) // layout.slices + 1),
        (z - 1) % layout.slices * layout.slice_bytes
end

--- Makes a level from the one before it.
function levels.halve(from, to, what)
    local shape, count = from.layout.shape, to.layout.shape[1]
    local all = count == shape[1] -- slices that are not rows are not mixed
    for z = 1, count do
        activity.at(what, z, count)
        local one, one_at = slice_at(from, all and z or 2 * z - 1)
        local two, two_at = slice_at(from, all and z or math.min(2 * z, shape[1]))
        local out, at = slice_at(to, z)
        core.rawfile.halve({out, one, two}, {at, one_at, two_at}, {shape[2], shape[3]},
            from.layout.dtype)
    end
end

--- The least and the greatest value of a level, or of evenly spaced rows of a large one, and the
-- 0.5 and 99.5 percentiles; nil where none is finite.
function levels.range(level)
    local layout = level.layout
    return shown_range.of_rows(layout.shape, layout.dtype, function(row)
        local file, at = slice_at(level, row // layout.shape[2] + 1)
        return file:get(at + row % layout.shape[2] * layout.row_bytes, layout.row_bytes)
    end)
end

return levels
