-- The top of a measured PSF: its centroid, the shift to a voxel, and a PSF of one plane.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local psf = mb.psf

-- A Gaussian about a center, with values above `cap` saturated.
local function spot(shape, center, cap)
    local h <close> = psf.gaussian(shape, 1.5, {center = center, normalize = false})
    local max <close> = mb.reduce(h, "max")
    return mb.binary(h, "min", {scalar = (cap or 1) * max:item()})
end

local CASES <const> = {
    {{9, 11, 11}, {4.3, 5.4, 4.8}}, {{10, 12, 12}, {4.5, 5.5, 5.5}}, {{11, 12}, {2.6, 8.4}},
    {{9, 11, 11}, {4.4, 5.3, 5.2}, 0.9}, {{15}, {6.7}},
}

describe("the top of a PSF", function()
    it("has a centroid, to 0.06 voxels, and comes to the nearest voxel", function()
        for _, case in ipairs(CASES) do
            local shape, want, cap = table.unpack(case)
            local h <close> = spot(shape, want, cap)
            local center = psf.center(h, "maximum")
            local moved <close>, whole = psf.on_voxel(h, center)
            local after = psf.center(moved, "maximum")
            for i, value in ipairs(want) do
                assert.near(value, center[i], 0.06)
                assert.equal(math.floor(center[i] + 0.5), whole[i])
                assert.near(whole[i], after[i], 0.06)
            end
            local low <close> = mb.reduce(moved, "min")
            assert.is_true(low:item() >= 0)
        end
    end)

    it("keeps its bits on a voxel, also with a flat top", function()
        for _, cap in ipairs {1, 0.7} do
            local h <close> = spot({9, 11, 12}, {4, 5, 6}, cap)
            local center = psf.center(h, "maximum")
            assert.same({4, 5, 6, found = true}, center)
            local moved <close>, whole = psf.on_voxel(h, center)
            assert.same(center, whole)
            assert.equal(h:to_string(), moved:to_string())
        end
    end)

    it("takes memory that a dry run knows, wherever the center is", function()
        for _, case in ipairs(CASES) do
            local h <close> = spot(table.unpack(case))
            local function run()
                local moved = psf.on_voxel(h, psf.center(h, "maximum"))
                moved:release()
            end
            assert.same({}, mb.dry_run(run):diff((mb.ledger(run))))
        end
    end)

    it("is refused with a center of other axes", function()
        local h <close> = mb.zeros {3, 3}
        assert.matches("center has 1 number; give 2, one for each axis of the PSF",
            (helper.failure(psf.on_voxel, h, {1})), 1, true)
    end)
end)

describe("deconvolve with a measured PSF", function()
    local folder
    local _, must = helper.programs_in(function() return folder end)

    -- The places of a bead in the result, by the centroid of its top.
    local function deconvolved(more)
        local text = must("scripts/deconvolve.lua FOLDER/image.npy FOLDER/psf.npy -o FOLDER/r.npy "
            .. "-d host --overwrite --iterations 5 --psf-background none %s", more or "")
        local result <close> = mb.images.read(folder .. "/r.npy")
        return text, psf.center(result, "mass")
    end

    local function write(name, array)
        local _ <close> = array
        mb.npy.write(folder .. "/" .. name, array, {overwrite = true})
    end

    setup(function()
        folder = files.folder()
        write("image.npy", spot({16, 24, 24}, {8, 11, 12}))
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("shifts nothing by more than a tenth of a voxel, whole and in tiles", function()
        for _, case in ipairs {CASES[1], CASES[2], CASES[4]} do
            write("psf.npy", spot(table.unpack(case)))
            for _, more in ipairs {"", "--tile 16,16,16"} do
                local text, at = deconvolved(more)
                assert.matches("shifted by (", text, 1, true)
                for i, want in ipairs {8, 11, 12} do
                    assert.near(want, at[i], 0.1)
                end
                assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                    assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            end
        end
    end)

    it("says nothing of a shift where the top lies on a voxel", function()
        write("psf.npy", spot({9, 11, 11}, {4, 5, 5}))
        local text = deconvolved()
        assert.is_nil(text:find("shifted", 1, true))
        assert.matches("center (4, 5, 5)", text, 1, true)
    end)

    it("takes one plane for every plane of a stack, and says so", function()
        local plane <close> = spot({11, 11}, {5, 5})
        mb.tiff.write(folder .. "/plane.tif", plane)
        local stack <close> = plane:reshape {1, 11, 11}
        mb.npy.write(folder .. "/plane.npy", stack)
        local results = {}
        for _, name in ipairs {"plane.tif", "plane.npy"} do
            local text = must("scripts/deconvolve.lua FOLDER/image.npy FOLDER/%s -o FOLDER/r.npy "
                .. "-d host --overwrite --iterations 3", name)
            assert.equal(1, select(2, text:gsub("\n +one plane: every plane of the stack is "
                .. "deconvolved by itself\n", "")))
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            local result <close> = mb.images.read(folder .. "/r.npy")
            results[#results + 1] = result:to_string()
        end
        assert.equal(results[1], results[2])
        local flat <close> = spot({1, 20, 20}, {0, 9, 9})
        mb.npy.write(folder .. "/flat.npy", flat)
        assert.is_nil(must("scripts/deconvolve.lua FOLDER/flat.npy FOLDER/plane.npy -o FOLDER/r.npy "
            .. "-d host --overwrite --iterations 3"):find("every plane", 1, true))
    end)
end)
