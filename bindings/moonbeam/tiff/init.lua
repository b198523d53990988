--- TIFF stacks of one channel: 8 and 16 bit, 32-bit float and signed, 16- and 64-bit float.
--
-- Reads classic files and BigTIFF, either byte order, strips and tiles, uncompressed, LZW, Deflate
-- or PackBits, with predictors, and ImageJ's stacks above 4 GB (one directory, all pages behind one
-- another). Writes uncompressed: classic TIFF; above 4 GB ImageJ's form, or BigTIFF where the
-- metadata are OME-XML, whose readers take that and not ImageJ's. Here is what files consist of;
-- the pixels are moved by runtime/files/tiff_segments.c and rawfile.c.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local metadata = require "moonbeam.tiff.metadata"
local on_error = require "moonbeam.internal.on_error"
local volumes = require "moonbeam.volumes"

local tiff = {}

-- Field types: format of string.unpack, bytes.
local TYPES = {[1] = {"I1", 1}, [2] = {"c1", 1}, [3] = {"I2", 2}, [4] = {"I4", 4},
    [5] = {"I4I4", 8}, [6] = {"i1", 1},
    [8] = {"i2", 2}, [9] = {"i4", 4}, [11] = {"f", 4}, [12] = {"d", 8}, [13] = {"I4", 4},
    [16] = {"I8", 8}, [17] = {"i8", 8},
    [18] = {"I8", 8}}

-- "sample format bits" -> element type.
local DTYPES = {["1 8"] = "u8", ["1 16"] = "u16", ["2 32"] = "i32", ["3 16"] = "f16",
    ["3 32"] = "f32", ["3 64"] = "f64"}
local COMPRESSIONS = {[1] = "none", [5] = "LZW", [8] = "Deflate", [32946] = "Deflate",
    [32773] = "PackBits"}
local OTHERS = {[2] = "CCITT", [3] = "fax", [4] = "fax", [6] = "old JPEG", [7] = "JPEG",
    [34712] = "JPEG 2000", [34887] = "LERC",
    [34925] = "LZMA", [50000] = "Zstandard", [50001] = "WebP", [50002] = "JPEG XL"}

-- Bytes of the file; whatever offsets and counts a damaged one names.
local function bytes_at(file, name, offset, count)
    if offset < 0 or count < 0 or count > file:bytes() or offset > file:bytes() - count then
        fail("io", "tiff", nil, "%s: the file is truncated or damaged: it refers to %d bytes "
            .. "at %d, but has %d bytes", name, count,
            offset, file:bytes())
    end
    return file:get(offset, count)
end

-- One directory: {tag = list of values, or text}, and the offset of the next. A rational is a pair.
local function directory(file, name, order, big, offset)
    local count = string.unpack(order .. (big and "I8" or "I2"),
        bytes_at(file, name, offset, big and 8 or 2))
    local width, head, word = big and 20 or 12, big and 8 or 2, order .. (big and "I8" or "I4")
    if count < 0 or count > 4096 then
        fail("io", "tiff", nil, "%s: a directory has %d entries: the file is damaged", name, count)
    end
    local text, tags = bytes_at(file, name, offset + head, count * width), {}
    for i = 0, count - 1 do
        local tag, kind, n = string.unpack(order .. "I2I2" .. (big and "I8" or "I4"), text,
            i * width + 1)
        local format, size = table.unpack(TYPES[kind] or {})
        if size and (n < 0 or n > file:bytes()) then
            fail("io", "tiff", nil, "%s: the file is truncated or damaged: tag %d has %d values",
                name, tag,
                n)
        elseif size then
            local value = text:sub(i * width + (big and 13 or 9), i * width + width)
            if size * n > (big and 8 or 4) then
                value = bytes_at(file, name, string.unpack(word, value), size * n)
            end
            if kind == 2 then
                tags[tag] = value:sub(1, n):gsub("%z.*", "")
            else
                local list = {}
                for k = 1, n do
                    local first, second = string.unpack(order .. format, value, (k - 1) * size + 1)
                    list[k] = kind == 5 and {first, second} or first
                end
                tags[tag] = list
            end
        end
    end
    -- Some writers leave the last link out.
    local link = offset + head + count * width
    return tags, link + (big and 8 or 4) <= file:bytes()
        and string.unpack(word, bytes_at(file, name, link, big and 8 or 4)) or 0
end

