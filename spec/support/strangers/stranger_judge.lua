-- Runs `reconstruct` on a scan as a user does, and judges its slices by the exact ones.

local files = require "spec.support.files"
local mb = require "moonbeam"
local stranger_scans = require "spec.support.strangers.stranger_scans"

local stranger_judge = {}

local runs = {}
runs.__index = runs

local function program()
    return os.getenv "MOONBEAM_BIN" or mb.system.program()
end

--- Runs a command of the program in a folder: {status, out, err}. One thread reads, for the scans
-- are small.
function stranger_judge.command(folder, words)
    local said = folder .. "/said"
    local out, _, status = files.run(("(cd '%s' && OMP_WAIT_POLICY=passive MOONBEAM_STRICT=1 "
        .. "'%s' %s 2>'%s')"):format(folder, program(), words, said))
    return {status = status, out = out, err = files.read(said)}
end

--- Runs `reconstruct SCAN WORDS` in a folder; the volume is o.h5 there. `words` is a string.
function stranger_judge.reconstruct(folder, scan, words)
    local run = stranger_judge.command(folder, ("reconstruct %s -o o.h5 --overwrite --threads 1 "
        .. "--pinned 8M -d host %s"):format(scan, words or ""))
    run.volume = folder .. "/o.h5"
    return setmetatable(run, runs)
end

--- What a run has said, on both streams.
function runs:said()
    return self.out .. self.err
end

--- The lines of the error stream but the progress.
function runs:lines()
    local lines = {}
    for line in self.err:gmatch "[^\n]+" do
        if not line:find "^reconstructing: %d" and not line:find "^running: %d" then
            lines[#lines + 1] = line
        end
    end
    return lines
end

--- The column of the axis that the run has taken, or nil.
function runs:axis()
    return tonumber(self.out:match "\naxis +column ([%d.-]+)"
        or self.out:match "\ncenter +([%d.-]+)")
end

--- The relative error of the slice of row `row` (from 0) by a scan of stranger_scans; `options`:
-- scale (m per pixel where values are per meter), slice (its place from 0, if another), size
-- (pixels of a side of the truth, if others), radius (px, where rays of all angles are seen).
function runs:error_of(scan, row, options)
    options = options or {}
    if self.status ~= 0 then
        return math.huge
    end
    local file <close> = assert(mb.h5.open(self.volume))
    local stored <close> = file:read("/entry/data/data", (options.slice or row) + 1,
        {device = "host"})
    local slice <close> = stored:reshape(stored.shape[#stored.shape - 1],
        stored.shape[#stored.shape])
    local truth <close> = stranger_scans.truth(scan, row, options.size)
    return stranger_scans.error_of(slice, truth, options.scale, options.radius)
end

--- Meters of a pixel where the values are per meter, or nil.
function runs:scale()
    local file <close> = assert(mb.h5.open(self.volume))
    local path = "/entry/data/data"
    return file:attribute(path, "units") == "1/m" and file:attribute(path, "pixel_size") or nil
end

--- The extents of the volume.
function runs:shape()
    local file <close> = assert(mb.h5.open(self.volume))
    local data <close> = file:dataset "/entry/data/data"
    return data.shape
end

return stranger_judge
