--- TIFF stacks, read and written in Lua: uncompressed, 8 and 16 bit and 32-bit float, one channel. Reads classic files and
-- BigTIFF, either byte order, and ImageJ's stacks above 4 GB; writes the form that ImageJ opens, at any size.
-- A page at a time goes through memory. Compressed files are refused: a library would be needed.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"

local tiff = {}

local function fail(name, message)
    mb.raise("io", ("%s: %s"):format(name, message), {op = "tiff"})
end

local TYPES = {[1] = "I1", [2] = "c1", [3] = "I2", [4] = "I4", [5] = "I4I4", [11] = "f", [12] = "d", [16] = "I8"}
local SIZES = {[1] = 1, [2] = 1, [3] = 2, [4] = 4, [5] = 8, [11] = 4, [12] = 8, [16] = 8}

-- One directory: {tag = list of values, or text}, and the offset of the next.
local function directory(file, name, order, big, offset)
    file:seek("set", offset)
    local count = string.unpack(order .. (big and "I8" or "I2"), file:read(big and 8 or 2) or fail(name, "cut short"))
    local width = big and 20 or 12
    local text = file:read(count * width + (big and 8 or 4))
    if not text or #text < count * width then
        fail(name, "cut short")
    end
    local tags = {}
    for i = 0, count - 1 do
        local tag, kind, n = string.unpack(order .. "I2I2" .. (big and "I8" or "I4"), text, i * width + 1)
        local size = SIZES[kind]
        if size then
            local bytes, inline = size * n, big and 8 or 4
            local value = text:sub(i * width + (big and 13 or 9), i * width + width)
            if bytes > inline then
                file:seek("set", (string.unpack(order .. (big and "I8" or "I4"), value)))
                value = file:read(bytes) or fail(name, "cut short")
            end
            if kind == 2 then
                tags[tag] = value:sub(1, bytes):gsub("\0.*", "")
            else
                local list = {}
                for k = 1, n do
                    local first, second = string.unpack(order .. TYPES[kind], value, (k - 1) * size + 1)
                    list[k] = kind == 5 and first / math.max(second, 1) or first
                end
                tags[tag] = list
            end
        end
    end
    local next_offset = 0
    if #text >= count * width + (big and 8 or 4) then
        next_offset = string.unpack(order .. (big and "I8" or "I4"), text, count * width + 1)
    end
    return tags, next_offset
end

local dtypes = {["1 8"] = "u8", ["1 16"] = "u16", ["3 32"] = "f32"}

-- Where the pages are: {order, dtype, rows, columns, pages = {{{offset, bytes}, ...}, ...}, description, spacing}.
local function layout_of(file, name)
    local head = file:read(16) or ""
    local order = head:sub(1, 2) == "II" and "<" or head:sub(1, 2) == "MM" and ">" or fail(name, "no TIFF file")
    local version = #head >= 8 and string.unpack(order .. "I2", head, 3) or 0
    local big = version == 43
    if version ~= 42 and not big then
        fail(name, "no TIFF file")
    end
    local offset = string.unpack(order .. (big and "I8" or "I4"), head, big and 9 or 5)
    local layout, seen = {order = order, pages = {}}, {}
    while offset ~= 0 do
        if seen[offset] then
            fail(name, "its directories go in a circle")
        end
        seen[offset] = true
        local tags
        tags, offset = directory(file, name, order, big, offset)
        local function one(tag, default)
            return tags[tag] and tags[tag][1] or default
        end
        if one(259, 1) ~= 1 then
            fail(name, ("compressed (method %d); save it without compression"):format(one(259)))
        elseif one(277, 1) ~= 1 then
            fail(name, ("%d samples per pixel; only grey images are read"):format(one(277)))
        elseif not tags[273] then
            fail(name, "tiled; save it in strips")
        end
        local key = ("%d %d"):format(one(339, 1), one(258, 1))
        local dtype = dtypes[key] or fail(name, ("%d bits of sample format %d; there are u8, u16 and f32"):format(one(258, 1),
            one(339, 1)))
        local columns, rows = one(256), one(257)
        if layout.dtype and (layout.dtype ~= dtype or layout.rows ~= rows or layout.columns ~= columns) then
            fail(name, "its pages differ in size or type")
        end
        layout.dtype, layout.rows, layout.columns = dtype, rows, columns
        layout.description = layout.description or tags[270]
        local strips, bytes = {}, tags[279] or {}
        for i, at in ipairs(tags[273]) do
            strips[i] = {at, bytes[i] or 0}
        end
        layout.pages[#layout.pages + 1] = strips
    end
    if not layout.dtype then
        fail(name, "it has no page")
    end
    -- ImageJ above 4 GB: one directory, all pages behind one another.
    local text = layout.description or ""
    local images = math.tointeger(tonumber(text:match("^ImageJ=.-images=(%d+)")))
    local page = layout.rows * layout.columns * (layout.dtype == "u8" and 1 or layout.dtype == "u16" and 2 or 4)
    if images and #layout.pages == 1 and images > 1 then
        local start = layout.pages[1][1][1]
        for i = 1, images do
            layout.pages[i] = {{start + (i - 1) * page, page}}
        end
    end
    layout.page_bytes = page
    layout.spacing = tonumber(text:match("spacing=([%d.eE+-]+)"))
    return layout
end

--- Reads a stack: u8, u16 or f32 (page, row, column), or (row, column) for one page. Options: device. Returns the array and
-- {spacing =, description =} (ImageJ's distance of pages, the first page's text).
function tiff.read(name, options)
    options = options_of(options, "tiff.read", {"device"})
    local opened, problem = io.open(name, "rb")
    if not opened then
        fail(name, problem)
    end
    local file <close> = opened
    local layout = layout_of(file, name)
    local count = #layout.pages
    local volume = mb.empty({count, layout.rows, layout.columns}, {dtype = layout.dtype, device = options.device})
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil then
            volume:release()
        end
    end})
    local swap = layout.order == ">" and layout.dtype ~= "u8" and (layout.dtype == "u16" and 2 or 4) or nil
    local blank = volume.device.dry and ("\0"):rep(layout.page_bytes) -- the same steps, with nothing in them
    for i, strips in ipairs(layout.pages) do
        local parts = {blank or nil}
        for k, strip in ipairs(blank and {} or strips) do
            file:seek("set", strip[1])
            parts[k] = file:read(strip[2]) or ""
        end
        local text = table.concat(parts)
        if swap then
            text = text:gsub(("."):rep(swap), string.reverse)
        end
        if #text < layout.page_bytes then
            fail(name, ("page %d is cut short"):format(i))
        end
        local page <close> = mb.from_string(text:sub(1, layout.page_bytes), {layout.rows, layout.columns},
            {dtype = layout.dtype, device = volume.device})
        local place <close> = volume:view(i)
        mb.convert(page, layout.dtype, {out = place})
    end
    local meta = {spacing = layout.spacing, description = layout.description}
    if count == 1 then
        local stack <close> = volume
        return stack:reshape(layout.rows, layout.columns), meta
    end
    return volume, meta
