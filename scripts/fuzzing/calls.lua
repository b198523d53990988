--- The loop of a batch of calls in one process: counts what came of them, and prints the counts as
-- a Lua table.
--
--   moonbeam scripts/fuzzing/KIND.lua SEED FIRST COUNT [LOG]
--
-- LOG gets the number of each call before it is made, so that a crash has a number.

local mb = require "moonbeam"

local calls = {DEVICE = "host"}

-- What any argument may wrongly be.
calls.JUNK = {0, -1, 1, 2, 7, 0.5, -0.5, 1e-300, 1e308, 300, (1 << 31) - 1, 1 << 31, 1 << 32,
    1 << 53, math.maxinteger, math.mininteger, 0 / 0, 1 / 0, -1 / 0, "", "text", "auto", true,
    false}

local SEED, FIRST, COUNT, LOG = math.tointeger(arg[1]), math.tointeger(arg[2]),
    math.tointeger(arg[3]), arg[4]
local tallies = {}

function calls.one_of(list)
    return list[math.random(#list)]
end

--- True once in `n` times.
function calls.once_in(n)
    return math.random(n) == 1
end

--- A value that hardly any argument may have; `plain`: data only.
function calls.junk(plain)
    local one_of, JUNK, kind = calls.one_of, calls.JUNK, math.random(plain and 11 or 12)
    if kind <= 9 then
        return one_of(JUNK)
    elseif kind == 10 then
        local list = {}
        for i = 1, math.random(0, 7) do
            list[i] = one_of(JUNK)
        end
        return list
    elseif kind == 11 then
        return {x = one_of(JUNK)}
    end
    local length, value = one_of(JUNK), one_of(JUNK)
    return setmetatable({}, {__len = function() return length end,
        __index = function() return value end})
end

--- A list with an element less or more, of other values, or empty; a name in other letters.
function calls.bent(value)
    if type(value) == "string" then
        return calls.one_of {value:upper(), value .. " ", value:sub(1, -2), value .. "\0", " "}
    elseif type(value) ~= "table" then
        return calls.junk(true)
    end
    local copy, what = table.move(value, 1, #value, 1, {}), math.random(5)
    if what == 1 then
        return {}
    elseif what == 2 then
        return {copy[1]}
    elseif what == 3 then
        copy[#copy] = nil
    elseif what == 4 then
        copy[#copy + 1] = copy[1] or 1
    else
        copy[math.random(math.max(1, #copy))] = calls.one_of(calls.JUNK)
    end
    return copy
end

--- Counts a word; with a text it is one of those that break a promise.
function calls.count(word, index, text)
    tallies[word] = (tallies[word] or 0) + 1
    if text then
        io.stderr:write(("call %d: %s: %s\n"):format(index, word,
            tostring(text):gsub("\n.*", "")))
    end
end

-- What is left and damaged after a call.
local function check_pool(index, what)
    mb.collect()
    local live = mb.pool.stats(calls.DEVICE).live
    if live ~= 0 then
        calls.count("leak", index, ("%s: %d bytes"):format(what, live))
    end
    local damage = mb.pool.damage(calls.DEVICE)
    if #damage > 0 then
        calls.count("guard damage", index, ("%s: %s"):format(what, tostring(damage)))
    end
end

--- Calls try(index), which returns in a word what it tried, for each number of the batch; its
-- random numbers are those of the seed and the number.
function calls.run(try)
    mb.device(calls.DEVICE, {budget = "256M"})
    mb.debug.set_guards(true, calls.DEVICE)
    for index = FIRST, FIRST + COUNT - 1 do
        if LOG then
            local log <close> = assert(io.open(LOG, "w"))
            log:write(index, "\n")
        end
        math.randomseed(SEED, index)
        check_pool(index, try(index))
    end
    local words = {}
    for word, number in pairs(tallies) do
        words[#words + 1] = ("[%q] = %d"):format(word, number)
    end
    print(("return {%s}"):format(table.concat(words, ", ")))
end

return calls
