-- Every public function, and every method of what public functions return, called with arguments
-- that it is not made for, returns or raises an error object of one line that says what is wrong:
-- never a fault in a line of the library. Methods are also called without an object, with one of
-- another kind, and with one that is closed. The calls change budgets, switches and files, so a process of its own makes them, in a
-- folder of its own (spec/support/wrong_arguments.lua, which says how a call is repeated).
--
--   MOONBEAM_RANDOM_ARGUMENTS=100 SEED=7 scripts/test spec/bindings/wrong_arguments_spec.lua
--
-- makes 100 calls of each function, of another seed.

local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local CALLS <const> = tonumber(os.getenv "MOONBEAM_RANDOM_ARGUMENTS") or 3
local SEED <const> = tonumber(os.getenv "SEED") or 1

-- A folder with an empty one for the home and one for temporary files, and the files of examples.
local function playground()
    local folder = files.folder()
    for _, name in ipairs {"home", "tmp", "work"} do
        assert(mb.system.mkdir(folder .. "/" .. name))
    end
    local text, status = helper.run_program(
        ("simulate %s/work/scan.h5 --size 64 --rows 4 --angles 30 --quiet"):format(folder))
    assert(status == 0, text)
    mb.images.write(folder .. "/work/stack.tif", mb.random {4, 16, 16})
    local out = mb.result.create(folder .. "/work/volume.h5", {shape = {4, 8, 8}})
    out:write(mb.zeros {4, 8, 8}, 1)
    out:finish()
    return folder
end

