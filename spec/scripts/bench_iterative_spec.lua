-- scripts/bench.lua iterative runs the operators and methods. Times are printed, not judged.
local helper = require "spec.helper"

describe("bench.lua iterative", function()
    it("has a row for each operator and method", function()
        local output, status = helper.run_program(
            "scripts/bench.lua iterative --no-peers -n 32 -a 20 -s 2 --repeats 1")
        assert.equal(0, status, output)
        for _, name in ipairs {"normal_kernel", "normal_operator, circle, direction and dots",
            "cgls_update", "slice_dot", "slice_axpy", "fourier_project", "cgls, preconditioned",
            "landweber", "fista", "sirt, an iteration", "sirt, pixel-driven", "sart, a pass",
            "sart, pixel-driven, a pass",
            "project, pixel-driven", "backproject, by distances", "fbp"} do
            assert.truthy(output:find("| " .. name, 1, true), name)
        end
    end)

    it("has peers beside the rows, and says which are not installed", function()
        local python = os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python"
        if not os.execute(("%s -c '' 2>/dev/null"):format(python)) then
            helper.skip "no Python with peers (scripts/setup --oracles)"
        end
        local output, status = helper.run_program(("scripts/bench.lua iterative -n 32 -a 20 -s 2 "
            .. "--repeats 1 --only project --python %s"):format(python))
        assert.equal(0, status, output)
        local row = output:match "\n(| project, pixel%-driven[^\n]*)"
        for _, module in ipairs {{"astra", "ASTRA", "ASTRA FP"}, {"skimage", "scikit-image",
            "scikit-image radon"}} do
            if os.execute(("%s -c 'import %s' 2>/dev/null"):format(python, module[1])) then
                assert.truthy(output:match(module[3]:gsub("%-", "%%-")
                    .. "[^|]*|%s+[%d.]+ |%s+[%d.]+ |"),
                    output)
            else
                assert.truthy(output:find("skipped: " .. module[2], 1, true), output)
            end
        end
        assert.truthy(row, output)
    end)
end)
