--- Which frames of a file are projections, flats and darks, and where they are stored.

local axes = require "moonbeam.scan.statements.axes"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local image_frames = require "moonbeam.scan.image_frames"
local read_list = require("moonbeam.scan.lists").read
local missing = require "moonbeam.scan.missing"
local picked = require "moonbeam.scan.picked"
local references = require "moonbeam.scan.references"
local source = require "moonbeam.scan.source"
local stored_frames = require "moonbeam.scan.stored_frames"

local frames = {}

--- Indices as runs {first, last} of neighbors.
function frames.runs(indices)
    local runs = {}
    for _, index in ipairs(indices) do
        local run = runs[#runs]
        if run and run[2] + 1 == index then
            run[2] = index
        else
            runs[#runs + 1] = {index, index}
        end
    end
    return runs
end

--- The indices in these runs, in their order.
function frames.indices(runs)
    local indices = {}
    for _, run in ipairs(runs) do
        for index = run[1], run[2] do
            indices[#indices + 1] = index
        end
    end
    return indices
end

--- How many indices are in the runs.
function frames.count(runs)
    local count = 0
    for _, run in ipairs(runs) do
        count = count + run[2] - run[1] + 1
    end
    return count
end

-- One whole number for each frame, from a list (scan/lists) that the file or an option names.
local function keys_of(s, name, option, what)
    local keys = name
    if type(name) == "string" then
        keys = read_list(s, name, {op = "scan.open", option = option, what = what,
            most = s.n_frames, fits = function(count) return count == s.n_frames end})
    end
    if keys and #keys ~= s.n_frames then
        fail("shape", "scan.open", "image_key", "'%s' has %d %s for %d frames%s", s.path,
            keys.count or #keys, what, s.n_frames, type(name) == "string"
            and (", in '%s': give the option image_key"):format(name) or "")
    end
    return keys
end

-- The image_key_control of each frame where it says more than the image keys; nil where it is not
-- there, is the same for all frames, which nobody has filled in then, or is overruled.
local function control_of(s, layout, keys)
    local path = layout.image_key_control
    if not path or not keys then
        return nil
    end
    local ok, control = pcall(keys_of, s, path, "image_key", "values of image_key_control")
    if not ok and layout.image_key_given then
        return nil
    elseif not ok then
        error(control, 0)
    end
    local differing, one = 0, true
    for i, key in ipairs(keys) do
        differing = differing + (control[i] ~= key and 1 or 0)
        one = one and control[i] == control[1]
    end
    if differing > 0 and layout.image_key_given then
        s:warn(("the option image_key is taken for all frames; the image_key_control of %d of them "
            .. "('%s') says something else"):format(differing, path))
        return nil
    elseif differing > 0 and one and #control > 1 then
        s:warn(("image_key_control ('%s') is %s for every frame, and is not used"):format(path,
            tostring(control[1])))
        return nil
    end
    return differing > 0 and control or nil
end

-- What was left out because of its control, for the report.
local function left_out(s, values)
    local names = {}
    for value in pairs(values.set) do
        names[#names + 1] = ("%g"):format(value)
    end
    table.sort(names)
    s.left_out = ("%d frame%s left out, whose image_key_control (%s%s) is not the image key")
        :format(values.count, values.count == 1 and "" or "s", table.concat(names, ", ", 1,
        math.min(#names, 4)), #names == 1 and names[1] == "-1" and ": alignment images" or "")
end

--- The indices of the projections, flats and darks by the image keys; without those every frame is
-- a projection. Frames whose image_key_control is not their key are left out: alignment images,
-- which are projections by their key. `s.keyed` is {count, positions}: how many frames are
-- projections by their key, and which of them those are that are taken.
function frames.sorted(s, layout)
    local lists, ignored = {[0] = {}, {}, {}}, 0
    local keys = keys_of(s, layout.image_key, "image_key", "image keys")
    local control = control_of(s, layout, keys)
    local others, keyed = {count = 0, set = {}}, {count = 0, positions = {}}
    for i = 1, s.n_frames do
        local key = keys and keys[i] or 0
        local list, other = lists[key], control and control[i] ~= key
        keyed.count = keyed.count + (key == 0 and 1 or 0)
        if list and other then
            others.count, others.set[control[i]] = others.count + 1, true
        elseif list then
            list[#list + 1] = i
            keyed.positions[#keyed.positions + 1] = key == 0 and keyed.count or nil
        else
            ignored = ignored + 1
        end
    end
    if ignored > 0 then
        s:warn(("%d frames are marked invalid (image key not 0, 1 or 2) and are left out"):format(
            ignored))
    end
    if others.count > 0 then
        left_out(s, others)
    end
    if #lists[0] == 0 then
        fail("shape", "scan.open", "image_key", "no frame of '%s' is a projection (image key 0%s)",
            s.path, keyed.count > 0 and " and image_key_control 0" or "")
    end
    s.keyed = keyed
    return lists[0], lists[1], lists[2]
end

--- The indices of the projections in a list of `count` values: one for each projection, for each
-- frame of the file, or for each that is a projection by its image key. nil where it is none of
-- these.
function frames.within(s, count)
    if count == s.n_projections then
        return s.positions
    elseif count == s.n_frames then
        return s.frames
    elseif s.keyed and count == s.keyed.count then
        return picked(s.keyed.positions, s.positions)
    end
end

--- A dataset of frames with the shape checked: (frame, row, column), or (row, column) for one
-- frame. `what`: "data", "flats" or "darks".
function frames.dataset(s, file, path, what)
    local dataset = file:dataset(path)
    axes.show(s, file, dataset, what)
    local shape, data = dataset.shape, what == "data"
    if #shape ~= 3 and not (#shape == 2 and not data) then
        fail("shape", "scan.open", what, "'%s' in '%s' has %d ax%ss (%s), but %s is (%s, row, "
            .. "column)", path, file.path, #shape, #shape == 1 and "i" or "e", axes.text(shape),
            data and "a scan" or what, data and "angle" or "frame")
    elseif not dataset.dtype then
        fail("dtype", "scan.open", what, "'%s' in '%s' holds %s, not numbers", path, file.path,
            dataset.stored)
    elseif s.counts_as and not (s.counts_as == "unsigned" and not data
        and dataset.stored:find "^u") then
        dataset:take(s.counts_as)
    end
    for axis, extent in ipairs(shape) do
        if extent == 0 then
            fail("shape", "scan.open", what, "'%s' in '%s' is empty: it has no %s", path, file.path,
                ({"frames", "rows", "columns"})[axis + 3 - #shape])
        end
    end
    if not data and (shape[#shape - 1] ~= s.rows or shape[#shape] ~= s.cols) then
        axes.refuse_rows(s, file, path, shape)
        fail("shape", "scan.open", what,
            "%s '%s' in '%s' have %d x %d pixels, the projections %d x %d", what, path, file.path,
            shape[#shape - 1], shape[#shape], s.rows, s.cols)
    end
    return dataset
end

-- Where the format has flats or darks in a file, those that are there and not empty: a list of
-- {path, place}. What is stored before and after the projections comes in that order.
local function usual_places(s, file, layout, what)
    local found, whole, timed = {}, nil, 0
    for _, place in ipairs(layout[what] or {}) do
        if (place.place or not whole) and file:exists(place.path) then
            local shape = axes.extents(file:dataset(place.path).shape)
            if #shape ~= 3 or shape[1] > 0 then
                found[#found + 1] = place
                timed = timed + (place.place and 1 or 0)
                whole = whole or not place.place and #found
            end
        end
    end
    if whole and timed == 2 then
        s:warn(("'%s' is left out, as the %s before and after the projections are in datasets of "
            .. "their own: the option %s names what is to be used"):format(found[whole].path, what,
            what))
        table.remove(found, whole)
    elseif whole and timed == 1 and found[#found].place == "after" then
        found[whole] = {path = found[whole].path, place = "before"}
    end
    return found
end

-- The places of flats or darks in a file of their own.
local function places_in(s, file, layout, what)
    local usual = usual_places(s, file, layout, what)
    if #usual > 0 then
        return usual
    end
    local found = {}
    for _, object in ipairs(file:walk()) do
        if axes.are_frames(object) and not object.link then
            found[#found + 1] = object.path
        end
    end
    if #found ~= 1 then
        local list = #found > 0 and " (" .. table.concat(found, ", ") .. ")" or ""
        fail("argument", "scan.open", what,
            "'%s' has %d datasets of frames%s: name the right one with the option %s", file.path,
            #found, list, what)
    end
    return {{path = found[1]}}
end

-- What reads the flats or darks of a part that is an image. They stay in their files, unless they
-- are compressed: then they are in memory of the host until the scan is closed, because every block
-- would decode all.
local function open_image(s, part, what)
    local volume, files = image_frames.open(part.path, what, part.set, frames.indices(part.runs))
    table.move(files, 1, #files, #s.files + 1, s.files)
    s.files[#s.files + 1] = {path = part.path, close = function() volume:close() end}
    part.array = volume.compressed and image_frames.load(volume) or nil
    if part.array then
        local array = part.array
        s.files[#s.files + 1] = {path = part.path, close = function() array:release() end}
    end
    part.stored = not part.array and stored_frames.new(volume) or nil
    local shape = (part.array or part.stored).shape
    if shape[2] ~= s.rows or shape[3] ~= s.cols then
        fail("shape", "scan.open", nil, "the option %s_file is '%s', whose frames have %d x %d "
            .. "pixels; the projections have %d x %d", what, part.path, shape[2], shape[3], s.rows,
            s.cols)
    end
end

-- Frames of a dataset as a part.
local function part_of(s, file, place, what, options)
    local dataset = frames.dataset(s, file, place.path, what)
    local count = #dataset.shape == 3 and dataset.shape[1] or 1
    missing.check_count(("'%s' in '%s'"):format(place.path, file.path), count)
    local runs = missing.present(s, dataset, file, options.allow_missing)
    return {dataset = dataset, runs = runs, count = frames.count(runs), place = place.place,
        path = file == s.file and place.path or file.path .. ":" .. place.path}
end

-- When a dataset was taken, by its name.
local function place_of(path)
    return path:match "_pre$" and "before" or path:match "_post$" and "after" or nil
end

-- What an option names, as a list: a name, several between commas, or a list. `there` says whether
-- a name with a comma is that of one thing. Ranges (series/ranges.lua) stay with their name.
local function names_of(value, there)
    if type(value) ~= "string" or not value:find(",", 1, true) or there(value) then
        return type(value) == "table" and value or {value}
    end
    local names = {}
    for name in value:gmatch "[^,]+" do
        local range = #names > 0 and names[#names]:find ":%d" and name:find "^[%d:]+$"
        names[range and #names or #names + 1] = range and names[#names] .. "," .. name
            or name:match "^%s*(.-)%s*$"
    end
    return names
end

local function check_constant(value, what)
    if not (value >= 0 and value < math.huge and (value > 0 or what == "darks")) then
        fail("argument", "scan.open", what, "%s are the constant %g; give a number above 0", what,
            value)
    end
end

--- One frame of a constant as an array on the host, which the caller releases.
function frames.constant_array(value, what, rows, columns)
    check_constant(value, what)
    return core.op.run("fill", core.array.empty({1, rows, columns}, {device = "host"}), value)
end

-- One frame of a constant.
local function constant_of(s, value, what, name)
    check_constant(value, what)
    s.constants = s.constants or {}
    s.constants[what] = ("the constant %.10g%s"):format(value, name and " (" .. name .. ")" or "")
    return {constant = value, count = 1}
end

--- The number that stands for a file of flats or darks, or nil.
function frames.constant(name)
    return type(name) == "string" and not core.system.stat(name) and tonumber(name) or nil
end

-- Parts in files of their own: HDF5 or images; a number is a constant.
local function parts_of_files(s, layout, own, options, what)
    local parts, one = {}, not (type(own) == "string" and own:find(",", 1, true))
    local names = names_of(own, function(name)
        local first = name:match "^[^,:]*"
        return core.system.stat(name) ~= nil
            or not (core.system.stat(first) or first:find "[*?]")
    end)
    for i, name in ipairs(names) do
        local place = #names == 2 and (i == 1 and "before" or "after") or nil
        local constant = frames.constant(name)
        if constant and one then
            parts[#parts + 1] = constant_of(s, constant, what, "as given")
        elseif image_frames.is(name) then
            local set = image_frames.set(name)
            parts[#parts + 1] = {set = set, extent = set.total, runs = frames.runs(set.indices),
                count = #set.indices, path = name, place = place}
        else
            local file = source.open(s, name)
            local inside = type(options[what]) == "string" and {{path = options[what]}}
                or places_in(s, file, layout, what)
            for _, each in ipairs(inside) do
                parts[#parts + 1] = part_of(s, file, {path = each.path,
                    place = place or each.place or place_of(each.path)}, what, options)
            end
        end
    end
    return parts
end

-- Parts that an option names in the scan's file or others.
local function parts_named(s, given, options, what)
    local parts = {}
    local names = names_of(given, function(name) return s.file:exists(name) end)
    for i, name in ipairs(names) do
        if type(name) ~= "string" then
            fail("argument", "scan.open", what, "%s are named by texts, or by a list of them; "
                .. "element %d is a %s", what, i, type(name))
        end
        local file, path = source.find(s, name, what)
        parts[i] = part_of(s, file, {path = path,
            place = #names == 2 and (i == 1 and "before" or "after")
                or #names == 1 and place_of(path) or nil}, what, options)
    end
    return parts
end

-- The constant that a file has in place of flats or darks, or nil.
local function stored_constant(s, layout, what)
    local path = layout.constants and layout.constants[what]
    if not path or not s.file:exists(path) then
        return nil
    end
    local value = source.number(s.file, path)
    if value and value > 0 and value < math.huge then
        return constant_of(s, value, what, path:match "[^/]*$")
    end
end

-- The parts that options, the image keys (`keyed`, indices) or the format name.
local function parts_meant(s, layout, options, what, keyed)
    local given, own = options[what], options[what .. "_file"]
    if own then
        return parts_of_files(s, layout, own, options, what)
    elseif type(given) == "number" then
        return {constant_of(s, given, what, "as given")}
    elseif given then
        return parts_named(s, given, options, what)
    elseif #keyed > 0 then
        return {{dataset = s.data, runs = frames.runs(keyed), count = #keyed, path = s.data_path}}
    end
    local parts = {}
    for i, place in ipairs(usual_places(s, s.file, layout, what)) do
        parts[i] = part_of(s, s.file, place, what, options)
    end
    if #parts == 0 then
        parts[1] = stored_constant(s, layout, what)
        source.confirm_absence(s)
    end
    return parts
end

--- Where the flats or darks come from (scan/references.lua), or nil if there are none, without
-- those that options.bad_flats or bad_darks leave out. `keyed`: the indices of those among the
-- projections.
function frames.reference(s, layout, options, what, keyed)
    if options[what] == false then
        return nil
    end
    local parts = parts_meant(s, layout, options, what, keyed)
    local by_key = #parts == 1 and parts[1].dataset == s.data
    if #parts > 0 and options["bad_" .. what] ~= nil then
        parts = references.without(parts, options["bad_" .. what], what)
    end
    for _, part in ipairs(parts) do
        if part.set then
            open_image(s, part, what)
        end
    end
    return references.of(parts, by_key)
end

return frames
