--- What the file of a scan says of its axis: a start and a check of searches, never their result.

local center = require "moonbeam.tomo.center"
local tables = require "moonbeam.internal.tables"

local axis_stated = {}

--- What the file of a scan, or of that of which a scan is a part, says of the axis; nil where it
-- says nothing. {columns (0-based columns of the data that the statement may mean), choice}.
-- `leaning`: by how many columns the axis is further right in the rows that are searched.
--
-- choice(one, other, slack): of two columns that match alike 1 or 2, the one that the file says;
-- nil where it says neither, or both. `slack`: by how much the columns may be off.
function axis_stated.of(scan, leaning)
    local whole, place = scan.origin and scan.origin.scan or scan, scan.place
    local columns = whole.stated and whole.stated.axes
        or whole.says and whole.says.axis and {whole.says.axis} or {}
    if not columns[1] then
        return nil
    end
    local self = {columns = tables.mapped(columns, function(column)
        return (place and place.element_of(column) or column) + (leaning or 0)
    end)}
    local agreement = center.agreement(place and place.cols or scan.cols)
        / (place and math.abs(place.step) or 1)
    local function agrees(column, slack)
        for _, each in ipairs(self.columns) do
            if math.abs(each - column) <= agreement + (slack or 0) then
                return true
            end
        end
        return false
    end
    function self.choice(one, other, slack)
        local first, second = agrees(one, slack), agrees(other, slack)
        return first ~= second and (first and 1 or 2) or nil
    end
    return self
end

return axis_stated
