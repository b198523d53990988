--- Flats before and after a scan that differ in shape: told only where this matters, and the advice
-- gives the right slice, in flags and with a recipe.
local commands = require "spec.support.commands"
local mb = require "moonbeam"
local odd_scans = require "spec.support.odd_scans"

local BEAM <const>, DARK <const>, VIEWS <const> = odd_scans.BEAM, odd_scans.DARK, odd_scans.VIEWS

describe("flats that differ in shape", function()
    local shell = commands.folder()
    local odd = odd_scans.within(shell)

    teardown(function()
        shell:remove()
    end)

    local function before()
        return 1
    end

    -- Less by `part` in some columns.
    local function dip(part, first, last)
        return function(column)
            return column >= first and column <= last and 1 - part or 1
        end
    end

    -- Projections of a beam that goes from 1 to `after`, by columns.
    local function projections(after)
        local made = odd.frames_of(function(p)
            return math.exp(-p)
        end, "f32")
        for i, frame in ipairs(made) do
            local x, row = (i - 0.5) / VIEWS, {}
            for column, part in ipairs(frame[1]) do
                row[column] = math.floor(BEAM * part * (1 - x + x * after(column)) + DARK + 0.5)
            end
            made[i] = {row, row}
        end
        return made
    end

    -- `count` flats of this profile, in counts; `noise`: of each.
    local function flats(profile, count, noise)
        local levels = {}
        for i = 1, count do
            levels[i] = function(column)
                return BEAM * profile(column) + DARK + (noise and noise(column, i) or 0)
            end
        end
        return odd.flat_of(levels)
    end

    local function joined(a, b)
        return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
    end

    -- Writes flats before and after in datasets of their own.
    local function write(after, changes)
        changes = changes or {}
        odd.write {data = projections(after), flats = flats(before, changes.count or 4,
            changes.noise), more = {data_white_post = flats(changes.post or after,
            changes.count or 4, changes.noise)}}
    end

    local LINEAR <const> = "%-%-flat%-interpolation linear takes those that were recorded before "
        .. "and after each\n"

    it("are told with the option that takes each in its time", function()
        write(dip(0.2, 31, 45))
        odd.warned("flats 1 to 4 and 5 to 8 of 8 differ in shape, by up to 20 %% in 16 %% of the "
            .. "columns, and their mean fits none of the projections: " .. LINEAR,
            "--flat-interpolation linear")
        odd.run()
        assert.is_true(odd.error_of() > 0.06)
        local steps <const> = '"flat_field", "minus_log"'
        local said = odd.recipe(steps)
        assert.matches(": %-%-set flat_field.interpolation=linear takes those", said)
        local nothing, off = odd.recipe(steps, "--set flat_field.interpolation=linear")
        assert.equal("", nothing)
        assert.is_true(off <= 0.045)
    end)

    it("are told where the error of a slice exceeds 0.045, and not below", function()
        for _, case in ipairs {{0.01, 30}, {0.02, 3}, {0.05, 15}, {0.1, 15}, {0.1, 3}, {0.2, 3}} do
            write(dip(case[1], 31, 30 + case[2]))
            local _, text = odd.run()
            local off, told = odd.error_of(), text:find("differ in shape", 1, true) ~= nil
            assert.is_true(off <= 0.045 or told, ("%g in %d: %g"):format(case[1], case[2], off))
            assert.is_true(off >= 0.0425 or not told, ("%g in %d: %g"):format(case[1], case[2],
                off))
        end
    end)

    it("are told of single flats, and not of noise, levels or zingers", function()
        write(dip(0.2, 31, 45), {count = 1})
        odd.warned("flats 1 and 2 of 2 differ in shape, by up to 20 %%", "--flat-interpolation "
            .. "linear")
        local random = 7
        local function noise()
            random = (random * 1103515245 + 12345) % 2 ^ 31
            return (random / 2 ^ 31 - 0.5) * 0.1 * BEAM
        end
        for _, count in ipairs {1, 4} do
            write(before, {count = count, noise = noise})
            local _, text = odd.run()
            assert.not_matches("shape", text)
        end
        write(function() return 0.8 end)
        odd.run("", true)
        write(before, {noise = function(column, i)
            return (column * 31 + i * 17) % 97 == 0 and 65535 - BEAM - DARK or 0
        end})
        odd.run("--flat-mode median", true)
    end)

    it("of which nobody says when they were taken are told with both options", function()
        local after = dip(0.2, 31, 45)
        odd.write {data = projections(after), flats = joined(flats(before, 4), flats(after, 4))}
        odd.warned("flats 1 to 4 and 5 to 8 of 8 differ in shape, by up to 20 %% .* projections: "
            .. "if the latter were taken after the projections, say so with "
            .. "%-%-flat%-positions%-path 0,0,0,0,150,150,150,150 and take %-%-flat%-interpolation "
            .. "linear\n", "--flat-positions-path 0,0,0,0,150,150,150,150 --flat-interpolation "
            .. "linear")
        local status, text = odd.run "--flat-interpolation linear"
        assert.equal(2, status)
        assert.matches("does not say when its flats were taken.*%-%-flat%-positions%-path", text)
        odd.write {flats = flats(before, 8)}
        assert.is_true(odd.run("", true) <= 0.045)
    end)

    it("are interpolated by the search for the axis too, in the bytes that were planned", function()
        write(dip(0.2, 31, 45))
        local scan <close> = assert(mb.scan.open(shell:path "scan.h5"))
        local settings = {flat_interpolation = "linear", quiet = true}
        local plan = mb.recon.plan(scan, settings)
        local column, _, found = mb.recon.find_center(scan, settings)
        assert.is_true(math.abs(column - odd_scans.AXIS) < 0.1)
        assert.equal("found", found.verdict)
        assert.is_true(plan.at_most > 0)
        local text = commands.must("reconstruct.lua", ("%s -o %s --overwrite --device host "
            .. "--flat-interpolation linear"):format(shell:path "scan.h5", shell:path "out.h5"))
        local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
        assert.equal(predicted, measured)
        assert.is_true(odd.error_of() <= 0.045)
    end)
end)
