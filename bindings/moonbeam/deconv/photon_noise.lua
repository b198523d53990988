--- What one image says about its camera: the gain (counts per photon) and the offset, from how the
-- variance of the noise grows with the mean (photon transfer), and the I-divergence that noise
-- alone leaves between an image and its true mean.
--
-- Tiles of 8 x 8 pixels are taken from all over the image. In each, the variance of the noise is
-- the mean square of the second differences along both axes, which a smooth image leaves 0. The
-- tiles are sorted by the mean of every other pixel into bins, and the mean of a bin is that of the
-- other pixels: noise that sorts a tile does not shift the bin. The variance of a bin is a median,
-- and the line through the bins is a robust one, because edges and spots add to the variance of
-- some tiles.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local volumes = require "moonbeam.volumes"

local photon_noise = {}

--- An estimate that fits better than this part of what noise alone leaves has fitted noise.
photon_noise.FITS = 0.85

local SIDE <const> = 8
local MOST_TILES <const> = 4096
-- For means alone: what noise leaves (photon_noise.divergence) is then within 3 % of that of twice
-- as many tiles, of beads with 0.1 photons, too.
local MOST_MEANS <const> = 1024
local ROW_TILES <const> = 32 -- read at once
local TILES_AT_ONCE <const> = 256 -- measured by one call of each operator
-- What measuring takes for each of them, and in all beside it, at most.
local TILE_BYTES <const>, OTHER_BYTES <const> = 10 << 10, 6 << 10
local BINS, LEAST_BIN, LEAST_BINS <const> = 32, 24, 4
-- The median of the squares of a tile over their mean: the differences are correlated, so that 64
-- of them count as 17 independent ones.
local MEDIAN <const> = 0.9613
-- The gain is unreliable where its standard error is a larger part of it.
local LEAST_CERTAIN <const> = 0.2
local PEAK <const> = {u8 = 255, u16 = 65535}

