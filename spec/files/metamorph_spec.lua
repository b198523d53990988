-- MetaMorph's stacks: planes behind one directory, which the tags UIC1 to UIC4 describe.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local folder

local function path(name)
    return folder .. "/" .. name
end

-- A stack of planes of 2 x 3, whose values are their numbers. `facts`: planes, distances and
-- wavelengths ({over, under} of each), times (of each), pairs (of UIC1: {number, value, or a text
-- at the place that stands for it}), uic4 (a text), order, old (UIC1 of fractions, no UIC2).
local function stack(name, facts)
    local order, body = facts.order or "<", {}
    local at = 8
    local function add(text)
        local place = at
        body[#body + 1], at = text, at + #text
        return place
    end
    for z = 1, facts.planes do
        add((order .. "I2I2I2I2I2I2"):pack(z, z, z, z, z, z))
    end
    local entries = {{256, 4, 1, 3}, {257, 4, 1, 2}, {258, 3, 1, 16}, {259, 3, 1, 1},
        {262, 3, 1, 1}, {273, 4, 1, 8}, {277, 3, 1, 1}, {278, 4, 1, 2}, {279, 4, 1, 12}}
    local function fractions(list)
        local text = ""
        for _, each in ipairs(list) do
            text = text .. (order .. "I4I4"):pack(each[1], each[2])
        end
        return text
    end
    if facts.pairs then
        local text = ""
        for _, pair in ipairs(facts.pairs) do
            text = text .. (order .. "I4I4"):pack(pair[1], type(pair[2]) == "string"
                and add(pair[2]) or pair[2])
        end
        entries[#entries + 1] = {33628, 4, #facts.pairs, add(text)}
    elseif facts.old then
        entries[#entries + 1] = {33628, 5, facts.planes, add(fractions(facts.old))}
    end
    if not facts.old then
        local text = ""
        for z = 1, facts.planes do
            local over, under = table.unpack((facts.distances or {})[z] or {0, 1})
            text = text .. (order .. "I4I4I4I4I4I4"):pack(over, under, 2460000,
                (facts.times or {})[z] or 1, 2460000, 1)
        end
        entries[#entries + 1] = {33629, 5, facts.planes, add(text)}
    end
    if facts.wavelengths then
        entries[#entries + 1] = {33630, 5, facts.planes, add(fractions(facts.wavelengths))}
    end
    if facts.uic4 then
        entries[#entries + 1] = {33631, 4, facts.planes, add(facts.uic4)}
    end
    local directory = at
    add((order .. "I2"):pack(#entries))
    for _, entry in ipairs(entries) do
        local tag, kind, count, own = table.unpack(entry)
        add((order .. "I2I2I4"):pack(tag, kind, count) .. (kind == 3
            and (order .. "I2I2"):pack(own, 0) or (order .. "I4"):pack(own)))
    end
    add((order .. "I4"):pack(0))
    files.write(path(name), (order == "<" and "II" or "MM") .. (order .. "I2I4"):pack(42, directory)
        .. table.concat(body))
    return path(name)
end

local function fraction(over, under, order)
    return ((order or "<") .. "I4I4"):pack(over, under)
end

local function text(value, order)
    return ((order or "<") .. "I4"):pack(#value) .. value
end

-- Pairs of UIC1 for pixels of 0.13 x 0.12 um.
local function calibrated(order)
    return {{0, 1}, {3, 1}, {4, fraction(13, 100, order)}, {5, fraction(3, 25, order)},
        {6, text("um\0", order)}, {7, text("cells\0", order)}}
end

-- A value of UIC4 behind its number.
local function numbered(id, value, order)
    return ((order or "<") .. "I2"):pack(id) .. value
end

local EVEN <const> = {{3, 10}, {3, 10}, {3, 10}}

local function meta_of(name, options)
    local volume <close> = mb.images.open(path(name), options)
    return volume.meta, volume.shape
end

-- The numbers of the planes in their order.
local function planes_of(name)
    local all <close> = mb.images.read(path(name), "host")
    local list = {}
    for z = 1, all.shape[1] do
        list[z] = all:item(z, 2, 3)
    end
    return list
end

describe("a stack of MetaMorph", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("has slices where all have a distance, or not all their times; else times", function()
        for i, case in ipairs {
            {distances = EVEN, times = {1, 2, 3}, slices = 3, step = 3e-7},
            {distances = EVEN, slices = 3, step = 3e-7},
            {times = {1, 2, 3}, slices = 1}, -- no distances
            {distances = {{0, 1}, {3, 10}, {3, 10}}, times = {1, 2, 3}, slices = 1},
            {distances = {{0, 1}, {3, 10}, {3, 10}}, times = {1, 2, 2}, slices = 3, step = 3e-7},
            {times = {1, 1, 1}, slices = 3}, -- tifffile leaves these open
        } do
            case.planes, case.pairs = 3, calibrated()
            stack("a.stk.tif", case)
            local meta = meta_of "a.stk.tif"
            assert.equal(case.slices, meta.slices, i)
            assert.equal(3, meta.slices * meta.frames)
            assert.near(0.13e-6, meta.voxel.pixel, 1e-12)
            assert.near(0.12e-6, meta.voxel.row, 1e-12)
            if case.step then
                assert.near(case.step, meta.voxel.step, 1e-12)
            else
                assert.is_nil(meta.voxel.step)
            end
            assert.same({1, 2, 3}, planes_of "a.stk.tif")
        end
    end)

    it("has the calibration of UIC4 before that of UIC1, whatever stands before it", function()
        for _, order in ipairs {"<", ">"} do
            local own = numbered(4, fraction(2, 10, order), order) .. numbered(5, fraction(25, 100,
                order), order)
            local stages = ""
            for z = 1, 3 do
                stages = stages .. (order .. "I4I4I4I4"):pack(z, 1, z, 1)
            end
            local labels = text("one\0", order) .. text("\0", order) .. text("three\0", order)
            local property = "\4name" .. (order .. "I4"):pack(0) .. "\2\3abc"
            local number = "\4name" .. (order .. "I4"):pack(0) .. "\1" .. fraction(1, 2, order)
            local heights = fraction(1, 1, order):rep(3)
            for _, before in ipairs {"", numbered(28, stages, order), numbered(29, stages, order),
                numbered(37, labels, order), numbered(40, heights, order), numbered(41,
                (order .. "I4I4I4"):pack(1, 1, 1), order), numbered(36, property, order),
                numbered(36, number, order), numbered(7, text("a name\0", order), order),
                numbered(46, fraction(2, 2, order), order), numbered(50, ("\5"):rep(768), order),
                numbered(1, (order .. "I4"):pack(9), order), numbered(16, fraction(2460000, 5,
                order), order)} do
                stack("u.stk.tif", {planes = 3, distances = EVEN, pairs = calibrated(order),
                    order = order, uic4 = before .. numbered(40, heights, order) .. own
                    .. numbered(6, text("um\0", order), order) .. (order .. "I2"):pack(0)})
                local voxel = meta_of("u.stk.tif").voxel
                assert.near(0.2e-6, voxel.pixel, 1e-12)
                assert.near(0.25e-6, voxel.row, 1e-12)
                assert.near(0.3e-6, voxel.step, 1e-12)
            end
            -- the unit alone, and that there is no calibration
            stack("u.stk.tif", {planes = 3, distances = EVEN, pairs = calibrated(order),
                order = order, uic4 = numbered(6, text("nm\0", order), order)
                .. (order .. "I2"):pack(0)})
            assert.near(0.13e-9, meta_of("u.stk.tif").voxel.pixel, 1e-15)
            stack("u.stk.tif", {planes = 3, distances = EVEN, pairs = calibrated(order),
                order = order, uic4 = numbered(3, (order .. "I4"):pack(0), order)
                .. (order .. "I2"):pack(0)})
            assert.is_nil(meta_of("u.stk.tif").voxel.pixel)
        end
    end)

    it("with a UIC4 that is damaged is an error, or has what comes before the damage", function()
        local own = numbered(4, fraction(2, 10))
        for _, rest in ipairs {numbered(999, "abcd"), numbered(6, ("<I4"):pack(5000) .. "um")} do
            stack("d.stk.tif", {planes = 3, distances = EVEN, pairs = calibrated(),
                uic4 = own .. rest .. numbered(5, fraction(1, 1)) .. ("\255"):rep(40)})
            local ok, problem = pcall(meta_of, "d.stk.tif")
            if ok then
                assert.near(0.2e-6, problem.voxel.pixel, 1e-12)
            else
                assert.equal("io", problem.code)
            end
        end
        -- without an end: what stands behind is the directory, or nothing
        stack("d.stk.tif", {planes = 3, distances = EVEN, pairs = calibrated(), uic4 = own:rep(3)})
        local _, problem = pcall(meta_of, "d.stk.tif")
        assert.is_table(problem)
    end)

    it("of several wavelengths is refused, and the options are the way out", function()
        local pairs_of = calibrated()
        for _, same in ipairs {{{525, 1}, {525, 1}, {1050, 2}, {525, 1}}, {{525, 1}, {0, 1}, {0, 0},
            {525, 1}}} do
            stack("w.stk.tif", {planes = 4, times = {1, 2, 3, 4}, pairs = pairs_of,
                wavelengths = same})
            assert.equal(4, meta_of("w.stk.tif").frames)
        end
        stack("w.stk.tif", {planes = 4, distances = {{3, 10}, {3, 10}, {3, 10}, {3, 10}},
            pairs = pairs_of, wavelengths = {{460, 1}, {525, 1}, {460, 1}, {525, 1}}})
        local message, err = helper.failure(mb.images.open, path "w.stk.tif")
        assert.matches("w.stk.tif: MetaMorph says 2 wavelengths of its 4 planes (UIC3), and not "
            .. "which planes are channels: say what the pages are with the option axes", message, 1,
            true)
        assert.same({"io", "axes"}, {err.code, err.arg})
        local meta = meta_of("w.stk.tif", {axes = "ZC2"})
        assert.same({2, 2, 1}, {meta.channels, meta.slices, meta.frames})
        assert.near(0.13e-6, meta.voxel.pixel, 1e-12) -- what the file says is kept
        assert.near(0.3e-6, meta.voxel.step, 1e-12)
        local second <close> = mb.images.open(path "w.stk.tif", {axes = "ZC2", channel = 2})
        local all <close> = mb.volumes.load(second, "host")
        assert.same({2, 4}, {all:item(1, 1, 1), all:item(2, 1, 1)})
        local shape = select(2, meta_of("w.stk.tif", {pages = {2, 4}}))
        assert.same({3, 2, 3}, shape)
    end)

    it("of one plane has its pixel; of a version without UIC2 its planes are not known", function()
        stack("o.stk.tif", {planes = 1, pairs = calibrated()})
        local meta, shape = meta_of "o.stk.tif"
        assert.same({2, 3}, shape)
        assert.near(0.13e-6, meta.voxel.pixel, 1e-12)
        assert.near(0.12e-6, meta.voxel.row, 1e-12)
        stack("o.stk.tif", {planes = 3, old = EVEN})
        local message, err = helper.failure(mb.images.open, path "o.stk.tif")
        assert.matches("it is of MetaMorph before version 2.5, which says 3 planes (UIC1) and not "
            .. "where they are: say", message, 1, true)
        assert.same({"io", "axes"}, {err.code, err.arg})
        assert.same({2, 3}, select(2, meta_of("o.stk.tif", {pages = {1, 1}})))
    end)

    it("is read by each of its names, of images and of scans", function()
        for _, name in ipairs {"n.stk", "N.STK", "n.Stk"} do
            stack(name, {planes = 3, distances = EVEN, pairs = calibrated()})
            assert.same({1, 2, 3}, planes_of(name))
            assert.near(0.13e-6, meta_of(name).voxel.pixel, 1e-12)
            local second <close> = mb.images.open(path(name), {pages = {2, 2}})
            assert.same({2, 3}, second.shape)
            local scan <close> = assert(mb.scan.open(path(name), {angles = {0, 1, 2},
                angle_unit = "deg"}))
            assert.same({3, 2, 3}, {scan.n_angles, scan.rows, scan.cols})
        end
        local whole <close> = mb.images.read(path "n.stk", "host")
        local message, err = helper.failure(mb.images.write, path "new.stk", whole)
        assert.matches("new.stk: images are .tif, .npy, .h5 or .zarr", message, 1, true)
        assert.same({"argument", "name"}, {err.code, err.arg})
        mb.system.mkdir(path "several")
        stack("several/a.STK", {planes = 3, distances = EVEN, pairs = calibrated()})
        stack("several/b.stk", {planes = 3, distances = EVEN, pairs = calibrated()})
        message = helper.failure(mb.images.open, path "several")
        assert.matches("the folder has no files that end in .tif or .tiff, and 2 TIFF files of "
            .. "other names, such as a.STK: give a pattern, such as " .. path "several/*.STK",
            message, 1, true)
        local one <close> = mb.images.open(path "several/b.stk")
        assert.same({3, 2, 3}, one.shape)
    end)

    it("is what tifffile reads", function()
        oracle.needs "tifffile"
        local cases = {
            {planes = 3, distances = EVEN, times = {1, 2, 3}, pairs = calibrated()},
            {planes = 4, times = {4, 5, 6, 7}, pairs = calibrated()},
            {planes = 3, times = {1, 1, 1}, pairs = calibrated()},
            {planes = 3, distances = EVEN, pairs = calibrated(), uic4 = numbered(28, fraction(1, 1)
                :rep(6)) .. numbered(37, text("a\0"):rep(3)) .. numbered(40, fraction(1, 1):rep(3))
                .. numbered(4, fraction(1, 4)) .. numbered(6, text("um\0")) .. "\0\0"},
            {planes = 2, distances = EVEN, pairs = calibrated(), wavelengths = {{525, 1}, {525, 1}}},
        }
        local names = {}
        for i, case in ipairs(cases) do
            names[i] = stack(("t%d.stk.tif"):format(i), case)
        end
        files.write(path "t.py", ([[
import tifffile
for name in "%s".split():
    t = tifffile.TiffFile(name)
    s, m = t.series[0], t.stk_metadata
    print(s.axes[0], s.shape[0], s.asarray()[:, 1, 2].tolist(), "%%.6g" %% m["XCalibration"],
        "%%.6g" %% m["YCalibration"], m["CalibrationUnits"])
]]):format(table.concat(names, " ")))
        local said, ok = files.run(("%s %s"):format(os.getenv "MOONBEAM_ORACLES"
            or "build/oracles/bin/python", path "t.py"))
        assert.is_true(ok, said)
        local i = 0
        for line in said:gmatch "[^\n]+" do
            i = i + 1
            local letter, count, list, pixel, row, unit = line:match
                "^(%a) (%d+) (%b[]) (%S+) (%S+) (%S+)$"
            local meta = meta_of(("t%d.stk.tif"):format(i))
            assert.equal(tonumber(count), letter == "T" and meta.frames or meta.slices)
            assert.equal(list, "[" .. table.concat(planes_of(("t%d.stk.tif"):format(i)), ", "):gsub(
                "%.0", "") .. "]")
            assert.equal("um", unit)
            assert.near(tonumber(pixel) * 1e-6, meta.voxel.pixel, 1e-12)
            assert.near(tonumber(row) * 1e-6, meta.voxel.row, 1e-12)
        end
        assert.equal(#cases, i)
    end)
end)
