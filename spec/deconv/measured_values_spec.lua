-- What was measured is not what iterations want: values below 0, NaN, values that f32 cannot hold.
-- Each is mended and told, or refused in one line, the same by every method, whole and by tiles.
-- The reference is Richardson-Lucy in double precision, written here.

local mb = require "moonbeam"

local HUGE = math.huge

-- ---- Richardson-Lucy in double precision, along two axes ----

-- The elements of a table {{...}, ...} as functions of 0-based places, 0 elsewhere.
local function at(t, y, x)
    return t[y + 1] and t[y + 1][x + 1] or 0
end

local function clipped(t)
    local copy = {}
    for y, row in ipairs(t) do
        copy[y] = {}
        for x, value in ipairs(row) do
            copy[y][x] = math.max(value, 0)
        end
    end
    return copy
end

local function sum_of(t)
    local sum = 0
    for _, row in ipairs(t) do
        for _, value in ipairs(row) do
            sum = sum + value
        end
    end
    return sum
end

-- The estimate lives on the places that the image can see, and begins with the image's mean. A
-- background is taken out of the first step, and holds the light to what it leaves.
local function reference(image, psf, iterations, background)
    image, psf = clipped(image), clipped(psf)
    local ny, nx, ky, kx = #image, #image[1], #psf, #psf[1]
    local cy, cx, total = (ky - 1) // 2, (kx - 1) // 2, sum_of(psf)
    local mean = sum_of(image) / (ny * nx)
    local eps, x, norm = math.max(1e-6 * mean, 1e-36), {}, {}
    local level = background > 0 and math.max(mean - background, 1e-3 * mean) or mean
    local function each(f)
        for p = cy - ky + 1, ny - 1 + cy do
            for q = cx - kx + 1, nx - 1 + cx do
                f(p, q, (p + ky) * 1000 + q + kx)
            end
        end
    end
    local function back(p, q, value)
        local sum = 0
        for j = 0, ky - 1 do
            for i = 0, kx - 1 do
                local y, z = p + j - cy, q + i - cx
                if y >= 0 and y < ny and z >= 0 and z < nx then
                    sum = sum + at(psf, j, i) / total * value(y, z)
                end
            end
        end
        return sum
    end
    each(function(p, q, key)
        x[key], norm[key] = level, back(p, q, function() return 1 end)
    end)
    local light = math.max(sum_of(image) - background * ny * nx, 1e-3 * sum_of(image))
    for k = 1, iterations do
        local ratio, ratios = {}, 0
        for y = 0, ny - 1 do
            ratio[y] = {}
            for z = 0, nx - 1 do
                local sum = background
                for j = 0, ky - 1 do
                    for i = 0, kx - 1 do
                        sum = sum + at(psf, j, i) / total
                            * x[(y - j + cy + ky) * 1000 + z - i + cx + kx]
                    end
                end
                ratio[y][z] = at(image, y, z) / math.max(sum, eps)
                ratios = ratios + ratio[y][z]
            end
        end
        local scale = background > 0 and k > 1 and math.max(math.min(0.95, 1 - 0.7 / k),
            math.min(1, light / (sum_of(image) - background * ratios))) or 1
        local next = {}
        each(function(p, q, key)
            next[key] = norm[key] > 1e-3
                and x[key] * back(p, q, function(y, z) return ratio[y][z] end) / norm[key]
                * scale or 0
            if k == 1 and background > 0 then
                next[key] = math.max(0.03 * next[key],
                    next[key] * (level + background) / level - background)
            end
        end)
        x = next
    end
    local result = {}
    for y = 0, ny - 1 do
        result[y + 1] = {}
        for z = 0, nx - 1 do
            result[y + 1][z + 1] = x[(y + ky) * 1000 + z + kx]
        end
    end
    return result
end

-- ---- what comes from microscopes ----

local function noise()
    return math.random() + math.random() + math.random() + math.random() - 2
end

