--- Blocks of `mb.chunked` that several ranks share (moonbeam.cluster): every n-th of them each.
-- What is combined is combined in the order of the blocks on every rank, so that it has the bits of
-- one process.

local core = require "moonbeam.core"
local cluster = require "moonbeam.cluster"
local fail = require "moonbeam.internal.fail"
local sinks = require "moonbeam.chunked.sinks"
local tables = require "moonbeam.internal.tables"

local block_ranks = {}

--- Do ranks share the blocks of a job with these options? Raises where their results could not be
-- put together.
function block_ranks.shared(options, combine)
    if not options.ranks or cluster.size == 1 then
        return false
    elseif combine == "none" and type(options.sink) ~= "function" then
        fail("unsupported", "chunked", "sink", "ranks share blocks whose results are combined "
            .. "(combine), or go to a function (sink), which gets those of its rank: give one of "
            .. "them, or leave ranks out")
    end
    return true
end

--- The rows of a block with which all ranks can work: the fewest of any.
function block_ranks.least(rows)
    if not core.dry.on() then
        for _, other in ipairs(cluster.gather(rows)) do
            rows = math.min(rows, other)
        end
    end
    return rows
end

--- Raises an error if memory was refused on some of the ranks, so that their blocks differ.
function block_ranks.agree(rows)
    cluster.agree(rows, "the rows of a block")
end

--- The blocks of this rank.
function block_ranks.share(blocks)
    local own = {}
    for i = cluster.rank + 1, #blocks, cluster.size do
        own[#own + 1] = blocks[i]
    end
    return own
end

--- The bytes of the results of this rank's blocks, which are kept beside the pools until all ranks
-- have come to their end. `count`: how many blocks there are in all.
function block_ranks.kept_bytes(known, count)
    local own = math.max(0, count - cluster.rank + cluster.size - 1) // cluster.size
    return own * core.pool.element_bytes(known.dtype) * tables.product(known.shape)
end

--- What keeps the results of this rank's blocks until all are there: a sink, whose method settle
-- combines those of all ranks, and which counts the bytes that it keeps. `count`: how many blocks
-- there are in all.
function block_ranks.kept(known, count)
    local parts, sink = {}, {bytes = 0}
    local total = sinks.of(nil, known)
    function sink.write(_, slices, first)
        local part <close> = slices:to "host"
        parts[first] = not core.dry.on() and part:to_string() or ""
        sink.bytes = sink.bytes + #parts[first]
    end
    -- The part of a block, as an array.
    local function part_of(text)
        if core.dry.on() then
            return core.array.empty(known.shape, {dtype = known.dtype, device = "host"})
        end
        return core.array.from_string(text, known.shape, {dtype = known.dtype, device = "host"})
    end
    -- The blocks were dealt in turn: the n-th blocks of the ranks follow one another.
    function sink.settle()
        local firsts = tables.keys(parts)
        for n = 1, (count + cluster.size - 1) // cluster.size do
            local all = core.dry.on() and {} or cluster.gather(parts[firsts[n]] or "")
            parts[firsts[n] or false] = nil
            for rank = 1, math.min(cluster.size, count - (n - 1) * cluster.size) do
                local part <close> = part_of(all[rank])
                total:write(part)
            end
        end
        sink.value = total.value
    end
    sink.drop = total.drop
    return sink
end

return block_ranks
