-- Exact tiles with every acceleration, total variation and boundary: the result and the metrics of
-- the untiled method, at the bytes that the plan tells.

local convolution = require "moonbeam.convolution"
local files = require "spec.support.files"
local mb = require "moonbeam"
local helper = require "spec.helper"
local deconv, tiled = mb.deconv, mb.tiled_deconv

local BOUNDARIES <const> = convolution.BOUNDARIES

-- Counts with structure at the edges, noise, and a smooth field, of any extents.
local function measured(shape, dtype, device)
    local low <close> = mb.random(shape, { seed = 11, low = 0, high = 60, device = device })
    local corner = {}
    for i, n in ipairs(shape) do
        corner[i] = { 1, math.max(1, n // 3) }
    end
    local box <close> = low:view(table.unpack(corner))
    mb.binary(box, "add", { scalar = 300, out = box })
    local other = {}
    for i, n in ipairs(shape) do
        other[i] = { math.min(n, n - n // 4 + 1), n }
    end
    local last <close> = low:view(table.unpack(other))
    mb.binary(last, "add", { scalar = 150, out = last })
    local noisy <close> = mb.poisson(low, { seed = 4 })
    return noisy:cast(dtype or "f32")
end

-- No symmetry in any axis.
local function crooked(shape, device)
    local random <close> = mb.random(shape, { seed = 9, low = 0.05, high = 1, device = device })
    local peak <close> = mb.psf_gaussian(shape, 1.2,
        { device = device, center = mb.psf.center(random), normalize = false })
    return random * peak
end

-- Deconvolves whole and by tiles, and compares.
local function compare(image, psf, options, tile, what)
    local n = options.iterations
    options.metrics, options.tile = true, nil
    local whole <close>, report = deconv.richardson_lucy(image, psf, options)
    options.tile = tile
    mb.collect()
    local host <close> = mb.pool.scope(mb.device "host")
    local scope <close> = mb.pool.scope(image.device)
    local got <close>, made, plan = tiled.richardson_lucy(image, psf, options)
    local peak, on_host = scope:finish(), host:finish()
    assert.equal(plan.peak, peak, what)
    assert.equal(image.device.kind == "host" and 0 or on_host, plan.host_peak, what)
    assert.is_true(plan.total > 1, what)
    helper.assert_close(whole, got, 1e-4, what)
    for _, name in ipairs { "divergence", "blurred", "flux", "change" } do
        local expected = report.metrics[n][name]
        assert.near(expected, made.metrics[n][name], 2e-3 * math.abs(expected), what .. name)
    end
    return plan
end

helper.each_device(function(device, test)
    describe("exact tiles on " .. device:match("^%a+"), function()
        for _, case in ipairs {
            { { 41 }, { 6 }, { { 15 } }, "f32" },
            { { 27, 31 }, { 5, 4 }, { { 10, 31 }, { 8, 9 } }, "u16" },
            { { 8, 17, 19 }, { 3, 6, 5 }, { { 8, 9, 10 } }, "f32" },
            { { 5, 12, 13 }, { 2, 3, 4 }, { { 2, 12, 13 } }, "u16" },
            { { 9, 10 }, { 7, 6 }, { { 3, 2 } }, "u8" }, -- a PSF that is larger than the tiles
        } do
            local shape, kernel, tiles, dtype = table.unpack(case)
            test(("have every method and boundary: %s"):format(table.concat(shape, " x ")),
                function()
                local image <close> = measured(shape, dtype, device)
                local psf <close> = crooked(kernel, device)
                for _, boundary in ipairs(BOUNDARIES) do
                    for _, acceleration in ipairs { "none", "heavy_ball", "biggs_andrews" } do
                        for _, variation in ipairs { false, 0.01 } do
                            for i, tile in ipairs(tiles) do
                                compare(image, psf, { iterations = 4, boundary = boundary,
                                    acceleration = acceleration, center = i == 1 and "fft" or "mass",
                                    total_variation = variation or nil, normalize = i == 1,
                                    spacing = variation and 1.3 or nil,
                                    background = i == 1 and 3 or 0 }, tile,
                                    ("%s, %s, %s, tiles of %s: "):format(boundary, acceleration,
                                    variation, table.concat(tile, " x ")))
                            end
                        end
                    end
                end
            end)
        end
    end)
end)

describe("exact tiles", function()
    -- Where an estimate is flat, rounding must not grow to differences.
    for _, case in ipairs {
        { { 53, 49 }, { 7, 7 }, { 1.4, 1.4 }, { 30, 23 } },
        { { 11, 24, 25 }, { 5, 5, 5 }, { 1, 1, 1 }, { 11, 13, 25 } },
    } do
        it(("have total variation also without noise: %s"):format(table.concat(case[1], " x ")),
            function()
            local shape, image = case[1], mb.full(case[1], 20)
            local parts = {}
            for i, n in ipairs(shape) do
                parts[i] = { n // 4, n // 2 }
            end
            image:view(table.unpack(parts)):fill(120)
            local truth <close> = image
            local psf <close> = mb.psf.gaussian(case[2], case[3])
            local blurred <close> = mb.convolution(truth, psf, { boundary = "replicate" })
            for _, acceleration in ipairs { "none", "heavy_ball", "biggs_andrews" } do
                for _, weight in ipairs { 0.002, 0.01, 0.05 } do
                    local options = { iterations = 20, total_variation = weight,
                        acceleration = acceleration }
                    local whole <close> = deconv.richardson_lucy(blurred, psf, options)
                    options.tile = case[4]
                    local tiles <close> = tiled.richardson_lucy(blurred, psf, options)
                    helper.assert_close(whole, tiles, 2e-5, acceleration .. weight)
                end
            end
        end)
    end

    it("take 4 bytes per voxel for heavy_ball, 8 for biggs_andrews, 4 for total variation", function()
        local image <close> = measured { 12, 26, 31 }
        local psf <close> = crooked { 4, 5, 6 }
        local function peak(options)
            options.tile, options.iterations, options.metrics = { 3, 8, 9 }, 2, true
            return tiled.plan(mb.volumes.of_array(image), psf, nil, options).peak
        end
        local plain, voxel = peak {}, mb.pool.ceil_1d(4 * 15 * 30 * 36)
        assert.equal(plain + voxel, peak { acceleration = "heavy_ball" })
        -- Sums have two numbers more, also those of the operator, and a tile with its rim is copied.
        local tile = 4 * 5 * 10 * 11 + 20 * 1024
        local function near(expected, bytes)
            assert.is_true(bytes >= expected and bytes <= expected + tile,
                ("%d, %d"):format(expected, bytes))
        end
        near(plain + 2 * voxel, peak { acceleration = "biggs_andrews" })
        near(plain + voxel, peak { total_variation = 0.01 })
        near(plain + 2 * voxel, peak { acceleration = "heavy_ball", total_variation = 0.01 })
        near(plain + 3 * voxel, peak { acceleration = "biggs_andrews", total_variation = 0.01 })
    end)

    it("take what is planned where momentum is what a tile takes most for", function()
        local image <close> = measured { 14, 40, 41 }
        local psf <close> = crooked { 5, 9, 9 }
        for _, boundary in ipairs { "zero", "circular", "reflect" } do
            for _, background in ipairs { 0, 0.01 } do
                compare(image, psf, { iterations = 2, acceleration = "biggs_andrews",
                    boundary = boundary, background = background }, { 7, 20, 21 }, boundary)
            end
        end
    end)

    it("have the same bits at every place and on several devices", function()
        local image <close> = measured { 9, 20, 22 }
        local psf <close> = crooked { 3, 4, 5 }
        local scratch = os.tmpname()
        for _, options in ipairs {
            { acceleration = "biggs_andrews", boundary = "reflect", total_variation = 0.01 },
            { acceleration = "biggs_andrews", boundary = "circular" },
            { acceleration = "heavy_ball", total_variation = 0.01 },
        } do
            options.iterations, options.tile, options.scratch = 3, { 5, 9, 12 }, scratch
            local expected <close> = tiled.richardson_lucy(image, psf, options)
            for _, each in ipairs { { "file", true, "host" }, { "host", true, "host:1,host" },
                { "host", false, "host,host:1,host:2" }, { "file", false, "host,host:1" } } do
                options.place, options.overlap, options.devices = table.unpack(each)
                local got <close>, report, plan = tiled.richardson_lucy(image, psf, options)
                helper.assert_close(expected, got, 0)
                assert.is_true(report.as_planned)
                assert.same(report.replayed or plan.peaks, report.peaks)
                assert.equal(plan.pinned, report.pinned)
            end
        end
        os.remove(scratch)
    end)

    it("are smaller where the budget is, with the same result", function()
        local image <close> = measured({ 12, 40, 41 }, "u16")
        local psf <close> = crooked { 3, 5, 4 }
        local options = { iterations = 2, acceleration = "biggs_andrews", boundary = "mirror",
            total_variation = 0.005 }
        local whole <close> = deconv.richardson_lucy(image, psf, options)
        local scratch, before = os.tmpname(), 0
        options.scratch, options.place = scratch, "file"
        for _, budget in ipairs { "500K", "200K", "100K" } do
            options.budget = budget
            mb.collect()
            local live = mb.pool.stats("host").live
            local scope <close> = mb.pool.scope(mb.device "host")
            local got <close>, _, plan = tiled.richardson_lucy(image, psf, options)
            assert.equal(plan.peak, scope:finish())
            assert.is_true(plan.peak <= mb.device.bytes(budget) and plan.total > before)
            assert.is_true(live > 0)
            helper.assert_close(whole, got, 1e-4)
            before = plan.total
        end
        os.remove(scratch)
    end)
end)

-- The rows of the table of the tutorial: {method and options, whole, exact, blended}, the latter as
-- sets of boundaries.
local function table_rows()
    local page <const> = "docs/tutorials/deconvolve-a-stack.md"
    if not mb.system.stat(page) then
        pending "a bundle has no documents"
    end
    local text = files.read(page)
    local part = text:match "\nWhat has tiles:\n\n(.-)\n\n"
    local rows = {}
    for line in part:gmatch "[^\n]+" do
        local cells = {}
        for cell in line:gmatch "|%s*([^|]-)%s*%f[|]" do
            cells[#cells + 1] = cell
        end
        local name = cells[1]:match "^`([^`]+)`$"
        for i = 2, name and #cells or 0 do
            local set = {}
            for _, boundary in ipairs(BOUNDARIES) do
                set[boundary] = cells[i]:match "^all" and cells[i] ~= "all but " .. boundary
                    or cells[i]:find(boundary, 1, true) ~= nil and not cells[i]:match "^all"
            end
            cells[i] = set
        end
        rows[#rows + 1] = name and { name, table.unpack(cells, 2) } or nil
    end
    return rows
end

describe("the table of what has tiles", function()
    it("is what the library does: each method, boundary and way", function()
        local image <close> = measured { 6, 14, 15 }
        local psf <close> = mb.psf_gaussian({ 3, 3, 3 }, 1)
        local mask <close> = mb.ones { 6, 14, 15 }
        local rows, seen = table_rows(), {}
        assert.equal(10, #rows)
        for _, row in ipairs(rows) do
            local method = row[1]:match "^[%w_]+"
            seen[method] = true
            local options = { acceleration = row[1]:match "%-%-acceleration ([%w_]+)",
                total_variation = tonumber(row[1]:match "%-%-total%-variation ([%d.]+)"),
                weights = row[1]:find("--mask", 1, true) and mask or nil }
            local fn = method == "rl" and deconv.richardson_lucy or deconv[method]
            if method ~= "wiener" and method ~= "tikhonov" then
                options.iterations = 1
            end
            for _, boundary in ipairs(BOUNDARIES) do
                options.boundary, options.mode, options.tile = boundary, nil, nil
                local what = row[1] .. ", " .. boundary
                local ok, result = pcall(fn, image, psf, options)
                assert.equal(row[2][boundary], ok, what)
                if ok then
                    result:release()
                end
                for i, mode in ipairs { "exact", "blended" } do
                    options.mode, options.tile = mode, { 6, 8, 9 }
                    ok, result = pcall(tiled.richardson_lucy, image, psf, options)
                    if method == "rl" then
                        assert.equal(row[2 + i][boundary], ok, what .. ", " .. mode)
                    else
                        assert.is_false(row[2 + i][boundary], what)
                    end
                    if ok then
                        result:release()
                    end
                end
            end
        end
        for _, method in ipairs { "rl", "gradient_consensus", "landweber", "wiener", "tikhonov" } do
            assert.is_true(seen[method], method)
        end
    end)

    it("has a remedy that works where there are none", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, { __close = function() files.remove(folder) end })
        do
            local image <close> = measured { 6, 34, 35 }
            local psf <close> = mb.psf_gaussian({ 3, 3, 3 }, 1)
            local mask <close> = mb.ones { 6, 34, 35 }
            mb.npy.write(folder .. "/i.npy", image)
            mb.npy.write(folder .. "/p.npy", psf)
            mb.npy.write(folder .. "/m.npy", mask)
        end
        local function run(options)
            return helper.run_program(("scripts/deconvolve.lua %s/i.npy %s/p.npy -d host --overwrite "
                .. "--center middle --psf-background none -q -o %s/o.npy %s"):format(folder, folder,
                folder, options))
        end
        for _, row in ipairs(table_rows()) do
            local wanted = row[1]:gsub("FILE", folder .. "/m.npy")
            if not row[3].zero then
                local text, status = run(("--method %s --budget 70K"):format(wanted))
                assert.equal(1, status, text)
                local what = wanted:match "%-%-mask" or "--method " .. wanted
                assert.matches((what .. " has no tiles; "):gsub("%p", "%%%0"), text)
                local bytes = tonumber(text:match "give %-%-budget %S+ or more %((%d+) bytes%), or ")
                text, status = run(("--method %s --budget %d"):format(wanted, bytes))
                assert.equal(0, status, text)
                assert.equal(1, (select(2, run(("--method %s --budget %d"):format(wanted,
                    bytes - 512)))))
            end
        end
        assert.equal(0, (select(2, run "--method rl --budget 70K")))
        local text, status = run "--tiles blended --boundary circular"
        assert.equal(2, status)
        assert.matches("blended does not wrap around the image: %-%-tiles exact does", text)
        assert.equal(0, (select(2, run "--tiles exact --boundary circular")))
    end)
end)
