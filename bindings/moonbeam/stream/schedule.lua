-- Which lane works on which block, and when. Lanes share the Lua thread: no lane waits for another.
--
-- Blocks are dealt in rounds. In a round each lane takes its blocks in their order, and ends with
-- an empty device. There is one round, unless a device is lost: its blocks are another round, for
-- the lanes that are left. So what a lane takes follows from its lists, a list for each round.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local schedule = {}

--- For specs: a function(list of the numbers of lanes that have work) -> the number of the lane
-- that makes the next step of a free schedule.
schedule.turn = nil

-- Is the device of a lane lost, and is this error of it?
local function is_loss(lane, err)
    return type(err) == "table" and err.code == "device" and lane.device:lost()
end

--- The order of a fixed schedule: the numbers of the devices that the blocks go to, a list that
-- repeats. Nil if the schedule is free.
function schedule.order_of(count, options)
    if (options.ranks or 1) > 1 then
        return nil
    elseif options.order then
        return options.order
    elseif options.schedule ~= "free" or count == 1 then
        local order = {}
        for i = 1, count do
            order[i] = i
        end
        return order
    end
end

--- Prepares lanes for a run. Of several, those whose device is lost are given up.
function schedule.start(lanes, overlap)
    for _, lane in ipairs(lanes) do
        if #lanes == 1 then
            lane:start(overlap)
        elseif not lane.lost then
            local ok, err = pcall(lane.start, lane, overlap)
            if not ok and not is_loss(lane, err) then
                error(err, 0)
            elseif not ok then
                lane:abandon(select(2, lane.device:lost()))
            end
        end
    end
end

-- ---- one lane ----

--- Works on all blocks with one lane. Returns whether it was stopped before the last one.
function schedule.alone(lane, blocks, steps)
    local overlap, finished = lane.overlap, steps.finished
    local function over(i, facts)
        finished(lane.blocks[i], facts)
    end
    lane:begin {blocks = blocks, at = 0}
    lane.lists = {lane.blocks}
    lane:read(steps)
    while lane.at < lane.taken do
        lane:step(steps)
        if not overlap then
            lane:settle(steps)
        end
        if finished then
            lane:poll(over)
        end
    end
    lane:finish()
    if finished then
        lane:poll(over)
    end
    return blocks[lane.queue.at + 1] ~= nil
end

-- ---- several lanes ----

local methods = {}
methods.__index = methods

-- Gives up a lane whose device is lost: its blocks are done again, those that are over, too, if
-- the device has summed over them. Raises any other error.
function methods:lose(lane, err)
    if not is_loss(lane, err) then
        error(err, 0)
    end
    for _, list in ipairs(self.sums and {lane.numbers, lane.earlier} or {}) do
        for _, number in ipairs(list) do
            self.again[number] = true
        end
    end
    local _, reason = lane.device:lost()
    lane:abandon(reason)
    self.reason = reason
end

-- Calls a method of a lane. Returns what it returns, or nothing if the device is lost.
function methods:call(lane, method, ...)
    local ok, result = pcall(lane[method], lane, ...)
    if ok then
        return result
    end
    self:lose(lane, result)
end

-- Tells of the blocks of a lane that are over.
function methods:poll(lane)
    if lane.lost or lane.over >= lane.left then
        return
    end
    self:call(lane, "poll", function(i, facts)
        local number = lane.numbers[i]
        if not self.finished[number] then
            self.finished[number], self.written[number] = true, true
            self.count = self.count + 1
            if self.steps.finished then
                self.steps.finished(lane.blocks[i], facts)
            end
        end
    end)
end

-- The next step of a lane.
function methods:advance(lane)
    if not lane.settled then
        return self:call(lane, "settle", self.steps)
    end
    self:call(lane, "step", self.steps, self.written)
end

