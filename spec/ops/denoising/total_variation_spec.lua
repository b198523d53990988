local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- The iteration in double precision, by loops over a list of values (z, y, x).

local function grid_of(shape, dimensions)
    local nz, ny, nx = table.unpack(shape)
    local steps = {1, nx, dimensions == 3 and ny * nx or nil}
    local function last(axis, i) -- whether element i is the last along the axis
        local x, y, z = i % nx, i // nx % ny, i // (nx * ny)
        return ({x == nx - 1, y == ny - 1, z == nz - 1})[axis]
    end
    local function first(axis, i)
        local x, y, z = i % nx, i // nx % ny, i // (nx * ny)
        return ({x == 0, y == 0, z == 0})[axis]
    end
    return {count = nz * ny * nx, steps = steps, last = last, first = first}
end

local function forward(grid, u, axis, i)
    return grid.last(axis, i) and 0 or u[i + grid.steps[axis]] - u[i]
end

local function divergence(grid, p, i)
    local sum = 0
    for axis, step in ipairs(grid.steps) do
        sum = sum + p[axis][i] - (grid.first(axis, i) and 0 or p[axis][i - step])
    end
    return sum
end

local function primal_dual(grid, f, lambda, options)
    local norm = 4 * #grid.steps
    local tau = options.tau or 1 / math.sqrt(norm)
    local sigma = options.sigma or 1 / (norm * tau)
    local u, ahead, p = {}, {}, {}
    for i = 0, grid.count - 1 do
        u[i], ahead[i] = f[i], f[i]
        for axis in ipairs(grid.steps) do
            p[axis] = p[axis] or {}
            p[axis][i] = 0
        end
    end
    for _ = 1, options.iterations do
        for i = 0, grid.count - 1 do
            local square = 0
            for axis in ipairs(grid.steps) do
                p[axis][i] = p[axis][i] + sigma * forward(grid, ahead, axis, i)
                square = square + p[axis][i] ^ 2
            end
            local scale = math.max(1, math.sqrt(square) / lambda)
            for axis in ipairs(grid.steps) do
                p[axis][i] = p[axis][i] / scale
            end
        end
        for i = 0, grid.count - 1 do
            local made = (u[i] + tau * (f[i] + divergence(grid, p, i))) / (1 + tau)
            made = options.nonnegative and math.max(made, 0) or made
            ahead[i], u[i] = 2 * made - u[i], made
        end
    end
    return u
end

local function smaller(a, b)
    return a * b <= 0 and 0 or (a > 0 and math.min(a, b) or math.max(a, b))
end

local function rof(grid, f, lambda, options)
    local u, p = {}, {{}, {}, {}}
    for i = 0, grid.count - 1 do
        u[i] = f[i]
    end
    for _ = 1, options.iterations do
        for i = 0, grid.count - 1 do
            local near = {}
            for axis, step in ipairs(grid.steps) do
                near[axis] = smaller(forward(grid, u, axis, i),
                    grid.first(axis, i) and 0 or u[i] - u[i - step])
            end
            for axis in ipairs(grid.steps) do
                local g = forward(grid, u, axis, i)
                local square = g * g + options.epsilon
                for other in ipairs(grid.steps) do
                    square = square + (other ~= axis and near[other] ^ 2 or 0)
                end
                p[axis][i] = g / math.sqrt(square)
            end
        end
        for i = 0, grid.count - 1 do
            u[i] = u[i] + options.step * (lambda * divergence(grid, p, i) + f[i] - u[i])
        end
    end
    return u
end

local function list_of(array)
    local count = 1
    for _, extent in ipairs(array.shape) do
        count = count * extent
    end
    local flat <close> = array:reshape(count)
    return table.move(flat:to_table(), 1, count, 0, {})
end

-- |a - b| / |b| of an array and a list.
local function distance(array, list)
    local values, difference, sum = list_of(array), 0, 0
    for i = 0, #values do
        difference, sum = difference + (values[i] - list[i]) ^ 2, sum + list[i] ^ 2
    end
    return math.sqrt(difference / sum)
end

-- |u - f|^2 / 2 + lambda TV(u)
local function energy(grid, u, f, lambda)
    local sum = 0
    for i = 0, grid.count - 1 do
        local square = 0
        for axis in ipairs(grid.steps) do
            square = square + forward(grid, u, axis, i) ^ 2
        end
        sum = sum + (u[i] - f[i]) ^ 2 / 2 + lambda * math.sqrt(square)
    end
    return sum
end

