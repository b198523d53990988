-- Reconstructs a scan in chunks of rows that fit a budget, and writes the volume slice by slice.
-- usage: moonbeam scripts/examples/reconstruct_in_chunks.lua SCAN RESULT CENTER [BUDGET]
local mb = require "moonbeam"

local name, output, center, budget = mb.usage(nil, nil, 0.0, "8M")
local scan <close> = assert(mb.scan.open(name))

-- All steps of the rows first to last. Returns the slices.
local function chunk(first, last)
    local rows = {first, last}
    local raw = scan:projections(rows)
    local flats <close> = scan:flats(rows)
    local darks <close> = scan:darks(rows)
    local projections <close>, counts = mb.tomo.line_integrals(raw, {flats = flats, darks = darks,
        consume = true})
    counts:release()
    local sinograms <close> = projections:permute(2, 1, 3)
    return mb.tomo.fbp(sinograms, scan.angles, {center = center})
end

local rows, predicted = mb.plan.max_count(function(_, n)
    chunk(1, n):release()
end, {available = budget, limit = scan.rows})
assert(rows > 0, "not even one row fits the budget")

local result <close> = mb.result.create(output, {shape = {scan.rows, scan.cols, scan.cols},
    pixel_size = scan.pixel_size, input = name, overwrite = true})
local measured = mb.pool.peak(function()
    for first = 1, scan.rows, rows do
        local slices <close> = chunk(first, math.min(scan.rows, first + rows - 1))
        result:write(slices, first)
    end
end, mb.default_device())
result:provenance {rows_per_chunk = rows, predicted = predicted, measured = measured}
print(("%s: chunks of %d rows, predicted %d bytes, measured %d"):format(result:finish(), rows,
    predicted, measured))
