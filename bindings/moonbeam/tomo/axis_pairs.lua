--- Opposite projections: which frames of a scan show the object from two sides, half a turn apart.
--
-- Angles are in radians, frames count from 1. Nothing here reads a frame, so a plan knows every
-- choice.

local arguments = require "moonbeam.internal.arguments"

local axis_pairs = {}

--- The most groups of opposite frames that a search registers, spread over what a scan sees from
-- both sides.
axis_pairs.MOST_GROUPS = 8
--- The most frames on either side of a group.
axis_pairs.MOST_FRAMES = 8

-- Frames of a block lie within this angle, and what is seen at the edge moves no further in it than
-- so many columns: over more, a line in the angle does not hold.
local BLOCK_SPAN = math.rad(10)
local BLOCK_MOTION = 12
local FURTHEST_GAP = math.rad(10) -- that lines through the frames on both sides bridge
local FURTHEST_MISS = math.rad(5) -- of a pair that nothing bridges

local function sorted(angles)
    local order = {}
    for i = 1, #angles do
        order[i] = i
    end
    table.sort(order, function(i, j)
        if angles[i] ~= angles[j] then
            return angles[i] < angles[j]
        end
        return i < j
    end)
    return order
end

--- The two projections whose angles differ by half a turn most exactly: indices and by how much
-- they miss it (rad). Ties go to the pair that starts first. Public as mb.tomo.opposite_pair.
function axis_pairs.opposite(angles)
    arguments.angles(angles, "tomo.opposite_pair", "angles")
    angles = arguments.is_array(angles) and angles:to_table() or angles
    angles = type(angles) == "number" and {angles} or angles
    local order = sorted(angles)
    local best, best_other, best_miss = 1, 1, math.huge
    local j = 1
    for _, i in ipairs(order) do -- both indices only move forward
        while j < #order and angles[order[j]] - angles[i] < math.pi do
            j = j + 1
        end
        for _, k in ipairs {j - 1, j} do
            local other = order[k]
            local miss = other and math.abs(angles[other] - angles[i] - math.pi) or math.huge
            if miss < best_miss - 1e-12 then
                best, best_other, best_miss = i, other, miss
            end
        end
    end
    return best, best_other, best_miss
end

--- What the angles cover (rad), the step behind the last included.
function axis_pairs.span(angles)
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(angles) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    return (most - least) * #angles / math.max(1, #angles - 1)
end

--- Do the angles cover a whole turn?
function axis_pairs.is_turn(angles)
    return axis_pairs.span(angles) >= 2 * math.pi * 0.95
end

-- The frames at the places `from` to `from + count - 1` of the order: {first, last, angles}, or nil
-- where they are not neighbors in the scan.
local function block_of(angles, order, from, count)
    local first, last = math.huge, 0
    for place = from, from + count - 1 do
        first, last = math.min(first, order[place]), math.max(last, order[place])
    end
    if last - first ~= count - 1 then
        return nil
    end
    return {first = first, last = last, angles = table.move(angles, first, last, 1, {})}
end

local function mean(values)
    local sum = 0
    for _, value in ipairs(values) do
        sum = sum + value
    end
    return sum / #values
end

-- Weights by which the frames of a block become one frame at `angle`: the value there of the line
-- in the angle that fits every pixel best (least squares); with `plain`, their mean.
local function weigh(block, angle, plain)
    local middle, spread = mean(block.angles), 0
    for _, value in ipairs(block.angles) do
        spread = spread + (value - middle) ^ 2
    end
    block.weights = {}
    for i, value in ipairs(block.angles) do
        local lever = (plain or spread == 0) and 0 or (value - middle) * (angle - middle) / spread
        block.weights[i] = 1 / #block.angles + lever
    end
end

