--- Scans whose frames are images (image_frames.lua). The frames stay in their files, and what a
-- block needs is read with it (stored_frames.lua). Compressed frames would be decoded again for
-- each block: where they fit in half of the memory that is left, they are decoded into it when the
-- scan is opened, and it is a scan of arrays.
--
-- One series may have projections, flats and darks: ranges of it, or image keys, say which is what.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local find_angles = require "moonbeam.scan.stored_angles"
local image_frames = require "moonbeam.scan.image_frames"
local left_out = require "moonbeam.scan.left_out"
local list_frames = require "moonbeam.scan.frames"
local on_error = require "moonbeam.internal.on_error"
local pairing = require "moonbeam.scan.series.pairing"
local picked = require "moonbeam.scan.picked"
local pixel_size = require "moonbeam.scan.pixel_size"
local scan_arrays = require "moonbeam.scan.arrays"
local stored_frames = require "moonbeam.scan.stored_frames"
local volumes = require "moonbeam.volumes"

local image_scan = {}

-- Options that name places in an HDF5 file.
local OF_HDF5 = {"data", "entry", "allow_external", "counts_as", "axes"}

-- What kinds of frames there are, in the order in which they are opened.
local KINDS <const> = {"data", "flats", "darks"}

-- What is meant: {data, flats, darks}, each {set, indices} or nil; `keyed`: by the image keys.
local function meant(s, options)
    local data = image_frames.set(s.path)
    local parts = {data = {set = data, indices = data.indices}}
    if options.image_key then
        s.n_frames = #data.indices
        local lists = {list_frames.sorted(s, {image_key = options.image_key})}
        for i, what in ipairs(KINDS) do
            local chosen = picked(data.indices, lists[i])
            parts[what] = #chosen > 0 and options[what] ~= false and {set = data,
                indices = chosen} or nil
        end
        s.chosen, s.keyed_flats = lists[1], parts.flats and lists[2]
    end
    for _, what in ipairs {"flats", "darks"} do
        local name = options[what] ~= false and (options[what .. "_file"] or options[what])
        local constant = math.type(name) and name or name and list_frames.constant(name)
        if constant then
            parts[what] = {constant = constant}
        elseif name then
            local ok, set = pcall(image_frames.set, name)
            if not ok then
                if type(set) == "table" and not set.arg then
                    set.arg = what .. "_file"
                end
                error(set, 0)
            end
            parts[what] = {set = set, indices = set.indices}
            s.keyed_flats = what == "darks" and s.keyed_flats or nil
        end
        if parts[what] and parts[what].indices and options["bad_" .. what] ~= nil then
            parts[what].indices = list_frames.indices(left_out.runs(list_frames.runs(
                parts[what].indices), options["bad_" .. what], what))
        end
    end
    local positions, own = {}, parts.data
    for i = 1, #own.indices do
        positions[i] = i
    end
    s.positions = left_out.positions(positions, options.bad_projections)
    own.all, own.indices = own.indices, picked(own.indices, s.positions)
    return parts
end

-- The indices of flats or darks in the series of the projections; nil where they are elsewhere.
local function in_series(parts, what)
    local index_of = parts[what] and parts[what].set
        and image_frames.common(parts.data.set, parts[what].set)
    local list = {}
    for i, index in ipairs(index_of and parts[what].indices or {}) do
        list[i] = index_of(index)
        if not list[i] then
            return nil
        end
    end
    return index_of and list
end

-- A frame is a projection, a flat or a dark.
local function check_shared(parts)
    local kinds = {}
    for _, what in ipairs(KINDS) do
        for _, index in ipairs(what == "data" and parts.data.indices
            or in_series(parts, what) or {}) do
            if kinds[index] then
                fail("argument", "scan.open", what == "data" and "path" or what .. "_file",
                    "frame %d of '%s' is among the %s and the %s: give ranges that have nothing in "
                    .. "common, such as FOLDER:1:20 and FOLDER:21:200", index,
                    parts.data.set.base, kinds[index] == "data" and "projections" or kinds[index],
                    what)
            end
            kinds[index] = what
        end
    end
end

