-- Blurs spheres, adds photon noise, and deconvolves the image by Richardson-Lucy.
-- usage: moonbeam scripts/examples/richardson_lucy.lua [ITERATIONS] [PNG]
local mb = require "moonbeam"

local iterations, png = mb.usage(30)
local truth <close> = mb.phantom.spheres({24, 96, 96}, {count = 12, background = 2, margin = 8})
local psf <close> = mb.psf.gaussian({13, 13, 13}, {2.5, 1.5, 1.5})
local blurred <close> = mb.convolution(truth, psf, {boundary = "replicate"})
local image <close> = mb.poisson(blurred, {seed = 1})   -- photon counts

local sharp <close>, report = mb.deconv.richardson_lucy(image, psf, {iterations = iterations,
    metrics = true, total_variation = 0.002})
local first, last = report.metrics[1], report.metrics[report.iterations]
print(("misfit %.3g -> %.3g in %d iterations"):format(first.divergence, last.divergence,
    report.iterations))
print(("error %.2f -> %.2f"):format(mb.metrics.rmse(image, truth), mb.metrics.rmse(sharp, truth)))
if png then
    mb.view.projections(png, sharp, {sz = 2, range = {0, 150}, overwrite = true})
end
