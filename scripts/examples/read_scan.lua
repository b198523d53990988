-- Reads a scan, reconstructs the middle slice and saves it as a picture.
-- usage: moonbeam scripts/examples/read_scan.lua SCAN PNG
local mb = require "moonbeam"

local name, png = mb.usage()
local scan <close> = assert(mb.scan.open(name))
local row = (scan.rows + 1) // 2
local raw <close> = scan:projections {row, row}                 -- (angle, row, column)
local flats <close> = scan:flats {row, row}
local darks <close> = scan:darks {row, row}
local projections <close> = mb.tomo.line_integrals(raw, {flats = flats, darks = darks})
local center, details = mb.tomo.find_center(projections, scan.angles)
print(("axis at column %.2f (%s)"):format(center, details.verdict))

local sinogram <close> = projections:permute(2, 1, 3)           -- (row, angle, column), a view
local volume <close> = mb.tomo.fbp(sinogram, scan.angles, {center = center, filter = "hann"})
print(volume, volume:min(), volume:max())
mb.view.save(png, volume[1], {overwrite = true})
