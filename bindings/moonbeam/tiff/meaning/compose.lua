--- The description of a new TIFF file, composed from what the file is: ImageJ's lines or OME-XML.
--
-- What the input's description says of other things (names, light, instruments, calibrations) goes
-- along: ImageJ's lines by their keys, OME-XML by its tree. Extents, element type, order of pages,
-- display range and identity are the new file's own.

local channel_light = require "moonbeam.tiff.channel_light"
local ome = require "moonbeam.tiff.meaning.ome"
local ome_xml = require "moonbeam.tiff.meaning.ome_xml"
local tables = require "moonbeam.internal.tables"
local voxel = require "moonbeam.tiff.voxel"

local compose = {}

local OWN_LINES <const> = {ImageJ = true, images = true, channels = true, slices = true,
    frames = true, hyperstack = true, order = true, min = true, max = true, loop = true,
    SCIFIO = true, axes = true, lengths = true, scales = true, units = true, bitsPerPixel = true}

--- Is the description of a new file OME-XML? That of NAME.ome.tif is; that of another file is what
-- the input's was.
function compose.is_ome(name, meta)
    return name:lower():find "%.ome%.tiff?$" ~= nil or meta.kind == "ome"
end

-- ---------------------------------------------------------------------------------------------
-- ImageJ

-- The lines of the range that ImageJ shows; none where it is not known.
local function display(shown)
    return shown and ("min=%.9g\nmax=%.9g\n"):format(shown[1], shown[2]) or ""
end

