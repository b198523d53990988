-- The picture of a plan's memory: reconstruct --plan --png FILE.

local files = require "spec.support.files"
local helper = require "spec.helper"

describe("reconstruct --plan --png", function()
    local folder
    setup(function()
        folder = files.folder()
        local text, status = helper.run_program(("simulate %s/scan.h5 --size 48 --rows 6 --angles "
            .. "40 --quiet"):format(folder))
        assert(status == 0, text)
    end)
    teardown(function() files.remove(folder) end)

    local function planned(options, name)
        return helper.run_program(("reconstruct %s/scan.h5 --plan -d host -b 20M --png %s/%s %s"):format(
            folder, folder, name, options))
    end

    it("has the peak that the plan prints, with the budget and the steps", function()
        for name, options in pairs {direct = "", fbp = "--method fbp -c 23",
            recipe = "--recipe FBP3d_tomobar"} do
            local text, status = planned(options, name .. ".svg")
            assert.equal(0, status, text)
            local peak = text:match("\npeak [^\n]-%((%d+) bytes%)")
            local svg = files.read(("%s/%s.svg"):format(folder, name))
            assert.truthy(svg:find((">planned memory on host: %s bytes at most<"):format(peak), 1,
                true), name)
            assert.truthy(svg:find(">budget 20 MB", 1, true))
            assert.matches(">peak [%d.]+ [KM]iB, event %d+: ", svg)
            assert.truthy(svg:find(">flat_field<", 1, true) or svg:find(" others<", 1, true))
            assert.is_true(svg:find(">fourier<", 1, true) ~= nil or name ~= "direct")
            assert.is_true(svg:find(">fbp<", 1, true) ~= nil or name ~= "fbp")
        end
    end)

    it("takes what is predicted, beside the budget, which is that of the run", function()
        files.write(folder .. "/r.lua", '{"flat_field", "minus_log", {"fbp", center = 23}}')
        for _, options in ipairs {"--method fbp -c 23", ("--recipe %s/r.lua"):format(folder)} do
            local words = ("reconstruct %s/scan.h5 --plan -d host --overwrite %s "):format(folder,
                options)
            local text = helper.run_program(words)
            local peak = math.tointeger(text:match "\npeak [^\n]-%((%d+) bytes%)")
            assert.is_true(peak < 960 * 440 * 3, peak)
            local status
            text, status = helper.run_program(("%s-b %d --png %s/b.png"):format(words, peak,
                folder))
            assert.equal(0, status, text)
            local predicted, measured = text:match(
                "\npicture [^\n]-predicted (%d+) bytes, measured (%d+) bytes on the host\n")
            assert.equal(960 * 440 * 3, math.tointeger(predicted), text)
            assert.equal(predicted, measured)
            assert.is_true(math.tointeger(text:match "\npeak [^\n]-%((%d+) bytes%)") <= peak)
            assert.is_nil(text:find("\ncommand ", 1, true))
            -- The picture is not in the advice either.
            text, status = helper.run_program(("%s-b 1K --png %s/b.png"):format(words, folder))
            assert.equal(1, status)
            local advice = math.tointeger((text:match "or more %((%d+) bytes%)"))
            assert.is_true(advice <= peak, text)
            -- Without an array, there is nothing to say.
            text, status = helper.run_program(("%s-b %d --png %s/b.svg"):format(words, peak,
                folder))
            assert.equal(0, status, text)
            assert.truthy(text:find("b.svg (the memory)\n", 1, true), text)
        end
    end)

    it("is a PNG by its name, and replaces nothing without --overwrite", function()
        assert.equal(0, select(2, planned("-c 23", "m.png")))
        assert.equal("\137PNG", files.read(folder .. "/m.png"):sub(1, 4))
        local text, status = planned("-c 23", "m.png")
        assert.equal(1, status)
        assert.matches("already exists", text)
        assert.equal(0, select(2, planned("-c 23 --overwrite", "m.png")))
    end)

    it("goes with --plan, and has a name of its kind", function()
        local text, status = planned("", "m.jpg")
        assert.equal(2, status)
        assert.matches("must end in .png or .svg", text)
        text, status = helper.run_program(("reconstruct %s/scan.h5 --png %s/x.png"):format(folder,
            folder))
        assert.equal(2, status)
        assert.matches("%-%-png is the picture of a %-%-plan", text)
    end)
end)
