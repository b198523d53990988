--- What OME-XML says of the pages of a TIFF file, and of other files of its set.

local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local descriptions = require "moonbeam.tiff.meaning.descriptions"
local fail = require "moonbeam.internal.fail"
local file_set = require "moonbeam.tiff.meaning.file_set"
local input_file = require "moonbeam.internal.files.input_file"
local ome_xml = require "moonbeam.tiff.meaning.ome_xml"
local order = require "moonbeam.tiff.meaning.order"
local refusal = require "moonbeam.tiff.meaning.refusal"
local units = require "moonbeam.internal.quantities.units"

local ome = {}

local COMPANION_BYTES <const> = 256 << 20

-- ---------------------------------------------------------------------------------------------
-- What an image is

local function positive(value)
    return value and value > 0 and value < math.huge and value or nil
end

-- The size of a voxel in m: {pixel, row, step}.
local function voxel_of(pixels)
    local sizes = {}
    for name, axis in pairs {pixel = "X", row = "Y", step = "Z"} do
        local value = tonumber(pixels.attributes["PhysicalSize" .. axis])
        local unit = units.meters(pixels.attributes["PhysicalSize" .. axis .. "Unit"] or "um")
        sizes[name] = value and unit and positive(value * unit)
    end
    return sizes
end

local function wavelength(channel, which)
    local value = tonumber(channel.attributes[which .. "Wavelength"])
    local unit = units.meters(channel.attributes[which .. "WavelengthUnit"] or "nm")
    return value and unit and positive(value * unit)
end

