-- The normal operator against the product of the model's matrix and its transpose, in double.
local mb = require "moonbeam"
local definition = require "spec.fixtures.normal_definition"
local helper = require "spec.helper"

local function random_angles(n)
    local angles = {}
    for k = 1, n do
        angles[k] = (k * 2.399963) % (2 * math.pi) - 1 -- in no order, some negative
    end
    return angles
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end


-- A'A of every slice.
local function expected_of(stack, angles, o)
    local result = {}
    for z, image in ipairs(stack) do
        result[z] = definition.normal(image, angles, o)
    end
    return result
end

describe("normal_operator", function()
    for _, case in ipairs {
        {1, 7, 7, 5, {}}, {2, 8, 8, 1, {}}, {3, 5, 11, 4, {}}, {3, 11, 5, 4, {circle = 1}},
        {2, 9, 9, 6, {circle = 0.7}}, {1, 1, 1, 3, {}}, {2, 1, 6, 3, {}},
        {1, 13, 13, 2, {circle = 1}},
        {3, 8, 8, 5, {weights = {1, 0.5, 0, 2, 1.25}}},
        {2, 7, 9, 4, {period = 12, padded = {28, 30}}}, -- rows meet their own repetitions
        {1, 8, 8, 3, {center = 3.25, shifts = {0.5, -1.75, 3}}},
        {1, 4, 4, 3, {cols = 9, padded = 36}},
    } do
        local slices, ny, nx, count, o = table.unpack(case)
        helper.each_device(function(device, test)
            test(("is A'A: %d of %d x %d, %d angles, circle %g, on %s"):format(slices, ny, nx,
                count,
                o.circle or 0, device), function()
                local cols = o.cols or math.max(ny, nx)
                local angles, period = random_angles(count), o.period or 2 * cols
                local a <close> = mb.random({slices, ny, nx},
                    {seed = ny, low = -1, device = device})
                local kernel <close> = mb.normal_kernel(angles, cols,
                    {size = {ny, nx}, device = device,
                    period = o.period, weights = o.weights, padded = o.padded})
                local q <close> = mb.normal_operator(a, kernel, {circle = o.circle})
                -- center and shifts drop out of A'A: the definition has them, the operator does not
                local expected <close
                    > = mb.array(expected_of(a:to_table(), angles, {period = period,
                    circle = o.circle, weights = o.weights, center = o.center, shifts = o.shifts}),
                    {device = device})
                assert.is_true(relative(q, expected) < 1e-6, relative(q, expected))
            end)
        end)
    end

    helper.each_device(function(device, test)
        test("takes one slice without a stack, and works in place, on " .. device, function()
            local kernel <close> = mb.normal_kernel({0.2, 1.3}, 9, {device = device})
            local a <close> = mb.random({3, 9, 9}, {seed = 1, device = device})
            local q <close> = mb.normal_operator(a, kernel, {circle = 1})
            local last <close> = a[3]:copy()
            local one <close> = mb.normal_operator(last, kernel, {circle = 1})
            local third <close> = q[3]
            assert.is_true(third:copy():to_string() == one:to_string())
            mb.normal_operator(a, kernel, {circle = 1, out = a})
            assert.is_true(q:to_string() == a:to_string())
        end)

        test("is symmetric and positive, on " .. device, function()
            local kernel <close> = mb.normal_kernel(random_angles(20), 33, {device = device})
            local ramp <close> = mb.ramp_preconditioner(33, {device = device})
            local a <close> = mb.random({3, 33, 33}, {seed = 1, low = -1, device = device})
            local b <close> = mb.random({3, 33, 33}, {seed = 2, low = -1, device = device})
            for _, spectrum in ipairs {kernel, ramp} do
                local ha, aa = mb.normal_operator(a, spectrum, {circle = 1, dot = true})
                local hb, bb = mb.normal_operator(b, spectrum, {circle = 1, dot = true})
                local ab, ba = mb.slice_dot(a, hb), mb.slice_dot(b, ha)
                for z = 1, 3 do
                    local scale = math.sqrt(aa:item(z) * bb:item(z))
                    assert.is_true(aa:item(z) > 0 and bb:item(z) > 0)
                    assert.near(0, (ab:item(z) - ba:item(z)) / scale, 1e-6)
                end
                for _, array in ipairs {ha, aa, hb, bb, ab, ba} do
                    array:release()
                end
            end
        end)

        test("sums p q of each slice, on " .. device, function()
            local kernel <close> = mb.normal_kernel(random_angles(9), 40, {device = device})
            local a <close> = mb.random({5, 37, 40}, {seed = 1, low = -1, device = device})
            for _, circle in ipairs {0, 0.8} do
                local q, dots = mb.normal_operator(a, kernel, {circle = circle, dot = true})
                local want <close> = mb.slice_dot(a, q)
                for z = 1, 5 do
                    assert.near(1, dots:item(z) / want:item(z), 1e-12)
                end
                q:release()
                dots:release()
            end
        end)

        test("makes the direction first, on " .. device, function()
            local kernel <close> = mb.normal_kernel(random_angles(9), 20, {device = device})
            local r <close> = mb.random({3, 17, 20}, {seed = 1, low = -1, device = device})
            local start <close> = mb.random({3, 17, 20}, {seed = 2, low = -1, device = device})
            local growth <close> = mb.array({0.5, 3, 7}, {dtype = "f64", device = device})
            local over <close> = mb.array({2, 4, 0}, {dtype = "f64", device = device})
            local p <close> = start:copy()
            mb.slice_axpy(p, r, growth, {over = over, of = "dst", circle = 0.9})
            local want, sums = mb.normal_operator(p, kernel, {circle = 0.9, dot = true})
            local q, dots, same = mb.normal_operator(r, kernel, {circle = 0.9, dot = true,
                direction = start, growth = growth, over = over})
            assert.equal(start, same)
            helper.assert_close(p, start, 2e-7)
            helper.assert_close(want, q, 1e-6)
            helper.assert_close(sums, dots, 1e-6)
            for _, array in ipairs {want, sums, q, dots} do
                array:release()
            end
        end)

        test("does not read a direction whose factor is 0, on " .. device, function()
            local kernel <close> = mb.normal_kernel({0.3, 1}, 12, {device = device})
            local r <close> = mb.random({2, 12, 12}, {seed = 1, device = device})
            local p <close> = mb.full({2, 12, 12}, 0 / 0, {device = device})
            local zero <close> = mb.zeros({2}, {dtype = "f64", device = device})
            local want <close> = mb.normal_operator(r, kernel)
            local q <close> = mb.normal_operator(r, kernel, {direction = p, growth = zero})
            assert.is_true(want:to_string() == q:to_string())
            assert.is_true(r:to_string() == p:to_string())
        end)

        test("gives the same bits for a slice whatever the slices beside its pair, on " .. device,
            function()
                local kernel <close> = mb.normal_kernel(random_angles(9), 30, {device = device})
                local a <close> = mb.random({7, 30, 30}, {seed = 1, device = device})
                local q, dots = mb.normal_operator(a, kernel, {circle = 1, dot = true})
                for first = 1, 7, 2 do
                    local last = math.min(first + 1, 7)
                    local part <close> = a:view({first, last})
                    local want <close> = q:view({first, last})
                    local sums <close> = dots:view({first, last})
                    local alone, alone_sums = mb.normal_operator(part, kernel,
                        {circle = 1, dot = true})
                    assert.is_true(want:copy():to_string() == alone:to_string())
                    assert.is_true(sums:copy():to_string() == alone_sums:to_string())
                    alone:release()
                    alone_sums:release()
                end
                q:release()
                dots:release()
            end)
    end)

    helper.each_device(function(device, test)
        test("is fourier_project and its adjoint, with rows as long as the period, on " .. device,
            function()
                local n, period, angles = 48, 96, random_angles(31)
                local kernel <close> = mb.normal_kernel(angles, n, {device = device})
                local a <close> = mb.random({3, n, n}, {seed = 1, low = -1, device = device})
                local q <close> = mb.normal_operator(a, kernel, {circle = 1})
                for _, accuracy in ipairs {"exact", "fast"} do
                    local rays <close> = mb.fourier_project(a, angles, {cols = period,
                        period = period, circle = 1, scale = 1, accuracy = accuracy})
                    local back <close> = mb.fourier_reconstruct(rays, angles, {size = {n, n},
                        period = period, circle = 1, scale = 1, filter = "none",
                            accuracy = accuracy})
                    local exact = device == "host" and 1e-6 or 2e-6
                    local most = accuracy == "exact" and exact or 2e-4
                    assert.is_true(relative(back, q) < most, relative(back, q))
                end
            end)
    end)

    -- Rows of these lengths have kernels of their own.
    helper.gpu_it("of long rows is that of the host, with and without a direction", function()
        local function apart(found, expected)
            local here <close> = found:to "host"
            return relative(here, expected)
        end
        for _, case in ipairs {{2048, 1024}, {4096, 1999}, {8192, 4001}} do
            local length, nx = table.unpack(case)
            local kernel <close> = mb.random({length // 2 + 1, 512}, {seed = 3})
            local a <close> = mb.random({3, 37, nx}, {seed = 1, low = -1})
            local p <close> = mb.random({3, 37, nx}, {seed = 2, low = -1})
            local ones <close> = mb.ones({3}, {dtype = "f64"})
            local there = {}
            for i, array in ipairs {kernel, a, p, ones} do
                there[i] = array:to "cuda:0"
            end
            local want <close> = mb.normal_operator(a, kernel, {circle = 1})
            local q <close> = mb.normal_operator(there[2], there[1], {circle = 1})
            assert.is_true(apart(q, want) < 1e-6)
            local grown, sums = mb.normal_operator(a, kernel, {circle = 1, dot = true,
                direction = p, growth = ones})
            local found, dots = mb.normal_operator(there[2], there[1], {circle = 1, dot = true,
                direction = there[3], growth = there[4]})
            assert.is_true(apart(found, grown) < 1e-6)
            assert.is_true(apart(there[3], p) < 2e-7)
            helper.assert_close(sums, dots, 2e-6)
            table.move({grown, sums, found, dots}, 1, 4, #there + 1, there)
            for _, array in ipairs(there) do
                array:release()
            end
        end
    end)

    it("refuses what does not fit", function()
        local kernel <close> = mb.normal_kernel({0.3}, 8)
        local a <close> = mb.zeros {2, 8, 9}
        local text, err = helper.failure(mb.normal_operator, a, kernel)
        assert.equal("kernel", err.arg)
        assert.truthy(text:find("9", 1, true))
        local b <close> = mb.zeros {2, 8, 8}
        local _
        local two <close> = mb.zeros({2}, {dtype = "f64"})
        local three <close> = mb.zeros({3}, {dtype = "f64"})
        _, err = helper.failure(mb.normal_operator, b, kernel, {growth = two})
        assert.equal("growth", err.arg)
        _, err = helper.failure(mb.normal_operator, b, kernel, {direction = b})
        assert.equal("direction", err.arg)
        _, err = helper.failure(mb.normal_operator, b, kernel, {over = two})
        assert.equal("over", err.arg)
        local c <close> = mb.zeros {2, 8, 8}
        _, err = helper.failure(mb.normal_operator, b, kernel, {direction = c, growth = three})
        assert.equal("growth", err.arg)
    end)

    it("is solved by conjugate gradients of cgls_update", function()
        local n, angles = 24, random_angles(60)
        local kernel <close> = mb.normal_kernel(angles, n)
        local truth <close> = mb.random({3, n, n}, {seed = 1})
        mb.circular_mask(truth, {out = truth})
        local r <close> = mb.normal_operator(truth, kernel, {circle = 1})
        local x <close> = mb.zeros {3, n, n}
        local p <close> = mb.zeros {3, n, n}
        local rr, old, first = mb.slice_dot(r, r), nil, nil
        for k = 1, 200 do -- the residual falls by 3 digits
            local zero <close> = mb.zeros({3}, {dtype = "f64"})
            local q, dots = mb.normal_operator(r, kernel, {circle = 1, dot = true, direction = p,
                growth = k > 1 and rr or zero, over = old})
            local _, _, squares = mb.cgls_update(x, r, p, q, rr, {over = dots, circle = 1})
            if old then
                old:release()
            end
            old, rr = rr, squares
            first = first or squares:to_table()
            q:release()
            dots:release()
        end
        for z = 1, 3 do
            assert.is_true(first[z] > 1 and rr:item(z) / first[z] < 1e-6, rr:item(z) / first[z])
        end
        rr:release()
        old:release()
    end)

    it("gives nothing, and sums of 0, for slices without pixels", function()
        local kernel <close> = mb.normal_kernel({0, 1}, 16, {size = 8})
        for _, shape in ipairs {{3, 8, 0}, {3, 0, 8}} do
            local a <close> = mb.zeros(shape)
            local q, dots = mb.normal_operator(a, kernel, {dot = true})
            assert.same(shape, q.shape)
            assert.same({0, 0, 0}, dots:to_table())
            q:release()
            dots:release()
        end
    end)
end)
