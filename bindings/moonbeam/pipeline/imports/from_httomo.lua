--- Process lists of HTTomo (YAML) as recipes. The methods keep their order; a center that a method
-- finds goes to the reconstruction by itself here.

local imported = require "moonbeam.pipeline.imports.imported"
local step_search = require "moonbeam.pipeline.imports.step_search"
local tables = require "moonbeam.internal.tables"
local yaml_text = require "moonbeam.pipeline.imports.yaml_text"

local from_httomo = {}

local NULL <const> = yaml_text.NULL
local HTTOMO <const> = {preset = "httomo"}

-- ---- parameters ----

-- Reads the parameters of a method: each value is taken once, and what is left over and is not
-- HTTomo's default is named.
local function reader(made, method, parameters)
    local self, taken = {}, {}
    -- A value of this type, or nil; a sweep becomes one of the command line, `option` of `step`.
    local function value_of(name)
        taken[name] = true
        local value = parameters[name]
        if value == NULL or type(value) == "string" and value:find "^%${{" then
            return nil
        end
        return value
    end
    function self.number(name, factor)
        local value = value_of(name)
        return type(value) == "number" and value * (factor or 1) or nil
    end
    function self.text(name)
        local value = value_of(name)
        return value ~= nil and type(value) ~= "table" and tostring(value) or nil
    end
    function self.is(name)
        return value_of(name) == true
    end
    function self.map(name)
        local value = value_of(name)
        return type(value) == "table" and value or {}
    end
    -- These are understood, whatever their values are: they do not change what is computed here.
    function self.ignore(...)
        for _, name in ipairs {...} do
            taken[name] = true
        end
    end
    -- The value of a sweep is its first one in the recipe.
    function self.sweep(name, option, map)
        local value = parameters[name]
        if type(value) ~= "table" or not value.tag then
            return
        end
        map = map or function(x) return x end
        local words, list = {}, value.value
        if value.tag == "Sweep" and type(list) == "table" and type(list[1]) == "number" then
            for i, each in ipairs(list) do
                words[i] = ("%.10g"):format(map(each))
            end
            made.sweeps[#made.sweeps + 1] = ("%s=%s"):format(option, table.concat(words, ","))
            parameters[name] = list[1]
        elseif value.tag == "SweepRange" and type(list) == "table" and type(list.start) == "number"
            and type(list.stop) == "number" and type(list.step) == "number" then
            -- Their last value is before stop.
            local count = math.ceil((list.stop - list.start) / list.step - 1e-9)
            local last = list.start + (count - 1) * list.step
            made.sweeps[#made.sweeps + 1] = ("%s=%.10g:%.10g:%.10g"):format(option,
                map(list.start), map(last), map(list.step))
            parameters[name] = list.start
        end
    end
    function self.finish()
        local names = {}
        for name, value in pairs(parameters) do
            if not taken[name] and value ~= NULL and value ~= false
                and not (type(value) == "string" and value:find "^%${{") then
                names[#names + 1] = name
            end
        end
        table.sort(names)
        for _, name in ipairs(names) do
            local value = parameters[name]
            made:lose(("%s: %s%s"):format(method, name, type(value) ~= "table"
                and " = " .. tostring(value) or value.tag and " (a sweep)" or ""))
        end
    end
    return self
end

-- start and stop (from 0, the last one left out) as a range from 1, or nil.
local function range_of(made, part, where)
    local first, last = part.start, part.stop
    if (first == nil or first == NULL) and (last == nil or last == NULL) then
        return nil
    elseif math.type(last) ~= "integer" or first ~= nil and first ~= NULL
        and math.type(first) ~= "integer" then
        made:lose(("%s: start and stop that are no numbers"):format(where),
            "give the step crop its range")
        return nil
    end
    return {(math.type(first) == "integer" and first or 0) + 1, last}
end

-- ---- methods ----

local METHODS = {}

function METHODS.standard_tomo(made, get)
    local preview = get.map "preview"
    local rows, columns = range_of(made, preview.detector_y or {}, "preview.detector_y"),
        range_of(made, preview.detector_x or {}, "preview.detector_x")
    for name in pairs(preview) do
        if name ~= "detector_y" and name ~= "detector_x" then
            made:lose("standard_tomo: preview." .. tostring(name))
        end
    end
    if rows or columns then
        made:step("crop", {rows = rows, columns = columns})
    end
    for name, option in pairs {data_path = "data-path", image_key_path = "image-key-path"} do
        local path = get.text(name)
        if path and path ~= "auto" then
            made:option(option, path)
        end
    end
    local angles = get.map "rotation_angles"
    local own = type(angles.user_defined) == "table" and angles.user_defined or nil
    if type(angles.data_path) == "string" then
        made:option("angles-path", angles.data_path)
    elseif own and type(own.start_angle) == "number" and type(own.stop_angle) == "number" then
        made:option("angles", ("%.10g:%.10g"):format(own.start_angle, own.stop_angle))
        made:option("angle-unit", "deg")
    end
    for _, name in ipairs {"flats", "darks"} do
        local part = get.map(name)
        if type(part.file) == "string" then
            made:option(name .. "-path", ("%s:%s"):format(part.file,
                type(part.data_path) == "string" and part.data_path or "/entry1/tomo_entry/data"))
        end
    end
end

function METHODS.remove_outlier(made, get)
    local size = get.number "kernel_size"
    made:step("dezinger", {preset = "httomo", size = size and {size, size, size} or nil,
        threshold = get.number "dif"})
    get.ignore "axis"
end

function METHODS.dark_flat_field_correction(made, get)
    made:step("flat_field", {preset = "httomo"})
    for _, name in ipairs {"flats_multiplier", "darks_multiplier"} do
        local factor = get.number(name)
        if factor and factor ~= 1 then
            made:lose(("dark_flat_field_correction: %s = %g"):format(name, factor))
        end
    end
    if get.is "minus_log" then -- of earlier versions
        made:step("minus_log")
    end
    get.ignore("cutoff", "nonnegativity")
end
METHODS.normalize = METHODS.dark_flat_field_correction

function METHODS.find_center_vo(made, get)
    local row = get.number "ind"
    made:step("center", {preset = "httomo", row = row and row + 1 or nil,
        guess = get.number "cor_initialisation_value", radius = get.number "srad",
        step = get.number "step", ratio = get.number "ratio", drop = get.number "drop"})
    local low, high = get.number "smin", get.number "smax"
    if low and high and -low == high then
        made.recipe[#made.recipe].range = high
    elseif low or high then
        made:lose(("find_center_vo: smin = %s, smax = %s"):format(low, high),
            "the option range of the step center is the same on both sides")
    end
    get.ignore("average_radius", "ind")
end

function METHODS.find_center_360(made, get)
    made:step("half_acquisition")
    local row, side = get.number "ind", get.text "side"
    made:step("center", {method = "overlap", window = get.number "win_width", side = side,
        row = row and row + 1 or nil, denoise = get.is "denoise" or nil,
        normalize = get.is "norm" or nil, blend = get.is "use_overlap" or nil})
    get.ignore("ind", "average_radius")
end

function METHODS.sino_360_to_180(made, get)
    local found = false
    for _, entry in ipairs(made.recipe) do
        found = found or entry[1] == "half_acquisition"
    end
    if not found then
        made:step("half_acquisition")
    end
    made:remark("sino_360_to_180 becomes half_acquisition: no frames are joined")
    get.ignore("overlap", "side", "rotation")
end

function METHODS.remove_stripe_based_sorting(made, get)
    made:step("stripes_sorting", {preset = "httomo", size = get.number "size"})
    if get.number "dim" == 2 then
        made:lose "remove_stripe_based_sorting: dim = 2"
    end
end

function METHODS.remove_all_stripe(made, get)
    made:step("stripes_all", {preset = "httomo", snr = get.number "snr",
        large_size = get.number "la_size", small_size = get.number "sm_size"})
    if get.number "dim" == 2 then
        made:lose "remove_all_stripe: dim = 2"
    end
end

function METHODS.paganin_filter(made, get)
    for name, option in pairs {ratio_delta_beta = "delta_beta", distance = "distance"} do
        get.sweep(name, "paganin." .. option)
    end
    get.sweep("energy", "paganin.energy", function(kev) return kev * 1e3 end)
    made:step("paganin", {preset = "httomo", energy = get.number("energy", 1e3),
        distance = get.number "distance", pixel_size = get.number("pixel_size", 1e-6),
        delta_beta = get.number "ratio_delta_beta"})
    get.ignore("calculate_padding_value_method", "pad_x_y")
end

function METHODS.paganin_filter_savu(made, get)
    METHODS.paganin_filter(made, get)
    made.recipe[#made.recipe].preset = "savu"
    get.ignore("pad_x", "pad_y", "pad_method", "increment")
end
METHODS.paganin_filter_savu_legacy = METHODS.paganin_filter_savu

function METHODS.data_resampler(made, get)
    local shape = get.map "newshape"
    made:step("resample", {preset = "httomo", rows = tonumber(shape[1]),
        columns = tonumber(shape[2])})
    get.ignore("axis", "interpolation")
end

-- The center, the size and the mask that all reconstructions have.
local function reconstruction(made, get, step, options)
    get.sweep("center", "center.column")
    local center = get.number "center"
    if center then
        made:step("center", {column = center})
    end
    options.size = get.number "recon_size"
    local radius = get.number "recon_mask_radius"
    if radius then
        options.circle = radius < 1.4 and radius or 0
    end
    made:step(step, options)
    get.ignore("gpu_id", "neglog")
    local pad = get.text "detector_pad"
    if pad and pad ~= "false" then
        made:remark("the padding of the detector (%s) is the step's own here", pad)
    end
end

function METHODS.FBP3d_tomobar(made, get)
    local cutoff = get.number "filter_freq_cutoff"
    reconstruction(made, get, "fbp", {preset = "httomo", cutoff = cutoff and cutoff > 0
        and 1 / cutoff or nil})
end

function METHODS.FBP2d_astra(made, get)
    local filter = (get.text "filter_type" or "ram-lak"):lower()
    reconstruction(made, get, "fbp", {filter = filter})
    get.ignore("filter_parameter", "filter_d")
end

function METHODS.LPRec3d_tomobar(made, get)
    local filter = get.text "filter_type" or "shepp"
    reconstruction(made, get, "fourier", {filter = filter == "shepp" and "shepp-logan"
        or filter == "ramp" and "ram-lak" or filter, cutoff = get.number "filter_freq_cutoff"})
    get.ignore("power_of_2_cropping", "power_of_2_oversampling", "min_mem_usage_filter",
        "min_mem_usage_ifft2")
end

function METHODS.gridrec(made, get)
    reconstruction(made, get, "fourier", {filter = get.text "filter_name" or "parzen"})
end

function METHODS.SIRT3d_tomobar(made, get)
    reconstruction(made, get, "sirt", {preset = "httomo", iterations = get.number "iterations",
        nonnegative = get.is "nonnegativity"})
end

function METHODS.CGLS3d_tomobar(made, get)
    reconstruction(made, get, "cgls", {preset = "httomo", iterations = get.number "iterations"})
    if get.is "nonnegativity" then
        made:lose "CGLS3d_tomobar: nonnegativity"
    end
end

function METHODS.OSEM3d_tomobar(made, get)
    reconstruction(made, get, "osem", {preset = "httomo", iterations = get.number "iterations",
        subsets = get.number "subsets_number"})
    get.ignore "nonnegativity"
end

-- Least squares with total variation; how strong it is differs by the scale of the projector.
local function regularized(made, get, step, method)
    reconstruction(made, get, step, {iterations = get.number "iterations",
        tv_iterations = get.number "regularisation_iterations",
        nonnegative = get.is "nonnegativity"})
    local weight = get.number "regularisation_parameter"
    if weight then
        made:remark("%s: regularisation_parameter = %g is on another scale; give --set %s.lambda=X",
            method, weight, step)
    end
    local kind = get.text "regularisation_type"
    if kind and not kind:find "TV" then
        made:lose(("%s: regularisation_type = %s"):format(method, kind), "total variation is used")
    end
    local fidelity = get.text "data_fidelity"
    if fidelity and fidelity ~= "LS" then
        made:lose(("%s: data_fidelity = %s"):format(method, fidelity))
    end
    get.ignore("subsets_number", "regularisation_half_precision", "warm_start", "ADMM_rho_const",
        "ADMM_relax_par")
end

function METHODS.FISTA3d_tomobar(made, get)
    regularized(made, get, "fista", "FISTA3d_tomobar")
end

function METHODS.ADMM3d_tomobar(made, get)
    regularized(made, get, "admm_tv", "ADMM3d_tomobar")
end

function METHODS.rescale_to_int(made, get)
    local low, high = get.number "perc_range_min", get.number "perc_range_max"
    local bits = get.number "bits" or 8
    if bits ~= 8 and bits ~= 16 then
        made:lose(("rescale_to_int: bits = %s"):format(bits), "uint16 is used")
        bits = 16
    end
    made:step("rescale", {preset = "httomo", dtype = ("uint%d"):format(bits),
        percent_of_range = low and high and {low, high} or nil})
    get.ignore "glob_stats"
end

function METHODS.save_to_images(made, get)
    made:lose("save_to_images", "-o RESULT.tif writes a TIFF stack")
    get.ignore("subfolder_name", "axis", "file_format", "asynchronous", "perc_range_min",
        "perc_range_max", "bits", "jpeg_quality", "offset", "watermark_vals")
end

function METHODS.save_intermediate_data(made, get)
    made:lose("save_intermediate_data", "--snapshots FOLDER makes pictures after every step")
    get.ignore("compression", "frames_per_chunk", "path_to_file", "path_from_root")
end

-- Methods that are a step with other names: {step, options that it has always, number, text, is
-- (the parameter by option), ignored (parameters that change nothing here)}; or no step.
local PLAIN <const> = {
    minus_log = {"minus_log"},
    find_center_pc = {"center", {method = "phase_correlation"},
        ignored = {"proj1", "proj2", "tol", "rotc_guess"}},
    remove_stripe_ti = {"stripes_titarenko", HTTOMO, number = {beta = "beta"}},
    remove_stripe_fw = {"stripes_wavelet", HTTOMO, number = {sigma = "sigma", level = "level"},
        text = {wavelet = "wname"}},
    raven_filter = {"stripes_raven", HTTOMO, number = {cutoff = "uvalue", order = "nvalue",
        rows = "vvalue", pad = "pad_x"}, ignored = {"pad_y", "pad_method"}},
    distortion_correction_proj_discorpy = {"distortion", HTTOMO, number = {order = "order"},
        text = {file = "metadata_path"}, ignored = {"mode", "shift_xy", "step_xy"}},
    average_projection_frames = {"average", HTTOMO, number = {frames = "projections_to_average"},
        ignored = {"axis"}},
    seam_blend_stitched_data = {"blend_seam", HTTOMO,
        number = {seam = "seam_position", overlap = "overlap"}},
    median_filter = {"median", number = {size = "kernel_size"}, ignored = {"axis"}},
    total_variation_PD = {"total_variation", HTTOMO,
        number = {lambda = "regularisation_parameter", iterations = "iterations"},
        is = {nonnegative = "nonneg"}, ignored = {"isotropic", "lipschitz_const",
        "half_precision"}},
    total_variation_ROF = {"total_variation", {preset = "httomo_rof"},
        number = {lambda = "regularisation_parameter", iterations = "iterations",
        step = "time_marching_parameter"}, ignored = {"half_precision"}},
    recon_mask = {"circular_mask", HTTOMO, number = {radius = "radius"}},
    calculate_stats = {},
    data_checker = {ignored = {"infsnans_correct", "zeros_warning", "data_to_method_name",
        "verbosity"}},
}
for method, plain in pairs(PLAIN) do
    METHODS[method] = function(made, get)
        local options = tables.merged(plain[2])
        for _, kind in ipairs {"number", "text", "is"} do
            for option, name in pairs(plain[kind] or {}) do
                options[option] = get[kind](name) or nil
            end
        end
        if plain[1] then
            made:step(plain[1], options)
        end
        get.ignore(table.unpack(plain.ignored or {}))
    end
end

-- ---- the list ----

local function add_method(made, item, where, number)
    if type(item) ~= "table" or item.tag or type(item.method) ~= "string" then
        imported.refuse(where, 1, "item %d of the list is no method: it has no key 'method'",
            number)
    end
    local parameters = item.parameters
    if parameters == nil or parameters == NULL then
        parameters = {}
    elseif type(parameters) ~= "table" or parameters.tag then
        imported.refuse(where, 1, "the parameters of method '%.40s' are no mapping", item.method)
    end
    local add = rawget(METHODS, item.method)
    if not add then
        local near = step_search.find(item.method, 8)
        made:lose("method " .. item.method, near and ("the step %s may do it"):format(near))
        return
    end
    local get = reader(made, item.method, parameters)
    add(made, get)
    if item.save_result == true then
        made:lose(item.method .. ": save_result",
            "--snapshots FOLDER makes pictures after every step")
    end
    get.finish()
end

-- HTTomo corrects the frames that it searches the axis in by itself, so its lists search before the
-- flat field is applied, too. Here the search is behind it.
local function search_behind_flat_field(made)
    local at = {}
    for i, step in ipairs(made.recipe) do
        at[step[1]] = at[step[1]] or i
    end
    if at.center and at.flat_field and at.center < at.flat_field
        and not made.recipe[at.center].column then
        local step = table.remove(made.recipe, at.center)
        table.insert(made.recipe, at.flat_field, step)
        made:remark("the axis is searched in corrected frames, as HTTomo does by itself: center is "
            .. "behind flat_field")
    end
end

--- A process list of HTTomo as `imported`. Errors: argument, with the line; io.
function from_httomo.read(path)
    local list = yaml_text.parse(imported.read(path), path)
    if type(list) ~= "table" or #list == 0 then
        imported.refuse(path, 1, "this is no process list of HTTomo: it is a list of methods")
    end
    local made = imported.new "HTTomo"
    for number, item in ipairs(list) do
        add_method(made, item, path, number)
    end
    search_behind_flat_field(made)
    return made
end

return from_httomo
