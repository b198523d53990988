-- Help from the descriptors: text for the prompt, Markdown for the reference page.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local op = require "moonbeam.op"

local help = {}

-- What is not an operator, by topic. Each line is a call and what it does.
local topics = {
    array = {
        "mb.array(values [, options])", "from nested tables or a number; options: dtype, device",
        "mb.empty(shape), mb.zeros, mb.ones", "shape is a table of extents; options as above",
        "mb.full(shape, value)", "every element equal to value",
        "mb.random(shape, {seed =, low =, high =})", "the same numbers on every device",
        "mb.arange(first, last, step)", "last is included where a step lands on it",
        "mb.linspace(first, last, n)", "n values, both ends included",
        "mb.from_string(bytes, shape)", "raw elements, last axis fastest",
        "a.shape, a.rank, a.dtype, a.bytes, a.device", "also strides, contiguous, released",
        "a[i], #a", "view of element i of axis 1; extent of axis 1",
        "a:view(range, ...)", "integer, mb.all, {first, last [, step]}; negatives from the end",
        "a:permute(...), a:transpose(), a:reshape(...)", "also broadcast_to, reinterpret",
        "a:item(i, j, ...), a:to_table(), a:to_string()", "read elements (these wait)",
        "a:copy(), a:dense(), a:cast(dtype), a:to(device)", "copies",
        "a:fill(value)", "in place",
        "a:sum([axis]), min, max, mean, norm", "a number, or an array without that axis",
        "a + b, -, *, /, ^, -a", "elementwise, with numbers and broadcasting",
        "for i, s in a:slices() do", "views along axis 1, released as the loop goes on",
        "a:release(), local a <close> = ...", "frees the memory at once",
    },
    device = {
        "mb.device(id [, {budget =}])", "\"host\", \"cuda:0\"; budget in bytes or \"8G\", \"8Gi\"",
        "mb.device(\"planned:h200\"), mb.device.planned()", "a GPU that is not here: dry runs, estimates and plans only, from a record",
        "mb.devices(), mb.default_device([id])", "all ids; the one used by default",
        "d.id, d.name, d.kind, d.total", "properties; also threads, capability, planned, basis",
        "d:memory(), d:overhead()", "free and total bytes; bytes held outside the pool",
        "d:budget([bytes])", "the limit on live bytes; sets it when given",
        "d:sync()", "waits for queued work",
    },
    pool = {
        "mb.pool.stats([device])", "live, peak, budget, largest hole, counts",
        "mb.pool.smallest([device])", "peak live bytes, memory and fixed range that the traced requests need",
        "mb.pool.peak(fn, device, ...)", "measured peak of fn(...) above what was live",
        "mb.pool.blocks([device])", "live blocks with the lines that made them",
        "mb.mem()", "the arrays there are: names, shapes, bytes, ages, lines",
        "mb.pool.map([device])", "a picture of the address range, as text",
        "mb.pool.trace{format =, file =}", "the latest events; as csv (RMM's replay), json or chrome (a timeline)",
        "mb.pool.usage([by [, device]])", "what is live, by owner (the lines that made it), tag or end",
        "mb.pool.leaks([device])", "what is live after a collection; moonbeam --leaks SCRIPT fails when something is",
        "local _ <close> = mb.pool.tag(name)", "names what the next blocks are for",
        "mb.pool.debug(on [, device]), damage", "guard words and fill patterns; which guards were written to",
        "mb.pool.accounting([device])", "lines whose sum is what the system reports as used",
        "mb.pool.budget([bytes [, device]])", "the limit on live bytes; sets it when given",
        "mb.pool.activate(bytes [, device]), active, shutdown", "one allocation, many uses; shutdown reports leaks",
        "mb.pool.alloc(bytes), alloc_pitched(width, height, {dtype =})",
        "blocks by hand, rows at a pitch that the filters take; mb.pool.free(block) is strict",
        "mb.pool.ceil_1d(bytes), ceil_2d(width_bytes, height)", "what such blocks take",
        "mb.pool.trim([device])", "gives memory of holes back",
        "mb.collect()", "frees what Lua no longer refers to",
    },
    plan = {
        "mb.plan.peak(fn, device, ...)", "peak of fn(device, ...), which takes no memory",
        "mb.plan.peaks(fn, {devices}, ...)",
            "the same of several devices, the host and pinned memory",
        "mb.plan.max_count(fn, {device =, available =, limit =})", "the largest n that fits",
        "mb.plan.max_slices(fn, make_input, available)", "the largest n for which fn(make_input(n, device)) fits",
        "mb.plan.required_memory(count, {shape =, ...})", "peaks of a reconstruction: all, projection, sinogram",
        "mb.plan.max_chunk{shape =, available =, ...}", "how many rows or frames of it fit",
        "mb.op.estimate(name, inputs, params)", "result, scratch and peak bytes of one operator",
        "mb.op.max_slices(name, {pattern =, dims =, available =})", "how many slices an operator can take",
        "mb.plan(fn, ...) or mb.plan(\"expression\")", "the same as mb.dry_run, also for text",
        "mb.dry_run(fn, ...)", "the ledger of fn(...) without running it: a row per step",
        "mb.ledger(fn, ...)", "runs fn(...): its ledger, then its results",
        "l:print(), l:to_json(), l:rows(), l.peak, l:diff(other)", "what can be done with a ledger; == compares rows",
        "mb.bound(bound, fn, ...)", "fn(...); in a dry run, which has no values, the bound",
        "v:min() == 0 in a dry run or plan",
            "false without a word, whatever the number; other comparisons are errors: mb.bound",
        "moonbeam --plan script.lua, --ledger script.lua", "whole scripts: planned; planned, run and compared",
        "moonbeam --plan --device planned:h200 script.lua", "for a GPU that is not here; the ledger says what it rests on",
    },
    deconvolution = {
        "mb.convolution(image, psf [, {mode =, boundary =, center =, consume =}])", "by FFT, 8 bytes per voxel; .correlate is its adjoint",
        "mb.deconv.richardson_lucy(image, psf [, {iterations =, acceleration =}])", "heavy_ball, biggs_andrews; total_variation, weights",
        "mb.deconv.gradient_consensus(image, psf [, {seed =}])", "stops by itself where two halves of the photons disagree",
        "mb.deconv.landweber, wiener, tikhonov", "least squares with positivity; one transform each way",
        "mb.psf.gaussian, born_wolf, gibson_lanni", "models; lengths in one unit",
        "mb.psf.center, normalise, background, subtract_background, crop, recentre, resample",
            "what measured PSFs need",
        "mb.phantom.spheres({nz, ny, nx} [, {count =, seed =}])", "a volume to try things on; mb.poisson adds photon noise",
        "mb.metrics.rmse, psnr, ssim, ncc, i_divergence", "(image, reference): a number",
        "mb.box_filter, gaussian_filter, adaptive_threshold", "operators: mb.help(\"box_filter\")",
        "mb.fft.rfftn, irfftn, fftn, ifftn, fftshift, ifftshift", "over named axes, as numpy.fft",
    },
    tomography = {
        "mb.scan.open(file [, {angle_unit =, ...}])", "Data Exchange or NXtomo: the scan, or nil and an error",
        "scan:projections([rows [, {angles =, device =}]]), flats, darks", "raw frames (angle, row, column); rows {first, last}",
        "scan.angles, scan.rows, scan.cols, scan.n_angles", "angles in radians; also pixel_size (m), warnings, scan:describe()",
        "mb.tomo.line_integrals(raw [, {flats =, darks =}])", "flat field and -ln; and counts of what was mended",
        "mb.tomo.find_center(projections, angles)",
            "the rotation axis, a 0-based column, and how it came about",
        "mb.tomo.reconstruct(sinograms, angles [, {center =}])", "slices (row, y, x), by the method that suits (choose_method)",
        "mb.tomo.fbp(sinograms, angles [, {filter =, mode =}])", "filtered back-projection; memory modes, half acquisition, leaning axes",
        "mb.fourier_reconstruct, ramp_filter, backproject, project", "the operators: mb.help(\"backproject\")",
        "mb.tomo.angles(count [, span])", "angles equally spaced, the end left out",
        "mb.recon.plan(scan [, options]), recon.run(scan, plan, sink)", "a whole scan in chunks that fit the budget",
        "mb.phantom.shepp_logan, mb.ellipsoid_projections", "analytic scans, as scripts/simulate.lua",
    },
    files = {
        "mb.h5.open(file), mb.h5.create(file)", "HDF5: read, write, walk; a created file gets its name when it is finished",
        "mb.result.create(file, {shape =})", "a volume slice by slice, with its provenance, for silx and h5web",
        "mb.images.read(file), mb.images.write(file, array)",
            "whole images: .tif, .npy, .h5; overwrite = true replaces",
        "mb.images.open(file), mb.volumes", "images larger than memory, block by block",
        "mb.npy.read, write, mb.tiff", "one format each",
        "mb.view.save(png, slice), mb.view.projections(png, volume)", "pictures",
    },
    ["fft sizes"] = {
        "mb.fft.good_size(n [, {device =, axis =, explain =}])", "the best size >= n; on GPUs by measured times and work areas",
        "mb.fft.good_grid(least [, {device =, given =}])", "the same for the axes of a grid together",
        "mb.fft.work(kind, dims, {batch =, in_place =, device =})", "bytes of a transform's work area, and who says so",
        "mb.fft.library([device]), mb.fft.plans(), mb.fft.drop()", "the library; what its plan cache holds; empties it",
        "moonbeam scripts/record_fft_sizes.lua", "records a GPU, so that it can be planned for where it is not",
    },
}

