--- The JSON documents of OME-Zarr 0.5 that we write: a group with a pyramid, and its arrays.

local json = require "moonbeam.internal.json"

local documents = {}

local TYPES = {u8 = "uint8", u16 = "uint16", f16 = "float16", f32 = "float32"}
local FIRST = {"zarr_format", "node_type", "name", "version", "type", "path"}

-- A pyramid ends with a level whose slices are no larger.
local SMALL <const> = 256

--- Can arrays of this element type be written?
function documents.holds(dtype)
    return TYPES[dtype] ~= nil
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

--- zarr.json of an array with this layout (shards.lua); `first` is the name of its first axis.
function documents.array(layout, first)
    local bytes = {name = "bytes", configuration = {endian = "little"}}
    return json({
        zarr_format = 3, node_type = "array", shape = layout.shape,
        data_type = TYPES[layout.dtype], fill_value = 0,
        dimension_names = {first, "y", "x"},
        chunk_grid = {name = "regular", configuration = {
            chunk_shape = {layout.slices, layout.bands * layout.rows, layout.shape[3]}}},
        chunk_key_encoding = {name = "default", configuration = {separator = "/"}},
        codecs = {{name = "sharding_indexed", configuration = {
            chunk_shape = {1, layout.rows, layout.shape[3]}, codecs = {bytes},
            index_codecs = {bytes, {name = "crc32c"}}, index_location = "end"}}},
    }, FIRST)
end

-- Where the voxels of a level are: {scale, translation}, micrometers or voxels of the first level.
local function transformations(shapes, level, sizes)
    local scale, shift = {}, {}
    for axis = 1, 3 do
        local factor = 1
        for k = 2, level do
            factor = factor * (shapes[k - 1][axis] > shapes[k][axis] and 2 or 1)
        end
        scale[axis] = factor * sizes[axis]
        shift[axis] = (factor - 1) / 2 * sizes[axis]
    end
    return {{type = "scale", scale = scale}, {type = "translation", translation = shift}}
end

--- zarr.json of the group. `volume`: {title, pixel_size, slice_distance (m), axis (where slices are
-- not rows: {name, values})}; `shapes`: those of
-- the levels; `facts`: how the volume came about.
function documents.group(volume, shapes, facts)
    local sizes, axes, datasets = {1.0, 1.0, 1.0}, {}, {}
    if volume.pixel_size then
        sizes = {volume.slice_distance * 1e6, volume.pixel_size * 1e6, volume.pixel_size * 1e6}
    end
    for axis, name in ipairs {"z", "y", "x"} do
        axes[axis] = {name = name, type = "space", unit = volume.pixel_size and "micrometer"}
    end
    if volume.axis then -- of no type: neither space nor time
        axes[1], sizes[1] = {name = volume.axis.name}, 1.0
    end
    for level in ipairs(shapes) do
        datasets[level] = {path = tostring(level - 1),
            coordinateTransformations = transformations(shapes, level, sizes)}
    end
    return json({zarr_format = 3, node_type = "group", attributes = {
        ome = {version = "0.5", multiscales = {{name = volume.title, axes = axes,
            datasets = datasets, type = "mean"}}},
        moonbeam = facts}}, FIRST)
end

return documents
