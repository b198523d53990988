-- Runs on several ranks that fail or are killed: all ranks end, and another number of them goes on.

local files = require "spec.support.files"
local mb = require "moonbeam"
local rank_pipelines = require "spec.support.rank_pipelines"
local ranks = require "spec.support.ranks"

local RECIPES <const> = rank_pipelines.RECIPES

describe("a run on several ranks", function()
    local own, folder, session, text, bits, left, alone
    setup(function()
        own = rank_pipelines.open()
        folder, session, bits, left, alone = own.folder, own.session, own.bits, own.left, own.alone
        -- Stores are in files, with which others can go on.
        function text(recipe, options)
            return own.text(recipe, (options or "{}"):gsub("^{", "{host_budget = 512, "))
        end
    end)
    teardown(function()
        own.close()
    end)
    before_each(function()
        own.clean()
    end)

    ranks.it("ends as a whole if a rank is killed, and goes on with another number of ranks",
        function()
        local recipe = RECIPES[2][2]
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        for _, killed in ipairs {0, 2} do
            local began = mb.system.clock()
            local output, status = ranks.run(folder, 3, text(recipe,
                ("{kill = %d, at = 4, slow = 0.05}"):format(killed)), ranks.PATIENT)
            assert.equal(137, status, output)
            assert.matches("rank " .. killed, output)
            assert.is_true(mb.system.clock() - began < 10)
            assert.is_nil(mb.system.stat(folder .. "/out.h5"))
            local noted = 0
            for _, name in ipairs {"journal", "journal-1", "journal-2"} do
                local _, rows = files.read(("%s/out.h5.unfinished/%s"):format(folder, name))
                    :gsub('"rows"', "")
                noted = noted + rows
            end
            assert.is_true(noted >= 3, noted)
            output, status = session:run(2, text(recipe, "{resume = true}"))
            assert.equal(0, status, output)
            assert.is_true(bits() == expected)
            assert.equal("out.h5\n", left())
            os.remove(folder .. "/out.h5")
        end
    end)

    ranks.it("goes past a section that is complete", function()
        local recipe = RECIPES[2][2]:gsub("}$", ', "count_rows"}')
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        local output, status = ranks.run(folder, 2, text(recipe,
            "{rows = true, kill = 1, at = 2, slow = 0.1}"))
        assert.equal(137, status, output)
        output, status = session:run(3, text(recipe, "{resume = true}"))
        assert.equal(0, status, output)
        assert.matches("smoothed\t0\n", output)
        assert.is_true(bits() == expected)
        assert.equal("out.h5\n", left())
    end)

    ranks.it("sums again over all data if it was killed while it did", function()
        local recipe = RECIPES[3][2]:gsub('{"rescale"', '"count_rows", %0')
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        local output, status = ranks.run(folder, 2, text(recipe,
            "{rows = true, kill = 1, at = 2, slow = 0.1}"))
        assert.equal(137, status, output)
        output, status = session:run(3, text(recipe, "{resume = true, rows = true}"))
        assert.equal(0, status, output)
        assert.matches("smoothed\t6\n", output)
        assert.is_true(bits() == expected)
        assert.equal("out.h5\n", left())
    end)

    ranks.it("makes only what is left", function()
        local recipe = RECIPES[2][2]
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        local kill <const> = "{kill = 1, at = 12, slow = 0.03, others = 0.02}"
        local output, status = ranks.run(folder, 2, text(recipe, kill))
        assert.equal(137, status, output)
        output, status = session:run(3, text(recipe, "{resume = true}"))
        assert.equal(0, status, output)
        assert.is_true(tonumber(output:match "smoothed\t(%d+)") < 20, output)
        assert.is_true(bits() == expected)
        os.remove(folder .. "/out.h5")
        -- Without ranks the store is in memory, so that the first section runs again.
        output, status = ranks.run(folder, 2, text(recipe, kill))
        assert.equal(137, status, output)
        output, status = files.run_script(folder, own.text(recipe, "{resume = true}"))
        assert.is_true(status, output)
        assert.is_true(bits() == expected)
    end)

    ranks.it("is refused while another run works on the same result", function()
        local output, status = files.run(("'%s' -e 'u = require(\"moonbeam.core\").unfinished.begin("
            .. "\"%s/out.h5\") u:append(\"x\") os.execute([[%s]])'"):format(
            os.getenv "MOONBEAM_BIN" or mb.system.program(), folder,
            (ranks.command(2, "reconstruct " .. folder .. "/scan.h5 -o " .. folder
            .. "/out.h5 --resume"):gsub("'", ""))))
        assert.is_true(status, output)
        assert.matches("process %d+ on %S+ is at work on", output)
    end)

    ranks.it("leaves nothing if nothing was finished", function()
        local output, status = ranks.run(folder, 3, (text(RECIPES[1][2]):gsub('{"fbp"}', '{"fbp"}, {"fails"}'):gsub("local OWN = {{", [[
            local OWN = {{name = "fails", summary = "Fails.", takes = {quantity = "any",
                layout = "any"}, gives = {quantity = "same", layout = "same"}, cuts = {"rows"},
                run = function()
                    if not mb.device.dry() then error(mb.error("io", "no such luck"), 0) end
                end}, {]])))
        assert.equal(1, status, output)
        assert.matches("no such luck", output)
        assert.equal("", left())
    end)

    ranks.it("says what is kept if a rank fails", function()
        local output, status = ranks.run(folder, 2, (text(RECIPES[2][2], "{kill = 1, at = 4, slow "
            .. "= 0.05}"):gsub("os.execute%b()", "error('no such luck', 0)")
            :gsub("overwrite = true", "tell = rank == 0 and print or nil")))
        assert.equal(1, status, output)
        local _, count = output:gsub("no such luck", "")
        assert.equal(1, count, output)
        assert.matches("rank 1 on %S+: [^\n]*no such luck", output)
        assert.matches("keeps 0 of 6 rows: go on with", output)
        assert.is_nil(output:find("interrupted", 1, true), output)
        output, status = session:run(1, text(RECIPES[2][2], "{resume = true}"))
        assert.equal(0, status, output)
    end)
end)
