--- The rows of one of several parts of a run, which processes make that know nothing of each other
-- (`reconstruct --part 3/8`): a fixed share of whole packets, so that no bit depends on the parts.
--
-- A part measures what the run without parts measures, from the same rows. Where a later section
-- measures or sums, the sections before it make all their rows, in every part.

local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local file_name = require "moonbeam.internal.file_name"
local sections = require "moonbeam.pipeline.sections"

local part_rows = {}

--- The name of the file of a part {number, count}: "fossil-part-3-of-8.h5" of "fossil.tif".
function part_rows.path(output, part)
    file_name.check(output, file_name.RESULTS, nil, "pipeline:run")
    local stem = output:gsub("/+$", ""):gsub("%.ome%.%w+$", ""):gsub("%.[^./]*$", "")
    return ("%s-part-%d-of-%d.h5"):format(stem, part[1], part[2])
end

--- Raises an error if this is no part {number, count}.
function part_rows.check(part, op)
    local number, count = part[1], part[2]
    if #part ~= 2 or math.type(number) ~= "integer" or math.type(count) ~= "integer"
        or number < 1 or number > count then
        fail("argument", op, "part", "part is %s/%s; it must be K/N, two whole numbers, K from 1 "
            .. "to N", tostring(number), tostring(count))
    end
end

-- The rows of part {number, count} of a section with these rows: whole packets.
local function share(section, part, rows)
    local packet, first, last = sections.packet(section), rows[1], rows[2]
    local packets, number, count = math.ceil((last - first + 1) / packet), part[1], part[2]
    if count > packets then
        fail("argument", "pipeline", "part", "part is %d/%d; the result has %d %s%s: give at most "
            .. "%d part%s", number, count, last - first + 1, section.cut, packet > 1
            and (", which are made %d together"):format(packet) or "", packets,
            packets == 1 and "" or "s")
    end
    return first + packets * (number - 1) // count * packet,
        math.min(last, first + packets * number // count * packet - 1)
end

-- Rows {from, to} of a section as whole packets.
local function in_packets(section, from, to)
    local packet, first = sections.packet(section), section.first
    return first + (from - first) // packet * packet,
        math.min(section.last, first + (to - first) // packet * packet + packet - 1)
end

--- Leaves of the rows of sections (sections.require) those that a part needs. `whole` of each
-- section are the rows {first, last} that the run without parts makes.
function part_rows.restrict(list, part, ranges_of)
    part_rows.check(part, "pipeline")
    local all = false -- are all rows needed from here on?
    for i = #list, 1, -1 do
        local section, later = list[i], list[i + 1]
        section.whole = {section.first, section.last}
        if not later then
            section.first, section.last = share(section, part, section.whole)
        else
            all = all or section.reduced ~= nil or #later.measures > 0
            if not all and section.cut == "rows" and later.cut == "rows" then
                local read = ranges_of(later, later.first, later.last).read
                section.first, section.last = in_packets(section, read[1], read[2])
            end
        end
    end
end

--- Numbers of parts of which one takes the most memory: of the parts of the last section with the
-- same number of rows and neighbors on the same sides, the first.
function part_rows.kinds(section, count)
    local list, seen = {}, {}
    for number = 1, count do
        local first, last = share(section, {number, count}, section.whole)
        local key = ("%d %s %s"):format(last - first, number == 1, number == count)
        list[#list + 1] = not seen[key] and number or nil
        seen[key] = true
    end
    return list
end

--- What a part makes of a section, in words; nil of a run without parts.
function part_rows.text(section, part)
    local whole = section.whole
    if not whole then
        return nil
    elseif section.stored and section.first == whole[1] and section.last == whole[2] then
        return ("every part makes all %d %s, which later steps need"):format(
            section.last - section.first + 1, section.cut)
    end
    local first, last = geometry.told_rows(section, section.first, section.last)
    return ("%d of %d: %s %d to %d of %d to %d"):format(part[1], part[2], section.cut,
        first, last, geometry.told_rows(section, whole[1], whole[2]))
end

return part_rows
