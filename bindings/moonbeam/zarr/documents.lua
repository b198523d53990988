--- The JSON documents of OME-Zarr 0.5 that we write: a group with a pyramid, and its arrays.

local json = require "moonbeam.internal.json"
local numpy_types = require "moonbeam.internal.quantities.numpy_types"
local shown_range = require "moonbeam.result.shown_range"

local documents = {}

local HELD <const> = {u8 = true, u16 = true, f16 = true, f32 = true}
local FIRST = {"zarr_format", "node_type", "name", "version", "type", "path"}

-- A pyramid ends with a level whose slices are no larger.
local SMALL <const> = 256

--- Can arrays of this element type be written?
function documents.holds(dtype)
    return HELD[dtype] == true
end

--- The shapes of a pyramid's levels: each half as large as the one before, odd extents rounded up.
-- `whole`: the first axis stays.
function documents.levels(shape, whole)
    local list = {shape}
    while math.max(shape[2], shape[3]) > SMALL do
        shape = {whole and shape[1] or -(-shape[1] // 2), -(-shape[2] // 2), -(-shape[3] // 2)}
        list[#list + 1] = shape
    end
    return list
end

-- A list of values of the axes before a volume's own, and then its own.
local function behind(lead, field, ...)
    local list = {}
    for i, axis in ipairs(lead) do
        list[i] = type(field) == "string" and axis[field] or field
    end
    return table.move({...}, 1, 3, #list + 1, list)
end

--- zarr.json of an array with this layout (shards.lua). `lead`: the axes before the volume's own,
-- {{name, extent}, ...}; `first`: the name of the first one of these.
function documents.array(layout, lead, first)
    local bytes = {name = "bytes", configuration = {endian = "little"}}
    local sharding = {name = "sharding_indexed", configuration = {
        chunk_shape = behind(lead, 1, 1, layout.rows, layout.shape[3]), codecs = {bytes},
        index_codecs = {bytes, {name = "crc32c"}}, index_location = "end"}}
    return json({
        zarr_format = 3, node_type = "array",
        shape = behind(lead, "extent", table.unpack(layout.shape)),
        data_type = numpy_types.name(layout.dtype), fill_value = 0,
        dimension_names = behind(lead, "name", first, "y", "x"),
        chunk_grid = {name = "regular", configuration = {chunk_shape = behind(lead, 1,
            layout.slices, layout.bands * layout.rows, layout.shape[3])}},
        chunk_key_encoding = {name = "default", configuration = {separator = "/"}},
        codecs = {layout.kind == "chunks" and bytes or sharding},
    }, FIRST)
end

--- The layout (shards.option) that zarr.json of an array of ours, a text, has.
function documents.layout(text)
    return text:find('"sharding_indexed"', 1, true) and "shards" or "chunks"
end

-- Where the voxels of a level are: {scale, translation}, micrometers or voxels of the first level.
local function transformations(shapes, level, sizes, lead)
    local scale, shift = {}, {}
    for axis = 1, 3 do
        local factor = 1
        for k = 2, level do
            factor = factor * (shapes[k - 1][axis] > shapes[k][axis] and 2 or 1)
        end
        scale[axis] = factor * sizes[axis]
        shift[axis] = (factor - 1) / 2 * sizes[axis]
    end
    return {{type = "scale", scale = behind(lead, "scale", table.unpack(scale))},
        {type = "translation", translation = behind(lead, 0.0, table.unpack(shift))}}
end

-- The axes of the group, and the sizes of a voxel along those of the volume.
local function axes_of(volume)
    local sizes, own = {}, {}
    for axis, name in ipairs {"z", "y", "x"} do
        local size = volume.pixel_size
        if axis == 1 then -- nil or false where it is not known
            size = volume.slice_distance
        elseif axis == 2 then
            size = volume.row_size or size
        end
        sizes[axis] = size and size * 1e6 or 1.0
        own[axis] = {name = name, type = "space", unit = size and "micrometer" or nil}
    end
    if volume.axis then -- of no type: neither space nor time
        own[1], sizes[1] = {name = volume.axis.name}, 1.0
    end
    local axes = {}
    for i, axis in ipairs(volume.lead) do
        axes[i] = {name = axis.name, type = axis.type, unit = axis.unit}
    end
    return table.move(own, 1, 3, #axes + 1, axes), sizes
end

-- Colors of channels whose image names none.
local COLORS <const> = {"00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF"}
local MOST <const> = {u8 = 255, u16 = 65535}

-- A wavelength as OMERO has it.
local function nanometers(meters)
    return meters and math.floor(meters * 1e12 + 0.5) / 1e3
end

-- What is shown of a channel: the 0.5 and 99.5 percentiles, of what there is or can be.
local function window_of(dtype, channel)
    local least, greatest = channel.least, channel.greatest
    local low, high = table.unpack(shown_range.window(least, greatest, channel.low, channel.high))
    return {min = MOST[dtype] and 0 or least, max = MOST[dtype] or math.max(greatest, high),
        start = low, ["end"] = high}
end

-- How channels are shown, or nil where no value is known.
local function omero_of(volume)
    local list = {}
    for i, channel in ipairs(volume.channels or {}) do
        if not channel.least then
            return nil
        end
        list[i] = {label = channel.label or ("channel %d"):format(i), active = true,
            emissionWave = nanometers(channel.Emission),
            excitationWave = nanometers(channel.Excitation),
            color = channel.color or #volume.channels == 1 and "FFFFFF"
            or COLORS[(i - 1) % #COLORS + 1],
            window = window_of(volume.dtype, channel)}
    end
    return #list > 0 and {channels = list} or nil
end

--- zarr.json of the group. `volume`: {title, dtype, pixel_size, row_size (nil: pixel_size),
-- slice_distance (false: unknown; all in m), axis (where slices are not rows: {name, values}), lead
-- (the axes before the volume's own: {{name, type, unit, extent, scale}, ...}), channels (what
-- channel_light.named gives, or empty tables, with least, greatest and the percentiles low and
-- high)}; `shapes`: those of the levels; `facts`: how the volume came about.
function documents.group(volume, shapes, facts)
    local axes, sizes = axes_of(volume)
    local datasets = {}
    for level in ipairs(shapes) do
        datasets[level] = {path = tostring(level - 1),
            coordinateTransformations = transformations(shapes, level, sizes, volume.lead)}
    end
    return json({zarr_format = 3, node_type = "group", attributes = {
        ome = {version = "0.5", multiscales = {{name = volume.title, axes = axes,
            datasets = datasets, type = "mean"}}, omero = omero_of(volume)},
        moonbeam = facts}}, FIRST)
end

return documents
