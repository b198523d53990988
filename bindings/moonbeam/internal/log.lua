-- The log file of a program's messages (--log FILE) and the form of its progress (--progress FORM).
-- Both belong to the whole program, because a batch queue runs one job in one process.

local core = require "moonbeam.core"

local log = {}

--- What a command says about an error that nothing has caught: a function of the error that returns
-- a line; nil: the error as it is. Set by command lines (cli.lua).
log.speak = nil

--- How progress is shown: "bar", "line", "json" or "none"; nil: by the kind of the standard error.
log.progress = nil

--- Whether progress is not shown at all (--quiet), but for programs (JSON).
log.quiet = nil

--- Whether something after a result that is complete has failed (cli.afterwards).
log.failed = false

--- How a warning is said. Set by command lines (cli.lua).
function log.warn(text)
    io.stderr:write("moonbeam: warning: ", text, "\n")
end

--- Says what is left to say of what was read, once.
function log.tell_unchecked()
    local name, others = core.rawfile.unchecked()
    if name then
        log.warn(("the checksum behind compressed data of '%s'%s is cut off: the data are "
            .. "complete, and nothing tells whether they are right"):format(name,
            others and " and of other files" or ""))
    end
end

--- The exit status of a program that no error has ended, which has nothing left to say.
function log.exit_status()
    log.tell_unchecked()
    return log.failed and 1 or 0
end

local file, path
local said -- a list of what was said, where a program wants it in the end

-- Ends the log, which cannot be written any more: said once, and the work goes on.
local function give_up(problem)
    file:close()
    file = nil
    io.stderr:write(("the log '%s' ends here: %s\n"):format(core.error.printable(path),
        (problem:gsub("^.*: ", ""))))
end

-- Writes every line with the time. Several processes may append to one file.
local function write_lines(text)
    local now = os.date "!%Y-%m-%dT%H:%M:%S+00:00"
    local lines = {}
    for line in (core.error.printable(text, true) .. "\n"):gmatch "([^\n]*)\n" do
        lines[#lines + 1] = ("%s %s\n"):format(now, line)
    end
    local ok, problem = file:write(table.concat(lines))
    if ok then
        ok, problem = file:flush()
    end
    if not ok then
        give_up(problem)
    end
end

-- Is an ordinary file empty, or a log? Its first line then begins as write_lines begins lines.
local function is_log(name)
    local existing <close> = io.open(name, "rb")
    local head = existing and existing:read(26) or ""
    return head == "" or head:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%+00:00 $" ~= nil
end

--- Appends all messages from now on to a file. Returns true, or nil and the reason. Of several
-- ranks the first one does, which also says what the others have to say. A file that is no log
-- stays as it is.
function log.open(name)
    if core.cluster.place().rank > 0 then
        return true
    end
    local facts = core.system.stat(name)
    if facts and facts.kind == "file" and not is_log(name) then
        return nil, "it is there and no log: its first line does not begin with a time; choose "
            .. "another name"
    end
    local opened, problem = core.target.append(name)
    if not opened then
        return nil, problem
    end
    core.target.declare(name)
    log.close()
    file, path = opened, name
    log.at_exit = setmetatable({}, {__gc = log.close}) -- written when the program ends
    return true
end

--- Writes a text to the log, if there is a log.
function log.write(text)
    if said then
        said[#said + 1] = text
    end
    if file then
        write_lines(text)
    end
end

--- From now on remembers what is said; what was said before is forgotten.
function log.remember()
    said = {}
end

--- How many texts are remembered.
function log.count()
    return said and #said or 0
end

--- What was said since, as text; of the texts in these ranges {first, last} alone, if given.
function log.said(ranges)
    local list = {}
    for _, range in ipairs(ranges or {{1, log.count()}}) do
        table.move(said or {}, range[1], math.min(range[2], log.count()), #list + 1, list)
    end
    return table.concat(list, "\n")
end

--- Closes the log. May be called again.
function log.close()
    if file then
        write_lines "end of the program"
    end
    if file then
        file:close()
        file = nil
    end
end

return log
