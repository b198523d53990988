--- Frames that options leave out: flats and darks by their numbers in the dataset or the stack that
-- has them, projections by their numbers among the projections.

local fail = require "moonbeam.internal.fail"

local left_out = {}

-- Runs {first, last} as text: "1 to 4, 9".
local function listed(runs)
    local parts = {}
    for i, run in ipairs(runs) do
        parts[i] = run[1] == run[2] and tostring(run[1]) or ("%d to %d"):format(run[1], run[2])
    end
    return table.concat(parts, ", ")
end

-- {number = true} of frames, each of which must be in these runs.
local function numbered(numbers, runs, what)
    local set, option = {}, "bad_" .. what
    for _, number in ipairs(type(numbers) == "table" and numbers or {numbers}) do
        local known = false
        for _, run in ipairs(runs) do
            known = known or math.type(number) == "integer" and number >= run[1]
                and number <= run[2]
        end
        if not known then
            fail("argument", "scan.open", option, "%s names frame %s, which is none of the %s; "
                .. "these are the frames %s", option, tostring(number), what, listed(runs))
        end
        set[number] = true
    end
    return set
end

--- The runs {first, last} of flats, darks or projections (`what`) without frames of these numbers,
-- a list or one (nil: all stay). Raises where nothing is left.
function left_out.runs(runs, numbers, what)
    local set, kept = numbered(numbers or {}, runs, what), {}
    for _, run in ipairs(runs) do
        for number = run[1], run[2] do
            local last = kept[#kept]
            if not set[number] and last and last[2] == number - 1 then
                last[2] = number
            elseif not set[number] then
                kept[#kept + 1] = {number, number}
            end
        end
    end
    if #kept == 0 then
        fail("argument", "scan.open", "bad_" .. what, "bad_%s leaves no %s%s", what, what,
            what == "projections" and "" or ("; name others with the option %s"):format(what))
    end
    return kept
end

--- The positions of projections, which ascend, without those of these numbers, in the same way.
function left_out.positions(positions, numbers)
    if numbers == nil then
        return positions
    end
    local runs, kept = {}, {}
    for _, position in ipairs(positions) do
        local run = runs[#runs]
        if run and run[2] == position - 1 then
            run[2] = position
        else
            runs[#runs + 1] = {position, position}
        end
    end
    for _, run in ipairs(left_out.runs(runs, numbers, "projections")) do
        for position = run[1], run[2] do
            kept[#kept + 1] = position
        end
    end
    return kept
end

return left_out
