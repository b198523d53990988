local mb = require "moonbeam"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- How many averages there are of so many projections.
local function count_of(options, projections)
    local count = projections // options.frames
    return count + (options.rest == "keep" and projections % options.frames > 0 and 1 or 0)
end

return {
    name = "average",
    summary = "Means of consecutive projections: fewer projections, less noise.",
    doc = "A projection of the result is the mean of `frames` projections, in float32 whatever the "
        .. "type of the data, at the mean of their angles. A NaN makes its mean NaN.",
    presets = {httomo = {frames = 2, rest = "keep"}},
    options = declared.options(
        {"frames", "count", "projections that become one", min = 2, max = 65536, required = true},
        {"rest", "choice", "what becomes of projections at the end that are fewer: their mean, or "
            .. "nothing", choices = {"keep", "drop"}, default = "keep"}),
    takes = {quantity = {"counts", "transmission", "line integrals", "phase"}, layout = "frames",
        dtypes = {"u8", "u16", "i32", "f16"}},
    cuts = {"rows", "frames"},
    sources = function(options, first, last, g)
        return (first - 1) * options.frames + 1, math.min(#g.frames, last * options.frames)
    end,
    check = function(options, shape)
        if options.frames > shape[1] then
            fail("argument", nil, "frames", "frames is %d; there are %d projections: give fewer",
                options.frames, shape[1])
        end
    end,
    shape = function(options, shape)
        return {count_of(options, shape[1]), shape[2], shape[3]}
    end,
    geometry = function(options, g)
        local angles, frames = {}, {}
        for i = 1, count_of(options, #g.frames) do
            local first = (i - 1) * options.frames + 1
            local last, sum = math.min(#g.frames, i * options.frames), 0
            for k = first, last do
                sum = sum + g.angles[k]
            end
            angles[i] = sum / (last - first + 1)
            frames[i] = g.frames[(first + last) // 2]
        end
        local last = math.min(#g.frames, #frames * options.frames)
        return geometry.with(g, {angles = angles, frames = frames,
            used = table.move(g.frames, 1, last, 1, {}),
            turn = axis_pairs.is_turn(angles) and "whole" or "half"})
    end,
    needs = function(options, first, last, _, cut)
        if cut ~= "frames" then
            return first, last
        end
        return (first - 1) * options.frames + 1, last * options.frames
    end,
    run = function(block, options)
        if block.quantity ~= "counts" then
            block:finite(block.quantity == "transmission" and 1 or 0)
        end
        block:replace(mb.bin(block.data, {options.frames, 1, 1}, {rest = options.rest}))
        local range = block.cut == "frames" and block.rows or block.frames
            or {1, #block.geometry.frames}
        local first = (range[1] - 1) // options.frames + 1
        block.frames = {first, first + block.data.shape[1] - 1}
        if block.cut == "frames" then
            block.rows = block.frames
        end
    end,
}
