--- Compares a reconstructed volume with the analytic phantom that its scan was simulated from.

local mb = require "moonbeam"
local cli = require "moonbeam.cli"

local options = cli.parse(arg, {
    usage = "compare_phantom.lua SCAN VOLUME [options]",
    summary = "Relative L2 error of a reconstruction against the phantom recorded in a simulated scan.",
    {"scan", positional = true, required = true, doc = "scan written by simulate.lua"},
    {"volume", positional = true, required = true, doc = "result of reconstruct.lua"},
    {"radius", value = "PART", type = cli.number, default = 0.9, doc = "compare inside this part of the half-width"},
})

local scan <close> = assert(mb.h5.open(options.scan))
if not scan:exists("/simulation/ellipsoids") then
    print(("error      not known: %s was not simulated, so there is no phantom to compare with"):format(options.scan))
    return
end
local result <close> = assert(mb.h5.open(options.volume))
local flat <close> = scan:read("/simulation/ellipsoids")
local volume <close> = result:read("/entry/data/data")
local nz, ny, nx = table.unpack(volume.shape)
local rows = math.tointeger(scan:dataset("/exchange/data").shape[2])
if nz ~= rows then
    print(("error      not compared: the volume has %d of the scan's %d rows"):format(nz, rows))
    return
end
local truth <close> = mb.ellipsoid_volume(flat:to_table(), mb.phantom.heights(nz), {ny, nx})
-- The volume may be per metre; the phantom is per pixel.
local pixel = result:attribute("/entry/data/data", "units") == "1/m" and result:attribute("/entry/data/data", "pixel_size") or 1
mb.binary(volume, "mul", {scalar = pixel, out = volume})
-- The disc: an ellipsoid of density 1 so flat that every slice cuts it at its equator.
local disc <close> = mb.ellipsoid_volume({1, options.radius * nx / 2, options.radius * nx / 2, 1e9, 0, 0, 0, 0}, {0}, {ny, nx},
    {subsamples = 1})
local difference <close> = volume - truth
mb.binary(difference, "mul", {b = disc, out = difference})
mb.binary(truth, "mul", {b = disc, out = truth})
print(("error      %.4f relative L2 against the analytic phantom inside %g of the radius"):format(
    difference:norm() / truth:norm(), options.radius))
