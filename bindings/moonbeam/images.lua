--- Image files by their names: .tif and .tiff, .npy, and HDF5 (FILE.h5 or FILE.h5:/path); whole, or
-- as volumes that are read and written block by block (moonbeam.volumes).

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local volumes = require "moonbeam.volumes"

local images = {}

-- The path of the only dataset with two or three axes; an error where there are several.
local function only_dataset(file, name)
    if file:exists("/entry/data/data") then
        return "/entry/data/data"
    end
    local found = {}
    for _, object in ipairs(file:walk()) do
        if object.kind == "dataset" and object.shape and (#object.shape == 2
            or #object.shape == 3) then
            found[#found + 1] = object.path
        end
    end
    if #found ~= 1 then
        fail("argument", "images", "name",
            "%s has %s datasets with two or three axes; name one: %s:/path", name,
            #found == 0 and "no" or #found, name)
    end
    return found[1]
end

-- ---------------------------------------------------------------------------------------------
-- HDF5

local function open_hdf5(name)
    local path, member = name:match("^(.-):(/.*)$")
    local opened, problem = mb.h5.open(path or name)
    local file = opened or error(problem, 0)
    local ok, dataset = pcall(function()
        return file:dataset(member or only_dataset(file, name))
    end)
    if not ok then
        file:close()
        error(dataset, 0)
    end
    local volume = volumes.hdf5(file, dataset, dataset.shape, dataset.dtype)
    volume.meta = {}
    return volume
end

local hdf5_writer = volumes.writer_class {}

function hdf5_writer:volume()
    return volumes.hdf5(self.file, self.dataset, self.shape, self.dtype)
end

local function create_hdf5(name, options)
    local path, member = name:match("^(.-):(/.*)$")
    local file = mb.h5.create(path or name, {overwrite = options.overwrite})
    local made = setmetatable({file = file, shape = options.shape, dtype = options.dtype},
        hdf5_writer)
    if core.dry.on() then
        return made
    end
    local ok, problem = pcall(function()
        file:group("/entry", "NXentry")
        file:group("/entry/data", "NXdata")
        file:set_attribute("/", "default", "entry")
        file:set_attribute("/entry", "default", "data")
        file:set_attribute("/entry/data", "signal", "data")
        made.dataset = file:create_dataset(member or "/entry/data/data", {shape = options.shape,
            dtype = options.dtype,
            attributes = {interpretation = "image"}})
    end)
    if not ok then
        file:close()
        error(problem, 0)
    end
    return made
end

-- ---------------------------------------------------------------------------------------------
-- By name

local kinds = {}

kinds.tif = {
    open = function(name, options)
        return mb.tiff.open(name, {channel = options.channel, frame = options.frame})
    end,
    create = function(name, options)
        return mb.tiff.create(name, options)
    end,
}
kinds.npy = {
    open = function(name)
        return mb.npy.open(name)
    end,
    create = function(name, options)
        return mb.npy.create(name, {shape = options.shape, dtype = options.dtype,
            overwrite = options.overwrite})
    end,
}
kinds.h5 = {open = open_hdf5, create = create_hdf5}
kinds.tiff, kinds.hdf5 = kinds.tif, kinds.h5
kinds.hdf, kinds.nxs = {open = open_hdf5}, {open = open_hdf5}

local function kind_of(name, what)
    if type(name) ~= "string" then
        fail("argument", "images." .. what, "name", "name is %s; give the name of a file",
            name == nil and "missing" or "a " .. type(name))
    end
    local extension = (name:gsub(":/.*$", ""):match("%.(%w+)$") or ""):lower()
    return kinds[extension] and kinds[extension][what],
        ("%s: images are .tif, .npy or .h5"):format(name)
end

--- An image file as a volume, with `meta`: what the file says ({spacing, unit, channels, frames,
-- ...}). Close it when done. Options: channel, frame (1-based): one volume of a TIFF hyperstack;
-- without them all its pages.
function images.open(name, options)
    local open, problem = kind_of(name, "open")
    return (open or fail("argument", "images", "name", "%s", problem))(name, options)
end

--- Reads an image onto a device (default: the default device). Returns it and what the file says.
function images.read(name, device)
    local volume <close> = images.open(name)
    return volumes.load(volume, device or mb.default_device()), volume.meta
end

--- A new image file to be written block by block; its name decides the format: an object with
-- volume(channel, frame), finish() and close(); without finish nothing is left. Options: shape and
-- dtype of a volume, overwrite (default false); for TIFF also channels, frames, meta (of the file
-- it was made from), spacing and unit.
function images.create(name, options)
    local create, problem = kind_of(name, "create")
    if type(options) ~= "table" then
        fail("argument", "images.create", "options", "options must be a table with a shape")
    end
    if create and (options.channels or 1) * (options.frames or 1) > 1
        and create ~= kinds.tif.create then
        fail("argument", "images", "name", "%s: only a .tif file can hold several channels or "
            .. "frames", name)
    end
    return (create or fail("argument", "images", "name", "%s", problem))(name, options)
end

--- Writes an image; its name decides the format. Options: overwrite (default false); spacing,
-- unit and meta (TIFF).
function images.write(name, array, options)
    arguments.array(array, "images.write", "array", 1, 8, "an image")
    local file <close> = images.create(name, {shape = array.shape, dtype = array.dtype,
        spacing = options.spacing,
        unit = options.unit, meta = options.meta, overwrite = options.overwrite})
    volumes.store(file:volume(), array)
    file:finish()
end

local ONE = declared.options({"channel", "count", "of a TIFF hyperstack", usual = "all pages"},
    {"frame", "count", "of a TIFF hyperstack", usual = "all pages"})
local WRITE = declared.options(
    {"overwrite", "boolean", "replace an existing file"},
    {"spacing", "any", "of voxels, for TIFF"}, {"unit", "string", "of the spacing, for TIFF"},
    {"meta", "table", "what the file that it was made from says, for TIFF"})

return declared.module(images, "images", {
    open = {"name: any?", ONE}, write = {"name: any?, array: any?", WRITE},
})
