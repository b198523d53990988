--- The script for Slurm of a list of scans: an array, each task of which reconstructs one of them.
-- It asks for what the scan that takes most asks for, by the script of each.

local batch_script = require "moonbeam.internal.command_line.batch_script"
local cli = require "moonbeam.internal.cli"

local scan_array = {}

--- The words of a list before and behind its "--".
function scan_array.divided(words)
    local before, behind = {}, {}
    local list = before
    for _, word in ipairs(words) do
        if word == "--" and list == before then
            list = behind
        else
            list[#list + 1] = word
        end
    end
    return before, behind
end

-- The script of one scan, without what the site and the user add.
local function script_of(task)
    local file <close> = assert(io.popen("MOONBEAM_SLURM= " .. task.command))
    local text = file:read "a"
    local ok, _, status = file:close()
    if ok then
        return text
    elseif status >= 128 or status == 2 then
        os.exit(status >= 128 and 130 or 2, true)
    end
    cli.stop(("there is no plan of '%s': leave it out, or mend it"):format(task.scan))
end

-- The words behind the program's name in the command of a script, with the names of the shell in
-- the place of the scan and its result.
local function words_of(command, task)
    local own = ("reconstruct %s -o %s"):format(batch_script.quoted(task.scan),
        batch_script.quoted(task.result))
    local first, last = command:find(" " .. own, 1, true)
    local budget = command:sub(1, first - 1):match " (%-%-budget=%S+)$"
    return (budget and budget .. " " or "") .. 'reconstruct "$1" -o "$2"' .. command:sub(last + 1)
end

-- The number in what a script asks for; nil where it does not.
local function number_in(text)
    return text and math.tointeger(text:match "%d+")
end

-- The larger one of two, either of which may be nil.
local function larger(a, b)
    return math.max(a or 0, b or 0)
end

-- Makes `asked` as large as what a script asks for. A time that is not known of one is not known.
local function widen(asked, own, first)
    asked.nodes = larger(asked.nodes, number_in(own.nodes))
    asked.ranks = larger(asked.ranks, number_in(own.ntasks))
    asked.per_node = larger(asked.per_node, number_in(own["ntasks-per-node"]))
    asked.processors = larger(asked.processors, number_in(own["cpus-per-task"]))
    asked.megabytes = larger(asked.megabytes, number_in(own.mem))
    asked.gpus = larger(asked.gpus, number_in(own.gres))
    asked.scratch = larger(asked.scratch, number_in(own.tmp and own.tmp:gsub("M$", "")) and
        number_in(own.tmp) << 20)
    local hours, minutes = (own.time or ""):match "^(%d+):(%d+):"
    if not hours then
        asked.minutes = nil
    elseif first or asked.minutes then
        asked.minutes = larger(asked.minutes, 60 * math.tointeger(hours) + math.tointeger(minutes))
    end
end

--- The script of tasks: a list of {scan, result, command}. `command`, for the shell, prints the
-- script of one. `typed`: the user's options of sbatch. Ends the program where a scan has no plan.
function scan_array.script(tasks, typed)
    local asked, words = {array = #tasks, lines = {"case $SLURM_ARRAY_TASK_ID in"}}, nil
    for number, task in ipairs(tasks) do
        local own, command = batch_script.asked_in(script_of(task))
        widen(asked, own, number == 1)
        words = words or words_of(command, task)
        asked.launched = command:find "^exec srun " ~= nil
        asked.lines[number + 1] = ("%d) set -- %s %s ;;"):format(number,
            batch_script.quoted(task.scan), batch_script.quoted(task.result))
    end
    asked.lines[#asked.lines + 1] = '*) echo "there is no scan $SLURM_ARRAY_TASK_ID" >&2; exit 2 ;;'
    asked.lines[#asked.lines + 1] = "esac"
    return batch_script.text(asked, words, typed)
end

return scan_array
