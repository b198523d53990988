-- A program that calls every public function and method with wrong arguments, drawn by seed, and
-- prints a line for each call that ends in something other than a result or an error object of one
-- line that says what is wrong.
--
--   moonbeam wrong_arguments.lua SEED CALLS [NAME]
--
-- Makes CALLS calls of each function, or of those whose names have NAME in them, and calls each
-- method with receivers that are none of its objects, and with an object that is closed. Objects
-- are those of OBJECTS, and all that public functions return in their examples. The arguments of a
-- call depend on the seed, the function's name and the number of the call alone. It runs in a folder
-- of its own, with the files scan.h5, volume.h5 and stack.tif in it. The file `now` names the call
-- that is being made, for whoever finds the process ended.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local examples = require "moonbeam.internal.prompt.examples"
local modules = require "moonbeam.internal.modules"
local random_numbers = require "moonbeam.internal.quantities.random_numbers"

local SEED <const>, CALLS <const>, ONLY <const> = tonumber(arg[1]), tonumber(arg[2]), arg[3]
local SLOW_SECONDS <const>, BUDGET <const> = 5, 256 << 20

local out = io.stderr
os.exit = function() error(mb.error("internal", "the end")) end -- luacheck: ignore
print = function() end -- luacheck: ignore

-- Not called, for what they are made for.
local SKIPPED <const> = {["cluster.abort"] = "ends the process",
    ["debug.break_guard"] = "damages memory, so that it is found",
    ["debug.fail_step"] = "ends the process", ["debug.lose_device"] = "a lost device stays lost",
    ["debug.pair_seconds"] = "measures for as long as it is told to",
    ["system.ask_terminal"] = "waits as long as it is told to",
    usage = "ends the program, which was not called with these words",
    ["system.sleep"] = "waits as long as it is told to"}

-- ---- numbers of a seed ----

local function key_of(text)
    local hash = 5381
    for i = 1, #text do
        hash = (hash * 33 + text:byte(i)) & 0x3fffffff
    end
    return hash
end

local draw -- a number in [0, 1)

