--- Examples of the functions behind others: blocks, volumes, single stages of a reconstruction,
-- test hooks. See examples.lua, which has the others.

local SCAN <const> = "scan = mb.scan.open(\"scan.h5\")\n"
local NEW <const> = "file = mb.h5.create(\"new.h5\", {overwrite = true})\n"
local VOLUME <const> = "volume = mb.volumes.of_array(mb.random({16, 32, 32}))\n"
local TILED <const> = VOLUME .. "psf = mb.psf.gaussian({5, 5, 5}, {1, 1, 1})\n"
local SINK <const> = "sink = mb.volumes.of_array(mb.zeros({16, 32, 32}))\n"
local SETTINGS <const> = "settings = {center = 31.5}\n"
local BLOCKS <const> = [[
source, result = mb.random({8, 64}), mb.empty({8, 64})
times = mb.stream.run("host", {{1, 4}, {5, 8}}, {
    read = function(block, carrier, device)
        local rows = mb.empty({4, 64}, {device = device})
        carrier:carry(source:view(block), rows)
        return rows
    end,
    compute = function(rows) local twice = rows * 2 rows:release() return twice end,
    write = function(twice, block, carrier) carrier:carry(result:view(block), twice) end,
}, {pinned = "1M", source = {source}, sink = result})
]]
local COUNTS <const> = "a, percents = mb.random({50, 9}), {1, 99}\n"
    .. "high = mb.histogram(a, {bits = \"high\"})\n"
    .. "prefixes = mb.statistics.prefixes(high, percents)\n"
local FOUND <const> = "f = function() mb.zeros({mb.ledger.found(64, 48)}):release() end\n"

