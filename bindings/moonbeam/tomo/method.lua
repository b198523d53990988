--- The two methods of reconstruction, and which one is taken: `tomo.reconstruct` and
-- `tomo.choose_method`.
--
-- Both methods invert the same transform with the same filters, geometry and scale, but their
-- values differ. Filtered back-projection interpolates linearly, which smooths a little. The
-- direct Fourier method interpolates by the rows' trigonometric polynomial, which keeps the
-- highest frequencies, and with them more of the noise. So the choice follows from what is asked
-- alone, never from budget, device or speed: the direct Fourier method, unless only the other one
-- can do it.

local mb = require "moonbeam"
local angle_weights = require "moonbeam.tomo.angle_weights"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local memory = require "moonbeam.plan.peak"
local fbp = require "moonbeam.tomo.fbp"
local tables = require "moonbeam.internal.tables"

local method = {}

method.options = declared.options(
    {"method", "choice", "fourier: the direct Fourier method, sharp and fast; fbp: filtered "
        .. "back-projection, less memory, smooths fine detail and noise a little; auto: fourier, "
        .. "or fbp if only that can do what is asked",
        choices = {"auto", "fbp", "fourier"}, default = "auto"},
    {"mode", "choice", "of fbp: in_place needs less memory than fast and is slower; auto: fast if "
        .. "it fits", choices = {"auto", "fast", "in_place"}, default = "auto"},
    {"consume", "boolean", "give the sinogram up: fbp filters it in place, the Fourier method "
        .. "releases it"},
    fbp.options, declared.from("fourier_reconstruct", "pairs"))

local ONLY = { -- options that one method alone has
    fbp = {half_acquisition = "half acquisition", mode = "memory mode in_place",
        slice_shifts = "an axis of its own for every slice"},
    fourier = {pairs = "batches of pairs"},
}

-- The option that keeps a method from being used, in words; nil when none does.
local function excluded(name, options)
    for option, words in pairs(ONLY[name == "fbp" and "fourier" or "fbp"]) do
        local value = options[option]
        if value and not (option == "mode" and value ~= "in_place") then
            return words
        end
    end
end

-- Ways to go about it; of the modes of a method the faster one first.
local WAYS = {
    {method = "fourier", mode = "fast", name = "direct Fourier method"},
    {method = "fbp", mode = "fast", name = "filtered back-projection"},
    {method = "fbp", mode = "in_place", name = "filtered back-projection, in place"},
}

local function run(way, sino, angles, options)
    local foreign, own = ONLY[way.method == "fbp" and "fourier" or "fbp"], {}
    for key, value in pairs(options) do
        own[key] = not foreign[key] and key ~= "method" and value or nil
    end
    if way.method == "fbp" then
        own.mode = way.mode
        return fbp.reconstruct(sino, angles, own)
    end
    own.consume = nil
    own.weights = angle_weights.of(options.weights, angles, sino.shape[sino.rank - 1], false,
        "tomo.reconstruct")
    fbp.check_pad_width(own.pad_width, sino.shape[sino.rank], "tomo.reconstruct")
    local slices = mb.fourier_reconstruct(sino, angles, own)
    if options.consume then
        sino:release()
    end
    return slices
end

local function checked(options, op)
    options = declared.checked(method.options, options, op)
    local asked = options.method
    local no_fbp, no_fourier = excluded("fbp", options), excluded("fourier", options)
    if asked ~= "auto" and excluded(asked, options) then
        fail("argument", op, "method", "method %s does not do %s; leave the method to \"auto\", "
            .. "or the option out", asked, excluded(asked, options))
    elseif no_fbp and no_fourier then
        fail("argument", op, "method", "no method does both %s and %s", no_fourier, no_fbp)
    end
    return options
end

