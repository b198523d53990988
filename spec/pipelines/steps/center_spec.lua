-- Step center by each of its methods: the axis of simulated scans through a pipeline, the memory
-- that the plan says, verdicts, and what is refused.

local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local N, ROWS <const> = 96, 10

-- Transmissions of a phantom, with noise, to be closed: {scan, frames}.
local function scan_of(case)
    local angles, span = {}, case.span or math.pi
    local count = case.angles or 121
    for i = 1, count do
        angles[i] = span * (i - 1) / (count - 1)
    end
    local object = mb.phantom.scale(mb.phantom.shepp_logan, (case.size or 0.4) * N, 2 * ROWS)
    for i = 1, #object, 8 do
        object[i] = object[i] * (case.density or 0.02)
    end
    local frames = mb.ellipsoid_projections(object, angles, mb.phantom.heights(ROWS), N,
        {center = case.center})
    mb.unary(frames, "neg", {out = frames})
    mb.unary(frames, "exp", {out = frames})
    local errors <close> = mb.random(frames.shape, {seed = 2, low = -0.001, high = 0.001})
    mb.binary(frames, "add", {b = errors, out = frames})
    return setmetatable({scan = mb.scan.of_arrays(frames, angles), frames = frames},
        {__close = function() frames:release() end})
end

