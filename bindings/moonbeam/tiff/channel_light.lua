--- The channels of a stack: their light, as the file says it, their names and colors.

local channel_light = {}

--- What is told of the channels: {{label, color (RRGGBB), Emission, Excitation (m)}, ...}; nil
-- where nothing is.
function channel_light.named(meta)
    return meta.named
end

--- The same of the `count` channels of a result, which are all of its image's, or the one that was
-- read; nil where it is not known whose they are.
function channel_light.of_result(meta, count)
    local named = channel_light.named(meta) or {}
    if #named == count then
        return named
    end
    local own = count == 1 and meta.channel and named[meta.channel]
    return own and {own} or nil
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
