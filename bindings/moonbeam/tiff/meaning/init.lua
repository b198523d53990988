--- The meaning of a TIFF file's pages: which page is the plane of which channel, slice and time.
--
-- Several programs say it in texts of their own; a page may have several of these. OME-XML comes
-- first, then Micro-Manager's map, ImageJ's lines, tifffile's JSON and what other programs say in
-- tags of their own. What does not add up is refused, never guessed; the options axes, pages and
-- image overrule every text.

local counted = require "moonbeam.internal.quantities.counted"
local descriptions = require "moonbeam.tiff.meaning.descriptions"
local fail = require "moonbeam.internal.fail"
local ome = require "moonbeam.tiff.meaning.ome"
local ome_xml = require "moonbeam.tiff.meaning.ome_xml"
local order = require "moonbeam.tiff.meaning.order"
local programs = require "moonbeam.tiff.meaning.programs"
local refusal = require "moonbeam.tiff.meaning.refusal"
local tables = require "moonbeam.internal.tables"

local meaning = {}

-- Pages behind one another, of which the file has one directory.
local function behind_one_another(first, count, page_bytes)
    local at, list = first.offsets[1], {}
    for i = 1, count do
        list[i] = setmetatable({offsets = {at + (i - 1) * page_bytes}, bytes = {page_bytes},
            segment_rows = first.rows}, {__index = first})
    end
    return list
end

-- The same for a file whose program says that there are `count` pages; its own pages where it has
-- directories for them. `part`: those that there are, where the file is truncated.
local function pages_behind(file, pages, count, who, part)
    local first = pages[1]
    if #pages ~= 1 or count <= 1 or first.problem or first.compression ~= 1 then
        return pages
    end
    local page_bytes = first.page_bytes
    local there = (file.bytes - first.offsets[1]) // page_bytes
    local fit = math.min(count, math.max(1, there))
    if not file.free(first.offsets[1], first.offsets[1] + fit * page_bytes) then
        return pages -- one page, and what describes it
    elseif there < count and not part then
        refusal.truncated(file.name, "%s says that it has %d images, of which %d are in its %d "
            .. "bytes", who, count, there, file.bytes)
    end
    return behind_one_another(first, fit, page_bytes)
end

