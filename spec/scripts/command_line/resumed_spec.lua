-- What --resume goes on with: options that are a part of what identifies a run are refused with
-- another value, and the others change no bit of the volume (command_line/resumed.lua).

local files = require "spec.support.files"
local mb = require "moonbeam"
local resumed = require "moonbeam.internal.command_line.resumed"

local BIN <const> = os.getenv "MOONBEAM_BIN" or mb.system.program()

-- Options with other values than the runs that are killed have, and what the message must name.
-- `base`: which of the runs.
local BASES <const> = {
    direct = "--center 11.5 --chunk 2", cgls = "--center 11.5 --chunk 2 -m cgls --iterations 2",
    fista = "--center 11.5 --chunk 2 -m fista --iterations 2",
    fista3d = "--center 11.5 --chunk 4 -m fista --iterations 2 --dimensions 3 --slab 2",
    admm = "--center 11.5 --chunk 2 -m admm_tv --iterations 2",
    sart = "--center 11.5 --chunk 2 -m sart --iterations 2",
    mlem = "--center 11.5 --chunk 2 -m mlem --iterations 2 --negative zero",
    codes = "--center 11.5 --chunk 2 --output-dtype uint16 --output-range 0:100",
    shifts = "--center 11.5 --chunk 2 --vertical-shifts shifts.txt",
    recipe = "--recipe fbp.lua", steps = "--recipe own.lua --steps own_step.lua",
    other_steps = "--recipe own.lua --steps other_step.lua",
    turn = "--center 18 --chunk 2", layout = "--center 11.5 --chunk 2 --layout httomo",
    part = "--center 11.5 --part 1/2",
}
local RECONSTRUCT <const> = {
    {"--center 12", "recipe"}, {"--center auto", "recipe"}, {"--axis-tilt 0.5", "recipe"},
    {"--filter hann", "recipe"}, {"--cutoff 0.5", "recipe"}, {"--padding zero", "recipe"},
    {"--pad-width 64", "recipe"}, {"--vertical-shifts shifts.txt", "recipe"},
    {"--angle-weights none", "recipe"}, {"--method fbp", "recipe"}, {"--rows 2:5", "rows"},
    {"--size 20", "recipe"}, {"--circle 0.9", "recipe"}, {"--accuracy exact", "recipe"},
    {"--output-dtype float16", "dtype"}, {"--slices-per-file 2", "slices_per_file"},
    {"--layout nabu", "layout"}, {"--layout httomo", "layout"},
    {"", "layout", "layout", instead = "direct"},
    {"--flip rows", "recipe"}, {"--reverse-rotation", "recipe"},
    {"--flat-mode median", "recipe"}, {"--no-log", "frames"},
    {"--angles 0:170 --angle-unit deg", "angles"}, {"--pixel-size 3", "pixel size"},
    {"--flats 1000", "frames"}, {"--darks 10", "frames"}, {"--flats-exposure 2", "frames"},
    {"--bad-flats 1", "frames"}, {"--bad-darks 1", "frames"},
    {"--bad-projections 3", "angles"},
    {"--angles-path angles.txt --angle-unit deg", "angles"},
    {"--flats-path scan.h5:/exchange/data_white,/exchange/data_white", "frames"},
    {"--darks-path scan.h5:/exchange/data_white", "frames"},
    {"--current-path angles.txt", "ring currents"},
    {"--output-range 0:200", "recipe", "codes"}, {"--shifted-rows leave-out", "recipe", "shifts"},
    {"--iterations 3", "recipe", "cgls"}, {"--tikhonov 1", "recipe", "cgls"},
    {"--preconditioner 0.1", "recipe", "cgls"}, {"--beyond unknown", "recipe", "cgls"},
    {"--margin 4", "recipe", "cgls"}, {"--start fbp", "recipe", "cgls"},
    {"--tolerance 0.1", "recipe", "cgls"}, {"--noise 0.1", "recipe", "cgls"},
    {"--tolerance 0.1 --check 2", "recipe", "cgls"}, {"--model pixel", "recipe", "cgls"},
    {"--weights poisson", "recipe", "cgls"}, {"--nonnegative no", "recipe", "fista"},
    {"--lambda 0.1", "recipe", "fista"}, {"--tv-iterations 3", "recipe", "fista"},
    {"--dimensions 3", "recipe", "fista"}, {"--slab 3", "recipe", "fista3d"},
    {"--slab-overlap 1", "recipe", "fista3d"}, {"--inner 2", "recipe", "admm"},
    {"--rho 2", "recipe", "admm"}, {"--relaxation 0.5", "recipe", "sart"},
    {"--taper 0", "recipe", "sart"}, {"--subsets 5", "recipe", "sart"},
    {"--negative refuse", "recipe", "mlem"}, {"--discrepancy 2", "recipe", "mlem"},
    {"--set fbp.filter=hann", "recipe", "recipe"}, {"--row 3", "rows", "recipe"},
    {"--vertical x=3", "recipe", "recipe"}, {"--pixel-size 3", "pixel size", "recipe"},
    {"--recipe other.lua", "recipe", "recipe"}, {"--layout nabu", "layout", "recipe"},
    {"", "steps of", "steps", instead = "other_steps"},
}

