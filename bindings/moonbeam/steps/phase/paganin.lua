local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local phase_optics = require "moonbeam.tomo.phase_optics"

-- The parameters of the operator for frames of so many rows and columns.
local function parameters(options, g, rows, columns)
    local fresnel = phase_optics.fresnel(options, g)
    local own = {delta_beta = options.delta_beta * options.strength, method = options.method,
        padding = options.padding, value = options.value, log = options.log, min = options.min,
        padded = phase_optics.padded(options, fresnel, rows, columns)}
    if options.method == "generalized" and options.width then
        local scale = (options.pixel_size / options.width) ^ 2
        fresnel = {fresnel[1] * scale, fresnel[2] * scale}
    end
    return fresnel, own
end

-- Rows above and below, from which the filter takes less than the tolerance. Its kernel along the
-- rows decays by exp(-y / length). That of Paganin has a second part, because its response ends at
-- the highest frequency at a slope: the kernel swings with an amplitude that falls with y^2.
local function halo_of(options, g)
    local a = phase_optics.fresnel(options, g)[1] * options.delta_beta * options.strength
        / (4 * math.pi)
    local reach = math.sqrt(a) * math.log(2 / options.tolerance)
    if options.method == "generalized" then
        a = options.width and a * (options.pixel_size / options.width) ^ 2 or a
        reach = math.log(2 / options.tolerance) / math.log(1 + (1 + math.sqrt(1 + 4 * a)) / (2 * a))
    else
        reach = math.max(reach, 8 * a / (1 + a * math.pi ^ 2) ^ 2 / options.tolerance)
    end
    return math.ceil(reach)
end

local function prepare(options, g)
    local own = phase_optics.prepared(options, g, not (options.alpha or options.delta_beta)
        and {{"delta_beta", "delta / beta of the material"}} or nil)
    if options.alpha and options.delta_beta then
        fail("argument", nil, "alpha", "alpha and delta_beta are both given; remove one")
    elseif not (options.alpha or options.delta_beta) then
        fail("argument", nil, "delta_beta", "delta_beta is missing; give delta_beta = ..., delta / "
            .. "beta of the material, or alpha")
    elseif options.width and options.method ~= "generalized" then
        fail("argument", nil, "width", "width belongs to method = \"generalized\"; remove it")
    elseif options.extent == "rows" and options.method == "farago" then
        fail("argument", nil, "extent", "the filter of Farago has no finite extent along rows; "
            .. "give extent = \"frames\"")
    end
    own.delta_beta = options.delta_beta or 1 / (4 * math.pi ^ 2 * options.alpha)
    own.alpha = nil
    if options.extent == "rows" and not options.height then
        own.height = math.max(64, (2 * halo_of(own, g) + 15) // 16 * 16)
    end
    return own
end

-- Filters each packet of rows for itself, with the rows beside it.
local function run_rows(block, options)
    local height, halo = options.height, halo_of(options, block.geometry)
    local _, rows, columns = table.unpack(block.step.shape_before)
    local first = (block.wanted[1] - 1) // height * height + 1
    local last = math.min(rows, (block.wanted[2] + height - 1) // height * height)
    local result = mb.empty({block.data.shape[1], last - first + 1, columns},
        {device = block.device})
    local _ <close> = on_error(function() result:release() end)
    for from = first, last, height do
        local to = math.min(from + height - 1, rows)
        local low, high = math.max(1, from - halo), math.min(rows, to + halo)
        local fresnel, own = parameters(options, block.geometry, high - low + 1, columns)
        local part <close> = block:part(low, high)
        local filtered <close> = mb.phase_filter(part, fresnel, own)
        local kept <close> = filtered:view(mb.all, {from - low + 1, to - low + 1}, mb.all)
        local there <close> = result:view(mb.all, {from - first + 1, to - first + 1}, mb.all)
        mb.convert(kept, "f32", {out = there})
    end
    block:replace(result)
    block.rows = {first, last}
end

return {
    name = "paganin",
    summary = "Phase retrieval from one distance for an object of one material.",
    doc = "Filters each frame of transmission by 1 / (1 + delta_beta * pi * wavelength * distance "
        .. "* q^2), q in cycles per meter, and takes -ln of the result, which is proportional to "
        .. "the thickness: line integrals of attenuation, with the phase contrast taken out. "
        .. "Method generalized is more accurate for features of a few pixels; width is its "
        .. "length, by default a pixel. farago takes the diffraction into account. Without log, "
        .. "put minus_log after this step. strength is a factor on delta_beta: other packages use "
        .. "other scalings, see the presets. Around a frame its edge values repeat. A value that "
        .. "is not finite makes its whole frame NaN.\n"
        .. "With extent = \"frames\", whole frames are filtered; they go through a store if "
        .. "later steps work on rows. With extent = \"rows\", height rows at a time are "
        .. "filtered together with as many neighbors as make the transmission equal within "
        .. "tolerance, relative to the range of its values; no store is needed. The result then "
        .. "depends on height, within the tolerance.",
    reference = "D. Paganin et al., J. Microsc. 206, 33 (2002); D. M. Paganin et al., J. Opt. 22, "
        .. "115607 (2020)",
    presets = {
        nabu = {delta_beta = 250, log = false, size = "double"},
        -- The wave number goes to twice the highest frequency.
        httomo = {delta_beta = 250, strength = 4, size = "power"},
        savu = {delta_beta = 250, size = "power"},
        tomocupy = {alpha = 1e-3, log = false, size = "fresnel"},
        cil = {padding = "none"},
    },
    options = declared.options(phase_optics.options,
        {"alpha", "number", "tomocupy's and TomoPy's parameter, instead of delta_beta: 1 / (4 "
            .. "pi^2 delta_beta)", above = 0, max = 1e6},
        {"strength", "number", "factor on delta_beta", above = 0, max = 1e6, default = 1},
        {"method", "choice", "the filter", choices = {"paganin", "generalized", "farago"},
            default = "paganin"},
        {"width", "number", "generalized: transverse length W", unit = "m", above = 0, max = 0.1,
            usual = "the pixel size"},
        declared.from("phase_filter", {"log", default = true}, "min"),
        {"extent", "choice", "what is filtered together", choices = {"frames", "rows"},
            default = "frames"},
        {"height", "count", "rows: how many are filtered together", min = 1, max = 1 << 20,
            usual = "at least 64, and twice the neighbors"},
        {"tolerance", "number", "rows: how exact the filter is", min = 1e-7, max = 0.1,
            default = 1e-4}),
    takes = {quantity = "transmission", layout = "frames"},
    gives = function(options)
        return {quantity = options.log and "phase" or "transmission", layout = "same"}
    end,
    cuts = function(options)
        return {options.extent}
    end,
    prepare = prepare,
    check = function(options, shape, g)
        phase_optics.check(options, shape, g, parameters)
    end,
    packet = function(options)
        return options.extent == "rows" and options.height or 1
    end,
    needs = function(options, first, last, step, cut)
        if cut == "frames" then
            return first, last
        end
        local halo = halo_of(options, step.geometry_before)
        return first - halo, last + halo
    end,
    run = function(block, options)
        if options.extent == "rows" then
            run_rows(block, options)
        else
            local _, rows, columns = table.unpack(block.data.shape)
            local fresnel, own = parameters(options, block.geometry, rows, columns)
            own.out = block.data
            mb.phase_filter(block.data, fresnel, own)
        end
    end,
}
