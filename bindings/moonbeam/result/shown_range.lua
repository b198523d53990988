--- The range of values that an image is shown with: its 0.5 and 99.5 percentiles, of evenly spaced
-- rows of a large one. Read from the complete file, so that it follows from the values alone.

local shown_range = {}

--- Values of an image that are looked at, at most.
shown_range.MOST_VALUES = 1 << 20
local KEPT <const> = 1 << 16 -- values that stand for all of these
local LOW <const>, HIGH <const> = 0.005, 0.995

local FORMS <const> = {u8 = "B", u16 = "<I2", f16 = "<I2", f32 = "<f"}

-- The value of a half precision number, IEEE 754 binary16.
local function half(bits)
    local exponent, fraction = bits >> 10 & 31, bits & 1023
    local value
    if exponent == 31 then
        value = fraction == 0 and math.huge or 0 / 0
    elseif exponent == 0 then
        value = fraction * 2.0 ^ -24
    else
        value = (1024 + fraction) * 2.0 ^ (exponent - 25)
    end
    return bits & 0x8000 ~= 0 and -value or value
end

-- A step that is neither a part nor a multiple of `period`, so that all places of it are met.
local function uneven(step, period)
    while period > 1 and step > 1 and (period % step == 0 or step % period == 0) do
        step = step + 1
    end
    return step
end

--- What collects the values of an image of that type, of `count` values in rows of `columns`:
-- {add(text of a row), result()}; nil for types that have no range. result() gives the least, the
-- greatest value and the percentiles; nothing where no value is finite.
function shown_range.collector(dtype, count, columns)
    local form = FORMS[dtype]
    if not form then
        return nil
    end
    local least, greatest, kept, number = math.huge, -math.huge, {}, 0
    local each, convert = uneven(math.max(1, count // KEPT), columns), dtype == "f16" and half
    local made = {}
    function made.add(text)
        local place = 1
        for _ = 1, columns do
            local value
            value, place = string.unpack(form, text, place)
            value = convert and convert(value) or value
            number = number + 1
            if value - value == 0 then
                least, greatest = math.min(least, value), math.max(greatest, value)
                kept[#kept + 1] = number % each == 0 and value or nil
            end
        end
    end
    function made.result()
        if least > greatest then
            return
        end
        kept[1] = kept[1] or least
        table.sort(kept)
        local function at(part)
            return kept[math.floor(part * (#kept - 1) + 0.5) + 1]
        end
        return least, greatest, at(LOW), at(HIGH)
    end
    return made
end

--- The range that is shown, {low, high}, of the least, the greatest value and the percentiles.
function shown_range.window(least, greatest, low, high)
    if high <= low then -- nearly all is one value
        return {least, greatest > least and greatest or least + 1}
    end
    return {low, high}
end

--- What collector() gives of a volume {pages, rows, columns}, of evenly spaced rows of a large one.
-- `text_of(row)`: the bytes of a row of all pages, 0-based.
function shown_range.of_rows(shape, dtype, text_of)
    local pages, rows, columns = table.unpack(shape)
    local all = pages * rows
    local step = uneven(math.max(1, all * columns // shown_range.MOST_VALUES), rows)
    local collected = shown_range.collector(dtype, (all + step - 1) // step * columns, columns)
    for row = (step - 1) // 2 % all, all - 1, step do
        collected.add(text_of(row))
    end
    return collected.result()
end

--- The range of dense pages in an open file, from `offset` on: {low, high}, or nil. `shape`:
-- {pages, rows, columns}.
function shown_range.of_file(file, offset, shape, dtype)
    local bytes = shape[3] * string.packsize(FORMS[dtype])
    local least, greatest, low, high = shown_range.of_rows(shape, dtype, function(row)
        return file:get(offset + row * bytes, bytes)
    end)
    return least and shown_range.window(least, greatest, low, high)
end

return shown_range
