--- Lists of numbers that options give: one function reads them all. A list is typed
-- ("0,0,180,180"), or it is a text file (lists/text.lua), of which "FILE:2" is the second column, a
-- file of NumPy (.npy), or a dataset: "/path" of the scan, "FILE:/path" of another file.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local images = require "moonbeam.images"
local input_file = require "moonbeam.internal.files.input_file"
local source = require "moonbeam.scan.source"
local text = require "moonbeam.scan.lists.text"

local lists = {}

--- The forms of a list, for the texts of options.
lists.FORMS = "numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a "
    .. "dataset (/PATH or FILE:/PATH)"

-- Bytes of a text of numbers beyond which it is none.
local MOST_TEXT <const> = 64 << 20

-- Pipes that were read: a second reading would find nothing.
local piped = {}

--- The numbers of a typed list, or nil where a text is something else, such as a name.
function lists.typed(value)
    local list = {}
    for word in value:gmatch "[^%s,;]+" do
        local number = text.number(word)
        if not number then
            return nil
        end
        list[#list + 1] = number
    end
    return #list > 0 and list or nil
end

local function wrong(facts, code, ...)
    return fail(code, facts.op, facts.option, ...)
end

-- All of a file, no more than MOST_TEXT; nil where it has more.
local function content_of(name, facts)
    local file <close>, problem = input_file.open(name)
    if not file then
        wrong(facts, "io", "cannot read the %s: %s", facts.what, problem)
    end
    local content = file:read(MOST_TEXT) or ""
    return not file:read(1) and content or nil
end

-- The text of an ordinary file, or of a pipe that a shell has opened: a device, or a pipe that
-- nobody writes, could go on for ever.
local function read_text(name, stat, facts)
    if stat.kind == "folder" then
        wrong(facts, "argument", "'%s' is a folder, not a list of %s", name, facts.what)
    elseif stat.kind ~= "file" and not input_file.is_piped(name) then
        wrong(facts, "argument", "'%s' is not an ordinary file; copy it to one", name)
    end
    local content = piped[name] or content_of(name, facts)
    piped[name] = stat.kind ~= "file" and content or nil
    if not content then
        wrong(facts, "argument", "'%s' has more than %s, which no list of %s has", name,
            core.device.format_bytes(MOST_TEXT), facts.what)
    elseif content:sub(1, 8) == "\137HDF\r\n\26\n" then
        wrong(facts, "argument", "'%s' is an HDF5 file: name its dataset, %s:/PATH", name, name)
    elseif content:find "^\255\254" or content:find "^\254\255" then
        wrong(facts, "argument", "'%s' is text in UTF-16: save it as UTF-8", name)
    elseif content:find("\0", 1, true) then
        wrong(facts, "argument", "'%s' is not a text of numbers: it has bytes of 0", name)
    end
    return content
end

-- The name of a file and the column of FILE:2, or nil where there is no such file.
local function file_of(value)
    local stat = core.system.stat(value)
    if stat then
        return value, nil, stat
    end
    local name, column = value:match "^(.+):(%d+)$"
    stat = name and core.system.stat(name)
    if stat then
        return name, math.tointeger(tonumber(column)), stat
    end
end

--- The numbers of a list that is typed or in a file of its own; nil where it is neither, as the
-- name of a dataset. `facts`: op, option (what gave it), what (of the numbers, such as "angles"),
-- fits (a function: may it have so many?), flat (lists/text.lua), and files, a list to which the
-- file is added, or nil.
function lists.written(value, facts)
    local typed = lists.typed(value)
    if typed then
        return typed
    end
    local name, column, stat = file_of(value)
    if not name then
        return nil
    elseif facts.files then
        facts.files[#facts.files + 1] = {path = name, close = function() end}
    end
    if stat.kind == "file" and file_name.extension(name) == "npy" then
        local array <close> = images.read(name, "host")
        local flat <close> = array:reshape(array.elements)
        return flat:to_table()
    end
    return text.numbers(read_text(name, stat, facts), {name = name, column = column,
        fits = facts.fits, flat = facts.flat, wrong = function(...)
            wrong(facts, "argument", ...)
        end})
end

--- The numbers of a list that an option of a scan gives as a text, in any form; {count =} where a
-- dataset has more than facts.most. `facts` are those of lists.written. Returns the file and the
-- path of a dataset, too. What is none of them raises an error.
function lists.read(s, value, facts)
    local file = s.file
    if not (file and value:find "^/" and file:exists(value)) and not value:find ":/" then
        facts.files = facts.files or s.files
        local list = lists.written(value, facts)
        if list then
            return list
        elseif not file or not value:find "/" then
            wrong(facts, "io", "cannot read the %s: '%s' is neither a list of numbers nor a file "
                .. "nor a dataset%s", facts.what, value, file and (" of '%s'"):format(file.path)
                or ", FILE:/PATH")
        end
    end
    local found, path = source.find(s, value, facts.option, facts.remedy)
    return source.numbers(found, path, facts.most), found, path
end

return lists
