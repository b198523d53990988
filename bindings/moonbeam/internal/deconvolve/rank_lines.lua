--- What moonbeam deconvolve says of ranks (mpirun, srun), which share the tiles of an image: what
-- each takes, in a plan and after a run.

local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local mb = require "moonbeam"
local process_memory = require "moonbeam.internal.process_memory"

local rank_lines = {}

--- The options of the command line.
rank_lines.options = {
    {"ranks", value = "N", type = cli.count, doc = "with --plan: what N processes take that mpirun "
        .. "or srun starts, which share the tiles"},
    {"ranks-per-node", value = "N", type = cli.count,
        doc = "how many of them share a node (default: 1)"},
    {"slurm", doc = "with --plan: print a Slurm script that asks for what the plan takes, over "
        .. "--ranks, and names its tiles"},
}

--- Ends the program where the options make no sense. From here on it plans as one of the ranks of a
-- node does, which share its processors and its memory: before a device is open.
function rank_lines.begin(options)
    local ranks, per_node = options.ranks, options.ranks_per_node
    if ranks and not options.plan then
        cli.wrong("--ranks needs --plan: start a run with mpirun -n %d or srun", ranks)
    elseif per_node and not ranks then
        cli.wrong("--ranks-per-node needs --ranks: how many there are in all")
    elseif per_node and per_node > ranks then
        cli.wrong("--ranks-per-node %d is more than all ranks, --ranks %d", per_node, ranks)
    elseif ranks and options.into then
        cli.wrong("--into works on one image after the other, and ranks share the tiles of one: "
            .. "leave out --ranks")
    end
    if per_node then
        core.cluster.share_node(per_node)
    end
end

--- Ends the program if the image is not cut: ranks have nothing to share.
function rank_lines.check_mode(job)
    local ranks = job.options.ranks or not job.options.plan and mb.cluster.size or 1
    if job.mode == "none" and ranks > 1 then
        cli.stop(("the whole image fits, and there are %d ranks, which share tiles: give --tiles "
            .. "exact or --tiles blended, or start it without mpirun or srun"):format(ranks))
    end
end

--- Says what a plan takes over --ranks; nothing without them. `bytes`: the bound of the process of
-- a rank.
function rank_lines.say_plan(job, plan, bytes)
    local ranks, per_node = job.options.ranks, job.options.ranks_per_node or 1
    if not ranks then
        return
    end
    local nodes, total = math.ceil(ranks / per_node), plan and plan.total
    job.say("ranks      %d on %s, %d on each; %s%s", ranks, counted(nodes, "node"), per_node, total
        and counted(total, "tile") .. ", taken when a rank is free" or "the whole image", total
        and ranks > total and (", nothing for %s"):format(counted(ranks - total, "rank")) or "")
    job.say("  node     the processes at most %s: --mem=%dM",
        mb.device.format_bytes(per_node * bytes), process_memory.megabytes(per_node * bytes))
end

--- Says what each rank has taken for a volume: what a dry run of its tiles takes (of a run that has
-- gone on, at most), and what it was. All ranks call it.
function rank_lines.say_report(job, report)
    if mb.cluster.size == 1 then
        return
    end
    local own = {node = mb.cluster.node, exact = report.replayed ~= nil, devices = {},
        predicted = {}, measured = {}}
    for i, device in ipairs(job.devices) do
        local live = i == 1 and job.live or 0
        own.devices[i] = device.id
        own.predicted[i] = live + (report.replayed or job.plan.reserved)[device.id]
        own.measured[i] = live + (report.peaks[device.id] or 0)
    end
    for rank, facts in ipairs(mb.cluster.gather(own)) do
        for i, id in ipairs(facts.devices) do
            job.say("rank %d on %s: %s, predicted %s%d bytes, measured %d bytes", rank - 1,
                facts.node, id, facts.exact and "" or "at most ", facts.predicted[i],
                facts.measured[i])
        end
    end
end

--- Returns a function for settings.on_tile, and one for the end of iteration k, which tell a bar
-- of tiles, `each` in an iteration: those of other ranks when the iteration is over.
function rank_lines.counters(bar, each, mode)
    local told = 0
    local function tell(count)
        bar:step(count)
        told = told + count
    end
    return function()
        tell(1)
    end, function(k)
        local missing = (mode == "exact" and k or 1) * each - told
        if missing > 0 then
            tell(missing)
        end
    end
end

return rank_lines
