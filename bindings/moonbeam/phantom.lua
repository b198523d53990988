--- Analytic phantoms: sums of ellipsoids for `mb.ellipsoid_projections` and `mb.ellipsoid_volume`.
--
-- Tables list {density, a, b, c, x, y, z, phi in degrees} in units of the half-width; `phantom.scale` turns them into the flat
-- vector in pixels that the operators take.

local phantom = {}

--- The Shepp-Logan head in three dimensions with the higher contrast usual in tests: the ten ellipses of L. A. Shepp and
-- B. F. Logan (IEEE Trans. Nucl. Sci. 21, 1974, table 1), densities after P. A. Toft (The Radon Transform, 1996), extended
-- along the axis (A. C. Kak, M. Slaney, 1988, section 3.1).
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

--- Flat vector in pixels. Positions and half axes times `half_width`, heights times `half_height` (default the same);
-- densities times `density` (default 1: the table's value per pixel).
function phantom.scale(ellipsoids, half_width, half_height, density)
    half_height = half_height or half_width
    density = density or 1
    local flat = {}
    for _, e in ipairs(ellipsoids) do
        local values = {e[1] * density, e[2] * half_width, e[3] * half_width, e[4] * half_height, e[5] * half_width,
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

return phantom
