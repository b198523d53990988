-- The steps that remove stripes by filters: through a pipeline, in blocks of several sizes, each
-- gives what its operator gives on whole sinograms, and takes what was planned.

local chain = require "moonbeam.pipeline.chain"
local mb = require "moonbeam"
local helper = require "spec.helper"

local ANGLES, ROWS, COLS <const> = 21, 7, 40

-- By step: options to try, and the presets with what they must be.
local STEPS = {
    stripes_titarenko = {{}, {beta = 0.3}, presets = {httomo = {beta = 0.1},
        tomocupy = {beta = 0.022}}},
    stripes_raven = {{}, {cutoff = 4, rows = 5, padding = "mean"},
        presets = {httomo = {cutoff = 20, order = 4, rows = 2, pad = 20},
            algotom = {order = 8, rows = 1, pad = 0}}},
    stripes_mean = {{}, {low_sigma = 1.5}, {mode = "divide", high_sigma = 0, low_sigma = 8},
        presets = {nabu = {mode = "subtract", low_sigma = 0, high_sigma = 30}}},
    stripes_wavelet = {{level = 3}, {wavelet = "sym6", sigma = 1, level = 2, padding = "both"},
        presets = {httomo = {wavelet = "db5", sigma = 2, level = 0, padding = "angles"},
            tomocupy = {wavelet = "sym16", sigma = 1, level = 7, padding = "angles"},
            nabu = {wavelet = "db15", sigma = 1, level = 10, padding = "columns"},
            algotom = {wavelet = "db9", sigma = 1, level = 5, padding = "both"}}},
}

-- A scan of transmissions with stripes, to be closed.
local function scan_of()
    local data <close> = mb.random({ANGLES, ROWS, COLS}, {low = 0.2, high = 1, seed = 11,
        device = "host"})
    local stripes <close> = mb.random({1, ROWS, COLS}, {low = -0.1, high = 0.1, seed = 12,
        device = "host"})
    local sum = data + stripes
    return sum, mb.scan.of_arrays(sum, mb.tomo.angles(ANGLES), {pixel_size = 1e-6})
end

local function result_of(scan, recipe, count)
    local p = mb.pipeline(scan, recipe, {block = count, quiet = true, input = "transmission"})
    local slices, done = p:slices()
    assert.is_true(done.as_planned)
    return slices
end

-- The frames after the steps, seen through slices: an fbp needs line integrals.
local function slices_by_hand(data, name, options)
    local lines <close> = mb.minus_log(data)
    local sinograms <close> = lines:permute(2, 1, 3)
    local own = {out = sinograms}
    for key, value in pairs(options) do
        own[key] = value
    end
    mb[name](sinograms, own)
    return mb.tomo.reconstruct(sinograms, mb.tomo.angles(ANGLES), {method = "fbp",
        center = 19.5, circle = 0, padding = "edge", filter = "hann",
        scale = math.pi / ANGLES / 1e-6})
end

describe("a step that filters stripes", function()
    for name, cases in pairs(STEPS) do
        it("gives what the operator gives, in blocks of any size: " .. name, function()
            local data <close>, scan = scan_of()
            for _, options in ipairs(cases) do
                local step = {name}
                for key, value in pairs(options) do
                    step[key] = value
                end
                local recipe = {"minus_log", step, {"center", column = 19.5},
                    {"fbp", circle = 0, filter = "hann"}}
                local want <close> = slices_by_hand(data, name, options)
                for _, count in ipairs {1, 3, 100} do
                    local got <close> = result_of(scan, recipe, count)
                    assert.is_true(want:to_string() == got:to_string(),
                        ("in blocks of %d"):format(count))
                end
            end
        end)

        it("has the presets of other packages: " .. name, function()
            local data <close>, scan = scan_of()
            for preset, options in pairs(cases.presets) do
                local bound = chain.bind({"minus_log", {name, preset = preset},
                    {"center", column = 19.5}, "fbp"}, chain.source_of(scan,
                        {input = "transmission"}))
                local resolved = bound.steps[2].options
                for key, value in pairs(options) do
                    assert.equal(value, resolved[key], preset .. "." .. key)
                end
            end
            assert.is_truthy(data)
        end)

        it("is refused after the slices: " .. name, function()
            local data <close>, scan = scan_of()
            local text = helper.failure(mb.pipeline, scan, {"minus_log",
                {"center", column = 19.5}, "fbp", name}, {input = "transmission"})
            assert.is_truthy(text:find("frames", 1, true), text)
            assert.is_truthy(data)
        end)
    end

    it("says which option is wrong", function()
        local data <close>, scan = scan_of()
        local text = helper.failure(mb.pipeline, scan, {"minus_log",
            {"stripes_titarenko", beta = 7}}, {input = "transmission"})
        assert.is_truthy(text:find("beta", 1, true) and text:find("7", 1, true), text)
        text = helper.failure(mb.pipeline, scan, {"minus_log",
            {"stripes_mean", mode = "divide"}}, {input = "transmission"})
        assert.is_truthy(text:find("high_sigma = 0", 1, true), text)
        assert.is_truthy(data)
    end)
end)
