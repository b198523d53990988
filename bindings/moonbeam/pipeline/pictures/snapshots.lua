--- Pictures of the data after every step of a pipeline: of one row, or of one frame if the section
-- works on whole frames.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local run = require "moonbeam.pipeline.run"

local snapshots = {}

-- The picture of a block: the sinogram or slice of its middle row, or its middle frame.
local function picture_of(block)
    local data = block.data
    local shape = data.shape
    if block.layout == "frames" and block.cut == "rows" then
        return data:view(mb.all, (shape[2] + 1) // 2, mb.all)
    end
    return data:view((shape[1] + 1) // 2, mb.all, mb.all)
end

--- Writes PNGs of one row of the result (default: the middle row) into a folder: 01-flat_field.png
-- and so on. A missing folder is made. On a GPU a picture takes memory that the pipeline's plan
-- does not count; a dry run of this function does. Options: row, overwrite. Returns the report.
function snapshots.save(pipeline, folder, options)
    local facts = mb.system.stat(folder)
    local dry <const> = mb.device.dry()
    if facts and facts.kind ~= "folder" then
        fail("io", "pipeline", "snapshots", "'%s' exists and is not a folder", folder)
    elseif not (facts or dry) then
        mb.system.mkdir(folder)
    end
    local _ <close> = on_error(function()
        if not (facts or dry) then
            os.remove(folder) -- which stays with the pictures in it
        end
    end)
    local row = options.row or (pipeline.chain.shape[1] + 1) // 2
    local part, taken, count = pipeline:part {rows = {row, row}}, {}, 0
    for _, step in ipairs(part.chain.steps) do
        count = count + (step.partial and 0 or 1)
        taken[step] = not step.partial and count or nil
    end
    part.options.seen = function(step, block)
        local number = taken[step]
        if number then
            taken[step] = nil
            local view <close> = picture_of(block)
            mb.view.save(("%s/%02d-%s.png"):format(folder, number, step.label), view,
                {overwrite = options.overwrite})
        end
    end
    return run.execute(part:plan(), {sink = function() end, quiet = true})
end

return snapshots
