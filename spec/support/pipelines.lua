-- A small scan, steps of a script, and random recipes for them.

local mb = require "moonbeam"
local schedule = require "moonbeam.stream.schedule"

local pipelines = {}

local ANGLES <const>, ROWS <const>, COLS <const> = 24, 13, 32
pipelines.ANGLES, pipelines.ROWS, pipelines.COLS = ANGLES, ROWS, COLS

-- Steps of a script: frames that are needed whole, a neighborhood of rows, and packets of three.
pipelines.OWN = {
    {
        name = "smooth_frames", summary = "Smooths whole frames.",
        takes = {quantity = "any", layout = "frames"},
        gives = {quantity = "same", layout = "same"}, cuts = {"frames"},
        run = function(block)
            block:replace(mb.gaussian_filter(block.data, {0, 1.5, 1.5}))
        end,
    },
    {
        name = "neighbors", summary = "Smooths along rows.",
        takes = {quantity = "any", layout = "frames"},
        gives = {quantity = "same", layout = "same"}, cuts = {"rows"},
        needs = function(_, first, last)
            return first - 2, last + 2
        end,
        run = function(block)
            block:replace(mb.gaussian_filter(block.data, {0, 0.5, 0}))
        end,
    },
    {
        name = "mean_of_three", summary = "Takes the mean of three slices from each.",
        takes = {quantity = "any", layout = "slices"},
        gives = {quantity = "same", layout = "same"},
        packet = function()
            return 3
        end,
        run = function(block)
            for first = 1, block.data.shape[1], 3 do
                local last = math.min(first + 2, block.data.shape[1])
                local part <close> = block.data:view({first, last})
                local mean = mb.bound(0, part.mean, part)
                mb.binary(part, "sub", {scalar = mean, out = part})
            end
        end,
    },
}

--- A scan with flats and darks in host memory, until the second value is closed.
function pipelines.open_scan()
    local raw = mb.random({ANGLES, ROWS, COLS}, {dtype = "u16", low = 300, high = 900,
        seed = 3, device = "host"})
    local flats = mb.random({3, ROWS, COLS}, {dtype = "u16", low = 980, high = 1020, seed = 4,
        device = "host"})
    local darks = mb.random({2, ROWS, COLS}, {dtype = "u16", low = 3, high = 9, seed = 5,
        device = "host"})
    local scan = mb.scan.of_arrays(raw, mb.tomo.angles(ANGLES), {flats = flats, darks = darks})
    return scan, setmetatable({}, {__close = function()
        for _, array in ipairs {raw, flats, darks} do
            array:release()
        end
    end})
end

--- Returns a function that picks from a list.
function pipelines.random_of(seed)
    local state = seed * 2654435761 % 4294967296
    return function(list)
        state = (state * 1664525 + 1013904223) % 4294967296
        return list[(state >> 12) % #list + 1]
    end
end

--- A recipe that makes sense.
function pipelines.random_recipe(seed)
    local pick, list = pipelines.random_of(seed), {}
    local function add(step)
        list[#list + 1] = step or nil
    end
    add(pick {false, false, {"crop", rows = {2, 12}}, {"crop", columns = {3, 30}}})
    add {"flat_field", mode = pick {"mean", "median"}}
    add(pick {false, "smooth_frames", "neighbors"})
    add "minus_log"
    add(pick {false, false, "neighbors", "smooth_frames", {"crop", rows = {3, 11}}})
    local lean = pick {false, false, {"tilt", angle = 0.01}}
    add(lean)
    local measured = pick {true, false, false}
    add(measured and "center")
    local method = lean and "fbp" or pick {"fbp", "fourier"}
    add {method, center = not measured and pick {15.5, 14.25, 17} or nil,
        filter = pick {"ram-lak", "hann", "shepp-logan"}, padding = pick {"zero", "edge"},
        circle = pick {0, 1}, accuracy = pick {"fast", "exact"},
        mode = method == "fbp" and pick {"auto", "fast", "in_place"} or nil}
    add(pick {false, false, "mean_of_three"})
    add(pick {false, false, {"rescale", dtype = "uint16", range = {-0.1, 0.2}},
        {"rescale", dtype = "uint16", sample = 3}, {"rescale", dtype = "float16"},
        {"rescale", dtype = "uint8", percentiles = {1, 99}}})
    return list
end

--- The lanes get on in a random order until the returned value is closed: often one of them several
-- times.
function pipelines.random_turns(seed)
    local pick, favorite = pipelines.random_of(seed), 1
    schedule.turn = function(list)
        if pick {true, false, false} then
            favorite = pick {1, 2, 3}
        end
        for _, number in ipairs(list) do
            if number == favorite and pick {true, true, false} then
                return number
            end
        end
        return pick(list)
    end
    return setmetatable({}, {__close = function()
        schedule.turn = nil
    end})
end

--- Puts f(what was there) in the place of module[name] until the returned value is closed.
function pipelines.in_place_of(module, name, f)
    local before = module[name]
    module[name] = f(before)
    return setmetatable({}, {__close = function()
        module[name] = before
    end})
end

--- The result of a recipe as a string, in the order of its rows, and the report.
function pipelines.volume(scan, recipe, options)
    local own = {quiet = true, pinned = "1Mi", steps = pipelines.OWN}
    for name, value in pairs(options or {}) do
        own[name] = value
    end
    local parts = {}
    local report = mb.pipeline(scan, recipe, own):run(function(block, first)
        local host <close> = block:to "host"
        parts[#parts + 1] = {first, host:to_string()}
    end)
    table.sort(parts, function(a, b) return a[1] < b[1] end)
    for i, part in ipairs(parts) do
        parts[i] = part[2]
    end
    return table.concat(parts), report
end

return pipelines
