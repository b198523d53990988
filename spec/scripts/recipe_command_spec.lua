-- `reconstruct.lua --recipe`, as a user runs it: from file to file.

local files = require "spec.support.files"
local mb = require "moonbeam"

local program = mb.system.program()

describe("reconstruct --recipe", function()
    local folder

    local function path(name)
        return folder .. "/" .. name
    end

    local function run(arguments, script)
        local handle = assert(io.popen(("'%s' scripts/%s %s 2>&1"):format(program,
            script or "reconstruct.lua", arguments)))
        local text = handle:read("a")
        local _, _, status = handle:close()
        return status, text
    end

    local function must(arguments, script)
        local status, text = run(arguments, script)
        assert(status == 0, ("%s ended with %s:\n%s"):format(arguments, status, text))
        return text
    end

    -- A run of the scan with a recipe, given as text.
    local function recipe(text, arguments, fails)
        files.write(path("recipe.lua"), text)
        local all = ("%s --recipe %s --device host %s"):format(path("scan.h5"), path("recipe.lua"),
            arguments)
        if fails then
            local status, message = run(all)
            assert.equal(fails, status, message)
            assert.is_nil(message:find("stack traceback", 1, true), message)
            return message
        end
        return must(all)
    end

    local function values(name, place)
        local file <close> = assert(mb.h5.open(path(name)))
        return file:value(place)
    end

    local function bytes(name)
        local file <close> = assert(mb.h5.open(path(name)))
        local volume <close> = file:read("/entry/data/data")
        return volume:to_string(), volume.shape
    end

    setup(function()
        folder = files.folder()
        must(path("scan.h5") .. " --size 64 --rows 9 --angles 90 --quiet", "simulate.lua")
    end)
    teardown(function()
        files.remove(folder)
    end)

    local CHAIN = [[
-- the fixed chain
{
    "flat_field", "minus_log", "center",
    {"fourier", filter = "shepp-logan", padding = "edge"},
}
]]

    it("gives the bytes of the fixed chain, and plans what it takes", function()
        must(("%s -o %s --device host --quiet"):format(path("scan.h5"), path("fixed.h5")))
        local text = recipe(CHAIN, "--verbose -o " .. path("recipe.h5"))
        assert.is_true(bytes "fixed.h5" == bytes "recipe.h5")
        local predicted, measured, most = text:match(
            "predicted (%d+) bytes, measured (%d+) bytes %(at most (%d+)")
        assert.is_not_nil(predicted)
        assert.equal(predicted, measured)
        assert.is_true(tonumber(predicted) <= tonumber(most))
        assert.matches("center +[%d.]+, %a+ %(", text)
        local plan = recipe(CHAIN, "--plan")
        assert.matches("at most [^\n]+%(" .. most .. " bytes%)", plan)
        assert.matches("#SBATCH %-%-mem=%d+M", recipe(CHAIN, "--plan --slurm"))
    end)

    it("runs again what an earlier result holds, every default resolved", function()
        recipe([[{"flat_field", "minus_log", "center", {"fbp", filter = "hann"},
            {"rescale", dtype = "uint16", sample = 3}}]], "-o " .. path("first.h5"))
        must(("%s --recipe %s --device host -o %s"):format(path("scan.h5"), path("first.h5"),
            path("again.h5")))
        assert.is_true(bytes "first.h5" == bytes "again.h5")
        local text = values("first.h5", "/entry/reconstruction/parameters/recipe")
        assert.matches('"fbp".*filter = "hann"', text)
        assert.matches("padding = ", text) -- nobody wrote that
        assert.matches("center", values("first.h5", "/entry/provenance/values/center_verdict")
            and "center")
        assert.equal(text .. "\n", recipe(text, "--print-recipe"))
    end)

    it("sets an option, and sweeps one into a stack and a sheet", function()
        local text = recipe(CHAIN, "--set fourier.filter=hann --print-recipe")
        assert.matches('filter = "hann"', text)
        recipe(CHAIN, ("--sweep center.column=30:33:1 --row 5 -o %s"):format(path("sweep.h5")))
        local _, shape = bytes "sweep.h5"
        assert.same({4, 64, 64}, shape)
        assert.same({30, 31, 32, 33},
            values("sweep.h5", "/entry/reconstruction/parameters/sweep_values"))
        assert.matches("^\137PNG.*, row 5: recipe [^\n]*, center.column 30, 31, 32, 33; "
            .. "black ",
            files.read(path("sweep.png")))
        -- the values are the axis of the slices, beside sizes of pixels
        local file <close> = mb.h5.open(path "sweep.h5")
        assert.same({"center.column", "y", "x"}, file:attribute("/entry/data", "axes"))
        assert.is_false(file:exists "/entry/data/z")
        assert.same({30, 31, 32, 33}, values("sweep.h5", "/entry/data/center.column"))
        assert.equal("m", file:attribute("/entry/data/x", "units"))
        local x = values("sweep.h5", "/entry/data/x")
        assert.equal(file:attribute("/entry/data/data", "pixel_size"), x[2] - x[1])
        -- each slice is the one of a run with that value
        recipe(CHAIN, ("--set center.column=32 --row 5 -o %s"):format(path("one.h5")))
        local all, one = bytes "sweep.h5", bytes "one.h5"
        assert.is_true(all:sub(2 * #one + 1, 3 * #one) == one)
    end)

    it("sweeps words and lists, and says what is wrong before any slice is made", function()
        local text = '{{"crop", rows = {2, 4}}, "flat_field", "minus_log", {"fbp", center = 31.5}}'
        recipe(text, ("--sweep fbp.x={1,10},{2,11} -o %s"):format(path("lists.h5")))
        local _, shape = bytes "lists.h5" -- of the middle row of three, not of nine
        assert.same({2, 64, 10}, shape)
        local at = "/entry/reconstruction/parameters/"
        assert.same({"{1, 10}", "{2, 11}"}, values("lists.h5", at .. "sweep_values"))
        assert.matches("padding = ", values("lists.h5", at .. "recipe"))
        local file <close> = mb.h5.open(path "lists.h5")
        assert.same({".", "y", "x"}, file:attribute("/entry/data", "axes"))
        assert.same({"{1, 10}", "{2, 11}"}, values("lists.h5", "/entry/data/fbp.x"))
        assert.matches("1 slice of row %d", recipe(text, "--sweep fbp.filter=hann -o "
            .. path("word.h5")))
        local before = files.list(folder)
        for sweep, pattern in pairs {
            ["fbp.filter=hann,bad"] = "step fbp: filter is the string 'bad'",
            ["fbp.size=32,64"] = "with 32 they are float32 of 32 x 32, with 64 float32 of 64 x 64",
            ["fbp.filter=hann --preview " .. path("lists.png")] = "already exists; choose another",
        } do
            local message = recipe(text, ("--sweep %s -o %s"):format(sweep, path("none.h5")), 1)
            assert.is_truthy(message:find(pattern, 1, true), message)
            assert.is_nil(message:find("sweep  ", 1, true), message)
        end
        assert.matches("%-%-sweep and %-%-vertical", recipe(text,
            "--sweep fbp.size=3,4 --vertical x=3", 2))
        assert.matches("%-%-row and %-%-rows", recipe(text, "--row 2 --rows 1:2", 2))
        assert.same(before, files.list(folder))
    end)

    it("never writes over what it reads, and takes the name that step save gives", function()
        local text = '{"flat_field", {"save", file = "%s"}}'
        local scan_bytes = files.read(path("scan.h5"))
        assert.matches("scan.h5 is a file that is read", recipe(text:format("scan.h5"),
            "--overwrite", 1))
        assert.is_true(scan_bytes == files.read(path("scan.h5")))
        assert.matches("must end in .h5", recipe(text:format("x.jpg"), "", 2))
        files.write(path("scan-volume.h5"), "in the way")
        recipe(text:format("saved.h5"), "")
        assert.is_not_nil(mb.system.stat(path("saved.h5")))
        assert.matches("saved.h5 is a file that is read", (select(2, run(
            ("%s --recipe %s --device host -o %s --overwrite"):format(path("scan.h5"),
                path("saved.h5"), path("saved.h5"))))))
        recipe(text:format("saved.h5"), "--print-recipe")
        assert.equal("in the way", files.read(path("scan-volume.h5")))
    end)

    it("makes a vertical slice without the volume", function()
        recipe(CHAIN, "-o " .. path("whole.h5") .. " --overwrite")
        recipe(CHAIN, ("--vertical x=20 -o %s"):format(path("vertical.h5")))
        local whole, shape = bytes "whole.h5"
        local slice, own = bytes "vertical.h5"
        assert.same({shape[1], shape[2], 1}, own)
        local expected = {}
        for line = 0, shape[1] * shape[2] - 1 do
            local at = 4 * (line * shape[3] + 19)
            expected[#expected + 1] = whole:sub(at + 1, at + 4)
        end
        local different, most = 0, 0
        for i, value in ipairs(expected) do
            local a, b = string.unpack("f", value), string.unpack("f", slice, 4 * i - 3)
            different, most = math.max(different, math.abs(a - b)), math.max(most, math.abs(a))
        end
        assert.is_true(different < 1e-5 * most, different / most)
    end)

    it("saves a picture after every step", function()
        recipe(CHAIN, "--snapshots " .. path("pictures"))
        assert.same({"01-flat_field.png", "02-minus_log.png", "04-fourier.png"},
            files.list(path("pictures")))
    end)

    it("leaves no empty folder where the first picture cannot be written", function()
        files.write(path("recipe.lua"), CHAIN)
        local text, _, status = files.run(("ulimit -f 0; '%s' reconstruct '%s' --recipe '%s' "
            .. "--device host --snapshots '%s'"):format(mb.system.program(), path("scan.h5"),
            path("recipe.lua"), path("none")))
        assert.equal(1, status)
        assert.matches("cannot write '[^']*none/01%-flat_field.png': File too large", text)
        assert.is_nil(mb.system.stat(path("none")))
    end)

    it("runs a step of one's own, and records it", function()
        files.write(path("steps.lua"), [[
return {
    name = "double", summary = "Twice the values.",
    takes = {quantity = "any", layout = "slices"}, gives = {quantity = "same", layout = "same"},
    run = function(block)
        require("moonbeam").binary(block.data, "mul", {scalar = 2, out = block.data})
    end,
}
]])
        local with = CHAIN:gsub('"edge"},', '"edge"}, "double"')
        recipe(with, ("--steps %s -o %s"):format(path("steps.lua"), path("double.h5")))
        local once, twice = bytes "whole.h5", bytes "double.h5"
        for i = 1, #once, 4000 do
            local at = (i - 1) // 4 * 4 + 1
            assert.equal(2 * string.unpack("f", once, at), string.unpack("f", twice, at))
        end
        local at = "/entry/reconstruction/parameters/own_steps/file_1/"
        assert.equal(files.read(path("steps.lua")), values("double.h5", at .. "source"))
        assert.matches("^fnv1a64:", values("double.h5", at .. "hash"))
        assert.same({"double"}, values("double.h5", at .. "names"))
        assert.matches("double", recipe(with, "-o " .. path("none.h5"), 1))
        assert.is_nil(io.open(path("none.h5")))
        -- a replay without the steps is an error
        local status, text = run(("%s --recipe %s --device host -o %s"):format(path("scan.h5"),
            path("double.h5"), path("none.h5")))
        assert.equal(1, status)
        assert.matches("there is no step 'double'.*%-%-steps", text)
    end)

    it("finds the axis in a part of the detector as in the whole, in its columns and rows",
        function()
        must(path("lean.h5") .. " --size 64 --rows 24 --angles 90 --axis-tilt 5 --quiet",
            "simulate.lua")
        for part, rows in pairs {["rows = {1, 6}"] = "row 3", ["rows = {19, 24}"] = "row 21",
            ["columns = {6, 60}"] = "rows 11 to 13"} do
            local status, text = run(("%s --recipe %s --device host -o %s --overwrite"):format(
                path("lean.h5"), path("part.lua"), path("part.h5")), nil, files.write(
                path("part.lua"), ([[{"flat_field", {"tilt", angle = %.17g}, {"crop", %s},
                    "minus_log", "center", "fbp"}]]):format(math.rad(5), part)))
            assert.equal(0, status, text)
            local column, pairs_, slices = text:match(
                "center +([%d.]+), found %(%d+ pairs [%a ]+ give ([%d.]+).* of " .. rows
                .. " give ([%d.]+)")
            assert.near(31.5, tonumber(column), 0.3, text)
            assert.near(31.5, tonumber(pairs_), 0.3, text)
            assert.near(31.5, tonumber(slices), 3, text)
        end
    end)

    it("searches the axis of scans of few columns, and names the step that gives it", function()
        for columns = 1, 3 do
            local text = recipe(([[{"flat_field", {"crop", columns = {30, %d}}, "minus_log", "center",
                "fbp"}]]):format(29 + columns), "--overwrite -o " .. path("narrow.h5"))
            assert.matches("give %-%-set center.column=X", text)
            local found = values("narrow.h5", "/entry/provenance/values/center")
            assert.is_true(found >= 29 and found <= 28 + columns, found)
        end
    end)

    it("stores the slices of a half acquisition as wide as the axis that was found makes them",
        function()
        must(path("half.h5") .. " --size 48 --rows 4 --angles 96 --span 360 --center 40 --quiet",
            "simulate.lua")
        local chain, tail = '"flat_field", %s "minus_log", "half_acquisition", "center", "fbp"', {}
        for name, text in pairs {plain = "{%s}", coded =
            '{%s, {"rescale", dtype = "float32", percentiles = {0, 100}}}'} do
            files.write(path("half.lua"), text:format(chain:format ""))
            must(("%s --recipe %s --device host -o %s"):format(path("half.h5"), path("half.lua"),
                path(name .. ".h5")))
            tail[name] = {bytes(name .. ".h5")}
        end
        assert.same(tail.plain[2], tail.coded[2])
        assert.is_true(tail.plain[2][3] > 70 and tail.plain[2][3] < 90)
        local file <close> = assert(mb.h5.open(path("coded.h5")))
        local scaling = file:attributes "/entry/data/data"
        local at = 4 * (tail.plain[2][3] ^ 2 // 2 | 0) + 1
        assert.near(string.unpack("f", tail.plain[1], at), string.unpack("f", tail.coded[1], at)
            * scaling.scale_factor + scaling.add_offset, 1e-6 * scaling.scale_factor)
        -- behind a section of frames the axis is found when the result is there
        files.write(path("own.lua"), [[return {name = "frames_alone", summary = "S.",
            takes = {quantity = "any", layout = "frames"}, cuts = {"frames"},
            run = function() end}]])
        files.write(path("half.lua"), ("{%s}"):format(chain:format '"frames_alone",'))
        local all = ("%s --recipe %s --steps %s --device host -o %s "):format(path("half.h5"),
            path("half.lua"), path("own.lua"), path("later.h5"))
        local status, text = run(all)
        assert.equal(1, status)
        assert.matches("depends on the axis, which is not known before section 2; give", text)
        must(all .. "--set fbp.size=80")
    end)

    it("says in which unit rescaled values are, and how they are scaled", function()
        recipe([[{"flat_field", "minus_log", {"fbp", center = 31.5},
            {"rescale", dtype = "uint8", range = {0, 255}}}]], "-o " .. path("scaled.h5"))
        local file <close> = assert(mb.h5.open(path("scaled.h5")))
        local attributes = file:attributes "/entry/data/data"
        assert.equal("1/m", attributes.units)
        assert.equal("float", math.type(attributes.add_offset))
        assert.equal(1.0, attributes.scale_factor)
    end)

    it("names the options that go with a recipe where a scan has no flats", function()
        do
            local counts <close> = mb.ones({4, 2, 8}, {dtype = "u16"})
            local darks <close> = mb.zeros({1, 2, 8}, {dtype = "u16"})
            local file <close> = mb.h5.create(path("darks.h5"))
            file:write("/exchange/data", counts)
            file:write("/exchange/data_dark", darks)
            file:write("/exchange/theta", {0, 45, 90, 135}, {attributes = {units = "deg"}})
            file:finish()
        end
        files.write(path("lines.lua"), '{"flat_field"}')
        local status, text = run(("%s --recipe %s --device host -o %s"):format(path("darks.h5"),
            path("lines.lua"), path("none.h5")))
        assert.equal(1, status)
        assert.matches('or give %-%-input "line integrals" if the frames', text)
    end)

    it("checks the free disk space before a frame is read", function()
        local small = files.small_disk(folder, "64k")
        if not small then
            pending "no small file system can be mounted here"
            return
        end
        local text = recipe(CHAIN, "-o " .. small .. "/full.h5", 1)
        local left = files.list(small)
        files.unmount(small)
        assert.matches("the disk of '[^']+' has 64.00 KiB free; needed: 144.00 KiB for the result",
            text)
        assert.is_nil(text:find("center  ", 1, true))
        assert.same({}, left)
        os.remove(small)
        text = recipe([[{"flat_field", "minus_log", {"fbp", center = 31.5},
            {"rescale", dtype = "uint8", percentiles = {1, 99}}}]],
            "--host-budget 1Ki --scratch missing -o " .. path("none.h5"), 1)
        assert.matches("reconstruct: [^/\n]*missing: No such file", text)
    end)

    it("ends with the status of a signal at one, and leaves nothing", function()
        files.write(path("steps.lua"), [[
return {
    name = "ended", summary = "As if a batch system did it.",
    takes = {quantity = "any", layout = "frames"},
    run = function()
        if not require("moonbeam").device.dry() then
            os.execute "kill -TERM $PPID"
        end
    end,
}
]])
        local before = files.list(folder)
        local text = recipe([[{"flat_field", "ended"}]], ("--steps %s --chunk 1 -o %s"):format(
            path("steps.lua"), path("none.h5")), 143)
        assert.matches("reconstruct: interrupted by SIGTERM\n$", text)
        assert.same(before, files.list(folder))
    end)

    it("refuses what makes no sense before anything is written", function()
        local before = files.list(folder)
        for arguments, pattern in pairs {
            ["--set fbp.filter=hann"] = "no step 'fbp'",
            ["--set fourier.filtr=hann"] =
                "step fourier: unknown option 'filtr'; did you mean 'filter'",
            ["--sweep center.colum=1:2:1"] = "unknown option 'colum'; did you mean 'column'",
            ["--sweep center"] = "STEP.OPTION=FIRST:LAST:STEP",
            ["--vertical z=3"] = "x=N or y=N",
            ["--vertical x=999"] = "x is {999, 999}",
            ["--input nothing"] = "input is \"nothing\"",
        } do
            local text = recipe(CHAIN, arguments .. " -o " .. path("none.h5"), 1)
            assert.is_truthy(text:find(pattern, 1, true), text)
        end
        local text = recipe(CHAIN, "--filter hann -o " .. path("none.h5"), 2)
        assert.matches("%-%-filter cannot be used with %-%-recipe", text)
        text = recipe("{os.execute 'touch hacked'}", "-o " .. path("none.h5"), 1)
        assert.matches("recipe.lua:1:", text)
        assert.same(before, files.list(folder))
    end)
end)