-- The lanes whose device is not lost, from the one after `last`.
function methods:alive(last)
    local list, count = {}, #self.lanes
    for k = 1, count do
        local lane = self.lanes[(last + k - 1) % count + 1]
        if not lane.lost then
            list[#list + 1] = lane
        end
    end
    return list
end

-- The number of the lane that a spec chooses.
function methods:told()
    local list = {}
    for k, lane in ipairs(self.lanes) do
        list[#list + 1] = lane:working() and k or nil
    end
    return list[1] and schedule.turn(list)
end

-- Gives up the lanes whose carriers have made a wait for all of them fail. Raises the error if it
-- is of none of them, such as Ctrl-C.
function methods:blame(err)
    local before = #self:alive(0)
    for _, lane in ipairs(self.lanes) do
        if lane:working() then
            self:call(lane, "awaited")
        end
    end
    if #self:alive(0) == before then
        error(err, 0)
    end
end

-- The number of the first lane after `last` that need not wait for its next step; nil if no lane
-- has work. Sleeps until there is one.
function methods:ready(last)
    while true do
        local points, working = {}, false
        for k = 1, #self.lanes do
            local number = (last + k - 1) % #self.lanes + 1
            local lane = self.lanes[number]
            if lane:working() then
                local point = self:call(lane, "awaited")
                if not point and not lane.lost then
                    return number
                end
                points[#points + 1] = point
                working = true
            end
        end
        if not working then
            return nil
        end
        if #points > 0 then -- the only lane with work may have been lost
            local ok, err = pcall(core.carrier.wait_any, points)
            if not ok then
                self:blame(err)
            end
        end
    end
end

-- A round of a free schedule: the next block goes to the lane whose oldest block has left.
function methods:free()
    local number = 0
    while true do
        number = schedule.turn and self:told() or not schedule.turn and self:ready(number) or nil
        if not number then
            return
        end
        self:advance(self.lanes[number])
        for _, lane in ipairs(self.lanes) do
            self:poll(lane)
        end
    end
end

-- A round of a fixed schedule: steps in the order of `turns`, a list of lanes.
function methods:fixed(turns)
    for _, lane in ipairs(turns) do
        repeat
            if not lane:working() then
                break
            end
            self:advance(lane)
        until lane.settled
        self:poll(lane)
    end
end

-- Blocks by their numbers, all of them.
local each_number = setmetatable({}, {__index = function(_, i)
    return i
end})

-- One queue of all blocks, for blocks that are found one by one.
function methods:deal_all()
    local queue = {blocks = self.blocks, numbers = each_number, at = 0}
    for _, lane in ipairs(self:alive(#self.lanes)) do
        lane:begin(queue)
    end
end

-- Queues of the lanes for blocks by number; and the turns of a fixed schedule.
function methods:deal(numbers, order)
    local lanes = self:alive(#self.lanes)
    local blocks = tables.mapped(numbers, function(number) return self.blocks[number] end)
    if not order then
        local queue = {blocks = blocks, numbers = numbers, at = 0}
        for _, lane in ipairs(lanes) do
            lane:begin(queue)
        end
        return nil
    end
    local turns, queues = {}, {}
    for _, lane in ipairs(lanes) do
        queues[lane] = {blocks = {}, numbers = {}, at = 0}
        lane:begin(queues[lane])
    end
    for i, block in ipairs(blocks) do
        local lane = self.lanes[order[(i - 1) % #order + 1]]
        lane = lane and not lane.lost and lane or lanes[(i - 1) % #lanes + 1]
        local queue = queues[lane]
        queue.blocks[#queue.blocks + 1], queue.numbers[#queue.numbers + 1] = block, numbers[i]
        turns[i] = lane
    end
    return turns
end

-- The queues of given lists, {blocks} by lane; and turns that serve all of them.
function methods:deal_lists(lists)
    local turns, most, number = {}, 0, self.count
    for k, lane in ipairs(self.lanes) do
        local queue = {blocks = lists[k] or {}, numbers = {}, at = 0}
        for n in ipairs(queue.blocks) do
            number = number + 1
            queue.numbers[n] = number
        end
        most = math.max(most, #queue.blocks)
        lane:begin(queue)
    end
    for n = 1, most do
        for k, lane in ipairs(self.lanes) do
            turns[#turns + 1] = lists[k] and n <= #lists[k] and lane or nil
        end
    end
    return turns
end

-- Works off what has been dealt. Without `turns` the schedule is free.
function methods:round(turns)
    local lanes = self:alive(#self.lanes)
    for _, lane in ipairs(lanes) do
        self:call(lane, "read", self.steps)
    end
    if turns then
        self:fixed(turns)
    else
        self:free()
    end
    for _, lane in ipairs(lanes) do
        if not lane.lost then
            self:call(lane, "finish")
            self:poll(lane)
        end
        table.move(lane.numbers, 1, #lane.numbers, #lane.earlier + 1, lane.earlier)
        if not lane.lost then
            lane.lists[#lane.lists + 1] = lane.blocks
        end
    end
end

-- The numbers of the blocks that are left: those that are not over, begun or not, and those whose
-- sums are lost.
function methods:left()
    local numbers = {}
    for i in ipairs(self.blocks) do
        if not self.finished[i] or self.again[i] then
            numbers[#numbers + 1] = i
        end
    end
    self.again = {}
    return numbers
end

-- Raises that no device is left.
local function fail_all(self)
    local names = tables.mapped(self.lanes, function(lane) return lane.device.id end)
    fail("device", "stream.run", nil, "%s %s lost (%s); %d of %d blocks are finished",
        table.concat(names, ", "), #names == 1 and "is" or "are all", self.reason, self.count,
        #self.blocks)
end

-- While lanes work, a device's garbage is freed for requests of that device alone.
local held = setmetatable({}, {__close = function()
    core.garbage.hold(false)
end})

--- Works on blocks with several lanes. A list of blocks with a metatable finds its elements when
-- they are asked for, one after the other. `order`: a fixed schedule, the numbers of the lanes that
-- the blocks go to, a list that repeats. `lists`: given lists of blocks, {{blocks} by round} by
-- lane. `sums`: the devices sum over their blocks. Afterwards each lane has `lists`. Returns
-- whether the run was stopped before the last block.
function schedule.together(lanes, blocks, steps, options)
    core.garbage.hold(true)
    local _ <close> = held
    local self = setmetatable({lanes = lanes, blocks = blocks, steps = steps, sums = options.sums,
        finished = {}, written = {}, count = 0, again = {}}, methods)
    for _, lane in ipairs(lanes) do
        lane.lists, lane.earlier = {}, {}
        lane.numbers = {}
        self.reason = lane.lost or self.reason
    end
    local rounds = 0
    for _, lists in ipairs(options.lists or {}) do
        rounds = math.max(rounds, #lists)
    end
    for r = 1, rounds do
        local own = tables.mapped(options.lists, function(lists) return lists[r] end)
        self:round(self:deal_lists(own))
    end
    if getmetatable(blocks) then
        self:round(self:deal_all())
    end
    local numbers = options.lists and {} or self:left()
    while #numbers > 0 and not (steps.stops and steps.stops()) do
        if #self:alive(0) == 0 then
            fail_all(self)
        end
        self:round(self:deal(numbers, options.order))
        numbers = self:left()
    end
    return #numbers > 0
end

return schedule
