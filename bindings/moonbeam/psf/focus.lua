-- The light of an ideal lens about its focus, where it depends on the distance r from the axis and
-- the height z over the focal plane: `light` is {na, wavelength (in vacuum), index}, `radii` and
-- `heights` are ascending lists, and what comes back is a list by height of lists by radius.

local bessel = require "moonbeam.psf.bessel"

local focus = {}

--- Points and weights of the rule of Gauss and Legendre from 0 to `limit`, by Newton's steps.
function focus.gauss(count, limit)
    local points, weights = {}, {}
    for i = 1, (count + 1) // 2 do
        local x, slope = math.cos(math.pi * (i - 0.25) / (count + 0.5)), nil
        for _ = 1, 100 do
            local value, before = 1, 0
            for k = 1, count do
                value, before = ((2 * k - 1) * x * value - (k - 1) * before) / k, value
            end
            slope = count * (x * value - before) / (x * x - 1)
            local change = value / slope
            x = x - change
            if math.abs(change) < 1e-15 then
                break
            end
        end
        local weight = limit / ((1 - x * x) * slope * slope)
        points[i], points[count + 1 - i] = limit * (1 - x) / 2, limit * (1 + x) / 2
        weights[i], weights[count + 1 - i] = weight, weight
    end
    return points, weights
end

-- The sine and the cosine of the largest angle; the index is no less than NA.
local function aperture(light)
    local sine = light.na / light.index
    return sine, math.sqrt(math.max(0, 1 - sine * sine))
end

--- How many points an integral over the aperture takes: four for each turn of the integrand, of
-- which the rule needs more than pi, and some.
function focus.points(light, radius, height)
    local _, cosine = aperture(light)
    local path = light.na * radius + light.index * height * (1 - cosine)
    return 24 + math.ceil(4 * math.min(path / light.wavelength, 1e12))
end

-- |sum of line exp(i phase)|^2, and its two parts.
local function summed(line, cosines, sines)
    local re, im = 0, 0
    for m = 1, #line do
        local value = line[m]
        re, im = re + value * cosines[m], im + value * sines[m]
    end
    return re, im
end

-- Lists of cos and sin of what `phase` says of each point.
local function turned(points, phase)
    local cosines, sines = {}, {}
    for m, point in ipairs(points) do
        local angle = phase(point)
        cosines[m], sines[m] = math.cos(angle), math.sin(angle)
    end
    return cosines, sines
end

--- The scalar and paraxial focus of M. Born, E. Wolf, Principles of Optics, 8.8: |2 integral over
-- rho from 0 to 1 of J0(k NA r rho) exp(-i k NA^2 z rho^2 / (2 n)) rho drho|^2, 1 in the middle.
function focus.scalar(light, radii, heights)
    local k = 2 * math.pi / light.wavelength
    local rho, weights = focus.gauss(focus.points(light, radii[#radii], heights[#heights]), 1)
    local lines, planes = {}, {}
    for i, r in ipairs(radii) do
        lines[i] = {}
        for m, point in ipairs(rho) do
            lines[i][m] = 2 * weights[m] * point * bessel.j0(k * light.na * r * point)
        end
    end
    for j, z in ipairs(heights) do
        local cosines, sines = turned(rho, function(point)
            return k * (light.na * point) ^ 2 * z / (2 * light.index)
        end)
        planes[j] = {}
        for i, line in ipairs(lines) do
            local re, im = summed(line, cosines, sines)
            planes[j][i] = re * re + im * im
        end
    end
    return planes
end

-- The three integrands of a vectorial focus by radius, weights included.
local function vector_lines(light, radii, thetas, weights)
    local k, lines = 2 * math.pi * light.index / light.wavelength, {}
    for i, r in ipairs(radii) do
        local zero, one, two = {}, {}, {}
        for m, theta in ipairs(thetas) do
            local sine, cosine = math.sin(theta), math.cos(theta)
            local j0, j1, j2 = bessel.three(k * r * sine)
            local common = weights[m] * math.sqrt(cosine) * sine
            zero[m], one[m], two[m] = common * (1 + cosine) * j0, common * sine * j1,
                common * (1 - cosine) * j2
        end
        lines[i] = {zero, one, two}
    end
    return lines
end

--- The vectorial focus of an aplanatic lens (B. Richards, E. Wolf, Proc. R. Soc. A 253, 358, 1959).
-- With I0, I1, I2 = integral over theta from 0 to asin(NA / n) of sqrt(cos theta) sin theta
-- {(1 + cos theta) J0, sin theta J1, (1 - cos theta) J2}(k n r sin theta) exp(i k n z cos theta)
-- dtheta, light that is polarized along x has the intensity A + B cos 2 phi, A = |I0|^2 + 2 |I1|^2
-- + |I2|^2, B = 2 Re(I0 conj I2) + 2 |I1|^2. Returns the planes of A, which is that of light
-- without a polarization, and those of B.
function focus.vector(light, radii, heights)
    local k = 2 * math.pi * light.index / light.wavelength
    local sine, cosine = aperture(light)
    local thetas, weights = focus.gauss(focus.points(light, radii[#radii], heights[#heights]),
        math.atan(sine, cosine))
    local lines, even, turning = vector_lines(light, radii, thetas, weights), {}, {}
    for j, z in ipairs(heights) do
        local cosines, sines = turned(thetas, function(theta)
            return -2 * k * z * math.sin(theta / 2) ^ 2
        end)
        even[j], turning[j] = {}, {}
        for i, line in ipairs(lines) do
            local a, b = summed(line[1], cosines, sines)
            local c, d = summed(line[2], cosines, sines)
            local e, f = summed(line[3], cosines, sines)
            local middle = 2 * (c * c + d * d)
            even[j][i] = a * a + b * b + middle + e * e + f * f
            turning[j][i] = 2 * (a * e + b * f) + middle
        end
    end
    return even, turning
end

return focus
