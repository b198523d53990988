-- moonbeam deconvolve where one volume of several has values that nothing can be made of, and where
-- what is asked for has no tiles: what is said, what stays, and that each way out works.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local folder

local run, must = helper.programs_in(function() return folder end)

local COMMAND <const> = "scripts/deconvolve.lua -d host -q --progress none --psf-background none "
    .. "FOLDER/%s FOLDER/psf.npy -o FOLDER/o.tif --overwrite "
local TILES <const> = "--iterations 2 --tile 3,9,9 -t "

local WAYS <const> = {
    "--iterations 2 ", TILES .. "exact ", TILES .. "blended ", "-m wiener ",
    "-m landweber --iterations 2 ", "-m gradient_consensus --iterations 2 ",
}

-- A series of 2 channels and 2 times; `change` is made of channel 2 at time 1.
local function write_series(name, change)
    local out <close> = mb.images.create(folder .. "/" .. name, {shape = {3, 14, 15},
        dtype = "f32", channels = 2, frames = 2})
    for channel = 1, 2 do
        for frame = 1, 2 do
            local volume <close> = mb.random({3, 14, 15}, {seed = 10 * channel + frame, low = 1,
                high = 5})
            if channel == 2 and frame == 1 then
                change(volume)
            end
            mb.volumes.store(out:volume(channel, frame), volume)
        end
    end
    out:finish()
end

local function exists(name)
    return mb.system.stat(folder .. "/" .. name) ~= nil
end

local function volume_bits(channel, frame)
    local opened <close> = mb.images.open(folder .. "/o.tif", channel and {channel = channel,
        frame = frame} or nil)
    local array <close> = mb.volumes.load(opened, "host")
    return array:to_string()
end

