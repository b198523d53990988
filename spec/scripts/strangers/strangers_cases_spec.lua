-- Scans as beamlines write them, reconstructed as their users do: each slice is right, or a line
-- names what is wrong with the scan and the option that cures it, and the option does.

local files = require "spec.support.files"
local helper = require "spec.helper"
local judge = require "spec.support.strangers.stranger_judge"
local mb = require "moonbeam"
local scans = require "spec.support.strangers.stranger_scans"

describe("a scan of a beamline", function()
    local folder

    before_each(function() folder = files.folder() end)
    after_each(function() files.remove(folder) end)

    -- ---- files ----

    -- 180 projections of one degree, 128 columns, about column 61.
    local function usual(changes)
        local scan = {angles = scans.steps(180, 0, 1), rows = 2, cols = 128, center = 61}
        for key, value in pairs(changes or {}) do
            scan[key] = value
        end
        return scan
    end

    local function counts_of(scan, options)
        local integrals <close> = scans.line_integrals(scan)
        return scans.counts(integrals, options)
    end

    -- An NXtomo file of the ESRF: three darks, three flats, the projections, and `after`, {frames,
    -- angles, keys}. `more` are other objects under /entry0000.
    local function nxtomo(name, scan, more, after)
        local n = #scan.angles
        local parts = {scans.flat_frames(3, scan, 100), scans.flat_frames(3, scan, 40100),
            scan.frames or counts_of(scan)}
        local angles = scans.chained(scans.times(6, 0), scan.angles)
        local keys = scans.chained({2, 2, 2, 1, 1, 1}, scans.times(n, 0))
        if after then
            parts[4] = after.frames
            angles, keys = scans.chained(angles, after.angles), scans.chained(keys, after.keys)
        end
        local entry = "/entry0000"
        local objects = {
            {entry, group = "NXentry"}, {entry .. "/definition", "NXtomo"},
            {entry .. "/instrument", group = "NXinstrument"},
            {entry .. "/instrument/detector", group = "NXdetector"},
            {entry .. "/sample", group = "NXsample"},
            {entry .. "/instrument/detector/data", scans.joined(parts)},
            {entry .. "/instrument/detector/image_key", mb.array(keys, {dtype = "i32"})},
            {entry .. "/sample/rotation_angle", mb.array(angles, {dtype = "f64"}),
                {units = "degree"}},
        }
        if not scan.without_pixel_size then
            objects[#objects + 1] = {entry .. "/instrument/detector/x_pixel_size", 1e-6,
                {units = "m"}}
        end
        for _, object in ipairs(more or {}) do
            local under = table.move(object, 1, 3, 1, {group = object.group})
            under[1] = entry .. "/" .. object[1]
            objects[#objects + 1] = under
        end
        scans.write(folder .. "/" .. name, objects)
    end

    -- A Data Exchange file; `parts` replace, add or (false) drop datasets under /exchange.
    local function exchange(name, scan, parts)
        local datasets = {data_white = scans.flat_frames(4, scan, 40100),
            data_dark = scans.flat_frames(4, scan, 100)}
        local objects = {{"/exchange/data", scan.frames or counts_of(scan)}}
        if not scan.without_angles then
            objects[2] = {"/exchange/theta", mb.array(scan.angles, {dtype = "f64"}),
                {units = "deg"}}
        end
        for key, value in pairs(parts or {}) do
            if datasets[key] then
                datasets[key]:release()
            end
            datasets[key] = value or nil
        end
        for key, value in pairs(datasets) do
            objects[#objects + 1] = {key:find "^/" and key or "/exchange/" .. key, value}
        end
        scans.write(folder .. "/" .. name, objects)
    end

    -- A series of TIFF files of the frames, named by `name_of` (nil: left out), with flats and
    -- darks in fl.tif and dk.tif beside it.
    local function series(scan, name_of)
        mb.system.mkdir(folder .. "/series")
        local frames <close> = counts_of(scan)
        for i = 1, frames.shape[1] do
            local name = name_of(i)
            if name then
                local page <close> = frames:view(i)
                mb.tiff.write(folder .. "/series/" .. name, page)
            end
        end
        for name, value in pairs {fl = 40100, dk = 100} do
            local page <close> = scans.flat_frames(3, scan, value)
            mb.tiff.write(("%s/%s.tif"):format(folder, name), page, {overwrite = true})
        end
    end

    -- ---- judgments ----

    local function run(scan, words)
        return judge.reconstruct(folder, scan, words)
    end

    local function check_right(done, scan, row, options)
        assert.equal(0, done.status, done:said())
        local found = done:error_of(scan, row, options)
        assert.is_true(found <= scans.RIGHT, ("error %.3f of row %d:\n%s"):format(found, row,
            done:said()))
    end

    -- Asserts that a text in lower case has one of the patterns.
    local function check_said(text, ...)
        for _, pattern in ipairs {...} do
            if text:lower():find(pattern) then
                return
            end
        end
        error(("nothing of %s in:\n%s"):format(table.concat({...}, ", "), text), 2)
    end

    -- Asserts that a run was refused, with these words.
    local function check_refused(done, ...)
        assert.is_true(done.status == 1 or done.status == 2, done:said())
        for _, word in ipairs {...} do
            assert.is_truthy(done.err:find(word, 1, true), word .. " in " .. done.err)
        end
    end

    -- ---- frames that are no projections ----

    describe("with alignment images", function()
        local scan

        before_each(function()
            scan = usual {rows = 4}
            local moved = usual {rows = 4, center = 67, angles = {180, 90, 0}}
            nxtomo("s.nx", scan, {{"instrument/detector/image_key_control", mb.array(scans.chained(
                {2, 2, 2, 1, 1, 1}, scans.times(180, 0), {-1, -1, -1}), {dtype = "i32"})}},
                {frames = counts_of(moved), angles = moved.angles, keys = {0, 0, 0}})
        end)

        it("leaves them out, and says how many", function()
            local done = run "s.nx"
            check_right(done, scan, 1, {scale = 1e-6})
            assert.near(61, done:axis(), 0.05)
            assert.matches("180 projections", done.out)
            check_said(done:said(), "3[^\n]*alignment", "3[^\n]*image_key_control",
                "alignment[^\n]*3", "image_key_control[^\n]*3")
            assert.is_nil(done.err:find("occur more than once", 1, true), done.err)
        end)

        it("leaves them out in a recipe, too", function()
            files.write(folder .. "/r.lua",
                'return {"flat_field", "minus_log", "center", {"fourier"}}')
            check_right(run("s.nx", "--recipe r.lua"), scan, 1, {scale = 1e-6})
        end)

        it("leaves them out by --plan, too", function()
            local done = judge.command(folder, "reconstruct s.nx -o o.h5 --plan -d host")
            assert.equal(0, done.status, done.err)
            assert.matches("180 projections", done.out)
        end)
    end)

    -- ---- mirrored frames ----

    -- The stored frames are the upright ones mirrored so.
    local function mirrored(scan, columns, rows)
        local upright <close> = counts_of(scan)
        local view <close> = upright:view(mb.all, rows and {scan.rows, 1, -1} or mb.all,
            columns and {scan.cols, 1, -1} or mb.all)
        return view:copy()
    end

    for _, case in ipairs {{true, false}, {false, true}, {true, true}} do
        local columns, rows = table.unpack(case)
        local name = (columns and "left to right" or "") .. (columns and rows and " and " or "")
            .. (rows and "up to down" or "")
        local function check(more)
            local scan = usual {rows = 4}
            scan.frames = mirrored(scan, columns, rows)
            nxtomo("s.nx", scan, more)
            local done = run "s.nx"
            for row = 0, 3 do
                check_right(done, scan, row, {scale = 1e-6})
            end
            check_said(done:said(), "flip", "mirror")
            -- the axis counts in the stored frame
            assert.near(columns and 127 - 61 or 61, done:axis(), 0.05)
        end

        it("is upright where transformations mirror it " .. name, function()
            local place = "instrument/detector/transformations"
            local function turn(path, on, vector)
                return {place .. path, on and 180.0 or 0.0,
                    {transformation_type = "rotation", vector = vector, units = "degree"}}
            end
            check {{place, group = "NXtransformations"}, turn("/ry", columns, {0.0, 1.0, 0.0}),
                turn("/rx", rows, {1.0, 0.0, 0.0})}
        end)

        it("is upright where x_flipped and y_flipped mirror it " .. name, function()
            check {{"instrument/detector/x_flipped", columns and 1 or 0},
                {"instrument/detector/y_flipped", rows and 1 or 0}}
        end)
    end

    -- ---- half acquisition ----

    describe("of a whole turn with the axis near an edge", function()
        local function half(name, more)
            local scan = usual {angles = scans.steps(480, 0, 0.75), center = 105, half = 100,
                mu = 2 / 128}
            nxtomo(name, scan, more)
            return scan
        end
        local DECLARED <const> = {{"instrument/detector/field_of_view", "Half"}}

        it("is a half acquisition where the file declares one", function()
            local scan = half("s.nx", DECLARED)
            local done = run "s.nx"
            assert.same({2, 211, 211}, done:shape())
            check_right(done, scan, 1, {scale = 1e-6, size = 211})
            check_said(done:said(), "field_of_view", "half acquisition")
        end)

        it("is one in a recipe that nabu's automatic choice gave", function()
            local scan = half("s.nx", DECLARED)
            files.write(folder .. "/nabu.conf", table.concat({"[dataset]", "location = s.nx",
                "[preproc]", "flatfield = 1", "[reconstruction]", "method = FBP",
                "enable_halftomo = auto", "rotation_axis_position = sliding-window", "[output]",
                "location = .", ""}, "\n"))
            local import = judge.command(folder, "import_recipe nabu.conf -o r.lua --overwrite")
            assert.equal(0, import.status, import.err)
            local done = run("s.nx", "--recipe r.lua")
            assert.equal(0, done.status, done.err)
            assert.same({2, 211, 211}, done:shape())
            check_right(done, scan, 1, {scale = 1e-6, size = 211})
        end)

        it("is noticed where nothing declares it, and the option is right", function()
            local scan = half "s.nx"
            local done = run "s.nx"
            assert.equal(0, done.status, done.err)
            assert.matches("%-%-half%-acquisition", done.err)
            local again = run("s.nx", "--half-acquisition")
            check_right(again, scan, 1, {scale = 1e-6, size = 211})
            assert.is_nil(again.err:find("--half-acquisition", 1, true), again.err)
        end)

        it("is noticed where the axis is given", function()
            half "s.nx"
            local done = run("s.nx", "-c 105")
            assert.equal(0, done.status, done.err)
            assert.matches("%-%-half%-acquisition", done.err)
        end)

        it("is refused, with the reason, where half a turn is declared Half", function()
            local scan = usual {center = 105, half = 100, mu = 2 / 128}
            nxtomo("s.nx", scan, DECLARED)
            local done = run "s.nx"
            assert.is_true(done.status ~= 0 or done.err:find("field_of_view", 1, true) ~= nil,
                done.err)
            check_said(done.err, "whole turn", "field_of_view")
        end)
    end)

    -- ---- series of images ----

    describe("in numbered files", function()
        local WORDS <const> = "--flats fl.tif --darks dk.tif --angle-unit deg "
        local ENDS <const> = WORDS .. "--angles 0:179"

        -- img_00060 to img_00089 are missing.
        local function gap(i)
            return not (i > 60 and i <= 90) and ("img_%05d.tif"):format(i - 1) or nil
        end

        it("is refused where numbers are missing and only the ends are known", function()
            series(usual(), gap)
            local done = run("series", ENDS)
            check_refused(done)
            check_said(done.err, "59[^\n]*90", "60[^\n]*89") -- the last before and the first after
        end)

        it("is paired by number where that is allowed", function()
            local scan = usual()
            series(scan, gap)
            local kept = {}
            for i = 1, 180 do
                if gap(i) then
                    kept[#kept + 1] = i - 1
                end
            end
            -- 30 degrees are not there: the slice is that of the same projections in HDF5
            local part = usual {angles = kept}
            exchange("s.h5", part)
            local expected = run("s.h5", "-c 61"):error_of(part, 1)
            local done = run("series", ENDS .. " -c 61 --allow-missing")
            assert.equal(0, done.status, done.err)
            assert.near(expected, done:error_of(scan, 1), 1e-4)
        end)

        it("takes a list with one angle a file, or one a number", function()
            local scan = usual()
            series(scan, gap)
            local all, kept, kept_angles = {}, {}, {}
            for i = 1, 180 do
                all[i] = ("%d"):format(i - 1)
                if gap(i) then
                    kept[#kept + 1], kept_angles[#kept_angles + 1] = all[i], i - 1
                end
            end
            -- 30 degrees are not there: the slice is that of the same projections in HDF5
            local part = usual {angles = kept_angles}
            exchange("s.h5", part)
            local errors, expected = {}, run("s.h5", "-c 61"):error_of(part, 1)
            for name, list in pairs {all = all, kept = kept} do
                files.write(folder .. "/a.txt", table.concat(list, "\n"))
                local done = run("series", WORDS .. "-c 61 --angles-path a.txt"
                    .. (name == "all" and " --allow-missing" or ""))
                assert.equal(0, done.status, name .. ": " .. done.err)
                errors[#errors + 1] = done:error_of(scan, 1)
            end
            assert.near(errors[1], errors[2], 1e-6)
            assert.near(expected, errors[1], 1e-4)
        end)

        it("has no gap where its numbers have another step, or are angles", function()
            for _, name in ipairs {"p_%05d.tif|10", "p_%07.2f.tif|1"} do
                local form, step = name:match "(.+)|(.+)"
                local scan = usual()
                series(scan, function(i) return form:format((i - 1) * tonumber(step)) end)
                local done = run("series", ENDS .. " -c 61")
                check_right(done, scan, 1)
                for _, line in ipairs(done:lines()) do
                    assert.matches("no pixel size", line)
                end
                files.remove(folder .. "/series")
            end
        end)

        for name, text in pairs {
            ["a number and an angle a line"] = function(i, a) return ("%d %.3f"):format(i, a) end,
            ["decimal commas"] = function(_, a) return (("%.3f"):format(a):gsub("%.", ",")) end,
            ["a header"] = function(i, a) return (i == 0 and "angle(deg)\n" or "")
                .. ("%.3f"):format(a) end,
            ["a byte order mark and carriage returns"] = function(i, a)
                return (i == 0 and "\u{FEFF}" or "") .. ("%.3f\r"):format(a)
            end,
            ["a header, numbers and tabs"] = function(i, a)
                return (i == 0 and "image\tangle\n" or "") .. ("%d\t%.3f"):format(i, a)
            end,
            ["semicolons and decimal commas"] = function(i, a)
                return ("%d;%s"):format(i, (("%.3f"):format(a):gsub("%.", ",")))
            end,
        } do
            it("takes a list of angles with " .. name, function()
                local scan, lines = usual(), {}
                series(scan, function(i) return ("p%04d.tif"):format(i - 1) end)
                for i, angle in ipairs(scan.angles) do
                    lines[i] = text(i - 1, angle)
                end
                files.write(folder .. "/a.txt", table.concat(lines, "\n") .. "\n")
                local done = run("series", WORDS .. "--angles-path a.txt")
                assert.is_nil(done:said():find("--wait", 1, true), done:said())
                check_right(done, scan, 1)
            end)
        end

        describe("that has darks and flats, too", function()
            local scan

            before_each(function()
                scan = usual()
                mb.system.mkdir(folder .. "/one")
                local all <close> = scans.joined {scans.flat_frames(5, scan, 100),
                    scans.flat_frames(5, scan, 40100), counts_of(scan),
                    scans.flat_frames(5, scan, 40100)}
                for i = 1, all.shape[1] do
                    local page <close> = all:view(i)
                    mb.tiff.write(("%s/one/s%04d.tif"):format(folder, i), page)
                end
            end)

            it("is told apart by a list of image keys", function()
                files.write(folder .. "/keys.txt", table.concat(scans.chained(scans.times(5, 2),
                    scans.times(5, 1), scans.times(180, 0), scans.times(5, 1)), "\n"))
                local done = run("one", "--angles 0:179 --angle-unit deg "
                    .. "--image-key-path keys.txt")
                check_right(done, scan, 1)
                assert.matches("180 projections", done.out)
                assert.matches("10 flats", done.out)
            end)

            it("is refused without one, with the option that helps", function()
                check_refused(run("one", "--angles 0:179 --angle-unit deg"), "--image-key-path")
            end)
        end)
    end)

    -- ---- arcs ----

    for _, span in ipairs {180, 200, 220, 270, 300, 330, 359, 360, 540} do
        it(("of %d degrees has the error of half a turn"):format(span), function()
            local scan = usual {angles = scans.steps(span, 0, 1)}
            exchange("s.h5", scan)
            for _, words in ipairs {"", "-m fbp"} do
                local done = run("s.h5", "-c 61 " .. words)
                assert.equal(0, done.status, done.err)
                -- filtered back-projection smooths a little: it is compared with its own half turn
                if words == "" then
                    check_right(done, scan, 1)
                else
                    assert.is_true(done:error_of(scan, 1) <= 0.06, done:error_of(scan, 1))
                end
            end
        end)
    end

    -- ---- lengths ----

    local MAGNIFIED <const> = {
        ["magnified pixels of the detector"] = "instrument/detector/%s_magnified_pixel_size",
        ["pixels of the sample"] = "sample/%s_pixel_size",
    }
    for name, path in pairs(MAGNIFIED) do
        it("is per meter at the sample where the file has " .. name, function()
            local scan, more = usual {without_pixel_size = true}, {}
            for _, axis in ipairs {"x", "y"} do
                more[#more + 1] = {("instrument/detector/%s_pixel_size"):format(axis), 6.5e-6,
                    {units = "m"}}
                more[#more + 1] = {path:format(axis), 0.65, {units = "um"}}
            end
            nxtomo("s.nx", scan, more)
            local done = run "s.nx"
            check_said(done.out, "\npixel +0.65 um", "\npixel +650 nm")
            check_right(done, scan, 1, {scale = 6.5e-7})
        end)
    end

    it("is shifted by translations with units, for projections or for all frames", function()
        local lifts, meters = {}, {}
        for i = 1, 180 do
            lifts[i] = math.floor(4 * math.sin(math.rad(2 * (i - 1))) + 0.5)
            meters[i] = -lifts[i] * 1e-6
        end
        local scan = usual {rows = 24, lifts = lifts}
        local function list(values) return mb.array(values, {dtype = "f64"}) end
        local micrometers = {}
        for i, value in ipairs(meters) do
            micrometers[i] = value * 1e6
        end
        nxtomo("s.nx", scan, {{"sample/z_of_projections", list(meters), {units = "m"}},
            {"sample/z_in_um", list(micrometers), {units = "um"}},
            {"sample/z_of_frames", list(scans.chained(scans.times(6, 0), meters)),
                {units = "m"}}})
        local still = usual {rows = 24}
        for _, path in ipairs {"z_of_projections", "z_in_um", "z_of_frames"} do
            local done = run("s.nx", "-c 61 --vertical-shifts /entry0000/sample/" .. path)
            check_right(done, still, 12, {scale = 1e-6})
        end
    end)

    -- ---- flats and darks ----

    describe("with a flat among its darks", function()
        local scan

        before_each(function()
            scan = usual()
            exchange("s.h5", scan, {data_dark = scans.joined {scans.flat_frames(1, scan, 40100),
                scans.flat_frames(3, scan, 100)}})
        end)

        it("is right, or named with the option that cures it", function()
            local done = run "s.h5"
            if done:error_of(scan, 1) > scans.RIGHT then
                check_said(done.err, "dark[^\n]* 1[^%d]", "frame 1 of[^\n]*dark")
                check_said(done.err, "%-%-flat%-mode[= ]median", "%-%-darks")
            end
        end)

        it("is right with the median", function()
            check_right(run("s.h5", "--flat-mode median"), scan, 1)
        end)
    end)

    it("has constants for flats and darks, and a start and a step for angles", function()
        local scan = usual {without_angles = true}
        local base = "/process/acquisition/"
        exchange("s.h5", scan, {data_white = false, data_dark = false,
            [base .. "flat_fields/flat_field_value"] = 40100.0,
            [base .. "dark_fields/dark_field_value"] = 100.0,
            [base .. "rotation/rotation_start"] = 0.0, [base .. "rotation/rotation_step"] = 1.0,
            [base .. "rotation/num_angles"] = 180})
        local done = run "s.h5"
        check_right(done, scan, 1)
        check_said(done:said(), "flat_field_value", "40100")
        check_said(done:said(), "rotation_step", "rotation_start")
        check_right(run("s.h5", "--angles 0:179 --angle-unit deg"), scan, 1)
        check_right(run("s.h5", "--angles 0:179 --angle-unit deg --flats 40100"), scan, 1)
    end)

    describe("whose flats before and after differ", function()
        local scan

        before_each(function()
            scan = usual()
            local integrals <close> = scans.line_integrals(scan)
            local beam, parts = {}, {}
            for col = 1, 128 do
                beam[col] = col > 40 and col <= 60 and 0.8 or 1
            end
            for i = 1, 180 do
                local part <close> = integrals:view {i, i}
                local profile = {}
                for col = 1, 128 do
                    profile[col] = 1 + (beam[col] - 1) * (i - 1) / 179
                end
                local now <close> = mb.array({{profile, profile}}, {dtype = "f32"})
                parts[i] = scans.counts(part, {profile = now})
            end
            scan.frames = scans.joined(parts)
            scan.after = beam
        end)

        -- Four flats under this profile.
        local function flats(profile)
            local rows = {}
            for col = 1, 128 do
                rows[col] = math.floor(40000 * profile[col] + 100.5)
            end
            local frames = {}
            for i = 1, 4 do
                frames[i] = {rows, rows}
            end
            return mb.array(frames, {dtype = "u16"})
        end

        for _, first in ipairs {"data_white", "data_white_pre"} do
            it("takes both by default: " .. first .. " and data_white_post", function()
                exchange("s.h5", scan, {data_white = false, [first] = flats(scans.times(128, 1)),
                    data_white_post = flats(scan.after)})
                local done = run("s.h5", "-c 61")
                assert.equal(0, done.status, done.err)
                assert.matches("8 flats", done.out)
                files.write(folder .. "/r.lua", 'return {{"flat_field", interpolation = "linear"},'
                    .. ' "minus_log", {"fourier", center = 61}}')
                check_right(run("s.h5", "--recipe r.lua"), scan, 1)
            end)
        end

        it("says that flats which an option names are not all", function()
            exchange("s.h5", scan, {data_white = flats(scans.times(128, 1)),
                data_white_post = flats(scan.after)})
            local done = run("s.h5", "-c 61 --flats-path /exchange/data_white_post")
            assert.equal(0, done.status, done.err)
            assert.matches("4 flats", done.out)
        end)
    end)

    it("leaves nothing live", function()
        helper.check_nothing_live()
    end)
end)
