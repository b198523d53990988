--- What a TIFF's description says about a stack, read and written: ImageJ's lines ("key=value") and
-- OME-XML.
--
-- Metadata of a stack: {kind = "imagej", "ome" or nil, text, channels, slices, frames, spacing,
-- unit, interval (of times in s), order}. `order` is the order of pages, fastest first, out of C, Z
-- and T; ImageJ's is always CZT. What is written keeps every line and element of the input but
-- those that tell extents, element type, order, display range or identity, which are the new file's
-- own.

local metadata = {}

local OWN_LINES = {ImageJ = true, images = true, channels = true, slices = true, frames = true,
    hyperstack = true, min = true,
    max = true, loop = true}

local function whole(text)
    return text and math.tointeger(tonumber(text)) or nil
end

local SECONDS <const> = {s = 1, sec = 1, second = 1, seconds = 1, ms = 1e-3, msec = 1e-3,
    millisecond = 1e-3, us = 1e-6, ["\u{b5}s"] = 1e-6, microsecond = 1e-6, ns = 1e-9,
    nanosecond = 1e-9, min = 60, minute = 60, h = 3600, hour = 3600, day = 86400, d = 86400}

--- An interval of times in s; nil where it or its unit is none.
function metadata.interval(value, unit)
    local number, seconds = tonumber(value), SECONDS[unit or "s"]
    return number and seconds and number > 0 and number < math.huge and number * seconds or nil
end

local function imagej(text)
    local values = {}
    for key, value in text:gmatch("([%w_]+)=([^\n]*)") do
        values[key] = value
    end
    local images = whole(values.images) or 1
    local channels, frames = whole(values.channels) or 1, whole(values.frames) or 1
    local slices = whole(values.slices) or (channels * frames > 0 and images // (channels * frames)
        or images)
    return {kind = "imagej", text = text, images = images, channels = channels, slices = slices,
        frames = frames,
        spacing = tonumber(values.spacing), unit = values.unit, order = "CZT",
        interval = metadata.interval(values.finterval, values.tunit)}
end

-- The value of an attribute within the text of one element's tag.
local function attribute(tag, name)
    return tag:match("[%s]" .. name .. '%s*=%s*"([^"]*)"')
        or tag:match("[%s]" .. name .. "%s*=%s*'([^']*)'")
end

local function ome(text)
    local pixels = text:match("<[%w:]*Pixels%s[^>]*>")
    if not pixels then
        return nil
    end
    local made = {kind = "ome", text = text, images = select(2, text:gsub("<[%w:]*Pixels%s", "")),
        channels = whole(attribute(pixels, "SizeC")) or 1,
        slices = whole(attribute(pixels, "SizeZ")) or 1,
        frames = whole(attribute(pixels, "SizeT")) or 1,
        spacing = tonumber(attribute(pixels, "PhysicalSizeZ")),
        unit = attribute(pixels, "PhysicalSizeZUnit"),
        interval = metadata.interval(attribute(pixels, "TimeIncrement"),
            attribute(pixels, "TimeIncrementUnit")),
        order = (attribute(pixels, "DimensionOrder")
            or "XYCZT"):upper():match("^XY([CZT][CZT][CZT])$") or "CZT"}
    made.pages = {}
    -- Blocks that say which directory holds which plane; without them the planes follow one another
    -- in `order`.
    for tag in text:gmatch("<[%w:]*TiffData[^>]*>") do
        local directory = whole(attribute(tag, "IFD"))
        if directory and (whole(attribute(tag, "PlaneCount")) or 1) == 1 then
            made.pages[#made.pages + 1] = {directory = directory,
                C = whole(attribute(tag, "FirstC")) or 0,
                Z = whole(attribute(tag, "FirstZ")) or 0, T = whole(attribute(tag, "FirstT")) or 0}
        end
    end
    return made
end

