--- Types of the options of command lines: functions that turn text into a value, or into nil. They
-- also return what the text must be.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"

local types = {}

--- "8G" (8e9), "512Mi" (512 * 2^20), "1000000" -> bytes.
function types.bytes(text)
    local ok, bytes = pcall(core.device.bytes, text)
    return ok and bytes or nil, "a size such as 8G, 512Mi or 1000000"
end

--- A type for sizes of so many bytes or more.
function types.bytes_from(low)
    return function(text)
        local bytes = types.bytes(text)
        return bytes and bytes >= low and bytes or nil,
            ("a size of %s or more"):format(core.device.format_bytes(low))
    end
end

function types.number(text)
    local value = tonumber(text)
    return value and value == value and math.abs(value) ~= math.huge and value or nil, "a number"
end

--- A type for what the type `of` takes, or one of these words.
function types.or_words(of, ...)
    local words = {...}
    return function(text)
        for _, word in ipairs(words) do
            if text == word then
                return text
            end
        end
        local value, what = of(text)
        return value, ("%s, or %s"):format(what, table.concat(words, ", or "))
    end
end

--- A type for numbers, or one of these words.
function types.number_or(...)
    return types.or_words(types.number, ...)
end

local SWITCH <const> = {yes = true, ["true"] = true, no = false, ["false"] = false}

--- "yes" or "no".
function types.switch(text)
    return SWITCH[text], "yes or no"
end

--- A type for numbers in a range: {min, max}, or {above, below} with the ends excluded.
function types.bounded(range)
    return function(text)
        local value = types.number(text)
        return value and arguments.within(value, range) and value or nil,
            "a number" .. arguments.range_text(range)
    end
end

--- A type for numbers between `low` and `high`.
function types.between(low, high)
    return types.bounded {above = low, below = high}
end

--- A type for whole numbers from `low` to `high` (default: any).
function types.whole(low, high)
    return function(text)
        local value = math.tointeger(tonumber(text))
        return value and value >= low and value <= (high or value) and value or nil,
            "a whole number" .. (high and (" from %d to %d"):format(low, high)
            or (", %d or more"):format(low))
    end
end

types.count = types.whole(1)

--- A type for whole numbers from 1 to `most`.
function types.up_to(most, least)
    return types.whole(least or 1, most)
end

--- A type for a list of `axes` extents (default: any number): "64,256,256" -> {64, 256, 256}.
function types.extents(axes)
    return function(text)
        local list, words = {}, 0
        for word in text:gmatch("[^,x]+") do
            words = words + 1
            list[words] = types.count(word)
        end
        if words == 0 or #list < words or axes and words ~= axes then
            return nil, ("a list of %swhole numbers, 1 or more each, such as %s"):format(
                axes and axes .. " " or "", ("64,512,512,512"):sub(1, 4 * (axes or 3) - 2))
        end
        return list
    end
end

--- "3,1.5,1.5" -> {3, 1.5, 1.5}.
function types.numbers(text)
    local list = {}
    for word in text:gmatch("[^,]+") do
        list[#list + 1] = tonumber(word)
        if not list[#list] then
            return nil, "a list of numbers, such as 3,1.5,1.5"
        end
    end
    return list
end

--- A type for two numbers, named by `form`: for "LOW:HIGH", "0:1.5" -> {0, 1.5}.
function types.pair(form)
    return function(text)
        local first, last = text:match("^([^:]+):([^:]+)$")
        local low, high = types.number(first), (types.number(last))
        return low and high and {low, high} or nil,
            ("a pair of numbers %s, such as 0:180"):format(form)
    end
end

--- "a:b" -> {a, b}, 1-based and inclusive. "a" alone is one row. An omitted end is nil.
function types.range(text)
    local first, last = text:match("^(%-?%d*):(%-?%d*)$")
    if not first then
        first = text:match("^%-?%d+$")
        last = first
    end
    local low, high = math.tointeger(tonumber(first)), math.tointeger(tonumber(last))
    if not first or first ~= "" and not low or last ~= "" and not high then
        return nil, "a range A:B (1-based, inclusive), such as 10:20"
    end
    return {low, high}
end

--- "3/8" -> {3, 8}: one of so many parts.
function types.part(text)
    local number, count = text:match("^(%d+)/(%d+)$")
    number, count = math.tointeger(tonumber(number)), math.tointeger(tonumber(count))
    return number and count and number >= 1 and number <= count and {number, count} or nil,
        "K/N, the K-th of N parts, such as 3/8"
end

local choice_metatable = {__call = function(self, text)
    for _, choice in ipairs(self.choices) do
        if choice == text then
            return text
        end
    end
    local also = self.also and self.also[text:lower()]
    local near = also or core.error.nearest(text:lower(), self.choices)
    return nil, ("one of %s%s"):format(table.concat(self.choices, ", "), near
        and ("; did you mean %s?"):format(near) or "")
end}

--- A type for one of these words. The last argument may be a table of what other programs call
-- them, {word of another program = one of the words}: for suggestions.
function types.choice(...)
    local choices = {...}
    local also = type(choices[#choices]) == "table" and table.remove(choices) or nil
    return setmetatable({choices = choices, also = also}, choice_metatable)
end

return types
