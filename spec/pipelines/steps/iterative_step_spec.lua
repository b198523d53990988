-- The steps of iterative methods: through a pipeline, in blocks of any size, each gives what its
-- function gives, and takes what was planned.

local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"

local ANGLES, ROWS, COLS <const> = 12, 5, 20

-- Options of the step, and those of the function where they differ.
local STEPS = {
    {"cgls", {tikhonov = 0.5, weights = "poisson"}},
    {"landweber", {nonnegative = true}},
    {"sirt", {start = 1, nonnegative = true}},
    {"sart", {subsets = 5, relaxation = 0.5}},
    {"mlem", {start = 0.5}},
    {"osem", {subsets = 3}},
    {"fista", {lambda = 0.01, tv_iterations = 5, weights = "poisson"}},
    {"admm_tv", {lambda = 0.01, tv_iterations = 5, inner = 2}},
    {"cgls", {tolerance = 0.5, check = 1, margin = 3}},
    {"osem", {negative = "zero", size = 13}},
    {"cgls", {model = "fourier"}},
    {"cgls", {model = "fourier", circle = 0.9, preconditioner = 0.05, tikhonov = 1}},
    {"cgls", {center = 11.25, preconditioner = 0.05}},
    {"fista", {lambda = 0, nonnegative = false, preconditioner = 0.05, tikhonov = 1}},
    {"cgls", {center = 11.25, start = "fbp"}},
    {"osem", {start = "fbp", subsets = 5}},
    {"sirt", {start = "fbp", model = "pixel", margin = 2}},
    {"landweber", {center = 14.5, beyond = "nothing"}},
    {"cgls", {center = 8.5, beyond = "unknown"}},
    {"fista", {model = "fourier", circle = 0.9, lambda = 0.01, tv_iterations = 3}},
    {"admm_tv", {model = "fourier", margin = 2, lambda = 0.01, tv_iterations = 3}},
}

