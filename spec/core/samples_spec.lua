-- Integers that are no element type, of 8 to 64 bits, from each format: what f64 has comes exactly,
-- and another value is refused with its file and its place.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local encoder = require "spec.support.tiff_encoder"

local BYTES <const> = {i8 = 1, i16 = 2, u32 = 4, i64 = 8, u64 = 8}
local WIDE <const> = {i8 = "i32", i16 = "i32", u32 = "f64", i64 = "f64", u64 = "f64"}
local LIMITS <const> = {i8 = {-128, 127}, i16 = {-32768, 32767}, u32 = {0, 4294967295},
    i64 = {math.mininteger, 1 << 53}, u64 = {0, math.mininteger}} -- of u64: 2^63 as bits
local SHAPE <const> = {3, 4, 5}
-- What f64 does not have.
local INEXACT <const> = {{"i64", (1 << 53) + 1, "9007199254740993"},
    {"i64", -(1 << 53) - 1, "-9007199254740993"},
    {"i64", math.maxinteger, "9223372036854775807"},
    {"u64", (1 << 53) + 1, "9007199254740993"}, {"u64", -1, "18446744073709551615"}}

-- The values of a stack [z][y][x], with the ends of what is exact, and what is read.
local function stack(kind)
    local stored, wide, state = {}, {}, 5
    for z = 1, SHAPE[1] do
        stored[z], wide[z] = {}, {}
        for y = 1, SHAPE[2] do
            stored[z][y], wide[z][y] = {}, {}
            for x = 1, SHAPE[3] do
                state = (state * 37 + 11) % 101
                stored[z][y][x] = kind:find "^i" and state - 50 or state
            end
        end
    end
    stored[1][2][3], stored[3][4][5] = LIMITS[kind][1], LIMITS[kind][2]
    for z, plane in ipairs(stored) do
        for y, row in ipairs(plane) do
            for x, value in ipairs(row) do
                wide[z][y][x] = kind == "u64" and value < 0 and 2.0 ^ 63 or value
            end
        end
    end
    return stored, wide
end

local function packed(stored, kind, order)
    local parts, format = {}, order .. (kind:sub(1, 1) == "i" and "i" or "I") .. BYTES[kind]
    for _, plane in ipairs(stored) do
        for _, row in ipairs(plane) do
            for _, value in ipairs(row) do
                parts[#parts + 1] = format:pack(value)
            end
        end
    end
    return table.concat(parts)
end

local function npy(path, stored, kind, order)
    local head = ("{'descr': '%s%s%d', 'fortran_order': False, 'shape': (%d, %d, %d), }\n"):format(
        BYTES[kind] == 1 and "|" or order, kind:sub(1, 1), BYTES[kind], #stored, #stored[1],
        #stored[1][1])
    files.write(path .. ".npy", "\x93NUMPY\1\0" .. string.pack("<I2", #head) .. head
        .. packed(stored, kind, order))
    return path .. ".npy"
end

local function tiff(options)
    return function(path, stored, kind, order)
        files.write(path .. ".tif", encoder.encode(stored, {dtype = kind, order = order,
            method = options.method, predictor = options.predictor, big = options.big,
            tile = options.tile, rows = options.rows}))
        return path .. ".tif"
    end
end

-- Chunks of (2, 3, 4), whose ends reach beyond the array: there is `beyond` there.
local function zarr(format)
    return function(path, stored, kind, order, beyond)
        path = path .. ".zarr"
        assert(os.execute(("mkdir -p '%s/c'"):format(path)))
        local name = (kind:sub(1, 1) == "i" and "int" or "uint") .. 8 * BYTES[kind]
        files.write(path .. (format == 2 and "/.zarray" or "/zarr.json"), format == 2
            and ([[{"zarr_format": 2, "shape": [3, 4, 5], "chunks": [2, 3, 4], "dtype": "%s%s%d",
                "order": "C", "filters": null, "compressor": null, "fill_value": 0}]]):format(
                BYTES[kind] == 1 and "|" or order, kind:sub(1, 1), BYTES[kind])
            or ([[{"zarr_format": 3, "node_type": "array", "shape": [3, 4, 5], "data_type": "%s",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3, 4]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "%s"}}],
                "fill_value": 0}]]):format(name, order == ">" and "big" or "little"))
        for cz = 0, 1 do
            for cy = 0, 1 do
                for cx = 0, 1 do
                    local chunk = {}
                    for z = 1, 2 do
                        chunk[z] = {}
                        for y = 1, 3 do
                            chunk[z][y] = {}
                            for x = 1, 4 do
                                local plane = stored[2 * cz + z] or {}
                                local row = plane[3 * cy + y] or {}
                                chunk[z][y][x] = row[4 * cx + x] or beyond or 0
                            end
                        end
                    end
                    files.write(("%s/%s%d.%d.%d"):format(path, format == 2 and "" or "c.", cz, cy,
                        cx), packed(chunk, kind, order))
                end
            end
        end
        return path
    end
