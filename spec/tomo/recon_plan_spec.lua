-- Plans of whole reconstructions: an upper bound before the axis is known (plan A), exact bytes
-- when it is (plan B), and what happens where a run takes something else.

local helper = require "spec.helper"
local mb = require "moonbeam"
local scan_recipe = require "moonbeam.tomo.scan_recipe"

-- A scan of which only the shape is known, as dry runs see it.
local function scan_of(n_angles, rows, cols, turn)
    local scan = {n_angles = n_angles, rows = rows, cols = cols, dtype = "u16", n_flats = 3,
        n_darks = 3,
        angles = mb.tomo.angles(n_angles, turn)}
    local function frames(n, range, options)
        local step = range[3] or 1
        return mb.empty({n, (range[2] - range[1]) // step + 1, cols},
            {dtype = "u16", device = options.device})
    end
    function scan.darks(_, range, options)
        return frames(3, range, options)
    end
    function scan.flats(_, range, options)
        return frames(3, range, options)
    end
    function scan:projections(range, options)
        local angles = options.angles
        return frames(angles and angles[2] - angles[1] + 1 or self.n_angles, range, options)
    end
    return scan
end

-- The plan before the axis is known holds for every axis, and no less would do. Returns the plan
-- and how many peaks there are.
local function check_bound(scan, options, step)
    local plan = mb.recon.plan(scan, options)
    assert.is_false(plan.exact)
    local bounds = mb.recon.center_bounds(scan, options)
    local most, peaks, different = 0, {}, 0
    local middle = (scan.cols - 1) / 2
    for axis = bounds[1], bounds[2], step do
        if not options.half_acquisition or math.abs(axis - middle) >= 1 then
            local settled = scan_recipe.settle(scan, plan, axis)
            assert.is_true(settled.exact)
            assert.is_true(settled.peak <= plan.peak, ("axis %g takes %d, at most %d"):format(axis,
                settled.peak, plan.peak))
            assert.same({plan.method, plan.mode, plan.chunk, plan.overlap, plan.peak},
                {settled.method, settled.mode, settled.chunk,
                settled.overlap, settled.at_most})
            most = math.max(most, settled.peak)
            different = different + (peaks[settled.peak] and 0 or 1)
            peaks[settled.peak] = true
        end
    end
    for _, axis in ipairs {bounds[2], plan.worst_axis} do
        most = math.max(most, scan_recipe.settle(scan, plan, axis).peak)
    end
    assert.equal(plan.peak, most)
    return plan, different
end

describe("a plan before the axis is known", function()
    it("is the most that any axis takes, on the host and on a GPU that is not here", function()
        local several = 0
        for _, device in ipairs {"host", "planned:h200"} do
            for _, case in ipairs {
                {scan_of(60, 9, 96), {}, 0.5},
                {scan_of(45, 6, 75), {circle = 0, accuracy = "exact"}, 0.5},
                -- short rows are not for the fused kernel
                {scan_of(60, 5, 96), {pad_width = 384, size = 40, circle = 1}, 0.5},
                {scan_of(60, 5, 96), {method = "fbp", size = 80}, 4},
                {scan_of(60, 5, 96), {axis_tilt = 0.01}, 4},
                {scan_of(30, 20, 64), {chunk = 7, dtype = "u16"}, 1},
                -- batches of pairs become smaller on the way
                {scan_of(5500, 16, 1024), {chunk = 16, overlap = false, circle = 1}, 64},
            } do
                case[2].device = device
                local _, different = check_bound(table.unpack(case))
                several = several + (different > 1 and 1 or 0)
            end
        end
        assert.is_true(several >= 6)
    end)

    it("is not always that of the outermost axis", function()
        local scan = scan_of(5500, 16, 1024)
        local plan = mb.recon.plan(scan, {device = "host", chunk = 16, overlap = false, circle = 1})
        local bounds = mb.recon.center_bounds(scan, {})
        assert.is_true(plan.worst_axis > bounds[1] and plan.worst_axis < bounds[2])
        assert.is_true(mb.recon.settle(scan, plan, {center = bounds[1]}).peak < plan.peak)
    end)

    it("is that of the widest volume for a half acquisition", function()
        local fbp = require "moonbeam.tomo.fbp"
        local before = fbp.BATCH_BYTES
        local _ <close> = setmetatable({}, {__close = function() fbp.BATCH_BYTES = before end})
        for _, bytes in ipairs {before, 200000, 30000} do -- parts of several sizes
            fbp.BATCH_BYTES = bytes
            for _, mode in ipairs {"fast", "in_place"} do
                for _, device in ipairs {"host", "planned:h200"} do
                    local plan = check_bound(scan_of(60, 9, 48, 2 * math.pi),
                        {half_acquisition = true, mode = mode, device = device},
                        0.5)
                    assert.is_true(plan.volume[3] > 48)
                    assert.matches("volume +at most 9 x", mb.recon.describe(plan))
                end
            end
        end
    end)

    it("says so, and where the axis is given it is exact", function()
        local scan = scan_of(60, 9, 96)
        local plan = mb.recon.plan(scan, {device = "host"})
        assert.matches(("peak +at most [^\n]+ %%(%d bytes%%) of [^\n]+, whatever axis is found"):format(plan.peak),
            mb.recon.describe(plan))
        local exact = mb.recon.plan(scan, {device = "host", center = 40, chunk = plan.chunk})
        assert.is_true(exact.exact)
        assert.matches(("peak +[%%d.]+ %%a+ %%(%d bytes%%) of"):format(exact.peak),
            mb.recon.describe(exact))
        assert.equal(mb.recon.settle(scan, plan, {center = 40}).run_peak, exact.run_peak)
    end)

    it("counts the search and finding the range, and refuses a budget that is too small for them",
        function()
        local scan = scan_of(40, 64, 64) -- two frames of the search are more than two rows of all
        local plan = mb.recon.plan(scan, {device = "host", overlap = false, dtype = "u16",
            method = "fbp", chunk = 1})
        assert.equal(math.max(plan.run_peak, plan.search_peak, plan.range_peak), plan.peak)
        assert.is_true(plan.search_peak > 0 and plan.range_peak > 0)
        local large = scan_of(8, 256, 64)
        local options = {device = "host", overlap = false, method = "fbp", chunk = 1}
        local search = mb.recon.plan(large, options)
        assert.equal(search.search_peak, search.peak)
        options.available = search.peak - 512
        local message, err = helper.failure(mb.recon.plan, large, options)
        assert.equal("budget", err.code)
        assert.matches("with the search in the frames before the run", message, 1, true)
        options.available = search.peak
        assert.equal(search.peak, mb.recon.plan(large, options).peak)
    end)

    it("names a budget that does, with what is live already, and none smaller does", function()
        local raw <close> = mb.random({40, 6, 64}, {dtype = "u16", low = 100, high = 200, seed = 3})
        local flats <close> = mb.full({2, 6, 64}, 300, {dtype = "u16"})
        local darks <close> = mb.zeros({2, 6, 64}, {dtype = "u16"})
        local other <close> = mb.ones({12345})
        local host, angles = mb.device("host"), mb.tomo.angles(40)
        local whole, before = host:budget(), mb.pool.stats("host").live
        local _ <close> = setmetatable({}, {__close = function() host:budget(whole) end})
        local function in_one(options)
            return mb.recon.reconstruct(raw, angles, options)
        end
        local function in_two(options)
            local scan = mb.scan.of_arrays(raw, angles, {flats = flats, darks = darks})
            mb.recon.run(scan, mb.recon.plan(scan, {method = options.method, center = 31,
                out = options.out, quiet = true}))
        end
        for _, case in ipairs {{in_one, "fbp", 31}, {in_one, "fourier", 31.5}, {in_one, "fbp"},
            {in_two, "fbp", 31},
            {in_two, "fourier", 31}} do
            local out <close> = mb.empty({6, 64, 64})
            local call, method, center = table.unpack(case)
            local options = {method = method, center = center, flats = flats, darks = darks,
                quiet = true, device = "host",
                out = out}
            local live = mb.pool.stats("host").live
            host:budget(live + 1024)
            local text, err = helper.failure(call, options)
            assert.equal("budget", err.code, text)
            assert.matches(("give a budget of at least [^\n]*%d bytes"):format(err.enough), text)
            host:budget(err.enough - 512)
            assert.equal("budget", select(2, helper.failure(call, options)).code)
            host:budget(err.enough)
            call(options)
            assert.is_true(out:max() > 0)
            host:budget(whole)
            assert.equal(live, mb.pool.stats("host").live)
        end
        assert.equal(before, mb.pool.stats("host").live)
        assert.equal(12345, other:sum())
    end)

    it("has one method, whatever the budget; chunks are whole pairs of slices", function()
        local scan = scan_of(60, 31, 64)
        local all = mb.recon.plan(scan, {device = "host", center = 30})
        assert.equal("fourier", all.method)
        local fewer = 0
        for part = 2, 12 do
            local ok, plan = pcall(mb.recon.plan, scan,
                {device = "host", center = 30, available = all.peak // part})
            if ok then
                assert.equal("fourier", plan.method)
                assert.equal(0, plan.chunk % 2)
                fewer = fewer + 1
            else
                assert.equal("budget", plan.code)
            end
        end
        assert.is_true(fewer > 1)
        local message = helper.failure(mb.recon.plan, scan,
            {device = "host", center = 30, available = mb.recon.plan(scan,
            {device = "host", center = 30, chunk = 2, overlap = false}).peak - 512})
        assert.matches("a pair of rows of this scan needs", message, 1, true)
        assert.matches("or take the option method = fbp and the option mode = ", message, 1, true)
    end)
end)

describe("a run", function()
    local function arrays(n, rows, cols, center, options)
        options = options or {}
        local angles = mb.tomo.angles(n, options.turn)
        local body = mb.phantom.scale(mb.phantom.shepp_logan, cols / 2, math.max(rows / 2, 1),
            2 / cols)
        local lines <close> = mb.ellipsoid_projections(body, angles, mb.phantom.heights(rows),
            cols, {center = center})
        local minus <close> = -lines
        local transmission <close> = minus:exp()
        local noise <close> = mb.random({n, rows, cols},
            {seed = 5, low = -options.noise, high = options.noise})
        local scaled <close> = transmission * 1000
        local counts <close> = scaled + noise
        return counts:cast("u16"), angles
    end

    it("takes what the plan for its axis says, and never more than the one before", function()
        for _, case in ipairs {
            {30, 5, 64, 36.5, {noise = 2}, {}}, {31, 4, 75, 30, {noise = 60}, {circle = 0}},
                {31, 1, 51, 22, {noise = 5}, {}},
            {40, 6, 64, 34, {noise = 2}, {dtype = "u16", chunk = 2}},
                {40, 6, 64, 29, {noise = 2}, {dtype = "f16", overlap = false}},
            {40, 6, 64, 34, {noise = 2}, {axis_tilt = 0.02}},
                {40, 6, 64, 34, {noise = 2}, {method = "fbp", mode = "in_place"}},
            {60, 4, 64, 48, {noise = 2, turn = 2 * math.pi}, {half_acquisition = true}},
        } do
            local n, rows, cols, center, how, options = table.unpack(case)
            local raw <close>, angles = arrays(n, rows, cols, center, how)
            local flats <close> = mb.full({2, rows, cols}, 1000, {dtype = "u16"})
            options.flats, options.quiet, options.pinned = flats, true, "1Mi"
            mb.collect()
            local before = mb.pool.stats("host").live
            local scope <close> = mb.pool.scope("host")
            local volume <close>, report = mb.recon.reconstruct(raw, angles, options)
            local plan = report.plan
            assert.is_true(plan.exact and report.as_planned)
            assert.equal(plan.run_peak, report.peak)
            assert.equal(plan.pinned, report.pinned)
            assert.is_true(plan.peak <= plan.at_most)
            assert.equal(plan.peak + mb.pool.round(volume.bytes), scope:finish())
            assert.is_true(mb.pool.stats("host").live > before)
        end
    end)

    -- Runs with a plan of which the bytes are wrong.
    local LYING = [[
        local mb = require "moonbeam"
        local raw = mb.full({8, 2, 16}, 500, {dtype = "u16"})
        local flats = mb.full({1, 2, 16}, 1000, {dtype = "u16"})
        local scan = mb.scan.of_arrays(raw, mb.tomo.angles(8), {flats = flats})
        local plan = mb.recon.plan(scan, {center = 7.5, quiet = true, pinned = "1Mi"})
        local peaks = plan.made.sections[1].peaks
        peaks.host = peaks.host + 512 * tonumber(arg[1])
        local report = mb.recon.run(scan, plan, function() end)
        print("as planned:", report.as_planned)
    ]]

    it("that takes something else is an error in specs, and a loud warning otherwise", function()
        local name = os.tmpname()
        local file = assert(io.open(name, "w"))
        file:write(LYING)
        file:close()
        local _ <close> = setmetatable({}, {__close = function() os.remove(name) end})
        local text, status = helper.run_program(name .. " 0")
        assert.equal(0, status, text)
        assert.matches("as planned:\ttrue", text)
        text, status = helper.run_program(name .. " 1", nil, "env MOONBEAM_STRICT=1 "
            .. helper.program)
        assert.equal(1, status, text)
        assert.matches("the run takes %d+ bytes, but %d+ were promised: this is a defect", text)
        for _, more in ipairs {"1", "-1"} do
            text, status = helper.run_program(name .. " " .. more, nil, "env -u MOONBEAM_STRICT "
                .. helper.program)
            assert.equal(0, status, text)
            assert.matches("WARNING: the run takes %d+ bytes, but %d+ were promised: this is a "
                .. "defect", text)
            assert.matches("as planned:\tfalse", text)
        end
    end)

    it("may be looked at by functions that take memory of their own", function()
        local raw <close> = mb.full({8, 4, 16}, 500, {dtype = "u16"})
        local flats <close> = mb.full({1, 4, 16}, 1000, {dtype = "u16"})
        local scan = mb.scan.of_arrays(raw, mb.tomo.angles(8), {flats = flats})
        local plan = mb.recon.plan(scan, {center = 7.5, quiet = true, pinned = "1Mi", chunk = 2})
        local report = mb.recon.run(scan, plan, function(slices)
            local copy <close> = slices:copy()
            local more <close> = mb.zeros({1000, 1000})
            return copy.bytes + more.bytes
        end)
        assert.is_true(report.as_planned)
        assert.is_true(report.peak > plan.run_peak)
    end)
end)
