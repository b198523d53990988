local mb = require "moonbeam"
local helper = require "spec.helper"
local axis_scans = require "spec.support.axis_scans"

-- The axis of scans whose detector has defects, behind any chain of steps, and what is said of it.
-- MOONBEAM_AXIS_CASES=200 tries more random cases than continuous integration does.

local CASES <const> = tonumber(os.getenv "MOONBEAM_AXIS_CASES") or 15
local DEFAULT <const> = {{"flat_field"}, {"minus_log"}, {"center"}}
local CLOSE <const> = 0.25

-- A scan of 120 columns with defects {kind, column}; to be closed: {scan, facts, arrays}.
local function scan_of(defects, change)
    local facts = {n = 120, rows = 12, photons = 20000, center = 54.6}
    for name, value in pairs(change or {}) do
        facts[name] = value
    end
    local angles = mb.tomo.angles(facts.count or 160, facts.turn and 2 * math.pi or math.pi)
    local object = mb.phantom.scale(mb.phantom.shepp_logan, facts.reach or 48, facts.rows)
    for i = 1, #object, 8 do
        object[i] = object[i] * (facts.density or 0.012)
    end
    local counts <close> = mb.ellipsoid_projections(object, angles,
        mb.phantom.heights(facts.rows), facts.n, {center = facts.center})
    mb.unary(counts, "neg", {out = counts})
    mb.unary(counts, "exp", {out = counts})
    mb.binary(counts, "mul", {scalar = facts.photons, out = counts})
    mb.poisson(counts, {seed = 1, out = counts})
    mb.binary(counts, "add", {scalar = 100, out = counts})
    local arrays = {counts = mb.convert(counts, "u16"),
        flats = mb.full({4, facts.rows, facts.n}, facts.photons + 100, {dtype = "u16"}),
        darks = mb.full({4, facts.rows, facts.n}, 100, {dtype = "u16"})}
    for i, defect in ipairs(defects or {}) do
        axis_scans.DEFECTS[defect[1]](arrays, defect[2], 10 * i, facts.photons + 100)
    end
    local scan = mb.scan.of_arrays(arrays.counts, angles, {flats = arrays.flats,
        darks = arrays.darks, pixel_size = 1e-6})
    return setmetatable({scan = scan, facts = facts, arrays = arrays}, {__close = function()
        for _, array in pairs(arrays) do
            array:release()
        end
    end})
end

local function assert_found(held, found)
    assert.near(0, found.error, CLOSE, found.how)
    assert.equal("found", found.verdict, found.how)
    assert.is_true(found.as_planned)
    return held
end

describe("the axis of a random scan behind a random chain", function()
    it("is right, or is not called found; and is found where the usual chain finds it", function()
        local usual, kept = 0, 0
        for seed = 1, CASES do
            for _, clean in ipairs {false, true} do
                local held <close> = axis_scans.scan(seed, clean)
                local chain = axis_scans.chain(seed)
                local text = ("case %d: %s"):format(seed, axis_scans.text(chain))
                local by_default = axis_scans.search(held, DEFAULT)
                local found = axis_scans.search(held, chain)
                for _, one in ipairs {by_default, found} do
                    assert.is_true(one.verdict ~= "found" or math.abs(one.error) <= CLOSE,
                        ("%s: %.3f px off, %s"):format(text, one.error, one.how))
                    assert.is_true(one.as_planned, text)
                end
                if by_default.verdict == "found" then
                    usual = usual + 1
                    kept = kept + (found.verdict == "found" and 1 or 0)
                end
            end
        end
        assert.is_true(usual >= 0.95 * 2 * CASES, usual)
        assert.is_true(kept >= 0.95 * usual, ("%d of %d"):format(kept, usual))
    end)
end)

