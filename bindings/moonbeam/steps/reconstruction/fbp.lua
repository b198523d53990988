local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local reconstruction = require "moonbeam.pipeline.reconstruction"

return reconstruction.step {
    name = "fbp",
    summary = "Slices by filtered back-projection.",
    doc = "Takes less memory than the direct Fourier method, and smooths fine detail and noise a "
        .. "little. Only this step supports half acquisitions and leaning axes. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel.",
    -- Other packages differ in the window. That of ToMoBAR is sin(a w / 2) / (a w / 2) with a =
    -- 0.35; its values have a factor besides, the square of the mean of that.
    presets = {nabu = {filter = "ram-lak"}, algotom = {filter = "hann"},
        tomocupy = {filter = "parzen"},
        httomo = {filter = "shepp-logan", cutoff = 1 / 0.35, circle = 0.95}},
    reference = "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging (1988), ch. "
        .. "3.3",
    options = declared.options(reconstruction.options,
        {"mode", "choice", "in_place needs less memory than fast and is slower; auto: fast if it "
            .. "fits", choices = {"auto", "fast", "in_place"}, default = "auto"}),
    -- Of the smallest slices: those of larger ones divide it.
    packet = function(_, step, device)
        local angles, rows, cols = table.unpack(step.shape_before)
        return mb.op.piece("backproject", {{"f32", rows, angles, cols}},
            {angles = step.geometry_before.angles, size = {1, 1}},
            {axis = 1, first = 1, last = 1, device = device}).packet
    end,
}
