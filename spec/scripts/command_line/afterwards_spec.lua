-- What is made after a result that is complete: pictures.

local helper = require "spec.helper"
local files = require "spec.support.files"
local scale = require "moonbeam.plot.scale"

describe("after a complete result", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    it("the picture of a single slice is made of every format", function()
        local scan = folder .. "/scan.h5"
        local text, status = helper.run_program(("scripts/simulate.lua %s -n 16 --rows 4 -a 24 -q "
            .. "-d host"):format(scan))
        assert.equal(0, status, text)
        local pictures = {}
        for _, ending in ipairs { "h5", "tif", "ome.tif", "zarr" } do
            local picture = ("%s/p.%s.png"):format(folder, ending)
            text, status = helper.run_program(("scripts/reconstruct.lua %s -r 1:1 -c 7.5 -o "
                .. "%s/o.%s -p %s -q -d host"):format(scan, folder, ending, picture))
            assert.equal(0, status, text)
            pictures[#pictures + 1] = files.read(picture)
        end
        for i = 2, #pictures do
            assert.is_true(pictures[i] == pictures[1], i)
        end
    end)

    it("a failure is a warning that names what is missing, and status 1", function()
        local text, _, status = files.run_script(folder, [[
            local cli = require "moonbeam.internal.cli"
            cli.afterwards("--preview", "p.png", function() error("no room", 0) end)
            print "goes on"
        ]])
        assert.equal(1, status)
        assert.matches("goes on", text)
        assert.matches("warning: the result is complete, but %-%-preview p.png is not made: no room",
            text)
    end)

    it("a curve that is flat has an axis", function()
        for _, range in ipairs { { 2.31, 2.31 }, { 2.31, 2.3105 } } do
            local values, texts = scale.ticks(range[1], range[2], 5, "log")
            assert.is_true(#values > 0 and #values == #texts)
            for _, value in ipairs(values) do
                assert.is_true(value >= range[1] and value <= range[2])
            end
        end
    end)
end)
