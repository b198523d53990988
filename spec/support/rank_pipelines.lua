-- Pipelines in ranks that mpirun has started: what specs of them share.

local assert = require "luassert"
local files = require "spec.support.files"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

local rank_pipelines = {}

-- A run of a recipe into FOLDER/OUT. A rank that is told so kills itself in a block. `slow`: the
-- seconds that a block takes; `others`: those that it takes longer on the other ranks.
local RUN <const> = [[
local mb = require "moonbeam"
local rank, blocks, options = mb.cluster.rank, 0, OPTIONS
local function count_blocks(of_rows)
    if not mb.device.dry() and of_rows == (options.rows or false) then
        blocks = blocks + 1
        mb.system.sleep((options.slow or 0) + (options.kill ~= rank and options.others or 0))
        if options.kill == rank and blocks == options.at then
            os.execute("kill -KILL " .. mb.system.pid())
        end
    end
end
local OWN = {{name = "smooth_frames", summary = "Smooths each frame.",
    takes = {quantity = "any", layout = "frames"}, gives = {quantity = "same", layout = "same"},
    cuts = {"frames"},
    run = function(block)
        count_blocks(false)
        block:replace(mb.gaussian_filter(block.data, {0, 0.8, 0.8}))
    end}, {name = "count_rows", summary = "Counts blocks.",
    takes = {quantity = "any", layout = "slices"}, gives = {quantity = "same", layout = "same"},
    cuts = {"rows"}, run = function() count_blocks(true) end}}
if options.refuse == rank then
    local activate = require "moonbeam.pipeline.activate"
    local section = activate.section
    function activate.section(made, i, ...) -- as if less memory were there
        local plan = require "moonbeam.pipeline.plan"
        return section(plan.again(made, i, {host = made.sections[i].reserved.host - 1}), i, ...)
    end
end
local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
local p = mb.pipeline(scan, RECIPE, {block = options.block or 1, steps = OWN, quiet = true,
    pinned = "2Mi", scratch = "FOLDER/scratch", host_budget = options.host_budget})
local done = p:run {output = "FOLDER/" .. (options.out or "out.h5"), resume = options.resume,
    overwrite = true}
if rank == 0 and not done.complete then
    assert(done.as_planned and #(done.ranks or {}) == (mb.cluster.size > 1 and mb.cluster.size or 0))
    for _, own in ipairs(done.ranks or {}) do
        assert(own.as_planned and own.predicted[1] == own.measured[1])
        assert(own.planned_pinned == own.pinned)
    end
    print(done.totals.mended[1], mb.cluster.size)
    for _, store in pairs(done.plan.job.places) do
        print("store", store.place, store.host_bytes)
    end
end
local all = mb.cluster.sum({[rank] = blocks})
local counts = mb.cluster.gather(done.plan and done.plan.sections[1].count)
if rank == 0 then
    print("smoothed", all)
    print("rows", table.unpack(counts))
    print("warnings", table.concat(done.warnings or {}, "; "))
end
]]

--- {what a recipe is like, the recipe} each.
rank_pipelines.RECIPES = {
    {"of one section, with what is measured", [[{"flat_field", "minus_log", {"center"}, {"fbp"}}]]},
    {"with a store between sections", [[{"flat_field", "smooth_frames", "minus_log",
        {"fbp", center = 11.5, circle = 0}}]]},
    {"with sums over all data", [[{"flat_field", "minus_log", {"fbp", center = 11.5, circle = 0},
        {"rescale", dtype = "uint16", percentiles = {1, 99}}}]]},
    {"with iterations", [[{"flat_field", "minus_log", {"cgls", center = 11.5, iterations = 4}}]]},
}

--- A folder with a scan, and what specs do there: {folder, session (ranks.session), text, bits,
-- left, alone, clean, close}.
function rank_pipelines.open()
    local folder = files.folder()
    assert(mb.system.mkdir(folder .. "/scratch"))
    local said, made = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 --angles 30 "
        .. "-d host -q"):format(os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
    assert(made, said)

    local function text(recipe, options)
        return (RUN:gsub("FOLDER", folder):gsub("RECIPE", (recipe:gsub("%%", "%%%%")))
            :gsub("OPTIONS", options or "{}"))
    end

    local function bits(name)
        local file <close> = assert(mb.h5.open(folder .. "/" .. (name or "out.h5")))
        local volume <close> = file:read "/entry/data/data"
        return volume:to_string(), volume.dtype
    end

    local function left()
        return (files.run(("cd '%s' && ls -A . scratch | grep -v -e scan.h5 -e '[.]lua' -e '^$' "
            .. "-e '^scratch$' -e 'serve-' -e ':$'"):format(folder)))
    end

    -- The bits of a run without MPI, and their type.
    local known = {}
    local function alone(recipe)
        if not known[recipe] then
            local output, ok = files.run_script(folder, text(recipe))
            assert(ok, output)
            known[recipe] = {bits()}
            os.remove(folder .. "/out.h5")
        end
        return table.unpack(known[recipe])
    end

    local function clean()
        files.run(("rm -rf '%s'/out* '%s'/scratch/*"):format(folder, folder))
    end

    local session = ranks.session(folder)
    local function close()
        session:close()
        files.remove(folder)
    end

    return {folder = folder, session = session, text = text, bits = bits, left = left,
        alone = alone, clean = clean, close = close}
end

return rank_pipelines
