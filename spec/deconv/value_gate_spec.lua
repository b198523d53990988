-- Every way to convolve or deconvolve, whole and by tiles, with every kind of value that images,
-- PSFs and weights have and should not have: a refusal in one line that leaves nothing live, or a
-- finite result.

local mb = require "moonbeam"

local HUGE <const> = math.huge

-- Sets the last element of an array.
local function last(array, value)
    local ranges = {}
    for i, n in ipairs(array.shape) do
        ranges[i] = {n, n}
    end
    local corner <close> = array:view(table.unpack(ranges))
    if math.abs(value) == HUGE then -- which fill refuses
        corner:fill(3e38)
        mb.binary(corner, "mul", {scalar = value > 0 and 1e5 or -1e5, out = corner})
    else
        corner:fill(value)
    end
end

local function by(fn, scalar)
    return function(array)
        mb.binary(array, fn, {scalar = scalar, out = array})
    end
end

local function ends_with(value)
    return function(array)
        last(array, value)
    end
end

-- 1 at the first element, and a value at the last one.
local function pair(value)
    return function(array)
        array:fill(0)
        local ranges = {}
        for i in ipairs(array.shape) do
            ranges[i] = {1, 1}
        end
        local first <close> = array:view(table.unpack(ranges))
        first:fill(1)
        last(array, value)
    end
end

-- ---- ways ----

-- Kinds: `poisson`, `gaussian` and `linear` methods of deconvolution, `kernel`: convolutions.
local WAYS <const> = {
    richardson_lucy = {"poisson", mb.deconv.richardson_lucy, {iterations = 3}, weights = true},
    reflected = {"poisson", mb.deconv.richardson_lucy, {iterations = 3, boundary = "reflect"}},
    circular = {"poisson", mb.deconv.richardson_lucy, {iterations = 3, boundary = "circular"},
        weights = true},
    biggs_andrews = {"poisson", mb.deconv.richardson_lucy, {iterations = 3,
        acceleration = "biggs_andrews"}, weights = true},
    total_variation = {"poisson", mb.deconv.richardson_lucy, {iterations = 3,
        total_variation = 0.01}, weights = true},
    unnormalized = {"poisson", mb.deconv.richardson_lucy, {iterations = 3, normalize = false}},
    gradient_consensus = {"poisson", mb.deconv.gradient_consensus, {iterations = 3},
        weights = true},
    exact = {"poisson", mb.tiled_deconv.richardson_lucy, {iterations = 2}, tiled = true},
    around = {"poisson", mb.tiled_deconv.richardson_lucy, {iterations = 2, boundary = "mirror"},
        tiled = true},
    blended = {"poisson", mb.tiled_deconv.richardson_lucy, {iterations = 2, mode = "blended"},
        tiled = true},
    landweber = {"gaussian", mb.deconv.landweber, {iterations = 3}, weights = true},
    signed = {"gaussian", mb.deconv.landweber, {iterations = 3, positive = false}, weights = true},
    wiener = {"linear", mb.deconv.wiener, {}},
    tikhonov = {"linear", mb.deconv.tikhonov, {}},
    plain_wiener = {"linear", mb.deconv.wiener, {normalize = false}},
    convolution = {"kernel", mb.convolution, {}},
    normalized = {"kernel", mb.convolution, {normalize = true}},
    correlate = {"kernel", mb.convolution.correlate, {boundary = "reflect"}},
    tiles = {"kernel", mb.tiles.convolve, {}, tiled = true},
    normalized_tiles = {"kernel", mb.tiles.convolve, {normalize = true}, tiled = true},
}

local function is_normalized(way)
    return way[1] ~= "kernel" and way[3].normalize ~= false or way[3].normalize == true
end

-- ---- values ----

-- Of each value: a change of a good array, and what comes of it by the kind of the way: a pattern of
-- the refusal, true for a finite result, "spread" for what the caller is told in the reference
-- (values that are not finite), or a function of the way.
local NOT_FINITE <const> = "^1 of %d+ values of the image[^:]* are not finite %(NaN or infinite"
local BAD_PSF <const> = "^1 of %d+ values of the PSF are not finite %(NaN or infinite"
local SMALL <const>, LARGE <const> = "too small for f32", "too large for f32"
local NO_LIGHT <const> = "^no value of the PSF is above 0; its sum must be positive"
local TOO_FAR <const> = "^50 %% of the PSF's |sum| is below 0, more than 25 %%"

-- What whole convolutions leave to the caller, and tiles see.
local function seen(pattern)
    return function(way)
        return way.tiled and pattern or "spread"
    end
end

local function divided(way)
    return is_normalized(way) and "it cannot be divided by such a sum: the option normalize = false"
        or true
end

