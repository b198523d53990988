-- What a scan's file states about its geometry and optics: a file for each row of the table.
local mb = require "moonbeam"
local definitions = require "moonbeam.scan.statements.definitions"
local files = require "spec.support.files"
local obeyed = require "moonbeam.scan.statements.obeyed"
local pixel_sizes = require "moonbeam.scan.statements.pixel_sizes"
local told = require "moonbeam.scan.statements.told"

local ROWS <const>, COLS <const>, COUNT <const> = 3, 64, 9

describe("the statements of a scan", function()
    local folder, path
    setup(function()
        folder = files.folder()
        path = folder .. "/scan.h5"
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function frames(count)
        return mb.full({count, ROWS, COLS}, 7, {dtype = "u16"})
    end

    -- Writes values, {value, attribute = ...} or groups, {group = class}, in the order of names.
    local function write(objects)
        local file <close> = mb.h5.create(path, {overwrite = true})
        local names = {}
        for name in pairs(objects) do
            names[#names + 1] = name
        end
        table.sort(names)
        for _, name in ipairs(names) do
            local object = objects[name]
            if mb.array.is_array(object) then
                local data <close> = object
                file:write(name, data)
            elseif type(object) == "table" and object.group then
                file:group(name, object.group)
            elseif type(object) == "table" and object.value ~= nil then
                local attributes = {}
                for key, value in pairs(object) do
                    attributes[key] = key ~= "value" and value or nil
                end
                file:write(name, object.value, {attributes = attributes})
            elseif type(object) == "table" and object.attributes then
                file:group(name, object.class)
                for key, value in pairs(object.attributes) do
                    file:set_attribute(name, key, value)
                end
            elseif object then
                file:write(name, object)
            end
        end
        file:finish()
    end

    local function angles(first, turn)
        local values = {}
        for i = 1, COUNT do
            values[i] = first + turn * (i - 1) / COUNT
        end
        return values
    end

    -- An entry with a dark, a flat and the projections; `more` by paths, "{detector}/..." as in the
    -- table.
    local GROUPS <const> = {detector = "/e/instrument/camera", sample = "/e/sample",
        beam = "/e/instrument/beam", source = "/e/instrument/ring",
        monochromator = "/e/instrument/mono", detector_transformations = "/e/instrument/camera/t",
        sample_transformations = "/e/sample/t"}
    local function nxtomo(more, turn)
        local keys = {2, 1}
        for i = 1, COUNT do
            keys[i + 2] = 0
        end
        local objects = {["/e"] = {group = "NXentry"}, ["/e/definition"] = "NXtomo",
            ["/e/instrument"] = {group = "NXinstrument"},
            ["/e/instrument/ring"] = {group = "NXsource"},
            ["/e/instrument/beam"] = {group = "NXbeam"},
            ["/e/instrument/mono"] = {group = "NXmonochromator"},
            ["/e/instrument/camera"] = {group = "NXdetector"},
            ["/e/instrument/camera/data"] = frames(COUNT + 2),
            ["/e/instrument/camera/image_key"] = keys,
            ["/e/instrument/camera/x_pixel_size"] = {value = 1.0, units = "um"},
            ["/e/instrument/camera/t"] = {group = "NXtransformations"},
            ["/e/sample/t"] = {group = "NXtransformations"},
            ["/e/sample"] = {group = "NXsample"},
            ["/e/sample/rotation_angle"] = {units = "degree",
                value = table.move(angles(0, turn or 180), 1, COUNT, 3, {0.0, 0.0})}}
        for name, value in pairs(more or {}) do
            objects[(name:gsub("{([%w_]+)}", GROUPS))] = value or nil
        end
        write(objects)
    end

    local function exchange(more)
        local objects = {["/exchange/data"] = frames(COUNT), ["/exchange/data_white"] = frames(1),
            ["/exchange/data_dark"] = frames(1),
            ["/exchange/theta"] = {value = angles(0, 180), units = "deg"},
            ["/measurement/instrument/detector/pixel_size"] = {value = 1.0, units = "um"}}
        for name, value in pairs(more or {}) do
            objects[name] = value or nil
        end
        write(objects)
    end

    -- The scan's says, lines of the report, warnings (those of the scan too), and its description.
    local function read(used)
        local scan <close> = assert(mb.scan.open(path))
        local lines, warnings = told.of(scan, used or {half_acquisition = false})
        table.move(scan.warnings, 1, #scan.warnings, #warnings + 1, warnings)
        return scan.says, table.concat(lines, "\n"), table.concat(warnings, "\n"),
            scan:describe(), scan
    end

    local function has(text, words)
        assert(text:find(words, 1, true), ("'%s' is not in:\n%s"):format(words, text))
    end

    -- For all frames of an entry; that of flats and darks must not count.
    local function moving(scale)
        local values = {99.0 * scale, -99.0 * scale}
        for i = 1, COUNT do
            values[i + 2] = (i - 1) / (COUNT - 1) * scale
        end
        return values
    end
    local function of_projections(scale)
        return table.move(moving(scale), 3, COUNT + 2, 1, {})
    end

    -- By row: what the file has at each place of NXtomo and of Data Exchange, and what must follow.
    local EXAMPLES <const> = {
        half_acquisition = {nxtomo = {1}, check = function()
            local says, lines, _, text, scan = read()
            assert.is_true(says.half_acquisition)
            assert.is_true(obeyed.settings(scan, {}).half_acquisition)
            has(text, "half acquisition ('/e/instrument/camera/half_acquisition')")
            has(lines, "no half acquisition; '/e/instrument/camera/half_acquisition' says half")
        end},
        field_of_view = {nxtomo = {"Half"}, check = function()
            local says, _, warnings = read {}
            assert.is_true(says.half_acquisition)
            has(warnings, "neither step half_acquisition nor stitch")
        end},
        transformations = {nxtomo = {{class = "NXtransformations", attributes = {}}},
            more = {["{detector_transformations}/a"] = {value = 180.0, units = "degree",
                transformation_type = "rotation", vector = {0.0, 1.0, 0.0}}},
            check = function()
            local says, _, _, text, scan = read()
            local step = {"flip", rows = false, columns = true}
            assert.same({rows = false, columns = true}, says.flip)
            assert.same({step}, obeyed.steps(scan, {}))
            assert.same({}, obeyed.steps(scan, {flip = "none"}))
            assert.same({step, "fbp"}, obeyed.recipe(scan, {"fbp"}))
            local own = {"fbp", {"flip", rows = false, columns = false}}
            assert.equal(own, obeyed.recipe(scan, own))
            has(text, "mirrored left-right ('/e/instrument/camera/t')")
        end},
        ["x_flipped, y_flipped"] = {nxtomo = {0, 1}, check = function()
            local says, lines, _, text = read {half_acquisition = false,
                flip = {rows = false, columns = false}}
            assert.same({rows = true, columns = false}, says.flip)
            has(text, "mirrored up-down")
            has(lines, "not mirrored; '/e/instrument/camera/x_flipped' says up-down")
        end},
        x_rotation_axis_pixel_position = {nxtomo = {20.0}, exchange = {20.0}, check = function()
            local says, _, _, _, scan = read()
            assert.equal(20, says.axis)
            assert.is_nil(told.axis(scan, 20.6, 1))
            has(told.axis(scan, 25, 1), "the axis is at column 25.00; '")
        end},
        estimated_cor_from_motor = {nxtomo = {-4.5}, check = function()
            local says, _, _, _, scan = read()
            assert.equal((COLS - 1) / 2 - 4.5, says.axis)
            has(told.axis(scan, 31.5, 1), "says 27.00")
        end},
        incident_energy = {nxtomo = {{value = 25.0, units = "keV"}, each = true},
            exchange = {{value = 25000, units = "eV"}}, check = function()
            local says, _, _, text = read()
            assert.near(25e3, says.energy, 1e-6)
            has(text, "25 keV")
        end},
        incident_wavelength = {nxtomo = {{value = 0.5, units = "angstrom"}, each = true},
            check = function()
            assert.near(24796.839686640, (read()).energy, 1e-6)
        end},
        distance = {nxtomo = {{value = 50.0, units = "mm"}},
            exchange = {{value = 50.0, units = "mm"}, each = true}, check = function()
            local says, _, _, text = read()
            assert.near(0.05, says.distance, 1e-12)
            assert.near(0.05, obeyed.optics(says).distance, 1e-12)
            has(text, "50 mm to the detector")
        end},
        propagation_distance = {nxtomo = {{value = 0.04, units = "m"}}, check = function()
            local says = read()
            assert.equal(0.04, says.propagation_distance)
            assert.equal(0.04, obeyed.optics(says).distance)
        end},
        ["source distance"] = {nxtomo = {{value = -0.3, units = "mm"}},
            exchange = {{value = 0.3, units = "mm"}}, check = function()
            local says, _, warnings, text = read()
            assert.near(3e-4, says.source_distance, 1e-12)
            assert.near(1e-4, obeyed.optics({source_distance = 2e-4, distance = 2e-4}).distance,
                1e-12)
            has(text, "300 um to the source")
            has(warnings, "up to 3.4 pixels off")
        end},
        x_translation = {nxtomo = {{value = moving(4e-6), units = "m"}},
            exchange = {{value = of_projections(4e-3), units = "mm"}}, check = function()
            local _, _, warnings = read()
            has(warnings, "by 4 pixels")
            has(warnings, '{"horizontal_shift", shifts = "')
        end},
        y_translation = {nxtomo = {{value = moving(4e-6), units = "m"}},
            exchange = {{value = of_projections(4e-3), units = "mm"}}, check = function()
            local _, _, warnings = read()
            has(warnings, "by 4 pixels")
            has(warnings, "--vertical-shifts ")
            local _, _, undone = read {half_acquisition = false, vertical = true}
            assert.is_nil(undone:find("pixels", 1, true))
        end},
        z_translation = {nxtomo = {{value = moving(4e-6), units = "m"}},
            exchange = {{value = of_projections(4e-3), units = "mm"}}, check = function(format)
            local _, _, warnings = read()
            if format == "exchange" then -- along the beam
                assert.equal("", warnings)
            else
                has(warnings, "--vertical-shifts /e/sample/z_translation undoes it")
            end
        end},
        ["translations of the sample"] = {nxtomo = {{class = "NXtransformations",
            attributes = {}}}, more = {["{sample_transformations}/up"] = {value = moving(4e-6),
                units = "m", transformation_type = "translation", vector = {0.0, -1.0, 0.0}}},
            check = function()
            local _, _, warnings = read()
            has(warnings, "'/e/sample/t/up' moves the sample by 4 pixels")
        end},
        ["translations of the detector"] = {nxtomo = {{class = "NXtransformations",
            attributes = {}}}, more = {["{detector_transformations}/up"] = {value = moving(4e-6),
                units = "m", transformation_type = "translation", vector = {1.0, 0.0, 0.0}}},
            check = function()
            local _, _, warnings = read()
            has(warnings, "'/e/instrument/camera/t/up' moves")
            has(warnings, "horizontal_shift")
        end},
        ["vector of rotation_angle"] = {more = {["/e/sample/rotation_angle"] = {units = "degree",
                value = angles(0, 180), vector = {0.0, -1.0, 0.0}}}, check = function()
            local says, lines, _, text, scan = read {half_acquisition = false, reversed = false}
            assert.is_true(says.reversed_rotation)
            assert.same({"reverse_rotation"}, obeyed.steps(scan, {}))
            assert.same({}, obeyed.steps(scan, {reverse_rotation = false}))
            has(text, "turning the other way ('/e/sample/rotation_angle')")
            has(lines, "says the other way, which is overruled")
        end},
        tomo_n = {nxtomo = {COUNT + 3}, exchange = {COUNT + 3}, check = function()
            local _, _, warnings = read()
            has(warnings, ("has %d projections; %d are there"):format(COUNT + 3, COUNT))
        end},
    }

    -- Examples of a layout: {[path] = value}, a file each.
    local function files_of(places, example)
        local list = {}
        if example and example.each then
            for _, place in ipairs(places) do
                list[#list + 1] = {[place] = example[1]}
            end
        elseif example then
            list[1] = {}
            for i, value in ipairs(example) do
                list[1][places[i]] = value
            end
        end
        return list
    end

    it("have an example for each row, each with its effect", function()
        local count = 0
        for _, row in ipairs(definitions) do
            local example = assert(EXAMPLES[row.name], row.name)
            assert(row.done and row.option and row.gives, row.name)
            for _, more in ipairs(files_of(row.nxtomo or {}, example.nxtomo or {})) do
                for name, value in pairs(example.more or {}) do
                    more[name] = value
                end
                nxtomo(more, 360)
                example.check "nxtomo"
                count = count + 1
            end
            assert(not row.exchange or example.exchange, row.name)
            for _, more in ipairs(files_of(row.exchange or {}, example.exchange)) do
                exchange(more)
                example.check "exchange"
                count = count + 1
            end
        end
        assert.is_true(count >= 2 * #definitions - 8)
    end)

    it("are silent where nothing is said, or nothing is unusual", function()
        local still = {value = 3.5, units = "mm"}
        nxtomo()
        local says, lines, warnings = read {}
        assert.same({}, says)
        assert.equal("", lines .. warnings)
        exchange()
        says, lines, warnings = read {}
        assert.same({}, says)
        assert.equal("", lines .. warnings)
        nxtomo {["{detector}/field_of_view"] = "Full", ["{detector}/half_acquisition"] = 0,
            ["{detector}/x_flipped"] = 0, ["{detector}/y_flipped"] = 0,
            ["{detector_transformations}/rx"] = {value = 0.0, units = "degree",
                transformation_type = "rotation", vector = {1.0, 0.0, 0.0}},
            ["{detector_transformations}/gravity"] = {value = 9.8, units = "m/s2",
                transformation_type = "gravity", vector = {0.0, 0.0, -1.0}},
            ["{detector}/x_rotation_axis_pixel_position"] = 0.0,
            ["{sample}/x_translation"] = still, ["{sample}/z_translation"] = still,
            ["{detector}/tomo_n"] = COUNT, ["{source}/distance"] = {value = 145.0, units = "m"},
            ["{beam}/incident_energy"] = 20.0}
        says, lines, warnings = read {}
        assert.is_nil(says.flip or says.axis or says.translations or says.energy)
        assert.is_false(says.half_acquisition)
        assert.equal("", lines .. warnings)
    end)

    local function rotation(x, y, z, degrees)
        return {value = degrees or 180.0, units = "degree", transformation_type = "rotation",
            vector = {x, y, z}}
    end

    it("of mirrored frames follow the coordinates of the file", function()
        local entry = {class = "NXentry", attributes = {version = 1.4}}
        local esrf = {class = "NXentry", attributes = {NeXus_Coordinate_System = "ESRF"}}
        local X, Y, Z = rotation(1.0, 0.0, 0.0), rotation(0.0, 1.0, 0.0), rotation(0.0, 0.0, 1.0)
        local lr, ud = {rows = false, columns = true}, {rows = true, columns = false}
        local both = {rows = true, columns = true}
        for i, case in ipairs {{nil, {Y}, lr}, {nil, {X}, ud}, {nil, {X, Y}, both}, {nil, {Z}, both},
            {entry, {Z}, lr}, {entry, {Y}, ud}, {entry, {X}, both}, {esrf, {Z}, lr},
            {esrf, {Y, Z}, both}, {nil, {X, X}, nil}, {nil, {X, Y, Z}, nil},
            {nil, {rotation(0.0, 1.0, 0.0, -180.0)}, lr},
            {nil, {rotation(0.0, -1.0, 0.0, 540.0)}, lr}} do
            local more = {["/e"] = case[1]}
            for k, each in ipairs(case[2]) do
                more["{detector_transformations}/t" .. k] = each
            end
            nxtomo(more)
            assert.same({i, case[3]}, {i, (read()).flip})
        end
        nxtomo {["{detector_transformations}/t"] = rotation(0.0, 0.0, 1.0, 90.0)}
        local says, _, warnings = read()
        assert.is_nil(says.flip)
        has(warnings, "turns the frames by 90 degrees, which is not undone")
    end)

    it("that differ are told, and the first is taken", function()
        nxtomo {["{detector}/field_of_view"] = "Half", ["{detector}/half_acquisition"] = 0}
        local says, _, warnings = read()
        assert.is_false(says.half_acquisition)
        has(warnings, "'/e/instrument/camera/half_acquisition' and '/e/instrument/camera/"
            .. "field_of_view' say different things: the former is taken")
        nxtomo {["{detector}/x_flipped"] = 1, ["{detector}/y_flipped"] = 0,
            ["{detector_transformations}/rx"] = rotation(1.0, 0.0, 0.0)}
        says, _, warnings = read()
        assert.same({rows = true, columns = false}, says.flip)
        has(warnings, "say different things")
        nxtomo {["{detector}/x_flipped"] = 1, ["{detector}/y_flipped"] = 0,
            ["{detector_transformations}/ry"] = rotation(0.0, 1.0, 0.0)}
        says, _, warnings = read()
        assert.same({rows = false, columns = true}, says.flip)
        assert.equal("", warnings)
    end)

    it("that are not understood are named", function()
        nxtomo {["{detector}/field_of_view"] = "Quarter"}
        local says, _, warnings = read()
        assert.is_nil(says.half_acquisition)
        has(warnings, "field_of_view' is 'Quarter', neither Full nor Half")
        nxtomo {["{detector}/x_flipped"] = "perhaps"}
        says, _, warnings = read()
        assert.is_nil(says.flip)
        has(warnings, "x_flipped' is 'perhaps', neither true nor false")
        nxtomo {["{beam}/incident_energy"] = {value = 20.0, units = "furlong"},
            ["{detector}/distance"] = 0.05}
        local scan <close> = assert(mb.scan.open(path))
        assert.same({}, scan.says)
        has(scan.stated.problems.energy[1], "is 20 and has the unknown unit 'furlong'")
        has(scan.stated.problems.distance[1], "is 0.05 and has no unit")
    end)

    it("of the axis count from the middle in files of the ESRF, of upright frames", function()
        local middle = (COLS - 1) / 2
        local marked = {class = "NXentry", attributes = {version = 2.0}}
        nxtomo {["/e"] = marked, ["{detector}/x_rotation_axis_pixel_position"] = 5.5}
        assert.equal(middle + 5.5, (read()).axis)
        nxtomo {["/e"] = marked, ["{detector}/x_rotation_axis_pixel_position"] = 5.5,
            ["{detector}/x_flipped"] = 1}
        local says, _, _, _, scan = read()
        assert.equal(middle - 5.5, says.axis)
        assert.same({middle - 5.5, middle + 5.5}, scan.stated.axes)
        nxtomo {["{detector}/x_rotation_axis_pixel_position"] = 5.5}
        says, _, _, _, scan = read()
        assert.equal(5.5, says.axis)
        assert.same({5.5, middle + 5.5}, scan.stated.axes)
        has(told.axis(scan, 20, 1), "says 5.50, or 37.00 where it counts from the middle")
    end)

    -- Of pixel sizes: {places of the layout with values in um}, the size in um, words of a warning.
    local D <const>, E <const> = "{detector}/", "/measurement/instrument/"
    local PIXELS <const> = {
        {"nxtomo", {[D .. "x_pixel_size"] = 6.5}, 6.5},
        {"nxtomo", {[D .. "x_pixel_size"] = 6.5, [D .. "x_magnified_pixel_size"] = 0.65}, 0.65},
        {"nxtomo", {[D .. "x_pixel_size"] = 6.5, ["{sample}/x_pixel_size"] = 0.65}, 0.65},
        {"nxtomo", {[D .. "x_pixel_size"] = 0.65, [D .. "real_x_pixel_size"] = 6.5,
            [D .. "magnification"] = 10}, 0.65},
        {"nxtomo", {[D .. "x_pixel_size"] = 6.5, [D .. "magnification"] = 10}, 0.65},
        {"nxtomo", {[D .. "x_pixel_size"] = false, [D .. "real_x_pixel_size"] = 6.5,
            [D .. "magnification"] = 10}, 0.65},
        {"nxtomo", {[D .. "x_pixel_size"] = false, [D .. "real_x_pixel_size"] = 6.5}, 6.5,
            "optical magnification is not in it"},
        {"nxtomo", {["{sample}/x_pixel_size"] = 0.65, [D .. "x_magnified_pixel_size"] = 1.3}, 0.65,
            "x_magnified_pixel_size': the former is taken"},
        {"nxtomo", {["{sample}/x_pixel_size"] = 0.65, [D .. "magnification"] = 5,
            [D .. "x_pixel_size"] = 6.5}, 0.65, "over the magnification 5: the former is taken"},
        {"nxtomo", {["{sample}/x_pixel_size"] = 1, ["{sample}/y_pixel_size"] = 2}, 1,
            "pixels are 1 um wide and 2 um high"},
        {"nxtomo", {[D .. "x_pixel_size"] = 1, [D .. "y_pixel_size"] = 1.001}, 1},
        {"exchange", {[E .. "detector/actual_pixel_size_x"] = 0.65,
            [E .. "detector/pixel_size"] = 6.5}, 0.65},
        {"exchange", {[E .. "detection_system/objective/resolution"] = 0.65,
            [E .. "detector/pixel_size"] = 6.5}, 0.65},
        {"exchange", {[E .. "detection_system/objective/magnification"] = "10x",
            [E .. "detector/pixel_size"] = 6.5}, 0.65},
        {"exchange", {[E .. "detection_system/objective/magnification"] = 10,
            [E .. "detector/pixel_size"] = false, [E .. "detector/pixel_size_x"] = 6.5}, 0.65},
        {"exchange", {[E .. "detection_system/objective/magnification"] = 10,
            [E .. "detector/pixel_size"] = false, [E .. "camera/pixel_size"] = 6.5}, 0.65},
        {"exchange", {[E .. "detector/pixel_size"] = 6.5}, 6.5},
        {"exchange", {[E .. "detector/pixel_size"] = false, [E .. "detector/pixel_size_x"] = 6.5},
            6.5, "optical magnification is not in it"},
        {"exchange", {[E .. "detector/pixel_size"] = false, [E .. "camera/pixel_size"] = 6.5}, 6.5,
            "optical magnification is not in it"},
        {"exchange", {[E .. "detector/pixel_size_x"] = 1, [E .. "detector/pixel_size_y"] = 2,
            [E .. "detector/pixel_size"] = false}, 1, "1 um wide and 2 um high"},
    }

    it("of the pixel size: that at the sample comes before that of the camera", function()
        local paths = {}
        for i, case in ipairs(PIXELS) do
            local layout, sizes, size, warned = table.unpack(case)
            local more = {}
            for name, value in pairs(sizes) do
                paths[name:gsub("{([%w_]+)}", GROUPS)] = true
                more[name] = name:find "magnification" and value
                    or value and {value = value + 0.0, units = "um"}
            end
            (layout == "nxtomo" and nxtomo or exchange)(more)
            local _, _, warnings, text, scan = read()
            assert.near(size * 1e-6, scan.pixel_size, 1e-12)
            if warned then
                has(warnings, warned)
            else
                assert.same({i, ""}, {i, warnings})
            end
            has(text, "pixel      ")
        end
        for _, list in ipairs {pixel_sizes.of_exchange,
            pixel_sizes.of_nxtomo(GROUPS.sample, GROUPS.detector)} do
            for _, place in ipairs(list) do
                assert(paths[place.path] and (not place.over or paths[place.over]), place.path)
            end
        end
    end)

    it("are the rows of the table in the documentation", function()
        local page = io.open "docs/formats.md"
        if not page then
            pending "the documents are not here"
            return
        end
        local text <const> = page:read "a"
        page:close()
        local function places(list)
            local names = {}
            for i, place in ipairs(list or {}) do
                names[i] = "`" .. place:gsub("{([%w_]+)}", "%1") .. "`"
            end
            return names[1] and table.concat(names, ", ") or "no"
        end
        for _, row in ipairs(definitions) do
            has(text, ("\n| %s | %s | %s | %s | %s |\n"):format(row.name, places(row.nxtomo),
                places(row.exchange), row.done, row.option))
        end
    end)
end)
