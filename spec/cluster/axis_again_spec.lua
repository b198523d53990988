-- The axis of a scan with columns that show no sample, searched behind a store: in one run, in
-- parts and on several ranks it is the same, and so are the bits.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

describe("an axis that is searched behind a store of a scan with defects", function()
    local shell, scan, recipe, expected, column, how

    local function run(output, more)
        return commands.must("reconstruct.lua", ("%s -o %s --recipe %s -d host --progress none %s")
            :format(scan, shell:path(output), recipe, more or ""))
    end

    local function bits(name)
        local volume <close> = mb.images.open(shell:path(name))
        local array <close> = mb.volumes.load(volume, mb.device "host")
        return array:to_string()
    end

    local function check(text)
        local found, words = text:match "\ncenter +([%d.]+), (%a+ %b())"
        assert.equal(column, found)
        assert.equal(how, words)
        local count = 0
        for predicted, measured in text:gmatch "predicted (%d+) bytes, measured (%d+)" do
            assert.equal(predicted, measured)
            count = count + 1
        end
        assert.is_true(count > 0, text)
    end

    setup(function()
        shell = commands.folder()
        scan, recipe = shell:path "scan.h5", shell:path "recipe.lua"
        commands.must("simulate.lua", scan .. " --size 64 --rows 8 --angles 90 --center 30.2 "
            .. "--stripes 5 --quiet --format nxtomo")
        files.write(recipe, '{"flat_field", {"paganin", delta_beta = 20, energy = 20000, '
            .. 'distance = 0.001, log = false}, "minus_log", {"center"}, {"fbp"}}')
        local text = run "whole.h5"
        column, how = text:match "\ncenter +([%d.]+), (%a+ %b())"
        assert.near(30.2, tonumber(column), 0.25)
        assert.matches("^found.*left out", how)
        expected = bits "whole.h5"
    end)
    teardown(function()
        shell:remove()
    end)

    it("is planned to the byte", function()
        check(run "again.h5")
        assert.is_true(bits "again.h5" == expected)
    end)

    it("is the same in parts", function()
        check(run("v.h5", "--part 1/2"))
        check(run("v.h5", "--part 2/2"))
        commands.must("join.lua", ("%s -o %s --quiet"):format(shell:path "v*of*.h5",
            shell:path "joined.h5"))
        assert.is_true(bits "joined.h5" == expected)
    end)

    ranks.it("is the same on two ranks", function()
        local output, _, status = files.run(ranks.command(2, ("scripts/reconstruct.lua %s -o %s "
            .. "--recipe %s -d host --progress none"):format(scan, shell:path "r.h5", recipe))
            .. " 2>&1")
        assert.equal(0, status, output)
        assert.matches("center +" .. column:gsub("%p", "%%%0"), output)
        assert.is_true(bits "r.h5" == expected)
    end)
end)
