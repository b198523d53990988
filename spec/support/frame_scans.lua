-- Small scans in HDF5 as lists of objects, and what becomes of them: a base that specs change in
-- one place, and the volumes of two scans side by side.

local commands = require "spec.support.commands"
local mb = require "moonbeam"

local frame_scans = {N = 12, ROWS = 4, COLS = 16}
local N <const>, ROWS <const>, COLS <const> = frame_scans.N, frame_scans.ROWS, frame_scans.COLS

-- Frames k of some numbers as nested lists, with a pattern of their own each.
function frame_scans.frames(numbers, level, scale)
    local list = {}
    for i, k in ipairs(numbers) do
        list[i] = {}
        for r = 1, ROWS do
            list[i][r] = {}
            for c = 1, COLS do
                local value = level + (37 * k + 11 * r + 5 * c * c + 3 * k * c) % 97
                list[i][r][c] = math.floor(value * (scale or 1))
            end
        end
    end
    return list
end

function frame_scans.numbers(first, last)
    local list = {}
    for k = first, last do
        list[#list + 1] = k
    end
    return list
end

function frame_scans.data(numbers, scale)
    return frame_scans.frames(numbers or frame_scans.numbers(1, N), 500, scale)
end

function frame_scans.flats(first, last, scale)
    return frame_scans.frames(frame_scans.numbers(first, last), 1000, scale)
end

function frame_scans.darks(first, last)
    return frame_scans.frames(frame_scans.numbers(first, last), 10, 0.2)
end

function frame_scans.degrees(count, step)
    local list = {}
    for i = 1, count or N do
        list[i] = (i - 1) * (step or 180 / N)
    end
    return list
end

local function depth_of(value)
    return type(value) == "table" and 1 + depth_of(value[1]) or 0
end

-- Writes objects: {[path] = value, list, frames, {value =, attributes =, dtype =} or {group =}};
-- false: nothing. Nested lists become u16 unless dtype says otherwise.
function frame_scans.write(path, objects)
    local file <close> = assert(mb.h5.create(path, {overwrite = true}))
    local names = {}
    for name in pairs(objects) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local object = objects[name]
        local facts = type(object) == "table" and (object.value ~= nil or object.group) and object
            or {value = object}
        if facts.group then
            file:group(name, facts.group)
        elseif depth_of(facts.value) > 1 then
            local array <close> = mb.array(facts.value, {dtype = facts.dtype or "u16",
                device = "host"})
            file:write(name, array, {attributes = facts.attributes})
        elseif facts.value ~= false then
            file:write(name, facts.value, {attributes = facts.attributes})
        end
    end
    file:finish()
    return path
end

local function changed(objects, changes)
    for name, object in pairs(changes or {}) do
        objects[name] = object
    end
    return objects
end

-- The objects of a Data Exchange scan with 4 flats and 2 darks, with changes.
function frame_scans.exchange(changes)
    return changed({["/exchange/data"] = frame_scans.data(),
        ["/exchange/data_white"] = frame_scans.flats(1, 4),
        ["/exchange/data_dark"] = frame_scans.darks(1, 2),
        ["/exchange/theta"] = {value = frame_scans.degrees(), attributes = {units = "deg"}},
        ["/measurement/instrument/detector/pixel_size"] = {value = 1,
            attributes = {units = "um"}}}, changes)
end

-- The objects of an NXtomo scan: 2 darks, 2 flats, the projections, 2 flats; with changes below
-- the entry.
function frame_scans.nxtomo(changes)
    local frames, keys, angles = {}, {}, {}
    local function add(list, key)
        for i, frame in ipairs(list) do
            frames[#frames + 1], keys[#keys + 1] = frame, key
            angles[#angles + 1] = key == 0 and (i - 1) * 180 / N or 0
        end
    end
    add(frame_scans.darks(1, 2), 2)
    add(frame_scans.flats(1, 2), 1)
    add(frame_scans.data(), 0)
    add(frame_scans.flats(3, 4), 1)
    local own = {[""] = {group = "NXentry"}, ["/definition"] = "NXtomo",
        ["/instrument"] = {group = "NXinstrument"},
        ["/instrument/detector"] = {group = "NXdetector"},
        ["/instrument/detector/image_key"] = keys,
        ["/instrument/detector/data"] = frames,
        ["/instrument/detector/x_pixel_size"] = {value = 1, attributes = {units = "um"}},
        ["/sample"] = {group = "NXsample"},
        ["/sample/rotation_angle"] = {value = angles, attributes = {units = "deg"}}}
    local objects = {}
    for name, object in pairs(changed(own, changes)) do
        objects["/entry" .. name] = object
    end
    return objects, keys, frames, angles
end

-- Reconstructs a scan, which must have the memory that was predicted: the volume as bytes, and what
-- the command printed.
function frame_scans.volume(path, arguments)
    local result = path .. "-volume.h5"
    arguments = arguments or ""
    local text = commands.must("reconstruct.lua", ("'%s' -o '%s' --overwrite %s %s"):format(path,
        result, arguments:find("--recipe", 1, true) and "" or "-c 7.5", arguments))
    local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
    assert(predicted and predicted == measured, text)
    local file <close> = assert(mb.h5.open(result))
    local volume <close> = file:read "/entry/data/data"
    return volume:to_string(), text
end

return frame_scans
