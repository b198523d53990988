-- median, dezinger, nonfinite and dead_pixels: through a pipeline they give what the operators give
-- on whole arrays, and count each value once.

local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local pixel_list = require "moonbeam.scan.pixel_list"

local ANGLES <const>, ROWS <const>, COLS <const> = 14, 9, 21
local LINES <const> = "line integrals"

local function noise(shape, seed, low, high)
    return mb.random(shape, {seed = seed, low = low, high = high, dtype = "u16"})
end

-- A scan of counts with zingers, and its arrays, to be closed.
local function counts()
    local own = {data = noise({ANGLES, ROWS, COLS}, 1, 480, 520),
        flats = noise({4, ROWS, COLS}, 2, 980, 1020), darks = noise({3, ROWS, COLS}, 3, 90, 110)}
    for i = 1, 25 do
        local z, y, x = i * 5 % ANGLES + 1, i * 7 % ROWS + 1, i * 11 % COLS + 1
        local view <close> = own.data:view({z, z}, {y, y}, {x, x})
        mb.fill(view, i % 2 == 0 and 4000 or 10)
    end
    local hit <close> = own.flats:view({2, 2}, {4, 4}, {5, 5})
    mb.fill(hit, 9000)
    own.scan = check.scan(own.data, {flats = own.flats, darks = own.darks})
    return setmetatable(own, {__close = function()
        for _, name in ipairs {"data", "flats", "darks"} do
            own[name]:release()
        end
    end})
end

-- The result of an operator, without its counts; and those.
local function alone(operator, ...)
    local result, tally = mb[operator](...)
    local _ <close> = tally
    return result, tally:to_table()
end

-- Transmission of frames by the operators.
local function transmission(data, flats, darks)
    return (alone("flat_field", data, {flats = flats, darks = darks}))
end

-- The counts that a run reports, the same for blocks of any size.
local function repaired(expected, scan, recipe, input)
    for _, count in ipairs {1, 3, 4, 100} do
        local data, report = check.result(scan, recipe, count, input)
        data:release()
        assert.same(expected, report.totals.repaired)
    end
end

describe("the step dezinger", function()
    it("takes zingers out of counts, flats and darks, before the flat field", function()
        local own <close> = counts()
        for _, size in ipairs {3, {3, 3, 3}, {5, 3, 5}} do
            local window = type(size) == "number" and {1, size, size} or size
            local a <close>, tally = alone("dezinger", own.data, window, 200)
            local flats <close> = alone("dezinger", own.flats, window, 200)
            local darks <close> = alone("dezinger", own.darks, window, 200)
            assert.equal(25, tally[1])
            local want <close> = transmission(a, flats, darks)
            local recipe = {{"dezinger", size = size, threshold = 200}, "flat_field"}
            local _ <close> = check.gives(want, own.scan, recipe)
            repaired({25, 0, 0}, own.scan, recipe)
            local raw <close> = transmission(a, own.flats, own.darks)
            local _ <close> = check.gives(raw, own.scan, {{"dezinger", size = size, -- luacheck: ignore
                threshold = 200, references = false}, "flat_field"})
        end
    end)

    it("works on transmission and on line integrals, with rows or frames cut", function()
        local own <close> = counts()
        local t <close> = transmission(own.data, own.flats, own.darks)
        local want <close>, tally = alone("dezinger", t, {3, 3, 3}, 0.5, {relative = true,
            which = "bright", mode = "edge"})
        assert.is_true(tally[1] > 5)
        local step = {"dezinger", size = {3, 3, 3}, threshold = 0.5, relative = true,
            which = "bright", mode = "edge"}
        local _ <close> = check.gives(want, own.scan, {"flat_field", step})
        local scan = check.scan(t)
        local _ <close> = check.gives(want, scan, {step}, LINES) -- luacheck: ignore
        repaired({tally[1], 0, 0}, scan, {step}, LINES)
        local slices <close> = check.gives(nil, scan, {step, {"fbp", center = 10}}, LINES)
        assert.same({ROWS, COLS, COLS}, slices.shape)
    end)

    it("leaves integers integers, and makes others float32", function()
        for given, made in pairs {u8 = "u8", u16 = "u16", i32 = "f32", f16 = "f32"} do
            local own = {}
            for i, range in ipairs {{6, 90, 200}, {3, 210, 255}, {2, 5, 15}} do
                local wide <close> = mb.random({range[1], 5, 20}, {seed = i, low = range[2],
                    high = range[3], dtype = "u16"})
                own[i] = wide:cast(given)
            end
            local data <close>, flats, darks = table.unpack(own)
            local scan = check.scan(data, {flats = flats, darks = darks})
            for _, step in ipairs {{"dezinger", threshold = 40}, {"median"}, {"nonfinite"},
                {"dead_pixels", least = 30}} do
                local result <close> = check.gives(nil, scan, {step})
                assert.equal(made, result.dtype)
                local t <close> = check.gives(nil, scan, {step, "flat_field"})
                assert.equal("f32", t.dtype)
            end
            flats:release()
            darks:release()
        end
    end)

    it("has the thresholds of other packages as presets", function()
        local own <close> = counts()
        local cases = {httomo = {{3, 3, 3}, 1000}, tomocupy = {{1, 3, 3}, 5000, "bright"}}
        for preset, case in pairs(cases) do
            local a <close> = alone("dezinger", own.data, case[1], case[2], {which = case[3]})
            local want <close> = transmission(a, own.flats, own.darks)
            local _ <close> = check.gives(want, own.scan, {{"dezinger", preset = preset},
                "flat_field"})
        end
        local t <close> = transmission(own.data, own.flats, own.darks)
        local want <close> = alone("dezinger", t, {1, 3, 3}, 0.04, {which = "bright"})
        local _ <close> = check.gives(want, own.scan, {"flat_field", {"dezinger",
            preset = "nabu"}})
    end)

    it("refuses what makes no sense", function()
        local own <close> = counts()
        check.refused("threshold is missing", own.scan, {"dezinger"})
        check.refused("extents must be odd whole numbers", own.scan, {{"dezinger", size = 4,
            threshold = 1}, "flat_field"})
        check.refused("size has 4 numbers", own.scan, {{"dezinger", size = {3, 3, 3, 3},
            threshold = 1}, "flat_field"})
        check.refused("did you mean 'bright'", own.scan, {{"dezinger", which = "brigth",
            threshold = 1}, "flat_field"})
        check.refused("it takes frames, but the data are slices", own.scan, {"flat_field",
            "minus_log", {"fbp", center = 10}, {"dezinger", threshold = 1}})
    end)
end)

