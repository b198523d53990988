-- FFT sizes, work areas and plan caches, and transforms over named axes with the conventions of
-- numpy.fft. This module can be called: it is the operator `fft`. The operators fft, rfft and irfft
-- transform the last one to three axes and are what to use where memory counts; the functions here
-- take any axes, for which they may need a copy with those axes last.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local op = require "moonbeam.op"

local fft = {}
for _, name in ipairs {"drop", "library", "library_bytes", "limit", "work"} do
    fft[name] = core.fft[name]
end

local plans_metatable = {__tostring = function(list)
    local bytes, lines = core.device.format_bytes, {}
    for i, plan in ipairs(list) do
        lines[i] = ("%-11s %s, batch %d%s: work area %s, library %s%s"):format(plan.kind,
            table.concat(plan.shape, " x "), plan.batch, plan.in_place and ", in place" or "",
            bytes(plan.work_bytes), bytes(plan.library_bytes), plan.in_use and ", in use" or "")
    end
    lines[#lines + 1] = ("%d plan%s, %s%s"):format(#list, #list == 1 and "" or "s",
        bytes(list.library_bytes), list.limit and " of at most " .. bytes(list.limit) or "")
    return table.concat(lines, "\n")
end}

--- The plans in the cache as a list, the latest used first, of {kind, shape, batch,
-- in_place, work_bytes, library_bytes, in_use, last_use}. The list also has `count`,
-- `library_bytes` (what the library holds for all of them) and `limit`. Its text is a table.
-- A work area belongs to a call, not to a plan: plans hold library_bytes only.
function fft.plans(device)
    return setmetatable(core.fft.plans(device), plans_metatable)
end

