--- The documentation of the public interface, for help, the reference pages and editors: operators
-- from their descriptors, functions and methods from their declarations (declared.lua) and the
-- comments above the declarations.

local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local modules = require "moonbeam.internal.modules"
local op = require "moonbeam.op"
local natives = require "moonbeam.internal.natives"
local tables = require "moonbeam.internal.tables"

local documentation = {}

--- The errors of a call of an operator; the driver checks all operators in the same way.
documentation.ERRORS = "Errors: argument (an unknown name, a value out of its range or not "
    .. "finite), "
    .. "dtype, shape (extents that do not agree), device (arrays of several devices), budget "
    .. "(mb.op.estimate says before what is needed)."

-- ---- texts of entries ----

-- What a descriptor says of the default at the end of an argument's text, where it is no value:
-- "rotation axis ...; default (cols - 1) / 2". Nil if it says nothing.
local function told_default(arg)
    if not arg.required and not arg.usual and (arg.default == nil or arg.default == "auto") then
        return (arg.doc or ""):match "; default:? ([^;]+)$"
    end
end

--- What an argument or option is, without its default (documentation.default_text).
function documentation.doc_text(arg)
    return told_default(arg) and arg.doc:match "^(.*); default:? [^;]+$" or arg.doc
end

--- The default of an argument or option, as text.
function documentation.default_text(arg)
    local default, told = arg.default, told_default(arg)
    if arg.required then
        return "required"
    elseif told then
        return default == nil and told or ('"%s", %s'):format(default, told)
    elseif arg.usual or default == nil then
        return arg.usual or arg.kind == "boolean" and "false" or "not given"
    elseif type(default) == "string" then
        return '"' .. default .. '"'
    elseif math.type(default) == "float" then
        return ("%.10g"):format(default)
    end
    return type(default) == "table" and "{" .. table.concat(default, ", ") .. "}"
        or tostring(default)
end

local WORDS = {any = "value", bool = "boolean", count = "whole number", enum = "name",
    choice = "name", extents = "whole numbers, one for each axis", float = "number",
    int = "whole number", list = "numbers", range = "{first, last}", pair = "{low, high}",
    angles = "numbers or array", callable = "function",
    vector = "numbers", bytes = "number or size such as \"8G\"", device = "device or its name"}

local function axes_text(low, high)
    return low == high and (", %d ax%ss"):format(low, low == 1 and "i" or "e")
        or (", %d to %d axes"):format(low, high)
end

--- "array, f32/f64, 2 to 3 axes", "number in [0, 1] (px)".
function documentation.type_text(arg)
    if arg.dtypes then
        return ("array, %s%s"):format(#arg.dtypes == 8 and "any dtype"
            or table.concat(arg.dtypes, "/"), axes_text(arg.rank_min, arg.rank_max))
    elseif arg.rank then
        return "array" .. axes_text(arg.rank[1], arg.rank[2])
    end
    local text = arg.choices and "one of " .. table.concat(arg.choices, ", ") or WORDS[arg.kind]
        or arg.kind
    local low, high = arg.min, arg.max
    if low and high and high < math.huge then
        text = ("%s in [%.10g, %.10g]"):format(text, low, high)
    elseif low or arg.above then
        text = text .. arguments.range_text(arg)
    end
    text = arg.unit and ("%s (%s)"):format(text, arg.unit) or text
    return arg.words and ("%s, or %s"):format(text, table.concat(arg.words, ", ")) or text
end

-- ---- functions ----

local files = {} -- by name, the lines of a source file

local function lines_of(source)
    local name = source:match("^@(.*)")
    if name and not files[name] then
        local file = io.open(name)
        files[name] = {}
        for line in file and file:lines() or function() end do
            table.insert(files[name], line)
        end
        if file then
            file:close()
        end
    end
    return files[name] or {}
end

