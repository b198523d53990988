--- Command lines of the commands: one table declares the options, and parsing, --help and the error
-- messages come from it.
--
--   local options = cli.parse(arg, {
--       usage = "reconstruct SCAN [options]", summary = "...",
--       {"scan", positional = true, required = true, doc = "..."},
--       {"rows", short = "r", value = "A:B", type = cli.range, doc = "..."},
--   })
--
-- A type is a function that turns text into a value, or returns nil and what the text must be
-- (command_line/option_types.lua). An option without `value` is a switch. An option with `many` may
-- be given several times; its value is a list. `library` says what library functions call the
-- option (command_line/surface.lua), so that their messages are in the words of the command line.
-- `also` lists what other programs call it. `options.given` has the names of the options that were
-- given.

local columns = require "moonbeam.internal.columns"
local core = require "moonbeam.core"
local device = require "moonbeam.device"
local file_name = require "moonbeam.internal.file_name"
local log = require "moonbeam.internal.log"
local suggestions = require "moonbeam.internal.command_line.suggestions"
local surface = require "moonbeam.internal.command_line.surface"
local tables = require "moonbeam.internal.tables"
local types = require "moonbeam.internal.command_line.option_types"

local cli = {}

for name, make in pairs(types) do
    cli[name] = make
end

-- The type of an option and the form of its value, by the kind of the declaration's entry.
local OF_KIND = {
    count = {cli.count, "N"}, float = {cli.number, "X"}, number = {nil, "X"},
    int = {types.whole(0), "N"}, bytes = {cli.bytes, "SIZE"}, string = {nil, "TEXT"},
    list = {cli.numbers, "X,..."}, extents = {cli.extents(), "N,..."}, any = {nil, "VALUE"},
}

--- An option of a command line from the entry of a declaration (internal/declared.lua). Name, type,
-- default and text are those of the entry, unless `changes` overrides them. With the default false,
-- the called function fills in its own default. `of` says in the text what the option belongs to. A
-- boolean is a switch.
function cli.option(entry, changes)
    local kind, form = table.unpack(OF_KIND[entry.kind] or {})
    local option = {(entry.name:gsub("_", "-")), value = form, type = kind, doc = entry.doc,
        library = entry.name, default = math.tointeger(entry.default) or entry.default}
    if entry.kind == "number" then
        option.type = cli.bounded(entry)
    elseif entry.kind == "count" and entry.min == 0 then
        option.type = OF_KIND.int[1]
    elseif entry.choices then
        option.value, option.type = "NAME", cli.choice(table.unpack(entry.choices))
        if not entry.doc:find(entry.choices[1], 1, true) then
            option.doc = ("%s: %s"):format(entry.doc, table.concat(entry.choices, ", "))
        end
    end
    for key, value in pairs(changes or {}) do
        option[key] = value
    end
    if option.default == false then
        option.default = nil
        if option.doc == entry.doc and entry.default ~= nil and entry.default ~= "auto" then
            option.doc = ("%s (default %s)"):format(entry.doc, entry.default)
        end
    end
    if option.default == nil and entry.usual and not (changes or {}).doc then
        option.doc = ("%s (default: %s)"):format(option.doc, entry.usual)
    end
    option.doc = (option.of and option.of .. ": " or "") .. option.doc
    return option
end

-- A type for the value of an entry without its range, which is checked by whoever has the entry.
local function loose(entry)
    if entry.kind == "boolean" then
        return cli.switch, "yes|no"
    elseif entry.choices then
        return cli.choice(table.unpack(entry.choices)), "NAME"
    elseif entry.words then
        return cli.number_or(table.unpack(entry.words)), "X|" .. table.concat(entry.words, "|")
    end
    return entry.kind == "count" and types.whole(0) or cli.number, entry.kind == "count" and "N"
        or "X"
end

--- Options from a list of {name, entry}, each with the fields that `changes` returns for it. They
-- have no defaults, and numbers of any size are taken.
function cli.of_entries(list, changes)
    local made = {}
    for i, item in ipairs(list) do
        local kind, form = loose(item.entry)
        made[i] = changes(item)
        made[i][1], made[i].type, made[i].value = item.name:gsub("_", "-"), kind, form
    end
    return made
end

--- A copy of an option with some fields changed, such as a short name.
function cli.changed(option, changes)
    return setmetatable(changes, {__index = option})
