--- Tomography scans in HDF5: Data Exchange and NXtomo, with their usual variants.
--
-- Where things are is found by scan/layout.lua and can be named by options. Frames are not touched
-- by open; they are read by rows, straight into arrays.

local axes = require "moonbeam.scan.statements.axes"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local surface = require "moonbeam.internal.command_line.surface"
local fail = require "moonbeam.internal.fail"
local fields = require "moonbeam.scan.fields"
local find_angles = require "moonbeam.scan.stored_angles"
local frames = require "moonbeam.scan.frames"
local growing = require "moonbeam.scan.growing"
local image_frames = require "moonbeam.scan.image_frames"
local image_scan = require "moonbeam.scan.image_scan"
local layout_of = require "moonbeam.scan.layout"
local lists = require "moonbeam.scan.lists"
local left_out = require "moonbeam.scan.left_out"
local missing = require "moonbeam.scan.missing"
local pixel_size = require "moonbeam.scan.pixel_size"
local picked = require "moonbeam.scan.picked"
local reading = require "moonbeam.scan.reading"
local source = require "moonbeam.scan.source"
local statements = require "moonbeam.scan.statements"
local timeline = require "moonbeam.scan.timeline"
local report_lines = require "moonbeam.scan.report_lines"
local told = require "moonbeam.scan.statements.told"
local volumes = require "moonbeam.volumes"

local scan = {of_arrays = require("moonbeam.scan.arrays").new}
local methods = declared.class("scan", {warn = "text: string"}, reading.methods)
local metatable = {__name = "moonbeam.scan", __index = fields(methods)}

-- What decoding takes of the largest frame that libhdf5 caches (h5dataset.c).
local CACHED <const> = 64 << 20

-- The most bytes that a thread takes to decode frames. Deflate is decoded in parts: a frame packed
-- and unpacked. Other codecs decode a chunk at once, and libblosc takes two of its blocks, which
-- are at most the chunk (mb_blosc_own_bytes).
local function decoding_bytes(s, chunks)
    local frame = s.rows * s.cols * volumes.ITEM_BYTES[s.dtype]
    for _, name in ipairs {"blosc", "lz4", "bitshuffle", "zstd"} do
        if s.data.filters:find(name, 1, true) then
            return (name == "blosc" and 4 or 2) * chunks[1] * frame
        end
    end
    return 2 * math.min(frame, CACHED)
end

local function describe_storage(s)
    local chunks = s.data.chunks
    if not chunks or not s.data.filters then
        return
    end
    s.chunk_rows, s.decoding_bytes = chunks[2], decoding_bytes(s, chunks)
    if chunks[2] > 1 then
        s:warn(("the frames are compressed (%s) in chunks of %d rows: every read of fewer rows "
            .. "decodes a whole chunk again (a reconstruction decodes them once, into a "
            .. "temporary file)"):format(s.data.filters, chunks[2]))
    end
end

-- The projections and where the flats and darks come from.
local function find_frames(s, layout, options)
    s.data_path = layout.data
    s.data = frames.dataset(s, s.file, layout.data, "data")
    s.n_frames, s.rows, s.cols = table.unpack(s.data.shape)
    s.dtype = s.data.dtype
    describe_storage(s)
    missing.check_count(("'%s' in '%s'"):format(layout.data, s.file.path), s.n_frames)
    local runs = missing.present(s, s.data, s.file, options.allow_missing)
    local projections, flats, darks = frames.sorted(s, layout)
    s.n_projections = #projections
    s.frames, s.positions = missing.keep(projections, runs)
    if #s.frames == 0 then
        fail("io", "scan.open", "data", "no projection of '%s' was written", s.path)
    end
    s.positions = left_out.positions(s.positions, options.bad_projections)
    s.frames = picked(projections, s.positions)
    flats, darks = missing.keep(flats, runs), missing.keep(darks, runs)
    s.flat_source = frames.reference(s, layout, options, "flats", flats)
    s.dark_source = frames.reference(s, layout, options, "darks", darks)
    s.n_flats = s.flat_source and s.flat_source.count or 0
    s.n_darks = s.dark_source and s.dark_source.count or 0
    if s.n_flats == 0 and options.flats ~= false then
        s:warn "there are no flats: the projections cannot be normalized"
    end
    if s.n_darks == 0 and options.darks ~= false then
        s:warn "there are no darks: they count as zero"
    end
    if s.flat_source and s.flat_source.keyed then -- without those that an option leaves out
        flats = frames.indices(s.flat_source.parts[1].runs)
    end
    if s.dark_source and s.dark_source.keyed then
        darks = frames.indices(s.dark_source.parts[1].runs)
    end
    timeline.find(s, layout, options, flats, darks)
