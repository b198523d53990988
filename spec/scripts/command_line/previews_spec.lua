-- Pictures of several runs that can be compared, and stacks to scale.
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

    it("refuse a window without a picture, or one that is none", function()
        for more, words in pairs {["--preview-range 0:1"] = "is for %-%-preview FILE",
            ["-p x.png --preview-range 1:0"] = "the lower first",
            ["-p x.png --preview-range 1"] = "a pair of numbers",
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
        local image <close> = mb.random({4, 12, 12}, {seed = 1})
        mb.npy.write(shell:path "image.npy", image)
        local command = ("%s -o %s -q --overwrite --iterations 1 --na 1 --wavelength 500 --pixel 100 "
            .. "--step 300 --psf-size 9 -p %s"):format(shell:path "image.npy", shell:path "d.npy",
            shell:path "d.png")
        local function height()
            return (string.unpack(">I4", files.read(shell:path "d.png"), 21))
        end
        commands.must("deconvolve.lua", command)
        assert.equal(12 + 4 + 3 * 4, height())
        commands.must("deconvolve.lua", command .. " --sz 1")
        assert.equal(12 + 4 + 4, height())
    end)
end)
