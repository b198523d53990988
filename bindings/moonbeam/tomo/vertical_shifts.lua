--- Numbers for the projections of a scan, one each, from a text, a dataset or another file:
-- vertical shifts (`mb.recon.read_shifts`), horizontal ones, weights.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"
local picked = require "moonbeam.scan.picked"
local source = require "moonbeam.scan.source"
local units = require "moonbeam.scan.units"

local vertical_shifts = {}

-- The numbers of a dataset, {n = count} where they are neither for the projections nor for all
-- frames, and the factor and the name of their unit; in rows (columns) the factor is 1.
local function of_dataset(scan, name, path, words)
    local opened, problem = mb.h5.open(name or scan.path)
    local file <close> = opened or error(problem, 0)
    if not file:exists(path) then
        fail("argument", "recon.read_shifts", "where",
            "%s is neither a text file nor a dataset of %s", path, name or scan.path)
    end
    local shape = file:dataset(path).shape
    if #shape > 1 then
        fail("shape", "recon.read_shifts", "where",
            "%s has %d axes; %s are a list, one number a projection", path, #shape,
            words.name)
    end
    local count = shape[1] or 1
    if count ~= scan.n_angles and count ~= scan.n_projections and count ~= scan.n_frames then
        return {n = count} -- there is no need to read it
    end
    local array <close> = file:read(path, {device = "host"})
    local unit = source.units(file, path)
    if not unit or words.units[unit] then
        return array:to_table(), 1
    end
    local factor, text = units.factor(file, path, units.length)
    if not factor then
        fail("argument", "recon.read_shifts", "where", "%s %s: shifts are in %s, or in a unit of "
            .. "length; give a text file of %s", path, text, words.unit, words.unit)
    elseif not scan.pixel_size then
        fail("argument", "recon.read_shifts", "where", "%s is in %s, and the pixel size of the "
            .. "scan is not known: give the option pixel_size", path, text)
    end
    return array:to_table(), factor / scan.pixel_size, text
end

-- The values of the projections: all there are, or those of all frames.
local function picked_of(scan, values)
    if #values == scan.n_angles then
        return values
    elseif scan.positions and #values == scan.n_projections then
        return picked(values, scan.positions)
    elseif scan.n_frames and type(scan.frames) == "table" and #values == scan.n_frames then
        return picked(values, scan.frames)
    end
    return {n = values.n or #values}
end

local WORDS <const> = {
    rows = {name = "vertical shifts", unit = "rows", units = {row = true, rows = true}},
    columns = {name = "horizontal shifts", unit = "columns", units = {column = true,
        columns = true}},
    weights = {name = "weights", unit = "numbers", units = {[""] = true}, most = math.huge},
}
for _, words in ipairs {WORDS.rows, WORDS.columns} do
    for _, unit in ipairs {"px", "pixel", "pixels"} do
        words.units[unit] = true
    end
end

--- Vertical shifts, one number a projection, in rows; with unit "columns" horizontal ones, with
-- unit "weights" factors: from a list that is typed ("0,0.5,1") or in a text file (numbers between
-- spaces, commas or line ends; # starts a comment; "FILE:2" is the second column), a dataset of
-- the scan's file ("/path"), or one of another file ("other.h5:/path"). A dataset in a unit of
-- length is converted by the pixel size of the scan. A list may have a number for each frame of
-- the file, flats and darks included. "-" before the name turns the signs. The second result says
-- what they are, as text.
function vertical_shifts.read(scan, where, unit)
    arguments.name(unit, "recon.read_shifts", "unit", {"rows", "columns", "weights"})
    local words = WORDS[unit or "rows"]
    local most = words.most or unit == "columns" and scan.cols or scan.rows
    if type(where) ~= "string" then
        fail("argument", "recon.read_shifts", "where",
            "where is a file, a dataset or both, FILE:/PATH")
    end
    local sign, place = 1, where
    if where:find "^%-" and not mb.system.stat(where) and not lists.typed(where) then
        sign, place = -1, where:sub(2)
    end
    local name, path = place:match("^(.+):(/.*)$")
    local values, factor, stored = not path and lists.written(place, {op = "recon.read_shifts",
        option = "where", what = words.name, fits = function(count)
            return count == scan.n_angles or count == scan.n_projections or count == scan.n_frames
        end}) or nil, 1, nil
    if not values then
        values, factor, stored = of_dataset(scan, name, path or place, words)
    end
    local list = picked_of(scan, values)
    if #list ~= scan.n_angles then
        fail("shape", "recon.read_shifts", "where",
            "%s has %s %s; the scan has %d projections", where, list.n or #list, words.name,
            scan.n_angles)
    end
    local result, low, high = {}, math.huge, -math.huge
    for i, value in ipairs(list) do
        local shift = value * (factor or 1) * sign
        if shift ~= shift or math.abs(shift) > most or math.abs(shift) == math.huge then
            if unit == "weights" then
                fail("argument", "recon.read_shifts", "where", "%s: weight %d is %g; it must be a "
                    .. "finite number", where, i, shift)
            end
            fail("argument", "recon.read_shifts", "where",
                "%s: shift %d is %g; it lies within the detector's %d %s either way", where, i,
                shift, most, words.unit)
        end
        result[i], low, high = shift, math.min(low, shift), math.max(high, shift)
    end
    return result, ("%s, %.4g to %.4g %s, %s in %s"):format(words.name:match "%a+", low, high,
        words.unit, where, stored and ("'%s', by the pixel size"):format(stored) or words.unit)
end

return vertical_shifts
