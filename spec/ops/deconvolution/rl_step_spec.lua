-- One iteration of Richardson-Lucy in one operator: what its four parts make, in every way of
-- running it.

local mb = require "moonbeam"
local helper = require "spec.helper"

-- Relative L2 difference of b from a.
local function distance(a, b)
    local d <close> = a - b
    local squares <close> = d * d
    local reference <close> = a * a
    return math.sqrt(squares:sum() / reference:sum())
end

local function on(device, array)
    return array and array:to(device)
end

-- The arrays and options of a step over a grid, on the host: an image smaller than the grid where
-- `window` says so.
local function problem(grid, window, kernel, options)
    local all = {}
    all.estimate = mb.random(grid, { seed = 1, low = 0.5, high = 1.5 })
    all.image = mb.random(window, { seed = 2, low = options.low or 0, high = options.dtype and 200
        or 2, dtype = options.dtype or "f32" })
    local psf <close> = mb.random(kernel, { seed = 3 })
    local center = {}
    for i, extent in ipairs(kernel) do
        center[i] = (extent - 1) // 2
    end
    all.otf = mb.convolution.transfer(psf, grid, { center = center, form = options.form or "whole" })
    all.window, all.center, all.background = window, center, options.background
    if options.table then
        all.table = mb.summed_area(psf, { scale = 1 / mb.psf.sum(psf) })
    end
    if options.weights then
        all.weights = mb.random(window, { seed = 4 })
        all.normalizer = mb.random(grid, { seed = 5, low = 0.2 })
    end
    if options.gradient then
        all.gradient = mb.random(grid, { seed = 6, low = -1 })
    end
    return all
end

local ARRAYS = { "estimate", "image", "otf", "table", "weights", "normalizer", "gradient" }

local function release(all)
    for _, name in ipairs(ARRAYS) do
        if all[name] then
            all[name]:release()
        end
    end
end

local function copy_to(device, all)
    local there = { window = all.window, center = all.center, background = all.background }
    for _, name in ipairs(ARRAYS) do
        there[name] = on(device, all[name])
    end
    return there
end

local function update_options(all, metrics)
    return { table = all.table, normalizer = all.normalizer, window = all.table and all.window,
        center = all.table and all.center, gradient = all.gradient, min = 0.01, metrics = metrics }
end

