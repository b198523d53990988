--- Numbers for the projections of a scan, one each, from a text, a dataset or another file:
-- vertical shifts (`mb.recon.read_shifts`), horizontal ones, weights.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"

local vertical_shifts = {}

-- Bytes of a text of numbers beyond which it is none.
local MOST_TEXT = 64 << 20

-- The text of an ordinary file: a device or a pipe could go on for ever. nil where there is none.
local function text_of(path)
    local facts = mb.system.stat(path)
    if not facts then
        return nil
    elseif facts.kind == "other" then
        fail("argument", "recon.read_shifts", "where", "%s is not an ordinary file; copy it to one",
            path)
    elseif facts.kind ~= "file" then
        return nil
    elseif facts.bytes > MOST_TEXT then
        return nil -- a dataset's file, or nothing that could be meant
    end
    local file <close> = io.open(path)
    return file and file:read(MOST_TEXT)
end

local function numbers_of_text(path)
    local text = text_of(path)
    if not text or text:find("\0", 1, true) then
        return nil
    end
    local values = {}
    for line in text:gmatch("[^\r\n]+") do
        for word in line:gsub("#.*", ""):gmatch("[^%s,;]+") do
            values[#values + 1] = tonumber(word) or fail("argument", "recon.read_shifts", "where",
                "%s: '%s' is not a number", path, word)
        end
    end
    return values
end

-- What the numbers are, by their unit.
local NAMES <const> = {rows = "vertical shifts", columns = "horizontal shifts",
    weights = "weights"}

--- Vertical shifts, one number a projection, in rows; with unit "columns" horizontal ones, with
-- unit "weights" factors: from a text file (numbers between spaces, commas or line ends; # starts a
-- comment), a dataset of the scan's file ("/path"), or one of another file ("other.h5:/path").
function vertical_shifts.read(scan, where, unit)
    local name_of = NAMES[unit or "rows"]
    local most = unit == "weights" and math.maxinteger or unit == "columns" and scan.cols
        or scan.rows
    if type(where) ~= "string" then
        fail("argument", "recon.read_shifts", "where",
            "where is a file, a dataset or both, FILE:/PATH")
    end
    local values = not where:match("^(.+):(/.*)$") and numbers_of_text(where) or nil
    if not values then
        local name, path = where:match("^(.+):(/.*)$")
        local opened, problem = mb.h5.open(name or scan.path)
        local file <close> = opened or error(problem, 0)
        if not file:exists(path or where) then
            fail("argument", "recon.read_shifts", "where",
                "%s is neither a text file nor a dataset of %s", where, name or scan.path)
        end
        local shape = file:dataset(path or where).shape
        if #shape > 1 then
            fail("shape", "recon.read_shifts", "where",
                "%s has %d axes; %s are a list, one number a projection", where,
                #shape, name_of)
        elseif (shape[1] or 1) == scan.n_angles then -- else there is no need to read it
            local array <close> = file:read(path or where, {device = "host"})
            values = array:to_table()
        else
            values = {n = shape[1]}
        end
    end
    if type(values) ~= "table" or #values ~= scan.n_angles then
        fail("shape", "recon.read_shifts", "where",
            "%s has %s %s; the scan has %d projections", where,
            type(values) == "table" and (values.n or #values) or 1, name_of, scan.n_angles)
    end
    for i, value in ipairs(values) do
        if unit == "weights" and (value ~= value
            or math.abs(value) == math.huge) then
            fail("argument", "recon.read_shifts", "where", "%s: weight %d is %g; it must be a "
                .. "finite number", where, i, value)
        elseif value ~= value or math.abs(value) > most then
            fail("argument", "recon.read_shifts", "where",
                "%s: shift %d is %g; it lies within the detector's %d %s either way", where, i,
                value, most, unit or "rows")
        end
    end
    return values
end

return vertical_shifts
