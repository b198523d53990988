-- Draws the memory of a reconstruction, step by step, without running it: a column for each step,
-- bright for what stays live, gray up to the peak of the step. Prints the ledger beside it.
-- usage: moonbeam scripts/examples/memory_timeline.lua PNG [ROWS ANGLES COLUMNS]
local mb = require "moonbeam"

local png, rows, count, columns = mb.usage(nil, 16, 300, 512)
local angles = mb.tomo.angles(count)

local function work()
    local raw = mb.zeros({count, rows, columns}, {dtype = "u16"})
    local flats <close> = mb.ones({10, rows, columns}, {dtype = "u16"})
    local darks <close> = mb.zeros({10, rows, columns}, {dtype = "u16"})
    local projections <close>, counts = mb.tomo.line_integrals(raw, {flats = flats, darks = darks,
        consume = true})
    counts:release()
    local sinograms <close> = projections:permute(2, 1, 3)
    mb.tomo.fbp(sinograms, angles):release()
end

local ledger = mb.dry_run(work)
ledger:print()

local width, height, gap = 20, 240, 4                   -- px: a column, the picture, between them
local steps = ledger:rows()
local picture <close> = mb.zeros {height, #steps * (width + gap) + gap}
local function bar(column, bytes, brightness)
    local top = height - math.floor(bytes / ledger.peak * (height - 1))
    local left = (column - 1) * (width + gap) + gap + 1
    local place <close> = picture:view({top, height}, {left, left + width - 1})
    place:fill(brightness)
end
for i, step in ipairs(steps) do
    bar(i, step.peak, 0.45)
    bar(i, step.live, 1)
end
mb.view.save(png, picture, {range = {0, 1}, overwrite = true})
