--- The light of a stack's channels, as OME-XML says it.

local voxel = require "moonbeam.tiff.voxel"

local channel_light = {}

local function attribute(tag, name)
    return tag:match("%s" .. name .. '%s*=%s*"([^"]*)"')
        or tag:match("%s" .. name .. "%s*=%s*'([^']*)'")
end

--- The wavelengths of all channels in m: "Emission" or "Excitation". nil where not every channel
-- says one.
function channel_light.wavelengths(meta, which)
    local list = {}
    for tag in (meta.kind == "ome" and meta.text or ""):gmatch "<[%w:]*Channel%s[^>]*>" do
        local value = tonumber(attribute(tag, which .. "Wavelength"))
        local unit = voxel.meters(attribute(tag, which .. "WavelengthUnit") or "nm")
        if not (value and unit and value > 0 and value < math.huge) then
            return nil
        end
        list[#list + 1] = value * unit
    end
    return #list > 0 and #list == meta.channels and list or nil
end

return channel_light
