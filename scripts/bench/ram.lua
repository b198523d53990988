--- From host memory to host memory: raw projections (uint16) in pinned memory to a volume (float32)
-- in pinned memory, moved in chunks while the device computes. The floor is the longest of upload,
-- download and computing, the links at the rates measured here with both directions busy.

local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local FLATS, DARKS = 8, 8
local BEAM, DARK = 40000, 100
local ROWS = 32 -- simulated at a time
local LINK_BYTES = 4 << 30 -- moved each way to measure the links

-- Projections of the phantom as a detector counts them, made on the device and carried into host
-- memory.
local function fill(raw, theta, device)
    local _, rows, cols = table.unpack(raw.shape)
    local carrier <close> = mb.stream.carrier {device = device, writing = true, threads = 2,
        pinned = 0}
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, cols / 2, math.max(rows / 2, 1))
    local all = mb.phantom.heights(rows)
    for first = 1, rows, ROWS do
        local last = math.min(first + ROWS - 1, rows)
        local heights = table.move(all, first, last, 1, {})
        local counts <close> = mb.ellipsoid_projections(ellipsoids, theta, heights, cols,
            {device = device})
        mb.binary(counts, "mul", {scalar = -4 / cols, out = counts})
        mb.unary(counts, "exp", {out = counts})
        local stored <close> = mb.convert(counts, "u16", {scale = BEAM - DARK, offset = DARK})
        local part <close> = raw:view(mb.all, {first, last}, mb.all)
        carrier:carry(part, stored)
        carrier:wait()
    end
    carrier:finish()
end

-- GB/s of each link: up alone, down alone, and up and down with both busy.
local function link_rates(raw, volume, device)
    local bytes = math.min(LINK_BYTES, raw.bytes, volume.bytes)
    local function flat(array)
        local whole <close> = array:reshape(array.elements)
        return whole:view({1, bytes // (array.bytes // array.elements)})
    end
    local up_host <close> = flat(raw)
    local down_host <close> = flat(volume)
    local up_device <close> = mb.empty(up_host.shape, {dtype = "u16", device = device})
    local down_device <close> = mb.empty(down_host.shape, {device = device})
    local function rates(up, down)
        local reader <close> = mb.stream.carrier {device = device, threads = 2, pinned = 0}
        local writer <close> = mb.stream.carrier {device = device, threads = 2, pinned = 0,
            writing = true}
        if up then
            reader:carry(up_host, up_device)
        end
        if down then
            writer:carry(down_host, down_device)
        end
        reader:finish()
        writer:finish()
        local read, written = reader:stats(), writer:stats()
        return up and 1e-9 * read.bytes / read.lane_seconds, down
            and 1e-9 * written.bytes / written.lane_seconds
    end
    rates(true, true)
    local up = rates(true, false)
    local _, down = rates(false, true)
    return up, down, rates(true, true)
end

-- The device alone and, if there are others, all together.
local function teams(bench)
    local list = {{bench.device}}
    if bench.options.devices then
        list[2] = mb.device.several(bench.options.devices)
    end
    return list
end

local function names(team)
    return table.concat(tables.mapped(team, "id"), ",")
end

-- The median of the repeats, each of which takes what its plan says on every device.
local function median(bench, team, raw, theta, settings)
    local reports = {}
    for i = 0, bench.options.repeats do -- the first one warms up
        settings.devices = team
        local _, report = mb.recon.reconstruct(raw, theta, settings)
        assert(report.peak == report.plan.peak and report.pinned == report.plan.pinned)
        reports[i] = report
    end
    table.sort(reports, function(a, b) return a.times.wall < b.times.wall end)
    return reports[(#reports + 1) // 2]
end

return function(bench)
    local options, device = bench.options, bench.device
    local n, angles, slices = options.size, options.angles, options.slices
    local theta = mb.tomo.angles(angles)
    local _, _, limit = device:pinned()
    -- and the tallies of blocks, which are a few bytes
    device:pinned((2 * (angles + FLATS + DARKS) + 4 * n) * slices * n + 4096)
    local started = mb.system.clock()
    local raw <close> = mb.empty({angles, slices, n}, {dtype = "u16", pinned = device})
    local volume <close> = mb.empty({slices, n, n}, {pinned = device})
    local pinning = mb.system.clock() - started
    local flats <close> = mb.full({FLATS, slices, n}, BEAM, {dtype = "u16", pinned = device})
    local darks <close> = mb.full({DARKS, slices, n}, DARK, {dtype = "u16", pinned = device})
    fill(raw, theta, device)
    local up, down, up_both, down_both = link_rates(raw, volume, device)
    local form = "\n%.1f GB of host memory pinned in %.2f s; "
        .. "links: %.1f GB/s up, %.1f down, %.1f and %.1f with both busy"
    print(form:format(
        1e-9 * (raw.bytes + volume.bytes), pinning, up, down, up_both, down_both))
    local row = bench.table(
        ("### RAM to RAM: %d slices of %d x %d from %d angles, uint16 in, float32 out"):format(
        slices, n, n, angles),
        {"work", "ms per slice", "floor ms", "x floor", "GPU idle", "up GB/s", "down GB/s",
            "compute ms", "bound by", "peak MiB"})
    for _, method in ipairs {"fourier", "fbp"} do
        local name = "RAM to RAM, " .. method
        for _, team in ipairs(bench.wanted(name) and teams(bench) or {}) do
            local report = median(bench, team, raw, theta, {flats = flats, darks = darks,
                out = volume, method = method, center = (n - 1) / 2, quiet = true,
                chunk = options.chunk})
            local t = mb.stream.summary(report.times)
            -- each device has a share of the work and a link of its own
            local floors = {{1e-9 * raw.bytes / up_both / #team, "upload"},
                {1e-9 * volume.bytes / down_both / #team, "download"},
                {t.compute_seconds / #team, "computing"}}
            table.sort(floors, function(a, b) return a[1] > b[1] end)
            row(("%s%s (%d chunks of %d)"):format(name, #team > 1 and " on " .. names(team) or "",
                report.plan.chunks, report.plan.chunk),
                ("%.4f"):format(t.wall_seconds * 1e3 / slices),
                    ("%.4f"):format(floors[1][1] * 1e3 / slices),
                ("%.3f"):format(t.wall_seconds / floors[1][1]),
                    ("%.0f %%"):format(100 * t.idle_part),
                ("%.1f"):format(t.upload_gb_per_s), ("%.1f"):format(t.download_gb_per_s),
                ("%.4f"):format(t.compute_seconds * 1e3 / slices), floors[1][2],
                    ("%.0f"):format(report.peak / (1 << 20)))
        end
    end
    device:pinned(limit)
end
