local check = require "spec.support.step_check"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local LINES <const> = "line integrals"

-- A scan of two frames with these values in its first row, filled up with others.
local function scan_of(values, filler)
    local rows = {}
    for y = 1, 2 do
        rows[y] = {}
        for x = 1, #values do
            rows[y][x] = y == 1 and values[x] or filler
        end
    end
    return mb.array {rows, rows}
end

-- The codes of the first row.
local function codes(values, filler, options)
    local data <close> = scan_of(values, filler)
    local entry = {"rescale"}
    for name, value in pairs(options) do
        entry[name] = value
    end
    local stored <close> = check.gives(nil, check.scan(data, {angles = {0, 1}}), {entry}, LINES)
    return stored:to_table()[1][1], stored.dtype
end

describe("the step rescale", function()
    it("has HTTomo's small cases as a preset", function()
        local all = {}
        for i = 0, 255 do
            all[i + 1] = i
        end
        assert.same(all, (codes(all, 1, {preset = "httomo"})))
        -- {0, 1, 65535} stays as it is in 16 bits
        local wide, dtype = codes({0, 1, 65535}, 1, {preset = "httomo", dtype = "uint16"})
        assert.same({0, 1, 65535}, wide)
        assert.equal("u16", dtype)
        -- the middle of a range: down, not to the nearest
        assert.same({0, 127, 255}, (codes({0, 1, 2}, 1, {preset = "httomo"})))
        assert.same({0, 127, 255}, (codes({10, 11, 12}, 11, {preset = "httomo"})))
        assert.same({0, 128, 255}, (codes({0, 1, 2}, 1, {dtype = "uint8", range = {0, 2}})))
        -- percent of the range, not percentiles
        for dtype_name, top in pairs {uint8 = 255, uint16 = 65535} do
            assert.same({0, top, top * 5 // 8}, (codes({10, 20, 16}, 16, {preset = "httomo",
                dtype = dtype_name, percent_of_range = {10, 90}})))
        end
    end)

    it("takes NaN and infinities as 0 before it scales, as HTTomo does, or by their own rule",
        function()
        local nan, inf = 0 / 0, math.huge
        local values = {nan, inf, -inf, 1}
        assert.same({0, 0, 0, 127}, (codes(values, 1, {dtype = "uint8", range = {0, 2},
            rounding = "down", nonfinite = 0})))
        assert.same({85, 85, 85, 170}, (codes(values, 1, {dtype = "uint8", range = {-1, 2},
            rounding = "down", nonfinite = 0})))
        -- behind the scan itself that is the rule for all line integrals; quantize_spec has others
    end)

    it("is HTTomo's formula in NumPy", function()
        oracle.needs "numpy"
        local data <close> = mb.random({3, 5, 40}, {seed = 1, low = -3, high = 7})
        local want <close> = oracle.run("numpy", [[
low, high = float(a.min()), float(a.max())
first, last = low + 0.07 * (high - low), low + 0.88 * (high - low)
r = np.floor((np.clip(a.astype(float), first, last) - first) * (255 / (last - first)))
]], {a = data}, {"r"})
        local found <close> = check.gives(nil, check.scan(data), {{"rescale", preset = "httomo",
            percent_of_range = {7, 88}}}, LINES)
        local back <close> = found:cast "f32"
        local off <close> = mb.binary(want, "sub", {b = back})
        local different = 0
        for _, frame in ipairs(off:to_table()) do
            for _, row in ipairs(frame) do
                for _, v in ipairs(row) do
                    assert.is_true(math.abs(v) <= 1)
                    different = different + math.abs(v)
                end
            end
        end
        assert.is_true(different <= 2, different) -- at most where a step begins
    end)

    it("is nabu's with percentiles", function()
        local data <close> = mb.random({3, 5, 400}, {seed = 1, low = -3, high = 7})
        local range = mb.statistics.percentiles(data, {0.1, 99.9})
        local want <close>, tally = mb.quantize(data, "u16", {low = range[1], high = range[2]})
        tally:release()
        local _ <close> = check.gives(want, check.scan(data), {{"rescale", preset = "nabu"}}, LINES)
    end)

    it("tells other ranks of counts, without all zeros", function()
        local share = require "moonbeam.steps.values.rescale".reduce.share
        local one, two = share {{text = "0 0 3 0 1"}}, share {{text = "1 0 0 0 0"}}
        assert.same({"-2 3 -1 1", "1 -4"}, {one.text, two.text})
        assert.same({text = "1 -1 3 -1 1"}, share {one, two})
        assert.same({text = ""}, share {})
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({3, 5, 40}, {seed = 1})
        local scan = check.scan(data)
        check.refused("range and percent_of_range both give the range; remove one", scan,
            {{"rescale", dtype = "uint8", range = {0, 1}, percent_of_range = {0, 100}}}, LINES)
        check.refused("float32 keeps NaN and infinities", scan, {{"rescale", dtype = "float32",
            nonfinite = 0}}, LINES)
        check.refused("its first number, 100, must be less than its second, 0", scan,
            {{"rescale", dtype = "uint8", percent_of_range = {100, 0}}}, LINES)
    end)
end)

describe("the range of a few slices", function()
    it("holds an object that grows along z, in the bytes that were planned", function()
        local angles, values = mb.tomo.angles(20), {}
        for k, angle in ipairs(angles) do
            values[k] = {}
            for row = 1, 40 do
                values[k][row] = {}
                for column = 0, 23 do
                    local d = 25 - (column - 11.5 - 4 * math.cos(angle)) ^ 2
                    values[k][row][column + 1] = d > 0 and (row / 40) ^ 2 * math.sqrt(d) or 0
                end
            end
        end
        local data <close> = mb.array(values)
        local volume <close>, report = mb.recon.reconstruct(data, angles, {log = false,
            dtype = "u16", center = 11.5, quiet = true})
        assert.equal("u16", volume.dtype)
        assert.is_true(report.as_planned)
        assert.same({0, 0, 0}, {table.unpack(report.clipped)})
        local function clipped(count)
            local slices <close>, done = mb.pipeline(check.scan(data), {{"fbp", center = 11.5},
                {"rescale", dtype = "uint16", sample = count}}, {input = LINES, quiet = true})
                :slices()
            assert.is_true(done.as_planned)
            assert.same({40, 24, 24}, slices.shape)
            return done.totals.clipped[2]
        end
        assert.equal(0, clipped(2)) -- the ends
        assert.is_true(clipped(1) > 100) -- the middle one alone
    end)
end)
