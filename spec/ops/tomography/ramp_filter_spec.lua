local mb = require "moonbeam"
local helper = require "spec.helper"

local pi = math.pi

local function padded_width(width)
    local p = 4
    while p < 2 * width do
        p = 2 * p
    end
    return p
end

local windows = {
    ["ram-lak"] = function() return 1 end,
    ["shepp-logan"] = function(q) return q == 0 and 1 or math.sin(pi * q / 2) / (pi * q / 2) end,
    cosine = function(q) return math.cos(pi * q / 2) end,
    hamming = function(q) return 0.54 + 0.46 * math.cos(pi * q) end,
    hann = function(q) return 0.5 + 0.5 * math.cos(pi * q) end,
    tukey = function(q) return q <= 0.5 and 1 or 0.5 + 0.5 * math.cos(2 * pi * (q - 0.5)) end,
    lanczos = function(q) return q == 0 and 1 or math.sin(pi * q) / (pi * q) end,
    parzen = function(q) return (1 - q) ^ 3 end,
}

-- The filter's spatial kernel on a circle of P samples, by the definition.
local function kernel(filter, cutoff, P)
    local response, h = {}, {}
    for k = 0, P // 2 do
        local q, sum = 2 * k / P / cutoff, 0.25
        for n = 1, P // 2 - 1, 2 do
            sum = sum - 2 * math.cos(2 * pi * k * n / P) / (pi * n) ^ 2
        end
        response[k] = filter == "none" and 1 or q > 1 and 0 or sum * windows[filter](q)
    end
    for n = 0, P - 1 do
        local sum = response[0] + (n % 2 == 0 and 1 or -1) * response[P // 2]
        for k = 1, P // 2 - 1 do
            sum = sum + 2 * response[k] * math.cos(2 * pi * k * n / P)
        end
        h[n] = sum / P
    end
    return h
end

-- The padded row's trigonometric polynomial: weight of the sample at distance d.
local function weight(d, P)
    if d % P == 0 then
        return 1
    end
    return math.sin(pi * d) / math.tan(pi * d / P) / P
end

-- One row by circular convolution, moved by `shift` columns.
local function filtered(row, options, shift)
    local width = #row
    local P = options.pad_width or padded_width(width)
    local left = (P - width) // 2
    local h = kernel(options.filter or "ram-lak", options.cutoff or 1, P)
    local edge, whole, out = options.padding == "edge", {}, {}
    for x = 0, P - 1 do
        local sum = 0
        for i = 0, P - 1 do
            local j = i - left + 1
            local value = row[j] or edge and row[j < 1 and 1 or width] or 0
            sum = sum + value * h[(x - i) % P]
        end
        whole[x] = sum * (options.scale or 1)
    end
    for x = 1, width do
        local at = left + x - 1 + (shift or 0)
        out[x] = at % 1 == 0 and whole[math.tointeger(at)] or 0
        for i = 0, at % 1 == 0 and -1 or P - 1 do
            out[x] = out[x] + whole[i] * weight(at - i, P)
        end
    end
    return out
end

describe("ramp_filter", function()
    for _, name in ipairs { "ram-lak", "shepp-logan", "cosine", "hamming", "hann", "tukey",
        "lanczos", "parzen", "none" } do
        it("convolves with the kernel of " .. name, function()
            for _, case in ipairs {
                { 1, {} }, { 5, {} }, { 8, { cutoff = 0.6 } }, { 9, { cutoff = 2.5 } }, { 13, { padding = "edge" } },
                { 11, { pad_width = 44, scale = 3 } }, { 12, { pad_width = 12, cutoff = 0.3 } },
                { 7, { pad_width = 20, padding = "edge" } },
            } do
                local width, options = case[1], case[2]
                options.filter = name
                local a <close> = mb.random({ 2, 3, width }, { seed = width, low = -1 })
                local r <close> = mb.ramp_filter(a, options)
                local want = a:to_table()
                for i = 1, 2 do
                    for j = 1, 3 do
                        want[i][j] = filtered(want[i][j], options)
                    end
                end
                helper.assert_close(want, r, 2e-6)
            end
        end)
    end

    it("answers an impulse with the band-limited ramp", function()
        local n = 33
        local a <close> = mb.zeros { n }
        local center <close> = a:view { 17, 17 }
        mb.fill(center, 1)
        local r <close> = mb.ramp_filter(a)
        for i = 1, n do
            local d = math.abs(i - 17)
            assert.near(d == 0 and 0.25 or d % 2 == 1 and -1 / (pi * d) ^ 2 or 0, r:item(i), 2e-7)
        end
    end)

    it("does nothing but scale without a filter", function()
        local a <close> = mb.random({ 3, 10 }, { seed = 1 })
        local r <close> = mb.ramp_filter(a, { filter = "none", scale = 2 })
        local want <close> = a * 2
        helper.assert_close(want, r, 1e-6)
    end)

    it("filters permuted views, in place too, and any number of rows alike", function()
        local a <close> = mb.random({ 5, 6, 31 }, { seed = 2 })
        local whole <close> = mb.ramp_filter(a)
        local view <close> = a:permute(2, 1, 3)
        local turned <close> = mb.ramp_filter(view)
        local back <close> = turned:permute(2, 1, 3)
        assert.same(whole:to_table(), back:to_table())
        local one <close> = a:view({ 2, 2 })
        mb.ramp_filter(one, { out = one })
        local expected <close> = whole:view({ 2, 2 })
        assert.same(expected:to_table(), one:to_table())
    end)

    it("needs scratch that does not grow with the rows", function()
        local few = mb.op.estimate("ramp_filter", { { "f32", 1, 100 } }, {})
        local many = mb.op.estimate("ramp_filter", { { "f32", 1000, 100 } }, {})
        assert.equal(few.scratch, many.scratch)
    end)

    it("needs nothing but its response where a GPU filters rows on the chip", function()
        local device = mb.device("planned:h200")
        local function scratch(params, ...)
            return mb.op.estimate("ramp_filter", { { "f32", ... } }, params,
                { device = device, given = true }).scratch
        end
        for _, width in ipairs { 257, 640, 2048, 2160, 5000, 9000, 16384 } do
            local table_bytes = mb.pool.round(4 * (padded_width(width) // 2 + 1))
            assert.equal(table_bytes, scratch({}, 1, width))
            assert.equal(table_bytes, scratch({ slice_shifts = { 1, 2 }, padding = "edge" }, 2, 700,
                width))
        end
        for _, params in ipairs { { pad_width = 3000 }, { pad_width = 512 },
            { pad_width = 65536 } } do
            assert.is_true(scratch(params, 50, 300) > mb.pool.round(2 * params.pad_width + 4))
        end
    end)

    helper.each_device(function(device, test)
        local where = " on " .. device:match("^%a+")

        -- The ramp's own kernel is known, so that long rows can be checked at a few places.
        test("convolves rows of any length with the ramp" .. where, function()
            for _, case in ipairs {
                { 1 }, { 2 }, { 3 }, { 5 }, { 511 }, { 512 }, { 640 }, { 1000 }, { 2048 }, { 2160 },
                { 2560 }, { 5000 }, { 9000 },
                { 640, 1024 }, { 1000, 1000 }, { 2048, 2048 }, { 700, 4096 }, { 1000, 1500 },
                { 3, 1024 },
            } do
                local width, P = case[1], case[2] or padded_width(case[1])
                local left = (P - width) // 2
                local a <close> = mb.random({ 3, width },
                    { seed = width, low = -1, device = device })
                local rows = a:to_table()
                for _, padding in ipairs { "zero", "edge" } do
                    local r <close> = mb.ramp_filter(a, { padding = padding, pad_width = case[2] })
                    local found, got, want = r:to_table(), {}, {}
                    for k = 0, 8 do
                        local x, row = k * (width - 1) // 8, rows[k % 3 + 1]
                        local sum = 0
                        for i = 0, P - 1 do
                            local j = i - left + 1
                            local d = (x + left - i + P // 2) % P - P // 2
                            if d == 0 or d % 2 == 1 then
                                local value = row[j] or padding == "edge" and row[j < 1 and 1
                                    or width] or 0
                                sum = sum + value * (d == 0 and 0.25 or -1 / (pi * d) ^ 2)
                            end
                        end
                        want[k + 1], got[k + 1] = sum, found[k % 3 + 1][x + 1]
                    end
                    helper.assert_close(want, got, 4e-6, ("%d columns, %s"):format(width, padding))
                end
            end
        end)

        test("keeps rows apart: what is not finite, or huge, stays in its row" .. where, function()
            for _, width in ipairs { 300, 640, 2048, 2160, 5000 } do
                local a <close> = mb.random({ 9, width }, { seed = 5, low = -1e-3, high = 1e-3,
                    device = device })
                local clean <close> = mb.ramp_filter(a)
                local rows = a:to_table()
                rows[2][width // 3], rows[4][width // 3], rows[7][width // 3] = 0 / 0, math.huge,
                    1e30
                local bad <close> = mb.array(rows, { device = device })
                local r <close> = mb.ramp_filter(bad)
                local want, got = clean:to_table(), r:to_table()
                for _, row in ipairs { 1, 3, 5, 6, 8, 9 } do
                    assert.same(want[row], got[row])
                end
                for x = 1, width, 37 do
                    assert.is_true(got[2][x] ~= got[2][x])
                    assert.is_true(got[7][x] == got[7][x])
                end
            end
        end)

        test("filters rows wherever they stand, each alone as in company" .. where, function()
            for _, width in ipairs { 513, 640, 1300 } do
                local a <close> = mb.random({ 5, 7, width + 3 }, { seed = 2, device = device })
                for _, columns in ipairs { { 1, width }, { 2, width + 1 }, { 4, width + 3 } } do
                    local view <close> = a:view(mb.all, mb.all, columns)
                    local dense <close> = view:copy()
                    local want <close> = mb.ramp_filter(dense)
                    local turned <close> = view:permute(2, 1, 3)
                    local back <close> = mb.ramp_filter(turned)
                    local found <close> = back:permute(2, 1, 3)
                    assert.same(want:to_table(), found:to_table())
                    local one <close> = dense:view(5, 7, mb.all)
                    local alone <close> = mb.ramp_filter(one)
                    local last <close> = want:view(5, 7, mb.all)
                    assert.same(last:to_table(), alone:to_table())
                    local own <close> = a:copy()
                    local place <close> = own:view(mb.all, mb.all, columns)
                    mb.ramp_filter(place, { out = place })
                    assert.same(want:to_table(), place:to_table())
                    -- nothing beside the rows is written
                    local before, after = a:to_table(), own:to_table()
                    for x = 1, width + 3 do
                        assert.is_true(before[3][4][x] == after[3][4][x] or x >= columns[1]
                            and x <= columns[2])
                    end
                end
            end
        end)

        test("moves slices by the polynomials of their rows" .. where, function()
            for _, case in ipairs {
                { 9, {} }, { 16, { filter = "none" } },
                { 13, { padding = "edge", filter = "hann" } },
                { 12, { pad_width = 40, scale = 2, padding = "edge" } },
                { 11, { pad_width = 28, cutoff = 0.5 } },
            } do
                local width, options = case[1], case[2]
                local room = ((options.pad_width or padded_width(width)) - width) // 2
                local shifts = { 0, 1, -2, 0.25, -3.6, 1e-3, room, -room + 0.5 }
                local a <close> = mb.random({ #shifts, 2, width },
                    { seed = width, low = -1, device = device })
                local want = a:to_table()
                for z, shift in ipairs(shifts) do
                    for j = 1, 2 do
                        want[z][j] = filtered(want[z][j], options, shift)
                    end
                end
                options.slice_shifts = shifts
                local r <close> = mb.ramp_filter(a, options)
                helper.assert_close(want, r, 2e-6)
                options.out = a
                mb.ramp_filter(a, options)
                assert.same(r:to_table(), a:to_table())
            end
        end)

        test("moves data by whole columns as a copy would" .. where, function()
            for _, width in ipairs { 30, 31 } do
                local data, moved, shifts = {}, {}, { 4, -7, 0, 11 }
                for z, shift in ipairs(shifts) do
                    data[z], moved[z] = { {} }, { {} }
                    for x = 1, width do -- nothing leaves the row
                        data[z][1][x] = x > 11 and x <= width - 11 and math.sin(x * x + z) or 0
                    end
                    for x = 1, width do
                        moved[z][1][x] = data[z][1][x + shift] or 0
                    end
                end
                local a <close> = mb.array(data, { device = device })
                local b <close> = mb.array(moved, { device = device })
                local r <close> = mb.ramp_filter(a, { slice_shifts = shifts })
                local want <close> = mb.ramp_filter(b)
                helper.assert_close(want, r, 2e-6)
            end
        end)

        test("moves a bell and a packet of waves as they would stand elsewhere" .. where, function()
            local width, data, want, shifts = 101, {}, {}, { 0.5, -0.3, 7.81, -19.125 }
            local function wave(x, z)
                return math.exp(-(x - 50) ^ 2 / 72) * math.cos(0.4 * z * (x - 48.3))
            end
            for z, shift in ipairs(shifts) do
                data[z], want[z] = { {} }, { {} }
                for x = 1, width do
                    data[z][1][x], want[z][1][x] = wave(x - 1, z - 1), wave(x - 1 + shift, z - 1)
                end
            end
            local a <close> = mb.array(data, { device = device })
            local r <close> = mb.ramp_filter(a, { filter = "none", slice_shifts = shifts })
            helper.assert_close(want, r, 2e-6)
        end)

        test("moves any number of slices, each alone as in company" .. where, function()
            local shifts = {}
            for z = 1, 600 do
                shifts[z] = 5 * math.sin(z)
            end
            local a <close> = mb.random({ 600, 3, 20 }, { seed = 3, device = device })
            local whole <close> = mb.ramp_filter(a, { slice_shifts = shifts })
            for _, z in ipairs { 1, 2, 256, 257, 511, 512, 513, 600 } do
                local slice <close> = a:view(z, mb.all, mb.all)
                local alone <close> = mb.ramp_filter(slice, { slice_shifts = shifts[z] })
                local expected <close> = whole:view(z, mb.all, mb.all)
                helper.assert_close(expected, alone, 1e-6)
            end
        end)
    end)

    helper.each_device(function(device, test)
        test("multiplies the rows of each angle by its weight on " .. device:match "^%a+", function()
            for _, width in ipairs { 20, 301, 700 } do
                local weights = { 0.5, 1, 0, -2, 1.75 }
                for _, rank in ipairs { 1, 2, 3 } do
                    local shape = { 3, 5, width }
                    shape = table.move(shape, 4 - rank, 3, 1, {})
                    local own = rank == 1 and { 1.75 } or weights
                    local a <close> = mb.random(shape, { seed = rank, low = -1, device = device })
                    local shifts = rank == 3 and { 0.5, -2, 3 } or { -1.25 }
                    for _, options in ipairs { { padding = "edge" }, { slice_shifts = shifts } } do
                        local plain <close> = mb.ramp_filter(a, options)
                        options.weights = own
                        local weighted <close> = mb.ramp_filter(a, options)
                        local want <close> = plain:copy()
                        for i, factor in ipairs(own) do
                            local rows <close> = rank == 1 and want:view(mb.all)
                                or rank == 2 and want:view(i, mb.all)
                                or want:view(mb.all, i, mb.all)
                            mb.binary(rows, "mul", { scalar = factor, out = rows })
                        end
                        assert.same(want:to_table(), weighted:to_table())
                        local standing <close> = a:copy()
                        options.out = standing
                        mb.ramp_filter(standing, options)
                        assert.same(want:to_table(), standing:to_table())
                    end
                end
            end
        end)
    end)

    it("says what is wrong with weights", function()
        local a <close> = mb.zeros { 2, 3, 10 }
        local text, err = helper.failure(mb.ramp_filter, a, { weights = { 1, 2 } })
        assert.same({ "argument", "weights" }, { err.code, err.arg })
        assert.matches("2 weights were given and the sinogram has 3 angles", text, 1, true)
    end)

    helper.gpu_it("filters on the GPU as on the host", function()
        local shifts = { 0.25, -13.5, 0, 7, 99.75, -60.125, 3 }
        for _, width in ipairs { 511, 640, 1000, 2048, 2160, 5000, 9000 } do
            local host <close> = mb.random({ 7, 3, width }, { seed = width, low = -1 })
            local there <close> = host:to("cuda:0")
            for _, options in ipairs {
                { filter = "hamming", cutoff = 0.7, slice_shifts = shifts },
                { filter = "shepp-logan", padding = "edge", scale = 3 },
                { filter = "none", padding = "edge", slice_shifts = shifts },
                { pad_width = (width + 203) // 4 * 4 },
                { padding = "edge", weights = { 0.5, 1.5, 1 } },
                { pad_width = (width + 203) // 4 * 4, slice_shifts = shifts, weights = { 2, 0, 1 } },
            } do
                local want <close> = mb.ramp_filter(host, options)
                local r <close> = mb.ramp_filter(there, options)
                helper.assert_close(want, r, 2e-6, ("%d columns"):format(width))
            end
        end
    end)

    it("says what is wrong with shifts", function()
        local a <close> = mb.zeros { 2, 3, 10 } -- padded to 32
        for _, case in ipairs {
            { { slice_shifts = { 1 } }, "1 slice_shifts were given and the sinogram has 2 slices" },
            { { slice_shifts = { 1, -11.5 } },
                "element 2 of slice_shifts is -11.5; rows of 10 columns padded to 32 can move by 11 "
                .. "at most; give a pad_width of 36 or more" },
            { { slice_shifts = { 0.5, 0 }, pad_width = 12 }, "nil" },
            { { slice_shifts = { 2, 0 }, pad_width = 12 },
                "move by 1 at most; give a pad_width of 16 or more" },
            { { slice_shifts = { 0, 0 / 0 } }, "slice_shifts" },
        } do
            if case[2] == "nil" then
                mb.ramp_filter(a, case[1]):release()
            else
                local text, err = helper.failure(mb.ramp_filter, a, case[1])
                assert.equal("argument", err.code)
                assert.equal("slice_shifts", err.arg)
                assert.matches(case[2], text, 1, true)
            end
        end
        local far <close> = mb.ramp_filter(a, { slice_shifts = { 2, -13 }, pad_width = 36 })
        assert.same(a.shape, far.shape)
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros { 2, 10 }
        for _, case in ipairs {
            { "argument", "pad_width", { pad_width = 8 } },
            { "argument", "pad_width", { pad_width = 22 } },
            { "argument", "cutoff", { cutoff = 0 } }, { "argument", "cutoff", { cutoff = 4.5 } },
            { "argument", "filter", { filter = "ramp" } },
        } do
            local _, err = helper.failure(mb.ramp_filter, a, case[3])
            assert.equal(case[1], err.code)
            assert.equal(case[2], err.arg)
        end
        local t <close> = a:transpose()
        local _, err = helper.failure(mb.ramp_filter, t)
        assert.equal("shape", err.code)
        local none <close> = mb.zeros { 2, 0 }
        _, err = helper.failure(mb.ramp_filter, none)
        assert.equal("shape", err.code)
    end)
end)
