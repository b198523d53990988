--- The memory of a section is committed before its first block (moonbeam.plan.secure). If it is
-- refused, the section is planned again in smaller blocks.

local dry_work = require "moonbeam.pipeline.planning.dry_work"
local plan = require "moonbeam.pipeline.plan"
local secure = require "moonbeam.plan.secure"

local activate = {}

-- The section with its frames read from `scan`.
local function with_scan(section, scan)
    return scan and plan.reading_from(section, scan) or section
end

-- These bytes by the ids of devices, with `more` on the host.
local function with_host(bytes, more)
    local list = {}
    for id, each in pairs(bytes) do
        list[id] = id == "host" and each + more or each
    end
    return list
end

local function rows_text(section)
    return ("%d %s%s"):format(section.count, section.cut,
        section.overlap and ", reading and writing beside" or "")
end

--- Commits the memory of section `number` of a settled plan, whose stores are open. `scan` has its
-- decoded frames, if they were decoded. Returns {made = the plan, section, committed = whether all
-- of its memory is committed, replanned = nil or {section, from, to (rows at a time), reason,
-- text}, budgets = those that have changed (budget.ask)}. In a dry run nothing is committed.
-- Errors: budget (the least block is refused).
function activate.section(made, number, scan)
    local before = made.sections[number]
    local work = {devices = made.job.devices, op = made.job.op,
        what = ("section %d"):format(number)}
    function work.reach(own)
        return dry_work.reach(own.job, with_scan(own.sections[number], scan))
    end
    -- What a section takes is planned with the stores; those that are open are live already.
    local stores = made.job.open_stores.live
    function work.peaks(own)
        return with_host(own.sections[number].reserved, -stores)
    end
    function work.smaller(own, available)
        return plan.again(own, number, with_host(available, stores))
    end
    local own, committed, reason, budgets = secure.commit(work, made)
    local section = own.sections[number]
    return {made = own, section = with_scan(section, scan), committed = committed,
        budgets = budgets, replanned = reason and {section = number, from = before.count,
            to = section.count, reason = reason, text = ("section %d runs in blocks of %s, not of "
                .. "%s, because the memory for these was refused: %s"):format(number,
                rows_text(section), rows_text(before), reason)}}
end

return activate
