--- Volumes one after the other along z as one volume, blended where they overlap, block by block on
-- the host.

local mb = require "moonbeam"

local z_joined = {}

-- The part of the second volume in slice k of n that two have in common.
z_joined.BLENDS = {
    linear = function(k, n) return k / (n + 1) end,
    mean = function() return 0.5 end,
    first = function() return 0 end,
}

--- The parts of the joined volume: a list of {first, count, one, one_first, two, two_first, total}
-- (0-based slices; two and two_first where volumes overlap, total slices of that overlap, done of
-- them before this part), and the number of its slices. No part has more than `most` slices.
function z_joined.parts(volumes, overlaps, most)
    local list, z = {}, 0
    local function add(count, part)
        for done = 0, count - 1, most do
            local here = math.min(most, count - done)
            list[#list + 1] = {first = z, count = here, one = part.one,
                one_first = part.one_first + done, two = part.two,
                two_first = part.two and part.two_first + done, total = part.two and count,
                done = done}
            z = z + here
        end
    end
    for i, volume in ipairs(volumes) do
        local before, after = overlaps[i - 1] or 0, overlaps[i] or 0
        local nz = volume.shape[1]
        add(nz - before - after, {one = i, one_first = before})
        if after > 0 then
            add(after, {one = i, one_first = nz - after, two = i + 1, two_first = 0})
        end
    end
    return list, z
end

--- Slices of a volume as f32 values on the host, closed by the caller. scaling: {scale, offset} or
-- false; move: {rows, columns} by which they are moved, or nil.
function z_joined.read(volume, scaling, first, count, move)
    local host = mb.device "host"
    local block = volume:read({first, 0, 0}, {count, volume.shape[2], volume.shape[3]}, host, host)
    if block.dtype ~= "f32" then
        local stored <close> = block
        block = stored:cast "f32"
    end
    if scaling and scaling.scale ~= 1 then
        mb.binary(block, "mul", {scalar = scaling.scale, out = block})
    end
    if scaling and scaling.offset ~= 0 then
        mb.binary(block, "add", {scalar = scaling.offset, out = block})
    end
    if move then
        local rows, columns = {}, {}
        for k = 1, count do
            rows[k], columns[k] = -move.rows, -move.columns
        end
        mb.vertical_shift(block, rows, {out = block})
        mb.horizontal_shift(block, columns, {out = block})
    end
    return block
end

-- Slices of both volumes, each times its part, added in place of the first.
local function blend(a, b, part, weight)
    for k = 1, part.count do
        local w = weight(part.done + k, part.total)
        local one <close> = a:view(k, mb.all, mb.all)
        local two <close> = b:view(k, mb.all, mb.all)
        mb.binary(one, "mul", {scalar = 1 - w, out = one})
        mb.binary(two, "mul", {scalar = w, out = two})
        mb.binary(one, "add", {b = two, out = one})
    end
end

--- Writes the parts to a result. options: scalings (of the volumes, {scale, offset} or false),
-- moves (by volume, {rows, columns} or false), blend (a function of BLENDS), step (is told how many
-- slices were done).
function z_joined.write(volumes, parts, result, options)
    for _, part in ipairs(parts) do
        local block <close> = z_joined.read(volumes[part.one], options.scalings[part.one],
            part.one_first, part.count, options.moves[part.one])
        if part.two then
            local other <close> = z_joined.read(volumes[part.two], options.scalings[part.two],
                part.two_first, part.count, options.moves[part.two])
            blend(block, other, part, options.blend)
        end
        if result.dtype == "f32" then
            result:write(block, part.first + 1)
        else
            local stored <close> = block:cast(result.dtype)
            result:write(stored, part.first + 1)
        end
        options.step(part.count)
    end
end

return z_joined
