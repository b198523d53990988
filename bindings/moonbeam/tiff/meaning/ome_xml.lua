--- OME-XML as a tree: read by libexpat, and the elements in it by their names.
--
-- An element is {name (without its prefix), full_name, attributes = {name = value}, order (of the
-- attributes: their names), ...}; its list has the elements and texts in it.

local core = require "moonbeam.core"

local ome_xml = {}

-- Bytes that are no UTF-8 where the text says that they are: some programs write the letters of
-- Western Europe so.
local function as_utf8(text)
    if text:find "^\xfe\xff" or text:find "^\xff\xfe" or utf8.len(text)
        or not text:find "^%s*<%?xml[^>]*[Uu][Tt][Ff]%-8" and text:find "^%s*<%?xml[^>]*encoding"
        then
        return text
    end
    return (text:gsub("[\x80-\xff]", function(byte)
        return utf8.char(byte:byte())
    end))
end

--- May a text be OME-XML? (Whether it is, only read tells.)
function ome_xml.maybe(text)
    return text:find "^%s*<" ~= nil or text:find "^\xef\xbb\xbf%s*<" ~= nil
end

--- The root of a text whose root is OME; nil where it is another, nil and why where the text is no
-- XML.
function ome_xml.read(text)
    local ok, found = pcall(core.xml.read, as_utf8(text))
    if not ok then
        return nil, type(found) == "table" and found.message or tostring(found)
    end
    return found.name == "OME" and found or nil
end

--- A function that gives the elements with this name in an element, one after another.
function ome_xml.each(element, name)
    local at = 0
    return function()
        repeat
            at = at + 1
        until element[at] == nil or type(element[at]) == "table" and element[at].name == name
        return element[at]
    end
end

--- The first element with this name in an element, or nil.
function ome_xml.first(element, name)
    return ome_xml.each(element, name)()
end

--- The text in an element.
function ome_xml.text(element)
    local parts = {}
    for _, part in ipairs(element) do
        parts[#parts + 1] = type(part) == "string" and part or nil
    end
    return table.concat(parts):match "^%s*(.-)%s*$"
end

--- An attribute that is a whole number from 0, or nil.
function ome_xml.whole(element, name)
    local value = math.tointeger(tonumber(element.attributes[name]))
    return value and value >= 0 and value or nil
end

--- Sets an attribute, or removes it (nil).
function ome_xml.set(element, name, value)
    if value ~= nil and element.attributes[name] == nil then
        table.insert(element.order, name)
    end
    element.attributes[name] = value ~= nil and tostring(value) or nil
end

--- A new element: attributes as {{name, value}, ...}.
function ome_xml.new(full_name, attributes, ...)
    local made = {name = full_name:match "[^:]*$", full_name = full_name, attributes = {},
        order = {}, ...}
    for _, each in ipairs(attributes) do
        ome_xml.set(made, each[1], each[2])
    end
    return made
end

local MARKS <const> = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
    ["\n"] = "&#10;", ["\r"] = "&#13;", ["\t"] = "&#9;"}

--- What XML may hold of a text: UTF-8 without control characters, marked up.
function ome_xml.marked(text, in_attribute)
    if not utf8.len(text) then
        text = text:gsub("[\128-\255]", "?")
    end
    return (text:gsub("[%z\1-\8\11\12\14-\31\127]", "?"):gsub(in_attribute and '[&<>"\n\r\t]'
        or '[&<>"]', MARKS))
end

local function write(parts, element)
    parts[#parts + 1] = "<" .. element.full_name
    for _, name in ipairs(element.order) do
        local value = element.attributes[name]
        if value then
            parts[#parts + 1] = (' %s="%s"'):format(name, ome_xml.marked(value, true))
        end
    end
    parts[#parts + 1] = #element > 0 and ">" or "/>"
    for _, part in ipairs(element) do
        if type(part) == "table" then
            write(parts, part)
        else
            parts[#parts + 1] = ome_xml.marked(part)
        end
    end
    parts[#parts + 1] = #element > 0 and "</" .. element.full_name .. ">" or nil
end

--- The text of a tree.
function ome_xml.compose(root)
    local parts = {'<?xml version="1.0" encoding="UTF-8"?>\n'}
    write(parts, root)
    return table.concat(parts)
end

return ome_xml
