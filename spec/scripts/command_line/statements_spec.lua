-- What a scan's file states about its geometry and optics, at the shell: obeyed, or told.
local commands = require "spec.support.commands"
local mb = require "moonbeam"

describe("reconstruct of a scan that states", function()
    local shell
    local half, whole, plain, exchange

    -- A copy of a scan with more values: {[path] = value | {value =, units =}}; groups are made.
    local function restated(from, name, more)
        local path = shell:path(name)
        local source <close> = assert(mb.h5.open(from))
        local file <close> = mb.h5.create(path, {overwrite = true})
        local linked = {}
        for _, object in ipairs(source:walk("/", {attributes = true})) do
            local entry = object.path
            if object.kind == "group" then
                file:group(entry, object.attributes.NX_class)
            elseif not entry:find "^/entry/data/" and not linked[entry] and not more[entry] then
                local value = source:value(entry)
                if object.shape and #object.shape > 0 and object.dtype then
                    local array <close> = source:read(entry, {device = "host"})
                    file:write(entry, array, {attributes = {units = object.attributes.units}})
                else
                    file:write(entry, value, {attributes = {units = object.attributes.units}})
                end
            end
        end
        for entry, value in pairs(more) do
            if type(value) == "table" and value.value ~= nil then
                file:write(entry, value.value, {attributes = {units = value.units}})
            else
                file:write(entry, value)
            end
        end
        file:finish()
        return path
    end

    local DETECTOR <const> = "/entry/instrument/detector/"

    setup(function()
        shell = commands.folder()
        local common = " --size 64 --rows 2 --photons 0 --quiet --format "
        commands.must("simulate.lua", shell:path "h.h5" .. common
            .. "nxtomo --half-acquisition --angles 180")
        commands.must("simulate.lua", shell:path "n.h5" .. common .. "nxtomo --angles 60")
        commands.must("simulate.lua", shell:path "e.h5" .. common .. "dx --angles 60")
        half = restated(shell:path "h.h5", "half.h5", {[DETECTOR .. "field_of_view"] = "Half"})
        whole = shell:path "h.h5"
        plain, exchange = shell:path "n.h5", shell:path "e.h5"
    end)

    teardown(function()
        shell:remove()
    end)

    local function reconstruct(scan, options)
        return commands.run("reconstruct.lua", ("%s -o %s --overwrite --progress none %s"):format(
            scan, shell:path "o.h5", options or ""))
    end

    local function must(scan, options)
        local status, text = reconstruct(scan, options)
        assert(status == 0, text)
        return text
    end

    local function has(text, words)
        assert(text:find(words, 1, true), ("'%s' is not in:\n%s"):format(words, text))
    end

    local function lacks(text, words)
        assert(not text:find(words, 1, true), ("'%s' is in:\n%s"):format(words, text))
    end

    local function volume()
        return shell:volume_of "o.h5"
    end

    it("a half acquisition makes one, and can be overruled", function()
        must(whole, "--half-acquisition")
        local right = volume()
        local text = must(half)
        has(text, "half acquisition ('/entry/instrument/detector/field_of_view')")
        lacks(text, "warning: '")
        assert.same(right, volume())
        must(whole)
        local ordinary = volume()
        text = must(half, "--no-half-acquisition")
        has(text, "half       no half acquisition; '/entry/instrument/detector/field_of_view' "
            .. "says half acquisition")
        assert.same(ordinary, volume())
        text = must(half, "--plan")
        has(text, "half acquisition ('")
        local full = restated(whole, "full.h5", {[DETECTOR .. "field_of_view"] = "Full"})
        text = must(full, "--half-acquisition")
        has(text, "says no half acquisition")
        assert.same(right, volume())
        local status, refused = reconstruct(half, "--half-acquisition --no-half-acquisition")
        assert.equal(2, status)
        has(refused, "contradict")
    end)

    it("a half acquisition needs a whole turn, and says which option overrules it", function()
        local wrong = restated(plain, "wrong.h5", {[DETECTOR .. "field_of_view"] = "Half"})
        for _, options in ipairs {"", "--plan"} do
            local status, text = reconstruct(wrong, options)
            assert.is_true(status ~= 0)
            has(text, "half acquisition needs a whole turn; the angles cover")
            has(text, "--no-half-acquisition")
        end
        must(wrong, "--no-half-acquisition")
    end)

    it("a half acquisition is left to a recipe, which may ask the scan", function()
        local function recipe(step)
            local path = shell:path "r.lua"
            local file <close> = io.open(path, "w")
            file:write(('return {"flat_field", "minus_log", %s "center", "fbp"}\n'):format(step))
            return "--recipe " .. path
        end
        local text = must(half, recipe "")
        has(text, "the recipe has neither step half_acquisition nor stitch")
        text = must(half, recipe "" .. " --no-half-acquisition")
        lacks(text, "neither step")
        must(half, recipe '"half_acquisition",')
        local right = volume()
        text = must(half, recipe '{"half_acquisition", when = "auto"},')
        lacks(text, "warning: '")
        assert.same(right, volume())
        local status, refused = reconstruct(whole, recipe '{"half_acquisition", when = "auto"},')
        assert.is_true(status ~= 0)
        has(refused, "--set half_acquisition.when=always")
        must(whole, recipe '{"half_acquisition", when = "auto"},'
            .. " --set half_acquisition.when=always")
        assert.same(right, volume())
        text = must(plain, recipe '{"half_acquisition", when = "auto"},') -- half a turn is none
        lacks(text, "warning")
        text = must(half, recipe '{"half_acquisition", when = "never"},')
        has(text, "no half acquisition; '")
        local nabu <close> = io.open(shell:path "nabu.conf", "w")
        nabu:write("[dataset]\nlocation = " .. half .. "\n[preproc]\nflatfield = 1\n"
            .. "[reconstruction]\nmethod = FBP\nenable_halftomo = auto\n[output]\nlocation = x\n")
        nabu:close()
        commands.must("import_recipe.lua", shell:path "nabu.conf" .. " -o " .. shell:path "i.lua")
        must(half, "--recipe " .. shell:path "i.lua")
        assert.is_true(#volume()[1] > 64)
    end)

    it("a half acquisition or mirrored frames means the same in Lua", function()
        local scan <close> = assert(mb.scan.open(half))
        local left_out = mb.recon.plan(scan, {center = 54})
        local given = mb.recon.plan(scan, {center = 54, half_acquisition = true})
        local none = mb.recon.plan(scan, {center = 54, half_acquisition = false})
        assert.same(given.volume, left_out.volume)
        assert.equal(given.peak, left_out.peak)
        assert.same({2, 64, 64}, none.volume)
        assert.same(mb.recon.center_bounds(scan, {half_acquisition = true}),
            mb.recon.center_bounds(scan, {}))
    end)

    it("mirrored frames has them undone, and can be overruled", function()
        local mirrored = restated(plain, "mirrored.h5", {[DETECTOR .. "x_flipped"] = 1,
            [DETECTOR .. "y_flipped"] = 1})
        must(plain, "-c 31.5")
        local upright = volume()
        must(plain, "-c 31.5 --flip both")
        local right = volume()
        local text = must(mirrored, "-c 31.5")
        has(text, ", mirrored up-down and left-right ('/entry/instrument/detector/x_flipped')")
        lacks(text, "warning")
        assert.same(right, volume())
        text = must(mirrored, "-c 31.5 --flip none")
        has(text, "flip       not mirrored; '/entry/instrument/detector/x_flipped' says up-down")
        assert.same(upright, volume())
        local file <close> = io.open(shell:path "m.lua", "w")
        file:write('return {"flat_field", "minus_log", {"fbp", center = 31.5}}\n')
        file:close()
        local recipe = "--recipe " .. shell:path "m.lua"
        must(plain, recipe .. " --flip both")
        right = volume()
        must(mirrored, recipe)
        assert.same(right, volume())
        text = must(mirrored, recipe .. " --flip rows")
        has(text, "flip       up-down; '/entry/instrument/detector/x_flipped' says up-down and")
    end)

    it("energy and distances are what the steps of phase retrieval take", function()
        local path = shell:path "p.lua"
        local file <close> = io.open(path, "w")
        file:write('return {"flat_field", {"paganin", delta_beta = 100}, "center", "fbp"}\n')
        file:close()
        local known = restated(plain, "known.h5", {
            ["/entry/instrument/beam/incident_energy"] = {value = 20.0, units = "keV"},
            [DETECTOR .. "distance"] = {value = 30.0, units = "mm"}})
        must(plain, "--recipe " .. path .. " --set paganin.energy=20000 --set paganin.distance=0.03")
        local right = volume()
        local text = must(known, "--recipe " .. path)
        has(text, "pixel      1 um; 20 keV, 30 mm to the detector")
        has(text, "paganin    energy = 20 keV, distance = 30 mm, as the scan says")
        assert.same(right, volume())
        text = must(known, "--recipe " .. path .. " --set paganin.energy=30000")
        has(text, "paganin    energy = 30 keV; '/entry/instrument/beam/incident_energy' says 20 "
            .. "keV, which is overruled")
        local status, refused = reconstruct(plain, "--recipe " .. path)
        assert.is_true(status ~= 0)
        has(refused, "energy and distance are missing, and the scan does not say them (no energy "
            .. "in /entry/")
        has(refused, "give --set paganin.energy=VALUE, photon energy in eV; --set "
            .. "paganin.distance=VALUE, from the object")
        local unknown = restated(exchange, "unknown.h5", {
            ["/measurement/instrument/monochromator/energy"] = 20.0})
        status, refused = reconstruct(unknown, "--recipe " .. path)
        assert.is_true(status ~= 0)
        has(refused, "'/measurement/instrument/monochromator/energy' is 20 and has no unit")
        lacks(must(unknown), "warning")
    end)

    it("the axis has it compared with what is found", function()
        local near = restated(plain, "near.h5",
            {[DETECTOR .. "x_rotation_axis_pixel_position"] = 31.0})
        lacks(must(near), "warning")
        local far = restated(plain, "far.h5", {[DETECTOR .. "x_rotation_axis_pixel_position"] = 9.0})
        local text = must(far)
        has(text, "warning: the axis is at column 31.5")
        has(text, "says 9.00, or 40.50 where it counts from the middle")
        text = must(far, "-c 31.5")
        has(text, "\nthe axis is at column 31.50")
        lacks(text, "warning")
        lacks(must(far, "-c 9.2"), "the axis is at")
        text = must(far, "--recipe FBP3d_tomobar")
        has(text, "warning: the axis is at column 31.5")
        local outside = restated(exchange, "outside.h5",
            {["/process/acquisition/rotation/rotation_axis"] = 2.0})
        local beyond <const> = "rotation_axis' says 2.00, and the search went from 9.00 to 54.00: "
        text = must(outside)
        has(text, beyond .. "--center 2.00 takes it")
        local _, count = text:gsub("warning", "")
        assert.equal(1, count)
        lacks(must(outside, "--center 2.00"), "the axis is at") -- as is advised
        text = must(outside, "--recipe FBP3d_tomobar")
        has(text, beyond .. "--set center.column=2.00 takes it")
        lacks(must(outside, "--recipe FBP3d_tomobar --set center.column=2.00"), "the axis is at")
    end)

    it("translations are undone where they are asked for, in their unit", function()
        local frames = {} -- 20 references, half of the flats at the end
        local source <close> = assert(mb.h5.open(plain))
        local keys = source:value(DETECTOR .. "image_key")
        local rows, k = {}, 0
        for i = 1, #keys do
            frames[i] = 1e-3
            if keys[i] == 0 then
                k = k + 1
                rows[k] = (k % 3 - 1) * 0.5
                frames[i] = rows[k] * 1e-3
            end
        end
        local list <close> = io.open(shell:path "rows.txt", "w")
        list:write(table.concat(rows, "\n"))
        list:close()
        local moved = restated(plain, "moved.h5",
            {["/entry/sample/z_translation"] = {value = frames, units = "mm"}})
        local text = must(moved, "-c 31.5")
        has(text, "'/entry/sample/z_translation' moves the sample by 1 pixels")
        local option, other = text:match "(%-%-vertical%-shifts %S+) undoes it %((%S+)"
        text = must(moved, "-c 31.5 --vertical-shifts " .. shell:path "rows.txt")
        has(text, "shifts     vertical, -0.5 to 0.5 rows")
        lacks(text, "moves the sample")
        local right = volume()
        text = must(moved, "-c 31.5 " .. option)
        has(text, "/entry/sample/z_translation in 'mm', by the pixel size")
        lacks(text, "moves the sample")
        assert.same(right, volume())
        text = must(moved, "-c 31.5 " .. other)
        has(text, "shifts     vertical, -0.5 to 0.5 rows")
        local recipe <close> = io.open(shell:path "v.lua", "w")
        recipe:write('return {"flat_field", "minus_log", {"vertical_shift", shifts = '
            .. '"/entry/sample/z_translation"}, {"horizontal_shift", shifts = '
            .. '"-/entry/sample/z_translation"}, {"fbp", center = 31.5}}\n')
        recipe:close()
        lacks(must(moved, "--recipe " .. shell:path "v.lua"), "moves the sample")
    end)

    it("nothing is said as before, in five lines, also with a recipe and in a plan", function()
        for _, scan in ipairs {plain, exchange} do
            for _, options in ipairs {"", "--recipe FBP3d_tomobar"} do
                for _, plan in ipairs {"", "--plan"} do
                    local text = must(scan, options .. " " .. plan)
                    lacks(text, "warning")
                    local names = {}
                    for line in text:gmatch "[^\n]+" do
                        names[#names + 1] = line:match "^%a+"
                    end
                    assert.same({"scan", "frames", "reference", "angles", "pixel"},
                        table.move(names, 1, 5, 1, {}))
                    has(text, "\npixel      1 um\n")
                end
            end
        end
    end)
end)
