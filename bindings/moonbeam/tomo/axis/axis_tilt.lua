--- The tilt of the axis in the plane of the detector, from its columns at several heights.

local mb = require "moonbeam"
local scan_center = require "moonbeam.tomo.scan_center"

local axis_tilt = {}

local BANDS = 4 -- heights at which opposite projections are registered
local LEAST_BAND, MOST_BAND = 2, 256 -- rows of each
local AGREEMENT = 0.5 -- px: how far a column may be from the line through all
local SURE = 3 -- columns that are needed for a line to be confirmed

-- The bands {first, last} of rows, from top to bottom; nil where there are too few rows.
local function bands_of(rows)
    local height = math.min(MOST_BAND, rows // BANDS)
    if height < LEAST_BAND then
        return nil
    end
    local bands = {}
    for i = 1, BANDS do
        local first = 1 + (i - 1) * (rows - height) // (BANDS - 1)
        bands[i] = {first, first + height - 1}
    end
    return bands
end

-- The line through columns: slope, column at row 0, the largest distance from it.
local function line_of(centers)
    local n, row, column = #centers, 0, 0
    for _, center in ipairs(centers) do
        row, column = row + center.row / n, column + center.column / n
    end
    local spread, product = 0, 0
    for _, center in ipairs(centers) do
        spread = spread + (center.row - row) ^ 2
        product = product + (center.row - row) * (center.column - column)
    end
    local slope, furthest = product / spread, 0
    for _, center in ipairs(centers) do
        furthest = math.max(furthest, math.abs(column + slope * (center.row - row)
            - center.column))
    end
    return slope, furthest
end

local REMEDIES = {
    low = "the scan has too few rows to tell how the axis leans; give the angle",
    flat = "opposite projections do not tell the axis at two heights; give the angle",
    few = "opposite projections tell the axis at two heights only, so nothing confirms how it "
        .. "leans; compare slices at the top and at the bottom",
    differ = "the columns of the axis at several heights are not on a line; give the angle",
}

-- Public as mb.recon.find_tilt.
function axis_tilt.find(scan, options)
    local device, centers = mb.device(options.device or "host"), {}
    local bands = bands_of(scan.rows)
    for _, band in ipairs(bands or {}) do
        local _ <close>, found = scan_center.registered(scan, device, band, options)
        if found and found.verdict == "found" and found.residual < scan_center.WEAK then
            centers[#centers + 1] = {row = (band[1] + band[2]) / 2, column = found.column,
                residual = found.residual, uncertainty = found.uncertainty}
        end
    end
    local details = {centers = centers, verdict = "found"}
    local slope, furthest = 0, 0
    if #centers >= 2 then
        slope, furthest = line_of(centers)
    end
    details.apart = furthest
    if not bands then
        details.verdict = "low"
    elseif #centers < 2 then
        details.verdict = "flat"
    elseif furthest > AGREEMENT then
        details.verdict = "differ"
    elseif #centers < SURE then
        details.verdict = "few"
    end
    details.remedy = REMEDIES[details.verdict]
    return math.atan(slope), details
end

return axis_tilt
