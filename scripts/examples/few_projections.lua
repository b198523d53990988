-- Reconstructs a row of a scan from a part of its projections by fista, beside fbp of all of them.
-- usage: moonbeam scripts/examples/few_projections.lua SCAN [COUNT] [PNG] [LAMBDA]
local mb = require "moonbeam"

local name, count, png, lambda = mb.usage(nil, 40, "few.png", 0.1)
local scan <close> = assert(mb.scan.open(name))
local row, kept, left_out = (scan.rows + 1) // 2, {}, {}
for i = 0, count - 1 do
    kept[math.floor(i * scan.n_angles / count) + 1] = true
end
for frame = 1, scan.n_angles do
    left_out[#left_out + 1] = not kept[frame] and frame or nil
end

-- The slice that these steps make of the line integrals, and what was measured.
local function slice_of(...)
    local p = mb.pipeline(scan, {"flat_field", "minus_log", ...}, {rows = {row, row}, quiet = true})
    return p:slices {row, row}
end

local all <close>, report = slice_of("center", {"fbp", filter = "hann"})
local center = report.named.center
local few <close> = slice_of({"select", bad = left_out}, {"fbp", filter = "hann", center = center})
local tv <close> = slice_of({"select", bad = left_out}, {"fista", center = center,
    iterations = 60, tv_iterations = 20, lambda = lambda})

local n = all.shape[3] // 2                                  -- the middle half
local middle = {n // 2 + 1, n // 2 + n}
local sheet <close>, first = mb.zeros({n, 3 * n}), all:view(1, middle, middle)
local low, high = mb.view.window(all)
for place, slices in ipairs {all, few, tv} do
    local part <close> = sheet:view(mb.all, {(place - 1) * n + 1, place * n})
    local inside <close> = slices:view(1, middle, middle)
    mb.convert(inside, "f32", {out = part})
    print(("%s of %d projections: structural similarity to fbp of all %.3f"):format(
        place == 3 and "fista" or "fbp", place == 1 and scan.n_angles or count,
        mb.metrics.ssim(first, inside, {range = high - low})))
end
local small <close> = sheet:view({1, n, 2}, {1, 3 * n, 2})   -- every other pixel, for a small file
mb.view.save(png, small, {range = {low, high}, overwrite = true})
