--- Declarations of public functions. The arguments and options are declared once: for the checks of
-- calls, for help and the reference pages, and for command lines.
--
--   --- Filtered back-projection of line integrals.
--   -- More prose: what is returned, errors, formulas.
--   tomo.fbp = declared("tomo.fbp", {
--       {"sino", "array", "sinograms (row, angle, column)", rank = {2, 3}},
--       {"device", "device?", "where the work is done"},
--       options = declared.options(
--           declared.from("ramp_filter", "filter", "cutoff"),
--           {"mode", "choice", "how memory is used", choices = {"fast", "auto"}}),
--   }, function(sino, device, options) ... end)
--
-- An entry is {name, kind, doc}; its fields are those of an operator's argument: min, max, unit,
-- choices, default, required; `words`: names that it may be instead of a number. A "?" after the
-- kind of an argument means that it may be left out.
-- `usual` describes in words what happens if an option is not given; `default` is a value, which
-- the function gets. The prose stays in the comment above the declaration. The operator itself
-- checks the options that come from its descriptor.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local strict = require "moonbeam.internal.strict"
local tables = require "moonbeam.internal.tables"

local declared = {}

-- Declarations by public function, and by full name for methods without a Lua function.
local by_function, by_name = setmetatable({}, {__mode = "k"}), {}

local function entry_of(given)
    local entry = {}
    for key, value in pairs(given) do
        entry[type(key) == "string" and key or ({"name", "kind", "doc"})[key]] = value
    end
    local kind = entry.kind:match("^(.*)%?$")
    entry.kind = kind or entry.kind
    entry.optional = kind ~= nil or entry.default ~= nil
    return entry
end

