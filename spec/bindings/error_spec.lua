-- Error objects: their fields, their one line, and whom they blame.

local mb = require "moonbeam"
local helper = require "spec.helper"

local function line()
    return debug.getinfo(2, "l").currentline
end

describe("error objects", function()
    it("have fields and one line", function()
        local a <close> = mb.zeros { 2 }
        local here
        local ok, err = pcall(function()
            here = line() + 1
            return mb.convert(a, "f31")
        end)
        assert.is_false(ok)
        assert.equal("argument", err.code)
        assert.equal("convert", err.op)
        assert.equal("dtype", err.arg)
        assert.matches("did you mean 'f32'", err.message)
        assert.matches("error_spec.lua:" .. here .. "$", err.where)
        local text = tostring(err)
        assert.equal(1, select(2, (text .. "\n"):gsub("\n", "")))
        assert.equal(1, text:find(err.where, 1, true))
        assert.equal("moonbeam.error", getmetatable(err).__name)
    end)

    it("blame the caller's line, not the module's", function()
        local a <close> = mb.zeros { 2 }
        local here
        local _, err = pcall(function()
            here = line() + 1
            local b = a:sum(3) -- not a tail call, which would hide this line
            return b
        end)
        assert.matches(":" .. here .. "$", err.where)
        _, err = pcall(function()
            here = line() + 1
            return a ^ {}
        end)
        assert.matches(":" .. here .. "$", err.where)
    end)

    it("carry bytes when memory is short", function()
        local dry <close> = mb.device("host"):dry_device("1M")
        local _, err = pcall(mb.zeros, { 1 << 20 }, { device = dry })
        assert.equal("budget", err.code)
        assert.equal(4 << 20, err.need)
        assert.truthy(err.limit <= 1 << 20)
    end)

    it("cannot steer a terminal, nor add lines", function()
        local err = mb.error("io",
            "unit '\27]0;title\7\27[2J' of\r\n'\194\155x\255\226\128\174' µ é ∞", { op = "a\27b" })
        assert.equal("a\\x1bb: unit '\\x1b]0;title\\x07\\x1b[2J' "
            .. "of\\r\\n'\\xc2\\x9bx\\xff\\xe2\\x80\\xae' µ é ∞",
            (tostring(err):gsub("^[^ ]*: ", "")))
        local printable = require("moonbeam.core").error.printable
        assert.equal("a\\tb\\nc", printable "a\tb\nc")
        assert.equal("a\tb\nc\\x1b", printable("a\tb\nc\27", true))
        assert.equal("\\x00", printable "\0")
        -- Cut-off characters, overlong ones and surrogates are no text.
        for _, wrong in ipairs { "\226\128", "\192\175", "\237\160\128", "\244\144\128\128",
            "\128" } do
            assert.matches("^[\\x%x]+$", printable(wrong))
        end
    end)

    it("of plain Lua cannot steer a terminal either", function()
        local text = helper.run_program([[-e 'error("a\27[2Jb")']])
        assert.is_nil(text:find("\27", 1, true))
        assert.matches("a\\x1b%[2Jb", text)
    end)

    it("can be made in Lua", function()
        local err = mb.error("io", "there is no scan 'a.h5'", { op = "open", arg = "path" })
        assert.equal("io", err.code)
        assert.equal("path", err.arg)
        assert.equal(err.where .. ": open: there is no scan 'a.h5'", tostring(err))
        local _, raised = pcall(mb.raise, "shape", "too flat")
        assert.equal("shape", raised.code)
        assert.has_error(function()
            mb.error("nonsense", "x")
        end)
    end)

    it("are printed from their fields, whatever the message says", function()
        local err = mb.error("shape", "open has 2 rows", { op = "open", arg = "rows" })
        err.where = "here"
        assert.equal("here: open: open has 2 rows", tostring(err))
        err.op, err.message = nil, nil
        assert.equal("here: unknown error", tostring(err))
    end)

    it("do not mix, whether they are raised, swallowed or returned", function()
        local dry <close> = mb.device("host"):dry_device("1M")
        local a <close> = mb.zeros { 2 }
        local _, short = pcall(mb.zeros, { 1 << 20 }, { device = dry })
        local missing, refused = mb.h5.open("/nowhere/a.h5")
        local _, wrong = pcall(mb.convert, a, "f31")
        assert.is_nil(missing)
        assert.equal("io", refused.code)
        assert.is_nil(refused.need)
        assert.is_nil(refused.tried)
        assert.equal("argument", wrong.code)
        assert.is_nil(wrong.enough)
        assert.equal("budget", short.code)
        assert.equal(4 << 20, short.need)
    end)

    it("of a call inside another keep the inner cause", function()
        local a <close> = mb.zeros { 4, 4 }
        local _, err = pcall(mb.dry_run, function()
            local ok, inner = pcall(mb.convert, a, "f31")
            assert(not ok and inner.arg == "dtype")
            return a:sum(3)
        end)
        assert.not_equal("convert", err.op)
        assert.is_nil(tostring(err):find("f31", 1, true))
    end)

    it("of a coroutine are its own", function()
        local a <close> = mb.zeros { 2 }
        local worker = coroutine.wrap(function()
            local _, err = pcall(mb.convert, a, "f31")
            coroutine.yield(err)
            mb.zeros { -1 }
        end)
        local first = worker()
        local _, mine = pcall(mb.crop, a, { nonsense = 1 })
        local _, second = pcall(worker)
        assert.equal("convert", first.op)
        assert.equal("crop", mine.op)
        assert.equal("shape", second.code)
    end)

    it("name the nearest option, operator and function", function()
        local a <close> = mb.zeros { 2 }
        assert.matches("did you mean 'scale'", (helper.failure(mb.convert, a, "f32", { scal = 1 })))
        assert.matches("did you mean 'convert'", (helper.failure(mb.op.describe, "conver")))
        assert.matches("did you mean 'convert'", (helper.failure(function()
            return mb.convertt
        end)))
    end)
end)

