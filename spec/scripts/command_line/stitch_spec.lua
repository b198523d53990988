-- stitch: volumes of overlapping scans at different heights become one. Overlaps by positions and
-- by correlation, what is said where they differ, blending, memory, formats, mistakes.
local commands = require "spec.support.commands"
local mb = require "moonbeam"

local SIZE <const>, SLICES <const>, STEP <const> = 64, 60, 5e-6
local FIRST <const> = {1, 18, 36} -- 25 slices each: 8 and 7 in common

local shell, whole

local function path(name)
    return shell:path(name)
end

local function stitch(names, options, output)
    local words = {}
    for word in names:gmatch "%S+" do
        words[#words + 1] = path(word)
    end
    return commands.run("stitch.lua", ("%s -o %s %s"):format(table.concat(words, " "),
        path(output or "joined.h5"), options or ""))
end

-- The values of a volume file that differ from slices first ... last of the object at most.
local function farthest(name, first, last)
    local made <close> = mb.images.read(path(name), "host")
    local part <close> = whole:view {first or 1, last or SLICES}
    assert.same(part.shape, made.shape)
    local real <close> = made:cast "f32"
    local difference <close> = mb.binary(real, "sub", {b = part})
    local size <close> = mb.unary(difference, "abs")
    return size:max()
end

-- A volume of the slices from `first` on, and the scan that it says it is of.
local function write(name, first, noise, options)
    local scan = path(name .. ".nx")
    do
        local file <close> = mb.h5.create(scan)
        local height = 12 - (first - 1) * STEP * 1e3
        file:write("/entry/sample/z_translation", {height, height, height},
            {attributes = {units = "mm"}})
        file:finish()
    end
    local part <close> = whole:view {first, first + 24}
    local random <close> = mb.random(part.shape, {seed = first, low = -noise, high = noise})
    local values <close> = mb.binary(part, "add", {b = random})
    local stored <close> = values:cast(options.dtype or "f32")
    local made <close> = mb.result.create(path(options.file or name .. ".h5"), {shape = part.shape,
        dtype = options.dtype, pixel_size = STEP, input = scan})
    made:write(stored, 1)
    made:finish()
end

describe("stitch", function()
    setup(function()
        shell = commands.folder()
        whole = mb.phantom.spheres({SLICES, SIZE, SIZE}, {seed = 3, count = 120})
        mb.binary(whole, "mul", {scalar = 100 / whole:max(), out = whole})
        for i, first in ipairs(FIRST) do
            write("v" .. i, first, 1, {})
            write("u" .. i, first, 0, {dtype = "u8"})
        end
        write("tif", FIRST[2], 1, {file = "v2.tif"})
        write("zarr", FIRST[3], 1, {file = "v3.zarr"})
    end)

    teardown(function()
        whole:release()
        shell:remove()
    end)

    it("joins by positions and by correlation, with the memory that was predicted", function()
        for i, option in ipairs {"", "--by correlation", "--overlap 8,7"} do
            local name = ("same%d.h5"):format(i)
            local status, text = stitch("v1.h5 v2.h5 v3.h5", option, name)
            assert.equal(0, status, text)
            assert.is_nil(text:find "warning", text)
            assert.matches("overlap    8 slices of [^\n]*v1.h5' and [^\n]*v2.h5', by "
                .. ({"positions %(8%.00%), correlation [%d.]+", "correlation %(0%.9%d%)",
                    "%-%-overlap, correlation"})[i], text)
            assert.matches("overlap    7 slices of [^\n]*v2.h5' and [^\n]*v3.h5'", text)
            local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
            assert.equal(predicted, measured)
            assert.is_true(farthest(name) < 1.01)
        end
    end)

    it("measures how volumes differ beside the height, says so, and corrects it where asked", function()
        -- v2 with other values, 3 rows and -2.5 columns beside its place; v3 beside v2 by as much.
        local function beside(name, rows, columns, factor, offset)
            local volume <close> = mb.images.read(path(name .. ".h5"), "host")
            local down, right = {}, {}
            for z = 1, volume.shape[1] do
                down[z], right[z] = rows, columns
            end
            local moved <close> = mb.vertical_shift(volume, down)
            mb.horizontal_shift(moved, right, {out = moved})
            mb.binary(moved, "mul", {scalar = factor, out = moved})
            mb.binary(moved, "add", {scalar = offset, out = moved})
            mb.npy.write(path(name .. ".npy"), moved)
        end
        beside("v1", 0, 0, 1, 0)
        beside("v2", 3, -2.5, 1.25, 5)
        beside("v3", 6, 0, 0.8, -2)
        local names, common = "v1.npy v2.npy v3.npy", "--overlap 8,7 "
        local status, text = stitch(names, common, "d.h5")
        assert.equal(0, status, text)
        assert.matches("warning: '[^\n]*v1.npy' and '[^\n]*v2.npy' are 3.%d+ rows and %-2.[45]%d "
            .. "columns beside each other: %-%-lateral auto moves the second", text)
        assert.matches("warning: the values of '[^\n]*v1.npy' and '[^\n]*v2.npy' differ by the factor "
            .. "0.[78]%d* and the offset %-[34].%d*: %-%-intensity auto", text)
        -- The mean difference from the object where all volumes see it.
        local function error_of(name)
            local made <close> = mb.images.read(path(name), "host")
            local inside = {mb.all, {11, SIZE - 10}, {11, SIZE - 10}}
            local a <close> = made:view(table.unpack(inside))
            local b <close> = whole:view(table.unpack(inside))
            local difference <close> = a - b
            local size <close> = mb.unary(difference, "abs")
            return size:mean()
        end
        local errors = {error_of "d.h5"}
        for i, more in ipairs {"--lateral auto", "--intensity auto",
            "--lateral auto --intensity auto"} do
            status, text = stitch(names, common .. more .. " --overwrite", "d.h5")
            assert.equal(0, status, text)
            assert.equal(i == 1, text:find("--intensity auto makes", 1, true) ~= nil)
            assert.equal(i == 2, text:find("--lateral auto moves", 1, true) ~= nil)
            local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
            assert.equal(predicted, measured)
            errors[i + 1] = error_of "d.h5"
        end
        assert.is_true(errors[4] < 1.5, errors[4])
        assert.is_true(errors[4] < errors[2] and errors[4] < errors[3] and errors[2] < errors[1])
        local file <close> = mb.h5.open(path "d.h5")
        local found = file:value "/entry/reconstruction/parameters/lateral_rows"
        assert.near(3, found[1], 0.3)
        assert.near(3, found[2], 0.3)
        status, text = stitch("v1.npy v2.npy", "--overlap 0 --lateral auto", "e.h5")
        assert.equal(1, status)
        assert.matches("have no slices in common, which %-%-lateral auto", text)
    end)

    it("blends common slices linearly, evenly or not at all", function()
        local one <close> = mb.ones {6, 8, 8}
        local two <close> = mb.zeros {6, 8, 8}
        mb.npy.write(path "one.npy", one)
        mb.npy.write(path "two.npy", two)
        for blend, expected in pairs {linear = {0.75, 0.5, 0.25}, mean = {0.5, 0.5, 0.5},
            first = {1, 1, 1}} do
            local status, text = stitch("one.npy two.npy", "--overlap 3 --blend " .. blend
                .. " --overwrite", "flat.h5")
            assert.equal(0, status, text)
            local made = shell:volume_of "flat.h5"
            assert.equal(9, #made)
            for z, value in ipairs {1, 1, 1, expected[1], expected[2], expected[3], 0, 0, 0} do
                assert.near(value, made[z][3][5], 1e-6)
            end
        end
    end)

    it("reads and writes all formats, and goes on with a stitched volume", function()
        local status, text = stitch("v1.h5 v2.tif", "", "two.zarr")
        assert.equal(0, status, text)
        assert.matches("by positions %(8%.00%)", text)
        status, text = stitch("two.zarr v3.zarr", "", "three.tif")
        assert.equal(0, status, text)
        assert.matches("by positions %(7%.00%)", text)
        assert.is_true(farthest "three.tif" < 1.01)
        status, text = stitch("u1.h5 u2.h5 u3.h5", "--by correlation", "u.tif")
        assert.equal(0, status, text)
        assert.matches("uint8", text)
        assert.is_true(farthest "u.tif" <= 0.51)
    end)

    it("says when positions and correlation differ, and who is believed", function()
        local status, text = stitch("v1.h5 v2.h5", "--heights 12,11.94", "d1.h5")
        assert.equal(0, status)
        assert.matches("warning: [^\n]*v1.h5' and [^\n]*v2.h5' have 13%.00 slices in common by "
            .. "their positions, but 8 by correlation %(0%.9%d there, %-?[%d.]+ here%); "
            .. "%-%-by correlation takes", text)
        assert.matches("overlap    13 slices", text)
        status, text = stitch("v1.h5 v2.h5", "--heights 12,11.94 --by correlation", "d2.h5")
        assert.equal(0, status)
        assert.matches("warning: [^\n]*have 8 slices in common by correlation %(0%.9%d%), but "
            .. "13%.00 by their positions", text)
        assert.is_true(farthest("d2.h5", 1, 42) < 1.01)
        status, text = stitch("v3.h5 v1.h5", "--overlap 8", "d3.h5")
        assert.equal(0, status)
        assert.matches("warning: [^\n]*are not alike where they overlap [^\n]*order of their "
            .. "slices%?", text)
    end)

    it("plans without writing, and works in parts that fit the budget", function()
        local status, text = stitch("v1.h5 v2.h5", "--plan", "none.h5")
        assert.equal(0, status, text)
        assert.is_false(commands.exists(path "none.h5"))
        local peak = math.tointeger(tonumber(text:match "peak [^\n]-%((%d+) bytes%)"))
        status, text = stitch("v1.h5 v2.h5", "--budget " .. peak, "small.h5")
        assert.equal(0, status, text)
        assert.matches(("predicted %d bytes, measured %d bytes"):format(peak, peak), text)
        status, text = stitch("v1.h5 v2.h5", "--budget 100K", "none.h5")
        assert.equal(1, status)
        local typed, enough = text:match "; give %-%-budget (%S+) or more %((%d+) bytes%)\n$"
        status, text = stitch("v1.h5 v2.h5", "--budget " .. assert(typed, text), "least.h5")
        assert.equal(0, status, text)
        assert.is_true(farthest("least.h5", 1, 42) < 1.01)
        local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
        assert.equal(predicted, measured)
        assert.equal(enough, measured)
        status, text = stitch("v1.h5 v2.h5", "--plan --budget " .. tonumber(enough) - 512, "no.h5")
        assert.equal(1, status)
        assert.matches(("(%d bytes)"):format(enough), text, 1, true)
    end)

    it("says what all pairs need, whatever their types and options are", function()
        local image <close> = mb.random({12, 30, 32}, {seed = 3, dtype = "u16", high = 60000})
        local real <close> = image:cast "f32"
        for i, range in ipairs {{1, 6}, {4, 9}, {7, 12}} do
            local part <close> = (i == 3 and real or image):view(range, mb.all, mb.all)
            local made <close> = part:copy()
            mb.images.write(path("p" .. i .. ".npy"), made)
        end
        for _, options in ipairs {"", "--lateral auto", "--intensity auto --blend mean",
            "--lateral auto --intensity auto"} do
            local words = options .. " --overlap 3 --overwrite --budget "
            local status, text = stitch("p1.npy p2.npy p3.npy", words .. "10K", "p.h5")
            assert.equal(1, status)
            status, text = stitch("p1.npy p2.npy p3.npy", words
                .. assert(text:match "; give %-%-budget (%S+) or more", text), "p.h5")
            assert.equal(0, status, text)
            local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
            assert.equal(predicted, measured)
        end
    end)

    it("leaves nothing under the name of the result when it fails", function()
        local long <close> = mb.ones {4, 8, 8}
        mb.npy.write(path "cut.npy", long)
        local file = assert(io.open(path "cut.npy", "rb"))
        local head = file:read(900)
        file:close()
        file = assert(io.open(path "cut.npy", "wb"))
        file:write(head)
        file:close()
        mb.npy.write(path "long.npy", long)
        local status = stitch("long.npy cut.npy", "--overlap 1", "broken.h5")
        assert.equal(1, status)
        assert.is_false(commands.exists(path "broken.h5"))
    end)

    it("answers mistakes with one line that names the thing and the remedy", function()
        local other <close> = mb.ones {4, 8, 9}
        mb.npy.write(path "other.npy", other)
        mb.npy.write(path "plain.npy", whole)
        local none <close> = mb.full({5, 8, 8}, 0 / 0)
        mb.npy.write(path "none.npy", none)
        for _, case in ipairs {
            {"", "VOLUME is missing", 2}, {"v1.h5", "one VOLUME alone", 2},
            {"v1.h5 other.npy", "reconstruct them with the same width", 1},
            {"v1.h5 nix.h5", "cannot open [^\n]*nix.h5", 1},
            {"v1.h5 plain.npy --by positions", "are not known: [^\n]*give %-%-heights, or "
                .. "%-%-by correlation", 1},
            {"none.npy none.npy", "nothing in the slices of [^\n]* is alike %(correlation 0.00%): give them in", 1},
            {"v3.h5 plain.npy", "nothing in the slices of [^\n]*%-%-overlap N or %-%-heights", 1},
            {"v1.h5 v2.h5 --overlap 26", "a whole number from 0 to 25", 1},
            {"v1.h5 v2.h5 --overlap 1,2", "give one, or one for each of the 1 pair", 2},
            {"v1.h5 v2.h5 --heights 1", "%-%-heights has 1 number for 2 volumes", 2},
            {"v1.h5 v2.h5 --heights 1,9", "are 1575 slices apart; give %-%-heights or "
                .. "%-%-overlap N", 1},
            {"v1.h5 v2.h5 v3.h5 --overlap 20", "fewer than the 20 %+ 20", 1},
            {"v1.h5 v2.h5 --height-path /none --by positions", "there is no '/none' in", 1},
        } do
            local words = case[1]:gsub("(%S+%.%w+)", function(word)
                return word:find "^[%d,.]+$" and word or path(word)
            end)
            local status, text = commands.run("stitch.lua", words .. " -o " .. path "wrong.h5")
            assert.equal(case[3], status, text)
            assert.matches("^stitch: [^\n]*" .. case[2] .. "[^\n]*\n$",
                (text:gsub("overlap    [^\n]*\n", ""):gsub("stitch: warning[^\n]*\n", "")))
        end
    end)
end)
