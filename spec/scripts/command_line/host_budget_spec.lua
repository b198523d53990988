-- Beside a GPU the host has a budget of its own: an error of the host's memory names --host-budget,
-- with which the whole command is planned at the first try, and with nine tenths of it is not.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local folder

local RECIPE <const> = '{"flat_field", "minus_log", {"median", size = 3}, {"center", column = 8}, '
    .. '{"fbp"}, {"rescale", dtype = "uint8", percentiles = {0.1, 99.9}}}'

-- The options of a command with a budget that is too small, and what it is called.
local COMMANDS <const> = {
    {"deconvolve.lua i.npy p.npy --psf-background none -m rl --iterations 2 --plan"},
    {"convolve.lua --image i.npy --psf p.npy -p o.png --tiles always --plan"},
    {"reconstruct.lua s.h5 --recipe r.lua --plan"},
    {"reconstruct.lua s.h5 --recipe r.lua --plan", device = "host"},
}

local function run(command, bytes, more)
    return helper.run_program(("scripts/%s -d %s --host-budget %d %s"):format(command[1]:gsub(
        "(%f[%w]%w+%.[nhl][pu5][ya]?)", function(name)
            return name:find "^[a-z]%." and folder .. "/" .. name or name
        end), command.device or "planned:h200", bytes, more or ""))
end

describe("an error of the host's memory", function()
    setup(function()
        folder = files.folder()
        local image <close> = mb.random({3, 14, 16}, {seed = 1, low = 50, high = 950})
        local psf <close> = mb.random({2, 3, 3}, {seed = 2, low = 0.1, high = 1})
        mb.images.write(folder .. "/i.npy", image)
        mb.images.write(folder .. "/p.npy", psf)
        files.write(folder .. "/r.lua", RECIPE)
        local text, status = helper.run_program(("scripts/simulate.lua %s/s.h5 -n 16 --rows 3 -a 12 "
            .. "-q"):format(folder))
        assert(status == 0, text)
    end)

    teardown(function()
        files.remove(folder)
    end)

    for _, command in ipairs(COMMANDS) do
        it("names --host-budget, of " .. command[1], function()
            local text, status = run(command, 512)
            assert.equal(1, status, text)
            local bytes = math.tointeger(text:match "; give %-%-host%-budget %S+ or more %((%d+) bytes%)")
            assert.is_not_nil(bytes, text)
            text, status = run(command, bytes)
            assert.equal(0, status, text)
            text, status = run(command, bytes * 9 // 10)
            assert.equal(1, status, text)
            assert.equal(bytes, math.tointeger(text:match "%-%-host%-budget %S+ or more %((%d+) bytes%)"))
        end)
    end

    it("has no such budget where the work is on the host itself", function()
        for i = 1, 2 do
            local text, status = helper.run_program(("scripts/%s -d host --host-budget 1M"):format(
                COMMANDS[i][1]:gsub("(%f[%w][ip]%.npy)", folder .. "/%1")))
            assert.equal(2, status, text)
            assert.matches("%-%-host%-budget 1000000 is for the host beside a GPU, .*: give %-%-budget 1000000 ",
                text)
        end
    end)

    it("is said without an option where the command has none for it", function()
        local text, status = helper.run_program("-", [[
            local call_budget = require "moonbeam.internal.command_line.call_budget"
            arg = {[0] = "none.lua"}
            call_budget.begin({{"budget"}, {"device"}}, {})
            call_budget.on {require "moonbeam".device "planned:h200"}
            local problem = {code = "budget", device = "host", enough = 4096, problem = "4 KiB do "
                .. "not fit", message = "4 KiB do not fit; give a budget of at least 4096 bytes"}
            call_budget.explain(problem)
            print(problem.message, problem.option)
        ]])
        assert.equal(0, status, text)
        assert.equal("4 KiB do not fit; no option gives the host more memory\tnil\n", text)
    end)
end)
