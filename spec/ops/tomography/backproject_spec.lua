local mb = require "moonbeam"
local npy = require "moonbeam.npy"
local files = require "spec.support.files"
local helper = require "spec.helper"

local pi = math.pi

-- Back-projection of one sinogram (a table) by its definition.
local function reference(sino, angles, o)
    local cols = #sino[1]
    local size = o.size or { cols, cols }
    local ny, nx = size[1], size[2] or size[1]
    local center, out = o.center or (cols - 1) / 2, {}
    local radius = (o.circle or 0) * math.min(ny, nx) / 2
    for y = 0, ny - 1 do
        out[y + 1] = {}
        for x = 0, nx - 1 do
            local X, Y, sum = x - (nx - 1) / 2, (ny - 1) / 2 - y, 0
            for k, t in ipairs(angles) do
                local u = X * math.cos(t) + Y * math.sin(t) + center + (o.shifts and o.shifts[k]
                    or 0)
                local i = math.floor(u)
                local w = u - i
                sum = sum + (sino[k][i + 1] or 0) * (1 - w) + (sino[k][i + 2] or 0) * w
            end
            local outside = radius > 0 and X * X + Y * Y > radius * radius
            out[y + 1][x + 1] = outside and (o.circle_value or 0) or sum * (o.scale or pi / #angles)
        end
    end
    return out
end

local function random_angles(n)
    local angles = {}
    for k = 1, n do
        angles[k] = (k * 2.399963) % (2 * pi) - 1 -- in no order, some negative
    end
    return angles
end

local function crop(slice, roi)
    local out = {}
    for y = roi[1] + 1, roi[2] do
        out[#out + 1] = table.move(slice[y], roi[3] + 1, roi[4], 1, {})
    end
    return out
end

describe("backproject", function()
    for _, case in ipairs {
        { 5, 7, {} }, { 9, 16, {} }, { 20, 33, {} }, { 3, 1, { size = { 4 } } },
        { 7, 20, { size = { 19, 23 }, center = 8.25 } }, { 4, 21, { size = { 50, 40 } } },
        { 6, 17, { circle = 0.9, circle_value = -3 } },
        { 6, 40, { size = { 33, 64 }, circle = 0.5 } },
        { 6, 24, { scale = 1, center = -100 } }, { 6, 24, { scale = 1, center = 35.5 } },
        { 5, 19, { shifts = { 0.5, -1.25, 3, 100, -1e6 } } },
        { 137, 18, {} },
    } do
        local n, cols, options = table.unpack(case)
        for _, accuracy in ipairs { "fast", "exact" } do
            it(("is the sum over %d angles of %d columns, %s"):format(n, cols, accuracy), function()
                local angles = random_angles(n)
                local sino <close> = mb.random({ 2, n, cols }, { seed = n, low = -1 })
                local o = setmetatable({ accuracy = accuracy }, { __index = options })
                local given = { accuracy = accuracy }
                for key, value in pairs(options) do
                    given[key] = value
                end
                local r <close> = mb.backproject(sino, angles, given)
                local t = sino:to_table()
                helper.assert_close({ reference(t[1], angles, o), reference(t[2], angles, o) }, r,
                    2e-6)
            end)
        end
    end

    it("makes parts of the slice as crops of the whole, bit by bit", function()
        local angles = random_angles(11)
        local sino <close> = mb.random({ 11, 45 }, { seed = 3 })
        local whole <close> = mb.backproject(sino, angles, { circle = 0.95 })
        for _, roi in ipairs { { 0, 45, 0, 45 }, { 0, 1, 44, 45 }, { 17, 30, 3, 40 },
            { 15, 33, 16, 32 } } do
            local part <close> = mb.backproject(sino, angles, { circle = 0.95, roi = roi })
            assert.same(crop(whole:to_table(), roi), part:to_table())
        end
    end)

    for _, method in ipairs { "pixel", "distance" } do
        it("makes the same slices whatever their company, bit by bit, by " .. method, function()
            local angles, options = random_angles(140), { method = method }
            local sino <close> = mb.random({ 23, 140, 37 }, { seed = 4, low = -1 })
            local whole <close> = mb.backproject(sino, angles, options)
            for _, size in ipairs { 1, 2, 7, 16 } do
                for first = 1, 23, size do
                    local rows <close> = sino:view { first, math.min(23, first + size - 1) }
                    local part <close> = mb.backproject(rows, angles, options)
                    local expected <close> = whole:view { first, math.min(23, first + size - 1) }
                    assert.same(expected:to_table(), part:to_table())
                end
            end
            local one <close> = sino:view(9)
            local slice <close> = mb.backproject(one, angles, options)
            local expected <close> = whole:view(9)
            assert.same(expected:to_table(), slice:to_table())
        end)
    end

    it("reads projections through a permuted view", function()
        local angles = random_angles(6)
        local projections <close> = mb.random({ 6, 5, 15 }, { seed = 5 })
        local view <close> = projections:permute(2, 1, 3)
        local copy <close> = view:copy()
        local a <close> = mb.backproject(view, angles)
        local b <close> = mb.backproject(copy, angles)
        assert.same(b:to_table(), a:to_table())
    end)

    it("turns a constant into itself, up to pi", function()
        local n, angles = 41, {}
        for k = 1, 18 do
            angles[k] = pi * (k - 1) / 18
        end
        local sino <close> = mb.full({ 18, n }, 2)
        local r <close> = mb.backproject(sino, angles, { circle = 0.9 })
        assert.near(2 * pi, r:item(21, 21), 1e-5)
        assert.near(2 * pi, r:item(10, 15), 1e-5)
        assert.equal(0, r:item(1, 1))
    end)

    it("puts things upright: X to the right, Y upwards", function()
        -- One bright bin at 0 and at 90 degrees: the strips cross at one pixel.
        local n, c = 31, 15
        local sino <close> = mb.zeros { 2, n }
        local function light(angle, u)
            local bin <close> = sino:view({ angle, angle }, { u + 1, u + 1 })
            mb.fill(bin, 1)
        end
        light(1, c + 6) -- X = 6
        light(2, c + 4) -- Y = 4
        local r <close> = mb.backproject(sino, { 0, pi / 2 }, { scale = 1 })
        local t = r:to_table()
        assert.near(2, t[c - 4 + 1][c + 6 + 1], 1e-5)
        local sum = 0
        for _, v in ipairs(helper.flatten(t)) do
            sum = sum + v
        end
        assert.near(2 * n, sum, 1e-3)
    end)

    it("reconstructs a disk to its density within 1 %", function()
        local n, count, radius, density = 129, 300, 40.3, 0.02
        local cx, cy = 7.5, -11 -- X, Y of its middle
        local sino, angles = {}, {}
        for k = 1, count do
            angles[k] = pi * (k - 1) / count
            sino[k] = {}
            for i = 1, n do
                local s = i - 1 - (n - 1) / 2 - cx * math.cos(angles[k]) - cy * math.sin(angles[k])
                sino[k][i] = 2 * density * math.sqrt(math.max(0, radius ^ 2 - s ^ 2))
            end
        end
        local raw <close> = mb.array(sino)
        local filtered <close> = mb.ramp_filter(raw)
        local slice <close> = mb.backproject(filtered, angles)
        local t, sum, pixels, sum_outside, outside = slice:to_table(), 0, 0, 0, 0
        for y = 0, n - 1 do
            for x = 0, n - 1 do
                local r, value = math.sqrt((x - 64 - cx) ^ 2 + (64 - y - cy) ^ 2), t[y + 1][x + 1]
                if r < radius - 3 then
                    assert.near(density, value, 0.03 * density)
                    sum, pixels = sum + value, pixels + 1
                elseif r > radius + 3 and (x - 64) ^ 2 + (y - 64) ^ 2 < 60 ^ 2 then
                    assert.near(0, value, 0.1 * density) -- rings of the sharp edge
                    sum_outside, outside = sum_outside + value, outside + 1
                end
            end
        end
        assert.near(density, sum / pixels, 0.01 * density)
        assert.near(0, sum_outside / outside, 0.01 * density)
    end)

    it("is estimated without angles", function()
        local with = mb.op.estimate("backproject", { { "f32", 3, 5, 17 } },
            { angles = { 1, 2, 3, 4, 5 } })
        local without = mb.op.estimate("backproject", { { "f32", 3, 5, 17 } }, {})
        assert.equal(with.peak, without.peak)
    end)

    it("refuses an axis so far away that positions overflow", function()
        local sino <close> = mb.ones {3, 31}
        local angles, limits = {0, 1, 2}, " is .*; it must lie in %[%-1e%+06, 1e%+06%] px"
        for _, far in ipairs {math.maxinteger, math.mininteger, 1e300, -1e7} do
            local function refuses(arg, f, options)
                assert.matches(arg .. limits, helper.failure(f, sino, angles, options))
            end
            refuses("center", mb.backproject, {center = far})
            assert.matches("element 2 of shifts" .. limits,
                helper.failure(mb.backproject, sino, angles, {shifts = {0, far, 0}}))
            refuses("center", mb.fourier_reconstruct, {center = far})
            refuses("center", mb.project, {center = far, cols = 31})
        end
        -- What is allowed is nothing but far: the slice is empty.
        for _, accuracy in ipairs {"fast", "exact"} do
            local slice <close> = mb.backproject(sino, angles, {center = 1e6, accuracy = accuracy})
            assert.equal(0, slice:max())
        end
    end)

    it("says what is wrong", function()
        local sino <close> = mb.zeros { 4, 10 }
        local angles = { 0, 1, 2, 3 }
        for _, case in ipairs {
            { "angles", { 0, 1, 2 }, {} }, { "shifts", angles, { shifts = { 1 } } },
            { "size", angles, { size = { 1, 2, 3 } } }, { "size", angles, { size = 2.5 } },
            { "roi", angles, { roi = { 0, 1, 2 } } }, { "roi", angles, { roi = { 0, 11, 0, 5 } } },
            { "roi", angles, { roi = { 5, 5, 0, 5 } } }, { "circle", angles, { circle = -1 } },
            { "accuracy", angles, { accuracy = "best" } }, { "angles", { 0, 1, 2, 0 / 0 }, {} },
        } do
            local text, err = helper.failure(mb.backproject, sino, case[2], case[3])
            assert.equal("argument", err.code, text)
            assert.equal(case[1], err.arg, text)
        end
        local wide <close> = mb.zeros { 4, 0 }
        local _, err = helper.failure(mb.backproject, wide, angles)
        assert.equal("shape", err.code)
    end)
end)

describe("backproject in fast mode", function()
    -- Half-precision samples: 4e-4 of the norm on white noise, the worst case.
    helper.gpu_it("is close to the exact mode of the host on noise, at any scale", function()
        for _, case in ipairs { { 1, 1 }, { 5, 1e-12 }, { 67, 1e9 } } do
            local rows, scale = table.unpack(case)
            local angles = mb.tomo.angles(640)
            local sino <close> = mb.random({ rows, 640, 90 },
                { seed = rows, low = -scale, high = scale })
            local exact <close> = mb.backproject(sino, angles)
            local on_gpu <close> = sino:to("cuda:0")
            local fast <close> = mb.backproject(on_gpu, angles, { accuracy = "fast" })
            local back <close> = fast:to("host")
            local difference <close> = back - exact
            assert.is_true(difference:norm() < 6e-4 * exact:norm())
        end
    end)

    helper.gpu_it("is the exact mode for fewer than 640 angles", function()
        for _, count in ipairs { 1, 639 } do
            local angles = random_angles(count)
            local sino <close> = mb.random({ 37, count, 50 },
                { seed = count, low = -1, device = "cuda:0" })
            local exact <close> = mb.backproject(sino, angles, { accuracy = "exact" })
            local fast <close> = mb.backproject(sino, angles, { accuracy = "fast" })
            assert.same(exact:to_table(), fast:to_table())
        end
    end)
end)

-- A slice as other devices' kernels make it: the same call in a process that takes the GPU for an
-- older one.
describe("backproject on older devices", function()
    -- slices, angles, columns, options; every size of block with and without a rest, every format
    local CASES = {
        { 3, 40, 61, "{}" }, { 7, 40, 61, "{}" }, { 16, 33, 100, "{}" },
        { 31, 9, 64, "{circle = 0.8, circle_value = 2}" },
        { 48, 21, 150, "{shifts = true}" }, { 64, 300, 70, "{}" },
        { 133, 65, 90, "{roi = {3, 70, 20, 89}}" },
        { 5, 641, 33, "{}" }, { 13, 640, 120, "{}" }, { 32, 2048, 34, "{}" },
        { 35, 701, 40, "{size = {300, 20}, center = 3}" },
        { 84, 4200, 50, "{circle = 0.9, circle_value = 2}" },
    }
    local SCRIPT = [[
        local mb = require "moonbeam"
        local npy, device, folder = require "moonbeam.npy", mb.device "cuda:0", arg[0]:match("^(.*)/")
        for i, case in ipairs { %s } do
            local rows, count, cols, o = table.unpack(case)
            local angles, shifts = {}, {}
            for k = 1, count do
                angles[k], shifts[k] = (k * 2.399963) %% (2 * math.pi) - 1, 3 * math.sin(k)
            end
            o.shifts = o.shifts and shifts
            local sino = mb.random({ rows, count, cols }, { seed = i, low = -1, device = device })
            local predicted, slices = mb.op.estimate("backproject", { sino }, o, { device = device }).peak, nil
            local peak = mb.pool.peak(function()
                slices = mb.backproject(sino, angles, o)
            end, device)
            assert(predicted == peak, ("case %%d: %%d bytes predicted, %%d taken"):format(i, predicted, peak))
            npy.write(("%%s/%%d.npy"):format(folder, i), slices)
            sino:release()
            slices:release()
        end
        print(device.capability)
    ]]

    -- The cases as a device of `capability` at most makes them: <number of the case>.npy in the
    -- folder.
    local function make(folder, capability)
        local texts = {}
        for i, case in ipairs(CASES) do
            texts[i] = ("{ %d, %d, %d, %s }"):format(table.unpack(case))
        end
        local output, ok = files.run_script(folder, SCRIPT:format(table.concat(texts, ", ")),
            "MOONBEAM_CUDA_CAPABILITY=" .. capability)
        assert.is_true(ok, output)
        assert.is_true(tonumber(output) <= capability, output)
    end

    helper.gpu_it("is the same bit by bit from 8.0 up, and close before", function()
        local newest, ampere, turing = files.folder(), files.folder(), files.folder()
        make(newest, 999)
        make(ampere, 80)
        make(turing, 75)
        for i, case in ipairs(CASES) do
            local name = ("/%d.npy"):format(i)
            assert.is_true(files.read(newest .. name) == files.read(ampere .. name), "case " .. i)
            local a <close> = npy.read(newest .. name)
            local b <close> = npy.read(turing .. name)
            local difference <close> = a - b
            local err = difference:norm() / a:norm()
            assert.is_true(err < (case[2] < 640 and 5e-6 or 1e-3), ("case %d: %.2g"):format(i, err))
        end
        for _, folder in ipairs { newest, ampere, turing } do
            files.remove(folder)
        end
    end)
end)
