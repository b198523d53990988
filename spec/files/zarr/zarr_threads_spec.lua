-- Chunks of Zarr arrays that threads decode: the values, the memory and the errors do not depend on
-- how many there are. The arrays are written here, with zlib, without Python.
local core = require "moonbeam.core"
local encoder = require "spec.support.tiff_encoder"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local zarr = require "moonbeam.zarr"

describe("chunks of Zarr that threads decode", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    local CODES <const> = {["<u2"] = "<I2", ["|i1"] = "<i1", ["<f4"] = "<f"}

    -- The value at 0-based indices: another one for each element of the array, within its type.
    local function value_at(facts, indices)
        local number = 0
        for axis, index in ipairs(indices) do
            number = number * facts.shape[axis] + index
        end
        return facts.dtype == "|i1" and number % 251 - 125 or number % 60000
    end

    -- Calls fn(indices) for all places below these extents, the last axis fastest.
    local function each(extents, fn, indices)
        indices = indices or {}
        local axis = #indices + 1
        if axis > #extents then
            return fn(indices)
        end
        for index = 0, extents[axis] - 1 do
            indices[axis] = index
            each(extents, fn, indices)
            for later = axis, #indices do
                indices[later] = nil
            end
        end
    end

    -- An array of format 2 that is compressed with zlib: {shape, chunks, dtype, lost = {key = true}
    -- (chunks that are not there), damaged (keys)}.
    local function array(name, facts)
        local path = folder .. "/" .. name .. ".zarr"
        assert(core.system.mkdir(path))
        files.write(path .. "/.zarray", ('{"zarr_format": 2, "shape": [%s], "chunks": [%s], '
            .. '"dtype": "%s", "order": "C", "fill_value": 7, "filters": null, "compressor": '
            .. '{"id": "zlib", "level": 1}}'):format(table.concat(facts.shape, ", "),
            table.concat(facts.chunks, ", "), facts.dtype))
        if facts.names then
            files.write(path .. "/.zattrs", ('{"multiscales": [{"axes": [%s], "datasets": '
                .. '[{"path": "0"}]}]}'):format(facts.names))
        end
        local grid = {}
        for axis, extent in ipairs(facts.shape) do
            grid[axis] = -(-extent // facts.chunks[axis])
        end
        each(grid, function(chunk)
            local key, parts = table.concat(chunk, "."), {}
            if (facts.lost or {})[key] then
                return
            end
            each(facts.chunks, function(inner)
                local at = {}
                for axis, index in ipairs(inner) do
                    at[axis] = math.min(facts.shape[axis] - 1,
                        chunk[axis] * facts.chunks[axis] + index)
                end
                parts[#parts + 1] = string.pack(CODES[facts.dtype], value_at(facts, at))
            end)
            local text = encoder.deflate(table.concat(parts))
            files.write(path .. "/" .. key, (facts.damaged or {})[key]
                and text:sub(1, #text // 2) or text)
        end)
        return path
    end

    -- A block as a text, its peak, and the peak that a plan says.
    local function read(path, threads, first, extents)
        local volume <close> = zarr.open(path, {threads = threads})
        local text
        local function work(device)
            local block <close> = volume:read(first, extents, device, device)
            text = not device.dry and block:to_string() or text
        end
        local planned = mb.plan.peak(work, "host").peak
        local measured = mb.pool.peak(work, "host", mb.device "host")
        assert.equal(planned, measured)
        return text, measured, volume.dtype
    end

    -- What the block has, by the rule of value_at.
    local function expected(facts, first, extents, dtype)
        local parts, code = {}, ({u16 = "<I2", i32 = "<i4", f32 = "<f"})[dtype]
        each(extents, function(inner)
            local at, chunk = {}, {}
            for axis, index in ipairs(inner) do
                at[axis] = first[axis] + index
                chunk[axis] = at[axis] // facts.chunks[axis]
            end
            local lost = (facts.lost or {})[table.concat(chunk, ".")]
            parts[#parts + 1] = string.pack(code, lost and 7 or value_at(facts, at))
        end)
        return table.concat(parts)
    end

    it("have the same values and the planned memory for every number of threads", function()
        for i, facts in ipairs {
            {dtype = "<u2", shape = {7, 20, 33}, chunks = {2, 6, 10}, lost = {["1.2.0"] = true}},
            {dtype = "<f4", shape = {5, 9, 8}, chunks = {1, 9, 8}},
            {dtype = "|i1", shape = {3, 14, 11}, chunks = {2, 5, 11}},
            {dtype = "<u2", shape = {21, 30}, chunks = {4, 30}}} do
            local path = array("a" .. i, facts)
            local zero, inner, few = {}, {}, {}
            for axis, extent in ipairs(facts.shape) do
                zero[axis], inner[axis] = 0, axis == 1 and 1 or 3
                few[axis] = extent - inner[axis]
            end
            local peaks = {}
            for _, threads in ipairs {1, 2, 3, 4, 16} do
                for _, block in ipairs {{zero, facts.shape}, {inner, few}} do
                    local text, peak, dtype = read(path, threads, block[1], block[2])
                    assert.is_true(expected(facts, block[1], block[2], dtype) == text, i)
                    peaks[threads] = block[1] == zero and peak or peaks[threads]
                end
            end
            assert.is_true(peaks[1] < peaks[2] and peaks[2] < peaks[4], i)
        end
    end)

    it("take memory that depends on the extents of a block, and not on its place", function()
        local path = array("a", {dtype = "<u2", shape = {12, 20, 30}, chunks = {4, 20, 30}})
        local function peak(first, count, threads)
            local _, bytes = read(path, threads or 4, {first, 0, 0}, {count, 20, 30})
            return bytes - count * 1200 // 512 * 512
        end
        for first = 0, 8 do
            assert.equal(peak(0, 4), peak(first, 4))
        end
        -- One slice meets one chunk, wherever it is; two may meet two.
        assert.equal(peak(0, 1, 1), peak(3, 1))
        assert.is_true(peak(0, 2, 1) < peak(0, 2))
        assert.equal(peak(0, 2), peak(3, 2))
        assert.equal(peak(0, 12), peak(0, 12, 3)) -- no more chunks than there are
    end)

    it("take less than 256 MiB where more than one are decoded", function()
        local bytes = {}
        for i, side in ipairs {1024, 4096, 16384} do
            local path = ("%s/large%d.zarr"):format(folder, i)
            assert(core.system.mkdir(path))
            files.write(path .. "/.zarray", ('{"zarr_format": 2, "shape": [40, %d, %d], "chunks": '
                .. '[1, %d, %d], "dtype": "|u1", "order": "C", "fill_value": 0, "filters": null, '
                .. '"compressor": {"id": "zlib", "level": 1}}'):format(side, side, side, side))
            local volume <close> = zarr.open(path, {threads = 8})
            local function work(device)
                volume:read({0, 0, 0}, {40, 1, 1}, device, device):release()
            end
            bytes[i] = mb.plan.peak(work, "host").peak / side ^ 2
        end
        -- Packed, decoded, and in the order of the volume: about three times the chunk each.
        assert.near(3 * 8, bytes[1], 0.2)
        assert.near(3 * 5, bytes[2], 0.2)
        assert.near(3, bytes[3], 0.2)
    end)

    it("that are damaged are named by the first one of the block", function()
        local path = array("a", {dtype = "<u2", shape = {9, 8, 8}, chunks = {1, 8, 8},
            damaged = {["2.0.0"] = true, ["3.0.0"] = true, ["7.0.0"] = true}})
        for _, threads in ipairs {1, 2, 4, 16, 4, 4, 16, 16} do
            local volume <close> = zarr.open(path, {threads = threads})
            local message, problem = helper.failure(function()
                mb.volumes.load(volume, "host")
            end)
            assert.equal("io", problem.code, message)
            assert.matches("/a.zarr/2.0.0'", message, 1, true)
            local good <close> = volume:read({4, 0, 0}, {3, 8, 8}, mb.device "host")
            assert.equal(4 * 64, good:item(1, 1, 1))
        end
    end)

    it("are of several channels and times, and closes their files", function()
        local facts = {dtype = "<u2", shape = {3, 2, 6, 7}, chunks = {1, 1, 6, 7},
            names = '{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}, '
            .. '{"name": "y", "type": "space"}, {"name": "x", "type": "space"}'}
        local inner = array("five", facts)
        assert(os.rename(inner, folder .. "/0"))
        assert(core.system.mkdir(inner))
        assert(os.rename(folder .. "/0", inner .. "/0"))
        assert(os.rename(inner .. "/0/.zattrs", inner .. "/.zattrs"))
        files.write(inner .. "/.zgroup", '{"zarr_format": 2}')
        local want = expected(facts, {0, 0, 0, 0}, facts.shape, "u16")
        local open = #core.system.folder "/proc/self/fd"
        for _, threads in ipairs {1, 4} do
            local text, peak = read(inner, threads, {0, 0, 0}, {6, 6, 7})
            assert.is_true(want == text)
            local one = read(inner, threads, {2, 1, 0}, {3, 4, 7})
            assert.equal(want:sub(2 * 84 + 15, 2 * 84 + 70), one:sub(1, 56))
            assert.is_true(threads > 1 or peak < select(2, read(inner, 4, {0, 0, 0}, {6, 6, 7})))
        end
        assert.equal(open, #core.system.folder "/proc/self/fd")
    end)
end)