local IMAGES <const> = {
    good = {function() end, poisson = true, gaussian = true, linear = true, kernel = true},
    ["below 0"] = {by("sub", 2), poisson = true, gaussian = true, linear = true, kernel = true},
    dark = {by("sub", 9), poisson = "^no value of the image is above 0", linear = true,
        kernel = true, gaussian = function(way)
            return way[3].positive == false or "^the result is 0 everywhere, and the image is not"
        end},
    NaN = {ends_with(0 / 0), poisson = NOT_FINITE, gaussian = NOT_FINITE, linear = NOT_FINITE,
        kernel = seen(NOT_FINITE)},
    infinite = {ends_with(HUGE), poisson = NOT_FINITE, gaussian = NOT_FINITE, linear = NOT_FINITE,
        kernel = seen(NOT_FINITE)},
    ["minus infinite"] = {ends_with(-HUGE), poisson = NOT_FINITE, gaussian = NOT_FINITE,
        linear = NOT_FINITE, kernel = seen(NOT_FINITE)},
    black = {by("mul", 0), poisson = true, gaussian = true, linear = true, kernel = true,
        zero = true},
    large = {by("mul", 6e37), poisson = LARGE, linear = LARGE, kernel = seen(LARGE),
        gaussian = "^the result has values that are not finite"},
    ["1e-38"] = {by("mul", 1e-38), poisson = SMALL, gaussian = SMALL, linear = SMALL,
        kernel = true},
}

local PSFS <const> = {
    ["a little below 0"] = {ends_with(-0.01), poisson = true, gaussian = true, linear = true,
        kernel = true, clips = true},
    ["all below 0"] = {by("mul", -1), poisson = NO_LIGHT, gaussian = NO_LIGHT, linear = divided,
        kernel = divided},
    NaN = {ends_with(0 / 0), poisson = BAD_PSF, gaussian = BAD_PSF, linear = BAD_PSF,
        kernel = BAD_PSF},
    infinite = {ends_with(HUGE), poisson = BAD_PSF, gaussian = BAD_PSF, linear = BAD_PSF,
        kernel = BAD_PSF},
    ["minus infinite"] = {ends_with(-HUGE), poisson = BAD_PSF, gaussian = BAD_PSF,
        linear = BAD_PSF, kernel = BAD_PSF},
    ["0 everywhere"] = {by("mul", 0), poisson = NO_LIGHT, gaussian = NO_LIGHT,
        linear = "^the PSF is 0 everywhere", kernel = "^the PSF is 0 everywhere"},
    ["sum 0"] = {pair(-1), poisson = TOO_FAR, gaussian = TOO_FAR, linear = divided,
        kernel = divided},
    ["a tiny sum"] = {pair(-1 + 1e-6), poisson = TOO_FAR, gaussian = TOO_FAR, linear = divided,
        kernel = divided},
    ["1e-38"] = {by("mul", 1e-38), poisson = SMALL, gaussian = SMALL, linear = SMALL,
        kernel = SMALL},
    ["1e30"] = {by("mul", 1e30), poisson = true, gaussian = true, linear = true, kernel = true,
        unnormalized = true},
}

local WEIGHTS <const> = {
    good = {function() end, true},
    ["a bad pixel"] = {ends_with(0), true},
    NaN = {ends_with(0 / 0), "^1 of %d+ values of weights are not finite"},
    infinite = {ends_with(HUGE), "^1 of %d+ values of weights are not finite"},
    ["below 0"] = {ends_with(-1), "^1 of %d+ values of weights are below 0"},
    ["0 everywhere"] = {by("mul", 0), "^weights is 0 everywhere"},
    ["1e-38"] = {by("mul", 1e-38), "^the values of weights are " .. SMALL},
}

-- ---- cases ----

local SHAPES <const> = {{{5, 17, 18}, {3, 5, 5}, {5, 9, 9}}, {{17, 18}, {5, 4}, {9, 9}}}

local function all_finite(array)
    local norm <close> = mb.reduce(array, "norm")
    return math.abs(norm:item()) < HUGE
end

-- Makes the arrays, changes one, and looks at what comes of it.
local function check(way, shapes, what, change, expected, row)
    local shape, kernel, tile = table.unpack(shapes)
    local image <close> = mb.random(shape, {seed = 1, low = 1, high = 5})
    local psf <close> = mb.psf.gaussian(kernel, 1)
    local weights <close> = what == "weights" and mb.ones(shape) or nil
    change(({image = image, psf = psf, weights = weights})[what])
    local options = {weights = weights or nil, tile = way.tiled and tile or nil}
    for name, value in pairs(way[3]) do
        options[name] = value
    end
    mb.collect()
    local live = mb.pool.stats().live
    local ok, result, report = pcall(way[2], image, psf, options)
    if type(expected) == "function" then
        expected = expected(way)
    end
    if type(expected) == "string" and expected ~= "spread" then
        assert.is_false(ok)
        assert.is_table(result, tostring(result))
        assert.equal("argument", result.code, result.message)
        assert.matches(expected, result.message)
        assert.is_nil(result.message:find "\n")
        mb.collect()
        assert.equal(live, mb.pool.stats().live)
        return
    end
    assert.is_true(ok, tostring(result))
    local _ <close> = result
    assert.equal(expected == true, all_finite(result))
    if row.zero then
        assert.equal(0, result:norm())
    end
    if row.clips and (way[1] == "poisson" or way[1] == "gaussian") then
        assert.is_true(report.clipped.psf > 0 and report.clipped.psf < 0.25)
    end
