--- What interrupted runs of moonbeam deconvolve by tiles leave beside a result, and how later ones
-- go on with it.

local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local file_name = require "moonbeam.internal.file_name"
local mb = require "moonbeam"
local resuming = require "moonbeam.internal.command_line.resuming"
local resumed = require "moonbeam.internal.command_line.resumed"

local kept_runs = {}

--- Has an interrupted run left something beside this result?
function kept_runs.exists(output)
    return core.unfinished.exists(file_name.without_member(output))
end

-- What identifies a run, beside what the library sees: the options as they were typed.
local NAMES <const> = resumed.typed "deconvolve"

local function key_of(name)
    return (name:gsub("-", "_"))
end

-- A value of such an option. A range A:B may be without its A or B.
local function text_of(value)
    if type(value) ~= "table" then
        return tostring(value or "not given")
    end
    local parts, last = {}, 0
    for i in pairs(value) do
        last = math.max(last, math.tointeger(i) or 0)
    end
    for i = 1, last do
        parts[i] = tostring(value[i] or "")
    end
    return table.concat(parts, ",")
end

--- What decides the values of a run and may change while it is prepared, to be given to `open`.
function kept_runs.asked(options)
    local asked = {}
    for _, name in ipairs(NAMES) do
        asked[name] = options[key_of(name)]
    end
    return asked
end

--- The journal of the run for an image, or, with options.plan or without an output, one that notes
-- nothing. With --into and --resume only an image with a run that was interrupted goes on.
-- Errors: io (there is a run already, or none to resume).
function kept_runs.open(options, asked, image, output)
    local inputs, also = {file_name.without_member(image)}, {}
    inputs[2] = options.psf and file_name.without_member(options.psf) or nil
    for _, name in ipairs(NAMES) do
        also[#also + 1] = {"--" .. name, text_of(asked[name])}
    end
    local plan = options.plan or not output
    local path = output and file_name.without_member(output) or ""
    return mb.tiled_deconv.journal(path, {inputs = inputs, also = also,
        plan = plan, ranks = options.plan and options.ranks or nil, discard = options.discard,
        overwrite = options.overwrite,
        resume = options.resume and (not options.into or kept_runs.exists(path)) or false,
        tell = function(text)
            cli.tell(resuming.told(options, text))
        end})
end

--- The mode of tiles of the first interrupted run among these images, as text; nil without one.
function kept_runs.mode(options, asked, images)
    for _, each in ipairs(images) do
        if not each.what and kept_runs.exists(each.output) then
            local journal <close> = kept_runs.open(options, asked, each.image, each.output)
            return journal:was "mode"
        end
    end
end

return kept_runs
