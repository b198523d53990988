-- Tags: begun and ended by hand, one stack a coroutine, and a column of ledgers.

local helper = require "spec.helper"
local mb = require "moonbeam"

describe("a tag", function()
    local function tag_of_next()
        local a <close> = mb.pool.alloc(512)
        assert.equal(512, a.bytes)
        local blocks = mb.pool.blocks()
        return blocks[#blocks].tag
    end

    before_each(function()
        mb.collect()
        assert.equal(0, mb.pool.stats().blocks)
    end)

    it("stays open until it is ended, by name or from within", function()
        mb.pool.tag("filter")
        mb.collect() -- nobody refers to it
        mb.pool.tag("inner")
        assert.same({"filter", "inner"}, mb.pool.tags())
        assert.equal("inner", tag_of_next())
        mb.pool.end_tag()
        assert.equal("filter", tag_of_next())
        mb.pool.tag("a")
        mb.pool.tag("b")
        mb.pool.end_tag("filter")
        assert.same({}, mb.pool.tags())
        assert.equal("", tag_of_next())
        assert.matches("no tag is open", (helper.failure(mb.pool.end_tag)))
        assert.matches("no tag 'filter' is open", (helper.failure(mb.pool.end_tag, "filter")))
    end)

    it("is ended by close, once, with those inside it", function()
        local outer = mb.pool.tag("outer")
        mb.pool.tag("inner")
        outer:close()
        assert.same({}, mb.pool.tags())
        local later = mb.pool.tag("later")
        outer:close()
        assert.same({"later"}, mb.pool.tags())
        later:close()
    end)

    it("marks its own coroutine alone", function()
        local first = coroutine.wrap(function()
            local _ <close> = mb.pool.tag("first")
            coroutine.yield(tag_of_next())
            coroutine.yield(tag_of_next())
        end)
        local second = coroutine.wrap(function()
            coroutine.yield(tag_of_next())
            mb.pool.tag("second")
            coroutine.yield(tag_of_next())
        end)
        assert.equal("first", first())
        assert.equal("", second())
        assert.equal("", tag_of_next())
        assert.equal("first", first())
        assert.equal("second", second())
        assert.same({}, mb.pool.tags())
        first()
        second = nil -- luacheck: ignore
        mb.collect() -- and with it the tag that it left open
        assert.equal("", tag_of_next())
    end)

    it("is refused beyond 32, and leaves the others open", function()
        for i = 1, 32 do
            mb.pool.tag("t" .. i)
        end
        assert.matches("32 tags are open", (helper.failure(mb.pool.tag, "one more")))
        assert.equal(32, #mb.pool.tags())
        mb.pool.end_tag("t1")
        assert.same({}, mb.pool.tags())
    end)

    it("is a column of ledgers, planned as measured", function()
        local function work()
            local a <close> = mb.zeros({64, 64})
            local tag <close> = mb.pool.tag("filter") -- luacheck: ignore
            mb.box_filter(a, 3):release()
        end
        local planned, measured = mb.dry_run(work), mb.ledger(work)
        assert.is_true(planned == measured)
        local tags = {}
        for i, row in ipairs(measured:rows()) do
            tags[i] = row.label .. ":" .. row.tag
        end
        assert.same({"zeros:", "box_filter:filter", "release:filter", "release:"}, tags)
        assert.matches("line%s+tag%s+keep", tostring(measured))
        assert.matches("\"tag\":\"filter\"", measured:to_json())
        planned.list[2].tag = "other"
        assert.equal(1, #planned:diff(measured))
        local plain = mb.ledger(function()
            mb.zeros({8}):release()
        end)
        assert.is_nil(tostring(plain):find "line%s+tag")
    end)
end)
