-- The PSF of an image of beads, with the truth: random positions, Poisson noise, background,
-- saturated beads, close pairs.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local BOX <const>, SHAPE <const> = {13, 17, 17}, {21, 164, 174}
local DIAMETER <const>, UNDER <const>, FULL <const> = 2, 2, 255

-- Adds a bead: the PSF is a sum of two Gaussians with centers apart. A ball of this diameter adds
-- its variance, diameter^2 / 20 along each axis.
local function draw(values, shape, at, light, diameter)
    for _, part in ipairs {{0.6, 1.8, 1.2, 0}, {0.4, 2.2, 2.2, 0.7}} do
        local e = {}
        for i = 1, 3 do
            local variance = part[i == 1 and 2 or 3] ^ 2 + diameter ^ 2 / 20
            e[i] = {}
            for k = math.max(0, at[i] // 1 - 10), math.min(shape[i] - 1, at[i] // 1 + 10) do
                e[i][math.tointeger(k)] = math.exp(-(k - at[i] - part[4]) ^ 2 / 2 / variance)
                    / math.sqrt(2 * math.pi * variance)
            end
        end
        for z, a in pairs(e[1]) do
            for y, b in pairs(e[2]) do
                for x, c in pairs(e[3]) do
                    local index = (z * shape[2] + y) * shape[3] + x + 1
                    values[index] = values[index] + light * part[1] * a * b * c
                end
            end
        end
    end
end

local function blank(shape, value)
    local values = {}
    for i = 1, shape[1] * shape[2] * shape[3] do
        values[i] = value
    end
    return values
end

local function array_of(values, shape)
    local texts = {}
    for i, value in ipairs(values) do
        texts[i] = string.pack("<f", value)
    end
    return mb.from_string(table.concat(texts), shape, {device = "host"})
end

-- The image of 20 good beads, 2 saturated ones, 2 pairs, one at the border and one faint. Returns
-- it and the places of the good ones.
local function image_of(seed)
    local state = seed
    local function random()
        state = (state * 1103515245 + 12345) % 2147483648
        return state / 2147483648
    end
    local values, good = blank(SHAPE, UNDER), {}
    for i = 0, 24 do
        local at = {10 + random() - 0.5, 16 + i // 5 * 32 + 2 * random(),
            16 + i % 5 * 34 + 2 * random()}
        if i < 20 then
            good[#good + 1] = at
        end
        draw(values, SHAPE, at, i < 20 and 3000 + 3000 * random() or i < 22 and 30000
            or i == 24 and 500 or 4000, DIAMETER)
        if i == 22 or i == 23 then
            draw(values, SHAPE, {at[1], at[2] + 5, at[3] + 4}, 4000, DIAMETER)
        end
    end
    draw(values, SHAPE, {10, 3, 80}, 4000, DIAMETER)
    local means <close> = array_of(values, SHAPE)
    local counts <close> = mb.poisson(means, {seed = seed})
    mb.binary(counts, "min", {scalar = FULL, out = counts})
    local stored <close> = counts:cast("u8")
    return stored:to_string(), good
end

-- The relative distance of a PSF to the truth at a place, or at the one that fits best.
local function distance(psf, known)
    local raw, got, center, step = psf:to_string(), {}, {6, 8, 8}, 0.5
    for i = 1, #raw // 4 do
        got[i] = string.unpack("<f", raw, 4 * i - 3)
    end
    local function at(place)
        local want, sum, difference, square = blank(BOX, 0), 0, 0, 0
        draw(want, BOX, place, 1, 0)
        for _, value in ipairs(want) do
            sum = sum + value
        end
        for i, value in ipairs(want) do
            difference = difference + (got[i] - value / sum) ^ 2
            square = square + (value / sum) ^ 2
        end
        return math.sqrt(difference / square)
    end
    if known then
        return at(known)
    end
    local best = at(center)
    while step > 0.05 do
        local moved = false
        for i = 1, 6 do
            local place = {table.unpack(center)}
            place[(i + 1) // 2] = place[(i + 1) // 2] + (i % 2 == 0 and step or -step)
            local other = at(place)
            if other < best then
                best, center, moved = other, place, true
            end
        end
        step = moved and step or step / 2
    end
    return best
end

local OPTIONS <const> = {size = BOX, bead_diameter = DIAMETER, spacing = {1, 1, 1}}

describe("the PSF of beads", function()
    local bytes, good = image_of(7)

    local function made()
        return mb.from_string(bytes, SHAPE, {dtype = "u8", device = "host"})
    end

    -- Places are known to 0.1 voxel, but for what all share.
    local function check_places(report)
        local apart = {}
        for _, got in ipairs(report.places) do
            for _, want in ipairs(good) do
                if math.abs(got[2] - want[2]) < 4 and math.abs(got[3] - want[3]) < 4 then
                    apart[#apart + 1] = {got[1] - want[1], got[2] - want[2], got[3] - want[3]}
                end
            end
        end
        assert.equal(20, #apart)
        for axis = 1, 3 do
            local mean, square = 0, 0
            for _, each in ipairs(apart) do
                mean = mean + each[axis] / #apart
            end
            for _, each in ipairs(apart) do
                square = square + (each[axis] - mean) ^ 2 / #apart
            end
            assert.is_true(math.sqrt(square) < 0.1, axis .. ": " .. math.sqrt(square))
        end
    end

    it("is a third of the best single bead's distance from the truth, or nearer", function()
        local image <close> = made()
        local psf <close>, report = mb.beads.psf(image, OPTIONS)
        local best = math.huge
        for _, at in ipairs(good) do
            local ranges, known = {}, {}
            for i = 1, 3 do
                local middle = math.floor(at[i] + 0.5) + 1
                known[i] = BOX[i] // 2 + at[i] + 1 - middle
                ranges[i] = {middle - BOX[i] // 2, middle + BOX[i] // 2}
            end
            local view <close> = image:view(table.unpack(ranges))
            local bead <close> = view:copy()
            local light <close> = mb.psf.subtract_background(bead, UNDER)
            local one <close> = mb.psf.normalize(light)
            best = math.min(best, distance(one, known))
        end
        local own = distance(psf)
        print(own, best, own / best)
        assert.is_true(own <= best / 3, ("%.3f, best single one %.3f"):format(own, best))
        local sum <close> = mb.reduce(psf, "sum")
        assert.near(1, sum:item(), 1e-5)
        check_places(report)
        assert.same({20, 2, 4, 1, 1}, {report.chosen, report.saturated, report.close, report.border,
            report.faint})
        assert.equal(28, report.found)
    end)

    it("takes memory that a dry run knows", function()
        local image <close> = mb.psf.gaussian({15, 21, 22}, 2)
        for _, diameter in ipairs {0, DIAMETER} do
            local function run()
                local psf = mb.beads.psf(image, {size = {9, 9, 7}, bead_diameter = diameter,
                    spacing = {1, 1, 1}})
                psf:release()
            end
            local planned, real = mb.dry_run(run), (mb.ledger(run))
            assert.equal(real.peak, planned.peak)
            assert.is_true(planned.peak > 0)
        end
    end)

    it("is refused where no bead is left, and what is asked for is not there", function()
        local function refused(code, text, image, options)
            local ok, problem = pcall(mb.beads.psf, image, options)
            assert.is_false(ok)
            assert.equal(code, problem.code)
            assert.matches(text, problem.message, 1, true)
        end
        local flat <close> = mb.full({9, 32, 32}, 3)
        local plane <close> = mb.zeros {32, 32}
        refused("argument", "the image has no bead", flat)
        refused("argument", "odd extents", flat, {size = {9, 10, 9}})
        refused("argument", "bead_diameter needs spacing", flat, {bead_diameter = 2})
        refused("shape", "this one has 2 axes", plane)
    end)

    it("is what the command writes, with the bytes that it planned", function()
        local folder = files.folder()
        finally(function() files.remove(folder) end)
        local run, must = helper.programs_in(function() return folder end)
        local image <close> = made()
        mb.images.write(folder .. "/beads.tif", image)
        local want <close> = mb.beads.psf(image, {size = BOX, bead_diameter = 200,
            spacing = {100, 100, 100}})
        local text = must("scripts/psf.lua --from-beads FOLDER/beads.tif --pixel 100 --step 100 "
            .. "--bead-diameter 200 --size 13,17,17 -o FOLDER/p.tif -d host")
        assert.matches("28 found, 20 averaged; left out: 1 nearer to a border than half the box, "
            .. "2 saturated, 4 too close to another, 1 too faint", text, 1, true)
        assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
            assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
        local got <close>, meta = mb.images.read(folder .. "/p.tif")
        helper.assert_close(want, got, 0)
        assert.near(100e-9, meta.voxel.pixel, 1e-12)
        local said, status = run("scripts/psf.lua --from-beads FOLDER/beads.tif --na 1 -o "
            .. "FOLDER/q.tif -d host")
        assert.equal(2, status)
        assert.matches("--na is for a model", said, 1, true)
        said, status = run("scripts/psf.lua --bead-diameter 200 -o FOLDER/q.tif -d host")
        assert.equal(2, status)
        assert.matches("--from-beads FILE, which is missing", said, 1, true)
    end)
end)
