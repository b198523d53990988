-- The reference pages and the annotations are those of the sources, and nothing public is without
-- documentation.

local documentation = require "moonbeam.internal.documentation"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

if not mb.system.stat "docs/reference" then
    it("the reference is checked where the sources are", function()
        pending "the sources are not here"
    end)
    return
end

describe("the reference", function()
    it("is that of the sources, and complete", function()
        local text, status = helper.run_program("scripts/document.lua --check")
        assert.equal(0, status, text)
        assert.matches("^%d+ operators and %d+ pages\n$", text)
    end)

    it("is found to be stale, whatever is changed in it", function()
        local folder = files.folder()
        finally(function()
            files.remove(folder)
        end)
        local text, status = helper.run_program("scripts/document.lua " .. folder)
        assert.equal(0, status, text)
        local page <close> = assert(io.open(folder .. "/tomography/tomo.md", "ab"))
        page:write("more\n")
        page:close()
        local extra <close> = assert(io.open(folder .. "/other.md", "wb"))
        extra:close()
        os.remove(folder .. "/moonbeam.d.lua")
        text, status = helper.run_program("scripts/document.lua --check " .. folder)
        assert.equal(1, status, text)
        assert.matches("tomo.md is stale", text)
        assert.matches("moonbeam.d.lua is stale", text)
        assert.matches("other.md is no page any more", text)
        local _, count = text:gsub("\n", "")
        assert.equal(3, count, text)
    end)

    it("annotates in Lua that can be loaded", function()
        assert(loadfile "docs/reference/moonbeam.d.lua")
    end)

    it("misses a function that nothing is said of", function()
        assert.same({}, documentation.missing())
        local say = load "return function() end"
        mb.tomo.nothing_said = say()
        finally(function()
            mb.tomo.nothing_said = nil
        end)
        assert.same({"tomo.nothing_said"}, documentation.missing())
    end)
end)