--- Metadata from the description of a file's first page, or an empty table where it has none that
-- is known.
function metadata.parse(text)
    text = text or ""
    if text:match("^ImageJ=") then
        return imagej(text)
    elseif text:find("<OME", 1, true) or text:find("<ome:OME", 1, true) then
        return ome(text) or {}
    end
    return {}
end

--- The 0-based page of plane (c, z, t), all 0-based, of a stack with these metadata.
function metadata.page(meta, c, z, t)
    local index, counts = {C = c, Z = z, T = t}, {C = meta.channels, Z = meta.slices,
        T = meta.frames}
    for _, page in ipairs(meta.pages or {}) do
        if page.C == c and page.Z == z and page.T == t then
            return page.directory
        end
    end
    local at = 0
    for i = 3, 1, -1 do
        local axis = meta.order:sub(i, i)
        at = at * counts[axis] + index[axis]
    end
    return at
end

local function compose_imagej(meta, counts)
    local images = counts.channels * counts.slices * counts.frames
    local lines = {"ImageJ=1.54f", ("images=%d"):format(images)}
    local hyperstack = counts.channels > 1 or counts.frames > 1
    if hyperstack then
        lines[#lines + 1] = ("channels=%d"):format(counts.channels)
    end
    lines[#lines + 1] = ("slices=%d"):format(counts.slices)
    if hyperstack then
        lines[#lines + 1] = ("frames=%d\nhyperstack=true"):format(counts.frames)
    end
    local kept = {}
    if meta.kind == "imagej" then
        for line in meta.text:gmatch("[^\n%z]+") do
            local key = line:match("^([%w_]+)=")
            if key and not OWN_LINES[key] then
                kept[key] = true
                lines[#lines + 1] = line
            end
        end
    end
    if hyperstack and not kept.mode then
        lines[#lines + 1] = "mode=grayscale"
    end
    if meta.spacing and not kept.spacing then
        lines[#lines + 1] = ("spacing=%.10g"):format(meta.spacing)
    end
    if counts.frames > 1 and meta.interval and not kept.finterval then
        lines[#lines + 1] = ("finterval=%.10g"):format(meta.interval)
    end
    if meta.unit and not kept.unit then
        lines[#lines + 1] = "unit=" .. meta.unit
    end
    lines[#lines + 1] = "loop=false\n"
    return table.concat(lines, "\n")
end

local OME_TYPES = {u8 = "uint8", u16 = "uint16", f32 = "float"}

local function compose_ome(meta, counts, dtype)
    local function set(tag, name, value)
        local pattern = "(%s)" .. name .. "%s*=%s*([\"'])[^\"']*%2"
        if value == nil then
            return (tag:gsub(pattern, ""))
        elseif not tag:find(pattern) then
            return (tag:gsub("(/?>)$", (' %s="%s"%%1'):format(name, value)))
        end
        return (tag:gsub(pattern, ('%%1%s="%s"'):format(name, value)))
    end
    local text = meta.text:gsub("(<[%w:]*OME%s[^>]*>)", function(tag)
        return set(tag, "UUID", nil)
    end, 1)
    local prefix = text:match("<([%w]*:?)Pixels%s")
    text = text:gsub("%s*<[%w:]*TiffData[^>]*/>", ""):gsub("%s*<([%w:]*TiffData)[^>]*>.-</%1>", "")
        :gsub("%s*<[%w:]*BinData[^>]*/>", ""):gsub("%s*<([%w:]*BinData)[^>]*>.-</%1>", "")
        :gsub("%s*<[%w:]*MetadataOnly%s*/>", "")
    local block = ('<%sTiffData IFD="0" PlaneCount="%d"/>'):format(prefix,
        counts.channels * counts.slices * counts.frames)
    text = text:gsub("(<[%w:]*Pixels%s[^>]*>)", function(tag)
        local empty = tag:match("/>$") ~= nil
        tag = set(tag, "Type", OME_TYPES[dtype])
        tag = set(set(tag, "SignificantBits", nil), "BigEndian", "false")
        tag = set(set(set(tag, "SizeC", counts.channels), "SizeZ", counts.slices), "SizeT",
            counts.frames)
        return empty and tag:gsub("/>$", ">") .. block .. ("</%sPixels>"):format(prefix) or tag
    end, 1)
    if not text:find(block, 1, true) then
        -- The schema wants it behind the channels.
        local last
        for at in text:gmatch(("()</%sChannel>"):format(prefix)) do
            last = at + #prefix + #"</Channel>" - 1
        end
        for at, tag in text:gmatch(("()(<%sChannel%%s[^>]*/>)"):format(prefix)) do
            last = math.max(last or 0, at + #tag - 1)
        end
        last = last or select(2, text:find("<[%w:]*Pixels%s[^>]*>"))
        text = text:sub(1, last) .. block .. text:sub(last + 1)
    end
    return text
end

-- ---------------------------------------------------------------------------------------------
-- New volumes

--- ImageJ's description of a volume: {shape, pixel_size and slice_distance (m; nil: unknown), units
-- (of the values), scaling ({scale_factor, add_offset})}.
function metadata.new_imagej(volume)
    local lines = {("ImageJ=1.54f\nimages=%d\nslices=%d"):format(volume.shape[1],
        volume.shape[1])}
    if volume.pixel_size then
        lines[#lines + 1] = "unit=micron" .. (volume.slice_distance
            and ("\nspacing=%.10g"):format(volume.slice_distance * 1e6) or "")
    end
    if volume.scaling then -- a straight line
        lines[#lines + 1] = ("cf=0\nc0=%.17g\nc1=%.17g\nvunit=%s"):format(
            volume.scaling.add_offset, volume.scaling.scale_factor, volume.units)
    end
    lines[#lines + 1] = "loop=false\n"
    return table.concat(lines, "\n")
end

local MARKS = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;"}

-- What XML text may hold: UTF-8 without control characters.
local function xml_text(text)
    if not utf8.len(text) then
        text = text:gsub("[\128-\255]", "?")
    end
    return (text:gsub("[%z\1-\8\11\12\14-\31\127]", "?"):gsub('[&<>"]', MARKS))
end

--- OME-XML of the same; `dtype`, `title` and an annotation, a text, too.
function metadata.new_ome(volume, annotation)
    local sizes = ""
    for axis, name in ipairs {"Z", "Y", "X"} do
        local size = volume.pixel_size
        if axis == 1 then
            size = volume.slice_distance
        end
        sizes = sizes .. (' Size%s="%d"'):format(name, volume.shape[axis])
            .. (volume.pixel_size and size and (' PhysicalSize%s="%.10g" PhysicalSize%sUnit="µm"')
                :format(name, size * 1e6, name) or "")
    end
    return table.concat({'<?xml version="1.0" encoding="UTF-8"?>',
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
        .. 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation='
        .. '"http://www.openmicroscopy.org/Schemas/OME/2016-06 '
        .. 'http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd" Creator="moonbeam">',
        ('<Image ID="Image:0" Name="%s">'):format(xml_text(volume.title)),
        ('<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="%s" BigEndian="false"%s SizeC="1" '
        .. 'SizeT="1">'):format(OME_TYPES[volume.dtype], sizes),
        '<Channel ID="Channel:0:0" SamplesPerPixel="1"/>',
        ('<TiffData IFD="0" PlaneCount="%d"/>'):format(volume.shape[1]), "</Pixels>",
        '<AnnotationRef ID="Annotation:0"/>', "</Image>", "<StructuredAnnotations>",
        '<CommentAnnotation ID="Annotation:0" Namespace="moonbeam"><Value>',
        xml_text(annotation), "</Value></CommentAnnotation>", "</StructuredAnnotations>", "</OME>",
        }, "\n")
end

--- The description for a new file of the dtype. counts {channels, slices, frames}; meta may be an
-- empty table.
function metadata.compose(meta, counts, dtype)
    if meta.kind == "ome" then
        return compose_ome(meta, counts, dtype)
    end
    return compose_imagej(meta, counts)
end

return metadata
