--- Prints what a file says of itself, as a Lua table: what a mutant must not change without a word.
--
--   moonbeam scripts/fuzzing/facts.lua scan|image FILE

local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local function quoted(value)
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

local facts = {}

local function say(name, value)
    facts[#facts + 1] = ("%s = %s"):format(name, quoted(value))
end

if arg[1] == "scan" then
    local scan <close> = assert(mb.scan.open(arg[2]))
    for _, name in ipairs {"n_angles", "rows", "cols", "dtype", "pixel_size"} do
        say(name, scan[name])
    end
    for _, name in ipairs {"flats", "darks"} do
        local frames <close> = scan[name](scan, {1, 1})
        say(name, frames and frames.shape[1])
    end
    local list = tables.mapped(scan.angles, function(angle) return ("%.17g"):format(angle) end)
    facts[#facts + 1] = ("angles = {%s}"):format(table.concat(list, ", "))
else
    local image <close>, meta = mb.images.read(arg[2])
    say("shape", table.concat(image.shape, " x "))
    say("dtype", image.dtype)
    for _, name in ipairs {"spacing", "unit", "channels", "frames"} do
        say(name, meta and meta[name])
    end
    facts[#facts + 1] = ("sum = %q"):format(image:sum())
end
print(("return {%s}"):format(table.concat(facts, ", ")))
