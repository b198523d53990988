--- Vertical shifts of projections, from a text, a dataset or another file. `mb.recon.read_shifts`.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"

local vertical_shifts = {}

--- Vertical shifts, one number a projection, in rows; with unit "columns" horizontal ones: from a
-- list that is typed ("0,0.5,1") or in a text file (numbers between spaces, commas or line ends; #
-- starts a comment; "FILE:2" is the second column), a dataset of the scan's file ("/path"), or one
-- of another file ("other.h5:/path").
function vertical_shifts.read(scan, where, unit)
    local name_of, most = unit == "columns" and "horizontal" or "vertical",
        unit == "columns" and scan.cols or scan.rows
    if type(where) ~= "string" then
        fail("argument", "recon.read_shifts", "where",
            "where is a file, a dataset or both, FILE:/PATH")
    end
    local values = not where:match("^(.+):(/.*)$") and lists.written(where, {
        op = "recon.read_shifts", option = "where", what = name_of .. " shifts",
        fits = function(count) return count == scan.n_angles end}) or nil
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
                "%s has %d axes; %s shifts are a list, one number a projection", where,
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
            "%s has %s %s shifts; the scan has %d projections", where,
            type(values) == "table" and (values.n or #values) or 1, name_of, scan.n_angles)
    end
    for i, value in ipairs(values) do
        if value ~= value or math.abs(value) > most then
            fail("argument", "recon.read_shifts", "where",
                "%s: shift %d is %g; it lies within the detector's %d %s either way", where, i,
                value, most, unit or "rows")
        end
    end
    return values
end

return vertical_shifts
