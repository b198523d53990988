-- How the work is cut: which rows of the inputs are needed for rows of the result, how many rows
-- are treated together, and the call for a block. For operators this follows from the descriptor,
-- for functions from the options.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local op = require "moonbeam.op"

local cut = {}

local OP <const> = "chunked"

--- The name of an operator that is given by name or as its function; nil for any other function.
function cut.operator_name(fn)
    return type(fn) == "string" and fn or op.names[fn]
end

-- ---- operators ----

local function spec_of(source)
    return {source.dtype, table.unpack(source.shape)}
end

-- The inputs as specs, by name or number.
local function specs_of(given)
    local specs = {}
    for key, source in pairs(given.by) do
        specs[key] = spec_of(source)
    end
    return specs
end

local function split_along(name, known, axis)
    local axes = {}
    for _, split in ipairs(known.split) do
        if split.axis == axis then
            return split
        end
        axes[#axes + 1] = split.axis
    end
    fail("unsupported", OP, "axis", #axes == 0 and "%s cannot be cut: call it on the whole arrays"
        or "%s cannot be cut along axis %d of these arguments; it can along %s", name, axis,
        table.concat(axes, ", "))
end

-- The arguments of a call: required arguments by position, the others by name.
local function arguments_of(name, blocks, params)
    local positional, named, input = {}, {}, 0
    for _, arg in ipairs(core.op.describe(name).args) do
        local value
        if arg.kind == "in" or arg.kind == "inout" then
            input = input + 1
            value = blocks[arg.name] or blocks[input]
        elseif arg.kind ~= "out" then
            value = params[arg.name]
        end
        if arg.required and arg.kind ~= "out" then
            positional[#positional + 1] = value
        else
            named[arg.name] = value
        end
    end
    positional[#positional + 1] = named
    return table.unpack(positional)
end

--- The cut of an operator along an axis: {rows (of the result), result_axis, packet, combine, shape
-- and dtype (of the result), needs(first, last), call(blocks, block), skip(block): rows of a
-- block's result before the requested rows}. Sets along which axis each input is cut.
function cut.of_operator(name, given, options, device)
    local axis, params, specs = options.axis, options.params or {}, specs_of(given)
    local known = op.estimate(name, specs, params, {device = device})
    local split = split_along(name, known, axis)
    local result, packet = known.results[1], split.packet
    local self = {result_axis = split.result_axis, dtype = result.dtype, shape = result.shape,
        packet = (options.packet + packet - 1) // packet * packet, rows = split.rows,
        combine = split.result_axis and "none" or split.combine}
    local input = 0
    for _, arg in ipairs(core.op.describe(name).args) do
        if arg.kind == "in" or arg.kind == "inout" then
            input = input + 1
            local source = given.by[arg.name] or given.by[input]
            if source then
                source.axis = split.arrays[arg.name]
                source.uncut = source.uncut or not source.axis
            end
        end
    end
    local function piece(first, last)
        return op.piece(name, specs, params, {axis = axis, first = first, last = last,
            device = device})
    end
    function self.needs(first, last)
        local own = piece(first, last)
        return own.first, own.last
    end
    function self.skip(block)
        return piece(block.first, block.last).skip
    end
    function self.call(blocks, block)
        return op.run(name, arguments_of(name, blocks, piece(block.first, block.last).params))
    end
    return self
end

-- ---- functions ----

local function check_needs(needs, first, last)
    local low, high = needs(first, last)
    low, high = math.tointeger(low), math.tointeger(high)
    if not low or not high or low > high then
        fail("argument", OP, "needs", "needs(%d, %d) must return the first and the last row of "
            .. "input, not %s and %s", first, last, tostring(low), tostring(high))
    end
    return low, high
end

local function halo_of(halo)
    local before, after = halo, halo
    if type(halo) == "table" then
        before, after = halo[1], halo[2]
    end
    if math.type(before) ~= "integer" or math.type(after) ~= "integer" or before < 0
        or after < 0 then
        fail("argument", OP, "halo", "halo is a whole number of rows, or {before, after}")
    end
    return function(first, last)
        return first - before, last + after
    end
end

--- The cut of a function of blocks, as in of_operator. Shape and dtype of the result are not known
-- yet.
function cut.of_function(fn, options)
    local needs = options.needs or options.halo and halo_of(options.halo)
    return {result_axis = options.result_axis or options.axis, packet = options.packet,
        rows = options.rows, combine = options.combine or "none",
        needs = needs and function(first, last)
            return check_needs(needs, first, last)
        end or function(first, last)
            return first, last
        end,
        call = fn}
end

return cut
