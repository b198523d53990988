-- Iterations to the same error, by start and preconditioner: a table of
-- docs/tutorials/iterative.md. The error is 5 % more than the least that iterations from zero
-- reach.
-- usage: moonbeam scripts/bench/iterative_starts.lua [SIZE]

local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local size = mb.usage(129)
local NOISE <const>, MARGIN <const> = 0.01, 1.05 -- of the largest line integral; of the error

local WAYS = {{}, {start = "fbp"}, {preconditioner = 0.05}, {start = "fbp", preconditioner = 0.05}}
-- Method, iterations, options, whether it has a preconditioner.
local METHODS = {{"cgls", 30, {}, true}, {"landweber", 300, {}}, {"sirt", 300, {}},
    {"fista", 300, {lambda = 0.1}}, {"fista", 300, {lambda = 0, nonnegative = false}, true}}

local function sinogram_of(head, angles)
    local projections <close> = mb.ellipsoid_projections(head, angles, {0}, size)
    local view <close> = projections:permute(2, 1, 3)
    local sinogram = view:copy()
    local most = sinogram:max()
    for seed = 1, 2 do
        local noise <close> = mb.random(sinogram.shape, {seed = seed, low = -1, high = 1})
        mb.binary(noise, "mul", {scalar = NOISE * most * math.sqrt(3 / 2), out = noise})
        mb.binary(sinogram, "add", {b = noise, out = sinogram})
    end
    return sinogram
end

-- The errors after each iteration.
local function errors_of(method, sinogram, angles, truth, way)
    local name, iterations, own = table.unpack(method)
    local errors, options = {}, tables.merged({iterations = iterations}, own, way)
    options.callback = function(k, x)
        local difference <close> = x - truth
        errors[k] = difference:norm() / truth:norm()
    end
    mb.tomo[name](sinogram, angles, options):release()
    return errors
end

print("| method | angles | error | from zero | from fbp | preconditioner | both |")
print("|---|---|---|---|---|---|---|")
for _, method in ipairs(METHODS) do
    for _, count in ipairs {40, 100, 250, 1000} do
        local angles = mb.tomo.angles(count)
        local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * size, nil, 2 / size)
        local sinogram <close> = sinogram_of(head, angles)
        local whole <close> = mb.ellipsoid_volume(head, {0}, {size, size})
        local truth <close> = mb.circular_mask(whole)
        local cells, goal = {}, nil
        for i, way in ipairs(WAYS) do
            if method[4] or not way.preconditioner then
                local errors = errors_of(method, sinogram, angles, truth, way)
                goal = goal or math.min(table.unpack(errors)) * MARGIN
                cells[i] = "not reached"
                for k = #errors, 1, -1 do
                    cells[i] = errors[k] <= goal and tostring(k) or cells[i]
                end
            end
        end
        local lambda = method[3].lambda
        print(("| %s%s | %d | %.3f | %s | %s | %s | %s |"):format(method[1], lambda
            and ", lambda = " .. lambda or "", count, goal, cells[1], cells[2], cells[3] or "",
            cells[4] or ""))
    end
end
