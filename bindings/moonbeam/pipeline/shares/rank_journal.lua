--- The journal of a run on several ranks: rank 0 has that of the run (pipeline/journal.lua), the
-- others note the blocks that they have finished in files of their own beside it. What was noted
-- before is looked at by rank 0, and all know of it. A run that goes on may have another number of
-- ranks.

local core = require "moonbeam.core"
local journal = require "moonbeam.pipeline.journal"
local records = require "moonbeam.result.records"

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

function kept_methods.keeps()
    return false -- rank 0 says what is kept
end

local function join(rank, facts)
    facts.run = core.unfinished.join(facts.folder, "journal-" .. rank, true)
    return setmetatable(facts, kept_methods)
end

--- journal.open for a team: the same journal on rank 0, one that tells the others what is left, and
-- theirs.
function rank_journal.open(team, made, path, options)
    local own
    local facts = team.once(function()
        own = journal.open(made, path, options)
        local kept = own and own.kept
        return kept and {folder = kept.folder, resumed = kept.resumed, values = kept.values,
            stores = kept.stores, complete = kept.complete} or nil
    end)
    if team.rank > 0 and facts then
        own = journal.of(made, join(team.rank, facts))
    end
    if own then
        own.team = team
    end
    return own
end

return rank_journal
