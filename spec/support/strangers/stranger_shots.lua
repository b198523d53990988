-- Random scans and what their files say of them, each with its right slice.
--
-- A shot is {scan (of stranger_scans), segments (frames in the order of acquisition), pixel (m),
-- fields, more, ...}: what stranger_layouts writes. A segment is {key, control, n, frames, angles
-- (degrees), after (flats behind the projections), fields}. A statement changes a shot before its
-- frames are made (`before`) or afterwards (`after`), and has the words (patterns of lower case)
-- by which a line names it.

local mb = require "moonbeam"
local scans = require "spec.support.strangers.stranger_scans"

local stranger_shots = {}

local UNITS <const> = {
    {name = "degree", option = "deg", factor = 1}, {name = "deg", option = "deg", factor = 1},
    {name = "degrees", option = "deg", factor = 1},
    {name = "rad", option = "rad", factor = math.pi / 180},
    {name = "radian", option = "rad", factor = math.pi / 180},
}
local LENGTHS <const> = {{name = "m", per_meter = 1}, {name = "um", per_meter = 1e6},
    {name = "mm", per_meter = 1e3}, {name = "nm", per_meter = 1e9}}

-- The error that noise of one photon a pixel without sample would add to a slice.
local NOISE <const> = 9

local function uniform(random, low, high)
    return low + (high - low) * random()
end

-- A scan of half a turn without anything odd.
local function usual(random)
    local cols = random(118, 143)
    local n = random(176, 190)
    local first = ({0, 0, 0, -90, 30, 12.5})[random(6)]
    return {
        cols = cols, rows = random(5), n = n,
        angles = scans.steps(n, first, 180 / n),
        center = (cols - 1) / 2 + uniform(random, -4, 4),
        mu = 2 / cols, half = cols / 2 * uniform(random, 0.95, 1),
    }
end

local function segment(key, frames, angles, more)
    local made = {key = key, n = frames.shape[1], frames = frames, angles = angles}
    for name, value in pairs(more or {}) do
        made[name] = value
    end
    return made
end

local function last_projection(shot)
    for i = #shot.segments, 1, -1 do
        if shot.segments[i].key == 0 then
            return shot.segments[i], i
        end
    end
end

