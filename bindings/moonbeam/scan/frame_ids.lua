--- Ids of frames that a camera counts (NDArrayUniqueId of areaDetector): which projections a file
-- has, where some were lost.
--
-- Ids count where they are whole numbers that ascend, one for each projection or for each frame of
-- the dataset of the projections. Angles that a file or an option has for all projections that were
-- asked for are then those of the ids. Which angle the first id belongs to must be clear: the ids
-- span as many numbers as there are angles, or begin at 0 or 1, or end at the number of angles.

local frames = require "moonbeam.scan.frames"
local source = require "moonbeam.scan.source"

local frame_ids = {}

local MOST <const> = 1 << 20 -- ids of a file

-- The ids of the frames of one dataset, of a list for all of a file's, by the name of the dataset
-- that the file has beside each id.
local function located(s, layout, ids)
    local path = layout.id_locations
    if not path or not s.file:exists(path) then
        return nil
    end
    local names = source.numbers(s.file, path, MOST)
    if #names ~= #ids then
        return nil
    end
    local kept = {}
    for i, name in ipairs(names) do
        if type(name) == "string" and name:match "^[^%s%z]*" == layout.data then
            kept[#kept + 1] = ids[i]
        end
    end
    return kept
end

-- The ids of the taken projections, their places among what the ids count, and all ids if they are
-- of other frames, too; nil and why they cannot be used.
local function ids_of(s, layout, path)
    local ids = source.numbers(s.file, path, MOST)
    local count = ids.count or #ids
    if not frames.within(s, count) then
        ids = not ids.count and located(s, layout, ids) or ids
        if not frames.within(s, #ids) then
            return nil, ("there are %d for %d projections"):format(count, s.n_projections)
        end
    end
    local at, own = frames.within(s, #ids), {}
    for i, place in ipairs(at) do
        local id = ids[place]
        if math.type(id) == "float" then
            id = math.tointeger(id)
        end
        if math.type(id) ~= "integer" or id < 0 or i > 1 and id <= own[i - 1] then
            return nil, ("they do not ascend as whole numbers (the one of projection %d is %s)")
                :format(i, tostring(ids[place]))
        end
        own[i] = id
    end
    return own, at, #ids == s.n_frames and s.n_frames > s.n_projections and ids or nil
end

-- Said where the first id is 1 and the last one is below the number of angles: ids count from 1
-- and the last frame is missing, or from 0 and the first one is.
local FROM_ONE <const> = "the first id, 1, is taken for that of the first angle; if ids count from "
    .. "0, the first frame was lost, and all angles are one step further: the option angles says so"

-- The id of the first of `total` angles, or nil and why it is not clear; and what is to be noted.
local function first_of(low, high, total)
    local span = high - low + 1
    if span > total then
        return nil, ("they go from %d to %d, over more numbers than the %d angles"):format(low,
            high, total)
    elseif span == total or low <= 1 then
        return low, nil, low == 1 and high < total and FROM_ONE or nil
    elseif high == total then
        return 1
    end
    return nil, ("they go from %d to %d, which leaves open which of the %d angles the first "
        .. "belongs to"):format(low, high, total)
end

-- The numbers from 0 of the taken projections in a list of `count` angles, or nil and why they are
-- not clear; and what is to be noted.
local function within(found, s, count)
    local ids, all = found.ids, found.all
    local first, why, noted
    if all and count > s.n_frames then -- angles of all frames
        first, why, noted = first_of(all[1], all[#all], count)
    elseif all and found.at[1] > 1 and ids[1] - all[1] == found.at[1] - 1 then
        first = ids[1] -- after frames of which none was lost
        why = first_of(0, ids[#ids] - first, count)
        first, why = why and first, "they go further than the angles"
    else
        first, why, noted = first_of(ids[1], ids[#ids], count)
    end
    if not first then
        return nil, why
    end
    local list = {}
    for i, id in ipairs(ids) do
        list[i] = id - first
        if all and count <= s.n_frames then -- without what lies between projections
            list[i] = found.indices[i] - found.indices[1] + ids[1] - first
        end
    end
    return list, nil, noted
end

--- What the ids of a file say, or nil where it has none: {path, lost, indices, first_lost}, or
-- {path, lost = 0, why} where they cannot be used. `indices`: for each taken projection, its number
-- from 0 among all that were asked for; `lost`: how many of these are missing, after projection
-- `first_lost`. `within(count)` gives the numbers in a list of `count` angles, or nil and why not;
-- and what is to be noted.
function frame_ids.find(s, layout)
    local path
    for _, place in ipairs(layout.ids or {}) do
        path = path or s.file:exists(place) and place
    end
    local object = path and s.file:dataset(path)
    if not object or not object.dtype then
        return nil
    end
    local ids, at, all = ids_of(s, layout, path)
    if not ids then
        return {path = path, why = at, lost = 0}
    end
    local found = {path = path, indices = {}, lost = 0, ids = ids, at = at, all = all}
    for i, id in ipairs(ids) do
        local lost = i > 1 and id - ids[i - 1] - (at[i] - at[i - 1]) or 0
        if lost < 0 then
            return {path = path, lost = 0, why = ("they leave no place for the frames before "
                .. "projection %d"):format(i)}
        elseif lost > 0 and found.lost == 0 then
            found.first_lost = i - 1
        end
        found.lost = found.lost + lost
        found.indices[i] = s.positions[i] - 1 + found.lost
    end
    function found.within(count)
        return within(found, s, count)
    end
    return found
end

return frame_ids