local function imagej(meta, counts, _, shown)
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
    for line in (meta.kind == "imagej" and meta.text or ""):gmatch "[^\r\n%z]+" do
        local key = line:match "^([%w_]+)="
        if key and not OWN_LINES[key] and not (meta.said and (key == "spacing" or key == "unit"))
            then
            kept[key] = true
            lines[#lines + 1] = line
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
    return table.concat(lines, "\n") .. display(shown)
end

-- ---------------------------------------------------------------------------------------------
-- OME-XML

local TYPES <const> = {u8 = "uint8", u16 = "uint16", f32 = "float"}
local SCHEMA <const> = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
local INSTANCE <const> = "http://www.w3.org/2001/XMLSchema-instance"
-- Elements of the whole that refer to images, which are others in a new file.
local OF_IMAGES <const> = {Image = true, BinaryOnly = true, Project = true, Dataset = true,
    Folder = true, Plate = true, Screen = true, ROI = true}
local OF_PIXELS <const> = {BinData = true, TiffData = true, MetadataOnly = true}

-- The elements of a list that are kept; texts between elements go.
local function kept(element, keep)
    local list = {}
    for _, each in ipairs(element) do
        list[#list + 1] = type(each) == "table" and keep(each) and each or nil
    end
    return list
end

local function copy_of(element, list)
    local made = list
    made.name, made.full_name = element.name, element.full_name
    made.attributes, made.order = {}, {table.unpack(element.order)}
    for name, value in pairs(element.attributes) do
        made.attributes[name] = value
    end
    return made
end

-- Is a text a size as the schema has it, positive and finite?
local function is_size(text)
    local value = tonumber(text)
    return value ~= nil and value > 0 and value < math.huge
end

-- What OME-XML says of pixels: sizes, type, and that all pages follow one another.
local function pixels_of(meta, source, counts, dtype, prefix)
    local was = ome.meta {pixels = source}
    local same = was.channels == counts.channels and was.slices == counts.slices
        and was.frames == counts.frames
    local channels = kept(source, function(each)
        return each.name == "Channel"
    end)
    -- Of one channel of several its own; else as many as there are.
    if #channels > counts.channels then
        channels = table.move(channels, counts.channels == 1 and meta.channel or 1,
            counts.channels == 1 and meta.channel or counts.channels, 1, {})
    end
    local list = kept(source, function(each)
        return not OF_PIXELS[each.name] and each.name ~= "Channel"
            and (same or each.name ~= "Plane")
    end)
    table.insert(list, 1, ome_xml.new(prefix .. "TiffData", {{"IFD", 0},
        {"PlaneCount", counts.channels * counts.slices * counts.frames}}))
    table.move(list, 1, #list, #channels + 1)
    table.move(channels, 1, #channels, 1, list)
    local made = copy_of(source, list)
    local values = {Type = TYPES[dtype], BigEndian = "false", SizeC = counts.channels,
        SizeZ = counts.slices, SizeT = counts.frames, SizeX = counts.columns, SizeY = counts.rows,
        DimensionOrder = "XY" .. was.order}
    for _, name in ipairs {"DimensionOrder", "Type", "BigEndian", "SizeX", "SizeY", "SizeZ",
        "SizeC", "SizeT"} do
        ome_xml.set(made, name, values[name] or made.attributes[name])
    end
    ome_xml.set(made, "SignificantBits", nil)
    for _, each in ipairs {{"X", "pixel"}, {"Y", "pixel"}, {"Z", "step"}} do
        local axis, size = each[1], (meta.said or {})[each[2]]
        local own = made.attributes["PhysicalSize" .. axis]
        if size then
            ome_xml.set(made, "PhysicalSize" .. axis, ("%.10g"):format(size * 1e6))
            ome_xml.set(made, "PhysicalSize" .. axis .. "Unit", "\u{b5}m")
        elseif own and not is_size(own) then
            ome_xml.set(made, "PhysicalSize" .. axis, nil)
            ome_xml.set(made, "PhysicalSize" .. axis .. "Unit", nil)
        elseif own and not made.attributes["PhysicalSize" .. axis .. "Unit"] then
            -- The schema's default, which not every reader knows.
            ome_xml.set(made, "PhysicalSize" .. axis .. "Unit", "\u{b5}m")
        end
    end
    return made
end

-- The tree of an input's OME-XML with this image alone, and its place in it.
local function from_tree(root, image, counts, meta, dtype)
    local prefix = root.full_name:match "^.*:" or ""
    local function pixels(each)
        return each == image.pixels and pixels_of(meta, each, counts, dtype, prefix)
    end
    local own = copy_of(image.element, kept(image.element, function(each)
        return each.name ~= "ROIRef"
    end))
    for i, each in ipairs(own) do
        own[i] = pixels(each) or each
    end
    local list, put = {}, false
    for _, each in ipairs(root) do
        if each == image.element then
            list[#list + 1], put = own, true
        elseif type(each) == "table" and not OF_IMAGES[each.name] then
            list[#list + 1] = each
        end
    end
    assert(put)
    local made = copy_of(root, list)
    ome_xml.set(made, "UUID", nil)
    return made
end

-- A new tree, with the size of a voxel and the channels as far as they are known.
local function new_tree(meta, counts, dtype)
    local pixels = ome_xml.new("Pixels", {{"ID", "Pixels:0"}, {"DimensionOrder", "XYCZT"},
        {"Type", TYPES[dtype]}})
    local size = voxel.of {kind = "imagej", unit = meta.unit, spacing = meta.spacing or nil,
        resolution = meta.resolution}
    size = tables.merged(meta.voxel, size)
    local meters = {X = size.pixel, Y = size.row or size.pixel, Z = size.step}
    for _, axis in ipairs {"X", "Y", "Z"} do
        ome_xml.set(pixels, "PhysicalSize" .. axis, meters[axis]
            and ("%.10g"):format(meters[axis] * 1e6))
        ome_xml.set(pixels, "PhysicalSize" .. axis .. "Unit", meters[axis] and "\u{b5}m")
    end
    if counts.frames > 1 and meta.interval then
        ome_xml.set(pixels, "TimeIncrement", ("%.10g"):format(meta.interval))
    end
    local named = channel_light.of_result(meta, counts.channels) or {}
    for c = 1, counts.channels do
        local own = named[c] or {}
        local channel = ome_xml.new("Channel", {{"ID", ("Channel:0:%d"):format(c - 1)},
            {"SamplesPerPixel", 1}})
        ome_xml.set(channel, "Name", own.label)
        for _, name in ipairs {"Emission", "Excitation"} do
            ome_xml.set(channel, name .. "Wavelength", own[name]
                and ("%.10g"):format(own[name] * 1e9))
            ome_xml.set(channel, name .. "WavelengthUnit", own[name] and "nm")
        end
        pixels[c] = channel
    end
    return ome_xml.new("OME", {{"xmlns", SCHEMA}, {"xmlns:xsi", INSTANCE},
        {"xsi:schemaLocation", SCHEMA .. " " .. SCHEMA .. "/ome.xsd"}, {"Creator", "moonbeam"}},
        ome_xml.new("Image", {{"ID", "Image:0"}}, pixels))
end

-- The tree of metadata, and its image; nil where they have none.
local function tree_of(meta)
    if meta.kind ~= "ome" then
        return nil
    end
    local root = meta.tree or ome_xml.read(meta.text or "")
    return root, root and (meta.image or ome.images(root)[1])
end

--- The order of pages of a new file whose description is OME-XML, fastest first.
function compose.order(meta)
    local _, image = tree_of(meta)
    return image and ome.meta(image).order or "CZT"
end

local function by_ome(meta, counts, dtype)
    local root, image = tree_of(meta)
    if not image then
        root = new_tree(meta, counts, dtype)
        image = ome.images(root)[1]
        meta = {}
    end
    return ome_xml.compose(from_tree(root, image, counts, meta, dtype))
end

--- The description of a new file of the dtype. `counts`: {channels, slices, frames, rows, columns};
-- `meta`: of the input (tiff.open), may be an empty table; `is_ome`: is it OME-XML? `shown`: the
-- range that ImageJ shows, {low, high}, or nil.
function compose.text(meta, counts, dtype, is_ome, shown)
    return (is_ome and by_ome or imagej)(meta, counts, dtype, shown)
end

-- ---------------------------------------------------------------------------------------------
-- New volumes

--- ImageJ's description of a volume: {shape, pixel_size and slice_distance (m; nil: unknown), units
-- (of the values), scaling ({scale_factor, add_offset}), shown ({low, high}, the range that is
-- shown; nil: unknown)}.
function compose.new_imagej(volume)
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
    return table.concat(lines, "\n") .. display(volume.shown)
end

--- OME-XML of the same; `dtype`, `title` and an annotation, a text, too.
function compose.new_ome(volume, annotation)
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
        ('<OME xmlns="%s" xmlns:xsi="%s" xsi:schemaLocation="%s %s/ome.xsd" Creator="moonbeam">')
        :format(SCHEMA, INSTANCE, SCHEMA, SCHEMA),
        ('<Image ID="Image:0" Name="%s">'):format(ome_xml.marked(volume.title)),
        ('<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="%s" BigEndian="false"%s SizeC="1" '
        .. 'SizeT="1">'):format(TYPES[volume.dtype], sizes),
        '<Channel ID="Channel:0:0" SamplesPerPixel="1"/>',
        ('<TiffData IFD="0" PlaneCount="%d"/>'):format(volume.shape[1]), "</Pixels>",
        '<AnnotationRef ID="Annotation:0"/>', "</Image>", "<StructuredAnnotations>",
        '<CommentAnnotation ID="Annotation:0" Namespace="moonbeam"><Value>',
        ome_xml.marked(annotation), "</Value></CommentAnnotation>", "</StructuredAnnotations>",
        "</OME>"}, "\n")
end

return compose
