-- The prompt: reads lines, runs them, and shows their results. An expression needs no `return`, and
-- unfinished statements continue in the next line. Lines are numbered through the session, so that
-- "stdin:7" is the line that was typed as number 7. Specs replace reading and writing. The module
-- is the global `mb`, and help is the global `help`.

local arguments = require "moonbeam.internal.arguments"
local columns = require "moonbeam.internal.columns"
local declared = require "moonbeam.internal.declared"
local log = require "moonbeam.internal.log"
local core = require "moonbeam.core"
local complete = require "moonbeam.internal.prompt.completion"
local meant = require "moonbeam.internal.prompt.meant"
local sandbox = require "moonbeam.internal.sandbox"
local script = require "moonbeam.internal.script"
local whole = require "moonbeam.internal.whole"

local repl = {}

-- At most this much of a value is shown.
local ROWS, COLUMNS, ENTRIES, DEPTH = 6, 8, 20, 3

local INTERRUPT = 2 -- SIGINT

local function number_text(x)
    if type(x) == "table" then
        return ("%.4g%+.4gi"):format(x[1], x[2])
    elseif math.type(x) == "integer" then
        return tostring(x)
    end
    return ("%.5g"):format(x)
end

-- Rows of a 2-D corner, columns aligned.
local function corner_lines(values, more_columns)
    local cells = {}
    for i, row in ipairs(values) do
        cells[i] = {}
        for j, x in ipairs(row) do
            cells[i][j] = number_text(x)
        end
    end
    local lines = columns(cells, function() return true end)
    for i, line in ipairs(lines) do
        lines[i] = "  " .. line .. (more_columns and "  ..." or "")
    end
    return lines
end

