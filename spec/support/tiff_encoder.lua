-- Writes TIFF files of the kinds that no library of ours writes: byte orders, tiles,
-- compressions, predictors.

-- Bits, most significant first, as bytes.
local function bit_writer()
    local bytes, held, count = {}, 0, 0
    return {
        put = function(value, width)
            held, count = held << width | value, count + width
            while count >= 8 do
                bytes[#bytes + 1] = string.char(held >> (count - 8) & 255)
                count = count - 8
                held = held & ((1 << count) - 1)
            end
        end,
        finish = function()
            if count > 0 then
                bytes[#bytes + 1] = string.char(held << (8 - count) & 255)
            end
            return table.concat(bytes)
        end,
    }
end

local encoders = {}

function encoders.none(text)
    return text
end

-- TIFF 6.0, section 13.
function encoders.lzw(text)
    local out, codes, next_code, width = bit_writer(), nil, nil, 9
    local function clear()
        out.put(256, width)
        codes, next_code, width = {}, 258, 9
        for i = 0, 255 do
            codes[string.char(i)] = i
        end
    end
    clear()
    local held = ""
    for i = 1, #text do
        local c = text:sub(i, i)
        if codes[held .. c] then
            held = held .. c
        else
            out.put(codes[held], width)
            codes[held .. c] = next_code
            next_code = next_code + 1
            if next_code == 4094 then
                clear()
            else
                width = next_code >= 2048 and 12 or next_code >= 1024 and 11 or next_code >= 512
                    and 10 or 9
            end
            held = c
        end
    end
    out.put(codes[held], width)
    next_code = next_code + 1
    width = next_code >= 2048 and 12 or next_code >= 1024 and 11 or next_code >= 512 and 10 or 9
    out.put(257, width)
    return out.finish()
end

function encoders.packbits(text)
    local parts, at = {}, 1
    while at <= #text do
        local run = 1
        while run < 128 and text:byte(at + run) == text:byte(at) do
            run = run + 1
        end
        if run > 2 then
            parts[#parts + 1] = string.char(257 - run) .. text:sub(at, at)
            at = at + run
        else
            local n = math.min(100, #text - at + 1)
            parts[#parts + 1] = string.char(n - 1) .. text:sub(at, at + n - 1)
            at = at + n
        end
    end
    return table.concat(parts, "\x80") -- which is to be skipped
end

-- Deflate in stored blocks.
function encoders.deflate(text)
    local parts, a, b = { "\x78\x01" }, 1, 0
    for at = 1, #text, 65535 do
        local block = text:sub(at, at + 65534)
        parts[#parts + 1] = string.pack("<I1I2I2", at + 65535 > #text and 1 or 0, #block,
            ~#block & 0xffff) .. block
    end
    for i = 1, #text do
        a = (a + text:byte(i)) % 65521
        b = (b + a) % 65521
    end
    parts[#parts + 1] = string.pack(">I2I2", b, a)
    return table.concat(parts)
end

-- Zstandard: a frame of one segment with its size, in blocks that are not compressed (RFC 8878).
function encoders.zstd(text)
    local parts = { "\x28\xb5\x2f\xfd\xa0" .. string.pack("<I4", #text) }
    for at = 1, #text, 100000 do
        local block = text:sub(at, at + 99999)
        parts[#parts + 1] = string.pack("<I3", #block << 3 | (at + 100000 > #text and 1 or 0))
            .. block
    end
    return table.concat(parts)
end
encoders.zstd_old = encoders.zstd

-- Whole numbers of so many bits, one after another.
local function bits_of(values, width)
    local out = bit_writer()
    for _, value in ipairs(values) do
        out.put(value, width)
    end
    return out.finish()
end

-- Adobe's Technical Note 3: the bytes of all floats by their rank, highest first, as differences.
local function planes_of(values)
    local planes, before = {}, 0
    for rank = 1, 4 do
        for i, value in ipairs(values) do
            local byte = string.pack(">f", value):byte(rank)
            planes[(rank - 1) * #values + i] = string.char((byte - before) & 255)
            before = byte
        end
    end
    return table.concat(planes)
end

local METHODS = { none = 1, lzw = 5, deflate = 8, packbits = 32773, zstd = 50000,
    zstd_old = 34926 }
local FORMATS = { u8 = { "I1", 1, 1 }, u16 = { "I2", 2, 1 }, i32 = { "i4", 4, 2 },
    i8 = { "i1", 1, 2 }, i16 = { "i2", 2, 2 }, u32 = { "I4", 4, 1 },
    i64 = { "i8", 8, 2 }, u64 = { "I8", 8, 1 },
    f32 = { "f", 4, 3 } }
for bits = 9, 15 do -- packed
    FORMATS["b" .. bits] = { "I2", bits / 8, 1 }
end

-- A file with the values [page][row][column]. Options: dtype, order ("<", ">"), big, method,
-- predictor, rows (per strip), tile ({rows, columns}), text, texts (several), extra (entries, tag
-- -> {kind, value, count}), head (a text behind the file's header).
local function encode(values, options)
    local order, big = options.order or "<", options.big
    local format, size, sample = table.unpack(FORMATS[options.dtype])
    local rows, columns = #values[1], #values[1][1]
    local tile = options.tile
    local high, wide = tile and tile[1] or options.rows or rows, tile and tile[2] or columns
    local word, long = order .. (big and "I8" or "I4"), big and 16 or 4
    local body, directories = { (order == "<" and "II" or "MM")
        .. string.pack(order .. "I2", big and 43 or 42)
        .. (big and string.pack(order .. "I2I2", 8, 0) or "") .. string.pack(word, 0)
        .. (options.head or "") }, {}
    local at = #body[1]
    local function add(text)
        local offset = at
        body[#body + 1], at = text, at + #text
        return offset
    end
    for number, page in ipairs(values) do
        local offsets, counts = {}, {}
        for top = 1, rows, high do
            for left = 1, columns, wide do
                local lines = {}
                for y = top, tile and top + high - 1 or math.min(rows, top + high - 1) do
                    local line, before, numbers = {}, 0, {}
                    for x = left, left + wide - 1 do
                        local value = page[y] and page[y][x] or 0
                        local stored = value
                        numbers[#numbers + 1] = value
                        if options.predictor == 2 then
                            stored, before = (value - before) & ((1 << 8 * size) - 1), value
                        end
                        line[#line + 1] = string.pack(order
                            .. (options.predictor == 2 and "I" .. size or format), stored)
                    end
                    lines[#lines + 1] = options.dtype:find "^b" and bits_of(numbers, math.tointeger(8 * size))
                        or options.predictor == 3 and planes_of(numbers) or table.concat(line)
                end
                local packed = encoders[options.method or "none"](table.concat(lines))
                offsets[#offsets + 1], counts[#counts + 1] = add(packed), #packed
            end
        end
        local entries = { [256] = { long, { columns } }, [257] = { long, { rows } },
            [258] = { 3, { math.tointeger(8 * size) } },
            [259] = { 3, { METHODS[options.method or "none"] } }, [262] = { 3, { 1 } },
            [277] = { 3, { 1 } },
            [317] = { 3, { options.predictor or 1 } }, [339] = { 3, { sample } } }
        entries[tile and 324 or 273], entries[tile and 325 or 279] = { long, offsets },
            { long, counts }
        if tile then
            entries[322], entries[323] = { long, { wide } }, { long, { high } }
        else
            entries[278] = { long, { high } }
        end
        if options.text and number == 1 then
            entries[270] = { 2, options.text .. "\0" }
        end
        for i, text in ipairs(number == 1 and options.texts or {}) do -- several of one tag
            entries[270 + i / 16] = { 2, text .. "\0" }
        end
        for tag, entry in pairs(options.extra or {}) do
            entries[tag] = entry
        end
        directories[number] = entries
    end
    local links = {}
    for _, entries in ipairs(directories) do
        local tags = {}
        for tag in pairs(entries) do
            tags[#tags + 1] = tag
        end
        table.sort(tags)
        local records = {}
        for i, tag in ipairs(tags) do
            local kind, value, count = table.unpack(entries[tag])
            local data = value
            count = count or #value
            if type(value) == "table" then
                local parts = {}
                for k, v in ipairs(value) do
                    parts[k] = string.pack(order .. (kind == 3 and "I2" or kind == 16 and "I8"
                        or "I4"), v)
                end
                data = table.concat(parts)
            end
            local room = big and 8 or 4
            records[i] = string.pack(order .. "I2I2", math.floor(tag), kind) .. string.pack(word, count)
                .. (#data > room and string.pack(word, add(data)) or data
                    .. ("\0"):rep(room - #data))
        end
        links[#links + 1] = at
        add(string.pack(order .. (big and "I8" or "I2"), #tags) .. table.concat(records))
        links[#links + 1] = add(string.pack(word, 0))
    end
    local text = table.concat(body)
    local function patch(offset, value)
        local bytes = string.pack(word, value)
        text = text:sub(1, offset) .. bytes .. text:sub(offset + #bytes + 1)
    end
    patch(big and 8 or 4, links[1])
    for i = 2, #links - 1, 2 do
        patch(links[i], links[i + 1])
    end
    return text
end

local OFFSETS = { i32 = -30000, i16 = -32768, i8 = -128, u32 = 4294900000 }

-- Values with runs and jumps.
local function sample(pages, rows, columns, dtype)
    local values, state = {}, 7
    for p = 1, pages do
        values[p] = {}
        for y = 1, rows do
            values[p][y] = {}
            for x = 1, columns do
                state = (state * 1103515245 + 12345) & 0x7fffffff
                local most = dtype:find "8" and 255 or dtype:find "^b" and (1 << tonumber(dtype:sub(2))) - 1
                    or 65535
                local value = x % 7 < 4 and 40 + p or state >> 16 & most
                values[p][y][x] = dtype == "f32" and value / 8 or value + (OFFSETS[dtype] or 0)
            end
        end
    end
    return values
end

return { encode = encode, sample = sample, deflate = encoders.deflate }
