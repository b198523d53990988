-- Values that make no sense end a command in one line, before any work.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"

local BIN <const> = os.getenv "MOONBEAM_BIN" or mb.system.program()

describe("a command", function()
    local shell

    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5" .. " --size 24 --rows 4 -a 30 -d host -q")
        local image <close> = mb.random({4, 16, 16}, {seed = 1, device = "host"})
        mb.images.write(shell:path "i.tif", image)
        local psf <close> = mb.ones({1, 1, 1}, {device = "host"})
        mb.images.write(shell:path "p.tif", psf)
    end)
    teardown(function()
        shell:remove()
    end)

    -- Runs a command line in the folder.
    local function run(words)
        return files.run(("cd '%s' && %s"):format(shell.folder, words))
    end

    for step, wrong in pairs {
        ['{"gaussian", sigma = 1e6}'] = "sigma is 1e+06 px, more than 10 times the longest axis",
        ['{"gaussian", sigma = {0, 400}}'] = "sigma is 400 px, more than 10 times the longest axis",
        ['{"stripes_raven", pad = 1048576}'] = "pad is 1048576, more than 10 times the 24 columns",
        ['{"stripes_sorting", size = 1048576}'] = "size is 1048576, more than 10 times the 24 columns",
    } do
        it("refuses " .. step, function()
            files.write(shell:path "r.lua", ('{"flat_field", "minus_log", %s, {"fbp", '
                .. "center = 11.5}}"):format(step))
            local output, ok = run(("'%s' reconstruct scan.h5 -o o.h5 --recipe r.lua --plan")
                :format(BIN))
            assert.is_false(ok)
            assert.truthy(output:find(wrong, 1, true), output)
            assert.truthy(output:find("give less, such as", 1, true))
        end)
    end

    it("takes widths that are large and make sense", function()
        for _, step in ipairs {'{"gaussian", sigma = 200}', '{"stripes_raven", pad = 240}',
            '{"stripes_sorting", size = 101}'} do
            files.write(shell:path "r.lua", ('{"flat_field", "minus_log", %s, {"fbp", '
                .. "center = 11.5}}"):format(step))
            local output, ok = run(("'%s' reconstruct scan.h5 -o o.h5 --recipe r.lua --plan -d host")
                :format(BIN))
            assert(ok, output)
        end
    end)

    it("does not take a column of the axis that is no number as a search", function()
        for _, value in ipairs {"nan", "NaN", "-inf", "1e400"} do
            files.write(shell:path "n.conf", "[reconstruction]\nrotation_axis_position = "
                .. value .. "\n")
            local output, ok = run(("'%s' import_recipe n.conf -o n.lua"):format(BIN))
            assert.is_false(ok)
            assert.truthy(output:find("rotation_axis_position is " .. value .. ": give the column",
                1, true), output)
            assert.is_nil(mb.system.stat(shell:path "n.lua"))
        end
        files.write(shell:path "n.conf", "[reconstruction]\nrotation_axis_position = 11.5\n")
        local output, ok = run(("'%s' import_recipe n.conf -o n.lua"):format(BIN))
        assert(ok, output)
        assert.truthy(files.read(shell:path "n.lua"):find('{"center", column = 11.5}', 1, true))
    end)

    it("ends in one line where few files may be open, and goes on", function()
        for count = 5, 12 do
            local output = run(("rm -rf o.h5*; ulimit -n %d; '%s' reconstruct scan.h5 -o o.h5 "
                .. "-c 11.5 -d host -q"):format(count, BIN))
            assert.is_nil(output:find "stack traceback", output)
            -- what nothing was finished of leaves nothing, and no name of a part
            local kept = mb.system.stat(shell:path "o.h5.unfinished/journal")
            assert.equal(kept ~= nil, mb.system.stat(shell:path "o.h5.unfinished") ~= nil, output)
            assert.is_true(not kept or output:find("keeps %d+ of %d+ rows") ~= nil, output)
            assert.is_nil(output:find("journal is", 1, true), output)
            for _, name in ipairs(mb.system.folder(shell:path ".")) do
                assert.is_nil(name:find "%.part%-", name)
            end
            local again, ok = run(("'%s' reconstruct scan.h5 -o o.h5 -c 11.5 -d host -q "
                .. "--overwrite --discard"):format(BIN))
            assert(ok, again)
            assert.is_nil(mb.system.stat(shell:path "o.h5.unfinished"))
        end
    end)

    it("makes no script for Slurm of names that are no text", function()
        run "cp scan.h5 \"$(printf 'a\\377.h5')\""
        local output, ok = run(("'%s' reconstruct \"$(printf 'a\\377.h5')\" -o o.h5 -c 11.5 --plan "
            .. "--slurm -d host"):format(BIN))
        assert.is_false(ok)
        assert.truthy(output:find("'a\\xff.h5' has bytes that are no text", 1, true), output)
        assert.is_nil(output:find("#SBATCH", 1, true))
    end)

    it("plans what the run would refuse no more", function()
        local output, _, status = run(("'%s' reconstruct scan.h5 -o o.tif -c 11.5 --output-dtype "
            .. "float16 --plan -d host"):format(BIN))
        assert.equal(2, status)
        assert.truthy(output:find("float16 is not for TIFF files", 1, true))
        output, _, status = run(("'%s' deconvolve i.tif p.tif -o o.tif --tiles blended --tolerance "
            .. "1e-3 -d host"):format(BIN))
        assert.equal(2, status)
        assert.truthy(output:find("--tolerance is not for --tiles blended", 1, true))
    end)

    it("calls a peak that depends on the noise of an image one at most", function()
        local plan = run(("'%s' deconvolve i.tif p.tif -o o.tif --iterations auto --plan -d host")
            :format(BIN))
        assert.truthy(plan:find("peak at most ", 1, true), plan)
        plan = run(("'%s' deconvolve i.tif p.tif -o o.tif --iterations 3 --plan -d host"):format(BIN))
        assert.is_nil(plan:find("peak at most ", 1, true))
    end)
end)
