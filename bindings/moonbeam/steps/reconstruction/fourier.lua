local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local reconstruction = require "moonbeam.pipeline.reconstruction"

return reconstruction.step {
    name = "fourier",
    summary = "Slices by the direct Fourier method: sharp and fast.",
    doc = "Keeps the highest frequencies, and with them more noise than filtered back-projection. "
        .. "Slices are made in pairs. The slices are attenuation per meter if the pixel size is "
        .. "known, otherwise per pixel.",
    reference = "mb.fourier_reconstruct",
    options = declared.options(reconstruction.options,
        declared.from("fourier_reconstruct", "pairs")),
    check = function(_, _, g)
        if g.half_acquisition then
            fail("argument", nil, nil, "it does not support half acquisition; use step fbp instead")
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "it does not support a leaning axis (step tilt); use step "
                .. "fbp instead")
        end
    end,
}