local function default_text(arg)
    local default = arg.default
    if default == nil then
        return "not given"
    elseif type(default) == "string" then
        return '"' .. default .. '"'
    elseif math.type(default) == "float" then
        return ("%.10g"):format(default)
    end
    return tostring(default)
end

-- "array of f32 or f64, 2 to 3 axes"
local function type_text(arg)
    if arg.array then
        local types = #arg.dtypes == 8 and "any dtype" or table.concat(arg.dtypes, "/")
        local axes = arg.rank_min == arg.rank_max and ("%d axes"):format(arg.rank_min)
            or ("%d to %d axes"):format(arg.rank_min, arg.rank_max)
        return ("array, %s, %s"):format(types, axes)
    end
    local text = arg.kind
    if arg.choices then
        text = "one of " .. table.concat(arg.choices, ", ")
    elseif arg.kind == "vector" then
        text = "numbers"
    end
    if arg.min then
        text = ("%s in [%.10g, %.10g]"):format(text, arg.min, arg.max)
    end
    return arg.unit and ("%s (%s)"):format(text, arg.unit) or text
end

local function roles(descriptor)
    local required, options, results = {}, {}, {}
    for _, arg in ipairs(descriptor.args) do
        if arg.kind == "out" then
            results[#results + 1] = arg
        else
            if arg.kind == "inout" then
                results[#results + 1] = arg
            end
            local list = arg.required and required or options
            list[#list + 1] = arg
        end
    end
    return required, options, results
end

local function names(list)
    local result = {}
    for i, arg in ipairs(list) do
        result[i] = arg.name
    end
    return table.concat(result, ", ")
end

-- "result = mb.median(a, {size =, ...})"
function help.signature(descriptor)
    local required, options, results = roles(descriptor)
    local call = names(required)
    if #options > 0 then
        local keys = {}
        for i, arg in ipairs(options) do
            keys[i] = arg.name .. " ="
        end
        local comma = call ~= "" and " [, " or "["
        call = ("%s%s{%s}]"):format(call, comma, table.concat(keys, ", "))
    end
    return ("%s = mb.%s(%s)"):format(names(results), descriptor.name, call)
end

local function split_text(descriptor)
    local parts = {}
    for i, split in ipairs(descriptor.split) do
        parts[i] = ("axis %d%s"):format(split.axis, split.halo and " with a halo" or "")
    end
    local sum = #parts > 0 and descriptor.split[1].combine == "sum"
        and " (results but the first are summed)" or ""
    return #parts > 0 and table.concat(parts, "; ") .. sum or "not at all"
end

local strides_text = {
    contiguous = "must be dense",
    rows = "need a dense last axis",
    any = "may be any views",
}

-- What calling an operator may raise: the driver checks all of them alike.
local ERRORS = "Errors: argument (an unknown name, a value out of its range or not finite), dtype, shape (extents that do not agree), "
    .. "device (arrays of several devices), budget (mb.op.estimate says before what is needed)."

local function operator_text(name)
    local d = op.describe(name)
    local lines = { help.signature(d), "", d.summary }
    local function add(...)
        lines[#lines + 1] = string.format(...)
    end
    if d.doc then
        add("%s", d.doc)
    end
    local required, options, results = roles(d)
    local function add_args(title, list, with_default)
        if #list == 0 then
            return
        end
        add("")
        add("%s", title)
        for _, arg in ipairs(list) do
            add("  %-12s %s", arg.name, arg.doc or "")
            local default = with_default and not arg.array and "; default " .. default_text(arg)
                or ""
            add("  %-12s   %s%s", "", type_text(arg), default)
        end
    end
    add_args("arguments", required, false)
    add_args("options", options, true)
    add_args("results", results, false)
    add("")
    add("Arrays %s. Can be cut: %s.", strides_text[d.strides], split_text(d))
    if d.host_only then
        add("Runs on the host alone: it has no CUDA kernel.")
    end
    if #d.alias > 0 then
        add("out may be %s.", table.concat(d.alias, " or "))
    end
    add("%s", ERRORS)
    if d.reference then
        add("Reference: %s", d.reference)
    end
    return table.concat(lines, "\n")
end

local function topic_text(name)
    local lines = {}
    local topic = topics[name]
    for i = 1, #topic, 2 do
        lines[#lines + 1] = topic[i]
        lines[#lines + 1] = "    " .. topic[i + 1]
    end
    return table.concat(lines, "\n")
end

local function sorted_keys(t)
    local keys = {}
    for key in pairs(t) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return keys
end

local function by_category()
    local categories = {}
    for _, name in ipairs(op.list()) do
        local d = op.describe(name)
        local category = d.category or "other"
        categories[category] = categories[category] or {}
        table.insert(categories[category], d)
    end
    return categories
end

local function overview()
    local lines = { "Moonbeam " .. core.version .. ". Topics: help(\"" ..
        table.concat(sorted_keys(topics), "\"), help(\"") .. "\").", "Functions of a module: help(\"tomo\"), of a name: " ..
        "help(\"tomo.fbp\").", "Operators, by mb.<name>:" }
    local categories = by_category()
    local width = 0
    for _, name in ipairs(op.list()) do
        width = math.max(width, #name)
    end
    for _, category in ipairs(sorted_keys(categories)) do
        lines[#lines + 1] = category
        for _, d in ipairs(categories[category]) do
            lines[#lines + 1] = ("  %-" .. width .. "s  %s"):format(d.name, d.summary)
        end
    end
    return table.concat(lines, "\n")
end

-- The comment above a Lua function's definition, a list of lines, and the definition's first line;
-- nil where there is none.
local function comment_of(f)
    local info = debug.getinfo(require("moonbeam.internal.arguments").original(f), "S")
    local name = info.source:match("^@(.*)")
    local file = name and io.open(name)
    if not file then
        return nil
    end
    local comment, definition = {}, nil
    local number = 0
    for line in file:lines() do
        number = number + 1
        if number == info.linedefined then
            definition = line
            break
        elseif line:match("^%s*%-%-") then
            comment[#comment + 1] = line:gsub("^%s*%-%-+ ?", "")
        else
            comment = {}
        end
    end
    file:close()
    return definition and comment, definition, info
end

-- What is said above a Lua function's definition. `name` is how it was asked for; without it, the
-- definition's own.
local function function_text(f, name)
    local comment, definition, info = comment_of(f)
    if not comment then
        return nil
    end
    local parameters = definition:match("%b()")
    table.insert(comment, 1, name and parameters and ("mb.%s%s"):format(name, parameters) or (definition:gsub("^%s+", "")))
    comment[#comment + 1] = ("(%s:%d)"):format(info.short_src, info.linedefined)
    return table.concat(comment, "\n")
end

-- The first sentence of a function's comment, as far as its first line has it.
local function summary_of(f)
    local name = op.names[f]
    local text = name and op.describe(name).summary or (comment_of(f) or {})[1]
    return text and (text:match("^(.-%.) ") or text)
end

-- A module's functions and values.
local function table_text(t)
    local lines, width = {}, 0
    for key in pairs(t) do
        width = math.max(width, #tostring(key))
    end
    for _, key in ipairs(sorted_keys(t)) do
        local value = t[key]
        local text = type(value) == "function" and summary_of(value) or type(value) == "number" and tostring(value) or type(value)
        lines[#lines + 1] = ("  %-" .. width .. "s  %s"):format(tostring(key), text)
    end
    return table.concat(lines, "\n")
end

local function string_text(subject)
    local name = subject:gsub("^mb%.", "")
    if topics[name] then
        return topic_text(name)
    elseif op.functions[name] then
        return operator_text(name)
    end
    -- "tomo.fbp"
    local value = require "moonbeam"
    for part in name:gmatch("[^.]+") do
        if type(value) ~= "table" then
            value = nil
            break
        end
        local ok, member = pcall(function()
            return value[part]
        end)
        value = ok and member or nil
    end
    if type(value) == "function" then
        return help.text(value, name)
    elseif value ~= nil and type(value) ~= "string" then
        return help.text(value)
    end
    local candidates = op.list()
    for _, topic in ipairs(sorted_keys(topics)) do
        candidates[#candidates + 1] = topic
    end
    local nearest = core.error.nearest(name, candidates)
    fail("argument", "help", nil, "there is no help on '%s'%s", name,
        nearest and ("; did you mean '%s'?"):format(nearest) or "")
end

-- Help on a name, a function, a module or an array, as text; an overview without an argument.
-- `asked`: how a function was named.
function help.text(subject, asked)
    if subject == nil then
        return overview()
    elseif type(subject) == "string" then
        return string_text(subject)
    elseif type(subject) == "function" then
        local name = op.names[subject]
        return name and operator_text(name) or function_text(subject, asked)
            or "a function written in C, without help of its own"
    elseif subject == require "moonbeam.array" then
        return topic_text("array")
    elseif type(subject) == "table" then
        return table_text(subject)
    elseif type(subject) == "userdata" then
        local kind = (debug.getmetatable(subject) or {}).__name
        local topic = kind and kind:match("^moonbeam%.(%w+)$")
        return tostring(subject) .. (topics[topic] and "\n" .. topic_text(topic) or "")
    end
    return tostring(subject)
end

function help.print(subject)
    print(help.text(subject))
end

local function escape(text)
    return (tostring(text):gsub("|", "\\|"):gsub("\n", " "))
end

-- The reference page of all operators, in Markdown.
function help.markdown()
    local lines = { "# Operators", "", "Written from the operator descriptors by `mb.help`.", "", ERRORS, "" }
    local function add(...)
        lines[#lines + 1] = string.format(...)
    end
    local categories = by_category()
    for _, category in ipairs(sorted_keys(categories)) do
        add("## %s", category)
        add("")
        for _, d in ipairs(categories[category]) do
            add("### %s", d.name)
            add("")
            add("    %s", help.signature(d))
            add("")
            add("%s", d.summary)
            for line in ((d.doc or "") .. "\n"):gmatch("(.-)\n") do
                if line ~= "" then
                    add("")
                    add("%s", line)
                end
            end
            add("")
            add("| argument | type | default | meaning |")
            add("|---|---|---|---|")
            for _, arg in ipairs(d.args) do
                local default = arg.kind == "out" and "result" or arg.required and "required"
                    or default_text(arg)
                add("| `%s` | %s | %s | %s |", arg.name, escape(type_text(arg)), escape(default),
                    escape(arg.doc or ""))
            end
            add("")
            add("Arrays %s. Can be cut: %s.", strides_text[d.strides], split_text(d))
            if d.reference then
                add("Reference: %s", d.reference)
            end
            add("")
        end
    end
    return table.concat(lines, "\n")
end

return help
