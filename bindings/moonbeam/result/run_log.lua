-- A log beside a result: what ran, with which options and versions, what memory was predicted and
-- measured, and what the program has said.

local core = require "moonbeam.core"
local log = require "moonbeam.internal.log"
local origin = require "moonbeam.result.origin"
local tables = require "moonbeam.internal.tables"
local text_file = require "moonbeam.internal.files.text_file"

local run_log = {}

local function text_of(value)
    if type(value) == "table" then
        return table.concat(tables.mapped(value, text_of), ", ")
    end
    return math.type(value) == "float" and ("%.10g"):format(value) or tostring(value)
end

-- The lines of a table, sorted by name.
local function add_sorted(lines, word, values)
    for _, name in ipairs(tables.keys(values)) do
        lines[#lines + 1] = ("%-11s%s = %s"):format(word, name, text_of(values[name]))
    end
end

--- Writes the log. `facts`: {title, input, parameters, memory ({name = bytes})}; `ranges` as in
-- log.said.
function run_log.write(path, facts, overwrite, ranges)
    local from, lines = origin.provenance(facts), {}
    local function add(word, text)
        lines[#lines + 1] = text and ("%-11s%s"):format(word, text) or nil
    end
    add("moonbeam", ("%s, %s"):format(core.version, facts.title))
    add("date", origin.time())
    add("command", from.command_line)
    add("folder", from.folder)
    add("host", from.host)
    local input = from.input
    add("input", input and ("%s, %s bytes, modified %s"):format(input.path, input.bytes or "?",
        input.modified or "?"))
    add("script", from.script_name)
    add_sorted(lines, "version", from.versions)
    add_sorted(lines, "option", origin.parameters(facts))
    add_sorted(lines, "memory", facts.memory)
    lines[#lines + 1] = "\nmessages:\n" .. log.said(ranges)
    local text = core.error.printable(table.concat(lines, "\n"), true) .. "\n"
    text_file.write(path, text, overwrite)
end

return run_log
