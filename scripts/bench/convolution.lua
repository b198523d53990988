--- FFT convolution with the transfer function cached and made each time, and a Richardson-Lucy
-- iteration, all circular on the volume itself.

local mb = require "moonbeam"

return function(bench)
    local options, device = bench.options, bench.device
    local z, y, x = table.unpack(options.volume)
    local voxels = z * y * x
    local row = bench.table(("## Convolution: %d x %d x %d float32"):format(z, y, x),
        {"work", "ms", "ns per voxel", "floor ms", "x floor"})

    local kernel <close> = mb.psf_gaussian({9, 9, 9}, {1.5, 1.5, 1.5}, {device = device})

    -- What the fused passes must move, in bytes a voxel, those along x and y meeting in the cache.
    -- A convolution: x and y 8, z 8, back 8. An iteration: the estimate 8, z 8, back and the ratio
    -- to the image 12, y 8, z 8, back and the update 12. Along z come 4 for a transfer function
    -- that is whole, and 4 once for making it. Sizes that the FFT library transforms move more.
    local along_z, made = 8, 0
    do
        local otf <close> = mb.convolution.transfer(kernel, {z, y, x})
        if otf.shape[1] == z then
            along_z, made = 12, 4
        end
    end
    local function report(name, seconds, bytes)
        local floor = bench.floor(bytes * voxels)
        row(name, ("%.3f"):format(seconds * 1e3), ("%.3f"):format(seconds / voxels * 1e9),
            ("%.3f"):format(floor * 1e3),
            ("%.2f"):format(seconds / floor))
    end

    if bench.wanted("convolve") then
        local grid <close> = mb.zeros({z, y, 2 * (x // 2 + 1)}, {device = device})
        do
            local otf <close> = mb.convolution.transfer(kernel, {z, y, x})
            report("convolve, transfer function cached", bench.time(function()
                mb.convolution.apply(grid, otf, x)
            end), 16 + along_z)
        end
        report("convolve, transfer function made", bench.time(function()
            local otf <close> = mb.convolution.transfer(kernel, {z, y, x})
            mb.convolution.apply(grid, otf, x)
        end), 16 + along_z + made)
    end
    if bench.wanted("richardson_lucy") then
        local image <close> = mb.random({z, y, x}, {seed = 1, low = 1, high = 2, device = device})
        local otf <close> = mb.deconv.transfer(kernel, {z, y, x}, {boundary = "circular"})
        local function run(iterations)
            return bench.time(function()
                mb.deconv.richardson_lucy(image, kernel,
                    {iterations = iterations, boundary = "circular", otf = otf}):release()
            end)
        end
        report("richardson_lucy, one iteration", (run(6) - run(1)) / 5, 40 + 2 * along_z)
    end
    for _, peer in ipairs(bench.peers("convolution", z, y, x, options.repeats)) do
        row("peer: " .. peer.name, ("%.3f"):format(peer.seconds * 1e3),
            ("%.3f"):format(peer.seconds / voxels * 1e9))
    end
end
