--- Checks of the arguments of functions written in Lua, with the operators' messages: the error
-- names the function, the argument, its value and what it must be. Declarations (declared.lua) use
-- these checks.

local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"

local arguments = {}

--- Is a value an array?
arguments.is_array = core.array.is_array

--- The name of the kind of a userdata, or nil.
function arguments.class_of(value)
    return (debug.getmetatable(value) or {}).__name
end

local SHOWN <const> = 200 -- bytes of a string

--- A value in a message: "missing", "NaN", "the string 'x'", "1.5", "a table", "a moonbeam.device".
-- The middle of a long string is left out.
function arguments.described(value)
    local kind = type(value)
    if kind == "string" then
        return ("the string '%s'"):format(#value <= SHOWN and value
            or value:sub(1, SHOWN // 2) .. "..." .. value:sub(-SHOWN // 4))
    elseif kind == "number" then
        return value ~= value and "NaN" or ("%.10g"):format(value)
    end
    return value == nil and "missing" or "a " .. kind
end

local described = arguments.described

--- `value` must be an array of `least` to `most` axes and not be empty; `layout` says what the axes
-- are.
function arguments.array(value, op, arg, least, most, layout)
    if not arguments.is_array(value) then
        fail("argument", op, arg, "%s is %s; give an array, %s", arg, described(value), layout)
    elseif value.rank < least or value.rank > most then
        fail("shape", op, arg, "%s has %s; give %s", arg, counted(value.rank, "axis", "axes"),
            layout)
    end
    for _, extent in ipairs(value.shape) do
        if extent == 0 then
            fail("shape", op, arg, "%s is empty (%s); give %s", arg,
                table.concat(value.shape, " x "), layout)
        end
    end
end

--- Whether a number lies in a range: {min, max}, or {above, below} with the ends excluded.
function arguments.within(value, range)
    local low, high = range.min or -math.huge, range.max or math.huge
    return type(value) == "number" and value >= low and value <= high
        and not (range.above and (value <= range.above or value == math.huge))
        and not (range.below and (value >= range.below or value == -math.huge))
end

--- The text of this range after "a number": " between 0 and 2", ", 0 or more".
function arguments.range_text(range)
    local low, high = range.above or range.min, range.below or range.max
    if low and high and high < math.huge then
        return (range.above and " between %g and %g" or range.below and " from %g to less than %g"
            or " from %g to %g"):format(low, high)
    end
    return low and (range.above and " above %g" or ", %g or more"):format(low) or ""
end

--- `value`, if given, must be a number in this range.
function arguments.number(value, op, arg, range)
    if value ~= nil and not arguments.within(value, range) then
        fail("argument", op, arg, "%s is %s; it must be a number%s", arg, described(value),
            arguments.range_text(range))
    end
end

--- `value`, if given, must be a whole number from `low` to `high`.
function arguments.count(value, op, arg, low, high)
    if value ~= nil and not (type(value) == "number" and math.tointeger(value) and value >= low
        and value <= high) then
        fail("argument", op, arg, "%s is %s; it must be a whole number%s", arg, described(value),
            high >= 1 << 53 and (", %d or more"):format(low)
            or (" from %d to %d"):format(low, high))
    end
end

--- `value`, if given, must be one of the names.
function arguments.name(value, op, arg, names)
    for _, name in ipairs(names) do
        if value == nil or value == name then
            return
        end
    end
    fail("argument", op, arg, "%s is %s; it must be %s or %s", arg, described(value),
        table.concat(names, ", ", 1, #names - 1), names[#names])
end

--- `value` must be a list of finite numbers, of length `count` if that is given. `what` says what
-- each number is for.
function arguments.list(value, op, arg, what, count)
    if type(value) ~= "table" then
        fail("argument", op, arg, "%s is %s; give a table of numbers, %s", arg, described(value),
            what)
    elseif count and #value ~= count then
        fail("shape", op, arg, "%s has %s; give %d, %s", arg, counted(#value, "number"),
            count, what)
    end
    for i = 1, rawlen(value) do
        local number = rawget(value, i)
        if type(number) ~= "number" or number ~= number or math.abs(number) == math.huge then
            fail("argument", op, arg, "element %d of %s is %s; it must be a finite number", i, arg,
                described(number))
        end
    end
end

--- `value` must be angles in radians: a table or an array of one axis, of length `count` if that is
-- given. The operators' checks of angles (a span of more than two turns is taken for degrees) are
-- made here, before anything runs.
function arguments.angles(value, op, arg, count)
    local is_array = arguments.is_array(value)
    if is_array then
        arguments.array(value, op, arg, 1, 1, "the angles, one per projection")
    elseif type(value) == "table" or not count then
        arguments.list(value, op, arg, "one per projection", count)
    elseif type(value) ~= "number" then -- a number is the angle of the one projection
        arguments.list(value, op, arg, "one per projection")
    end
    local n = count or is_array and value.shape[1] or #value
    if n == 0 or is_array and value.device.dry then
        return -- the operators say what is missing
    end
    local ok, problem = pcall(core.op.estimate, "backproject", {{"f32", n, 1}}, {angles = value})
    if not ok then
        if type(problem) == "table" then
            problem.op, problem.arg = op, arg
        end
        error(problem, 0)
    end
end

--- Checks an image and its point spread function, of one to three axes each, and the options of the
-- transform.
function arguments.blurred(image, psf, op, options)
    arguments.array(image, op, "image", 1, 3, "an image (z, y, x), (y, x) or (x)")
    arguments.array(psf, op, "psf", 1, 3, "a point spread function of as many axes as the image")
    if options.size ~= nil then
        arguments.list(options.size, op, "size", "the extents of the grid", image.rank)
    end
end

-- ---------------------------------------------------------------------------------------------
-- Signatures of public functions

local function field(value, name)
    return value[name]
end

-- A test for tables that have these fields, of these types. (Asking an object for a name that it
-- does not have may be an error.)
local function with(fields)
    return function(value)
        if type(value) ~= "table" then
            return false
        end
        for name, kind in pairs(fields) do
            local ok, found = pcall(field, value, name)
            if not ok or type(found) ~= kind then
                return false
            end
        end
        return true
    end
end

local function of_class(name)
    return function(value)
        return arguments.class_of(value) == name
    end
end

local function of_type(name)
    return function(value)
        return type(value) == name
    end
end

-- (math.tointeger takes the text of a number, too.)
local function is_whole(value)
    return type(value) == "number" and math.tointeger(value) ~= nil
end

local RESULT <const> = with {carry = "function", finish = "function", await = "function"}

-- Kinds of arguments: a test, and what the error tells the user to give.
local KINDS = {
    angles = {function(value)
        return type(value) == "table" or type(value) == "number"
            or arguments.is_array(value)
    end, "the angles in radians, a table or an array of one axis"},
    any = {function(value) return value ~= nil end, "a value"},
    block = {with {trim = "function", release = "function"}, "what mb.recon.frames returned"},
    boolean = {of_type "boolean", "true or false"},
    bytes = {function(value)
        return type(value) == "number" or type(value) == "string"
    end, "a number of bytes, or a size such as \"8G\""},
    array = {arguments.is_array, "an array"},
    callable = {function(value)
        local metatable = debug.getmetatable(value) or {}
        return type(value) == "function" or not arguments.is_array(value)
            and metatable.__call ~= nil and not metatable.is_module
    end, "a function"},
    choice = {of_type "string", "one of the names"},
    carrier = {of_class "moonbeam.carrier", "a carrier (mb.stream.carrier)"},
    counts = {function(value)
        return type(value) == "table" or type(value) == "string" or arguments.is_array(value)
    end, "what mb.histogram has counted, an array or a table of numbers"},
    count = {function(value)
        return is_whole(value) and value >= 0
    end, "a whole number"},
    dtype = {function(value)
        return type(value) == "string" and (pcall(core.pool.element_bytes, value))
    end, "u8, u16, i32, f16, f32, f64, c64 or c128"},
    device = {function(value)
        return type(value) == "string" or arguments.class_of(value) == "moonbeam.device"
    end, "a device or its name"},
    extents = {function(value)
        for i = 1, type(value) == "table" and #value or 0 do
            if not is_whole(value[i]) then
                return false
            end
        end
        return type(value) == "table" and #value > 0
    end, "a table of whole numbers, one for each axis"},
    list = {of_type "table", "a table of numbers"},
    lists = {function(value)
        for _, each in ipairs(type(value) == "table" and value or {}) do
            if type(each) ~= "table" then
                return false
            end
        end
        return type(value) == "table"
    end, "a list of tables"},
    ledger = {with {list = "table"}, "a ledger (mb.ledger, mb.dry_run)"},
    number = {of_type "number", "a number"},
    plan = {with {settings = "table", rows = "table", made = "table", chunk = "number",
        chunks = "number", volume = "table"}, "a plan (mb.recon.plan)"},
    range = {function(value)
        return type(value) == "table" and #value == 2 and is_whole(value[1])
            and is_whole(value[2])
    end, "{first, last}, two whole numbers"},
    result = {RESULT,
    "a result (mb.result.create)"},
    sink = {function(value)
        return type(value) == "function" or RESULT(value)
    end, "a result (mb.result.create), or a function of the slices"},
    pipeline = {of_class "moonbeam.pipeline", "a pipeline (mb.pipeline)"},
    progress = {with {started = "number", done = "number"}, "what mb.progress.new returned"},
    scan = {with {rows = "number", cols = "number", n_angles = "number"},
    "a scan (mb.scan.open, mb.scan.of_arrays)"},
    string = {of_type "string", "a string"},
    table = {of_type "table", "a table"},
    tiling = {with {candidates = "table"}, "a plan (mb.tiles.plan, mb.tiled_deconv.plan)"},
    times = {with {wall = "number", read = "number", upload = "number", compute = "number",
        download = "number", write = "number", read_bytes = "number", write_bytes = "number",
        raw_bytes = "number"}, "what mb.stream.run returned"},
    volume = {with {shape = "table", dtype = "string"},
    "a volume (mb.volumes.of_array, mb.images.open)"},
    writer = {with {volume = "function", finish = "function", close = "function"},
    "a file that is being written (mb.npy.create, mb.tiff.create, mb.images.create)"},
}

-- Checks of kinds that use more fields of an entry than its kind: (value, op, entry).
local CHECKS = {
    array = function(value, op, entry)
        arguments.array(value, op, entry.name, entry.rank[1], entry.rank[2], entry.doc)
    end,
    number = function(value, op, entry)
        arguments.number(value, op, entry.name, entry)
    end,
    count = function(value, op, entry)
        arguments.count(value, op, entry.name, entry.min or 0, entry.max or 1 << 53)
    end,
    list = function(value, op, entry)
        arguments.list(value, op, entry.name, entry.doc, entry.count)
    end,
    choice = function(value, op, entry)
        arguments.name(value, op, entry.name, entry.choices)
    end,
}

-- Raises an error unless `value` is one of the words that stand for a number, or a list of them.
local function word(value, op, entry)
    for _, name in ipairs(entry.words) do
        if value == name then
            return
        end
    end
    fail("argument", op, entry.name, "%s is %s; it must be %s%s, or \"%s\"", entry.name,
        described(value), entry.kind == "list" and "a table of numbers" or "a number",
        arguments.range_text(entry), table.concat(entry.words, "\", \""))
end

local MOST_CLASSES <const> = 8 -- one behind the other

-- Is a value an object of this class, or of one that inherits from it? `class` is an __index. A
-- class is none of its objects.
local function is_of(value, class)
    local metatable = debug.getmetatable(value)
    if type(value) == "table" and rawget(value, "__index") then
        return false
    end
    for _ = 1, MOST_CLASSES do
        local index = type(metatable) == "table" and rawget(metatable, "__index")
        if rawequal(index, class) then
            return true
        elseif type(index) ~= "table" then
            return false
        end
        metatable = debug.getmetatable(index)
    end
    return false
end

-- Raises an error unless `value` is an object of the entry's class.
local function object(entry, value, op)
    if not is_of(value, entry.class)
        and arguments.class_of(value) ~= "moonbeam." .. entry.kind then
        fail("argument", op, "self", "self is %s; it must be a %s that has this method: methods "
            .. "are called with a colon, as %s()", described(value), entry.kind, op)
    end
end

--- Raises an error unless `value` is what the entry of a declaration requires (declared.lua).
function arguments.entry(entry, value, op)
    if value == nil and entry.optional then
        return
    end
    local check, kind = CHECKS[entry.kind], KINDS[entry.kind]
    if entry.class then
        return object(entry, value, op)
    elseif entry.name == "self" and value == nil then
        fail("argument", op, "self", "methods are called with a colon, as %s()", op)
    elseif entry.name == "self" and arguments.class_of(value) == "moonbeam." .. entry.kind then
        return -- also of an object that is not complete yet
    end
    if entry.words and type(value) ~= (entry.kind == "list" and "table" or "number") then
        word(value, op, entry)
    elseif entry.rank or check and value ~= nil and entry.kind ~= "array" then
        check(value, op, entry)
    elseif not kind[1](value) then
        fail("argument", op, entry.name, "%s is %s; %s", entry.name, described(value),
            entry.kind == "any" and ("mb.help(\"%s\") says what it is"):format(op)
            or "give " .. kind[2])
    end
end

-- The wrapped function, by its wrapper.
local originals = setmetatable({}, {__mode = "k"})

--- Records that `public` wraps f; returns `public`.
function arguments.stands_before(public, f)
    originals[public] = f
    return public
end

--- The function that this one wraps directly, or the function itself.
function arguments.behind(f)
    return originals[f] or f
end

--- The innermost function, inside all wrappers.
function arguments.original(f)
    while originals[f] do
        f = originals[f]
    end
    return f
end

return arguments
