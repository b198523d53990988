--- Compares a reconstructed volume with the analytic phantom that its scan was simulated from.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"

local options = cli.parse(arg, {
    usage = "scripts/compare_phantom.lua SCAN VOLUME [options]",
    summary = "Relative L2 error of a reconstruction against the phantom of a simulated scan, and "
        .. "their correlation.",
    {"scan", positional = true, required = true, doc = "scan written by moonbeam simulate"},
    {"volume", positional = true, required = true, doc = "result of moonbeam reconstruct"},
    {"radius", value = "PART", type = cli.between(0), default = 0.9,
        doc = "compare inside this part of the half-width"},
})

local scan <close> = cli.must(mb.h5.open(options.scan))
if not scan:exists("/simulation/ellipsoids") then
    cli.print(("error      not known: %s was not simulated, so there is no phantom to compare "
        .. "with"):format(options.scan))
    return
end
local result <close> = cli.must(mb.h5.open(options.volume))
if not result:exists("/entry/data/data") then
    local form = "%s has no volume (/entry/data/data); it is not a result of moonbeam reconstruct"
    cli.stop(form:format(options.volume))
end
local flat <close> = scan:read("/simulation/ellipsoids")
local volume_path = "/entry/data/data"
local stored <close> = result:read(volume_path)
-- Integers and half floats stand for stored * scale_factor + add_offset.
local volume <close> = mb.convert(stored, "f32",
    {scale = result:attribute(volume_path, "scale_factor") or 1,
    offset = result:attribute(volume_path, "add_offset") or 0})
local nz, ny, nx = table.unpack(volume.shape)
do
    local simulated <close> = cli.must(mb.scan.open(options.scan))
    if nz ~= simulated.rows then
        cli.print(("error      not compared: the volume has %d of the scan's %d rows"):format(nz,
            simulated.rows))
        return
    end
end
-- A dry run has no values: any ellipsoids, as many.
local any = {}
for i = 1, flat.elements do
    any[i] = (i - 1) % 8 < 4 and 1 or 0
end
local truth <close> = mb.ellipsoid_volume(mb.bound(any, flat.to_table, flat),
    mb.phantom.heights(nz), {ny, nx})
-- The volume may be per meter; the phantom is per pixel.
local pixel = result:attribute("/entry/data/data", "units") == "1/m"
    and result:attribute("/entry/data/data", "pixel_size") or 1
mb.binary(volume, "mul", {scalar = pixel, out = volume})
-- The disc: an ellipsoid of density 1 so flat that every slice cuts it at its equator.
local disc <close> = mb.ellipsoid_volume({1, options.radius * nx / 2, options.radius * nx / 2, 1e9,
    0, 0, 0, 0}, {0}, {ny, nx},
    {subsamples = 1})
local difference <close> = volume - truth
mb.binary(difference, "mul", {b = disc, out = difference})
mb.binary(truth, "mul", {b = disc, out = truth})
local form = "error      %.4f relative L2 against the analytic phantom inside %g of the radius"
cli.print(form:format(
    mb.bound(1, difference.norm, difference) / mb.bound(1, truth.norm, truth), options.radius))

-- Subtracts the mean inside of the disc; what is outside stays 0.
local function center(values)
    mb.binary(values, "mul", {b = disc, out = values})
    local mean = mb.bound(1, values.sum, values) / (nz * mb.bound(1, disc.sum, disc))
    mb.binary(values, "sub", {scalar = mean, out = values})
    mb.binary(values, "mul", {b = disc, out = values})
    return mb.bound(1, values.norm, values)
end
local scale = center(volume) * center(truth)
mb.binary(volume, "mul", {b = truth, out = volume})
cli.print(("correlation %.4f, whatever the unit of the values"):format(
    scale > 0 and mb.bound(1, volume.sum, volume) / scale or 0))
