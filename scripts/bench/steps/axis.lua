--- Finders of the rotation axis. Times are those of one sinogram, or of one trial column.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local sino <close> = mb.random({options.angles, options.size}, {seed = 1, device = device})
    local middle, centers = (options.size - 1) / 2, {}
    for i = -100, 100 do
        centers[#centers + 1] = math.max(0, math.min(options.size - 1, middle + i / 2))
    end
    report("double_wedge", "trial of 201", #centers, sino.bytes, function()
        mb.double_wedge(sino, centers):release()
    end)
    report("find_center_vo", "sinogram", 1, sino.bytes, function()
        mb.tomo.find_center_vo(sino)
    end)
    report("overlap_metric", "side of a sinogram", 1, sino.bytes, function()
        mb.overlap_metric(sino, sino, {window = 20}):release()
    end)
end
