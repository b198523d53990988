--- The forward model of a microscope, retold: spheres in a volume, a point spread function, a convolution by FFT, and what
--- every step takes; the naive way beside ours.

local mb = require "moonbeam"
local cli = require "moonbeam.cli"

local function extents(text)
    local list = {}
    for word in text:gmatch("[^,x]+") do
        local n = math.tointeger(tonumber(word))
        if not n or n < 1 then
            return nil, "extents such as 128,512,512"
        end
        list[#list + 1] = n
    end
    if #list ~= 3 then
        return nil, "three extents, z,y,x, such as 128,512,512"
    end
    return list
end

local function numbers(text)
    local list = {}
    for word in text:gmatch("[^,]+") do
        list[#list + 1] = tonumber(word)
        if not list[#list] then
            return nil, "numbers such as 3,1.5,1.5"
        end
    end
    return list
end

local options = cli.parse(arg, {
    usage = "convolve.lua [options]",
    summary = "Simulates an image of spheres, convolves it with a point spread function, and prints the memory of each step.",
    {"size", short = "n", value = "Z,Y,X", type = extents, default = {128, 512, 512}, doc = "extents of the image"},
    {"spheres", value = "N", type = cli.count, default = 40, doc = "how many"},
    {"psf", value = "FILE", doc = ".npy file of the PSF (default: a Gaussian)"},
    {"psf-size", value = "Z,Y,X", type = extents, default = {33, 33, 33}, doc = "extents of the Gaussian"},
    {"sigma", value = "Z,Y,X", type = numbers, default = {6, 2, 2}, doc = "its standard deviations in px"},
    {"boundary", short = "b", value = "NAME", type = cli.choice("circular", "zero", "reflect", "mirror", "replicate"),
        default = "circular", doc = "what lies beyond the edges"},
    {"mode", short = "m", value = "NAME", type = cli.choice("same", "full", "valid"), default = "same",
        doc = "extents of the result"},
    {"naive", doc = "one array per step, nothing reused: padded PSF, shifted PSF, spectra, product, result"},
    {"keep", doc = "keep the image"},
    {"tiles", doc = "in overlapping tiles that fit the budget (not circular); the result is the same"},
    {"device", short = "d", value = "ID", default = "auto", doc = "host, cuda:0, ...; auto takes a GPU where there is one"},
    {"budget", value = "SIZE", type = cli.bytes, doc = "memory to use at most, e.g. 1G: run out of it on purpose"},
    {"png", short = "p", value = "FILE", doc = "maximum projections of the result: XY, ZY, XZ"},
    {"png-image", value = "FILE", doc = "the same of the image"},
    {"sz", value = "N", type = cli.count, default = 1, doc = "stretch of z in the pictures"},
    {"gamma", value = "G", type = cli.number, default = 1.5, doc = "of the pictures; above 1 is brighter"},
    {"output", short = "o", value = "FILE", doc = "write the result as .npy"},
    {"seed", value = "N", type = cli.count, default = 1, doc = "of the spheres"},
    notes = "With --boundary circular a sphere near an edge comes back at the opposite one; with the others it does not.",
})
for _, name in ipairs {"size", "psf_size", "sigma"} do
    if type(options[name]) ~= "table" then
        options[name] = numbers(options[name])
    end
end

local id = options.device
if id == "auto" then
    id = #mb.devices() > 1 and "cuda:0" or "host"
end
local device = mb.device(id, options.budget and {budget = options.budget} or nil)

-- Spheres of density 100 in the volume; some reach the edges.
local function spheres(size, count, seed)
    local nz, ny, nx = table.unpack(size)
    local state = seed
    local function uniform()
        state = (state * 1103515245 + 12345) & 0x7fffffff
        return state / 0x80000000
    end
    local flat, heights = {}, mb.phantom.heights(nz)
    for _ = 1, count do
        local radius = (0.02 + 0.06 * uniform()) * math.min(ny, nx)
        local rise = math.min(radius, nz / 4)
        for _, value in ipairs {100, radius, radius, rise, (uniform() - 0.5) * nx, (uniform() - 0.5) * ny,
            (uniform() - 0.5) * nz, 0} do
            flat[#flat + 1] = value
        end
    end
    return mb.ellipsoid_volume(flat, heights, {ny, nx}, {device = id, subsamples = 2})
end

local voxels = options.size[1] * options.size[2] * options.size[3]
local highest = 0

-- Runs one step and prints what is live after it and what the step reached.
local function step(name, f, ...)
    local before = mb.pool.stats(device).live
    local scope <close> = mb.pool.scope(device)
    local results = table.pack(f(...))
    local peak = before + scope:finish()
    local live = mb.pool.stats(device).live
    highest = math.max(highest, peak)
    print(("  %-28s live %8.5f GiB   peak %8.5f GiB   %5.2f B/voxel"):format(name, live / 2 ^ 30, peak / 2 ^ 30, peak / voxels))
    return table.unpack(results, 1, results.n)
end

local function picture(name, volume)
    if name then
        mb.view.projections(name, volume, {sz = options.sz, gamma = options.gamma, percentiles = {0, 100}})
    end
end

local function load_psf()
    if not options.psf then
        return mb.psf.gaussian(options.psf_size, options.sigma, {device = id})
    end
    local loaded <close> = mb.npy.read(options.psf)
    local real <close> = loaded:cast("f32")
    return real:to(id)
end

print(("%d x %d x %d f32, %.5f GiB; PSF %s; boundary %s, mode %s; on %s"):format(options.size[1], options.size[2],
    options.size[3], 4 * voxels / 2 ^ 30, options.psf or table.concat(options.psf_size, " x "), options.boundary, options.mode,
    id))
local image = step("image", spheres, options.size, options.spheres, options.seed)
picture(options.png_image, image)
local psf = step("PSF", load_psf)
local flux = mb.bound(0, image.sum, image)
local result

if options.naive then
    -- As in the teaching notebook: the PSF padded to the image and shifted so that its centre is element 1, both
    -- transformed, multiplied, transformed back. Circular, mode same.
    local center, before, after = mb.psf.center(psf), {}, {}
    for i, n in ipairs(options.size) do
        if psf.shape[i] > n then
            mb.raise("argument", ("--naive pads the PSF to the image: axis %d is %d, the PSF's %d"):format(i, n, psf.shape[i]))
        end
        before[i], after[i] = 0, n - psf.shape[i]
    end
    local padded = step("padded PSF", mb.pad, psf, {before = before, after = after})
    local shifted = step("shifted PSF", function()
        -- A roll by -centre: what is before the centre comes to the end.
        local doubled <close> = mb.pad(padded, {after = center, mode = "wrap"})
        local ranges = {}
        for i, n in ipairs(options.size) do
            ranges[i] = {center[i] + 1, center[i] + n}
        end
        local view <close> = doubled:view(table.unpack(ranges))
        return view:copy()
    end)
    local otf = step("rfft(PSF)", mb.rfft, shifted, {axes = 3})
    local spectrum = step("rfft(image)", mb.rfft, image, {axes = 3})
    local product = step("product", function()
        return spectrum * otf
    end)
    result = step("irfft(product)", mb.irfft, product, {axes = 3, n = options.size[3]})
    for _, array in ipairs {padded, shifted, otf, spectrum, product} do
        array:release()
    end
elseif options.tiles then
    if options.mode ~= "same" then
        mb.raise("argument", "--tiles gives --mode same")
    end
    local plan
    result, plan = step("convolution in tiles", mb.tiles.convolve, image, psf, {boundary = options.boundary})
    print(("  %d tiles of at most %s on a grid of %s, %d bytes each"):format(plan.total, table.concat(plan.tile, " x "),
        table.concat(plan.grid, " x "), plan.peak))
else
    local settings = {mode = options.mode, boundary = options.boundary, consume = not options.keep}
    -- Known before it runs: the same call on a shadow of the device.
    local known = mb.plan.peak(function(shadow)
        local a = mb.empty(options.size, {device = shadow})
        local h <close> = mb.empty(psf.shape, {device = shadow})
        mb.convolution(a, h, settings):release()
        a:release()
    end, id).peak
    print(("  predicted peak %.5f GiB (%d bytes)"):format(known / 2 ^ 30, known))
    result = step("convolution", mb.convolution, image, psf, settings)
end

print(("result %s, flux %.6g of %.6g; peak %.5f GiB (%d bytes), %.2f arrays"):format(table.concat(result.shape, " x "),
    mb.bound(0, result.sum, result), flux, highest / 2 ^ 30, highest, highest / (4 * voxels)))
picture(options.png, result)
if options.output then
    mb.npy.write(options.output, result)
end
for _, array in ipairs {image, psf, result} do
    array:release()
end