return {
    ["convolution.product"] = "mb.convolution.product({16, 32, 32})",
    ["convolution.ranges"] = "part = mb.zeros({8, 16}):view("
        .. "mb.convolution.ranges({2, 0}, {4, 16}))",
    ["convolution.forward"] = "grid = mb.zeros({4, 8, 10}) -- rows of 8 and room for the spectrum\n"
        .. "spectrum = mb.convolution.forward(grid, 8)",
    ["convolution.apply"] = "grid = mb.zeros({4, 8, 10})\n"
        .. "otf = mb.ones({4, 8, 5}, {dtype = \"c64\"})\nmb.convolution.apply(grid, otf, 8)",

    ["debug.break_guard"] = "mb.debug.set_guards(true, \"host:1\")\n"
        .. "a = mb.zeros({10}, {device = \"host:1\"})\n"
        .. "mb.debug.break_guard(a, true, 3)\nprint(mb.pool.damage(\"host:1\"))\n"
        .. "mb.pool.shutdown(\"host:1\")",
    ["debug.fail_nth"] = "mb.debug.fail_nth(1, \"host:1\")\n"
        .. "print(pcall(mb.zeros, {64}, {device = \"host:1\"}))\nmb.debug.fail_nth(0, \"host:1\")",
    ["debug.fail_step"] = "mb.debug.fail_step(1, 28) -- the disk is full\n"
        .. "print(pcall(mb.npy.write, \"full.npy\", mb.zeros({4})))\nmb.debug.fail_step(0)",
    ["debug.lose_device"] = "a = mb.zeros({64}, {device = \"host:2\"})\n"
        .. "mb.debug.lose_device(\"host:2\", 1)\nprint(pcall(function() return a + 1 end))",
    ["debug.pair_seconds"] = "mb.debug.pair_seconds(100, 1000)",
    ["debug.pretend_memory"] = "mb.debug.pretend_memory(1 << 30, \"host:1\")\n"
        .. "print(mb.device(\"host:1\"):memory())\nmb.debug.pretend_memory(0, \"host:1\")",
    ["debug.refuse_commits"] = "mb.debug.refuse_commits(1, \"host:1\")\n"
        .. "print(pcall(mb.zeros, {1 << 20}, {device = \"host:1\"}))\n"
        .. "mb.debug.refuse_commits(0, \"host:1\")",
    ["debug.refuse_pins"] = "mb.debug.refuse_pins(1, \"host\")\n"
        .. "print(pcall(mb.zeros, {64}, {pinned = true}))\nmb.debug.refuse_pins(0, \"host\")",
    ["debug.set_guards"] = "mb.debug.set_guards(true, \"host:1\")\n"
        .. "mb.debug.set_guards(false, \"host:1\")",
    ["debug.steps"] = "mb.debug.steps()",

    ["h5.dataset:missing"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {8, 4}})\n"
        .. "set:write(mb.zeros({2, 4}), {1, 2})\nset:missing()",
    ["h5.dataset:place"] = NEW .. "file:create_dataset(\"/data\", {shape = {8, 4}, early = true})"
        .. ":place()",
    ["h5.dataset:show"] = "file = mb.h5.create(\"new.h5\", {overwrite = true})\n"
        .. "file:write(\"/data\", mb.zeros({1, 8, 4, 6}))\nfile:finish()\n"
        .. "set = mb.h5.open(\"new.h5\"):dataset(\"/data\")\nset:show({2, 3, 4})",
    ["h5.dataset:sources"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {8}})\n"
        .. "set:sources()",
    ["h5.dataset:take"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {8}, "
        .. "dtype = \"u16\"})\nset:take(\"swapped\")",
    ["h5.scratch"] = "file = mb.h5.scratch(\".\")\nfile:write(\"/data\", mb.zeros({4}))",
    ["h5:create_virtual"] = NEW .. "file:write(\"/part\", mb.zeros({4, 8}))\n"
        .. "file:create_virtual(\"/all\", {shape = {4, 8}, sources = {\n"
        .. "    {file = \".\", path = \"/part\", first = 1, last = 4}}})",
    ["h5:make_folder"] = NEW .. "folder = file:make_folder()",
    ["h5:rest"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {4, 8}, early = true})\n"
        .. "file:rest()\nset:write(mb.zeros({4, 8}))",

    ["ledger.record"] = "mb.ledger.record(function() return mb.zeros({64, 64}) + 1 end):print()",
    ["ledger.comparison"] = "f = function() mb.zeros({64}):release() end\n"
        .. "print(mb.ledger.comparison(mb.dry_run(f), mb.ledger(f)))",
    ["ledger.diff"] = "f = function() mb.zeros({64}):release() end\n"
        .. "#mb.ledger.diff(mb.dry_run(f), mb.ledger(f))",
    ["ledger.dry"] = "mb.ledger.dry()",
    ["ledger.found"] = FOUND .. "mb.dry_run(f).peak, mb.ledger(f).peak",
    ["ledger.observe"] = FOUND .. "finds = mb.ledger.observe(f)",
    ["ledger.replay"] = FOUND .. "finds = mb.ledger.observe(f)\n"
        .. "mb.ledger.replay(finds, mb.dry_run, f).peak",

    ["plot.image"] = "mb.plot.image(mb.random({32, 64}), {file = \"image.png\", overwrite = true})",
    ["show.array"] = "mb.show.array(mb.random({32, 64}), {protocol = \"text\"})",
    ["progress.watch"] = "do\n  local _ <close> = mb.progress.watch(\"searching\", "
        .. "{quiet = true})\n  mb.collect()\nend",
    ["progress.section"] = "bar = mb.progress.new(\"work\", {{name = \"read\", count = 10, "
        .. "weight = 1},\n    {name = \"write\", count = 5, weight = 1}}, {quiet = true})\n"
        .. "bar:step(10)\nbar:section(2)\nbar:finish()",
    ["progress.remaining"] = "bar = mb.progress.new(\"slices\", 10, {quiet = true})\nbar:step(5)\n"
        .. "part, seconds = bar:remaining()\nbar:finish()",

    ["recon.center_bounds"] = SCAN .. "mb.recon.center_bounds(scan)",
    ["recon.center_picture"] = SCAN .. "center, how, details = mb.recon.find_center(scan)\n"
        .. "mb.recon.center_picture(\"center.png\", details)",
    ["recon.check_bytes"] = "mb.recon.check_bytes(\"the run\", 4096, 4096)",
    ["recon.chunk"] = SCAN .. SETTINGS
        .. "slices = mb.recon.chunk(scan, mb.device(\"host\"), 1, 2, settings)",
    ["recon.frames"] = SCAN .. SETTINGS
        .. "frames = mb.recon.frames(scan, mb.device(\"host\"), 1, 2, settings)",
    ["recon.slices"] = SCAN .. SETTINGS
        .. "frames = mb.recon.frames(scan, mb.device(\"host\"), 1, 2, settings)\n"
        .. "slices = mb.recon.slices(scan, frames, 1, 2, settings)",
    ["recon.decoded"] = SCAN .. "do local once <close> = mb.recon.decoded(scan) end",
    ["recon.expected_values"] = SCAN .. "kind, text = mb.recon.expected_values(scan)",
    ["recon.find_range"] = SCAN .. "mb.recon.find_range(scan, {center = 31.5, dtype = \"u16\"})",
    ["recon.find_tilt"] = SCAN .. "angle, details = mb.recon.find_tilt(scan)",
    ["recon.range_codes"] = SCAN .. "mb.recon.range_codes(scan, {center = 31.5, dtype = \"u16\", "
        .. "range = {-1, 2}})",
    ["recon.read_shifts"] = SCAN .. "file = io.open(\"shifts.txt\", \"w\")\n"
        .. "file:write((\"0.5 \"):rep(scan.n_angles)):close()\n"
        .. "shifts = mb.recon.read_shifts(scan, \"shifts.txt\")",
    ["recon.reconstruct"] = "volume = mb.recon.reconstruct(mb.random({30, 4, 64}, {low = 0.5}),\n"
        .. "    mb.tomo.angles(30), {center = 31.5, quiet = true})",
    ["recon.settle"] = SCAN .. "plan = mb.recon.settle(scan, mb.recon.plan(scan), {center = 31.5})",
    ["result:carry"] = "out = mb.result.create(\"carried.h5\", {shape = {4, 8, 8}, "
        .. "overwrite = true})\n"
        .. "carrier = mb.stream.carrier({device = \"host\", writing = true, pinned = \"1M\"})\n"
        .. "out:carry(carrier, mb.zeros({4, 8, 8}), 1)\ncarrier:finish()\nout:finish()",

    ["statistics.prefixes"] = (COUNTS:gsub("\n$", "")),
    ["statistics.from_counts"] = COUNTS
        .. "low = mb.histogram(a, {bits = \"low\", prefix = prefixes})\n"
        .. "mb.statistics.from_counts(high, low, percents)",
    ["stream.carrier"] = "carrier = mb.stream.carrier({device = \"host\", pinned = \"1M\"})\n"
        .. "copy = mb.empty({8, 64})\ncarrier:carry(mb.random({8, 64}), copy)\ncarrier:finish()",
    ["stream.open"] = "do local lanes <close> = mb.stream.open({\"host\"}, {pinned = \"1M\"}) end",
    ["stream.pinned_bytes"] = "mb.stream.pinned_bytes({\"host\", \"host:1\"}, {pinned = \"16M\"})",
    ["stream.run"] = (BLOCKS:gsub("\n$", "")),
    ["stream.summary"] = BLOCKS .. "mb.stream.summary(times).bottleneck",
    ["stream.describe"] = BLOCKS .. "print(mb.stream.describe(times))",

    ["system.ask_terminal"] = "mb.system.ask_terminal(\"\\27[c\", 0.5)",
    ["system.call"] = "mb.system.call(error, \"no\")",
    ["system.cancel"] = "mb.system.cancel()\nmb.system.cancel(false)",
    ["system.hold_stop"] = "mb.system.hold_stop(true)\nmb.system.hold_stop(false)",
    ["system.set_home"] = "mb.system.set_home(package.searchpath(\"moonbeam\", package.path)\n"
        .. "    :match(\"^(.*)init\"))",
    ["system.stop_signal"] = "mb.system.stop_signal()",
    ["system.stop_waits"] = "mb.system.stop_waits()",
    ["system.sync_files"] = "mb.system.sync_files(\".\")",
    ["system.sync_folder"] = "mb.system.sync_folder(\".\")",

    ["tiled_deconv.journal"] = "do local journal <close> = mb.tiled_deconv.journal("
        .. "\"sharp.npy\",\n    {inputs = {\"stack.tif\"}}) end",
    ["tiled_deconv.plan"] = TILED
        .. "mb.tiled_deconv.plan(volume, psf, nil, {iterations = 2}).peak",
    ["tiled_deconv.richardson_lucy_volume"] = TILED .. SINK
        .. "mb.tiled_deconv.richardson_lucy_volume(volume, psf, sink, {iterations = 2})",
    ["tiled_deconv.seam"] = VOLUME .. "host, search = mb.device(\"host\"), "
        .. "require(\"moonbeam.tiles.search\")\n"
        .. "axes = search.cut({16, 32, 32}, {16, 32, 32}, {1, 1, 1}, {0, 0, 0}, {2, 2, 2})\n"
        .. "mb.tiled_deconv.seam(volume, axes, host, host)",
    ["tiles.convolve_volume"] = TILED .. SINK .. "mb.tiles.convolve_volume(volume, psf, sink)",

    ["volumes.bytes"] = VOLUME .. "mb.volumes.bytes(volume)",
    ["volumes.complete"] = "file = mb.npy.create(\"new.npy\", {shape = {4, 8}, dtype = \"f32\", "
        .. "overwrite = true})\nmb.volumes.complete(file, mb.zeros({4, 8}))",
    ["volumes.dense_steps"] = "mb.volumes.dense_steps({4, 8, 8}, \"f32\")",
    ["volumes.file_class"] = "class = mb.volumes.file_class({fill = function(self, block, first)\n"
        .. "    block:fill(self.value)\nend})",
    ["volumes.hdf5"] = NEW .. "set = file:create_dataset(\"/data\", {shape = {4, 8, 8}})\n"
        .. "volume = mb.volumes.hdf5(file, set, set.shape, set.dtype)",
    ["volumes.load"] = "all = mb.volumes.load(mb.images.open(\"stack.tif\"), \"host\")",
    ["volumes.load_real"] = "all = mb.volumes.load_real(mb.images.open(\"stack.tif\"), \"host\")",
    ["volumes.map"] = VOLUME .. "squares = mb.volumes.map(volume, \"f32\", "
        .. "function(a) return a * a end)",
    ["volumes.pages"] = "mb.npy.write(\"pages.npy\", mb.random({8, 4, 4}), {overwrite = true})\n"
        .. "few = mb.volumes.pages(mb.images.open \"pages.npy\", {1, 2, 5})\nfew.shape",
    ["volumes.planned"] = "volume = mb.volumes.planned({4, 8, 8}, \"f32\")",
    ["volumes.raw"] = "volume = mb.volumes.raw({shape = {4, 8, 8}, dtype = \"f32\", offset = 128})",
    ["volumes.real"] = "mb.volumes.real(mb.zeros({4, 8}, {dtype = \"i32\"}))",
    ["volumes.scratch"] = "volume = mb.volumes.scratch(\"result.npy\", {4, 8, 8}, \"f32\")",
    ["volumes.store"] = SINK .. "mb.volumes.store(sink, mb.ones({16, 32, 32}))",
    ["volumes.watch"] = SINK .. "watched = mb.volumes.watch(sink)\n"
        .. "mb.volumes.store(watched, mb.ones({16, 32, 32}))\nwatched.greatest",
    ["volumes.writer_class"] = "class = mb.volumes.writer_class({volume = function(self)\n"
        .. "    return self.target\nend})",
    ["zarr.open"] = "out = mb.result.create(\"made.zarr\", {shape = {4, 8, 8}, overwrite = true})\n"
        .. "out:write(mb.zeros({4, 8, 8}), 1)\nout:finish()\nvolume = mb.zarr.open(\"made.zarr\")",
}
