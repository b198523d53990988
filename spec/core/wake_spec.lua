-- Sleeping until a bell rings, from C (status_test.c).

local helper = require "spec.helper"

local program = helper.program:gsub("[^/]*$", "status_test")

local function test(name)
    local pipe <close> = io.popen(program .. " " .. name .. " 2>&1")
    assert.equal("ok\n", pipe:read "a")
end

describe("the bell", function()
    it("wakes every time: two threads that wait for each other come to an end", function()
        test "woken"
    end)

    it("ends a sleep that begins after it has rung, and rings when the cancel flag is raised", function()
        test "rung"
    end)

    it("lets sleepers sleep", function()
        test "quiet"
    end)

    it("says when a signal has ended the sleep", function()
        test "signalled"
    end)
end)
