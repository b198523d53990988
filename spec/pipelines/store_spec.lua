-- Stores between sections: what they take is what their plan says, and what is written along one
-- axis is read along another, to the bit, in memory and in a file.

local core = require "moonbeam.core"
local disk_space = require "moonbeam.pipeline.disk_space"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local store = require "moonbeam.pipeline.store"

local ANGLES, ROWS, COLS = 13, 24, 40
local BYTES = ANGLES * ROWS * COLS * 4

helper.each_device(function(device, test)
    describe("a store on " .. device, function()
        local folder
        before_each(function()
            folder = files.folder()
        end)
        after_each(function()
            files.remove(folder)
        end)

        -- Writes `values` in blocks along `axis`, and gives the store.
        local function written(values, options, axis, count)
            local made = store.open(options)
            local carrier <close> = core.carrier.open {device = device, writing = true, threads = 3,
                pinned = "1Mi"}
            for first = 1, values.shape[axis], count do
                local last = math.min(first + count - 1, values.shape[axis])
                local ranges = {mb.all, mb.all, mb.all}
                ranges[axis] = {first, last}
                local view <close> = values:view(table.unpack(ranges))
                local block <close> = view:to(device)
                made:write(carrier, block, first, last, axis)
            end
            carrier:finish()
            assert.equal(values.bytes, made.written)
            return made
        end

        local places = {
            memory = {host_budget = "1Mi"},
            file = {host_budget = BYTES - 1},
            pinned = {host_budget = "1Mi", pinned = device},
        }
        for place, options in pairs(places) do
            test("gives back what it was given, in " .. place .. " along any axis", function()
                local values <close> = mb.random({ANGLES, ROWS, COLS},
                    {dtype = "f32", low = -1, high = 1, seed = 3, device = "host"})
                options.shape, options.scratch = {ANGLES, ROWS, COLS}, folder
                for axis = 1, 3 do
                    local made <close> = written(values, options, axis, 5)
                    assert.equal(place == "file" and "file" or "memory", made.place)
                    local reader <close> = core.carrier.open {device = device, threads = 3,
                        pinned = "1Mi"}
                    for _, ranges in ipairs {{}, {mb.all, {3, 9}}, {{2, 11}},
                        {{13, 13}, {24, 24}}, {mb.all, mb.all, {7, 30}}, {{4, 5}, {1, 2}, {1, 1}}} do
                        local view <close> = values:view(ranges[1] or mb.all, ranges[2] or mb.all,
                            ranges[3] or mb.all)
                        local got <close> = mb.full(view.shape, 7, {device = device})
                        made:read(reader, got, ranges)
                        reader:wait()
                        assert.same(view:to_table(), got:to_table())
                    end
                end
            end)
        end
    end)
end)

