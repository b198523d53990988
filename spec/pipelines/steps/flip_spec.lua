-- The steps flip and reverse_rotation: the slices are those of upright frames, in the same order,
-- whatever else a recipe does, and rows and columns stay those of the stored frames.

local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"
local mirrored = require "spec.support.mirrored"

local LINES <const> = "line integrals"
local ROWS <const>, COLS <const> = mirrored.ROWS, mirrored.COLS

local upright, stored = mirrored.upright, mirrored.stored

local ALL <const> = {{rows = true}, {columns = true}, {rows = true, columns = true}}

local function flip(how)
    return {"flip", rows = how.rows, columns = how.columns}
end

-- The largest difference of two arrays, relative to the largest value; 0: the same bits.
local function difference(one, other)
    assert.same(one.shape, other.shape)
    if one:to_string() == other:to_string() then
        return 0
    end
    local apart <close> = mb.binary(one, "sub", {b = other})
    local size <close> = mb.unary(apart, "abs")
    return mb.bound(0, size.max, size) / mb.bound(0, one.max, one)
end

-- Asserts that stored frames with the steps of `recipe(how)` give what upright ones give without a
-- flip, for all three flips: to the bit where only rows move, unless `bits` is false. `options`:
-- those of check.scan.
local function same(values, options, recipe, what, bits)
    local up <close> = mb.array(values)
    local want <close> = check.gives(nil, check.scan(up, options), recipe {}, LINES)
    for _, how in ipairs(ALL) do
        local data <close> = mb.array(stored(values, how))
        local found <close> = check.gives(nil, check.scan(data, options), recipe(how), LINES)
        local most = (how.columns or bits == false) and 2e-6 or 0
        local apart = difference(want, found)
        assert.is_true(apart <= most, ("%s, rows %s, columns %s: %g"):format(what,
            tostring(how.rows), tostring(how.columns), apart))
    end
end

