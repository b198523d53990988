--- What stands before the pixels of a TIFF file: its header, directories and texts.
--
-- Classic TIFF as far as 32-bit offsets reach. Beyond, a file is a BigTIFF, or has one directory,
-- behind whose page ImageJ finds all pages (large.lua). All texts are before the pixels, so that a
-- longer text need not move a pixel.

local large = require "moonbeam.tiff.large"

local FORMATS = {u8 = {8, 1}, u16 = {16, 1}, f32 = {32, 3}}

local head = {}

--- Bits and sample format of an element type that TIFF files are written with, or nil.
function head.format(dtype)
    return FORMATS[dtype]
end

-- UTF-8 as UTF-16 in the file's byte order. Bytes that are no UTF-8 become question marks.
local function utf16(text)
    local parts, at = {}, 1
    while at <= #text do
        local ok, code = pcall(utf8.codepoint, text, at)
        if not ok then
            parts[#parts + 1], at = "?\0", at + 1
        else
            if code >= 0x10000 then
                code = code - 0x10000
                parts[#parts + 1] = string.pack("<I2I2", 0xd800 + (code >> 10), 0xdc00
                    + (code & 0x3ff))
            else
                parts[#parts + 1] = string.pack("<I2", code)
            end
            at = utf8.offset(text, 2, at)
        end
    end
    return table.concat(parts)
end

-- What ImageJ shows as information, and above each slice: the bytes of tag 50839, and those of
-- 50838, their lengths.
local function information(text, labels)
    local header = "JIJI" .. "ofni" .. string.pack("<I4", 1)
        .. (labels and "lbal" .. string.pack("<I4", #labels) or "")
    local parts, lengths = {header}, {string.pack("<I4", #header)}
    for i, each in ipairs {text, table.unpack(labels or {})} do
        parts[i + 1] = utf16(each)
        lengths[i + 1] = string.pack("<I4", #parts[i + 1])
    end
    return table.concat(parts), table.concat(lengths)
end

-- How a file is laid out: {big, directories, counts of their entries, places of all}.
local function layout(stack, text, info, lengths)
    local page = stack.rows * stack.columns * FORMATS[stack.dtype][1] // 8
    local entries = stack.resolution and 14 or 11
    local before = stack.data_at
        or stack.pages * (2 + 12 * entries + 4) + #text + #info + #lengths + 160
    local beyond = large.is(stack.pages, page) or before + stack.pages * page > 0xffffffff
    local big = beyond and stack.layout ~= "imagej"
    local made = {page = page, big = big, entries = entries,
        directories = beyond and not big and 1 or stack.pages, start = big and 16 or 8,
        more = #info > 0 and 2 or 0}
    function made.bytes(i) -- of directory i
        local count = entries + (i == 1 and made.more or 0)
        return big and 8 + 20 * count + 8 or 2 + 12 * count + 4
    end
    made.values_at = made.start + made.bytes(1) + (made.directories - 1) * made.bytes(2)
    made.text_at = made.values_at + 16 + #lengths
    made.info_at = (made.text_at + #text + 15) // 16 * 16
    made.least = (made.info_at + #info + 15) // 16 * 16
    made.data_at = stack.data_at or made.least
    return made
end

--- The bytes before the pixels, the offset of the first, and the bytes of a page. `stack`: {pages,
-- rows, columns, dtype, text (the description), resolution ({x, y, unit}, or nil), info (a text
-- that ImageJ shows, or nil), labels (texts that it shows above the pages, or nil), layout
-- ("imagej": ImageJ's above 4 GB), data_at (the offset of the first pixel; nil: as near as can
-- be)}. Returns nil where the texts do not fit before the pixels.
function head.compose(stack)
    local text = stack.text .. "\0"
    local info, lengths = "", ("\0"):rep(8)
    if stack.info then
        info, lengths = information(stack.info, stack.labels)
    end
    local at = layout(stack, text, info, lengths)
    if at.least > at.data_at then
        return nil
    end
    local format, word = FORMATS[stack.dtype], at.big and "<I8" or "<I4"
    local parts = {at.big and "II+\0" .. string.pack("<I2I2I8", 8, 0, 16) or "II*\0"
        .. string.pack("<I4", 8)}
    -- An entry of one value, or with the place of several; a text stands in the entry as it is.
    local function entry(tag, kind, value, count)
        local inline = type(value) == "string" and value
            or string.pack(kind == 3 and "<I2" or kind == 4 and "<I4" or word, value)
        parts[#parts + 1] = string.pack("<I2I2", tag, kind) .. string.pack(word, count or 1)
            .. inline .. ("\0"):rep((at.big and 8 or 4) - #inline)
    end
    -- An entry with the place of its bytes.
    local function place(tag, kind, value, count)
        parts[#parts + 1] = string.pack("<I2I2", tag, kind) .. string.pack(word, count)
            .. string.pack(word, value)
    end
    local resolution = stack.resolution or {x = {0, 1}, y = {0, 1}}
    local x = string.pack("<I4I4", table.unpack(resolution.x))
    local y = string.pack("<I4I4", table.unpack(resolution.y))
    local long, after = at.big and 16 or 4, at.start
    for i = 1, at.directories do
        after = after + at.bytes(i)
        parts[#parts + 1] = string.pack(at.big and "<I8" or "<I2", at.entries
            + (i == 1 and at.more or 0))
        entry(256, 4, stack.columns)
        entry(257, 4, stack.rows)
        entry(258, 3, format[1])
        entry(259, 3, 1)
        entry(262, 3, 1)
        place(270, 2, at.text_at, #text)
        entry(273, long, at.data_at + (i - 1) * at.page)
        entry(277, 3, 1)
        entry(278, 4, stack.rows)
        entry(279, long, at.page)
        if stack.resolution then -- in a BigTIFF a rational stands in the entry itself
            entry(282, 5, at.big and x or at.values_at)
            entry(283, 5, at.big and y or at.values_at + 8)
            entry(296, 3, resolution.unit)
        end
        entry(339, 3, format[2])
        if i == 1 and at.more > 0 then
            if at.big and #lengths == 8 then
                entry(50838, 4, lengths, 2)
            else
                place(50838, 4, at.values_at + 16, #lengths // 4)
            end
            place(50839, 1, at.info_at, #info)
        end
        parts[#parts + 1] = string.pack(word, i < at.directories and after or 0)
    end
    parts[#parts + 1] = x .. y .. lengths
    parts[#parts + 1] = text .. ("\0"):rep(at.info_at - at.text_at - #text) .. info
    local made = table.concat(parts)
    return made .. ("\0"):rep(at.data_at - #made), at.data_at, at.page
end

return head
