-- Iterative methods on scans whose axis is near an edge of the detector, leans, or whose object is
-- larger than the field of view.

local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"

local COLS, ROWS, ANGLES <const> = 48, 4, 120

-- Ellipsoids of this radius, alike at all heights, in a field of so many pixels.
local function object(radius)
    return {1, radius, 0.8 * radius, 1e4, 0, 0, 0, 0.4,
        0.7, 0.3 * radius, 0.2 * radius, 1e4, 0.35 * radius, 0.2 * radius, 0, 0,
        -0.8, 0.15 * radius, 0.25 * radius, 1e4, -0.4 * radius, 0.1 * radius, 0, 0}
end

local function heights()
    local list = {}
    for z = 1, ROWS do
        list[z] = (ROWS + 1) / 2 - z
    end
    return list
end

local function half_scan(center, radius)
    local turn = {}
    for i = 1, ANGLES do
        turn[i] = (i - 1) * 2 * math.pi / ANGLES
    end
    local frames = mb.ellipsoid_projections(object(radius), turn, heights(), COLS,
        {center = center})
    return check.scan(frames, {angles = turn}), frames
end

-- The relative error of slices against the object, in the part of the field with this radius.
local function error_of(slices, radius, part)
    local n = slices.shape[3]
    local truth <close> = mb.ellipsoid_volume(object(radius), heights(), {n, n})
    local difference <close> = slices - truth
    mb.circular_mask(difference, {radius = part or 1, out = difference})
    mb.circular_mask(truth, {radius = part or 1, out = truth})
    return difference:norm() / truth:norm()
end

-- Their error after so few iterations, beside that of filtered back-projection.
local SLOWER = {sirt = 1.2, osem = 1.7}