-- The comment that ends above a line, as paragraphs. Returns, Errors and Reference begin a
-- paragraph.
local function comment_above(source, line)
    local lines, first = lines_of(source), line
    while (lines[first - 1] or ""):match("^%s*%-%-") do
        first = first - 1
    end
    local paragraphs, open = {}, false
    for i = first, line - 1 do
        local text = lines[i]:gsub("^%s*%-%-+ ?", "")
        if text == "" then
            open = false
        elseif open and not text:match("^Returns ") and not text:match("^%u%l+: ") then
            paragraphs[#paragraphs] = paragraphs[#paragraphs] .. " " .. text:match("^%s*(.*)")
        else
            paragraphs[#paragraphs + 1], open = text, true
        end
    end
    return paragraphs
end

local function parameters(f)
    local list, info = {}, debug.getinfo(f, "u")
    for i = 1, info.nparams do
        list[i] = {name = debug.getlocal(f, i), kind = "any"}
    end
    if info.isvararg and info.what ~= "C" and #list == 0 then
        list[1] = {name = "...", kind = "any"}
    end
    return list
end

--- The text of a list of arguments in a call: "sino, angles [, options]".
local function call_text(args)
    local text, open = "", 0
    for _, arg in ipairs(args) do
        local comma = text ~= "" and ", " or ""
        if arg.optional and open == 0 then
            text, open = text .. (comma ~= "" and " [" or "[") .. comma .. arg.name, 1
        else
            text = text .. comma .. arg.name
        end
    end
    if args.options then
        text = text .. (open == 0 and (text ~= "" and " [" or "[") or "")
            .. (text ~= "" and ", " or "") .. "options"
        open = 1
    end
    return text .. (open == 1 and "]" or "")
end

--- The record of a function or of a declared name: {name, call, paragraphs, summary, args, options,
-- source, line}, or nil if it is not documented. `name` is the name that the user asked for.
function documentation.of(f, name)
    local declaration = declared.of(f) or declared.of(name)
    local info = type(f) == "function" and debug.getinfo(arguments.original(f), "S")
    if not declaration and (not info or info.what == "C") then
        return nil
    end
    local record = {name = name or declaration and declaration.name,
        args = declaration or parameters(arguments.original(f)),
        options = declaration and declaration.options}
    record.paragraphs = {}
    if declaration then
        record.source, record.line = declaration.source, declaration.line
        record.paragraphs = comment_above(record.source, record.line)
    end
    if #record.paragraphs == 0 and info and info.what ~= "C" then -- above its definition
        record.source, record.line = info.source, info.linedefined
        record.paragraphs = comment_above(record.source, record.line)
    end
    record.summary = (record.paragraphs[1] or ""):match("^(.-%.)%f[%s\0]") or record.paragraphs[1]
    local shown = (record.name or "function"):gsub("^([%l_]+):", "%1:")
    record.call = ("%s%s(%s)"):format(shown:find(":", 1, true) and "" or "mb.", shown,
        call_text(record.args))
    return record.summary and record or nil
end

-- ---- operators ----

local function names(list)
    return table.concat(tables.mapped(list, "name"), ", ")
end

local STRIDES = {contiguous = "must be dense", rows = "need a dense last axis",
    any = "may be any views"}

-- How an operator may be cut. Axes that are cut in the same way are named together: "axes 1 to 3".
local function split_text(descriptor)
    if descriptor.uncut then
        return ("Cannot be cut: %s."):format(descriptor.uncut)
    end
    local parts, first = {}, nil
    local function same(a, b)
        return a.when == b.when and a.needs == b.needs and a.packet == b.packet
            and a.combine == b.combine
    end
    for i, split in ipairs(descriptor.split) do
        first = first or split.axis
        local following = descriptor.split[i + 1]
        if not following or not same(split, following) then
            local text = first == split.axis and "axis " .. first
                or ("axes %d to %d"):format(first, split.axis)
            text = text .. (split.when and " where " .. split.when or "")
            local notes = {}
            notes[#notes + 1] = split.needs and "a piece may need more rows than its own" or nil
            notes[#notes + 1] = split.packet and "in packets" or nil
            notes[#notes + 1] = split.combine ~= "none" and "results without the axis are combined"
                or nil
            parts[#parts + 1] = text
                .. (#notes > 0 and (" (%s)"):format(table.concat(notes, "; ")) or "")
            first = nil
        end
    end
    return ("Can be cut along %s."):format(table.concat(parts, "; "))
end

--- The record of an operator: the fields of a function's record, and `results`.
function documentation.operator(name)
    local d = op.describe(name)
    local args, options, results = {}, {}, {}
    for _, arg in ipairs(d.args) do
        if arg.kind == "out" or arg.kind == "inout" then
            results[#results + 1] = arg
        end
        if arg.kind ~= "out" then
            local list = arg.required and args or options
            list[#list + 1] = arg
        end
    end
    local keys = tables.mapped(options, function(arg) return arg.name .. " =" end)
    local call = names(args)
    if #options > 0 then
        call = ("%s%s{%s}]"):format(call, call ~= "" and " [, " or "[", table.concat(keys, ", "))
    end
    local record = {name = name, operator = true, category = d.category, summary = d.summary,
        call = ("%s = mb.%s(%s)"):format(names(results), name, call), args = args,
        options = options, results = results, paragraphs = {d.summary}}
    local function add(format, ...)
        table.insert(record.paragraphs, format:format(...))
    end
    for line in ((d.doc or "") .. "\n"):gmatch("([^\n]+)\n") do
        add("%s", line)
    end
    record.notes = {("Arrays %s. %s"):format(STRIDES[d.strides], split_text(d))}
    record.notes[#record.notes + 1] = d.host_only
        and "Runs only on the host: it has no CUDA kernel." or nil
    record.notes[#record.notes + 1] = #d.alias > 0
        and ("out may be %s."):format(table.concat(d.alias, " or ")) or nil
    record.notes[#record.notes + 1] = documentation.ERRORS
    record.notes[#record.notes + 1] = d.reference and "Reference: " .. d.reference or nil
    return record
end

--- Operators by category: {category = {record, ...}}.
function documentation.operators()
    local categories = {}
    for _, name in ipairs(op.list()) do
        local record = documentation.operator(name)
        categories[record.category] = categories[record.category] or {}
        table.insert(categories[record.category], record)
    end
    return categories
end

-- ---- modules ----

--- Public modules by topic, for help and as folders of the reference.
documentation.TOPICS = {
    arrays = {"array", "device", "fft", "op", "picture", "statistics", "system"},
    deconvolution = {"beads", "convolution", "deconv", "metrics", "psf", "tiled_deconv", "tiles"},
    files = {"h5", "images", "npy", "result", "stream", "tiff", "view", "volumes"},
    memory = {"chunked", "debug", "ledger", "mem", "plan", "pool"},
    prompt = {"help", "plot", "progress", "show", "usage"},
    tomography = {"phantom", "recon", "scan", "tomo"},
}

--- The topic of a module, or nil if it has no topic yet.
function documentation.topic_of(name)
    for topic, modules_of in pairs(documentation.TOPICS) do
        for _, module in ipairs(modules_of) do
            if module == name then
                return topic
            end
        end
    end
end

--- Names of the public modules, sorted.
documentation.modules = modules.names

--- The first comment of a module's file, as paragraphs.
function documentation.module_text(name)
    local file = package.searchpath("moonbeam." .. name, package.path)
    if not file then
        return {} -- in C
    end
    local source = "@" .. file
    local lines, line = lines_of(source), 1
    while (lines[line] or ""):match("^%-%-") do
        line = line + 1
    end
    return comment_above(source, line)
end

--- The records of a module's functions and methods, sorted, and `missing`, the names of functions
-- without documentation.
function documentation.members(name)
    local module, list, seen = require("moonbeam." .. name), {missing = {}}, {}
    local function add(full, f)
        local record = documentation.of(f, full)
        if record then
            list[#list + 1] = record
        else
            table.insert(list.missing, full)
        end
        seen[full] = true
    end
    for _, key in ipairs(type(module) == "table" and tables.keys(module) or {}) do
        if type(module[key]) == "function" and not key:match("^_") then
            add(name .. "." .. key, module[key])
        end
    end
    for _, full in ipairs(declared.natives()) do
        if full:match("^[%w_]+") == name and not seen[full] then
            add(full, full)
        end
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    return list
end

--- Properties of userdata by type: lists of entries.
documentation.fields = natives.fields

-- The record of a function that two modules share, under the name in one of them.
local function alias_of(f, key)
    for _, name in ipairs {"array", "device"} do
        for member, function_of in pairs(require("moonbeam." .. name)) do
            local record = function_of == f and documentation.of(f, name .. "." .. member)
            if record then
                record.name, record.call = key, record.call:gsub("^mb%.[%w_.]+", "mb." .. key)
                return record
            end
        end
    end
end

--- The records of the functions of `mb` itself that are not operators, sorted.
function documentation.root()
    local mb, list, missing = require "moonbeam", {}, {}
    for _, key in ipairs(tables.keys(mb)) do
        local f = rawget(mb, key)
        if type(f) == "function" and not op.names[f] then
            local record = documentation.of(f, key) or alias_of(f, key)
            list[#list + 1] = record
            missing[#missing + 1] = not record and "mb." .. key or nil
        end
    end
    for _, name in ipairs(declared.natives()) do -- modules that can be called
        list[#list + 1] = name:match("^%w+$") and documentation.of(name, name) or nil
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    return list, missing
end

--- The names of public functions and methods without documentation, sorted.
function documentation.missing()
    local _, list = documentation.root()
    for _, name in ipairs(documentation.modules()) do
        local missing = documentation.members(name).missing
        table.move(missing, 1, #missing, #list + 1, list)
    end
    return list
end

return documentation
