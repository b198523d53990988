--- The options of the iterative methods for those who choose one of them by name: the union of what
-- the steps have, for mb.recon and the command line.

local catalog = require "moonbeam.pipeline.catalog"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local iterative = require "moonbeam.pipeline.iterative"
local step_options = require "moonbeam.pipeline.definitions.step_options"

local method_options = {}

-- Options that a reconstruction has whatever its method; and sweep, which makes several sections
-- with stores between them: that takes a recipe.
local LEFT_OUT <const> = {center = true, circle = true, scale = true, size = true, sweep = true}

-- What would be mistaken for something else beside the options of a whole run.
local LONG_NAMES <const> = {overlap = "slab_overlap"}

local function definition(method)
    return catalog.new():find(method)
end

-- "fista and admm_tv"; "an iterative method" if all of them have it.
local function owners(methods)
    if #methods == #iterative.names then
        return "an iterative method"
    end
    local last = methods[#methods]
    local others = table.concat(methods, ", ", 1, #methods - 1)
    return others == "" and last or others .. " and " .. last
end

-- "default 10; sirt 100", if the methods differ.
local function default_of(option)
    local texts, common = {}, nil
    for _, method in ipairs(option.methods) do
        local entry = definition(method).options[option.own]
        local value = entry.default
        local text = value == nil and entry.usual or value ~= nil
            and tostring(math.tointeger(value) or value) or nil
        common = common or text
        if text and text ~= common then
            texts[#texts + 1] = ("%s %s"):format(method, text)
        end
    end
    table.insert(texts, 1, common)
    return texts[1] and table.concat(texts, "; ")
end

local function made()
    local list = {}
    for _, method in ipairs(iterative.names) do
        for _, entry in ipairs(definition(method).options) do
            local name = LONG_NAMES[entry.name] or entry.name
            if not LEFT_OUT[name] then
                if not list[name] then
                    list[name] = {name = name, own = entry.name, entry = entry, methods = {}}
                    list[#list + 1] = list[name]
                end
                table.insert(list[name].methods, method)
            end
        end
    end
    for _, option in ipairs(list) do
        option.of, option.default = owners(option.methods), default_of(option)
    end
    return list
end

--- The options, in the order of the methods, also by name: {name (in a reconstruction), own (in the
-- step), entry (its declaration), methods (that have it), of (those in words), default (a text)}.
method_options.list = made()

--- The declarations for a function that has `method` as an option.
function method_options.declarations()
    local list = {}
    for i, option in ipairs(method_options.list) do
        list[i] = declared.options {option.name, "any", ("of %s: %s"):format(option.of,
            option.entry.doc), usual = option.default}
    end
    return declared.options(table.unpack(list))
end

--- What is wrong with the value of an option of this method, as a sentence about `shown` (how the
-- reader writes it), or nil. An option that it does not have is wrong with any value.
function method_options.problem(method, name, value, shown)
    local option = method_options.list[name]
    local entry = iterative.is(method) and definition(method).options[option.own]
    if not iterative.is(method) then
        local one = (shown:find "^%-%-" and "--method " or "method ") .. option.methods[1]
        return ("%s is for %s"):format(shown, option.methods[2] and ("%s, such as %s"):format(
            option.of, one) or one)
    elseif not entry then
        return ("%s is for %s; method %s does not have it: leave it out"):format(shown, option.of,
            method)
    end
    local problem = step_options.problem(entry, value)
    return problem and shown .. problem:sub(#entry.name + 1)
end

--- The entry of a recipe for a method, with its own options among those of a reconstruction, which
-- are checked. A direct method has none.
function method_options.step(method, settings)
    local step = {method}
    for _, option in ipairs(method_options.list) do
        local value = settings[option.name]
        local problem = value ~= nil and method_options.problem(method, option.name, value,
            option.name)
        if problem then
            fail("argument", "recon.plan", option.name, "%s", problem)
        end
        step[option.own] = value
    end
    return step
end

return method_options
