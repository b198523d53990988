local mb = require "moonbeam"
local helper = require "spec.helper"

-- One frame as nested tables: new[z] = (1 - f) old[z + s0] + f old[z + s0 + 1], zeros outside.
local function shifted(frame, shift)
    local s0 = math.floor(shift)
    local f = shift - s0
    local result = {}
    for z = 1, #frame do
        result[z] = {}
        for x = 1, #frame[1] do
            local low, high = frame[z + s0], frame[z + s0 + 1]
            result[z][x] = (low and (1 - f) * low[x] or 0) + (f ~= 0 and high and f * high[x] or 0)
        end
    end
    return result
end

local function expected(stack, shifts, indices)
    local result = {}
    for j, frame in ipairs(stack) do
        result[j] = shifted(frame, shifts[indices and indices[j] or j])
    end
    return result
end

-- 17 radios of 13 x 11, value 100 + row.
local function radios(device)
    local frames = {}
    for k = 1, 17 do
        frames[k] = {}
        for z = 1, 13 do
            frames[k][z] = {}
            for x = 1, 11 do
                frames[k][z][x] = 100 + z - 1
            end
        end
    end
    return mb.array(frames, { device = device }), frames
end

local function shifts_from(first, count, step)
    local shifts = {}
    for k = 1, count do
        shifts[k] = first + (k - 1) * (step or 1)
    end
    return shifts
end

describe("vertical_shift", function()
    helper.each_device(function(device, it)
        it("passes the published test, apart and in place, on " .. device, function()
            local stack <close>, frames = radios(device)
            local shifts = shifts_from(0.3, 17)
            local want = expected(frames, shifts)
            local apart <close> = mb.vertical_shift(stack, shifts)
            assert.is_true(helper.difference(want, apart) < 1e-5)
            assert.same(frames, stack:to_table())
            assert.equal(stack, mb.vertical_shift(stack, shifts, { out = stack }))
            assert.same(apart:to_table(), stack:to_table())
            for k = 14, 17 do
                local frame <close> = stack:view(k, mb.all, mb.all)
                assert.equal(0, frame:norm())
            end
        end)

        it("takes negative and whole shifts, apart and in place, on " .. device, function()
            for _, shifts in ipairs { shifts_from(-0.3, 17, -1), shifts_from(-8, 17),
                shifts_from(-4, 17, 0.37) } do
                local stack <close> = mb.random({ 17, 13, 11 }, { seed = 5, device = device })
                local want = expected(stack:to_table(), shifts)
                local apart <close> = mb.vertical_shift(stack, shifts)
                helper.assert_close(want, apart, 1e-6)
                mb.vertical_shift(stack, shifts, { out = stack })
                assert.same(apart:to_table(), stack:to_table())
            end
        end)

        it("pairs a subset with its own shifts on " .. device, function()
            -- Frames 4, 9 and 2 of the stack: radios[j] goes with shifts[indices[j]], not with
            -- radios[indices[j]].
            local stack <close> = mb.random({ 17, 13, 11 }, { seed = 6, device = device })
            local shifts = shifts_from(-3.2, 17, 0.45)
            local whole <close> = mb.vertical_shift(stack, shifts)
            local all = whole:to_table()
            local indices = { 4, 9, 2 }
            local frames = {}
            for j, k in ipairs(indices) do
                local frame <close> = stack:view(k, mb.all, mb.all)
                frames[j] = frame:to_table()
            end
            local subset <close> = mb.array(frames, { device = device })
            local apart <close> = mb.vertical_shift(subset, shifts, { indices = indices })
            assert.same({ all[4], all[9], all[2] }, apart:to_table())
            mb.vertical_shift(subset, shifts, { indices = indices, out = subset })
            assert.same({ all[4], all[9], all[2] }, subset:to_table())
        end)

        it("walks long columns and views on " .. device, function()
            local large <close> = mb.random({ 130, 70, 5 }, { seed = 7, device = device })
            local view <close> = large:view(mb.all, { 2, 69 }, { 2, 5 })
            local shifts = shifts_from(-33.3, 130, 0.51)
            local want = expected(view:to_table(), shifts)
            mb.vertical_shift(view, shifts, { out = view })
            helper.assert_close(want, view, 1e-6)
        end)
    end)

    it("is two mul_adds of row regions", function()
        local rows, cols = 13, 11
        local frame <close> = mb.random({ rows, cols }, { seed = 9 })
        for _, shift in ipairs { 3.3, -4.75, 0.5, -0.5 } do
            local s0 = math.floor(shift)
            local composed <close> = mb.zeros { rows, cols }
            for whole, factor in pairs { [s0] = s0 + 1 - shift, [s0 + 1] = shift - s0 } do
                local low, high = math.max(0, whole), math.min(rows, rows + whole)
                mb.mul_add(composed, frame,
                    { b = factor, region = { low - whole, high - whole, 0, cols },
                    other_region = { low, high, 0, cols } })
            end
            local moved <close> = mb.vertical_shift(frame, shift)
            helper.assert_close(composed, moved, 1e-6)
        end
    end)

    it("takes one frame", function()
        local frame <close> = mb.random({ 9, 6 }, { seed = 8 })
        local want = shifted(frame:to_table(), 1.25)
        local moved <close> = mb.vertical_shift(frame, 1.25)
        helper.assert_close(want, moved, 1e-6)
    end)

    it("needs no scratch at all, and nothing in place", function()
        local known = mb.op.estimate("vertical_shift", { { "f32", 17, 130, 110 } },
            { shifts = shifts_from(0.3, 17) },
            { given = { "result" } })
        assert.equal(0, known.scratch)
        assert.equal(0, known.peak)
    end)

    it("keeps what does not mix: whole shifts copy, NaN stays in its rows", function()
        local frame <close> = mb.array { { 1 }, { 0 / 0 }, { 3 }, { 4 } }
        local moved <close> = mb.vertical_shift(frame, 2)
        assert.same({ { 3 }, { 4 }, { 0 }, { 0 } }, moved:to_table())
    end)

    it("knows its halo", function()
        local known = mb.op.estimate("vertical_shift", { { "f32", 3, 50, 8 } },
            { shifts = { -2.5, 0, 4.25 } })
        local rows
        for _, split in ipairs(known.split) do
            rows = split.axis == 2 and split or rows
        end
        assert.equal(3, rows.before)
        assert.equal(5, rows.after)
    end)

    it("refuses shifts and indices that do not fit", function()
        local stack <close> = mb.zeros({ 3, 4, 5 })
        local function refused(arg, pattern, ...)
            local text, err = helper.failure(mb.vertical_shift, stack, ...)
            assert.equal("argument", err.code)
            assert.equal(arg, err.arg)
            assert.matches(pattern, text)
        end
        refused("shifts", "2 shifts were given for 3", { 1, 2 })
        refused("indices", "2 indices", { 1, 2, 3 }, { indices = { 1, 2 } })
        refused("indices", "1 to 3", { 1, 2, 3 }, { indices = { 1, 2, 4 } })
        refused("indices", "whole", { 1, 2, 3 }, { indices = { 1, 2, 1.5 } })
    end)
end)
