local mb = require "moonbeam"
local helper = require "spec.helper"

describe("blend_seam", function()
    helper.each_device(function(device, it)
        it("joins and blends by hand on " .. device, function()
            local a <close> = mb.array({{1, 2, 3, 4, 5, 10, 20, 30, 40}}, {device = device})
            for overlap, want in pairs {[0] = {1, 2, 3, 4, 5, 10, 20, 30, 40},
                {1, 2, 3, 4, 7.5, 20, 30, 40}, {1, 2, 3, 4, 20, 30, 40},
                {1, 2, 3, 12, 30, 40}} do
                local result <close> = mb.blend_seam(a, 5, overlap)
                helper.assert_close({want}, result, 1e-6)
            end
        end)

        it("puts together what was cut apart on " .. device, function()
            local whole <close> = mb.random({3, 4, 700}, {seed = 1, device = device})
            local left <close> = whole:view(mb.all, mb.all, {1, 400})
            local right <close> = whole:view(mb.all, mb.all, {311, 700})
            local both <close> = mb.empty({3, 4, 790}, {device = device})
            local first <close> = both:view(mb.all, mb.all, {1, 400})
            local second <close> = both:view(mb.all, mb.all, {401, 790})
            left:cast("f32", {out = first})
            right:cast("f32", {out = second})
            local result <close> = mb.blend_seam(both, 400, 90)
            assert.is_true(whole:to_string() == result:to_string())
        end)
    end)

    it("refuses what makes no sense", function()
        local a <close> = mb.zeros {2, 9}
        assert.matches("seam is 9", (helper.failure(mb.blend_seam, a, 9, 1)))
        assert.matches("overlap is 5; the images have 5 and 4 columns", (helper.failure(
            mb.blend_seam, a, 5, 5)))
    end)
end)