describe("a column without a sample does not become the axis behind", function()
    local NABU <const> = {"flat_field", preset = "nabu", interpolation = "mean"}
    local PAGANIN <const> = {"paganin", delta_beta = 100, energy = 20000, distance = 0.01}
    local CHAINS <const> = {
        {NABU}, {NABU, {"minus_log"}},
        {{"dezinger", preset = "nabu", threshold = 2000}, {"flat_field"}},
        {{"flat_field"}, {"unsharp", coefficient = 1, sigma = 1}},
        {{"flat_field"}, {"paganin", delta_beta = 100, energy = 20000, distance = 0.01,
            log = false}},
        {{"dead_pixels"}, NABU}, {{"dead_pixels"}, NABU, {"minus_log"}},
        {{"dead_pixels", detect = "constant"}, {"flat_field"}},
        {{"flat_field"}, {"minus_log"}, {"stripes_all"}},
        {{"flat_field"}, {"minus_log"}, {"double_flat_field"}},
        {{"flat_field"}, {"crop", columns = {9, 116}}, {"bin"}},
        {{"flat_field"}, {"rotate", angle = 2e-3}, {"resample", factor = 0.8}},
    }
    for i, chain in ipairs(CHAINS) do
        it(("chain %d: %s"):format(i, axis_scans.text(chain)), function()
            local held <close> = scan_of {{"dead", 80}, {"noisy", 40}, {"stuck", 30}}
            local own = table.move(chain, 1, #chain, 1, {})
            own[#own + 1] = {"center"}
            local found = axis_scans.search(held, own)
            assert_found(held, found)
            assert.matches("3 dead or stuck columns are left out", found.how)
        end)
    end

    it("phase retrieval into line integrals, which a store keeps", function()
        local held <close> = scan_of {{"dead", 80}}
        local pipeline = mb.pipeline(held.scan, {{"flat_field"}, PAGANIN, {"center"},
            {"fbp", size = 16}}, {quiet = true, devices = {"host"}})
        local done = pipeline:run(function() end)
        assert.near(held.facts.center, done.named.center, CLOSE, done.verdicts.center.how)
        assert.equal("found", done.verdicts.center.verdict)
        assert.is_true(done.as_planned)
    end)

    it("behind several stores no axis is found, and before them it is, as is advised", function()
        local held <close> = scan_of {{"dead", 80}, {"noisy", 40}}
        local before, behind = {{"flat_field"}}, {{"gaussian", sigma = 2}, {"stripes_sorting"},
            PAGANIN}
        PAGANIN.log = false
        for _, method in ipairs {"auto", "registration", "vo", "phase_correlation"} do
            local own, advised = {before[1], table.unpack(behind)}, {before[1]}
            own[#own + 1] = {"center", method = method, guess = method == "vo" and 55 or nil}
            advised[2] = own[#own]
            table.move(behind, 1, #behind, 3, advised)
            local found = axis_scans.search(held, own)
            assert.is_true(found.verdict ~= "found", found.how)
            assert.matches("spread.*move step center before", found.remedy)
            assert.is_true(found.as_planned)
            local right = axis_scans.search(held, advised)
            assert.is_true(right.verdict ~= "found" or math.abs(right.error) <= CLOSE, right.how)
            if method == "auto" or method == "registration" then
                assert_found(held, right)
            end
        end
        local clean <close> = scan_of {}
        assert_found(clean, axis_scans.search(clean, {before[1], behind[1], behind[2], behind[3],
            {"center"}}))
        PAGANIN.log = nil
    end)

    for _, method in ipairs {"registration", "vo", "phase_correlation", "sharpness", "entropy"} do
        it("by method " .. method, function()
            local held <close> = scan_of {{"dead", 80}, {"noisy", 40}}
            local found = axis_scans.search(held, {NABU, {"minus_log"},
                {"center", method = method, guess = method ~= "registration"
                    and method ~= "phase_correlation" and 55 or nil}})
            assert.is_true(found.verdict ~= "found" or math.abs(found.error) <= CLOSE, found.how)
            assert.is_true(found.as_planned)
        end)
    end
end)

describe("an axis beside a column without a sample", function()
    it("is found where two ways that left the column out agree", function()
        for _, kind in ipairs {"dead", "hot", "noisy", "saturated", "stuck"} do
            local held <close> = scan_of {{kind, 54}, {kind, 55}}
            assert_found(held, axis_scans.search(held, DEFAULT))
        end
    end)

    it("is not called found by one way alone", function()
        local held <close> = scan_of({{"dead", 55}}, {turn = true})
        local _, how, details = mb.recon.find_center(held.scan, {quiet = true,
            half_acquisition = true})
        assert.equal("ambiguous", details.verdict, how)
        assert.matches("within a pixel of a column that is dead or stuck.*give %-%-center",
            details.remedy)
    end)

    it("is flat, with the number of columns, where hardly any column is left", function()
        local defects = {}
        for column = 10, 100 do
            defects[#defects + 1] = {"dead", column}
        end
        local held <close> = scan_of(defects)
        local found = axis_scans.search(held, DEFAULT)
        assert.is_true(found.verdict ~= "found", found.how)
        assert.matches("give %-%-center", found.remedy)
    end)
end)

describe("a residual", function()
    it("is judged by the noise of the frames", function()
        for _, photons in ipairs {20, 200, 20000} do
            local held <close> = scan_of(nil, {photons = photons, rows = 24})
            local axis, how, details = mb.recon.find_center(held.scan, {quiet = true})
            assert.near(held.facts.center, axis, CLOSE, how)
            assert.equal("found", details.verdict, how)
            assert.is_true(details.noise > 0.3 * details.residual - 1e-3, how)
            assert.is_true(details.noise < 3 * details.residual + 1e-3, how)
        end
    end)

    it("that noise does not explain needs a second way that agrees", function()
        -- A second object that does not turn: opposite projections match worse than noise explains.
        local held <close> = scan_of(nil, {count = 160})
        local shade <close> = mb.random({1, 12, 120}, {seed = 3, low = 0.3, high = 1})
        local smooth <close> = mb.gaussian_filter(shade, {0, 0, 4})
        local light <close> = mb.convert(held.arrays.counts, "f32")
        mb.binary(light, "mul", {b = smooth, out = light})
        mb.convert(light, "u16", {out = held.arrays.counts})
        local axis, how, details = mb.recon.find_center(held.scan, {quiet = true})
        assert.is_true(details.residual > 2 * details.noise, how)
        assert.is_true(details.verdict ~= "found" or math.abs(axis - 54.6) <= CLOSE, how)
    end)

    it("of 0 that is flat is said to be chance, not a poor match", function()
        local angles = mb.tomo.angles(60)
        local lines <close> = mb.ellipsoid_projections(mb.phantom.scale(mb.phantom.shepp_logan, 2,
            4), angles, mb.phantom.heights(2), 5, {center = 2})
        local _, how, details = mb.recon.find_center(mb.scan.of_arrays(lines, angles),
            {quiet = true, log = false})
        assert.equal("flat", details.verdict, how)
        assert.matches("match %(residual .* too few to tell a match from chance; give %-%-center",
            details.remedy)
    end)
end)

describe("a whole turn that looks like a half acquisition", function()
    local function noticed(center, change, options)
        local own = {turn = true, center = center, count = 240,
            reach = 0.8 * math.max(center, 119 - center), density = 0.008}
        for name, value in pairs(change or {}) do
            own[name] = value
        end
        local held <close> = scan_of(nil, own)
        held.scan.says = change and change.says
        options = options or {}
        options.quiet = true
        local axis, how, details = mb.recon.find_center(held.scan, options)
        return details.notice, details, axis, how
    end

    it("is noticed, on either side, with what is known of the axis", function()
        for _, center in ipairs {97.3, 20.5} do
            local notice, details, axis = noticed(center)
            assert.equal("found", details.verdict)
            assert.near(center, axis, CLOSE)
            assert.matches(("axis at %.2f of 120 columns.*beyond the %s edge.*%%-%%-half%%-acq")
                :format(axis, center > 60 and "right" or "left"), notice)
        end
    end)

    it("is not noticed where it is none, nor where the file or the user say so", function()
        assert.is_nil(noticed(97.3, {says = {half_acquisition = false}}))
        assert.is_nil(noticed(97.3, nil, {half_acquisition = false}))
        assert.is_nil(noticed(97.3, nil, {half_acquisition = true}))
        assert.is_nil(noticed(57, {reach = 52}))
        assert.is_nil(noticed(62, {reach = 56, photons = 100}))
        assert.is_nil(noticed(60, {reach = 80})) -- larger, and in the middle
        assert.is_nil(noticed(52, {turn = false, reach = 65}))
    end)

    it("is advised where the axis is nearer to the edge than the search goes, and that works",
        function()
        local _, details = noticed(110.4)
        assert.equal("edge", details.verdict)
        assert.matches("column 110.*try %-%-half%-acquisition", details.remedy)
        local _, half, axis, how = noticed(110.4, nil, {half_acquisition = true})
        assert.near(110.4, axis, CLOSE, how)
        assert.equal("found", half.verdict, how)
    end)

    it("names step stitch where the axis is beyond the detector", function()
        local _, details = noticed(119, {reach = 100})
        assert.is_true(details.verdict ~= "found")
        assert.matches("looks like a half acquisition.*stitch", details.remedy)
    end)

    it("beyond the detector is joined by step stitch, as is advised", function()
        local held <close> = scan_of(nil, {turn = true, center = 123.5, count = 240, reach = 100,
            density = 0.006})
        local pipeline = mb.pipeline(held.scan, {{"flat_field"}, {"minus_log"},
            {"stitch", center = 123.5}, {"fbp", center = 123.5}}, {quiet = true,
            devices = {"host"}})
        local least, width = math.huge, 0
        pipeline:run(function(slices)
            width = slices.shape[3]
            local middle <close> = slices:view(1, {width // 2 - 30, width // 2 + 30},
                {width // 2 - 60, width // 2 - 50})
            least = math.min(least, middle:mean())
        end)
        assert.equal(248, width) -- twice 120 columns, and 8 between them
        assert.is_true(least > 0)
    end)

    it("is noticed behind a chain, and where the axis is given", function()
        local axis_edges = require "moonbeam.tomo.axis.axis_edges"
        local held <close> = scan_of(nil, {turn = true, center = 97.3, count = 240, reach = 78,
            density = 0.008})
        local function verdict(steps)
            steps[#steps + 1] = {"center"}
            steps[#steps + 1] = {"minus_log"}
            steps[#steps + 1] = {"fbp", size = 16}
            return mb.pipeline(held.scan, steps, {quiet = true, devices = {"host"}})
                :run(function() end).verdicts.center
        end
        assert.matches("half acquisition", verdict {{"flat_field"}, {"median", size = 3}}.notice)
        assert.is_nil(verdict {{"flat_field"}, {"half_acquisition", when = "never"}}.notice)
        assert.matches('give when = "always" or when = "never"', (helper.failure(verdict,
            {{"flat_field"}, {"median", size = 3}, {"half_acquisition", when = "auto"}})))
        held.scan.says = {half_acquisition = false}
        assert.is_nil(verdict {{"flat_field"}, {"median", size = 3},
            {"half_acquisition", when = "auto"}}.notice)
        held.scan.says = {half_acquisition = true}
        local stated = mb.pipeline(held.scan, {{"flat_field"}, {"median", size = 3},
            {"half_acquisition", when = "auto"}, {"center"}, {"minus_log"}, {"fbp"}},
            {quiet = true, devices = {"host"}})
        local width = 0
        local done = stated:run(function(slices)
            width = slices.shape[3]
        end)
        held.scan.says = nil
        assert.near(97.3, done.named.center, CLOSE)
        assert.is_nil(done.verdicts.center.notice)
        assert.is_true(width > 190)
        assert.is_true(done.as_planned)
        assert.matches("97.30 of 120.*half%-acq", (axis_edges.look(held.scan, {}, 97.3)))
        local small <close> = scan_of(nil, {photons = 20, reach = 50, center = 59.5})
        local half, larger = axis_edges.look(small.scan, {}, 59.5)
        assert.is_nil(half)
        assert.is_nil(larger)
        local large <close> = scan_of(nil, {photons = 200, reach = 75, center = 59.5})
        half, larger = axis_edges.look(large.scan, {}, 59.5)
        assert.is_nil(half)
        assert.matches("larger than the field of view: it goes on beyond both edges", larger)
    end)
end)

describe("views that are there twice", function()
    it("of a sample that has moved do not become the axis, and can be left out", function()
        local held <close> = scan_of(nil, {count = 120, center = 54.6})
        local moved <close> = scan_of(nil, {count = 120, center = 60.6})
        -- After half a turn of 120 views the sample moves; views at 180, 90 and 0 degrees follow.
        local counts <close> = mb.empty({123, 12, 120}, {dtype = "u16"})
        local angles = {table.unpack(held.scan.angles)}
        for i = 1, 120 do
            local from <close> = held.arrays.counts:view({i, i})
            local to <close> = counts:view({i, i})
            mb.convert(from, "u16", {out = to})
        end
        local object = mb.phantom.scale(mb.phantom.shepp_logan, 48, 12)
        local mirrored <close> = mb.ellipsoid_projections(object, {math.pi}, mb.phantom.heights(12),
            120, {center = 60.6})
        mb.binary(mirrored, "mul", {scalar = -0.012, out = mirrored})
        mb.unary(mirrored, "exp", {out = mirrored})
        mb.binary(mirrored, "mul", {scalar = 20000, out = mirrored})
        mb.binary(mirrored, "add", {scalar = 100, out = mirrored})
        for i, from in ipairs {false, 61, 1} do
            local to <close> = counts:view({120 + i, 120 + i})
            if from then
                local frame <close> = moved.arrays.counts:view({from, from})
                mb.convert(frame, "u16", {out = to})
            else
                mb.convert(mirrored, "u16", {out = to})
            end
            angles[120 + i] = ({math.pi, math.pi / 2, 0})[i]
        end
        local scan = mb.scan.of_arrays(counts, angles, {flats = held.arrays.flats,
            darks = held.arrays.darks})
        assert.same({}, scan.warnings) -- each direction counts once, which needs no advice
        local by_default = axis_scans.search({scan = scan, facts = held.facts}, DEFAULT)
        assert.is_true(by_default.verdict ~= "found" or math.abs(by_default.error) <= CLOSE,
            by_default.how)
        local found = axis_scans.search({scan = scan, facts = held.facts},
            {{"select", bad = {121, 122, 123}}, {"flat_field"}, {"minus_log"}, {"center"}})
        assert_found(held, found)
    end)
end)
