--- Decodes compressed frames once. If a scan stores whole compressed frames and is read in blocks
-- of rows, every block would decode all frames again. So the frames are decoded first, by as many
-- threads as there are processors, into an uncompressed temporary file, from which rows are read.
-- The file is in the folder that TMPDIR names (default /tmp) and has no name. It is therefore
-- deleted when the unpacked scan is closed, or when the process ends for any reason.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local references = require "moonbeam.scan.references"
local stream = require "moonbeam.stream"

local unpack = {}

local BLOCK_BYTES = 64 << 20
local PINNED = 512 << 20 -- for both rings, at most

--- Whether reading these ranges of rows ({{first, last}, ...} in order) would decode a stored chunk
-- more than once.
function unpack.needed(scan, ranges)
    local rows = scan.chunk_rows
    for i = 2, rows and #ranges or 0 do
        if (ranges[i - 1][2] - 1) // rows >= (ranges[i][1] - 1) // rows then
            return true
        end
    end
    return false
end

-- Bytes of a whole frame in an array.
local function frame_bytes(scan)
    return scan.rows * scan.cols * core.op.estimate("convert", {{scan.dtype, 1}},
        {dtype = scan.dtype}).results[1].bytes
end

-- A copy of the scan with its frames in another dataset, which took `seconds` to make.
local function with_data(scan, dataset, file, seconds)
    return setmetatable({data = dataset, chunk_rows = false, unpack_seconds = seconds,
        flat_source = references.moved(scan.flat_source, scan.data, dataset),
        dark_source = references.moved(scan.dark_source, scan.data, dataset)},
        {__index = scan, __close = function()
            if file then
                file:close()
            end
        end})
end

-- Blocks of whole stored chunks: frames {first, last}.
local function blocks_of(scan, bytes, available)
    local depth = scan.data.chunks[1]
    local most = math.min(BLOCK_BYTES, available // 8) // bytes // depth * depth
    local list = {}
    for first = 1, scan.n_frames, math.max(depth, most) do
        list[#list + 1] = {first, math.min(first + math.max(depth, most) - 1, scan.n_frames)}
    end
    return list
end

--- Returns the scan with rows `first` to `last` of its frames decoded; its field `unpack_seconds`
-- is the time that took. The caller closes it (<close>). Frames pass through blocks of host memory.
function unpack.scan(scan, first, last)
    local host = core.device.open("host")
    local stats = core.pool.stats(host)
    local bytes = frame_bytes(scan)
    -- holds a frame, so that each is decoded by one thread
    local slot = math.max(65536, (bytes + 4095) // 4096 * 4096)
    local threads = math.max(1, math.min(16, core.system.processors(), PINNED // (4 * slot)))
    local dry = core.dry.on()
    local file = not dry and core.h5.scratch(os.getenv("TMPDIR") or "/tmp") or nil
    local ok, result = pcall(function()
        local dataset = not dry and file:create_dataset("/data",
            {shape = scan.data.shape, dtype = scan.dtype, sparse = true, early = true})
        local times = stream.run(host, blocks_of(scan, bytes, stats.budget - stats.live), {
            read = function(frames, carrier)
                local array = core.array.empty({frames[2] - frames[1] + 1, last - first + 1,
                    scan.cols},
                    {dtype = scan.dtype, device = host})
                carrier:carry(scan.data, array, frames, {first, last})
                return array
            end,
            compute = function(array)
                return array
            end,
            write = function(array, frames, carrier)
                if dataset then
                    carrier:carry(dataset, array, frames, {first, last})
                end
            end,
        }, {threads = threads, pinned = 4 * threads * slot, slot = slot})
        if file then
            file:rest() -- frames are read at their places, without libhdf5
        end
        return with_data(scan, dataset or scan.data, file, times.wall)
    end)
    if not ok then
        if file then
            file:close()
        end
        if type(result) == "table" and result.code == "io"
            and result.message:find("no room", 1, true) then
            fail("io", "unpack.scan", nil, "%s (decoded frames go to the folder that TMPDIR names)",
                result.message)
        end
        error(result, 0)
    end
    return result
end

--- The result of unpack.scan if reading these ranges of rows needs it, otherwise nil.
function unpack.if_needed(scan, ranges)
    if unpack.needed(scan, ranges) then
        return unpack.scan(scan, ranges[1][1], ranges[#ranges][2])
    end
    return nil
end

return unpack
