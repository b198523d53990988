-- Predicts the memory of a convolution, runs it, and compares the two figures.
-- usage: moonbeam scripts/examples/predict_convolution.lua [DEPTH HEIGHT WIDTH]
local mb = require "moonbeam"

local shape = {mb.usage(32, 128, 128)}

local function work(device)
    local image <close> = mb.phantom.spheres(shape, {device = device})
    local psf <close> = mb.psf.gaussian({17, 17, 17}, {3, 1.5, 1.5}, {device = device})
    mb.convolution(image, psf):release()
end

local device = mb.default_device()
local array = 4 * shape[1] * shape[2] * shape[3]
local predicted = mb.plan.peak(work, device).peak      -- takes no memory, computes nothing
local measured = mb.pool.peak(work, device)             -- runs the function
print(("image      %11d bytes"):format(array))
print(("predicted  %11d bytes, %.2f images"):format(predicted, predicted / array))
print(("measured   %11d bytes, difference %d"):format(measured, measured - predicted))
