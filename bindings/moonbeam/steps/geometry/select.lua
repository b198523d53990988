local mb = require "moonbeam"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local on_error = require "moonbeam.internal.on_error"
local picked = require "moonbeam.scan.picked"

local TOLERANCE <const> = 1e-9 -- rad, at the ends of a range

-- {first, last} of the scan's projections, with negative numbers resolved.
local function frames_of(options, g)
    local range = options.frames or {1, g.projections}
    local function from_start(n)
        return n < 0 and n + g.projections + 1 or n
    end
    return from_start(range[1]), from_start(range[2])
end

-- The indices of the projections that are kept.
local function selected(options, g)
    local bad, kept, count = {}, {}, 0
    for _, frame in ipairs(options.bad or {}) do
        bad[frame] = true
    end
    local first, last = frames_of(options, g)
    local low = options.angles and options.angles[1] - TOLERANCE or -math.huge
    local high = options.angles and options.angles[2] + TOLERANCE or math.huge
    local angles = geometry.stored_angles(g)
    for i, frame in ipairs(g.frames) do
        local angle = angles[i]
        if frame >= first and frame <= last and angle >= low and angle <= high then
            count = count + 1
            kept[#kept + 1] = (count - 1) % options.every == 0 and not bad[frame] and i or nil
        end
    end
    return kept
end

local function check_nothing(options, g)
    if #selected(options, g) > 0 then
        return
    end
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(geometry.stored_angles(g)) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    local range = options.angles
    local degrees = range and math.rad(range[1]) <= most and math.rad(range[2]) >= least
        and ("; is it in degrees? {%g, %g} degrees are {%.6g, %.6g} rad"):format(range[1], range[2],
            math.rad(range[1]), math.rad(range[2])) or ""
    fail("argument", nil, range and "angles", "no projections remain: the angles of the scan are "
        .. "%.6g to %.6g rad%s", least, most, degrees)
end

-- The same for a step, cached because every block asks for it.
local function kept_by(step)
    step.kept = step.kept or selected(step.options, step.geometry_before)
    return step.kept
end

-- Runs {from, to, count} of projections that are adjacent in the data and in the result.
local function runs_of(indices, first, last, start)
    local runs, at = {}, 0
    for i = first, last do
        local from, run = indices[i] - start + 1, runs[#runs]
        at = at + 1
        if run and run.from + run.count == from then
            run.count = run.count + 1
        else
            runs[#runs + 1] = {from = from, to = at, count = 1}
        end
    end
    return runs
end

-- Kept projections `first` to `last`, copied from `data`, whose first projection is `start`.
local function copied(data, indices, first, last, start)
    local shape = data.shape
    local result = mb.empty({last - first + 1, shape[2], shape[3]}, {dtype = data.dtype,
        device = data.device})
    local _ <close> = on_error(function() result:release() end)
    for _, run in ipairs(runs_of(indices, first, last, start)) do
        local from <close> = data:view({run.from, run.from + run.count - 1})
        local to <close> = result:view({run.to, run.to + run.count - 1})
        from:cast(data.dtype, {out = to})
    end
    return result
end

-- The first and last kept projections between two projections of all, or nil.
local function between(indices, low, high)
    local first, last
    for i, index in ipairs(indices) do
        if index >= low and index <= high then
            first, last = first or i, i
        end
    end
    return first, last
end

return {
    name = "select",
    summary = "Keeps some projections: a range of angles or of numbers, every k-th, all but the "
        .. "bad ones.",
    doc = "Projections are numbered as in the scan, from 1, even after an earlier selection. "
        .. "Options combine: every counts the projections that frames and angles keep, and bad "
        .. "projections are then removed.",
    options = declared.options(
        {"angles", "pair", "{low, high}: projections between these angles, ends included",
            unit = "rad", usual = "all"},
        {"frames", "range", "{first, last} of the scan's projections; negative numbers count from "
            .. "the end", usual = "all"},
        {"every", "count", "keep the first of every group of this many", min = 1, max = 1 << 20,
            default = 1},
        {"bad", "list", "numbers of projections to leave out", whole = true, min = 1,
            usual = "none"}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    selects = selected,
    check = function(options, _, g)
        local first, last = frames_of(options, g)
        if first < 1 or last > g.projections or first > last then
            fail("argument", nil, "frames", "frames are %d to %d; the scan has projections 1 to "
                .. "%d", options.frames[1], options.frames[2], g.projections)
        end
        for _, frame in ipairs(options.bad or {}) do
            if frame > g.projections then
                fail("argument", nil, "bad", "bad names projection %d; the scan has 1 to %d",
                    frame, g.projections)
            end
        end
        if not (options.angles or options.frames or options.bad) and options.every == 1 then
            fail("argument", nil, nil, "it keeps everything; give angles, frames, every or bad")
        end
        check_nothing(options, g)
    end,
    shape = function(options, shape, g)
        return {#selected(options, g), shape[2], shape[3]}
    end,
    geometry = function(options, g)
        local indices = selected(options, g)
        local angles = picked(g.angles, indices)
        return geometry.with(g, {angles = angles, frames = picked(g.frames, indices), used = false,
            turn = axis_pairs.is_turn(angles) and "whole" or "half"})
    end,
    needs = function(_, first, last, step, cut)
        if cut ~= "frames" then
            return first, last
        end
        local indices = kept_by(step)
        return indices[math.max(1, first)], indices[math.min(#indices, last)]
    end,
    run = function(block)
        local indices = kept_by(block.step)
        local whole = block.cut == "frames"
        local range = whole and block.rows or block.frames or {1, #block.geometry.frames}
        local first, last = between(indices, range[1], range[2])
        if last - first + 1 < range[2] - range[1] + 1 then
            block:replace(copied(block.data, indices, first, last, range[1]))
        end
        block.frames = {first, last}
        if whole then
            block.rows = {first, last}
        end
    end,
}
