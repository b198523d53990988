-- Files of text that are written.

local core = require "moonbeam.core"

local text_file = {}

--- Writes a text to a file that gets its name when it is complete (runtime/files/target.h).
function text_file.write(path, text, overwrite)
    local file <close> = core.rawfile.create(path, overwrite or false)
    file:put(0, text)
    file:finish()
end

return text_file