end

--- Options from the entries with these names, with the same `changes`; changes.defaults has
-- defaults by name.
function cli.options(entries, changes, ...)
    local list = {}
    for i, name in ipairs {...} do
        list[i] = cli.option(entries[name], tables.merged(
            {default = (changes.defaults or {})[name]}, changes))
    end
    return list
end

local MEMORY <const> = {"max-memory", "memory", "mem"}
local GPU <const> = {"gpu", "gpus", "cuda", "gpu-id"}

--- Options that several commands have.
cli.shared = {
    device = {"device", short = "d", value = "ID", default = "auto", also = GPU,
        doc = "host, cuda:0, ...; auto takes moonbeam's --device, or a GPU"},
    devices = {"device", short = "d", value = "ID,...", default = "auto", also = GPU,
        doc = "host, cuda:0, cuda:0,cuda:1, all (GPUs of the model of the first), cuda (of several "
            .. "ranks on a machine each has its own), 2xplanned:h200, ...; auto takes moonbeam's "
            .. "--device, or a GPU"},
    budget = {"budget", short = "b", value = "SIZE", type = cli.bytes, also = MEMORY,
        doc = "memory to use at most, e.g. 8G (default: 90 % of what is free)"},
    budget_of_each = {"budget", short = "b", value = "SIZE", type = cli.bytes, also = MEMORY,
        doc = "memory of each device to use at most, e.g. 8G (default: 90 % of what is free)"},
    host_budget = {"host-budget", value = "SIZE", type = cli.bytes,
        doc = "memory of the host to use at most, beside a GPU's"},
    overwrite = {"overwrite", also = {"force", "clobber", "replace"},
        doc = "replace an existing result and existing pictures"},
    sz = {"sz", value = "N", type = cli.count,
        doc = "stretch of z in the pictures (default: to scale where the spacing is known)"},
    preview_range = {"preview-range", value = "LOW:HIGH", type = cli.pair "LOW:HIGH",
        doc = "values that are black and white in --preview (default: what 0.5 and 99.5 % of the "
            .. "values lie below), so that pictures of several runs can be compared"},
    preview_planes = {"preview-z", value = "N,...", type = cli.extents(), doc = "planes of the "
        .. "stack that are in --preview, side by side (default: maximum projections)"},
    preview_rows = {"preview-rows", value = "N,...", type = cli.extents(), doc = "rows of the "
        .. "detector whose slices are in --preview, side by side (default: the middle one)"},
    verbose = {"verbose", short = "v", doc = "all that is known of the run, not only what matters "
        .. "most"},
    quiet = {"quiet", short = "q", doc = "no progress, only warnings and errors"},
    log = {"log", value = "FILE", doc = "also append all messages, with times, to FILE"},
    progress = {"progress", value = "FORM", type = cli.choice("bar", "line", "json", "none"),
        doc = "how progress is shown on the standard error (default: a bar on a terminal, lines "
            .. "elsewhere); json: one object per line, for programs"},
}

local function default_text(value)
    return type(value) == "table" and table.concat(value, ",") or tostring(value)
end

