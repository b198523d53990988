local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("phantom.spheres on " .. device:match("^%a+"), function()
        test("has the volume and the places of its spheres, smooth edges along every axis",
            function()
            local size = { 40, 44, 48 }
            local volume <close>,
                list = mb.phantom.spheres(size, { count = 1, radius = 7, density = 3, margin = 9,
                seed = 4,
                subsamples = 8, device = device })
            assert.same(size, volume.shape)
            assert.equal(1, #list)
            local s = list[1]
            assert.equal(7, s.radius)
            assert.near(3 * 4 / 3 * math.pi * 7 ^ 3, volume:sum(), 0.005 * volume:sum())
            local mass = mb.psf.center(volume, "mass")
            for axis = 1, 3 do
                assert.is_true(s.center[axis] >= 9 and s.center[axis] <= size[axis] - 10)
                assert.near(s.center[axis], mass[axis], 0.01)
            end
            -- Where an axis leaves the sphere there is a voxel that is neither in nor out.
            local z, y, x = math.floor(s.center[1] + 1.5), math.floor(s.center[2] + 1.5),
                math.floor(s.center[3] + 1.5)
            for axis, line in ipairs { volume:view(mb.all, y, x), volume:view(z, mb.all, x),
                volume:view(z, y, mb.all) } do
                local partial = 0
                for _, value in ipairs(line:to_table()) do
                    assert.is_true(value >= 0 and value <= 3 + 1e-6)
                    partial = partial + (value > 0.01 and value < 2.99 and 1 or 0)
                end
                assert.is_true(partial >= 1 and partial <= 4, ("axis %d: %d"):format(axis, partial))
                line:release()
            end
        end)

        test("is the same for the same seed, on every device, and adds where spheres overlap",
            function()
            local options = { count = 30, seed = 7, density = { 1, 5 }, background = 2,
                flatten = 0.5, subsamples = 3 }
            options.device = "host"
            local host <close>, list = mb.phantom.spheres({ 12, 30, 32 }, options)
            options.device = device
            local here <close>, again = mb.phantom.spheres({ 12, 30, 32 }, options)
            helper.assert_close(host, here, 1e-6)
            assert.same(list, again)
            assert.equal(2, host:min())
            assert.is_true(host:max() > 7)
            for _, s in ipairs(list) do
                assert.near(0.5 * s.radius, s.height, 1e-12)
                assert.is_true(s.density >= 1 and s.density <= 5)
            end
            options.seed = 8
            local other <close> = mb.phantom.spheres({ 12, 30, 32 }, options)
            local difference <close> = other - here
            assert.is_true(difference:norm() > 1)
        end)
    end)
end)

describe("phantom.spheres", function()
    it("explains what cannot be", function()
        assert.matches("nz, ny, nx", (helper.failure(mb.phantom.spheres, { 3, 4 })))
        assert.matches("radius",
            (helper.failure(mb.phantom.spheres, { 9, 9, 9 }, { radius = { 3, 2 } })))
        assert.matches("leaves 0 to 4",
            (helper.failure(mb.phantom.spheres, { 9, 19, 19 }, { margin = 5 })))
        assert.matches("did you mean 'count'",
            (helper.failure(mb.phantom.spheres, { 9, 9, 9 }, { counts = 5 })))
    end)
end)
