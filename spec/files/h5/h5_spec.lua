-- HDF5 files: round trips, hyperslabs, values, bad files, and the protocol of created files.
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

local dtypes = { "u8", "u16", "i32", "f16", "f32", "f64", "c64", "c128" }

-- An array whose elements are small integers, exact in every type.
local function counting(shape, dtype)
    local count = 1
    for _, extent in ipairs(shape) do
        count = count * extent
    end
    local flat <close> = mb.arange(0, count - 1, { dtype = "f32" })
    local real <close> = flat:reshape(table.unpack(shape))
    return real:cast(dtype or "f32")
end

local function equal(a, b)
    local largest, _, consistent = helper.difference(a, b)
    return consistent and largest == 0
end

describe("h5", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/a.h5"
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- A file with a 5 x 6 x 7 dataset /d of u16, open for reading.
    local function sample()
        local f <close> = mb.h5.create(path)
        local a <close> = counting({ 5, 6, 7 }, "u16")
        f:write("/d", a)
        f:finish()
        return assert(mb.h5.open(path))
    end

    describe("round trip", function()
        for _, dtype in ipairs(dtypes) do
            it("of " .. dtype .. ", contiguous, chunked and compressed", function()
                local a <close> = counting({ 4, 3, 20 }, dtype)
                local f <close> = mb.h5.create(path)
                f:write("/plain", a)
                f:write("/chunked", a, { chunks = { 2, 3, 7 } })
                f:write("/packed", a, { deflate = 4 })
                f:finish()
                local g <close> = assert(mb.h5.open(path))
                for _, name in ipairs { "/plain", "/chunked", "/packed" } do
                    local d <close> = g:dataset(name)
                    assert.equal(dtype, d.dtype)
                    assert.same({ 4, 3, 20 }, d.shape)
                    local b <close> = d:read()
                    assert.equal(dtype, b.dtype)
                    assert.is_true(equal(a, b), name)
                end
                assert.same({ 2, 3, 7 }, g:dataset("/chunked").chunks)
                assert.is_nil(g:dataset("/plain").chunks)
                assert.equal("shuffle, deflate(4)", g:dataset("/packed").filters)
            end)
        end

        it("keeps NaN, infinities and the smallest numbers", function()
            local values = { 0 / 0, math.huge, -math.huge, 1e-42, -0.0, 3.5 }
            local a <close> = mb.array(values, { dtype = "f32" })
            local f <close> = mb.h5.create(path)
            f:write("/a", a, { deflate = 1 })
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            local b <close> = g:read("/a")
            assert.equal(a:to_string(), b:to_string())
        end)

        it("of empty arrays and scalars", function()
            local empty <close> = mb.zeros({ 0, 4 })
            local scalar <close> = mb.full({}, 2.5)
            local f <close> = mb.h5.create(path)
            f:write("/empty", empty)
            f:write("/scalar", scalar)
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            local a <close> = g:read("/empty")
            local b <close> = g:read("/scalar")
            assert.same({ 0, 4 }, a.shape)
            assert.equal(2.5, b:item())
        end)

        it("of more than one piece", function()
            local a <close> = mb.random({ 9, 1024, 1100 }, { seed = 1 })
            local f <close> = mb.h5.create(path)
            f:write("/a", a)
            f:write("/b", a, { chunks = { 4, 512, 1100 } })
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            for _, name in ipairs { "/a", "/b" } do
                local b <close> = g:read(name)
                local difference <close> = a - b
                assert.equal(0, difference:norm())
                local part <close> = g:read(name, { 3, 9 }, mb.all, { 2, 1100 })
                local same <close> = a:view({ 3, 9 }, mb.all, { 2, 1100 })
                local rest <close> = part - same
                assert.equal(0, rest:norm())
            end
        end)

        it("of strided views", function()
            local a <close> = counting({ 4, 5, 6 })
            local view <close> = a:permute(3, 1, 2)
            local part <close> = view:view({ 2, 5 })
            local f <close> = mb.h5.create(path)
            f:write("/a", part)
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            local b <close> = g:read("/a")
            assert.same({ 4, 4, 5 }, b.shape)
            assert.is_true(equal(part, b))
        end)
    end)

    describe("hyperslabs", function()
        it("select like views", function()
            local f <close> = sample()
            local a <close> = f:read("/d")
            local cases = {
                {}, { { 2, 4 } }, { mb.all, { -3, -1 } }, { 2 }, { -1, mb.all, 3 },
                { mb.all, mb.all, { 1, 7, 2 } }, { { 1, 5, 3 }, 6, { 2, 2 } }, { 1, 2, 3 },
                { { 4 } }, { { nil, 2 } },
            }
            for i, ranges in ipairs(cases) do
                local expected <close> = a:view(table.unpack(ranges))
                local got <close> = f:read("/d", table.unpack(ranges))
                assert.same(expected.shape, got.shape, "case " .. i)
                assert.is_true(equal(expected, got), "case " .. i)
            end
        end)

        it("beyond the extent are errors", function()
            local f <close> = sample()
            for _, ranges in ipairs {
                { { 1, 6 } }, { 6 }, { 0 }, { -6 }, { mb.all, { 0, 2 } }, { mb.all, { 5, 3 } },
                { { 1, 2, 0 } }, { { 3, 1, -1 } }, { 1, 1, 1, 1 }, { "x" },
            } do
                local text = helper.failure(f.read, f, "/d", table.unpack(ranges))
                assert.is_truthy(text:find("axis") or text:find("rank"), text)
            end
        end)

        it("convert, but do not round", function()
            local f <close> = sample()
            local a <close> = f:read("/d", { 1, 2 }, 1, { dtype = "f64" })
            assert.equal("f64", a.dtype)
            assert.equal(43, a:item(2, 2))
            local g <close> = mb.h5.create(folder .. "/b.h5")
            local x <close> = mb.full({ 3 }, 1.5)
            g:write("/x", x)
            local text = helper.failure(g.read, g, "/x", { dtype = "u8" })
            assert.is_truthy(text:find("cast"), text)
        end)

        it("go into a given array", function()
            local f <close> = sample()
            local out <close> = mb.zeros({ 2, 2, 7 }, { dtype = "f32" })
            local half <close> = out:view({ 2, 2 })
            f:read("/d", { 3, 3 }, { 1, 2 }, { out = half })
            assert.equal(0, out:item(1, 2, 7))
            assert.equal(2 * 42 + 13, out:item(2, 2, 7))
            local text = helper.failure(f.read, f, "/d", { out = out })
            assert.is_truthy(text:find("shape"), text)
        end)

        it("are written slab by slab", function()
            local f <close> = mb.h5.create(path)
            local d <close> = f:create_dataset("/v", { shape = { 6, 3, 4 }, dtype = "f32" })
            for z = 6, 1, -2 do
                local a <close> = mb.full({ 2, 3, 4 }, z)
                d:write(a, { z - 1, z })
            end
            local one <close> = mb.full({ 3, 4 }, 50)
            d:write(one, 3)
            local wrong <close> = mb.zeros { 4, 3 }
            assert.is_truthy(helper.failure(d.write, d, wrong, 3):find("shape"))
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            local v <close> = g:read("/v", mb.all, 1, 1)
            assert.same({ 2, 2, 50, 4, 6, 6 }, v:to_table())
        end)
    end)

    describe("values", function()
        it("come back as they were", function()
            local f <close> = mb.h5.create(path)
            local values = {
                number = 2.5, integer = 7, text = "µ-CT", empty = "", list = { 1, 2, 3 },
                reals = { 0.5, 1 }, words = { "z", "y", "x" },
            }
            for name, value in pairs(values) do
                f:write("/values/" .. name, value)
                f:set_attribute("/values", name, value)
            end
            f:set_attribute("/values", "number", "replaced")
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            for name, value in pairs(values) do
                assert.same(value, g:value("/values/" .. name))
            end
            assert.equal("integer", math.type(g:value("/values/integer")))
            values.number = "replaced"
            assert.same(values, g:attributes("/values"))
            assert.equal("µ-CT", g:attribute("/values", "text"))
            assert.is_nil(g:attribute("/values", "nothing"))
        end)

        it("are written with little memory, also strings", function()
            -- A program that asks the system for each block of 128 KiB, and gives it back.
            local output, ok = files.run_script(folder, ([[
                local mb = require "moonbeam"
                local f <close> = mb.h5.create(%q)
                f:write("/values/first", "text")
                local function faults() -- 1 MiB of zeros has 256
                    local stat <close> = io.open "/proc/self/stat" -- "number (name) state ..."
                    return tonumber(stat:read "a":match("^.*%%)" .. (" %%S+"):rep(7) .. " (%%d+)"))
                end
                local before = faults()
                for i = 1, 40 do
                    f:write("/values/text" .. i, {"one", ("two"):rep(1000)})
                end
                assert(faults() - before < 40 * 100, faults() - before)
                local many = {}
                for i = 1, 30000 do
                    many[i] = "s" .. i
                end
                f:write("/values/many", many)
                f:finish()
            ]]):format(path), "MALLOC_MMAP_THRESHOLD_=131072")
            assert.is_true(ok, output)
            local g <close> = assert(mb.h5.open(path))
            assert.same({"one", ("two"):rep(1000)}, g:value "/values/text40")
            local many = g:value "/values/many"
            assert.same({30000, "s1", "s30000"}, {#many, many[1], many[30000]})
        end)

        it("are refused when they are neither numbers nor strings", function()
            local f <close> = mb.h5.create(path)
            for _, value in ipairs { {}, print, { 1, "a" }, { { 1 } } } do
                if type(value) ~= "table" or #value > 0 then
                    assert.is_truthy(helper.failure(f.write, f, "/x", value):find("must be"))
                end
            end
        end)
    end)

    describe("structure", function()
        it("is walked, links and cycles included", function()
            local f <close> = mb.h5.create(path)
            f:group("/a/b", "NXdata")
            f:write("/a/b/d", { 1, 2 })
            f:link("/a/b/d", "/hard")
            f:link("/a/b/d", "/soft", { soft = true })
            f:link("/gone", "/dangling", { soft = true })
            f:link("/a", "/a/b/cycle")
            f:finish()
            local g <close> = assert(mb.h5.open(path))
            local found = {}
            for _, object in ipairs(g:walk("/", { attributes = true })) do
                found[object.path] = object
            end
            assert.equal("group", found["/a/b"].kind)
            assert.equal("NXdata", found["/a/b"].attributes.NX_class)
            assert.same({ 2 }, found["/hard"].shape)
            assert.equal("/a/b/d", found["/soft"].link)
            assert.equal("dataset", found["/soft"].kind)
            assert.equal("dangling", found["/dangling"].kind)
            assert.equal("group", found["/a/b/cycle"].kind)
            assert.is_true(g:exists("/a/b/cycle/b/d"))
            assert.is_false(g:exists("/a/x/y"))
            assert.is_false(g:exists("/dangling"))
            -- What was found last spares looking up its groups, and makes no group of a dataset.
            for _, at in ipairs {"/a/b", "/a/b/", "a/b", "//a//b"} do
                assert.is_true(g:exists(at))
                assert.is_true(g:exists(at .. "/d"))
                assert.is_true(g:exists(at .. "/d/"))
                assert.is_false(g:exists(at .. "/d/x"))
                assert.is_true(g:exists(at .. "/d"))
                assert.is_false(g:exists(at .. "/e"))
                assert.is_false(g:exists(at .. "/d2/x"))
            end
            assert.equal(1, #g:walk("/a/b/cycle") - #g:walk("/a") + 1)
        end)

        it("names what is missing", function()
            local f <close> = sample()
            for _, call in ipairs { "dataset", "value", "attributes", "read" } do
                local text, err = helper.failure(f[call], f, "/nothing")
                assert.is_truthy(text:find("/nothing", 1, true), text)
                assert.equal("io", err.code)
            end
            local text = helper.failure(f.write, f, "/new", 1)
            assert.is_truthy(text:find("r+", 1, true), text)
        end)

        it("can be changed in place", function()
            sample():close()
            local f <close> = assert(mb.h5.open(path, { mode = "r+" }))
            f:write("/more", 3)
            local one <close> = mb.full({ 6, 7 }, 9)
            local cast <close> = one:cast("u16")
            f:dataset("/d"):write(cast, 2)
            f:close()
            f:close()
            local g <close> = assert(mb.h5.open(path))
            assert.equal(3, g:value("/more"))
            local d <close> = g:read("/d", 2, 3, 4)
            assert.equal(9, d:item())
        end)

        it("is closed once, and handles then say so", function()
            local f <close> = sample()
            local d <close> = f:dataset("/d")
            f:close()
            f:close()
            assert.is_truthy(helper.failure(d.read, d):find("closed"))
            assert.is_truthy(helper.failure(f.walk, f):find("closed"))
            assert.is_truthy(tostring(d):find("closed"))
            assert.same({ 5, 6, 7 }, d.shape)
        end)

        it("rejects unknown options", function()
            local f <close> = sample()
            assert.is_truthy(helper.failure(mb.h5.open, path, { mod = "r" }):find("mode"))
            assert.is_truthy(helper.failure(f.read, f, "/d", { dytpe = "f32" }):find("dtype"))
        end)
    end)

    describe("bad files", function()
        local function refused(name)
            local f, err = mb.h5.open(name)
            assert.is_nil(f)
            assert.equal("io", err.code)
            return tostring(err)
        end

        it("are told apart", function()
            assert.is_truthy(refused(folder .. "/no.h5"):find("No such file"))
            assert.is_truthy(refused(folder):find("folder"))
            files.write(path, "")
            assert.is_truthy(refused(path):find("empty"))
            files.write(path, ("no HDF5 here"):rep(1000))
            assert.is_truthy(refused(path):find("not an HDF5 file"))
            files.write(path, "II*\0" .. ("x"):rep(100))
            assert.is_truthy(refused(path):find("TIFF"))
        end)

        it("that are truncated are refused at any length", function()
            sample():close()
            local bytes = files.read(path)
            for _, part in ipairs { 0.01, 0.1, 0.5, 0.9, 0.99 } do
                files.write(path, bytes:sub(1, math.floor(#bytes * part)))
                refused(path)
            end
            files.write(path, bytes:sub(1, -2))
            assert.is_truthy(refused(path):find("truncated"))
        end)

        it("that are open elsewhere can be read", function()
            sample():close()
            local writer <close> = assert(mb.h5.open(path, { mode = "r+" }))
            local output, ok = files.run_script(folder, ([[
                local f = assert(require("moonbeam").h5.open("%s"))
                print(f:dataset("/d").shape[3])]]):format(path))
            assert.is_true(ok, output)
            assert.equal("7\n", output)
            assert.is_true(writer.is_open)
        end)
    end)

    describe("created files", function()
        it("get their name by finish alone", function()
            local f <close> = mb.h5.create(path)
            f:write("/a", 1)
            local part = table.concat(files.list(folder), " ")
            assert.matches("^a%.h5%.part%-" .. mb.system.pid()
                .. "%-%x%x%x%x%x%x%x%x%-%x%x%x%x%x%x%x%x$", part)
            assert.equal(f.part_path, folder .. "/" .. files.list(folder)[1])
            f:finish()
            assert.same({ "a.h5" }, files.list(folder))
            assert.is_truthy(helper.failure(f.write, f, "/b", 1):find("closed"))
            local g <close> = assert(mb.h5.open(path))
            assert.is_truthy(g:attribute("/", "end_time"):match("^%d%d%d%d%-%d%d%-%d%dT"))
        end)

        it("leave nothing when they are closed, forgotten, or an error goes by", function()
            local f = mb.h5.create(path)
            f:write("/a", 1)
            f:close()
            f:close()
            assert.same({}, files.list(folder))
            pcall(function()
                local g <close> = mb.h5.create(path)
                g:write("/a", 1)
                error "stop"
            end)
            assert.same({}, files.list(folder))
            mb.h5.create(path):write("/a", 1)
            collectgarbage()
            collectgarbage()
            assert.same({}, files.list(folder))
        end)

        it("do not replace others unless asked", function()
            files.write(path, "old")
            local text, err = helper.failure(mb.h5.create, path)
            assert.is_truthy(text:find("overwrite"), text)
            assert.equal("io", err.code)
            local f <close> = mb.h5.create(path, { overwrite = true })
            f:write("/a", 1)
            assert.equal("old", files.read(path))
            f:finish()
            assert.same({ "a.h5" }, files.list(folder))
            local g <close> = assert(mb.h5.open(path))
            assert.equal(1, g:value("/a"))
        end)

        it("do not replace one that was created by another process", function()
            local f <close> = mb.h5.create(path)
            files.write(path, "newer")
            assert.is_truthy(helper.failure(f.finish, f):find("created by another process", 1,
                true))
            assert.equal("newer", files.read(path))
            assert.same({ "a.h5" }, files.list(folder))
        end)

        it("do not get in each other's way", function()
            local f <close> = mb.h5.create(path)
            local g <close> = mb.h5.create(path)
            assert.equal(2, #files.list(folder))
            g:write("/a", 2)
            g:finish()
            assert.is_truthy(helper.failure(f.finish, f):find("created by another process", 1,
                true))
            assert.same({ "a.h5" }, files.list(folder))
        end)

        it("fail at once in a folder that is missing or cannot be written", function()
            local text, err = helper.failure(mb.h5.create, folder .. "/no/a.h5")
            assert.is_truthy(text:find("No such file"), text)
            assert.equal("io", err.code)
            assert.is_truthy(helper.failure(mb.h5.create, folder):find("folder"))
            files.write(path, "x")
            assert.is_truthy(helper.failure(mb.h5.create, path .. "/b.h5"):find("not a folder", 1,
                true)
                or helper.failure(mb.h5.create, path .. "/b.h5"):find("Not a directory"))
            local locked = folder .. "/locked"
            assert(mb.system.mkdir(locked))
            assert(os.execute(("chmod 555 '%s'"):format(locked)))
            local probe = io.open(locked .. "/probe", "w")
            if probe then -- root writes everywhere but here
                probe:close()
                locked = "/proc/self"
            end
            local _, refused = helper.failure(mb.h5.create, locked .. "/a.h5")
            assert.equal("io", refused.code)
        end)

        it("leave no final name when the program is killed", function()
            local output = files.run_script(folder, ([[
                local mb = require "moonbeam"
                local f = mb.h5.create("%s")
                f:write("/a", mb.zeros { 100, 1000 })
                os.execute("kill -9 $PPID")
                f:finish()]]):format(path))
            local left = files.list(folder)
            assert.equal(2, #left, output)
            assert.is_truthy(left[1]:match("^a%.h5%.part%-%d+%-%x+%-%x+$"))
        end)

        it("leave nothing when the program exits or fails", function()
            for _, ending in ipairs { "os.exit(3)", "error 'no'", "local x = nil + 1", "" } do
                files.run_script(folder, ([[
                    f = require("moonbeam").h5.create("%s")
                    f:write("/a", 1)
                    %s]]):format(path, ending))
                assert.same({ "script.lua" }, files.list(folder), ending)
            end
        end)
    end)

    describe("a full disk", function()
        local disk

        before_each(function()
            disk = files.small_disk(folder, "4m")
        end)

        after_each(function()
            if disk then
                files.unmount(disk)
            end
        end)

        it("is an error before the work starts", function()
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local f <close> = mb.h5.create(disk .. "/a.h5")
            local ok, err = pcall(f.create_dataset, f, "/v", { shape = { 8, 1024, 1024 } })
            assert.is_false(ok)
            assert.equal("io", err.code)
            assert.equal(8 << 22, err.need)
            assert.is_true(err.limit < 5000000)
            assert.is_truthy(tostring(err):find("no room"))
            assert.is_truthy(helper.failure(f.write, f, "/b", 1):find("no room"))
            assert.is_truthy(helper.failure(f.finish, f):find("no room"))
            assert.same({}, files.list(disk))
        end)

        it("is told in one line, in the system's words", function()
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            -- Attributes take no room until they are flushed.
            local open = files.open_descriptors()
            local f <close> = mb.h5.create(disk .. "/a.h5")
            local a <close> = mb.random({ 64, 64 }, { seed = 1 })
            f:write("/a", a)
            local fill = ("head -c 8m /dev/zero >> '%s/filler' 2>/dev/null"):format(disk)
            os.execute(fill)
            for i = 1, 50 do
                f:set_attribute("/", "attribute" .. i, ("x"):rep(1000))
            end
            local text = helper.failure(f.finish, f)
            assert.matches('HDF5 says "No space left on device"; the disk is full: free some space',
                text)
            assert.is_nil(text:find("\n"))
            os.execute(fill)
            text = helper.failure(mb.h5.create, disk .. "/b.h5")
            assert.matches("No space left on device", text)
            assert.same({ "filler" }, files.list(disk))
            assert.equal(open, files.open_descriptors()) -- nothing keeps the abandoned files
        end)

        it("under a file open for changes is told when it is closed, at the latest", function()
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local made <close> = mb.h5.create(disk .. "/a.h5")
            made:write("/a", 1)
            made:finish()
            local open = files.open_descriptors()
            local f <close> = mb.h5.open(disk .. "/a.h5", { mode = "r+" })
            os.execute(("head -c 8m /dev/zero >> '%s/filler' 2>/dev/null"):format(disk))
            for i = 1, 50 do
                f:set_attribute("/", "attribute" .. i, ("x"):rep(1000))
            end
            assert.matches("No space left on device", (helper.failure(f.close, f)))
            assert.equal(open, files.open_descriptors())
        end)

        it("in the midst of compressed data is the error of every later call", function()
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local f <close> = mb.h5.create(disk .. "/a.h5")
            local d <close> = f:create_dataset("/v", { shape = { 12, 512, 512 }, deflate = 1 })
            local failed
            for z = 1, 12 do
                local a <close> = mb.random({ 512, 512 }, { seed = z })
                local ok, err = pcall(d.write, d, a, z)
                failed = failed or (not ok and err)
                assert.equal(failed and true or false, not ok)
            end
            assert.is_truthy(failed)
            assert.equal("io", failed.code)
            assert.equal(failed.message, select(2, helper.failure(f.finish, f)).message)
            assert.same({}, files.list(disk))
            -- The library is still in order.
            local g <close> = mb.h5.create(disk .. "/b.h5")
            g:write("/a", 1)
            g:finish()
            assert.same({ "b.h5" }, files.list(disk))
        end)
    end)

    it("opens in h5py", function()
        local python = files.python "h5py"
        if not python then
            pending "h5py is not installed (python3-h5py)"
        end
        local f <close> = mb.h5.create(path)
        for _, dtype in ipairs(dtypes) do
            local a <close> = counting({ 2, 3 }, dtype)
            f:write("/" .. dtype, a, { deflate = 1 })
        end
        f:write("/text", "µm")
        f:set_attribute("/", "list", { "a", "b" })
        f:finish()
        local output, ok = files.run(([[%s -c '
import h5py
f = h5py.File("%s", "r")
for n in "u8 u16 i32 f16 f32 f64 c64 c128".split():
    d = f[n]
    assert d[1, 2] == 5, n
    print(n, d.dtype)
print(f["text"].asstr()[()], list(f.attrs["list"]))']]):format(python, path))
        assert.is_true(ok, output)
        assert.equal("u8 uint8\nu16 uint16\ni32 int32\nf16 float16\nf32 float32\nf64 float64\n"
            .. "c64 complex64\nc128 complex128\nµm ['a', 'b']\n", output)
    end)

    it("reads what h5py writes", function()
        local python = files.python "h5py"
        if not python then
            pending "h5py is not installed (python3-h5py)"
        end
        local output, ok = files.run(([==[%s -c '
import h5py, numpy as np
f = h5py.File("%s", "w")
f["i8"] = np.array([-3, 4], "i1")
f["i16"] = np.array([-300, 4], ">i2")
f["u32"] = np.array([4000000000, 1], "u4")
f["i64"] = np.array([2**40, -1], "i8")
f["i64_big"] = np.array([-2**63, -(2**60 + 2**8)], ">i8")
f["wide"] = np.array([[5, 2**53 + 1]], "i8")
f["times"] = np.array([1732770000123456789], "i8")
f["wide_big"] = np.array([[5, -(2**53 + 1)]], ">i8")
f["wide_u"] = np.array([[5, 2**64 - 1]], "u8")
f["flag"] = np.array([True, False])
f["fixed"] = np.array([b"abc", b"de"])
f["none"] = h5py.Empty("f")
f.create_dataset("unwritten", (3, 4), "f4", chunks=(1, 4), compression="lzf", fillvalue=7)
f.attrs["fixed"] = np.bytes_("plain")
f.attrs["shape"] = np.array([[1, 2], [3, 4]])']==]):format(python, path))
        assert.is_true(ok, output)
        local f <close> = assert(mb.h5.open(path))
        for name, expected in pairs {
            i8 = { "i32", -3, 4 }, i16 = { "i32", -300, 4 }, u32 = { "f64", 4000000000, 1 },
            i64 = { "f64", 2 ^ 40, -1 }, i64_big = { "f64", -0x1p63, -(2 ^ 60 + 2 ^ 8) },
        } do
            local a <close> = f:read(name)
            assert.equal(expected[1], a.dtype)
            assert.same({ expected[2], expected[3] }, a:to_table())
        end
        for name, value in pairs { wide = "9007199254740993", wide_big = "-9007199254740993",
            wide_u = "18446744073709551615" } do
            local text, err = helper.failure(f.read, f, name)
            assert.equal("unsupported", err.code)
            assert.is_truthy(text:find(("a.h5:%s' has the value %s, at y, x = 0, 1 from 0"):format(
                name, value), 1, true), text)
        end
        local times <close> = f:read "times" -- a list is no image
        assert.near(1732770000123456789, times:max(), 256)
        assert.same({ 1, 0 }, f:value "flag")
        assert.same({ "abc", "de" }, f:value "fixed")
        assert.same({}, f:value "none")
        assert.same({ fixed = "plain", shape = { { 1, 2 }, { 3, 4 } } }, f:attributes "/")
        local text, err = helper.failure(f.read, f, "unwritten")
        assert.equal("unsupported", err.code)
        assert.is_truthy(text:find("32000 (lzf)", 1, true), text)
    end)

    it("refuses data of other files that are missing, instead of reading zeros", function()
        local python = files.python "h5py"
        if not python then
            pending "h5py is not installed (python3-h5py)"
        end
        local output, ok = files.run(([==[cd '%s' && %s -c '
import h5py, numpy as np
with h5py.File("source.h5", "w") as f:
    f["d"] = np.ones((3, 4), "u2")
layout = h5py.VirtualLayout((3, 4), "u2")
layout[:] = h5py.VirtualSource("source.h5", "d", shape=(3, 4))
with h5py.File("a.h5", "w") as f:
    f.create_virtual_dataset("virtual", layout)
    f["external"] = h5py.ExternalLink("source.h5", "/d")']==]):format(folder, python))
        assert.is_true(ok, output)
        do
            local f <close> = assert(mb.h5.open(path))
            for _, name in ipairs { "virtual", "external" } do
                local a <close> = f:read(name)
                assert.equal(12, a:sum())
            end
        end
        os.remove(folder .. "/source.h5")
        local f <close> = assert(mb.h5.open(path))
        assert.is_truthy(helper.failure(f.read, f, "virtual"):find("source.h5", 1, true))
        assert.is_truthy(helper.failure(f.exists, f, "external"):find("source.h5", 1, true))
        assert.equal("dangling", f:walk()[1].kind)
    end)
end)
