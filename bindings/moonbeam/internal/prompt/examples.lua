--- One example for each function, for help; a spec runs all of them. "scan.h5" is a scan,
-- "volume.h5" an HDF5 file with the dataset /entry/data/data, "stack.tif" a stack of images.
-- Examples of operators follow from the samples in their descriptors, those of functions behind
-- others are in inner_examples.lua.

local core = require "moonbeam.core"
local inner_examples = require "moonbeam.internal.prompt.inner_examples"
local tables = require "moonbeam.internal.tables"

local SINO <const> = "sino = mb.random({4, 30, 64})\n"
local SCAN <const> = "scan = mb.scan.open(\"scan.h5\")\n"
local JOB <const> = SCAN .. "job = mb.pipeline(scan, {\"flat_field\", \"minus_log\", "
    .. "{\"fbp\", center = 31.5}}, {quiet = true})\n"
local FILE <const> = "file = mb.h5.open(\"volume.h5\")\n"
local NEW <const> = "file = mb.h5.create(\"new.h5\", {overwrite = true})\n"
local RESULT <const> = "out = mb.result.create(\"made.h5\", {shape = {4, 8, 8}, "
    .. "overwrite = true})\n"
local IMAGE <const> = "image, psf = mb.phantom.spheres({16, 32, 32}), "
    .. "mb.psf.gaussian({5, 5, 5}, {1, 1, 1})\n"

