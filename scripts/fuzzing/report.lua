--- Counts of the fuzzer: by campaign and by how runs ended, and the table that is printed.

local sorted_keys = require("moonbeam.internal.tables").keys

local report = {}

-- Ends of a run of which each breaks a promise.
local BAD = {}
for _, word in ipairs {"crash", "hang", "memory", "sanitizer", "traceback", "status",
    "several lines", "left behind",
    "accepted, changed in silence", "accepted, without a result", "accepted, not read again",
    "lost", "wrong estimate", "input changed", "accepted, wrong", "lost what was kept",
    "advice failed", "killed", "failed in another way",
    "not repeatable", "internal error", "plain Lua error", "leak", "guard damage"} do
    BAD[word] = true
end

-- Values of which any is plausible: nothing in the file could tell, so that their silence is
-- counted and not blamed.
local UNDETECTABLE = {values = {["accepted, changed in silence"] = true}}

local MOST_FAILURES <const> = 10 -- that are told again at the end

function report.new()
    return {counts = {}, facts = {}, failures = {}, seconds = 0, kib = 0}
end

--- What comes next is repeated by this command.
function report.at(tallies, command)
    tallies.command = command
end

local function add(tallies, campaign, word, number)
    local counts = tallies.counts[campaign] or {}
    tallies.counts[campaign] = counts
    counts[word] = (counts[word] or 0) + (number or 1)
end

local function is_bad(campaign, word)
    return (BAD[word] or word:find "^sound input: ")
        and not (UNDETECTABLE[campaign:match("^%a+")] or {})[word]
end

--- Says what is worth a look, while the fuzzer runs and, of the first ones, at its end.
function report.complain(tallies, ...)
    local text = string.format(...)
    io.stderr:write(("fuzz: %s\n"):format(text))
    if #tallies.failures < MOST_FAILURES then
        table.insert(tallies.failures, ("%s\n  again: %s"):format(text, tallies.command or "?"))
    end
end

--- Counts a run of a mutant. Returns whether it broke a promise.
function report.file(tallies, kind, seed, entry)
    local campaign = ("%s %s"):format(kind, entry.run)
    add(tallies, campaign, entry.verdict)
    tallies.seconds = math.max(tallies.seconds, entry.result.seconds)
    tallies.kib = math.max(tallies.kib, entry.result.kib)
    local names = entry.names and #entry.names > 0 and table.concat(entry.names, ", ")
    if names and entry.verdict == "accepted, changed in silence" then
        tallies.facts[names] = (tallies.facts[names] or 0) + 1
    end
    local bad = is_bad(campaign, entry.verdict)
    if #(entry.left or {}) > 0 then
        add(tallies, campaign, "left behind")
        report.complain(tallies, "%s, %s: left %s", entry.name, entry.run,
            table.concat(entry.left, ", "))
        bad = true
    end
    if bad then
        report.complain(tallies, "%s (%s), %s: %s%s %s", entry.name, seed.name, entry.run,
            entry.verdict, names and " (" .. names .. ")" or "", entry.result.err:match("[^\n]*"))
    end
    return bad
end

--- The bytes of a file, or "" if there is none.
function report.read(path)
    local file <close> = io.open(path, "rb")
    return file and file:read("a") or ""
end

--- Counts a batch of calls of a kind: `how` is measure's line; the files are its output, its errors
-- and the number of its last call.
function report.calls(tallies, kind, how, out, err, log)
    local status = (how or ""):match("^exit 0 ")
    local chunk = load(report.read(out), "=calls", "t", {})
    local counts = status and chunk and chunk()
    for line in report.read(err):gmatch("[^\n]+") do
        if line:find "^call %d" then
            report.complain(tallies, "%s, %s", kind, line)
        else
            io.stderr:write(line, "\n") -- of a sanitizer
        end
    end
    if not counts then
        local word = (how or ""):find("^hang") and "hang" or (how or ""):find("^exit 77 ")
            and "sanitizer" or "crash"
        report.complain(tallies, "%s, call %s: %s (%s)", kind, (report.read(log):gsub("%s", "")),
            word, how)
        return add(tallies, kind, word)
    end
    for word, number in pairs(counts) do
        add(tallies, kind, word, number)
    end
end

-- A table of numbers and such tables, as Lua text.
local function serialized(value)
    if type(value) ~= "table" then
        return ("%q"):format(value)
    end
    local parts = {}
    for key, item in pairs(value) do
        parts[#parts + 1] = ("[%q] = %s"):format(key, serialized(item))
    end
    return ("{%s}"):format(table.concat(parts, ", "))
end

function report.write(tallies, path)
    local file <close> = assert(io.open(path, "w"))
    file:write("return ", serialized(tallies), "\n")
end

--- The sum of the counts in files, whose names are separated by commas.
function report.merge(paths)
    local sum = report.new()
    for path in paths:gmatch("[^,]+") do
        local tallies = assert(loadfile(path, "t", {}))()
        for campaign, counts in pairs(tallies.counts) do
            for word, number in pairs(counts) do
                add(sum, campaign, word, number)
            end
        end
        table.move(tallies.failures, 1, #tallies.failures, #sum.failures + 1, sum.failures)
        for names, number in pairs(tallies.facts) do
            sum.facts[names] = (sum.facts[names] or 0) + number
        end
        sum.seconds, sum.kib = math.max(sum.seconds, tallies.seconds),
            math.max(sum.kib, tallies.kib)
    end
    return sum
end

--- Prints the counts; what breaks a promise is marked. Returns whether nothing did.
function report.print(tallies, sanitized)
    local broken = 0
    for _, campaign in ipairs(sorted_keys(tallies.counts)) do
        local counts, total = tallies.counts[campaign], 0
        for word, number in pairs(counts) do
            total = total + (word ~= "left behind" and number or 0)
        end
        print(("%-14s %8d"):format(campaign, total))
        for _, word in ipairs(sorted_keys(counts)) do
            local bad = is_bad(campaign, word)
            broken = broken + (bad and counts[word] or 0)
            print(("  %s %-32s %8d"):format(bad and "!" or " ", word, counts[word]))
        end
    end
    for _, names in ipairs(sorted_keys(tallies.facts)) do
        print(("changed in silence: %s: %d"):format(names, tallies.facts[names]))
    end
    print(("slowest run %.1f s%s"):format(tallies.seconds, sanitized and ""
        or (", largest resident size %.0f MiB"):format(tallies.kib / 1024)))
    for k = 1, math.min(#tallies.failures, MOST_FAILURES) do
        print(tallies.failures[k])
    end
    print(broken == 0 and "no promise was broken"
        or ("promises broken: %d (marked !)"):format(broken))
    return broken == 0
end

return report
