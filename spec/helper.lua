-- What specs share. A spec file says `local helper = require "spec.helper"`; from then on every
-- test of that file is followed by a check that nothing is left in any pool.

local getfenv = require("busted.compatibility").getfenv
local mb = require "moonbeam"

local helper = {}

-- busted gives spec files an environment in which names depend on what runs (inside a test,
-- `pending` ends that test). It is that of whoever requires us.
local busted
for level = 2, 20 do
    local info = debug.getinfo(level, "f")
    if not info then
        break
    end
    local env = getfenv(info.func)
    if env ~= _G and env.after_each then
        busted = env
        break
    end
end

-- For files that specs require, which have no such environment.
helper.busted = busted

-- Live bytes that the file has declared to keep, by device id.
local kept = {}

local function leak_report(device, stats)
    local lines = {
        ("%d bytes are live on %s after the spec:"):format(stats.live, device.id),
    }
    for _, block in ipairs(mb.pool.blocks(device)) do
        lines[#lines + 1] = ("  %d bytes (%s) made at %s"):format(block.bytes, block["end"],
            block.owner)
    end
    return table.concat(lines, "\n")
end

-- Raises when something is live on an opened device, or a pool is damaged.
function helper.check_nothing_live()
    mb.collect()
    for _, device in ipairs(mb.device.opened()) do
        local stats = mb.pool.stats(device)
        if stats.live ~= (kept[device.id] or 0) then
            local report = leak_report(device, stats)
            kept[device.id] = stats.live -- report a leak once, not after every later test
            error(report, 0)
        end
        local problem = mb.pool.check(device)
        if problem then
            error(("the pool of %s is damaged: %s"):format(device.id, problem), 0)
        end
    end
end

-- Arrays that are live now may stay for the rest of the file.
function helper.keep_live()
    mb.collect()
    for _, device in ipairs(mb.device.opened()) do
        kept[device.id] = mb.pool.stats(device).live
    end
end

-- Why there is no GPU, or nil when there is one.
helper.gpu_problem = mb.device.cuda_problem()

-- Ends the test that runs, as skipped.
function helper.skip(reason)
    busted.pending(reason)
end

-- `it` for what needs a CUDA device: skipped, and shown as skipped, where there is none.
function helper.gpu_it(name, f)
    local problem = helper.gpu_problem
    if problem then
        busted.it(name .. " #gpu", function()
            busted.pending("no CUDA device: " .. problem)
        end)
    else
        busted.it(name .. " #gpu", f)
    end
end

-- The device ids that the specs run on: the host, and one GPU where there is one.
function helper.each_device(f)
    f("host", busted.it)
    f("cuda:0", helper.gpu_it)
end

-- The message of the error that f(...) must raise, as text, and the error itself.
function helper.failure(f, ...)
    local ok, err = pcall(f, ...)
    if ok then
        error("no error was raised", 2)
    end
    return tostring(err), err
end

-- Nested tables -> one list of numbers (complex elements are two).
function helper.flatten(value, list)
    list = list or {}
    if type(value) == "table" then
        for _, element in ipairs(value) do
            helper.flatten(element, list)
        end
    else
        list[#list + 1] = value
    end
    return list
end

-- The largest difference of two arrays, the largest magnitude of the first, and whether they agree
-- where they are not finite. Each is an array, a nested table or a number.
function helper.difference(a, b)
    local x = helper.flatten(type(a) == "userdata" and a:to_table() or a)
    local y = helper.flatten(type(b) == "userdata" and b:to_table() or b)
    local largest, magnitude, consistent = 0, 0, #x == #y
    for i = 1, math.min(#x, #y) do
        local p, q = x[i], y[i]
        if p ~= p or q ~= q or math.abs(p) == math.huge or math.abs(q) == math.huge then
            consistent = consistent and (p == q or (p ~= p and q ~= q))
        else
            largest = math.max(largest, math.abs(p - q))
            magnitude = math.max(magnitude, math.abs(p))
        end
    end
    return largest, magnitude, consistent
end

-- The bytes of memory that a command predicted, which it has measured as well; raises where its text
-- does not say so.
function helper.kept_promise(text)
    local predicted, measured = text:match("memory +predicted (%d+) bytes, measured (%d+) bytes")
    assert(predicted and predicted == measured, text)
    return tonumber(predicted)
end

-- Raises unless the arrays agree within `tolerance` times the largest magnitude.
function helper.assert_close(a, b, tolerance, what)
    local largest, magnitude, consistent = helper.difference(a, b)
    what = what and what .. ": " or ""
    if not consistent then
        error(what .. "sizes or non-finite elements differ", 2)
    elseif largest > tolerance * magnitude then
        error(("%sdifference %g at magnitude %g, tolerance %g"):format(what, largest, magnitude,
            tolerance), 2)
    end
end

-- The program that runs the specs, and its output for these arguments: output, exit status.
helper.program = os.getenv("MOONBEAM_BIN") or mb.system.program()

function helper.run_program(arguments, input, program)
    local input_name, output_name = os.tmpname(), os.tmpname()
    local f = assert(io.open(input_name, "w"))
    f:write(input or "")
    f:close()
    local _, _, status = os.execute(("%s %s <%s >%s 2>&1"):format(program
        or helper.program, arguments,
        input_name, output_name))
    f = assert(io.open(output_name))
    local output = f:read("a")
    f:close()
    os.remove(input_name)
    os.remove(output_name)
    return output, status
end

-- Functions that run the program with the arguments format:format(...), in which FOLDER is the
-- folder that folder_of() gives: run returns what run_program does; must returns the output, and
-- raises where the status is not 0.
function helper.programs_in(folder_of)
    local function run(format, ...)
        return helper.run_program((format:format(...):gsub("FOLDER", folder_of())))
    end
    local function must(format, ...)
        local text, status = run(format, ...)
        assert(status == 0, text)
        return text
    end
    return run, must
end

busted.after_each(helper.check_nothing_live)

return helper
