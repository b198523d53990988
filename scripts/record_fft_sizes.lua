--- Records what a GPU's FFT library asks for and how long it takes, as a C source of the runtime:
-- with it, that GPU can be planned for where it is not (mb.device "planned:h200"), and sizes are
-- chosen by measured times.
--
--   moonbeam scripts/record_fft_sizes.lua -d cuda:0 --name h200 \
--       -o runtime/device/planned/record_h200.c
--
-- then build again. Planning a size loads its kernels, 20 to 60 ms each; so work areas are asked
-- for by several processes at once. Times are measured afterwards, alone on the device: real
-- transforms in place, 2^26 points, median after warm-up.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local tables = require "moonbeam.internal.tables"

local options = cli.parse(arg, {
    usage = "scripts/record_fft_sizes.lua --name NAME -o FILE [options]",
    summary = "Records the work areas and times of a GPU's FFTs as a C source.",
    cli.changed(cli.shared.device, {default = "cuda:0"}),
    {"name", value = "NAME", default = "gpu", doc = "what the record is called: planned:NAME"},
    {"output", short = "o", value = "FILE", doc = "the C source"},
    {"all", value = "N", type = cli.count, default = 4096, doc = "every size up to this"},
    {"last", value = "N", type = cli.count, default = 32768,
        doc = "2-3-5-7-smooth sizes up to this"},
    {"timed", value = "N", type = cli.count, default = 8192,
        doc = "times of even smooth sizes up to this"},
    {"jobs", short = "j", value = "N", type = cli.count, default = 16,
        doc = "processes that ask for work areas"},
    {"part", value = "K:N", type = cli.range,
        doc = "be one of these processes: print the codes of sizes K, K + N, ..."},
})

local device = cli.device(options)
local free = device:memory()
local DIGITS <const> = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
local POINTS <const>, COLUMNS <const> = 1 << 26, 512

local function smooth(n)
    for _, p in ipairs {2, 3, 5, 7} do
        while n % p == 0 do
            n = n // p
        end
    end
    return n == 1
end

