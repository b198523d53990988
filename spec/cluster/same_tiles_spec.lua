-- The tiles of a deconvolution decide the last digits of its result. Which are the quickest depends
-- on budget, place and ranks, so that plan and run name them, by the option that gives any other run
-- the same ones.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"
local search = require "moonbeam.tiles.search"

describe("the tiles that a plan names", function()
    local folder

    setup(function()
        folder = files.folder()
        for name, shape in pairs {stack = {20, 40, 36}, plane = {120, 133}} do
            local image <close> = mb.random(shape, {seed = 3, low = 1, high = 50})
            local size = #shape == 3 and {5, 7, 6} or {9, 10}
            local psf <close> = mb.psf_gaussian(size, 1.2)
            mb.npy.write(("%s/%s.npy"):format(folder, name), image)
            mb.npy.write(("%s/%s-psf.npy"):format(folder, name), psf)
        end
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function words(name, more)
        return ("deconvolve '%s/%s.npy' '%s/%s-psf.npy' --iterations 2 --device host -o '%s/out.npy' %s")
            :format(folder, name, folder, name, folder, more)
    end

    -- The result of a command line, by so many ranks (nil: one process), and what it has said.
    local function made(name, more, count)
        local own = words(name, more)
        local output, ok = files.run(count and ranks.command(count, own)
            or ("'%s' --no-mpi %s"):format(helper.program, own))
        assert.is_true(ok, output)
        local bytes = files.read(folder .. "/out.npy")
        os.remove(folder .. "/out.npy")
        return bytes, output
    end

    -- The number of tiles, and the options that give them.
    local function tiles_of(text)
        local extents, options = text:match "\n +of at most ([%d x]+); (%-%-tiles %l+ %-%-tile [%d,]+) gives "
        assert.equal((extents:gsub(" x ", ",")), options:match "[%d,]+$")
        return tonumber(text:match "\ntiles +(%d+),"), options
    end

    -- In memory these are worked on as one tile, in files as several.
    local CASES <const> = {
        {name = "stack", more = "--acceleration biggs_andrews --boundary reflect"},
        {name = "plane", more = "--total-variation 0.01"},
    }

    it("are those of any place and budget, by the option, to the bit", function()
        for _, case in ipairs(CASES) do
            local more = case.more
            local own = "--tiles exact " .. more .. " "
            local one, told = made(case.name, own)
            local count, options = tiles_of(told)
            local filed, filed_told = made(case.name, own .. "--place file")
            local filed_count, filed_options = tiles_of(filed_told)
            assert.is_true(filed_count > count, told .. filed_told)
            assert.is_true(one ~= filed, "the tiles do not show")
            local function same(expected, made_by, text, number)
                assert(expected == made_by, "other bits: " .. more .. text)
                assert.equal(number, (tiles_of(text)))
            end
            local bytes, text = made(case.name, ("%s %s"):format(more, filed_options))
            same(filed, bytes, text, filed_count)
            bytes, text = made(case.name, ("%s --place file %s"):format(more, options))
            same(one, bytes, text, count)
        end
    end)

    it("are as many, whichever a budget has led to", function()
        for _, each in ipairs {{{24, 64, 61}, {7, 9, 8}, "50K", "2M"}, {{3000}, {3}, "6K", "30K"},
            {{700, 5}, {3, 3}, "6K", "24K"}, {{9, 10, 300}, {3, 3, 3}, "10K", "24K"}} do
            local shape, size = table.unpack(each)
            local source <close> = mb.volumes.planned(shape, "f32")
            local sink <close> = mb.volumes.planned(shape, "f32")
            local psf <close> = mb.full(size, 1, {device = "host"})
            local counts
            for i = 3, 4 do
                local options = {scratch = folder .. "/s", place = "file", devices = "host",
                    budget = each[i]}
                local plan = mb.tiled_deconv.plan(source, psf, sink, options)
                options.budget, options.tile = "64M", plan.tile
                local again = mb.tiled_deconv.plan(source, psf, sink, options)
                for _, name in ipairs {"counts", "tile", "grid"} do
                    assert.same(plan[name], again[name])
                end
                assert.are_not.same(counts, plan.counts)
                counts = plan.counts
            end
        end
    end)

    it("are as many as their extents say, where not every number is looked at", function()
        local host, most = mb.device "host", 0
        for _, n in ipairs {600, 823, 1041, 1424, 3000} do
            for wanted = 1, 120, 7 do
                local job = {devices = {host}, shape = {n}, kernel = {3}, most = {n},
                    overlaps = {false}, available = {host = math.huge}, limits = {}, what = "spec",
                    seconds = function(each) return math.abs(each.total - wanted), 0, 0 end,
                    peaks = function(each)
                        each.reserved, each.reach = {host = 0}, {host = {0, 0}}
                    end}
                local best = search.best(job)
                assert.equal((n + best.tile[1] - 1) // best.tile[1], best.total)
                job.tile = best.tile
                assert.same(best.counts, search.best(job).counts)
                job.tile, job.counts = nil, {wanted} -- of a run that goes on: as they were
                assert.same({wanted}, search.best(job).counts)
                most = math.max(most, best.total)
            end
        end
        assert.is_true(most > 64)
    end)

    ranks.it("are the same for ranks and for one process, by the option of the other", function()
        for mode, case in pairs {exact = CASES[1], blended = CASES[2]} do
            local more = mode == "exact" and case.more or ""
            local own = ("--tiles %s %s "):format(mode, more)
            local one, told = made(case.name, own)
            local shared, shared_told = made(case.name, own, 2)
            local count, options = tiles_of(told)
            local shared_count, shared_options = tiles_of(shared_told)
            assert.is_true(mode == "blended" or shared_count > count)
            -- the plan of one process names them, too
            local plan = files.run(("'%s' %s --plan --ranks 2"):format(helper.program,
                words(case.name, own)))
            assert.equal(shared_options, select(2, tiles_of(plan)))
            assert(shared == made(case.name, ("%s %s"):format(more, shared_options)),
                "one process with the tiles of ranks: " .. mode)
            assert(one == made(case.name, ("%s %s"):format(more, options), 3),
                "ranks with the tiles of one process: " .. mode)
        end
    end)
end)
