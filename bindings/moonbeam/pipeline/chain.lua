--- Binds a recipe to definitions and to its source. Nothing is read and nothing runs. A chain that
-- makes no sense is refused here, with the step's label and what to do.
--
--   chain.bind(recipe, source, options) -> {steps, source, shape, geometry, kind, dtype, recipe}
--
-- A step has name, label ("median", "median#2"), def, options (complete), given (as written),
-- takes and gives (kinds: {quantity, layout}), kind_before and kind, shape_before and shape,
-- geometry_before and geometry, dtype_before and dtype, cast ("f32" if the data must be converted
-- before it), and values (the values that it uses and that earlier steps measure: {center =
-- label}). If the shape after a step depends on a measured value, it is the largest possible shape.
--
-- Besides the fields of any step, a definition may have: `known(options)`, the value of a measuring
-- step if its options give it; `last`, no step follows it; `selects(options, geometry)`, the
-- projections that it keeps, as a list of indices; `sources(options, first, last, geometry)`, the
-- first and the last projection of which it makes these; `prepare(options, geometry, source)`, the
-- options with the contents of the small files that they name; takes.dtypes, the types that its
-- `run` takes besides f32 ("any": all types); gives.dtype, the type of its result (default f32) or
-- "same"; `parts(options, shape, geometry)`, definitions that do the step's work one after the
-- other, each over all data, with a store between two of them (nil: the step has one part): what
-- such a definition lacks is as in the step's; `warp(step, frame)`, of a step that moves pixels,
-- what it makes of whole frames (nil: it moves each frame in another way); `across_angles` (true,
-- or a function of the options), it compares projections and moves no pixels, so that a search for
-- the axis leaves it out. `needs` gets the axis along which data are cut, "rows" or "frames", as
-- its last argument, and `check` gets the earlier steps.
--
-- A step in parts is several steps of the chain. The last one has its label; the others have
-- `partial`, and all but the first have stored_before.

local core = require "moonbeam.core"
local catalog = require "moonbeam.pipeline.catalog"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local kinds = require "moonbeam.pipeline.kinds"
local recipe_text = require "moonbeam.pipeline.recipe"
local step_options = require "moonbeam.pipeline.definitions.step_options"
local tables = require "moonbeam.internal.tables"

local chain = {}

local OPTIONS = declared.options({"catalog", "table", "the known steps"},
    {"folder", "string", "where relative paths begin"},
    {"foreign", "boolean", "the recipe comes from a result: its paths are not followed"},
    {"trust_paths", "boolean", "follow them nevertheless"},
    {"typed", "table", "{value = true}: file names that the user has typed"})

-- ---- sources ----

--- The source of a chain: the projections of a scan. `options.input` says what their values are if
-- the scan has neither flats nor darks, or overrides what the scan says.
function chain.source_of(scan, options)
    return {shape = {scan.n_angles, scan.rows, scan.cols}, dtype = scan.dtype, scan = scan,
        kind = {quantity = kinds.of_scan(scan, options and options.input), layout = "frames"},
        geometry = geometry.of_scan(scan)}
end

-- ---- one step ----

local function value_of(field, ...)
    if type(field) == "function" then
        return field(...)
    end
    return field
end

-- Calls a function of a definition; its errors name the step.
local function called(step, f, ...)
    local result = table.pack(pcall(f, ...))
    if result[1] then
        return table.unpack(result, 2, result.n)
    end
    local problem = result[2]
    if type(problem) == "table" and problem.code then
        problem.op = "step " .. step.label
        error(problem, 0)
    end
    fail("argument", "step " .. step.label, nil, "its definition fails: %s",
        core.error.printable(tostring(problem)))
end

-- The values that a step uses: the label of the step that measures each, by the value's name.
local function values_of(steps, step)
    local values = {}
    for _, name in ipairs(step.def.uses or {}) do
        local maker
        for _, before in ipairs(steps) do
            maker = before.def.gives_value == name and before or maker
        end
        if maker and step.options[name] ~= nil then
            fail("argument", "step " .. step.label, name, "%s = %s is given, but step %s finds it "
                .. "too; remove one of the two", name, tostring(step.options[name]), maker.label)
        elseif not maker and step.options[name] == nil then
            fail("argument", "step " .. step.label, name, "%s is not known; put \"%s\" before it, "
                .. "or give %s = ...%s", name, name, name, step.def.options[name]
                    and ", " .. step.def.options[name].doc or "")
        end
        values[name] = maker and maker.label or nil
    end
    return values
