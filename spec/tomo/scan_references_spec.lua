-- Which frames of a scan are flats, darks and projections: datasets before and after the scan,
-- several that an option names, constants, and alignment images.

local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local made = require "spec.support.frame_scans"
local mb = require "moonbeam"

local PLAIN <const> = {"flat_field"}
local LINEAR <const> = {{"flat_field", interpolation = "linear"}}

describe("the frames of a scan", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function written(objects, name)
        return made.write(folder .. "/" .. (name or "scan.h5"), objects)
    end

    local function opened(objects, options, name)
        local scan, problem = mb.scan.open(written(objects, name), options)
        return assert(scan, tostring(problem))
    end

    -- Asserts that a recipe makes the same of two scans, to the bit, in blocks of any size.
    local function same(expected, scan, recipe)
        local want <close> = check.result(expected, recipe)
        local _ <close> = check.gives(want, scan, recipe)
    end

    local function says(scan, words)
        local text = scan:describe()
        assert.is_truthy(text:find(words, 1, true), text)
    end

    -- Asserts that a scan warns of nothing, or of this alone.
    local function warns(scan, words)
        assert.equal(words and 1 or 0, #scan.warnings, table.concat(scan.warnings, "\n"))
        assert.is_truthy(not words or scan.warnings[1]:find(words, 1, true), scan.warnings[1])
    end

    local function refused(code, argument, words, path, options)
        local scan, problem = mb.scan.open(path, options)
        assert.is_nil(scan)
        assert.same({code, argument}, {problem.code, problem.arg}, tostring(problem))
        assert.is_truthy(tostring(problem):find(words, 1, true), tostring(problem))
    end

    -- The scan with all flats in one dataset, half of them taken after the projections.
    local function of_both()
        return opened(made.exchange {
            ["/process/acquisition/flat_fields/flat_field_mode"] = "Both"}, nil, "both.h5")
    end

    for _, first in ipairs {"data_white", "data_white_pre"} do
        it("has flats before and after the projections: " .. first, function()
            local objects = made.exchange {["/exchange/data_white"] = false}
            objects["/exchange/" .. first] = made.flats(1, 2)
            objects["/exchange/data_white_post"] = made.flats(3, 4)
            local scan <close> = opened(objects)
            local both <close> = of_both()
            assert.equal(4, scan.n_flats)
            says(scan, "4 flats in 2 groups, 2 darks")
            warns(scan)
            same(both, scan, PLAIN)
            same(both, scan, LINEAR)
            local rows <close> = both:flats(2)
            local own <close> = scan:flats(2)
            assert.equal(rows:to_string(), own:to_string())
            local out <close> = mb.zeros({4, 2, made.COLS}, {dtype = "f32", device = "host"})
            assert.equal(out, (scan:flats({2, 3}, {out = out})))
            local want <close> = both:flats({2, 3}, {dtype = "f32"})
            assert.equal(want:to_string(), out:to_string())
        end)
    end

    it("makes the same volume of them by flags, rows and recipes", function()
        local one = written(made.exchange {
            ["/process/acquisition/flat_fields/flat_field_mode"] = "Both"}, "one.h5")
        local two = written(made.exchange {["/exchange/data_white"] = false,
            ["/exchange/data_white_pre"] = made.flats(1, 2),
            ["/exchange/data_white_post"] = made.flats(3, 4),
            ["/exchange/data_dark"] = false, ["/exchange/data_dark_pre"] = made.darks(1, 1),
            ["/exchange/data_dark_post"] = made.darks(2, 2)}, "two.h5")
        local recipe = files.write(folder .. "/linear.lua", "{{\"flat_field\", interpolation = "
            .. "\"linear\"}, \"minus_log\", {\"fbp\", center = 7.5}}") or folder .. "/linear.lua"
        for _, arguments in ipairs {"--rows 2:3", "--no-overlap --chunk 1",
            ("--recipe '%s'"):format(recipe)} do
            local want = made.volume(one, arguments)
            local have, text = made.volume(two, arguments)
            assert.is_true(want == have, arguments)
            assert.truthy(text:find("4 flats in 2 groups, 2 darks", 1, true), text)
            assert.is_nil(text:find("warning", 1, true), text)
        end
    end)

    it("is the same run only with the same frames", function()
        local journal = require "moonbeam.pipeline.journal"
        local path = written(made.exchange {["/exchange/data_white_post"] = made.flats(3, 4)})
        local function identity(options)
            local scan <close> = assert(mb.scan.open(path, options))
            local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 7.5}},
                {quiet = true})
            for _, each in ipairs(journal.identity(p:plan().made or p:plan(), {})) do
                if each[1] == "frames" then
                    return each[2]
                end
            end
        end
        local usual = identity {}
        assert.equal(usual, identity {})
        for _, options in ipairs {{flats = "/exchange/data_white"}, {darks = 12},
            {flats_exposure = 2}} do
            assert.is_true(usual ~= identity(options))
        end
    end)

    it("is read by a virtual dataset and by its own name at a time", function()
        made.write(folder .. "/source.h5", {["/p"] = made.data(), ["/f"] = made.flats(1, 4)})
        local path = folder .. "/master.h5"
        local file <close> = mb.h5.create(path, {overwrite = true})
        file:group "/exchange"
        file:create_virtual("/exchange/data", {shape = {made.N, made.ROWS, made.COLS},
            dtype = "u16", sources = {{file = "source.h5", path = "/p", first = 1, last = made.N}}})
        file:write("/exchange/theta", made.degrees())
        file:finish()
        local plain <close> = assert(mb.scan.open(written(made.exchange())))
        local scan <close> = assert(mb.scan.open(path, {flats_file = folder .. "/source.h5",
            flats = "/f", darks = false}))
        for _, name in ipairs {"projections", "flats"} do
            local wanted <close> = plain[name](plain)
            local found <close> = scan[name](scan)
            assert.is_true(wanted:to_string() == found:to_string(), name)
        end
    end)

    it("is the same run only with the same linked files", function()
        local journal = require "moonbeam.pipeline.journal"
        local frames = {["/exchange/data"] = "projections", ["/exchange/data_white"] = "flats"}
        local objects, many = made.exchange(), {}
        for name, file in pairs(frames) do
            made.write(("%s/%s.h5"):format(folder, file), {["/d"] = objects[name]})
        end
        for i = 1, 20 do
            many[i] = made.write(("%s/frame%d.h5"):format(folder, i),
                {["/d"] = made.data {i}})
        end
        local path = folder .. "/master.h5"
        local function master(virtual)
            local file <close> = mb.h5.create(path, {overwrite = true})
            file:group "/exchange"
            local sources = {}
            for i = 1, virtual and 20 or 1 do
                sources[i] = {file = virtual and ("frame%d.h5"):format(i) or "projections.h5",
                    path = "/d", first = i, last = virtual and i or made.N}
            end
            file:create_virtual("/exchange/data", {shape = {virtual and 20 or made.N, made.ROWS,
                made.COLS}, dtype = "u16", sources = sources})
            file:create_virtual("/exchange/data_white", {shape = {4, made.ROWS, made.COLS},
                dtype = "u16", sources = {{file = "flats.h5", path = "/d", first = 1, last = 4}}})
            file:write("/exchange/theta", made.degrees(virtual and 20 or made.N))
            file:finish()
        end
        local function identity()
            local scan <close> = assert(mb.scan.open(path, {darks = false}))
            local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 7.5}},
                {quiet = true})
            for _, each in ipairs(journal.identity(p:plan().made or p:plan(), {})) do
                if each[1] == "scan" then
                    return each[2]
                end
            end
        end
        for _, virtual in ipairs {false, true} do
            master(virtual)
            local usual = identity()
            assert.equal(usual, identity())
            for _, file in ipairs {virtual and many[7] or folder .. "/projections.h5",
                folder .. "/flats.h5"} do
                local was = identity()
                os.execute(("touch -d '2020-01-%d' '%s'"):format(virtual and 2 or 1, file))
                assert.is_true(was ~= identity(), file)
            end
        end
    end)

    it("has one group of flats where the other dataset is empty or missing", function()
        for _, post in ipairs {made.flats(3, 4), false} do
            local objects = made.exchange {["/exchange/data_white"] = false,
                ["/exchange/data_white_pre"] = not post and made.flats(1, 2) or false,
                ["/exchange/data_white_post"] = post}
            local scan <close> = opened(objects)
            says(scan, "2 flats, 2 darks")
            warns(scan)
            same(scan, scan, LINEAR)
        end
    end)

    it("leaves out flats of a third dataset, and says so", function()
        local scan <close> = opened(made.exchange {
            ["/exchange/data_white_pre"] = made.flats(1, 2),
            ["/exchange/data_white_post"] = made.flats(3, 4)})
        assert.equal(4, scan.n_flats)
        warns(scan, "'/exchange/data_white' is left out")
        local named <close> = opened(made.exchange {
            ["/exchange/data_white_pre"] = made.flats(1, 2),
            ["/exchange/data_white_post"] = made.flats(3, 4)}, {flats = "/exchange/data_white"})
        warns(named)
        assert.equal(4, named.n_flats)
    end)

    it("takes the datasets that an option names, in their order", function()
        local objects = made.exchange {["/exchange/data_white"] = false,
            ["/a/flats"] = made.flats(1, 2), ["/a/late"] = made.flats(3, 4)}
        local path = written(objects)
        local both <close> = of_both()
        for _, flats in ipairs {"/a/flats,/a/late", {"/a/flats", "/a/late"},
            ("%s:/a/flats, %s:/a/late"):format(path, path)} do
            local scan <close> = assert(mb.scan.open(path, {flats = flats}))
            warns(scan)
            same(both, scan, LINEAR)
        end
        local three <close> = assert(mb.scan.open(path, {
            flats = {"/a/flats", "/a/late", "/a/flats"}, darks = {"/exchange/data_dark",
            "/exchange/data_dark"}}))
        says(three, "6 flats in 3 datasets, 4 darks in 2 datasets")
        check.refused("the scan does not say when its flats were taken", three, LINEAR)
        local placed <close> = assert(mb.scan.open(path, {flats = "/a/flats,/a/late",
            flat_positions = {0, 0, 6, 6}}))
        says(placed, "4 flats in 2 groups")
        refused("io", "flats", "there is no '/a/flat'", path, {flats = "/a/flat,/a/late"})
        refused("argument", "flats", "element 2", path, {flats = {"/a/flats", 7}})
        local text = select(2, made.volume(path, "--flats-path /a/flats,/a/late"))
        assert.is_truthy(text:find("4 flats in 2 groups", 1, true), text)
    end)

    it("takes several files of their own, of HDF5 and images", function()
        local path = written(made.exchange {["/exchange/data_white"] = false})
        local both <close> = of_both()
        written({["/some/flats"] = made.flats(1, 2)}, "pre.h5")
        local late <close> = mb.array(made.flats(3, 4), {dtype = "u16", device = "host"})
        mb.images.write(folder .. "/post.tif", late)
        written({["/some/flats"] = made.flats(3, 4)}, "post.h5")
        for _, name in ipairs {"post.tif", "post.h5"} do
            local scan <close> = assert(mb.scan.open(path, {flats_file = ("%s/pre.h5,%s/%s"):format(
                folder, folder, name)}))
            warns(scan)
            says(scan, "4 flats in 2 groups")
            same(both, scan, LINEAR)
        end
        local data <close> = assert(mb.scan.open(path, {flats_file = written(made.exchange {
            ["/exchange/data_white"] = false, ["/exchange/data_white_pre"] = made.flats(1, 2),
            ["/exchange/data_white_post"] = made.flats(3, 4)}, "flats.h5")}))
        same(both, data, LINEAR)
    end)

    it("may have datasets of different types", function()
        local scan <close> = opened(made.exchange {["/exchange/data_white"] = false,
            ["/exchange/data_white_pre"] = made.flats(1, 2),
            ["/exchange/data_white_post"] = {value = made.flats(3, 4), dtype = "f32"}})
        local both <close> = of_both()
        local want <close> = check.result(both, PLAIN)
        local have <close> = check.result(scan, PLAIN)
        helper.assert_close(want, have, 1e-6)
        local blocks <close> = check.gives(nil, scan, LINEAR)
        assert.equal("f32", blocks.dtype)
    end)

    describe("that are constants", function()
        local function level(value, count)
            local list = made.flats(1, count or 1)
            for _, frame in ipairs(list) do
                for _, row in ipairs(frame) do
                    for c = 1, #row do
                        row[c] = value
                    end
                end
            end
            return list
        end

        it("come from the file, where it has no such frames", function()
            local place = "/process/acquisition/%s_fields/%s_field_value"
            local objects = made.exchange {["/exchange/data_white"] = false,
                ["/exchange/data_dark"] = false, [place:format("flat", "flat")] = 1100,
                [place:format("dark", "dark")] = 12.0}
            local scan <close> = opened(objects)
            local frames <close> = opened(made.exchange {["/exchange/data_white"] = level(1100), ["/exchange/data_dark"] = level(12)}, nil,
                "frames.h5")
            says(scan, "flats: the constant 1100 (flat_field_value), darks: the constant 12 "
                .. "(dark_field_value)")
            warns(scan)
            same(frames, scan, PLAIN)
            local want, have = made.volume(frames.path), made.volume(scan.path, "--chunk 3")
            assert.is_true(want == have)
            local with <close> = opened(made.exchange {[place:format("flat", "flat")] = 1100})
            says(with, "4 flats, 2 darks")
            for _, value in ipairs {0, -3, 0 / 0} do
                local none <close> = opened(made.exchange {["/exchange/data_white"] = false,
                    [place:format("flat", "flat")] = value})
                warns(none, "there are no flats")
            end
        end)

        it("may be typed for stacks of images", function()
            local data <close> = mb.array(made.data(), {dtype = "u16", device = "host"})
            local path = folder .. "/stack.tif"
            mb.images.write(path, data)
            local frames <close> = opened(made.exchange {["/exchange/data_white"] = level(1100),
                ["/exchange/data_dark"] = level(12)}, nil, "frames.h5")
            local scan <close> = assert(mb.scan.open(path, {angles = {0, 165}, angle_unit = "deg",
                flats_file = "1100", darks_file = "12"}))
            same(frames, scan, PLAIN)
        end)

        it("may be typed", function()
            local frames <close> = opened(made.exchange {["/exchange/data_white"] = level(1100),
                ["/exchange/data_dark"] = level(12)}, nil, "frames.h5")
            local path = written(made.exchange())
            for _, options in ipairs {{flats = 1100, darks = 12},
                {flats_file = "1100", darks_file = "12"}} do
                local scan <close> = assert(mb.scan.open(path, options))
                says(scan, "flats: the constant 1100 (as given), darks: the constant 12 (as given)")
                same(frames, scan, PLAIN)
            end
            local volume, text = made.volume(path, "--flats 1100 --darks 12")
            assert.is_true(made.volume(frames.path) == volume)
            assert.is_truthy(text:find("flats: the constant 1100 (as given)", 1, true), text)
            refused("argument", "flats", "the constant 0", path, {flats = 0})
            refused("argument", "darks", "the constant -1", path, {darks_file = "-1"})
        end)
    end)

    describe("of which some are alignment images", function()
        -- Three images after the scan, whose control is -1; their angles are 0.
        local function with_images(changes)
            local _, keys, frames, angles = made.nxtomo()
            local control = table.move(keys, 1, #keys, 1, {})
            for _, frame in ipairs(made.data {41, 42, 43}) do
                frames[#frames + 1], keys[#keys + 1] = frame, 0
                control[#control + 1], angles[#angles + 1] = -1, 0
            end
            local own = {["/instrument/detector/data"] = frames,
                ["/instrument/detector/image_key"] = keys,
                ["/instrument/detector/image_key_control"] = control,
                ["/sample/rotation_angle"] = {value = angles, attributes = {units = "deg"}}}
            for name, value in pairs(changes and changes(keys, control, angles) or {}) do
                own[name] = value
            end
            return (made.nxtomo(own))
        end

        it("leaves them out, and says how many and why", function()
            local scan <close> = opened(with_images())
            local bare <close> = opened((made.nxtomo()), nil, "bare.h5")
            assert.same({made.N, 4, 2}, {scan.n_angles, scan.n_flats, scan.n_darks})
            says(scan, "; 3 frames left out, whose image_key_control (-1: alignment images) is not "
                .. "the image key")
            warns(scan)
            same(bare, scan, LINEAR)
            assert.same(bare.angles, scan.angles)
            local volume, text = made.volume(scan.path)
            assert.is_true(volume == made.volume(bare.path))
            assert.is_truthy(text:find("3 frames left out", 1, true), text)
        end)

        it("takes angles for the projections, with and without them", function()
            local bare <close> = opened((made.nxtomo()), nil, "bare.h5")
            for _, count in ipairs {made.N, made.N + 3} do
                local scan <close> = opened(with_images(function()
                    return {["/sample/rotation_angle"] = {value = made.degrees(count, 180 / made.N),
                        attributes = {units = "deg"}}}
                end))
                assert.same(bare.angles, scan.angles)
            end
            local typed <close> = opened(with_images(), {angles = {0, 165}, angle_unit = "deg"})
            for i, angle in ipairs(bare.angles) do
                assert.near(angle, typed.angles[i], 1e-12)
            end
        end)

        it("takes all where the image keys are named", function()
            local scan <close> = opened(with_images(), {
                image_key = "/entry/instrument/detector/image_key"})
            assert.equal(made.N + 3, scan.n_angles)
            assert.is_truthy(scan.warnings[1]:find("the image_key_control of 3 of them", 1, true),
                scan.warnings[1])
            local control <close> = opened(with_images(), {
                image_key = "/entry/instrument/detector/image_key_control"})
            assert.equal(made.N, control.n_angles)
        end)

        it("leaves out what its control says otherwise, of flats and darks too", function()
            local scan <close> = opened(with_images(function(_, control)
                control[1], control[3] = 3, 0
                return {}
            end))
            assert.same({made.N, 3, 1}, {scan.n_angles, scan.n_flats, scan.n_darks})
            says(scan, "5 frames left out, whose image_key_control (-1, 0, 3) is not")
        end)

        it("takes the control alone for keys", function()
            local scan <close> = opened(with_images(function()
                return {["/instrument/detector/image_key"] = false}
            end))
            assert.equal(made.N, scan.n_angles)
            warns(scan, "3 frames are marked invalid")
        end)

        it("does not use a control that nobody has filled in", function()
            local scan <close> = opened(with_images(function(keys)
                local zeros = {}
                for i = 1, #keys do
                    zeros[i] = 0
                end
                return {["/instrument/detector/image_key_control"] = zeros}
            end))
            assert.equal(made.N + 3, scan.n_angles)
            assert.is_truthy(scan.warnings[1]:find("is 0 for every frame, and is not used", 1, true))
        end)

        it("refuses a control of another length, by name", function()
            local path = written(with_images(function()
                return {["/instrument/detector/image_key_control"] = {0, -1, 0}}
            end))
            refused("shape", "image_key", "3 values of image_key_control for 21 frames, in "
                .. "'/entry/instrument/detector/image_key_control'", path)
            local named <close> = assert(mb.scan.open(path, {
                image_key = "/entry/instrument/detector/image_key"}))
            assert.equal(made.N + 3, named.n_angles)
        end)
    end)
end)
