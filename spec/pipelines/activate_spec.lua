-- The memory of a section is committed before its first block: after that the system is asked for
-- nothing, and what it refuses before leads to smaller blocks, with the same bits.

local helper = require "spec.helper"
local mb = require "moonbeam"
local activate = require "moonbeam.pipeline.activate"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local work = require "moonbeam.pipeline.work"

local ANGLES, ROWS, COLS = 60, 32, 64
local CENTER = 31.5
local GRANULE = 2 << 20 -- of the host's pool
local ALWAYS = 1 << 40

local OWN = {
    {
        name = "smooth_frames", summary = "Smooths whole frames.",
        takes = {quantity = "any", layout = "frames"},
        gives = {quantity = "same", layout = "same"}, cuts = {"frames"},
        run = function(block)
            block:replace(mb.gaussian_filter(block.data, {0, 1.5, 1.5}))
        end,
    },
}

local RECIPES = {
    {"flat_field", "minus_log", {"fbp", center = CENTER}},
    {"flat_field", "minus_log", {"fourier", center = CENTER}},
    {"flat_field", "minus_log", {"fbp", center = CENTER, mode = "in_place"}},
    {"flat_field", "smooth_frames", "minus_log", {"fbp", center = CENTER, filter = "hann"}},
    {"flat_field", "minus_log", "center", "fbp"},
    {"flat_field", "minus_log", {"fbp", center = CENTER},
        {"rescale", dtype = "uint8", percentiles = {1, 99}}},
    {"flat_field", "minus_log", {"tilt", angle = 0.01}, {"fbp", center = CENTER}},
}

-- Puts f in the place of module[name] until the returned value is closed.
local function in_place_of(module, name, f)
    local before = module[name]
    module[name] = f
    return setmetatable({}, {__close = function()
        module[name] = before
    end})
end

-- How far the blocks reach from both ends of a pool now, or since reset_reach.
local function reach_of(id)
    local stats = mb.pool.stats(id)
    return {stats.reach_arrays, stats.reach_scratch}
end

-- From its first to its last block, the work of a section is refused all memory that is not
-- committed, on these devices; and it reaches as far as its dry run said. Several devices reach no
-- farther: which blocks each of them gets is not known before.
local function nothing_more(devices)
    local run, reach_planned, compared = work.run, dry_work.reach, 0
    local planned, farthest, began = nil, {}, false -- of the passes of a section
    local function check()
        for _, id in ipairs(began and devices or {}) do
            if #devices == 1 then
                assert.same(planned[id], farthest[id])
            end
            for k = 1, 2 do
                assert.is_true(farthest[id][k] <= planned[id][k])
            end
            compared = compared + 1
        end
        began = false
    end
    in_place_of(dry_work, "reach", function(...)
        check()
        planned, farthest = reach_planned(...), {}
        return planned
    end)
    in_place_of(work, "run", function(section, on, ...)
        if on[1].dry then
            return run(section, on, ...)
        end
        began = true
        for _, id in ipairs(devices) do
            mb.pool.reset_reach(id)
            mb.debug.refuse_commits(ALWAYS, id)
        end
        local results = table.pack(pcall(run, section, on, ...))
        for _, id in ipairs(devices) do
            mb.debug.refuse_commits(0, id)
            local before, after = farthest[id] or {0, 0}, reach_of(id)
            farthest[id] = {math.max(before[1], after[1]), math.max(before[2], after[2])}
        end
        if not results[1] then
            error(results[2], 0)
        end
        return table.unpack(results, 2, results.n)
    end)
    return setmetatable({check = function()
        check()
        return compared
    end}, {__close = function()
        work.run, dry_work.reach = run, reach_planned
    end})
end

-- The first n commits before the first block are refused, on a device.
local function refused_at_first(n, id, number)
    local section = activate.section
    return in_place_of(activate, "section", function(made, i, ...)
        local _ <close> = setmetatable({}, {__close = function()
            mb.debug.refuse_commits(0, id)
        end})
        mb.collect()
        mb.pool.trim(id)
        mb.debug.refuse_commits(i == (number or i) and n or 0, id)
        return section(made, i, ...)
    end)
end

