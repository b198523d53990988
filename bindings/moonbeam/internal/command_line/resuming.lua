--- --resume auto of commands: one command line that begins a run, goes on with it after an end of
-- any kind, and finds it finished. For scripts of batch systems, which start them again.

local core = require "moonbeam.core"
local cli = require "moonbeam.internal.cli"
local cluster = require "moonbeam.cluster"

local resuming = {}

--- The option, for a declaration. `doc`: of --resume without a word.
function resuming.option(doc)
    return {"resume", words = {"auto"}, doc = doc .. "; auto: begin it, too, and end well "
        .. "where the result is there: for batch systems, which start commands again"}
end

-- What there is of a result: "kept" (of an interrupted run), "complete", or "nothing".
local function found(path, overwrite)
    if core.unfinished.exists(path) then
        return "kept"
    end
    return not overwrite and core.system.stat(path) and "complete" or "nothing"
end

--- Makes of options.resume what --resume auto means: true, or nil where the run begins; check() is
-- called then, which looks at what is written. Where the result `path` is complete, the program
-- says so and ends, with status 0. All ranks call it. Nothing happens without the word.
function resuming.settle(options, path, check)
    if options.resume ~= "auto" then
        return
    elseif options.plan or core.dry.on() then
        options.resume = nil
        return
    end
    local what = cluster.once(function()
        return found(path, options.overwrite)
    end)
    if what == "complete" then
        if not options.quiet then
            cli.print("finished   " .. path .. " is there: nothing to do (--overwrite makes it "
                .. "again)")
        end
        os.exit(0, true)
    end
    options.auto, options.resume = true, what == "kept" or nil
    if not options.resume then
        check()
    end
end

--- Is there anything of a result, complete or kept?
function resuming.finds(path)
    return found(path) ~= "nothing"
end

--- Warns of what a job with --resume auto would find beside its results, a list of paths, before it
-- waits for its turn.
function resuming.foresee(paths, overwrite)
    local first = {}
    for _, path in ipairs(paths) do
        local what = found(path, overwrite)
        first[what] = first[what] or path
    end
    if first.complete then
        cli.warn("'%s' exists: the job finds it finished, and makes nothing; give --overwrite, or "
            .. "another name", first.complete)
    end
    if first.kept then
        cli.warn("'%s.unfinished' exists: the job goes on with it, and fails if it is of another "
            .. "run", first.kept)
    end
end

--- What an interrupted run has kept, as `text` of the library, in the words of the command: after
-- --resume auto the same command goes on.
function resuming.told(options, text)
    text = cli.spoken(text)
    return options.auto and text:gsub("go on with %-%-resume", "the same command goes on") or text
end

return resuming
