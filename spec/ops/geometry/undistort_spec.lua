local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local FACTORS = {1.02, -1.5e-3, 4e-5, -2e-7, 1e-9}

-- The place in the frame, from 0, of a pixel of the result.
local function place(y, x, center, factors)
    local dy, dx = y - center[1], x - center[2]
    local r, f = math.sqrt(dy * dy + dx * dx), 0
    for i = #factors, 1, -1 do
        f = f * r + factors[i]
    end
    return center[1] + f * dy, center[2] + f * dx
end

-- The element of a list whose index, from 0, lies beyond its ends; nil: the constant.
local function beyond(i, n, mode)
    if mode == "constant" then
        return i >= 0 and i < n and i or nil
    elseif mode == "edge" or n == 1 then
        return math.max(0, math.min(n - 1, i))
    end
    local period = mode == "reflect" and 2 * n - 2 or 2 * n
    i = i % period
    return i < n and i or period - i - (mode == "symmetric" and 1 or 0)
end

-- Linear interpolation of nested tables at a place.
local function at(frame, y, x, mode, value)
    local rows, cols = #frame, #frame[1]
    if mode == "constant" and (y < 0 or y > rows - 1 or x < 0 or x > cols - 1) then
        return value
    end
    local y0, x0, sum = math.floor(y), math.floor(x), 0
    for j = y0, y0 + 1 do
        for i = x0, x0 + 1 do
            local weight = (1 - math.abs(y - j)) * (1 - math.abs(x - i))
            if weight > 0 then
                sum = sum + weight * frame[beyond(j, rows, mode) + 1][beyond(i, cols, mode) + 1]
            end
        end
    end
    return sum
end

local function expected(frame, center, factors, mode, value)
    local result = {}
    for y = 1, #frame do
        result[y] = {}
        for x = 1, #frame[1] do
            local py, px = place(y - 1, x - 1, center, factors)
            result[y][x] = at(frame, py, px, mode, value)
        end
    end
    return result
end

