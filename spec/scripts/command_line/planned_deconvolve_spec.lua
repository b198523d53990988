-- What `deconvolve` plans for a GPU that is not here goes the way of a GPU that is: each array has
-- to be where the others of its call are.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local LINES = {"--iterations auto", "--iterations auto --tiles exact",
    "--iterations auto --acceleration biggs_andrews --background 1", "--method gradient_consensus",
    "--tiles exact --acceleration heavy_ball --background 1", "--mask m.npy --iterations auto",
    "--tiles blended", "--curve c.png --snapshots s.png", "--method wiener --preview w.png"}

describe("deconvolve on a GPU that is planned for", function()
    local folder
    setup(function()
        folder = files.folder()
        local image <close> = mb.random({12, 40, 40}, {seed = 5, low = 1, high = 30})
        local psf <close> = mb.psf_gaussian({5, 7, 6}, 0.8)
        local mask <close> = mb.ones({12, 40, 40})
        mb.npy.write(folder .. "/i.npy", image)
        mb.npy.write(folder .. "/p.npy", psf)
        mb.npy.write(folder .. "/m.npy", mask)
    end)
    teardown(function()
        files.remove(folder)
    end)

    for _, device in ipairs {"planned:h200", "2xplanned:h200"} do
        it("is planned on " .. device, function()
            for _, line in ipairs(LINES) do
                local output, ok = files.run(("cd '%s' && '%s' deconvolve i.npy p.npy -o v.npy -d %s "
                    .. "--plan %s"):format(folder, helper.program, device, line))
                assert.is_true(ok, line .. "\n" .. output)
                assert.matches("peak", output, 1, true)
            end
        end)
    end
end)
