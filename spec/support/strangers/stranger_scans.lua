-- Scans of an object that is known exactly, for specs that judge slices: five ellipses without any
-- symmetry, so that a mirrored, turned or shifted slice is seen, and other ones in each row, so
-- that an exchanged row is seen.
--
-- Lengths of the object are in half-widths, `half` pixels each. Column u of row r sees
-- u = X cos t + Y sin t + center, X to the right and Y up. Angles are in degrees.

local mb = require "moonbeam"

local stranger_scans = {}

local HOST <const> = "host"

-- x, y, a, b, phi, attenuation; the second one is further down in lower rows, by 2 pixels a row.
stranger_scans.OBJECT = {
    {0, 0, 0.80, 0.70, 0.3, 1.0}, {0.35, 0.2, 0.15, 0.1, 0.8, 1.5}, {-0.4, 0.3, 0.1, 0.2, 0, -0.8},
    {0.1, -0.45, 0.2, 0.08, -0.4, 0.7}, {-0.25, -0.3, 0.05, 0.05, 0, 2.0},
}

-- The largest error of a right slice.
stranger_scans.RIGHT = 0.045

-- Ellipsoids so tall that a row sees ellipses. `scan`: cols, half, object, mu; row from 0.
local function ellipsoids(scan, row)
    local half, flat = scan.half or scan.cols / 2, {}
    local mu = scan.mu or 2 / scan.cols
    for i, e in ipairs(scan.object or stranger_scans.OBJECT) do
        local y = e[2] * half - (i == 2 and 2 * row or 0)
        for _, value in ipairs {e[6] * mu, e[3] * half, e[4] * half, 1e9, e[1] * half, y, 0,
            e[5]} do
            flat[#flat + 1] = value
        end
    end
    return flat
end

-- Writes projections of one row of the object to a row of `into`, (frame, row, column), at the
-- frames of a list.
local function project(scan, into, frames, row, object_row)
    local angles, shifts = {}, scan.shifts and {}
    for i, frame in ipairs(frames) do
        angles[i] = math.rad(scan.angles[frame])
        if shifts then
            shifts[i] = scan.shifts[frame]
        end
    end
    local rays <close> = mb.ellipsoid_projections(ellipsoids(scan, object_row), angles, {0},
        scan.cols, {center = scan.center, shifts = shifts, subrays = 4, device = HOST})
    if #frames == into.shape[1] then
        local place <close> = into:view(mb.all, row)
        local part <close> = rays:view(mb.all, 1)
        mb.convert(part, "f32", {out = place})
        return
    end
    for i, frame in ipairs(frames) do
        local place <close> = into:view(frame, row)
        local part <close> = rays:view(i, 1)
        mb.convert(part, "f32", {out = place})
    end
end

--- Line integrals (projection, row, column), f32, of a scan: angles (degrees, in order), rows,
-- cols, center; half (pixels), mu (attenuation per pixel), object; lifts: rows of the object by
-- which each projection sees lower ones; shifts: columns by which each projection is shifted.
function stranger_scans.line_integrals(scan)
    local n = #scan.angles
    local into = mb.zeros({n, scan.rows, scan.cols}, {device = HOST})
    local by_lift = {}
    for frame = 1, n do
        local lift = scan.lifts and scan.lifts[frame] or 0
        by_lift[lift] = by_lift[lift] or {}
        table.insert(by_lift[lift], frame)
    end
    for lift, frames in pairs(by_lift) do
        for row = 1, scan.rows do
            project(scan, into, frames, row, row - 1 + lift)
        end
    end
    return into
end

--- Counts of line integrals: beam * exp(-p) + dark, rounded where `dtype` (u16) holds integers.
-- `options`: beam (40000), dark (100), dtype, profile: the relative beam, an array that broadcasts.
function stranger_scans.counts(integrals, options)
    options = options or {}
    local negative <close> = integrals:cast("f32", {scale = -1})
    local counts <close> = negative:exp()
    if options.profile then
        mb.binary(counts, "mul", {b = options.profile, out = counts})
    end
    return counts:cast(options.dtype or "u16", {scale = options.beam or 40000,
        offset = options.dark or 100})
end

--- The exact slice (y, x) of a row, from 0, per pixel, with `size` pixels a side.
function stranger_scans.truth(scan, row, size)
    local volume <close> = mb.ellipsoid_volume(ellipsoids(scan, row), {0}, size or scan.cols,
        {subsamples = 3, device = HOST})
    local slice <close> = volume:view(1)
    return slice:copy()
end

local discs = {} -- by size and radius

-- 1 within 0.95 of the circle of a radius.
local function disc_of(size, radius)
    local key = ("%d %.3f"):format(size, radius)
    if not discs[key] then
        local rows, c, most = {}, (size - 1) / 2, (0.95 * radius) ^ 2
        for y = 1, size do
            rows[y] = {}
            for x = 1, size do
                rows[y][x] = (x - 1 - c) ^ 2 + (y - 1 - c) ^ 2 < most and 1 or 0
            end
        end
        discs[key] = rows
    end
    return mb.array(discs[key], {dtype = "f32", device = HOST})
end

--- The relative L2 error of a slice within 0.95 of the circle; infinite where it has other extents
-- or values that are not finite. `scale` multiplies the slice; `radius` (px) is that of the circle,
-- by default half of the slice.
function stranger_scans.error_of(slice, truth, scale, radius)
    if slice.shape[1] ~= truth.shape[1] or slice.shape[2] ~= truth.shape[2] then
        return math.huge
    end
    local disc <close> = disc_of(truth.shape[1], radius or truth.shape[1] / 2)
    local scaled <close> = slice:cast("f32", {scale = scale or 1})
    local off <close> = scaled - truth
    mb.binary(off, "mul", {b = disc, out = off})
    local inside <close> = truth * disc
    local found = off:norm() / inside:norm()
    return found == found and found or math.huge
end

--- Writes an HDF5 file: `objects` is a list of {path, value, attributes}, with {path, group =
-- CLASS} for groups and {path, link = TARGET} for links. Arrays are released.
function stranger_scans.write(path, objects)
    local file <close> = assert(mb.h5.create(path, {overwrite = true}))
    for _, object in ipairs(objects) do
        local where, value, attributes = table.unpack(object, 1, 3)
        if object.group then
            file:group(where, object.group)
        elseif object.link then
            file:link(object.link, where, {soft = object.soft})
        else
            file:write(where, value, {attributes = attributes, dtype = object.dtype})
        end
        if mb.array.is_array(value) then
            value:release()
        end
    end
    file:finish(nil, {sync = false})
end

--- Frames of one value: (n, rows, cols).
function stranger_scans.flat_frames(n, scan, value, dtype)
    return mb.full({n, scan.rows, scan.cols}, value, {dtype = dtype or "u16", device = HOST})
end

--- One array of the frames of several, in order, which are released.
function stranger_scans.joined(parts)
    local n, shape = 0, parts[1].shape
    for _, part in ipairs(parts) do
        n = n + part.shape[1]
    end
    local into = mb.empty({n, shape[2], shape[3]}, {dtype = parts[1].dtype, device = HOST})
    local first = 1
    for _, part in ipairs(parts) do
        local count = part.shape[1]
        local place <close> = into:view({first, first + count - 1})
        mb.convert(part, part.dtype, {out = place})
        first = first + count
        part:release()
    end
    return into
end

--- n numbers from `first`, `step` apart.
function stranger_scans.steps(n, first, step)
    local list = {}
    for i = 1, n do
        list[i] = first + (i - 1) * step
    end
    return list
end

--- The lists one behind the other.
function stranger_scans.chained(...)
    local all = {}
    for _, list in ipairs {...} do
        table.move(list, 1, #list, #all + 1, all)
    end
    return all
end

--- n times a value.
function stranger_scans.times(n, value)
    return stranger_scans.steps(n, value, 0)
end

return stranger_scans
