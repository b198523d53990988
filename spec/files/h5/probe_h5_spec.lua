-- The probe of HDF5 files: what libhdf5 does not survive, or does not end with, happens in a
-- process of its own.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

describe("the probe of an HDF5 file", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/d.h5"
        local f <close> = mb.h5.create(path)
        f:write("/a", { 1, 2, 3 })
        f:set_attribute("/a", "units", "counts") -- of variable length, in a global heap
        f:write("/b/c", { 4 })
        f:finish()
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- Writes `value` over the size of the free space, the object 0, of the global heap: with 0
    -- libhdf5 looks for its end for ever.
    local function damage_heap(value)
        local bytes = files.read(path)
        local at = assert(bytes:find("GCOL", 1, true)) + 16
        while string.unpack("<I2", bytes, at) ~= 0 do
            at = at + 16 + (string.unpack("<I8", bytes, at + 8) + 7) // 8 * 8
        end
        files.write(path, bytes:sub(1, at + 7) .. string.pack("<I8", value) .. bytes:sub(at + 16))
    end

    it("ends with an error where libhdf5 does not end", function()
        damage_heap(0)
        local file, err = mb.h5.open(path)
        assert.is_nil(file)
        assert.equal("io", err.code)
        assert.matches("libhdf5 does not finish reading it; the file is probably damaged",
            err.message)
    end)

    it("ends with an error where libhdf5 takes gigabytes for a text", function()
        local bytes = files.read(path)
        -- The attribute holds the length of its text, 6, and its place in the heap.
        local place = string.pack("<I8", assert(bytes:find("GCOL", 1, true)) - 1)
        local at = assert(bytes:find(string.pack("<I4", 6) .. place, 1, true))
        files.write(path, bytes:sub(1, at - 1) .. string.pack("<I4", 0x7fffffff)
            .. bytes:sub(at + 4))
        local file, err = mb.h5.open(path)
        assert.is_nil(file)
        -- Under a sanitizer an allocation that is refused ends the child.
        assert.truthy(err.message:find("libhdf5 needs more than 160 MiB", 1, true)
            or helper.program:match("/sanitize/")
                and err.message:find("libhdf5 crashes on it", 1, true),
            err.message)
    end)

    it("is stopped by Ctrl-C", function()
        damage_heap(0)
        -- The signal comes while the other process, "exe" or "moonbeam", reads.
        local output, _, status = files.run_script(folder, ([[
            local mb = require "moonbeam"
            local wait = "while kill -0 PID && ! grep -qs '^[0-9]* ([em][a-z]*) . PID ' "
                .. "/proc/[0-9]*/stat; do sleep 0.02; done; kill -INT PID"
            wait = wait:gsub("PID", mb.system.pid())
            io.popen("{ " .. wait .. "; } >/dev/null 2>&1 &"):close()
            print(mb.h5.open "%s")
        ]]):format(path))
        assert.matches("interrupted by Ctrl%-C", output)
        assert.equal(130, status)
    end)

    it("looks again at a file that has changed, and only then", function()
        assert(mb.h5.open(path)):close()
        mb.system.sleep(0.02) -- file systems count time in steps of up to 10 ms
        damage_heap(0)
        assert.is_nil((mb.h5.open(path)))
    end)

    it("leaves the errors that libhdf5 reports to whoever meets them: what is damaged is not "
        .. "absent", function()
        local bytes = files.read(path)
        -- A link message of an object header, as in damaged_h5_spec.lua.
        local links = 0
        for at in bytes:gmatch("()\6%z[%z\1-\255]%z[%z\1-\255]%z%z%z\1[%z\1-\255]") do
            links = links + 1
            files.write(path, bytes:sub(1, at + 7) .. "\200" .. bytes:sub(at + 9))
            local file <close> = assert(mb.h5.open(path))
            local failures = 0
            for _, name in ipairs { "/a", "/b", "/b/c" } do
                local ok, found = pcall(file.exists, file, name)
                if ok then
                    assert.is_true(found, name)
                else
                    failures = failures + 1
                    assert.equal("io", found.code)
                    assert.matches("cannot look up '[^']*' of .*; the file is damaged",
                        found.message)
                end
            end
            assert.is_true(failures >= 1)
        end
        assert.is_true(links >= 2, links .. " links found")
    end)
end)

