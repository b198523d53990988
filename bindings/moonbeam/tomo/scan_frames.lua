--- Frames of a scan on a device, and the line integrals of them.

local mb = require "moonbeam"
local on_error = require "moonbeam.internal.on_error"
local timeline = require "moonbeam.scan.timeline"

local scan_frames = {}

--- The names of the tallies, three counts each: values mended, values that did not fit the stored
-- type, repaired ones (outliers, values mended, values left), and spoiled ones (slices).
scan_frames.TALLIES = {"mended", "clipped", "repaired", "spoiled"}

local ARRAYS <const> = {"darks", "flats", "raw", table.unpack(scan_frames.TALLIES)}

-- Arrays by name that are released together: what is read for a chunk, and the tallies.
scan_frames.metatable = {__index = {release = function(frames)
    for _, name in ipairs(ARRAYS) do
        if frames[name] then
            frames[name]:release()
            frames[name] = nil
        end
    end
end}}
scan_frames.metatable.__close = scan_frames.metatable.__index.release

--- Sums over blocks, on a device: the tallies by name.
function scan_frames.sums(device)
    local sums = setmetatable({}, scan_frames.metatable)
    local _ <close> = on_error(function() sums:release() end)
    for _, name in ipairs(scan_frames.TALLIES) do
        sums[name] = mb.zeros({3}, {dtype = "f64", device = device})
    end
    return sums
end

-- What flat_field takes as it is stored; everything else (wider integers, f64) is read as f32.
local TAKEN = {u8 = true, u16 = true, i32 = true, f16 = true, f32 = true}

-- `source`: a dataset, or flats or darks (scan/references.lua).
local function read_as(source)
    return source and not TAKEN[source.dtype] and "f32" or nil
end

-- Darks and flats of some rows; by a carrier if there is one. `without`: none.
function scan_frames.references(scan, device, rows, carrier, without)
    local frames = setmetatable({}, scan_frames.metatable)
    if scan.chain or without then
        return frames
    end
    local _ <close> = on_error(function() frames:release() end)
    frames.darks = scan:darks(rows, {device = device, carrier = carrier,
        dtype = read_as(scan.dark_source)})
    frames.flats = scan:flats(rows, {device = device, carrier = carrier,
        dtype = read_as(scan.flat_source)})
    return frames
end

-- Raw projections of some rows, the frames {first, last} of them (nil: all).
local function raw_of(scan, device, rows, angles, carrier)
    return scan:projections(rows, {device = device, angles = angles, carrier = carrier,
        dtype = read_as(scan.data)})
end

-- What a flat field of the projections {first, last} (nil: all) needs to know of their times: the
-- factors of projections and flats that were not exposed equally, or by another ring current, and
-- `groups` of flats, where they are more than one.
local function times_of(scan, angles, settings)
    if settings.log == false then -- line integrals
        return {}
    end
    local function own(list)
        local some = {}
        for i = angles and angles[1] or 1, angles and angles[2] or #list do
            some[#some + 1] = list[i]
        end
        return some
    end
    local times, line = {}, scan.timeline
    local currents = timeline.used(scan.currents, settings.normalize_current)
    times.scale, times.flat_scale = timeline.scales(scan.exposures, currents, own, "scan_frames")
    if line then
        line.groups = line.groups or timeline.groups(line)
        times.groups = #line.groups.counts > 1 and {groups = line.groups.counts,
            positions = line.groups.positions, frames = own(line.frames)} or nil
    end
    return times
end

-- The raw projections {first, last}, all rows of them; by a carrier if there is one.
function scan_frames.projections(scan, device, angles, carrier)
    return raw_of(scan, device, nil, angles, carrier)
end

-- Darks, flats (unless they are left out) and raw projections of some rows (angles nil: all
-- projections); by a carrier if there is one. With `settings` also what frames are scaled by.
function scan_frames.read(scan, device, rows, angles, carrier, alone, settings)
    local frames = alone and setmetatable({}, scan_frames.metatable)
        or scan_frames.references(scan, device, rows, carrier)
    local _ <close> = on_error(function() frames:release() end)
    frames.raw = raw_of(scan, device, rows, angles, carrier)
    frames.times = settings and times_of(scan, angles, settings) or nil
    return frames
end

-- Raw frames, which are gone when it returns, as line integrals, and the counts of mended values:
-- what is not finite becomes no attenuation, a transmission of 1 or, where the frames are line
-- integrals already, 0.
-- `times`: see times_of.
local function normalized(raw, references, settings, log, times)
    local _ <close> = on_error(function() raw:release() end)
    local between = references.flats and settings.flat_interpolation == "linear" and times.groups
        or {}
    return mb.tomo.line_integrals(raw, {darks = references.darks, flats = references.flats,
        mode = settings.flat_mode, log = log, consume = true, scale = times.scale,
        flat_scale = references.flats and times.flat_scale, groups = between.groups,
        positions = between.positions, frames = between.frames,
        nonfinite = settings.log == false and not references.flats and 0 or nil})
end

--- Values as float32, and the counts of mended ones: what is not finite becomes `open`. The array
-- is gone when it returns.
function scan_frames.finite(raw, open)
    local _ <close> = on_error(function() raw:release() end)
    return mb.tomo.line_integrals(raw, {log = false, consume = true, nonfinite = open})
end

-- Transmissions of the frames {first, last} of some rows, whose references (darks and flats) stay;
-- line integrals where the frames are that already. Of a scan with a `chain` (pipeline/view.lua)
-- the frames are what steps have made of them, without the defects `bad` of the detector.
function scan_frames.transmissions(scan, device, rows, angles, references, settings, bad)
    if scan.chain then
        return scan.chain(rows, angles, bad)
    end
    local raw = raw_of(scan, device, rows, angles)
    local frames, counts = normalized(raw, references, settings, false,
        times_of(scan, angles, settings))
    counts:release()
    return frames
end

-- Line integrals of frames, which are gone when it returns, and the counts of mended values.
function scan_frames.integrals(frames, settings)
    local rest <close> = frames -- luacheck: ignore
    local raw = frames.raw
    frames.raw = nil -- becomes the result when it is f32
    return normalized(raw, frames, settings, settings.log, frames.times)
end

-- The same of the frames {first, last} of a scan (nil: all), without the counts. `bad`: the defects
-- that are filled in (defects.lua).
function scan_frames.integrals_only(scan, device, rows, angles, settings, bad)
    local lines
    if scan.chain then
        lines = scan.chain(rows, angles, bad)
        if settings.log ~= false then
            mb.minus_log(lines, {out = lines})
        end
    else
        local frames <close> = scan_frames.read(scan, device, rows, angles, nil, nil,
            settings)
        local counts
        lines, counts = scan_frames.integrals(frames, settings)
        counts:release()
    end
    local _ <close> = on_error(function() lines:release() end)
    bad:fill(lines, rows, not angles or not (scan.origin and scan.origin.some))
    return lines
end

return scan_frames