-- What is told of the channels: {{label, color (RRGGBB), Emission, Excitation (m)}, ...}; nil where
-- nothing is.
local function named_of(pixels)
    local list, known = {}, false
    for channel in ome_xml.each(pixels, "Channel") do
        local color = math.tointeger(tonumber(channel.attributes.Color))
        list[#list + 1] = {label = channel.attributes.Name,
            color = color and ("%06X"):format(color >> 8 & 0xffffff), -- red, green, blue, alpha
            Emission = wavelength(channel, "Emission"),
            Excitation = wavelength(channel, "Excitation")}
        known = known or next(list[#list]) ~= nil
    end
    return known and list or nil
end

--- The images of a tree, {element, pixels}.
function ome.images(root)
    local list = {}
    for image in ome_xml.each(root, "Image") do
        local pixels = ome_xml.first(image, "Pixels")
        list[#list + 1] = pixels and {element = image, pixels = pixels} or nil
    end
    return list
end

--- The metadata of an image: {kind, channels, slices, frames, order, spacing, unit, interval,
-- voxel, named}.
function ome.meta(image)
    local pixels, said = image.pixels, image.pixels.attributes
    local function extent(name)
        local value = said[name] == nil and 1 or ome_xml.whole(pixels, name)
        return value and value > 0 and value or 1
    end
    local axes = (said.DimensionOrder or ""):upper():match "^XY([CZT][CZT][CZT])$"
    local valid = axes and axes:find "C" and axes:find "Z" and axes:find "T"
    return {kind = "ome", channels = extent "SizeC", slices = extent "SizeZ",
        frames = extent "SizeT", order = valid and axes or "CZT",
        spacing = tonumber(said.PhysicalSizeZ), unit = said.PhysicalSizeZUnit,
        interval = descriptions.interval(said.TimeIncrement, said.TimeIncrementUnit),
        voxel = voxel_of(pixels), named = named_of(pixels)}
end

-- ---------------------------------------------------------------------------------------------
-- Files of a set

-- The tree of the companion file that a description names instead of saying what the pages are.
local function companion(name, binary_only)
    local other = binary_only.attributes.MetadataFile or ""
    local path = file_set.beside(name, other)
    local facts = core.system.stat(path)
    local file <close> = facts and facts.kind ~= "folder" and input_file.open(path) or nil
    if not file then
        refusal.pages(name, "what its pages are is in the companion file '%s', which is not there",
            other)
    end
    local root, why = ome_xml.read(file:read(COMPANION_BYTES) or "")
    return root or refusal.pages(name, "its companion file '%s' is no OME-XML%s", other, why
        and ": " .. why or "")
end

-- Blocks of planes that an image names: {first (of the planes, 0-based), directory, count (nil: all
-- pages of the file), file (a name, nil: this one)}. `set`: {name, own (base name), uuid}.
local function blocks_of(image, meta, set)
    local list = {}
    for block in ome_xml.each(image.pixels, "TiffData") do
        local function number(attribute, default)
            if block.attributes[attribute] == nil then
                return default
            end
            return ome_xml.whole(block, attribute) or refusal.pages(set.name, "a TiffData has "
                .. "%s=\"%s\"", attribute, block.attributes[attribute]:sub(1, 20))
        end
        local c, z, t = number("FirstC", 0), number("FirstZ", 0), number("FirstT", 0)
        if c >= meta.channels or z >= meta.slices or t >= meta.frames then
            refusal.pages(set.name, "a TiffData begins at channel %d, slice %d, time %d (from 0), "
                .. "but the image has %s", c, z, t, refusal.counts(meta))
        end
        local uuid = ome_xml.first(block, "UUID")
        local file, id = uuid and uuid.attributes.FileName, uuid and ome_xml.text(uuid)
        -- Without a name the identity tells, where both have one.
        file = file or set.uuid and uuid and id ~= "" and id or set.own
        local own = not uuid or id ~= "" and id == set.uuid
            or file_set.base(file):lower() == set.own:lower()
        local count = number("PlaneCount", number("NumPlanes", block.attributes.IFD and 1 or nil))
        list[#list + 1] = {first = order.number(meta, c, z, t), directory = number("IFD", 0),
            count = count ~= 0 and count or nil, file = not own and file or nil}
    end
    return list
end

-- A set of one file that was given another name: all blocks name one file, which is not there.
local function renamed(images, set)
    local only
    for _, image in ipairs(images) do
        for _, block in ipairs(image.blocks) do
            if not block.file or only and block.file ~= only then
                return
            end
            only = block.file
        end
    end
    if only and not core.system.stat(file_set.beside(set.name, file_set.base(only))) then
        for _, image in ipairs(images) do
            for _, block in ipairs(image.blocks) do
                block.file = nil
            end
        end
    end
end

-- The pages of the planes of an image, in its order; some may be missing.
local function planes_of(image, set)
    local meta, planes, used = image.meta, {}, {}
    local total = order.count(meta)
    for _, block in ipairs(image.blocks) do
        local directories = file_set.directories(set, block.file)
        local room = total - block.first
        local count = block.count or directories and #directories - block.directory or 0
        if count > room then
            refusal.pages(set.name, "the description names %d pages for the %d planes from number "
                .. "%d on of %s", count, room, block.first + 1, refusal.counts(meta))
        end
        for i = 1, directories and count or 0 do
            local page, number = directories[block.directory + i], block.first + i
            if page and (used[page] or planes[number] and planes[number] ~= page) then
                refusal.pages(set.name, "the description names %s for plane %d",
                    used[page] and "a page of another plane" or "several pages", number)
            end
            planes[number] = page
            if page then
                used[page] = true
            end
        end
    end
    return planes
end

-- Refuses an image whose slices are of several angles, phases or the like, too, which an annotation
-- says (6D, 7D and 8D storage).
local function check_slices(root, image, set)
    local own = {}
    for _, element in ipairs {image.element, image.pixels} do
        for each in ome_xml.each(element, "AnnotationRef") do
            own[each.attributes.ID or ""] = true
        end
    end
    local function modulo(element)
        local found = element.name == "ModuloAlongZ" and element or nil
        for _, each in ipairs(element) do
            found = found or type(each) == "table" and modulo(each) or nil
        end
        return found
    end
    local annotations = ome_xml.first(root, "StructuredAnnotations") or {}
    for annotation in ome_xml.each(annotations, "XMLAnnotation") do
        local found = own[annotation.attributes.ID] and modulo(annotation)
        if found then
            refusal.pages(set.name, "its slices are of several values of \"%s\", too "
                .. "(ModuloAlongZ)", tostring(found.attributes.Type):sub(1, 20))
        end
    end
end

-- ---------------------------------------------------------------------------------------------
-- The image that is meant

-- The image with the number that the option says, or the only one with planes in this file.
local function chosen(images, set, number, meaning)
    if number then
        return images[number] or refusal.image(set.name, #images, "images", number)
    end
    local here, texts = {}, {}
    for i, image in ipairs(images) do
        for _, block in ipairs(image.blocks) do
            if not block.file then
                here[#here + 1] = image
                texts[#texts + 1] = ("%d: %s"):format(i, refusal.counts(image.meta))
                break
            end
        end
    end
    if #here > 1 and meaning then
        fail("argument", "tiff", "image", "%s has %d images: say which with the option image "
            .. "(%s%s)", set.name, #here, table.concat(texts, "; ", 1, math.min(4, #texts)),
            #texts > 4 and "; ..." or "")
    end
    return here[1] or images[1]
end

-- The planes where the description says none of a block: the pages follow one another.
local function without_blocks(image, set, pages)
    if #pages > order.count(image.meta) then
        refusal.pages(set.name, "the description says %s, and the file has %s",
            refusal.counts(image.meta), counted(#pages, "page"))
    end
    return {table.unpack(pages)}
end

--- What a text that is OME-XML says of a file: its metadata with `planes` (pages, in its order);
-- nil where the text is something else. `file`: {name, directories (all), pages (without
-- thumbnails), read (a function that returns the directories of another file of the set)}.
function ome.read(text, file, options, warn)
    local root, why = ome_xml.read(text)
    if not root then
        if why and text:find("OME", 1, true) then
            refusal.pages(file.name, "its OME-XML is damaged: %s", why)
        end
        return nil
    end
    local set = file_set.new(file)
    set.uuid = root.attributes.UUID
    local binary_only = ome_xml.first(root, "BinaryOnly")
    if binary_only then
        root = companion(file.name, binary_only)
    end
    local images = ome.images(root)
    if #images == 0 then
        return nil
    end
    for _, image in ipairs(images) do
        image.meta = ome.meta(image)
        image.blocks = blocks_of(image, image.meta, set)
    end
    renamed(images, set)
    local image = chosen(images, set, options.image, options.meaning ~= false)
    local meta = image.meta
    meta.text, meta.tree, meta.images, meta.image = text, root, #images, image
    if options.meaning == false then
        return meta
    elseif #image.blocks == 0 and #images > 1 then
        refusal.pages(file.name, "its OME-XML has %d images, and does not say which pages are "
            .. "whose", #images)
    end
    check_slices(root, image, set)
    local planes = #image.blocks == 0 and without_blocks(image, set, file.pages)
        or planes_of(image, set)
    meta.planes = file_set.completed(set, meta, planes, warn)
    return meta
end

return ome
