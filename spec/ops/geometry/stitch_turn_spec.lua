local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

describe("stitch_turn", function()
    helper.each_device(function(device, it)
        it("joins, blends and fills rows by hand on " .. device, function()
            local a <close> = mb.array({{{1, 2, 3, 4}}, {{10, 20, 30, 40}}}, {device = device})
            local cases = {
                {2, "right", {1, 2, 3, 40 - 0, 20, 10}}, -- weights 1, 0
                {2, "left", {40, 30, 20 - 0, 2, 3, 4}},
                {0, "right", {1, 2, 3, 4, 40, 30, 20, 10}},
                {0, "left", {40, 30, 20, 10, 1, 2, 3, 4}},
                {-2, "right", {1, 2, 3, 4, 16, 28, 40, 30, 20, 10}},
                {-2, "left", {40, 30, 20, 10, 7, 4, 1, 2, 3, 4}},
                {1, "right", {1, 2, 3, 22, 30, 20, 10}},
            }
            cases[1][3] = {1, 2, 3, 30, 20, 10}
            cases[2][3] = {40, 30, 20, 2, 3, 4}
            for _, case in ipairs(cases) do
                local result <close> = mb.stitch_turn(a, case[1], case[2])
                helper.assert_close({{case[3]}}, result, 1e-6, case[1] .. case[2])
            end
            local edge <close> = mb.stitch_turn(a, -2, "right", {gap = "edge", before = 1,
                after = 2})
            assert.same({{{1, 1, 2, 3, 4, 4, 4, 40, 30, 20, 10, 10, 10}}}, edge:to_table())
            edge:release()
            local left <close> = mb.stitch_turn(a, -1, "left", {gap = "edge"})
            assert.same({{{40, 30, 20, 10, 10, 1, 2, 3, 4}}}, left:to_table())
        end)

        it("is stitch_half_acquisition where the axis is seen on " .. device, function()
            local a <close> = mb.random({8, 3, 40}, {seed = 1, device = device})
            local sinograms <close> = a:permute(2, 1, 3)
            for _, case in ipairs {{9, "right"}, {10.5, "right"}, {6, "left"}, {7.25, "left"}} do
                local overlap, side = case[1], case[2]
                local center = side == "right" and 40 - (overlap + 1) / 2 or (overlap - 1) / 2
                local want <close> = mb.stitch_half_acquisition(sinograms, center)
                local frames <close> = want:permute(2, 1, 3)
                local result <close> = mb.stitch_turn(a, overlap, side)
                helper.assert_close(frames:to_table(), result, 1e-6)
            end
        end)

        it("leaves out frames without a partner on " .. device, function()
            local a <close> = mb.random({7, 2, 9}, {seed = 2, device = device})
            local result <close> = mb.stitch_turn(a, 4, "right")
            assert.same({3, 2, 14}, result.shape)
            local later <close> = mb.stitch_turn(a, 4, "right", {half = 4})
            assert.same({3, 2, 14}, later.shape)
            local even <close> = a:view({1, 6}, mb.all, mb.all)
            local same <close> = mb.stitch_turn(even, 4, "right")
            assert.is_true(same:to_string() == result:to_string())
        end)

        it("gives each ray of a turning point once on " .. device, function()
            -- A point at a distance from the axis that only one half sees, and one in the overlap.
            local angles, cols, center = 40, 30, 24.5
            local rows = {}
            for k = 1, 2 * angles do
                local angle, row = (k - 1) * math.pi / angles, {}
                for x = 0, cols - 1 do
                    local place = x - center
                    row[x + 1] = math.exp(-(place - 20 * math.cos(angle)) ^ 2 / 8)
                        + math.exp(-(place - 3 * math.sin(angle)) ^ 2 / 8)
                end
                rows[k] = {row}
            end
            local a <close> = mb.array(rows, {device = device})
            local result <close> = mb.stitch_turn(a, 2 * (cols - center) - 1, "right")
            local got = result:to_table()
            assert.same({angles, 1, 50}, result.shape)
            for k = 1, angles do
                local angle = (k - 1) * math.pi / angles
                for x = 0, 49 do
                    local place = x - center
                    local want = math.exp(-(place - 20 * math.cos(angle)) ^ 2 / 8)
                        + math.exp(-(place - 3 * math.sin(angle)) ^ 2 / 8)
                    assert.is_true(math.abs(got[k][1][x + 1] - want) < 1e-5)
                end
            end
        end)
    end)

    it("gives what algotom gives", function()
        oracle.needs "algotom"
        local a <close> = mb.random({11, 1, 40}, {seed = 3})
        for _, case in ipairs {{8, "right", 1}, {8, "left", 0}, {13, "left", 0}} do
            local want <close> = oracle.run("algotom", ([[
from algotom.prep.conversion import convert_sinogram_360_to_180
b = convert_sinogram_360_to_180(a[:, 0], (%d, %d), norm=False)[0][:5]
]]):format(case[1], case[3]), {a = a}, {"b"})
            local frames <close> = mb.stitch_turn(a, case[1], case[2], {half = 5})
            local result <close> = frames:view(mb.all, 1, mb.all)
            helper.assert_close(want:to_table(), result:to_table(), 1e-6)
        end
    end)

    it("refuses what makes no sense", function()
        local a <close> = mb.zeros {4, 2, 9}
        assert.matches("overlap is 10", (helper.failure(mb.stitch_turn, a, 10, "left")))
        assert.matches("half is 4 and there are 4", (helper.failure(mb.stitch_turn, a, 2, "left",
            {half = 4})))
        assert.matches("left", (helper.failure(mb.stitch_turn, a, 2, "top")))
    end)
end)
