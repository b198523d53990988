--- Knowing before running: functions over operators are dry-run on devices that have the same
-- allocator and the same operators' plans, but no data. What is counted is what a run will take.
--
-- While a function is planned, nothing is done for real: the devices that are named give memory
-- of which only the bytes exist, the first of them is the default device, and arrays that the
-- function captured have shapes but no values. Memory that is asked for on any other device is an
-- error. That a value which does not exist equals a number (v:min() == 0) cannot be noticed: it
-- is false; other comparisons are errors (internal/unknown.lua).

local core = require "moonbeam.core"
local checks = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local in_a_row = require "moonbeam.plan.in_a_row"
local largest = require "moonbeam.plan.largest"
local unknown = require "moonbeam.internal.unknown"

local plan = {}

-- How deep arrays are looked for in the tables that a planned function returns.
local DEPTH = 4

local description = {__name = "moonbeam.description", __tostring = function(self)
    return ("%s %s, planned"):format(self.dtype, table.concat(self.shape, " x "))
end}

-- What a planned function returned, for after the plan: arrays as {dtype, shape, bytes}.
local function described(value, depth)
    if core.array.is_array(value) then
        return value.released and value
            or setmetatable({dtype = value.dtype, shape = value.shape, bytes = value.bytes},
                description)
    elseif type(value) ~= "table" or getmetatable(value) ~= nil or depth == 0 then
        return value
    end
    local copy = {}
    for key, member in next, value do
        copy[key] = described(member, depth - 1)
    end
    return copy
end

local function open(device)
    return core.device.open(device or core.device.default())
end

local end_dry_run = setmetatable({}, {__close = core.dry.finish})

-- What the devices have taken since `before`: {peak =, live =, reach =}.
local function taken(devices, before)
    local peak, live, reach, pinned = {}, {}, {}, 0
    for i, device in ipairs(devices) do
        local stats, _, pinned_peak = core.pool.stats(device), device:pinned()
        peak[device.id] = stats.live_peak - before[i].live
        live[device.id] = stats.live - before[i].live
        reach[device.id] = {stats.reach_arrays, stats.reach_scratch}
        pinned = pinned + pinned_peak - before[i].pinned
    end
    peak.pinned = pinned
    return {peak = peak, live = live, reach = reach}
end

