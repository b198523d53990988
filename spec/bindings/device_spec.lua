-- Devices, pools, plans: what Lua sees of them.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("devices", function()
    it("are the same value every time", function()
        local host = mb.device("host")
        assert.is_true(host == mb.device("host"))
        assert.equal("host", host.id)
        assert.equal("host", host.kind)
        assert.is_false(host.dry)
        local free, total = host:memory()
        assert.truthy(free > 0 and free <= total)
        host:sync()
        assert.equal("host", mb.devices()[1])
        assert.matches("^device host", tostring(host))
        assert.truthy(host:overhead() >= 0)
        local a <close> = mb.zeros { 1 }
        assert.is_true(a.device == host)
    end)

    it("do not open when there are none", function()
        assert.equal("device", select(2, helper.failure(mb.device, "cuda:99")).code)
        assert.equal("argument", select(2, helper.failure(mb.device, 5)).code)
        assert.matches("did you mean 'memory'", (helper.failure(function()
            return mb.device("host").memroy
        end)))
    end)

    it("have a default", function()
        assert.equal("host", mb.default_device("host").id)
        assert.equal("host", mb.default_device().id)
    end)

    it("take budgets in readable sizes", function()
        local host = mb.device("host")
        local before = host:budget()
        for text, bytes in pairs {
            ["8G"] = 8000000000, ["2Gi"] = 2 << 30, ["512Mi"] = 512 << 20, ["1.5M"] = 1500000,
            ["64K"] = 64000, ["4096"] = 4096, ["1 GiB"] = 1 << 30, ["3MB"] = 3000000,
        } do
            assert.equal(bytes, mb.device.bytes(text))
        end
        for _, text in ipairs { "", "G", "-1", "8X", "8GG", "8 i", "x8" } do
            assert.matches("number of bytes", (helper.failure(mb.device.bytes, text)))
        end
        mb.device("host", { budget = "64Mi" })
        assert.equal(64 << 20, mb.pool.stats().budget)
        local _, err = helper.failure(mb.zeros, { 1 << 25 })
        assert.equal("budget", err.code)
        host:budget(before)
    end)
end)

describe("the pool", function()
    it("counts what is live, and who made it", function()
        local a <close> = mb.zeros { 1000 }
        local stats = mb.pool.stats()
        assert.equal(4096, stats.live)
        assert.equal(4000, stats.requested)
        assert.equal(1, stats.blocks)
        local block = mb.pool.blocks()[1]
        assert.equal(4096, block.bytes)
        assert.equal(4000, block.requested)
        assert.equal("array", block["end"])
        assert.matches("device_spec.lua:%d+", block.owner)
        assert.is_nil(mb.pool.check())
        assert.equal(4096, mb.pool.round(a.bytes))
    end)

    it("measures peaks, nested", function()
        local outer, inner
        outer = mb.pool.peak(function()
            local a <close> = mb.zeros { 256 }
            inner = mb.pool.peak(function()
                local b <close> = mb.zeros { 512 }
                assert.equal(3072, mb.pool.stats().live)
                b:release()
            end)
            a:release()
        end)
        assert.equal(2048, inner)
        assert.equal(3072, outer)
        local scope <close> = mb.pool.scope()
        assert.equal(0, (scope:finish()))
        assert.equal(0, (scope:finish()))
    end)

    it("survives errors in a measured function", function()
        assert.has_error(function()
            mb.pool.peak(function()
                error "x"
            end)
        end)
        for _ = 1, 100 do
            pcall(mb.pool.peak, error)
        end
        assert.equal(0, (mb.pool.peak(function() end)))
    end)

    it("gives committed memory back", function()
        mb.pool.activate("host", "16Mi")
        assert.truthy(mb.pool.stats().committed >= 16 << 20)
        assert.truthy(mb.pool.trim() >= 16 << 20)
        assert.equal(0, mb.pool.stats().committed)
    end)
end)

