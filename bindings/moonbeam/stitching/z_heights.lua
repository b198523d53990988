--- Where reconstructed volumes are along the rotation axis: the height of each scan's sample, the
-- row of the detector that the first slice is of, and the distance between slices. Everything is
-- read from files: from a result, and from the scan that it was made of.

local core = require "moonbeam.core"
local input_file = require "moonbeam.internal.files.input_file"
local json_reader = require "moonbeam.internal.json_reader"
local tables = require "moonbeam.internal.tables"
local voxel = require "moonbeam.tiff.voxel"

local z_heights = {}

local METERS <const> = {m = 1, mm = 1e-3, um = 1e-6, nm = 1e-9, micrometer = 1e-6,
    micrometers = 1e-6, micron = 1e-6, microns = 1e-6, ["\u{b5}m"] = 1e-6, ["\u{3bc}m"] = 1e-6,
    cm = 1e-2, meter = 1, meters = 1, millimeter = 1e-3, millimeters = 1e-3}

-- A scan moves its sample between projections by less than that, or it is no scan at one height.
local MOST_SPREAD <const> = 1e-3
-- More numbers are not the height of a sample in each frame.
local MOST_VALUES <const> = 1 << 20

local function attribute(file, path, name)
    local value = file:attribute(path, name)
    return type(value) == "table" and #value == 1 and value[1] or value
end

-- The numbers of a dataset: the least and the greatest, or nil.
local function bounds_of(value, low, high)
    if type(value) == "number" then
        return math.min(low or value, value), math.max(high or value, value)
    end
    for _, part in ipairs(type(value) == "table" and value or {}) do
        low, high = bounds_of(part, low, high)
    end
    return low, high
end

-- The height in a dataset, in meters, and nil; or nil and what is wrong with it.
local function height_at(file, path)
    local count = tables.product(file:dataset(path).shape or {})
    if count > MOST_VALUES then
        return nil, ("'%s' in '%s' has %d values"):format(path, file.path, count)
    end
    local low, high = bounds_of(file:value(path))
    local units = attribute(file, path, "units")
    local factor = type(units) == "string" and METERS[units:lower()]
    if not low then
        return nil, ("'%s' in '%s' is not a number"):format(path, file.path)
    elseif not factor then
        return nil, ("'%s' in '%s' has %s"):format(path, file.path, units
            and ("the unit '%s', which is no length"):format(tostring(units)) or "no unit")
    elseif (high - low) * factor > MOST_SPREAD then
        return nil, ("'%s' in '%s' moves by %.3g mm during the scan"):format(path, file.path,
            (high - low) * factor * 1e3)
    end
    return (low + high) / 2 * factor
end

-- The dataset with the height of the sample: one of NXtomo, or the given path.
local function height_in(file, path)
    if path then
        if file:exists(path) then
            return height_at(file, path)
        end
        return nil, ("there is no '%s' in '%s'"):format(path, file.path)
    end
    for _, object in ipairs(file:walk("/")) do
        if object.kind == "dataset" and object.path:find "/sample/z_translation$" then
            return height_at(file, object.path)
        end
    end
    return nil, ("'%s' has no sample/z_translation"):format(file.path)
end

local RAW_FILE <const> = "/entry/reconstruction/parameters/raw_file"

-- The height in the scan of that name. A stitched volume was made of another result, not of a scan.
local function height_of_scan(name, path, depth)
    if not name then
        return nil, "the volume does not say which scan it was made of"
    elseif not core.system.stat(name) then
        return nil, ("its scan, '%s', is not there"):format(name)
    end
    local file <close>, problem = core.h5.open(name)
    if not file then
        return nil, problem.message
    end
    if file:exists(RAW_FILE) and (depth or 0) < 8 then
        return height_of_scan(file:value(RAW_FILE), path, (depth or 0) + 1)
    end
    return height_in(file, path)
end

local function of_hdf5(name, path)
    local file <close>, problem = core.h5.open((name:gsub("^(.+):/.*$", "%1")))
    if not file then
        error(problem, 0)
    end
    local facts = {}
    if file:exists "/entry/data/z" and attribute(file, "/entry/data/z", "units") == "m" then
        local z = file:value "/entry/data/z"
        facts.top = type(z) == "table" and z[1] or z
        facts.step = type(z) == "table" and z[2] and z[2] - z[1] or nil
        if facts.step and facts.step < 0 then -- flipped frames: from the lowest row
            facts.top, facts.step, facts.flipped = -facts.top, -facts.step, true
        end
    end
    if file:exists "/entry/sample/z_translation" and not path then
        facts.height, facts.why = height_at(file, "/entry/sample/z_translation")
    else
        facts.height, facts.why = height_of_scan(file:exists(RAW_FILE) and file:value(RAW_FILE)
            or nil, path)
    end
    return facts
end

-- The first value of a name in JSON, wherever it is.
local function in_json(text, name)
    local found = text:match(('"%s"%%s*:%%s*(".-[^\\]")'):format(name))
        or text:match(('"%s"%%s*:%%s*([%%d.eE+-]+)'):format(name))
    return found and json_reader(found)
end

local function of_text(text, step, path)
    local facts = {step = step}
    local first = in_json(text, "first_row")
    facts.flipped = text:find '"upward"%s*:%s*true' ~= nil
    facts.top = step and type(first) == "number" and (first - 1) * step
        * (facts.flipped and -1 or 1) or nil
    local scan = in_json(text, "raw_file")
    facts.height, facts.why = height_of_scan(type(scan) == "string" and scan or nil, path)
    return facts
end

local function read_text(name, bytes)
    local file <close> = input_file.open(name)
    return file and file:read(bytes) or ""
end

-- What a TIFF file says before its pixels: OME-XML, or a text of two bytes a letter for ImageJ.
local function head_of_tiff(name)
    return (read_text(name, 1 << 20):gsub("%z", ""):gsub("&quot;", '"'):gsub("&amp;", "&"))
end

--- What is known of an open volume with that name: {height (m, of the sample), why (it is not
-- known), top (m, from the detector's first row to the first slice; of flipped frames upwards,
-- below 0), step (m, between slices), flipped}. `path` is the dataset with the height in the scan's
-- file, where it is not NXtomo's.
function z_heights.of(volume, name, path)
    local plain = name:gsub(":/.*$", ""):lower()
    if plain:find "%.h5$" or plain:find "%.hdf5?$" or plain:find "%.nxs?$" then
        return of_hdf5(name, path)
    end
    local meta = volume.meta or {}
    if meta.kind then
        return of_text(head_of_tiff(name), voxel.of(meta).step, path)
    end
    local unit = METERS[(meta.unit or ""):lower()]
    local step = unit and meta.spacing and meta.spacing * unit
    return of_text(read_text(name .. "/zarr.json", 16 << 20), step, path)
end

--- How many slices two volumes have in common by their heights: the slices of the first one, and
-- what is known of both. A number with a fraction, or nil and why not.
function z_heights.overlap(slices, one, two)
    local unknown = not one.height and one or not two.height and two
    if unknown then
        return nil, unknown.why
    elseif not one.step then
        return nil, "the distance between slices is not known"
    end
    local apart = math.abs(two.height - one.height) + (two.top or 0) - (one.top or 0)
    return slices - apart / one.step
end

return z_heights
