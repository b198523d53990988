--- The pool: what an allocation and its release cost from C and from Lua, whether that depends on
-- how much is live, how fast a dry run is, and how much larger than the live bytes a pool must be.

local mb = require "moonbeam"

local PAIRS = 200000

-- Blocks of 512 bytes to 8 KiB with holes among them, as in the C rows, until the returned value is
-- closed.
local function populate(count, device)
    local blocks = {}
    for i = 1, 2 * count do
        blocks[i] = mb.pool.alloc(((i - 1) * 7 % 16 + 1) * 512, device)
    end
    for i = 1, 2 * count, 2 do
        blocks[i]:release()
    end
    return setmetatable(blocks, {__close = function()
        for i = 2, 2 * count, 2 do
            blocks[i]:release()
        end
    end})
end

-- 300 operators on images: what a script of a beamline does to a stack, again and again.
local function script_of_300(device)
    local image <close> = mb.zeros({16, 64, 64}, {device = device})
    for _ = 1, 100 do
        local filtered <close> = mb.ramp_filter(image)
        local sum <close> = filtered + image;
        (sum * sum):release()
    end
end

-- Programs whose traces are replayed: called with a dry device and a seed.
local TRACES = {
    {"FBP in chunks, flat field to slices", 1, function(device)
        local theta = mb.tomo.angles(1500)
        local flats <close> = mb.zeros({10, 64, 2048}, {device = device, dtype = "u16"})
        for chunk = 1, 12 do
            local rows = chunk == 12 and 37 or 64 -- the last one is smaller
            local raw <close> = mb.zeros({1500, rows, 2048}, {device = device, dtype = "u16"})
            local flat <close> = flats:view(mb.all, {1, rows})
            local p <close> = mb.tomo.line_integrals(raw, {flats = flat, darks = flat})
            raw:release()
            local sinograms <close> = p:permute(2, 1, 3)
            local volume <close> = mb.tomo.fbp(sinograms, theta)
            volume[1]:copy():release()
        end
    end},
    {"Richardson-Lucy, tiles of several sizes", 1, function(device)
        local kernel <close> = mb.zeros({31, 31, 31}, {device = device})
        for tile = 1, 8 do
            local image <close> = mb.zeros({128 + tile % 3 * 32, 512, 640 - tile % 2 * 64},
                {device = device})
            mb.deconv.richardson_lucy(image, kernel, {iterations = 5}):release()
        end
    end},
    {"random sizes and lives, 40 seeds: worst", 40, function(device, seed)
        local state, live = seed * 7919, {}
        local function random(n)
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
            return (state >> 33) % n + 1
        end
        for _ = 1, 1000 do
            local i = random(30)
            if live[i] then
                live[i]:release()
                live[i] = nil
            else
                live[i] = mb.zeros({random(64), 1024, 1024}, {device = device})
                mb.reduce(live[i], "sum"):release() -- takes scratch
            end
        end
        for _, array in pairs(live) do
            array:release()
        end
    end},
}

return function(bench)
    local device = bench.device
    local row = bench.table("## Memory pool", {"work", "ns", "of 1,000 blocks"})
    for _, from in ipairs {"C", "Lua"} do
        local few
        for _, live in ipairs {1000, 100000} do
            local seconds
            if from == "C" then
                local list = {}
                for i = 1, bench.options.repeats + 1 do
                    list[i] = mb.debug.pair_seconds(live, PAIRS, device)
                end
                table.remove(list, 1) -- warm-up
                table.sort(list)
                seconds = list[(#list + 1) // 2]
            else
                local _ <close> = populate(live, device)
                collectgarbage() -- what comes then is the cost of this row's own garbage
                local alloc = mb.pool.alloc
                seconds = bench.time(function()
                    for _ = 1, PAIRS do
                        alloc(4096, device):release()
                    end
                end) / PAIRS
            end
            few = few or seconds
            row(("allocate + release from %s, %d live blocks"):format(from, live),
                ("%.0f"):format(seconds * 1e9),
                ("%.2f"):format(seconds / few))
        end
    end
    for _, peer in ipairs(bench.peers("pool", 1000, 20000, bench.options.repeats)) do
        row("peer: " .. peer.name, ("%.0f"):format(peer.seconds * 1e9))
    end

    row = bench.table("## Dry run", {"work", "ms"})
    row("dry run of a script of 300 operators", ("%.2f"):format(bench.time(function()
        mb.dry_run(script_of_300, device)
    end) * 1e3))

    row = bench.table("## Size of the pool over peak live bytes",
        {"trace", "blocks", "peak MiB", "memory, on demand", "one fixed range"})
    for _, trace in ipairs(TRACES) do
        local name, seeds, run = table.unpack(trace)
        local worst, worst_range, blocks, most = 0, 0, 0, 0
        for seed = 1, seeds do
            local dry <close> = device:dry_device("1T")
            run(dry, seed)
            local stats = mb.pool.stats(dry)
            assert(stats.events <= 16384, "the trace is longer than the ring")
            local peak, memory, range = mb.pool.smallest(dry)
            worst, worst_range = math.max(worst, memory / peak), math.max(worst_range, range / peak)
            blocks, most = math.max(blocks, stats.allocs), math.max(most, peak)
        end
        row(name, ("%d"):format(blocks), ("%.0f"):format(most / 2 ^ 20), ("%.3f"):format(worst),
            ("%.3f"):format(worst_range))
    end
end
