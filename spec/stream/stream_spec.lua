-- Whole reconstructions with reading and writing beside the computing: the volume is that of the
-- serial run to the bit, the dry run knows both peaks to the byte, and whatever goes wrong leaves
-- nothing.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local unpack = require "moonbeam.internal.unpack"

local ANGLES, ROWS, COLS = 40, 22, 48


helper.each_device(function(device, test)
    describe("stream on " .. device, function()
        local folder, path

        -- A scan with frames in the order that image keys allow: runs of projections between flats
        -- and darks.
        local function make_scan(options)
            local keys, degrees = {}, {}
            for i = 1, ANGLES + 6 do
                keys[i] = (i == 1 or i == 20) and 2 or (i == 2 or i == 3 or i == 21 or i == 46)
                    and 1 or 0
                degrees[i] = 180 * i / ANGLES
            end
            local file <close> = mb.h5.create(path, {overwrite = true})
            local frames <close> = mb.random({ANGLES + 6, ROWS, COLS},
                {dtype = "u16", low = 500, high = 60000, seed = 4})
            for _, i in ipairs {1, 20} do -- darks
                local dark <close> = frames:view {i, i}
                dark:fill(400)
            end
            file:group("/entry", "NXentry")
            file:write("/entry/definition", "NXtomo")
            file:group("/entry/instrument", "NXinstrument")
            file:group("/entry/instrument/detector", "NXdetector")
            file:write("/entry/instrument/detector/data", frames, options)
            file:write("/entry/instrument/detector/image_key", keys, {dtype = "i32"})
            file:group("/entry/sample", "NXsample")
            file:write("/entry/sample/rotation_angle", degrees, {attributes = {units = "deg"}})
            file:finish()
        end

        setup(function()
            folder = files.folder()
            path = folder .. "/scan.h5"
            make_scan()
        end)
        teardown(function()
            files.remove(folder)
        end)

        local function settings_of(more)
            local settings = {device = device, center = 23.5, chunk = 4, quiet = true, threads = 2,
                pinned = "2Mi"}
            for key, value in pairs(more or {}) do
                settings[key] = value
            end
            return settings
        end

        local function reconstruct(name, more, create)
            local scan <close> = assert(mb.scan.open(path))
            local plan = mb.recon.plan(scan, settings_of(more))
            local options = {shape = plan.volume, overwrite = true}
            for key, value in pairs(create or {}) do
                options[key] = value
            end
            local result <close> = mb.result.create(folder .. "/" .. name, options)
            local report = mb.recon.run(scan, plan, result)
            result:finish()
            return report, plan
        end

        local function volume(name)
            local file <close> = assert(mb.h5.open(folder .. "/" .. name))
            local array <close> = file:read("/entry/data/data")
            return array:to_table()
        end

        test("gives the volume of the serial run, for every chunk size and layout", function()
            for _, layout in ipairs {{}, {chunks = {1, ROWS, COLS}},
                {chunks = {1, ROWS, COLS}, deflate = 1}} do
                make_scan(layout)
                for _, chunk in ipairs(layout.chunks and {8, 22} or {1, 3, 8, 22}) do
                    reconstruct("serial.h5", {overlap = false, chunk = chunk})
                    local report, plan = reconstruct("beside.h5", {overlap = true, chunk = chunk})
                    assert.same(volume("serial.h5"), volume("beside.h5"))
                    assert.equal(plan.peak, report.peak)
                    assert.equal(plan.pinned, report.pinned)
                    assert.is_true(report.times.overlap)
                    assert.equal(layout.deflate ~= nil and chunk < ROWS, report.times.unpack ~= nil)
                end
            end
            make_scan()
        end)

        test("decodes compressed frames once, and leaves no temporary file", function()
            for _, layout in ipairs {{chunks = {1, ROWS, COLS}, deflate = 3},
                {chunks = {4, ROWS, COLS}, deflate = 1},
                {chunks = {3, 8, 20}, deflate = 1}} do
                make_scan(layout)
                local scan <close> = assert(mb.scan.open(path))
                local ranges = {{3, 9}, {10, 16}}
                local unpacked <close> = unpack.if_needed(scan, ranges)
                assert.is_true(unpacked.unpack_seconds > 0)
                for _, what in ipairs {"projections", "flats", "darks"} do
                    local expected <close> = scan[what](scan, {3, 16})
                    local got <close> = unpacked[what](unpacked, {3, 16})
                    assert.same(expected:to_table(), got:to_table())
                end
                assert.is_nil(unpack.if_needed(unpacked, ranges))
                assert.is_nil(unpack.if_needed(scan, {{1, 22}}))
            end
            make_scan()
            local scan <close> = assert(mb.scan.open(path))
            assert.is_nil(unpack.if_needed(scan, {{1, 9}, {10, 22}}))
            for _, name in ipairs(files.list(os.getenv("TMPDIR") or "/tmp")) do
                assert.is_nil(name:find(("^moonbeam%%-%d"):format(mb.system.pid())), name)
            end
        end)

        test("decodes frames once for the axis and the slices", function()
            for _, chunk in ipairs {8, 22} do
                make_scan {chunks = {1, ROWS, COLS}, deflate = 1}
                reconstruct("serial.h5", {chunk = chunk})
                local scan <close> = assert(mb.scan.open(path))
                local settings = settings_of {chunk = chunk}
                local plan = mb.recon.plan(scan, settings)
                local once <close> = mb.recon.decoded(scan, settings, plan, true)
                assert.is_true(once.unpack_seconds > 0)
                assert.equal(mb.recon.find_center(scan, settings),
                    (mb.recon.find_center(once, settings)))
                local result <close> = mb.result.create(folder .. "/once.h5",
                    {shape = plan.volume, overwrite = true})
                local report = mb.recon.run(once, plan, result)
                result:finish()
                assert.equal(once.unpack_seconds, report.times.unpack)
                assert.equal(plan.peak, report.peak)
                assert.same(volume("serial.h5"), volume("once.h5"))
                local other <close> = mb.recon.decoded(scan, settings, plan, false)
                assert.equal(chunk < ROWS, other.unpack_seconds ~= nil)
            end
            make_scan()
            local scan <close> = assert(mb.scan.open(path))
            local plain <close> = mb.recon.decoded(scan, settings_of(), nil, true)
            assert.is_nil(plain.unpack_seconds)
        end)

        test("says where decoded frames go when there is no room", function()
            local disk = files.small_disk(folder, "1m")
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local big = folder .. "/big.h5"
            do
                local frames <close> = mb.zeros({40, 100, 200}, {dtype = "u16"})
                local file <close> = mb.h5.create(big)
                file:write("/exchange/data", frames, {chunks = {1, 100, 200}, deflate = 1})
                file:write("/exchange/theta", mb.linspace(0, 175.5, 40, {dtype = "f64"}),
                    {attributes = {units = "deg"}})
                file:finish()
            end
            local text = files.run(
                ("TMPDIR='%s' '%s' scripts/reconstruct.lua '%s' -o '%s' --device host --center 99.5 --chunk 10 --no-log")
                :format(disk, mb.system.program(), big, folder .. "/never.h5"))
            local left = files.list(disk)
            files.unmount(disk)
            os.remove(disk)
            os.remove(big)
            assert.matches("no room for .* TMPDIR names", text)
            assert.same({}, left)
            assert.is_nil(mb.system.stat(folder .. "/never.h5"))
        end)

        test("gives the same volume in several files", function()
            reconstruct("serial.h5", {overlap = false, chunk = 5})
            for _, count in ipairs {1, 2, 5, 7, 30} do
                reconstruct("parts.h5", {chunk = 5}, {slices_per_file = count})
                assert.same(volume("serial.h5"), volume("parts.h5"), count)
            end
            files.remove(folder .. "/parts-slices")
            os.remove(folder .. "/parts.h5")
        end)

        test("gives the same volume in more files than may be open", function()
            local function run(limit, name, slices)
                local text = files.run(
                    ("ulimit -n %d; '%s' scripts/reconstruct.lua '%s' -o '%s' --overwrite --device host --center 23.5 "
                    .. "--chunk 11 --threads 2 --pinned 2Mi --slices-per-file %d"):format(limit,
                        mb.system.program(), path,
                    folder .. "/" .. name, slices))
                assert.matches("wrote", text)
                local values = helper.flatten(volume(name))
                files.remove(folder .. "/" .. name:gsub("%.h5", "-slices"))
                os.remove(folder .. "/" .. name)
                return values
            end
            local expected = run(1000, "one.h5", ROWS)
            for _, limit in ipairs {70, 80} do -- two at a time; five
                assert.same(expected, run(limit, "many.h5", 1))
            end
        end)

        test("gives what libhdf5 alone reads and writes", function()
            local scan <close> = assert(mb.scan.open(path))
            local expected = {}
            for first = 1, ROWS, 5 do
                local slices <close>, counts = mb.recon.chunk(scan, mb.device(device), first,
                    math.min(first + 4, ROWS),
                    {center = 23.5})
                counts:release()
                for _, slice in ipairs(slices:to_table()) do
                    expected[#expected + 1] = slice
                end
            end
            reconstruct("beside.h5", {chunk = 5})
            assert.same(expected, volume("beside.h5"))
        end)

        test("stores fewer bits, and counts what does not fit", function()
            reconstruct("whole.h5")
            local expected = helper.flatten(volume("whole.h5"))
            local scan <close> = assert(mb.scan.open(path))
            local range = mb.recon.find_range(scan, settings_of())
            assert.is_true(range[1] < range[2])
            for _, limits in ipairs {range, {-0.5, 0.25}} do
                local report = reconstruct("integers.h5", {dtype = "u16", range = limits},
                    {dtype = "u16"})
                local step = (limits[2] - limits[1]) / 65535
                local below, above = 0, 0
                for i, n in ipairs(helper.flatten(volume("integers.h5"))) do
                    local v = expected[i]
                    below, above = below + (v < limits[1] and 1 or 0), above + (v > limits[2] and 1
                        or 0)
                    local wanted = math.max(limits[1], math.min(limits[2], v))
                    assert.is_true(math.abs(n * step + limits[1] - wanted) <= 0.5001 * step)
                end
                assert.same({below, above, 0}, report.clipped)
                assert.is_true(limits == range or below > 0 and above > 0)
            end
            assert.same({0, 1}, mb.recon.find_range(scan, settings_of {dtype = "f16"}))
            local large = mb.recon.find_range(scan, settings_of {dtype = "f16", scale = 1e9})
            assert.is_true(large[2] > 1 and math.log(large[2], 2) % 1 == 0)
            local report = reconstruct("half.h5", {dtype = "f16"}, {dtype = "f16"})
            for i, v in ipairs(helper.flatten(volume("half.h5"))) do
                assert.is_true(math.abs(v - expected[i]) <= 2 ^ -11 * math.abs(expected[i]) + 1e-7)
            end
            assert.same({0, 0, 0}, report.clipped)
        end)

        test("hands slices to functions in order", function()
            local scan <close> = assert(mb.scan.open(path))
            local plan = mb.recon.plan(scan, settings_of())
            local seen, looked = {}, {}
            local report = mb.recon.run(scan, plan, function(slices, z)
                seen[#seen + 1] = {z, slices.shape[1]}
            end, function(_, z)
                looked[#looked + 1] = z
            end)
            assert.same({{1, 4}, {5, 4}, {9, 4}, {13, 4}, {17, 4}, {21, 2}}, seen)
            assert.same({1, 5, 9, 13, 17, 21}, looked)
            assert.equal(plan.peak, report.peak)
        end)

        test("plans both peaks of every kind of run to the byte", function()
            local shifts = {}
            for i = 1, ANGLES do
                shifts[i] = 1.7 * math.sin(i)
            end
            for _, more in ipairs {{}, {overlap = false}, {chunk = 1}, {chunk = 7}, {chunk = 22},
                {mode = "in_place"},
                {vertical_shifts = shifts}, {vertical_shifts = shifts, chunk = 3, overlap = false},
                {threads = 3, pinned = "3Mi"},
                {rows = {3, 17}, chunk = 6}, {dtype = "f16"},
                    {dtype = "u16", range = {-1, 1}, overlap = false}} do
                local report, plan = reconstruct("peaks.h5", more, {dtype = more.dtype})
                assert.equal(plan.peak, report.peak)
                assert.equal(plan.pinned, report.pinned)
                assert.is_true(report.pinned > 0)
            end
        end)

        test("has the ledger that its dry run predicts, pinned memory included", function()
            local function job()
                reconstruct("ledger.h5", {chunk = 6})
            end
            job() -- FFT plans are there from now on
            local predicted = mb.dry_run(job)
            local measured = mb.ledger(job)
            assert.same({}, mb.ledger_diff(predicted, measured))
            assert.equal((2 << 20) + 2 * 12 * 8, measured.pinned_peak) -- rings and tallies
            assert.equal(predicted.pinned_peak, measured.pinned_peak)
        end)

        test("takes one set of chunks where two do not fit", function()
            local scan <close> = assert(mb.scan.open(path))
            local function plan(available, overlap)
                return mb.recon.plan(scan, settings_of {chunk = false, available = available,
                    overlap = overlap, method = "fbp",
                    mode = "fast"})
            end
            local function least(overlap)
                local ok, err = pcall(plan, 1, overlap)
                assert.is_false(ok)
                assert.equal("available", err.limited_by)
                return err.enough
            end
            local serial = least(nil)
            assert.is_true(serial < least(true))
            assert.is_false(plan(serial).overlap)
            assert.is_true(plan(16 * serial).overlap)
        end)

        test("leaves nothing when the scan is cut off half way", function()
            reconstruct("before.h5")
            local before = files.list(folder)
            local scan <close> = assert(mb.scan.open(path))
            local plan = mb.recon.plan(scan, settings_of {chunk = 2})
            local ok, err = pcall(function()
                local result <close> = mb.result.create(folder .. "/never.h5",
                    {shape = plan.volume})
                mb.recon.run(scan, plan, result, function(_, z)
                    if z > 4 then
                        assert(os.execute(("truncate -s 60000 '%s'"):format(path)))
                    end
                end)
                result:finish()
            end)
            scan:close()
            make_scan()
            assert.is_false(ok)
            assert.equal("io", err.code)
            assert.same(before, files.list(folder))
            helper.check_nothing_live()
            assert.equal(0, (mb.device(device):pinned()))
        end)

        test("leaves nothing when it is cancelled, or a function fails", function()
            local before = files.list(folder)
            for _, stop in ipairs {function() mb.system.cancel(true) end,
                function() error("stop here") end} do
                local scan <close> = assert(mb.scan.open(path))
                local plan = mb.recon.plan(scan, settings_of {chunk = 1})
                local ok, err = mb.system.call(function()
                    local result <close> = mb.result.create(folder .. "/never.h5",
                        {shape = plan.volume})
                    mb.recon.run(scan, plan, result, function(_, z)
                        if z == 5 then
                            stop()
                        end
                    end)
                    result:finish()
                end)
                mb.system.cancel(false)
                assert.is_false(ok)
                assert.is_true(type(err) == "table" and err.code == "cancelled"
                    or tostring(err):find("stop here") ~= nil, tostring(err))
                assert.same(before, files.list(folder))
                helper.check_nothing_live()
                assert.equal(0, (mb.device(device):pinned()))
            end
        end)

        test("leaves nothing when memory is refused at any point", function()
            local before = files.list(folder)
            local scan <close> = assert(mb.scan.open(path))
            local failures = 0
            for n = 1, 40, 3 do
                local plan = mb.recon.plan(scan, settings_of {chunk = 9})
                mb.debug.fail_nth(n, device)
                local ok, err = pcall(function()
                    local result <close> = mb.result.create(folder .. "/never.h5",
                        {shape = plan.volume})
                    mb.recon.run(scan, plan, result)
                end)
                mb.debug.fail_nth(0, device)
                if not ok then
                    failures = failures + 1
                    assert.equal("memory", err.code)
                end
                assert.same(before, files.list(folder))
                helper.check_nothing_live()
                assert.equal(0, (mb.device(device):pinned()))
            end
            assert.is_true(failures > 3)
        end)

        test("keeps its carriers for several runs, each with its own counts", function()
            local from <close> = mb.random({6, 8}, {seed = 7})
            local expected <close> = from * 2
            local lanes <close> = mb.stream.open({device}, {pinned = "1Mi", threads = 1})
            for _, overlap in ipairs {true, false, true} do
                local to <close> = mb.zeros {6, 8}
                local times = mb.stream.run(lanes, {1, 2, 3, 4, 5, 6}, {
                    read = function(i, carrier, on)
                        local block = mb.empty({8}, {device = on})
                        local row <close> = from:view(i)
                        carrier:carry(row, block)
                        return block
                    end,
                    compute = function(block)
                        local _ <close> = block
                        return block * 2
                    end,
                    write = function(block, i, carrier)
                        local row <close> = to:view(i)
                        carrier:carry(row, block)
                    end,
                }, {overlap = overlap})
                assert.same(expected:to_table(), to:to_table())
                assert.equal(overlap, times.overlap)
                assert.same({192, 192, 1 << 20},
                    {times.read_bytes, times.write_bytes, times.pinned})
            end
        end)

        test("tells of each block that has arrived, with what was counted and its hash", function()
            local from <close> = mb.random({7, 300, 200}, {seed = 7, device = "host"})
            for _, overlap in ipairs {true, false} do
                for _, place in ipairs {"file", "host", "nowhere"} do
                    local file <close> = place == "file" and mb.h5.create(folder .. "/told.h5")
                        or nil
                    local dataset = file and file:create_dataset("/data", {shape = from.shape})
                    local to <close> = mb.zeros(from.shape, {device = "host"})
                    local seen, order, done = {}, {}, 0
                    mb.stream.run(device, {1, 2, 3, 4, 5, 6, 7}, {
                        read = function(i, carrier, on)
                            local block = mb.empty({1, 300, 200}, {device = on})
                            local row <close> = from:view {i, i}
                            carrier:carry(row, block)
                            return block
                        end,
                        compute = function(block, i, _, counts)
                            local _ <close> = block
                            assert.same({3}, table.move(counts.shape, 1, #counts.shape, 1, {}))
                            local one <close> = counts:view {2, 2}
                            one:fill(10 * i)
                            return block:copy()
                        end,
                        write = function(block, i, carrier)
                            local row <close> = to:view {i, i}
                            if place == "file" then
                                carrier:carry(dataset, block, {i, i})
                            elseif carrier then
                                carrier:carry(row, block)
                            end
                        end,
                        done = function()
                            done = done + 1
                        end,
                        finished = function(i, facts)
                            assert.is_nil(seen[i])
                            assert.equal(device, facts.device.id)
                            assert.same({0, 10 * i, 0}, facts.tallies)
                            if place == "file" then -- its bytes are there
                                local row <close> = dataset:read({i, i})
                                local own <close> = from:view {i, i}
                                assert.same(own:to_table(), row:to_table())
                            end
                            seen[i], order[#order + 1] = facts.hash or 0, i
                            assert.is_true(done >= i)
                        end,
                    }, {overlap = overlap, pinned = "1Mi", threads = 2, tallies = 3,
                        hashes = place ~= "nowhere", writes = place ~= "nowhere"})
                    assert.equal(7, #order)
                    for i = 1, 7 do
                        assert.equal(place == "file", seen[i] ~= 0)
                        assert.is_true(i == 1 or place ~= "file" or seen[i] ~= seen[1])
                    end
                    if dataset then
                        dataset:close()
                    end
                end
            end
        end)

        test("tells what took how long", function()
            local report = reconstruct("times.h5")
            local times = report.times
            for _, name in ipairs {"wall", "read", "upload", "compute", "download", "write"} do
                assert.is_true(times[name] > 0, name)
                assert.is_true(times[name] <= times.wall * 1.01,
                    ("%s %g of %g"):format(name, times[name], times.wall))
            end
            assert.equal(4 * ROWS * COLS * COLS, times.write_bytes)
            assert.equal(2 * ROWS * COLS * (ANGLES + 6), times.read_bytes)
        end)
    end)
end)

describe("stream on several devices", function()
    local DEVICES <const> = {"host:1", "host:2", "host:3"}

    it("goes on without writing: something tells that a device is ready", function()
        for _, schedule in ipairs {"free", "fixed"} do
            local blocks, seen, released = {}, {}, 0
            for i = 1, 30 do
                blocks[i] = i
            end
            local times = mb.stream.run(DEVICES, blocks, {
                read = function(_, _, device)
                    return mb.empty({100}, {device = device})
                end,
                compute = function(frames, i, device)
                    frames:release()
                    assert.is_nil(seen[i])
                    seen[i] = device.id
                    return {release = function() released = released + 1 end}
                end,
                write = function(_, _, carrier)
                    assert.is_nil(carrier)
                end,
            }, {schedule = schedule, writes = false, pinned = "1Mi"})
            assert.equal(30, #seen)
            assert.equal(30, released)
            for k, lane in ipairs(times.lanes) do
                assert.equal(lane.blocks, #lane.lists[1])
                for n, i in ipairs(lane.lists[1]) do
                    assert.equal(DEVICES[k], seen[i])
                    assert.is_true(n == 1 or i > lane.lists[1][n - 1])
                end
                assert.is_true(schedule == "free" or lane.blocks == 10)
            end
        end
    end)

    it("is stopped: what is in flight is finished, and no more", function()
        for count = 1, 3 do
            for _, schedule in ipairs {"free", "fixed"} do
                for last = 0, 12 do
                    local blocks, read, finished = {}, 0, {}
                    for i = 1, 12 do
                        blocks[i] = i
                    end
                    local times = mb.stream.run({table.unpack(DEVICES, 1, count)}, blocks, {
                        read = function(_, _, device)
                            read = read + 1
                            return mb.ones({100}, {device = device})
                        end,
                        compute = function(frames)
                            return frames
                        end,
                        write = function() end,
                        finished = function(i)
                            finished[#finished + 1] = i
                        end,
                        stops = function()
                            return read >= last
                        end,
                    }, {schedule = schedule, pinned = "1Mi"})
                    table.sort(finished)
                    assert.same(table.move(blocks, 1, last, 1, {}), finished)
                    assert.equal(last, read)
                    assert.equal(last < 12, times.stopped)
                end
            end
        end
    end)

    it("shares pinned memory and threads", function()
        for _, options in ipairs {{}, {pinned = "4Mi"}, {pinned = "1Mi", threads = 8},
            {tallies = 9}, {writes = false}, {writes = false, tallies = 9}, {pinned = "800Ki"}} do
            local lanes <close> = mb.stream.open(DEVICES, options)
            local pinned = 0
            for _, lane in ipairs(lanes) do
                pinned = pinned + lane.pinned
                local most = math.max(1, (options.threads or 3) // 3)
                assert.is_true(lane.reader:stats().threads <= most)
            end
            assert.equal(mb.stream.pinned_bytes(DEVICES, options), pinned)
            local account = mb.device.bytes(options.pinned or "768Mi")
            assert.is_true(pinned <= account + 3 * 2 * 8 * 9)
            assert.is_true(options.writes == false or not options.pinned or pinned > account * 0.7)
        end
        -- What the rings may take: 256 MiB for each device, at most 1 GiB.
        local shares = require "moonbeam.stream.shares"
        for count, each in ipairs {256 << 20, 256 << 20, 256 << 20, 256 << 20, (1 << 30) // 5} do
            local reading, writing = shares.rings(mb.device "host:1", {}, count)
            assert.equal(each // 2, reading.pinned)
            assert.equal(each // 2, writing.pinned)
        end
    end)
end)
