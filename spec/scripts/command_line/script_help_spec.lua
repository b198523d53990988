-- Every program in scripts/ answers --help, and wrong use with status 2.
local files = require "spec.support.files"
local helper = require "spec.helper"

-- Programs beside those of scripts/ itself. The other files of scripts/bench/ are parts of bench.lua.
local MORE <const> = {"bench/iterative_errors.lua", "bench/iterative_starts.lua"}

-- What a script prints with these arguments, and its exit status.
local function run(name, arguments)
    if name:find "%.lua$" then
        return helper.run_program(("scripts/%s %s"):format(name, arguments))
    end
    return helper.run_program(arguments, "", "scripts/" .. name)
end

describe("scripts", function()
    local names = {table.unpack(MORE)}
    for _, name in ipairs(files.list "scripts") do
        if name:find "^[%l_]+%.lua$" or name:find "^[%l_]+$" and name ~= "bench"
            and name ~= "examples" and name ~= "fuzzing" and name ~= "quality" then
            names[#names + 1] = name
        end
    end

    it("answer --help with more than a line, and do nothing", function()
        for _, name in ipairs(names) do
            local text, status = run(name, "--help")
            assert.equal(0, status, name .. ": " .. text)
            local _, lines = text:gsub("\n", "")
            assert(lines >= 3, name .. ": " .. text)
        end
        -- A bundle has no scripts that build.
        local build <close> = io.open "scripts/build"
        assert.is_true(#names >= (build and 20 or 12), #names)
    end)

    it("answer wrong use with status 2 and a line that names it", function()
        for _, name in ipairs(names) do
            -- test hands what it does not know to busted, behind a build; find_nvcc takes nothing.
            if name ~= "test" and name ~= "find_nvcc" then
                local text, status = run(name, "--nosuch a b c d e f")
                assert.equal(2, status, name .. ": " .. text)
            end
        end
    end)
end)
