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

-- The most lists that are planned one by one.
local MOST <const> = 64

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
-- extents_of(block) is a list of numbers that decide what a block takes.
function deals.most(blocks, extents_of, count)
    return to_all(most_of(blocks, extents_of), count)
end

-- The blocks as lists of consecutive ones with equal extents.
local function groups_of(blocks, extents_of)
    local groups, before = {}, nil
    for _, block in ipairs(blocks) do
        local kind = table.concat(extents_of(block), " ")
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
    local found, state = {}, 1
    for i = 1, MOST do
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

--- The blocks that each device has got in a run, from its times, as stream.run takes them. Nil if
-- one device had all of them.
function deals.of(times)
    local lists = {}
    for k, lane in ipairs(times.lanes) do
        lists[k] = lane.lists
    end
    return #times.lanes > 1 and lists or nil
end

return deals