describe("one volume of several", function()
    setup(function()
        folder = files.folder()
        local psf <close> = mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
        mb.npy.write(folder .. "/psf.npy", psf)
        write_series("nan.tif", function(a) a:view(3, 14, 15):fill(0 / 0) end)
        write_series("dark.tif", function(a) mb.binary(a, "sub", {scalar = 9, out = a}) end)
        write_series("zero.tif", function(a) a:fill(0) end)
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("that has NaN, or nothing above 0, is named, and leaves no result", function()
        for _, each in ipairs {{"nan.tif", "1 of %d+ values of the image[^\n]* are not finite"},
            {"dark.tif", "no value of the image is above 0"}} do
            -- Of dark ones: by tiles, by a linear method, and by one whose noise is around 0.
            for number, way in ipairs(WAYS) do
                if each[1] == "dark.tif" and (number == 1 or number == 6) then
                    goto next
                end
                local linear = each[1] == "dark.tif" and number == 4
                local text, status = run(COMMAND .. way, each[1])
                assert.equal(linear and 0 or 1, status, text)
                if each[1] == "dark.tif" and number == 5 then
                    assert.matches("channel 2, time 1: the result is 0 everywhere", text, 1, true)
                elseif not linear then
                    assert.matches("deconvolve: channel 2, time 1: " .. each[2], text)
                    assert.matches("; --channel and --frame work on one volume alone\n", text, 1,
                        true)
                end
                assert.equal(linear, exists "o.tif")
                os.remove(folder .. "/o.tif")
                -- What is kept would end again: its message says how to remove it, which works.
                if exists "o.tif.unfinished" then
                    assert.is_true(number == 2 or number == 3)
                    assert.matches("with these values it ends again; remove it with --discard\n",
                        text, 1, true)
                    assert.is_nil(text:find("go on", 1, true))
                    assert.matches("channel 2, time 1: ", (run(COMMAND .. way .. "--resume",
                        each[1])), 1, true)
                    must(COMMAND .. way .. "--discard --channel 2 --frame 2", each[1])
                    assert.is_false(exists "o.tif.unfinished")
                    os.remove(folder .. "/o.tif")
                end
                ::next::
            end
            must(COMMAND .. "--iterations 2 --channel 2 --frame 2", each[1])
            os.remove(folder .. "/o.tif")
        end
    end)

    it("that is 0 everywhere stays so, and the others are as they are alone", function()
        for number, way in ipairs(WAYS) do
            must(COMMAND .. way, "zero.tif")
            assert.equal(("\0"):rep(3 * 14 * 15 * 4), volume_bits(2, 1), way)
            if number < 4 then
                local one = volume_bits(2, 2)
                must(COMMAND .. way .. "--channel 2 --frame 2", "zero.tif")
                assert.equal(one, volume_bits())
            end
        end
        os.remove(folder .. "/o.tif")
    end)

    it("of several images with a PSF of one plane is worked on plane by plane", function()
        assert(mb.system.mkdir(folder .. "/into"))
        local flat <close> = mb.psf.gaussian({5, 5}, {1, 1})
        mb.npy.write(folder .. "/flat.npy", flat)
        for i = 1, 2 do
            local stack <close> = mb.random({3, 14, 15}, {seed = i, low = 1, high = 5})
            if i == 2 then
                stack:view(3, 14, 15):fill(0 / 0)
            end
            mb.npy.write(("%s/s%d.npy"):format(folder, i), stack)
        end
        local text, status = run("scripts/deconvolve.lua -d host --iterations 2 --psf-background "
            .. "none FOLDER/s1.npy FOLDER/s2.npy --psf FOLDER/flat.npy --into FOLDER/into "
            .. "--format tif")
        assert.equal(1, status, text)
        assert.matches("every plane of the stack is deconvolved by itself", text, 1, true)
        assert.matches("1 done, 0 skipped, 1 failed of 2", text, 1, true)
        must("scripts/deconvolve.lua -d host --iterations 2 --psf-background none FOLDER/s1.npy "
            .. "FOLDER/flat.npy -o FOLDER/o.tif --overwrite")
        assert.equal(files.read(folder .. "/into/s1.tif"):sub(-2520), files.read(folder .. "/o.tif")
            :sub(-2520))
        text = run("scripts/deconvolve.lua -d host FOLDER/flat.npy --psf FOLDER/psf.npy --into "
            .. "FOLDER/into")
        assert.matches("it has 2 axes, the PSF has 3", text, 1, true)
    end)
end)

describe("what has no tiles", function()
    setup(function()
        folder = files.folder()
        for name, array in pairs {psf = mb.psf.gaussian({3, 5, 5}, {1, 1, 1}), mask = mb.ones {6,
            30, 31}, image = mb.random({6, 30, 31}, {low = 1, high = 5})} do
            local _ <close> = array
            mb.npy.write(("%s/%s.npy"):format(folder, name), array)
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("is refused with two ways out, and both work", function()
        for _, asked in ipairs {"--mask FOLDER/mask.npy", "-m wiener", "-m tikhonov",
            "-m landweber --iterations 1", "-m gradient_consensus --iterations 1"} do
            for _, mode in ipairs {"exact", asked:find "mask" and "blended" or nil} do
                local text, status = run(COMMAND .. "-t %s %s", "image.npy", mode, asked)
                assert.equal(2, status, text)
                local what = asked:match "^%-%-mask" or "--method " .. asked:match "^%-m (%S+)"
                assert.matches(("--tiles %s has no %s: leave --tiles %s out, which works on the "
                    .. "whole image at once, or %s"):format(mode, what, mode, what == "--mask"
                    and "leave --mask out" or "give --method rl"), text, 1, true)
            end
            must(COMMAND .. asked, "image.npy")
        end
        must(COMMAND .. "-t exact --method rl --iterations 1", "image.npy")
        must(COMMAND .. "-t blended --iterations 1", "image.npy")
    end)

    it("is refused where the whole does not fit, with the budget that it takes", function()
        for _, asked in ipairs {"--mask FOLDER/mask.npy", "-m wiener"} do
            local text, status = run(COMMAND .. "--budget 90K " .. asked, "image.npy")
            assert.equal(1, status, text)
            local bytes = text:match "has no tiles; give %-%-budget %S+ or more %((%d+) bytes%), or "
            must(COMMAND .. "--budget %s " .. asked, "image.npy", bytes)
            assert.equal(1, select(2, run(COMMAND .. "--budget %d " .. asked, "image.npy",
                math.tointeger(bytes) - 512)))
        end
        must(COMMAND .. "--budget 90K --method rl --iterations 1", "image.npy")
    end)
end)
