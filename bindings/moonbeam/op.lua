-- Operators: list, describe, estimate, run, and every operator as a function. A function's name is
-- kept, so that help can be asked for the function itself.

local core = require "moonbeam.core"

local op = {
    list = core.op.list,
    describe = core.op.describe,
    estimate = core.op.estimate,
    supported = core.op.supported,
    run = core.op.run,
    functions = {},
    names = setmetatable({}, { __mode = "k" }),
}

for _, name in ipairs(op.list()) do
    local f = core.op.closure(name)
    op.functions[name] = f
    op.names[f] = name
end

return op
