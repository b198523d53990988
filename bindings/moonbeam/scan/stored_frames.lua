--- Frames that stay in files of images (moonbeam.volumes): the rows and frames that are asked for
-- are read when they are asked for, so that a scan may be larger than the memory.
--
-- A carrier fills the array where the file's bytes can be moved as they are (TIFF and .npy without
-- compression, in this machine's byte order). Otherwise the part is read at once, into memory of
-- the host, which for a device of another kind is a second block; plans count it.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"

local stored_frames = {}
local stored = {}
stored.__index = stored

--- The frames of a volume (frame, row, column), or of one image (row, column).
function stored_frames.new(volume)
    local shape = volume.shape
    return setmetatable({volume = volume, single = #shape == 2, dtype = volume.dtype,
        shape = #shape == 2 and {1, shape[1], shape[2]} or shape}, stored)
end

-- {first, last, step, count} of a range; of an integer `count` is nil.
local function range_of(given, extent, what)
    local first, last, step, count = core.range.within(given or core.array.all, extent, what)
    return {first = first, last = count and last or first, step = count and step or 1,
        count = count}
end

-- Frames {first, last} of rows {low, high}, on a device.
local function block_of(self, first, last, low, high, device, here)
    local from, extents = {first - 1, low - 1, 0}, {last - first + 1, high - low + 1, self.shape[3]}
    if not self.single then
        return self.volume:read(from, extents, device, here)
    end
    local image <close> = self.volume:read({low - 1, 0}, {extents[2], extents[3]}, device, here)
    return image:reshape(table.unpack(extents))
end

-- The frames and rows of two ranges with steps, on the host.
local function sparse(self, frames, rows, here)
    local low, high = math.min(rows.first, rows.last), math.max(rows.first, rows.last)
    local result = core.array.empty({frames.count, rows.count or 1, self.shape[3]},
        {dtype = self.dtype, device = here})
    local _ <close> = on_error(function() result:release() end)
    for i = 1, frames.count do
        local at = frames.first + (i - 1) * frames.step
        local whole <close> = block_of(self, at, at, low, high, here, here)
        local part <close> = rows.step ~= 1 and whole:view(core.array.all, {
            rows.first - low + 1, rows.last - low + 1, rows.step}) or whole:view()
        local own <close> = result:view({i, i})
        core.op.run("convert", part, self.dtype, {out = own})
    end
    return result
end

--- Some rows of some frames as an array on a device; one row drops its axis.
function stored:part(angles, given, options)
    local device = core.device.open(options.device or core.device.default())
    local frames = range_of(angles, self.shape[1], "the projections")
    local rows = range_of(given, self.shape[2], "the rows")
    if not frames.count or frames.count == 0 then
        fail("argument", "scan:projections", "angles",
            "angles must be a range {first, last} of projections")
    end
    local dense = (frames.step == 1 or frames.count == 1) and (rows.step == 1 or rows.count == 1)
    local here = device.kind == "host" and device or core.device.open "host"
    local made
    if dense and options.carrier and not self.single and self.volume:carries(device) then
        made = self.volume:fetch(options.carrier, {frames.first - 1, rows.first - 1, 0},
            {frames.count, rows.count or 1, self.shape[3]}, device)
    elseif dense then
        made = block_of(self, frames.first, frames.first + frames.count - 1, rows.first,
            rows.first + (rows.count or 1) - 1, device, here)
    else
        made = sparse(self, frames, rows, here)
        if device ~= here then
            local own <close> = made
            made = own:to(device)
        end
    end
    if rows.count then
        return made
    end
    local own <close> = made
    return own:reshape(frames.count, self.shape[3])
end

return stored_frames