describe("the memory of a pipeline", function()
    local scan, arrays

    before_each(function()
        arrays = {
            raw = mb.random({ANGLES, ROWS, COLS}, {dtype = "u16", low = 300, high = 900, seed = 3}),
            flats = mb.random({3, ROWS, COLS}, {dtype = "u16", low = 980, high = 1020, seed = 4}),
            darks = mb.random({2, ROWS, COLS}, {dtype = "u16", low = 3, high = 9, seed = 5}),
        }
        scan = mb.scan.of_arrays(arrays.raw, mb.tomo.angles(ANGLES),
            {flats = arrays.flats, darks = arrays.darks})
    end)

    after_each(function()
        for _, array in pairs(arrays) do
            array:release()
        end
    end)

    -- Runs a recipe from a pool without idle memory. Returns the volume as a string (the rows of
    -- the result in their order), and the report.
    local function volume(recipe, options)
        local own = {quiet = true, pinned = "1Mi", steps = OWN}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local pipeline, parts = mb.pipeline(scan, recipe, own), {}
        pipeline:plan()
        mb.collect()
        for _, id in ipairs {"host", "host:1"} do
            mb.pool.trim(id)
        end
        local report = pipeline:run(function(block, first)
            parts[#parts + 1] = {first, block.device.kind == "host" and block:to_string()}
        end)
        table.sort(parts, function(a, b) return a[1] < b[1] end)
        for i, part in ipairs(parts) do
            parts[i] = part[2]
        end
        assert.is_true(report.as_planned)
        assert.is_true(report.peak <= report.plan.peak)
        if not own.devices then
            assert.equal(report.plan.peak, report.peak)
        end
        assert.is_true(report.plan.peak <= report.plan.at_most)
        return table.concat(parts), report
    end

    it("is committed before the first block: the system may refuse everything after it", function()
        for i, recipe in ipairs(RECIPES) do
            local whole, report = volume(recipe)
            assert.same({}, report.replanned)
            for _, options in ipairs {{}, {block = 7}, {overlap = false}, {block = 1},
                {devices = {"host", "host:1"}, block = 5}, {host_budget = 0, scratch = "."},
                {budget = report.plan.peak * 2 // 3}} do
                local watch <close> = nothing_more(options.devices or {"host"})
                local same, other = volume(recipe, options)
                assert.equal(#other.sections * #(options.devices or {"host"}), watch.check())
                assert.is_true(whole == same, "recipe " .. i)
                assert.same({}, other.replanned)
                for _, section in ipairs(other.sections) do
                    assert.is_true(section.committed)
                end
            end
        end
    end)

    it("would be refused in the middle otherwise", function()
        for _, less in ipairs {0, 1} do
            local _ <close> = nothing_more {"host"}
            local _ <close> = in_place_of(activate, "section", function(made, i)
                if less == 1 then -- one end is not enough
                    mb.pool.activate(mb.pool.stats().reach_arrays)
                end
                return {made = made, section = made.sections[i], committed = false, budgets = {}}
            end)
            local message, err = helper.failure(volume, RECIPES[1])
            assert.equal("budget", err.code)
            assert.matches("injected for a test", message)
        end
    end)

    it("is planned again in smaller blocks if it is refused before the first one", function()
        for i, recipe in ipairs(RECIPES) do
            local whole, before = volume(recipe)
            local again, failed = 0, nil
            for n = 1, 40 do
                local _ <close> = refused_at_first(n, "host", #before.sections)
                local _ <close> = nothing_more {"host"}
                local ok, same, report = pcall(volume, recipe)
                if not ok then
                    failed = same
                    break
                end
                assert.is_true(whole == same, "recipe " .. i)
                local each = report.replanned[1]
                if each then
                    again = again + 1
                    local last = report.plan.sections[#before.sections]
                    assert.equal(#before.sections, each.section)
                    assert.is_true(last.peaks.host < before.plan.sections[each.section].peaks.host)
                    assert.equal(last.count, each.to)
                    assert.equal(each.text, report.warnings[1])
                    assert.matches(("section %d runs in blocks of %d %%a+.*, not of %d %%a+.*, because "
                        .. "the memory for these was refused: .*the device does not have "
                        .. "that much memory free"):format(each.section, each.to, each.from),
                        each.text)
                else
                    assert.equal(#before.warnings, #report.warnings)
                end
            end
            assert.is_true(again > 2, "recipe " .. i)
            -- at last not even the least block is there
            assert.equal("budget", failed.code)
            assert.matches("end other programs that use this memory", tostring(failed))
        end
    end)

    it("is one packet at least, whatever the last plan took", function()
        local recipe = {"flat_field", "minus_log", {"fourier", center = CENTER}}
        local least
        for n = 1, 40 do
            local _ <close> = refused_at_first(n, "host")
            local ok, _, report = pcall(volume, recipe)
            if not ok then
                break
            end
            least = report.plan.sections[1]
        end
        assert.equal(2, least.count)
        assert.is_false(least.overlap)
    end)

    it("that is refused leaves nothing behind", function()
        local path = os.tmpname()
        os.remove(path)
        path = path .. ".h5"
        local _ <close> = refused_at_first(ALWAYS, "host")
        local seen = 0
        local pipeline = mb.pipeline(scan, RECIPES[1], {quiet = true, pinned = "1Mi"})
        local live = mb.pool.stats().live
        local _, err = helper.failure(pipeline.run, pipeline, {output = path, each = function()
            seen = seen + 1
        end})
        assert.equal("budget", err.code)
        assert.equal(0, seen)
        assert.is_nil((io.open(path)))
        assert.equal(live, mb.pool.stats().live)
    end)

    it("is told of in the result", function()
        local path = os.tmpname()
        os.remove(path)
        path = path .. ".h5"
        local _ <close> = setmetatable({}, {__close = function() os.remove(path) end})
        local report
        do
            local _ <close> = refused_at_first(8, "host")
            report = mb.pipeline(scan, RECIPES[1], {quiet = true, pinned = "1Mi"}):run {output = path}
        end
        assert.equal(1, #report.replanned)
        local file <close> = mb.h5.open(path)
        assert.equal(report.replanned[1].text, file:value("/entry/provenance/replanned"))
        assert.equal(report.peak, file:value("/entry/provenance/predicted_peak_bytes"))
    end)

    it("may be refused by one device of several", function()
        local whole = volume(RECIPES[1])
        for _, id in ipairs {"host", "host:1"} do
            local _ <close> = refused_at_first(6, id)
            local _ <close> = nothing_more {"host", "host:1"}
            local same, report = volume(RECIPES[1], {devices = {"host", "host:1"}, block = 10})
            assert.is_true(whole == same)
            assert.equal(1, #report.replanned)
        end
    end)

    it("makes blocks that were asked for smaller, too", function()
        local whole = volume(RECIPES[1])
        local _ <close> = refused_at_first(6, "host")
        local same, report = volume(RECIPES[1], {block = 20})
        assert.is_true(whole == same)
        assert.equal(20, report.replanned[1].from)
        assert.is_true(report.replanned[1].to < 20)
    end)

    it("stays within the budget of the pool", function()
        local host = mb.device "host"
        local budget, live = host:budget(), mb.pool.stats().live
        local whole, report = volume(RECIPES[4])
        local _ <close> = setmetatable({}, {__close = function() host:budget(budget) end})
        local committed = 0
        for part = 2, 8 do
            host:budget(live + report.peak * part // 8)
            local ok, same, other = pcall(volume, RECIPES[4])
            if ok then
                assert.is_true(whole == same)
                for _, section in ipairs(other.sections) do
                    committed = committed + (section.committed and 1 or 0)
                end
                assert.is_true(mb.pool.stats().committed <= host:budget() + 2 * GRANULE)
            else
                assert.equal("budget", same.code)
            end
            host:budget(budget)
        end
        assert.is_true(committed > 6)
    end)

    it("has room with what its plan needs, where a store of the host is in it", function()
        local raw <close> = mb.random({20, 5, 22}, {dtype = "u16", low = 100, high = 200, seed = 3})
        local flats <close> = mb.full({2, 5, 22}, 300, {dtype = "u16"})
        local darks <close> = mb.zeros({2, 5, 22}, {dtype = "u16"})
        local small = mb.scan.of_arrays(raw, mb.tomo.angles(20), {flats = flats, darks = darks})
        local recipe = {"flat_field", "minus_log", {"median", size = 3}, {"fourier", center = 10.5},
            {"rescale", dtype = "uint8", percentiles = {0.1, 99.9}}}
        local options = {block = 1, overlap = true, quiet = true}
        local host = mb.device "host"
        local budget = host:budget()
        local _ <close> = setmetatable({}, {__close = function() host:budget(budget) end})
        mb.collect()
        local live = mb.pool.stats("host").live
        local peak = mb.pipeline(small, recipe, options):plan().peak
        for more = 0, 12288, 1024 do
            host:budget(live + peak + more)
            local report = mb.pipeline(small, recipe, options):run(function() end)
            assert.is_true(report.as_planned)
            assert.same({}, report.replanned)
            mb.collect()
        end
        host:budget(live + peak - 512)
        assert.equal("budget", select(2, helper.failure(function()
            mb.pipeline(small, recipe, options):run(function() end)
        end)).code)
    end)

    it("of a reconstruction is planned again in the same way", function()
        local out <close> = mb.empty {ROWS, COLS, COLS}
        local plan = mb.recon.plan(scan, {center = CENTER, method = "fbp", out = out, quiet = true})
        local report = mb.recon.run(scan, plan)
        local whole = out:to_string()
        assert.same({}, report.replanned)
        assert.equal(plan.chunk, report.plan.chunk)
        out:fill(0)
        local _ <close> = refused_at_first(6, "host")
        local other = mb.recon.run(scan, plan)
        assert.is_true(whole == out:to_string())
        assert.equal(1, #other.replanned)
        assert.equal(other.replanned[1].to, other.plan.chunk)
        assert.equal(math.ceil(ROWS / other.plan.chunk), other.plan.chunks)
        assert.equal(other.plan.peak, other.peak)
        assert.is_true(other.plan.peak < plan.peak)
    end)

    it("is not taken by a dry run", function()
        local ledger = mb.dry_run(function()
            local _ <close> = refused_at_first(ALWAYS, "host")
            mb.pipeline(scan, RECIPES[1], {quiet = true, pinned = "1Mi"}):run(function() end)
        end)
        assert.is_true(ledger.peak > 0)
    end)
end)
