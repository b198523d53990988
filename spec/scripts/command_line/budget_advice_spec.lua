-- Budgets that are too small: the error names one with which the whole command runs, and for nine
-- tenths of it there is no plan. Random command lines by a seed; MOONBEAM_RANDOM_BUDGETS=300 makes
-- so many, MOONBEAM_RANDOM_SEED=N others.

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

-- A scan in the folder; returns the words that reconstruct it.
local function scan_words(name)
    local text, status = helper.run_program(("scripts/simulate.lua %s/%s.h5 -n %d --rows %d -a %d "
        .. "-q --overwrite"):format(folder, name, 12 + up_to(40), up_to(9), 12 + up_to(30)))
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
        "-p FOLDER/p.png --center-picture FOLDER/c.png", "--sweep center.column=5:9:1",
        "--sweep median.size=1,3", "--snapshots FOLDER/out"})
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
    local method = one_of {"rl --iterations 3", "rl --iterations 3", "rl --iterations 2 --metrics "
        .. "--curve FOLDER/m.png --snapshots FOLDER/s.png --every 1",
        "rl --iterations 2 --tiles exact", "rl --iterations 2 --tiles blended", "wiener",
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

local KINDS <const> = {flags, deconvolution, recipe, convolution}

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

-- Runs a command line with a budget that is too small, follows the advice, and plans with less.
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
    text, status = run(words .. out .. " --budget " .. typed)
    local predicted, measured = figures(text)
    if status ~= 0 or not predicted or predicted ~= measured or measured > bytes then
        return typed, ("%s%s --budget %s: status %s, %s predicted, %s measured:\n%s"):format(words,
            out, typed, status, predicted, measured, text)
    end
    local less = (" --plan --budget %d"):format(bytes * 9 // 10)
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
            local words = KINDS[(i - 1) % #KINDS + 1]("n" .. i) .. " -d host --progress none"
            local typed, problem = follow(words, words:find("reconstruct", 1, true)
                and one_of {"h5", "tif"} or "tif")
            advised = advised + (typed and 1 or 0)
            wrong[#wrong + 1] = problem and ("%d: %s"):format(i, problem)
        end
        assert.equal("", table.concat(wrong, "\n"))
        assert.is_true(advised >= COUNT // 2)
    end)
end)
