-- Iterative reconstruction: each method against a plain version with a dense matrix in double
-- precision, and the rules that they share.

local helper = require "spec.helper"
local mb = require "moonbeam"

local N, ANGLES, ROWS <const> = 11, 7, 3
local CENTER <const> = 5.3

local angles = mb.tomo.angles(ANGLES)
for i = 1, ANGLES do
    angles[i] = angles[i] + 0.1
end

-- The matrix of the pixel-driven model by its definition: a list of rows {column = weight}.
local function matrix()
    local a = {}
    for i, t in ipairs(angles) do
        for u = 0, N - 1 do
            a[(i - 1) * N + u + 1] = {}
        end
        for y = 0, N - 1 do
            for x = 0, N - 1 do
                local dx, dy = x - (N - 1) / 2, (N - 1) / 2 - y
                local u = dx * math.cos(t) + dy * math.sin(t) + CENTER
                local low = math.floor(u)
                for k = low, low + 1 do
                    local weight = 1 - math.abs(u - k)
                    if k >= 0 and k < N and dx * dx + dy * dy <= (N / 2) ^ 2 then
                        a[(i - 1) * N + k + 1][y * N + x + 1] = weight
                    end
                end
            end
        end
    end
    return a
end

local A = matrix()
local RAYS <const>, PIXELS <const> = ANGLES * N, N * N

local function vector(n, value)
    local v = {}
    for i = 1, n do
        v[i] = value
    end
    return v
end

local function forward(x)
    local b = {}
    for i = 1, RAYS do
        local sum = 0
        for j, weight in pairs(A[i]) do
            sum = sum + weight * x[j]
        end
        b[i] = sum
    end
    return b
end

local function adjoint(b)
    local x = vector(PIXELS, 0)
    for i = 1, RAYS do
        for j, weight in pairs(A[i]) do
            x[j] = x[j] + weight * b[i]
        end
    end
    return x
end

local function dot(a, b)
    local sum = 0
    for i = 1, #a do
        sum = sum + a[i] * b[i]
    end
    return sum
end

local function map(f, ...)
    local lists, result = {...}, {}
    for i = 1, #lists[1] do
        result[i] = f(lists[1][i], lists[2] and lists[2][i], lists[3] and lists[3][i], i)
    end
    return result
end

-- ---- plain versions ----

local plain = {}

function plain.cgls(b, iterations, w, tikhonov)
    local x = vector(PIXELS, 0)
    local r = map(function(v) return v end, b)
    local function gradient()
        return map(function(s, v) return s - tikhonov * v end,
            adjoint(map(function(u, k) return u * k end, w, r)), x)
    end
    local s = gradient()
    local p, gamma = s, dot(s, s)
    for _ = 1, iterations do
        local q = forward(p)
        local alpha = gamma / (dot(q, map(function(u, v) return u * v end, w, q))
            + tikhonov * dot(p, p))
        x = map(function(v, d) return v + alpha * d end, x, p)
        r = map(function(v, d) return v - alpha * d end, r, q)
        s = gradient()
        local beta = dot(s, s) / gamma
        gamma = dot(s, s)
        p = map(function(v, d) return v + beta * d end, s, p)
    end
    return x
end

function plain.landweber(b, iterations, w, tikhonov)
    local x, bound = vector(PIXELS, 0), 1.2 * ANGLES * N + tikhonov
    for _ = 1, iterations do
        local g = adjoint(map(function(f, v, k) return k * (v - f) end, forward(x), b, w))
        x = map(function(v, d) return math.max(0, v + (d - tikhonov * v) / bound) end, x, g)
    end
    return x
end

