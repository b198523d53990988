-- A lane is one device with its reader, its writer, and the blocks in progress on it.
--
-- What a lane requests of its device's pool, and when, depends on the list of its blocks alone,
-- whatever other lanes do meanwhile. The list is not known beforehand: the lane takes its next
-- block from a queue when it begins to read that block.

local core = require "moonbeam.core"
local on_error = require "moonbeam.internal.on_error"
local shares = require "moonbeam.stream.shares"

local lane = {}

-- Values by the number of their block. A value is released when it is dropped; the rest at the end.
local holder = {}
holder.__index = holder
function holder:__close()
    for i in pairs(self.values) do
        self:drop(i)
    end
end
function holder:drop(i)
    local value = self.values[i]
    self.values[i] = nil
    if value then
        value:release()
    end
end
function holder:take(i)
    local value = self.values[i]
    self.values[i] = nil
    return value
end

local function new_holder()
    return setmetatable({values = {}}, holder)
end

-- ---- tallies ----

-- Numbers that are counted for each block on the device and go to the host with its results: room
-- for two blocks on both ends.
local tallies = {}
tallies.__index = tallies
function tallies:__close()
    for _, array in ipairs(self) do
        array:release()
    end
end

local function new_tallies(device, count)
    local self = setmetatable({}, tallies)
    local _ <close> = on_error(function() self:__close() end)
    for i, place in ipairs {{dtype = "f64", device = device}, {dtype = "f64", pinned = device}} do
        local both = core.array.zeros({2, count}, place)
        self[#self + 1] = both
        self[i == 1 and "on" or "off"] = {both:view(1), both:view(2)}
        table.move(self[i == 1 and "on" or "off"], 1, 2, #self + 1, self)
    end
    self.zero = {}
    for i = 1, count do
        self.zero[i] = 0
    end
    return self
end

-- ---- lanes ----

local methods = {}
methods.__index = methods

--- A lane of a device that is one of `count` in a run. `options` are those of stream.open.
function lane.new(device, options, count)
    local reading, writing = shares.rings(device, options, count)
    local before = device:pinned()
    local self = setmetatable({device = device, ahead = new_holder(), behind = new_holder(),
        writes = options.writes ~= false, hashes = options.hashes}, methods)
    local _ <close> = on_error(function() self:__close() end)
    reading.device = device
    self.reader = core.carrier.open(reading)
    if writing then
        writing.device, writing.hashes = device, options.hashes or nil
        self.writer = core.carrier.open(writing)
    end
    self.tallies = options.tallies and new_tallies(device, options.tallies)
    self.pinned = device:pinned() - before
    return self
end

-- The counts of a lane's carriers so far.
local function counts_of(self)
    local read, written = self.reader:stats(), self.writer and self.writer:stats()
        or {file_seconds = 0, lane_seconds = 0, wait_seconds = 0, bytes = 0, raw_bytes = 0}
    return {read = read.file_seconds, upload = read.lane_seconds,
        download = written.lane_seconds, write = written.file_seconds,
        wait_read = read.wait_seconds, wait_write = written.wait_seconds,
        read_bytes = read.bytes, write_bytes = written.bytes,
        raw_bytes = read.raw_bytes + written.raw_bytes}
end

--- Prepares the lane for a run.
function methods:start(overlap)
    self.overlap, self.computed, self.total = overlap, 0, 0
    self.timer, self.before = core.timer(self.device), counts_of(self)
end

--- The counts of a run: seconds and bytes, and the number of blocks. Tallies do not count.
function methods:counts()
    local counts = counts_of(self)
    for name, before in pairs(self.before or counts) do
        counts[name] = counts[name] - before
    end
    local beside = self.tallies and (self.total or 0) * 8 * #self.tallies.zero or 0
    counts.write_bytes, counts.raw_bytes = counts.write_bytes - beside, counts.raw_bytes - beside
    counts.compute, counts.blocks = self.computed or 0, self.total or 0
    return counts
end

--- Begins with a queue of blocks, {blocks =, numbers = nil or a list, at =}, of which it takes one
-- when it begins to read it.
function methods:begin(queue)
    self.queue, self.blocks, self.numbers = queue, {}, {}
    -- Of the writer: the marks before and after a block's writing.
    self.begins, self.marks, self.noted = {}, {}, {}
    -- How many blocks it has taken, has computed, have left the device, and are over at the end.
    self.taken, self.at, self.left, self.over = 0, 0, 0, 0
    self.settled, self.point = true, {}
end

--- Queues the reading of the next block, if there is one, and if the run has not been stopped.
function methods:read(steps)
    local queue, stops = self.queue, steps.stops
    if stops and stops() then
        return
    end
    local number = queue.at + 1
    local block = queue.blocks[number]
    if block ~= nil then
        local n = self.taken + 1
        queue.at, self.taken = number, n
        self.blocks[n] = block
        if queue.numbers then
            self.numbers[n] = queue.numbers[number]
        end
        self.ahead.values[n] = steps.read(block, self.reader, self.device)
    end
end

-- Waits until block i has left the device, and drops it. There may be no such block.
local function leave(self, i)
    local mark = self.marks[i]
    if mark then
        self.writer:wait(mark)
        if self.tallies then
            self.noted[i] = self.device.dry and self.tallies.zero
                or self.tallies.off[i % 2 + 1]:to_table()
        end
    end
    self.left = i
    self.behind:drop(i)
end

-- Notes that a function has the block: it is not written again. Nothing if a carrier writes.
local function note_written(self, i, written)
    if not self.writes then
        written[self.numbers[i]] = true
    end
end

--- Advances the lane by one block. The next block is read meanwhile, unless the lane has no
-- `overlap`: `settle` follows then. `written`: the numbers of blocks that are not written again.
function methods:step(steps, written)
    local i, writer = self.at + 1, self.writer
    local block = self.blocks[i]
    self.at = i
    self.reader:wait()
    if self.overlap then
        self:read(steps)
        leave(self, i - 2)
    else
        self.settled = false
    end
    local counts = self.tallies and self.tallies.on[i % 2 + 1]:fill(0)
    self.timer:start()
    local slices = steps.compute(self.ahead:take(i), block, self.device, counts)
    self.timer:stop()
    self.behind.values[i] = slices
    if self.hashes then
        self.begins[i] = writer:mark()
    end
    local again = written and written[self.numbers[i]]
    if not again then
        if steps.prepare then
            steps.prepare(block)
        end
        -- queued after the previous block, which is still moving
        steps.write(slices, block, self.writes and writer or nil)
        if written then
            note_written(self, i, written)
        end
    end
    if counts then
        writer:carry(self.tallies.off[i % 2 + 1], counts)
    end
    self.marks[i] = writer and writer:mark()
    if steps.done and not again then
        steps.done(block)
    end
end

--- Without overlap: waits until the block is written, and begins to read the next one.
function methods:settle(steps)
    if self.writer then
        self.writer:finish()
    end
    leave(self, self.at)
    self:read(steps)
    self.settled = true
end

--- Is there work left?
function methods:working()
    return not self.lost and (self.at < self.taken or not self.settled)
end

--- What the next step waits for, as core.carrier.wait_any takes it; nil if it need not wait.
function methods:awaited()
    local point = self.point
    if not self.settled then
        point[1], point[2], point.ready = self.writer, self.marks[self.at], true
        return self.writer and not self.writer:ready(point[2]) and point or nil
    end
    point.ready = nil
    local mark = self.overlap and self.marks[self.at - 1] or nil
    if not self.reader:passed() then
        point[1], point[2] = self.reader, nil
        return point
    elseif mark and not self.writer:passed(mark) then
        point[1], point[2] = self.writer, mark
        return point
    end
end

--- Calls over(i, facts) for each block whose writing is over at the far end. Does not wait.
function methods:poll(over)
    local writer = self.writer
    while self.over < self.left do
        local i = self.over + 1
        if writer and not writer:ready(self.marks[i]) then
            return
        end
        self.over = i
        over(i, {device = self.device, tallies = self.noted[i],
            hash = self.hashes and writer:hash(self.begins[i], self.marks[i]) or nil})
        self.noted[i] = nil
    end
end

--- Waits until everything has left the device and is over at the far end.
function methods:finish()
    self.computed = self.timer:seconds()
    if self.writer then
        self.writer:finish()
    end
    local n = self.taken
    leave(self, n - 1)
    leave(self, n)
    self.reader:finish()
    self.total = self.total + n
    self.taken, self.at = 0, 0
end

--- Gives a lost device up: releases its blocks, and does not wait. The carriers are closed with the
-- lane; what they still write is what other devices will write there.
function methods:abandon(reason)
    self.lost, self.total = reason, (self.total or 0) + (self.at or 0)
    self.ahead:__close()
    self.behind:__close()
end

function methods:__close()
    self.ahead:__close()
    self.behind:__close()
    if self.writer and self.lost then
        self.writer:abandon() -- files are not spoiled: others write what is missing
    elseif self.writer then
        self.writer:close()
    end
    if self.reader then
        self.reader:close()
    end
    if self.tallies then
        self.tallies:__close()
    end
end

return lane
