--- Configurations of nabu (nabu.conf) as recipes, in the order in which nabu works: flats, spots,
-- double flats, rotation, the search for the axis, phase, logarithm, background, rings, slices.

local core = require "moonbeam.core"
local conf_text = require "moonbeam.pipeline.imports.conf_text"
local fail = require "moonbeam.internal.fail"
local imported = require "moonbeam.pipeline.imports.imported"

local from_nabu = {}

-- Keys that say how the work is done and not what comes out, and keys that another key explains.
local OF_RUNNING <const> = {}
for key in ([[dataset.nexus_version preproc.flatfield_loading_mode preproc.processes_file
    preproc.flat_distortion_params preproc.rotate_projections_center preproc.autotilt_options
    phase.material_formula phase.material_density reconstruction.implementation
    reconstruction.cor_slice reconstruction.source_sample_dist
    reconstruction.hbp_reduction_steps reconstruction.hbp_legs reconstruction.crop_filtered_data
    reconstruction.iterations reconstruction.regularization_weight
    reconstruction.expand_support_factor reconstruction.optim_algorithm
    reconstruction.preconditioning_filter reconstruction.positivity_constraint
    output.overwrite_results output.keep_existing_files output.jpeg2000_compression_ratio
    output.zarr_options postproc.output_histogram postproc.histogram_bins resources.method
    resources.workers resources.gpus resources.gpu_id resources.memory_fraction
    resources.num_threads pipeline.save_steps pipeline.resume_from_step
    pipeline.ignore_checkpoint_config pipeline.steps_file pipeline.processing_margin
    pipeline.verbosity]]):gmatch "%S+" do
    OF_RUNNING[key] = true
end

local FALSE <const> = {["0"] = true, ["false"] = true, no = true, n = true, none = true,
    [""] = true, off = true}

-- Reads a configuration: each value is taken once, and what is left over was not understood.
local function reader(sections, where)
    local self = {taken = {}}
    function self.text(name, default)
        self.taken[name] = true
        local section, key = name:match "^(.-)%.(.*)$"
        local entry = sections[section] and sections[section][key]
        return entry and entry.value ~= "" and entry.value or default, entry and entry.line
    end
    function self.word(name, default)
        local text = self.text(name, default)
        return text and text:lower():match "^%s*(.-)%s*$"
    end
    function self.is(name, default)
        return not FALSE[self.word(name, default)]
    end
    function self.number(name, default)
        local text, line = self.text(name)
        if not text then
            return default
        end
        local value = imported.number(text)
        if not value then
            imported.refuse(where, line, "%s is '%.40s'; nabu takes a number there", name, text)
        end
        return value
    end
    return self
end

-- "a = 1 ; b = (0, 30)" -> {a = "1", b = "(0, 30)"}.
local function pairs_of(text)
    local list = {}
    for part in (text or ""):gmatch "[^;]+" do
        local key, value = part:match "^%s*([%w_]+)%s*=%s*(.-)%s*$"
        if key then
            list[key] = value:gsub("^['\"](.*)['\"]$", "%1")
        end
    end
    return list
end

local LENGTHS <const> = {m = 1, cm = 1e-2, mm = 1e-3, um = 1e-6, micron = 1e-6, nm = 1e-9}
local ENERGIES <const> = {ev = 1, kev = 1e3, mev = 1e6}

-- A number with a unit in SI units, or nil.
local function quantity(text, units)
    local value, unit = (text or ""):match "^([%d.eE+-]+)%s*(%a*)$"
    local factor = units[(unit or ""):lower()]
    return imported.number(value) and factor and imported.number(value) * factor
end

