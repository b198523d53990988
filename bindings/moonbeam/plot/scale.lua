--- Axes: the range of values, round numbers on it, and how they are written.

local core = require "moonbeam.core"

local scale = {}

--- The range of finite numbers of lists; 0 and 1 if there is none. A range of one value is widened.
function scale.range(lists)
    local low, high = math.huge, -math.huge
    for _, list in ipairs(lists) do
        for _, value in ipairs(list) do
            if value == value and value > -math.huge and value < math.huge then
                low, high = math.min(low, value), math.max(high, value)
            end
        end
    end
    if low > high then
        return 0, 1
    elseif low == high then
        local half = low == 0 and 0.5 or math.abs(low) / 2
        return low - half, high + half
    end
    return low, high
end

-- The least of 1, 2, 5 (or, for bytes, of 1, 2, 4, ... 512) times a power that is at least `least`.
local function round_step(least, bytes)
    if bytes then
        local unit = 1024.0 ^ math.max(0, math.floor(math.log(math.max(least, 1), 1024)))
        local step = unit
        while step < least do
            step = step * 2
        end
        return step
    end
    local unit = 10.0 ^ math.floor(math.log(least, 10))
    for _, factor in ipairs {1, 2, 5} do
        if factor * unit >= least * (1 - 1e-9) then
            return factor * unit
        end
    end
    return 10 * unit
end

-- The logarithms of round numbers: of 1, 2, 5 times a power of ten, or of powers alone where these
-- are too many. The ends where no round number is between them.
local function log_ticks(low, high, most)
    for _, factors in ipairs {{1, 2, 5}, {1}} do
        local values = {}
        for power = math.floor(low), math.floor(high) do
            for _, factor in ipairs(factors) do
                local value = power + math.log(factor, 10)
                if value >= low - 1e-9 and value <= high + 1e-9 then
                    values[#values + 1] = value
                end
            end
        end
        if #values <= most or #factors == 1 then
            local every, kept = math.max(1, math.ceil(#values / most)), {}
            for i = 1, #values, every do
                kept[#kept + 1] = values[i]
            end
            return #kept > 0 and kept or low < high and {low, high} or {low}
        end
    end
end

--- Round values from low to high, at most `most` of them, and their texts. form "bytes": in KiB,
-- MiB; "whole": whole numbers; "log": the values are decimal logarithms, the texts their numbers;
-- "none": no values.
function scale.ticks(low, high, most, form)
    if form == "none" then
        return {}, {}
    elseif form == "log" then
        local values, texts = log_ticks(low, high, most), {}
        for i, value in ipairs(values) do
            texts[i] = ("%.4g"):format(10.0 ^ value)
        end
        return values, texts
    end
    local step = round_step((high - low) / math.max(1, most), form == "bytes")
    if form == "whole" then
        step = math.max(1, step)
    end
    local values, texts = {}, {}
    for i = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) do
        local value = i * step
        values[#values + 1] = value
        texts[#texts + 1] = scale.text(value, form)
    end
    return values, texts
end

--- A value as text.
function scale.text(value, form)
    if form == "bytes" and value < 0x1p62 then
        return core.device.format_bytes(math.floor(value + 0.5))
    elseif value == math.floor(value) and math.abs(value) < 1e6 then
        return ("%d"):format(value)
    end
    return ("%.4g"):format(value)
end

return scale
