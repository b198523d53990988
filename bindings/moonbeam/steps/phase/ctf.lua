local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local phase_optics = require "moonbeam.tomo.phase_optics"

-- What the operator takes for frames of so many rows and columns.
local function parameters(options, g, rows, columns)
    local fresnel = phase_optics.fresnel(options, g)
    return fresnel, {method = "ctf", delta_beta = options.delta_beta, low = options.low,
        high = options.high, padding = options.padding, value = options.value,
        padded = phase_optics.padded(options, fresnel, rows, columns)}
end

return {
    name = "ctf",
    summary = "Phase retrieval from one distance by the contrast transfer function.",
    doc = "With p = pi * wavelength * distance * q^2, q in cycles per meter, and s = sin p + cos "
        .. "p / delta_beta, filters each frame of transmission less 1 by s / (2 s^2 + e). The "
        .. "result is the phase shift in rad, negative behind matter: no logarithm follows. e is "
        .. "low below the first maximum of s along the rows and high above it. For an object that "
        .. "does not absorb, give a large delta_beta, such as 1e9. A frame is mirrored around "
        .. "its edge pixels. A value that is not finite makes its whole frame NaN.",
    reference = "B. Yu et al., Opt. Express 26, 11110 (2018)",
    presets = {nabu = {size = "double"}},
    options = declared.options(
        {"padding", "choice", "what is around a frame",
            choices = {"edge", "reflect", "symmetric", "constant", "none"}, default = "reflect"},
        phase_optics.options, declared.from("phase_filter", "low", "high")),
    takes = {quantity = "transmission", layout = "frames"},
    gives = {quantity = "phase", layout = "same"},
    cuts = {"frames"},
    prepare = function(options, g)
        local own = phase_optics.prepared(options, g, not options.delta_beta
            and {{"delta_beta", "delta / beta of the material"}} or nil)
        if not options.delta_beta then
            fail("argument", nil, "delta_beta", "delta_beta is missing; give delta_beta = ..., "
                .. "delta / beta of the material, 1e9 if it does not absorb")
        end
        return own
    end,
    check = function(options, shape, g)
        phase_optics.check(options, shape, g, parameters)
    end,
    run = function(block, options)
        local _, rows, columns = table.unpack(block.data.shape)
        local fresnel, own = parameters(options, block.geometry, rows, columns)
        own.out = block.data
        mb.phase_filter(block.data, fresnel, own)
    end,
}
