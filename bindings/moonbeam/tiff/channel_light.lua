--- The channels of a stack: their light, as the file says it, their names and colors.

local channel_light = {}

--- What is told of the channels: {{label, color (RRGGBB), Emission, Excitation (m)}, ...}; nil
-- where nothing is.
function channel_light.named(meta)
    return meta.named
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
