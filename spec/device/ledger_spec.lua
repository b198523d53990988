-- Ledgers: a dry run predicts every row of the real run, for programs of all kinds.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local helper = require "spec.helper"

local function assert_same(predicted, measured, what)
    local differing = mb.ledger_diff(predicted, measured)
    if #differing > 0 then
        local first = differing[1]
        local function text(row)
            return row and ("%s at %s: keep %d temp %d work %d live %d peak %d"):format(row.label,
                row.owner, row.keep, row.temp,
                row.work, row.live, row.peak) or "nothing"
        end
        error(("%s: %d steps differ; step %d: predicted %s; measured %s"):format(what
            or "ledger", #differing, first.step,
            text(first.a), text(first.b)), 2)
    end
    assert.is_true(predicted == measured)
end

-- Dry run, then real run: equal, and the pool's own peak says the same. Returns the dry ledger and
-- the results.
local function both(fn, ...)
    local arguments = table.pack(...)
    local predicted = mb.dry_run(fn, ...)
    local before = mb.pool.stats("host").live
    local measured, results
    local peak = mb.pool.peak(function()
        local all = table.pack(mb.ledger(fn, table.unpack(arguments, 1, arguments.n)))
        measured, results = all[1], {table.unpack(all, 2, all.n)}
    end, "host")
    assert_same(predicted, measured)
    if #measured:rows() > 0 then
        assert.equal(measured.peak, math.max(before + peak, before, measured.peak))
        assert.is_true(before + peak <= measured.peak)
    end
    return predicted, results, measured
end

local function release(results)
    for _, value in ipairs(results) do
        if mb.array.is_array(value) then
            value:release()
        end
    end
end

local function angles_of(n)
    local angles = {}
    for i = 1, n do
        angles[i] = (i - 1) * math.pi / n
    end
    return angles
end

