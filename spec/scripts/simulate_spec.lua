-- What simulate.lua adds to a scan on request, read back from the file: each defect is where the
-- file says that it is.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("simulate.lua", function()
    local folder
    setup(function() folder = files.folder() end)
    teardown(function() files.remove(folder) end)

    local function simulate(name, arguments)
        local output, status = helper.run_program(("scripts/simulate.lua %s/%s --size 48 --rows 6 "
            .. "-a 40 --photons 0 -d host %s"):format(folder, name, arguments))
        assert.equal(0, status, output)
        return folder .. "/" .. name, output
    end

    -- The projections (angle, row, column) of a Data Exchange file, or all frames of an NXtomo file.
    local function frames(path, dataset)
        local file <close> = mb.h5.open(path)
        return file:read(dataset or "/exchange/data")
    end

    local function value(path, name)
        local file <close> = mb.h5.open(path)
        local array <close> = file:read(name)
        return array:to_table()
    end

    -- The largest difference of two arrays by column.
    local function differing_columns(a, b)
        local difference <close> = a - b
        mb.unary(difference, "abs", {out = difference})
        local by_row <close> = difference:max(1)
        local by_column <close> = by_row:max(1)
        local columns = {}
        for i, most in ipairs(by_column:to_table()) do
            columns[i] = most > 1
        end
        return columns
    end

    it("changes the columns of stripes, and no others", function()
        local plain <close> = frames((simulate("plain.h5", "")))
        local path, output = simulate("stripes.h5", "--stripes 5")
        local striped <close> = frames(path)
        local columns, expected = differing_columns(plain, striped), {}
        local list = value(path, "/simulation/stripes")
        assert.equal(5, #list)
        for i = 1, 48 do
            expected[i] = false
        end
        for i, stripe in ipairs(list) do
            assert.equal(i, stripe[3])
            assert.equal(({1, 1, 5, 1, 1})[i], stripe[2])
            for column = stripe[1] + 1, stripe[1] + stripe[2] do
                expected[column] = true
            end
        end
        assert.same(expected, columns)
        assert.matches("5 stripes", output)
        assert.equal("", (select(2, simulate("silent.h5", "--stripes 5 --quiet"))))
    end)

    it("hits the stated part of the elements by zingers", function()
        local plain <close> = frames(folder .. "/plain.h5")
        local path = simulate("zingers.h5", "--zingers 0.01")
        local hit <close> = frames(path)
        local difference <close> = hit - plain
        local count, least = 0, math.huge
        for _, frame in ipairs(difference:to_table()) do
            for _, row in ipairs(frame) do
                for _, d in ipairs(row) do
                    if d ~= 0 then
                        count, least = count + 1, math.min(least, d)
                    end
                end
            end
        end
        local expected = 0.01 * plain.elements
        assert.is_true(math.abs(count - expected) < 4 * math.sqrt(expected), tostring(count))
        assert.is_true(least > 20000, tostring(least))
    end)

    it("dims the beam, with flats before and after", function()
        local path = simulate("drift.h5", "--beam-drift 0.25 --format nxtomo --flats 4 --darks 2")
        local keys = value(path, "/entry/instrument/detector/image_key")
        assert.equal("2,2,1,1,0", table.concat(keys, ",", 1, 5))
        assert.equal("0,1,1", table.concat(keys, ",", 44, 46))
        local all <close> = frames(path, "/entry/instrument/detector/data")
        local function light(frame, column)
            return all:item(frame, 3, column) - 100
        end
        -- the first column has no sample
        assert.is_true(math.abs(light(5, 1) / light(3, 1) - 1) < 1e-4)
        assert.is_true(math.abs(light(44, 1) / light(3, 1) - 0.75) < 1e-4)
        assert.is_true(math.abs(light(46, 1) / light(3, 1) - 0.75) < 1e-4)
    end)

    it("distorts frames by a lens, which undistort takes out", function()
        local path = simulate("lens.h5", "--distortion 5 --rows 24")
        local plain <close> = frames((simulate("tall.h5", "--rows 24")))
        local seen <close> = frames(path)
        local flats <close> = frames(path, "/exchange/data_white")
        local facts = value(path, "/simulation/distortion")
        local function inner(counts, corrected)
            local flat <close> = flats:view({1, 1})
            local above <close> = flat - 100
            local own <close> = counts - 100
            local transmission <close> = own / above
            local back = corrected and mb.undistort(transmission, {facts[2], facts[1]},
                table.move(facts, 3, #facts, 1, {})) or transmission:copy()
            local part <close> = back:view(mb.all, {7, 18}, {7, 42})
            local dense = part:copy()
            back:release()
            return dense
        end
        local expected <close> = inner(plain)
        local distorted <close> = inner(seen)
        local found <close> = inner(seen, true)
        local moved <close> = distorted - expected
        local rest <close> = found - expected -- edges are interpolated twice
        assert.is_true(moved:norm() > 0.1 * expected:norm(), moved:norm() / expected:norm())
        assert.is_true(rest:norm() < 0.5 * moved:norm(), rest:norm() / moved:norm())
    end)

    it("moves the stage as the file says: the shifts undo it", function()
        local path = simulate("shifts.h5", "--rings 0 --vertical-shifts 1.5 --horizontal-shifts 2 "
            .. "--rows 12")
        local down = value(path, "/simulation/vertical_shifts")
        local right = value(path, "/simulation/horizontal_shifts")
        assert.equal(40, #down)
        local least, most = 0, 0
        for i = 1, 40 do
            least, most = math.min(least, down[i]), math.max(most, down[i])
            assert.is_true(math.abs(right[i]) <= 2)
        end
        assert.is_true(least < -1 and most > 1 and most <= 1.5)
    end)

    it("turns the detector: rotate undoes it", function()
        local path = simulate("tilt.h5", "--tilt 6 --rows 24")
        local function transmission(name)
            local counts <close> = frames(name)
            local flats <close> = frames(name, "/exchange/data_white")
            local flat <close> = flats:view({1, 1})
            local above <close> = flat - 100
            local own <close> = counts - 100
            return own / above
        end
        local plain <close> = transmission((simulate("upright.h5", "--rows 24")))
        local turned <close> = transmission(path)
        local back <close> = mb.rotate(turned, -math.rad(6), {center = {11.5, 23.5}})
        local function distance(a)
            local d <close> = a - plain
            local inner <close> = d:view(mb.all, {5, 20}, {5, 44})
            return inner:norm()
        end
        assert.is_true(distance(back) < 0.5 * distance(turned), distance(back) / distance(turned))
        local file <close> = mb.h5.open(path)
        assert.equal(6, file:value "/simulation/axis_tilt")
    end)

    it("propagates by transport of intensity", function()
        local path = simulate("phase.h5", "--phase 20")
        local flats <close> = frames(path, "/exchange/data_white")
        local plain <close> = frames(folder .. "/plain.h5")
        local phase <close> = frames(path)
        local function ratio(counts, angle, row, column)
            return (counts:item(angle, row, column) - 100) / (flats:item(1, row, column) - 100)
        end
        -- wavelength * distance * delta/beta / (4 pi) in square pixels of 1 um
        local strength = 1.23984198e-6 / 20000 * 0.01 * 20 / (4 * math.pi) / 1e-12
        for _, at in ipairs {{1, 3, 14}, {7, 3, 24}, {20, 4, 18}, {33, 4, 30}} do
            local a, y, x = table.unpack(at)
            local laplace = ratio(plain, a, y - 1, x) + ratio(plain, a, y + 1, x)
                + ratio(plain, a, y, x - 1) + ratio(plain, a, y, x + 1)
                - 4 * ratio(plain, a, y, x)
            assert.is_true(math.abs(laplace) > 1e-5)
            local expected = ratio(plain, a, y, x) - strength * laplace
            assert.is_true(math.abs(ratio(phase, a, y, x) - expected) < 1e-5)
        end
        local file <close> = mb.h5.open(path)
        assert.equal(20, file:value "/simulation/delta_beta")
    end)

    it("puts the axis of a half acquisition near the edge", function()
        local path = simulate("half.h5", "--half-acquisition")
        local file <close> = mb.h5.open(path)
        assert.is_true(math.abs(file:value "/simulation/center" - 0.85 * 47) < 1e-9)
        local theta <close> = file:read "/exchange/theta"
        assert.is_true(math.abs(theta:item(40) - 351) < 1e-9)
        local output, status = helper.run_program(("scripts/simulate.lua %s/no.h5 -d host "
            .. "--half-acquisition --span 180"):format(folder))
        assert.equal(2, status)
        assert.matches("%-%-half%-acquisition needs a whole turn; %-%-span is 180", output)
    end)
end)
