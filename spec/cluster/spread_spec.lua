-- Memory that is spread over ranks: what any rank writes, any rank reads, while owners are busy.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

-- Memory for an array of 7 x 6 x 5 numbers, of which each rank keeps some of the first axis.
local OPEN <const> = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local cluster = mb.cluster
local SHAPE <const>, STEPS <const> = {7, 6, 5}, {6 * 5 * 4, 5 * 4, 4}
-- In pieces of so many numbers.
local function opened(piece)
    local kept = (SHAPE[1] + cluster.size - 1) // cluster.size
    local share = mb.zeros({kept, 6, 5}, {dtype = "f32", device = "host"})
    local pieces = mb.zeros({4 * piece}, {dtype = "f32", device = "host"})
    local spread = core.cluster.spread(7 * STEPS[1], share, pieces)
    cluster.barrier()
    return spread, share
end
local function block(shape, seed)
    return mb.random(shape, {dtype = "f32", low = -1, high = 1, seed = seed, device = "host"})
end
]]

-- All ranks write columns, lines and frames that they are dealt, and then read everything.
local ALL_WAYS <const> = [[
local function moved(spread, carriers, data, offset, steps, writing)
    if not carriers then
        spread[writing and "write" or "read"](spread, data, offset, steps)
        return
    end
    local own <close> = core.carrier.open {device = "host", writing = writing, threads = 3,
        pinned = "1Mi"}
    own:carry(spread, data, offset, steps)
    own:finish()
end
local values = block(SHAPE, 1)
local function all_ways(piece, carriers)
    local spread <close>, share = opened(piece)
    for axis = 1, 3 do
        share:fill(0)
        cluster.barrier()
        for first in function() return cluster.next(1, SHAPE[axis], {}) end do
            local ranges = {mb.all, mb.all, mb.all}
            ranges[axis] = {first, first}
            local view <close> = values:view(table.unpack(ranges))
            local own <close> = view:copy()
            moved(spread, carriers, own, (first - 1) * STEPS[axis], STEPS, true)
        end
        cluster.barrier()
        for other = 1, 3 do
            for index = 1, SHAPE[other] do
                local ranges = {mb.all, mb.all, mb.all}
                ranges[other] = {index, index}
                local view <close> = values:view(table.unpack(ranges))
                local got <close> = mb.full(view.shape, 7, {device = "host"})
                moved(spread, carriers, got, (index - 1) * STEPS[other], STEPS, false)
                local expected <close> = view:copy()
                assert(got:to_string() == expected:to_string())
            end
        end
        cluster.barrier()
    end
end
for _, piece in ipairs {5, 9, 1000} do -- a line, almost two, everything
    all_ways(piece, false)
    all_ways(piece, true)
end
print "same"
]]

describe("memory that is spread over ranks", function()
    local folder, session
    setup(function()
        folder = files.folder()
        session = ranks.session(folder)
    end)
    teardown(function()
        session:close()
        files.remove(folder)
    end)

    ranks.it("gives all ranks what any of them wrote", function()
        for count = 1, 4 do
            local output, status = session:run(count, OPEN .. ALL_WAYS)
            assert.equal(0, status, output)
            assert.equal(count, select(2, output:gsub("same", "")))
        end
    end)

    ranks.it("is given while its owner is busy", function()
        local output, status = session:run(2, OPEN .. [[
            local spread <close> = opened(1000)
            if cluster.rank == 1 then
                local own <close> = block({1, 6, 5}, 1)
                spread:write(own, 6 * STEPS[1], STEPS)
                cluster.barrier()
                local over = mb.system.clock() + 2
                while mb.system.clock() < over do end
                cluster.barrier()
            else
                cluster.barrier()
                local began = mb.system.clock()
                local own, got = block({1, 6, 5}, 1), mb.zeros({1, 6, 5}, {device = "host"})
                for _ = 1, 100 do
                    spread:read(got, 6 * STEPS[1], STEPS)
                end
                assert(got:to_string() == own:to_string())
                assert(mb.system.clock() - began < 1.5, mb.system.clock() - began)
                cluster.barrier()
            end
            local began = mb.system.clock()
            spread:close() -- nothing is under way
            assert(mb.system.clock() - began < 5)
        ]])
        assert.equal(0, status, output)
    end)

    ranks.it("is read in many pieces both ways, and closed at once", function()
        local output, status = session:run(2, [[
            local mb = require "moonbeam"
            local cluster, core = mb.cluster, require "moonbeam.core"
            local COUNT <const>, PIECE <const> = 1 << 20, 1 << 15 -- numbers
            local share = mb.full({COUNT}, cluster.rank, {device = "host"})
            local pieces = mb.zeros({4 * PIECE}, {device = "host"})
            local spread <close> = core.cluster.spread(2 * COUNT * 4, share, pieces)
            cluster.barrier()
            for _ = 1, 60 do
                local got <close> = mb.full({COUNT // 1024, 1024}, 7, {device = "host"})
                local other = 1 - cluster.rank
                spread:read(got, other * COUNT * 4, {4096, 4})
                local low <close> = mb.reduce(got, "min")
                local high <close> = mb.reduce(got, "max")
                assert(low:item() == other and high:item() == other)
            end
            cluster.barrier()
            local began = mb.system.clock()
            spread:close()
            assert(mb.system.clock() - began < 5)
        ]])
        assert.equal(0, status, output)
    end)

    ranks.it("is an error to use after it was closed, here or at its owner", function()
        local output, status = ranks.run(folder, 2, OPEN .. [[
            local spread <close> = opened(1000)
            if cluster.rank == 1 then
                spread:close()
                cluster.barrier()
                local ok, problem = pcall(spread.read, spread, block({1, 6, 5}, 1), 0, STEPS)
                assert(not ok)
                print(problem.message)
            else
                cluster.barrier()
                local got = block({1, 6, 5}, 1)
                spread:read(got, 0, STEPS)
                spread:read(got, 6 * STEPS[1], STEPS)
            end
        ]])
        assert.equal(1, status, output)
        assert.matches("this memory has been closed", output)
        assert.matches("rank 0 on %S+: [^\n]*rank 1 has closed the memory that it shares", output)
    end)

    it("is what its arrays hold", function()
        local core = require "moonbeam.core"
        local share <close> = mb.zeros({10}, {dtype = "f32", device = "host"})
        local pieces <close> = mb.zeros({8}, {dtype = "f32", device = "host"})
        assert.matches("48 bytes do not fit into 1 shares of 40 bytes",
            helper.failure(core.cluster.spread, 48, share, pieces))
        local made <close> = core.cluster.spread(40, share, pieces)
        local six <close> = mb.full({6}, 3, {dtype = "f32", device = "host"})
        made:write(six, 16, {4})
        assert.same({0, 0, 0, 0, 3, 3, 3, 3, 3, 3}, share:to_table())
        assert.matches("share 40 bytes", helper.failure(made.write, made, six, 20, {4}))
    end)
end)
