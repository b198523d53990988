-- tomo.reconstruct: which method it takes and why, what that takes, and that both methods show the
-- same.
local helper = require "spec.helper"
local mb = require "moonbeam"

local function sinograms(rows, count, n, device)
    local angles = mb.tomo.angles(count)
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
    local frames <close> = mb.ellipsoid_projections(ellipsoids, angles, mb.phantom.heights(rows), n,
        {device = device})
    local view <close> = frames:permute(2, 1, 3)
    return view:copy(), angles
end

describe("tomo.reconstruct", function()
    helper.each_device(function(device, test)
        test("shows the same by both methods on " .. device:match("^%a+"), function()
            local sino <close>, angles = sinograms(3, 90, 96, device)
            local asked = {{}, {filter = "hann", center = 45.25, accuracy = "exact"},
                {circle = 1, size = 80, padding = "edge"}}
            for _, options in ipairs(asked) do
                local both = {}
                for i, name in ipairs {"fbp", "fourier"} do
                    options.method = name
                    local way
                    both[i], way = mb.tomo.reconstruct(sino, angles, options)
                    assert.equal(name, way.method)
                end
                assert.is_true(mb.metrics.ncc(both[1], both[2]) > (options.filter and 0.998
                    or 0.98))
                both[1]:release()
                both[2]:release()
            end
        end)

        test("takes what the choice says on " .. device:match("^%a+"), function()
            local sino <close>, angles = sinograms(5, 30, 64, device)
            local asked = {{}, {method = "fourier"}, {mode = "in_place"},
                {method = "fbp", mode = "fast"}, {roi = {3, 40, 5, 60}},
                {weights = angles}, {pairs = 1}, {method = "fbp", weights = angles}, {half_acquisition = true, center = 12},
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

    it("is one method for all shapes, devices and budgets", function()
        for _, shape in ipairs {{4, 60, 64}, {1, 19, 32}, {8, 1500, 1024}, {64, 3000, 2048}} do
            for _, device in ipairs {"host", "planned:h200"} do
                for _, available in ipairs {1, "1GiB", "1TiB"} do
                    local way = mb.tomo.choose_method(shape, mb.tomo.angles(shape[2]),
                        {device = device, available = available})
                    assert.equal("fourier", way.method)
                    assert.equal("direct Fourier method (the default)", way.reason)
                end
            end
        end
    end)

    it("takes mode in_place by itself only where that changes no value", function()
        local angles = mb.tomo.angles(700)
        local function way(options)
            options.method, options.available, options.consume = "fbp", 1, true
            return (mb.tomo.choose_method({8, 700, 256}, angles, options))
        end
        local function modes(options)
            local _, ways = mb.tomo.choose_method({8, 700, 256}, angles, options)
            local taken = {}
            for _, each in ipairs(ways) do
                taken[#taken + 1] = each.taken and each.mode or nil
            end
            return taken
        end
        assert.same({"fast", "in_place"}, modes {method = "fbp", device = "host"})
        -- half floats there, but not in place
        assert.same({"fast"}, modes {method = "fbp", device = "planned:h200"})
        assert.same({"fast", "in_place"}, modes {method = "fbp", device = "planned:h200",
            accuracy = "exact"})
        assert.equal("fast", way({device = "planned:h200"}).mode)
        local sino <close>, few = sinograms(5, 30, 64, "host")
        local fbp = require "moonbeam.tomo.fbp"
        local before = fbp.BATCH_BYTES
        fbp.BATCH_BYTES = 1 -- as small parts as there are
        local _ <close> = setmetatable({}, {__close = function() fbp.BATCH_BYTES = before end})
        local fast <close> = mb.tomo.fbp(sino, few, {center = 30.25})
        local in_place <close> = mb.tomo.fbp(sino, few, {center = 30.25, mode = "in_place"})
        assert.same(fast:to_table(), in_place:to_table())
    end)

    it("knows from how many angles on back-projection on a GPU has half floats", function()
        local same = require("moonbeam.tomo.fbp").same_in_place
        local device, changes, last = mb.device "planned:h200", 0, true
        for count = 500, 800 do
            local now = same(device, count, 1024, {})
            changes = changes + (now ~= last and 1 or 0)
            last = now
        end
        assert.equal(1, changes)
        assert.is_false(last)
    end)

    it("names the other method where the one that is taken does not fit", function()
        local sino <close>, angles = sinograms(6, 60, 96, "host")
        local device = mb.device "host"
        local fourier = mb.tomo.choose_method(sino.shape, angles, {device = device, consume = true})
        local fbp = mb.tomo.choose_method(sino.shape, angles,
            {device = device, consume = true, method = "fbp", mode = "in_place"})
        assert.is_true(fbp.peak < fourier.peak)
        local budget = device:budget()
        device:budget(mb.pool.stats(device).live + fourier.peak - 512)
        local ok, err = pcall(mb.tomo.reconstruct, sino, angles, {consume = true})
        device:budget(budget)
        assert.is_false(ok)
        assert.equal("budget", err.code)
        assert.matches("the direct Fourier method needs ", err.message, 1, true)
        assert.matches("method = \"fbp\", mode = \"in_place\" takes", err.message, 1, true)
        device:budget(mb.pool.stats(device).live + fourier.peak)
        local slices <close>, way = mb.tomo.reconstruct(sino, angles, {consume = true})
        device:budget(budget)
        assert.equal("fourier", way.method)
        assert.equal(3, slices.rank)
    end)

    it("says which option needs which method", function()
        local angles = mb.tomo.angles(30)
        local function reason(options)
            options.device = "host"
            local way = mb.tomo.choose_method({2, 30, 32}, angles, options)
            return way.method .. ": " .. way.reason
        end
        assert.matches("^fourier: .*batches of pairs needs it", reason {pairs = 1})
        assert.matches("^fourier: .*the default", reason {weights = angles})
        assert.matches("^fbp: .*half acquisition needs it",
            reason {half_acquisition = true, center = 3, weights = angles})
        assert.matches("^fbp: .*an axis of its own for every slice needs it",
            reason {slice_shifts = {0, 1}})
        assert.matches("^fbp: .*half acquisition needs it",
            reason {half_acquisition = true, center = 3})
        assert.matches("^fourier: .*asked for", reason {method = "fourier"})
    end)

    it("refuses what no method does, and says what to change", function()
        local sino <close>, angles = sinograms(1, 20, 32, "host")
        for _, case in ipairs {
            {{method = "fourier", half_acquisition = true, center = 3},
                "method fourier does not do half acquisition"},
            {{method = "fbp", pairs = 2}, "method fbp does not do batches of pairs"},
            {{pairs = 2, mode = "in_place"}, "no method does both"},
            {{weights = "even"}, "weights is the string 'even'; it must be a table of numbers, or "
                .. '"auto", "none"'},
            {{method = "art"}, "method is the string 'art'; it must be auto, fbp or fourier"},
            {{methd = "fbp"}, "did you mean 'method'"},
        } do
            local message, err = helper.failure(mb.tomo.reconstruct, sino, angles, case[1])
            assert.matches(case[2], message, 1, true)
            assert.equal("argument", err.code)
        end
        local line <close> = sino:view(1, 1, mb.all)
        assert.matches("1 axis", (helper.failure(mb.tomo.reconstruct, line, angles)))
    end)
end)
