--- Iterative reconstruction: the operators, and iterations of the methods (the time of ten more,
-- divided), per slice. Floors count what the passes of an operator read and write, with
-- intermediate spectra; those of methods are left blank. Peers of the host are ASTRA (its CPU
-- algorithms) and scikit-image, timed before in the same run, each with as many slices side by side
-- as there are threads; one that is not installed has a row that says so.

local mb = require "moonbeam"

local MORE <const> = 10 -- iterations; a pass of sart is long
local INNER <const> = 50 -- iterations of total variation in each step of fista
local STEPS <const> = 12 -- of a sweep of total variation

return function(bench)
    local options, device = bench.options, bench.device
    local n, count, slices = options.size, options.angles, options.slices
    local angles = mb.tomo.angles(count)
    local row = bench.table(("## Iterative reconstruction: %d slices of %d x %d from %d angles")
        :format(slices, n, n, count), {"work", "ms a slice", "floor ms", "x floor", "peer",
            "peer ms", "x peer"})
    local peers = {} -- by row, lists of {name, seconds}
    for _, peer in ipairs(bench.peers("iterative", n, count, slices, options.repeats,
        options.only or "")) do
        local work, name = peer.name:match "^(.*) by (.-)$"
        if peer.seconds then
            peers[work] = peers[work] or {}
            table.insert(peers[work], {name = name, seconds = peer.seconds})
        else
            row("skipped: " .. peer.name)
        end
    end
    local function line(name, seconds, floor)
        local own = seconds / slices
        local cells = {("%.4f"):format(own * 1e3), floor and ("%.4f"):format(floor * 1e3 / slices)
            or "", floor and ("%.1f"):format(seconds / floor) or ""}
        local list = peers[name] or {}
        for i = 1, math.max(1, #list) do
            local peer = list[i]
            row(i == 1 and name or "", cells[1], cells[2], cells[3], peer and peer.name, peer
                and ("%.3f"):format(peer.seconds * 1e3), peer
                and ("%.1f"):format(peer.seconds / own))
            cells = {"", "", ""}
        end
    end
    local function report(name, images, fn)
        if bench.wanted(name) then
            line(name, bench.time(fn), images and bench.floor(4 * images * n * n))
        end
    end

    local shape, inside = {slices, n, n}, math.pi / 4
    local a <close> = mb.random(shape, {seed = 1, low = -1, device = device})
    local q <close> = mb.empty(shape, {device = device})
    local sino <close> = mb.random({slices, count, n}, {seed = 2, device = device})
    local rays = count / n -- a sinogram, in images
    local kernel <close> = mb.normal_kernel(angles, n, {device = device})
    local grid = kernel.bytes / (4 * n * n)
    report("normal_kernel, of all slices", nil, function()
        mb.normal_kernel(angles, n, {device = device, out = kernel})
    end)
    for _, circle in ipairs {0, 1} do
        report(("normal_operator%s"):format(circle > 0 and ", circle" or ""),
            (circle > 0 and 1 + inside or 2) * slices + 8 * slices + grid, function()
                mb.normal_operator(a, kernel, {circle = circle, out = q})
            end)
    end
    do
        local p <close> = mb.zeros(shape, {device = device})
        local x <close> = mb.zeros(shape, {device = device})
        local dots <close> = mb.ones({slices}, {dtype = "f64", device = device})
        local growth <close> = mb.ones({slices}, {dtype = "f64", device = device})
        local over <close> = mb.full({slices}, 1e6, {dtype = "f64", device = device})
        report("normal_operator, circle, direction and dots", (9 + 4 * inside) * slices + grid,
            function()
                mb.normal_operator(a, kernel, {circle = 1, dot = true, direction = p,
                    growth = growth, over = over, out = {result = q, dots = dots}})
            end)
        report("cgls_update, circle", 6 * inside * slices, function()
            mb.cgls_update(x, a, p, q, growth, {over = over, circle = 1, out = {squares = dots}})
        end)
        report("slice_dot, circle", 2 * inside * slices, function()
            mb.slice_dot(p, q, {circle = 1, out = dots})
        end)
        report("slice_axpy, circle", 3 * inside * slices, function()
            mb.slice_axpy(x, p, growth, {over = over, circle = 1})
        end)
    end
    for _, model in ipairs {{"pixel", "pixel-driven"}, {"distance", "by distances"}} do
        report("project, " .. model[2], (1 + rays) * slices, function()
            mb.project(a, angles, {cols = n, method = model[1], out = sino})
        end)
        report("backproject, " .. model[2], (1 + rays) * slices, function()
            mb.backproject(sino, angles, {method = model[1], accuracy = "exact", scale = 1,
                out = q})
        end)
    end
    report("fbp", (1 + rays) * slices, function()
        mb.tomo.fbp(sino, angles, {circle = 1}):release()
    end)
    report("fourier_project, circle", (1 + rays) * slices, function()
        mb.fourier_project(a, angles, {cols = n, circle = 1, out = sino})
    end)
    report("fourier_reconstruct, its adjoint, circle", (1 + rays) * slices, function()
        mb.fourier_reconstruct(sino, angles, {circle = 1, filter = "none", scale = 1, out = q})
    end)
    for dimensions = 2, 3 do
        report(("total_variation, %d-D, %d iterations"):format(dimensions, INNER), nil, function()
            mb.total_variation(a, 0.1, {iterations = INNER, dimensions = dimensions, out = q})
        end)
    end
    local sweep = ("total_variation_sweep, 3-D, %d steps"):format(STEPS)
    if bench.wanted(sweep) then
        local state <close> = mb.total_variation_sweep(a, 0.1, {steps = STEPS})
        report(sweep, nil, function()
            mb.total_variation_sweep(a, 0.1, {state = state, steps = STEPS}):release()
        end)
    end

    local function method(name, settings)
        local label = ("%s%s%s%s, %s"):format(name, settings.preconditioner
            and ", preconditioned" or settings.model == "fourier" and "" or ", pixel-driven",
            settings.center and ", axis off the middle" or "",
            settings.lambda and (", TV %d-D, %d inner"):format(settings.dimensions, INNER) or "",
            name == "sart" and "a pass" or "an iteration")
        if not bench.wanted(label) then
            return
        end
        local seconds, more = {}, name == "sart" and 1 or MORE
        for i, iterations in ipairs {1, 1 + more} do
            settings.iterations = iterations
            seconds[i] = bench.time(function()
                mb.tomo[name](sino, angles, settings):release()
            end)
        end
        line(label, (seconds[2] - seconds[1]) / more)
    end
    method("cgls", {model = "fourier"})
    method("cgls", {model = "fourier", center = (n - 1) / 2 + n / 50})
    method("cgls", {model = "fourier", preconditioner = 0.05})
    method("landweber", {model = "fourier"})
    for dimensions = 2, 3 do
        method("fista", {model = "fourier", lambda = 0.1, dimensions = dimensions,
            tv_iterations = INNER})
    end
    method("sirt", {model = "fourier"})
    method("sirt", {model = "pixel"})
    method("sart", {model = "fourier", subsets = 10})
    method("sart", {model = "pixel", subsets = count})
end
