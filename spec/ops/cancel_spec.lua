-- Ctrl-C during a long operator on the host: the kernel skips the rest of its work, the call
-- fails, nothing of it is left.

local mb = require "moonbeam"
require "spec.helper"

-- Seconds of processor time of this process, all its threads together: other processes do not
-- lengthen it. By itself an operator takes some 10 ms of each processor to stop.
local LONGEST_S <const> = 2
local DELAY_S <const> = 0.2
local TICKS_PER_SECOND <const> = 100 -- the unit of /proc/PID/stat on Linux

-- The processor time, in seconds, that a line of /proc/PID/stat tells.
local function processor_seconds(line)
    local user, system = line:match("^.*%)" .. (" %S+"):rep(11) .. " (%d+) (%d+)")
    return (user + system) / TICKS_PER_SECOND
end

local function linear(first, step, count)
    local list = {}
    for i = 1, count do
        list[i] = first + step * (i - 1)
    end
    return list
end

-- By operator: what makes its inputs, and a call that takes seconds on a few cores.
local cases = {
    {"backproject", {64, 720, 1024}, function(a)
        return mb.backproject(a, linear(0, math.pi / 720, 720), { accuracy = "exact" })
    end},
    {"project", {48, 512, 512}, function(a)
        return mb.project(a, linear(0, math.pi / 720, 720))
    end},
    {"fourier_reconstruct", {64, 720, 512}, function(a)
        return mb.fourier_reconstruct(a, linear(0, math.pi / 720, 720))
    end},
    {"ramp_filter", {64, 720, 1024}, function(a)
        return mb.ramp_filter(a, { out = a })
    end},
    {"gaussian_filter", {64, 512, 512}, function(a)
        return mb.gaussian_filter(a, 1000)
    end},
    {"box_filter", {64, 512, 512}, function(a)
        return mb.box_filter(a, 101)
    end},
    {"adaptive_threshold", {64, 512, 512}, function(a)
        return mb.adaptive_threshold(a, 201)
    end},
    {"poisson", {32, 1024, 1024}, function(a)
        return mb.poisson(a + 1000, { seed = 1 })
    end},
    {"fft of many rows", {64, 512, 1024}, function(a)
        return mb.rfft(a, { axes = 1 })
    end},
    {"unary", {64, 1024, 512}, function(a)
        return a:exp()
    end},
    {"reduce", {64, 1024, 1024}, function(a)
        return a:norm()
    end},
    {"stripes_sorting with a wide window", {1, 16, 65536}, function(a)
        return mb.stripes_sorting(a, { size = 65536 })
    end},
    {"summed_area", {64, 512, 512}, function(a)
        return mb.summed_area(a)
    end},
}

-- Repeats the call until a signal stops it. Seconds of processor time from the signal to the end,
-- and the error.
local function stop(call, input)
    local name = os.tmpname()
    local ok, err = mb.system.call(function()
        -- Only commands of the shell itself stand between the time and the signal.
        io.popen(("(sleep %g; read -r line </proc/%d/stat; echo \"$line\" >%s; kill -INT %d) "
            .. ">/dev/null 2>&1 &"):format(DELAY_S, mb.system.pid(), name, mb.system.pid())):close()
        while true do
            local result = call(input)
            if type(result) == "userdata" and not rawequal(result, input) then
                result:release()
            end
        end
    end)
    local now = os.clock()
    local f <close> = assert(io.open(name))
    local signaled = processor_seconds(f:read("l"))
    os.remove(name)
    assert.is_false(ok)
    return now - signaled, err
end

describe("Ctrl-C", function()
    for _, case in ipairs(cases) do
        local name, shape, call = table.unpack(case)
        it("stops " .. name .. " on the host", function()
            local input <close> = mb.zeros(shape)
            local live = mb.pool.stats().live
            local waited, err = stop(call, input)
            assert.equal("cancelled", err.code)
            assert.matches("interrupted by Ctrl%-C", tostring(err))
            assert.truthy(waited < LONGEST_S, ("it took %.2f s"):format(waited))
            mb.collect()
            assert.equal(live, mb.pool.stats().live)
            assert.is_false(mb.system.cancelled())
            local part <close> = mb.ones { 5, 4, 64 } -- and everything goes on as before
            assert.equal(1280, part:sum())
        end)
    end
end)

describe("a large batch of transforms", function()
    it("is the same in pieces", function() -- 9 of 2^20 points: 8 in a piece, and one more
        local a <close> = mb.random({ 9, 1024, 1024 }, { seed = 3 })
        local all <close> = mb.rfft(a, { axes = 2 })
        for _, i in ipairs { 1, 8, 9 } do
            local one <close> = mb.rfft(a:view(i):copy(), { axes = 2 })
            local difference <close> = one - all:view(i)
            assert.truthy(difference:norm() <= 1e-6 * one:norm())
        end
        local back <close> = mb.irfft(all, { axes = 2 })
        local difference <close> = back - a
        assert.truthy(difference:norm() <= 1e-6 * a:norm())
    end)
end)
