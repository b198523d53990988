-- The light of a lens about its focus, where it depends on the distance r from the axis and the
-- height z over the focal plane. A lens is {wavelength, na, even (planes at z and -z are equal),
-- power (the integral of its intensity over any plane), turns(r, z) (of its integrand),
-- rule(count)}. A rule has `count` points of the integral over the aperture: lines(r), one or three
-- lists of what the points send to r, and phases(z), the lists of the cosines and the sines of
-- their phases.

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

-- Lists of cos and sin of what `phase` says of each point.
local function turned(points, phase)
    local cosines, sines = {}, {}
    for m, point in ipairs(points) do
        local angle = phase(point)
        cosines[m], sines[m] = math.cos(angle), math.sin(angle)
    end
    return cosines, sines
end

-- A lens of scalar waves: |integral over rho from 0 to `limit` of J0(k NA r rho) exp(i k path(rho,
-- z)) rho drho|^2. `smooth`: paths are polynomials. Others end in a square root where NA exceeds an
-- index; in u, rho = limit sin(pi u / 2), they are smooth.
local function scalar(light, limit, path, smooth, turns)
    local k = 2 * math.pi / light.wavelength
    local lens = {wavelength = light.wavelength, na = light.na, even = smooth, turns = turns,
        power = math.pi * limit * limit / (k * light.na) ^ 2}
    function lens.rule(count)
        local rho, weights = focus.gauss(count, 1)
        for m, u in ipairs(rho) do
            local angle = math.pi / 2 * u
            rho[m] = limit * (smooth and u or math.sin(angle))
            weights[m] = weights[m] * limit * rho[m]
                * (smooth and 1 or math.pi / 2 * math.cos(angle))
        end
        return {lines = function(r)
            local line, reach = {}, k * light.na * r
            for m, point in ipairs(rho) do
                line[m] = weights[m] * bessel.j0(reach * point)
            end
            return line
        end, phases = function(z)
            return turned(rho, function(point) return k * path(point, z) end)
        end}
    end
    return lens
end

--- The scalar and paraxial focus of M. Born, E. Wolf, Principles of Optics, 8.8: |integral over rho
-- from 0 to 1 of J0(k NA r rho) exp(-i k NA^2 z rho^2 / (2 n)) rho drho|^2. light: {na, wavelength
-- (in vacuum), index}.
function focus.scalar(light)
    local bend = light.na * light.na / (2 * light.index)
    return scalar(light, 1, function(rho, z)
        return -bend * rho * rho * z
    end, true, function(r, z)
        return (light.na * r + bend * math.abs(z)) / light.wavelength
    end)
end

--- The scalar focus through layers: `path` says of rho, up to `limit`, and of z the length of the
-- path, which grows evenly with z.
function focus.layers(light, limit, path)
    return scalar(light, limit, path, false, function(r, z)
        local length = 0
        for m = 1, 64 do
            length = length + math.abs(path(limit * m / 64, z) - path(limit * (m - 1) / 64, z))
        end
        -- Along a sine the points lie up to pi / 2 times as far from each other.
        return math.pi / 2 * (length + light.na * r) / light.wavelength
    end)
end

--- The vectorial focus of an aplanatic lens (B. Richards, E. Wolf, Proc. R. Soc. A 253, 358, 1959).
-- With I0, I1, I2 = integral over theta from 0 to asin(NA / n) of sqrt(cos theta) sin theta
-- {(1 + cos theta) J0, sin theta J1, (1 - cos theta) J2}(k n r sin theta) exp(i k n z cos theta)
-- dtheta, light that is polarized along x has the intensity A + B cos 2 phi, A = |I0|^2 + 2 |I1|^2
-- + |I2|^2, B = 2 Re(I0 conj I2) + 2 |I1|^2; A is that of light without a polarization.
function focus.vector(light)
    local k = 2 * math.pi * light.index / light.wavelength
    local sine = light.na / light.index
    local cosine = math.sqrt(math.max(0, 1 - sine * sine))
    local lens = {wavelength = light.wavelength, na = light.na, even = true,
        power = 8 * math.pi * sine * sine / (1 + cosine) / (k * k)}
    function lens.turns(r, z)
        return (light.na * r + light.index * math.abs(z) * (1 - cosine)) / light.wavelength
    end
    function lens.rule(count)
        local thetas, weights = focus.gauss(count, math.atan(sine, cosine))
        return {lines = function(r)
            local zero, one, two = {}, {}, {}
            for m, theta in ipairs(thetas) do
                local s, c = math.sin(theta), math.cos(theta)
                local j0, j1, j2 = bessel.three(k * r * s)
                local common = weights[m] * math.sqrt(c) * s
                zero[m], one[m], two[m] = common * (1 + c) * j0, common * s * j1,
                    common * (1 - c) * j2
            end
            return zero, one, two
        end, phases = function(z)
            return turned(thetas, function(theta)
                return -2 * k * z * math.sin(theta / 2) ^ 2
            end)
        end}
    end
    return lens
end

--- How many points an integral over the aperture takes: four for each turn of the integrand, of
-- which the rule needs more than pi, and some; in steps of 64, so that few rules are needed.
function focus.points(lens, radius, heights)
    local turns = math.max(lens.turns(radius, heights[1]), lens.turns(radius, heights[#heights]))
    return 64 * math.ceil((24 + 4 * math.min(turns, 1e12)) / 64)
end

-- The intensity of one line of scalar waves.
local function intensity(line, cosines, sines)
    local re, im = 0, 0
    for m = 1, #line do
        local value = line[m]
        re, im = re + value * cosines[m], im + value * sines[m]
    end
    return re * re + im * im
end

-- The two parts of the intensity of polarized waves.
local function intensities(zero, one, two, cosines, sines)
    local a, b, c, d, e, f = 0, 0, 0, 0, 0, 0
    for m = 1, #zero do
        local cosine, sine, x, y, z = cosines[m], sines[m], zero[m], one[m], two[m]
        a, b, c = a + x * cosine, b + x * sine, c + y * cosine
        d, e, f = d + y * sine, e + z * cosine, f + z * sine
    end
    local middle = 2 * (c * c + d * d)
    return a * a + b * b + middle + e * e + f * f, 2 * (a * e + b * f) + middle
end

--- The intensity of a lens at ascending `radii` and `heights`: a list by height of lists by radius,
-- and for polarized waves a second one of what cos 2 phi multiplies. Each of a few stretches of
-- radii has as many points as it needs.
function focus.planes(lens, radii, heights)
    local even, turning, first = {}, {}, 1
    for j in ipairs(heights) do
        even[j], turning[j] = {}, {}
    end
    while first <= #radii do
        local count, last = focus.points(lens, radii[first], heights), first
        while radii[last + 1] and focus.points(lens, radii[last + 1], heights) == count do
            last = last + 1
        end
        local rule, cosines, sines = lens.rule(count), {}, {}
        for j, z in ipairs(heights) do
            cosines[j], sines[j] = rule.phases(z)
        end
        for i = first, last do
            local zero, one, two = rule.lines(radii[i])
            for j in ipairs(heights) do
                if one then
                    even[j][i], turning[j][i] = intensities(zero, one, two, cosines[j], sines[j])
                else
                    even[j][i] = intensity(zero, cosines[j], sines[j])
                end
            end
        end
        first = last + 1
    end
    return even, turning[1][1] and turning or nil
end

return focus
