local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local T <const> = "transmission"
local FRESNEL = 1.2398419843320026e-6 / 25e3 * 0.05 / 1e-12

local function projections(shape, seed)
    return mb.random(shape or {9, 20, 31}, {seed = seed or 1, low = 0.4, high = 1.1})
end

local function with(changes)
    local entry = {"paganin", energy = 25e3, distance = 0.05, delta_beta = 100}
    for name, value in pairs(changes or {}) do
        entry[name] = value
    end
    return entry
end

describe("the step paganin", function()
    it("is the operator with the physics of the beam", function()
        local data <close> = projections()
        local scan = check.scan(data, {pixel_size = 1e-6})
        local want <close> = mb.phase_filter(data, FRESNEL, {delta_beta = 100, log = true})
        local _ <close> = check.gives(want, scan, {with()}, T)
        local plain <close> = mb.phase_filter(data, FRESNEL, {delta_beta = 100})
        local _ <close> = check.gives(plain, scan, {with {log = false}}, T)
        local wide <close> = mb.phase_filter(data, FRESNEL / 4, {delta_beta = 100, log = true})
        local _ <close> = check.gives(wide, scan, {with {pixel_size = 2e-6}}, T)
        local general <close> = mb.phase_filter(data, FRESNEL / 4, {delta_beta = 100, log = true,
            method = "generalized"})
        local _ <close> = check.gives(general, scan, {with {method = "generalized",
            width = 2e-6}}, T, 1e-6)
    end)

    it("scales rays from a source, astigmatic or not", function()
        local data <close> = projections()
        local scan = check.scan(data, {pixel_size = 1e-6})
        -- M = 2: half the distance, half the pixel.
        local want <close> = mb.phase_filter(data, 2 * FRESNEL, {delta_beta = 100, log = true})
        local _ <close> = check.gives(want, scan, {with {source_distance = 0.05}}, T, 1e-6)
        local two <close> = mb.phase_filter(data, {4 * FRESNEL / 2, 4 * FRESNEL * 0.2 / 0.25},
            {delta_beta = 100, log = true})
        local _ <close> = check.gives(two, scan, {with {source_distance = {0.05, 0.2}}}, T,
            1e-6)
    end)

    it("has the scalings and paddings of other packages as presets", function()
        local data <close> = projections()
        local scan = check.scan(data, {pixel_size = 1e-6})
        local function is(preset, options, changes)
            local want <close> = mb.phase_filter(data, FRESNEL, options)
            changes = changes or {}
            changes.preset = preset
            local entry = with(changes)
            entry.delta_beta = changes.delta_beta
            local _ <close> = check.gives(want, scan, {entry}, T)
        end
        is("nabu", {delta_beta = 250, padded = {40, 64}})
        is("httomo", {delta_beta = 1000, padded = 32, log = true})
        is("httomo", {delta_beta = 400, padded = 32, log = true}, {delta_beta = 100})
        is("savu", {delta_beta = 250, padded = 32, log = true})
        is("tomocupy", {delta_beta = 1 / (4 * math.pi ^ 2 * 1e-3), padded = {32, 64}})
        is("cil", {delta_beta = 77, padding = "none", log = true}, {delta_beta = 77})
    end)

    it("filters rows in blocks of one height, within the tolerance", function()
        local data <close> = projections({2, 200, 12}, 4)
        local scan = check.scan(data, {pixel_size = 1e-6})
        for _, own in ipairs {{tolerance = 1e-3}, {tolerance = 1e-4, method = "generalized"},
            {tolerance = 1e-3, height = 50}} do
            own.log = false
            local frames <close> = check.result(scan, {with(own)}, nil, T)
            own.extent = "rows"
            local recipe = {with(own), "minus_log", {"fbp", center = 5.5}}
            local _ <close> = check.gives(nil, scan, recipe, T)
            local p = mb.pipeline(scan, recipe, {quiet = true, input = T})
            assert.equal(1, #p:plan().sections)
            local step = mb.pipeline(scan, {with(own)}, {quiet = true, input = T})
            local rows <close> = step:slices()
            local largest = helper.difference(frames, rows)
            assert.is_true(largest <= own.tolerance * 0.7, ("%g"):format(largest))
            assert.is_true(largest > 0)
        end
    end)

    it("is followed by what takes phase, through a store", function()
        local data <close> = projections({12, 9, 16})
        local scan = check.scan(data, {pixel_size = 1e-6})
        local recipe = {with(), {"fbp", center = 7.5}}
        local slices <close> = check.gives(nil, scan, recipe, T)
        assert.same({9, 16, 16}, slices.shape)
        local p = mb.pipeline(scan, recipe, {quiet = true, input = T})
        assert.equal(2, #p:plan().sections)
    end)

    it("refuses what makes no sense", function()
        local data <close> = projections()
        local scan = check.scan(data, {pixel_size = 1e-6})
        local bare = check.scan(data)
        local function refused(text, changes, source)
            local entry = with(changes)
            for name, value in pairs(entry) do
                entry[name] = value ~= "absent" and value or nil
            end
            check.refused(text, source or scan, {entry}, T)
        end
        refused("pixel_size is missing, and the scan does not say it; give pixel_size = ..., in m",
            nil, bare)
        refused("energy, distance, pixel_size and delta_beta are missing, and the scan does not "
            .. "say them; give energy = ..., photon energy in eV; distance = ..., from the object "
            .. "to the detector in m; pixel_size = ..., in m; delta_beta = ...",
            {energy = "absent", distance = "absent", delta_beta = "absent"}, bare)
        refused("delta_beta is missing", {delta_beta = "absent"})
        refused("alpha and delta_beta are both given", {alpha = 1})
        refused("energy is missing, and the scan does not say it; give energy = ..., photon energy "
            .. "in eV", {energy = "absent"})
        refused("25 keV are 25000 eV", {energy = 25})
        refused("width belongs to method", {width = 1e-6})
        refused("no finite extent along rows", {method = "farago", extent = "rows"})
        refused("use method 'ctf'", {method = "farago", distance = 5})
        refused("source_distance has 3 numbers", {source_distance = {1, 2, 3}})
        refused("there are cil, httomo, nabu, savu, tomocupy", {preset = "tomopy"})
        check.refused("it takes transmission, but the data are line integrals since step minus_log",
            scan, {"minus_log", with()}, T)
        check.refused("step paganin has already done it", scan, {with(), with()}, T)
        check.refused("it takes transmission, but the data are phase since step paganin", scan,
            {with(), "minus_log"}, T)
    end)
end)

describe("the step ctf", function()
    it("is the operator, mirrored at the edges", function()
        local data <close> = projections()
        local scan = check.scan(data, {pixel_size = 1e-6})
        local want <close> = mb.phase_filter(data, FRESNEL, {delta_beta = 100, method = "ctf",
            padding = "reflect"})
        local entry = {"ctf", energy = 25e3, distance = 0.05, delta_beta = 100}
        local _ <close> = check.gives(want, scan, {entry}, T)
        entry.preset, entry.low, entry.high = "nabu", 1e-3, 0.1
        local other <close> = mb.phase_filter(data, FRESNEL, {delta_beta = 100, method = "ctf",
            padding = "reflect", low = 1e-3, high = 0.1, padded = {40, 64}})
        local _ <close> = check.gives(other, scan, {entry}, T)
        entry.delta_beta = nil
        check.refused("delta_beta is missing", scan, {entry}, T)
        entry.delta_beta = 10
        check.refused("it takes transmission", scan, {"minus_log", entry}, T)
    end)
end)

describe("the step unsharp", function()
    it("is its formula, on frames and slices", function()
        oracle.needs "scipy"
        local data <close> = projections({5, 24, 31})
        local scan = check.scan(data, {pixel_size = 1e-6})
        local formulas = {gaussian = "(1 + c) * a - c * g", log = "a + c * g",
            imagej = "(a - c * g) / (1 - c)"}
        for method, formula in pairs(formulas) do
            local want <close> = oracle.run("scipy", ([[
import scipy.ndimage
a, c = data.astype(float), 0.7
g = np.stack([scipy.ndimage.gaussian_filter(f, 1.3) for f in a])
result = %s
]]):format(formula), {data = data}, {"result"})
            local step = {"unsharp", sigma = 1.3, coefficient = 0.7, method = method}
            local _ <close> = check.gives(want, scan, {step}, T, 1e-6)
            local slices <close> = check.gives(nil, scan, {step, "minus_log",
                {"fbp", center = 15, scale = 1}, step}, T)
            assert.same({24, 31, 31}, slices.shape)
        end
    end)

    it("keeps constants", function()
        local data <close> = mb.full({3, 9, 12}, 0.5)
        local scan = check.scan(data)
        for _, method in ipairs {"gaussian", "imagej"} do
            local _ <close> = check.gives(data, scan, {{"unsharp", sigma = 2, coefficient = 0.6,
                method = method}}, T, 1e-6)
        end
        check.refused("imagej divides by 1 - coefficient", scan, {{"unsharp", sigma = 2,
            coefficient = 1, method = "imagej"}}, T)
        check.refused("sigma is missing", scan, {{"unsharp", coefficient = 1}}, T)
    end)
end)
