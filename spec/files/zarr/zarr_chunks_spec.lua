-- OME-Zarr results without shards, for HTTP servers that give whole files alone: each slice of each
-- level is a chunk and a file. What a process may have open, what commands say, interrupted runs.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local open_files = require "moonbeam.result.open_files"
local python = require "spec.support.python"
local read_json = require "moonbeam.internal.json_reader"

describe("an OME-Zarr result of chunks", function()
    local folder
    local run, must = helper.programs_in(function() return folder end)

    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    local function path(name)
        return folder .. "/" .. name
    end

    -- The files with voxels: their names, and the bytes of all.
    local function chunk_files(name)
        local list, bytes = {}, 0
        for size, each in files.run(("cd '%s' && find . -path '*/c/*' -type f -printf '%%s %%p\\n'"
            .. " | sort"):format(path(name))):gmatch "(%d+) %./(%S+)" do
            list[#list + 1], bytes = each, bytes + size
            list[each] = tonumber(size)
        end
        return list, bytes
    end

    -- All elements of all levels and volumes as zarr.json says where they are: whole files alone.
    local function check_files(name, lead)
        local count, from = 0, {}
        for level = 0, 9 do
            local text = core.system.stat(path(name) .. "/" .. level)
                and files.read(("%s/%d/zarr.json"):format(path(name), level))
            if not text then
                assert.is_true(level > 0)
                break
            end
            local facts = read_json(text)
            assert.equal(1, #facts.codecs)
            assert.equal("bytes", facts.codecs[1].name)
            local shape, chunk = facts.shape, facts.chunk_grid.configuration.chunk_shape
            local bytes = ({uint8 = 1, uint16 = 2, float16 = 2, float32 = 4})[facts.data_type]
            for axis, extent in ipairs(chunk) do
                bytes = bytes * extent
                assert.equal(axis > #shape - 2 and shape[axis] or 1, extent)
            end
            local keys = {("%d/c"):format(level)}
            for axis = 1, #shape do
                local longer = {}
                for _, key in ipairs(keys) do
                    for k = 0, shape[axis] // chunk[axis] - 1 do
                        longer[#longer + 1] = key .. "/" .. k
                    end
                end
                keys = longer
            end
            for _, key in ipairs(keys) do
                from[key] = bytes
            end
            count = count + #keys
            assert.equal(lead + 3, #shape)
        end
        local there = chunk_files(name)
        assert.equal(count, #there)
        for _, key in ipairs(there) do
            assert.equal(from[key], there[key], key)
        end
        return count
    end

    local function write(name, values, options)
        options.shape, options.dtype = values.shape, values.dtype
        local result <close> = mb.result.create(path(name), options)
        local carrier = core.carrier.open {device = "host", writing = true, threads = 2,
            pinned = "1Mi"}
        local first <close> = values:view(1)
        result:write(first, 1)
        local rest <close> = values:view {2, values.shape[1]}
        result:carry(carrier, rest, 2)
        carrier:finish()
        carrier:close()
        result:finish()
    end

    for _, case in ipairs {{"f32", {7, 33, 530}}, {"u16", {1, 300, 8}}, {"u8", {6, 258, 257}},
        {"f16", {5, 20, 513}}} do
        it("has a file for each slice, and the values of shards: " .. case[1], function()
            local dtype, shape = table.unpack(case)
            local source <close> = mb.random(shape, {seed = 3, device = "host", low = 0,
                high = 250})
            local values <close> = source:cast(dtype)
            write("shards.zarr", values, {pixel_size = 1e-6})
            write("chunks.zarr", values, {pixel_size = 1e-6, zarr_layout = "chunks"})
            local count = check_files("chunks.zarr", 0)
            local _, bytes = chunk_files "chunks.zarr"
            assert.equal(bytes, mb.result.disk_bytes("x.zarr", shape, dtype,
                {zarr_layout = "chunks"}))
            assert.is_true(count >= shape[1] + (shape[1] + 1) // 2)
            for level = 0, 1 do
                local one <close> = mb.images.read(("%s/%d"):format(path "shards.zarr", level))
                local other <close> = mb.images.read(("%s/%d"):format(path "chunks.zarr", level))
                assert.same(one.shape, other.shape)
                assert.is_true(one:to_string() == other:to_string(), level)
            end
            local back <close>, meta = mb.images.read(path "chunks.zarr")
            assert.is_true(values:to_string() == back:to_string())
            assert.near(1e-6, meta.voxel.pixel, 1e-15)
            local groups = {}
            for i, name in ipairs {"shards", "chunks"} do
                groups[i] = files.read(path(name .. ".zarr/zarr.json")):match '"ome":.*'
            end
            assert.equal(groups[1], groups[2])
        end)
    end

    it("of channels and times is what a server without ranges gives to zarr-python", function()
        local shape = {4, 260, 9}
        local all <close> = mb.random({24, 260, 9}, {seed = 2, dtype = "u16", high = 900})
        for _, kind in ipairs {"shards", "chunks"} do
            local out <close> = mb.images.create(path(kind .. ".zarr"), {shape = shape,
                dtype = "u16", channels = 2, frames = 3, zarr_layout = kind})
            for frame = 1, 3 do
                for channel = 1, 2 do
                    local at = ((frame - 1) * 2 + channel - 1) * 4
                    local values <close> = all:view {at + 1, at + 4}
                    mb.volumes.store(out:volume(channel, frame), values)
                end
            end
            out:finish()
        end
        assert.equal(6 * (4 + 2), check_files("chunks.zarr", 2))
        local back <close> = mb.images.read(path "chunks.zarr")
        assert.is_true(all:to_string() == back:to_string())
        assert.equal("200 (3, 2, 4, 260, 9) True True\n", python.prints({"zarr"}, ([==[
import functools, http.server, os, threading, urllib.request
import numpy as np, zarr
from zarr.core.buffer import default_buffer_prototype
root = "%s"
class quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=root))
threading.Thread(target=server.serve_forever, daemon=True).start()
got, seen = {}, set()
for folder, _, names in os.walk(root + "/chunks.zarr"):
    for name in names:
        key = os.path.relpath(os.path.join(folder, name), root)
        request = urllib.request.Request("http://127.0.0.1:%%d/%%s" %% (server.server_port, key),
            headers={"Range": "bytes=0-1"})
        with urllib.request.urlopen(request) as answer:
            seen.add(answer.status)
            got[key[len("chunks.zarr/"):]] = default_buffer_prototype().buffer.from_bytes(answer.read())
class whole(zarr.storage.MemoryStore):
    async def get(self, key, prototype, byte_range=None):
        assert byte_range is None, (key, byte_range)
        return await super().get(key, prototype)
a = zarr.open_group(whole(got), mode="r")
b = zarr.open_group(root + "/shards.zarr", mode="r")
print(*seen, a["0"].shape, *(np.array_equal(a[k][:], b[k][:]) for k in ("0", "1")))]==]):format(folder)))
    end)

    it("has more files than a process may have open, in blocks of any extents", function()
        files.write(path "many.lua", ([[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local values <close> = mb.random({600, 5, 270}, {seed = 1, dtype = "u16", high = 900})
for _, name in ipairs {"chunks", "shards"} do
    local out <close> = mb.images.create("%s/" .. name .. ".zarr", {shape = values.shape,
        dtype = "u16", zarr_layout = name})
    local volume = out:volume()
    local carrier = core.carrier.open {device = "host", writing = true, threads = 2,
        pinned = "8Mi"}
    for x = 0, 269, 90 do
        local view <close> = values:view(mb.all, mb.all, {x + 1, x + 90})
        local part <close> = volume:outgoing(view)
        volume:carry(carrier, part, {0, 0, x})
        carrier:wait()
    end
    carrier:finish()
    carrier:close()
    if name == "chunks" then
        print(#core.system.folder "/proc/self/fd")
    end
    out:finish()
end
]]):format(folder))
        local text, ok = files.run(("ulimit -n 256; '%s' '%s'"):format(helper.program,
            path "many.lua"))
        assert(ok, text)
        assert.is_true(tonumber(text) < open_files.limits.most + 30, text)
        assert.equal(600 + 300, check_files("chunks.zarr", 0))
        local a <close> = mb.images.read(path "chunks.zarr", "host")
        local b <close> = mb.images.read(path "shards.zarr", "host")
        local values <close> = mb.random({600, 5, 270}, {seed = 1, dtype = "u16", high = 900})
        assert.is_true(a:to_string() == values:to_string())
        assert.is_true(b:to_string() == values:to_string())
    end)

    it("closes the file that nobody has used for the longest time", function()
        local most = open_files.limits.most
        open_files.limits.most = 4
        local list = open_files.new()
        open_files.limits.most = most
        local one = list:file(path "1")
        for name = 2, 4 do
            list:file(path(tostring(name)))
        end
        assert.equal(one, list:file(path "1"))
        list:file(path "5")
        assert.equal(one, list:file(path "1"))
        assert.equal(4, list.count)
        assert.is_nil(list.list[path "2"])
        list:close()
        assert.same({0, nil}, {list.count, (next(list.list))})
        assert.matches("closed", tostring(one))
    end)

    it("fails where a file of a transfer has lost its name", function()
        local file = core.rawfile.keep(path "lost", true, true)
        file:resize(64)
        local values <close> = mb.ones({16}, {device = "host"})
        local carrier = core.carrier.open {device = "host", writing = true, threads = 1,
            pinned = "1Mi"}
        os.remove(path "lost")
        carrier:carry(file, values, 0, {4})
        local _, problem = helper.failure(function() carrier:finish() end)
        assert.equal("io", problem.code)
        assert.matches("cannot open '" .. path "lost" .. "' again", problem.message, 1, true)
        carrier:close()
        file:close()
    end)

    it("is refused by its name for other formats", function()
        local values <close> = mb.ones({2, 4, 4})
        local function refused(fn, ...)
            local message, problem = helper.failure(fn, ...)
            assert.equal("argument", problem.code, message)
            assert.equal("zarr_layout", problem.arg, message)
        end
        for _, kind in ipairs {"chunks", "shards"} do
            for _, ending in ipairs {".tif", ".ome.tif", ".npy", ".h5"} do
                local name, options = path("x" .. ending), {shape = {2, 4, 4}, dtype = "f32",
                    zarr_layout = kind}
                refused(mb.images.create, name, options)
                refused(mb.images.write, name, values, {zarr_layout = kind})
                if ending ~= ".npy" then
                    refused(mb.result.create, name, options)
                    refused(mb.result.disk_bytes, name, {2, 4, 4}, "f32", {zarr_layout = kind})
                end
            end
            refused(mb.tiff.write, path "x.tif", values, {zarr_layout = kind})
        end
        refused(mb.result.create, path "x.zarr", {shape = {2, 4, 4}, zarr_layout = "files"})
        assert.same({}, files.list(folder))
        mb.npy.write(path "a.npy", values)
        mb.npy.write(path "p.npy", values)
        for _, command in ipairs {"deconvolve.lua FOLDER/a.npy FOLDER/p.npy -d host",
            "convolve.lua --image FOLDER/a.npy --psf FOLDER/p.npy -d host",
            "psf.lua -d host --na 0.8 --index 1 --wavelength 500 --pixel 100 --step 200 --size 3,5,5",
            "reconstruct.lua FOLDER/s.h5", "join.lua FOLDER/s.h5", "stitch.lua FOLDER/a.h5 FOLDER/b.h5"}
            do
            local text, status = run("scripts/%s -o FOLDER/r.tif --zarr-layout chunks", command)
            assert.equal(2, status, text)
            assert.matches("--zarr-layout is for OME-Zarr; --output is ", text, 1, true)
        end
        local text, status = run("scripts/reconstruct.lua FOLDER/s.h5 -o FOLDER/r.zarr --part 1/2 "
            .. "--zarr-layout chunks")
        assert.equal(2, status, text)
        assert.matches("--zarr-layout cannot be used with --part", text, 1, true)
    end)

    it("is what commands plan and write", function()
        local image <close> = mb.random({5, 20, 300}, {seed = 4, dtype = "u16", high = 900})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, {1, 1, 1})
        mb.tiff.write(path "a.tif", image, {spacing = 0.3, unit = "micron"})
        mb.npy.write(path "p.npy", psf)
        for _, words in ipairs {
            "deconvolve.lua FOLDER/a.tif FOLDER/p.npy -d host --iterations 3 --output-dtype uint16",
            "deconvolve.lua FOLDER/a.tif FOLDER/p.npy -d host --iterations 3 --tiles exact",
            "convolve.lua --image FOLDER/a.tif --psf FOLDER/p.npy -d host"} do
            local command = "scripts/" .. words
            local said = must(command .. " -o FOLDER/c.zarr --overwrite --zarr-layout chunks --plan")
            local line = said:match "\nzarr       [^\n]+"
            assert.is_nil(must(command .. " -o FOLDER/s.zarr --overwrite"):match "\nzarr ")
            must(command .. " -o FOLDER/c.zarr --overwrite --zarr-layout chunks")
            local list, bytes = chunk_files "c.zarr"
            assert.equal(5 + 3, check_files("c.zarr", 0))
            assert.equal(("\nzarr       %d files, one for each slice of each level, of at most %s, "
                .. "%s in all"):format(#list, mb.device.format_bytes(list["0/c/0/0/0"]),
                mb.device.format_bytes(bytes)), line)
            local a <close> = mb.images.read(path "s.zarr", "host")
            local b <close> = mb.images.read(path "c.zarr", "host")
            assert.is_true(a:to_string() == b:to_string(), words)
        end
    end)

    it("goes on after a kill in its own layout alone, and is named by step save", function()
        must("scripts/simulate.lua FOLDER/scan.h5 --size 24 --angles 30 -d host -q")
        files.write(path "recipe.lua", 'return {"flat_field", "minus_log", {"fbp", center = 11.5},\n'
            .. '    {"save", file = "made.zarr", zarr_layout = "chunks"}}\n')
        local RUN <const> = "scripts/reconstruct.lua FOLDER/scan.h5 --recipe FOLDER/recipe.lua -d host"
        local LINE <const> = "zarr       6 files, one for each slice of each level"
        assert.matches(LINE, must(RUN .. " --plan"), 1, true)
        assert.is_nil(must(RUN .. " --plan -o FOLDER/typed.h5"):find("zarr  ", 1, true))
        must(RUN .. " -q -o FOLDER/typed.h5") -- another file is of its own format
        assert.matches(LINE, must(RUN), 1, true)
        assert.equal(6, #chunk_files "made.zarr")
        local a <close> = mb.images.read(path "typed.h5", "host")
        local b <close> = mb.images.read(path "made.zarr", "host")
        assert.is_true(a:to_string() == b:to_string())
        local wrong = files.read(path "recipe.lua"):gsub("made.zarr", "made.tif")
        files.write(path "wrong.lua", wrong)
        local refused, failed = run((RUN:gsub("recipe.lua", "wrong.lua")))
        assert.equal(1, failed, refused)
        assert.matches("--zarr-layout is for OME-Zarr (.zarr): leave it out", refused, 1, true)
        files.write(path "run.lua", ([[
local mb = require "moonbeam"
local layout, way, step = ...
mb.debug.fail_step(tonumber(step))
local scan <close> = assert(mb.scan.open "%s/scan.h5")
local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 11.5}},
    {block = 2, quiet = true})
p:run {output = "%s/volume.zarr", zarr_layout = layout, resume = way == "resume",
    discard = way == "discard"}
]]):format(folder, folder))
        local function again(...)
            return run("FOLDER/run.lua %s %s %s", ...)
        end
        local killed = 0
        for _, step in ipairs {20, 60} do
            local _, status = again("chunks", "begin", step)
            if status ~= 0 then
                killed = killed + 1
                local text, other = again("shards", "resume", 0)
                assert.equal(1, other, text)
                assert.matches("the result in '" .. path "volume.zarr.unfinished" .. "' was begun with "
                    .. "the layout chunks, and this run has shards: go on with the option zarr_layout = "
                    .. "\"chunks\", or start anew with the option discard = true", text, 1, true)
                -- Both ways that the message tells.
                local same = killed > 1 and {"chunks", "resume", 0} or {"shards", "discard", 0}
                local said, done = again(table.unpack(same))
                assert.equal(0, done, said)
                if killed == 1 then
                    assert.equal(1, #chunk_files "volume.zarr")
                    files.remove(path "volume.zarr")
                    again("chunks", "begin", 0)
                end
            end
            assert.equal(6, check_files("volume.zarr", 0))
            local again_read <close> = mb.images.read(path "volume.zarr", "host")
            assert.is_true(b:to_string() == again_read:to_string(), step)
            files.remove(path "volume.zarr")
        end
        assert.is_true(killed > 0)
        -- In a folder that a journal keeps, too.
        assert(core.system.mkdir(path "inside"))
        for i, kind in ipairs {"shards", "chunks"} do
            local other = i == 1 and "chunks" or "shards"
            local options = {shape = {4, 3, 300}, dtype = "u8", zarr_layout = kind,
                inside = path "inside"}
            mb.images.create(path("kept" .. i .. ".zarr"), options):close()
            mb.images.create(path("kept" .. i .. ".zarr"), options):close()
            options.zarr_layout = other
            local _, problem = helper.failure(mb.images.create, path("kept" .. i .. ".zarr"),
                options)
            assert.same({"argument", "zarr_layout"}, {problem.code, problem.arg})
            assert.matches(("begun with the layout %s, and this run has %s"):format(kind, other),
                problem.message, 1, true)
        end
    end)
end)
