-- import_recipe: configurations of nabu and process lists of HTTomo become recipes; what has no
-- counterpart is named; hostile files end in one line.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local recipe_text = require "moonbeam.pipeline.recipe"

local shell

local function run(name, text, more)
    files.write(shell:path(name), text)
    os.remove(shell:path "made.lua")
    return commands.run("import_recipe.lua", ("%s -o %s %s"):format(shell:path(name),
        shell:path "made.lua", more or ""))
end

-- The steps of the recipe that was made, and the text of its file.
local function made()
    local text = files.read(shell:path "made.lua")
    return recipe_text.parse(text, "made.lua"), text
end

local NABU <const> = [[
# made by hand
[dataset]
location = scan.nx
hdf5_entry =
overwrite_metadata = energy = 19 kev; pixel_size = 1.6 um; distance = 0.05 m
[preproc]
flatfield = 1
ccd_filter_enabled = 1
ccd_filter_threshold = 0.05
double_flatfield = 1
dff_sigma = 3
take_logarithm = 1
sino_rings_correction = munch
sino_rings_options = sigma=1.5 ; levels=8 ; padding=True
[phase]
method = paganin
delta_beta = 300
unsharp_coeff = 3
unsharp_sigma = 0.8
[reconstruction]
method = FBP
rotation_axis_position = 23.5
enable_halftomo = 1
start_z = 1
end_z = 2
clip_outer_circle = 1
[output]
location = /data/out/
file_prefix = rec_scan
[resources]
gpus = 2
]]

local HTTOMO <const> = [[
# a comment
- method: standard_tomo
  module_path: httomo.data.hdf.loaders
  parameters:
    data_path: auto
    rotation_angles: auto
    preview:
      detector_x:   # a comment behind a key
        start: null
        stop: null
      detector_y:
        start: 3
        stop: 6
    flats:
      file: /data/flats.h5
      data_path: /1-Tomo/data
- method: remove_outlier
  module_path: httomolibgpu.misc.corr
  parameters: {kernel_size: 3, axis: auto, dif: 0.1}
- method: dark_flat_field_correction
  module_path: httomolibgpu.prep.normalize
  parameters:
    flats_multiplier: 1.0
    upper_bound: null
- method: find_center_vo
  module_path: httomolibgpu.recon.rotation
  parameters:
    ind: mid
    smin: -50
    smax: 50
    srad: 6.0
  id: centering
  side_outputs:
    cor: centre_of_rotation
- method: paganin_filter
  module_path: httomolibgpu.prep.phase
  parameters:
    pixel_size: 1.28
    distance: 1.0
    energy: 53.0
    ratio_delta_beta: !Sweep
    - 50
    - 250
- method: FBP3d_tomobar
  module_path: httomolibgpu.recon.algorithm
  parameters:
    center: ${{centering.side_outputs.centre_of_rotation}}
    filter_freq_cutoff: 0.5
    recon_mask_radius: 0.95
- method: calculate_stats
  module_path: httomo.methods
  parameters: {}
- method: rescale_to_int
  module_path: httomolib.misc.rescale
  parameters:
    perc_range_min: 0.0
    perc_range_max: 100.0
    bits: 8
]]