local function both(shape, dimensions, lambda, options, device)
    local a <close> = mb.random(shape, {seed = 5, low = -0.3, high = 1, device = device})
    options.dimensions = dimensions
    local made <close> = mb.total_variation(a, lambda, options)
    local grid, f = grid_of(shape, dimensions), list_of(a)
    local reference = options.method == "rof" and rof or primal_dual
    return distance(made, reference(grid, f, lambda, options))
end

helper.each_device(function(device, test)
    describe("total_variation on " .. device:match("^%a+"), function()
        test("is the primal-dual iteration in double precision, in 2 and 3 dimensions", function()
            for _, case in ipairs {
                {{1, 1, 1}, 2, {iterations = 3}}, {{1, 1, 13}, 2, {iterations = 5}},
                {{1, 17, 1}, 2, {iterations = 5}}, {{2, 67, 71}, 2, {iterations = 9}},
                {{3, 13, 31}, 2, {iterations = 26, tau = 0.1}},
                {{1, 7, 5}, 3, {iterations = 4}}, {{11, 1, 1}, 3, {iterations = 6}},
                {{1, 1, 7}, 3, {iterations = 6}}, {{13, 29, 61}, 3, {iterations = 7}},
                {{5, 37, 11}, 3, {iterations = 12, nonnegative = true, tau = 0.1, sigma = 0.8}},
                {{2, 30, 40}, 2, {iterations = 9, nonnegative = true}},
                {{3, 11, 66}, 3, {iterations = 1}}, {{3, 27, 58}, 3, {iterations = 2}},
            } do
                local apart = both(case[1], case[2], 0.15, case[3], device)
                assert.is_true(apart < 5e-7, ("%s: %g"):format(table.concat(case[1], "x"), apart))
            end
        end)

        test("is the explicit scheme in double precision", function()
            for _, case in ipairs {{{1, 1, 5}, 2}, {{2, 35, 17}, 2}, {{5, 9, 34}, 3},
                {{4, 1, 7}, 3}} do
                local apart = both(case[1], case[2], 0.1, {iterations = 12, method = "rof",
                    step = 0.05, epsilon = 1e-3}, device)
                assert.is_true(apart < 2e-6, ("%s: %g"):format(table.concat(case[1], "x"), apart))
            end
        end)

        test("lowers the energy to its least value", function()
            for dimensions = 2, 3 do
                local shape <const> = {4, 12, 15}
                local a <close> = mb.random(shape, {seed = 2, device = device})
                local grid, f, before = grid_of(shape, dimensions), list_of(a), math.huge
                for _, iterations in ipairs {2, 5, 20, 100, 1000} do
                    local u <close> = mb.total_variation(a, 0.2, {iterations = iterations,
                        dimensions = dimensions})
                    local now = energy(grid, list_of(u), f, 0.2)
                    assert.is_true(now < before * (1 + 1e-6), ("%d: %g"):format(iterations, now))
                    before = now
                end
                -- The minimum in closed form for a large weight: the mean.
                local flat <close> = mb.total_variation(a, 2, {iterations = 2000,
                    dimensions = dimensions})
                local slice <close> = dimensions == 2 and a[2] or a:view()
                local own <close> = dimensions == 2 and flat[2] or flat:view()
                local low, high = own:min(), own:max()
                assert.near(slice:mean(), low, 1e-5)
                assert.near(slice:mean(), high, 1e-5)
            end
        end)

        test("lowers a step by lambda times its border over its area", function()
            -- |u - f|^2 / 2 + lambda |jump| * border: the left half moves up by lambda / width.
            local a <close> = mb.zeros({6, 40}, {device = device})
            local right <close> = a:view(mb.all, {21, 40})
            right:fill(1)
            local u <close> = mb.total_variation(a, 0.5, {iterations = 2000})
            assert.near(0.5 / 20, u:item(3, 4), 1e-4)
            assert.near(1 - 0.5 / 20, u:item(5, 33), 1e-4)
        end)

        test("leaves constants and lambda 0 as they are, to the bit", function()
            local a <close> = mb.zeros({3, 33, 70}, {device = device})
            a:fill(0.7)
            local noise <close> = mb.random({3, 33, 70}, {seed = 1, low = -1, device = device})
            for dimensions = 2, 3 do
                for _, method in ipairs {"primal_dual", "rof"} do
                    local b <close> = mb.total_variation(a, 0.3, {dimensions = dimensions,
                        method = method, iterations = 11})
                    helper.assert_close(a, b, 0)
                    local c <close> = mb.total_variation(noise, 0, {dimensions = dimensions,
                        method = method})
                    helper.assert_close(noise, c, 0)
                end
            end
            local positive <close> = mb.total_variation(noise, 0, {nonnegative = true})
            assert.equal(0, (positive:min()))
        end)

        test("scales with the data", function()
            local a <close> = mb.random({4, 20, 40}, {seed = 4, device = device})
            local b <close> = a * 1024
            local u <close> = mb.total_variation(a, 0.1, {dimensions = 3})
            local v <close> = mb.total_variation(b, 102.4, {dimensions = 3})
            local w <close> = v / 1024
            helper.assert_close(u, w, 1e-6)
        end)

        test("gives the same bits in place, for rows at any stride and for any number of slices",
            function()
            local wide <close> = mb.random({5, 40, 90}, {seed = 4, device = device})
            local part <close> = wide:view(mb.all, {3, 38}, {2, 78})
            local dense <close> = part:copy()
            for dimensions = 2, 3 do
                for _, method in ipairs {"primal_dual", "rof"} do
                    local options = {dimensions = dimensions, method = method, iterations = 13,
                        step = 0.02}
                    local expected <close> = mb.total_variation(dense, 0.1, options)
                    local other <close> = mb.total_variation(part, 0.1, options)
                    helper.assert_close(expected, other, 0)
                    local own <close> = dense:copy()
                    options.out = own
                    mb.total_variation(own, 0.1, options)
                    helper.assert_close(expected, own, 0)
                    if dimensions == 2 then
                        options.out = nil
                        local slice <close> = dense:view({4, 4})
                        local one <close> = mb.total_variation(slice, 0.1, options)
                        local same <close> = expected:view({4, 4})
                        helper.assert_close(same, one, 0)
                    end
                end
            end
        end)

        test("spreads what is not a number by one element an iteration", function()
            for dimensions = 2, 3 do
                for _, method in ipairs {"primal_dual", "rof"} do
                    local a <close> = mb.random({9, 21, 90}, {seed = 7, device = device})
                    local bad <close> = a:view({5, 5}, {11, 11}, {40, 40})
                    bad:fill(0 / 0)
                    local b <close> = mb.total_variation(a, 0.1, {dimensions = dimensions,
                        method = method, iterations = 3})
                    for _, at in ipairs {{5, 11, 40, true}, {5, 11, 43, true}, {5, 11, 44, false},
                        {5, 8, 40, true}, {5, 7, 40, false}, {5, 15, 40, false},
                        {8, 11, 40, dimensions == 3}, {9, 11, 40, false}} do
                        local v = b:item(at[1], at[2], at[3])
                        assert.equal(at[4], v ~= v, table.concat({at[1], at[2], at[3]}, ","))
                    end
                end
            end
        end)

        test("has the minimum of skimage.restoration.denoise_tv_chambolle", function()
            oracle.needs "skimage"
            local noise <close> = mb.random({7, 24, 31}, {seed = 3})
            local expected, flat = oracle.run("skimage", [[
from skimage.restoration import denoise_tv_chambolle
u = denoise_tv_chambolle(a, weight=0.2, eps=0, max_num_iter=4000)
v = denoise_tv_chambolle(a[3], weight=0.2, eps=0, max_num_iter=4000)]], {a = noise}, {"u", "v"})
            local _ <close> = expected
            local _ <close> = flat
            local a <close> = noise:to(device)
            local u <close> = mb.total_variation(a, 0.2, {iterations = 2000, dimensions = 3})
            helper.assert_close(expected, u, 2e-3)
            local v <close> = mb.total_variation(a, 0.2, {iterations = 2000})
            local own <close> = v[4]
            helper.assert_close(flat, own, 2e-3)
        end)
    end)
end)

describe("total_variation", function()
    -- Of 330 tiles of 20 planes a device with 132 multiprocessors halves the last 66.
    helper.gpu_it("of many tiles and planes is that of the host", function()
        local a <close> = mb.random({40, 262, 790}, {seed = 6})
        local b <close> = a:to "cuda:0"
        for _, iterations in ipairs {1, 4} do
            local options = {iterations = iterations, dimensions = 3}
            local expected <close> = mb.total_variation(a, 0.2, options)
            local made <close> = mb.total_variation(b, 0.2, options)
            local found <close> = made:to "host"
            local difference <close> = found - expected
            local low, high = difference:min(), difference:max()
            assert.is_true(math.max(-low, high) < 5e-6, ("%g %g"):format(low, high))
        end
    end)

    it("explains what does not fit", function()
        local a <close> = mb.ones {4, 5}
        assert.matches("dimensions is 3, but the array has 2 axes",
            (helper.failure(mb.total_variation, a, 1, {dimensions = 3})))
        assert.matches("lambda", (helper.failure(mb.total_variation, a, -1)))
        assert.matches("iterations",
            (helper.failure(mb.total_variation, a, 1, {iterations = 0})))
    end)
end)
