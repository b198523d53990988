local mb = require "moonbeam"
local helper = require "spec.helper"

-- As in the documentation of scipy.ndimage, continued far beyond one length.
local expected = {
    zero = "0000000abcd000000",
    circular = "bcdabcdabcdabcdab",
    reflect = "bccdcbaabcddcbaab",
    mirror = "bcdcdcbabcdcbabcd",
    replicate = "aaaaaaaabcddddddd",
}
expected.reflect = "bcddcba" .. "abcd" .. "dcbaab"
expected.mirror = "babcdcb" .. "abcd" .. "cbabcd"

describe("embed", function()
    for boundary, text in pairs(expected) do
        it("continues as " .. boundary, function()
            local image <close> = mb.array({ 1, 2, 3, 4 }, { dtype = "u8" })
            local grid <close> = mb.embed(image, { 17 }, { before = { 7 }, boundary = boundary })
            assert.same({ 18 }, grid.shape)
            local values = {}
            for i = 1, 17 do
                local letter = text:sub(i, i)
                values[i] = letter == "0" and 0 or letter:byte() - 96
            end
            values[18] = 0
            helper.assert_close(values, grid, 0)
        end)
    end

    it("is mb.pad of a permuted image, axis by axis", function()
        local image <close> = mb.random({ 5, 3, 4 }, { seed = 2 })
        local turned <close> = image:permute(3, 1, 2)
        local padded <close> = mb.pad(turned, { before = { 2, 0, 3 }, after = { 3, 4, 2 },
            mode = "symmetric" })
        local grid <close> = mb.embed(turned, { 9, 9, 8 },
            { before = { 2, 0, 3 }, boundary = "reflect" })
        local samples <close> = grid:view(mb.all, mb.all, { 1, 8 })
        helper.assert_close(padded, samples, 0)
    end)

    it("says when the image does not fit", function()
        local image <close> = mb.ones { 4 }
        assert.matches("do not fit", (helper.failure(mb.embed, image, { 5 }, { before = { 2 } })))
    end)
end)