end

-- By h5py: nothing here writes such datasets. All of a test are written at once.
local function hdf5(path, stored, kind, order)
    npy(path .. "_raw", stored, kind, order)
    return path .. ".h5"
end

local function convert(paths)
    local text, ok = files.run(([[%s -c 'import h5py, numpy
for path in "%s".split():
    a = numpy.load(path[:-3] + "_raw.npy")
    h5py.File(path, "w").create_dataset("a", data=a, dtype=a.dtype, chunks=(2, 3, 4))']]):format(
        files.python "h5py", table.concat(paths, " ")))
    assert.is_true(ok, text)
end

local FORMATS <const> = {
    {"npy", npy}, {"TIFF", tiff {}}, {"TIFF in strips of LZW", tiff {method = "lzw", rows = 3}},
    {"BigTIFF in tiles of Deflate with differences", tiff {big = true, method = "deflate",
        predictor = 2, tile = {16, 16}}},
    {"Zarr 2", zarr(2)}, {"Zarr 3", zarr(3)}, {"HDF5", hdf5, needs = "h5py"},
}

describe("integers that are no element type", function()
    local folder

    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    for number, format in ipairs(FORMATS) do
        local name, write = format[1], format[2]
        local function path(text)
            return ("%s/%d_%s"):format(folder, number, text)
        end
        local function available()
            if format.needs and not files.python(format.needs) then
                pending(format.needs .. " is not installed (scripts/setup --oracles)")
                return false
            end
            return true
        end

        it(("are read from %s, whole and by blocks, in both byte orders"):format(name), function()
            if not available() then
                return
            end
            local paths, expected = {}, {}
            for kind in pairs(BYTES) do
                local stored, wide = stack(kind)
                for _, order in ipairs {"<", ">"} do
                    paths[#paths + 1] = write(path(kind .. (order == "<" and "l" or "b")), stored,
                        kind, order)
                    expected[#paths] = {kind, wide}
                end
            end
            if format.needs then
                convert(paths)
            end
            for i, file in ipairs(paths) do
                local kind, wide = table.unpack(expected[i])
                local volume <close> = mb.images.open(file)
                assert.equal(WIDE[kind], volume.dtype, file)
                local all <close> = mb.volumes.load(volume, "host")
                assert.same(wide, all:to_table(), file)
                local device = mb.device "host"
                local part <close> = volume:read({1, 2, 1}, {2, 2, 3}, device)
                assert.same({{{wide[2][3][2], wide[2][3][3], wide[2][3][4]},
                    {wide[2][4][2], wide[2][4][3], wide[2][4][4]}},
                    {{wide[3][3][2], wide[3][3][3], wide[3][3][4]},
                    {wide[3][4][2], wide[3][4][3], wide[3][4][4]}}}, part:to_table(), file)
            end
        end)

        it(("of 64 bits from %s that f64 does not have are refused with their place"):format(name),
            function()
            if not available() then
                return
            end
            local paths, wides = {}, {}
            for i, case in ipairs(INEXACT) do
                local stored
                stored, wides[i] = stack(case[1])
                stored[2][4][3], stored[3][1][1] = case[2], case[2]
                paths[i] = write(path("bad" .. i), stored, case[1], "<")
            end
            if format.needs then
                convert(paths)
            end
            for i, file in ipairs(paths) do
                local text, wide = INEXACT[i][3], wides[i]
                local volume <close> = mb.images.open(file)
                local line = ("%s%s' has the value %s, at z, y, x = 1, 3, 2 from 0: "):format(
                    file, name == "HDF5" and ":/a" or "", text)
                local err, whole = helper.failure(mb.volumes.load, volume, "host")
                assert.matches(line, err, 1, true)
                assert.matches("save the image as float32", err, 1, true)
                assert.equal("unsupported", whole.code)
                err = helper.failure(volume.read, volume, {1, 2, 1}, {1, 2, 3}, mb.device "host")
                assert.matches(line, err, 1, true)
                -- a block without it is whole: it is in the same segments and chunks
                local part <close> = volume:read({1, 2, 1}, {1, 2, 1}, mb.device "host")
                assert.same({{{wide[2][3][2]}, {wide[2][4][2]}}}, part:to_table())
            end
        end)
    end

    it("say y, x of an image of one plane", function()
        local stored = stack "i64"
        stored[1][4][1] = (1 << 53) + 1
        local file = tiff {}(folder .. "/flat", {stored[1]}, "i64", ">")
        assert.matches("flat.tif' has the value 9007199254740993, at y, x = 3, 0 from 0: ",
            helper.failure(mb.images.read, file, "host"), 1, true)
    end)

    it("of Zarr chunks beyond the array, and fill values that are not taken, count for nothing",
        function()
        for format = 2, 3 do
            local stored, wide = stack "i64"
            local file = zarr(format)(folder .. "/beyond" .. format, stored, "i64", "<",
                math.maxinteger)
            local all <close> = mb.images.read(file, "host")
            assert.same(wide, all:to_table())
        end
    end)

    -- The array of a Zarr folder whose chunk 1.1.0 is not there, with this fill value in its JSON.
    local function filled(format, kind, fill)
        local path = ("%s/fill_%s_%d_%s"):format(folder, kind, format, (fill:gsub("%W", "_")))
        local file = zarr(format)(path, (stack(kind)), kind, "<")
        local name = file .. (format == 2 and "/.zarray" or "/zarr.json")
        files.write(name, (files.read(name):gsub('"fill_value": 0', '"fill_value": ' .. fill)))
        return file, file .. (format == 2 and "/1.1.0" or "/c.1.1.0")
    end

    it("have a fill value of 64 bits, which is read exactly, or refused where it is taken", function()
        for _, case in ipairs {{"i64", "9007199254740993"}, {"i64", "-9223372036854775807"},
            {"u64", "18446744073709551615"}, {"u64", "9223372036854775809"},
            {"i64", "-9223372036854775808", -0x1p63}, {"i64", "9007199254740994", 0x1p53 + 2},
            {"u64", "9223372036854775808", 0x1p63}, {"u64", "18446744073709549568", 0x1p64 - 2048},
            {"u64", "7.0", 7}} do
            local kind, fill, number = table.unpack(case)
            for format = 2, 3 do
                local file, chunk = filled(format, kind, fill)
                do -- where no chunk is missing, nobody takes the value
                    local all <close> = mb.images.read(file, "host")
                    assert.equal(select(2, stack(kind))[3][4][5], all:item(3, 4, 5))
                end
                os.remove(chunk)
                if number then
                    local all <close> = mb.images.read(file, "host")
                    assert.equal(number, all:item(3, 4, 1))
                    assert.equal(number, all:item(3, 4, 4))
                else
                    local text, err = helper.failure(mb.images.read, file, "host")
                    assert.matches(("%s: the chunk '%s1.1.0' is not there, and the fill_value is "
                        .. "%s: "):format(file, format == 2 and "" or "c.", fill), text, 1, true)
                    assert.equal("unsupported", err.code)
                end
            end
        end
    end)

    it("have no fill value that is none of theirs", function()
        for _, case in ipairs {{"i64", "9223372036854775808"}, {"i64", "1.5"}, {"i64", '"NaN"'},
            {"u64", "-1"}, {"u64", "18446744073709551616"}, {"u64", "99999999999999999999"},
            {"u64", "1e19"}, {"i64", "9007199254740993.0"}, {"i64", '"9007199254740993"'},
            {"u32", "18446744073709551615"}} do
            for format = 2, 3 do
                local file = filled(format, case[1], case[2])
                local text, err = helper.failure(mb.images.read, file, "host")
                assert.matches("fill_value is '", text, 1, true)
                assert.matches("which no element of type " .. case[1] .. " is", text, 1, true)
                assert.equal("io", err.code)
            end
        end
    end)

    it("of Zarr are told by all axes of the array, whose last ones may be in another order", function()
        for _, case in ipairs {{"y, x, z", {"y", "x", "z"}, {1, 2}}, {"t", {"t", "z", "y", "x"}, {0, 3}}}
            do
            local path = folder .. "/axes_" .. #case[2] .. ".zarr"
            local rank = #case[2]
            assert(os.execute(("mkdir -p '%s/0'"):format(path)))
            local axes = {}
            for i, name in ipairs(case[2]) do
                axes[i] = ('{"name": "%s", "type": "%s"}'):format(name, name == "t" and "time"
                    or "space")
            end
            local scale = ("1, "):rep(rank - 1) .. "1"
            files.write(path .. "/.zgroup", '{"zarr_format": 2}')
            files.write(path .. "/.zattrs", ([[{"multiscales": [{"version": "0.4", "axes": [%s],
                "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale",
                "scale": [%s]}]}]}]}]]):format(table.concat(axes, ", "), scale))
            local shape = rank == 3 and "3, 3, 3" or "2, 3, 3, 3"
            local chunk = rank == 3 and "2, 2, 2" or "1, 2, 2, 2"
            files.write(path .. "/0/.zarray", ([[{"zarr_format": 2, "shape": [%s], "chunks": [%s],
                "dtype": "<i8", "order": "C", "filters": null, "compressor": null,
                "fill_value": 0}]]):format(shape, chunk))
            -- the last chunk: its first element is in the array, all others are beyond
            local values = {string.pack("<i8", 7)}
            for i = 2, 8 do
                values[i] = string.pack("<i8", math.maxinteger - i)
            end
            local last = path .. "/0/" .. (rank == 3 and "1.1.1" or "1.1.1.1")
            files.write(last, table.concat(values))
            do
                local all <close> = mb.images.read(path, "host")
                assert.equal(7, all:max())
            end
            values[1] = string.pack("<i8", -math.maxinteger)
            files.write(last, table.concat(values))
            assert.matches(("axes_%d.zarr/0' has the value -9223372036854775807, at %s from 0: ")
                :format(rank, rank == 3 and "z, y, x = 2, 2, 2" or "the index 1, 2, 2, 2"),
                helper.failure(mb.images.read, path, "host"), 1, true)
            -- the time before has none
            if rank == 4 then
                local volume <close> = mb.images.open(path, {frame = 1})
                local first <close> = mb.volumes.load(volume, "host")
                assert.equal(0, first:max())
            end
        end
    end)

    it("of several threads are told in the order of the strips", function()
        local rows = {}
        for y = 1, 64 do
            rows[y] = {}
            for x = 1, 8 do
                rows[y][x] = y > 5 and (1 << 60) + y or 3
            end
        end
        local file = tiff {method = "deflate", rows = 4}(folder .. "/strips", {rows}, "i64", "<")
        for _ = 1, 5 do
            assert.matches(("value %d, at y, x = 5, 0 from 0: "):format((1 << 60) + 6),
                helper.failure(mb.images.read, file, "host"), 1, true)
        end
    end)

    it("of HDF5 are told by the axes of the dataset, where a part of it with steps is read", function()
        local python = files.python "h5py"
        if not python then
            pending "h5py is not installed (scripts/setup --oracles)"
            return
        end
        local text, ok = files.run(([[%s -c 'import h5py, numpy
a = numpy.zeros((2, 3, 5, 6), ">u8")
a[1, 2, 3, 4] = 2**64 - 1
h5py.File("%s/four.h5", "w")["a"] = a']]):format(python, folder))
        assert.is_true(ok, text)
        local file <close> = assert(mb.h5.open(folder .. "/four.h5"))
        assert.matches("four.h5:/a' has the value 18446744073709551615, at the index 1, 2, 3, 4 "
            .. "from 0: ", helper.failure(file.read, file, "/a", 2, {1, 3}, {2, 4, 2}, {1, 6}), 1,
            true)
        local part <close> = file:read("/a", 2, {1, 3}, {1, 5, 2}, {1, 6})
        assert.equal(0, part:max())
    end)

    it("of NumPy have one to six axes, or none", function()
        for number, shape in ipairs {"", "5,", "2, 3", "2, 3, 2", "2, 2, 3, 2", "2, 1, 2, 3, 1, 2",
            "0, 3"} do
            local count = 1
            for extent in shape:gmatch "%d+" do
                count = count * tonumber(extent)
            end
            local order = number % 2 == 0 and ">" or "<"
            local head = ("{'descr': '%si8', 'fortran_order': False, 'shape': (%s), }\n"):format(
                order, shape)
            local values = {}
            for i = 1, count do
                values[i] = string.pack(order .. "i8", -i)
            end
            files.write(folder .. "/axes.npy", "\x93NUMPY\1\0" .. string.pack("<I2", #head) .. head
                .. table.concat(values))
            local array <close> = mb.npy.read(folder .. "/axes.npy")
            assert.equal(count, array.elements)
            local flat <close> = array:reshape(count)
            for i = 1, count do
                assert.equal(-i, flat:item(i))
            end
        end
    end)
end)

describe("elements of an .npy file in the other byte order", function()
    it("are read as those in this one, whole and by blocks", function()
        local folder <const> = files.folder()
        for _, case in ipairs {{"u2", "I2"}, {"i4", "i4"}, {"f4", "f"}, {"f8", "d"}, {"c8", "ff"},
            {"c16", "dd"}} do
            local paths = {}
            for number, order in ipairs {"<", ">"} do
                local head = ("{'descr': '%s%s', 'fortran_order': False, 'shape': (3, 4), }\n")
                    :format(order, case[1])
                local values = {}
                for i = 1, 12 do
                    values[i] = string.pack(order .. case[2], 3 * i, -i)
                end
                paths[number] = ("%s/%d_%s.npy"):format(folder, number, case[1])
                files.write(paths[number], "\x93NUMPY\1\0" .. string.pack("<I2", #head) .. head
                    .. table.concat(values))
            end
            local one <close> = mb.npy.read(paths[1])
            local other <close> = mb.npy.read(paths[2])
            assert.equal(one.dtype, other.dtype)
            assert.same(one:to_table(), other:to_table())
            local volume <close> = mb.npy.open(paths[2])
            local part <close> = volume:read({1, 1}, {2, 2}, mb.device "host")
            local same <close> = one:view({2, 3}, {2, 3})
            assert.same(same:to_table(), part:to_table())
        end
        files.remove(folder)
    end)
end)

describe("images of 64-bit integers", function()
    local shell

    setup(function()
        shell = commands.folder()
    end)

    teardown(function()
        shell:remove()
    end)

    -- A stack with counts and an image of one bright voxel as its PSF.
    local function write(extents, kind)
        local image, state = {}, 3
        for z = 1, extents[1] do
            image[z] = {}
            for y = 1, extents[2] do
                image[z][y] = {}
                for x = 1, extents[3] do
                    state = (state * 75 + 74) % 65537
                    image[z][y][x] = state % 900 + 1
                end
            end
        end
        return image, npy(shell:path(kind), image, kind, "<")
    end

    it("and their PSFs are deconvolved as those of float32 are, in the bytes of the plan", function()
        local psf = {}
        for z = 1, 3 do
            psf[z] = {}
            for y = 1, 3 do
                psf[z][y] = {1, z == 2 and y == 2 and 9 or 2, 1}
            end
        end
        local image, file = write({7, 12, 11}, "i64")
        local point = npy(shell:path "psf", psf, "u64", ">")
        local real <close> = mb.array(image, {dtype = "f32"})
        local real_psf <close> = mb.array(psf, {dtype = "f32"})
        mb.npy.write(shell:path "f32.npy", real)
        mb.npy.write(shell:path "psf32.npy", real_psf)
        for _, tiles in ipairs {"none", "exact"} do
            local results = {}
            for number, given in ipairs {{file, point}, {shell:path "f32.npy",
                shell:path "psf32.npy"}} do
                local result = shell:path(("%s%d.npy"):format(tiles, number))
                local text = commands.must("deconvolve.lua", ("%s %s -o %s --iterations "
                    .. "3 --tiles %s%s --psf-background none --device host"):format(given[1],
                    given[2], result, tiles, tiles == "none" and "" or " --tile 7,8,11"))
                local predicted = text:match "memory[^\n]-peak[^\n]-%((%d+) bytes%)"
                    or text:match "predicted[^\n]-%((%d+) bytes%)"
                assert.is_truthy(predicted, text)
                assert.equal(predicted, text:match "measured[^\n]-%((%d+) bytes%)", text)
                results[number] = files.read(result)
            end
            assert.is_true(results[1] == results[2], tiles)
        end
    end)

    it("are refused by the command with the value, and a remedy that works", function()
        local image = write({3, 6, 5}, "i64")
        image[2][3][4] = (1 << 53) + 1
        local file = npy(shell:path "large", image, "i64", "<")
        local point <close> = mb.ones {1, 3, 3}
        mb.npy.write(shell:path "ones.npy", point)
        local arguments = "%s " .. shell:path "ones.npy" .. " -o " .. shell:path "r.npy"
            .. " --iterations 1 --psf-background none --device host"
        local status, text = commands.run("deconvolve.lua", arguments:format(file))
        assert.equal(1, status, text)
        assert.matches("large.npy' has the value 9007199254740993, at z, y, x = 1, 2, 3 from 0: ",
            text, 1, true)
        assert.is_false(commands.exists(shell:path "r.npy"))
        local real <close> = mb.array(image, {dtype = "f32"})
        mb.npy.write(shell:path "large32.npy", real)
        commands.must("deconvolve.lua", arguments:format(shell:path "large32.npy"))
    end)

    it("are convolved in the bytes of the plan", function()
        local _, file = write({5, 9, 8}, "u64")
        local point <close> = mb.random({3, 3, 3}, {seed = 1})
        mb.npy.write(shell:path "random.npy", point)
        for _, tiles in ipairs {"none", "always"} do
            local text = commands.must("convolve.lua", ("-i %s --psf %s -o %s --tiles %s%s --device "
                .. "host"):format(file, shell:path "random.npy", shell:path(tiles .. "_c.npy"),
                tiles, tiles == "none" and "" or " --tile 5,4,8"))
            assert.equal(text:match "predicted peak[^\n]-%((%d+) bytes%)",
                text:match "measured peak[^\n]-%((%d+) bytes%)", text)
        end
    end)
end)
