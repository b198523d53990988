-- What only a machine with two GPUs of one model can show: copies in both directions on both at
-- once, equal results, exact memory on both, and that one GPU does not disturb the other.

local core = require "moonbeam.core"
local helper = require "spec.helper"
local mb = require "moonbeam"

local A <const>, B <const> = "cuda:0", "cuda:1"

-- `it` for what needs two GPUs: skipped, and shown as skipped, where there are fewer.
local function two_gpus_it(name, f)
    helper.gpu_it(name, function()
        if #mb.device.list() < 3 then
            return helper.skip "one GPU; this needs two"
        end
        f()
    end)
end

-- The volume times two plus one, in blocks that are dealt to the devices in turn.
local function pipelined(devices, source, result)
    local rows = source.shape[1]
    local blocks = {}
    for first = 1, rows, 4 do
        blocks[#blocks + 1] = {first, math.min(first + 3, rows)}
    end
    local function part(array, block)
        return array:view({block[1], block[2]}, mb.all, mb.all)
    end
    return mb.stream.run(devices, blocks, {
        read = function(block, carrier, device)
            local frames = mb.empty(part(source, block).shape, {device = device})
            carrier:carry(part(source, block), frames)
            return frames
        end,
        compute = function(frames)
            local out = frames * 2
            frames:release()
            local more = out + 1
            out:release()
            return more
        end,
        write = function(slices, block, carrier)
            carrier:carry(part(result, block), slices)
        end,
    }, {source = {source}, sink = result})
end

describe("two GPUs", function()
    two_gpus_it("work on one volume, from and to memory that is pinned for either", function()
        for _, pinned in ipairs {false, A, B} do
            local where = pinned and {pinned = pinned} or {device = "host"}
            local source <close> = mb.random({64, 256, 256}, {seed = 1, device = "host"})
            local from <close> = mb.empty({64, 256, 256}, where)
            source:abs {out = from} -- a copy
            local one <close> = mb.zeros({64, 256, 256}, where)
            local two <close> = mb.zeros({64, 256, 256}, where)
            pipelined({A}, from, one)
            local scopes = {mb.pool.scope(A), mb.pool.scope(B)}
            pipelined({A, B}, from, two)
            local on_a, on_b = scopes[1]:finish(), scopes[2]:finish()
            local difference <close> = one - two
            local size <close> = difference:abs()
            assert.equal(0, size:max())
            local function planned()
                pipelined({A, B}, from, two)
            end
            local known = mb.plan.peaks(planned, {A, B})
            assert.equal(known.peak[A] - known.live[A], on_a)
            assert.equal(known.peak[B] - known.live[B], on_b)
        end
    end)

    two_gpus_it("compute the same bits: transforms, back-projection, operators with big blocks", function()
        local angles = {}
        for i = 1, 180 do
            angles[i] = (i - 1) * math.pi / 180
        end
        local results = {}
        for i, id in ipairs {B, A} do -- the second device first
            local sinograms <close> = mb.random({8, 180, 512}, {seed = 2, device = id})
            local fbp <close> = mb.tomo.fbp(sinograms, angles)
            local fourier <close> = mb.tomo.reconstruct(sinograms, angles, {method = "fourier"})
            local spectrum <close> = mb.rfft(sinograms)
            local median <close> = mb.median_filter(sinograms, {1, 3, 3})
            results[i] = {fbp:to_string(), fourier:to_string(), spectrum:to_string(), median:to_string()}
        end
        for i = 1, #results[1] do
            assert.is_true(results[1][i] == results[2][i], ("result %d"):format(i))
        end
    end)

    two_gpus_it("have copy streams of their own from the start, and wait for each other's events", function()
        local from <close> = mb.random({64, 64}, {seed = 3, device = A})
        local here <close> = mb.zeros({64, 64}, {pinned = A})
        local there <close> = mb.zeros({64, 64}, {device = B})
        local writer <close> = core.carrier.open {device = A, writing = true, pinned = 0}
        local reader <close> = core.carrier.open {device = B, pinned = 0} -- no ring: nothing was pinned for B
        writer:carry(here, from)
        writer:finish()
        reader:carry(here, there)
        reader:finish()
        assert.is_true(from:to_string() == there:to_string())
    end)

    two_gpus_it("one of which is lost: the other goes on, at once and with the same bits", function()
        local text, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            local a, b = mb.device "cuda:0", mb.device "cuda:1"
            local x, y = mb.random({512, 512}, {seed = 1, device = a}), mb.random({512, 512}, {seed = 1, device = b})
            local before <close> = mb.rfft(y)
            local pinned = mb.zeros({1 << 20}, {pinned = a})
            mb.debug.lose_device(a, 1)
            print(pcall(a.sync, a))
            local began = mb.system.clock()
            x:release()
            pinned:release()
            mb.fft.drop(a)
            local again <close> = mb.zeros({1 << 20}, {pinned = b})
            local after <close> = mb.rfft(y)
            print(before:to_string() == after:to_string(), a:lost(), b:lost(), mb.pool.stats(a).live)
            y:release()
            print(mb.system.clock() - began < 2)
        ]])
        assert.equal(0, status, text)
        assert.matches("cuda:0 is lost: injected for a test.*\ntrue\ttrue\tfalse\t0\ntrue\n", text)
    end)

    two_gpus_it("of which one is used do not cost memory on the other", function()
        local text, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            local list = mb.device.list()
            local x <close> = mb.zeros({1000}, {device = "cuda:1"})
            x:sum()
            for line in io.popen("nvidia-smi --query-compute-apps=gpu_bus_id,pid --format=csv,noheader"):lines() do
                local bus, pid = line:match "^(%S+),%s*(%d+)"
                if tonumber(pid) == mb.system.pid() then print("uses", bus) end
            end
            print(#list, #mb.device.opened(), mb.device "cuda:1".pci)
        ]])
        assert.equal(0, status, text)
        local _, count = text:gsub("uses", "")
        assert.is_true(count <= 1, text) -- 0 where the processes of a container have other numbers
        assert.matches("\t1\t", text)
    end)
end)

describe("a GPU", function()
    helper.gpu_it("that is lost takes no time to close, and its pinned memory is not used for other things", function()
        local text, status = helper.run_program("--leaks -", [[
            local core, mb = require "moonbeam.core", require "moonbeam"
            local device = mb.device "cuda:0"
            local source, result = mb.ones({64, 1024, 1024}, {pinned = device}), mb.zeros({64, 1024, 1024}, {pinned = device})
            local block = mb.empty({64, 1024, 1024}, {device = device})
            local reader = core.carrier.open {device = device, threads = 4, pinned = "64Mi"}
            local writer = core.carrier.open {device = device, threads = 4, pinned = "64Mi", writing = true}
            reader:carry(source, block)
            writer:carry(result, block)
            mb.debug.lose_device(device, 5)
            print(select(2, pcall(function() reader:finish() writer:finish() device:sync() device:sync() device:sync() end)))
            local began = mb.system.clock()
            reader:close()
            writer:abandon()
            for _, array in ipairs {source, result, block} do array:release() end
            print(mb.system.clock() - began < 2, device:lost())
        ]])
        assert.equal(0, status, text)
        assert.matches("cuda:0 is lost: injected for a test.*\ntrue\ttrue\t", text)
    end)
end)
