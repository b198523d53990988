-- Scans that would fit one block on several devices: each device gets work if there are at least as
-- many packets as devices; where not, the plan says so. What a device takes is what was planned.

local mb = require "moonbeam"
local pipelines = require "spec.support.pipelines"

describe("a small scan on several devices", function()
    local scan, all

    before_each(function()
        scan, all = pipelines.open_scan()
    end)
    after_each(function()
        getmetatable(all).__close()
    end)

    local IDS <const> = {"host", "host:1", "host:2", "host:3"}

    -- Runs a recipe on `count` devices: the bytes of the result, the report, the plan as text.
    local function run(recipe, count, options)
        local own = {quiet = true, pinned = "1Mi", steps = pipelines.OWN, budget = "64Mi",
            devices = {table.unpack(IDS, 1, count)}}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local pipeline, parts = mb.pipeline(scan, recipe, own), {}
        local text = tostring(pipeline:plan())
        local report = pipeline:run(function(block, first)
            local host <close> = block:to "host"
            parts[#parts + 1] = {first, host:to_string()}
        end)
        table.sort(parts, function(a, b) return a[1] < b[1] end)
        for i, part in ipairs(parts) do
            parts[i] = part[2]
        end
        return table.concat(parts), report, text
    end

    -- The least number of blocks that a device got in any section.
    local function least(report)
        local blocks = math.huge
        for _, section in ipairs(report.sections) do
            for _, lane in ipairs(section.times.lanes) do
                blocks = math.min(blocks, lane.blocks)
            end
        end
        return blocks
    end

    local SLICES <const> = {"flat_field", "minus_log", {"fbp", center = 15.5}}
    local STORED <const> = {"flat_field", "smooth_frames", "minus_log", {"fbp", center = 15.5}}
    local THREES <const> = {"flat_field", "minus_log", {"fbp", center = 15.5}, "mean_of_three"}

    it("gives each of them work, and the same bits", function()
        for _, recipe in ipairs {SLICES, STORED, THREES} do
            local whole, alone = run(recipe, 1)
            assert.equal(1, #alone.plan.sections[1].blocks)
            for count = 2, 4 do
                for _, way in ipairs {"fixed", "free"} do
                    local bits, report, text = run(recipe, count, {schedule = way})
                    assert.is_true(whole == bits)
                    assert.is_true(report.as_planned)
                    assert.is_true(least(report) >= 1)
                    assert.not_matches("nothing for", text)
                    for i, section in ipairs(way == "fixed" and report.sections or {}) do
                        for k = 1, count do
                            assert.equal(report.plan.sections[i].peaks[IDS[k]],
                                section.peaks[IDS[k]])
                        end
                    end
                end
            end
        end
    end)

    it("says what each of them gets", function()
        local _, _, text = run(SLICES, 2, {schedule = "fixed"})
        assert.matches("\n  devices%s+host 1 block, 7 rows; host:1 1 block, 6 rows\n", text)
        _, _, text = run(SLICES, 2)
        assert.matches("\n  devices%s+one block each, and the next one where the oldest one has left\n",
            text)
        _, _, text = run(SLICES, 1)
        assert.not_matches("  devices ", text)
    end)

    it("says why one gets nothing", function()
        local _, report, text = run(SLICES, 3, {rows = {2, 3}})
        assert.matches("\n  devices%s+host 1 block, 1 row; host:1 1 block, 1 row; nothing for "
            .. "host:2, because there are 2 rows\n", text)
        assert.equal(0, least(report))
        _, report, text = run(THREES, 2, {rows = {4, 6}})
        assert.matches("\n  devices%s+host 1 block, 3 rows; nothing for host:1, because its 3 rows are "
            .. "made together\n", text)
        assert.equal(0, least(report))
        _, _, text = run(THREES, 3, {rows = {4, 9}})
        assert.matches("nothing for host:2, because its 6 rows are made 3 together\n", text)
        _, _, text = run(SLICES, 2, {block = 13})
        assert.matches("nothing for host:1, because blocks of 13 rows were asked for\n", text)
        _, _, text = run(SLICES, 2, {block = 3, order = {2}})
        assert.matches("host:1 5 blocks, 13 rows; nothing for host, because of the order", text)
    end)
end)
