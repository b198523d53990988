--- Statistics of lists of numbers that a few odd ones do not change. What is not finite is left
-- out.

local robust = {}

local TRIMMED = 0.1 -- part of the values at both ends that a trimmed mean leaves out

--- Is this a number that can be computed with?
function robust.finite(value)
    return value == value and math.abs(value) < math.huge
end

--- The finite values of a list, sorted.
function robust.sorted(list)
    local sorted = {}
    for _, value in ipairs(list) do
        if robust.finite(value) then
            sorted[#sorted + 1] = value
        end
    end
    table.sort(sorted)
    return sorted
end

--- The value below which this part of sorted values lies, or nil if there are none.
function robust.quantile(sorted, part)
    return sorted[math.max(1, math.ceil(part * #sorted))]
end

-- The middle of sorted values.
local function middle(sorted)
    local n = #sorted
    return n > 0 and (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2 or nil
end

--- The median, or nil if there is no finite value.
function robust.median(list)
    return middle(robust.sorted(list))
end

--- The mean without the least and the largest tenth, or nil if there is no finite value.
function robust.mean(list)
    local sorted = robust.sorted(list)
    local skipped, sum = math.floor(TRIMMED * #sorted), 0
    for i = skipped + 1, #sorted - skipped do
        sum = sum + sorted[i]
    end
    return #sorted > 0 and sum / (#sorted - 2 * skipped) or nil
end

--- The standard deviation without the farthest fiftieth; of values that are mostly equal, as of
-- counts with few levels, it is not 0.
function robust.deviation(list)
    local center, far, sum = robust.mean(list), {}, 0
    for _, value in ipairs(center and list or {}) do
        far[#far + 1] = robust.finite(value) and (value - center) ^ 2 or nil
    end
    table.sort(far)
    local kept = math.ceil(0.98 * #far)
    for i = 1, kept do
        sum = sum + far[i]
    end
    return math.sqrt(sum / math.max(1, kept))
end

--- The median, and the standard deviation without the farthest tenth, as if these were normal
-- values; of counts with few levels it is not 0, unlike the median of the distances.
function robust.spread(list)
    local center, far, sum = robust.median(list), {}, 0
    for _, value in ipairs(center and list or {}) do
        far[#far + 1] = robust.finite(value) and (value - center) ^ 2 or nil
    end
    table.sort(far)
    local kept = math.max(1, math.floor(0.9 * #far))
    for i = 1, math.min(kept, #far) do
        sum = sum + far[i]
    end
    return center, 1.27 * math.sqrt(sum / kept)
end

return robust
