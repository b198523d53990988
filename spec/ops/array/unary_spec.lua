local mb = require "moonbeam"
local helper = require "spec.helper"

local functions = {
    neg = function(x) return -x end,
    abs = math.abs,
    exp = math.exp,
    log = math.log,
    sqrt = math.sqrt,
    square = function(x) return x * x end,
    reciprocal = function(x) return 1 / x end,
}

describe("unary", function()
    for _, dtype in ipairs { "f32", "f64" } do
        it("is every function of " .. dtype, function()
            local a <close> = mb.random({ 3, 17 }, { dtype = dtype, seed = 1, low = 0.1, high = 4 })
            for name, f in pairs(functions) do
                local r <close> = mb.unary(a, name)
                local want = helper.flatten(a:to_table())
                for i, x in ipairs(want) do
                    want[i] = f(x)
                end
                helper.assert_close(want, helper.flatten(r:to_table()), dtype == "f64" and 1e-15
                    or 2e-7, name)
            end
        end)
    end

    it("takes integers where that makes sense", function()
        local a <close> = mb.array({ -3, 2, 0 }, { dtype = "i32" })
        for name, want in pairs { neg = { 3, -2, 0 }, abs = { 3, 2, 0 }, square = { 9, 4, 0 } } do
            local r <close> = mb.unary(a, name)
            assert.equal("i32", r.dtype)
            assert.same(want, r:to_table())
        end
        local u <close> = mb.array({ 15, 17 }, { dtype = "u8" })
        local r <close> = mb.unary(u, "square")
        assert.same({ 225, 33 }, r:to_table())
    end)

    it("takes complex numbers", function()
        local a <close> = mb.array({ { 3, -4 }, { 0, 2 } }, { dtype = "c64" })
        local magnitude <close> = mb.unary(a, "abs")
        assert.equal("f32", magnitude.dtype)
        assert.same({ 5, 2 }, magnitude:to_table())
        local square <close> = mb.unary(a, "square")
        assert.same({ { -7, -24 }, { -4, 0 } }, square:to_table())
        local neg <close> = mb.unary(a, "neg")
        assert.same({ { -3, 4 }, { 0, -2 } }, neg:to_table())
    end)

    it("runs in place, on views too", function()
        local a <close> = mb.array { { 1, 4 }, { 9, 16 } }
        local t <close> = a:transpose()
        mb.unary(t, "sqrt", { out = t })
        assert.same({ { 1, 2 }, { 3, 4 } }, a:to_table())
        local column <close> = a:view(mb.all, 2)
        mb.unary(column, "neg", { out = column })
        assert.same({ { 1, -2 }, { 3, -4 } }, a:to_table())
    end)

    it("refuses types that a function does not take", function()
        for _, case in ipairs { { "i32", "exp" }, { "c64", "sqrt" }, { "u8", "neg" },
            { "u16", "reciprocal" } } do
            local a <close> = mb.zeros({ 2 }, { dtype = case[1] })
            local _, err = helper.failure(mb.unary, a, case[2])
            assert.equal("dtype", err.code)
            assert.equal("a", err.arg)
        end
    end)
end)
