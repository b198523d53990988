-- convolve.lua and deconvolve.lua as a user runs them.
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local folder

local function run(arguments)
    return helper.run_program(arguments)
end

local function must(arguments)
    local text, status = run(arguments)
    assert(status == 0, ("%s ended with %s:\n%s"):format(arguments, status, text))
    return text
end

local function exists(name)
    local file <close> = io.open(folder .. "/" .. name)
    return file ~= nil
end

local real = files.data("dapi_001.tif")
local model = " --na 1.45 --index 1.512 --wavelength 461 --pixel 130 --step 300"

describe("convolve.lua", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    local small = "scripts/convolve.lua -d host --size 16,48,40 --psf-size 7,9,9 --sigma 1.5,2,2 "

    it("takes what it predicts, a quarter of the naive way", function()
        local text = must(small .. ("-p %s/ours.png -o %s/ours.npy"):format(folder, folder))
        local peak = text:match("; peak [%d.]+ [KM]iB %((%d+) bytes%)")
        assert.is_true(exists "ours.png")
        local naive = must(small .. ("--naive -o %s/naive.npy"):format(folder))
        local naive_peak = naive:match("; peak [%d.]+ [KM]iB %((%d+) bytes%)")
        assert.is_true(tonumber(naive_peak) > 3.5 * tonumber(peak))
        local a <close> = mb.npy.read(folder .. "/ours.npy")
        local b <close> = mb.npy.read(folder .. "/naive.npy")
        helper.assert_close(a, b, 1e-6)
    end)

    it("takes in all what it predicts, with pictures and files", function()
        for _, more in ipairs { "", "--naive", "--keep", "--mode full --boundary zero",
            "-t always --boundary mirror --tile 9,20,20",
            "-t auto --boundary zero --budget 300000", "--model born_wolf --preview-z 3,9",
            "-t auto --mode full --boundary zero" } do
            for _, pictures in ipairs { "", "-p %s/p.png", "--preview-image %s/p.png" } do
                pictures = more:find "preview" and "-p %s/p.png"
                    or more:find "budget" and "" or pictures
                local text = must(small .. more .. " " .. (pictures .. " --overwrite -o %s/a.npy")
                    :format(folder, folder, folder))
                local predicted = text:match "\npredicted peak [^\n]-%((%d+) bytes%)"
                local measured = text:match "\nmeasured peak [^\n]-%((%d+) bytes%)"
                assert.equal(assert(predicted, text), measured)
                local steps = tonumber(text:match "; peak [%d.]+ [KM]iB %((%d+) bytes%)")
                assert.is_true(pictures == "" and steps == tonumber(measured)
                    or pictures ~= "" and steps <= tonumber(measured))
            end
        end
        local text = run(small .. "--mode full -t auto --boundary zero --budget 200000")
        must(small .. "--mode full -t auto --boundary zero --budget "
            .. assert(text:match "; give %-%-budget (%S+) or more"))
    end)

    it("retells the notebook's ledger in the naive way, to the byte", function()
        -- R: the image; H: a spectrum, and the work area that every plan keeps. 512 x 512 x 128
        -- gives the notebook's 0.12500, 0.25000, 0.37500, 0.62598, 0.75146, 0.87695 and 1.12744
        -- GiB, and the 1.25293 that it does not show, in MiB below 1 GiB.
        local text = must(small .. "--naive")
        local r, h = 16 * 48 * 40 * 4, 16 * 48 * 21 * 8
        local seen = {}
        for live in text:gmatch("live +([%d.]+ [KM]?i?B)") do
            seen[#seen + 1] = live
        end
        local shown = mb.device.format_bytes
        for i, bytes in pairs { [1] = r, [3] = 2 * r, [4] = 3 * r, [5] = 3 * r + 2 * h,
            [6] = 3 * r + 3 * h,
            [7] = 3 * r + 4 * h, [8] = 4 * r + 5 * h } do
            assert.equal(shown(bytes), seen[i], "line " .. i)
        end
        assert.equal(4 * r + 6 * h, tonumber(text:match("; peak [%d.]+ [KM]iB %((%d+) bytes%)")))
    end)

    it("takes the PSF from a file or a model", function()
        local psf <close> = mb.psf_gaussian({ 7, 9, 9 }, { 1.5, 2, 2 })
        mb.tiff.write(folder .. "/psf.tif", psf)
        local from_file = must(small
            .. ("--psf %s/psf.tif --boundary zero -o %s/file.npy"):format(folder,
            folder))
        assert.matches("psf.tif; boundary zero", from_file)
        must(small .. ("--boundary zero -o %s/model.npy"):format(folder))
        local a <close> = mb.npy.read(folder .. "/file.npy")
        local b <close> = mb.npy.read(folder .. "/model.npy")
        helper.assert_close(b, a, 1e-6)
        for _, model_name in ipairs { "born_wolf", "gibson_lanni" } do
            assert.matches("PSF " .. model_name, must(small .. "--model " .. model_name))
        end
    end)

    it("shows the wrap-around and shows it gone", function()
        must(small .. ("--boundary circular -o %s/circular.npy"):format(folder))
        must(small .. ("--boundary zero -o %s/zero.npy"):format(folder))
        local circular <close> = mb.npy.read(folder .. "/circular.npy")
        local zero <close> = mb.npy.read(folder .. "/zero.npy")
        local wrapped <close> = circular - zero
        assert.is_true(wrapped:max() > 1)
        local inside <close> = wrapped:view({ 4, 13 }, { 5, 44 }, { 5, 36 })
        assert.is_true(inside:norm() < 1e-4 * zero:norm())
    end)

    it("runs out of memory on purpose with advice", function()
        local text, status = run(small .. "--budget 200000")
        assert.equal(1, status)
        assert.matches("do not fit", text)
        assert.matches("; give %-%-budget 255K or more %(254464 bytes%)\n$", text)
        local enough = tonumber(text:match("this job in (%d+) bytes as it is"))
        assert.equal(0, (select(2, run(small .. "--budget " .. enough))))
        assert.equal(1, (select(2, run(small .. "--budget " .. enough - 512))))
        -- Image and result alone take 250 kB; tiles make do with what is left.
        local tiled = must(small
            .. ("--budget 500000 --tiles always --boundary zero -o %s/tiled.npy"):format(folder))
        assert.is_true(tonumber(tiled:match("(%d+) tiles of")) > 1)
        must(small .. ("--boundary zero -o %s/whole.npy"):format(folder))
        local a <close> = mb.npy.read(folder .. "/tiled.npy")
        local b <close> = mb.npy.read(folder .. "/whole.npy")
        helper.assert_close(b, a, 1e-5)
    end)

    it("has equal ledgers, planned and run", function()
        for _, more in ipairs { "", "--naive", "--boundary reflect",
            "--keep --boundary zero --mode full",
            "-t always --boundary mirror --tile 9,20,20" } do
            assert.matches("difference 0; 0 of", must("--ledger " .. small .. more))
        end
    end)

    it("convolves a file into a file, in tiles where the budget does not hold it", function()
        do
            local image <close> = mb.random({ 16, 48, 40 },
                { seed = 1, dtype = "u16", high = 4000 })
            mb.tiff.write(folder .. "/in.tif", image, { spacing = 0.2, unit = "um" })
        end
        local command = ("scripts/convolve.lua -d host -i %s/in.tif --psf-size 5,7,7 --sigma 1,1.5,1.5 --boundary reflect "):format(folder)
        local text = must(command .. ("-o %s/convolved.npy"):format(folder))
        assert.equal(text:match("predicted peak [^\n]-%((%d+) bytes%)"),
            text:match("measured peak [^\n]-%((%d+) bytes%)"))
        local volume = 4 * 16 * 48 * 40
        for _, name in ipairs { "o.tif", "o.h5", "o.npy" } do
            text = must(command .. ("--budget 90000 -o %s/%s"):format(folder, name))
            assert.matches("the whole takes", text)
            assert.matches("work +predicted", text)
            local peak = text:match("measured peak [^\n]-%((%d+) bytes%)")
            assert.equal(text:match("predicted peak [^\n]-%((%d+) bytes%)"), peak)
            assert.is_true(tonumber(peak) <= 90000 and tonumber(peak) < volume)
            local a <close> = mb.npy.read(folder .. "/convolved.npy")
            local b <close> = mb.images.read(folder .. "/" .. name)
            helper.assert_close(a, b, 1e-5)
        end
        local tif <close> = mb.images.open(folder .. "/o.tif")
        assert.same({ 0.2, "um" }, { tif.meta.spacing, tif.meta.unit })
        text = must(command .. "--plan --budget 90000")
        assert.is_nil(text:find("measured", 1, true))
        local again, status = run(command .. ("-o %s/o.npy"):format(folder))
        assert.equal(1, status)
        assert.matches("exists", again)
        assert.matches("difference 0; 0 of",
            must("--ledger " .. command
            .. ("--budget 90000 --overwrite -o %s/o.npy"):format(folder)))
    end)
end)

describe("deconvolve.lua", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
        local truth <close> = mb.zeros { 10, 24, 26 }
        local spot <close> = truth:view({ 5, 6 }, { 12, 13 }, { 3, 4 })
        spot:fill(900)
        local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, { 1, 1.5, 1.5 })
        local blurred <close> = mb.convolution(truth, psf, { boundary = "reflect" })
        local image <close> = mb.convert(blurred, "u16", { offset = 10 })
        mb.tiff.write(folder .. "/image.tif", image)
        mb.npy.write(folder .. "/psf.npy", psf)
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    for _, method in ipairs { "rl", "gradient_consensus", "landweber", "wiener", "tikhonov" } do
        it("sharpens from file to file, with the memory it predicts: " .. method, function()
            local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/%s.h5 -d host -m %s -q"):format(folder, folder,
                folder, method, method))
            assert.equal("", text:gsub("[^\n]*moonbeam[^\n]*\n", ""))
            local image <close> = mb.images.read(folder .. "/image.tif")
            local result <close> = mb.images.read(("%s/%s.h5"):format(folder, method))
            assert.same(image.shape, result.shape)
            assert.equal("f32", result.dtype)
            assert.is_true(result:max() > 1.3 * image:max())
        end)
    end

    for _, arguments in ipairs {
        "-m rl --iterations 3", "-m rl --iterations 3 --acceleration heavy_ball --metrics",
        "-m rl --iterations 3 --acceleration biggs_andrews",
        "-m rl --iterations 3 --total-variation 0.002",
        "-m rl --iterations 3 --mask FOLDER/mask.npy", "-m rl --iterations 3 --boundary circular",
        "-m rl --iterations 3 --boundary reflect --center mass",
        "-m rl --iterations 3 --offset 10 --gain 2 --psf-background 0.001",
        "-m gradient_consensus --iterations 3",
        "-m gradient_consensus --iterations 2 --mask FOLDER/mask.npy --boundary circular",
        "-m landweber --iterations 3 --metrics",
        "-m landweber --iterations 3 --relaxation 1.5 --mask FOLDER/mask.npy", "-m wiener",
        "-m tikhonov --boundary circular --center mass --output-dtype uint16",
        "-m rl --iterations 2 --psf-spacing 1,1,1 --step 2 --pixel 1",
    } do
        it("has equal ledgers, planned and run: " .. arguments, function()
            local mask <close> = mb.ones { 10, 24, 26 }
            local bad <close> = mask:view({ 2, 2 }, { 3, 3 }, { 4, 4 })
            bad:fill(0)
            mb.npy.write(folder .. "/mask.npy", mask, { overwrite = true })
            local text = must(("--ledger scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/ledger.h5 --overwrite -d host %s")
                :format(folder, folder, folder, (arguments:gsub("FOLDER", folder))))
            assert.matches("difference 0; 0 of %d+ steps differ", text)
            local predicted, measured = text:match("memory +peak [^\n]-%((%d+) bytes%)"),
                text:match("measured +peak [^\n]-%((%d+) bytes%)")
            assert.equal(predicted, measured)
        end)
    end

    it("has equal ledgers with a model of the PSF", function()
        for _, more in ipairs { "--model born_wolf",
            "--model gibson_lanni --index-sample 1.33 --depth 2000" } do
            assert.matches("difference 0; 0 of",
                must(("--ledger scripts/deconvolve.lua %s/image.tif -o %s/m.h5 --overwrite "
                .. "-d host --iterations 2 --psf-size 15 %s %s"):format(folder, folder, model,
                    more)))
        end
    end)

    it("writes the dtype that was asked for, and says what it clamped", function()
        local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/u16.tif "
            .. "-d host --iterations 5 --output-dtype uint16"):format(folder,
            folder, folder))
        assert.is_nil(text:find("clamped", 1, true))
        must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/f32.tif -d host --iterations 5"):format(
            folder, folder, folder))
        local counts <close> = mb.images.read(folder .. "/u16.tif")
        local float <close> = mb.images.read(folder .. "/f32.tif")
        assert.equal("u16", counts.dtype)
        assert.equal("f32", float.dtype)
        local rounded <close> = float:cast("u16")
        helper.assert_close(rounded, counts, 0)
        assert.matches("clamped to the range of uint8", must(
            ("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/u8.tif "
            .. "-d host --iterations 20 --output-dtype uint8"):format(folder, folder, folder)))
    end)

    it("takes the camera's offset from under a measured PSF and says so", function()
        local clean <close> = mb.npy.read(folder .. "/psf.npy")
        local spot <close> = mb.pad(clean, { before = 6, after = 6 })
        local counts <close> = mb.convert(spot, "u16", { scale = 1e4, offset = 100 })
        local light <close> = mb.convert(spot, "u16", { scale = 1e4 })
        mb.npy.write(folder .. "/measured.npy", counts)
        mb.npy.write(folder .. "/light.npy", light)
        local function deconvolved(name, more)
            local text = must(("scripts/deconvolve.lua %s/image.tif %s/%s.npy -o %s/offset.npy "
                .. "-d host --iterations 5 --overwrite %s"):format(
                folder, folder, name, folder, more or ""))
            return text, mb.images.read(folder .. "/offset.npy")
        end
        local text, got = deconvolved("measured")
        local sum = light:sum()
        local share = 100 * 100 * counts.elements / (100 * counts.elements + sum)
        assert.truthy(text:find(("background 100 subtracted from the PSF: the median of its "
            .. "faces, %.3g %% of its sum")
            :format(share), 1, true), text)
        local plain, want = deconvolved("light")
        assert.is_nil(plain:find("background", 1, true))
        helper.assert_close(want, got, 0)
        local told, same = deconvolved("measured", "--psf-background 100")
        assert.matches("background 100 subtracted from the PSF %(the median of its faces is 100%)",
            told)
        helper.assert_close(want, same, 0)
        local kept, blurred = deconvolved("measured", "--psf-background none")
        assert.is_nil(kept:find("background", 1, true))
        assert.is_true(mb.metrics.rmse(want, blurred) > 10)
        for _, array in ipairs { got, want, same, blurred } do
            array:release()
        end
        local convolved = must(("scripts/convolve.lua -d host -i %s/image.tif --psf "
            .. "%s/measured.npy -o %s/offset.npy --overwrite")
            :format(folder, folder, folder))
        assert.truthy(convolved:find(
            ("the PSF stands on a background of 100, %.3g %% of its sum"):format(share), 1, true),
            convolved)
        -- Light that reaches the faces is no offset: kept, with a warning that is heard under -q
        -- too.
        local cut <close> = mb.psf_gaussian({ 5, 7, 7 }, { 2, 2, 2 })
        mb.npy.write(folder .. "/cut.npy", cut)
        local warned, result = deconvolved("cut", "-q")
        assert.matches("the median of the PSF's faces is [%d.e-]+, %d+%.?%d* %% of its sum if "
            .. "that is a background", warned)
        result:release()
        local wrong, status = run(("scripts/deconvolve.lua %s/image.tif %s/cut.npy --plan "
            .. "--psf-background low"):format(folder, folder))
        assert.equal(2, status)
        assert.matches("a number, or auto, or faces, or none", wrong)
    end)

    it("crops and resamples the PSF, refuses options of other methods, and a mask that does not fit", function()
        local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -d host --plan --psf-crop 0.9"):format(folder, folder))
        assert.matches("PSF +5 x 5 x 5", text)
        text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -d host --plan --psf-spacing 1,1,1 --step 0.5 --pixel 2")
            :format(folder, folder))
        assert.matches("PSF +9 x 5 x 5", text)
        local function refused(more)
            local message, status =
                run(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -d host --plan %s"):format(
                folder, folder,
                more))
            assert.equal(2, status, message)
            return message
        end
        assert.matches("%-%-lambda is not for %-%-method rl", refused "--lambda 1")
        assert.matches("%-%-tolerance is not for %-%-method wiener",
            refused "-m wiener --tolerance 0.1")
        assert.matches("5 x 9 x 9, the image 10 x 24 x 26",
            refused(("--mask %s/psf.npy"):format(folder)))
        assert.matches("needs %-%-pixel", refused "--psf-spacing 1,1,1")
    end)

    it("stops by itself where two halves of the photons disagree", function()
        local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/gc.tif -d host -m gradient_consensus --metrics")
            :format(folder, folder, folder))
        assert.matches("1  I%-divergence of the halves", text)
        assert.matches("stopped +after %d+ iterations of at most 100", text)
        assert.not_matches("photons per voxel", text)
    end)

    it("says where there is less than a photon per voxel that gradient_consensus ends too late",
        function()
        local counts <close> = mb.images.read(folder .. "/image.tif", "host")
        local image <close> = counts:cast "f32"
        for _, case in ipairs {{0.9, true}, {1.1, false}} do
            local level, told = table.unpack(case)
            local few <close> = image * (level / image:mean())
            mb.npy.write(folder .. "/few.npy", few, {overwrite = true})
            local text = must(("scripts/deconvolve.lua %s/few.npy %s/psf.npy -o %s/few_gc.npy -d host "
                .. "-m gradient_consensus --iterations 2 --overwrite"):format(folder, folder, folder))
            assert.equal(told, text:find("0.9 photons per voxel", 1, true) ~= nil
                and text:find("gradient_consensus ends too late", 1, true) ~= nil, text)
            assert.equal(told, text:find("photons per voxel", 1, true) ~= nil)
        end
    end)

    it("prints the same peak before and after", function()
        local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/x.tif "
            .. "-d host --iterations 3 --metrics --acceleration heavy_ball"):format(
            folder, folder, folder))
        local predicted, measured = text:match("memory +peak [^\n]-%((%d+) bytes%)"),
            text:match("measured +peak [^\n]-%((%d+) bytes%)")
        assert.equal(predicted, measured)
        assert.matches("3  I%-divergence", text)
        local again, status =
            run(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/x.tif -d host"):format(
            folder, folder, folder))
        assert.equal(1, status)
        assert.matches("overwrite", again)
    end)

    it("plans without writing, and says what the model lacks", function()
        assert.matches("memory +peak",
            must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy --plan -d host"):format(folder,
            folder)))
        local text, status = run(("scripts/deconvolve.lua %s/image.tif -o %s/y.tif -d host"):format(
            folder, folder))
        assert.equal(2, status)
        assert.matches("%-%-na, %-%-wavelength, %-%-pixel and %-%-step are missing", text)
        assert.is_false(exists "y.tif")
    end)

    it("works in tiles where the budget does not hold the whole, with the same result", function()
        local command = ("scripts/deconvolve.lua %s/image.tif %s/psf.npy -d host --iterations 4 --center middle "):format(folder, folder)
        must(command .. ("-q -o %s/whole.npy"):format(folder))
        local whole <close> = mb.npy.read(folder .. "/whole.npy")
        local text = must(command .. ("--budget 90000 --metrics -o %s/tiled.tif"):format(folder))
        assert.matches("exact seams; image, estimate and ratio in files", text)
        assert.matches("the whole takes", text)
        assert.matches("4  I%-divergence", text)
        local peak = text:match("measured +peak [^\n]-%((%d+) bytes%)")
        assert.equal(text:match("memory +peak [^\n]-%((%d+) bytes%)"), peak)
        assert.is_true(tonumber(peak) <= 90000)
        local tiled <close> = mb.images.read(folder .. "/tiled.tif")
        helper.assert_close(whole, tiled, 1e-4)
        text = must(command .. (
            "--tiles blended --tile 10,12,13 --acceleration heavy_ball -o %s/blended.npy"):format(
                folder))
        assert.matches("seams +%d%.%d+:", text)
        assert.equal(text:match("memory +peak [^\n]-%((%d+) bytes%)"),
            text:match("measured +peak [^\n]-%((%d+) bytes%)"))
        for _, more in ipairs { "", "--tiles exact --tile 6,12,13", "--budget 90000",
            "--tiles blended --tile 10,12,13" } do
            text = must(("--ledger %s --overwrite -q -o %s/l.npy %s"):format(command, folder, more))
            assert.matches("difference 0; 0 of", text)
        end
        local other = command
            .. "--acceleration biggs_andrews --boundary mirror "
        must(other .. ("-q -o %s/mirror.npy"):format(folder))
        text = must(other .. ("--budget 90000 -o %s/mirror-cut.npy"):format(folder))
        assert.matches("exact seams", text)
        assert.equal(text:match("memory +peak [^\n]-%((%d+) bytes%)"),
            text:match("measured +peak [^\n]-%((%d+) bytes%)"))
        local uncut <close> = mb.npy.read(folder .. "/mirror.npy")
        local cut <close> = mb.npy.read(folder .. "/mirror-cut.npy")
        helper.assert_close(uncut, cut, 1e-4)
        assert.matches("give %-%-method rl",
            (run(command:gsub("%-%-iterations %d+", "")
                .. ("--tiles exact -m wiener -o %s/w.npy"):format(folder))))
    end)

    it("shares tiles between several devices, with the same bits, and says where it cannot",
        function()
        local command = ("scripts/deconvolve.lua %s/image.tif %s/psf.npy --iterations 3 --center middle --overwrite "):format(
            folder, folder)
        for _, tiles in ipairs { "exact", "blended" } do
            local bits
            for _, devices in ipairs { "host", "host,host:1", "host:1,host:2,host:3" } do
                local text = must(command
                    .. ("--tiles %s --tile 10,12,13 -d %s -o %s/d.npy"):format(
                    tiles, devices, folder))
                local own = files.read(folder .. "/d.npy")
                bits = bits or own
                assert.is_true(bits == own, tiles .. " on " .. devices)
                for id in devices:gmatch ",([%w]+:%d)" do
                    local _, count = text:gsub("\n +on " .. id .. " [^\n]*%(%d+ bytes%)", "")
                    assert.equal(2, count, text) -- planned and measured
                end
            end
        end
        local alone = must(command .. ("-d host,host:1 -o %s/d.npy"):format(folder))
        assert.matches("devices +host alone: several devices share tiles, and there are none "
            .. "%(%-%-tiles exact%)", alone)
        local first, second = {}, {}
        for i, devices in ipairs { "host", "host,host:1" } do
            local name = ("%s/c%d.npy"):format(folder, i)
            first[i] = must(("scripts/convolve.lua -i %s/image.tif --psf %s/psf.npy --tiles always "
                .. "--tile 10,12,13 -d %s -o %s"):format(folder, folder, devices, name))
            second[i] = files.read(name)
        end
        assert.is_true(second[1] == second[2])
        assert.matches("on host:1 peak [^\n]* bytes.*on host:1 [^\n]* bytes", first[2])
    end)

    it("leaves no result and no scratch file when it fails", function()
        local before = files.list(folder)
        local text, status = run(
            ("scripts/deconvolve.lua %s/image.tif %s/psf.npy -d host -o %s/none.npy --budget 9000"):format(folder,
            folder, folder))
        assert.equal(1, status)
        assert.matches("no tiles fit: .* available", text)
        assert.same(before, files.list(folder))
    end)

    it("keeps channels and times of a hyperstack", function()
        local pages <close> = mb.random({ 12, 16, 18 }, { seed = 8, dtype = "u16", low = 10,
            high = 900 })
        do
            local out <close> = mb.tiff.create(folder .. "/h.tif",
                { shape = { 3, 16, 18 }, dtype = "u16", channels = 2, frames = 2,
                spacing = 0.5, unit = "um" })
            for frame = 1, 2 do
                for channel = 1, 2 do
                    local first = 6 * (frame - 1) + 3 * (channel - 1)
                    local part <close> = pages:view({ first + 1, first + 3 })
                    mb.volumes.store(out:volume(channel, frame), part)
                end
            end
            out:finish()
        end
        local command = ("scripts/deconvolve.lua %s/h.tif %s/psf.npy -d host --iterations 2 --center middle "):format(folder, folder)
        assert.matches("2 channels, 2 times", must(command .. ("-o %s/all.tif"):format(folder)))
        must(command .. ("-o %s/one.npy --channel 2 --frame 1"):format(folder))
        local one <close> = mb.npy.read(folder .. "/one.npy")
        local volume <close> = mb.tiff.open(folder .. "/all.tif", { channel = 2, frame = 1 })
        assert.same({ 2, 3, 2, 0.5, "um" }, { volume.meta.channels, volume.meta.slices,
            volume.meta.frames, volume.meta.spacing,
            volume.meta.unit })
        local same <close> = mb.volumes.load(volume, "host")
        helper.assert_close(one, same, 0)
        -- One channel has all its times, one time all its channels.
        for _, case in ipairs {{"--channel 2", 1, 2, true}, {"--frame 2", 2, 1}} do
            local text = must(command .. ("-o %s/some.tif --overwrite "):format(folder) .. case[1])
            assert.matches("channel 2, time 2: 2 iterations", text, 1, true)
            for channel = 1, case[2] do
                for frame = 1, case[3] do
                    local some <close> = mb.tiff.open(folder .. "/some.tif",
                        {channel = channel, frame = frame})
                    assert.same({case[2], case[3]}, {some.meta.channels, some.meta.frames})
                    local whole <close> = mb.tiff.open(folder .. "/all.tif",
                        {channel = case[4] and 2 or channel, frame = case[4] and frame or 2})
                    local got <close> = mb.volumes.load(some, "host")
                    local want <close> = mb.volumes.load(whole, "host")
                    helper.assert_close(want, got, 0)
                end
            end
        end
        for _, more in ipairs {"", " --plan"} do -- before the work, and before its plan
            local text, status = run(command .. ("-o %s/all.npy"):format(folder) .. more)
            assert.equal(2, status)
            assert.matches("only TIFF and OME%-Zarr results hold several channels and times, not "
                .. "'[^\n]*all.npy': give a name that ends in .tif or .zarr [^\n]*%-%-channel N "
                .. "%-%-frame N", text)
            assert.is_nil(text:find("memory", 1, true), text)
        end
    end)

    it("refuses planes of several channels as OME-Zarr before the work", function()
        do
            local plane <close> = mb.random({ 16, 18 }, { seed = 8, dtype = "u16" })
            local out <close> = mb.tiff.create(folder .. "/planes.tif", { shape = { 16, 18 },
                dtype = "u16", channels = 2 })
            for channel = 1, 2 do
                mb.volumes.store(out:volume(channel, 1), plane)
            end
            out:finish()
        end
        local text, status = run(("scripts/deconvolve.lua %s/planes.tif %s/psf.npy -d host --plan "
            .. "-o %s/planes.zarr"):format(folder, folder, folder))
        assert.equal(2, status)
        assert.matches("OME%-Zarr results are stacks %(z, y, x%), and this image is 16 x 18: give a "
            .. "name that ends in .tif", text)
    end)

    it("takes pixel and step from the file, and says what is typed and how it was made", function()
        local stack <close> = mb.random({ 7, 12, 13 }, { seed = 3, dtype = "u16", low = 5,
            high = 300 })
        mb.tiff.write(folder .. "/sized.tif", stack, { spacing = 0.3, unit = "micron",
            meta = { resolution = { x = { 1000, 130 }, y = { 1000, 130 }, unit = 1 } } })
        local command = ("scripts/deconvolve.lua %s/sized.tif -d host --iterations 2 --na 1.4 "
            .. "--wavelength 500 --psf-size 5 "):format(folder)
        local text = must(command .. ("-o %s/said.tif"):format(folder))
        assert.matches("voxel +pixel 130 nm, step 300 nm: .*sized.tif", text)
        text = must(command .. ("--pixel 100 --step 300 -o %s/typed.tif"):format(folder))
        assert.matches("warning: %-%-pixel is 100 nm, but .*sized.tif says 130 nm: the typed one "
            .. "is taken", text)
        assert.not_matches("%-%-step is", text)
        local said <close> = mb.tiff.open(folder .. "/said.tif")
        local typed <close> = mb.tiff.open(folder .. "/typed.tif")
        assert.near(130e-9, said.meta.voxel.pixel, 1e-15)
        assert.near(100e-9, typed.meta.voxel.pixel, 1e-15)
        assert.near(300e-9, typed.meta.voxel.step, 1e-15)
        assert.matches('"pixel_nm":100', (files.read(folder .. "/typed.tif"):gsub("%z", "")))
        must(command .. ("-o %s/said.h5"):format(folder))
        local file <close> = mb.h5.open(folder .. "/said.h5")
        assert.equal(500, file:value "/entry/process/parameters/wavelength")
        assert.near(130, file:value "/entry/process/parameters/pixel_nm", 1e-9)
        assert.matches("deconvolve.lua", file:value "/entry/provenance/command_line")
        assert.matches("sized.tif$", file:value "/entry/provenance/input/path")
        local _, status = run(("scripts/deconvolve.lua %s/image.tif --na 1 --wavelength 500 "
            .. "--pixel 100 -o %s/y.tif"):format(folder, folder))
        assert.equal(2, status) -- nobody says the step
    end)

    it("goes on with an interrupted run by tiles, --resume, or starts anew, --discard", function()
        local command = ("scripts/deconvolve.lua %s/h.tif %s/psf.npy -d host --iterations 2 --center middle "
            .. "--tiles exact --tile 3,8,9 --place file "):format(folder, folder)
        must(command .. ("-q -o %s/whole.tif"):format(folder))
        local before = files.list(folder)
        local function pixels(name)
            local stack <close> = mb.tiff.read(folder .. "/" .. name, {device = "host"})
            return stack:to_string()
        end
        local function killed(step, more)
            local output, status =
                run(("-e 'require \"moonbeam\".debug.fail_step(%d)' %s -o %s/go.tif %s")
                :format(step, command, folder, more))
            assert.is_true(status == 137 or status == 9, output)
            assert.is_true(exists "go.tif.unfinished/journal")
        end
        killed(120, "") -- in the second of four volumes
        local text, status = run(command .. ("-o %s/go.tif"):format(folder))
        assert.equal(1, status)
        assert.matches("keeps an interrupted run. Go on with %-%-resume, or remove it and start "
            .. "anew with %-%-discard", text)
        text, status = run(command .. ("-o %s/go.tif --resume --gain 2"):format(folder))
        assert.equal(1, status)
        assert.matches("what differs: %-%-gain %(it was 'not given', now it is '2", text)
        text = must(command .. ("-o %s/go.tif --resume"):format(folder))
        assert.matches("go.tif.unfinished' has %d of 2 iterations already", text)
        assert.is_true(pixels "whole.tif" == pixels "go.tif")
        killed(40, "--overwrite")
        must(command .. ("-q -o %s/go.tif --overwrite --discard"):format(folder))
        assert.is_true(pixels "whole.tif" == pixels "go.tif")
        table.insert(before, "go.tif")
        table.sort(before)
        assert.same(before, files.list(folder))
        text, status = run(("scripts/deconvolve.lua %s/h.tif %s/psf.npy -d host -o %s/go.tif "
            .. "--resume"):format(folder, folder, folder))
        assert.equal(1, status)
        assert.matches("there is nothing to resume", text)
        text, status = run(command .. "-o x.tif --resume --discard")
        assert.equal(2, status)
        assert.matches("give one of them", text)
    end)

    it("makes a real nucleus sharper without bright edges", function()
        if not real then
            pending("dapi_001.tif is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        must(("scripts/deconvolve.lua %s -o %s/nucleus.tif "
            .. "-d host --iterations 12 --acceleration heavy_ball -q --psf-size 33 -p %s/nucleus.png %s"):format(
            real, folder, folder, model))
        local raw <close> = mb.images.read(real)
        local image <close> = raw:cast("f32")
        local result <close> = mb.images.read(folder .. "/nucleus.tif")
        assert.same({ 40, 201, 101 }, result.shape)
        assert.is_true(exists "nucleus.png")
        -- Sharper: the relative energy of differences between neighbors in a plane of the middle
        -- rises.
        local function detail(volume)
            local left <close> = volume:view({ 15, 25 }, { 40, 160 }, { 20, 79 })
            local right <close> = volume:view({ 15, 25 }, { 40, 160 }, { 21, 80 })
            local difference <close> = left - right
            return difference:norm() / left:norm()
        end
        assert.is_true(detail(result) > 1.5 * detail(image),
            ("%g, %g"):format(detail(image), detail(result)))
        -- No ringing at the edges: the outermost pixels of the middle plane stay below its
        -- brightest inside.
        local inside <close> = result:view(20, { 10, 190 }, { 10, 90 })
        local edge <close> = result:view(20, mb.all, { 1, 3 })
        assert.is_true(edge:max() < inside:max())
    end)
end)
