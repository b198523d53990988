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
            output = output:gsub("\n%s+%[C%]: in %?", ""):gsub("^" .. program:gsub("%p", "%%%0"),
                "lua")
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
        { "-", [[ -- its own coroutine.resume and coroutine.wrap
            print(coroutine.resume(coroutine.create(function(...) return coroutine.yield(...) end), 1, nil, 3))
            print(coroutine.resume(coroutine.create(function() error("boom", 0) end)))
            print(pcall(coroutine.wrap(function() error("boom") end)))
            print(select(2, pcall(function() coroutine.wrap(function() local _ = nil + 1 end)() end)))
            print(type(select(2, pcall(coroutine.wrap(function() error({}) end)))), (pcall(coroutine.resume, 1)))
            local f = coroutine.wrap(function() return 1 end)
            print(f(), pcall(f))
            local co = coroutine.create(function() return coroutine.resume(coroutine.running()) end)
            print(coroutine.resume(co))
            print(coroutine.status(co), coroutine.resume(co), pcall(coroutine.wrap))
            print(coroutine.wrap(function(...) print(...) for i = 1, 3 do coroutine.yield(i, nil) end end)(4, 5))
            local function nest(n) return n == 0 and 0 or 1 + coroutine.wrap(nest)(n - 1) end
            print(nest(150), (select(2, pcall(nest, 1000)):gsub("^.*: ", "")))
        ]] },
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

    it("tells what the prompt understands before the first one", function()
        local text = helper.run_program("-i", "")
        assert.matches("help%(%) lists topics, %?tomo.fbp explains it, .*Ctrl%-D or exit ends", text)
        for line in text:gmatch "[^\n]+" do
            assert.is_true(#line <= 80, line) -- what a terminal has
        end
    end)

    it("refuses wrong use with status 2 and one line", function()
        for arguments, problem in pairs {
            ["-x"] = "'-x' is not an option",
            ["-vv"] = "'-vv' is not an option",
            ["-Ex"] = "'-Ex' is not an option",
            ["-hx"] = "'-hx' is not an option",
            ["--foo"] = "'--foo' is not an option",
            ["-e"] = "'-e' needs an argument",
            ["-l"] = "'-l' needs an argument",
            ["--device"] = "'--device' needs an argument",
            ["--budget"] = "'--budget' needs an argument",
            ["--plan"] = "'--plan' needs a script",
            ["--ledger"] = "'--ledger' needs a script",
            ["--leaks"] = "'--leaks' needs a script",
            ["--device nowhere -e ''"] = 'unknown device "nowhere"; valid names are "host"',
            ["--device=planned:abacus"] = 'no record of "abacus"; devices that can be planned for',
            ["--budget 8X"] = "budget must be a number of bytes",
            ["--budget 900T -"] = "a budget of 900 TB exceeds the pool's address range",
        } do
            local output, status = helper.run_program(arguments)
            assert.equal(2, status, arguments)
            assert.truthy(output:find(": " .. problem, 1, true), output)
            assert.matches("^[^\n]*\n$", output)
        end
        local _, status = helper.run_program("--device cuda:31 -e ''") -- there could be one
        assert.equal(1, status)
    end)

    it("has a version, help, and a default device", function()
        for _, option in ipairs { "-v", "--version" } do
            assert.matches("^Moonbeam " .. mb.version:gsub("%p", "%%%0") .. ", Lua 5%.4",
                (helper.run_program(option)))
        end
        for _, option in ipairs { "-h", "--help" } do
            local output, status = helper.run_program(option)
            assert.matches("^usage: .*%-%-device", output)
            assert.equal(0, status)
        end
        local output = helper.run_program(
            [[--device host -e 'print(require("moonbeam").default_device().id)']])
        assert.equal("host\n", output)
    end)

    it("gives the default device its budget before anything runs", function()
        local code = [[-e 'print(require("moonbeam").device("host"):budget())']]
        for _, arguments in ipairs { code .. " --budget 64M", "--budget=64M --device host " .. code,
            "-lmoonbeam --device=host --budget 64M " .. code } do
            assert.equal("64000000\n", (helper.run_program(arguments)))
        end
    end)

    it("fails when its output cannot be written", function()
        local function ends(command)
            local pipe = assert(io.popen(("{ %s; } 2>&1; echo status $?"):format(command)))
            local output <const> = pipe:read("a")
            pipe:close()
            return output
        end
        local lost = "^[^\n]*: cannot write all of the standard output: [^\n]*\nstatus %s\n$"
        local name = os.tmpname()
        local f <close> = assert(io.open(name, "w"))
        f:write('require("moonbeam").zeros({3}):release() os.exit(tonumber(arg[1]), true)')
        f:close()
        local program = helper.program
        for _, to in ipairs { ">/dev/full", ">&-" } do
            assert.matches(lost:format(1), ends(program .. " --help " .. to))
            assert.matches(lost:format(1), ends(program .. " -e 'print(1)' " .. to))
            assert.matches(lost:format(1), ends(program .. " -e 'print(1) os.exit(0)' " .. to))
            assert.matches(lost:format(7), ends(program .. " -e 'io.write(1) os.exit(7, true)' "
                .. to))
            assert.matches(lost:format(1), ends(("%s --plan %s 0 %s"):format(program, name, to)))
            assert.equal("status 0\n", ends(program .. " -e 'local _ = 1' " .. to))
        end
        os.remove(name)
    end)

    it("never takes a file for a standard stream that was closed", function()
        local name = os.tmpname()
        os.execute(([[%s -e '
            local f <close> = io.open("%s", "w")
            print("printed")
            io.stderr:write("an error")
            f:write("content")' <&- >&- 2>&-]]):format(helper.program, name))
        local f <close> = assert(io.open(name))
        assert.equal("content", f:read("a"))
        os.remove(name)
    end)

    it("says what the system says when a module cannot be opened", function()
        local output = helper.run_program("-", [[
            local mb = require "moonbeam"
            local open = {}
            repeat open[#open + 1] = io.open("/dev/null") or false until not open[#open]
            local ok, err = pcall(function() return mb.recon end)
            print(ok, err.code, err)
            for _, f in ipairs(open) do if f then f:close() end end
            print(type(mb.recon), pcall(function() return mb.no_such_module end))
        ]], "ulimit -n 20; " .. helper.program)
        assert.matches("^false\tio\t[^\n]*cannot open the module 'moonbeam.recon': "
            .. "[^\n]*recon.lua: "
            .. "Too many open files\ntable\tfalse\t[^\n]*moonbeam has no 'no_such_module'; "
            .. "mb.help%(%) lists what there is\n$", output)
    end)

    it("lets finalizers make arrays while the state closes", function()
        local output, status = helper.run_program("-", [[
            local mb = require "moonbeam"
            Kept = {}
            for i = 1, 3 do
                X = { X, setmetatable({}, {__gc = function()
                    local a = mb.random({30, 30})
                    Kept[i] = a + 1
                    print(a:sum() > 0)
                end}) }
            end
        ]])
        assert.equal("true\ntrue\ntrue\n", output)
        assert.equal(0, status)
    end)

    it("starts a prompt", function()
        local output, status = helper.run_program("-i",
            "mb.ones{2, 2}\nfor i = 1, 1 do\nprint('in')\nend\n")
        assert.equal(0, status)
        assert.matches("f32 2 x 2, 16 B, host\n  1  1\n  1  1\n", output)
        assert.matches(">> in\n", output)
    end)

    it("ends with one line for an error object", function()
        local output, status = helper.run_program([[-e 'require("moonbeam").zeros({-1})']])
        assert.equal(1, status)
        assert.matches("^[^\n]*%(command line%):1: zeros: shape has a negative extent, %-1; "
            .. "extents must be 0 or more\n$",
            output)
    end)

    it("fails with --leaks when a script leaves arrays live, and lists them by line", function()
        local name = os.tmpname()
        local function run(text)
            local f <close> = assert(io.open(name, "w"))
            f:write('local mb = require "moonbeam"\n', text)
            f:close()
            return helper.run_program("--leaks " .. name)
        end
        local output, status =
            run("kept = {mb.zeros{1000}}\nfor i = 2, 3 do kept[i] = mb.ones{10} end\nmb.zeros{99}")
        assert.equal(1, status)
        assert.matches("leaks on host: 5120 bytes in 3 blocks were still live:\n  4096 bytes in 1 block made at [^\n]*:2,",
            output)
        assert.matches("\n  1024 bytes in 2 blocks made at [^\n]*:3,", output)
        -- a is only forgotten
        output, status = run("local a = mb.zeros{1000}\nlocal b = a + 1\nb:release()")
        assert.equal("", output)
        assert.equal(0, status)
        output, status = run("kept = mb.zeros{1000}\nerror('no more')")
        assert.equal(1, status)
        assert.matches("no more.*4096 bytes in 1 block made at", output)
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
        local output, status = helper.run_program("-", text:format("HUP"),
            "nohup " .. helper.program)
        assert.equal(0, status)
        assert.matches("went on", output)
    end)
end)

describe("a signal", function()
    -- Output and status of a program that stops itself while `code` runs. `stop()` sends the
    -- signal.
    local function stopped(code, signal)
        return helper.run_program("-", ([[
            local mb = require "moonbeam"
            local function stop() io.popen("kill -%s " .. mb.system.pid()):close() end
            local function forever() stop() while true do end end
            local _ <close> = setmetatable({}, {__close = function()
                for _ = 1, 1000 do end
                print("closed")
            end})
            %s
            print("went on")
        ]]):format(signal or "INT", code))
    end

    it("stops a coroutine, whoever resumes it", function()
        for _, code in ipairs {
            "coroutine.wrap(forever)()",
            "coroutine.resume(coroutine.create(forever))",
            -- a scheduler that ignores errors
            "while true do coroutine.resume(coroutine.create(forever)) end",
            "coroutine.wrap(function() coroutine.wrap(forever)() end)()",
            "coroutine.wrap(function() coroutine.resume(coroutine.create(forever)) end)()",
            "coroutine.wrap(function() pcall(coroutine.wrap(forever)) end)() for _ = 1, 10 do end",
            "local f = coroutine.wrap(function() stop() coroutine.yield() end) while true do f() "
                .. "end",
            "for _ in coroutine.wrap(forever) do end",
        } do
            local output, status = stopped(code)
            assert.equal(130, status, code .. "\n" .. output)
            assert.matches("closed\n[^\n]*interrupted by Ctrl%-C\n$", output)
            assert.not_matches("went on", output)
        end
        assert.equal(143, (select(2, stopped("coroutine.wrap(forever)()", "TERM"))))
    end)

    it("stops a script that catches every error, after a moment for what it has to close", function()
        for _, code in ipairs {
            "stop() while true do pcall(error) end",
            "stop() while true do pcall(mb.ones, {64, 64}) end",
            "stop() while true do pcall(function() for _ = 1, 1e6 do end end) end",
            "local function spin() while true do end end local function deep(n) while true do "
                .. "pcall(n > 0 and deep or spin, n - 1) end end stop() "
                .. "while true do pcall(coroutine.wrap(deep), 2) end",
        } do
            local began = mb.system.clock()
            local output, status = stopped(code)
            assert.equal(130, status, code .. "\n" .. output)
            assert.matches("interrupted by Ctrl%-C\n$", output)
            assert.is_true(mb.system.clock() - began < 10, code)
        end
        local output = stopped [[pcall(forever) pcall(function()
            local _ <close> = setmetatable({}, {__close = function()
                for _ = 1, 10000 do end print("inner") end})
            error("x")
        end)]]
        assert.matches("inner", output)
    end)

    it("stops a script that does not load the module, too", function()
        local output, status = helper.run_program("-",
            "io.popen('kill -INT $PPID'):close() while true do end")
        assert.matches("^[^\n]*: interrupted by Ctrl%-C\n$", output)
        assert.equal(130, status)
    end)

    it("closes the variables of the coroutine that it stops", function()
        local output = stopped([[
            coroutine.wrap(function()
                local _ <close> = setmetatable({}, {__close = function() for _ = 1, 99 do end print("inner") end})
                forever()
            end)()
        ]])
        assert.matches("^inner\nclosed\n", output)
    end)

    it("that comes twice ends what does not react, and leaves no unfinished file", function()
        local folder = os.tmpname()
        os.remove(folder)
        assert(mb.system.mkdir(folder))
        local output, status = stopped(([[
            local r = mb.result.create("%s/volume.h5", {shape = {2, 3, 3}})
            print(#mb.system.folder("%s"), "before")
            -- The first signal comes when the search below has taken 0.3 s of processor time; more
            -- follow until the program has ended, for two that are not yet delivered are one.
            local kill = "set --; while kill -0 PID && [ ${12:-0} -lt TICKS ]; do sleep 0.02; "
                .. "set -- $(sed 's/.*) //' /proc/PID/stat); done; "
                .. "while kill -TERM PID; do sleep 0.2; done"
            kill = kill:gsub("PID", mb.system.pid()):gsub("TICKS", math.floor(100 * os.clock()) + 30)
            io.popen("{ " .. kill .. "; } >/dev/null 2>&1 &"):close()
            string.rep("x", 60):find(string.rep("x*", 30) .. "y")
        ]]):format(folder, folder), "TERM")
        assert.matches("^1\tbefore", output)
        assert.not_matches("went on", output)
        assert.not_matches("closed", output) -- Lua never came to it
        assert.equal(143, status)
        assert.same({}, mb.system.folder(folder))
        os.remove(folder)
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
        local lua_half = package.searchpath("moonbeam",
            package.path):match("^(.*)/moonbeam/init%.lua$")
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

-- The program keeps small blocks that Lua frees, and gives them out again.
describe("small blocks of memory", function()
    local PROGRAM <const> = [[
        local function resident()
            for line in io.lines "/proc/self/status" do
                if line:match "^VmRSS" then return tonumber(line:match "%d+") end
            end
        end
        local function make(seed)
            local list = {}
            for i = 1, 20000 do
                local n = (i * 7919 + seed) % 300
                local t = {text = string.char(65 + n % 26):rep(n) .. i}
                for k = 1, n % 33 do t[k] = n + k end -- grows through all sizes
                list[i] = i % 3 == 0 and t.text or i % 3 == 1 and t or {[n] = t}
            end
            return list
        end
        local function check(list, seed)
            for i, value in ipairs(list) do
                local n = (i * 7919 + seed) % 300
                local t = i % 3 == 2 and value[n] or value
                local text = string.char(65 + n % 26):rep(n) .. i
                assert((i % 3 == 0 and t or t.text) == text)
                for k = 1, i % 3 == 0 and 0 or n % 33 do assert(t[k] == n + k) end
            end
        end
        local most
        for round = 1, 12 do
            local a, b = make(round), make(round + 1)
            check(a, round)
            a = nil
            collectgarbage()
            local c = make(round + 2)
            check(b, round + 1)
            check(c, round + 2)
            b, c = nil, nil
            collectgarbage()
            if round == 4 then most = resident() end
        end
        print("sound", resident() - most)
    ]]

    it("are whole, and are used again", function()
        local output, status = helper.run_program("-", PROGRAM)
        assert.equal(0, status, output)
        local growth = tonumber(output:match "^sound%s+(%-?%d+)")
        -- A sanitizer keeps what was freed.
        assert.is_true(helper.program:match "/sanitize/" ~= nil or growth <= 8192, output)
    end)
end)

describe("threads that wait", function()
    -- What libgomp says of itself when it starts, and what the program's environment then holds.
    local function policy(environment)
        local output = helper.run_program([[-e 'print("left", os.getenv("OMP_WAIT_POLICY"))']], "",
            "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose " .. environment
                .. " "
            .. helper.program)
        return output:match("OMP_WAIT_POLICY = '(%w+)'"), output:match("GOMP_SPINCOUNT = '(%d+)'"),
            output:match("left\t(%w+)")
    end

    it("sleep, without a trace in the environment", function()
        assert.same({ "PASSIVE", "0", "nil" }, { policy("") })
    end)

    it("do what the user says", function()
        local chosen, _, left = policy("OMP_WAIT_POLICY=active")
        assert.same({ "ACTIVE", "active" }, { chosen, left })
        local _, spins
        _, spins, left = policy("GOMP_SPINCOUNT=777")
        assert.same({ "777", "nil" }, { spins, left })
    end)
end)

describe("a command", function()
    local folder = os.tmpname()
    local function at(command)
        return helper.run_program(command, "", ("cd '%s' && '%s'"):format(folder, helper.program))
    end
    lazy_setup(function()
        os.remove(folder)
        assert(os.execute("mkdir " .. folder))
    end)
    lazy_teardown(function()
        os.execute("rm -r " .. folder)
    end)

    it("is run by its name, from any folder, and is listed by --help", function()
        local help = at "--help"
        for _, name in ipairs { "reconstruct", "batch", "deconvolve", "convolve", "psf", "simulate" } do
            assert.matches("\n  " .. name .. "  +%l", help)
            local output, status = at(name .. " --help")
            assert.equal(0, status, output)
            assert.matches("^usage: moonbeam " .. name .. " ", output)
            assert.equal(2, select(2, at(name .. " --bogus")))
        end
        local output, status = at "--plan simulate scan.h5 --size 32 --rows 4 --angles 24"
        assert.equal(0, status, output)
        assert.matches("ellipsoid_projections", output)
    end)

    it("gives way to no file or folder of its name, which is meant by a slash or --", function()
        assert(os.execute(("mkdir '%s/simulate'"):format(folder)))
        assert.matches("^usage", (at "simulate --help"))
        for _, name in ipairs {"convolve", "other"} do
            local f = assert(io.open(folder .. "/" .. name, "w"))
            f:write("print('a file', arg[0], ...)")
            f:close()
        end
        assert.matches("^usage", (at "convolve --help"))
        assert.equal("a file\t./convolve\t1\n", (at "./convolve 1"))
        assert.equal("a file\tconvolve\t1\n", (at "-- convolve 1"))
        local output, status = at "other 1"
        assert.equal(2, status)
        assert.matches("'other' is no command; the script of this name in the current folder runs "
            .. "as %./other", output)
        assert.equal("a file\t./other\t1\n", (at "./other 1"))
    end)

    it("runs no module of the current folder, but those beside a script", function()
        assert(os.execute(("mkdir -p '%s/moonbeam' '%s/beside'"):format(folder, folder)))
        for name, text in pairs {["mine.lua"] = "return 'mine'", ["moonbeam/mine.lua"] =
            "print 'data runs'", ["beside/own.lua"] = "return 'own'",
            ["beside/script.lua"] = "print(require 'own', pcall(require, 'mine'))"} do
            local f = assert(io.open(folder .. "/" .. name, "w"))
            f:write(text)
            f:close()
        end
        local bare = "-u LUA_PATH -u LUA_PATH_5_4 -u LUA_CPATH -u LUA_CPATH_5_4"
        local function run(arguments, variables)
            local pipe = assert(io.popen(("cd '%s' && env %s %s '%s' %s 2>&1"):format(folder, bare,
                variables or "", helper.program, arguments)))
            local text = pipe:read "a"
            return text, select(3, pipe:close())
        end
        assert.matches("^own\tfalse\tmodule 'mine' not found", (run "beside/script.lua"))
        local text, status = run [[-e 'require "mine"']]
        assert.equal(1, status)
        assert.matches("other folders are added by LUA_PATH='FOLDER/%?.lua;;'", text)
        assert.equal("mine\n", (run([[-e 'print((require "mine"))']],
            "LUA_PATH='./?.lua;;'")))
        assert.not_matches("data runs", (run [[-e 'print(pcall(function()
            return require("moonbeam").mine end))']]))
    end)

    it("that does not exist is wrong use", function()
        local output, status = at "recnstruct scan.h5"
        assert.equal(2, status)
        assert.matches("there is no command 'recnstruct' %(did you mean 'reconstruct'%?%)",
            output)
    end)

    it("is named where a file is no script", function()
        for name, words in pairs {["a.h5"] = {"\x89HDF\r\n\x1a\n", "'a.h5' is an HDF5 file, not a "
            .. "Lua script; '[^']* reconstruct a.h5' reconstructs the scan in it\n"},
            ["a.tif"] = {"II*\0", "'a.tif' is a TIFF file, not a Lua script; '[^']* deconvolve "
                .. "a.tif PSF %-o OUT' deconvolves it\n"}} do
            local f = assert(io.open(folder .. "/" .. name, "w"))
            f:write(words[1], ("\0"):rep(100))
            f:close()
            for _, option in ipairs {"", "--plan "} do
                local output, status = at(option .. name)
                assert.equal(2, status)
                assert.matches(words[2], output)
            end
        end
        local output, status = at "nosuch.lua"
        assert.equal(2, status)
        assert.matches("cannot open 'nosuch.lua': No such file or directory; give the name of a Lua "
            .. "script or of a command %('[^']* %-%-help' lists them%)\n", output)
        output = helper.run_program(('-c "%s <(echo \'print(5)\')"'):format(helper.program), "",
            "bash")
        assert.equal("5\n", output)
    end)
end)

describe("every script", function()
    local root = mb.system.real_path "."
    local names = { "scripts/build", "scripts/bundle", "scripts/demo", "scripts/find_nvcc",
        "scripts/fuzz", "scripts/install", "scripts/install_module", "scripts/setup",
        "scripts/test", "spec/run", ".ci/run" }

    local function each(f)
        if not mb.system.stat("scripts/build") then
            pending("a bundle has the Lua scripts only")
            return
        end
        for _, name in ipairs(names) do
            f(name, ("cd /; '%s/%s'"):format(root, name))
        end
    end

    it("answers --help at once, from any folder", function()
        each(function(name, program)
            for _, option in ipairs { "-h", "--help" } do
                local output, status = helper.run_program(option, "", program)
                assert.equal(0, status, output)
                assert.matches(name, output, 1, true)
                assert.not_matches("set %-", output)
                assert.not_matches("built build/bin", output)
            end
        end)
    end)

    it("ends with status 2 on wrong options", function()
        each(function(name, program)
            if name == "scripts/test" then -- busted judges its options, after the build
                program = "MOONBEAM_BIN=" .. helper.program .. "; export MOONBEAM_BIN; " .. program
            end
            local output, status = helper.run_program("--bogus", "", program)
            assert.equal(2, status, name .. ": " .. output)
            assert.matches("%-%-help", output)
            assert.not_matches("built build/bin", output)
        end)
    end)
end)
