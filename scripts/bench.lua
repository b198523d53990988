--- Times Moonbeam on a device, in groups of rows (scripts/bench/<group>.lua), with peers beside it
-- in the same run (scripts/bench/peers.py) where Python has them. Medians of repeats after warm-up,
-- floors from the copy bandwidth measured in the same run. What is printed is Markdown.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"

local GROUPS = {"tomo", "iterative", "convolution", "pool", "steps"}
local FOLDER = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/bench/"

local options = cli.parse(arg, {
    usage = "scripts/bench.lua [GROUP] [options]",
    summary = "Times work on a device beside what peers take and what memory bandwidth allows.",
    {"group", positional = true, type = cli.choice("all", "ram", table.unpack(GROUPS)),
        default = "all",
        doc = table.concat(GROUPS, ", ")
            .. ", all of these, or ram: reconstruction from pinned host memory and back"},
    cli.changed(cli.shared.device, {default = "host"}),
    {"devices", value = "LIST",
        doc = "ram: the same on these together, such as cuda:0,cuda:1 or all"},
    {"size", short = "n", value = "N", type = cli.up_to(1 << 20), default = 512,
        doc = "tomo, iterative, ram: detector columns = slice side"},
    {"angles", short = "a", value = "N", type = cli.up_to(1 << 20), default = 400,
        doc = "tomo, iterative, ram: projections"},
    {"slices", short = "s", value = "N", type = cli.up_to(1 << 20), default = 16,
        doc = "tomo, iterative: slices at a time; ram: slices"},
    {"chunk", value = "ROWS", type = cli.count, doc = "ram: rows per chunk (default: chosen)"},
    {"volume", value = "Z,Y,X", type = cli.extents(3), default = {64, 256, 256},
        doc = "convolution: the volume"},
    {"repeats", value = "N", type = cli.count, default = 5,
        doc = "timed repeats (the median counts)"},
    {"only", value = "NAME", doc = "just the rows whose name contains this"},
    {"no-errors", doc = "tomo: leave the comparison with double precision out"},
    {"no-peers", doc = "leave the peers out"},
    {"python", value = "PROGRAM", default = "python3",
        doc = "the Python that has them (CuPy; SciPy, scikit-image)"},
})

local device = cli.device(options)

--- What the groups work with: `options`, `device` and the functions below.
local bench = {options = options, device = device}

--- Median seconds of fn, warm, the device idle before and after.
function bench.time(fn)
    fn()
    device:sync()
    local seconds = {}
    for i = 1, options.repeats do
        local start = mb.system.clock()
        fn()
        device:sync()
        seconds[i] = mb.system.clock() - start
    end
    table.sort(seconds)
    return seconds[(#seconds + 1) // 2]
end

--- Is a row of this name asked for?
function bench.wanted(name)
    return not options.only or name:find(options.only, 1, true) ~= nil
end

--- Starts a table and returns the function that prints a row of it. The first column is text, 44
-- wide; numbers that are missing are left blank.
function bench.table(title, columns)
    local widths, rule = {}, {}
    for i, column in ipairs(columns) do
        widths[i] = i == 1 and 44 or math.max(8, #column)
        rule[i] = i == 1 and ("-"):rep(widths[i]) or ("-"):rep(widths[i] - 1) .. ":"
    end
    local function line(cells)
        local texts = {}
        for i, width in ipairs(widths) do
            texts[i] = (i == 1 and "%-" .. width .. "s" or "%" .. width .. "s"):format(cells[i]
                or "")
        end
        print("| " .. table.concat(texts, " | ") .. " |")
    end
    print("\n" .. title .. "\n")
    line(columns)
    line(rule)
    return function(...)
        line(table.pack(...))
    end
end

-- Bytes per second of a copy (read plus written) of an array well beyond the caches.
local bandwidth

--- Seconds that moving so many bytes (read plus written) takes at the least: at the rate of a copy.
function bench.floor(bytes)
    if not bandwidth then
        local elements = device.kind == "host" and 32 << 20 or 512 << 20
        local a <close> = mb.zeros({elements}, {device = device})
        local b <close> = mb.zeros({elements}, {device = device})
        bandwidth = 2 * a.bytes / bench.time(function() mb.convert(a, "f32", {out = b}) end)
    end
    return bytes / bandwidth
end

--- What peers take for the same work: a list of {name, seconds}, empty where there are none. `...`
-- go to the script.
function bench.peers(group, ...)
    if options.no_peers then
        return {}
    end
    local words = {options.python, FOLDER .. "peers.py", group, device.kind, ...}
    for i, word in ipairs(words) do
        words[i] = "'" .. tostring(word):gsub("'", "'\\''") .. "'"
    end
    local pipe = assert(io.popen(table.concat(words, " ")))
    local list = {}
    for name, seconds in pipe:read("a"):gmatch("([^\t\n]+)\t([^\n]+)") do
        list[#list + 1] = {name = name, seconds = tonumber(seconds)}
    end
    pipe:close()
    return list
end

print(("%s: %s, %s; Moonbeam %s; median of %d repeats"):format(device.id, device.name,
    os.date("%Y-%m-%d"), mb.version,
    options.repeats))
print(("copy of device memory: %.1f GB/s (bytes read plus written)"):format(1e-9 / bench.floor(1)))

for _, group in ipairs(options.group == "all" and GROUPS or {options.group}) do
    assert(loadfile(FOLDER .. group .. ".lua"))()(bench)
end
