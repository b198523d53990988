-- fourier_reconstruct of odd sizes, slice counts and angle sets against its definition in double
-- precision, filter included, at random pixels; chunks of slices against the whole; the GPU against
-- the host.
local angle_sets = require "spec.fixtures.angle_sets"
local definition = require "spec.fixtures.fourier_definition"
local helper = require "spec.helper"
local mb = require "moonbeam"

-- of slices' norms; a coarser grid amplifies rounding in the image's corners
local CHUNK_BOUND = {fast = 2e-5, exact = 1e-6}
local HOST_BOUND = {fast = 3e-5, exact = 1.5e-6}

-- One angle shows its rows as they are: nothing averages out.
local function bound_of(accuracy, count)
    return accuracy == "fast" and 2e-4 or count > 1 and 2e-6 or 4e-6
end

-- Slice z is this much of the one sinogram and that much of the other: partners in a pair differ.
local function parts_of(z)
    return 1 + z % 3, z % 5 - 2
end

local function stacked(bases, slices, device)
    local first <close> = mb.array(bases[1].rows):to(device)
    local second <close> = mb.array(bases[2].rows):to(device)
    local sino = mb.empty({slices, #bases[1].rows, #bases[1].rows[1]}, {device = device})
    for z = 1, slices do
        local slice <close> = sino:view(z, mb.all, mb.all)
        local a, b = parts_of(z)
        mb.binary(first, "mul", {scalar = a, out = slice})
        mb.mul_add(slice, second, {b = b})
    end
    return sino
end

-- Pixels that are made, and the definition there for both sinograms of both kinds.
local function references(bases, angles, n, axis, circle)
    local lists, pixels, draw = {}, {}, angle_sets.dice(n)
    for _, kind in ipairs {"phantom", "noise"} do
        for i = 1, 2 do
            lists[#lists + 1] = bases[kind][i].filtered
        end
    end
    local radius = definition.radius_of({circle = circle}, n, n)
    local period = definition.period({axis}, n, radius)
    while #pixels < math.min(40, 20480 // n) do
        local x, y = draw(n), draw(n)
        local X, Y = x - (n - 1) / 2, (n - 1) / 2 - y
        if X * X + Y * Y < (radius - 1) ^ 2 then
            local values = definition.at(lists, angles, n, axis, period, X, Y)
            pixels[#pixels + 1] = {x = x, y = y, phantom = {values[1], values[2]},
                noise = {values[3], values[4]}}
        end
    end
    return pixels
end

-- Root of the mean square of the errors at the pixels, of the first and the last slices and one
-- between, over that of the slices.
local function error_of(slices, pixels, kind, circle)
    local count, difference, norm = slices.shape[1], 0, 0
    local made = slices.shape[2] ^ 2 * (circle == 1 and math.pi / 4 or 1)
    for z in pairs {[1] = true, [(count + 1) // 2] = true, [count] = true} do
        local a, b = parts_of(z)
        local slice <close> = slices:view(z, mb.all, mb.all)
        for _, pixel in ipairs(pixels) do
            local value = a * pixel[kind][1] + b * pixel[kind][2]
            difference = difference + (slice:item(pixel.y + 1, pixel.x + 1) - value) ^ 2
        end
        norm = norm + slice:norm() ^ 2 * #pixels / made
    end
    return math.sqrt(difference / norm)
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

-- Parts of the sinogram, made alone, are the same slices.
local function check_chunks(sino, angles, options, made, what)
    local count = sino.shape[1]
    for _, part in ipairs {{1, 1}, {count, count}, {2, count}, {count // 3, count // 2}} do
        if part[1] >= 1 and part[1] <= part[2] and part[2] - part[1] < 40 then
            local rows <close> = sino:view(part, mb.all, mb.all)
            local alone <close> = mb.fourier_reconstruct(rows, angles, options)
            local whole <close> = made:view(part, mb.all, mb.all)
            local off = relative(alone, whole)
            assert.is_true(off <= CHUNK_BOUND[options.accuracy],
                ("%s, slices %d to %d alone: %.2g"):format(what, part[1], part[2], off))
        end
    end
end

local function check_host(sino, angles, options, made, what)
    local here <close> = sino:to("host")
    local expected <close> = mb.fourier_reconstruct(here, angles, options)
    local back <close> = made:to("host")
    local off = relative(back, expected)
    assert.is_true(off <= HOST_BOUND[options.accuracy], ("%s, against the host: %.2g"):format(what,
        off))
end

-- Every count of angles with another set; sizes begin with different ones, and differ in mask and
-- axis.
local function check(device, n, slice_counts, angle_counts, first)
    local circle, axis = first % 2, (n - 1) / 2 + (first % 3 - 1) * 0.07 * n
    for i, count in ipairs(angle_counts) do
        local set = angle_sets.list[(first + i) % #angle_sets.list + 1]
        local angles, draw, bases = set.make(count), angle_sets.dice(count), {}
        for _, kind in ipairs {"phantom", "noise"} do
            bases[kind] = definition.sinograms(kind, angles, n, axis, draw)
        end
        local pixels = references(bases, angles, n, axis, circle ~= 0 and circle or nil)
        for _, kind in ipairs {"phantom", "noise"} do
            local sino <close> = stacked(bases[kind], slice_counts[#slice_counts], device)
            for _, slices in ipairs(slice_counts) do
                local from <close> = sino:view({1, slices}, mb.all, mb.all)
                for _, accuracy in ipairs {"fast", "exact"} do
                    local options = {accuracy = accuracy, circle = circle, center = axis}
                    local what = ("%d columns, %d slices, %d angles %s, %s, %s"):format(n, slices,
                        count, set.name, kind, accuracy)
                    local made <close> = mb.fourier_reconstruct(from, angles, options)
                    local err = error_of(made, pixels, kind, circle)
                    assert.is_true(err <= bound_of(accuracy, count),
                        ("%s: error %.2g"):format(what, err))
                    check_chunks(from, angles, options, made, what)
                    if device ~= "host" and slices == 3 and count <= 181 then
                        check_host(from, angles, options, made, what)
                    end
                end
            end
        end
    end
end

describe("fourier_reconstruct", function()
    it("is its definition for 511 columns and 1000", function()
        check("host", 511, {1, 3}, {1, 61}, 1)
        check("host", 511, {3}, {31}, 3)
        check("host", 1000, {3}, {31}, 4)
    end)

    for i, n in ipairs {511, 640, 1000, 2160, 2560} do
        helper.gpu_it(("is its definition for %d columns, any number of slices, any angles"):format(
            n), function()
            check("cuda:0", n, {1, 3, 33, 100}, {1, 181, 721}, i)
        end)
    end
    helper.gpu_it("is its definition for 4096 columns", function()
        check("cuda:0", 4096, {3}, {41}, 3)
    end)
end)
