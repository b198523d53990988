--- Which frames of a file are projections, flats and darks, and where they are stored.

local fail = require "moonbeam.internal.fail"
local image_frames = require "moonbeam.scan.image_frames"
local left_out = require "moonbeam.scan.left_out"
local missing = require "moonbeam.scan.missing"
local source = require "moonbeam.scan.source"
local stored_frames = require "moonbeam.scan.stored_frames"

local frames = {}

--- Indices as runs {first, last} of neighbors.
function frames.runs(indices)
    local runs = {}
    for _, index in ipairs(indices) do
        local run = runs[#runs]
        if run and run[2] + 1 == index then
            run[2] = index
        else
            runs[#runs + 1] = {index, index}
        end
    end
    return runs
end

--- The indices in these runs, in their order.
function frames.indices(runs)
    local indices = {}
    for _, run in ipairs(runs) do
        for index = run[1], run[2] do
            indices[#indices + 1] = index
        end
    end
    return indices
end

--- How many indices are in the runs.
function frames.count(runs)
    local count = 0
    for _, run in ipairs(runs) do
        count = count + run[2] - run[1] + 1
    end
    return count
end

--- The indices of the projections, flats and darks by the image keys; without those every frame is
-- a projection.
function frames.sorted(s, layout)
    local lists, ignored, keys = {[0] = {}, {}, {}}, 0, layout.image_key
    if type(keys) == "string" then
        local file, path = source.find(s, keys, "image_key")
        keys = source.numbers(file, path, s.n_frames)
    end
    if keys and #keys ~= s.n_frames then
        fail("shape", "scan.open", "image_key", "'%s' has %d image keys for %d frames", s.path,
            keys.count or #keys, s.n_frames)
    end
    for i = 1, s.n_frames do
        local list = lists[keys and keys[i] or 0]
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
    if #lists[0] == 0 then
        fail("shape", "scan.open", "image_key", "no frame of '%s' is a projection (image key 0)",
            s.path)
    end
    return lists[0], lists[1], lists[2]
end

--- A dataset of frames with the shape checked: (frame, row, column), or (row, column) for one
-- frame. `what`: "data", "flats" or "darks".
function frames.dataset(s, file, path, what)
    local dataset = file:dataset(path)
    local shape, data = dataset.shape, what == "data"
    if #shape ~= 3 and not (#shape == 2 and not data) then
        fail("shape", "scan.open", what, "'%s' in '%s' has %d ax%ss, but %s is (%s, row, column)",
            path, file.path, #shape, #shape == 1 and "i" or "e", data and "a scan" or what,
            data and "angle" or "frame")
    elseif not dataset.dtype then
        fail("dtype", "scan.open", what, "'%s' in '%s' holds %s, not numbers", path, file.path,
            dataset.stored)
    elseif s.counts_as and not (s.counts_as == "unsigned" and not data
        and dataset.stored:find "^u") then
        dataset:take(s.counts_as)
    end
    for axis, extent in ipairs(shape) do
        if extent == 0 then
            fail("shape", "scan.open", what, "'%s' in '%s' is empty: it has no %s", path, file.path,
                ({"frames", "rows", "columns"})[axis + 3 - #shape])
        end
    end
    if not data and (shape[#shape - 1] ~= s.rows or shape[#shape] ~= s.cols) then
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

-- Where flats or darks come from, without those that an option leaves out.
local function without(found, options, what)
    if found and options["bad_" .. what] ~= nil then
        found.runs = left_out(found.runs, options["bad_" .. what], what)
        found.count = frames.count(found.runs)
    end
    return found
end

--- Flats or darks that are an image, without the frames `bad`. They stay in their files, unless
-- they are compressed or some are left out: then they are in memory of the host until the scan is
-- closed, because every block would decode all.
function frames.of_image(s, name, what, bad)
    local volume, files = image_frames.open(name, what)
    table.move(files, 1, #files, #s.files + 1, s.files)
    s.files[#s.files + 1] = {path = name, close = function() volume:close() end}
    local array = (volume.compressed or bad) and image_frames.load(volume) or nil
    array = array and image_frames.without(array, bad, what)
    if array then
        s.files[#s.files + 1] = {path = name, close = function() array:release() end}
    end
    local stored = not array and stored_frames.new(volume) or nil
    local shape = (array or stored).shape
    if shape[2] ~= s.rows or shape[3] ~= s.cols then
        fail("shape", "scan.open", nil, "the option %s_file is '%s', whose frames have %d x %d "
            .. "pixels; the projections have %d x %d", what, name, shape[2], shape[3], s.rows,
            s.cols)
    end
    return {array = array, stored = stored, dataset = array or stored, runs = {{1, shape[1]}},
        count = shape[1]}
end

--- Where the flats or darks come from: {dataset, runs, count}, or nil if there are none. `keyed`:
-- the indices of those among the projections.
function frames.reference(s, layout, options, what, keyed)
    local file, path, own = s.file, options[what], options[what .. "_file"]
    if path == false then
        return nil
    elseif own and image_frames.is(own) then
        return frames.of_image(s, own, what, options["bad_" .. what])
    elseif own then
        file = source.open(s, own)
        path = path_in(file, options, what, layout[what])
    elseif path then
        file, path = source.find(s, path, what)
    elseif #keyed > 0 then
        return without({dataset = s.data, runs = frames.runs(keyed), count = #keyed}, options,
            what)
    elseif layout[what] and file:exists(layout[what]) then
        path = layout[what]
    else
        source.confirm_absence(s)
        return nil
    end
    -- Some files keep the place of flats or darks with nothing in it.
    local dataset = file:dataset(path)
    local count = #dataset.shape == 3 and dataset.shape[1] or 1
    if count == 0 and not options[what] and not own then
        return nil
    end
    dataset = frames.dataset(s, file, path, what)
    missing.check_count(file, path, count)
    local runs = missing.present(s, dataset, file, options.allow_missing)
    return without({dataset = dataset, runs = runs, count = frames.count(runs)}, options, what)
end

return frames
