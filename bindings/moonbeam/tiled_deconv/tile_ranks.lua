-- Tiles that several ranks share (moonbeam.cluster): which of them this rank does, and what it
-- notes. A rank takes the next tile when it is free.
--
-- Files and their journal belong to rank 0. The others write to the same files, on a disk that all
-- see, and note their tiles in a journal of their own in the folder ("journal-3"), which rank 0
-- takes over when a later process goes on. All ranks cut, measure and decide alike.

local core = require "moonbeam.core"
local cluster = require "moonbeam.cluster"
local records = require "moonbeam.result.records"
local stops = require "moonbeam.stream.stops"
local tables = require "moonbeam.internal.tables"
local unfinished = require "moonbeam.result.unfinished"

local tile_ranks = {}

--- Do they share the work here? Not in a plan, which each makes for itself.
function tile_ranks.shared()
    return cluster.size > 1 and not core.dry.on()
end

--- Is this the rank that writes the result? Also in the plan of a rank.
function tile_ranks.leads()
    return cluster.rank == 0
end

tile_ranks.rank, tile_ranks.size = cluster.rank, cluster.size

--- How many calls this rank has made that all ranks make.
tile_ranks.calls = 0

-- The same function, counted.
local function counted(fn)
    return function(...)
        tile_ranks.calls = tile_ranks.calls + 1
        return fn(...)
    end
end

tile_ranks.once, tile_ranks.wait = counted(cluster.once), counted(cluster.barrier)
tile_ranks.agree, tile_ranks.all = counted(cluster.agree), counted(cluster.gather)
local gather, deal = tile_ranks.all, counted(cluster.deal)

--- Has this rank made calls since `calls`, which the others would not make again?
function tile_ranks.is_bound(calls)
    return tile_ranks.shared() and tile_ranks.calls > calls
end

--- Calls make() on rank 0, and after that on the others. Returns what it returns.
function tile_ranks.first(make)
    if not tile_ranks.shared() then
        return make()
    end
    local made
    if cluster.rank == 0 then
        made = make()
    end
    tile_ranks.wait()
    return made or make()
end

--- The elements of a list that this rank takes, one when it asks for it: a list for moonbeam.stream
-- whose elements are dealt to all ranks. Without other ranks the list itself.
function tile_ranks.deal(list)
    if not tile_ranks.shared() then
        return list
    end
    local take = deal(list)
    return setmetatable({}, {__index = function(own, n)
        if n ~= rawlen(own) + 1 then
            return nil
        end
        local element = take()
        rawset(own, n, element)
        return element
    end})
end

--- Waits for the tiles of all ranks. `rows`: what this rank's tiles have given, lists by number.
-- Returns those of all.
function tile_ranks.gather(rows)
    return tables.merged(table.unpack(gather(rows, function()
        if stops.waits() then -- nothing of this rank is in flight
            core.system.hold_stop(false)
        end
    end)))
end

-- ---- what a rank notes that is not the first ----

local notes = {}
notes.__index = notes

--- What stands for result/unfinished.lua on other ranks than the first. `begun` is what that one
-- has: {folder, resumed, values, was}.
function tile_ranks.notes(begun)
    local self = setmetatable({folder = begun.folder, resumed = begun.resumed,
        values = begun.values, was = begun.was, sections = {}}, notes)
    self.run = core.unfinished.join(self.folder, "journal-" .. cluster.rank, true)
    return self
end

function notes:file_path(name)
    return self.folder .. "/" .. name
end

function notes:note_rows(...)
    self.run:append(records.text {"rows", ...})
end

--- Rank 0 notes values.
function notes:note_value(name, value, verdict)
    self.values[name] = {value = value, verdict = verdict}
end

function notes.identify() end

function notes:keeps()
    return unfinished.holds(self.folder)
end

--- The folder goes with that of rank 0.
function notes:remove()
    self:close()
end

function notes:close()
    if self.run then
        self.run:close()
        self.run = nil
    end
end

return tile_ranks