--- Options of an operator from its descriptor: the named ones, or all. An option given as {name,
-- field = value} has these fields instead of the operator's.
function declared.from(operator, ...)
    local by_name_of, all, list = {}, {}, {}
    for _, arg in ipairs(core.op.describe(operator).args) do
        if not arg.array and not arg.required then
            by_name_of[arg.name], all[#all + 1] = arg, arg.name
        end
    end
    for i, name in ipairs(select("#", ...) > 0 and {...} or all) do
        local changes = type(name) == "table" and name or {name}
        local entry = tables.merged({operator = operator, optional = true},
            by_name_of[changes[1]])
        for key, value in pairs(changes) do
            entry[key ~= 1 and key or "name"] = value
        end
        list[i] = entry
    end
    return list
end

--- A list of options from entries and other lists, with the entries also by name. If two entries
-- have the same name, the first is used.
function declared.options(...)
    local list = {}
    local function add(entry)
        if not list[entry.name] then
            list[#list + 1], list[entry.name] = entry, entry
        end
    end
    for _, part in ipairs {...} do
        if type(part[1]) == "string" then
            part = entry_of(part)
            part.optional = not part.required
            add(part)
        elseif type(part.name) == "string" then -- an entry of another list
            add(part)
        else
            for _, entry in ipairs(part) do
                add(entry)
            end
        end
    end
    return list
end

--- A copy of a list without these names.
function declared.without(list, ...)
    local left, kept = {}, {}
    for _, name in ipairs {...} do
        left[name] = true
    end
    for _, entry in ipairs(list) do
        kept[#kept + 1] = not left[entry.name] and entry or nil
    end
    return declared.options(kept)
end

--- A new table of the given values of a list's options: those of this operator, or all without an
-- operator.
function declared.part(list, given, operator)
    local values = {}
    for _, entry in ipairs(list) do
        if not operator or entry.operator == operator then
            values[entry.name] = given[entry.name]
        end
    end
    return values
end

local MOST_NAMES <const> = 12 -- that a message lists

local elsewhere = setmetatable({}, {__mode = "k"})

--- The options of another function (`others`, a list) that a list does not have: the error for one
-- of them says this text.
function declared.elsewhere(list, others, text)
    elsewhere[list] = {others = others, text = text}
end

-- What to do about an option that the function `name` does not have.
local function option_instead(key, list, name)
    if elsewhere[list] and elsewhere[list].others[key] then
        return elsewhere[list].text
    end
    local near = strict.suggestion(key, strict.names(list))
    if near ~= "" then
        return near
    elseif key == "device" or key == "gpu" then
        return "; the work is done where the arrays are: a:to(\"cuda:0\") moves one"
    elseif #list > MOST_NAMES then
        return ("; mb.help(\"%s\") lists the options"):format(name)
    end
    local names = tables.mapped(list, function(entry) return entry.name end)
    return "; " .. (#names > 0 and "the options are " .. table.concat(names, ", ")
        or "it has no options")
end

--- A new table of the options of a call of `name`: the given ones, checked, and the defaults of the
-- others.
function declared.checked(list, given, name)
    if given == nil then
        given = {}
    elseif type(given) ~= "table" then
        fail("argument", name, nil, "options are a table, such as {%s = ...}, not a %s",
            list[1] and list[1].name or "name", type(given))
    end
    local values = setmetatable({}, getmetatable(given))
    for key, value in pairs(given) do
        if type(key) ~= "string" or not list[key] then
            fail("argument", name, tostring(key), "unknown option '%s'%s", tostring(key),
                option_instead(key, list, name))
        end
        values[key] = value
    end
    for _, entry in ipairs(list) do
        local value = values[entry.name]
        if not entry.operator then
            if value == nil then
                value = entry.default
            end
            arguments.entry(entry, value, name)
        end
        values[entry.name] = value -- its own also where a metatable gives it
    end
    return values
end

-- The wrapper of f: checks the arguments and completes the options. `check` may check what a kind
-- cannot say: check(name, ...), with the arguments.
local function checking(name, args, f, check)
    local count = #args + (args.options and 1 or 0)
    return arguments.stands_before(function(...)
        local values = table.pack(...)
        if args.options then
            values[count] = declared.checked(args.options, values[count], name)
        end
        for i, entry in ipairs(args) do
            if values[i] == nil then
                values[i] = entry.default
            end
            arguments.entry(entry, values[i], name)
        end
        if check then
            check(name, table.unpack(values, 1, math.max(values.n, count)))
        end
        return f(table.unpack(values, 1, math.max(values.n, count)))
    end, f)
end

-- `level` is the stack level of the function in the file of the declaration.
local function declaration_of(name, args, level)
    local info = debug.getinfo(level or 3, "Sl")
    local declaration = {name = name, options = args.options, source = info.source,
        line = info.currentline}
    for i, entry in ipairs(args) do
        declaration[i] = entry_of(entry)
    end
    return declaration
end

-- Arguments from one line of text, "path: string, ...: any, options", and the options. An argument
-- without a kind may be any value.
local function parsed(text, options)
    local args = {options = options}
    for arg, kind in text:gmatch("([%w_.]+):? ?([%w?]*)") do
        args[#args + 1] = (arg ~= "options" or kind ~= "") and {arg, kind ~= "" and kind or "any"}
            or nil
    end
    return args
end

local function named(text, options)
    local name, list = text:match("^([%w_.:]+)%(?(.-)%)?$")
    by_name[name] = declaration_of(name, parsed(list, options), 4)
    return name, by_name[name]
end

--- Declares a function or method only for help and the reference:
-- native("h5:read(path: string, ...: any, options)", options).
function declared.native(text, options)
    named(text, options)
end

--- Declares a method as `native` does; returns f wrapped by a check of the arguments after self.
function declared.method(text, options, f)
    local name, declaration = named(text, options)
    local args = {entry_of {"self", name:match "^[%w_]+"}, table.unpack(declaration)}
    args.options = options
    return checking(name, args, f)
end

-- A method of a class, with a check of self and of the arguments.
local function method_of(class, kind, key, f, signature)
    local text, check = signature, nil
    if type(signature) == "table" then
        text, check = table.unpack(signature)
    end
    local name, info = kind .. ":" .. key, debug.getinfo(f, "S")
    local declaration = declaration_of(name, parsed(text))
    declaration.source, declaration.line = info.source, info.linedefined
    local args = {{name = "self", kind = kind, class = class}, table.unpack(declaration)}
    local public = checking(name, args, f, check)
    by_function[public] = declaration
    return public
end

--- Makes a table a class of objects in Lua, the __index of their metatable: the methods that it has
-- and gets check what they are called with. For methods that help does not list.
-- declared.class("volume", {read = "first: list, extents: list, device: device?"}, {}, parent).
-- `kind` is what an object is called; an object of this class or of one that inherits from it may
-- be self. A signature {text, check} has a function check(name, self, ...) for what a kind cannot
-- say. What is not in the table comes from `parent`. Returns the table.
function declared.class(kind, signatures, class, parent)
    local function set(_, key, value)
        local signature = type(value) == "function" and not by_function[value] and signatures[key]
        rawset(class, key, signature and method_of(class, kind, key, value, signature) or value)
    end
    for key, value in pairs(class) do
        set(class, key, value)
    end
    return setmetatable(class, {__index = parent, __newindex = set})
end

--- Returns the public module with its functions declared: signatures = {fn = "image: array,
-- options"}, or {fn = {"image: array, options", list of options}}. Their prose is the comments
-- above them. `call` is the module's __call metamethod. An unknown name in the module is an error.
function declared.module(module, name, signatures, call)
    for key, signature in pairs(signatures or {}) do
        local text, options = signature, nil
        if type(signature) == "table" then
            text, options = table.unpack(signature)
        end
        module[key] = declared(name .. "." .. key, parsed(text, options), module[key])
    end
    return strict.module(setmetatable(module, {__call = call}), "mb." .. name)
end

--- The declaration of a public function or of a name, or nil. It is a list of arguments with the
-- fields name, options, and the place of the declaration: source and line.
function declared.of(f)
    local found = by_function[f] or by_name[f]
    local behind = arguments.behind(f)
    return found or behind ~= f and declared.of(behind) or nil
end

--- The names declared by `native`, sorted.
function declared.natives()
    return tables.keys(by_name)
end

return setmetatable(declared, {
    -- declared(name, arguments, f): f wrapped by the check of its arguments. A C function, which
    -- checks its arguments itself, stays as it is.
    __call = function(_, name, args, f)
        args = type(args) == "string" and parsed(args) or args
        local declaration = declaration_of(name, args)
        local public = debug.getinfo(f, "S").what ~= "C" and checking(name, declaration, f) or f
        by_function[public] = declaration
        return public
    end,
})
