-- Carriers: slabs of files to and from a device by threads. What they move is what libhdf5 moves,
-- to the bit.

local files = require "spec.support.files"
local helper = require "spec.helper"
local core = require "moonbeam.core"
local mb = require "moonbeam"

local FRAMES, ROWS, COLS = 13, 24, 40

-- The threads of this process, as a set of their numbers.
local function threads_now()
    local set = {}
    for _, number in ipairs(files.list(("/proc/%d/task"):format(mb.system.pid()))) do
        set[number] = true
    end
    return set
end

-- How many threads there are now that were not there `before`.
local function threads_since(before)
    local count = 0
    for number in pairs(threads_now()) do
        count = count + (before[number] and 0 or 1)
    end
    return count
end

-- The same once it is 0, or after 5 s: the kernel lists a thread for a moment after it was joined.
local function threads_left(before)
    for _ = 1, 100 do
        if threads_since(before) == 0 then
            break
        end
        mb.system.sleep(0.05)
    end
    return threads_since(before)
end

helper.each_device(function(device, test)
    describe("carrier on " .. device, function()
        local folder

        before_each(function()
            folder = files.folder()
        end)
        after_each(function()
            files.remove(folder)
        end)

        local function make(name, options)
            local path = folder .. "/" .. name
            local values <close> = mb.random({FRAMES, ROWS, COLS},
                {dtype = "u16", low = 0, high = 65535, seed = 3})
            local file <close> = mb.h5.create(path)
            file:write("/data", values, options)
            file:finish()
            return path
        end

        local function open_carrier(options)
            local all = {device = device, threads = 3, pinned = "1Mi"}
            for key, value in pairs(options or {}) do
                all[key] = value
            end
            return core.carrier.open(all)
        end

        local layouts = {
            {"contiguous", nil, true},
            {"in whole frames", {chunks = {1, ROWS, COLS}}, true},
            {"in several whole frames", {chunks = {5, ROWS, COLS}}, true},
            {"in bands of rows", {chunks = {1, 7, COLS}}, true},
            {"in blocks of frames and rows", {chunks = {4, 5, COLS}}, true},
            {"in columns", {chunks = {4, 5, 16}}, false},
            {"compressed", {chunks = {1, ROWS, COLS}, deflate = 2}, false},
            {"compressed in blocks", {chunks = {3, 10, 20}, deflate = 2}, false},
            {"of another type", {dtype = "i32"}, false},
        }

        for _, layout in ipairs(layouts) do
            local name, options, raw = table.unpack(layout)
            test("reads frames " .. name .. " as libhdf5 does", function()
                local path = make("data.h5", options)
                local file <close> = assert(mb.h5.open(path))
                local dataset <close> = file:dataset("/data")
                local carrier <close> = open_carrier()
                local bytes = 0
                for _, ranges in ipairs {{mb.all, mb.all}, {{2, 11}, {3, 3}}, {{1, 13}, {6, 17}},
                    {{13, 13}, {1, 24}},
                    {{5, 5}, {24, 24}}} do
                    local expected <close> = dataset:read(ranges[1], ranges[2], {dtype = "u16"})
                    local got <close> = mb.full(expected.shape, 7, {dtype = "u16", device = device})
                    carrier:carry(dataset, got, ranges[1], ranges[2])
                    carrier:wait()
                    assert.same(expected:to_table(), got:to_table())
                    bytes = bytes + 2 * expected.elements
                end
                local stats = carrier:stats()
                assert.equal(bytes, stats.bytes)
                assert.equal(raw and bytes or 0, stats.raw_bytes)
            end)
        end

        test("reads pieces smaller than a frame, and many transfers at a time", function()
            local values <close> = mb.random({3, 300, 257}, {dtype = "f32", seed = 5})
            local path = folder .. "/wide.h5"
            do
                local file <close> = mb.h5.create(path)
                file:write("/data", values)
                file:write("/packed", values, {deflate = 1})
                file:finish()
            end
            local file <close> = assert(mb.h5.open(path))
            local carrier <close> = open_carrier {threads = 4, pinned = 8 * 65536}
            local arrays = {}
            for _, name in ipairs {"/data", "/packed"} do
                local dataset = file:dataset(name)
                for i = 1, 8 do
                    arrays[#arrays + 1] = mb.zeros({3, 301 - 30 * i, 257}, {device = device})
                    carrier:carry(dataset, arrays[#arrays], mb.all, {1, 301 - 30 * i})
                end
            end
            carrier:wait()
            for i, array in ipairs(arrays) do
                local expected <close> = values:view(mb.all, {1, array.shape[2]}, mb.all)
                assert.same(expected:to_table(), array:to_table(), i)
                array:release()
            end
        end)

        test("is ordered with the work queued before and after it", function()
            local path = make("data.h5")
            local file <close> = assert(mb.h5.open(path))
            local dataset <close> = file:dataset("/data")
            local carrier <close> = open_carrier()
            for _ = 1, 20 do
                local a <close> = mb.full({FRAMES, ROWS, COLS}, 1, {dtype = "u16", device = device})
                carrier:carry(dataset, a) -- after the fill
                carrier:wait()
                local b <close> = mb.binary(a, "max", {scalar = 40000}) -- after the upload
                local expected <close> = dataset:read()
                local limited <close> = mb.binary(expected, "max", {scalar = 40000})
                assert.same(limited:to_table(), b:to_table())
            end
        end)

        test("writes as libhdf5 does, contiguous and compressed", function()
            for _, options in ipairs {{}, {sparse = true}, {deflate = 1}, {chunks = {2, 64, 64}},
                {dtype = "f64"}} do
                local values <close> = mb.random({6, 256, 256}, {dtype = options.dtype
                    or "f32", seed = 9, device = device})
                options.shape = {6, 256, 256}
                local path = folder .. "/written.h5"
                do
                    local file <close> = mb.h5.create(path, {overwrite = true})
                    local dataset = file:create_dataset("/data", options)
                    local carrier <close> = open_carrier {writing = true}
                    for z = 1, 6, 2 do
                        local part <close> = values:view({z, z + 1})
                        local copy = part:copy()
                        carrier:carry(dataset, copy, {z, z + 1})
                        carrier:wait()
                        mb.fill(copy, -1) -- its bytes have left the device
                        copy:release()
                    end
                    carrier:finish()
                    assert.equal((options.deflate or options.chunks) and 0
                        or values.elements * (options.dtype and 8 or 4),
                        carrier:stats().raw_bytes)
                    file:finish()
                end
                local file <close> = assert(mb.h5.open(path))
                local got <close> = file:read("/data")
                assert.same(values:to_table(), got:to_table())
            end
        end)

        -- Views of arrays on the host, pinned for the device or not: whole, rows, columns, neither.
        local function host_views(array)
            return {array:view(mb.all), array:view({2, 11}, {3, 20}, mb.all),
                array:view(mb.all, {5, 5}, mb.all),
                array:view({1, 13, 3}, mb.all, mb.all), array:view(mb.all, mb.all, {3, 30}),
                    array:view(4, {2, 9}, {7, 8}),
                array:view(5, 6, mb.all), array:view({3, 3}, {1, 24, 5}, {40, 40})}
        end

        for _, pinned in ipairs {true, false} do
            local name = pinned and "pinned arrays, without a ring"
                or "pageable arrays, through the ring"
            local here = pinned and device or nil
            local ring = {threads = 3, pinned = pinned and 0 or 8 * 65536}

            test("reads " .. name, function()
                local host <close> = mb.random({FRAMES, ROWS, COLS},
                    {dtype = "u16", high = 65535, device = "host", pinned = here})
                local carrier <close> = open_carrier(ring)
                local bytes = 0
                for i, view in ipairs(host_views(host)) do
                    local got <close> = mb.full(view.shape, 7, {dtype = "u16", device = device})
                    carrier:carry(view, got)
                    carrier:wait()
                    assert.same(view:to_table(), got:to_table(), i)
                    bytes = bytes + got.bytes
                    view:release()
                end
                carrier:finish()
                assert.equal(bytes, carrier:stats().bytes)
                assert.equal(bytes, carrier:stats().raw_bytes)
            end)

            test("writes " .. name, function()
                local host <close> = mb.zeros({FRAMES, ROWS, COLS},
                    {dtype = "u16", device = "host", pinned = here})
                local shadow <close> = mb.zeros({FRAMES, ROWS, COLS},
                    {dtype = "u16", device = "host"})
                local expected = host_views(shadow)
                ring.writing = true
                local carrier <close> = open_carrier(ring)
                for i, view in ipairs(host_views(host)) do
                    local from <close> = mb.random(view.shape,
                        {dtype = "u16", high = 65535, seed = i, device = device})
                    carrier:carry(view, from)
                    carrier:wait()
                    mb.fill(from, 3) -- its bytes have left the device
                    carrier:finish()
                    local values <close> = mb.random(view.shape,
                        {dtype = "u16", high = 65535, seed = i, device = "host"})
                    mb.convert(values, "u16", {out = expected[i]})
                    assert.same(shadow:to_table(), host:to_table(), i)
                    view:release()
                    expected[i]:release()
                end
            end)
        end

        test("moves much between pinned arrays and the device in pieces, both ways at a time",
            function()
            local raw <close> = mb.random({6, 700, 2048}, {dtype = "f32", seed = 6, device = "host",
                pinned = device})
            local back <close> = mb.zeros({6, 700, 2048},
                {dtype = "f32", device = "host", pinned = device})
            local up <close> = open_carrier {threads = 2, pinned = 0}
            local down <close> = open_carrier {threads = 2, pinned = 0, writing = true}
            for first = 1, 700, 175 do
                local from <close> = raw:view(mb.all, {first, first + 174})
                local to <close> = back:view(mb.all, {first, first + 174})
                local block <close> = mb.empty(from.shape, {device = device})
                up:carry(from, block)
                up:wait()
                down:carry(to, block)
                down:wait()
            end
            down:finish()
            up:finish()
            local difference <close> = raw - back
            assert.equal(0, difference:norm())
            assert.is_true(up:stats().lane_seconds > 0)
            assert.equal(0, up:stats().file_seconds)
        end)

        test("rejects arrays that cannot be an end", function()
            local host <close> = mb.zeros({4, 6, 8}, {dtype = "u16", device = "host"})
            local array <close> = mb.zeros({4, 6, 8}, {dtype = "u16", device = device})
            local carrier <close> = open_carrier()
            local small <close> = host:view({1, 3})
            assert.matches("same shape", (helper.failure(carrier.carry, carrier, small, array)))
            local other <close> = mb.zeros({4, 6, 8}, {device = "host"})
            assert.matches("element type", (helper.failure(carrier.carry, carrier, other, array)))
            local columns <close> = host:permute(1, 3, 2)
            local wide <close> = mb.zeros({4, 8, 6}, {dtype = "u16", device = device})
            assert.matches("dense", (helper.failure(carrier.carry, carrier, columns, wide)))
            local reversed <close> = host:view({4, 1, -1})
            assert.matches("reversed", (helper.failure(carrier.carry, carrier, reversed, array)))
            if device ~= "host" then
                assert.matches("on the host",
                    (helper.failure(carrier.carry, carrier, array, array)))
                local none <close> = open_carrier {pinned = 0}
                assert.matches("more pinned memory",
                    (helper.failure(none.carry, none, host, array)))
            end
            local dataset = assert(mb.h5.open(make("data.h5"))):dataset("/data")
            local none <close> = open_carrier {pinned = 0}
            local frames <close> = mb.zeros({FRAMES, ROWS, COLS}, {dtype = "u16", device = device})
            assert.matches("more pinned memory",
                (helper.failure(none.carry, none, dataset, frames)))
        end)

        test("finds a damaged row when the file is verified", function()
            local file <close> = mb.h5.create(folder .. "/damaged.h5")
            local dataset = file:create_dataset("/data", {shape = {4, 300, 300}})
            local values <close> = mb.random({4, 300, 300}, {device = device})
            do
                local carrier <close> = open_carrier {writing = true}
                carrier:carry(dataset, values)
                carrier:finish()
            end
            local part = assert(io.open(file.part_path, "r+b"))
            part:seek("end", -100) -- the last row of the last frame
            part:write("damage")
            part:close()
            assert.matches("differ from what was written", (helper.failure(file.finish, file)))
            assert.same({}, files.list(folder))
        end)

        test("reports a file that is cut off meanwhile, drops the rest and stops its threads",
            function()
            local path = folder .. "/cut.h5"
            do
                local values <close> = mb.zeros({64, 64, 512}, {dtype = "u16"})
                local file <close> = mb.h5.create(path)
                file:write("/data", values)
                file:finish()
            end
            local file <close> = assert(mb.h5.open(path))
            local dataset <close> = file:dataset("/data")
            local first <close> = mb.zeros({1, 64, 512}, {dtype = "u16", device = device})
            do -- whatever else starts threads has done so
                local carrier <close> = open_carrier()
                carrier:carry(dataset, first, {1, 1})
                carrier:finish()
            end
            local threads = threads_now()
            do
                local carrier <close> = open_carrier()
                assert.equal(0, threads_since(threads)) -- the first transfer starts the workers
                carrier:carry(dataset, first, {1, 1})
                assert.equal(3, threads_since(threads))
                carrier:wait()
                assert(os.execute(("truncate -s 1000000 '%s'"):format(path)))
                local all <close> = mb.zeros({64, 64, 512}, {dtype = "u16", device = device})
                carrier:carry(dataset, all)
                local text, err = helper.failure(carrier.wait, carrier)
                assert.equal("io", err.code)
                assert.matches("ends early", text)
                assert.matches("ends early",
                    (helper.failure(carrier.carry, carrier, dataset, first, {1, 1})))
            end
            assert.equal(0, threads_left(threads))
        end)

        test("reports a full disk, and the file does not get its name", function()
            local disk = files.small_disk(folder, "8m")
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local ok, err = pcall(function()
                local file <close> = mb.h5.create(disk .. "/v.h5")
                -- takes no space beforehand
                local dataset = file:create_dataset("/data", {shape = {6, 512, 512}, deflate = 1})
                local values <close> = mb.random({6, 512, 512}, {device = device})
                local wide <close> = mb.random({6, 512, 512}, {device = device, seed = 2})
                -- pieces are whole chunks
                local carrier <close> = open_carrier {writing = true, pinned = "8Mi"}
                carrier:carry(dataset, values)
                carrier:finish()
                local filler = assert(io.open(disk .. "/filler", "wb"))
                filler:write(("x"):rep(8 << 20))
                filler:close()
                carrier:carry(dataset, wide)
                carrier:finish()
                file:finish()
            end)
            os.remove(disk .. "/filler")
            local left = files.list(disk)
            files.unmount(disk)
            assert.is_false(ok)
            assert.equal("io", err.code)
            assert.same({}, left)
        end)

        test("reports a disk that fills up under a volume in several files, and leaves nothing of it", function()
            local disk = files.small_disk(folder, "12m")
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local ok, err = pcall(function()
                local result <close> = mb.result.create(disk .. "/v.h5",
                    {shape = {6, 512, 512}, slices_per_file = 2})
                local slices <close> = mb.random({6, 512, 512}, {device = device})
                local carrier <close> = open_carrier {writing = true, pinned = "4Mi"}
                local first <close> = slices:view({1, 2})
                result:carry(carrier, first, 1)
                carrier:finish()
                local filler = assert(io.open(disk .. "/filler", "wb"))
                filler:write(("x"):rep(12 << 20))
                filler:close()
                local rest <close> = slices:view({3, 6})
                result:carry(carrier, rest, 3)
                carrier:finish()
                result:finish()
            end)
            os.remove(disk .. "/filler")
            local left = files.list(disk)
            files.unmount(disk)
            assert.is_false(ok)
            assert.equal("io", err.code)
            assert.matches("full", tostring(err))
            assert.same({}, left)
        end)

        test("stops when it is cancelled", function()
            local path = make("data.h5")
            local file <close> = assert(mb.h5.open(path))
            local dataset <close> = file:dataset("/data")
            local threads = threads_now()
            local ok, err = mb.system.call(function()
                local carrier <close> = open_carrier()
                local a <close> = mb.zeros({FRAMES, ROWS, COLS}, {dtype = "u16", device = device})
                mb.system.cancel(true)
                carrier:carry(dataset, a)
                carrier:wait()
            end)
            mb.system.cancel(false)
            assert.is_false(ok)
            assert.equal("cancelled", type(err) == "table" and err.code or tostring(err))
            assert.equal(0, threads_left(threads))
        end)

        test("counts its pinned memory, within a limit", function()
            local d = mb.device(device)
            local live, _, limit = d:pinned()
            local carrier = open_carrier {threads = 2, pinned = "1Mi"}
            assert.equal(live + (1 << 20), (d:pinned()))
            assert.equal(1 << 20, core.carrier.plan {threads = 2, pinned = "1Mi"})
            assert.equal(1 << 20, carrier:stats().pinned)
            carrier:close()
            carrier:close()
            assert.equal(live, (d:pinned()))
            assert.matches("closed", (helper.failure(carrier.wait, carrier)))
            d:pinned(live + 65536)
            local text, err = helper.failure(open_carrier)
            d:pinned(limit)
            assert.equal("budget", err.code)
            assert.matches("pinned", text)
            assert.matches("too few for 3 threads",
                (helper.failure(open_carrier, {pinned = 65536})))
            assert.matches("threads", (helper.failure(open_carrier, {threads = 0})))
        end)

        test("rejects what does not fit", function()
            local path = make("data.h5")
            local file <close> = assert(mb.h5.open(path))
            local dataset <close> = file:dataset("/data")
            local carrier <close> = open_carrier()
            local small <close> = mb.zeros({2, ROWS, COLS}, {dtype = "u16", device = device})
            assert.matches("elements", (helper.failure(carrier.carry, carrier, dataset, small)))
            local flipped <close> = small:permute(2, 1, 3)
            assert.matches("contiguous",
                (helper.failure(carrier.carry, carrier, dataset, flipped, {1, 2})))
            assert.matches("range",
                (helper.failure(carrier.carry, carrier, dataset, small, {13, 14})))
            local writer <close> = open_carrier {writing = true}
            assert.matches("reading only",
                (helper.failure(writer.carry, writer, dataset, small, {1, 2})))
        end)
    end)
end)
