-- Every public function, called with nothing and with things it is not made for, returns or
-- raises an error object: never a fault in a line of the library. The calls change budgets,
-- switches and files, so a process of its own makes them.

local helper = require "spec.helper"
local files = require "spec.support.files"

local PROBE = [=[
local mb = require "moonbeam"

-- What would end the process, or wait: made to return. What is printed is of no interest.
os.exit = function() error(mb.error("internal", "the end")) end
print = function() end
io.stdout:setvbuf "full"
local out = io.stderr
local SKIPPED = {["repl.run"] = "reads a terminal", ["debug.break_guard"] =
    "breaks memory to be found",
    ["debug.fail_step"] = "kills the process"}
-- These change what others do: after all others.
local LAST = {["pool.budget"] = true, ["pool.activate"] = true, ["pool.shutdown"] = true,
    ["debug.refuse_commits"] = true, ["debug.pretend_memory"] = true,
    ["debug.refuse_pins"] = true, ["debug.fail_nth"] = true, ["debug.set_guards"] = true,
    ["pool.debug"] = true,
    ["system.cancel"] = true}

local calls, first, last = {}, {}, {}
local function add(name, f)
    if not SKIPPED[name] then
        table.insert(LAST[name] and last or first, {name, f})
    end
end

local modules = 0
for _, name in ipairs(require("moonbeam.internal.modules").names()) do
    local ok, module = pcall(function() return mb[name] end)
    if ok and type(module) == "table" then
        modules = modules + 1
        for key, f in pairs(module) do
            if type(f) == "function" then
                add(name .. "." .. key, f)
            end
        end
        if (getmetatable(module) or {}).__call then
            add(name, module)
        end
    end
end
for key, f in pairs(mb) do
    if type(f) == "function" then
        add(key, f)
    end
end
for key, method in pairs(mb.array.methods) do
    add("array:" .. key, method)
    for _, value in ipairs {1, "x", {}} do
        add(("array:%s(%s)"):format(key, type(value)), function()
            local a <close> = mb.ones {4, 6}
            method(a, value)
        end)
    end
end
table.sort(first, function(a, b) return a[1] < b[1] end)
table.sort(last, function(a, b) return a[1] < b[1] end)

for _, object in ipairs {mb.device "host", (select(2, mb.pool.tag "x")), mb.random({4}),
    mb.fft.plans and mb.ledger(function() end),
    mb.progress.new("x", 1, {quiet = true}), mb.volumes.of_array(mb.ones {4, 6})} do
    local index = (debug.getmetatable(object) or {}).__index
    for key, method in pairs(type(index) == "table" and index or {}) do
        if type(method) == "function" then
            add("a method: " .. key, method)
        end
    end
end

local function try(name, f)
    mb.debug.fail_nth(0)
    mb.debug.refuse_commits(0)
    mb.pool.budget(1 << 30, "host")
    local array = mb.ones {4, 6}
    for _, arguments in ipairs {{n = 0}, {n = 1}, {1, n = 1}, {"x", n = 1}, {{}, n = 1},
        {array, n = 1}} do
        local ok, err = pcall(f, table.unpack(arguments, 1, arguments.n))
        calls[#calls + 1] = name
        if not ok and (type(err) ~= "table" or (getmetatable(err)
            or {}).__name ~= "moonbeam.error") then
            out:write(("WRONG %s(%s): %s\n"):format(name, arguments.n == 0 and ""
                or type(arguments[1]), tostring(err)))
        elseif not ok and tostring(err):match "^[^\n]*attempt to" then
            out:write(("WRONG %s(%s): %s\n"):format(name, arguments.n == 0 and ""
                or type(arguments[1]), tostring(err)))
        end
    end
    pcall(array.release, array)
end

for _, list in ipairs {first, last} do
    for _, entry in ipairs(list) do
        try(entry[1], entry[2])
    end
end
out:write(("made %d calls of %d modules\n"):format(#calls, modules))
]=]

describe("nonsense", function()
    it("is returned from, or refused by an error object, by every public function", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, { __close = function()
            files.remove(folder)
        end })
        local probe <close> = assert(io.open(folder .. "/probe.lua", "w"))
        probe:write(PROBE)
        probe:close()
        local output, status = helper.run_program(("%s/probe.lua"):format(folder), "",
            ("cd %s && %s"):format(folder, helper.program))
        local wrong = {}
        for line in output:gmatch "WRONG [^\n]*" do
            wrong[#wrong + 1] = line
        end
        assert.equal("", table.concat(wrong, "\n"))
        local calls, modules = output:match "made (%d+) calls of (%d+) modules"
        assert.is_not_nil(calls, output:sub(-2000))
        assert.equal(0, status)
        assert.is_true(tonumber(calls) > 2000 and tonumber(modules) > 22,
            ("%s calls, %s modules"):format(calls, modules))
    end)

    it("of modules that are parts of others is out of reach", function()
        local mb = require "moonbeam"
        local parts = 0
        local folder = package.searchpath("moonbeam", package.path):match("^(.*)/init%.lua$")
        for file in io.popen(("ls %s/*/*.lua"):format(folder)):lines() do
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
end)
