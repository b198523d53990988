-- Frames that a scan says it has, and has not. An acquisition that was broken off leaves frames
-- that were never written, and HDF5 reads zeros for them; so it does where a virtual dataset
-- refers to files that are missing. Such frames are left out if the caller allows it. Otherwise
-- they are an error.

local fail = require "moonbeam.internal.fail"

local missing = {}

-- Each frame has an entry in lists of indices and angles.
local MOST_FRAMES = 1 << 20

--- Raises where `what`, a dataset or an image, has more frames than a scan can have.
function missing.check_count(what, frames)
    if frames > MOST_FRAMES then
        fail("shape", "scan.open", "data",
            "%s has %d frames, and at most %d can be read: the file is damaged", what, frames,
            MOST_FRAMES)
    end
end

-- What is left of 1 to count without the gaps.
local function rest_of(gaps, count)
    local runs, first = {}, 1
    for _, gap in ipairs(gaps) do
        if gap[1] > first then
            runs[#runs + 1] = { first, gap[1] - 1 }
        end
        first = gap[2] + 1
    end
    if first <= count then
        runs[#runs + 1] = { first, count }
    end
    return runs
end

--- Runs {first, last} of the frames of a dataset (frame, row, column) or (row, column) that are
-- there. Raises where some are missing, or, with `allow`, all; warns where some are left out.
function missing.present(s, dataset, file, allow)
    local gaps, why = dataset:missing()
    local count = #dataset.shape == 3 and dataset.shape[1] or 1
    if #gaps == 0 then
        return { { 1, count } }
    end
    local runs, lost = #dataset.shape == 3 and rest_of(gaps, count) or {}, count
    for _, run in ipairs(runs) do
        lost = lost - (run[2] - run[1] + 1)
    end
    if #runs == 0 then
        fail("io", "scan.open", nil, "'%s' in '%s' has no frames: %s", dataset.path,
            file.path, why)
    end
    local text = ("%d of the %d frames of '%s' in '%s' are missing; the first is %d: %s")
        :format(lost, count, dataset.path, file.path, gaps[1][1], why)
    if not allow then
        fail("io", "scan.open", "allow_missing",
            "%s; the option allow_missing leaves them out", text)
    end
    s:warn(text)
    return runs
end

--- The indices that lie in the runs, in their order, and their positions in the list.
function missing.keep(indices, runs)
    local kept, positions, at = {}, {}, 1
    for position, index in ipairs(indices) do
        while runs[at] and runs[at][2] < index do
            at = at + 1
        end
        if runs[at] and runs[at][1] <= index then
            kept[#kept + 1] = index
            positions[#positions + 1] = position
        end
    end
    return kept, positions
end

return missing
