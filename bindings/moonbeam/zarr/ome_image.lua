--- What an OME-Zarr group says of its image, and which axes of an array are those of a volume.
--
-- The axes c and t before the last ones are channels and frames, as in a TIFF hyperstack. Other
-- axes there have one element.

local fail = require "moonbeam.internal.fail"
local descriptions = require "moonbeam.tiff.meaning.descriptions"
local units_of = require "moonbeam.internal.units"

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

--- The image of an OME group: {folder of the finest level, axes (their names), units (by these),
-- scale, named (named_of)}.
function ome_image.of(folder, attributes)
    local ome = type(attributes.ome) == "table" and attributes.ome or attributes
    local image = type(ome.multiscales) == "table" and ome.multiscales[1]
    local finest = type(image) == "table" and type(image.datasets) == "table" and image.datasets[1]
    local path = type(finest) == "table" and finest.path
    if type(path) ~= "string" then
        refuse(folder, "the group has no image (multiscales): name the array, such as %s/0", folder)
    elseif path:find "^/" or ("/" .. path .. "/"):find("/../", 1, true) then
        refuse(folder, "the image is at '%s', outside the folder", path:sub(1, 40))
    end
    local made = {folder = folder .. "/" .. path, axes = {}, units = {}, named = named_of(ome)}
    for i, axis in ipairs(type(image.axes) == "table" and image.axes or {}) do
        made.axes[i] = type(axis) == "table" and tostring(axis.name) or tostring(axis)
        made.units[made.axes[i]] = type(axis) == "table" and type(axis.unit) == "string"
            and axis.unit or nil
    end
    local list = finest.coordinateTransformations
    for _, each in ipairs(type(list) == "table" and list or {}) do
        if type(each) == "table" and each.type == "scale" and type(each.scale) == "table" then
            made.scale = each.scale
        end
    end
    return made
end

local OPTIONS <const> = {c = "channel", t = "frame"}
local USUAL <const> = {"x", "y", "z", "c", "t"} -- the last axis first

--- The names of all axes, and how many of the last are those of a volume.
function ome_image.axes(array, image)
    local rank, names = #array.shape, {}
    local told = #image.axes == rank and image.axes or array.names
    local own = 0
    for axis = rank, 1, -1 do
        names[axis] = told and told[axis] or USUAL[rank + 1 - axis] or "t"
        own = (own == rank - axis and own < 3 and not OPTIONS[names[axis]]) and own + 1 or own
    end
    return names, own < 2 and math.min(rank, 3) or own
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

--- The size of a voxel in m, as far as the image says it: {step, row, pixel}.
function ome_image.voxel(image, rank, own)
    local units = image.units or {}
    local meters, made = units_of.meters(units.z or units.x), {}
    for i, name in ipairs {"step", "row", "pixel"} do
        local value = meters and image.scale and (own == 3 or i > 1)
            and tonumber(image.scale[rank - 3 + i])
        made[name] = value and value > 0 and value < math.huge and value * meters or nil
    end
    return made
end

--- The interval of frames in s, or nil.
function ome_image.interval(image, names)
    return descriptions.interval(scale_of(image, names, "t"), (image.units or {}).t or "")
end

return ome_image
