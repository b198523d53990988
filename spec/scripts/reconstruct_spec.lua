-- The commands as a user runs them: as programs, from file to file.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local program = mb.system.program()
local folder

local function run(script, arguments)
    local handle = assert(io.popen(("'%s' scripts/%s %s 2>&1"):format(program, script, arguments)))
    local text = handle:read("a")
    local _, _, status = handle:close()
    return status, text
end

local function must(script, arguments)
    local status, text = run(script, arguments)
    assert(status == 0, ("%s %s ended with %s:\n%s"):format(script, arguments, status, text))
    return text
end

local function exists(path)
    local file = io.open(path)
    if file then
        file:close()
    end
    return file ~= nil
end

local function path(name)
    return folder .. "/" .. name
end

local function volume_of(name)
    local file <close> = assert(mb.h5.open(path(name)))
    local volume <close> = file:read("/entry/data/data")
    return volume:to_table()
end

describe("scripts", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
        must("simulate.lua", path("scan.h5") .. " --size 64 --rows 9 --angles 90 --quiet")
        must("simulate.lua", path("nxtomo.h5")
            .. " --size 48 --rows 3 --angles 70 --format nxtomo --center 25.5 --photons 0 --quiet")
    end)

    teardown(function()
        os.execute(("rm -rf '%s'"):format(folder))
    end)

    it("reconstructs a simulated scan and reports equal predicted and measured peaks", function()
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --chunk 4 --preview %s"):format(path("scan.h5"),
            path("v.h5"), path("v.png")))
        local predicted, measured = text:match("predicted (%d+) bytes, measured (%d+) bytes")
        assert.is_not_nil(predicted)
        assert.equal(predicted, measured)
        assert.is_true(exists(path("v.h5")) and exists(path("v.png")))
        local compared = must("compare_phantom.lua", path("scan.h5") .. " " .. path("v.h5"))
        local err = tonumber(compared:match("error%s+([%d.]+)"))
        assert.is_true(err and err < 0.45)
    end)

    it("gives the same volume for every chunk size", function()
        -- which makes slices in pairs
        for method, chunks in pairs {fbp = {1, 2, 7, 9}, fourier = {2, 4, 8, 9}} do
            local expected
            for _, chunk in ipairs(chunks) do
                local name = ("%s%d.h5"):format(method, chunk)
                must("reconstruct.lua",
                    ("%s -o %s --device host --center 31.5 --quiet --chunk %d --method %s"):format(
                    path("scan.h5"), path(name), chunk, method))
                local volume = volume_of(name)
                expected = expected or volume
                assert.same(expected, volume)
            end
        end
    end)

    it("finds the axis of an NXtomo scan without noise", function()
        local text = must("reconstruct.lua", ("%s -o %s --device host"):format(path("nxtomo.h5"),
            path("nx.h5")))
        assert.near(25.5, tonumber(text:match("axis%s+column ([%d.]+)")), 0.3)
    end)

    it("plans without reading frames or writing anything", function()
        local before = files.list(folder)
        local text = must("reconstruct.lua", path("scan.h5")
            .. " --plan --device host --budget 2Mi")
        assert.matches("chunks%s+%d+ of %d+ rows", text)
        assert.matches("peak", text)
        assert.same(before, files.list(folder))
    end)

    it("chooses smaller chunks for a smaller budget and keeps within it", function()
        for method, budget in pairs {fbp = 400, fourier = 1200} do
            local text = must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 --budget %dKi --method %s"):format(
                path("scan.h5"), path("small.h5"), budget, method))
            local chunks = tonumber(text:match("chunks%s+(%d+) of"))
            local measured = tonumber(text:match("measured (%d+) bytes"))
            assert.is_true(chunks > 1)
            assert.is_true(measured <= budget * 1024)
            assert.same(volume_of(method .. "9.h5"), volume_of("small.h5"))
            assert(os.remove(path("small.h5")))
        end
    end)

    it("says what the least budget is when not even a row fits", function()
        local status, text = run("reconstruct.lua", path("scan.h5")
            .. " --plan --device host --budget 20Ki")
        assert.equal(1, status)
        local least = tonumber(text:match("at least (%d+) bytes"))
        assert.is_not_nil(least)
        must("reconstruct.lua", ("%s --plan --device host --budget %d"):format(path("scan.h5"),
            least))
        assert.equal(1, (run("reconstruct.lua",
            ("%s --plan --device host --budget %d"):format(path("scan.h5"), least - 512))))
    end)

    describe("with a leaning axis", function()
        local function reconstruct(name, more)
            return must("reconstruct.lua", ("%s -o %s --device host %s"):format(path("lean.h5"),
                path(name), more))
        end

        local function phantom_error(scan, name)
            return tonumber(must("compare_phantom.lua", path(scan) .. " "
                .. path(name)):match("error%s+([%d.]+)"))
        end

        setup(function()
            for name, tilt in pairs {upright = 0, lean = 9} do
                must("simulate.lua", (
                    "%s --size 64 --rows 21 --angles 90 --photons 0 --quiet --axis-tilt %g"):format(
                    path(name
                    .. ".h5"), tilt))
            end
            must("reconstruct.lua",
                ("%s -o %s --device host --quiet --center 31.5 --method fbp"):format(
                path("upright.h5"),
                path("upright-v.h5"))) -- as a leaning axis needs it
        end)

        it("makes the volume of an upright one, in exactly the bytes it predicts", function()
            local text = reconstruct("lean-v.h5", "--center 31.5 --axis-tilt 9")
            assert.matches("leans from %-1.58 columns at row 1 to %+1.58 at row 21", text)
            local predicted, measured = text:match("predicted (%d+) bytes, measured (%d+) bytes")
            assert.is_not_nil(predicted)
            assert.equal(predicted, measured)
            local upright, leaning = phantom_error("upright.h5", "upright-v.h5"),
                phantom_error("lean.h5", "lean-v.h5")
            assert.is_true(leaning < 1.1 * upright)
            reconstruct("wrong-v.h5", "--center 31.5 --axis-tilt=-9 --quiet")
            reconstruct("ignored-v.h5", "--center 31.5 --quiet")
            assert.is_true(phantom_error("lean.h5", "ignored-v.h5") > 1.5 * upright)
            assert.is_true(phantom_error("lean.h5", "wrong-v.h5") > 2.5 * upright)
        end)

        it("gives the same slices for every chunk size, and for part of the rows", function()
            reconstruct("lean21.h5", "--center 31.5 --axis-tilt 9 --quiet --chunk 21")
            local expected = volume_of("lean21.h5")
            for _, chunk in ipairs {1, 2, 8} do
                reconstruct("lean-chunks.h5",
                    "--overwrite --center 31.5 --axis-tilt 9 --quiet --chunk " .. chunk)
                assert.same(expected, volume_of("lean-chunks.h5"))
            end
            reconstruct("lean-rows.h5", "--center 31.5 --axis-tilt 9 --quiet --rows 15:18")
            assert.same(table.move(expected, 15, 18, 1, {}), volume_of("lean-rows.h5"))
        end)

        it("needs no more room than the rows that are asked for", function()
            local arguments = path("lean.h5")
                .. " --plan --device host --center 31.5 --axis-tilt 40 --pad-width 68 --rows "
            must("reconstruct.lua", arguments .. "10:12") -- 0.84 columns either way of 2
            local status, text = run("reconstruct.lua", arguments .. "1:12")
            assert.equal(2, status)
            assert.matches("can move by 2 at most; give a pad_width of 84 or more", text, 1, true)
        end)

        it("is found halfway down, whichever rows are asked for", function()
            for _, rows in ipairs {"1:21", "14:21"} do
                local text = reconstruct("lean-auto.h5", "--overwrite --axis-tilt 9 --rows "
                    .. rows)
                assert.near(31.5, tonumber(text:match("axis%s+column ([%d.]+)")), 0.3)
            end
        end)

        it("may be given by its columns at both ends", function()
            local half = 10 * math.tan(math.rad(9))
            reconstruct("lean-ends.h5", ("--quiet --center %.17g,%.17g"):format(31.5 - half,
                31.5 + half))
            helper.assert_close(volume_of("lean-v.h5"), volume_of("lean-ends.h5"), 1e-5)
        end)

        it("follows projections that are shifted vertically", function()
            local file = assert(io.open(path("six.txt"), "w"))
            file:write(("6\n"):rep(90))
            file:close()
            reconstruct("lean-six.h5", "--center 31.5 --axis-tilt 9 --quiet --vertical-shifts "
                .. path("six.txt"))
            local expected, got = volume_of("lean-v.h5"), volume_of("lean-six.h5")
            local difference, norm = 0, 0
            for z = 1, 15 do
                local a, b = helper.flatten(expected[z + 6]), helper.flatten(got[z])
                for i = 1, #a do
                    difference, norm = difference + (a[i] - b[i]) ^ 2, norm + a[i] ^ 2
                end
            end
            -- nearly: back-projection interpolates linearly what the filter does not
            assert.is_true(difference < 0.1 ^ 2 * norm)
        end)

        it("has to be plausible", function()
            for _, case in ipairs {
                {2, "--axis-tilt 60", "--axis-tilt: \"60\" is not a number between -45 and 45"},
                {2, "--axis-tilt 2 --center 30,33",
                    "--center 30,33 says how the axis leans; give one column with --axis-tilt"},
                {2, "--center 30,64", "--center 64 lies outside the detector, columns 0 to 63"},
                {2, "--center 30,x", "give a column number, two of them as TOP,BOTTOM, or auto"},
                {2, "--axis-tilt 2 --half-acquisition --center 12", "does not go with axis_tilt"},
                {2, "--axis-tilt 2 --method fourier",
                    "method fourier does not do an axis of its own for every slice"},
            } do
                local status, text = run("reconstruct.lua", path("lean.h5")
                    .. " --plan --device host " .. case[2])
                assert.equal(case[1], status)
                assert.matches(case[3], text, 1, true)
            end
            local scan <close> = assert(mb.scan.open(path("lean.h5")))
            assert.matches("axis_tilt is 1.0472 rad; it must be between",
                (helper.failure(mb.recon.plan, scan,
                {axis_tilt = math.rad(60), center = 31.5})))
        end)
    end)

    describe("with vertical shifts", function()
        local function shifts_file(name, shift)
            local file = assert(io.open(path(name), "w"))
            file:write("# one a projection\n", ((type(shift) == "number" and shift .. "\n"
                or "")):rep(90))
            for _, value in ipairs(type(shift) == "table" and shift or {}) do
                file:write(value, ", ")
            end
            file:close()
            return path(name)
        end

        local function reconstruct(name, more)
            return must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 %s"):format(path("scan.h5"), path(name),
                more))
        end

        it("move whole rows exactly", function()
            -- no slice has a partner that is rounded with it
            reconstruct("unshifted.h5", "--quiet --method fbp")
            reconstruct("shifted.h5", "--quiet --method fbp --chunk 4 --vertical-shifts "
                .. shifts_file("two.txt", 2))
            local expected, got = volume_of("unshifted.h5"), volume_of("shifted.h5")
            for z = 1, 7 do
                assert.same(expected[z + 2], got[z])
            end
            for z = 8, 9 do
                for _, row in ipairs(got[z]) do
                    for _, value in ipairs(row) do
                        assert.equal(0, value)
                    end
                end
            end
        end)

        it("give the same volume for every chunk size, and the predicted peak", function()
            local shifts = {}
            for k = 1, 90 do
                shifts[k] = ("%.3f"):format(2.7 * math.sin(k))
            end
            local expected
            for _, chunk in ipairs {2, 4, 9} do
                local name = ("shifts%d.h5"):format(chunk)
                local text = reconstruct(name, ("--chunk %d --vertical-shifts %s"):format(chunk,
                    shifts_file("sine.txt", shifts)))
                local predicted, measured =
                    text:match("predicted (%d+) bytes, measured (%d+) bytes")
                assert.equal(predicted, measured)
                expected = expected or volume_of(name)
                assert.same(expected, volume_of(name))
            end
        end)

        it("come from datasets too", function()
            local ones <close> = mb.ones({90})
            local file <close> = mb.h5.create(path("shifts.h5"), {overwrite = true})
            file:write("/rows/shift", ones)
            file:finish()
            reconstruct("one.h5", "--quiet --vertical-shifts " .. shifts_file("one.txt", 1))
            reconstruct("one_h5.h5",
                ("--quiet --vertical-shifts %s:/rows/shift"):format(path("shifts.h5")))
            assert.same(volume_of("one.h5"), volume_of("one_h5.h5"))
        end)

        it("must be as many as projections, and numbers", function()
            for _, case in ipairs {
                {shifts_file("few.txt", {1, 2, 3}), "has 3 vertical shifts; the scan has 90",
                    status = 1}, {"/no/such", "neither"},
                {shifts_file("words.txt", {1, "many"}), "'many' is not a number"},
            } do
                local status, text = run("reconstruct.lua",
                    ("%s --plan --device host --vertical-shifts %s"):format(
                    path("scan.h5"), case[1]))
                assert.equal(case.status or 2, status, text)
                assert.matches(case[2], text)
            end
        end)

        it("are read from ordinary files alone", function()
            local scan <close> = assert(mb.scan.open(path("scan.h5")))
            assert(os.execute(("mkfifo '%s'"):format(path("pipe"))))
            for _, name in ipairs {"/dev/zero", path("pipe")} do
                assert.matches("is not an ordinary file",
                    (helper.failure(mb.recon.read_shifts, scan, name)))
            end
            os.remove(path("pipe"))
        end)
    end)

    it("choose an entry of an NXtomo file, and speak of options as the shell knows them", function()
        local theta, frames = {}, {}
        for i = 1, 6 do
            theta[i] = 30 * (i - 1)
        end
        do
            local file <close> = mb.h5.create(path("two.h5"))
            for i, entry in ipairs {"/first", "/second"} do
                frames[i] = mb.full({6, 2, 8 * i}, 0.5)
                file:group(entry, "NXentry")
                file:write(entry .. "/definition", "NXtomo")
                file:group(entry .. "/det", "NXdetector")
                file:write(entry .. "/det/data", frames[i])
                file:write(entry .. "/rotation_angle", theta,
                    {attributes = i == 2 and {units = "deg"} or nil})
                frames[i]:release()
            end
            file:finish()
        end
        local status, text = run("reconstruct.lua",
            ("%s --plan --device host -c 3.5"):format(path("two.h5")))
        assert.equal(1, status)
        assert.matches("have no unit, .*: give %-%-angle%-unit %('deg' or 'rad'%)", text)
        text = must("reconstruct.lua",
            ("%s --plan --device host -c 3.5 --angle-unit deg"):format(path("two.h5")))
        assert.matches("the file has 2 scans %(/first, /second%); /first is used; %-%-entry selects", text)
        for _, option in ipairs {"--entry second", "--data-path /second/det/data"} do
            text = must("reconstruct.lua",
                ("%s --plan --device host -c 3.5 %s"):format(path("two.h5"), option))
            assert.matches("2 rows x 16 columns", text)
            assert.is_nil(text:find("2 scans", 1, true))
        end
    end)

    it("let nothing of a file steer the terminal", function()
        local evil = "\27]0;title\7\27[2J"
        do
            local data <close> = mb.full({6, 2, 8}, 0.5)
            local file <close> = mb.h5.create(path("evil.h5"))
            file:write("/exchange/data", data)
            file:write("/exchange/theta", {0, 30, 60, 90, 120, 150}, {attributes = {units = "deg"}})
            file:write("/measurement/instrument/detector/pixel_size", 1,
                {attributes = {units = evil}})
            file:finish()
        end
        local named = path(evil .. "\n.h5")
        assert(os.rename(path("evil.h5"), named))
        local quoted = ("'%s'"):format(named)
        for _, arguments in ipairs {quoted .. " --plan -c 3.5", quoted .. " -c 99 --plan", quoted
            .. " -o " .. quoted,
            quoted .. " -c 3.5 -o " .. path("tame.h5")} do
            local _, text = run("reconstruct.lua", arguments .. " --device host")
            assert.is_nil(text:find("\27", 1, true), text)
        end
        local _, text = run("reconstruct.lua", quoted .. " --plan -c 3.5 --device host")
        assert.matches("has the unknown unit '\\x1b%]0;title\\x07\\x1b%[2j'", text)
        assert.matches("\nscan       [^\n]*\\x1b%]0;title\\x07\\x1b%[2J\\n%.h5 %(Data "
            .. "Exchange%)\n", "\n" .. text)
        os.remove(named)
    end)

    it("take flats of another file", function()
        do
            local from <close> = assert(mb.scan.open(path("scan.h5")))
            local flats <close> = from:flats()
            local raw <close> = from:projections()
            local file <close> = mb.h5.create(path("flats-alone.h5"))
            file:write("/of/flats", flats)
            file:finish()
            local bare <close> = mb.h5.create(path("bare-counts.h5"))
            local degrees = {}
            for i = 1, 90 do
                degrees[i] = 2 * (i - 1)
            end
            bare:write("/exchange/data", raw)
            bare:write("/exchange/theta", degrees, {attributes = {units = "deg"}})
            bare:finish()
        end
        local text = must("reconstruct.lua",
            ("%s -o %s --device host -c 31.5 --flats-path %s:/of/flats "
            .. "--darks-path %s:/exchange/data_dark")
            :format(path("bare-counts.h5"), path("other-flats.h5"), path("flats-alone.h5"),
                path("scan.h5")))
        assert.matches("10 flats, 10 darks", text)
    end)

    it("reconstruct a half acquisition with its whole field of view", function()
        must("simulate.lua", path("half.h5")
            .. " --size 64 --rows 3 --angles 180 --span 360 --center 48 --photons 0 --quiet")
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --half-acquisition --padding zero"):format(path("half.h5"),
            path("half-volume.h5")))
        assert.near(48, tonumber(text:match("axis%s+column ([%d.]+)")), 0.3)
        local predicted, measured = text:match("predicted (%d+) bytes, measured (%d+) bytes")
        assert.equal(predicted, measured)
        must("reconstruct.lua",
            ("%s -o %s --device host --half-acquisition --padding zero --center 48 --quiet"):format(
            path("half.h5"), path("half-volume.h5") .. " --overwrite --chunk 2"))
        local volume = volume_of("half-volume.h5")
        assert.same({3, 97, 97}, {#volume, #volume[1], #volume[1][1]})
        must("simulate.lua", path("whole.h5")
            .. " --size 64 --rows 3 --angles 180 --span 360 --photons 0 --quiet")
        must("reconstruct.lua", ("%s -o %s --device host --padding zero --center 31.5 --quiet "
            .. "--circle 0 --method fbp"):format(
            path("whole.h5"), path("whole-volume.h5")))
        -- The same object, around the axis: pixel 48 of 97 lies between pixels 31 and 32 of 64.
        local whole, sum, square = volume_of("whole-volume.h5"), 0, 0
        for y = 20, 44 do
            for x = 20, 44 do
                local here = 0.25 * (whole[2][y][x] + whole[2][y + 1][x] + whole[2][y][x + 1]
                    + whole[2][y + 1][x + 1])
                sum = sum + (here - volume[2][y + 17][x + 17]) ^ 2
                square = square + here ^ 2
            end
        end
        assert.is_true(math.sqrt(sum / square) < 0.1, ("%g"):format(math.sqrt(sum / square)))
        local planned = must("reconstruct.lua", path("half.h5")
            .. " --plan --half-acquisition --device host --padding zero")
        assert.matches("volume +at most 3 x %d+ x %d+ f32", planned) -- the axis makes its width
        assert.is_true(tonumber(planned:match("at most [%d.]+ %a+ %((%d+) bytes%)"))
            >= tonumber(predicted))
        local status, message = run("reconstruct.lua", path("scan.h5")
            .. " --plan --half-acquisition --device host --center 48")
        assert.equal(2, status)
        assert.matches("whole turn", message)
    end)

    it("reconstruct the same in every mode", function()
        local function plan(mode)
            local text = must("reconstruct.lua",
                ("%s --plan --device host --center 48 --half-acquisition --mode %s"):format(
                path("half.h5"), mode))
            return tonumber(text:match("%((%d+) bytes%)"))
        end
        local fast, in_place = plan("fast"), plan("in_place")
        assert.is_true(in_place <= fast)
        for _, mode in ipairs {"fast", "in_place", "auto"} do
            local text = must("reconstruct.lua", ("%s -o %s --device host --center 31.5 --method "
                .. "fbp --mode %s"):format(path("scan.h5"),
                path(mode .. ".h5"), mode))
            local predicted, measured = text:match("predicted (%d+) bytes, measured (%d+) bytes")
            assert.equal(predicted, measured)
        end
        assert.same(volume_of("fast.h5"), volume_of("in_place.h5"))
        assert.same(volume_of("fast.h5"), volume_of("auto.h5"))
    end)

    it("give the same volume with and without overlap, in one file and in several", function()
        local function reconstruct(name, more)
            local text = must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 --chunk 3 --pinned 4Mi %s"):format(
                path("scan.h5"),
                path(name), more))
            for _, what in ipairs {"memory", "pinned"} do
                local predicted, measured = text:match(what
                    .. "%s+predicted (%d+) bytes, measured (%d+) bytes")
                assert.is_not_nil(predicted)
                assert.equal(predicted, measured)
            end
            for _, step in ipairs {"read", "upload", "compute", "download", "write"} do
                assert.matches(step .. "%s+[%d.]+ s", text)
            end
            assert.matches("bottleneck: ", text)
            return volume_of(name)
        end
        local expected = reconstruct("serial.h5", "--no-overlap")
        assert.same(expected, reconstruct("beside.h5", "--threads 3"))
        assert.same(expected, reconstruct("parts.h5", "--slices-per-file 2"))
        do
            local whole <close> = assert(mb.h5.open(path("parts.h5")))
            assert.is_true(exists(path(whole:attribute("/", "slices_folder")
                .. "/slices-0009-0009.h5")))
        end
        local file <close> = assert(mb.h5.open(path("beside.h5")))
        assert.is_string(file:value("/entry/provenance/steps/bottleneck"))
        assert.is_true(file:value("/entry/provenance/steps/write_bytes") == 4 * 9 * 64 * 64)
    end)

    it("store half floats and scaled integers", function()
        must("reconstruct.lua",
            ("%s -o %s --device host --center 31.5 --quiet"):format(path("scan.h5"),
            path("f32.h5")))
        must("reconstruct.lua",
            ("%s -o %s --device host --center 31.5 --quiet --output-dtype float16"):format(
            path("scan.h5"),
            path("f16.h5")))
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --center 31.5 --output-dtype uint16"):format(path("scan.h5"),
            path("u16.h5")))
        assert.matches("stored%s+", text)
        local file <close> = assert(mb.h5.open(path("u16.h5")))
        local scale = file:attribute("/entry/data/data", "scale_factor")
        local offset = file:attribute("/entry/data/data", "add_offset")
        -- NeXus has another rule than CF: value = (stored + data_offset) * data_scaling_factor.
        local nexus_scale = file:value("/entry/data/data_scaling_factor")
        local nexus_offset = file:value("/entry/data/data_offset")
        assert.is_true(offset ~= 0)
        local halves <close> = assert(mb.h5.open(path("f16.h5")))
        local factor = halves:attribute("/entry/data/data", "scale_factor")
        local whole, half, integers = volume_of("f32.h5"), volume_of("f16.h5"), volume_of("u16.h5")
        for y = 1, 64 do
            for x = 1, 64 do
                local v = whole[5][y][x]
                assert.is_true(math.abs(half[5][y][x] * factor - v) <= 2 ^ -11 * math.abs(v) + 1e-7)
                assert.is_true(math.abs(integers[5][y][x] * scale + offset - v) <= 0.501 * scale)
                assert.is_true(math.abs((integers[5][y][x] + nexus_offset) * nexus_scale - v)
                    <= 0.501 * scale)
            end
        end
        text = must("reconstruct.lua",
            ("%s -o %s --device host --center 31.5 --quiet --output-dtype uint16 --output-range 0:1"):format(
            path("scan.h5"), path("narrow.h5")))
        assert.matches("warning: MOST OF THE DATA IS LOST: %d+ values lay outside the range that "
            .. "is stored %(%d+ below, %d+ above, "
            .. "0 not numbers%) and were clipped %(79 %%%)\n", text)
        for _, case in ipairs {{"--output-range 1:1 --output-dtype uint16", "LOW:HIGH"},
            {"--output-range 0:1", "uint16"},
            {"--output-dtype int8", "float16"}, {"--pinned 1000", "pinned"},
                {"--threads 1000", "threads"}} do
            local status, message = run("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 %s"):format(path("scan.h5"),
                path("never.h5"), case[1]))
            assert.is_true(status ~= 0)
            assert.matches(case[2], message)
            assert.is_false(exists(path("never.h5")))
        end
    end)

    it("say where the slices lie, and where the axis was found", function()
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --rows 3:5"):format(path("scan.h5"), path("rows.h5")))
        local pixel
        do
            local scan <close> = assert(mb.scan.open(path("scan.h5")))
            pixel = scan.pixel_size
        end
        local file <close> = assert(mb.h5.open(path("rows.h5")))
        assert.same({2 * pixel, 3 * pixel, 4 * pixel}, file:value("/entry/data/z"))
        local y = file:value("/entry/data/y")
        assert.same({63 * pixel, 0}, {y[1], y[64]})
        local center = file:value("/entry/reconstruction/parameters/center")
        assert.equal(text:match("axis%s+column ([%d.]+)"), ("%.2f"):format(center))
    end)

    describe("refuse bad input with a message and leave no file:", function()
        local function refuses(arguments, pattern, wanted_status)
            local before = files.list(folder)
            local status, text = run("reconstruct.lua", arguments)
            assert.equal(wanted_status or 1, status, text)
            assert.matches(pattern, text)
            assert.is_nil(text:find("stack traceback", 1, true), text)
            assert.same(before, files.list(folder))
        end

        local function write(name, contents)
            local file <close> = mb.h5.create(path(name), {overwrite = true})
            for where, value in pairs(contents) do
                if type(value) == "table" and value.value then
                    file:write(where, value.value, {attributes = value.attributes})
                else
                    file:write(where, value)
                end
            end
            file:finish()
        end

        local function theta(count)
            local values = {}
            for i = 1, count do
                values[i] = 180 * (i - 1) / count
            end
            return {value = values, attributes = {units = "deg"}}
        end

        local function frames(...)
            return {value = mb.full({...}, 1000, {dtype = "u16"})}
        end

        local function write_frames(name, contents)
            write(name, contents)
            for _, value in pairs(contents) do
                if type(value) == "table" and type(value.value) == "userdata" then
                    value.value:release()
                end
            end
        end

        it("missing file", function()
            refuses(path("none.h5") .. " -o " .. path("out.h5"), "none.h5.*No such file")
        end)

        it("not HDF5", function()
            local file = assert(io.open(path("text.h5"), "w"))
            file:write(("not a file of that kind\n"):rep(100))
            file:close()
            refuses(path("text.h5") .. " -o " .. path("out.h5"), "text.h5")
        end)

        it("truncated", function()
            assert(os.execute(("head -c 100000 '%s' > '%s'"):format(path("scan.h5"),
                path("cut.h5"))))
            refuses(path("cut.h5") .. " -o " .. path("out.h5"), "cut.h5.*truncated")
        end)

        it("no theta", function()
            write_frames("notheta.h5", {["/exchange/data"] = frames(5, 2, 8)})
            refuses(path("notheta.h5") .. " -o " .. path("out.h5"), "angles")
        end)

        it("angles and frames that disagree", function()
            write_frames("disagree.h5", {["/exchange/data"] = frames(5, 2, 8),
                ["/exchange/theta"] = theta(6)})
            refuses(path("disagree.h5") .. " -o " .. path("out.h5"), "6.*5")
        end)

        it("zero rows", function()
            write_frames("empty.h5", {["/exchange/data"] = frames(5, 0, 8),
                ["/exchange/theta"] = theta(5)})
            refuses(path("empty.h5") .. " -o " .. path("out.h5"), "row")
        end)

        it("a row range outside the scan", function()
            refuses(path("scan.h5") .. " --rows 5:40 -o " .. path("out.h5"), "rows 5 to 40", 2)
        end)

        it("values that an operator does not take, as wrong use", function()
            for arguments, pattern in pairs {["--cutoff 0"] = "cutoff is 0",
                ["--circle -1"] = "circle is %-1",
                ["--pad-width 130"] = "multiple of 4",
                    ["--vertical-shifts " .. path("none.txt")] = "neither a text file"} do
                refuses(("%s %s -o %s"):format(path("scan.h5"), arguments, path("out.h5")),
                    "reconstruct: [^\n]*" .. pattern .. "[^\n]*%-%-help", 2)
            end
        end)

        it("a padded width out of proportion, before anything runs", function()
            for _, method in ipairs {"fbp", "fourier"} do
                refuses(("%s --center 31.5 --pad-width 2052 --method %s -o %s"):format(
                    path("scan.h5"), method, path("out.h5")),
                    "pad_width is 2052 for rows of 64; .* at most, 2048", 2)
            end
            must("reconstruct.lua",
                ("%s -o %s -c 31.5 --rows 5 --pad-width 2048 -q"):format(path("scan.h5"),
                path("wide.h5")))
        end)

        it("an unknown option, naming the nearest", function()
            refuses(path("scan.h5") .. " --flter hann", "did you mean %-%-filter", 2)
        end)

        it("an unknown filter", function()
            refuses(path("scan.h5") .. " --filter box", "ram%-lak", 2)
        end)

        it("a center outside the detector", function()
            refuses(path("scan.h5") .. " --center 99 -o " .. path("out.h5"), "outside the detector",
                2)
        end)

        it("an output folder that does not exist", function()
            refuses(path("scan.h5") .. " -o " .. path("no/such/out.h5"), "no/such")
        end)

        it("an existing result, unless told", function()
            refuses(("%s -o %s"):format(path("scan.h5"), path("nxtomo.h5")), "exists")
        end)

        it("a device that is not there", function()
            refuses(path("scan.h5") .. " --device cuda:99 -o " .. path("out.h5"), "cuda:99")
        end)

        it("angles that are not all there", function()
            local named = path("disagree.h5") .. " -o " .. path("out.h5") .. " --angles "
            refuses(named .. "0:179", "needs %-%-angle%-unit", 2)
            for _, wrong in ipairs {"0", "x:179", "0:x", "0:nan", "0:1:2"} do
                refuses(named .. wrong .. " --angle-unit deg", "FIRST:LAST", 2)
            end
        end)

        it("but take angles that are given", function()
            must("reconstruct.lua", ("%s -o %s -c 31.5 -q"):format(path("scan.h5"),
                path("own-angles.h5")))
            must("reconstruct.lua",
                ("%s -o %s -c 31.5 -q --angles 0:178 --angle-unit deg"):format(path("scan.h5"),
                path("given-angles.h5")))
            assert.same(volume_of("own-angles.h5"), volume_of("given-angles.h5"))
        end)

        it("but take frames stored as f64, as if they were f32", function()
            local scan <close> = assert(mb.scan.open(path("scan.h5")))
            local raw <close> = scan:projections()
            local flats <close> = scan:flats()
            local darks <close> = scan:darks()
            for _, dtype in ipairs {"f32", "f64"} do
                local a <close> = raw:cast(dtype)
                local b <close> = flats:cast(dtype)
                local c <close> = darks:cast(dtype)
                write(dtype .. ".h5", {["/exchange/data"] = a, ["/exchange/data_white"] = b,
                    ["/exchange/data_dark"] = c,
                    ["/exchange/theta"] = theta(90)})
                local text = must("reconstruct.lua",
                    ("%s -o %s --chunk 4"):format(path(dtype .. ".h5"),
                    path(dtype .. "-volume.h5")))
                local predicted, measured =
                    text:match("predicted (%d+) bytes, measured (%d+) bytes")
                assert.equal(predicted, measured)
            end
            assert.same(volume_of("f32-volume.h5"), volume_of("f64-volume.h5"))
        end)

        it("but take line integrals, beside which flats and darks do not count", function()
            local data <close> = mb.random({6, 2, 8}, {seed = 1})
            local nan <close> = data:view(3, 1, {2, 4})
            local flats <close> = mb.full({2, 2, 8}, 7)
            local zero <close> = data:copy()
            local same <close> = zero:view(3, 1, {2, 4})
            same:fill(0)
            nan:fill(0 / 0)
            write("bare.h5", {["/exchange/data"] = zero, ["/exchange/theta"] = theta(6)})
            write("flats.h5", {["/exchange/data"] = data, ["/exchange/data_white"] = flats,
                ["/exchange/data_dark"] = flats,
                ["/exchange/theta"] = theta(6)})
            for _, name in ipairs {"bare", "flats"} do
                local text = must("reconstruct.lua",
                    ("%s -o %s -c 3.5 -q --no-log --pixel-size 1"):format(path(name .. ".h5"),
                    path(name .. "-volume.h5")))
                assert.equal(name == "flats"
                    and "warning: 3 values were not finite and count as no attenuation (3.1 %)\n"
                    or "", text)
            end
            assert.same(volume_of("bare-volume.h5"), volume_of("flats-volume.h5"))
            refuses(path("flats.h5") .. " --no-log --flats-path /exchange/data_white -o "
                .. path("out.h5"), "need no flats", 2)
        end)

        it("counts without flats, also where only a plan is asked for", function()
            write_frames("noflats.h5", {["/exchange/data"] = frames(6, 2, 8),
                ["/exchange/theta"] = theta(6)})
            local arguments = ("%s -o %s --center 3.5 --device host"):format(path("noflats.h5"),
                path("out.h5"))
            local wanted = "no flats, and counts %(u16%) cannot be normalized without them: name them with %-%-flats%-path.*%-%-no%-log"
            refuses(arguments, wanted)
            refuses(arguments .. " --plan", wanted)
            write_frames("large.h5", {["/exchange/data"] = {value = mb.full({6, 2, 8}, 1000)},
                ["/exchange/theta"] = theta(6)})
            arguments = ("%s -o %s --center 3.5 --device host"):format(path("large.h5"),
                path("out.h5"))
            refuses(arguments, "values from 1000 to 1000 are not a transmission")
            assert.matches("the frames must be transmission, from 0 to 1.5",
                must("reconstruct.lua", arguments .. " --plan"))
            must("reconstruct.lua", arguments .. " --no-log -q")
            os.remove(path("out.h5"))
        end)

        it("an NXtomo scan that does not say which frames are flats", function()
            do
                local file <close> = assert(mb.h5.open(path("nxtomo.h5")))
                local exact <close> = file:read("/entry/instrument/detector/data")
                local raw <close> = exact:cast("u16")
                local all = file:value("/entry/sample/rotation_angle")
                local made <close> = mb.h5.create(path("nokey.h5"), {overwrite = true})
                made:group("/entry", "NXentry")
                made:write("/entry/definition", "NXtomo")
                made:group("/entry/detector", "NXdetector")
                made:write("/entry/detector/data", raw)
                made:write("/entry/rotation_angle", all, {attributes = {units = "deg"}})
                made:finish()
            end
            refuses(path("nokey.h5") .. " -o " .. path("out.h5"),
                "or %-%-image%-key%-path")
        end)

        it("but take transmission without flats, and say so", function()
            local data <close> = mb.random({6, 2, 8}, {seed = 1, low = 0.4, high = 1.01})
            write("through.h5", {["/exchange/data"] = data, ["/exchange/theta"] = theta(6)})
            local text = must("reconstruct.lua",
                ("%s -o %s --center 3.5 --device host"):format(path("through.h5"),
                path("through-volume.h5")))
            assert.matches("warning: no flats; values from 0.4%d* to 1.0%d* are read as "
                .. "transmission", text)
            local file <close> = assert(mb.h5.open(path("through-volume.h5")))
            assert.equal("transmission", file:value("/entry/reconstruction/parameters/values"))
        end)

        it("a total loss, and warn of a large one", function()
            local function scan_of(name, value, flat)
                write_frames(name, {["/exchange/data"] = {value = value},
                    ["/exchange/theta"] = theta(6),
                    ["/exchange/data_white"] = {value = mb.full({2, 2, 8}, flat,
                    {dtype = value.dtype})},
                    ["/exchange/data_dark"] = {value = mb.full({1, 2, 8}, 100,
                    {dtype = value.dtype})}})
                return ("%s -o %s --center 3.5 --device host -q"):format(path(name), path("out.h5"))
            end
            local function full(value, dtype)
                return mb.full({6, 2, 8}, value, {dtype = dtype or "f32"})
            end
            refuses(scan_of("nan.h5", full(0 / 0), 1000),
                "none of the %d+ values that were checked")
            refuses(scan_of("zero.h5", full(0, "u16"), 1000),
                "all 96 values had a transmission of zero or less")
            refuses(scan_of("dead.h5", full(500, "u16"), 100),
                "all 16 detector pixels have no beam in the flats")
            refuses(scan_of("top.h5", full(65535, "u16"), 1000),
                "all values of the projections .* are 65535")
            refuses(scan_of("flat.h5", full(500, "u16"), 65535),
                "all values of the flats .* are 65535")
            local half = full(500, "u16")
            do
                local bad <close> = half:view(mb.all, mb.all, {1, 4})
                bad:fill(0)
                local high <close> = half:view(mb.all, mb.all, {5, 6})
                high:fill(65535)
            end
            local text = must("reconstruct.lua", scan_of("half.h5", half, 60000))
            assert.matches("warning: MOST OF THE DATA IS LOST: 48 values had a transmission of "
                .. "zero or less and were clipped %(50 %%%)",
                text)
            assert.matches("warning: about 25 %% of the values of the projections are 65535", text)
            os.remove(path("out.h5"))
        end)

        it("a range or a circle that leaves nothing", function()
            local arguments = ("%s -c 31.5 -r 5 -q -o %s "):format(path("scan.h5"), path("out.h5"))
            refuses(arguments .. "--output-dtype uint16 --output-range=-1e308:1e308",
                "are stored as one", 2)
            refuses(arguments .. "--output-dtype uint16 --output-range=-1e12:1e12",
                "are stored as one", 2)
            refuses(arguments .. "--output-dtype uint16 --output-range=5e8:6e8",
                "all 4096 values lay outside the range", 1)
            refuses(arguments .. "--circle 1e-9", "less than a pixel", 2)
            for _, size in ipairs {"1e308", "1e-320", "0", "-1", "inf"} do
                refuses(arguments .. "--pixel-size=" .. size, "pixel%-size", 2)
            end
        end)

        it("and count NaN frames instead of spreading them", function()
            local data <close> = mb.full({6, 2, 8}, 0.5)
            local bad <close> = data:view(3, 1, {2, 4})
            bad:fill(0 / 0)
            write("nan.h5", {["/exchange/data"] = data, ["/exchange/theta"] = theta(6)})
            local text = must("reconstruct.lua",
                ("%s -o %s --center 3.5 --device host"):format(path("nan.h5"),
                path("nan-volume.h5")))
            assert.matches("3 values were not finite", text)
            for _, slice in ipairs(volume_of("nan-volume.h5")) do
                for _, row in ipairs(slice) do
                    for _, value in ipairs(row) do
                        assert.is_true(value == value)
                    end
                end
            end
        end)
    end)

    it("stop at Ctrl-C with status 130 and leave no file", function()
        must("simulate.lua", path("long.h5")
            .. " --size 400 --rows 48 --angles 600 --device host --quiet")
        local before = files.list(folder)
        -- One thread, so that there is time to interrupt: as soon as the part file is there.
        local script = ("OMP_NUM_THREADS=1 '%s' scripts/reconstruct.lua %s -o %s --device host --center 199.5 --chunk 1 -q & "
            .. "pid=$!; until ls %s.part-* >/dev/null 2>&1 || ! kill -0 $pid; do sleep 0.01; done; kill -INT $pid; wait $pid")
            :format(program, path("long.h5"), path("stopped.h5"), path("stopped.h5"))
        local handle = assert(io.popen("{ " .. script .. "; } 2>&1"))
        local text = handle:read("a")
        local _, _, status = handle:close()
        assert.matches("interrupted by Ctrl%-C", text)
        assert.equal(130, status)
        assert.same(before, files.list(folder))
    end)

    it("explain themselves", function()
        for script, name in pairs {["reconstruct.lua"] = "reconstruct SCAN",
            ["simulate.lua"] = "simulate OUT", ["deconvolve.lua"] = "deconvolve IMAGE",
            ["convolve.lua"] = "convolve [options]", ["bench.lua"] = "scripts/bench.lua [GROUP]",
            ["compare_phantom.lua"] = "scripts/compare_phantom.lua SCAN"} do
            assert.matches("usage: moonbeam " .. name, must(script, "--help"), 1, true)
        end
    end)

    it("reconstruct the tooth: axis at 296, a tooth inside", function()
        local tooth = files.data("tooth.h5")
        if not tooth then
            pending("tooth.h5 is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        local text = must("reconstruct.lua",
            ("%s -o %s --center auto --preview %s --device host"):format(tooth, path("tooth.h5"),
            path("tooth.png")))
        assert.near(296, tonumber(text:match("axis%s+column ([%d.]+)")), 0.25)
        assert.is_true(exists(path("tooth.png")))
        local file <close> = assert(mb.h5.open(path("tooth.h5")))
        local volume <close> = file:read("/entry/data/data")
        assert.same({2, 640, 640}, volume.shape)
        local inside <close> = volume:view(1, {375, 395}, {335, 355})
        local outside <close> = volume:view(1, {20, 40}, {300, 340})
        assert.is_true(inside:mean() > 0.003)
        assert.is_true(math.abs(outside:mean()) < 0.2 * inside:mean())
    end)

    it("reconstruct the tooth alike by both methods: correlation in the field of view", function()
        local tooth = files.data("tooth.h5")
        if not tooth then
            pending("tooth.h5 is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        local volumes = {}
        for i, method in ipairs {"fbp", "fourier"} do
            local name = path(method .. ".h5")
            must("reconstruct.lua",
                ("%s -o %s -c 295.94 --filter hann --method %s --circle 1 --device host"):format(
                tooth, name, method))
            local file <close> = assert(mb.h5.open(name))
            assert.equal(method, file:value("/entry/reconstruction/parameters/method"))
            volumes[i] = file:read("/entry/data/data")
        end
        -- Both are 0 outside the circle, which must not count: only the number of pixels inside
        -- does.
        local a <close> = volumes[1]
        local b <close> = volumes[2]
        local n, count = a.shape[3], 0
        for y = 1, n do
            for x = 1, n do
                count = count + ((x - (n + 1) / 2) ^ 2 + (y - (n + 1) / 2) ^ 2 <= (n / 2) ^ 2
                    and a.shape[1] or 0)
            end
        end
        local product <close> = a * b
        local function covariance(sum, p, q)
            return sum - p:sum() * q:sum() / count
        end
        assert.equal(0, a:item(1, 1, 1))
        assert.equal(0, b:item(1, 1, 1))
        local correlation = covariance(product:sum(), a, b) / math.sqrt(covariance(a:norm() ^ 2, a,
            a) * covariance(b:norm() ^ 2, b, b))
        assert.is_true(correlation > 0.99 and correlation <= 1, tostring(correlation))
    end)
end)
