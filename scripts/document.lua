--- Writes the reference: pages of all operators, functions and methods, and annotations for the Lua
-- language server, from descriptors and declarations.
--
--   moonbeam scripts/document.lua [FOLDER]           into docs/reference, or FOLDER
--   moonbeam scripts/document.lua --check [FOLDER]   compares: exit status 1 if pages are stale

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local documentation = require "moonbeam.internal.documentation"
local op = require "moonbeam.op"
local step_records = require "moonbeam.pipeline.definitions.step_records"

local sorted_keys = require("moonbeam.internal.tables").keys

-- ---- words ----

local NOTE = "<!-- Written by scripts/document.lua from the sources; edit those instead. -->"

local function cell(text)
    return (tostring(text or ""):gsub("|", "\\|"):gsub("\n", " "))
end

local function anchor(name)
    return (name:lower():gsub("[^%w_%- ]", ""):gsub(" ", "-"))
end

-- ---- pages ----

local function add_table(add, title, entries, with_default)
    if #(entries or {}) == 0 then
        return
    end
    add("", ("| %s | type | %smeaning |"):format(title, with_default and "default | " or ""),
        with_default and "|---|---|---|---|" or "|---|---|---|")
    for _, entry in ipairs(entries) do
        local default = with_default and cell(entry.array and "not given"
            or documentation.default_text(entry)) .. " | " or ""
        add(("| `%s` | %s | %s%s |"):format(entry.name, cell(documentation.type_text(entry)),
            default, cell(with_default and not entry.array
            and documentation.doc_text(entry) or entry.doc)))
    end
end

local function add_record(add, record)
    add("", "## " .. record.name, "", "    " .. record.call)
    for _, paragraph in ipairs(record.paragraphs) do
        add("", paragraph)
    end
    local described = record.args[1] and record.args[1].doc
    add_table(add, "argument", described and record.args or nil)
    add_table(add, "option", record.options, true)
    add_table(add, "result", record.results)
    for _, note in ipairs(record.notes or {}) do
        add("", note)
    end
end

