-- The steps that remove stripes by the methods of Vo et al.

local check = require "spec.support.step_check"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

-- Line integrals (angle, row, column) with noise, stripes and a dead column.
local function projections()
    local a <close> = mb.random({19, 7, 30}, {seed = 4, low = 0.9, high = 1.1})
    local frames = a:to_table()
    for i, frame in ipairs(frames) do
        for _, row in ipairs(frame) do
            for c = 1, 30 do
                row[c] = row[c] + math.sin(c * 0.1 + i * 0.05)
            end
            row[9], row[20], row[21] = row[9] + 1, row[20] - 0.5, row[21] - 0.5
            row[25] = 0.75
        end
    end
    return mb.array(frames, {dtype = "f32"})
end

-- What an operator does to the sinograms of projections, as projections.
local function by(operator, frames, options)
    local sinograms <close> = frames:permute(2, 1, 3)
    local dense <close> = sinograms:copy()
    local result <close> = operator(dense, options)
    local back <close> = result:permute(2, 1, 3)
    return back:copy()
end

describe("the step stripes_sorting", function()
    it("filters the sinogram of every row", function()
        local data <close> = projections()
        local scan = check.scan(data)
        for recipe, size in pairs {[{"stripes_sorting", size = 5}] = 5, [{"stripes_sorting"}] = 11,
            [{"stripes_sorting", preset = "httomo"}] = 11,
            [{"stripes_sorting", preset = "algotom"}] = 21,
            [{"stripes_sorting", preset = "algotom", size = 7}] = 7} do
            local want <close> = by(mb.stripes_sorting, data, {size = size})
            local _ <close> = check.gives(want, scan, {recipe}, LINES)
        end
        local slices <close> = check.gives(nil, scan, {{"stripes_sorting", size = 5},
            {"fbp", center = 14.5}}, LINES)
        assert.same({7, 30, 30}, slices.shape)
        local _ <close> = check.gives(nil, scan, {{"stripes_sorting", size = 5}, "minus_log"},
            "transmission")
    end)

    it("has a wider window for more columns", function()
        local data <close> = mb.random({3, 1, 2001}, {seed = 5})
        local want <close> = by(mb.stripes_sorting, data, {size = 21})
        local _ <close> = check.gives(want, check.scan(data), {"stripes_sorting"}, LINES)
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({5, 3, 8}, {seed = 1})
        local scan = check.scan(data)
        check.refused("size is 0; it must be a whole number", scan, {{"stripes_sorting",
            size = 0}}, LINES)
        check.refused("preset is the string 'savu'; there are algotom, httomo", scan,
            {{"stripes_sorting", preset = "savu"}}, LINES)
        check.refused("it takes frames, but the data are slices", scan, {{"fbp", center = 3.5},
            "stripes_sorting"}, LINES)
    end)
end)
