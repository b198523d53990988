-- A PSF whose center lies between voxels is shifted to the nearest one, the same by every function
-- that takes a PSF: whole and by tiles, and the command.
local helper = require "spec.helper"
local mb = require "moonbeam"

local TILE <const> = {8, 8, 9}

-- Functions of (image, psf, center, boundary); `signed`: they take signed PSFs.
local WAYS <const> = {
    convolution = {signed = true, function(...) return mb.convolution(...) end},
    correlate = {signed = true, function(...) return mb.convolution.correlate(...) end},
    tiles = {tiled = true, signed = true, function(...) return mb.tiles.convolve(...) end},
    wiener = {signed = true, function(...) return mb.deconv.wiener(...) end},
    tikhonov = {signed = true, function(...) return mb.deconv.tikhonov(...) end},
    richardson_lucy = {iterates = true, function(...) return mb.deconv.richardson_lucy(...) end},
    landweber = {iterates = true, function(...) return mb.deconv.landweber(...) end},
    gradient_consensus = {iterates = true, function(...)
        return mb.deconv.gradient_consensus(...)
    end},
    exact = {iterates = true, tiled = true, function(...)
        return mb.tiled_deconv.richardson_lucy(...)
    end},
    blended = {iterates = true, tiled = true, mode = "blended", function(...)
        return mb.tiled_deconv.richardson_lucy(...)
    end},
}

local function run(name, image, psf, center, boundary)
    local way = WAYS[name]
    local tile = way.tiled and table.move(TILE, 4 - image.rank, 3, 1, {}) or nil
    return (way[1](image, psf, {center = center, boundary = boundary, mode = way.mode,
        tile = tile, iterations = way.iterates and 3 or nil}))
end

local CASES <const> = {
    {{9, 14, 15}, {5, 5, 6}, {2.3, 2.4, 2.7}}, {{8, 13, 17}, {6, 7, 7}, {2.5, 3.2, 2.9}},
    {{23, 24}, {8, 9}, {3.4, 4.3}}, {{40}, {9}, {4.4}},
}

local function image_of(case)
    return mb.random(case[1], {seed = 1, low = 1, high = 5})
end

local function psf_of(case)
    return mb.psf.gaussian(case[2], 0.9, {center = case[3]})
end