describe("wrong arguments", function()
    local folder

    before_each(function()
        folder = playground()
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- What the program says of the calls of the functions whose names have `only` in them.
    local function judged(seed, calls, only)
        local home = assert(mb.system.cwd())
        return helper.run_program(("-c \"cd '%s/work' && HOME='%s/home' TMPDIR='%s/tmp' "
            .. "'%s' '%s/spec/support/wrong_arguments.lua' %d %d %s 2>&1 >out.txt\""):format(folder,
            folder, folder, helper.program, home, seed, calls, only or ""), "", "sh")
    end

    it("are refused in one line that says what is wrong, by every public function", function()
        local text, status = judged(SEED, CALLS)
        local wrong = {}
        for line in text:gmatch "WRONG [^\n]*" do
            wrong[#wrong + 1] = line
        end
        local seed <const> = ("seed %d, %d calls"):format(SEED, CALLS)
        assert.equal("", table.concat(wrong, "\n"), seed)
        assert(status == 0, text:sub(-2000) .. "\nin the call " .. files.read(folder
            .. "/work/now") .. seed)
        local calls, functions, results = text:match
            "made (%d+) calls of (%d+) functions, (%d+) of them"
        local methods = text:match "(%d+) of the functions are methods of"
        assert.is_true(tonumber(calls) > 0.98 * CALLS * functions and tonumber(functions) > 740
            and tonumber(methods) > 280 and tonumber(results) > 0.1 * calls, text:sub(-2000))
        -- Nothing is written where the caller did not say so.
        assert.same({"home", "tmp", "work"}, files.list(folder))
        local home = files.list(folder .. "/home")
        assert(#home == 0 or #home == 1 and home[1] == ".nv", table.concat(home, " ")) -- CUDA's own
        assert.same({}, files.list(folder .. "/tmp"))
    end)

    it("are drawn by the seed, the function and the number of the call alone", function()
        local function lines(calls, only)
            local text = judged(3, calls, only)
            return text:match "made %d+ calls of 1 functions, (%d+) of them" or text
        end
        assert.equal(lines(6, "tomo.angles"), lines(6, "tomo.angles"))
        -- The judge sees what a user would see.
        files.write(folder .. "/work/faulty.lua", [[
            local mb = require "moonbeam"
            mb.metrics.psnr = function(count) return count + 1 end
            arg = {"1", "20", "metrics.psnr"}
            dofile(]] .. ("%q"):format(mb.system.cwd() .. "/spec/support/wrong_arguments.lua")
            .. ")\n")
        local text = helper.run_program(("-c \"cd '%s/work' && '%s' faulty.lua 2>&1\""):format(
            folder, helper.program), "", "sh")
        assert.matches("WRONG metrics.psnr%(.-no error object: .*attempt to perform arithmetic",
            text)
    end)

    it("of modules that are parts of others are out of reach", function()
        local parts = 0
        local home = package.searchpath("moonbeam", package.path):match("^(.*)/init%.lua$")
        for file in io.popen(("ls %s/*/*.lua"):format(home)):lines() do
            local name = file:match "([%w_]+)%.lua$"
            parts = parts + 1
            local ok, public = pcall(function() return mb[name] end)
            if ok then -- something else of that name
                assert.are_not.equal(require(file:match(".*/(moonbeam/.*)%.lua$"):gsub("/", ".")),
                    public)
            else
                assert.matches("moonbeam has no '" .. name, public.message)
            end
        end
        assert.is_true(parts > 30, parts)
        assert.is_nil(rawget(mb.tiles, "cut"))
    end)

    it("have a message whose end is there, however long a value is", function()
        local long = ("long "):rep(1000)
        for _, case in ipairs {
            {mb.zeros, {2}, {dtype = long}, arg = "dtype", code = "dtype", says = "c128"},
            {mb.device, long, arg = "device", says = "valid names are \"host\""},
            {mb.tomo.fbp, long, {0}, arg = "sino", says = "give an array"},
            {mb.tomo.fbp, "a\0b", {0}, arg = "sino", says = "a\\x00b.*give an array"},
            {mb.pool.round, long, arg = "bytes", says = "2Gi"},
        } do
            local text, err = helper.failure(table.unpack(case))
            assert.equal(case.code or "argument", err.code)
            assert.equal(case.arg, err.arg)
            assert.matches(case.says, text)
            assert.is_true(#err.message <= 1000 and not text:find "\n")
        end
    end)

    it("with a byte 0 in a name are an error: the name before it is another", function()
        local _, err = helper.failure(mb.npy.write, folder .. "/work/a\0.npy", mb.zeros {2})
        assert.equal("argument", err.code)
        _, err = helper.failure(mb.h5.open, folder .. "/work/scan.h5\0x")
        assert.equal("argument", err.code)
        assert.equal("path", err.arg)
    end)
end)

describe("methods of objects in Lua", function()
    local function refused(text, f, ...)
        local said, err = helper.failure(f, ...)
        assert.equal("argument", err.code, said)
        assert.matches(text, said, 1, true)
        assert.is_nil(said:find("\n", 1, true))
        return err
    end

    it("say what the object must be, and how they are called", function()
        local array <close> = mb.ones {3, 4, 6}
        local volume = mb.volumes.of_array(array)
        local result <close> = mb.result.create(os.tmpname() .. ".h5", {shape = {4, 8, 8}})
        for _, given in ipairs {{n = 0}, {5, n = 1}, {"x", n = 1}, {{}, n = 1}, {array, n = 1},
            {result, n = 1}, {getmetatable(volume), n = 1}} do
            for _, name in ipairs {"read", "write", "carry", "fetch", "close"} do
                local err = refused(("must be a volume that has this method: methods are called "
                    .. "with a colon, as volume:%s()"):format(name), volume[name],
                    table.unpack(given, 1, given.n))
                assert.equal("self", err.arg)
            end
        end
        -- One class's method is not for a volume of another class.
        local planned = mb.volumes.planned({3, 4, 6}, "f32")
        refused("must be a volume that has this method", volume.carry, planned)
        refused("as result:hash()", result.hash, volume, 1, 2)
    end)

    it("name what lies outside the object", function()
        local array <close> = mb.ones {3, 4, 6}
        local volume = mb.volumes.of_array(array)
        assert.equal("first", refused("a block of 2 elements from 2 on axis 1 is not inside the "
            .. "volume, whose axis has 3", volume.read, volume, {2, 0, 0}, {2, 4, 6}).arg)
        assert.equal("first", refused("first is missing; give a table of numbers", volume.read,
            volume).arg)
        refused("element 2 of extents is 1.5; it must be a whole number", volume.read, volume,
            {0, 0, 0}, {1, 1.5, 1})
        local result <close> = mb.result.create(os.tmpname() .. ".h5", {shape = {4, 8, 8}})
        refused("slices 3 to 5 are no part of the volume, which has slices 1 to 4", result.have,
            result, 3, 5)
        refused("only one that is made with the option unfinished", result.hash, result, 1, 2)
        local scan <close> = mb.scan.of_arrays(mb.random({12, 4, 16}, {low = 0.5}),
            mb.tomo.angles(12))
        local job = mb.pipeline(scan, {"minus_log", {"fbp", center = 7.5}}, {quiet = true,
            input = "transmission"})
        refused("rows is 5; give {first, last}", job.slices, job, 5)
        refused("row is 1.5", job.row_of, job, 1.5)
        refused("devices stays as it is", job.part, job, {devices = "host"})
        refused("unknown option 'row'; did you mean 'rows'", job.part, job, {row = {1, 2}})
        refused("unknown option 'outputs'; did you mean 'output'", job.run, job, {outputs = "x"})
        refused("options are a table, such as {output = ...}", job.run, job, "out.h5")
    end)

    it("of a pipeline take its own options", function()
        local scan <close> = mb.scan.of_arrays(mb.random({12, 4, 16}, {low = 0.5}),
            mb.tomo.angles(12))
        local job = mb.pipeline(scan, {"minus_log", {"fbp", center = 7.5}}, {quiet = true,
            input = "transmission"})
        local all <close> = job:slices()
        local some <close> = job:part({rows = {2, 3}}):slices()
        local part <close> = all:view {2, 3}
        assert.same(part:to_table(), some:to_table())
        local ok, err = pcall(function() return job:part({budget = 100}):plan() end)
        assert.is_false(ok)
        assert.equal("budget", err.code) -- of the part, and not that of the whole
    end)
end)

describe("a function that is asked for something", function()
    it("and returns nothing is an error that asks for its return", function()
        local function fn(a) return a:sum() end
        local _, err = helper.failure(mb.plan.max_slices, fn, function(n, device)
            mb.empty({n, 8}, {device = device}):release() -- no return
        end, "1M")
        assert.equal("argument", err.code)
        assert.equal("make_input", err.arg)
        assert.matches("returned nothing; it must return an array.*'return' missing", err.message)
        _, err = helper.failure(mb.plan.max_slices, fn, function() return 5 end, "1M")
        assert.matches("returned 5; it must return an array", err.message)
        assert.equal(16, (mb.plan.max_slices(function(a, device)
            mb.empty(a.shape, {device = device}):release()
        end, function(n, device)
            return mb.empty({n, 8, 512}, {device = device})
        end, 16 * 2 * 8 * 512 * 4)))
    end)

    it("of a volume, must return an array", function()
        local array <close> = mb.ones {3, 4, 6}
        local volume = mb.volumes.map(mb.volumes.of_array(array), "f32", function() end)
        local _, err = helper.failure(volume.read, volume, {0, 0, 0}, {1, 4, 6})
        assert.equal("fn", err.arg)
        assert.matches("returned nothing; it must return a new array %(is a 'return'", err.message)
    end)

    it("the sink of a reconstruction, is a result or a function, not the name of a file", function()
        local scan <close> = mb.scan.of_arrays(mb.random({12, 2, 16}, {low = 0.5}),
            mb.tomo.angles(12))
        local plan = mb.recon.plan(scan, {center = 7.5, log = false})
        for _, sink in ipairs {"file.h5", 5, {}, mb.tomo} do
            local _, err = helper.failure(mb.recon.run, scan, plan, sink)
            assert.equal("argument", err.code)
            assert.equal("sink", err.arg)
            assert.matches("give a result %(mb%.result%.create%), or a function", err.message)
        end
        local _, err = helper.failure(mb.recon.run, scan, plan)
        assert.matches("sink is missing", err.message)
    end)
end)