-- Options that are a part of the identity and have no row: why.
local ELSEWHERE <const> = {
    output = "a folder of its own", part = "a folder of its own",
    ["zarr-layout"] = "spec/files/zarr/zarr_chunks_spec.lua",
    ["tiff-layout"] = "for results above 4 GB; spec/files/tiff_result_spec.lua",
    ["half-acquisition"] = "half a turn has none; below with a whole one",
    ["no-half-acquisition"] = "below", ["no-reverse-rotation"] = "as the scan says here",
    ["flat-interpolation"] = "the scan must say when flats were taken; a step's option",
    ["normalize-current"] = "as --current-path", ["flats-current-path"] = "as --current-path",
    ["flat-positions-path"] = "as --current-path; pipelines/resume_spec.lua",
    ["angle-unit"] = "with --angles", ["data-path"] = "shape and file are a part",
    ["image-key-path"] = "of NXtomo: the frames are a part",
    ["counts-as"] = "the type of the scan is a part", axes = "the shape of the scan is a part",
    input = "the recipe begins otherwise", steps = "the runs of own and other steps", entry = "frames and angles are a part",
}

local DECONVOLVE <const> = {
    {"--gain 2", "--gain"}, {"--offset 5", "--offset"}, {"--background 5", "background"},
    {"--pages 13:24", "--pages"}, {"--axes Z", "--axes"}, {"--image-number 1", "--image-number"},
    {"--channel 1", "--channel"}, {"--frame 1", "--frame"}, {"--output-dtype uint16", "dtype"},
    {"--psf-background 0.001", "psf"}, {"--psf-crop 0.5", "psf"},
    {"--pixel 200 --step 500 --psf-spacing 600,250,250", "psf"}, {"--tolerance 0.1", "tolerance"},
    {"--acceleration biggs_andrews", "acceleration"}, {"--total-variation 0.01",
        "total_variation"}, {"--metrics", "metrics"}, {"--curve c.png", "metrics"},
    {"--iterations 4", "iterations"}, {"--boundary reflect", "boundary"},
    {"--tiles none", "leave --tiles none out", whole = true}, {"--tile 6,20,24", "tile"},
}

