-- Reconstructs a scan of a whole turn whose axis is near the edge of the detector: the field of
-- view is almost twice as wide as the detector.
-- usage: moonbeam scripts/examples/half_acquisition.lua [PNG]
local mb = require "moonbeam"

local png = mb.usage()

local columns, center = 96, 80                          -- the detector, and the axis on it
local width = 2 * center                                -- the field of view in px
local angles = mb.tomo.angles(360, 2 * math.pi)
local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * width)

local projections <close> = mb.ellipsoid_projections(head, angles, {0}, columns, {center = center})
local sinogram <close> = projections:permute(2, 1, 3)
local volume <close> = mb.tomo.fbp(sinogram, angles, {center = center, half_acquisition = true})
local ny, nx = volume.shape[2], volume.shape[3]
local truth <close> = mb.ellipsoid_volume(head, {0}, {ny, nx})
print(("detector %d columns, slice %d x %d"):format(columns, ny, nx))
local difference <close> = volume - truth
print(("relative error %.3f"):format(difference:norm() / truth:norm()))
if png then
    mb.view.save(png, volume[1], {range = {0, 0.5}, overwrite = true})
end
