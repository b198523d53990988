-- Where a scan's datasets are in an HDF5 file.
--
-- Data Exchange has fixed paths. NXtomo is found by its classes and definition, not by names, as
-- every facility names its groups differently (/entry, /entry1/tomo_entry, /1.1, ...).
-- Returns {format, data, flats, darks, angles, angles_hint, image_key, pixel_sizes, warnings}; what
-- the options name comes before what is found.

local axes = require "moonbeam.scan.statements.axes"
local fail = require "moonbeam.internal.fail"
local pixel_sizes = require "moonbeam.scan.statements.pixel_sizes"
local tables = require "moonbeam.internal.tables"

local function parent_of(path)
    return path:match("^(.*)/[^/]*$")
end

local function name_of(path)
    return path:match("([^/]*)$")
end

local function text_at(file, path)
    local value = file:exists(path) and file:value(path)
    if type(value) == "table" then
        value = value[1]
    end
    return type(value) == "string" and value or nil
end

-- ---------------------------------------------------------------------------------------------
-- Data Exchange

local acquisition <const> = "/process/acquisition"
local detector_group <const> = "/measurement/instrument/detector"

local function data_exchange(file)
    return {
        format = "Data Exchange",
        data = "/exchange/data",
        flats = {
            { path = "/exchange/data_white_pre", place = "before" },
            { path = "/exchange/data_white" }, { path = "/exchange/bright" },
            { path = "/exchange/data_white_post", place = "after" },
        },
        darks = {
            { path = "/exchange/data_dark_pre", place = "before" },
            { path = "/exchange/data_dark" }, { path = "/exchange/dark" },
            { path = "/exchange/data_dark_post", place = "after" },
        },
        constants = {
            flats = acquisition .. "/flat_fields/flat_field_value",
            darks = acquisition .. "/dark_fields/dark_field_value",
        },
        angles = file:exists("/exchange/theta") and "/exchange/theta" or nil,
        angles_hint = " (/exchange/theta)",
        angle_unit = "deg",
        flat_mode = acquisition .. "/flat_fields/flat_field_mode",
        rotation = acquisition .. "/rotation",
        ids = { "/defaults/NDArrayUniqueId", "/exchange/NDArrayUniqueId",
            "/measurement/instrument/detector/NDArrayUniqueId",
            "/entry/instrument/NDAttributes/NDArrayUniqueId",
            "/entry/instrument/detector/NDAttributes/NDArrayUniqueId" },
        id_locations = "/defaults/HDF5FrameLocation",
        exposures = {
            frames = { detector_group .. "/exposure_time" },
            flats = { detector_group .. "/exposure_time_flat",
                acquisition .. "/flat_fields/flat_exposure_time",
                detector_group .. "/flat_exposure_time",
                detector_group .. "/brightfield_exposure_time",
                acquisition .. "/flat_fields/flat_field_exposure" },
            darks = { detector_group .. "/exposure_time_dark",
                acquisition .. "/dark_fields/dark_exposure_time" },
            same = { detector_group .. "/different_flat_exposure",
                acquisition .. "/flat_fields/different_flat_exposure" },
        },
        pixel_sizes = pixel_sizes.of_exchange,
        warnings = {},
    }
end

-- ---------------------------------------------------------------------------------------------
-- NSLS-II FXI, which writes no units

local fxi <const> = {
    format = "NSLS-II FXI",
    data = "/img_tomo",
    flats = { { path = "/img_bkg" }, { path = "/img_bkg_avg" } },
    darks = { { path = "/img_dark" }, { path = "/img_dark_avg" } },
    angles_hint = " (/angle)",
    angle_unit = "deg",
    energy = { path = "/X_eng", factor = 1e3 },
    pixel_sizes = { { path = "/Pixel Size" } },
}

-- ---------------------------------------------------------------------------------------------
-- NXtomo