local function begin(made, get)
    made.scan = get.text "dataset.location"
    local entry = get.text "dataset.hdf5_entry"
    if entry then
        made:option("entry", entry)
    end
    local columns, rows = get.number("dataset.binning", 1), get.number("dataset.binning_z", 1)
    if columns ~= 1 or rows ~= 1 then
        made:step("bin", {columns = columns, rows = rows})
    end
    local every = get.text("dataset.projections_subsampling", "1")
    local count, first = every:match "^%s*(%d+)%s*:?%s*(%d*)%s*$"
    if count and tonumber(count) > 1 and (first == "" or first == "0") then
        made:step("select", {every = math.tointeger(count)})
    elseif every ~= "1" then
        made:lose("dataset.projections_subsampling = " .. every, "see the step select")
    end
    for _, name in ipairs {"exclude_projections", "darks_flats_dir"} do
        local value = get.text("dataset." .. name)
        if value then
            made:lose(("dataset.%s = %s"):format(name, value), name == "exclude_projections"
                and "see the step select" or "give --flats-path and --darks-path")
        end
    end
    for _, name in ipairs {"flip_lr", "flip_ud"} do
        local value = get.word("dataset." .. name, "auto")
        if value ~= "auto" and not FALSE[value] then
            made:lose(("dataset.%s = %s"):format(name, value))
        end
    end
    return pairs_of(get.text "dataset.overwrite_metadata")
end

local function corrections(made, get)
    local flats = get.word("preproc.flatfield", "1")
    local current = get.is("preproc.normalize_srcurrent", "1")
    if flats == "pca" then
        made:step("flat_field_eigen", {preset = "nabu"})
    elseif not FALSE[flats] then
        made:step("flat_field", {preset = "nabu", normalize_current = not current and "no" or nil})
    else
        made:option("input", "transmission")
    end
    if get.is("preproc.ccd_filter_enabled", "0") then
        made:step("dezinger", {preset = "nabu",
            threshold = get.number("preproc.ccd_filter_threshold", 0.04)})
    end
    get.text "preproc.ccd_filter_threshold"
    if get.is("preproc.double_flatfield", "0") then
        made:step("double_flat_field", {preset = "nabu", sigma = get.number "preproc.dff_sigma"})
    end
    get.text "preproc.dff_sigma"
    local angle = get.text "preproc.tilt_correction"
    if angle and imported.number(angle) then
        made:step("rotate", {angle = math.rad(imported.number(angle))})
    elseif angle then
        made:lose("preproc.tilt_correction = " .. angle,
            "mb.recon.find_tilt finds an angle for the step tilt")
    end
    for _, name in ipairs {"flat_distortion_correction_enabled", "detector_distortion_correction",
        "detector_distortion_correction_options", "target_dark_mean"} do
        if get.is("preproc." .. name, "0") then
            made:lose(("preproc.%s = %s"):format(name, get.text("preproc." .. name)),
                name == "detector_distortion_correction" and "see the step distortion_map" or nil)
        end
    end
end

local function phase(made, get, facts)
    local method = get.word("phase.method", "none")
    local options = {preset = "nabu", energy = quantity(facts.energy, ENERGIES),
        distance = quantity(facts.distance, LENGTHS),
        pixel_size = quantity(facts.pixel_size, LENGTHS)}
    local ratio = get.text("phase.delta_beta", "100.0")
    options.delta_beta = imported.number(ratio)
    local padding = get.word("phase.padding_type", "edge")
    options.padding = padding == "zeros" and "constant" or padding == "mirror" and "reflect"
        or padding:gsub("^edges$", "edge")
    if method == "paganin" or method == "tie" or method == "ctf" then
        local name = method == "ctf" and "ctf" or "paganin"
        made:step(name, options)
        for _, need in ipairs {"energy", "distance"} do
            if not options[need] then
                made:remark("nabu reads the %s from the scan; here it is given: --set %s.%s=%s",
                    need, name, need, need == "energy" and "EV" or "METERS")
            end
        end
        if not options.delta_beta then
            made:lose("phase.delta_beta = " .. ratio, ("give --set %s.delta_beta=N"):format(name))
        end
        for _, key in ipairs {"ctf_geometry", "ctf_advanced_params"} do
            local value = get.text("phase." .. key)
            if value and method == "ctf" then
                made:lose(("phase.%s = %s"):format(key, value), "see the step ctf")
            end
        end
    elseif not FALSE[method] then
        made:lose("phase.method = " .. method)
    end
    get.text "phase.ctf_geometry"
    get.text "phase.ctf_advanced_params"
    local coefficient, sigma = get.number("phase.unsharp_coeff", 0),
        get.number("phase.unsharp_sigma", 0)
    local form = get.word("phase.unsharp_method", "gaussian")
    if coefficient > 0 and sigma > 0 then
        made:step("unsharp", {preset = "nabu", coefficient = coefficient, sigma = sigma,
            method = form == "laplacian" and "log" or form})
    end
