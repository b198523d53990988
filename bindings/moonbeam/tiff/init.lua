--- TIFF stacks of one channel: integers of 8, 16, 32 and 64 bit, floats of 16, 32 and 64 bit.
--
-- Reads classic files and BigTIFF, either byte order, strips and tiles, uncompressed, LZW, Deflate,
-- PackBits or Zstandard, with predictors, and ImageJ's stacks above 4 GB (one directory, all pages
-- behind one another). int8 and int16 are read as i32; uint32, int64 and uint64 as f64 (an integer
-- of 64 bits that f64 does not have is an error); packed samples of 9 to 15 bits as u16. Writes
-- uncompressed: classic TIFF; above 4 GB BigTIFF, or ImageJ's layout with tiff_layout = "imagej".
-- The pixels are moved by runtime/files/tiff_segments.c and rawfile.c.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local head = require "moonbeam.tiff.head"
local json = require "moonbeam.internal.json"
local large = require "moonbeam.tiff.large"
local compose = require "moonbeam.tiff.meaning.compose"
local meaning = require "moonbeam.tiff.meaning"
local on_error = require "moonbeam.internal.on_error"
local order = require "moonbeam.tiff.meaning.order"
local origin = require "moonbeam.result.origin"
local paged = require "moonbeam.tiff.paged"
local pages_of = require "moonbeam.tiff.pages"
local shards = require "moonbeam.zarr.shards"
local shown_range = require "moonbeam.result.shown_range"
local volumes = require "moonbeam.volumes"
local voxel = require "moonbeam.tiff.voxel"

local tiff = {}

local ONE = declared.options({"channel", "count", "of a TIFF hyperstack or OME-Zarr",
    usual = "all pages"},
    {"frame", "count", "of a TIFF hyperstack or OME-Zarr", usual = "all pages"},
    {"axes", "string", "of a TIFF file: what its pages are, Z, C and T from slow to fast, whatever "
        .. "the file says: Z, ZC, or ZC2 where there are 2 channels", usual = "what the file says"},
    {"pages", "range", "of a TIFF file: the first and the last of its pages to be read; without "
        .. "axes they are slices", usual = "all pages"},
    {"image", "count", "of a TIFF file that has several", usual = "the only one"})

-- Pages one after another at equal distance, uncompressed and not widened: the first offset and the
-- distance, or nil.
local function regular(pages, page_bytes)
    local first, distance = pages[1].offsets[1], nil
    for i, page in ipairs(pages) do
        local at = page.offsets[1]
        if page.path or page.samples or page.compression ~= 1 or page.predictor ~= 1
            or page.segment_columns ~= page.columns then
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

-- ---------------------------------------------------------------------------------------------
-- Reading

-- Opens a file of a set to read its directories.
local function directories_of(name)
    local file <close> = core.rawfile.open(name, "tiff.open")
    local stack = pages_of(file, name)
    for _, page in ipairs(stack.directories) do
        page.path = name
    end
    return stack.directories
end

-- The metadata of a stack, and its pages: all, or those of the channel and the frame that the
-- options name.
local function meta_and_pages(name, options, file)
    local stack = pages_of(file, name)
    stack.name, stack.bytes, stack.read = name, file:bytes(), directories_of
    local meta = meaning.of(stack, options)
    meta.resolution, meta.description = stack.resolution, stack.descriptions[1]
    meta.voxel = voxel.of(meta, stack.descriptions)
    local pages = meta.planes
    if options.channel or options.frame then
        local c, t = options.channel or 1, options.frame or 1
        if c > meta.channels or t > meta.frames then
            fail("argument", "tiff", nil, "%s: there is no channel %d of frame %d; the file "
                .. "has channels 1 to %d and frames 1 to %d", name, c, t, meta.channels,
                meta.frames)
        end
        pages = meaning.slices(meta, c - 1, t - 1)
    elseif meta.channels * meta.frames == 1 then
        pages = meaning.slices(meta, 0, 0)
    end
    local all = meta.planes
    meta.planes, meta.channel = nil, options.channel
    return meta, pages, all
