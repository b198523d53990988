-- TIFF files whose pixels are packed: Zstandard, and samples of 9 to 15 bits with nothing between
-- them. What is wrong with such files is said.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local tiff_encoder = require "spec.support.tiff_encoder"

local encode, sample = tiff_encoder.encode, tiff_encoder.sample

describe("packed TIFF", function()
    local folder, path
    local run = helper.programs_in(function() return folder end)

    before_each(function()
        folder = files.folder()
        path = folder .. "/x.tif"
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- The whole file, and a block of it, as what works in blocks reads it.
    local function check(values, dtype, options)
        files.write(path, encode(values, options))
        local whole <close> = mb.tiff.read(path)
        assert.equal(dtype, whole.dtype)
        assert.same(values, whole:to_table())
        local volume <close> = mb.tiff.open(path)
        local block <close> = volume:read({1, 6, 3}, {2, 25, 31}, mb.device "host")
        local expected <close> = whole:view({2, 3}, {7, 31}, {4, 34})
        helper.assert_close(expected, block, 0)
    end

    local SHAPES <const> = {{}, {order = ">"}, {rows = 5}, {tile = {16, 32}},
        {order = ">", big = true, tile = {16, 16}}}

    local function needs_zstd()
        if core.rawfile.lacks "zstd" then
            pending "no libzstd"
        end
        return not core.rawfile.lacks "zstd"
    end

    it("of Zstandard, by both numbers, is read with every predictor", function()
        if not needs_zstd() then
            return
        end
        for dtype, read in pairs {u8 = "u8", u16 = "u16", i16 = "i32", u32 = "f64", f32 = "f32"} do
            local values = sample(3, 37, 41, dtype)
            for _, shape in ipairs(SHAPES) do
                for _, predictor in ipairs(dtype == "f32" and {1, 3} or {1, 2}) do
                    check(values, read, {dtype = dtype, predictor = predictor, rows = shape.rows,
                        order = shape.order, big = shape.big, tile = shape.tile,
                        method = shape.tile and "zstd_old" or "zstd"})
                end
            end
        end
    end)

    it("with samples of 9 to 15 bits is read, compressed or not", function()
        for bits = 9, 15 do
            local values = sample(3, 37, 41, "b" .. bits)
            for i, shape in ipairs(SHAPES) do
                for _, method in ipairs(bits == 12 and {"none", "lzw", "deflate", "packbits"}
                    or {i % 2 == 0 and "none" or "lzw"}) do
                    check(values, "u16", {dtype = "b" .. bits, method = method, rows = shape.rows,
                        order = shape.order, big = shape.big, tile = shape.tile})
                end
            end
        end
    end)

    it("has the first sample in the high bits of the first byte", function()
        -- Three samples of 12 bits: 0xabc 0xdef 0x123 in 5 bytes, twice.
        local text = encode({{{0, 0, 0}, {0, 0, 0}}}, {dtype = "b12"})
        local rows = "\xab\xcd\xef\x12\x30"
        files.write(path, text:sub(1, 8) .. rows .. rows .. text:sub(19))
        local read <close> = mb.tiff.read(path)
        assert.same({{0xabc, 0xdef, 0x123}, {0xabc, 0xdef, 0x123}}, read:to_table())
    end)

    it("takes the memory for decoding from the pool, known before", function()
        for _, options in ipairs {{dtype = "b12"}, {dtype = "b12", method = "lzw", rows = 16},
            {dtype = "b10", tile = {16, 32}}} do
            files.write(path, encode(sample(4, 64, 79, options.dtype), options))
            local volume <close> = mb.tiff.open(path)
            local function read(device)
                local block <close> = volume:read({1, 3, 5}, {2, 50, 70}, device, device)
                return block.bytes
            end
            local known = mb.plan.peak(read, "host").peak
            assert.equal(known, mb.pool.peak(read, "host", mb.device "host"))
            assert.is_true(known > 2 * 50 * 70 * 2)
        end
    end)

    it("is a series, a scan's frames, and a PSF", function()
        local values = sample(3, 9, 11, "b12")
        for p = 1, 3 do
            files.write(("%s/s_%d.tif"):format(folder, p), encode({values[p]}, {dtype = "b12"}))
        end
        local read <close> = mb.images.read(folder .. "/s_*.tif")
        assert.equal("u16", read.dtype)
        assert.same(values, read:to_table())
        files.write(path, encode(values, {dtype = "b12"}))
        mb.npy.write(folder .. "/x.npy", read)
        local function frames(name)
            local scan <close> = assert(mb.scan.open(name, {angles = {0, 120}, angle_unit = "deg",
                flats = folder .. "/s_1.tif", pixel_size = 1e-6}))
            local own <close> = scan:projections(mb.all, {device = "host"})
            return own:to_table()
        end
        assert.same(frames(folder .. "/x.npy"), frames(path))
        local function deconvolved(psf, name)
            local text, status = run("scripts/deconvolve.lua FOLDER/image.npy %s -o FOLDER/%s -q "
                .. "-d host --iterations 3 --psf-background none", psf, name)
            assert.equal(0, status, text)
            return files.read(folder .. "/" .. name)
        end
        local image <close> = mb.random({4, 16, 18}, {seed = 3, high = 100})
        mb.npy.write(folder .. "/image.npy", image)
        assert.equal(deconvolved(folder .. "/x.npy", "a.npy"), deconvolved(path, "b.npy"))
    end)

    it("is refused by name where it does not add up", function()
        local function refused(text, code, message)
            files.write(path, text)
            local told, problem = helper.failure(mb.tiff.read, path)
            assert.equal(code, problem.code, told)
            assert.matches(message, told, 1, true)
        end
        local values = sample(2, 20, 30, "b12")
        for _, predictor in ipairs {2, 3} do
            refused(encode(values, {dtype = "b12", method = "lzw", extra = {[317] = {3,
                {predictor}}}}), "unsupported", ("predictor %d for samples of 12 bits"):format(
                predictor))
        end
        -- Two bytes for each sample, which the tags call 12 bits.
        refused(encode(sample(2, 20, 30, "u16"), {dtype = "u16", extra = {[258] = {3, {12}}}}),
            "unsupported", "20 x 30 samples of 12 bits has 1200 bytes, 2 for each sample, and "
            .. "packed samples have 900; save the file with 16 bits")
        refused(encode(values, {dtype = "b12", extra = {[339] = {3, {2}}}}), "unsupported",
            "12 bits of sample format 2")
        refused(encode(values, {dtype = "b12", extra = {[266] = {3, {2}}}}), "unsupported",
            "FillOrder 2")
        -- Cut off: of the pixels, of a compressed strip, of strips whose sizes are too small.
        refused(encode(values, {dtype = "b12", extra = {[279] = {4, {899}}}}), "io",
            "strip or tile 1 of a page has 899 bytes at offset 8, and its rows take 900 bytes")
        -- Not all in the file, which is another fault than bytes that are wrong.
        for _, method in ipairs {"lzw", "deflate", "packbits"} do
            local long = encode(values, {dtype = "b12", method = method, extra = {[279] = {4,
                {100000}}}})
            refused(long, "io", ("the pixels of a page end at 100008, the file at %d"):format(#long))
        end
        refused(encode(values, {dtype = "b12", method = "lzw", extra = {[279] = {4, {40}}}}), "io",
            "strip or tile 1 of a page is incomplete")
        if not core.rawfile.lacks "zstd" then
            local good = encode(sample(2, 20, 30, "u16"), {dtype = "u16", method = "zstd"})
            refused(good:sub(1, 8) .. "\0" .. good:sub(10), "io",
                "strip or tile 1 of a page is incomplete")
            refused(encode(sample(2, 20, 30, "u16"), {dtype = "u16", method = "zstd",
                extra = {[279] = {4, {100}}}}), "io", "strip or tile 1 of a page is incomplete")
            -- A frame larger than its strip.
            refused(encode(sample(2, 20, 30, "u16"), {dtype = "u16", method = "zstd",
                extra = {[257] = {4, {10}}}}), "io", "strip or tile 1 of a page is incomplete")
        end
    end)

    it("says where libzstd is missing", function()
        files.write(path, encode(sample(1, 5, 6, "u16"), {dtype = "u16", method = "zstd"}))
        local lacks = core.rawfile.lacks
        core.rawfile.lacks = function() return "needs a library" end
        local told, problem = helper.failure(mb.tiff.read, path)
        core.rawfile.lacks = lacks
        assert.equal("unsupported", problem.code)
        assert.matches("Zstandard (method 50000), which needs a library", told, 1,
            true)
    end)
end)
