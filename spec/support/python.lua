-- Other programs' readers for what we write: Python code over a file, with modules that may be
-- missing (scripts/setup --oracles).

local files = require "spec.support.files"
local oracle = require "spec.support.oracle"

local python = {}

--- What Python code prints; the spec is skipped unless Python has the modules, a list.
function python.prints(modules, code)
    for _, module in ipairs(modules) do
        oracle.needs(module)
    end
    local folder = files.folder()
    files.write(folder .. "/code.py", code)
    local text, ok = files.run(("%s %s '%s/code.py'"):format(oracle.ENVIRONMENT,
        os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python", folder))
    files.remove(folder)
    assert(ok, text)
    return text
end

return python
