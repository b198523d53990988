-- The hashes of what carriers write: sums over lines, whatever the pieces.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local SHAPE = {40, 30, 1000} -- 4.8 MB: several pieces of the smallest slots

describe("the hashes of a carrier", function()
    local folder, values

    before_each(function()
        folder = files.folder()
        values = mb.random(SHAPE, {seed = 3, device = "host"})
    end)
    after_each(function()
        values:release()
        files.remove(folder)
    end)

    local function carrier_of(options)
        options = options or {}
        return core.carrier.open {device = "host", writing = true, hashes = true,
            threads = options.threads or 2, pinned = options.pinned or "1Mi"}
    end

    -- The sum for blocks of frames {first, last}, written to a dataset.
    local function sum_of(blocks, options)
        local file <close> = core.h5.scratch(folder)
        local dataset = file:create_dataset("/data", {shape = SHAPE, early = true})
        assert.is_true(file:rest())
        local carrier <close> = carrier_of(options)
        local from = carrier:mark()
        for _, block in ipairs(blocks) do
            local own <close> = values:view(block)
            carrier:carry(dataset, own, block)
        end
        carrier:finish()
        return carrier:hash(from, carrier:mark())
    end

    it("do not depend on pieces, threads, blocks and their order", function()
        local whole = sum_of {{1, 40}}
        assert.is_true(math.type(whole) == "integer" and whole ~= 0)
        assert.equal(whole, sum_of({{1, 40}}, {threads = 1, pinned = "16Mi"}))
        assert.equal(whole, sum_of({{1, 40}}, {threads = 4, pinned = "700Ki"}))
        assert.equal(whole, sum_of {{21, 40}, {1, 7}, {8, 20}})
        local parts = 0
        for _, block in ipairs {{1, 7}, {8, 20}, {21, 40}} do
            parts = parts + sum_of {block}
        end
        assert.equal(whole, parts)
    end)

    it("depend on every byte and its place", function()
        local before = sum_of {{1, 40}}
        local one <close> = values:view({40, 40}, {30, 30}, {1000, 1000})
        one:fill(-1)
        local changed = sum_of {{1, 40}}
        assert.not_equal(before, changed)
        values:fill(0)
        assert.not_equal(sum_of {{1, 20}}, sum_of {{21, 40}})
    end)

    it("are those of the marks that are asked for, once", function()
        local file <close> = core.h5.scratch(folder)
        local dataset = file:create_dataset("/data", {shape = SHAPE, early = true})
        file:rest()
        local carrier <close> = carrier_of()
        local marks = {carrier:mark()}
        for i = 1, 4 do
            local own <close> = values:view {i * 10 - 9, i * 10}
            carrier:carry(dataset, own, {i * 10 - 9, i * 10})
            marks[i + 1] = carrier:mark()
        end
        carrier:finish()
        local third = carrier:hash(marks[3], marks[4])
        assert.equal(sum_of {{21, 30}}, third)
        assert.equal(sum_of {{1, 20}, {31, 40}}, carrier:hash(0, marks[5]))
        assert.equal(0, carrier:hash(0, marks[5]))
    end)

    it("are those of files of plain elements", function()
        local file <close> = core.rawfile.scratch(folder .. "/.")
        file:resize(values.bytes)
        local carrier <close> = carrier_of()
        carrier:carry(file, values, 0, {30 * 1000 * 4, 1000 * 4, 4})
        carrier:finish()
        assert.equal(sum_of {{1, 40}}, carrier:hash(0, carrier:mark()))
        -- Rows of all frames: what a section that is cut by rows stores of frames.
        local sum = 0
        for _, rows in ipairs {{1, 13}, {14, 30}} do
            local view <close> = values:view(mb.all, rows)
            local own <close> = view:copy()
            local from = carrier:mark()
            carrier:carry(file, own, (rows[1] - 1) * 4000, {30 * 1000 * 4, 1000 * 4, 4})
            carrier:finish()
            sum = sum + carrier:hash(from, carrier:mark())
        end
        assert.equal(sum_of {{1, 40}}, sum)
    end)

    it("are refused where there are none", function()
        local carrier <close> = core.carrier.open {device = "host", writing = true}
        assert.matches("open it with hashes = true", (helper.failure(carrier.hash, carrier, 0, 1)))
        assert.matches("only a carrier that writes has hashes",
            (helper.failure(core.carrier.open, {device = "host", hashes = true})))
    end)
end)
