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

describe("the steps stripes_large, stripes_dead and stripes_all", function()
    it("work on the sinogram of every row", function()
        local data <close> = projections()
        local scan = check.scan(data)
        local large = {size = 9, snr = 2, drop_ratio = 0.2, normalize = false}
        local dead = {size = 11, snr = 2.5, residual = false}
        local all = {large_size = 9, small_size = 5, snr = 2, normalize = true}
        for name, options in pairs {stripes_large = large, stripes_dead = dead,
            stripes_all = all} do
            local want <close> = by(mb[name], data, options)
            local entry = {name}
            for option, value in pairs(options) do
                entry[option] = value
            end
            local _ <close> = check.gives(want, scan, {entry}, LINES)
            assert.is_true(want:to_string() ~= data:to_string(), name)
        end
        local slices <close> = check.gives(nil, scan, {"stripes_all", {"fbp", center = 14.5}},
            LINES)
        assert.same({7, 30, 30}, slices.shape)
    end)

    it("have the numbers of other packages", function()
        local data <close> = projections()
        local scan = check.scan(data)
        for preset, size in pairs {httomo = 61, tomocupy = 61, nabu = 51, algotom = 51} do
            local want <close> = by(mb.stripes_all, data, {large_size = size, small_size = 21,
                snr = 3, drop_ratio = 0.1, normalize = preset ~= "httomo"})
            local _ <close> = check.gives(want, scan, {{"stripes_all", preset = preset}}, LINES)
        end
        for preset, size in pairs {httomo = 61, tomocupy = 61, algotom = 51} do
            local want <close> = by(mb.stripes_large, data, {size = size,
                normalize = preset ~= "httomo"})
            local _ <close> = check.gives(want, scan, {{"stripes_large", preset = preset}}, LINES)
        end
        local want <close> = by(mb.stripes_dead, data, {})
        local _ <close> = check.gives(want, scan, {{"stripes_dead", preset = "algotom"}}, LINES)
    end)

    it("refuse what makes no sense", function()
        local data <close> = mb.random({5, 3, 8}, {seed = 1})
        local scan = check.scan(data)
        check.refused("drop_ratio is 0.9; it must be a number", scan, {{"stripes_large",
            drop_ratio = 0.9}}, LINES)
        check.refused("unknown option 'sm_size'", scan, {{"stripes_all", sm_size = 21}}, LINES)
        check.refused("it takes frames, but the data are slices", scan, {{"fbp", center = 3.5},
            "stripes_dead"}, LINES)
    end)
end)
