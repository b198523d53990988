-- What the specs of files share: folders of their own, other programs, full disks.

local core = require "moonbeam.core"
local mb = require "moonbeam"

local files = {}

-- A fresh folder; remove it with files.remove.
function files.folder()
    local name = os.tmpname()
    os.remove(name)
    assert(mb.system.mkdir(name))
    return name
end

function files.remove(folder)
    assert(folder:match("^/.+/"), folder)
    os.execute(("rm -rf '%s'"):format(folder))
end

-- The names in a folder, sorted.
function files.list(folder)
    local names = {}
    local pipe = assert(io.popen(("ls -A '%s'"):format(folder)))
    for name in pipe:lines() do
        names[#names + 1] = name
    end
    pipe:close()
    table.sort(names)
    return names
end

function files.write(name, bytes)
    local file = assert(io.open(name, "wb"))
    assert(file:write(bytes))
    assert(file:close())
end

function files.read(name)
    local file = assert(io.open(name, "rb"))
    local bytes = file:read "a"
    file:close()
    return bytes
end

-- How many files this process has open: no pipes, for one leads to who counts them, nothing that is
-- garbage, and nothing that a thread has open for a moment only.
function files.open_descriptors()
    collectgarbage()
    collectgarbage()
    local least = math.huge
    for _ = 1, 4 do
        local count = ("ls -l /proc/%d/fd | grep -cv pipe:"):format(core.system.pid())
        least = math.min(least, tonumber((files.run(count))))
        core.system.sleep(0.002)
    end
    return least
end

-- A Python that has the module, or nil. The one in the path need not be Debian's.
function files.python(module)
    for _, name in ipairs { "python3", "/usr/bin/python3" } do
        if os.execute(("%s -c 'import %s' >/dev/null 2>&1"):format(name, module)) then
            return name
        end
    end
    return nil
end

-- Runs a command; returns its output (both streams) and whether it succeeded.
function files.run(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read "a"
    local ok, _, status = pipe:close()
    return output, ok == true, status
end

-- Runs Lua text in a new moonbeam, with variables "NAME=VALUE ..." in its environment.
function files.run_script(folder, text, variables)
    local name = folder .. "/script.lua"
    files.write(name, text)
    return files.run(("%s '%s' '%s'"):format(variables or "", os.getenv "MOONBEAM_BIN"
        or mb.system.program(), name))
end

-- Runs FOLDER/script.lua in a new moonbeam and kills it after so many seconds. It is dead then:
-- without --foreground, timeout kills itself as well and does not wait.
function files.run_killed(folder, seconds)
    files.run(("timeout --foreground -s KILL %.3f '%s' '%s/script.lua'"):format(seconds,
        os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
end

-- Mounts a small file system on a new folder in `folder`, or returns nil where that is not allowed.
function files.small_disk(folder, size)
    local name = folder .. "/small"
    assert(mb.system.mkdir(name))
    if os.execute(("mount -t tmpfs -o size=%s none '%s' 2>/dev/null"):format(size, name)) then
        return name
    end
    return nil
end

function files.unmount(name)
    os.execute(("umount '%s' 2>/dev/null"):format(name))
end

-- A file of ../shared/data or of the folder that MOONBEAM_DATA names, or nil.
function files.data(name)
    local folders = { os.getenv "MOONBEAM_DATA" or "../shared/data" }
    for _, folder in ipairs(folders) do
        if mb.system.stat(folder .. "/" .. name) then
            return folder .. "/" .. name
        end
    end
    return nil
end

return files
