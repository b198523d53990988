-- The recipes of the library: each runs on a simulated scan with defects, takes what it plans, and
-- what it reconstructs resembles the phantom.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local shipped = require "moonbeam.pipeline.shipped"

-- What simulate.lua makes for a recipe, what the command line adds to it (LENS: the file of
-- coefficients), and the least correlation of its slices with the phantom (nil: they have another
-- size).
local SIDE <const> = 224
local MIDDLE <const>, HALF <const> = " --center 113.25", " --half-acquisition --angles 240"
local DIRTY <const> = "--stripes 4 --zingers 1e-4" .. MIDDLE
local OPTICS <const> = "--set paganin.energy=20000 --set paganin.distance=0.01 "
local CASES <const> = {
    FBP2d_astra = {simulate = "--beam-drift 0.05" .. MIDDLE, least = 0.97},
    FBP3d_tomobar = {simulate = DIRTY, least = 0.8},
    FBP3d_tomobar_denoising = {simulate = DIRTY, least = 0.8,
        add = "--set total_variation.iterations=20"},
    LPRec3d_tomobar = {simulate = DIRTY, least = 0.8},
    FISTA3d_tomobar = {simulate = MIDDLE, add = "--set fista.iterations=30", least = 0.9},
    deg360_distortion_FBP3d_tomobar = {simulate = "--distortion 2" .. HALF,
        add = "--set distortion.file=LENS", least = 0.95},
    deg360_paganin_FBP3d_tomobar = {simulate = "--phase 20" .. HALF,
        add = OPTICS .. "--set paganin.delta_beta=5", least = 0.75},
    angles_averaging = {simulate = "--zingers 1e-4 --angles 400" .. MIDDLE, least = 0.85},
    titaren_center_pc_FBP3d_resample = {simulate = "--rings 0.02" .. MIDDLE},
    sweep_paganin_FBP3d_tomobar = {simulate = "--phase 20" .. MIDDLE, slices = 3,
        add = OPTICS .. "--sweep paganin.delta_beta=1,5,20"},
    sweep_center_FBP3d_tomobar = {simulate = MIDDLE, add = "--sweep center.column=112:115:0.5",
        slices = 7},
    tomopy_gridrec = {simulate = "--zingers 1e-4" .. MIDDLE, least = 0.85},
    -- stripes_all with a window of a quarter of the width takes parts of the object, too
    tomopy_tomobank = {simulate = "--stripes 2" .. MIDDLE, least = 0.5},
}

describe("the recipes of the library", function()
    local shell

    setup(function() shell = commands.folder() end)
    teardown(function() shell:remove() end)

    it("are those that are tried here", function()
        local names = {}
        for name in pairs(CASES) do
            names[#names + 1] = name
        end
        table.sort(names)
        assert.same(names, shipped.names())
    end)

    local function correlation(scan, volume)
        local text = commands.must("compare_phantom.lua", scan .. " " .. volume)
        return tonumber(text:match "correlation%s+(%-?[%d.]+)")
    end

    -- The coefficients of the lens as a file of other programs.
    local function write_lens(scan)
        local file <close> = mb.h5.open(scan)
        local lines = {}
        if file:exists "/simulation/distortion" then
            for i, value in ipairs(file:value "/simulation/distortion") do
                lines[i] = ("k%d = %.17g"):format(i, value)
            end
        end
        files.write(shell:path "lens.txt", table.concat(lines, "\n"))
        return shell:path "lens.txt"
    end

    local function shape_of(volume)
        local file <close> = mb.h5.open(volume)
        local data <close> = file:read "/entry/data/data"
        return data.shape
    end

    for name, case in pairs(CASES) do
        it("run: " .. name, function()
            local scan, volume = shell:path(name .. ".h5"), shell:path(name .. "_volume.h5")
            commands.must("simulate.lua", ("%s --size %d --rows 8 --photons 50000 -d host -q %s")
                :format(scan, SIDE, case.simulate))
            local text = commands.must("reconstruct.lua", ("%s --recipe %s -o %s --device host %s")
                :format(scan, name, volume, (case.add or ""):gsub("LENS", write_lens(scan))))
            if not name:find "^sweep" then
                helper.kept_promise(text)
            end
            if case.least then
                local found = correlation(scan, volume)
                assert.is_true(found > case.least, found)
            else
                assert.same(case.slices and {case.slices, SIDE, SIDE} or {8, SIDE // 2,
                    SIDE // 2}, shape_of(volume))
            end
        end)
    end

    it("are named where a name is wrong", function()
        commands.must("simulate.lua", shell:path("any.h5") .. " --size 32 --rows 2 -d host -q")
        local status, text = commands.run("reconstruct.lua", shell:path("any.h5")
            .. " --recipe FBP3d_tomobr -o " .. shell:path "no.h5")
        assert.equal(1, status)
        assert.matches("no recipe of the library with this name; did you mean 'FBP3d_tomobar'",
            text)
        assert.is_false(commands.exists(shell:path "no.h5"))
        local frames <close> = mb.ones({4, 2, 8}, {device = "host"})
        local scan = mb.scan.of_arrays(frames, mb.tomo.angles(4))
        assert.matches("did you mean 'FBP2d_astra'", helper.failure(mb.pipeline, scan,
            "FBP2d_astr"))
    end)
end)
