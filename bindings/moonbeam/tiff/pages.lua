--- The directories of a TIFF file: its pages, and what its first page says of itself.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local metamorph = require "moonbeam.tiff.meaning.metamorph"

-- Field types: format of string.unpack, bytes.
local TYPES = {[1] = {"I1", 1}, [2] = {"c1", 1}, [3] = {"I2", 2}, [4] = {"I4", 4},
    [5] = {"I4I4", 8}, [6] = {"i1", 1}, [8] = {"i2", 2}, [9] = {"i4", 4}, [11] = {"f", 4},
    [12] = {"d", 8}, [13] = {"I4", 4}, [16] = {"I8", 8}, [17] = {"i8", 8}, [18] = {"I8", 8}}
local TEXT <const>, RATIONAL <const> = 2, 5
local MOST_SAMPLES <const> = 64
local DESCRIPTION, DEPTH <const> = 270, 32997
-- Of which the place is kept, not the values: what programs say of their own (tiff/meaning).
local PLACED <const> = {[700] = true, [33471] = true, [33628] = true, [33629] = true,
    [33630] = true, [33631] = true, [34361] = true, [34412] = true, [37701] = true, [51123] = true}

-- "sample format bits" -> element type, and what is widened to it, as from HDF5 files.
local DTYPES = {["1 8"] = {"u8"}, ["1 16"] = {"u16"}, ["1 32"] = {"f64", "u32"},
    ["1 64"] = {"f64", "u64"}, ["2 64"] = {"f64", "i64"},
    ["2 8"] = {"i32", "i8"}, ["2 16"] = {"i32", "i16"}, ["2 32"] = {"i32"}, ["3 16"] = {"f16"},
    ["3 32"] = {"f32"}, ["3 64"] = {"f64"}}
-- Samples with no byte of their own, most significant bit first.
for bits = 9, 15 do
    DTYPES[("1 %d"):format(bits)] = {"u16", "bits"}
end
local ZSTD <const> = 50000
-- What read_tiff decodes, by the numbers of files; 34926 was that of Zstandard at first.
local READABLE = {[1] = 1, [5] = 5, [8] = 8, [32946] = 8, [32773] = 32773, [34926] = ZSTD,
    [ZSTD] = ZSTD}
local OTHERS = {[2] = "CCITT", [3] = "fax", [4] = "fax", [6] = "old JPEG", [7] = "JPEG",
    [22610] = "JPEG XR", [32809] = "ThunderScan", [33003] = "JPEG 2000", [33004] = "JPEG 2000",
    [33005] = "JPEG 2000", [33007] = "JPEG", [34661] = "JBIG", [34676] = "SGI LogLuv",
    [34712] = "JPEG 2000", [34887] = "LERC", [34892] = "lossy JPEG", [34925] = "LZMA",
    [34933] = "PNG", [34934] = "JPEG XR", [48124] = "Jetraw",
    [50001] = "WebP", [50002] = "JPEG XL", [65000] = "EER", [65001] = "EER", [65002] = "EER"}

-- A file that is being read: {file, name, bytes, order ("<" or ">"), big (BigTIFF), word (format of
-- an offset), word_bytes}.
local reader = {}
reader.__index = reader

function reader:refuse(code, format, ...)
    fail(code, "tiff", nil, "%s: " .. format, self.name, ...)
end

function reader:damaged(format, ...)
    self:refuse("io", format .. ": the file is damaged", ...)
end

-- Bytes of the file; whatever offsets and counts a damaged one names.
function reader:at(offset, count)
    if offset < 0 or count < 0 or count > self.bytes or offset > self.bytes - count then
        self:refuse("io", "the file is truncated or damaged: it refers to %d bytes at %d, but has "
            .. "%d bytes", count, offset, self.bytes)
    end
    table.insert(self.taken or {}, {offset, offset + count})
    return self.file:get(offset, count)
end

-- The values of an entry: a list of numbers, of pairs, or a text.
function reader:values(kind, count, text)
    local format, size = table.unpack(TYPES[kind])
    if size * count > self.word_bytes then
        text = self:at(string.unpack(self.word, text), size * count)
    end
    if kind == TEXT then
        return (text:sub(1, count):gsub("%z.*", ""))
    end
    local list = {}
    for k = 1, count do
        local first, second = string.unpack(self.order .. format, text, (k - 1) * size + 1)
        list[k] = kind == RATIONAL and {first, second} or first
    end
    return list
end

