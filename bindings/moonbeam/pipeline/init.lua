--- Runs any chain of methods on a scan in blocks that fit the memory, which is known beforehand.
--
-- A recipe is a list of steps with options. Bound to a scan and to devices, it is a pipeline. The
-- pipeline's plan says what every section takes, to the byte, before a frame is read.

local arguments = require "moonbeam.internal.arguments"
local bound = require "moonbeam.pipeline.bound"
local catalog = require "moonbeam.pipeline.catalog"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local recipe_text = require "moonbeam.pipeline.recipe"
local shipped = require "moonbeam.pipeline.shipped"

local pipeline = {}

local OPTIONS = declared.options(
    {"devices", "any", "where the work is done: a device, a list of them, \"all\" or "
        .. "\"cuda:0,cuda:1\" (mb.device.several)", usual = "host"},
    {"budget", "bytes", "the limit for each device", unit = "bytes",
        usual = "what its budget leaves"},
    {"host_budget", "bytes", "what stores between sections may take of host memory",
        unit = "bytes", usual = "what the host's budget leaves"},
    {"scratch", "string", "the folder for stores that do not fit there"},
    {"rows", "range", "rows of the result, {first, last}", usual = "all"},
    {"part", "list", "{K, N}: only the K-th of N shares of these rows, which the command join puts "
        .. "together"},
    {"block", "count", "rows at a time", min = 1, usual = "as many as fit"},
    {"overlap", "any", "read and write while computing; \"auto\": if that fits",
        usual = "auto"},
    {"threads", "count", "threads that read, and as many that write", min = 1, max = 64},
    {"pinned", "bytes", "pinned host memory for reading and writing", unit = "bytes"},
    {"schedule", "choice", "how several devices share the blocks: the next block goes to the "
        .. "device that is free, or block i to device i mod n", choices = {"free", "fixed"},
        default = "free"},
    {"order", "list", "a fixed schedule: the number of the device for each block; the list "
        .. "repeats"},
    {"input", "string", "what the values are if the scan does not say: transmission or line "
        .. "integrals"},
    {"steps", "any", "files with the user's own steps, or a list of definitions"},
    {"ranks", "any", "false: this rank of an MPI run works alone; a number: plans for so many; "
        .. "ranks that share a file leave this out (mb.cluster)"},
    {"quiet", "boolean", "no progress"})

--- Binds a recipe to a scan and to devices.
--
-- Nothing is read. `recipe` is a list of steps such as {"flat_field", "minus_log", {"center"},
-- {"fbp", filter = "hann"}}, the name of a file that contains one, or that of a recipe of the
-- library, such as "FBP3d_tomobar".
-- Returns a pipeline: p:plan(), p:part(), p:run(), p:slices().
-- Errors: argument (a chain that makes no sense; the message names the step).
pipeline.new = declared("pipeline.new", {
    {"scan", "scan", "the result of mb.scan.open or mb.scan.of_arrays"},
    {"recipe", "any", "the steps, the name of a file that contains them, or of a recipe of the "
        .. "library"},
    options = OPTIONS,
}, function(scan, recipe, options)
    local own, files = options.steps or {}, {}
    if type(own) ~= "table" then
        fail("argument", "pipeline", "steps", "steps is %s; give a list of files, as "
            .. "{\"own.lua\"}, or of definitions", arguments.described(own))
    elseif type(own[1]) == "string" then
        own, files = nil, own
    end
    if type(recipe) ~= "string" and type(recipe) ~= "table" then
        fail("argument", "pipeline", "recipe", "recipe is %s; give a list of steps or the name of "
            .. "a recipe", arguments.described(recipe))
    end
    local entries, folder = recipe, nil
    if type(recipe) == "string" then
        local path, missing = shipped.path_of(recipe)
        if not path then
            fail("io", "pipeline", "recipe", "%s", missing)
        end
        entries = recipe_text.read(path)
        folder = path == recipe and path:match "^(.*)/[^/]*$" or nil -- of the library's: here
    end
    return bound.new(scan, entries, options, {folder = folder,
        catalog = catalog.new(files, own and next(own) and own or nil)})
end)

return declared.module(pipeline, "pipeline", nil, function(_, ...)
    return pipeline.new(...)
end)
