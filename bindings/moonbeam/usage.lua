--- Command lines of short programs, from the comment at their head. `--help` prints that comment;
-- its line "usage: moonbeam NAME.lua SCAN [ROWS COLUMNS]" says which words the program takes.
--
--   -- Says how large a scan is.
--   -- usage: moonbeam size.lua SCAN [ROWS COLUMNS]
--   local mb = require "moonbeam"
--   local name, rows, columns = mb.usage(nil, 16, 512)

local declared = require "moonbeam.internal.declared"

local usage = {}

-- The comment at the head of a file, as lines.
local function head_of(path)
    local lines = {}
    for line in io.lines(path) do
        local text = line:match("^%-%-+ ?(.*)$")
        if not text then
            break
        end
        lines[#lines + 1] = text
    end
    return lines
end

local function wrong(line, format, ...)
    io.stderr:write(format:format(...), "; ", line
        or "the comment at the head of the program has no line \"usage: NAME.lua ...\"", "\n")
    os.exit(2, true)
end

-- The names in a line of usage, and how many of them come before the first bracket.
local function names_of(line)
    local names, required = {}, line:match("%.lua([^%[]*)") or ""
    for name in line:match("%.lua(.*)$"):gmatch("[%w_-]+") do
        names[#names + 1] = name
    end
    return names, select(2, required:gsub("[%w_-]+", ""))
end

--- The words of the command line, by the comment at the head of the running script.
--
-- A default stands for a word that was not given; a number as default asks for a number, an integer
-- for an integer. Wrong use ends the program with status 2 and the line of usage.
declared.native "usage(default: any?, ...)"

return declared.module(usage, "usage", nil, function(_, ...)
    local head, line = head_of(arg[0]), nil
    for _, text in ipairs(head) do
        line = line or text:match("^usage: .*%.lua.*")
    end
    if arg[1] == "--help" or arg[1] == "-h" then
        print(table.concat(head, "\n"))
        os.exit(0, true)
    end
    local names, required = names_of(line or "usage: a.lua")
    local values = {...}
    if #arg > #names then
        wrong(line, "there is one argument too many, \"%s\"", arg[#names + 1])
    elseif #arg < required then
        wrong(line, "%s is missing", names[#arg + 1])
    end
    for i, text in ipairs(arg) do
        local default, value = values[i], text
        if type(default) == "number" then
            value = tonumber(text)
            value = math.type(default) == "integer" and math.tointeger(value) or value
        end
        if not value or math.type(default) == "integer" and math.type(value) ~= "integer" then
            wrong(line, "%s is \"%s\"; it must be %s", names[i], text,
                math.type(default) == "integer" and "an integer" or "a number")
        end
        values[i] = value
    end
    return table.unpack(values, 1, #names)
end)