describe("a run that goes on", function()
    local folder
    setup(function()
        folder = files.folder()
        local function must(words)
            local output, ok = files.run(("cd '%s' && '%s' "):format(folder, BIN) .. words)
            assert(ok, output)
        end
        must "simulate scan.h5 --size 24 --rows 8 --angles 30 -d host -q"
        must "psf -o q.tif --na 0.5 --index 1 --wavelength 500 --pixel 200 --step 500 --size 3,5,5 -d host -q"
        local image <close> = mb.random({24, 20, 24}, {seed = 1, device = "host"})
        local counts <close> = image * 100
        mb.images.write(folder .. "/j.tif", counts)
        local angles, shifts = {}, {}
        for i = 1, 30 do
            angles[i], shifts[i] = i * 5, i % 2
        end
        files.write(folder .. "/angles.txt", table.concat(angles, "\n"))
        files.write(folder .. "/shifts.txt", table.concat(shifts, "\n"))
        files.write(folder .. "/fbp.lua", '{"flat_field", "minus_log", {"fbp", center = 11.5}}')
        files.write(folder .. "/other.lua",
            '{"flat_field", "minus_log", {"stripes_sorting"}, {"fbp", center = 11.5}}')
        files.write(folder .. "/own.lua", '{"flat_field", "minus_log", "twice", {"fbp", center = 11.5}}')
        for _, name in ipairs {"own_step", "other_step"} do
            files.write(folder .. "/" .. name .. ".lua", ([[return {name = "twice", summary = "%s.",
                takes = {quantity = "any", layout = "any"}, gives = {quantity = "same",
                layout = "same"}, cuts = {"rows", "frames"}, run = function() end}]]):format(name))
        end
    end)
    teardown(function()
        files.remove(folder)
    end)

    local killed = {}

    -- The words of a command, killed at a step of writing; with a copy of what it has left.
    local function kill(name, script, words, result, steps)
        if killed[name] then
            return
        end
        killed[name] = true
        local output = files.run(("cd '%s' && rm -rf '%s'* ; '%s' -e 'require([[moonbeam]])"
            .. ".debug.fail_step(%d)' '%s/scripts/%s.lua' %s -o %s -d host -q"):format(folder,
            result, BIN, steps, mb.system.cwd(), script, words, result))
        assert(mb.system.stat(("%s/%s.unfinished/journal"):format(folder, result)), output)
        files.run(("cd '%s' && mv %s.unfinished %s.kept"):format(folder, result, name))
    end

    local function resume(name, script, words, result)
        return files.run(("cd '%s' && rm -rf %s* && cp -a %s.kept %s.unfinished && '%s' %s %s "
            .. "-o %s -d host -q --resume"):format(folder, result, name, result, BIN, script, words,
            result))
    end

    it("has a row for each option that is a part of a reconstruction", function()
        local seen = {}
        for _, row in ipairs(RECONSTRUCT) do
            for name in row[1]:gmatch "%-%-([%w-]+)" do
                seen[name] = true
            end
        end
        for name, what in pairs(resumed.reconstruct) do
            assert(what ~= "part" or seen[name] or ELSEWHERE[name], name)
        end
    end)

    for _, row in ipairs(RECONSTRUCT) do
        local base = row[3] or "direct"
        it(("is another one with %s (%s)"):format(row[1], base), function()
            kill(base, "reconstruct", "scan.h5 " .. BASES[base], base .. ".h5", 22)
            local output, ok = resume(base, "reconstruct",
                ("scan.h5 %s %s"):format(BASES[row.instead or base], row[1]),
                base .. ".h5")
            assert.is_false(ok)
            assert.truthy(output:find("what differs: ", 1, true), output)
            assert.truthy(output:find(row[2], output:find "what differs:", true), output)
        end)
    end

    it("is another one with --half-acquisition", function()
        files.run(("cd '%s' && '%s' simulate turn.h5 --size 24 --rows 8 --angles 30 --span 360 "
            .. "--center 18 -d host -q"):format(folder, BIN))
        kill("turn", "reconstruct", "turn.h5 " .. BASES.turn, "turned.h5", 22)
        local output = resume("turn", "reconstruct", "turn.h5 --half-acquisition " .. BASES.turn,
            "turned.h5")
        assert.truthy(output:find("what differs: recipe", 1, true), output)
    end)

    it("has the same bits with other memory and threads", function()
        kill("direct", "reconstruct", "scan.h5 " .. BASES.direct, "direct.h5", 22)
        local expected
        for _, words in ipairs {"", "--budget 3M", "--chunk 3", "--no-overlap --threads 1",
            "--pinned 2M", "--mode fast", "--preview p.png --overwrite", "--no-reverse-rotation",
            "--no-half-acquisition", "--allow-missing --allow-external --wait 1"} do
            local output, ok = resume("direct", "reconstruct", ("scan.h5 %s %s"):format(
                BASES.direct, words), "direct.h5")
            assert(ok, output)
            assert.truthy(output:find("rows already", 1, true))
            local file <close> = assert(mb.h5.open(folder .. "/direct.h5"))
            local volume <close> = file:read "/entry/data/data"
            expected = expected or volume:to_string()
            assert(expected == volume:to_string(), words)
        end
    end)

    local IMAGE <const> = "j.tif q.tif --pages 1:12 --tiles exact --tile 4,20,24 --iterations 2 "
        .. "--place file"

    for _, row in ipairs(DECONVOLVE) do
        it(("is another one with %s (deconvolve)"):format(row[1]), function()
            kill("image", "deconvolve", IMAGE, "image.tif", 60)
            local output, ok = resume("image", "deconvolve", IMAGE .. " " .. row[1], "image.tif")
            assert.is_false(ok)
            if not row.whole then
                assert.truthy(output:find("what differs: ", 1, true), output)
            end
            assert.truthy(output:find(row[2], output:find "what differs:" or 1, true), output)
        end)
    end

    it("has the same bits with other memory (deconvolve)", function()
        kill("image", "deconvolve", IMAGE, "image.tif", 60)
        local expected
        for _, words in ipairs {"", "--place host", "--budget 3M", "--tiles auto", "--write-log",
            "--preview p.png --preview-image q.png --overwrite"} do
            local output, ok = resume("image", "deconvolve", IMAGE .. " " .. words, "image.tif")
            assert(ok, output)
            local image <close> = mb.images.read(folder .. "/image.tif", "host")
            expected = expected or image:to_string()
            assert(expected == image:to_string(), words)
        end
    end)
end)
