-- The work of single steps: through a pipeline, in blocks of several sizes, each gives what the
-- operators give on whole arrays, and takes what was planned.

local mb = require "moonbeam"
local helper = require "spec.helper"

local ANGLES, ROWS, COLS <const> = 20, 13, 24

local function noise(shape, low, high, dtype)
    math.randomseed(shape[1] * 7 + shape[2])
    local values = {}
    for i = 1, shape[1] do
        values[i] = {}
        for j = 1, shape[2] do
            values[i][j] = {}
            for k = 1, shape[3] do
                values[i][j][k] = math.random(low, high)
            end
        end
    end
    return mb.array(values, {dtype = dtype, device = "host"})
end

-- A scan of counts with flats and darks, to be closed.
local function counts(turn)
    local scan = {data = noise({ANGLES, ROWS, COLS}, 300, 900, "u16"),
        flats = noise({3, ROWS, COLS}, 950, 1050, "u16"),
        darks = noise({2, ROWS, COLS}, 90, 110, "u16")}
    scan.scan = mb.scan.of_arrays(scan.data, mb.tomo.angles(ANGLES, turn),
        {flats = scan.flats, darks = scan.darks, pixel_size = 1e-6})
    return setmetatable(scan, {__close = function()
        for _, name in ipairs {"data", "flats", "darks"} do
            scan[name]:release()
        end
    end})
end

-- Line integrals of a scan by operators alone.
local function lines(scan)
    local result, tally = mb.tomo.line_integrals(scan.data, {flats = scan.flats,
        darks = scan.darks})
    tally:release()
    return result
end

-- What a recipe gives for blocks of `count` rows; nil: as many as fit. Rows as of the result.
local function result_of(scan, recipe, count, rows)
    local p = mb.pipeline(scan.scan, recipe, {block = count, quiet = true})
    local slices, done = p:slices(rows)
    assert.is_true(done.as_planned)
    return slices
end

-- Asserts that the recipe gives `expected`, to the bit, in blocks of any size, and for some rows.
local function gives(expected, scan, recipe)
    local text = expected:to_string()
    for _, count in ipairs {1, 2, 5, 100} do
        local slices <close> = result_of(scan, recipe, count)
        assert.same(expected.shape, slices.shape)
        assert.equal(expected.dtype, slices.dtype)
        assert.is_true(text == slices:to_string(), ("in blocks of %d"):format(count))
    end
    local part <close> = result_of(scan, recipe, 2, {2, 4})
    local own <close> = expected:view({2, 4})
    assert.is_true(own:to_string() == part:to_string(), "rows 2 to 4")
end

-- Of projections, some rows, columns and frames.
local function part_of(array, frames, rows, columns)
    local view <close> = array:view(frames or mb.all, rows or mb.all, columns or mb.all)
    return view:copy()
end

