-- An image as OME-Zarr that is written block by block (moonbeam.volumes), by the protocol of
-- results: zarr_volume.lua makes the folder, its pyramid and its name. Channels and times, where
-- there are several, are axes before z: (t, c, z, y, x).

local channel_light = require "moonbeam.tiff.channel_light"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local levels = require "moonbeam.result.zarr_levels"
local tables = require "moonbeam.internal.tables"
local volumes = require "moonbeam.volumes"
local zarr_volume = require "moonbeam.result.zarr_volume"

local zarr_image = {}

-- ---------------------------------------------------------------------------------------------
-- Blocks

local blocks = volumes.file_class {}

-- Calls fn(file, part, offset, steps) for the parts of a dense block in each shard.
local function each_part(self, block, first, fn)
    local level = self.level
    local layout, item = level.layout, core.pool.element_bytes(self.dtype)
    local steps, z = {layout.slice_bytes, layout.row_bytes, item}, first[1]
    levels.each_part(level, z + 1, z + block.shape[1], function(number, offset, from, to)
        local part <close> = block:view {from - z, to - z}
        fn(levels.file(level, number), part, offset + first[2] * layout.row_bytes
            + first[3] * item, steps)
    end)
end

function blocks:fill(block, first)
    if not block.device.dry then
        each_part(self, block, first, function(file, part, offset, steps)
            file:read(part, offset, steps)
        end)
    end
end

function blocks:take(block, first)
    if not block.device.dry then
        each_part(self, block, first, function(file, part, offset, steps)
            file:write(part, offset, steps)
        end)
    end
end

function blocks.carries()
    return true
end

function blocks:carry(carrier, array, first)
    if not array.device.dry then
        each_part(self, array, first, function(file, part, offset, steps)
            carrier:carry(file, part, offset, steps)
        end)
    end
end

-- ---------------------------------------------------------------------------------------------
-- Files

local writer = volumes.writer_class {}

--- The volume (z, y, x) of a channel and frame (1-based; default 1).
function writer:volume(channel, frame)
    local number = ((frame or 1) - 1) * self.counts.channels + (channel or 1)
    local own = self.made and self.made.volumes[number]
    return setmetatable({level = own and own[1], shape = self.shape, dtype = self.dtype,
        place = "file"}, blocks)
end

function writer:finish()
    if self.made then
        self.made:finish()
    end
end

function writer:close()
    if self.made then
        self.made:close()
    end
end
writer.__close = writer.close

-- The axes before z.
local function lead_of(options)
    local lead, interval = {}, options.meta and options.meta.interval
    if options.frames > 1 then
        lead[1] = {name = "t", type = "time", unit = interval and "second",
            extent = options.frames, scale = interval or 1.0}
    end
    if options.channels > 1 then
        lead[#lead + 1] = {name = "c", type = "channel", extent = options.channels, scale = 1.0}
    end
    return lead
end

-- The size of a voxel: what is given, else what the image says. One size of pixels is given, and is
-- that of rows, too, unless it is the image's own.
local function size_of(options)
    local given, told = options.voxel or {}, options.meta and options.meta.voxel or {}
    local same = not given.pixel or told.pixel and math.abs(given.pixel / told.pixel - 1) < 1e-6
    return {pixel = given.pixel or told.pixel, row = same and told.row or nil,
        step = given.step or told.step}
end

--- A new image: an object with volume(channel, frame), finish() and close(); without finish
-- nothing is left. Options: shape ({z, y, x}), dtype, channels, frames, overwrite, zarr_layout,
-- voxel ({pixel, step} in m), meta (of the image that it was made from: its voxel, the interval of
-- times and names of channels), origin ({title, input, parameters}), inside (a folder where it is
-- made, which somebody else removes).
function zarr_image.create(name, options)
    if #options.shape ~= 3 then
        fail("shape", "images.create", "name", "%s: OME-Zarr results are stacks (z, y, x), and "
            .. "this image has %s: give a %s file", name, counted(#options.shape, "axis", "axes"),
            options.channels * options.frames > 1 and ".tif" or ".tif, .npy or .h5")
    end
    local from, named = options.origin or {}, channel_light.of_result(options.meta or {},
        options.channels)
    local size = size_of(options)
    local settings = {shape = options.shape, dtype = options.dtype, title = from.title or "image",
        zarr_layout = options.zarr_layout,
        input = from.input, parameters = from.parameters, overwrite = options.overwrite,
        inside = options.inside, units = from.units or "1", pixel_size = size.pixel,
        row_size = size.row,
        slice_distance = size.step or false, lead = lead_of(options),
        channels = named and tables.mapped(named, tables.merged) or nil}
    zarr_volume.check(name, settings)
    local self = setmetatable({shape = options.shape, dtype = options.dtype,
        counts = {channels = options.channels, frames = options.frames}}, writer)
    if not core.dry.on() then
        self.made = zarr_volume.create(name, settings)
    end
    return self
end

return zarr_image
