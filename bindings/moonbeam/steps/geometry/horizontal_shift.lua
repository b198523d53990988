local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local frame_shifts = require "moonbeam.pipeline.definitions.frame_shifts"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "horizontal_shift",
    summary = "Shifts each projection by its own number of columns, for a sample that moves.",
    doc = "Column x of the result is column x + shift of the projection, interpolated linearly "
        .. "between columns. A NaN spreads to the columns that it is mixed into. Place it before "
        .. "step center.",
    options = frame_shifts.options("columns",
        declared.from("horizontal_shift", "mode", {"value", usual = "the open beam: 1 in "
            .. "transmission, otherwise 0", default = "auto"})),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    cuts = {"rows", "frames"},
    warp = function() end, -- each frame by its own columns
    prepare = frame_shifts.prepare "columns",
    check = function(options, _, g, _, before)
        geometry.before_center(before)
        frame_shifts.check(options, g, "columns")
    end,
    run = function(block, options)
        mb.horizontal_shift(block.data, frame_shifts.of_block(options, block, "columns"),
            {mode = options.mode, value = options.value
                or (block.quantity == "transmission" and 1 or 0), out = block.data})
    end,
}
