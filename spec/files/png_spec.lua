-- PNG pictures: bytes, window, and files that are complete or not there.
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

-- The header of a PNG file: width, height, bits, color type.
local function header(name)
    local bytes = files.read(name)
    assert.equal("\x89PNG\r\n\x1a\n", bytes:sub(1, 8))
    assert.equal("IEND", bytes:sub(-8, -5))
    return string.unpack(">I4I4BB", bytes, 17)
end

describe("picture", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/a.png"
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- The pixels of a PNG as text "1 2 3", decoded by libpng's tools or Python; or nil.
    local function pixels()
        local python = files.python "PIL.Image"
        if python then
            local output, ok = files.run(([==[%s -c '
from PIL import Image
import numpy
print(*numpy.array(Image.open("%s")).ravel().tolist())']==]):format(python, path))
            assert(ok, output)
            return (output:gsub("%s+$", ""))
        end
        local output, ok = files.run(("pngtopnm -plain '%s' 2>/dev/null"):format(path))
        if not ok then
            return nil
        end
        local text = output:gsub("^P%d%s+%d+%s+%d+%s+%d+", ""):gsub("%s+", " ")
        return text:match("^%s*(.-)%s*$")
    end

    local function check_pixels(expected)
        local got = pixels()
        if not got then
            pending "neither PIL (python3-pil) nor pngtopnm (netpbm) is installed"
        end
        assert.equal(expected, got)
    end

    it("of u8 and u16 keeps the values", function()
        local a <close> = mb.array({ { 0, 1, 2 }, { 253, 254, 255 } }, { dtype = "u8" })
        mb.picture.write_png(path, a)
        local width, height, bits, color = header(path)
        assert.same({ 3, 2, 8, 0 }, { width, height, bits, color })
        check_pixels "0 1 2 253 254 255"
        local b <close> = mb.array({ { 0, 1 }, { 300, 65535 } }, { dtype = "u16" })
        mb.picture.write_png(path, b, { overwrite = true })
        assert.equal(16, (select(3, header(path))))
        check_pixels "0 1 300 65535"
    end)

    it("of three channels is colored", function()
        local a <close> = mb.array({ { { 1, 2, 3 }, { 4, 5, 6 } } }, { dtype = "u8" })
        mb.view.save(path, a)
        assert.equal(2, (select(4, header(path))))
        check_pixels "1 2 3 4 5 6"
    end)

    it("is windowed", function()
        local a <close> = mb.array { { -1, 0, 0.5 }, { 1, 7, 0 / 0 } }
        local low, high = mb.view.save(path, a, { range = { 0, 1 } })
        assert.same({ 0, 1 }, { low, high })
        check_pixels "0 0 128 255 255 0"
        mb.view.save(path, a, { range = { 0, 1 }, bits = 16, overwrite = true })
        assert.equal(16, (select(3, header(path))))
        check_pixels "0 0 32768 65535 65535 0"
        mb.view.save(path, a, { range = { 0, 1 }, gamma = 2, legend = "slice 1", overwrite = true })
        assert.is_truthy(files.read(path):find("slice 1; black 0, white 1", 1, true))
        check_pixels "0 0 180 255 255 0"
    end)

    it("takes strided views", function()
        local a <close> = mb.array({ { 1, 2, 3 }, { 4, 5, 6 } }, { dtype = "u8" })
        local t <close> = a:transpose()
        mb.picture.write_png(path, t)
        check_pixels "1 4 2 5 3 6"
    end)

    it("of percentiles leaves out what is not finite", function()
        local a <close> = mb.array { 5, 1, 0 / 0, 4, 2, math.huge, 3, -math.huge }
        local values, finite = mb.picture.percentiles(a, { 0, 25, 50, 90, 100 })
        assert.equal(5, finite)
        for i, expected in ipairs { 1, 2, 3, 4.6, 5 } do
            assert.near(expected, values[i], 1e-6)
        end
        local none <close> = mb.full({ 3, 3 }, 0 / 0)
        assert.is_nil((mb.picture.percentiles(none, { 50 })))
        assert.same({ 0, 1 }, { mb.view.save(path, none) })
        local flat <close> = mb.full({ 3, 3 }, 7)
        mb.view.save(path, flat, { overwrite = true })
        check_pixels "0 0 0 0 0 0 0 0 0"
    end)

    it("agrees with sorting on many values", function()
        local a <close> = mb.random({ 1001 }, { seed = 3 })
        local sorted = a:to_table()
        table.sort(sorted)
        local values = mb.picture.percentiles(a, { 0, 0.1, 1, 37.5, 99.9, 100 })
        for i, percent in ipairs { 0, 0.1, 1, 37.5, 99.9, 100 } do
            local at = percent / 100 * 1000
            local below = math.floor(at + 1e-9)
            local low, high = sorted[below + 1], sorted[math.min(below + 2, 1001)]
            assert.near(low + (at - below) * (high - low), values[i], 1e-7)
        end
    end)

    it("replaces an old one when it may, and leaves nothing where it fails", function()
        files.write(path, "old")
        local a <close> = mb.zeros({ 2, 2 }, { dtype = "u8" })
        local cube <close> = mb.zeros { 2, 2, 2 }
        for _, refused in ipairs {
            { mb.picture.write_png, a }, { mb.view.save, a }, { mb.view.projections, cube },
        } do
            assert.matches("already exists", (helper.failure(refused[1], path, refused[2])))
            assert.equal("old", files.read(path))
        end
        mb.picture.write_png(path, a, { overwrite = true })
        mb.view.projections(path, cube, { overwrite = true })
        assert.same({ "a.png" }, files.list(folder))
        local text, err = helper.failure(mb.picture.write_png, folder .. "/no/a.png", a)
        assert.equal("io", err.code)
        assert.is_truthy(text:find("No such file"), text)
        local disk = files.small_disk(folder, "64k")
        if not disk then
            pending "a small file system cannot be mounted here (not root)"
        end
        local big <close> = mb.random { 512, 512 }
        local ok, failed = pcall(mb.view.save, disk .. "/a.png", big, { bits = 16 })
        local left = files.list(disk)
        files.unmount(disk)
        assert.is_false(ok)
        assert.equal("io", failed.code)
        assert.same({}, left)
    end)

    it("rejects what is no picture", function()
        local function bad(words, f, ...)
            local text = helper.failure(f, ...)
            assert.is_truthy(text:find(words, 1, true), text)
        end
        local line <close> = mb.zeros { 4 }
        local empty <close> = mb.zeros { 0, 4 }
        local complex <close> = mb.zeros({ 2, 2 }, { dtype = "c64" })
        local plain <close> = mb.zeros { 2, 2 }
        bad("row, column", mb.picture.write_png, path, line, { low = 0, high = 1 })
        bad("row, column", mb.view.save, path, line)
        bad("pixels", mb.picture.write_png, path, empty, { low = 0, high = 1 })
        bad("complex", mb.view.save, path, complex)
        bad("low and high", mb.picture.write_png, path, plain)
        bad("bits", mb.view.save, path, plain, { bits = 12 })
        bad("{low, high}", mb.view.save, path, plain, { range = { 2, 1 } })
        bad("percentiles", mb.view.save, path, plain, { percentile = { 0, 1 } })
        bad("from 0 to 100", mb.view.save, path, plain, { percentiles = { 0, 101 } })
        assert.same({}, files.list(folder))
    end)
end)
