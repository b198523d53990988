-- Series of TIFF files as scans: files that lack, files of other names, one series with darks, flats
-- and projections, lists of angles, and what is told. Commands run in a shell, as users type them.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local ANGLES <const>, FLATS <const>, DARKS <const> = 40, 4, 3

describe("a series of files", function()
    local shell, folder

    -- Writes the frames of the simulated scan, in the order of acquisition, as files that `name`
    -- names: darks, half of the flats, projections, the other flats.
    local function write_series(where, name, parts)
        mb.system.mkdir(folder .. "/" .. where)
        local at = 0
        for _, part in ipairs(parts) do
            local frames, first, last, skip = table.unpack(part)
            for i = first, last do
                at = at + 1
                if not (skip and skip(i)) then
                    local page <close> = frames:view(i)
                    mb.tiff.write(("%s/%s/%s"):format(folder, where, name(at)), page)
                end
            end
        end
    end

    local function img(i)
        return ("img_%05d.tif"):format(i - 1)
    end

    local function lacking(i)
        return i > 12 and i <= 18
    end

    setup(function()
        shell = commands.folder()
        folder = shell.folder
        commands.must("simulate.lua", ("%s/scan.h5 --size 24 --rows 3 --angles %d --flats %d "
            .. "--darks %d -d host -q"):format(folder, ANGLES, FLATS, DARKS))
        local scan <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        local all <close> = scan:projections(mb.all, {device = "host"})
        local flats <close> = scan:flats(mb.all, {device = "host"})
        local darks <close> = scan:darks(mb.all, {device = "host"})
        local late <close> = flats:cast "f32"
        local bright <close> = late * 1.25
        local aged <close> = bright:cast "u16"
        mb.tiff.write(folder .. "/flats.tif", flats)
        mb.tiff.write(folder .. "/darks.tif", darks)
        write_series("frames", img, {{all, 1, ANGLES}})
        write_series("gap", img, {{all, 1, ANGLES, lacking}})
        write_series("one", function(i) return ("s%04d.tif"):format(i) end,
            {{darks, 1, DARKS}, {flats, 1, 2}, {all, 1, ANGLES}, {aged, 3, 4}})
        local whole = DARKS + ANGLES + FLATS
        local stack <close> = mb.empty({whole, 3, 24}, {dtype = "u16", device = "host"})
        for at, part in ipairs {{darks, 1, DARKS}, {flats, 1, 2}, {all, 1, ANGLES}, {aged, 3, 4}} do
            local first = ({1, 4, 6, 6 + ANGLES})[at]
            local from <close> = part[1]:view({part[2], part[3]})
            local to <close> = stack:view({first, first + part[3] - part[2]})
            mb.convert(from, "u16", {out = to})
        end
        mb.tiff.write(folder .. "/one.tif", stack)
        mb.npy.write(folder .. "/one.npy", stack)
        do
            local file <close> = mb.h5.create(folder .. "/one.h5")
            file:write("/exchange/data", stack)
            file:finish()
        end
        local both <close> = mb.empty({FLATS, 3, 24}, {dtype = "u16", device = "host"})
        for _, part in ipairs {{flats, 1, 2}, {aged, 3, 4}} do
            local from <close> = part[1]:view({part[2], part[3]})
            local to <close> = both:view({part[2], part[3]})
            mb.convert(from, "u16", {out = to})
        end
        mb.tiff.write(folder .. "/both.tif", both)
        local lines, deg, some, keys = {"number\tangle"}, {}, {}, {}
        for i, angle in ipairs(scan.angles) do
            lines[i + 1] = ("%d\t%s"):format(i - 1, (("%.12f"):format(math.deg(angle))
                :gsub("%.", ",")))
            deg[i] = ("%.12f"):format(math.deg(angle))
            some[#some + 1] = not lacking(i) and deg[i] or nil
        end
        for i = 1, whole do
            keys[i] = i <= DARKS and 2 or (i <= DARKS + 2 or i > DARKS + 2 + ANGLES) and 1 or 0
        end
        files.write(folder .. "/angles.txt", "\239\187\191" .. table.concat(lines, "\r\n"))
        files.write(folder .. "/deg.txt", table.concat(deg, "\n"))
        files.write(folder .. "/some.txt", table.concat(some, "\n"))
        files.write(folder .. "/keys.txt", table.concat(keys, "\n"))
    end)

    teardown(function()
        shell:remove()
    end)

    local REST <const> = "-d host -c 11.5 --pixel-size 1 --overwrite -o volume.h5 "

    -- The bits of the volume that a command line makes, typed in a shell; or nil, and the output.
    local function typed(line, program)
        local text, ok = files.run(("cd '%s' && %s -c '%s reconstruct %s %s'"):format(folder,
            program or "bash", helper.program, line, REST))
        if not ok then
            return nil, text
        end
        assert.equal(text:match "predicted (%d+)", text:match "measured (%d+)", text)
        local volume <close> = mb.images.read(folder .. "/volume.h5", "host")
        return volume:to_string(), text
    end

    local function must(line, program)
        local bits, text = typed(line, program)
        return bits or error(text), text
    end

    local function refused(line)
        local bits, text = typed(line)
        assert.is_nil(bits)
        return text
    end

    local FLAT <const> = "--flats flats.tif --darks darks.tif --angle-unit deg "
    local ENDS <const> = ("--angles 0:%.12g "):format(180 * (ANGLES - 1) / ANGLES)

    it("with a gap is refused where angles are computed, and paired by number if allowed", function()
        local text = refused("gap " .. FLAT .. ENDS)
        assert.matches("'gap' has 34 files, and 6 of 40 numbers in its names lack: 12 to 17",
            text, 1, true)
        assert.matches("--allow-missing pairs", text, 1, true)
        local expected = must("gap " .. FLAT .. "--angles-path some.txt")
        local bits
        bits, text = must("gap " .. FLAT .. ENDS .. "--allow-missing")
        assert(bits == expected)
        assert.matches("warning: 6 of 40 numbers in its names lack: 12 to 17; each file has the "
            .. "angle of its number", text, 1, true)
        for _, list in ipairs {"deg.txt", "angles.txt", "angles.txt:2"} do -- one a number
            bits, text = must("gap " .. FLAT .. "--angles-path " .. list)
            assert(bits == expected, list)
            assert.matches("numbers in its names lack", text, 1, true)
        end
        bits, text = must("gap " .. FLAT .. "--angles-path some.txt -q") -- one a file
        assert(bits == expected)
        assert.is_nil(text:find("lack", 1, true))
    end)

    it("that lacks nothing is paired without a word", function()
        local expected, text = must("frames " .. FLAT .. "--angles-path deg.txt")
        assert.is_nil(text:find("lack", 1, true))
        assert.is_nil(text:find("not named", 1, true))
        for _, rest in ipairs {ENDS, "--angles-path angles.txt ", ENDS .. "--allow-missing"} do
            local bits
            bits, text = must("frames " .. FLAT .. rest)
            assert(bits == expected or rest:find "txt" == nil, rest)
            assert.is_nil(text:find("lack", 1, true))
        end
    end)

    it("that ends early is paired by number where a list says so", function()
        local text = refused("frames:1:30 " .. FLAT .. "--angles-path deg.txt")
        assert.matches("has 30 frames for 40 angles: frames 31 to 40 are missing; the last file is "
            .. "'frames/img_00029.tif'", text, 1, true)
        local bits
        bits, text = must("frames:1:30 " .. FLAT .. "--angles-path deg.txt --allow-missing")
        assert.matches("has 30 files for 40 angles; each file has the angle of its number, which "
            .. "counts from 0", text, 1, true)
        local first = table.concat({table.unpack(require("moonbeam.scan.lists").written(
            folder .. "/deg.txt", {what = "angles", fits = function() return true end}), 1, 30)},
            ",")
        assert(must("frames:1:30 " .. FLAT .. "--angles-path " .. first) == bits)
    end)

    it("waits only where it grows", function()
        os.execute(("touch -d '2 hours ago' %s/frames/* %s/frames"):format(folder, folder))
        files.write(folder .. "/more.txt", ("1\n"):rep(2 * ANGLES))
        for list, expected in pairs {["more.txt"] = "frames 41 to 80 are missing",
            ["deg.txt:2"] = "has no column 2"} do
            local text = refused("frames " .. FLAT .. "--angles-path " .. list)
            assert.matches(expected, text, 1, true)
            assert.is_nil(text:find("--wait", 1, true))
        end
        files.write(folder .. "/two.txt", ("5 1.5\n7 3\n"):rep(ANGLES // 2))
        local text = refused("frames " .. FLAT .. "--angles-path two.txt --wait 30")
        assert.matches("has 2 columns (line 1 is '5 1.5'): name one of them, such as two.txt:2",
            text, 1, true)
        os.execute(("touch %s/frames"):format(folder))
        assert.matches("frames 41 to 80 are missing[^\n]*--wait", refused("frames " .. FLAT
            .. "--angles-path more.txt"))
    end)

    it("whose files come in any order is waited for", function()
        for _, angles in ipairs {{0, 175.5}, folder .. "/deg.txt"} do
            local options = {angles = angles, angle_unit = "deg", flats = false, darks = false,
                wait = 0.2}
            os.execute(("rm -rf %s/late && cp -r %s/gap %s/late"):format(folder, folder, folder))
            local scan, problem = mb.scan.open(folder .. "/late", options)
            assert.is_nil(scan)
            assert.matches("6 of 40 numbers in its names lack: 12 to 17[^\n]*; waited for 0.2 s$",
                tostring(problem))
            os.execute(("(sleep 0.3; cp %s/frames/img_0001[2-7].tif %s/late) &"):format(folder,
                folder))
            options.wait = 60
            local whole <close> = assert(mb.scan.open(folder .. "/late", options))
            assert.equal(ANGLES, whole.n_angles)
        end
        local ranged <close> = assert(mb.scan.open(folder .. "/late:1:40", {angles = {0, 175.5},
            angle_unit = "deg", wait = 60}))
        assert.equal(ANGLES, ranged.n_angles)
    end)

    it("with files of other names, or two of one number, is refused by name", function()
        mb.system.mkdir(folder .. "/mixed")
        os.execute(("cp %s/frames/* %s/mixed && cp %s/frames/img_00003.tif %s/mixed/mask.tif")
            :format(folder, folder, folder, folder))
        local text = refused("mixed " .. FLAT .. ENDS)
        assert.matches("1 of 41 files of 'mixed' is not named like the others: 'mask.tif': name the "
            .. "projections by a pattern", text, 1, true)
        local expected = must("frames " .. FLAT .. ENDS)
        assert(must("\"mixed/img_*.tif\" " .. FLAT .. ENDS) == expected) -- the remedies
        assert(must("mixed:1:40 " .. FLAT .. ENDS) == expected)
        files.write(folder .. "/forty-one.txt", files.read(folder .. "/deg.txt") .. "\n180")
        local _
        _, text = must("mixed " .. FLAT .. "--angles-path forty-one.txt")
        assert.matches("warning: 1 of 41 files of 'mixed' is not named like the others", text, 1,
            true)
        os.rename(folder .. "/mixed/mask.tif", folder .. "/mixed/img_3.tif")
        assert.matches("'mixed' has two files of the number 3, 'img_00003.tif' and 'img_3.tif'",
            refused("mixed " .. FLAT .. ENDS), 1, true)
    end)

    it("with darks, flats and projections is divided by ranges, in any shell", function()
        local expected = must("frames --flats both.tif --darks darks.tif --angle-unit deg " .. ENDS)
        local angles = ENDS .. "--angle-unit deg "
        local ranges = "one:6:45 --darks one:1:3 --flats one:4:5,46:47 "
        local bits, text = must(ranges .. angles)
        assert(bits == expected)
        assert.matches("reference  4 flats in 2 groups, 3 darks", text, 1, true)
        if os.execute "command -v zsh >/dev/null" then
            assert(must(ranges .. angles, "zsh") == expected)
        end
        for _, line in ipairs {"one.tif:6:45 --darks one.tif::3 --flats one.tif:4:5,46:",
            "one.npy:6:45 --darks one.npy:1:3 --flats one.npy:4,5,46,47",
            "one --image-key-path keys.txt", "one.tif --image-key-path keys.txt",
            "one --image-key-path " .. files.read(folder .. "/keys.txt"):gsub("\n", ",")} do
            assert(must(line .. " " .. angles) == expected, line)
        end
        -- one angle a frame of the series, too
        files.write(folder .. "/all.txt", ("0\n"):rep(5) .. files.read(folder .. "/deg.txt")
            .. "\n0\n0\n")
        local some = must("frames --flats both.tif --darks darks.tif --angle-unit deg "
            .. "--angles-path deg.txt")
        assert(must("one --image-key-path keys.txt --angle-unit deg --angles-path all.txt") == some)
        for _, device in ipairs {"host:1", "host,host:1"} do
            assert(must(ranges .. angles .. "--chunk 1 -d " .. device) == expected)
        end
    end)

    it("keeps the time of its flats", function()
        files.write(folder .. "/linear.lua", 'return {{"flat_field", interpolation = "linear"}, '
            .. '"minus_log", {"fbp", center = 11.5}}')
        local function run(line)
            local text, ok = files.run(("cd '%s' && %s reconstruct %s --recipe linear.lua -d host "
                .. "--overwrite -o volume.h5 --angle-unit deg %s"):format(folder, helper.program,
                line, ENDS))
            assert.is_true(ok, text)
            local volume <close> = mb.images.read(folder .. "/volume.h5", "host")
            return volume:to_string()
        end
        local expected = run("one.h5 --image-key-path keys.txt")
        assert(run("one:6:45 --darks one:1:3 --flats one:4:5,46:47") == expected)
        assert(run("one.tif:6:45 --darks one.tif:1:3 --flats one.tif:4:5,46:47") == expected)
        assert(run("one --image-key-path keys.txt") == expected)
        files.write(folder .. "/positions.txt", "0\n0\n40\n40\n")
        local own = "frames --flats both.tif --darks darks.tif --flat-positions-path "
        local given = run(own .. "0,0,40,40")
        assert(run(own .. "positions.txt") == given)
        assert(run("one:6:45 --darks one:1:3 --flats one:4:5,46:47 --flat-positions-path "
            .. "0,0,40,40") == given) -- what is typed wins
        assert(given ~= expected)
    end)

    it("that is divided wrongly is refused", function()
        local angles = ENDS .. "--angle-unit deg "
        for line, expected in pairs {
            ["one:6:45 --flats one:5:6"] = "frame 6 of 'one' is among the projections and the flats",
            ["one --flats one:4:5"] = "frame 4 of 'one' is among the projections and the flats",
            ["one:6:99"] = "'one:6:99': the range 6:99 does not lie within the 47 frames",
            ["one:0:9"] = "the range 0:9 does not lie within the 47 frames",
            ["one:9:3"] = "the range 9:3 ends before it begins",
            ["one:1:9,8:12"] = "the range 8:12 begins at 8, and the one before it ends at 9",
            ["one:1:2:3"] = "'1:2:3' is not a range; give FIRST:LAST",
            ["one:1:5,,7"] = "'' is not a range",
            ["scan.h5:1:5"] = "has a range, 1:5, which is for images",
            ["none:1:5"] = "cannot open 'none:1:5': No such file or directory",
            ["one --image-key-path 1,0,1"] = "has 3 image keys for 47 frames",
            ["frames --flats flats.tif --flat-positions-path 0,0,40,99"] =
                "is 99; there are 40 projections",
            ["frames --flats flats.tif --flat-positions-path 0,0,40"] =
                "has 3 numbers; give one for each of the 4",
            ["frames --flats flats.tif --flat-positions-path 0,0,x"] =
                "cannot read the flat positions: '0,0,x' is neither a list"} do
            assert.matches(expected, refused(line .. " " .. angles), 1, true)
        end
    end)

    it("is divided the same in parts, and by batch", function()
        local line = "one:6:45 --darks one:1:3 --flats one:4:5,46:47 --angle-unit deg " .. ENDS
        local expected = must(line)
        for part = 1, 2 do
            local text, ok = files.run(("cd '%s' && %s reconstruct %s -d host -c 11.5 "
                .. "--pixel-size 1 -o p.h5 --part %d/2"):format(folder, helper.program, line, part))
            assert.is_true(ok, text)
        end
        local text, ok = files.run(("cd '%s' && %s join p-part-*.h5 -o p.h5 && %s batch one:6:45 -- "
            .. "--darks one:1:3 --flats one:4:5,46:47 --angle-unit deg %s -d host -c 11.5 "
            .. "--pixel-size 1"):format(folder, helper.program, helper.program, ENDS))
        assert.is_true(ok, text)
        for _, name in ipairs {"p.h5", "one-volume.h5"} do
            local volume <close> = mb.images.read(folder .. "/" .. name, "host")
            assert(volume:to_string() == expected, name)
        end
        local file <close> = assert(mb.h5.open(folder .. "/one-volume.h5"))
        assert.equal(mb.system.real_path(folder) .. "/one:6:45",
            file:value "/entry/provenance/input/path")
    end)

    it("gives any pages of a volume, and what a plan says of them", function()
        local volumes = require "moonbeam.volumes"
        local pages, host = {2, 3, 4, 9, 30, 31}, mb.device "host"
        for _, name in ipairs {"frames", "both.tif", "one.npy"} do
            local whole <close> = mb.images.read(folder .. "/" .. name, "host")
            local own = name == "both.tif" and {1, 3, 4} or pages
            local volume <close> = volumes.pages(mb.images.open(folder .. "/" .. name), own)
            assert.same({#own, 3, 24}, volume.shape)
            for first = 0, #own - 1 do
                local count = math.min(3, #own - first)
                local function read()
                    return volume:read({first, 1, 0}, {count, 2, 24}, host)
                end
                local block <close> = read()
                for i = 1, count do
                    local got <close> = block:view(i)
                    local want <close> = whole:view(own[first + i], {2, 3})
                    assert.equal(want:to_string(), got:to_string())
                end
                local function released()
                    read():release()
                end
                assert.equal(mb.plan.peak(released, host).peak, mb.pool.peak(released, host))
            end
        end
    end)

    it("goes on after an interruption only with the same frames", function()
        local identity = require "moonbeam.pipeline.journal".scan_files
        local function names(name, flats)
            local scan <close> = assert(mb.scan.open(folder .. "/" .. name, {angles = {0, 175},
                angle_unit = "deg", flats_file = folder .. "/" .. flats}))
            return table.concat(identity(scan), "\n")
        end
        assert.equal(names("one.tif:6:45", "one.tif:4:5"), names("one.tif:6:45", "one.tif:4:5"))
        assert.not_equal(names("one.tif:6:45", "one.tif:4:5"), names("one.tif:6:45", "one.tif:4,46"))
        assert.not_equal(names("one:6:45", "one:4:5"), names("one:6:45", "one:4,46"))
    end)

    it("says its angles, its pixel and what lacks, as HDF5 does", function()
        local angles = {angles = {0, 175.5}, angle_unit = "deg"}
        local scan <close> = assert(mb.scan.open(folder .. "/frames", angles))
        assert.matches("\nangles     0.0000 to 175.5000 degrees, step 4.5000, span 175.500, read as "
            .. "degrees\npixel      size not known$", scan:describe())
        assert.same({"there are no flats: the projections cannot be normalized", "there are no "
            .. "darks: they count as zero", "no pixel size was found: the volume is attenuation per "
            .. "pixel, not per meter; give the option pixel_size"}, scan.warnings)
        angles.pixel_size, angles.flats, angles.darks = 1e-6, false, false
        local other <close> = assert(mb.scan.open(folder .. "/frames", angles))
        assert.matches("\npixel      1 um$", other:describe())
        assert.same({}, other.warnings)
    end)

    it("takes the unit of a dataset of angles", function()
        local options = {angles = folder .. "/scan.h5:/exchange/theta", flats = false,
            darks = false, pixel_size = 1}
        local scan <close> = assert(mb.scan.open(folder .. "/frames", options))
        assert.equal("deg", scan.angle_unit)
        local _, problem = mb.scan.open(folder .. "/frames", {angles = folder .. "/deg.txt"})
        assert.equal("angle_unit", problem.arg)
    end)

    it("in HDF5 takes lists in all forms, too", function()
        local expected = must("scan.h5 --angles-path deg.txt --angle-unit deg")
        local list = files.read(folder .. "/deg.txt"):gsub("\n", ",")
        assert(must("scan.h5 --angles-path " .. list .. " --angle-unit deg") == expected)
        assert(must("scan.h5 --angles-path angles.txt:2 --angle-unit deg") == expected)
        assert.matches("the angles 'deg.txt' have no unit", refused("scan.h5 --angles-path deg.txt"),
            1, true)
        local zeros = ("0,"):rep(ANGLES - 1) .. "0"
        assert(must("scan.h5 --vertical-shifts " .. zeros) == must("scan.h5"))
        files.write(folder .. "/shift.lua", ('return {"flat_field", "minus_log", {"vertical_shift", '
            .. 'shifts = "%s"}, {"fbp", center = 11.5}}'):format(zeros))
        local text, ok, _ = files.run(("cd '%s' && %s reconstruct scan.h5 --recipe shift.lua -d host "
            .. "-o shifted.h5"):format(folder, helper.program))
        assert.is_true(ok, text)
        local ones = ("1,"):rep(ANGLES - 1) .. "1"
        _, text = must(("scan.h5 --current-path %s --flats-current-path 1,1,1,1 "
            .. "--flat-positions-path 0,0,40,40"):format(ones))
        assert.matches("4 flats in 2 groups, 3 darks, ring current of each frame", text, 1, true)
    end)
end)
