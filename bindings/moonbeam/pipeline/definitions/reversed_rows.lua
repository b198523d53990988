--- Reverses the order of the rows of frames (frame, row, column), in place, with room for one row.

local mb = require "moonbeam"

-- Copies a row of frames to another place.
local function copy_row(from, i, to, k)
    local one <close> = from:view(mb.all, {i, i}, mb.all)
    local other <close> = to:view(mb.all, {k, k}, mb.all)
    mb.convert(one, from.dtype, {out = other})
end

return function(frames)
    local count = frames.shape[2]
    if count == 1 then
        return
    end
    local room <close> = mb.empty({frames.shape[1], 1, frames.shape[3]}, {dtype = frames.dtype,
        device = frames.device})
    for i = 1, count // 2 do
        local k = count + 1 - i
        copy_row(frames, i, room, 1)
        copy_row(frames, k, frames, i)
        copy_row(room, 1, frames, k)
    end
end