describe("the step median", function()
    it("filters frames and slices", function()
        local own <close> = counts()
        local t <close> = transmission(own.data, own.flats, own.darks)
        for _, size in ipairs {3, {3, 5, 3}, {5, 1}} do
            local window = type(size) == "number" and {1, size, size} or #size == 2
                and {1, size[1], size[2]} or size
            local want <close> = mb.median_filter(t, window, {mode = "reflect"})
            local _ <close> = check.gives(want, own.scan, {"flat_field", {"median", size = size,
                mode = "reflect"}})
        end
        local scan = check.scan(t)
        local fbp = {"fbp", center = 10}
        local slices <close> = check.gives(nil, scan, {fbp}, LINES)
        local want <close> = mb.median_filter(slices, {3, 3, 3})
        local _ <close> = check.gives(want, scan, {fbp, {"median", size = {3, 3, 3}}}, LINES)
    end)
end)

-- Frames with NaN and infinities.
local function holes()
    local nan = 0 / 0
    local a <close> = mb.random({ANGLES, ROWS, COLS}, {seed = 5, low = 0.2, high = 1})
    local list = a:to_table()
    for z, plane in ipairs(list) do
        for y, row in ipairs(plane) do
            for x = 1, COLS do
                local dice = (z * 31 + y * 17 + x * 7) % 41
                row[x] = dice == 0 and nan or dice == 1 and 1 / 0 or row[x]
            end
        end
    end
    return mb.array(list)
end

describe("the step nonfinite", function()
    it("takes the neighbors where the scan has NaN, before they count as unattenuated", function()
        local data <close> = holes()
        local scan = check.scan(data)
        for _, options in ipairs {{}, {method = "mean", reach = 2}} do
            local want <close>, tally = alone("mend", data, options)
            assert.is_true(tally[1] > 50)
            local step = {"nonfinite", method = options.method, reach = options.reach}
            local _ <close> = check.gives(want, scan, {step}, "transmission")
            repaired({0, tally[1], tally[2]}, scan, {step}, "transmission")
        end
    end)
end)

