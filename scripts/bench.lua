--- Times the operators of a reconstruction on a device: medians of repeats after warm-up, beside the floor that memory
-- bandwidth sets. GUPS = 1e9 pixel-angle updates per second, over the whole square.

local mb = require "moonbeam"
local cli = require "moonbeam.cli"

local options = cli.parse(arg, {
    usage = "bench.lua [options]",
    summary = "Times copy, ramp filter, back-projection (both accuracy modes), projection-to-slice FBP and the pool.",
    {"device", short = "d", value = "ID", default = "host", doc = "host, cuda:0, ..."},
    {"size", short = "n", value = "N", type = cli.count, default = 512, doc = "detector columns = slice side"},
    {"angles", short = "a", value = "N", type = cli.count, default = 400, doc = "projections"},
    {"slices", short = "s", value = "N", type = cli.count, default = 16, doc = "slices at a time"},
    {"volume", value = "Z,Y,X", default = "64,256,256", doc = "volume of the convolution rows"},
    {"repeats", value = "N", type = cli.count, default = 5, doc = "timed repeats (the median counts)"},
    {"only", value = "NAME", doc = "just the rows whose name contains this"},
})

local device = mb.device(options.device)
local n, angles, slices = options.size, options.angles, options.slices

-- Median seconds of fn, warm.
local function time(fn)
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

print(("%s: %s"):format(device.id, device.name))
print(("%d slices of %d x %d from %d angles, median of %d repeats"):format(slices, n, n, angles, options.repeats))
print()
print(("%-34s %12s %10s %12s %8s"):format("", "ms per slice", "GUPS", "GB/s moved", "of copy"))

-- Copy bandwidth, bytes read plus bytes written, on an array well beyond the caches.
local bandwidth
do
    local elements = device.kind == "host" and 32 << 20 or 512 << 20
    local a <close> = mb.zeros({elements}, {device = device})
    local b <close> = mb.zeros({elements}, {device = device})
    bandwidth = 2 * a.bytes / time(function() mb.convert(a, "f32", {out = b}) end)
    print(("%-34s %12s %10s %12.1f %8s"):format("copy (device memory)", "", "", bandwidth / 1e9, "1.00"))
end

local function report(name, seconds, updates, bytes)
    print(("%-34s %12.4f %10s %12.1f %8.2f"):format(name, seconds * 1e3 / slices,
        updates and ("%.2f"):format(updates / seconds / 1e9) or "", bytes / seconds / 1e9, bytes / seconds / bandwidth))
end

local function wanted(name)
    return not options.only or name:find(options.only, 1, true)
end

local theta = mb.tomo.angles(angles)
local sino <close> = mb.random({slices, angles, n}, {seed = 1, low = -1, high = 1, device = device})
local volume <close> = mb.empty({slices, n, n}, {device = device})
local updates = slices * angles * n * n
local sino_bytes, volume_bytes = sino.bytes, volume.bytes

if wanted("ramp_filter") then
    local filtered <close> = mb.empty({slices, angles, n}, {device = device})
    report("ramp_filter", time(function() mb.ramp_filter(sino, {out = filtered}) end), nil, 2 * sino_bytes)
end
for _, accuracy in ipairs {"fast", "exact"} do
    local name = "backproject, " .. accuracy
    if wanted(name) then
        report(name, time(function() mb.backproject(sino, theta, {accuracy = accuracy, out = volume}) end), updates,
            sino_bytes + volume_bytes)
    end
end
if wanted("project") then
    local back <close> = mb.empty({slices, angles, n}, {device = device})
    report("project", time(function() mb.project(volume, theta, {cols = n, out = back}) end), updates,
        sino_bytes + volume_bytes)
end
if wanted("flat_field") then
    local raw <close> = mb.random({angles, slices, n}, {seed = 2, low = 100, high = 20000, dtype = "u16", device = device})
    local flats <close> = mb.random({4, slices, n}, {seed = 3, low = 19000, high = 20000, dtype = "u16", device = device})
    local darks <close> = mb.random({4, slices, n}, {seed = 4, low = 90, high = 110, dtype = "u16", device = device})
    local out <close> = mb.empty({angles, slices, n}, {device = device})
    report("flat_field + minus_log", time(function()
        local _, counts = mb.flat_field(raw, {darks = darks, flats = flats, out = out})
        counts:release()
        mb.minus_log(out, {out = out})
    end), nil, raw.bytes + 3 * sino_bytes)
end
if wanted("fbp") then
    report("fbp (filter + back-projection)", time(function()
        local result <close> = mb.tomo.fbp(sino, theta)
        return result.rank
    end), updates, sino_bytes + volume_bytes)
end
-- FFT convolution in place with a cached transfer function, and a Richardson-Lucy iteration (circular).
local z, y, x = options.volume:match("^(%d+),(%d+),(%d+)$")
if not z then
    mb.raise("argument", ("--volume is \"%s\"; give Z,Y,X"):format(options.volume))
end
z, y, x = math.tointeger(z), math.tointeger(y), math.tointeger(x)
local function report_volume(name, seconds)
    print(("%-34s %12.3f ms, %.3f ns per voxel"):format(name, seconds * 1e3, seconds / (z * y * x) * 1e9))
end
if wanted("convolve") or wanted("richardson_lucy") then
    print()
    print(("%d x %d x %d float32:"):format(z, y, x))
    local kernel <close> = mb.psf_gaussian({9, 9, 9}, {1.5, 1.5, 1.5}, {device = device})
    if wanted("convolve") then
        local otf <close> = mb.convolution.transfer(kernel, {z, y, x})
        local grid <close> = mb.zeros({z, y, 2 * (x // 2 + 1)}, {device = device})
        report_volume("convolve, transfer function cached", time(function() mb.convolution.apply(grid, otf, x) end))
    end
    if wanted("richardson_lucy") then
        local image <close> = mb.random({z, y, x}, {seed = 1, low = 1, high = 2, device = device})
        local otf <close> = mb.deconv.transfer(kernel, {z, y, x}, {boundary = "circular"})
        local function run(iterations)
            return time(function()
                mb.deconv.richardson_lucy(image, kernel, {iterations = iterations, boundary = "circular", otf = otf}):release()
            end)
        end
        report_volume("richardson_lucy, one iteration", (run(6) - run(1)) / 5)
    end
end
if wanted("pool") then
    local count = 200000
    local start = mb.system.clock()
    for _ = 1, count do
        mb.empty({1024}, {device = device}):release()
    end
    print()
    print(("%-34s %12.1f ns per pair"):format("pool: allocate + release from Lua", (mb.system.clock() - start) / count * 1e9))
end