describe("a store", function()
    local folder
    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    it("takes what its plan says", function()
        for _, shape in ipairs {{1}, {3, 5}, {ANGLES, ROWS, COLS}} do
            for _, dtype in ipairs {"u8", "u16", "f32"} do
                local plan = store.plan {shape = shape, dtype = dtype, host_budget = "1Mi"}
                mb.collect()
                local scope <close> = mb.pool.scope("host")
                local made <close> = store.open(plan)
                assert.equal(plan.host_bytes, (scope:finish()))
                assert.equal(plan.bytes, made.array.bytes)
                assert.equal(0, plan.disk_bytes)
                local dry = mb.plan.peak(function()
                    local planned <close> = store.open(plan)
                    assert.equal("memory", planned.place)
                end, "host")
                assert.equal(plan.host_bytes, dry.peak)
            end
        end
    end)

    it("takes pinned memory where it should", function()
        local plan = store.plan {shape = {1000, 33}, host_budget = "1Mi", pinned = "host"}
        local before = mb.device("host"):pinned()
        local made <close> = store.open(plan)
        assert.equal(plan.pinned_bytes, mb.device("host"):pinned() - before)
        assert.equal(0, plan.host_bytes)
        assert.is_true(made.array.bytes == plan.bytes)
    end)

    it("takes a file of its size and no name, and leaves nothing", function()
        local plan = store.plan {shape = {ANGLES, ROWS, COLS}, host_budget = 0, scratch = folder}
        assert.equal(BYTES, plan.disk_bytes)
        assert.equal(0, plan.host_bytes + plan.pinned_bytes)
        local before = files.open_descriptors()
        mb.collect()
        local scope <close> = mb.pool.scope("host")
        do
            local made <close> = store.open(plan)
            assert.equal(BYTES, made.file:bytes())
            assert.equal(before + 1, files.open_descriptors())
            assert.same({}, files.list(folder))
        end
        assert.equal(0, (scope:finish()))
        assert.equal(before, files.open_descriptors())
        assert.equal(0, mb.plan.peak(function()
            local planned <close> = store.open(plan)
            local array <close> = mb.empty({2, ROWS, COLS})
            planned:write(nil, array, 1, 2)
        end, "host").live)
        assert.same({}, files.list(folder))
    end)

    it("goes with a killed process", function()
        files.run_script(folder, ([[
            local mb = require "moonbeam"
            local store = require "moonbeam.pipeline.store"
            local made = store.open {shape = {100, 100}, host_budget = 0, scratch = "%s"}
            os.execute("kill -9 " .. mb.system.pid())]]):format(folder))
        assert.same({"script.lua"}, files.list(folder))
    end)

    it("is closed while a carrier is at it", function()
        local made = store.open {shape = {4, 300, 300}, host_budget = 0, scratch = folder}
        local before = files.open_descriptors()
        local array <close> = mb.full({4, 300, 300}, 3, {device = "host"})
        do
            local carrier <close> = core.carrier.open {device = "host", writing = true,
                threads = 2, pinned = "1Mi"}
            made:write(carrier, array, 1, 4)
            made:close()
            carrier:finish()
            assert.equal(array.bytes, carrier:stats().bytes)
        end
        assert.equal(before - 1, files.open_descriptors())
        assert.matches("has been closed", (helper.failure(made.read, made, nil, array)))
    end)

    it("is read and written without a carrier", function()
        for _, budget in ipairs {"1Mi", 0} do
            local made <close> = store.open {shape = {3, 4}, dtype = "u16", host_budget = budget,
                scratch = folder}
            local values <close> = mb.arange(1, 12, {dtype = "u16", device = "host"})
            local block <close> = values:reshape(3, 4)
            made:write(nil, block, 1, 3)
            local got <close> = mb.empty({3, 2}, {dtype = "u16", device = "host"})
            made:read(nil, got, {mb.all, {2, 3}})
            assert.same({{2, 3}, {6, 7}, {10, 11}}, got:to_table())
        end
    end)

    it("says what is wrong", function()
        local function message(options)
            return (helper.failure(store.plan, options))
        end
        assert.matches("one to three extents", message {})
        assert.matches("extent 2 of shape is 0", message {shape = {2, 0}})
        assert.matches("did you mean 'scratch'", message {shape = {2}, scrath = "/"})
        assert.matches("give more by the option host_budget, or a folder for scratch files by "
            .. "the option scratch", message {shape = {1000}, host_budget = 10})
        assert.matches("No such file", message {shape = {1000}, host_budget = 10,
            scratch = folder .. "/none"})
        if mb.system.space("/dev/shm") and mb.system.space("/dev/shm").memory then
            assert.matches("'/dev/shm' is itself in memory", message {shape = {1000},
                host_budget = 10, scratch = "/dev/shm"})
        end
        local made <close> = store.open {shape = {3, 4}, host_budget = "1Mi"}
        local array <close> = mb.zeros({3, 3}, {device = "host"})
        assert.matches("the array is f32 3 x 3; this part of the store is f32 3 x 2",
            (helper.failure(made.read, made, nil, array, {mb.all, {1, 2}})))
        assert.matches("range 2 is {2, 5}; the store has 1 to 4",
            (helper.failure(made.write, made, nil, array, 2, 5, 2)))
    end)

    it("finds a full disk before it begins", function()
        local disk = files.small_disk(folder, "1m")
        if not disk then
            pending "no file system can be mounted here"
            return
        end
        local _ <close> = setmetatable({}, {__close = function()
            files.unmount(disk)
        end})
        local list = {{folder = disk, bytes = 700 << 10, what = "a"},
            {folder = disk, bytes = 500 << 10, what = "the result"}}
        assert.matches("needed: 1.17 MiB for a %(700.00 KiB%), the result %(500.00 KiB%)",
            (helper.failure(disk_space.check, list)))
        list[2].folder = folder
        disk_space.check(list)
        local plan = {place = "file", shape = {1 << 20}, dtype = "f32", disk_bytes = 4 << 20,
            scratch = disk, what = "it"}
        store.check_disks({[3] = {place = "memory"}}, {list[1]})
        assert.matches("needed: 4.68 MiB for a %(700.00 KiB%), it %(4.00 MiB%)",
            (helper.failure(store.check_disks, {[3] = plan}, {list[1]})))
        mb.dry_run(store.check_disks, {[3] = plan}) -- nothing will be written
        assert.matches("no room for the 4194304 bytes", (helper.failure(store.open, plan)))
    end)

    it("is counted with the result, before a pipeline begins", function()
        local disk = files.small_disk(folder, "1m")
        if not disk then
            pending "no file system can be mounted here"
            return
        end
        local _ <close> = setmetatable({}, {__close = function()
            files.unmount(disk)
        end})
        local raw <close> = mb.ones({24, 40, 90}, {device = "host"})
        local scan = mb.scan.of_arrays(raw, mb.tomo.angles(24))
        local seen = 0
        local pipeline = mb.pipeline(scan, {{"fbp", center = 44.5}}, {input = "line integrals",
            quiet = true})
        local text, err = helper.failure(pipeline.run, pipeline, {output = disk .. "/x.h5",
            each = function()
                seen = seen + 1
            end})
        assert.equal("io", err.code)
        assert.matches("has 1.00 MiB free; needed: 1.24 MiB for the result '.*/x.h5'", text)
        assert.equal(0, seen)
        assert.same({}, files.list(disk))
    end)
end)
