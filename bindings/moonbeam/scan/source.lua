--- The files of a scan and the values in them. `s` is a scan that is being opened: its `file`, all
-- `files`, which it closes, and `access`, the options of h5.open.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local source = {}

--- Opens a file of the scan.
function source.open(s, path)
    local file, err = core.h5.open(path, s.access)
    if not file then
        error(err, 0)
    end
    s.files[#s.files + 1] = file
    return file
end

-- The dataset of a file whose own name is near that of a path or contains it, or nil.
local function near_path(file, path)
    local asked, paths, names = path:match "[^/]*$", {}, {}
    for _, object in ipairs(file:walk() or {}) do
        local name = object.kind == "dataset" and object.path:match "[^/]*$"
        if name then
            names[#names + 1] = name
            paths[name] = paths[name] or object.path
        end
    end
    local near = core.error.nearest(asked, names)
    for _, name in ipairs(near and {} or names) do
        near = near or #asked >= 3 and name:find(asked, 1, true) and name
    end
    return near and paths[near]
end

--- Raises that a file has no dataset of this name, which `option` gave (nil: nobody), with the
-- nearest name that it has. `remedy` ends the message.
function source.refuse(file, name, option, remedy)
    local near = near_path(file, name)
    fail("io", "scan.open", option, "there is no '%s' in '%s'%s%s", name, file.path,
        remedy or "", near and ("; did you mean '%s'?"):format(near) or "")
end

--- The file and the path in it that a name means: "/path" in the scan's file, "FILE:/path"
-- elsewhere. Raises where there is nothing; `option` gave the name, `remedy` ends the message.
function source.find(s, name, option, remedy)
    local file, other, path = s.file, name:match("^(.+):(/.*)$")
    if other and not (file and file:exists(name)) then
        file, name = source.open(s, other), path
    end
    if not file:exists(name) then
        source.refuse(file, name, option, remedy)
    end
    return file, name
end

--- What is not found may have been lost: where the index of a group is damaged, its members are
-- still listed, and the listing fails at those that cannot be opened.
function source.confirm_absence(s)
    s.walked = s.walked or s.file:walk("/") ~= nil
end

--- Text of a file as it may stand in a message: no longer than a unit or a name can be.
function source.shown(text)
    return #text > 40 and text:sub(1, 40) .. "..." or text
end

--- The @units of an object as lower-case text, or nil where there is none.
function source.units(file, path)
    local units = file:attribute(path, "units")
    if type(units) == "table" and #units == 1 then
        units = units[1]
    end
    if units ~= nil and type(units) ~= "string" then
        fail("io", "scan.open", nil, "the attribute units of '%s' must be one text, not %s", path,
            type(units) == "table" and ("a list of %d"):format(#units) or "the number " .. units)
    end
    units = (units or ""):match("^%s*(.-)%s*$"):lower()
    return units ~= "" and units or nil
end

--- A number, from a scalar or a list of one; nil where something else is stored. What cannot be
-- read is an error: damage is not absence.
function source.number(file, path)
    local value = file:value(path)
    while type(value) == "table" and #value == 1 do
        value = value[1]
    end
    return type(value) == "number" and value or nil
end

local function flatten(value, into)
    if type(value) ~= "table" then
        into[#into + 1] = value
        return into
    end
    for _, part in ipairs(value) do
        flatten(part, into)
    end
    return into
end

--- The elements of a dataset as one list. Where there are more than `most`, they are not read:
-- {count =}.
function source.numbers(file, path, most)
    local count = tables.product(file:dataset(path).shape)
    return count <= most and flatten(file:value(path), {}) or {count = count}
end

return source