describe("calling an operator", function()
    it("says what is missing or too much", function()
        local a <close> = mb.zeros { 2 }
        assert.matches("convert: argument 2, 'dtype', is missing; give one of u8, .* %(element type of the result%)",
            (helper.failure(mb.convert, a)))
        assert.matches("2 arguments and one table of options are needed, got 4",
            (helper.failure(mb.convert, a, "f32", {}, 1)))
        assert.matches("must be a table of options", (helper.failure(mb.convert, a, "f32", 1)))
        assert.matches("is argument 2",
            (helper.failure(mb.convert, a, "f32", { dtype = "f32" })))
        assert.matches("given by name", (helper.failure(mb.convert, a, "f32", { 1 })))
        assert.matches("a must be an array, not a number", (helper.failure(mb.convert, 1, "f32")))
    end)

    it("checks what is given for results", function()
        local a <close> = mb.zeros { 2 }
        local b <close> = mb.zeros { 3 }
        assert.equal("shape", select(2, helper.failure(mb.convert, a, "f32", { out = b })).code)
        assert.matches("out must be an array", (helper.failure(mb.convert, a, "f32", { out = 1 })))
        assert.matches("no result 'nope'",
            (helper.failure(mb.convert, a, "f32", { out = { nope = b } })))
        local c <close> = mb.empty { 2 }
        assert.equal(c, mb.convert(a, "f32", { out = c }))
        assert.equal(c, mb.convert(a, "f32", { out = { result = c } }))
    end)

    it("has an anatomy when a request does not fit", function()
        local device = mb.device("host")
        local original = device:budget()
        mb.collect()
        device:budget(100 * 512)
        local large <close> = mb.zeros { 60 * 128 }
        local small <close> = mb.zeros { 10 * 128 }
        mb.zeros { 128 } -- garbage
        local text, err = helper.failure(mb.zeros, { 2, 20 * 128 })
        local op_text, op_err = helper.failure(mb.convert, large, "f64")
        local function works(budget, fn, ...) -- the least budget is neither too small nor too large
            device:budget(budget)
            local ok, result = pcall(fn, ...)
            if ok then
                result:release()
            end
            return ok
        end
        assert.is_true(works(err.enough, mb.zeros, { 2, 20 * 128 }))
        assert.is_false(works(err.enough - 1, mb.zeros, { 2, 20 * 128 }))
        assert.is_true(works(op_err.enough, mb.convert, large, "f64"))
        assert.is_false(works(op_err.enough - 1, mb.convert, large, "f64"))
        device:budget(original)
        assert.equal("budget", err.code)
        assert.equal(40 * 512, err.need)
        assert.equal(100 * 512, err.limit)
        assert.equal(70 * 512, err.live)
        assert.is_true(err.peak >= err.live)
        assert.equal(30 * 512, err.free)
        assert.equal(30 * 512, err.largest_hole)
        assert.equal(110 * 512, err.enough)
        assert.equal("f32 2 x 2560", err.request)
        assert.equal("host", err.device)
        assert.matches("%.lua:%d+$", err.owner)
        assert.equal(2, #err.owners)
        assert.equal(60 * 512, err.owners[1].bytes)
        assert.equal(1, err.owners[1].blocks)
        assert.matches("%.lua:%d+$", err.owners[1].owner)
        assert.same({ collected_arrays = 1, collected_bytes = 512,
            dropped_plans = err.tried.dropped_plans }, err.tried)
        local _, lines = text:gsub("\n", "")
        assert.is_true(lines >= 6 and lines < 24, text)
        for _, part in ipairs { "request  20480 bytes: f32 2 x 2560", "live 35 KiB", "limit 50 KiB",
            "largest hole 15 KiB",
            "30 KiB in 1 block by ", "full collection", "enough   a budget of 56320 bytes" } do
            assert.truthy(text:find(part, 1, true), text)
        end
        assert.equal("convert", op_err.op)
        assert.equal(120 * 512, op_err.need)
        assert.equal(190 * 512, op_err.enough)
        assert.equal("result 'result', f64 7680", op_err.request)
        assert.truthy(op_text:find("budget of 97280 bytes", 1, true), op_text)
        assert.is_false(small.released)
    end)

    it("abridge long values, and keep what is said about them", function()
        local fail = require "moonbeam.internal.fail"
        for _, value in ipairs {("x"):rep(100000), ("\u{e9}"):rep(3000), ("1,\n"):rep(50000)} do
            local _, err = helper.failure(fail, "argument", "f", "a", "a is '%s' of %d bytes; give "
                .. "the other one, which is '%s'", value, #value, "short")
            local message = err.message
            assert.is_true(#message < 300)
            assert.matches("^a is '.*%.%.%..*' of " .. #value .. " bytes; give the other one, which "
                .. "is 'short'$", message)
            assert.is_truthy(utf8.len(message))
        end
        -- what an error has room for stays
        local whole = ("y"):rep(900)
        local _, err = helper.failure(fail, "argument", "f", "a", "a is '%s'", whole)
        assert.equal(("a is '%s'"):format(whole), err.message)
    end)
end)
