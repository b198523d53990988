-- Tomography scans in HDF5: Data Exchange and NXtomo, with their usual variants.
--
-- Where things are is found by scan_layout.lua and can be named by options. Units are read, never
-- guessed: angles without a unit are an error that names the option (Data Exchange fixes degrees).
-- Frames are not touched by open; they are read by rows, straight into arrays.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local examine = require "moonbeam.scan.angles"
local fail = require "moonbeam.internal.fail"
local options_of = require "moonbeam.internal.options"
local layout_of = require "moonbeam.scan.layout"
local missing = require "moonbeam.scan.missing"

local scan = { of_arrays = require("moonbeam.scan.arrays").new }
local methods = {}
local metatable = { __name = "moonbeam.scan" }

local open_names = {
    "data", "flats", "darks", "angles", "image_key", "angle_unit", "pixel_size", "flats_file",
    "darks_file", "entry", "allow_external", "allow_missing",
}
local read_names = { "device", "dtype", "out", "angles", "carrier" }

-- ---------------------------------------------------------------------------------------------
-- Units

local angle_units = {
    deg = "deg", degs = "deg", degree = "deg", degrees = "deg", ["°"] = "deg",
    rad = "rad", rads = "rad", radian = "rad", radians = "rad",
}

local lengths = {
    m = 1, meter = 1, metre = 1, meters = 1, metres = 1,
    cm = 1e-2,
    mm = 1e-3, millimeter = 1e-3, millimetre = 1e-3, millimeters = 1e-3,
    um = 1e-6, ["µm"] = 1e-6, ["μm"] = 1e-6, micron = 1e-6, microns = 1e-6, micrometer = 1e-6,
    micrometre = 1e-6, micrometers = 1e-6,
    nm = 1e-9, nanometer = 1e-9, nanometre = 1e-9, nanometers = 1e-9,
}

-- Text of a file as it may stand in a message: no longer than a unit or a name can be.
local function shown(text)
    return #text > 40 and text:sub(1, 40) .. "..." or text
end

