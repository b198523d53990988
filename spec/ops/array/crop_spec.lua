local mb = require "moonbeam"
local helper = require "spec.helper"

describe("crop", function()
    it("takes the middle", function()
        local a <close> = mb.array { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }
        local r <close> = mb.crop(a, { before = { 1, 0 }, after = { 0, 1 } })
        assert.truthy(r.contiguous)
        assert.same({ { 5, 6, 7 }, { 9, 10, 11 } }, r:to_table())
        local s <close> = mb.crop(a, { before = 1, after = 1 })
        assert.same({ { 6, 7 } }, s:to_table())
        local same <close> = mb.crop(a)
        assert.same(a:to_table(), same:to_table())
    end)

    it("undoes pad, for every type and for views", function()
        for _, dtype in ipairs { "u8", "u16", "i32", "f16", "f32", "f64", "c64", "c128" } do
            local a <close> = mb.random({ 4, 6, 5 }, { dtype = dtype, seed = 1, high = 100 })
            local view <close> = a:permute(3, 1, 2)
            local amounts = { before = { 0, 3, 2 }, after = { 5, 1, 0 } }
            local wide <close> = mb.pad(view, amounts)
            local back <close> = mb.crop(wide, amounts)
            assert.same(view:to_table(), back:to_table())
            local turned <close> = wide:permute(3, 2, 1)
            local small <close> = mb.crop(turned, { before = { 2, 3, 0 }, after = { 0, 1, 5 } })
            local expected <close> = view:permute(3, 2, 1)
            assert.same(expected:to_table(), small:to_table())
        end
    end)

    it("may take all of an axis and no more", function()
        local a <close> = mb.zeros { 3, 4 }
        local r <close> = mb.crop(a, { before = { 1, 0 }, after = { 2, 0 } })
        assert.same({ 0, 4 }, r.shape)
        for arg, options in pairs { after = { before = 2, after = 2 },
            before = { before = { 0, 5 } } } do
            local _, err = helper.failure(mb.crop, a, options)
            assert.equal("shape", err.code)
            assert.equal(arg, err.arg)
        end
        local _, err = helper.failure(mb.crop, a, { before = { 1, 1, 1 } })
        assert.equal("argument", err.code)
        assert.equal("before", err.arg)
    end)
end)
