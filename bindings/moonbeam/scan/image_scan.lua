--- Scans whose frames are images (image_frames.lua). The frames are read into memory of the host
-- when the scan is opened, and stay there until it is closed; from then on it is a scan of arrays.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local find_angles = require "moonbeam.scan.stored_angles"
local image_frames = require "moonbeam.scan.image_frames"
local images = require "moonbeam.images"
local on_error = require "moonbeam.internal.on_error"
local scan_arrays = require "moonbeam.scan.arrays"

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
    find_angles(s, {}, {angles = angles, angle_unit = options.angle_unit})
end

-- A list of arrays and files that is released where something fails.
local function collected()
    local list = {files = {}}
    function list.add(name, what)
        local array, files = image_frames.load(name, what)
        list[#list + 1] = array
        table.move(files, 1, #files, #list.files + 1, list.files)
        return array
    end
    return list
end

--- The scan of an image; `options` are those of scan.open.
function image_scan.open(path, options)
    for _, name in ipairs(OF_HDF5) do
        if options[name] then
            fail("argument", "scan.open", name, "the option %s is for scans in HDF5; '%s' is a "
                .. "stack of images", name, path)
        end
    end
    local own = collected()
    local _ <close> = on_error(function()
        for _, array in ipairs(own) do
            array:release()
        end
    end)
    local frames, references = own.add(path, "data"), {}
    for _, what in ipairs {"flats", "darks"} do
        local name = options[what] ~= false and (options[what .. "_file"] or options[what])
        references[what] = name and own.add(name, what) or nil
    end
    local s = {path = path, n_projections = frames.shape[1], n_frames = frames.shape[1],
        positions = {}, frames = {}, warnings = {}, warn = function(self, text)
            self.warnings[#self.warnings + 1] = core.error.printable(text)
        end}
    for i = 1, frames.shape[1] do
        s.positions[i], s.frames[i] = i, i
    end
    angles_of(s, options)
    local made = scan_arrays.new(frames, s.angles, {flats = references.flats,
        darks = references.darks, pixel_size = options.pixel_size,
        flat_positions = options.flat_positions, current = options.current,
        flats_current = options.flats_current})
    made.path, made.files, made.owned, made.warnings = path, own.files, own, s.warnings
    if not references.flats and options.flats ~= false then
        made.warnings[#made.warnings + 1] = "there are no flats: the projections cannot be "
            .. "normalized"
    end
    return made
end

return image_scan
