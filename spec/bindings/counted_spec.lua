-- Numbers of things in messages: one thing is no "1 things".

local commands = require "spec.support.commands"
local counted = require "moonbeam.internal.quantities.counted"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("a number of things", function()
    it("has the word of one, or of several", function()
        assert.equal("1 channel", counted(1, "channel"))
        assert.equal("0 channels", counted(0, "channel"))
        assert.equal("2 axes", counted(2, "axis", "axes"))
        assert.equal("1 axis", counted(1, "axis", "axes"))
        assert.equal("1 slice", counted(1.0, "slice"))
    end)

    it("is said so in errors of the library", function()
        local line <close> = mb.ones {5}
        local plane <close> = mb.ones {5, 5}
        local volume <close> = mb.ones {3, 5, 5}
        for text, call in pairs {
            ["the PSF has 1 axis, the image 2"] = function() mb.convolution(plane, line) end,
            ["the PSF has 2 axes, the image 3"] = function()
                mb.deconv.richardson_lucy(volume, plane)
            end,
            ["center has 1 number; the PSF has 2 axes"] = function() mb.psf.center(plane, {1}) end,
            ["this array has 1 axis: take one slice"] = function() mb.view.save("x.png", line) end,
            ["outside has 1 number for 2 slices"] = function()
                mb.result.create("x.h5", {shape = {2, 3, 3}, outside = {1}})
            end,
            ["this image has 1 axis: give a .tif, .npy or .h5 file"] = function()
                mb.images.write("x.zarr", line)
            end} do
            assert.matches(text, (helper.failure(call)), 1, true)
        end
    end)

    it("is said so by commands", function()
        local shell = commands.folder()
        local image <close> = mb.random({2, 12, 12}, {seed = 1, device = "host"})
        local psf <close> = mb.psf.gaussian({3, 3, 3}, {1, 1, 1})
        mb.npy.write(shell:path "i.npy", image)
        mb.npy.write(shell:path "p.npy", psf)
        local out <close> = mb.tiff.create(shell:path "c.tif", {shape = {2, 12, 12}, dtype = "f32",
            channels = 2})
        mb.volumes.store(out:volume(1, 1), image)
        mb.volumes.store(out:volume(2, 1), image)
        out:finish()
        local text = commands.must("deconvolve.lua", ("%s %s -o %s -d host --iterations 1 --progress "
            .. "line --psf-background none"):format(shell:path "i.npy", shell:path "p.npy",
            shell:path "o.tif"))
        assert.matches("deconvolving: 1 iteration in ", text, 1, true)
        text = commands.must("deconvolve.lua", ("%s %s -o %s -d host --iterations 1 --tiles blended "
            .. "--progress line --psf-background none"):format(shell:path "i.npy",
            shell:path "p.npy", shell:path "t.tif"))
        assert.matches("deconvolving: 1 tile in ", text, 1, true)
        local status, said = commands.run("convolve.lua", ("--image %s --psf %s -o %s"):format(
            shell:path "c.tif", shell:path "p.npy", shell:path "x.tif"))
        assert.equal(2, status)
        assert.matches("c.tif has 2 channels and 1 time; say which", said, 1, true)
        text = commands.must("convolve.lua", ("--image %s --psf %s -o %s --tiles always"):format(
            shell:path "i.npy", shell:path "p.npy", shell:path "x.tif"))
        assert.matches("\n1 tile\n", text, 1, true)
        shell:remove()
    end)
end)
