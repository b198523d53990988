-- Asking carriers how far they are, and sleeping until the first of several has got on.

local files = require "spec.support.files"
local helper = require "spec.helper"
local core = require "moonbeam.core"
local mb = require "moonbeam"

local wait_any = core.carrier.wait_any

-- A carrier with seconds of work before it; closing it drops the rest. Copies of the same values to
-- the same place by one worker.
local function busy(device)
    local from, to = mb.zeros({1 << 22}, {pinned = device}), mb.zeros({1 << 22}, {device = device})
    local carrier = core.carrier.open {device = device, threads = 1, pinned = 0}
    for _ = 1, 2000 do
        carrier:carry(from, to)
    end
    return carrier, setmetatable({}, {__close = function()
        carrier:close()
        from:release()
        to:release()
    end})
end

helper.each_device(function(device, test)
    describe("carriers on " .. device, function()
        test("say how far they are without waiting", function()
            local carrier, all <close> = busy(device)
            local _ = all
            assert.is_true(carrier:passed(0))
            assert.is_true(carrier:ready(0))
            assert.is_false(carrier:passed())
            assert.is_false(carrier:ready())
            assert.is_false(carrier:passed(carrier:mark()))
            carrier:wait(1)
            assert.is_true(carrier:passed(1))
            assert.is_false(carrier:passed(2000))
            assert.is_true(carrier:mark() == 2000)
        end)

        test("have passed marks, and are ready, when there is nothing under way", function()
            local from <close> = mb.random({50, 40}, {device = device, seed = 1})
            local to <close> = mb.zeros({50, 40}, {device = "host"})
            local writer <close> = core.carrier.open {device = device, writing = true, pinned = "1Mi"}
            assert.is_true(writer:passed())
            assert.is_true(writer:ready())
            writer:carry(to, from)
            writer:wait(writer:mark())
            assert.is_true(writer:passed(writer:mark()))
            writer:finish()
            assert.is_true(writer:ready())
            assert.is_true(writer:passed(99))
            assert.equal(1, wait_any {{writer, writer:mark(), ready = true}})
            assert.same(from:to_table(), to:to_table())
        end)

        test("wake whoever waits for any of them, the first in the list that has got on", function()
            local slow, all <close> = busy(device)
            local _ = all
            local values <close> = mb.random({300, 200}, {seed = 2, device = "host"})
            local got <close> = mb.zeros({300, 200}, {device = device})
            local back <close> = mb.zeros({300, 200}, {device = "host"})
            local reader <close> = core.carrier.open {device = device, pinned = "1Mi"}
            local writer <close> = core.carrier.open {device = device, pinned = "1Mi", writing = true}
            reader:carry(values, got)
            assert.equal(2, wait_any {slow, reader})
            reader:wait()
            writer:carry(back, got)
            assert.equal(3, wait_any {slow, {slow, 2000}, {writer, writer:mark(), ready = true}})
            writer:wait()
            assert.same(values:to_table(), back:to_table())
            assert.equal(1, wait_any {reader, writer, slow})
            assert.equal(2, wait_any {slow, {slow, 3}, {slow, 2}})
            assert.is_true(slow:passed(3))
        end)
    end)
end)

