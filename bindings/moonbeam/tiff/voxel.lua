--- The size of a voxel: what a stack's texts and tags say about it, and how a new file says it.
-- Sizes are in meters.

local descriptions = require "moonbeam.tiff.meaning.descriptions"
local units = require "moonbeam.internal.quantities.units"

local voxel = {}

-- Units of TIFF's own.
local OF_TAG <const> = {[2] = units.length.inch, [3] = units.length.cm}
-- Resolutions of printers, up to 1200 dots per inch, which say nothing of an object.
local PRINTED <const> = units.length.inch / 1200

local function positive(value)
    return value and value > 0 and value < math.huge and value or nil
end

-- The size of a pixel by a rational of a tag: pixels for each unit.
local function pixel(pixels, unit)
    return unit and pixels[1] > 0 and positive(pixels[2] / pixels[1] * unit) or nil
end

-- ImageJ counts pixels for each unit of the text. Where the tag has a unit of its own, that is the
-- one, unless only the text's gives a size that a microscope's can be: some programs leave the
-- tag's at what it is by default.
local function imagej(meta, resolution)
    local unit, tag = units.meters(meta.unit), resolution and resolution.told ~= false
        and OF_TAG[resolution.unit]
    local x, y = resolution and resolution.x, resolution and resolution.y
    local by_tag, by_text = x and pixel(x, tag), x and pixel(x, unit)
    local taken = by_tag and (units.microscopic(by_tag) or not by_text
        or not units.microscopic(by_text)) and unit and tag or unit
    return {pixel = x and pixel(x, taken), row = y and pixel(y, taken),
        step = unit and meta.spacing and positive(math.abs(meta.spacing) * unit)}
end

-- Without a text: the tags alone.
local function tags(resolution)
    local unit = resolution and resolution.told ~= false and OF_TAG[resolution.unit]
    local own = unit and pixel(resolution.x, unit)
    if not own or own > PRINTED * (1 - 1e-6) then
        return {}
    end
    return {pixel = own, row = pixel(resolution.y, unit)}
end

--- What metadata say: {pixel (along rows), row (from row to row), step (from slice to slice)}; nil
-- for what they do not say. What the first text (meta) does not say, others of the file may
-- (`texts`).
function voxel.of(meta, texts)
    local found = {}
    local function add(sizes)
        for _, name in ipairs {"pixel", "row", "step"} do
            found[name] = found[name] or sizes[name]
        end
    end
    add(meta.voxel or {})
    if meta.kind == "imagej" then
        add(imagej(meta, meta.resolution))
    elseif meta.kind == "ome" then
        for _, text in ipairs(texts or {}) do
            local other = descriptions.imagej(text)
            add(other and imagej(other, meta.resolution) or {})
        end
    else
        add(meta.kind == "metamorph" and meta.voxel or {})
        add(tags(meta.resolution))
    end
    return found
end

--- A pixel size as a TIFF resolution: pixels for each micrometer, without a unit of TIFF's own.
function voxel.resolution(size)
    local micrometers = size * 1e6
    local scale = micrometers >= 1 and 1e6 or 1e9
    while micrometers * scale >= 2^31 do
        scale = scale / 10
    end
    local pixels = {math.floor(scale), math.max(1, math.floor(micrometers * scale + 0.5))}
    return {x = pixels, y = pixels, unit = 1}
end

--- A copy of metadata that says this size, {pixel, step}.
function voxel.said(meta, size)
    local copy, own = setmetatable({}, {__index = meta}), meta.voxel or voxel.of(meta)
    copy.voxel = {pixel = size.pixel or own.pixel, row = size.pixel or own.row,
        step = size.step or own.step}
    copy.said = size
    copy.unit, copy.spacing = "micron", copy.voxel.step and copy.voxel.step * 1e6 or false
    copy.resolution = copy.voxel.pixel and voxel.resolution(copy.voxel.pixel) or nil
    if copy.resolution and copy.voxel.row then
        copy.resolution.y = voxel.resolution(copy.voxel.row).y
    end
    return copy
end

return voxel
