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

    it("is known in memory, and is released when it is closed", function()
        local host = mb.device "host"
        local before = mb.pool.stats(host).live
        local scan = assert(mb.scan.open(folder .. "/frames", {angles = {0, 179},
            angle_unit = "deg", flats_file = folder .. "/flats.tif"}))
        assert.equal(30, scan.n_angles)
        assert.near(math.rad(179), scan.angles[30], 1e-12)
        assert.equal(0, scan.n_darks)
        assert.is_true(mb.pool.stats(host).live > before)
        scan:close()
        assert.equal(before, mb.pool.stats(host).live)
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
            "is not a list of angles: it has 'three'")
        local _, output = reconstruct("scan.h5", "--flats flats.tif --no-log")
        assert.matches("--flats cannot be used with --no-log", output, 1, true)
    end)
end)
