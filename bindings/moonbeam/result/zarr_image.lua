-- An image as OME-Zarr that is written block by block (moonbeam.volumes), by the protocol of
-- results: zarr_volume.lua makes the folder, its pyramid and its name.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local shards = require "moonbeam.zarr.shards"
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
    local steps = {layout.slice_bytes, layout.row_bytes, item}
    local z_first, z_last = first[1] + 1, first[1] + block.shape[1]
    for number = first[1] // layout.slices + 1, (z_last - 1) // layout.slices + 1 do
        local low, high = shards.slices(layout, number)
        local from, to = math.max(z_first, low), math.min(z_last, high)
        local part <close> = block:view {from - z_first + 1, to - z_first + 1}
        fn(level.files[number], part, (from - low) * layout.slice_bytes + first[2]
            * layout.row_bytes + first[3] * item, steps)
    end
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

function writer:volume()
    return setmetatable({level = self.made and self.made.levels[1], shape = self.shape,
        dtype = self.dtype, place = "file"}, blocks)
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

--- A new image {z, y, x}: an object with volume(), finish() and close(); without finish nothing is
-- left. Options: shape, dtype, overwrite, voxel ({pixel, step} in m), origin ({title, input,
-- parameters}), inside (a folder where it is made, which somebody else removes).
function zarr_image.create(name, options)
    if #options.shape ~= 3 then
        fail("shape", "images.create", "name", "%s: OME-Zarr results are stacks (z, y, x), and "
            .. "this image has %d axes: give a .tif, .npy or .h5 file", name, #options.shape)
    end
    local from = options.origin or {}
    local size = options.voxel or options.meta and options.meta.voxel or {}
    local settings = {shape = options.shape, dtype = options.dtype, title = from.title or "image",
        input = from.input, parameters = from.parameters, overwrite = options.overwrite,
        inside = options.inside, units = from.units or "1", pixel_size = size.pixel,
        slice_distance = size.step or size.pixel}
    zarr_volume.check(name, settings)
    local self = setmetatable({shape = options.shape, dtype = options.dtype}, writer)
    if not core.dry.on() then
        self.made = zarr_volume.create(name, settings)
    end
    return self
end

return zarr_image
