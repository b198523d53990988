-- Chains: what binds, with which kinds, shapes and geometry, and what is refused, with the step's
-- name and what to do.

require "moonbeam"
local helper = require "spec.helper"
local catalog = require "moonbeam.pipeline.catalog"
local chain = require "moonbeam.pipeline.chain"
local declared = require "moonbeam.internal.declared"
local geometry = require "moonbeam.pipeline.geometry"
local recipe = require "moonbeam.pipeline.recipe"

-- Steps of one's own, as beamlines have them.
local function nothing() end

local OWN = {
    {name = "retrieve", summary = "Phase retrieval.", options = declared.options(
        {"energy", "number", "of the X-rays", unit = "eV", min = 1e3, max = 1e6, required = true},
        {"distance", "number", "from sample to detector", unit = "m", above = 0, max = 20,
            required = true},
        {"delta_beta", "number", "ratio of delta and beta", min = 1, max = 1e5, default = 100}),
        takes = {quantity = "transmission", layout = "frames"},
        gives = {quantity = "line integrals", layout = "frames"}, cuts = {"frames"}, run = nothing},
    {name = "stripes", summary = "Takes ring artifacts out.", options = declared.options(
        {"method", "choice", "the method", choices = {"vo", "fw"}, default = "vo"},
        {"size", "count", "width of the median", unit = "px", min = 1, max = 1001, default = 21}),
        presets = {httomo = {method = "vo", size = 61}, tomopy = {method = "fw"}},
        takes = {quantity = "line integrals", layout = "frames"}, cuts = {"rows"}, run = nothing},
    {name = "despeckle", summary = "Takes outliers out.", options = declared.options(
        {"size", "count", "odd", min = 3, max = 31, default = 3}),
        takes = {quantity = {"counts", "transmission"}, layout = "frames", dtypes = "any"},
        gives = {dtype = "same"}, run = nothing},
    {name = "rings", summary = "Takes rings out of slices.",
        takes = {quantity = "attenuation", layout = "slices"}, run = nothing},
    {name = "breaks", summary = "Has a mistake.",
        takes = {quantity = "any", layout = "any"}, run = nothing,
        shape = function(options) return options.missing.shape end},
}

-- A scan that nobody can read: 180 projections over half a turn, 64 rows, 96 columns.
local function scan_of(changes)
    local scan = {n_angles = 180, rows = 64, cols = 96, dtype = "u16", n_flats = 10, n_darks = 10,
        angles = {}, pixel_size = 1e-6}
    for name, value in pairs(changes) do
        scan[name] = value
    end
    for i = 1, scan.n_angles do
        scan.angles[i] = (i - 1) * (scan.turn or math.pi) / scan.n_angles
    end
    return scan
end

-- Binds a recipe: its text without the outer braces, changes of the scan (with input), options.
local function bind(text, changes, options)
    options = options or {}
    options.catalog = options.catalog or catalog.new(nil, OWN)
    changes = changes or {}
    return chain.bind(recipe.parse("{" .. text .. "}"),
        chain.source_of(scan_of(changes), changes), options)
end

local WHOLE <const> = {turn = 2 * math.pi}
local LINES <const> = {n_flats = 0, n_darks = 0, input = "line integrals"}
local BARE <const> = {n_flats = 0, n_darks = 0}
local HEAD <const> = "'flat_field', 'minus_log', "
local SLICES <const> = HEAD .. "'center', 'fbp'"

