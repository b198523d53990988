--- The journal of a run on several ranks: rank 0 has that of the run (pipeline/journal.lua), the
-- others note the blocks that they have finished in files of their own beside it. What was noted
-- before is looked at by rank 0, and all know of it. A run that goes on may have another number of
-- ranks.

local cluster = require "moonbeam.cluster"
local core = require "moonbeam.core"
local journal = require "moonbeam.pipeline.journal"
local records = require "moonbeam.result.records"
local unfinished = require "moonbeam.result.unfinished"

local rank_journal = {}

-- What stands for result/unfinished.lua on ranks after the first: the same fields, and records of
-- finished rows.
local kept_methods = {}
kept_methods.__index = kept_methods

function kept_methods:note_rows(number, first, last, hash, tallies)
    self.run:append(records.text {"rows", number, first, last, hash, tallies})
end

function kept_methods:close()
    self.run:close()
end

function kept_methods.note_value() end
function kept_methods.note_section() end
function kept_methods.drop_store() end
function kept_methods.remove() end

--- Rank 0 says what is kept, unless it is this rank that speaks.
function kept_methods:keeps()
    return core.cluster.speaks() and unfinished.holds(self.folder)
end

function kept_methods:count(number)
    return unfinished.count(self.folder, number)
end

local function join(rank, facts)
    facts.run = core.unfinished.join(facts.folder, "journal-" .. rank, true)
    return setmetatable(facts, kept_methods)
end

-- Raises where the ranks would make different results: another program, scan, recipe or name. A
-- scan on the disk of each node is the same if name and size are; its time may be another one.
local function check_same(made, path, options)
    local list = journal.identity(made, options)
    list[#list + 1] = {"the result", core.system.real_path(path:match "^(.*)/[^/]*$" or ".") or "?"}
    list[#list + 1] = {"its name", path:match "[^/]*$"}
    for _, each in ipairs(list) do
        if each[1] ~= "devices" then -- rank_run.lua tells of those
            cluster.agree(each[2]:gsub(", changed at [%d.]+", ""), each[1])
        end
    end
end

--- journal.open for a team: the same journal on rank 0, one that tells the others what is left, and
-- theirs. Raises where the ranks do not work on the same run.
function rank_journal.open(team, made, path, options)
    if team.size > 1 then
        check_same(made, path, options)
    end
    local own
    local facts = team.once(function()
        own = journal.open(made, path, options)
        local kept = own and own.kept
        return kept and {folder = kept.folder, resumed = kept.resumed, values = kept.values,
            stores = kept.stores, complete = kept.complete} or nil
    end)
    if team.rank > 0 and facts then
        own = journal.of(made, join(team.rank, facts), options.tell)
    end
    team.gather(true) -- rank 0 removes the folder where it fails next
    if own then
        own.team = team
    end
    return own
end

return rank_journal
