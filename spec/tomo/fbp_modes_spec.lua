-- The modes of filtered back-projection: one result, known peaks.
local mb = require "moonbeam"
local fbp = require "moonbeam.tomo.fbp"
local helper = require "spec.helper"

local ANGLES, COLS = 37, 48
local theta = mb.tomo.angles(ANGLES)

-- Two ellipsoids, different in every row.
local PHANTOM = {1, 16, 13, 20, 2, -3, 0, 0.3, 0.7, 5, 4, 9, -6, 5, 1, 1}

-- Line integrals (angle, row, column).
local function scan(rows, device)
    local heights = {}
    for i = 1, rows do
        heights[i] = 3 * i - 8
    end
    local projections = mb.ellipsoid_projections(PHANTOM, theta, heights, COLS, {center = 24.25})
    if device == "host" then
        return projections
    end
    local own <close> = projections
    return own:to(device)
end

local function sinograms(shape, device)
    local projections <close> = scan(#shape == 3 and shape[1] or 1, device)
    local view <close> = projections:permute(2, 1, 3)
    local copy <close> = view:copy()
    return copy:reshape(table.unpack(shape))
end

-- Calls f with a batch limit so small that everything goes in the smallest parts.
local function in_smallest_parts(f)
    local usual = fbp.BATCH_BYTES
    fbp.BATCH_BYTES = 1
    local ok, err = pcall(f)
    fbp.BATCH_BYTES = usual
    if not ok then
        error(err, 0)
    end
end

local function each_limit(f)
    f()
    in_smallest_parts(f)
end

-- Options for every way of running, as a list.
local function ways()
    local list = {}
    for _, mode in ipairs {"fast", "in_place", "auto"} do
        for _, consume in ipairs {false, true} do
            list[#list + 1] = {mode = mode, consume = consume, filter = "hann", center = 24.25,
                accuracy = "exact"}
        end
    end
    return list
end

local function with(options, more)
    local copy = {}
    for _, from in ipairs {options, more} do
        for name, value in pairs(from) do
            copy[name] = value
        end
    end
    return copy
end

-- The peak of fbp on an own sinogram, dry; with the sinogram.
local function peak_of(device, shape, angles, options)
    return mb.plan.peak(function(dry)
        local sino <close> = mb.empty(shape, {device = dry})
        mb.tomo.fbp(sino, angles, options):release()
    end, device).peak
end

describe("modes of tomo.fbp", function()
    helper.each_device(function(device, it)
        it("agree within 1e-6 on " .. device, function()
            for _, shape in ipairs {{ANGLES, COLS}, {1, ANGLES, COLS}, {4, ANGLES, COLS}} do
                local sino <close> = sinograms(shape, device)
                local expected <close> = mb.tomo.fbp(sino, theta, {filter = "hann", center = 24.25,
                    accuracy = "exact"})
                each_limit(function()
                    for _, options in ipairs(ways()) do
                        local own <close> = sino:copy()
                        local slices <close> = mb.tomo.fbp(own, theta, options)
                        assert.same(expected.shape, slices.shape)
                        helper.assert_close(expected, slices, 1e-6, options.mode)
                        if not options.consume then
                            assert.same(sino:to_table(), own:to_table())
                        end
                        local given <close> = mb.zeros(expected.shape, {device = device})
                        local again <close> = sino:copy()
                        assert.equal(given, mb.tomo.fbp(again, theta, with(options, {out = given})))
                        helper.assert_close(expected, given, 1e-6, options.mode .. " with out")
                    end
                end)
            end
        end)

        it("copy 64 slices at a time of a sinogram that is kept, where copies are short of memory, on " .. device, function()
            local usual = fbp.COPY_BYTES
            local rows, shifts = 70, {}
            for z = 1, rows do
                shifts[z] = 5 * math.sin(z)
            end
            local sino <close> = mb.random({rows, 7, 300}, {seed = 3, device = device})
            local angles = mb.tomo.angles(7)
            local function peak(options)
                return peak_of(device, sino.shape, angles, options)
            end
            for _, options in ipairs {{}, {accuracy = "exact", slice_shifts = shifts},
                {half_acquisition = true, center = 250.5}} do
                options.size = 24
                local expected <close> = mb.tomo.fbp(sino, angles, options)
                local whole = peak(options)
                fbp.COPY_BYTES = 1
                local ok, err = pcall(function()
                    local least = peak(options)
                    assert.is_true(least < whole)
                    local scope = mb.pool.scope(device)
                    local own <close> = sino:copy()
                    local slices <close> = mb.tomo.fbp(own, angles, options)
                    assert.equal(least, scope:finish())
                    helper.assert_close(expected, slices, 1e-6)
                    assert.same(sino:to_table(), own:to_table())
                    local given <close> = mb.zeros(expected.shape, {device = device})
                    assert.equal(given, mb.tomo.fbp(own, angles, with(options, {out = given})))
                    helper.assert_close(expected, given, 1e-6)
                    local dry <close> = mb.device(device):dry_device(least)
                    local shape <close> = mb.empty(sino.shape, {device = dry})
                    mb.tomo.fbp(shape, angles, with(options, {mode = "auto"})):release()
                    assert.equal(least, mb.pool.stats(dry).live_peak)
                end)
                fbp.COPY_BYTES = usual
                assert(ok, err)
            end
        end)

        it("take permuted views of projections on " .. device, function()
            local projections <close> = scan(3, device)
            local sino <close> = projections:permute(2, 1, 3)
            local expected <close> = mb.tomo.fbp(sino, theta, {accuracy = "exact"})
            in_smallest_parts(function()
                local slices <close> = mb.tomo.fbp(sino, theta,
                    {mode = "in_place", accuracy = "exact"})
                helper.assert_close(expected, slices, 1e-6)
                local consumed <close> = mb.tomo.fbp(sino, theta,
                    {mode = "in_place", consume = true, accuracy = "exact"})
                helper.assert_close(expected, consumed, 1e-6)
            end)
        end)

        it("are predicted to the byte on " .. device, function()
            each_limit(function()
                for _, options in ipairs(ways()) do
                    if options.mode ~= "auto" then
                        local predicted = peak_of(device, {3, ANGLES, COLS}, theta, options)
                        mb.collect()
                        local scope = mb.pool.scope(device)
                        local sino <close> = mb.zeros({3, ANGLES, COLS}, {device = device})
                        mb.tomo.fbp(sino, theta, options):release()
                        assert.equal(predicted, scope:finish())
                    end
                end
            end)
        end)

        it("reconstruct 43200 angles x 16384 pixels in place under 4.3 GB, under 7.2 GB with the input kept, on " .. device,
            function()
                local shape, angles = {43200, 16384}, mb.tomo.angles(43200)
                local consumed = peak_of(device, shape, angles, {mode = "in_place", consume = true})
                local kept = peak_of(device, shape, angles, {mode = "in_place"})
                assert.is_true(consumed < 4.3e9, ("consumed: %d bytes"):format(consumed))
                assert.is_true(kept < 7.2e9, ("kept: %d bytes"):format(kept))
            end)
    end)

    it("take less in place, down to sinogram, slices and one small batch", function()
        in_smallest_parts(function()
            local function peak(options)
                return peak_of("host", {6, ANGLES, COLS}, theta, options)
            end
            local sino, slices = mb.pool.round(4 * 6 * ANGLES * COLS),
                mb.pool.round(4 * 6 * COLS * COLS)
            local consumed = peak {mode = "in_place", consume = true}
            local single = mb.op.estimate("backproject", {{"f32", 1, ANGLES, COLS}},
                {angles = theta}).scratch
            local filter = mb.op.estimate("ramp_filter", {{"f32", 1, COLS}}).scratch
            assert.equal(sino + math.max(filter, slices + single), consumed)
            local one = mb.pool.round(4 * ANGLES * COLS)
            assert.equal(sino + slices + one + math.max(filter, single), peak {mode = "in_place"})
            assert.is_true(consumed < peak {consume = true})
            assert.is_true(peak {mode = "in_place"} < peak {})
        end)
    end)

    it("choose by the budget with auto", function()
        in_smallest_parts(function()
            local shape = {8, ANGLES, COLS}
            local fast, least = peak_of("host", shape, theta, {}),
                peak_of("host", shape, theta, {mode = "in_place"})
            local function peak_under(budget)
                local dry <close> = mb.device("host"):dry_device(budget)
                local sino <close> = mb.empty(shape, {device = dry})
                local ok, slices = pcall(mb.tomo.fbp, sino, theta, {mode = "auto"})
                if not ok then
                    return nil, slices
                end
                slices:release()
                return mb.pool.stats(dry).live_peak
            end
            assert.is_true(least < fast)
            assert.equal(fast, peak_under(fast))
            assert.equal(least, peak_under(fast - 1))
            assert.equal(least, peak_under(least))
            local none, err = peak_under(least - 512)
            assert.is_nil(none)
            assert.equal("budget", err.code)
        end)
    end)

    it("leave nothing behind when an allocation fails", function()
        in_smallest_parts(function()
            for _, options in ipairs(ways()) do
                local failed, n = true, 0
                while failed do
                    n = n + 1
                    local sino <close> = mb.zeros({2, 5, 16})
                    mb.collect()
                    local live = mb.pool.stats("host").live
                    mb.debug.fail_nth(n, "host")
                    local ok, slices = pcall(mb.tomo.fbp, sino, mb.tomo.angles(5), options)
                    mb.debug.fail_nth(0, "host")
                    failed = not ok
                    if ok then
                        slices:release()
                    end
                    mb.collect()
                    assert.equal(live, mb.pool.stats("host").live)
                end
                assert.is_true(n > 3)
            end
        end)
    end)
end)
