-- Pictures of several runs that can be compared, and stacks to scale.
local captioned = require "moonbeam.pipeline.pictures.captioned"
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"
local surface = require "moonbeam.internal.command_line.surface"

local shell

describe("previews", function()
    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5"
            .. " --size 48 --rows 3 --angles 60 --quiet")
    end)

    teardown(function()
        shell:remove()
    end)

    local function preview(name, more)
        commands.must("reconstruct.lua", ("%s -o %s -c 23.5 -q --overwrite -p %s %s"):format(
            shell:path "scan.h5", shell:path "v.h5", shell:path(name), more))
        return files.read(shell:path(name))
    end

    it("have the window that is given, with and without a recipe", function()
        files.write(shell:path "r.lua", '{{"flat_field", interpolation = "mean"}, "minus_log", '
            .. '{"center", column = 23.5}, {"fbp"}}')
        local own = preview("own.png", "")
        for _, method in ipairs {"-m fbp", "-m fourier"} do
            local text = preview("a.png", method .. " --preview-range 0:20000")
            assert.truthy(text:find("black 0, white 20000", 1, true))
            assert.is_false(text == own)
        end
        commands.must("reconstruct.lua", ("%s -o %s -q --recipe %s -p %s --preview-range -1:2")
            :format(shell:path "scan.h5", shell:path "w.h5", shell:path "r.lua",
            shell:path "b.png"))
        assert.truthy(files.read(shell:path "b.png"):find("black -1, white 2", 1, true))
    end)

    local function size(text)
        return string.unpack(">I4I4", text, 17)
    end

    it("have a scale bar and a caption below the slice, whose pixels stay", function()
        local text = preview("one.png", "--preview-range 0:20000")
        local width, height = size(text)
        assert.equal(264, width)
        assert.is_true(height > 48 + 2 * 10 + 12 and height < 48 + 100, height)
        assert.truthy(text:find("scan.h5, row 2: method fourier, filter shepp-logan, axis at column "
            .. "23.50, values 1/m", 1, true))
        local volume = shell:volume_of "v.h5"
        local python = files.python "PIL"
        if not python then
            return
        end
        local out, ok = files.run(([[%s -c "
from PIL import Image
im = Image.open('%s')
print(*[im.getpixel((x, 20)) for x in range(48)])
print(sum(im.getpixel((x, 48 + 6 + 2)) == 255 for x in range(264)))"]]):format(python,
            shell:path "one.png"))
        assert.is_true(ok, out)
        local x = 0
        for gray in out:match "^[^\n]*":gmatch "%d+" do
            x = x + 1
            local value = math.max(0, math.min(255, volume[2][21][x] / 20000 * 255))
            assert.near(value, tonumber(gray), 0.51)
        end
        assert.equal(10, tonumber(out:match "\n(%d+)")) -- 10 um, in pixels of 1 um
    end)

    it("show several rows side by side", function()
        local text = preview("rows.png", "--preview-rows 1,3,2,3 --preview-range 0:20000")
        local _, height = size(text)
        local _, one = size(preview("one.png", "--preview-range 0:20000"))
        assert.equal(one + 48 + 4, height)
        assert.truthy(text:find("rows 1, 3, 2, 3: ", 1, true))
        text = preview("late.png", "--preview-rows 3 --rows 2:3")
        assert.truthy(text:find("scan.h5, row 3: ", 1, true))
        files.write(shell:path "q.lua", '{{"flat_field", interpolation = "mean"}, "minus_log", '
            .. '{"center", column = 23.5}, {"fbp"}}')
        commands.must("reconstruct.lua", ("%s -o %s -q --overwrite --recipe %s -p %s --preview-rows "
            .. "2,3"):format(shell:path "scan.h5", shell:path "w.tif", shell:path "q.lua",
            shell:path "r.png"))
        assert.truthy(files.read(shell:path "r.png"):find("scan.h5, rows 2, 3: recipe q.lua", 1,
            true))
    end)

    it("show a vertical slice as one picture", function()
        commands.must("reconstruct.lua", ("%s -o %s -q --overwrite --recipe %s -p %s --vertical "
            .. "y=20"):format(shell:path "scan.h5", shell:path "w.h5", shell:path "q.lua",
            shell:path "s.png"))
        local text = files.read(shell:path "s.png")
        local _, height = size(text)
        assert.is_true(height < 3 + 100)
        assert.truthy(text:find("scan.h5, vertical, along x: recipe q.lua", 1, true))
    end)

    it("have a caption that is seen where all values are one", function()
        local python = files.python "PIL"
        for name, value in pairs {zero = 0, one = 1, large = 65535} do
            local slice <close> = mb.full({1, 20, 20}, value)
            local black, white = captioned.save(shell:path(name .. "-flat.png"), slice,
                {caption = "a slice"})
            assert.equal(value, black)
            assert.is_true(white > black and white < 1.001 * black + 1)
            local seen <close> = mb.full({1, 2}, black)
            local bright <close> = seen:view(1, 2)
            mb.fill(bright, white)
            assert.is_true(seen:min() < seen:max()) -- also in float32
            if python then
                local out = files.run(([[%s -c "
from PIL import Image
print(sorted(set(Image.open('%s').tobytes())))"]]):format(python, shell:path(name .. "-flat.png")))
                assert.equal("[0, 255]\n", out)
            end
        end
    end)

    it("have scale bars of round lengths", function()
        for most, length in pairs {[1] = 1, [1.99] = 1, [2] = 2, [4.9] = 2, [5] = 5, [9.99] = 5,
            [100] = 100, [0.03] = 0.02, [6.5e-4] = 5e-4} do
            assert.near(length, captioned.round_length(most), 1e-9 * length)
        end
    end)

    it("of convolve say what was done, from a file and simulated", function()
        local image <close> = mb.random({4, 12, 12}, {seed = 1})
        mb.tiff.write(shell:path "stack.tif", image, {spacing = 0.3, unit = "um",
            meta = {resolution = {x = {10, 1}, y = {10, 1}, unit = 1}}})
        local more = " --psf-size 3,3,3 --sigma 1,1,1 -d host --overwrite -p " .. shell:path "c.png"
        local told = commands.must("convolve.lua", ("-i %s -o %s --preview-range 0:2 "
            .. "--preview-image %s%s"):format(shell:path "stack.tif", shell:path "c.tif",
            shell:path "i.png", more))
        assert.matches("picture [^\n]*i.png\n.*picture [^\n]*c.png\n", told)
        assert.truthy(files.read(shell:path "c.png"):find("stack.tif, maximum projections XY, ZY, "
            .. "XZ: convolved, PSF gaussian, 3 x 3 x 3, boundary zero; black 0, white 2", 1, true))
        assert.truthy(files.read(shell:path "i.png"):find("XZ: not convolved; black", 1, true))
        commands.must("convolve.lua", "-n 8,20,20 --spheres 3 --preview-z 2,5 --naive" .. more)
        assert.truthy(files.read(shell:path "c.png"):find("3 spheres, planes 2, 5: convolved, PSF "
            .. "gaussian, 3 x 3 x 3, boundary circular; black", 1, true))
        local status, text = commands.run("convolve.lua", "-n 8,20,20 --preview-z 9" .. more)
        assert.equal(2, status)
        assert.matches("%-%-preview%-z names plane 9; the stack has 8", text)
    end)

    it("are in the plan: a budget that is enough for the run alone is too small for both", function()
        local plan = commands.must("reconstruct.lua", shell:path "scan.h5"
            .. " -c 23.5 --plan -d host")
        local least = plan:match "peak[^\n]-%((%d+) bytes%)"
        local words = ("%s -o %s -c 23.5 --overwrite -p %s -d host --chunk 1 --preview-rows %s "
            .. "--budget "):format(shell:path "scan.h5", shell:path "v.h5", shell:path "no.png",
            ("1,2,3,"):rep(20) .. "1")
        local status, text = commands.run("reconstruct.lua", words .. least)
        assert.equal(1, status)
        local typed, bytes = text:match("^reconstruct: %-%-preview needs [^\n]*; give %-%-budget "
            .. "(%S+) or more %((%d+) bytes%)\n$")
        assert.truthy(typed, text)
        text = commands.must("reconstruct.lua", words .. typed)
        assert.matches(("predicted %s bytes, measured %s bytes"):format(bytes, bytes), text)
        assert.is_true(commands.exists(shell:path "no.png"))
    end)

    it("refuse a window without a picture, or one that is none", function()
        for more, words in pairs {["--preview-range 0:1"] = "is for %-%-preview FILE",
            ["-p x.png --preview-range 1:0"] = "the lower first",
            ["-p x.png --preview-range 1"] = "a pair of numbers",
            ["--preview-rows 1"] = "is for %-%-preview FILE",
            ["-p x.png --preview-rows 4"] = "row 4; the result has rows 1 to 3",
            ["-p x.png --preview-range 0:1 --output-dtype uint16"] = "stores codes"} do
            local status, text = commands.run("reconstruct.lua", ("%s -o %s %s"):format(
                shell:path "scan.h5", shell:path "none.h5", more))
            assert.equal(2, status)
            assert.matches("^reconstruct: [^\n]*" .. words .. "[^\n]*\n$", text)
        end
    end)

    it("are to scale in z, by whole factors", function()
        for ratio, factors in pairs {[1] = {1, 1}, [2] = {1, 2}, [2.3] = {3, 7}, [0.5] = {2, 1},
            [1.5] = {2, 3}, [3.02] = {1, 3}, [1e9] = {1, 16}, [1e-9] = {4, 1}} do
            assert.same(factors, {surface.stretch(ratio)})
        end
        local image <close> = mb.random({8, 12, 12}, {seed = 1})
        mb.npy.write(shell:path "image.npy", image)
        local command = ("%s -o %s -q --overwrite --iterations 1 --na 1 --wavelength 500 --pixel 100 "
            .. "--step 300 --psf-size 9 -p %s"):format(shell:path "image.npy", shell:path "d.npy",
            shell:path "d.png")
        local function height()
            return (string.unpack(">I4", files.read(shell:path "d.png"), 21))
        end
        local told = commands.must("deconvolve.lua", command:gsub(" %-q ", " "))
        assert.matches("\npicture +" .. shell:path "d.png" .. "\n", told)
        local scaled = height()
        assert.truthy(files.read(shell:path "d.png"):find("image.npy, maximum projections XY, ZY, "
            .. "XZ: method rl, 1 iteration, PSF born_wolf; black", 1, true))
        commands.must("deconvolve.lua", command .. " --sz 1")
        assert.truthy(files.read(shell:path "d.png"):find("XZ, z not to scale: ", 1, true))
        assert.is_true(scaled > 12 + 4 + 3 * 8 and scaled < 12 + 4 + 3 * 8 + 80)
        assert.is_true(height() > 12 + 4 + 8 and height() < scaled)
        commands.must("deconvolve.lua", command .. " --preview-z 1,3,4 --preview-range 0:2")
        assert.truthy(files.read(shell:path "d.png"):find("planes 1, 3, 4: method rl, 1 iteration, "
            .. "PSF born_wolf; black 0, white 2", 1, true))
        local status, text = commands.run("deconvolve.lua", command .. " --preview-z 9")
        assert.equal(2, status)
        assert.matches("%-%-preview%-z names plane 9; the stack has 8", text)
        status, text = commands.run("deconvolve.lua", command:gsub(" %-p %S+", " --preview-z 1"))
        assert.equal(2, status)
        assert.matches("%-%-preview%-z is for %-%-preview FILE, which is not given", text)
    end)
end)
