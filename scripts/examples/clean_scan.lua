-- Shows the middle of a slice with and without zingers and stripes, and finds the axis in each way.
-- usage: moonbeam scripts/examples/clean_scan.lua SCAN [ROW BEFORE AFTER]
local mb = require "moonbeam"

local name, row, before, after = mb.usage()
local scan <close> = assert(mb.scan.open(name))
row = math.tointeger(tonumber(row)) or (scan.rows + 1) // 2

-- Runs a recipe for the row; returns the slice, which the caller closes, and what was measured.
local function slice_of(recipe)
    local p = mb.pipeline(scan, recipe, {rows = {row, row}, quiet = true})
    local slice, report = p:slices {row, row}
    return slice, report
end

local CLEAN <const> = {{"dezinger", threshold = 0.2, relative = true}, "flat_field",
    {"stripes_sorting", size = 11}, "minus_log"}

local function cleaned(center)
    local recipe = {table.unpack(CLEAN)}
    recipe[#recipe + 1] = center
    recipe[#recipe + 1] = "fbp"
    return slice_of(recipe)
end

for _, method in ipairs {"registration", "vo", "phase_correlation", "sharpness", "entropy"} do
    local slice <close>, report = cleaned {"center", method = method}
    print(("%-18s axis at column %.2f (%s), mean %.4g"):format(method, report.named.center,
        report.verdicts.center.verdict, slice:mean()))
end
local dirty <close>, report = slice_of {"flat_field", "minus_log", "center", "fbp"}
local clean <close> = cleaned {"center", column = report.named.center}
local n = clean.shape[3]
local middle = {n // 4 + 1, n - n // 4}
local from <close> = dirty:view(1, middle, middle)
local to <close> = clean:view(1, middle, middle)
local low, high = mb.view.window(to)
mb.view.save(before or "before.png", from, {range = {low, high}, overwrite = true})
mb.view.save(after or "after.png", to, {range = {low, high}, overwrite = true})
