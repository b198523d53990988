-- A budget that is too small for ranks: the error names one for each of them that is enough for the
-- whole call at the first try, from the command line and from Lua; also where it is too small for
-- one of them alone.

local files = require "spec.support.files"
local helper = require "spec.helper"
local ranks = require "spec.support.ranks"

local folder

-- What each rank prints: name, what is enough, and whether the call runs with it and with less.
local CALLS <const> = [[
    local mb = require "moonbeam"
    local scan = mb.scan.open "FOLDER/s.h5"
    local image <close> = mb.random({6, 20, 24}, {seed = 1, low = 1, high = 9})
    local calls = {
        {"pipeline", function(bytes)
            mb.pipeline.new(scan, {"flat_field", "minus_log", {"center", column = 8}, {"fbp"}},
                {budget = bytes, quiet = true}):run(function() end)
        end},
        {"blocks", function(bytes)
            mb.chunked("gaussian_filter", image, {params = {sigma = 1}, ranks = true,
                budget = bytes, sink = function() end})
        end},
        {"tiles", function(bytes)
            local path, leads = "FOLDER/o.npy", mb.cluster.rank == 0
            local source <close> = mb.images.open "FOLDER/i.npy"
            local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
            local journal <close> = mb.tiled_deconv.journal(path, {inputs = {"FOLDER/i.npy"},
                discard = true, overwrite = true})
            local out <close> = leads and mb.images.create(path, {shape = source.shape,
                dtype = "f32", channels = 1, frames = 1, overwrite = journal:may_replace()}) or nil
            mb.tiled_deconv.richardson_lucy_volume(source, psf, out and out:volume()
                or mb.volumes.planned(source.shape, "f32"), {mode = "blended", iterations = 1,
                tile = {6, 10, 12}, overlap = false, budget = bytes, journal = journal})
            journal:finishing()
            if out then
                out:finish()
            end
            journal:finish()
        end},
    }
    if mb.cluster.rank == 0 then
        mb.images.write("FOLDER/i.npy", image)
    end
    mb.cluster.barrier()
    local device = mb.device "host"
    local usual = device:budget()
    -- With one rank's budget too small, or that of the other one.
    for small = 0, 1 do
        local function limited(bytes)
            mb.collect()
            device:budget(mb.cluster.rank == small and bytes or usual)
            local ok, err = pcall(calls[3][2])
            device:budget(usual)
            return ok, err
        end
        local _, err = limited(mb.pool.stats("host").live + 4096)
        local runs = limited(err.enough)
        device:budget(err.enough)
        local all = pcall(calls[3][2])
        device:budget(usual)
        local lines = mb.cluster.gather {err.enough, runs, all, err.code, err.message}
        if mb.cluster.rank == 0 then
            print("small", small, lines[1][1] == lines[2][1], lines[1][2], lines[2][2],
                lines[1][3], lines[2][3], lines[1][4], lines[2][4], lines[2][5])
        end
    end
    for _, call in ipairs(calls) do
        local _, err = pcall(call[2], 1024)
        local runs = pcall(call[2], err.enough)
        local less = pcall(call[2], err.enough * 9 // 10)
        local lines = mb.cluster.gather {err.limited_by, err.enough, runs, less}
        if mb.cluster.rank == 0 then
            for rank, line in ipairs(lines) do
                print(call[1], rank, line[1], line[2] > 1024, line[3], line[4])
            end
        end
    end
]]

describe("a budget that is too small for ranks", function()
    setup(function()
        folder = files.folder()
        local text, status = helper.run_program(("scripts/simulate.lua %s/s.h5 -n 16 --rows 6 -a 12 "
            .. "-q"):format(folder))
        assert(status == 0, text)
    end)

    teardown(function()
        files.remove(folder)
    end)

    ranks.it("is told by a command with what is enough for each", function()
        local function run(budget)
            local text, _, status = files.run(ranks.command(2, ("reconstruct %s/s.h5 -m fbp -c 8 "
                .. "-d host --progress none --no-log -o %s/o.h5 --overwrite --budget %d"):format(
                folder, folder, budget)))
            return text, status
        end
        local text, status = run(4096)
        local bytes = math.tointeger(text:match "; give %-%-budget %S+ or more %((%d+) bytes%)")
        assert.not_equal(0, status)
        assert.is_not_nil(bytes, text)
        text, status = run(bytes)
        assert.equal(0, status, text)
        assert.matches(("predicted %d bytes, measured %d bytes"):format(bytes, bytes), text)
        text, status = run(bytes * 9 // 10)
        assert.not_equal(0, status)
        assert.matches(("or more %%(%d bytes%%)"):format(bytes), text)
    end)

    ranks.it("is told by Lua's functions, on all of them", function()
        local text, status = ranks.run(folder, 2, (CALLS:gsub("FOLDER", folder)))
        assert.equal(0, status, text)
        for small = 0, 1 do
            assert.matches(("small\t%d\ttrue\ttrue\ttrue\ttrue\ttrue\tbudget\tbudget")
                :format(small), text)
        end
        assert.matches("on rank 1 the smallest tiles", text)
        for _, name in ipairs {"pipeline", "blocks", "tiles"} do
            for rank = 1, 2 do
                assert.matches(("%s\t%d\tbudget\ttrue\ttrue\tfalse"):format(name, rank), text)
            end
        end
    end)
end)
