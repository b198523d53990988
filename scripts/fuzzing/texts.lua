--- What describes images: texts of TIFF files, their companions and indices, and documents of
-- OME-Zarr, damaged as texts are: numbers, elements and lines, not bytes alone.
--
-- A seed is {name, kind = "texts", extension, parts (list of {name, text, binary, head (how many of
-- its bytes are text)}), open (the name of the part that is opened, or nil: the folder), damaged
-- (the names of the parts that mutants change, as a set; nil: all)}.

local mutate = require "scripts.fuzzing.mutate"
local page_forms = require "spec.support.page_forms"

local texts = {}

local function one_of(list)
    return list[math.random(#list)]
end

-- ---- texts ----

local NUMBERS <const> = {"0", "-1", "1", "2", "2.5", "", "abc", "255", "65536", "2147483647",
    "2147483648", "4294967295", "4294967296", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "1e308", "1e-320", "1e999", "nan", "inf", "0x10",
    ("9"):rep(400), "1 2", "\u{b5}m", "\u{661}"}
local XML <const> = {"<!-- -->", "<![CDATA[ <Pixels SizeC='7'/> ]]>", "&amp;", "&#0;", "&#x110000;",
    "&#xd800;", "&lol;", "<!DOCTYPE a [<!ENTITY lol 'lol'>]>", "<?xml version='1.1'?>", "\xff\xfe",
    "\xc3\x28", ("<a>"):rep(200), ("x"):rep(5000), "</OME>", "<OME>", "]]>", "\0", "'", '"', "{",
    "[", "}", "]", ",", ":", "\\u0000", "\\ud800", "\n", ("["):rep(300), "null", "true"}

-- All matches of one of these patterns as {first, last}.
local TOKENS <const> = {"%-?%d+%.?%d*", "<[^<>]*>", '"[^"\n]*"', "[^\n]+\n", "%s[%w:]+=\"[^\"]*\"",
    "%b{}", "%b[]", "%b<>"}

local function token(text)
    local pattern, found, at = one_of(TOKENS), {}, 1
    while #found < 500 do
        local first, last = text:find(pattern, at)
        if not first then
            break
        end
        found[#found + 1], at = {first, last}, last + 1
    end
    if #found == 0 then
        return math.random(#text + 1), math.random(0, #text)
    end
    return table.unpack(one_of(found))
end

local WAYS <const> = {
    function(text) -- another number
        local found = {}
        for first, last in text:gmatch "()%-?%d+%.?%d*()" do
            found[#found + 1] = {first, last}
        end
        if #found == 0 then
            return text
        end
        local place = one_of(found)
        return text:sub(1, place[1] - 1) .. one_of(NUMBERS) .. text:sub(place[2])
    end,
    function(text) -- left out
        local first, last = token(text)
        return text:sub(1, first - 1) .. text:sub(last + 1)
    end,
    function(text) -- twice
        local first, last = token(text)
        return text:sub(1, last) .. text:sub(first, last) .. text:sub(last + 1)
    end,
    function(text) -- in place of another
        local first, last = token(text)
        local from, to = token(text)
        return text:sub(1, first - 1) .. text:sub(from, to) .. text:sub(last + 1)
    end,
    function(text) -- what should not be there
        local at = math.random(#text + 1)
        return text:sub(1, at - 1) .. one_of(XML) .. text:sub(at)
    end,
    function(text) -- cut off
        return text:sub(1, math.random(#text + 1) - 1)
    end,
    function(text) -- other letters
        local first, last = token(text)
        local part = text:sub(first, last)
        return text:sub(1, first - 1) .. one_of {part:upper(), part:lower(), part:reverse()}
            .. text:sub(last + 1)
    end,
}
local WEIGHTS <const> = {1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7}

--- A damaged copy of a text: one to three changes.
function texts.damaged(text)
    for _ = 1, math.random(3) do
        text = WAYS[one_of(WEIGHTS)](text)
    end
    return text
end

-- ---- files ----

-- A TIFF file with another description in its first directory, behind everything; nil where it has
-- none.
local function described(bytes, change)
    local order = ({II = "<", MM = ">"})[bytes:sub(1, 2)]
    if not order then
        return nil
    end
    local big = string.unpack(order .. "I2", bytes, 3) == 43
    local word, size = order .. (big and "I8" or "I4"), big and 8 or 4
    local at = string.unpack(word, bytes, big and 9 or 5)
    local count = string.unpack(order .. (big and "I8" or "I2"), bytes, at + 1)
    for i = 0, count - 1 do
        local entry = at + (big and 8 or 2) + i * (4 + 2 * size)
        local tag, _, length, place = string.unpack(order .. "I2I2" .. word:sub(2) .. word:sub(2),
            bytes, entry + 1)
        if tag == 270 and length > size then
            local text = change(bytes:sub(place + 1, place + length - 1)) .. ("\0"):rep(9)
            return bytes:sub(1, entry + 4) .. string.pack(word, #text) .. string.pack(word, #bytes)
                .. bytes:sub(entry + 5 + 2 * size) .. text
        end
    end
    return nil
end

-- The number of a part that may be damaged: any one, or one of seed.damaged, a set of names.
local function any_part(seed)
    local list = {}
    for i, part in ipairs(seed.parts) do
        list[#list + 1] = (not seed.damaged or seed.damaged[part.name]) and i or nil
    end
    return one_of(list)
end

--- What changes in a mutant of a seed: {[number of a part] = its text; false: it is missing}.
function texts.damaged_parts(seed)
    local at = any_part(seed)
    local part, way = seed.parts[at], math.random(20)
    if way == 1 and part.name ~= seed.open then
        return {[at] = false}
    elseif part.head and way > 6 then -- a text, and bytes behind it
        return {[at] = texts.damaged(part.text:sub(1, part.head))
            .. part.text:sub(part.head + 1)}
    elseif part.binary then
        return {[at] = way > 6 and described(part.text, texts.damaged)
            or mutate.structure(part.text, {})}
    end
    return {[at] = way > 3 and texts.damaged(part.text) or mutate.structure(part.text, {})}
end

-- ---- seeds ----

-- An OME-Zarr image of format 2.
local function zarr()
    local parts = {{name = ".zgroup", text = '{"zarr_format": 2}'},
        {name = ".zattrs", text = [[{"multiscales": [{"version": "0.4", "name": "x", "axes": [
{"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"},
{"name": "z", "type": "space", "unit": "micrometer"},
{"name": "y", "type": "space", "unit": "micrometer"},
{"name": "x", "type": "space", "unit": "nanometer"}], "datasets": [{"path": "0",
"coordinateTransformations": [{"type": "scale", "scale": [2.5, 1.0, 0.3, 0.13, 130.0]},
{"type": "translation", "translation": [0.0, 0.0, 1.0, 2.0, 3.0]}]}, {"path": "1",
"coordinateTransformations": [{"type": "scale", "scale": [2.5, 1.0, 0.3, 0.26, 260.0]}]}],
"coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 1.0, 1.0, 1.0]}]}],
"omero": {"channels": [{"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 9,
"min": 0, "max": 255}}, {"label": "\u00b5", "color": "00FF00"}], "rdefs": {"model": "color"}}}]]}}
    for level, extents in ipairs {{3, 4}, {2, 2}} do
        parts[#parts + 1] = {name = ("%d/.zarray"):format(level - 1), text =
            ('{"zarr_format": 2, "shape": [2, 2, 3, %d, %d], "chunks": [1, 2, 3, %d, %d], '
            .. '"dtype": "|u1", "compressor": null, "fill_value": 0, "order": "C", '
            .. '"filters": null, "dimension_separator": "."}'):format(extents[1], extents[2],
            extents[1], extents[2])}
        for t = 0, 1 do
            parts[#parts + 1] = {name = ("%d/%d.0.0.0.0"):format(level - 1, t), binary = true,
                text = ("\7"):rep(6 * extents[1] * extents[2])}
        end
    end
    return {name = "OME-Zarr", kind = "texts", extension = "zarr", parts = parts, values = {},
        protected = {}}
end

--- The seeds: one of each form of pages (spec/support/page_forms.lua), and OME-Zarr.
function texts.seeds()
    local list = {zarr()}
    for i, form in ipairs(page_forms.NAMES) do
        local made = page_forms.made(page_forms.random(100 + i), form)
        local parts = {}
        for name, text in pairs(made.files) do
            parts[#parts + 1] = {name = name, text = text, binary = name:find "%.tif$" ~= nil}
        end
        table.sort(parts, function(a, b) return a.name < b.name end)
        list[#list + 1] = {name = "pages, " .. form, kind = "texts", extension = "pages",
            open = made.name, parts = parts, values = {}, protected = {}}
    end
    return list
end

return texts
