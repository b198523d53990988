--- The steps that a recipe may name: definitions by name.
--
-- The library's steps are the files of the folders in steps, a folder for each family. A user's own
-- steps are code: they come from files that the user names, or from the script, and are recorded
-- with their source and hash. A file returns one definition or a list of definitions.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local input_file = require "moonbeam.internal.files.input_file"
local kinds = require "moonbeam.pipeline.kinds"
local own_step = require "moonbeam.pipeline.definitions.own_step"
local step_options = require "moonbeam.pipeline.definitions.step_options"
local tables = require "moonbeam.internal.tables"

local catalog = {}
local methods = {}
local metatable = {__index = methods, __name = "moonbeam.catalog"}

local MOST_BYTES <const> = 1 << 20 -- of a file of steps

-- The fields of a definition, with the types that they may have.
local FIELDS = {name = "string", summary = "string", doc = "string", reference = "string",
    options = "table", presets = "table", takes = "table function", gives = "table function",
    cuts = "table function", check = "function", shape = "function", geometry = "function",
    needs = "function", packet = "function", run = "function",
    measure = "function", bounds = "function", gives_value = "string", known = "function",
    uses = "table", deciding = "function", ways = "function", reduce = "table",
    last = "boolean", selects = "function", sources = "function", prepare = "function",
    measuring = "function", reducing = "function", plain = "function", scaling = "function",
    parts = "function", warp = "function", across_angles = "boolean function"}

-- ---- checks of definitions ----

local function wrong(def, where, format, ...)
    fail("argument", "pipeline", "steps", "the step '%s'%s: %s", core.error.printable(
        type(def) == "table" and type(def.name) == "string" and def.name or "?"),
        where and " of " .. core.error.printable(where) or "", format:format(...))
end

local function check_fields(def, where)
    for field, value in pairs(def) do
        local types = FIELDS[field]
        if not types then
            local near = core.error.nearest(tostring(field), tables.keys(FIELDS))
            wrong(def, where, "unknown field '%s'%s", core.error.printable(tostring(field)), near
                and ("; did you mean '%s'?"):format(near) or "")
        elseif not types:find(type(value), 1, true) then
            wrong(def, where, "%s is a %s; give a %s", field, type(value),
                (types:gsub(" ", " or a ")))
        end
    end
end

local function check_kind(def, kind, field, where)
    if type(kind) ~= "table" then
        return
    end
    local names = {quantity = kinds.QUANTITIES, layout = {"frames", "slices", "image"}}
    for part, known in pairs(names) do
        local given = kind[part]
        for _, name in ipairs(type(given) == "table" and given or {given}) do
            local also = field == "takes" and "any" or "same"
            local near = name ~= also and core.error.nearest(tostring(name), known)
            local found = name == also
            for _, other in ipairs(known) do
                found = found or name == other
            end
            if not found then
                wrong(def, where, "%s.%s is '%s'; give %s, or \"%s\"%s", field, part,
                    tostring(name), table.concat(known, ", "), also,
                    near and ("; did you mean '%s'?"):format(near) or "")
            end
        end
    end
end

local function check_options(def, where)
    for _, entry in ipairs(def.options) do
        if not step_options.is_kind(entry.kind) then
            wrong(def, where, "option '%s' has the kind '%s'; there are %s", entry.name,
                tostring(entry.kind), table.concat(step_options.kinds(), ", "))
        elseif entry.name == "preset" then
            wrong(def, where, "an option cannot have the name 'preset'")
        end
        local problem = entry.default ~= nil and entry.default ~= "auto"
            and step_options.problem(entry, entry.default)
        if problem then
            wrong(def, where, "the default of an option: %s", problem)
        end
    end
    for preset, values in pairs(def.presets or {}) do
        for name, value in pairs(values) do
            local entry = def.options[name]
            local problem = not entry and ("there is no option '%s'"):format(tostring(name))
                or step_options.problem(entry, value)
            if problem then
                wrong(def, where, "preset '%s': %s", tostring(preset), problem)
            end
        end
    end
end

-- A checked copy of a definition, with all fields that other modules rely on.
local function checked(given, where)
    if type(given) ~= "table" then
        fail("argument", "pipeline", "steps", "%s returns a %s; a file of steps returns one "
            .. "definition, or a list of them", core.error.printable(where or "a step"),
            type(given))
    end
    local def = tables.merged(given)
    check_fields(def, where)
    if not (def.name and def.name:find "^%l[%w_]*$") then
        wrong(def, where, "name must be a word in small letters")
    elseif not def.summary then
        wrong(def, where, "summary is missing; give one line that says what the step does")
    elseif not (def.run or def.measure or def.reduce) then
        wrong(def, where, "run is missing; give the function that does the work")
    elseif not def.takes then
        wrong(def, where, "takes is missing; give {quantity = ..., layout = ...}")
    elseif def.measure and not def.bounds then
        wrong(def, where, "bounds is missing; give a function that returns {low, high}, between "
            .. "which measure finds its value")
    end
    for _, field in ipairs(def.reduce and {"start", "add", "finish"} or {}) do
        if type(def.reduce[field]) ~= "function" then
            wrong(def, where, "reduce.%s is missing; give functions start, add and finish", field)
        end
    end
    local passes = def.reduce and def.reduce.passes
    if def.reduce and not (type(passes) == "number" and math.tointeger(passes) and passes >= 1) then
        wrong(def, where, "reduce.passes is %s; give how often it goes through the result, a whole "
            .. "number from 1", tostring(passes))
    end
    def.options = def.options or {}
    if #def.options == 0 and next(def.options) then
        wrong(def, where, "options is no list; give {{name, kind, text, field = value}, ...}")
    end
    if #def.options > 0 and not def.options[def.options[1].name or ""] then
        local ok, options = pcall(declared.options, table.unpack(def.options))
        if not ok then
            wrong(def, where, "an option is {name, kind, text, field = value}, not %s",
                tostring(options))
        end
        def.options = options
    end
    def.gives = def.gives or {quantity = "same", layout = "same"}
    check_kind(def, def.takes, "takes", where)
    check_kind(def, def.gives, "gives", where)
    check_options(def, where)
    return def