local function one_of(list)
    return list[math.floor(draw() * #list) + 1]
end

-- ---- what functions are given ----

local MINE <const> = "what the caller's own function says"

local function closed(object)
    object:close()
    return object
end

local function released(array)
    array:release()
    return array
end

local function cyclic()
    local t = {1, 2}
    t[3], t.size = t, t
    return t
end

local function deep()
    local t = {}
    for _ = 1, 300 do
        t = {t}
    end
    return t
end

local count = 0 -- of files, whose names are all different

local function new_name(ending)
    count = count + 1
    return ("made%d%s"):format(count, ending)
end

local function new_h5()
    return mb.h5.create(new_name ".h5")
end

-- Values by the text that stands for them in a report. Each is made anew for each call.
local VALUES <const> = {
    ["nil"] = function() end,
    ["true"] = function() return true end,
    ["false"] = function() return false end,
    ["-1"] = function() return -1 end,
    ["0"] = function() return 0 end,
    ["1"] = function() return 1 end,
    ["2"] = function() return 2 end,
    ["1.5"] = function() return 1.5 end,
    ["nan"] = function() return 0 / 0 end,
    ["inf"] = function() return math.huge end,
    ["-inf"] = function() return -math.huge end,
    ["1e300"] = function() return 1e300 end,
    ["2^53"] = function() return 1 << 53 end,
    ["maxinteger"] = function() return math.maxinteger end,
    ["mininteger"] = function() return math.mininteger end,
    ['""'] = function() return "" end,
    ['"x"'] = function() return "x" end,
    ['"7"'] = function() return "7" end,
    ['"a\\0b"'] = function() return "a\0b" end,
    ['"a\\nb"'] = function() return "a\nb" end,
    ['"%s%n"'] = function() return "%s%n" end,
    ["100,000 bytes"] = function() return ("long "):rep(20000) end,
    ['"host"'] = function() return "host" end,
    ['"planned:h200"'] = function() return "planned:h200" end,
    ['"scan.h5"'] = function() return "scan.h5" end,
    ['"stack.tif"'] = function() return "stack.tif" end,
    ['"no/such.h5"'] = function() return "no/such.h5" end,
    ['"."'] = function() return "." end,
    ["{}"] = function() return {} end,
    ["{1, 2}"] = function() return {1, 2} end,
    ["{0, 0, 0}"] = function() return {0, 0, 0} end,
    ["{1, 2, 3}"] = function() return {1, 2, 3} end,
    ["{-1, nan}"] = function() return {-1, 0 / 0} end,
    ["{2^62, 2^62}"] = function() return {1 << 62, 1 << 62} end,
    ['{"x", {}}'] = function() return {"x", {}} end,
    ["{{}}"] = function() return {{}} end,
    ["{x = 1}"] = function() return {x = 1} end,
    ["a cyclic table"] = cyclic,
    ["a deep table"] = deep,
    ["{nil, 2}"] = function() return {nil, 2} end,
    ["function() end"] = function() return function() end end,
    ["function(...) return ... end"] = function() return function(...) return ... end end,
    ['function() return "x" end'] = function() return function() return "x" end end,
    ["function() return -1 end"] = function() return function() return -1 end end,
    ["function() return {} end"] = function() return function() return {} end end,
    ["function() error() end"] = function() return function() error(MINE) end end,
    ["a coroutine"] = function() return coroutine.create(function() end) end,
    ["io.stdout"] = function() return io.stdout end,
    ["a closed io file"] = function() return closed(assert(io.open "stack.tif")) end,
    ["mb"] = function() return mb end,
    ["mb.tomo"] = function() return mb.tomo end,
    ["an error object"] = function() return mb.error("io", "x") end,
    ["f32 4 x 6"] = function() return mb.random {4, 6} end,
    ["f32 3 x 4 x 6"] = function() return mb.random {3, 4, 6} end,
    ["f32 5"] = function() return mb.random {5} end,
    ["f32 1 x 1 x 1"] = function() return mb.ones {1, 1, 1} end,
    ["f32 2 x 2 x 2 x 2"] = function() return mb.ones {2, 2, 2, 2} end,
    ["f32 0 x 6"] = function() return mb.zeros {0, 6} end,
    ["u8 4 x 6"] = function() return mb.ones({4, 6}, {dtype = "u8"}) end,
    ["i32 3 x 4 x 6"] = function() return mb.ones({3, 4, 6}, {dtype = "i32"}) end,
    ["f64 4 x 6"] = function() return mb.ones({4, 6}, {dtype = "f64"}) end,
    ["c64 4 x 6"] = function() return mb.ones({4, 6}, {dtype = "c64"}) end,
    ["f32 4 x 6 of nan"] = function() return mb.full({4, 6}, 0 / 0) end,
    ["f32 6 x 4, transposed"] = function() return mb.random({4, 6}):transpose() end,
    ["f32 4 x 6 on host:1"] = function() return mb.ones({4, 6}, {device = "host:1"}) end,
    ["a released array"] = function() return released(mb.ones {4, 6}) end,
    ["a device"] = function() return mb.device "host" end,
    ["a planned device"] = function() return mb.device "planned:h200" end,
    ["an h5 file"] = function() return mb.h5.open "scan.h5" end,
    ["a closed h5 file"] = function() return closed(mb.h5.open "scan.h5") end,
    ["a scan"] = function() return mb.scan.open "scan.h5" end,
    ["a closed scan"] = function() return closed(mb.scan.open "scan.h5") end,
    ["a volume"] = function() return mb.volumes.of_array(mb.ones {3, 4, 6}) end,
    ["a volume of a file"] = function() return mb.images.open "stack.tif" end,
    ["a closed volume"] = function() return closed(mb.images.open "stack.tif") end,
    ["a ledger"] = function() return mb.dry_run(function() return mb.ones {4} end) end,
    ["a progress bar"] = function() return mb.progress.new("x", 2, {quiet = true}) end,
    ["a tag"] = function() return (mb.pool.tag "x") end,
    ["a carrier"] = function() return mb.stream.carrier {device = "host", pinned = "1M"} end,
}

local NAMES <const> = {}
for name in pairs(VALUES) do
    NAMES[#NAMES + 1] = name
end
table.sort(NAMES)

-- Values that an argument of this kind may have.
local PLAUSIBLE <const> = {
    array = {"f32 4 x 6", "f32 3 x 4 x 6", "f32 5", "u8 4 x 6"}, angles = {"f32 5", "{1, 2}"},
    boolean = {"true", "false"}, bool = {"true", "false"}, bytes = {"2", "2^53"},
    callable = {"function(...) return ... end", "function() end"}, carrier = {"a carrier"}, count = {"1", "2"},
    device = {'"host"', "a device", '"planned:h200"'}, extents = {"{1, 2}"}, float = {"1.5"},
    int = {"1", "2"}, list = {"{1, 2}", "{0, 0, 0}"}, ledger = {"a ledger"}, number = {"1", "1.5"},
    progress = {"a progress bar"}, range = {"{1, 2}"}, scan = {"a scan"},
    string = {'"x"', '"scan.h5"', '"stack.tif"', '"host"'}, table = {"{}", "{1, 2}"},
    vector = {"{1, 2}"}, volume = {"a volume", "a volume of a file"}, ["in"] = {"f32 4 x 6"},
    inout = {"f32 4 x 6"},
}

-- Arguments as a list of values, with `n`, and their texts.
local function add(args, texts, text, value)
    args.n = args.n + 1
    args[args.n], texts[args.n] = value, text
end

local function add_named(args, texts, name)
    add(args, texts, name, VALUES[name]())
end

-- The declared arguments and options of a function, or of an operator.
local function declaration_of(f, name)
    local found = declared.of(f) or declared.of(name)
    local operator = not found and core.op.supported and mb.op.names[f]
    if not operator then
        return found
    end
    local args = {options = {}}
    for _, arg in ipairs(mb.op.describe(name).args) do
        table.insert(arg.required and arg.kind ~= "out" and args or args.options, arg)
    end
    return args
end

local function option_names(declaration)
    local names = {"unheard_of", 1}
    for _, entry in ipairs(declaration and declaration.options or {}) do
        names[#names + 1] = entry.name
    end
    return names
end

-- A table of one to three options with wrong values, and its text.
local function wrong_options(declaration)
    local options, texts, names = {}, {}, option_names(declaration)
    for i = 1, math.floor(draw() * 3) + 1 do
        local name, value = one_of(names), one_of(NAMES)
        if name == "unheard_of" or name == 1 then
            name = one_of(names)
        end
        options[name] = VALUES[value]()
        texts[i] = ("%s = %s"):format(name, value)
    end
    return options, "{" .. table.concat(texts, ", ") .. "}"
end

-- One to four values of any kind.
local function any_arguments(declaration)
    local args, texts = {n = 0}, {}
    for _ = 1, math.floor(draw() * 4) + 1 do
        if draw() < 0.15 then
            local options, text = wrong_options(declaration)
            add(args, texts, text, options)
        else
            add_named(args, texts, one_of(NAMES))
        end
    end
    return args, texts
end

-- Values as they are declared, but for one or two.
local function nearly_right(declaration)
    local args, texts = {n = 0}, {}
    local wrong = math.floor(draw() * (#declaration + 1)) + 1
    for i, entry in ipairs(declaration) do
        local right = PLAUSIBLE[entry.kind] or NAMES
        if entry.choices and i ~= wrong and #entry.choices > 0 then
            local choice = one_of(entry.choices)
            add(args, texts, ("%q"):format(choice), choice)
        else
            add_named(args, texts, one_of(i == wrong and NAMES or right))
        end
    end
    if declaration.options and (wrong > #declaration or draw() < 0.3) then
        local options, text = wrong_options(declaration)
        add(args, texts, text, options)
    elseif wrong > #declaration then
        add_named(args, texts, one_of(NAMES))
    end
    return args, texts
end

-- The arguments of an example, with one of them, or one of its fields, made wrong.
local function spoiled(args, declaration)
    local texts, at = {}, math.floor(draw() * (args.n + 1)) + 1
    for i = 1, args.n do
        texts[i] = "as in the example"
    end
    local old = args[at]
    if type(old) == "table" and getmetatable(old) == nil and draw() < 0.7 or at > args.n
        and declaration and declaration.options then
        local changed, keys = {}, {}
        for key, value in pairs(type(old) == "table" and old or {}) do
            changed[key], keys[#keys + 1] = value, key
        end
        table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
        local options, text
        if #keys > 0 and draw() < 0.5 then
            local key, value = one_of(keys), one_of(NAMES)
            changed[key], text = VALUES[value](), ("[%s] = %s"):format(key, value)
            options = {}
        else
            options, text = wrong_options(declaration)
        end
        for key, value in pairs(options) do
            changed[key] = value
        end
        args[at], texts[at] = changed, "the example's with " .. text
    elseif draw() < 0.1 then
        args.n = math.max(args.n - 1, 0)
    else
        local name = one_of(NAMES)
        args[at], texts[at] = VALUES[name](), name
    end
    args.n = math.max(args.n, texts[at] and at or 0)
    return args, texts
end

-- ---- what is called ----

local where = debug.getinfo(1, "S").short_src

local function compiled(text)
    local last = text:match("([^\n]*)$")
    return function(env)
        local chunk = load(text, "=" .. where, "t", env)
            or load(text:sub(1, #text - #last) .. "return " .. last, "=" .. where, "t", env)
            or assert(load("return " .. text, "=" .. where, "t", env))
        return chunk()
    end
end


local functions = {} -- {name, function or module, object = ...}

local function add_function(name, f)
    if not SKIPPED[name] and not functions[name] and (not ONLY or name:find(ONLY, 1, true)) then
        functions[#functions + 1] = {name = name, f = f}
        functions[name] = true
    end
end

for _, name in ipairs(modules.names()) do
    local module = mb[name]
    for key, f in pairs(type(module) == "table" and module or {}) do
        if type(f) == "function" and not key:find "^_" then
            add_function(name .. "." .. key, f)
        end
    end
    if type(module) == "function" or declared.of(name) then
        add_function(name, module)
    end
end
for key, f in pairs(mb) do
    if type(f) == "function" then
        add_function(key, f)
    end
end

local function new_dataset()
    return new_h5():create_dataset("/data", {shape = {8, 4, 4}})
end

local function new_result(ending)
    return function()
        return mb.result.create(new_name(ending), {shape = {4, 8, 8}})
    end
end

local function new_file(format, ending)
    return function()
        return mb[format].create(new_name(ending), {shape = {4, 8, 8}, dtype = "f32"})
    end
end

-- Objects with methods, each with how one is made.
local OBJECTS <const> = {
    array = VALUES["f32 3 x 4 x 6"], ["array (c64)"] = VALUES["c64 4 x 6"],
    device = VALUES["a device"], h5 = VALUES["an h5 file"], ["h5 (created)"] = new_h5,
    ["h5.dataset"] = function() return mb.h5.open("volume.h5"):dataset "/entry/data/data" end,
    ["h5.dataset (created)"] = new_dataset,
    scan = VALUES["a scan"],
    ["scan (arrays)"] = function()
        return mb.scan.of_arrays(mb.ones {6, 4, 8}, mb.tomo.angles(6))
    end,
    ["result (h5)"] = new_result ".h5", ["result (tif)"] = new_result ".tif",
    ["result (zarr)"] = new_result ".zarr", ["file (npy)"] = new_file("npy", ".npy"),
    ["file (images)"] = new_file("images", ".tif"), ["file (tiff)"] = new_file("tiff", ".tif"),
    ledger = VALUES["a ledger"], volume = VALUES["a volume"],
    ["volume (file)"] = VALUES["a volume of a file"],
    ["volume (scratch)"] = function()
        return mb.volumes.scratch(new_name ".npy", {4, 8, 8}, "f32")
    end,
    progress = VALUES["a progress bar"], tag = VALUES["a tag"],
    ["pool.scope"] = function() return mb.pool.scope() end,
    carrier = function() return mb.stream.carrier {device = "host", pinned = "1M"} end,
    lanes = function() return mb.stream.open({"host"}, {pinned = "1M"}) end,
    pipeline = function()
        return mb.pipeline.new(mb.scan.open "scan.h5",
            {"flat_field", "minus_log", {"fbp", center = 31.5}})
    end,
    ["recon.plan"] = function() return mb.recon.plan(mb.scan.open "scan.h5", {center = 31.5}) end,
    error = VALUES["an error object"],
}

local META <const> = {__gc = true, __close = true, __name = true, __metatable = true,
    __mode = true, __index = true, __newindex = true}

-- The methods of an object by name: of its class, of those it inherits from, and its own, but for
-- those that its maker's caller has given.
local HOME <const> = package.searchpath("moonbeam", package.path):match "^(.*)init"

local function methods_of(object)
    local list, metatable = {}, debug.getmetatable(object)
    local places, index = {metatable}, metatable and metatable.__index
    while type(index) == "table" and #places < 8 do
        places[#places + 1] = index
        index = (debug.getmetatable(index) or {}).__index
    end
    if type(object) == "table" then
        places[#places + 1] = object
    end
    for _, place in ipairs(places) do
        for name, f in next, place do
            local info = type(f) == "function" and type(name) == "string" and not META[name]
                and debug.getinfo(f, "S")
            if info and (info.what == "C" or info.source:find(HOME, 1, true)) then
                list[name] = list[name] or f
            end
        end
    end
    return list
end

-- What is the same for all objects of a class, also where each has a metatable of its own.
local function class_of(object)
    local metatable, names = debug.getmetatable(object) or {}, {}
    if type(metatable.__index) == "function" then
        return metatable.__name
    end
    for name, f in pairs(methods_of(object)) do
        local info = debug.getinfo(arguments.original(f), "S")
        names[#names + 1] = ("%s@%s:%d"):format(name, info.short_src, info.linedefined)
    end
    table.sort(names)
    return #names > 0 and not names[#names]:find "^__" and table.concat(names, " ") or nil
end

-- A method of an object of this kind.
local function add_method(object, kind, name, f)
    local full = object .. ":" .. name
    add_function(full, f)
    local entry = functions[#functions]
    if entry and entry.name == full then
        entry.object, entry.declaration = object, declared.of(f) or declared.of(kind .. ":" .. name)
    end
end

local known = {} -- classes

local function let_go_one(value)
    pcall(function() value:close() end)
    pcall(function() debug.getmetatable(value).__close(value) end)
    pcall(function() value:release() end)
end

-- Adds the methods of a kind of object, which `make` makes.
local function add_object(object, make)
    local made = make()
    local kind = object:match "^[%w.]+"
    known[class_of(made) or made] = true
    for name, f in pairs(methods_of(made)) do
        add_method(object, kind, name, f)
    end
    for _, full in ipairs(declared.natives()) do
        local name = full:match("^" .. kind:gsub("%p", "%%%0") .. ":(.*)$")
        local ok, f = pcall(function() return made[name] end)
        if name and ok and f then
            add_method(object, kind, name, f)
        end
    end
    let_go_one(made)
end

for object, make in pairs(OBJECTS) do
    add_object(object, make)
end

-- ---- the objects of examples ----

local function is_module(value)
    return type(value) == "table" and (debug.getmetatable(value) or {}).is_module
end

-- mb, or a module of it, that tells what its functions return.
local function telling(module, tell)
    local function told(...)
        for i = 1, select("#", ...) do
            tell((select(i, ...)))
        end
        return ...
    end
    return setmetatable({}, {__index = function(_, key)
        local value = module[key]
        return is_module(value) and telling(value, tell) or type(value) == "function"
            and function(...) return told(value(...)) end or value
    end, __call = function(_, ...) return told(module(...)) end})
end

-- What public functions return in an example, and what its variables are in the end.
local function objects_of(example)
    local list = {}
    local function tell(value)
        if (type(value) == "table" or type(value) == "userdata") and not is_module(value)
            and io.type(value) == nil then
            list[#list + 1] = value
        end
    end
    local env = setmetatable({}, {__index = _G})
    env.mb = telling(mb, tell)
    pcall(compiled(example), env)
    env.mb = nil
    for _, value in pairs(env) do
        if debug.getmetatable(value) then -- and no module that the example has required
            tell(value)
        end
    end
    return list
end

-- The first object of a class that an example makes.
local function maker_of(example, class)
    return function()
        local found
        for _, object in ipairs(objects_of(example)) do
            if not found and class_of(object) == class then
                found = object
            end
        end
        return found
    end
end

local function find_objects(name, example)
    for _, object in ipairs(objects_of(example)) do
        local class <const> = class_of(object)
        if class and not known[class] then
            known[class] = true
            local made <const> = maker_of(example, class)()
            if made and class_of(made) == class then
                OBJECTS[name .. "(...)"] = maker_of(example, class)
                add_object(name .. "(...)", OBJECTS[name .. "(...)"])
            else
                out:write(("WRONG %s: no object of its class can be made again\n"):format(name))
            end
        end
    end
end

if not ONLY or ONLY:find ":" then
    local names = {}
    for i, entry in ipairs(functions) do
        names[i] = not entry.object and not mb.op.names[entry.f] and not entry.name:find "^debug%."
            and entry.name or ""
    end
    for _, name in ipairs(declared.natives()) do
        names[#names + 1] = name:find ":" and name or ""
    end
    for _, name in ipairs(names) do
        local example = name ~= "" and examples(name)
        if example then
            find_objects(name, example)
            mb.collect()
        end
    end
end
table.sort(functions, function(a, b) return a.name < b.name end)

-- ---- the judge ----

local now = assert(io.open("now", "w"))
local calls, results, wrong = 0, 0, {}

local function report(label, problem, err)
    local text = ("WRONG %s: %s: %s"):format(label, problem, (tostring(err):sub(1, 600):gsub(
        "[^\32-\126]+", " ")))
    wrong[#wrong + 1] = text
    out:write(text, "\n")
end

local INNER <const> = {"attempt to", "stack traceback", "bad argument", "bindings/moonbeam",
    "moonbeam.internal", "nil value", "number expected", "table expected", "string expected",
    "no integer representation", "in function <"}

-- What tells the reader of an error what to do, or what would be right.
local REMEDIES <const> = {";", "must ", "give ", "needs? ", "can ", "takes? ", "has no", "may ",
    "only ", "did you mean", "is for ", "cannot", "expected", "not ", "exists", "needed",
    "which has", "convert ", "exceeds", ": open it", ": write to ",
    "and the sinogram has", "axes, the image", "axis, the image", "axes and the grid", "with a colon", "are wavelength,",
    "name each once", "before the options", "images are ", "the root is", "itself", "deep",
    "selected part", "no tag ", "syntax error", ": name its dataset", "freed again", "write mb%.", "angles were given", "index 0 of axis"}

-- Errors of these codes tell what the system says: nothing can be said of what to do.
local NO_REMEDY <const> = {io = true, memory = true, budget = true, device = true}

local function judge(label, err)
    if type(err) ~= "table" or (getmetatable(err) or {}).__name ~= "moonbeam.error" then
        local text = tostring(err)
        if not text:find(MINE, 1, true) and not text:find "^plan:%d" then
            report(label, "no error object", err)
        end
        return
    end
    local text, message = tostring(err), tostring(err.message)
    if message:find(MINE, 1, true) then
        return
    end
    for _, inner in ipairs(INNER) do
        if text:find(inner, 1, true) then
            return report(label, "shows '" .. inner .. "'", err)
        end
    end
    local found
    for _, remedy in ipairs(REMEDIES) do
        found = found or message:find(remedy)
    end
    if err.code == "internal" then
        report(label, "internal", err)
    elseif label:find "^raise%(" and not err.arg then
        return -- the caller's own text
    elseif type(err.code) ~= "string" or #message < 10 then
        report(label, "says nothing", err)
    elseif not found and not NO_REMEDY[err.code] then
        report(label, "without a remedy", err)
    elseif #message > 1200 then
        report(label, ("has %d bytes"):format(#message), err)
    elseif text:match("^[^\n]*"):find "[%z\1-\31]" then
        report(label, "has more than a line", err)
    elseif err.code ~= "budget" and text:find "\n" then
        report(label, "has more than a line", err)
    elseif (err.code == "argument" or err.code == "shape" or err.code == "dtype")
        and not err.arg and not err.op and not label:find ":__"
        and not message:find "has no '" and not message:find "is a module" then
        report(label, "names no argument", err)
    elseif err.where and not err.where:find(where, 1, true) then
        report(label, "blames " .. err.where, err)
    end
end

local PINNED <const> = select(3, mb.device "host":pinned())

-- Undoes what a call may have changed for the calls after it.
local function reset()
    for _, id in ipairs {"host", "host:1"} do
        mb.debug.fail_nth(0, id)
        mb.debug.refuse_commits(0, id)
        mb.debug.refuse_pins(0, id)
        mb.debug.pretend_memory(0, id)
        mb.device(id):pinned(PINNED)
        mb.pool.budget(BUDGET, id)
    end
    while #mb.pool.tags() > 0 do
        mb.pool.end_tag()
    end
    mb.device.default "host"
    mb.system.cancel(false)
    mb.system.set_home(HOME)
    mb.system.hold_stop(false)
end

local HANGS <const> = "the call does not end"

-- A function that calls f as a script would, by its name, for errors name what was called.
local function named(name, f)
    local key = name:match "([%l_][%w_]*)$"
    return load(([[
        local t = ...
        return function(...)
            local list = table.pack(t.%s(...))
            return table.unpack(list, 1, list.n)
        end]]):format(key), "=" .. where)({[key] = f})
end

-- Calls f as `label` says, and judges what comes of it.
local function call(name, label, f, args)
    now:seek "set"
    now:write(label:sub(1, 900), (" "):rep(1000 - #label:sub(1, 900)), "\n")
    now:flush()
    calls = calls + 1
    local began = os.clock()
    debug.sethook(function()
        if os.clock() - began > SLOW_SECONDS then
            error(HANGS, 0)
        end
    end, "", 1000000)
    local list = table.pack(pcall(named(name, f), table.unpack(args, 1, args.n)))
    debug.sethook()
    reset()
    if os.clock() - began > SLOW_SECONDS then
        report(label, HANGS, list[2])
    elseif not list[1] then
        judge(label, list[2])
    elseif list[2] == nil and type(list[3]) == "table" then -- opening functions return nil, err
        judge(label, list[3])
    else
        results = results + 1
    end
    return list
end

local function let_go(list)
    for i = 1, list.n or #list do
        local value <const> = list[i]
        if type(value) == "userdata" and io.type(value) == nil
            or type(value) == "table" and not rawequal(value, mb) and getmetatable(value) then
            let_go_one(value)
        end
    end
end

local SPOILED <const> = {} -- ends an example after the call

-- Runs the example of a function, whose first call gets a wrong argument.
local function spoil(name, f, example, number)
    local env = setmetatable({}, {__index = _G})
    local function stand_in(...)
        local args, texts = spoiled(table.pack(...), declaration_of(f, name))
        local label = ("%s(%s) [%d]"):format(name, table.concat(texts, ", "), number)
        let_go(call(name, label, f, args))
        let_go(args)
        error(SPOILED)
    end
    local module, key = name:match "^([%w_]+)%.([%w_]+)$"
    local changed = module and {[module] = setmetatable({[key] = stand_in}, {__index = mb[module],
        __call = type(mb[module]) == "table" and function(_, ...) return mb[module](...) end})}
        or {[name] = setmetatable({}, {__index = type(f) == "table" and f or nil,
            __call = function(_, ...) return stand_in(...) end})}
    env.mb = setmetatable(changed, {__index = mb})
    local ok, err = pcall(compiled(example), env)
    if not ok and err ~= SPOILED then -- as when the budget is too small for it
        out:write(("NOTE the example of %s ends: %s\n"):format(name, (tostring(err):gsub("\n.*",
            ""))))
    end
    for _, value in pairs(env) do
        let_go {value}
    end
end

-- Values that are no object of a class of Moonbeam's, or of another one.
local RECEIVERS <const> = {"nil", "5", '"x"', "{}", "mb", "io.stdout", "f32 4 x 6", "a tag",
    "a closed volume"}
VALUES["5"] = function() return 5 end

local function arguments_of(declaration, nearly)
    if declaration and nearly then
        return nearly_right(declaration)
    end
    return any_arguments(declaration)
end

-- A call of a method with this receiver.
local function call_method(entry, receiver, text, number)
    local args, texts = arguments_of(entry.declaration, draw() < 0.5)
    table.insert(args, 1, receiver)
    table.insert(texts, 1, text)
    if receiver == nil then -- also without an argument
        args.n = draw() < 0.5 and -1 or args.n
    end
    args.n = args.n + 1
    for i = #texts, args.n + 1, -1 do
        texts[i] = nil
    end
    local label = ("%s(%s) [%s]"):format(entry.name, table.concat(texts, ", "), number)
    let_go(call(entry.name, label, entry.f, args))
    let_go(args)
end

local function seed(name, number)
    draw = random_numbers(SEED * 7919 + key_of(name) + number * 104729)
    draw()
end

-- Calls a method with what is none of its objects, and with an object that is closed.
local function try_receivers(entry)
    for i, name in ipairs(RECEIVERS) do
        seed(entry.name, i)
        call_method(entry, VALUES[name](), name, "receiver " .. i)
    end
    local object = OBJECTS[entry.object]()
    let_go_one(object)
    call_method(entry, object, entry.object .. ", closed", "closed")
end

local function try(entry)
    local name, f = entry.name, entry.f
    local declaration = entry.declaration or declaration_of(f, name)
    local example = not entry.object and examples(name, mb.op.names[f] and name)
    for number = 1, CALLS do
        seed(name, number)
        local kind = draw()
        if example and kind < 0.45 then
            spoil(name, f, example, number)
        elseif entry.object then
            local object = OBJECTS[entry.object]()
            call_method(entry, object, entry.object, number)
            let_go_one(object)
        else
            local args, texts = arguments_of(declaration, kind < 0.75)
            local label = ("%s(%s) [%d]"):format(name, table.concat(texts, ", "), number)
            let_go(call(name, label, f, args))
            let_go(args)
        end
    end
    if entry.object and not name:find ":__" then
        try_receivers(entry)
    end
end

for _, entry in ipairs(functions) do
    try(entry)
    mb.collect()
end
local methods, classes = 0, 0
for _, entry in ipairs(functions) do
    methods = methods + (entry.object and 1 or 0)
end
for _ in pairs(known) do
    classes = classes + 1
end
out:write(("made %d calls of %d functions, %d of them with a result; %d are wrong\n"):format(calls,
    #functions, results, #wrong))
out:write(("%d of the functions are methods of %d classes; seed %d\n"):format(methods, classes,
    SEED))