local function median(list)
    table.sort(list)
    local n = #list
    return (list[(n + 1) // 2] + list[n // 2 + 1]) / 2
end

-- Where strips of tiles lie: {z, y, x, tiles}, 0-based, evenly over the image but not in step with
-- its extents.
local function strips_of(nz, ny, nx, most)
    local high, wide = (ny - 2) // SIDE, (nx - 2) // SIDE
    local across = math.ceil(wide / ROW_TILES)
    local total, strips, state = nz * high * across, {}, 1
    local count = math.min(total, math.ceil(most / math.min(ROW_TILES, math.max(1, wide))))
    for i = 0, count - 1 do
        local first, last = i * total // count, (i + 1) * total // count - 1
        state = (state * 1103515245 + 12345) % (1 << 31)
        local at = first + (state >> 8) % (last - first + 1)
        local column = at % across * ROW_TILES
        strips[#strips + 1] = {at // across // high, at // across % high * SIDE, column * SIDE,
            math.min(ROW_TILES, wide - column)}
    end
    return strips
end

-- What `fn` makes of both halves of an axis.
local function folded(array, fn, axis, out)
    local half, ranges = array.shape[axis] // 2, {mb.all, mb.all, mb.all, mb.all}
    ranges[axis] = {1, half}
    ranges = table.move(ranges, 1, array.rank, 1, {})
    local first <close> = array:view(table.unpack(ranges))
    ranges[axis] = {half + 1, 2 * half}
    local second <close> = array:view(table.unpack(ranges))
    return mb.binary(first, fn, {b = second, out = out and first or nil})
end

-- What `fn` makes of the pixels of each tile, an array of some strips (strip, row, column): a list.
-- With `pattern` 2 the pixels of a tile are four groups, of even and odd rows and columns, and the
-- list has four numbers for a tile: those of a strip's even rows, even and odd columns by turns,
-- come before those of its odd rows. Nothing in a dry run.
local function over_tiles(array, fn, pattern)
    local n, wide = array.shape[1], array.shape[3]
    local rows <close> = folded(array, fn, 2)
    local parts <close> = rows:reshape {n, SIDE // 2, wide // SIDE, SIDE}
    for axis = 2, 4, 2 do
        local extents = {n, axis == 2 and SIDE // 2 or pattern, wide // SIDE, SIDE}
        while extents[axis] > pattern do
            local part <close> = parts:view(mb.all, {1, extents[2]}, mb.all, {1, extents[4]})
            folded(part, fn, axis, true)
            extents[axis] = extents[axis] // 2
        end
    end
    local kept <close> = parts:view(mb.all, {1, pattern}, mb.all, {1, pattern})
    local dense <close> = kept:copy()
    local flat <close> = dense:reshape {-1}
    return not array.device.dry and flat:to_table() or nil
end

-- Strips without their borders.
local function pixels_of(strips)
    return strips:view(mb.all, {2, SIDE + 1}, {2, strips.shape[3] - 1})
end

-- What is measured of all tiles of some strips with borders: lists of the sums of squared second
-- differences, of the least and the greatest pixels, and of the sums of pixels by the pattern of
-- over_tiles. Nothing in a dry run.
local function measured(strips)
    local wide = strips.shape[3]
    local above <close> = strips:view(mb.all, {1, SIDE}, mb.all)
    local here <close> = strips:view(mb.all, {2, SIDE + 1}, mb.all)
    local below <close> = strips:view(mb.all, {3, SIDE + 2}, mb.all)
    local down <close> = above + below
    mb.binary(down, "sub", {b = here, out = down})
    mb.binary(down, "sub", {b = here, out = down})
    local left <close> = down:view(mb.all, mb.all, {1, wide - 2})
    local middle <close> = down:view(mb.all, mb.all, {2, wide - 1})
    local right <close> = down:view(mb.all, mb.all, {3, wide})
    local second <close> = left + right
    mb.binary(second, "sub", {b = middle, out = second})
    mb.binary(second, "sub", {b = middle, out = second})
    mb.binary(second, "mul", {b = second, out = second})
    local pixels <close> = pixels_of(strips)
    return over_tiles(second, "add", 1), over_tiles(pixels, "min", 1), over_tiles(pixels, "max", 1),
        over_tiles(pixels, "add", 2)
end

-- How many tiles are measured at once: fewer where the budget is small. The values of a tile do not
-- depend on it.
local function tiles_at_once(host)
    local room = host:budget() - mb.pool.stats(host).live - OTHER_BYTES
    return math.max(1, math.min(TILES_AT_ONCE, room // TILE_BYTES))
end

-- The strips in pieces of at most so many tiles.
local function pieces_of(strips, most)
    local pieces = {}
    for _, strip in ipairs(strips) do
        local z, y, x, count = table.unpack(strip)
        for first = 0, count - 1, most do
            pieces[#pieces + 1] = {z, y, x + first * SIDE, math.min(most, count - first)}
        end
    end
    return pieces
end

-- Reads about so many tiles of a volume in strips, some at a time, f64 (strip, row, column) with a
-- border of a pixel. measure(strips, most) returns a function of a strip (0-based) and a tile of it
-- (1-based) where a strip has room for `most` tiles; nothing in a dry run. What that function
-- returns goes, behind z, y and x of the tile, to `each`. Returns the number of tiles.
local function scan(volume, tiles, measure, each)
    local rank, all, most, host = #volume.shape, 0, 0, mb.device "host"
    local at_once = tiles_at_once(host)
    local strips = pieces_of(strips_of(rank == 3 and volume.shape[1] or 1, volume.shape[rank - 1],
        volume.shape[rank], tiles), at_once)
    for _, strip in ipairs(strips) do
        most = math.max(most, strip[4])
    end
    if most == 0 then
        return 0
    end
    local together = math.min(#strips, math.max(1, at_once // most))
    local batch <close> = mb.zeros({together, SIDE + 2, most * SIDE + 2}, {dtype = "f64",
        device = host})
    for at, strip in ipairs(strips) do
        local slot, columns = (at - 1) % together, strip[4] * SIDE + 2
        local block <close> = volume:read({table.unpack(strip, 4 - rank, 3)},
            {table.unpack({1, SIDE + 2, columns}, 4 - rank)}, host, host)
        local part <close> = batch:view(slot + 1, mb.all, {1, columns})
        local plane <close> = block:view(table.unpack(rank == 3 and {1} or {}))
        mb.convert(plane, "f64", {out = part})
        if slot == together - 1 or at == #strips then
            local filled <close> = batch:view({1, slot + 1}, mb.all, mb.all)
            local tile = measure(filled, most)
            for i = 0, tile and slot or -1 do
                local z, y, x, count = table.unpack(strips[at - slot + i])
                for k = 0, count - 1 do
                    each(z, y, x + k * SIDE, tile(i, k + 1))
                end
                all = all + count
            end
        end
    end
    return all
end

-- The tiles of a volume, {{a, b, variance, z, y, x}, ...}, the means of both halves of a tile's
-- pixels, in a pattern of squares, the variance of its noise, nil if all pixels are equal, and
-- where it begins; those of them with a variance; and the number of all. Tiles with a pixel that is
-- saturated or is no number are left out. Empty lists in a dry run, which takes the same memory.
local function tiles_of(volume)
    local tiles, noisy, pixels = {}, {}, SIDE * SIDE
    local saturated = PEAK[volume.dtype] or math.huge
    local function tile_of(z, y, x, square, least, greatest, a, b)
        if square == square and square < math.huge and greatest < saturated then
            local variance = least < greatest and square / (36 * pixels) or nil
            local tile = {a / (pixels / 2), b / (pixels / 2), variance, z, y, x}
            tiles[#tiles + 1] = tile
            noisy[#noisy + 1] = variance and tile
        end
    end
    local all = scan(volume, MOST_TILES, function(strips, most)
        local squares, least, greatest, sums = measured(strips)
        return squares and function(strip, k)
            local at, even = strip * most + k, 2 * (2 * strip * most + k)
            local odd = even + 2 * most
            return squares[at], least[at], greatest[at], sums[even - 1] + sums[odd],
                sums[even] + sums[odd - 1]
        end
    end, tile_of)
    return tiles, noisy, all
end

--- The means of tiles as deconv.noise takes them, {{mean, mean, nil, z, y, x}, ...}, of a volume
-- whose noise is known: pixels that are saturated or no numbers leave a tile out. `all`: as many as
-- deconv.noise takes, for parts of the volume; else a quarter, which is enough for the whole.
function photon_noise.means(volume, all)
    local tiles, saturated = {}, PEAK[volume.dtype]
    if #volume.shape < 2 then
        return tiles
    end
    scan(volume, all and MOST_TILES or MOST_MEANS, function(strips, most)
        local pixels <close> = pixels_of(strips)
        local sums = over_tiles(pixels, "add", 1)
        local greatest = saturated and over_tiles(pixels, "max", 1)
        return sums and function(strip, k)
            local at = strip * most + k
            return sums[at] / (SIDE * SIDE), greatest and greatest[at] or -math.huge
        end
    end, function(z, y, x, mean, greatest)
        if math.abs(mean) < math.huge and greatest < (saturated or math.huge) then
            tiles[#tiles + 1] = {mean, mean, nil, z, y, x}
        end
    end)
    return tiles
end

-- Bins of tiles of about one mean: {mean, variance, standard error of it}.
local function bins_of(tiles)
    table.sort(tiles, function(a, b)
        return a[1] < b[1]
    end)
    local bins, count = {}, math.min(BINS, #tiles // LEAST_BIN)
    for i = 1, count do
        local variances, far, sum = {}, {}, 0
        for k = (i - 1) * #tiles // count + 1, i * #tiles // count do
            sum = sum + tiles[k][2]
            variances[#variances + 1] = tiles[k][3]
        end
        local middle, n = median(variances), #variances
        for k, value in ipairs(variances) do
            far[k] = math.abs(value - middle)
        end
        bins[i] = {sum / n, middle / MEDIAN, 1.4826 * median(far) * 1.2533 / math.sqrt(n)}
    end
    return bins
end

-- The line variance = gain (mean - offset) through bins, robust (Huber). Returns gain and offset
-- with their standard errors; nil where there is none.
local function line_of(bins)
    local most, weights = 0, {}
    for _, bin in ipairs(bins) do
        most = math.max(most, bin[2])
    end
    for i, bin in ipairs(bins) do
        bin[3] = math.max(bin[3], 1e-3 * most, 1e-30)
        weights[i] = 1 / bin[3] ^ 2
    end
    local gain, x, y, spread, scale, sum
    for _ = 1, 30 do
        sum, x, y, spread = 0, 0, 0, 0
        for i, bin in ipairs(bins) do
            sum, x, y = sum + weights[i], x + weights[i] * bin[1], y + weights[i] * bin[2]
        end
        x, y = x / sum, y / sum
        local product = 0
        for i, bin in ipairs(bins) do
            spread = spread + weights[i] * (bin[1] - x) ^ 2
            product = product + weights[i] * (bin[1] - x) * (bin[2] - y)
        end
        gain = product / spread
        local far, sizes = {}, {}
        for i, bin in ipairs(bins) do
            far[i] = math.abs(bin[2] - y - gain * (bin[1] - x)) / bin[3]
            sizes[i] = far[i]
        end
        scale = math.max(1, 1.4826 * median(sizes))
        for i, bin in ipairs(bins) do
            weights[i] = math.min(1, 1.5 * scale / math.max(far[i], 1e-9)) / bin[3] ^ 2
        end
    end
    if not (gain > -math.huge and gain < math.huge) or gain == 0 then
        return nil
    end
    local gain_error = scale / math.sqrt(spread)
    return gain, gain_error, x - y / gain,
        math.sqrt((scale / math.sqrt(sum) / gain) ^ 2 + (y / gain ^ 2 * gain_error) ^ 2)
end

--- An array or a volume of real numbers as a volume.
function photon_noise.volume_of(source, op)
    local volume = type(source) == "table" and type(source.shape) == "table" and source.read
        and source
    if not volume then
        arguments.array(source, op, "source", 1, 3, "(z, y, x), (y, x) or (x), or a volume")
        volume = volumes.of_array(source)
    end
    if volume.dtype == "c64" or volume.dtype == "c128" then
        fail("dtype", op, "source", "source is complex; noise is known of real numbers: take the "
            .. "magnitude first, a:abs()")
    end
    return volume
end

--- Do the samples of an image (deconv.noise) tell that it may be 0 everywhere?
function photon_noise.may_be_zero(samples)
    for _, tile in ipairs(samples) do
        if tile[1] ~= 0 or tile[2] ~= 0 then
            return false
        end
    end
    return true
end

--- The gain and the offset of the camera, estimated from an image or volume of raw counts.
--
-- Returns {reliable, why, gain, gain_error, offset, offset_error, tiles, silent, bins}: gain in
-- counts per photon, offset in counts, each with its standard error; reliable is false where they
-- should not be used, and `why` says so in words. `tiles` counts the tiles with a variance,
-- `silent` those that say nothing (saturated, all pixels equal, not finite). In a dry run nothing
-- is known. The offset is where the variance would be 0: the camera's own, less the variance of its
-- readout noise over the gain, with which (image - offset) / gain has its mean as its variance.
-- Structure as fine as the pixels raises the gain. Neighboring pixels that share noise (binned,
-- filtered or lossily compressed images) lower it.
-- Errors: argument, shape.
-- Reference: J. R. Janesick, Photon Transfer (2007); A. Foi et al., IEEE Trans. Image Process. 17,
-- 1737 (2008).
photon_noise.estimate = declared("deconv.noise", {{"source", "any",
    "an array or a volume, (z, y, x) or (y, x)"}}, function(source)
    local volume = photon_noise.volume_of(source, "deconv.noise")
    local found = {reliable = false, tiles = 0, silent = 0}
    local function unreliable(form, ...)
        found.why = form:format(...)
        return found
    end
    if #volume.shape < 2 then
        return unreliable("the image has one axis")
    end
    local samples, tiles, all = tiles_of(volume)
    found.dry, found.tiles, found.silent = mb.device.dry() or nil, #tiles, all - #tiles
    found.samples = samples
    if all > 0 and #samples == all and photon_noise.may_be_zero(samples) then
        return unreliable("all pixels that were looked at are 0")
    elseif #tiles < LEAST_BINS * LEAST_BIN then
        return unreliable("%d tiles of %d x %d pixels with noise are too few, of %d", #tiles, SIDE,
            SIDE, all)
    end
    found.bins = bins_of(tiles)
    found.gain, found.gain_error, found.offset, found.offset_error = line_of(found.bins)
    if not found.gain or found.gain <= 0 then
        return unreliable("the variance does not grow with the mean")
    elseif found.gain_error > LEAST_CERTAIN * found.gain then
        return unreliable("the gain is uncertain, %.3g +- %.2g counts per photon", found.gain,
            found.gain_error)
    end
    found.reliable = true
    return found
end)

-- The logarithms of 1, 2, 3, ...
local LOGARITHMS <const> = setmetatable({}, {__index = function(list, k)
    list[k] = math.log(k)
    return list[k]
end})

-- The mean of y log(y/m) - y + m for y from a Poisson distribution of mean m: m times the mean of
-- log((y + 1)/m).
local function poisson_divergence(m)
    if m > 20 then
        local r = 1 / m
        return 0.5 + r * (1 / 12 + r * (1 / 12 + r * (19 / 120 + r * (9 / 20 + r * 863 / 504))))
    elseif m <= 0 then
        return 0
    end
    local sum, p, k, logarithms = 0, math.exp(-m), 0, LOGARITHMS
    repeat
        k = k + 1
        p = p * m / k
        local term = p * logarithms[k + 1]
        sum = sum + term
    until k > m and term < 1e-13 * sum
    return m * (sum - math.log(m))
end

--- The I-divergence per element that noise alone leaves between an image and its true mean, in the
-- image's unit. `found`: from deconv.noise of the raw image. offset, gain: what was subtracted from
-- the image and divided by before it is deconvolved (0 and 1: nothing). Edges within the tiles of 8
-- x 8 pixels make it too large by some percent. nil if nothing is known.
-- Errors: argument.
photon_noise.divergence = declared("deconv.noise_divergence", {
    {"found", "table", "what deconv.noise returned"},
    {"offset", "number?", "counts that were subtracted", default = 0},
    {"gain", "number?", "counts per photon, by which the image was divided", above = 0,
        default = 1}},
function(found, offset, gain)
    if type(found.gain) ~= "number" or found.gain <= 0 or type(found.samples) ~= "table"
        or #found.samples == 0 then
        return nil
    end
    local sum = 0
    for _, tile in ipairs(found.samples) do
        local mean = (tile[1] + tile[2]) / 2
        local signal, variance = mean - offset, found.gain * (mean - found.offset)
        if signal > 0 then
            -- Noise counts as that of so many photons. The noise of a mean makes some variances
            -- negative: they belong to the average.
            sum = sum + variance / signal * (variance > 0
                and poisson_divergence(signal * signal / variance) or 0.5)
        end
    end
    return sum / #found.samples / gain
end)

return photon_noise
