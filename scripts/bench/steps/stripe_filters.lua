--- Stripe removal by filters.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local data <close> = mb.random({options.slices, options.angles, options.size}, {seed = 1,
        low = 0.1, high = 1, device = device})
    local function row(name, work)
        report(name, "sinogram", options.slices, 2 * data.bytes, work)
    end
    row("stripes, Titarenko", function()
        mb.stripes_titarenko(data, {beta = 0.022, out = data})
    end)
    row("stripes, Raven", function()
        mb.stripes_raven(data, {origin = 1, out = data})
    end)
    row("stripes, filtered mean", function()
        mb.stripes_mean(data, {out = data})
    end)
    -- As other packages have it.
    for preset, own in pairs(require("moonbeam.steps.stripes.stripes_wavelet").presets) do
        row("stripes, wavelet as " .. preset, function()
            mb.stripes_wavelet(data, {wavelet = own.wavelet, sigma = own.sigma, level = own.level,
                boundary = own.boundary, padding = own.padding, origin = own.origin, out = data})
        end)
    end
end
