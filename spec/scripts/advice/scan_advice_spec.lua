-- What messages about scans advise works.

local advised = require "spec.support.advised"
local files = require "spec.support.files"
local frame_scans = require "spec.support.frame_scans"
local mb = require "moonbeam"

local function theta(values, units)
    return {["/exchange/theta"] = {value = values, attributes = units and {units = units}}}
end

local function pixel(value, units)
    return {["/measurement/instrument/detector/pixel_size"] = value and {value = value,
        attributes = {units = units}} or false}
end

describe("an advice of a scan", function()
    advised.specs(require "spec.scripts.advice.scan_rows", function(folder)
        local degrees, own = frame_scans.degrees(), frame_scans.degrees()
        own[3] = 0 / 0
        local short, few = {}, {}
        for i = 1, frame_scans.N do
            short[i] = degrees[i] / 10
            few[#few + 1] = i < 11 and degrees[i] or nil
        end
        local bad = frame_scans.flats(1, 4)
        for r, row in ipairs(bad[2]) do
            for c in ipairs(row) do
                bad[2][r][c] = 300
            end
        end
        local lines = frame_scans.data()
        local _, _, _, angles = frame_scans.nxtomo()
        local currents = {}
        for i = 1, frame_scans.N do
            currents[i] = 100 + i
        end
        advised.scans(folder, {s = {}, no_unit = {nxtomo = {["/sample/rotation_angle"] = angles}},
            currents = {nxtomo = {["/control"] = {group = "NXmonitor"},
                ["/control/data"] = currents}}, grad = theta(degrees, "grad"),
            no_angles = {["/exchange/theta"] = false}, as_rad = theta(degrees, "rad"),
            few_angles = theta(few, "deg"), nan_angles = theta(own, "deg"),
            short = theta(short, "deg"),
            no_pixel = pixel(), one_meter = pixel(10, "m"), odd_pixel = pixel(1, "parsec"),
            no_flats = {["/exchange/data_white"] = false, ["/exchange/data_dark"] = false},
            keyed = {["/exchange/data_white"] = false, ["/exchange/data_dark"] = false,
                ["/exchange/theta"] = {value = degrees, attributes = {units = "deg"}}},
            exchanged = {["/exchange/data_white"] = frame_scans.darks(1, 2),
                ["/exchange/data_dark"] = frame_scans.flats(1, 4)},
            bad_flat = {["/exchange/data_white"] = bad}})
        local bin = os.getenv "MOONBEAM_BIN" or mb.system.program()
        files.run(("cd '%s' && '%s' simulate half.h5 --size 24 --rows 4 -a 60 --half-acquisition "
            .. "--span 360 -d host -q"):format(folder, bin))
        frame_scans.write(folder .. "/lines.h5", {["/exchange/data"] = {value = lines,
            dtype = "f32"}, ["/exchange/theta"] = {value = degrees, attributes = {units = "deg"}}})
        frame_scans.write(folder .. "/parts.h5", {["/d"] = frame_scans.data(), ["/a"] = {
            value = degrees, attributes = {units = "deg"}}, ["/f"] = frame_scans.flats(1, 4),
            ["/k"] = frame_scans.darks(1, 2)})
        files.write(folder .. "/angles.txt", table.concat(degrees, "\n"))
        local stack <close> = mb.array(frame_scans.data(), {dtype = "u16", device = "host"})
        mb.images.write(folder .. "/stack.tif", stack)
    end)
end)
