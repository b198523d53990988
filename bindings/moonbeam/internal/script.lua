--- Whole scripts that are planned, recorded or checked for leaks: what `moonbeam --plan
-- script.lua`, `moonbeam --ledger script.lua` and `moonbeam --leaks script.lua` run.
--
-- A planned script runs unchanged in a dry run: it reads its arguments and the shapes in its files,
-- prints nothing and changes no file. os.exit ends the script, not the program.

local cluster = require "moonbeam.cluster"
local core = require "moonbeam.core"
local ledger = require "moonbeam.ledger"
local log = require "moonbeam.internal.log"
local tables = require "moonbeam.internal.tables"
local pool = require "moonbeam.pool"
local unknown = require "moonbeam.internal.unknown"

local script = {}

-- The most rows of a plan that are printed. The row of the peak is always printed.
local ROWS = 60

local exit_metatable = {__name = "moonbeam.exit", __tostring = function(self)
    return "exit with status " .. self.status
end}

local function exit(code)
    local status = code == nil and 0 or code == true and 0 or code == false and 1
        or math.tointeger(code) or 1
    error(setmetatable({status = status}, exit_metatable), 0)
end

local end_dry_run = setmetatable({}, {__close = core.dry.finish})

local function succeed()
    return true
end

local function nothing() end

-- Replaces fields of tables until the returned value is closed.
local function replaced(changes)
    local old = {}
    for i, change in ipairs(changes) do
        local t, name, value = table.unpack(change)
        old[i] = t[name]
        t[name] = value
    end
    return setmetatable({}, {__close = function()
        for i, change in ipairs(changes) do
            change[1][change[2]] = old[i]
        end
    end})
end

-- The library functions that a planned script must not reach.
local function quiet_changes()
    local open, file_methods = io.open, getmetatable(io.stdout).__index
    local write = file_methods.write
    return {
        {_G, "print", nothing},
        {io, "write", function() return io.stdout end},
        {io, "open", function(name, mode)
            if mode and mode:find("[wa+]") then
                name = "/dev/null"
            end
            return open(name, mode)
        end},
        {os, "remove", succeed},
        {os, "rename", succeed},
        {os, "execute", function() return true, "exit", 0 end},
        {file_methods, "write", function(file, ...)
            return file == io.stdout and file or write(file, ...)
        end},
    }
end

--- Until the returned value is closed, nothing is printed, and no file is written, removed or
-- renamed.
function script.quiet()
    return replaced(quiet_changes())
end