end

local function fill(s, options)
    s.counts_as, s.axes_given = options.counts_as, options.axes
    s.access = {allow_external = options.allow_external, allow_missing = options.allow_missing}
    s.file = source.open(s, s.path)
    local layout = layout_of(s.file, options)
    s.format = layout.format
    for _, text in ipairs(layout.warnings) do
        s:warn(text)
    end
    if not s.file:exists(layout.data) then
        source.refuse(s.file, layout.data, "data")
    end
    find_frames(s, layout, options)
    find_angles(s, layout, options)
    statements.read(s, layout)
    s.pixel_size = pixel_size.find(s, layout, options)
end

-- The scan, or nil and an error object.
local function open_once(path, options)
    local known, of_images = pcall(image_frames.is, path)
    if not known then
        return nil, of_images
    end
    local s = not of_images and setmetatable({path = path, warnings = {}, files = {},
        says = {}, stated = {}}, metatable)
    local ok, made = pcall(of_images and image_scan.open or fill, s or path, options)
    if ok then
        return s or made
    elseif s then
        s:close()
    end
    if type(made) ~= "table" then
        error(made, 0)
    end
    return nil, made
end

--- Opens a scan: the scan, or nil and an error object.
--
-- A stack of images needs `angles`. Its frames stay in their files, and what a block needs is read
-- with it; compressed ones are decoded into memory of the host where they fit in half of what its
-- budget leaves. Where one series has projections, flats and darks, ranges say which is what, in
-- `path`, `flats_file` and `darks_file`: "FOLDER:1:20,221:240" are its files 1 to 20 and 221 to
-- 240; or `image_key` does. Files whose numbers lack are refused where the angles are {first,
-- last}.
--
-- The options name what the file does not say, or says in an unusual place. A dataset may be that
-- of another file, "FILE:/path", for all but `data`. A list may be a table of numbers, a text of
-- them ("0,0,180"), a text file, of which "FILE:2" is the second column, or a dataset. Angles are
-- one for each projection or {first, last}; flats = false and darks = false leave them out.
--
-- A scan that a writer has open is refused, with what was seen of it, or waited for (`wait`): until
-- it is closed and has all frames that its angles or image keys speak of. So is one that is not
-- there yet.
scan.open = declared("scan.open", {
    {"path", "string", "HDF5 file, Data Exchange or NXtomo; or a stack of images: TIFF, a folder "
        .. "or pattern of TIFF files, Zarr, .npy, each with ranges of its frames, or all"},
    options = declared.options(
        {"data", "string", "dataset with the projections"},
        {"flats", "any", "dataset with the flats, or several (a list, or between commas): of two, "
            .. "the first was taken before the projections, the second after them"},
        {"darks", "any", "dataset with the darks, or several"},
        {"angles", "any", "the angles: " .. lists.FORMS},
        {"angle_unit", "string", "unit of the angles, where the file does not say: deg or rad"},
        {"image_key", "any", "image keys of all frames (0 projection, 1 flat, 2 dark): "
            .. lists.FORMS .. "; frames whose image_key_control is not their key are then taken, "
            .. "too"},
        pixel_size.option,
        {"flats_file", "string", "a file of their own for the flats, HDF5 or images, also with "
            .. "ranges, or several between commas; or a number, the counts of every pixel without "
            .. "the sample"},
        {"darks_file", "string", "the same for the darks"},
        timeline.options[1], timeline.options[2], timeline.options[3], timeline.options[4],
        {"bad_flats", "any", "flats to leave out: a number or a list, which count in the dataset "
            .. "or stack that has them, from 1, and from one of several datasets on in the next"},
        {"bad_darks", "any", "darks to leave out, in the same way"},
        {"bad_projections", "any", "projections to leave out: a number or a list, which count "
            .. "among the projections, from 1; the others keep their angles"},
        {"counts_as", "choice", "what the counts are, where the file says the wrong type: unsigned "
            .. "numbers that it calls signed, or numbers in the other byte order (swapped)",
            choices = {"unsigned", "swapped"}, usual = "as the file says"},
        {"axes", "choice", "the order of the axes of frames in the file, where it does not say it "
            .. "or says another one", choices = axes.ORDERS, usual = "as the file says"},
        {"entry", "string", "the NXtomo entry, where the file has several"},
        {"allow_external", "boolean", "read data that the file refers to outside its own folder; "
            .. "only for files that you trust"},
        {"allow_missing", "boolean", "leave out frames that the file says it has and that were "
            .. "never written, as of a broken-off acquisition; of a series of files, those whose "
            .. "numbers lack: the others keep the angles of their numbers"},
        {"wait", "number", "how long a scan that is still being written, or not there yet, is "
            .. "waited for", unit = "s", min = 0, max = 1e7, usual = "such a scan is refused"},
        {"tell", "callable", "gets a line where the wait begins, and when it sees more"}),
}, function(path, options)
    return growing.wait(path, options, function()
        local opened, problem = open_once(path, options)
        return opened, problem
    end)
end)

