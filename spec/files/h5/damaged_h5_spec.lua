-- Damaged HDF5 files: every one is refused in a line that names it, or read; none ends the program
-- by a signal, though libhdf5 does not survive all of them.

local mb = require "moonbeam"
local files = require "spec.support.files"

describe("a damaged HDF5 file", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/d.h5"
        local f <close> = mb.h5.create(path)
        local a <close> = mb.random({8, 4, 16}, {seed = 1})
        f:write("/exchange/data", a)
        f:write("/exchange/data_white", a)
        f:set_attribute("/exchange/data", "units", "counts")
        f:finish()
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- Walks and reads the damaged file in a program of its own; what it printed, and whether it
    -- ended by itself.
    local function read()
        local output, _, status = files.run_script(folder, ([[
            local mb = require "moonbeam"
            local file <close> = assert(mb.h5.open("%s"))
            for _, object in ipairs(file:walk("/", {attributes = true})) do
                print(object.path)
                if object.kind == "dataset" then
                    local array <close> = file:read(object.path)
                end
            end
            os.exit(0, true)
        ]]):format(path))
        return output, status == 0 or status == 1, status
    end

    -- The file with one byte after position `at` replaced.
    local function damage(bytes, at, value)
        files.write(path, bytes:sub(1, at) .. string.char(value) .. bytes:sub(at + 2))
    end

    it("in a link of a group is refused in a line that names group and file", function()
        local bytes, links = files.read(path), 0
        -- A link message of an object header, 6: its length, flags, three zeros, its version, 1.
        for at in bytes:gmatch("()\6%z[%z\1-\255]%z[%z\1-\255]%z%z%z\1[%z\1-\255]") do
            links = links + 1
            damage(bytes, at + 7, 200)
            local output, ended, status = read()
            assert.is_true(ended, ("damage at %d ends with status %s: %s"):format(at + 7, status,
                output))
            assert.matches("cannot list '/[^']*' of '" .. path:gsub("%p", "%%%0") .. "'", output)
            assert.matches("the file is damaged", output)
        end
        assert.is_true(links >= 2, links .. " links found")
    end)

    it("in a length of an attribute is refused in a line that names object and file", function()
        local bytes = files.read(path)
        -- An attribute message of version 3: 3, flags, three lengths, a character set, the name.
        local name = assert(bytes:find("\3%z[%z\1-\255][%z\1-\255][%z\1-\255][%z\1-\255]" ..
            "[%z\1-\255][%z\1-\255][%z\1]units%z")) + 9
        -- The lengths of the name, its type and its space, each 256 times 89 more, and the extent
        -- of an element.
        for _, at in ipairs { name - 6, name - 4, name - 2, name + 6 + 6 } do
            damage(bytes, at - 1, 89)
            local output, ended, status = read()
            assert.is_true(ended, ("damage at %d ends with status %s: %s"):format(at, status,
                output))
            assert.matches("cannot list the attributes of '/exchange/data' of '" ..
                path:gsub("%p", "%%%0") .. "': one of them is longer than its place", output)
        end
    end)

    it("that libhdf5 crashes on ends the program in a line that names it", function()
        local bytes, tried = files.read(path), 0
        -- Two addresses that are not given, in a row: where a group with many links has them. With
        -- the first, there is no second.
        for at in bytes:gmatch("()" .. ("\255"):rep(16)) do
            tried = tried + 1
            damage(bytes, at - 1, 3)
            local output, ended, status = read()
            assert.is_true(ended, ("damage at %d ends with status %s: %s"):format(at - 1, status,
                output))
            -- which tells of crashes itself
            if status == 1 and not output:find("AddressSanitizer", 1, true) then
                assert.matches(path, output, 1, true)
                assert.is_nil(output:match("\n."), output)
            end
        end
        assert.is_true(tried >= 2, tried .. " tried")
    end)

    it("wherever the damage is", function()
        local bytes, state = files.read(path), 12345
        for _ = 1, 60 do
            state = (state * 1103515245 + 12345) & 0x7fffffff
            local at = state % #bytes
            damage(bytes, at, bytes:byte(at + 1) ~ (1 << state // #bytes % 8))
            local output, ended, status = read()
            assert.is_true(ended, ("damage at %d ends with status %s: %s"):format(at, status,
                output))
        end
    end)
end)
