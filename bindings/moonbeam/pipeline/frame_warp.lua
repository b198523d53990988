--- The common part of the steps that warp frames: distortion, distortion_map and rotate.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

local frame_warp = {}

--- The options of all of them: the operator's, with edges repeated.
function frame_warp.options(operator)
    return declared.from(operator, "order", "mode", {"value", usual = "the open beam: 1 in "
        .. "transmission, otherwise 0", default = "auto"})
end

-- Frames are cut along rows if a row needs at most so many rows, or so large a part of them.
local MOST_ROWS <const> = 64
local MOST_PART <const> = 0.25

-- All parameters of the operator, for whole frames.
local function parameters(warp, step)
    local options = step.options
    local own = warp.parameters(options, step.geometry_before, step.shape_before)
    own.order, own.mode, own.value = options.order, options.mode, options.value
    return own
end

-- For each row of the result, {first, last}: the rows of the frame that it needs.
local function reach_of(warp, step)
    if not step.reach then
        local own, reach = parameters(warp, step), {}
        local spec = {"f32", table.unpack(step.shape_before)}
        for row = 1, step.shape_before[2] do
            local piece = mb.op.piece(warp.operator, {spec}, own, {axis = 2, first = row,
                last = row})
            reach[row] = {piece.first, piece.last}
        end
        step.reach = reach -- used for every block
    end
    return step.reach
end

local function needs(warp, first, last, step)
    local reach, low, high = reach_of(warp, step), math.huge, -math.huge
    for row = first, last do
        low, high = math.min(low, reach[row][1]), math.max(high, reach[row][2])
    end
    return low, high
end

local function cuts(warp, step)
    local most, rows = 0, step.shape_before[2]
    for _, own in ipairs(reach_of(warp, step)) do
        most = math.max(most, own[2] - own[1] + 1)
    end
    return most <= math.max(MOST_ROWS, MOST_PART * rows) and {"rows", "frames"} or {"frames"}
end

local function run(warp, block)
    local own, required = parameters(warp, block.step), {}
    own.value = own.value or (block.quantity == "transmission" and 1 or 0)
    if block.cut == "rows" then
        own.part, own.rows = {block.rows[1], block.step.shape_before[2]}, block.wanted
        block.rows = block.wanted
    end
    for i, name in ipairs(warp.required) do
        required[i], own[name] = own[name], nil
    end
    required[#required + 1] = own
    block:replace(mb[warp.operator](block.data, table.unpack(required)))
end

--- Completes the definition of a step that warps frames by an operator. `warp` has `operator`, its
-- name; `required`, the names of its required parameters; and `parameters(options, geometry,
-- shape)`, which returns them all.
function frame_warp.step(def, warp)
    def.takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"}
    def.gives = {quantity = "same", layout = "same"}
    function def.needs(_, first, last, step, cut)
        if cut == "rows" then
            return needs(warp, first, last, step)
        end
        return first, last
    end
    function def.cuts(_, step)
        return cuts(warp, step)
    end
    function def.run(block)
        run(warp, block)
    end
    function def.warp(step, frame)
        local own, required = parameters(warp, step), {}
        own.mode, own.value = "constant", 0
        for i, name in ipairs(warp.required) do
            required[i], own[name] = own[name], nil
        end
        required[#required + 1] = own
        return mb[warp.operator](frame, table.unpack(required))
    end
    return def
end

return frame_warp
