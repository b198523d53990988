-- The estimate of a deconvolution by exact tiles, with momentum the one before, and with that of
-- Biggs and Andrews the last step, the gradient: at the place of the plan, and in files that a
-- later process goes on with.
--
-- In files of a run that can go on there are two of each, and iterations write to them by turns:
-- what an iteration reads is whole until the next one begins, so any tile can be made again. The
-- same holds in memory for several devices, one of which may be lost (plan.twice). Otherwise there
-- is one of each in memory, or two estimates where tiles look at those of their neighbors (apart).
-- They are written to files after some of the iterations, and after the last one, by turns.
--
-- With biggs_andrews estimates are what the iterations have made, and those of the last ones are a
-- ring: a new one takes the place of the oldest, so nothing is copied. With heavy_ball the estimate
-- is what the next iteration begins with, which goes ahead, and what the iteration has made is
-- beside it.

local core = require "moonbeam.core"
local on_error = require "moonbeam.internal.on_error"
local tile_journal = require "moonbeam.tiled_deconv.tile_journal"

local estimates = {}
local methods = {}
methods.__index = methods

-- Saving takes at most this part of the time.
local PART <const> = 1 / 10

-- So many saved estimates are looked at: only two can be there.
local LOOK <const> = 4

--- Sections of the journal: the tiles of the ratio, and those of the estimate, of iteration k.
function estimates.sections(k)
    return 2 * k - 1, 2 * k
end

-- The volumes of a slot in files.
local function files_of(self, slot)
    local list = setmetatable({}, {__close = function(list)
        for _, volume in ipairs(list) do
            volume:close()
        end
    end})
    local _ <close> = on_error(function() getmetatable(list).__close(list) end)
    for _, name in ipairs(self.names) do
        list[#list + 1] = self.kept:file(("%s-%d"):format(name, slot), self.shape)
    end
    return list
end

local NAMES <const> = {none = {"estimate"}, heavy_ball = {"estimate", "before"},
    biggs_andrews = {"estimate", "before", "gradient"}}

--- How many volumes of the estimate's extents iterations have with an acceleration.
function estimates.count(acceleration)
    return #NAMES[acceleration]
end

-- The volumes in memory, all of which self.made has.
local function make_all(self, acceleration, make)
    local function one()
        self.made[#self.made + 1] = make()
        return self.made[#self.made]
    end
    if acceleration == "biggs_andrews" then
        self.ring, self.gradients = {}, {}
        for i = 1, self.in_place and 2 or 3 do
            self.ring[i] = one()
        end
        for i = 1, self.twice and 2 or 1 do
            self.gradients[i] = one()
        end
        return
    end
    for slot = 0, self.in_place and 0 or 1 do
        self.slots[slot] = {one()}
        if acceleration == "heavy_ball" then
            self.slots[slot][2] = slot == 1 and not self.twice and self.slots[0][2] or one()
        end
    end
end

--- The estimates of a run. run: kept (nil or the state of the journal), plan, two (the tiles of the
-- estimate), home (where arrays are), job; `apart`: what an iteration reads of the estimate is not
-- changed by it; make() makes a volume at the place of the plan. Close them.
function estimates.new(run, shape, acceleration, apart, make)
    local self = setmetatable({run = run, kept = run.kept, shape = shape, shift = 0, latest = 1,
        names = NAMES[acceleration], made = {},
        buffered = run.kept and run.plan.place == "file" or false, twice = run.plan.twice,
        saved_at = core.system.clock(), saving = 0, slots = {}}, methods)
    self.in_place = not (self.buffered or self.twice or apart)
    local _ <close> = on_error(function() self:__close() end)
    if self.buffered then
        for slot = 0, 1 do
            self.slots[slot] = files_of(self, slot)
            table.move(self.slots[slot], 1, #self.names, #self.made + 1, self.made)
        end
    else
        make_all(self, acceleration, make)
    end
    return self
end

-- The n-th of a list whose elements take turns.
local function turn(list, n)
    return list[n % #list + 1]
end

--- What iteration k has made, {estimate, before, gradient}; 0: what the first one begins with.
function methods:at(k)
    if self.ring then
        return {turn(self.ring, k), turn(self.ring, k - 1), turn(self.gradients, k)}
    end
    return self.slots[self.in_place and 0 or (k + self.shift) % 2]
end

--- The volumes that iteration k writes: those of at(k). With a gradient that is the second one, and
-- the estimate before, which is there already in a ring, the last one.
function methods:written(k)
    local all = self:at(k)
    return all[3] and {all[1], all[3], not self.ring and all[2] or nil} or all
end

function methods:__close()
    for _, volume in ipairs(self.made) do
        if volume.array then
            volume.array:release()
        end
        volume:close()
    end
    self.made, self.slots = {}, {}
end

-- Copies the tiles of one list of volumes to another.
local function copy(self, from, to)
    local host = core.device.open "host"
    for i, volume in ipairs(from) do
        for _, tile in ipairs(self.run.two) do
            local block <close> = volume:read(tile.first, tile.extents, volume.array
                and self.run.home or host, host)
            to[i]:write(tile.first, block, host)
        end
    end
end

--- Is what an iteration reads whole until the next one begins?
function methods:whole()
    return (self.buffered or self.twice) and true or false
end

--- The last iteration whose estimate is kept whole, 0 if there is none; at(k) has it then.
function methods:found()
    local _, none = estimates.sections(0)
    for i, each in ipairs(self.kept and self.kept:noted(#self.run.two) or {}) do
        local section, slot = each[1], each[2].slot
        if section % 2 == none % 2 and slot and i <= 2 * LOOK then
            local files <close> = files_of(self, slot)
            if select(3, self.kept:pending(section, self.run.two, files)) == 0 then
                local k = section // 2
                self.shift, self.latest, self.saved = (slot - k) % 2, slot, k
                if not self.buffered then
                    copy(self, files, self:at(k))
                end
                return k
            end
        end
    end
    return 0
end

--- The number of the file that has what iteration k makes, for its notes.
function methods:slot(k)
    return (k + self.shift) % 2
end

--- Writes an estimate in memory to a file, if it is time, or in any case (the last iteration).
function methods:save(k, last)
    if not self.kept or self.buffered or self.saved == k then
        return
    end
    local began = core.system.clock()
    if not last and (core.dry.on() or began - self.saved_at < math.max(tile_journal.SECONDS,
        self.saving / PART)) then
        return
    end
    local slot = 1 - self.latest
    do
        local files <close> = files_of(self, slot)
        copy(self, self:at(k), files)
        local _, section = estimates.sections(k)
        for _, tile in ipairs(self.run.two) do
            self.kept:note(section, tile, nil, {slot = slot}, files)
        end
    end
    self.latest, self.saved, self.saved_at = slot, k, core.system.clock()
    self.saving = self.saved_at - began
end

--- Removes the files but those of the last iteration.
function methods:settle(k)
    if self.kept then
        local keep = self.buffered and self:slot(k) or self.latest
        for _, name in ipairs(self.names) do
            self.kept:drop(("%s-%d"):format(name, 1 - keep))
        end
        self.kept:drop "ratio"
    end
end

return estimates
