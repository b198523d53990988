-- Every public function that takes a table of options refuses one that it does not have, and
-- names it. A new public function that is in none of the lists below fails this spec.

local helper = require "spec.helper"
local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local modules = require "moonbeam.internal.modules"
local declared = require "moonbeam.internal.declared"

local ZZZ = {zzz = 1}

-- How to get as far as the options. `a` and `b` are images, `image` is `a` as a volume, `v` is a
-- stack, `scan` is one in memory, `path` a name of no file.
local CALLS = {
    ["array.empty"] = function(f) f({1}, ZZZ) end, ["array.zeros"] = function(f) f({1}, ZZZ) end,
    ["array.ones"] = function(f) f({1}, ZZZ) end, ["array.random"] = function(f) f({1}, ZZZ) end,
    ["array.full"] = function(f) f({1}, 2, ZZZ) end, ["array.arange"] = function(f) f(3, ZZZ) end,
    ["array.linspace"] = function(f) f(1, 2, 3, ZZZ) end,
    ["array.from_string"] = function(f) f("abcd", {1}, ZZZ) end,
    ["device.open"] = function(f) f("host", ZZZ) end,
    ["op.estimate"] = function(f) f("unary", {{"f32", 4}}, {fn = "exp"}, ZZZ) end,
    ["op.piece"] = function(f) f("unary", {{"f32", 4}}, {fn = "exp"}, ZZZ) end,
    ["op.run"] = function(f, s) f("unary", s.a, "exp", ZZZ) end,
    ["pool.trace"] = function(f) f(ZZZ) end,
    ["fft.work"] = function(f) f("c2c", {8}, ZZZ) end,
    ["h5.create"] = function(f, s) f(s.path, ZZZ) end,
    ["h5.open"] = function(f, s) f(s.path, ZZZ) end,
    ["picture.write_png"] = function(f, s) f(s.path .. ".png", s.a, ZZZ) end,
    ["stream.pinned_bytes"] = function(f) f(mb.device("host"), ZZZ) end,
    ["stream.run"] = function(f) f(mb.device("host"), {}, {}, ZZZ) end,
    ["stream.carrier"] = function(f) f(ZZZ) end,
    ["tiles.plan"] = function(f, s) f(s.image, s.b, s.image, ZZZ) end,
    ["tiles.convolve_volume"] = function(f, s) f(s.image, s.b, s.image, ZZZ) end,
    ["tiled_deconv.plan"] = function(f, s) f(s.image, s.b, s.image, ZZZ) end,
    ["tiled_deconv.richardson_lucy_volume"] = function(f, s) f(s.image, s.b, s.image, ZZZ) end,
}
for _, name in ipairs {"center_bounds", "check_values", "expected_values", "find_center",
    "find_range", "plan", "range_codes"} do
    CALLS["recon." .. name] = function(f, s) f(s.scan, ZZZ) end
end
CALLS["recon.settle"] = function(f, s) f(s.scan, mb.recon.plan(s.scan, {log = false}), ZZZ) end
CALLS["recon.reconstruct"] = function(f, s) f(s.v, s.angles, ZZZ) end
for _, name in ipairs {"tiled_deconv.richardson_lucy", "tiles.convolve"} do
    CALLS[name] = function(f, s) f(s.a, s.b, ZZZ) end
end

-- Functions that take no table of options, though they are in C or have a parameter of that name;
-- or take settings that another function has checked.
local WITHOUT = {}
for name in ([[array.is_array device.bytes device.cuda_problem device.default device.dry device.format_bytes device.list
    device.opened device.planned device.several op.describe op.list op.supported pool.alloc pool.blocks pool.check pool.collect
    pool.debug pool.element_bytes pool.events
    pool.round pool.scope pool.smallest pool.stats pool.tag pool.tags pool.end_tag
    debug.break_guard debug.fail_nth debug.fail_step debug.lose_device debug.pair_seconds
    debug.pretend_memory debug.refuse_commits debug.refuse_pins debug.set_guards debug.steps
    pool.reset_reach pool.trim pool.views fft.drop fft.library fft.library_bytes fft.limit
    h5.scratch picture.percentiles recon.chunk recon.frames recon.slices recon.decoded
    ledger.dry stream.describe]]):gmatch "%S+" do
    WITHOUT[name] = true
end

-- The names of a Lua function's parameters.
local function parameters(f)
    local names = {}
    for i = 1, debug.getinfo(f, "u").nparams do
        names[debug.getlocal(f, i)] = true
    end
    return names
end

-- Public functions by name.
local function public_functions()
    local list = {}
    for _, name in ipairs(modules.names()) do
        local module = mb[name]
        for key, f in pairs(type(module) == "table" and module or {}) do
            if type(f) == "function" and (name ~= "array" or key ~= "methods") then
                list[name .. "." .. key] = f
            end
        end
    end
    return list
end

