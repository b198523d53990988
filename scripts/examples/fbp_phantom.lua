-- Projects the Shepp-Logan phantom, reconstructs it and compares the result with the phantom.
-- usage: moonbeam scripts/examples/fbp_phantom.lua [SIZE] [PNG]
local mb = require "moonbeam"

local size, png = mb.usage(128)
local angles = mb.tomo.angles(size * 3 // 2)                        -- radians, over half a turn
local head = mb.phantom.scale(mb.phantom.shepp_logan, size / 2)     -- units of the half-width to px

local projections <close> = mb.ellipsoid_projections(head, angles, {0}, size)
local sinogram <close> = projections:permute(2, 1, 3)               -- (row, angle, column), a view
local volume <close> = mb.tomo.fbp(sinogram, angles, {filter = "ram-lak"})
local truth <close> = mb.ellipsoid_volume(head, {0}, {size, size})

local difference <close> = volume - truth
print(("size %d, %d angles, relative error %.3f"):format(size, #angles,
    difference:norm() / truth:norm()))
if png then
    mb.view.save(png, volume[1], {range = {0, 0.5}, overwrite = true})
end
