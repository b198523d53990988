--- Image files by their names: .tif and .tiff (to be read also .stk, .lsm, .btf and other names
-- under which programs write TIFF), .npy, HDF5 (FILE.h5 or FILE.h5:/path) and Zarr
-- (FOLDER.zarr, to be read also FOLDER.zarr/PATH); to be read also series of TIFF files (a folder,
-- or a pattern with * and ?); whole, or as volumes that are read and written block by block
-- (moonbeam.volumes).

local mb = require "moonbeam"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local large = require "moonbeam.tiff.large"
local npy = require "moonbeam.npy"
local notes = require "moonbeam.result.notes"
local on_error = require "moonbeam.internal.on_error"
local origin = require "moonbeam.result.origin"
local series = require "moonbeam.tiff.series"
local shards = require "moonbeam.zarr.shards"
local tiff = require "moonbeam.tiff"
local volumes = require "moonbeam.volumes"
local zarr = require "moonbeam.zarr"
local zarr_image = require "moonbeam.result.zarr_image"

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
    local _ <close> = on_error(function() file:close() end)
    local dataset = file:dataset(member or only_dataset(file, name))
    local volume = volumes.hdf5(file, dataset, dataset.shape, dataset.dtype)
    volume.meta = {}
    return volume
end

local hdf5_writer = volumes.writer_class {}

function hdf5_writer:volume()
    return volumes.hdf5(self.file, self.dataset, self.shape, self.dtype)
end

-- Says how an image was made, as a reconstruction says it.
local function write_origin(file, given)
    file:group("/entry/process", "NXprocess")
    notes.write_table(file, "/entry/process", {program = "moonbeam", version = core.version,
        date = origin.time()})
    file:group("/entry/process/parameters", "NXparameters")
    notes.write_table(file, "/entry/process/parameters", origin.parameters(given))
    file:group("/entry/provenance", "NXcollection")
    notes.write_table(file, "/entry/provenance", origin.provenance(given))
end

local function create_hdf5(name, options)
    local path, member = name:match("^(.-):(/.*)$")
    local file = mb.h5.create(path or name, {overwrite = options.overwrite})
    local made = setmetatable({file = file, shape = options.shape, dtype = options.dtype},
        hdf5_writer)
    if core.dry.on() then
        return made
    end
    local _ <close> = on_error(function() file:close() end)
    file:group("/entry", "NXentry")
    file:group("/entry/data", "NXdata")
    file:set_attribute("/", "default", "entry")
    file:set_attribute("/entry", "default", "data")
    file:set_attribute("/entry/data", "signal", "data")
    made.dataset = file:create_dataset(member or "/entry/data/data", {shape = options.shape,
        dtype = options.dtype, attributes = {interpretation = "image",
            units = options.origin and options.origin.units}})
    if options.origin then
        write_origin(file, options.origin)
    end
    return made
end

-- ---------------------------------------------------------------------------------------------
-- By name

-- A folder is a Zarr array or group, or a series of TIFF files, which a pattern names, too.
local function open_folder(name, options)
    return (zarr.is(name) and zarr.open or series.open)(name, options)
end

local KINDS = {
    tif = {open = tiff.open, create = tiff.create},
    npy = {open = npy.open, create = function(name, options)
        return npy.create(name, declared.part(declared.of(npy.create).options, options))
    end},
    h5 = {open = open_hdf5, create = create_hdf5},
    hdf = {open = open_hdf5},
    zarr = {open = zarr.open, create = function(name, options)
        return zarr_image.create(name:gsub("/+$", ""), options)
    end},
}
KINDS.tiff, KINDS.hdf5, KINDS.nxs = KINDS.tif, KINDS.h5, KINDS.hdf
for _, extension in ipairs(file_name.TIFF_INPUTS) do
    KINDS[extension] = KINDS[extension] or {open = tiff.open}
end

-- Does a file begin as TIFF does?
local function begins_as_tiff(name)
    local file <close> = io.open(name, "rb")
    local start = file and file:read(4)
    return start == "II*\0" or start == "II+\0" or start == "MM\0*" or start == "MM\0+"
end

local function kind_of(name, what)
    local facts = core.system.stat(name)
    if what == "open" and (name:find "[*?]" or facts and facts.kind == "folder"
        or zarr.is(name)) then
        return open_folder
    end
    local extension = (name:gsub(":/.*$", ""):match("%.(%w+)/*$") or ""):lower()
    local kind = KINDS[extension]
    if kind and kind[what] then
        return kind[what]
    elseif what == "open" and facts and begins_as_tiff(name) then
        fail("argument", "images.open", "name", "%s: the file is a TIFF file, and the name does "
            .. "not say so: give the file a name that ends in .tif", name)
    end
    fail("argument", "images." .. what, "name", what == "open" and "%s: images are .tif (.stk, "
        .. ".lsm and other names of TIFF files, too), .npy, .h5, Zarr folders (.zarr), and folders "
        .. "or patterns (frames/*.tif) of TIFF files" or "%s: images are .tif, .npy, .h5 or .zarr",
        name)
end

-- What the pages of a TIFF file are is said of nothing else.
local function check_pages(name, open, options)
    for _, option in ipairs {"axes", "pages", "image"} do
        if options[option] and open ~= tiff.open then
            fail("argument", "images.open", option, "%s: the option %s is for TIFF files: leave it "
                .. "out", name, option)
        end
    end
end

--- An image file as a volume, with `meta`: what the file says ({spacing, unit, channels, frames,
-- ...}). Close it when done. An image of several channels or frames (a TIFF hyperstack, OME-Zarr)
-- has the pages of all, (page, y, x); with `channel` or `frame` (1-based) it is one volume.
function images.open(name, options)
    local open = kind_of(name, "open")
    check_pages(name, open, options)
    return open(name, options)
end

--- Reads an image onto a device (default: the default device). Returns it and what the file says.
function images.read(name, device)
    local volume <close> = images.open(name)
    return volumes.load(volume, device or mb.default_device()), volume.meta
end

--- A new image file to be written block by block; its name decides the format: an object with
-- volume(channel, frame), finish() and close(); without finish nothing is left. Several channels
-- and frames are for .tif and .zarr.
function images.create(name, options)
    local create = kind_of(name, "create")
    if options.channels * options.frames > 1 and create ~= tiff.create
        and create ~= KINDS.zarr.create then
        fail("argument", "images.create", "name", "%s: only .tif and .zarr can hold several "
            .. "channels or frames", name)
    end
    large.check_name("images.create", name, options.tiff_layout)
    shards.check_name("images.create", name, options.zarr_layout)
    return create(name, options)
end

--- Writes an image; its name decides the format.
function images.write(name, array, options)
    options.shape, options.dtype = array.shape, array.dtype
    volumes.complete(images.create(name, options), array)
end

return declared.module(images, "images", {
    open = {"name: string", declared.of(tiff.open).options},
    read = "name: string, device: device?",
    create = {"name: string", declared.of(tiff.create).options},
    write = {"name: string, array: array", declared.of(tiff.write).options},
})
