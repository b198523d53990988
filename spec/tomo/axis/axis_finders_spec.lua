local mb = require "moonbeam"
local files = require "spec.support.files"
local memory = require "moonbeam.plan.peak"
local oracle = require "spec.support.oracle"

local function half_turn(count) -- both ends
    local angles = {}
    for i = 1, count do
        angles[i] = math.pi * (i - 1) / (count - 1)
    end
    return angles
end

-- Line integrals of Shepp and Logan's phantom with noise: (angle, row, column).
local function projections(n, angles, center, rows, noise)
    local object = mb.phantom.scale(mb.phantom.shepp_logan, 0.4 * n, rows)
    local lines = mb.ellipsoid_projections(object, angles, mb.phantom.heights(rows), n,
        {center = center})
    if noise then
        local errors <close> = mb.random(lines.shape, {seed = 4, low = -noise, high = noise})
        mb.binary(lines, "add", {b = errors, out = lines})
    end
    return lines
end

local function sinogram(n, count, center, noise, turn)
    local angles = half_turn(count)
    for i = 1, count do
        angles[i] = angles[i] + (turn or 0)
    end
    local lines <close> = projections(n, angles, center, 1, noise)
    local row <close> = lines:view(mb.all, 1, mb.all)
    return row:copy()
end

-- Two objects that turn about two axes.
local function double_sinogram(n, count, first, second)
    local sino = sinogram(n, count, first)
    local other <close> = sinogram(n, count, second, nil, 2)
    mb.binary(sino, "add", {b = other, out = sino})
    return sino
end

-- Arrays by name, released together.
local function arrays()
    return setmetatable({}, {__close = function(list)
        for _, array in pairs(list) do
            array:release()
        end
    end})
end

local CASES = {{128, 181, 65.3}, {200, 151, 95.25}, {101, 121, 52.4}, {97, 64, 46.75},
    {1026, 60, 512.25}}

describe("tomo.find_center_vo", function()
    it("finds the axis as algotom does, at full size or first in a smaller sinogram", function()
        local inputs <close>, trials = arrays(), {}
        for i, case in ipairs(CASES) do
            local n, count, center = table.unpack(case)
            inputs["s" .. i] = sinogram(n, count, center, 0.02)
            local column, details = mb.tomo.find_center_vo(inputs["s" .. i],
                {downsample = n > 1000})
            assert.near(center, column, 0.2)
            assert.equal("found", details.verdict)
            trials[i] = details.trial
        end
        oracle.needs "algotom"
        local theirs <close> = oracle.run("algotom", [[
from algotom.prep import calculation
found = [calculation.find_center_vo(s, dsp=s.shape[1] > 1000, ncore=1)
         for s in (s1, s2, s3, s4, s5)]
]], inputs, {"found"})
        assert.same(theirs:to_table(), trials)
    end)

    it("says that the axis is beyond the range, anywhere, or in two places", function()
        local sino <close> = sinogram(128, 91, 65.3)
        local _, details = mb.tomo.find_center_vo(sino, {guess = 55, range = 8})
        assert.equal("edge", details.verdict)
        for _, low in ipairs {0.5, 0.4, 0} do
            local noise <close> = mb.random({91, 128}, {seed = 3, low = low, high = 0.5})
            _, details = mb.tomo.find_center_vo(noise)
            assert.is_true(details.verdict == "flat" or details.verdict == "edge")
        end
        local double <close> = double_sinogram(128, 91, 58, 70)
        _, details = mb.tomo.find_center_vo(double, {range = 15})
        assert.equal("ambiguous", details.verdict)
        assert.near(70, details.trial, 1)
        assert.near(58, details.other, 1)
    end)

    it("names what is not finite, and a guess beyond the sinogram", function()
        local sino <close> = sinogram(64, 31, 30)
        local problem = select(2, pcall(mb.tomo.find_center_vo, sino, {guess = 64}))
        assert.matches("guess is 64; the sinogram has columns 0 to 63", problem.message, 1, true)
        sino:view(3, {4, 4}):fill(0 / 0)
        problem = select(2, pcall(mb.tomo.find_center_vo, sino))
        assert.matches("1 of 1984 values of the sinogram are not finite", problem.message, 1, true)
    end)

    it("takes the memory that its plan says", function()
        local sino <close> = sinogram(64, 31, 30)
        for _, options in ipairs {{}, {step = 0.3, range = 7.2}} do
            local planned = memory.peak(function(dry)
                local there <close> = mb.zeros({31, 64}, {device = dry})
                mb.tomo.find_center_vo(there, options)
            end, mb.device("host")).peak
            local scope <close> = mb.pool.scope(mb.device("host"))
            mb.tomo.find_center_vo(sino, options)
            assert.equal(planned - mb.pool.round(sino.bytes), scope:finish())
        end
    end)
end)