local function image_of(ny, nx)
    local image, offset, level = {}, math.random(0, 3) * 5, 10 ^ math.random(0, 3)
    for y = 1, ny do
        image[y] = {}
        for x = 1, nx do
            local light = math.random() < 0.15 and level * math.random() or 0
            image[y][x] = light + 3 * noise() - (math.random(3) == 1 and offset or 0)
        end
    end
    return image
end

local function psf_of(ky, kx)
    local psf, rough, offset = {}, ({0, 0.01, 0.05, 0.3})[math.random(4)],
        ({0, 0, 0.01, 0.1})[math.random(4)]
    for y = 1, ky do
        psf[y] = {}
        for x = 1, kx do
            psf[y][x] = math.exp(-((y - (ky + 1) / 2) ^ 2 + (x - (kx + 1) / 2) ^ 2) / 1.6)
                + rough * noise() - offset
        end
    end
    return psf
end

local HURT <const> = {
    function() end, function() end, function() end,
    function(image) image[1][2] = 0 / 0 end,
    function(image) image[2][1] = HUGE end,
    function(image) image[2][2] = -HUGE end,
    function(image) image[2][2] = 1e34 end,
    function(_, psf) psf[1][1] = 0 / 0 end,
    function(_, psf) psf[1][2] = 1e34 end,
    function(image) -- saturated
        for _, row in ipairs(image) do
            for x, value in ipairs(row) do
                row[x] = math.min(value, 5)
            end
        end
    end,
    function(_, psf) -- a bead that is
        for _, row in ipairs(psf) do
            for x, value in ipairs(row) do
                row[x] = math.min(value, 0.5)
            end
        end
    end,
    function(image) -- one voxel has light
        for _, row in ipairs(image) do
            for x, value in ipairs(row) do
                row[x] = -math.abs(value)
            end
        end
        image[3][3] = 700
    end,
    function(image) -- all have the same
        for _, row in ipairs(image) do
            for x in ipairs(row) do
                row[x] = 3
            end
        end
    end,
    function(image) image[2][2] = 3.4e38 end,
}
local SCALES <const> = {1, 1, 1, 1, 1, 1e34, 1e-38, 1e30, 1e-28, 1e-44, 1e37}

local function scaled(image, factor)
    for _, row in ipairs(image) do
        for x, value in ipairs(row) do
            row[x] = value * factor
        end
    end
end

-- Does a result differ from the reference by more than 1e-4 of the maximum? That of the image
-- counts, too, because light at its edges may come from outside.
local function differs(expected, result, image)
    local most, apart = image:max(), 0
    for y, row in ipairs(result:to_table()) do
        for x, value in ipairs(row) do
            most = math.max(most, expected[y][x])
            apart = math.max(apart, math.abs(value - expected[y][x]))
            if value ~= value then
                apart = HUGE
            end
        end
    end
    return apart > 1e-4 * most, ("%.3g of %.3g"):format(apart, most)
end

-- The line of a refusal; fails where it is another error or has several lines.
local function refusal(problem)
    assert.is_table(problem, tostring(problem))
    assert.equal("argument", problem.code, problem.message)
    assert.is_nil(problem.message:find "\n")
    return problem.message
end

local COUNT <const> = tonumber(os.getenv "MOONBEAM_RANDOM_VALUES") or 60

