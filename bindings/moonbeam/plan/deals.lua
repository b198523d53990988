--- Which blocks devices may get that take the next one when they are free, for plans.
--
-- What a device takes follows from the list of its blocks (moonbeam.stream.lane). In a free
-- schedule it gets some of the blocks, in their order. So it takes no more than with all of them,
-- or with the largest ones after each other.

local deals = {}

-- At most this many blocks are on a device at a time: two that were read, two that are written.
local AT_A_TIME <const> = 4

-- So many blocks of a kind, one after the other, leave the pool as more of them do.
local ALIKE <const> = 5

-- The most lists that are planned one by one, and the most blocks of these lists.
local MOST <const>, MOST_BLOCKS <const> = 32, 160

-- The blocks whose n-th extent is largest, in their order, and whether they are neighbors.
local function largest(blocks, extents_of, n)
    local list, together = {}, true
    for i, block in ipairs(blocks) do
        list[i] = {at = i, extent = extents_of(block)[n]}
    end
    table.sort(list, function(a, b)
        if a.extent ~= b.extent then
            return a.extent > b.extent
        end
        return a.at < b.at
    end)
    list = table.move(list, 1, AT_A_TIME, 1, {})
    table.sort(list, function(a, b) return a.at < b.at end)
    local found = {}
    for i, each in ipairs(list) do
        together = together and each.at == list[1].at + i - 1
        found[i] = blocks[each.at]
    end
    return found, together
end

-- Each device of `count` gets the same list, for each of these lists.
local function to_all(found, count)
    local lists = {}
    for i, own in ipairs(found) do
        lists[i] = {}
        for k = 1, count do
            lists[i][k] = {own}
        end
    end
    return lists
end

-- Lists that take the most live bytes.
local function most_of(blocks, extents_of)
    local found = {blocks}
    for n in ipairs(blocks[1] and extents_of(blocks[1]) or {}) do
        local list, together = largest(blocks, extents_of, n)
        found[#found + 1] = not together and list or nil
    end
    return found
end

--- What `count` devices may get that takes most: a list of what stream.run takes as lists.
-- extents_of(block) is a list of numbers that decide what a block takes; with a field `kind`, a
-- text, if blocks of equal numbers may differ.
function deals.most(blocks, extents_of, count)
    return to_all(most_of(blocks, extents_of), count)
end

local function kind_of(extents)
    return extents.kind or table.concat(extents, " ")
end

-- The blocks as lists of consecutive ones of a kind.
local function groups_of(blocks, extents_of)
    local groups, before = {}, nil
    for _, block in ipairs(blocks) do
        local kind = kind_of(extents_of(block))
        if kind ~= before then
            groups[#groups + 1], before = {}, kind
        end
        table.insert(groups[#groups], block)
    end
    return groups
end

-- Each number of blocks of each group, up to some: a list of lists. Nil if there are too many.
local function each_of(groups)
    local product, found = 1, {{}}
    for _, group in ipairs(groups) do
        product = product * (math.min(#group, ALIKE) + 1)
    end
    for _, group in ipairs(product <= MOST and groups or {}) do
        local longer = {}
        for _, list in ipairs(found) do
            for n = 0, math.min(#group, ALIKE) do
                local own = table.move(list, 1, #list, 1, {})
                longer[#longer + 1] = table.move(group, 1, n, #own + 1, own)
            end
        end
        found = longer
    end
    return product <= MOST and found or nil
end

-- Some lists of blocks of the groups, always the same.
local function some_of(groups)
    local found, state, blocks = {}, 1, 0
    for _, group in ipairs(groups) do
        blocks = blocks + math.min(#group, ALIKE)
    end
    for i = 1, math.max(1, math.min(MOST, MOST_BLOCKS // blocks)) do
        local own = {}
        for _, group in ipairs(groups) do
            state = (state * 1103515245 + 12345) % (1 << 31)
            table.move(group, 1, (state >> 16) % (math.min(#group, ALIKE) + 1), #own + 1, own)
        end
        found[i] = own
    end
    return found
end

--- What `count` devices may get that takes the pools as far from both ends as any: each number of
-- blocks with equal extents, up to some. If there are too many, some of these.
function deals.all(blocks, extents_of, count)
    local groups = groups_of(blocks, extents_of)
    local found, first = each_of(groups) or some_of(groups), most_of(blocks, extents_of)
    return to_all(table.move(found, 1, #found, #first + 1, first), count)
end

--- Lists, as stream.run takes them, of fewer blocks that take the same memory: of consecutive
-- blocks of a kind, as many as are on a device at a time. And their kinds, as text.
function deals.shortened(lists, extents_of)
    local short, words = {}, {}
    for k, rounds in ipairs(lists) do
        short[k] = {}
        for r, blocks in ipairs(rounds) do
            local own = {}
            for _, group in ipairs(groups_of(blocks, extents_of)) do
                table.move(group, 1, math.min(#group, AT_A_TIME), #own + 1, own)
            end
            short[k][r] = own
            for _, block in ipairs(own) do
                words[#words + 1] = kind_of(extents_of(block))
            end
            words[#words + 1] = "|"
        end
    end
    return short, table.concat(words, "; ")
end

--- The blocks that each device has got in a run, from its times, as stream.run takes them, and
-- these devices: those that were not lost. Nil if one device had all of them.
function deals.of(times)
    local lists, devices = {}, {}
    for _, lane in ipairs(times.lanes) do
        if not lane.lost then
            lists[#lists + 1], devices[#devices + 1] = lane.lists, lane.device
        end
    end
    if #times.lanes > 1 then
        return lists, devices
    end
end

--- Was a device lost in a run?
function deals.lost(times)
    for _, lane in ipairs(times.lanes) do
        if lane.lost then
            return true
        end
    end
    return false
end

return deals
