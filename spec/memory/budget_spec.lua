-- What budget errors say: enough for the whole call, and to the unit; the address range in
-- pieces; memory that the system refuses.

local mb = require "moonbeam"
local helper = require "spec.helper"

local host = mb.device("host")
local original

-- fn(...) under a budget; true or false and the error. Results are released.
local function try(budget, fn, ...)
    mb.collect()
    host:budget(budget)
    local results = table.pack(pcall(fn, ...))
    host:budget(original)
    for i = 2, results.n do
        if mb.array.is_array(results[i]) then
            results[i]:release()
        end
    end
    mb.collect()
    return results[1], results[2]
end

-- The call fails under `budget`; what its error says is enough is, and 512 bytes less are not.
local function check(budget, what, fn, ...)
    local ok, err = try(budget, fn, ...)
    assert.is_false(ok)
    assert.equal("budget", err.code, tostring(err))
    assert.equal(what, err.enough_for, tostring(err))
    assert.is_true(try(err.enough, fn, ...), what)
    assert.is_false(try(err.enough - 512, fn, ...), what)
    return err
end

describe("the budget that an error names", function()
    local image, psf, sino, angles

    before_each(function()
        mb.collect()
        original = host:budget()
        image, psf = mb.random({40, 48}, {seed = 1}), mb.random({5, 7}, {seed = 2})
        sino, angles = mb.random({3, 30, 48}, {seed = 3}), mb.tomo.angles(30)
    end)

    after_each(function()
        host:budget(original)
        image:release()
        psf:release()
        sino:release()
    end)

    it("is that of a whole operator, results and scratch, asked at once", function()
        local live = mb.pool.stats().live
        for _, call in ipairs {{mb.ramp_filter, sino}, {mb.reduce, image, "sum"}, {mb.rfft, image},
            {mb.convert, sino, "f64"}} do
            local err = check(live, nil, table.unpack(call))
            assert.equal(live, err.live)
            assert.matches("for this request$", err.message)
        end
        -- Nothing of the call is made before it is known that all of it fits.
        local allocs = mb.pool.stats().allocs
        try(live + 512, mb.ramp_filter, sino)
        assert.equal(allocs, mb.pool.stats().allocs)
    end)

    it("is that of a whole library function, at whatever request it fails", function()
        local function arrays(...)
            return mb.recon.reconstruct(...)
        end
        local raw <close> = mb.random({30, 3, 48}, {dtype = "u16", low = 100, high = 200, seed = 4})
        local flats <close> = mb.full({2, 3, 48}, 300, {dtype = "u16"})
        local darks <close> = mb.zeros({2, 3, 48}, {dtype = "u16"})
        local live = mb.pool.stats().live
        local calls = {
            {"tomo.fbp", mb.tomo.fbp, sino, angles}, {"tomo.fbp", mb.tomo.fbp, sino, angles,
                {mode = "in_place"}},
            {"tomo.fbp", mb.tomo.fbp, sino, angles, {mode = "auto"}},
            {"tomo.reconstruct", mb.tomo.reconstruct, sino, angles, {method = "fourier"}},
            {"tomo.line_integrals", mb.tomo.line_integrals, raw, {flats = flats, darks = darks}},
            {"convolution.convolve", mb.convolution, image, psf},
                {"convolution.correlate", mb.convolution.correlate, image, psf},
            {"deconv.richardson_lucy", mb.deconv.richardson_lucy, image, psf, {iterations = 3}},
            {"deconv.wiener", mb.deconv.wiener, image, psf},
            {"recon.reconstruct", arrays, raw, angles,
                {flats = flats, darks = darks, center = 23.5, quiet = true}},
        }
        for _, call in ipairs(calls) do
            local name = call[1]
            local first = check(live, name, table.unpack(call, 2))
            -- Of all requests that can be the first that is refused, every one gives the same
            -- answer.
            for _, part in ipairs {0.3, 0.6, 0.9} do
                local budget = live + math.floor(part * (first.enough - live)) // 512 * 512
                local ok, err = try(budget, table.unpack(call, 2))
                assert.is_false(ok)
                assert.equal(first.enough, err.enough, ("%s under %d"):format(name, budget))
                assert.equal(name, err.enough_for)
            end
            assert.matches(("for %s$"):format(name), first.message)
            assert.equal(live, mb.pool.stats().live)
        end
    end)

    it("is that of the request where the call cannot be repeated", function()
        local called = 0
        local function each()
            called = called + 1
        end
        local ok, err = try(mb.pool.stats().live, mb.deconv.richardson_lucy, image, psf,
            {iterations = 1, on_iteration = each})
        assert.is_false(ok)
        assert.is_nil(err.enough_for)
        assert.equal(0, called)
        assert.matches("for this request$", err.message)
    end)

    it("is that of the statement at the prompt, which changes nothing a second time", function()
        local output = {}
        local function session(lines, env)
            local i = 0
            require("moonbeam.internal.repl").run {env = env,
                write = function(text) output[#output + 1] =
                text end, read = function()
                i = i + 1
                return lines[i]
            end}
        end
        local env = setmetatable({sino = sino, angles = angles, list = {}, printed = 0},
            {__index = _G})
        env.count = function() env.printed = env.printed + 1 end
        mb.collect()
        host:budget(mb.pool.stats().live + 512)
        local statement = "list[#list + 1], keep = mb.tomo.fbp(sino, angles), sino * 2"
        session({statement}, env)
        local text = table.concat(output)
        local enough = math.tointeger(tonumber(text:match("budget of (%d+) bytes %([^)]*%) for "
            .. "this statement\n")))
        assert.is_not_nil(enough, text)
        assert.equal(0, #env.list)
        assert.is_nil(rawget(env, "keep"))
        output = {}
        host:budget(enough - 512)
        session({statement}, env)
        assert.equal(0, #env.list)
        assert.matches("do not fit", table.concat(output))
        mb.collect()
        host:budget(enough)
        session({statement}, env)
        assert.equal(1, #env.list)
        env.list[1]:release()
        env.keep:release()
        -- A function of the user's may do anything: it is not called again.
        output = {}
        host:budget(mb.pool.stats().live + 512)
        session({"count(), mb.tomo.fbp(sino, angles)"}, env)
        host:budget(original)
        assert.equal(1, env.printed)
        assert.matches("for tomo.fbp\n", table.concat(output))
    end)

    it("is not named where the device has less, in one line", function()
        local text, err = helper.failure(mb.zeros, {1000000, 1000000})
        assert.equal("budget", err.code)
        assert.matches("^[^\n]*3.638 TiB do not fit: 12 KiB live[^\n]*, and the device has "
            .. "[^\n]+ in total; work in smaller chunks",
            (text:gsub("[%d.]+ KiB live", "12 KiB live")))
        assert.is_nil(text:find("give a budget", 1, true))
        assert.is_nil(text:find("\n"))
    end)
end)

describe("memory that there is", function()
    before_each(function()
        mb.collect()
        original = host:budget()
    end)

    it("but in pieces, is said to be so for arrays and operators", function()
        local reserved = mb.pool.stats("host").reserved
        local budget = reserved // 2 // 81920 * 81920
        local unit = budget // 80
        local d <close> = host:dry_device(budget)
        local function block(units)
            return mb.empty({units * unit}, {dtype = "u8", device = d})
        end
        local small, kept = {}, {}
        for i = 1, 80 do
            small[i] = block(1)
        end
        for i = 1, 80 do
            if i % 20 == 0 or i == 1 then
                kept[#kept + 1] = small[i]
            else
                small[i]:release()
            end
        end
        local low = block(40)
        kept[#kept + 1] = block(30)
        low:release()
        local one <close> = kept[1]:view({1, 1}):broadcast_to {44 * unit}
        for what, call in pairs {array = {mb.empty, {44 * unit}, {dtype = "u8", device = d}},
            operator = {one.copy, one}} do
            local text, err = helper.failure(table.unpack(call))
            assert.equal("budget", err.code, what)
            assert.matches("fit the budget of [%d.]+ GiB, but no free range of addresses is "
                .. "that large: the largest has [%d.]+ GiB; release arrays that lie between the "
                .. "free ranges\n", text)
            assert.is_nil(err.enough)
            assert.is_nil(text:find("enough", 1, true))
        end
    end)

    it("but that the system refuses, is asked for again after a collection", function()
        local garbage = mb.zeros {100} -- luacheck: ignore
        garbage = nil -- luacheck: ignore
        for _, make in ipairs {
            function() return mb.zeros {1 << 20} end,
            function() local a <close> = mb.zeros {1}; return a:broadcast_to({1 << 20}):copy() end,
        } do
            mb.collect()
            mb.pool.trim()
            mb.debug.refuse_commits(1)
            local a <close> = make()
            assert.equal(0, a:sum())
        end
        mb.collect()
        mb.pool.trim()
        mb.debug.refuse_commits(1)
        mb.pool.activate("4Mi")
        -- What was tried then is not told of a request that comes later.
        local text, err = helper.failure(mb.empty, {1 << 40}, {pinned = true})
        assert.equal("budget", err.code)
        assert.is_nil(err.tried)
        assert.is_nil(err.owner)
        assert.is_nil(text:find("\n"))
        assert.is_nil(text:find("0 bytes", 1, true))
        assert.matches("raise the limit %(device:pinned%(4398046511104%)%)", text)
    end)

    it("but that the system refuses for good, is a budget error with all that is known", function()
        local kept <close> = mb.zeros {128}
        for _, make in ipairs {
            function() return mb.zeros {1 << 20} end,
            function() return kept:broadcast_to({1 << 13, 128}):copy() end,
            function() return mb.pool.activate("64Mi") end,
        } do
            mb.collect()
            mb.pool.trim()
            mb.debug.refuse_commits(1000)
            local text, err = helper.failure(make)
            mb.debug.refuse_commits(0)
            assert.equal("budget", err.code)
            assert.matches("fit the budget %(512 B of [%d.]+ %a+ are live%), but the device does "
                .. "not have that much memory free: the system refused %d+ bytes", text)
            assert.matches("end other programs that use this memory", text)
            assert.matches("tried    a full collection", text)
            assert.matches("owners   512 B in 1 block", text)
            assert.is_nil(err.enough)
        end
        mb.zeros({1 << 20}):release()
        assert.matches("n is %-1", (helper.failure(mb.debug.refuse_commits, -1)))
    end)
end)
