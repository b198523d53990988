--- The channels of a stack: their light, as OME-XML says it, their names and colors.

local voxel = require "moonbeam.tiff.voxel"

local channel_light = {}

local function attribute(tag, name)
    return tag:match("%s" .. name .. '%s*=%s*"([^"]*)"')
        or tag:match("%s" .. name .. "%s*=%s*'([^']*)'")
end

-- The tags of the channels in OME-XML.
local function channel_tags(meta)
    return (meta.kind == "ome" and meta.text or ""):gmatch "<[%w:]*Channel%s[^>]*>"
end

local MARKS <const> = {amp = "&", lt = "<", gt = ">", quot = '"', apos = "'"}

-- A wavelength that the tag of a channel says, in m: "Emission" or "Excitation".
local function wavelength(tag, which)
    local value = tonumber(attribute(tag, which .. "Wavelength"))
    local unit = voxel.meters(attribute(tag, which .. "WavelengthUnit") or "nm")
    return value and unit and value > 0 and value < math.huge and value * unit or nil
end

--- What is told of the channels: {{label, color (RRGGBB), Emission, Excitation (m)}, ...}; nil
-- where nothing is.
function channel_light.named(meta)
    local list, known = {}, false
    for tag in channel_tags(meta) do
        local name, color = attribute(tag, "Name"), math.tointeger(tonumber(
            attribute(tag, "Color")))
        list[#list + 1] = {label = name and name:gsub("&(%a+);", MARKS),
            color = color and ("%06X"):format(color >> 8 & 0xffffff), -- red, green, blue, alpha
            Emission = wavelength(tag, "Emission"), Excitation = wavelength(tag, "Excitation")}
        known = known or next(list[#list]) ~= nil
    end
    return meta.named or known and list or nil
end

--- The wavelengths of all channels in m: "Emission" or "Excitation". nil where not every channel
-- says one.
function channel_light.wavelengths(meta, which)
    local list = {}
    for i, channel in ipairs(channel_light.named(meta) or {}) do
        if not channel[which] then
            return nil
        end
        list[i] = channel[which]
    end
    return #list > 0 and #list == meta.channels and list or nil
end

return channel_light
