--- Failures on purpose, for specs and benchmarks: allocations, commitments and steps that fail, and
-- guards that are damaged. Programs have no use for these functions. What checks a program is in
-- mb.pool: `check`, `debug` and `damage`.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"

return declared.module(core.debug, "debug")