-- Two steps; returns all the numbers of both metrics.
local function by_step(all, metrics)
    local numbers = {}
    local work <close> = mb.embed(all.estimate, all.estimate.shape)
    for _ = 1, 2 do
        local options = update_options(all, metrics)
        options.weights, options.eps, options.background = all.weights, 0.05, all.background
        local _, _, metric <close> = mb.rl_step(all.estimate, work, all.otf, all.image, options)
        for i = 1, metric and metric.shape[1] or 0 do
            numbers[#numbers + 1] = metric:item(i)
        end
    end
    return numbers
end

local function by_parts(all, metrics)
    local numbers = {}
    local n = all.estimate.shape[#all.estimate.shape]
    local work <close> = mb.embed(all.estimate, all.estimate.shape)
    for _ = 1, 2 do
        mb.convolution.apply(work, all.otf, n)
        local _, misfit <close> = mb.rl_ratio(work, all.image, { weights = all.weights, eps = 0.05,
            metrics = metrics, background = all.background })
        mb.convolution.apply(work, all.otf, n, true)
        local _, _, sums <close> = mb.rl_update(all.estimate, work, update_options(all, metrics
            or all.gradient ~= nil))
        for i = 1, sums and 2 or 0 do
            numbers[#numbers + 1] = misfit and misfit:item(i) or 0
        end
        for i = 1, sums and sums.shape[1] or 0 do
            numbers[#numbers + 1] = sums:item(i)
        end
    end
    return numbers
end

-- The sixth of seven, the product of the change with the gradient before, is as exact as the two
-- are large: 4 and 7 are their squares.
local function assert_same_numbers(expected, got)
    assert.equal(#expected, #got)
    for i, value in ipairs(expected) do
        local size = math.abs(value)
        if #expected == 14 and i % 7 == 6 then
            size = math.sqrt(expected[i - 2] * expected[i + 1])
        end
        assert.near(value, got[i], 1e-5 * math.max(1, size), "number " .. i)
    end
end

local function assert_same(expected, got, tolerance)
    for _, name in ipairs { "estimate", "gradient" } do
        if expected[name] then
            local a <close> = on("host", expected[name])
            local b <close> = on("host", got[name])
            local off = distance(a, b)
            -- A change is smaller than what it is the difference of.
            assert.is_true(off < (name == "gradient" and 10 or 1) * tolerance,
                ("%s: relative L2 difference %g"):format(name, off))
        end
    end
end

-- Windows with rows of fours and without, of the grid's size and smaller.
local cases = {
    { { 6, 9, 10 }, { 6, 9, 10 }, { 3, 4, 5 }, {} },
    { { 8, 9, 12 }, { 6, 6, 8 }, { 3, 4, 5 }, { table = true, dtype = "u16" } },
    { { 9, 15 }, { 8, 13 }, { 2, 3 }, { weights = true, gradient = true } },
    { { 21 }, { 17 }, { 4 }, { table = true, gradient = true, dtype = "u8" } },
    { { 14, 9, 10 }, { 14, 9, 10 }, { 3, 4, 5 }, { form = "planes" } },
    { { 8, 9, 12 }, { 6, 6, 8 }, { 3, 4, 5 }, { table = true, low = -1, background = 0.5 } },
}
-- What the fused passes take: every length of a row, tiles of one row and of many.
local fused = {
    { { 16, 64, 128 }, { 16, 64, 128 }, { 3, 4, 5 }, {} },
    { { 16, 64, 128 }, { 14, 61, 124 }, { 3, 4, 5 }, { table = true } },
    { { 32, 128, 256 }, { 30, 125, 250 }, { 3, 4, 5 }, { weights = true, gradient = true } },
    { { 16, 64, 512 }, { 14, 61, 509 }, { 3, 4, 4 },
        { table = true, dtype = "u16", gradient = true } },
    { { 16, 256, 1024 }, { 14, 250, 1020 }, { 3, 4, 5 }, { table = true, dtype = "u8" } },
    { { 16, 64, 2048 }, { 16, 64, 2048 }, { 3, 4, 5 }, { gradient = true } },
    { { 16, 64, 4096 }, { 14, 61, 4090 }, { 3, 4, 5 }, { table = true } },
    { { 16, 512, 128 }, { 16, 512, 128 }, { 3, 4, 5 }, { dtype = "u16" } },
    { { 16, 1024, 256 }, { 16, 1024, 256 }, { 3, 4, 5 }, { gradient = true } },
    { { 64, 2048, 128 }, { 61, 2000, 125 }, { 3, 4, 5 }, { weights = true } },
    { { 64, 64, 128 }, { 58, 61, 124 }, { 7, 4, 5 }, { table = true, form = "planes" } },
    { { 128, 64, 256 }, { 128, 64, 256 }, { 30, 4, 5 }, { gradient = true, form = "planes" } },
    { { 16, 64, 128 }, { 14, 61, 124 }, { 3, 4, 5 }, { table = true, low = -1, background = 0.5 } },
    { { 16, 64, 128 }, { 14, 61, 125 }, { 3, 4, 5 }, { weights = true, low = -1 } },
}

local function name_of(case)
    local words = {}
    for name, value in pairs(case[4]) do
        words[#words + 1] = value == true and name or type(value) == "number"
            and ("%s %g"):format(name, value) or value
    end
    table.sort(words)
    return ("%s on a grid of %s, %s"):format(table.concat(case[2], " x "),
        table.concat(case[1], " x "),
        table.concat(words, ", "))
end

helper.each_device(function(device, it_on)
    describe("rl_step on " .. device, function()
        for _, case in ipairs(cases) do
            for _, metrics in ipairs { true, false } do
                it_on(("is its four parts: %s%s"):format(name_of(case), metrics and ", metrics"
                    or ""), function()
                    local host = problem(table.unpack(case))
                    local a, b = copy_to(device, host), copy_to(device, host)
                    assert_same_numbers(by_parts(a, metrics), by_step(b, metrics))
                    assert_same(a, b, 1e-6)
                    release(host)
                    release(a)
                    release(b)
                end)
            end
        end
    end)
end)

describe("rl_step", function()
    for _, case in ipairs(fused) do
        for _, metrics in ipairs { true, false } do
            helper.gpu_it(("agrees with its parts on the host: %s%s"):format(name_of(case), metrics
                and ", metrics" or ""),
                function()
                    local host = problem(table.unpack(case))
                    local there = copy_to("cuda:0", host)
                    local got = by_step(there, metrics)
                    assert_same_numbers(by_parts(host, metrics), got)
                    assert_same(host, there, 2e-6)
                    release(host)
                    release(there)
                end)
        end
    end

    helper.gpu_it("gives the same bits every time", function()
        local host = problem(table.unpack(fused[3]))
        local a, b = copy_to("cuda:0", host), copy_to("cuda:0", host)
        assert.same(by_step(a, true), by_step(b, true))
        local x <close> = a.estimate:to("host")
        local y <close> = b.estimate:to("host")
        helper.assert_close(x, y, 0)
        release(host)
        release(a)
        release(b)
    end)

    helper.gpu_it("takes what its estimate says, and no work area for powers of two", function()
        for _, grid in ipairs { { 32, 64, 128 }, { 32, 60, 128 }, { 32, 64, 126 } } do
            for _, metrics in ipairs { true, false } do
                local host = problem(grid, grid, { 3, 3, 3 }, {})
                local all = copy_to("cuda:0", host)
                local work <close> = mb.embed(all.estimate, grid)
                local known = mb.op.estimate("rl_step", { estimate = all.estimate, work = work,
                    otf = all.otf,
                    image = all.image }, { metrics = metrics }, { device = "cuda:0" })
                local peak = mb.pool.peak(function()
                    local _, _, metric = mb.rl_step(all.estimate, work, all.otf, all.image,
                        { metrics = metrics })
                    if metric then
                        metric:release()
                    end
                end, "cuda:0")
                assert.equal(known.peak, peak)
                if grid[2] == 64 and grid[3] == 128 then
                    assert.is_true(known.peak <= 512 * 16, known.peak .. " bytes")
                end
                release(host)
                release(all)
            end
        end
    end)

    it("says what does not fit", function()
        local all = problem({ 6, 8 }, { 5, 7 }, { 3, 3 }, {})
        local work <close> = mb.embed(all.estimate, { 6, 8 })
        assert.matches("work must have the padded rows of the estimate's grid, 6 x 10",
            (helper.failure(mb.rl_step, all.estimate, all.estimate, all.otf, all.image)))
        assert.matches("the half spectrum of this grid is",
            (helper.failure(mb.rl_step, all.estimate, work, all.otf:view({ 1, 5 }, mb.all),
                all.image)))
        assert.matches("axis 2: the image has 20 elements and the grid has",
            (helper.failure(mb.rl_step, all.estimate, work, all.otf, mb.zeros { 5, 20 })))
        release(all)
    end)
end)