-- A field of all frames of an NXtomo entry: values of projections by `value_of(i)`.
local function add_field(shot, path, unit, value_of, default)
    local name = path:match "[^/]+$"
    shot.fields[#shot.fields + 1] = {name = name, path = path, unit = unit, default = default}
    for _, part in ipairs(shot.segments) do
        if part.key == 0 and not part.control then
            local list = {}
            for i = 1, part.n do
                list[i] = value_of(i)
            end
            part.fields = part.fields or {}
            part.fields[name] = list
        end
    end
end

local function add_more(shot, path, value, attributes)
    shot.more[#shot.more + 1] = {path, value, attributes}
end

-- The projections in another order: of the frames with these numbers.
local function reorder(scan, order)
    local angles = {}
    for i, k in ipairs(order) do
        angles[i] = scan.angles[k]
    end
    scan.angles = angles
end

local function shuffled(random, n)
    local order = scans.steps(n, 1, 1)
    for i = n, 2, -1 do
        local k = random(i)
        order[i], order[k] = order[k], order[i]
    end
    return order
end

-- Counts of photons instead of their mean, of all frames. The number of photons bounds the error.
local function make_noisy(shot, photons)
    shot.photons = photons
    for i, part in ipairs(shot.segments) do
        local mean <close> = part.frames:cast("f32", {scale = photons / shot.beam})
        part.frames:release()
        local noisy <close> = mb.poisson(mean, {seed = shot.seed * 100 + i})
        part.frames = noisy:cast("u16")
    end
    shot.dark, shot.beam = shot.dark * photons / shot.beam, photons
    shot.right = math.sqrt((shot.right or scans.RIGHT) ^ 2
        + NOISE ^ 2 / photons * shot.scan.cols / 2 / shot.scan.half)
end

-- The scan becomes a half acquisition.
local function make_half(shot, random)
    local scan = shot.scan
    local far = uniform(random, 0.78, 0.84) * scan.cols
    scan.center = random(2) == 1 and far or scan.cols - 1 - far
    scan.half = uniform(random, 0.74, 0.78) * scan.cols
    scan.angles = scans.steps(480, scan.angles[1], 0.75)
    shot.half, shot.states_view = true, true
end

local function mirrored(frames, columns, rows)
    local _, n_rows, cols = table.unpack(frames.shape)
    local view <close> = frames:view(mb.all, rows and {n_rows, 1, -1} or mb.all,
        columns and {cols, 1, -1} or mb.all)
    return view:copy()
end

-- Frames of a flat under a profile of the columns.
local function profiled(frames, shot, profile)
    local row = mb.array({{profile}}, {dtype = "f32", device = "host"})
    local beam <close> = row:cast("f32", {scale = shot.beam, offset = shot.dark})
    row:release()
    local part <close> = beam:broadcast_to(frames.shape)
    frames:release()
    return part:cast "u16"
end

-- ---- statements ----
--
-- {name, families, excludes (a group of which a shot has one), words, before, after, only (listed
-- in the layout's `states`), rare (drawn once in so many), quiet
-- (a run has nothing to warn of), told (a run that obeys it says so)}

local GEOMETRY <const>, ORDER <const>, PIXELS <const>, LIFT <const>, FRAMES <const> = "geometry",
    "order", "pixels", "lift", "frames"

stranger_shots.STATEMENTS = {
    -- geometry
    {name = "half", families = "nxtomo", excludes = GEOMETRY,
        words = {"half.acquisition", "field_of_view"},
        told = true,
        before = make_half, after = function(shot)
            add_more(shot, "instrument/detector/field_of_view", "Half")
        end},
    {name = "half, not declared", families = "nxtomo exchange images bare even",
        excludes = GEOMETRY, words = {"half.acquisition"}, before = make_half, rare = 3},
    {name = "full", families = "nxtomo", excludes = GEOMETRY, quiet = true, words = {"field_of_view"},
        after = function(shot)
            shot.states_view = true
            add_more(shot, "instrument/detector/field_of_view", "Full")
        end},
    {name = "arc", families = "nxtomo exchange images bare even", excludes = GEOMETRY,
        words = {"span", "%f[%a]arcs?%f[%A]"},
        before = function(shot, random)
            local scan, span = shot.scan, random(195, 345)
            scan.angles = scans.steps(span, scan.angles[1], 1)
        end},
    {name = "wedge", families = "nxtomo exchange images", excludes = GEOMETRY,
        words = {"span", "wedge", "missing"}, before = function(shot, random)
            shot.scan.angles = scans.steps(random(140, 160), shot.scan.angles[1], 1)
        end, rare = 2},
    {name = "off-center", families = "nxtomo exchange images bare even", excludes = GEOMETRY,
        quiet = true, words = {}, before = function(shot, random)
            local scan, off = shot.scan, uniform(random, 5, 14)
            scan.center = (scan.cols - 1) / 2 + off * (random(2) == 1 and 1 or -1)
            scan.half = scan.cols / 2 - off - 1
            shot.radius = scan.cols / 2 - off
            shot.right = scans.RIGHT * math.sqrt(scan.cols / 2 / scan.half)
        end},
    {name = "views twice", families = "nxtomo exchange", excludes = GEOMETRY,
        words = {"more than once", "twice"}, before = function(shot, random)
            local angles = shot.scan.angles
            local first = random(1, 100)
            table.move(angles, first, first + random(20, 60), #angles + 1, angles)
            shot.uneven = true
        end},
    {name = "whole turn", families = "nxtomo exchange images bare even", excludes = GEOMETRY,
        quiet = true, words = {}, before = function(shot)
            shot.scan.angles = scans.steps(360, shot.scan.angles[1], 1)
        end},
    -- order
    {name = "shuffled", families = "nxtomo exchange images bare", excludes = ORDER,
        words = {"order"},
        before = function(shot, random)
            reorder(shot.scan, shuffled(random, #shot.scan.angles))
            shot.uneven = true
        end},
    {name = "descending", families = "nxtomo exchange images bare even", excludes = ORDER,
        quiet = true, words = {},
        before = function(shot)
            local n = #shot.scan.angles
            reorder(shot.scan, scans.steps(n, n, -1))
        end},
    {name = "interlaced", families = "nxtomo exchange images bare", excludes = ORDER, words = {},
        before = function(shot)
            local n, order = #shot.scan.angles, {}
            for k = 1, 4 do
                for i = k, n, 4 do
                    order[#order + 1] = i
                end
            end
            reorder(shot.scan, order)
            shot.uneven = true
        end},
    -- frames
    {name = "alignment", families = "nxtomo", excludes = FRAMES, told = true,
        words = {"alignment", "image_key_control"}, after = function(shot, random)
            local moved, n = {}, random(2, 5)
            for key, value in pairs(shot.scan) do
                moved[key] = value
            end
            moved.angles, moved.lifts, moved.shifts = {}, nil, nil
            for i = 1, n do
                moved.angles[i] = shot.scan.angles[1] + 180 - (i - 1) * 180 / (n - 1)
            end
            moved.center = moved.center + uniform(random, 4, 8)
            local integrals <close> = scans.line_integrals(moved)
            table.insert(shot.segments, segment(0, scans.counts(integrals, shot), moved.angles,
                {control = -1}))
            shot.controls = true
        end},
    {name = "control", families = "nxtomo", excludes = FRAMES, quiet = true, words = {}, only = true,
        after = function(shot) shot.controls = true end},
    {name = "invalid", families = "nxtomo", excludes = FRAMES, words = {"invalid", "image.key"},
        after = function(shot, random)
            local n = random(1, 4)
            local frames = scans.flat_frames(n, shot.scan, random(0, 65535))
            local last, place = last_projection(shot)
            table.insert(shot.segments, place + random(0, 1), segment(3, frames, scans.times(n,
                last.angles[1])))
        end},
    {name = "odd dark", families = "nxtomo exchange images bare", excludes = FRAMES, rare = 2,
        words = {"dark"}, after = function(shot, random)
            local darks = shot.segments[1]
            local place <close> = darks.frames:view(random(darks.n))
            place:fill(shot.beam + shot.dark)
        end},
    {name = "odd flat", families = "nxtomo exchange images bare", excludes = FRAMES, rare = 2,
        words = {"flat"}, after = function(shot, random)
            local flats = shot.segments[2]
            local place <close> = flats.frames:view(random(flats.n))
            place:fill(shot.dark)
        end},
    {name = "flats behind", families = "nxtomo exchange", excludes = FRAMES, words = {"flat"},
        after = function(shot)
            local frames = scans.flat_frames(3, shot.scan, shot.beam + shot.dark)
            table.insert(shot.segments, segment(1, frames, scans.times(3, 0), {after = true}))
        end},
    {name = "profile", families = "exchange nxtomo", excludes = FRAMES, words = {"flat", "_post"},
        after = function(shot, random)
            local first, last = {}, {}
            local low = random(20, 60)
            for col = 1, shot.scan.cols do
                local inside = col >= low and col < low + 20 and 0.1 or 0
                first[col], last[col] = 1 - inside, 1 + inside
            end
            local flats = shot.segments[2]
            local after = scans.flat_frames(flats.n, shot.scan, 0)
            flats.frames = profiled(flats.frames, shot, first)
            table.insert(shot.segments, segment(1, profiled(after, shot, last), scans.times(flats.n,
                0), {after = true}))
        end},
    {name = "exposure", families = "nxtomo", excludes = FRAMES, words = {"count_time", "exposure"},
        told = true,
        after = function(shot, random)
            local factor, flats = uniform(random, 0.4, 0.7), shot.segments[2]
            flats.frames:release()
            flats.frames = scans.flat_frames(flats.n, shot.scan,
                math.floor(shot.beam * factor + shot.dark + 0.5))
            flats.fields = {count_time = scans.times(flats.n, 0.1 * factor)}
            add_field(shot, "instrument/detector/count_time", "s", function() return 0.1 end, 0.1)
        end},
    {name = "exposure of flats", families = "exchange", excludes = FRAMES,
        words = {"count_time", "exposure"}, told = true, after = function(shot, random)
            local factor, flats = uniform(random, 0.4, 0.7), shot.segments[2]
            flats.frames:release()
            flats.frames = scans.flat_frames(flats.n, shot.scan,
                math.floor(shot.beam * factor + shot.dark + 0.5))
            local base = "/process/acquisition/flat_fields/"
            add_more(shot, "/measurement/instrument/detector/exposure_time", 0.1, {units = "s"})
            add_more(shot, base .. "different_flat_exposure", "Different")
            add_more(shot, base .. "flat_exposure_time", 0.1 * factor, {units = "s"})
        end},
    {name = "ring current", families = "nxtomo", excludes = FRAMES, words = {"current", "monitor"},
        before = function(shot, random)
            local n, loss, list = #shot.scan.angles, uniform(random, 0.05, 0.2), {}
            for i = 1, n do
                list[i] = 1 - loss * i / n
            end
            shot.currents = list
        end, after = function(shot)
            shot.more[#shot.more + 1] = {"control", group = "NXmonitor"}
            add_field(shot, "control/data", "mA", function(i)
                return 200 * shot.currents[i]
            end, 200)
        end},
    -- mirrors
    {name = "mirrored", families = "nxtomo", excludes = "mirror", words = {"flip", "mirror"},
        told = true,
        after = function(shot, random)
            local case = random(3)
            local columns, rows = case ~= 2, case ~= 1
            for _, part in ipairs(shot.segments) do
                local upright <close> = part.frames
                part.frames = mirrored(upright, columns, rows)
            end
            shot.flipped = columns
            local place = "instrument/detector/"
            if random(2) == 1 then
                add_more(shot, place .. "x_flipped", columns and 1 or 0)
                add_more(shot, place .. "y_flipped", rows and 1 or 0)
                return
            end
            shot.more[#shot.more + 1] = {place .. "transformations", group = "NXtransformations"}
            for name, on in pairs {ry = columns, rx = rows} do
                add_more(shot, place .. "transformations/" .. name, on and 180.0 or 0.0,
                    {transformation_type = "rotation", units = "degree",
                    vector = name == "ry" and {0.0, 1.0, 0.0} or {1.0, 0.0, 0.0}})
            end
        end},
    -- pixels
    {name = "magnified", families = "nxtomo", excludes = PIXELS, words = {"magnif", "pixel size"},
        after = function(shot, random)
            local factor = uniform(random, 2, 20)
            local path = ({"instrument/detector/%s_magnified_pixel_size",
                "sample/%s_pixel_size"})[random(2)]
            shot.own_pixel_sizes = true
            for _, axis in ipairs {"x", "y"} do
                add_more(shot, ("instrument/detector/%s_pixel_size"):format(axis),
                    shot.pixel * factor, {units = "m"})
                add_more(shot, path:format(axis), shot.pixel * shot.pixel_unit.per_meter,
                    {units = shot.pixel_unit.name})
            end
        end},
    {name = "magnification", families = "exchange", excludes = PIXELS, words = {"magnif"},
        after = function(shot, random)
            local factor = random(2, 20)
            shot.own_pixel_sizes = true
            add_more(shot, "/measurement/instrument/detector/pixel_size_x",
                shot.pixel * factor * 1e6, {units = "um"})
            add_more(shot, "/measurement/instrument/detection_system/objective/magnification",
                factor + 0.0)
        end},
    {name = "no pixel size", families = "nxtomo exchange images", excludes = PIXELS, quiet = true, words = {},
        before = function(shot) shot.pixel, shot.unsaid_pixel = nil, shot.pixel end},
    -- translations
    {name = "translation, vertical", families = "nxtomo", excludes = LIFT, told = true,
        words = {"translation", "shift"}, before = function(shot, random)
            local lifts, height = {}, random(1, 3)
            for i = 1, #shot.scan.angles do
                lifts[i] = math.floor(height * math.sin(math.rad(2 * i)) + 0.5)
            end
            shot.scan.lifts, shot.scan.rows = lifts, 12
        end, after = function(shot)
            -- a row further down in the object is seen where the sample is higher
            add_field(shot, "sample/z_translation", shot.pixel_unit.name, function(i)
                return shot.scan.lifts[i] * (shot.pixel or shot.unsaid_pixel)
                    * shot.pixel_unit.per_meter
            end)
        end},
    {name = "translation, horizontal", families = "nxtomo", excludes = LIFT,
        words = {"translation", "shift"}, before = function(shot, random)
            local width, n, shifts = uniform(random, 1, 4), #shot.scan.angles, {}
            for i = 1, n do
                shifts[i] = width * math.sin(6 * i / n)
            end
            shot.scan.shifts, shot.scan.half = shifts, shot.scan.half * 0.9
        end, after = function(shot)
            add_field(shot, "sample/x_translation", shot.pixel_unit.name, function(i)
                return shot.scan.shifts[i] * (shot.pixel or shot.unsaid_pixel)
                    * shot.pixel_unit.per_meter
            end)
        end},
    -- photons
    {name = "noise", families = "nxtomo exchange images bare even", excludes = "noise",
        quiet = true, words = {"noise"}, after = function(shot, random)
            make_noisy(shot, math.floor(2000 * 20 ^ random()))
        end},
    -- harmless ones
    {name = "axis", families = "nxtomo", excludes = "axis", words = {"rotation_axis"},
        after = function(shot, random)
            local wrong = random(4) == 1 and 20 or 0
            add_more(shot, "instrument/detector/x_rotation_axis_pixel_position",
                shot.scan.center - (shot.scan.cols - 1) / 2 + wrong)
        end, rare = 2},
    {name = "optics", families = "nxtomo", excludes = "optics", words = {"energy", "distance"},
        after = function(shot)
            add_more(shot, "instrument/detector/distance", 0.1, {units = "m"})
            shot.more[#shot.more + 1] = {"instrument/beam", group = "NXbeam"}
            add_more(shot, "instrument/beam/incident_energy", 20.0, {units = "keV"})
            shot.more[#shot.more + 1] = {"instrument/source", group = "NXsource"}
            add_more(shot, "instrument/source/distance", -145.0, {units = "m"})
        end},
    {name = "energy", families = "exchange", excludes = "optics", words = {"energy"},
        after = function(shot)
            add_more(shot, "/measurement/instrument/monochromator/energy", 20.0, {units = "keV"})
        end},
    {name = "gap", families = "images", excludes = GEOMETRY,
        words = {"missing", "%f[%a]gaps?%f[%A]", "followed"},
        only = true, rare = 2, after = function(shot, random)
            local first = random(30, 100)
            shot.gap = {first, first, way = random(3)} -- one frame: what is left is right
        end},
}

-- ---- shots ----

local function applicable(statement, layout)
    for family in statement.families:gmatch "%S+" do
        if family == layout.family then
            return not statement.only or (layout.states or {})[statement.name] == true
        end
    end
    return (layout.states or {})[statement.name] == true
end

-- Up to `most` statements that go together, in the order in which they change a shot.
local function draw(layout, random, most)
    local chosen, taken = {}, {}
    local wanted = most > 0 and random(most) or 0
    for _ = 1, 60 do
        if #chosen >= wanted then
            break
        end
        local place = random(#stranger_shots.STATEMENTS)
        local statement = stranger_shots.STATEMENTS[place]
        if applicable(statement, layout) and not taken[statement.excludes]
            and (not statement.rare or random(statement.rare) == 1) then
            chosen[#chosen + 1] = place
            taken[statement.excludes] = true
        end
    end
    table.sort(chosen)
    for i, place in ipairs(chosen) do
        chosen[i] = stranger_shots.STATEMENTS[place]
    end
    return chosen
end

--- A random shot for a layout, with up to `most` statements (0: a clean one), the same for the same
-- seed and number. `named`: a list of names of statements, instead of random ones.
function stranger_shots.make(layout, seed, number, most, named)
    math.randomseed(seed, number)
    local random = math.random
    local shot = {layout = layout, seed = seed, scan = usual(random), clean = most == 0,
        segments = {}, fields = {}, more = {}, statements = draw(layout, random, most),
        beam = random(20000, 60000), dark = random(50, 200)}
    if named then
        shot.statements = {}
        for _, statement in ipairs(stranger_shots.STATEMENTS) do
            for _, name in ipairs(named) do
                shot.statements[#shot.statements + 1] = statement.name == name and statement or nil
            end
        end
    end
    shot.angle_unit = UNITS[layout.family == "images" and random(2) or random(#UNITS)]
    shot.unlabelled = random(4) == 1
    shot.pixel = ({0.65e-6, 1e-6, 3.24e-6, 6.5e-6})[random(4)]
    shot.pixel_unit = LENGTHS[random(#LENGTHS)]
    if layout.family == "bare" then
        shot.pixel = nil
    end
    for _, statement in ipairs(shot.statements) do
        local _ = statement.before and statement.before(shot, random)
    end
    local scan = shot.scan
    local flat = shot.beam + shot.dark
    local n_darks, n_flats = random(3, 6), random(3, 6)
    shot.segments[1] = segment(2, scans.flat_frames(n_darks, scan, shot.dark),
        scans.times(n_darks, scan.angles[1]))
    shot.segments[2] = segment(1, scans.flat_frames(n_flats, scan, flat),
        scans.times(n_flats, scan.angles[1]))
    local integrals <close> = scans.line_integrals(scan)
    local beam <close> = mb.array(shot.currents or {1}, {dtype = "f32", device = "host"})
    shot.segments[3] = segment(0, scans.counts(integrals, {beam = shot.beam, dark = shot.dark,
        profile = shot.currents and beam:reshape(#shot.currents, 1, 1)}), scan.angles)
    for _, statement in ipairs(shot.statements) do
        local _ = statement.after and statement.after(shot, random)
    end
    shot.random = random
    return shot
end

--- The column of the axis in the stored frames.
function stranger_shots.stored_center(shot)
    return shot.flipped and shot.scan.cols - 1 - shot.scan.center or shot.scan.center
end

--- The names of what a shot states.
function stranger_shots.names(shot)
    local names = {}
    for i, statement in ipairs(shot.statements) do
        names[i] = statement.name
    end
    return #names > 0 and table.concat(names, " + ") or "clean"
end

--- Releases the frames that no layout has taken.
function stranger_shots.release(shot)
    for _, part in ipairs(shot.segments) do
        if part.frames then
            part.frames:release()
            part.frames = nil
        end
    end
end

return stranger_shots