--- The text of --help.
function cli.help(spec)
    local lines = {"usage: moonbeam " .. spec.usage, "", spec.summary, ""}
    local cells = {}
    for i, option in ipairs(spec) do
        local name = option.positional and option[1]:upper()
            or (option.short and "-" .. option.short .. ", " or "") .. "--" .. option[1]
                .. (option.value and " " .. option.value or "")
                .. (option.words and (" [%s]"):format(table.concat(option.words, "|")) or "")
        cells[i] = {"  " .. name, option.doc .. (option.default ~= nil
            and (" (default %s)"):format(default_text(option.default)) or "")}
    end
    cells[#cells + 1] = {"  -h, --help", "this text"}
    table.move(columns(cells), 1, #cells, #lines + 1, lines)
    if spec.notes then
        lines[#lines + 1] = ""
        lines[#lines + 1] = spec.notes
    end
    return table.concat(lines, "\n") .. "\n"
end

-- Of several ranks one says what all of them know.
local speaks = core.cluster.speaks

-- The program's own name, for its messages, and what library functions call its options; set by
-- `parse`.
local program, names_of_options = "moonbeam", {}

--- Like print, but text from a file or a name cannot control the terminal.
function cli.print(...)
    if not speaks() then
        return
    end
    local words = table.pack(...)
    for i = 1, words.n do
        words[i] = core.error.printable(tostring(words[i]), true)
    end
    print(table.unpack(words, 1, words.n))
    log.write(table.concat(words, "\t"))
end

--- Writes one line on stderr. Newlines are escaped, so text from a file cannot add lines.
function cli.tell(line)
    if not speaks() then
        return
    end
    line = core.error.printable(line)
    io.stderr:write(line, "\n")
    log.write(line)
end

--- Ends the program with a line on stderr and this status (default 1).
function cli.stop(message, status)
    local line = ("%s: %s"):format(program, message)
    if not core.cluster.note_failure(core.error.printable(line)) then -- a rank says it
        cli.tell(line)
    end
    os.exit(status or 1, true)
end

--- Wrong use ends the program with status 2, as command-line programs do.
function cli.wrong(format, ...)
    cli.stop(("%s (--help lists the options)"):format(format:format(...)), 2)
end

--- Writes a warning on stderr: a line in the words of the command line.
function cli.warn(format, ...)
    cli.tell(("%s: warning: %s"):format(program, cli.spoken(format:format(...))))
end

function log.warn(text)
    cli.warn("%s", text)
end

--- Does what comes after a result that is complete. `what` ("--preview") and `path` name it.
-- A failure is a warning, and the program ends with status 1; a stop stays one.
function cli.afterwards(what, path, fn, ...)
    if core.dry.on() then
        return fn(...)
    end
    local ok, problem = pcall(fn, ...)
    if ok then
        return
    elseif type(problem) == "table" and problem.code == "cancelled" then
        error(problem, 0)
    end
    log.failed = true
    cli.warn("the result is complete, but %s %s is not made: %s", what, path,
        type(problem) == "table" and (problem.problem or problem.message) or tostring(problem))
end

--- The values of --preview-range, checked; nil without it. So are --preview-z and --preview-rows.
function cli.preview_range(options)
    local range = options.preview_range
    for _, name in ipairs {"preview_z", "preview_rows", "preview_range"} do
        if options[name] and not options.preview then
            cli.wrong("--%s is for --preview FILE, which is not given", (name:gsub("_", "-")))
        end
    end
    if range and range[1] >= range[2] then
        cli.wrong("--preview-range is \"%g:%g\"; give two numbers as LOW:HIGH, the lower first",
            range[1], range[2])
    end
    return range
end

--- What a command prints of its work: a function for what everybody wants to know (nothing with
-- --quiet), and one for the rest (with --verbose). Both format like string.format.
function cli.speakers(options)
    local function printing(...)
        cli.print(string.format(...))
    end
    local function nothing() end
    local quiet = options.quiet or not speaks()
    return quiet and nothing or printing, options.verbose and not quiet and printing or nothing
end

-- The names of the command's options, after those in `more`.
local function all_names(more)
    return more and setmetatable(more, {__index = names_of_options}) or names_of_options
end

--- A message of a library function in the words of the command line. `more` has texts for other
-- names of the library (surface.names).
function cli.spoken(text, more)
    return surface.spoken(text, all_names(more))
end

-- Knows the scripts of commands, which this module is a part of.
local function call_budget()
    return require "moonbeam.internal.command_line.call_budget"
end

-- An error about memory is told when the program ends and nothing is live (`uncaught`): `more` is
-- kept for that. Others are returned.
local function told_here(problem, more)
    if problem.code == "budget" then
        problem.words = more
        error(problem, 0)
    end
    return problem
end

-- An error object with its message in these words. An error that ends the program with a special
-- status (Ctrl-C) is raised again.
local function speak(problem, more)
    if problem.code == "cancelled" then
        problem.where = nil
        error(problem, 0)
    elseif problem.code == "budget" then
        call_budget().explain(problem)
    end
    surface.speak(problem, all_names(more))
    return surface.line(problem)
end

-- What the program says about an error that nothing has caught (bindings/program/main_run.c). An
-- error of Lua itself is a defect of the command: it keeps its lines. The line of a command that
-- Ctrl-C has met says nothing.
local function uncaught(problem)
    if type(problem) ~= "table" then
        return ("%s: %s"):format(program, tostring(problem))
    elseif problem.code == "cancelled" then
        problem.where = nil
        return ("%s: %s"):format(program, tostring(problem))
    end
    return ("%s: %s"):format(program, speak(problem, problem.words))
end

--- Returns `value`. If it is nil or false, the program ends with `problem`: for the results of
-- `open`. `more`, if given, is that of cli.spoken.
function cli.must(value, problem, more)
    if not value then
        cli.stop(type(problem) == "table" and speak(told_here(problem, more), more)
            or tostring(problem))
    end
    return value
end

--- Returns what fn(...) returns. An error ends the program with its line in the words of the
-- command line; `more` is that of cli.spoken.
function cli.tried(more, fn, ...)
    local results = table.pack(pcall(fn, ...))
    if not results[1] then
        local problem = results[2]
        if type(problem) ~= "table" then
            error(problem, 0)
        end
        cli.stop(speak(told_here(problem, more), more))
    end
    return table.unpack(results, 2, results.n)
end

--- Returns what fn(...) returns. Its arguments come from the command line, so an argument error is
-- wrong use.
function cli.checked(fn, ...)
    local results = table.pack(pcall(fn, ...))
    if results[1] then
        return table.unpack(results, 2, results.n)
    end
    local problem = results[2]
    if type(problem) ~= "table" then
        error(problem, 0)
    end
    local line = speak(told_here(problem))
    if problem.code == "argument" then
        cli.wrong("%s", line)
    end
    cli.stop(line)
end

--- The devices of --device (default: the default device), each with the budget of --budget. Beside
-- GPUs, the host device gets the budget of --host-budget, which ends the program where the work is
-- on the host itself.
function cli.devices(options)
    local budget = options.budget and {budget = options.budget} or nil
    local list = cli.checked(device.several, options.device, budget)
    if options.host_budget and list[1].kind == "host" then
        cli.wrong("--host-budget %d is for the host beside a GPU, and the work is on the host "
            .. "itself: %s", options.host_budget, options.budget and ("leave it out; --budget %d "
            .. "limits the host"):format(options.budget) or ("give --budget %d instead"):format(
            options.host_budget))
    elseif options.host_budget then
        cli.checked(device, "host", {budget = options.host_budget})
    end
    call_budget().on(list)
    return list
end

--- Plans the command as `moonbeam --plan` does, by the words that were typed and those of the list
-- `more`, and ends the program.
function cli.plan_all(more)
    local words = {[0] = arg[0]}
    for _, word in ipairs(arg) do
        words[#words + 1] = word ~= "--plan" and word or nil
    end
    table.move(more, 1, #more, #words + 1, words)
    rawset(_G, "arg", words)
    os.exit(require "moonbeam.internal.script".plan(arg[0]), true)
end

--- The same for a command whose --plan needs the data, which a planned device does not hold: its
-- --plan on such a device is that of `moonbeam --plan`. `own`: it is its own --plan, in a dry run.
function cli.devices_with_data(options, own)
    local list = cli.devices(options)
    if own and list[1].planned and options.plan and not device.dry() then
        os.exit(require "moonbeam.internal.script".dry(arg[0]), true)
    elseif list[1].planned and options.plan and not device.dry() then
        -- What is planned needs the name of a result, which --plan does not, and writes nothing.
        cli.plan_all(not (options.output or options.into) and {"-o", "result.tif"} or {})
    elseif list[1].planned and not device.dry() then
        cli.wrong("--device %s holds no data; moonbeam --plan --device %s %s ... plans the command "
            .. "on it", list[1].id, list[1].id, program)
    end
    return list
end

--- The same for a command that works on one device.
function cli.device(options)
    local list = cli.devices(options)
    if #list > 1 then
        cli.wrong("--device %s names %d devices; this command works on one, such as %s",
            options.device, #list, list[1].id)
    end
    return list[1]
end

local outputs = {} -- options by the file that they name as output

-- Device and inode of an input file: FILE, or the file of FILE:/PATH.
local function facts_of_input(name)
    return core.system.stat(name) or core.system.stat(file_name.without_member(name))
end

-- Ends the program where the name of an output is wrong whatever files there are. Returns the
-- option, or OUT, as it is written, and the file. `name`, `path` and `options` are those of
-- cli.output.
local function check_name(name, path, options)
    local file = options.member and path:match("^(.+%.%w+):/.*$") or path
    name = name:match("^%l") and "--" .. name or name
    if file == "" then
        cli.wrong("%s \"\" is not a file name", name)
    end
    local problem = options.extensions and file_name.problem(file, options.extensions, options.what)
    if problem then
        cli.wrong("%s: %s", name, problem)
    end
    if outputs[file] and outputs[file] ~= name then
        cli.wrong("%s and %s are the same file, %s", outputs[file], name, file)
    end
    outputs[file] = name
    return name, file
end

--- Checks an output file before anything else is done, so that a wrong name does not cost work and
-- a result does not overwrite an input. Creates nothing. `name` is the option's name (or OUT, an
-- argument), and `path` may be nil. Options: inputs (a list of files that are read), replace (an
-- existing file may be replaced), extensions (what the name may end in, internal/file_name.lua),
-- what (what is written), member (FILE.h5:/PATH names a dataset), instead (what else helps where
-- the file exists; default: another name), name_only (files are not looked at).
function cli.output(name, path, options)
    if not path or core.dry.on() then
        return
    end
    local file
    name, file = check_name(name, path, options)
    if options.name_only then
        return
    end
    local facts = core.system.stat(file)
    for _, input in pairs(options.inputs or {}) do
        local read = facts_of_input(input)
        if facts and read and facts.device == read.device and facts.inode == read.inode then
            cli.stop(("%s %s is a file that is read, %s; choose another name"):format(name, path,
                input))
        end
    end
    -- A result that is a folder replaces a folder.
    local folder = facts and facts.kind == "folder" and options.extensions
        and file_name.extension(file) == "zarr"
    if facts and facts.kind ~= "file" and not folder then
        cli.stop(("%s %s is %s; choose another name"):format(name, path, facts.kind == "folder"
            and "a folder"
            or "not an ordinary file"))
    elseif facts and not options.replace then
        cli.stop(("%s %s already exists; %s, or --overwrite replaces it"):format(name, path,
            options.instead or "choose another name"))
    end
    local ok, refused = pcall(core.target.check, file, true)
    if not ok then
        cli.stop(("%s %s cannot be written: %s"):format(name, path,
            (refused.message:gsub("^cannot create '.-': ", ""))))
    end
    core.target.declare(file)
end

-- Applies --log and --progress, if they are given.
local function begin_log(spec, values)
    local has = {}
    for _, option in ipairs(spec) do
        has[option[1]] = true
    end
    log.progress = has.progress and values.progress or nil
    log.quiet = has.quiet and values.quiet or nil
    if not has.log or not values.log or core.dry.on() then
        return
    end
    local ok, problem = log.open(values.log)
    if not ok then
        cli.stop(("--log %s cannot be written: %s"):format(values.log,
            (problem:gsub("^.*: ", ""))))
    end
    log.write(("%s %s"):format(program, table.concat(tables.mapped(arg or {}, tostring), " ")))
end

--- Checks the files that a run will write, a list of {name of the option, fields of cli.output}.
-- The field `path` overrides the option's value, and an entry without extensions is a picture.
-- `inputs` are the files that are read; false: only the names are checked, as wrong use is told
-- before files that exist.
function cli.outputs(options, inputs, list)
    for _, item in ipairs(list) do
        item.inputs, item.replace = inputs or nil, options.overwrite
        item.name_only = not inputs
        item.extensions = item.extensions or file_name.PNG
        cli.output(item[1], item.path or options[item[1]:lower():gsub("-", "_")], item)
    end
end

--- Ends the program where --slices-per-file was given and the result `name` is no HDF5 file.
function cli.slices_per_file(options, name)
    if options.slices_per_file and file_name.problem(name, file_name.HDF5) then
        cli.wrong("--slices-per-file is for HDF5 files; --output is %s: give one that ends in .h5, "
            .. "or leave --slices-per-file out", name)
    end
end

-- The declaration of a command line with the lists of options in it flattened.
local function flat(spec)
    local all = {usage = spec.usage, summary = spec.summary, notes = spec.notes,
        suggest = spec.suggest, absent = spec.absent, extra = spec.extra,
        library = spec.library, planning = spec.planning}
    for _, item in ipairs(spec) do
        table.move(item, 1, #item, #all + 1, type(item[1]) == "table" and all or {})
        all[#all + 1] = type(item[1]) == "string" and item or nil
    end
    return all
end

-- Ends the program unless all required arguments and options were given; all that are missing are
-- named.
local function check_required(spec, values)
    local names = {}
    for _, option in ipairs(spec) do
        if option.required and values[option[1]:gsub("-", "_")] == nil then
            names[#names + 1] = option.positional and option[1]:upper() or "--" .. option[1]
        end
    end
    cli.missing(names)
end

--- Ends the program with status 2 if this list of missing arguments or options is not empty.
-- `why` is the beginning of the line.
function cli.missing(names, why)
    local last = #names > 1 and table.remove(names)
    local list = table.concat(names, ", ") .. (last and " and " .. last or "")
    if list ~= "" then
        cli.wrong("%s%s %s missing", why and why .. ": " or "", list, last and "are" or "is")
    end
end

-- May this word follow a switch (its field `words`)?
local function has_word(option, word)
    for _, own in ipairs(option.words or {}) do
        if own == word then
            return true
        end
    end
    return false
end

--- Parses `words` (the global `arg`). Returns a table keyed by option name, with `-` as `_`. The
-- declaration may have a function `suggest`, which returns what an unknown word may mean beside an
-- option, or nil; `absent`, {option of other commands = why this one has none}; `extra`, which gets
-- an argument too many and the values so far, and returns what to do, or nil; `library`, other
-- texts for names of the library (cli.spoken); and `planning`, which gets the values and tells
-- whether the command has --plan with them (command_line/call_budget.lua).
function cli.parse(words, spec)
    local by_name, positional, values, given = {}, {}, {}, {}
    values.given = given
    program = spec.usage:match("^%S*/(%S+)") or spec.usage:match("^%S+")
    spec = flat(spec)
    names_of_options, log.speak = surface.names(spec, spec.library), uncaught
    names_of_options[surface.GIVEN] = given
    for _, option in ipairs(spec) do
        if option.positional then
            positional[#positional + 1] = option
        else
            by_name["--" .. option[1]] = option
            if option.short then
                by_name["-" .. option.short] = option
            end
        end
        values[option[1]:gsub("-", "_")] = option.default
    end
    local function set(option, text, letter)
        local value = text
        if option.type then
            local problem
            value, problem = option.type(text)
            if value == nil then
                local meant = suggestions.of_number(text, option)
                    or not problem:find("did you mean", 1, true) and letter
                    and suggestions.of_value(text, spec) or ""
                cli.wrong("%s: \"%s\" is not %s%s", option.positional and option[1]:upper() or "--"
                    .. option[1], text, problem, meant)
            end
        end
        local name = option[1]:gsub("-", "_")
        if option.many then
            values[name] = values[name] or {}
            table.insert(values[name], value)
        else
            values[name] = value
        end
        given[name] = true
    end
    local at, next_positional, only_positional = 1, 1, false
    while at <= #words do
        local word = words[at]
        local name, attached = word:match("^(%-%-[^=]+)=(.*)$")
        name = name or word
        if word == "--" and not only_positional then
            only_positional = true
        elseif not only_positional and (word == "--help" or word == "-h") then
            io.write(cli.help(spec))
            os.exit(0, true)
        elseif not only_positional and word:match("^%-.")
            and not (tonumber(word) and not by_name[name]) then
            local option = by_name[name]
            if not option then
                cli.wrong("unknown option %s%s", name, suggestions.of(name, spec))
            end
            if not option.value then
                if not attached and has_word(option, words[at + 1]) then
                    at = at + 1
                    attached = words[at]
                end
                if attached and not has_word(option, attached) then
                    cli.wrong("%s takes no value%s", name, option.words
                        and " but " .. table.concat(option.words, ", ") or "")
                end
                set({option[1]}, attached or true)
            else
                if not attached then
                    at = at + 1
                    attached = words[at]
                end
                if not attached then
                    cli.wrong("%s needs a value: %s %s", name, name, option.value)
                end
                set(option, attached, not name:find "^%-%-")
            end
        else
            local option = positional[next_positional]
            if not option then
                cli.wrong("one argument too many: %s%s", word,
                    suggestions.of_argument(word, spec, values,
                        {words[at - 2] or "", words[at - 1] or ""}, by_name))
            end
            set(option, word)
            next_positional = next_positional + (option.many and 0 or 1)
        end
        at = at + 1
    end
    check_required(spec, values)
    begin_log(spec, values)
    call_budget().begin(spec, values)
    return values
end

return cli
