-- Pictures of a whole run, where a recipe makes something else: refused, not left out in silence.

local commands = require "spec.support.commands"
local files = require "spec.support.files"

describe("pictures of a whole run", function()
    local shell

    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5"
            .. " --size 16 --rows 3 --angles 12 --quiet")
        files.write(shell:path "r.lua", '{"flat_field", "minus_log", {"median", size = 3}, '
            .. '{"center"}, {"fbp"}}')
    end)

    teardown(function()
        shell:remove()
    end)

    it("are refused with what makes no volume, before any work", function()
        local before = files.list(shell:path "")
        for option, whats in pairs {["--center-picture"] = {"sweep", "snapshots"},
            ["-p"] = {"snapshots"}, ["--preview-rows 2 -p"] = {"sweep", "vertical"}} do
            for _, what in ipairs(whats) do
                for _, plan in ipairs {"", "--plan"} do
                    local status, text = commands.run("reconstruct.lua",
                        ("%s -o %s --recipe %s --%s %s %s %s -d host"):format(shell:path "scan.h5",
                        shell:path "o.h5", shell:path "r.lua", what, ({sweep = "median.size=1,3",
                            snapshots = shell:path "out", vertical = "x=3"})[what], option,
                        shell:path "p.png") .. " " .. plan)
                    assert.equal(2, status, text)
                    assert.truthy(text:find("is drawn of a whole run; leave it out with --" .. what,
                        1, true), text)
                end
            end
        end
        assert.same(before, files.list(shell:path ""))
    end)
end)
