--- The pool: what an allocation and its release cost.

local mb = require "moonbeam"

return function(bench)
    local count = 200000
    local row = bench.table("## Memory pool", {"work", "ns"})
    row("allocate + release from Lua", ("%.0f"):format(bench.time(function()
        for _ = 1, count do
            mb.empty({1024}, {device = bench.device}):release()
        end
    end) / count * 1e9))
end
