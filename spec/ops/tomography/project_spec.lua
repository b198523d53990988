local mb = require "moonbeam"
local helper = require "spec.helper"

local pi = math.pi

-- Projection of one slice (a table) by its definition.
local function reference(slice, angles, o)
    local ny, nx = #slice, #slice[1]
    local cols = o.cols or nx
    local center, out = o.center or (cols - 1) / 2, {}
    local radius = (o.circle or 0) * math.min(ny, nx) / 2
    for k, t in ipairs(angles) do
        local row = {}
        for i = 1, cols do
            row[i] = 0
        end
        for y = 0, ny - 1 do
            for x = 0, nx - 1 do
                local X, Y = x - (nx - 1) / 2, (ny - 1) / 2 - y
                if radius == 0 or X * X + Y * Y <= radius * radius then
                    local u = X * math.cos(t) + Y * math.sin(t) + center + (o.shifts
                        and o.shifts[k] or 0)
                    local i = math.floor(u)
                    if o.method == "distance" then -- the overlap of bin i + 1 with the shadow
                        local half = math.max(math.abs(math.cos(t)), math.abs(math.sin(t))) / 2
                        u = i + math.max(0, math.min(u + half, i + 1.5)
                            - math.max(u - half, i + 0.5)) / (2 * half)
                    end
                    local value = slice[y + 1][x + 1] * (o.scale or 1)
                    if row[i + 1] then
                        row[i + 1] = row[i + 1] + value * (1 - u + i)
                    end
                    if row[i + 2] then
                        row[i + 2] = row[i + 2] + value * (u - i)
                    end
                end
            end
        end
        out[k] = row
    end
    return out
end

local function random_angles(n)
    local angles = {}
    for k = 1, n do
        angles[k] = (k * 2.399963) % (2 * pi) - 1
    end
    return angles
end

local function dot(a, b)
    local product <close> = a * b
    return product:sum()
end

local cases = {
    { 5, 7, 7, {} }, { 9, 16, 17, {} }, { 20, 33, 20, { cols = 41 } }, { 3, 1, 1, {} },
    { 11, 19, 23, { cols = 20, center = 8.25, circle = 0.9 } }, { 4, 50, 40, { cols = 13 } },
    { 5, 19, 18, { shifts = { 0.5, -1.25, 3, 100, -1e6 }, scale = 0.5 } },
    { 9, 16, 17, { method = "distance" } }, { 3, 1, 1, { method = "distance", cols = 4 } },
    { 11, 19, 23, { cols = 20, center = 8.25, circle = 0.9, method = "distance" } },
    { 5, 19, 18, { shifts = { 0.5, -1.25, 3, 100, -1e6 }, scale = 0.5, method = "distance" } },
    { 3, 2, 4200, { cols = 4111 } }, { 3, 4200, 2, { cols = 4220 } },
    { 9, 35, 64, { cols = 80, circle = 1.3 } },
    { 9, 70, 33, { circle = 0.1, method = "distance" } },
}