-- Calls fn(devices ..., ...) while they are planned, each with `room` bytes beyond what is live
-- there (nil: as many as it takes). Returns {peak = bytes by device id and "pinned", live =,
-- reach =, results =}; or nil and the error.
local function dry_run(fn, devices, room, ...)
    core.dry.begin(devices, room)
    local _ <close> = end_dry_run
    local before, arguments = {}, {}
    for i, device in ipairs(devices) do
        before[i] = {live = core.pool.stats(device).live, pinned = (device:pinned())}
        arguments[i] = device
    end
    local formats <close> = unknown.formatted() -- luacheck: ignore
    local given = select("#", ...)
    table.move({...}, 1, given, #devices + 1, arguments)
    local results = table.pack(pcall(fn, table.unpack(arguments, 1, #devices + given)))
    if not results[1] then
        return nil, unknown.explained(results[2])
    end
    local made = taken(devices, before)
    for i = 2, results.n do
        results[i] = described(results[i], DEPTH)
    end
    made.results = table.pack(table.unpack(results, 2, results.n))
    return made
end

--- The memory that a function needs: plans fn(device, ...), which takes none.
--
-- There are no values: v:min() == 0 is false without a word (see mb.dry_run).
-- Returns {peak =, live =, reach =, pinned =, results =, basis =}: the most bytes that fn has at a
-- time beyond those that are live already, those that are left at the end, how far the pool is
-- taken from its low and its high end ({low, high}, for pool.activate), the most pinned host
-- memory, what fn returned (arrays as {dtype, shape, bytes}), and on a planned device what the
-- figures rest on.
-- Errors: those of fn; argument (fn asks for memory on another device: see plan.peaks).
plan.peak = declared("plan.peak", {
    {"fn", "callable", "a function of a device and more"},
    {"device", "device?", "where fn is planned", usual = "the default device"},
}, function(fn, device, ...)
    device = open(device)
    local made, err = dry_run(fn, {device}, nil, ...)
    if not made then
        error(err, 0)
    end
    return {peak = made.peak[device.id], live = made.live[device.id],
        reach = made.reach[device.id], pinned = made.peak.pinned, results = made.results,
        basis = device.basis}
end)

--- The memory that a function needs on several devices: plans fn(device, ..., ...) on those of the
-- list and the host.
-- Returns {peak =, live =, reach =, results =, basis =} as plan.peak, but peak, live and reach are
-- tables by device: {["cuda:0"] = 4096, host = 512}. peak.pinned is that of pinned host memory.
plan.peaks = declared("plan.peaks", {
    {"fn", "callable", "a function of the devices and more"},
    {"devices", "table", "a list of devices; the first one is the default device meanwhile"},
}, function(fn, devices, ...)
    if #devices == 0 then
        fail("argument", "plan.peaks", "devices", "devices must be a list of one device or more")
    end
    local list, seen, basis = {}, {}, {}
    for i, device in ipairs(devices) do
        list[i] = open(device)
        seen[list[i].id] = true
        basis[#basis + 1] = list[i].basis
    end
    local given = #list
    if not seen.host then
        list[given + 1] = open("host")
    end
    local made, err = dry_run(function(...)
        local arguments = {...}
        if #list > given then
            table.remove(arguments, #list)
        end
        return fn(table.unpack(arguments, 1, select("#", ...) - (#list - given)))
    end, list, nil, ...)
    if not made then
        error(err, 0)
    end
    made.basis = basis[1] and table.concat(basis, "\n")
    return made
end)

local function is_budget_error(err)
    return type(err) == "table" and err.code == "budget"
end

--- The largest n for which fn(device, n) stays within the available bytes, and its peak.
-- Returns 0 and the error if not even the first n fits.
plan.max_count = declared("plan.max_count", {
    {"fn", "callable", "a function of a device and n"},
    options = declared.options(
        {"device", "device", "where fn is planned", usual = "the default device"},
        {"available", "bytes", "what there is", unit = "bytes", usual = "what the budget leaves"},
        {"limit", "count", "the largest n", min = 1, default = 1 << 31},
        {"granularity", "count", "n is a multiple of it", min = 1, default = 1}),
}, function(fn, options)
    local device, granularity = open(options.device), options.granularity
    local available = options.available and core.device.bytes(options.available)
    if not available then
        core.garbage.collect()
        local stats = core.pool.stats(device)
        available = stats.budget - stats.live
    end
    if options.limit < granularity then
        fail("argument", "plan.max_count", "limit", "limit is %d, below the granularity of %d",
            options.limit, granularity)
    end
    local limit = options.limit // granularity

    local problem
    local _ <close> = in_a_row()
    local count, peak = largest(limit, function(n)
        local made, err = dry_run(fn, {device}, available, n * granularity)
        if not made and not is_budget_error(err) then
            error(err, 0)
        end
        problem = err
        return made and made.peak[device.id]
    end)
    return count * granularity, peak or problem
end)

-- What a user's make_input has returned; anything else would be planned as nothing.
local function an_array(input)
    if not checks.is_array(input) then
        fail("argument", "plan.max_slices", "make_input", "make_input returned %s; it must return "
            .. "an array of n slices (is a 'return' missing?)", input == nil and "nothing"
            or checks.described(input))
    end
    return input
end

--- The largest number of slices that fits: the largest n for which fn(make_input(n, device),
-- device) stays within the available bytes, input included, and its peak.
plan.max_slices = declared("plan.max_slices", {
    {"fn", "callable", "a function of an array and a device"},
    {"make_input", "callable", "a function of n and a device that returns the array"},
    {"available", "bytes?", "what there is", unit = "bytes", usual = "what the budget leaves"},
    {"device", "device?", "where fn is planned", usual = "the default device"},
}, function(fn, make_input, available, device)
    return plan.max_count(function(planned, n)
        local input <close> = an_array(make_input(n, planned))
        local result = fn(input, planned)
        return result
    end, {device = device, available = available})
end)

return plan
