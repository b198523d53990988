-- What messages of other commands, and of runs that were interrupted, advise works.

local advised = require "spec.support.advised"
local files = require "spec.support.files"
local mb = require "moonbeam"

describe("an advice", function()
    advised.specs(require "spec.scripts.advice.other_rows", function(folder)
        local bin = os.getenv "MOONBEAM_BIN" or mb.system.program()
        local function must(words)
            local output, ok = files.run(("cd '%s' && '%s' %s"):format(folder, bin, words))
            assert(ok, output)
        end
        assert(mb.system.mkdir(folder .. "/into"))
        must "simulate sim.h5 --size 24 --rows 8 -a 30 -d host -q"
        must "psf -o q.tif --na 0.5 --index 1 --wavelength 500 --pixel 200 --step 500 --size 3,5,5 -d host -q"
        must "reconstruct sim.h5 -o a.h5 -d host -c 11.5 -q --rows 1:5"
        must "reconstruct sim.h5 -o b.h5 -d host -c 11.5 -q --rows 4:8"
        local image <close> = mb.random({8, 16, 16}, {seed = 1, device = "host"})
        mb.images.write(folder .. "/i.tif", image)
        for i, name in ipairs {"plain_a", "plain_b"} do
            local volume <close> = mb.random({6, 16, 16}, {seed = i, device = "host"})
            local file <close> = assert(mb.h5.create(folder .. "/" .. name .. ".h5"))
            file:write("/entry/data/data", volume)
            file:finish()
        end
        files.write(folder .. "/broken.h5", "no scan")
        files.write(folder .. "/recipe.txt", "- method: FBP3d_tomobar\n"
            .. "  module_path: httomolibgpu.recon.algorithm\n  parameters:\n    center: 11.5\n")
    end)
end)
