-- Images as OME-Zarr that are written block by block, and deconvolutions from Zarr into Zarr.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local shards = require "moonbeam.zarr.shards"

local folder

local function path(name)
    return folder .. "/" .. name
end

local run, must = helper.programs_in(function() return folder end)

local function refused(format, ...)
    local text, status = run(format, ...)
    assert(status ~= 0, text)
    return text
end

describe("images as OME-Zarr", function()
    local limits

    setup(function()
        folder = files.folder()
        limits = {band = shards.limits.band, shard = shards.limits.shard}
        shards.limits.band, shards.limits.shard = 400, 2000
        local image <close> = mb.random({10, 20, 22}, {seed = 4, dtype = "u16", high = 900})
        local psf <close> = mb.psf_gaussian({5, 7, 7}, {1, 1.5, 1.5})
        mb.tiff.write(path "image.tif", image, {spacing = 0.3, unit = "micron"})
        mb.npy.write(path "psf.npy", psf)
    end)

    teardown(function()
        shards.limits.band, shards.limits.shard = limits.band, limits.shard
        files.remove(folder)
    end)

    it("hold what is written in blocks, in any order, across shards and bands", function()
        for _, dtype in ipairs {"u8", "u16", "f32"} do
            local want <close> = mb.random({7, 20, 22}, {seed = 5, dtype = dtype, high = 200})
            local out <close> = mb.images.create(path "blocks.zarr", {shape = want.shape,
                dtype = dtype, overwrite = dtype ~= "u8", voxel = {pixel = 1e-7, step = 3e-7}})
            local volume = out:volume()
            assert.same({7, 20, 22}, volume.shape)
            for z = 5, 0, -5 do
                for _, y in ipairs {12, 0} do
                    for _, x in ipairs {0, 9} do
                        local part <close> = want:view({z + 1, math.min(7, z + 5)},
                            {y + 1, math.min(20, y + 12)}, {x + 1, x == 0 and 9 or 22})
                        volume:write({z, y, x}, part)
                    end
                end
            end
            local again <close> = volume:read({2, 3, 4}, {4, 9, 10})
            local part <close> = want:view({3, 6}, {4, 12}, {5, 14})
            helper.assert_close(part, again, 0)
            assert.is_nil(core.system.stat(path "blocks.zarr/0/c/3/0/0") and dtype == "u8" or nil)
            out:finish()
            local got <close>, meta = mb.images.read(path "blocks.zarr")
            helper.assert_close(want, got, 0)
            assert.is_true(#files.list(path "blocks.zarr/0/c") > 1)
            assert.near(1e-7, meta.voxel.pixel, 1e-15)
            assert.near(3e-7, meta.voxel.step, 1e-15)
            assert.is_nil(core.system.stat(path "blocks.zarr.unfinished"))
        end
    end)

    it("take blocks from carriers, and give them to carriers", function()
        local want <close> = mb.random({7, 20, 22}, {seed = 6, dtype = "u16", high = 900})
        local out <close> = mb.images.create(path "carried.zarr", {shape = want.shape,
            dtype = "u16"})
        local volume = out:volume()
        assert.is_true(volume:carries(mb.device "host"))
        do
            local carrier <close> = core.carrier.open {device = "host", writing = true, threads = 2,
                pinned = 4 << 20}
            for z = 0, 6, 3 do
                local view <close> = want:view {z + 1, math.min(7, z + 3)}
                local dense <close> = view:copy()
                volume:carry(carrier, dense, {z, 0, 0})
                carrier:wait()
            end
            carrier:finish()
        end
        do
            local carrier <close> = core.carrier.open {device = "host", writing = false,
                threads = 2, pinned = 4 << 20}
            local block <close> = volume:fetch(carrier, {1, 2, 3}, {5, 8, 9}, mb.device "host")
            carrier:wait()
            local part <close> = want:view({2, 6}, {3, 10}, {4, 12})
            helper.assert_close(part, block, 0)
            carrier:finish()
        end
        out:finish()
        local got <close> = mb.images.read(path "carried.zarr")
        helper.assert_close(want, got, 0)
    end)

    it("leave nothing without finish, and refuse what OME-Zarr does not hold", function()
        local out = mb.images.create(path "left.zarr", {shape = {3, 4, 5}, dtype = "f32"})
        out:close()
        for _, name in ipairs(files.list(folder)) do
            assert.is_nil(name:find "left")
        end
        local function fails(pattern, options)
            assert.matches(pattern, (helper.failure(mb.images.create, path "no.zarr", options)), 1,
                true)
        end
        fails("stacks (z, y, x), and this image has 2 axes", {shape = {4, 5}, dtype = "f32"})
        fails("results are u8, u16, f16 or f32", {shape = {3, 4, 5}, dtype = "f64"})
        fails("stacks (z, y, x), and this image has 2 axes", {shape = {4, 5}, dtype = "f32",
            channels = 2})
    end)

    it("are what deconvolve reads and writes, with the bytes that it predicts", function()
        local command = "scripts/deconvolve.lua FOLDER/image.tif FOLDER/psf.npy --iterations 3 "
            .. "-d host --pixel 100 --step 300 --overwrite "
        for _, more in ipairs {"", "--tiles exact --tile 5,10,22", "--tiles blended --tile 8,10,22",
            "-m landweber --output-dtype uint16"} do
            local text = must("--ledger %s -o FOLDER/o.zarr %s", command, more)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            must("%s -o FOLDER/o.npy %s", command, more)
            local got <close>, meta = mb.images.read(path "o.zarr")
            local want <close> = mb.npy.read(path "o.npy")
            helper.assert_close(want, got, 0)
            assert.near(1e-7, meta.voxel.pixel, 1e-12)
            assert.near(3e-7, meta.voxel.step, 1e-12)
        end
        -- Out of Zarr again: its voxels are known.
        local text = must("scripts/deconvolve.lua FOLDER/o.zarr FOLDER/psf.npy -o FOLDER/two.tif "
            .. "--iterations 2 -d host")
        assert.matches("voxel +pixel 100 nm, step 300 nm: [^\n]*o.zarr", text)
        local back <close> = mb.images.open(path "two.tif")
        assert.near(1e-7, back.meta.voxel.pixel, 1e-12)
        assert.near(3e-7, back.meta.voxel.step, 1e-12)
        local json = files.read(path "o.zarr/zarr.json")
        assert.matches('"title": ?"deconvolution"', json)
        assert.matches("already exists; choose another name, or --overwrite", refused(
            "scripts/deconvolve.lua FOLDER/image.tif FOLDER/psf.npy -o FOLDER/o.zarr -d host"), 1,
            true)
    end)

    it("go on after an interruption, with the same bits", function()
        local journals = require "moonbeam.tiled_deconv.tile_journal"
        local seconds = journals.SECONDS
        journals.SECONDS = 0
        local psf <close> = mb.npy.read(path "psf.npy")
        local function deconvolve(name, stop_at)
            local source <close> = mb.images.open(path "image.tif")
            local journal <close> = mb.tiled_deconv.journal(path(name), {
                inputs = {path "image.tif"}, resume = core.unfinished.exists(path(name))})
            local out <close> = mb.images.create(path(name), {shape = source.shape, dtype = "f32",
                overwrite = journal:may_replace(), inside = journal:folder()})
            local tiles = 0
            mb.tiled_deconv.richardson_lucy_volume(source, psf, out:volume(), {iterations = 3,
                tile = {5, 10, 22}, mode = "exact", journal = journal, on_tile = function()
                tiles = tiles + 1
                if tiles == stop_at then
                    error("stopped here", 0)
                end
            end})
            journal:finishing()
            out:finish()
            journal:finish()
        end
        deconvolve "whole.zarr"
        for _, stop_at in ipairs {3, 15, 20} do
            local name = ("cut%d.zarr"):format(stop_at)
            local ok, problem = pcall(deconvolve, name, stop_at)
            assert.is_true(not ok and tostring(problem):find "stopped here" ~= nil,
                tostring(problem))
            assert.is_nil(core.system.stat(path(name)))
            deconvolve(name)
            local want <close> = mb.images.read(path "whole.zarr")
            local got <close> = mb.images.read(path(name))
            helper.assert_close(want, got, 0)
            assert.is_nil(core.system.stat(path(name .. ".unfinished")))
        end
        journals.SECONDS = seconds
    end)
end)
