--- Simulated scans as files: Data Exchange, and NXtomo, which keeps all frames in one dataset in
-- the order in which they were taken.

local mb = require "moonbeam"

local scan_writer = {}

-- A function that writes frames to a dataset at a place: {{frames of the part, place}, ...}. Frames
-- beyond the first part go to the second.
local function parts_writer(dataset, parts)
    return function(array, first)
        local count = array.shape[1]
        for _, part in ipairs(parts) do
            local low, high = math.max(first, part.first), math.min(first + count - 1, part.last)
            if low <= high then
                local view <close> = array:view({low - first + 1, high - first + 1}, mb.all, mb.all)
                dataset:write(view, {part.place + low - part.first, part.place + high - part.first})
            end
        end
    end
end

-- Data Exchange. Flats and darks have datasets of their own.
local function data_exchange(file, scan)
    file:write("/implements", "exchange")
    file:group("/exchange", "NXdata") -- which Data Exchange does not know, but viewers look for
    file:set_attribute("/", "default", "exchange")
    file:set_attribute("/exchange", "signal", "data")
    file:set_attribute("/exchange", "axes", {"theta", ".", "."})
    file:write("/exchange/theta", mb.array(scan.degrees, {dtype = "f64"}),
        {attributes = {units = "deg"}})
    file:write("/measurement/instrument/detector/pixel_size", scan.pixel_size * 1e6,
        {attributes = {units = "um"}})
    local writers = {}
    for name, path in pairs {data = "data", flats = "data_white", darks = "data_dark"} do
        local dataset = file:create_dataset("/exchange/" .. path,
            {shape = {scan[name], scan.rows, scan.cols}, dtype = scan.dtype,
            attributes = {axes = name == "data" and "theta:y:x" or nil}})
        writers[name] = parts_writer(dataset, {{first = 1, last = scan[name], place = 1}})
    end
    return writers
end

-- The order of NXtomo: darks, flats, projections, and the flats that come after them.
local function layout_of(scan)
    local before = scan.flats - scan.flats_after
    local places = {
        darks = {{first = 1, last = scan.darks, place = 1}},
        flats = {{first = 1, last = before, place = scan.darks + 1},
            {first = before + 1, last = scan.flats, place = scan.darks + before + scan.data + 1}},
        data = {{first = 1, last = scan.data, place = scan.darks + before + 1}},
    }
    local keys = {}
    for name, key in pairs {darks = 2, flats = 1, data = 0} do
        for _, part in ipairs(places[name]) do
            for i = 0, part.last - part.first do
                keys[part.place + i] = key
            end
        end
    end
    return places, keys
end

local function nxtomo(file, scan)
    local places, keys = layout_of(scan)
    local degrees = {}
    for i = 1, #keys do
        degrees[i] = scan.degrees[i - places.data[1].place + 1]
            or (i < places.data[1].place and 0 or scan.degrees[#scan.degrees])
    end
    for _, group in ipairs {"/entry NXentry", "/entry/instrument NXinstrument",
        "/entry/instrument/detector NXdetector", "/entry/sample NXsample", "/entry/data NXdata"} do
        file:group(group:match "%S+", group:match "%S+$")
    end
    file:set_attribute("/", "NX_class", "NXroot")
    file:set_attribute("/", "default", "entry")
    file:set_attribute("/entry", "default", "data")
    file:set_attribute("/entry/data", "signal", "data")
    file:set_attribute("/entry/data", "axes", {"rotation_angle", ".", "."})
    file:write("/entry/definition", "NXtomo")
    file:write("/entry/sample/name", "Shepp-Logan phantom, simulated")
    file:write("/entry/sample/rotation_angle", mb.array(degrees, {dtype = "f64"}),
        {attributes = {units = "degree"}})
    file:write("/entry/instrument/detector/image_key", mb.array(keys, {dtype = "i32"}))
    for _, axis in ipairs {"x", "y"} do
        file:write(("/entry/instrument/detector/%s_pixel_size"):format(axis), scan.pixel_size,
            {attributes = {units = "m"}})
    end
    local dataset = file:create_dataset("/entry/instrument/detector/data",
        {shape = {#keys, scan.rows, scan.cols}, dtype = scan.dtype,
        attributes = {interpretation = "image"}})
    for _, path in ipairs {"instrument/detector/data", "sample/rotation_angle",
        "instrument/detector/image_key"} do
        file:link("/entry/" .. path, "/entry/data/" .. path:match "[^/]+$")
    end
    local writers = {}
    for name, parts in pairs(places) do
        writers[name] = parts_writer(dataset, parts)
    end
    return writers
end

--- Writes the head of a scan to an HDF5 file and makes room for its frames. `scan`: format ("dx" or
-- "nxtomo"), data, flats, darks (how many frames), flats_after (how many of the flats come after
-- the projections), rows, cols, dtype, degrees, pixel_size (m).
-- Returns functions data, flats and darks: each writes frames, the first having this number.
function scan_writer.open(file, scan)
    return (scan.format == "dx" and data_exchange or nxtomo)(file, scan)
end

return scan_writer
