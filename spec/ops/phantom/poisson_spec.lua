local mb = require "moonbeam"

describe("poisson", function()
    for _, mean in ipairs {0.3, 4, 9.9, 10.1, 250, 40000} do
        it(("has mean and variance %g"):format(mean), function()
            local n = 100000
            local means <close> = mb.full({n}, mean)
            local counts <close> = mb.poisson(means, {seed = 7})
            local average = counts:mean()
            assert.near(mean, average, 5 * math.sqrt(mean / n))
            local deviation <close> = counts - average
            local variance = deviation:norm() ^ 2 / n
            assert.near(mean, variance, 0.03 * mean)
        end)
    end

    it("does not depend on how the data are cut", function()
        local means <close> = mb.random({100}, {seed = 3, low = 0, high = 30})
        local whole <close> = mb.poisson(means, {seed = 5})
        local tail <close> = means:view({41, 100})
        local part <close> = mb.poisson(tail, {seed = 5, first = 40})
        local expected <close> = whole:view({41, 100})
        assert.same(expected:to_table(), part:to_table())
    end)

    it("gives 0 for means that are zero, negative or not finite", function()
        local means <close> = mb.array {0, -3, 0 / 0, math.huge}
        local counts <close> = mb.poisson(means)
        assert.same({0, 0, 0, 0}, counts:to_table())
    end)
end)
