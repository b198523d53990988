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
    options = bound.OPTIONS,
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
