-- What the system is asked for directly.

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
