-- Names that do not exist, in public modules and in objects: errors with the nearest name.

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
end)
