-- Numbers in the names of files: what lacks, what is there twice, what is no member of the series.
local numbering = require "moonbeam.scan.series.numbering"

-- Names by a function, for 0 to 99 without those of a list.
local function names(f, without)
    local list, out = {}, {}
    for _, i in ipairs(without or {}) do
        out[i] = true
    end
    for i = 0, 99 do
        list[#list + 1] = not out[i] and f(i) or nil
    end
    return list
end

local function form(text, factor)
    return function(i)
        return text:format(i * (factor or 1))
    end
end

local function found(list, chosen)
    if not chosen then
        chosen = {}
        for i in ipairs(list) do
            chosen[i] = i
        end
    end
    local made, gaps = numbering.of(list, chosen), {}
    for i, gap in ipairs(made.gaps) do
        gaps[i] = {gap.first, gap.last}
    end
    return gaps, made
end

local function clock(i)
    return ("%02d%02d"):format(i // 60, i % 60)
end

local LACK <const> = {40, 41, 42, 77}

describe("numbers in the names of a series", function()
    it("say which lack, whatever their step and their zeros", function()
        for _, case in ipairs {{"img_%05d.tif", 1}, {"img_%d.tiff", 1}, {"%04d.TIF", 1},
            {"img-%03d.tif", 1}, {"a%dof180.tif", 1}, {"scan2_2024_%04d.tif", 1},
            {"img_%d.tif", 10}, {"img_%05d.tif", 7}, {"img_%010d.tif", 1},
            {"img_%06d.tif", 1}, {"r12_p%04d_1.5x.tif", 1}, {"img_%04d_100ms.tif", 1}} do
            local f = form(case[1], case[2])
            assert.same({}, (found(names(f))), case[1])
            local gaps, made = found(names(f, LACK))
            assert.same({{40 * case[2], 42 * case[2]}, {77 * case[2], 77 * case[2]}}, gaps, case[1])
            assert.same({100, case[2], 1, 44}, {made.full, made.step, made.places[1],
                made.places[41]}, case[1])
        end
    end)

    it("of several, that which counts: a number without a gap is enough", function()
        local function both(i)
            return ("img_%04d_%03d.tif"):format(i, 2 * i)
        end
        local gaps, made = found(names(both, LACK))
        assert.same({{40, 42}, {77, 77}}, gaps)
        assert.equal(1, made.step)
        local at = 0
        gaps = found(names(function(i) -- counted anew by whoever has saved them
            at = at + 1
            return ("new_%03d_was_%03d.tif"):format(at, i)
        end, LACK))
        assert.same({}, gaps)
        gaps, made = found(names(function(i)
            return ("block%d_%03d.tif"):format(i // 50, i % 50)
        end, LACK))
        assert.same({{40, 42}, {27, 27}}, gaps)
        assert.equal(100, made.full)
    end)

    it("that are angles, times or dates are left alone", function()
        for _, f in ipairs {form("proj_%05.1fdeg.tif", 1.5), form("proj_%ddeg.tif", 3),
            form("angle_%03d.tif"), form("theta%03d.tif"), form("p_%07.3f.tif", 1.7),
            form("x_%03d_rad.tif"), form("%d.tif", 37),
            function(i) return ("p_%dp%d.tif"):format(i // 2, i % 2 * 5) end,
            function(i) return ("a_%s.tif"):format(({"x", "y", "z"})[i % 3 + 1]:rep(i + 1)) end,
            function(i) return ("img_20240131_12%s.tif"):format(clock(i)) end,
            function(i) return ("img_1259%s.tif"):format(clock(i):sub(3)) end,
            function(i) return ("img_202401311200%02d.tif"):format(i % 60) end,
            function(i) return ("img_%d.tif"):format(1700000000 + 3 * i) end,
            function(i) return ("img_%d.tif"):format(i * i) end,
            function(i) return ("p_%+07.2f.tif"):format(i - 50) end} do
            local without = f(1) ~= "37.tif" and LACK or nil
            local gaps, made = found(names(f, without))
            assert.same({}, gaps, f(1))
            assert.same({}, made.strangers, f(1))
        end
    end)

    it("lack only where no other file has them", function()
        local list = names(form "s%04d.tif", {30, 31})
        local gaps, made = found(list, {1, 2, 3, 51, 52})
        assert.same({{30, 31}}, gaps)
        assert.same({1, 2, 3, 6, 7}, made.places)
        gaps, made = found(names(form "s%04d.tif"), {11, 12, 13, 51, 52, 53})
        assert.same({}, gaps)
        assert.same({1, 2, 3, 4, 5, 6}, made.places)
        assert.same({}, (found(list, {51, 52, 53})))
    end)

    it("are there twice, or a name is no member", function()
        local _, made = found {"img_1.tif", "img_01.tif", "img_2.tif", "img_3.tif"}
        assert.same({"img_1.tif", "img_01.tif", number = 1}, made.twice)
        _, made = found {"img_1.tif", "img_2.tif", "img_2.tiff", "img_3.tif"}
        assert.equal(2, made.twice.number)
        local list = names(form "img_%03d.tif")
        table.insert(list, "mask.tif")
        _, made = found(list)
        assert.same({"mask.tif"}, made.strangers)
        _, made = found {"one.tif", "three.tif", "two.tif"}
        assert.same({}, made.strangers)
        assert.is_nil(made.places)
    end)

    it("of one or two files say nothing", function()
        assert.same({}, (found {"img_1.tif"}))
        assert.same({}, (found {"img_1.tif", "img_9.tif"}))
    end)
end)
