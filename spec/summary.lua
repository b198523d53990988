-- The output of scripts/test, as a busted output handler: one line for each spec file, every
-- failure in full where it happens, the skipped specs with their reasons, and a closing line
-- "N passed, N failed, N skipped" in which errors count as failures.

local pretty = require "pl.pretty"
local system = require "system"

-- busted isolates spec files by restoring package.loaded; what is needed here is fetched now.
local write = io.write
local format = string.format

local skipped_names = 3 -- shown for each reason

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

    -- Skipped specs by reason: three hundred of them for want of a GPU are one short paragraph
    -- (--verbose names all).
    local function show_skipped()
        local reasons, names = {}, {}
        for _, item in ipairs(handler.pendings) do
            local reason = item.message and message_text(item.message) or "no reason given"
            reason = reason:gsub("^[%w_./-]+:%d+: ", "")
            if not names[reason] then
                names[reason] = {}
                table.insert(reasons, reason)
            end
            table.insert(names[reason], format("%s (%s)", item.name, place(item)))
        end
        for _, reason in ipairs(reasons) do
            local list = names[reason]
            local shown = options.verbose and #list or math.min(#list, skipped_names)
            write(format("\n%d skipped: %s\n", #list, reason))
            for i = 1, shown do
                write("  ", list[i], "\n")
            end
            if shown < #list then
                write(format("  and %d more\n", #list - shown))
            end
        end
    end

    local function suite_end()
        show_new_failures()
        show_skipped()
        if failed_count() > 0 then
            write("\nfailed:\n")
            for _, list in ipairs { handler.failures, handler.errors } do
                for _, item in ipairs(list) do
                    write(format("  %s (%s)\n", item.name, place(item)))
                end
            end
        end
        write(format("\n%.1f s\n%d passed, %d failed, %d skipped\n", handler.getDuration(),
            handler.successesCount, failed_count(), handler.pendingsCount))
        io.flush()
        return nil, true
    end

    busted.subscribe({ "suite", "start" }, suite_start)
    busted.subscribe({ "file", "start" }, file_started)
    busted.subscribe({ "file", "end" }, file_ended)
    busted.subscribe({ "test", "end" }, show_new_failures)
    busted.subscribe({ "suite", "end" }, suite_end)
    return handler
end
