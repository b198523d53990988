-- Operators: list, describe, estimate, run, and every operator as a function. A function's name is
-- kept, so that help can be asked for the function itself.

local core = require "moonbeam.core"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local largest = require "moonbeam.plan.largest"
local tables = require "moonbeam.internal.tables"

local op = {
    list = core.op.list,
    describe = core.op.describe,
    estimate = core.op.estimate,
    piece = core.op.piece,
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
local PATTERNS = { projection = { 1 }, sinogram = { 2 }, all = { 1, 2 } }

local function axes_of(options)
    local axes = options.dim and {options.dim} or PATTERNS[options.pattern]
    if not axes or options.dim and options.pattern then
        fail("argument", "op.max_slices", "pattern",
            'give pattern = "projection", "sinogram" or "all", or dim = a number of an axis')
    end
    arguments.list(options.dims, "op.max_slices", "dims",
        "the extents of the axes that are not cut")
    if axes[1] < 1 or axes[#axes] > #options.dims + 1 then
        fail("argument", "op.max_slices", "dims",
            "dims are the extents of the axes that are not cut, in their order")
    end
    return axes
end

-- "1", "1 (where not transformed)", ...: where an operator may be cut.
local function axes_text(descriptor)
    return table.concat(tables.mapped(descriptor.split, function(split)
        return split.axis .. (split.when and (" (where %s)"):format(split.when) or "")
    end), ", ")
end

-- What the estimate says of the cut along an axis.
local function split_along(known, descriptor, axis)
    for _, split in ipairs(known.split) do
        if split.axis == axis then
            return split
        end
    end
    if descriptor.uncut then
        fail("unsupported", "op.max_slices", "dim", "%s cannot be cut: %s", descriptor.name,
            descriptor.uncut)
    end
    local declared_there
    for _, split in ipairs(descriptor.split) do
        declared_there = declared_there or split.axis == axis
    end
    fail("unsupported", "op.max_slices", "dim", "%s cannot be cut along axis %d%s; it can along %s",
        descriptor.name, axis, declared_there and " with these arguments" or "",
        axes_text(descriptor))
end

-- The first input, and the others with their extents of -1 replaced.
local function specs_for(options, axis, count)
    local first = { options.dtype, table.unpack(options.dims) }
    table.insert(first, axis + 1, count)
    local inputs = { first }
    for key, spec in pairs(options.inputs or {}) do
        local copy = tables.mapped(spec, function(value) return value == -1 and count or value end)
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

-- Inputs and parameters for so many slices; those in the middle of the whole, if that is known.
local function arguments_for(name, options, axis, count)
    if not options.extent then
        return specs_for(options, axis, count), options.params
    end
    local whole = specs_for(options, axis, options.extent)
    local rows = options.rows[axis]
    local first = (rows - count) // 2 + 1
    local piece = op.piece(name, whole, options.params,
        { axis = axis, first = first, last = first + count - 1, device = options.device })
    return specs_for(options, axis, piece.last - piece.first + 1), piece.params
end

-- Whether so many slices, neighbors included, leave no packet of the result inside an array.
local function no_piece(count, split)
    local beside = split.before + split.after
    return beside > 0 and count - beside < split.packet
end

--- How many slices an operator can take at a time: the largest n whose inputs, results and scratch
-- fit: n slices run in that many bytes, and n + 1 do not. Rows that the operator needs beside its
-- own are part of the n.
-- Returns n (0: not even one, or not one packet of the result with its neighbors), the dtype of the
-- first result, the bytes that n slices take, the basis of that number for a planned device
-- (otherwise nil), how many of the n a piece needs before and after its own slices (inside an
-- array, n slices give n - before - after slices of the result), how many slices of the result are
-- treated together (the size of a piece is a multiple of that number), and how many slices fit as a
-- whole array, which has no neighbors.
op.max_slices = declared("op.max_slices", {
    {"name", "string", "an operator"},
    options = declared.options(
        {"pattern", "choice", "projection: axis 1 is cut; sinogram: axis 2; all: either, the "
            .. "smaller n", choices = {"projection", "sinogram", "all"}},
        {"dim", "count", "the axis of the first input that is cut, instead of pattern"},
        {"dims", "table", "the extents of its other axes, in their order", required = true},
        {"dtype", "string", "of the first input", default = "f32"},
        {"available", "bytes", "what there is", unit = "bytes", required = true},
        {"params", "table", "the operator's parameters"},
        {"extent", "count", "slices of the whole, where parameters count them (a shift for each "
            .. "projection, a shape); n is then of the result, and what n slices need is counted "
            .. "with them", min = 1},
        {"inputs", "table", "its other inputs by name or number, {dtype, extent, ...}; -1 is n"},
        {"granularity", "count", "1 counts bare bytes", usual = "what the pool really takes"},
        {"device", "device", "whose FFT work areas count", usual = "the default device"}),
}, function(name, options)
    local axes, descriptor = axes_of(options), op.describe(name)
    local available = core.device.bytes(options.available)
    options = setmetatable({ rows = {} }, { __index = options })
    local bare = options.granularity == 1
    if options.granularity and not bare and options.granularity ~= UNIT then
        fail("argument", "op.max_slices", "granularity",
            "granularity is 1 (bare bytes) or %d (what the pool takes)", UNIT)
    end

    local function need(axis, count)
        local inputs, params = arguments_for(name, options, axis, count)
        local known = op.estimate(name, inputs, params, { device = options.device })
        local split = split_along(known, descriptor, axis)
        local bytes = bare and bare_scratch(known.slots) or known.peak
        for _, spec in pairs(inputs) do
            bytes = bytes + (bare and spec_bytes(spec) or core.pool.round(spec_bytes(spec)))
        end
        for _, result in ipairs(bare and known.results or {}) do
            bytes = bytes + result.bytes
        end
        local result = known.results[1]
        return bytes, result and result.dtype or inputs[1][1], known.basis, split
    end

    local function along(axis)
        if options.extent then
            local known = op.estimate(name, specs_for(options, axis, options.extent),
                options.params, { device = options.device })
            options.rows[axis] = split_along(known, descriptor, axis).rows
        end
        -- Its first input alone bounds the number of slices.
        local per_slice = spec_bytes(specs_for(options, axis, 1)[1])
        local limit = options.rows[axis] or per_slice > 0 and available // per_slice or 1 << 31
        local count = largest(limit, function(n) return need(axis, n) <= available end)
        -- What lies beside a piece may depend on the number.
        local bytes, dtype, basis, split = need(axis, math.max(1, count))
        local n = not options.extent and no_piece(count, split) and 0 or count
        return {n, dtype, n > 0 and bytes or 0, basis, split, count}
    end

    local least, whole = nil, math.huge
    for _, axis in ipairs(axes) do
        local found = along(axis)
        whole = math.min(whole, found[6])
        least = least and least[1] <= found[1] and least or found
    end
    local split = least[5]
    return least[1], least[2], least[3], least[4], split.before, split.after, split.packet,
        whole
end)

return declared.module(op, "op")
