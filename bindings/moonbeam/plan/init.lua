--- Knowing before running: what functions take, how much of a scan fits, and ledgers of dry runs.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local ledger = require "moonbeam.ledger"
local peak = require "moonbeam.plan.peak"
local scan_memory = require "moonbeam.tomo.scan_memory"

-- plan(fn, ...): the ledger of a dry run of fn(...). plan("expression"): of an expression or
-- statements over global names, for the prompt.
return declared.module({
    peak = peak.peak,
    peaks = peak.peaks,
    max_count = peak.max_count,
    max_slices = peak.max_slices,
    required_memory = scan_memory.required,
    max_chunk = scan_memory.max_chunk,
}, "plan", nil, function(_, fn, ...)
    if type(fn) ~= "function" and type(fn) ~= "string" then
        fail("argument", "plan", "fn", "fn must be a function or a text, not %s", fn == nil
            and "missing" or "a " .. type(fn))
    elseif type(fn) == "string" then
        local text, problem = fn, nil
        local env = setmetatable({mb = mb}, {__index = _G}) -- assignments end here
        -- The parentheses prevent a tail call, which would leave no line.
        fn = load("return (" .. text .. "\n)", "=plan", "t", env)
        if not fn then
            fn, problem = load(text, "=plan", "t", env)
        end
        if not fn then
            fail("argument", "plan", nil, problem)
        end
    end
    return ledger.dry_run(fn, ...)
end)