-- The volumes of projections, flats and darks, by name, with `list`, what is to be released, and
-- the files.
local function opened(parts, warn)
    local made = {list = {}, files = {}, constants = {}}
    local _ <close> = on_error(function()
        for _, each in ipairs(made.list) do
            local _ <close> = each
        end
    end)
    for _, what in ipairs(KINDS) do
        local part = parts[what]
        if part and part.constant then
            made.constants[what] = part.constant
        elseif part then
            local volume, files = image_frames.open(part.set.name, what, part.set, part.indices)
            made[what], made.list[#made.list + 1] = volume, volume
            for _, text in ipairs(volume.meta and volume.meta.warnings or {}) do
                warn(text)
            end
            table.move(files, 1, #files, #made.files + 1, made.files)
        end
    end
    return made
end

-- The frames of the volumes: arrays on the host, or in their files. Sets own.list; returns the
-- frames by name, and a warning or nil.
local function frames_of(own)
    local bytes, compressed, frames, host = 0, false, {}, core.device.open "host"
    for _, volume in ipairs(own.list) do
        bytes, compressed = bytes + volumes.bytes(volume), compressed or volume.compressed
    end
    local left, text = host:budget() - core.pool.stats(host).live, core.device.format_bytes
    local held, list = compressed and bytes <= left // 2, {}
    for _, what in ipairs(KINDS) do
        local volume = own[what]
        if volume and held then
            frames[what] = image_frames.load(volume)
            list[#list + 1] = frames[what]
            volume:close()
            own.list[#own.list + 1] = frames[what]
        elseif volume then
            frames[what] = stored_frames.new(volume)
        end
    end
    own.list = held and list or own.list
    for what, value in pairs(own.constants) do
        local shape = frames.data.shape
        frames[what] = list_frames.constant_array(value, what, shape[2], shape[3])
        own.list[#own.list + 1] = frames[what]
    end
    return frames, compressed and not held and ("the frames are compressed, and %s of them do not "
        .. "fit in half of the %s that the host has left: they are decoded again for every block "
        .. "of rows; save them without compression"):format(text(bytes), text(left))
        or nil
end

-- The angles of the projections, and what is known of them.
local function set_angles(s, parts, options)
    local data = parts.data
    local count = #data.all
    s.n_projections, s.n_frames = count, s.n_frames or count
    s.names, s.indices, s.place = data.set.names, data.all, data.set.place
    s.last_file = s.names and count > 1 and s.names[data.all[count]] or nil
    for i = 1, #s.positions do
        s.frames[i] = i
    end
    local angles, from = pairing.angles(s, options)
    find_angles(s, {angles = options.angles, source = from}, {angles = angles,
        angle_unit = options.angle_unit})
end

--- The scan of an image; `options` are those of scan.open.
function image_scan.open(path, options)
    for _, name in ipairs(OF_HDF5) do
        if options[name] then
            fail("argument", "scan.open", name, "the option %s is for scans in HDF5; '%s' is a "
                .. "stack of images", name, path)
        end
    end
    local s = {path = path, positions = {}, frames = {}, warnings = {}, files = {}, access = {},
        warn = function(self, text)
            self.warnings[#self.warnings + 1] = core.error.printable(text)
        end}
    local _ <close> = setmetatable({}, {__close = function()
        for _, file in ipairs(s.files) do -- those of lists
            file:close()
        end
    end})
    local parts = meant(s, options)
    check_shared(parts)
    local own = opened(parts, function(text) s:warn(text) end)
    local _ <close> = on_error(function()
        for _, each in ipairs(own.list) do
            local _ <close> = each
        end
    end)
    local frames, warning = frames_of(own)
    set_angles(s, parts, options)
    local made = scan_arrays.made(frames.data, s.angles, {flats = frames.flats,
        darks = frames.darks, pixel_size = options.pixel_size,
        flat_positions = options.flat_positions, current = options.current,
        flats_current = options.flats_current, flats_exposure = options.flats_exposure,
        lists = s})
    local flats = in_series(parts, "flats")
    if flats and #flats > 0 and not options.flat_positions then
        made.timeline = {frames = parts.data.indices, flats = flats}
    end
    for _, name in ipairs {"angle_unit", "span_deg", "step_deg", "turns", "angle_ends"} do
        made[name] = s[name]
    end
    made.path, made.files, made.owned, made.warnings = path, own.files, own.list, s.warnings
    for _, file in ipairs(s.files) do
        made.files[#made.files + 1] = {path = file.path, close = function() end}
    end
    made.warnings[#made.warnings + 1] = warning
    if not frames.flats and options.flats ~= false then
        s:warn "there are no flats: the projections cannot be normalized"
    end
    if not frames.darks and options.darks ~= false then
        s:warn "there are no darks: they count as zero"
    end
    made.pixel_size = pixel_size.given(s, options)
    made.positions = s.positions
    made.numbers = {flats = parts.flats and parts.flats.indices,
        darks = parts.darks and parts.darks.indices}
    return made
end

return image_scan
