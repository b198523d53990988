--- What the options of a library function are called on a command line.
--
-- The library writes "the option NAME", "the option NAME = VALUE" or "the option NAME ('A' or 'B')"
-- in its messages, and puts the name of a wrong argument into the error. An option of a command
-- line says in its record which of these it is: `library`, a name, "NAME = VALUE", or a list of
-- them (default: its own name). So a message is in the words of whoever reads it.

local core = require "moonbeam.core"

local surface = {}

--- Where the names of options (surface.names) have which of them were given.
surface.GIVEN = {}

-- The option of a command line as a user types it.
local function typed(option)
    return "--" .. option[1]
end

--- The names that library functions have for these options: {name = option}. `more` has other
-- texts by name.
function surface.names(options, more)
    local names = {}
    for _, option in ipairs(options) do
        local own = option.library
        if own == nil then
            own = (option[1]:gsub("-", "_"))
        end
        for _, name in ipairs(type(own) == "table" and own or {own or nil}) do
            names[name] = not option.positional and option or nil
        end
    end
    for name, text in pairs(more or {}) do
        names[name] = text
    end
    return names
end

local function text_of(option)
    return type(option) == "string" and option or option and typed(option)
end

-- `NAME = VALUE` in the words of the command line; nil if it has no such option. A switch has no
-- value.
local function assigned(names, name, value)
    local exact = names[name .. " = " .. value]
    local option = exact or names[name]
    local text = text_of(option)
    if not text then
        return nil
    elseif type(option) == "string" or not option.value then
        return text
    end
    return text .. " " .. value
end

--- "float32" for "f32": the names of types that users of commands know.
surface.TYPES = {u8 = "uint8", u16 = "uint16", u32 = "uint32", i8 = "int8", i16 = "int16",
    i32 = "int32", i64 = "int64", f16 = "float16", f32 = "float32", f64 = "float64",
    c64 = "complex64", c128 = "complex128"}

-- A text with the long names of types, but for what is quoted or a part of a name.
local function long_types(text)
    return (text:gsub("%f[^%s(](%a+%d+)%f[%s),:;]", surface.TYPES))
end

--- A message of a library function in the words of the command line.
function surface.spoken(text, names)
    text = long_types(text .. " "):sub(1, -2)
    text = text:gsub("the option ([%w_]+) = ['\"]?([%w_]+)['\"]?", function(name, value)
        return assigned(names, name, value)
    end)
    text = text:gsub("the option ([%w_]+) %(('[^)]*)%)", function(name, values)
        return assigned(names, name, (values:gsub("'([^' ]+)'", "%1")))
    end)
    return (text:gsub("the option ([%w_]+)", function(name)
        return text_of(names[name])
    end))
end

-- A size that can be typed and is no smaller: 97812345 -> "97.9M".
local function size_text(bytes)
    for _, unit in ipairs {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}} do
        if bytes >= unit[2] then
            local value = bytes / unit[2]
            local step = value >= 100 and 1 or value >= 10 and 0.1 or 0.01
            return ("%.4g%s"):format(math.ceil(value / step) * step, unit[1])
        end
    end
    return tostring(bytes)
end

-- The one line of an error about memory: the problem, and what can be typed.
local function budget_message(problem, names)
    local enough, option = problem.enough, names.budget
    if not (enough and enough > 0 and problem.problem and option) or problem.remedy
        or problem.total and enough > problem.total then
        return problem.message
    end
    return ("%s; give %s %s or more (%d bytes)%s"):format(problem.problem,
        problem.option or text_of(option),
        size_text(enough), enough, problem.also or "")
end

-- `NAME = VALUE` of a step in a message, as forms of patterns.
local ASSIGNED <const> = {"(%.%.%.)", '"([%w_-]+)"', '"([%w_-]+ [%w_ -]+)"', "(%-?%d[%d.]*)"}

-- The message of a step of a recipe where its options are set by --set: `energy = ...` is --set
-- paganin.energy=VALUE, `method = "mean"` is --set flat_field.method=mean; `input = "counts"` is
-- --input counts, which is no option of a step. Where the options of the command make the steps,
-- `interpolation = "mean"` is --flat-interpolation mean.
local function set_options(message, step, names, of_command)
    local name_of_step = step and names.set and step:match "[%w_]+$"
    local function written(name, value)
        local shown, option = value == "..." and "VALUE" or value, names[name]
        if value:find " " then
            shown = '"' .. value .. '"'
        end
        local own = type(option) == "table" and option.alone and option
            or of_command and (option or names["flat_" .. name])
        if of_command or own then
            return own and ("%s %s"):format(text_of(own), shown) or nil
        end
        return ("%s %s.%s=%s"):format(text_of(names.set), name_of_step, name, shown)
    end
    for _, form in ipairs(name_of_step and ASSIGNED or {}) do
        message = message:gsub("%f[%w_]([%a_][%w_]*) = " .. form, written)
    end
    return message
end

--- An error object in the words of the command line. The source line is removed, because a line of
-- the command does not help its user; so are the functions, which users do not know, unlike the
-- steps of a recipe.
function surface.speak(problem, names)
    local message = problem.code == "budget" and budget_message(problem, names)
        or problem.message
    message = surface.spoken(message, names)
    local step = problem.op and problem.op:find "^step " and problem.op or nil
    local of_command = names.recipe and not (names[surface.GIVEN] or {}).recipe
    message = set_options(message, step, names, of_command)
    if of_command then
        step = nil -- no user has written it: the options of the command make the steps
    end
    local arg = problem.arg
    local option = not step and type(arg) == "string" and text_of(names[arg])
    if option then
        local from, to = message:find(arg, 1, true)
        if from == 1 and message:find("^ ", to + 1) then
            message = option .. message:sub(to + 1)
        end
    end
    problem.arg = message == problem.message and arg or nil -- the message names it
    problem.where, problem.message, problem.op = nil, message, step
end

--- The line that tells an error, without the lines of figures that may follow.
function surface.line(problem)
    return (tostring(problem):match "^[^\n]*")
end

--- What the library calls the type with this name.
function surface.library_type(name)
    for short, long in pairs(surface.TYPES) do
        if long == name then
            return short
        end
    end
    return name
end

--- A length in meters in a unit people use: 1e-06 -> "1 um".
function surface.length(meters)
    for _, unit in ipairs {{"m", 1}, {"mm", 1e-3}, {"um", 1e-6}, {"nm", 1e-9}} do
        if math.abs(meters) >= 0.9995 * unit[2] or unit[1] == "nm" then
            return core.error.printable(("%.4g %s"):format(meters / unit[2], unit[1]))
        end
    end
end

--- Whole factors for maximum projections (view.projections) of a volume whose step in z is `ratio`
-- times its pixel: the smallest of at most 4 and 16 that are within 4 % of it, or else the nearest
-- ones. Returns sxy and sz.
function surface.stretch(ratio)
    local best, best_xy, best_z = math.huge, 1, 1
    for sxy = 1, 4 do
        local sz = math.max(1, math.min(16, math.floor(ratio * sxy + 0.5)))
        local off = math.abs(sz / sxy / ratio - 1)
        if off < best and best > 0.04 then
            best, best_xy, best_z = off, sxy, sz
        end
    end
    return best_xy, best_z
end

return surface
