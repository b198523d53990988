local mb = require "moonbeam"

-- The axis of simulated scans, by default options, to a quarter of a pixel: what the best of the
-- published methods (registration, phase correlation, double wedge) do. Projections are closed-form
-- integrals of ellipsoids, so that no projector of ours is among what is tested.

local PEDESTAL = 100 -- counts of the detector without beam, which are noise as well

-- Blobs of about one size (`grain`) all over a disc: no outline that would give the axis away.
local function grains(count, radius, density, grain)
    local list, state = {}, 7
    local function random() -- minimal standard generator (Park and Miller 1988)
        state = state * 16807 % 2147483647
        return state / 2147483647
    end
    for _ = 1, count do
        local r, phi = radius * math.sqrt(random()), 2 * math.pi * random()
        local size = (grain or 0.1 * radius) * (0.5 + random())
        for _, value in ipairs {density, size, size * (0.5 + random()), 1e6, r * math.cos(phi),
            r * math.sin(phi), 0, math.pi * random()} do
            list[#list + 1] = value
        end
    end
    return list
end

-- Densities such that the longest ray transmits as much as `transmission`; in place.
local function scaled(ellipsoids, transmission, heights, n)
    local probe <close> = mb.ellipsoid_projections(ellipsoids, {0, 0.8, 1.6, 2.4}, heights, n)
    local factor = -math.log(transmission) / probe:max()
    for i = 1, #ellipsoids, 8 do
        ellipsoids[i] = ellipsoids[i] * factor
    end
    return ellipsoids
end

local function angles_of(case)
    local count, span, angles = case.angles, math.rad(case.span or 180), {}
    for i = 1, count do
        angles[i] = span * (i - 1) / (case.inclusive and count - 1 or count)
    end
    return angles
end

-- Counts of a scan, as a detector gives them, with its flats and darks.
local function scan_of(case)
    setmetatable(case, {__index = {n = 128, angles = 192, rows = 16, photons = 20000, size = 1}})
    local n, rows = case.n, case.rows
    local heights, angles = mb.phantom.heights(rows), angles_of(case)
    local reach = n / 2 * case.size
    local object = case.grains and grains(case.grains, 0.85 * reach, 1, case.grain)
        or mb.phantom.scale(mb.phantom.shepp_logan, reach, math.max(rows / 2, 1))
    object = scaled(object, case.transmission or 0.2, heights, n)
    local counts = mb.ellipsoid_projections(object, angles, heights, n, {center = case.center})
    mb.unary(counts, "neg", {out = counts})
    mb.unary(counts, "exp", {out = counts})
    local photons = case.photons
    mb.binary(counts, "mul", {scalar = photons, out = counts})
    mb.binary(counts, "add", {scalar = PEDESTAL, out = counts})
    if photons < 1e6 then
        mb.poisson(counts, {seed = case.seed or 1, out = counts})
    end
    local flats = mb.full({1, rows, n}, photons + PEDESTAL)
    local darks = mb.full({1, rows, n}, PEDESTAL)
    return mb.scan.of_arrays(counts, angles, {flats = flats, darks = darks}), {counts, flats, darks}
end

local CASES = {
    {"clean", center = 63.5, photons = 1e6},
    {"clean, off the pixels", center = 61.3, photons = 1e6},
    {"20000 photons", center = 66.75},
    {"1000 photons", center = 63.5, photons = 1000},
    {"1000 photons, off the middle", center = 52.2, photons = 1000},
    {"50 photons", rows = 48, center = 63.5, photons = 50},
    {"50 photons, other noise", rows = 48, center = 60.4, photons = 50, seed = 2},
    {"50 photons, both ends", angles = 193, rows = 48, center = 65.1, photons = 50,
        inclusive = true},
    {"50 photons, whole turn", span = 360, center = 60.8, photons = 50},
    {"46 angles", angles = 46, center = 63.5},
    {"46 angles, off the middle", angles = 46, center = 75.3},
    {"46 angles, both ends", angles = 46, center = 62.1, inclusive = true},
    {"46 angles, whole turn", angles = 46, span = 360, center = 66.4},
    {"19 angles", angles = 19, center = 63.5},
    {"19 angles, both ends", angles = 19, center = 58.6, inclusive = true},
    {"60 px off the middle", n = 256, rows = 8, angles = 300, center = 187.5},
    {"37.5 px off the middle", n = 256, rows = 8, angles = 300, center = 90},
    {"grains, 30 px off the middle", center = 93.5, grains = 40},
    {"1.5 times the field", center = 66.3, size = 1.5},
    {"1.5 times the field, 1000 photons", center = 60.6, size = 1.5, photons = 1000},
    {"1.5 times the field, whole turn", span = 360, center = 62.2, size = 1.5},
    {"grains, 1.5 times the field", center = 66.3, size = 1.5, grains = 80},
    {"low contrast", rows = 32, center = 65.7, transmission = 0.97},
    {"low contrast, whole turn", span = 360, center = 60.2, transmission = 0.97},
    {"dark", center = 64.9, transmission = 0.005},
    {"whole turn", span = 360, center = 60.3},
    {"whole turn of 361, both ends", angles = 361, span = 360, center = 70.8, inclusive = true},
    {"whole turn, odd", angles = 181, span = 360, center = 65.45},
    {"one row", rows = 1, center = 62.2, photons = 5000},
    {"one row, whole turn", rows = 1, span = 360, center = 67.9, photons = 1000},
    {"odd sizes", n = 101, rows = 7, angles = 151, center = 52.4, photons = 5000},
    {"clean, 0.6 of the field, whole turn off the middle", n = 127, rows = 1, angles = 38,
        span = 360, center = 81.9, size = 0.6, photons = 1e6}, -- both ends see air alone
    {"30 angles over 200 degrees", angles = 30, rows = 7, span = 200, inclusive = true, grains = 80,
        center = 75.5, size = 1.5, photons = 1e6},
    {"200 degrees", angles = 200, span = 200, center = 59.2, photons = 2000},
}

local function release(arrays)
    for _, array in ipairs(arrays) do
        array:release()
    end
end

describe("recon.find_center", function()
    for _, case in ipairs(CASES) do
        it(("finds the axis to a quarter of a pixel: %s"):format(case[1]), function()
            local scan, arrays = scan_of(case)
            local column, how, details = mb.recon.find_center(scan, {quiet = true})
            release(arrays)
            assert.near(case.center, column, 0.25, how)
            assert.equal("found", details.verdict)
            assert.is_nil(details.remedy)
        end)
    end

    it("finds it to a twentieth of a pixel in detail as fine as the pixels", function()
        for _, case in ipairs {{center = 134.8, size = 1.5}, {center = 120.3, size = 1.5}} do
            case.n, case.rows, case.angles, case.photons = 256, 4, 307, 1e6
            case.grains, case.grain = 300, 3
            local scan, arrays = scan_of(case)
            local column, how, details = mb.recon.find_center(scan, {quiet = true})
            release(arrays)
            assert.near(case.center, column, 0.05, how)
            assert.equal("found", details.verdict)
        end
    end)

    it("finds it where rows, projections and frames come in another order or place", function()
        local case = {rows = 24, angles = 180, center = 60.4, span = 360}
        local scan, arrays = scan_of(case)
        local frames, angles = {}, {}
        for i = 1, 180 do -- every 7th: neighbors are far apart
            local from = (i - 1) * 7 % 180 + 1
            angles[i] = scan.angles[from]
            frames[i] = arrays[1]:view({from, from})
        end
        local shuffled <close> = mb.empty({180, 24, 128})
        for i, frame in ipairs(frames) do
            local to <close> = shuffled:view({i, i})
            mb.convert(frame, "f32", {out = to})
            frame:release()
        end
        local mixed = mb.scan.of_arrays(shuffled, angles, {flats = arrays[2], darks = arrays[3]})
        assert.near(60.4, mb.recon.find_center(mixed, {quiet = true}), 0.25)
        assert.near(60.4, mb.recon.find_center(scan, {quiet = true, rows = {9, 11}}), 0.25)
        release(arrays)
    end)

    it("undoes vertical shifts before it compares projections", function()
        local case = {n = 96, rows = 32, angles = 120, center = 50.3}
        local scan, arrays = scan_of(case)
        local shifts, moved = {}, mb.empty({120, 32, 96})
        for i = 1, 120 do
            shifts[i] = i > 60 and 6 or 0
        end
        local back = {}
        for i, shift in ipairs(shifts) do
            back[i] = -shift
        end
        local open = 20000 + PEDESTAL -- what comes from outside is no object
        mb.binary(arrays[1], "sub", {scalar = open, out = arrays[1]})
        mb.vertical_shift(arrays[1], back, {out = moved})
        mb.binary(moved, "add", {scalar = open, out = moved})
        local held = mb.scan.of_arrays(moved, scan.angles, {flats = arrays[2], darks = arrays[3]})
        local _, _, without = mb.recon.find_center(held, {quiet = true})
        local column, _, with = mb.recon.find_center(held, {quiet = true, vertical_shifts = shifts})
        assert.near(50.3, column, 0.25)
        assert.is_true(with.residual < without.residual / 4)
        moved:release()
        release(arrays)
    end)
end)

describe("the verdict on the axis", function()
    local function judged(case, options, change)
        local scan, arrays = scan_of(case)
        if change then
            change(arrays[1])
        end
        local column, how, details = mb.recon.find_center(scan, options or {quiet = true})
        release(arrays)
        return details, how, column
    end

    it("says how far two methods are apart, and takes the opposite projections", function()
        -- The object moves by 6 columns during the first twentieth of the scan: the ends no longer
        -- fit the rest.
        local case = {angles = 180, center = 63.5, photons = 1e6, rows = 8}
        local details, how, column = judged(case, nil, function(counts)
            local other = {angles = 180, center = 69.5, photons = 1e6, rows = 8}
            local _, arrays = scan_of(other)
            local from <close> = arrays[1]:view({1, 9})
            local to <close> = counts:view({1, 9})
            mb.convert(from, "f32", {out = to})
            release(arrays)
        end)
        assert.equal("differ", details.verdict, how)
        assert.near(66.5, column, 0.25)
        assert.equal(column, details.pair)
        assert.is_true(details.mass > 63.5 and details.mass < column - 1)
        assert.matches("differ by %d%.%d%d px", details.remedy)
        assert.matches(("%.2f"):format(details.pair), details.remedy, 1, true)
        assert.matches(("centers of mass %.2f"):format(details.mass), details.remedy, 1, true)
    end)

    it("says that a whole turn about an axis near the edge is a half acquisition", function()
        local case = {angles = 180, span = 360, center = 114.6, rows = 8}
        local details = judged(case)
        assert.equal("edge", details.verdict)
        assert.matches("column 114.%d .*try %-%-half%-acquisition", details.remedy)
        local half, _, column = judged(case, {quiet = true, half_acquisition = true})
        assert.equal("found", half.verdict)
        assert.near(114.6, column, 0.25)
    end)

    it("finds it in a half acquisition whose far side shows nothing but air", function()
        local half, how, column = judged({n = 128, rows = 7, angles = 300, span = 360, grains = 80,
            size = 1.7, center = 117.3, photons = 1e6}, {quiet = true, half_acquisition = true})
        assert.near(117.3, column, 0.1, how)
        assert.equal("found", half.verdict)
    end)

    it("says that noise leaves it uncertain, unless another way confirms it", function()
        local details, how, column = judged {rows = 2, photons = 1000, transmission = 0.95,
            center = 52.2, seed = 10, size = 0.9, grains = 40}
        assert.is_true(math.abs(column - 52.2) > 0.5 and details.residual < 0.3)
        assert.equal("ambiguous", details.verdict)
        assert.matches("%(residual 0%.%d+, uncertain by 0%.%d px%)", how)
        assert.matches("uncertain by 0%.%d px; 0 is perfect%), and nothing else", details.remedy)
        local half, _, at = judged({rows = 2, photons = 1000, span = 360, transmission = 0.95,
            center = 112.2, seed = 2, size = 1.7, grains = 80, angles = 300},
            {quiet = true, half_acquisition = true})
        assert.is_true(math.abs(at - 112.2) > 0.5 and half.residual > 0.3)
        assert.equal("ambiguous", half.verdict)
        assert.matches("match poorly", half.remedy)
    end)

    it("says that two columns match", function()
        -- A grating: moved by its period it looks the same.
        local case = {angles = 100, center = 63.5, rows = 4, photons = 1e6}
        local details = judged(case, nil, function(counts)
            local line = {}
            for x = 0, 127 do
                line[x + 1] = PEDESTAL + 1e6 * (0.5 + 0.3 * math.cos(2 * math.pi * (x - 63.5) / 12))
            end
            local row <close> = mb.array(line)
            local all <close> = row:reshape(1, 1, 128)
            mb.binary(counts, "mul", {scalar = 0, out = counts})
            mb.binary(counts, "add", {b = all, out = counts})
        end)
        assert.equal("ambiguous", details.verdict)
        assert.matches("ambiguous: .* at column %d+.%d%d .* and at %d+", details.remedy)
    end)

    it("says that there is nothing", function()
        local details = judged {angles = 100, center = 63.5, rows = 4, photons = 1000,
            transmission = 1 - 1e-9}
        assert.equal("flat", details.verdict)
        assert.matches("hardly match", details.remedy)
        local empty = mb.full({20, 4, 64}, 1)
        local scan = mb.scan.of_arrays(empty, mb.tomo.angles(20), {flats = empty})
        local _, _, nothing = mb.recon.find_center(scan, {quiet = true})
        assert.equal("flat", nothing.verdict)
        empty:release()
    end)

    it("says what tells, where no projections are opposite", function()
        local case = {angles = 150, span = 150, center = 60.4, photons = 1e6}
        local details, how, column = judged(case)
        assert.equal("mass", details.verdict)
        assert.is_nil(details.pair)
        assert.matches("no opposite projections", how)
        assert.near(60.4, column, 0.25)
        assert.is_nil(details.remedy)
        local cut = judged({angles = 150, span = 150, center = 60.4, size = 1.5, photons = 1e6})
        assert.equal("slices", cut.verdict)
        assert.matches("weak sign", cut.remedy)
        local uniform = judged({n = 256, rows = 4, angles = 256, span = 170, center = 120.3,
            size = 1.5, photons = 1e6, grains = 300, grain = 3}) -- its mass hardly changes
        assert.equal("slices", uniform.verdict)
        local ok, problem = pcall(mb.recon.center_picture, "/nowhere.png", details)
        assert.is_false(ok)
        assert.matches("no opposite projections", problem.message)
    end)

    it("is that of a plan in a dry run, which takes the same memory row by row", function()
        for _, case in ipairs {{n = 64, angles = 90, center = 30.2, rows = 20},
            {n = 64, angles = 90, span = 360, center = 40.9, rows = 5},
            {n = 64, angles = 90, span = 120, center = 31, rows = 40}} do
            local scan, arrays = scan_of(case)
            local function search()
                mb.recon.find_center(scan, {quiet = true})
            end
            mb.collect()
            local planned, measured = mb.dry_run(search), mb.ledger(search)
            assert.equal(planned.peak, measured.peak)
            assert.same({}, mb.ledger_diff(planned, measured))
            release(arrays)
        end
    end)
end)
