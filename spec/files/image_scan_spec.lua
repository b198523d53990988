-- Scans whose frames are images, and flats and darks in files of their own: the same bits as HDF5.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"

describe("a scan of images", function()
    local folder, program

    setup(function()
        folder = files.folder()
        program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        local output, ok = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 "
            .. "--angles 30 -d host -q"):format(program, folder))
        assert(ok, output)
        local scan <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        mb.system.mkdir(folder .. "/frames")
        local all <close> = scan:projections(mb.all, {device = "host"})
        for i = 1, scan.n_angles do
            local page <close> = all:view(i)
            mb.tiff.write(("%s/frames/p_%d.tif"):format(folder, i), page)
        end
        local flats <close> = scan:flats(mb.all, {device = "host"})
        local darks <close> = scan:darks(mb.all, {device = "host"})
        mb.tiff.write(folder .. "/flats.tif", flats)
        mb.tiff.write(folder .. "/darks.tif", darks)
        local frames <close> = mb.result.create(folder .. "/frames.zarr", {shape = all.shape,
            dtype = all.dtype})
        frames:write(all, 1)
        frames:finish()
        local lines = {"# radians"}
        for i, angle in ipairs(scan.angles) do
            lines[i + 1] = ("%.17g"):format(angle)
        end
        files.write(folder .. "/angles.txt", table.concat(lines, "\n"))
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function reconstruct(scan, options)
        local output, ok = files.run(("cd '%s' && '%s' reconstruct %s -o volume.h5 --overwrite "
            .. "-d host -q -c 11.5 %s"):format(folder, program, scan, options))
        if not ok then
            return nil, output
        end
        local volume <close> = mb.images.read(folder .. "/volume.h5", "host")
        return volume:to_string()
    end

    -- Pixel sizes are those of HDF5 alone.
    local REST <const> = "--pixel-size 1 "

    it("gives the bits of HDF5: a folder, a pattern, Zarr; flats and darks beside them", function()
        local expected = assert(reconstruct("scan.h5", REST))
        for _, name in ipairs {"frames", "'frames/p_*.tif'", "frames.zarr"} do
            local bits = assert(reconstruct(name, REST .. "--flats flats.tif --darks darks.tif "
                .. "--angles-path angles.txt --angle-unit rad"))
            assert(expected == bits, name)
        end
        assert(expected == assert(reconstruct("scan.h5", REST
            .. "--flats flats.tif --darks darks.tif")), "HDF5 with flats in TIFF")
        assert(expected == assert(reconstruct("frames", REST .. "--flats "
            .. "scan.h5:/exchange/data_white --darks scan.h5:/exchange/data_dark "
            .. "--angles-path scan.h5:/exchange/theta --angle-unit deg")), "flats in HDF5")
    end)

    it("takes doubles, which become f32 where they are read", function()
        local scan <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        for _, what in ipairs {"projections", "flats", "darks"} do
            local stored <close> = scan[what](scan, mb.all, {device = "host"})
            local wide <close> = stored:cast "f64"
            mb.npy.write(("%s/wide_%s.npy"):format(folder, what), wide)
        end
        assert(assert(reconstruct("scan.h5", REST)) == assert(reconstruct("wide_projections.npy",
            REST .. "--flats wide_flats.npy --darks wide_darks.npy --angles-path angles.txt "
            .. "--angle-unit rad")))
    end)

    -- A scan of images of the folder.
    local function opened(name, flats)
        return assert(mb.scan.open(folder .. "/" .. name, {angles = {0, 179}, angle_unit = "deg",
            flats_file = flats and folder .. "/" .. flats}))
    end

    it("stays in its files: the parts that are asked for are read, whatever they are", function()
        local host = mb.device "host"
        local before = mb.pool.stats(host).live
        local whole <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        local all <close> = whole:projections(mb.all, {device = host})
        for _, name in ipairs {"frames", "frames.zarr"} do
            local scan = opened(name, "flats.tif")
            assert.equal(30, scan.n_angles)
            assert.near(math.rad(179), scan.angles[30], 1e-12)
            assert.equal(0, scan.n_darks)
            assert.equal(before + mb.pool.round(all.bytes), mb.pool.stats(host).live)
            for _, case in ipairs {{{1, 30}, {1, 6}}, {{3, 3}, {2, 4}}, {{4, 20}, 3},
                {{2, 28, 3}, {1, 6}}, {{30, 1, -1}, {6, 2, -2}}, {{5, 6}, {1, 5, 2}}} do
                local angles, rows = table.unpack(case)
                local expected <close> = all:view(angles, rows)
                for _, device in ipairs {"host", "host:1"} do
                    local got <close> = scan:projections(rows, {angles = angles, device = device})
                    assert.equal(device, got.device.id)
                    assert.same(expected.shape, got.shape)
                    local dense <close> = expected:copy()
                    assert(dense:to_string() == got:to_string(), name)
                end
            end
            assert.matches("30 projections of 6 rows x 24 columns, u16, in ", scan:describe(), 1,
                true)
            scan:close()
        end
    end)

    it("may be larger than the memory, which is what was planned", function()
        local raw <close> = mb.random({60, 40, 64}, {seed = 2, low = 100, high = 900,
            dtype = "u16"})
        mb.system.mkdir(folder .. "/large")
        for i = 1, 60 do
            local page <close> = raw:view(i)
            mb.tiff.write(("%s/large/p_%d.tif"):format(folder, i), page)
        end
        mb.tiff.write(folder .. "/large.tif", raw)
        mb.npy.write(folder .. "/large.npy", raw)
        local flats <close> = mb.full({2, 40, 64}, 1000, {dtype = "u16"})
        mb.tiff.write(folder .. "/large_flats.tif", flats)
        local arrays = mb.scan.of_arrays(raw, mb.tomo.angles(60), {flats = flats})
        local function run(scan, device)
            local recipe = {"flat_field", "minus_log", {"fbp", center = 31.5}}
            local job = mb.pipeline(scan, recipe, {devices = device, block = 4, quiet = true,
                pinned = "1M"})
            local out = {}
            job:run(function(block)
                out[#out + 1] = block:to_string()
            end)
            return table.concat(out)
        end
        local expected = run(arrays, "host:1")
        for _, name in ipairs {"large", "large.tif", "large.npy"} do
            local scan <close> = assert(mb.scan.open(folder .. "/" .. name, {
                angles = mb.tomo.angles(60), angle_unit = "rad",
                flats_file = folder .. "/large_flats.tif"}))
            local device = mb.device("host:1")
            local budget = device:budget()
            local _ <close> = setmetatable({}, {__close = function() device:budget(budget) end})
            device:budget(mb.pool.stats(device).live + raw.bytes - 4096)
            assert(run(scan, device) == expected, name)
        end
    end)

    it("beside HDF5 flats and darks stay in their files, and plans count what a block reads", function()
        local live = mb.pool.stats("host").live
        local scan <close> = assert(mb.scan.open(folder .. "/scan.h5", {
            flats_file = folder .. "/flats.tif", darks_file = folder .. "/darks.tif"}))
        assert.equal(live, mb.pool.stats("host").live)
        local plain <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        for _, what in ipairs {"flats", "darks"} do
            for _, rows in ipairs {{2, 3}, {1, -1}, {3, 3}} do
                local got <close> = scan[what](scan, rows, {dtype = "f32"})
                local want <close> = plain[what](plain, rows, {dtype = "f32"})
                assert.same(want.shape, got.shape)
                assert.equal(want:to_string(), got:to_string())
            end
        end
        for _, device in ipairs {"host", "host:1", "host,host:1"} do
            local text, ok = files.run(("'%s' scripts/reconstruct.lua %s/scan.h5 -o %s/m.h5 "
                .. "--overwrite --flats %s/flats.tif --darks %s/darks.tif --center 3 --chunk 2 "
                .. "--device %s"):format(mb.system.program(), folder, folder, folder, folder,
                device))
            assert.is_true(ok, text)
            local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
            assert.equal(predicted, measured, text)
        end
    end)

    it("is decoded once where it is compressed and fits, and else for each block", function()
        local encoder = require "spec.support.tiff_encoder"
        mb.system.mkdir(folder .. "/packed")
        for i = 1, 6 do -- one file needs more memory for decoding than the first
            files.write(("%s/packed/p_%d.tif"):format(folder, i), encoder.encode(
                encoder.sample(1, 20, 21, "u16"), {dtype = "u16", rows = i == 4 and 20 or 5,
                method = i ~= 2 and "lzw" or nil}))
        end
        local host = mb.device "host"
        local before, budget = mb.pool.stats(host).live, host:budget()
        local _ <close> = setmetatable({}, {__close = function() host:budget(budget) end})
        local expected
        do
            local scan <close> = opened("packed")
            assert.equal(before + mb.pool.round(6 * 20 * 21 * 2), mb.pool.stats(host).live)
            local all <close> = scan:projections(nil, {device = host})
            expected = all:to_string()
        end
        assert.equal(before, mb.pool.stats(host).live)
        host:budget(before + 2 * 6 * 20 * 21 * 2 - 512)
        local scan <close> = opened("packed")
        assert.equal(before, mb.pool.stats(host).live)
        assert.matches("the frames are compressed, and 4.922 KiB of them do not fit in half of the "
            .. "9.344 KiB that the host has left", table.concat(scan.warnings, "\n"), 1, true)
        host:budget(budget)
        for _, angles in ipairs {{1, 6}, {1, 1}, {2, 2}, {4, 4}} do
            local function read(device)
                scan:projections({3, 12}, {device = device, angles = angles}):release()
            end
            assert.equal(mb.plan.peak(read, host).peak, mb.pool.peak(read, "host", host))
        end
        local all <close> = scan:projections(nil, {device = host})
        assert(expected == all:to_string())
    end)

    it("goes on after an interruption", function()
        local text = ([[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local scan <close> = assert(mb.scan.open("%s/frames", {angles = {0, 174}, angle_unit = "deg",
    flats_file = "%s/flats.tif"}))
local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 11.5}},
    {block = 2, quiet = true})
STEP
local before = mb.debug.steps()
local done = p:run {output = "%s/out.tif", resume = core.unfinished.exists "%s/out.tif"}
print(mb.debug.steps() - before)]]):format(folder, folder, folder, folder)
        local function run(step)
            local output, _, status = files.run_script(folder, (text:gsub("STEP", step)))
            return output, status
        end
        local steps = assert(tonumber((run "")))
        local expected = mb.images.read(folder .. "/out.tif", "host")
        local bits = expected:to_string()
        expected:release()
        os.remove(folder .. "/out.tif")
        local _, status = run(("mb.debug.fail_step(%d)"):format(steps // 2))
        assert.is_true(status == 137 or status == 9)
        assert.is_true(core.unfinished.exists(folder .. "/out.tif"))
        assert(tonumber((run "")))
        local again <close> = mb.images.read(folder .. "/out.tif", "host")
        assert(bits == again:to_string())
    end)

    it("is refused in one line", function()
        local function refused(name, options, problem)
            local scan, err = mb.scan.open(folder .. "/" .. name, options)
            assert.is_nil(scan)
            assert.matches(problem, tostring(err), 1, true)
            assert.is_nil(tostring(err):find "\n")
        end
        local angles = {angles = {0, 179}, angle_unit = "deg"}
        refused("frames", {}, "is a stack of images, which has no angles: give the option angles")
        refused("frames", {angles = {0, 179}}, "need the option angle_unit")
        refused("frames", {angles = {0, 1, 2}, angle_unit = "deg"},
            "3 angles were given for 30 projections")
        refused("frames/p_1.tif", angles, "is one image of")
        refused("nothing*.tif", angles, "no file has such a name")
        for name, value in pairs {data = "/entry/data", entry = "/entry"} do
            refused("frames", {[name] = value, angles = {0, 179}, angle_unit = "deg"},
                "the option " .. name .. " is for scans in HDF5")
        end
        local page <close> = mb.full({3, 5}, 1, {dtype = "u16", device = "host"})
        mb.tiff.write(folder .. "/small.tif", page, {overwrite = true})
        refused("frames", {angles = {0, 179}, angle_unit = "deg",
            flats_file = folder .. "/small.tif"}, "flats have shape 1 x 3 x 5")
        refused("scan.h5", {darks_file = folder .. "/small.tif"}, "have 3 x 5 pixels")
        files.write(folder .. "/words.txt", "1 2 three")
        refused("frames", {angles = folder .. "/words.txt", angle_unit = "deg"},
            "words.txt', line 1: 'three' is not a number")
        local _, output = reconstruct("scan.h5", "--flats flats.tif --no-log")
        assert.matches("--flats cannot be used with --no-log", output, 1, true)
    end)
end)
