--- The size of a voxel: what a stack's metadata say about it (ImageJ's lines and resolution,
-- OME-XML), and how a new file says it. Sizes are in meters.

local voxel = {}

local METERS = {m = 1, cm = 1e-2, mm = 1e-3, micron = 1e-6, microns = 1e-6, micrometer = 1e-6,
    um = 1e-6, ["\u{b5}m"] = 1e-6, ["\u{3bc}m"] = 1e-6, ["\\u00b5m"] = 1e-6, nm = 1e-9,
    nanometer = 1e-9, pm = 1e-12, angstrom = 1e-10, ["\u{c5}"] = 1e-10, inch = 0.0254}

local function meters_of(unit)
    return unit and (METERS[unit] or METERS[unit:lower()])
end

--- A unit in meters, or nil.
voxel.meters = meters_of

local function positive(value)
    return value and value > 0 and value < math.huge and value or nil
end

-- ImageJ counts pixels for each unit of its own.
local function imagej(meta)
    local unit, resolution = meters_of(meta.unit), meta.resolution
    local function pixel(of)
        return unit and of and of[1] > 0 and positive(of[2] / of[1] * unit) or nil
    end
    return {pixel = resolution and pixel(resolution.x), row = resolution and pixel(resolution.y),
        step = unit and meta.spacing and positive(math.abs(meta.spacing) * unit)}
end

local function ome(meta)
    local tag, sizes = meta.text:match "<[%w:]*Pixels%s[^>]*>", {}
    for name, axis in pairs {pixel = "X", row = "Y", step = "Z"} do
        local form = "%%sPhysicalSize%s%s%%s*=%%s*[\"']([^\"']*)"
        local value = tonumber(tag:match(form:format(axis, "")))
        local unit = meters_of(tag:match(form:format(axis, "Unit")) or "um")
        sizes[name] = value and unit and positive(value * unit)
    end
    return sizes
end

--- What metadata say: {pixel (along rows), row (from row to row), step (from slice to slice)}; nil
-- for what they do not say.
function voxel.of(meta)
    return meta.kind == "imagej" and imagej(meta) or meta.kind == "ome" and ome(meta) or {}
end

--- A pixel size as a TIFF resolution: pixels for each micrometer, without a unit of TIFF's own.
function voxel.resolution(pixel)
    local micrometers = pixel * 1e6
    local scale = micrometers >= 1 and 1e6 or 1e9
    while micrometers * scale >= 2^31 do
        scale = scale / 10
    end
    local pixels = {math.floor(scale), math.max(1, math.floor(micrometers * scale + 0.5))}
    return {x = pixels, y = pixels, unit = 1}
end

-- OME-XML with other sizes.
local function said_by_ome(text, size)
    return (text:gsub("<[%w:]*Pixels%s[^>]*>", function(tag)
        for axis, name in pairs {X = "pixel", Y = "pixel", Z = "step"} do
            if size[name] then
                for _, part in ipairs {"", "Unit"} do
                    tag = tag:gsub(("%%sPhysicalSize%s%s%%s*=%%s*([\"'])[^\"']*%%1"):format(axis,
                        part), "")
                end
                tag = tag:gsub("(/?>)$", (' PhysicalSize%s="%.10g" PhysicalSize%sUnit="\u{b5}m"%%1')
                    :format(axis, size[name] * 1e6, axis))
            end
        end
        return tag
    end, 1))
end

--- A copy of metadata that says this size, {pixel, step}.
function voxel.said(meta, size)
    local copy = setmetatable({}, {__index = meta})
    if meta.kind == "ome" then
        copy.text = said_by_ome(meta.text, size)
        return copy
    end
    local own = voxel.of(meta)
    local step = size.step or own.step
    if meta.kind == "imagej" then
        copy.text = ("\n" .. meta.text):gsub("\nspacing=[^\n]*", ""):gsub("\nunit=[^\n]*", "")
            :sub(2)
    end
    copy.unit, copy.spacing = "micron", step and step * 1e6 or false
    copy.resolution = (size.pixel or own.pixel) and voxel.resolution(size.pixel or own.pixel)
        or nil
    return copy
end

return voxel