-- The first value of a tag that holds whole numbers.
local function whole(tags, name, tag, default)
    local values = tags[tag]
    if values == nil then
        return default
    end
    return type(values) == "table" and math.tointeger(values[1])
        or fail("io", "tiff", nil, "%s: tag %d is not an integer: the file is damaged", name, tag)
end

-- The page that a directory describes: what read_tiff takes, with its dtype.
local function page_of(tags, name, order, file)
    local function one(tag, default)
        return whole(tags, name, tag, default)
    end
    local method = one(259, 1)
    if not COMPRESSIONS[method] then
        fail("unsupported", "tiff", nil, "%s: the compression %s (method %d) is not supported; "
            .. "save the file uncompressed, or with LZW, Deflate or PackBits", name,
            OTHERS[method] or "of an unknown kind",
            method)
    elseif one(277, 1) ~= 1 then
        fail("unsupported", "tiff", nil,
            "%s: a pixel has %d samples; only gray images are read: split the channels", name,
            one(277))
    elseif one(266, 1) ~= 1 then
        fail("unsupported", "tiff", nil, "%s: the bits of each byte are in reverse order "
            .. "(FillOrder 2), which is not supported",
            name)
    end
    local bits, format = one(258, 1), one(339, 1)
    local page = {rows = one(257), columns = one(256), swap = order == ">", compression = method,
        predictor = one(317, 1),
        offsets = tags[324] or tags[273], bytes = tags[325] or tags[279]}
    page.dtype = DTYPES[("%d %d"):format(format == 4 and 1 or format, bits)] or fail("unsupported",
        "tiff", nil, "%s: %d bits of sample format %d are not supported; unsigned 8 and 16 "
        .. "bit, signed 32 bit and float are", name, bits, format)
    if not (page.rows and page.columns and type(page.offsets) == "table" and page.rows > 0
        and page.columns > 0) then
        fail("io", "tiff", nil, "%s: a page has no size or no pixels: the file is damaged", name)
    end
    if page.predictor > 3 or page.predictor == 3 and page.dtype:sub(1, 1) ~= "f" then
        fail("unsupported", "tiff", nil, "%s: predictor %d for %s is not supported", name,
            page.predictor,
            page.dtype)
    end
    page.segment_rows = tags[324] and one(323) or math.min(page.rows, one(278, page.rows))
    page.segment_columns = tags[324] and one(322) or page.columns
    if type(page.bytes) ~= "table" then -- a page of one strip can do without
        page.bytes = {page.rows * page.columns * volumes.ITEM_BYTES[page.dtype]}
    end
    local high, wide = page.segment_rows, page.segment_columns
    local needed = high > 0 and wide > 0
        and (page.rows + high - 1) // high * ((page.columns + wide - 1) // wide) or math.huge
    if #page.offsets < needed or #page.bytes < needed then
        fail("io", "tiff", nil,
            "%s: a page of %d x %d has %d strips or tiles of %d x %d: the file is damaged", name,
            page.rows, page.columns, math.min(#page.offsets, #page.bytes), high, wide)
    end
    for i, offset in ipairs(page.offsets) do
        if type(offset) ~= "number" or type(page.bytes[i]) ~= "number" or offset < 0
            or page.bytes[i] < 0 then
            fail("io", "tiff", nil, "%s: a page has no valid strip offsets or sizes: the file "
                .. "is damaged", name)
        elseif offset + (page.bytes[i] or 0) > file:bytes() then
            fail("io", "tiff", nil, "%s: the file is truncated: the pixels of a page end at "
                .. "%d, the file at %d",
                name, offset + (page.bytes[i] or 0), file:bytes())
        end
    end
    return page
end

-- Pages one after another at equal distance, uncompressed: the first offset and the distance, or
-- nil.
local function regular(pages, page_bytes)
    local first, distance = pages[1].offsets[1], nil
    for i, page in ipairs(pages) do
        local at = page.offsets[1]
        if page.compression ~= 1 or page.predictor ~= 1 or page.segment_columns ~= page.columns then
            return nil
        end
        local expected = at
        for k, offset in ipairs(page.offsets) do
            if offset ~= expected then
                return nil
            end
            expected = expected + page.bytes[k]
        end
        if expected - at < page_bytes then
            return nil
        end
        if i == 2 then
            distance = at - first
        end
        if i > 1 and at ~= first + (i - 1) * distance then
            return nil
        end
    end
    return first, distance or page_bytes
end

local function rational(values)
    return type(values) == "table" and type(values[1]) == "table"
end

local function parse(file, name)
    local size = file:bytes()
    local head = file:get(0, math.min(16, size))
    local order = head:sub(1, 2) == "II" and "<" or head:sub(1, 2) == "MM" and ">" or fail("io",
        "tiff", nil, "%s: this is not a TIFF file", name)
    local version = #head >= 8 and string.unpack(order .. "I2", head, 3) or 0
    local big = version == 43
    if version ~= 42 and not (big and #head == 16) then
        fail("io", "tiff", nil, "%s: this is not a TIFF file", name)
    end
    local offset = string.unpack(order .. (big and "I8" or "I4"), head, big and 9 or 5)
    local stack, seen = {pages = {}, order = order}, {}
    while offset ~= 0 do
        if seen[offset] then
            fail("io", "tiff", nil, "%s: its directories refer to each other in a circle", name)
        end
        seen[offset] = true
        local tags
        tags, offset = directory(file, name, order, big, offset)
        local kind = whole(tags, name, 254, 0)
        if kind & 1 == 0 then -- no thumbnail
            local page = page_of(tags, name, order, file)
            local first = stack.pages[1]
            if first and (first.dtype ~= page.dtype or first.rows ~= page.rows
                or first.columns ~= page.columns) then
                fail("unsupported", "tiff", nil, "%s: the pages differ in size or type", name)
            elseif not first then
                stack.description = type(tags[270]) == "string" and tags[270] or nil
                stack.resolution = rational(tags[282]) and rational(tags[283])
                    and {x = tags[282][1], y = tags[283][1], unit = whole(tags, name, 296, 2)}
                        or nil
            end
            stack.pages[#stack.pages + 1] = page
        end
    end
    return stack
end

-- ---------------------------------------------------------------------------------------------
-- Reading

-- Pages that have to be decoded, or lie anywhere.
local paged = volumes.file_class {}

function paged:fill(block, first)
    local flat = #self.shape == 2
    local pages, threads = self.pages, 1
    local each = self.scratch_bytes
    if each > 0 then
        local per_page = #pages[1].offsets
        threads = math.max(1, math.min(per_page, self.threads))
    end
    local scratch <close> = each > 0 and mb.empty({each * threads}, {dtype = "u8",
        device = block.device}) or nil
    for i = 1, flat and 1 or block.shape[1] do
        local page <close> = flat and block:view() or block:view(i)
        self.file:read_tiff(page, pages[flat and 1 or first[1] + i], first[#first - 1],
            first[#first], scratch)
    end
end

--- A stack as a volume (moonbeam.volumes), with `meta`: {kind, text, channels, slices, frames,
-- spacing, unit, resolution}. Options: channel and frame (1-based): the slices of one channel and
-- time of a hyperstack, (z, y, x); without them all pages in the file's order. `threads` of
-- decoding (default 4) bounds its scratch.
function tiff.open(name, options)
    local file = core.rawfile.open(name)
    local _ <close> = on_error(function() file:close() end)
    local stack = parse(file, name)
    local pages = stack.pages
    local first = pages[1] or fail("io", "tiff", nil, "%s: the file has no page", name)
    local meta = metadata.parse(stack.description)
    meta.resolution, meta.description = stack.resolution, stack.description
    local page_bytes = first.rows * first.columns * volumes.ITEM_BYTES[first.dtype]
    if meta.kind == "imagej" and #pages == 1 and meta.images > 1 then
        if first.compression ~= 1 or first.offsets[1] + meta.images * page_bytes > file:bytes() then
            fail("io", "tiff", nil, "%s: the file is truncated: ImageJ says that it has %d "
                .. "images, which do not fit into its %d bytes", name, meta.images, file:bytes())
        end
        for i = 2, meta.images do
            pages[i] = setmetatable({offsets = {first.offsets[1] + (i - 1) * page_bytes},
                bytes = {page_bytes},
                segment_rows = first.rows}, {__index = first})
        end
        first.offsets, first.bytes, first.segment_rows = {first.offsets[1]}, {page_bytes},
            first.rows
    end
    if meta.kind and meta.channels * meta.slices * meta.frames ~= #pages then
        if options.channel or options.frame then
            fail("io", "tiff", nil,
                "%s: the metadata name %d channels x %d slices x %d frames, but the file has "
                .. "%d pages",
                name, meta.channels, meta.slices, meta.frames, #pages)
        end
        meta.channels, meta.slices, meta.frames = 1, #pages, 1
    end
    if options.channel or options.frame then
        local c, t = options.channel or 1, options.frame or 1
        if not meta.kind and c * t ~= 1 or meta.kind and (c > meta.channels or t > meta.frames) then
            fail("argument", "tiff", nil, "%s: there is no channel %d of frame %d; the file "
                .. "has %d channels and %d frames",
                name, c, t, meta.channels or 1, meta.frames or 1)
        end
        local chosen = {}
        for z = 1, meta.kind and meta.slices or 0 do
            chosen[z] = pages[metadata.page(meta, c - 1, z - 1, t - 1) + 1] or fail("io", "tiff",
                nil, "%s: the metadata name a page that the file does not have", name)
        end
        pages = meta.kind and chosen or pages
    end
    local shape = #pages == 1 and {first.rows, first.columns} or {#pages, first.rows, first.columns}
    local made = {file = file, shape = shape, dtype = first.dtype, meta = meta, place = "file"}
    local offset, distance = regular(pages, page_bytes)
    if offset then
        made.offset, made.swap = offset, first.swap
        made.steps = volumes.dense_steps(shape, first.dtype)
        if #shape == 3 then
            made.steps[1] = distance
        end
        made = volumes.raw(made)
    else
        made.pages, made.scratch_bytes = pages, 0
        for _, page in ipairs(pages) do
            made.scratch_bytes = math.max(made.scratch_bytes,
                core.rawfile.tiff_scratch_bytes(page, page.dtype))
        end
        made.threads = options.threads or 4
        setmetatable(made, paged)
    end
    return made
end

--- Reads a stack: (page, row, column), or (row, column) for one page. Options: device; channel and
-- frame as for tiff.open. Returns the array and the stack's meta.
function tiff.read(name, options)
    local volume <close> = tiff.open(name, {channel = options.channel, frame = options.frame})
    return volumes.load(volume, options.device or mb.default_device()), volume.meta
end

-- ---------------------------------------------------------------------------------------------
-- Writing

local FORMATS = {u8 = {8, 1}, u16 = {16, 1}, f32 = {32, 3}}

-- Everything before the pixels: text, offset of the pixels.
local function head_of(pages, rows, columns, format, meta, text)
    local page = rows * columns * format[1] // 8
    local ome = meta.kind == "ome"
    local entry_count = meta.resolution and 14 or 11
    -- Beyond the reach of 32-bit offsets: BigTIFF for OME, else one directory, behind which ImageJ
    -- finds all pages.
    local large = pages * (page + 2 + 12 * entry_count + 4) + #text + 64 > 0xffffffff
    local big = large and ome
    local directories = large and not ome and 1 or pages
    local directory_bytes = big and 8 + 20 * entry_count + 8 or 2 + 12 * entry_count + 4
    local start, word = big and 16 or 8, big and "<I8" or "<I4"
    local rational_at = start + directories * directory_bytes
    local text_at = rational_at + 16
    local data_at = (text_at + #text + 15) // 16 * 16
    local parts = {big and "II+\0" .. string.pack("<I2I2I8", 8, 0, 16) or "II*\0"
        .. string.pack("<I4", 8)}
    local function entry(tag, kind, count, value)
        local room = big and 8 or 4
        local inline = string.pack(kind == 3 and "<I2" or kind == 4 and "<I4" or word, value)
        parts[#parts + 1] = string.pack("<I2I2", tag, kind) .. string.pack(word, count) .. inline
            .. ("\0"):rep(room - #inline)
    end
    local long = big and 16 or 4
    for i = 1, directories do
        parts[#parts + 1] = string.pack(big and "<I8" or "<I2", entry_count)
        entry(256, 4, 1, columns)
        entry(257, 4, 1, rows)
        entry(258, 3, 1, format[1])
        entry(259, 3, 1, 1)
        entry(262, 3, 1, 1)
        entry(270, 2, #text, text_at)
        entry(273, long, 1, data_at + (i - 1) * page)
        entry(277, 3, 1, 1)
        entry(278, 4, 1, rows)
        entry(279, long, 1, page)
        if meta.resolution then
            entry(282, 5, 1, rational_at)
            entry(283, 5, 1, rational_at + 8)
            entry(296, 3, 1, meta.resolution.unit)
        end
        entry(339, 3, 1, format[2])
        parts[#parts + 1] = string.pack(word, i < directories and start + i * directory_bytes or 0)
    end
    local x, y = {0, 1}, {0, 1}
    if meta.resolution then
        x, y = meta.resolution.x, meta.resolution.y
        -- In a BigTIFF a rational stands in the entry itself.
        if big then
            local values = {[282] = string.pack("<I4I4", x[1], x[2]),
                [283] = string.pack("<I4I4", y[1], y[2])}
            for i, part in ipairs(parts) do
                local tag = #part == 20 and string.unpack("<I2", part)
                parts[i] = tag and values[tag] and part:sub(1, 12) .. values[tag] or part
            end
        end
    end
    parts[#parts + 1] = string.pack("<I4I4I4I4", x[1], x[2], y[1], y[2])
    parts[#parts + 1] = text .. ("\0"):rep(data_at - text_at - #text)
    return table.concat(parts), data_at, page
end

local writer = volumes.writer_class {}

--- The volume (z, y, x) or (y, x) of a channel and frame (1-based; default 1).
function writer:volume(channel, frame)
    local counts, c, t = self.counts, (channel or 1) - 1, (frame or 1) - 1
    local function page(z)
        return metadata.page({channels = counts.channels, slices = counts.slices,
            frames = counts.frames, order = self.order}, c, z, t)
    end
    local steps = volumes.dense_steps(self.shape, self.dtype)
    if #steps == 3 then
        steps[1] = self.page_bytes * (counts.slices > 1 and page(1) - page(0) or 1)
    end
    return volumes.raw {file = self.file, shape = self.shape, dtype = self.dtype, steps = steps,
        offset = self.data_at + page(0) * self.page_bytes}
end

--- A new stack to be written block by block: an object with volume(channel, frame), finish() and
-- close(); without finish nothing is left. Options: shape ({z, y, x} or {y, x}) and dtype (u8, u16,
-- f32) of one volume; channels and frames (default 1); meta, of the file it was made from
-- (tiff.open); spacing and unit, where that does not tell; overwrite (default false).
function tiff.create(name, options)
    file_name.check(name, file_name.TIFF, nil, "tiff.create")
    local shape, dtype = options.shape, options.dtype
    local format = FORMATS[dtype] or fail("dtype", "tiff", nil,
        "%s: a TIFF file cannot hold %s: cast it to u8, u16 or f32", name, dtype)
    if #shape ~= 2 and #shape ~= 3 then
        fail("shape", "tiff", nil, "%s: a stack has 2 or 3 axes, not %d", name, #shape)
    end
    local meta = setmetatable({}, {__index = options.meta or {}})
    meta.spacing, meta.unit = options.spacing or meta.spacing, options.unit or meta.unit
    local counts = {channels = options.channels or 1, slices = #shape == 3 and shape[1] or 1,
        frames = options.frames or 1}
    local text = metadata.compose(meta, counts, dtype) .. "\0"
    local rows, columns = shape[#shape - 1], shape[#shape]
    local pages = counts.channels * counts.slices * counts.frames
    local head, data_at, page = head_of(pages, rows, columns, format, meta, text)
    local made = setmetatable({shape = shape, dtype = dtype, counts = counts, data_at = data_at,
        page_bytes = page,
        order = meta.kind == "ome" and meta.order or "CZT"}, writer)
    made:start(name, options.overwrite, data_at + pages * page, head)
    return made
end

--- Writes u8, u16 or f32, (page, row, column) or (row, column). Options: spacing (of pages,
-- ImageJ), unit, meta as for tiff.create, overwrite (default false). The file gets its name when it
-- is complete.
function tiff.write(name, array, options)
    local file <close> = tiff.create(name, {shape = array.shape, dtype = array.dtype,
        spacing = options.spacing,
        unit = options.unit, meta = options.meta, overwrite = options.overwrite})
    volumes.store(file:volume(), array)
    file:finish()
end

local ONE = declared.options({"channel", "count", "of a hyperstack", usual = "all pages"},
    {"frame", "count", "of a hyperstack", usual = "all pages"},
    {"threads", "count", "of decoding; bounds its scratch", usual = "4"})
local WRITE = declared.options(
    {"overwrite", "boolean", "replace an existing file"},
    {"spacing", "any", "of voxels"}, {"unit", "string", "of the spacing"},
    {"meta", "table", "what the file that it was made from says"})

return declared.module(tiff, "tiff", {
    open = {"name: any?", ONE},
    read = {"name: any?", declared.options(declared.without(ONE, "threads"),
        {"device", "device", "where the array is made", usual = "the host"})},
    create = {"name: any?", declared.options(WRITE,
        {"shape", "any", "extents of a volume"}, {"dtype", "any", "its element type"},
        {"channels", "any", "how many"}, {"frames", "any", "how many"})},
    write = {"name: string, array: array", WRITE},
})
