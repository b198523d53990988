--- What Micro-Manager's files say of their pages beside texts: the map in a file that it closed,
-- and NDTiff.index, which is beside the files of an NDTiff data set.

local core = require "moonbeam.core"
local file_set = require "moonbeam.tiff.meaning.file_set"
local input_file = require "moonbeam.internal.files.input_file"
local order = require "moonbeam.tiff.meaning.order"
local read_json = require "moonbeam.internal.json_reader"
local refusal = require "moonbeam.tiff.meaning.refusal"

local micromanager = {}

local MAP_HEAD <const>, MAP <const>, COMMENTS <const> = 54773648, 3453623, 99384722
local NDTIFF <const>, INDEX <const> = 483729, "NDTiff.index"
local SUMMARY <const> = 2355492
local INDEX_BYTES <const> = 256 << 20

-- Two whole numbers at an offset; nil beyond the end.
local function two(file, at)
    if at < 0 or at + 8 > file.bytes then
        return nil
    end
    return string.unpack(file.byte_order .. "I4I4", file.part(at, 8))
end

-- An image of planes at places, {C, Z, T, R (position), page}, of the position that the option
-- image says; `least`: counts that the file says.
local function composed(set, places, kind, options, warn, least)
    local most = {C = 0, Z = 0, T = 0, R = 0}
    for _, place in ipairs(places) do
        for letter, value in pairs(most) do
            most[letter] = math.max(value, place[letter])
        end
    end
    if most.R > 0 and not options.image and options.meaning ~= false then
        refusal.image(set.name, most.R + 1, "positions")
    elseif (options.image or 1) > most.R + 1 then
        refusal.image(set.name, most.R + 1, "positions", options.image)
    end
    local meta = order.along {{"T", math.max(most.T + 1, least.T)},
        {"C", math.max(most.C + 1, least.C)}, {"Z", math.max(most.Z + 1, least.Z)}}
    meta.kind, meta.images = kind, most.R + 1
    if options.meaning == false then
        return meta
    end
    local planes = {}
    for _, place in ipairs(places) do
        if place.R == (options.image or 1) - 1 then
            local number = order.number(meta, place.C, place.Z, place.T) + 1
            if planes[number] and planes[number] ~= place.page then
                refusal.pages(set.name, "%s names several pages for plane %d", kind, number)
            end
            planes[number] = place.page
        end
    end
    meta.planes = file_set.completed(set, meta, planes, warn)
    return meta
end

-- ---------------------------------------------------------------------------------------------
-- The map of a file

-- The counts that the summary before the first directory says.
local function summary_counts(file)
    local counts = {C = 1, Z = 1, T = 1}
    local head, bytes = two(file, 32)
    local said = head == SUMMARY and bytes <= file.bytes - 40 and read_json(file.part(40, bytes))
    for letter, name in pairs {C = "Channels", Z = "Slices", T = "Frames"} do
        local count = type(said) == "table" and math.tointeger(tonumber(said[name]))
        counts[letter] = count and count > 0 and count < 1 << 24 and count or 1
    end
    return counts
end

