-- Budgets that are too small: the error names one with which the whole command runs, and for nine
-- tenths of it there is no plan. Random command lines by a seed; MOONBEAM_RANDOM_BUDGETS=300 makes
-- so many, MOONBEAM_RANDOM_SEED=N others.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local random_numbers = require "moonbeam.internal.quantities.random_numbers"

local COUNT <const> = tonumber(os.getenv "MOONBEAM_RANDOM_BUDGETS") or 8
local SEED <const> = tonumber(os.getenv "MOONBEAM_RANDOM_SEED") or 30

local number = random_numbers(SEED)

local function up_to(n)
    return 1 + math.floor(number() * n)
end

local function one_of(list)
    return list[up_to(#list)]
end

-- Some of these words, each with this probability.
local function some(list, part)
    local words = {}
    for _, each in ipairs(list) do
        words[#words + 1] = number() < part and each or nil
    end
    return table.concat(words, " ")
end

local folder

local METHODS <const> = {"auto", "fbp", "fourier", "sirt --iterations 3",
    "cgls --iterations 3", "fista --iterations 3", "landweber --iterations 3"}

-- A scan in the folder, with so many rows at least; returns the words that reconstruct it.
local function scan_words(name, rows)
    local text, status = helper.run_program(("scripts/simulate.lua %s/%s.h5 -n %d --rows %d -a %d "
        .. "-q --overwrite"):format(folder, name, 12 + up_to(40), math.max(rows or 1, up_to(9)),
        12 + up_to(30)))
    assert(status == 0, text)
    return ("scripts/reconstruct.lua FOLDER/%s.h5"):format(name)
end

local function flags(name)
    return ("%s -m %s %s"):format(scan_words(name), one_of(METHODS), some({
        "-p FOLDER/p.png", number() < 0.5 and "-c 7" or "--center-picture FOLDER/c.png",
        "--chunk 1", "--output-dtype uint16", "--no-overlap", "--threads 1"}, 0.4))
end

local RECIPE <const> = '{"flat_field", "minus_log", {"median", size = 3}, {"center"}, %s}'

local function recipe(name)
    local path <const> = ("%s/%s.lua"):format(folder, name)
    files.write(path, RECIPE:format(one_of {'{"fbp"}', '{"fourier"}',
        '{"fbp"}, {"rescale", dtype = "uint8", percentiles = {0.1, 99.9}}'}))
    return ("%s --recipe FOLDER/%s.lua %s"):format(scan_words(name), name, one_of {"",
        "-p FOLDER/p.png --center-picture FOLDER/c.png", "--vertical x=5 -p FOLDER/p.png",
        "--sweep center.column=5:9:1", "--sweep median.size=1,3", "--snapshots FOLDER/out"})
end

-- An image and a PSF in the folder; returns their names.
local function image_words(name)
    local shape, kernel = {1 + up_to(7), 6 + up_to(20), 6 + up_to(20)}, {1, up_to(4), up_to(4)}
    local image <close> = mb.random(shape, {seed = up_to(1000), dtype = "u16", low = 50,
        high = 950, device = "host"})
    local psf <close> = mb.random(kernel, {seed = up_to(1000), low = 0.1, high = 1,
        device = "host"})
    mb.images.write(("%s/%s.tif"):format(folder, name), image, {overwrite = true})
    mb.images.write(("%s/%s.npy"):format(folder, name), psf, {overwrite = true})
    return ("FOLDER/%s.tif"):format(name), ("FOLDER/%s.npy"):format(name)
end

local function deconvolution(name)
    local image, psf = image_words(name)
    local tile = ("--tile %d,%d,%d"):format(up_to(8), up_to(26), up_to(26))
    local method = one_of {"rl --iterations 3", "rl --iterations 3", "rl --iterations 2 --metrics "
        .. "--curve FOLDER/m.png --snapshots FOLDER/s.png --every 1",
        "rl --iterations 2 --tiles exact", "rl --iterations 2 --tiles blended",
        "rl --iterations 2 --tiles exact " .. tile, "rl --iterations 3 --tiles blended " .. tile,
        "rl --iterations auto --tiles blended " .. tile, "wiener",
        "tikhonov", "landweber --iterations 3", "gradient_consensus --iterations 3",
        "rl --iterations 2 --acceleration biggs_andrews", "rl --iterations auto --gain 2 --offset 9"}
    return ("scripts/deconvolve.lua %s %s --psf-background none -m %s %s"):format(image, psf, method,
        some({"-p FOLDER/p.png", "--preview-image FOLDER/i.png"}, 0.3))
end

local function convolution(name)
    local image, psf = image_words(name)
    return ("scripts/convolve.lua --image %s --psf %s %s"):format(image, psf, some({
        "-p FOLDER/p.png", one_of {"--boundary circular", "--boundary reflect", "--tiles always"}},
        0.5))
end

-- Spheres that are simulated and convolved.
local function simulation()
    return ("scripts/convolve.lua -n %d,%d,%d --psf-size 3,5,5 --spheres 3 %s %s"):format(
        4 + up_to(8), 6 + up_to(20), 6 + up_to(20), one_of {"", "--keep", "--naive",
            "--mode full --boundary zero", "--boundary reflect -t always", "--boundary zero -t auto",
            "--model born_wolf"}, some({"-p FOLDER/p.png", "--preview-image FOLDER/i.png"}, 0.4))
end

local function psf()
    return ("scripts/psf.lua --na 1.2 --index 1.5 --wavelength 500 --pixel 100 --step 200 "
        .. "--model %s -n %s %s"):format(one_of {"born_wolf", "richards_wolf"}, one_of {"5,9,9", "9,12,17",
            "15,15"}, some({"-p FOLDER/p.png", "--sz 3"}, 0.5):gsub("^%-%-sz 3$", ""))
end

-- An image of beads, or a plane of it.
local function beads(name)
    local shape = {11 + up_to(4), 30 + up_to(9), 30 + up_to(9)}
    local points <close> = mb.zeros(shape, {device = "host"})
    for _, place in ipairs {{6, 9, 9}, {6, 22, 10}, {6, 21, 22}} do
        local point <close> = points:view(table.unpack(place))
        point:fill(1e5)
    end
    local light <close> = mb.gaussian_filter(points, 1.5)
    local noise <close> = mb.random(shape, {seed = up_to(1000), low = 90, high = 110,
        device = "host"})
    local image <close> = light + noise
    local plane <close> = image:view(6, mb.all, mb.all)
    local flat <close> = plane:copy()
    local flats <close> = flat:reshape {shape[2], shape[3]}
    local one_plane = number() < 0.4
    mb.images.write(("%s/%s.npy"):format(folder, name), one_plane and flats or image,
        {overwrite = true})
    return ("scripts/psf.lua --from-beads FOLDER/%s.npy --pixel 100 %s %s"):format(name,
        one_plane and "--size 7,7" or "--size 5,7,7 --step 200", some({"-p FOLDER/p.png",
            "--bead-diameter 170"}, 0.4))
end

-- Two or three volumes with four common slices each, of one object.
local function stitching(name)
    local whole <close> = mb.random({18, 12 + up_to(20), 12 + up_to(20)}, {seed = up_to(1000),
        dtype = "u16", low = 10, high = 60000, device = "host"})
    local words = {}
    for i = 1, 1 + up_to(2) do
        local part <close> = whole:view({6 * i - 5, math.min(18, 6 * i + 4)}, mb.all, mb.all)
        local copy <close> = part:copy()
        local real <close> = copy:cast "f32"
        words[i] = ("%s%d.%s"):format(name, i, one_of {"tif", "npy"})
        mb.images.write(folder .. "/" .. words[i], number() < 0.5 and real or copy,
            {overwrite = true})
        words[i] = "FOLDER/" .. words[i]
    end
    return ("scripts/stitch.lua %s %s"):format(table.concat(words, " "), some({"--lateral auto",
        "--intensity auto", "--overlap 4", "--blend mean"}, 0.4))
end

local function joining(name)
    local words = scan_words(name, 2)
    for k = 1, 2 do
        local text, status = helper.run_program(("%s -o FOLDER/%s.h5 -c 7 -m fbp -d host -q "
            .. "--overwrite --part %d/2"):format(words, name .. "v", k):gsub("FOLDER", folder))
        assert(status == 0, text)
    end
    return ("scripts/join.lua FOLDER/%sv-part-1-of-2.h5 FOLDER/%sv-part-2-of-2.h5"):format(name,
        name)
end

local KINDS <const> = {flags, deconvolution, recipe, convolution, simulation, psf, stitching, beads,
    joining}

-- The words that say where a command works, and those of its plan. The simulation has none: it is
-- called again. What works on the host needs the name of a result for it.
local function places_of(words)
    local again = " -o FOLDER/o.tif --overwrite"
    if words:find "stitch%.lua" or words:find "join%.lua" then
        return " --progress none", " --plan" .. again
    end
    return " -d host --progress none", words:find "convolve%.lua %-n" and again or " --plan"
end

local function run(words)
    return helper.run_program((words:gsub("FOLDER", folder)))
end

-- The last number that a pattern finds.
local function last(text, pattern)
    local found
    for value in text:gmatch(pattern) do
        found = value
    end
    return math.tointeger(found)
end

-- Predicted and measured bytes of a run.
local function figures(text)
    local predicted, measured = text:match "memory +predicted (%d+) bytes, measured (%d+) bytes"
    if predicted then
        return math.tointeger(predicted), math.tointeger(measured)
    end
    return last(text, "\npredicted +peak [^\n]-%((%d+) bytes%)")
        or last(text, "\nmemory +peak [^\n]-%((%d+) bytes%)"),
        last(text, "\nmeasured +peak [^\n]-%((%d+) bytes%)")
end

local ADVICE <const> = "; give %-%-budget (%S+) or more %((%d+) bytes%)"

-- Runs a command line with a budget that is too small, follows the advice, and plans with less. What
-- is typed is rounded up, and the work takes larger blocks where the budget allows them.
-- Returns the advice, nil where the budget was enough, and what is wrong with it.
local function follow(words, extension)
    local out = (" -o FOLDER/o.%s --overwrite"):format(extension)
    local text, status = run(words .. out .. (" --budget %d"):format(one_of {512, 1000,
        1024 * up_to(8)}))
    local typed, bytes = text:match(ADVICE)
    if status == 0 then
        return nil
    elseif not typed then
        return nil, ("%s%s: no advice:\n%s"):format(words, out, text)
    end
    bytes = math.tointeger(bytes)
    for _, given in ipairs {typed, ("%d"):format(bytes)} do
        text, status = run(words .. out .. " --budget " .. given)
        local predicted, measured = figures(text)
        if status ~= 0 or not predicted or predicted ~= measured
            or measured > core.device.bytes(given) then
            return typed, ("%s%s --budget %s: status %s, %s predicted, %s measured:\n%s"):format(
                words, out, given, status, predicted, measured, text)
        elseif measured <= bytes then
            break
        end
    end
    local less = ("%s --budget %d"):format(select(2, places_of(words)), bytes * 9 // 10)
    text, status = run(words .. less)
    if status ~= 1 or math.tointeger((select(2, text:match(ADVICE)))) ~= bytes then
        return typed, ("%s%s, after --budget %s:\n%s"):format(words, less, typed, text)
    end
    return typed
end

describe("an error of a budget", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("names one with which the whole command runs at the first try, and hardly a smaller one", function()
        local advised, wrong = 0, {}
        for i = 1, COUNT do
            local words = KINDS[(i - 1) % #KINDS + 1]("n" .. i)
            words = words .. places_of(words)
            local typed, problem = follow(words, words:find("reconstruct", 1, true)
                and one_of {"h5", "tif"} or "tif")
            advised = advised + (typed and 1 or 0)
            wrong[#wrong + 1] = problem and ("%d: %s"):format(i, problem)
        end
        assert.equal("", table.concat(wrong, "\n"))
        assert.is_true(advised >= COUNT // 2)
    end)

    it("is that of a PSF's picture, too", function()
        for _, words in ipairs {"scripts/psf.lua --na 1.2 --index 1.5 --wavelength 500 --pixel 100 "
            .. "--step 200 -n 5,9,9", beads "pictured" .. " --bead-diameter 170"} do
            local typed, problem = follow(words .. " -p FOLDER/psf.png -d host --progress none",
                "npy")
            assert.equal(nil, problem)
            assert.is_string(typed)
        end
    end)
end)
