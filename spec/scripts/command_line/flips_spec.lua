-- The command reconstruct for detectors that are upside down or mirrored, by flags and by recipes:
-- the slices of upright frames in the same order, rows and columns those of the stored frames.
local commands = require "spec.support.commands"
local helper = require "spec.helper"
local mb = require "moonbeam"
local mirrored = require "spec.support.mirrored"

local must, run = commands.must, commands.run
local ROWS <const>, COLS <const> = mirrored.ROWS, mirrored.COLS
local HOW <const> = {up = {}, rows = {rows = true}, columns = {columns = true},
    both = {rows = true, columns = true}}
local shell

local function path(name)
    return shell:path(name)
end

-- The volume of a result, on the host.
local function volume_of(name)
    local file <close> = mb.h5.open(path(name))
    return (file:read("/entry/data/data", {device = "host"}))
end

local function value(name, at)
    local file <close> = mb.h5.open(path(name))
    return file:value(at)
end

local function parameter(name, key)
    return value(name, "/entry/reconstruction/parameters/" .. key)
end

-- Column and row of upright frames in the stored ones.
local function column(how, x)
    return HOW[how].columns and COLS - 1 - x or x
end

local function rows(how, first, last)
    return HOW[how].rows and ("%d:%d"):format(ROWS + 1 - last, ROWS + 1 - first)
        or ("%d:%d"):format(first, last)
end

local function difference(one, other)
    assert.same(one.shape, other.shape)
    local apart <close> = mb.binary(one, "sub", {b = other})
    local size <close> = mb.unary(apart, "abs")
    return mb.bound(0, size.max, size) / mb.bound(0, one.max, one)
end

local function reconstruct(scan, result, more)
    return must("reconstruct.lua", ("%s -o %s --device host --overwrite %s"):format(path(scan),
        path(result), more))
end

-- Asserts that the volume of each flip is that of upright frames: `flags(how)` are the same for
-- both but for columns and rows. Returns nothing.
local function same(kind, flags, what)
    reconstruct(kind .. "up.h5", "want.h5", flags "up")
    local want <close> = volume_of "want.h5"
    for _, how in ipairs {"rows", "columns", "both"} do
        local text = reconstruct(kind .. how .. ".h5", "found.h5", flags(how) .. " --flip " .. how)
        helper.kept_promise(text)
        local found <close> = volume_of "found.h5"
        local apart = difference(want, found)
        assert.is_true(apart <= (HOW[how].columns and 2e-6 or 1e-6), ("%s, %s: %g"):format(what,
            how, apart))
    end
end