describe("import_recipe", function()
    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5"
            .. " --size 48 --rows 3 --angles 70 --format nxtomo --quiet")
    end)

    teardown(function()
        shell:remove()
    end)

    it("makes the recipe of a nabu.conf, in nabu's order and with its presets", function()
        local status, text = run("nabu.conf", NABU)
        assert.equal(0, status, text)
        local recipe, source = made()
        assert.same({
            {"flat_field", preset = "nabu"},
            {"dezinger", preset = "nabu", threshold = 0.05},
            {"double_flat_field", preset = "nabu", sigma = 3},
            {"half_acquisition"},
            {"center", column = 23.5},
            {"paganin", preset = "nabu", delta_beta = 300, energy = 19e3, distance = 0.05,
                pixel_size = 1.6e-6, padding = "edge"},
            {"unsharp", preset = "nabu", coefficient = 3, sigma = 0.8, method = "gaussian"},
            {"minus_log", min = 1e-6, max = 10},
            {"stripes_wavelet", preset = "nabu", sigma = 1.5, level = 8},
            {"fbp", preset = "nabu", cutoff = 1, padding = "edge", circle = 1,
                filter = "ram-lak"},
        }, recipe)
        assert.matches("\n%-%- moonbeam reconstruct scan.nx %-%-recipe [^\n]*made.lua %-%-rows 2:3 "
            .. "%-%-output /data/out/rec_scan.hdf5\n", source)
    end)

    it("makes the recipe of a process list of HTTomo, sweeps for the command line", function()
        local status, text = run("list.yaml", HTTOMO)
        assert.equal(0, status, text)
        local recipe, source = made()
        assert.same({
            {"crop", rows = {4, 6}},
            {"dezinger", preset = "httomo", size = {3, 3, 3}, threshold = 0.1},
            {"flat_field", preset = "httomo"},
            {"center", preset = "httomo", range = 50, radius = 6.0},
            {"paganin", preset = "httomo", delta_beta = 50, distance = 1.0, energy = 53e3,
                pixel_size = 1.28e-6},
            {"fbp", preset = "httomo", cutoff = 2.0, circle = 0.95},
            {"rescale", preset = "httomo", dtype = "uint8", percent_of_range = {0.0, 100.0}},
        }, recipe)
        assert.matches("%-%-flats%-path /data/flats.h5:/1%-Tomo/data %-%-sweep "
            .. "paganin.delta_beta=50,250\n", source)
    end)

    it("searches the axis behind the flat field, as HTTomo does wherever the method stands",
        function()
        local status, text = run("early.yaml", [[
- method: find_center_vo
  parameters: {ind: mid}
- method: remove_outlier
  parameters: {dif: 0.1}
- method: normalize
  parameters: {minus_log: true}
- method: FBP3d_tomobar
]])
        assert.equal(0, status, text)
        local recipe, source = made()
        local names = {}
        for i, step in ipairs(recipe) do
            names[i] = type(step) == "table" and step[1] or step
        end
        assert.same({"dezinger", "flat_field", "center", "minus_log", "fbp"}, names)
        assert.matches("\n%-%- the axis is searched in corrected frames", source)
        commands.must("reconstruct.lua", ("%s --recipe %s -o %s -q"):format(shell:path "scan.h5",
            shell:path "made.lua", shell:path "early.h5"))
    end)

    it("knows the methods of HTTomo that are a step by other names", function()
        local status, text = run("names.yaml", [[
- method: raven_filter
  parameters: {uvalue: 20, nvalue: 4, vvalue: 2, pad_x: word, pad_y: 20}
- method: remove_stripe_fw
  parameters: {sigma: 1.5, wname: db5, level: 7}
- method: total_variation_PD
  parameters: {regularisation_parameter: 0.01, nonneg: true, isotropic: true}
- method: median_filter
  parameters: {kernel_size: 3, axis: auto, glitter: 9}
- method: data_checker
  parameters: {verbosity: true}
]])
        assert.equal(3, status)
        assert.equal("no counterpart: median_filter: glitter = 9\n",
            text:match "no counterpart: .-\n")
        assert.equal(1, select(2, text:gsub("no counterpart", "")))
        assert.same({
            {"stripes_raven", preset = "httomo", cutoff = 20, order = 4, rows = 2},
            {"stripes_wavelet", preset = "httomo", sigma = 1.5, wavelet = "db5", level = 7},
            {"total_variation", preset = "httomo", lambda = 0.01, nonnegative = true},
            {"median", size = 3},
        }, made())
    end)

    it("makes recipes that run", function()
        run("run.conf", "[preproc]\nflatfield = 1\n[reconstruction]\n"
            .. "rotation_axis_position = 23.5\n")
        commands.must("reconstruct.lua", ("%s --recipe %s -o %s -q"):format(shell:path "scan.h5",
            shell:path "made.lua", shell:path "v.h5"))
        run("run.yml", "- method: normalize\n- method: minus_log\n- method: FBP3d_tomobar\n"
            .. "  parameters:\n    center: 23.5\n")
        commands.must("reconstruct.lua", ("%s --recipe %s -o %s -q"):format(shell:path "scan.h5",
            shell:path "made.lua", shell:path "w.h5"))
    end)

    it("names what has no counterpart, with status 3, and still writes the recipe", function()
        local status, text = run("lost.conf", NABU .. "[pipeline]\nsparkle = 7\n"
            .. "[reconstruction]\nmethod2 = 1\nangle_offset = 3\n")
        assert.equal(3, status)
        assert.matches("no counterpart: pipeline.sparkle = 7", text)
        assert.matches("no counterpart: reconstruction.angle_offset", text)
        assert.equal(10, #made())
        status, text = run("lost.yaml", HTTOMO .. "- method: magic_touch\n"
            .. "- method: remove_all_stripe\n  parameters:\n    dim: 2\n    glitter: 9\n")
        assert.equal(3, status)
        assert.matches("no counterpart: method magic_touch\n", text)
        assert.matches("no counterpart: remove_all_stripe: dim = 2\n", text)
        assert.matches("no counterpart: remove_all_stripe: glitter = 9\n", text)
        assert.equal("stripes_all", made()[8][1])
        -- a value that our step does not take
        status, text = run("range.conf", (NABU:gsub("dff_sigma = 3", "dff_sigma = -3")))
        assert.equal(3, status)
        assert.matches("no counterpart: double_flat_field: sigma is %-3", text)
    end)

    it("ends with one line for files that are none of these", function()
        local deep = {}
        for i = 1, 40 do
            deep[i] = (" "):rep(2 * i) .. "a:\n"
        end
        for _, case in ipairs {
            {"x.conf", "", "this is no nabu.conf"},
            {"x.conf", "key = 1\n", "x.conf:1: 'key' stands before the first"},
            {"x.conf", "[dataset]\nnonsense\n", "x.conf:2: 'nonsense' is neither"},
            {"x.conf", "[dataset]\nbinning = two\n", "x.conf:2: dataset.binning is 'two'"},
            {"x.conf", "[dataset]\na = 1\na = 2\n", "x.conf:3: 'a' is given twice"},
            {"x.conf", "[dataset]\n\0", "is not UTF%-8 text"},
            {"x.conf", "[dataset]\n\xff\xfe = 1", "is not UTF%-8 text"},
            {"x.conf", ("[dataset]\n" .. ("x"):rep(2 << 20)), "has %d+ bytes"},
            {"x.conf", "[" .. ("["):rep(100000), "neither"},
            {"x.yaml", "", "the file is empty"},
            {"x.yaml", "just text", "is not key: value"},
            {"x.yaml", "a: 1\n", "is no process list"},
            {"x.yaml", "- 5\n", "item 1 of the list is no method"},
            {"x.yaml", "- method: [1\n", "is not closed"},
            {"x.yaml", "- method: &a b\n", "this part of YAML is not read"},
            {"x.yaml", "- method: *a\n", "this part of YAML is not read"},
            {"x.yaml", "- method: |\n    text\n", "this part of YAML is not read"},
            {"x.yaml", "- method: a\n   parameters: 1\n", "indented more"},
            {"x.yaml", "- method: a\n  method: b\n", "given twice"},
            {"x.yaml", "- method: a\n  parameters: 7\n", "are no mapping"},
            {"x.yaml", "\t- method: a\n", "indented by a tab"},
            {"x.yaml", "- a: 1\n---\n- b: 2\n", "second document"},
            {"x.yaml", table.concat(deep), "nested more than 16"},
            {"x.yaml", "- a: " .. ("["):rep(5000), "nested more than 16"},
            {"x.yaml", "- a: [" .. ("1,"):rep(30000) .. "1]", "more than 20000 values"},
            {"x.yaml", "- 'open\n", "one pair of quotes"},
            {"x.txt", "anything", "give %-%-from nabu or %-%-from httomo"},
        } do
            local status, text = run(case[1], case[2])
            assert.is_true(status == 1 or status == 2, text)
            assert.matches("^import_recipe: [^\n]*" .. case[3] .. "[^\n]*\n$", text)
            assert.is_false(commands.exists(shell:path "made.lua"))
        end
        local status, text = commands.run("import_recipe.lua", shell:path "none.conf")
        assert.equal(1, status)
        assert.matches("^import_recipe: there is no file '[^\n]*none.conf'; check the name and the "
            .. "current folder\n$", text)
    end)

    it("reads a mutilated file in time, whatever is left of it", function()
        math.randomseed(7)
        for _ = 1, 25 do
            local whole = math.random(2) == 1 and HTTOMO or NABU
            local cut = whole:sub(1, math.random(#whole)):gsub("%C", function(letter)
                return math.random(60) == 1 and ("[]{}:-!'\"#\t"):sub(math.random(11), -1):sub(1, 1)
                    or letter
            end)
            local status, text = run(whole == NABU and "m.conf" or "m.yaml", cut)
            assert.is_true(status == 0 or status == 1 or status == 3, text .. cut)
            assert.is_nil(text:find("stack traceback", 1, true), text .. cut)
        end
    end)
end)
