--- The least budget with which a whole call runs, found by plans alone.
--
-- What a call does may depend on its budget: it works in smaller blocks, in another way, with
-- stores elsewhere. So the bytes of a plan without a limit are enough, but not the least. The call
-- is planned once without a limit. Then the interval between a budget that is not enough and one
-- that is gets narrower: by the bytes that a plan takes, by what a plan that does not fit says that
-- it lacks, and by bisection.

local core = require "moonbeam.core"

-- A budget is a multiple of what a pool gives at least.
local UNIT <const> = core.pool.round(1)

-- After so many plans the result may be more than the least by this part of it.
local MANY <const>, PART <const> = 6, 1 / 16

-- So many times in a row what a plan lacks is tried before the interval is halved.
local ROW <const> = 3

-- The bytes of a plan without a limit are made larger at most so often, by an eighth at first.
local MOST <const>, GENTLE <const> = 40, 8

-- What a plan takes is tried as a budget where it is no more than this part of the plan's budget:
-- smaller steps are left to halving.
local LEAP <const> = 3 / 4

-- The budget that is tried next. `state`: low (not enough), high (enough), takes (what the plan
-- with `high` takes), lacks (what the latest plan that does not fit says that it needs), row (how
-- often that was tried), tight (`high` may be the least: it was not found by halving).
local function candidate_of(state)
    local low, high = state.low, state.high
    if state.lacks and state.lacks > low and state.lacks < high and state.row < ROW then
        state.row, state.hinted = state.row + 1, true
        return state.lacks
    elseif state.tight then
        state.tight, state.hinted = false, false
        return high - UNIT
    end
    state.row, state.hinted = 0, false
    if state.takes > low and state.takes <= LEAP * high then
        return state.takes
    end
    return math.max(low + UNIT, (low + high) // (2 * UNIT) * UNIT)
end

local least, running = {}, false

--- Is a search going on? Then plans that nobody would run need not be looked for.
function least.running()
    return running
end

local function search(plan_at, low, exact)
    local takes = plan_at(nil)
    if not takes then
        return nil
    end
    local state = {low = (low or 0) // UNIT * UNIT, high = math.huge, row = 0, hinted = true}
    local function try(bytes)
        local own, lacks = plan_at(bytes)
        if own then
            state.high, state.takes, state.tight = bytes, own, state.hinted
        else
            state.low, state.lacks = math.max(state.low, bytes), lacks
        end
        return own
    end
    -- A plan may need more than it takes where pools have holes, or where it does not tell all.
    local bytes = math.max((takes + UNIT - 1) // UNIT, state.low // UNIT + 1) * UNIT
    for count = 1, MOST do
        if try(bytes) then
            break
        end
        local more = math.max(count < GENTLE and bytes + bytes // 8 or 2 * bytes, state.lacks or 0)
        bytes = (more + UNIT) // UNIT * UNIT
    end
    if state.high == math.huge then
        return nil
    end
    if state.low + UNIT < state.high then
        try(state.low + UNIT) -- to be told what it needs
    end
    local count = 3
    while state.high - state.low > math.max(UNIT, not exact and count >= MANY
        and PART * state.high or 0) do
        try(candidate_of(state))
        count = count + 1
    end
    return state.high
end

--- The least budget for which plan_at has a plan, in bytes; nil where it has none without a limit,
-- and in another search.
-- plan_at(budget) plans the call with a budget, or without a limit (nil). It returns the bytes that
-- this plan takes; where there is no plan, nil and the bytes that it needs at least, if that is
-- known. `low`: a budget that is not enough (default 0). `exact`: with UNIT bytes less there is no
-- plan; otherwise the result may be a sixteenth more than the least, if that is found sooner.
return setmetatable(least, {__call = function(_, plan_at, low, exact)
    if running then
        return nil
    end
    running = true
    local _ <close> = setmetatable({}, {__close = function() running = false end})
    return search(plan_at, low, exact)
end})