describe("project", function()
    for _, case in ipairs(cases) do
        local n, ny, nx, options = table.unpack(case)
        it(("spreads %d x %d pixels at %d angles"):format(ny, nx, n), function()
            local angles = random_angles(n)
            local volume <close> = mb.random({ 2, ny, nx }, { seed = n, low = -1 })
            local r <close> = mb.project(volume, angles, options)
            local t = volume:to_table()
            helper.assert_close({ reference(t[1], angles, options),
                reference(t[2], angles, options) }, r, 3e-6)
        end)

        it(("is the adjoint of backproject, %d x %d pixels at %d angles"):format(ny, nx, n),
            function()
            for _, rows in ipairs { 1, 3, 18 } do
                local angles = random_angles(n)
                local volume <close> = mb.random({ rows, ny, nx }, { seed = 1 })
                local o = { cols = options.cols, center = options.center, circle = options.circle,
                    shifts = options.shifts, method = options.method }
                local forward <close> = mb.project(volume, angles, o)
                local sino <close> = mb.random(forward.shape, { seed = 2 })
                o.cols, o.size, o.scale, o.accuracy = nil, { ny, nx }, 1, "exact"
                local back <close> = mb.backproject(sino, angles, o)
                local ax_y, x_aty = dot(forward, sino), dot(volume, back)
                assert.near(ax_y, x_aty, 1e-6 * math.abs(ax_y))
            end
        end)
    end

    for _, method in ipairs { "pixel", "distance" } do
        it("makes the same rows whatever their company, bit by bit, by " .. method, function()
            local angles = random_angles(19)
            local volume <close> = mb.random({ 23, 37, 37 }, { seed = 4, low = -1 })
            local whole <close> = mb.project(volume, angles, { method = method })
            for _, size in ipairs { 1, 2, 7, 16 } do
                for first = 1, 23, size do
                    local rows <close> = volume:view { first, math.min(23, first + size - 1) }
                    local part <close> = mb.project(rows, angles, { method = method })
                    local expected <close> = whole:view { first, math.min(23, first + size - 1) }
                    assert.same(expected:to_table(), part:to_table())
                end
            end
        end)
    end

    it("makes the same rows whatever angles are beside theirs, bit by bit", function()
        local angles = random_angles(150) -- more than one job has
        local volume <close> = mb.random({ 5, 21, 40 }, { seed = 4, low = -1 })
        local whole <close> = mb.project(volume, angles, { circle = 1 })
        for k = 1, 150, 37 do
            local part <close> = mb.project(volume, { angles[k] }, { circle = 1 })
            local expected <close> = whole:view(mb.all, { k, k })
            assert.same(expected:to_table(), part:to_table())
        end
    end)

    it("does not alternate at 45 degrees by distances", function()
        local n = 64
        local volume <close> = mb.ones { 17, n, n }
        local function ripple(method)
            local rows <close> = mb.project(volume, { pi / 4 }, { method = method })
            local largest = 0
            for b = n // 2 + 6, n // 2 + 20 do -- a slope of the shadow of a square
                local a, middle = rows:item(3, 1, b - 1), rows:item(3, 1, b)
                largest = math.max(largest, math.abs(2 * middle - a - rows:item(3, 1, b + 1))
                    / middle)
            end
            return largest
        end
        assert.is_true(ripple "pixel" > 0.1, ripple "pixel")
        assert.is_true(ripple "distance" < 0.01, ripple "distance")
    end)

    it("keeps the mass", function()
        local volume <close> = mb.random({ 20, 20 }, { seed = 5 })
        local r <close> = mb.project(volume, random_angles(9), { cols = 40 })
        local mass = volume:sum()
        for k = 1, 9 do
            local row <close> = r:view(k)
            assert.near(mass, row:sum(), 1e-5 * mass)
        end
    end)

    it("gives line integrals of a smooth object", function()
        -- A Gaussian: its projections are Gaussians, at every angle the same.
        local n, sigma, cx, cy = 65, 5, 6, 9
        local slice = {}
        for y = 0, n - 1 do
            slice[y + 1] = {}
            for x = 0, n - 1 do
                slice[y + 1][x + 1] =
                    math.exp(-((x - 32 - cx) ^ 2 + (32 - y - cy) ^ 2) / (2 * sigma ^ 2))
            end
        end
        local volume <close> = mb.array(slice)
        local angles, want = { 0, 0.4, pi / 2, 2, 3 }, {} -- not 45 degrees, see the operator's doc
        for k, t in ipairs(angles) do
            want[k] = {}
            for u = 0, n - 1 do
                local s = u - 32 - cx * math.cos(t) - cy * math.sin(t)
                want[k][u + 1] = math.sqrt(2 * pi) * sigma * math.exp(-s ^ 2 / (2 * sigma ^ 2))
            end
        end
        local r <close> = mb.project(volume, angles)
        helper.assert_close(want, r, 0.01)
    end)

    it("says what is wrong", function()
        local volume <close> = mb.zeros { 4, 5 }
        for _, case in ipairs {
            { "angles", {}, {} }, { "shifts", { 0, 1 }, { shifts = { 1 } } },
            { "cols", { 0 }, { cols = -1 } },
        } do
            local text, err = helper.failure(mb.project, volume, case[2], case[3])
            assert.equal("argument", err.code, text)
            assert.equal(case[1], err.arg, text)
        end
    end)
end)