describe("HDF5", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    it("refuses an empty path, and the file stays good", function()
        local f <close> = mb.h5.create(folder .. "/a.h5")
        for _, call in ipairs { "write", "group", "create_dataset", "exists", "link" } do
            local _, err = helper.failure(f[call], f, call == "link" and "/" or "",
                call == "link" and "" or call == "create_dataset" and { shape = { 2 } }
                    or call == "write" and 1 or nil)
            assert.equal("argument", err.code, call)
        end
        f:write("/a", 1)
        f:finish()
        local g <close> = assert(mb.h5.open(folder .. "/a.h5"))
        assert.equal(1, g:value "/a")
    end)

    it("tells what is not there from what is behind something that is no group", function()
        local f <close> = mb.h5.create(folder .. "/a.h5")
        f:write("/a", 1)
        f:finish()
        local g <close> = assert(mb.h5.open(folder .. "/a.h5"))
        assert.is_false(g:exists "/b")
        assert.is_false(g:exists "/a/b")
        assert.is_false(g:exists "/b/c/d")
        assert.is_true(g:exists "//a/")
    end)

    it("reads in threads that take the signals of a crash, and no other", function()
        local values <close> = mb.zeros({ 4, 8, 8 })
        local made <close> = mb.h5.create(folder .. "/threads.h5")
        made:write("/data", values)
        made:finish()
        local file <close> = mb.h5.open(folder .. "/threads.h5")
        local carrier <close> = core.carrier.open { device = "host", threads = 2, pinned = "1Mi" }
        carrier:carry(file:dataset "/data", values) -- the threads start with the first transfer
        carrier:wait()
        local crashes = 0
        for _, number in ipairs { 4, 6, 7, 8, 11 } do -- ILL, ABRT, BUS, FPE, SEGV
            crashes = crashes | 1 << (number - 1)
        end
        -- How many threads block INT, as the workers do, and how many of them block crashes.
        local function look()
            local workers, deaf = 0, 0
            local tasks = ("/proc/%d/task"):format(core.system.pid())
            for _, task in ipairs(files.list(tasks)) do
                local stream = io.open(("%s/%s/status"):format(tasks, task))
                local status = stream and stream:read "a" or "" -- the thread may have ended
                if stream then
                    stream:close()
                end
                local blocked = tonumber(status:match("SigBlk:%s*(%x+)") or "0", 16)
                if blocked & 2 ~= 0 then
                    workers = workers + 1
                    deaf = deaf + (blocked & crashes ~= 0 and 1 or 0)
                end
            end
            return workers, deaf
        end
        -- The C library blocks all signals in a thread until the thread has started.
        local workers, deaf = look()
        for _ = 1, 100 do
            if workers >= 2 and deaf == 0 then
                break
            end
            mb.system.sleep(0.05)
            workers, deaf = look()
        end
        assert.is_true(workers >= 2, workers .. " workers")
        assert.equal(0, deaf)
    end)

    it("looks for plug-ins in the folder that the user names", function()
        local f <close> = mb.h5.create(folder .. "/p.h5")
        local a <close> = mb.zeros({ 4, 4 })
        f:write("/d", a, { deflate = 1 })
        f:finish()
        -- The filter's number, 1, becomes one that nobody has.
        local bytes = files.read(folder .. "/p.h5")
        local at = assert(bytes:find("\1\0\8\0\1\0\1\0deflate\0", 1, true))
        files.write(folder .. "/p.h5", bytes:sub(1, at - 1) .. string.pack("<I2", 31999)
            .. bytes:sub(at + 2))
        files.write(folder .. "/libnone.so", "no library")
        files.write(folder .. "/s.lua", ([[
            local mb = require "moonbeam"
            local f <close> = assert(mb.h5.open("%s/p.h5"))
            print(pcall(f.read, f, "/d"))
        ]]):format(folder))
        for variables, asked in pairs { ["-u HDF5_PLUGIN_PATH"] = false,
            ["HDF5_PLUGIN_PATH=" .. folder] = true } do
            local output = files.run(("env %s LD_DEBUG=files %s %s/s.lua"):format(variables,
                helper.program, folder))
            assert.matches("compressed by filter 31999 .* name the plug%-in's folder in "
                .. "HDF5_PLUGIN_PATH", output)
            assert.equal(asked, output:find("libnone.so", 1, true) ~= nil)
        end
    end)
end)
