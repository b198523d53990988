local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local N, H, W <const> = 16, 5, 14

-- A beam that falls linearly, in space too, by up to 40 % until frame `last`; the current decays
-- and is refilled.
local function current_at(t)
    return 250 - 3 * t + (t > 9 and 33 or 0)
end

local function open_at(t, last, y, x)
    return (2000 + 40 * x + 25 * y) * (1 - 0.4 * t / last * (x + y) / (W + H))
end

local function frame(t, last, through, current)
    local rows = {}
    for y = 1, H do
        rows[y] = {}
        for x = 1, W do
            rows[y][x] = 90 + open_at(t, last, y, x) * (current and current_at(t) / 250 or 1)
                * (through and through[y][x] or 1)
        end
    end
    return rows
end

local function object()
    local rows = {}
    for y = 1, H do
        rows[y] = {}
        for x = 1, W do
            rows[y][x] = 0.1 + 0.8 * math.sin(0.4 * x + y) ^ 2
        end
    end
    return rows
end

-- Arrays of a scan: 3 flats, half of the projections, 2 flats, the others, 2 flats. Frames are
-- numbered from 1 as they were taken. Also what the projections must become.
local function simulated(current)
    local order = {}
    for _, run in ipairs {{"flats", 3}, {"data", N / 2}, {"flats", 2}, {"data", N / 2},
        {"flats", 2}} do
        for _ = 1, run[2] do
            order[#order + 1] = run[1]
        end
    end
    local through, lists = object(), {flats = {}, data = {}, keys = {}, want = {},
        current = {}, flats_current = {}, all = {}}
    for t, kind in ipairs(order) do
        local made = frame(t, #order, kind == "data" and through or nil, current)
        lists[kind][#lists[kind] + 1] = made
        lists.keys[t] = kind == "data" and 0 or 1
        lists.all[t] = current_at(t)
        if kind == "data" then
            lists.current[#lists.current + 1] = current_at(t)
            lists.want[#lists.want + 1] = through
        else
            lists.flats_current[#lists.flats_current + 1] = current_at(t)
        end
    end
    return lists
end

-- An NXtomo file of it, with two darks at the end; `alone`: with currents of projections only.
local function nxtomo(folder, lists, alone)
    local path = folder .. "/scan.nxs"
    local file <close> = assert(mb.h5.create(path, {overwrite = true}))
    local frames, keys, nf, nd = {}, {}, 0, 0
    for t, key in ipairs(lists.keys) do
        nf, nd = nf + key, nd + 1 - key
        frames[t], keys[t] = key == 1 and lists.flats[nf] or lists.data[nd], key
    end
    for _ = 1, 2 do
        local dark = {}
        for y = 1, H do
            dark[y] = {}
            for x = 1, W do
                dark[y][x] = 90
            end
        end
        frames[#frames + 1], keys[#keys + 1] = dark, 2
    end
    local angles, currents = {}, {}
    for t = 1, #keys do
        angles[t], currents[t] = 180 * t / #keys, lists.all[t] or 0
    end
    for _, group in ipairs {"/entry NXentry", "/entry/instrument NXinstrument",
        "/entry/instrument/detector NXdetector", "/entry/sample NXsample",
        "/entry/control NXmonitor"} do
        file:group(group:match "%S+", group:match "%S+$")
    end
    file:write("/entry/definition", "NXtomo")
    local data <close> = mb.array(frames)
    file:write("/entry/instrument/detector/data", data)
    for name, list in pairs {["instrument/detector/image_key"] = keys,
        ["control/data"] = alone and lists.current or currents} do
        local array <close> = mb.array(list, {dtype = "f64"})
        file:write("/entry/" .. name, array)
    end
    local degrees <close> = mb.array(angles, {dtype = "f64"})
    file:write("/entry/sample/rotation_angle", degrees, {attributes = {units = "deg"}})
    file:finish()
    return path
end

local function arrays(lists, options)
    local own = {}
    for name, value in pairs(options or {}) do
        own[name] = value
    end
    local data <const> = mb.array(lists.data)
    own.flats, own.darks = mb.array(lists.flats), mb.full({2, H, W}, 90)
    local scan = check.scan(data, own)
    return setmetatable({scan = scan}, {__close = function()
        data:release()
        own.flats:release()
        own.darks:release()
    end})
end

describe("the step flat_field", function()
    it("takes a beam out that drifts, between groups of flats of an NXtomo file", function()
        local folder = files.folder()
        for _, current in ipairs {false, true} do
            local lists = simulated(current)
            local scan <close> = assert(mb.scan.open(nxtomo(folder, lists)))
            assert.is_truthy(scan:describe():find("7 flats in 3 groups, 2 darks, ring current", 1,
                true))
            local want <close> = mb.array(lists.want)
            local _ <close> = check.gives(want, scan, {{"flat_field", interpolation = "linear",
                normalize_current = current and "yes" or "no"}}, nil, 3e-6)
            local mean <close> = check.result(scan, {"flat_field"})
            assert.is_true(helper.difference(want, mean) > 0.02)
        end
        files.remove(folder)
    end)

    it("takes the presets of other packages", function()
        local folder = files.folder()
        local lists = simulated(true)
        local scan <close> = assert(mb.scan.open(nxtomo(folder, lists)))
        local want <close> = mb.array(lists.want)
        local _ <close> = check.gives(nil, scan, {{"flat_field", preset = "nabu", mode = "mean"}})
        local nabu <close> = check.result(scan, {{"flat_field", preset = "nabu", mode = "mean"}})
        helper.assert_close(want, nabu, 3e-6)
        local httomo <close> = check.result(scan, {{"flat_field", preset = "httomo"}})
        local plain <close> = check.result(scan, {{"flat_field", normalize_current = "no"}})
        assert.is_true(plain:to_string() == httomo:to_string())
        -- what the file says is done unless it is refused
        local usual <close> = check.result(scan, {"flat_field"})
        local wanted <close> = check.result(scan, {{"flat_field", normalize_current = "yes"}})
        assert.is_true(usual:to_string() == wanted:to_string())
        assert.is_false(usual:to_string() == plain:to_string())
        files.remove(folder)
    end)

    it("does not use currents of a file that are none, and says so once", function()
        local folder = files.folder()
        for dead, count in pairs {[0] = 0, [5] = 1} do
            local lists = simulated(false)
            for t = 1, #lists.all do
                lists.all[t] = dead == 0 and 7 or t == dead and 0 or lists.all[t]
            end
            local scan <close> = assert(mb.scan.open(nxtomo(folder, lists)))
            local said = table.concat(scan.warnings, "\n")
            assert.equal(count == 0, scan.currents ~= nil)
            assert.equal(count == 1, said:find("not above 0 at 1 frame:", 1, true) ~= nil)
            local usual <close> = check.gives(nil, scan, {"flat_field"})
            local plain <close> = check.result(scan, {{"flat_field", normalize_current = "no"}})
            assert.is_true(usual:to_string() == plain:to_string())
        end
        local path = nxtomo(folder, simulated(true), true)
        local scan <close> = assert(mb.scan.open(path))
        assert.is_nil(scan.currents)
        assert.matches("'/entry/control/data' is not used: it has no numbers for the flats",
            table.concat(scan.warnings, "\n"))
        local all <close> = assert(mb.scan.open(path, {current = "/entry/control/data",
            flats_current = simulated(true).flats_current}))
        assert.equal(#all.frames, #all.currents.frames)
        assert.is_nil(table.concat(all.warnings, "\n"):find("ring current", 1, true))
        files.remove(folder)
    end)

    it("knows frames by their numbers behind select, and cut along rows", function()
        local lists = simulated(true)
        -- times of arrays: 3 flats before projection 1, 2 after 8, 2 after 16. The beam is linear
        -- in the frame's number, which is not that of the projections, so a file is the exact case.
        local given = {flat_positions = {0, 0, 0, 8, 8, 16, 16}, current = lists.current,
            flats_current = lists.flats_current}
        local made <close> = arrays(lists, given)
        local step = {"flat_field", interpolation = "linear", normalize_current = "yes"}
        local whole <close> = check.gives(nil, made.scan, {step})
        local part <close> = check.gives(nil, made.scan, {{"select", every = 3}, step})
        local expected <close> = whole:view {1, 16, 3}
        local copy <close> = expected:copy()
        assert.is_true(copy:to_string() == part:to_string())
        local slices <close> = check.gives(nil, made.scan, {step, "minus_log",
            {"fbp", center = 6}})
        local lines <close> = mb.minus_log(whole)
        local sinograms <close> = lines:permute(2, 1, 3)
        local want <close> = mb.tomo.fbp(sinograms, mb.tomo.angles(N), {center = 6,
            filter = "shepp-logan", padding = "edge", circle = 1})
        helper.assert_close(want, slices, 1e-5)
    end)

    it("finds the axis behind it as behind any step", function()
        local folder = files.folder()
        local path = folder .. "/scan.nxs"
        local output, status = helper.run_program(("scripts/simulate.lua %s -n 64 -a 60 "
            .. "--rows 8 --beam-drift 0.3 --format nxtomo --center 33.5"):format(path))
        assert.equal(0, status, output)
        local scan <close> = assert(mb.scan.open(path))
        local recipe = {{"flat_field", interpolation = "linear"}, "minus_log", "center", "fbp"}
        local p = mb.pipeline(scan, recipe, {quiet = true})
        local slices, done = p:slices()
        slices:release()
        assert.is_true(done.as_planned)
        assert.near(33.5, done.values.center, 0.5)
        files.remove(folder)
    end)

    it("says what it needs to know", function()
        local lists = simulated(false)
        local bare <close> = arrays(lists)
        check.refused("the scan does not say when its flats were taken", bare.scan,
            {{"flat_field", interpolation = "linear"}})
        check.refused("the ring current at the projections is not known; give the option current",
            bare.scan, {{"flat_field", normalize_current = "yes"}})
        local half <close> = arrays(lists, {current = lists.current})
        assert.matches("add the option flats_current", half.scan.warnings[1])
        check.refused("the ring current at the flats is not known; give the option flats_current",
            half.scan, {{"flat_field", normalize_current = "yes"}})
        lists.current[3] = 0
        local dead <close> = arrays(lists, {current = lists.current,
            flats_current = lists.flats_current})
        check.refused("the ring current at projection 3 is 0; leave such frames out", dead.scan,
            {{"flat_field", normalize_current = "yes"}})
        check.refused("normalize_current is the string 'maybe'; give no, yes, if_known", dead.scan,
            {{"flat_field", normalize_current = "maybe"}})
    end)
end)

describe("the time of flats", function()
    it("is an option of a scan", function()
        local lists = simulated(false)
        local function refused(part, options)
            local text = helper.failure(arrays, lists, options)
            assert.is_truthy(text:find(part, 1, true), text)
            mb.collect()
        end
        helper.keep_live()
        refused("flat_positions has 2 numbers; give one for each of the 7", {flat_positions =
            {0, 8}})
        refused("element 2 of flat_positions is 3, after 5; they must ascend", {flat_positions =
            {5, 3, 3, 8, 8, 8, 9}})
        refused("current has 1 number; give one for each of the 16", {current = {1}})
    end)

    it("is read from a Data Exchange file that names the mode", function()
        local folder = files.folder()
        for _, case in ipairs {{"Both", {0, 0, 16, 16}}, {"Start", {0, 0, 0, 0}},
            {"End", {16, 16, 16, 16}}, {"None"}, {}} do
            local path = folder .. "/dx.h5"
            local file = assert(mb.h5.create(path))
            local data <close> = mb.full({16, 2, 3}, 5)
            local flats <close> = mb.full({4, 2, 3}, 9)
            file:write("/exchange/data", data)
            file:write("/exchange/data_white", flats)
            local degrees <close> = mb.array(mb.tomo.angles(16, 3), {dtype = "f64"})
            file:write("/exchange/theta", degrees, {attributes = {units = "rad"}})
            if case[1] then
                file:write("/process/acquisition/flat_fields/flat_field_mode", case[1])
            end
            file:finish()
            local scan <close> = assert(mb.scan.open(path))
            assert.same(case[2], scan.timeline and scan.timeline.flats)
            local named <close> = assert(mb.scan.open(path, {flat_positions = {0, 0, 0, 5}}))
            assert.same({0, 0, 0, 5}, named.timeline.flats)
            assert.equal(0.5, named.timeline.frames[1])
            os.remove(path)
        end
        files.remove(folder)
    end)
end)
