-- The sizes that transforms should have.

local mb = require "moonbeam"
local helper = require "spec.helper"

local function is_good(size, n)
    local rest = size
    for _, p in ipairs {2, 3, 5, 7} do
        while rest % p == 0 do
            rest = rest // p
        end
    end
    return size >= n and size % 2 == 0 and rest == 1
end

local function choose(n, axis)
    local size, text, list = mb.fft.good_size(n, {device = "planned:h200", axis = axis,
        explain = true})
    return size, text, list
end

describe("fft.good_size", function()
    it("goes by smoothness on the host", function()
        for n = 1, 2000, 37 do
            local size, text, list = mb.fft.good_size(n, {device = "host", explain = true})
            assert.is_true(is_good(size, n))
            assert.equal(size, mb.fft.good_size(n, {device = "host"}))
            if n > 2 then
                assert.matches(("^size %d for %d, by smoothness:"):format(size, n), text)
                for _, candidate in ipairs(list) do
                    assert.equal(0, candidate.work)
                end
            end
        end
    end)

    it("answers at once for any extent, with even sizes of factors up to 7", function()
        for _, n in ipairs {3, 97, 1025, 4099, 65537, (1 << 31) + 1, (1 << 39) + 1, 1 << 40} do
            local size, _, list = mb.fft.good_size(n, {device = "host", explain = true})
            assert.is_true(is_good(size, n))
            for _, each in ipairs(list) do
                assert.is_true(is_good(each.size, n))
            end
            for between = n, math.min(list[1].size, n + 5000) - 1 do
                assert.is_false(is_good(between, n))
            end
        end
    end)

    it("takes the least product of time and memory on a GPU", function()
        for _, axis in ipairs {"row", "column"} do
            for n = 3, 8000, 61 do
                local size, _, list = choose(n, axis)
                assert.is_true(is_good(size, n))
                local least, best
                for _, candidate in ipairs(list) do
                    assert.is_true(is_good(candidate.size, n))
                    local product = candidate.ps * candidate.size * candidate.size * (
                        2 + candidate.work)
                    if not least or product < least then
                        least, best = product, candidate.size
                    end
                end
                assert.equal(best, size)
            end
        end
    end)

    it("knows what smoothness does not", function()
        -- Rows of 1536 take twice the time of rows of 1728, and a work area.
        local size, text, list = choose(1500)
        local by_size = {}
        for _, candidate in ipairs(list) do
            by_size[candidate.size] = candidate
        end
        assert.equal(1728, size)
        assert.is_true(1536 * by_size[1536].ps > 1728 * by_size[1728].ps)
        assert.equal(1, by_size[1536].work)
        assert.equal(0, by_size[1728].work)
        assert.matches("^size 1728 for 1500 %(row%), times measured on NVIDIA H200, cuFFT", text)
        assert.matches("1728    2%.%d%d ps a point   1%.00 x the time    no work area   1%.00 x the memory  <%-\n", text)
        assert.matches("least product of time and memory", text)
    end)

    it("falls back to smoothness beyond what was timed", function()
        local size, text = choose(100003)
        assert.is_true(is_good(size, 100003))
        assert.matches("by smoothness", text)
    end)

    it("checks its arguments", function()
        assert.matches("at least one", (helper.failure(mb.fft.good_size, 0)))
        assert.matches("axis is the string 'diagonal'; it must be row or column",
            (helper.failure(mb.fft.good_size, 8, {axis = "diagonal"})))
        assert.matches("did you mean 'axis'", (helper.failure(mb.fft.good_size, 8, {axes = "row"})))
    end)

    -- By hand: all combinations of what good_size compares.
    local function best_grid(least)
        local lists = {}
        for i, n in ipairs(least) do
            lists[i] = select(3, choose(n, i == #least and "row" or "column"))
        end
        local best, sizes
        for _, a in ipairs(lists[1]) do
            for _, b in ipairs(lists[2]) do
                for _, c in ipairs(lists[3]) do
                    local points = 1.0 * a.size * b.size * c.size
                    local weight = points * points * (a.ps + b.ps + c.ps) * (2 + math.max(a.work,
                        b.work, c.work))
                    if not best or weight < best then
                        best, sizes = weight, {a.size, b.size, c.size}
                    end
                end
            end
        end
        return sizes
    end

    it("chooses the axes of a grid together", function()
        for _, least in ipairs {{158, 758, 958}, {37, 64, 101}, {544, 1088, 1088},
            {288, 964, 1564}} do
            assert.same(best_grid(least), mb.fft.good_grid(least, {device = "planned:h200"}))
        end
        assert.same({1, 100, 512},
            mb.fft.good_grid({1, 100, 509}, {device = "planned:h200", given = {false, true}}))
        assert.same({77, 512},
            mb.fft.good_grid({77, 509}, {device = "planned:h200", given = {true, false}}))
        assert.same({1021}, mb.fft.good_grid({1021}, {device = "planned:h200", given = {true}}))
        -- On the host every axis for itself, by smoothness.
        assert.same({1, mb.fft.good_size(131), mb.fft.good_size(509)},
            mb.fft.good_grid({1, 131, 509}, {device = "host"}))
        assert.same({mb.fft.good_size(20000), 512},
            mb.fft.good_grid({20000, 509}, {device = "planned:h200"}))
        assert.matches("least must be 1 to 3 extents above 0",
            (helper.failure(mb.fft.good_grid, {2, 2, 2, 2})))
    end)

    helper.gpu_it("is the same on a GPU that is there and on the one that stands for it", function()
        if mb.device("cuda:0").name ~= mb.device("planned:h200").name then
            pending("the record is of another GPU")
        end
        for n = 3, 9000, 113 do
            for _, axis in ipairs {"row", "column"} do
                assert.equal(choose(n, axis), mb.fft.good_size(n, {device = "cuda:0", axis = axis}))
            end
        end
    end)
end)
