-- What the system is asked for directly.

local files = require "spec.support.files"
local helper = require "spec.helper"
local core = require "moonbeam.core"
local mb = require "moonbeam"

describe("mb.system", function()
    it("tells the age of the process", function()
        local before = mb.system.age()
        assert.is_true(before >= 0 and before < 86400)
        mb.system.sleep(0.05)
        assert.is_true(mb.system.age() >= before + 0.05)
    end)

    it("knows the room on a disk", function()
        local space = mb.system.space(".")
        assert.is_true(space.free > 0 and space.free <= space.total)
        local df = files.run "df --output=size -B1 . | tail -1"
        assert.equal(math.tointeger(tonumber(df)), space.total)
        local nothing, err = mb.system.space("/no/such/folder")
        assert.is_nil(nothing)
        assert.matches("/no/such/folder: No such file", err.message)
    end)

    it("has the disk take files, or says why not", function()
        core.system.sync_files(".")
        local text, err = helper.failure(core.system.sync_files, "/no/such/folder")
        assert.equal("io", err.code)
        assert.matches("/no/such/folder.*No such file", text)
    end)

    it("runs the age of a program from its start", function()
        local age = tonumber((helper.run_program("-e 'print(require(\"moonbeam\").system.age())'")))
        assert.is_true(age >= 0 and age < 60)
    end)
end)
