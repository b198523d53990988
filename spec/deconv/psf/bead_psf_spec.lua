-- The PSF of an image of beads, with the truth: random positions, Poisson noise, background,
-- saturated beads, close pairs, planes. MOONBEAM_BEADS=5 prints the table of
-- docs/tutorials/deconvolve-a-stack.md from so many images of each kind.
local bead_images = require "spec.support.bead_images"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local tiff_encoder = require "spec.support.tiff_encoder"

local BOX <const>, SHAPE <const> = {13, 17, 17}, {21, 164, 174}
local FLAT_BOX <const>, PLANE <const> = {1, 17, 17}, {1, 164, 174}
local DIAMETER <const>, UNDER <const>, FULL <const> = 2, 2, 255

-- The image of 20 good beads, 2 saturated ones, 2 pairs, one at the border and one faint. Returns
-- it and the places of the good ones.
local function image_of(seed)
    local random = bead_images.random(seed)
    local values, good = bead_images.blank(SHAPE, UNDER), {}
    local function draw(at, light)
        bead_images.draw(values, SHAPE, at, light, DIAMETER)
    end
    for i = 0, 24 do
        local at = {10 + random() - 0.5, 16 + i // 5 * 32 + 2 * random(),
            16 + i % 5 * 34 + 2 * random()}
        if i < 20 then
            good[#good + 1] = at
        end
        draw(at, i < 20 and 3000 + 3000 * random() or i < 22 and 30000 or i == 24 and 500 or 4000)
        if i == 22 or i == 23 then
            draw({at[1], at[2] + 5, at[3] + 4}, 4000)
        end
    end
    draw({10, 3, 80}, 4000)
    local counts <close> = bead_images.photons(values, SHAPE, seed)
    mb.binary(counts, "min", {scalar = FULL, out = counts})
    local stored <close> = counts:cast("u8")
    return stored:to_string(), good
end

local OPTIONS <const> = {size = BOX, bead_diameter = DIAMETER, spacing = {1, 1, 1}}

describe("the PSF of beads", function()
    local bytes, good = image_of(7)

    local function made()
        return mb.from_string(bytes, SHAPE, {dtype = "u8", device = "host"})
    end

    -- Places are known to 0.1 voxel, but for what all share.
    local function check_places(report, places)
        local spread, count = bead_images.scatter(report.places, places)
        assert.equal(20, count)
        for axis = 1, 3 do
            assert.is_true(spread[axis] < 0.1, axis .. ": " .. spread[axis])
        end
    end

    it("is a third of the best single bead's distance from the truth, or nearer", function()
        local image <close> = made()
        local psf <close>, report = mb.beads.psf(image, OPTIONS)
        local best = bead_images.best_single(image, BOX, good, UNDER)
        local own = bead_images.distance(psf, BOX)
        assert.is_true(own <= best / 4, ("%.3f, best single one %.3f"):format(own, best))
        local sum <close> = mb.reduce(psf, "sum")
        assert.near(1, sum:item(), 1e-5)
        check_places(report, good)
        assert.same({20, 2, 4, 1, 1}, {report.chosen, report.saturated, report.close, report.border,
            report.faint})
        assert.equal(28, report.found)
    end)

    -- For an image of 20 beads: the distance of the PSF, that of the best single bead, the scatter of
    -- places, the report, and the places.
    local function distances(peak, background, seed, shape, box)
        local image <close>, places = bead_images.good(shape, peak, background, DIAMETER, seed)
        local options = {size = box, bead_diameter = DIAMETER, spacing = {1, 1, 1}}
        local psf <close>, report = mb.beads.psf(image, options)
        local least <close> = mb.reduce(psf, "min")
        assert.is_true(least:item() >= 0)
        return bead_images.distance(psf, box), bead_images.best_single(image, box, places,
            background), (bead_images.scatter(report.places, places)), report, places
    end

    -- No median of counts is 30.4; a background that is rounded makes 0.297.
    it("is nearer over a background that is no whole number", function()
        local own, best, _, report, places = distances(70, 30.4, 3, SHAPE, BOX)
        assert.is_true(own <= best / 4, ("%.3f, best single one %.3f"):format(own, best))
        check_places(report, places)
        assert.equal(20, report.chosen)
    end)

    it("has the beads of counts of which most are 0", function()
        local image <close>, places = bead_images.good(SHAPE, 70, 0.002, DIAMETER, 3)
        local psf <close>, report = mb.beads.psf(image, {size = {9, 11, 11}})
        check_places(report, places)
        assert.equal(20, report.chosen)
        local sum <close> = mb.reduce(psf, "sum")
        assert.near(1, sum:item(), 1e-5)
    end)

    it("is so where beads are hardly found", function()
        local own, best = distances(70, 200, 3, SHAPE, BOX)
        assert.is_true(own <= best / 3, ("%.3f, best single one %.3f"):format(own, best))
    end)

    it("is so in an image of one plane, with the axes of the image", function()
        local own, best, _, report, places = distances(200, 10, 3, PLANE, FLAT_BOX)
        assert.is_true(own <= best / 3, ("%.3f, best single one %.3f"):format(own, best))
        check_places(report, places)
        local image <close> = bead_images.good(PLANE, 200, 10, DIAMETER, 3)
        local plane <close> = image:reshape {PLANE[2], PLANE[3]}
        local options = {size = {17, 17}, bead_diameter = DIAMETER, spacing = {1, 1}}
        local flat <close> = mb.beads.psf(plane, options)
        local psf <close> = mb.beads.psf(image, {size = FLAT_BOX, bead_diameter = DIAMETER,
            spacing = {1, 1, 1}})
        assert.same({17, 17}, flat.shape)
        assert.equal(psf:to_string(), flat:to_string())
    end)

    it("is printed as a table where that is asked for", function()
        local seeds = tonumber(os.getenv "MOONBEAM_BEADS")
        if not seeds then
            pending "MOONBEAM_BEADS is not set"
            return
        end
        for _, background in ipairs {0, 2, 5, 10, 30} do
            for _, peak in ipairs {100, 300, 1000} do
                local sums, worst = {0, 0, 0}, 0
                for seed = 1, seeds do
                    local own, best, spread = distances(peak, background, seed, SHAPE, BOX)
                    worst = math.max(worst, own / best)
                    sums = {sums[1] + own / seeds, sums[2] + best / seeds,
                        math.max(sums[3], table.unpack(spread))}
                end
                io.write(("| %g | %g | %.3f | %.3f | %.2f | %.2f | %.3f |\n"):format(background,
                    peak, sums[1], sums[2], sums[1] / sums[2], worst, sums[3]))
                io.flush()
            end
        end
    end)

    it("takes memory that a dry run knows", function()
        local image <close> = mb.psf.gaussian({15, 21, 22}, 2)
        local plane <close> = mb.psf.gaussian({64, 50}, 2)
        for _, case in ipairs {{image, {9, 9, 7}, 0}, {image, {9, 9, 7}, DIAMETER},
            {image, {1, 9, 11}, 0}, {plane, {9, 9}, DIAMETER}, {plane, {3, 1}, 0}} do
            local function run()
                local psf = mb.beads.psf(case[1], {size = case[2], bead_diameter = case[3],
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
        refused("argument", "the image has no bead", plane)
        refused("argument", "or {y, x} of one plane", flat, {bead_diameter = 2, spacing = {1, 1}})
        local line <close> = mb.zeros {32}
        refused("shape", "this one has 1 axis", line)
        local broken <close> = mb.array({{1, 0 / 0}, {1, 1}})
        refused("argument", "not finite", broken, {size = {1, 1}})
    end)

    it("is what the command writes, with the bytes that it planned", function()
        local folder = files.folder()
        finally(function() files.remove(folder) end)
        local run, must = helper.programs_in(function() return folder end)
        local image <close> = made()
        mb.images.write(folder .. "/beads.tif", image)
        local want <close> = mb.beads.psf(image, {size = {9, 11, 11}, bead_diameter = 200,
            spacing = {100, 100, 100}})
        local text = must("scripts/psf.lua --from-beads FOLDER/beads.tif --pixel 100 --step 100 "
            .. "--bead-diameter 200 --size 9,11,11 -o FOLDER/p.tif -d host")
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

    it("is what the command makes of one plane, of which it needs no step", function()
        local folder = files.folder()
        finally(function() files.remove(folder) end)
        local _, must = helper.programs_in(function() return folder end)
        local image <close> = bead_images.good(PLANE, 200, 10, DIAMETER, 3)
        local plane <close> = image:reshape {PLANE[2], PLANE[3]}
        local want <close> = mb.beads.psf(image, {size = FLAT_BOX, bead_diameter = 200,
            spacing = {100, 100, 100}})
        mb.images.write(folder .. "/plane.tif", plane)
        mb.images.write(folder .. "/plane.npy", image)
        for _, name in ipairs {"plane.tif", "plane.npy"} do
            local text = must("scripts/psf.lua --from-beads FOLDER/" .. name .. " --pixel 100 "
                .. "--bead-diameter 200 --size 17,17 -o FOLDER/p.tif -p FOLDER/p.png --overwrite "
                .. "-d host")
            assert.matches("pixel      100 x 100 nm (y, x), one plane", text, 1, true)
            assert.matches("20 found, 20 averaged", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            local got <close> = mb.images.read(folder .. "/p.tif")
            assert.equal(want:to_string(), got:to_string())
        end
    end)

    it("of planes that may be slices is asked, and the advice works", function()
        local folder = files.folder()
        finally(function() files.remove(folder) end)
        local run, must = helper.programs_in(function() return folder end)
        local shape <const> = {11, 15, 15}
        local values, pages = bead_images.blank(shape, 3), {}
        bead_images.draw(values, shape, {5, 7, 7}, 20000, 0)
        for z = 1, 11 do
            pages[z] = {}
            for y = 1, 15 do
                local at = (z * 15 + y - 16) * 15
                pages[z][y] = {}
                for x = 1, 15 do
                    pages[z][y][x] = math.floor(values[at + x] + 0.5)
                end
            end
        end
        files.write(folder .. "/t.tif", tiff_encoder.encode(pages, {dtype = "u16", texts = {
            "ImageJ=1.53t\nimages=11\nframes=11\nhyperstack=true\n"}}))
        local command = "scripts/psf.lua --from-beads FOLDER/t.tif --pixel 100 --step 100 --size "
            .. "5,7,7 -o FOLDER/p.tif -d host "
        local said, status = run(command)
        assert.equal(2, status)
        assert.matches("11 times, and a PSF is of one: give --channel and --frame; where the planes "
            .. "are slices, --axes Z says so", said, 1, true)
        must(command .. "--axes Z")
        local got <close> = mb.images.read(folder .. "/p.tif")
        assert.same({5, 7, 7}, got.shape)
        assert.is_true(bead_images.distance(got, {5, 7, 7}) < 0.02)
    end)
end)
