-- Heads of .npy files that mean nothing, or more than there is.

local helper = require "spec.helper"
local files = require "spec.support.files"
local mb = require "moonbeam"

describe("an .npy file", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- A file with this shape as text; `facts`: version, length (that the head states), bytes.
    local function file(shape, facts)
        facts = facts or {}
        local version = facts.version or 1
        local head = ("{'descr': '<u2', 'fortran_order': False, 'shape': (%s), }\n"):format(shape)
        local path = folder .. "/a.npy"
        files.write(path, "\x93NUMPY" .. string.char(version, 0)
            .. string.pack(version > 1 and "<I4" or "<I2", facts.length or #head) .. head
            .. ("\1\2"):rep(facts.elements or 6))
        return path
    end

    it("is read in the versions 1 to 3", function()
        for version = 1, 3 do
            local array <close> = mb.npy.read(file("2, 3", {version = version}))
            assert.same({2, 3}, array.shape)
            assert.equal(0x0201, array:max())
        end
    end)

    it("is refused at once where its head has no meaning", function()
        for _, case in ipairs {
            {"144115188075855896, 4, 16", {elements = 1536}, "more elements than a file can"},
            {"9223372036854775807, 2", nil, "more elements than a file can"},
            {"99999999999999999999, 1", nil, "'99999999999999999999' is no extent"},
            {"-24, -1", nil, "'-24' is no extent"},
            {"2.5, 3", nil, "'2.5' is no extent"},
            {("1, "):rep(40), nil, "40 axes; NumPy has 32 at most"},
            {"2, 3", {version = 9}, "version 9 of the format is not read"},
            {"2, 3", {version = 0}, "version 0 of the format is not read"},
            {"2, 3", {length = 9000}, "the header has 9000 bytes; the file is truncated"},
            {"2, 3", {version = 2, length = 1 << 31}, "10000 are read at most"},
            {"2, 4", nil, "truncated or too long: the header names 16 bytes"},
        } do
            local path = file(case[1], case[2])
            for _, open in ipairs {mb.npy.open, mb.npy.read, mb.images.open} do
                local err = helper.failure(open, path)
                assert.matches(case[3], err, 1, true)
                assert.matches(path, err, 1, true)
            end
        end
    end)

    -- A file of these little-endian integers: descr, the format of string.pack.
    local function integers(shape, descr, form, values)
        local head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n"):format(descr,
            shape)
        local path, data = folder .. "/i.npy", {}
        for i, value in ipairs(values) do
            data[i] = string.pack(form, value)
        end
        files.write(path, "\x93NUMPY\1\0" .. string.pack("<I2", #head) .. head
            .. table.concat(data))
        return path
    end

    it("has integers of every size, whole and by blocks", function()
        for _, case in ipairs {{"|i1", "<i1", "i32"}, {"<i1", "<i1", "i32"},
            {"<i2", "<i2", "i32"}, {"i2", "<i2", "i32"}, {">i2", ">i2", "i32"},
            {"<u4", "<I4", "f64"}, {"<i8", "<i8", "f64"}, {"<u8", "<I8", "f64"}} do
            local values = {}
            for i = 1, 24 do
                values[i] = case[2]:find "I" and 5 * i or 5 * i - 60
            end
            local path = integers("2, 3, 4", case[1], case[2], values)
            local volume <close> = mb.images.open(path)
            assert.equal(case[3], volume.dtype)
            local block <close> = volume:read({1, 1, 1}, {1, 2, 3}, mb.device "host")
            local i = 0
            for y = 1, 2 do
                for x = 1, 3 do
                    i = i + 1
                    local got = helper.flatten(block:to_table())[i]
                    assert.equal(values[12 + 4 * y + x + 1], got, case[1])
                end
            end
            local plane <close> = mb.npy.read(integers("4, 6", case[1], case[2], values))
            assert.same({4, 6}, plane.shape)
            assert.equal(values[24], plane:max())
        end
    end)

    it("is refused where an integer of 64 bits is none of float64, with the value and its place",
        function()
            for value, read in pairs {[1 << 53] = true, [(1 << 53) + 1] = false,
                [(1 << 62) + 1] = false, [1 << 62] = true} do
                for _, kind in ipairs {{"<i8", "<i8"}, {"<u8", "<I8"}} do
                    local path = integers("1, 2, 2", kind[1], kind[2], {1, 2, 3, value})
                    if read then
                        local array <close> = mb.npy.read(path)
                        assert.equal(value, array:max())
                    else
                        local text, err = helper.failure(mb.npy.read, path)
                        assert.equal("unsupported", err.code)
                        assert.matches(("i.npy' has the value %d, at z, y, x = 0, 1, 1 from 0"):format(
                            value), text, 1, true)
                    end
                end
            end
            for value, text in pairs {[-1] = "18446744073709551615",
                [math.maxinteger] = "9223372036854775807"} do
                assert.matches("has the value " .. text, (helper.failure(mb.npy.read,
                    integers("1, 1, 1", "<u8", "<I8", {value}))), 1, true)
            end
            local array <close> = mb.npy.read(integers("1, 1", "<i8", "<i8", {math.mininteger}))
            assert.equal(-0x1p63, array:min())
        end)
end)