-- Two blocks made into a group. Between the last frame and the first half a turn on lies a gap, a
-- step of the scan as a rule. Both blocks are brought to one angle by lines through their frames,
-- whose errors are the same on both sides up to the second order: the object turns less than it
-- seems.
local function group_of(left, right, step)
    local from, to = mean(left.angles), mean(right.angles) - math.pi
    local width = math.max(left.angles[#left.angles], left.angles[1])
        - math.min(left.angles[#left.angles], left.angles[1])
    local apart = math.abs(to - from) - width
    local plain = #left.angles < 2 or apart > math.max(1.5 * step, width)
    weigh(left, (from + to) / 2, plain)
    weigh(right, (from + to) / 2 + math.pi, plain)
    return {left = left, right = right, miss = plain and math.abs(to - from) or 0, gap = apart}
end

-- The place of the block of `count` frames that is nearest to `angle`.
local function place_of(angles, order, angle, count)
    local best, best_miss = 1, math.huge
    for place = 1, #order - count + 1 do
        local middle = (angles[order[place]] + angles[order[place + count - 1]]) / 2
        if math.abs(middle - angle) < best_miss - 1e-9 then
            best, best_miss = place, math.abs(middle - angle)
        end
    end
    return best
end

-- Groups of blocks of `count` frames, or nil where the frames of one are not neighbors.
local function groups_of(angles, order, step, count)
    local lowest, highest = angles[order[1]], angles[order[#order]]
    local both = highest - lowest - math.pi -- what is seen from both sides
    local most = math.floor(both / (count * step) + 1e-6)
    local number = math.max(1, math.min(axis_pairs.MOST_GROUPS, most))
    local groups = {}
    for g = 1, number do
        local half = (count - 1) * step / 2
        local left = lowest + half + (number > 1 and (g - 1) * both / number or 0)
        local place = place_of(angles, order, left, count)
        local first = block_of(angles, order, place, count)
        local turned = left + math.pi
        if count == 1 and number > 1 then
            turned = angles[order[place]] + math.pi
        end
        local second = block_of(angles, order, place_of(angles, order, turned, count), count)
        if not first or not second then
            return nil
        end
        groups[g] = group_of(first, second, step)
    end
    return groups
end

-- Blocks of several frames must be bridged; single frames may miss half a turn by a little.
local function within_limits(groups, count)
    for _, group in ipairs(groups or {{miss = math.huge}}) do
        if group.miss > (count > 1 and 0 or FURTHEST_MISS) or group.gap > FURTHEST_GAP then
            return false
        end
    end
    return true
end

--- What tells the noise of the frame that a block becomes: {first, last, weights, noise}: frames of
-- the scan, the weights that make the frame of them, and weights of equal squares that leave
-- nothing of what changes evenly with the angle. A block of two frames or one is widened by its
-- neighbors. Nil where there are too few frames.
function axis_pairs.noise_block(angles, block)
    local first, last, before = block.first, block.last, 0
    while last - first < 2 do
        if last < #angles then
            last = last + 1
        elseif first > 1 then
            first, before = first - 1, before + 1
        else
            return nil
        end
    end
    local own, weights, squares = table.move(angles, first, last, 1, {}), {}, 0
    for i = 1, #own do
        weights[i] = block.weights[i - before] or 0
        squares = squares + weights[i] ^ 2
    end
    local middle, spread, sum, slope, noise, left = mean(own), 0, 0, 0, {}, 0
    for i, value in ipairs(own) do
        noise[i] = i % 2 == 0 and -1 or 1
        spread, sum = spread + (value - middle) ^ 2, sum + noise[i]
        slope = slope + noise[i] * (value - middle)
    end
    for i, value in ipairs(own) do
        noise[i] = noise[i] - sum / #own - (spread > 0 and slope * (value - middle) / spread or 0)
        left = left + noise[i] ^ 2
    end
    for i in ipairs(own) do
        noise[i] = noise[i] * math.sqrt(squares / left)
    end
    return {first = first, last = last, weights = weights, noise = noise}
end

--- Lists of groups of opposite frames: one of blocks of many frames, which have less noise, and one
-- of two frames, which blur fine detail less; or one list alone. A group is {left, right, miss}:
-- left and right are {first, last, weights}, frames of the scan, and the weights by which they
-- become one frame at an angle that both sides share. `miss` (rad) is what is left of the angle
-- between the sides: 0 where lines through the frames bridge it. Half a turn has one group, at its
-- ends. A whole turn has up to MOST_GROUPS, spread evenly. `width`: columns of the detector. Nil
-- where no two frames are nearly half a turn apart. Also returns the pair that is closest to half a
-- turn apart, and its miss.
function axis_pairs.groups(angles, width)
    local first, other, miss = axis_pairs.opposite(angles)
    local order, lists = sorted(angles), {}
    local step = (angles[order[#order]] - angles[order[1]]) / math.max(1, #order - 1)
    local span = math.min(BLOCK_SPAN, BLOCK_MOTION / (width / 2))
    local count = math.floor(span / math.max(step, 1e-9) + 1e-6)
    count = math.min(math.max(2, math.min(axis_pairs.MOST_FRAMES, count)), #order // 2)
    for _, frames in ipairs(count > 2 and {count, 2, 1} or {count, 1}) do
        local groups = step > 0 and frames > 0 and (frames > 1 or #lists == 0)
            and groups_of(angles, order, step, frames)
        if groups and (frames > 1 or #groups > 1) and within_limits(groups, frames) then
            lists[#lists + 1] = groups
        end
    end
    if #lists == 0 and miss < FURTHEST_MISS then
        local left, right = block_of(angles, {first}, 1, 1), block_of(angles, {other}, 1, 1)
        lists[1] = {group_of(left, right, step)}
    end
    return #lists > 0 and lists or nil, first, other, miss
end

return axis_pairs
