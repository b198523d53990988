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
end)
