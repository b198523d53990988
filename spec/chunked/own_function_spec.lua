-- The function that mb.chunked is given: what it does wrong is an error that names it with its
-- line, and leaves nothing on the device.

local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local HERE <const> = "own_function_spec.lua:%d+"

describe("the function of mb.chunked", function()
    local input

    before_each(function()
        input = mb.random({16, 8, 8}, {seed = 1})
    end)

    after_each(function()
        input:release()
    end)

    local function bytes()
        return {mb.pool.stats("host").live, mb.pool.stats("host:1").live}
    end

    -- Calls it where a yield would be possible.
    local function run(fn, options)
        return coroutine.wrap(function()
            return pcall(mb.chunked, fn, input, options)
        end)()
    end

    -- For blocks of 4 rows: a plan sees the first one alone, or all of them.
    local function late(fn)
        return function(block, part)
            if part.first > 8 and not part.device.dry then
                return fn(block, part)
            end
            local doubled = block * 2
            return doubled
        end
    end

    local CASES <const> = {
        {"raises", function(block)
            local _, _ = block * 2, block + 1
            error "mine"
        end, HERE .. ": mine"},
        {"returns nothing", function(block)
            local _ = block * 2
        end, HERE .. " returns nothing; it must return an array: is a 'return' missing"},
        {"returns a table", function(block)
            local made = block * 2
            return {made}
        end, HERE .. " returns a table; it must return an array"},
        {"returns what it has released", function(block)
            local made = block * 2
            made:release()
            return made
        end, HERE .. " returns an array that it has released"},
        {"returns too many rows", function()
            local made = mb.zeros {40, 8, 8}
            return made
        end, HERE .. " has 40 rows along axis 1 for rows %d+ to %d+"},
        {"yields", function(block)
            coroutine.yield(block * 2)
            return block
        end, HERE .. " yields, which a function that is called for a block must not do"},
    }

    for _, case in ipairs(CASES) do
        for when, changed in pairs {["at once"] = function(fn) return fn end, later = late} do
            it(case[1] .. " " .. when .. ": an error that leaves nothing", function()
                for _, sink in ipairs {false, function() end} do
                    local before = bytes()
                    local ok, err = run(changed(case[2]), {block = 4, sink = sink or nil})
                    assert.is_false(ok)
                    assert.matches(case[3], tostring(err))
                    assert.same(before, bytes())
                end
            end)
        end
    end

    it("returns other shapes or types later: an error that leaves nothing", function()
        for text, fn in pairs {
            ["f32 4 x 2 x 8 for rows 9 to 12; it must return f32 4 x 8 x 8"] = function(block)
                local part <close> = block:view(mb.all, {1, 2})
                return part:copy()
            end,
            ["f64 4 x 8 x 8 for rows 9 to 12; it must return f32 4 x 8 x 8"] = function(block)
                return (block:cast "f64")
            end,
            ["f32 4 for rows 9 to 12; it must return f32 4 x 8 x 8"] = function()
                return (mb.zeros {4})
            end,
        } do
            for _, sink in ipairs {false, function() end} do
                local before = bytes()
                local ok, err = run(late(fn), {block = 4, sink = sink or nil})
                assert.is_false(ok)
                assert.equal("shape", err.code)
                assert.matches(HERE .. " returns " .. text, err.message)
                assert.same(before, bytes())
            end
        end
    end)

    it("as a sink yields: an error that leaves nothing", function()
        local before = bytes()
        local ok, err = run(function(block) return (block * 2) end, {block = 4,
            sink = function() coroutine.yield() end})
        assert.is_false(ok)
        assert.matches(HERE .. " yields", err.message)
        assert.same(before, bytes())
    end)

    it("that keeps arrays is named, with the line", function()
        local folder = files.folder()
        local name = folder .. "/keeps.lua"
        local function told(keep)
            files.write(name, ([[
                local mb, kept = require "moonbeam", {}
                local result, report = mb.chunked(function(block)
                    %s
                    return block * 2
                end, mb.ones {16, 8, 8}, {block = 4})
                print(#report.kept, report.as_planned)
            ]]):format(keep))
            local text, status = helper.run_program(name, "", "env -u MOONBEAM_STRICT "
                .. helper.program)
            assert.equal(0, status, text)
            return text
        end
        local text = told "kept[#kept + 1] = block + 1"
        assert.matches("WARNING: chunked: the function at .*keeps.lua:2 keeps 4 arrays of 4 KiB in "
            .. "all, made at .*keeps.lua:3: let it release what it makes\n", text)
        assert.matches("1\ttrue\n", text)
        assert.equal("0\ttrue\n", told "local _ <close> = block + 1")
        assert.equal("0\ttrue\n", told "local left = block + 1 left:fill(1)")
        files.remove(folder)
        if os.getenv "MOONBEAM_STRICT" then
            local kept = {}
            local _, err = helper.failure(mb.chunked, function(block)
                kept[#kept + 1] = block + 1
                return (block * 2)
            end, input, {block = 4})
            for _, array in ipairs(kept) do
                array:release()
            end
            assert.equal("fn", err.arg)
            assert.matches(HERE .. " keeps 4 arrays", err.message)
        end
    end)
end)