-- Recipe, then parts of the message; `scan`: changes of the scan, `options`: of chain.bind.
local REFUSED = {
    -- recipes
    {"", "pipeline: the recipe is empty; give its steps, such as {\"flat_field\""},
    {"'flat_feld'", "pipeline: there is no step 'flat_feld'; did you mean 'flat_field'?"},
    {"'os.execute'", "pipeline: there is no step 'os.execute'"},
    {"'../steps/fbp'", "pipeline: there is no step '../steps/fbp'"},
    {"'qqqqqqqqqqqq'", "the steps are ", "crop, ", "steps of your own come from --steps FILE.lua"},
    -- what the scan starts with
    {"'minus_log'", "pipeline: the scan has no flats and no darks", "give the option input ('transmission' or 'line "
        .. "integrals')", scan = BARE},
    {"'flat_field'", "pipeline: input is \"counts\", but the scan has no flats and no darks",
        scan = {n_flats = 0, n_darks = 0, input = "counts"}},
    {"'flat_field'", "pipeline: input is \"transmision\"", "did you mean \"transmission\"?",
        scan = {input = "transmision"}},
    {"'flat_field'", "step flat_field: it takes counts, but the data are line integrals as input = "
        .. "\"line integrals\" says; remove it", scan = LINES},
    {"'minus_log'", "step minus_log: it takes transmission, but the data are line integrals",
        "remove it, or say what the scan's values are: input = \"transmission\"", scan = LINES},
    -- kinds
    {HEAD .. "'minus_log'", "step minus_log#2: it takes transmission, but the data are line "
        .. "integrals since step minus_log; step minus_log has already done it; remove one of the "
        .. "two"},
    {"'flat_field', 'flat_field'", "step flat_field#2: it takes counts, but the data are "
        .. "transmission since step flat_field", "step flat_field has already done it"},
    {"'minus_log'", "step minus_log: it takes transmission, but the data are counts as the scan "
        .. "has flats or darks; put \"flat_field\" before it"},
    {"{'fbp', center = 40}", "step fbp: it takes line integrals or phase, but the data are counts",
        "put \"flat_field\" and \"minus_log\" before it"},
    {"'flat_field', {'fbp', center = 40}", "step fbp: it takes line integrals or phase, but the "
        .. "data are transmission since step flat_field; put \"minus_log\" before it"},
    {HEAD .. "{'retrieve', energy = 25e3, distance = 0.05}", "step retrieve: it takes transmission, "
        .. "but the data are line integrals since step minus_log; move it before step minus_log"},
    {"'flat_field', {'retrieve', energy = 25e3, distance = 0.05}, 'minus_log'", "step minus_log: it "
        .. "takes transmission, but the data are line integrals since step retrieve; move it before "
        .. "step retrieve"},
    {"{'retrieve', energy = 25e3, distance = 0.05}", "step retrieve: it takes transmission, but the "
        .. "data are counts", "put \"flat_field\" before it"},
    {"'flat_field', 'stripes'", "step stripes: it takes line integrals, but the data are "
        .. "transmission since step flat_field; put \"minus_log\" before it"},
    {SLICES .. ", 'stripes'", "step stripes: it takes frames, but the data are slices since step "
        .. "fbp; move it before step fbp"},
    {SLICES .. ", 'center'", "step center#2: step center already finds the center"},
    {HEAD .. "{'fbp', center = 40}, 'center'", "step center: it takes frames, but the data are "
        .. "slices since step fbp; move it before step fbp"},
    {SLICES .. ", 'fourier'", "step fourier: it takes frames, but the data are slices since step "
        .. "fbp; move it before step fbp"},
    {SLICES .. ", {'crop', rows = {1, 2}}", "step crop: it takes frames, but the data are slices "
        .. "since step fbp; move it before step fbp"},
    {HEAD .. "'rings'", "step rings: it takes slices, but the data are frames as the scan has "
        .. "them; put \"fbp\" before it"},
    {HEAD .. "{'rescale', dtype = 'uint8', range = {0, 1}}, {'fbp', center = 40}",
        "step fbp: it takes line integrals or phase, but the data are scaled since step rescale; "
        .. "move it before step rescale"},
    {SLICES .. ", {'rescale', dtype = 'uint8', range = {0, 1}}, "
        .. "{'rescale', dtype = 'uint8', range = {0, 1}}",
        "step rescale#2: step rescale already finds the range; remove one of the two"},
    {HEAD .. "'despeckle'", "step despeckle: it takes counts or transmission", "move it before step "
        .. "minus_log"},
    {"'flat_field', {'vertical_shift', shifts = {1}}", "step vertical_shift: it takes line "
        .. "integrals or phase", "put \"minus_log\" before it"},
    {"'center'", "step center: it takes transmission, line integrals or phase", "put "
        .. "\"flat_field\" before it"},
    -- the axis
    {HEAD .. "'fbp'", "step fbp: center is not known; put \"center\" before it, or give center = "
        .. "..., the rotation axis: 0-based column of the scan"},
    {HEAD .. "'fourier', 'center'", "step fourier: center is not known; put \"center\" before it"},
    {HEAD .. "'center', {'fbp', center = 40}", "step fbp: center = 40 is given, but step center "
        .. "finds it too; remove one of the two"},
    {"'flat_field', 'center', {'center', column = 3}", "step center#2: step center already finds the "
        .. "center; remove one of the two"},
    {HEAD .. "{'fbp', center = 96}", "step fbp: center is 96; the detector has columns 0 to 95"},
    {"'flat_field', {'center', column = -1}", "step center: column is -1; the detector has columns "
        .. "0 to 95"},
    {HEAD .. "{'fbp', center = 'auto'}", "step fbp: center is the string 'auto'; it must be a "
        .. "number (px)"},
    -- units
    {"{'tilt', angle = 5}", "step tilt: angle is 5; it must be a number between -0.785398 and "
        .. "0.785398 (rad); is it in degrees? 5 degrees are 0.0872665 rad"},
    {"{'select', angles = {0, 90}}", "step select: angles is {0, 90}; its element 2 is 90; it must "
        .. "be a number from -12.5664 to 12.5664 (rad); is it in degrees? 90 degrees are 1.5708"},
    {"{'select', angles = {4, 10}}", "step select: no projections remain: the angles of the scan "
        .. "are 0 to 3.12414 rad; is it in degrees? {4, 10} degrees are {0.0698132, 0.174533} rad"},
    {"'flat_field', {'retrieve', energy = 25, distance = 0.05}", "step retrieve: energy is 25; it "
        .. "must be a number from 1000 to 1e+06 (eV); is it in keV? 25 keV are 25000 eV"},
    {"'flat_field', {'retrieve', energy = 25e3, distance = 50}", "step retrieve: distance is 50; it "
        .. "must be a number", "is it in mm? 50 mm are 0.05 m"},
    {"'flat_field', {'retrieve', distance = 0.05}", "step retrieve: energy is missing; give energy = "
        .. "..., of the X-rays (eV)"},
    -- options
    {SLICES:gsub("'fbp'", "{'fbp', filtr = 'hann'}"), "step fbp: unknown option 'filtr'; did you "
        .. "mean 'filter'?"},
    {SLICES:gsub("'fbp'", "{'fbp', filter = 'han'}"), "step fbp: filter is the string 'han'; give "
        .. "ram-lak, shepp-logan", "did you mean 'hann'?"},
    {SLICES:gsub("'fbp'", "{'fbp', cutoff = 5}"), "step fbp: cutoff is 5; it must be a number from "
        .. "1e-06 to 4 (Nyquist frequency)"},
    {SLICES:gsub("'fbp'", "{'fbp', circle = 0.001}"), "step fbp: circle is 0.001, less than a "
        .. "pixel", "0 turns the mask off"},
    {SLICES:gsub("'fbp'", "{'fbp', x = {0, 10}}"), "step fbp: x is {0, 10}; rows, columns and "
        .. "frames count from 1; give {first, last}"},
    {SLICES:gsub("'fbp'", "{'fbp', x = {50, 97}}"), "step fbp: x is {50, 97}; the slices have 96 "
        .. "pixels along x: 1 to 96"},
    {SLICES:gsub("'fbp'", "{'fourier', pairs = 2.5}"), "step fourier: pairs is 2.5; it must be a "
        .. "whole number from 0 to 8"},
    {SLICES:gsub("'fbp'", "{'fourier', weights = {1, 2}}"), "step fourier: weights has 2 numbers; "
        .. "there are 180 projections: give one for each"},
    {"{'half_acquisition', angle = 1}", "step half_acquisition: unknown option 'angle'; there are "
        .. "when", scan = WHOLE},
    {HEAD .. "{'stripes', preset = 'htomo'}", "step stripes: preset is the string 'htomo'; there "
        .. "are httomo, tomopy; did you mean 'httomo'?"},
    {"{'select', preset = 'x'}", "step select: preset is the string 'x'; the step has none"},
    {"{'flat_field', mode = true}", "step flat_field: mode is true; give mean, median"},
    {"{'flat_field', floor = '1'}", "step flat_field: floor is the string '1'; it must be a number"},
    -- extents
    {"{'crop', columns = {10, 200}}", "step crop: columns are 10 to 200; there are 1 to 96"},
    {"{'crop', rows = {20, 40}}, {'crop', rows = {5, 30}}", "step crop#2: rows are 5 to 30; there "
        .. "are 20 to 40"},
    {"{'crop', rows = {40, 20}}", "step crop: rows is {40, 20}; its first number, 40, is larger "
        .. "than its last, 20"},
    {"{'crop', rows = {-1, 20}}", "step crop: rows are 64 to 20 holds nothing"},
    {"'crop'", "step crop: it keeps everything; give rows = {first, last} or columns"},
    {"'select'", "step select: it keeps everything; give angles, frames, every or bad"},
    {"{'select', frames = {10, 190}}", "step select: frames are 10 to 190; the scan has "
        .. "projections 1 to 180"},
    {"{'select', bad = {181}}", "step select: bad names projection 181; the scan has 1 to 180"},
    {"{'select', bad = {1.5}}", "step select: bad is {1.5}; its element 1 is 1.5; it must be a "
        .. "whole number"},
    {"{'select', every = 0}", "step select: every is 0; it must be a whole number from 1"},
    {HEAD .. "{'vertical_shift', shifts = {1, 2}}", "step vertical_shift: shifts has 2 numbers; "
        .. "the scan has 180 projections: give one for each"},
    {HEAD .. "{'vertical_shift', shifts = true}", "step vertical_shift: shifts is true; give a "
        .. "table of numbers", "or the name of a file"},
    {"'flat_field', {'gaussian', sigma = {1, 2, 3}}", "step gaussian: sigma has 3 numbers; give "
        .. "one, {row, column} for frames"},
    -- half acquisition and tilt
    {"'half_acquisition'", "step half_acquisition: half acquisition needs a whole turn; the angles "
        .. "cover 179 degrees"},
    {"'half_acquisition', {'tilt', angle = 0.01}", "step tilt: it does not go with step "
        .. "half_acquisition", "remove one of the two", scan = WHOLE},
    {"'flat_field', 'center', 'half_acquisition'", "step half_acquisition: the search for the axis "
        .. "must know about it; move it before step center", scan = WHOLE},
    {"'half_acquisition', " .. HEAD .. "'center', 'fourier'", "step fourier: it does not support half "
        .. "acquisition; use step fbp instead", scan = WHOLE},
    {"{'tilt', angle = 0.01}, " .. HEAD .. "'center', 'fourier'", "step fourier: it does not support a "
        .. "leaning axis (step tilt); use step fbp instead"},
    {"{'tilt', angle = 0.01}, {'tilt', angle = 0.01}", "step tilt#2: the axis leans already"},
    -- the end
    {SLICES .. ", {'rescale', dtype = 'uint8'}", "step rescale: uint8 needs a range: give range = "
        .. "{low, high}, percentiles = {0.1, 99.9} or sample = 3"},
    {SLICES .. ", {'rescale', dtype = 'u8', range = {0, 1}}", "step rescale: dtype is the string "
        .. "'u8'", "did you mean 'uint8'?"},
    {SLICES .. ", {'rescale', dtype = 'uint8', percentiles = {99.9, 0.1}}", "step rescale: "
        .. "percentiles is {99.9, 0.1}; its first number, 99.9, must be less than its second, 0.1"},
    {SLICES .. ", {'rescale', dtype = 'uint8', percentiles = {1, 101}}", "step rescale: "
        .. "percentiles is {1, 101}; its element 2 is 101; it must be a number from 0 to 100 (%)"},
    {SLICES .. ", {'rescale', dtype = 'uint8', range = {0, 1}, sample = 3}", "step rescale: range "
        .. "and sample both give the range; remove one"},
    {SLICES .. ", {'save', file = 'a.h5'}, {'rescale', dtype = 'uint8', range = {0, 1}}",
        "step rescale: it comes after step save, which must be the last step; move save to the "
        .. "end"},
    {SLICES .. ", {'save', file = 'a\\nb'}", "step save: file is the string 'a", "give a text of "
        .. "printable characters"},
    {SLICES .. ", 'save'", "step save: file is missing; give file = ..., the result's name"},
    -- paths
    {HEAD .. "{'vertical_shift', shifts = '../shifts.txt'}", "step vertical_shift: shifts is "
        .. "'../shifts.txt'; paths in a recipe must not leave its folder with '..'"},
    {HEAD .. "{'vertical_shift', shifts = '/etc/passwd'}", "step vertical_shift: shifts is "
        .. "'/etc/passwd'; paths in a recipe are relative to it"},
    {HEAD .. "{'vertical_shift', shifts = '/etc/passwd:/x'}", "step vertical_shift: shifts is "
        .. "'/etc/passwd:/x'; paths in a recipe are relative to it"},
    {HEAD .. "{'vertical_shift', shifts = '~/s.txt'}", "step vertical_shift: shifts is '~/s.txt'; "
        .. "paths in a recipe are relative to it"},
    {HEAD .. "{'vertical_shift', shifts = 's.h5:/x'}", "step vertical_shift: shifts is the file "
        .. "'s.h5:/x', but the recipe is from a result, so its paths are not followed",
        "--trust-paths", options = {foreign = true}},
    {SLICES .. ", {'save', file = 'a/../../b.h5'}", "step save: file is 'a/../../b.h5'; paths in a "
        .. "recipe must not leave"},
    -- a definition with a mistake
    {"'breaks'", "step breaks: its function shape fails:", "attempt to index a nil value"},
}

