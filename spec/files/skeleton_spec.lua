-- The skeleton of a result: complete but for the volume's bytes, closed, and these at known places.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local SHAPE = {6, 20, 30}

describe("the skeleton of a result", function()
    local folder, path, values

    before_each(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
        values = mb.random(SHAPE, {seed = 7, device = "host"})
    end)
    after_each(function()
        values:release()
        files.remove(folder)
    end)

    local function create(options)
        options = options or {}
        options.shape = SHAPE
        return mb.result.create(path, options)
    end

    -- A file without its volume's bytes.
    local function head(place)
        local bytes = files.read(place.path)
        return bytes:sub(1, place.offset) .. bytes:sub(place.offset + place.bytes + 1), #bytes
    end

    -- How many descriptors of this process lead to a file.
    local function descriptors(name)
        collectgarbage()
        local text = files.run(("ls -l /proc/%d/fd"):format(mb.system.pid()))
        local _, count = text:gsub("%-> " .. name:gsub("%p", "%%%0"), "")
        return count
    end

    local function stored(name)
        local file <close> = assert(mb.h5.open(name))
        local got <close> = file:read("/entry/data/data")
        return got:to_table()
    end

    it("is there when it is created, and closed", function()
        local result <close> = create {title = "tooth", parameters = {filter = "ramp"}}
        local place = result:skeleton()[1]
        assert.equal(6 * 20 * 30 * 4, place.bytes)
        assert.same({1, 6}, {place.first, place.last})
        assert.equal(2, descriptors(place.path)) -- the name's, and the bytes': none of libhdf5
        local file <close> = assert(mb.h5.open(place.path))
        assert.equal("tooth", file:value "/entry/title")
        assert.equal("ramp", file:value "/entry/reconstruction/parameters/filter")
        assert.same(SHAPE, file:dataset("/entry/data/data").shape)
        assert.equal(6, #file:value "/entry/data/z")
        assert.is_false(file:exists "/entry/end_time")
    end)

    for _, how in ipairs {"written", "carried"} do
        it("stays as it is while slices are " .. how, function()
            for _, options in ipairs {{}, {chunks = {1, 20, 30}}, {chunks = {4, 7, 30}}} do
                options.overwrite = true
                local result <close> = create(options)
                local place = result:skeleton() and result:skeleton()[1]
                assert.equal(options.chunks == nil, place ~= nil)
                local before, length = "", nil
                if place then
                    before, length = head(place)
                end
                local carrier <close> = core.carrier.open {device = "host", writing = true,
                    threads = 2, pinned = "1Mi"}
                for _, z in ipairs {5, 1, 3} do
                    local two <close> = values:view {z, z + 1}
                    if how == "written" then
                        result:write(two, z)
                    else
                        result:carry(carrier, two, z)
                    end
                    result:provenance {["slices_" .. z] = 2}
                end
                carrier:finish()
                if how == "carried" then
                    assert.equal(values.bytes, carrier:stats().raw_bytes)
                end
                if place then
                    local after, now = head(place)
                    assert.is_true(before == after)
                    assert.equal(length, now)
                    local file = assert(io.open(place.path, "rb"))
                    file:seek("set", place.offset)
                    local flat <close> = mb.from_string(file:read(place.bytes), SHAPE,
                        {dtype = "f32", device = "host"})
                    file:close()
                    assert.same(values:to_table(), flat:to_table())
                end
                result:finish()
                assert.same(values:to_table(), stored(path))
                local file <close> = assert(mb.h5.open(path))
                assert.equal(2, file:value "/entry/provenance/slices_3")
                assert.is_true(file:exists "/entry/end_time")
            end
        end)
    end

    it("is opened again for what has no known place", function()
        local result <close> = create {dtype = "f64"}
        result:write(values, 1)
        assert.is_true(result.file.is_open)
        result:finish()
        assert.same(values:to_table(), stored(path))
        local packed <close> = create {deflate = 1, overwrite = true}
        assert.is_nil(packed:skeleton())
        packed:write(values, 1)
        packed:provenance {peak = 1}
        packed:finish()
        assert.same(values:to_table(), stored(path))
    end)

    it("refuses at once what could not be written in the end", function()
        local result <close> = create {parameters = {filter = "ramp"}}
        result:provenance {peak = 1}
        assert.matches("'/entry/provenance/peak' already exists",
            (helper.failure(result.provenance, result, {peak = 2})))
        assert.matches("'/entry/reconstruction/parameters/filter' already exists",
            (helper.failure(result.parameters, result, {filter = "hann"})))
        result:write(values, 1)
        result:finish()
        local file <close> = assert(mb.h5.open(path))
        assert.equal(1, file:value "/entry/provenance/peak")
    end)

    it("never gets its name where the bytes are not those that were written", function()
        local result <close> = create()
        result:write(values, 1)
        local place = result:skeleton()[1]
        local file = assert(io.open(place.path, "r+b"))
        file:seek("set", place.offset)
        file:write(("\0"):rep(place.bytes))
        file:close()
        assert.matches("differ from what was written", (helper.failure(result.finish, result)))
        result:close()
        assert.same({}, files.list(folder))
    end)

    it("goes when it is abandoned, and when the process ends", function()
        local result = create()
        result:write(values, 1)
        result:close()
        result:close()
        assert.matches("has been closed", (helper.failure(result.write, result, values, 1)))
        assert.same({}, files.list(folder))
        files.run_script(folder, ([[
            local mb = require "moonbeam"
            local result = mb.result.create("%s", {shape = {6, 20, 30}})
            local zeros = mb.zeros {6, 20, 30}
            result:write(zeros, 1)
            os.exit(1)]]):format(path))
        assert.same({"script.lua"}, files.list(folder))
    end)

    it("of a volume in several files is in each of them", function()
        local result <close> = create {slices_per_file = 4}
        assert.same({}, result:skeleton())
        result:prepare(1, 6)
        local list = result:skeleton()
        assert.equal(2, #list)
        assert.same({5, 6}, {list[2].first, list[2].last})
        assert.equal(2 * 20 * 30 * 4, list[2].bytes)
        assert.equal(2, descriptors(list[1].path))
        local before = head(list[1])
        local first <close> = values:view {1, 3}
        result:write(first, 1)
        assert.is_true(before == head(list[1]))
        local rest <close> = values:view {4, 6}
        result:write(rest, 4)
        assert.same({}, result:skeleton()) -- they are complete
        result:finish()
        assert.same(values:to_table(), stored(path))
    end)

    it("is read at its places, too", function()
        local file <close> = core.h5.scratch(folder)
        local dataset = file:create_dataset("/data", {shape = SHAPE, early = true})
        dataset:write(values)
        assert.is_true(file:rest())
        assert.is_true(dataset.is_open)
        local expected = values:to_table()
        local carrier <close> = core.carrier.open {device = "host", threads = 2, pinned = "1Mi"}
        local got <close> = mb.empty(SHAPE, {device = "host"})
        carrier:carry(dataset, got)
        carrier:finish()
        assert.same(expected, got:to_table())
        assert.equal(got.bytes, carrier:stats().raw_bytes)
        local rows <close> = dataset:read({2, 3}, {5, 9})
        local view <close> = values:view({2, 3}, {5, 9})
        assert.same(view:to_table(), rows:to_table())
        assert.equal(1 + 1, descriptors(folder .. "/")) -- still at rest
        local columns <close> = dataset:read(mb.all, mb.all, {3, 4}) -- opens it again
        local part <close> = values:view(mb.all, mb.all, {3, 4})
        assert.same(part:to_table(), columns:to_table())
        assert.is_true(descriptors(folder .. "/") > 2)
    end)

    it("has no times in its headers", function()
        local function make(name)
            local file <close> = mb.h5.create(name)
            file:write("/a", values)
            file:write("/group/b", 5)
            local early = file:create_dataset("/c", {shape = {4, 4}, early = true})
            early:write(mb.zeros({4, 4}, {device = "host"}))
            file:create_virtual("/d", {shape = {4, 4}, sources = {
                {file = ".", path = "/c", first = 1, last = 4}}})
            file:finish("/end")
            return (files.read(name):gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d", "TIME"))
        end
        local one = make(folder .. "/a.h5")
        mb.system.sleep(1.1)
        assert.is_true(one == make(folder .. "/b.h5"))
    end)
end)
