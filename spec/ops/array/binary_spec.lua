local mb = require "moonbeam"
local helper = require "spec.helper"

local functions = {
    add = function(x, y) return x + y end,
    sub = function(x, y) return x - y end,
    mul = function(x, y) return x * y end,
    div = function(x, y) return x / y end,
    min = math.min,
    max = math.max,
    pow = function(x, y) return x ^ y end,
}

local function complex(f)
    return ({
        add = function(a, b) return { a[1] + b[1], a[2] + b[2] } end,
        sub = function(a, b) return { a[1] - b[1], a[2] - b[2] } end,
        mul = function(a, b) return { a[1] * b[1] - a[2] * b[2], a[1] * b[2] + a[2] * b[1] } end,
        div = function(a, b)
            local d = b[1] ^ 2 + b[2] ^ 2
            return { (a[1] * b[1] + a[2] * b[2]) / d, (a[2] * b[1] - a[1] * b[2]) / d }
        end,
    })[f]
end

local function random(shape, dtype, seed)
    local integer = dtype:match "^[ui]"
    return mb.random(shape, { dtype = dtype, seed = seed, low = integer and 1
        or 0.5, high = integer and 12 or 2 })
end

describe("binary", function()
    for _, dtype in ipairs { "u8", "u16", "i32", "f32", "f64" } do
        it("is elementwise arithmetic of " .. dtype, function()
            for name, f in pairs(functions) do
                if dtype:match "^f" or name ~= "div" and name ~= "pow" and name ~= "sub" then
                    local a <close> = random({ 3, 7 }, dtype, 1)
                    local b <close> = random({ 3, 7 }, dtype, 2)
                    local r <close> = mb.binary(a, name, { b = b })
                    local s <close> = mb.binary(a, name, { scalar = 3 })
                    local t <close> = mb.binary(a, name, { scalar = 3, reverse = true })
                    assert.equal(dtype, r.dtype)
                    local x, y = a:to_table(), b:to_table()
                    local want, scalar, reverse = {}, {}, {}
                    for i = 1, 3 do
                        want[i], scalar[i], reverse[i] = {}, {}, {}
                        for j = 1, 7 do
                            want[i][j] = f(x[i][j], y[i][j])
                            scalar[i][j] = f(x[i][j], 3)
                            reverse[i][j] = f(3, x[i][j])
                        end
                    end
                    local tolerance = dtype == "f64" and 1e-14 or 1e-6
                    helper.assert_close(want, r, tolerance, name)
                    helper.assert_close(scalar, s, tolerance, name .. " scalar")
                    helper.assert_close(reverse, t, tolerance, name .. " reverse")
                end
            end
        end)
    end

    it("is complex arithmetic", function()
        for _, dtype in ipairs { "c64", "c128" } do
            for _, name in ipairs { "add", "sub", "mul", "div" } do
                local a <close> = random({ 5 }, dtype, 1)
                local b <close> = random({ 5 }, dtype, 2)
                local r <close> = mb.binary(a, name, { b = b })
                local x, y, want = a:to_table(), b:to_table(), {}
                for i = 1, 5 do
                    want[i] = complex(name)(x[i], y[i])
                end
                helper.assert_close(want, r, dtype == "c128" and 1e-14 or 1e-6, name)
            end
        end
    end)

    it("wraps integers around", function()
        local a <close> = mb.array({ 250, 3 }, { dtype = "u8" })
        local r <close> = mb.binary(a, "add", { scalar = 10 })
        assert.same({ 4, 13 }, r:to_table())
        local s <close> = mb.binary(a, "sub", { scalar = 4 })
        assert.same({ 246, 255 }, s:to_table())
        local b <close> = mb.array({ 2147483647 }, { dtype = "i32" })
        local t <close> = mb.binary(b, "add", { b = b })
        assert.same({ -2 }, t:to_table())
    end)

    it("broadcasts both ways", function()
        for _, shapes in ipairs {
            { { 3, 5, 4 }, { 5, 1 } }, { { 4 }, { 3, 4 } }, { { 3, 1 }, { 1, 4 } },
            { { 2, 1, 4 }, { 3, 1 } },
            { {}, { 2, 3 } },
        } do
            local a <close> = random(shapes[1], "f32", 1)
            local b <close> = random(shapes[2], "f32", 2)
            local r <close> = mb.binary(a, "sub", { b = b })
            local wide_a <close> = a:broadcast_to(r.shape)
            local wide_b <close> = b:broadcast_to(r.shape)
            local x, y = helper.flatten(wide_a:to_table()), helper.flatten(wide_b:to_table())
            for i = 1, #x do
                x[i] = x[i] - y[i]
            end
            helper.assert_close(x, helper.flatten(r:to_table()), 1e-6)
        end
    end)

    it("runs in place of either operand, and on permuted views", function()
        local a <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        local b <close> = mb.array { { 10, 20, 30 }, { 40, 50, 60 } }
        mb.binary(a, "sub", { b = b, out = b })
        assert.same({ { -9, -18, -27 }, { -36, -45, -54 } }, b:to_table())
        local t <close> = a:transpose()
        mb.binary(t, "mul", { scalar = 2, out = t })
        assert.same({ { 2, 4, 6 }, { 8, 10, 12 } }, a:to_table())
        local c <close> = mb.array { { 1, 2 }, { 3, 4 }, { 5, 6 } }
        local d <close> = mb.binary(t, "add", { b = c })
        assert.same({ { 3, 10 }, { 7, 14 }, { 11, 18 } }, d:to_table())
    end)

    it("lets NaN win in min and max", function()
        local a <close> = mb.array { 0 / 0, 1, 0 / 0 }
        local b <close> = mb.array { 1, 0 / 0, 0 / 0 }
        for _, name in ipairs { "min", "max" } do
            local r <close> = mb.binary(a, name, { b = b })
            for i = 1, 3 do
                assert.truthy(r:item(i) ~= r:item(i))
            end
        end
    end)

    local function refuses(code, arg, a, fn, options)
        local _, err = helper.failure(mb.binary, a, fn, options)
        assert.equal(code, err.code)
        assert.equal(arg, err.arg)
        assert.equal("binary", err.op)
    end

    it("says what is wrong", function()
        local a <close> = mb.zeros { 2, 3 }
        local b <close> = mb.zeros { 2, 2 }
        local d <close> = mb.zeros({ 2, 3 }, { dtype = "f64" })
        local u <close> = mb.zeros({ 2 }, { dtype = "u8" })
        local c <close> = mb.zeros({ 2 }, { dtype = "c64" })
        refuses("shape", "b", a, "add", { b = b })
        refuses("dtype", "b", a, "add", { b = d })
        refuses("argument", "b", a, "add", {})
        refuses("dtype", "a", u, "div", { scalar = 2 })
        refuses("argument", "scalar", u, "add", { scalar = 2.5 })
        refuses("argument", "scalar", u, "add", { scalar = 256 })
        refuses("dtype", "a", c, "max", { scalar = 2 })
        refuses("dtype", "a", c, "pow", { scalar = 2 })
    end)
end)
