--- What a few frames of a scan tell before anything is made of them.
local mb = require "moonbeam"
local helper = require "spec.helper"

-- Values, offset + 0, 1, 2, 3 and again, as a scan in memory: {6, 2, 8}.
local function frames(offset, dtype)
    local values = {}
    for i = 1, 96 do
        values[i] = offset + i % 4
    end
    local list <close> = mb.array(values, {dtype = dtype})
    return list:reshape(6, 2, 8)
end

local function look(array, options)
    options = options or {}
    options.log = options.log or false
    return mb.recon.check_values(mb.scan.of_arrays(array, mb.tomo.angles(6)), options)
end

describe("values of a scan", function()
    it("that float32 makes one number are refused, and those that it rounds are warned of",
        function()
        local lost <close> = frames(2 ^ 40, "f64")
        assert.matches("from 1099511627776 to 1099511627779, which are one number in float32",
            (helper.failure(look, lost)))
        local coarse <close> = frames(2 ^ 25, "i32")
        assert.matches("float32 rounds them by up to %d+ %% of that range",
            look(coarse).warnings[1])
        local fine <close> = frames(2 ^ 23, "f32")
        assert.equal(1, #look(fine).warnings) -- that they are large for line integrals
    end)

    it("that look like counts are no line integrals", function()
        for dtype, seen in pairs {u16 = "900 to 903 are read as line integrals, but look like "
            .. "counts %(whole numbers%)", f32 = "900 to 903 are read as line integrals, but look "
            .. "like counts %(a line integral is seldom above 30%)"} do
            local counts <close> = frames(900, dtype)
            local found = look(counts)
            assert.equal("values from 900 to 903 are read as line integrals", found.text)
            assert.equal(1, #found.warnings)
            assert.matches(seen .. ": .*leave %-%-no%-log out", found.warnings[1])
        end
        local integrals <close> = frames(-0.2, "f32")
        local found = look(integrals)
        assert.equal("values from -0.2 to 2.8 are read as line integrals", found.text)
        assert.same({}, found.warnings)
    end)

    it("are looked at in the rows that are asked for", function()
        local array <close> = mb.full({6, 4, 8}, 0.5)
        local bad <close> = array:view(mb.all, {3, 4}, mb.all)
        bad:fill(0 / 0)
        assert.equal("line integrals", look(array, {rows = {1, 2}}).kind)
        assert.matches("none of the %d+ values that were checked",
            (helper.failure(look, array, {rows = {3, 4}})))
    end)

    it("are looked at in the same steps when dry", function()
        local array <close> = mb.random({6, 4, 8}, {seed = 1, low = 0.2, high = 1})
        local function job()
            mb.recon.check_values(mb.scan.of_arrays(array, mb.tomo.angles(6)), {})
        end
        assert.same({}, mb.ledger_diff(mb.dry_run(job), mb.ledger(job)))
    end)

    it("are told of flats that are not finite", function()
        local array <close> = mb.random({6, 4, 8}, {seed = 1, low = 0.2, high = 1})
        local flats <close> = mb.ones {2, 4, 8}
        local function warnings()
            return mb.recon.check_values(mb.scan.of_arrays(array, mb.tomo.angles(6),
                {flats = flats}), {}).warnings
        end
        assert.same({}, warnings())
        local bad <close> = flats:view(1, mb.all, {1, 4})
        bad:fill(0 / 0)
        assert.matches("^about 25 %% of the values of the flats are not finite; .* option flats$",
            warnings()[1])
    end)

    it("say what a run has lost", function()
        local judge = require("moonbeam.scan.values").losses
        local sizes = {values = 100, pixels = 10, voxels = 50}
        local function losses(mended, clipped, log, spoiled)
            return judge({mended = mended, clipped = clipped, spoiled = {spoiled or 0, 0, 0}},
                sizes, log)
        end
        assert.same({}, losses({0, 0, 0}, {0, 0, 0}, true))
        assert.equal("3 values were not finite and count as no attenuation (3 %)",
            losses({3, 0, 0}, {0, 0, 0}, true)[1])
        assert.equal("1 value was not finite and counts as no attenuation (1 %)",
            losses({1, 0, 0}, {0, 0, 0}, true)[1])
        assert.equal("1 value had a transmission of zero or less and was clipped (1 %)",
            losses({0, 0, 1}, {0, 0, 0}, true)[1])
        assert.equal("1 value lay outside the range that is stored (0 below, 1 above, 0 not "
            .. "numbers) and was clipped (2 %)", losses({0, 0, 0}, {0, 1, 0}, true)[1])
        assert.matches("^1 detector pixel has .* %(10 %%%): .* step dead_pixels mends them$",
            losses({0, 1, 0}, {0, 0, 0}, true)[1])
        assert.matches("^MOST OF THE DATA IS LOST: 5 detector pixels",
            losses({0, 5, 0}, {0, 0, 0}, true)[1])
        assert.same({}, losses({0, 0, 100}, {0, 0, 0}, false))
        assert.matches("^2 slices have values that are not finite, by the iterative method: check",
            losses({0, 0, 0}, {0, 0, 0}, true, 2)[1])
        for _, case in ipairs {{{100, 0, 0}, {0, 0, 0}}, {{0, 10, 0}, {0, 0, 0}},
            {{0, 0, 100}, {0, 0, 0}},
            {{60, 0, 40}, {0, 0, 0}}, {{0, 0, 0}, {20, 25, 5}}} do
            assert.matches("nothing is left", (helper.failure(losses, case[1], case[2], true)))
        end
    end)
end)
