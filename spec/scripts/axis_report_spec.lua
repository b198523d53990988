-- What reconstruct.lua says about the axis: in its report, in the result, as a picture.
local files = require "spec.support.files"
local mb = require "moonbeam"

local program = mb.system.program()
local folder

local function path(name)
    return folder .. "/" .. name
end

local function run(script, ...)
    local arguments = string.format(...)
    local handle = assert(io.popen(("'%s' scripts/%s %s 2>&1"):format(program, script, arguments)))
    local text = handle:read("a")
    local _, _, status = handle:close()
    return text, status
end

local function exists(name)
    local file <close> = io.open(name)
    return file ~= nil
end

describe("reconstruct.lua on the axis", function()
    setup(function()
        folder = files.folder()
        run("simulate.lua", "%s -n 64 --rows 6 -a 90 --center 30.2 -d host --quiet", path "half.h5")
        run("simulate.lua", "%s -n 64 --rows 6 -a 90 --span 360 --center 57 -d host --quiet",
            path "turn.h5")
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("gives the verdict in the report and in the result, and a picture", function()
        local text, status = run("reconstruct.lua", "%s -o %s -d host --center-picture %s",
            path "half.h5",
            path "v.h5", path "axis.png")
        assert.equal(0, status, text)
        assert.matches("axis +column 30%.%d%d, found %(%d pairs of opposite projections give "
            .. "30.%d%d "
            .. "%(residual [%d.e-]+%), centers of mass give 30.%d%d, trial slices of row %d give",
                text)
        assert.not_matches("warning", text)
        assert.is_true(exists(path "axis.png"))
        local file <close> = assert(mb.h5.open(path "v.h5"))
        local function value(name)
            return file:value("/entry/provenance/" .. name)
        end
        assert.equal("found", value "center_verdict")
        assert.near(30.2, value "center", 0.25)
        assert.near(30.2, value "center_pairs", 0.25)
        assert.near(30.2, value "center_mass", 1)
        assert.is_true(value "center_pairs_residual" < 0.01)
        assert.is_number(value "center_slices")
    end)

    it("draws the search of a recipe's step center", function()
        files.write(path "recipe.lua", '{"flat_field", {"center", method = "vo"}, "minus_log", '
            .. '"fbp"}')
        local text, status = run("reconstruct.lua", "%s -o %s -d host --recipe %s "
            .. "--center-picture %s", path "half.h5", path "r.h5", path "recipe.lua",
            path "wedge.png")
        assert.equal(0, status, text)
        assert.matches("center +30%.%d+, found %(the double wedge of", text)
        assert.is_true(exists(path "wedge.png"))
        text, status = run("reconstruct.lua", "%s -o %s -d host --recipe %s --set "
            .. "center.column=30 --center-picture %s", path "half.h5", path "r2.h5",
            path "recipe.lua", path "none.png")
        assert.not_equal(0, status)
        assert.matches("the recipe has none: use step center without a column", text, 1, true)
    end)

    it("warns that a whole turn about an axis near the edge is a half acquisition", function()
        local text, status = run("reconstruct.lua", "%s -o %s -d host", path "turn.h5", path "t.h5")
        assert.equal(0, status, text)
        assert.matches("axis +column [%d.]+, edge %(", text)
        assert.matches("warning: .* column 5[67]%.%d .*; try %-%-half%-acquisition", text)
        text, status = run("reconstruct.lua", "%s -o %s -d host --half-acquisition", path "turn.h5",
            path "h.h5")
        assert.equal(0, status, text)
        assert.near(57, tonumber(text:match("axis +column ([%d.]+), found")), 0.25)
        assert.not_matches("warning", text)
    end)

    it("keeps the axis that is given, and says so", function()
        local text, status = run("reconstruct.lua", "%s -o %s -d host -c 31", path "half.h5",
            path "given.h5")
        assert.equal(0, status, text)
        local file <close> = assert(mb.h5.open(path "given.h5"))
        assert.equal("given", file:value("/entry/provenance/center_verdict"))
        text, status = run("reconstruct.lua", "%s -o %s -d host -c 31 --center-picture %s",
            path "half.h5",
            path "none.h5", path "none.png")
        assert.equal(2, status)
        assert.matches("%-%-center 31 leaves out", text)
        assert.is_false(exists(path "none.h5"))
    end)
end)
