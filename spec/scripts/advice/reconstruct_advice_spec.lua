-- What messages of `moonbeam reconstruct` about its command line advise works.

local advised = require "spec.support.advised"
local files = require "spec.support.files"
local frame_scans = require "spec.support.frame_scans"

local FBP <const> = '{"fbp", center = 7.5}'
local RECIPES <const> = {
    r = '{"flat_field", "minus_log", ' .. FBP .. "}",
    own = '{"flat_field", "minus_log", "twice", ' .. FBP .. "}",
    fpb = '{"flat_field", "minus_log", {"fpb", center = 7.5}}',
    center = '{"flat_field", "minus_log", "center", "fbp"}',
    flat = '{"flat_field", "minus_log"}',
    lines = "{" .. FBP .. "}",
    codes = '{"flat_field", "minus_log", ' .. FBP .. ', {"rescale", dtype = "uint16", range = {0, 2}}}',
    shift = '{"flat_field", "minus_log", {"vertical_shift", shifts = "shifts.txt"}, ' .. FBP .. "}",
    listed = '{"flat_field", "minus_log", {"vertical_shift", shifts = "shifts.txt"}, ' .. FBP .. "}",
    cgls = '{"flat_field", "minus_log", {"cgls", center = 7.5, iterations = 2}}',
    stitch = '{"flat_field", "minus_log", {"stitch", center = 17}, {"fbp", center = 17}}',
    own_step = [[return {name = "twice", summary = "Nothing.", takes = {quantity = "any",
        layout = "any"}, gives = {quantity = "same", layout = "same"}, cuts = {"rows", "frames"},
        run = function() end}]],
}

describe("an advice of reconstruct", function()
    advised.specs(require "spec.scripts.advice.reconstruct_rows", function(folder)
        local function changed(change)
            local list = {}
            for i, frame in ipairs(frame_scans.data()) do
                list[i] = {}
                for r, row in ipairs(frame) do
                    list[i][r] = {}
                    for c, value in ipairs(row) do
                        list[i][r][c] = change(value)
                    end
                end
            end
            return list
        end
        advised.scans(folder, {s = {}, turn = {["/exchange/theta"] = {
            value = frame_scans.degrees(nil, 360 / frame_scans.N), attributes = {units = "deg"}}},
            negative = {["/exchange/data"] = changed(function(value)
                return value + 600
            end)},
            nopixel = {["/measurement/instrument/detector/pixel_size"] = false}})
        frame_scans.write(folder .. "/lines.h5", {["/exchange/data"] = {dtype = "f32",
            value = changed(function(value) return value / 1000 end)}, ["/exchange/theta"] = {value = frame_scans.degrees(),
            attributes = {units = "deg"}}})
        frame_scans.write(folder .. "/shifts.h5", {["/shifts"] = {
            value = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, attributes = {units = "um"}}})
        files.write(folder .. "/shifts.txt", ("0 1 "):rep(6))
        for name, text in pairs(RECIPES) do
            files.write(("%s/%s.lua"):format(folder, name), text)
        end
        files.run(("cd '%s' && '%s' simulate sim.h5 --size 24 --rows 4 -a 30 -d host -q"):format(
            folder, os.getenv "MOONBEAM_BIN" or require("moonbeam").system.program()))
    end)
end)
