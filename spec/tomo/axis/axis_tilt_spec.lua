local files = require "spec.support.files"
local mb = require "moonbeam"
local helper = require "spec.helper"

-- Transmissions of blobs about an axis that leans, to be closed: {scan, frames}.
local function scan_of(lean, rows, density)
    local n, angles = 64, {}
    for i = 1, 60 do
        angles[i] = math.pi * (i - 1) / 59
    end
    local object = mb.phantom.scale(mb.phantom.shepp_logan, 0.4 * n, 4 * rows)
    for i = 1, #object, 8 do
        object[i] = object[i] * (density or 0.02)
    end
    local frames = mb.empty({60, rows, n})
    for row = 1, rows do
        local center = 31 + lean * (row - (rows + 1) / 2)
        local line <close> = mb.ellipsoid_projections(object, angles, {row - (rows + 1) / 2}, n,
            {center = center})
        local to <close> = frames:view(mb.all, {row, row}, mb.all)
        line:cast("f32", {out = to})
    end
    mb.unary(frames, "neg", {out = frames})
    mb.unary(frames, "exp", {out = frames})
    local noise <close> = mb.random(frames.shape, {seed = 3, low = -0.001, high = 0.001})
    mb.binary(frames, "add", {b = noise, out = frames})
    return setmetatable({scan = mb.scan.of_arrays(frames, angles), frames = frames},
        {__close = function() frames:release() end})
end

describe("recon.find_tilt", function()
    for _, lean in ipairs {0, 0.03, -0.08} do
        it(("finds a slope of %g columns per row"):format(lean), function()
            local held <close> = scan_of(lean, 40)
            local angle, details = mb.recon.find_tilt(held.scan, {quiet = true})
            assert.near(math.atan(lean), angle, 0.003)
            assert.equal("found", details.verdict)
            assert.equal(4, #details.centers)
        end)
    end

    it("says that there are too few rows, or nothing to see", function()
        local low <close> = scan_of(0, 6)
        local _, details = mb.recon.find_tilt(low.scan, {quiet = true})
        assert.equal("low", details.verdict)
        local empty <close> = scan_of(0, 40, 0)
        _, details = mb.recon.find_tilt(empty.scan, {quiet = true})
        assert.equal("flat", details.verdict)
    end)

    it("says that columns are not on a line", function()
        local held <close> = scan_of(0, 40)
        local other <close> = scan_of(0.3, 40)
        local from <close> = other.frames:view(mb.all, {1, 10}, mb.all)
        local to <close> = held.frames:view(mb.all, {11, 20}, mb.all)
        from:cast("f32", {out = to})
        local _, details = mb.recon.find_tilt(held.scan, {quiet = true})
        assert.equal("differ", details.verdict)
    end)
end)

describe("step tilt", function()
    local function pipeline(held, angle)
        return mb.pipeline(held.scan, {{"tilt", angle = angle}, {"center", column = 31},
            "minus_log", {"fbp", size = 16}}, {input = "transmission", quiet = true,
            devices = {"host"}})
    end

    it("measures the angle, and goes on with it", function()
        local held <close> = scan_of(0.03, 40)
        local made = pipeline(held, "auto")
        local angle = made.chain.steps[1].options.angle
        assert.near(math.atan(0.03), angle, 0.003)
        local done = made:run(function() end)
        assert.is_true(done.as_planned)
    end)

    it("refuses an angle that is not sure, and other words", function()
        local held <close> = scan_of(0, 6)
        assert.matches("too few rows to tell how the axis leans; give the angle",
            helper.failure(pipeline, held, "auto"), 1, true)
        assert.matches("angle is 'automatic'; give a number of radians, or \"auto\"",
            helper.failure(pipeline, held, "automatic"), 1, true)
    end)

    it("is what the step tilt measures, in memory that the plan counts", function()
        local held <close> = scan_of(0.005, 400)
        local folder = files.folder()
        local path = folder .. "/leaning.h5"
        local made = mb.pipeline(held.scan, {{"tilt", angle = "auto"}, "minus_log",
            {"fbp", center = 31}}, {input = "transmission", block = 1})
        local _, details = mb.recon.find_tilt(held.scan, {quiet = true})
        assert.equal("found", details.verdict)
        local bytes = mb.pool.peak(function()
            mb.recon.find_tilt(held.scan, {quiet = true})
        end, "host")
        assert.equal(bytes, made:plan().peaks.host) -- more than a block of one slice takes
        local report = made:run {quiet = true, overwrite = true, output = path}
        assert.equal(bytes, report.peaks.host)
        assert.equal(bytes, report.predicted)
        assert.is_true(report.as_planned)
        files.remove(folder)
    end)
end)
