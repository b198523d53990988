-- The trial under a real Slurm (scripts/slurm_trial): what it says of itself, and, where Slurm is here
-- and SLURM_TRIAL is set, its rows.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("the trial of Slurm", function()
    local it = mb.system.stat "scripts/slurm_trial" and helper.busted.it or function(name)
        helper.busted.it(name, function() helper.skip "no scripts/slurm_trial" end)
    end

    it("lists its rows, each with a function", function()
        local text, ok = files.run "scripts/slurm_trial --list"
        assert.is_true(ok)
        local source, count = files.read "scripts/slurm_trial", 0
        for name in text:gmatch "([%w-]+): [^\n]+\n" do
            assert.matches("\nrow_" .. name .. "() {\n", source, 1, true)
            count = count + 1
        end
        assert.equal(select(2, source:gsub("\nrow_[%w-]+%(%) {", "")), count)
        assert.is_true(count >= 20)
    end)

    it("refuses what it does not know", function()
        for _, words in ipairs {"--nothing", "--only"} do
            local text, _, status = files.run("scripts/slurm_trial " .. words)
            assert.equal(2, status)
            assert.matches("slurm_trial: .*%-%-help", text)
        end
    end)

    it("names the packages that are missing", function()
        local folder = files.folder()
        -- A PATH with the tools that it needs to look for the others.
        files.run(("for tool in bash dirname readlink sort id; do ln -s $(command -v $tool) '%s'; done")
            :format(folder))
        local text, _, status = files.run(("sed 's|PATH=$PATH:/usr/sbin|PATH=$PATH|' scripts/slurm_trial "
            .. "> '%s/trial'; PATH='%s' bash '%s/trial'"):format(folder, folder, folder))
        files.remove(folder)
        assert.equal(3, status, text)
        assert.matches("missing: apt%-get install %S+ mariadb%-server munge slurm%-wlm slurmdbd\n", text)
    end)

    helper.busted.it("has no row that fails", os.getenv "SLURM_TRIAL" and function()
        local text, ok = files.run("MOONBEAM_BIN='" .. helper.program .. "' scripts/slurm_trial")
        assert.is_true(ok, text)
    end or function()
        helper.skip "SLURM_TRIAL=1 runs the trial, some minutes"
    end)
end)
