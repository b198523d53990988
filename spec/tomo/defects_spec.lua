local mb = require "moonbeam"
local encode = require("spec.support.tiff_encoder").encode
local files = require "spec.support.files"

-- Columns of a detector that show no sample, in the search for the axis of simulated scans.

local N, CENTER, PHOTONS, DARK = 128, 66.3, 20000, 100

-- Counts, flats and darks as u16, with what `change` makes of them, as a scan; to be closed.
local function scan_of(change, rows, turn)
    rows = rows or 16
    local angles = mb.tomo.angles(150, turn and 2 * math.pi or math.pi)
    local object = mb.phantom.scale(mb.phantom.shepp_logan, 0.9 * N / 2, math.max(rows / 2, 1))
    for i = 1, #object, 8 do
        object[i] = object[i] * 1.5 / N
    end
    local counts <close> = mb.ellipsoid_projections(object, angles, mb.phantom.heights(rows), N,
        {center = CENTER})
    mb.unary(counts, "neg", {out = counts})
    mb.unary(counts, "exp", {out = counts})
    mb.binary(counts, "mul", {scalar = PHOTONS, out = counts})
    mb.binary(counts, "add", {scalar = DARK, out = counts})
    mb.poisson(counts, {seed = 1, out = counts})
    local arrays = {counts = mb.convert(counts, "u16"),
        flats = mb.full({3, rows, N}, PHOTONS + DARK, {dtype = "u16"}),
        darks = mb.full({2, rows, N}, DARK, {dtype = "u16"})}
    if change then
        change(arrays)
    end
    local scan = mb.scan.of_arrays(arrays.counts, angles, {flats = arrays.flats,
        darks = arrays.darks})
    return setmetatable({scan = scan}, {__close = function()
        for _, array in pairs(arrays) do
            array:release()
        end
    end})
end

local function fill(array, column, value)
    local view <close> = array:view(mb.all, mb.all, {column, column})
    view:fill(value)
end

-- Noise of the detector, without beam.
local function noise(array, column)
    local view <close> = array:view(mb.all, mb.all, {column, column})
    local values <close> = mb.random(view.shape, {seed = column + array.shape[1], low = DARK - 9,
        high = DARK + 10})
    mb.convert(values, "u16", {out = view})
end

local DEFECTS = {
    {"dead", function(a, column)
        fill(a.counts, column, DARK)
        fill(a.flats, column, DARK)
    end},
    {"dead but for noise", function(a, column)
        noise(a.counts, column)
        noise(a.flats, column)
        noise(a.darks, column)
    end},
    {"saturated", function(a, column)
        fill(a.counts, column, 65535)
        fill(a.flats, column, 65535)
    end},
    {"saturated without a sample", function(a, column)
        fill(a.flats, column, 65535)
    end},
    {"always bright", function(a, column)
        fill(a.counts, column, 65535)
        fill(a.flats, column, 65535)
        fill(a.darks, column, 65535)
    end},
    {"stuck at 4095", function(a, column)
        fill(a.counts, column, 4095)
        fill(a.flats, column, 4095)
    end},
}

local function found(scan, options)
    return mb.recon.find_center(scan, options or {quiet = true})
end

describe("a column of the detector that", function()
    for _, defect in ipairs(DEFECTS) do
        local name, change = table.unpack(defect)
        it("is " .. name .. " is left out of the search for the axis", function()
            for _, turn in ipairs {false, true} do
                local whole <close> = scan_of(nil, nil, turn)
                local expected = found(whole.scan)
                for _, column in ipairs {20, 60, 90} do
                    local held <close> = scan_of(function(a) change(a, column) end, nil, turn)
                    local axis, how, details = found(held.scan)
                    assert.near(expected, axis, 0.02, how)
                    assert.equal("found", details.verdict)
                    assert.matches(", 1 dead or stuck column is left out$", how)
                    assert.same({pixels = 16, columns = 1}, details.left_out)
                end
            end
        end)
    end
end)