local GOOD = { -- recipe, quantity, layout, shape, dtype; `scan`
    {"'flat_field'", "transmission", "frames", {180, 64, 96}, "f32"},
    {"'flat_field', 'minus_log'", "line integrals", "frames", {180, 64, 96}, "f32"},
    {"{'crop', rows = {3, 7}}", "counts", "frames", {180, 5, 96}, "u16"},
    {"{'crop', columns = {11, -11}}", "counts", "frames", {180, 64, 76}, "u16"},
    {"{'crop', rows = {-5, -1}, columns = {1, 1}}", "counts", "frames", {180, 5, 1}, "u16"},
    {"{'crop', rows = {11, 50}}, {'crop', rows = {20, 30}}", "counts", "frames", {180, 11, 96},
        "u16"},
    {"{'select', every = 7}", "counts", "frames", {26, 64, 96}, "u16"},
    {"{'select', angles = {0, 1.5707963267948966}}", "counts", "frames", {91, 64, 96}, "u16"},
    {"{'select', bad = {1, 180, 90}}", "counts", "frames", {177, 64, 96}, "u16"},
    {"{'select', frames = {-10, -1}}", "counts", "frames", {10, 64, 96}, "u16"},
    {"{'select', frames = {1, 90}, every = 2, bad = {3}}, {'select', frames = {1, 10}}", "counts",
        "frames", {4, 64, 96}, "u16"},
    {"'despeckle'", "counts", "frames", {180, 64, 96}, "u16"},
    {"'despeckle', 'despeckle', 'flat_field'", "transmission", "frames", {180, 64, 96}, "f32"},
    {"'flat_field', {'gaussian', sigma = 1.5}", "transmission", "frames", {180, 64, 96}, "f32"},
    {"'flat_field', {'gaussian', sigma = {0, 2}}, 'minus_log'", "line integrals", "frames",
        {180, 64, 96}, "f32"},
    {HEAD .. "'stripes'", "line integrals", "frames", {180, 64, 96}, "f32"},
    {HEAD .. "{'stripes', preset = 'httomo', method = 'fw'}", "line integrals", "frames",
        {180, 64, 96}, "f32"},
    {"'flat_field', {'retrieve', energy = 25e3, distance = 0.05}", "line integrals", "frames",
        {180, 64, 96}, "f32"},
    {"'flat_field', {'retrieve', energy = 25e3, distance = 0.05}, 'stripes', 'center', 'fbp'",
        "attenuation", "slices", {64, 96, 96}, "f32"},
    {"'flat_field', {'center', column = 40.5}, 'minus_log', 'fbp'", "attenuation", "slices",
        {64, 96, 96}, "f32"},
    {SLICES, "attenuation", "slices", {64, 96, 96}, "f32"},
    {HEAD .. "{'fbp', center = 47.5}", "attenuation", "slices", {64, 96, 96}, "f32"},
    {HEAD .. "'center', 'fourier'", "attenuation", "slices", {64, 96, 96}, "f32"},
    {HEAD .. "{'fourier', center = 0, size = 50}", "attenuation", "slices", {64, 50, 50}, "f32"},
    {HEAD .. "{'fbp', center = 47.5, x = {10, 20}, y = {-5, -1}}", "attenuation", "slices",
        {64, 5, 11}, "f32"},
    {HEAD .. "{'fourier', center = 47.5, x = {40, 40}}", "attenuation", "slices", {64, 96, 1},
        "f32"},
    {"{'crop', columns = {21, 60}}, " .. HEAD .. "{'fbp', center = 47.5}", "attenuation", "slices",
        {64, 40, 40}, "f32"},
    {"{'select', every = 2}, " .. SLICES, "attenuation", "slices", {64, 96, 96}, "f32"},
    {"{'tilt', angle = 0.01}, " .. SLICES, "attenuation", "slices", {64, 96, 96}, "f32"},
    {"'half_acquisition', " .. HEAD .. "{'fbp', center = 10}", "attenuation", "slices",
        {64, 171, 171}, "f32", scan = WHOLE},
    {"'half_acquisition', " .. HEAD .. "{'fbp', center = 80}", "attenuation", "slices",
        {64, 161, 161}, "f32", scan = WHOLE},
    {SLICES .. ", 'rings'", "attenuation", "slices", {64, 96, 96}, "f32"},
    {SLICES .. ", {'gaussian', sigma = {1, 0.5, 0.5}}", "attenuation", "slices", {64, 96, 96},
        "f32"},
    {SLICES .. ", {'rescale', dtype = 'uint8', percentiles = {0.1, 99.9}}", "scaled", "slices",
        {64, 96, 96}, "u8"},
    {SLICES .. ", {'rescale', dtype = 'uint16', range = {-1, 2}}", "scaled", "slices",
        {64, 96, 96}, "u16"},
    {SLICES .. ", {'rescale', dtype = 'uint16', sample = 3}", "scaled", "slices", {64, 96, 96},
        "u16"},
    {SLICES .. ", {'rescale', dtype = 'float16'}", "scaled", "slices", {64, 96, 96}, "f16"},
    {"'flat_field', {'rescale', dtype = 'uint16', range = {0, 2}}", "scaled", "frames",
        {180, 64, 96}, "u16"},
    {SLICES .. ", {'save', file = 'result.h5', slices_per_file = 16}", "attenuation", "slices",
        {64, 96, 96}, "f32"},
    {"{'fbp', center = 40}", "attenuation", "slices", {64, 96, 96}, "f32", scan = LINES},
    {"'minus_log', 'center', 'fourier'", "attenuation", "slices", {64, 96, 96}, "f32",
        scan = {n_flats = 0, n_darks = 0, input = "transmission"}},
    {"'center', 'fbp'", "attenuation", "slices", {64, 96, 96}, "f32",
        scan = {input = "line integrals"}},
}

