-- mb.chunked on several ranks: what is combined has the bits of one process, a function gets the
-- blocks of its rank, and each rank takes what its blocks take in a dry run.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

-- Sums, extremes and rows of a dataset of 23 planes, in blocks of 2.
local RUN <const> = [[
local mb = require "moonbeam"
local cluster = mb.cluster
local file <close> = assert(mb.h5.open "FOLDER/data.h5")
local data <close> = file:dataset "/data"
local function with(more)
    local all = {axis = 1, block = 2, ranks = true}
    for name, value in pairs(more) do
        all[name] = value
    end
    return all
end
local function hex(array)
    return (array:to_string():gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end
local function said(name, text)
    local same = cluster.agree(text, name)
    if cluster.rank == 0 then
        print(name, same)
    end
end
for _, how in ipairs {"sum", "min", "max"} do
    local value, report = mb.chunked(function(block)
        return mb.reduce(block, how, {axis = 1})
    end, data, with {combine = how})
    said(how, hex(value))
    value:release()
    assert(report.as_planned)
    assert(report.kept_bytes == report.plan.kept_bytes and (cluster.size == 1) ==
        (report.kept_bytes == nil))
    local bytes = 0
    for _, own in ipairs(cluster.gather(report.kept_bytes or 0)) do
        bytes = bytes + own
    end
    assert(cluster.size == 1 or bytes == report.plan.blocks * 9 * 7
        * mb.pool.element_bytes(report.plan.result.dtype))
end
local rows, count = {}, 0
local _, report = mb.chunked(function(block)
    return mb.gaussian_filter(block, {0.5, 0.5, 0.5})
end, data, with {halo = 2, sink = function(block, first, last)
    rows[first] = hex(block)
    count = count + 1
end})
assert(report.as_planned)
local all = {}
for _, own in ipairs(cluster.gather(rows)) do
    for first, bits in pairs(own) do
        all[#all + 1] = ("%02d %s"):format(first, bits)
    end
end
table.sort(all)
said("rows", table.concat(all, ";"))
assert(cluster.size == 1 or count < 12)
]]

describe("mb.chunked on ranks", function()
    local folder, text
    setup(function()
        folder = files.folder()
        local data <close> = mb.random({23, 9, 7}, {seed = 5, low = 0.1, high = 3})
        local file <close> = mb.h5.create(folder .. "/data.h5")
        file:write("/data", data)
        file:finish()
        text = RUN:gsub("FOLDER", folder)
    end)
    teardown(function()
        files.remove(folder)
    end)

    ranks.it("has the bits of one process", function()
        local expected, ok = files.run_script(folder, text, "MOONBEAM_STRICT=1")
        assert.is_true(ok, expected)
        assert.matches("^sum\t%x+\nmin\t%x+\nmax\t%x+\nrows\t01 %x+;03 ", expected)
        for _, count in ipairs {1, 2, 3} do
            local output, status = ranks.run(folder, count, text)
            assert.equal(0, status, output)
            assert.equal(expected, output)
        end
    end)

    ranks.it("has ranks without blocks", function()
        for _, rows in ipairs {8, 23} do
            local output, status = ranks.run(folder, 4, (text:gsub("block = 2", "block = " .. rows)
                :gsub("assert%(cluster.size == 1 or count < 12%)", "")))
            assert.equal(0, status, output)
        end
    end)

    ranks.it("says what cannot be shared", function()
        local output, status = ranks.run(folder, 2, [[local mb = require "moonbeam"
            local array <close> = mb.ones({4, 3})
            mb.chunked("convert", array, {ranks = true, params = {dtype = "f64"}})]])
        assert.equal(1, status)
        assert.matches("ranks share blocks whose results are combined", output, 1, true)
    end)

    ranks.it("says what a rank keeps beside the pools, and where that does not fit", function()
        local output, status = ranks.run(folder, 2, [[local mb = require "moonbeam"
            local array <close> = mb.ones({101, 4, 5})
            local function work(block) return mb.reduce(block, "sum", {axis = 1}) end
            local options = {ranks = true, combine = "sum", block = 1}
            local plan = mb.chunked.plan(work, array, options)
            assert(plan.blocks == 101 and plan.kept_bytes == (51 - mb.cluster.rank) * 4 * 5 * 8)
            mb.device "host":budget(mb.pool.stats("host").live + 7999)
            local ok, problem = pcall(mb.chunked.plan, work, array, options)
            assert(not ok and problem.code == "budget")
            mb.cluster.barrier()
            if mb.cluster.rank == 0 then print(problem.message) end]])
        assert.equal(0, status, output)
        assert.matches("keeps the results of its blocks until all ranks are over, 8160 bytes, and "
            .. "the host has 7999: give larger blocks, or more ranks", output)
    end)

    it("is nothing for one process", function()
        local array <close> = mb.ones({4, 3})
        local whole <close> = mb.chunked(function(block)
            return mb.binary(block, "add", {scalar = 1})
        end, array, {ranks = true})
        assert.equal(24, whole:sum())
        assert.matches("ranks", (helper.failure(mb.chunked, "median", array, {ranks = 3})))
    end)
end)
