--- Damages the bytes of a file, as broken disks, transfers and attackers do.
--
-- All choices come from math.random: seed it, and the same mutant comes out.

local mutate = {}

-- Numbers at which programs break: as fields of files they are lengths, counts and addresses.
local NUMBERS = {0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
    0x80000000, 0xffffffff,
    0x100000000, 0x7fffffffffffffff, -1, -2, math.mininteger}

local function replace(text, at, bytes)
    return text:sub(1, at - 1) .. bytes .. text:sub(at + #bytes)
end

-- Each takes the text and a position in it.
local kinds = {
    function(text, at) -- one bit
        return replace(text, at, string.char(text:byte(at) ~ 1 << math.random(0, 7)))
    end,
    function(text, at) -- one byte
        return replace(text, at, string.char(math.random(0, 255)))
    end,
    function(text, at) -- a number, of either byte order
        local size = 1 << math.random(0, 3)
        local bytes = string.pack("<i8", NUMBERS[math.random(#NUMBERS)]):sub(1, size)
        return replace(text, at, math.random(4) == 1 and bytes:reverse() or bytes)
    end,
    function(text, at) -- zeros
        return replace(text, at, ("\0"):rep(math.random(1, 64)))
    end,
    function(text, at) -- noise
        local bytes = {}
        for i = 1, math.random(2, 32) do
            bytes[i] = string.char(math.random(0, 255))
        end
        return replace(text, at, table.concat(bytes))
    end,
    function(text, at) -- bytes of another place
        local from = math.random(#text)
        return replace(text, at, text:sub(from, from + math.random(1, 64) - 1))
    end,
    function(text, at) -- a missing part
        return text:sub(1, at - 1) .. text:sub(at + math.random(1, 64))
    end,
    function(text, at) -- a part too many
        return text:sub(1, at) .. text:sub(at, at + math.random(1, 64) - 1) .. text:sub(at + 1)
    end,
    function(text, at) -- cut off
        return text:sub(1, at)
    end,
}

-- What changes values and not lengths is tried more often: most files that are cut are refused at
-- once.
local WEIGHTS = {6, 6, 8, 2, 2, 2, 1, 1, 1}

local function any_kind()
    local total = 0
    for _, weight in ipairs(WEIGHTS) do
        total = total + weight
    end
    local at = math.random(total)
    for i, weight in ipairs(WEIGHTS) do
        at = at - weight
        if at <= 0 then
            return kinds[i]
        end
    end
end

-- A position outside the protected ranges, or nil.
local function position(text, protected)
    for _ = 1, 100 do -- seldom more than one try
        local at, free = math.random(#text), true
        for _, range in ipairs(protected) do
            free = free and not (range[1] - 8 <= at and at <= range[2])
        end
        if free then
            return at
        end
    end
end

--- A damaged copy of `text`: one to three changes. `protected` is a list of {first, last}: bytes
-- in which no change starts, because they are values of which any is plausible and only a
-- checksum could tell.
function mutate.structure(text, protected)
    local length = #text
    for _ = 1, math.random(3) do
        local at = position(text, protected)
        if not at then
            break
        end
        text = any_kind()(text, at)
        if #text ~= length then
            break -- the ranges lie elsewhere now
        end
    end
    return text
end

--- A copy of `text` with one change inside one of the `ranges`, without a change of length.
function mutate.values(text, ranges)
    local range = ranges[math.random(#ranges)]
    return kinds[math.random(3)](text, math.random(range[1], range[2])):sub(1, #text)
end

return mutate
