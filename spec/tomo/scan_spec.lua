-- Scans: Data Exchange and NXtomo with their variants, units, and what is wrong with bad ones.
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

-- Frame k (from 1) of n frames of rows x cols; its pixel (r, c) is 1000 k + 10 r + c.
local function frames(n, rows, cols, first)
    local values = {}
    for k = 1, n do
        values[k] = {}
        for r = 1, rows do
            values[k][r] = {}
            for c = 1, cols do
                values[k][r][c] = 1000 * (k + (first or 0)) + 10 * r + c
            end
        end
    end
    return mb.array(values, { dtype = "u16" })
end

local function angles(n, step)
    local values = {}
    for i = 1, n do
        values[i] = (i - 1) * step
    end
    return values
end

describe("scan", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/scan.h5"
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- Writes arrays and values: {path = array | value | {value, attributes}}; arrays are released.
    local function write(objects, name)
        local file <close> = mb.h5.create(name or path, { overwrite = true })
        local names = {}
        for key in pairs(objects) do
            names[#names + 1] = key
        end
        table.sort(names)
        for _, key in ipairs(names) do
            local object = objects[key]
            local value, attributes = object, nil
            if type(object) == "table" and object.value ~= nil then
                value, attributes = object.value, object.attributes
            end
            if type(value) == "table" and value.group then
                file:group(key, value.group)
            elseif object then
                file:write(key, value, { attributes = attributes })
            end
            if mb.array.is_array(value) then
                value:release()
            end
        end
        file:finish()
    end

    -- A Data Exchange scan of 6 angles, 3 rows, 4 columns; `changes` replace or (false) drop parts.
    local function data_exchange(changes)
        local objects = {
            ["/implements"] = "exchange",
            ["/exchange/theta"] = { value = angles(6, 30), attributes = { units = "deg" } },
        }
        for key, value in pairs(changes or {}) do
            objects[key] = value
        end
        if objects["/exchange/data"] == nil then
            objects["/exchange/data"] = frames(6, 3, 4)
        end
        if objects["/exchange/data_white"] == nil then
            objects["/exchange/data_white"] = frames(2, 3, 4, 20)
        end
        if objects["/exchange/data_dark"] == nil then
            objects["/exchange/data_dark"] = frames(1, 3, 4, 30)
        end
        write(objects)
    end

    -- An NXtomo scan; frames in order: dark, flat, 2 projections, flat, 2 projections, invalid.
    local keys = { 2, 1, 0, 0, 1, 0, 0, 3 }

    local function nxtomo(changes, entry)
        entry = entry or "/entry"
        local objects = {
            [entry] = { group = "NXentry" },
            [entry .. "/definition"] = "NXtomo",
            [entry .. "/instrument"] = { group = "NXinstrument" },
            [entry .. "/instrument/detector"] = { group = "NXdetector" },
            [entry .. "/instrument/detector/image_key"] = keys,
            [entry .. "/instrument/detector/x_pixel_size"] = {
                value = 6.5, attributes = { units = "um" },
            },
            [entry .. "/sample"] = { group = "NXsample" },
            [entry .. "/sample/rotation_angle"] = {
                value = { 0, 0, 0, 60, 60, 120, 180, 180 }, attributes = { units = "degree" },
            },
        }
        for key, value in pairs(changes or {}) do
            objects[entry .. key] = value
        end
        if objects[entry .. "/instrument/detector/data"] == nil then
            objects[entry .. "/instrument/detector/data"] = frames(8, 3, 4)
        end
        write(objects)
    end

    local function opened(options)
        local s, err = mb.scan.open(path, options)
        if not s then
            error(tostring(err), 2)
        end
        return s
    end

    local function refused(options)
        local s, err = mb.scan.open(path, options)
        assert.is_nil(s)
        assert.is_table(err)
        return tostring(err), err.code, err.arg
    end

    local function warned(s, words)
        for _, text in ipairs(s.warnings) do
            if text:find(words, 1, true) then
                return true
            end
        end
        return false
    end

    -- Asserts that nothing is odd but the missing pixel size.
    local function check_unwarned(s)
        assert.same({ "no pixel size was found: the volume is attenuation per pixel, not per "
            .. "meter; "
            .. "give the option pixel_size" }, s.warnings)
    end

    describe("in Data Exchange", function()
        it("is read", function()
            data_exchange()
            local s <close> = opened()
            assert.equal("Data Exchange", s.format)
            assert.same({ 6, 3, 4, 2, 1 }, { s.n_angles, s.rows, s.cols, s.n_flats, s.n_darks })
            assert.equal("u16", s.dtype)
            assert.near(math.rad(150), s.angles[6], 1e-12)
            assert.is_nil(s.pixel_size)
            check_unwarned(s)
            local p <close> = s:projections({ 2, 3 }, { dtype = "f32" })
            assert.same({ 6, 2, 4 }, p.shape)
            assert.equal(5031 + 3, p:item(5, 2, 4))
            local some <close> = s:projections(mb.all, { angles = { 2, 3 } })
            assert.same({ 2, 3, 4 }, some.shape)
            assert.equal(2011, some:item(1, 1, 1))
            local one <close> = s:projections(1)
            assert.same({ 6, 4 }, one.shape)
            local flats <close> = s:flats { 3, 3 }
            assert.same({ 2, 1, 4 }, flats.shape)
            assert.equal(22031, flats:item(2, 1, 1))
            local darks <close> = s:darks()
            assert.same({ 1, 3, 4 }, darks.shape)
            local frame <close> = s:frame(-1)
            assert.equal(6011, frame:item(1, 1))
            assert.is_truthy(s:describe():find("6 projections of 3 rows x 4 columns", 1, true))
        end)

        it("has degrees by definition, and says so", function()
            data_exchange { ["/exchange/theta"] = angles(6, 30) }
            local s <close> = opened()
            assert.near(math.rad(30), s.angles[2], 1e-12)
            assert.is_truthy(s:describe():find("Data Exchange defines degrees", 1, true))
        end)

        it("may be in radians", function()
            data_exchange {
                ["/exchange/theta"] = { value = angles(6, math.pi / 6),
                    attributes = { units = "Radians" } },
            }
            local s <close> = opened()
            assert.near(math.pi / 6, s.angles[2], 1e-12)
            check_unwarned(s)
        end)

        it("is refused where radians pass for degrees, unless the unit is named", function()
            data_exchange { ["/exchange/theta"] = angles(6, math.pi / 6) }
            local text, code, argument = refused()
            assert.is_truthy(text:find("are they in radians?", 1, true), text)
            assert.same({ "io", "angle_unit" }, { code, argument })
            local t <close> = opened { angle_unit = "rad" }
            check_unwarned(t)
            local u <close> = opened { angle_unit = "deg" }
            assert.is_true(warned(u, "are they in radians?"))
        end)

        it("warns of a strange span", function()
            data_exchange { ["/exchange/theta"] = angles(6, 10) }
            local s <close> = opened()
            assert.is_true(warned(s, "there is no projection between 50 and 180 degrees (modulo 180)"))
        end)

        it("may lack flats and darks", function()
            data_exchange { ["/exchange/data_white"] = false, ["/exchange/data_dark"] = false }
            local s <close> = opened()
            assert.equal(0, s.n_flats)
            assert.is_nil(s:flats())
            assert.is_nil(s:darks())
            assert.is_true(warned(s, "no flats"))
            assert.is_true(warned(s, "no darks"))
        end)

        it("takes flats from another file, or none", function()
            data_exchange { ["/exchange/data_white"] = false }
            local other = folder .. "/flats.h5"
            write({ ["/some/frames"] = frames(3, 3, 4) }, other)
            local s <close> = opened { flats_file = other }
            assert.equal(3, s.n_flats)
            local t <close> = opened { darks = false }
            assert.equal(0, t.n_darks)
            local u <close> = opened { flats = "/exchange/data_dark" }
            assert.equal(1, u.n_flats)
        end)

        it("takes a single stored frame", function()
            data_exchange {
                ["/exchange/data_dark"] = mb.zeros({ 3, 4 }, { dtype = "u16" }),
            }
            local s <close> = opened()
            local darks <close> = s:darks { 1, 2 }
            assert.same({ 1, 2, 4 }, darks.shape)
        end)

        it("keeps NaN: they are data", function()
            data_exchange {
                ["/exchange/data"] = mb.full({ 6, 3, 4 }, 0 / 0),
            }
            local s <close> = opened()
            local frame <close> = s:frame(1)
            assert.is_true(frame:item(1, 1) ~= frame:item(1, 1))
        end)

        it("tells what is wrong", function()
            data_exchange { ["/exchange/theta"] = false }
            local text, code, argument = refused()
            assert.is_truthy(text:find("give the option angles (the first and the last)", 1, true),
                text)
            assert.same({ "argument", "angles" }, { code, argument })
            local s <close> = opened { angles = { 0, 150 }, angle_unit = "deg" }
            assert.near(math.rad(30), s.angles[2], 1e-12)
            assert.is_truthy(refused({ angles = { 0, 150 } }):find("angle_unit"))
            assert.is_truthy(refused({ angles = { 0, 1, 2 }, angle_unit = "rad" }):find("3 angles"))
            assert.is_truthy(refused({ angles = "/exchange/phi" }):find("/exchange/phi"))

            data_exchange { ["/exchange/theta"] = angles(5, 30) }
            text, code = refused()
            assert.is_truthy(text:find("5 angles", 1, true), text)
            assert.is_truthy(text:find("6 frames", 1, true), text)
            assert.equal("shape", code)

            data_exchange { ["/exchange/data"] = mb.zeros { 6, 0, 4 } }
            text, code = refused()
            assert.is_truthy(text:find("no rows", 1, true), text)
            assert.equal("shape", code)

            data_exchange { ["/exchange/data"] = mb.zeros { 6, 4 } }
            text, code = refused()
            assert.is_truthy(text:find("2 axes", 1, true), text)
            assert.equal("shape", code)

            data_exchange { ["/exchange/data_white"] = frames(2, 3, 5) }
            text, code = refused()
            assert.is_truthy(text:find("3 x 5", 1, true), text)
            assert.equal("shape", code)

            data_exchange { ["/exchange/data"] = { value = frames(6, 3, 4),
                attributes = { axes = "x:y:theta" } } }
            text, code = refused()
            assert.is_truthy(text:find("theta:y:x", 1, true), text)
            assert.equal("unsupported", code)

            data_exchange { ["/exchange/theta"] = { 0, 30, 0 / 0, 90, 120, 150 } }
            assert.is_truthy(refused():find("angle 3"))
        end)
    end)

    describe("in NXtomo", function()
        local function check(s)
            assert.equal("NXtomo", s.format)
            assert.same({ 4, 2, 1 }, { s.n_angles, s.n_flats, s.n_darks })
            assert.near(math.rad(120), s.angles[3], 1e-12)
            local p <close> = s:projections({ 1, 2 }, { dtype = "f32" })
            assert.same({ 4, 2, 4 }, p.shape)
            for i, k in ipairs { 3, 4, 6, 7 } do
                assert.equal(1000 * k + 21, p:item(i, 2, 1))
            end
            local flats <close> = s:flats()
            assert.equal(2011, flats:item(1, 1, 1))
            assert.equal(5034, flats:item(2, 3, 4))
            local darks <close> = s:darks(2)
            assert.same({ 1, 4 }, darks.shape)
        end

        it("is read, with the frames sorted by image key", function()
            nxtomo()
            local s <close> = opened()
            check(s)
            assert.near(6.5e-6, s.pixel_size, 1e-15)
            assert.is_true(warned(s, "1 frames are marked invalid"))
            local two <close> = s:projections(mb.all, { angles = { 2, 3 } })
            assert.equal(6011, two:item(2, 1, 1))
            local column <close> = s:projections(2, { angles = { 2, 3 } })
            assert.same({ 2, 4 }, column.shape)
            local frame <close> = s:frame(3)
            assert.equal(6011, frame:item(1, 1))
        end)

        it("is found by class, not by name", function()
            nxtomo({ ["/.."] = false }, "/scan_0007")
            check(opened())
        end)

        it("is found in a sub-entry, as at Diamond", function()
            write {
                ["/entry1"] = { group = "NXentry" },
                ["/entry1/tomo_entry"] = { group = "NXsubentry" },
                ["/entry1/tomo_entry/definition"] = "NXtomo",
                ["/entry1/tomo_entry/data"] = { group = "NXdata" },
                ["/entry1/tomo_entry/data/rotation_angle"] = {
                    value = { 0, 0, 0, 60, 60, 120, 180, 180 }, attributes = { units = "degrees" },
                },
                ["/entry1/tomo_entry/data/data"] = frames(8, 3, 4),
                ["/entry1/instrument"] = { group = "NXinstrument" },
                ["/entry1/instrument/image_key"] = { group = "NXdetector" },
                ["/entry1/instrument/image_key/image_key"] = keys,
            }
            local s <close> = opened()
            check(s)
        end)

        it("is read into an array that is given", function()
            nxtomo()
            local s <close> = opened()
            local out <close> = mb.zeros { 4, 1, 4 }
            local same = s:projections({ 3, 3 }, { out = out })
            assert.equal(out, same)
            assert.equal(7031, out:item(4, 1, 1))
            local small <close> = mb.zeros { 3, 1, 4 }
            assert.is_false(pcall(s.projections, s, { 3, 3 }, { out = small }))
        end)

        it("needs units", function()
            nxtomo { ["/sample/rotation_angle"] = { 0, 0, 0, 60, 60, 120, 180, 180 } }
            local text, code, argument = refused()
            assert.is_truthy(text:find("have no unit", 1, true), text)
            assert.same({ "argument", "angle_unit" }, { code, argument })
            local s <close> = opened { angle_unit = "deg" }
            assert.near(math.rad(60), s.angles[2], 1e-12)
            nxtomo {
                ["/sample/rotation_angle"] = { value = { 0, 0, 0, 60, 60, 120, 180, 180 },
                    attributes = { units = "grad" } },
            }
            assert.is_truthy(refused():find("'grad'", 1, true))
            nxtomo { ["/instrument/detector/x_pixel_size"] = 6.5 }
            local t <close> = opened()
            assert.is_nil(t.pixel_size)
            assert.is_true(warned(t, "no unit"))
            assert.is_truthy(refused({ angle_unit = "rad" }):find("are they degrees?", 1, true))
            nxtomo {
                ["/sample/rotation_angle"] = { value = { 0, 0, 0, 60, 60, 120, 180, 180 },
                    attributes = { units = "rad" } },
            }
            assert.is_truthy(refused():find("are they degrees?", 1, true))
            local u <close> = opened { pixel_size = 1e-6, angle_unit = "deg" }
            assert.equal(1e-6, u.pixel_size)
            assert.is_true(warned(u, "overrides"))
        end)

        it("may lack image keys", function()
            nxtomo { ["/instrument/detector/image_key"] = false }
            local s <close> = opened()
            assert.equal(8, s.n_angles)
            assert.is_true(warned(s, "no image key"))
            local t <close> = opened { image_key = keys }
            assert.equal(4, t.n_angles)
        end)

        it("may have angles for the projections alone", function()
            nxtomo {
                ["/sample/rotation_angle"] = { value = { 0, 60, 120, 180 },
                    attributes = { units = "deg" } },
            }
            local s <close> = opened()
            assert.near(math.rad(120), s.angles[3], 1e-12)
        end)

        it("tells what is wrong", function()
            nxtomo { ["/instrument/detector/image_key"] = { 0, 0, 1 } }
            assert.is_truthy(refused():find("3 image keys for 8 frames", 1, true))
            nxtomo { ["/instrument/detector/image_key"] = { 1, 1, 1, 1, 2, 2, 2, 2 } }
            assert.is_truthy(refused():find("no frame", 1, true))
            nxtomo { ["/sample/rotation_angle"] = false }
            assert.is_truthy(refused():find("has no angles", 1, true))
            nxtomo { ["/definition"] = "NXtomoproc", ["/instrument/detector/image_key"] = false }
            assert.is_truthy(refused():find("reconstruction", 1, true))
        end)

        it("warns of several entries, and reads the one that is named", function()
            local objects = {}
            for i, entry in ipairs { "/a", "/b" } do
                objects[entry] = { group = "NXentry" }
                objects[entry .. "/definition"] = "NXtomo"
                objects[entry .. "/det"] = { group = "NXdetector" }
                objects[entry .. "/det/data"] = frames(3, 2, 2 + i)
                objects[entry .. "/rotation_angle"] = { value = angles(3, 60),
                    attributes = { units = "deg" } }
            end
            write(objects)
            local s <close> = opened()
            assert.equal(3, s.cols)
            assert.is_true(warned(s, "2 scans"))
            local t <close> = opened { entry = "b" }
            assert.equal(4, t.cols)
        end)
    end)

    it("takes flats, darks, angles and image keys of other files", function()
        local objects = {}
        for _, entry in ipairs { "/a", "/b" } do
            objects[entry] = { group = "NXentry" }
            objects[entry .. "/definition"] = "NXtomo"
            objects[entry .. "/det"] = { group = "NXdetector" }
            objects[entry .. "/det/data"] = frames(3, 2, entry == "/a" and 3 or 4)
        end
        write(objects)
        local other = folder .. "/other.h5"
        write({
            ["/flats"] = frames(2, 2, 3, 5),
            ["/dark"] = frames(1, 2, 3, 9),
            ["/wide"] = frames(1, 2, 4),
            ["/theta"] = { value = angles(3, 60), attributes = { units = "deg" } },
            ["/keys"] = { 0, 0, 1 },
        }, other)
        local s <close> = opened { flats = other .. ":/flats", darks = other .. ":/dark",
            angles = other .. ":/theta" }
        assert.same({ 3, 2, 1 }, { s.n_angles, s.n_flats, s.n_darks })
        assert.near(math.rad(120), s.angles[3], 1e-12)
        local flats <close> = s:flats()
        assert.equal(6011, flats:item(1, 1, 1))
        local t <close> = opened { angles = other .. ":/theta", image_key = other .. ":/keys" }
        assert.same({ 2, 1 }, { t.n_angles, t.n_flats })
        -- Data of an entry bring its own angles and keys with them, and no doubt of which is meant.
        local u <close> = opened { data = "/b/det/data", angles = other .. ":/theta" }
        assert.equal(4, u.cols)
        assert.is_false(warned(u, "2 scans"))
        local text = refused { flats = other .. ":/wide", angles = other .. ":/theta" }
        assert.is_truthy(text:find("flats '/wide' in '" .. other
            .. "' have 2 x 4 pixels, the projections 2 x 3",
            1, true), text)
        assert.is_truthy(refused({ flats = other .. ":/none", angles = other .. ":/theta" }):find(
            "there is no '/none' in '" .. other, 1, true))
        assert.is_truthy(refused({ flats = folder .. "/no.h5:/x", angles = other
            .. ":/theta" }):find(
            "No such file", 1, true))
    end)

    it("has pixel sizes and units that can be", function()
        local place = "/measurement/instrument/detector/pixel_size"
        for _, value in ipairs { math.huge, 1e308, 1e-300 } do
            data_exchange { [place] = { value = value, attributes = { units = "um" } } }
            local text, code, argument = refused()
            assert.is_truthy(text:find("which no detector has: give the option pixel_size", 1,
                true), text)
            assert.same({ "io", "pixel_size" }, { code, argument })
            local s <close> = opened { pixel_size = 1e-6 }
            assert.equal(1e-6, s.pixel_size)
            assert.is_false(warned(s, "the file says"))
        end
        data_exchange { [place] = { value = 2, attributes = { units = "um" } } }
        for given, differs in pairs { [2e-6] = false, [2.05e-6] = false, [2e-3] = true,
            [4e-6] = true } do
            local s <close> = opened { pixel_size = given }
            assert.equal(given, s.pixel_size)
            assert.equal(differs, warned(s, ("the option pixel_size is %g um, and the file says 2 "
                .. "um in '%s': the former is taken"):format(given * 1e6, place)))
        end
        for value, words in pairs { [0] = "is 0 and was not used", [-3] = "is -3",
            abc = "is 'abc', which is no length with a unit" } do
            data_exchange { [place] = { value = value, attributes = { units = "um" } } }
            local s <close> = opened()
            assert.is_nil(s.pixel_size)
            assert.is_true(warned(s, words))
        end
        for _, wrong in ipairs { 1e308, 1e-320, 0, -1, 0 / 0, "1" } do
            data_exchange()
            local err = helper.failure(mb.scan.open, path, { pixel_size = wrong })
            assert.matches("pixel_size is .*; it must be a number from 1e%-13 to 1", tostring(err))
        end
    end)

    it("does not take damage for absence", function()
        local place = "/measurement/instrument/detector/pixel_size"
        data_exchange { [place] = { value = 2, attributes = { units = "um" } } }
        local whole = files.read(path)
        local tree = whole:find("TREE", 1, true)
        -- The first key of every B-tree of a group: where its names begin.
        local lost = 0
        while tree do
            files.write(path, whole:sub(1, tree + 23) .. "\255" .. whole:sub(tree + 25))
            local s, err = mb.scan.open(path)
            if s then
                assert.equal(2e-6, s.pixel_size)
                assert.same({ 2, 1 }, { s.n_flats, s.n_darks })
                s:close()
            else
                assert.matches("damaged", tostring(err))
                lost = lost + 1
            end
            tree = whole:find("TREE", tree + 4, true)
        end
        assert.is_true(lost >= 2)
    end)

    it("counts frames before it lists them", function()
        local space <close> = mb.zeros({ 1, 1, 1 }, { dtype = "u8" })
        do
            local file <close> = mb.h5.create(path, { overwrite = true })
            file:write("/exchange/theta", angles(6, 30), { attributes = { units = "deg" } })
            local data = file:create_dataset("/exchange/data",
                { shape = { 1 << 21, 1, 1 }, dtype = "u8",
                chunks = { 1 << 21, 1, 1 }, deflate = 1 })
            data:write(space, { 1, 1 })
            data:close()
            file:finish()
        end
        local text, code = refused()
        assert.is_truthy(text:find("has 2097152 frames, and at most 1048576 can be read", 1, true),
            text)
        assert.equal("shape", code)
    end)

    it("has units that are one text, and are cut short in messages", function()
        for units, words in pairs { [5] = "the number 5", [{ "deg", "rad" }] = "a list of 2" } do
            data_exchange { ["/exchange/theta"] = { value = angles(6, 30),
                attributes = { units = units } } }
            local text = refused()
            assert.is_truthy(text:find("units of '/exchange/theta' must be one text, not " .. words,
                1, true), text)
        end
        data_exchange { ["/exchange/theta"] = { value = angles(6, 30),
            attributes = { units = ("x"):rep(60000) } } }
        assert.is_true(#refused() < 300)
    end)

    it("of no known layout is read by naming its parts", function()
        write {
            ["/raw/stack"] = frames(6, 3, 4),
            ["/raw/flat"] = frames(1, 3, 4, 10),
            ["/raw/angle"] = { value = angles(6, 30), attributes = { units = "deg" } },
        }
        local text, code = refused()
        assert.is_truthy(text:find("/raw/stack", 1, true), text)
        assert.equal("io", code)
        local s <close> = opened { data = "/raw/stack", flats = "/raw/flat", angles = "/raw/angle" }
        assert.same({ 6, 1, 0 }, { s.n_angles, s.n_flats, s.n_darks })
        assert.is_truthy(refused({ data = "/raw/nothing",
            angles = "/raw/angle" }):find("/raw/nothing"))
    end)

    it("of compressed chunks that span rows is warned of", function()
        data_exchange { ["/exchange/data"] = false }
        local f <close> = assert(mb.h5.open(path, { mode = "r+" }))
        local a <close> = frames(6, 3, 4)
        f:write("/exchange/data", a, { chunks = { 1, 3, 4 }, deflate = 1 })
        f:close()
        local s <close> = opened()
        assert.equal(3, s.chunk_rows)
        assert.equal(2 * 3 * 4 * mb.pool.element_bytes(s.dtype), s.decoding_bytes)
        assert.is_true(warned(s, "decodes a whole chunk again"))
    end)

    it("that cannot be opened gives nil and an error", function()
        assert.is_truthy(refused():find("No such file"))
        files.write(path, "text")
        assert.is_truthy(refused():find("not an HDF5 file"))
        os.remove(path) -- what was read is not overwritten
        data_exchange()
        local bytes = files.read(path)
        files.write(path, bytes:sub(1, #bytes // 2))
        assert.is_truthy(refused():find("truncated"))
        local text = helper.failure(mb.scan.open, path, { angel_unit = "deg" })
        assert.is_truthy(text:find("angle_unit"), text)
        assert.is_truthy(helper.failure(mb.scan.open, 7):find("string"))
    end)

    it("is closed once", function()
        data_exchange()
        local s = opened()
        s:close()
        s:close()
        assert.is_truthy(helper.failure(s.projections, s):find("closed"))
    end)

    it("makes arrays without data in a dry run", function()
        nxtomo()
        local s <close> = opened()
        local plan = mb.plan.peak(function(device)
            local p <close> = s:projections({ 1, 2 }, { device = device, dtype = "f32" })
            assert.same({ 4, 2, 4 }, p.shape)
            local f <close> = s:flats({ 1, 2 }, { device = device })
            return f.shape[1]
        end)
        assert.equal(1024, plan.peak)
    end)

    it("of a tooth is what is known of it", function()
        local tooth = files.data "tooth.h5"
        if not tooth then
            pending "tooth.h5 is neither in ../shared/data nor in MOONBEAM_DATA"
        end
        local s <close> = assert(mb.scan.open(tooth))
        assert.same({ 181, 2, 640, 10, 10 }, { s.n_angles, s.rows, s.cols, s.n_flats, s.n_darks })
        assert.equal("f32", s.dtype)
        assert.near(math.rad(179.006), s.angles[181], 1e-5)
        assert.equal(0, s.angles[1])
        check_unwarned(s)
        local p <close> = s:projections({ 1, 1 })
        assert.same({ 181, 1, 640 }, p.shape)
        assert.is_true(p:mean() > 1000)
    end)
end)
