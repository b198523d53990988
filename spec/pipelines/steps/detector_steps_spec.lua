-- The steps that change rows, columns or projections: bin, average, resample, horizontal_shift,
-- stitch, blend_seam. Columns of the axis and rows stay those of the scan.

local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

-- Slices by step fbp of data that were made beforehand. `options` are those of check.scan.
local function slices_of(data, center, options)
    return (check.result(check.scan(data, options), {{"fbp", center = center}}, nil, LINES))
end

-- Projections {angle, row, column} of a disk at x, y (px from the axis) of each row.
local function disk(angles, rows, cols, center, x, y, radius)
    local values = {}
    for k, angle in ipairs(angles) do
        local place = center + x * math.cos(angle) + y * math.sin(angle)
        values[k] = {}
        for row = 1, rows do
            values[k][row] = {}
            for column = 0, cols - 1 do
                local d = radius ^ 2 - (column - place) ^ 2
                values[k][row][column + 1] = d > 0 and 0.02 * row * math.sqrt(d) or 0
            end
        end
    end
    return mb.array(values)
end

describe("the step bin", function()
    it("gives means, of flats and darks too", function()
        local data <close> = mb.random({6, 15, 21}, {seed = 1, dtype = "u16", low = 300,
            high = 900})
        local flats <close> = mb.random({3, 15, 21}, {seed = 2, dtype = "u16", low = 950,
            high = 1050})
        local darks <close> = mb.random({2, 15, 21}, {seed = 3, dtype = "u16", low = 90,
            high = 110})
        local scan = check.scan(data, {flats = flats, darks = darks})
        local small <close> = mb.bin(data, {1, 2, 3})
        local small_flats <close> = mb.bin(flats, {1, 2, 3})
        local small_darks <close> = mb.bin(darks, {1, 2, 3})
        local want <close>, tally = mb.tomo.line_integrals(small, {flats = small_flats,
            darks = small_darks})
        tally:release()
        for _, later in ipairs {false, true} do
            local recipe = {{"bin", rows = 2, columns = 3}, "flat_field", "minus_log"}
            if later then
                recipe[4] = {"fbp", center = 10}
            end
            local _ <close> = check.gives(not later and want or nil, scan, recipe)
        end
    end)

    it("and then a reconstruction is one of a scan that was binned before", function()
        local data <close> = mb.random({9, 13, 32}, {seed = 4})
        local small <close> = mb.bin(data, {1, 2, 2})
        local want <close> = slices_of(small, (13.25 - 0.5) / 2, {pixel_size = 2e-6})
        local _ <close> = check.gives(want, check.scan(data, {pixel_size = 1e-6}), {"bin",
            {"fbp", center = 13.25}}, LINES)
        local part <close> = small:view(mb.all, {2, 4}, {3, 14})
        local dense <close> = part:copy()
        local cropped <close> = slices_of(dense, (13.25 - 4 - 0.5) / 2, {pixel_size = 2e-6})
        local _ <close> = check.gives(cropped, check.scan(data, {pixel_size = 1e-6}), {"bin",
            {"crop", rows = {3, 8}, columns = {5, 28}}, {"fbp", center = 13.25}}, LINES)
    end)

    it("mends values that are not finite before, and refuses too much", function()
        local data <close> = mb.array({{{1, 0 / 0}, {3, 4}}, {{1, 1}, {1, 1}}})
        local want <close> = mb.array({{{2}}, {{1}}})
        local _ <close> = check.gives(want, check.scan(data), {"bin"}, LINES)
        check.refused("rows is 3; frames have 2", check.scan(data), {{"bin", rows = 3}}, LINES)
    end)
end)

