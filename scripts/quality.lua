--- Compares Richardson-Lucy here with that of scikit-image and RedLionfish, where Python has them:
-- simulated samples with truth, light from 0.1 to 1000 photons per voxel. Prints Markdown.
--
-- The error is |G (x - truth)| / |G truth|, G a blur of 1 px, the mean over the seeds.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"

local FOLDER <const> = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/quality/"
local samples = assert(loadfile(FOLDER .. "samples.lua"))()
local LIGHT <const> = {0.1, 1, 10, 100, 1000}
local DEFAULT <const> = 20 -- iterations of moonbeam deconvolve
local PEERS <const> = {"skimage", "skimage-50", "RedLionfish", "RedLionfish-50"}

local options = cli.parse(arg, {
    usage = "scripts/quality.lua [options]",
    summary = "Compares the error of deconvolutions with that of peers, by samples and light.",
    cli.changed(cli.shared.device, {default = "host"}),
    {"seeds", value = "N", type = cli.count, default = 5, doc = "samples of each kind and light"},
    {"size", short = "n", value = "Z,Y,X", type = cli.extents(3), default = {12, 48, 48},
        doc = "extents"},
    {"only", value = "NAME", type = cli.choice(table.unpack(samples.NAMES)),
        doc = "samples of this kind alone"},
    {"python", value = "PROGRAM", default = "build/oracles/bin/python",
        doc = "the Python that has the peers (scripts/setup --oracles)"},
})

local device = cli.device(options)
local psf = samples.psf(device)
local spread = mb.psf.gaussian({7, 7, 7}, {1, 1, 1}, {device = device})
local folder = os.tmpname()
os.remove(folder)
assert(os.execute(("mkdir '%s'"):format(folder)))
local _ <close> = setmetatable({}, {__close = function()
    os.execute(("rm -r '%s'"):format(folder))
end})
mb.npy.write(folder .. "/psf.npy", psf)

local function error_of(result, truth)
    local a <close> = mb.convolution(result, spread, {boundary = "reflect"})
    local b <close> = mb.convolution(truth, spread, {boundary = "reflect"})
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

-- The results of the peers, {name = error}.
local function peers(image, truth)
    mb.npy.write(folder .. "/image.npy", image, {overwrite = true})
    local pipe <close> = assert(io.popen(("'%s' '%speers.py' '%s' 2>/dev/null"):format(
        options.python, FOLDER, folder)))
    local found = {}
    for line in pipe:lines() do
        for _, name in ipairs(PEERS) do
            if line == name then
                local result <close> = mb.npy.read(("%s/%s.npy"):format(folder, name), device)
                found[name] = error_of(result, truth)
            end
        end
    end
    return found
end

local function sharp(image, truth, count)
    local result <close> = mb.deconv.richardson_lucy(image, psf, {iterations = count})
    return error_of(result, truth)
end

-- The errors of one sample by column.
local function row_of(name, light, seed)
    local truth, image = samples.make(name, options.size, light, seed, psf)
    local _ <close> = truth
    local _ <close> = image
    local found = mb.deconv.find_iterations(image, psf, {gain = 1, offset = 0})
    local errors = peers(image, truth)
    errors.image, errors.default = error_of(image, truth), sharp(image, truth, DEFAULT)
    errors.auto, errors.count = sharp(image, truth, found.iterations), found.iterations
    return errors
end

print(("%s, %s; Moonbeam %s; %s voxels, %d seeds\n"):format(device.name, os.date("%Y-%m-%d"),
    mb.version, table.concat(options.size, " x "), options.seeds))
print("| sample | photons | image | default | auto | its iterations | "
    .. table.concat(PEERS, " | ") .. " |\n|---|" .. ("--:|"):rep(5 + #PEERS))
for _, name in ipairs(options.only and {options.only} or samples.NAMES) do
    for _, light in ipairs(LIGHT) do
        local sums = {}
        for seed = 1, options.seeds do
            for key, value in pairs(row_of(name, light, seed)) do
                sums[key] = (sums[key] or 0) + value / options.seeds
            end
        end
        local cells = {name, ("%g"):format(light)}
        for _, key in ipairs {"image", "default", "auto", "count", table.unpack(PEERS)} do
            local form = key == "count" and "%.0f" or "%.3f"
            cells[#cells + 1] = sums[key] and form:format(sums[key]) or ""
        end
        print("| " .. table.concat(cells, " | ") .. " |")
        io.stdout:flush()
    end
end