end

-- The bytes of scratch that decoding takes with any of all planes, so that each channel and time
-- takes the same; and whether one is compressed.
local function decoding_of(all, threads)
    local bytes, segments, compressed = 0, 1, false
    for _, page in ipairs(all) do
        compressed = compressed or page.compression ~= 1
        segments = math.max(segments, #page.offsets)
        bytes = math.max(bytes, core.rawfile.tiff_scratch_bytes(page, page.dtype))
    end
    return bytes * math.min(segments, threads), compressed
end

--- A stack as a volume (moonbeam.volumes), with `meta`: {kind, text, channels, slices, frames,
-- order, spacing, unit, resolution, voxel (its sizes in m: {pixel, row, step}, as far as they are
-- told), named (the channels), warnings (lines: what is not as the file says)}. With `channel` or
-- `frame` it has the slices of one channel and time of a hyperstack, (z, y, x); without them all
-- pages in the order that the file says. What the pages are is in their descriptions
-- (tiff/meaning), and in other files of a set; what does not add up is refused. `axes`, `pages` and
-- `image` say it instead.
function tiff.open(name, options)
    local file = core.rawfile.open(name, "tiff.open")
    local _ <close> = on_error(function() file:close() end)
    local meta, pages, all = meta_and_pages(name, options, file)
    local first = pages[1]
    local shape = #pages == 1 and {first.rows, first.columns} or {#pages, first.rows, first.columns}
    local made = {file = file, shape = shape, dtype = first.dtype, meta = meta, place = "file"}
    local decoding, compressed = decoding_of(all, options.threads)
    local offset, distance = regular(pages, first.page_bytes)
    if offset and decoding == 0 then
        made.offset, made.swap = offset, first.swap
        made.steps = volumes.dense_steps(shape, first.dtype)
        if #shape == 3 then
            made.steps[1] = distance
        end
        return volumes.raw(made)
    end
    made.pages, made.decoding, made.compressed = pages, decoding, compressed or nil
    return paged.volume(made)
end

--- Reads a stack: (page, row, column), or (row, column) for one page. Returns the array and the
-- stack's meta.
function tiff.read(name, options)
    local volume <close> = tiff.open(name, declared.part(ONE, options))
    return volumes.load(volume, options.device or mb.default_device()), volume.meta
end

-- ---------------------------------------------------------------------------------------------
-- Writing

local writer = volumes.writer_class {}

-- A range of values whose text is as long as any.
local WIDEST <const> = {-1.23456789e-300, -1.23456789e-300}

--- The volume (z, y, x) or (y, x) of a channel and frame (1-based; default 1).
function writer:volume(channel, frame)
    local counts, c, t = self.counts, (channel or 1) - 1, (frame or 1) - 1
    local function page(z)
        return order.number({channels = counts.channels, slices = counts.slices,
            frames = counts.frames, order = self.order}, c, z, t)
    end
    local steps = volumes.dense_steps(self.shape, self.dtype)
    if #steps == 3 then
        steps[1] = self.page_bytes * (counts.slices > 1 and page(1) - page(0) or 1)
    end
    return volumes.raw {file = self.file, shape = self.shape, dtype = self.dtype, steps = steps,
        offset = self.data_at + page(0) * self.page_bytes}
end

--- Completes the file. What ImageJ shows is known when all is written.
function writer:finish()
    local stack = self.stack
    if self.file and stack.shown then
        stack.text = stack.shown(shown_range.of_file(self.file, self.data_at, {stack.pages,
            stack.rows, stack.columns}, self.dtype))
        self.file:put(0, (head.compose(stack)))
    end
    if self.file then
        self.file:finish()
    end
end

--- A new stack to be written block by block: an object with volume(channel, frame), finish() and
-- close(); without finish nothing is left. `shape` is {z, y, x} or {y, x}, of one volume.
function tiff.create(name, options)
    file_name.check(name, file_name.TIFF, nil, "tiff.create")
    shards.check_name("tiff.create", name, options.zarr_layout)
    local shape, dtype = options.shape, options.dtype
    if not head.format(dtype) then
        fail("dtype", "tiff", nil, "%s: a TIFF file cannot hold %s: cast it to u8, u16 or f32",
            name, dtype)
    end
    if #shape ~= 2 and #shape ~= 3 then
        fail("shape", "tiff", nil, "%s: a stack has 2 or 3 axes, not %d", name, #shape)
    end
    local from = options.meta or {}
    if from.kind ~= "imagej" and from.kind ~= "ome" and not from.said and next(from.voxel or {})
        then -- no description of the input says its size as ImageJ does
        from = voxel.said(from, {})
    end
    local meta = setmetatable({}, {__index = from})
    meta.spacing, meta.unit = options.spacing or meta.spacing, options.unit or meta.unit
    local counts = {channels = options.channels, slices = #shape == 3 and shape[1] or 1,
        frames = options.frames, rows = shape[#shape - 1], columns = shape[#shape]}
    local ome = compose.is_ome(name, meta)
    local pages = counts.channels * counts.slices * counts.frames
    if large.is_file(shape, volumes.ITEM_BYTES[dtype], counts.channels * counts.frames) then
        large.check("tiff.create", name, options.tiff_layout, ome)
    end
    local stack = {pages = pages, rows = shape[#shape - 1], columns = shape[#shape], dtype = dtype,
        resolution = meta.resolution, layout = options.tiff_layout, info = options.origin
            and json(origin.facts(options.origin), {"program", "version", "title"}) or nil}
    local function text(shown)
        return compose.text(meta, counts, dtype, ome, shown)
    end
    stack.text = text(not ome and WIDEST or nil)
    local _, data_at = head.compose(stack)
    stack.data_at, stack.text, stack.shown = data_at, text(), not ome and text or nil
    local before, _, page = head.compose(stack)
    local made = setmetatable({shape = shape, dtype = dtype, counts = counts, data_at = data_at,
        page_bytes = page, order = ome and compose.order(meta) or "CZT", stack = stack},
        writer)
    made:start(name, options.overwrite, data_at + pages * page, before)
    return made
end

--- Writes u8, u16 or f32, (page, row, column) or (row, column). The file gets its name when it is
-- complete.
function tiff.write(name, array, options)
    options.shape, options.dtype = array.shape, array.dtype
    volumes.complete(tiff.create(name, options), array)
end

local WRITE = declared.options(
    {"overwrite", "boolean", "replace an existing file", default = false},
    {"spacing", "number", "of voxels, for TIFF", usual = "that of meta"},
    {"unit", "string", "of the spacing, for TIFF", usual = "that of meta"},
    {"meta", "table", "what the file that it was made from says (tiff.open): for TIFF; for Zarr "
        .. "its voxel, interval of frames and names of channels"},
    {"origin", "table", "how it was made: {title, input, parameters}, but for .npy"},
    {"voxel", "table", "its size in m: {pixel, step}, for Zarr", usual = "that of meta"},
    large.option, shards.option,
    {"inside", "string", "a folder that a Zarr folder is made in, which the caller removes"})

return declared.module(tiff, "tiff", {
    open = {"name: string", declared.options(ONE,
        {"threads", "count", "of decoding; bounds its scratch", default = 4})},
    read = {"name: string", declared.options(ONE,
        {"device", "device", "where the array is made", usual = "the default device"})},
    create = {"name: string", declared.options(WRITE,
        {"shape", "extents", "of one volume", required = true},
        {"dtype", "string", "element type; TIFF files hold u8, u16 and f32", required = true},
        {"channels", "count", "how many, for TIFF and Zarr", default = 1},
        {"frames", "count", "how many, for TIFF and Zarr", default = 1})},
    write = {"name: string, array: array", WRITE},
})
