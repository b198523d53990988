--- The latest events of a pool as text: RMM's replay log, JSON, or a timeline for browsers.

local json = require "moonbeam.internal.json"

local formats = {}

-- RMM's replay format; what it does not know comes last. A replay cannot free what it has not seen
-- allocated, so frees of blocks that are older than the trace are left out.
function formats.csv(events)
    local rmm = {alloc = "allocate", free = "free", refused = "allocate failure"}
    local lines, seen = {"Thread,Time,Action,Pointer,Size,Stream,Live,Owner,Tag"}, {}
    for _, e in ipairs(events) do
        if e.action ~= "free" or seen[e.block] then
            local us = e.ns // 1000
            lines[#lines + 1] = ("%d,%02d:%02d:%02d:%06d,%s,0x%x,%d,0,%d,%s,%s"):format(e.thread,
                us // 3600000000 % 24, us // 60000000 % 60, us // 1000000 % 60, us % 1000000,
                rmm[e.action], e.action == "refused" and 0 or 0x10000000000 + e.offset, e.bytes,
                e.live, (e.owner:gsub("[,\n]", " ")), (e.tag:gsub("[,\n]", " ")))
            seen[e.block or 0] = e.action == "alloc" or nil
        end
    end
    return table.concat(lines, "\n") .. "\n"
end

function formats.json(events)
    return json(events, {"action", "ns", "offset", "bytes", "live", "thread", "end", "owner",
        "tag"}) .. "\n"
end

-- The trace-event format of Chrome and Perfetto: a counter of live bytes, and a span per block.
function formats.chrome(events)
    local list, open_blocks = {}, {}
    for _, e in ipairs(events) do
        local us, made = e.ns / 1000, open_blocks[e.block or 0]
        local function add(phase, name, more)
            more.ph, more.name, more.pid, more.ts = phase, name, 1, us
            list[#list + 1] = more
        end
        add("C", "live bytes", {args = {live = e.live}})
        if e.action == "alloc" then
            open_blocks[e.block] = e
            add("b", e.owner, {cat = e["end"], id = e.block, tid = e.thread,
                args = {bytes = e.bytes, offset = e.offset}})
        elseif e.action == "free" and made then
            open_blocks[e.block] = nil
            add("e", made.owner, {cat = made["end"], id = e.block, tid = made.thread})
        elseif e.action == "refused" then
            add("i", "refused " .. e.owner, {s = "g", tid = e.thread, args = {bytes = e.bytes}})
        end
    end
    return json({traceEvents = list, displayTimeUnit = "ns"}, {"traceEvents", "name", "cat", "ph"})
        .. "\n"
end

return formats
