-- The step distortion_map: through a pipeline, in blocks of any size, it gives what remap gives, and
-- takes what was planned.

local files = require "spec.support.files"
local mb = require "moonbeam"

local ANGLES, ROWS, COLS <const> = 7, 9, 12

describe("the step distortion_map", function()
    local folder, data, scan, rows, columns

    -- A map: the place of each pixel, moved a little.
    local function map(axis, amount)
        local values = {}
        for y = 1, ROWS do
            values[y] = {}
            for x = 1, COLS do
                values[y][x] = (axis == 1 and y or axis == 2 and x or 1) - 1
                    + amount * math.sin(0.7 * x + 0.4 * y)
            end
        end
        return mb.array(values, {dtype = "f64", device = "host"})
    end

    setup(function()
        folder = files.folder()
        data = mb.random({ANGLES, ROWS, COLS}, {seed = 5, low = 0.2, high = 1, device = "host"})
        scan = mb.scan.of_arrays(data, mb.tomo.angles(ANGLES))
        rows, columns = map(1, 0.6), map(2, 1.3)
        mb.npy.write(folder .. "/rows.npy", rows)
        mb.npy.write(folder .. "/columns.npy", columns)
        local shifts <close> = map(0, 0.6)
        mb.npy.write(folder .. "/row_shifts.npy", shifts)
        local others <close> = map(0, 1.3)
        mb.npy.write(folder .. "/column_shifts.npy", others)
    end)
    teardown(function()
        data:release()
        rows:release()
        columns:release()
        files.remove(folder)
    end)

    it("has maps of the stored frames, also of flipped ones", function()
        for _, step in ipairs {"rows = 'rows.npy', columns = 'columns.npy'",
            "rows = 'row_shifts.npy', columns = 'column_shifts.npy', shifts = true"} do
            local own, volumes = ("{'distortion_map', %s}"):format(step), {}
            for i, list in ipairs {own .. ", {'flip', rows = true}", "{'flip', rows = true}, "
                .. own} do
                files.write(folder .. "/flipped.lua", "{" .. list .. "}")
                local p = mb.pipeline(scan, folder .. "/flipped.lua", {input = "transmission",
                    quiet = true})
                local frames <close>, done = p:slices()
                assert.is_true(done.as_planned)
                volumes[i] = frames:to_table()
            end
            local most = 0
            for k, frame in ipairs(volumes[1]) do
                for y, row in ipairs(frame) do
                    for x, value in ipairs(row) do
                        most = math.max(most, math.abs(value - volumes[2][k][y][x]))
                    end
                end
            end
            assert.is_true(most < 1e-5, most)
        end
    end)

    local function pipeline(step, options)
        files.write(folder .. "/recipe.lua", ("{{'distortion_map', %s}}"):format(step))
        options = options or {}
        options.input, options.quiet = "transmission", true
        return mb.pipeline(scan, folder .. "/recipe.lua", options)
    end

    local PLACES <const> = "rows = 'rows.npy', columns = 'columns.npy'"

    it("gives what remap gives, in blocks of any size", function()
        for _, options in ipairs {"", ", order = 3", ", mode = 'constant'"} do
            local expected <close> = mb.remap(data, rows, columns, {
                order = options:find "order" and 3 or 1,
                mode = options:find "constant" and "constant" or "edge", value = 1})
            for _, block in ipairs {1, 3, 7} do
                local frames, report = pipeline(PLACES .. options, {block = block}):slices()
                local _ <close> = frames
                assert.is_true(report.as_planned)
                assert.is_true(expected:to_string() == frames:to_string(), options .. block)
            end
        end
    end)

    it("takes shifts", function()
        local expected <close> = pipeline(PLACES):slices()
        local moved <close> = pipeline(
            "rows = 'row_shifts.npy', columns = 'column_shifts.npy', shifts = true"):slices()
        local difference <close> = expected - moved
        assert.is_true(difference:norm() < 1e-5 * expected:norm())
    end)

    it("refuses maps of another size, and files that are not there", function()
        local small <close> = mb.zeros({ROWS, COLS - 1}, {device = "host"})
        mb.npy.write(folder .. "/small.npy", small, {overwrite = true})
        local function refused(step, pattern)
            local ok, problem = pcall(function() pipeline(step):plan() end)
            assert.is_false(ok)
            assert.matches(pattern, tostring(problem))
        end
        refused("rows = 'small.npy', columns = 'columns.npy'",
            "rows is a map of 9 x 11; frames are 9 x 12 here")
        refused("rows = 'rows.npy', columns = 'none.npy'", "columns is .*none.npy.*cannot be read")
    end)
end)