-- One directory: {tag = values}, and the offset of the next.
function reader:directory(offset)
    local big, order = self.big, self.order
    local head, width = big and 8 or 2, big and 20 or 12
    local count = string.unpack(order .. (big and "I8" or "I2"), self:at(offset, head))
    if count < 0 or count > 4096 then
        self:damaged("a directory has %d entries", count)
    end
    local text, tags = self:at(offset + head, count * width), {}
    for at = 1, count * width, width do
        local tag, kind, n = string.unpack(order .. "I2I2" .. self.word:sub(2), text, at)
        if PLACED[tag] then
            tags[tag] = {count = n, kind = kind, at = string.unpack(self.word, text, at + width
                - self.word_bytes)}
        elseif TYPES[kind] and (n < 0 or n > self.bytes) then
            self:refuse("io", "the file is truncated or damaged: tag %d has %d values", tag, n)
        elseif TYPES[kind] then
            local value = self:values(kind, n, text:sub(at + width - self.word_bytes, at + width
                - 1))
            if tag == DESCRIPTION and type(value) == "string" then -- some pages have several
                tags.texts = tags.texts or {}
                table.insert(tags.texts, value)
            else
                tags[tag] = value
            end
        end
    end
    -- Some writers leave the last link out.
    local link = offset + head + count * width
    return tags, link + self.word_bytes <= self.bytes
        and string.unpack(self.word, self:at(link, self.word_bytes)) or 0
end

-- The first value of a tag that holds whole numbers.
function reader:whole(tags, tag, default)
    local values = tags[tag]
    if values == nil then
        return default
    end
    return type(values) == "table" and math.tointeger(values[1])
        or self:damaged("tag %d is not an integer", tag)
end

