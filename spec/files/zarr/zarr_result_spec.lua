-- Results as OME-Zarr: the same protocol as HDF5 results, shards at known places, the pyramid, what
-- other readers see, interrupted runs.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"
local python = require "spec.support.python"
local shards = require "moonbeam.zarr.shards"

local SHAPE = {7, 33, 530}

describe("a result as OME-Zarr", function()
    local folder, path, values, limits

    before_each(function()
        folder = files.folder()
        path = folder .. "/volume.zarr"
        values = mb.random(SHAPE, {seed = 7, device = "host"})
        limits = {}
        for name, value in pairs(shards.limits) do
            limits[name] = value
        end
    end)
    after_each(function()
        for name, value in pairs(limits) do
            shards.limits[name] = value
        end
        values:release()
        files.remove(folder)
    end)

    local function create(options)
        options = options or {}
        options.shape = options.shape or SHAPE
        return mb.result.create(path, options)
    end

    -- Writes all slices, the first of them alone, the others by a carrier, across shards.
    local function fill(result)
        local first <close> = values:view(1)
        result:write(first, 1)
        local carrier = core.carrier.open {device = "host", writing = true, threads = 2,
            pinned = "1Mi"}
        for _, range in ipairs {{5, SHAPE[1]}, {2, 4}} do
            local part <close> = values:view(range)
            result:carry(carrier, part, range[1])
            carrier:wait()
        end
        carrier:finish()
        carrier:close()
    end

    local function small_shards()
        shards.limits.band, shards.limits.shard = 10 * 530 * 4, 3 * 33 * 530 * 4 + 40000
    end

    it("has CRC-32C as published", function()
        assert.equal(0xe3069283, shards.crc32c "123456789")
        assert.equal(0x8a9136aa, shards.crc32c(("\0"):rep(32)))
    end)

    it("has every row at its known place", function()
        small_shards()
        local result <close> = create()
        fill(result)
        local place = result:skeleton()
        assert.equal(3, #place) -- of 3, 3 and 1 slices
        assert.same({4, 6}, {place[2].first, place[2].last})
        result:finish()
        local bytes = files.read(path .. "/0/c/1/0/0")
        local pitch = 36 * 530 * 4 -- 4 bands of 9 rows
        assert.equal(3 * pitch + 12 * 16 + 4, #bytes)
        local slice <close> = values:view(5)
        assert.equal(slice:to_string(), bytes:sub(pitch + 1, pitch + 33 * 530 * 4))
        assert.equal(("\0"):rep(3 * 530 * 4), bytes:sub(pitch + 33 * 530 * 4 + 1, 2 * pitch))
        assert.same({"volume.zarr"}, files.list(folder))
    end)

    for _, dtype in ipairs {"f32", "u16", "u8", "f16"} do
        it("is what zarr-python reads, with its pyramid: " .. dtype, function()
            small_shards()
            local source <close> = mb.random(SHAPE, {seed = 3, device = "host", low = 0,
                high = 250})
            values:release()
            values = source:cast(dtype)
            local result <close> = create {dtype = dtype}
            fill(result)
            result:finish()
            mb.npy.write(folder .. "/v.npy", values)
            assert.equal("[(7, 33, 530), (4, 17, 265), (2, 9, 133)] True True\n", python.prints(
                {"zarr"}, ([[
import zarr, numpy as np
g = zarr.open_group("%s", mode="r")
level = np.load("%s/v.npy")
same = [np.array_equal(g["0"][:], level)]
for k in (1, 2):
    p = np.pad(g[str(k - 1)][:].astype(float), [(0, n %% 2) for n in level.shape], mode="edge")
    a, b, c = (n // 2 for n in p.shape)
    p = p.reshape(a, 2, b, 2, c, 2).mean((1, 3, 5))
    level = g[str(k)][:]
    same.append(np.array_equal(level, np.floor(p + 0.5)) if level.dtype.kind == "u"
        else np.abs(level - p).max() <= {2: 0.13, 4: 1e-4}[level.dtype.itemsize])
print([g[k].shape for k in sorted(g)], same[0], bool(all(same)))]]):format(path, folder)))
        end)
    end

    it("does not mix slices that are not rows", function()
        small_shards()
        local result <close> = create {pixel_size = 1.5e-6,
            axis = {name = "fbp.filter", values = {"a", "b", "c", "d", "e", "f", "g"}}}
        fill(result)
        result:finish()
        mb.npy.write(folder .. "/v.npy", values)
        assert.equal("[(7, 33, 530), (7, 17, 265), (7, 9, 133)] True ('fbp.filter', 'y', 'x') "
            .. "None [1.0, 3.0, 3.0] c\n", python.prints({"zarr", "ome_zarr_models"}, ([[
import zarr, numpy as np, ome_zarr_models
g = zarr.open_group("%s", mode="r")
m = ome_zarr_models.open_ome_zarr(g).attributes.ome.multiscales[0]
p = np.pad(np.load("%s/v.npy"), [(0, 0), (0, 1), (0, 0)], mode="edge")
p = p.reshape(7, 17, 2, 265, 2).mean((2, 4))
print([g[k].shape for k in sorted(g)], bool(np.abs(g["1"][:] - p).max() < 1e-4),
    g["1"].metadata.dimension_names, m.axes[0].type, m.datasets[1].coordinateTransformations[0].scale,
    g.attrs["moonbeam"]["axis"]["values"][2])]]):format(path, folder)))
        local read <close> = mb.images.read(path)
        assert.equal(values:to_string(), read:to_string())
    end)

    it("is valid for ome-zarr-models, with sizes and provenance", function()
        local result <close> = create {pixel_size = 1.5e-6, slice_distance = 2e-6, title = "tooth",
            parameters = {filter = "hann"}}
        fill(result)
        result:scaling(0.5, 1.0)
        result:provenance {measured = 77, curve = {1, 0 / 0}}
        result:finish()
        assert.equal("tooth [4.0, 3.0, 3.0] [1.0, 0.75, 0.75] micrometer hann [1, None] 0.5 True\n",
            python.prints({"zarr", "ome_zarr_models"}, ([[
import zarr, ome_zarr_models
g = zarr.open_group("%s", mode="r")
m = ome_zarr_models.open_ome_zarr(g).attributes.ome.multiscales[0]
scale, shift = m.datasets[1].coordinateTransformations
own = g.attrs["moonbeam"]
print(m.name, scale.scale, shift.translation, m.axes[0].unit, own["parameters"]["filter"],
    own["provenance"]["curve"], own["scaling"]["scale_factor"], "end_time" in own)]]):format(path)))
    end)

    it("is nothing unless it is complete", function()
        local result = create()
        local one <close> = values:view(1)
        result:write(one, 1)
        assert.has_error(function() result:finish() end)
        result:close()
        assert.same({}, files.list(folder))
    end)

    it("replaces a Zarr group if it may, and nothing else", function()
        local function refused(options, message)
            local ok, problem = pcall(create, options)
            assert.is_false(ok)
            assert.matches(message, tostring(problem), 1, true)
        end
        for _ = 1, 2 do
            local result <close> = create {overwrite = true}
            fill(result)
            result:finish()
        end
        assert.same({"volume.zarr"}, files.list(folder))
        refused({}, "already exists: choose another name, or give the option overwrite = true")
        refused({overwrite = true, dtype = "f64"}, "OME-Zarr results are u8, u16, f16 or f32")
        refused({overwrite = true, deflate = 3}, "deflate is for HDF5 files")
        path = folder .. "/mine.zarr"
        assert(mb.system.mkdir(path))
        files.write(path .. "/letter.txt", "dear")
        refused({overwrite = true}, "is not a Zarr group, so it is not replaced")
        path = folder .. "/file.zarr"
        files.write(path, "dear")
        refused({overwrite = true}, "is not a Zarr group, so it is not replaced")
        path = folder .. "/nowhere/volume.zarr"
        refused({}, "No such file or directory")
    end)

    it("tells how much disk it takes", function()
        small_shards()
        local bytes = mb.result.disk_bytes(path, SHAPE, "f32")
        local result <close> = create()
        fill(result)
        result:finish()
        local sum = 0
        for size in files.run(("find '%s' -path '*/c/*' -type f -printf '%%s\\n'"):format(path))
            :gmatch "%d+" do
            sum = sum + size
        end
        assert.equal(sum, bytes)
        assert.equal(7 * 33 * 530 * 4, mb.result.disk_bytes("x.h5", SHAPE, "f32"))
    end)

    describe("of a pipeline", function()
        local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local shards = require "moonbeam.zarr.shards"
shards.limits.band, shards.limits.shard = 1000, 7000
local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 11.5}},
    {block = 2, quiet = true})
local before = mb.debug.steps()
STEP
local done = p:run {output = "FOLDER/volume.EXTENSION", overwrite = OVERWRITE,
    resume = core.unfinished.exists "FOLDER/volume.EXTENSION"}
assert(done.complete or done.as_planned)
print(mb.debug.steps() - before)
]]

        local function run(extension, step, overwrite)
            local text = RUN:gsub("FOLDER", folder):gsub("EXTENSION", extension)
                :gsub("STEP", step or ""):gsub("OVERWRITE", tostring(overwrite or false))
            local output, _, status = files.run_script(folder, text)
            return output, status
        end

        local function volume_bytes()
            local parts = {}
            for k = 0, 1 do
                parts[k + 1] = files.read(("%s/0/c/%d/0/0"):format(path, k))
            end
            return table.concat(parts)
        end

        before_each(function()
            local output, ok = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 "
                .. "--angles 30 -d host -q"):format(os.getenv "MOONBEAM_BIN"
                or mb.system.program(), folder))
            assert(ok, output)
        end)

        for _, overwrite in ipairs {false, true} do
            it("goes on after a kill at any step" .. (overwrite and ", over another" or ""),
            function()
                local steps = assert(tonumber((run "zarr")))
                local expected, resumed = volume_bytes(), 0
                local places = overwrite and {7, steps - 4, steps - 2, steps, steps + 1}
                    or {2, steps // 3, steps // 2, steps - 6, steps}
                for _, n in ipairs(places) do
                    if not overwrite then
                        files.run(("rm -rf '%s'"):format(path))
                    end
                    files.run(("rm -rf '%s.unfinished'"):format(path))
                    local _, status = run("zarr", ("mb.debug.fail_step(%d)"):format(n), overwrite)
                    assert.is_true(status == 137 or status == 9, ("step %d"):format(n))
                    if mb.system.stat(path .. ".unfinished") or not mb.system.stat(path) then
                        resumed = resumed + (core.unfinished.exists(path) and 1 or 0)
                        local output = run("zarr", nil, overwrite)
                        assert(tonumber(output), ("step %d: %s"):format(n, output))
                    end
                    core.target.scavenge(path .. ".unfinished", "")
                    assert(expected == volume_bytes(), ("step %d"):format(n))
                    assert.is_table(mb.system.stat(path .. "/zarr.json"))
                    assert.equal("volume.zarr\n", files.run(
                        ("cd '%s' && ls -d volume*"):format(folder)), ("step %d"):format(n))
                end
                assert.is_true(resumed >= 1)
            end)
        end

        it("has the bits of HDF5", function()
            assert(tonumber((run "h5")))
            assert(tonumber((run "zarr")))
            local expected <close> = mb.images.read(folder .. "/volume.h5", "host")
            mb.npy.write(folder .. "/v.npy", expected)
            assert.equal("True\n", python.prints({"zarr"}, ([[
import zarr, numpy as np
print(np.array_equal(zarr.open_group("%s", mode="r")["0"][:], np.load("%s/v.npy")))]]):format(path,
                folder)))
        end)

        it("is removed with --discard, and by a disk that is too small", function()
            local _, status = run("zarr", "mb.debug.fail_step(9)")
            assert.is_true(status == 137 or status == 9)
            assert.is_true(core.unfinished.exists(path))
            local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
            local output, ok = files.run(("'%s' scripts/reconstruct.lua '%s/scan.h5' -o '%s' "
                .. "-d host -q -c 11.5 --discard"):format(program, folder, path))
            assert(ok, output)
            assert.equal("volume.zarr\n", files.run(("cd '%s' && ls -d volume*"):format(folder)))
        end)
    end)
end)
