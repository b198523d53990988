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
local ROW_TILES <const> = 32 -- read at once
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

-- The mean of both halves of a tile's pixels and the variance of its noise, which is nil if all
-- pixels are equal; nil where a pixel is saturated or is no number. `rows`: 10 lists; the tile
-- begins behind column `left`.
local function measured(rows, left, saturated)
    local sums, squares, least, greatest = {[0] = 0, 0}, 0, math.huge, -math.huge
    for y = 2, SIDE + 1 do
        local above, here, below = rows[y - 1], rows[y], rows[y + 1]
        for x = left + 2, left + SIDE + 1 do
            local value = here[x]
            local d = above[x - 1] + above[x + 1] + below[x - 1] + below[x + 1]
                - 2 * (above[x] + here[x - 1] + here[x + 1] + below[x]) + 4 * value
            sums[(x + y) % 2] = sums[(x + y) % 2] + value
            squares = squares + d * d
            least, greatest = math.min(least, value), math.max(greatest, value)
        end
    end
    local pixels = SIDE * SIDE
    if squares ~= squares or squares == math.huge or greatest >= saturated then
        return nil
    end
    return sums[0] / (pixels / 2), sums[1] / (pixels / 2),
        least < greatest and squares / (36 * pixels) or nil
end

-- Where strips of tiles lie: {z, y, x, tiles}, 0-based, evenly over the image but not in step with
-- its extents.
local function strips_of(nz, ny, nx)
    local high, wide = (ny - 2) // SIDE, (nx - 2) // SIDE
    local across = math.ceil(wide / ROW_TILES)
    local total, strips, state = nz * high * across, {}, 1
    local count = math.min(total, math.ceil(MOST_TILES / math.min(ROW_TILES, math.max(1, wide))))
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

-- The tiles of a volume, {{a, b, variance, first = {z, y, x}}, ...}, those of them with a variance,
-- and the number of all; empty lists in a dry run, which reads the same blocks.
local function tiles_of(volume)
    local rank, tiles, noisy, all = #volume.shape, {}, {}, 0
    local nz = rank == 3 and volume.shape[1] or 1
    local saturated, host = PEAK[volume.dtype] or math.huge, mb.device "host"
    for _, strip in ipairs(strips_of(nz, volume.shape[rank - 1], volume.shape[rank])) do
        local z, y, x, count = table.unpack(strip)
        local first, extents = {z, y, x}, {1, SIDE + 2, count * SIDE + 2}
        local block <close> = volume:read(table.move(first, 4 - rank, 3, 1, {}),
            table.move(extents, 4 - rank, 3, 1, {}), host, host)
        if not block.device.dry then
            local rows = block:to_table()
            rows = rank == 3 and rows[1] or rows
            for i = 0, count - 1 do
                local a, b, variance = measured(rows, i * SIDE, saturated)
                if a then
                    tiles[#tiles + 1] = {a, b, variance, first = {z, y, x + i * SIDE}}
                    noisy[#noisy + 1] = variance and tiles[#tiles] or nil
                end
            end
            all = all + count
        end
    end
    return tiles, noisy, all
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

-- The mean of y log(y/m) - y + m for y from a Poisson distribution of mean m.
local function poisson_divergence(m)
    if m > 100 then
        return 0.5 + 1 / (12 * m) + 1 / (12 * m * m)
    elseif m <= 0 then
        return 0
    end
    local sum, p = 0, math.exp(-m)
    for k = 1, math.ceil(m + 12 * math.sqrt(m) + 20) do
        p = p * m / k
        sum = sum + p * k * math.log(k / m)
    end
    return sum
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
