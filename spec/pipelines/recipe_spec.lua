-- Recipes as text: what is read, what is refused and where, and that nothing is run.

require "moonbeam"
local helper = require "spec.helper"
local recipe = require "moonbeam.pipeline.recipe"

local function message(text)
    return (helper.failure(recipe.parse, text, "r.lua"))
end

describe("recipe.parse", function()
    it("reads steps with options of all kinds", function()
        local list = recipe.parse [==[
            -- a comment
            return {
              {"crop", columns = {101, 1948}, rows = {1; 2;}}, --[[ another ]] "flat_field",
              {'paganin', energy = 25e3, distance = .05, h = 0x1F, f = 0x1p-2, n = -1e-3},
              {"text", a = "q\"\\\n\t\65\x41\u{e9}\z
                 z", b = [[
long]], c = [=[]]]=], ["for"] = true, off = false},
            };
        ]==]
        assert.same({
            {"crop", columns = {101, 1948}, rows = {1, 2}}, "flat_field",
            {"paganin", energy = 25000.0, distance = 0.05, h = 31, f = 0.25, n = -0.001},
            {"text", a = 'q"\\\n\tAAéz', b = "long", c = "]]", ["for"] = true, off = false},
        }, list)
        assert.equal("float", math.type(list[3].energy))
        assert.equal("integer", math.type(list[3].h))
    end)

    it("reads an empty list, a byte-order mark and files without a last line end", function()
        assert.same({}, recipe.parse "{}")
        assert.same({"fbp"}, recipe.parse "\xEF\xBB\xBF{'fbp'} -- end")
        assert.same({"fbp"}, recipe.parse "return{'fbp'}")
    end)

    -- What is refused: text, place, and a part of the message.
    local WRONG = {
        {"os.execute('touch x')", "r.lua:1:1: expected one list of steps, { ... }, got 'os.execute'", "never run"},
        {"{os.execute('touch x')}", "r.lua:1:2:", "a recipe is data and is never run"},
        {"{{'a', f = function() end}}", "r.lua:1:12:", "'function' is not allowed here"},
        {"{{'a', n = math.pi}}", "r.lua:1:12:", "'math' is not allowed here; write the value itself"},
        {"{{'a', n = 1 + 2}}", "r.lua:1:14:", "'+' computes something; write the result"},
        {"{{'a', n = 1 .. 2}}", "r.lua:1:14:", "'.' computes something"},
        {"{{'a', n = (1)}}", "r.lua:1:12:", "'(' is not allowed here; give a string, a number"},
        {"{{'a', n = hann}}", "r.lua:1:12:", "write a string in quotes: \"hann\""},
        {"{{'a', n = nil}}", "r.lua:1:12:", "nil is not a value; omit the option"},
        {"{\n  {'a', n = 1, n = 2}\n}", "r.lua:2:16:", "'n' is given twice; remove one"},
        {"{{'a', [1] = 2}}", "r.lua:1:8:", "names of options are strings"},
        {"{{'a', ['n' = 2}}", "r.lua:1:13:", "expected ], got '='"},
        {"{{'a', ['n'] 2}}", "r.lua:1:14:", "expected =, got '2'"},
        {"{'a' 'b'}", "r.lua:1:6:", "expected , or }, got "},
        {"{'a', 'b'", "r.lua:1:1:", "this { has no }"},
        {"{'a\n'}", "r.lua:1:2:", "this string has no end in its line; close it with '"},
        {"{'\\q'}", "r.lua:1:3:", "'q' after a backslash is not an escape"},
        {"{'\\300'}", "r.lua:1:3:", "is not an escape"},
        {"{'\\u{110000}'}", "r.lua:1:3:", "is not an escape"},
        {"{'\\xff'}", "r.lua:1:2:", "not UTF-8 text; its escapes make other bytes"},
        {"{'a\\0'}", "r.lua:1:2:", "not UTF-8 text"},
        {"{[[a}", "r.lua:1:2:", "this string has no end; close it with ]]"},
        {"{--[==[ a ]]}", "r.lua:1:2:", "this comment has no end; close it with ]==]"},
        {"{{'a', n = 1e999}}", "r.lua:1:12:", "larger than any number"},
        {"{{'a', n = 1e}}", "r.lua:1:12:", "'1e' is not a number"},
        {"{{'a', n = 0x11111111111111111}}", "r.lua:1:12:", "is not a number"},
        {"{{'a', n = 1..2}}", "r.lua:1:12:", "'1..2' is not a number"},
        {"{{'a', n = 12px}}", "r.lua:1:12:", "'12px' is not a number"},
        {"{{'a', n = " .. ("9"):rep(65) .. "}}", "r.lua:1:12:", "65 characters; 64 is the most"},
        {"{} {}", "r.lua:1:4:", "'{' follows the end of the recipe"},
        {"", "r.lua:1:1:", "expected one list of steps, { ... }, got the end of the text"},
        {"{1}", "r.lua:1:2:", "a step is a name or {name, option = value}, not the number 1"},
        {"{true}", "r.lua:1:2:", "not the boolean true"},
        {"{{n = 1}}", "r.lua:1:2:", "a step begins with its name"},
        {"{'a',\n {'b', {1, 2}}}", "r.lua:2:2:", "the options of step 'b' must have names"},
        {"{fbp = {filter = 'hann'}}", "r.lua:1:1:", "'fbp' is outside a step"},
        {"{'a\0b'}", "r.lua:1:4:", "this is a zero byte; a recipe is text"},
        {"{'a', -- caf\xe9\n}", "r.lua:1:13:", "not UTF-8 text; save the recipe as UTF-8"},
        {"{'\u{e9}\u{e9}' 1}", "r.lua:1:7:", "expected , or }, got '1'"},
    }
    for _, case in ipairs(WRONG) do
        it("refuses " .. case[1]:sub(1, 40):gsub("[^ -~]", "?"), function()
            local text, err = helper.failure(recipe.parse, case[1], "r.lua")
            for i = 2, #case do
                assert.is_truthy(text:find(case[i], 1, true), text)
            end
            assert.equal("argument", err.code)
            assert.equal("recipe", err.op)
        end)
    end

    it("stops at the depth that steps need, and at too many values", function()
        assert.is_table(recipe.parse("{{'a', n = " .. ("{"):rep(6) .. ("}"):rep(6) .. "}}"))
        assert.matches("tables are nested more than 8 deep",
            message("{{'a', n = " .. ("{"):rep(7) .. ("}"):rep(7) .. "}}"))
        assert.is_table(recipe.parse("{{'a', n = {" .. ("1,"):rep(99990) .. "}}}"))
        assert.matches("more than 100000 values; put long lists into a file",
            message("{{'a', n = {" .. ("1,"):rep(100000) .. "}}}"))
        assert.matches("r.lua has 1048577 bytes; a recipe has at most 1048576",
            message("{'fbp'} --" .. (" "):rep(1048567)))
        assert.same({"fbp"}, recipe.parse("{'fbp'} --" .. (" "):rep(1048566)))
        assert.matches("this string has 4097 bytes; 4096 is the most",
            message("{'" .. ("a"):rep(4097) .. "'}"))
    end)

    it("says nothing but the place of text from a stranger's terminal", function()
        assert.is_nil(message("{\27[2J}"):find("\27", 1, true))
        assert.is_nil(helper.failure(recipe.parse, "{", "\27[2J"):find("\27", 1, true))
    end)
