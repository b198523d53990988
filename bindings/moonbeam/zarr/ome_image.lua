--- What an OME-Zarr group says of its image, and which axes of an array are those of a volume.
--
-- The axes c and t before the last ones are channels and frames, as in a TIFF hyperstack. Other
-- axes there have one element.

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
local function finest_of(image)
    local best, scale
    for _, level in ipairs(image.datasets) do
        local own = type(level) == "table" and scale_by(level.coordinateTransformations)
        if type(level) == "table" and (not best or own and scale and #own > 0 and #scale > 0
            and own[#own] > 0 and own[#own] < scale[#scale]) then
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

--- The image of an OME group: {folder of the finest level, axes (their names), units (by these),
-- scale, named (named_of)}.
function ome_image.of(folder, attributes)
    local ome = type(attributes.ome) == "table" and attributes.ome or attributes
    local image = type(ome.multiscales) == "table" and ome.multiscales[1]
    local finest, scale
    if type(image) == "table" and type(image.datasets) == "table" then
        finest, scale = finest_of(image)
    end
    local path = finest and finest.path
    if type(path) ~= "string" then
        refuse(folder, "%s", instead(folder, attributes))
    elseif path:find "^/" or ("/" .. path .. "/"):find("/../", 1, true) then
        refuse(folder, "the image is at '%s', outside the folder", path:sub(1, 40))
    end
    local made = {folder = folder .. "/" .. path, axes = {}, units = {}, named = named_of(ome),
        scale = scale}
    for i, axis in ipairs(type(image.axes) == "table" and image.axes or {}) do
        made.axes[i] = type(axis) == "table" and tostring(axis.name) or tostring(axis)
        made.units[made.axes[i]] = type(axis) == "table" and type(axis.unit) == "string"
            and axis.unit or nil
    end
    return made
end

local OPTIONS <const> = {c = "channel", t = "frame"}
local USUAL <const> = {"x", "y", "z", "c", "t"} -- the last axis first

-- Axes with the names of space are read where they are the last ones, in the order z, y, x.
local function check_order(names, own, name)
    local rank, has = #names, {}
    for _, each in ipairs(names) do
        has[each] = true
    end
    for i, expected in ipairs {"x", "y", has.z and "z" or nil} do
        if has.x and has.y and (names[rank + 1 - i] ~= expected or i > own) then
            refuse(name, "its axes are %s; z, y and x are read where they are the last ones, in "
                .. "this order: save it with the axes t, c, z, y, x", table.concat(names, ", "))
        end
    end
end

--- The names of all axes, and how many of the last are those of a volume.
function ome_image.axes(array, image, name)
    local rank, names = #array.shape, {}
    local told = #image.axes == rank and image.axes or array.names
    local own = 0
    for axis = rank, 1, -1 do
        names[axis] = told and told[axis] or USUAL[rank + 1 - axis] or "t"
        own = (own == rank - axis and own < 3 and not OPTIONS[names[axis]]) and own + 1 or own
    end
    own = own < 2 and math.min(rank, 3) or own
    check_order(names, own, name)
    return names, own
end

-- How many channels and frames there are.
local function counts_of(array, names, own, name)
    local counts = {}
    for axis = 1, #array.shape - own do
        local extent, option = array.shape[axis], OPTIONS[names[axis]]
        if extent > 1 and (not option or (counts[option] or 1) > 1) then
            fail("argument", "zarr.open", option, "%s: axis %d ('%s') has the extent %d, which no "
                .. "volume has", name, axis, names[axis]:sub(1, 20), extent)
        end
        counts[option or 0] = math.max(counts[option or 0] or 1, extent)
    end
    return counts
end

--- The 0-based indices along the axes before the volume's own; nil where all of them are wanted.
function ome_image.leading(array, names, own, options, name)
    local counts, lead = counts_of(array, names, own, name), {}
    for _, option in pairs(OPTIONS) do
        local most = counts[option] or 1
        if (options[option] or 1) > most then
            fail("argument", "zarr.open", option, "%s: there is no %s %d: it has %d", name, option,
                options[option], most)
        end
    end
    for axis = 1, #array.shape - own do
        local option = OPTIONS[names[axis]]
        lead[axis] = array.shape[axis] > 1 and (options[option] or 1) - 1 or 0
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
function ome_image.voxel(image, names, own)
    local rank, made = #names, {}
    for i, name in ipairs {"step", "row", "pixel"} do
        local axis = rank - 3 + i
        local meters = (own == 3 or i > 1) and image.scale
            and units_of.meters((image.units or {})[names[axis]])
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
