-- Devices: the host, GPUs, and GPUs to plan for.
-- This module can be called: device(id [, {budget = "8G"}]) opens "host" or "cuda:0", or
-- "planned:h200", which stands for a GPU that is not here: dry runs, estimates and plans give its
-- figures, from a record; it holds no data and runs nothing. "planned:h200:1" is another one of
-- them, so that a node can be planned for. "auto" is the default device where one was chosen
-- (--device), else the first GPU, else the host. several() opens a list: "all", "cuda:0,cuda:1",
-- "2xplanned:h200". "host:1" to "host:7" are further host devices: the same processors, with a
-- pool, a budget, FFT plans and accounts of their own, so that programs for several devices can be
-- tried without any GPU. Their budgets are not shared: each is 90 % of what was free when the
-- device was opened, unless it is set. Sizes: "8G" is 8e9 bytes, "8Gi" is 8 * 2^30. Environment:
-- MOONBEAM_CUDA_PLUGIN (file) is taken for the CUDA backend, MOONBEAM_CUFFT (file) for cuFFT. With
-- MOONBEAM_CUDA_CAPABILITY=80 a newer GPU works as one of compute capability 8.0 would, as far as
-- operators choose their kernels by that: for tests and for timing.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local several_devices = require "moonbeam.internal.several_devices"

local device = {
    open = core.device.open,
    list = core.device.list,
    opened = core.device.opened,
    several = several_devices.open,
    planned = core.device.planned, -- ids of devices that can be planned for without having them
    default = core.device.default,
    dry = core.dry.on, -- is a dry run going on?
    cuda_problem = core.device.cuda_problem,
    bytes = core.device.bytes,
    format_bytes = core.device.format_bytes,
}

-- Errors of a call of the module name it as this field.
local call <const> = {device = core.device.open}

return declared.module(device, "device", nil, function(_, id, options)
    local opened = call.device(id == "auto" and several_devices.auto() or id, options)
    return opened
end)
