-- What the command reconstruct refuses: with a message, and without leaving a file.
local helper = require "spec.helper"
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"

local must, run = commands.must, commands.run
local shell, folder

local function path(name)
    return shell:path(name)
end

local function volume_of(name)
    return shell:volume_of(name)
end

describe("reconstruct", function()
    setup(function()
        shell = commands.folder()
        folder = shell.folder
        shell:simulate()
    end)

    teardown(function()
        shell:remove()
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
                    "%-%-pad%-width is 2052 for rows of 64; .* at most, 2048", 2)
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
                helper.kept_promise(text)
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
                    and "reconstruct: warning: 3 values were not finite and count as no attenuation (3.1 %)\n"
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
            local wanted = "no flats, and counts %(uint16%) cannot be normalized without them: name "
                .. "them with %-%-flats, %-%-flats%-path.*%-%-no%-log"
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
                "all 80 values .* in 5 of the 6 projections, are 0")
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
end)