local function explanation(n, size, list, basis, axis)
    local chosen
    for _, candidate in ipairs(list) do
        chosen = candidate.size == size and candidate or chosen
    end
    local lines = {basis and ("size %d for %d (%s), times %s:"):format(size, n, axis, basis)
        or ("size %d for %d, by smoothness:"):format(size, n)}
    for _, candidate in ipairs(list) do
        local time = candidate.size * candidate.ps / (size * chosen.ps)
        local mark = candidate == chosen and "  <-" or ""
        if basis then
            lines[#lines + 1] = ("  %6d  %6.2f ps a point  %5.2f x the time  %s work area  %5.2f "
                .. "x the memory%s"):format(
                candidate.size, candidate.ps, time, candidate.work > 0 and "with" or "  no",
                candidate.size * (2 + candidate.work) / (size * (2 + chosen.work)), mark)
        else
            lines[#lines + 1] = ("  %6d  relative cost %.2f%s"):format(candidate.size, time, mark)
        end
    end
    if basis then
        lines[#lines + 1] = "<- has the least product of time and memory (data, as much again, "
            .. "and the work area)"
    end
    return table.concat(lines, "\n")
end

--- The size >= n that is best for a transform on the device: even, with no prime factor above 7.
-- On GPUs the one with the least product of time and memory, by measured times and work areas of
-- real rows, or of an axis above them; on the host by smoothness alone.
-- Returns the size; with explain also the reason as text, and the candidates: a list of {size =, ps
-- = picoseconds per point, work = 1 where a work area as large as the data is needed}.
function fft.good_size(n, options)
    local size, list, basis = core.fft.choose_size(n, {device = options.device,
        axis = options.axis})
    if not options.explain then
        return size
    end
    return size, explanation(n, size, list, basis, options.axis), list
end

--- Extents >= least (a list of one to three) for a real transform over all axes: as good_size, but
-- for the axes together. On GPUs one axis that needs a work area needs it for everything.
function fft.good_grid(least, options)
    return core.fft.choose_grid(least, options.given or {}, {device = options.device})
end

-- The axes that `given` names (default: all), as a list from 1.
local function axes_of(what, a, given)
    local axes, seen = {}, {}
    if given == nil then
        for i = 1, a.rank do
            axes[i] = i
        end
        return axes
    end
    for i, axis in ipairs(type(given) == "table" and given or { given }) do
        local number = math.tointeger(axis)
        local index = number and (number < 0 and a.rank + 1 + number or number)
        if not index or index < 1 or index > a.rank or seen[index] then
            fail("argument", what, "axes",
                "axes names different axes of 1 to %d, or -1 to -%d from the end; element %d is %s",
                a.rank, a.rank, i, tostring(axis))
        end
        seen[index] = true
        axes[i] = index
    end
    if #axes == 0 then
        fail("argument", what, "axes", "axes is empty; name at least one")
    end
    return axes
end

-- The array with the axes last: itself and true where they are, or a dense copy; and how to permute
-- back.
local function last(a, axes)
    local chosen, order, inverse, plain = {}, {}, {}, true
    for _, axis in ipairs(axes) do
        chosen[axis] = true
    end
    for i = 1, a.rank do
        if not chosen[i] then
            order[#order + 1] = i
        end
    end
    table.move(axes, 1, #axes, #order + 1, order)
    for i, axis in ipairs(order) do
        inverse[axis] = i
        plain = plain and i == axis
    end
    if plain then
        return nil
    end
    local view <close> = a:permute(table.unpack(order))
    return view:copy(), inverse
end

-- Calls transform(array, owned) with the axes last; its result with the axes in their places again.
local function over(a, axes, transform)
    local moved, inverse = last(a, axes)
    if not moved then
        return transform(a, false)
    end
    local dense <close> = moved
    local result <close> = transform(dense, true)
    local back <close> = result:permute(table.unpack(inverse))
    return back:copy()
end

-- Complex transforms: the order of axes does not matter, and any number of them can be taken three
-- at a time.
local function complex(what, a, options, inverse)
    local axes = axes_of(what, a, options.axes)
    table.sort(axes)
    local current, mine = a, false
    if a.dtype ~= "c64" then
        current, mine = op.run("convert", a, "c64"), true
    end
    for first = #axes, 1, -3 do
        local group = table.move(axes, math.max(1, first - 2), first, 1, {})
        local _ <close> = mine and current or nil
        current, mine = over(current, group, function(array, owned)
            local settings = { axes = #group, inverse = inverse, normalize = options.normalize }
            if owned then
                settings.out = array
                op.run("fft", array, settings)
                return array:view()
            end
            return op.run("fft", array, settings)
        end), true
    end
    return current
end

--- Complex transform over named axes (default all): fft.fftn(a [, {axes =}]). A real array becomes
-- complex first. c64.
function fft.fftn(a, options)
    return complex("fft.fftn", a, options, false)
end

--- Its inverse, divided by the number of points unless normalize = false: fft.ifftn(a [, {axes =,
-- normalize =}]). c64.
function fft.ifftn(a, options)
    return complex("fft.ifftn", a, options, true)
end

-- The named axes with the last one, which is halved, at the end; the others in their order. At most
-- three.
local function real_axes(what, a, options)
    local axes = axes_of(what, a, options.axes)
    if #axes > 3 then
        fail("argument", what, "axes",
            "a real transform has at most three axes, not %d: take the others with fft.fftn", #axes)
    end
    local halved = table.remove(axes)
    table.sort(axes)
    axes[#axes + 1] = halved
    return axes
end

--- Real-to-complex transform: fft.rfftn(a [, {axes =}]). The last axis named has n/2 + 1 elements
-- in the result. c64.
function fft.rfftn(a, options)
    local axes = real_axes("fft.rfftn", a, options)
    return over(a, axes, function(array)
        return op.run("rfft", array, { axes = #axes })
    end)
end

--- Its inverse: fft.irfftn(a [, {axes =, n =, normalize =}]). n: samples along the last axis named
-- (default the even number). f32.
function fft.irfftn(a, options)
    local axes = real_axes("fft.irfftn", a, options)
    return over(a, axes, function(array, owned)
        return op.run("irfft", array, { axes = #axes, n = options.n, normalize = options.normalize,
            consume = owned })
    end)
end

local function shift(what, a, options, sign)
    local amounts = {}
    for i = 1, a.rank do
        amounts[i] = 0
    end
    for _, axis in ipairs(axes_of(what, a, options.axes)) do
        amounts[axis] = sign * (a.shape[axis] // 2)
    end
    return op.run("roll", a, amounts, { out = options.out })
end

--- Brings element 1 (the zero frequency) to the middle, n/2 (rounded down) elements on:
-- fft.fftshift(a [, {axes =, out =}]).
function fft.fftshift(a, options)
    return shift("fft.fftshift", a, options, 1)
end

--- Undoes fftshift, for odd extents too.
function fft.ifftshift(a, options)
    return shift("fft.ifftshift", a, options, -1)
end

local DEVICE = {"device", "device", "where the transform runs", usual = "the default device"}
local AXES = {"axes", "any", "the axes, a number or a list; negative: from the end", usual = "all"}
local NORMALIZE = {"normalize", "boolean", "divide by the number of points", default = true}
local FORWARD = {"a: array", declared.options(AXES)}
local COMPLEX = {"a: array", declared.options(AXES, NORMALIZE)}
local SHIFT = {"a: array", declared.options(AXES, {"out", "array", "the array for the result"})}

return declared.module(fft, "fft", {
    fftn = COMPLEX, ifftn = COMPLEX, rfftn = FORWARD, fftshift = SHIFT, ifftshift = SHIFT,
    irfftn = {"a: array", declared.options(AXES, NORMALIZE,
        {"n", "count", "samples along the last axis named", usual = "the even number"})},
    plans = "device: device?",
    good_size = {"n: any", declared.options(DEVICE,
        {"axis", "choice", "row: the last axis; column: one above it",
            choices = {"row", "column"}, default = "row"},
        {"explain", "boolean", "return the reason and the candidates, too"})},
    good_grid = {"least: any", declared.options(DEVICE,
        {"given", "table", "extents with given[i] stay as they are"})},
}, function(_, ...)
    return op.run("fft", ...)
end)