describe("the step average", function()
    it("gives means at the mean of the angles", function()
        local data <close> = mb.random({11, 7, 20}, {seed = 1})
        local angles = mb.tomo.angles(11)
        for _, rest in ipairs {"keep", "drop"} do
            local means <close> = mb.bin(data, {3, 1, 1}, {rest = rest})
            local own = {}
            for i = 1, means.shape[1] do
                local sum, last = 0, math.min(11, 3 * i)
                for k = 3 * i - 2, last do
                    sum = sum + angles[k]
                end
                own[i] = sum / (last - 3 * i + 3)
            end
            local step = {"average", frames = 3, rest = rest}
            local _ <close> = check.gives(means, check.scan(data), {step}, LINES)
            local want <close> = slices_of(means, 9.5, {angles = own})
            local _ <close> = check.gives(want, check.scan(data), {step, {"fbp", center = 9.5}},
                LINES)
        end
    end)

    it("takes counts, and steps before and after it", function()
        local data <close> = mb.random({12, 9, 20}, {seed = 1, dtype = "u16", high = 900})
        local flats <close> = mb.random({3, 9, 20}, {seed = 2, dtype = "u16", low = 950,
            high = 1050})
        local _ <close> = check.gives(nil, check.scan(data, {flats = flats}), {{"select",
            bad = {2, 5}}, {"average", frames = 2}, "flat_field", "minus_log", {"fbp",
                center = 9.5}})
        check.refused("frames is 13; there are 12", check.scan(data, {flats = flats}),
            {{"average", frames = 13}})
    end)

    it("lets the axis be found", function()
        local angles = mb.tomo.angles(120)
        local data <close> = disk(angles, 6, 64, 30.5, 12, 5, 8)
        for _, step in ipairs {{"average", frames = 2}, {"bin", rows = 1, columns = 1}} do
            local p = mb.pipeline(check.scan(data), {step, "center", "fbp"}, {input = LINES,
                quiet = true})
            local slices <close>, done = p:slices()
            assert.is_true(math.abs(done.values.center - 30.5) < 0.3, done.values.center)
            assert.same({6, 64, 64}, slices.shape)
        end
    end)
end)

describe("the step resample", function()
    it("gives frames of another size, about the same axis", function()
        local data <close> = mb.random({7, 20, 30}, {seed = 1})
        local small <close> = mb.resample(data, {12, 18})
        local scan = check.scan(data, {pixel_size = 3e-6})
        local _ <close> = check.gives(small, scan, {{"resample", rows = 12, columns = 18}}, LINES)
        local _ <close> = check.gives(small, scan, {{"resample", factor = 0.6}}, LINES)
        local want <close> = slices_of(small, (13 + 0.5) * 0.6 - 0.5, {pixel_size = 3e-6 / 0.6})
        local slices <close> = check.gives(nil, scan, {{"resample", factor = 0.6}, {"fbp",
            center = 13}}, LINES)
        helper.assert_close(want:to_table(), slices, 1e-5)
        local large <close> = mb.resample(data, {41, 30}, {method = "linear"})
        local _ <close> = check.gives(large, scan, {{"resample", rows = 41, preset = "httomo"}},
            LINES)
        check.refused("it changes nothing", scan, {"resample"}, LINES)
        check.refused("cuts elements of", scan, {{"resample", factor = 0.6}, {"crop",
            columns = {3, 12}}}, LINES)
    end)
end)

describe("the step horizontal_shift", function()
    it("moves the projections that are left, in columns of the scan", function()
        local data <close> = mb.random({8, 5, 20}, {seed = 1})
        local shifts = {0.5, -1.25, 3, 0, 7.5, -2, 1, 0.125}
        local want <close> = mb.horizontal_shift(data, shifts)
        local scan = check.scan(data)
        local _ <close> = check.gives(want, scan, {{"horizontal_shift", shifts = shifts}}, LINES)
        local slices <close> = slices_of(want, 9)
        local _ <close> = check.gives(slices, scan, {{"horizontal_shift", shifts = shifts}, {"fbp",
            center = 9}}, LINES)
        local air <close> = mb.horizontal_shift(data, shifts, {value = 1})
        local _ <close> = check.gives(air, scan, {{"horizontal_shift", shifts = shifts}},
            "transmission")
        local kept <close> = data:view({1, 8, 2}, mb.all, mb.all)
        local half <close> = mb.bin(kept, {1, 1, 2})
        local moved <close> = mb.horizontal_shift(half, {0.25, 1.5, 3.75, 0.5})
        local _ <close> = check.gives(moved, scan, {{"select", every = 2}, {"bin", rows = 1},
            {"horizontal_shift", shifts = shifts}}, LINES)
        check.refused("shifts has 2 numbers", scan, {{"horizontal_shift", shifts = {1, 2}}}, LINES)
    end)
end)

