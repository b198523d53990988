-- reconstruct.lua with iterative methods.

local helper = require "spec.helper"
local commands = require "spec.support.commands"
local mb = require "moonbeam"
local method_options = require "moonbeam.tomo.method_options"

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

    it("takes every option of a method, with the slices of the function", function()
        local flags = {}
        for _, option in ipairs(method_options.list) do
            flags[#flags + 1] = option.name
        end
        table.sort(flags)
        assert.equal("beyond check dimensions discrepancy inner iterations lambda margin model "
            .. "negative noise nonnegative preconditioner relaxation rho slab slab_overlap start "
            .. "subsets taper tikhonov tolerance tv_iterations weights", table.concat(flags, " "))
        local _, help = commands.run("reconstruct.lua", "--help")
        for _, name in ipairs(flags) do
            assert.is_truthy(help:find("--" .. name:gsub("_", "-") .. " ", 1, true), name)
        end
        local cases = {
            {"cgls", "--margin 8 --beyond unknown --tikhonov 0.5 --iterations 3",
                {margin = 8, beyond = "unknown", tikhonov = 0.5, iterations = 3}},
            {"sart", "--taper 2 --subsets 5 --relaxation 0.5 --nonnegative yes --iterations 2",
                {taper = 2, subsets = 5, relaxation = 0.5, nonnegative = true, iterations = 2}},
            {"fista", "--nonnegative false --lambda 0.02 --tv-iterations 7 --size 40 --model pixel "
                .. "--iterations 3", {nonnegative = false, lambda = 0.02, tv_iterations = 7,
                size = 40, model = "pixel", iterations = 3}},
            {"admm_tv", "--inner 2 --rho 2 --weights poisson --iterations 2",
                {inner = 2, rho = 2, weights = "poisson", iterations = 2}},
            {"osem", "--negative zero --subsets 3 --start fbp --iterations 2 --discrepancy 2",
                {negative = "zero", subsets = 3, start = "fbp", iterations = 2, discrepancy = 2}},
        }
        local scan <close> = assert(mb.scan.open(path "scan.h5"))
        for i, case in ipairs(cases) do
            local name, method, own = path(("flags%d.h5"):format(i)), case[1], case[3]
            helper.kept_promise(must("reconstruct.lua", ("%s -o %s --device host --center 31.5 "
                .. "--method %s %s"):format(path "scan.h5", name, method, case[2])))
            local file <close> = assert(mb.h5.open(name))
            local made <close> = file:read "/entry/data/data"
            local raw <close> = scan:projections({1, scan.rows}, {device = "host"})
            local darks <close> = scan:darks({1, scan.rows}, {device = "host"})
            local flats <close> = scan:flats({1, scan.rows}, {device = "host"})
            local lines, counts = mb.tomo.line_integrals(raw, {darks = darks, flats = flats})
            counts:release()
            local view <close> = lines:permute(2, 1, 3)
            local sinograms <close> = view:copy()
            lines:release()
            own.center = 31.5
            local slices <close> = mb.tomo[method](sinograms, scan.angles, own)
            local scaled <close> = slices * (1 / scan.pixel_size)
            local difference <close> = made - scaled
            assert.is_true(difference:norm() <= 1e-6 * scaled:norm(), method)
            assert.is_true(scaled:norm() > 0)
            for option, value in pairs(own) do
                local kept = file:value("/entry/reconstruction/parameters/" .. option)
                assert.equal(tostring(value), tostring(kept), option)
            end
        end
    end)

    it("makes three-dimensional total variation of all rows, and no chunk of it by itself",
        function()
        local texts = {}
        for i, chunk in ipairs {"", " --chunk 2", " --slab 2 --slab-overlap 1 --chunk 2",
            " --output-dtype uint16"} do -- what is measured after the axis takes what it promised
            local name = path(("volume%d.h5"):format(i))
            helper.kept_promise(must("reconstruct.lua", ("%s -o %s --device host --method fista "
                .. "--dimensions 3 --iterations 3 --tv-iterations 5 --lambda 0.01%s"):format(
                path "scan.h5", name, chunk)))
            local file <close> = assert(mb.h5.open(name))
            local volume <close> = file:read "/entry/data/data"
            texts[i] = volume:to_string()
        end
        assert.is_true(texts[1] == texts[2] and texts[1] ~= texts[3])
        local scan <close> = assert(mb.scan.open(path "scan.h5"))
        assert.matches("dimensions is 3.*recon%.run", helper.failure(mb.recon.chunk, scan, "host",
            1, 2, {method = "fista", dimensions = 3, center = 31.5}))
        local status, said = commands.run("reconstruct.lua", path "scan.h5" .. " -o "
            .. path "no.h5" .. " --device host --method fista --dimensions 3 --sweep 12")
        assert.equal(2, status)
        assert.matches("%-%-sweep", said)
    end)

    -- The search may find any axis, but that of the scan has a convolution.
    it("takes a preconditioner before the axis is found, and refuses it where it cannot be",
        function()
        for _, options in ipairs {"--method cgls", "--method fista --lambda 0 --nonnegative no"} do
            helper.kept_promise(must("reconstruct.lua", ("%s -o %s --device host --overwrite "
                .. "--iterations 3 --preconditioner 0.05 %s"):format(path "scan.h5",
                path "found.h5", options)))
        end
        must("simulate.lua", path "aside.h5"
            .. " --size 64 --rows 2 --angles 60 --center 48 --photons 0 --quiet")
        local status, said = commands.run("reconstruct.lua", ("%s -o %s --device host --method "
            .. "cgls --preconditioner 0.05"):format(path "aside.h5", path "no.h5"))
        assert.equal(2, status)
        assert.matches("%-%-preconditioner is 0.05, which needs a convolution", said)
    end)

    it("says whose an option is, and what its value must be", function()
        for options, pattern in pairs {
            ["--method cgls --taper 1"] = "%-%-taper is for sirt and sart; method cgls does not",
            ["--method cgls --margin=-1"] = "%-%-margin: \"%-1\" is not a whole number",
            ["--method cgls --tolerance 2"] = "%-%-tolerance is 2; .*between 0 and 1",
            ["--method mlem --start 0"] = "%-%-start is 0; .*above 0, or \"fbp\"",
            ["--method fista --nonnegative maybe"] = "%-%-nonnegative: \"maybe\" is not yes or no",
            ["--preconditioner 0.05"] = "%-%-preconditioner is for cgls and fista, such as %-%-method cgls",
            ["--method fista --preconditioner 0.05"] = "%-%-preconditioner is 0.05, which is for "
                .. "least squares alone, without total variation: give %-%-lambda 0 and "
                .. "%-%-nonnegative false, or .* %-%-start fbp",
            ["--method cgls --preconditioner 0.05 --margin 3"] = "no weights, %-%-model fourier, and "
                .. "%-%-beyond nothing",
            ["--taper 1"] = "%-%-taper is for sirt and sart, such as %-%-method sirt",
            ["--recipe FISTA3d_tomobar --lambda 3"] = "use %-%-set fista%.lambda=",
        } do
            local status, said = commands.run("reconstruct.lua",
                ("%s -o %s --device host %s"):format(path "scan.h5", path "no.h5", options))
            assert.equal(2, status)
            assert.matches(pattern, said)
        end
        local scan <close> = assert(mb.scan.open(path "scan.h5"))
        local ok, problem = pcall(mb.recon.plan, scan, {method = "cgls", taper = 1})
        assert.is_false(ok)
        assert.matches("taper is for sirt and sart; method cgls", tostring(problem))
        ok, problem = pcall(mb.recon.plan, scan, {lambda = 1})
        assert.is_false(ok)
        assert.matches("lambda is for fista and admm_tv, such as method fista", tostring(problem))
    end)
end)
