-- The C API: programs that include moonbeam.h alone, compiled as C and as C++, linked with
-- libmoonbeam, and run.

local mb = require "moonbeam"
local helper = require "spec.helper"

-- The library is built beside the program.
local library = helper.program:gsub("/bin/[^/]*$", "/lib")

local function needs(tool)
    if not mb.system.stat "runtime/moonbeam.h" then
        pending "the sources are not here"
    elseif not os.execute("command -v " .. tool .. " >/dev/null") then
        pending("there is no " .. tool)
    end
end

-- What the source prints, compiled by this command and run with these arguments, and its status.
local function compiled(compiler, source, arguments)
    local binary = os.tmpname()
    local folder = mb.system.real_path(library)
    if folder:match "/sanitize/" then
        compiler = compiler .. " -fsanitize=address,undefined"
    end
    local output, status =
        helper.run_program(("-Wall -Wextra -pedantic -Werror -Iruntime %s -x none "
        .. "-o %s -L%s -lmoonbeam -lm -Wl,-rpath,%s"):format(source, binary, folder, folder), "",
        compiler)
    assert.equal(0, status, output)
    output, status = helper.run_program(arguments or "", "", binary)
    os.remove(binary)
    return output, status
end

local languages = {["gcc -std=c11"] = "gcc", ["g++ -x c++ -std=c++11"] = "g++"}

describe("the C API", function()
    for command, tool in pairs(languages) do
        it("reconstructs a phantom in the memory that it predicts, compiled by " .. tool, function()
            needs(tool)
            local picture = os.tmpname()
            local output, status = compiled(command, "scripts/examples/reconstruct.c", picture)
            assert.equal(0, status, output)
            local predicted, measured = output:match("predicted (%d+), measured (%d+) bytes")
            assert.equal(predicted, measured)
            assert.is_true(tonumber(predicted) > 500000)
            local f <close> = io.open(picture, "rb")
            assert.equal(15 + 128 * 128, #f:read("a"))
            os.remove(picture)
        end)
    end

    it("names, estimates, plans and fails as its header says", function()
        needs "gcc"
        local output, status = compiled("gcc -std=c11", "spec/scripts/c_api_test.c")
        assert.equal("", output)
        assert.equal(0, status)
    end)

    it("says which device there is not", function()
        needs "gcc"
        local output, status = compiled("gcc -std=c11", "scripts/examples/reconstruct.c",
            "x cuda:31")
        assert.equal(1, status)
        assert.matches("^device error: no device cuda:31", output)
    end)

    it("has the version of the program", function()
        local header <close> = io.open "runtime/moonbeam.h"
        if not header then
            pending "the sources are not here"
        end
        assert.equal(mb.version, header:read("a"):match('MOONBEAM_VERSION "([^"]+)"'))
    end)
end)