-- A recipe with the step flip, or without it where nothing is flipped.
local function with(how, ...)
    local list = {}
    for _, step in ipairs {...} do
        list[#list + 1] = step ~= "FLIP" and step or (how.rows or how.columns) and flip(how) or nil
    end
    return list
end

-- Column and row of upright frames in the stored ones.
local function column(how, value)
    return how.columns and COLS - 1 - value or value
end

local function rows(how, first, last)
    return how.rows and {ROWS + 1 - last, ROWS + 1 - first} or {first, last}
end

local function columns(how, first, last)
    return how.columns and {COLS + 1 - last, COLS + 1 - first} or {first, last}
end

describe("the step flip", function()
    local angles <const> = mb.tomo.angles(30)

    it("gives the slices of upright frames, by both methods", function()
        local values = upright(angles, 18.25)
        for _, method in ipairs {"fbp", "fourier"} do
            same(values, nil, function(how)
                return with(how, "FLIP", {method, center = column(how, 18.25), circle = 0})
            end, method)
        end
        same(values, nil, function(how)
            return with(how, "FLIP", {"sirt", center = column(how, 19.5), iterations = 3})
        end, "sirt")
    end)

    it("works on counts, before and after the flat field", function()
        local raw <close> = mb.random({12, 9, 20}, {seed = 1, dtype = "u16", low = 200,
            high = 900})
        local flats <close> = mb.random({3, 9, 20}, {seed = 2, dtype = "u16", low = 950,
            high = 1050})
        local darks <close> = mb.random({2, 9, 20}, {seed = 3, dtype = "u16", low = 9, high = 50})
        local before = raw:to_string()
        local scan = check.scan(raw, {flats = flats, darks = darks})
        local step, last = {"flip", rows = true}, {"fbp", center = 9}
        local one <close> = check.gives(nil, scan, {step, "flat_field", "minus_log", last})
        local other <close> = check.gives(nil, scan, {"flat_field", "minus_log", step, last})
        local plain <close> = check.gives(nil, scan, {"flat_field", "minus_log", last})
        local twice <close> = check.gives(nil, scan, {"flat_field", step, "minus_log", step, last})
        local frames <close> = check.gives(nil, scan, {step, "flat_field"})
        assert.equal(0, difference(one, other))
        assert.equal(0, difference(plain, twice))
        for z = 1, 9 do
            local here <close> = plain:view {z, z}
            local there <close> = one:view {10 - z, 10 - z}
            local a <close> = here:copy()
            local b <close> = there:copy()
            assert.equal(0, difference(a, b))
        end
        assert.same({12, 9, 20}, frames.shape)
        assert.is_true(before == raw:to_string()) -- the scan's own arrays stay
    end)

    it("counts rows and columns of all steps in the stored frames", function()
        local values = upright(angles, 18.5)
        local last = function(how)
            return {"fbp", center = column(how, 18.5), size = 30}
        end
        same(values, nil, function(how)
            return with(how, {"crop", rows = rows(how, 3, 10), columns = columns(how, 5, 36)},
                "FLIP", last(how))
        end, "crop before")
        same(values, nil, function(how)
            return with(how, "FLIP", {"crop", rows = rows(how, 3, 10), columns = columns(how, 5,
                36)}, {"crop", rows = rows(how, 4, 8)}, last(how))
        end, "crop after")
        for name, step in pairs {bin = {"bin", rows = 3, columns = 2},
            resample = {"resample", rows = 8, columns = 20}} do
            same(values, nil, function(how)
                return with(how, step, "FLIP", last(how))
            end, name .. " before")
            same(values, nil, function(how)
                return with(how, "FLIP", step, {"crop", rows = name == "bin" and rows(how, 4, 9)
                    or rows(how, 4, 12)}, last(how))
            end, name .. " after")
        end
    end)

    it("keeps leaning axes and vertical shifts those of the stored frames", function()
        local shifts = {}
        for k = 1, #angles do
            shifts[k] = 1.5 * math.sin(k)
        end
        local values = upright(angles, 18.5, 0.15, shifts)
        local function steps(how, before)
            local lean, list = 0.15, {}
            for k, shift in ipairs(shifts) do
                list[k] = how.rows and -shift or shift
            end
            lean = ((how.rows ~= nil) ~= (how.columns ~= nil)) and -lean or lean
            local shift, tilt = {"vertical_shift", shifts = list}, {"tilt", angle = math.atan(lean)}
            local last = {"fbp", center = column(how, 18.5)}
            return before and with(how, "FLIP", shift, tilt, last)
                or with(how, shift, tilt, "FLIP", last)
        end
        for _, before in ipairs {true, false} do
            same(values, nil, function(how) return steps(how, before) end, "lean, shifts")
        end
        same(values, nil, function(how)
            local angle = ((how.rows ~= nil) ~= (how.columns ~= nil)) and 0.1 or -0.1
            return with(how, {"rotate", angle = angle, center = {how.rows and 11 - 3 or 3,
                column(how, 18.5)}}, "FLIP", {"fbp", center = column(how, 18.5), circle = 0})
        end, "rotate before", false)
        same(values, nil, function(how)
            local angle = ((how.rows ~= nil) ~= (how.columns ~= nil)) and 0.1 or -0.1
            return with(how, "FLIP", {"rotate", angle = angle, center = {how.rows and 11 - 3 or 3,
                column(how, 18.5)}}, {"distortion", center = {how.rows and 11 - 7 or 7,
                column(how, 12)}, factors = {1, 2e-4}}, {"fbp", center = column(how, 18.5),
                circle = 0})
        end, "rotate after", false)
    end)

    it("goes with half acquisition and stitched turns", function()
        local turn = mb.tomo.angles(60, 2 * math.pi)
        local values = upright(turn, 30)
        same(values, {angles = turn}, function(how)
            return with(how, "FLIP", "half_acquisition", {"fbp", center = column(how, 30)})
        end, "half acquisition")
        for _, before in ipairs {true, false} do
            same(values, {angles = turn}, function(how)
                local stitch = {"stitch", center = column(how, 30)}
                local last = {"fbp", center = column(how, 30), circle = 0}
                return before and with(how, "FLIP", stitch, last) or with(how, stitch, "FLIP", last)
            end, "stitch")
        end
    end)

    it("finds the axis where it is in the stored frames", function()
        local fine = mb.tomo.angles(90)
        local values = upright(fine, 17.25)
        for _, how in ipairs(ALL) do
            local data <close> = mb.array(stored(values, how))
            for _, recipe in ipairs {{flip(how), "center", "fbp"}, {"center", flip(how), "fbp"},
                {{"bin", rows = 2, columns = 1}, flip(how), "center", "fbp"},
                {flip(how), {"crop", rows = {3, 10}}, {"center", method = "vo", row = 8},
                    "fbp"}} do
                local p = mb.pipeline(check.scan(data), recipe, {input = LINES, quiet = true})
                local slices <close>, done = p:slices()
                assert.is_true(done.as_planned)
                assert.is_true(math.abs(done.values.center - column(how, 17.25)) < 0.3,
                    done.values.center)
                assert.equal(slices.shape[2], COLS)
                local words = done.verdicts.center.how
                local first, last = words:match "rows (%d+) to (%d+)"
                assert.is_true(not first or tonumber(first) < tonumber(last), words)
            end
        end
    end)

    it("searches the rows that are asked for", function()
        local values = upright(mb.tomo.angles(90), 17.25)
        local data <close> = mb.array(values)
        local function words(recipe, own)
            local _ <close>, done = mb.pipeline(check.scan(data), recipe, {input = LINES,
                quiet = true}):slices(own)
            return done.verdicts.center.how
        end
        local want = words({"center", "fbp"}, {2, 5})
        local step = {"flip", rows = true}
        assert.equal(want, words({step, "center", "fbp"}, {ROWS + 1 - 5, ROWS + 1 - 2}))
        assert.equal(want, words({"center", step, "fbp"}, {ROWS + 1 - 5, ROWS + 1 - 2}))
    end)

    it("is undone by itself, and refuses to do nothing", function()
        local data <close> = mb.array(upright(angles, 18.5))
        local want <close> = check.gives(nil, check.scan(data), {{"fbp", center = 18.5}}, LINES)
        local both = {"flip", rows = true, columns = true}
        local found <close> = check.gives(nil, check.scan(data), {both, {"fbp", center = 18.5}},
            LINES)
        local again <close> = check.gives(nil, check.scan(data), {both, both,
            {"fbp", center = 18.5}}, LINES)
        assert.is_true(difference(want, found) > 0.1)
        assert.is_true(difference(want, again) < 1e-6)
        check.refused("it changes nothing; give rows = true, columns = true", check.scan(data),
            {"flip", {"fbp", center = 18.5}}, LINES)
    end)
end)

describe("the step reverse_rotation", function()
    it("gives the slices of a stage that turns the other way", function()
        local angles, negative = mb.tomo.angles(30), {}
        for k, angle in ipairs(angles) do
            negative[k] = -angle
        end
        local values = upright(angles, 18.5)
        local data <close> = mb.array(values)
        for _, method in ipairs {"fbp", "fourier"} do
            local last = {method, center = 18.5}
            local want <close> = check.gives(nil, check.scan(data, {angles = angles}), {last},
                LINES)
            local found <close> = check.gives(nil, check.scan(data, {angles = negative}),
                {"reverse_rotation", last}, LINES)
            assert.equal(0, difference(want, found))
        end
    end)

    it("leaves the angles that options name those of the scan", function()
        local angles = mb.tomo.angles(30)
        local data <close> = mb.array(upright(angles, 18.5))
        local pick, last = {"select", angles = {0.5, 3}}, {"fbp", center = 18.5}
        local both = {"flip", columns = true}
        local want <close> = check.gives(nil, check.scan(data), {pick, both, "reverse_rotation",
            last}, LINES)
        local found <close> = check.gives(nil, check.scan(data), {both, "reverse_rotation", pick,
            last}, LINES)
        assert.equal(0, difference(want, found))
        local text = helper.failure(mb.pipeline, check.scan(data), {both, "reverse_rotation",
            {"select", angles = {5, 6}}, last}, {quiet = true, input = LINES})
        assert.is_truthy(text:find("the angles of the scan are 0 to 3.036", 1, true), text)
    end)
end)
