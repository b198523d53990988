local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local reversed_rows = require "moonbeam.pipeline.definitions.reversed_rows"
local frame_warp = require "moonbeam.pipeline.frame_warp"

-- The extents of the map in a file, from its head.
local function shape_of(path, name)
    local ok, opened = pcall(mb.images.open, path)
    if not ok then
        fail("io", nil, name, "%s is '%s', which cannot be read: %s", name, path,
            tostring(opened))
    end
    local volume <close> = opened
    local shape = volume.shape
    while #shape > 2 and shape[1] == 1 do
        shape = table.move(shape, 2, #shape, 1, {})
    end
    return shape
end

-- Makes a map of stored frames one of flipped ones: its rows in reverse order, and so the rows that
-- it names.
local function flip(map, options, axis)
    local rows = map.shape[1]
    local frame <close> = map:reshape(1, rows, map.shape[2])
    reversed_rows(frame)
    if axis == 2 then
        mb.binary(map, "mul", {scalar = -1, out = map})
        mb.binary(map, "add", {scalar = options.shifts and 0 or rows - 1, out = map})
    end
end

-- A map on the device, f32; `own` is the place of each pixel, which is added to shifts.
local function map_of(path, block, options, axis)
    local read = mb.images.read(path, block.device)
    local shape = block.step.shape_before
    local flat <close> = read:reshape(shape[2], shape[3])
    local map = flat:cast "f64"
    read:release()
    if block.geometry.row_step < 0 then
        flip(map, options, axis)
    end
    if options.shifts then
        local n = shape[axis]
        local line <close> = mb.linspace(0, n - 1, n, {dtype = "f64",
            device = block.device})
        local own <close> = axis == 2 and line:reshape(n, 1) or line:reshape(1, n)
        mb.binary(map, "add", {b = own, out = map})
    end
    return map
end

return {
    name = "distortion_map",
    summary = "Takes each pixel of a frame from the place that a map gives: any distortion.",
    doc = "rows and columns are files of two images of the size of a frame: for each pixel of the "
        .. "result the row and the column of the frame, from 0, from which it is taken; with "
        .. "shifts, how far that is from the pixel itself. Frames are worked on as wholes. Pixels "
        .. "that need a NaN become NaN. The maps are for frames as they are at this step, but for "
        .. "step flip.",
    reference = "mb.remap",
    options = declared.options(
        {"rows", "string", "file of the rows: .npy, .tif, or FILE.h5:/path", unit = "px",
            path = true, required = true},
        {"columns", "string", "file of the columns", unit = "px", path = true, required = true},
        {"shifts", "boolean", "the maps are added to the places of the pixels", default = false},
        frame_warp.options "remap"),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    cuts = {"frames"},
    check = function(options, shape)
        for _, name in ipairs {"rows", "columns"} do
            local found = shape_of(options[name], name)
            if #found ~= 2 or found[1] ~= shape[2] or found[2] ~= shape[3] then
                fail("shape", nil, name, "%s is a map of %s; frames are %d x %d here", name,
                    table.concat(found, " x "), shape[2], shape[3])
            end
        end
    end,
    warp = function(step, frame)
        local own, options = {device = frame.device, step = step}, step.options
        local rows <close> = map_of(options.rows, own, options, 2)
        local columns <close> = map_of(options.columns, own, options, 3)
        return mb.remap(frame, rows, columns, {order = options.order, mode = "constant", value = 0})
    end,
    run = function(block, options)
        local rows <close> = map_of(options.rows, block, options, 2)
        local columns <close> = map_of(options.columns, block, options, 3)
        block:replace(mb.remap(block.data, rows, columns, {order = options.order,
            mode = options.mode, value = options.value
                or (block.quantity == "transmission" and 1 or 0)}))
    end,
}
