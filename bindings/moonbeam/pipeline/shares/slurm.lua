--- The Slurm script of a run: what to ask for, by the plan, and the command itself.

local batch_script = require "moonbeam.internal.command_line.batch_script"
local batch_words = require "moonbeam.internal.command_line.batch_words"
local core = require "moonbeam.core"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local joined_parts = require "moonbeam.pipeline.shares.joined_parts"
local process_memory = require "moonbeam.internal.process_memory"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local pace = require "moonbeam.pipeline.shares.pace"

local slurm = {}

-- What a plan takes; where it is of a part, what any part may take at most.
local function most_of(made, options, plan_of)
    local own = {ranks = options.ranks, ranks_per_node = options.ranks_per_node,
        slices_per_file = options.slices_per_file}
    local most = rank_plan.of(made, own)
    local numbers = options.part and part_rows.kinds(made.sections[#made.sections],
        options.part[2]) or {}
    for _, number in ipairs(numbers) do
        local other = rank_plan.of(plan_of {number, options.part[2]}, own)
        most.process = math.max(most.process, other.process)
        most.scratch = math.max(most.scratch, other.scratch)
        if most.seconds and other.seconds.total > most.seconds.total then
            most.seconds = other.seconds
        end
    end
    return most
end

-- Is a folder on a disk of the node's own? Scratch elsewhere takes nothing of what --tmp asks for.
local function is_own_disk(folder)
    local path = core.system.real_path(folder) or folder
    for _, root in ipairs {os.getenv "TMPDIR" or "/tmp", "/tmp", "/var/tmp"} do
        root = (core.system.real_path(root) or root):gsub("/+$", "")
        if path == root or path:sub(1, #root + 1) == root .. "/" then
            return true
        end
    end
    return false
end

-- The job that joins the parts of a result.
local function join_of(made, options)
    local last = made.sections[#made.sections]
    local whole = {table.unpack(last.shape)}
    whole[last.axis] = (last.whole and last.whole[2] - last.whole[1] or last.last - last.first) + 1
    local most = joined_parts.most(whole, last.dtype)
    local bytes = most * whole[2] * whole[3] * core.pool.element_bytes(last.dtype)
    local count = options.part[2]
    local before, behind = part_rows.path(options.result, {1, count}):match(
        ("^(.*%%-part%%-)1(%%-of%%-%d.*)$"):format(count))
    return {megabytes = process_memory.megabytes(process_memory.bound(bytes, 0)),
        words = ("join %s*%s -o %s --resume auto%s"):format(batch_script.quoted(before),
            batch_script.quoted(behind), batch_script.quoted(options.result),
            options.overwrite and " --overwrite" or "")}
end

--- The script of a plan. `words`: those of the command line that planned it. Options: ranks,
-- ranks_per_node, slices_per_file, part ({K, N}: an array of N jobs instead of ranks), result (the
-- name of the whole), overwrite, sbatch (the words behind "--"), sweep and snapshots (no volume is
-- made). `plan_of(part)` plans another part.
-- Returns the text, and how many ranks have nothing to do.
function slurm.script(made, words, options, plan_of)
    local own, part = most_of(made, options, plan_of), options.part
    local makes_volume <const> = not (options.sweep or options.snapshots)
    local scratch = own.ranks == 1 and own.scratch > 0 -- ranks have it on a disk that they share
        and is_own_disk(made.job.options.scratch)
    local text = batch_script.text({nodes = own.nodes, ranks = own.ranks, per_node = own.per_node,
        processors = own.processors, megabytes = rank_plan.megabytes(own),
        gpus = own.gpus * own.per_node, scratch = scratch and own.scratch or 0,
        minutes = own.seconds and pace.minutes(own.seconds), array = part and part[2],
        after = part and options.result and join_of(made, options) or nil,
        launched = options.ranks ~= nil},
        batch_words.of("reconstruct", words, {devices = own.devices, per_node = own.per_node,
        resumes = makes_volume}) .. (part
        and (" --part $SLURM_ARRAY_TASK_ID/%d"):format(part[2]) or ""), options.sbatch)
    return text, own.idle
end

return slurm
