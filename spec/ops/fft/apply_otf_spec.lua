local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local npy = require "moonbeam.npy"

-- Extents of the padded grid of a volume, and of its spectrum.
local function padded(shape)
    local grid, spectrum = { table.unpack(shape) }, { table.unpack(shape) }
    grid[#shape] = 2 * (shape[#shape] // 2 + 1)
    spectrum[#shape] = shape[#shape] // 2 + 1
    return grid, spectrum
end

-- By the three operators that it stands for.
local function by_steps(grid, otf, n, options)
    local spectrum <close> = grid:reinterpret("c64")
    mb.rfft(grid, { axes = grid.rank, in_place = true, n = n, out = spectrum })
    mb.complex_multiply(spectrum, otf, options)
    mb.irfft(spectrum, { axes = grid.rank, in_place = true, n = n, normalize = false, out = grid })
end

-- Samples without the room behind them.
local function samples(grid, n)
    local ranges = {}
    for i = 1, grid.rank do
        ranges[i] = i == grid.rank and { 1, n } or mb.all
    end
    local view <close> = grid:view(table.unpack(ranges))
    return view:copy()
end

-- Relative L2 difference of b from a.
local function distance(a, b)
    local d <close> = a - b
    local squares <close> = d * d
    local reference <close> = a * a
    return math.sqrt(squares:sum() / reference:sum())
end

helper.each_device(function(device, it_on)
    describe("apply_otf on " .. device, function()
        for _, shape in ipairs { { 6, 10, 12 }, { 5, 7, 9 }, { 9, 15 }, { 8, 16 }, { 21 } } do
            for _, conj in ipairs { false, true } do
                it_on(("is transform, product, transform back: %s%s"):format(table.concat(shape,
                    " x "), conj and
                    ", conjugate" or ""), function()
                    local extents, half = padded(shape)
                    local n = shape[#shape]
                    local grid <close> = mb.random(extents, { seed = 1, low = -1, device = device })
                    local otf <close> = mb.random(half, { dtype = "c64", seed = 2, low = -1,
                        device = device })
                    local other <close> = grid:copy()
                    by_steps(other, otf, n, { conj = conj, scale = 0.5 })
                    assert.equal(grid, mb.apply_otf(grid, otf, { n = n, conj = conj, scale = 0.5 }))
                    local expected <close> = samples(other, n)
                    local got <close> = samples(grid, n)
                    helper.assert_close(expected, got, 1e-6)
                end)
            end
        end

        -- Planes of all numbers that differ in the loops, grids with and without a frequency that is
        -- its own mirror, centers inside and outside of the PSF.
        for _, case in ipairs { { { 16, 12, 14 }, { 3, 5, 4 }, 1 }, { { 33, 7, 9 }, { 4, 3, 2 }, 2 },
            { { 16, 64, 128 }, { 3, 4, 5 }, 1 }, { { 64, 64, 128 }, { 15, 3, 3 }, 7 },
            { { 36, 9, 150 }, { 2, 3, 3 }, -3 }, { { 12, 6, 10 }, { 1, 3, 3 }, 0 },
            { { 128, 6, 10 }, { 31, 3, 3 }, 15 } } do
            local shape, kernel, center = table.unpack(case)
            it_on(("takes a transfer function in planes: %s, %d planes about %d"):format(
                table.concat(shape, " x "), kernel[1], center), function()
                local extents, half = padded(shape)
                local psf <close> = mb.random(kernel, { seed = 5, device = device })
                local options = { center = { center, 1.5, 1 } }
                local otf <close> = mb.otf(psf, shape, options)
                options.form = "planes"
                local planes <close> = mb.otf(psf, shape, options)
                assert.same({ 2 * math.max(center, kernel[1] - 1 - center) + 1, half[2], half[3] },
                    planes.shape)
                for _, how in ipairs { {}, { conj = true }, { both = true, scale = 0.01 },
                    { conj = true, both = true, scale = -0.01 } } do
                    how.n = shape[3]
                    local grid <close> = mb.random(extents, { seed = 6, low = -1,
                        device = device })
                    local other <close> = grid:copy()
                    mb.apply_otf(grid, otf, how)
                    mb.apply_otf(other, planes, how)
                    local expected <close> = samples(grid, shape[3])
                    local got <close> = samples(other, shape[3])
                    local off = distance(expected, got)
                    assert.is_true(off < 1e-6, ("relative L2 difference %g"):format(off))
                end
            end)
        end

        it_on("multiplies by both the transfer function and its conjugate", function()
            for _, shape in ipairs { { 5, 7, 9 }, { 16, 64, 128 }, { 9, 15 } } do
                local extents, half = padded(shape)
                local n, points = shape[#shape], 1
                for _, extent in ipairs(shape) do
                    points = points * extent
                end
                local grid <close> = mb.random(extents, { seed = 1, low = -1, device = device })
                local factor <close> = mb.random(extents, { seed = 2, low = -1, device = device })
                local otf <close> = factor:reinterpret("c64")
                mb.rfft(factor, { axes = #shape, in_place = true, n = n, out = otf })
                assert.same(half, otf.shape)
                local other <close> = grid:copy()
                mb.apply_otf(other, otf, { n = n, scale = 1 / points })
                mb.apply_otf(other, otf, { n = n, conj = true, scale = 1 / points })
                mb.apply_otf(grid, otf, { n = n, both = true, scale = 1 / points })
                local expected <close> = samples(other, n)
                local got <close> = samples(grid, n)
                assert.is_true(distance(expected, got) < 1e-6)
            end
        end)

        it_on("clears the room behind the samples", function()
            local grid <close> = mb.ones({ 3, 4, 8 }, { device = device })
            local otf <close> = mb.zeros({ 3, 4, 4 }, { dtype = "c64", device = device })
            grid:fill(7)
            mb.apply_otf(grid, otf, { n = 7 })
            assert.equal(0, grid:max())
            assert.equal(0, grid:min())
        end)

        it_on("shifts by the transfer function of a shifted impulse, and back by its conjugate",
            function()
            local shape = { 16, 64, 128 }
            local psf <close> = mb.array({ { { 1 } } }, { device = device })
            local otf <close> = mb.otf(psf, shape,
                { center = { -3, 5, -2 }, scale = 1 / (16 * 64 * 128) })
            local grid <close> = mb.zeros({ 16, 64, 130 }, { device = device })
            local voxel <close> = grid:view({ 2, 2 }, { 4, 4 }, { 100, 100 })
            voxel:fill(1)
            mb.apply_otf(grid, otf)
            assert.near(1, (grid:item(5, 63, 102)), 1e-6)
            assert.near(1, grid:sum(), 1e-3)
            mb.apply_otf(grid, otf, { conj = true })
            assert.near(1, (grid:item(2, 4, 100)), 1e-6)
        end)
    end)
end)

describe("apply_otf", function()
    it("says what does not fit", function()
        local grid <close> = mb.ones { 4, 6, 8 }
        local otf <close> = mb.zeros({ 4, 6, 4 }, { dtype = "c64" })
        local other <close> = mb.zeros({ 4, 5, 4 }, { dtype = "c64" })
        assert.matches("rows of n = 9 samples have 10 elements, not 8",
            (helper.failure(mb.apply_otf, grid, otf, { n = 9 })))
        assert.matches("the half spectrum of this grid is",
            (helper.failure(mb.apply_otf, grid, other)))
    end)

    it("says which planes it takes", function()
        local grid <close> = mb.ones { 40, 6, 8 }
        for _, planes in ipairs { 2, 10, 33, 39 } do
            local otf <close> = mb.zeros({ planes, 6, 4 }, { dtype = "c64" })
            assert.matches("the half spectrum of this grid is",
                (helper.failure(mb.apply_otf, grid, otf)))
        end
    end)

    -- Every length along z that the fused passes take, the three grids of the split passes, others,
    -- and grids of many columns, which are convolved along z with up to 17 planes.
    for _, case in ipairs { { { 16, 64, 128 }, 3 }, { { 32, 64, 128 }, 7 }, { { 64, 64, 128 }, 9 },
        { { 16, 64, 128 }, 15 }, { { 32, 64, 128 }, 31 }, { { 64, 64, 128 }, 31 },
        { { 128, 64, 128 }, 31 }, { { 256, 64, 128 }, 5 }, { { 512, 64, 128 }, 17 },
        { { 1024, 64, 128 }, 9 }, { { 1024, 64, 128 }, 31 }, { { 2048, 64, 128 }, 31 },
        { { 256, 256, 512 }, 31 }, { { 128, 512, 512 }, 9 }, { { 64, 1024, 512 }, 31 },
        { { 100, 63, 127 }, 25 }, { { 37, 96, 128 }, 1 }, { { 64, 1, 1 }, 9 },
        { { 16, 256, 256 }, 1 }, { { 16, 256, 256 }, 3 }, { { 16, 256, 256 }, 15 },
        { { 32, 512, 256 }, 5 }, { { 32, 256, 256 }, 7 }, { { 64, 256, 256 }, 9 },
        { { 128, 256, 256 }, 11 }, { { 64, 256, 512 }, 13 }, { { 32, 256, 256 }, 17 },
        { { 32, 256, 256 }, 19 } } do
        local shape, planes = table.unpack(case)
        helper.gpu_it(("agrees with the host in planes: %s, %d of them"):format(
            table.concat(shape, " x "), planes), function()
            local extents = padded(shape)
            local n, points = shape[3], shape[1] * shape[2] * shape[3]
            local psf <close> = mb.random({ planes, 3, 3 }, { seed = 7 })
            local there <close> = psf:to("cuda:0")
            local host <close> = mb.random(extents, { seed = 3, low = -1 })
            local grid <close> = host:to("cuda:0")
            local otf <close> = mb.otf(psf, shape, { scale = 1 / points, form = "planes" })
            local own
            local known = mb.op.estimate("otf", { psf = there },
                { size = shape, form = "planes" }, { device = "cuda:0" })
            assert.equal(known.peak, (mb.pool.peak(function()
                own = mb.otf(there, shape, { scale = 1 / points, form = "planes" })
            end, "cuda:0")))
            for _, options in ipairs { {}, { conj = true }, { both = true } } do
                options.n = n
                mb.apply_otf(host, otf, options)
                mb.apply_otf(grid, own, options)
                local back <close> = grid:to("host")
                local expected <close> = samples(host, n)
                local got <close> = samples(back, n)
                local off = distance(expected, got)
                assert.is_true(off < 1e-6, ("relative L2 difference %g"):format(off))
            end
            own:release()
        end)
    end

    -- Every length of every axis that the fused passes take, and grids beside them. The host is the
    -- reference: FFTW.
    local grids = { { 16, 64, 128 }, { 32, 128, 256 }, { 64, 64, 512 }, { 128, 128, 128 },
        { 256, 64, 128 }, { 512, 64, 128 },
        { 1024, 64, 128 }, { 2048, 64, 128 }, { 16, 256, 1024 }, { 16, 512, 128 },
        { 16, 1024, 2048 }, { 16, 2048, 128 },
        { 16, 64, 4096 }, { 16, 2048, 512 }, { 256, 256, 512 }, { 128, 512, 512 },
        { 64, 1024, 512 }, { 100, 256, 256 }, { 8, 64, 128 }, { 16, 96, 128 },
        { 17, 63, 127 }, { 16, 64, 129 } }
    for _, shape in ipairs(grids) do
        helper.gpu_it("agrees with the host: " .. table.concat(shape, " x "), function()
            local extents, half = padded(shape)
            local n = shape[3]
            local host <close> = mb.random(extents, { seed = 3, low = -1 })
            local grid <close> = host:to("cuda:0")
            -- The spectrum of a real factor: any transfer function is one, random numbers are not.
            local factor <close> = mb.random(extents, { seed = 4, low = -1 })
            local otf <close> = factor:reinterpret("c64")
            mb.rfft(factor, { axes = 3, in_place = true, n = n, out = otf })
            local there <close> = otf:to("cuda:0")
            for _, conj in ipairs { false, true } do
                local options = { n = n, conj = conj, scale = 1 / (shape[1] * shape[2] * shape[3]) }
                mb.apply_otf(host, otf, options)
                mb.apply_otf(grid, there, options)
                local back <close> = grid:to("host")
                local expected <close> = samples(host, n)
                local got <close> = samples(back, n)
                local off = distance(expected, got)
                assert.is_true(off < 1e-6, ("relative L2 difference %g"):format(off))
                local room <close> = back:view(mb.all, mb.all, { n + 1, extents[3] })
                local behind <close> = room:copy()
                assert.equal(0, behind:max())
                assert.equal(0, behind:min())
            end
            assert.equal(half[3], otf.shape[3])
        end)
    end

    helper.gpu_it("takes no work area for powers of two, and what its estimate says for all",
        function()
        for _, shape in ipairs { { 32, 64, 128 }, { 128, 512, 512 }, { 32, 60, 128 },
            { 32, 64, 126 } } do
            local extents, half = padded(shape)
            local grid <close> = mb.zeros(extents, { device = "cuda:0" })
            local otf <close> = mb.zeros(half, { dtype = "c64", device = "cuda:0" })
            local known = mb.op.estimate("apply_otf", { grid = grid, otf = otf }, {},
                { device = "cuda:0" })
            assert.equal(known.peak,
                (mb.pool.peak(function() mb.apply_otf(grid, otf) end, "cuda:0")))
            if shape[2] ~= 60 and shape[3] ~= 126 then
                assert.is_true(known.peak <= 512 * 8, known.peak .. " bytes")
            end
        end
    end)

    helper.gpu_it("has no other result where a GPU is taken for an older one", function()
        local folder, written = files.folder(), {}
        for i, capability in ipairs { 999, 80 } do
            local output, ok = files.run_script(folder, ([[
                local mb = require "moonbeam"
                local grid = mb.random({ 1024, 64, 130 }, { seed = 1, device = "cuda:0" })
                local otf = mb.random({ 1024, 64, 65 }, { seed = 2, dtype = "c64", device = "cuda:0" })
                mb.apply_otf(grid, otf, { scale = 1 / (1024 * 64 * 128) })
                require "moonbeam.npy".write("%s/%d.npy", grid)
            ]]):format(folder, i), "MOONBEAM_CUDA_CAPABILITY=" .. capability)
            assert.is_true(ok, output)
            written[i] = npy.read(("%s/%d.npy"):format(folder, i))
        end
        files.remove(folder)
        local expected <close> = samples(written[1], 128)
        local got <close> = samples(written[2], 128)
        assert.is_true(distance(expected, got) < 1e-6)
    end)
end)
