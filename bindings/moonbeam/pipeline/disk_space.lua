-- Checks that the disks have room for the files that a run will write.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local disk_space = {}

local UNITS = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}

--- A number of bytes as text for people.
function disk_space.text(bytes)
    local unit = 1
    while bytes >= 1024 and unit < #UNITS do
        bytes, unit = bytes / 1024, unit + 1
    end
    return (unit == 1 and "%d %s" or "%.2f %s"):format(bytes, UNITS[unit])
end

--- The folder of a file.
function disk_space.folder_of(path)
    return path:match("^(.*)/") and (path:match("^(.+)/") or "/") or "."
end

--- Facts about the file system of a folder: {free, total, memory, device}.
function disk_space.facts(folder, op, arg)
    local space, err = core.system.space(folder)
    local facts = space and core.system.stat(folder)
    if not facts or facts.kind ~= "folder" then
        fail("io", op, arg, "%s", facts and ("'%s' is not a folder"):format(folder)
            or err.message)
    end
    space.device = facts.device
    return space
end

--- Raises an error if files do not fit on their disks. `files`: {{folder =, bytes =, what = "the
-- result 'x.h5'"}, ...}; files on the same disk are added up. A file that is replaced stays until
-- the new file is complete, so its bytes are not free.
function disk_space.check(files, op)
    local disks, list = {}, {}
    for _, file in ipairs(files) do
        local facts = disk_space.facts(file.folder, op)
        local disk = disks[facts.device]
        if not disk then
            disk = {free = facts.free, bytes = 0, names = {}, folder = file.folder}
            disks[facts.device], list[#list + 1] = disk, disk
        end
        disk.bytes = disk.bytes + file.bytes
        disk.names[#disk.names + 1] = ("%s (%s)"):format(file.what, disk_space.text(file.bytes))
    end
    for _, disk in ipairs(list) do
        if disk.bytes > disk.free then
            fail("io", op, nil, "the disk of '%s' has %s free; needed: %s for %s. Free some space, "
                .. "or write elsewhere", disk.folder, disk_space.text(disk.free),
                disk_space.text(disk.bytes), table.concat(disk.names, ", "))
        end
    end
end

return disk_space