end

local function logarithm(made, get)
    local low, high = get.number("preproc.log_min_clip", 1e-6),
        get.number("preproc.log_max_clip", 10)
    if get.is("preproc.take_logarithm", "1") then
        made:step("minus_log", {min = low, max = high})
    end
    local background = get.word("preproc.sino_normalization", "none")
    if background == "chebyshev" then
        made:step("normalize_background", {preset = "nabu"})
    elseif not FALSE[background] then
        made:lose("preproc.sino_normalization = " .. background)
    end
    get.text "preproc.sino_normalization_file"
end

local function rings(made, get)
    local method = get.word("preproc.sino_rings_correction", "none"):gsub("_", "-")
    local text = get.text "preproc.sino_rings_options"
    local options, used = pairs_of(text), {}
    local function take(name)
        used[name] = true
        return imported.number(options[name])
    end
    if method == "munch" then
        made:step("stripes_wavelet", {preset = "nabu", sigma = take "sigma", level = take "levels"})
        used.padding = (options.padding or ""):lower() == "true" -- as the preset has it
    elseif method == "vo" then
        made:step("stripes_all", {preset = "nabu", snr = take "snr", large_size = take "la_size",
            small_size = take "sm_size"})
        used.dim = options.dim == "1"
    elseif method == "mean-subtraction" or method == "mean-division" then
        local low, high = (options.filter_cutoff or ""):match "^%(%s*([%d.]+)%s*,%s*([%d.]+)%s*%)$"
        used.filter_cutoff = low ~= nil
        made:step("stripes_mean", {preset = "nabu", mode = method == "mean-division" and "divide"
            or "subtract", low_sigma = imported.number(low), high_sigma = imported.number(high)})
    elseif not FALSE[method] then
        made:lose("preproc.sino_rings_correction = " .. method,
            "see the steps stripes_wavelet, stripes_all and stripes_sorting")
        return
    end
    local left = {}
    for name, value in pairs(options) do
        left[#left + 1] = not used[name] and not FALSE[method] and name .. "=" .. value or nil
    end
    table.sort(left)
    if #left > 0 then
        made:lose("preproc.sino_rings_options: " .. table.concat(left, "; "))
    end
end

-- nabu searches the axis in radios after the flat field and the rotation, before phase retrieval.
local function axis(made, get)
    local position = get.text("reconstruction.rotation_axis_position", "sliding-window")
    local options = get.text "reconstruction.cor_options"
    local given = tonumber(position)
    if position:lower():find "^[+-]?nan" or position:lower():find "^[+-]?inf"
        or given and math.abs(given) == math.huge then
        fail("argument", "import_recipe", nil, "reconstruction.rotation_axis_position is %s: give "
            .. "the column of the axis, or the name of a search, such as sliding-window",
            core.error.printable(position))
    elseif imported.number(position) then
        made:step("center", {column = imported.number(position)})
    else
        made:step("center", {preset = "nabu"})
        if position ~= "sliding-window" and position ~= "auto" and position ~= "centered" then
            made:remark("nabu's search '%s' becomes the registration of opposite projections",
                position)
        end
        if options and not options:find "from_file" then
            made:remark("nabu's options of the search are not taken over: %s", options)
        end
    end
    for _, name in ipairs {"axis_correction_file", "translation_movements_file", "angles_file"} do
        local value = get.text("reconstruction." .. name)
        if value then
            made:lose(("reconstruction.%s = %s"):format(name, value),
                name == "translation_movements_file" and "see the steps vertical_shift and "
                .. "horizontal_shift" or name == "angles_file" and "give --angles-path" or nil)
        end
    end
    if get.number("reconstruction.angle_offset", 0) ~= 0 then
        made:lose("reconstruction.angle_offset")
    end
end

-- nabu's first and last pixel (from 0, the last one included or -1) as a range from 1.
local function range_of(get, name)
    local low, high = get.text("reconstruction.start_" .. name, "0"),
        get.text("reconstruction.end_" .. name, "-1")
    local first, last = imported.number(low), imported.number(high)
    if first == 0 and last == -1 then
        return nil
    elseif not first or not last or last < 0 then
        return nil, ("reconstruction.start_%s = %s, end_%s = %s"):format(name, low, name, high)
    end
    return {first + 1, last + 1}
end

-- The place of a step in the recipe.
local function place_of(made, name)
    for i, step in ipairs(made.recipe) do
        if step[1] == name then
            return i
        end
    end
end

local function slices(made, get)
    local rows, lost = range_of(get, "z")
    if rows then
        made:option("rows", ("%d:%d"):format(rows[1], rows[2]))
    elseif lost then
        made:lose(lost, "give --rows FIRST:LAST")
    end
    local method = get.word("reconstruction.method", "fbp")
    local half = get.word("reconstruction.enable_halftomo", "auto")
    local filter = get.word("reconstruction.fbp_filter_type", "ramlak")
    local options = {preset = "nabu", cutoff = get.number("reconstruction.fbp_filter_cutoff", 1),
        padding = get.word("reconstruction.padding_type", "edges"):find "^edge" and "edge"
            or "zero", circle = get.is("reconstruction.clip_outer_circle", "0") and 1 or 0}
    local outside = get.number("reconstruction.outer_circle_value", 0)
    options.circle_value = options.circle == 1 and outside ~= 0 and outside or nil
    options.filter = (FALSE[filter] and "none" or filter):gsub("^ramlak$", "ram-lak")
    options.x, lost = range_of(get, "x")
    local also
    options.y, also = range_of(get, "y")
    for _, text in ipairs {lost or false, also or false} do
        if text then
            made:lose(text, "give the options x and y of the step fbp")
        end
    end
    if half == "auto" then
        table.insert(made.recipe, place_of(made, "center"), {"half_acquisition", when = "auto"})
    elseif not FALSE[half] then
        table.insert(made.recipe, place_of(made, "center"), {"half_acquisition"})
    end
    get.text "reconstruction.centered_axis"
    get.text "reconstruction.sample_detector_dist"
    if method == "fbp" or method == "hbp" or method == "ghbp" then
        made:step("fbp", options)
        if method ~= "fbp" then
            made:remark("nabu's hierarchical back-projection becomes fbp")
        end
    elseif method == "mlem" or method == "em" or method == "fluo" then
        made:step("mlem", {iterations = get.number("reconstruction.iterations", 200)})
    elseif FALSE[method] then
        made:remark("nabu reconstructs nothing here; the recipe ends with sinograms")
    else
        made:lose("reconstruction.method = " .. method)
        made:step("fbp", options)
    end
end

local function results(made, get)
    local folder, prefix = get.text "output.location", get.text "output.file_prefix"
    if folder and prefix then
        made:option("output", ("%s/%s.hdf5"):format(folder:gsub("/+$", ""), prefix))
    elseif folder then
        made:remark("nabu names the result after the scan, in the folder %s; give -o", folder)
    end
    local form = get.word("output.file_format", "hdf5")
    if form ~= "hdf5" and form ~= "h5" and form ~= "nx" then
        made:lose("output.file_format = " .. form, "-o RESULT.tif or RESULT.zarr writes these")
    end
    if get.text "output.float_clip_values" then
        made:lose("output.float_clip_values")
    end
    get.text "output.tiff_single_file"
end

--- A nabu.conf as `imported`. Errors: argument, with the line; io.
function from_nabu.read(path)
    local sections = conf_text.parse(imported.read(path), path)
    if not (sections.dataset or sections.reconstruction or sections.preproc) then
        imported.refuse(path, 1, "this is no nabu.conf: it has no section [dataset], [preproc] or "
            .. "[reconstruction]")
    end
    local made, get = imported.new "nabu", reader(sections, path)
    local facts = begin(made, get)
    corrections(made, get)
    axis(made, get)
    phase(made, get, facts)
    logarithm(made, get)
    rings(made, get)
    slices(made, get)
    results(made, get)
    local left = {}
    for section, keys in pairs(sections) do
        for key, entry in pairs(keys) do
            local name = section .. "." .. key
            if section ~= "about" and not get.taken[name] and not OF_RUNNING[name] then
                left[#left + 1] = {line = entry.line, text = name .. " = " .. entry.value}
            end
        end
    end
    table.sort(left, function(a, b) return a.line < b.line end)
    for _, each in ipairs(left) do
        made:lose(each.text, "nabu 2026.1 has no such key")
    end
    return made
end

return from_nabu
