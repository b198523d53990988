-- The steps that warp frames: distortion and rotate.

local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local LINES <const> = "line integrals"
local FACTORS = {1.01, 1e-3}

describe("the step distortion", function()
    it("warps frames, in blocks of rows or of frames", function()
        local data <close> = mb.random({7, 30, 24}, {seed = 1})
        local want <close> = mb.undistort(data, {13.4, 11}, FACTORS)
        local scan = check.scan(data)
        local step = {"distortion", center = {13.4, 11}, factors = FACTORS}
        local _ <close> = check.gives(want, scan, {step}, LINES)
        local slices <close> = check.gives(nil, scan, {step, {"fbp", center = 11.5}}, LINES)
        local frames <close> = want:permute(2, 1, 3)
        local expected <close> = mb.tomo.reconstruct(frames, mb.tomo.angles(7), {center = 11.5,
            method = "fbp", filter = "shepp-logan", padding = "edge", circle = 1,
            scale = math.pi / 7})
        helper.assert_close(expected:to_table(), slices, 1e-6)
    end)

    it("takes splines, and the open beam beyond the edges", function()
        local data <close> = mb.random({5, 44, 20}, {seed = 2})
        for quantity, value in pairs {[LINES] = 0, transmission = 1} do
            local want <close> = mb.undistort(data, {20, 11}, {1.1}, {order = 3, value = value,
                mode = "constant"})
            local _ <close> = check.gives(want, check.scan(data), {{"distortion",
                center = {20, 11}, factors = {1.1}, order = 3, mode = "constant"}}, quantity)
        end
        local want <close> = mb.undistort(data, {20, 11}, {1.1}, {order = 3})
        local _ <close> = check.gives(want, check.scan(data), {{"distortion", preset = "httomo",
            center = {20, 11}, factors = {1.1}}}, LINES)
    end)

    it("is about a center of the scan, after a crop too", function()
        local data <close> = mb.random({5, 30, 24}, {seed = 3})
        local part <close> = data:view(mb.all, {6, 28}, {4, 24})
        local want <close> = mb.undistort(part, {13.5 - 5, 11 - 3}, FACTORS)
        local _ <close> = check.gives(want, check.scan(data), {{"crop", rows = {6, 28},
            columns = {4, 24}}, {"distortion", center = {13.5, 11}, factors = FACTORS}}, LINES)
    end)

    it("takes distances in pixels of the scan, after a binning too", function()
        local data <close> = mb.random({5, 30, 24}, {seed = 5})
        local small <close> = mb.bin(data, {1, 2, 3})
        local want <close> = mb.undistort(small, {(13.5 - 0.5) / 2, (11 - 1) / 3}, {1.01, 5e-3},
            {scale = {2, 3}})
        local _ <close> = check.gives(want, check.scan(data), {{"bin", rows = 2, columns = 3},
            {"distortion", center = {13.5, 11}, factors = {1.01, 5e-3}}}, LINES)
    end)

    it("reads a file of coefficients beside the recipe", function()
        local data <close> = mb.random({5, 30, 24}, {seed = 4})
        local folder = files.folder()
        files.write(folder .. "/lens.txt", "xcenter = 11.25\nycenter = 14.5\nfactor0 = 1.01\n"
            .. "factor1 = 1e-3\n\n")
        files.write(folder .. "/recipe.lua", "{{\"distortion\", file = \"lens.txt\"}}\n")
        local want <close> = mb.undistort(data, {14.5, 11.25}, FACTORS)
        local p = mb.pipeline(check.scan(data), folder .. "/recipe.lua", {input = LINES,
            quiet = true})
        local result <close> = p:slices()
        assert.is_true(want:to_string() == result:to_string())
        files.write(folder .. "/lens.txt", "xcenter = 11.25\nycenter = left\nfactor0 = 1\n")
        assert.matches("'left' is not a number", (helper.failure(mb.pipeline, check.scan(data),
            folder .. "/recipe.lua", {input = LINES})), 1, true)
        files.write(folder .. "/lens.txt", "1\n2\n")
        assert.matches("with 2 numbers", (helper.failure(mb.pipeline, check.scan(data),
            folder .. "/recipe.lua", {input = LINES})), 1, true)
        files.remove(folder)
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({5, 9, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("factors is missing; give file", scan, {{"distortion", center = {1, 2}}},
            LINES)
        check.refused("center is missing; give file", scan, {{"distortion", factors = {1}}}, LINES)
        check.refused("file and center both give coefficients", scan, {{"distortion",
            center = {1, 2}, file = "lens.txt"}}, LINES)
        check.refused("cannot be read", scan, {{"distortion", file = "no_such_lens.txt"}}, LINES)
        check.refused("begins with -1", scan, {{"distortion", center = {1, 2}, factors = {-1}}},
            LINES)
    end)
end)

describe("the step rotate", function()
    it("turns frames, cut along rows where a row needs few", function()
        for rows, angle in pairs {[90] = -0.05, [30] = 1.5} do
            local data <close> = mb.random({5, rows, 24}, {seed = 1})
            local want <close> = mb.rotate(data, angle)
            local _ <close> = check.gives(want, check.scan(data), {{"rotate", angle = angle}},
                LINES)
            local slices <close> = check.gives(nil, check.scan(data), {{"rotate", angle = angle,
                order = 3}, {"fbp", center = 11.5}}, LINES)
            assert.same({rows, 24, 24}, slices.shape)
        end
    end)

    it("makes an axis upright that leans", function()
        local angles, rows, cols, lean = 9, 31, 40, 0.06
        local values = {}
        for k = 1, angles do -- a rod around the axis, which is right of the middle further down
            values[k] = {}
            for y = 1, rows do
                values[k][y] = {}
                for x = 1, cols do
                    local place = (x - (cols + 1) / 2) * math.cos(lean)
                        - (y - (rows + 1) / 2) * math.sin(lean)
                    values[k][y][x] = math.exp(-place * place / 20)
                end
            end
        end
        local data <close> = mb.array(values)
        local result <close> = check.gives(nil, check.scan(data), {{"rotate", angle = -lean}},
            LINES)
        local got = result:to_table()
        for y = 4, rows - 3 do
            for x = 8, cols - 7 do
                local place = x - (cols + 1) / 2
                assert.is_true(math.abs(got[1][y][x] - math.exp(-place * place / 20)) < 0.02)
            end
        end
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({5, 9, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("the axis leans already", scan, {{"tilt", angle = 0.1}, {"rotate",
            angle = 0.1}}, LINES)
        check.refused("move it before step center", scan, {"center", {"rotate", angle = 0.1}},
            LINES)
        check.refused("is it in degrees?", scan, {{"rotate", angle = 5}}, LINES)
    end)
end)
