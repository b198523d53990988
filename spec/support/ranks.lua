-- Programs that mpirun starts several times.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local ranks = {}

-- What containers and small machines need. Without `mtl` MPI looks for networks of other machines,
-- which takes 0.2 s of each start. Where a rank has died, or ends all, mpirun kills the others at
-- once; by default (ranks.PATIENT) it sends SIGTERM after a second, and kills them after another.
local ENVIRONMENT <const> = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
    .. "OMPI_MCA_mtl=^psm,psm2,ofi OMPI_MCA_odls_base_sigkill_timeout=0 "
    .. "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "
    .. "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none"

-- Why nothing can be started here; nil if it can.
local function problem()
    local _, found = files.run "command -v mpirun"
    if not found then
        return "mpirun is not here"
    elseif not mb.system.stat(os.getenv "MOONBEAM_MPI_PLUGIN"
        or helper.program:match "^(.*)/" .. "/moonbeam_mpi.so") then
        return "the plug-in for MPI was not built"
    end
end
ranks.problem = problem()

--- `it` for what needs mpirun: skipped, and shown as skipped, where it cannot be started.
function ranks.it(name, f)
    helper.busted.it(name, ranks.problem and function()
        helper.skip(ranks.problem)
    end or f)
end

--- What makes mpirun as patient as users have it, for `before`.
ranks.PATIENT = "OMPI_MCA_odls_base_sigkill_timeout=1"

--- The command line that starts the program so many times. `before`: words before mpirun. After
-- `most` seconds (100) it is ended.
function ranks.command(count, arguments, before, most)
    return ("%s %s timeout -k 5 %d mpirun -n %d '%s' %s"):format(ENVIRONMENT, before or "",
        most or 100, count, helper.program, arguments)
end

--- Runs a script, given as text, in so many ranks: its output, and the exit status. `before`: as of
-- ranks.command.
function ranks.run(folder, count, text, before)
    local name = folder .. "/ranks.lua"
    files.write(name, text)
    local output, _, status = files.run(ranks.command(count, name, before))
    return output, status
end

--- The same with several scripts at the same time: a list of {output, status}. For what waits most
-- of the time.
function ranks.run_all(folder, count, texts, before)
    local pipes, results = {}, {}
    for i, text in ipairs(texts) do
        local name = ("%s/ranks-%d.lua"):format(folder, i)
        files.write(name, text)
        pipes[i] = assert(io.popen(ranks.command(count, name, before) .. " 2>&1"))
    end
    for i, pipe in ipairs(pipes) do
        local output = pipe:read "a"
        local _, _, status = pipe:close()
        results[i] = {output, status}
    end
    return results
end

-- ---- scripts one after the other in the same ranks ----

-- What these ranks do: each file NAME.next that comes is a script. All ranks print a mark when they
-- have come to its end, and nothing may be live then. They end with NAME.end, and where the process
-- that has started them is gone.
local SERVE <const> = [[
local mb = require "moonbeam"
local cluster, system = mb.cluster, mb.system
local function next_text()
    while system.stat "/proc/PID" and not system.stat "NAME.end" do
        local file <close> = io.open "NAME.next"
        if file then
            os.remove "NAME.next"
            return file:read "a"
        end
        system.sleep(0.004)
    end
end
while true do
    local text = cluster.once(next_text)
    if not text then
        return
    end
    assert(load(text, "@script", "t", setmetatable({}, {__index = _G})))()
    collectgarbage()
    mb.collect()
    assert(mb.pool.stats("host").live == 0, "bytes are live after a script")
    io.write("\1")
    io.flush()
end
]]

local sessions = {}
sessions.__index = sessions

--- Ranks of this folder that run scripts one after the other: session:run(count, text) is as
-- ranks.run for scripts that do not end the program, lose a device, or change a module. A script
-- that fails ends its ranks, and the next one has new ones.
function ranks.session(folder)
    return setmetatable({folder = folder, open = {}}, sessions)
end

-- Ranks that wait for scripts.
local function start(session, count)
    local name = ("%s/serve-%d"):format(session.folder, count)
    os.remove(name .. ".next")
    os.remove(name .. ".end")
    files.write(name .. ".lua", (SERVE:gsub("NAME", name):gsub("PID", mb.system.pid())))
    return {name = name, output = assert(io.popen(ranks.command(count, name .. ".lua", nil, 1000)
        .. " 2>&1"))}
end

-- The output until all ranks have printed the mark; nil, the output and the status if they ended.
local function read(own, count)
    local text = {}
    while count > 0 do
        local byte = own.output:read(1)
        if not byte then
            local _, _, status = own.output:close()
            return nil, table.concat(text), status
        elseif byte == "\1" then
            count = count - 1
        else
            text[#text + 1] = byte
        end
    end
    return table.concat(text)
end

function sessions:run(count, text)
    local own = self.open[count] or start(self, count)
    self.open[count] = own
    files.write(own.name .. ".text", text)
    assert(os.rename(own.name .. ".text", own.name .. ".next"))
    local output, rest, status = read(own, count)
    if output then
        return output, 0
    end
    self.open[count] = nil
    return rest, status
end

--- Ends the ranks. An error if they end with another status than 0.
function sessions:close()
    for count, own in pairs(self.open) do
        self.open[count] = nil
        files.write(own.name .. ".end", "")
        local output = own.output:read "a"
        assert(own.output:close(), output)
    end
end

return ranks
