local mb = require "moonbeam"
local helper = require "spec.helper"
local inputs = require "spec.fixtures.inputs"
local reference = require "spec.fixtures.scipy_filters"

helper.each_device(function(device, test)
    describe("gaussian_filter on " .. device:match("^%a+"), function()
        for i, case in ipairs(reference.gaussian) do
            test(("is scipy.ndimage.gaussian_filter: %s, %s (%d)"):format(table.concat(case.shape,
                "x"), case.mode, i), function()
                local a <close> = inputs.array(case.shape, 1, device)
                local b <close> = mb.gaussian_filter(a, case.sigma,
                    { mode = case.mode, axes = case.axes, value = 0.25,
                    truncate = case.truncate })
                assert.same(case.shape, b.shape)
                helper.assert_close(case.result, b, 1e-6)
            end)
        end

        test("spreads a point into a normalized Gaussian along every axis", function()
            for axis = 1, 3 do
                local shape, at, sigma = { 5, 6, 7 }, { 3, 3, 3 }, { 0, 0, 0 }
                shape[axis], at[axis], sigma[axis] = 101, 51, 4
                local a <close> = mb.zeros(shape, { device = device })
                local voxel <close> = a:view({ at[1], at[1] }, { at[2], at[2] }, { at[3], at[3] })
                voxel:fill(1)
                local b <close> = mb.gaussian_filter(a, sigma)
                assert.near(1, b:sum(), 1e-6)
                local peak = b:item(table.unpack(at))
                assert.near(1 / (math.sqrt(2 * math.pi) * 4), peak, 1e-4)
                at[axis] = at[axis] + 8
                assert.near(math.exp(-2), b:item(table.unpack(at)) / peak, 1e-5)
                at[axis] = at[axis] + 9 -- beyond 4 sigma
                assert.equal(0, (b:item(table.unpack(at))))
            end
        end)

        test("spreads what is not a number as far as its window, along every axis and no further",
            function()
            for _, sigma in ipairs { 0.5, 1, 2.5, 200 } do
                local radius = math.floor(4 * sigma + 0.5)
                for axis = 1, 2 do
                    local shape = { 3, 3 }
                    shape[axis] = 2 * radius + 600
                    local a <close> = mb.ones(shape, { device = device })
                    local at, middle = { mb.all, mb.all }, radius + 301
                    at[axis] = { middle, middle }
                    local bad <close> = a:view(table.unpack(at))
                    bad:fill(0 / 0)
                    local b <close> = mb.gaussian_filter(a, sigma, { axes = axis })
                    for _, place in ipairs { middle - radius - 1, middle - radius, middle,
                        middle + radius, middle + radius + 1 } do
                        local index = { 2, 2 }
                        index[axis] = place
                        local value = b:item(table.unpack(index))
                        assert.equal(math.abs(place - middle) <= radius, value ~= value,
                            ("sigma %g, %d"):format(sigma, place - middle))
                    end
                end
            end
        end)

        test("leaves an array as it is with sigma 0", function()
            local a <close> = mb.random({ 6, 7 }, { dtype = "u16", seed = 3, high = 1000,
                device = device })
            local b <close> = mb.gaussian_filter(a, 0)
            assert.equal("f32", b.dtype)
            helper.assert_close(a, b, 0)
        end)
    end)
end)

describe("gaussian_filter", function()
    it("explains what does not fit", function()
        local a <close> = mb.ones { 4, 5 }
        assert.matches("sigma", (helper.failure(mb.gaussian_filter, a, -1)))
        assert.matches("one for each of the 1 axes",
            (helper.failure(mb.gaussian_filter, a, { 1, 2 }, { axes = 2 })))
    end)
end)