-- The statements and then the script (either may be missing) as functions, or nil and the error.
local function load_all(name, statements, globals)
    local chunks = {}
    for i, text in ipairs(statements or {}) do
        local chunk, problem = load(text, "=(command line)", "t", globals)
        if not chunk then
            return nil, problem
        end
        chunks[i] = chunk
    end
    if name then
        local chunk, problem = loadfile(name, "bt", globals)
        if not chunk then
            return nil, problem
        end
        chunks[#chunks + 1] = chunk
    end
    return chunks
end

-- The line of an error: a command says it in its own words and under its own name.
local function line_of(problem)
    local ok, text = pcall(log.speak or error, problem)
    return ok and text or "moonbeam: " .. tostring(problem)
end

--- The same, and nothing is written on the standard error or into the log either.
function script.silent()
    local changes = quiet_changes()
    changes[#changes] = {getmetatable(io.stdout).__index, "write", function(file) return file end}
    changes[#changes + 1] = {log, "write", nothing}
    return replaced(changes)
end

-- The calls that all ranks make together. A rehearsal is of one rank; the others are like it.
local function alone_changes()
    return {
        {cluster, "once", function(fn) return fn() end},
        {cluster, "agree", function(value) return value end},
        {cluster, "barrier", nothing},
        {cluster, "gather", function(value)
            local list = {}
            for i = 1, cluster.size do
                list[i] = value or false
            end
            return list
        end},
        {cluster, "abort", function() exit(1) end},
    }
end

--- Runs a script for how(body), which calls body() in a dry run, and says nothing, also not on the
-- standard error or in the log. Of several ranks each does so by itself. Returns its exit status; 1
-- after an error of body that `how` does not catch.
function script.rehearse(name, how)
    local chunks = load_all(name, nil, setmetatable({}, {__index = _G}))
    local status = 0
    local quiet <close> = script.silent() -- luacheck: ignore
    local _ <close> = replaced {{os, "exit", exit}, table.unpack(alone_changes())}
    core.dry.begin()
    local _ <close> = end_dry_run
    local formats <close> = unknown.formatted() -- luacheck: ignore
    local ok = pcall(how, function()
        for _, chunk in ipairs(chunks) do
            local done, err = core.system.call(chunk, table.unpack(arg))
            if not done and getmetatable(err) == exit_metatable then
                status = err.status
            elseif not done then
                error(err, 0)
            end
        end
    end)
    return ok and status or 1
end

-- Runs the script once by `how` (ledger.record or ledger._within_budget). Returns its exit status,
-- the ledger and the error. An error is printed, and there is no ledger.
local function run(name, statements, how, changes)
    local globals = setmetatable({}, {__index = _G})
    globals._G = globals
    local arguments = tables.merged(arg)
    globals.arg = arguments
    local chunks, problem = load_all(name, statements, globals)
    if not chunks then
        io.stderr:write("moonbeam: ", core.error.printable(problem, true), "\n")
        return 1
    end
    local status = 0
    local saved <const> = arg
    local function body()
        changes[#changes + 1] = {os, "exit", exit}
        changes[#changes + 1] = {_G, "arg", arguments}
        local _ <close> = replaced(changes)
        for _, chunk in ipairs(chunks) do
            local ok, err = core.system.call(chunk, table.unpack(arguments))
            if not ok and getmetatable(err) == exit_metatable then
                status = err.status
                return
            elseif not ok then
                error(err, 0)
            end
        end
    end
    local ok, made = pcall(how, body)
    rawset(_G, "arg", saved)
    if not ok then
        io.stderr:write(core.error.printable(line_of(made), true), "\n")
        return 1
    end
    return status, made
end

--- Prints the plan of the statements (a list of texts) and then the script; either may be missing.
-- Returns the exit status: the script's own, or 1 after an error.
function script.plan(name, statements)
    local status, made = run(name, statements, ledger._within_budget, quiet_changes())
    if made and (status == 0 or #made > 0) then
        print(core.error.printable(made:text {limit = ROWS}, true))
    end
    return status
end

--- Runs the script, whose words have --plan, in a dry run: for the plan of a command on a device
-- that holds no data. What it says is printed. Returns the exit status: the script's own, or 1
-- after an error.
function script.dry(name)
    local status = run(name, nil, function(body)
        core.dry.begin()
        local _ <close> = end_dry_run
        local formats <close> = unknown.formatted() -- luacheck: ignore
        body()
    end, {})
    return status
end

--- Plans the script, runs it, and prints both side by side, unless it fails. If the run has found a
-- value that the plan could only bound (the rotation axis), the script is planned again with that
-- value: the run must equal that plan and must not exceed the first one. Returns the script's exit
-- status, or 1 if they differ.
function script.ledger(name, statements)
    local seed = table.pack(math.randomseed())
    local status, predicted = run(name, statements, ledger._within_budget, quiet_changes())
    if status ~= 0 then
        return status
    end
    math.randomseed(seed[1], seed[2])
    local finds, measured
    finds, status, measured = ledger.observe(run, name, statements, ledger.record, {})
    local bound = predicted.peak
    if measured and status == 0 and #finds > 0 and predicted ~= measured then
        core.garbage.collect()
        math.randomseed(seed[1], seed[2])
        predicted = select(2, ledger.replay(finds, run, name, statements, ledger._within_budget,
            quiet_changes()))
    end
    if measured and status ~= 0 then
        io.stderr:write(("moonbeam: no comparison: the script ended with status %d, which its "
            .. "plan did not\n"):format(status))
    elseif measured then
        local text, differing = ledger.comparison(predicted, measured)
        if #finds > 0 then
            local form = "planned with what the run has found; before it, at most %d bytes\n"
            io.stdout:write(form:format(bound))
        end
        io.stdout:write(text, "\n")
        status = (differing > 0 or measured.peak > bound) and 1 or 0
    end
    return status
end

--- What rank 0 reads from the standard input, as a chunk on all ranks; or what is wrong with it.
function script.standard_input()
    local text = cluster.once(function()
        return io.read "a"
    end)
    local chunk, problem = load(text:gsub("^#[^\n]*", "", 1), "=stdin")
    return chunk or problem
end

--- After a script: returns true if arrays are still live on a device or guards were damaged, and
-- reports it on the standard error. Unreferenced arrays are collected first, so the live arrays are
-- held by globals, modules or the runtime.
function script.leaks()
    local found = false
    for _, device in ipairs(core.device.opened()) do
        local report, damage = pool.leaks(device), pool.damage(device)
        if #report > 0 then
            io.stderr:write(("moonbeam: leaks on %s: %s\n"):format(device.id, report))
        end
        if #damage > 0 then
            io.stderr:write(("moonbeam: damage on %s: %s\n"):format(device.id, damage))
        end
        found = found or #report > 0 or #damage > 0
    end
    return found
end

return script
