--- The script for Slurm of moonbeam deconvolve (--slurm): what to ask for, by the plan, and the
-- command with what the plan has chosen: whether there are tiles, which, and the budget. A job has
-- less memory than the machine that has planned it, so it would choose others, and the last digits
-- of the result depend on the tiles.

local batch_script = require "moonbeam.internal.command_line.batch_script"
local batch_words = require "moonbeam.internal.command_line.batch_words"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local file_name = require "moonbeam.internal.file_name"
local pace = require "moonbeam.pipeline.shares.pace"
local process_memory = require "moonbeam.internal.process_memory"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local resuming = require "moonbeam.internal.command_line.resuming"
local search = require "moonbeam.tiles.search"
local tables = require "moonbeam.internal.tables"
local volumes = require "moonbeam.volumes"
local way = require "moonbeam.internal.deconvolve.way"

local slurm_job = {}

-- Options that the plan says again.
local WITHOUT <const> = {["--tiles"] = true, ["-t"] = true}

-- Convolutions of an iteration, of the whole image; of gradient_consensus each half has its own.
local CONVOLUTIONS <const> = {gradient_consensus = 4}

--- The names of the results of a command line.
function slurm_job.results(options, images)
    return images and tables.mapped(images, "output")
        or {options.output and file_name.without_member(options.output)}
end

-- About how many seconds the work takes on GPUs; nil on a host.
local function seconds_of(job, plan)
    local image, most = job.image
    if rank_plan.gpus(job.devices) < #job.devices then
        return nil
    end
    if plan then
        local work, reading, writing = table.unpack(plan.works)
        most = work / math.min(job.options.ranks or 1, plan.total) + reading + writing
    else
        most = (CONVOLUTIONS[job.options.method] or 2) * (job.settings.iterations or 1)
            * search.convolution_seconds(job.device, tables.product(way.grid(job)))
    end
    most = job.automatic and 2 * most or most -- the search has no more iterations
    return #job.results * image.channels * image.frames * (most
        + image.voxels * (volumes.ITEM_BYTES[image.dtype] + volumes.ITEM_BYTES[job.dtype])
        / pace.DISK)
end

-- The budget on a device with which the plan is the same: its arrays, and holes between them.
local function budget_of(plan, id, before)
    local ends = plan and plan.reach[id] or {0, 0}
    return math.max(call_budget.peak(id), ends[1] + ends[2], before or 0)
end

-- The words that say what the plan has chosen.
local function chosen(job, plan)
    local options, list, budget = job.options, {"--tiles " .. job.mode}, 0
    if plan and not options.tile then
        list[#list + 1] = "--tile " .. table.concat(plan.tile, ",")
    end
    for _, device in ipairs(job.devices) do
        budget = math.max(budget, budget_of(plan, device.id))
    end
    if not options.budget and not batch_words.has_budget() then
        list[#list + 1] = ("--budget %d"):format(budget)
    end
    if job.device.kind ~= "host" and not options.host_budget then
        list[#list + 1] = ("--host-budget %d"):format(budget_of(plan, "host", job.prepared_host))
    end
    return list
end

--- Prints the script of a plan (nil: of the whole), and warns of ranks without tiles and of results
-- that are there. `bytes`: the bound of the process of a rank. Ends the program where the words of
-- the user or of the site are none for sbatch.
function slurm_job.print(job, plan, bytes)
    local options, seconds = job.options, seconds_of(job, plan)
    local ranks, per_node = options.ranks or 1, options.ranks_per_node or 1
    cli.print(batch_script.text({nodes = math.ceil(ranks / per_node), ranks = ranks,
        per_node = per_node, processors = rank_plan.processors(job.devices),
        megabytes = process_memory.megabytes(per_node * bytes),
        gpus = rank_plan.gpus(job.devices) * per_node,
        scratch = 0, -- what is kept is beside the result
        minutes = seconds and pace.minutes {total = seconds}, launched = options.ranks ~= nil},
        batch_words.of("deconvolve", options.words, {devices = job.devices, per_node = per_node,
            resumes = true, without = WITHOUT, more = chosen(job, plan)}), options.sbatch))
    if plan and ranks > plan.total then
        cli.warn("there is nothing to do for %d of %d ranks: ask for less, or for more tiles, by a "
            .. "smaller --tile", ranks - plan.total, ranks)
    end
    resuming.foresee(job.results, options.overwrite)
end

return slurm_job