describe("iterative steps", function()
    local data, scan
    local angles = mb.tomo.angles(ANGLES)

    setup(function()
        data = mb.random({ANGLES, ROWS, COLS}, {seed = 3, low = 0, high = 1, device = "host"})
        scan = check.scan(data, {pixel_size = 2e-6})
        helper.keep_live()
    end)
    teardown(function()
        data:release()
        helper.keep_live()
    end)

    local function step_of(name, options, more)
        local step = {name, center = 9.25, iterations = 3}
        for _, list in ipairs {options, more or {}} do
            for option, value in pairs(list) do
                step[option] = value
            end
        end
        return step
    end

    for _, case in ipairs(STEPS) do
        local name, options = table.unpack(case)
        local words = {}
        for option in pairs(options) do
            words[#words + 1] = option
        end
        table.sort(words)
        it(name .. " gives what the function gives, per meter: " .. table.concat(words, ", "),
            function()
            local own = step_of(name, options)
            own[1] = nil
            local sinograms <close> = data:permute(2, 1, 3)
            local slices, facts = mb.tomo[name](sinograms, angles, own)
            local _ <close> = slices
            assert.is_nil(facts.history)
            local expected <close> = slices * (1 / 2e-6)
            check.gives(expected, scan, {step_of(name, options)}, "line integrals"):release()
        end)
    end

    it("make the kernel of the normal operator once for all blocks of a device", function()
        local make, count = mb.normal_kernel, 0
        rawset(mb, "normal_kernel", function(...)
            count = count + (mb.device.dry() and 0 or 1)
            return make(...)
        end)
        local _ <close> = setmetatable({}, {__close = function()
            rawset(mb, "normal_kernel", make)
        end})
        local pipeline = mb.pipeline(scan, {step_of("cgls", {center = 11})},
            {block = 2, input = "line integrals", quiet = true})
        local report = pipeline:run(function() end)
        assert.equal(1, count)
        assert.equal(report.plan.peak, report.peak)
    end)

    it("give the same bits on several devices, and take there what was planned", function()
        for _, case in ipairs {{"cgls", {center = 11.25, start = "fbp"}},
            {"landweber", {center = 6, beyond = "nothing"}}, {"fista", {margin = 4, lambda = 0.01,
            tv_iterations = 3}}, {"sart", {subsets = 4, start = "fbp", center = 8}}} do
            local recipe = {step_of(case[1], case[2])}
            local whole <close> = check.result(scan, recipe, 100, "line integrals")
            for _, devices in ipairs {"host,host:1", "host:1"} do
                local p = mb.pipeline(scan, recipe, {block = 2, quiet = true,
                    input = "line integrals", devices = devices, schedule = "fixed"})
                local slices, done = p:slices()
                local _ <close> = slices
                assert.is_true(done.as_planned, case[1])
                assert.is_true(whole:to_string() == slices:to_string(), case[1])
            end
        end
    end)

    it("take no more than was promised for any axis", function()
        local run = require "moonbeam.pipeline.run"
        local promises = 0
        for _, case in ipairs {{"cgls"}, {"cgls", {circle = 0.6}}, {"cgls", {beyond = "nothing"}},
            {"cgls", {beyond = "unknown", circle = 0.8}}, {"landweber", {beyond = "unknown"}},
            {"fista", {margin = 7}},
            {"sirt", {circle = 0}}, {"sart", {subsets = 5}}, {"osem", {subsets = 3}},
            {"fista", {dimensions = 3, slab = 2, overlap = 1, circle = 0.8}},
            {"admm_tv", {size = 9, model = "pixel"}}} do
            local name, options = case[1], case[2] or {}
            local step = step_of(name, options,
                {tv_iterations = (name == "fista" or name == "admm_tv") and 2 or nil})
            step.center = nil
            local made = mb.pipeline(scan, {"center", step},
                {input = "line integrals", block = 2, quiet = true}):plan()
            local bounds, most = made.job.measured.center.bounds, 0
            for axis = bounds[1], bounds[2], 0.5 do
                most = math.max(most, (run.settle(made, {center = axis})).peak)
            end
            assert.is_true(most <= made.at_most, name)
            promises = promises + (most == made.at_most and 1 or 0)
        end
        assert.is_true(promises > 8, promises) -- the bound is no larger than needed
    end)

    it("make 3-D total variation from slabs, the same for blocks of any size", function()
        for _, name in ipairs {"fista", "admm_tv"} do
            local options = {lambda = 0.02, tv_iterations = 4, dimensions = 3, scale = 1}
            local own = step_of(name, options)
            own[1], own.scale = nil, nil
            local sinograms <close> = data:permute(2, 1, 3)
            local whole <close> = mb.tomo[name](sinograms, angles, own)
            check.gives(whole, scan, {step_of(name, options)}, "line integrals"):release()
            -- slabs of 2 with 1 beside them: rows 1 and 2 from 1 to 3, 3 and 4 from 2 to 5
            local slabs <close> = check.gives(nil, scan, {step_of(name, options,
                {slab = 2, overlap = 1})}, "line integrals")
            for first = 1, 3, 2 do
                local near <close> = sinograms:view({math.max(1, first - 1), math.min(ROWS,
                    first + 2)})
                local slices <close> = mb.tomo[name](near, angles, own)
                local expected <close> = slices[first == 1 and 1 or 2]
                local made <close> = slabs[first]
                assert.is_true(expected:to_string() == made:to_string())
            end
        end
    end)

    it("make volumes and slabs of many slices once", function()
        local rows = 140 -- more than a block of other steps
        local many <close> = mb.random({4, rows, 8}, {seed = 3, device = "host"})
        local denoise, made = mb.total_variation, {}
        rawset(mb, "total_variation", function(slices, ...)
            if not mb.device.dry() then
                made[#made + 1] = slices.shape[1]
            end
            return denoise(slices, ...)
        end)
        local _ <close> = setmetatable({}, {__close = function()
            rawset(mb, "total_variation", denoise)
        end})
        for _, case in ipairs {{nil, {rows, rows}}, {70, {75, 75, 75, 75}}} do
            for _, block in ipairs {0, 2} do -- chosen, or asked for
                made = {}
                mb.pipeline(check.scan(many), {{"fista", center = 3.5, iterations = 2,
                    dimensions = 3, tv_iterations = 2, slab = case[1], overlap = case[1] and 5}},
                    {input = "line integrals", quiet = true, block = block > 0 and block or nil})
                    :run(function() end)
                assert.same(case[2], made)
            end
        end
    end)

    it("tell of slices that are not finite, each once, in blocks of any size", function()
        local SPOIL <const> = {name = "spoil", summary = "Puts a NaN into row 2 and an infinity "
            .. "into row 5.", takes = {quantity = "any", layout = "frames"},
            gives = {quantity = "same", layout = "same"}, cuts = {"rows"},
            run = function(block)
                for row, dividend in pairs {[2] = 0, [5] = 1} do
                    if row >= block.rows[1] and row <= block.rows[2] then
                        local at = row - block.rows[1] + 1
                        local values <close> = block.data:view({3, 3}, {at, at}, {7, 7})
                        mb.binary(values, "mul", {scalar = 0, out = values})
                        local zero <close> = mb.convert(values, "f32")
                        mb.binary(values, "add", {scalar = dividend, out = values})
                        mb.binary(values, "div", {b = zero, out = values})
                    end
                end
            end}
        local VOLUME <const> = {dimensions = 3, lambda = 0.01, tv_iterations = 2, iterations = 2}
        for _, case in ipairs {{"cgls"}, {"sirt"}, {"fista", VOLUME, {slab = 2, overlap = 1}},
            {"fista", VOLUME, {sweep = 2}}} do
            local name, options, more = table.unpack(case)
            for _, block_rows in ipairs(more and {2} or {1, 2, 5}) do
                local slices, report = mb.pipeline(scan, {"spoil", step_of(name, options or {},
                    more)}, {devices = "host", block = block_rows, steps = {SPOIL}, quiet = true,
                    input = "line integrals"}):slices()
                local _ <close> = slices
                local spoiled = 0 -- slices are made in pairs, so there may be more than two
                for row = 1, ROWS do
                    local slice <close> = slices[row]
                    local sum = slice:sum()
                    spoiled = spoiled + (sum - sum == 0 and 0 or 1)
                end
                assert.is_true(spoiled >= 2)
                assert.equal(spoiled, report.totals.spoiled[1])
                assert.matches(("%d slices have values that are not finite"):format(spoiled),
                    table.concat(report.warnings, "\n"), 1, true)
            end
        end
    end)

    it("tell of rows whose object reaches an edge of the detector, if nobody has said what is there",
        function()
        local function told(radius, center, step, block)
            local disc = {0.1, radius, radius, 2, 0, 0, 0, 0} -- in rows 2 to 4
            local frames <close> = mb.ellipsoid_projections(disc, angles, {3, 1, 0, -1, -3}, COLS,
                {center = center})
            step.center = center
            local slices, report = mb.pipeline(check.scan(frames), {step}, {devices = "host",
                block = block, quiet = true, input = "line integrals"}):slices()
            slices:release()
            assert.is_true(report.as_planned)
            return report.totals.spoiled[2], table.concat(report.warnings, "\n")
        end
        for _, block in ipairs {1, 2, 5} do
            for _, case in ipairs {{8, 9.5, 0}, {9, 11.5, 3}, {14, 9.5, 3}} do
                local radius, center, rows = table.unpack(case)
                local count, words = told(radius, center, {"cgls", iterations = 2}, block)
                assert.equal(rows, count)
                assert.equal(rows > 0, words:find("in 3 rows the object reaches an edge", 1, true)
                    ~= nil)
            end
        end
        local volume = {dimensions = 3, lambda = 0.01, tv_iterations = 2, iterations = 2}
        local function step(name, ...)
            return step_of(name, volume, ...)
        end
        assert.equal(3, told(14, 9.5, step("fista", {sweep = 2}), 2))
        assert.equal(3, told(14, 9.5, step("admm_tv", {slab = 2, overlap = 1}), 2))
        for _, other in ipairs {{"sirt"}, {"cgls", beyond = "nothing"},
            {"cgls", beyond = "unknown"}, {"landweber", margin = 4}, {"cgls", model = "pixel"},
            {"cgls", weights = "poisson"}} do
            other.iterations = 2
            assert.equal(0, (told(9, 11.5, other, 5)))
        end
        for _, other in ipairs {{"sirt"}, {"osem", negative = "zero"}, {"cgls",
            weights = "poisson"}} do
            other.iterations = 2
            assert.equal(3, (told(14, 9.5, other, 5))) -- larger than the field of view
            other.margin = 4
            assert.equal(0, (told(14, 9.5, other, 5)))
        end
    end)

    it("refuse what they do not support", function()
        local function refused(part, recipe)
            check.refused(part, scan, recipe, "line integrals")
        end
        for _, case in ipairs(STEPS) do
            local name = case[1]
            refused(("step %s: it does not support a leaning axis"):format(name),
                {{"tilt", angle = 0.02}, {name, center = 9}})
            refused(("step %s: center is 20; the detector has columns 0 to 19"):format(name),
                {{name, center = 20}})
            refused("iterations is 0", {{name, center = 9, iterations = 0}})
            refused("start is the string 'half'; it must be a number", {{name, center = 9,
                start = "half"}})
            refused("tolerance", {{name, center = 9, tolerance = 0 / 0}})
        end
        check.refused("transmission", scan, {{"cgls", center = 9}}, "transmission")
    end)

    it("refuse negative data by mlem when they are met", function()
        local negative <close> = data - 0.5
        local p = mb.pipeline(check.scan(negative), {{"mlem", center = 9, iterations = 2}},
            {quiet = true, input = "line integrals"})
        local ok, problem = pcall(p.slices, p)
        assert.is_false(ok)
        assert.matches("sinograms has values from .*negative = \"zero\"", tostring(problem))
    end)
end)