local function sizes()
    local list = {}
    for n = 1, options.last do
        if n <= options.all or smooth(n) then
            list[#list + 1] = n
        end
    end
    return list
end

-- Which of the areas it is: 0 for none, 1, 2, ...; nil for another one.
local function which(kind, dims, ...)
    local work = mb.fft.work(kind, dims, {device = device, in_place = true})
    if work == 0 then
        return 0
    end
    for i, area in ipairs {...} do
        if work == area then
            return i
        end
    end
end

-- The base-36 digit of fft_record.h, or "." when an area is none of those the rule knows.
local function code(n)
    local c2c, column = which("c2c", {n}, 8 * n), which("c2c", {n, 16}, 8 * 16 * n)
    local real = {}
    for i, kind in ipairs {"r2c", "c2r"} do
        if n % 2 == 0 then
            real[i] = which(kind, {n}, 4 * n, 8 * (n // 2 + 1))
        else
            real[i] = mb.fft.work(kind, {n}, {device = device, in_place = true}) == 0 and 0 or 1
        end
    end
    if not (c2c and column and real[1] and real[2]) then
        return "."
    end
    local digit = c2c + 2 * column + 4 * real[1] + 12 * real[2]
    return DIGITS:sub(digit + 1, digit + 1)
end

if options.part then
    local first, step = table.unpack(options.part)
    local list = sizes()
    for i = first, #list, step do
        print(list[i], code(list[i]))
    end
    os.exit(true, true)
end

-- This command line once more, with --part.
local function start(k)
    local words = {}
    local first = 0
    while arg[first - 1] do
        first = first - 1
    end
    for i = first, #arg do
        words[#words + 1] = "'" .. arg[i]:gsub("'", "'\\''") .. "'"
    end
    return assert(io.popen(("%s --part %d:%d"):format(table.concat(words, " "), k, options.jobs)))
end

local function codes()
    local jobs, found = {}, {}
    for k = 1, options.jobs do
        jobs[k] = start(k)
    end
    for _, job in ipairs(jobs) do
        for n, digit in job:read("a"):gmatch "(%d+)%s+(%S)" do
            found[math.tointeger(n)] = digit
        end
        assert(job:close())
    end
    return found
end

-- Picoseconds per sample of one real transform, mean of both directions, over arrays of the shape
-- (last axis: samples).
local function measure(shape, axes)
    local n = shape[#shape]
    local rows, points = {table.unpack(shape)}, tables.product(shape)
    rows[#rows] = 2 * (n // 2 + 1)
    local room <close> = mb.zeros(rows, {device = device})
    local spectrum <close> = room:reinterpret("c64")
    local function pairs_of(count)
        device:sync()
        local begin = mb.system.clock()
        for _ = 1, count do
            mb.rfft(room, {axes = axes, in_place = true, n = n, out = spectrum})
            mb.irfft(spectrum, {axes = axes, in_place = true, n = n, normalize = false, out = room})
        end
        device:sync()
        return (mb.system.clock() - begin) / (2 * count)
    end
    pairs_of(1)
    local seconds = {}
    for i = 1, 3 do
        seconds[i] = pairs_of(4)
    end
    table.sort(seconds)
    return seconds[2] / points * 1e12
end

local function times()
    local list = {}
    local row_ps = measure({POINTS // COLUMNS, COLUMNS}, 1)
    for n = 2, options.timed, 2 do
        if smooth(n) then
            local row = measure({POINTS // n, n}, 1)
            local column = measure({math.max(1, POINTS // (n * COLUMNS)), n, COLUMNS}, 2) - row_ps
            list[#list + 1] = {n = n, row = row, column = math.max(column, 0)}
        end
    end
    return list
end

local function wrapped(cells, per_line)
    local lines = {}
    for i = 1, #cells, per_line do
        lines[#lines + 1] = "    " .. table.concat(cells, " ", i,
            math.min(i + per_line - 1, #cells))
    end
    return table.concat(lines, "\n")
end

local found, timed = codes(), times()
local plans = mb.fft.plans(device)
local text, more, time_rows = {}, {}, {}
for _, n in ipairs(sizes()) do
    local digit = found[n] or error(("no work area of size %d"):format(n))
    if n <= options.all then
        text[#text + 1] = digit
    else
        more[#more + 1] = ("{%d, '%s'},"):format(n, digit)
    end
end
local digits = "." .. table.concat(text)
local lines = {}
for i = 1, #digits, 90 do
    lines[#lines + 1] = "    \"" .. digits:sub(i, i + 89) .. "\""
end
for i, t in ipairs(timed) do
    time_rows[i] = ("{%d, %.2ff, %.2ff},"):format(t.n, t.row, t.column)
end
local library, date = mb.fft.library(device), os.date("!%Y-%m-%d")
local source = ([[
/*
** %s as scripts/record_fft_sizes.lua found it, %s, %s. Data: do not edit, record again.
*/
#include "device/planned/planned_backend.h"

/* clang-format off */
static const char codes[] =
%s;

static const mb_fft_code more[] = {
%s
};

static const mb_fft_time times[] = {
%s
};

const mb_device_record mb_device_record_%s = {
    .name = "%s",
    .facts = {.name = "%s",
              .threads = %d,
              .compute_capability = %d,
              .total_bytes = UINT64_C(%d),
              .commit_granularity = %d,
              .l2_bytes = %d},
    .free_bytes = UINT64_C(%d),
    .fft = {.device = "%s",
            .library = "%s",
            .date = "%s",
            .plan_bytes = %d,
            .all = %d,
            .codes = codes,
            .more_count = sizeof more / sizeof *more,
            .more = more,
            .time_count = sizeof times / sizeof *times,
            .times = times},
};
]]):format(device.name, library, date, table.concat(lines, "\n"), wrapped(more, 8),
    wrapped(time_rows, 4), options.name, options.name, device.name, device.threads,
    device.capability, device.total, device.granularity, device.l2, free,
    device.name, library, date, plans.library_bytes // math.max(1, plans.count), options.all)
if options.output then
    local file <close> = assert(io.open(options.output, "w"))
    assert(file:write(source))
else
    io.write(source)
end
