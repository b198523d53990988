-- An axis of its own for every slice: tomo.fbp and tomo.reconstruct with slice_shifts.
local fbp = require "moonbeam.tomo.fbp"
local helper = require "spec.helper"
local mb = require "moonbeam"

local ANGLES, COLS, CENTER = 60, 64, 31.25
local theta = mb.tomo.angles(ANGLES)

-- Sinograms of a phantom about the axis of each row: CENTER + shifts[z].
local function leaning(shifts, device)
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, 0.6 * COLS / 2)
    local sino = mb.empty({#shifts, ANGLES, COLS}, {device = device})
    for z, shift in ipairs(shifts) do
        local rows <close> = mb.ellipsoid_projections(ellipsoids, theta, {z - #shifts / 2}, COLS,
            {center = CENTER + shift, device = device})
        local from <close> = rows:permute(2, 1, 3)
        local to <close> = sino:view({z, z}, mb.all, mb.all)
        mb.convert(from, "f32", {out = to})
    end
    return sino
end

local function distance(a, b)
    local difference <close> = a - b
    return difference:norm() / a:norm()
end

-- Slices, each about the column that backproject is told.
local function one_by_one(sino, shifts, options)
    local slices = mb.empty({#shifts, COLS, COLS}, {device = sino.device})
    for z, shift in ipairs(shifts) do
        local from <close> = sino:view({z, z}, mb.all, mb.all)
        local to <close> = slices:view({z, z}, mb.all, mb.all)
        mb.tomo.fbp(from, theta, {filter = options.filter, circle = options.circle,
            accuracy = "exact", center = CENTER + shift,
            padding = options.padding, out = to})
    end
    return slices
end

local function options_with(shifts, more)
    local options = {center = CENTER, slice_shifts = shifts, accuracy = "exact", filter = "hann"}
    for name, value in pairs(more or {}) do
        options[name] = value
    end
    return options
end

describe("slice_shifts", function()
    local usual = fbp.BATCH_BYTES
    after_each(function()
        fbp.BATCH_BYTES = usual
    end)

    helper.each_device(function(device, test)
        local where = " on " .. device:match("^%a+")

        test("of whole columns are other centers" .. where, function()
            local shifts = {0, 3, -5, 2, 1}
            local sino <close> = leaning(shifts, device)
            for _, padding in ipairs {"zero", "edge"} do
                local options = options_with(shifts, {circle = 0.7, filter = "ram-lak",
                    padding = padding})
                local together <close> = mb.tomo.fbp(sino, theta, options)
                local expected <close> = one_by_one(sino, shifts, options)
                helper.assert_close(expected, together, 1e-5)
            end
        end)

        test("show every slice about its own axis" .. where, function()
            local shifts, none = {0.5, -1.75, 3.125, -7.4}, {0, 0, 0, 0}
            local sino <close> = leaning(shifts, device)
            local upright <close> = leaning(none, device)
            local options = options_with(shifts, {circle = 0.7})
            local slices <close> = mb.tomo.fbp(sino, theta, options)
            local expected <close> = mb.tomo.fbp(upright, theta, options_with(nil, {circle = 0.7}))
            local linear <close> = one_by_one(sino, shifts, options)
            local wrong <close> = mb.tomo.fbp(sino, theta, options_with({-0.5, 1.75, -3.125, 7.4},
                {circle = 0.7}))
            -- What is left is sampling: the detector sees the edges of the phantom at other points.
            -- Interpolation by the back-projector adds to it.
            assert.is_true(distance(expected, slices) < 0.04)
            assert.is_true(distance(expected, slices) < distance(expected, linear))
            assert.is_true(distance(expected, wrong) > 0.5)
        end)

        test("go with every mode, in the bytes that are predicted" .. where, function()
            local shifts = {1.5, -2.25, 0, 4}
            local sino <close> = leaning(shifts, device)
            local expected <close> = mb.tomo.fbp(sino, theta, options_with(shifts))
            for _, limit in ipairs {fbp.BATCH_BYTES, 100000, 1} do
                fbp.BATCH_BYTES = limit
                for _, mode in ipairs {"fast", "in_place", "auto"} do
                    for _, consume in ipairs {false, true} do
                        local options = options_with(shifts, {mode = mode, consume = consume})
                        local predicted = mb.plan.peak(function(dry)
                            local shape <close> = mb.empty(sino.shape, {device = dry})
                            mb.tomo.fbp(shape, theta, options):release()
                        end, device).peak
                        mb.collect()
                        local scope <close> = mb.pool.scope(device)
                        local own <close> = sino:copy()
                        local slices <close> = mb.tomo.fbp(own, theta, options)
                        local peak = scope:finish()
                        if mode ~= "auto" then
                            assert.equal(predicted, peak)
                        end
                        helper.assert_close(expected, slices, 1e-6, mode)
                    end
                end
            end
            local one <close> = sino:view(2, mb.all, mb.all)
            local second <close> = expected:view(2, mb.all, mb.all)
            for _, shift in ipairs {-2.25, {-2.25}} do
                local slice <close> = mb.tomo.fbp(one, theta, options_with(shift))
                helper.assert_close(second, slice, 1e-6)
            end
        end)

        test("choose filtered back-projection" .. where, function()
            local shifts = {1.5, -2.25}
            local sino <close> = leaning(shifts, device)
            local options = options_with(shifts)
            local slices <close>, way = mb.tomo.reconstruct(sino, theta, options)
            local expected <close> = mb.tomo.fbp(sino, theta, options)
            assert.equal("fbp", way.method)
            assert.matches("an axis of its own for every slice needs it", way.reason)
            helper.assert_close(expected, slices, 1e-6)
        end)
    end)

    it("need what they say they need", function()
        local sino <close> = leaning({0, 0}, "host")
        for _, case in ipairs {
            {{slice_shifts = {1}},
                "must be a list of 2 numbers, one per row of the sinograms; it is a table of 1"},
            {{slice_shifts = "1 2"}, "it is a string"},
            {{slice_shifts = {1, -40}}, "can move by 32 at most"},
            {{slice_shifts = {1, 2}, half_acquisition = true, center = 5},
                "does not go with slice_shifts"},
        } do
            for _, way in ipairs {"fbp", "reconstruct"} do
                local message, err = helper.failure(mb.tomo[way], sino, theta, case[1])
                assert.matches(case[2], message, 1, true)
                assert.equal("argument", err.code)
                assert.equal("slice_shifts", err.arg)
            end
        end
        assert.matches("method fourier does not do an axis of its own",
            (helper.failure(mb.tomo.reconstruct, sino, theta,
            {method = "fourier", slice_shifts = {1, 2}})))
    end)
end)