-- "f32 3 x 5 x 16, 960 B, host" and the corner of the last two axes at the first index of the other
-- axes. Only the corner is read from the device.
function repl.array_text(a)
    if a.released then
        return tostring(a)
    end
    local head = tostring(a):gsub(" array", "", 1)
    if a.device.dry or a.elements == 0 then
        return head
    end
    local rank, shape = a.rank, a.shape
    if rank == 0 then
        local value = a:to_table()
        return head .. "\n  " .. number_text(value)
    end
    local ranges = {}
    for axis = 1, rank - 2 do
        ranges[axis] = 1
    end
    local rows = rank > 1 and math.min(ROWS, shape[rank - 1])
    local width = math.min(COLUMNS, shape[rank])
    if rows then
        ranges[rank - 1] = { 1, rows }
    end
    ranges[rank] = { 1, width }
    local corner <close> = a:view(table.unpack(ranges))
    local values = corner:to_table()
    local lines = corner_lines(rows and values or { values }, width < shape[rank])
    if rows and rows < shape[rank - 1] then
        lines[#lines + 1] = "  ..."
    end
    if rank > 2 then
        head = head .. (" at [%s]"):format(("1, "):rep(rank - 2) .. ":, :")
    end
    return head .. "\n" .. table.concat(lines, "\n")
end

local function key_text(key)
    if type(key) == "string" then
        return key:match("^[%a_][%w_]*$") and key or ("[%q]"):format(key)
    end
    return "[" .. tostring(key) .. "]"
end

local value_text

-- {1, 2, name = "x"}: short tables in one line, long tables shortened.
local function table_text(t, depth)
    local meta = debug.getmetatable(t)
    if meta and meta.__tostring then
        return tostring(t)
    elseif depth >= DEPTH then
        return next(t) == nil and "{}" or "{...}"
    end
    local parts, shown, width = {}, {}, 2
    for i, value in ipairs(t) do
        if i > ENTRIES then
            break
        end
        parts[i] = value_text(value, depth + 1)
        shown[i] = true
    end
    local keys = {}
    for key in next, t do
        if not shown[key] then
            keys[#keys + 1] = key
        end
    end
    table.sort(keys, function(a, b)
        if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then
            return a < b
        end
        return type(a) < type(b)
    end)
    for i, key in ipairs(keys) do
        if #parts >= ENTRIES then
            parts[#parts + 1] = ("... (%d more)"):format(#keys - i + 1)
            break
        end
        parts[#parts + 1] = key_text(key) .. " = " .. value_text(t[key], depth + 1)
    end
    for _, part in ipairs(parts) do
        width = width + #part + 2
    end
    if width <= 90 then
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    local indent = ("  "):rep(depth + 1)
    local close = "\n" .. ("  "):rep(depth) .. "}"
    return "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. close
end

function value_text(value, depth)
    if type(value) == "table" then
        return table_text(value, depth)
    elseif type(value) == "string" then
        return core.error.printable(depth > 0 and ("%q"):format(value) or value, true)
    end
    return core.error.printable(tostring(value), true)
end

-- How the prompt shows a value.
function repl.show(value)
    if arguments.is_array(value) then
        return repl.array_text(value)
    end
    return value_text(value, 0)
end

-- Compiles a text as an expression, or otherwise as a statement; `first` is the number of its first
-- line. Returns the function; or nil, the message, and whether more lines may complete it.
function repl.compile(text, env, first)
    local before = ("\n"):rep((first or 1) - 1)
    -- With a to-be-closed variable the call is not a tail call, in which errors would have no line.
    local f = load(before .. "local _STATEMENT <close> = nil return " .. text .. "\n;", "=stdin",
        "t", env)
    if f then
        return f
    end
    local message
    f, message = load(before .. text, "=stdin", "t", env)
    if f then
        return f
    end
    local again, as_expression = load(before .. "return " .. text, "=stdin", "t",
        env) -- "1;"
    if again then
        return again
    end
    return nil, message, message:sub(-5) == "<eof>" or as_expression:sub(-5) == "<eof>"
end

repl.complete = complete

-- The loop

local function default_reader()
    local input = core.input
    local home = os.getenv("HOME")
    local history = home and home .. "/.moonbeam_history"
    input.set_completer(complete)
    if history then
        input.load_history(history)
    end
    local last
    return {
        read = input.read_line,
        remember = function(text)
            if text ~= last and text:match("%S") then
                last = text
                input.add_history(text)
                if history then
                    input.save_history(history, text)
                end
            end
        end,
    }
end

local function prompt_text(env, name, default, number)
    local prompt = rawget(env, name)
    if prompt == nil then
        prompt = type(default) == "function" and default(number) or default
    end
    return tostring(prompt)
end

local function line_count(text)
    return select(2, text:gsub("\n", "")) + 1
end

-- "7: 1.2 GiB/8 GiB> ": the number of the line, and live bytes and budget of the default device
-- once it is in use. Open tags come between, innermost last: "7: [filter, inner] 1.2 GiB/8 GiB> ".
local function memory_prompt(number)
    local tags = table.concat(core.tag.open(), ", ")
    tags = ("%d: %s"):format(number, tags ~= "" and ("[%s] "):format(tags) or "")
    local id = core.device.default().id
    for _, device in ipairs(core.device.opened()) do
        if device.id == id then
            local stats = core.pool.stats(device)
            local bytes = core.device.format_bytes
            return ("%s%s/%s> "):format(tags, bytes(stats.live, stats.budget),
                bytes(stats.budget))
        end
    end
    return tags:gsub(" $", "") .. "> "
end

-- Watches the pools during a statement. The returned function gives a line for each device on which
-- something was allocated or freed: the change of live bytes, and their peak above the value before
-- the statement.
local function watch_memory()
    local before = {}
    for _, device in ipairs(core.device.opened()) do
        local stats = core.pool.stats(device)
        before[device.id] = { live = stats.live, allocs = stats.allocs,
            scope = core.pool.scope(device) }
    end
    return function()
        local lines, bytes = {}, core.device.format_bytes
        for _, device in ipairs(core.device.opened()) do
            local stats = core.pool.stats(device)
            local old = before[device.id] or { live = 0, allocs = 0 }
            local peak = old.scope and old.scope:finish() or stats.live_peak
            local change = stats.live - old.live
            if stats.allocs ~= old.allocs or change ~= 0 then
                lines[#lines + 1] = ("-- %s: %s%s, peak +%s\n"):format(device.id,
                    change < 0 and "-" or "+", bytes(math.abs(change)), bytes(peak))
            end
        end
        return table.concat(lines)
    end
end

-- Reads one complete statement, whose first line has this number. Returns the function and the
-- text; nil at the end of input; false and a message if it does not compile; only false if Ctrl-C
-- dropped it. Then the number of its lines.
local function read_statement(reader, env, first)
    local text
    while true do
        local prompt = text and prompt_text(env, "_PROMPT2", ">> ")
            or prompt_text(env, "_PROMPT", memory_prompt, first)
        local line, why = reader.read(prompt)
        if not line then
            if why == "interrupted" then
                return false, nil, text and line_count(text) or 0
            end
            return nil
        end
        text = text and text .. "\n" .. line or line
        local source = meant(text, env) or text:gsub("^=", "return ")
        local f, message, more = repl.compile(source, env, first)
        if not more then
            reader.remember(text)
            return f or false, f and source or message, line_count(text)
        end
    end
end

-- Makes a budget error of the statement say with which budget the whole statement runs.
local function explain(err, text, env, first)
    whole.explain(err, function()
        local again = repl.compile(text, sandbox(env), first)
        local _ <close> = script.quiet()
        again()
    end, "this statement")
end

-- Runs until the end of input.
function repl.run(options)
    local env = options.env or _G
    local write = options.write or function(text)
        io.stdout:write(text)
        io.stdout:flush()
    end
    local write_error = options.write_error or options.write or function(text)
        io.stderr:write(text)
        io.stderr:flush()
    end
    local reader = options.read and { read = options.read, remember = function() end }
        or default_reader()
    if not options.read then
        write("help() lists topics, ?tomo.fbp explains it, Tab completes, Ctrl-D or exit ends\n")
    end
    env.mb = require "moonbeam"
    env.help = env.help or function(subject)
        return env.mb.help(subject)
    end

    local function show(ok, ...)
        local count = select("#", ...)
        if not ok then
            -- The traceback ends where the prompt begins.
            local text = tostring((...)):gsub("\n%s*%[C%]: in function 'moonbeam.system.call'.*",
                "")
            write_error(core.error.printable(text, true) .. "\n")
            local callers = type(...) == "table" and rawget((...), "callers")
            if callers then
                write_error("  called from " .. table.concat(callers, ", ") .. "\n")
            end
        elseif count > 0 then
            local lines = {}
            for i = 1, count do
                local value = select(i, ...)
                local fine, text = pcall(repl.show, value)
                lines[i] = fine and text or tostring(text)
            end
            local text = table.concat(lines, "\t")
            if #text > 80 or text:find("\n") then
                text = table.concat(lines, "\n")
            end
            write(text .. "\n")
        end
    end

    local first = 1
    while true do
        local f, text, lines = read_statement(reader, env, first)
        if f == nil or text == meant.EXIT then
            break
        elseif f then
            local report = watch_memory()
            local results = table.pack(core.system.call(f))
            local memory = report()
            if not results[1] then
                explain(results[2], text, env, first)
            end
            show(table.unpack(results, 1, results.n))
            log.tell_unchecked()
            if memory ~= "" then
                write(memory)
            end
            local signal = core.system.stop_signal()
            if signal and signal ~= INTERRUPT then
                os.exit(128 + signal, true) -- SIGTERM and SIGHUP end the program, not the statement
            end
        else
            write_error(text and text .. "\n" or "\n")
        end
        first = first + lines
    end
    write("\n")
end

return declared.module(repl, "repl", {
    array_text = "a: array", compile = "text: string, env: table?, first: count?",
        complete = "word: string, before: string?, env: table?",
    run = {"", declared.options(
        {"read", "callable", "(prompt) -> line, or nil at the end, or nil and \"interrupted\""},
        {"write", "callable", "gets the output", usual = "the standard output"},
        {"write_error", "callable", "gets errors", usual = "the standard error"},
        {"env", "table", "the globals"})},
})
