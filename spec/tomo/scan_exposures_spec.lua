-- Exposure times of flats and projections: flats that were exposed otherwise are scaled.

local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local made = require "spec.support.frame_scans"
local mb = require "moonbeam"

local DETECTOR <const> = "/measurement/instrument/detector/"
local FLATS <const> = "/process/acquisition/flat_fields/"
local PLAIN <const> = {"flat_field"}

describe("the exposure times of a scan", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function opened(objects, options, name)
        local path = made.write(folder .. "/" .. (name or "scan.h5"), objects)
        local scan, problem = mb.scan.open(path, options)
        return assert(scan, tostring(problem))
    end

    -- Asserts the warnings of a scan, by a part of each.
    local function warns(scan, ...)
        assert.equal(select("#", ...), #scan.warnings, table.concat(scan.warnings, "\n"))
        for i, words in ipairs {...} do
            assert.is_truthy(scan.warnings[i]:find(words, 1, true), scan.warnings[i])
        end
    end

    -- Frames less a dark that is the same in all pixels, some times as bright.
    local function brighter(frames, factor)
        for _, frame in ipairs(frames) do
            for _, row in ipairs(frame) do
                for c = 1, #row do
                    row[c] = row[c] * factor + 20
                end
            end
        end
        return frames
    end

    local function dark()
        return brighter(made.darks(1, 1), 0)
    end

    -- A Data Exchange scan whose flats have some times the counts.
    local function exchange(factor, changes)
        local objects = made.exchange {["/exchange/data"] = brighter(made.data(), 1),
            ["/exchange/data_dark"] = dark(),
            ["/exchange/data_white"] = brighter(made.flats(1, 4), factor)}
        for name, value in pairs(changes or {}) do
            objects[name] = value
        end
        return objects
    end

    -- Asserts that flat_field makes of a scan what it makes of equal exposures, in any blocks.
    local function cured(scan, recipe)
        local equal <close> = opened(exchange(1), nil, "equal.h5")
        local want <close> = check.result(equal, PLAIN)
        local _ <close> = check.gives(want, scan, recipe or PLAIN, nil, 1e-5)
    end

    for _, name in ipairs {DETECTOR .. "exposure_time_flat", FLATS .. "flat_exposure_time"} do
        it("scale the flats of Data Exchange: " .. name, function()
            local scan <close> = opened(exchange(3, {[DETECTOR .. "exposure_time"] = 0.1,
                [name] = 0.3}))
            warns(scan)
            assert.is_truthy(scan:describe():find("flats exposed 3 times as long", 1, true),
                scan:describe())
            cured(scan)
        end)
    end

    it("have units", function()
        local scan <close> = opened(exchange(3, {
            [DETECTOR .. "exposure_time"] = {value = 100, attributes = {units = "ms"}},
            [FLATS .. "flat_exposure_time"] = {value = 0.3, attributes = {units = "s"}}}))
        warns(scan)
        cured(scan)
        local odd <close> = opened(exchange(3, {
            [DETECTOR .. "exposure_time"] = {value = 100, attributes = {units = "ms"}},
            [FLATS .. "flat_exposure_time"] = 0.3}))
        warns(odd, "are not used: some are not above 0, or have another unit")
        assert.is_nil(odd.exposures)
    end)

    it("make the same volume with and without the axis given, in any blocks", function()
        local one = made.write(folder .. "/one.h5", exchange(3, {[DETECTOR .. "exposure_time"] = 0.1,
            [FLATS .. "flat_exposure_time"] = 0.3}))
        local want, text = made.volume(one)
        assert.is_truthy(text:find("flats exposed 3 times as long", 1, true), text)
        assert.is_true(want == made.volume(one, "--chunk 1 --no-overlap"))
        assert.is_true(want == made.volume(one, "--flats-exposure 3"))
        local _, found = made.volume(one, "-c auto")
        assert.is_truthy(found:find("axis       column", 1, true), found)
        local other
        want, other = made.volume(one, "--flats-exposure 1")
        assert.is_truthy(other:find("warning: --flats-exposure is 1, and '" .. DETECTOR
            .. "exposure_time' says 3: the former is taken", 1, true), other)
        local bare = made.write(folder .. "/bare.h5", exchange(3))
        assert.is_true(want == made.volume(bare))
    end)

    it("do not matter to flat_field_eigen, which fits the brightness of each projection", function()
        local recipe = {"flat_field_eigen"}
        local equal <close> = opened(exchange(1), nil, "equal.h5")
        local want <close> = check.result(equal, recipe)
        local scan <close> = opened(exchange(3, {[DETECTOR .. "exposure_time"] = 0.1,
            [FLATS .. "flat_exposure_time"] = 0.3}))
        warns(scan)
        local _ <close> = check.gives(want, scan, recipe, nil, 1e-4)
    end)

    it("change nothing where they are equal, unknown, or said to be the same", function()
        local bare <close> = opened(exchange(2), nil, "bare.h5")
        local want <close> = check.result(bare, PLAIN)
        for _, changes in ipairs {{[DETECTOR .. "exposure_time"] = 0.1},
            {[DETECTOR .. "exposure_time"] = 0.1, [FLATS .. "flat_exposure_time"] = 0.10001},
            {[DETECTOR .. "exposure_time"] = 0}, {[FLATS .. "flat_exposure_time"] = 0.3},
            {[DETECTOR .. "exposure_time"] = 0.1, [FLATS .. "flat_exposure_time"] = 0.3,
                [FLATS .. "different_flat_exposure"] = "Same"},
            {[DETECTOR .. "exposure_time"] = 0.1, [FLATS .. "flat_exposure_time"] = 0.3,
                [FLATS .. "different_flat_exposure"] = {83, 97, 109, 101, 0, 0}}} do
            local scan <close> = opened(exchange(2, changes))
            warns(scan)
            local _ <close> = check.gives(want, scan, PLAIN)
        end
    end)

    it("are told where they cannot be right, or darks differ", function()
        for value, words in pairs {[0 / 1] = "some are not above 0", [-1] = "some are not above 0",
            [1e6] = "1e+07 times"} do
            local scan <close> = opened(exchange(2, {[DETECTOR .. "exposure_time"] = 0.1,
                [FLATS .. "flat_exposure_time"] = value}))
            warns(scan, words)
            assert.is_nil(scan.exposures)
            local given <close> = opened(exchange(2, {[DETECTOR .. "exposure_time"] = 0.1,
                [FLATS .. "flat_exposure_time"] = value}), {flats_exposure = 2})
            cured(given)
        end
        local darks <close> = opened(exchange(2, {[DETECTOR .. "exposure_time"] = 0.1,
            ["/process/acquisition/dark_fields/dark_exposure_time"] = 0.5}))
        warns(darks, "the darks were exposed for 0.5, the projections for 0.1")
    end)

    describe("of NXtomo", function()
        local TIMES <const> = "/instrument/detector/count_time"

        -- Frames as bright as they were exposed.
        local function nxtomo(times, others)
            local _, keys, frames = made.nxtomo()
            for i, key in ipairs(keys) do
                frames[i] = brighter({frames[i]}, key == 2 and 0 or times and times[i] or 1)[1]
            end
            local objects = made.nxtomo {["/instrument/detector/data"] = frames,
                [TIMES] = others or times or false}
            return objects
        end

        local function list_of(darks, flats, projection, late)
            local list = {darks, darks, flats, flats}
            for i = 1, made.N do
                list[#list + 1] = type(projection) == "function" and projection(i) or projection
            end
            list[#list + 1], list[#list + 2] = late or flats, late or flats
            return list
        end

        it("scale flats and projections frame by frame", function()
            local equal <close> = opened(nxtomo(), nil, "equal.h5")
            local step = {{"flat_field", interpolation = "linear"}}
            for _, times in ipairs {list_of(1, 3, 1), list_of(1, 2, 1, 3), list_of(1, 2,
                function(i) return i % 3 + 1 end)} do
                local scan <close> = opened(nxtomo(times))
                for _, recipe in ipairs {PLAIN, step} do
                    local want <close> = check.result(equal, recipe)
                    local _ <close> = check.gives(want, scan, recipe, nil, 1e-5)
                end
            end
            local selected <close> = opened(nxtomo(list_of(1, 2, function(i) return i end)))
            local part = {{"select", every = 3}, "flat_field"}
            local want <close> = check.result(equal, part)
            local _ <close> = check.gives(want, selected, part, nil, 1e-5)
        end)

        it("count beside the ring current", function()
            local current = {}
            for i = 1, made.N + 6 do
                current[i] = 200
            end
            local objects = nxtomo(list_of(1, 3, 1))
            objects["/entry/control"] = {group = "NXmonitor"}
            objects["/entry/control/data"] = current
            local equal <close> = opened(nxtomo(), nil, "equal.h5")
            local scan <close> = opened(objects)
            local want <close> = check.result(equal, PLAIN)
            local _ <close> = check.gives(want, scan, {{"flat_field", normalize_current = "yes"}}, nil,
                1e-5)
        end)

        it("are told where they are garbage, and not used", function()
            local equal <close> = opened(nxtomo(), nil, "equal.h5")
            local want <close> = check.result(equal, PLAIN)
            local function garbage(i)
                return i == 3 and 0 / 0 or 1
            end
            for _, times in ipairs {list_of(1, 1, garbage), list_of(0, 0, 0)} do
                local scan <close> = opened(nxtomo(nil, times))
                warns(scan, "the exposure times in '/entry" .. TIMES .. "' are not used")
                local _ <close> = check.gives(want, scan, PLAIN)
            end
            local one <close> = opened(nxtomo(nil, 0.1))
            warns(one)
            local other <close> = opened(nxtomo(nil, {1, 2, 3}))
            warns(other)
        end)
    end)

    it("may be given for arrays", function()
        local data <close> = mb.array(brighter(made.data(), 1), {dtype = "u16", device = "host"})
        local flats <close> = mb.array(brighter(made.flats(1, 4), 3), {dtype = "u16",
            device = "host"})
        local darks <close> = mb.array(dark(), {dtype = "u16", device = "host"})
        local scan = mb.scan.of_arrays(data, mb.tomo.angles(made.N), {flats = flats, darks = darks,
            flats_exposure = 3})
        cured(scan)
        local text = helper.failure(mb.scan.of_arrays, data, mb.tomo.angles(made.N),
            {flats = flats, flats_exposure = 0})
        assert.is_truthy(text:find("flats_exposure", 1, true), text)
    end)
end)
