local mb = require "moonbeam"
local helper = require "spec.helper"

-- By definition, for a list: sum over j of h[j] exp(-2 pi i k (j - c) / n), real and imaginary
-- parts.
local function naive(h, n, c, scale)
    local result = {}
    for k = 0, n // 2 do
        local re, im = 0, 0
        for j, value in ipairs(h) do
            local angle = -2 * math.pi * k * (j - 1 - c) / n
            re = re + scale * value * math.cos(angle)
            im = im + scale * value * math.sin(angle)
        end
        result[#result + 1] = { re, 2 * k == n and c % 1 ~= 0 and 0 or im }
    end
    return result
end

describe("otf", function()
    local psf = { 1, 5, 3, 0.5, 2 }

    for _, n in ipairs { 3, 5, 8, 9, 16 } do
        for _, center in ipairs { 0, 2, 4 } do
            it(("is the definition on %d points about %d"):format(n, center), function()
                local h <close> = mb.array(psf)
                local otf <close> = mb.otf(h, { n }, { center = { center }, scale = 0.5 })
                helper.assert_close(naive(psf, n, center, 0.5), otf, 2e-6)
            end)
        end
    end

    it("is rfft of the PSF scattered by wrapped index", function()
        local h <close> = mb.random({ 3, 4, 5 }, { seed = 1 })
        local grid <close> = mb.zeros { 6, 7, 9 }
        for z = 0, 2 do
            for y = 0, 3 do
                for x = 0, 4 do
                    local voxel <close> = grid:view({ (z - 1) % 6 + 1, (z - 1) % 6 + 1 },
                        { (y - 1) % 7 + 1, (y - 1) % 7 + 1 },
                        { (x - 2) % 9 + 1, (x - 2) % 9 + 1 })
                    voxel:fill((h:item(z + 1, y + 1, x + 1)))
                end
            end
        end
        local expected <close> = mb.rfft(grid, { axes = 3 })
        local otf <close> = mb.otf(h, { 6, 7, 9 })
        helper.assert_close(expected, otf, 1e-6)
    end)

    it("stops at the planes that the PSF reaches", function()
        for _, case in ipairs { { { 3, 4, 5 }, { 1, 1, 2 }, 3 }, { { 3, 4, 5 }, { 0, 1.25, 2 }, 5 },
            { { 2, 3, 3 }, { -1, 1, 1 }, 5 }, { { 1, 2, 2 }, { 2, 0, 0 }, 5 } } do
            local kernel, center, planes = table.unpack(case)
            local h <close> = mb.random(kernel, { seed = 3 })
            local otf <close> = mb.otf(h, { 20, 6, 8 }, { center = center, scale = 2, form =
                "planes" })
            assert.same({ planes, 6, 5 }, otf.shape)
            for plane = 1, planes do
                local z = plane - 1 - planes // 2 + center[1] -- of h, 0-based
                local got <close> = otf:view(plane)
                if z >= 0 and z < kernel[1] then
                    local section <close> = h:view(z + 1)
                    local expected <close> = mb.otf(section, { 6, 8 }, { scale = 2,
                        center = { center[2], center[3] } })
                    helper.assert_close(expected, got, 1e-6)
                else
                    local zeros <close> = mb.zeros({ 6, 5 }, { dtype = "c64" })
                    helper.assert_close(zeros, got, 0)
                end
            end
        end
    end)

    it("chooses planes where they are few", function()
        local function planes(kernel, size, options)
            local h <close> = mb.ones(kernel)
            options = options or {}
            options.form = "auto"
            local otf <close> = mb.otf(h, size, options)
            return otf.shape[1]
        end
        assert.equal(5, planes({ 5, 3, 3 }, { 6, 4, 4 }))
        assert.equal(5, planes({ 6, 3, 3 }, { 5, 4, 4 }))
        assert.equal(31, planes({ 31, 3, 3 }, { 256, 4, 4 }))
        assert.equal(31, planes({ 30, 3, 3 }, { 256, 4, 4 }))
        assert.equal(256, planes({ 32, 3, 3 }, { 256, 4, 4 }))
        assert.equal(64, planes({ 5, 3, 3 }, { 64, 4, 4 }, { center = { 1.5, 1, 1 } }))
        assert.equal(7, planes({ 5, 3, 3 }, { 64, 4, 4 }, { center = { 1, 1.5, 1 } }))
        assert.equal(64, planes({ 3, 3 }, { 64, 4 }))
        assert.equal(9, planes({ 5, 3, 3 }, { 64, 4, 4 }, { reach = 4 }))
        assert.equal(5, planes({ 5, 3, 3 }, { 64, 4, 4 }, { reach = 1 }))
        assert.equal(64, planes({ 5, 3, 3 }, { 64, 4, 4 }, { reach = 16 }))
    end)

    it("explains what cannot be in planes", function()
        local flat <close> = mb.ones { 3, 3 }
        local h <close> = mb.ones { 9, 3, 3 }
        assert.matches("is for three axes, psf has 2",
            (helper.failure(mb.otf, flat, { 8, 8 }, { form = "planes" })))
        assert.matches("needs a center on a plane of psf, not at 1.5",
            (helper.failure(mb.otf, h, { 64, 8, 8 }, { center = { 1.5, 1, 1 }, form = "planes" })))
        assert.matches("fewer than the grid's 8; this PSF reaches 9",
            (helper.failure(mb.otf, h, { 8, 8, 8 }, { form = "planes" })))
    end)

    it("shifts by fractions: a Gaussian about its true peak has no phase", function()
        local h <close> = mb.psf_gaussian({ 24, 26 }, 2, { center = { 11.5, 12.25 } })
        local otf <close> = mb.otf(h, { 32, 40 }, { center = { 11.5, 12.25 } })
        local largest = 0
        for _, row in ipairs(otf:to_table()) do
            for _, value in ipairs(row) do
                largest = math.max(largest, math.abs(value[2]))
            end
        end
        assert.is_true(largest < 2e-6, ("imaginary part %g"):format(largest))
        assert.near(1, (otf:item(1, 1)), 1e-6)
    end)

    it("makes no copies: its peak is its result", function()
        local h <close> = mb.psf_gaussian({ 16, 16, 16 }, 2)
        local known = mb.op.estimate("otf", { psf = h }, { size = { 32, 32, 32 } })
        assert.equal(8 * 32 * 32 * 17, known.result)
        assert.equal(0, known.scratch)
    end)

    it("explains wrong sizes and centers", function()
        local h <close> = mb.ones { 3, 3 }
        assert.matches("2 axes", (helper.failure(mb.otf, h, { 4 })))
        assert.matches("whole", (helper.failure(mb.otf, h, { 4, 4.5 })))
        assert.matches("center", (helper.failure(mb.otf, h, { 4, 4 }, { center = { 1 } })))
    end)

    it("refuses at once an axis that no library can plan", function()
        local h <close> = mb.ones {3}
        assert.matches("2147483647 elements; 268435456 are the most",
            (helper.failure(mb.otf, h, {2147483647})))
    end)

    -- Few planes: only they are filled and transformed, the pass along z makes the others.
    for _, case in ipairs { { 16, 4, 1 }, { 16, 3, 2.5 }, { 32, 8, 0 }, { 64, 16, 20 },
        { 128, 1, 0 }, { 256, 5, -3 },
        { 512, 7, 3.25 }, { 1024, 9, 4 }, { 2048, 3, 1 }, { 64, 17, 8 }, { 48, 4, 1 } } do
        local n, k, center = table.unpack(case)
        helper.gpu_it(("agrees with the host: %d planes of %d, center %g"):format(k, n, center),
            function()
            local h <close> = mb.random({ k, 5, 4 }, { seed = n })
            local there <close> = h:to("cuda:0")
            local size, options = { n, 12, 14 }, { center = { center, 2, 1.5 }, scale = 0.5 }
            local expected <close> = mb.otf(h, size, options)
            local known = mb.op.estimate("otf", { psf = there },
                { size = size, center = options.center }, { device = "cuda:0" })
            local otf
            assert.equal(known.peak,
                (mb.pool.peak(function() otf = mb.otf(there, size, options) end, "cuda:0")))
            local back <close> = otf:to("host")
            otf:release()
            helper.assert_close(expected, back, 1e-6)
        end)
    end
end)
