-- Filters a dataset of a file in blocks that fit a budget, into a dataset of another file.
-- usage: moonbeam scripts/examples/filter_in_blocks.lua INPUT DATASET OUTPUT [BUDGET]
local mb = require "moonbeam"

local name, path, output, budget = mb.usage(nil, nil, nil, "8M")
local input <close> = assert(mb.h5.open(name))
local frames = input:dataset(path)
local result <close> = mb.h5.create(output, {overwrite = true})
local filtered = result:create_dataset("/data", {shape = frames.shape})

-- An operator says by itself which neighbors a block needs: here rows above and below.
local device = mb.default_device().id
local _, report = mb.chunked("gaussian_filter", frames, {params = {sigma = {0, 0.5, 0.5}}, axis = 2,
    budget = budget, sink = filtered})
print(("operator: %d blocks of %d rows, planned %d bytes, measured %d"):format(
    report.plan.blocks, report.plan.block, report.plan.peak[device], report.peak[device]))

-- A function's options say it: here the frame after its own, for the larger one of two neighbors.
local larger <close>, seen = mb.chunked(function(block)
    local from <close> = block:view({1, block.shape[1] - 1})
    local to <close> = block:view({2, block.shape[1]})
    return mb.binary(to, "max", {b = from})
end, frames, {rows = frames.shape[1] - 1, needs = function(first, last)
    return first, last + 1
end, budget = budget})
print(("function: %d blocks of %d frames, result %s %s"):format(seen.plan.blocks, seen.plan.block,
    larger.dtype, table.concat(larger.shape, " x ")))
result:finish()