-- The center that a pipeline measures, its verdict, and whether the plan was kept.
local function measured(scan, options, before)
    local recipe = {}
    for _, step in ipairs(before or {}) do
        recipe[#recipe + 1] = step
    end
    options[1] = "center"
    for _, step in ipairs {options, "minus_log", {"fbp", size = 16}} do
        recipe[#recipe + 1] = step
    end
    local pipeline = mb.pipeline(scan, recipe, {input = "transmission", quiet = true,
        devices = {"host"}})
    local done = pipeline:run(function() end)
    return done.named.center, done.verdicts.center, done
end

local HALF = {{method = "auto"}, {method = "registration"}, {method = "vo"},
    {method = "phase_correlation"}, {method = "entropy", range = 10},
    {method = "sharpness", range = 6}, {preset = "httomo"}, {preset = "algotom"},
    {preset = "nabu"}, {method = "vo", row = 4, guess = 50, range = 8, step = 0.1}}

describe("step center", function()
    for _, options in ipairs(HALF) do
        local name = options.preset or options.method
        it(("finds the axis by %s, in the memory that was planned"):format(name), function()
            local held <close> = scan_of {center = 50.3}
            local column, verdict, done = measured(held.scan, options)
            assert.near(50.3, column, 0.3, verdict.how)
            assert.equal("found", verdict.verdict, verdict.how)
            assert.is_true(done.as_planned)
        end)
    end

    for _, side in ipairs {"left", "right"} do
        it("finds the axis near the edge by the overlap, on the " .. side, function()
            local center = side == "left" and 18.25 or 76.75
            local held <close> = scan_of {center = center, span = 2 * math.pi, size = 0.7,
                angles = 240}
            local column, verdict, done = measured(held.scan, {method = "overlap", window = 16},
                {"half_acquisition"})
            assert.near(center, column, 0.4)
            assert.equal(side, verdict.side)
            assert.is_true(done.as_planned)
        end)
    end

    it("leaves out a column that is stuck, by every method, in the memory that was planned",
        function()
        local held <close> = scan_of {center = 50.3}
        local stuck <close> = held.frames:view(mb.all, mb.all, {41, 41})
        stuck:fill(0.1)
        for _, options in ipairs {{method = "auto"}, {method = "registration"}, {method = "vo"},
            {method = "phase_correlation"}, {method = "entropy", range = 10, row = 4}} do
            for _, before in ipairs {{}, {{"crop", columns = {3, 94}}}} do
                local column, verdict, done = measured(held.scan, options, before)
                assert.near(50.3, column, 0.3, verdict.how)
                assert.equal("found", verdict.verdict, verdict.how)
                assert.matches("1 dead or stuck column is left out", verdict.how, 1, true)
                assert.is_true(done.as_planned)
            end
        end
    end)

    it("searches the same columns of a part of the scan", function()
        local held <close> = scan_of {center = 50.3}
        for _, method in ipairs {"vo", "phase_correlation", "entropy"} do
            local column, verdict = measured(held.scan, {method = method, range = 8,
                row = method ~= "phase_correlation" and 4 or nil},
                {{"crop", columns = {9, 92}, rows = {2, 8}}})
            assert.near(50.3, column, 0.4, method)
            assert.is_true(verdict.columns[1] > 25)
        end
    end)

    it("says where nothing is, that the range ends too soon, and that methods differ", function()
        local held <close> = scan_of {center = 50.3, density = 0}
        for _, method in ipairs {"vo", "phase_correlation", "sharpness"} do
            local _, verdict = measured(held.scan, {method = method})
            assert.is_true(verdict.verdict ~= "found", method)
            assert.matches("axis", verdict.remedy)
        end
        local other <close> = scan_of {center = 60}
        local _, verdict = measured(other.scan, {method = "vo", guess = 50, range = 6})
        assert.is_true(verdict.verdict ~= "found")
    end)

    it("does not trust opposite projections that hardly match: stripes match themselves", function()
        for seed = 1, 8 do
            local held <close> = scan_of {center = 57.5, density = seed % 2 == 0 and 2e-4 or 2e-3}
            local stripes <close> = mb.random({1, ROWS, N}, {seed = seed, low = 0.7, high = 1})
            mb.binary(held.frames, "mul", {b = stripes, out = held.frames})
            for _, method in ipairs {"auto", "vo"} do
                local column, verdict = measured(held.scan, {method = method, range = 24})
                local right = math.abs(column - 57.5) < 1
                assert.is_true(verdict.verdict ~= "found" or right, verdict.how)
            end
        end
    end)

    it("stores the curve of the search in the result", function()
        local held <close> = scan_of {center = 50.3}
        local folder = files.folder()
        local path = folder .. "/result.h5"
        mb.pipeline(held.scan, {{"center", method = "vo"}, "minus_log", {"fbp", size = 16}},
            {input = "transmission", quiet = true}):run {output = path}
        local file <close> = assert(mb.h5.open(path))
        local metric = file:value "/entry/provenance/values/center_metric"
        local columns = file:value "/entry/provenance/values/center_columns"
        assert.equal(#columns, #metric)
        assert.is_true(#metric > 10)
        files.remove(folder)
    end)

    it("is found in resampled rows, which lie between those of the scan", function()
        local frames <close> = mb.random({8, 6, 10}, {seed = 1, low = 0.2})
        local scan = mb.scan.of_arrays(frames, mb.tomo.angles(8), {})
        for _, method in ipairs {"auto", "vo", "sharpness"} do
            for _, factor in ipairs {9, 1.5} do
                local report = mb.pipeline(scan, {{"resample", factor = factor},
                    {"center", method = method}}, {quiet = true, input = "transmission"})
                    :run(function() end)
                assert.matches("rows? %d+%.?%d*", report.verdicts.center.how)
            end
        end
    end)

    for _, case in ipairs {
        {{method = "overlap"}, "method overlap needs a whole turn; the angles cover 1"},
        {{method = "vo"}, "method vo needs projections in equal steps over half a turn", span = 1},
        {{method = "phase_correlation"}, "no two projections are half a turn apart", span = 1},
        {{method = "vo", row = 11}, "row is 11; the data have rows 1 to 10"},
        {{method = "vo", guess = 200}, "guess is 200; the data have columns 0 to 95"},
        {{method = "vo", step = 2}, "step is 2"},
        {{method = "voo"}, "vo"},
        {{preset = "tomopy"}, "there are algotom, httomo, nabu"},
    } do
        it("refuses " .. case[2], function()
            local held <close> = scan_of {center = 50.3, span = case.span}
            assert.matches(case[2], helper.failure(measured, held.scan, case[1]), 1, true)
        end)
    end
end)
