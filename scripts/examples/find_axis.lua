-- Finds the rotation axis of a scan and says how sure it is.
-- usage: moonbeam scripts/examples/find_axis.lua SCAN
local mb = require "moonbeam"

local name = mb.usage()
local scan <close> = assert(mb.scan.open(name))
local row = (scan.rows + 1) // 2
local rows = {math.max(1, row - 2), math.min(scan.rows, row + 2)}
local raw <close> = scan:projections(rows)
local flats <close> = scan:flats(rows)
local darks <close> = scan:darks(rows)
local projections <close> = mb.tomo.line_integrals(raw, {flats = flats, darks = darks})
local center, details = mb.tomo.find_center(projections, scan.angles)
print(("axis at column %.2f of %d (0-based), %.2f px from the middle"):format(center, scan.cols,
    center - (scan.cols - 1) / 2))
print(("verdict: %s, uncertainty %.2f px"):format(details.verdict, details.uncertainty))
