--- The rotation axis of a scan, from as few frames and rows as tell it. `mb.recon.find_center` and `center_bounds` are these.

local mb = require "moonbeam"
local lean = require "moonbeam.lean"
local scan_frames = require "moonbeam.scan_frames"

local scan_center = {}

--- Half acquisition: the least part of the detector that must be seen twice for the axis to be found.
scan_center.HALF_OVERLAP = 0.05

-- The row nearest to `middle` that tells where the axis is: where a pair of opposite projections match half as well as in the
-- best row at least, and have in common what is not next to nothing. In a row of air trial slices would find anything.
local function telling_row(match, common, middle)
    local best, most = 0, 0
    for i, value in ipairs(match) do
        best, most = math.max(best, value), math.max(most, common[i])
    end
    for distance = 0, #match do
        for _, row in ipairs {middle - distance, middle + distance} do
            if match[row] and match[row] >= best / 2 and common[row] >= most / 1000 then
                return row
            end
        end
    end
    return middle
end

-- The least part of the detector that both frames of a pair must see.
local function min_overlap(options)
    return options.half_acquisition and scan_center.HALF_OVERLAP or mb.tomo.MIN_OVERLAP
end

function scan_center.bounds(scan, options)
    local reach = (scan.cols - math.max(2, math.floor(min_overlap(options) * scan.cols))) / 2
    local middle = (scan.cols - 1) / 2
    return {math.max(0, middle - reach), math.min(scan.cols - 1, middle + reach)}
end

-- A column brought between the bounds.
local function bounded(column, scan, options)
    local bounds = scan_center.bounds(scan, options)
    return math.max(bounds[1], math.min(bounds[2], column))
end

function scan_center.find(scan, options)
    if mb.device.dry() and options.half_acquisition then
        mb.raise("dry_run", "the centre of a half acquisition makes the size of the volume, and is found in the data, which a "
            .. "dry run does not have; give it (center =, --center)", {op = "recon.find_center"})
    end
    local device = mb.device(options.device or "host")
    local low, high = options.rows and options.rows[1] or 1, options.rows and options.rows[2] or scan.rows
    local middle = (low + high) // 2
    local rows = {math.max(low, middle - 127), math.min(high, middle + 128)}
    local first, other, miss = mb.tomo.opposite_pair(scan.angles)
    local pair, residual, match, common
    if miss < math.rad(5) then
        local a <close> = scan_frames.integrals_only(scan, device, rows, {first, first}, options)
        local b <close> = scan_frames.integrals_only(scan, device, rows, {other, other}, options)
        local a_frame <close> = a:view(1, mb.all, mb.all)
        local b_frame <close> = b:view(1, mb.all, mb.all)
        pair, residual, match, common = mb.tomo.find_center_pair(a_frame, b_frame,
            {min_overlap = min_overlap(options)})
    end
    if options.half_acquisition then
        if not pair then
            mb.raise("argument", "no two projections are half a turn apart; give the centre", {op = "recon.find_center",
                arg = "center"})
        end
        return bounded(pair, scan, options), ("projections %d and %d, residual %.2g"):format(first, other, residual), residual
    end
    middle = match and telling_row(match, common, middle - rows[1] + 1) + rows[1] - 1 or middle
    local line <close> = scan_frames.integrals_only(scan, device, {middle, middle}, nil, options)
    local sinogram <close> = line:view(mb.all, 1, mb.all)
    local leaning = lean.at(scan, middle, options)
    local guess = pair and pair + leaning - lean.at(scan, (rows[1] + rows[2]) / 2, options)
    local center = mb.tomo.find_center_metric(sinogram, scan.angles, {guess = guess, range = pair and mb.tomo.PAIR_RANGE or nil,
        filter = options.filter, accuracy = options.accuracy})
    local how = pair and ("projections %d and %d give %.2f (residual %.2g), trial slices of row %d give %.2f"):format(first, other,
        pair, residual, middle, center) or ("no opposite projections; trial slices of row %d give %.2f"):format(middle, center)
    return bounded(center - leaning, scan, options), how, residual
end

return scan_center
