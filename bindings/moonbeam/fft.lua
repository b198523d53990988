-- FFT sizes and plan caches. This module can be called: it is the operator `fft`.

local core = require "moonbeam.core"
local op = require "moonbeam.op"

local fft = {}
for name, f in pairs(core.fft) do
    fft[name] = f
end

return setmetatable(fft, {
    __call = function(_, ...)
        return op.run("fft", ...)
    end,
})
