--- Pages in an order: which page is the plane of a channel, slice and time.

local order = {}

--- The 0-based number of plane (c, z, t), all 0-based, of planes that follow one another as `meta`
-- says: {order (of C, Z and T, the fastest first), channels, slices, frames}.
function order.number(meta, c, z, t)
    local index = {C = c, Z = z, T = t}
    local counts = {C = meta.channels, Z = meta.slices, T = meta.frames}
    local at = 0
    for i = 3, 1, -1 do
        local axis = meta.order:sub(i, i)
        at = at * counts[axis] + index[axis]
    end
    return at
end

--- The plane with this 0-based number: c, z, t.
function order.plane(meta, number)
    local counts = {C = meta.channels, Z = meta.slices, T = meta.frames}
    local index = {}
    for axis in meta.order:gmatch "." do
        index[axis], number = number % counts[axis], number // counts[axis]
    end
    return index.C, index.Z, index.T
end

--- How many planes there are.
function order.count(meta)
    return meta.channels * meta.slices * meta.frames
end

-- Whether all planes of a time are there.
local function complete(meta, planes, t)
    for c = 0, meta.channels - 1 do
        for z = 0, meta.slices - 1 do
            if not planes[order.number(meta, c, z, t) + 1] then
                return false
            end
        end
    end
    return true
end

--- The complete times of planes of which some are missing, as planes and a `meta` with fewer
-- frames; nil where no time is complete.
function order.complete(meta, planes)
    local times = {}
    for t = 0, meta.frames - 1 do
        times[#times + 1] = complete(meta, planes, t) and t or nil
    end
    if #times == 0 then
        return nil
    end
    local left = setmetatable({frames = #times}, {__index = meta})
    local list = {}
    for number = 0, order.count(left) - 1 do
        local c, z, t = order.plane(left, number)
        list[number + 1] = planes[order.number(meta, c, z, times[t + 1]) + 1]
    end
    return list, #times
end

return order