describe("the search for the axis", function()
    it("leaves out gaps between modules, and single pixels", function()
        local held <close> = scan_of(function(a)
            for column = 96, 100 do
                DEFECTS[1][2](a, column)
            end
            for _, array in pairs {a.counts, a.flats} do
                local pixel <close> = array:view(mb.all, {3, 4}, {30, 30})
                pixel:fill(DARK)
            end
        end)
        local axis, how, details = found(held.scan)
        assert.near(CENTER, axis, 0.1, how)
        assert.matches("5 dead or stuck columns are left out", how)
        assert.same({pixels = 5 * 16 + 2, columns = 5}, details.left_out)
        local pixels <close> = scan_of(function(a)
            local pixel <close> = a.flats:view(mb.all, {3, 4}, {30, 30})
            pixel:fill(0)
        end)
        assert.matches("2 dead or stuck pixels are left out", select(2, found(pixels.scan)))
    end)

    it("takes zingers out of opposite projections", function()
        local whole <close> = scan_of()
        local held <close> = scan_of(function(a)
            for i = 0, 199 do -- a hundredth of what is seen in the middle
                local frame = i % 2 == 0 and i // 2 % 8 + 1 or 150 - i // 2 % 8
                local hit <close> = a.counts:view({frame, frame}, {i * 7 % 16 + 1, i * 7 % 16 + 1},
                    {20 + i * 31 % 90, 20 + i * 31 % 90})
                hit:fill(65535)
            end
        end)
        local expected, _, before = found(whole.scan)
        local axis, how, details = found(held.scan)
        assert.near(expected, axis, 0.02, how)
        assert.is_true(details.residual < 1.5 * before.residual, how)
    end)

    it("leaves nothing out of a whole detector, nor of air without noise", function()
        local whole <close> = scan_of()
        local _, how, details = found(whole.scan)
        assert.not_matches("left out", how)
        assert.same({pixels = 0, columns = 0}, details.left_out)
        local angles = mb.tomo.angles(60)
        local lines <close> = mb.ellipsoid_projections(mb.phantom.scale(mb.phantom.shepp_logan, 20,
            4), angles, mb.phantom.heights(8), 64, {center = 30.2})
        local clean = mb.scan.of_arrays(lines, angles)
        local axis, words = found(clean, {quiet = true, log = false})
        assert.near(30.2, axis, 0.05)
        assert.not_matches("left out", words)
    end)

    it("leaves out columns that are stuck or not finite, without flats", function()
        local angles = mb.tomo.angles(90)
        for _, value in ipairs {0.2, 0 / 0} do
            local lines <close> = mb.ellipsoid_projections(mb.phantom.scale(mb.phantom.shepp_logan,
                26, 12), angles, mb.phantom.heights(8), 64, {center = 30.2})
            mb.binary(lines, "mul", {scalar = -0.1, out = lines})
            mb.unary(lines, "exp", {out = lines})
            fill(lines, 22, value)
            local axis, how = found(mb.scan.of_arrays(lines, angles))
            assert.near(30.2, axis, 0.05, how)
            assert.matches("1 dead or stuck column is left out", how)
        end
    end)

    it("looks at flats that are images beside an HDF5 file, compressed or not", function()
        local folder = files.folder()
        finally(function() files.remove(folder) end)
        local data, flats = folder .. "/scan.h5", folder .. "/flats.tif"
        for _, method in ipairs {"none", "deflate"} do
            local held <close> = scan_of(function(a)
                fill(a.flats, 60, 65535)
                files.write(flats, encode(a.flats:to_table(), {dtype = "u16", method = method}))
                local file <close> = mb.h5.create(data, {overwrite = true})
                file:write("/exchange/data", a.counts)
                file:write("/exchange/data_dark", a.darks)
                file:finish()
            end)
            local scan <close> = mb.scan.open(data, {flats_file = flats, angles = {0, 178.8},
                angle_unit = "deg"})
            local axis, how = found(scan)
            assert.near(found(held.scan), axis, 1e-6)
            assert.matches("1 dead or stuck column is left out", how)
        end
    end)

    it("takes the memory of its plan, with columns to leave out and without", function()
        for _, change in ipairs {function() end, function(a) DEFECTS[1][2](a, 60) end} do
            for _, rows in ipairs {1, 16} do
                local held <close> = scan_of(change, rows)
                local function search()
                    found(held.scan)
                end
                mb.collect()
                local planned, measured = mb.dry_run(search), mb.ledger(search)
                assert.equal(planned.peak, measured.peak)
                assert.same({}, mb.ledger_diff(planned, measured))
            end
        end
    end)
end)