describe("a step on frames", function()
    it("crop keeps rows and columns", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local expected <close> = part_of(whole, nil, {3, 10}, {5, 20})
        gives(expected, scan, {{"crop", rows = {3, 10}, columns = {5, 20}}, "flat_field",
            "minus_log"})
        gives(expected, scan, {"flat_field", {"crop", rows = {3, 10}}, "minus_log",
            {"crop", columns = {5, -5}}})
    end)

    it("select keeps projections", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local expected <close> = part_of(whole, {1, 20, 3})
        gives(expected, scan, {{"select", every = 3}, "flat_field", "minus_log"})
        gives(expected, scan, {"flat_field", "minus_log", {"select", every = 3}})
        local later <close> = part_of(whole, {8, 14, 2})
        gives(later, scan, {{"select", frames = {7, 15}}, "flat_field",
            {"select", bad = {7, 9, 11, 13, 15}}, "minus_log"})
    end)

    it("gaussian smooths, with the neighbors that it needs", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local expected <close> = mb.gaussian_filter(whole, {1.5, 0.5}, {axes = {2, 3}})
        gives(expected, scan, {"flat_field", "minus_log", {"gaussian", sigma = {1.5, 0.5}}})
        local cropped <close> = part_of(expected, nil, {4, 10})
        gives(cropped, scan, {"flat_field", "minus_log", {"gaussian", sigma = {1.5, 0.5}},
            {"crop", rows = {4, 10}}})
    end)

    it("vertical_shift moves the projections that are left", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local shifts, kept = {}, {}
        for i = 1, ANGLES do
            shifts[i] = math.sin(i) * 3
        end
        mb.vertical_shift(whole, shifts, {out = whole})
        gives(whole, scan, {"flat_field", "minus_log", {"vertical_shift", shifts = shifts}})
        for i = 2, ANGLES, 2 do
            kept[#kept + 1] = i
        end
        local expected <close> = part_of(whole, {1, 19, 2})
        gives(expected, scan, {{"select", bad = kept}, "flat_field", "minus_log",
            {"vertical_shift", shifts = shifts}})
    end)
end)

describe("a step that makes slices", function()
    it("fbp and fourier give the slices of tomo, about a column of the scan", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local angles = mb.tomo.angles(ANGLES)
        for _, method in ipairs {"fbp", "fourier"} do
            local cropped <close> = part_of(whole, nil, nil, {3, 22})
            local sinograms <close> = cropped:permute(2, 1, 3)
            local expected <close> = mb.tomo.reconstruct(sinograms, angles, {method = method,
                center = 9.25, filter = "hann", padding = "edge", circle = 0,
                roi = {4, 12, 2, 20}, scale = math.pi / ANGLES / 1e-6})
            gives(expected, scan, {{"crop", columns = {3, 22}}, "flat_field", "minus_log",
                {"center", column = 11.25}, {method, filter = "hann", circle = 0, y = {5, 12},
                    x = {3, 20}}})
        end
    end)

    it("fbp follows an axis that leans", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local sinograms <close> = whole:permute(2, 1, 3)
        local shifts = {}
        for row = 1, ROWS do
            shifts[row] = math.tan(0.05) * (row - (ROWS + 1) / 2)
        end
        local expected <close> = mb.tomo.fbp(sinograms, mb.tomo.angles(ANGLES), {center = 11,
            slice_shifts = shifts, scale = math.pi / ANGLES / 1e-6, filter = "shepp-logan",
            padding = "edge", circle = 1})
        gives(expected, scan, {{"tilt", angle = 0.05}, "flat_field", "minus_log",
            {"fbp", center = 11}})
    end)

    it("sees its own rows and projections behind crop, select and shifts", function()
        local scan <close> = counts()
        local whole <close> = lines(scan)
        local shifts, angles = {}, {}
        for i = 1, ANGLES do
            shifts[i] = math.sin(i) * 3
        end
        mb.vertical_shift(whole, shifts, {out = whole})
        local kept <close> = part_of(whole, {2, 20, 2}, {4, 11})
        local sinograms <close> = kept:permute(2, 1, 3)
        local of_slices, of_angles = {}, {}
        for row = 4, 11 do
            of_slices[#of_slices + 1] = math.tan(0.05) * (row - (ROWS + 1) / 2)
        end
        for i = 2, ANGLES, 2 do
            angles[#angles + 1] = (i - 1) * math.pi / ANGLES
            of_angles[#of_angles + 1] = math.tan(0.05) * shifts[i]
        end
        local expected <close> = mb.tomo.fbp(sinograms, angles, {center = 11,
            slice_shifts = of_slices, shifts = of_angles, scale = math.pi / #angles / 1e-6,
            filter = "shepp-logan", padding = "edge", circle = 1})
        gives(expected, scan, {{"tilt", angle = 0.05}, {"select", bad = {1, 3, 5, 7, 9, 11, 13, 15,
            17, 19}}, "flat_field", "minus_log", {"vertical_shift", shifts = shifts},
            {"crop", rows = {4, 11}}, {"fbp", center = 11}})
    end)

    it("fbp extends a half acquisition", function()
        local scan <close> = counts(2 * math.pi)
        local whole <close> = lines(scan)
        local sinograms <close> = whole:permute(2, 1, 3)
        local expected <close> = mb.tomo.fbp(sinograms, mb.tomo.angles(ANGLES, 2 * math.pi),
            {center = 4, half_acquisition = true, scale = 2 * math.pi / ANGLES / 1e-6,
                filter = "shepp-logan", padding = "edge", circle = 1})
        gives(expected, scan, {"half_acquisition", "flat_field", "minus_log",
            {"fbp", center = 4}})
    end)
end)

describe("a step on slices", function()
    local HEAD = {"flat_field", "minus_log", {"fbp", center = 11.5}}

    local function with(...)
        local list = table.move(HEAD, 1, 3, 1, {})
        return table.move({...}, 1, select("#", ...), 4, list)
    end

    it("gaussian smooths in three dimensions", function()
        local scan <close> = counts()
        local slices <close> = result_of(scan, HEAD)
        local flat <close> = mb.gaussian_filter(slices, {1, 2}, {axes = {2, 3}})
        gives(flat, scan, with {"gaussian", sigma = {1, 2}})
        local solid <close> = mb.gaussian_filter(slices, {0.5, 1, 1})
        gives(solid, scan, with {"gaussian", sigma = {0.5, 1, 1}})
    end)

    it("rescale stores values of a range as another type", function()
        local scan <close> = counts()
        local slices <close> = result_of(scan, HEAD)
        for name, dtype in pairs {uint8 = "u8", uint16 = "u16", float16 = "f16"} do
            local expected, tally = mb.quantize(slices, dtype, {low = -1e4, high = 2e5})
            tally:release()
            local _ <close> = expected
            gives(expected, scan, with {"rescale", dtype = name, range = {-1e4, 2e5}})
        end
        gives(slices, scan, with {"rescale", dtype = "float32"})
        local scaled <close> = result_of(scan, with {"rescale", dtype = "float32",
            range = {-1e4, 2e5}})
        local expected <close> = (slices + 1e4) / 2.1e5
        helper.assert_close(expected, scaled, 1e-6)
    end)
end)

describe("rescale by percentiles", function()
    it("takes the range from all values, whatever the blocks", function()
        local scan <close> = counts()
        local recipe = {"flat_field", "minus_log", {"fbp", center = 11.5}}
        local slices <close> = result_of(scan, recipe)
        local range = mb.statistics.percentiles(slices, {1, 99})
        local expected <close>, tally = mb.quantize(slices, "u8", {low = range[1],
            high = range[2]})
        tally:release()
        recipe[4] = {"rescale", dtype = "uint8", percentiles = {1, 99}}
        for _, rows in ipairs {1, 5, 100} do
            local stored <close> = result_of(scan, recipe, rows)
            assert.is_true(expected:to_string() == stored:to_string(), rows)
        end
    end)
end)

describe("rows of a result", function()
    it("are rows that it has", function()
        local scan <close> = counts()
        local recipe = {"flat_field", "minus_log", {"fbp", center = 11.5}}
        local function refused(part, rows)
            local text = helper.failure(mb.pipeline, scan.scan, recipe, {rows = rows})
            assert.is_truthy(text:find(part, 1, true), text)
        end
        refused("rows are 3 to 14; the result has 1 to 13", {3, 14})
        refused("rows are 0 to 2; the result has 1 to 13", {0, 2})
        refused("rows are 5 to 3; the result has 1 to 13", {5, 3})
        refused("rows is a table; give {first, last}, two whole numbers", {1.5, 2})
        local p = mb.pipeline(scan.scan, recipe, {rows = {3, 4}, quiet = true})
        assert.is_truthy((helper.failure(p.slices, p, {13, 14})):find("the result has 1 to 13", 1,
            true))
        local slices <close> = p:slices {13, 13}
        assert.same({1, COLS, COLS}, slices.shape)
    end)
end)
