-- The output of a spec file, as a busted output handler: every failure in full where it happens,
-- one line for the file, and notes for spec/run, which closes with what all files came to.

local pretty = require "pl.pretty"
local system = require "system"

-- busted isolates spec files by restoring package.loaded; what is needed here is fetched now.
local write = io.write
local format = string.format

-- Error objects know best how to show themselves.
local function message_text(message)
    local meta = type(message) == "table" and getmetatable(message)
    if message == nil then
        return "no message"
    elseif type(message) == "string" or (meta and meta.__tostring) then
        return tostring(message)
    end
    return pretty.write(message)
end

local function indent(text)
    return (text:gsub("\n*$", ""):gsub("[^\n]+", "      %0"))
end

local function place(item)
    local trace = item.element.trace or item.trace
    if trace and trace.short_src and trace.currentline then
        return format("%s:%d", trace.short_src, trace.currentline)
    end
    return item.element.name or "?"
end

return function(options)
    local busted = require "busted"
    local handler = require "busted.outputHandlers.base"()

    -- How much of the handler's lists has been printed or counted before the current file.
    local shown_failures, shown_errors
    local file_start, passed_before, failed_before, skipped_before

    local function failed_count()
        return handler.failuresCount + handler.errorsCount
    end

    local function show_failure(kind, item)
        write(format("  %s: %s (%s)\n%s\n", kind, item.name, place(item),
            indent(message_text(item.message))))
        if item.trace and item.trace.traceback and (item.isError or options.verbose) then
            write(indent(item.trace.traceback:gsub("^\n+", "")), "\n")
        end
    end

    -- At once, so that they are on the screen even if a later spec brings the program down.
    local function show_new_failures()
        while shown_failures < #handler.failures do
            shown_failures = shown_failures + 1
            show_failure("FAILED", handler.failures[shown_failures])
        end
        while shown_errors < #handler.errors do
            shown_errors = shown_errors + 1
            show_failure("ERROR", handler.errors[shown_errors])
        end
        io.flush()
        return nil, true
    end

    local function suite_start()
        shown_failures, shown_errors = 0, 0
        return nil, true
    end

    local function file_started()
        file_start = system.gettime()
        passed_before = handler.successesCount
        failed_before = failed_count()
        skipped_before = handler.pendingsCount
        return nil, true
    end

    local function file_ended(file)
        show_new_failures()
        local passed = handler.successesCount - passed_before
        local failed = failed_count() - failed_before
        local skipped = handler.pendingsCount - skipped_before
        local counts = format("%d passed", passed)
        if failed > 0 then
            counts = counts .. format(", %d FAILED", failed)
        end
        if skipped > 0 then
            counts = counts .. format(", %d skipped", skipped)
        end
        local seconds = system.gettime() - file_start
        write(format("%-48s %7.2f s  %s\n", file.name or "?", seconds, counts))
        io.flush()
        return nil, true
    end

    local function list_of(items, kind)
        local lines = {}
        for i, item in ipairs(items) do
            local text = format("%s (%s)", item.name, place(item))
            if kind == "skipped" then
                local reason = item.message and message_text(item.message) or "no reason given"
                text = reason:gsub("^[%w_./-]+:%d+: ", "") .. "\t" .. text
            end
            lines[i] = format("%s\t%s\n", kind, (text:gsub("\n", " ")))
        end
        return table.concat(lines)
    end

    -- Counts, names and reasons go where spec/run adds those of all files up.
    local function suite_end()
        show_new_failures()
        local notes = assert(io.open(os.getenv("MOONBEAM_SPEC_NOTES") or "/dev/stdout", "w"))
        notes:write(format("passed\t%d\n", handler.successesCount),
            list_of(handler.failures, "failed"), list_of(handler.errors, "failed"),
            list_of(handler.pendings, "skipped"), "end\n")
        notes:close()
        return nil, true
    end

    busted.subscribe({ "suite", "start" }, suite_start)
    busted.subscribe({ "file", "start" }, file_started)
    busted.subscribe({ "file", "end" }, file_ended)
    busted.subscribe({ "test", "end" }, show_new_failures)
    busted.subscribe({ "suite", "end" }, suite_end)
    return handler
end
