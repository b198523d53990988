--- Calls of the user's own functions, which are called for each block: steps of pipelines, the
-- function of mb.chunked. They cannot yield, as what is running would never go on, and arrays that
-- they keep are told, with the lines.

local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"

local own_function = {}

--- The tag (mb.pool.tag) of what the function of mb.chunked allocates.
own_function.TAG = "own function"

--- Where a function was written, "FILE:LINE", or nil if it is no Lua function.
function own_function.place(f)
    f = type(f) == "function" and f or (debug.getmetatable(f) or {}).__call
    local info = type(f) == "function" and debug.getinfo(f, "S")
    return info and info.what ~= "C" and ("%s:%d"):format(info.short_src, info.linedefined) or nil
end

--- "the function" with its place, for messages.
function own_function.named(f)
    local place = own_function.place(f)
    return "the function" .. (place and " at " .. place or "")
end

-- Lua's own messages for a coroutine.yield where none can be.
local YIELDS <const> = {"^attempt to yield across a C%-call boundary",
    "^attempt to yield from outside a coroutine"}

--- Does the error come from a coroutine.yield?
function own_function.yields(problem)
    return type(problem) == "string"
        and (problem:find(YIELDS[1]) or problem:find(YIELDS[2])) ~= nil
end

--- f(...), with an error of `op` (or nil) where f yields.
function own_function.call(op, f, ...)
    local _ <close> = setmetatable({}, {__close = function(_, problem)
        if own_function.yields(problem) then
            fail("argument", op, "fn", "%s yields, which a function that is called for a block "
                .. "must not do: let it return instead", own_function.named(f))
        end
    end})
    return core.unyielding(f, ...)
end

-- Blocks of pools with one of these tags (nil: all), or with views that were made under one:
-- {bytes, sequence, tag, owner}, by device and sequence. What a view holds is its own: who made the
-- block has released it.
local function blocks_of(tags, devices)
    local found = {}
    for _, device in ipairs(devices) do
        local views = {}
        for _, view in ipairs(device.dry and {} or core.pool.views(device)) do
            local other = views[view.offset]
            local first = not other or view.sequence < other.sequence
            views[view.offset] = tags and tags[view.tag] and first and view or other
        end
        for _, block in ipairs(device.dry and {} or core.pool.blocks(device)) do
            local view = views[block.offset]
            found[device.id .. block.sequence] = not tags and block
                or view and {bytes = block.bytes, tag = view.tag, sequence = block.sequence,
                    owner = view.owner}
                or tags[block.tag] and block or nil
        end
    end
    return found
end

--- Watches what is kept of what is allocated with these tags (a set), and of what is seen through
-- views that are made with them. Returns a function for after the last block, which returns a list
-- of texts, one for each tag: "keeps 3 arrays of 3 KiB in all, made at x.lua:8".
function own_function.watch(tags, devices)
    local list = {core.device.open "host"}
    for _, device in ipairs(devices) do
        list[#list + 1] = device.id ~= "host" and device or nil
    end
    local before = blocks_of(nil, list)
    local function kept_now()
        local kept = {}
        for key, block in pairs(blocks_of(tags, list)) do
            if not before[key] then
                local all = kept[block.tag] or {bytes = 0, count = 0, first = block}
                all.bytes, all.count = all.bytes + block.bytes, all.count + 1
                all.first = block.sequence < all.first.sequence and block or all.first
                kept[block.tag] = all
            end
        end
        return kept
    end
    return function()
        if next(kept_now()) then -- or left to the collector
            core.garbage.collect()
        end
        local texts = {}
        for tag, all in pairs(kept_now()) do
            texts[#texts + 1] = {tag = tag, text = ("keeps %s of %s in all, made at %s"):format(
                counted(all.count, "array"), core.device.format_bytes(all.bytes), all.first.owner)}
        end
        table.sort(texts, function(a, b) return a.tag < b.tag end)
        return texts
    end
end

return own_function
