-- What a program tells its user, for a file too (--log FILE), and the form of its progress
-- (--progress FORM). Both are of the whole program: queues run one job in one process.

local core = require "moonbeam.core"

local log = {}

--- How progress is shown: "bar", "line", "json" or "none"; nil: as it suits the standard error.
log.progress = nil

local file

-- Every line with the time; several processes may append to one file.
local function write_lines(text)
    local now = os.date "!%Y-%m-%dT%H:%M:%S+00:00"
    local lines = {}
    for line in (core.error.printable(text, true) .. "\n"):gmatch "([^\n]*)\n" do
        lines[#lines + 1] = ("%s %s\n"):format(now, line)
    end
    file:write(table.concat(lines))
    file:flush()
end

--- Appends what is told from now on to a file. Returns true, or nil and why not.
function log.open(path)
    local opened, problem = io.open(path, "a")
    if not opened then
        return nil, problem
    end
    log.close()
    file = opened
    log.at_exit = setmetatable({}, {__gc = log.close}) -- the last words of a program that ends
    return true
end

--- Writes a text to the log, where there is one.
function log.write(text)
    if file then
        write_lines(text)
    end
end

--- Closes the log. Any number of times.
function log.close()
    if file then
        write_lines "end of the program"
        file:close()
        file = nil
    end
end

return log
