-- slice_dot, slice_axpy and cgls_update against loops over tables.
local mb = require "moonbeam"
local definition = require "spec.fixtures.normal_definition"
local helper = require "spec.helper"

-- f(z, y, x) for the pixels inside the circle.
local function each_inside(shape, circle, f)
    for z = 1, shape[1] do
        for y = 1, shape[2] do
            for x = 1, shape[3] do
                if definition.inside(y, x, shape[2], shape[3], circle) then
                    f(z, y, x)
                end
            end
        end
    end
end

local function sums_of(a, b, shape, circle)
    local sums = {}
    for z = 1, shape[1] do
        sums[z] = 0
    end
    each_inside(shape, circle, function(z, y, x)
        sums[z] = sums[z] + a[z][y][x] * b[z][y][x]
    end)
    return sums
end

local function random(shape, seed, device)
    return mb.random(shape, {seed = seed, low = -1, high = 1, device = device})
end

for _, shape in ipairs {{1, 1, 1}, {3, 5, 40}, {4, 300, 9}, {2, 17, 17}} do
    for _, circle in ipairs {0, 0.75, 1} do
        local what = ("of %s slices, circle %g, on "):format(table.concat(shape, " x "), circle)
        helper.each_device(function(device, test)
            test("slice_dot " .. what .. device, function()
                local a <close> = random(shape, 1, device)
                local b <close> = random(shape, 2, device)
                local found <close> = mb.slice_dot(a, b, {circle = circle})
                local squares <close> = mb.slice_dot(a, a, {circle = circle})
                local one, two = a:to_table(), b:to_table()
                helper.assert_close(sums_of(one, two, shape, circle), found, 1e-12)
                helper.assert_close(sums_of(one, one, shape, circle), squares, 1e-12)
            end)

            test("slice_axpy " .. what .. device, function()
                local growth, over = {}, {}
                for z = 1, shape[1] do
                    growth[z], over[z] = z - 0.5, z % 3
                end
                local above <close> = mb.array(growth, {dtype = "f64", device = device})
                local below <close> = mb.array(over, {dtype = "f64", device = device})
                for _, of in ipairs {"other", "dst"} do
                    local a <close> = random(shape, 1, device)
                    local b <close> = random(shape, 2, device)
                    local want, other = a:to_table(), b:to_table()
                    each_inside(shape, circle, function(z, y, x)
                        local factor = over[z] ~= 0 and -2 * growth[z] / over[z] or 0
                        local old = want[z][y][x]
                        want[z][y][x] = of == "other" and old + factor * other[z][y][x]
                            or other[z][y][x] + factor * old
                    end)
                    assert.equal(a, mb.slice_axpy(a, b, above, {over = below, scale = -2, of = of,
                        circle = circle}))
                    helper.assert_close(want, a, 2e-7)
                end
            end)

            test("slice_axpy with less " .. what .. device, function()
                local growth = {}
                for z = 1, shape[1] do
                    growth[z] = z - 2 -- 0 too
                end
                local above <close> = mb.array(growth, {dtype = "f64", device = device})
                for _, of in ipairs {"other", "dst"} do
                    for _, same in ipairs {true, false} do -- less is other
                        local a <close> = random(shape, 1, device)
                        local b <close> = random(shape, 2, device)
                        local c <close> = random(shape, same and 2 or 3, device)
                        local want, other, less = a:to_table(), b:to_table(), c:to_table()
                        each_inside(shape, circle, function(z, y, x)
                            local old, new = want[z][y][x], other[z][y][x]
                            local factor, away = -0.5 * growth[z], less[z][y][x]
                            want[z][y][x] = of == "other" and old + factor * (new - away)
                                or new + factor * (old - away)
                        end)
                        mb.slice_axpy(a, b, above, {scale = -0.5, of = of, circle = circle,
                            less = same and b or c})
                        helper.assert_close(want, a, 2e-7)
                    end
                end
            end)

            test("cgls_update " .. what .. device, function()
                local vectors, tables = {}, {}
                for i = 1, 4 do
                    vectors[i] = random(shape, i, device)
                    tables[i] = vectors[i]:to_table()
                end
                local x, r, p, q = table.unpack(vectors)
                local growth, over = {}, {}
                for z = 1, shape[1] do
                    growth[z], over[z] = z + 0.25, (z + 1) % 3
                end
                local above <close> = mb.array(growth, {dtype = "f64", device = device})
                local below <close> = mb.array(over, {dtype = "f64", device = device})
                local same, also, squares = mb.cgls_update(x, r, p, q, above, {over = below,
                    circle = circle})
                assert.equal(x, same)
                assert.equal(r, also)
                each_inside(shape, circle, function(z, y, k)
                    local f = over[z] ~= 0 and growth[z] / over[z] or 0
                    tables[1][z][y][k] = tables[1][z][y][k] + f * tables[3][z][y][k]
                    tables[2][z][y][k] = tables[2][z][y][k] - f * tables[4][z][y][k]
                end)
                helper.assert_close(tables[1], x, 2e-7)
                helper.assert_close(tables[2], r, 2e-7)
                local after = r:to_table()
                helper.assert_close(sums_of(after, after, shape, circle), squares, 1e-12)
                squares:release()
                for _, array in ipairs(vectors) do
                    array:release()
                end
            end)
        end)
    end
end

describe("operators of slices", function()
    it("do not read what a factor of 0 multiplies", function()
        local a <close> = mb.full({1, 3, 3}, 0 / 0)
        local b <close> = mb.ones {1, 3, 3}
        local zero <close> = mb.zeros({1}, {dtype = "f64"})
        mb.slice_axpy(a, b, zero, {of = "dst"})
        helper.assert_close(b, a, 0)
        a:fill(0 / 0)
        mb.slice_axpy(b, a, zero)
        helper.assert_close(mb.array {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}}, b, 0)
    end)

    it("refuse other shapes and counts", function()
        local a <close> = mb.zeros {2, 3, 4}
        local b <close> = mb.zeros {2, 3, 3}
        local one <close> = mb.zeros({1}, {dtype = "f64"})
        local two <close> = mb.zeros({2}, {dtype = "f64"})
        for _, case in ipairs {{"b", mb.slice_dot, a, b}, {"other", mb.slice_axpy, a, b, two},
            {"less", mb.slice_axpy, a, a, two, {less = b}},
            {"growth", mb.slice_axpy, b, b, one}, {"over", mb.slice_axpy, a, a, two, {over = one}},
            {"q", mb.cgls_update, a, a, a, b, two}} do
            local _, err = helper.failure(table.unpack(case, 2))
            assert.equal(case[1], err.arg)
        end
    end)
end)