end

-- ---- files ----

-- FNV-1a with 64 bits: tells whether a file is the one that was recorded. It does not protect
-- against someone who makes two files with the same hash.
local function hash_of(text)
    local hash = 0xcbf29ce484222325
    for i = 1, #text do
        hash = (hash ~ text:byte(i)) * 0x100000001b3
    end
    return ("fnv1a64:%016x"):format(hash)
end

local function text_of(path)
    local facts = type(path) == "string" and core.system.stat(path)
    local name = core.error.printable(tostring(path))
    if not facts or facts.kind ~= "file" then
        fail("io", "pipeline", "steps", "'%s' is not a file of steps", name)
    elseif facts.bytes > MOST_BYTES then
        fail("io", "pipeline", "steps", "'%s' has %d bytes; a file of steps has at most %d", name,
            facts.bytes, MOST_BYTES)
    end
    local file <close>, problem = input_file.open(path)
    local text = file and (file:read(MOST_BYTES) or "")
    return text or fail("io", "pipeline", "steps", "cannot read '%s': %s", name, problem or "?")
end

local function is_list(value)
    return type(value) == "table" and value.name == nil and #value > 0
end

-- The families of the library's steps: {name = family}, read once from the folders.
local families

local function families_of_steps()
    if not families then
        families = {}
        local folder = package.searchpath("moonbeam.pipeline.catalog", package.path)
            :gsub("pipeline/catalog%.lua$", "steps/")
        for _, family in ipairs(core.system.folder(folder) or {}) do
            for _, entry in ipairs(core.system.folder(folder .. family) or {}) do
                local name = entry:match "^([%l][%w_]*)%.lua$"
                if name then
                    families[name] = family
                end
            end
        end
    end
    return families
end

--- The family of a step of the library: the name of its folder. nil: it is not in the library.
function catalog.family_of(name)
    return families_of_steps()[name]
end

-- The checked definitions of the library's steps by name, each made when it is first looked for.
local library = {}

-- The definition of a step in the library, or nil.
local function library_step(name)
    local family = not library[name] and catalog.family_of(name)
    if family then
        library[name] = checked(require(("moonbeam.steps.%s.%s"):format(family, name)))
    end
    return library[name]
end

--- Adds a definition or a list of definitions. `source` is {path, text} if they are from a file.
function methods:add(definitions, source)
    local where = source and source.path or "the script"
    local record = {path = source and source.path, text = source and source.text, names = {},
        hash = source and hash_of(source.text)}
    local list = is_list(definitions) and definitions or {definitions}
    for i = 1, math.max(1, #list) do
        local def = checked(list[i], where)
        if self.own[def.name] then
            wrong(def, where, "another step has this name, from %s; rename one of the two",
                core.error.printable(self.own[def.name].path or "the script"))
        elseif library_step(def.name) then
            wrong(def, where, "the library has a step of this name; rename yours")
        end
        self.defs[def.name], self.own[def.name] = own_step.guard(def), record
        record.names[#record.names + 1] = def.name
    end
    self.sources[#self.sources + 1] = record
    return self
end

--- Adds the steps of a file, by running it: Lua code that returns one definition or a list.
function methods:load(path)
    local text = text_of(path)
    local chunk, problem = load(text, "@" .. path, "t")
    if not chunk then
        fail("argument", "pipeline", "steps", "the file of steps is not Lua: %s",
            core.error.printable(problem))
    end
    local ok, made = pcall(chunk)
    if not ok then
        fail("argument", "pipeline", "steps", "the file of steps fails: %s",
            core.error.printable(tostring(made)))
    end
    return self:add(made, {path = path, text = text})
end

--- The names of all steps, sorted.
function methods:names()
    return tables.keys(tables.merged(families_of_steps(), self.own))
end

--- The definition of the step with this name. Errors: argument, with the nearest name.
function methods:find(name)
    local def = self.defs[name] or library_step(name)
    if not def then
        local near = core.error.nearest(name, self:names())
        fail("argument", "pipeline", "recipe", "there is no step '%s'%s",
            core.error.printable(name), near and ("; did you mean '%s'? Steps of your own come "
                .. "from --steps FILE.lua"):format(near) or "; the steps are "
                    .. table.concat(self:names(), ", ")
                    .. "; steps of your own come from --steps FILE.lua")
    end
    return def
end

--- The sources of a recipe's steps that are not in the library, {path, text, hash, names} each, for
-- the result.
function methods:recorded(list)
    local records, seen = {}, {}
    for _, entry in ipairs(list) do
        local record = self.own[type(entry) == "table" and entry[1] or entry]
        if record and not seen[record] then
            records[#records + 1], seen[record] = record, true
        end
    end
    return records
end

--- A catalog of the library's steps and of those in `files` (paths) and `steps` (definitions).
function catalog.new(files, steps)
    local self = setmetatable({defs = {}, own = {}, sources = {}}, metatable)
    for _, path in ipairs(files or {}) do
        self:load(path)
    end
    if steps then
        self:add(steps)
    end
    return self
end

--- The hash of a text, as it is recorded.
catalog.hash = hash_of

return catalog
