--- Makes a recipe out of a configuration of another program: a nabu.conf, or a process list of
-- HTTomo.

local mb = require "moonbeam"
local catalog = require "moonbeam.pipeline.catalog"
local cli = require "moonbeam.internal.cli"
local step_options = require "moonbeam.pipeline.definitions.step_options"
local text_file = require "moonbeam.internal.files.text_file"

local READERS <const> = {nabu = "from_nabu", httomo = "from_httomo"}

local options = cli.parse(arg, {
    usage = "import_recipe CONFIG -o RECIPE [options]",
    summary = "Makes a recipe out of a configuration of another program, and names what has no "
        .. "counterpart.",
    {"config", positional = true, required = true,
        doc = "nabu's .conf, or HTTomo's .yaml"},
    {"output", short = "o", value = "FILE", also = {"to", "into"},
        doc = "the recipe, .lua (default: printed)"},
    {"from", value = "NAME", type = cli.choice("auto", "nabu", "httomo"), default = "auto",
        doc = "whose configuration it is; auto: by the name of the file"},
    cli.shared.overwrite, cli.shared.quiet,
    extra = function(word, values)
        return values.config:lower():find "%.lua$" and ("CONFIG comes first: import_recipe %s -o "
            .. "%s"):format(word, values.config) or nil
    end,
    notes = "The recipe begins with the command that runs it.\n"
        .. "Exit status: 0 all of it, 1 failed, 2 wrong use, 3 something has no counterpart (the "
        .. "recipe is written all the same).",
})

local from = options.from
if from == "auto" then
    local ending = options.config:lower():match "%.(%w+)$"
    from = ({conf = "nabu", cfg = "nabu", ini = "nabu", yaml = "httomo", yml = "httomo"})[ending]
    if not from then
        cli.wrong("CONFIG %s ends neither in .conf nor in .yaml; give --from nabu or --from httomo",
            options.config)
    end
end
cli.outputs(options, {options.config}, {{"output", extensions = {"lua"}, what = "recipes are "
    .. "files of Lua tables"}})

local made = cli.tried(nil, require("moonbeam.pipeline.imports." .. READERS[from]).read,
    options.config)

-- Values that a step does not take, for instance one outside of its range, have no counterpart.
local known = catalog.new()
for _, entry in ipairs(made.recipe) do
    local def = known:find(entry[1])
    for name, value in pairs(entry) do
        local option = type(name) == "string" and name ~= "preset" and def.options[name]
        local problem = option and step_options.problem(option, value)
        if problem or type(name) == "string" and name ~= "preset" and not option then
            entry[name] = nil
            made:lose(("%s: %s"):format(entry[1], problem or "no option " .. name))
        end
    end
end

local name = options.output or "RECIPE.lua"
local text = made:text(name)
if options.output then
    text_file.write(options.output, text, options.overwrite)
else
    io.write(text)
end
for _, lost in ipairs(made.lost) do
    cli.tell("no counterpart: " .. lost)
end
if options.output and not options.quiet then
    cli.print(("wrote      %s, %d steps; run it by"):format(options.output, #made.recipe))
    cli.print("  " .. made:command(name))
end
if #made.lost > 0 and not mb.device.dry() then
    os.exit(3, true)
end
