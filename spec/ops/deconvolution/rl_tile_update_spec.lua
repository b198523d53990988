local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("rl_tile_update on " .. device:match("^%a+"), function()
        -- rl_update has its window at the origin of a grid, and positions before it at the grid's
        -- end.
        for _, case in ipairs {
            { { 9 }, { 4 }, { 1 }, { 12 } }, { { 5, 6 }, { 3, 4 }, { 0, 3 }, { 8, 10 } },
            { { 5, 6, 7 }, { 3, 2, 5 }, { 1, 1, 2 }, { 8, 8, 12 } },
            { { 3, 3, 3 }, { 5, 7, 4 }, { 4, 2, 0 }, { 7, 10, 6 } },
        } do
            local window, kernel, center, grid = table.unpack(case)
            test(("is rl_update on the tiles of the estimate: window %s, PSF %s"):format(
                table.concat(window, "x"),
                table.concat(kernel, "x")), function()
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
                local c <close> = mb.random(extents, { seed = 7, low = -0.1, high = 1,
                    device = device })
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
                        local from, to = part == 1 and 1 or lead[axis] + 1, part == 1
                            and lead[axis] or extents[axis]
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
                mb.rl_update(wrapped, correction, { table = sums, window = window, center = center,
                    floor = 0.05, min = 0.01 })
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
                    local _, metric = mb.rl_tile_update(tile, part, sums, first,
                        { window = window, center = center, floor = 0.05, min = 0.01,
                            metrics = true })
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

describe("rl_tile_update", function()
    it("explains what does not fit together", function()
        local x <close> = mb.ones { 8 }
        local sums <close> = mb.zeros({ 5 }, { dtype = "f64" })
        local short <close> = mb.ones { 7 }
        assert.matches("shape of estimate",
            (helper.failure(mb.rl_tile_update, x, short, sums, { 0 },
            { window = { 6 }, center = { 1 } })))
        assert.matches("outside a PSF of 4",
            (helper.failure(mb.rl_tile_update, x, x:copy(), sums, { 0 },
            { window = { 6 }, center = { 4 } })))
        assert.matches("one number for each",
            (helper.failure(mb.rl_tile_update, x, x:copy(), sums, { 0, 0 },
            { window = { 6 }, center = { 1 } })))
        mb.collect()
    end)
end)
