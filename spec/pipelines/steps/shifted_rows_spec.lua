-- Rows that step vertical_shift takes from outside the detector: counted, marked in the result, or
-- left out.

local check = require "spec.support.step_check"
local commands = require "spec.support.commands"
local helper = require "spec.helper"
local mb = require "moonbeam"
local mirrored = require "spec.support.mirrored"

local LINES <const> = "line integrals"
local N <const>, ROWS <const>, COLS <const> = 24, mirrored.ROWS, mirrored.COLS

-- Shifts between -1.5 and 2 rows; of them 6 are below 0, and 6 above.
local SHIFTS <const> = {}
for k = 1, N do
    SHIFTS[k] = ({0, -1.5, 1, 2})[(k - 1) % 4 + 1] * (k > N / 2 and 1 or 0)
end

-- How many projections show each row by rows from outside, counted without the library.
local function counted(first, last, low, high, size, frames)
    local list = {}
    for row = first, last, size or 1 do
        local count = 0
        for k, shift in ipairs(SHIFTS) do
            local out = row + shift < (low or 1) or row + (size or 1) - 1 + shift > (high or ROWS)
            count = count + (out and (not frames or frames[k]) and 1 or 0)
        end
        list[#list + 1] = count
    end
    return list
end

local function outside(scan, recipe)
    local geometry = require "moonbeam.pipeline.geometry"
    local made = mb.pipeline(scan, recipe, {input = LINES, quiet = true})
    local own = made.chain
    return geometry.outside(own.geometry, 1, own.shape[1]), made
end

describe("the step vertical_shift", function()
    local data, scan, line, last

    before_each(function()
        data = mb.random({N, ROWS, COLS}, {seed = 1})
        scan = check.scan(data)
        line, last = {"vertical_shift", shifts = SHIFTS}, {"fbp", center = 19}
    end)

    after_each(function()
        data:release()
    end)

    it("counts the projections that show a row by rows from outside", function()
        local counts, made = outside(scan, {line, last})
        assert.same(counted(1, ROWS), counts)
        assert.same({3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 6}, counts)
        local text = tostring(made:plan())
        assert.matches("outside    4 of 12 rows use rows from outside the detector in up to 6 of "
            .. "24 projections", text)
        assert.is_nil(tostring(mb.pipeline(scan, {line, last}, {input = LINES, quiet = true,
            rows = {3, 10}}):plan()):find("outside", 1, true))
        assert.matches("1 of 1 row uses rows from outside the detector in up to 3",
            tostring(mb.pipeline(scan, {line, last}, {input = LINES, quiet = true,
                rows = {1, 1}}):plan()))
        local none = outside(scan, {{"vertical_shift", shifts = mb.tomo.angles(N, 0)}, last})
        assert.is_nil(none)
        assert.is_nil((outside(scan, {last})))
    end)

    it("counts through crops, bins, flips, selections, means and joined turns", function()
        assert.same(counted(2, 8), (outside(scan, {line, {"crop", rows = {2, 8}}, last})))
        assert.same(counted(3, 9, 3, 9), (outside(scan, {{"crop", rows = {3, 9}}, line, last})))
        assert.same(counted(1, ROWS, 1, ROWS, 2), (outside(scan, {line, "bin", last})))
        local up = counted(1, ROWS)
        local down = {}
        for z, count in ipairs(up) do
            down[ROWS + 1 - z] = count
        end
        local flip = {"flip", rows = true}
        assert.same(down, (outside(scan, {line, flip, last})))
        assert.same(down, (outside(scan, {flip, line, last})))
        local odd = {}
        for k = 1, N, 2 do
            odd[k] = true
        end
        assert.same(counted(1, ROWS, 1, ROWS, 1, odd), (outside(scan, {line, {"select",
            every = 2}, last})))
        local counts, made = outside(scan, {line, {"average", frames = 4}, last})
        assert.same(up, counts)
        assert.matches("of 24 projections", tostring(made:plan()))
        local turn = check.scan(data, {angles = mb.tomo.angles(N, 2 * math.pi)})
        counts, made = outside(turn, {line, {"stitch", center = 33}, "fbp"})
        assert.same(up, counts)
        assert.matches("of 24 projections", tostring(made:plan()))
    end)

    it("leaves rows out", function()
        local some = {"vertical_shift", shifts = SHIFTS, outside = "leave_out"}
        for _, flip in ipairs {false, {"flip", rows = true}} do
            local all <close> = check.gives(nil, scan, flip and {flip, line, last} or {line, last},
                LINES)
            local part <close> = all:view {3, 10} -- the same from the other end
            local want <close> = part:copy()
            local _ <close> = check.gives(want, scan, flip and {flip, some, last} or {some, last},
                LINES)
        end
        local frames <close> = check.gives(nil, scan, {line}, LINES)
        local view <close> = frames:view(mb.all, {3, 10}, mb.all)
        local want <close> = view:copy()
        local _ <close> = check.gives(want, scan, {some}, LINES)
        local counts, made = outside(scan, {some, {"crop", rows = {4, 9}}, last})
        assert.is_nil(counts)
        assert.same({6, COLS, COLS}, made.chain.shape)
        check.refused("rows are 2 to 9; there are 3 to 10", scan, {some, {"crop", rows = {2, 9}},
            last}, LINES)
        local far = {}
        for k = 1, N do
            far[k] = k % 2 == 0 and 7 or -7
        end
        check.refused("the shifts leave no row that all projections show; give \"mark\"", scan,
            {{"vertical_shift", shifts = far, outside = "leave_out"}, last}, LINES)
    end)
end)

describe("reconstruct --vertical-shifts", function()
    local shell
    local must, run = commands.must, commands.run

    local function path(name)
        return shell:path(name)
    end

    local function value(name, at)
        local file <close> = mb.h5.open(path(name))
        return file:exists(at) and file:value(at) or nil
    end

    local AT <const> = "/entry/data/projections_outside"

    setup(function()
        shell = commands.folder()
        local angles = mb.tomo.angles(N)
        mirrored.write(path "scan.h5", mirrored.upright(angles, 19), angles, {})
        local file <close> = assert(io.open(path "shifts.txt", "w"))
        file:write(table.concat(SHIFTS, "\n"))
        local recipe <close> = assert(io.open(path "r.lua", "w"))
        recipe:write("{'flat_field', 'minus_log', {'vertical_shift', shifts = 'shifts.txt'}, "
            .. "{'fbp', center = 19}}")
    end)

    teardown(function()
        shell:remove()
    end)

    local function reconstruct(result, more, recipe)
        return must("reconstruct.lua", ("%s -o %s --device host --overwrite %s %s"):format(
            path "scan.h5", path(result), recipe and "--recipe " .. path "r.lua"
            or "-c 19 --vertical-shifts " .. path "shifts.txt", more or ""))
    end

    it("marks rows in the result and says how many, by flags and by recipes", function()
        for _, recipe in ipairs {false, true} do
            local text = reconstruct("o.h5", nil, recipe)
            assert.matches("outside    4 of 12 rows use rows from outside the detector in up to 6 "
                .. "of 24 projections", text)
            helper.kept_promise(text)
            assert.same(counted(1, ROWS), value("o.h5", AT))
            local file <close> = mb.h5.open(path "o.h5")
            assert.equal(N, file:attribute(AT, "projections"))
            assert.matches("outside    4 of 12", reconstruct("none.h5", "--plan", recipe))
            text = reconstruct("o.h5", "--rows 3:10", recipe)
            assert.is_nil(text:find("outside  ", 1, true))
            assert.is_nil(value("o.h5", AT))
            reconstruct("o.h5", "--rows 2:4 --flip rows", recipe)
            assert.same({0, 0, 3}, value("o.h5", AT))
            for part = 1, 3 do
                reconstruct("p.h5", ("--part %d/3"):format(part), recipe)
            end
            assert.is_nil(value("p-part-2-of-3.h5", AT))
            must("join.lua", ("%s %s %s -o %s --overwrite"):format(path "p-part-1-of-3.h5",
                path "p-part-2-of-3.h5", path "p-part-3-of-3.h5", path "joined.h5"))
            assert.same(counted(1, ROWS), value("joined.h5", AT))
        end
        reconstruct("o.tif", "--rows 1:3")
        local file <close> = assert(io.open(path "o.tif", "rb"))
        assert.is_truthy(file:read(65536):gsub("%z", ""):find('"projections_outside"', 1, true))
        local text = reconstruct("s.h5", "--sweep fbp.filter=hann,ram-lak --row 12", true)
        assert.matches("outside    1 of 1 row uses rows", text)
        assert.same({6, 6}, value("s.h5", AT))
    end)

    it("leaves them out where it is told to", function()
        reconstruct("whole.h5")
        local want = shell:volume_of "whole.h5"
        local text = reconstruct("o.h5", "--shifted-rows leave-out")
        helper.kept_promise(text)
        assert.is_nil(text:find("outside  ", 1, true))
        assert.same(table.move(want, 3, 10, 1, {}), shell:volume_of "o.h5")
        assert.equal(2, value("o.h5", "/entry/data/z")[1])
        reconstruct("o.h5", "--shifted-rows leave-out --rows 4:5 --preview-rows 5 -p "
            .. path "p.png")
        assert.same(table.move(want, 4, 5, 1, {}), shell:volume_of "o.h5")
        local status, message = run("reconstruct.lua", ("%s -o %s --device host -c 19 "
            .. "--vertical-shifts %s --shifted-rows leave-out --rows 1:5"):format(path "scan.h5",
            path "none.h5", path "shifts.txt"))
        assert.is_true(status ~= 0)
        assert.matches("1 to 5; the volume is of rows 3 to 10 of the detector", message)
        reconstruct("o.h5", "--set vertical_shift.outside=leave_out", true)
        assert.same({8, COLS, COLS}, {#shell:volume_of "o.h5", COLS, COLS})
    end)
end)
