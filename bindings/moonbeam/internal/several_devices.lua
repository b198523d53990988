--- Several devices by name: "all", "cuda:0,cuda:1", "2xplanned:h200", or a list of devices and ids.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local several = {}

local OP <const> = "device.several"
local MOST <const> = 16 -- planned devices of one record

local function wrong(...)
    fail("argument", OP, "devices", ...)
end

-- "auto": the default device where one was chosen, else the first GPU, else the host. Of several
-- ranks on a machine each has the GPU of its number, modulo the GPUs there.
function several.auto()
    return core.device.chosen() and core.device.default().id
        or #core.device.list() > 1 and several.gpu() or "host" -- the first is the host
end

--- "cuda": the GPU of this rank of the machine; the first one where there is none, for the error.
function several.gpu()
    local gpus = math.max(1, #core.device.list() - 1)
    return ("cuda:%d"):format(core.cluster.place().node_rank % gpus)
end

-- The GPUs of the model of the first one.
local function all()
    local ids, models, found = core.device.list(), core.device.models(), {}
    for i = 2, #ids do -- the first is the host
        found[#found + 1] = models[i] == models[2] and ids[i] or nil
    end
    if #found == 0 then
        fail("device", OP, "devices", "\"all\" are the GPUs of this machine, and there is none "
            .. "(%s); name the host, or a GPU that can be planned for", core.device.cuda_problem())
    end
    return found
end

-- The ids that a text names.
local function split(text)
    local ids = {}
    for part in (text .. ","):gmatch "%s*(.-)%s*," do
        local count, id = part:match "^(%d+)x(.+)$"
        count = math.tointeger(count)
        if part == "" then
            wrong("\"%s\" has an empty name; give ids such as cuda:0,cuda:1", text)
        elseif part == "all" then
            if text ~= part then
                wrong("\"%s\" has \"all\" beside other names; give one of both", text)
            end
            return all()
        elseif not count then
            ids[#ids + 1] = part == "auto" and several.auto() or part == "cuda" and several.gpu()
                or part
        elseif not id:match "^planned:[^:]+$" or count < 1 or count > MOST then
            wrong("\"%s\" is wrong: 1 to %d devices that are planned for are named like "
                .. "2xplanned:h200; devices that are here have ids of their own, such as "
                .. "cuda:0,cuda:1", part, MOST)
        else
            for i = 1, count do
                ids[#ids + 1] = ("%s:%d"):format(id, i - 1)
            end
        end
    end
    return ids
end

-- Can results of both be the same to the bit, and can both be there at once?
local function fit(a, b)
    return a.kind == b.kind and a.planned == b.planned
end

--- Opens the devices that a text, a device, or a list of ids and devices names.
function several.open(devices, options)
    local names = type(devices) == "string" and split(devices)
        or type(devices) == "table" and devices or {devices}
    local list, seen = {}, {}
    for i, name in ipairs(names) do
        local device = core.device.open(name == "auto" and several.auto() or name, options)
        if seen[device.id] then
            wrong("device %s is named twice%s", device.id, device.planned and "; two of them are "
                .. "named 2x" .. device.id:match "^planned:[^:]+" or "")
        elseif i > 1 and not fit(list[1], device) then
            wrong("%s and %s cannot work on the same data: name devices of one kind, which are all "
                .. "here or all planned for", list[1].id, device.id)
        end
        list[i], seen[device.id] = device, true
    end
    if #list == 0 then
        wrong("devices is an empty list; give one, such as host")
    end
    return list
end

--- What differs between opened devices so that equal bits are not promised, as a sentence; nil if
-- they are of one model.
function several.difference(list)
    for _, device in ipairs(list) do
        if device.name ~= list[1].name or device.capability ~= list[1].capability then
            return ("%s is an %s, %s an %s: the same bits as on one of them are not promised")
                :format(list[1].id, list[1].name, device.id, device.name)
        end
    end
end

return several