describe("planning", function()
    local function work(device, n)
        local a <close> = mb.zeros({ n, 1000 }, { device = device })
        local b = a + 1
        local c <close> = b:cast("f64")
        b:release()
        return c:copy()
    end

    it("knows the peak without running", function()
        local known = mb.plan.peak(work, "host", 100)
        local measured = mb.pool.peak(function()
            work("host", 100):release()
        end)
        assert.equal(measured, known.peak)
        assert.equal(800256, known.live)
        assert.equal("f64", known.results[1].dtype)
        assert.same({ 100, 1000 }, known.results[1].shape)
        assert.equal(800000, known.results[1].bytes)
    end)

    it("does not give values", function()
        local _, err = helper.failure(mb.plan.peak, function(device)
            return mb.zeros({ 3 }, { device = device }):sum() + 1
        end)
        assert.equal("dry_run", err.code)
        _, err = helper.failure(mb.plan.peak, function(device)
            return mb.zeros({ 3 }, { device = device }):to("host"):to_table()
        end)
        assert.equal("dry_run", err.code)
    end)

    it("finds the largest count that fits", function()
        local n, peak = mb.plan.max_count(work, { available = "10M" })
        assert.truthy(peak <= 10000000)
        assert.truthy(mb.plan.peak(work, "host", n + 1).peak > 10000000)
        assert.equal(7, (mb.plan.max_count(work, { available = "1G", limit = 7 })))
        local none, err = mb.plan.max_count(work, { available = 1000 })
        assert.equal(0, none)
        assert.equal("budget", err.code)
        assert.equal(0, mb.plan.max_count(work, { available = "10M", granularity = 1000 }))
        assert.equal(n // 50 * 50,
            (mb.plan.max_count(work, { available = "10M", granularity = 50 })))
        assert.matches("boom", (helper.failure(mb.plan.max_count, function()
            error "boom"
        end, {})))
    end)

    helper.gpu_it("takes a GPU for an older one when told", function()
        local function capability(value)
            return helper.run_program(
                "-e 'print(require(\"moonbeam\").device(\"cuda:0\").capability)'", "",
                ("MOONBEAM_CUDA_CAPABILITY=%s '%s'"):format(value, helper.program))
        end
        local own = mb.device("cuda:0").capability
        assert.equal(own .. "\n", capability "")
        assert.equal(own .. "\n", capability "999")
        assert.equal("75\n", capability "75")
        for _, value in ipairs { "old", "8.0", "70" } do
            assert.matches(("MOONBEAM_CUDA_CAPABILITY is '%s'"):format(value), capability(value), 1,
                true)
        end
    end)

    it("of a call without input arrays is that of `out`, unless the call names one", function()
        local count = 0
        for _, name in ipairs(mb.op.list()) do
            local descriptor, arrays = mb.op.describe(name), {}
            for _, arg in ipairs(descriptor.args) do
                if arg.required and (arg.kind == "in" or arg.kind == "inout") then
                    arrays[#arrays + 1] = arg.name
                end
            end
            if #arrays == 0 then
                local params = load("return " .. descriptor.samples[1])().params
                local arguments, options = {}, {}
                for _, arg in ipairs(descriptor.args) do
                    if arg.required and arg.kind ~= "out" then
                        arguments[#arguments + 1] = params[arg.name]
                    elseif arg.kind ~= "out" then
                        options[arg.name] = params[arg.name]
                    end
                end
                local at = #arguments + 1
                arguments[at] = options
                local made <close> = mb[name](table.unpack(arguments, 1, at))
                assert.equal("host", made.device.id)
                local out <close> = mb.zeros(made.shape, {dtype = made.dtype, device = "host:1"})
                for _, given in ipairs {out, {[descriptor.args[#descriptor.args].name] = out}} do
                    options.out = given
                    out:fill(0)
                    assert.is_true(rawequal(out, (mb[name](table.unpack(arguments, 1, at)))))
                    assert.equal("host:1", out.device.id)
                    assert.is_true(made:to_string() == out:to_string(), name)
                end
                options.device = "host"
                assert.matches("is on host:1, the call runs on host; move it with", (helper.failure(
                    mb[name], table.unpack(arguments, 1, at))), 1, true)
                count = count + 1
            end
        end
        assert.is_true(count >= 5, count)
    end)

    it("closes dry devices whoever refers to their arrays", function()
        local dry = mb.device("host"):dry_device()
        assert.is_true(dry.dry)
        assert.matches("^dry device host", tostring(dry))
        local a = mb.zeros({ 10 }, { device = dry })
        local v = a[1]
        dry:close()
        dry:close()
        assert.is_true(a.released)
        assert.is_true(v.released)
        assert.is_true(dry.closed)
        assert.equal("closed dry device", tostring(dry))
        assert.equal("device", select(2, helper.failure(mb.zeros, { 1 }, { device = dry })).code)
    end)
end)

describe("FFT sizes", function()
    it("are smooth and even", function()
        assert.equal(1024, mb.fft.good_size(1024))
        local n = mb.fft.good_size(1021)
        assert.truthy(n >= 1021 and n % 2 == 0)
        for _, p in ipairs { 2, 3, 5, 7 } do
            while n % p == 0 do
                n = n // p
            end
        end
        assert.equal(1, n)
        assert.matches("at least one", (helper.failure(mb.fft.good_size, 0)))
        assert.equal("number", type(mb.fft.plans().count))
        assert.equal("number", type(mb.fft.drop()))
        assert.equal(0, mb.fft.plans().count)
    end)
end)