describe("a PSF whose center lies between voxels", function()
    for name in pairs(WAYS) do
        it("is the one that psf.on_voxel makes of it: " .. name, function()
            local tiled = WAYS[name].tiled -- is slow to plan
            for number, case in ipairs(tiled and {CASES[1], CASES[3]} or CASES) do
                local image <close> = image_of(case)
                local psf <close> = psf_of(case)
                for _, how in ipairs {number == 1 and "maximum" or "mass",
                    not tiled and case[3] or nil} do
                    local center = mb.psf.center(psf, how)
                    local moved <close>, whole = mb.psf.on_voxel(psf, center)
                    local boundary = number % 2 == 0 and "reflect" or "zero"
                    local result <close> = run(name, image, psf, how, boundary)
                    local same <close> = run(name, image, moved, whole, boundary)
                    assert.equal(same:to_string(), result:to_string(), number)
                    -- It was rounded once.
                    local rounded <close> = run(name, image, psf, whole, boundary)
                    assert.not_equal(rounded:to_string(), result:to_string(), number)
                end
            end
        end)

        it("takes the bytes that a dry run tells: " .. name, function()
            for number, case in ipairs {CASES[2], CASES[3]} do
                local image <close> = image_of(case)
                local psf <close> = psf_of(case)
                for _, how in ipairs(number == 1 and {"mass"} or {"maximum", case[3]}) do
                    local function work()
                        run(name, image, psf, how, number % 2 == 0 and "reflect" or "zero"):release()
                    end
                    local planned, measured = mb.dry_run(work), mb.ledger(work)
                    assert.equal(planned.peak, measured.peak, ("%d %s"):format(number, how))
                    if not WAYS[name].tiled then
                        assert.same({}, planned:diff(measured))
                    end
                end
            end
        end)
    end

    it("is given the mean of its neighbors by the fraction, in each axis", function()
        local image <close> = mb.random({17, 20}, {seed = 2, low = -1, high = 2})
        local psf <close> = mb.zeros {5, 6}
        local middle <close> = psf:view({2, 4}, {2, 5})
        local values <close> = mb.random({3, 4}, {seed = 3, low = -0.5, high = 1})
        mb.convert(values, "f32", {out = middle})
        for _, way in ipairs {mb.convolution, mb.tiles.convolve} do
            local function at(y, x)
                return (way(image, psf, {center = {y, x}, boundary = "mirror"}))
            end
            local got <close> = at(1.75, 2.4)
            local expected <close> = mb.zeros {17, 20}
            for _, part in ipairs {{1, 2, 0.25 * 0.6}, {1, 3, 0.25 * 0.4}, {2, 2, 0.75 * 0.6},
                {2, 3, 0.75 * 0.4}} do
                local one <close> = at(part[1], part[2])
                mb.binary(one, "mul", {scalar = part[3], out = one})
                mb.binary(expected, "add", {b = one, out = expected})
            end
            helper.assert_close(expected, got, 2e-6)
        end
    end)

    it("shifts no bead of a deconvolution, whole and by tiles", function()
        for _, fraction in ipairs {{0.5, 0.5, 0.5}, {-0.4, 0.3, 0.2}} do
            local at = {4 + fraction[1], 5 + fraction[2], 5 + fraction[3]}
            local image <close> = mb.psf.gaussian({16, 24, 24}, 1.5, {center = {8, 11, 12}})
            local psf <close> = mb.psf.gaussian({9, 11, 11}, 1.5, {center = at})
            for _, name in ipairs {"richardson_lucy", "landweber", "exact", "blended"} do
                for _, how in ipairs {"maximum", at} do
                    local result <close> = run(name, image, psf, how, "zero")
                    local found = mb.psf.center(result, "mass")
                    for axis, want in ipairs {8, 11, 12} do
                        assert.near(want, found[axis], 0.1, name)
                    end
                end
            end
        end
    end)

    it("keeps its bits where it lies on one, to a thousandth", function()
        local image <close> = mb.random({9, 20, 22}, {seed = 1, low = 1, high = 5})
        local psf <close> = mb.psf.gaussian({5, 7, 8}, 0.9, {center = {2, 3, 4}})
        for name in pairs(WAYS) do
            for _, near in ipairs {{2.0005, 3, 3.9996}, {2, 3, 4}} do
                local result <close> = run(name, image, psf, near, "zero")
                local same <close> = run(name, image, psf, {2, 3, 4}, "zero")
                assert.equal(same:to_string(), result:to_string(), name)
            end
        end
    end)

    it("gives a transfer function of the same PSF", function()
        local image <close> = image_of(CASES[1])
        local psf <close> = psf_of(CASES[1])
        for _, how in ipairs {"mass", CASES[1][3]} do
            local otf <close> = mb.deconv.transfer(psf, image.shape, {center = how})
            local one <close> = mb.deconv.richardson_lucy(image, psf, {center = how, otf = otf})
            local other <close> = mb.deconv.richardson_lucy(image, psf, {center = how})
            assert.equal(other:to_string(), one:to_string())
            local layout = mb.convolution.layout(image.shape, psf.shape, mb.psf.center(psf, how))
            local whole <close> = mb.convolution.transfer(psf, layout.grid,
                {center = how, normalize = false})
            local with <close> = mb.convolution(image, psf,
                {center = how, otf = whole, size = layout.grid})
            local without <close> = mb.convolution(image, psf, {center = how, size = layout.grid})
            assert.equal(without:to_string(), with:to_string())
        end
    end)
end)

describe("a center", function()
    it("is refused where it lies outside of the PSF, or is no number", function()
        local psf <close> = mb.array {{0, 0, 0}, {-1, 1.01, 0}, {0, 0, 0}}
        local message, problem = helper.failure(mb.convolution, psf, psf, {center = "mass"})
        assert.matches("the center of mass is 101 along axis 2, which has 0 ... 2", message, 1, true)
        assert.equal("center", problem.arg)
        local ones <close> = mb.ones {3, 3}
        for name, way in pairs(WAYS) do
            assert.matches(way.signed and "the center of mass is" or "is below 0",
                (helper.failure(run, name, ones, psf, "mass", "zero")))
            assert.matches("element 1 of center is NaN; it must lie in 0 ... 2", (helper.failure(
                run, name, ones, ones, {0 / 0, 1}, "zero")), 1, true)
        end
        for value, text in pairs {[9] = "9", [-0.5] = "-0.5", x = "the string 'x'"} do
            assert.matches(("element 2 of center is %s; it must lie in 0 ... 2"):format(text),
                (helper.failure(mb.psf.center, ones, {1, value})), 1, true)
        end
        -- What the message gives.
        for _, center in ipairs {"maximum", {1, 1}} do
            mb.convolution(psf, psf, {center = center}):release()
        end
    end)
end)
