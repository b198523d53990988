-- The command reconstruct for scans whose axis leans, whose stage moves, or that are half acquisitions.
local commands = require "spec.support.commands"
local helper = require "spec.helper"
local mb = require "moonbeam"

local must, run = commands.must, commands.run
local shell

local function path(name)
    return shell:path(name)
end

local function volume_of(name)
    return shell:volume_of(name)
end

describe("reconstruct", function()
    setup(function()
        shell = commands.folder()
        shell:simulate()
    end)

    teardown(function()
        shell:remove()
    end)

    describe("with a leaning axis", function()
        local function reconstruct(name, more)
            return must("reconstruct.lua", ("%s -o %s --device host %s"):format(path("lean.h5"),
                path(name), more))
        end

        local function phantom_error(scan, name)
            return tonumber(must("compare_phantom.lua", path(scan) .. " "
                .. path(name)):match("error%s+([%d.]+)"))
        end

        setup(function()
            for name, tilt in pairs {upright = 0, lean = 9} do
                must("simulate.lua", (
                    "%s --size 64 --rows 21 --angles 90 --photons 0 --quiet --axis-tilt %g"):format(
                    path(name
                    .. ".h5"), tilt))
            end
            must("reconstruct.lua",
                ("%s -o %s --device host --quiet --center 31.5 --method fbp"):format(
                path("upright.h5"),
                path("upright-v.h5"))) -- as a leaning axis needs it
        end)

        it("makes the volume of an upright one, in exactly the bytes it predicts", function()
            local text = reconstruct("lean-v.h5", "--center 31.5 --axis-tilt 9")
            assert.matches("leans from %-1.58 columns at row 1 to %+1.58 at row 21", text)
            helper.kept_promise(text)
            local upright, leaning = phantom_error("upright.h5", "upright-v.h5"),
                phantom_error("lean.h5", "lean-v.h5")
            assert.is_true(leaning < 1.1 * upright)
            reconstruct("wrong-v.h5", "--center 31.5 --axis-tilt=-9 --quiet")
            reconstruct("ignored-v.h5", "--center 31.5 --quiet")
            assert.is_true(phantom_error("lean.h5", "ignored-v.h5") > 1.5 * upright)
            assert.is_true(phantom_error("lean.h5", "wrong-v.h5") > 2.5 * upright)
        end)

        it("gives the same slices for every chunk size, and for part of the rows", function()
            reconstruct("lean21.h5", "--center 31.5 --axis-tilt 9 --quiet --chunk 21")
            local expected = volume_of("lean21.h5")
            for _, chunk in ipairs {1, 2, 8} do
                reconstruct("lean-chunks.h5",
                    "--overwrite --center 31.5 --axis-tilt 9 --quiet --chunk " .. chunk)
                assert.same(expected, volume_of("lean-chunks.h5"))
            end
            reconstruct("lean-rows.h5", "--center 31.5 --axis-tilt 9 --quiet --rows 15:18")
            assert.same(table.move(expected, 15, 18, 1, {}), volume_of("lean-rows.h5"))
        end)

        it("needs no more room than the rows that are asked for", function()
            local arguments = path("lean.h5")
                .. " --plan --device host --center 31.5 --axis-tilt 40 --pad-width 68 --rows "
            must("reconstruct.lua", arguments .. "10:12") -- 0.84 columns either way of 2
            local status, text = run("reconstruct.lua", arguments .. "1:12")
            assert.equal(2, status)
            assert.matches("can move by 2 at most; give a pad_width of 84 or more", text, 1, true)
        end)

        it("is found halfway down, whichever rows are asked for", function()
            for _, rows in ipairs {"1:21", "14:21"} do
                local text = reconstruct("lean-auto.h5", "--overwrite --axis-tilt 9 --rows "
                    .. rows)
                assert.near(31.5, tonumber(text:match("axis%s+column ([%d.]+)")), 0.3)
            end
        end)

        it("may be given by its columns at both ends", function()
            local half = 10 * math.tan(math.rad(9))
            reconstruct("lean-ends.h5", ("--quiet --center %.17g,%.17g"):format(31.5 - half,
                31.5 + half))
            helper.assert_close(volume_of("lean-v.h5"), volume_of("lean-ends.h5"), 1e-5)
        end)

        it("follows projections that are shifted vertically", function()
            local file = assert(io.open(path("six.txt"), "w"))
            file:write(("6\n"):rep(90))
            file:close()
            reconstruct("lean-six.h5", "--center 31.5 --axis-tilt 9 --quiet --vertical-shifts "
                .. path("six.txt"))
            local expected, got = volume_of("lean-v.h5"), volume_of("lean-six.h5")
            local difference, norm = 0, 0
            for z = 1, 15 do
                local a, b = helper.flatten(expected[z + 6]), helper.flatten(got[z])
                for i = 1, #a do
                    difference, norm = difference + (a[i] - b[i]) ^ 2, norm + a[i] ^ 2
                end
            end
            -- nearly: back-projection interpolates linearly what the filter does not
            assert.is_true(difference < 0.1 ^ 2 * norm)
        end)

        it("has to be plausible", function()
            for _, case in ipairs {
                {2, "--axis-tilt 60", "--axis-tilt: \"60\" is not a number between -45 and 45"},
                {2, "--axis-tilt 2 --center 30,33",
                    "--center 30,33 says how the axis leans; give one column with --axis-tilt"},
                {2, "--center 30,64", "--center 64 lies outside the detector, columns 0 to 63"},
                {2, "--half-acquisition --center 70", "--center 70 lies outside the detector, "
                    .. "columns 0 to 63; step stitch joins the frames of such a scan: a recipe "
                    .. "with {\"stitch\", center = 70} after minus_log, and {\"fbp\", center = "
                    .. "70}"},
                {2, "--center 30,x", "give a column number, two of them as TOP,BOTTOM, or auto"},
                {2, "--axis-tilt 2 --half-acquisition --center 12", "does not go with axis_tilt"},
                {2, "--axis-tilt 2 --method fourier",
                    "method fourier does not do an axis of its own for every slice"},
            } do
                local status, text = run("reconstruct.lua", path("lean.h5")
                    .. " --plan --device host " .. case[2])
                assert.equal(case[1], status)
                assert.matches(case[3], text, 1, true)
            end
            local scan <close> = assert(mb.scan.open(path("lean.h5")))
            assert.matches("axis_tilt is 1.0472 rad; it must be between",
                (helper.failure(mb.recon.plan, scan,
                {axis_tilt = math.rad(60), center = 31.5})))
        end)
    end)

    describe("with vertical shifts", function()
        local function shifts_file(name, shift)
            local file = assert(io.open(path(name), "w"))
            file:write("# one a projection\n", ((type(shift) == "number" and shift .. "\n"
                or "")):rep(90))
            for _, value in ipairs(type(shift) == "table" and shift or {}) do
                file:write(value, ", ")
            end
            file:close()
            return path(name)
        end

        local function reconstruct(name, more)
            return must("reconstruct.lua",
                ("%s -o %s --device host --center 31.5 %s"):format(path("scan.h5"), path(name),
                more))
        end

        it("move whole rows exactly", function()
            -- no slice has a partner that is rounded with it
            reconstruct("unshifted.h5", "--quiet --method fbp")
            reconstruct("shifted.h5", "--quiet --method fbp --chunk 4 --vertical-shifts "
                .. shifts_file("two.txt", 2))
            local expected, got = volume_of("unshifted.h5"), volume_of("shifted.h5")
            for z = 1, 7 do
                assert.same(expected[z + 2], got[z])
            end
            for z = 8, 9 do
                for _, row in ipairs(got[z]) do
                    for _, value in ipairs(row) do
                        assert.equal(0, value)
                    end
                end
            end
        end)

        it("give the same volume for every chunk size, and the predicted peak", function()
            local shifts = {}
            for k = 1, 90 do
                shifts[k] = ("%.3f"):format(2.7 * math.sin(k))
            end
            local expected
            for _, chunk in ipairs {2, 4, 9} do
                local name = ("shifts%d.h5"):format(chunk)
                local text = reconstruct(name, ("--chunk %d --vertical-shifts %s"):format(chunk,
                    shifts_file("sine.txt", shifts)))
                helper.kept_promise(text)
                expected = expected or volume_of(name)
                assert.same(expected, volume_of(name))
            end
        end)

        it("come from datasets too", function()
            local ones <close> = mb.ones({90})
            local file <close> = mb.h5.create(path("shifts.h5"), {overwrite = true})
            file:write("/rows/shift", ones)
            file:finish()
            reconstruct("one.h5", "--quiet --vertical-shifts " .. shifts_file("one.txt", 1))
            reconstruct("one_h5.h5",
                ("--quiet --vertical-shifts %s:/rows/shift"):format(path("shifts.h5")))
            assert.same(volume_of("one.h5"), volume_of("one_h5.h5"))
        end)

        it("must be as many as projections, and numbers", function()
            for _, case in ipairs {
                {shifts_file("few.txt", {1, 2, 3}), "has 3 vertical shifts; the scan has 90",
                    status = 1}, {"/no/such", "neither"},
                {shifts_file("words.txt", {1, "many"}), "'many' is not a number"},
            } do
                local status, text = run("reconstruct.lua",
                    ("%s --plan --device host --vertical-shifts %s"):format(
                    path("scan.h5"), case[1]))
                assert.equal(case.status or 2, status, text)
                assert.matches(case[2], text)
            end
        end)

        it("are read from ordinary files alone", function()
            local scan <close> = assert(mb.scan.open(path("scan.h5")))
            assert(os.execute(("mkfifo '%s'"):format(path("pipe"))))
            for _, name in ipairs {"/dev/zero", path("pipe")} do
                assert.matches("is not an ordinary file",
                    (helper.failure(mb.recon.read_shifts, scan, name)))
            end
            os.remove(path("pipe"))
        end)
    end)

    it("reconstruct a half acquisition with its whole field of view", function()
        must("simulate.lua", path("half.h5")
            .. " --size 64 --rows 3 --angles 180 --span 360 --center 48 --photons 0 --quiet")
        local text = must("reconstruct.lua",
            ("%s -o %s --device host --half-acquisition --padding zero"):format(path("half.h5"),
            path("half-volume.h5")))
        assert.near(48, tonumber(text:match("axis%s+column ([%d.]+)")), 0.3)
        local predicted = helper.kept_promise(text)
        must("reconstruct.lua",
            ("%s -o %s --device host --half-acquisition --padding zero --center 48 --quiet"):format(
            path("half.h5"), path("half-volume.h5") .. " --overwrite --chunk 2"))
        local volume = volume_of("half-volume.h5")
        assert.same({3, 97, 97}, {#volume, #volume[1], #volume[1][1]})
        must("simulate.lua", path("whole.h5")
            .. " --size 64 --rows 3 --angles 180 --span 360 --photons 0 --quiet")
        must("reconstruct.lua", ("%s -o %s --device host --padding zero --center 31.5 --quiet "
            .. "--circle 0 --method fbp"):format(
            path("whole.h5"), path("whole-volume.h5")))
        -- The same object, around the axis: pixel 48 of 97 lies between pixels 31 and 32 of 64.
        local whole, sum, square = volume_of("whole-volume.h5"), 0, 0
        for y = 20, 44 do
            for x = 20, 44 do
                local here = 0.25 * (whole[2][y][x] + whole[2][y + 1][x] + whole[2][y][x + 1]
                    + whole[2][y + 1][x + 1])
                sum = sum + (here - volume[2][y + 17][x + 17]) ^ 2
                square = square + here ^ 2
            end
        end
        assert.is_true(math.sqrt(sum / square) < 0.1, ("%g"):format(math.sqrt(sum / square)))
        local planned = must("reconstruct.lua", path("half.h5")
            .. " --plan --half-acquisition --device host --padding zero")
        assert.matches("volume +at most 3 x %d+ x %d+ float32", planned) -- the axis makes its width
        assert.is_true(tonumber(planned:match("at most [%d.]+ %a+ %((%d+) bytes%)"))
            >= predicted)
        local status, message = run("reconstruct.lua", path("scan.h5")
            .. " --plan --half-acquisition --device host --center 48")
        assert.equal(2, status)
        assert.matches("whole turn", message)
    end)

    it("reconstruct the same in every mode", function()
        local function plan(mode)
            local text = must("reconstruct.lua",
                ("%s --plan --device host --center 48 --half-acquisition --mode %s"):format(
                path("half.h5"), mode))
            return tonumber(text:match("%((%d+) bytes%)"))
        end
        local fast, in_place = plan("fast"), plan("in_place")
        assert.is_true(in_place <= fast)
        for _, mode in ipairs {"fast", "in_place", "auto"} do
            local text = must("reconstruct.lua", ("%s -o %s --device host --center 31.5 --method "
                .. "fbp --mode %s"):format(path("scan.h5"),
                path(mode .. ".h5"), mode))
            helper.kept_promise(text)
        end
        assert.same(volume_of("fast.h5"), volume_of("in_place.h5"))
        assert.same(volume_of("fast.h5"), volume_of("auto.h5"))
    end)
end)