describe("measured values", function()
    it("are refused in a line, or deconvolved as their clipped values are", function()
        local refused, mended = 0, 0
        for seed = 1, COUNT do
            math.randomseed(seed)
            local image, psf = image_of(math.random(5, 9), math.random(5, 9)),
                psf_of(({1, 3, 4})[math.random(3)], ({3, 5})[math.random(2)])
            HURT[math.random(#HURT)](image, psf)
            scaled(image, SCALES[math.random(#SCALES)])
            local background = math.random(4) == 1 and 2 or 0
            local y <close> = mb.array(image)
            local h <close> = mb.array(psf)
            local tiles = {iterations = 12, background = background,
                tile = {4, 5}}
            local ok, result, report = pcall(mb.deconv.richardson_lucy, y, h,
                {iterations = 12, background = background})
            local also, tiled, same = pcall(mb.tiled_deconv.richardson_lucy, y, h, tiles)
            assert.equal(ok, also, ("seed %d: %s, %s"):format(seed, tostring(result),
                tostring(tiled)))
            if ok then
                mended = mended + 1
                local _ <close> = result
                local _ <close> = tiled
                local expected = reference(y:to_table(), h:to_table(), 12, background)
                local bad, text = differs(expected, result, y)
                assert.is_false(bad, ("seed %d, whole: %s"):format(seed, text))
                bad, text = differs(expected, tiled, y)
                assert.is_false(bad, ("seed %d, tiles: %s"):format(seed, text))
                assert.same(report.clipped, same.clipped)
                bad, text = differs(result:to_table(), tiled, y)
                assert.is_false(bad, ("seed %d, tiles and whole: %s"):format(seed, text))
            else
                refused = refused + 1
                refusal(result)
                refusal(tiled)
            end
        end
        assert.is_true(refused > COUNT / 6 and mended > COUNT / 3,
            ("%d refused, %d mended"):format(refused, mended))
    end)
end)

describe("an image with values below 0", function()
    local image, psf, positive

    before_each(function()
        image = mb.random({6, 20, 20}, {seed = 1, low = -0.3, high = 0.7})
        positive = mb.binary(image, "max", {scalar = 0})
        psf = mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
    end)

    after_each(function()
        image:release()
        positive:release()
        psf:release()
    end)

    local WAYS = {
        none = {"deconv", "richardson_lucy", {}},
        heavy_ball = {"deconv", "richardson_lucy", {acceleration = "heavy_ball"}},
        biggs_andrews = {"deconv", "richardson_lucy", {acceleration = "biggs_andrews"}},
        total_variation = {"deconv", "richardson_lucy", {total_variation = 0.01}},
        reflect = {"deconv", "richardson_lucy", {boundary = "reflect", metrics = true}},
        gradient_consensus = {"deconv", "gradient_consensus", {}},
        exact = {"tiled_deconv", "richardson_lucy", {tile = {6, 12, 10}}},
        blended = {"tiled_deconv", "richardson_lucy", {tile = {6, 12, 10}, mode = "blended"}},
        start = {"deconv", "richardson_lucy", {start = "image"}},
    }

    for name, way in pairs(WAYS) do
        it("gives what it gives with 0 in their place, and says how many: " .. name, function()
            local options = {iterations = 7}
            for key, value in pairs(way[3]) do
                options[key] = value
            end
            local run = mb[way[1]][way[2]]
            local result <close>, report = run(image, psf, options)
            local same <close>, other = run(positive, psf, options)
            assert.equal(same:to_string(), result:to_string())
            assert.same({image = 0.0, psf = 0.0}, other.clipped)
            local counts <close> = mb.histogram(image, {bins = 1, low = 0, high = 1})
            assert.near(counts:item(2) / image.elements, report.clipped.image, 1e-12)
            local function work()
                local again <close> = run(image, psf, options)
                return again.bytes
            end
            local planned, measured = mb.dry_run(work), mb.ledger(work)
            assert.same({}, planned:diff(measured))
            assert.equal(planned.peak, measured.peak)
        end)
    end

    it("keeps them by landweber, whose noise is around 0", function()
        local result <close>, report = mb.deconv.landweber(image, psf)
        local other <close> = mb.deconv.landweber(positive, psf)
        assert.is_true(result:sum() < other:sum())
        assert.equal(0.0, report.clipped.image)
    end)

    it("is seen by landweber where its sum is 0, and where nothing of it is left", function()
        local pair <close> = mb.zeros {5, 6, 7}
        pair:view(2, 3, 3):fill(4)
        pair:view(4, 5, 2):fill(-4)
        assert.equal(0, pair:sum())
        local weights <close> = mb.ones {5, 6, 7}
        weights:view(2, 3, 3):fill(0)
        weights:view(4, 5, 2):fill(0)
        local none <close> = mb.zeros {5, 6, 7}
        local point <close> = mb.ones {1, 1, 1}
        for _, kept in ipairs {true, false} do
            local options = {positive = kept, weights = weights, start = none,
                iterations = 3}
            local ok, problem = pcall(mb.deconv.landweber, pair, point, options)
            assert.is_false(ok, kept)
            assert.matches("the result is 0 everywhere, and the image is not", refusal(problem))
            local dark <close> = mb.deconv.landweber(none, point, options)
            assert.equal(0, dark:max())
            options.weights = nil
            local result <close> = mb.deconv.landweber(pair, point, options)
            assert.near(4, result:max(), 1e-5)
            assert.near(kept and 0 or -4, result:min(), 1e-5)
            local function work()
                local again <close> = mb.deconv.landweber(pair, point, options)
                return again.bytes
            end
            local planned, measured = mb.dry_run(work), mb.ledger(work)
            assert.same({}, planned:diff(measured))
            assert.equal(planned.peak, measured.peak)
        end
    end)

    it("is refused where nothing is above 0, but not as a dark tile", function()
        mb.binary(image, "sub", {scalar = 1, out = image})
        for name, way in pairs(WAYS) do
            local ok, problem = pcall(mb[way[1]][way[2]], image, psf, way[3])
            assert.is_false(ok, name)
            assert.matches("no value of the image is above 0", refusal(problem))
        end
        image:view(1, 1, 1):fill(5)
        for _, mode in ipairs {"exact", "blended"} do
            local result <close> = mb.tiled_deconv.richardson_lucy(image, psf,
                {mode = mode, tile = {6, 12, 10}})
            assert.is_true(result:max() > 0)
        end
    end)

    it("is searched for its end as with 0 in their place", function()
        local function bright(from)
            return mb.binary(from, "mul", {scalar = 100})
        end
        local one <close> = bright(image)
        local other <close> = bright(positive)
        local a = mb.deconv.find_iterations(one, psf, {gain = 1, offset = 0, iterations = 20})
        local b = mb.deconv.find_iterations(other, psf, {gain = 1, offset = 0, iterations = 20})
        assert.equal(b.iterations, a.iterations)
    end)
end)

describe("a PSF with values below 0", function()
    local image, psf

    before_each(function()
        image = mb.random({6, 20, 20}, {seed = 1})
        psf = mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
    end)

    after_each(function()
        image:release()
        psf:release()
    end)

    for _, name in ipairs {"richardson_lucy", "gradient_consensus", "landweber"} do
        it("is taken without them, as a part that is said, up to a limit: " .. name, function()
            local run = mb.deconv[name]
            mb.binary(psf, "sub", {scalar = 0.005, out = psf})
            local positive <close> = mb.binary(psf, "max", {scalar = 0})
            local result <close>, report = run(image, psf)
            local same <close> = run(image, positive)
            assert.equal(same:to_string(), result:to_string())
            local below = positive:sum() - psf:sum()
            assert.near(below / (positive:sum() + below), report.clipped.psf, 1e-9)
            assert.is_true(report.clipped.psf > 0.02)
            local otf <close> = mb.deconv.transfer(psf, image.shape)
            if name ~= "gradient_consensus" then
                local given <close> = run(image, psf, {otf = otf})
                assert.equal(same:to_string(), given:to_string())
            end
            mb.binary(psf, "sub", {scalar = 0.01, out = psf})
            local ok, problem = pcall(run, image, psf)
            assert.is_false(ok)
            assert.matches("more than 25 %", refusal(problem), 1, true)
            assert.equal("psf", problem.arg)
        end)
    end

    it("is refused where a value is not finite, or none is above 0", function()
        psf:view(1, 1, 1):fill(0 / 0)
        local ok, problem = pcall(mb.deconv.richardson_lucy, image, psf)
        assert.is_false(ok)
        assert.matches("1 of 75 values of the PSF are not finite", refusal(problem), 1, true)
        psf:fill(-1)
        ok, problem = pcall(mb.deconv.landweber, image, psf)
        assert.is_false(ok)
        assert.matches("no value of the PSF is above 0", refusal(problem))
    end)

    it("loses them with its background, also where that is 0", function()
        psf:view(1, 1, 1):fill(-1)
        local left <close>, level = mb.psf.subtract_background(psf, 0)
        assert.equal(0, level)
        assert.equal(0, left:min())
        mb.binary(psf, "max", {scalar = 0, out = psf})
        assert.equal(psf:to_string(), left:to_string())
        local wide <close> = mb.psf.gaussian({9, 13, 13}, {1, 1, 1})
        mb.binary(wide, "sub", {scalar = 0.0004, out = wide})
        local found = mb.psf.background(wide)
        assert.near(-0.0004, found.level, 1e-5)
        assert.is_true(found.flat)
        assert.is_true(found.share < 0)
    end)
end)

describe("weights, ranges and results", function()
    local image, psf

    before_each(function()
        image = mb.random({20, 20}, {seed = 1})
        psf = mb.psf.gaussian({5, 5}, {1, 1})
    end)

    after_each(function()
        image:release()
        psf:release()
    end)

    local function refused(options, name)
        mb.collect()
        local live = mb.pool.stats().live
        local ok, problem = pcall(mb.deconv[name or "richardson_lucy"], image, psf, options)
        assert.is_false(ok)
        mb.collect()
        assert.equal(live, mb.pool.stats().live)
        return refusal(problem), problem.arg
    end

    it("are refused by name where weights are negative, not finite, or 0", function()
        for _, name in ipairs {"richardson_lucy", "gradient_consensus", "landweber"} do
            local weights <close> = mb.ones {20, 20}
            weights:view(3, {4, 5}):fill(-0.5)
            assert.equal("2 of 400 values of weights are below 0: give numbers from 0, for bad "
                .. "pixels, to 1", (refused({weights = weights}, name)))
            weights:view(3, 4):fill(0 / 0)
            local text, arg = refused({weights = weights}, name)
            assert.matches("1 of 400 values of weights are not finite", text)
            assert.equal("weights", arg)
            weights:fill(0)
            assert.matches("weights is 0 everywhere", (refused({weights = weights}, name)))
        end
    end)

    it("are refused by name where f32 does not hold them", function()
        mb.binary(image, "mul", {scalar = 1e34, out = image})
        assert.matches("too large for f32: their mean is 5", (refused()))
        mb.binary(image, "mul", {scalar = 1e-34, out = image})
        mb.binary(image, "mul", {scalar = 1e-32, out = image})
        assert.matches("too small for f32: their mean is 5", (refused()))
        mb.binary(image, "mul", {scalar = 1e12, out = image})
        local result <close> = mb.deconv.richardson_lucy(image, psf)
        assert.is_true(result:max() > 0)
        assert.matches("too small", (refused {total_variation = 0.01}))
    end)

    it("are errors where the result is 0 and the image is not", function()
        image:fill(0)
        local black <close> = mb.deconv.richardson_lucy(image, psf)
        assert.equal(0, black:max())
        image:view(10, 10):fill(7)
        local weights <close> = mb.ones {20, 20}
        weights:view(10, 10):fill(0)
        assert.matches("the result is 0 everywhere, and the image is not",
            (refused {weights = weights}))
    end)

    it("are errors where the result is not finite", function()
        local start <close> = mb.full({20, 20}, 3e38)
        for _, name in ipairs {"richardson_lucy", "gradient_consensus", "landweber"} do
            assert.matches("the result has values that are not finite",
                (refused({start = start}, name)))
        end
    end)

    it("are errors where total variation may turn the sign of its step", function()
        local function limit(shape, spacing)
            local one <close> = mb.ones(shape)
            local small <close> = mb.ones(#shape == 1 and {1} or #shape == 2 and {1, 1}
                or {1, 1, 1})
            local ok, problem = pcall(mb.deconv.richardson_lucy, one, small,
                {total_variation = 0.9, spacing = spacing})
            assert.is_false(ok)
            assert.equal("total_variation", problem.arg)
            local least = tonumber(problem.message:match "from ([%d.]+) on")
            mb.deconv.richardson_lucy(one, small, {total_variation = least - 1e-3,
                spacing = spacing, iterations = 1}):release()
            return least
        end
        assert.near(1 / (math.sqrt(3) + 3), limit {4, 4, 4}, 1e-3)
        assert.near(1 / (math.sqrt(2) + 2), limit {4, 4}, 1e-3)
        assert.near(1 / 2, limit {9}, 1e-3)
        assert.near(1 / (1.5 + 2.5), limit({4, 4, 4}, {2, 1, 1}), 1e-3)
        -- A dark voxel reaches the bound: the divisor is 1 - lambda div, and div is all of it.
        local x <close> = mb.ones {5, 5, 5}
        x:view(3, 3, 3):fill(0)
        local correction <close> = mb.ones {5, 5, 6}
        mb.rl_total_variation(x, correction, {lambda = 0.1, epsilon = 1e-6})
        assert.near(1 / (1 - 0.1 * (math.sqrt(3) + 3)), correction:item(3, 3, 3), 1e-4)
    end)
end)

describe("a background in the model", function()
    -- Beads of 4000 photons over a haze of 0.2 in a camera's image with the offset 100 and a read
    -- noise of 2, as counts. An empty part of it has the mean 100.2 and the variance 4.2.
    local function camera(shape, kernel, sigma, seed)
        local truth <close>, margins = mb.zeros(shape), {}
        math.randomseed(seed)
        for _ = 1, 14 do
            local place = {}
            for i, n in ipairs(shape) do
                margins[i] = math.min(8, n // 4)
                place[i] = math.random(margins[i] + 1, n - margins[i])
            end
            truth:view(table.unpack(place)):fill(4000)
        end
        local psf = mb.psf.gaussian(kernel, sigma)
        local blurred <close> = mb.convolution(truth, psf, {normalize = true, boundary = "zero"})
        mb.binary(blurred, "max", {scalar = 0, out = blurred})
        mb.binary(blurred, "add", {scalar = 0.2, out = blurred})
        local measured <close> = mb.poisson(blurred, {seed = seed})
        -- Read noise: the mean of many numbers of one distribution, with the variance 4.
        local thousand <close> = mb.full(shape, 1000)
        local read <close> = mb.poisson(thousand, {seed = seed + 1})
        mb.binary(read, "sub", {scalar = 1000, out = read})
        mb.binary(read, "mul", {scalar = 2 / math.sqrt(1000), out = read})
        mb.binary(measured, "add", {b = read, out = measured})
        mb.binary(measured, "add", {scalar = 100, out = measured})
        return measured:cast("u16"), psf, truth:sum()
    end
    local function without(raw, offset)
        local image <close> = raw:cast("f32")
        return mb.binary(image, "sub", {scalar = offset})
    end

    for _, case in ipairs {
        {{9, 48, 48}, {9, 13, 13}, {1.2, 1.6, 1.6}, 1.2},
        {{97, 96}, {13, 13}, {1.6, 1.6}, 1.1},
    } do
        it(("adds no light where noise is around the offset: %s"):format(
            table.concat(case[1], " x ")), function()
            local raw, psf, light = camera(case[1], case[2], case[3], 3)
            local _ <close> = raw
            local _ <close> = psf
            local left <close> = without(raw, 96)
            local all <close> = without(raw, 100)
            local function sum(image, options, name)
                local result <close> = mb.deconv[name or "richardson_lucy"](image, psf, options)
                return result:sum() / light
            end
            assert.is_true(sum(all, {iterations = 20}) > case[4])
            for _, acceleration in ipairs {"none", "heavy_ball", "biggs_andrews"} do
                for _, count in ipairs {3, 10, 20, 40} do
                    local options = {iterations = count, background = 4.2,
                        acceleration = acceleration}
                    local share = sum(left, options)
                    assert.is_true(share > 0.97 and share <= 1.05, acceleration .. share)
                end
            end
            local share = sum(left, {background = 4.2, iterations = 30}, "gradient_consensus")
            assert.is_true(share > 0.97 and share <= 1.05, share)
            -- One that is too large by a quarter, and by half of all light, costs a tenth of it.
            assert.is_true(sum(left, {iterations = 20, background = 5.2}) > 0.9)
        end)
    end

    it("counts only what weights let count, and what continues an image", function()
        local raw, psf, light = camera({97, 96}, {13, 13}, {1.6, 1.6}, 5)
        local _ <close> = raw
        local _ <close> = psf
        local left <close> = without(raw, 96)
        local weights <close> = mb.ones(left.shape)
        weights:view(3, {1, 96}):fill(0)
        left:view(3, {1, 96}):fill(60000)
        local result <close> = mb.deconv.richardson_lucy(left, psf, {iterations = 20,
            background = 4.2, weights = weights})
        assert.near(1, result:sum() / light, 0.05)
        left:view(3, {1, 96}):fill(4.2)
        for _, boundary in ipairs {"circular", "reflect", "replicate"} do
            local other <close> = mb.deconv.richardson_lucy(left, psf, {iterations = 20,
                background = 4.2, boundary = boundary})
            assert.near(1, other:sum() / light, 0.05, boundary)
        end
    end)

    it("leaves what is 0 everywhere as it is: an image, a channel, a tile", function()
        local psf <close> = mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
        for _, shape in ipairs {{5, 16, 18}, {5, 16, 1}} do
            local dark <close> = mb.zeros(shape)
            for _, more in ipairs {{}, {acceleration = "biggs_andrews"}, {total_variation = 0.01},
                {min = 0.5}} do
                more.iterations, more.background = 3, 2
                local least = more.min or 0
                local whole <close> = mb.deconv.richardson_lucy(dark, psf, more)
                more.tile = {3, 8, 9}
                local tiled <close> = mb.tiled_deconv.richardson_lucy(dark, psf, more)
                for _, result in ipairs {whole, tiled} do
                    assert.same({least, least}, {result:min(), result:max()})
                end
            end
            local halves <close> = mb.deconv.gradient_consensus(dark, psf,
                {iterations = 3, background = 2})
            assert.equal(0, halves:max())
        end
        local image <close> = mb.random({5, 48, 48}, {seed = 1, low = 3, high = 9})
        image:view(mb.all, {1, 32}, mb.all):fill(0)
        local blended <close> = mb.tiled_deconv.richardson_lucy(image, psf, {iterations = 3,
            background = 2, tile = {5, 16, 16}, mode = "blended"})
        assert.is_true(blended:max() > 3)
        local top <close> = blended:view(mb.all, {1, 24}, mb.all)
        assert.near(0, top:max(), 1e-3)
    end)

    it("is part of the misfit, by tiles as well", function()
        local image <close> = mb.random({12, 14}, {seed = 4, low = 3, high = 9})
        local psf <close> = mb.psf.gaussian({3, 3}, {1, 1})
        local options = {iterations = 5, background = 2, metrics = true}
        local a <close>, one = mb.deconv.richardson_lucy(image, psf, options)
        options.tile = {6, 7}
        local b <close>, two = mb.tiled_deconv.richardson_lucy(image, psf, options)
        for k = 1, 5 do
            assert.near(one.metrics[k].divergence, two.metrics[k].divergence, 1e-3)
            assert.near(one.metrics[k].blurred, two.metrics[k].blurred, 1e-2)
        end
        assert.near(image:sum(), one.metrics[1].blurred, 0.2 * image:sum())
        local d <close> = mb.binary(a, "sub", {b = b})
        assert.near(0, d:max(), 1e-4)
    end)
end)
