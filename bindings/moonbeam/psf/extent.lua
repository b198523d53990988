-- The extents of a PSF's model that an image needs: as many pixels as hold nearly all of the light
-- of each of its planes.

local sampling = require "moonbeam.psf.sampling"

local extent = {}

local FAINT <const> = 1 / 20
local MOST_PLANES <const> = 17 -- that are looked at, spread evenly from the first to the last

-- Heights, of which at most MOST_PLANES.
local function some_of(heights)
    local list, last = {}, #heights - 1
    local count = math.min(last, MOST_PLANES - 1)
    for i = 0, count do
        list[i + 1] = heights[1 + (count > 0 and math.floor(i * last / count + 0.5) or 0)]
    end
    return list
end

-- The light of a plane of a table within a square of half width `a`, and within the table's circle:
-- the sum over rings of what lies in the square, by the trapezoidal rule.
local function within(light, plane, a)
    local sum, spacing = 0, light.spacing
    for i = 1, light.count - 1 do
        local r = i * spacing
        if r < a then
            sum = sum + plane[sampling.BEFORE + i + 1] * r * 2 * math.pi
        elseif r < a * math.sqrt(2) then
            sum = sum + plane[sampling.BEFORE + i + 1] * r * (2 * math.pi - 8 * math.acos(a / r))
        end
    end
    return sum * spacing
end

-- The light of a source out to a square of half width `a`, at these heights.
local function table_to(source, a, heights)
    return sampling.table_of(source, a * math.sqrt(2), heights)
end

-- The least share of light that squares of half width `a` hold, and the number of its plane. All
-- planes have the same light on a camera; those that a laser hardly reaches do not matter: planes
-- with less than FAINT of the light of the brightest count as if they had that.
local function share_of(light, totals, brightest, a)
    local least, at = 1, 1
    for j, plane in ipairs(light.even) do
        local share = 1 - (totals[j] - within(light, plane, a)) / math.max(totals[j],
            FAINT * brightest)
        if share < least then
            least, at = share, j
        end
    end
    return math.max(0, least), at
end

-- How far the light of a point goes sidewise at these heights: along the rays of the aperture, and
-- 8 wavelengths over NA of diffraction more. A scanned spot that is wider has hardly light any
-- more.
local function reach_of(source, options, heights)
    local sine, wave = math.min(0.999, options.na / options.index),
        source.lens.wavelength / source.lens.na
    local height = math.max(math.abs(heights[1]), math.abs(heights[#heights]))
    local reach = height * sine / math.sqrt(1 - sine * sine) + 8 * wave
    return source.power and reach or math.min(reach + source.more, 24 * wave + 32 * source.more)
end

-- What is known of a source at some of the planes of a PSF: hold(a), the least share in squares of
-- half width `a` and the height of its plane; reach, up to which the light is known; grow(a).
local function seen(source, planes, options)
    local heights = some_of(sampling.heights(planes, options.step, source.even))
    local light, totals, brightest
    local self = {reach = reach_of(source, options, heights)}
    function self.grow(reach)
        self.reach, brightest = reach, 0
        light, totals = table_to(source, reach, heights), {}
        for j, plane in ipairs(light.even) do
            totals[j] = source.power and source.power * (source.part and source.part(heights[j])
                or 1) or within(light, plane, reach)
            brightest = math.max(brightest, totals[j])
        end
    end
    function self.held(a)
        local least, at = share_of(light, totals, brightest, a)
        return least, heights[at]
    end
    return self
end

--- The least share of the light of a plane that a PSF of this size holds, and the height of that
-- plane.
function extent.share(source, size, options)
    local light, a = seen(source, size[1], options), options.pixel * math.min(size[2], size[3]) / 2
    light.grow(math.max(a, source.power and 0 or light.reach))
    return light.held(a)
end

--- How many pixels, an odd number of at most `most`, hold `share` of the light of every plane.
function extent.pixels(source, planes, options, share, most)
    local light, largest = seen(source, planes, options), (most - 1) // 2
    local function half_of(reach)
        return math.max(0, math.min(largest, math.floor(reach / options.pixel - 0.5)))
    end
    local function enough(half)
        return light.held((half + 0.5) * options.pixel) >= share
    end
    light.grow(source.power and math.min(light.reach, options.pixel * (largest + 1))
        or light.reach)
    local low, high = -1, half_of(light.reach) -- `low` holds less
    while high < largest and not enough(high) do
        light.grow(1.5 * light.reach + options.pixel)
        high = half_of(light.reach)
    end
    while high - low > 1 do
        local middle = (low + high) // 2
        if enough(middle) then
            high = middle
        else
            low = middle
        end
    end
    return 2 * high + 1
end

return extent