describe("iterative steps of half acquisitions", function()
    for _, center in ipairs {8, 40.25} do
        it(("make slices of the whole field about column %g, as fbp and better"):format(center),
            function()
            local scan, frames = half_scan(center, 30)
            local _ <close> = frames
            local direct <close> = check.gives(nil, scan, {"half_acquisition",
                {"fbp", center = center}}, "line integrals")
            local goal = error_of(direct, 30)
            for name, options in pairs {cgls = {iterations = 12},
                fista = {iterations = 40, lambda = 0.02}, sirt = {iterations = 60},
                admm_tv = {iterations = 10, lambda = 0.02},
                osem = {iterations = 6, negative = "zero"}} do
                local step = {name, center = center}
                for key, value in pairs(options) do
                    step[key] = value
                end
                local slices <close> = check.result(scan, {"half_acquisition", step}, 3,
                    "line integrals")
                assert.same(direct.shape, slices.shape)
                local most = (SLOWER[name] or 1) * goal
                assert.is_true(error_of(slices, 30) < most, ("%s %g %g"):format(name,
                    error_of(slices, 30), most))
            end
        end)
    end

    it("start from a direct reconstruction, too", function()
        local scan, frames = half_scan(8, 30)
        local _ <close> = frames
        local errors = {}
        for i, start in ipairs {0, "fbp"} do
            for k, iterations in ipairs {1, 8} do
                local slices <close> = check.gives(nil, scan, {"half_acquisition", {"cgls",
                    center = 8, iterations = iterations, start = start}}, "line integrals")
                errors[#errors + 1] = error_of(slices, 30)
                assert.equal(2 * i + k - 2, #errors)
            end
        end
        assert.is_true(errors[3] < 1.1 * errors[2] and errors[3] < 0.3 * errors[1],
            table.concat(errors, " "))
    end)

    it("give the same bits in blocks of any size, and on several devices", function()
        local scan, frames = half_scan(8, 30)
        local _ <close> = frames
        for name, options in pairs {cgls = {}, sart = {subsets = 5},
            fista = {dimensions = 3, slab = 2, overlap = 1, tv_iterations = 3, lambda = 0.02}} do
            local step = {name, center = 8, iterations = 2}
            for key, value in pairs(options) do
                step[key] = value
            end
            local recipe = {"half_acquisition", step}
            local whole <close> = check.gives(nil, scan, recipe, "line integrals")
            local p = mb.pipeline(scan, recipe, {block = 2, quiet = true,
                input = "line integrals", devices = "host,host:1"})
            local several <close> = p:slices()
            assert.is_true(whole:to_string() == several:to_string(), name)
        end
    end)

    it("find the axis, and take no more than was promised for any", function()
        local run = require "moonbeam.pipeline.run"
        local scan, frames = half_scan(8.25, 30)
        local _ <close> = frames
        for name, options in pairs {cgls = {start = "fbp"}, fista = {start = "fbp", size = 60,
            tv_iterations = 2}, sirt = {model = "pixel"},
            osem = {subsets = 7}, landweber = {}} do
            local step = {name, iterations = 2}
            for key, value in pairs(options) do
                step[key] = value
            end
            local p = mb.pipeline(scan, {"half_acquisition", "center", step},
                {input = "line integrals", block = 2, quiet = true})
            local made = p:plan()
            local bounds, most = made.job.measured.center.bounds, 0
            for axis = bounds[1], bounds[2], 0.5 do
                if math.abs(axis - (COLS - 1) / 2) > 1 then
                    most = math.max(most, (run.settle(made, {center = axis})).peak)
                end
            end
            assert.is_true(most <= made.at_most, name)
            local slices, done = p:slices()
            local _ <close> = slices
            assert.is_true(done.as_planned)
            assert.is_true(options.size ~= nil
                or math.abs(slices.shape[3] - (2 * (COLS - 9) + 1)) < 4)
            local direct <close> = check.result(scan, {"half_acquisition", "center", "fbp"}, 2,
                "line integrals")
            assert.is_true(options.size == slices.shape[3] or direct.shape[3] == slices.shape[3])
        end
    end)

    it("refuse what does not go with them", function()
        local scan, frames = half_scan(8, 30)
        local _ <close> = frames
        check.refused("beyond is nothing, but in a half acquisition", scan, {"half_acquisition",
            {"cgls", center = 8, beyond = "nothing"}}, "line integrals")
        local sinograms <close> = mb.zeros {1, 12, COLS}
        local angles = mb.tomo.angles(12)
        assert.matches("half_acquisition needs center", helper.failure(mb.tomo.cgls, sinograms,
            angles, {half_acquisition = true}))
        assert.matches("never in view as a whole", helper.failure(mb.tomo.cgls, sinograms,
            angles, {half_acquisition = true, center = 5, beyond = "nothing"}))
    end)

    it("take frames that step stitch has joined, with the normal operator", function()
        local scan, frames = half_scan(8, 30)
        local _ <close> = frames
        local project, count = mb.fourier_project, 0
        rawset(mb, "fourier_project", function(...)
            count = count + 1
            return project(...)
        end)
        local _ <close> = setmetatable({}, {__close = function()
            rawset(mb, "fourier_project", project)
        end})
        for _, start in ipairs {0, "fbp"} do
            local slices <close> = check.gives(nil, scan, {{"stitch", center = 8},
                {"cgls", center = 8, iterations = 10, start = start}}, "line integrals")
            assert.is_true(error_of(slices, 30) < 0.12, error_of(slices, 30))
        end
        assert.equal(0, count)
    end)
end)

describe("iterative steps of a leaning axis", function()
    it("take frames that step rotate has made upright", function()
        local lean <const> = 0.06
        local high = {}
        for z = 1, 24 do
            high[z] = 12.5 - z
        end
        local angles = mb.tomo.angles(60)
        local upright <close> = mb.ellipsoid_projections(object(18), angles, high, COLS)
        local frames <close> = mb.rotate(upright, lean, {mode = "edge"})
        local scan = check.scan(frames, {angles = angles})
        local middle = (COLS - 1) / 2
        local text = helper.failure(mb.pipeline, scan, {{"tilt", angle = lean},
            {"cgls", center = middle}}, {quiet = true, input = "line integrals"})
        local angle = tonumber(text:match("or step rotate with angle = (%S+) instead"))
        local function slices_of(...)
            local recipe = {...}
            recipe[#recipe + 1] = {"cgls", center = middle, iterations = 10}
            local volume <close> = check.result(scan, recipe, 1000, "line integrals")
            return volume:view({3, 6}):copy()
        end
        local plain <close> = slices_of()
        local turned <close> = slices_of({"rotate", angle = angle})
        assert.is_true(error_of(turned, 18) < 0.7 * error_of(plain, 18),
            ("%g %g"):format(error_of(turned, 18), error_of(plain, 18)))
    end)
end)

describe("iterative steps of objects that are larger than the field of view", function()
    it("lose the bright rim and the bowl by a margin", function()
        local angles = mb.tomo.angles(90)
        local radius <const> = 0.7 * COLS
        local disc = {1, radius, radius, 1e4, 0, 0, 0, 0}
        local frames <close> = mb.ellipsoid_projections(disc, angles, heights(), COLS)
        local scan = check.scan(frames, {angles = angles})
        -- The largest error of a ring of these radii, and the difference of rim and middle.
        local function faults(name, options)
            local step = {name, center = (COLS - 1) / 2}
            for key, value in pairs(options) do
                step[key] = value
            end
            local slices <close> = check.result(scan, {step}, 2, "line integrals")
            local values, sum, count, middle = slices:to_table()[1], {}, {}, nil
            for y = 1, COLS do
                for x = 1, COLS do
                    local ring = math.floor(math.sqrt((x - (COLS + 1) / 2) ^ 2
                        + (y - (COLS + 1) / 2) ^ 2) / (COLS / 2) * 8)
                    sum[ring] = (sum[ring] or 0) + values[y][x]
                    count[ring] = (count[ring] or 0) + 1
                end
            end
            local worst = 0
            for ring = 0, 6 do -- the last ring is that of the mask
                worst = math.max(worst, math.abs(sum[ring] / count[ring] - 1))
                middle = middle or sum[ring] / count[ring]
            end
            return worst, math.abs(sum[6] / count[6] - middle)
        end
        for name, options in pairs {cgls = {iterations = 10},
            sirt = {iterations = 20, start = "fbp"}, fista = {iterations = 30, lambda = 0.02}} do
            local rim, bowl = faults(name, options)
            options.margin = 20
            local less_rim, less_bowl = faults(name, options)
            local left = name == "sirt" and 0.5 or 0.25
            assert.is_true(rim > 0.1 and less_rim < left * rim, ("%s %g %g"):format(name, rim,
                less_rim))
            assert.is_true(less_bowl < left * bowl, ("%s %g %g"):format(name, bowl, less_bowl))
            options.start, options.iterations = "fbp", 5
            local start_rim = faults(name, options)
            assert.is_true(start_rim < left * rim, ("%s %g %g"):format(name, rim, start_rim))
        end
    end)
end)
