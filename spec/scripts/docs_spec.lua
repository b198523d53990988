-- The documents: links, options, quoted code and prompts are what they say.
--
-- The word or words behind the language of a block say what it is. "lua scripts/examples/NAME.lua"
-- and the like: a part of this file. "c PATH": a file that the reader makes; it compiles.
-- "text prompt": what is typed at the prompt and what comes back; the blocks of a document are
-- one prompt.
local files = require "spec.support.files"
local helper = require "spec.helper"

local MOST_PICTURE_BYTES = 100 * 1024

-- By git where it is, so that what it ignores is left out; a source archive has no git.
local function pages()
    local list = {}
    local pipe <close> = assert(io.popen("git ls-files --cached --others --exclude-standard "
        .. "README.md CHANGELOG.md 'docs/*.md' 2>/dev/null "
        .. "|| find README.md CHANGELOG.md docs -name '*.md'"))
    for name in pipe:lines() do
        if not name:find("^docs/reference/") then
            list[#list + 1] = name
        end
    end
    assert(#list > 10, "run from the root of the repository")
    return list
end

-- Calls f(language, rest of the first line, text) for each block of a page.
local function each_block(page, f)
    for opening, text in ("\n" .. files.read(page)):gmatch("\n```(%a[^\n]*)\n(.-)\n```") do
        local language, rest = opening:match("^(%S+)%s*(.*)$")
        f(language, rest, text .. "\n")
    end
end

local function exists(name)
    local file = io.open(name)
    if file then
        file:close()
    end
    return file ~= nil
end

if not require("moonbeam").system.stat "docs/contributing.md" then
    it("documents are checked where the sources are", function()
        pending "the sources are not here"
    end)
    return
end

describe("documents", function()
    it("link to files that are there", function()
        local count = 0
        for _, page in ipairs(pages()) do
            local folder = page:match("^(.*/)") or ""
            local text = files.read(page):gsub("\n```.-\n```", "")
            for target in text:gmatch("%]%(([^)#]+)[^)]*%)") do
                if not target:find("^%a+:") then
                    local place = folder .. target
                    while place:find("../", 1, true) do
                        place = place:gsub("[^/]+/%.%./", "", 1)
                    end
                    assert(exists(place), ("%s links to %s"):format(page, target))
                    count = count + 1
                end
            end
        end
        assert.is_true(count > 50)
    end)

    it("name files and folders that are there", function()
        local count = 0
        for _, page in ipairs(pages()) do
            local text = files.read(page):gsub("\n```.-\n```", "")
            for path in text:gmatch("`([%w_./-]+)`") do
                local top = path:match("^(%a+)/")
                if top and exists(top) and top ~= "build" then
                    assert(exists(path) or path:find("normalize_rows"),
                        ("%s names %s"):format(page, path))
                    count = count + 1
                end
            end
        end
        assert.is_true(count > 30)
    end)

    it("have a manual page with every command and option of the program", function()
        local page, help = files.read "docs/moonbeam.1":gsub("\\", ""), helper.run_program "--help"
        local commands, options = help:match "\nCommands:\n(.-)\n  '.-\nOptions:\n(.*)$"
        local count = 0
        for name, text in commands:gmatch "  ([%w_]+) +([^\n]+)" do
            assert(page:lower():find(("\n.B %s\n%s."):format(name, text):lower(), 1, true), name)
            count = count + 1
        end
        for option in options:gmatch "%-%-[%w-]+" do
            assert(page:find(option, 1, true), option)
            count = count + 1
        end
        assert.is_true(count >= 15, count)
    end)

    it("have small pictures, each of which is shown", function()
        local text = {}
        for _, page in ipairs(pages()) do
            text[#text + 1] = files.read(page)
        end
        text = table.concat(text)
        for _, name in ipairs(files.list("docs/pictures")) do
            if name:find("%.png$") then
                assert.is_true(#files.read("docs/pictures/" .. name) < MOST_PICTURE_BYTES, name)
                assert(text:find("pictures/" .. name, 1, true), name .. " is not shown")
            end
        end
    end)

    it("name programs and options that there are", function()
        local texts, count = {}, 0
        local function help_of(arguments)
            texts[arguments] = texts[arguments] or helper.run_program(arguments .. " --help")
            return texts[arguments]
        end
        for _, page in ipairs(pages()) do
            each_block(page, function(language, _, text)
                if language ~= "sh" then
                    return
                end
                for line in text:gsub("%s+#[^\n]*", ""):gmatch("[^\n]+") do
                    local rest = line:match("^build/bin/moonbeam(.*)$")
                        or line:match("^moonbeam(.*)$")
                    local what = "" -- the options are those of the program, then of a command
                    for word in (rest or ""):gmatch("%S+") do
                        local option = word:match("^(%-%-?%a[%a-]*)")
                        if option and not what:find("examples/") then
                            assert(help_of(what):find(option, 1, true),
                                ("%s: %s has no %s"):format(page, what, option))
                            count = count + 1
                        elseif what == "" and word:find("%.lua$") then
                            what = word:gsub("^%$M/", "")
                            assert(exists(what) or not what:find("/"), page .. ": " .. what)
                        elseif what == "" and not word:find("[:=]") and word ~= "host" then
                            what = word
                            assert.matches("^usage: ", help_of(what))
                        end
                    end
                    local script = line:match("^(scripts/%a+)")
                    assert(not script or exists(script), ("%s: %s"):format(page, line))
                end
            end)
        end
        assert.is_true(count > 20)
    end)

    it("quote the examples as they are, and Lua that compiles", function()
        local quoted = {}
        for _, page in ipairs(pages()) do
            each_block(page, function(language, rest, text)
                if language == "lua" and rest:find("^scripts/") then
                    assert(files.read(rest):find(text, 1, true),
                        ("%s does not quote %s as it is"):format(page, rest))
                    quoted[rest] = true
                elseif language == "lua" then
                    assert(load(text) or load("return " .. text), page .. ":\n" .. text)
                end
            end)
        end
        assert.is_true(quoted["scripts/examples/reconstruct_in_chunks.lua"])
    end)

    it("show C that compiles", function()
        local compiler = os.getenv("CC") or "cc"
        if not os.execute(("command -v %s >/dev/null"):format(compiler)) then
            pending("no C compiler: " .. compiler)
        end
        local folder <close> = setmetatable({name = files.folder()}, {__close = function(self)
            files.remove(self.name)
        end})
        local sources = {}
        for _, page in ipairs(pages()) do
            each_block(page, function(language, path, text)
                if language == "c" and path ~= "" then
                    local place = folder.name .. "/" .. path:gsub("^runtime/", "")
                    assert(os.execute(("mkdir -p '%s'"):format(place:match("^(.*)/"))))
                    files.write(place, text)
                    sources[#sources + 1] = place:find("%.c$") and place or nil
                end
            end)
        end
        assert.is_true(#sources > 0)
        for _, source in ipairs(sources) do
            local text, status = helper.run_program(("-std=gnu11 -fsyntax-only -Wall -Wextra "
                .. "-Werror -fopenmp -Iruntime -I'%s' '%s'"):format(folder.name, source), nil,
                compiler)
            assert.equal(0, status, text)
        end
    end)
end)

describe("prompts in documents", function()
    -- What differs between machines and moments.
    local function plain(text)
        return (text:gsub("/[%d.]+ GiB>", "/N GiB>"):gsub("device host %([^\n]*%)",
            "device host (N)"):gsub("[%d.]+ m?s ", "T "):gsub(
            "FFT plans %(%d+%)", "FFT plans (N)"):gsub("peak so far [%d.]+ MiB",
                "peak so far N"):gsub(" +", " "))
    end

    -- What is typed in a line of a prompt, or nil.
    local function typed_in(line)
        return line:match("^%d+: %S+ %S+/%S+ %S+> (.*)$") or line:match("^>> (.*)$")
    end

    -- What the prompt shows when the lines are typed.
    local function shown(lines)
        local quoted = {}
        for i, line in ipairs(lines) do
            quoted[i] = ("%q"):format(line)
        end
        local program = [[
            local typed, i = {%s}, 0
            local function write(text) io.stdout:write(text) end
            require("moonbeam.internal.repl").run {write = write, read = function(prompt)
                i = i + 1
                write(typed[i] and prompt .. typed[i] .. "\n" or "")
                return typed[i]
            end}]]
        -- What operators take depends on the number of threads; the documents' machine has two.
        local output, status = helper.run_program("-", program:format(table.concat(quoted, ", ")),
            "OMP_NUM_THREADS=2 " .. helper.program)
        assert.equal(0, status, output)
        return output
    end

    local checked = 0
    for _, page in ipairs(pages()) do
        local wanted, lines = "", {}
        each_block(page, function(language, rest, text)
            if language == "text" and rest == "prompt" then
                wanted = wanted .. text
            end
        end)
        for line in wanted:gmatch("[^\n]+") do
            lines[#lines + 1] = typed_in(line)
        end
        if #lines > 0 then
            checked = checked + 1
            it("show what the prompt shows: " .. page, function()
                local output = {}
                for line in plain(shown(lines)):gmatch("[^\n]+") do
                    output[#output + 1] = line
                end
                local number = 0
                for line in plain(wanted):gmatch("[^\n]+") do
                    number = number + 1
                    local start = line:match("^(.-)%.%.%.$")
                    local got = output[number] or "(nothing)"
                    assert.equal(line, start and got:sub(1, #start) .. "..." or got)
                end
                assert.equal(number, #output)
            end)
        end
    end

    it("are in more than one document", function()
        assert.is_true(checked > 1)
    end)
end)