-- A list of lines, and the function that adds to it.
local function lines_and_adder()
    local lines = {}
    return lines, function(...)
        table.move({...}, 1, select("#", ...), #lines + 1, lines)
    end
end

local function page(title, paragraphs, records)
    local lines, add = lines_and_adder()
    add("# " .. title, "", NOTE)
    for _, paragraph in ipairs(paragraphs) do
        add("", paragraph)
    end
    add("")
    for _, record in ipairs(records) do
        add(("- [%s](#%s): %s"):format(record.name, anchor(record.name), record.summary))
    end
    for _, record in ipairs(records) do
        add_record(add, record)
    end
    return table.concat(lines, "\n") .. "\n"
end

-- ---- annotations ----

local TYPES = {any = "any", angles = "number[]|moonbeam.array", array = "moonbeam.array",
    bool = "boolean", boolean = "boolean", bytes = "integer|string", callable = "function",
    count = "integer", device = "moonbeam.device|string", extents = "integer[]",
    float = "number", ["in"] = "moonbeam.array", inout = "moonbeam.array", int = "integer",
    ledger = "moonbeam.ledger", list = "number[]", number = "number", out = "moonbeam.array",
    string = "string", table = "table", vector = "number|number[]"}

local function lua_type(entry)
    if entry.choices then
        return '"' .. table.concat(entry.choices, '"|"') .. '"'
    end
    return (TYPES[entry.kind] or "table")
        .. (entry.words and '|"' .. table.concat(entry.words, '"|"') .. '"' or "")
end

local function one_line(text)
    return (text or ""):gsub("\n", " ")
end

local function annotate(add, record, name)
    local options = #(record.options or {}) > 0
    local class = "moonbeam.options." .. record.name:gsub("[.:]", "_")
    if options then
        add("---@class " .. class)
        for _, entry in ipairs(record.options) do
            add(("---@field %s? %s %s"):format(entry.name, lua_type(entry), one_line(entry.doc)))
        end
        if record.operator then
            add("---@field out? moonbeam.array the array for the result")
        end
        add("")
    end
    local parameters = {}
    add("---" .. one_line(record.summary))
    for _, entry in ipairs(record.args) do
        if entry.name ~= "self" and parameters[#parameters] ~= "..." then
            parameters[#parameters + 1] = entry.name
            add(("---@param %s%s %s %s"):format(entry.name, entry.optional and "?" or "",
                lua_type(entry), one_line(entry.doc)))
        end
    end
    if options and parameters[#parameters] ~= "..." then
        parameters[#parameters + 1] = "options"
        add("---@param options? " .. class)
    end
    for _, paragraph in ipairs(record.paragraphs) do
        local returned = paragraph:match("^Returns (.*)$")
        if returned then
            add("---@return any # " .. returned)
        end
    end
    for _ = 1, #(record.results or {}) do
        add("---@return moonbeam.array")
    end
    add(("function %s(%s) end"):format(name, table.concat(parameters, ", ")), "")
end

-- Methods as those of a class, functions as those of their module.
local function annotated_name(name)
    local type_name, method = name:match("^([%w_.]+):([%w_]+)$")
    if type_name then
        return ("%s:%s"):format(type_name:gsub("%.", "_"), method)
    end
    return "mb." .. name
end

local function annotations(modules, root)
    local lines, add = lines_and_adder()
    add("---@meta moonbeam", "-- Written by scripts/document.lua from the sources.", "")
    local classes = {}
    local function class_of(name)
        local type_name = name:match("^([%w_.]+):")
        if type_name and not classes[type_name] then
            classes[type_name] = true
            add("---@class moonbeam." .. type_name)
            for _, field in ipairs(documentation.fields[type_name] or {}) do
                add(("---@field %s %s %s"):format(field.name, lua_type(field), field.doc))
            end
            add(("local %s = {}"):format(type_name:gsub("%.", "_")), "")
        end
    end
    add("---@class moonbeam", "local mb = {}", "")
    for _, name in ipairs(sorted_keys(modules)) do
        add(("mb.%s = {}"):format(name))
    end
    add("")
    local written = {}
    local function write(record)
        local name = annotated_name(record.name)
        if not written[name] then
            written[name] = true
            class_of(record.name)
            annotate(add, record, name)
        end
    end
    for _, record in ipairs(root) do
        if not modules[record.name] then -- the call of a module
            write(record)
        end
    end
    for _, name in ipairs(sorted_keys(modules)) do
        for _, record in ipairs(modules[name]) do
            if record.name ~= name then
                write(record)
            end
        end
    end
    for _, category in ipairs(sorted_keys(documentation.operators())) do
        for _, record in ipairs(documentation.operators()[category]) do
            if not modules[record.name] then
                write(record)
            end
        end
    end
    add("return mb")
    return table.concat(lines, "\n") .. "\n"
end

-- ---- all files ----

-- Links to the records of a page.
local function listed(records, page_name)
    local names = {}
    for i, record in ipairs(records) do
        names[i] = ("[%s](%s#%s)"):format((record.name:gsub("^step ", "")), page_name,
            (record.name:gsub(" ", "-")))
    end
    return table.concat(names, ", ")
end

local function all_pages()
    local pages, modules, index = {}, {}, {}
    local function add(name, title, summary)
        index[#index + 1] = ("- [%s](%s): %s"):format(title, name, summary)
    end
    local operators = documentation.operators()
    for _, category in ipairs(sorted_keys(operators)) do
        local name = ("operators/%s.md"):format(category)
        local title = "Operators: " .. category
        pages[name] = page(title, {"An operator is called as `mb.<name>(...)`. Options go into one "
            .. "trailing table; `out =` names the array for the result."}, operators[category])
        add(name, title, listed(operators[category], name))
    end
    local root = documentation.root()
    pages["moonbeam.md"] = page("moonbeam", {"Functions of the module itself: "
        .. "`local mb = require \"moonbeam\"`."}, root)
    add("moonbeam.md", "moonbeam", "what is in the module directly")
    for _, name in ipairs(documentation.modules()) do
        modules[name] = documentation.members(name)
        local text = documentation.module_text(name)
        local file = ("%s/%s.md"):format(documentation.topic_of(name) or "other", name)
        pages[file] = page("mb." .. name, text, modules[name])
        add(file, "mb." .. name, text[1] and (text[1]:match("^(.-%.)%s") or text[1])
            or "functions in C")
    end
    local families = {}
    for _, record in ipairs(step_records.all()) do
        families[record.family] = families[record.family] or {}
        table.insert(families[record.family], record)
    end
    for _, family in ipairs(sorted_keys(families)) do
        local name, title = ("steps/%s.md"):format(family), "Steps: " .. family
        pages[name] = page(title, step_records.TEXT, families[family])
        add(name, title, listed(families[family], name))
    end
    pages["README.md"] = "# Reference\n\n" .. NOTE .. "\n\nEvery operator, function, method and "
        .. "option. At the prompt, `help(\"tomo.fbp\")` shows the same, `help(\"step "
        .. "fbp\")` a step of a pipeline, and `help(\"padding\")` finds a word. "
        .. "[moonbeam.d.lua](moonbeam.d.lua) has annotations for the Lua language server: add "
        .. "its folder to `Lua.workspace.library`.\n\n"
        .. table.concat(index, "\n") .. "\n"
    pages["moonbeam.d.lua"] = annotations(modules, root)
    return pages
end

local options = cli.parse(arg, {
    usage = "scripts/document.lua [FOLDER] [options]",
    summary = "Writes the reference pages and the annotations for editors.",
    {"folder", positional = true, default = "docs/reference", doc = "where the pages are"},
    {"check", doc = "write nothing; exit status 1 if a page is stale or a function lacks its text"},
})

local function content_of(name)
    local file <close> = io.open(name, "rb")
    return file and file:read "a"
end

local stale = documentation.missing()
for i, name in ipairs(stale) do
    stale[i] = name .. " lacks documentation: a declaration, and a comment above it"
end
local pages = all_pages()
for _, name in ipairs(sorted_keys(pages)) do
    local path = options.folder .. "/" .. name
    if options.check and content_of(path) ~= pages[name] then
        stale[#stale + 1] = path .. " is stale: run moonbeam scripts/document.lua"
    elseif not options.check then
        mb.system.mkdir(path:match("^(.*)/"))
        local file <close> = assert(io.open(path, "wb"))
        file:write(pages[name])
    end
end
local function find_others(folder)
    for _, name in ipairs(mb.system.folder(options.folder .. folder) or {}) do
        local path = folder .. "/" .. name
        if mb.system.stat(options.folder .. path).kind == "folder" then
            find_others(path)
        elseif not pages[path:sub(2)] then
            stale[#stale + 1] = ("%s%s is no page any more: delete it"):format(options.folder, path)
        end
    end
end
find_others("")
for _, text in ipairs(stale) do
    cli.tell("document.lua: " .. text)
end
if #stale > 0 then
    os.exit(1, true)
end
print(("%d operators and %d pages"):format(#op.list(), #sorted_keys(pages)))