function methods:warn(text)
    self.warnings[#self.warnings + 1] = core.error.printable(text)
end

-- What flats or darks there are, as text.
local function references_text(self, what)
    if self.constants and self.constants[what] then
        return ("%s: %s"):format(what, self.constants[what])
    end
    local from = self[what == "flats" and "flat_source" or "dark_source"]
    local groups, parts = 1, from and #from.parts or 1
    if what == "flats" and self.timeline then
        groups = #timeline.groups(self.timeline).counts
    end
    return ("%d %s%s"):format(self["n_" .. what], what,
        groups > 1 and (" in %d groups"):format(groups)
        or parts > 1 and (" in %d datasets"):format(parts) or "")
end

--- What was found in the file, as text of several lines; the warnings are a list of their own.
methods.describe = declared.method("scan:describe()", nil, function(self)
    local lines, ends = {}, told.ends(self)
    local function line(name, ...)
        lines[#lines + 1] = report_lines.line(name, ...)
    end
    line("scan", "%s (%s)", self.path, self.format)
    line("frames", "%d projection%s of %d rows x %d columns, %s, in %s%s", self.n_angles,
        self.n_angles == 1 and "" or "s", self.rows, self.cols,
        surface.TYPES[self.data.stored] or self.data.stored, self.data_path
        .. (self.order ~= axes.ORDERS[1] and (" (stored as %s)"):format(self.order) or ""),
        (self.left_out and "; " .. self.left_out or "") .. ends.frames)
    line("reference", "%s, %s%s%s", references_text(self, "flats"), references_text(self, "darks"),
        self.currents and ", ring current of each frame" or "",
        self.exposures and ", " .. self.exposures.text or "")
    lines[#lines + 1] = report_lines.angles(self, ends.angles)
    lines[#lines + 1] = report_lines.pixel(self, ends.pixel)
    return table.concat(lines, "\n")
end)

--- Closes the files of the scan. A second call does nothing.
methods.close = declared.method("scan:close()", nil, function(self)
    for _, file in ipairs(self.files) do
        file:close()
    end
end)
metatable.__close = methods.close

function metatable:__tostring()
    return ("scan '%s' (%s, %d projections of %d x %d)"):format(core.error.printable(self.path),
        self.format or "?", self.n_angles or 0, self.rows or 0, self.cols or 0)
end

return declared.module(scan, "scan")
