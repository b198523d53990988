--- Who works on the blocks of a pipeline: all ranks of the run (moonbeam.cluster), or this process
-- alone.
--
-- Blocks are dealt: a rank takes the next one when it begins to read it. What rank 0 measures, and
-- what is left of an interrupted run, is told to all. All ranks have the same plan, because they
-- plan with the least budget of any; before the first block of a section each has its memory.

local cluster = require "moonbeam.cluster"
local core = require "moonbeam.core"
local disk_space = require "moonbeam.pipeline.disk_space"
local fail = require "moonbeam.internal.fail"
local stops = require "moonbeam.stream.stops"

local team = {}

-- ---- alone ----

local alone = {rank = 0, size = 1}

function alone.once(fn)
    return fn()
end

function alone.gather(value)
    return {value}
end

function alone.least(list)
    return list
end

function alone.deal(blocks, bar)
    return blocks, bar
end

function alone.dealt()
    return {}
end

function alone.sum(counts)
    return counts
end

-- ---- all ranks ----

local all = {rank = cluster.rank, size = cluster.size, once = cluster.once,
    gather = cluster.gather}

--- The least of each number of a list, over all ranks that have it: false is no number. Raises
-- where these have lists of different lengths: `what` is what the numbers are of.
function all.least(list, what)
    local least = table.move(list, 1, #list, 1, {})
    cluster.agree(#list, what)
    for _, own in ipairs(cluster.gather(list)) do
        for i, value in ipairs(own) do
            least[i] = least[i] and value and math.min(least[i], value) or least[i] or value
        end
    end
    return least
end

-- Progress of all ranks together, which rank 0 shows. `untold`: what this rank has done that rank 0
-- does not know of yet; `asked`: the seconds that it has asked for blocks.
local counter = {}
counter.__index = counter

function counter:step(count)
    self.untold = self.untold + count
    self:show()
end

function counter:show()
    local done = self.bar and all.rank == 0 and cluster.done() + self.untold or 0
    if done > self.shown then
        self.bar:step(done - self.shown)
        self.shown = done
    end
end

function counter:tell()
    local count = self.untold
    self.untold = 0
    return count
end

--- Blocks as a list for moonbeam.stream, whose elements are taken from the deal when they are asked
-- for; and what counts the rows that are done, like the given progress.
function all.deal(blocks, bar)
    local take = cluster.deal(blocks)
    local own = setmetatable({bar = bar, untold = 0, shown = 0, asked = 0}, counter)
    return setmetatable({}, {__index = function(list, n)
        if n ~= rawlen(list) + 1 then
            return nil
        end
        local began = core.system.clock()
        local block = take(own:tell())
        own.asked = own.asked + core.system.clock() - began
        rawset(list, n, block)
        return block
    end}), own
end

--- Returns when all ranks have come to the end of a deal: the blocks that ranks have left; nil if
-- there are some and no rank is left. `ended`: {all = the number of blocks that were dealt, done =
-- of those that this rank has finished, left = its other ones, over = does it do no more blocks?}.
function all.dealt(count, ended)
    local blocks, alive, done = {}, false, 0
    core.cluster.tell(count:tell())
    local ranks = cluster.gather(ended, function()
        count:show()
        if stops.waits() then -- nothing of this rank is in flight
            core.system.hold_stop(false)
        end
    end)
    count:show()
    for _, own in ipairs(ranks) do
        table.move(own.left, 1, #own.left, #blocks + 1, blocks)
        alive, done = alive or not own.over, done + own.done
    end
    if not alive and done < ended.all then
        return nil
    elseif done + #blocks ~= ended.all then
        fail("internal", "pipeline:run", nil, "%d of %d blocks were finished by the ranks", done,
            ended.all)
    end
    return blocks
end

--- The sums over all ranks of counts by name, lists of numbers.
function all.sum(counts)
    local sums = {}
    for _, own in ipairs(cluster.gather(counts)) do
        for name, list in pairs(own) do
            sums[name] = sums[name] or {}
            for i, count in ipairs(list) do
                sums[name][i] = (sums[name][i] or 0) + count
            end
        end
    end
    return sums
end

-- ---- which ----

--- The team of a job with these options: `ranks`, the number of ranks that share its blocks.
function team.of(options)
    local ranks = options.ranks or 1
    return ranks > 1 and ranks == cluster.size and not core.dry.on() and all or alone
end

--- How many ranks share a pipeline's blocks, unless its options say false or, for a plan, how many.
function team.ranks(given)
    local count = given or cluster.size
    return given ~= false and count > 1 and count or nil
end

--- Is this the rank that writes pictures, and tells what all know?
function team.speaks()
    return cluster.rank == 0
end

-- ---- stores ----

--- A name for the file of a store in no journal, the same on all ranks.
function team.store_path(own, place, number)
    return own.once(function()
        return ("%s/moonbeam-store-%08x-%d"):format(core.system.real_path(place.scratch)
            or place.scratch, math.random(0) & 0xffffffff, number)
    end)
end

--- The folder for stores of a result of so many ranks (nil: one), unless another one is given.
function team.scratch_of(path, given, ranks)
    return given or ranks and disk_space.folder_of(path) or nil
end

return team
