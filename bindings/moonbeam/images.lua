--- Image files by their names: .tif and .tiff, .npy, and HDF5 (FILE.h5 or FILE.h5:/path).

local mb = require "moonbeam"

local images = {}

local function fail(message, arg)
    mb.raise("argument", message, {op = "images", arg = arg})
end

-- The path of the only dataset with two or three axes; an error where there are several.
local function only_dataset(file, name)
    if file:exists("/entry/data/data") then
        return "/entry/data/data"
    end
    local found = {}
    for _, object in ipairs(file:walk()) do
        if object.kind == "dataset" and object.shape and (#object.shape == 2 or #object.shape == 3) then
            found[#found + 1] = object.path
        end
    end
    if #found ~= 1 then
        fail(("%s has %s datasets with two or three axes; say which: %s:/path"):format(name, #found == 0 and "no" or #found, name),
            "name")
    end
    return found[1]
end

local function extension(name)
    return (name:gsub(":/.*$", ""):match("%.(%w+)$") or ""):lower()
end

--- Reads an image onto a device (default: the default device). Returns it and what the file says: {spacing =, description =}.
function images.read(name, device)
    local kind = extension(name)
    if kind == "tif" or kind == "tiff" then
        return mb.tiff.read(name, {device = device})
    elseif kind == "npy" then
        local read = mb.npy.read(name)
        if not device or mb.device(device) == read.device then
            return read, {}
        end
        local here <close> = read
        return here:to(device), {}
    elseif kind == "h5" or kind == "hdf5" or kind == "hdf" or kind == "nxs" then
        local path, member = name:match("^(.-):(/.*)$")
        local opened, problem = mb.h5.open(path or name)
        local file <close> = opened or error(problem, 0)
        return file:read(member or only_dataset(file, name), {device = device}), {}
    end
    fail(("%s: images are .tif, .npy or .h5"):format(name), "name")
end

--- Writes an image; its name decides the format. Options: spacing (TIFF), path (HDF5, default /entry/data/data).
function images.write(name, array, options)
    options = options or {}
    local kind = extension(name)
    if kind == "tif" or kind == "tiff" then
        return mb.tiff.write(name, array, {spacing = options.spacing})
    elseif kind == "npy" then
        return mb.npy.write(name, array)
    elseif kind == "h5" or kind == "hdf5" then
        local path, member = name:match("^(.-):(/.*)$")
        local file <close> = mb.h5.create(path or name, {overwrite = true})
        file:group("/entry", "NXentry")
        file:group("/entry/data", "NXdata")
        file:set_attribute("/", "default", "entry")
        file:set_attribute("/entry", "default", "data")
        file:set_attribute("/entry/data", "signal", "data")
        file:write(member or "/entry/data/data", array, {attributes = {interpretation = "image"}})
        file:finish()
        return
    end
    fail(("%s: images are .tif, .npy or .h5"):format(name), "name")
end

--- Is this a name that write can serve? nil and the reason where it is not.
function images.writable(name)
    local kinds = {tif = true, tiff = true, npy = true, h5 = true, hdf5 = true}
    if not kinds[extension(name)] then
        return nil, ("%s: images are .tif, .npy or .h5"):format(name)
    end
    return true
end

return images
