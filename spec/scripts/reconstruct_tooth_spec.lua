-- A real scan, tooth.h5, where it is at hand.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"

local must, exists = commands.must, commands.exists
local shell

local function path(name)
    return shell:path(name)
end

describe("reconstruct", function()
    setup(function()
        shell = commands.folder()
        shell:simulate()
    end)

    teardown(function()
        shell:remove()
    end)

    it("reconstruct the tooth: axis at 296, a tooth inside", function()
        local tooth = files.data("tooth.h5")
        if not tooth then
            pending("tooth.h5 is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        local text = must("reconstruct.lua",
            ("%s -o %s --center auto --preview %s --device host"):format(tooth, path("tooth.h5"),
            path("tooth.png")))
        assert.near(296, tonumber(text:match("axis%s+column ([%d.]+)")), 0.25)
        assert.is_true(exists(path("tooth.png")))
        local file <close> = assert(mb.h5.open(path("tooth.h5")))
        local volume <close> = file:read("/entry/data/data")
        assert.same({2, 640, 640}, volume.shape)
        local inside <close> = volume:view(1, {375, 395}, {335, 355})
        local outside <close> = volume:view(1, {20, 40}, {300, 340})
        assert.is_true(inside:mean() > 0.003)
        assert.is_true(math.abs(outside:mean()) < 0.2 * inside:mean())
    end)

    it("reconstruct the tooth alike by both methods: correlation in the field of view", function()
        local tooth = files.data("tooth.h5")
        if not tooth then
            pending("tooth.h5 is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        local volumes = {}
        for i, method in ipairs {"fbp", "fourier"} do
            local name = path(method .. ".h5")
            must("reconstruct.lua",
                ("%s -o %s -c 295.94 --filter hann --method %s --circle 1 --device host"):format(
                tooth, name, method))
            local file <close> = assert(mb.h5.open(name))
            assert.equal(method, file:value("/entry/reconstruction/parameters/method"))
            volumes[i] = file:read("/entry/data/data")
        end
        -- Both are 0 outside the circle, which must not count: only the number of pixels inside
        -- does.
        local a <close> = volumes[1]
        local b <close> = volumes[2]
        local n, count = a.shape[3], 0
        for y = 1, n do
            for x = 1, n do
                count = count + ((x - (n + 1) / 2) ^ 2 + (y - (n + 1) / 2) ^ 2 <= (n / 2) ^ 2
                    and a.shape[1] or 0)
            end
        end
        local product <close> = a * b
        local function covariance(sum, p, q)
            return sum - p:sum() * q:sum() / count
        end
        assert.equal(0, a:item(1, 1, 1))
        assert.equal(0, b:item(1, 1, 1))
        local correlation = covariance(product:sum(), a, b) / math.sqrt(covariance(a:norm() ^ 2, a,
            a) * covariance(b:norm() ^ 2, b, b))
        assert.is_true(correlation > 0.99 and correlation <= 1, tostring(correlation))
    end)
end)
