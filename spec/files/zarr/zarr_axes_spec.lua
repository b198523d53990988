-- Zarr arrays whose axes are in any order are volumes (z, y, x), by the names of the axes.
local files = require "spec.support.files"
local json = require "moonbeam.internal.json"
local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local EXTENTS <const> = {t = 2, c = 3, z = 4, y = 5, x = 7}
local FACTORS <const> = {t = 101, c = 53, z = 17, y = 7, x = 1}

-- All orders of the letters of a text.
local function orders(text)
    if #text < 2 then
        return {text}
    end
    local list = {}
    for i = 1, #text do
        for _, rest in ipairs(orders(text:sub(1, i - 1) .. text:sub(i + 1))) do
            list[#list + 1] = text:sub(i, i) .. rest
        end
    end
    return list
end

local function value_at(at)
    local value = 0
    for name, factor in pairs(FACTORS) do
        value = value + factor * (at[name] or 0)
    end
    return value % 251 % 120
end

describe("axes of a Zarr array", function()
    local folder
    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- An array of format 3 with these axes, in chunks of 2 elements, along x of 3.
    local function written(names, dtype, form)
        local root = ("%s/%s_%s.zarr"):format(folder, names, dtype)
        assert(mb.system.mkdir(root))
        local shape, chunks, letters = {}, {}, {}
        for letter in names:gmatch "." do
            letters[#letters + 1] = letter
            shape[#letters], chunks[#letters] = EXTENTS[letter:lower()], letter:lower() == "x"
                and 3 or 2
        end
        files.write(root .. "/zarr.json", json({zarr_format = 3, node_type = "array",
            shape = shape, data_type = dtype, fill_value = 0, dimension_names = letters,
            chunk_grid = {name = "regular", configuration = {chunk_shape = chunks}},
            chunk_key_encoding = {name = "v2", configuration = {separator = "."}},
            codecs = {{name = "bytes", configuration = {endian = "big"}}}}, {}))
        local function chunk(key)
            local parts, at = {}, {}
            local function along(axis)
                if axis > #shape then
                    parts[#parts + 1] = string.pack(form, value_at(at))
                    return
                end
                for i = 0, chunks[axis] - 1 do
                    at[letters[axis]:lower()] = key[axis] * chunks[axis] + i
                    along(axis + 1)
                end
            end
            along(1)
            files.write(root .. "/" .. table.concat(key, "."), table.concat(parts))
        end
        local function keys(axis, key)
            if axis > #shape then
                return chunk(key)
            end
            for i = 0, (shape[axis] - 1) // chunks[axis] do
                key[axis] = i
                keys(axis + 1, key)
            end
        end
        keys(1, {})
        return root
    end

    -- The volume of a channel and time, and a block of it, in the memory that is planned.
    local function check(root, names, options, at)
        local volume <close> = mb.images.open(root, options)
        local axes = names:lower():find "z" and {"z", "y", "x"} or {"y", "x"}
        local extents = tables.mapped(axes, function(name) return EXTENTS[name] end)
        assert.same(extents, volume.shape, root)
        for _, skip in ipairs {0, 1} do
            local first = tables.mapped(axes, function() return skip end)
            local count = tables.mapped(extents, function(extent) return extent - 2 * skip end)
            local block <close> = volume:read(first, count, mb.device "host")
            local got <close> = block:cast "f32"
            local index = {table.unpack(first)}
            local function along(axis, place)
                if axis > #axes then
                    assert.equal(value_at(at), got:item(table.unpack(place)), root)
                    return
                end
                for i = 1, count[axis] do
                    place[axis], at[axes[axis]] = i, index[axis] + i - 1
                    along(axis + 1, place)
                end
            end
            along(1, {})
            local function read(device)
                volume:read(first, count, device, device):release()
            end
            assert.equal(mb.plan.peak(read, "host").peak, mb.pool.peak(read, "host",
                mb.device "host"))
        end
    end

    it("of space are in any order", function()
        for _, names in ipairs(orders "zyx") do
            check(written(names, "uint16", ">I2"), names, {}, {})
        end
        for _, names in ipairs {"yx", "xy", "XY"} do
            check(written(names, "int16", ">i2"), names, {}, {})
        end
    end)

    it("of channels and times are anywhere", function()
        for i, names in ipairs {"zcyx", "yxc", "xyzct", "ctxyz", "ytx", "ZCYX", "xtycz"} do
            local root = written(names, i % 2 == 0 and "uint8" or "float32",
                i % 2 == 0 and "B" or ">f")
            local options, at = {}, {}
            if names:lower():find "c" then
                options.channel, at.c = 3, 2
            end
            if names:lower():find "t" then
                options.frame, at.t = 2, 1
            end
            check(root, names, options, at)
        end
    end)

    it("go with metadata that mean something, or are refused with one line", function()
        local root = written("zyx", "uint16", ">I2")
        local text = files.read(root .. "/zarr.json")
        local function refused(what, value, problem)
            local changed, count = text:gsub('("' .. what .. '":%s*)("?)[^,\n}]*',
                function(before) return before .. value end, 1)
            assert.equal(1, count)
            files.write(root .. "/zarr.json", changed)
            local ok, message = pcall(mb.images.open, root)
            assert.is_false(ok, changed)
            assert.matches(problem, tostring(message), 1, true)
            assert.is_nil(tostring(message):find "\n")
        end
        for _, value in ipairs {"-5", '"NaN"', "null", "{}", '"abc"', "70000", "1.5", "true"} do
            refused("fill_value", value, "which no element of type u16 is")
        end
        refused("endian", '"middle"', "bytes of the order 'middle' are not read")
        refused("zarr_format", "9", "zarr_format is '9' instead of 3")
        refused("separator", '"../"', "chunk keys with the separator '../' are not read")
        files.write(root .. "/zarr.json", text)
        mb.images.open(root):close()
        os.remove(root .. "/zarr.json")
        files.run(("mkfifo '%s/zarr.json'"):format(root))
        local ok, message = pcall(mb.images.open, root)
        assert.is_false(ok)
        assert.matches("it is no file", tostring(message), 1, true)
    end)

    it("give all pages in the order of the axes of channels and times", function()
        local volume <close> = mb.images.open(written("ycxtz", "uint8", "B"))
        assert.same({24, 5, 7}, volume.shape)
        assert.same({3, 2, 4}, {volume.meta.channels, volume.meta.frames, volume.meta.slices})
        local block <close> = volume:read({6, 1, 2}, {15, 3, 4}, mb.device "host")
        for page = 6, 20 do -- c, t, z
            local at = {c = page // 8, t = page // 4 % 2, z = page % 4}
            for y = 1, 3 do
                for x = 2, 5 do
                    at.y, at.x = y, x
                    assert.equal(value_at(at), block:item(page - 5, y, x - 1))
                end
            end
        end
    end)
end)