local examples = {
    array = "mb.array({{1, 2}, {3, 4}}, {dtype = \"u16\"})",
    arange = "mb.arange(10)", empty = "mb.empty({4, 30, 64})", zeros = "mb.zeros({4, 30, 64})",
    ones = "mb.ones({4, 30, 64})", full = "mb.full({4, 30, 64}, 2.5)",
    random = "mb.random({4, 30, 64}, {seed = 1})", linspace = "mb.linspace(0, 1, 5)",
    from_string = "mb.from_string(\"\\1\\2\\3\\4\", {2, 2}, {dtype = \"u8\"})",
    device = "mb.device(\"host\", {budget = \"4G\"})", devices = "mb.devices()",
    default_device = "mb.default_device().id", collect = "mb.collect()", usage = "mb.usage()",
    dry_run = "mb.dry_run(function() return mb.zeros({64, 64}) + 1 end):print()",
    ledger = "mb.ledger(function() return mb.zeros({64, 64}) + 1 end):print()",
    ledger_diff = "f = function() mb.zeros({64}):release() end\n"
        .. "mb.ledger_diff(mb.dry_run(f), mb.ledger(f))",
    bound = "mb.bound(1, function() return mb.zeros({64}):max() end)",
    plan = "mb.plan(\"mb.zeros({64, 64}) + 1\")", help = "mb.help(\"tomo.fbp\")",
    plot = "mb.plot({1, 4, 9, 16})", mem = "mb.mem()",
    fft = "mb.fft(mb.zeros({8}, {dtype = \"c64\"}))",
    chunked = "mb.chunked(\"gaussian_filter\", {mb.random({8, 32, 32})}, {params = {sigma = 1}})",
    ["chunked.plan"] = "mb.chunked.plan(\"gaussian_filter\", {mb.random({8, 32, 32})},\n"
        .. "    {params = {sigma = 1}})",
    error = "mb.error(\"argument\", \"size is 0; give 1 or more\")",
    raise = "pcall(mb.raise, \"argument\", \"size is 0; give 1 or more\")",

    ["cluster.next"] = "for first, last in function() return mb.cluster.next(1, 20) end do\n"
        .. "    print(first, last)\nend",
    ["cluster.sum"] = "mb.cluster.sum({[1] = 0.5, [2] = 0.25})",
    ["cluster.gather"] = "mb.cluster.gather(mb.cluster.node)",
    ["cluster.agree"] = "mb.cluster.agree(512, \"the number of rows\")",
    ["cluster.once"] = "mb.cluster.once(function() return 3.5 end)",
    ["cluster.barrier"] = "mb.cluster.barrier()",
    ["cluster.deal"] = "take = mb.cluster.deal({\"a.h5\", \"b.h5\"})\ntake()",
    ["cluster.done"] = "mb.cluster.done()",
    ["cluster.abort"] = "if mb.cluster.size > 64 then mb.cluster.abort(\"too many ranks\") end",
    ["array.is_array"] = "mb.array.is_array(mb.zeros({2}))",
    ["array:view"] = "mb.random({8, 16, 16}):view(3, {1, 8}, mb.all)",
    ["array:permute"] = "mb.zeros({4, 30, 64}):permute(2, 1, 3)",
    ["array:transpose"] = "mb.zeros({30, 64}):transpose()",
    ["array:reshape"] = "mb.arange(12):reshape({3, -1})",
    ["array:broadcast_to"] = "mb.zeros({1, 64}):broadcast_to({30, 64})",
    ["array:reinterpret"] = "mb.zeros({30, 64}):reinterpret(\"c64\")",
    ["array:overlaps"] = "a = mb.zeros({4, 8})\na:overlaps(a[2])",
    ["array:item"] = "mb.zeros({4, 30}):item(2, 3)",
    ["array:to_table"] = "mb.arange(4):to_table()",
    ["array:to_string"] = "#mb.arange(4):to_string()",
    ["array:release"] = "mb.zeros({64}):release()", ["array:copy"] = "mb.zeros({64}):copy()",
    ["array:dense"] = "mb.zeros({30, 64}):transpose():dense()",
    ["array:to"] = "mb.zeros({64}):to(\"host\")",
    ["array:cast"] = "mb.random({64}):cast(\"u16\", {scale = 65535})",
    ["array:fill"] = "mb.empty({64}):fill(3)",
    ["array:slices"] = "for i, slice in mb.zeros({4, 8}):slices() do slice:fill(i) end",
    ["device.bytes"] = "mb.device.bytes(\"8Gi\")",
    ["device.format_bytes"] = "mb.device.format_bytes(1 << 30)",
    ["device.open"] = "mb.device.open(\"host\")", ["device.list"] = "mb.device.list()",
    ["device.opened"] = "mb.device.opened()", ["device.planned"] = "mb.device.planned()",
    ["device.several"] = "mb.device.several(\"host,host:1\")",
    ["device.cuda_problem"] = "mb.device.cuda_problem()",
    ["device.dry"] = "mb.device.dry()", ["device.default"] = "mb.device.default()",
    ["device:memory"] = "mb.device(\"host\"):memory()",
    ["device:sync"] = "mb.device(\"host\"):sync()", ["device:lost"] = "mb.device(\"host\"):lost()",
    ["device:overhead"] = "mb.device(\"host\"):overhead()",
    ["device:budget"] = "mb.device(\"host\"):budget()",
    ["device:pinned"] = "mb.device(\"host\"):pinned()",

    ["fft.fftn"] = "mb.fft.fftn(mb.zeros({8, 8}, {dtype = \"c64\"}))",
    ["fft.ifftn"] = "mb.fft.ifftn(mb.zeros({8, 8}, {dtype = \"c64\"}))",
    ["fft.rfftn"] = "mb.fft.rfftn(mb.random({8, 8}))",
    ["fft.irfftn"] = "mb.fft.irfftn(mb.fft.rfftn(mb.random({8, 8})), {n = 8})",
    ["fft.fftshift"] = "mb.fft.fftshift(mb.arange(8))",
    ["fft.ifftshift"] = "mb.fft.ifftshift(mb.arange(8))",
    ["fft.good_size"] = "mb.fft.good_size(1021)",
    ["fft.work"] = "mb.fft.work(\"r2c\", {512, 512})",
    ["fft.good_grid"] = "mb.fft.good_grid({100, 509})",
    ["fft.plans"] = "mb.fft.plans()", ["fft.drop"] = "mb.fft.drop()",
    ["fft.limit"] = "mb.fft.limit()", ["fft.library"] = "mb.fft.library()",
    ["fft.library_bytes"] = "mb.fft.library_bytes()",

    ["h5.open"] = FILE,
    ["h5.create"] = NEW .. "file:write(\"/data\", mb.zeros({4, 8}))\nfile:finish()",
    ["h5:read"] = FILE .. "file:read(\"/entry/data/data\", {1, 2})",
    ["h5:write"] = NEW .. "file:write(\"/data\", mb.zeros({4, 8}))",
    ["h5:exists"] = FILE .. "file:exists(\"/entry/data\")",
    ["h5:value"] = NEW .. "file:write(\"/name\", \"sample 3\")\nfile:value(\"/name\")",
    ["h5:attribute"] = FILE .. "file:attribute(\"/entry\", \"NX_class\")",
    ["h5:attributes"] = FILE .. "file:attributes(\"/entry\")",
    ["h5:set_attribute"] = NEW .. "file:group(\"/entry\")\n"
        .. "file:set_attribute(\"/entry\", \"units\", \"mm\")",
    ["h5:group"] = NEW .. "file:group(\"/entry\", \"NXentry\")",
    ["h5:walk"] = FILE .. "for _, item in ipairs(file:walk()) do print(item.path) end",
    ["h5:dataset"] = FILE .. "file:dataset(\"/entry/data/data\")",
    ["h5:create_dataset"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {8, 4, 4}, "
        .. "dtype = \"f32\"})",
    ["h5:link"] = NEW .. "file:write(\"/data\", mb.zeros({4}))\nfile:link(\"/data\", \"/same\")",
    ["h5:finish"] = NEW .. "file:write(\"/data\", mb.zeros({4}))\nfile:finish()",
    ["h5:close"] = FILE .. "file:close()",
    ["h5.dataset:read"] = FILE .. "file:dataset(\"/entry/data/data\"):read({1, 2})",
    ["h5.dataset:write"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {8, 4, 4}, "
        .. "dtype = \"f32\"})\nset:write(mb.zeros({2, 4, 4}), {1, 2})",
    ["h5.dataset:close"] = FILE .. "file:dataset(\"/entry/data/data\"):close()",

    ["images.read"] = "image = mb.images.read(\"stack.tif\")",
    ["images.write"] = "mb.images.write(\"copy.tif\", mb.random({4, 16, 16}), {overwrite = true})",
    ["images.open"] = "volume = mb.images.open(\"stack.tif\")",
    ["npy.write"] = "mb.npy.write(\"a.npy\", mb.random({4, 16}), {overwrite = true})",
    ["npy.read"] = "mb.npy.write(\"a.npy\", mb.random({4, 16}), {overwrite = true})\n"
        .. "a = mb.npy.read(\"a.npy\")",
    ["tiff.read"] = "image = mb.tiff.read(\"stack.tif\")",
    ["tiff.write"] = "mb.tiff.write(\"copy.tif\", mb.random({4, 16, 16}), {overwrite = true})",
    ["tiff.open"] = "stack = mb.tiff.open(\"stack.tif\")",
    ["view.save"] = "mb.view.save(\"slice.png\", mb.random({64, 64}), {overwrite = true})",
    ["view.window"] = "black, white = mb.view.window(mb.random({64, 64}))",
    ["view.projections"] = "mb.view.projections(\"views.png\", mb.random({8, 16, 16}), "
        .. "{overwrite = true})",
    ["picture.percentiles"] = "mb.picture.percentiles(mb.random({64, 64}), {1, 99})",
    ["picture.write_png"] = "mb.picture.write_png(\"gray.png\", mb.random({8, 8}), {low = 0, "
        .. "high = 1, overwrite = true})",
    ["statistics.percentiles"] = "mb.statistics.percentiles(mb.random({64, 64}), {1, 50, 99})",

    ["scan.open"] = SCAN, ["scan.of_arrays"] = "scan = mb.scan.of_arrays(mb.random({30, 4, 64}), "
        .. "mb.tomo.angles(30))",
    ["scan:close"] = SCAN .. "scan:close()", ["scan:describe"] = SCAN .. "scan:describe()",
    ["scan:projections"] = SCAN .. "raw = scan:projections({1, 4})",
    ["scan:flats"] = SCAN .. "flats = scan:flats({1, 4})",
    ["scan:darks"] = SCAN .. "darks = scan:darks({1, 4})",
    ["scan:frame"] = SCAN .. "frame = scan:frame(1)",
    ["result.create"] = RESULT
        .. "out:write(mb.zeros({4, 8, 8}), 1)\nout:finish()",
    ["result:write"] = RESULT
        .. "out:write(mb.zeros({2, 8, 8}), 1)",
    ["result:finish"] = RESULT .. "out:write(mb.zeros({4, 8, 8}), 1)\nout:finish()",
    ["result:close"] = RESULT
        .. "out:close()",
    ["result:parameters"] = RESULT .. "out:parameters {center = 31.5}",
    ["result:provenance"] = RESULT .. "out:provenance {program = \"own script\"}",
    ["result.disk_bytes"] = "mb.result.disk_bytes(\"volume.zarr\", {64, 64, 64}, \"f32\")",
    ["pipeline:plan"] = JOB .. "print(job:plan())",
    ["pipeline:part"] = JOB .. "job:part({rows = {2, 3}}):plan().peak",
    ["pipeline:slices"] = JOB .. "slices, report = job:slices({2, 3})",
    ["pipeline:run"] = JOB .. "report = job:run({output = \"run.h5\", overwrite = true})",
    ["pipeline.new"] = SCAN .. "job = mb.pipeline.new(scan, {\"flat_field\", \"minus_log\", "
        .. "{\"center\"},\n    {\"fbp\", filter = \"hann\"}}, {quiet = true})\njob:plan().peak",

    ["tomo.angles"] = "angles = mb.tomo.angles(30)",
    ["tomo.fbp"] = SINO .. "slices = mb.tomo.fbp(sino, mb.tomo.angles(30), {filter = \"hann\"})",
    ["tomo.reconstruct"] = SINO .. "slices = mb.tomo.reconstruct(sino, mb.tomo.angles(30), "
        .. "{center = 31.5})",
    ["tomo.line_integrals"] = "raw = mb.random({30, 4, 64}, {low = 1, high = 2})\n"
        .. "flats = mb.full({5, 4, 64}, 3)\nline = mb.tomo.line_integrals(raw, {flats = flats})",
    ["tomo.choose_method"] = "mb.tomo.choose_method({4, 30, 64}, mb.tomo.angles(30))",
    ["tomo.opposite_pair"] = "mb.tomo.opposite_pair(mb.tomo.angles(31, math.pi * 31 / 30))",
    ["tomo.wrapped"] = "mb.tomo.wrapped({0, 7, 14})",
    ["tomo.find_center"] = "center = mb.tomo.find_center(mb.random({31, 4, 64}),\n"
        .. "    mb.tomo.angles(31, math.pi * 31 / 30))",
    ["tomo.find_center_pair"] = "center = mb.tomo.find_center_pair(mb.random({4, 64}), "
        .. "mb.random({4, 64}))",
    ["tomo.find_center_phase_correlation"] = "a = mb.random({16, 64})\n"
        .. "center = mb.tomo.find_center_phase_correlation(a, a:copy())",
    ["psf.gaussian"] = "psf = mb.psf.gaussian({9, 15, 15}, {1.5, 2, 2})",
    ["psf.size_for"] = "size = mb.psf.size_for(\"richards_wolf\", {21, 512, 512}, {na = 1.4, "
        .. "wavelength = 520, pixel = 100, step = 300})",
    ["psf.light_within"] = "share, height = mb.psf.light_within(\"richards_wolf\", {41, 65, 65}, "
        .. "{na = 1.4, wavelength = 520, pixel = 100, step = 300})",
    ["psf.born_wolf"] = "psf = mb.psf.born_wolf({9, 15, 15}, {na = 1.2, wavelength = 0.52, "
        .. "pixel = 0.1, step = 0.2, index = 1.33})",
    ["psf.richards_wolf"] = "psf = mb.psf.richards_wolf({9, 15, 15}, {na = 1.4, wavelength = 520, "
        .. "pixel = 60, step = 150})",
    ["psf.confocal"] = "psf = mb.psf.confocal({9, 15, 15}, {na = 1.4, wavelength = 520, "
        .. "excitation = 488, pinhole = 1, pixel = 60, step = 150})",
    ["psf.two_photon"] = "psf = mb.psf.two_photon({9, 15, 15}, {na = 1, excitation = 920, "
        .. "index = 1.33, pixel = 100, step = 300})",
    ["psf.light_sheet"] = "psf = mb.psf.light_sheet({9, 15, 15}, {na = 0.8, wavelength = 520, "
        .. "sheet = 2000, index = 1.33, pixel = 160, step = 500})",
    ["psf.normalize"] = "mb.psf.normalize(mb.random({5, 5, 5}))",
    ["psf.sum"] = "mb.psf.sum(mb.random({5, 5, 5}))",
    ["psf.center"] = "mb.psf.center(mb.psf.gaussian({5, 5, 5}, {1, 1, 1}))",
    ["psf.on_voxel"] = "mb.psf.on_voxel(mb.psf.gaussian({5, 5, 5}, {1, 1, 1}), {2, 2.4, 1.8})",
    ["beads.psf"] = "image = mb.psf.gaussian({15, 21, 21}, {2, 2, 2})\n"
        .. "found, report = mb.beads.psf(image, {size = {9, 9, 9}})",
    ["psf.crop"] = "mb.psf.crop(mb.psf.gaussian({15, 15, 15}, {1, 1, 1}))",
    ["psf.background"] = "mb.psf.background(mb.random({5, 5, 5}))",
    ["psf.bessel_j0"] = "mb.psf.bessel_j0(2.4)",
    ["deconv.richardson_lucy"] = IMAGE .. "sharp = mb.deconv.richardson_lucy(image, psf, "
        .. "{iterations = 5})",
    ["deconv.landweber"] = IMAGE .. "sharp = mb.deconv.landweber(image, psf, {iterations = 5})",
    ["deconv.noise"] = "image = mb.poisson(mb.full({4, 64, 64}, 9))\nmb.deconv.noise(image).gain",
    ["deconv.noise_divergence"] = IMAGE
        .. "mb.deconv.noise_divergence(mb.deconv.noise(image), 0, 1)",
    ["deconv.find_iterations"] = IMAGE
        .. "mb.deconv.find_iterations(image, psf, {gain = 1, iterations = 20}).iterations",
    ["deconv.wiener"] = IMAGE .. "sharp = mb.deconv.wiener(image, psf)",
    ["deconv.tikhonov"] = IMAGE .. "sharp = mb.deconv.tikhonov(image, psf)",
    ["deconv.gradient_consensus"] = IMAGE .. "sharp = mb.deconv.gradient_consensus(image, psf, "
        .. "{iterations = 3})",
    ["convolution.convolve"] = IMAGE .. "blurred = mb.convolution.convolve(image, psf)",
    ["convolution.correlate"] = IMAGE .. "found = mb.convolution.correlate(image, psf)",
    ["tiles.convolve"] = IMAGE .. "blurred = mb.tiles.convolve(image, psf)",
    ["tiled_deconv.richardson_lucy"] = IMAGE
        .. "sharp = mb.tiled_deconv.richardson_lucy(image, psf, {iterations = 2})",
    ["deconv.layout"] = IMAGE .. "mb.deconv.layout({16, 32, 32}, psf)",
    ["deconv.transfer"] = IMAGE .. "otf = mb.deconv.transfer(psf, {16, 32, 32})",
    ["convolution.layout"] = "mb.convolution.layout({16, 32, 32}, {5, 5, 5}, {2, 2, 2})",
    ["convolution.transfer"] = IMAGE .. "otf = mb.convolution.transfer(psf, {20, 36, 36})",
    ["psf.gibson_lanni"] = "psf = mb.psf.gibson_lanni({9, 15, 15}, {na = 1.2, wavelength = 0.52, "
        .. "pixel = 0.1,\n    step = 0.2, index = 1.33, depth = 2, index_sample = 1.38})",
    ["psf.recenter"] = "mb.psf.recenter(mb.psf.gaussian({5, 5, 5}, {1, 1, 1}))",
    ["psf.resample"] = "mb.psf.resample(mb.psf.gaussian({9, 9, 9}, {2, 2, 2}), {0.1, 0.1, 0.1},\n"
        .. "    {0.2, 0.2, 0.2})",
    ["psf.subtract_background"] = "mb.psf.subtract_background(mb.random({5, 5, 5}))",
    ["phantom.scale"] = "mb.phantom.scale(mb.phantom.ball(1, 0.5), 32)",
    ["tiles.plan"] = "psf = mb.psf.gaussian({5, 5, 5}, {1, 1, 1})\n"
        .. "volume = mb.volumes.of_array(mb.random({16, 32, 32}))\n"
        .. "plan = mb.tiles.plan(volume, psf)",
    ["volumes.of_array"] = "volume = mb.volumes.of_array(mb.random({16, 32, 32}))",
    ["progress.step"] = "bar = mb.progress.new(\"slices\", 10, {quiet = true})\nbar:step(5)\n"
        .. "bar:finish()",
    ["progress.finish"] = "bar = mb.progress.new(\"slices\", 10, {quiet = true})\nbar:finish()",
    ["result:scaling"] = "out = mb.result.create(\"codes.h5\", {shape = {4, 8, 8},\n"
        .. "    dtype = \"u16\", overwrite = true})\nout:scaling(0.5, -1)",
    ["tiles.table"] = "psf = mb.psf.gaussian({5, 5, 5}, {1, 1, 1})\n"
        .. "plan = mb.tiles.plan(mb.volumes.of_array(mb.random({16, 32, 32})), psf)\n"
        .. "print(mb.tiles.table(plan))",
    ["recon.run"] = SCAN .. "out = mb.result.create(\"run.h5\", {shape = {4, 64, 64}, "
        .. "overwrite = true})\nplan = mb.recon.plan(scan, {center = 31.5, quiet = true})\n"
        .. "mb.recon.run(scan, plan, out)\nout:finish()",
    ["pool.reset_reach"] = "mb.pool.reset_reach()",
    ["pool.shutdown"] = "mb.pool.shutdown(\"host:1\")",
    ["pool.debug"] = "mb.pool.debug(true, \"host:1\")\nmb.pool.debug(false, \"host:1\")",
    ["progress.new"] = "bar = mb.progress.new(\"slices\", 10, {quiet = true})\nbar:step(5)\n"
        .. "bar:finish()",
    ["npy.create"] = "file = mb.npy.create(\"new.npy\", {shape = {4, 8, 8}, dtype = \"f32\", "
        .. "overwrite = true})",
    ["npy.open"] = "mb.npy.write(\"a.npy\", mb.random({4, 16, 16}), {overwrite = true})\n"
        .. "volume = mb.npy.open(\"a.npy\")",
    ["tiff.create"] = "file = mb.tiff.create(\"new.tif\", {shape = {4, 8, 8}, dtype = \"f32\", "
        .. "overwrite = true})",
    ["images.create"] = "file = mb.images.create(\"new.tif\", {shape = {4, 8, 8}, dtype = \"f32\", "
        .. "overwrite = true})",
    ["zarr.is"] = "mb.zarr.is(\"volume.zarr\")",
    ["recon.plan"] = SCAN .. "plan = mb.recon.plan(scan, {center = 31.5})",
    ["recon.describe"] = SCAN .. "print(mb.recon.describe(mb.recon.plan(scan, {center = 31.5})))",
    ["recon.find_center"] = SCAN .. "center = mb.recon.find_center(scan)",
    ["recon.check_values"] = SCAN .. "mb.recon.check_values(scan).text",
    ["tomo.find_center_metric"] = "sino = mb.random({30, 64})\n"
        .. "center = mb.tomo.find_center_metric(sino, mb.tomo.angles(30), {range = 4})",
    ["tomo.find_center_slices"] = "sino = mb.random({30, 64})\n"
        .. "center = mb.tomo.find_center_slices(sino, mb.tomo.angles(30), {range = 4})",
    ["tomo.find_center_vo"] = "center = mb.tomo.find_center_vo(mb.random({30, 64}), {range = 4})",
    ["tomo.find_center_overlap"] = "center = mb.tomo.find_center_overlap(mb.random({60, 64}))",
    ["tomo.find_overlap"] = "mb.tomo.find_overlap(mb.random({16, 64}), mb.random({16, 64}, "
        .. "{seed = 1}))",
    ["metrics.rmse"] = "mb.metrics.rmse(mb.random({8, 8}), mb.zeros({8, 8}))",
    ["metrics.ncc"] = "mb.metrics.ncc(mb.random({8, 8}), mb.random({8, 8}, {seed = 1}))",
    ["metrics.psnr"] = "mb.metrics.psnr(mb.random({8, 8}), mb.random({8, 8}, {seed = 1}))",
    ["metrics.ssim"] = "mb.metrics.ssim(mb.random({16, 16}), mb.random({16, 16}, {seed = 1}))",
    ["metrics.i_divergence"] = "mb.metrics.i_divergence(mb.ones({8, 8}), mb.ones({8, 8}))",
    ["phantom.spheres"] = "volume = mb.phantom.spheres({16, 64, 64}, {seed = 1})",
    ["phantom.ball"] = "mb.phantom.ball(1, 0.5)", ["phantom.heights"] = "mb.phantom.heights(8)",

    ["op.list"] = "mb.op.list()", ["op.describe"] = "mb.op.describe(\"ramp_filter\").summary",
    ["op.estimate"] = "mb.op.estimate(\"ramp_filter\", {{\"f32\", 4, 30, 64}}).peak",
    ["op.supported"] = "mb.op.supported(\"ramp_filter\", \"host\")",
    ["op.run"] = "mb.op.run(\"unary\", mb.random({4}), \"sqrt\")",
    ["op.piece"] = "mb.op.piece(\"box_filter\", {{180, 512, 512}}, {size = 5},\n"
        .. "    {axis = 2, first = 129, last = 192})",
    ["op.max_slices"] = "mb.op.max_slices(\"box_filter\", {pattern = \"projection\", "
        .. "dims = {512, 512},\n    available = \"64M\", params = {size = {1, 5, 5}}})",
    ["plan.max_slices"] = "mb.plan.max_slices(function(a) return a + 1 end, function(n, device)\n"
        .. "    return mb.zeros({n, 64, 64}, {device = device})\nend, \"8M\")",
    ["plan.max_chunk"] = "mb.plan.max_chunk({shape = {90, 16, 64}, available = \"8M\"})",
    ["plan.required_memory"] = "mb.plan.required_memory(8, {shape = {90, 16, 64}, center = 31.5})",
    ["plan.peak"] = "mb.plan.peak(function(device) mb.zeros({64, 64}, {device = device}) end).peak",
    ["plan.peaks"] = "mb.plan.peaks(function(device) mb.zeros({64}, {device = device}) end, "
        .. "{\"host\"}).peak",
    ["plan.max_count"] = "mb.plan.max_count(function(device, n)\n"
        .. "    mb.zeros({n, 64, 64}, {device = device})\nend, {available = \"8M\"})",
    ["pool.stats"] = "mb.pool.stats().live", ["pool.budget"] = "mb.pool.budget()",
    ["pool.usage"] = "mb.pool.usage(\"tag\")", ["pool.leaks"] = "print(mb.pool.leaks())",
    ["pool.peak"] = "mb.pool.peak(function() mb.zeros({64, 64}):release() end)",
    ["pool.tag"] = "do local _ <close> = mb.pool.tag(\"filter\") mb.zeros({64}):release() end",
    ["pool.tags"] = "mb.pool.tags()", ["pool.trace"] = "mb.pool.trace({format = \"csv\"})",
    ["pool.map"] = "print(mb.pool.map())", ["pool.accounting"] = "print(mb.pool.accounting())",
    ["pool.blocks"] = "mb.pool.blocks()", ["pool.views"] = "mb.pool.views()",
    ["pool.events"] = "mb.pool.events()",
    ["pool.alloc"] = "block = mb.pool.alloc(4096)\nmb.pool.free(block)",
    ["pool.alloc_pitched"] = "rows, pitch = mb.pool.alloc_pitched(1920, 1080)",
    ["pool.free"] = "mb.pool.free(mb.pool.alloc(4096))", ["pool.collect"] = "mb.pool.collect()",
    ["pool.ceil_1d"] = "mb.pool.ceil_1d(1000)", ["pool.ceil_2d"] = "mb.pool.ceil_2d(1000, 4)",
    ["pool.element_bytes"] = "mb.pool.element_bytes(\"c64\")",
    ["pool.end_tag"] = "mb.pool.tag(\"filter\")\nmb.zeros({64}):release()\nmb.pool.end_tag()",
    ["pool.scope"] = "scope = mb.pool.scope()\nmb.zeros({64}):release()\nscope:finish()",
    ["pool.smallest"] = "mb.pool.smallest()", ["pool.round"] = "mb.pool.round(1000)",
    ["pool.trim"] = "mb.pool.trim()", ["pool.check"] = "mb.pool.check()",
    ["pool.damage"] = "print(mb.pool.damage())", ["pool.active"] = "mb.pool.active()",
    ["pool.activate"] = "mb.pool.activate(\"1M\")",
    ["pool.plot"] = "mb.zeros({64, 64}):release()\nmb.pool.plot({by = \"end\"})",
    ["plot.lines"] = "mb.plot.lines({{1, 4, 9, 16}, {1, 2, 3, 4}},\n"
        .. "    {names = {\"squares\", \"numbers\"}})",
    ["plot.areas"] = "mb.plot.areas({{1, 2, 3}, {2, 2, 1}}, {names = {\"arrays\", \"scratch\"}})",
    ["plot.histogram"] = "mb.plot.histogram(mb.random({64, 64}), {bins = 20})",
    show = "mb.show(mb.random({32, 64}), {protocol = \"text\"})",
    ["ledger:print"] = "mb.dry_run(function() return mb.zeros({64}) end):print()",
    ["ledger:text"] = "mb.dry_run(function() return mb.zeros({64}) end):text({limit = 5})",
    ["ledger:rows"] = "mb.dry_run(function() return mb.zeros({64}) end):rows()",
    ["ledger:peak_step"] = "mb.dry_run(function() return mb.zeros({64}) end):peak_step()",
    ["ledger:to_json"] = "mb.dry_run(function() return mb.zeros({64}) end):to_json()",
    ["help.text"] = "print(mb.help.text(\"tomo.fbp\"))", ["mem.list"] = "mb.mem.list()",
    ["system.clock"] = "mb.system.clock()", ["system.sleep"] = "mb.system.sleep(0.01)",
    ["system.mkdir"] = "mb.system.mkdir(\"folder/inner\")",
    ["system.stat"] = "mb.system.stat(\"scan.h5\").bytes",
    ["system.real_path"] = "mb.system.real_path(\".\")", ["system.age"] = "mb.system.age()",
    ["system.program"] = "mb.system.program()",
    ["system.file_limit"] = "mb.system.file_limit()",
    ["system.cancelled"] = "mb.system.cancelled()", ["system.folder"] = "mb.system.folder(\".\")",
    ["system.space"] = "mb.system.space(\".\").free", ["system.pid"] = "mb.system.pid()",
    ["system.hostname"] = "mb.system.hostname()", ["system.cwd"] = "mb.system.cwd()",
    ["system.processors"] = "mb.system.processors()",
    ["system.memory_limits"] = "mb.system.memory_limits()",
    ["system.process_limits"] = "mb.system.process_limits().available",
    ["system.isatty"] = "mb.system.isatty(\"stdout\")",
    ["system.terminal_width"] = "mb.system.terminal_width()",
    ["system.terminal_pixels"] = "mb.system.terminal_pixels()",
}

for _, name in ipairs {"cgls", "landweber", "sirt", "sart", "mlem", "osem", "fista", "admm_tv"} do
    examples["tomo." .. name] = SINO .. ("slices = mb.tomo.%s(sino, mb.tomo.angles(30), "
        .. "{iterations = 2})"):format(name)
end
for _, name in ipairs {"sum", "min", "max", "mean", "norm"} do
    examples["array:" .. name] = ("mb.random({4, 30}):%s()"):format(name)
end
for _, name in ipairs {"abs", "exp", "log", "sqrt", "square", "reciprocal"} do
    examples["array:" .. name] = ("mb.random({4, 30}):%s()"):format(name)
end
for _, name in ipairs {"arange", "empty", "zeros", "ones", "full", "random", "linspace",
    "from_string"} do
    examples["array." .. name] = examples[name]:gsub("^mb%.", "mb.array.")
end
for _, name in ipairs {"diff", "record", "dry_run", "bound"} do
    examples["ledger." .. name] = examples["ledger." .. name] or examples[name]
end

local function literal(value)
    if type(value) == "string" then
        return ("%q"):format(value)
    elseif type(value) ~= "table" then
        return tostring(value)
    end
    local parts = tables.mapped(value, literal)
    return "{" .. table.concat(parts, ", ") .. "}"
end

-- An array like that of a sample.
local function array_text(spec)
    local options = {}
    options[1] = spec[1] ~= "f32" and ("dtype = %q"):format(spec[1]) or nil
    for _, name in ipairs {"low", "high"} do
        options[#options + 1] = spec[name] and ("%s = %s"):format(name, spec[name]) or nil
    end
    local shape = table.concat(table.move(spec, 2, #spec, 1, {}), ", ")
    return ("mb.random({%s}%s)"):format(shape, options[1] and ", {" .. table.concat(options, ", ")
        .. "}" or "")
end

-- The call of an operator with its first sample.
local function of_operator(name)
    local descriptor = core.op.describe(name)
    local sample = load("return " .. descriptor.samples[1], "=sample")()
    local positional, options, input = {}, {}, 0
    for _, arg in ipairs(descriptor.args) do
        local value = (sample.params or {})[arg.name]
        value = value ~= nil and literal(value) or nil
        if arg.kind == "in" or arg.kind == "inout" then
            input = input + 1
            local spec = (sample.inputs or {})[arg.name] or (sample.inputs or {})[input]
            value = spec and array_text(spec)
        end
        if value and arg.required then
            positional[#positional + 1] = value
        elseif value then
            options[#options + 1] = arg.name .. " = " .. value
        end
    end
    positional[#positional + 1] = options[1] and "{" .. table.concat(options, ", ") .. "}" or nil
    return ("mb.%s(%s)"):format(name, table.concat(positional, ", "))
end

--- The example of a function ("tomo.fbp"), a method ("array:view") or an operator, or nil.
return function(name, operator)
    return operator and of_operator(name) or examples[name] or inner_examples[name]
end