-- The rays of every count-th angle from `first`: 1, others 0.
local function part(first, count)
    return map(function(_, _, _, i) return ((i - 1) // N + 1 - first) % count == 0 and 1 or 0 end,
        vector(RAYS, 0))
end

local function inverse(v)
    return v > 0 and 1 / v or 0
end

local function window(taper)
    return map(function(_, _, _, i)
        local y, x = (i - 1) // N - (N - 1) / 2, (i - 1) % N - (N - 1) / 2
        return math.max(0.01, math.max(0, 1 - (x * x + y * y) / (N / 2) ^ 2) ^ taper)
    end, vector(PIXELS, 0))
end

function plain.sart(b, iterations, w, order, relaxation, taper)
    local D = window(taper or 0)
    local x, lengths = vector(PIXELS, 0), map(function(v)
        return v > 0 and 1 / math.max(v, taper and N / 16 or 0) or 0
    end, forward(D))
    for _ = 1, iterations do
        for _, first in ipairs(order) do
            local rays = map(function(u, v) return u * v end, part(first, #order), w)
            local sums = map(inverse, adjoint(rays))
            local g = adjoint(map(function(f, v, _, i) return rays[i] * lengths[i] * (v - f) end,
                forward(x), b))
            x = map(function(v, d, c, i) return v + relaxation * D[i] * c * d end, x, g, sums)
        end
    end
    return x
end

function plain.osem(b, iterations, order)
    local x = vector(PIXELS, 1)
    for _ = 1, iterations do
        for _, first in ipairs(order) do
            local rays = part(first, #order)
            local sums = map(inverse, adjoint(rays))
            local ratio = map(function(f, v, k) return f > 0 and k * v / f or 0 end, forward(x), b,
                rays)
            x = map(function(v, d, c) return v * d * c end, x, adjoint(ratio), sums)
        end
    end
    return x
end

-- ---- data ----

local function image(z)
    local x = {}
    for y = 1, N do
        for c = 1, N do
            local inside = (y - 6) ^ 2 + (c - 6) ^ 2 < 16
            x[(y - 1) * N + c] = inside and 0.02 * ((3 * y + 5 * c + z) % 7) + 0.1 * z or 0
        end
    end
    return x
end

-- Data that no slice explains: projections and a pattern.
local function rays_of(z)
    return map(function(v, _, _, i) return v + 0.05 * (i * 7 % 5) end, forward(image(z)))
end

local function nested(list, rows, cols)
    local made = {}
    for y = 1, rows do
        made[y] = table.move(list, (y - 1) * cols + 1, y * cols, 1, {})
    end
    return made
end

local function weights_of()
    return map(function(_, _, _, i) return 0.2 + 0.8 * (i * 3 % 4) / 3 end, vector(RAYS, 0))
end

local METHODS = {
    {"cgls", 4, {}, function(b, n) return plain.cgls(b, n, vector(RAYS, 1), 0) end},
    {"cgls", 4, {tikhonov = 0.7, weights = true}, function(b, n, w)
        return plain.cgls(b, n, w, 0.7)
    end},
    {"landweber", 6, {nonnegative = true, tikhonov = 0.3, weights = true}, function(b, n, w)
        return plain.landweber(b, n, w, 0.3)
    end},
    {"sirt", 5, {weights = true}, function(b, n, w) return plain.sart(b, n, w, {1}, 1) end},
    {"sart", 2, {}, function(b, n)
        return plain.sart(b, n, vector(RAYS, 1), {1, 5, 3, 7, 2, 6, 4}, 1, 1.2)
    end},
    {"sart", 3, {subsets = 3, relaxation = 0.7, taper = 0}, function(b, n)
        return plain.sart(b, n, vector(RAYS, 1), {1, 3, 2}, 0.7)
    end},
    {"sart", 2, {subsets = 100, weights = true, taper = 0}, function(b, n, w)
        return plain.sart(b, n, w, {1, 5, 3, 7, 2, 6, 4}, 1)
    end},
    {"sart", 2, {subsets = 4, taper = 1.5, relaxation = 0.8}, function(b, n)
        return plain.sart(b, n, vector(RAYS, 1), {1, 3, 2, 4}, 0.8, 1.5)
    end},
    {"sirt", 4, {taper = 3, weights = true}, function(b, n, w)
        return plain.sart(b, n, w, {1}, 1, 3)
    end},
    {"mlem", 6, {}, function(b, n) return plain.osem(b, n, {1}) end},
    {"osem", 3, {subsets = 2}, function(b, n) return plain.osem(b, n, {1, 2}) end},
}

-- Every method with options that let it run for a few iterations.
local ALL = {cgls = {}, landweber = {}, sirt = {}, sart = {subsets = 3}, mlem = {},
    osem = {subsets = 3}, fista = {lambda = 0.01, tv_iterations = 3},
    admm_tv = {lambda = 0.01, tv_iterations = 3, inner = 2}}

local function merged(...)
    local made = {}
    for _, options in ipairs {...} do
        for name, value in pairs(options) do
            made[name] = value
        end
    end
    return made
end

local function with(...)
    return merged({center = CENTER, model = "pixel"}, ...)
end

helper.each_device(function(device_id, it)
    describe("iterative reconstruction on " .. device_id, function()
        local device, sinograms, weights
        setup(function()
            if device_id ~= "host" and helper.gpu_problem then
                return
            end
            device = mb.device(device_id)
            local rows = {}
            for z = 1, ROWS do
                rows[z] = nested(rays_of(z), ANGLES, N)
            end
            sinograms = mb.array(rows, {device = device})
            weights = mb.array(nested(weights_of(), ANGLES, N), {device = device})
            helper.keep_live()
        end)
        teardown(function()
            if sinograms then
                sinograms:release()
                weights:release()
                helper.keep_live()
            end
        end)

        for _, case in ipairs(METHODS) do
            local name, count, options, by_matrix = table.unpack(case)
            local words = {}
            for option in pairs(options) do
                words[#words + 1] = option
            end
            table.sort(words)
            it(name .. " is the method by its definition: " .. table.concat(words, ", "),
                function()
                local slices <close> = mb.tomo[name](sinograms, angles, with(options,
                    {iterations = count, weights = options.weights and weights or nil}))
                for z = 1, ROWS do
                    local expected <close> = mb.array(nested(by_matrix(rays_of(z), count,
                        weights_of()), N, N), {device = device})
                    local slice <close> = slices[z]:copy()
                    local difference <close> = slice - expected
                    assert.is_true(difference:norm() < 2e-5 * expected:norm(),
                        difference:norm() / expected:norm())
                end
            end)
        end

        for name, options in pairs(ALL) do
            it(name .. " takes what its dry run takes, and leaves nothing", function()
                for _, more in ipairs {{}, {history = true}, {tolerance = 1e-30, check = 1},
                    {margin = 2}} do
                    local function work()
                        local slices, facts = mb.tomo[name](sinograms, angles, with(options, more,
                            {iterations = 3}))
                        slices:release()
                        if facts.history then
                            facts.history:release()
                        end
                    end
                    local planned = mb.plan.peak(work, device).peak
                    mb.collect()
                    local scope <close> = mb.pool.scope(device)
                    work()
                    assert.equal(planned, (scope:finish()))
                end
            end)

            it(name .. " takes no memory per iteration", function()
                local function peak(count)
                    return mb.plan.peak(function()
                        mb.tomo[name](sinograms, angles, with(options, {iterations = count}))
                            :release()
                    end, device).peak
                end
                assert.equal(peak(2), peak(5))
            end)

            it(name .. " makes each slice by itself", function()
                local whole <close> = mb.tomo[name](sinograms, angles, with(options,
                    {iterations = 4, tolerance = 0.2, check = 1}))
                for z = 1, ROWS do
                    local one <close> = sinograms:view({z, z})
                    local slice <close> = mb.tomo[name](one, angles, with(options,
                        {iterations = 4, tolerance = 0.2, check = 1}))
                    local own <close> = whole:view({z, z})
                    assert.is_true(own:to_string() == slice:to_string(), z)
                end
            end)

            it(name .. " continues from x0", function()
                local half <close> = mb.tomo[name](sinograms, angles, with(options,
                    {iterations = 3}))
                local again <close> = mb.tomo[name](sinograms, angles, with(options,
                    {iterations = 3, x0 = half}))
                local reached
                local _ <close> = mb.tomo[name](sinograms, angles, with(options, {iterations = 3,
                    callback = function(k, x)
                        reached = k == 3 and x:to_string() or nil
                    end}))
                assert.equal(half:to_string(), reached)
                -- the mask holds for what it starts from, too
                local full <close> = mb.ones({ROWS, N, N}, {device = device})
                for _, start in ipairs {{x0 = full}, {start = 1}} do
                    local masked <close> = mb.tomo[name](sinograms, angles, with(options, start,
                        {iterations = 1, circle = 0.9}))
                    assert.equal(0, masked:item(1, 1, 1))
                    assert.is_true(masked:norm() > 0)
                end
                local function misfit(x)
                    local rays <close> = mb.project(x, angles, {center = CENTER, circle = 1,
                        cols = N})
                    local difference <close> = rays - sinograms
                    return difference:norm()
                end
                assert.is_true(misfit(again) < misfit(half))
            end)

            it(name .. " refuses what makes no sense", function()
                local function refused(more, ...)
                    local text = helper.failure(mb.tomo[name], sinograms, angles, with(options,
                        more))
                    for _, part_of in ipairs {...} do
                        assert.is_truthy(text:find(part_of, 1, true), text)
                    end
                end
                refused({iterations = 0}, "iterations is 0")
                refused({tolerance = 0 / 0}, "tolerance is NaN")
                refused({check = 0.5}, "check is 0.5")
                refused({start = math.huge}, "start is inf; it must be a ")
                refused({iteration = 3}, "unknown option 'iteration'", "iterations")
                local small <close> = mb.zeros({ROWS, N - 1, N}, {device = device})
                refused({x0 = small}, "x0 has the shape 3 x 10 x 11; it must be 3 x 11 x 11")
                assert.matches("angles has 2 numbers", helper.failure(mb.tomo[name], sinograms,
                    {0, 1}))
                local counts <close> = mb.zeros({ROWS, ANGLES, N}, {dtype = "u16",
                    device = device})
                assert.matches("sinograms are u16", helper.failure(mb.tomo[name], counts, angles))
            end)
        end

        it("reaches by fista and admm_tv the objective of 2000 plain iterations", function()
            local lambda <const>, bound <const> = 0.05, 1.2 * ANGLES * N
            local data <close> = sinograms:view({1, 1})
            local x <close> = mb.zeros({1, N, N}, {device = device})
            local g <close> = mb.zeros({1, N, N}, {device = device})
            local rays <close> = mb.zeros({1, ANGLES, N}, {device = device})
            local function residual(of)
                mb.project(of, angles, {center = CENTER, circle = 1, cols = N, out = rays})
                mb.binary(rays, "sub", {b = data, out = rays})
            end
            local function objective(of)
                residual(of)
                local values, sum = of:to_table()[1], rays:norm() ^ 2 / 2
                for y = 1, N do
                    for c = 1, N do
                        local dy = y < N and values[y + 1][c] - values[y][c] or 0
                        local dx = c < N and values[y][c + 1] - values[y][c] or 0
                        sum = sum + lambda * math.sqrt(dx * dx + dy * dy)
                    end
                end
                return sum
            end
            for _ = 1, 2000 do
                residual(x)
                mb.backproject(rays, angles, {center = CENTER, circle = 1, size = {N, N},
                    scale = 1 / bound, accuracy = "exact", out = g})
                mb.binary(x, "sub", {b = g, out = x})
                mb.total_variation(x, lambda / bound, {iterations = 30, nonnegative = true,
                    out = x})
            end
            local plain_one = objective(x)
            for name, iterations in pairs {fista = 100, admm_tv = 60} do
                local slices <close> = mb.tomo[name](data, angles, with({lambda = lambda,
                    iterations = iterations, tv_iterations = 30, inner = name == "admm_tv" and 4
                    or nil}))
                local own = objective(slices)
                local most = name == "fista" and 5e-5 or 5e-4
                assert.is_true(own <= plain_one * (1 + most), ("%s %.9g %.9g"):format(name, own,
                    plain_one))
            end
        end)

        it("gives the same bits on another host device", function()
            if device_id ~= "host" then
                return
            end
            local other <close> = sinograms:to "host:1"
            for name, options in pairs(ALL) do
                for _, model in ipairs {"pixel", (name ~= "mlem" and name ~= "osem")
                    and "fourier" or nil} do
                    local own <close> = mb.tomo[name](sinograms, angles, with(options,
                        {iterations = 3, model = model}))
                    local there <close> = mb.tomo[name](other, angles, with(options,
                        {iterations = 3, model = model}))
                    assert.equal("host:1", there.device.id)
                    assert.is_true(own:to_string() == there:to_string(), name)
                end
            end
        end)

        it("refuses weights that are none", function()
            for _, name in ipairs {"cgls", "landweber", "sirt", "sart", "fista", "admm_tv"} do
                local short <close> = mb.ones({ANGLES, N - 1}, {device = device})
                assert.matches("weights has the shape 7 x 10; it must be 7 x 11", helper.failure(
                    mb.tomo[name], sinograms, angles, {weights = short}))
                for _, value in ipairs {-0.5, 1.5, 0 / 0} do
                    local bad <close> = mb.ones({ANGLES, N}, {device = device})
                    bad:view(2, 2):fill(value)
                    assert.matches(value == value and "weights has values from .*; they must be "
                        .. "numbers from 0 to 1; divide them" or "weights has values that are not "
                        .. "finite %(NaN or infinite%); replace them before", helper.failure(
                        mb.tomo[name], sinograms, angles, {weights = bad}))
                end
            end
        end)

        it("weights rays by exp(-b), at most 1, for \"poisson\"", function()
            local data <close> = sinograms - 0.1 -- some are below 0
            local weight <close> = mb.unary(data, "neg")
            mb.unary(weight, "exp", {out = weight})
            assert.is_true(weight:max() > 1)
            mb.binary(weight, "min", {scalar = 1, out = weight})
            for _, name in ipairs {"cgls", "landweber", "sirt", "sart", "fista", "admm_tv"} do
                local function run(value)
                    return (mb.tomo[name](data, angles, with(ALL[name], {iterations = 3,
                        weights = value})))
                end
                local made <close> = run "poisson"
                local expected <close> = run(weight)
                local without <close> = run(nil)
                local difference <close> = made - expected
                local other <close> = without - expected
                assert.is_true(difference:norm() < 1e-5 * expected:norm(), name)
                assert.is_true(other:norm() > 1e-3 * expected:norm(), name)
            end
        end)

        it("keeps counts by mlem, and no value below 0", function()
            local slices, facts = mb.tomo.mlem(sinograms, angles, with({iterations = 12,
                history = true}))
            local _ <close> = slices
            local history <close> = facts.history
            local rays <close> = mb.project(slices, angles, {center = CENTER, circle = 1, cols = N})
            assert.is_true(slices:min() >= 0)
            -- of rays that cross a pixel, which are all of them here
            assert.is_true(math.abs(rays:sum() / sinograms:sum() - 1) < 1e-5,
                rays:sum() / sinograms:sum())
            local values = history:to_table()
            for k = 2, 12 do
                for z = 1, ROWS do
                    assert.is_true(values[k][z] <= values[k - 1][z])
                end
            end
        end)

        it("refuses negative data by mlem and osem, or counts them as 0", function()
            local data <close> = sinograms:copy()
            data:view(2, 3, 4):fill(-0.5)
            for _, name in ipairs {"mlem", "osem"} do
                assert.matches("sinograms has values from %-0.5 to .*negative = \"zero\"",
                    helper.failure(mb.tomo[name], data, angles))
                local slices <close> = mb.tomo[name](data, angles, {iterations = 2,
                    negative = "zero"})
                assert.is_true(slices:min() >= 0)
                local nan <close> = sinograms:copy()
                nan:view(1, 1, 1):fill(0 / 0)
                local big <close> = mb.full({1, 1, 1}, 1e30, {device = device})
                local infinite <close> = sinograms:copy()
                local place <close> = infinite:view({1, 1}, {1, 1}, {1, 1})
                mb.binary(big, "mul", {b = big, out = place})
                for _, bad in ipairs {nan, infinite} do
                    for _, negative in ipairs {"refuse", "zero"} do
                        assert.matches("sinograms has values that are not finite", helper.failure(
                            mb.tomo[name], bad, angles, {negative = negative}))
                    end
                end
            end
        end)

        it("falls in every step of cgls, and the history is the objective", function()
            for _, weight in ipairs {false, weights} do
                local start
                local slices, facts = mb.tomo.cgls(sinograms, angles, with({iterations = 15,
                    history = true, weights = weight or nil, callback = function(k, x)
                        start = k == 14 and x:copy() or start
                    end}))
                local _ <close> = slices
                local before <close> = start
                local history <close> = facts.history
                local values = history:to_table()
                for k = 2, 15 do
                    for z = 1, ROWS do
                        assert.is_true(values[k][z] < values[k - 1][z])
                    end
                end
                local rays <close> = mb.project(before, angles, {center = CENTER, circle = 1,
                    cols = N})
                mb.binary(rays, "sub", {b = sinograms, out = rays})
                mb.binary(rays, "mul", {b = rays, out = rays})
                if weight then
                    mb.binary(rays, "mul", {b = weight, out = rays})
                end
                for z = 1, ROWS do
                    local one <close> = rays[z]
                    assert.is_true(math.abs(one:sum() / 2 / values[15][z] - 1) < 1e-3)
                end
            end
        end)

        it("ends at the noise, each slice where it is reached", function()
            local function ended(rule)
                local slices, facts = mb.tomo.cgls(sinograms, angles, with({iterations = 12,
                    check = 1}, rule))
                return slices, facts
            end
            local slices, facts = ended {noise = 0.08}
            local _ <close> = slices
            assert.is_true(facts.done > 0 and facts.iterations < 12)
            local rays <close> = mb.project(slices, angles, {center = CENTER, circle = 1, cols = N})
            mb.binary(rays, "sub", {b = sinograms, out = rays})
            for z = 1, ROWS do
                local one <close> = rays[z]
                assert.is_true(one:norm() <= 0.08 * math.sqrt(RAYS) * 1.001, one:norm())
            end
            local never, none = ended {noise = 1e-9}
            never:release()
            assert.same({12, 0}, {none.iterations, none.done})
        end)

        it("ends when the callback wants it", function()
            for name, options in pairs(ALL) do
                local slices, facts = mb.tomo[name](sinograms, angles, with(options, {
                    iterations = 9, history = true, callback = function(k, _, told)
                        assert.same({ROWS}, told.objective.shape)
                        return k == 2
                    end}))
                slices:release()
                assert.equal(2, facts.iterations)
                assert.same({2, ROWS}, facts.history.shape) -- what was begun
                facts.history:release()
            end
        end)

        it("gives the same by a normal operator as by the pair", function()
            local ray_model = require "moonbeam.tomo.iterative.ray_model"
            local model = ray_model.of("pixel", {angles = angles, cols = N, side = N, circle = 1,
                center = CENTER}, "spec")
            function model.normal(x, out)
                local rays <close> = mb.empty({x.shape[1], ANGLES, N}, {device = device})
                model.forward(x, rays)
                model.adjoint(rays, out)
            end
            for _, name in ipairs {"cgls", "landweber", "fista", "admm_tv"} do
                local function run(own)
                    local slices, facts = mb.tomo[name](sinograms, angles, with(ALL[name], own,
                        {iterations = 5, history = true}))
                    local history <close> = facts.history
                    return slices, history:to_table()
                end
                local expected, values = run {}
                local made, others = run {model = model}
                local _ <close> = expected
                local _ <close> = made
                local difference <close> = made - expected
                assert.is_true(difference:norm() < 1e-4 * expected:norm(), name)
                for k = 1, 5 do
                    for z = 1, ROWS do
                        assert.is_true(math.abs(others[k][z] - values[k][z]) < 1e-4 * values[1][z],
                            name)
                    end
                end
            end
        end)

        it("solves the band-limited model by its normal operator as by the pair on a wide detector",
            function()
            local n, count <const> = 24, 9
            local few = mb.tomo.angles(count)
            local data <close> = mb.random({4, count, n}, {seed = 4, device = device})
            local wide <close> = mb.pad(data, {after = {0, 0, n}})
            local geometry = {center = (n - 1) / 2, period = 2 * n}
            local pair = {cols = 2 * n, side = n, angles = count, bound = 1.05 * count * n}
            function pair.forward(x, out)
                mb.fourier_project(x, few, {cols = 2 * n, center = geometry.center, circle = 1,
                    period = 2 * n, accuracy = "exact", out = out})
            end
            function pair.adjoint(rays, out, scale)
                mb.fourier_reconstruct(rays, few, {size = {n, n}, center = geometry.center,
                    circle = 1, period = 2 * n, filter = "none", scale = scale or 1,
                    accuracy = "exact", out = out})
            end
            for _, name in ipairs {"cgls", "landweber", "fista", "admm_tv"} do
                for _, more in ipairs {{}, {tikhonov = name ~= "admm_tv" and 2 or nil}} do
                    local function run(sinogram, model)
                        local options = with(ALL[name], more, {iterations = 5, history = true,
                            model = model, size = n})
                        options.center = geometry.center
                        local slices, facts = mb.tomo[name](sinogram, few, options)
                        local history <close> = facts.history
                        return slices, history:to_table()
                    end
                    local expected, values = run(wide, pair)
                    local _ <close> = expected
                    local made, others = run(data, "fourier")
                    local _ <close> = made
                    local difference <close> = made - expected
                    assert.is_true(difference:norm() < 1e-3 * expected:norm(),
                        difference:norm() / expected:norm())
                    for k = 1, 5 do
                        for z = 1, 4 do
                            assert.is_true(math.abs(others[k][z] - values[k][z])
                                < 1e-3 * values[1][z])
                        end
                    end
                end
            end
        end)

        it("reaches an objective sooner with the preconditioner, by cgls and fista", function()
            local n, count <const> = 32, 20
            local few = mb.tomo.angles(count)
            local head = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
            local projections <close> = mb.ellipsoid_projections(head, few, {0, 0.1}, n,
                {device = device})
            local data <close> = projections:permute(2, 1, 3)
            local function objective(name, floor, k)
                local slices, facts = mb.tomo[name](data, few, {iterations = k, history = true,
                    preconditioner = floor, model = "fourier", lambda = name == "fista" and 0
                    or nil, nonnegative = name ~= "fista" and nil})
                slices:release()
                local history <close> = facts.history
                local values = history:to_table()
                for i = 2, name == "cgls" and k or 0 do
                    assert.is_true(values[i][1] < values[i - 1][1])
                end
                return values[k][1]
            end
            assert.is_true(objective("cgls", 0.05, 6) < objective("cgls", 0, 9))
            assert.is_true(objective("fista", 0.05, 16) < objective("fista", 0, 24))
            for _, name in ipairs {"cgls", "fista"} do
                local function refused(pattern, options)
                    options.preconditioner = 0.05
                    assert.matches("preconditioner is 0.05, which " .. pattern, helper.failure(
                        mb.tomo[name], data, few, options))
                end
                refused("needs", {model = "pixel"})
                refused("needs", {model = "fourier", center = n / 2 + 3, beyond = "unknown"})
                if name == "fista" then
                    refused("is for least squares alone, without total variation: give the option "
                        .. "lambda = 0", {})
                    refused("is for .* without nonnegative", {lambda = 0})
                end
            end
        end)

        -- The length of the steps is measured: too long ones would grow.
        it("comes by fista with the preconditioner to the minimum that cgls finds", function()
            for _, case in ipairs {{33, 7, 1, 0.05}, {33, 90, 1, 0.01}, {32, 12, 0.2, 0.1},
                {20, 3, 2, 0.02}} do
                local n, count, turn, floor = table.unpack(case)
                local some = mb.tomo.angles(count, turn * math.pi)
                local data <close> = mb.random({3, count, n}, {seed = 2, device = device})
                local options = {tikhonov = 0.3 * count, iterations = 300}
                local expected <close> = mb.tomo.cgls(data, some, options)
                options.lambda, options.nonnegative, options.preconditioner = 0, false, floor
                local made <close> = mb.tomo.fista(data, some, options)
                local difference <close> = made - expected
                assert.is_true(difference:norm() < 2e-3 * expected:norm(),
                    difference:norm() / expected:norm())
                local one <close> = data:view {2, 2}
                options.iterations = 3
                local all <close> = mb.tomo.fista(data, some, options)
                local two <close> = data:view {1, 2}
                local pair <close> = mb.tomo.fista(two, some, options)
                local first <close> = all:view {1, 2}
                assert.is_true(first:copy():to_string() == pair:to_string())
                options.start = "fbp"
                local function work()
                    mb.tomo.fista(one, some, options):release()
                end
                local planned = mb.plan.peak(work, device).peak
                mb.collect()
                local scope <close> = mb.pool.scope(device)
                work()
                assert.equal(planned, (scope:finish()))
            end
        end)

        it("lowers the misfit by sirt with the band-limited model in every step", function()
            local slices, facts = mb.tomo.sirt(sinograms, angles, {iterations = 60,
                history = true, relaxation = 1.5})
            slices:release()
            local history <close> = facts.history
            local values = history:to_table()
            for k = 2, 60 do
                for z = 1, ROWS do
                    assert.is_true(values[k][z] < values[k - 1][z])
                end
            end
        end)

        -- One angle is solved to rounding in six steps.
        for _, case in ipairs {{64, 1, 20}, {64, 3, 200}, {128, 1, 20}, {256, 3, 100},
            {128, 1, 20, "normal"}, {128, 1, 20, "pair"}} do
            local n <const>, count <const>, steps <const>, way <const> = table.unpack(case)
            it(("stays at what cgls has found when nothing but rounding is left: %d columns, %d "
                .. "angles%s"):format(n, count, way and ", by the " .. way or ""), function()
                local fourier = require("moonbeam.tomo.iterative.ray_model").models.fourier
                local kernel
                -- A model with a normal operator that is no convolution, or with none.
                local function own(g)
                    local model = fourier(g)
                    kernel = way == "normal" and model.kernel(device, 0) or nil
                    model.kernel, model.normal = nil, kernel and function(x, out)
                        mb.normal_operator(x, kernel, {circle = model.circle, out = out})
                    end
                    return model
                end
                local few = mb.tomo.angles(count)
                local head = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
                local projections <close> = mb.ellipsoid_projections(head, few, {0}, n,
                    {device = device})
                local data <close> = projections:permute(2, 1, 3)
                local slices <close>, facts = mb.tomo.cgls(data, few, {iterations = steps,
                    history = true, model = way and own or "fourier"})
                if kernel then
                    kernel:release()
                end
                local history <close> = facts.history
                local values = history:to_table()
                assert.is_true(slices:max() < 1 and slices:min() > -0.5, slices:max())
                assert.is_true(way == "pair" or values[steps][1] > 0.9 * values[steps // 3][1],
                    values[steps][1])
                assert.is_true(values[steps][1] < 1e-4 * values[1][1])
            end)
        end

        -- A ray that only touches a corner of a pixel must not be divided by what it touches.
        it("lowers the misfit by sirt about any axis", function()
            local n, few = 29, mb.tomo.angles(9, 2 * math.pi)
            local head = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
            for i = 0, 12 do
                for _, circle in ipairs {1, 0.9} do
                    local center = (n - 1) / 2 - 4.13 + 0.61 * i
                    local projections <close> = mb.ellipsoid_projections(head, few, {0}, n,
                        {center = center, device = device})
                    local data <close> = projections:permute(2, 1, 3)
                    local slices, facts = mb.tomo.sirt(data, few, {iterations = 12,
                        history = true, center = center, circle = circle, model = "fourier"})
                    slices:release()
                    local history <close> = facts.history
                    local values = history:to_table()
                    for k = 2, 12 do
                        assert.is_true(values[k][1] < values[k - 1][1], ("center %g, circle %g, "
                            .. "step %d: %g"):format(center, circle, k, values[k][1]))
                    end
                end
            end
        end)

        -- Parts of one angle, whose sums are near 0 at the edges of the detector, each part at
        -- other pixels; and rays of little weight beside others.
        it("does not grow by sart and sirt, whatever the detector sees, by weights or relaxation",
            function()
            local cases = { -- columns, angles, turn, from the middle, least weight
                {"sart", 26, 41, 2, -2.54, {circle = 0.9, taper = 0}},
                {"sart", 67, 41, 1, 19, {iterations = 20}}, -- by default
                {"sart", 38, 90, 2, 3.4, {size = 64, subsets = 90, taper = 3}},
                {"sart", 11, 41, 0.7, -2.96, {circle = 0, size = 19, taper = 0}},
                {"sart", 28, 9, 1, 1.09, {margin = 20}},
                {"sart", 64, 41, 1, 24, {taper = 0}, 0.05},
                {"sart", 25, 9, 0.7, 10.36, {margin = 4, subsets = 2, taper = 3}, 0.05},
                {"sirt", 39, 1, 1, -1.43, {circle = 0, taper = 1.2}, 0.05},
                {"sirt", 38, 1, 2, -4.32, {circle = 0, taper = 3}, 0.05},
                {"sirt", 70, 9, 1, -31.95, {size = 94, relaxation = 1.5}},
                {"sirt", 54, 1, 2, 5.55, {circle = 0, relaxation = 1.9}},
                {"sart", 37, 20, 1, -4.51, {subsets = 20, taper = 3, relaxation = 1.9}},
                {"sart", 55, 1, 2, 2.41, {circle = 0, margin = 1, taper = 3, relaxation = 1.9}},
            }
            for i, case in ipairs(cases) do
                local name, n, count, turn, off, options, least = table.unpack(case)
                local some = mb.tomo.angles(count, turn * math.pi)
                local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * n)
                local center = (n - 1) / 2 + off
                local frames <close> = mb.ellipsoid_projections(head, some, {0}, n,
                    {center = center, device = device})
                local data <close> = frames:permute(2, 1, 3)
                local rough <close> = mb.random({count, n}, {seed = 3, low = least or 0, high = 1,
                    device = device})
                local tops = {}
                for k, iterations in ipairs {5, 60} do
                    local slices <close> = mb.tomo[name](data, some, merged(options,
                        {center = center, iterations = iterations, model = "fourier",
                            weights = least and rough or nil}))
                    tops[k] = math.max(slices:max(), -slices:min())
                end
                assert.is_true(tops[2] < 4 and tops[2] < 3 * tops[1], ("case %d: %g %g"):format(i,
                    tops[1], tops[2]))
                local function work()
                    mb.tomo[name](data, some, merged(options, {center = center, iterations = 1,
                        model = "fourier", weights = least and rough or nil})):release()
                end
                local planned = mb.plan.peak(work, device).peak
                mb.collect()
                local scope <close> = mb.pool.scope(device)
                work()
                assert.equal(planned, (scope:finish()))
            end
        end)

        it("refuses a model whose weights are negative for likelihoods", function()
            for _, name in ipairs {"mlem", "osem"} do
                assert.matches("some of whose weights are negative", helper.failure(mb.tomo[name],
                    sinograms, angles, {model = "fourier"}))
            end
        end)

        it("refuses a model that does not fit", function()
            assert.matches("model has no adjoint", helper.failure(mb.tomo.cgls, sinograms, angles,
                {model = {forward = print}}))
            assert.matches("model is the string 'strip'", helper.failure(mb.tomo.cgls, sinograms,
                angles, {model = "strip"}))
        end)
    end)
end)
