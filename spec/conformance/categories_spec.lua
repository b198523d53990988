-- Every category of operators has a file here, which is named after it.

local mb = require "moonbeam"

describe("the conformance specs", function()
    it("have a file for each category of operators, and no other", function()
        local expected, found = {}, {}
        for _, name in ipairs(mb.op.list()) do
            expected[mb.op.describe(name).category] = true
        end
        local pipe <close> = assert(io.popen "ls spec/conformance/*_operators_spec.lua")
        for path in pipe:lines() do
            local category = path:match "([%w_]+)_operators_spec%.lua$"
            local file <close> = assert(io.open(path))
            assert.equal(('require("spec.support.conformance").check "%s"\n'):format(category),
                file:read "a")
            found[category] = true
        end
        assert.same(expected, found)
    end)
end)
