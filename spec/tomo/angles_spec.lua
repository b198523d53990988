--- Angles are radians: what spans more than two turns is refused by every function that takes
-- angles, before anything has run.
local mb = require "moonbeam"
local helper = require "spec.helper"

local COUNT, WIDTH = 30, 16

describe("angles", function()
    local degrees, radians = {}, {}
    for i = 1, COUNT do
        degrees[i] = 6 * i
        radians[i] = math.rad(6 * i)
    end

    -- name -> f(angles)
    local function takers(sino, slice, frames)
        return {
            ["tomo.fbp"] = function(angles) mb.tomo.fbp(sino, angles):release() end,
            ["tomo.reconstruct"] = function(angles) mb.tomo.reconstruct(sino, angles):release() end,
            ["tomo.choose_method"] = function(angles) mb.tomo.choose_method({COUNT, WIDTH},
            angles) end,
            ["tomo.find_center"] = function(angles) mb.tomo.find_center(frames, angles) end,
            ["tomo.find_center_metric"] = function(angles) mb.tomo.find_center_metric(sino,
            angles) end,
            ["tomo.opposite_pair"] = function(angles) mb.tomo.opposite_pair(angles) end,
            ["recon.reconstruct"] = function(angles)
                mb.recon.reconstruct(frames, angles, {center = 7.5, quiet = true,
                    log = false}):release()
            end,
            ["scan.of_arrays"] = function(angles) mb.scan.of_arrays(frames, angles):close() end,
            backproject = function(angles) mb.backproject(sino, angles):release() end,
            fourier_reconstruct = function(angles) mb.fourier_reconstruct(sino,
            angles):release() end,
            project = function(angles) mb.project(slice, angles):release() end,
            ellipsoid_projections = function(angles)
                mb.ellipsoid_projections(mb.phantom.scale(mb.phantom.shepp_logan, 8, 1), angles,
                    {0}, WIDTH):release()
            end,
        }
    end

    it("in degrees are refused by all that take them", function()
        local sino <close> = mb.random({COUNT, WIDTH}, {seed = 1})
        local slice <close> = mb.random({WIDTH, WIDTH}, {seed = 2})
        local frames <close> = mb.random({COUNT, 2, WIDTH}, {seed = 3})
        for name, f in pairs(takers(sino, slice, frames)) do
            f(radians)
            local text = helper.failure(f, degrees)
            assert.matches("angles span 174 rad, 27.7 turns: are they degrees%?", text, nil, nil,
                name)
        end
    end)

    it("in degrees are refused as arrays too, and before a sinogram that is given up is touched",
        function()
        local sino <close> = mb.random({COUNT, WIDTH}, {seed = 1})
        local before = sino:to_table()
        local array <close> = mb.linspace(0, 180, COUNT)
        assert.matches("tomo.fbp: angles span 180 rad",
            helper.failure(mb.tomo.fbp, sino, array, {consume = true}))
        assert.same(before, sino:to_table())
    end)

    it("may span two turns, and any number of them when wrapped into one", function()
        local sino <close> = mb.random({COUNT, WIDTH}, {seed = 1})
        local two, many = {}, {}
        for i = 1, COUNT do
            two[i] = 4 * math.pi * (i - 1) / (COUNT - 1)
            many[i] = radians[i] + 6 * math.pi * (i % 5)
        end
        mb.backproject(sino, two):release()
        assert.matches("mb.tomo.wrapped%(angles%)", helper.failure(mb.backproject, sino, many))
        local within = mb.tomo.wrapped(many)
        for i = 1, COUNT do
            assert.near(radians[i], within[i], 1e-12)
        end
        local a <close> = mb.backproject(sino, within)
        local b <close> = mb.backproject(sino, radians)
        local difference <close> = a - b
        assert.is_true(math.max(difference:max(), -difference:min()) < 1e-5)
    end)

    it("without precision are refused, and those of a small range in degrees cannot be told",
        function()
        local sino <close> = mb.random({2, WIDTH}, {seed = 1})
        assert.matches("angles reach 1e%+12 rad", helper.failure(mb.backproject, sino,
            {1e12, 1e12}))
        mb.backproject(sino, {0, 12}):release()
    end)

    it("that are made over a span in degrees are refused", function()
        assert.matches("span is 180 rad", helper.failure(mb.tomo.angles, 30, 180))
        assert.equal(30, #mb.tomo.angles(30, 4 * math.pi))
    end)
end)
