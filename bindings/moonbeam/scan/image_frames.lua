--- Frames that are images, rather than datasets of HDF5: TIFF stacks, series of TIFF files, Zarr,
-- .npy; all of them, or ranges (series/ranges.lua).

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local images = require "moonbeam.images"
local missing = require "moonbeam.scan.missing"
local on_error = require "moonbeam.internal.on_error"
local picked = require "moonbeam.scan.picked"
local ranges = require "moonbeam.scan.series.ranges"
local series = require "moonbeam.tiff.series"
local volumes = require "moonbeam.volumes"
local zarr = require "moonbeam.zarr"

local image_frames = {}

-- What flat_field takes as it is stored.
local TAKEN = {u8 = true, u16 = true, i32 = true, f16 = true, f32 = true}

-- An image as frames. A frame is a page: where the texts of a TIFF file do not say what its pages
-- are, they are taken in the order of the file, with a line in `meta.warnings`.
local function open_image(name)
    local ok, volume = pcall(images.open, name)
    if ok then
        return volume
    elseif type(volume) ~= "table" or volume.arg ~= "axes" then
        error(volume, 0)
    end
    local all = images.open(name, {axes = "Z"})
    table.insert(all.meta.warnings, ("the pages of '%s' are taken for frames, in the order of the "
        .. "file, as what it says of them does not add up"):format(name))
    return all
end

-- Does a name mean a series of TIFF files?
local function is_series(name)
    local facts = core.system.stat(name)
    return not zarr.is(name) and (name:find "[*?]" ~= nil and not facts
        or facts ~= nil and facts.kind == "folder")
end

--- Does a name mean an image, rather than an HDF5 file?
function image_frames.is(name)
    local base, text = ranges.parts(name)
    if file_name.has(base, file_name.TIFF_INPUTS) or file_name.has(base, file_name.NPY)
        or is_series(base) or zarr.is(base) then
        return true
    elseif text then
        fail("argument", "scan.open", nil, "'%s' has a range, %s, which is for images: in HDF5 the "
            .. "image keys say which frames are what (the option image_key)", name, text)
    end
    return false
end

--- What a name means, without opening a frame: {name, base, place, names (of the files of a
-- series), total, indices, ranged}. `indices` are those of the frames among all `total`, `place` is
-- the folder or file that has them.
function image_frames.set(name)
    local base, text = ranges.parts(name)
    local set = {name = name, base = base, ranged = text ~= nil, place = base}
    if is_series(base) then
        set.names = series.names(base)
        set.total, set.place = #set.names, set.names[1]:match "^(.*)/[^/]*$"
    else
        local volume <close> = open_image(base)
        set.total, set.single = #volume.shape == 3 and volume.shape[1] or 1, #volume.shape ~= 3
        set.shape = volume.shape
        missing.check_count(("'%s'"):format(base), set.total)
    end
    set.place = core.system.real_path(set.place) or set.place
    set.indices = {}
    for i = 1, set.total do
        set.indices[i] = i
    end
    set.indices = text and ranges.indices(name, text, set.total) or set.indices
    return set
end

--- The frames of two sets that lie in the same series or stack: a function that gives the index in
-- the first one's for an index of the second one's, or nil where there is none. Returns nil where
-- nothing is common.
function image_frames.common(set, other)
    if set.place ~= other.place or (set.names == nil) ~= (other.names == nil) then
        return nil
    elseif not set.names then
        return function(index)
            return index
        end
    end
    local by_name = {}
    for i, name in ipairs(set.names) do
        by_name[file_name.base(name)] = i
    end
    return function(index)
        return by_name[file_name.base(other.names[index])]
    end
end

-- The files that frames are in, for their identity: {path} each. The pages of a stack that are
-- chosen are part of it.
local function files_of(set, indices)
    local list = {}
    for i, path in ipairs(set.names and picked(set.names, indices) or {set.base}) do
        list[i] = {path = path, close = function() end}
    end
    if not set.names and #indices ~= set.total then
        list[2] = {path = ("%s:%s"):format(set.base, table.concat(indices, ",")),
            close = list[1].close}
    end
    return list
end

-- The volume of these frames of a set.
local function volume_of(set, indices)
    if set.names then
        return series.open(set.base, declared.checked(declared.of(images.open).options, {},
            "scan.open"), picked(set.names, indices))
    end
    local volume = open_image(set.base)
    local _ <close> = on_error(function() volume:close() end)
    local gap = volume.missing and volume:missing()
    if gap then
        fail("io", "scan.open", "allow_missing", "%s%d of the %d frames of '%s' are missing, "
            .. "the first is %d: they were never written; the option wait = SECONDS waits for them",
            gap.more and "at least " or "", gap.count, volume.shape[1], set.base, gap.first)
    end
    return #indices == set.total and volume or volumes.pages(volume, indices)
end

--- The frames of an image as a volume, and its files. The caller closes the volume. What flat_field
-- does not take as it is stored is read as f32. `set`: what image_frames.set says of the name;
-- `indices`: those of its frames that are meant (default: set.indices).
function image_frames.open(name, what, set, indices)
    set = set or image_frames.set(name)
    indices = indices or set.indices
    if set.single and what == "data" then
        fail("shape", "scan.open", "path", "'%s' is one image of %s pixels; a scan is a stack of "
            .. "them, or a folder of files", name, table.concat(set.shape, " x "))
    end
    local volume, files = volume_of(set, indices), files_of(set, indices)
    if TAKEN[volume.dtype] then
        return volume, files
    end
    local mapped = volumes.map(volume, "f32", function(block)
        return block:cast "f32"
    end)
    mapped.compressed = volume.compressed
    function mapped.carries() -- a carrier moves bytes as they are stored
        return false
    end
    return mapped, files
end

--- The frames of a volume as an array on the host (frame, row, column), which the caller releases.
function image_frames.load(volume)
    local array = volumes.load(volume, core.device.open "host")
    if #array.shape == 3 then
        return array
    end
    local own <close> = array
    return own:reshape(1, table.unpack(own.shape))
end

return image_frames
