-- Files of text, and heads of files, that are read.

local core = require "moonbeam.core"

local input_file = {}

--- Opens a file for reading and notes it as an input, which nothing overwrites
-- (runtime/files/inputs). Returns the file, or nil and the reason: a pipe or a device is none, as
-- it could keep the program waiting and have no end.
function input_file.open(path)
    local facts = core.system.stat(path)
    if facts and facts.kind ~= "file" then
        return nil, ("'%s' is not an ordinary file"):format(path)
    end
    local file, problem = io.open(path, "rb")
    if file then
        core.target.reads(path)
    end
    return file, problem
end

return input_file
