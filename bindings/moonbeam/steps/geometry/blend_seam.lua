local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- The columns of the data that are those of the left image.
local function seam_of(options, g)
    return (options.seam - (g.first_column - 1)) / g.column_step
end

return {
    name = "blend_seam",
    summary = "Joins the images of two cameras that lie side by side in each frame.",
    doc = "The last overlap columns of the left image show the same as the first ones of the "
        .. "right image; they are blended linearly. Columns are those of the left image and, right "
        .. "of the seam, those that follow in the joined frame. A NaN stays in its column. Place "
        .. "it before step center.",
    presets = {httomo = {seam = 2560}},
    options = declared.options(
        {"seam", "count", "columns of the scan that are the left image", min = 1, max = 1 << 20,
            unit = "px", required = true},
        {"overlap", "count", "columns that both images show", min = 0, max = 1 << 20, unit = "px",
            required = true}),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    cuts = {"rows", "frames"},
    check = function(options, shape, g, _, before)
        geometry.before_center(before)
        local seam = seam_of(options, g)
        if g.column_step ~= 1 then
            fail("argument", nil, nil, "columns have been joined or resampled; move it before the "
                .. "step that does")
        elseif seam < 1 or seam >= shape[3] then
            fail("argument", nil, "seam", "seam is %d; the data have columns %d to %d of the scan",
                options.seam, g.first_column, g.first_column + shape[3] - 1)
        elseif options.overlap > math.min(seam, shape[3] - seam) then
            fail("argument", nil, "overlap", "overlap is %d; the images have %d and %d columns",
                options.overlap, seam, shape[3] - seam)
        end
    end,
    shape = function(options, shape)
        return {shape[1], shape[2], shape[3] - options.overlap}
    end,
    geometry = function(options, g)
        return geometry.with(g, {cols = g.cols - options.overlap})
    end,
    run = function(block, options)
        block:replace(mb.blend_seam(block.data, math.tointeger(seam_of(options, block.geometry)),
            options.overlap))
    end,
}