describe("waiting for any of several carriers", function()
    it("spans devices", function()
        local slow, all <close> = busy "host"
        local _ = all
        for turn = 1, 20 do
            local device = "host:" .. turn % 3 + 1
            local values <close> = mb.full({100, 100 + turn}, turn)
            local got <close> = mb.zeros(values.shape, {device = device})
            local reader <close> = core.carrier.open {device = device, threads = 2, pinned = "1Mi"}
            reader:carry(values, got)
            assert.equal(2, wait_any {slow, {reader, 1}})
            reader:wait(1)
            assert.equal(turn * got.elements, got:sum())
        end
        assert.is_false(slow:passed())
    end)

    it("misses nothing where nobody else is at work", function()
        local folder = files.folder()
        local frames <close> = mb.random({60, 300, 301}, {seed = 2, device = "host:1"})
        do
            local file <close> = mb.h5.create(folder .. "/frames.h5")
            local dataset = file:create_dataset("/data", {shape = frames.shape})
            local writer <close> = core.carrier.open {device = "host:1", pinned = "4Mi", writing = true}
            for z = 1, 60 do
                local frame <close> = frames:view({z, z}):copy()
                writer:carry(dataset, frame, {z, z})
                assert.equal(1, wait_any {{writer, z}})
                assert.equal(1, wait_any {{writer, z, ready = true}})
                assert.is_true(writer:ready(z))
                writer:wait()
            end
            writer:finish()
            file:finish()
        end
        do
            local file <close> = assert(mb.h5.open(folder .. "/frames.h5"))
            local dataset <close> = file:dataset("/data")
            local reader <close> = core.carrier.open {device = "host:1", pinned = "4Mi"}
            local got <close> = mb.zeros({60, 300, 301}, {device = "host:1"})
            for z = 1, 60 do
                local frame <close> = got:view {z, z}
                reader:carry(dataset, frame, {z, z})
                assert.equal(1, wait_any {{reader, z}})
                reader:wait(z)
            end
            local difference <close> = got - frames
            assert.equal(0, difference:norm())
        end
        files.remove(folder)
    end)

    it("reports the failure of any of them", function()
        local folder = files.folder()
        local path = folder .. "/cut.h5"
        do
            local values <close> = mb.zeros({64, 64, 512}, {dtype = "u16"})
            local file <close> = mb.h5.create(path)
            file:write("/data", values)
            file:finish()
        end
        local slow, all <close> = busy "host"
        local _ = all
        do
            local file <close> = assert(mb.h5.open(path))
            local dataset <close> = file:dataset("/data")
            local values <close> = mb.zeros({64, 64, 512}, {dtype = "u16"})
            local first <close> = mb.zeros({1, 64, 512}, {dtype = "u16"})
            local carrier <close> = core.carrier.open {device = "host", pinned = "1Mi"}
            carrier:carry(dataset, first, {1, 1})
            assert.equal(2, wait_any {slow, carrier})
            assert(os.execute(("truncate -s 1000000 '%s'"):format(path)))
            carrier:carry(dataset, values)
            local _, err = helper.failure(wait_any, {slow, carrier})
            assert.equal("io", err.code)
            assert.matches("ends early", (helper.failure(carrier.passed, carrier, 1)))
            assert.matches("ends early", (helper.failure(carrier.ready, carrier)))
            assert.equal("io", select(2, helper.failure(carrier.wait, carrier)).code)
        end
        files.remove(folder)
    end)

    it("says what is wrong", function()
        local carrier = core.carrier.open {device = "host", pinned = 0}
        assert.matches("there is nothing to wait for", (helper.failure(wait_any, {})))
        assert.matches("list must be a table of carriers, not a number", (helper.failure(wait_any, 5)))
        assert.matches("moonbeam.carrier", (helper.failure(wait_any, {{}})))
        assert.matches("mark", (helper.failure(wait_any, {{carrier, "x"}})))
        local many = {}
        for i = 1, 257 do
            many[i] = carrier
        end
        assert.matches("list has 257 carriers; at most 256", (helper.failure(wait_any, many)))
        carrier:close()
        assert.matches("this carrier has been closed", (helper.failure(wait_any, {carrier})))
        assert.matches("this carrier has been closed", (helper.failure(carrier.passed, carrier)))
    end)

    it("is over at once in a dry run, which moves nothing", function()
        mb.dry_run(function()
            local from <close>, to = mb.zeros {100}, mb.zeros({100}, {device = "host:1"})
            local reader <close> = core.carrier.open {device = "host:1", pinned = "1Mi"}
            reader:carry(from, to)
            to:release()
            assert.is_true(reader:passed())
            assert.is_true(reader:ready())
            assert.equal(1, wait_any {reader})
        end)
    end)

    -- What sleeps is the program itself: the signal ends the sleep, long before the work is done.
    for _, signal in ipairs {"INT", "TERM"} do
        for name, wait in pairs {wait_any = "wait_any {c, {c, 100000}}", wait = "c:wait()"} do
            it(("by %s is ended by SIG%s"):format(name, signal), function()
                local script = [[
                    local mb, core = require 'moonbeam', require 'moonbeam.core'
                    local wait_any = core.carrier.wait_any
                    local a, b = mb.zeros {1 << 22}, mb.zeros {1 << 22}
                    local c = core.carrier.open {device = 'host', threads = 1, pinned = 0}
                    for _ = 1, 100000 do c:carry(a, b) end
                    os.execute('(sleep 0.3; kill -%s ' .. mb.system.pid() .. ') &')
                    %s
                    print 'not interrupted'
                ]]
                local began = mb.system.clock()
                local output, status = helper.run_program(('-e "%s"'):format(script:format(signal, wait)))
                assert.is_true(mb.system.clock() - began < 20)
                assert.matches("interrupted by " .. (signal == "INT" and "Ctrl%-C\n$" or "SIGTERM\n$"), output)
                assert.is_true(status ~= 0)
            end)
        end
    end
end)
