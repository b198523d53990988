--- Pages in an order: which page is the plane of a channel, slice and time.

local order = {}

local MOST <const> = 1 << 24 -- planes
local NAMES <const> = {Z = "slices", C = "channels", T = "frames"}

--- The name of what an axis counts; nil where the letter has no meaning for a volume.
function order.name(letter)
    return NAMES[letter]
end

--- Metadata of pages along axes, {{letter, extent}, ...}, from slow to fast: {channels, slices,
-- frames, order}; nil where an axis has no meaning for a volume or two have the same.
function order.along(axes)
    local meta, letters = {channels = 1, slices = 1, frames = 1}, ""
    for _, axis in ipairs(axes) do
        local name = NAMES[axis[1]]
        if not name or letters:find(axis[1], 1, true) then
            return nil
        end
        meta[name], letters = axis[2], axis[1] .. letters
    end
    for letter in ("CZT"):gmatch "." do
        letters = letters:find(letter, 1, true) and letters or letters .. letter
    end
    meta.order = letters
    return meta
end

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
    local count = meta.channels * meta.slices * meta.frames
    return 1.0 * meta.channels * meta.slices * meta.frames < 2^62 and count or math.maxinteger
end

--- The slowest axis of which there are several; nil where there is one plane.
function order.slowest(meta)
    for i = 3, 1, -1 do
        local axis = meta.order:sub(i, i)
        if meta[NAMES[axis]] > 1 then
            return axis
        end
    end
    return nil
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

--- The complete times of planes of which some are missing, as planes and how many times these are;
-- nil where no time is complete, or where a text says more planes than any file has.
function order.complete(meta, planes)
    if order.count(meta) > MOST then
        return nil
    end
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