end)

describe("a hostile recipe", function()
    -- Refused within seconds of the processor and a few MiB, whatever it contains.
    local HOSTILE = {
        ["100 MB of braces"] = function() return ("{"):rep(100 << 20) end,
        ["a mebibyte of braces"] = function() return ("{"):rep(1 << 20) end,
        ["a mebibyte of closed braces"] = function()
            return ("{"):rep(1 << 19) .. ("}"):rep(1 << 19)
        end,
        ["a mebibyte of empty tables"] = function() return "{" .. ("{},"):rep(300000) .. "}" end,
        ["a mebibyte of minus signs"] = function() return "{{'a', n = " .. ("-"):rep(1 << 20) end,
        ["a mebibyte of comments"] = function() return ("--[[]]"):rep(170000) .. "x" end,
        ["a mebibyte of open comments"] = function() return ("--[=["):rep(200000) end,
        ["a mebibyte of long brackets"] = function() return "{" .. ("["):rep(1000000) end,
        ["a mebibyte of equals signs"] = function() return "{[" .. ("="):rep(1000000) end,
        ["a mebibyte of lines"] = function() return ("\n"):rep(1000000) .. "x" end,
        ["a mebibyte of escapes"] = function() return "{'" .. ("\\z "):rep(300000) .. "'" end,
        ["a mebibyte of quotes"] = function() return "{" .. ('"",'):rep(340000) .. "}" end,
        ["a mebibyte of one name"] = function() return "{" .. ("a"):rep(1000000) .. "}" end,
        ["a mebibyte of one number"] = function()
            return "{{'a', n = " .. ("1"):rep(1000000) .. "}}"
        end,
        ["a mebibyte of signs and exponents"] = function()
            return "{{'a', n = " .. ("1e+"):rep(340000) .. "}}"
        end,
        ["bytecode"] = function() return string.dump(function() return {"fbp"} end) end,
        ["zeros"] = function() return ("\0"):rep(1000000) end,
        ["noise"] = function()
            math.randomseed(7)
            local bytes = {}
            for i = 1, 100000 do
                bytes[i] = string.char(math.random(0, 255))
            end
            return table.concat(bytes)
        end,
    }
    for name, text_of in pairs(HOSTILE) do
        it("of " .. name .. " is refused at once", function()
            local text = text_of()
            collectgarbage()
            local bytes, start = collectgarbage "count", os.clock()
            local ok, err = pcall(recipe.parse, text, "r.lua")
            local seconds, grown = os.clock() - start, collectgarbage "count" - bytes
            assert.is_false(ok)
            assert.equal("argument", err.code)
            assert.is_true(#tostring(err) < 400)
            assert.is_true(seconds < 3, seconds)
            assert.is_true(grown < 40 * 1024, grown)
        end)
    end

    it("of half a mebibyte of nonsense, cut anywhere, never does anything but fail", function()
        math.randomseed(3)
        local words = {"{", "}", ",", "=", "'a'", "\"", "[[", "]]", "--", "\n", "1", "-", "e", "x",
            "return", "true", "function", "(", ")", "os", ".", "\\", "[", "]", ";", "\0", "\xe9"}
        local before = os.tmpname()
        for _ = 1, 3000 do
            local parts = {}
            for i = 1, math.random(1, 30) do
                parts[i] = words[math.random(#words)]
            end
            local ok, err = pcall(recipe.parse, "{" .. table.concat(parts, math.random() < 0.5
                and " " or ""))
            assert.is_true(ok or type(err) == "table" and err.code == "argument", err)
        end
        os.remove(before)
    end)
end)

describe("recipe.read", function()
    local name
    before_each(function() name = os.tmpname() end)
    after_each(function() os.remove(name) end)

    it("reads a file, and gives its text", function()
        local file <close> = io.open(name, "w")
        file:write "{'fbp'}\n"
        file:flush()
        local list, text = recipe.read(name)
        assert.same({"fbp"}, list)
        assert.equal("{'fbp'}\n", text)
    end)

    it("refuses what is no file, or too large, before reading it", function()
        assert.matches("there is no file '/nowhere/r.lua'",
            (helper.failure(recipe.read, "/nowhere/r.lua")))
        assert.matches("'/dev/zero' is not an ordinary file",
            (helper.failure(recipe.read, "/dev/zero")))
        assert.matches("'/' is not an ordinary file", (helper.failure(recipe.read, "/")))
        local file <close> = io.open(name, "w")
        file:seek("set", 1 << 36)
        file:write "x"
        file:flush()
        assert.matches("has 68719476737 bytes; a recipe has at most 1048576",
            (helper.failure(recipe.read, name)))
    end)
end)

describe("recipe.text", function()
    local function round(list)
        local text = recipe.text(list)
        assert.same(list, recipe.parse(text))
        assert.equal(text, recipe.text(recipe.parse(text)))
        return text
    end

    it("writes what parse reads back as the same", function()
        assert.equal('{\n    "flat_field",\n    {"fbp", cutoff = 0.5, filter = "hann"},\n}\n',
            round {"flat_field", {"fbp", filter = "hann", cutoff = 0.5}})
        assert.equal("{\n}\n", round {})
        round {{"a", b = {{1, 2}, {"x", y = true}}, ["not"] = false, ["with space"] = "\1\127\n\"\\é"}}
    end)

    it("keeps every bit of numbers, and whether they are whole", function()
        local numbers = {0.1, 1 / 3, 1e300, 5e-324, -0.0, 2 ^ 53, 25e3, math.pi, math.mininteger,
            math.maxinteger, -7, 0}
        local back = recipe.parse(round {{"a", n = numbers}})[1].n
        for i, number in ipairs(numbers) do
            assert.equal(number, back[i])
            assert.equal(math.type(number), math.type(back[i]))
        end
        assert.equal("-0.0", tostring(back[5]))
    end)

    it("keeps lines short", function()
        local shifts = {}
        for i = 1, 500 do
            shifts[i] = i / 7
        end
        for line in round({{"vertical_shift", note = "a", other = shifts}}):gmatch "[^\n]+" do
            assert.is_true(#line <= 100 or line:find "^ *other = {" ~= nil)
        end
    end)

    it("refuses what a recipe cannot hold", function()
        local function refused(part, list)
            assert.matches(part, (helper.failure(recipe.text, list)), 1, true)
        end
        refused("cannot hold the number inf", {{"a", n = math.huge}})
        refused("cannot hold the number", {{"a", n = 0 / 0}})
        refused("cannot hold a function", {{"a", f = print}})
        refused("not UTF-8 text", {{"a", s = "\xff"}})
        refused("a table with the key 3", {{"a", t = {1, [3] = 2}}})
        refused("entry 1: a step is a name", {7})
        local circle = {}
        circle[1] = circle
        refused("more than 8 deep", {{"a", t = circle}})
    end)
end)

describe("values of a command line", function()
    it("are those of a recipe, or text", function()
        assert.equal("ram-lak", recipe.value "ram-lak")
        assert.equal(0.5, recipe.value "0.5")
        assert.equal(-5, recipe.value "-5")
        assert.equal(true, recipe.value "true")
        assert.equal("a b", recipe.value "'a b'")
        assert.same({1, {2}}, recipe.value "{1, {2}}")
        assert.matches("this { has no }", (helper.failure(recipe.value, "{1, 2")))
    end)

    it("sweep over a range or a list", function()
        local list = recipe.sweep "290:302:0.5"
        assert.equal(25, #list)
        assert.equal(290.5, list[2])
        assert.equal(302, list[25])
        assert.same({"hann", "ram-lak"}, recipe.sweep "hann, ram-lak")
        assert.same({1, 2.5}, recipe.sweep "1,2.5")
        for _, text in ipairs {"1:2:0", "2:1:1", "1:2:-1", "1:1e9:1", "a:b:c", "1:2:nan"} do
            assert.matches("is not FIRST:LAST:STEP with 1 to 10000 values",
                (helper.failure(recipe.sweep, text)))
        end
        assert.matches("a sweep has 1 to 10000 values", (helper.failure(recipe.sweep, "")))
    end)
end)
