-- The command line of the program: what `lua` does, ours does.

local mb = require "moonbeam"
local helper = require "spec.helper"

-- The stock interpreter of the same version, if there is one.
local function stock()
    for _, name in ipairs { "lua5.4", "lua" } do
        local pipe = io.popen(name .. " -v 2>&1")
        local version = pipe:read("a")
        pipe:close()
        if version:match("^Lua 5%.4") then
            return name
        end
    end
end

describe("the command line", function()
    -- Output and status of both programs, with their names taken out.
    local function both(arguments, input, environment)
        local results = {}
        for i, program in ipairs { helper.program, stock() } do
            local command = (environment and "env " .. environment .. " " or "") .. program
            local output, status = helper.run_program(arguments, input, command)
            -- Lua's own main is a C function less deep.
            output = output:gsub("\n%s+%[C%]: in %?", ""):gsub("^" .. program:gsub("%p", "%%%0"), "lua")
            results[i] = { output = output, status = status }
        end
        return results[1], results[2]
    end

    local script = os.tmpname()
    lazy_setup(function()
        local f = assert(io.open(script, "w"))
        f:write([[
            #!/usr/bin/env lua
            print(select("#", ...), ...)
            for i = -5, 5 do
                if arg[i] and i ~= 0 and not arg[i]:match("/") and not arg[i]:match("^lua") then
                    print(i, arg[i])
                end
            end
            if arg[1] == "fail" then error("failed on request") end
            if arg[1] == "exit" then os.exit(7) end
        ]])
        f:close()
    end)
    lazy_teardown(function()
        os.remove(script)
    end)

    local cases = {
        { "-e 'print(1)'" },
        { "-e 'print(1)' -e 'print(2)'" },
        { "-e 'x = 1' SCRIPT a b" },
        { "SCRIPT" },
        { "SCRIPT a 'b c' -e" },
        { "-E SCRIPT x" },
        { "-W -e 'warn(\"careful\")'" },
        { "-lstring -e 'print(string.rep(\"x\", 3))'" },
        { "-l s=string -e 'print(s == string)'" },
        { "- a b", "print('from stdin', ...)" },
        { "", "print('piped', ...)" },
        { "-- SCRIPT -e" },
        { "SCRIPT fail" },
        { "SCRIPT exit" },
        { "/no/such/script.lua" },
        { "-e 'error(\"boom\")'" },
        { "-e 'error({})'" },
        { "-e 'error(setmetatable({}, {__tostring = function() return \"own\" end}))'" },
        { "-e 'x x'" },
        { "-e 'print(1)'", nil, "LUA_INIT='print(\"init\")'" },
        { "-E -e 'print(1)'", nil, "LUA_INIT='print(\"init\")'" },
        { "-e 'print(1)'", nil, "LUA_INIT=@/no/such/init.lua" },
        { "-e 'print(1)'", nil, "LUA_INIT_5_4='print(54)' LUA_INIT='print(0)'" },
        { "-e 'print(arg[0] ~= nil, #arg)'" },
        { "-e 'io.stdout:write(\"no newline\")'" },
    }
    for _, case in ipairs(cases) do
        local name = "is lua's: " .. (case[3] and case[3] .. " " or "") .. case[1]
        it(name, function()
            if not stock() then
                pending("no stock Lua 5.4 here")
                return
            end
            local ours, theirs = both(case[1]:gsub("SCRIPT", script), case[2], case[3])
            assert.equal(theirs.output, ours.output)
            assert.equal(theirs.status, ours.status)
        end)
    end

    it("refuses wrong options as lua does", function()
        for _, arguments in ipairs { "-x", "-e", "-l", "-vv", "-Ex", "--x" } do
            local output, status = helper.run_program(arguments)
            assert.equal(1, status)
            assert.matches("usage:", output)
        end
        assert.matches("'%-e' needs argument", (helper.run_program("-e")))
        assert.matches("unrecognized option '%-x'", (helper.run_program("-x")))
    end)

    it("has a version, help, and a default device", function()
        assert.matches("^Moonbeam " .. mb.version:gsub("%p", "%%%0") .. ", Lua 5%.4", (helper.run_program("-v")))
        assert.matches("%-%-device", (helper.run_program("--help")))
        local output = helper.run_program([[--device host -e 'print(require("moonbeam").default_device().id)']])
        assert.equal("host\n", output)
        local message, status = helper.run_program("--device nowhere -e ''")
        assert.equal(1, status)
        assert.matches("nowhere", message)
    end)

    it("starts a prompt", function()
        local output, status = helper.run_program("-i", "mb.ones{2, 2}\nfor i = 1, 1 do\nprint('in')\nend\n")
        assert.equal(0, status)
        assert.matches("f32 2 x 2, 16 B, host\n  1  1\n  1  1\n", output)
        assert.matches(">> in\n", output)
    end)

    it("ends with one line for an error object", function()
        local output, status = helper.run_program([[-e 'require("moonbeam").zeros({-1})']])
        assert.equal(1, status)
        assert.matches("^[^\n]*%(command line%):1: zeros: shape has a negative extent, %-1\n$", output)
    end)

    it("fails with --leaks when a script leaves arrays live, and lists them by line", function()
        local name = os.tmpname()
        local function run(text)
            local f <close> = assert(io.open(name, "w"))
            f:write('local mb = require "moonbeam"\n', text)
            f:close()
            return helper.run_program("--leaks " .. name)
        end
        local output, status = run("kept = {mb.zeros{1000}}\nfor i = 2, 3 do kept[i] = mb.ones{10} end\nmb.zeros{99}")
        assert.equal(1, status)
        assert.matches("leaks on host: 5120 bytes in 3 blocks were still live:\n  4096 bytes in 1 block made at [^\n]*:2,",
            output)
        assert.matches("\n  1024 bytes in 2 blocks made at [^\n]*:3,", output)
        output, status = run("local a = mb.zeros{1000}\nlocal b = a + 1\nb:release()") -- a is only forgotten
        assert.equal("", output)
        assert.equal(0, status)
        output, status = run("kept = mb.zeros{1000}\nerror('no more')")
        assert.equal(1, status)
        assert.matches("no more.*4096 bytes in 1 block made at", output)
        output, status = helper.run_program("--leaks")
        assert.equal(1, status)
        assert.matches("'%-%-leaks' needs a script", output)
        os.remove(name)
    end)

    it("stops a script on Ctrl-C", function()
        local output, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            io.popen("kill -INT " .. mb.system.pid()):close()
            local a <close> = mb.ones { 100 }
            while true do
                local b <close> = a + 1
            end
        ]])
        assert.equal(130, status)
        assert.matches("interrupted by Ctrl%-C", output)
    end)

    it("stops a script in order on SIGTERM and SIGHUP, unless they are ignored", function()
        local text = [[
            local mb = require "moonbeam"
            local _ <close> = setmetatable({}, {__close = function() print("closed") end})
            io.popen("kill -%s " .. mb.system.pid()):close()
            for _ = 1, 1000 do end
            print("went on")
        ]]
        for name, expected in pairs { TERM = 143, HUP = 129 } do
            local output, status = helper.run_program("-", text:format(name))
            assert.equal(expected, status)
            assert.matches("closed\n.*interrupted by SIG" .. name, output)
            assert.not_matches("went on", output)
        end
        local output, status = helper.run_program("-", text:format("HUP"), "nohup " .. helper.program)
        assert.equal(0, status)
        assert.matches("went on", output)
    end)
end)

describe("a stock interpreter", function()
    -- The module beside the program that was built; bundles have none.
    local folder = helper.program:match("^(.*)/bin/[^/]*$")
    local core = folder and folder .. "/lib/moonbeam/core.so"

    it("can require the module", function()
        local f = core and io.open(core)
        if not f or not stock() then
            pending("needs a stock Lua 5.4 and " .. tostring(core))
            return
        end
        f:close()
        local lua_half = package.searchpath("moonbeam", package.path):match("^(.*)/moonbeam/init%.lua$")
        local output, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            local a <close> = mb.ones { 2, 3 }
            print(a, a:sum(), (a + a):max())
        ]], ("env LUA_PATH='%s/?.lua;%s/?/init.lua' LUA_CPATH='%s/lib/?.so' %s"):format(lua_half, lua_half,
            folder, stock()))
        assert.equal("f32 array 2 x 3, 24 B, host\t6.0\t2.0\n", output)
        assert.equal(0, status)
    end)
end)