-- Strips or tiles: their offsets and sizes.
function reader:segments(page, tags)
    page.offsets, page.bytes = tags[324] or tags[273], tags[325] or tags[279]
    if not (page.rows and page.columns and type(page.offsets) == "table" and page.rows > 0
        and page.columns > 0) then
        self:damaged("a page has no size or no pixels")
    end
    page.segment_rows = tags[324] and self:whole(tags, 323)
        or math.min(page.rows, self:whole(tags, 278, page.rows))
    page.segment_columns = tags[324] and self:whole(tags, 322) or page.columns
    if type(page.bytes) ~= "table" then -- a page of one strip can do without
        page.bytes = {page.page_bytes}
    end
    local high, wide = page.segment_rows, page.segment_columns
    local needed = high > 0 and wide > 0
        and (page.rows + high - 1) // high * ((page.columns + wide - 1) // wide) or math.huge
    if #page.offsets < needed or #page.bytes < needed then
        self:damaged("a page of %d x %d has %d strips or tiles of %d x %d", page.rows,
            page.columns, math.min(#page.offsets, #page.bytes), high, wide)
    end
    for i, offset in ipairs(page.offsets) do
        local bytes = page.bytes[i]
        if type(offset) ~= "number" or type(bytes) ~= "number" or offset < 0 or bytes < 0 then
            self:damaged("a page has no valid strip offsets or sizes")
        elseif offset + bytes > self.bytes then
            self:refuse("io", "the file is truncated: the pixels of a page end at %d, the file at "
                .. "%d", offset + bytes, self.bytes)
        end
    end
end

-- Refuses what is no stack of packed samples, though its tags say so.
function reader:check_packed(page)
    local bytes = 0
    for _, own in ipairs(page.bytes) do
        bytes = bytes + own
    end
    if page.predictor ~= 1 then
        self:refuse("unsupported", "predictor %d for samples of %d bits is not supported; save the "
            .. "file without a predictor, or with 16 bits", page.predictor, page.bits)
    elseif page.compression == 1 and bytes == 2 * page.rows * page.columns
        and bytes ~= page.page_bytes then
        self:refuse("unsupported", "a page of %d x %d samples of %d bits has %d bytes, 2 for each "
            .. "sample, and packed samples have %d; save the file with 16 bits", page.rows,
            page.columns, page.bits, bytes, page.page_bytes)
    end
end

-- The page that a directory describes: what read_tiff takes, with its dtype and its bytes without
-- compression.
function reader:page(tags)
    local function one(tag, default)
        return self:whole(tags, tag, default)
    end
    local method, bits, format = one(259, 1), one(258, 1), one(339, 1)
    local dtype = DTYPES[("%d %d"):format(format == 4 and 1 or format, bits)]
    local page = {rows = one(257), columns = one(256), swap = self.order == ">",
        compression = READABLE[method], predictor = one(317, 1), dtype = dtype and dtype[1],
        samples = dtype and dtype[2], bits = bits}
    page.page_bytes = page.rows and page.columns and page.rows * ((page.columns * bits + 7) // 8)
    if not READABLE[method] then
        self:refuse("unsupported", "the compression %s (method %d) is not supported; save the "
            .. "file uncompressed, or with LZW, Deflate, PackBits or Zstandard",
            OTHERS[method] or "of an unknown kind", method)
    elseif READABLE[method] == ZSTD and core.rawfile.lacks "zstd" then
        self:refuse("unsupported", "its pixels have the compression Zstandard (method %d), which "
            .. "%s", method, core.rawfile.lacks "zstd")
    elseif one(277, 1) ~= 1 then
        self:refuse("unsupported", "a pixel has %d samples; only gray images are read: split the "
            .. "channels", one(277))
    elseif one(266, 1) ~= 1 then
        self:refuse("unsupported", "the bits of each byte are in reverse order (FillOrder 2), "
            .. "which is not supported")
    elseif one(DEPTH, 1) ~= 1 then
        self:refuse("unsupported", "a page has %d slices (ImageDepth), and pages of one are read: "
            .. "save it with a page for each slice", one(DEPTH))
    elseif not page.dtype then
        self:refuse("unsupported", "%d bits of sample format %d are not supported; integers of "
            .. "8 to 16, 32 and 64 bit and float are: save it as float of 32 bits", bits, format)
    end
    self:segments(page, tags)
    if page.samples == "bits" then
        self:check_packed(page)
    elseif page.predictor > 3 or page.predictor == 3 and format ~= 3 then
        self:refuse("unsupported", "predictor %d for %s is not supported", page.predictor,
            page.samples or page.dtype)
    end
    return page
end

local function rational(values)
    return type(values) == "table" and type(values[1]) == "table" and values[1]
end

-- What the first page says of the stack.
function reader:describe(stack, tags)
    local x, y = rational(tags[282]), rational(tags[283])
    stack.descriptions = tags.texts or {}
    x, y = x or y, y or x -- pixels are square where one is missing
    stack.resolution = x and {x = x, y = y, unit = self:whole(tags, 296, 2),
        told = tags[296] ~= nil} or nil
    stack.metamorph = metamorph(self, tags)
    local taken = self.taken
    self.taken = nil
    stack.tags, stack.byte_order = tags, self.order
    function stack.part(at, count)
        return self:at(at, count)
    end
    function stack.free(from, to)
        for _, range in ipairs(taken) do
            if range[1] > from and range[1] < to then
                return false
            end
        end
        return true
    end
end

-- The page of a directory, with `problem`, an error, where it is none that is read: it may be one
-- that nobody asks for.
function reader:page_or_problem(tags)
    local ok, page = pcall(self.page, self, tags)
    if ok then
        return page
    elseif type(page) ~= "table" or page.code ~= "unsupported" then
        error(page, 0)
    end
    return {problem = page}
end

-- The pages of the samples of a page that lie apart (PlanarConfiguration 2); nil where they do not.
function reader:apart(tags)
    local samples, list = self:whole(tags, 277, 1), {}
    if self:whole(tags, 284, 1) ~= 2 or samples < 2 or samples > MOST_SAMPLES then
        return nil
    end
    for i = 1, samples do
        local own = setmetatable({[277] = {1}}, {__index = tags})
        for _, tag in ipairs {273, 279, 324, 325} do
            local values = tags[tag]
            if type(values) == "table" then
                local count = #values // samples
                own[tag] = table.move(values, (i - 1) * count + 1, i * count, 1, {})
            end
        end
        list[i] = self:page_or_problem(own)
    end
    return list
end

-- What tifffile writes where a series of pages begins.
local function shaped_text(texts)
    for _, text in ipairs(texts or {}) do
        if text:find '^{"' or text:find "^shape=" then
            return text
        end
    end
end

local function reader_of(file, name)
    local bytes = file:bytes()
    local head = file:get(0, math.min(16, bytes))
    local order = ({II = "<", MM = ">"})[head:sub(1, 2)]
    local version = order and #head >= 8 and string.unpack(order .. "I2", head, 3)
    local big = version == 43 and #head == 16
    if version ~= 42 and not big then
        fail("io", "tiff", nil, "%s: this is not a TIFF file", name)
    end
    local self = setmetatable({file = file, name = name, bytes = bytes, order = order, big = big,
        word = order .. (big and "I8" or "I4"), word_bytes = big and 8 or 4, taken = {}}, reader)
    return self, string.unpack(self.word, head, big and 9 or 5)
end

--- Reads the directories of a file: {pages (without thumbnails), directories (the pages of all),
-- descriptions (of the first page), resolution, metamorph, tags (of the first page), byte_order,
-- part(offset, count), free(from, to) (does nothing of the first directory begin there?)}. A page
-- is what read_tiff takes, with its dtype, its bytes without compression and the offset of its
-- directory;
-- or `problem`, an error, where it is not read, and then, where its samples lie apart, `apart`, the
-- page of each.
return function(file, name)
    local self, offset = reader_of(file, name)
    local stack, seen = {pages = {}, directories = {}}, {}
    while offset ~= 0 do
        if seen[offset] then
            self:refuse("io", "its directories refer to each other in a circle")
        end
        seen[offset] = true
        local at = offset
        local tags, after = self:directory(offset)
        offset = after
        local thumbnail = self:whole(tags, 254, 0) & 1 == 1
        local ok, page = pcall(self.page_or_problem, self, tags)
        if not ok and not thumbnail then
            error(page, 0)
        end
        page = ok and page or {problem = page}
        page.directory_at = at
        page.apart = page.problem and not thumbnail and self:apart(tags) or nil
        stack.directories[#stack.directories + 1] = page
        if not stack.descriptions then
            self:describe(stack, tags)
        elseif not thumbnail then
            page.shaped = shaped_text(tags.texts)
        end
        stack.pages[#stack.pages + 1] = not thumbnail and page or nil
    end
    if #stack.pages == 0 then
        self:refuse("io", "the file has no page")
    end
    return stack
end
