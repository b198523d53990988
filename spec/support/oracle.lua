-- Results of other packages to compare with: SciPy, scikit-image, PyWavelets, algotom, ASTRA. They
-- are in build/oracles, where `scripts/setup --oracles` puts them, or in the Python that
-- MOONBEAM_ORACLES names. Specs that need them are skipped where they are missing.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local oracle = {}

local found = {} -- by module: a Python, or false

-- Whether there is a module; it is not imported, which takes a second of some.
local FINDS <const> = "%s -c 'import importlib.util, sys; "
    .. "sys.exit(not importlib.util.find_spec(\"%s\"))'"

--- What Python has in its environment: small arrays need no threads, which wait for each other
-- without sleeping.
oracle.ENVIRONMENT = "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1"

local function python_with(module)
    if found[module] == nil then
        found[module] = false
        for _, name in ipairs {os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python"} do
            if os.execute((FINDS .. " >/dev/null 2>&1"):format(name, module)) then
                found[module] = name
            end
        end
    end
    return found[module]
end

-- Skips the spec unless Python has the module ("scipy", "skimage", "pywt", "algotom", "astra").
function oracle.needs(module)
    if not python_with(module) then
        helper.skip(("Python has no %s (scripts/setup --oracles)"):format(module))
    end
end

-- What the Python of a spec file does, whose imports are made once: it runs the code in each file
-- that it is told of, and answers with a line or with a traceback, on a pipe that has a name.
local SERVER <const> = [[
import sys, traceback
for line in sys.stdin:
    path, answer = line.rstrip("\n").split("\t")
    said = "done\n"
    try:
        exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
    except BaseException:
        said = traceback.format_exc()
    with open(answer, "w") as pipe:
        pipe.write(said)
sys.exit(77) # nobody asks any more
]]

local servers = {} -- by Python: {input, folder}

-- A Python that ends with this process, or before, which it says.
local function server_of(name)
    if not servers[name] then
        local folder = files.folder()
        files.write(folder .. "/server.py", SERVER)
        assert(os.execute(("mkfifo '%s/answer'"):format(folder)))
        local input = assert(io.popen(("%s NUMBA_CACHE_DIR='%s/numba' %s '%s/server.py' "
            .. ">'%s/output' 2>&1; test $? = 77 || cat '%s/output' >'%s/answer'; rm -rf '%s'")
            :format(oracle.ENVIRONMENT, os.getenv "TMPDIR" or "/tmp", name, folder, folder, folder,
            folder, folder), "w"))
        servers[name] = {input = input, folder = folder}
    end
    return servers[name]
end

-- Runs a file of Python code; returns nil, or what went wrong.
local function answer(name, path)
    local server = server_of(name)
    server.input:write(path, "\t", server.folder, "/answer\n")
    server.input:flush()
    local pipe <close> = assert(io.open(server.folder .. "/answer"))
    local said = pipe:read "a"
    if said ~= "done\n" then
        servers[name] = nil -- the next one asks another
        return said .. "\nPython has failed"
    end
    return nil
end

-- Runs Python code in which `inputs` ({name = array}) are NumPy arrays, `np` is NumPy, and returns
-- the arrays that the code leaves under the names in `outputs`, as f32. The caller closes them.
function oracle.run(module, code, inputs, outputs)
    local folder = files.folder()
    local lines = {"import numpy as np"}
    for name, array in pairs(inputs) do
        mb.npy.write(("%s/%s.npy"):format(folder, name), array)
        lines[#lines + 1] = ("%s = np.load('%s/%s.npy')"):format(name, folder, name)
    end
    lines[#lines + 1] = code
    for _, name in ipairs(outputs) do
        lines[#lines + 1] = ("np.save('%s/out_%s.npy', np.ascontiguousarray(%s, np.float32))")
            :format(folder, name, name)
    end
    files.write(folder .. "/oracle.py", table.concat(lines, "\n") .. "\n")
    local problem = answer(assert(python_with(module)), folder .. "/oracle.py")
    assert(not problem, problem)
    local results = {}
    for i, name in ipairs(outputs) do
        results[i] = mb.npy.read(("%s/out_%s.npy"):format(folder, name))
    end
    files.remove(folder)
    return table.unpack(results)
end

return oracle
