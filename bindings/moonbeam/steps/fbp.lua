local declared = require "moonbeam.internal.declared"
local reconstruction = require "moonbeam.pipeline.reconstruction"

return reconstruction.step {
    name = "fbp",
    summary = "Slices by filtered back-projection.",
    doc = "Takes less memory than the direct Fourier method, and smooths fine detail and noise a "
        .. "little. Only this step supports half acquisitions and leaning axes. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel.",
    -- Other packages differ in the window.
    presets = {nabu = {filter = "ram-lak"}, algotom = {filter = "hann"}},
    reference = "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging (1988), ch. "
        .. "3.3",
    options = declared.options(reconstruction.options,
        {"mode", "choice", "in_place needs less memory than fast and is slower; auto: fast if it "
            .. "fits", choices = {"auto", "fast", "in_place"}, default = "auto"}),
}
