local check = require "spec.support.step_check"
local mb = require "moonbeam"

describe("the step normalize_background", function()
    it("divides transmission and subtracts from line integrals", function()
        local data <close> = mb.random({9, 7, 22}, {seed = 1, low = 0.5, high = 1})
        local scan = check.scan(data)
        for quantity, operation in pairs {transmission = "divide", ["line integrals"] = "subtract"} do
            for _, options in ipairs {{width = 4}, {preset = "nabu"}} do
                local want <close> = mb.normalize_background(data, {operation = operation,
                    width = options.width, method = options.preset and "chebyshev" or nil})
                local _ <close> = check.gives(want, scan, {{"normalize_background",
                    width = options.width, preset = options.preset}}, quantity)
            end
        end
        local _ <close> = check.gives(nil, scan, {{"normalize_background", width = 4},
            {"fbp", center = 10}}, "line integrals")
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("two edges of 10 columns do not fit into 12 columns; give a width of at most "
            .. "6", scan, {"normalize_background"}, "transmission")
        check.refused("width is 0", scan, {{"normalize_background", width = 0}}, "transmission")
        check.refused("give edges, chebyshev; did you mean 'chebyshev'?", scan, {{"normalize_background",
            method = "cheb"}}, "transmission")
    end)
end)
