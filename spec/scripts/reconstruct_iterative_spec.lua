-- reconstruct.lua with iterative methods.

local helper = require "spec.helper"
local commands = require "spec.support.commands"
local mb = require "moonbeam"

local must = commands.must
local shell

local function path(name)
    return shell:path(name)
end

describe("reconstruct --method", function()
    setup(function()
        shell = commands.folder()
        shell:simulate()
    end)

    teardown(function()
        shell:remove()
    end)

    it("takes iterative methods, with the scale of the direct ones", function()
        local volumes = {}
        for i, method in ipairs {"fbp", "cgls", "sirt", "fista"} do
            local name = path(method .. ".h5")
            local text = must("reconstruct.lua", ("%s -o %s --method %s --device host%s"):format(
                path("scan.h5"), name, method, i > 1 and " --iterations 12" or ""))
            helper.kept_promise(text)
            local file <close> = assert(mb.h5.open(name))
            assert.equal(method, file:value("/entry/reconstruction/parameters/method"))
            volumes[i] = file:read("/entry/data/data")
            assert.is_true(i == 1 or math.abs(volumes[i]:sum() / volumes[1]:sum() - 1) < 0.05,
                method)
        end
        for _, volume in ipairs(volumes) do
            volume:release()
        end
    end)

    it("starts from a direct reconstruction, or from a value", function()
        local volumes = {}
        for i, start in ipairs {"fbp", "0", "0.5"} do
            local name = path(("start%d.h5"):format(i))
            local text = must("reconstruct.lua",
                ("%s -o %s --method cgls --iterations 2 --start %s "
                .. "--device host"):format(path("scan.h5"), name, start))
            helper.kept_promise(text)
            local file <close> = assert(mb.h5.open(name))
            volumes[i] = file:read("/entry/data/data")
        end
        local direct <close> = volumes[1]
        local _ <close> = volumes[2]
        local again <close> = volumes[3]
        local difference <close> = volumes[2] - direct
        assert.is_true(difference:norm() > 0.05 * direct:norm())
        assert.is_true(again:to_string() ~= volumes[2]:to_string())
    end)

    it("takes half acquisitions, with the field of view and the scale of fbp", function()
        must("simulate.lua", path("half.h5")
            .. " --size 64 --rows 3 --angles 180 --span 360 --center 48 --photons 0 --quiet")
        local sums, shapes = {}, {}
        for i, method in ipairs {"fbp --padding zero", "cgls --iterations 12",
            "sirt --iterations 30"} do
            local name = path(("half%d.h5"):format(i))
            local text = must("reconstruct.lua", ("%s -o %s --half-acquisition --device host "
                .. "--chunk 2 --method %s"):format(path("half.h5"), name, method))
            helper.kept_promise(text)
            local file <close> = assert(mb.h5.open(name))
            local volume <close> = file:read("/entry/data/data")
            sums[i], shapes[i] = volume:sum(), volume.shape
            assert.same(shapes[1], shapes[i])
            assert.is_true(math.abs(sums[i] / sums[1] - 1) < 0.05, method)
        end
        assert.is_true(shapes[1][2] > 90)
        local planned = must("reconstruct.lua", path("half.h5")
            .. " --plan --half-acquisition --device host --method cgls")
        assert.matches("volume +at most 3 x %d+ x %d+ %w+", planned)
    end)

    it("plans the same, and says what does not go with it", function()
        local text = must("reconstruct.lua", ("%s -o %s --method cgls --plan --device host"):format(
            path("scan.h5"), path("plan.h5")))
        assert.matches("method +cgls %(asked for%)", text)
        local function refused(options, pattern)
            local status, said = commands.run("reconstruct.lua",
                ("%s -o %s --device host %s"):format(
                path("scan.h5"), path("no.h5"), options))
            assert.equal(2, status)
            assert.matches(pattern, said)
        end
        refused("--method cgls --filter hann", "%-%-filter is for the direct methods")
        refused("--method sirt --axis-tilt 1", "%-%-axis%-tilt")
        refused("--method sirt --half-acquisition", "half acquisition needs a whole turn")
        refused("--iterations 5", "%-%-iterations is for an iterative method")
        refused("--method cgls --iterations 0", "iterations")
        refused("--start fbp", "%-%-start is for an iterative method")
        refused("--method cgls --start ones", "%-%-start.*a number, or fbp")
        refused("--method art", "one of auto, fbp, fourier, cgls")
    end)
end)
