-- The module: `local mb = require "moonbeam"`. Sets no globals.
--
-- What is used all the time is here directly: array constructors, devices, and every operator by
-- its name. Sub-modules (mb.tomo, mb.scan, ...) are the files beside this one, loaded when first
-- used.

local core = require "moonbeam.core"

-- Errors blame the nearest caller outside this folder.
local home = debug.getinfo(1, "S").source:match("^@(.*)init%.lua$")
if home then
    core.system.set_home(home)
end

local array = require "moonbeam.array"
local declared = require "moonbeam.internal.declared"
local device = require "moonbeam.device"
local fail = require "moonbeam.internal.fail"
local ledger = require "moonbeam.ledger"
local op = require "moonbeam.op"
local pool = require "moonbeam.pool"
local strict = require "moonbeam.internal.strict"

local mb = {
    version = core.version,
    all = core.array.all,
    array = array,
    device = device,
    devices = device.list,
    default_device = device.default,
    op = op,
    pool = pool,
    fft = require "moonbeam.fft",
    h5 = require "moonbeam.h5",
    picture = declared.module(core.picture, "picture"),
    system = declared.module(core.system, "system"),
    collect = core.garbage.collect,
    ledger = ledger,
    dry_run = ledger.dry_run,
    ledger_diff = ledger.diff,
    bound = ledger.bound,
    raise = core.error.raise,
    error = core.error.new,
    empty = array.empty,
    zeros = array.zeros,
    ones = array.ones,
    full = array.full,
    random = array.random,
    arange = array.arange,
    linspace = array.linspace,
    from_string = array.from_string,
}

-- These two are C alone; the others are files that `require` finds.
package.loaded["moonbeam.picture"], package.loaded["moonbeam.system"] = core.picture, core.system

-- Operators do not hide anything that is here already (the transform `fft` is mb.fft itself).
for name, f in pairs(op.functions) do
    if mb[name] == nil then
        mb[name] = f
    end
end

local ENOENT, ENOTDIR <const> = 2, 20

-- Whether there is a module of this name. A file that is there but cannot be opened (too many
-- open files, no permission) is an error: the system's reason is what the caller must know.
local function has_module(name)
    if package.searchpath(name, package.path) then
        return true
    end
    for template in package.path:gmatch("[^;]+") do
        local file = template:gsub("%?", (name:gsub("%.", "/")))
        local f, message, code = io.open(file)
        if f then -- it could not be opened a moment ago
            f:close()
            return true
        elseif code ~= ENOENT and code ~= ENOTDIR then
            fail("io", nil, nil, "cannot open the module '%s': %s", name, message)
        end
    end
    return false
end

return setmetatable(mb, {
    __index = function(_, name)
        if type(name) ~= "string" then
            return nil
        end
        if name:match("^[%l_][%w_]*$") and name ~= "init" and has_module("moonbeam." .. name) then
            local module = require("moonbeam." .. name)
            rawset(mb, name, module)
            return module
        end
        fail("argument", nil, nil, "moonbeam has no '%s'%s", name,
            strict.advice(name, strict.names(mb), "moonbeam"))
    end,
    __name = "moonbeam",
})
