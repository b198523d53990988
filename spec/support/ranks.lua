-- Programs that mpirun starts several times.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local ranks = {}

-- What containers and small machines need.
local ENVIRONMENT <const> = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
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

--- The command line that starts the program so many times. `before`: words before mpirun.
function ranks.command(count, arguments, before)
    return ("%s %s timeout -k 5 100 mpirun -n %d '%s' %s"):format(before or "", ENVIRONMENT, count,
        helper.program, arguments)
end

--- Runs a script, given as text, in so many ranks: its output, and the exit status.
function ranks.run(folder, count, text)
    local name = folder .. "/ranks.lua"
    files.write(name, text)
    local output, _, status = files.run(ranks.command(count, name))
    return output, status
end

return ranks
