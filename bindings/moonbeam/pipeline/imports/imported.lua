--- What a configuration of another program becomes: a recipe, options of the command line, and
-- notes of what has no counterpart. The readers (from_nabu.lua, from_httomo.lua) fill it.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local input_file = require "moonbeam.internal.files.input_file"
local recipe_text = require "moonbeam.pipeline.recipe"
local tables = require "moonbeam.internal.tables"

local imported = {}
local methods = {}
methods.__index = methods

--- The most bytes of a file that is read.
imported.MOST_BYTES = 1 << 20

--- Empty. `from` is the name of the other program.
function imported.new(from)
    return setmetatable({from = from, recipe = {}, options = {}, sweeps = {}, lost = {},
        remarks = {}}, methods)
end

--- Adds a step with its options; returns its entry.
function methods:step(name, options)
    local entry = tables.merged({name}, options)
    self.recipe[#self.recipe + 1] = entry
    return entry
end

--- Adds an option of moonbeam reconstruct; without a value it is a switch.
function methods:option(name, value)
    self.options[#self.options + 1] = {name, value}
end

--- Notes that `what` has no counterpart; `instead`, if given, says what to do.
function methods:lose(what, instead)
    self.lost[#self.lost + 1] = core.error.printable(what) .. (instead and ": " .. instead or "")
end

--- Notes something that whoever runs the recipe should know.
function methods:remark(format, ...)
    self.remarks[#self.remarks + 1] = core.error.printable(format:format(...))
end

-- A word of a shell's command line.
local function quoted(word)
    word = tostring(word)
    return word:find "^[%w_./:=,+-]+$" and word or "'" .. word:gsub("'", "'\\''") .. "'"
end

--- The command line that runs the recipe in `path`.
function methods:command(path)
    local words = {"moonbeam", "reconstruct", quoted(self.scan or "SCAN"), "--recipe",
        quoted(path)}
    for _, option in ipairs(self.options) do
        words[#words + 1] = "--" .. option[1]
        words[#words + 1] = option[2] ~= nil and quoted(option[2]) or nil
    end
    for _, sweep in ipairs(self.sweeps) do
        words[#words + 1] = "--sweep " .. quoted(sweep)
    end
    return table.concat(words, " ")
end

--- The text of the recipe, with how to run it and what was lost as comments. `path` is its name.
function methods:text(path)
    local lines = {("-- From %s. Run it by"):format(self.from), "-- " .. self:command(path)}
    for _, text in ipairs(self.remarks) do
        lines[#lines + 1] = "-- " .. text
    end
    for _, text in ipairs(self.lost) do
        lines[#lines + 1] = "-- has no counterpart: " .. text
    end
    for i, line in ipairs(lines) do
        lines[i] = core.error.printable(line)
    end
    return table.concat(lines, "\n") .. "\n" .. recipe_text.text(self.recipe)
end

--- The text of a file. Errors: io, argument (too long, no text).
function imported.read(path)
    local facts = core.system.stat(path)
    local name = core.error.printable(path)
    if not facts or facts.kind ~= "file" then
        fail("io", "import", nil, facts and "'%s' is not an ordinary file"
            or "there is no file '%s'; check the name and the current folder", name)
    elseif facts.bytes > imported.MOST_BYTES then
        fail("argument", "import", nil, "'%s' has %d bytes; a configuration has at most %d", name,
            facts.bytes, imported.MOST_BYTES)
    end
    local file <close>, problem = input_file.open(path)
    local text = file and (file:read(imported.MOST_BYTES) or "")
    if not text then
        fail("io", "import", nil, "cannot read '%s': %s", name, problem or "it ended")
    elseif text:find("\0", 1, true) or not utf8.len(text) then
        fail("argument", "import", nil, "'%s' is not UTF-8 text", name)
    end
    return (text:gsub("^\xEF\xBB\xBF", ""):gsub("\r\n?", "\n"))
end

--- Raises an error about a line of a file.
function imported.refuse(where, line, format, ...)
    fail("argument", "import", nil, "%s:%d: %s", core.error.printable(where), line,
        core.error.printable(format:format(...)))
end

--- A number in a text, or nil.
function imported.number(text)
    local value = tonumber(text)
    return value and value == value and math.abs(value) < math.huge
        and (math.tointeger(value) or value) or nil
end

return imported
