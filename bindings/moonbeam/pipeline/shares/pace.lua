--- About how long a plan takes on GPUs, from rates that were measured on NVIDIA H200
-- (scripts/bench.md): good enough to ask a batch system for, not to promise.

local pace = {}

-- Bytes per second: of a node's disk, of one file that is written, of several files (per node), of
-- a link in both directions at once (one GPU of a host, each of several), and of a GPU's memory.
pace.DISK, pace.ONE_FILE, pace.FILES = 3.0e9, 4e9, 31e9
local LINK <const>, SHARED_LINK <const>, MEMORY <const> = 50.8e9, 38e9, 4.2e12

-- Pixel updates per second of back-projection, by mode, and the direct Fourier method's seconds for
-- a slice of 2048^2 from 1500 angles.
local UPDATES <const> = {fast = 19e12, exact = 7e12}
local FOURIER <const>, SIDE <const>, ANGLES <const> = 0.119e-3, 2048, 1500

-- Seconds of an iteration for a slice of that size: of conjugate gradients and of gradient descent
-- by the normal operator, and by both operators; and of an iteration of total variation, by its
-- dimensions.
local CONJUGATE <const>, DESCENT <const>, BOTH <const> = 0.110e-3, 0.096e-3, 0.293e-3
local VARIATION <const> = {nil, 0.0115e-3, 0.0152e-3}
local ITERATIVE <const> = {cgls = CONJUGATE, admm_tv = CONJUGATE, landweber = DESCENT,
    fista = DESCENT, sirt = BOTH, sart = BOTH, osem = BOTH, mlem = BOTH}

-- How often other steps go through their data: read, two passes of scratch, written.
local PASSES <const> = 4

-- The seconds that a step takes for one row of a section.
local function step_seconds(section, step)
    local shape, options = step.shape, section.options[step.label] or step.options
    local side = shape[3]
    local size = (side / SIDE) ^ 2
    if ITERATIVE[step.name] then
        local seconds = ITERATIVE[step.name] * (options.inner or 1)
        if options.tv_iterations and options.lambda > 0 then
            seconds = seconds + options.tv_iterations * VARIATION[options.dimensions]
        end
        return seconds * size * options.iterations
    elseif step.name == "fourier" then
        return FOURIER * size * (0.85 + 0.15 * #step.geometry_before.angles / ANGLES)
    elseif step.name == "fbp" then
        return side * side * #step.geometry_before.angles
            / (UPDATES[options.mode] or UPDATES.fast)
    end
    local values = shape[1] * shape[2] * shape[3] / shape[section.axis]
    return PASSES * 4 * values / MEMORY
end

--- The seconds of a plan on GPUs: {read, links, compute, write (if all are of one rank), total}, a
-- table by name; nil where a device is no GPU. `ranks`: how many ranks share the work, on so many
-- `nodes`; `files`: does each rank write several files?
function pace.of(made, ranks, nodes, files)
    local devices, seconds = made.job.devices, {read = 0, links = 0, compute = 0, write = 0}
    for _, device in ipairs(devices) do
        if device.kind == "host" then
            return nil
        end
    end
    local gpus = ranks * #devices
    local link = gpus > nodes and SHARED_LINK or LINK
    for _, section in ipairs(made.sections) do
        local rows, all = section.last - section.first + 1, 0
        for _, step in ipairs(section.steps) do
            all = all + step_seconds(section, step) * rows
        end
        seconds.compute = seconds.compute + all / gpus
        seconds.links = seconds.links + math.max(section.read_bytes, section.write_bytes)
            / (gpus * link)
        if section.source.scan then
            seconds.read = seconds.read + section.read_bytes / (nodes * pace.DISK)
        end
        if not section.stored then
            seconds.write = section.write_bytes / math.min(nodes * pace.DISK,
                ranks * (files and pace.FILES or pace.ONE_FILE))
        end
    end
    seconds.total, seconds.binds = 0, "read"
    for _, name in ipairs {"read", "links", "compute", "write"} do
        if seconds[name] > seconds.total then
            seconds.total, seconds.binds = seconds[name], name
        end
    end
    return seconds
end

local WORDS <const> = {read = "reading", links = "the links to the GPUs", compute = "computing",
    write = "writing"}

--- The seconds as text.
function pace.text(seconds)
    return ("about %.3g: reading %.3g, links %.3g, computing %.3g, writing %.3g, all at once; %s "
        .. "binds (rates of an H200, a disk of %.1f GB/s for each node)"):format(seconds.total,
        seconds.read, seconds.links, seconds.compute, seconds.write, WORDS[seconds.binds],
        pace.DISK / 1e9)
end

--- The time to ask a batch system for, in minutes: three times as long, and ten minutes.
function pace.minutes(seconds)
    return math.ceil(3 * seconds.total / 60) + 10
end

return pace
