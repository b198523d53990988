--- The map of a pool.

local core = require "moonbeam.core"

local WIDTH, MOST_LINES <const> = 64, 200

-- A line of WIDTH characters for the bytes first .. last: # full, + partly used, . free.
local function map_line(blocks, first, last)
    local cell, cells = (last - first) / WIDTH, {}
    for i = 1, WIDTH do
        local low, high, used = first + (i - 1) * cell, first + i * cell, 0
        for _, block in ipairs(blocks) do
            used = used + math.max(0, math.min(high, block.offset + block.bytes)
                - math.max(low, block.offset))
        end
        cells[i] = used == 0 and "." or used >= cell * 0.999 and "#" or "+"
    end
    return table.concat(cells)
end

-- The blocks in first .. last, and what they leave of it.
local function add_region(lines, name, blocks, first, last)
    local bytes, own = core.device.format_bytes, {}
    for _, block in ipairs(blocks) do
        own[#own + 1] = block.offset >= first and block.offset < last and block or nil
    end
    if last <= first then
        return
    end
    lines[#lines + 1] = ("%-5s [%s] %s"):format(name, map_line(own, first, last),
        bytes(last - first))
    for i, block in ipairs(own) do
        lines[#lines + 1] = i > MOST_LINES and "      ..."
            or ("      %012x  %10s  %-7s  %s"):format(block.offset, bytes(block.bytes),
                block["end"], block.owner)
        if i > MOST_LINES then
            return
        end
    end
end

-- The largest hole of a range of `reserved` bytes.
local function central_gap(blocks, reserved)
    local first, last, at = 0, -1, 0
    for i = 1, #blocks + 1 do
        local begin = blocks[i] and blocks[i].offset or reserved
        if begin - at > last - first then
            first, last = at, begin
        end
        at = blocks[i] and begin + blocks[i].bytes
    end
    return first, last
end

--- A picture of the address range, as text: the low end (arrays), the central gap, the high end
-- (scratch), with their blocks below.
return function(device)
    local bytes, stats = core.device.format_bytes, core.pool.stats(device)
    local blocks = core.pool.blocks(device)
    local gap_first, gap_last = central_gap(blocks, stats.reserved)
    local lines = {("live %s of %s, %d blocks, largest request possible %s, %s committed, %s of "
        .. "addresses"):format(bytes(stats.live), bytes(stats.budget), stats.blocks,
        bytes(stats.largest_hole), bytes(stats.committed), bytes(stats.reserved))}
    add_region(lines, "low", blocks, 0, gap_first)
    lines[#lines + 1] = ("gap   [%s] %s"):format((" "):rep(WIDTH), bytes(gap_last - gap_first))
    add_region(lines, "high", blocks, gap_last, stats.reserved)
    return table.concat(lines, "\n")
end
