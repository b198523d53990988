-- Operators without a CUDA kernel: stated as such, and refused on a GPU before anything is
-- planned or allocated.

local mb = require "moonbeam"
local helper = require "spec.helper"

local PROGRAM = helper.program:gsub("[^/]*$", "op_test")

local function refusals(device)
    local output, status = helper.run_program(device, nil, PROGRAM)
    assert.equal(0, status, output)
    return output
end

describe("an operator without CUDA kernel", function()
    it("runs on the host, and its plan for a GPU is an error as its run would be", function()
        local line = "host_only: host_only runs on the host alone: it has no kernel for "
            .. "planned:h200; "
            .. "move its inputs with a:to(\"host\")\n"
        assert.equal(line .. line .. "ok\n", refusals("planned:h200"))
    end)

    helper.gpu_it("is refused on a GPU", function()
        assert.matches("host_only runs on the host alone: it has no kernel for cuda:0; move its "
            .. "inputs with a:to%(\"host\"%)",
            refusals("cuda:0"))
    end)

    it("is what its description and its help page say", function()
        local op, help = require "moonbeam.op", require "moonbeam.help"
        local describe_op = op.describe
        finally(function()
            op.describe = describe_op
        end)
        assert.is_false(describe_op("box_filter").host_only)
        assert.is_nil(help.text("box_filter"):find("host alone", 1, true))
        op.describe = function(name)
            local descriptor = describe_op(name)
            descriptor.host_only = true
            return descriptor
        end
        assert.matches("\nRuns only on the host: it has no CUDA kernel.\n",
            help.text("box_filter"), 1, true)
    end)

    it("is one whose file in cuda/ is missing", function()
        local sources = io.open("cuda/shared/cuda_launch.cuh")
        if not sources then
            pending("the sources of the plug-in are not here")
        end
        sources:close()
        for _, name in ipairs(mb.op.list()) do
            local descriptor = mb.op.describe(name)
            local kernel = io.open(("cuda/%s/%s.cu"):format(descriptor.category, name))
            assert.equal(kernel == nil, descriptor.host_only, name)
            if kernel then
                kernel:close()
            end
        end
    end)
end)
