local mb = require "moonbeam"
local helper = require "spec.helper"
local inputs = require "spec.fixtures.inputs"
local reference = require "spec.fixtures.scipy_filters"

helper.each_device(function(device, test)
    describe("box_filter on " .. device:match("^%a+"), function()
        for i, case in ipairs(reference.box) do
            test(("is scipy.ndimage.uniform_filter: %s, %s (%d)"):format(table.concat(case.shape,
                "x"), case.mode, i), function()
                local a <close> = inputs.array(case.shape, 1, device)
                local b <close> = mb.box_filter(a, case.size, { mode = case.mode, axes = case.axes,
                    value = 0.25 })
                assert.same(case.shape, b.shape)
                helper.assert_close(case.result, b, 1e-6)
            end)
        end

        test("is exact on whole numbers and does not drift along a line", function()
            local a <close> = mb.random({ 3, 20000 }, { seed = 1, dtype = "u16", high = 65536,
                device = device })
            local b <close> = mb.box_filter(a, { 1, 5 }, { mode = "wrap" })
            local x, y = a:to_table(), b:to_table()
            for row = 1, 3 do
                for _, i in ipairs { 1, 2, 777, 1024, 1025, 12345, 19999, 20000 } do
                    local sum = 0
                    for k = -2, 2 do
                        sum = sum + x[row][(i - 1 + k) % 20000 + 1]
                    end
                    assert.near(sum / 5, y[row][i], 1e-7 * sum)
                end
            end
        end)

        -- Running sums of such values depend on where they began.
        test("gives packets of rows that do not depend on the rows before them", function()
            local powers <close> = mb.random({ 400, 3 }, { seed = 3, low = -40, high = 40,
                device = device })
            local a <close> = mb.unary(powers, "exp")
            local params = { size = { 9, 1 } }
            local whole <close> = mb.box_filter(a, params.size)
            local compared = 0
            for first = 1, 400, 64 do
                local last = math.min(first + 63, 400)
                local piece = mb.op.piece("box_filter", { a }, params,
                    { axis = 1, first = first, last = last, device = device })
                assert.equal(64, piece.packet)
                local part <close> = a:view({ piece.first, piece.last }, mb.all):copy()
                local b <close> = mb.box_filter(part, params.size)
                local rows <close> = b:view({ piece.skip + 1, piece.skip + last - first + 1 },
                    mb.all)
                local expected <close> = whole:view({ first, last }, mb.all)
                assert.is_true(expected:to_string() == rows:to_string(), "rows from " .. first)
                compared = compared + 1
            end
            assert.equal(7, compared)
        end)

        test("filters long axes of every place, in windows larger than they are", function()
            for _, shape in ipairs { { 300, 3, 5 }, { 3, 300, 5 }, { 3, 5, 300 }, { 2, 40, 1 } } do
                local a <close> = mb.random(shape, { seed = 2, device = device })
                for axis = 1, 3 do
                    local size = { 1, 1, 1 }
                    size[axis] = 2 * shape[axis] -- wraps around exactly twice
                    local b <close> = mb.box_filter(a, size, { mode = "wrap" })
                    local mean <close> = mb.reduce(a, "mean", { axis = axis })
                    for _, at in ipairs { 1, shape[axis] } do
                        local ranges = { mb.all, mb.all, mb.all }
                        ranges[axis] = at
                        local slice <close> = b:view(table.unpack(ranges))
                        helper.assert_close(mean, slice, 1e-6)
                    end
                end
            end
        end)
    end)
end)

describe("box_filter", function()
    it("explains wrong sizes and axes", function()
        local a <close> = mb.ones { 4, 5 }
        assert.matches("whole number", (helper.failure(mb.box_filter, a, 2.5)))
        assert.matches("one for each of the 2 axes",
            (helper.failure(mb.box_filter, a, { 3, 3, 3 })))
        assert.matches("axis 2 twice", (helper.failure(mb.box_filter, a, 3, { axes = { 2, -1 } })))
        assert.matches("1 to 2, or %-1 to %-2",
            (helper.failure(mb.box_filter, a, 3, { axes = { 3 } })))
        assert.matches("did you mean 'symmetric'",
            (helper.failure(mb.box_filter, a, 3, { mode = "symetric" })))
    end)

    it("takes a buffer of lines as scratch on the host, not an array", function()
        local known = mb.op.estimate("box_filter", { { "f32", 64, 256, 256 } }, { size = 9 },
            { device = "host" })
        assert.is_true(known.scratch < 4 * 64 * 256 * 256 / 50, tostring(known.scratch))
    end)
end)
