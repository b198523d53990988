-- What deconvolve.lua tells of the noise, and where --iterations auto ends.
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local folder

local function run(form, ...)
    return helper.run_program("scripts/deconvolve.lua "
        .. form:format(...):gsub("FOLDER", folder))
end

local function must(...)
    local text, status = run(...)
    assert(status == 0, text)
    return text
end

local function bytes(text, form)
    return assert(text:match(form .. " [^\n]-%((%d+) bytes%)"), text)
end

local IMAGE <const> = "FOLDER/image.tif FOLDER/psf.npy -d host --overwrite "

-- The text about an image in its ImageJ metadata, which are UTF-16.
local function info_of(path)
    return (files.read(path):gsub("%z", ""))
end

describe("deconvolve.lua and noise", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
        local truth <close> = mb.phantom.spheres({ 10, 58, 58 },
            { count = 12, background = 2, margin = 4 })
        local psf <close> = mb.psf.gaussian({ 7, 7, 7 }, { 1.2, 1.5, 1.5 })
        mb.npy.write(folder .. "/psf.npy", psf)
        local blurred <close> = mb.convolution(truth, psf, { boundary = "replicate" })
        local few <close> = blurred * 0.3
        local photons <close> = mb.poisson(few, { seed = 3 })
        local image <close> = mb.convert(photons, "u16", { scale = 3, offset = 100 })
        mb.tiff.write(folder .. "/image.tif", image)
        local flat <close> = mb.full({ 10, 20, 20 }, 50, { dtype = "u16" })
        mb.tiff.write(folder .. "/flat.tif", flat)
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    it("estimates gain and offset where they are auto, and subtracts and divides", function()
        local text = must(IMAGE .. "-o FOLDER/a.tif --iterations 3 --gain auto --offset auto")
        local gain, offset = text:match "gain (%S+) %+%- %S+ counts per photon, offset (%S+) %+%-"
        assert.is_true(math.abs(gain - 3) < 0.6, text)
        assert.is_true(math.abs(offset - 100) < 3, text)
        assert.matches("photons +%(image %- [%d.]+%) / [%d.]+, float32", text)
        local result <close> = mb.images.read(folder .. "/a.tif")
        assert.is_true(result:mean() < 20) -- photons, not counts
        assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
    end)

    it("compares what is typed with what the image says", function()
        assert.matches("%-%-gain is 1, but the noise of the image says 2",
            must(IMAGE .. "-o FOLDER/a.tif --iterations 2 --gain 1 --offset 100"))
        assert.matches("%-%-offset is 20, but the noise of the image says",
            must(IMAGE .. "-o FOLDER/a.tif --iterations 2 --offset 20"))
        assert.is_nil(must(IMAGE .. "-o FOLDER/a.tif --iterations 2 --gain 3 --offset 100")
            :find("but the noise", 1, true))
    end)

    it("ends by itself, with the memory that it predicts, whole and by tiles", function()
        local ends = {}
        for _, more in ipairs { "", "--tiles exact", "--tiles exact --tile 12,40,40",
            "--tiles blended" } do
            local text = must("%s -o FOLDER/a.tif --iterations auto --gain auto --offset auto %s",
                IMAGE, more)
            ends[#ends + 1] = tonumber(text:match "\niterations (%d+): then held%-out photons are")
            assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
        end
        -- A plan, which reads no image, takes the search to be that of a known gain, as it is.
        local plan = must(IMAGE .. "-o FOLDER/a.tif --iterations auto --plan")
        assert.equal(bytes(must(IMAGE .. "-o FOLDER/a.tif --iterations auto --verbose"),
            "measured +peak"), bytes(plan, "memory +peak"))
        assert.same({ ends[1], ends[1], ends[1], ends[1] }, ends)
        assert.is_true(ends[1] > 3 and ends[1] < 60)
    end)

    it("says in the result how the number of iterations was found", function()
        local function found(name)
            local text = must(IMAGE .. "-o FOLDER/%s --iterations auto --gain auto --offset auto", name)
            return tonumber(text:match "\niterations (%d+): "),
                tonumber(text:match "offset ([%d.]+) %+%-")
        end
        local count, offset = found "p.h5"
        do
            local file <close> = mb.h5.open(folder .. "/p.h5")
            local function value(name)
                return file:value("/entry/process/parameters/" .. name)
            end
            assert.equal(count, value "iterations")
            assert.equal("auto: held-out photons are predicted best", value "iterations_rule")
            assert.equal(0.5, value "held_out_part")
            assert.near(1, value "noise_gain", 1e-9) -- of the image in photons
            assert.near(0, value "noise_offset", 1e-9)
            assert.near(offset, value "offset", 0.01 * offset)
        end
        local rule = '"iterations_rule":"auto: held-out photons are predicted best"'
        local number = ('"iterations":%d,'):format(found "p.tif")
        local text = files.read(folder .. "/p.tif"):gsub("%z", "")
        assert.truthy(text:find(rule, 1, true))
        assert.truthy(text:find('"held_out_part":0.5', 1, true))
        assert.truthy(text:find(number, 1, true))
        found "p.zarr"
        text = files.run(("cat '%s'/p.zarr/zarr.json"):format(folder)):gsub('": ', '":')
        assert.truthy(text:find(rule, 1, true), text)
        assert.truthy(text:find(number, 1, true), text)
        must(IMAGE .. "-o FOLDER/p.tif --iterations 3")
        assert.is_nil(files.read(folder .. "/p.tif"):find("held_out_part", 1, true))
    end)

    it("says what the search is before it starts", function()
        local text = must(IMAGE .. "-o FOLDER/a.tif --iterations auto --gain auto --offset auto")
        local tries = text:match("\nsearch +half of the photons is deconvolved until it predicts the "
            .. "other half worse: at most (%d+) iterations; it takes about one to two times as "
            .. "long as the iterations after it\n.-iterations %d+: then")
        assert.equal("136", tries) -- (200 + 2) / 1.5 and one
        assert.is_nil(must(IMAGE .. "-o FOLDER/a.tif --iterations 2"):find("\nsearch", 1, true))
    end)

    it("says where gradient consensus gets no photons, and where it did not stop", function()
        local few = IMAGE .. "-o FOLDER/a.tif -m gradient_consensus "
        local text = must(few .. "--iterations 3")
        assert.matches("are not photons: its noise says [%d.]+ %+%- [%d.]+ counts per photon, and "
            .. "%-%-method gradient_consensus deals out photons; give %-%-gain auto %-%-offset auto",
            text)
        text = must(few .. "--iterations 12 --gain auto --offset auto")
        assert.is_nil(text:find("are not photons", 1, true))
        assert.is_nil(text:find("\nended", 1, true))
        assert.is_nil(must("FOLDER/flat.tif FOLDER/psf.npy -d host -o FOLDER/f.tif --overwrite "
            .. "-m gradient_consensus --iterations 3"):find("are not photons", 1, true))
        text = must(few .. "--offset 100 --iterations 100")
        assert.truthy(text:find("stopped    after", 1, true) or text:find("ended      after 100 "
            .. "iterations, and the halves of the photons still agree", 1, true), text)
    end)

    it("says what it does where the noise is unknown", function()
        local text = must("FOLDER/flat.tif FOLDER/psf.npy -d host -o FOLDER/f.tif --overwrite "
            .. "--iterations auto --verbose")
        assert.matches("%-%-iterations auto: the noise is unknown %(0 tiles .-%), so 10 iterations "
            .. "are made", text)
        assert.matches("after 10 iterations", text)
        assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
        local refused, status = run("FOLDER/flat.tif FOLDER/psf.npy -d host -o FOLDER/f.tif "
            .. "--overwrite --gain auto")
        assert.equal(1, status)
        assert.matches("does not tell its gain and offset: .-; give %-%-gain and %-%-offset",
            refused)
    end)

    it("says that an image or a channel is 0 everywhere, and searches the others", function()
        local function file(name, dark)
            local out <close> = mb.tiff.create(folder .. "/" .. name, {shape = {10, 58, 58},
                dtype = "u16", channels = #dark, overwrite = true})
            local image <close> = mb.tiff.read(folder .. "/image.tif")
            local zero <close> = mb.zeros({10, 58, 58}, {dtype = "u16"})
            for channel, is_dark in ipairs(dark) do
                mb.volumes.store(out:volume(channel, 1), is_dark and zero or image)
            end
            out:finish()
        end
        local zero <close> = mb.zeros({10, 58, 58}, {dtype = "u16"})
        mb.tiff.write(folder .. "/dark.tif", zero, {overwrite = true})
        local command = "FOLDER/%s FOLDER/psf.npy -d host --overwrite -o FOLDER/dark_out.tif "
            .. "--iterations auto --psf-background none %s"
        for _, more in ipairs {"", "--gain 3 --offset 0", "--tiles exact", "--tiles blended"} do
            local text = must(command, "dark.tif", more)
            assert.matches("noise      unknown: all pixels that were looked at are 0\n", text, 1,
                true)
            assert.matches("\niterations 1: the image is 0 everywhere, and so is its result\n", text,
                1, true)
            assert.is_nil(text:find("warning", 1, true), text)
            assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
            local result <close> = mb.images.read(folder .. "/dark_out.tif")
            assert.equal(0, result:max())
        end
        local alone = tonumber(must(command, "image.tif", "--gain 3"):match
            "\niterations (%d+): then")
        for _, dark in ipairs {{true, false}, {false, true}} do
            file("some.tif", dark)
            local own = dark[1] and 2 or 1
            for _, more in ipairs(dark[1] and {"--gain 3", "--gain auto", "--tiles exact"}
                or {"--gain 3"}) do
                local text = must(command, "some.tif", more)
                assert.equal(own == 2, text:find("from channel 2, time 1 of the image", 1, true)
                    ~= nil, text)
                assert.matches(("\niterations 1: channel %d is 0 everywhere, and so is its "
                    .. "result\n"):format(3 - own), text, 1, true)
                assert.matches(("search     half of the photons of channel %d is"):format(own), text,
                    1, true)
                local found = tonumber(text:match(("\niterations (%%d+) of channel %d: then")
                    :format(own)))
                assert.equal(more == "--gain 3" and alone or found, found)
                assert.is_true(found > 4)
                assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
            end
        end
    end)

    it("says of which of several volumes the metrics and the ends are", function()
        local out <close> = mb.tiff.create(folder .. "/four.tif", {shape = {10, 58, 58},
            dtype = "u16", channels = 2, frames = 2, overwrite = true})
        local image <close> = mb.tiff.read(folder .. "/image.tif")
        for channel = 1, 2 do
            for frame = 1, 2 do
                mb.volumes.store(out:volume(channel, frame), image)
            end
        end
        out:finish()
        local command = "FOLDER/four.tif FOLDER/psf.npy -d host --overwrite -o FOLDER/four_out.tif "
            .. "--iterations 3 --metrics %s"
        for _, more in ipairs {"", "--tiles exact", "--method gradient_consensus",
            "--method landweber", "--tolerance 1", "--channel 2", "--channel 2 --frame 1"} do
            local text = must(command, more)
            local seen, of = {}, nil
            for line in text:gmatch "[^\n]+" do
                of = line:match "^metrics    (.*)" or of
                if line:find "^ +%d+  .*change" then
                    seen[of or "?"] = (seen[of or "?"] or 0) + 1
                elseif of and line:find "^stopped" then
                    assert.matches("stopped    " .. of .. ": after 1 iteration of at most 3", line,
                        1, true)
                end
            end
            local each, wanted = more == "--tolerance 1" and 1 or 3, {}
            for channel = more:find "channel" and 2 or 1, 2 do
                for frame = 1, 2 do
                    wanted[("channel %d, time %d"):format(channel, frame)] = each
                end
            end
            assert.same(more:find "frame" and {["?"] = each} or wanted, seen)
        end
    end)

    it("plans at most what it takes, where only the run can know the noise", function()
        for image, known in pairs {flat = false, image = true} do
            for _, tiles in ipairs {"", "--tiles exact", "--tiles blended --tile 10,30,30"} do
                local words = ("FOLDER/%s.tif FOLDER/psf.npy -d host --overwrite "
                    .. "-o FOLDER/a.tif --iterations auto %s "):format(image, tiles)
                local plan = must(words .. "--plan")
                local most = bytes(plan, "memory +peak at most")
                local text = must(words .. "--budget " .. most)
                local predicted = bytes(text, "memory +peak")
                assert.equal(predicted, bytes(text, "measured +peak"), text)
                assert.is_true(known and predicted == most or predicted <= most, text)
                assert.equal(known, text:find("noise +unknown") == nil, text)
            end
        end
    end)

    it("tells and draws the misfit against what noise alone leaves", function()
        for _, more in ipairs { "", "--tiles exact" } do
            local text = must("%s -o FOLDER/a.tif --iterations 12 --gain 3 --offset 100 --curve "
                .. "FOLDER/curve.svg --snapshots FOLDER/s.png --every 4 --pixel 100 %s", IMAGE,
                more)
            local before, last, alone = text:match("I%-divergence (%S+) before, (%S+) before the "
                .. "last iteration; noise alone leaves about (%S+)\n")
            assert.is_true(tonumber(before) > 3 * last and tonumber(last) > 0.7 * alone, text)
            assert.is_true(tonumber(last) < 1.5 * alone, text)
            local file <close> = assert(io.open(folder .. "/curve.svg"))
            local drawing = file:read "a"
            assert.matches("noise alone", drawing)
            -- No value is cut off: the curve falls from each iteration to the next.
            local heights, points = {}, ""
            for list in drawing:gmatch 'points="([^"]*)"' do
                local _, count = list:gsub(",", ",")
                points = count == 12 and list or points
            end
            for y in points:gmatch ",(%S+)" do
                heights[#heights + 1] = tonumber(y)
                assert.is_true(#heights == 1 or heights[#heights] > heights[#heights - 1], points)
            end
            assert.equal(12, #heights)
            assert.truthy(info_of(folder .. "/a.tif"):find('"units":"photons"', 1, true))
            -- Two snapshots of 58 pixels side by side and one below, a bar and a caption.
            local sheet = files.read(folder .. "/s.png")
            assert.truthy(sheet:find(("image.tif, plane 6 after iterations 4, 8, 12: method rl, 12 "
                .. "iterations, PSF psf.npy%s; black"):format(more:gsub("%-%-t", ", t")), 1, true))
            local width, height = string.unpack(">I4I4", sheet, 17)
            assert.equal(264, width)
            assert.is_true(height > 2 * 58 + 4 + 30 and height < 2 * 58 + 4 + 100, height)
            assert.equal(bytes(text, "memory +peak"), bytes(text, "measured +peak"))
        end
        assert.matches("the noise is being fitted", must(IMAGE .. "-o FOLDER/a.tif --iterations 20 "
            .. "--gain 5 --offset 100 --curve FOLDER/curve.svg"))
    end)

    it("says why it stopped", function()
        assert.matches("stopped +after %d+ iterations of at most 40, because the relative change "
            .. "fell below %-%-tolerance", must(IMAGE
            .. "-o FOLDER/a.tif --iterations 40 --tolerance 0.05"))
        assert.matches("because that is %-%-iterations",
            must(IMAGE .. "-o FOLDER/a.tif --iterations 3 --verbose"))
        assert.truthy(info_of(folder .. "/a.tif"):find('"units":"counts"', 1, true))
    end)

    it("has equal ledgers, planned and run", function()
        for _, more in ipairs { "--gain 3 --offset 100 --curve FOLDER/c.png --snapshots FOLDER/s.png",
            "--tiles exact --snapshots FOLDER/s.png --every 2" } do
            local text, status = helper.run_program(("--ledger scripts/deconvolve.lua " .. IMAGE
                .. "-o FOLDER/l.tif --iterations 4 " .. more):gsub("FOLDER", folder))
            assert(status == 0, text)
            assert.matches("difference 0; 0 of %d+ steps differ", text)
        end
    end)

    it("refuses what makes no sense", function()
        for _, case in ipairs {
            { "-m wiener --curve FOLDER/c.png", "%-%-curve is not for %-%-method wiener" },
            { "-m landweber --iterations auto", "%-%-iterations auto is for %-%-method rl" },
            { "--tiles blended --snapshots FOLDER/s.png", "is not for %-%-tiles blended" },
            { "--every 3", "%-%-every is for %-%-snapshots FILE, which is missing" },
            { "--iterations many", "a whole number, 1 or more, or auto" },
            { "--gain 0", "a number above 0, or auto" },
            { "--curve FOLDER/c.jpg", "%-%-curve" },
        } do
            local text, status = run("%s -o FOLDER/n.tif %s", IMAGE, case[1])
            assert.equal(2, status, text)
            assert.matches(case[2], text)
        end
    end)
end)
