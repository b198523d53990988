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

local function kind_of(extents)
    return extents.kind or table.concat(extents, " ")
end

-- The kinds of blocks, one after the other, as text.
local function kinds_of(blocks, extents_of)
    local words = {}
    for i, block in ipairs(blocks) do
        words[i] = kind_of(extents_of(block))
    end
    return "|" .. table.concat(words, "|") .. "|"
end

-- Is no extent of the one less than that of the other?
local function covers(one, other)
    for n, extent in ipairs(other) do
        if one[n] < extent then
            return false
        end
    end
    return true
end

-- The blocks that no other covers, one of each list of extents. What a block takes is a sum over
-- its extents, so a block that has none of the largest ones may take most.
local function largest(blocks, extents_of)
    local found, seen = {}, {}
    for _, block in ipairs(blocks) do
        local extents = extents_of(block)
        local text = table.concat(extents, " ")
        local covered, rest = seen[text] ~= nil, {}
        seen[text] = true
        for _, each in ipairs(covered and {} or found) do
            covered = covered or covers(each.extents, extents)
            rest[#rest + 1] = not covers(extents, each.extents) and each or nil
        end
        if not covered then
            rest[#rest + 1] = {extents = extents, block = block}
            found = rest
        end
    end
    for i, each in ipairs(found) do
        found[i] = each.block
    end
    return found
end

-- Appends blocks to a list until any three of `most` follow each other in it: one is written, one
-- is worked on and one is read at a time, and another one may take most as each of these.
local function append_threes(list, most)
    local seen = {}
    local function word(i)
        return list[i - 2] and ("%p %p %p"):format(list[i - 2], list[i - 1], list[i])
    end
    for i = 3, #list do
        seen[word(i)] = true
    end
    local function append(block)
        list[#list + 1] = block
        seen[word(#list) or ""] = true
    end
    for _, a in ipairs(most) do
        for _, b in ipairs(most) do
            for _, c in ipairs(most) do
                if not seen[("%p %p %p"):format(a, b, c)] then
                    if list[#list - 1] ~= a or list[#list] ~= b then
                        append(a)
                        append(b)
                    end
                    append(c)
                end
            end
        end
    end
end

-- Each device of `count` gets the same list, for each of these lists; but only the first one where
-- likes[k] is not k.
local function to_all(found, count, likes)
    local lists = {}
    for i, own in ipairs(found) do
        lists[i] = {}
        for k = 1, count do
            lists[i][k] = (i == 1 or not likes or likes[k] == k) and {own} or {}
        end
    end
    return lists
end

-- Lists that take at least the live bytes of any list: all blocks, and the largest ones over and
-- over in any order, as far as larger ones take no less.
local function most_of(blocks, extents_of)
    local count, repeated = math.min(#blocks, AT_A_TIME), {}
    local most = largest(blocks, extents_of)
    for _, block in ipairs(most) do
        for _, other in ipairs(most) do
            for i = 1, count do
                repeated[#repeated + 1] = i <= count / 2 and block or other
            end
        end
    end
    if count > 2 then
        append_threes(repeated, most)
    end
    local known = kinds_of(blocks, extents_of):find(kinds_of(repeated, extents_of), 1, true)
    return {blocks, not known and repeated or nil}
end

--- What `count` devices may get that takes most: a list of what stream.run takes as lists.
-- extents_of(block) is a list of numbers that decide what a block takes; with a field `kind`, a
-- text, if blocks of equal numbers may differ.
function deals.most(blocks, extents_of, count)
    return to_all(most_of(blocks, extents_of), count)
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
        product = math.min(product * (math.min(#group, ALIKE) + 1), MOST + 1)
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
-- blocks with equal extents, up to some. If there are too many, some of these. `likes`: for each
-- device the first one that is like it, which alone gets all lists.
function deals.all(blocks, extents_of, count, likes)
    local groups = groups_of(blocks, extents_of)
    local found, first = each_of(groups) or some_of(groups), most_of(blocks, extents_of)
    return to_all(table.move(found, 1, #found, #first + 1, first), count, likes)
end

--- The lists of `count` devices in a fixed schedule, as stream.run takes them: block i goes to
-- device order[i], and the order repeats.
function deals.fixed(blocks, order, count)
    local lists = {}
    for k = 1, count do
        lists[k] = {{}}
    end
    for i, block in ipairs(blocks) do
        local own = lists[order[(i - 1) % #order + 1]][1]
        own[#own + 1] = block
    end
    return lists
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
-- these devices: those that were not lost, then or (`lost`, by their ids) later. Nil if one device
-- had all of them, unless `other` processes had some.
function deals.of(times, lost, other)
    local lists, devices = {}, {}
    for _, lane in ipairs(times.lanes) do
        if not lane.lost and not (lost and lost[lane.device.id]) then
            lists[#lists + 1], devices[#devices + 1] = lane.lists, lane.device
        end
    end
    if #times.lanes > 1 or other then
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
