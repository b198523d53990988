--- The fuzzer's loop: mutants of files and calls of operators, counted, until a number or a time
-- is reached. See scripts/fuzz.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local files = require "scripts.fuzzing.files"
local limits = require "scripts.fuzzing.limits"
local report = require "scripts.fuzzing.report"
local seeds = require "scripts.fuzzing.seeds"

-- Calls that are made in one process, of operators and of recipes.
local CALLS = {operators = 100, recipes = 40}
local SECONDS = 20 -- after which a run counts as a hang

local options = cli.parse(arg, {
    usage = "fuzz [options]",
    summary = "Damages files and arguments and counts how the program takes it.",
    {"count", value = "N", type = cli.count, default = 1 << 40, doc = "mutants of files"},
    {"minutes", value = "M", type = cli.number, default = 1e6,
        doc = "time after which no new mutant is begun"},
    {"seed", value = "N", type = cli.count, default = 1,
        doc = "of all that is random: the same seed makes the same mutants"},
    {"from", value = "N", type = cli.count, default = 1, doc = "number of the first mutant"},
    {"only", value = "KIND", type = cli.choice("scan", "values", "image", "texts", "npy", "zarr",
        "list", "recipe", "journal", "operators", "recipes", "limits"), doc = "this kind alone"},
    {"keep", value = "FOLDER", doc = "where mutants that break a promise are kept"},
    {"measure", value = "FILE", required = true, doc = "the built measure.c"},
    {"again", value = "WORDS", default = "scripts/fuzz",
        doc = "how the program was called, for the lines that say how to repeat a failure"},
    {"sanitized", doc = "the program is a sanitized one: its memory is not judged"},
    {"worker", value = "K/N", default = "1/1",
        doc = "of N processes this is number K: it takes every N-th mutant"},
    {"tallies", value = "FILE", doc = "write the counts there for --merge, and no report"},
    {"merge", value = "FILES",
        doc = "add the counts of these files up (separated by commas) and print the report"},
})

if options.merge then
    os.exit(report.print(report.merge(options.merge), options.sanitized) and 0 or 1, true)
end

-- What mutant number `index` is: of sixteen, four are damaged scans, one has damaged values, two
-- are images, two have damaged texts, two are batches of calls; the other kinds have one each.
local KINDS = {"scan", "image", "npy", "recipes", "scan", "values", "texts", "zarr", "journal",
    "scan", "list", "image", "texts", "recipe", "scan", "operators"}

local folder = os.tmpname()
os.remove(folder)
assert(mb.system.mkdir(folder))
local _ <close> = setmetatable({}, {__close = function()
    os.execute(("rm -rf '%s'"):format(folder))
end})
local campaign = {program = core.system.program(), measure = options.measure, seconds = SECONDS,
    folder = folder .. "/runs",
    seed = options.seed, keep = options.keep, sanitized = options.sanitized}
assert(mb.system.mkdir(campaign.folder))
local all = seeds.make(folder)
files.prepare(campaign, all)

local by_kind = {}
for _, seed in ipairs(all) do
    by_kind[seed.kind] = by_kind[seed.kind] or {}
    table.insert(by_kind[seed.kind], seed)
end

local tallies = report.new()

local function try_calls(kind, index)
    local log, out, err = folder .. "/call", folder .. "/out", folder .. "/err"
    local command = ("'%s' 300 '%s' '%s' '%s' scripts/fuzzing/%s.lua %d %d %d '%s'"):format(
        options.measure, out, err, core.system.program(), kind, options.seed,
        index * CALLS[kind], CALLS[kind], log)
    local pipe <close> = assert(io.popen(command))
    local how = pipe:read("l")
    report.calls(tallies, kind, how, out, err, log)
end

-- What calls under limits need; these are made with --only limits alone.
local limits_of = {program = campaign.program, measure = campaign.measure, seed = campaign.seed,
    seconds = 10 * SECONDS, folder = folder .. "/limits", name = "limits"}
assert(mb.system.mkdir(limits_of.folder))

local function try(index)
    -- Each round begins with another kind, so that every process meets every kind.
    local round = (index - 1) // #KINDS
    local kind = options.only or KINDS[(index - 1 + round) % #KINDS + 1]
    report.at(tallies, ("%s --seed %d --only %s --from %d --count 1"):format(options.again,
        options.seed, kind, index))
    if CALLS[kind] then
        return try_calls(kind, index)
    end
    if kind == "limits" then
        limits_of.kinds = limits_of.kinds or limits.kinds()
        return limits.try(limits_of, index, function(entry)
            report.file(tallies, kind, limits_of, entry)
        end)
    end
    local list = by_kind[kind] or by_kind.scan
    local seed = list[(options.only and index or round) % #list + 1]
    files.try(campaign, seed, kind == "values" and "values" or "structure", index, function(entry)
        return report.file(tallies, kind, seed, entry)
    end)
end

local worker, workers = options.worker:match("^(%d+)/(%d+)$")
if not worker or tonumber(worker) < 1 or tonumber(worker) > tonumber(workers) then
    cli.wrong("--worker is \"%s\"; it is K/N", options.worker)
end
local began = core.system.clock()
for index = options.from + worker - 1, options.from + options.count - 1, workers do
    if core.system.clock() - began > 60 * options.minutes then
        break
    end
    try(math.tointeger(index))
end
if options.tallies then
    report.write(tallies, options.tallies)
else
    os.exit(report.print(tallies, options.sanitized) and 0 or 1, true)
end
