--- Ranges of the files of a series, or of the pages of a stack: "FOLDER:1:20,221:240" are the
-- files 1 to 20 and 221 to 240. Files count from 1 in the order of the series; ends are inclusive,
-- and one that is left out is the end of the series. No shell expands such a name.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local ranges = {}

--- The name of a series and the text of its ranges; nil for the latter where it has none.
function ranges.parts(name)
    local base, text = name:match "^(.-[^:]):([%d:,]*%d[%d:,]*)$"
    if not base or core.system.stat(name) then
        return name
    end
    return base, text
end

-- A range as {first, last}.
local function one(part, name, count)
    local first, last = part:match "^(%d*):(%d*)$"
    if not first then
        first = part:match "^%d+$"
        last = first
    end
    if not first then
        fail("argument", "scan.open", nil, "'%s': '%s' is not a range; give FIRST:LAST, such as "
            .. "1:20, or several, 1:20,41:60", name, part)
    end
    local low = first == "" and 1 or math.tointeger(tonumber(first))
    local high = last == "" and count or math.tointeger(tonumber(last))
    if not low or not high or low < 1 or high > count then
        fail("shape", "scan.open", "allow_missing", "'%s': the range %s does not lie within the %d "
            .. "frames", name, part, count)
    elseif low > high then
        fail("argument", "scan.open", nil, "'%s': the range %s ends before it begins", name, part)
    end
    return {low, high}
end

--- The indices that the ranges of a name mean, of so many frames.
function ranges.indices(name, text, count)
    local list = {}
    for part in (text .. ","):gmatch "([^,]*)," do
        local run = one(part, name, count)
        if #list > 0 and run[1] <= list[#list] then
            fail("argument", "scan.open", nil, "'%s': the range %s begins at %d, and the one "
                .. "before it ends at %d: give them in the order of the series", name, part,
                run[1], list[#list])
        end
        for i = run[1], run[2] do
            list[#list + 1] = i
        end
    end
    return list
end

return ranges