end

describe("the gate for values", function()
    for name, way in pairs(WAYS) do
        for what, rows in pairs {image = IMAGES, psf = PSFS, weights = WEIGHTS} do
            for value, row in pairs(rows) do
                local expected = row[way[1]]
                if what == "weights" then
                    expected = way.weights and row[2] or nil
                end
                if row.unnormalized and not is_normalized(way) and way[1] ~= "kernel" then
                    expected = nil -- what is divided by such a PSF is too small
                end
                if expected then
                    it(("of %s, %s: %s"):format(what, value, name), function()
                        -- Tiles are slow to plan: half of the cases.
                        for _, shapes in ipairs(way.tiled and {SHAPES[what == "image" and 1 or 2]}
                            or SHAPES) do
                            check(way, shapes, what, row[1], expected, row)
                        end
                    end)
                end
            end
        end
    end

    it("gives ways out that work: a factor, normalize, a level", function()
        local image <close> = mb.random({17, 18}, {seed = 1, low = 1, high = 5})
        local psf <close> = mb.psf.gaussian({5, 5}, 1)
        local small <close> = mb.binary(psf, "mul", {scalar = 1e-38})
        local faint <close> = mb.binary(image, "mul", {scalar = 1e-38})
        local edge <close> = mb.full({3, 3}, -1)
        edge:view(2, 2):fill(8)
        local far <close> = mb.binary(psf, "sub", {scalar = 0.03})
        for name, way in pairs(WAYS) do
            local options = {tile = way.tiled and {9, 9} or nil}
            for key, value in pairs(way[3]) do
                options[key] = value
            end
            -- "multiply the PSF by a number"
            local larger <close> = mb.binary(small, "mul", {scalar = 1e38})
            local result <close> = way[2](image, larger, options)
            assert.is_true(all_finite(result), name)
            -- "multiply the image by a number"
            local brighter <close> = mb.binary(faint, "mul", {scalar = 1e38})
            local same <close> = way[2](brighter, psf, options)
            assert.is_true(all_finite(same), name)
            if way[1] == "linear" or way[1] == "kernel" then
                -- "the option normalize = false takes it as it is"
                options.normalize = false
                local edges <close> = way[2](image, edge, options)
                assert.is_true(all_finite(edges), name)
            else
                -- "psf.subtract_background with a level below 0 adds it again"
                local ok, problem = pcall(way[2], image, far, options)
                assert.is_false(ok, name)
                assert.matches("more than 25 %%", problem.message)
                local again <close> = mb.psf.subtract_background(far, -0.03)
                local back <close> = way[2](image, again, options)
                assert.is_true(all_finite(back), name)
            end
        end
    end)

    it("names the option of the whole image where tiles have none, which works", function()
        local image <close> = mb.random({17, 18}, {seed = 1, low = 1, high = 5})
        local psf <close> = mb.psf.gaussian({5, 5}, 1)
        local weights <close> = mb.ones {17, 18}
        for _, mode in ipairs {"exact", "blended"} do
            for name, value in pairs {weights = weights, start = "image"} do
                local ok, problem = pcall(mb.tiled_deconv.richardson_lucy, image, psf,
                    {mode = mode, [name] = value})
                assert.is_false(ok)
                assert.equal(name, problem.arg)
                assert.equal(("unknown option '%s'; tiles do not have it: "
                    .. "mb.deconv.richardson_lucy does, which works on the whole image at once")
                    :format(name), problem.message)
                mb.deconv.richardson_lucy(image, psf, {[name] = value, iterations = 1}):release()
            end
        end
        for mode, options in pairs {exact = {margin = 3}, blended = {metrics = true}} do
            options.mode, options.iterations, options.tile = mode, 1, {9, 9}
            local ok, problem = pcall(mb.tiled_deconv.richardson_lucy, image, psf, options)
            assert.is_false(ok)
            local other = problem.message:match "leave it out, or give the option mode = '(%a+)'$"
            options.mode = other
            mb.tiled_deconv.richardson_lucy(image, psf, options):release()
        end
    end)
end)
