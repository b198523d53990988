--- What somebody may have meant who typed an option that there is not: another option, a value of
-- one, or a step of a recipe.

local core = require "moonbeam.core"

local suggestions = {}

-- The options by all names under which people know them: their own, and those of `also`.
local function known(options)
    local names, by_name = {}, {}
    for _, option in ipairs(options) do
        for _, name in ipairs(option.positional and {} or {option[1],
            table.unpack(option.also or {})}) do
            names[#names + 1] = name
            by_name[name] = by_name[name] or option
        end
    end
    return names, by_name
end

-- "--method sirt", for the word "sirt".
local function value_of(options, word)
    word = word:gsub("-", "_")
    for _, option in ipairs(options) do
        local kind = option.type
        if type(kind) == "table" then
            for _, choice in ipairs(kind.choices) do
                if #word >= 3 and choice:gsub("-", "_") == word then
                    return ("--%s %s"):format(option[1], choice)
                end
            end
            local also = kind.also and kind.also[word]
            if also then
                return ("--%s %s"):format(option[1], also)
            end
        end
    end
end

--- "; did you mean --boundary reflect?" for a value that the option of a letter cannot have, but
-- another one can; or "". The letter may be that of the other option in another program.
function suggestions.of_value(value, options)
    local meant = value_of(options, value:lower())
    return meant and ("; did you mean %s?"):format(meant) or ""
end

-- Factors to meters, and to electronvolts, of the units that people type behind a number.
local METERS <const> = {nm = 1e-9, um = 1e-6, ["µm"] = 1e-6, ["μm"] = 1e-6, mm = 1e-3, cm = 1e-2,
    m = 1}
local VOLTS <const> = {ev = 1, kev = 1e3, mev = 1e6}

-- How many of the unit `own` of an option one of the typed unit is; nil where they do not fit. A
-- unit of another kind is left out (180deg).
local function factor_of(unit, own)
    local typed, volts = METERS[unit], VOLTS[unit:lower()]
    if METERS[own] or VOLTS[own] then
        return typed and METERS[own] and typed / METERS[own] or volts and VOLTS[own]
            and volts / VOLTS[own] or nil
    end
    return not (typed or volts) and 1 or nil
end

--- "; give 520: the unit is nm" for a number with a unit or with a comma for its point, where the
-- option takes the number alone; else nil.
function suggestions.of_number(text, option)
    local number, unit = text:match "^([%d.]+)%s*([%a%%\xC2\xCE\xBC\xB5]+)$"
    local own = option.value and option.value:lower():match "^%a+"
    if own == "size" then
        return nil -- bytes have units
    elseif unit == "%" and tonumber(number) then
        local part = ("%g"):format(number / 100)
        return (own == "part" or option.type(number) == nil and option.type(part) ~= nil)
            and "; give a part of one: " .. part or nil
    end
    local factor = unit and factor_of(unit, own)
    local value = factor and tonumber(number) and ("%.10g"):format(number * factor)
    if value and option.type(value) ~= nil then
        return ("; give %s%s"):format(value, METERS[own] and ": the unit is " .. own
            or VOLTS[own] and ": the unit is eV" or " without a unit")
    end
    local point = text:match "^%-?%d+,%d+$" and text:gsub(",", ".")
    if point and option.type(point) ~= nil then
        return ("; decimals have a point: %s"):format(point)
    end
end

-- What to do with a word that belongs to the two words before it, or nil.
local function of_pair(word, before, by_name)
    local option = before and by_name[before[2]]
    if option and not option.value then
        return ("%s takes no value"):format(before[2])
    elseif before and before[1] == "--set" and not before[2]:find("=", 1, true) then
        return ("write --set %s=%s"):format(before[2], word)
    elseif before and tonumber(before[2]) and word:find "^[%aµ%%]+$" then
        return ("write numbers and units without a space, %s%s"):format(before[2], word)
    end
end

--- What to do with an argument that a command has no place for, or "". `values`: of the options;
-- `before`: the two words before it; `by_name`: the options as they are typed.
function suggestions.of_argument(word, spec, values, before, by_name)
    local told = of_pair(word, before, by_name) or spec.extra and spec.extra(word, values)
    for _, option in ipairs(told and {} or spec) do
        if option[1] == "output" and not values.output and word:find "%.%a%w*$" then
            told = ("-%s %s names the result"):format(option.short, word)
        end
    end
    return told and "; " .. told or ""
end

--- "; did you mean ...?" for a word like "--filtr", or "". `spec` is what cli.parse takes. Its
-- `suggest(word, exact)` may know something else: it returns a text or nil; exact, if it knows the
-- word itself, before words like it count. Its `absent` tells why there is no such option.
function suggestions.of(word, spec)
    word = word:gsub("^%-+", ""):lower():gsub("_", "-")
    local names, by_name = known(spec)
    local near, more = by_name[word] and word, spec.suggest
    local meant = near and "--" .. by_name[near][1]
        or value_of(spec, word) or more and more(word, true) or nil
    if not meant and spec.absent and spec.absent[word] then
        return "; " .. spec.absent[word]
    end
    if not meant then
        near = core.error.nearest(word, names)
        meant = near and "--" .. by_name[near][1] or more and more(word)
    end
    return meant and ("; did you mean %s?"):format(meant) or ""
end

return suggestions
