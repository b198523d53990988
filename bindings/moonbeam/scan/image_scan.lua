--- Scans whose frames are images (image_frames.lua). The frames stay in their files, and what a
-- block needs is read with it (stored_frames.lua). Compressed frames would be decoded again for
-- each block: where they fit in half of the memory that is left, they are decoded into it when the
-- scan is opened, and it is a scan of arrays.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local find_angles = require "moonbeam.scan.stored_angles"
local frames_of_scan = require "moonbeam.scan.frames"
local image_frames = require "moonbeam.scan.image_frames"
local images = require "moonbeam.images"
local on_error = require "moonbeam.internal.on_error"
local scan_arrays = require "moonbeam.scan.arrays"
local stored_frames = require "moonbeam.scan.stored_frames"
local volumes = require "moonbeam.volumes"

local image_scan = {}

-- Options that name places in an HDF5 file.
local OF_HDF5 = {"data", "image_key", "entry", "allow_missing", "allow_external"}

-- Numbers of a text file, between spaces, commas or line ends; # starts a comment.
local function numbers_of_text(name)
    local file, problem = io.open(name, "rb")
    if not file then
        fail("io", "scan.open", "angles", "cannot read the angles: %s", problem)
    end
    local text, list = file:read(64 << 20) or "", {}
    file:close()
    for word in text:gsub("#[^\n]*", ""):gmatch "[^%s,;]+" do
        list[#list + 1] = tonumber(word) or fail("io", "scan.open", "angles",
            "'%s' is not a list of angles: it has '%s'", name, word:sub(1, 20))
    end
    return list
end

local function angles_of(s, options)
    local angles = options.angles
    if type(angles) == "string" and not angles:find ":/" then
        angles = numbers_of_text(angles)
        if #angles == 2 and s.n_projections ~= 2 then
            fail("shape", "scan.open", "angles", "'%s' has 2 angles for %d projections",
                options.angles, s.n_projections)
        end
    elseif type(angles) == "string" then
        local array <close>, _ = images.read(angles, "host")
        angles = array:to_table()
    elseif angles == nil then
        fail("argument", "scan.open", "angles", "'%s' is a stack of images, which has no angles: "
            .. "give the option angles (the first and the last) and the option angle_unit, or the "
            .. "option angles = PATH", s.path)
    end
    local count = s.n_projections
    if #angles > count and #angles ~= 2 then
        fail("shape", "scan.open", "angles", "'%s' has %d frames for %d angles: frames %d to %d "
            .. "are missing%s; the option wait = SECONDS waits for them", s.path, count, #angles,
            count + 1, #angles,
            s.last_file and ("; the last file is '%s'"):format(s.last_file) or "")
    end
    find_angles(s, {}, {angles = angles, angle_unit = options.angle_unit})
end

-- The volumes of projections, flats and darks, by name, with `list`, what is to be released, and
-- the files.
local function opened(path, options)
    local made = {list = {}, files = {}}
    local _ <close> = on_error(function()
        for _, each in ipairs(made.list) do
            local _ <close> = each
        end
    end)
    for _, what in ipairs {"data", "flats", "darks"} do
        local name = path
        if what ~= "data" then
            name = options[what] ~= false and (options[what .. "_file"] or options[what])
        end
        local constant = what ~= "data"
            and (math.type(name) and name or frames_of_scan.constant(name))
        if constant then
            made.constants = made.constants or {}
            made.constants[what] = constant
        elseif name then
            local volume, files = image_frames.open(name, what)
            made.series = made.series or #files -- of the projections, which come first
            made[what], made.list[#made.list + 1] = volume, volume
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
    for _, what in ipairs {"data", "flats", "darks"} do
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
    for what, value in pairs(own.constants or {}) do
        local shape = frames.data.shape
        frames[what] = frames_of_scan.constant_array(value, what, shape[2], shape[3])
        own.list[#own.list + 1] = frames[what]
    end
    return frames, compressed and not held and ("the frames are compressed, and %s of them do not "
        .. "fit in half of the %s that the host has left: they are decoded again for every block "
        .. "of rows; save them without compression"):format(text(bytes), text(left))
        or nil
end

--- The scan of an image; `options` are those of scan.open.
function image_scan.open(path, options)
    for _, name in ipairs(OF_HDF5) do
        if options[name] then
            fail("argument", "scan.open", name, "the option %s is for scans in HDF5; '%s' is a "
                .. "stack of images", name, path)
        end
    end
    local own = opened(path, options)
    local _ <close> = on_error(function()
        for _, each in ipairs(own.list) do
            local _ <close> = each
        end
    end)
    local frames, warning = frames_of(own)
    local s = {path = path, n_projections = frames.data.shape[1],
        n_frames = frames.data.shape[1],
        positions = {}, frames = {}, warnings = {}, warn = function(self, text)
            self.warnings[#self.warnings + 1] = core.error.printable(text)
        end}
    local count = s.n_projections
    s.last_file = count > 1 and own.series == count and own.files[count].path or nil
    for i = 1, count do
        s.positions[i], s.frames[i] = i, i
    end
    angles_of(s, options)
    local made = scan_arrays.made(frames.data, s.angles, {flats = frames.flats,
        darks = frames.darks, pixel_size = options.pixel_size,
        flat_positions = options.flat_positions, current = options.current,
        flats_current = options.flats_current, flats_exposure = options.flats_exposure})
    made.path, made.files, made.owned, made.warnings = path, own.files, own.list, s.warnings
    made.warnings[#made.warnings + 1] = warning
    if not frames.flats and options.flats ~= false then
        made.warnings[#made.warnings + 1] = "there are no flats: the projections cannot be "
            .. "normalized"
    end
    return made
end

return image_scan
