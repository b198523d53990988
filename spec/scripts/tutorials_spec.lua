-- The command lines of a tutorial, typed in their order in an empty folder: each ends well.
local files = require "spec.support.files"
local mb = require "moonbeam"

local program = mb.system.program()

if not mb.system.stat ".git" then
    it("documents are checked where the sources are", function()
        pending "the sources are not here"
    end)
    return
end

for page_name, least in pairs {pipeline = {compared = 3, lines = 8},
    ["clean-a-scan"] = {compared = 3, lines = 7}, iterative = {compared = 2, lines = 4}} do
    describe("the tutorial " .. page_name, function()
        local folder
        local page = files.read("docs/tutorials/" .. page_name .. ".md")

        -- Runs a command line of the page in the folder; returns what it prints.
        local function typed(line)
            local own = line:gsub("build/bin/moonbeam", "'" .. program .. "'", 1)
            local handle = assert(io.popen(("cd '%s' && %s 2>&1"):format(folder, own)))
            local text = handle:read("a")
            local _, _, status = handle:close()
            assert(status == 0, ("%s\nended with %s:\n%s"):format(line, status, text))
            return text
        end

        setup(function()
            folder = files.folder()
            assert(os.execute(("ln -s \"$PWD/scripts\" '%s/scripts'"):format(folder)))
        end)
        teardown(function()
            files.remove(folder)
        end)

        it("runs as it is written, and what is predicted is measured", function()
            local compared, lines = 0, 0
            for language, text in ("\n" .. page):gmatch "\n```(%a[^\n]*)\n(.-)\n```" do
                local name = language == "lua" and text:match "^%-%- (%w+%.lua)\n"
                if name then
                    files.write(folder .. "/" .. name, text)
                elseif language == "lua" then
                    files.write(folder .. "/script.lua", text)
                    assert.matches("true\n$", typed "build/bin/moonbeam script.lua")
                elseif language == "sh" then
                    for line in text:gmatch "[^\n]+" do
                        local said = typed(line)
                        local predicted, measured = said:match(
                            "memory +predicted (%d+) bytes, measured (%d+)")
                        assert.equal(predicted, measured)
                        compared, lines = compared + (predicted and 1 or 0), lines + 1
                    end
                end
            end
            assert.is_true(compared >= least.compared and lines >= least.lines, lines)
        end)
    end)
end
