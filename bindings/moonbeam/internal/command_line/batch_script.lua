--- The script for Slurm that does what a command line does: what it asks for, what the user and the
-- site add, and the command itself.
--
-- The user's options of sbatch are behind "--" on the command line; the site's are in the file that
-- the environment variable MOONBEAM_SLURM names, in lines that begin with "#SBATCH". Its other
-- lines stand before the command (module load, export). Three options are no options of sbatch:
-- --mpi=KIND is for srun, --prefix=WORDS stands before the program, --program=NAME is its name.
-- What the user says wins over the site, and both over the plan.

local core = require "moonbeam.core"
local cli = require "moonbeam.internal.cli"
local input_file = require "moonbeam.internal.files.input_file"

local batch_script = {}

-- The names of the options of sbatch that have one letter.
local LONG <const> = {A = "account", a = "array", C = "constraint", c = "cpus-per-task",
    D = "chdir", d = "dependency", e = "error", G = "gpus", H = "hold", J = "job-name",
    L = "licenses", N = "nodes", n = "ntasks", o = "output", p = "partition", q = "qos",
    s = "oversubscribe", t = "time", w = "nodelist", x = "exclude"}

-- How many tasks of an array work at a time, as --array has it.
local LIMIT <const> = "^%%[1-9]%d*$"

-- Options that say how the work is shared, and the option of the command that says so.
local SHARED <const> = {nodes = "--ranks", ntasks = "--ranks",
    ["ntasks-per-node"] = "--ranks-per-node"}

-- Options that are not for sbatch.
local OURS <const> = {mpi = "pmix", prefix = "", program = ""}

-- ---- words ----

