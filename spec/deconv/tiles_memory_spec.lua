-- The memory of tiles is committed before the first one. What is refused before leads to smaller
-- tiles, which have the same values to rounding.

local helper = require "spec.helper"
local mb = require "moonbeam"
local refusals = require "spec.support.refusals"
local schedule = require "moonbeam.stream.schedule"

local SHAPE = {16, 72, 64}

describe("the memory of tiles", function()
    local image, psf, blurred, deconvolved

    setup(function()
        image = mb.random(SHAPE, {seed = 3, low = 1, high = 50})
        psf = mb.psf_gaussian({5, 7, 9}, 1.5)
        blurred = mb.convolution(image, psf, {boundary = "mirror"})
        deconvolved = mb.deconv.richardson_lucy(image, psf, {iterations = 2})
        helper.keep_live()
    end)
    teardown(function()
        for _, array in ipairs {image, psf, blurred, deconvolved} do
            array:release()
        end
        helper.keep_live()
    end)

    local function checked(expected, got, report)
        local _ <close> = got
        helper.assert_close(expected, got, 1e-4)
        assert.is_true(report.as_planned)
        return got:to_string()
    end

    -- The run took what was planned, or what a dry run of the tiles that each device got takes.
    local function kept(plan, report)
        assert.same(report.replayed or plan.peaks, report.peaks)
        for id, bytes in pairs(plan.peaks) do
            assert.is_true(report.peaks[id] <= bytes)
        end
    end

    -- Each returns the bits of the result, the plan and the report.
    local WORKS = {
        convolution = function(options)
            options.boundary = "mirror"
            local got, plan, report = mb.tiles.convolve(image, psf, options)
            kept(plan, report)
            return checked(blurred, got, report), plan, report
        end,
        deconvolution = function(options)
            options.iterations, options.metrics = 2, true
            local got, report, plan = mb.tiled_deconv.richardson_lucy(image, psf, options)
            kept(plan, report)
            return checked(deconvolved, got, report), plan, report
        end,
    }

    for name, work in pairs(WORKS) do
        it(("is committed before the first one, on each device: %s"):format(name), function()
            local bits
            for _, devices in ipairs {{"host"}, {"host", "host:1"}, {"host:2", "host", "host:1"}} do
                for _, id in ipairs(devices) do
                    mb.device(id)
                    mb.collect()
                    mb.pool.trim(id)
                end
                local _ <close> = refusals.after_commit(devices)
                for _, overlap in ipairs {true, false} do
                    local own, plan, report = work {devices = devices, overlap = overlap,
                        tile = {8, 36, 32}, pinned = "4Mi"}
                    bits = bits or own
                    assert.is_true(bits == own)
                    assert.is_true(report.committed)
                    assert.is_nil(report.replanned)
                    assert.same({}, report.budgets)
                    for _, id in ipairs(devices) do
                        assert.is_true(plan.peaks[id] > 0)
                    end
                end
            end
        end)

        it(("is that of a dry run of the tiles that each device got: %s"):format(name), function()
            local turn <close> = refusals.in_place_of(schedule, "turn", -- luacheck: ignore
                function(list)
                    return list[math.random(#list)]
                end)
            math.randomseed(3)
            local devices, bits = {"host", "host:1", "host:2"}, nil
            local _ <close> = refusals.after_commit(devices)
            for n = 1, 4 do
                local own, _, report = work {devices = devices, overlap = n % 2 > 0,
                    tile = {8, 36, 22}, pinned = "4Mi"}
                assert.same(report.replayed, report.peaks)
                bits = bits or own
                assert.is_true(bits == own)
            end
        end)

        it(("is planned again in smaller ones if it is refused: %s"):format(name), function()
            for _, id in ipairs {"host:1", "host:2"} do
                local _, first = work {devices = {id}}
                local last = first.peaks[id]
                for n = 1, 3 do
                    local _ <close> = refusals.at_first(n, id)
                    local _ <close> = refusals.after_commit {id}
                    local _, plan, report = work {devices = {id}}
                    assert.is_true(plan.peaks[id] < last)
                    last = plan.peaks[id]
                    assert.same(plan.tile, report.replanned.to)
                    assert.same(first.tile, report.replanned.from)
                    assert.matches("tiles have %d+ x %d+ x %d+.*, not %d+ x .*, because the memory "
                        .. "for these was refused: .*injected for a test", report.replanned.text)
                    assert.is_true(n < 3 or plan.points < first.points)
                end
            end
            -- tiles of a wanted size stay
            local _ <close> = refusals.at_first(refusals.ALWAYS, "host:1")
            local live = mb.pool.stats().live
            local _, err = helper.failure(work, {devices = {"host:1"}, tile = {8, 36, 32}})
            assert.equal("budget", err.code)
            assert.equal(live, mb.pool.stats().live)
            assert.equal(0, mb.pool.stats("host:1").live)
        end)

        it(("follows what other programs leave: %s"):format(name), function()
            local id <const> = "host:1"
            local device = mb.device(id)
            local before = device:budget()
            local _, first = work {devices = {id}}
            for _, percent in ipairs {85, 72} do
                local _ <close> = refusals.left_by_others(first.peaks[id] * percent // 100, id)
                local _, plan, report = work {devices = {id}}
                assert.equal(first.peaks[id] * percent // 100 * 9 // 10, device:budget())
                assert.is_true(report.peaks[id] <= device:budget())
                assert.same({{id, before, device:budget()}}, {{report.budgets[1].device,
                    report.budgets[1].from, report.budgets[1].to}})
                assert.is_true(plan.peaks[id] < first.peaks[id])
            end
            assert.equal(before, device:budget())
            do
                local _ <close> = refusals.left_by_others(4096, id)
                assert.matches("the work in tiles: .* other programs have left .*, which is too "
                    .. "little for the least block", (helper.failure(work, {devices = {id}})))
            end
            local _, again, report = work {devices = {id}}
            assert.same(first.tile, again.tile)
            assert.same({}, report.budgets)
        end)
    end

    -- Between iterations the pool gives memory back, and other programs leave these bytes of it.
    local function left_after(iteration, bytes, id)
        return function(k)
            mb.collect()
            mb.pool.trim(id)
            mb.debug.pretend_memory(k >= iteration and bytes + mb.pool.stats(id).live
                or refusals.PLENTY, id)
        end
    end

    it("is asked for again between iterations: tiles stay, with the same bits", function()
        local id <const> = "host:1"
        local device = mb.device(id)
        local before = device:budget()
        -- some granules of 2 MiB
        local large <close> = mb.random({16, 192, 384}, {seed = 3, low = 1, high = 50})
        local function run(options)
            options.devices, options.place, options.tile = {id}, "host", {16, 192, 192}
            options.iterations = 3
            local narrow <close> = mb.psf_gaussian({7, 3, 3}, 1)
            local _ <close> = setmetatable({}, {__close = function()
                mb.debug.pretend_memory(refusals.PLENTY, id)
                require("moonbeam.plan.budget").available(device)
                mb.debug.pretend_memory(0, id)
            end})
            local got <close> = mb.empty(large.shape)
            local report, plan = mb.tiled_deconv.richardson_lucy_volume(
                mb.volumes.of_array(large), narrow, mb.volumes.of_array(got), options)
            assert.is_true(report.as_planned)
            return got:to_string(), report, plan
        end
        local bits, whole, beside = run {overlap = true}
        local alone = select(3, run {overlap = false})
        assert.is_true(alone.peaks[id] < beside.peaks[id])
        local part = (alone.peaks[id] + beside.peaks[id]) // 2
        assert.same({}, whole.again)
        local same, report = run {overlap = true, on_iteration = left_after(1, part, id)}
        assert.is_true(bits == same)
        assert.same({2, false}, {report.again[1].iteration, report.again[1].overlap})
        assert.equal(1, #report.again)
        assert.matches("from iteration 2 on reading and writing wait for the work, because memory "
            .. "was refused: .* are needed on host:1, where other programs have left",
            report.again[1].text)
        assert.equal(1, #report.budgets)
        assert.equal(before, report.budgets[1].from)
        assert.same(beside.peaks, report.peaks) -- the first iterations were as planned
        -- when they have freed it
        same, report = run {overlap = true, on_iteration = function(k)
            left_after(1, k == 1 and part or refusals.PLENTY, id)(k)
        end}
        assert.is_true(bits == same)
        assert.same({2, false, 3, true}, {report.again[1].iteration, report.again[1].overlap,
            report.again[2].iteration, report.again[2].overlap})
        assert.equal("from iteration 3 on reading and writing are beside the work again",
            report.again[2].text)
        assert.equal(before, report.budgets[2].to)
        -- what is enough changes nothing
        same, report = run {overlap = true, on_iteration = left_after(1, 2 * beside.peaks[id], id)}
        assert.is_true(bits == same)
        assert.same({}, report.again)
        -- less than a tile needs
        local message, err = helper.failure(run, {overlap = true,
            on_iteration = left_after(1, 4096, id)})
        assert.equal("budget", err.code)
        assert.matches("iteration 2: .* other programs have left .*, which is too little", message)
        assert.equal(before, device:budget())
        assert.equal(0, mb.pool.stats(id).live)
    end)

    it("is that of the devices that are left if one is lost, with the same bits", function()
        local text, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            local image <close> = mb.random({10, 40, 44}, {seed = 3, low = 1, high = 50})
            local psf <close> = mb.psf_gaussian({3, 5, 5}, 1.2)
            local works = {}
            function works.tiles(devices)
                local result, _, report = mb.tiles.convolve(image, psf, {devices = devices,
                    tile = {5, 20, 11}, pinned = "2Mi"})
                return result, report
            end
            function works.chunked(devices)
                return mb.chunked("gaussian_filter", image, {params = {sigma = 1}, axis = 2,
                    block = 4, devices = devices, pinned = "2Mi"})
            end
            local number = 1
            for name, work in pairs(works) do
                local expected <close> = work {"host"}
                for _, n in ipairs {30, 50} do
                    number = number + 1
                    local id = "host:" .. number
                    mb.debug.lose_device(mb.device(id), n)
                    local got <close>, report = work {"host:1", id}
                    assert(mb.device(id):lost(), "not lost")
                    assert(report.as_planned and report.replayed and not report.replayed[id])
                    assert(expected:to_string() == got:to_string(), "other bits")
                    print(name, n)
                end
            end
            mb.debug.lose_device(mb.device "host:6", 60)
            local ok, err = pcall(mb.tiled_deconv.richardson_lucy, image, psf, {iterations = 3,
                mode = "blended", devices = {"host:1", "host:6"}, tile = {5, 20, 11},
                pinned = "2Mi"})
            assert(not ok and err.code == "device", tostring(err))
            print(tostring(err))
            mb.collect()
            assert(mb.pool.stats("host:1").live == 0)
        ]])
        assert.equal(0, status, text)
        assert.matches("chunked", text)
        assert.matches("host:6 is lost %(injected for a test%); its tiles cannot be done again",
            text)
    end)
end)
