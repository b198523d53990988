-- Reconstructs a phantom from few angles, with noise, by direct and iterative methods side by side.
-- usage: moonbeam scripts/examples/few_angles.lua [SIZE] [ANGLES] [DEGREES] [PNG]
local mb = require "moonbeam"

local size, count, span, png = mb.usage(128, 40, 180)
local angles = mb.tomo.angles(count, math.rad(span))
local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * size, nil, 2 / size)
local projections <close> = mb.ellipsoid_projections(head, angles, {0}, size)
local sinogram <close> = projections:permute(2, 1, 3):copy()          -- (row, angle, column)
local noise <close> = mb.random(sinogram.shape, {seed = 1, low = -1, high = 1})
mb.binary(noise, "mul", {scalar = 0.02 * sinogram:max(), out = noise})
mb.binary(sinogram, "add", {b = noise, out = sinogram})
local truth <close> = mb.ellipsoid_volume(head, {0}, {size, size})

local sheet <close> = mb.zeros({size, 4 * size})
local function show(place, slices)
    local part <close> = sheet:view(mb.all, {(place - 1) * size + 1, place * size})
    mb.convert(slices[1], "f32", {out = part})
end
for place, method in ipairs {"fbp", "cgls", "sart", "fista"} do
    local options = ({fbp = {circle = 1}, cgls = {iterations = 10},
        sart = {iterations = 4}, fista = {iterations = 200, lambda = 0.1}})[method]
    local slices <close> = mb.tomo[method](sinogram, angles, options)
    local difference <close> = slices - truth
    print(("%-6s relative error %.3f"):format(method, difference:norm() / truth:norm()))
    show(place, slices)
end
if png then
    mb.view.save(png, sheet, {range = {0.2 / size, 0.8 / size}, overwrite = true})
end
