local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"
local vo = require "spec.support.vo_stripes"

local nan <const> = 0 / 0

-- Values of few levels, so that many are equal; with NaN and infinities if `odd`.
local function values(angles, columns, levels, odd)
    local sino = {}
    for a = 1, angles do
        sino[a] = {}
        for c = 1, columns do
            sino[a][c] = math.random(-levels, levels) / 4
            if odd and math.random(6) == 1 then
                sino[a][c] = ({nan, -nan, 1 / 0, -1 / 0, -0.0})[math.random(5)]
            end
        end
    end
    return sino
end

local function same(x, y)
    return x == y or x ~= x and y ~= y
end

local function compare(device, sino, size)
    local a <close> = mb.array(sino, {device = device, dtype = "f32"})
    local result <close> = mb.stripes_sorting(a, {size = size})
    local got, expected = result:to_table(), vo.sorting(sino, size)
    for i, row in ipairs(expected) do
        for c, value in ipairs(row) do
            assert(same(value, got[i][c]), ("%d x %d, size %d: %g instead of %g at %d, %d"):format(
                #sino, #row, size, got[i][c], value, i, c))
        end
    end
end

-- A smooth object that turns, with noise.
local function smooth(angles, columns, noise, device)
    math.randomseed(13)
    return mb.array(vo.object(angles, columns, noise), {dtype = "f32", device = device})
end

describe("stripes_sorting", function()
    helper.each_device(function(device, it)
        it("is the definition, for any shape and window, on " .. device, function()
            math.randomseed(11)
            for _, case in ipairs {{1, 1, 1}, {1, 1, 7}, {1, 9, 3}, {2, 9, 3}, {7, 1, 5},
                {13, 5, 4}, {13, 5, 2}, {17, 23, 11}, {30, 7, 40}, {40, 33, 21}, {9, 130, 31},
                {33, 18, 111}, {3, 260, 105}, {16, 16, 1}} do
                local angles, columns, size = table.unpack(case)
                compare(device, values(angles, columns, 1000), size)
                compare(device, values(angles, columns, 2), size)
                compare(device, values(angles, columns, 20, true), size)
            end
        end)

        it("sorts more angles than fit a run on " .. device, function()
            math.randomseed(12)
            for _, angles in ipairs {1535, 1536, 1537, 1600, 3073} do
                compare(device, values(angles, 5, 1 << 20), 3)
            end
            compare(device, values(1700, 4, 9, true), 3)
            compare(device, values(12300, 2, 1 << 20), 3)
            compare(device, values(65540, 1, 1 << 20), 1)
        end)

        it("works on permuted projections, in place, on " .. device, function()
            local frames <close> = mb.random({21, 3, 18}, {seed = 5, device = device})
            local sinos <close> = frames:permute(2, 1, 3)
            local dense <close> = sinos:copy()
            local expected <close> = mb.stripes_sorting(dense, {size = 7})
            mb.stripes_sorting(sinos, {size = 7, out = sinos})
            helper.assert_close(expected, sinos, 0)
        end)

        it("keeps what has no stripes, and removes those there are, on " .. device, function()
            local flat <close> = mb.full({20, 30}, 1.25, {device = device})
            local same_flat <close> = mb.stripes_sorting(flat, {size = 5})
            helper.assert_close(flat, same_flat, 0)
            local clean <close> = smooth(180, 120, 0.005, device)
            local kept <close> = mb.stripes_sorting(clean, {size = 9})
            helper.assert_close(clean, kept, 0.02)
            local rows = clean:to_table()
            for _, row in ipairs(rows) do
                row[40], row[41], row[90] = row[40] + 0.3, row[41] + 0.3, row[90] - 0.2
            end
            local striped <close> = mb.array(rows, {dtype = "f32", device = device})
            local got <close> = mb.stripes_sorting(striped, {size = 9})
            helper.assert_close(clean, got, 0.03)
        end)
    end)

    it("is algotom's", function()
        oracle.needs "algotom"
        math.randomseed(14)
        local sino <close> = mb.array(vo.steps(vo.object(181, 97, 0.3)), {dtype = "f32"})
        for _, size in ipairs {6, 21} do
            local expected <close> = oracle.run("algotom", vo.STABLE
                .. ("expected = removal.remove_stripe_based_sorting(sino, %d)"):format(size),
                {sino = sino}, {"expected"})
            local got <close> = mb.stripes_sorting(sino, {size = size})
            helper.assert_close(expected, got, 0)
        end
    end)

    it("refuses windows without columns", function()
        local a <close> = mb.zeros {4, 4}
        local text, err = helper.failure(mb.stripes_sorting, a, {size = 0})
        assert.equal("size", err.arg)
        assert.truthy(text:find("1", 1, true), text)
    end)
end)
