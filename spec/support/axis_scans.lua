--- Random scans with defects of the detector, and random chains of steps before the search for the
-- axis. A number makes a case, always the same one.

local mb = require "moonbeam"

local axis_scans = {}

local DARK <const> = 100

-- A generator of numbers: random(n) gives 1 to n, random() a part of 1.
local function random_of(seed)
    local state = (seed * 48271 + 12345) % 2147483647
    local function random(n) -- minimal standard generator (Park and Miller 1988)
        state = state * 16807 % 2147483647
        return n and state % n + 1 or state / 2147483647
    end
    for _ = 1, 5 do
        random()
    end
    return random
end

-- Blobs all over a disc.
local function grains(random, count, radius)
    local list = {}
    for _ = 1, count do
        local r, phi = radius * math.sqrt(random()), 2 * math.pi * random()
        local size = 0.12 * radius * (0.4 + random())
        for _, value in ipairs {1, size, size * (0.5 + random()), 1e6, r * math.cos(phi),
            r * math.sin(phi), 0, math.pi * random()} do
            list[#list + 1] = value
        end
    end
    return list
end

local function object_of(random, facts)
    local n, rows, reach = facts.n, facts.rows, facts.reach
    local list = random(2) == 1 and mb.phantom.scale(mb.phantom.shepp_logan, reach, rows)
        or grains(random, 30, 0.85 * reach)
    local probe <close> = mb.ellipsoid_projections(list, {0, 0.8, 1.6, 2.4},
        mb.phantom.heights(rows), n)
    local factor = (0.4 + 1.6 * random()) / probe:max()
    for i = 1, #list, 8 do
        list[i] = list[i] * factor
    end
    return list
end

local function columns_of(array, column)
    return array:view(mb.all, mb.all, {column + 1, column + 1})
end

-- Sets a column of frames to `low` to `high`, anew in each pixel.
local function scatter(array, column, low, high, seed)
    local view <close> = columns_of(array, column)
    local values <close> = mb.random(view.shape, {seed = seed, low = low, high = high + 1})
    mb.convert(values, "u16", {out = view})
end

-- What becomes of a column: in counts, flats and darks.
axis_scans.DEFECTS = {
    dead = function(a, column, seed)
        scatter(a.counts, column, DARK - 9, DARK + 9, seed)
        scatter(a.flats, column, DARK - 9, DARK + 9, seed + 1)
        scatter(a.darks, column, DARK - 9, DARK + 9, seed + 2)
    end,
    saturated = function(a, column)
        for _, array in pairs(a) do
            local view <close> = columns_of(array, column)
            view:fill(65535)
        end
    end,
    hot = function(a, column, seed, level)
        scatter(a.counts, column, 2.4 * level, 2.6 * level, seed)
        scatter(a.flats, column, 2.4 * level, 2.6 * level, seed + 1)
    end,
    noisy = function(a, column, seed, level)
        scatter(a.counts, column, DARK, level, seed)
    end,
    stuck = function(a, column, _, level)
        for _, array in pairs {a.counts, a.flats} do
            local view <close> = columns_of(array, column)
            view:fill(math.floor(0.7 * level))
        end
    end,
}
local NAMES <const> = {"dead", "hot", "noisy", "saturated", "stuck"}

--- The facts of a scan: {n, rows, count, turn, center, photons, defects = {{kind, column}, ...}}.
function axis_scans.facts(seed)
    local random = random_of(seed)
    local facts = {seed = seed, n = 90 + random(90), rows = 6 + random(18),
        count = 100 + random(150),
        turn = random(3) == 1, photons = ({300, 2000, 20000, 20000})[random(4)], defects = {}}
    facts.center = (facts.n - 1) / 2 + (random() - 0.5) * 0.24 * facts.n
    facts.reach = facts.n / 2 * (0.45 + 0.45 * random())
    for _ = 1, random(3) do
        local kind = NAMES[random(#NAMES)]
        local column = random(3) == 1 and math.floor(facts.center + random(3) - 1.5)
            or random(facts.n - 8) + 3
        for beside = 0, random(4) == 1 and random(3) or 0 do
            facts.defects[#facts.defects + 1] = {kind, column + beside}
        end
    end
    local more = random_of(seed + 50000)
    facts.clean_references = more(6) == 1 -- as constants are
    facts.exposure = more(6) == 1 and 0.5 + more() or nil -- of flats, in parts of a projection's
    facts.arc = not facts.turn and more(5) == 1 and math.pi * (1.05 + 0.7 * more()) or nil
    facts.twice = more(6) == 1 and more(4) or 0 -- views that are taken again at the end
    facts.flip = more(4) == 1 and {rows = more(2) == 1, columns = more(2) == 1} or nil
    facts.reversed = more(8) == 1
    facts.stitched = facts.turn and more(6) == 1
    return facts, random
end

--- A scan, to be closed: {scan, facts}. `clean`: without its defects.
function axis_scans.scan(seed, clean)
    local facts, random = axis_scans.facts(seed)
    local angles, span = {}, facts.turn and 2 * math.pi or facts.arc or math.pi
    local ends = random(2) == 1 and 1 or 0
    for i = 1, facts.count do
        angles[i] = span * (i - 1) / (facts.count - ends)
    end
    for i = 1, facts.twice do
        angles[facts.count + i] = angles[1 + (i - 1) * (facts.count - 1) // 3]
    end
    local object = object_of(random, facts)
    local counts <close> = mb.ellipsoid_projections(object, angles,
        mb.phantom.heights(facts.rows), facts.n, {center = facts.center})
    mb.unary(counts, "neg", {out = counts})
    mb.unary(counts, "exp", {out = counts})
    mb.binary(counts, "mul", {scalar = facts.photons, out = counts})
    local flats <close> = mb.full({6, facts.rows, facts.n},
        facts.photons * (facts.exposure or 1))
    local arrays = {}
    for name, light in pairs {counts = counts, flats = flats} do
        mb.poisson(light, {seed = seed + #name, out = light})
        mb.binary(light, "add", {scalar = DARK, out = light})
        arrays[name] = mb.convert(light, "u16")
    end
    arrays.darks = mb.full({4, facts.rows, facts.n}, DARK, {dtype = "u16"})
    for i, defect in ipairs(clean and {} or facts.defects) do
        axis_scans.DEFECTS[defect[1]](arrays, defect[2], 7 * seed + 3 * i, facts.photons + DARK)
    end
    if facts.clean_references then
        arrays.flats:fill(math.floor(facts.photons * (facts.exposure or 1)) + DARK)
        arrays.darks:fill(DARK)
    end
    local scan = mb.scan.of_arrays(arrays.counts, angles, {flats = arrays.flats,
        darks = arrays.darks, pixel_size = 1e-6, flats_exposure = facts.exposure})
    return setmetatable({scan = scan, facts = facts}, {__close = function()
        for _, array in pairs(arrays) do
            array:release()
        end
    end})
end

-- Steps by what they take. Of each group a chain has some, in this order.
local COUNTS <const> = {{"dead_pixels"}, {"dezinger", preset = "nabu", threshold = 2000},
    {"bin", rows = 2, columns = 1}}
local FLATS <const> = {{"flat_field"}, {"flat_field", preset = "nabu", interpolation = "mean"},
    {"flat_field"},
    {"flat_field", preset = "httomo"}, {"flat_field", mode = "median"}, {"flat_field_eigen"}}
local LIGHT <const> = {{"dezinger", threshold = 0.3}, {"median", size = 3},
    {"gaussian", sigma = 1.5}, {"unsharp", coefficient = 1, sigma = 1},
    {"paganin", delta_beta = 50, energy = 20000, distance = 0.002, log = false},
    {"paganin", delta_beta = 50, energy = 20000, distance = 0.002, log = false, extent = "rows"},
    {"bin"}, {"resample", factor = 0.75}, {"rotate", angle = 1e-3}, {"rotate", angle = -1e-3},
    {"distortion", center = {5, 60}, factors = {1, 1e-5}}, {"normalize_background"}}
local LINES <const> = {{"stripes_sorting"}, {"stripes_all"}, {"stripes_wavelet"},
    {"stripes_mean"}, {"stripes_titarenko"}, {"double_flat_field"}, {"gaussian", sigma = 1},
    {"median", size = 3}, {"average", frames = 2}, {"select", every = 2}}
local METHODS <const> = {"auto", "auto", "auto", "registration"}

--- A chain of steps before the search, and the search: a list of steps of a recipe.
function axis_scans.chain(seed)
    local random, list = random_of(seed + 100000), {}
    local function add(group, chance)
        if random(chance) == 1 then
            list[#list + 1] = group[random(#group)]
        end
    end
    local facts = axis_scans.facts(seed)
    list[1] = facts.flip and {"flip", rows = facts.flip.rows, columns = facts.flip.columns}
    list[#list + 1] = facts.reversed and {"reverse_rotation"} or nil
    add(COUNTS, 4)
    add(FLATS, 1) -- eigen flats need air in an eighth at both edges
    if list[#list][1] == "flat_field_eigen" and math.abs(facts.center - (facts.n - 1) / 2)
        + facts.reach > 0.37 * facts.n then
        list[#list] = {"flat_field"}
    end
    add(LIGHT, 2)
    add(LIGHT, 4)
    if random(3) > 1 then
        list[#list + 1] = {"minus_log"}
        add(LINES, 2)
        add(LINES, 4)
    end
    if facts.stitched and facts.twice == 0 then
        list[#list + 1] = {"stitch", center = facts.center}
    end
    list[#list + 1] = {"center", method = METHODS[random(#METHODS)]}
    return list
end

--- The text of a chain.
function axis_scans.text(chain)
    local parts = {}
    for i, step in ipairs(chain) do
        parts[i] = step[1] .. (step.preset and ":" .. step.preset or "")
            .. (step.extent and ":" .. step.extent or "") .. (step.method and ":" .. step.method
            or "")
    end
    return table.concat(parts, " ")
end

--- What a chain finds in a scan: {error (px), verdict, how, as_planned}.
function axis_scans.search(held, chain)
    local recipe, logged = table.move(chain, 1, #chain, 1, {}), false
    for _, step in ipairs(chain) do
        logged = logged or step[1] == "minus_log"
    end
    recipe[#recipe + 1] = not logged and {"minus_log"} or nil
    recipe[#recipe + 1] = {"fbp", size = 16}
    local pipeline = mb.pipeline(held.scan, recipe, {quiet = true, devices = {"host"}})
    local done = pipeline:run(function() end)
    local verdict = done.verdicts.center
    return {error = done.named.center - held.facts.center, verdict = verdict.verdict,
        how = verdict.how, remedy = verdict.remedy, as_planned = done.as_planned}
end

return axis_scans
