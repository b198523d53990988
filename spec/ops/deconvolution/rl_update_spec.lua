local mb = require "moonbeam"
local helper = require "spec.helper"

-- Back-projection of a window of ones by an array as the table should give it.
local function normalizer_of(h, window, grid, center)
    local ones <close> = mb.ones(window)
    local padded <close> = mb.embed(ones, grid)
    local n = grid[#grid]
    local otf <close> = mb.convolution.transfer(h, grid, { center = center, normalize = false })
    mb.convolution.apply(padded, otf, n, true)
    local ranges = {}
    for i, extent in ipairs(grid) do
        ranges[i] = { 1, extent }
    end
    local view <close> = padded:view(table.unpack(ranges))
    return view:copy()
end

describe("rl_update", function()
    it("multiplies, bounds, and writes both arrays", function()
        local x <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        local t <close> = mb.array { { 2, 0.5, -1, 9 }, { 1, 0, 3, 9 } }
        local _, _, metric = mb.rl_update(x, t, { min = 0.25, metrics = true })
        helper.assert_close({ { 2, 1, 0.25 }, { 4, 0.25, 18 } }, x, 1e-7)
        local samples <close> = t:view(mb.all, { 1, 3 })
        helper.assert_close(x, samples, 0)
        assert.near(25.5, (metric:item(1)), 1e-6)
        assert.near(1 + 1 + 2.75 ^ 2 + 4.75 ^ 2 + 144, (metric:item(2)), 1e-5)
        metric:release()
    end)

    for _, case in ipairs {
        { { 9 }, { 4 }, { 1 }, { 12 } }, { { 5, 6 }, { 3, 4 }, { 0, 3 }, { 8, 9 } },
        { { 5, 6, 7 }, { 3, 2, 5 }, { 1, 1, 2 }, { 8, 8, 12 } },
        { { 3, 3, 3 }, { 5, 7, 4 }, { 4, 2, 0 }, { 7, 9, 6 } },
    } do
        local window, kernel, center, grid = table.unpack(case)
        it(("normalizes by table as by the array: window %s, PSF %s"):format(table.concat(window,
            "x"),
            table.concat(kernel, "x")), function()
            local h <close> = mb.random(kernel, { seed = 5 }) -- asymmetric in every axis
            local normalizer <close> = normalizer_of(h, window, grid, center)
            local sums <close> = mb.summed_area(h)
            local padded = { table.unpack(grid) }
            padded[#padded] = 2 * (padded[#padded] // 2 + 1)
            local x1 <close> = mb.random(grid, { seed = 6, low = 1, high = 2 })
            local x2 <close> = x1:copy()
            local t1 <close> = mb.ones(padded)
            local t2 <close> = mb.ones(padded)
            -- The floor is above the rounding of the transforms.
            mb.rl_update(x1, t1, { table = sums, window = window, center = center, floor = 1e-3 })
            mb.rl_update(x2, t2, { normalizer = normalizer, floor = 1e-3 })
            helper.assert_close(x2, x1, 1e-4)
            helper.assert_close(t2, t1, 1e-4)
        end)
    end

    it("leaves the estimate where the consensus is negative", function()
        local x <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        local t <close> = mb.array { { 2, 2, 2, 9 }, { 2, 2, 2, 9 } }
        local consensus <close> = mb.array { { 1, -1e-9, 0, -9 }, { -3, 2, 5, -9 } }
        mb.rl_update(x, t, { consensus = consensus })
        helper.assert_close({ { 2, 2, 6 }, { 4, 10, 12 } }, x, 0)
        local samples <close> = t:view(mb.all, { 1, 3 })
        helper.assert_close(x, samples, 0)
    end)

    it("replaces the gradient, and sums what Biggs and Andrews need", function()
        local x <close> = mb.array { { 1, 2, 3 } }
        local t <close> = mb.array { { 2, 0.5, 1, 9 } }
        local gradient <close> = mb.array { { 3, 1, -2 } }
        local _, _, metric, same = mb.rl_update(x, t, { gradient = gradient, metrics = true })
        assert.equal(gradient, same)
        helper.assert_close({ { 1, -1, 0 } }, gradient, 0)
        assert.near(3 * 1 + 1 * -1, (metric:item(4)), 1e-6)
        assert.near(9 + 1 + 4, (metric:item(5)), 1e-6)
        metric:release()
    end)

    it("explains grids that are too small for the table", function()
        local x <close> = mb.ones { 8 }
        local t <close> = mb.ones { 10 }
        local sums <close> = mb.zeros({ 5 }, { dtype = "f64" })
        assert.matches("need a grid of 9",
            (helper.failure(mb.rl_update, x, t, { table = sums, window = { 6 }, center = { 1 } })))
    end)
end)

helper.each_device(function(device, test)
    describe("rl_update of tiles on " .. device:match("^%a+"), function()
        -- rl_update has its window at the origin of a grid, and positions before it at the grid's
        -- end.
        for _, case in ipairs {
            { { 9 }, { 4 }, { 1 }, { 12 } }, { { 5, 6 }, { 3, 4 }, { 0, 3 }, { 8, 10 } },
            { { 5, 6, 7 }, { 3, 2, 5 }, { 1, 1, 2 }, { 8, 8, 12 } },
            { { 3, 3, 3 }, { 5, 7, 4 }, { 4, 2, 0 }, { 7, 10, 6 } },
        } do
            local window, kernel, center, grid = table.unpack(case)
            local name = "is the whole step on the tiles of the estimate: window %s, PSF %s"
            test(name:format(table.concat(window, "x"), table.concat(kernel, "x")), function()
                local h <close> = mb.random(kernel, { seed = 5, device = device })
                local sums <close> = mb.summed_area(h)
                local padded, extents = { table.unpack(grid) }, {}
                padded[#padded] = 2 * (padded[#padded] // 2 + 1)
                for i, n in ipairs(window) do
                    extents[i] = n + kernel[i] - 1
                end
                -- The estimate without wrapping: `lead` elements of it lie before the window.
                local x <close> = mb.random(extents,
                    { seed = 6, low = 1, high = 2, device = device })
                local c <close> = mb.random(extents,
                    { seed = 7, low = -0.1, high = 1, device = device })
                local wrapped <close> = mb.zeros(grid, { device = device })
                local correction <close> = mb.zeros(padded, { device = device })
                local lead = {}
                for i, k in ipairs(kernel) do
                    lead[i] = k - 1 - center[i]
                end
                -- Moves between the two layouts: on each axis the part before the window and the
                -- rest.
                local function halves(fn, axis, ours, theirs)
                    axis, ours, theirs = axis or 1, ours or {}, theirs or {}
                    if axis > #grid then
                        fn(ours, theirs)
                        return
                    end
                    for part = 1, 2 do
                        local from = part == 1 and 1 or lead[axis] + 1
                        local to = part == 1 and lead[axis] or extents[axis]
                        local shift = part == 1 and grid[axis] - lead[axis] or -lead[axis]
                        if from <= to then
                            ours[axis], theirs[axis] = { from, to }, { from + shift, to + shift }
                            halves(fn, axis + 1, ours, theirs)
                        end
                    end
                end
                halves(function(ours, theirs)
                    for _, pair in ipairs { { x, wrapped }, { c, correction } } do
                        local from <close> = pair[1]:view(table.unpack(ours))
                        local to <close> = pair[2]:view(table.unpack(theirs))
                        mb.convert(from, "f32", { out = to })
                    end
                end)
                mb.rl_update(wrapped, correction,
                    { table = sums, window = window, center = center, floor = 0.05, min = 0.01 })
                -- In two tiles along the last axis.
                local total, cut = 0, extents[#extents] // 2
                for _, range in ipairs { { 1, cut }, { cut + 1, extents[#extents] } } do
                    local ranges, first = {}, {}
                    for i = 1, #extents do
                        ranges[i], first[i] = mb.all, -lead[i]
                    end
                    ranges[#ranges] = range
                    first[#first] = range[1] - 1 - lead[#lead]
                    local tile <close> = x:view(table.unpack(ranges))
                    local part <close> = c:view(table.unpack(ranges))
                    local _, _, metric = mb.rl_update(tile, part,
                        { table = sums, first = first, window = window, center = center,
                            floor = 0.05, min = 0.01, metrics = true })
                    total = total + metric:item(1)
                    metric:release()
                end
                assert.near(x:sum(), total, 1e-6 * total)
                halves(function(ours, theirs)
                    local got <close> = x:view(table.unpack(ours))
                    local expected <close> = wrapped:view(table.unpack(theirs))
                    helper.assert_close(expected, got, 1e-6)
                end)
            end)
        end
    end)
end)

describe("rl_update of tiles", function()
    it("explains what does not fit together", function()
        local x <close> = mb.ones { 8 }
        local sums <close> = mb.zeros({ 5 }, { dtype = "f64" })
        local short <close> = mb.ones { 7 }
        local function refused(correction, first, center)
            return (helper.failure(mb.rl_update, x, correction,
                { table = sums, first = first, window = { 6 }, center = center }))
        end
        assert.matches("shape of estimate", refused(short, { 0 }, { 1 }))
        assert.matches("outside a PSF of 4", refused(x:copy(), { 0 }, { 4 }))
        assert.matches("one for each of the 1 axes", refused(x:copy(), { 0, 0 }, { 1 }))
        assert.matches("element 1 of first is 0.5; it must be a whole number",
            refused(x:copy(), { 0.5 }, { 1 }))
        assert.matches("element 1 of center is 1.5; it must be a whole number",
            refused(x:copy(), { 0 }, { 1.5 }))
        mb.collect()
    end)

    it("leaves the correction of a tile as it is", function()
        local x <close> = mb.full({ 3, 4 }, 2)
        local correction <close> = mb.full({ 3, 4 }, 3)
        mb.rl_update(x, correction, { first = { 0, 0 } })
        helper.assert_close({ { 6, 6, 6, 6 }, { 6, 6, 6, 6 }, { 6, 6, 6, 6 } }, x, 0)
        helper.assert_close({ { 3, 3, 3, 3 }, { 3, 3, 3, 3 }, { 3, 3, 3, 3 } }, correction, 0)
    end)
end)