describe("reconstruct --flip", function()
    setup(function()
        shell = commands.folder()
        local half, turn = mb.tomo.angles(40), mb.tomo.angles(80, 2 * math.pi)
        local shifts, text = {}, {up = {}, rows = {}}
        for k = 1, 40 do
            shifts[k] = 2.5 * math.sin(0.1 * k)
            text.up[k], text.rows[k] = shifts[k], -shifts[k]
        end
        for name, numbers in pairs(text) do
            local file <close> = assert(io.open(path("shifts-" .. name .. ".txt"), "w"))
            file:write(table.concat(numbers, "\n"))
        end
        for how, flip in pairs(HOW) do
            mirrored.write(path(how .. ".h5"), mirrored.upright(half, 18.25), half, flip)
            mirrored.write(path("lean-" .. how .. ".h5"), mirrored.upright(half, 18.5, 0.15,
                shifts), half, flip)
            mirrored.write(path("turn-" .. how .. ".h5"), mirrored.upright(turn, 29), turn, flip)
        end
        local negative = {}
        for k, angle in ipairs(half) do
            negative[k] = -angle
        end
        mirrored.write(path("reverse.h5"), mirrored.upright(half, 18.25), negative, {})
    end)

    teardown(function()
        shell:remove()
    end)

    it("gives the slices of upright frames, by every method, whole and in blocks", function()
        for _, flags in ipairs {"--method fbp", "--method fourier --chunk 2",
            "--method sirt --iterations 3 --chunk 5"} do
            same("", function(how)
                return ("-c %g --quiet=no %s"):format(column(how, 18.25), flags):gsub(
                    " %-%-quiet=no", "")
            end, flags)
        end
    end)

    it("keeps leaning axes and vertical shifts", function()
        same("lean-", function(how)
            local flip = HOW[how]
            local lean = 0.15 * ((flip.rows ~= nil) ~= (flip.columns ~= nil) and -1 or 1)
            local middle, reach = column(how, 18.5), lean * (ROWS - 1) / 2
            return ("-c %.17g,%.17g --vertical-shifts %s"):format(middle - reach, middle + reach,
                path(flip.rows and "shifts-rows.txt" or "shifts-up.txt"))
        end, "TOP,BOTTOM")
        same("lean-", function(how)
            local flip = HOW[how]
            local sign = (flip.rows ~= nil) ~= (flip.columns ~= nil) and -1 or 1
            return ("-c %g --axis-tilt=%.17g --chunk 3"):format(column(how, 18.5),
                sign * math.deg(math.atan(0.15)))
        end, "--axis-tilt")
    end)

    it("goes with half acquisition, and finds the axis in the stored frames", function()
        same("turn-", function(how)
            return ("-c %g --half-acquisition"):format(column(how, 29))
        end, "half acquisition")
        for _, how in ipairs {"rows", "columns", "both"} do
            reconstruct(how .. ".h5", "axis.h5", "--flip " .. how)
            assert.is_true(math.abs(parameter("axis.h5", "center") - column(how, 18.25)) < 0.25)
        end
    end)

    it("counts rows in the stored frames: --rows, z, --preview-rows, --part, --chunk", function()
        reconstruct("up.h5", "want.h5", "-c 18.25 --method fbp --rows " .. rows("up", 3, 6))
        local want <close> = volume_of "want.h5"
        local recipe = path "rows.lua"
        do
            local file <close> = assert(io.open(recipe, "w"))
            file:write '{{"flip", rows = true}, "flat_field", "minus_log", {"fbp", center = 18.25}}'
        end
        local asked = rows("rows", 3, 6)
        assert.equal("7:10", asked)
        for name, flags in pairs {flags = "-c 18.25 --method fbp --flip up-down",
            recipe = "--recipe " .. recipe} do
            reconstruct("rows.h5", "found.h5", ("%s --rows %s"):format(flags, asked))
            local found <close> = volume_of "found.h5"
            local apart = name == "flags" and difference(want, found) or 0
            assert.is_true(apart <= 1e-6, apart)
            assert.same({9, 8, 7, 6}, value("found.h5", "/entry/data/z"))
            assert.equal("7:10", parameter("found.h5", "rows"))
            local text = found:to_string()
            -- previews and parts
            reconstruct("rows.h5", "found.h5", ("%s --rows %s --preview-rows 7,10 -p %s")
                :format(flags, asked, path "p.png"))
            local status, message = run("reconstruct.lua", ("%s -o %s --device host --overwrite %s "
                .. "--rows %s --preview-rows 6 -p %s"):format(path "rows.h5", path "found.h5",
                flags, asked, path "p.png"))
            assert.equal(2, status)
            assert.matches("names row 6; the result has rows 7 to 10", message)
            for part = 1, 2 do
                local told = reconstruct("rows.h5", "parts.h5", ("%s --rows %s --part %d/2"):format(
                    flags, asked, part))
                assert.matches(part == 1 and "rows 9 to 10 of 7 to 10" or "rows 7 to 8 of 7 to 10",
                    told)
            end
            must("join.lua", ("%s %s -o %s --overwrite"):format(path "parts-part-1-of-2.h5",
                path "parts-part-2-of-2.h5", path "joined.h5"))
            local joined <close> = volume_of "joined.h5"
            assert.is_true(joined:to_string() == text, name)
            assert.same({9, 8, 7, 6}, value("joined.h5", "/entry/data/z"))
            assert.equal("7:10", parameter("joined.h5", "rows"))
        end
    end)

    it("counts a recipe's rows in the detector's, also of cropped and binned frames", function()
        local function volume(steps, more)
            local file <close> = assert(io.open(path "own.lua", "w"))
            file:write(("{%s, \"flat_field\", \"minus_log\", {\"fbp\", center = 18.25}}"):format(
                steps))
            file:close()
            reconstruct("up.h5", "own.h5", "--recipe " .. path "own.lua" .. " " .. more)
            return volume_of "own.h5"
        end
        local all <close> = volume('{"crop", rows = {3, 10}}', "")
        local some <close> = volume('{"crop", rows = {3, 10}}', "--rows 5:6")
        local part <close> = all:view {3, 4}
        local dense <close> = part:copy()
        assert.equal(dense:to_string(), some:to_string())
        assert.same({4, 5}, value("own.h5", "/entry/data/z"))
        local pairs_of <close> = volume('{"bin", columns = 1}, {"flip", rows = true}', "--rows 3:6")
        assert.same({2, COLS, COLS}, pairs_of.shape)
        assert.equal("3:6", parameter("own.h5", "rows"))
        local status, text = run("reconstruct.lua", ("%s -o %s --device host --recipe %s --rows 13")
            :format(path "up.h5", path "none.h5", path "own.lua"))
        assert.equal(1, status)
        assert.matches("there is no row 13; the result has rows 1 to 12", text)
    end)

    it("says the direction of z in TIFF and Zarr, and stitches by it", function()
        for _, name in ipairs {"o.tif", "o.zarr"} do
            reconstruct("rows.h5", name, "-c 18.25 --flip rows --rows 7:10 --pixel-size 1")
            local z_heights = require "moonbeam.stitching.z_heights"
            local volume <close> = mb.images.open(path(name))
            local facts = z_heights.of(volume, path(name))
            assert.is_true(facts.flipped, name)
            assert.is_true(math.abs(facts.top + 9e-6) < 1e-9, facts.top)
        end
    end)

    it("takes what is typed before a recipe's, and says so", function()
        local recipe = path "typed.lua"
        do
            local file <close> = assert(io.open(recipe, "w"))
            file:write '{"flat_field", "minus_log", {"flip", rows = true}, {"fbp", center = 18.25}}'
        end
        local text = reconstruct("up.h5", "typed.h5", ("--recipe %s --flip none"):format(recipe))
        assert.matches("typed      flip none; the recipe says flip rows", text)
        reconstruct("rows.h5", "want.h5", "--recipe " .. recipe)
        local want <close> = volume_of "want.h5"
        local found <close> = volume_of "typed.h5"
        assert.is_true(difference(want, found) <= 1e-6)
        text = reconstruct("rows.h5", "typed.h5", ("--recipe %s --flip rows"):format(recipe))
        assert.is_nil(text:find("typed  ", 1, true))
    end)

    it("turns angles that run the other way, and has other programs' names of flips", function()
        reconstruct("up.h5", "want.h5", "-c 18.25")
        local want <close> = volume_of "want.h5"
        reconstruct("reverse.h5", "found.h5", "-c 18.25 --reverse-rotation")
        local found <close> = volume_of "found.h5"
        assert.is_true(want:to_string() == found:to_string())
        reconstruct("columns.h5", "found.h5", "-c 20.75 --flip left-right")
        local other <close> = volume_of "found.h5"
        assert.is_true(difference(want, other) < 2e-6)
        local status, text = run("reconstruct.lua", path "up.h5"
            .. " --reverse-rotation --no-reverse-rotation")
        assert.equal(2, status)
        assert.matches("say the opposite", text)
        status, text = run("reconstruct.lua", path "up.h5" .. " --flip sideways")
        assert.equal(2, status)
        assert.matches("none, rows, columns", text)
    end)
end)

