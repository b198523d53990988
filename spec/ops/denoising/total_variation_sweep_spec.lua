-- Sweeps of total variation: the steps of all sweeps are those of total_variation.

local helper = require "spec.helper"
local mb = require "moonbeam"

local LAMBDA <const> = 0.3

-- The image of a state of planes of so many rows.
local function image_of(state, rows)
    local view <close> = state:view(mb.all, {1, rows}, mb.all)
    return view:copy()
end

helper.each_device(function(device_id, it)
    describe("total_variation_sweep on " .. device_id, function()
        local function same(a, b)
            return a:to_string() == b:to_string()
        end

        it("makes the steps of total_variation, to the bit, in sweeps of any length", function()
            local a <close> = mb.random({23, 17, 40}, {seed = 1, device = mb.device(device_id)})
            for _, options in ipairs {{}, {nonnegative = true, tau = 0.1, sigma = 0.8}} do
                options.dimensions, options.iterations = 3, 19
                local want <close> = mb.total_variation(a, LAMBDA, options)
                options.dimensions, options.iterations = nil, nil
                for _, sweeps in ipairs {{20}, {6, 6, 8}, {3, 12, 5}, {18, 2}} do
                    local state
                    for _, steps in ipairs(sweeps) do
                        options.state, options.steps, options.out = state, steps, state
                        state = mb.total_variation_sweep(a, LAMBDA, options)
                    end
                    local got <close> = image_of(state, 17)
                    assert.is_true(same(want, got), table.concat(sweeps, " "))
                    state:release()
                    options.state, options.out = nil, nil
                end
            end
        end)

        it("works in place in parts of planes, and leaves the state that is given", function()
            local a <close> = mb.random({7, 9, 20}, {seed = 2, device = mb.device(device_id)})
            local before <close> = mb.total_variation_sweep(a, LAMBDA, {steps = 3})
            local text = before:to_string()
            local want <close> = mb.total_variation_sweep(a, LAMBDA, {state = before, steps = 6})
            assert.is_true(text == before:to_string())
            assert.is_false(text == want:to_string())
            local both <close> = mb.zeros({7, 45, 20}, {device = mb.device(device_id)})
            local data <close> = both:view(mb.all, {1, 9}, mb.all)
            local state <close> = both:view(mb.all, {10, 45}, mb.all)
            mb.convert(a, "f32", {out = data})
            mb.convert(before, "f32", {out = state})
            mb.total_variation_sweep(data, LAMBDA, {state = state, steps = 6, out = state})
            local got <close> = state:copy()
            assert.is_true(same(want, got))
            local kept <close> = data:copy()
            assert.is_true(same(a, kept))
        end)

        it("refuses states of other volumes, and results in the data", function()
            local a <close> = mb.zeros({3, 4, 5}, {device = mb.device(device_id)})
            local state <close> = mb.zeros({3, 12, 5}, {device = mb.device(device_id)})
            assert.matches("state has the shape 3 x 12 x 5; of this volume it has 3 x 16 x 5",
                helper.failure(mb.total_variation_sweep, a, 1, {state = state}))
            assert.matches("lambda is 0", helper.failure(mb.total_variation_sweep, a, 0))
            local both <close> = mb.zeros({3, 19, 5}, {device = mb.device(device_id)})
            local data <close> = both:view(mb.all, {1, 4}, mb.all)
            local into <close> = both:view(mb.all, {4, 19}, mb.all)
            assert.matches("result overlaps a", helper.failure(mb.total_variation_sweep, data, 1,
                {out = into}))
        end)
    end)
end)

describe("total_variation_sweep through mb.chunked", function()
    -- Sweeps over volumes in host memory; memory of the device is a tenth of the volume.
    it("gives the bits of total_variation with a tenth of the volume as budget", function()
        local shape, steps = {720, 16, 24}, {3, 3, 3, 3, 2}
        local a <close> = mb.random(shape, {seed = 3, device = "host"})
        local bytes = 4 * 720 * 16 * 24
        local want <close> = mb.total_variation(a, LAMBDA, {dimensions = 3, iterations = 13})
        local states, now = {}, nil
        for i = 1, 2 do
            states[i] = mb.empty({720, 64, 24}, {device = "host"})
        end
        for i, count in ipairs(steps) do
            local to = states[i % 2 + 1]
            local _, report = mb.chunked("total_variation_sweep", {a = a, state = now}, {
                params = {lambda = LAMBDA, steps = count}, devices = {"host:1"},
                budget = bytes // 10, sink = to, pinned = "1Mi", threads = 1})
            assert.is_true(report.as_planned)
            assert.equal(report.plan.peak["host:1"], report.peak["host:1"])
            assert.is_true(report.peak["host:1"] <= bytes // 10)
            now = to
        end
        local got <close> = image_of(now, 16)
        assert.is_true(want:to_string() == got:to_string())
        for _, state in ipairs(states) do
            state:release()
        end
    end)
end)