-- The objects below a group, out of the list of a walk.
local function below(objects, group)
    local found = {}
    local prefix = group == "/" and "/" or group .. "/"
    for _, object in ipairs(objects) do
        if object.path:sub(1, #prefix) == prefix then
            found[#found + 1] = object
        end
    end
    return found
end

local function class_of(object)
    return object and object.attributes and object.attributes.NX_class
end

-- Entries with definition NXtomo; failing that, entries that hold an image key.
local function find_entries(file, objects)
    local defined, keyed, results = {}, {}, {}
    for _, object in ipairs(objects) do
        local class = class_of(object)
        if object.kind == "group" and (class == "NXentry" or class == "NXsubentry") then
            local definition = text_at(file, object.path .. "/definition")
                or object.attributes.definition
            if definition == "NXtomo" then
                defined[#defined + 1] = object.path
            elseif definition == "NXtomoproc" then
                results[#results + 1] = object.path
            else
                for _, inner in ipairs(below(objects, object.path)) do
                    if inner.kind == "dataset" and name_of(inner.path) == "image_key" then
                        keyed[#keyed + 1] = object.path
                        break
                    end
                end
            end
        end
    end
    return #defined > 0 and defined or keyed, results
end

-- The frames: `data` of an NXdetector, best with an image key beside it; else any `data` of rank 3.
local function find_frames(objects, by_path, entry)
    local best, best_score, rivals = nil, 0, {}
    for _, object in ipairs(below(objects, entry)) do
        if axes.are_frames(object) and name_of(object.path) == "data" then
            local parent = parent_of(object.path)
            local score = 1
            if class_of(by_path[parent]) == "NXdetector" then
                score = by_path[parent .. "/image_key"] and 3 or 2
            end
            if score > best_score then
                best, best_score, rivals = object.path, score, {}
            elseif score == best_score then
                rivals[#rivals + 1] = object.path
            end
        end
    end
    return best, best_score > 1 and rivals or {}
end

-- The first dataset of one of these names below the entry, best in a group of this class.
local function find_named(objects, by_path, entry, names, class)
    for _, name in ipairs(names) do
        local first
        for _, object in ipairs(below(objects, entry)) do
            if object.kind == "dataset" and object.dtype and name_of(object.path) == name then
                if class_of(by_path[parent_of(object.path)]) == class then
                    return object.path
                end
                first = first or object.path
            end
        end
        if first then
            return first
        end
    end
    return nil
end

-- Raises where the entry has one of these names and it is a link that leads nowhere, with the
-- link's own error.
local function refuse_lost(file, objects, entry, names)
    for _, object in ipairs(below(objects, entry)) do
        for _, name in ipairs(names) do
            if object.kind == "dangling" and name_of(object.path) == name then
                file:dataset(object.path)
            end
        end
    end
end

local angle_names = { "rotation_angle", "gts_theta_value", "gts_cs_theta", "gts_theta" }

local function nxtomo(file, objects, entry, options)
    local by_path = {}
    for _, object in ipairs(objects) do
        by_path[object.path] = object
    end
    local data, rivals = find_frames(objects, by_path, entry)
    if not data and not options.data then
        refuse_lost(file, objects, entry, { "data" })
    end
    if #rivals > 0 and not options.data then
        fail("argument", "scan.open", "data",
            "'%s' has several detectors (%s, %s): name one with the option data", file.path, data,
            table.concat(rivals, ", "))
    end
    local detector = data and parent_of(data) or entry .. "/instrument/detector"
    local outer = parent_of(entry)
    local key
    for _, name in ipairs { "image_key", "image_key_control" } do
        key = key or by_path[detector .. "/" .. name] and detector .. "/" .. name
            or find_named(objects, by_path, entry, { name }, "NXdetector")
        if not key and outer and outer ~= "" then
            key = find_named(objects, by_path, outer, { name }, "NXdetector")
        end
    end
    local control = key and parent_of(key) .. "/image_key_control"
    if not key and options.image_key == nil then
        refuse_lost(file, objects, entry, { "image_key" })
    end
    local sample = find_named(objects, by_path, entry, { "rotation_angle" }, "NXsample")
    local angles = sample or find_named(objects, by_path, entry, angle_names, "NXsample")
    if not angles and not options.angles then
        refuse_lost(file, objects, entry, angle_names)
    end
    local sample_group = sample and parent_of(sample) or entry .. "/sample"
    local layout = {
        format = "NXtomo",
        entry = entry,
        detector = detector, sample = sample_group, objects = objects,
        data = data,
        image_key = key,
        ids = { find_named(objects, by_path, entry, { "NDArrayUniqueId" })
            or outer and outer ~= "" and find_named(objects, by_path, outer, { "NDArrayUniqueId" })
            or nil },
        exposures = { frames = { detector .. "/count_time", detector .. "/exposure_time" } },
        image_key_control = control ~= key and by_path[control] and control or nil,
        angles = angles,
        angles_hint = " (rotation_angle of the sample)",
        current = by_path[entry .. "/control/data"] and entry .. "/control/data" or nil,
        pixel_sizes = pixel_sizes.of_nxtomo(sample_group, detector),
        warnings = {},
    }
    if not key and options.image_key == nil then
        layout.warnings[1] = "the file has no image key: every frame counts as a projection"
    end
    return layout
end

-- ---------------------------------------------------------------------------------------------

local function frames_list(objects)
    local found = {}
    for _, object in ipairs(objects) do
        if axes.are_frames(object) then
            found[#found + 1] = object.path
        end
    end
    return #found > 0 and "; datasets with three axes: " .. table.concat(found, ", ", 1,
        math.min(#found, 8)) or "; no dataset has three axes"
end

local FEW <const> = 3 -- datasets of one frame each that are no scan yet

-- Raises where a group has a dataset for each frame.
local function refuse_single_frames(file, objects)
    local counts = {}
    for _, object in ipairs(objects) do
        local extents = object.kind == "dataset" and object.dtype and axes.extents(object.shape)
        if extents and (#extents == 2 or #extents == 3 and extents[1] == 1) then
            local group = parent_of(object.path)
            counts[group] = (counts[group] or 0) + 1
            if counts[group] > FEW then
                fail("unsupported", "scan.open", "data", "'%s' has a dataset for each frame, in "
                    .. "the group '%s', as ALS 8.3.2 writes them: 'moonbeam scripts/examples/"
                    .. "gather_frames.lua %s %s NAME.h5' makes one scan of them; its angles are "
                    .. "given by the options angles and angle_unit", file.path, group, file.path,
                    group)
            end
        end
    end
end

-- The entry that the named data belong to; without a name the first.
local function entry_of(data, entries)
    for _, entry in ipairs(entries) do
        if data and data:sub(1, #entry + 1) == entry .. "/" then
            return entry
        end
    end
    return entries[1]
end

local function names_of(entries)
    return table.concat(entries, ", ", 1, math.min(#entries, 4)) .. (#entries > 4 and ", ..." or "")
end

local MOST_LINKED <const> = 256 -- groups of other files that are looked into

-- Does one path lie on the way to the other?
local function same_way(path, other)
    return not other or (other .. "/"):sub(1, #path + 1) == path .. "/"
        or path:sub(1, #other + 1) == other .. "/"
end

-- All objects of a file, and those of the groups of other files that it links to, which a walk of
-- the file does not enter. `wanted`: the path of an entry or dataset that is looked for, or nil.
local function all_objects(file, wanted)
    local objects = file:walk("/", { attributes = true })
    local looked, at, seen = 0, 1, {} -- the same place is looked into once, so that circles end
    while at <= #objects and looked < MOST_LINKED do
        local object = objects[at]
        if object.kind == "group" and object.link and object.link:find(":", 1, true)
            and not seen[object.link] and same_way(object.path, wanted) then
            looked, seen[object.link] = looked + 1, true
            local ok, list = pcall(file.walk, file, object.path, { attributes = true })
            for _, inner in ipairs(ok and list or {}) do -- what is damaged may be of no use here
                objects[#objects + 1] = inner
            end
        end
        at = at + 1
    end
    return objects
end

local function find(file, options)
    if not options.entry and file:exists("/exchange/data") then
        return data_exchange(file)
    elseif not options.entry and file:exists "/img_tomo" then
        return tables.merged(fxi, { warnings = {},
            angles = file:exists "/angle" and "/angle" or nil })
    end
    local objects = all_objects(file, options.entry
        and "/" .. options.entry:gsub("^/+", ""):gsub("/+$", "") or options.data)
    local entries, results = find_entries(file, objects)
    local entry = options.entry
    if entry then
        entry = "/" .. entry:gsub("^/+", ""):gsub("/+$", "")
        if not file:exists(entry) then
            fail("io", "scan.open", "entry", "there is no entry '%s' in '%s'; %s", entry, file.path,
                #entries == 0 and "the file has none: leave the option entry out"
                or ("give %s%s with the option entry"):format(#entries > 1 and "one of " or "",
                    names_of(entries)))
        end
    else
        entry = entry_of(options.data, entries)
    end
    if entry then
        local layout = nxtomo(file, objects, entry, options)
        if #entries > 1 and not options.entry and not options.data then
            layout.warnings[#layout.warnings + 1] =
                ("the file has %d scans (%s); %s is used; the option entry "
                .. "selects another"):format(#entries, names_of(entries), entry)
        end
        if layout.data or options.data then
            return layout
        end
        fail("io", "scan.open", "data", "'%s' has an NXtomo entry %s without frames in a "
            .. "detector: name them with the option data%s", file.path, entry, frames_list(objects))
    elseif options.data then
        return {
            format = "HDF5",
            angles_hint = "",
            pixel_sizes = {},
            warnings = {},
        }
    elseif #results > 0 then
        fail("io", "scan.open", nil, "'%s' is a reconstruction (NXtomoproc), not a scan", file.path)
    end
    refuse_single_frames(file, objects)
    fail("io", "scan.open", "data", "'%s' is not a scan that can be recognized: it has neither "
        .. "/exchange/data nor an NXtomo entry. Name its parts with the option data, "
        .. "the option angles = PATH, the option flats and the option darks%s", file.path,
            frames_list(objects))
end

return function(file, options)
    local layout = find(file, options)
    layout.data = options.data or layout.data
    if type(options.angles) == "string" then
        layout.angles = options.angles
    end
    if options.image_key ~= nil then
        layout.image_key = options.image_key or nil
        layout.image_key_given = true
    end
    return layout
end
