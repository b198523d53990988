-- Commands as a user runs them: as programs, from file to file, in a folder of their own.
--
-- `local shell = commands.folder()` in a setup, shell:remove() in its teardown.

local files = require "spec.support.files"
local mb = require "moonbeam"

local commands = {}
local methods = {}
methods.__index = methods

-- A shell with a new folder for files.
function commands.folder()
    return setmetatable({folder = files.folder()}, methods)
end

function methods:remove()
    files.remove(self.folder)
end

-- The path of a file in the folder.
function methods:path(name)
    return self.folder .. "/" .. name
end

-- Runs a script; returns its status and what it printed.
function commands.run(script, arguments)
    local handle = assert(io.popen(("'%s' scripts/%s %s 2>&1"):format(mb.system.program(), script,
        arguments)))
    local text = handle:read("a")
    local _, _, status = handle:close()
    return status, text
end

-- Runs a script that must succeed; returns what it printed.
function commands.must(script, arguments)
    local status, text = commands.run(script, arguments)
    assert(status == 0, ("%s %s ended with %s:\n%s"):format(script, arguments, status, text))
    return text
end

function commands.exists(path)
    return mb.system.stat(path) ~= nil
end

-- The volume of a result in the folder, as a table.
function methods:volume_of(name)
    local file <close> = assert(mb.h5.open(self:path(name)))
    local volume <close> = file:read("/entry/data/data")
    return volume:to_table()
end

-- Simulates the two scans that most specs use: scan.h5 and nxtomo.h5, without noise.
function methods:simulate()
    commands.must("simulate.lua", self:path("scan.h5")
        .. " --size 64 --rows 9 --angles 90 --quiet")
    commands.must("simulate.lua", self:path("nxtomo.h5")
        .. " --size 48 --rows 3 --angles 70 --format nxtomo --center 25.5 --photons 0 --quiet")
end

return commands
