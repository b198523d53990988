--- What the commands that print a script for Slurm (--slurm) have in common: what may be asked, and
-- the words of the command in the script.

local batch_script = require "moonbeam.internal.command_line.batch_script"
local cli = require "moonbeam.internal.cli"

local batch_words = {}

-- Options of a command line that the script leaves out: with a value, and without.
local VALUED <const> = {["--ranks"] = true, ["--ranks-per-node"] = true, ["--part"] = true,
    ["--png"] = true}
local BARE <const> = {["--plan"] = true, ["--slurm"] = true}

--- Ends the program where --slurm is not for the other options.
function batch_words.check(options)
    if options.slurm and not options.plan then
        cli.wrong("--slurm needs --plan: it prints what to ask a batch system for")
    elseif options.slurm and options.discard then
        cli.wrong("a script for Slurm goes on with what --discard removes each time that it is "
            .. "started: leave --discard out")
    end
end

-- What the job names where the plan was for such devices: those of the node, or the GPU of a rank.
local function device_of(devices, per_node)
    return devices[1].kind == "host" and "host" or #devices > 1 and "all"
        or per_node > 1 and "cuda" or "cuda:0"
end

--- Is --budget among the words before the command?
function batch_words.has_budget()
    for _, word in ipairs(batch_script.before_command()) do
        if word:find "^%-%-budget=" then
            return true
        end
    end
    return false
end

--- The words of the run behind the program's name, those of a plan left out. The device is always
-- named, so that no job for a GPU runs on the host; and a job that is started again goes on.
-- `command`: its name. `words`: of the command line that planned it. `of`: devices, per_node (ranks
-- on a node), resumes (the command has --resume auto), without (a table of options with a value,
-- true by their names, that are left out, too), more (words that are added, as the shell takes
-- them).
function batch_words.of(command, words, of)
    local list, at, device = {}, 1, nil
    for _, word in ipairs(batch_script.before_command()) do
        device = word:match "^%-%-device=(.*)$" or device
        list[#list + 1] = word:find "^%-%-budget=" and batch_script.quoted(word) or nil
    end
    list[#list + 1] = command
    while at <= #words do
        local word = words[at]
        local name, value = word:match "^(%-%-[%w-]+)=(.*)$"
        if VALUED[name or word] or of.without and of.without[name or word] then
            at = at + (name and 0 or 1)
        elseif (name or word) == "--device" or word == "-d" then
            device = value or words[at + 1]
            at = at + (name and 0 or 1)
        elseif (name or word) == "--resume" then
            at = at + (words[at + 1] == "auto" and 1 or 0)
        elseif not BARE[word] then
            list[#list + 1] = batch_script.quoted(word)
        end
        at = at + 1
    end
    table.move(of.more or {}, 1, #(of.more or {}), #list + 1, list)
    if of.resumes then
        list[#list + 1] = "--resume auto"
    end
    local typed = device and device ~= "auto" and not device:find "planned:"
    list[#list + 1] = "--device " .. (typed and batch_script.quoted(device)
        or device_of(of.devices, of.per_node))
    return table.concat(list, " ")
end

return batch_words
