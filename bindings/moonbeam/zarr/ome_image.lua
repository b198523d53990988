--- What an OME-Zarr group says of its image, and which axes of an array are those of a volume.
--
-- The axes c and t are channels and frames, as in a TIFF hyperstack. Further axes that are none of
-- a volume have one element.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local descriptions = require "moonbeam.tiff.meaning.descriptions"
local units_of = require "moonbeam.internal.quantities.units"
local zarr_array = require "moonbeam.zarr.zarr_array"

local ome_image = {}

local function refuse(name, format, ...)
    fail("io", "zarr.open", "name", "%s: " .. format, name, ...)
end

-- A wavelength in nm as OMERO has it, in m.
local function wavelength(value)
    return type(value) == "number" and value > 0 and value < math.huge and value * 1e-9 or nil
end

-- What an OME group says of its channels (channel_light.named); nil: nothing.
local function named_of(ome)
    local omero, list = type(ome.omero) == "table" and ome.omero.channels, {}
    for i, channel in ipairs(type(omero) == "table" and omero or {}) do
        local facts = type(channel) == "table" and channel or {}
        list[i] = {label = type(facts.label) == "string" and facts.label or nil,
            color = type(facts.color) == "string" and facts.color:match "^%x%x%x%x%x%x$" or nil,
            Emission = wavelength(facts.emissionWave),
            Excitation = wavelength(facts.excitationWave)}
    end
    return #list > 0 and list or nil
end

-- The product of all scales of a list of transformations, by axis; nil where there is none.
local function scale_by(...)
    local made
    for _, list in ipairs {...} do
        for _, each in ipairs(type(list) == "table" and list or {}) do
            if type(each) == "table" and each.type == "scale" and type(each.scale) == "table" then
                made = made or {}
                for axis, value in ipairs(each.scale) do
                    made[axis] = (made[axis] or 1) * (tonumber(value) or 0)
                end
            end
        end
    end
    return made
end

