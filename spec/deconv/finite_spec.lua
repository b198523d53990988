-- NaN and infinities in images: an error that says how many there are and where, from every way to
-- convolve or deconvolve that would spread them, and nothing left behind.

local mb = require "moonbeam"

describe("an image with values that are not finite", function()
    local image, psf

    before_each(function()
        image = mb.random({6, 20, 20}, {seed = 1})
        psf = mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
    end)

    after_each(function()
        image:release()
        psf:release()
    end)

    -- The message of fn, which raises and leaves nothing.
    local function message(fn)
        mb.collect()
        local live = mb.pool.stats().live
        local ok, problem = pcall(fn)
        assert.is_false(ok)
        assert.equal("argument", problem.code)
        mb.collect()
        assert.equal(live, mb.pool.stats().live)
        return problem.message
    end

    local METHODS = {"richardson_lucy", "gradient_consensus", "landweber", "wiener", "tikhonov"}

    for name, factor in pairs {NaN = 0 / 0, infinity = 1e38, ["minus infinity"] = -1e38} do
        it("is refused by every method: " .. name, function()
            local part <close> = image:view(4, 7, {3, 4})
            part:fill(factor ~= factor and factor or 1e38)
            if factor == factor then
                mb.binary(part, "mul", {scalar = factor, out = part}) -- fill takes no infinity
            end
            for _, method in ipairs(METHODS) do
                assert.matches("2 of 2400 values of the image are not finite (NaN or infinite; the first in plane 4)",
                    message(function()
                        mb.deconv[method](image, psf)
                    end), 1, true)
            end
        end)
    end

    it("is refused wherever the value is, of one axis and of two as well", function()
        for _, at in ipairs {1, 200, 400} do
            local flat <close> = mb.zeros({400})
            flat:view({at, at}):fill(0 / 0)
            local plane <close> = flat:reshape(20, 20)
            local spread <close> = psf:view(2, mb.all, mb.all)
            local line <close> = spread:view(3, mb.all)
            assert.matches("1 of 400 values of the image are not finite (NaN or infinite)",
                message(function()
                mb.deconv.wiener(plane, spread)
            end), 1, true)
            assert.matches("1 of 400 values", message(function()
                mb.deconv.tikhonov(flat, line, {normalize = false})
            end), 1, true)
        end
    end)

    it("is refused by tiles, which say where their block begins", function()
        image:view(4, 7, {15, 15}):fill(0 / 0)
        assert.matches("1 of %d+ values of the image's block from %(0, 0, %d+%) on are not finite",
            message(function()
            mb.tiles.convolve(image, psf, {tile = {6, 20, 10}})
        end))
        assert.matches("1 of %d+ values of the image's block from %(3, 0, 13%) on",
            message(function()
            mb.tiled_deconv.richardson_lucy(image, psf, {tile = {6, 20, 10}, iterations = 1})
        end))
    end)

    it("but not one with huge values, of which it is said that they are", function()
        image:fill(3e38)
        assert.matches("the values of the image are finite but too large for f32",
            message(function()
            mb.deconv.wiener(image, psf)
        end), 1, true)
    end)

    it("is refused in a PSF of linear filters, and so are PSFs and results of zeros", function()
        for _, method in ipairs {"wiener", "tikhonov"} do
            for _, normalize in ipairs {true, false} do
                local bad <close> = psf:copy()
                bad:view(1, {1, 1}, {1, 1}):fill(0 / 0)
                assert.matches("1 of %d+ values of the PSF are not finite", message(function()
                    mb.deconv[method](image, bad, {normalize = normalize})
                end))
            end
            local none <close> = mb.full(psf.shape, 0)
            assert.matches("the PSF is 0 everywhere", message(function()
                mb.deconv[method](image, none, {normalize = false})
            end), 1, true)
            -- Each value of the estimate is below what f32 can hold.
            local faint <close> = mb.full(image.shape, 1e-30)
            assert.matches("the result is 0 everywhere, and the image is not", message(function()
                mb.deconv[method](faint, psf, {lambda = 1e30,
                    operator = method == "tikhonov" and "identity" or nil})
            end), 1, true)
        end
    end)

    it("nor an image of zeros, nor values below 0", function()
        for _, method in ipairs {"wiener", "tikhonov"} do
            local zeros <close> = mb.full(image.shape, 0)
            local below <close> = mb.full(image.shape, -3)
            local same <close> = mb.deconv[method](zeros, psf)
            local signed <close> = mb.deconv[method](below, psf)
            assert.equal(0, same:item(2, 3, 4))
            assert.near(-3, signed:item(2, 3, 4), 0.1)
        end
    end)

    it("nor one that is finite, which costs no memory beyond what is planned", function()
        for _, method in ipairs {"wiener", "tikhonov"} do
            local function work()
                local result <close> = mb.deconv[method](image, psf)
                return result.bytes
            end
            local planned, measured = mb.dry_run(work), mb.ledger(work)
            assert.same({}, planned:diff(measured))
            assert.is_true(measured.peak > image.bytes)
        end
    end)
end)