--- What the map says of a file that Micro-Manager wrote and closed; nil for others.
function micromanager.map(file, options, warn)
    local head, at = two(file, 8)
    if head ~= MAP_HEAD or two(file, 24) ~= COMMENTS then
        return nil
    end
    local mark, count = two(file, at)
    if mark ~= MAP or count < 1 or count > (file.bytes - at - 8) // 20 then
        return nil
    end
    local by_offset, places = {}, {}
    for _, page in ipairs(file.directories) do
        by_offset[page.directory_at] = page
    end
    local text = file.part(at + 8, 20 * count)
    for i = 0, count - 1 do
        local c, z, t, r, offset = string.unpack(file.byte_order .. "I4I4I4I4I4", text, 20 * i + 1)
        local page = by_offset[offset]
        if math.max(c, z, t, r) >= 1 << 24 then
            return nil
        elseif page then
            places[#places + 1] = {C = c, Z = z, T = t, R = r, page = page}
        end
    end
    if #places == 0 then
        return nil
    end
    return composed(file_set.new(file), places, "Micro-Manager's map", options, warn,
        summary_counts(file))
end

-- ---------------------------------------------------------------------------------------------
-- NDTiff

-- The axes of the index's entries by letters; a word counts in the order of first appearance, a
-- number from the least. Refuses other axes of several values.
local LETTERS <const> = {channel = "C", z = "Z", time = "T", position = "R"}

local function numbered(set, entries)
    local values, seen = {}, {}
    for _, entry in ipairs(entries) do
        for name, value in pairs(entry.axes) do
            values[name], seen[name] = values[name] or {}, seen[name] or {}
            if not seen[name][value] then
                seen[name][value] = true
                table.insert(values[name], value)
            end
        end
    end
    for name, list in pairs(values) do
        if not LETTERS[name] and #list > 1 then
            refusal.pages(set.name, "%s has %d values of the axis \"%s\", and channels, slices, "
                .. "times and positions are read", INDEX, #list, name:sub(1, 20))
        end
    end
    return function(entry, name)
        local value, list = entry.axes[name], values[name]
        if not list then
            return 0
        elseif value == nil then
            refusal.pages(set.name, "%s has images without the axis \"%s\" and others with it",
                INDEX, name)
        end
        if math.type(value) == "integer" then
            local least = math.huge
            for _, each in ipairs(list) do
                least = math.min(least, math.type(each) == "integer" and each or math.huge)
            end
            return value - least
        end
        for i, each in ipairs(list) do
            if each == value then
                return i - 1
            end
        end
    end
end

local function entries_of(set, text)
    local entries, at = {}, 1
    while at <= #text do
        local ok, axes, name, offset, columns, rows, after = pcall(string.unpack,
            "<s4s4I4i4i4i4i4I4i4i4", text, at)
        if ok then
            after = at + 8 + #axes + #name + 32
        end
        local said = ok and read_json(axes)
        if type(said) ~= "table" then
            break -- the last one of a run that was aborted
        end
        entries[#entries + 1] = {axes = said, file = name, offset = offset, rows = rows,
            columns = columns}
        at = after
    end
    if #entries == 0 then
        refusal.pages(set.name, "%s, which says what the pages are, is damaged", INDEX)
    end
    return entries
end

--- What NDTiff.index says of the pages of a data set; nil where the file is not of one.
function micromanager.ndtiff(file, options, warn)
    if two(file, 8) ~= NDTIFF then
        return nil
    end
    local set = file_set.new(file)
    local path = file_set.beside(file.name, INDEX)
    local facts = core.system.stat(path)
    local opened <close> = facts and facts.kind ~= "folder" and input_file.open(path) or nil
    if not opened then
        if #file.pages == 1 then
            return nil
        end
        refusal.pages(file.name, "it is of an NDTiff data set, and %s, which says what the pages "
            .. "are, is not there", INDEX)
    end
    local entries, by_offset, places = entries_of(set, opened:read(INDEX_BYTES) or ""), {}, {}
    local number = numbered(set, entries)
    for _, entry in ipairs(entries) do
        local pages = options.meaning ~= false and file_set.directories(set, entry.file) or {}
        if not by_offset[entry.file] then
            local offsets = {}
            for _, page in ipairs(pages) do
                offsets[not page.problem and page.offsets[1] or {}] = page
            end
            by_offset[entry.file] = offsets
        end
        local place = {page = by_offset[entry.file][entry.offset]}
        for name, letter in pairs(LETTERS) do
            place[letter] = number(entry, name)
        end
        if math.max(place.C, place.Z, place.T, place.R) >= 1 << 24 then
            refusal.pages(file.name, "%s names an image beyond all counts", INDEX)
        end
        places[#places + 1] = place
    end
    return composed(set, places, "NDTiff", options, warn, {C = 1, Z = 1, T = 1})
end

return micromanager
