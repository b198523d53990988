--- Errors for names that do not exist, with the nearest name.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local strict = {}

--- "; did you mean 'x'?" if one of these names is near, otherwise "".
function strict.suggestion(name, names)
    name = tostring(name)
    local nearest = core.error.nearest(name, names) or core.error.nearest(name:lower(), names)
    return nearest and ("; did you mean '%s'?"):format(nearest) or ""
end

-- The word of a name that another program uses for something here, or nil: "remove_stripes" has
-- "stripe".
local function known_word(name, synonyms)
    for word in name:lower():gmatch "%a+" do
        word = synonyms[word] and word or word:gsub("s$", "")
        if synonyms[word] then
            return word
        end
    end
end

--- What to use in place of a name that `title` does not have: what the words of other programs mean
-- here, a near one of its names, or where to look.
function strict.advice(name, names, title)
    local found, synonyms = pcall(require, "moonbeam.internal.synonyms")
    local word = found and (synonyms[name:lower()] and name:lower() or nil)
    local near = not word and strict.suggestion(name, names) or ""
    if near ~= "" then
        return near
    end
    word = word or found and known_word(name, synonyms)
    return word and "; " .. synonyms[word]
        or ("; mb.help(%s) lists what there is"):format(title:find "^mb%." and ('"%s"'):format(
            title:gsub("^mb%.", "")) or "")
end

--- The names in a table, in no particular order.
function strict.names(t)
    local names = {}
    for key in pairs(t) do
        names[#names + 1] = type(key) == "string" and key or nil
    end
    return names
end

-- Where the library's files are, as Lua names their chunks.
local LIBRARY <const> = debug.getinfo(1, "S").source:gsub("internal/strict%.lua$", "")

-- Does code of the library, or of C, run at this level of the caller?
local function in_library(level)
    local source = debug.getinfo(level + 1, "S").source
    return source == "=[C]" or source:sub(1, #LIBRARY) == LIBRARY
end

--- An __index for objects whose fields are in a table: gives their methods, and nil for the names
-- in `may_lack`, {name = true}, and to the library's own code. Any other name is an error. `title`
-- is what it calls the object; `instead` says what is here in place of names of other programs, and
-- instead[1] what to do without a near name (default: the fields are listed).
function strict.object(title, methods, may_lack, instead)
    return function(object, name)
        local method = methods[name]
        if method ~= nil or type(name) ~= "string" or may_lack[name] or in_library(2) then
            return method
        end
        local names, fields = strict.names(methods), strict.names(object)
        table.move(fields, 1, #fields, #names + 1, names)
        local near = instead[name] and "; " .. instead[name] or strict.suggestion(name, names)
        table.sort(fields)
        fail("argument", nil, nil, "%s has no '%s'%s", title, name, near ~= "" and near
            or "; " .. (instead[1] or "it has " .. table.concat(fields, ", ")))
    end
end

--- Makes an unknown name in the module an error, and returns the module; rawget still gives nil.
-- `title` is what the error calls it. A metatable that looks up names by itself stays as it is.
function strict.module(module, title)
    local metatable = getmetatable(module) or {}
    metatable.is_module = metatable.__call == nil -- and no function
    metatable.__call = metatable.__call or function()
        local subject = title:gsub("^mb%.", "")
        fail("argument", nil, nil, "%s is a module, not a function: mb.help(\"%s\") lists its "
            .. "functions", title, subject)
    end
    metatable.__index = metatable.__index or function(_, name)
        if type(name) == "string" then
            fail("argument", nil, nil, "%s has no '%s'%s", title, name,
                strict.advice(name, strict.names(module), title))
        end
    end
    return setmetatable(module, metatable)
end

return strict
