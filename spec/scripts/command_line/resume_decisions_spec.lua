-- Each option of a command with --resume has a decision: is it a part of what identifies a run, or
-- why not? (command_line/resumed.lua; resumed_spec.lua tries them)

local files = require "spec.support.files"
local mb = require "moonbeam"
local resumed = require "moonbeam.internal.command_line.resumed"

local BIN <const> = os.getenv "MOONBEAM_BIN" or mb.system.program()

-- The names of the options of a command.
local function options_of(command)
    local help, seen = files.run(("'%s' %s --help"):format(BIN, command)), {}
    for name in help:gmatch "\n  %-?%a?,? ?%-%-([%w-]+)" do
        seen[name] = true
    end
    return seen
end

describe("a run that may go on", function()
    for command, decisions in pairs {reconstruct = resumed.reconstruct,
        deconvolve = resumed.deconvolve} do
        it("has a decision for each option of " .. command, function()
            local seen = options_of(command)
            for name in pairs(seen) do
                assert(name == "help" or decisions[name], ("command_line/resumed.lua says nothing "
                    .. "of --%s of %s: is another value another run?"):format(name, command))
            end
            for name in pairs(decisions) do
                assert(seen[name], ("%s has no --%s"):format(command, name))
            end
        end)
    end

    it("is of a command that is looked at here", function()
        for _, name in ipairs(files.list "scripts") do
            local command = name:match "^(.*)%.lua$"
            local text = command and files.read("scripts/" .. name) or ""
            if text:find("resuming.option", 1, true) then
                assert(resumed[command], command)
            end
        end
    end)
end)