describe("unknown options", function()
    local s

    before_each(function()
        s = {a = mb.ones {8, 8}, b = mb.ones {3, 3}, v = mb.ones {4, 6, 8},
            angles = mb.tomo.angles(6), path = os.tmpname()}
        os.remove(s.path)
        s.angles = mb.tomo.angles(s.v.shape[1])
        s.image = mb.volumes.of_array(s.a)
        s.scan = mb.scan.of_arrays(s.v, s.angles, {})
    end)

    after_each(function()
        for _, name in ipairs {"a", "b", "v"} do
            s[name]:release()
        end
    end)

    it("are refused by name, by every public function", function()
        local tried, wrong = 0, {}
        for name, f in pairs(public_functions()) do
            local original = arguments.original(f)
            local is_c = debug.getinfo(original, "S").what == "C"
            local declaration = not is_c and declared.of(f)
            local call = CALLS[name]
            if declaration and declaration.options then -- options are checked before arguments
                call = function()
                    f(table.unpack({[#declaration + 1] = ZZZ}, 1, #declaration + 1))
                end
            end
            if call then
                local ok, err = pcall(call, f, s)
                if ok or type(err) ~= "table" or err.code ~= "argument"
                    or not tostring(err):find("zzz", 1, true) then
                    wrong[#wrong + 1] = name .. ": " .. tostring(err)
                end
                tried = tried + 1
            else
                local takes = not declaration and (is_c and name:match("^[^.]+") ~= "system"
                    or parameters(original).options)
                if takes and not WITHOUT[name] then
                    wrong[#wrong + 1] = name .. " is new: say here how it is given its options"
                end
            end
        end
        assert.equal("", table.concat(wrong, "\n"))
        local count = 0
        for name in pairs(CALLS) do
            count = count + 1
            assert.is_not_nil(public_functions()[name], name .. " is no public function any more")
        end
        assert.is_true(tried > 70 and tried >= count)
    end)

    it("are refused by name, by methods and calls of modules", function()
        local ledger = mb.dry_run(function() end)
        for _, call in ipairs {
            function() ledger:text(ZZZ) end, function() ledger:print(ZZZ) end,
                function() mb.array({1}, ZZZ) end,
            function() mb.convolution(s.a, s.b, ZZZ) end, function() s.a:cast("f64", ZZZ) end,
                function() s.a:abs(ZZZ) end,
            function() mb.device("host", ZZZ) end,
        } do
            local text, err = helper.failure(call)
            assert.equal("argument", err.code, text)
            assert.truthy(text:find("zzz", 1, true), text)
        end
        for _, name in ipairs(mb.op.list()) do -- operators, by their descriptors
            local required = {}
            for _, arg in ipairs(mb.op.describe(name).args) do
                required[#required + 1] = arg.required and arg.kind ~= "out" and s.a or nil
            end
            required[#required + 1] = ZZZ
            assert.matches("unknown option 'zzz'", (helper.failure(mb.op.run, name,
                table.unpack(required))))
        end
    end)
end)

describe("arguments that are nothing of the kind", function()
    it("are errors that say so, not faults of the library", function()
        local endless = setmetatable({}, {__len = function() return 1 << 40 end,
            __index = function() return 1 end})
        assert.equal(1, mb.convolution.product(endless))
        local projections <close> = mb.ones {4, 3, 8}
        local scan = mb.scan.of_arrays(projections, mb.tomo.angles(4))
        for _, call in ipairs {
            {"name is missing", mb.images.open}, {"name is a table", mb.images.read, {}},
                {"shape is missing", mb.images.create},
            {"shape is missing", mb.images.create, "x.tif"},
                {"array is 5", mb.images.write, "x.tif", 5},
            {"scan is missing", mb.recon.plan}, {"scan is 5", mb.recon.find_center, 5},
            {"scan is a table", mb.recon.run, {}}, {"plan is missing", mb.recon.run, scan},
            {"scan is missing", mb.recon.chunk}, {"scan is missing", mb.recon.read_shifts},
                {"where is", mb.recon.read_shifts, scan},
            {"fn is missing", mb.pool.peak}, {"block is a table", mb.pool.free, {}},
            {"shape is missing", mb.plan.required_memory}, {"shape is missing", mb.plan.max_chunk},
                {"fn must be a function or", mb.plan},
            {"params must be a table", mb.op.estimate, "unary", {{"f32", 4}}, 5},
            {"unknown option 'sigm'; did you mean 'sigma'?", mb.op.estimate, "gaussian_filter",
                {{"f32", 4}}, {sigm = 1}},
            {"unknown option 'zzz'; the options are fn", mb.op.estimate, "unary", {{"f32", 4}},
                {zzz = 1}},
                {"", mb.op.estimate},
            {"", mb.op.estimate, "unary", 5}, {"", mb.op.estimate, "unary", {5}},
                {"total must be", mb.progress.new, "x", {}},
            {"", mb.op.estimate, "unary", {{"f32", "x"}}}, {"", mb.op.estimate, 5, {}},
            {"inputs is 5; give a table", mb.op.max_slices, "unary",
                {dim = 1, dims = {4}, available = 5, inputs = 5}},
            {"image is missing", mb.tiles.convolve}, {"values is 5", mb.convolution.product, 5},
            {"element 2 of values", mb.convolution.product, {1, "x"}}, {"", mb.fft.good_grid},
                {"", mb.fft.good_size, "x"},
        } do
            local text, err = helper.failure(table.unpack(call, 2))
            assert.equal("moonbeam.error", (getmetatable(err) or {}).__name, text)
            assert.truthy(text:find(call[1], 1, true), text)
            assert.is_nil(text:find("\n"))
        end
    end)
end)
