--- Terms of other programs, and the equivalent or nearest function here. For mb.help.

return {
    afterburner = "How the result is smoothed or sharpened: mb.gaussian_filter, mb.binary.",
    astype = "a:cast(dtype) gives another element type; mb.convert is its operator.",
    back_projection = "mb.backproject, or mb.tomo.fbp with the filter.",
    blocksize = "How many slices go at a time: mb.plan.max_slices, mb.op.max_slices.",
    blur = "mb.gaussian_filter smooths, mb.convolution blurs by a PSF.",
    calc_max_slices = "mb.op.max_slices for an operator, mb.plan.max_slices for a function: how "
        .. "many slices fit the bytes available.",
    concatenate = "mb.empty makes the whole, and a view of it takes each part: "
        .. "mb.convert(part, part.dtype, {out = whole:view({1, 5})}).",
    convolve = "mb.convolution(image, psf) convolves by FFT; mb.tiles.convolve does it in tiles.",
    cor = "The center of rotation: mb.tomo.find_center, the option center.",
    deconvolve = "mb.deconv.richardson_lucy, landweber, wiener and tikhonov.",
    dezinger = "mb.dezinger replaces outliers of frames; also a step: help(\"step dezinger\").",
    element = "a:item(i, j, k) reads one, a:to_table() all.",
    empty_cache = "mb.pool.trim gives memory back, mb.fft.drop drops idle FFT plans.",
    estimate = "mb.op.estimate tells what an operator takes, mb.plan.peak a function, mb.dry_run "
        .. "all its steps.",
    exp = "a:exp(), or mb.unary(a, \"exp\").",
    fftshift = "mb.fft.fftshift(a).",
    flatfield = "mb.tomo.line_integrals(raw, {flats =, darks =}); mb.flat_field is its operator.",
    free_all_blocks = "mb.pool.trim, and mb.collect for what Lua no longer refers to.",
    gaussian = "mb.gaussian_filter smooths; mb.psf.gaussian is a point spread function.",
    gridrec = "mb.fourier_reconstruct is the direct Fourier method.",
    imread = "mb.images.read reads TIFF, .npy, HDF5 and Zarr.",
    imshow = "mb.show(a) shows it in the terminal, mb.view.save writes a picture.",
    iradon = "mb.tomo.fbp(sinograms, angles), with angles in radians.",
    ifftshift = "mb.fft.ifftshift(a), which undoes fftshift for odd extents too.",
    limit = "mb.device(\"host\", {budget = \"8G\"}) sets the limit of a device.",
    log = "a:log(), or mb.minus_log for transmission.",
    maximum = "a:max(), or mb.binary(a, \"max\", {b = b}) element by element.",
    median = "mb.median_filter, in two and three axes.",
    memory_pool = "mb.pool; mb.pool.stats() tells what is live.",
    minimum = "a:min(), or mb.binary(a, \"min\", {b = b}) element by element.",
    muladd = "mb.mul_add(dst, other): a * dst + b * other in place, with two numbers a and b.",
    numpy = "mb.array from nested tables, mb.npy.read and mb.npy.write for files, a:to_table().",
    pad = "mb.pad makes an array larger; the option padding says how filters continue rows.",
    padding = "The options padding (zero, edge) and pad_width say how rows are continued for the "
        .. "ramp filter; mb.pad makes an array larger; the option boundary is that of "
            .. "convolutions.",
    paganin = "Phase retrieval is a step of pipelines, help(\"step paganin\"); its operator is "
        .. "mb.phase_filter.",
    peak_memory = "mb.pool.peak measures a function, mb.plan.peak predicts it.",
    phase = "Phase retrieval: help(\"paganin\"), mb.phase_filter.",
    radon = "mb.project(volume, angles) makes sinograms.",
    read = "mb.scan.open for scans, mb.images.read for pictures and stacks, mb.h5.open for HDF5.",
    recon = "mb.tomo.reconstruct for arrays, mb.recon for whole scans.",
    richardson_lucy = "mb.deconv.richardson_lucy(image, psf, {iterations = 20}).",
    rl = "mb.deconv.richardson_lucy(image, psf, {iterations = 20}).",
    ring = "Rings come from stripes of sinograms: mb.stripes_all, mb.stripes_sorting and others, "
        .. "which are also steps of pipelines.",
    rotation = "mb.tomo.find_center finds the axis.",
    save = "mb.images.write for arrays, mb.view.save for pictures, mb.result.create for volumes.",
    sqrt = "a:sqrt(), or mb.unary(a, \"sqrt\").",
    stripe = "mb.stripes_all, mb.stripes_sorting and others, which are also steps of pipelines.",
    sum = "a:sum(), of all elements or along an axis.",
    total_bytes = "mb.pool.stats().budget is the limit on live bytes.",
    transpose = "a:transpose() exchanges the last two axes, a:permute(2, 1, 3) any.",
    unsharp = "A minus its mb.gaussian_filter, by mb.binary.",
    used_bytes = "mb.pool.stats().live, bytes that arrays and scratch take now; mb.mem lists the "
        .. "arrays.",
    wrap = "mb.pad has the mode \"wrap\"; the option boundary = \"circular\" of convolutions wraps "
        .. "around; mb.roll shifts circularly; mb.tomo.wrapped brings angles within one turn.",
}
