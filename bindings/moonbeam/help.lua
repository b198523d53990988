--- Help at the prompt, from the operators' descriptors and the declarations of functions.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local documentation = require "moonbeam.internal.documentation"
local examples = require "moonbeam.internal.prompt.examples"
local fail = require "moonbeam.internal.fail"
local op = require "moonbeam.op"
local step_records = require "moonbeam.pipeline.definitions.step_records"
local strict = require "moonbeam.internal.strict"
local synonyms = require "moonbeam.internal.synonyms"
local tables = require "moonbeam.internal.tables"

local help = {}

local TOPICS = documentation.TOPICS


local function wrapped(lines, text)
    local line = ""
    for word in text:gmatch("%S+") do
        if #line + #word >= 100 then
            lines[#lines + 1], line = line, word
        else
            line = line == "" and word or line .. " " .. word
        end
    end
    lines[#lines + 1] = line
end

-- A function or operator in full.
local function record_text(record)
    local lines, width = {record.call, ""}, 12
    for _, paragraph in ipairs(record.paragraphs) do
        wrapped(lines, paragraph)
    end
    for _, list in pairs {record.args, record.options, record.results} do
        for _, arg in ipairs(list) do
            width = math.max(width, #arg.name)
        end
    end
    local name_and_text = "  %-" .. width .. "s %s"
    local function add_args(title, list, with_default)
        if list and #list > 0 then
            lines[#lines + 1] = ""
            lines[#lines + 1] = title
        end
        for _, arg in ipairs(list or {}) do
            local default = arg.required and with_default and "; required"
                or (with_default or arg.optional) and not arg.array
                and "; default " .. documentation.default_text(arg) or ""
            lines[#lines + 1] = name_and_text:format(arg.name, default ~= ""
                and documentation.doc_text(arg) or arg.doc or "")
            lines[#lines + 1] = name_and_text:format("", "  " .. documentation.type_text(arg)
                .. default)
        end
    end
    if record.args[1] and record.args[1].doc then
        add_args("arguments", record.args, false)
    end
    add_args("options", record.options, true)
    add_args("results", record.results, false)
    for i, note in ipairs(record.notes or {}) do
        lines[#lines + 1] = i == 1 and "" or nil
        lines[#lines + 1] = note
    end
    local example = examples(record.name, record.operator)
    if example then
        lines[#lines + 1] = "\nexample\n  " .. example:gsub("\n", "\n  ")
    end
    if record.source then
        lines[#lines + 1] = ("(%s:%d)"):format(record.source:sub(2), record.line)
    end
    return table.concat(lines, "\n")
end

-- "name  summary" lines.
local function listing(lines, records)
    local width = 0
    for _, record in ipairs(records) do
        width = math.max(width, #record.name)
    end
    for _, record in ipairs(records) do
        lines[#lines + 1] = ("  %-" .. width .. "s  %s"):format(record.name, record.summary)
    end
end

local function modules_text(names)
    local lines = {}
    for _, name in ipairs(names) do
        lines[#lines + 1] = ("mb.%s: %s"):format(name, documentation.module_text(name)[1] or "")
        listing(lines, documentation.members(name))
    end
    return table.concat(lines, "\n")
end

local MOST_SUMMARY <const> = 84 -- letters of a module's line

-- Modules that are written only in C have no file with a text.
local MODULES_IN_C = {picture = "PNG files from arrays, and percentiles.",
    system = "Clock, terminal, file names, limits."}

local function overview()
    local lines = {}
    wrapped(lines, ("Moonbeam %s. Topics: help(\"%s\"). Functions of a module: help(\"tomo\"), a "
        .. "function: help(\"tomo.fbp\"), steps of a pipeline: help(\"steps\"), a step: "
        .. "help(\"step fbp\"), a word: help(\"padding\")."):format(
        core.version, table.concat(tables.keys(TOPICS), "\"), help(\"")))
    lines[#lines + 1] = "Modules, by mb.<name>:"
    local modules = {}
    for i, name in ipairs(documentation.modules()) do
        local text = documentation.module_text(name)[1] or MODULES_IN_C[name] or ""
        text = text:match("^(.-)%.%f[%s\0]") or text
        if #text > MOST_SUMMARY then
            text = text:sub(1, MOST_SUMMARY):match("^(.*)%s") .. " ..."
        end
        modules[i] = {name = name, summary = text}
    end
    listing(lines, modules)
    lines[#lines + 1] = "Operators, by mb.<name>:"
    local categories = documentation.operators()
    for _, category in ipairs(tables.keys(categories)) do
        lines[#lines + 1] = category
        listing(lines, categories[category])
    end
    return table.concat(lines, "\n")
end

-- Everything that is said of anything: records.
local function everything()
    local all = {}
    for _, list in pairs(documentation.operators()) do
        table.move(list, 1, #list, #all + 1, all)
    end
    for _, name in ipairs(documentation.modules()) do
        local list = documentation.members(name)
        table.move(list, 1, #list, #all + 1, all)
    end
    local steps = step_records.all()
    table.move(steps, 1, #steps, #all + 1, all)
    table.sort(all, function(a, b) return a.name < b.name end)
    return all
end

-- How much a record has to do with a word: 1, a part of its name or the name of an option; 2, a
-- word of its summary; 3, a piece of its name; 4, a word of its text; nil, nothing.
local function closeness(record, word)
    local name = record.name:lower()
    for part in name:gmatch("%w+") do
        if part == word then
            return 1
        end
    end
    for _, arg in ipairs(record.options or {}) do
        if arg.name == word then
            return 1
        end
    end
    local text = word:gsub("%p", "%%%0")
    if record.summary:lower():find("%f[%w]" .. text .. "s?%f[%W]") then
        return 2
    elseif name:find(word, 1, true) then
        return 3
    end
    for _, paragraph in ipairs(record.paragraphs) do
        if paragraph:lower():find("%f[%w]" .. text .. "s?%f[%W]") then
            return 4
        end
    end
end

-- What a word that is no name leads to: our words for it, and what has most to do with it.
local function word_text(word)
    local lines, found, best = {synonyms[word:lower()]}, {}, math.huge
    for _, record in ipairs(everything()) do
        local rank = closeness(record, word:lower()) or math.huge
        if rank < best then
            found, best = {}, rank
        end
        found[#found + 1] = rank < math.huge and rank == best and record or nil
    end
    if #found == 1 and #lines == 0 then
        return record_text(found[1])
    elseif #found > 0 then
        lines[#lines + 1] = ("'%s' is found in:"):format(word)
        listing(lines, found)
    end
    if #lines == 0 then
        local candidates = tables.keys(TOPICS)
        for _, record in ipairs(everything()) do
            candidates[#candidates + 1] = record.name
        end
        local near = strict.suggestion(word, candidates)
        fail("argument", "help", nil, "there is no help on '%s'%s", word,
            near ~= "" and near or "; help() lists topics and modules")
    end
    return table.concat(lines, "\n")
end

local function is_module(name)
    for _, module in ipairs(documentation.modules()) do
        if module == name then
            return true
        end
    end
end

local function string_text(subject)
    local name = subject:gsub("^mb%.", "")
    local step = name:match("^step%s+([%w_]+)")
    if name == "steps" then
        local lines = {step_records.TEXT[1]}
        listing(lines, step_records.all())
        return table.concat(lines, "\n")
    elseif step then
        return record_text(step_records.of(step))
    elseif TOPICS[name] then
        return modules_text(TOPICS[name])
    elseif op.functions[name] then
        return record_text(documentation.operator(name))
    elseif is_module(name) then
        return modules_text {name}
    end
    local module, member = name:match("^([%w_]+)[.:]([%w_]+)$")
    local functions = not module and mb or is_module(module) and require("moonbeam." .. module)
    local f = type(functions) == "table" and rawget(functions, member or name)
    local record = documentation.of(f or name, name)
    if not record and module then
        record = documentation.of(module .. ":" .. member, module .. ":" .. member)
    end
    return record and record_text(record) or word_text(name)
end

--- Help on a name, a word, a function, a module or an array, as text.
help.text = declared("help.text", {
    {"subject", "any?", "a name, a function, a module or a value", usual = "an overview"},
}, function(subject)
    if subject == nil then
        return overview()
    elseif type(subject) == "string" then
        return string_text(subject)
    elseif type(subject) == "function" then
        local record = op.names[subject] and documentation.operator(op.names[subject])
            or documentation.of(subject)
        return record and record_text(record) or "a function without help of its own"
    elseif type(subject) == "table" then
        for _, name in ipairs(documentation.modules()) do
            if package.loaded["moonbeam." .. name] == subject then
                return modules_text {name}
            end
        end
    end
    local kind = (debug.getmetatable(subject) or {}).__name
    local topic = kind and kind:match("^moonbeam%.(%w+)$")
    if type(subject) == "table" and not is_module(topic) then
        return "a table: " .. table.concat(tables.mapped(tables.keys(subject), tostring),
            ", ")
    end
    return tostring(subject) .. (is_module(topic) and "\n" .. modules_text {topic} or "")
end)

--- Prints help on an operator, a function, a module or a word; an overview without an argument.
declared.native "help(subject: any?)"

return declared.module(help, "help", nil, function(_, subject)
    print(help.text(subject))
end)