end

--- Writes u8, u16 or f32, (page, row, column) or (row, column). Options: spacing (of pages, ImageJ), unit. The file gets its
-- name when it is complete.
function tiff.write(name, array, options)
    options = options_of(options, "tiff.write", {"spacing", "unit"})
    local formats = {u8 = {8, 1}, u16 = {16, 1}, f32 = {32, 3}}
    local format = formats[array.dtype] or fail(name, ("%s does not go into a TIFF: cast it to u8, u16 or f32"):format(array.dtype))
    if array.rank ~= 2 and array.rank ~= 3 then
        fail(name, ("an array of %d axes is no stack"):format(array.rank))
    elseif array.device.dry then
        return
    end
    local shape = array.shape
    local pages, rows, columns = array.rank == 3 and shape[1] or 1, shape[#shape - 1], shape[#shape]
    local page = rows * columns * format[1] // 8
    local description = ("ImageJ=1.54f\nimages=%d\nslices=%d\nloop=false\n%s%s\0"):format(pages, pages,
        options.spacing and ("spacing=%g\n"):format(options.spacing) or "", options.unit and ("unit=%s\n"):format(options.unit) or "")
    local entry_count, directories = 10, pages
    local directory_bytes = 2 + 12 * entry_count + 4
    if pages * (page + directory_bytes) + #description + 64 > 0xffffffff then
        directories = 1 -- beyond the reach of 32-bit offsets: ImageJ's form, contiguous behind one directory
    end
    local text_at = 8 + directories * directory_bytes
    local data_at = (text_at + #description + 15) // 16 * 16
    local part = name .. ".part"
    local opened, problem = io.open(part, "wb")
    if not opened then
        fail(name, problem)
    end
    local complete
    local _ <close> = setmetatable({}, {__close = function()
        if not complete then
            os.remove(part)
        end
    end})
    local file <close> = opened
    local function put(...)
        local ok, message = file:write(...)
        if not ok then
            fail(name, message)
        end
    end
    put("II*\0", string.pack("<I4", 8))
    for i = 1, directories do
        local function entry(tag, kind, count, value)
            return string.pack(kind == 3 and "<I2I2I4I2I2" or "<I2I2I4I4", tag, kind, count, value, 0)
        end
        put(string.pack("<I2", entry_count), entry(256, 4, 1, columns):sub(1, 12), entry(257, 4, 1, rows):sub(1, 12),
            entry(258, 3, 1, format[1]), entry(259, 3, 1, 1), entry(262, 3, 1, 1),
            string.pack("<I2I2I4I4", 270, 2, #description, text_at), string.pack("<I2I2I4I4", 273, 4, 1, data_at + (i - 1) * page),
            string.pack("<I2I2I4I4", 278, 4, 1, rows), string.pack("<I2I2I4I4", 279, 4, 1, page), entry(339, 3, 1, format[2]),
            string.pack("<I4", i < directories and 8 + i * directory_bytes or 0))
    end
    put(description, ("\0"):rep(data_at - text_at - #description))
    for i = 1, pages do
        local view <close> = array.rank == 3 and array:view(i) or array:view()
        local dense <close> = not view.contiguous and view:copy() or nil
        put((dense or view):to_string())
    end
    local ok, message = file:close()
    if not ok then
        fail(name, message)
    end
    complete = os.rename(part, name)
    if not complete then
        fail(name, "cannot be given its name")
    end
end

return tiff