describe("the step dead_pixels", function()
    it("finds pixels that the flats do not tell from the darks, and mends all frames", function()
        local own <close> = counts()
        for _, place in ipairs {{3, 4}, {3, 5}, {9, 21}} do
            for _, name in ipairs {"data", "flats", "darks"} do
                local view <close> = own[name]:view(mb.all, {place[1], place[1]},
                    {place[2], place[2]})
                mb.fill(view, place[2] == 21 and 65535 or 0)
            end
        end
        local mask, tally = mb.dead_pixels(own.flats, {darks = own.darks})
        local bad <close> = mask
        tally:release()
        local a <close>, found = alone("mend", own.data, {mask = bad, method = "mean"})
        local flats <close> = alone("mend", own.flats, {mask = bad, method = "mean"})
        local darks <close> = alone("mend", own.darks, {mask = bad, method = "mean"})
        assert.same({3 * ANGLES, 0}, found)
        local want <close> = transmission(a, flats, darks)
        local recipe = {{"dead_pixels", method = "mean"}, "flat_field"}
        local _ <close> = check.gives(want, own.scan, recipe)
        repaired({0, 3 * ANGLES, 0}, own.scan, recipe)
        local listed = {{"dead_pixels", detect = "none", method = "mean",
            pixels = {3, 4, 3, 5, 9, 21}}, "flat_field"}
        local _ <close> = check.gives(want, own.scan, listed) -- luacheck: ignore
        local stuck = {{"dead_pixels", detect = "constant", method = "mean"}, "flat_field"}
        local _ <close> = check.gives(want, own.scan, stuck) -- luacheck: ignore
    end)

    it("reads pixels from a text, an image, and datasets", function()
        local own <close> = counts()
        local list = {4, 11, 9, 1, 1, 21}
        local folder = files.folder()
        local mask <close> = mb.zeros({ROWS, COLS}, {dtype = "u8"})
        for i = 1, #list, 2 do
            local view <close> = mask:view({list[i], list[i]}, {list[i + 1], list[i + 1]})
            mb.fill(view, 255)
        end
        files.write(folder .. "/list.txt", "# row, column\n4 11\n9, 1\n1 21\n")
        mb.npy.write(folder .. "/mask.npy", mask)
        mb.images.write(folder .. "/mask.tif", mask)
        local pairs_of <close> = mb.array {{4, 11}, {9, 1}, {1, 21}}
        do
            local file <close> = assert(mb.h5.create(folder .. "/mask.h5"))
            file:write("/mask", mask)
            file:write("/pairs", pairs_of)
            file:finish()
        end
        for _, name in ipairs {"list.txt", "mask.npy", "mask.tif", "mask.h5:/mask",
            "mask.h5:/pairs"} do
            local got = pixel_list.read(own.scan, folder .. "/" .. name)
            local found = {}
            for i = 1, #got, 2 do
                found[i // 2 + 1] = got[i] * 100 + got[i + 1]
            end
            table.sort(found)
            assert.same({121, 411, 901}, found, name)
        end
        local small <close> = mb.zeros({ROWS, 4}, {dtype = "u8"})
        mb.npy.write(folder .. "/small.npy", small)
        files.write(folder .. "/bad.txt", "4 elf")
        for name, message in pairs {["small.npy"] = "a mask of 9 x 4 pixels; the scan's frames "
            .. "have 9 x 21", ["bad.txt"] = "'elf' is not a number", ["mask.h5:/no"] = "has no dataset /no"} do
            assert.is_truthy(helper.failure(pixel_list.read, own.scan, folder .. "/" .. name)
                :find(message, 1, true), name)
        end
        assert.matches("which is no text of numbers", (helper.failure(pixel_list.read, own.scan,
            "no/where.txt")))
        files.remove(folder)
    end)

    it("takes pixels of the scan after a crop", function()
        local own <close> = counts()
        local whole <close> = check.result(own.scan, {{"dead_pixels", detect = "none",
            pixels = {4, 11}, reach = 1}, {"crop", rows = {2, 7}, columns = {6, 20}}, "flat_field"})
        local _ <close> = check.gives(whole, own.scan, {{"crop", rows = {2, 7}, columns = {6, 20}},
            {"dead_pixels", detect = "none", pixels = {4, 11}, reach = 1}, "flat_field"})
    end)

    it("refuses what makes no sense", function()
        local own <close> = counts()
        check.refused("pixels is not given and detect is \"none\"", own.scan, {{"dead_pixels",
            detect = "none"}})
        check.refused("pixel 2 is row 10, column 3", own.scan, {{"dead_pixels",
            pixels = {1, 1, 10, 3}}})
        check.refused("give row and column of each", own.scan, {{"dead_pixels", pixels = {1}}})
        check.refused("it takes counts, but the data are transmission", own.scan, {"flat_field",
            "dead_pixels"})
        local lines <close> = mb.random({4, 3, 5}, {seed = 1})
        assert.matches("takes counts", (helper.failure(mb.pipeline, check.scan(lines),
            {"dead_pixels"}, {input = LINES, quiet = true})))
    end)
end)

describe("steps on counts that rest in a store", function()
    it("refuse to work without the flats and darks, which are not stored", function()
        local own <close> = counts()
        local frames = {name = "frames_alone", summary = "Frames.", cuts = {"frames"},
            takes = {quantity = {"counts", "transmission"}, layout = "frames", dtypes = {"u16"}},
            gives = {quantity = "same", layout = "same", dtype = "same"}, run = function() end}
        local constant = {"dead_pixels", detect = "constant"}
        local function refused(part, ...)
            local p = mb.pipeline(own.scan, {...}, {quiet = true, steps = frames})
            local text = helper.failure(p.plan, p)
            assert.is_truthy(text:find(part, 1, true), text)
        end
        refused("step flat_field: it needs flats and darks, but counts are stored without them "
            .. "before step frames_alone: put step frames_alone after step flat_field", constant,
            "frames_alone", "flat_field")
        refused("before it, because step dead_pixels is cut in another way: put step dead_pixels "
            .. "after it", constant, "flat_field_eigen")
        refused("step dead_pixels#2: it needs flats", constant, "frames_alone", "dead_pixels")
        local p = mb.pipeline(own.scan, {constant, "frames_alone"}, {quiet = true, steps = frames})
        local stored <close> = p:slices() -- counts are a result, too
        assert.equal("u16", stored.dtype)
        local late = mb.pipeline(own.scan, {"frames_alone", "flat_field", constant},
            {quiet = true, steps = frames})
        assert.equal(3, #late:plan().sections)
    end)
end)