-- The @units of an object as lower-case text, or nil where there is none.
local function units_of(file, path)
    local units = file:attribute(path, "units")
    if type(units) == "table" and #units == 1 then
        units = units[1]
    end
    if units == nil then
        return nil
    elseif type(units) ~= "string" then
        fail("io", "scan.open", nil, "the attribute units of '%s' must be one text, not %s", path,
            type(units) == "table" and ("a list of %d"):format(#units) or "the number " .. units)
    end
    units = units:match("^%s*(.-)%s*$"):lower()
    return units ~= "" and units or nil
end

-- What is not found may have been lost: where the index of a group is damaged, its members are
-- still listed, and the listing fails at those that cannot be opened.
local function confirm_absence(s)
    s.walked = s.walked or s.file:walk("/") ~= nil
end

-- A number, from a scalar or a list of one; nil where something else is stored. What cannot be read
-- is an error: damage is not absence.
local function number_at(file, path)
    local value = file:value(path)
    while type(value) == "table" and #value == 1 do
        value = value[1]
    end
    return type(value) == "number" and value or nil
end

-- ---------------------------------------------------------------------------------------------
-- Files

-- Opens a file of the scan, which closes it.
local function open_file(s, path)
    local file, err = core.h5.open(path, s.access)
    if not file then
        error(err, 0)
    end
    s.files[#s.files + 1] = file
    return file
end

-- The file and the path in it that a name means: "/path" in the scan's file, "FILE:/path"
-- elsewhere.
local function locate(s, name)
    local other, path = name:match("^(.+):(/.*)$")
    if not other or s.file:exists(name) then
        return s.file, name
    end
    return open_file(s, other), path
end

-- ---------------------------------------------------------------------------------------------
-- Angles

local function check_unit(unit, name)
    local known = angle_units[tostring(unit):lower()]
    if not known then
        fail("argument", "scan.open", name, "%s must be 'deg' or 'rad', not '%s'", name,
            tostring(unit))
    end
    return known
end

-- Evenly spaced from first to last, both included.
local function spread(first, last, count)
    local values = {}
    for i = 1, count do
        values[i] = count == 1 and first or first + (last - first) * (i - 1) / (count - 1)
    end
    return values
end

local function flatten(value, into)
    if type(value) == "table" then
        for _, part in ipairs(value) do
            flatten(part, into)
        end
    else
        into[#into + 1] = value
    end
    return into
end

local function pick(values, indices)
    local picked = {}
    for i, index in ipairs(indices) do
        picked[i] = values[index]
    end
    return picked
end

-- The elements of a dataset as one list. Where there are more than `most`, they are not read:
-- {count =}.
local function numbers_of(file, path, most)
    local count = 1
    for _, extent in ipairs(file:dataset(path).shape) do
        count = count * extent
    end
    return count <= most and flatten(file:value(path), {}) or { count = count }
end

-- Angles that the caller gave as numbers: one for each projection, or {first, last}.
local function given_angles(s, given, options)
    local projections = s.n_projections
    if not options.angle_unit then
        fail("argument", "scan.open", "angle_unit",
            "angles given as numbers need the option angle_unit ('deg' or 'rad')")
    end
    for _, value in ipairs(given) do
        if type(value) ~= "number" then
            fail("argument", "scan.open", "angles",
                "angles must be numbers, or the path of a dataset")
        end
    end
    if #given == 2 and projections ~= 2 then
        return pick(spread(given[1], given[2], projections), s.positions)
    elseif #given ~= projections then
        fail("shape", "scan.open", "angles", "%d angles were given for %d projections", #given,
            projections)
    end
    return pick(given, s.positions)
end

-- Angles of the file, one for each projection, and their unit.
local function stored_angles(s, layout, options)
    if not layout.angles then
        fail("argument", "scan.open", "angles",
            "'%s' has no angles%s: give the option angles (the first and the last) "
            .. "and the option angle_unit, or the option angles = PATH",
            s.path, layout.angles_hint)
    end
    local file, path = locate(s, layout.angles)
    if not file:exists(path) then
        fail("io", "scan.open", "angles",
            "there is no '%s' in '%s': name the angles with the option angles = PATH", path,
            file.path)
    end
    local all = numbers_of(file, path, s.n_frames)
    local values
    if #all == s.n_projections then
        values = pick(all, s.positions)
    elseif #all == s.n_frames then
        values = pick(all, s.frames)
    elseif #all == #s.frames then -- without those that are missing
        values = all
    else
        local frames = s.n_frames == #s.frames and ("%d frames"):format(s.n_frames)
            or ("%d frames (%d projections)"):format(s.n_frames, #s.frames)
        fail("shape", "scan.open", "angles", "'%s' has %d angles in '%s' for %s: the file is "
            .. "incomplete, or angles names the wrong dataset", file.path, all.count or #all, path,
            frames)
    end

    local stored = units_of(file, path)
    local unit
    if options.angle_unit then
        unit = check_unit(options.angle_unit, "angle_unit")
        if stored and angle_units[stored] ~= unit then
            s:warn(("the option angle_unit = %s overrides the unit '%s' of '%s'"):format(unit,
                shown(stored), path))
        end
    elseif stored then
        unit = angle_units[stored]
        if not unit then
            fail("argument", "scan.open", "angle_unit", "the angles '%s' have the unit '%s', which "
                .. "is neither degrees nor radians: give the option angle_unit ('deg' or 'rad')",
                path, shown(stored))
        end
    elseif layout.format == "Data Exchange" then
        unit = "deg"
        s.angle_note = "no unit stored; Data Exchange defines degrees"
    else
        fail("argument", "scan.open", "angle_unit", "the angles '%s' in '%s' have no unit, and "
            .. "a unit is never guessed: give the option angle_unit ('deg' or 'rad')",
            path, file.path)
    end
    return values, unit
end

local function find_angles(s, layout, options)
    local values, unit
    if type(options.angles) == "table" then
        values = given_angles(s, options.angles, options)
        unit = check_unit(options.angle_unit, "angle_unit")
        s.angle_source = "given by the caller"
    else
        values, unit = stored_angles(s, layout, options)
        s.angle_source = layout.angles
    end
    s.angle_unit = unit
    local radians = {}
    for i, value in ipairs(values) do
        if type(value) ~= "number" then
            fail("io", "scan.open", "angles", "angle %d of '%s' is not a number", i, s.path)
        end
        radians[i] = unit == "deg" and math.rad(value) or value
    end
    local found = examine(radians, { op = "scan.open", code = "io", unit = unit,
        given = options.angle_unit ~= nil,
        where = (" of '%s'"):format(s.angle_source == layout.angles and layout.angles or s.path) })
    s.angles, s.n_angles = found.angles, #radians
    s.span_deg, s.step_deg, s.turns = found.span_deg, found.step_deg, found.turns
    s.angle_ends = { math.deg(radians[1]), math.deg(radians[#radians]) }
    for _, text in ipairs(found.warnings) do
        s:warn(text)
    end
end

-- ---------------------------------------------------------------------------------------------
-- Frames: which are projections, flats and darks

-- Indices -> runs {first, last} of neighbors.
local function runs_of(indices)
    local runs = {}
    for _, index in ipairs(indices) do
        local run = runs[#runs]
        if run and run[2] + 1 == index then
            run[2] = index
        else
            runs[#runs + 1] = { index, index }
        end
    end
    return runs
end

local function sort_frames(s, layout)
    local projections, flats, darks, ignored = {}, {}, {}, 0
    if not layout.image_key then
        for i = 1, s.n_frames do
            projections[i] = i
        end
        return projections, flats, darks
    end
    local keys = layout.image_key
    if type(keys) == "string" then
        local file, path = locate(s, keys)
        if not file:exists(path) then
            fail("io", "scan.open", "image_key", "there is no '%s' in '%s'", path, file.path)
        end
        keys = numbers_of(file, path, s.n_frames)
    end
    if #keys ~= s.n_frames then
        fail("shape", "scan.open", "image_key", "'%s' has %d image keys for %d frames", s.path,
            keys.count or #keys, s.n_frames)
    end
    for i, key in ipairs(keys) do
        local list = key == 0 and projections or key == 1 and flats or key == 2 and darks
        if list then
            list[#list + 1] = i
        else
            ignored = ignored + 1
        end
    end
    if ignored > 0 then
        s:warn(("%d frames are marked invalid (image key not 0, 1 or 2) and are left out"):format(
            ignored))
    end
    if #projections == 0 then
        fail("shape", "scan.open", "image_key", "no frame of '%s' is a projection (image key 0)",
            s.path)
    end
    return projections, flats, darks
end

-- A dataset of frames with the shape checked: (frame, row, column), or (row, column) for one frame.
local function frames_dataset(s, file, path, what)
    local dataset = file:dataset(path)
    local shape = dataset.shape
    if #shape ~= 3 and not (#shape == 2 and what ~= "data") then
        fail("shape", "scan.open", what, "'%s' in '%s' has %d ax%ss, but %s is (%s, row, column)",
            path, file.path, #shape, #shape == 1 and "i" or "e",
            what == "data" and "a scan" or what, what == "data" and "angle" or "frame")
    elseif not dataset.dtype then
        fail("dtype", "scan.open", what, "'%s' in '%s' holds %s, not numbers", path, file.path,
            dataset.stored)
    end
    for axis, extent in ipairs(shape) do
        if extent == 0 then
            fail("shape", "scan.open", what, "'%s' in '%s' is empty: it has no %s", path, file.path,
                ({ "frames", "rows", "columns" })[axis + 3 - #shape])
        end
    end
    if what ~= "data" and (shape[#shape - 1] ~= s.rows or shape[#shape] ~= s.cols) then
        fail("shape", "scan.open", what,
            "%s '%s' in '%s' have %d x %d pixels, the projections %d x %d", what, path, file.path,
            shape[#shape - 1], shape[#shape], s.rows, s.cols)
    end
    return dataset
end

-- The path of flats or darks in a file of their own.
local function path_in(file, options, what, usual)
    if options[what] then
        return options[what]
    elseif usual and file:exists(usual) then
        return usual
    end
    local found = {}
    for _, object in ipairs(file:walk()) do
        if object.kind == "dataset" and object.dtype and #object.shape == 3 and not object.link then
            found[#found + 1] = object.path
        end
    end
    if #found ~= 1 then
        local list = #found > 0 and " (" .. table.concat(found, ", ") .. ")" or ""
        fail("argument", "scan.open", what,
            "'%s' has %d datasets of frames%s: name the right one with the option %s", file.path,
            #found, list, what)
    end
    return found[1]
end

-- Where the flats or darks come from: {dataset, runs, count}, or nil when there are none.
local function find_reference(s, layout, options, what, keyed)
    if options[what] == false then
        return nil
    end
    local file, path = s.file, options[what]
    local own = options[what .. "_file"]
    if own then
        file = open_file(s, own)
        path = path_in(file, options, what, layout[what])
    elseif path then
        file, path = locate(s, path)
        if not file:exists(path) then
            fail("io", "scan.open", what, "there is no '%s' in '%s'", path, file.path)
        end
    elseif not path and #keyed > 0 then
        return { dataset = s.data, runs = runs_of(keyed), count = #keyed }
    elseif not path and layout[what] and file:exists(layout[what]) then
        path = layout[what]
    end
    if not path then
        confirm_absence(s)
        return nil
    end
    -- Some files keep the place of flats or darks with nothing in it.
    local dataset = file:dataset(path)
    local frames = #dataset.shape == 3 and dataset.shape[1] or 1
    if frames == 0 and not options[what] and not own then
        return nil
    end
    dataset = frames_dataset(s, file, path, what)
    missing.check_count(file, path, frames)
    local runs, count = missing.present(s, dataset, file, options.allow_missing), 0
    for _, run in ipairs(runs) do
        count = count + run[2] - run[1] + 1
    end
    return { dataset = dataset, runs = runs, count = count }
end

-- ---------------------------------------------------------------------------------------------
-- Pixel size

-- Meters between which every pixel lies.
local LEAST_PIXEL, MOST_PIXEL = 1e-13, 1

-- The pixel size at a place of the file: meters, or nil and why it was not used.
local function stored_pixel_size(s, place)
    local value, unit = number_at(s.file, place.path), units_of(s.file, place.path)
    if not value or value ~= value or value <= 0 then
        return nil, value and ("is %g"):format(value) or "is not a number"
    elseif not unit or not lengths[unit] then
        return nil, unit and ("has the unknown unit '%s'"):format(shown(unit)) or "has no unit"
    end
    local meters = value * lengths[unit]
    if meters < LEAST_PIXEL or meters > MOST_PIXEL then
        fail("io", "scan.open", "pixel_size",
            "the pixel size '%s' is %g %s, which no detector has: give the option pixel_size "
            .. "(in meters)",
            place.path, value, unit)
    end
    return meters
end

local function find_pixel_size(s, layout, options)
    local given = options.pixel_size
    if given then
        if type(given) ~= "number" or not (given >= LEAST_PIXEL and given <= MOST_PIXEL) then
            fail("argument", "scan.open", "pixel_size",
                "pixel_size is %s; it must be a length in meters, from %g to %g", tostring(given),
                LEAST_PIXEL, MOST_PIXEL)
        end
        return given
    end
    local found = false
    for _, place in ipairs(layout.pixel_sizes) do
        if s.file:exists(place.path) then
            found = true
            local meters, problem = stored_pixel_size(s, place)
            if meters then
                if place.note then
                    s:warn(place.note)
                end
                return meters
            end
            s:warn(("the pixel size '%s' %s and was not used: give the option pixel_size"):format(
                place.path, problem))
        end
    end
    confirm_absence(s)
    if not found then
        s:warn("no pixel size was found: the volume is attenuation per pixel, not per meter; "
            .. "give the option pixel_size")
    end
    return nil
end

-- ---------------------------------------------------------------------------------------------
-- Opening

local function describe_storage(s)
    local chunks = s.data.chunks
    if not chunks or not s.data.filters then
        return
    end
    s.chunk_rows = chunks[2]
    if chunks[2] > 1 then
        s:warn(("the frames are compressed (%s) in chunks of %d rows: every read of fewer rows "
            .. "decodes a whole chunk again (a reconstruction decodes them once, into a "
            .. "temporary file)"):format(s.data.filters, chunks[2]))
    end
end

local function fill(s, path, options)
    s.access = { allow_external = options.allow_external, allow_missing = options.allow_missing }
    s.file = open_file(s, path)
    local layout = layout_of(s.file, options)
    s.format = layout.format
    for _, text in ipairs(layout.warnings) do
        s:warn(text)
    end
    if not s.file:exists(layout.data) then
        fail("io", "scan.open", "data", "there is no '%s' in '%s'", layout.data, path)
    end
    s.data_path = layout.data
    s.data = frames_dataset(s, s.file, layout.data, "data")
    s.n_frames, s.rows, s.cols = table.unpack(s.data.shape)
    s.dtype = s.data.dtype
    describe_storage(s)
    local keyed_flats, keyed_darks
    missing.check_count(s.file, layout.data, s.n_frames)
    local runs = missing.present(s, s.data, s.file, options.allow_missing)
    s.frames, keyed_flats, keyed_darks = sort_frames(s, layout)
    s.n_projections = #s.frames
    s.frames, s.positions = missing.keep(s.frames, runs)
    keyed_flats, keyed_darks = missing.keep(keyed_flats, runs), missing.keep(keyed_darks, runs)
    if #s.frames == 0 then
        fail("io", "scan.open", "data", "no projection of '%s' was written", path)
    end
    s.flat_source = find_reference(s, layout, options, "flats", keyed_flats)
    s.dark_source = find_reference(s, layout, options, "darks", keyed_darks)
    s.n_flats = s.flat_source and s.flat_source.count or 0
    s.n_darks = s.dark_source and s.dark_source.count or 0
    if s.n_flats == 0 and options.flats ~= false then
        s:warn "there are no flats: the projections cannot be normalized"
    end
    if s.n_darks == 0 and options.darks ~= false then
        s:warn "there are no darks: they count as zero"
    end
    find_angles(s, layout, options)
    s.pixel_size = find_pixel_size(s, layout, options)
end

--- Opens a scan: the scan, or nil and an error object.
-- Options that name what the file does not say, or says in an unusual place:
--   data, flats, darks, angles, image_key: paths of datasets, all but data also "FILE:/path" for
--     one of another file; flats = false and darks = false leave them out; angles may also be
--     numbers, one for each projection or {first, last}; image_key may be a list; entry: the
--     NXtomo entry of several
--   angle_unit: "deg" or "rad"; pixel_size: meters
--   flats_file, darks_file: files of their own
--   allow_external: links, virtual datasets and external storage may lead to files outside the
--     scan's folder; allow_missing: frames that were never written are left out, with a warning
function scan.open(path, options)
    options = options_of(options, "scan.open", open_names)
    if type(path) ~= "string" then
        fail("argument", "scan.open", "path", "path must be a string, not a %s", type(path))
    end
    local s = setmetatable({ path = path, warnings = {}, files = {} }, metatable)
    local ok, err = pcall(fill, s, path, options)
    if ok then
        return s
    end
    s:close()
    if type(err) ~= "table" then
        error(err, 0)
    end
    return nil, err
end

-- ---------------------------------------------------------------------------------------------
-- Reading

function methods:warn(text)
    self.warnings[#self.warnings + 1] = core.error.printable(text)
end

-- How many rows `rows` selects; nil for an integer, which drops the axis.
local function row_extent(self, rows)
    local _, _, _, count = core.range.within(rows, self.rows, "the rows")
    return count
end

-- Reads runs of frames of a dataset into one array, or has a carrier do so.
local function read_runs(self, dataset, runs, rows, options)
    rows = rows == nil and core.array.all or rows
    local carrier = options.carrier
    if #runs == 1 and not carrier then
        return dataset:read(runs[1], rows,
            { device = options.device, dtype = options.dtype, out = options.out })
    end
    local count = 0
    for _, run in ipairs(runs) do
        count = count + run[2] - run[1] + 1
    end
    local extent = row_extent(self, rows)
    local shape = extent and { count, extent, self.cols } or { count, self.cols }
    local array = options.out
        or core.array.empty(shape, { device = options.device, dtype = options.dtype
            or dataset.dtype })
    local ok, err = pcall(function()
        local at = 1
        for _, run in ipairs(runs) do
            local n = run[2] - run[1] + 1
            local part <close> = array:view({ at, at + n - 1 })
            if carrier then
                carrier:carry(dataset, part, run, rows)
            else
                dataset:read(run, rows, { out = part })
            end
            at = at + n
        end
        if at - 1 ~= array.shape[1] then
            fail("shape", "scan.read", "out", "out has %d frames, but %d were read", array.shape[1],
                at - 1)
        end
    end)
    if not ok then
        if not options.out then
            array:release()
        end
        error(err, 0)
    end
    return array
end

--- Projections as an array (angle, row, column). rows: {first, last}, mb.all (default), or an
-- integer, which drops the axis. Options: device, dtype (default as stored), out,
-- angles = {first, last}, carrier: the array is filled by it, and complete after its wait.
function methods:projections(rows, options)
    options = options_of(options, "scan:projections", read_names)
    local first, last, step, count = core.range.within(options.angles, self.n_angles,
        "the projections")
    if not count or count == 0 then
        fail("argument", "scan:projections", "angles",
            "angles must be a range {first, last} of projections")
    end
    local frames = {}
    for i = first, last, step do
        frames[#frames + 1] = self.frames[i]
    end
    return read_runs(self, self.data, runs_of(frames), rows, options)
end

-- Flats or darks; a single frame (row, column) becomes (1, row, column).
local function read_reference(self, source, rows, options, what)
    options = options_of(options, what, { "device", "dtype", "out", "carrier" })
    if not source then
        return nil
    elseif #source.dataset.shape == 3 then
        return read_runs(self, source.dataset, source.runs, rows, options)
    elseif options.out then
        fail("unsupported", what, "out", "a single stored frame cannot be read into out")
    end
    rows = rows == nil and core.array.all or rows
    local frame <close> = options.carrier
            and core.array.empty({ row_extent(self, rows), self.cols },
                { device = options.device, dtype = options.dtype or source.dataset.dtype })
        or source.dataset:read(rows, { device = options.device, dtype = options.dtype })
    if options.carrier then
        options.carrier:carry(source.dataset, frame, rows)
    end
    return frame:reshape(1, table.unpack(frame.shape))
end

--- Flats (frame, row, column) of some rows, or nil. Options: device, dtype, out, carrier.
function methods:flats(rows, options)
    return read_reference(self, self.flat_source, rows, options, "scan:flats")
end

--- Darks (frame, row, column) of some rows, or nil. Options: device, dtype, out, carrier.
function methods:darks(rows, options)
    return read_reference(self, self.dark_source, rows, options, "scan:darks")
end

--- The i-th projection (row, column). Options: device, dtype, out.
function methods:frame(i, options)
    options = options_of(options, "scan:frame", { "device", "dtype", "out" })
    local index = math.type(i) == "integer" and i < 0 and i + self.n_angles + 1 or i
    local frame = self.frames[index]
    if not frame then
        fail("argument", "scan:frame", nil, "there is no projection %s; the scan has %d",
            tostring(i), self.n_angles)
    end
    return self.data:read(frame, core.array.all,
        { device = options.device, dtype = options.dtype, out = options.out })
end

-- ---------------------------------------------------------------------------------------------
-- Telling

--- What was found, as text of several lines; the warnings are a list of their own.
function methods:describe()
    local lines = {}
    local function line(name, ...)
        lines[#lines + 1] = core.error.printable(("%-11s"):format(name) .. string.format(...))
    end
    line("scan", "%s (%s)", self.path, self.format)
    line("frames", "%d projections of %d rows x %d columns, %s, in %s", self.n_angles, self.rows,
        self.cols, self.data.stored, self.data_path)
    line("reference", "%d flats, %d darks", self.n_flats, self.n_darks)
    line("angles", "%.4f to %.4f degrees%s%s, read as %s%s", self.angle_ends[1], self.angle_ends[2],
        self.step_deg and (", step %.4f, span %.3f"):format(self.step_deg, self.span_deg) or "",
        self.turns and self.turns > 2 and (" (%.1f turns, taken within one)"):format(self.turns)
        or "",
        self.angle_unit == "deg" and "degrees" or "radians",
        self.angle_note and " (" .. self.angle_note .. ")" or "")
    line("pixel", self.pixel_size and "%.6g m" or "size not known", self.pixel_size)
    return table.concat(lines, "\n")
end

--- Closes the files; any number of times.
function methods:close()
    for _, file in ipairs(self.files) do
        file:close()
    end
end

metatable.__index = methods
metatable.__close = methods.close

function metatable:__tostring()
    return ("scan '%s' (%s, %d projections of %d x %d)"):format(core.error.printable(self.path),
        self.format or "?", self.n_angles or 0, self.rows or 0, self.cols or 0)
end

return declared.module(scan, "scan")
