--- Frames that are images, rather than datasets of HDF5: TIFF stacks, series of TIFF files, Zarr,
-- .npy.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local images = require "moonbeam.images"
local left_out = require "moonbeam.scan.left_out"
local on_error = require "moonbeam.internal.on_error"
local volumes = require "moonbeam.volumes"
local zarr = require "moonbeam.zarr"

local image_frames = {}

-- What flat_field takes as it is stored.
local TAKEN = {u8 = true, u16 = true, i32 = true, f16 = true, f32 = true}

--- Does a name mean an image, rather than an HDF5 file?
function image_frames.is(name)
    local facts, extension = core.system.stat(name), file_name.extension(name)
    return extension == "tif" or extension == "tiff" or extension == "npy"
        or name:find "[*?]" ~= nil and not facts or facts ~= nil and facts.kind == "folder"
        or zarr.is(name)
end

-- The files that a name means, for their identity: {path} each.
local function files_of(volume, name)
    local list = {}
    for i, each in ipairs(volume.names or {name}) do
        list[i] = {path = each, close = function() end}
    end
    return list
end

--- The frames of an image as a volume, and its files. The caller closes the volume. What flat_field
-- does not take as it is stored is read as f32.
function image_frames.open(name, what)
    local volume = images.open(name)
    local _ <close> = on_error(function() volume:close() end)
    if #volume.shape ~= 3 and what == "data" then
        fail("shape", "scan.open", "path", "'%s' is one image of %s pixels; a scan is a stack of "
            .. "them, or a folder of files", name, table.concat(volume.shape, " x "))
    end
    local gap = volume.missing and volume:missing()
    if gap then
        fail("io", "scan.open", "allow_missing", "%d of the %d frames of '%s' are missing, the "
            .. "first is %d: they were never written; the option wait = SECONDS waits for them",
            gap.count, volume.shape[1], name, gap.first)
    end
    local files = files_of(volume, name)
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

--- An array of flats or darks (`what`) without the frames of these numbers, a list or one (nil:
-- none), which takes the place of the array.
function image_frames.without(array, numbers, what)
    if numbers == nil then
        return array
    end
    local own <close> = array
    local runs, count = left_out({{1, array.shape[1]}}, numbers, what), 0
    for _, run in ipairs(runs) do
        count = count + run[2] - run[1] + 1
    end
    local made = core.array.empty({count, array.shape[2], array.shape[3]}, {dtype = array.dtype,
        device = "host"})
    local _ <close> = on_error(function() made:release() end)
    local at = 1
    for _, run in ipairs(runs) do
        local from <close> = own:view {run[1], run[2]}
        local to <close> = made:view {at, at + run[2] - run[1]}
        core.op.run("convert", from, array.dtype, {out = to})
        at = at + run[2] - run[1] + 1
    end
    return made
end

return image_frames
