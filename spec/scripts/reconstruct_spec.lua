-- The commands as a user runs them: as programs, from file to file.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"

local must, run, exists = commands.must, commands.run, commands.exists
local shell, folder

local function path(name)
    return shell:path(name)
end

local function volume_of(name)
    return shell:volume_of(name)
end

describe("scripts", function()
    setup(function()
        shell = commands.folder()
        folder = shell.folder
        shell:simulate()
    end)

    teardown(function()
        shell:remove()
    end)

    it("reconstructs a simulated scan and reports equal predicted and measured peaks", function()
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --chunk 4 --preview %s --verbose"):format(path("scan.h5"),
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
        assert.matches("chunks%s+%d+, with up to %d+ rows each", text)
        assert.matches("peak", text)
        assert.same(before, files.list(folder))
    end)

    it("chooses smaller chunks for a smaller budget and keeps within it", function()
        for method, budget in pairs {fbp = 400, fourier = 1200} do
            local text = must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 --budget %dKi --method %s --verbose"):format(
                path("scan.h5"), path("small.h5"), budget, method))
            local chunks = tonumber(text:match("chunks%s+(%d+), with"))
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
        local least = tonumber(text:match("; give %-%-budget [%d.]+K or more %((%d+) bytes%)"))
        assert.is_not_nil(least)
        must("reconstruct.lua", ("%s --plan --device host --budget %d"):format(path("scan.h5"),
            least))
        assert.equal(1, (run("reconstruct.lua",
            ("%s --plan --device host --budget %d"):format(path("scan.h5"), least - 512))))
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
        assert.matches("have no unit, .*: give %-%-angle%-unit deg or rad\n", text)
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

    it("give the same volume with and without overlap, in one file and in several", function()
        local function reconstruct(name, more)
            local text = must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 --chunk 3 --pinned 4Mi -v %s"):format(
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

    it("stop at Ctrl-C with status 130 and keep what is finished", function()
        must("simulate.lua", path("long.h5")
            .. " --size 400 --rows 48 --angles 600 --device host --quiet")
        local before = files.list(folder)
        -- One thread, so that there is time to interrupt: as soon as a block is finished.
        local script = ("OMP_NUM_THREADS=1 '%s' scripts/reconstruct.lua %s -o %s --device host --center 199.5 --chunk 1 -q & "
            .. "pid=$!; until grep -q rows..1 %s.unfinished/journal 2>/dev/null || ! kill -0 $pid; "
            .. "do sleep 0.01; done; kill -INT $pid; wait $pid")
            :format(mb.system.program(), path("long.h5"), path("stopped.h5"), path("stopped.h5"))
        local handle = assert(io.popen("{ " .. script .. "; } 2>&1"))
        local text = handle:read("a")
        local _, _, status = handle:close()
        assert.matches("\nreconstruct: interrupted by Ctrl%-C\n", "\n" .. text)
        assert.matches("stopped.h5.unfinished' keeps %d+ of 48 rows: go on with %-%-resume, or start "
            .. "anew with %-%-discard", text)
        assert.equal(130, status)
        before[#before + 1] = "stopped.h5.unfinished"
        table.sort(before)
        assert.same(before, files.list(folder))
        local _, refused = files.run(
            ("'%s' scripts/reconstruct.lua %s -o %s --resume -q --device host "
            .. "--center 199.5 --rows 1:9"):format(mb.system.program(), path("long.h5"),
            path("stopped.h5")))
        assert.is_false(refused)
        must("reconstruct.lua", ("%s -o %s --discard -q --device host --center 199.5 --rows 1:2")
            :format(path("long.h5"), path("stopped.h5")))
        before = files.list(folder)
        assert.is_nil(table.concat(before, " "):find "unfinished")
    end)

    it("explain themselves", function()
        for script, name in pairs {["reconstruct.lua"] = "reconstruct SCAN",
            ["simulate.lua"] = "simulate OUT", ["deconvolve.lua"] = "deconvolve IMAGE",
            ["convolve.lua"] = "convolve [options]", ["bench.lua"] = "scripts/bench.lua [GROUP]",
            ["compare_phantom.lua"] = "scripts/compare_phantom.lua SCAN"} do
            assert.matches("usage: moonbeam " .. name, must(script, "--help"), 1, true)
        end
    end)
end)
