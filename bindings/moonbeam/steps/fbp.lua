local declared = require "moonbeam.internal.declared"
local fbp = require "moonbeam.tomo.fbp"
local reconstruction = require "moonbeam.pipeline.reconstruction"

return reconstruction.step {
    name = "fbp",
    summary = "Slices by filtered back-projection.",
    doc = "Takes less memory than the direct Fourier method, and smooths fine detail and noise a "
        .. "little. It alone does half acquisitions and axes that lean. The slices are "
        .. "attenuation per meter where the pixel size is known, else per pixel.",
    reference = "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging (1988), ch. "
        .. "3.3",
    options = declared.options(reconstruction.options,
        {"mode", "choice", "in_place needs less memory than fast and is slower; auto: fast if it "
            .. "fits", choices = {"auto", "fast", "in_place"}, default = "auto"}),
    ways = function(options, step, device)
        if options.mode ~= "auto" then
            return {{mode = options.mode}}
        end
        local same = fbp.same_in_place(device, step.shape_before[1], step.shape_before[3], options)
        return {{mode = "fast"}, same and {mode = "in_place"} or nil}
    end,
}