-- The method that options ask for, and why, in words.
local function decided(options)
    if options.method ~= "auto" then
        return options.method, "asked for"
    end
    local words = excluded("fourier", options)
    if words then
        return "fbp", words .. " needs it"
    end
    words = excluded("fbp", options)
    return "fourier", words and words .. " needs it" or "the default"
end

-- The ways that options allow: those of the method that is taken, in the order in which they are
-- tried, and then those of the other method, which may be named but not taken. `same` says
-- whether mode "in_place" gives the values of "fast".
local function ways_of(options, same)
    local taken, why = decided(options)
    local mine, others = {}, {}
    for _, way in ipairs(WAYS) do
        local modes = options.mode == "auto" or options.mode == way.mode
        if modes and not excluded(way.method, options) then
            local own = way.method == taken and (way.mode == "fast" or same
                or options.mode == "in_place")
            local entry = {method = way.method, mode = way.mode, name = way.name, taken = own,
                reason = own and ("%s (%s)"):format(way.name, why) or way.name}
            table.insert(own and mine or others, entry)
        end
    end
    return table.move(others, 1, #others, #mine + 1, mine)
end

-- The bytes that a way takes beside what is given.
local function peak_of(way, shape, angles, options, device)
    local own = tables.merged(options)
    local given = mb.pool.round(4 * (#shape == 3 and shape[1]
        or 1) * shape[#shape - 1] * shape[#shape])
        + (options.out and mb.pool.round(options.out.bytes) or 0)
    return memory.peak(function(dry)
        local sino <close> = mb.empty(shape, {device = dry})
        own.out = options.out and mb.empty(options.out.shape, {device = dry})
        run(way, sino, angles, own):release()
    end, device).peak - given
end

-- The first way that fits, or where none does the one that takes least; with their peaks. Ways
-- that may not be taken are looked at where `all` is true or none of the others fits.
local function choose(shape, angles, options, device, available, all)
    local same = fbp.same_in_place(device, shape[#shape - 1], shape[#shape], options)
    local ways, best = ways_of(options, same), nil
    for _, way in ipairs(ways) do
        if all or not best or not best.fits then
            way.peak = peak_of(way, shape, angles, options, device)
            way.fits = way.peak <= available
            if way.taken and (not best or not best.fits and (way.fits or way.peak < best.peak)) then
                if best and way.fits then
                    way.reason = ("%s (the faster mode takes %s more)"):format(way.name,
                        mb.device.format_bytes(best.peak - way.peak))
                end
                best = way
            end
        end
    end
    return best, ways
end

--- The ways to reconstruct with these options on a device, in the order in which they are tried:
-- {method, mode, name, reason, taken}. One that is not `taken` would give other values: it may be
-- named where no other fits. Runs nothing. Raises where no method does what is asked.
function method.ways(n_angles, cols, options, device)
    options = checked(options, "tomo.choose_method")
    return ways_of(options, fbp.same_in_place(device, n_angles, cols, options))
end

--- Which way `tomo.reconstruct` takes for sinograms of some shape. Nothing runs.
--
-- The method follows from the options alone. The mode is the faster one that fits, as long as the
-- values stay the same.
-- Returns {method = "fbp" or "fourier", mode = "fast" or "in_place", reason = text, peak (bytes
-- beside the sinograms, exact), fits} and the list of all ways that the options allow, with the
-- same fields and `taken`: whether `tomo.reconstruct` may take that way.
-- Errors: argument, shape.
method.choose = declared("tomo.choose_method", {
    {"shape", "list", "{rows, angles, columns} or {angles, columns}"},
    {"angles", "angles", "one per projection", unit = "rad"},
    options = declared.options(method.options,
        {"device", "device", "where the work would be done", usual = "the default device"},
        {"available", "bytes", "for all but the sinograms", unit = "bytes",
            usual = "what the budget leaves when the sinograms are there"}),
}, function(shape, angles, options)
    local device = mb.device(options.device or mb.default_device())
    local available = options.available and mb.device.bytes(options.available)
    local rest = checked(declared.part(method.options, options), "tomo.choose_method")
    local rank = #shape
    if rank ~= 2 and rank ~= 3 then
        fail("shape", "tomo.choose_method", "shape", "shape has %d extents; sinograms are (row, "
            .. "angle, column) or (angle, column)", rank)
    end
    for i, extent in ipairs(shape) do
        arguments.count(extent, "tomo.choose_method", ("extent %d of shape"):format(i), 1, 1 << 31)
    end
    arguments.angles(angles, "tomo.choose_method", "angles", shape[rank - 1])
    if not available then
        local stats = mb.pool.stats(device)
        available = stats.budget - stats.live - mb.pool.round(4 * (rank == 3 and shape[1]
            or 1) * shape[rank - 1] * shape[rank])
    end
    return choose(shape, angles, rest, device, available, true)
end)

-- Raises that no way fits: what each takes, and what can be done.
local function fail_budget(best, ways, available)
    local remedies = {}
    for _, way in ipairs(ways) do
        if way.fits and not way.taken then
            remedies[#remedies + 1] = ("method = \"%s\", mode = \"%s\" takes %s and gives "
                .. "slightly other values"):format(way.method,
                way.mode, mb.device.format_bytes(way.peak))
        end
    end
    remedies[#remedies + 1] = "fewer slices at a time take less"
    fail("budget", "tomo.reconstruct", nil,
        "the %s needs %s beside the sinograms, %s are available; %s", best.name,
        mb.device.format_bytes(best.peak), mb.device.format_bytes(available),
        table.concat(remedies, "; "))
end

--- Reconstructs slices from line integrals, by the method that suits.
--
-- What only one method can do chooses it: half_acquisition, slice_shifts and mode "in_place" need
-- fbp, pairs need fourier. Otherwise the method is fourier, on every device and with
-- every budget, because the values of the two differ: back-projection interpolates linearly, which
-- smooths fine detail and noise a little. Line integrals have no unit. With the default scale, pi /
-- number of angles, the slices are attenuation per pixel; divide by the pixel size for attenuation
-- per meter. Angles that do not cover half a turn evenly are weighted (see tomo.fbp).
-- Returns the slices (row, y, x), or (y, x), f32, and the way taken as `tomo.choose_method`
-- describes it.
-- Errors: argument (an unknown option, two that no method does together, an angle that is not
-- finite), dtype, shape (sino has other axes, or not one row per angle), budget (no way fits; the
-- error says what would).
-- Reference: f(x, y) = scale * sum over angles of q(X cos t + Y sin t + center), q the
-- ramp-filtered line integrals (Kak and Slaney 1988, ch. 3.3; the Fourier method: see
-- fourier_reconstruct).
method.reconstruct = declared("tomo.reconstruct", {
    {"sino", "array", "sinograms (row, angle, column), or one (angle, column)", rank = {2, 3}},
    {"angles", "angles", "one per projection, in any order", unit = "rad"},
    options = method.options,
}, function(sino, angles, options)
    options = checked(options, "tomo.reconstruct")
    arguments.angles(angles, "tomo.reconstruct", "angles", sino.shape[sino.rank - 1])
    if options.method == "fourier" or options.method == "fbp" and options.mode ~= "auto" then
        local way = {method = options.method, mode = options.mode ~= "auto" and options.mode
            or "fast", reason = "asked for"}
        return run(way, sino, angles, options), way
    end
    local function pick_way()
        local stats = mb.pool.stats(sino.device)
        local available = stats.budget - stats.live
        return available, choose(sino.shape, angles, options, sino.device, available)
    end
    local available, way, ways = pick_way()
    if not way.fits then
        mb.collect() -- what is garbage does not count
        available, way, ways = pick_way()
    end
    if not way.fits then
        fail_budget(way, ways, available)
    end
    return run(way, sino, angles, options), way
end)

return method
