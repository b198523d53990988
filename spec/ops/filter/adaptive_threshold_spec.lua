local mb = require "moonbeam"
local helper = require "spec.helper"
local inputs = require "spec.fixtures.inputs"
local reference = require "spec.fixtures.scipy_filters"

helper.each_device(function(device, test)
    describe("adaptive_threshold on " .. device:match("^%a+"), function()
        for i, case in ipairs(reference.threshold) do
            test(("is a > skimage.filters.threshold_local: %s, %s (%d)"):format(case.method,
                table.concat(case.shape, "x"), i),
                function()
                    local a <close> = inputs.array(case.shape, 2, device)
                    local settings = { method = case.method, offset = case.offset }
                    local b <close> = mb.adaptive_threshold(a, case.size, settings)
                    assert.equal("u8", b.dtype)
                    helper.assert_close(case.result, b, 0)
                    settings.invert, settings.foreground = true, 255
                    local inverse <close> = mb.adaptive_threshold(a, case.size, settings)
                    for k, value in ipairs(helper.flatten(inverse:to_table())) do
                        assert.equal(255 * (1 - case.result[k]), value)
                    end
                end)
        end

        test("finds cells on an uneven background, image by image in a stack", function()
            local a <close> = mb.zeros({ 2, 60, 64 }, { device = device })
            local count = 0
            for y = 1, 60 do
                local row <close> = a:view(mb.all, y, mb.all)
                row:fill(20 * y)
            end
            for _, at in ipairs { { 8, 10 }, { 30, 40 }, { 50, 20 } } do
                local cell <close> = a:view(2, { at[1], at[1] + 2 }, { at[2], at[2] + 3 })
                local brighter <close> = cell + 200
                mb.convert(brighter, "f32", { out = cell })
                count = count + 12
            end
            local counts <close> = a:cast("u16")
            local mask <close> = mb.adaptive_threshold(counts, 15,
                { axes = { 2, 3 }, method = "mean", offset = -90 })
            assert.equal(0, mask[1]:sum())
            local second <close> = mask[2]
            assert.equal(count, second:sum())
            mb.collect()
        end)
    end)
end)

describe("adaptive_threshold", function()
    it("explains even sizes", function()
        local a <close> = mb.ones { 4, 5 }
        assert.matches("odd", (helper.failure(mb.adaptive_threshold, a, 4)))
    end)
end)
