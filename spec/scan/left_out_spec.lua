--- Frames that options leave out, by the numbers that a message names: of several datasets, of
-- frames with image keys, and of images with ranges. Whoever follows the message gets the right
-- slice.
local commands = require "spec.support.commands"
local frame_scans = require "spec.support.frame_scans"
local helper = require "spec.helper"
local mb = require "moonbeam"
local odd_scans = require "spec.support.odd_scans"

local BEAM <const>, DARK <const>, VIEWS <const> = odd_scans.BEAM, odd_scans.DARK, odd_scans.VIEWS
local DEAD <const> = 75 -- a projection that is looked at

describe("frames that are left out", function()
    local shell = commands.folder()
    local odd = odd_scans.within(shell)

    teardown(function()
        shell:remove()
    end)

    local function flats(count, wrong)
        local levels = {}
        for i = 1, count do
            levels[i] = i == wrong and DARK or BEAM + DARK
        end
        return odd.flat_of(levels)
    end

    local function darks(count, wrong)
        local levels = {}
        for i = 1, count do
            levels[i] = i == wrong and BEAM + DARK or DARK
        end
        return odd.flat_of(levels)
    end

    local function projections(dead)
        return odd.frames_of(function(p, i)
            return dead == i and DARK or odd.counts(p)
        end, "u16")
    end

    local function run(arguments)
        local status, text = commands.run("reconstruct.lua", ("%s -o %s -q --overwrite --device "
            .. "host -c %g"):format(arguments, shell:path "out.h5", odd_scans.AXIS))
        assert.equal(0, status, text)
        return (text:gsub("[^\n]*no pixel size was found[^\n]*\n", ""))
    end

    -- Asserts what is said of a scan, and that the options that are named leave nothing to say.
    local function followed(arguments, subject, options)
        local text = run(arguments)
        assert.matches("warning: " .. subject, text)
        for option in options:gmatch "%-%-bad[%w%-]+ [%d,]+" do
            assert.is_truthy(text:find(option .. " leaves", 1, true), text)
        end
        assert.equal("", run(arguments .. " " .. options))
        assert.is_true(odd.error_of() <= 0.045)
    end

    it("count through several datasets", function()
        odd.write {data = projections(DEAD), flats = flats(4), darks = darks(3),
            more = {data_white_post = flats(4, 2), data_dark_post = darks(3, 3)}}
        followed(shell:path "scan.h5", "dark 6 of 6 has a mean of 40100 counts, the others 100, ",
            "--bad-darks 6 --bad-flats 6 --bad-projections 75")
    end)

    -- Frames of a series: 3 darks, 4 flats, the projections, 4 flats.
    local function joined(parts)
        local frames, keys = {}, {}
        for k, key in ipairs {2, 1, 0, 1} do
            for _, frame in ipairs(parts[k]) do
                frames[#frames + 1], keys[#keys + 1] = frame, key
            end
        end
        return frames, keys
    end

    it("count among the frames of the detector where image keys say what is what", function()
        local frames, keys = joined {darks(3, 2), flats(4), projections(DEAD), flats(4, 1)}
        local angles = {}
        for i = 1, #keys do
            angles[i] = math.max(0, math.min(VIEWS - 1, i - 8)) * 180 / VIEWS
        end
        local path = frame_scans.write(shell:path "keyed.h5", (frame_scans.nxtomo {
            ["/instrument/detector/image_key"] = keys, ["/instrument/detector/data"] = frames,
            ["/instrument/detector/x_pixel_size"] = false,
            ["/sample/rotation_angle"] = {value = angles, attributes = {units = "deg"}}}))
        followed(path, "dark 2 of 3 has a mean of 40100 counts",
            "--bad-darks 2 --bad-flats 158 --bad-projections 75")
    end)

    it("count in the stack that has them, with or without ranges", function()
        local stack <close> = mb.array((joined {darks(3, 2), flats(4), projections(DEAD),
            flats(4, 1)}), {dtype = "u16"})
        mb.tiff.write(shell:path "one.tif", stack)
        local one <const> = shell:path "one.tif"
        followed(("%s:8:157 --darks %s:1:3 --flats %s:4:7,158:161 --angles 0:178.8 --angle-unit "
            .. "deg"):format(one, one, one), "dark 2 of 3 has a mean of 40100 counts",
            "--bad-darks 2 --bad-flats 158 --bad-projections 75")
        local own <close> = mb.array(flats(5, 4), {dtype = "u16"})
        mb.tiff.write(shell:path "flats.tif", own)
        followed(("%s:8:157 --darks %s:1,3 --flats %s --angles 0:178.8 --angle-unit deg"):format(
            one, one, shell:path "flats.tif"), "flat 4 of 5 has a mean of 100 counts",
            "--bad-flats 4 --bad-projections 75")
    end)

    it("with a number that is none say which and what it is", function()
        odd.write {data = projections(), flats = flats(4)}
        for value, text in pairs {["the string 'x'"] = "x", NaN = 0 / 0, inf = math.huge} do
            local wrong = helper.failure(function()
                return assert(mb.scan.open(shell:path "scan.h5", {flat_positions = {0, text, 20,
                    VIEWS}}))
            end)
            assert.matches(("element 2 of flat_positions is %s; it must be a finite number"):format(
                value), wrong, 1, true)
        end
    end)

    it("leave the others their angles, currents and places", function()
        odd.write {data = projections(), flats = flats(4)}
        local path <const> = shell:path "scan.h5"
        local currents = {}
        for i = 1, VIEWS do
            currents[i] = 100 + i
        end
        local all <close> = assert(mb.scan.open(path, {flat_positions = {0, 0, 20, VIEWS},
            current = currents}))
        local some <close> = assert(mb.scan.open(path, {flat_positions = {0, 0, 20, VIEWS},
            current = currents, bad_projections = {1, 20, 150}}))
        assert.equal(VIEWS - 3, some.n_angles)
        assert.equal(all.angles[2], some.angles[1])
        assert.equal(all.angles[21], some.angles[19])
        assert.same({102, 149 + 100}, {some.currents.frames[1], some.currents.frames[VIEWS - 3]})
        assert.same(all.timeline.flats, some.timeline.flats)
        local own <close> = some:projections({1, 1}, {angles = {19, 19}})
        local other <close> = all:projections({1, 1}, {angles = {21, 21}})
        assert.equal(other:to_string(), own:to_string())
        local stack <close> = all:projections()
        mb.tiff.write(shell:path "stack.tif", stack)
        local images <close> = assert(mb.scan.open(shell:path "stack.tif", {angles = {0, 178.8},
            angle_unit = "deg", flats_file = shell:path "flats.tif", bad_projections = {1, 20, 150},
            flat_positions = {0, 0, 20, VIEWS, VIEWS}, current = currents}))
        for i, angle in ipairs(some.angles) do
            assert.is_true(math.abs(angle - images.angles[i]) < 1e-9)
        end
        assert.same(some.currents.frames, images.currents.frames)
        assert.same(some.timeline.frames, images.timeline.frames)
        local page <close> = images:projections({1, 1}, {angles = {19, 19}})
        assert.equal(other:to_string(), page:to_string())
    end)
end)
