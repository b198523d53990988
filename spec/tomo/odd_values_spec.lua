--- Scans whose values are odd in one way each: what is said of them before the run, and that the
-- remedy that is named gives the right slice.
local commands = require "spec.support.commands"
local helper = require "spec.helper"
local mb = require "moonbeam"
local odd_scans = require "spec.support.odd_scans"

local AXIS <const> = odd_scans.AXIS
local BEAM <const>, DARK <const> = odd_scans.BEAM, odd_scans.DARK

describe("odd values", function()
    local shell = commands.folder()
    local odd = odd_scans.within(shell)
    local frames_of, counts, flat_of, write = odd.frames_of, odd.counts, odd.flat_of, odd.write
    local run, warned, refused = odd.run, odd.warned, odd.refused

    teardown(function()
        shell:remove()
    end)

    it("of a good scan are not spoken of", function()
        write {}
        assert.is_true(run("", true) <= 0.045)
    end)

    it("a dark that is a flat is named, and among two nobody knows which is wrong", function()
        write {darks = flat_of {DARK, BEAM + DARK, DARK, DARK}}
        warned("dark 2 of 4 has a mean of 40100 counts, the others 100, like the flats: "
            .. "%-%-flat%-mode median makes it harmless, and %-%-bad%-darks 2 leaves it out\n",
            "--flat-mode median", "--bad-darks 2")
        write {darks = flat_of {DARK, BEAM + DARK}}
        warned("darks differ, and which are wrong they do not say: dark 1 of 2 with a mean of "
            .. "100, dark 2 of 2 with a mean of 40100; %-%-bad%-darks NUMBER,%.%.%. leaves",
            "--bad-darks 2")
    end)

    it("one dark of twenty is found", function()
        local levels = {}
        for i = 1, 20 do
            levels[i] = i == 17 and 20100 or DARK
        end
        write {darks = flat_of(levels)}
        warned("dark 17 of 20 has a mean of 20100 counts, the others 100: ", "--bad-darks 17")
    end)

    it("a flat that is a dark, or has a shadow, is named", function()
        write {flats = flat_of {BEAM + DARK, BEAM + DARK, DARK, BEAM + DARK}}
        warned("flat 3 of 4 has a mean of 100 counts, the others 40100: .*%-%-bad%-flats 3 leaves",
            "--flat-mode median", "--bad-flats 3")
        local function shaded(column)
            return DARK + BEAM * (column > 30 and column < 60 and 0.6 or 1)
        end
        write {flats = flat_of {shaded, BEAM + DARK, BEAM + DARK}}
        warned("flat 1 of 3 has a shadow that other flats do not have: down to 0.6 of the beam, "
            .. "in 29 %% of the columns", "--flat-mode median", "--bad-flats 1")
    end)

    it("flats of a beam that decays, or before and after, are alike", function()
        write {flats = flat_of {BEAM * 1.1 + DARK, BEAM * 1.1 + DARK, BEAM * 0.9 + DARK,
            BEAM * 0.9 + DARK}}
        assert.is_true(run("", true) <= 0.045)
    end)

    it("a projection without beam is named, and left out by an option or a recipe", function()
        write {data = frames_of(function(p, i)
            return (i == 75 or i == 140) and DARK or counts(p)
        end, "u16")}
        warned("projection 75 of 150 has no beam %(transmission below 0.02%), of the 5 that were "
            .. "looked at %(others may have none, too%): %-%-bad%-projections 75 leaves it out\n")
        assert.is_true(run("--bad-projections 75,140", true) <= 0.045)
        local said, off = odd.recipe('"flat_field", "minus_log"')
        assert.matches("projection 75 of 150 has .*: %-%-bad%-projections 75 leaves it out\n", said)
        assert.is_true(off > 0.045)
        for _, case in ipairs {{'{"select", bad = {75, 140}}, "flat_field", "minus_log"', ""},
            {'"flat_field", "minus_log"', "--bad-projections 75,140"}} do
            said, off = odd.recipe(case[1], case[2])
            assert.equal("", said)
            assert.is_true(off <= 0.045)
        end
        for numbers, words in pairs {[0] = "bad_projections names frame 0, which is none of the "
            .. "projections; these are the frames 1 to 150", [151] = "names frame 151"} do
            local _, problem = mb.scan.open(shell:path "scan.h5", {bad_projections = numbers})
            assert.same({"argument", "bad_projections"}, {problem.code, problem.arg})
            assert.matches(words, tostring(problem))
        end
    end)

    it("flats of another exposure are told by the air", function()
        for _, level in ipairs {0.5, 4} do
            write {flats = flat_of {BEAM / 4 / level + DARK, BEAM / 4 / level + DARK},
                data = frames_of(function(p)
                    return BEAM / 4 * math.exp(-p) + DARK
                end, "u16")}
            warned(("the air at both edges has a transmission of %g in all projections that were "
                .. "looked at, not 1"):format(level))
            local said, off = odd.recipe('"flat_field", {"normalize_background", width = 2}, '
                .. '"minus_log"')
            assert.equal("", said)
            assert.is_true(off <= 0.045)
        end
    end)

    it("darks that are too bright are told by transmissions below 0", function()
        write {darks = flat_of {9000, 9000, 9000}}
        local _, text = run()
        assert.matches("warning: about %d[%d.]+ %% of the transmissions are below 0, down to %-0.%d+: "
            .. "the darks %(mean 9000%) are brighter than the projections there; name other darks "
            .. "with %-%-darks%-path", text)
    end)

    it("contrast that is inverted is told", function()
        write {data = frames_of(function(p)
            return 2 * BEAM * (1 - math.exp(-p) / 2) // 2 + BEAM // 2
        end, "u16")}
        local _, text = run()
        assert.matches("are brighter than the air beside the sample %(transmission 0.99%d*%): the "
            .. "contrast looks inverted, and the slices will be negative\n", text)
        write {data = frames_of(function(p) return 65535 - counts(p) end, "u16"), darks = false,
            flats = flat_of {65535 - BEAM - DARK, 65535 - BEAM - DARK}}
        _, text = run()
        assert.matches("the contrast looks inverted, and the slices will be negative\n", text)
        assert.not_matches("name other", text)
    end)

    it("an offset of 32768 without darks is told, and a constant takes it out", function()
        local function moved(p) return 20000 * math.exp(-p) + 32768 end
        write {data = frames_of(moved), flats = flat_of {52768, 52768}, darks = false}
        warned("no count is below 32768 %(the least is 3%d+%), and "
            .. "there are no darks: an offset of 32768 looks to have been added to signed counts; "
            .. "%-%-darks 32768 takes it out\n", "--darks 32768")
        local said, off = odd.recipe('"flat_field", "minus_log"', "--darks 32768")
        assert.equal("", said)
        assert.is_true(off <= 0.045)
        -- Counts of a weak sample that are all as high.
        write {data = frames_of(function(p) return 60000 * math.exp(-p / 5) end),
            flats = flat_of {60000, 60000}, darks = false}
        local _, text = run()
        assert.not_matches("offset", text)
    end)

    it("zingers are not taken for a saturated detector", function()
        local function hit(column, i)
            return (column * 37 + i * 91) % 211 == 0
        end
        local struck = frames_of(counts, "u16")
        for i, frame in ipairs(struck) do
            local row = table.move(frame[1], 1, #frame[1], 1, {})
            for column = 1, #row do
                row[column] = hit(column, i) and 65535 or row[column]
            end
            struck[i] = {row, row}
        end
        local flats = {}
        for k = 1, 8 do
            flats[k] = function(column)
                return hit(column, k + 7) and 65535 or BEAM + DARK
            end
        end
        write {data = struck, flats = flat_of(flats)}
        local status, text = run()
        assert.same({0, ""}, {status, text})
        write {data = frames_of(function(p) -- the air is too bright
            return math.min(65535, 1.7 * counts(p))
        end), flats = flat_of {62000, 62000}}
        status, text = run()
        assert.equal(0, status)
        assert.matches("of the values of the projections are 65535, the largest of their type: the "
            .. "detector was saturated there", text)
    end)

    it("counts in the other byte order are refused", function()
        local function swapped(value)
            value = math.tointeger(odd_scans.rounded(value))
            return (value & 255) << 8 | value >> 8
        end
        write {data = frames_of(function(p) return swapped(counts(p)) end, "u16"),
            flats = flat_of {swapped(BEAM + DARK), swapped(BEAM + DARK)},
            darks = flat_of {swapped(DARK)}}
        refused("the bytes of the counts look exchanged: neighbors differ by %d+ %(median%), "
            .. "and by %d+ with the bytes .* %-%-counts%-as swapped reads them so",
            "--counts-as swapped")
    end)

    it("unsigned counts that are stored as signed ones are refused", function()
        write {}
        local path <const> = shell:path "scan.h5"
        local reading <close> = assert(io.open(path, "rb"))
        local text <const> = reading:read "a"
        -- The type of 16-bit integers in HDF5, whose fourth flag is the sign.
        local patched, count = text:gsub("\x10\0\0\0\2\0\0\0\0\0\x10\0",
            "\x10\8\0\0\2\0\0\0\0\0\x10\0")
        assert.equal(3, count)
        do
            local file <close> = assert(io.open(path, "wb"))
            file:write(patched)
        end
        refused("the counts are signed %(int16%) and jump from 32767 to %-32768: 2?%d %% of the "
            .. "projections are negative %(.*%), the flats have a mean of %-25436. They look like "
            .. "unsigned counts; %-%-counts%-as unsigned reads them so", "--counts-as unsigned",
            "--counts-as unsigned --flat-mode median")
    end)

    it("flats and darks that are exchanged, and counts that are none, are refused", function()
        write {flats = flat_of {DARK, DARK}, darks = flat_of {BEAM + DARK, BEAM + DARK}}
        refused("the flats %(mean 100 counts%) are darker than the darks %(mean 40100%): .*"
            .. "if they are exchanged, name them with %-%-flats%-path and %-%-darks%-path\n",
            "--flats-path /exchange/data_dark --darks-path /exchange/data_white")
        write {data = frames_of(function() return 0 end, "u16")}
        refused("all 960 values .* in 5 of the 150 projections, are 0: were they never written")
        write {data = frames_of(function() return 777 end, "u16")}
        local _, text = run()
        assert.matches("warning: all 960 values .* are 777: they show no sample", text)
    end)

    it("line integrals and transmissions beside flats of counts are refused", function()
        local said = "the projections have values from .*, the flats a mean of 40100 and the darks "
            .. "of 100: nothing has come through. .*%-%-no%-log or %-%-input transmission"
        write {data = frames_of(function(p) return p end, "f32"), references = "u16",
            dtype = "f32"}
        refused(said, "--no-log", '--input "line integrals"')
        write {data = frames_of(function(p) return math.exp(-p) end, "f32"), dtype = "f32"}
        refused(said)
        local status, text = run "--input transmission"
        assert.equal(0, status)
        assert.matches("warning: no flats; values from .* are read as transmission\n$", text)
        assert.is_true(odd.error_of() <= 0.045)
    end)

    it("a transmission of 8 bits with flats of 255 is not saturated", function()
        local data = frames_of(function(p) return 255 * math.exp(-p) end, "u8")
        write {dtype = "u8", data = data, flats = flat_of {255, 255}, darks = flat_of {0, 0}}
        assert.is_true(run("", true) <= 0.045)
        write {dtype = "u8", data = data, flats = flat_of {255, 255}, darks = flat_of {3, 3}}
        refused "all values of the flats that were checked are 255, the largest of their type"
    end)

    it("are looked at with a recipe too, before it runs", function()
        write {darks = flat_of {DARK, BEAM + DARK, DARK, DARK}}
        local function of_recipe(more)
            return odd.recipe('"flat_field", "minus_log"', more)
        end
        assert.matches("^reconstruct: warning: dark 2 of 4 has a mean of 40100 counts, .*: "
            .. "%-%-set flat_field.mode=median makes it harmless, and %-%-bad%-darks 2 leaves it",
            (of_recipe ""))
        for _, remedy in ipairs {"--set flat_field.mode=median", "--bad-darks 2"} do
            local said, off = of_recipe(remedy)
            assert.equal("", said)
            assert.is_true(off <= 0.045, remedy)
        end
    end)

    it("are looked at in the steps that were planned, of files and of arrays", function()
        write {darks = flat_of {DARK, BEAM + DARK, DARK, DARK}}
        local scan <close> = assert(mb.scan.open(shell:path "scan.h5"))
        local data <close> = scan:projections()
        local flats <close> = scan:flats()
        local darks <close> = scan:darks()
        local function of_file()
            local own <close> = assert(mb.scan.open(shell:path "scan.h5"))
            mb.recon.check_values(own, {})
        end
        local function of_arrays()
            mb.recon.check_values(mb.scan.of_arrays(data, scan.angles, {flats = flats,
                darks = darks}), {})
        end
        for _, job in ipairs {of_file, of_arrays} do
            assert.same({}, mb.ledger_diff(mb.dry_run(job), mb.ledger(job)))
        end
        local found = mb.recon.check_values(mb.scan.of_arrays(data, scan.angles, {flats = flats,
            darks = darks}), {})
        assert.matches("^dark 2 of 4 .*an array of darks without it is right$", found.warnings[1])
        local made = mb.recon.plan(scan, {center = AXIS})
        local done = mb.pipeline(scan, {"flat_field", "minus_log", {"center", column = AXIS},
            "fbp"}, {quiet = true}):run(function() end)
        assert.equal(done.predicted, done.peak)
        assert.is_true(made.look_peak > 0 and made.look_peak <= data.bytes // 2)
    end)

    it("frames to leave out must be there, and some must stay", function()
        write {}
        for numbers, words in pairs {[{4}] = "bad_darks names frame 4, which is none of the darks; "
            .. "these are the frames 1 to 3", [{1, 2, 3}] = "bad_darks leaves no darks"} do
            local _, problem = mb.scan.open(shell:path "scan.h5", {bad_darks = numbers})
            assert.same({"argument", "bad_darks"}, {problem.code, problem.arg})
            assert.matches(words, tostring(problem))
        end
        local _, problem = mb.scan.open(shell:path "scan.h5", {counts_as = "unsigned"})
        assert.equal("unsupported", problem.code)
        assert.matches("holds u16, which cannot be read as unsigned numbers", tostring(problem))
        assert.matches("counts_as", (helper.failure(mb.scan.open, shell:path "scan.h5",
            {counts_as = "signed"})))
    end)
end)