-- The level of an image with the smallest voxels along x, the first of equal ones; its scale.
local function finest_of(image, axes)
    local best, scale
    local function size(own)
        for axis, name in ipairs(axes) do
            if name == "x" then
                return own and own[axis] or 0
            end
        end
        return own and own[#own] or 0
    end
    for _, level in ipairs(image.datasets) do
        local own = type(level) == "table" and scale_by(level.coordinateTransformations)
        if type(level) == "table" and (not best or size(own) > 0 and size(own) < size(scale)) then
            best, scale = level, own
        end
    end
    -- Those of the whole image are applied behind those of the level.
    return best, best and scale_by(best.coordinateTransformations, image.coordinateTransformations)
end

-- A list of a plate or a well in the attributes of a group, by the names of both; nil where there
-- is none.
local function list_of(attributes, name, list)
    local ome = type(attributes.ome) == "table" and attributes.ome or attributes
    local own = type(ome[name]) == "table" and ome[name] or attributes[name]
    return type(own) == "table" and type(own[list]) == "table" and own[list] or nil
end

-- The first entry of a list whose folder has what look(folder) returns; nil where none has.
local function first_of(list, folder, look)
    for _, entry in ipairs(list) do
        local path = type(entry) == "table" and entry.path
        local found = type(path) == "string" and #path <= 255
            and not ("/" .. path .. "/"):find("/../", 1, true) and look(folder .. "/" .. path)
        if found then
            return found
        end
    end
end

local function image_in_well(folder)
    local images = list_of(zarr_array.attributes(folder) or {}, "well", "images")
    return images and first_of(images, folder, function(path)
        return zarr_array.attributes(path) and path
    end)
end

-- What to open instead of a group without an image: an image or an array that exists.
local function instead(folder, attributes)
    local wells = list_of(attributes, "plate", "wells")
    local is_well = not wells and list_of(attributes, "well", "images")
    if wells or is_well then
        local what = wells and ("plate of %d well%s"):format(#wells,
            #wells == 1 and "" or "s") or "well"
        local image = is_well and image_in_well(folder)
            or wells and first_of(wells, folder, image_in_well)
        return image and ("this is a %s: name one of its images, such as %s"):format(what, image)
            or ("this is a %s, and none of its images is here"):format(what)
    end
    local names = core.system.folder(folder) or {}
    table.sort(names)
    for _, name in ipairs(names) do
        local ok, array = pcall(zarr_array.describe, folder .. "/" .. name)
        if ok and array then
            return ("the group has no image (multiscales): name the array, such as %s/%s"):format(
                folder, name)
        end
    end
    return "the group has no image (multiscales), and no array is in its folder"
end

-- The name of an axis; that of a single letter in lower case.
local function plain(name)
    return #name == 1 and name:lower() or name
end

-- The names of the axes that an image tells, and their units by these.
local function axes_of(image)
    local axes, units = {}, {}
    for i, axis in ipairs(type(image.axes) == "table" and image.axes or {}) do
        axes[i] = plain(type(axis) == "table" and tostring(axis.name) or tostring(axis))
        units[axes[i]] = type(axis) == "table" and type(axis.unit) == "string" and axis.unit or nil
    end
    return axes, units
end

--- The image of an OME group: {folder of the finest level, axes (their names), units (by these),
-- scale, named (named_of)}.
function ome_image.of(folder, attributes)
    local ome = type(attributes.ome) == "table" and attributes.ome or attributes
    local image = type(ome.multiscales) == "table" and ome.multiscales[1]
    local finest, scale, axes, units
    if type(image) == "table" and type(image.datasets) == "table" then
        axes, units = axes_of(image)
        finest, scale = finest_of(image, axes)
    end
    local path = finest and finest.path
    if type(path) ~= "string" then
        refuse(folder, "%s", instead(folder, attributes))
    elseif path:find "^/" or ("/" .. path .. "/"):find("/../", 1, true) then
        refuse(folder, "the image is at '%s', outside the folder", path:sub(1, 40))
    end
    return {folder = folder .. "/" .. path, axes = axes, units = units, named = named_of(ome),
        scale = scale}
end

local OPTIONS <const> = {c = "channel", t = "frame"}
local USUAL <const> = {"x", "y", "z", "c", "t"} -- the last axis first

-- The axes of space by their names, in the order z, y, x; nil where none has the names x and y.
-- Without z, the one other axis with more than one element stands for it.
local function by_name(array, names, name)
    local at, other = {}, {}
    for axis, each in ipairs(names) do
        if at[each] and each:find "^[xyz]$" then
            refuse(name, "its axes are %s: two have the name '%s'", table.concat(names, ", "), each)
        end
        at[each] = axis
        if not OPTIONS[each] and not each:find "^[xyz]$" then
            other[#other + 1] = (array.shape[axis] > 1 or axis == #names - 2) and axis or nil
        end
    end
    if at.x and at.y then
        return {at.z or #other == 1 and other[1] or at.y, at.y, at.x}, at.z or #other == 1
    end
end

--- The names of all axes, and which of them are those of a volume, {z, y, x} or {y, x}: by their
-- names in any order, or else the last ones.
function ome_image.axes(array, image, name)
    local rank, names = #array.shape, {}
    local told = #image.axes == rank and image.axes or array.names
    local own, space = 0, {}
    for axis = rank, 1, -1 do
        names[axis] = told and plain(told[axis]) or USUAL[rank + 1 - axis] or "t"
        own = (own == rank - axis and own < 3 and not OPTIONS[names[axis]]) and own + 1 or own
    end
    local named, three = by_name(array, names, name)
    if named then
        return names, three and named or {named[2], named[3]}
    end
    own = own < 2 and math.min(rank, 3) or own
    for k = 1, own do
        space[k] = rank - own + k
    end
    return names, space
end

--- The axes that are none of a volume, in the order of the array.
function ome_image.others(names, space)
    local list, within = {}, {}
    for _, axis in ipairs(space) do
        within[axis] = true
    end
    for axis in ipairs(names) do
        list[#list + 1] = not within[axis] and axis or nil
    end
    return list
end

-- How many channels and frames there are.
local function counts_of(array, names, others, name)
    local counts = {}
    for _, axis in ipairs(others) do
        local extent, option = array.shape[axis], OPTIONS[names[axis]]
        if extent > 1 and (not option or (counts[option] or 1) > 1) then
            fail("argument", "zarr.open", option, "%s: axis %d ('%s') has the extent %d, which no "
                .. "volume has", name, axis, names[axis]:sub(1, 20), extent)
        end
        counts[option or 0] = math.max(counts[option or 0] or 1, extent)
    end
    return counts
end

--- The 0-based indices along the axes `others`, which are none of a volume; nil where all of them
-- are wanted.
function ome_image.leading(array, names, others, options, name)
    local counts, lead = counts_of(array, names, others, name), {}
    for _, option in pairs(OPTIONS) do
        local most = counts[option] or 1
        if (options[option] or 1) > most then
            fail("argument", "zarr.open", option, "%s: there is no %s %d: it has %d", name, option,
                options[option], most)
        end
    end
    for i, axis in ipairs(others) do
        local option = OPTIONS[names[axis]]
        lead[i] = array.shape[axis] > 1 and (options[option] or 1) - 1 or 0
    end
    local several = (counts.channel or 1) * (counts.frame or 1) > 1
    return not (several and not options.channel and not options.frame) and lead or nil, counts
end

-- The scale of an axis with this name, as far as the image says it.
local function scale_of(image, names, name)
    for axis, own in ipairs(image.scale and names or {}) do
        if own == name then
            return tonumber(image.scale[axis])
        end
    end
end

--- The size of a voxel in m, as far as the image says it: {step, row, pixel}. Each axis has a unit
-- of its own.
function ome_image.voxel(image, names, space)
    local made = {}
    for i, name in ipairs {"step", "row", "pixel"} do
        local axis = space[#space - 3 + i]
        local meters = axis and image.scale and units_of.meters((image.units or {})[names[axis]])
        local value = meters and tonumber(image.scale[axis])
        made[name] = value and value > 0 and value < math.huge and value * meters or nil
    end
    return made
end

--- The interval of frames in s, or nil.
function ome_image.interval(image, names)
    return descriptions.interval(scale_of(image, names, "t"), (image.units or {}).t or "")
end

return ome_image
