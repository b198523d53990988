--- Reconstructs several scans one after the other, each in a process of its own: a scan that fails
-- costs no other. One summary, one exit status.

local batch_script = require "moonbeam.internal.command_line.batch_script"
local scan_array = require "moonbeam.internal.command_line.scan_array"
local core = require "moonbeam.core"
local cli = require "moonbeam.internal.cli"
local mb = require "moonbeam"
local ranges = require "moonbeam.scan.series.ranges"

local VALUED <const> = {["--into"] = true, ["--format"] = true}

-- The words of the command line: options of this program, scans, and what comes after "--".
local function divided(words)
    local own, scans, passed, at = {}, {}, {}, 1
    while at <= #words and words[at] ~= "--" do
        local word = words[at]
        if not word:find "^%-." then
            scans[#scans + 1] = word
        else
            own[#own + 1] = word
            if VALUED[word] or word == "--resume" and words[at + 1] == "auto" then
                at = at + 1
                own[#own + 1] = words[at]
            end
        end
        at = at + 1
    end
    table.move(words, at + 1, #words, 1, passed)
    return own, scans, passed
end

local own, scans, passed = divided(arg)
local sbatch = {}
for _, word in ipairs(own) do
    if word == "--slurm" then
        passed, sbatch = scan_array.divided(passed)
    end
end

-- What other programs, and reconstruct, call options of this one.
local MEANT <const> = {o = "--into FOLDER", output = "--into FOLDER",
    ["output-dir"] = "--into FOLDER", ["out-dir"] = "--into FOLDER", outdir = "--into FOLDER",
    ["output-folder"] = "--into FOLDER", ["skip-existing"] = "--skip-done",
    continue = "--skip-done", plan = "reconstruct --plan of one scan",
    ["dry-run"] = "reconstruct --plan of one scan"}

local options = cli.parse(own, {
    usage = "batch SCAN... [options] [-- OPTIONS OF reconstruct [-- OPTIONS OF sbatch]]",
    summary = "Reconstructs several scans, one after the other, with the same options.",
    {"into", value = "FOLDER", doc = "write FOLDER/NAME.h5 for the scan NAME.h5 (default: "
        .. "NAME-volume.h5 beside the scan)"},
    {"format", value = "EXTENSION", type = cli.choice("h5", "tif", "ome.tif", "zarr"),
        default = "h5", doc = "what results are: HDF5, TIFF stacks or OME-Zarr"},
    {"skip-done", doc = "leave scans alone that have a result, and go on with those that were "
        .. "interrupted"},
    {"resume", words = {"auto"}, doc = "auto: the same; several processes may work on one list"},
    {"stop", doc = "stop at the first scan that fails"},
    {"slurm", doc = "print a Slurm script instead: an array with a task for each scan, with the "
        .. "memory of the one that takes most; options of sbatch stand behind a second --"},
    suggest = function(word, exact)
        return MEANT[word] or not exact
            and ("-- --%s (options of reconstruct stand behind --)"):format(word) or nil
    end,
    notes = "Everything after -- goes to 'moonbeam reconstruct': moonbeam batch scans/*.h5 --into "
        .. "volumes --skip-done -- --recipe fossil.lua --device all\n"
        .. "Exit status: 0 all scans have results, 1 some failed, 2 wrong use, 130 interrupted.",
})

if mb.device.dry() then
    cli.wrong("each scan has a process of its own, which --plan does not see: plan one scan with "
        .. "reconstruct")
elseif #scans == 0 then
    cli.wrong("SCAN is missing: give one scan or more")
end
if options.resume == true then
    cli.wrong("--resume goes on with one scan: give --resume auto or --skip-done")
end
if options.slurm and options.stop then
    cli.wrong("--stop is for scans one after the other, and the tasks of an array do not wait: "
        .. "leave it out")
end
options.skip_done = options.skip_done or options.resume
local replaces = false
for _, word in ipairs(passed) do
    local name = word:match "^[^=]+"
    if name == "--slurm" or options.slurm and name == "--part" then
        cli.wrong(name == "--slurm" and "--slurm stands before --: it is an option of batch"
            or "--part cannot be used here: each scan is a task; plan one scan with reconstruct")
    elseif name == "-o" or name == "--output" or name == "--resume" or name == "--plan" then
        cli.wrong("%s cannot be used here: %s", name, (name == "-o" or name == "--output")
            and "--into and --format say where results go" or name == "--resume"
            and "--skip-done goes on with interrupted scans" or "plan one scan with reconstruct")
    end
    replaces = replaces or name == "--overwrite"
end
if options.skip_done and replaces then
    cli.wrong("--skip-done keeps the results that --overwrite replaces: give one of them")
end

-- The result of a scan.
local function result_of(scan)
    local stem = ranges.parts(scan):gsub("/+$", ""):gsub("%.[^./]*$", "")
    if options.into then
        return ("%s/%s.%s"):format(options.into:gsub("/+$", ""), stem:match "[^/]*$",
            options.format)
    end
    return ("%s-volume.%s"):format(stem, options.format)
end

-- What is wrong is said of all scans, before the first one is reconstructed.
local function check()
    local taken, existing = {}, {}
    if options.into then
        local facts = core.system.stat(options.into)
        if not facts or facts.kind ~= "folder" then
            cli.wrong("--into: there is no folder '%s'; make it first", options.into)
        end
    end
    for _, scan in ipairs(scans) do
        local name = result_of(scan)
        if not core.system.stat((ranges.parts(scan))) then
            cli.wrong("there is no scan '%s'", scan)
        elseif taken[name] then
            cli.wrong("'%s' and '%s' would have the same result, '%s'", taken[name], scan, name)
        end
        taken[name] = scan
        existing[#existing + 1] = core.system.stat(name) and name
    end
    if #existing > 0 and not (options.skip_done or options.slurm or replaces) then
        cli.wrong("%d of %d results exist, such as '%s': give --skip-done, or -- --overwrite",
            #existing, #scans, existing[1])
    end
end

local BEFORE <const> = batch_script.before_command()

-- The command that reconstructs a scan, for a shell. `more`: words at its end.
local function command_of(scan, name, more)
    local words = {core.system.program()}
    for _, list in ipairs {BEFORE, {"reconstruct", scan, "-o", name}, passed, more} do
        table.move(list, 1, #list, #words + 1, words)
    end
    for i, word in ipairs(words) do
        words[i] = "'" .. word:gsub("'", "'\\''") .. "'"
    end
    return table.concat(words, " ")
end

-- Reconstructs a scan: returns "done", "failed" or "interrupted", and the exit status.
local function reconstruct(scan, name)
    io.stdout:flush()
    local ok, how, status = os.execute(command_of(scan, name, options.skip_done
        and {"--resume", "auto"} or {}))
    if ok then
        return "done", 0
    end
    return (how == "signal" or status >= 128) and "interrupted" or "failed", status
end

-- Does another process work on a scan? Or has it been finished, where a process has failed for it?
local function elsewhere(name, failed)
    if not core.unfinished.exists(name) then
        return failed and core.system.stat(name) ~= nil
    end
    local ok, run = pcall(core.unfinished.resume, name)
    if ok then
        run:close()
    end
    return not ok and tostring(run):find("at work on", 1, true) ~= nil
end

-- After a failure: another process may begin or end just now, and looking takes the lock for a
-- moment.
local function soon_elsewhere(name)
    local others = elsewhere(name, true)
    for _ = 1, 20 do
        if others or not core.system.stat(name .. ".unfinished") then
            break
        end
        core.system.sleep(0.1)
        others = elsewhere(name, true)
    end
    return others
end

check()
if options.slurm then
    local tasks = {}
    for i, scan in ipairs(scans) do
        tasks[i] = {scan = scan, result = result_of(scan)}
        tasks[i].command = command_of(scan, tasks[i].result, {"--plan", "--slurm"})
    end
    cli.print(scan_array.script(tasks, sbatch))
    return
end
local lines, counts, stopped = {}, {done = 0, skipped = 0, failed = 0, interrupted = 0}, false
for i, scan in ipairs(scans) do
    local name = result_of(scan)
    local what, status, began = "skipped", 0, mb.system.clock()
    local others = options.skip_done and elsewhere(name)
    if not others and not (options.skip_done and core.system.stat(name)) then
        cli.print(("scan       %d of %d: %s"):format(i, #scans, core.error.printable(scan)))
        what, status = reconstruct(scan, name)
        others = what == "failed" and options.skip_done and soon_elsewhere(name)
        what = others and "skipped" or what
    end
    counts[what] = counts[what] + 1
    lines[i] = ("%-11s %s -> %s%s"):format(what, core.error.printable(scan),
        core.error.printable(name),
        others and " (another process works on it)" or what == "skipped" and " (there already)"
        or what == "done"
        and (", %.1f s"):format(mb.system.clock() - began) or (" (exit status %d)"):format(status))
    if what == "interrupted" or what == "failed" and options.stop then
        stopped = true
        break
    end
end

cli.print(table.concat(lines, "\n"))
local left = #scans - #lines
cli.print(("scans      %d done, %d skipped, %d failed%s%s of %d"):format(counts.done,
    counts.skipped, counts.failed, counts.interrupted > 0 and ", 1 interrupted" or "",
    left > 0 and (", %d not begun"):format(left) or "", #scans))
if stopped or counts.failed > 0 then
    cli.tell("go on with the others: the same command with --skip-done")
end
os.exit(counts.interrupted > 0 and 130 or counts.failed > 0 and 1 or 0, true)
