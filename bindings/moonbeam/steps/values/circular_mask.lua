local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

-- The extents {ny, nx} of the whole slice. Where the width of a half acquisition follows from the
-- axis that is found, only whole slices can tell it.
local function whole(block)
    local g, shape = block.geometry, block.data.shape
    return g.slice or {shape[2], shape[3]}
end

return {
    name = "circular_mask",
    summary = "Sets what lies outside a circle around the middle of each slice.",
    doc = "A pixel is inside if its center is at most radius times half the width of the slice "
        .. "from the middle of the slice. Of slices of which a part is made, the circle is that of "
        .. "the whole slice. Pixels inside keep their values, NaN too. The steps fbp and fourier "
        .. "have the same mask, circle, which saves work.\n"
        .. "The preset httomo takes its fraction; the circle of HTTomo itself has 2 - 1 / 0.95 = "
        .. "0.947 times half the width, around pixel N // 2, half a pixel beside the middle.",
    options = declared.options(
        {"radius", "number", "radius of the circle", unit = "half the width", above = 0, max = 10,
            default = 1},
        declared.from("circular_mask", "value")),
    presets = {httomo = {radius = 0.95}},
    takes = {quantity = "any", layout = "slices"},
    check = function(options, shape, g)
        local slice = g.slice or {shape[2], shape[3]}
        if options.radius * math.min(slice[1], slice[2]) < 1 then
            fail("argument", nil, "radius", "radius is %g, less than a pixel, so nothing remains",
                options.radius)
        elseif g.slice == false then
            fail("argument", nil, nil, "the middle of the whole slice follows from the axis, which "
                .. "is not known yet; make whole slices, or give the step before its size")
        end
    end,
    run = function(block, options)
        local g = block.geometry
        mb.circular_mask(block.data, {radius = options.radius, value = options.value,
            size = whole(block), origin = {g.first_y - 1, g.first_x - 1}, out = block.data})
    end,
}