describe("tomo.find_center_phase_correlation", function()
    it("finds the axis as scikit-image and algotom do", function()
        local inputs <close>, columns = arrays(), {}
        for i, case in ipairs {{128, 40, 65.3}, {200, 33, 95.25}, {101, 20, 52.4}, {101, 20, 30},
            {80, 16, 33.75}} do
            local n, rows, center = table.unpack(case)
            local lines <close> = projections(n, {0.3, 0.3 + math.pi}, center, rows, 0.02)
            for k, name in ipairs {"a", "b"} do
                local view <close> = lines:view(k, mb.all, mb.all)
                inputs[name .. i] = view:copy()
            end
            local column, details = mb.tomo.find_center_phase_correlation(inputs["a" .. i],
                inputs["b" .. i])
            assert.near(center, column, 0.1)
            assert.equal("found", details.verdict)
            assert.equal(0, details.shift)
            columns[i] = column
        end
        oracle.needs "algotom"
        oracle.needs "skimage"
        local theirs <close>, fine = oracle.run("algotom", [==[
from algotom.prep import calculation
from skimage.registration import phase_cross_correlation
pairs = [(a1, b1), (a2, b2), (a3, b3), (a4, b4), (a5, b5)]
found = [calculation.find_center_based_phase_correlation(a, b) for a, b in pairs]
fine = [(a.shape[1] - 1 + phase_cross_correlation(a, np.fliplr(b), upsample_factor=10)[0][1]) / 2
        for a, b in pairs]
]==], inputs, {"found", "fine"})
        local _ <close> = fine
        for i, column in ipairs(columns) do
            assert.near(theirs:item(i), column, 0.15)
            assert.near(fine:item(i), column, 0.051)
        end
    end)

    it("bears projections that are some rows apart", function()
        local lines <close> = projections(96, {1, 1 + math.pi}, 50, 40, 0.01)
        local first <close> = lines:view(1, {4, 35}, mb.all)
        local opposite <close> = lines:view(2, {6, 37}, mb.all)
        local a <close> = first:copy()
        local b <close> = opposite:copy()
        assert.near(50, mb.tomo.find_center_phase_correlation(a, b), 0.1)
    end)

    it("says that nothing matches", function()
        local a <close> = mb.random({20, 64}, {seed = 1})
        local b <close> = mb.random({20, 64}, {seed = 2})
        local _, details = mb.tomo.find_center_phase_correlation(a, b)
        assert.equal("flat", details.verdict)
        local zero <close> = mb.zeros({20, 64})
        _, details = mb.tomo.find_center_phase_correlation(zero, zero)
        assert.equal("flat", details.verdict)
        a:view(3, {4, 4}):fill(0 / 0)
        local problem = select(2, pcall(mb.tomo.find_center_phase_correlation, a, b))
        assert.matches("1 of 1280 values of first are not finite", problem.message, 1, true)
    end)
end)

describe("tomo.find_center_slices", function()
    for _, metric in ipairs {"entropy", "sharpness"} do
        it(("finds the axis by %s, near where algotom does"):format(metric), function()
            local sino <close> = sinogram(101, 121, 52.4, 0.01)
            local column, details = mb.tomo.find_center_slices(sino, half_turn(121),
                {metric = metric})
            assert.near(52.4, column, 0.25)
            assert.equal("found", details.verdict)
            oracle.needs "algotom"
            local theirs <close> = oracle.run("algotom", ([[
from algotom.rec import reconstruction
width = sino.shape[1]
found = [reconstruction.find_center_based_slice_metric(
    sino, width // 2 - width // 16, width // 2 + width // 16, metric="%s", gpu=False,
    apply_log=False, angles=np.linspace(0, np.pi, sino.shape[0]), ncore=1)]
]]):format(metric), {sino = sino}, {"found"})
            assert.near(theirs:item(1), column, 1) -- theirs varies from run to run
        end)

        it(("says by %s that the axis is beyond the range, or anywhere"):format(metric), function()
            local sino <close> = sinogram(64, 91, 32.5)
            local angles = half_turn(91)
            local _, details = mb.tomo.find_center_slices(sino, angles, {metric = metric,
                guess = 28, range = 4})
            assert.is_true(details.verdict == "edge" or details.verdict == "flat")
            local zero <close> = mb.zeros({91, 64})
            _, details = mb.tomo.find_center_slices(zero, angles, {metric = metric})
            assert.equal("flat", details.verdict)
        end)
    end
end)

describe("finders of the axis on a real scan", function()
    it("agree on column 296, those by the double wedge to a pixel", function()
        local path = files.data "tooth.h5"
        if not path then
            return pending "tooth.h5 is not here"
        end
        local scan <close> = assert(mb.scan.open(path))
        local darks <close> = scan:darks({1, 1})
        local flats <close> = scan:flats({1, 1})
        local raw <close> = scan:projections({1, 1}, {dtype = "f32"})
        local lines <close>, counts = mb.tomo.line_integrals(raw, {darks = darks, flats = flats})
        counts:release()
        local row <close> = lines:view(mb.all, 1, mb.all)
        local sino <close> = row:copy()
        for _, metric in ipairs {"entropy", "sharpness"} do
            assert.near(296, mb.tomo.find_center_slices(sino, scan.angles, {metric = metric,
                guess = 300, range = 20}), 0.5)
        end
        assert.near(296, mb.tomo.find_center_vo(sino), 1)
        local ends <close> = lines:view({181, 181}, 1, mb.all)
        local first <close> = lines:view({1, 1}, 1, mb.all)
        local a <close> = first:copy()
        local b <close> = ends:copy()
        assert.near(296, mb.tomo.find_center_phase_correlation(a, b), 0.5)
    end)
end)
