--- Where the data of a plan rest between two sections, of one process or of several ranks.

local mb = require "moonbeam"
local budget = require "moonbeam.plan.budget"
local store = require "moonbeam.pipeline.store"
local team = require "moonbeam.pipeline.shares.team"

local places = {}

--- What stores may take of the host's memory; nil: what is free when each is planned. Ranks agree
-- once on what each of them has: `agreed` is a table for that.
function places.left(job, agreed)
    local options = job.options
    if (options.ranks or 1) == 1 then
        return options.host_budget
    end
    agreed.host = agreed.host or team.of(options).least({options.host_budget
        or budget.available(mb.device "host")}, "the budget of the host")[1]
    return agreed.host
end

--- The plans of a job's stores (pipeline/store.lua) by the numbers of the sections that make them.
-- They take at most `left` of host memory.
function places.of(job, left)
    local list = {}
    for _, section in ipairs(job.sections) do
        if section.stored then
            local place = store.plan {shape = section.shape, dtype = section.dtype,
                host_budget = left, scratch = job.options.scratch, ranks = job.options.ranks or 1,
                what = ("the store after section %d"):format(section.number)}
            left = left and left - place.host_bytes
            list[section.number] = place
        end
    end
    return list
end

--- Is a store of a job in the memory of several ranks?
function places.are_shared(job)
    for _, place in pairs(job.places) do
        if place.ranks > 1 and place.place == "memory" then
            return true
        end
    end
    return false
end

--- A store of another shape, where it was planned to be.
function places.resized(place, shape)
    return store.plan {shape = shape, dtype = place.dtype, what = place.what,
        scratch = place.scratch, ranks = place.ranks,
        host_budget = place.scratch and 0 or place.host_bytes}
end

return places
