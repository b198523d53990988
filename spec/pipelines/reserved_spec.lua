-- What a plan reserves for the blocks of a device that is lost: in a fixed schedule a device may get
-- blocks that it has not been planned for, of more rows or with more neighbors. What it takes stays
-- within the plan, and is what a dry run of its blocks takes.

local helper = require "spec.helper"
local mb = require "moonbeam"
local pipelines = require "spec.support.pipelines"
local dry_work = require "moonbeam.pipeline.planning.dry_work"

local SEVERAL <const> = 7 -- devices that this process can lose

describe("a fixed schedule", function()
    local scan, all

    before_each(function()
        scan, all = pipelines.open_scan()
    end)
    after_each(function()
        getmetatable(all).__close()
    end)

    -- Block 1 and 3 have neighbors on one side only, block 5 is a single row: host gets these.
    local function pipeline_of(devices, budget)
        return mb.pipeline(scan, {"flat_field", "neighbors", "minus_log", {"fbp", center = 15.5}},
            {devices = devices, quiet = true, pinned = "1Mi", steps = pipelines.OWN, block = 3,
            schedule = "fixed", order = {1, 2, 2, 2, 1}, overlap = false, budget = budget})
    end

    it("reserves memory for the blocks of a lost device, and stays within it", function()
        local whole = pipelines.volume(scan, {"flat_field", "neighbors", "minus_log",
            {"fbp", center = 15.5}}, {block = 3})
        local replayed, more = dry_work.replayed, 0
        for k = 1, SEVERAL do
            local id = "host:" .. k
            local pipeline = pipeline_of({"host", id})
            local made = pipeline:plan()
            assert.is_true(made.reserved.host > made.peaks.host)
            assert.equal(made.reserved.host, made.at_most)
            assert.matches("if another device is lost", tostring(made))
            local exact
            function dry_work.replayed(...) -- luacheck: ignore
                exact = replayed(...)
                return exact
            end
            mb.debug.lose_device(id, 4 + 9 * k)
            local parts = {}
            local ok, report = pcall(pipeline.run, pipeline, function(block, z)
                local host <close> = block:to "host"
                parts[z] = host:to_string()
            end)
            dry_work.replayed = replayed
            mb.debug.lose_device(id, 0)
            assert.is_true(ok, tostring(report))
            assert.equal(1, #report.lost)
            assert.is_true(report.as_planned)
            assert.equal(report.predicted, report.peak)
            assert.is_true(report.peak <= made.reserved.host)
            if exact then -- lost inside
                assert.equal(exact.host, report.peak)
                more = more + (report.peak > made.peaks.host and 1 or 0)
            end
            local list = {}
            for z = 1, pipelines.ROWS do
                list[#list + 1] = parts[z]
            end
            assert.is_true(whole == table.concat(list))
        end
        assert.is_true(more > 0)
    end)

    it("does not fit a budget without what is reserved", function()
        local made = pipeline_of({"host", "host:1"}):plan()
        local message = helper.failure(function()
            pipeline_of({"host", "host:1"}, made.reserved.host - 1):plan()
        end)
        assert.matches("a chunk of 3 rows needs", message)
        pipeline_of({"host", "host:1"}, made.reserved.host):plan()
    end)

    it("reserves nothing more for one device, or where all blocks are planned for all", function()
        for _, options in ipairs {{devices = "host"}, {devices = {"host", "host:1"},
            schedule = "free"}} do
            options.quiet, options.pinned, options.block = true, "1Mi", 3
            local made = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 15.5}},
                options):plan()
            assert.same(made.peaks, made.reserved)
        end
    end)
end)
