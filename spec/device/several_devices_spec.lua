-- Several devices by name: lists, all GPUs, nodes that are planned for.

local commands = require "spec.support.commands"
local core = require "moonbeam.core"
local helper = require "spec.helper"
local mb = require "moonbeam"
local several_devices = require "moonbeam.internal.several_devices"

local function ids(devices, options)
    local list = {}
    for i, device in ipairs(mb.device.several(devices, options)) do
        list[i] = device.id
    end
    return list
end

describe("devices are named together", function()
    it("as a text or a list, in the order of the names", function()
        assert.same({"host:1", "host"}, ids "host:1,host")
        assert.same({"host", "host:2"}, ids "host, host:2")
        assert.same({"host:3", "host:1"}, ids {"host:3", mb.device "host:1"})
        assert.same({"host"}, ids(mb.device "host"))
        assert.same({mb.device("auto").id}, ids "auto")
        for _, device in ipairs(mb.device.several("host:1,host:2", {budget = "1Gi"})) do
            assert.equal(1 << 30, device:budget())
        end
    end)

    it("or not, where a name is unknown, doubled, empty, or of another kind", function()
        for names, text in pairs {
            ["host,host:0"] = "device host is named twice",
            ["host:1,,host"] = '"host:1,,host" has an empty name',
            [""] = "has an empty name",
            ["all,host"] = '"all" beside other names',
            ["host,planned:h200"] = "host and planned:h200 cannot work on the same data",
            ["2xhost"] = '"2xhost" is wrong: 1 to 16 devices that are planned for',
            ["0xplanned:h200"] = '"0xplanned:h200" is wrong',
            ["17xplanned:h200"] = '"17xplanned:h200" is wrong',
            ["planned:h200,planned:h200"] = "planned:h200 is named twice; two of them are named 2xplanned:h200",
            ["moon"] = 'unknown device "moon"',
        } do
            local message, err = helper.failure(mb.device.several, names)
            assert.equal("argument", err.code, names)
            assert.matches(text, message, 1, true)
        end
        assert.matches("devices is an empty list", (helper.failure(mb.device.several, {})))
        assert.equal("device", select(2, helper.failure(mb.device.several, "host,cuda:77")).code)
        for _, name in ipairs {"host,host:1", "all"} do
            assert.matches('"' .. name .. '" names several devices, where one is needed',
                (helper.failure(mb.device, name)), 1, true)
        end
    end)

    it("by all, which are the GPUs of the model of the first", function()
        local list, models, problem = core.device.list, core.device.models, core.device.cuda_problem
        local open = core.device.open
        local _ <close> = setmetatable({}, {__close = function()
            core.device.list, core.device.models, core.device.open = list, models, open
            core.device.cuda_problem = problem
        end})
        core.device.list = function() return {"host", "cuda:0", "cuda:1", "cuda:2"} end
        core.device.models = function() return {"CPU", "A", "B", "A"} end
        core.device.open = function(id)
            return {id = id, kind = "cuda", planned = false, name = id == "cuda:1" and "B" or "A", capability = 90}
        end
        assert.same({"cuda:0", "cuda:2"}, ids "all")
        assert.is_nil(several_devices.difference(mb.device.several "all"))
        assert.equal("cuda:0 is an A, cuda:1 an B: the same bits as on one of them are not promised",
            several_devices.difference(mb.device.several "cuda:0,cuda:1"))
        core.device.list = function() return {"host"} end
        core.device.cuda_problem = function() return "no driver" end
        local text, err = helper.failure(mb.device.several, "all")
        assert.equal("device", err.code)
        assert.matches('"all" are the GPUs of this machine, and there is none (no driver); name the host',
            text, 1, true)
    end)

    it("by cuda, the GPU of this rank of the machine", function()
        local list, place, open = core.device.list, core.cluster.place, core.device.open
        local _ <close> = setmetatable({}, {__close = function()
            core.device.list, core.cluster.place, core.device.open = list, place, open
        end})
        local rank, gpus = 0, {"host", "cuda:0", "cuda:1"}
        core.device.list = function() return gpus end
        core.cluster.place = function() return {node_rank = rank} end
        core.device.open = function(id) return {id = id, kind = "cuda", planned = false} end
        for number, id in pairs {[0] = "cuda:0", "cuda:1", "cuda:0"} do
            rank = number
            assert.same({id}, ids "cuda")
        end
        gpus = {"host"} -- what opens it says that there is none, and it is not the host
        assert.same({"cuda:0"}, ids "cuda")
    end)

    it("where one is planned for, as a node of them", function()
        assert.same({"planned:h200", "planned:h200:1", "planned:h200:2"}, ids "3xplanned:h200")
        local one, two = mb.device "planned:h200", mb.device "planned:h200:1"
        assert.is_true(one == mb.device "planned:h200:0")
        assert.is_false(one == two)
        assert.same({one.name, one.total, one.basis, true}, {two.name, two.total, two.basis, two.planned})
        local known = mb.plan.peaks(function()
            local a <close> = mb.zeros({1000}, {device = "planned:h200"})
            local _ <close> = mb.zeros({3000}, {device = "planned:h200:1"})
            return a:copy()
        end, {one, two})
        assert.same({8192, 12288}, {known.peak["planned:h200"], known.peak["planned:h200:1"]})
        assert.matches("numbered 0 to 15", (helper.failure(mb.device, "planned:h200:16")))
        assert.matches('no record of "h200:x"', (helper.failure(mb.device, "planned:h200:x")), 1, true)
    end)

    it("by models, without opening them", function()
        local models = core.device.models()
        assert.equal(#mb.device.list(), #models)
        assert.equal(mb.device("host").name, models[1])
    end)
end)

describe("commands on several devices", function()
    local shell

    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5" .. " --size 32 --rows 12 --angles 40 --quiet")
        local recipe <close> = assert(io.open(shell:path "recipe.lua", "w"))
        recipe:write '{"flat_field", "minus_log", {"fbp", center = 15.5}}'
    end)

    teardown(function()
        shell:remove()
    end)

    it("reconstruct the same bits, with memory as planned on each", function()
        for name, chain in pairs {fixed = "--center 15.5", recipe = "--recipe " .. shell:path "recipe.lua"} do
            local volumes = {}
            for i, devices in ipairs {"host", "host,host:1,host:2"} do
                local file = ("%s-%d.h5"):format(name, i)
                local text = commands.must("reconstruct.lua", ("%s %s --chunk 2 --device %s -o %s"):format(
                    shell:path "scan.h5", chain, devices, shell:path(file)))
                assert.matches("predicted (%d+) bytes, measured %1", text)
                assert.not_matches("warning", text)
                volumes[i] = shell:volume_of(file)
            end
            assert.same(volumes[1], volumes[2])
            local file <close> = assert(mb.h5.open(shell:path(name .. "-2.h5")))
            assert.equal("host,host:1,host:2", file:value("/entry/reconstruction/parameters/devices"))
        end
    end)

    it("plan for a node, with the bytes of each device", function()
        for _, chain in ipairs {"--center 15.5", "--recipe " .. shell:path "recipe.lua"} do
            local text = commands.must("reconstruct.lua", ("%s %s --chunk 3 --plan --device 2xplanned:h200"):format(
                shell:path "scan.h5", chain))
            assert.matches("peak +[%d.]+ [KM]iB %(%d+ bytes%)[^\n]*\npeak +[%d.]+ [KM]iB %(%d+ bytes%) on planned:h200:1",
                text)
        end
    end)

    it("say so where they work on one, and where there is no GPU", function()
        local status, text = commands.run("simulate.lua", shell:path "x.h5" .. " --device host,host:1")
        assert.equal(2, status)
        assert.matches("--device host,host:1 names 2 devices; this command works on one, such as host", text, 1, true)
        if helper.gpu_problem then
            status, text = commands.run("reconstruct.lua", shell:path "scan.h5" .. " --device all")
            assert.equal(1, status)
            assert.matches('"all" are the GPUs of this machine, and there is none', text, 1, true)
        end
    end)
end)
