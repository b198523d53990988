-- Devices of a list that are not lost, and work on them.

local alive = {}

--- The devices of a list that are not lost.
function alive.of(devices)
    local list = {}
    for _, device in ipairs(devices) do
        list[#list + 1] = not device:lost() and device or nil
    end
    return list
end

--- Calls fn(devices) with the devices that are not lost; again if one of several is lost meanwhile.
-- Returns what fn returns.
function alive.on(devices, fn)
    while true do
        local live = alive.of(devices)
        if #live <= 1 then
            return fn(#live == 0 and devices or live)
        end
        local results = table.pack(pcall(fn, live))
        if results[1] then
            return table.unpack(results, 2, results.n)
        elseif #alive.of(live) == #live or #alive.of(live) == 0 then
            error(results[2], 0)
        end
    end
end

return alive