end

-- Whether one of these steps gives the axis.
local function has_center(steps)
    for _, step in ipairs(steps) do
        if step.def.gives_value == "center" then
            return true
        end
    end
    return false
end

-- Gives a step that needs the axis the one that an earlier step knows (geometry.axis), unless a
-- step finds it.
local function take_axis(steps, step, g)
    if g.axis and table.concat(step.def.uses or {}, " "):find "center" and not has_center(steps)
    then
        if step.options.center == nil then
            step.options = tables.merged(step.options, {center = g.axis})
        else
            called(step, geometry.check_axis, g, "center", step.options.center)
        end
    end
end

local function check_order(steps, step)
    local before = steps[#steps]
    if before and before.def.last then
        fail("argument", "step " .. step.label, nil, "it comes after step %s, which must be the "
            .. "last step; move %s to the end", before.label, before.label)
    end
    for _, other in ipairs(steps) do
        if step.def.gives_value and other.def.gives_value == step.def.gives_value then
            fail("argument", "step " .. step.label, nil, "step %s already finds the %s; remove one "
                .. "of the two", other.label, step.def.gives_value)
        end
    end
end

local function set_dtypes(step, state)
    local taken, given = step.takes.dtypes or {}, step.gives.dtype or "f32"
    step.dtype_before = state.dtype
    step.cast = state.dtype ~= "f32" and not kinds.accepts(taken, state.dtype) and "f32" or nil
    step.dtype = given == "same" and (step.cast or state.dtype) or given
end

-- The steps that do the work of a step whose input is `state`: itself, or its parts.
local function parts_of(step, state)
    local parts = step.def.parts and called(step, step.def.parts, step.options, state.shape,
        state.geometry)
    if not parts then
        return {step}
    end
    local list = {}
    for i, part in ipairs(parts) do
        local last = i == #parts
        list[i] = {name = step.name, label = step.label,
            def = setmetatable(part, {__index = step.def}), given = step.given,
            options = step.options, partial = not last or nil, stored_before = i > 1 or nil}
    end
    return list
end

-- Completes a step from its input. `state`, {shape, geometry, kind, dtype}, describes the step's
-- input on entry and its output on return.
local function connect(steps, step, state, source)
    local def, options = step.def, step.options
    step.takes = called(step, value_of, def.takes, options)
    check_order(steps, step)
    kinds.check(steps, step.label, step.name, step.takes, state.kind)
    step.kind_before, step.shape_before = state.kind, state.shape
    step.geometry_before = state.geometry
    if def.prepare then
        step.options, step.took = called(step, def.prepare, options, state.geometry, source)
        options = step.options
    end
    step.values = values_of(steps, step)
    if def.check then
        called(step, def.check, options, state.shape, state.geometry, state.kind, steps)
    end
    step.gives = called(step, value_of, def.gives, options, state.kind)
    step.kind = kinds.after(step.gives, state.kind)
    step.shape = def.shape and called(step, def.shape, options, state.shape, state.geometry)
        or state.shape
    step.geometry = def.geometry and called(step, def.geometry, options, state.geometry,
        state.shape, state.kind) or state.geometry
    set_dtypes(step, state)
    for _, extent in ipairs(step.shape) do
        if extent < 1 then
            fail("shape", "step " .. step.label, nil, "nothing is left after it: %s",
                table.concat(step.shape, " x "))
        end
    end
    return {shape = step.shape, geometry = step.geometry, kind = step.kind, dtype = step.dtype}
end

local function check_recipe(recipe)
    if type(recipe) ~= "table" then
        fail("argument", "pipeline", "recipe", "recipe is a %s; give a list of steps, or read one "
            .. "from a file", type(recipe))
    elseif #recipe == 0 then
        fail("argument", "pipeline", "recipe", "the recipe is empty; give its steps, such as "
            .. "{\"flat_field\", \"minus_log\", \"center\", \"fbp\"}")
    end
    for key in pairs(recipe) do
        if math.type(key) ~= "integer" or key < 1 or key > #recipe then
            fail("argument", "pipeline", "recipe", "'%s' is outside a step; a recipe is a "
                .. "list: {\"%s\", ...}", core.error.printable(tostring(key)),
                core.error.printable(tostring(key)))
        end
    end
    for i, entry in ipairs(recipe) do
        local problem = recipe_text.problem(entry)
        if problem then
            fail("argument", "pipeline", "recipe", "entry %d: %s", i, problem)
        end
    end
end

-- Steps with definitions and labels, not yet connected.
local function named(recipe, known)
    local steps, count = {}, {}
    for i, entry in ipairs(recipe) do
        local name = type(entry) == "table" and entry[1] or entry
        local def = known:find(name)
        count[name] = (count[name] or 0) + 1
        local label = count[name] > 1 and ("%s#%d"):format(name, count[name]) or name
        steps[i] = {name = name, label = label, def = def, given = entry}
    end
    return steps
end

--- Binds a recipe to a source (chain.source_of) and returns the chain. Options: catalog
-- (pipeline/catalog.lua; default: the library's steps), folder (the recipe's folder, for its
-- paths), foreign (the recipe is from a result, so its paths are not followed), trust_paths.
-- Errors: argument, shape.
function chain.bind(recipe, source, options)
    options = declared.checked(OPTIONS, options, "pipeline")
    check_recipe(recipe)
    local known = options.catalog or catalog.new()
    local steps = named(recipe, known)
    for _, step in ipairs(steps) do
        step.options = step_options.resolved(step.def, step.given, "step " .. step.label, options)
    end
    local state, done = source, {}
    for _, step in ipairs(steps) do
        take_axis(done, step, state.geometry)
        for i, part in ipairs(parts_of(step, state)) do
            state = connect(done, part, state, source) -- what is wrong is said of the step
            part.label = part.partial and ("%s:%d"):format(step.label, i) or step.label
            done[#done + 1] = part
        end
    end
    return {steps = done, source = source, recipe = recipe, shape = state.shape,
        geometry = state.geometry, kind = state.kind, dtype = state.dtype,
        recorded = known:recorded(recipe)}
end

-- ---- changed recipes ----

--- The recipe of a chain with every default resolved.
function chain.resolved(bound)
    local list = {}
    for _, step in ipairs(bound.steps) do
        local entry = tables.merged({step.name}, step.options)
        list[#list + 1] = not step.partial and (next(step.options) and entry or step.name) or nil
    end
    return list
end

--- The entry and option of a recipe that "fbp.filter" or "median#2.size" names: the entry's index,
-- the option's name, and its declaration. Errors: argument, with the nearest name.
function chain.target(recipe, path, known)
    check_recipe(recipe)
    known = known or catalog.new()
    local label, option = tostring(path):match "^([%w_]+#?%d*)%.([%w_]+)$"
    if not label then
        fail("argument", "pipeline", nil, "'%s' does not name an option of a step; write "
            .. "step.option, such as fbp.filter", core.error.printable(tostring(path)))
    end
    local labels = {}
    for i, step in ipairs(named(recipe, known)) do
        labels[i] = step.label
        if step.label == label or label == step.label .. "#1" then
            return i, option, step_options.entry(step.def, option, "step " .. step.label)
        end
    end
    local near = core.error.nearest(label, labels)
    fail("argument", "pipeline", nil, "'%s': the recipe has no step '%s'%s",
        core.error.printable(path), label, near and ("; did you mean '%s'?"):format(near)
            or "; it has " .. table.concat(labels, ", "))
end

--- A copy of a recipe with another value of one option: ("fbp.filter", "hann").
function chain.with(recipe, path, value, known)
    local index, option, entry = chain.target(recipe, path, known)
    local problem = step_options.problem(entry, value)
    if problem then
        fail("argument", "step " .. path:match "^[^.]+", option, "%s", problem)
    end
    local copy, before = table.move(recipe, 1, #recipe, 1, {}), recipe[index]
    copy[index] = tables.merged(type(before) == "table" and before or {before})
    copy[index][option] = value
    return copy
end

return chain
