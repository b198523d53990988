--- Analytic phantoms: sums of ellipsoids for `mb.ellipsoid_projections` and `mb.ellipsoid_volume`.
--
-- Tables list {density, a, b, c, x, y, z, phi in degrees} in units of the half-width;
-- `phantom.scale` turns them into the flat vector in pixels that the operators take.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local whole_call = require "moonbeam.internal.whole"
local generator = require "moonbeam.internal.quantities.random_numbers"

local phantom = {}

--- The Shepp-Logan head in three dimensions with the higher contrast usual in tests: the ten
-- ellipses of L. A. Shepp and B. F. Logan (IEEE Trans. Nucl. Sci. 21, 1974, table 1), densities
-- after P. A. Toft (The Radon Transform, 1996), extended along the axis (A. C. Kak, M. Slaney,
-- 1988, section 3.1).
phantom.shepp_logan = {
    {1.0, 0.69, 0.92, 0.81, 0, 0, 0, 0},
    {-0.8, 0.6624, 0.874, 0.78, 0, -0.0184, 0, 0},
    {-0.2, 0.11, 0.31, 0.22, 0.22, 0, 0, -18},
    {-0.2, 0.16, 0.41, 0.28, -0.22, 0, 0, 18},
    {0.1, 0.21, 0.25, 0.41, 0, 0.35, -0.15, 0},
    {0.1, 0.046, 0.046, 0.05, 0, 0.1, 0.25, 0},
    {0.1, 0.046, 0.046, 0.05, 0, -0.1, 0.25, 0},
    {0.1, 0.046, 0.023, 0.05, -0.08, -0.605, 0, 0},
    {0.1, 0.023, 0.023, 0.02, 0, -0.606, 0, 0},
    {0.1, 0.023, 0.046, 0.02, 0.06, -0.605, 0, 0},
}

--- A single ball, for density checks: phantom.ball(density, radius [, x, y, z]).
function phantom.ball(density, radius, x, y, z)
    return {{density, radius, radius, radius, x or 0, y or 0, z or 0, 0}}
end

--- Flat vector in pixels. Positions and half axes times `half_width`, heights times `half_height`
-- (default the same); densities times `density` (default 1: the table's value per pixel).
function phantom.scale(ellipsoids, half_width, half_height, density)
    half_height = half_height or half_width
    density = density or 1
    local flat = {}
    for _, e in ipairs(ellipsoids) do
        arguments.list(e, "phantom.scale", "ellipsoids", "{density, half axes x, y, z, place x, "
            .. "y, z, angle}", 8)
        local values = {e[1] * density, e[2] * half_width, e[3] * half_width, e[4] * half_height,
            e[5] * half_width,
            e[6] * half_width, e[7] * half_height, math.rad(e[8])}
        table.move(values, 1, #values, #flat + 1, flat)
    end
    return flat
end

--- Heights of `rows` detector rows above the middle, row 1 on top.
function phantom.heights(rows)
    local heights = {}
    for row = 1, rows do
        heights[row] = (rows - 1) / 2 - (row - 1)
    end
    return heights
end

--- A volume with spheres at random places, voxels that an edge crosses in proportion.
--
-- Returns the volume, f32, of extents size = {nz, ny, nx}, and the spheres: a list of {density =,
-- radius =, height =, center = {z, y, x}}, centers 0-based.
-- Errors: argument, budget.
function phantom.spheres(size, options)
    arguments.entry({name = "size", kind = "extents"}, size, "phantom.spheres")
    arguments.list(size, "phantom.spheres", "size", "{nz, ny, nx}", 3)
    local function range(name, default)
        local value = options[name] or default
        value = type(value) == "number" and {value, value} or value
        arguments.list(value, "phantom.spheres", name, "{least, greatest} or one number", 2)
        if value[1] > value[2] then
            fail("argument", "phantom.spheres", name, "%s goes from %g to %g; give {least, "
                .. "greatest}, or one number", name, value[1], value[2])
        end
        return value
    end
    local nz, ny, nx = table.unpack(size)
    local narrow, margin = math.min(ny, nx), options.margin
    local radius, density = range("radius", {0.02 * narrow, 0.08 * narrow}), range("density")
    local flatten, subsamples = options.flatten, options.subsamples
    if radius[1] <= 0 then
        fail("argument", "phantom.spheres", "radius", "radius is %g; it must be above 0", radius[1])
    elseif 2 * margin > math.min(nz, narrow) - 1 then
        fail("argument", "phantom.spheres", "margin", "margin is %g; the volume leaves 0 to %g",
            margin, (math.min(nz, narrow) - 1) / 2)
    end
    local random = generator(options.seed)
    local function between(least, greatest)
        return least + (greatest - least) * random()
    end
    local list, flat = {}, {}
    for i = 1, options.count do
        local r = between(radius[1], radius[2])
        local s = {density = between(density[1], density[2]), radius = r, height = r * flatten,
            center = {between(margin, nz - 1 - margin), between(margin, ny - 1 - margin),
                between(margin, nx - 1 - margin)}}
        list[i] = s
        -- The operator's coordinates: from the middle, rows and slices upwards.
        table.move({s.density, r, r, s.height, s.center[3] - (nx - 1) / 2,
            (ny - 1) / 2 - s.center[2],
            (nz - 1) / 2 - s.center[1], 0}, 1, 8, #flat + 1, flat)
    end
    local volume = mb.ellipsoid_volume(flat, phantom.heights(nz), {ny, nx},
        {subsamples = subsamples, subslices = subsamples,
        device = options.device})
    local _ <close> = on_error(function() volume:release() end)
    if options.background ~= 0 then
        mb.binary(volume, "add", {scalar = options.background, out = volume})
    end
    return volume, list
end

return whole_call.module(phantom, "phantom", {
    ball = "density: number, radius: number, x: number?, y: number?, z: number?",
    scale = "ellipsoids: lists, half_width: number, half_height: number?, density: number?",
    heights = "rows: count",
    spheres = {"size: any", declared.options(
        {"count", "count", "the number of spheres", default = 40},
        {"radius", "any", "{least, greatest} or one number", unit = "px",
            usual = "2 and 8 % of the smaller of ny and nx"},
        {"flatten", "number", "height over width: below 1 if planes are further apart than pixels",
            above = 0, default = 1},
        {"density", "any", "{least, greatest} or one number; added where spheres overlap",
            default = 100},
        {"margin", "number", "how far centers stay from the faces; 0: some spheres are cut",
            unit = "px", min = 0, default = 0},
        {"background", "number", "added everywhere", default = 0},
        {"seed", "count", "spheres of one seed are the same", default = 1},
        {"subsamples", "count", "points per voxel edge", default = 4},
        {"device", "device", "where the volume is made", usual = "the default device"})},
})
