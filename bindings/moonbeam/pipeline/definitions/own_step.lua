--- Steps of one's own, guarded: what their functions return is checked where it is returned, and
-- an error in them names the step, with file and line.

local core = require "moonbeam.core"
local block_axis = require "moonbeam.pipeline.block".axis
local fail = require "moonbeam.internal.fail"
local own_function = require "moonbeam.plan.own_function"
local tables = require "moonbeam.internal.tables"

local own_step = {}

local function wrong(name, format, ...)
    fail("argument", "step " .. name, nil, format, ...)
end

local function text_of(value)
    if type(value) == "table" then
        local parts = {}
        for i = 1, math.min(#value, 4) do
            parts[i] = text_of(value[i])
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    return type(value) == "string" and ("'%s'"):format(core.error.printable(value))
        or tostring(value)
end

-- What a function of a definition returns; an error in it names step and function.
local function called(name, field, f, ...)
    local result = table.pack(pcall(core.unyielding, f, ...))
    if result[1] then
        return table.unpack(result, 2, result.n)
    end
    local problem = result[2]
    if own_function.yields(problem) then
        wrong(name, "its function %s yields (%s), which it must not do: return instead", field,
            own_function.place(f) or "a function in C")
    elseif type(problem) ~= "table" or not problem.code then
        wrong(name, "its function %s fails: %s", field, core.error.printable(tostring(problem)))
    elseif problem.code ~= "cancelled" then
        problem.op = "step " .. name
    end
    error(problem, 0)
end

local function is_whole(value, least)
    return math.tointeger(value) and (not least or value >= least)
end

-- ---- what the functions return ----

local checks = {}

function checks.needs(name, first, last)
    if not (is_whole(first) and is_whole(last) and first <= last) then
        wrong(name, "needs returns %s, %s; give the first and the last row that are needed, two "
            .. "whole numbers", text_of(first), text_of(last))
    end
    return math.tointeger(first), math.tointeger(last)
end

function checks.packet(name, count)
    if not is_whole(count, 1) then
        wrong(name, "packet returns %s; give how many rows it treats together, a whole number "
            .. "from 1", text_of(count))
    end
    return math.tointeger(count)
end

function checks.cuts(name, cuts)
    local good = type(cuts) == "table" and #cuts > 0
    for _, cut in ipairs(good and cuts or {}) do
        good = good and (cut == "rows" or cut == "frames")
    end
    if not good then
        wrong(name, "cuts is %s; give {\"rows\"}, {\"frames\"} or both", text_of(cuts))
    end
    return cuts
end

function checks.shape(name, shape)
    local good = type(shape) == "table" and #shape == 3
    for axis = 1, 3 do
        good = good and is_whole(shape[axis])
    end
    if not good then
        wrong(name, "shape returns %s; give a list of three extents", text_of(shape))
    end
    return shape
end

function checks.geometry(name, geometry)
    if type(geometry) ~= "table" or type(geometry.angles) ~= "table" or not geometry.cols then
        wrong(name, "geometry returns %s; give a changed copy of the one that it gets",
            type(geometry) == "table" and "a table without angles" or text_of(geometry))
    end
    return geometry
end

function checks.ways(name, ways)
    local good = type(ways) == "table" and #ways > 0
    for _, way in ipairs(good and ways or {}) do
        good = good and type(way) == "table" and type(way.options) == "table"
    end
    if not good then
        wrong(name, "ways returns %s; give a list of tables {options = ...}", text_of(ways))
    end
    return ways
end

local function kind_check(field)
    return function(name, kind)
        if type(kind) ~= "table" then
            wrong(name, "%s returns %s; give {quantity = ..., layout = ...}", field, text_of(kind))
        end
        return kind
    end
end
checks.takes, checks.gives = kind_check "takes", kind_check "gives"

-- A value that was measured is one of those that the plan was made for.
local function check_value(name, value, bounds)
    local low, high = table.unpack(bounds)
    local outside = type(value) == "number" and type(high) == "number" and #bounds == 2
        and not (value >= low and value <= high)
    if type(value) ~= type(low) or value ~= value or outside then
        wrong(name, "measure returns %s, and bounds %s: the plan holds for values between them "
            .. "alone", text_of(value), text_of(bounds))
    end
end

function checks.bounds(name, bounds)
    if type(bounds) ~= "table" or #bounds == 0 then
        wrong(name, "bounds returns %s; give {low, high}, or a list of values", text_of(bounds))
    end
    return bounds
end

-- ---- run ----

-- Raises where a step has left other data than it says. A measuring step sees some frames alone,
-- `frames` of them.
local function check_data(name, block, step, frames)
    local data, uses = block.data, step.def.uses or {}
    if type(data) ~= "userdata" or not pcall(function() return data.shape[1] end) then
        wrong(name, "run leaves no array in block.data; put one there by block:replace(array)")
    end
    local axis, first, last = block_axis(block.cut, step.kind.layout), block.rows[1], block.rows[2]
    local expected = {table.unpack(step.shape)}
    if step.kind.layout == "frames" and frames ~= step.shape_before[1] then
        expected[1] = step.shape[1] == step.shape_before[1] and frames or data.shape[1]
    end
    expected[axis] = last - first + 1
    local found = table.concat(data.shape, " x ")
    -- Where values that were measured decide, step.shape is the largest one.
    if data.dtype ~= step.dtype or #uses == 0 and found ~= table.concat(expected, " x ") then
        wrong(name, "run leaves %s %s; shape and gives say %s %s", data.dtype,
            found, step.dtype, table.concat(expected, " x "))
    end
end

-- ---- guards ----

--- Puts guards around the functions of a definition (in place). Returns it.
function own_step.guard(def)
    local name = def.name
    for field, check in pairs(checks) do
        local f = def[field]
        if type(f) == "function" then
            def[field] = function(...)
                return check(name, called(name, field, f, ...))
            end
        end
    end
    if type(def.cuts) == "table" then
        checks.cuts(name, def.cuts)
    end
    def.guarded = true
    local run, measure = def.run, def.measure
    if run then
        def.run = function(block, ...)
            local frames = block.data.shape[1]
            called(name, "run", run, block, ...)
            check_data(name, block, block.step, frames)
        end
    end
    if measure then
        local bounds, found = def.bounds, nil
        def.bounds = function(...)
            found = bounds(...)
            return found
        end
        def.measure = function(view, options, step)
            local value, verdict = called(name, "measure", measure, view, options, step)
            if not core.dry.on() then
                check_value(name, value, found)
            end
            return value, verdict
        end
    end
    return def
end

--- Watches what those of these steps that are one's own keep of what they allocate. Returns nil if
-- none is, or a function for after the last block: it returns a list of texts, one for each step
-- that keeps arrays.
function own_step.watch(steps, devices)
    local labels = {}
    for _, step in ipairs(steps) do
        labels[step.label] = step.def.guarded
    end
    if next(labels) == nil then
        return nil
    end
    local kept = own_function.watch(labels, devices)
    return function()
        return tables.mapped(kept(), function(each)
            return ("step %s %s: the plan counts what a step makes for one block only; let it "
                .. "release what it makes"):format(each.tag, each.text)
        end)
    end
end

return own_step
