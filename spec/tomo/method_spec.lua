-- tomo.reconstruct: which method it takes and why, what that takes, and that both methods show the same.
local helper = require "spec.helper"
local mb = require "moonbeam"

local function sinograms(rows, count, n, device)
    local angles = mb.tomo.angles(count)
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
    local frames <close> = mb.ellipsoid_projections(ellipsoids, angles, mb.phantom.heights(rows), n, {device = device})
    local view <close> = frames:permute(2, 1, 3)
    return view:copy(), angles
end

describe("tomo.reconstruct", function()
    helper.each_device(function(device, test)
        test("shows the same by both methods on " .. device:match("^%a+"), function()
            local sino <close>, angles = sinograms(3, 90, 96, device)
            local asked = {{}, {filter = "hann", center = 45.25, accuracy = "exact"}, {circle = 1, size = 80, padding = "edge"}}
            for _, options in ipairs(asked) do
                local both = {}
                for i, name in ipairs {"fbp", "fourier"} do
                    options.method = name
                    local way
                    both[i], way = mb.tomo.reconstruct(sino, angles, options)
                    assert.equal(name, way.method)
                end
                assert.is_true(mb.metrics.ncc(both[1], both[2]) > (options.filter and 0.998 or 0.98))
                both[1]:release()
                both[2]:release()
            end
        end)

        test("takes what the choice says on " .. device:match("^%a+"), function()
            local sino <close>, angles = sinograms(5, 30, 64, device)
            local asked = {{}, {method = "fourier"}, {mode = "in_place"}, {method = "fbp", mode = "fast"}, {roi = {3, 40, 5, 60}},
                {weights = angles}, {half_acquisition = true, center = 12},
                {slice_shifts = {1, -2, 0.5, 0, 3}}}
            for _, options in ipairs(asked) do
                local given = setmetatable({device = device}, {__index = options})
                for key, value in pairs(options) do
                    given[key] = value
                end
                local predicted, ways = mb.tomo.choose_method(sino.shape, angles, given)
                assert.is_true(#ways >= 1)
                local scope <close> = mb.pool.scope(device)
                local slices <close>, way = mb.tomo.reconstruct(sino, angles, options)
                assert.equal(slices.rank, 3)
                assert.equal(predicted.method, way.method)
                assert.equal(predicted.mode, way.mode)
                assert.equal(predicted.peak, scope:finish())
            end
        end)
    end)

    it("takes the faster method", function()
        local few = mb.tomo.choose_method({4, 60, 64}, mb.tomo.angles(60), {device = "host"})
        assert.equal("fbp", few.method)
        assert.matches("times as fast as the other", few.reason)
        local many = mb.tomo.choose_method({8, 3000, 2048}, mb.tomo.angles(3000), {device = "host"})
        assert.equal("fourier", many.method)
    end)

    -- Within a tenth of the faster one, in every case that was measured.
    for kind, times in pairs(require "spec.fixtures.method_times") do
        it("takes the faster method where both were measured: " .. kind, function()
            local device = kind == "host" and "host" or "planned:h200"
            for _, case in ipairs(times) do
                local slices, count, cols, accuracy, fbp, fourier = table.unpack(case)
                local way, ways = mb.tomo.choose_method({slices, count, cols}, mb.tomo.angles(count),
                    {device = device, accuracy = accuracy, available = "1TiB"})
                local taken = way.method == "fbp" and fbp or fourier
                local what = ("%d x %d x %d, %s"):format(slices, count, cols, accuracy)
                assert.is_true(taken <= 1.1 * math.min(fbp, fourier), what)
                assert.equal("fast", way.mode, what)
                for _, other in ipairs(ways) do -- and not by accident
                    local measured = other.mode == "fast" and (other.method == "fbp" and fbp or fourier)
                    local ratio = measured and other.seconds * slices * 1e3 / measured or 1
                    assert.is_true(ratio > 0.4 and ratio < 1.6, ("%s: %s, %.2f of what was measured"):format(what, other.name, ratio))
                end
            end
        end)
    end

    it("knows from how many angles on back-projection on a GPU has its fast kernels", function()
        local device = mb.device "planned:h200"
        local function at(count)
            local angles = mb.tomo.angles(count)
            local scratch = mb.op.estimate("backproject", {{64, count, 1024}}, {angles = angles, accuracy = "fast"},
                {device = device}).scratch
            local _, ways = mb.tomo.choose_method({64, count, 1024}, angles, {device = device, accuracy = "fast"})
            for _, way in ipairs(ways) do
                if way.method == "fbp" and way.mode == "fast" then
                    return scratch, way.seconds
                end
            end
        end
        local count, scratch, seconds = 500, at(500)
        repeat -- the operator packs less for them
            count = count + 1
            local last_scratch, last_seconds = scratch, seconds
            scratch, seconds = at(count)
            assert.equal(scratch < last_scratch, seconds < 0.8 * last_seconds, count .. " angles")
        until scratch < last_scratch or count == 800
        assert.is_true(count < 800)
    end)

    it("takes what fits the budget, and the least when nothing does", function()
        local angles = mb.tomo.angles(1500)
        local best, ways = mb.tomo.choose_method({8, 1500, 1024}, angles, {device = "host", consume = true})
        assert.equal("fourier", best.method)
        assert.equal(3, #ways)
        table.sort(ways, function(a, b) return a.peak < b.peak end)
        assert.is_true(ways[1].peak < best.peak)
        local other = mb.tomo.choose_method({8, 1500, 1024}, angles, {device = "host", consume = true, available = best.peak - 1})
        assert.equal("fbp", other.method)
        assert.matches("faster but takes", other.reason)
        local none = mb.tomo.choose_method({8, 1500, 1024}, angles, {device = "host", consume = true, available = 1})
        assert.equal(ways[1].peak, none.peak)
        assert.is_false(none.fits)
    end)

    it("says which option needs which method", function()
        local angles = mb.tomo.angles(30)
        local function reason(options)
            options.device = "host"
            local way = mb.tomo.choose_method({2, 30, 32}, angles, options)
            return way.method .. ": " .. way.reason
        end
        assert.matches("^fourier: .*weights on the angles needs it", reason {weights = angles})
        assert.matches("^fbp: .*an axis of its own for every slice needs it", reason {slice_shifts = {0, 1}})
        assert.matches("^fbp: .*half acquisition needs it", reason {half_acquisition = true, center = 3})
        assert.matches("^fourier: .*asked for", reason {method = "fourier"})
    end)

    it("refuses what no method does, and says what to change", function()
        local sino <close>, angles = sinograms(1, 20, 32, "host")
        for _, case in ipairs {
            {{method = "fourier", half_acquisition = true, center = 3}, "method fourier does not do half acquisition"},
            {{method = "fbp", weights = angles}, "method fbp does not do weights on the angles"},
            {{weights = angles, mode = "in_place"}, "no method does both"},
            {{method = "art"}, "method is the string 'art'; there are auto, fbp, fourier"},
            {{methd = "fbp"}, "did you mean 'method'"},
        } do
            local message, err = helper.failure(mb.tomo.reconstruct, sino, angles, case[1])
            assert.matches(case[2], message, 1, true)
            assert.equal("argument", err.code)
        end
        local line <close> = sino:view(1, 1, mb.all)
        assert.matches("1 axes", (helper.failure(mb.tomo.reconstruct, line, angles)))
    end)
end)
