-- Files of text, and heads of files, that are read.

local core = require "moonbeam.core"

local input_file = {}

--- Does a name mean a pipe that a shell has opened, as of <(COMMAND)? Somebody writes it.
function input_file.is_piped(path)
    return (path:find "^/dev/fd/%d+$" or path:find "^/proc/%w+/fd/%d+$") ~= nil
end

--- Opens a file for reading and notes it as an input, which nothing overwrites
-- (runtime/files/inputs). Returns the file, or nil and the reason: a device, or a
-- pipe that nobody may write, is none, as it could keep the program waiting and have no end.
function input_file.open(path)
    local facts = core.system.stat(path)
    if facts and facts.kind ~= "file" and not input_file.is_piped(path) then
        return nil, ("'%s' is not an ordinary file"):format(path)
    end
    local file, problem = io.open(path, "rb")
    if file then
        core.target.reads(path)
    end
    return file, problem
end

return input_file
