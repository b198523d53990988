local mb = require "moonbeam"

-- What the file of a scan says of its axis is a start and a check of the search, not its result.

local N <const>, ROWS <const>, CENTER <const> = 120, 12, 80.2
local CLOSE <const> = 0.25

-- Two objects that are alike, side by side at the first angle: opposite projections match about the
-- axis, and about half way between the axis and one that is 45 columns to the left.
local function alike()
    local state, list = 7, {}
    local function random()
        state = state * 16807 % 2147483647
        return state / 2147483647
    end
    for _ = 1, 14 do
        local x, size, height = -45 + 52 * (random() - 0.5), 2 + 4 * random(), 1 + 3 * random()
        local z, density = 10 * (random() - 0.5), 0.03 + 0.05 * random()
        for _, at in ipairs {x, x + 90} do
            for _, value in ipairs {density, size, size, height, at, 0, z, 0} do
                list[#list + 1] = value
            end
        end
    end
    return list
end

-- A scan, and its arrays, which are to be closed. `options`: object, turn, count, center.
local function scan_of(options)
    local angles = mb.tomo.angles(options.count or 240, options.turn and 2 * math.pi or math.pi)
    local counts <close> = mb.ellipsoid_projections(options.object or alike(), angles,
        mb.phantom.heights(ROWS), N, {center = options.center or CENTER})
    mb.unary(counts, "neg", {out = counts})
    mb.unary(counts, "exp", {out = counts})
    mb.binary(counts, "mul", {scalar = 20000, out = counts})
    mb.poisson(counts, {seed = 1, out = counts})
    local arrays = {mb.convert(counts, "u16"), mb.full({4, ROWS, N}, 20000, {dtype = "u16"}),
        mb.zeros({4, ROWS, N}, {dtype = "u16"})}
    local held = setmetatable(arrays, {__close = function()
        for _, array in ipairs(arrays) do
            array:release()
        end
    end})
    return mb.scan.of_arrays(arrays[1], angles, {flats = arrays[2], darks = arrays[3]}), held
end

-- An object in the middle that is reached by light.
local function phantom(reach)
    local list = mb.phantom.scale(mb.phantom.shepp_logan, reach, ROWS)
    for i = 1, #list, 8 do
        list[i] = 0.6 / reach * list[i]
    end
    return list
end

local function found(scan, steps, settings)
    local chain = {}
    for i, step in ipairs(steps) do
        chain[i] = step
    end
    chain[#chain + 1] = {"center", table.unpack(settings or {})}
    for name, value in pairs(settings or {}) do
        chain[#chain][name] = value
    end
    chain[#chain + 1] = {"fbp", size = 16}
    local done = mb.pipeline(scan, chain, {quiet = true, devices = {"host"}}):run(function() end)
    assert.is_true(done.as_planned)
    return done.named.center, done.verdicts.center
end

describe("of two columns that match", function()
    local scan, held
    setup(function()
        scan, held = scan_of {}
    end)
    before_each(function()
        scan.says, scan.stated = {}, nil
    end)
    teardown(function()
        getmetatable(held).__close()
    end)

    it("neither is the axis where nothing is said, or another column, or both", function()
        for _, says in ipairs {{}, {CENTER - 20}, {5}, {CENTER, CENTER - 45}} do
            scan.says, scan.stated = {axis = says[1]}, {axes = says, axis = {path = "/axis"}}
            local _, how, details = mb.recon.find_center(scan, {quiet = true})
            assert.equal("ambiguous", details.verdict)
            assert.is_nil(how:match "as the file says")
            assert.matches("match at column 35.*and at 80", details.remedy)
        end
    end)

    it("the one that is said is the axis", function()
        for _, said in ipairs {CENTER, CENTER + 0.8, CENTER - 45} do
            scan.says = {axis = said}
            local column, how, details = mb.recon.find_center(scan, {quiet = true})
            local right = said > 60 and CENTER or CENTER - 45
            assert.equal("found", details.verdict)
            assert.near(right, column, CLOSE)
            assert.matches(("as the file says %%(%d%%.%%d+ matches, too"):format(right < 60 and 80
                or 35), how)
            assert.is_nil(details.remedy)
        end
    end)

    it("the one that is said must hold against the other ways", function()
        scan.says = {axis = CENTER - 45}
        local _, details = found(scan, {{"flat_field"}, {"minus_log"}}, {method = "sharpness"})
        assert.is_true(details.verdict ~= "found")
    end)

    it("columns that are said are those of stored frames", function()
        scan.says = {axis = CENTER}
        for _, steps in ipairs {
            {{"flip", columns = true, rows = true}, {"flat_field"}, {"minus_log"}},
            {{"flat_field"}, {"crop", columns = {5, 120}}, {"bin"}, {"minus_log"}},
            {{"flat_field"}, {"median", size = 3}, {"minus_log"}},
        } do
            local column, details = found(scan, steps)
            assert.near(CENTER, column, CLOSE, details.how)
            assert.equal("found", details.verdict, details.how)
            assert.matches("as the file says", details.how)
        end
    end)

    it("phase correlation takes the one that is said", function()
        local steps = {{"flat_field"}, {"minus_log"}}
        local _, details = found(scan, steps, {method = "phase_correlation"})
        assert.equal("ambiguous", details.verdict)
        scan.says = {axis = CENTER}
        local column, said = found(scan, steps, {method = "phase_correlation"})
        assert.near(CENTER, column, CLOSE)
        assert.equal("found", said.verdict)
        assert.matches("as the file says", said.how)
    end)
end)

describe("a search by trials", function()
    local scan, held
    setup(function()
        scan, held = scan_of {object = phantom(36)}
        scan.says = {}
    end)
    teardown(function()
        getmetatable(held).__close()
    end)

    local STEPS <const> = {{"flip", columns = true}, {"flat_field"}, {"minus_log"}}

    for _, method in ipairs {"vo", "sharpness", "entropy"} do
        it("begins where the scan says, by " .. method, function()
            scan.says = {axis = CENTER + 3}
            local _, from_file = found(scan, STEPS, {method = method})
            local middle = from_file.columns[(#from_file.columns + 1) // 2]
            assert.near(CENTER + 3, middle, 0.51)
            scan.says = {}
            local _, by_default = found(scan, STEPS, {method = method})
            assert.near(N / 2, by_default.columns[(#by_default.columns + 1) // 2], 1)
        end)
    end

    it("finds what the middle of the detector is too far from", function()
        scan.says = {}
        local steps = {{"flat_field"}, {"minus_log"}}
        local _, details = found(scan, steps, {method = "vo"})
        assert.is_true(details.verdict ~= "found")
        scan.says = {axis = CENTER - 2}
        local column, said = found(scan, steps, {method = "vo"})
        assert.near(CENTER, column, CLOSE)
        assert.equal("found", said.verdict)
        assert.is_nil(said.remedy)
    end)

    it("begins where the user says, whatever the scan says", function()
        scan.says = {axis = 40}
        local column, said = found(scan, {{"flat_field"}, {"minus_log"}}, {method = "vo",
            guess = 78})
        assert.near(CENTER, column, CLOSE)
        assert.equal("found", said.verdict)
    end)

    it("names the start that it has from the scan where it finds no axis", function()
        scan.says = {axis = 40}
        local _, said = found(scan, {{"flat_field"}, {"minus_log"}}, {method = "vo"})
        assert.is_true(said.verdict ~= "found")
        assert.matches("began at column 40%.00, as the file says; center%.guess is another",
            said.remedy)
        local column, other = found(scan, {{"flat_field"}, {"minus_log"}}, {method = "vo",
            guess = CENTER})
        assert.near(CENTER, column, CLOSE)
        assert.equal("found", other.verdict)
    end)

    it("goes to the middle where what the scan says is wrong", function()
        local near, more <close> = scan_of {center = 58.3, object = phantom(36)} -- luacheck: ignore
        for _, method in ipairs {"vo", "sharpness", "entropy"} do
            near.says = {}
            local right, plain = found(near, STEPS, {method = method})
            near.says = {axis = 24}
            local column, details = found(near, STEPS, {method = method})
            assert.equal("found", plain.verdict)
            assert.equal("found", details.verdict)
            assert.equal(right, column)
        end
        near.says = {axis = 24}
        local column, details = found(near, STEPS, {method = "vo", range = 29})
        assert.near(58.3, column, CLOSE)
        assert.equal("found", details.verdict)
    end)

    it("does not begin where no search finds an axis", function()
        scan.says = {axis = 3}
        local _, said = found(scan, {{"flat_field"}, {"minus_log"}}, {method = "vo"})
        assert.near(N / 2, said.columns[(#said.columns + 1) // 2], 1)
        assert.is_true(said.searched[1] > 3)
    end)
end)

describe("an axis that the scan says", function()
    local told = require "moonbeam.scan.statements.told"

    it("is told once, with the search that it is outside of", function()
        local scan = {cols = 120, stated = {axes = {9.0}, axis = {path = "/axis"}}}
        assert.is_nil(told.axis(scan, 9.5, 1, {20, 99}))
        assert.equal("the axis is at column 55.00; '/axis' says 9.00, and the search went from "
            .. "20.00 to 99.00: --center 9.00 takes it", told.axis(scan, 55, 1, {20, 99}))
        assert.equal("the axis is at column 55.00; '/axis' says 9.00", told.axis(scan, 55, 1,
            {5, 114}))
        assert.equal("the axis is at column 55.00; '/axis' says 9.00", told.axis(scan, 55, 1))
        scan.stated.axes = {9.0, 68.5} -- the search would have found the other one
        assert.equal("the axis is at column 55.00; '/axis' says 9.00, or 68.50 where it counts "
            .. "from the middle", told.axis(scan, 55, 1, {20, 99}))
        scan.stated.axes = {-30.0} -- no option takes it
        assert.equal("the axis is at column 55.00; '/axis' says -30.00, and the search went from "
            .. "20.00 to 99.00", told.axis(scan, 55, 1, {20, 99}))
    end)

    it("says nothing of a search where it is not said", function()
        local scan, held <close> = scan_of {object = phantom(36)} -- luacheck: ignore
        local _, how, details = mb.recon.find_center(scan, {quiet = true})
        assert.is_nil(details.searched)
        assert.equal("found", details.verdict, how)
    end)

    it("widens with a half acquisition, and goes with stitch", function()
        local scan, held <close> = scan_of {turn = true, center = 104.4, -- luacheck: ignore
            object = phantom(90)}
        scan.says = {axis = 104.4}
        local _, _, plain = mb.recon.find_center(scan, {quiet = true, half_acquisition = false})
        local column, how, half = mb.recon.find_center(scan, {quiet = true,
            half_acquisition = true})
        assert.is_true(half.searched[2] > plain.searched[2])
        assert.near(104.4, column, CLOSE, how)
        assert.equal("found", half.verdict, how)
        local joined, details = found(scan, {{"flat_field"}, {"minus_log"},
            {"stitch", center = 104.4}})
        assert.near(104.4, joined, 2 * CLOSE, details.how)
        assert.is_true(details.searched[1] < 104.4 and details.searched[2] > 104.4)
    end)
end)