describe("undistort", function()
    helper.each_device(function(device, it)
        it("takes each pixel from its place, with every rule beyond the edges, on " .. device,
            function()
                local a <close> = mb.random({3, 23, 31}, {seed = 1, device = device})
                local frames = a:to_table()
                for _, mode in ipairs {"constant", "edge", "reflect", "symmetric"} do
                    for _, center in ipairs {{11.3, 14.8}, {-4, 40}} do
                        local want = {}
                        for k, frame in ipairs(frames) do
                            want[k] = expected(frame, center, FACTORS, mode, 0.75)
                        end
                        local result <close> = mb.undistort(a, center, FACTORS, {mode = mode,
                            value = 0.75})
                        helper.assert_close(want, result, 2e-6)
                    end
                end
            end)

        it("changes nothing without distortion, to the bit, on " .. device, function()
            local a <close> = mb.random({2, 19, 600}, {seed = 2, device = device})
            local one <close> = a:view({1, 1}, {4, 4}, {6, 6})
            mb.fill(one, 0 / 0)
            local last <close> = a:view({2, 2}, {19, 19}, {600, 600})
            mb.fill(last, 3e38)
            for _, mode in ipairs {"constant", "edge", "reflect", "symmetric"} do
                for _, inverse in ipairs {false, true} do
                    local result <close> = mb.undistort(a, {9.37, 311.21}, {1, 0, 0}, {mode = mode,
                        inverse = inverse})
                    assert.is_true(a:to_string() == result:to_string())
                end
            end
        end)

        it("is exact to 1e-3 px in frames of 4096 columns on " .. device, function()
            local rows, cols, center = 3, 4096, {1.5, 2047.25}
            local ramp <close> = mb.arange(cols, {device = device})
            local wide <close> = mb.zeros({rows, cols}, {device = device})
            mb.binary(ramp, "sub", {scalar = 1, out = ramp})
            mb.binary(wide, "add", {b = ramp, out = wide})
            local factors = {1.0003, 1e-6, 3e-9, -1e-13, 1e-17}
            local result <close> = mb.undistort(wide, center, factors)
            local got = result:to_table()
            for y = 0, rows - 1 do
                for x = 0, cols - 1, 7 do
                    local _, px = place(y, x, center, factors)
                    px = math.max(0, math.min(cols - 1, px))
                    assert.is_true(math.abs(got[y + 1][x + 1] - px) < 1e-3)
                end
            end
        end)

        it("undoes what inverse did, where both are inside, on " .. device, function()
            local n, factors = 96, {0.98, 1e-4, 1e-5}
            local rows = {}
            for y = 1, n do
                rows[y] = {}
                for x = 1, n do
                    rows[y][x] = math.sin(x / 20) + math.cos(y / 17)
                end
            end
            local a <close> = mb.array(rows, {device = device})
            local there <close> = mb.undistort(a, {47, 45}, factors, {inverse = true})
            local back <close> = mb.undistort(there, {47, 45}, factors)
            local middle <close> = a:view({20, 76}, {20, 76})
            local same <close> = back:view({20, 76}, {20, 76})
            assert.is_true(helper.difference(middle:to_table(), same) < 1e-3)
            local moved <close> = there:view({20, 76}, {20, 76})
            assert.is_true(helper.difference(middle:to_table(), moved) > 1e-2)
        end)

        it("makes rows from a part of the frame on " .. device, function()
            local a <close> = mb.random({2, 60, 33}, {seed = 3, device = device})
            local center, options = {28.5, 16}, {mode = "symmetric"}
            local whole <close> = mb.undistort(a, center, FACTORS, options)
            for first = 1, 60, 7 do
                local last = math.min(60, first + 6)
                local piece = mb.op.piece("undistort", {{"f32", 2, 60, 33}}, {center = center,
                    factors = FACTORS, mode = "symmetric"}, {axis = 2, first = first, last = last})
                local part <close> = a:view(mb.all, {piece.first, piece.last}, mb.all)
                local result <close> = mb.undistort(part, center, FACTORS, {mode = "symmetric",
                    part = {piece.first, 60}, rows = {first, last}})
                local want <close> = whole:view(mb.all, {first, last}, mb.all)
                assert.is_true(want:to_string() == result:to_string())
            end
        end)

        it("makes rows by splines from a part of the frame on " .. device, function()
            local a <close> = mb.random({2, 80, 33}, {seed = 3, device = device})
            for _, mode in ipairs {"edge", "symmetric", "reflect"} do
                local params = {center = {28.5, 16}, factors = {1.01, 1e-3}, mode = mode, order = 3}
                local whole <close> = mb.undistort(a, params.center, params.factors, {mode = mode,
                    order = 3})
                for first = 1, 80, 13 do
                    local last = math.min(80, first + 12)
                    local piece = mb.op.piece("undistort", {{"f32", 2, 80, 33}}, params, {axis = 2,
                        first = first, last = last})
                    assert.is_true(piece.last - piece.first < 60)
                    local part <close> = a:view(mb.all, {piece.first, piece.last}, mb.all)
                    local result <close> = mb.undistort(part, params.center, params.factors,
                        {mode = mode, order = 3, part = {piece.first, 80}, rows = {first, last}})
                    local want <close> = whole:view(mb.all, {first, last}, mb.all)
                    assert.is_true(want:to_string() == result:to_string(), mode)
                end
            end
        end)

        it("interpolates with splines through the pixels on " .. device, function()
            local a <close> = mb.random({3, 21, 30}, {seed = 8, device = device})
            for _, mode in ipairs {"constant", "edge", "reflect", "symmetric"} do
                local result <close> = mb.undistort(a, {9.5, 11}, {1}, {mode = mode, order = 3})
                helper.assert_close(a:to_table(), result, 1e-6, mode)
            end
            local one <close> = mb.array({{2.5}, {2.5}}, {device = device})
            local same <close> = mb.undistort(one, {3, -1}, {1.5, 0.1}, {order = 3})
            helper.assert_close({{2.5}, {2.5}}, same, 1e-6)
        end)

        it("takes sinograms, one pixel and factors of other pixels on " .. device, function()
            local a <close> = mb.random({14, 5, 12}, {seed = 4, device = device})
            local frames <close> = a:permute(2, 1, 3)
            local dense <close> = frames:copy()
            local want <close> = mb.undistort(dense, {6, 5}, {1.1, 1e-3})
            local result <close> = mb.undistort(frames, {6, 5}, {1.1, 1e-3})
            assert.is_true(want:to_string() == result:to_string())
            local scaled <close> = mb.undistort(dense, {6, 5}, {1.1, 5e-4}, {scale = {2, 2}})
            helper.assert_close(want:to_table(), scaled, 1e-6)
            local one <close> = mb.array({{3.5}}, {device = device})
            local same <close> = mb.undistort(one, {10, -10}, {1.5, 0.1})
            assert.same({{3.5}}, same:to_table())
        end)

        it("spreads NaN to the pixels that need it on " .. device, function()
            local a <close> = mb.zeros({9, 9}, {device = device})
            local one <close> = a:view({5, 5}, {5, 5})
            mb.fill(one, 0 / 0)
            local result <close> = mb.undistort(a, {4, 3.5}, {1.01})
            local got, count = result:to_table(), 0
            for y = 1, 9 do
                for x = 1, 9 do
                    local py, px = place(y - 1, x - 1, {4, 3.5}, {1.01})
                    local hit = math.abs(py - 4) < 1 and math.abs(px - 4) < 1
                    assert.equal(hit, got[y][x] ~= got[y][x])
                    count = count + (hit and 1 or 0)
                end
            end
            assert.is_true(count > 0)
        end)
    end)

    it("gives what SciPy gives", function()
        oracle.needs "scipy"
        local a <close> = mb.random({2, 70, 90}, {seed = 5})
        local code = [[
from scipy.ndimage import map_coordinates
f = [1.02, -1.5e-3, 4e-5, -2e-7, 1e-9]
yc, xc = 33.4, 41.9
y, x = np.mgrid[0:70, 0:90].astype(float)
r = np.hypot(y - yc, x - xc)
s = sum(c * r**i for i, c in enumerate(f))
p = [yc + s * (y - yc), xc + s * (x - xc)]
for ours, theirs in (('constant', 'constant'), ('edge', 'nearest'), ('reflect', 'mirror'),
                     ('symmetric', 'reflect')):
    globals()[ours] = np.stack([map_coordinates(i.astype(float), p, order=1, mode=theirs, cval=0.3)
                                for i in a])
]]
        local modes = {"constant", "edge", "reflect", "symmetric"}
        local results = {oracle.run("scipy", code, {a = a}, modes)}
        for i, mode in ipairs(modes) do
            local want <close> = results[i]
            local result <close> = mb.undistort(a, {33.4, 41.9}, FACTORS, {mode = mode,
                value = 0.3})
            assert.is_true(helper.difference(want:to_table(), result) < 3e-6, mode)
        end
    end)

    it("gives the splines of SciPy", function()
        oracle.needs "scipy"
        local a <close> = mb.random({2, 70, 90}, {seed = 5})
        local code = [[
from scipy.ndimage import map_coordinates
f = [1.05, -1.5e-3, 4e-5, -2e-7, 1e-9]
yc, xc = 33.4, 41.9
y, x = np.mgrid[0:70, 0:90].astype(float)
r = np.hypot(y - yc, x - xc)
s = sum(c * r**i for i, c in enumerate(f))
p = [yc + s * (y - yc), xc + s * (x - xc)]
inside = [np.clip(p[0], 0, 69), np.clip(p[1], 0, 89)]
for ours, theirs in (('constant', 'constant'), ('edge', 'mirror'), ('reflect', 'mirror'),
                     ('symmetric', 'reflect')):
    globals()[ours] = np.stack([map_coordinates(i.astype(float), inside if ours == 'edge' else p,
                                order=3, mode=theirs, cval=0.3) for i in a])
]]
        local modes = {"constant", "edge", "reflect", "symmetric"}
        local results = {oracle.run("scipy", code, {a = a}, modes)}
        for i, mode in ipairs(modes) do
            local want <close> = results[i]
            local result <close> = mb.undistort(a, {33.4, 41.9}, {1.05, -1.5e-3, 4e-5, -2e-7, 1e-9},
                {mode = mode, value = 0.3, order = 3})
            assert.is_true(helper.difference(want:to_table(), result) < 3e-6, mode)
        end
    end)

    it("gives what algotom gives", function()
        oracle.needs "algotom"
        local a <close> = mb.random({64, 80}, {seed = 6})
        local want <close> = oracle.run("algotom", [[
from algotom.prep.correction import unwarp_projection
b = unwarp_projection(a, 38.2, 30.7, [1.0003, 2e-5, 3e-6])
]], {a = a}, {"b"})
        local result <close> = mb.undistort(a, {30.7, 38.2}, {1.0003, 2e-5, 3e-6})
        assert.is_true(helper.difference(want:to_table(), result) < 2e-5) -- f32 places there
    end)

    it("needs no scratch, and refuses what makes no sense", function()
        local known = mb.op.estimate("undistort", {{"f32", 4, 30, 40}}, {center = {1, 2},
            factors = {1}})
        assert.equal(0, known.scratch)
        local a <close> = mb.zeros {2, 9, 9}
        for name, call in pairs {center = {{1}, {1}}, factors = {{1, 2}, {}},
            order = {{1, 2}, {1}, {order = 2}}, part = {{1, 2}, {1}, {part = {3, 9}}}, rows = {{1, 2}, {1}, {rows = {2, 10}}},
            scale = {{1, 2}, {1}, {scale = {1, 1, 1}}}} do
            local _, err = helper.failure(mb.undistort, a, table.unpack(call))
            assert.equal("argument", err.code)
            assert.equal(name, err.arg)
        end
        local part <close> = mb.zeros {2, 3, 9}
        assert.matches("need rows 1 to 9 of the frame; a has 4 to 6",
            (helper.failure(mb.undistort, part, {4, 4}, {1}, {part = {4, 9}, rows = {1, 9}})))
        assert.matches("magnification", (helper.failure(mb.undistort, a, {4, 4}, {0, 1})))
    end)
end)
