-- What direct methods make of angles that do not cover half a turn evenly: exact line integrals of
-- five ellipses, and the slice that is right.
local mb = require "moonbeam"
local helper = require "spec.helper"
local directions = require "moonbeam.scan.directions"

local COLS <const>, CENTER <const> = 128, 61

-- Density, half axes, place and turn, in units of the half width.
local ELLIPSES <const> = {{1, 0.8, 0.7, 0, 0, 0.3}, {1.5, 0.15, 0.1, 0.35, 0.2, 0.8},
    {-0.8, 0.1, 0.2, -0.4, 0.3, 0}, {0.7, 0.2, 0.08, 0.1, -0.45, -0.4},
    {2, 0.05, 0.05, -0.25, -0.3, 0}}

-- Sinograms (row, angle, column); `rows` equal ones.
local function sinograms(angles, center, half, rows)
    local list, heights = {}, {}
    for _, e in ipairs(ELLIPSES) do
        for _, value in ipairs {e[1] / half, e[2] * half, e[3] * half, 1e6, e[4] * half,
            e[5] * half, 0, e[6]} do
            list[#list + 1] = value
        end
    end
    for i = 1, rows or 1 do
        heights[i] = 0
    end
    local frames <close> = mb.ellipsoid_projections(list, angles, heights, COLS,
        {center = center, subrays = 4})
    local view <close> = frames:permute(2, 1, 3)
    return view:copy()
end

-- The slice that is right, and how far another one is from it.
local function judge_of(size, half)
    local right, middle = {}, (size - 1) / 2
    local function density(x, y)
        local sum = 0
        for _, e in ipairs(ELLIPSES) do
            local dx, dy = x - e[4] * half, y - e[5] * half
            local u, v = dx * math.cos(e[6]) + dy * math.sin(e[6]),
                dy * math.cos(e[6]) - dx * math.sin(e[6])
            sum = sum + ((u / e[2]) ^ 2 + (v / e[3]) ^ 2 <= half ^ 2 and e[1] / half or 0)
        end
        return sum
    end
    for j = 1, size do
        right[j] = {}
        for i = 1, size do
            local sum = 0
            for k = 0, 8 do
                sum = sum + density(i - 1 - middle + (k % 3 - 1) / 3,
                    middle - (j - 1) - (k // 3 - 1) / 3)
            end
            right[j][i] = sum / 9
        end
    end
    return function(slices)
        local found, off, all = slices:to_table()[1], 0, 0
        for j = 1, size do
            for i = 1, size do
                if (i - 1 - middle) ^ 2 + (j - 1 - middle) ^ 2 < (0.475 * size) ^ 2 then
                    off, all = off + (found[j][i] - right[j][i]) ^ 2, all + right[j][i] ^ 2
                end
            end
        end
        return math.sqrt(off / all)
    end
end

local function even(count, step, first)
    local angles = {}
    for i = 1, count do
        angles[i] = math.rad((first or 0) + (i - 1) * (step or 1))
    end
    return angles
end

local function joined(...)
    local all = {}
    for _, angles in ipairs {...} do
        table.move(angles, 1, #angles, #all + 1, all)
    end
    return all
end

local function golden(count, turn)
    local angles = {}
    for i = 1, count do
        angles[i] = (i - 1) * turn * (math.sqrt(5) - 1) / 2 % turn
    end
    return angles
end

-- Angles at random, each alone; or of even steps and off by up to `jitter` steps.
local function random(count, step, jitter)
    math.randomseed(28, count)
    local angles = jitter and even(count, step) or {}
    for i = 1, count do
        angles[i] = jitter and angles[i] + math.rad(step) * jitter * (2 * math.random() - 1)
            or math.random() * math.pi
    end
    return angles
end

local function shuffled(angles)
    math.randomseed(5)
    for i = #angles, 2, -1 do
        local j = math.random(i)
        angles[i], angles[j] = angles[j], angles[i]
    end
    return angles
end

local LIKE_THE_PROGRAM <const> = {filter = "shepp-logan", padding = "edge", circle = 1}

describe("arcs", function()
    local judge, judge_half, right, right_fbp

    local function error_of(angles, more)
        local sino <close> = sinograms(angles, CENTER, COLS / 2)
        local options = {center = CENTER, method = more and more.method or "fourier"}
        for _, part in ipairs {LIKE_THE_PROGRAM, more or {}} do
            for key, value in pairs(part) do
                options[key] = value
            end
        end
        local slices <close> = mb.tomo.reconstruct(sino, angles, options)
        return judge(slices)
    end

    setup(function()
        judge, judge_half = judge_of(COLS, COLS / 2), judge_of(201, 100)
        right, right_fbp = error_of(even(180)), error_of(even(180), {method = "fbp"})
        assert.is_true(right < 0.038 and right_fbp < 0.048)
    end)

    local ARCS = {
        {"views taken twice", joined(even(180), even(10, 1, 40))},
        {"every view twice, some thrice", joined(even(180), even(180), even(60))},
        {"a dense part", joined(even(180), even(200, 0.1, 40))},
        {"two scans between each other", joined(even(180), even(90, 1, 0.5))},
        {"two scans of other steps", joined(even(200, 0.9), even(113, 1.6, 0.35))},
        {"steps that grow", (function()
            local angles = {}
            for i = 1, 200 do
                angles[i] = math.pi * ((i - 1) / 200) ^ 1.5
            end
            return angles
        end)()},
        {"an interlaced scan that was stopped", joined(even(45, 4), even(45, 4, 2),
            even(45, 4, 1), even(25, 4, 3))},
        {"an arc in any order", shuffled(even(233))},
        {"an arc backwards, from anywhere", even(250, -1, 77)},
        {"an arc with encoder errors", random(270, 1, 0.1)},
        {"random angles", random(420)}, {"steps off by one", random(220, 180 / 220, 1)},
        {"golden angles", golden(200, math.pi)}, {"golden angles of a turn", golden(300,
            2 * math.pi)},
        {"half a turn with two views lost", joined(even(90), even(87, 1, 93))},
        {"a turn of a fine step, and some more", even(1500, 0.27)},
    }
    for _, span in ipairs {182, 185, 200, 220, 225, 270, 300, 330, 350, 365, 400, 545} do
        ARCS[#ARCS + 1] = {("0 to %d degrees"):format(span), even(span)}
    end

    for _, method in ipairs {"fourier", "fbp"} do
        it("that cover half a turn are as good as half a turn, by " .. method, function()
            local base = method == "fbp" and right_fbp or right
            for i, case in ipairs(ARCS) do
                local off = (method == "fourier" or i % 3 == 0)
                    and error_of(case[2], {method = method}) or 0
                assert(off <= base * 1.15 and (method == "fbp" or off <= 0.045),
                    ("%s: %.4f"):format(case[1], off))
            end
        end)
    end

    it("fail without weights, and obey those that are given", function()
        for _, method in ipairs {"fourier", "fbp"} do
            local arc = even(270)
            assert.is_true(error_of(arc, {method = method, weights = "none"}) > 0.2)
            local own = {}
            for i = 1, 270 do
                own[i] = (i <= 90 or i > 180) and 0.75 or 1.5
            end
            assert.near(error_of(arc, {method = method}), error_of(arc, {method = method,
                weights = own}), 1e-6)
            own[1] = 30
            assert.is_true(error_of(arc, {method = method, weights = own}) > 0.1)
            local message, err = helper.failure(error_of, even(9), {method = method,
                weights = {1, 2}})
            assert.equal("shape", err.code)
            assert.equal("weights", err.arg)
            assert.matches("weights has 2 numbers; there are 9 angles", message, 1, true)
        end
    end)

    -- ---- even coverage ----

    it("of even coverage, as far as there is any, are not multiplied", function()
        local shapes = {even(180), even(181), even(360), even(361), even(359), even(540), even(541),
            even(720), even(721), even(1000, 0.18), even(7, 180 / 7), even(2, 90), even(1),
            {0, math.pi / 3, 2 * math.pi / 3, math.pi}, golden(233, math.pi), golden(377, math.pi),
            joined(even(60), even(119, 1, 61)), shuffled(even(180)), even(160), even(121, 1, -30)}
        for _, jitter in ipairs {0.01, 0.05, 0.1, 0.2} do
            for _, count in ipairs {20, 180, 361, 719, 900} do
                for _, turns in ipairs {0.5, 1, jitter <= 0.1 and 2 or nil} do
                    shapes[#shapes + 1] = random(count, 360 * turns / count, jitter)
                end
            end
        end
        for i, angles in ipairs(shapes) do
            assert(not directions.covered(angles, math.pi).weights, ("case %d, %d angles"):format(i,
                #angles))
        end
    end)

    it("of even coverage keep their bits", function()
        for _, angles in ipairs {even(60, 3), even(61, 3), even(121, 3), random(60, 3, 0.1),
            even(50, 3)} do
            local sino <close> = sinograms(angles, CENTER, COLS / 2, 2)
            for _, method in ipairs {"fourier", "fbp"} do
                local auto <close> = mb.tomo.reconstruct(sino, angles, {method = method})
                local none <close> = mb.tomo.reconstruct(sino, angles, {method = method,
                    weights = "none"})
                assert.same(none:to_table(), auto:to_table())
            end
        end
    end)

    it("have weights of mean 1, which views of one direction share", function()
        for _, case in ipairs(ARCS) do
            local weights, sum = directions.covered(case[2], math.pi).weights or {}, 0
            for _, weight in ipairs(weights) do
                assert.is_true(weight > 0)
                sum = sum + weight
            end
            assert.near(#weights, sum, 1e-9 * #weights)
        end
        local weights = directions.covered(joined(even(180), even(10)), math.pi).weights
        for i = 1, 190 do
            assert.near((i <= 10 or i > 180) and 19 / 36 or 19 / 18, weights[i], 1e-9)
        end
        -- Views of almost one direction keep the noise of all of them low.
        local angles, squares = even(910), 0
        math.randomseed(3)
        for i = 1, 910 do
            angles[i] = angles[i] + math.rad(0.02) * math.random()
        end
        for _, weight in ipairs(directions.covered(angles, math.pi).weights) do
            squares = squares + weight ^ 2
        end
        assert.is_true(squares / 910 < 1.02)
    end)

    -- ---- wedges ----

    it("with a wedge that was not recorded do not fill it", function()
        for _, span in ipairs {120, 150, 160, 170} do
            local angles = even(span)
            local found = directions.covered(angles, math.pi)
            assert.is_nil(found.weights)
            assert.equal(1, #found.wedges)
            assert.near(181 - span, math.deg(found.wedges[1][2] - found.wedges[1][1]), 1e-9)
            for _, method in ipairs {"fourier", "fbp"} do
                assert.equal(error_of(angles, {method = method, weights = "none"}),
                    error_of(angles, {method = method}))
            end
        end
        local dense = joined(even(160), even(90, 1, 0.5)) -- uneven beside the wedge
        local found, most = directions.covered(dense, math.pi), 0
        assert.equal(1, #found.wedges)
        for _, weight in ipairs(found.weights) do
            most = math.max(most, weight)
        end
        assert.is_true(most < 1.6)
        assert.is_true(error_of(dense) < 1.05 * error_of(even(160)))
        assert.is_true(error_of(dense, {weights = "none"}) > 0.25)
    end)

    -- ---- half acquisition ----

    it("of half acquisitions count each side by itself", function()
        local function off(angles, center, more)
            local sino <close> = sinograms(angles, center, 100)
            local options = {center = center, half_acquisition = true, weights = more}
            for key, value in pairs(LIKE_THE_PROGRAM) do
                options[key] = value
            end
            local slices <close> = mb.tomo.reconstruct(sino, angles, options)
            return judge_half(slices)
        end
        for _, center in ipairs {100, 27} do
            local whole = off(even(360), center)
            assert.is_true(whole < 0.038)
            assert.equal(whole, off(even(360), center, "none"))
            assert.equal(off(even(361), center, "none"), off(even(361), center))
            for _, angles in ipairs {even(355), even(365), even(370), even(400), even(540),
                joined(even(360), even(180, 1, 0.5))} do
                assert(off(angles, center) < 0.045, #angles)
            end
            assert.is_true(off(even(365), center, "none") > 0.055)
            assert.equal(off(even(350), center, "none"), off(even(350), center))
        end
        assert.equal(1, #directions.covered(even(350), 2 * math.pi).wedges)
    end)

    -- ---- memory and parts ----

    helper.each_device(function(device, test)
        test("take the memory that is predicted on " .. device:match("^%a+"), function()
            local angles = even(45, 6)
            local made <close> = sinograms(angles, CENTER, COLS / 2, 5)
            local sino <close> = made:to(device)
            for _, options in ipairs {{method = "fbp"}, {method = "fbp", mode = "in_place"},
                {method = "fourier"}, {half_acquisition = true, center = 20},
                {method = "fbp", slice_shifts = {1, 0, -1, 2, 0.5}}} do
                options.device = device
                local predicted = mb.tomo.choose_method(sino.shape, angles, options)
                options.device = nil
                local scope <close> = mb.pool.scope(device)
                local slices <close> = mb.tomo.reconstruct(sino, angles, options)
                assert.equal(5, slices.shape[1])
                assert.equal(predicted.peak, scope:finish())
            end
        end)
    end)

    it("give the same in parts, however small", function()
        local fbp = require "moonbeam.tomo.fbp"
        local angles = even(90, 3)
        local sino <close> = sinograms(angles, CENTER, COLS / 2, 3)
        local whole <close> = mb.tomo.fbp(sino, angles, {center = CENTER})
        local before = fbp.BATCH_BYTES
        local _ <close> = setmetatable({}, {__close = function() fbp.BATCH_BYTES = before end})
        for _, bytes in ipairs {1, 1 << 12, 1 << 18} do
            fbp.BATCH_BYTES = bytes
            for _, consume in ipairs {false, true} do
                local own <close> = sino:copy()
                local parts <close> = mb.tomo.fbp(own, angles, {center = CENTER, mode = "in_place",
                    consume = consume})
                assert.same(whole:to_table(), parts:to_table())
            end
        end
    end)
end)
