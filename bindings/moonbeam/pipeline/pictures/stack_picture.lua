--- Pictures of stacks: maximum projections to scale, or some planes side by side, with a scale bar
-- and a caption.

local captioned = require "moonbeam.pipeline.pictures.captioned"
local cli = require "moonbeam.internal.cli"
local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local projections = require "moonbeam.plot.projections"
local surface = require "moonbeam.internal.command_line.surface"
local tables = require "moonbeam.internal.tables"

local stack_picture = {}

local BLOCK <const> = 1 << 20 -- elements that are read at once, or one plane
local GAP <const> = 4
local OFF <const> = 0.04 -- of the scale of z, which is said
local PERCENTILES <const> = {0.5, 99.95}

-- The maximum projections of a volume, block by block: xy (y, x), xz (z, x) and zy (z, y), f32 on
-- the host, closed by the caller.
local function projected(volume)
    local nz, ny, nx = table.unpack(volume.shape)
    local host, depth = mb.device "host", math.max(1, BLOCK // (ny * nx))
    local on_host = {dtype = "f32", device = host}
    local xy, xz, zy = mb.empty({ny, nx}, on_host), mb.empty({nz, nx}, on_host),
        mb.empty({nz, ny}, on_host)
    for z = 0, nz - 1, depth do
        local count = math.min(depth, nz - z)
        local block <close> = volume:read({z, 0, 0}, {count, ny, nx}, host, host)
        for axis, whole in ipairs {xy, xz, zy} do
            local part <close> = mb.reduce(block, "max", {axis = axis})
            local real <close> = part:cast "f32"
            if axis == 1 and z > 0 then
                mb.binary(xy, "max", {b = real, out = xy})
            else
                local place <close> = axis == 1 and whole:view() or whole:view {z + 1, z + count}
                mb.convert(real, "f32", {out = place})
            end
        end
    end
    return xy, xz, zy
end

-- Planes of a volume (z, y, x), or an image, as slices (n, y, x), f32 on the host.
local function planes_of(volume, list)
    local host, shape = mb.device "host", volume.shape
    local ny, nx = shape[#shape - 1], shape[#shape]
    local slices = mb.empty({#list, ny, nx}, {dtype = "f32", device = host})
    for i, z in ipairs(list) do
        local flat = #shape == 2
        local block <close> = volume:read(flat and {0, 0} or {z - 1, 0, 0}, flat and {ny, nx}
            or {1, ny, nx}, host, host)
        local plane <close> = block:reshape(1, ny, nx)
        local place <close> = slices:view {i, i}
        mb.convert(plane, "f32", {out = place})
    end
    return slices
end

-- How the planes of options.planes are named, and their labels.
local function names_of(list)
    local labels = tables.mapped(list, function(z) return ("z %d"):format(z) end)
    return #list > 1 and labels or nil, (#list > 1 and "planes " or "plane ")
        .. table.concat(list, ", ")
end

-- The factors of the plane and of z, and a remark where z is not to scale. `ratio` nil: unknown.
local function scale_of(sz, ratio)
    local sxy = 1
    if not sz then
        sxy, sz = surface.stretch(ratio or 1)
    end
    local off = not ratio or math.abs(sz / sxy / ratio - 1) > OFF
    return sxy, sz, off and (ratio and "z not to scale" or "the spacing of z is unknown") or nil
end

local function write(path, volume, options)
    local settings = {range = options.range, percentiles = options.percentiles or PERCENTILES,
        gamma = options.gamma, overwrite = options.overwrite, pixel_size = options.pixel}
    local slices, what
    if #volume.shape == 2 or options.planes then
        local list = #volume.shape == 2 and {1} or options.planes
        settings.labels, what = names_of(list)
        what = #volume.shape == 2 and "the image" or what
        slices = planes_of(volume, list)
    else
        local sxy, sz, remark = scale_of(options.sz, options.step and options.pixel
            and options.step / options.pixel)
        local xy, xz, zy = projected(volume)
        local canvas <close> = projections.arrange(xy, xz, zy, {sxy = sxy, sz = sz, gap = GAP})
        for _, each in ipairs {xy, xz, zy} do
            each:release()
        end
        slices = canvas:reshape(1, canvas.shape[1], canvas.shape[2])
        settings.pixel_size = options.pixel and options.pixel / sxy
        what = "maximum projections XY, ZY, XZ" .. (remark and ", " .. remark or "")
    end
    local owned <close> = slices
    settings.caption = ("%s, %s: %s"):format(options.name, what, options.caption)
    captioned.save(path, owned, settings)
end

--- Ends the program where --preview-z names planes that a volume of this shape does not have.
function stack_picture.check(shape, planes)
    for _, z in ipairs(planes or {}) do
        if #shape ~= 3 then
            cli.wrong("--preview-z names planes of a stack; the image has %s",
                counted(#shape, "axis", "axes"))
        elseif z > shape[1] then
            cli.wrong("--preview-z names plane %d; the stack has %d", z, shape[1])
        end
    end
end

--- Writes a picture of a volume (moonbeam.volumes). Options: name, caption (what was done), planes
-- (a list: these planes side by side; nil: maximum projections), sz (nil: z to scale), pixel and
-- step (m, nil: unknown), range, or percentiles for it (default {0.5, 99.95}), gamma, overwrite.
-- It counts on the host.
function stack_picture.save(path, volume, options)
    write(path, volume, options)
end

return stack_picture
