--- Maximum projections of a volume along its three axes as one picture.

local core = require "moonbeam.core"
local on_error = require "moonbeam.internal.on_error"

local projections = {}

--- Arranges the projections xy (y, x), xz (z, x) and zy (z, y): XY, at its right ZY, below it XZ.
-- sxy, sz: whole factors that stretch the plane and the axis; gap: pixels between. Returns an f32
-- array on the host, the gaps at the least value.
function projections.arrange(xy, xz, zy, options)
    local ny, nx = table.unpack(xy.shape)
    local nz = xz.shape[1]
    local sxy, sz, gap = options.sxy, options.sz, options.gap
    local height, width = ny * sxy + gap + nz * sz, nx * sxy + gap + nz * sz
    local canvas = core.array.zeros({height, width}, {device = "host"})
    local _ <close> = on_error(function() canvas:release() end)
    -- Every element of `image` (rows, columns) becomes a block of fy x fx.
    local function paste(image, top, left, fy, fx)
        local here <close> = core.array.transfer(image, "host")
        local rows, columns = table.unpack(here.shape)
        for y = 1, fy do
            for x = 1, fx do
                local place <close> = canvas:view({top + y, top + rows * fy, fy},
                    {left + x, left + columns * fx, fx})
                core.op.run("convert", here, "f32", {out = place})
            end
        end
    end
    local least <close> = core.op.run("reduce", xy, "min")
    canvas:fill(xy.device.dry and 0 or (least:item()))
    paste(xy, 0, 0, sxy, sxy)
    paste(xz, ny * sxy + gap, 0, sz, sxy)
    local turned <close> = zy:transpose()
    local dense <close> = core.op.run("convert", turned, "f64")
    paste(dense, 0, nx * sxy + gap, sxy, sz)
    return canvas
end

return projections