describe("the step blend_seam", function()
    it("joins images, after a crop too", function()
        local data <close> = mb.random({4, 5, 40}, {seed = 1})
        local want <close> = mb.blend_seam(data, 18, 6)
        local scan = check.scan(data)
        local _ <close> = check.gives(want, scan, {{"blend_seam", seam = 18, overlap = 6}}, LINES)
        local part <close> = want:view(mb.all, mb.all, {5, 34})
        local dense <close> = part:copy()
        local _ <close> = check.gives(dense, scan, {{"crop", columns = {5, 40}}, {"blend_seam",
            seam = 18, overlap = 6}}, LINES)
        check.refused("seam is 40", scan, {{"blend_seam", seam = 40, overlap = 6}}, LINES)
        check.refused("overlap is 30", scan, {{"blend_seam", seam = 18, overlap = 30}}, LINES)
    end)
end)

describe("the step stitch", function()
    local N <const>, COLS <const> = 60, 40

    it("joins frames, whose columns stay those of the scan", function()
        local data <close> = mb.random({2 * N, 4, COLS}, {seed = 1})
        local turn = {angles = mb.tomo.angles(2 * N, 2 * math.pi)}
        for _, case in ipairs {{6, "right"}, {7.5, "left"}, {-3, "right"}, {-4, "left"}} do
            local overlap, side = case[1], case[2]
            local wide <close> = mb.stitch_turn(data, overlap, side, {half = N})
            local center = side == "right" and COLS - (overlap + 1) / 2 or (overlap - 1) / 2
            local step = {"stitch", overlap = overlap, side = side}
            local _ <close> = check.gives(nil, check.scan(data, turn), {step}, LINES)
            local own = side == "right" and center or center + wide.shape[3] - COLS
            local want <close> = slices_of(wide, own)
            for _, other in ipairs {step, {"stitch", center = center}} do
                local _ <close> = check.gives(want, check.scan(data, turn), {other, {"fbp",
                    center = center}}, LINES)
            end
        end
    end)

    it("pads to twice the width as HTTomo does", function()
        local data <close> = mb.random({2 * N + 1, 2, COLS}, {seed = 2})
        local angles = mb.tomo.angles(2 * N, 2 * math.pi)
        angles[2 * N + 1] = 2 * math.pi
        local want <close> = mb.stitch_turn(data, 8, "left", {half = N, before = 4, after = 4,
            gap = "edge"})
        assert.same({N, 2, 2 * COLS}, want.shape)
        local _ <close> = check.gives(want, check.scan(data, {angles = angles}), {{"stitch",
            preset = "httomo", overlap = 7.2, side = "left"}}, LINES)
    end)

    it("makes what half acquisition makes, and lets the axis be found", function()
        local turn = {angles = mb.tomo.angles(2 * N, 2 * math.pi)}
        local center = 33.5
        local data <close> = disk(turn.angles, 3, COLS, center, 20, 6, 8)
        local scan = check.scan(data, turn)
        local joined <close> = check.result(scan, {{"stitch", center = center}, {"fbp",
            center = center, circle = 0, filter = "hann"}}, nil, LINES)
        local weighted <close> = check.result(scan, {"half_acquisition", {"fbp", center = center,
            circle = 0, filter = "hann"}}, nil, LINES)
        assert.same(weighted.shape, joined.shape)
        local a, b, c = joined:to_table(), weighted:to_table(), joined.shape[2]
        local most = 0
        for y = 6, c - 5 do
            for x = 6, c - 5 do
                most = math.max(most, math.abs(a[3][y][x] - b[3][y][x]))
            end
        end
        assert.is_true(most < 0.01, most)
        local p = mb.pipeline(scan, {{"stitch", center = center}, "center", "fbp"},
            {input = LINES, quiet = true})
        local slices <close>, done = p:slices()
        assert.is_true(math.abs(done.values.center - center) < 0.3, done.values.center)
        slices:release()
    end)

    it("hands the axis on", function()
        local turn = {angles = mb.tomo.angles(2 * N, 2 * math.pi)}
        for _, center in ipairs {33.5, 6.25, -4, 43} do -- of columns 0 to 39
            local data <close> = disk(turn.angles, 2, COLS, center, 4, 6, 8)
            local scan = check.scan(data, turn)
            local left = center < COLS / 2
            local overlap = left and 2 * center + 1 or 2 * (COLS - center) - 1
            local given = {"stitch", center = center}
            for _, last in ipairs {"fbp", "fourier", "sirt"} do
                local own = last == "sirt" and {last, iterations = 2} or {last}
                local with = {last, iterations = own.iterations, center = center}
                local want <close> = check.gives(nil, scan, {given, with}, LINES)
                local _ <close> = check.gives(want, scan, {given, own}, LINES)
                local _ <close> = check.gives(want, scan, {{"stitch", overlap = overlap,
                    side = left and "left" or "right"}, own}, LINES)
                local small = {{"bin", columns = 1}, {"flip", rows = true}, given, own}
                local _ <close> = check.gives(nil, scan, small, LINES)
            end
            for _, later in ipairs {{"fbp", center = center - 1}, {"sirt", center = center + 1},
                {"center", column = math.abs(center - 2) % COLS}} do
                check.refused(("step stitch has joined the frames about column %g: leave it out, "
                    .. "or give step stitch center = "):format(center), scan, {given, later,
                    later[1] == "center" and "fbp" or nil}, LINES)
            end
        end
    end)

    it("hands on the axis of an overlap that is rounded, and takes the one that it was given",
        function()
        local data <close> = mb.random({2 * N, 2, COLS}, {seed = 1})
        local scan = check.scan(data, {angles = mb.tomo.angles(2 * N, 2 * math.pi)})
        local step = {"stitch", center = 33.3, even = true} -- overlap 12.4, which becomes 12
        local want <close> = check.gives(nil, scan, {step, {"fbp", center = 33.5}}, LINES)
        local _ <close> = check.gives(want, scan, {step, "fbp"}, LINES)
        local _ <close> = check.gives(nil, scan, {step, {"fbp", center = 33.3}}, LINES)
        check.refused("about column 33.5", scan, {step, {"fbp", center = 33.1}}, LINES)
    end)

    it("is what messages name for an axis beyond the detector", function()
        local data <close> = disk(mb.tomo.angles(2 * N, 2 * math.pi), 2, COLS, 43, 4, 6, 8)
        local scan = check.scan(data, {angles = mb.tomo.angles(2 * N, 2 * math.pi)})
        local remedy = "step stitch joins a whole turn about an axis beyond the detector: "
            .. "{\"stitch\", center = 43} instead of half_acquisition"
        for _, last in ipairs {{"fbp", center = 43}, {"cgls", center = 43}} do
            check.refused(remedy, scan, {"half_acquisition", last}, LINES)
        end
        check.refused(remedy, scan, {"half_acquisition", {"center", column = 43}, "fbp"}, LINES)
        check.refused("an axis beyond the detector: {\"stitch\", center = -3}", scan,
            {{"fbp", center = -3}}, LINES)
        local half = check.scan(data) -- half a turn: no remedy
        local text = helper.failure(mb.pipeline, half, {{"fbp", center = 43}}, {quiet = true,
            input = LINES})
        assert.is_nil(text:find("stitch", 1, true), text)
        local slices <close> = check.gives(nil, scan, {{"stitch", center = 43}, {"fbp",
            filter = "hann"}}, LINES)
        assert.same({2, 87, 87}, slices.shape)
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({2 * N, 2, COLS}, {seed = 1})
        local half = check.scan(data)
        local scan = check.scan(data, {angles = mb.tomo.angles(2 * N, 2 * math.pi)})
        check.refused("it needs a whole turn; the angles cover", half, {{"stitch", overlap = 6,
            side = "left"}}, LINES)
        check.refused("give overlap and side, or center", scan, {{"stitch", overlap = 6}}, LINES)
        check.refused("center and overlap both", scan, {{"stitch", overlap = 6, center = 5}},
            LINES)
        check.refused("the overlap is 99", scan, {{"stitch", overlap = 99, side = "left"}}, LINES)
        check.refused("does the same; remove one", scan, {"half_acquisition", {"stitch",
            overlap = 6, side = "left"}}, LINES)
    end)
end)
