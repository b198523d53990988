-- The error record of a thread, from C (status_test.c).

local helper = require "spec.helper"

local program = helper.program:gsub("[^/]*$", "status_test")

local function test(name)
    local pipe <close> = io.popen(program .. " " .. name .. " 2>&1")
    assert.equal("ok\n", pipe:read "a")
end

describe("the error record", function()
    it("is opened afresh by every failure", function()
        test "handled"
    end)

    it("takes the text of a cause into the failure that is composed of it", function()
        test "composed"
    end)

    it("survives clean-up that fails", function()
        test "cleaned"
    end)

    it("is reported once", function()
        test "taken"
    end)

    it("belongs to its thread, and can be moved to another", function()
        test "moved"
    end)
end)
