-- TIFF: how pixels are stored, metadata kept, sizes beyond 4 GB, damaged files.
local mb = require "moonbeam"
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local tiff_encoder = require "spec.support.tiff_encoder"

local encode, sample = tiff_encoder.encode, tiff_encoder.sample

local folder

local function path(name)
    return folder .. "/" .. name
end

describe("TIFF", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    for _, method in ipairs { "none", "lzw", "deflate", "packbits" } do
        it("reads strips and tiles, either byte order, big and classic: " .. method, function()
            for dtype, read in pairs { u8 = "u8", u16 = "u16", i32 = "i32", f32 = "f32",
                i8 = "i32", i16 = "i32", u32 = "f64" } do
                local values = sample(3, 37, 41, dtype)
                for _, more in ipairs { {}, { order = ">" }, { rows = 5 },
                    { order = ">", big = true, tile = { 16, 32 } },
                    { rows = 8, predictor = 2 }, { order = ">", tile = { 16, 16 },
                        predictor = 2 } } do
                    if not (more.predictor and dtype == "f32") then
                        more.dtype, more.method = dtype, method
                        files.write(path "x.tif", encode(values, more))
                        local whole <close> = mb.tiff.read(path "x.tif")
                        assert.equal(read, whole.dtype)
                        assert.same(values, whole:to_table())
                        -- And a block of it, as what works in blocks reads it.
                        local volume <close> = mb.tiff.open(path "x.tif")
                        local block <close> = volume:read({ 1, 6, 3 }, { 2, 25, 31 },
                            mb.device "host")
                        local expected <close> = whole:view({ 2, 3 }, { 7, 31 }, { 4, 34 })
                        helper.assert_close(expected, block, 0)
                    end
                end
            end
        end)
    end

    it("reads LZW through cleared tables", function()
        local values = sample(1, 200, 200, "u16")
        files.write(path "l.tif", encode(values, { dtype = "u16", method = "lzw" }))
        local read <close> = mb.tiff.read(path "l.tif")
        assert.same(values[1], read:to_table())
    end)

    it("takes the memory for decoding from the pool, known before", function()
        files.write(path "m.tif",
            encode(sample(4, 64, 80, "u16"), { dtype = "u16", method = "deflate", rows = 16 }))
        local volume <close> = mb.tiff.open(path "m.tif")
        local function read(device)
            local block <close> = volume:read({ 1, 0, 0 }, { 2, 64, 80 }, device, device)
            return block.bytes
        end
        local known = mb.plan.peak(read, "host").peak
        local peak = mb.pool.peak(read, "host", mb.device "host")
        assert.equal(known, peak)
        assert.is_true(peak > 2 * 64 * 80 * 2)
    end)

    it("reads samples that no array has in stacks behind one directory, and in series", function()
        local values = sample(3, 5, 7, "i16")
        local text = {}
        for p = 1, 3 do
            for y = 1, 5 do
                text[#text + 1] = ("<i2i2i2i2i2i2i2"):pack(table.unpack(values[p][y]))
            end
            files.write(path(("s_%d.tif"):format(p)), encode({ values[p] }, { dtype = "i16" }))
        end
        -- ImageJ's form: the other pages stand where the directory does not say.
        local head = ("<c2I2I4I2"):pack("II", 42, 8, 10)
        local said, at = "ImageJ=1.54f\nimages=3\nslices=3\n\0", 8 + 2 + 10 * 12 + 4
        for _, entry in ipairs { { 256, 4, 1, 7 }, { 257, 4, 1, 5 }, { 258, 4, 1, 16 },
            { 259, 4, 1, 1 }, { 262, 4, 1, 1 }, { 270, 2, #said, at }, { 273, 4, 1, at + #said },
            { 277, 4, 1, 1 }, { 279, 4, 1, 70 }, { 339, 4, 1, 2 } } do
            head = head .. ("<I2I2I4I4"):pack(table.unpack(entry))
        end
        files.write(path "behind.tif", head .. ("<I4"):pack(0) .. said .. table.concat(text))
        for _, name in ipairs { "behind.tif", "s_*.tif" } do
            local read <close> = mb.images.read(path(name))
            assert.equal("i32", read.dtype)
            assert.same(values, read:to_table())
        end
    end)

    it("says what is wrong with a file", function()
        local values = sample(2, 20, 30, "u16")
        local function refused(text)
            files.write(path "bad.tif", text)
            local message, err = helper.failure(mb.tiff.read, path "bad.tif")
            assert.equal("table", type(err), message)
            assert.is_true(err.code == "io" or err.code == "unsupported", message)
            return message
        end
        local good = encode(values, { dtype = "u16" })
        -- Cut anywhere: an error that says so, or that this is no TIFF, never a crash or zeros.
        for cut = 0, #good - 1, 61 do
            local message = refused(good:sub(1, cut))
            assert.is_true(message:find("truncated", 1, true) ~= nil
                or message:find("not a TIFF", 1, true) ~= nil, message)
        end
        for _, method in ipairs { "lzw", "deflate", "packbits" } do
            local text = encode(values, { dtype = "u16", method = method })
            -- Noise where the packed bytes are: the file is not cut, its segments are damaged.
            local spoilt = text:sub(1, 8) .. ("\xff\x01\x80"):rep(40) .. text:sub(129)
            files.write(path "noise.tif", spoilt)
            local ok, err = pcall(mb.tiff.read, path "noise.tif")
            if ok then
                err:release() -- noise can be a valid stream, of other values
            else
                assert.matches("damaged", tostring(err))
            end
        end
        assert.matches("JPEG %(method 7%)",
            refused(encode(values, { dtype = "u16", extra = { [259] = { 3, { 7 } } } })))
        assert.matches("3 samples",
            refused(encode(values, { dtype = "u16", extra = { [277] = { 3, { 3 } } } })))
        assert.matches("12 bits",
            refused(encode(values, { dtype = "u16", extra = { [258] = { 3, { 12 } } } })))
        assert.matches("predictor 3 for u16",
            refused(encode(values, { dtype = "u16", extra = { [317] = { 3, { 3 } } } })))
        assert.matches("no size",
            refused(encode(values, { dtype = "u16", extra = { [257] = { 4, { 0 } } } })))
        local circle = good:sub(1, -5) .. good:sub(5, 8) -- the last directory leads to the first
        assert.matches("circle", refused(circle))
        assert.matches("2000 x 30 has 1 strips",
            refused(encode(values, { dtype = "u16", extra = { [257] = { 4, { 2000 } } } })))
        assert.matches("truncated",
            refused(encode(values, { dtype = "u16", extra = { [257] = { 4, { 2000 } },
            [278] = { 4, { 2000 } } } })))
    end)

    it("reads damaged files or says that they are, whatever the damage", function()
        local state = 11
        local function random(n)
            state = (state * 1103515245 + 12345) & 0x7fffffff
            return state >> 8 & 0xffff, (state >> 8) % n + 1
        end
        for _, options in ipairs { { method = "lzw", rows = 7 },
            { method = "deflate", tile = { 16, 16 }, big = true },
            { method = "packbits", order = ">", text = "ImageJ=1.5\nimages=2\nslices=2\n" } } do
            options.dtype = "u16"
            local text = encode(sample(2, 20, 30, "u16"), options)
            for _ = 1, 60 do
                local spoilt = text
                for _ = 1, 3 do
                    local value, at = random(#text)
                    -- Half of it where the directories are: at the end, as these files have it.
                    at = value % 2 == 0 and #text - at % 600 or at
                    spoilt = spoilt:sub(1, at - 1) .. string.char(value >> 1 & 255)
                        .. spoilt:sub(at + 1)
                end
                files.write(path "spoilt.tif", spoilt)
                local ok, result = pcall(mb.tiff.read, path "spoilt.tif")
                if ok then
                    result:release()
                else
                    assert.is_truthy(type(result) == "table" and result.code, tostring(result))
                end
            end
        end
    end)

    -- ---- metadata ----

    local function hyperstack(channels, slices, frames)
        return mb.random({ channels * slices * frames, 5, 6 },
            { dtype = "u16", seed = 3, high = 60000 })
    end

    it("keeps ImageJ's lines, resolution and order of pages", function()
        local stack <close> = hyperstack(2, 3, 2)
        local pages = stack:to_table()
        local text = "ImageJ=1.49a\nimages=12\nchannels=2\nslices=3\nframes=2\nhyperstack=true\nmode=composite\nunit=micron\n"
            .. "spacing=0.25\nfinterval=1.5\nloop=false\nmin=3.0\nmax=255.0\n"
        files.write(path "h.tif",
            encode(pages, { dtype = "u16", order = ">", text = text, extra = { [296] = { 3, { 3 } },
            [282] = { 5, string.pack(">I4I4", 1000, 7) },
                [283] = { 5, string.pack(">I4I4", 1000, 9) } } }))
        local source <close> = mb.tiff.open(path "h.tif", { channel = 2, frame = 2 })
        assert.same({ 3, 5, 6 }, source.shape)
        assert.same({ 2, 3, 2 }, { source.meta.channels, source.meta.slices, source.meta.frames })
        local got <close> = mb.volumes.load(source, "host")
        assert.same({ pages[8], pages[10], pages[12] }, got:to_table())
        do
            local out <close> = mb.tiff.create(path "o.tif", { shape = source.shape, dtype = "f32",
                channels = 2, frames = 2,
                meta = source.meta })
            for frame = 1, 2 do
                for channel = 1, 2 do
                    local from <close> = mb.tiff.open(path "h.tif",
                        { channel = channel, frame = frame })
                    local volume <close> = mb.volumes.load(from, "host")
                    local real <close> = volume:cast("f32")
                    mb.volumes.store(out:volume(channel, frame), real)
                end
            end
            out:finish()
        end
        local read <close>, meta = mb.tiff.read(path "o.tif")
        helper.assert_close(stack, read, 0)
        assert.same({ { 1000, 7 }, { 1000, 9 }, 3 }, { meta.resolution.x, meta.resolution.y,
            meta.resolution.unit })
        for _, line in ipairs { "images=12", "channels=2", "slices=3", "frames=2",
            "hyperstack=true", "mode=composite",
            "unit=micron", "spacing=0.25", "finterval=1.5" } do
            assert.matches("\n" .. line .. "\n", meta.description)
        end
        -- The display range is that of these values: one of two has 0.5 % below.
        assert.is_nil(meta.description:find("max=255", 1, true))
        assert.matches("\nloop=false\nmin=%d+\nmax=%d+\n$", meta.description)
        assert.matches("no channel 3",
            (helper.failure(mb.tiff.open, path "h.tif", { channel = 3 })))
    end)

    local function ome(order, pixels, inside)
        return '<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            .. 'UUID="urn:uuid:1"><Image ID="Image:0" Name="n"><Pixels ID="Pixels:0" DimensionOrder="' .. order
            .. '" Type="uint16" SignificantBits="12" SizeX="6" SizeY="5" ' .. pixels
            .. ' PhysicalSizeZ="0.3" PhysicalSizeZUnit="µm" BigEndian="true"><Channel ID="Channel:0:0" Name="DAPI"/>'
            .. '<Channel ID="Channel:0:1"><LightPath/></Channel>' .. inside
                .. "</Pixels></Image></OME>"
    end

    it("keeps OME-XML, with the type and order of the new file", function()
        local stack <close> = hyperstack(2, 3, 2)
        local pages = stack:to_table()
        local text = ome("XYZCT", 'SizeZ="3" SizeC="2" SizeT="2"',
            '<TiffData IFD="0" PlaneCount="12"><UUID FileName="a.tif">urn:uuid:1</UUID></TiffData>')
        files.write(path "e.ome.tif", encode(pages, { dtype = "u16", method = "lzw", text = text }))
        local source <close> = mb.tiff.open(path "e.ome.tif", { channel = 2, frame = 1 })
        assert.same({ 0.3, "µm" }, { source.meta.spacing, source.meta.unit })
        local got <close> = mb.volumes.load(source, "host")
        assert.same({ pages[4], pages[5], pages[6] }, got:to_table())
        do
            local out <close> = mb.tiff.create(path "eo.tif", { shape = source.shape, dtype = "f32",
                channels = 2, frames = 2,
                meta = source.meta })
            local real <close> = got:cast("f32")
            mb.volumes.store(out:volume(2, 1), real)
            out:finish()
        end
        local again <close> = mb.tiff.open(path "eo.tif", { channel = 2, frame = 1 })
        local back <close> = mb.volumes.load(again, "host")
        helper.assert_close(got, back, 0)
        local made = again.meta.description
        for _, part in ipairs { 'Type="float"', 'BigEndian="false"', 'DimensionOrder="XYZCT"',
            'PhysicalSizeZ="0.3"', 'Name="DAPI"',
            '<TiffData IFD="0" PlaneCount="12"/></Pixels>', 'SizeC="2"' } do
            assert.is_truthy(made:find(part, 1, true), part .. " in " .. made)
        end
        for _, part in ipairs { "UUID", "SignificantBits", "uint16" } do
            assert.is_nil(made:find(part, 1, true), part .. " in " .. made)
        end
        -- Planes anywhere, as TiffData says.
        local blocks = {}
        for page = 0, 11 do
            local k = 11 - page -- backwards
            blocks[page + 1] = ('<TiffData FirstC="%d" FirstZ="%d" FirstT="%d" IFD="%d" PlaneCount="1"/>'):format(k % 2, k // 2 % 3,
                k // 6, page)
        end
        files.write(path "b.ome.tif",
            encode(pages, { dtype = "u16", text = ome("XYCZT", 'SizeZ="3" SizeC="2" SizeT="2"',
            table.concat(blocks)) }))
        local turned <close> = mb.tiff.open(path "b.ome.tif", { channel = 1, frame = 1 })
        local volume <close> = mb.volumes.load(turned, "host")
        assert.same({ pages[12], pages[10], pages[8] }, volume:to_table())
    end)

    -- ---- beyond 4 GB: files with holes ----

    -- tiff.create on a file that takes no space.
    local function create_with_holes(name, options)
        local create = core.rawfile.create
        core.rawfile.create = function(...)
            local file = create(...)
            return { resize = function(_, bytes) file:put(bytes - 1, "\0") end,
                put = function(_, ...) file:put(...) end,
                get = function(_, ...) return file:get(...) end,
                write = function(_, ...) file:write(...) end, finish = function() file:finish() end,
                close = function() file:close() end }
        end
        local ok, made = pcall(mb.tiff.create, name, options)
        core.rawfile.create = create
        return ok and made or error(made, 0)
    end

    for _, form in ipairs { "ImageJ's", "BigTIFF", "BigTIFF with ImageJ's text" } do
        it("writes and reads more than 4 GB: " .. form, function()
            local shape = { 1100, 1024, 1024 }
            local meta = form == "BigTIFF"
                and { kind = "ome", order = "ZCT", resolution = { x = { 5, 2 }, y = { 7, 3 },
                unit = 3 },
                text = ome("XYZCT", 'SizeZ="1100" SizeC="1" SizeT="1"', "") }
                    or { resolution = { x = { 5, 2 }, y = { 7, 3 }, unit = 3 } }
            local block <close> = mb.random({ 2, 30, 40 }, { seed = 4 })
            do
                local out <close> = create_with_holes(path "large.tif",
                    { shape = shape, dtype = "f32", meta = meta,
                        tiff_layout = form == "ImageJ's" and "imagej" or nil })
                out:volume():write({ 1098, 500, 600 }, block)
                out:finish()
            end
            local head = files.run(("head -c 4 '%s' | od -An -c"):format(path "large.tif"))
            assert.matches(form == "ImageJ's" and "I +I +%* " or "I +I +%+ ", head)
            local volume <close> = mb.tiff.open(path "large.tif")
            assert.same(shape, volume.shape)
            assert.same({ { 5, 2 }, { 7, 3 }, 3 },
                { volume.meta.resolution.x, volume.meta.resolution.y, volume.meta.resolution.unit })
            local back <close> = volume:read({ 1098, 500, 600 }, { 2, 30, 40 }, mb.device "host")
            helper.assert_close(block, back, 0)
            local python = files.python "tifffile"
            if python then
                local text, ok = files.run(([[%s -c "
import tifffile
t = tifffile.TiffFile('%s')
a = t.series[0]
print(a.shape, a.dtype, a.dataoffset is not None)
m = tifffile.memmap('%s', mode='r')
print('%%.6f' %% float(m[1098, 500, 600]))"]]):format(python, path "large.tif", path "large.tif"))
                assert.is_true(ok, text)
                assert.matches("%(1100, 1024, 1024%) float32", text)
                assert.matches(("%.6f"):format(block:item(1, 1, 1)), text, 1, true)
            end
            os.remove(path "large.tif")
        end)
    end

    it("is read by an independent reader with its metadata, where there is one", function()
        local python = files.python "tifffile"
        if not python then
            pending("no tifffile for Python")
            return
        end
        local stack <close> = mb.random({ 12, 5, 6 }, { seed = 5 })
        do
            local out <close> = mb.tiff.create(path "i.tif", { shape = { 3, 5, 6 }, dtype = "f32",
                channels = 2, frames = 2,
                spacing = 0.4, unit = "um" })
            for frame = 1, 2 do
                for channel = 1, 2 do
                    local from <close> = stack:view({ 6 * (frame - 1) + 3 * (channel - 1) + 1,
                        6 * (frame - 1) + 3 * channel })
                    mb.volumes.store(out:volume(channel, frame), from)
                end
            end
            out:finish()
        end
        mb.npy.write(path "i.npy", stack)
        local text, ok = files.run(([[%s -c "
import tifffile, numpy
t = tifffile.TiffFile('%s')
a = t.series[0].asarray()
b = numpy.load('%s').reshape(2, 2, 3, 5, 6).transpose(0, 2, 1, 3, 4)
print(t.series[0].axes, t.imagej_metadata['spacing'], t.imagej_metadata['unit'], numpy.array_equal(a, b))"]]):format(python,
            path "i.tif", path "i.npy"))
        assert.is_true(ok, text)
        assert.matches("TZCYX 0.4 um True", text)
    end)
end)
