-- Results of other packages to compare with: SciPy, scikit-image, PyWavelets, algotom, ASTRA. They
-- are in build/oracles, where `scripts/setup --oracles` puts them, or in the Python that
-- MOONBEAM_ORACLES names. Specs that need them are skipped where they are missing.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local oracle = {}

local found = {} -- by module: a Python, or false

local function python_with(module)
    if found[module] == nil then
        found[module] = false
        for _, name in ipairs {os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python"} do
            if os.execute(("%s -c 'import %s' >/dev/null 2>&1"):format(name, module)) then
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
    local text, ok = files.run(("NUMBA_CACHE_DIR='%s/numba' %s '%s/oracle.py'"):format(
        os.getenv "TMPDIR" or "/tmp", assert(python_with(module)), folder))
    assert(ok, text)
    local results = {}
    for i, name in ipairs(outputs) do
        results[i] = mb.npy.read(("%s/out_%s.npy"):format(folder, name))
    end
    files.remove(folder)
    return table.unpack(results)
end

return oracle
