-- Names that do not exist, in public modules and in objects: errors with the nearest name.

local helper = require "spec.helper"
local mb = require "moonbeam"
local modules = require "moonbeam.internal.modules"

local function message(fn)
    local ok, problem = pcall(fn)
    assert.is_false(ok)
    return problem.message
end

describe("an unknown name", function()
    it("is an error in every public module, by mb.<name> and by require", function()
        for _, name in ipairs(modules.names()) do
            for _, module in ipairs {require("moonbeam." .. name), mb[name]} do
                assert.equal(("mb.%s has no 'qqqqqq'; mb.help(\"%s\") lists what there is")
                    :format(name, name), message(function()
                    return module.qqqqqq
                end))
                assert.is_nil(rawget(module, "qqqqqq"))
                assert.is_nil(module[1])
            end
        end
    end)

    it("names the nearest one of a module", function()
        assert.equal("mb.tomo has no 'fpb'; did you mean 'fbp'?", message(function()
            return mb.tomo.fpb
        end))
        assert.equal("moonbeam has no 'tmo'; did you mean 'tomo'?", message(function()
            return mb.tmo
        end))
    end)

    it("names the nearest method or property of an object", function()
        local a <close> = mb.zeros {2}
        local scope <close> = mb.pool.scope()
        local file <close> = mb.h5.scratch "/tmp"
        local dataset <close> = file:create_dataset("/data", {shape = {2}, dtype = "f32"})
        local device = mb.default_device()
        local cases = {
            {a, "shpae", "an array has no 'shpae'; did you mean 'shape'?"},
            {a, "relaese", "an array has no 'relaese'; did you mean 'release'?"},
            {device, "snyc", "a device has no 'snyc'; did you mean 'sync'?"},
            {scope, "finsh", "a scope has no 'finsh'; did you mean 'finish'?"},
            {file, "raed", "an HDF5 file has no 'raed'; did you mean 'read'?"},
            {file, "part_pth", "an HDF5 file has no 'part_pth'; did you mean 'part_path'?"},
            {dataset, "shap", "an HDF5 dataset has no 'shap'; did you mean 'shape'?"},
        }
        for _, case in ipairs(cases) do
            assert.equal(case[3], message(function()
                return case[1][case[2]]
            end))
        end
    end)

    it("is an error in scans and counters of the pool, whose optional fields stay nil", function()
        local frames <close> = mb.ones {3, 2, 8}
        local scan <close> = mb.scan.of_arrays(frames, {0, 1, 2})
        local stats = mb.pool.stats()
        for name, text in pairs {angle = "angles are its angles, in radians",
            colls = "did you mean 'cols'?", projektions = "did you mean 'projections'?",
            qqqqqq = 'mb.help("scan") lists its functions, print(s:describe()) what it has'} do
            assert.equal(("a scan has no '%s'; %s"):format(name, text), message(function()
                return scan[name]
            end))
        end
        assert.is_nil(scan.pixel_size)
        assert.is_nil(scan[1])
        assert.equal("mb.pool.stats() has no 'used'; live are the bytes in use", message(function()
            return stats.used
        end))
        assert.equal("mb.pool.stats() has no 'budgt'; did you mean 'budget'?", message(function()
            return stats.budgt
        end))
        assert.matches("has no 'qqqqqq'; it has allocs, arrays, blocks, ", message(function()
            return stats.qqqqqq
        end))
        local copy = {}
        for name, value in pairs(stats) do
            copy[name] = value
        end
        assert.same(copy, stats)
    end)
end)

describe("what Lua says of fields and methods that are mixed up", function()
    local function answer(code)
        return (helper.run_program(("-e \"mb = require 'moonbeam'; a = mb.ones {3}; %s\""):format(
            code)))
    end

    it("has the remedy, in one line", function()
        for code, text in pairs {
            ["a:shape()"] = "(method 'shape'): shape is a value, no function; write object.shape, "
                .. "without parentheses",
            ["a.rank()"] = "(field 'rank'): rank is a value, no function; write object.rank, "
                .. "without parentheses",
            ["local _ = a.slices[1]"] = "(field 'slices'): slices is a function; call it, as in "
                .. "object:slices(...)",
            ["local _ = print + 1"] = "(global 'print'): print is a function; call it, as in "
                .. "print(...)",
        } do
            local said = answer(code)
            assert.matches(text .. "\n", said, 1, true)
            assert.is_nil(said:find("stack traceback", 1, true))
        end
    end)

    it("keeps the lines that led to it, and other errors stay as they are", function()
        assert.matches("object:slices%(...%)\nstack traceback:",
            answer "local function f() return a.slices[1] end; f(); print(1)")
        assert.matches("attempt to call a nil value %(global 'f'%)\nstack traceback:", answer "f()")
        assert.matches("attempt to index a nil value %(global 'f'%)\nstack", answer "f.x = 1")
    end)
end)
