local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- A whole turn of an object that only one half of the detector's surroundings sees whole.
local function sinogram(n, count, center)
    local angles = {}
    for i = 1, count do
        angles[i] = 2 * math.pi * (i - 1) / (count - 1)
    end
    local object = mb.phantom.scale(mb.phantom.shepp_logan, 0.6 * n, 1)
    local lines <close> = mb.ellipsoid_projections(object, angles, mb.phantom.heights(1), n,
        {center = center})
    local errors <close> = mb.random(lines.shape, {seed = 4, low = -0.1, high = 0.1})
    mb.binary(lines, "add", {b = errors, out = lines})
    local row <close> = lines:view(mb.all, 1, mb.all)
    return row:copy()
end

local OPTIONS = {{}, {side = "left"}, {side = "right", normalize = true},
    {side = "right", denoise = false}, {normalize = true, blend = true}}
local THEIRS = [==[
from algotom.prep import calculation
found = [calculation.find_center_360(sino, 20, ncore=1, **options) for options in (
    dict(denoise=True, norm=True), dict(side=0), dict(side=1, norm=True),
    dict(side=1, denoise=False), dict(norm=True, use_overlap=True))]
]==]

describe("tomo.find_center_overlap", function()
    for _, case in ipairs {{128, 181, 100.3, "right"}, {151, 240, 22.25, "left"}} do
        local n, count, center, side = table.unpack(case)
        it(("finds %g of %d columns as algotom does"):format(center, n), function()
            local sino <close> = sinogram(n, count, center)
            local rows = {}
            for i, options in ipairs(OPTIONS) do
                local given = {window = 20}
                for name, value in pairs(options) do
                    given[name] = value
                end
                local column, details = mb.tomo.find_center_overlap(sino, given)
                rows[i] = {column, details.overlap, details.side == "left" and 0 or 1,
                    details.position}
                if not options.side or options.side == side then
                    assert.near(center, column, 0.25)
                    assert.equal(side, details.side)
                    assert.equal("found", details.verdict)
                end
            end
            oracle.needs "algotom"
            local theirs <close> = oracle.run("algotom", THEIRS, {sino = sino}, {"found"})
            local list = theirs:to_table()
            for i = 2, #rows do -- theirs takes norm for denoise where it looks at both sides
                helper.assert_close(list[i], rows[i], 1e-3)
            end
        end)
    end

    it("says that nothing overlaps", function()
        local noise <close> = mb.random({61, 80}, {seed = 5})
        local _, details = mb.tomo.find_center_overlap(noise)
        assert.equal("flat", details.verdict)
        local zero <close> = mb.zeros({61, 80})
        _, details = mb.tomo.find_center_overlap(zero)
        assert.equal("flat", details.verdict)
        noise:fill(0 / 0)
        assert.matches("are not finite", helper.failure(mb.tomo.find_center_overlap, noise))
    end)
end)

describe("tomo.find_overlap", function()
    it("finds where two images meet, and on which side", function()
        local whole <close> = mb.random({30, 150}, {seed = 6})
        local left <close> = whole:view(mb.all, {1, 90})
        local right <close> = whole:view(mb.all, {61, 150})
        local overlap, side, details = mb.tomo.find_overlap(left, right, {window = 20,
            denoise = false})
        assert.near(30, overlap, 0.1)
        assert.equal("right", side)
        assert.equal("found", details.verdict)
        overlap, side = mb.tomo.find_overlap(right, left, {window = 20, denoise = false})
        assert.near(30, overlap, 0.1)
        assert.equal("left", side)
    end)

    it("says what does not fit", function()
        local a <close> = mb.zeros({3, 40})
        local b <close> = mb.zeros({4, 40})
        assert.matches("second has 4 rows and first has 3", helper.failure(mb.tomo.find_overlap, a,
            b), 1, true)
        local c <close> = mb.zeros({3, 10})
        assert.matches("images of 10 columns are too narrow", helper.failure(mb.tomo.find_overlap,
            c, c), 1, true)
    end)
end)
