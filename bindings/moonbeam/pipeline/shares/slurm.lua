--- The Slurm script of a run: what to ask for, by the plan, and the command itself.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local pace = require "moonbeam.pipeline.shares.pace"

local slurm = {}

-- Options of a command line that the script leaves out: with a value, and without.
local VALUED <const> = {["--ranks"] = true, ["--ranks-per-node"] = true, ["--part"] = true,
    ["--png"] = true}
local BARE <const> = {["--plan"] = true, ["--slurm"] = true}

-- A word as the shell takes it.
-- Errors: argument (it has bytes that are no text, which the script would not keep).
local function quoted(word)
    if core.error.printable(word, true) ~= word then
        fail("argument", nil, nil, "'%s' has bytes that are no text, and the script for Slurm is "
            .. "one: give the file another name", core.error.printable(word))
    end
    return word:find "^[%w%-_./:=,+@%%]+$" and word or "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The words of the run, those of a plan left out: GPUs that were planned for are those of the node.
local function words_of(words, devices)
    local list, at = {}, 1
    while at <= #words do
        local word = words[at]
        local name, value = word:match "^(%-%-[%w-]+)=(.*)$"
        if VALUED[name or word] then
            at = at + (name and 0 or 1)
        elseif (name or word) == "--device" or word == "-d" then
            value = value or words[at + 1]
            at = at + (name and 0 or 1)
            if not value:find "planned:" then
                list[#list + 1] = "--device " .. quoted(value)
            elseif devices > 1 then
                list[#list + 1] = "--device all"
            end
        elseif not BARE[word] then
            list[#list + 1] = quoted(word)
        end
        at = at + 1
    end
    return table.concat(list, " ")
end

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

--- The script of a plan. `words`: those of the command line that planned it. Options: ranks,
-- ranks_per_node, slices_per_file, part ({K, N}: an array of N jobs instead of ranks).
-- `plan_of(part)` plans another part.
function slurm.script(made, words, options, plan_of)
    local own = most_of(made, options, plan_of)
    local lines, part = {"#!/bin/sh"}, options.part
    local function ask(format, ...)
        lines[#lines + 1] = "#SBATCH --" .. format:format(...)
    end
    if part then
        ask("array=1-%d", part[2])
    end
    ask("nodes=%d", own.nodes)
    ask("ntasks=%d", own.ranks)
    if own.ranks > 1 then
        ask("ntasks-per-node=%d", own.per_node)
    end
    ask("cpus-per-task=%d", own.processors)
    ask("mem=%dM", rank_plan.megabytes(own))
    if own.gpus > 0 then
        ask("gres=gpu:%d", own.gpus * own.per_node)
    end
    if own.scratch > 0 and own.ranks == 1 then -- ranks have it on a disk that they share
        ask("tmp=%dM", math.ceil(own.scratch / (1 << 20)))
    end
    if own.seconds then
        local minutes = pace.minutes(own.seconds)
        ask("time=%d:%02d:00", minutes // 60, minutes % 60)
    end
    -- srun takes no --cpus-per-task from the lines above.
    local launcher = options.ranks
        and ("srun --mpi=pmix --cpus-per-task=%d "):format(own.processors) or ""
    lines[#lines + 1] = ("%smoonbeam reconstruct %s%s"):format(launcher,
        words_of(words, #own.devices), part
        and (" --part $SLURM_ARRAY_TASK_ID/%d"):format(part[2]) or "")
    return table.concat(lines, "\n")
end

return slurm
