-- Reconstruction from host memory to host memory: the volume of the whole computed at once, to the
-- bit where the same kernels compute it, whether the arrays are pinned or not, within what the plan
-- says.

local helper = require "spec.helper"
local mb = require "moonbeam"

local ANGLES, ROWS, COLS = 40, 22, 48
local TALLIES = 2 * 12 * 8 -- pinned bytes: what is counted in two blocks

helper.each_device(function(device, test)
    describe("reconstruction in memory on " .. device, function()
        local theta = mb.tomo.angles(ANGLES)

        -- Projections, flats and darks; pinned for the device or not.
        local function frames(pinned)
            local function make(count, seed, low, high)
                return mb.random({count, ROWS, COLS}, {dtype = "u16", seed = seed, low = low,
                    high = high, device = "host",
                    pinned = pinned and device or nil})
            end
            return setmetatable({raw = make(ANGLES, 1, 500, 40000),
                flats = make(3, 2, 40000, 41000), darks = make(2, 3, 90, 110)},
                {__close = function(all)
                    for _, array in pairs(all) do
                        array:release()
                    end
                end})
        end

        local function settings_of(more)
            local settings = {device = device, center = 23.25, quiet = true, threads = 2,
                pinned = "2Mi"}
            for key, value in pairs(more or {}) do
                settings[key] = value
            end
            return settings
        end

        local function reconstruct(more, pinned)
            local all <close> = frames(pinned)
            local settings = settings_of(more)
            settings.flats, settings.darks = all.flats, all.darks
            settings.out = pinned
                and mb.zeros({ROWS, COLS, COLS}, {dtype = settings.dtype, pinned = device}) or nil
            local volume <close>, report = mb.recon.reconstruct(all.raw, theta, settings)
            return volume:to_table(), report
        end

        -- The same without chunks, carriers and plans.
        local function whole(method)
            local all <close> = frames()
            local on_device = {all.raw:to(device), all.flats:to(device), all.darks:to(device)}
            local integrals <close>, counts = mb.tomo.line_integrals(on_device[1],
                {flats = on_device[2], darks = on_device[3],
                consume = true})
            local sinograms <close> = integrals:permute(2, 1, 3)
            local volume <close> = mb.tomo.reconstruct(sinograms, theta,
                {method = method, mode = "fast", center = 23.25})
            counts:release()
            on_device[2]:release()
            on_device[3]:release()
            return volume:to_table()
        end

        test("hears settings that a table inherits", function()
            local all <close> = frames()
            local out <close> = mb.zeros({ROWS, COLS, COLS})
            local settings = settings_of {flats = all.flats, darks = all.darks, out = out,
                chunk = 5}
            local volume, report = mb.recon.reconstruct(all.raw, theta,
                setmetatable({}, {__index = settings}))
            assert.is_true(rawequal(out, volume))
            assert.equal(5, report.plan.chunk)
        end)

        for _, method in ipairs {"fbp", "fourier"} do
            test("gives the volume of the whole, for every chunk, pinned or not: " .. method,
                function()
                local expected = whole(method)
                -- The Fourier method takes pairs of slices; back-projection on a GPU has kernels
                -- for few slices and for many.
                local packet = method == "fourier" and 2 or device ~= "host" and ROWS or 1
                for _, chunk in ipairs {1, 7, 8, 22} do
                    for _, pinned in ipairs {true, false} do
                        local volume, report = reconstruct({method = method, chunk = chunk}, pinned)
                        local same = chunk % packet == 0 or chunk == ROWS
                        helper.assert_close(expected, volume, same and 0 or method == "fourier"
                            and 1e-6 or 2e-5,
                            ("chunk %d, %s"):format(chunk, pinned and "pinned" or "pageable"))
                        assert.equal(report.plan.peak, report.peak)
                        assert.equal(report.plan.pinned, report.pinned)
                        assert.equal(TALLIES + ((pinned or device == "host") and 0 or 2 << 20),
                            report.pinned)
                        assert.equal(4 * ROWS * COLS * COLS, report.times.write_bytes)
                        assert.equal(report.times.read_bytes + report.times.write_bytes,
                            report.times.raw_bytes)
                    end
                end
                local beside = reconstruct({method = method, chunk = 8}, true)
                helper.assert_close(beside,
                    (reconstruct({method = method, chunk = 8, overlap = false}, true)), 0)
            end)
        end

        test("has the ledger that its dry run predicts, with and without pinned arrays", function()
            for _, pinned in ipairs {true, false} do
                local all <close> = frames(pinned)
                local out <close> = mb.zeros({ROWS, COLS, COLS}, {device = "host", pinned = pinned
                    and device or nil})
                local function job()
                    mb.recon.reconstruct(all.raw, theta,
                        settings_of {flats = all.flats, darks = all.darks, out = out, chunk = 6})
                end
                job() -- FFT plans are there from now on
                local predicted = mb.dry_run(job)
                local measured = mb.ledger(job)
                assert.same({}, mb.ledger_diff(predicted, measured))
                assert.equal(predicted.pinned_peak, measured.pinned_peak)
            end
        end)

        test("finds the axis, takes some rows, and stores fewer bits", function()
            local all <close> = frames(true)
            local volume <close>, report = mb.recon.reconstruct(all.raw, theta,
                {device = device, rows = {3, 10}, dtype = "u16",
                flats = all.flats, darks = all.darks, quiet = true, threads = 2, pinned = "2Mi"})
            assert.equal("u16", volume.dtype)
            assert.same({8, COLS, COLS}, volume.shape)
            assert.is_true(report.plan.settings.range[1] < report.plan.settings.range[2])
            assert.is_true(volume:max() > volume:min())
        end)

        test("goes to files, and to functions", function()
            local all <close> = frames(true)
            local scan = mb.scan.of_arrays(all.raw, theta, {flats = all.flats, darks = all.darks})
            local expected = reconstruct({method = "fbp", chunk = 8}, true)
            local plan = mb.recon.plan(scan, settings_of {method = "fbp", chunk = 8})
            local seen = {}
            local report = mb.recon.run(scan, plan, function(slices)
                for _, slice in ipairs(slices:to_table()) do
                    seen[#seen + 1] = slice
                end
            end)
            helper.assert_close(expected, seen, 0)
            assert.equal(plan.peak, report.peak)
            local base = os.tmpname()
            local name = base .. ".h5"
            os.remove(base)
            do
                local result <close> = mb.result.create(name,
                    {shape = plan.volume, overwrite = true})
                mb.recon.run(scan, plan, result)
                result:finish()
            end
            local file <close> = assert(mb.h5.open(name))
            local volume <close> = file:read("/entry/data/data")
            helper.assert_close(expected, volume:to_table(), 0)
            os.remove(name)
        end)

        test("leaves nothing when it is cancelled or memory is refused", function()
            local all <close> = frames(true)
            local live, pinned = mb.pool.stats("host").live, (mb.device(device):pinned())
            local function job()
                mb.recon.reconstruct(all.raw, theta,
                    settings_of {flats = all.flats, darks = all.darks, chunk = 1}):release()
            end
            local ok, err = mb.system.call(function()
                local scan = mb.scan.of_arrays(all.raw, theta,
                    {flats = all.flats, darks = all.darks})
                local out <close> = mb.empty({ROWS, COLS, COLS}, {pinned = device})
                mb.recon.run(scan, mb.recon.plan(scan, settings_of {chunk = 1, out = out}), nil,
                    function(_, z)
                    if z == 5 then
                        mb.system.cancel(true)
                    end
                end)
            end)
            mb.system.cancel(false)
            assert.is_false(ok)
            assert.equal("cancelled", err.code)
            local failures = 0
            for n = 1, 30, 4 do
                mb.debug.fail_nth(n, device)
                ok, err = pcall(job)
                mb.debug.fail_nth(0, device)
                if not ok then
                    failures = failures + 1
                    assert.equal("memory", err.code)
                end
                mb.collect()
                assert.equal(live, mb.pool.stats("host").live)
                assert.equal(pinned, (mb.device(device):pinned()))
            end
            assert.is_true(failures > 2)
        end)

        test("says what does not fit", function()
            local all <close> = frames()
            local raw, flats = all.raw, all.flats
            local function failing(projections, angles, options)
                return (helper.failure(mb.recon.reconstruct, projections, angles, options))
            end
            assert.matches("39 angles were given for 40 projections",
                failing(raw, mb.tomo.angles(39), {center = 20}))
            local small <close> = flats:view(mb.all, {1, 5}, mb.all)
            assert.matches("flats have shape 3 x 5 x 48.*22 x 48",
                failing(raw, theta, {flats = small}))
            assert.matches("projections is a table; give an array", failing({}, theta))
            assert.matches("unknown option 'flots'; did you mean 'flats'",
                failing(raw, theta, {flots = flats}))
            local out <close> = mb.empty({ROWS, COLS, COLS}, {dtype = "u16", device = "host"})
            assert.matches("out is u16.*must be f32 22 x 48 x 48 on the host",
                failing(raw, theta, settings_of {out = out, flats = flats}))
            if device ~= "host" then
                local there <close> = raw:to(device)
                assert.matches("must be on the host", failing(there, theta, {center = 20}))
            end
        end)
    end)
end)

describe("reconstruction in memory on a GPU that is not here", function()
    it("is planned to the byte, pinned memory included", function()
        local device = "planned:h200"
        local _, _, limit = mb.device(device):pinned()
        mb.device(device):pinned("48Gi")
        local ledger = mb.dry_run(function()
            local raw <close> = mb.empty({1500, 2048, 2048}, {dtype = "u16", pinned = device})
            local out <close> = mb.empty({2048, 2048, 2048}, {pinned = device})
            mb.recon.reconstruct(raw, mb.tomo.angles(1500),
                {out = out, device = device, center = 1023.5, quiet = true,
                log = false})
        end)
        mb.device(device):pinned(limit)
        assert.equal(2 * 1500 * 2048 * 2048 + 4 * 2048 ^ 3 + TALLIES, ledger.pinned_peak)
        assert.is_true(ledger.peak > 1 << 30 and ledger.peak < 8 << 30)
        assert.matches("H200", ledger.basis)
        assert.matches("not here", (helper.failure(mb.empty, {4}, {pinned = device})))
    end)
end)

describe("reconstruction in memory", function()
    it("takes no counts without flats, but transmission and line integrals", function()
        local theta = mb.tomo.angles(6)
        local counts <close> = mb.full({6, 2, 8}, 1000, {dtype = "u16"})
        local text = helper.failure(mb.recon.reconstruct, counts, theta,
            {center = 3.5, quiet = true})
        assert.matches("there are no flats, and counts %(u16%) cannot be normalized without them",
            text)
        assert.matches("no flats", (helper.failure(mb.recon.find_center,
            mb.scan.of_arrays(counts, theta))))
        local planner = require "moonbeam.pipeline.plan"
        local on = planner.on
        local _ <close> = setmetatable({}, {__close = function() planner.on = on end})
        function planner.on() error "planned" end -- nothing is planned before that
        for input, first in pairs {counts = "flat_field", transmission = false} do
            local scan = mb.scan.of_arrays(counts, theta, {darks = counts})
            assert.matches("there are no flats, and counts", (helper.failure(function()
                mb.pipeline(scan, {first or "minus_log", first and "minus_log"
                    or {"fbp", center = 3.5}}, {input = input}):plan()
            end)))
        end
        planner.on = on
        local large <close> = counts:cast("f32")
        text = helper.failure(mb.recon.reconstruct, large, theta, {center = 3.5, quiet = true})
        assert.matches("values from 1000 to 1000 are not a transmission", text)
        local part <close> = mb.random({6, 2, 8}, {seed = 1, low = 0.3, high = 1.02})
        for _, case in ipairs {{part, {}}, {large, {log = false}}, {counts, {flats = counts}}} do
            case[2].center, case[2].quiet = 3.5, true
            local volume <close> = mb.recon.reconstruct(case[1], theta, case[2])
            assert.same({2, 8, 8}, volume.shape)
        end
    end)

    it("names what is no number of rows, chunk, size or threads", function()
        local raw <close> = mb.full({6, 4, 8}, 100, {dtype = "u16"})
        for _, case in ipairs {
            {{rows = {0, 3}}, "rows 0 to 3; the scan has rows 1 to 4"},
            {{rows = {1, 2.5}}, "rows must be {first, last}"},
            {{rows = "2"}, "rows must be"}, {{chunk = 0}, "chunk is 0"},
            {{chunk = -1}, "chunk is -1"},
            {{chunk = "4"}, "chunk is the string '4'"}, {{size = 0}, "size is 0"},
            {{threads = 0}, "threads is 0"},
        } do
            -- without one it is looked for, before anything is planned
            for _, center in ipairs {3.5, false} do
                case[1].center, case[1].quiet = center or nil, true
                local ok, problem = pcall(mb.recon.reconstruct, raw, mb.tomo.angles(6), case[1])
                assert.is_false(ok)
                assert.equal("argument", problem.code)
                assert.matches(case[2], problem.message, 1, true)
            end
        end
    end)

    it("stores integers in a range that does not come from an empty middle", function()
        local angles = mb.tomo.angles(60)
        local p <close> = mb.ellipsoid_projections({0.2, 9, 5, 1e6, 10, 4, 0, 0.3, 0.3, 4, 6, 1e6,
            -12, -9, 0, 1}, angles,
            mb.phantom.heights(9), 48, {center = 23.5})
        local thickness <close> = mb.unary(p, "neg")
        local transmission <close> = mb.unary(thickness, "exp")
        local air <close> = mb.random({60, 3, 48}, {seed = 1, low = 0.999, high = 1.001})
        local middle <close> = transmission:view(mb.all, {4, 6}, mb.all)
        mb.convert(air, "f32", {out = middle})
        local volume <close>, report = mb.recon.reconstruct(transmission, angles,
            {center = 23.5, dtype = "u16", quiet = true})
        assert.same({0, 0, 0}, report.clipped)
        assert.same({9, 48, 48}, volume.shape)
    end)
end)
