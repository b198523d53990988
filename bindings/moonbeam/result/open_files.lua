-- Files of a result that are open, by their paths: a result may have more files than a process may
-- have open, so that the one which nobody has used for the longest time is closed for another.
--
-- What a carrier has queued goes on: a file that is closed stays open for it, and one of very many
-- (`brief`) is opened by the threads that write it.

local core = require "moonbeam.core"

local open_files = {}
local methods = {}
local metatable = {__index = methods}

--- How many files of a result are open at most. Specs change it. A level of a pyramid is made from
-- two files into a third.
open_files.limits = {most = 64}

-- Other files that a process has open, and a share of what is left for each of its results.
local OTHERS <const>, SHARE <const> = 64, 4

--- No file is open. `brief`: the files are very many (runtime/files/rawfile.h).
function open_files.new(brief)
    local system = ((core.system.file_limit() or 1024) - OTHERS) // SHARE
    return setmetatable({brief = brief or false, list = {}, count = 0, turn = 0,
        most = math.max(4, math.min(open_files.limits.most, system))}, metatable)
end

local function close_one(self)
    local oldest
    for path, each in pairs(self.list) do
        oldest = (not oldest or each.turn < self.list[oldest].turn) and path or oldest
    end
    self:close(oldest)
end

--- The file of this name, open; new unless it is there. Two more may be asked for before its use.
function methods:file(path, shared)
    local own = self.list[path]
    if not own then
        if self.count >= self.most then
            close_one(self)
        end
        own = {file = core.rawfile.keep(path, shared or false, self.brief)}
        self.list[path], self.count = own, self.count + 1
    end
    self.turn = self.turn + 1
    own.turn = self.turn
    return own.file
end

--- Closes a file, or all of them.
function methods:close(path)
    for name, each in pairs(self.list) do
        if not path or name == path then
            self.list[name], self.count = nil, self.count - 1
            each.file:close()
        end
    end
end

return open_files
