-- Whole pipelines: what is measured is what was planned, to the byte, for every recipe; the result
-- is the same to the bit however it is cut.

local helper = require "spec.helper"
local mb = require "moonbeam"
local pipelines = require "spec.support.pipelines"

local ANGLES, ROWS, COLS, OWN = pipelines.ANGLES, pipelines.ROWS, pipelines.COLS, pipelines.OWN
local random_of, random_recipe = pipelines.random_of, pipelines.random_recipe

helper.each_device(function(device, test)
    local scan

    -- The scan of a test, until the returned value is closed.
    local function open_scan()
        local all
        scan, all = pipelines.open_scan()
        return all
    end

    -- The result of a recipe as a string, and the report.
    local function volume(recipe, options)
        local own = {devices = device, quiet = true, pinned = "1Mi", threads = 2, steps = OWN}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local pipeline = mb.pipeline(scan, recipe, own)
        local parts = {}
        local report = pipeline:run(function(block)
            local host <close> = block:to "host"
            parts[#parts + 1] = host:to_string()
        end)
        return table.concat(parts), report, pipeline
    end

    -- A journal (pipeline/journal.lua) that knows nothing but what these methods say.
    local function journal_of(methods)
        return setmetatable(methods, {__index = function()
            return function() end
        end})
    end

    -- The rows of the result are cut along their first axis, whatever the blocks.
    local function rows_of(pipeline)
        return pipeline.chain.shape[1]
    end

    describe("a pipeline on " .. device, function()
        test("takes what its plan says, and gives the same bits for all blocks: 200 recipes",
            function()
            local _ <close> = open_scan()
            local sections, stored = 0, 0
            for seed = 1, 200 do
                local recipe = random_recipe(seed)
                local whole, report = volume(recipe)
                assert.is_true(report.as_planned, "seed " .. seed)
                assert.equal(report.plan.peak, report.peak, "seed " .. seed)
                assert.is_true(report.peak <= report.plan.at_most)
                sections = sections + #report.sections
                stored = stored + (#report.sections > 1 and 1 or 0)
                local pick = random_of(seed + 1000)
                local cut, other = volume(recipe, {block = pick {1, 2, 3, 5, 7},
                    overlap = pick {true, false}})
                assert.is_true(whole == cut, "seed " .. seed)
                assert.is_true(other.as_planned, "seed " .. seed)
                assert.equal(other.plan.peak, other.peak, "seed " .. seed)
            end
            assert.is_true(sections > 250 and stored > 40, sections .. " " .. stored)
        end)

        test("fits the budget that it is given, and says what the least is", function()
            local _ <close> = open_scan()
            local recipe = {"flat_field", "smooth_frames", "minus_log", {"fourier", center = 15.5}}
            local whole, report = volume(recipe)
            local tried = 0
            for part = 1, 6 do
                local ok, cut, other = pcall(volume, recipe, {budget = report.peak * part // 7})
                if ok then
                    assert.is_true(cut == whole)
                    assert.is_true(other.peak <= report.peak * part // 7)
                    tried = tried + 1
                else
                    assert.equal("budget", cut.code)
                    assert.matches("give the option budget at least %S+ KiB %(%d+ bytes%)", cut.message)
                end
            end
            assert.is_true(tried >= 1)
        end)

        test("stores between sections in a scratch file where memory is short", function()
            local _ <close> = open_scan()
            local recipe = {"flat_field", "smooth_frames", "minus_log", {"fbp", center = 15.5}}
            local whole, report = volume(recipe)
            local there, other = volume(recipe, {host_budget = 1024, scratch = "."})
            assert.is_true(there == whole)
            assert.equal(4 * ANGLES * ROWS * COLS, other.plan.scratch)
            assert.equal(0, report.plan.scratch)
            assert.is_true(other.as_planned)
            local message = helper.failure(volume, recipe, {host_budget = 1024})
            assert.matches("scratch", message)
        end)

        test("rescales by the percentiles of all values", function()
            local _ <close> = open_scan()
            local chain = {"flat_field", "minus_log", {"fbp", center = 15.5, circle = 0}}
            local whole = volume(chain)
            local values = {}
            for at = 1, #whole, 4 do
                values[#values + 1] = string.unpack("f", whole, at)
            end
            table.sort(values)
            local function percentile(p)
                local place = p / 100 * (#values - 1)
                local low = math.floor(place)
                return values[low + 1] + (values[math.min(low + 2, #values)] - values[low + 1])
                    * (place - low)
            end
            chain[4] = {"rescale", dtype = "uint16", percentiles = {5, 90}}
            for _, block in ipairs {1, 4, ROWS} do
                local _, report = volume(chain, {block = block})
                assert.near(percentile(5), report.values.range[1], 1e-12)
                assert.near(percentile(90), report.values.range[2], 1e-12)
                assert.equal(2, #report.sections)
                assert.is_true(report.as_planned)
            end
        end)

        test("makes only the rows that are left, and tells of each block", function()
            local _ <close> = open_scan()
            local run = require "moonbeam.pipeline.run"
            local made = 0
            for seed = 1, 30 do
                local recipe = random_recipe(seed)
                local pick = random_of(seed + 2000)
                local _, whole, pipeline = volume(recipe, {block = pick {1, 2, 3, 5}})
                local plan = pipeline:plan()
                local count = rows_of(pipeline)
                local a, b = pick {1, 2, 3}, pick {4, 6, 7}
                local asked = {{b, math.min(b + pick {0, 1, 3}, count)}, {a, a}}
                -- The last section goes on, the others start again.
                local rows, last = {}, #plan.sections
                local tallies, again = {}, {}
                local journal = journal_of {pending = function(_, section)
                    return section.number == last and asked or nil
                end, finished = function(_, section, range, facts)
                    if section.number == last then
                        for row = range[1], range[2] do
                            assert.is_nil(rows[row])
                            rows[row] = true
                        end
                        require "moonbeam.pipeline.work".add(tallies, facts.tallies)
                    end
                    assert.equal(device, facts.device.id)
                end}
                local report = run.execute(plan, {sink = function(_, first)
                    again[#again + 1] = first
                end, journal = journal, quiet = true})
                assert.is_true(report.as_planned, "seed " .. seed)
                for _, range in ipairs(asked) do
                    for row = range[1], range[2] do
                        assert.is_true(rows[row], "seed " .. seed)
                    end
                end
                for _ in pairs(rows) do
                    made = made + 1
                end
                assert.is_true(report.peak <= whole.peak)
                assert.equal(#again, #report.plan.sections[last].blocks)
                if last == 1 then
                    assert.same(report.totals, tallies)
                end
            end
            assert.is_true(made > 60, made)
        end)

        test("has nothing to do where nothing is left", function()
            local _ <close> = open_scan()
            local run = require "moonbeam.pipeline.run"
            local _, _, pipeline = volume({"flat_field", "minus_log", {"fbp", center = 15.5}})
            local report = run.execute(pipeline:plan(), {sink = error, quiet = true,
                journal = journal_of {pending = function() return {} end,
                    tallies = function() return {mended = {1, 2, 3}} end}})
            assert.same({1, 2, 3}, report.totals.mended)
        end)

        test("gives some rows as the whole has them", function()
            local _ <close> = open_scan()
            for seed = 1, 20 do
                local recipe = random_recipe(seed)
                local last = recipe[#recipe]
                if not (type(last) == "table" and (last.sample or last.percentiles)) then -- which is of the rows asked for
                    local whole, _, pipeline = volume(recipe)
                    local bytes = #whole // rows_of(pipeline)
                    local part <close> = mb.pipeline(scan, recipe, {devices = device, quiet = true,
                        pinned = "1Mi", threads = 2, steps = OWN}):slices {4, 6}
                    local measured = false
                    for _, step in ipairs(recipe) do
                        measured = measured or step == "center"
                    end
                    if not measured then
                        assert.is_true(part:to_string()
                            == whole:sub(3 * bytes + 1, 6 * bytes), "seed " .. seed)
                    end
                end
            end
        end)
    end)
end)

describe("a pipeline on two host devices", function()
    it("gives the same bits for every order of devices", function()
        local raw <close> = mb.random({ANGLES, ROWS, COLS}, {dtype = "u16", low = 300, high = 900,
            seed = 3})
        local flats <close> = mb.full({2, ROWS, COLS}, 1000, {dtype = "u16"})
        local scan = mb.scan.of_arrays(raw, mb.tomo.angles(ANGLES), {flats = flats})
        local recipe = {"flat_field", "minus_log", "smooth_frames", {"fbp", center = 15.5}}
        local function run(options)
            options.quiet, options.pinned, options.steps, options.block = true, "1Mi", OWN, 3
            local parts = {}
            local report = mb.pipeline(scan, recipe, options):run(function(block, first)
                local host <close> = block:to "host"
                parts[first] = host:to_string()
            end)
            assert.is_true(report.as_planned)
            local list = {}
            for first = 1, ROWS, 3 do
                list[#list + 1] = parts[first]
            end
            return table.concat(list), report
        end
        local one = run {devices = "host"}
        for _, order in ipairs {{1, 2}, {2, 1}, {1, 1, 2}, {2, 2, 2, 1}, {1, 2, 2, 1, 2}} do
            local two, report = run {devices = {"host", "host:1"}, order = order}
            assert.is_true(one == two)
            assert.is_true(report.peaks.host > 0 and report.peaks["host:1"] > 0)
        end
    end)
end)
