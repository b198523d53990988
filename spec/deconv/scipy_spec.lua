-- Convolution, deconvolution and metrics beside SciPy and scikit-image:
-- spec/fixtures/scipy_reference.py.
local mb = require "moonbeam"
local helper = require "spec.helper"
local inputs = require "spec.fixtures.inputs"
local convolution = require "spec.fixtures.scipy_convolution"
local reference = require "spec.fixtures.scipy_deconvolution"

local function name_of(case)
    return ("%s * %s"):format(table.concat(case.shape, "x"), table.concat(case.kernel, "x"))
end

-- The square of `inputs`, sum 1: positive, no symmetry.
local function psf_of(kernel, seed, power, device)
    local h <close> = inputs.array(kernel, seed, device)
    local raised <close> = h ^ power
    return mb.psf.normalize(raised)
end

helper.each_device(function(device, test)
    local where = " on " .. device:match("^%a+")
    describe("beside SciPy" .. where, function()
        for _, case in ipairs(convolution.convolve) do
            test(("convolution is scipy.signal.fftconvolve: %s, %s"):format(name_of(case),
                case.mode), function()
                local a <close> = inputs.array(case.shape, 3, device)
                local h <close> = inputs.array(case.kernel, 4, device)
                local result <close> = mb.convolution(a, h, { mode = case.mode })
                helper.assert_close(case.result, result, 1e-5)
            end)
        end
        for _, case in ipairs(convolution.correlate) do
            test(("correlate is scipy.signal.correlate: %s, %s"):format(name_of(case), case.mode),
                function()
                local a <close> = inputs.array(case.shape, 3, device)
                local h <close> = inputs.array(case.kernel, 4, device)
                local result <close> = mb.convolution.correlate(a, h,
                    { mode = case.mode, center = "fft" })
                helper.assert_close(case.result, result, 1e-5)
            end)
        end
        for _, case in ipairs(convolution.ndimage) do
            test(("convolution is scipy.ndimage.convolve: %s, %s"):format(name_of(case),
                case.boundary), function()
                local a <close> = inputs.array(case.shape, 3, device)
                local h <close> = inputs.array(case.kernel, 4, device)
                local result <close> = mb.convolution(a, h,
                    { boundary = case.boundary, center = "fft" })
                helper.assert_close(case.result, result, 1e-5)
            end)
        end

        -- scikit-image starts from 0.5 and convolves in mode same: beyond the edges are zeros,
        -- which count as measured, and nothing is normalized. That is the circular iteration on the
        -- image in a frame of zeros that stay zero.
        for _, case in ipairs(reference.richardson_lucy) do
            test("richardson_lucy is skimage's after 5 iterations: " .. name_of(case), function()
                local image <close> = inputs.array(case.shape, 9, device)
                local brighter <close> = image + 0.5
                local h <close> = psf_of(case.kernel, 10, 2, device)
                local frame, ranges = {}, {}
                for i, k in ipairs(case.kernel) do
                    frame[i], ranges[i] = k - 1, { 1, case.shape[i] }
                end
                local framed <close> = mb.pad(brighter, { after = frame })
                local half <close> = mb.full(case.shape, 0.5, { device = device })
                local start <close> = mb.pad(half, { after = frame })
                local x <close> = mb.deconv.richardson_lucy(framed, h,
                    { iterations = 5, start = start, boundary = "circular" })
                local inside <close> = x:view(table.unpack(ranges))
                helper.assert_close(case.result, inside, 1e-4)
            end)
        end

        for _, case in ipairs(reference.wiener) do
            test("tikhonov is skimage.restoration.wiener with its Laplacian", function()
                local image <close> = inputs.array(case.shape, 11, device)
                local brighter <close> = image + 0.5
                local h <close> = psf_of(case.kernel, 12, 1, device)
                local x <close> = mb.deconv.tikhonov(brighter, h,
                    { lambda = case.balance, boundary = "circular" })
                helper.assert_close(case.result, x, 1e-4)
            end)
        end

        for _, case in ipairs(reference.metrics) do
            test("metrics are skimage.metrics': " .. table.concat(case.shape, "x"), function()
                local a <close> = inputs.array(case.shape, 7, device)
                local noise <close> = inputs.array(case.shape, 8, device)
                local fifth <close> = noise * 0.2
                local b <close> = a + fifth
                assert.near(case.rmse, mb.metrics.rmse(b, a), 1e-6)
                assert.near(case.psnr, mb.metrics.psnr(b, a), 1e-4)
                assert.near(case.ssim, mb.metrics.ssim(b, a), 1e-5)
                assert.near(case.ncc, mb.metrics.ncc(b, a), 1e-6)
                assert.near(case.i_divergence, mb.metrics.i_divergence(b, a),
                    1e-5 * case.i_divergence)
            end)
        end
    end)
end)

describe("psf.gibson_lanni", function()
    for _, case in ipairs(reference.gibson_lanni) do
        it("is the integral of the layered model, by adaptive quadrature", function()
            local h <close> = mb.psf.gibson_lanni(case.size,
                { na = case.na, wavelength = case.wavelength, pixel = case.pixel,
                step = case.step, index = case.n, index_design = case.n0,
                    working_distance = case.t0, index_sample = case.ns,
                depth = case.depth, index_glass = case.ng, index_glass_design = case.ng0,
                    glass = case.tg, glass_design = case.tg0, area = false })
            local peak, i = h:max(), 0
            local middle = (case.size[2] + 1) // 2
            local got = {}
            for z = 1, case.size[1] do
                for x = 0, case.size[3] // 2 do
                    i = i + 1
                    got[i] = h:item(z, middle, middle + x) / peak
                end
            end
            helper.assert_close(case.result, got, 1e-4)
        end)
    end
end)
