-- The files that beamlines keep scans in: each layout writes a shot (stranger_shots.lua) into a
-- folder and says how its user reconstructs it.
--
-- A layout is {name, family, write(shot, folder, random), clean, states, words}: family "nxtomo",
-- "exchange", "images", "bare" (frames and angles alone) or "even" (the angles are even, too);
-- write returns the name of the scan and the words that a user of the layout
-- types; `clean` is false where the layout itself needs a line in the report; `states` are
-- statements that the layout can carry beside those of its family; `words` are those by which a
-- line names what the layout has.

local files = require "spec.support.files"
local mb = require "moonbeam"
local scans = require "spec.support.strangers.stranger_scans"

local F64 <const> = {dtype = "f64"}

-- ---- what a shot has, as arrays ----

local function numbers(list)
    return mb.array(list, F64)
end

local function keys(list)
    return mb.array(list, {dtype = "i32"})
end

-- The segments for which `wanted(segment)`.
local function chosen(shot, wanted)
    local list = {}
    for _, segment in ipairs(shot.segments) do
        if wanted(segment) then
            list[#list + 1] = segment
        end
    end
    return list
end

-- The frames of segments as one array, which takes them; nil where there are none.
local function frames_of(segments)
    local parts = {}
    for i, segment in ipairs(segments) do
        parts[i] = segment.frames
        segment.frames = nil
    end
    return #parts > 0 and scans.joined(parts) or nil
end

-- A number for each frame of segments: value_of(segment, i).
local function each_frame(segments, value_of)
    local list = {}
    for _, segment in ipairs(segments) do
        for i = 1, segment.n do
            list[#list + 1] = value_of(segment, i)
        end
    end
    return list
end

local function stored_angle(shot)
    local factor = shot.angle_unit.factor
    return function(segment, i)
        return segment.angles[i] * factor
    end
end

local function is_projection(segment) return segment.key == 0 end

-- The stored angles of the projections.
local function angles_of(shot)
    return each_frame(chosen(shot, is_projection), stored_angle(shot))
end

local function is_flat(segment) return segment.key == 1 end
local function is_dark(segment) return segment.key == 2 end
local function is_first(segment) return not segment.after end
local function is_last(segment) return segment.after end

local function both(one, other)
    return function(segment)
        return one(segment) and other(segment)
    end
end

-- Adds objects of `more` ({name, value, attributes}) under a path.
local function add(objects, base, more)
    for _, object in ipairs(more or {}) do
        local under = table.move(object, 1, 3, 1, {group = object.group})
        under[1] = base .. "/" .. object[1]
        objects[#objects + 1] = under
    end
end

-- ---- NXtomo ----

-- Objects of an entry: `options`: entry, and nothing else that a reader needs.
local function nxtomo_objects(shot, options)
    local entry, detector = options.entry, options.entry .. "/instrument/detector"
    local sample = entry .. "/sample"
    local objects = {}
    for parent in (options.above or ""):gmatch "%S+" do
        objects[#objects + 1] = {parent, group = "NXentry"}
    end
    for _, object in ipairs {
        {entry, group = options.class or "NXentry"}, {entry .. "/definition", "NXtomo"},
        {entry .. "/instrument", group = "NXinstrument"}, {detector, group = "NXdetector"},
        {sample, group = "NXsample"}, {sample .. "/name", "a sample"},
    } do
        objects[#objects + 1] = object
    end
    local controls = shot.controls and each_frame(shot.segments, function(segment)
        return segment.control or segment.key
    end)
    for _, field in ipairs(shot.fields) do
        local list = each_frame(shot.segments, function(segment, i)
            local values = segment.fields and segment.fields[field.name]
            return values and values[i] or field.default or 0
        end)
        objects[#objects + 1] = {entry .. "/" .. field.path, numbers(list), field.unit and
            {units = field.unit} or nil}
    end
    objects[#objects + 1] = {detector .. "/image_key", keys(each_frame(shot.segments,
        function(segment) return segment.key end))}
    if controls then
        objects[#objects + 1] = {detector .. "/image_key_control", keys(controls)}
    end
    objects[#objects + 1] = {sample .. "/rotation_angle", numbers(each_frame(shot.segments,
        stored_angle(shot))), {units = shot.angle_unit.name}}
    if shot.pixel and not shot.own_pixel_sizes then
        for _, axis in ipairs {"x", "y"} do
            objects[#objects + 1] = {("%s/%s_pixel_size"):format(options.pixels or detector, axis),
                shot.pixel * shot.pixel_unit.per_meter, {units = shot.pixel_unit.name}}
        end
    end
    add(objects, entry, shot.more)
    objects[#objects + 1] = {detector .. "/data", frames_of(shot.segments)}
    return objects
end

local function nxtomo(options)
    return function(shot, folder)
        options.pixels = options.sample_pixels and options.entry .. "/sample" or nil
        local objects = nxtomo_objects(shot, options)
        local detector = options.entry .. "/instrument/detector"
        if options.links then
            objects[#objects + 1] = {options.entry .. "/data", group = "NXdata"}
            for _, path in ipairs {"instrument/detector/data", "instrument/detector/image_key",
                "sample/rotation_angle"} do
                objects[#objects + 1] = {("%s/data/%s"):format(options.entry,
                    path:match "[^/]+$"), link = options.entry .. "/" .. path,
                    soft = options.links == "soft"}
            end
        end
        if options.sample_pixels and not shot.states_view then
            add(objects, detector, {{"field_of_view", "Full"}})
        end
        scans.write(folder .. "/scan.nxs", objects)
        return "scan.nxs", ""
    end
end

-- A place for the frames and angles that a reader cannot know, as of DIAD.
local function diad(shot, folder)
    local angles = numbers(each_frame(shot.segments, stored_angle(shot)))
    local objects = {
        {"/entry", group = "NXentry"}, {"/entry/imaging", group = "NXdata"},
        {"/entry/instrument", group = "NXinstrument"},
        {"/entry/instrument/imaging", group = "NXdetector"},
        {"/entry/imaging_sum", group = "NXdata"},
        {"/entry/instrument/imaging/image_key", keys(each_frame(shot.segments, function(segment)
            return segment.key
        end))},
        {"/entry/imaging_sum/gts_theta_value", angles, {units = shot.angle_unit.name}},
        {"/entry/imaging/data", frames_of(shot.segments)},
    }
    scans.write(folder .. "/scan.nxs", objects)
    return "scan.nxs", "--data-path /entry/imaging/data "
        .. "--image-key-path /entry/instrument/imaging/image_key "
        .. "--angles-path /entry/imaging_sum/gts_theta_value"
end

-- BLISS: a group for each of the scans of a sequence.
local function bliss(shot, folder)
    local objects = {}
    local kinds = {{"/2.1", is_dark}, {"/3.1", is_flat}, {"/4.1", is_projection}}
    for i, kind in ipairs(kinds) do
        local place, wanted = table.unpack(kind)
        local segments = chosen(shot, wanted)
        table.move({{place, group = "NXentry"}, {place .. "/title", "a scan"},
            {place .. "/instrument", group = "NXinstrument"},
            {place .. "/measurement", group = "NXcollection"}}, 1, 4, #objects + 1, objects)
        if i == 3 then
            objects[#objects + 1] = {place .. "/measurement/hrsrot", numbers(each_frame(segments,
                stored_angle(shot))), {units = shot.angle_unit.name}}
        end
        objects[#objects + 1] = {place .. "/measurement/pcolinux", frames_of(segments)}
    end
    scans.write(folder .. "/scan.h5", objects)
    return "scan.h5", "--data-path /4.1/measurement/pcolinux "
        .. "--flats-path /3.1/measurement/pcolinux --darks-path /2.1/measurement/pcolinux "
        .. "--angles-path /4.1/measurement/hrsrot "
        .. "--angle-unit " .. shot.angle_unit.option
end

-- Writes objects into a master, NAME, and files beside or below it. `place_of(path)` is the file
-- and the path there of what is linked, or nil; `links` are {path, file, target}, by default one
-- for each of those.
local function write_master(objects, folder, name, place_of, links)
    local outside, kept, made = {}, {}, {}
    for _, object in ipairs(objects) do
        local file, target = place_of(object[1])
        if file then
            outside[file] = outside[file] or {}
            made[#made + 1] = {object[1], file, target}
            object[1] = target
            table.insert(outside[file], object)
        else
            kept[#kept + 1] = object
        end
    end
    scans.write(folder .. "/" .. name, kept)
    for file, list in pairs(outside) do
        mb.system.mkdir(folder .. "/" .. (file:match "^(.*)/" or "."))
        scans.write(folder .. "/" .. file, list)
    end
    local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
    for _, link in ipairs(links or made) do
        local output, ok = files.run(("%s link '%s/%s' %s %s %s"):format(
            (program:gsub("[^/]*$", "h5_hostile")), folder, name, table.unpack(link)))
        assert(ok, output)
    end
    return name, ""
end

-- A master whose datasets are links to a file, or to three files, or whose detector is one.
local function external(shot, folder, random)
    local objects = nxtomo_objects(shot, {entry = "/entry"})
    local base = random(2) == 1 and "" or "raw/"
    local way, detector = random(3), "/entry/instrument/detector"
    local single = way == 1 and "data.h5"
    if way == 3 then
        return write_master(objects, folder, "master.nxs", function(path)
            if path == detector or path:sub(1, #detector + 1) == detector .. "/" then
                return base .. "detector.h5", "/detector" .. path:sub(#detector + 1)
            end
        end, {{detector, base .. "detector.h5", "/detector"}})
    end
    local linked = {[detector .. "/data"] = "data.h5",
        [detector .. "/image_key"] = single or "keys.h5",
        ["/entry/sample/rotation_angle"] = single or "angles.h5"}
    return write_master(objects, folder, "master.nxs", function(path)
        return linked[path] and base .. linked[path], "/stored" .. path:match "/[^/]+$"
    end)
end

-- ---- Data Exchange ----

-- Objects of a file; `names`: of the flats before and after ("data_white" may have both).
local function exchange_objects(shot, names)
    local objects = {{"/implements", "exchange:measurement:process"}}
    if not names.without_angles then
        objects[2] = {"/exchange/theta", numbers(angles_of(shot)),
            (shot.angle_unit.option == "rad" or not shot.unlabelled)
            and {units = shot.angle_unit.name} or nil}
    end
    if shot.pixel and not shot.own_pixel_sizes then
        objects[#objects + 1] = {"/measurement/instrument/detector/actual_pixel_size_x",
            shot.pixel * shot.pixel_unit.per_meter, {units = shot.pixel_unit.name}}
    end
    add(objects, "", shot.more)
    local places = {data = chosen(shot, is_projection)}
    if names.before == names.after then
        places[names.before] = chosen(shot, is_flat)
    else
        places[names.before] = chosen(shot, both(is_flat, is_first))
        places[names.after] = chosen(shot, both(is_flat, is_last))
    end
    places[names.dark or "data_dark"] = chosen(shot, is_dark)
    for name, segments in pairs(places) do
        local frames = frames_of(segments)
        if frames then
            objects[#objects + 1] = {"/exchange/" .. name, frames}
        end
    end
    return objects
end

local function exchange(names, more)
    return function(shot, folder)
        local objects = exchange_objects(shot, names)
        for _, object in ipairs(more and more(shot) or {}) do
            objects[#objects + 1] = object
        end
        scans.write(folder .. "/scan.h5", objects)
        return "scan.h5", ""
    end
end

-- A master whose projections, flats, darks and angles are links, or whose group is one.
local function external_exchange(shot, folder, random)
    local objects = exchange_objects(shot, {before = "data_white", after = "data_white"})
    local way, base = random(3), random(2) == 1 and "" or "raw/"
    local function place_of(path)
        local name = path:match "^/exchange/(.+)"
        if name and way == 1 then
            return base .. name .. ".h5", "/entry/" .. name
        end
        return name and base .. "data.h5", name and "/exchange/" .. name
    end
    return write_master(objects, folder, "master.h5", place_of, way == 3
        and {{"/exchange", base .. "data.h5", "/exchange"}} or nil)
end

-- What the acquisition software of the APS writes beside the data, which says nothing.
local function acquisition()
    return {
        {"/process/acquisition/start_date", "2026-11-27T10:00:00+0000"},
        {"/process/acquisition/rotation/rotation_speed", 1.5, {units = "deg/s"}},
        {"/measurement/instrument/name", "a beamline"},
        {"/measurement/sample/experiment/proposal", "none"},
        {"/defaults/timestamp", 0.5},
    }
end

-- Constants for flats and darks, and the angles by their start and step.
local function constants(shot, folder)
    local base = "/process/acquisition/"
    local first = each_frame(chosen(shot, is_projection), function(segment, i)
        return segment.angles[i] -- degrees, without a unit
    end)
    local dark, flat = shot.dark, shot.beam + shot.dark
    for _, segment in ipairs(chosen(shot, function(segment) return segment.key ~= 0 end)) do
        segment.frames:release()
        segment.frames = nil
    end
    local objects = {
        {"/exchange/data", frames_of(chosen(shot, is_projection))},
        {base .. "flat_fields/flat_field_value", flat + 0.0},
        {base .. "dark_fields/dark_field_value", dark + 0.0},
        {base .. "rotation/rotation_start", first[1]},
        {base .. "rotation/rotation_step", (first[#first] - first[1]) / (#first - 1)},
        {base .. "rotation/num_angles", #first},
    }
    scans.write(folder .. "/scan.h5", objects)
    return "scan.h5", ""
end

-- Frames that were dropped: the angles are those of all, and the ids say which are there.
local function identified(shot, folder, random)
    local objects = exchange_objects(shot, {before = "data_white", after = "data_white",
        without_angles = true})
    local angles, dropped = angles_of(shot), {}
    for third = 0, 2 do -- apart from each other: what is left is right
        dropped[#angles * third // 3 + random(2, #angles // 3 - 2)] = true
    end
    local kept, ids, places = {}, {}, {}
    local data
    for _, object in ipairs(objects) do
        data = object[1] == "/exchange/data" and object or data
    end
    for i = 1, #angles do
        if not dropped[i] then
            kept[#kept + 1], ids[#ids + 1], places[#places + 1] = i, 17 + i, "/exchange/data"
        end
    end
    local all <close> = data[2]
    data[2] = mb.empty({#kept, all.shape[2], all.shape[3]}, {dtype = all.dtype, device = "host"})
    for place, i in ipairs(kept) do
        local from <close> = all:view(i)
        local to <close> = data[2]:view(place)
        mb.convert(from, all.dtype, {out = to})
    end
    objects[#objects + 1] = {"/exchange/theta", numbers(angles), {units = shot.angle_unit.name}}
    objects[#objects + 1] = {"/defaults/NDArrayUniqueId", keys(ids)}
    objects[#objects + 1] = {"/defaults/HDF5FrameLocation", places}
    scans.write(folder .. "/scan.h5", objects)
    return "scan.h5", ""
end

-- Flats and darks in files of their own.
local function separate(shot, folder)
    local words = {}
    for option, wanted in pairs {flats = is_flat, darks = is_dark} do
        scans.write(("%s/%s.h5"):format(folder, option), {{"/entry/data",
            frames_of(chosen(shot, wanted))}})
        words[#words + 1] = ("--%s %s.h5:/entry/data"):format(option, option)
    end
    table.sort(words)
    local objects = exchange_objects(shot, {before = "none", after = "none"})
    scans.write(folder .. "/scan.h5", objects)
    return "scan.h5", table.concat(words, " ")
end

-- Every axis of areaDetector: (1, n, y, x); or the angles in the middle.
local function axes_of(transpose)
    return function(shot, folder)
        local objects = exchange_objects(shot, {before = "data_white", after = "data_white"})
        for _, object in ipairs(objects) do
            if object[1] == "/exchange/data" or transpose and object[1]:find "/exchange/data_" then
                local stored <close> = object[2]
                if transpose then
                    local view <close> = stored:permute(2, 1, 3)
                    object[2], object[3] = view:copy(), {axes = "y:theta:x"}
                else
                    object[2] = stored:copy():reshape(1, table.unpack(stored.shape))
                end
            end
        end
        scans.write(folder .. "/scan.h5", objects)
        return "scan.h5", ""
    end
end

-- ---- images ----

local function pixel_words(shot)
    return shot.pixel and (" --pixel-size %.9g"):format(shot.pixel * 1e6) or ""
end

-- Writes frames as pages of one file, or as files of a folder (names of pages by `name_of`).
local function write_series(frames, folder, name_of)
    mb.system.mkdir(folder)
    for i = 1, frames.shape[1] do
        local name = name_of(i)
        if name then
            local page <close> = frames:view(i)
            mb.tiff.write(folder .. "/" .. name, page)
        end
    end
end

-- Flats and darks as stacks beside the projections; their words.
local function beside(shot, folder)
    for name, wanted in pairs {flats = is_flat, darks = is_dark} do
        local frames <close> = frames_of(chosen(shot, wanted))
        mb.tiff.write(("%s/%s.tif"):format(folder, name), frames)
    end
    return " --flats flats.tif --darks darks.tif" .. pixel_words(shot)
end

-- The first and the last angle, which is all that a user of an even scan types.
local function ends_of(shot)
    local angles = angles_of(shot)
    return ("--angles %.12g:%.12g --angle-unit %s"):format(angles[1], angles[#angles],
        shot.angle_unit.option)
end

-- Lists of angles as instruments write them: the text of line i (from 0).
local LISTS <const> = {
    function(_, angle) return angle end,
    function(i, angle) return ("%d %s"):format(i, angle) end,
    function(i, angle) return ("%d\t%s"):format(i + 1, angle) end,
    function(_, angle) return (angle:gsub("%.", ",")) end,
    function(i, angle) return (i == 0 and "angle\n" or "") .. angle end,
    function(i, angle) return (i == 0 and "\u{FEFF}" or "") .. angle .. "\r" end,
    function(i, angle) return ("%s# comment %d"):format(angle .. " ", i) end,
}

local function write_list(shot, folder, random, wanted)
    local form = shot.clean and LISTS[1] or LISTS[random(#LISTS)]
    local lines = {}
    for i, angle in ipairs(angles_of(shot)) do
        if not wanted or wanted(i) then
            lines[#lines + 1] = form(#lines, ("%.6f"):format(angle))
        end
    end
    files.write(folder .. "/angles.txt", table.concat(lines, "\n") .. "\n")
    return "--angles-path angles.txt --angle-unit " .. shot.angle_unit.option
end

local function named_by(random)
    local form = ({"img_%05d.tif", "p%d.tif", "scan0042_%04d.tif"})[random(3)]
    local first, step = random(0, 1), ({1, 1, 10})[random(3)]
    return function(i)
        return form:format(first + (i - 1) * step)
    end
end

local function tiff_series(shot, folder, random)
    local gap = shot.gap or {0, -1}
    local function is_there(i)
        return i < gap[1] or i > gap[2]
    end
    -- The ends, where numbers pair the frames; a list with an angle a number; or one a file.
    local words
    if not shot.uneven and (not shot.gap or gap.way == 1) then
        words = ends_of(shot) .. (shot.gap and " --allow-missing" or "")
    else
        words = write_list(shot, folder, random, gap.way == 2 and is_there or nil)
    end
    words = words .. beside(shot, folder)
    local frames <close> = frames_of(chosen(shot, is_projection))
    local name_of = named_by(random)
    write_series(frames, folder .. "/frames", function(i)
        return is_there(i) and name_of(i) or nil
    end)
    return "frames", words
end

local function one_series(shot, folder, random)
    local words = shot.uneven and write_list(shot, folder, random) or ends_of(shot)
    files.write(folder .. "/keys.txt", table.concat(each_frame(shot.segments, function(segment)
        return segment.key
    end), "\n") .. "\n")
    local frames <close> = frames_of(shot.segments)
    write_series(frames, folder .. "/frames", named_by(random))
    return "frames", words .. " --image-key-path keys.txt" .. pixel_words(shot)
end

-- The ranges of each kind in a series: "41:220", or "21:40,221:240".
local function ranges_of(shot, wanted)
    local list, first = {}, 1
    for _, segment in ipairs(shot.segments) do
        if wanted(segment) then
            list[#list + 1] = ("%d:%d"):format(first, first + segment.n - 1)
        end
        first = first + segment.n
    end
    return table.concat(list, ",")
end

local function ranges(shot, folder, random)
    local words = shot.uneven and write_list(shot, folder, random) or ends_of(shot)
    local name = ("frames:%s"):format(ranges_of(shot, is_projection))
    words = ("%s --flats frames:%s --darks frames:%s"):format(words, ranges_of(shot, is_flat),
        ranges_of(shot, is_dark))
    local frames <close> = frames_of(shot.segments)
    write_series(frames, folder .. "/frames", named_by(random))
    return name, words .. pixel_words(shot)
end

-- Angles in a column of a table, in a file of NumPy, or typed.
local function write_columns(shot, folder, random)
    local angles, way = angles_of(shot), shot.clean and 1 or random(3)
    local unit = " --angle-unit " .. shot.angle_unit.option
    if way == 1 then
        local lines = {"# number; angle; temperature"}
        for i, angle in ipairs(angles) do
            lines[i + 1] = ("%d; %.6f; %.2f"):format(i, angle, 20 + i % 7 / 10)
        end
        files.write(folder .. "/table.txt", table.concat(lines, "\n") .. "\n")
        return "--angles-path table.txt:2" .. unit
    elseif way == 2 then
        local list <close> = numbers(angles)
        mb.npy.write(folder .. "/angles.npy", list)
        return "--angles-path angles.npy" .. unit
    end
    local typed = {}
    for i, angle in ipairs(angles) do
        typed[i] = ("%.6g"):format(angle)
    end
    return "--angles-path=" .. table.concat(typed, ",") .. unit
end

local function zarr_stack(shot, folder, random)
    local words = write_columns(shot, folder, random) .. beside(shot, folder)
    local frames <close> = frames_of(chosen(shot, is_projection))
    mb.images.write(folder .. "/frames.zarr", frames)
    return "frames.zarr", words
end

local function tiff_stack(shot, folder, random)
    local words = write_list(shot, folder, random) .. beside(shot, folder)
    local frames <close> = frames_of(chosen(shot, is_projection))
    if random(2) == 1 then
        mb.tiff.write(folder .. "/frames.tif", frames)
        return "frames.tif", words
    end
    mb.npy.write(folder .. "/frames.npy", frames)
    return "frames.npy", words
end

-- ---- the list ----

local function set(names)
    local found = {}
    for name in names:gmatch "%S+" do
        found[name] = true
    end
    return found
end

local APS <const> = {before = "data_white", after = "data_white"}

return {
    {name = "NXtomo", family = "nxtomo", write = nxtomo {entry = "/entry", links = "hard"}},
    {name = "NXtomo, ESRF", family = "nxtomo", write = nxtomo {entry = "/entry0000",
        links = "soft", sample_pixels = true}, states = set "control"},
    {name = "DLS", family = "nxtomo", write = nxtomo {entry = "/entry1/tomo_entry",
        above = "/entry1", class = "NXsubentry", links = "soft"}},
    {name = "DIAD", family = "bare", write = diad},
    {name = "BLISS", family = "bare", write = bliss},
    {name = "external master", words = {"link"}, family = "nxtomo", write = external},
    {name = "external, exchange", family = "exchange", words = {"link"},
        write = external_exchange},
    {name = "APS", family = "exchange", write = exchange(APS, acquisition)},
    {name = "pre and post", words = {"data_white_p"}, family = "exchange", clean = false,
        write = exchange {before = "data_white_pre", after = "data_white_post"},
        states = set "profile"},
    {name = "eBIC", words = {"data_white_post"}, family = "exchange", clean = false,
        states = set "profile",
        write = exchange {before = "data_white", after = "data_white_post"}},
    {name = "constants", words = {"flat_field_value", "rotation_s"}, family = "even",
        clean = false, write = constants},
    {name = "ids", words = {"uniqueid"}, family = "bare", clean = false, write = identified},
    {name = "separate files", family = "exchange", write = separate},
    {name = "leading axis", words = {"ax[ei]s"}, family = "bare", clean = false,
        write = axes_of(false)},
    {name = "y:theta:x", words = {"ax[ei]s"}, family = "bare", clean = false,
        write = axes_of(true)},
    {name = "TIFF series", family = "images", write = tiff_series, states = set "gap"},
    {name = "one TIFF series", words = {"image.key"}, family = "images", clean = false,
        write = one_series},
    {name = "ranges", words = {"frames:"}, family = "images", clean = false, write = ranges},
    {name = "Zarr", family = "images", write = zarr_stack},
    {name = "stack and list", family = "images", write = tiff_stack},
}
