--- Frames that options leave out, by their numbers in the dataset or the stack that has them.

local fail = require "moonbeam.internal.fail"

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

--- The runs {first, last} of flats or darks (`what`) without frames of these numbers, a list or one
-- (nil: all stay). Raises where nothing is left.
return function(runs, numbers, what)
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
        fail("argument", "scan.open", "bad_" .. what, "bad_%s leaves no %s; name others with the "
            .. "option %s", what, what, what)
    end
    return kept
end