describe("chain.bind", function()
    it("has as many cases as were asked for", function()
        assert.is_true(#REFUSED >= 60 and #GOOD >= 40)
    end)

    for i, case in ipairs(REFUSED) do
        it(("refuses %d: %s"):format(i, case[1]), function()
            local text, err = helper.failure(bind, case[1], case.scan, case.options)
            for k = 2, #case do
                assert.is_truthy(text:find(case[k], 1, true), text)
            end
            assert.equal("table", type(err))
        end)
    end

    for i, case in ipairs(GOOD) do
        it(("binds %d: %s"):format(i, case[1]), function()
            local bound = bind(case[1], case.scan)
            assert.same({quantity = case[2], layout = case[3]}, bound.kind)
            assert.same(case[4], bound.shape)
            assert.equal(case[5], bound.dtype)
        end)
    end

    it("refuses what is no recipe", function()
        local source = chain.source_of(scan_of {})
        local function refused(part, list)
            assert.is_truthy((helper.failure(chain.bind, list, source)):find(part, 1, true))
        end
        refused("recipe is a string", "fbp")
        refused("entry 1: a step is a name", {7})
        refused("entry 2: a step begins with its name", {"flat_field", {}})
        refused("'fbp' is outside a step", {"flat_field", fbp = true})
        refused("the options of step 'fbp' must have names", {{"fbp", "hann"}})
        refused("option 'sigma' of step 'gaussian' is a table with a metatable; give a plain table",
            {{"gaussian", sigma = setmetatable({}, {__len = function() return 1 << 40 end})}})
    end)

    it("numbers the steps of one name, and says what comes to each and what leaves it", function()
        local bound = bind("'despeckle', {'despeckle', size = 5}, " .. SLICES)
        local first, second, flat, log, center, fbp = table.unpack(bound.steps)
        assert.equal("despeckle", first.label)
        assert.equal("despeckle#2", second.label)
        assert.equal(5, second.options.size)
        assert.equal("u16", flat.dtype_before)
        assert.equal("f32", flat.dtype)
        assert.same({quantity = "counts", layout = "frames"}, flat.kind_before)
        assert.same({quantity = "transmission", layout = "frames"}, flat.kind)
        assert.is_nil(flat.cast)
        assert.equal("minus_log", log.name)
        assert.same({center = "center"}, fbp.values)
        assert.same({180, 64, 96}, center.shape)
        assert.same({180, 64, 96}, fbp.shape_before)
        assert.same({64, 96, 96}, fbp.shape)
    end)

    it("has whole numbers converted before a step that takes float32 alone", function()
        local bound = bind("'minus_log'", {n_flats = 0, n_darks = 0, input = "transmission"})
        assert.equal("f32", bound.steps[1].cast)
        assert.equal("f32", bound.dtype)
    end)

    it("completes options by presets and defaults, and explicit ones win", function()
        local bound = bind(HEAD .. "{'stripes', preset = 'httomo'}, "
            .. "{'stripes', preset = 'httomo', size = 5}, 'stripes'")
        assert.same({method = "vo", size = 61}, bound.steps[3].options)
        assert.same({method = "vo", size = 5}, bound.steps[4].options)
        assert.same({method = "vo", size = 21}, bound.steps[5].options)
    end)

    it("changes neither the recipe nor presets nor defaults", function()
        local list = {"flat_field", {"crop", rows = {1, 2}}}
        local bound = chain.bind(list, chain.source_of(scan_of {}))
        bound.steps[2].options.rows[1] = 7
        assert.same({"flat_field", {"crop", rows = {1, 2}}}, list)
    end)

    it("finds paths beside the recipe", function()
        local bound = bind(SLICES .. ", {'save', file = 'a.h5'}", nil, {folder = "/some/where"})
        assert.equal("/some/where/a.h5", bound.steps[5].options.file)
        bound = bind(SLICES .. ", {'save', file = 'a.h5'}", nil,
            {folder = "/some/where", foreign = true, trust_paths = true})
        assert.equal("/some/where/a.h5", bound.steps[5].options.file)
    end)

    it("lists the sources of steps that are not the library's", function()
        local own = catalog.new(nil, OWN)
        local bound = bind("'despeckle'", nil, {catalog = own})
        assert.equal(1, #bound.recorded)
        assert.is_truthy(table.concat(bound.recorded[1].names, " "):find("despeckle", 1, true))
        assert.same({}, bind("'flat_field'", nil, {catalog = own}).recorded)
    end)
end)

describe("any recipe", function()
    local ODD = {0, 1, -1, 2, 0.5, -0.0, 1e300, 5e-324, 0 / 0, 1 / 0, -1 / 0, math.maxinteger,
        math.mininteger, "", "x", "auto", "\0", "../x", "/etc/passwd", true, false, {}, {1}, {1, 2},
        {2, 1}, {0, 0}, {-1, -1}, {-3, -2}, {1, 2, 3}, {1.5, 2.5}, {"a"}, {a = 1}, {{1}}, {1, "b"},
        {0 / 0, 1}, {math.mininteger, 5}, {1, 1e300}}

    local function value_of(entry)
        if entry.choices and math.random() < 0.5 then
            return entry.choices[math.random(#entry.choices)]
        elseif entry.min and math.random() < 0.4 then
            return entry.min + math.random() * (math.min(entry.max or 10, 100) - entry.min)
        end
        return ODD[math.random(#ODD)]
    end

    local function random_recipe(known, names, input)
        local list = input == "line integrals" and {} or input and {"minus_log"}
            or {"flat_field", "minus_log"}
        if math.random() < 0.5 then
            table.move({"center", "fbp"}, 1, 2, #list + 1, list)
        end
        for _ = 1, math.random(1, 3) do
            local def = known:find(names[math.random(#names)])
            local entry = {def.name}
            for _, option in ipairs(def.options) do
                if math.random() < (option.required and 0.9 or 0.15) then
                    entry[option.name] = value_of(option)
                end
            end
            if entry.angle == "auto" then -- is measured in frames, of which there are none
                entry.angle = 0.1
            end
            table.insert(list, math.random(1, #list + 1), entry)
        end
        return list
    end

    it("of odd values binds to what can be run, or is refused by a step or the pipeline", function()
        local known = catalog.new()
        local names = known:names()
        math.randomseed(11)
        local count = {good = 0, bad = 0}
        for _ = 1, 4000 do
            local input = ({nil, "transmission", "line integrals"})[math.random(0, 3)]
            local scan = {n_angles = math.random(1, 30), rows = math.random(1, 9),
                cols = math.random(1, 20), input = input, turn = math.random(2) * math.pi,
                n_flats = input and 0 or 2, n_darks = 0}
            local list = random_recipe(known, names, input)
            local ok, result = pcall(function()
                return chain.bind(list, chain.source_of(scan_of(scan), scan), {catalog = known})
            end)
            if ok then
                count.good = count.good + 1
                for _, extent in ipairs(result.shape) do
                    assert.equal("integer", math.type(extent))
                    assert.is_true(extent >= 1)
                end
                local text = recipe.text(chain.resolved(result))
                local again = chain.bind(recipe.parse(text), result.source, {catalog = known})
                assert.equal(text, recipe.text(chain.resolved(again)))
            else
                count.bad = count.bad + 1
                local told = tostring(result)
                assert.is_truthy(type(result) == "table"
                    and (result.op == "pipeline" or result.op:find "^step %l"), told)
                assert.is_nil(told:find("definition fails", 1, true), told)
                assert.is_true(#told < 500, told)
            end
        end
        assert.is_true(count.good > 100 and count.bad > 1000, count.good .. " " .. count.bad)
    end)
end)

describe("the geometry of a chain", function()
    it("keeps columns of the scan where they are", function()
        local bound = bind("{'crop', columns = {21, 60}, rows = {5, 14}}, 'flat_field', "
            .. "{'crop', columns = {31, 40}}")
        local g = bound.geometry
        assert.equal(31, g.first_column)
        assert.equal(5, g.first_row)
        assert.equal(10, geometry.element(g, 40))
        assert.equal(40, geometry.column(g, 10))
        assert.equal(1, bound.source.geometry.first_column) -- the scan's is as it was
        assert.equal(21, bound.steps[1].geometry.first_column)
        assert.equal(21, bound.steps[3].geometry_before.first_column)
    end)

    it("knows where elements of several pixels stand", function()
        local g = geometry.with(geometry.of_scan(scan_of {}), {column_step = 4, first_column = 9})
        assert.equal(0, geometry.element(g, 9.5)) -- the middle of columns 8 to 11
        assert.equal(9.5, geometry.column(g, 0))
        assert.same({2, 3}, (geometry.elements({13, 20}, 9, 4, 10, 96)))
        local range, problem = geometry.elements({13, 21}, 9, 4, 10, 96)
        assert.is_nil(range)
        assert.equal("13 to 21 cuts elements of 4 pixels that begin at 9", problem)
    end)

    it("keeps the numbers of projections, their angles and the turn", function()
        local bound = bind("{'select', frames = {1, 90}, every = 30, bad = {31}}", WHOLE)
        assert.same({1, 61}, bound.geometry.frames)
        assert.equal(2 * math.pi * 60 / 180, bound.geometry.angles[2])
        assert.equal("half", bound.geometry.turn)
        assert.equal("whole", bound.source.geometry.turn)
    end)

    it("tells what a step needs for rows or frames of its result", function()
        local bound = bind("{'crop', rows = {11, 50}}, {'select', every = 3}, 'flat_field', "
            .. "{'gaussian', sigma = {2, 0}}")
        local crop, select, _, gaussian = table.unpack(bound.steps)
        local function needs(step, first, last, cut)
            return {step.def.needs(step.options, first, last, step, cut)}
        end
        assert.same({15, 16}, needs(crop, 5, 6, "rows"))
        assert.same({5, 6}, needs(crop, 5, 6, "frames"))
        assert.same({5, 6}, needs(select, 5, 6, "rows"))
        assert.same({13, 16}, needs(select, 5, 6, "frames"))
        assert.same({-3, 14}, needs(gaussian, 5, 6, "rows"))
        assert.same({5, 6}, needs(gaussian, 5, 6, "frames"))
        local shifts = {}
        for i = 1, 180 do
            shifts[i] = i == 7 and -1.5 or i == 8 and 2.25 or 0
        end
        bound = chain.bind({"minus_log", {"vertical_shift", shifts = shifts}},
            chain.source_of(scan_of(BARE), {input = "transmission"}))
        assert.same({8, 15}, needs(bound.steps[2], 10, 12, "rows"))
        assert.same({10, 12}, needs(bound.steps[2], 10, 12, "frames"))
    end)

    it("has shapes of half acquisitions that hold for every axis", function()
        local head = "'half_acquisition', " .. HEAD
        local widest = bind(head .. "'center', 'fbp'", WHOLE).shape
        assert.equal(widest[2], widest[3])
        for center = 0, 95 do
            local bounds = bind(head .. "'center'", WHOLE).steps[4]
            local low, high = table.unpack(bounds.def.bounds(bounds.options, nil, bounds))
            if center >= low and center <= high and math.abs(center - 47.5) > 1 then
                assert.is_true(bind(head .. ("{'fbp', center = %d}"):format(center), WHOLE)
                    .shape[2] <= widest[2])
            end
        end
    end)
end)

describe("a recipe that is changed", function()
    local LIST = {"flat_field", "minus_log", "center", {"fbp", filter = "hann"}, {"gaussian",
        sigma = 1}, {"gaussian", sigma = 2}}

    it("gets another value in a copy", function()
        local changed = chain.with(LIST, "fbp.filter", "ram-lak")
        assert.equal("ram-lak", changed[4].filter)
        assert.equal("hann", LIST[4].filter)
        assert.same({"center", column = 290}, chain.with(LIST, "center.column", 290)[3])
        assert.equal(5, chain.with(LIST, "gaussian#2.sigma", 5)[6].sigma)
        assert.equal(5, chain.with(LIST, "gaussian.sigma", 5)[5].sigma)
    end)

    it("refuses a sweep of what there is not", function()
        local function refused(part, ...)
            local text = helper.failure(chain.with, LIST, ...)
            assert.is_truthy(text:find(part, 1, true), text)
        end
        refused("step fbp: unknown option 'filtr'; did you mean 'filter'?", "fbp.filtr", "hann")
        refused("the recipe has no step 'fpb'; did you mean 'fbp'?", "fpb.filter", "hann")
        refused("the recipe has no step 'gaussian#3'", "gaussian#3.sigma", 1)
        refused("'fbp' does not name an option of a step; write step.option, such as fbp.filter", "fbp", 1)
        refused("step fbp: filter is the string 'x'; give ram-lak", "fbp.filter", "x")
        refused("step fbp: cutoff is the string 'half'; it must be a number", "fbp.cutoff", "half")
    end)

    it("is printed with every default, and reads back as the same chain", function()
        local source = chain.source_of(scan_of {})
        local bound = chain.bind(LIST, source)
        local text = recipe.text(chain.resolved(bound))
        assert.is_truthy(text:find('filter = "hann"', 1, true))
        assert.is_truthy(text:find('padding = "edge"', 1, true))
        local again = chain.bind(recipe.parse(text), source)
        for i, step in ipairs(bound.steps) do
            assert.same(step.options, again.steps[i].options)
        end
        assert.equal(text, recipe.text(chain.resolved(again)))
    end)
end)
