-- scripts/bench.lua iterative runs the operators and methods. Times are printed, not judged.
local helper = require "spec.helper"

describe("bench.lua iterative", function()
    it("has a row for each operator and method", function()
        local output, status = helper.run_program(
            "scripts/bench.lua iterative --no-peers -n 32 -a 20 -s 2 --repeats 1")
        assert.equal(0, status, output)
        for _, name in ipairs {"normal_kernel", "normal_operator, circle, direction and dots",
            "cgls_update", "slice_dot", "slice_axpy", "fourier_project", "cgls, preconditioned",
            "landweber", "fista", "sirt, pixel-driven"} do
            assert.truthy(output:find("| " .. name, 1, true), name)
        end
    end)
end)