local function append(list, more)
    table.move(more, 1, #more, #list + 1, list)
end

--- A word as the shell takes it.
-- Ends the program where it has bytes that are no text, which the script would not keep.
function batch_script.quoted(word)
    if core.error.printable(word, true) ~= word then
        cli.wrong("'%s' has bytes that are no text, and the script for Slurm is one: give the file "
            .. "another name", core.error.printable(word))
    end
    return word:find "^[%w%-_./:=,+@%%]+$" and word or "'" .. word:gsub("'", "'\\''") .. "'"
end

-- A value as sbatch takes it from a line of the script.
local function asked_text(value)
    return value:find "^[^%s\"'\\#]*$" and value or '"' .. value:gsub('["\\]', "\\%0") .. '"'
end

--- The words of a command line with --slurm, and those behind its "--"; without --slurm all of
-- them, and none.
function batch_script.divided(words)
    local slurm = false
    for at, word in ipairs(words) do
        slurm = slurm or word == "--slurm"
        if word == "--" then
            return slurm and table.move(words, 1, at - 1, 1, {}) or words,
                slurm and table.move(words, at + 1, #words, 1, {}) or {}
        end
    end
    return words, {}
end

-- The options in a list of words: {name, value (nil: none)} each. `where`: of messages.
local function options_of(words, where)
    local list, at = {}, 1
    while at <= #words do
        local word = words[at]
        local name, value = word:match "^%-%-([%w-]+)=(.*)$"
        name = name or word:match "^%-%-([%w-]+)$"
        local letter, rest = word:match "^%-(%a)(.*)$"
        if not name and not (letter and LONG[letter]) then
            cli.wrong("'%s' %s is no option of sbatch: give options by their names, such as "
                .. "--partition=gpu", word, where)
        elseif not name then
            name, value = LONG[letter], rest ~= "" and rest or nil
        end
        local following = words[at + 1]
        if not value and following and not following:find "^%-." then
            value, at = following, at + 1
        end
        if SHARED[name] then
            cli.wrong("--%s %s is what %s says: leave it out", name, where, SHARED[name])
        elseif name == "array" and not (value or ""):find(LIMIT) then
            cli.wrong("--array %s is what --part or the list of scans says: leave it out, or say "
                .. "how many tasks work at a time, as in --array=%%4", where)
        end
        list[#list + 1] = {name = name, value = value}
        at = at + 1
    end
    return list
end

-- The words of a line of sbatch's, which may have quotes.
local function words_in(line)
    local words, word, quote, at = {}, nil, nil, 1
    while at <= #line do
        local char = line:sub(at, at)
        if char == "\\" then
            at = at + 1
            word = (word or "") .. line:sub(at, at)
        elseif quote and char == quote then
            quote = nil
        elseif not quote and (char == '"' or char == "'") then
            quote, word = char, word or ""
        elseif not quote and char:find "%s" then
            words[#words + 1], word = word, nil
        elseif not quote and char == "#" then
            break
        else
            word = (word or "") .. char
        end
        at = at + 1
    end
    words[#words + 1] = word
    return words
end

-- The words of lines that begin with "#SBATCH", and the other lines.
local function asked_words(lines)
    local words, others = {}, {}
    for line in lines do
        local asked = line:match "^#SBATCH%s+(.*)$"
        if asked then
            append(words, words_in(asked))
        elseif not line:find "^#!" then
            others[#others + 1] = line
        end
    end
    return words, others
end

-- The site's file: its options, and its other lines.
local function site()
    local path = os.getenv "MOONBEAM_SLURM"
    if not path or path == "" then
        return {}, {}
    end
    local file <close>, problem = input_file.open(path)
    if not file then
        cli.wrong("the environment variable MOONBEAM_SLURM names the site's lines for scripts: %s",
            problem)
    end
    local words, lines = asked_words(file:lines())
    return options_of(words, "in " .. path), lines
end

--- What a script asks for that text() has made: a table of values by the names of the options, and
-- its last line, the command.
function batch_script.asked_in(text)
    local asked = {}
    local words, lines = asked_words(text:gmatch "[^\n]+")
    for _, word in ipairs(words) do
        local name, value = word:match "^%-%-([%w-]+)=(.*)$"
        asked[name] = value
    end
    return asked, lines[#lines]
end

-- The folder of the command line by the name that the user knows it by: links in it stay.
local function working_folder()
    local named, real = os.getenv "PWD", core.system.cwd()
    local own, facts = named and core.system.stat(named), core.system.stat(real)
    return own and facts and own.device == facts.device and own.inode == facts.inode
        and named:find "^/" and named or real
end

-- The name by which the program was called: a path is made absolute, what the shell has found in
-- PATH stays a name.
local function program_name()
    local first = -1
    while arg and arg[first - 1] do
        first = first - 1
    end
    local name = arg and arg[first] or "moonbeam"
    if not name:find "/" then
        return name
    end
    return name:find "^/" and name or working_folder() .. "/" .. name:gsub("^%./", "")
end

--- --device and --budget of moonbeam, which stand before the name of the command: a list of
-- words, --NAME=VALUE each.
function batch_script.before_command()
    local words, first = {}, -1
    while arg and arg[first - 1] do
        first = first - 1
    end
    for at = first + 1, -1 do
        local name, value = arg[at]:match "^(%-%-%l+)=?(.*)$"
        if name == "--device" or name == "--budget" then
            words[#words + 1] = name .. "=" .. (arg[at]:find "=" and value or arg[at + 1])
        end
    end
    return words
end

-- ---- the script ----

-- MiB of a size as sbatch takes it; nil for another form.
local function megabytes_of(text)
    local number, unit = (text or ""):match "^(%d+)([KMGTkmgt]?)[Bb]?$"
    local factor = {K = 1 / 1024, M = 1, G = 1024, T = 1 << 20, [""] = 1}
    return number and tonumber(number) * factor[unit:upper()]
end

-- Options that hold for each job of a user.
local OF_USER <const> = {"account", "partition", "qos", "reservation"}

-- The name of the program in scripts.
local function program_text(given)
    return given.program and given.program.value or batch_script.quoted(program_name())
end

-- The command that submits what is done after an array: {megabytes, words}.
local function after_text(after, given, folder)
    local list = {"sbatch", "--dependency=afterany:NUMBER", "--ntasks=1", ("--mem=%dM"):format(
        after.megabytes), "--chdir=" .. batch_script.quoted(folder)}
    for _, name in ipairs(OF_USER) do
        list[#list + 1] = given[name] and given[name].value
            and ("--%s=%s"):format(name, batch_script.quoted(given[name].value)) or nil
    end
    local prefix = given.prefix and given.prefix.value .. " " or ""
    list[#list + 1] = "--wrap=" .. batch_script.quoted(prefix .. program_text(given) .. " "
        .. after.words)
    return table.concat(list, " ")
end

--- The text of a script. `asked` has what the plan asks for: nodes, ranks, per_node, processors (of
-- a rank), megabytes (of a node), gpus (of a node), scratch (bytes of the node's own disk), minutes
-- (nil: not known), array (of so many tasks), after (what follows the array: {megabytes, words}),
-- lines (of the shell, before the command); and launched, is it for srun? `words`: those behind the
-- program's name, as the shell takes them. `typed`: the words behind "--".
function batch_script.text(asked, words, typed)
    local options, lines = site()
    local given = {}
    append(options, options_of(typed or {}, "behind --"))
    for _, option in ipairs(options) do
        given[option.name] = option -- the last one
    end
    local folder, list, body = working_folder(), {"#!/bin/sh"}, {}
    local again = words:find("--resume auto", 1, true)
    local function ask(name, value)
        if value and not given[name] then
            list[#list + 1] = ("#SBATCH --%s=%s"):format(name, asked_text(tostring(value)))
        end
    end
    local own = given.mem and megabytes_of(given.mem.value)
    if own and own > 0 and own < asked.megabytes then
        cli.wrong("--mem=%s is less than what the plan takes, %dM: give at least that, or less to "
            .. "do at once (--budget)", given.mem.value, asked.megabytes)
    end
    local limit = given.array
    if limit and not asked.array then
        cli.wrong("--array=%s says how many tasks of an array work at a time, and this is none: "
            .. "give --part, or leave it out", limit.value)
    end
    given.array = nil
    ask("array", asked.array and "1-" .. asked.array .. (limit and limit.value or ""))
    ask("nodes", asked.nodes)
    ask("ntasks", asked.ranks)
    ask("ntasks-per-node", asked.ranks > 1 and asked.per_node)
    ask("cpus-per-task", asked.processors)
    ask("mem", asked.megabytes .. "M")
    ask("gres", asked.gpus > 0 and "gpu:" .. asked.gpus)
    ask("tmp", asked.scratch > 0 and math.ceil(asked.scratch / (1 << 20)) .. "M")
    local minutes = asked.minutes
    ask("time", minutes and ("%d:%02d:00"):format(minutes // 60, minutes % 60))
    if folder:find "\n" then
        body[1] = "cd " .. batch_script.quoted(folder) .. " || exit"
    else
        ask("chdir", folder)
    end
    for _, option in ipairs(options) do
        if OURS[option.name] == nil and given[option.name] == option then
            list[#list + 1] = ("#SBATCH --%s%s"):format(option.name, option.value
                and "=" .. asked_text(option.value) or "")
        end
    end
    if not (minutes or given.time) then
        list[#list + 1] = "# no --time: how fast the processors of a host are is not known; sbatch "
            .. "--time=H:MM:SS gives one"
    end
    if again then
        list[#list + 1] = "# Submitted again, it goes on where it was ended (scancel, a limit, a "
            .. "node)."
    end
    if asked.after and not body[1] then
        list[#list + 1] = "# When all tasks have ended, one job makes the whole, or names what is "
            .. "missing; NUMBER is what sbatch has printed:"
        list[#list + 1] = "# " .. after_text(asked.after, given, folder)
    end
    append(list, lines)
    append(list, body)
    append(list, asked.lines or {})
    list[#list + 1] = "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"
    local function said(name)
        return given[name] and given[name].value or OURS[name]
    end
    -- srun takes no --cpus-per-task from the lines above; a rank that dies ends all of them.
    list[#list + 1] = table.concat({"exec", asked.launched and ("srun --mpi=%s "
        .. "--kill-on-bad-exit=1 --cpus-per-task=$SLURM_CPUS_PER_TASK"):format(said "mpi")
        or nil}, " ") .. " " .. (said "prefix" ~= "" and said "prefix" .. " " or "")
        .. program_text(given) .. " " .. words
    return table.concat(list, "\n")
end

return batch_script