describe("a ledger", function()
    it("has a row for every step, with exact bytes", function()
        local made = mb.ledger(function()
            local a <close> = mb.zeros({128})
            local b = a:cast("f64")
            b:release()
        end)
        local rows = made:rows()
        local seen = {}
        for i, row in ipairs(rows) do
            seen[i] = ("%s %s %d %d %d"):format(row.kind, row.label, row.keep, row.live, row.peak)
            assert.matches("ledger_spec.lua:%d+", row.owner)
        end
        assert.same({"create zeros 512 512 512", "operator convert 1024 1536 1536",
            "release release -1024 512 1536",
            "release release -512 0 512"}, seen)
        assert.equal(1536, made.peak)
        assert.equal(2, select(2, made:peak_step()))
        assert.equal(4, #made)
    end)

    it("tells scratch from FFT work, and their sum from the estimate", function()
        local a <close> = mb.random({4, 100, 64})
        local made, result = mb.ledger(function()
            return mb.ramp_filter(a)
        end)
        local row = made:rows()[1]
        local known = mb.op.estimate("ramp_filter", {a})
        assert.same(known, mb.op.estimate("ramp_filter", {a.shape})) -- a bare shape is f32
        assert.equal("ramp_filter", row.label)
        assert.equal(known.result, row.keep)
        assert.equal(known.scratch, row.temp + row.work)
        assert.equal(known.peak, row.peak - (row.live - row.keep))
        result:release()
    end)

    it("passes results and arguments on, and stops at an error", function()
        local made, x, y = mb.ledger(function(a, b)
            return b, a
        end, 1, nil)
        assert.equal(0, #made)
        assert.is_nil(x)
        assert.equal(1, y)
        assert.has_error(function()
            mb.ledger(error, "stop")
        end, "stop")
        assert.has_error(function()
            mb.dry_run(error, "stop")
        end, "stop")
        assert.is_false(mb.device("host").dry)
        local later = mb.ledger(function() end)
        assert.equal(0, #later)
    end)

    it("does not count what is only asked", function()
        local made = mb.ledger(function()
            mb.plan.peak(function(device)
                mb.zeros({1000, 1000}, {device = device})
            end)
        end)
        assert.equal(0, #made)
    end)

    it("nests", function()
        local inner
        local outer = mb.ledger(function()
            local _ <close> = mb.zeros({10})
            inner = mb.ledger(function()
                mb.zeros({20}):release()
            end)
        end)
        assert.equal(2, #inner)
        assert.equal(4, #outer)
    end)

    it("shows differences", function()
        local function work(n)
            local a <close> = mb.zeros({n})
            local b <close> = a:copy()
            return b.bytes
        end
        local small, large = mb.dry_run(work, 100), mb.dry_run(work, 1000)
        assert.is_false(small == large)
        assert.equal(4, #small:diff(large))
        assert.equal(0, #small:diff(mb.dry_run(work, 100)))
        local text, differing = mb.ledger.comparison(small, large)
        assert.equal(4, differing)
        assert.matches("4 of 4 steps differ", text)
    end)

    it("prints the peak's row, and JSON", function()
        local made = mb.dry_run(function()
            local a <close> = mb.zeros({1000})
            local b <close> = a:copy()
            return b.bytes
        end)
        local text = made:text()
        assert.matches("step%s+line%s+keep%s+temp%s+work%s+live%s+peak", text)
        assert.matches("\n2 +convert[^\n]+<%- peak", text)
        assert.matches("peak 8 KiB %(8192 bytes%), not run", text)
        local json = made:to_json()
        assert.matches('^{"dry":true,"peak":8192,"rows":%[{"kind":"create","device":"host","label":"zeros","owner":"[^"]+",'
            .. '"tag":"","keep":4096,"temp":0,"work":0,"live":4096,"peak":4096},', json)
        assert.equal(#made, select(2, json:gsub('"kind"', "")))
    end)
end)

describe("a dry run", function()
    it("predicts a filtered back-projection, row by row", function()
        local sinograms <close> = mb.random({3, 40, 64}, {seed = 4})
        local _, results = both(function()
            return mb.tomo.fbp(sinograms, angles_of(40), {center = 31.2})
        end)
        release(results)
        for _, mode in ipairs {"fast", "in_place", "auto"} do
            for _, consume in ipairs {false, true} do
                local _, more = both(function()
                    return mb.tomo.fbp(sinograms, angles_of(40),
                        {center = 30, mode = mode, consume = consume, filter = "hann"})
                end)
                release(more)
            end
        end
    end)

    it("names the least budget of a back-projection, which survives every failing allocation",
        function()
        local device = mb.device("host")
        local sinograms <close> = mb.random({3, 40, 64}, {seed = 4})
        local function work()
            mb.tomo.fbp(sinograms, angles_of(40), {center = 31.2}):release()
        end
        local peak = mb.dry_run(work).peak
        local original = device:budget()
        mb.collect()
        local before = mb.pool.stats(device)
        device:budget(peak)
        local enough = pcall(work)
        device:budget(peak - 512)
        local ok, err = pcall(work)
        device:budget(original)
        assert.is_true(enough)
        assert.is_false(ok)
        assert.equal("budget", err.code)
        assert.equal(peak, err.enough)
        mb.collect()
        assert.equal(before.live, mb.pool.stats(device).live)

        local first = mb.pool.stats(device).allocs
        work()
        local allocs = mb.pool.stats(device).allocs - first
        assert.is_true(allocs >= 3)
        for n = 1, allocs do
            mb.debug.fail_nth(n, device)
            ok, err = pcall(work)
            mb.debug.fail_nth(0, device)
            assert.is_false(ok)
            assert.equal("memory", err.code)
            mb.collect()
            assert.equal(before.live, mb.pool.stats(device).live)
            assert.is_nil(mb.pool.check(device))
        end
        work()
    end)

    it("predicts a chunk of a reconstruction", function()
        local scan = {rows = 9, cols = 48, n_angles = 30, angles = angles_of(30), dtype = "u16",
            n_flats = 5, n_darks = 4}
        function scan:frames(n, rows, options)
            return mb.random({n, rows[2] - rows[1] + 1, self.cols},
                {dtype = "u16", low = 10, high = 1000, device = options.device})
        end
        function scan:darks(rows, options)
            return self:frames(4, rows, options)
        end
        function scan:flats(rows, options)
            return self:frames(5, rows, options)
        end
        function scan:projections(rows, options)
            return self:frames(self.n_angles, rows, options)
        end
        local predicted = both(function()
            local slices, counts = mb.recon.chunk(scan, mb.device("host"), 2, 8, {center = 23.5})
            slices:release()
            counts:release()
        end)
        assert.is_true(#predicted > 8)
    end)

    it("touches nothing: arrays, values, budget, default device", function()
        local a <close> = mb.full({100}, 7)
        local view <close> = a:view({1, 50})
        local budget = mb.device("host"):budget()
        local device = mb.device("host")
        local kept
        mb.dry_run(function()
            assert.is_true(a.device == device and mb.device("host") == device)
            assert.is_true(a.device.dry)
            mb.device("host", {budget = "1M"})
            mb.default_device("host")
            a:fill(1)
            view:release()
            a:release()
            kept = mb.zeros({10})
        end)
        assert.is_true(kept.released)
        assert.is_false(a.released or view.released)
        assert.equal(350, view:sum())
        assert.equal(budget, mb.device("host"):budget())
        assert.is_false(device.dry)
    end)

    it("replaces arrays however they are reached: arguments, upvalues, tables, views of one storage", function()
        local a = mb.random({64, 64})
        local holder = {view = a:view({1, 32})}
        both(function(x)
            local sum <close> = x + a
            local part <close> = holder.view * 2
            return sum.bytes + part.bytes
        end, a)
        -- The storage goes when the last of its views goes, in both.
        local predicted = both(function()
            a:release()
            holder.view:release()
        end)
        assert.equal(1, #predicted)
        assert.equal(-16384, predicted:rows()[1].keep)
    end)

    it("frees garbage at the same pool points", function()
        local predicted = both(function()
            local keep = {}
            for i = 1, 60 do
                local a = mb.empty({1 << 20, i % 7 + 4})
                if i % 20 == 0 then
                    keep[#keep + 1] = a
                end
            end
            return #keep
        end)
        local collections = 0
        for _, row in ipairs(predicted:rows()) do
            collections = collections + (row.kind == "collect" and 1 or 0)
        end
        assert.is_true(collections >= 3)
        mb.collect()
    end)

    it("allocates a gigabyte a thousand times without releasing in a budget of 4 GB", function()
        -- AddressSanitizer fills 128 MiB of its own for each gigabyte.
        local times = helper.program:match("/sanitize/") and 50 or 1000
        local function loop()
            for _ = 1, times do
                mb.empty({1 << 28})
            end
        end
        local device = mb.device("host")
        local budget = device:budget()
        local predicted = mb.dry_run(function()
            device:budget(4000000000)
            loop()
        end)
        assert.is_true(predicted.peak <= 4000000000)
        if budget >= 4000000000 then
            device:budget(4000000000)
            local measured = mb.ledger(loop)
            mb.collect()
            device:budget(budget)
            assert_same(predicted, measured)
        end
    end)

    it("answers beyond the budget, and says what is enough", function()
        local device = mb.device "host"
        local budget = device:budget()
        local _ <close> = setmetatable({}, {__close = function()
            device:budget(budget)
        end})
        local live = mb.zeros {100, 1000}
        local function work(n)
            local a <close> = mb.ones {n, 100, 1000}
            local b <close> = a + 1
            mb.median_filter(b, 3, {out = a})
        end
        local function planned(f, ...)
            local made = f(...)
            return made.beyond, made
        end
        -- what fits is as before
        assert.is_nil((planned(mb.dry_run, work, 4)))
        local fits = mb.dry_run(work, 4)
        mb.collect()
        device:budget(2000000)
        assert.equal("budget", select(2, helper.failure(work, 4)).code)
        local beyond, made = planned(mb.dry_run, work, 4)
        assert_same(fits, made)
        assert.same({{device = "host", budget = 2000000, enough = fits.peak}}, beyond)
        assert.equal(fits.peak, mb.plan.peak(function() work(4) end).peak
            + mb.pool.stats(device).live)
        assert.matches(("\ndoes not fit: the budget of host is 2 MB; give at least [%%d.]+ MB "
            .. "%%(%d bytes%%)$"):format(fits.peak):gsub("%%%%", "%%"), made:text())
        assert.matches(('"beyond":%%[{"device":"host","budget":2000000,"enough":%d}%%]'):format(
            fits.peak), made:to_json())
        -- by mb.plan of a function and of a text, on another device, and far beyond any memory
        assert.same(beyond, (planned(mb.plan, function() work(4) end)))
        assert.equal(1 << 40, planned(mb.plan, "mb.empty({1 << 38})")[1].enough - mb.pool.stats(
            device).live)
        assert.same({"planned:h200"}, {planned(mb.plan, "mb.empty({1 << 36, 2}, {device = "
            .. "'planned:h200'})")[1].device})
        -- the advice works, and is the least that does
        device:budget(fits.peak)
        work(4)
        assert.is_nil((planned(mb.dry_run, work, 4)))
        device:budget(fits.peak - 512)
        assert.equal("budget", select(2, helper.failure(work, 4)).code)
        assert.equal(fits.peak, planned(mb.dry_run, work, 4)[1].enough)
        -- an error that no memory mends stays one, and inside a plan nothing is planned again
        local _, err = helper.failure(mb.dry_run, function() mb.raise("budget", "mine; not more") end)
        assert.equal("mine; not more", err.message)
        local inner
        mb.dry_run(function()
            inner = select(2, pcall(mb.dry_run, work, 4))
        end)
        live:release()
        assert.equal("budget", inner.code)
    end)

    it("says what is enough for a function that works in smaller parts, or only plans", function()
        local device = mb.device "host"
        local budget = device:budget()
        local _ <close> = setmetatable({}, {__close = function()
            device:budget(budget)
        end})
        local image <close> = mb.random({6, 40, 42}, {seed = 4, low = 1, high = 9})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
        mb.collect()
        local live = mb.pool.stats("host").live
        for _, work in ipairs {function()
            mb.tiles.convolve(image, psf, {boundary = "reflect"}):release()
        end, function()
            mb.tiles.plan(mb.volumes.of_array(image), psf, nil, {boundary = "reflect"})
        end, function()
            local _ <close> = mb.chunked("gaussian_filter", image, {params = {sigma = 1.5}})
        end} do
            device:budget(live + 1024)
            local made = mb.dry_run(work)
            local beyond = made.beyond
            assert.same({"host", live + 1024, nil}, {beyond[1].device, beyond[1].budget, beyond[2]})
            device:budget(beyond[1].enough)
            work()
            mb.collect()
            local within = mb.dry_run(work)
            assert.is_nil(within.beyond)
            assert.is_true(within.peak <= beyond[1].enough)
            device:budget(live + (beyond[1].enough - live) * 9 // 10)
            assert.equal("budget", select(2, helper.failure(work)).code)
            assert.is_not_nil(mb.dry_run(work).beyond)
        end
        -- on two devices at once, each with its own
        local other = mb.device "host:1"
        local before = other:budget()
        local function on_two()
            local _ <close> = mb.empty {500, 1000}
            local _ <close> = mb.empty({3000, 1000}, {device = other})
        end
        device:budget(live + 1024)
        other:budget(1024)
        local beyond = mb.dry_run(on_two).beyond
        other:budget(before)
        assert.same({{device = "host", budget = live + 1024, enough = live + mb.pool.round(2000000)},
            {device = "host:1", budget = 1024, enough = mb.pool.round(12000000)}}, beyond)
    end)

    it("refuses at the same request as the real run, with the same figures", function()
        local device = mb.device("host")
        local budget = device:budget()
        device:budget(1 << 20)
        local function fill_up()
            local list, count = {}, 0
            local ok, err = true, nil
            while ok do
                count = count + 1
                ok, list[count] = pcall(mb.empty, {1000 * count})
                err = not ok and list[count]
            end
            return count, err.need, err.live, err.enough
        end
        local dry
        local predicted = mb.dry_run(function()
            dry = table.pack(fill_up())
        end)
        local real
        local measured = mb.ledger(function()
            real = table.pack(fill_up())
        end)
        mb.collect()
        device:budget(budget)
        assert.same(dry, real)
        assert_same(predicted, measured)
    end)

    it("says how to supply a bound when a value is asked for, and takes it", function()
        local a <close> = mb.full({5}, 3)
        for _, read in ipairs {
            function() return a:item(1) > 2 end, function() return a:to_table() end,
                function() return a:sum() + 1 end,
            function() return a:to_string() end, function() return math.floor(a:max()) end,
            function() return a:min() == a:max() end, function() return mb.zeros {a:max()} end,
            function() return mb.gaussian_filter(a, a:max()) end, function() for _ = 1,
            a:max() do print() end end,
            function() return a:max().x end, function() return mb.random({1},
            {seed = a:item(1)}) end,
        } do
            local ok, err = pcall(mb.dry_run, read)
            assert.is_false(ok)
            assert.equal("dry_run", err.code)
            assert.matches("mb.bound", err.message, 1, true)
        end
        for _, read in ipairs {
            function() return a:sum() end, function() return math.floor(a:sum()) end,
                function() return a:sum() == 0 and 1 or 2 end,
            function() return mb.bound(7, function() return a:sum() end) + a:sum() end,
        } do
            mb.dry_run(function()
                assert.equal(15, mb.bound(15, read))
                -- the inner one knows it all
                assert.equal(8, mb.bound(3, function() return 1 + mb.bound(7, read) end))
            end)
        end
        local function work()
            local n = mb.bound(15, function() return a:sum() end)
            mb.zeros({math.tointeger(n)}):release()
            return n
        end
        local _, results = both(work)
        assert.equal(15, results[1])
        assert.has_error(function()
            mb.dry_run(function()
                mb.bound(1, error, "other")
            end)
        end, "other")
    end)

    it("has values that can be printed and scale arrays, in dry runs and plans alike", function()
        local a <close> = mb.full({5}, 3)
        local complex <close> = mb.zeros({2}, {dtype = "c64"})
        local function work()
            (a / a:max()):release()
            local shown = {tostring(a:min()), "max " .. a:max() .. ".",
                ("%5.2f of %d%% %s"):format(a:sum(), 5, a:item(1)),
                tostring(select(2, complex:item(2)))}
            return table.concat(shown, "; ")
        end
        local format = string.format
        local _, results = both(work)
        assert.equal("3.0; max 3.0.; 15.00 of 5% 3.0; 0.0", results[1])
        mb.dry_run(function()
            assert.equal("?; max ?.; ? of 5% ?; ?", work())
        end)
        assert.equal("?; max ?.; ? of 5% ?; ?", mb.plan.peak(work).results[1])
        assert.equal(format, string.format)
    end)

    it("writes no results", function()
        local name = os.tmpname()
        os.remove(name)
        mb.dry_run(function()
            local r <close> = mb.result.create(name .. ".h5",
                {shape = {2, 4, 4}, parameters = {a = 1}})
            local slices <close> = mb.zeros({2, 4, 4})
            r:write(slices, 1)
            r:provenance {b = 2}
            r:finish()
            mb.view.save(name .. ".png", slices:view(1, mb.all, mb.all))
        end)
        assert.is_nil(io.open(name .. ".h5"))
        assert.is_nil(io.open(name .. ".png"))
    end)

    it("has timers that count nothing, outlive its devices, and can be closed", function()
        local timer
        local function turns()
            for _ = 1, 20 do -- more than a timer has events
                timer:start()
                timer:stop()
            end
            return timer:seconds()
        end
        mb.dry_run(function()
            timer = core.timer()
            assert.equal(0, turns())
        end)
        assert.equal(0, turns())
        getmetatable(timer).__close(timer)
        assert.matches("this timer has been closed", (helper.failure(turns)))
    end)

    it("works within a dry run, and with plans", function()
        local outer = mb.dry_run(function()
            local inner = mb.dry_run(function()
                mb.zeros({10}):release()
            end)
            assert.equal(2, #inner)
            local device = mb.device("host")
            local count = mb.plan.max_count(function(dry, n)
                mb.zeros({n, 128}, {device = dry}):release()
            end, {device = device, available = 5120})
            assert.equal(10, count)
        end)
        assert.equal(2, #outer)
    end)
end)

-- Random programs: operators, views, releases, scopes, loops and dropped references over random
-- shapes.

local function generator(seed)
    local state = seed * 2654435761 % 4294967296
    return function(low, high)
        state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
        return low + (state >> 33) % (high - low + 1)
    end
end

local steps = {
    function(a) return a:copy() end,
    function(a) return a + 1 end,
    function(a) return a * a end,
    function(a) return -a end,
    function(a) return a:cast("f64") end,
    function(a) return a:cast("u16") end,
    function(a) return a.rank > 0 and a[#a] or a:copy() end,
    function(a, random) return a.rank > 0 and a:view({1, random(1, #a)}) or a:copy() end,
    function(a) return a.rank > 1 and a:transpose() or a:view() end,
    function(a) return a.rank > 1 and a:transpose():dense() or a:view() end,
    function(a) return a.rank > 0 and a:sum(1) or a:copy() end,
    function(a) return a.dtype == "f32" and a.rank > 0 and mb.rfft(a:copy()) or a:copy() end,
    function(a) return a.dtype == "f32" and a.rank > 1 and mb.ramp_filter(a:copy()) or a:copy() end,
    function(a, random) return mb.zeros({random(1, 60), random(1, 90), random(1, 30)}), a end,
    function(_, random) return mb.random({random(1, 40), random(1, 200)},
        {seed = random(1, 9)}) end,
    function(a) return a.dtype == "f32" and a:exp() or a:copy() end,
}

local function program(seed)
    return function()
        local random = generator(seed)
        local arrays = {mb.random({random(1, 12), random(1, 30), random(2, 70)}, {seed = seed})}
        for _ = 1, random(4, 20) do
            local pick = arrays[random(1, #arrays)]
            local choice = random(1, 24)
            if choice <= #steps then
                -- A copy made on the way is garbage; a step may be refused (complex data, the
                -- budget).
                local ok, made = pcall(steps[choice], pick, random)
                arrays[#arrays + 1] = ok and made or nil
            elseif choice <= 19 and #arrays > 1 then
                table.remove(arrays, random(1, #arrays)):release()
            elseif choice == 20 and #arrays > 1 then
                table.remove(arrays, random(1, #arrays)) -- garbage
            elseif choice == 21 then
                local scope <close> = mb.pool.scope()
                local inner <close> = pick:copy()
                assert(scope:finish() >= inner.bytes)
            elseif choice == 22 then
                local whole <close> = pick.rank == 0 and pick:reshape(1) or pick:view()
                for row in whole:slices() do
                    if row > 3 then
                        break
                    end
                end
            elseif choice == 23 then
                mb.collect()
            else
                local ok, err = pcall(mb.empty, {random(1, 2) == 1 and 1 << 40 or 1 << 20, 2})
                assert(ok or err.code == "budget")
            end
        end
        for _, array in ipairs(arrays) do
            if random(1, 3) > 1 then
                array:release()
            end
        end
    end
end

-- On the default device, with a budget so small that requests climb the ladder, too.
local function check_random_programs(id)
    local original_device = mb.default_device().id
    local device = mb.default_device(id)
    mb.collect()
    local budget = device:budget()
    device:budget(mb.pool.stats(device).live + (12 << 20))
    local ok, err = pcall(function()
        local rows = 0
        for seed = 1, 500 do
            local work = program(seed)
            local predicted = mb.dry_run(work)
            local measured = mb.ledger(work)
            assert_same(predicted, measured, "program " .. seed)
            assert.is_nil(mb.pool.check(device))
            rows = rows + #measured
        end
        assert.is_true(rows > 5000)
    end)
    mb.collect()
    device:budget(budget)
    mb.default_device(original_device)
    assert.is_true(ok, tostring(err))
end

describe("random programs", function()
    helper.each_device(function(id, test)
        test("give in 500 dry runs the ledgers of the real runs on " .. id, function()
            check_random_programs(id)
        end)
    end)
end)

describe("ledgers on the GPU", function()
    helper.gpu_it("are predicted row by row", function()
        local device = "cuda:0"
        local sinograms <close> = mb.random({3, 40, 64}, {seed = 4, device = device})
        local function work()
            local slices <close> = mb.tomo.fbp(sinograms, angles_of(40), {center = 31.2})
            local sum <close> = slices + slices
            return sum.bytes
        end
        local predicted = mb.dry_run(work)
        local measured = mb.ledger(work)
        assert_same(predicted, measured)
    end)
end)