describe("recon", function()
    it("flips as the scan says, unless settings say otherwise", function()
        local angles = mb.tomo.angles(30)
        local up <close> = mb.array(mirrored.upright(angles, 18.25))
        local down <close> = mb.array(mirrored.stored(mirrored.upright(angles, 18.25), HOW.rows))
        local function volume(data, says, settings)
            local scan = mb.scan.of_arrays(data, angles)
            local own = {center = 18.25, log = false, method = "fbp", quiet = true}
            for name, setting in pairs(settings or {}) do
                own[name] = setting
            end
            scan.says = says
            local plan = mb.recon.plan(scan, own)
            local width = plan.volume[2]
            own.out = mb.empty({plan.volume[1], width, width}, {device = "host"})
            local report = mb.recon.run(scan, mb.recon.plan(scan, own))
            assert.is_true(report.as_planned)
            return own.out, plan
        end
        local want <close> = volume(up)
        local said <close> = volume(down, {flip = {rows = true, columns = false}})
        assert.is_true(want:to_string() == said:to_string())
        local typed <close> = volume(down, nil, {flip = "rows"})
        assert.is_true(want:to_string() == typed:to_string())
        local plain <close> = volume(down)
        local none <close> = volume(down, {flip = {rows = true}}, {flip = "none"})
        assert.is_true(plain:to_string() == none:to_string())
        local turned <close> = volume(up, {reversed_rotation = true}, {reverse_rotation = false})
        assert.is_true(want:to_string() == turned:to_string())
        local other <close> = volume(up, {reversed_rotation = true})
        assert.is_false(want:to_string() == other:to_string())
        local part <close>, plan = volume(down, nil, {flip = "rows", rows = {1, 4}})
        assert.same({1, 4}, plan.rows)
        assert.equal(4, plan.first_row)
        assert.is_true(plan.upward)
        local last <close> = want:view {9, 12}
        local dense <close> = last:copy()
        assert.is_true(dense:to_string() == part:to_string())
        local scan = mb.scan.of_arrays(down, angles)
        local chunk <close>, tally = mb.recon.chunk(scan, "host", 1, 4, {center = 18.25,
            log = false, method = "fbp", flip = "rows"})
        tally:release()
        assert.is_true(dense:to_string() == chunk:to_string())
        assert.matches("flip is 'up'", helper.failure(mb.recon.plan, scan, {flip = "up"}))
    end)
end)
