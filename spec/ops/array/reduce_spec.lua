local mb = require "moonbeam"
local helper = require "spec.helper"

-- The reduction of a list of numbers.
local function reduced(fn, list)
    local sum, squares, low, high = 0, 0, math.huge, -math.huge
    for _, x in ipairs(list) do
        sum, squares = sum + x, squares + x * x
        low, high = math.min(low, x), math.max(high, x)
    end
    return ({ sum = sum, mean = sum / #list, norm = math.sqrt(squares), min = low, max = high })[fn]
end

local names = { "sum", "mean", "norm", "min", "max" }

describe("reduce", function()
    for _, dtype in ipairs { "u8", "u16", "i32", "f16", "f32", "f64" } do
        it("reduces all of " .. dtype .. " and every axis", function()
            local a <close> = mb.random({ 3, 5, 7 }, { dtype = dtype, seed = 2, low = 0,
                high = 200 })
            local t = a:to_table()
            for _, fn in ipairs(names) do
                local all <close> = mb.reduce(a, fn)
                assert.equal("f64", all.dtype)
                assert.same({}, all.shape)
                assert.near(reduced(fn, helper.flatten(t)), all:item(), 1e-9 * 200 * 105)
                local want = { {}, {}, {} }
                for j = 1, 5 do
                    for k = 1, 7 do
                        want[1][#want[1] + 1] = reduced(fn, { t[1][j][k], t[2][j][k], t[3][j][k] })
                    end
                end
                for i = 1, 3 do
                    for k = 1, 7 do
                        local list = {}
                        for j = 1, 5 do
                            list[j] = t[i][j][k]
                        end
                        want[2][#want[2] + 1] = reduced(fn, list)
                    end
                    for j = 1, 5 do
                        want[3][#want[3] + 1] = reduced(fn, t[i][j])
                    end
                end
                for axis, shape in ipairs { { 5, 7 }, { 3, 7 }, { 3, 5 } } do
                    local r <close> = mb.reduce(a, fn, { axis = axis })
                    assert.same(shape, r.shape)
                    helper.assert_close(want[axis], helper.flatten(r:to_table()), 1e-12, fn)
                    local s <close> = mb.reduce(a, fn, { axis = axis - 4 })
                    assert.same(r:to_table(), s:to_table())
                end
            end
        end)
    end

    it("adds up what is not below 0, with the bits of a sum where nothing is", function()
        local a <close> = mb.random({ 3, 40, 401 }, { seed = 2, low = 0 })
        local sum <close> = mb.reduce(a, "sum")
        local positive <close> = mb.reduce(a, "positive")
        assert.equal(sum:item(), positive:item())
        local signed <close> = mb.random({ 4, 40, 101 }, { seed = 3, low = -1 })
        local above <close> = mb.binary(signed, "max", { scalar = 0 })
        for axis = 0, 3 do
            local x <close> = mb.reduce(signed, "positive", { axis = axis })
            local y <close> = mb.reduce(above, "sum", { axis = axis })
            assert.same(y:to_table(), x:to_table())
        end
        -- What is not finite stays.
        for _, case in ipairs { { 0 / 0, 1 }, { -math.huge, 1 }, { math.huge, -1 } } do
            local few <close> = mb.array(case)
            local r <close> = mb.reduce(few, "positive")
            local value = r:item()
            assert.is_true(value ~= value or math.abs(value) == math.huge)
        end
        local complex <close> = mb.array({ { 3, 4 } }, { dtype = "c64" })
        assert.has_error(function() mb.reduce(complex, "positive") end)
    end)

    it("reduces complex numbers", function()
        local a <close> = mb.array({ { 3, 4 }, { 1, -2 } }, { dtype = "c64" })
        local sum <close> = mb.reduce(a, "sum")
        assert.equal("c128", sum.dtype)
        assert.same({ 4, 2 }, { sum:item() })
        local mean <close> = mb.reduce(a, "mean", { axis = 1 })
        assert.same({ 2, 1 }, { mean:item() })
        local norm <close> = mb.reduce(a, "norm")
        assert.near(math.sqrt(30), norm:item(), 1e-12)
        local _, err = helper.failure(mb.reduce, a, "max")
        assert.equal("dtype", err.code)
    end)

    it("adds long rows in blocks, in double precision", function()
        local n = 100003
        local a <close> = mb.full({ 2, n }, 0.1)
        local value = a:item(1, 1)
        for _, axis in ipairs { 0, 2 } do
            local r <close> = mb.reduce(a, "sum", { axis = axis })
            for _, sum in ipairs(helper.flatten(r:to_table())) do
                assert.near((axis == 0 and 2 or 1) * n * value, sum, 1e-7)
            end
        end
        local t <close> = a:transpose()
        local r <close> = mb.reduce(t, "mean", { axis = 1 })
        assert.near(value, r:item(2), 1e-12)
    end)

    it("reduces views as their copies", function()
        local a <close> = mb.random({ 20, 30, 50 }, { seed = 3 })
        local view <close> = a:permute(3, 1, 2)
        local copy <close> = view:copy()
        for _, fn in ipairs(names) do
            for axis = 0, 3 do
                local x <close> = mb.reduce(view, fn, { axis = axis })
                local y <close> = mb.reduce(copy, fn, { axis = axis })
                helper.assert_close(y, x, 1e-12, fn)
            end
        end
    end)

    it("has the bits of a dense copy for any strides", function()
        local wide <close> = mb.random({5, 7, 66}, {dtype = "f64", high = 1e30, seed = 8})
        local halves <close> = wide:view(mb.all, mb.all, {1, 65, 2})
        local turned <close> = halves:permute(3, 1, 2)
        for _, view in ipairs {halves, turned} do
            local dense <close> = view:copy()
            for _, fn in ipairs(names) do
                local x <close> = mb.reduce(view, fn)
                local y <close> = mb.reduce(dense, fn)
                assert.equal(y:item(), x:item(), fn)
            end
        end
    end)

    it("lets NaN win", function()
        local a <close> = mb.array { 3, 0 / 0, 1 }
        for _, fn in ipairs(names) do
            local r <close> = mb.reduce(a, fn)
            assert.truthy(r:item() ~= r:item(), fn)
        end
    end)

    it("knows what to do with nothing", function()
        local a <close> = mb.zeros { 0, 3 }
        local sum <close> = mb.reduce(a, "sum", { axis = 1 })
        assert.same({ 0, 0, 0 }, sum:to_table())
        local mean <close> = mb.reduce(a, "mean")
        assert.truthy(mean:item() ~= mean:item())
        local _, err = helper.failure(mb.reduce, a, "min")
        assert.equal("shape", err.code)
    end)

    it("refuses an axis that is not there", function()
        local a <close> = mb.zeros { 2, 3 }
        local _, err = helper.failure(mb.reduce, a, "sum", { axis = 3 })
        assert.equal("shape", err.code)
        assert.equal("axis", err.arg)
    end)
end)
