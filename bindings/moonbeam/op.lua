-- Operators: list, describe, estimate, run, and every operator as a function. A function's name is
-- kept, so that help can be asked for the function itself.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

local op = {
    list = core.op.list,
    describe = core.op.describe,
    estimate = core.op.estimate,
    supported = core.op.supported,
    run = core.op.run,
    functions = {},
    names = setmetatable({}, { __mode = "k" }),
}

for _, name in ipairs(op.list()) do
    local f = core.op.closure(name)
    op.functions[name] = f
    op.names[f] = name
end

local UNIT = core.pool.round(1)
local PATTERNS = { projection = 1, sinogram = 2 }
local OPTIONS = {
    pattern = true, dim = true, dims = true, dtype = true, available = true, params = true,
    granularity = true,
    inputs = true, device = true,
}

local function check_options(name, options)
    if type(options) ~= "table" then
        fail("argument", "op.max_slices", nil,
            "give an operator's name and a table of options")
    end
    for key in pairs(options) do
        if not OPTIONS[key] then
            fail("argument", "op.max_slices", tostring(key), "unknown option '%s'",
                tostring(key))
        end
    end
    local axis = options.dim or PATTERNS[options.pattern]
    if math.type(axis) ~= "integer" or options.dim and options.pattern then
        fail("argument", "op.max_slices", "pattern",
            'give pattern = "projection" or "sinogram", or dim = a number of an axis')
    elseif type(options.dims) ~= "table" or axis < 1 or axis > #options.dims + 1 then
        fail("argument", "op.max_slices", "dims",
            "dims are the extents of the axes that are not cut, in their order")
    elseif options.inputs ~= nil and type(options.inputs) ~= "table" then
        fail("argument", "op.max_slices", "inputs",
            "inputs is a table of the other inputs, {dtype, extent, ...} by name or number")
    elseif not options.available then
        fail("argument", "op.max_slices", "available", "give the bytes available")
    end
    local axes = {}
    for _, split in ipairs(op.describe(name).split or {}) do
        axes[#axes + 1] = split.axis
        if split.axis == axis then
            return axis
        end
    end
    if #axes == 0 then
        fail("unsupported", "op.max_slices", "dim", "%s cannot be cut", name)
    end
    fail("unsupported", "op.max_slices", "dim", "%s cannot be cut along axis %d; it can along %s",
        name, axis, table.concat(axes, ", "))
end

-- The first input, and the others with their extents of -1 replaced.
local function specs_for(options, axis, count)
    local first = { options.dtype or "f32", table.unpack(options.dims) }
    table.insert(first, axis + 1, count)
    local inputs = { first }
    for key, spec in pairs(options.inputs or {}) do
        local copy = {}
        for i, value in ipairs(spec) do
            copy[i] = value == -1 and count or value
        end
        inputs[key] = copy
    end
    return inputs
end

local function spec_bytes(spec)
    local bytes = core.pool.element_bytes(spec[1])
    for i = 2, #spec do
        bytes = bytes * spec[i]
    end
    return bytes
end

-- Bytes of all slots that are in use at the same time, at most.
local function bare_scratch(slots)
    local most = 0
    for _, slot in ipairs(slots) do
        local sum = 0
        for _, other in ipairs(slots) do
            if other.first <= slot.first and slot.first <= other.last then
                sum = sum + other.bytes
            end
        end
        most = math.max(most, sum)
    end
    return most
end

-- How many slices of a dimension an operator can take at a time: the number n for which its inputs
-- with n slices, its results and its scratch still fit. It is the true number: n slices run in that
-- many bytes and n + 1 do not. A halo that the operator needs is part of the n. Options:
--   pattern      "projection" (axis 1) or "sinogram" (axis 2), or
--   dim          the axis of the first input that is cut
--   dims         the extents of its other axes, in their order
--   dtype        of the first input (default "f32")
--   available    bytes, or "8G"
--   params       the operator's parameters
--   inputs       its other inputs by name or number, {dtype, extent, ...}; -1 stands for n
--   granularity  1: bare bytes are counted. Otherwise (default) what the pool really takes
--   device       whose FFT work areas count (default: the default device)
-- Returns n (0: not even one), the dtype of the first result, the bytes that n slices take, for a
-- planned device what that rests on (else nil), and how many of the n a piece needs before and
-- after its own slices: inside an array n slices give n - before - after slices of the result.
function op.max_slices(name, options)
    local axis = check_options(name, options)
    local available = core.device.bytes(options.available)
    local bare = options.granularity == 1
    if options.granularity and not bare and options.granularity ~= UNIT then
        fail("argument", "op.max_slices", "granularity",
            "granularity is 1 (bare bytes) or %d (what the pool takes)", UNIT)
    end
    local dtype, basis, before, after

    local function need(count)
        local inputs = specs_for(options, axis, count)
        local known = op.estimate(name, inputs, options.params, { device = options.device })
        dtype, basis = known.results[1] and known.results[1].dtype or inputs[1][1], known.basis
        for _, split in ipairs(known.split) do
            if split.axis == axis then
                before, after = split.before, split.after
            end
        end
        local bytes = bare and bare_scratch(known.slots) or known.peak
        for _, spec in pairs(inputs) do
            bytes = bytes + (bare and spec_bytes(spec) or core.pool.round(spec_bytes(spec)))
        end
        for _, result in ipairs(bare and known.results or {}) do
            bytes = bytes + result.bytes
        end
        return bytes
    end

    local first = need(1)
    if first > available then
        return 0, dtype, 0, basis, before, after
    end
    -- Its first input alone bounds the number of slices.
    local per_slice = spec_bytes(specs_for(options, axis, 1)[1])
    local high = per_slice > 0 and available // per_slice + 1 or 1 << 31
    local low = 1
    while high - low > 1 do
        local middle = (low + high) // 2
        if need(middle) <= available then
            low = middle
        else
            high = middle
        end
    end
    local bytes = need(low) -- the halo may depend on the number
    return low, dtype, bytes, basis, before, after
end

return declared.module(op, "op")