-- The planes of pages that follow one another, of which some may be missing at the end.
local function in_order(file, meta, pages, warn)
    local total = order.count(meta)
    if #pages == total then
        meta.planes = pages
        return meta
    end
    local planes, frames = nil, 0
    if #pages < total and order.slowest(meta) == "T" then
        planes, frames = order.complete(meta, pages)
    end
    if not planes then
        refusal.pages(file.name, "the description says %s, and the file has %s",
            refusal.counts(meta), counted(#pages, "page"))
    end
    warn("%s: %d of %d times are complete, and these are read: the file has %d of %d pages",
        file.name, frames, meta.frames, #pages, total)
    meta.frames, meta.planes = frames, planes
    return meta
end

local function of_imagej(text, file, options, warn)
    local meta = descriptions.imagej(text)
    if not meta or options.meaning == false then
        return meta
    end
    local pages = pages_behind(file, file.pages, meta.images, "ImageJ")
    if not meta.stated then
        meta.slices = #pages
    end
    return in_order(file, meta, pages, warn)
end

-- ---------------------------------------------------------------------------------------------
-- tifffile

-- The axes of pages that tifffile's text says, those of one element left out.
local function shaped_axes(said)
    local list = {}
    for i = 1, #said.shape - 2 do
        local letter = said.axes and said.axes:sub(i, i) or "Q"
        list[#list + 1] = said.shape[i] > 1 and {letter, said.shape[i]} or nil
    end
    -- A sequence without a name is a stack.
    if #list == 1 and (list[1][1] == "Q" or list[1][1] == "I") then
        list[1][1] = "Z"
    end
    return list
end

-- The pages of the series that begins with a page, and what its text says.
local function series_of(file, options)
    local starts = {}
    for i, page in ipairs(file.pages) do
        local text = i == 1 and file.descriptions or {page.shaped}
        for _, each in ipairs(text) do
            local said = descriptions.shaped(each)
            starts[#starts + 1] = said and {at = i, said = said} or nil
        end
    end
    if #starts > 1 and not options.image then
        refusal.image(file.name, #starts, "series of pages")
    end
    local start = starts[options.image or 1]
        or refusal.image(file.name, #starts, "series of pages", options.image)
    local after = starts[(options.image or 1) + 1]
    return start.said, table.move(file.pages, start.at, after and after.at - 1 or #file.pages, 1,
        {})
end

local function of_shaped(text, file, options, warn)
    if not descriptions.shaped(text) or options.meaning == false then
        return nil
    end
    local said, pages = series_of(file, options)
    if pages[1].problem then
        error(pages[1].problem, 0)
    end
    local shape, first = table.concat(said.shape, " x "), pages[1]
    local list = shaped_axes(said)
    if said.shape[#said.shape] ~= first.columns
        or said.shape[#said.shape - 1] ~= first.rows then
        refusal.pages(file.name, "the description says %s%s, and a page is %d x %d", shape,
            said.axes and " (" .. said.axes .. ")" or "", first.rows, first.columns)
    end
    local meta = order.along(list) or refusal.pages(file.name, "the description says %s%s", shape,
        said.axes and (" with the axes %s, of which channels (C), slices (Z) and times (T) are "
        .. "read"):format(said.axes) or " and not what the axes are")
    meta.kind, meta.text = "shaped", text
    pages = said.truncated and pages_behind(file, pages, order.count(meta), "tifffile") or pages
    return in_order(file, meta, pages, warn)
end

-- ---------------------------------------------------------------------------------------------
-- MetaMorph

local function of_metamorph(file, options, warn)
    local planes = file.metamorph
    if planes and planes.old and #file.pages == 1 and options.meaning ~= false then
        refusal.pages(file.name, "it is of MetaMorph before version 2.5, which says %d planes "
            .. "(UIC1) and not where they are", planes.old)
    elseif not planes or planes.count < 2 then
        return nil
    end
    local times = not planes.heights and planes.times
    local meta = {kind = "metamorph", channels = 1, slices = times and 1 or planes.count,
        frames = times and planes.count or 1, order = "ZTC",
        voxel = {pixel = planes.voxel.pixel, row = planes.voxel.row,
            step = (options.meaning == false or not times) and planes.voxel.step or nil}}
    if options.meaning == false then
        return meta
    elseif planes.wavelengths > 1 then
        refusal.pages(file.name, "MetaMorph says %d wavelengths of its %d planes (UIC3), and not "
            .. "which planes are channels", planes.wavelengths, planes.count)
    end
    return in_order(file, meta, pages_behind(file, {file.pages[1]}, planes.count, "MetaMorph"),
        warn)
end

-- ---------------------------------------------------------------------------------------------
-- What is typed

-- Metadata of pages by the option axes: letters from slow to fast, each with a count or without.
local function typed_axes(file, options, pages, told)
    local list, known, open, seen = {}, 1, nil, ""
    local text = options.axes:upper()
    for letter, digits in text:gmatch "([A-Z])(%d*)" do
        local extent = math.tointeger(tonumber(digits))
        if not order.name(letter) or seen:find(letter, 1, true) or extent == 0 then
            seen = nil
            break
        end
        seen = seen .. letter
        list[#list + 1] = {letter, extent}
    end
    if not seen or seen == "" or text:gsub("[A-Z]%d*", "") ~= "" then
        fail("argument", "tiff", "axes", "axes is '%s': give letters from slow to fast, Z, C and "
            .. "T, such as ZC, and counts where the file says none, as in ZC2", options.axes)
    end
    local unknown = 0
    for _, axis in ipairs(list) do
        unknown = unknown + (axis[2] and 0 or 1)
    end
    for _, axis in ipairs(list) do -- counts that a text says
        if unknown > 1 and not axis[2] and told then
            axis[2] = told[order.name(axis[1])]
        end
        known, open = known * (axis[2] or 1), not axis[2] and axis or open
        unknown = axis[2] and unknown or unknown
    end
    if unknown > 1 and not told then
        fail("argument", "tiff", "axes", "%s: axes is '%s', and the file does not say how many "
            .. "there are of each: give the counts but one, as in %s", file.name, options.axes,
            (text:gsub("%d", ""):gsub("%a", "%02"):gsub("^(%a)2", "%1")))
    elseif open and #pages % known == 0 then
        open[2] = #pages // known
    end
    local meta = order.along(list)
    if open and not open[2] or order.count(meta) ~= #pages then
        fail("argument", "tiff", "axes", "%s: axes is '%s', but there are %d pages, which is "
            .. "not %s", file.name, options.axes, #pages,
            open and not open[2] and "a multiple of " .. known
            or table.concat(tables.mapped(list, function(axis)
                return ("%d (%s)"):format(axis[2], axis[1])
            end), " x "))
    end
    return meta
end

-- The pages by the option pages.
local function typed_pages(file, pages, range)
    local first, last = range[1], range[2]
    if first < 1 or last < first or last > #pages then
        fail("argument", "tiff", "pages", "%s: pages is %d:%d, and the file has pages 1 to %d",
            file.name, first, last, #pages)
    end
    return table.move(pages, first, last, 1, {})
end

-- The pages of a file by their size and type, the first ones first.
local function groups_of(pages)
    local list, by = {}, {}
    for _, page in ipairs(pages) do
        local key = page.problem and "?" or ("%d %d %s"):format(page.rows, page.columns, page.dtype)
        if not by[key] then
            list[#list + 1] = {}
            by[key] = list[#list]
        end
        table.insert(by[key], page)
    end
    return list
end

-- Pages of which nothing is said.
local function untold(file, options)
    local groups = groups_of(file.pages)
    if options.image and not groups[options.image] then
        fail("argument", "tiff", "image", "%s: there is no image %d: the file has pages of %d "
            .. "sizes", file.name, options.image, #groups)
    elseif #groups > 1 and not options.image then
        for _, page in ipairs(file.pages) do
            if page.problem then
                error(page.problem, 0)
            end
        end
        fail("unsupported", "tiff", "image", "%s: the pages differ in size or type: choose those "
            .. "of one size with the option image (1 to %d), or with the option pages", file.name,
            #groups)
    end
    local pages = groups[options.image or 1]
    local size = (file.metamorph or {}).voxel or {}
    return {planes = pages, voxel = {pixel = size.pixel, row = size.row},
        channels = 1, slices = #pages, frames = 1, order = "ZCT"}
end

-- ---------------------------------------------------------------------------------------------
-- All texts

-- What the texts of a file say, the first one that is understood; and all of them for the size of
-- a voxel.
local function said_by_texts(file, options, warn)
    local found
    for _, text in ipairs(file.descriptions) do
        found = found or ome_xml.maybe(text) and ome.read(text, file, options, warn) or nil
    end
    found = found or programs.first(file, options, warn)
    for _, read in ipairs {of_imagej, of_shaped} do
        for _, text in ipairs(file.descriptions) do
            found = found or read(text, file, options, warn)
        end
    end
    found = found or of_metamorph(file, options, warn)
    if found then
        return found
    end
    found = programs.last(file, options)
    return found and options.meaning ~= false
        and in_order(file, found, found.pages or file.pages, warn) or found
end

-- Raises why no page is read where none is, whatever their meaning.
local function check_readable(pages)
    for _, page in ipairs(pages) do
        if not page.problem or page.apart then
            return
        end
    end
    error(pages[1].problem, 0)
end

local function check_pages(file, planes)
    local first = planes[1]
    for _, page in ipairs(planes) do
        if page.problem then
            error(page.problem, 0)
        elseif page.dtype ~= first.dtype or page.rows ~= first.rows
            or page.columns ~= first.columns then
            refusal.pages(file.name, "the pages of one image differ in size or type")
        end
    end
end

--- The metadata of a file and `planes`: its pages in the order that they say (tiff.open). `file`:
-- {name, bytes, pages, directories, descriptions, metamorph, read}.
function meaning.of(file, options)
    local meta
    local warnings = {}
    local function warn(format, ...)
        warnings[#warnings + 1] = format:format(...)
    end
    if options.axes or options.pages then
        local ok, told = pcall(said_by_texts, file, {meaning = false, image = options.image})
        told = ok and told or nil
        local pages, part = file.pages, options.pages ~= nil
        if told and told.kind == "imagej" then
            pages = pages_behind(file, pages, told.images, "ImageJ", part)
        elseif file.metamorph then
            pages = pages_behind(file, pages, file.metamorph.count, "MetaMorph", part)
        end
        pages = part and typed_pages(file, pages, options.pages) or pages
        local typed = options.axes and typed_axes(file, options, pages, told)
            or {channels = 1, slices = #pages, frames = 1, order = "ZCT"}
        typed.planes = pages
        meta = setmetatable(typed, {__index = told})
        meta.kind, meta.text = told and told.kind, told and told.text
    else
        check_readable(file.pages)
        meta = said_by_texts(file, options, warn) or untold(file, options)
    end
    meta.warnings = warnings
    check_pages(file, meta.planes)
    return meta
end

--- What a text says, whatever the pages are: metadata, empty where it is not understood.
function meaning.said(text)
    return said_by_texts({name = "text", pages = {}, directories = {}, descriptions = {text}},
        {meaning = false}) or {}
end

--- The pages of a channel and time, both 0-based.
function meaning.slices(meta, c, t)
    local list = {}
    for z = 0, meta.slices - 1 do
        list[z + 1] = meta.planes[order.number(meta, c, z, t) + 1]
    end
    return list
end

return meaning
