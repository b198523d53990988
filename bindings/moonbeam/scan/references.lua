--- Flats or darks of a scan: a list of parts, each of which is frames of a dataset, of an image, or
-- one frame of a constant. Their frames follow each other in the order of the parts.
--
-- A source is {parts, count, dtype, stored, keyed}: `dtype` is the type of the array that all parts
-- fill (f32 where theirs differ), `stored` that of the elements in the file, or nil where parts
-- differ or are in memory; `keyed`: the frames are among the projections, in one dataset.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local left_out = require "moonbeam.scan.left_out"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"

local references = {}

-- The same value of all parts, or nil.
local function common(parts, value_of)
    local first = value_of(parts[1])
    for _, part in ipairs(parts) do
        if value_of(part) ~= first then
            return nil
        end
    end
    return first
end

--- The source of these parts; nil where there is none. A part is {dataset, runs, count}, {array,
-- runs, count} or {stored, runs, count} (stored_frames.lua) of an image that has `extent` frames,
-- or {constant, count = 1}; and `path`, `place` ("before" or "after" the projections, nil where
-- that is not known). Runs are those of the frames that are read, in the dataset or image.
function references.of(parts, keyed)
    if #parts == 0 then
        return nil
    end
    local count = 0
    for _, part in ipairs(parts) do
        count = count + part.count
    end
    return {parts = parts, count = count, keyed = keyed,
        dtype = common(parts, function(part)
            local holds = part.dataset or part.array or part.stored
            return holds and holds.dtype or "f32"
        end) or "f32",
        stored = common(parts, function(part)
            return part.dataset and part.dataset.stored or part.stored and part.stored.dtype or nil
        end)}
end

--- The number of frames that a part's dataset or image has, whether they are read or not.
function references.extent(part)
    local shape = part.dataset and part.dataset.shape
    return not shape and (part.extent or part.count) or #shape == 3 and shape[1] or 1
end

local ONE <const> = {{1, 1}} -- the frame of a constant

--- The numbers of the frames that are read, as they count in the datasets and images one after
-- another, from 1.
function references.numbers(source)
    local numbers, before = {}, 0
    for _, part in ipairs(source.parts) do
        for _, run in ipairs(part.runs or ONE) do
            for number = run[1], run[2] do
                numbers[#numbers + 1] = before + number
            end
        end
        before = before + references.extent(part)
    end
    return numbers
end

--- The parts of flats or darks (`what`) without the frames of these numbers (references.numbers), a
-- list or one. Images are not open yet. Raises where nothing is left.
function references.without(parts, numbers, what)
    local runs, before, left = {}, 0, {}
    for _, part in ipairs(parts) do
        for _, run in ipairs(part.runs or ONE) do
            runs[#runs + 1] = {before + run[1], before + run[2]}
        end
        before = before + references.extent(part)
    end
    local kept = left_out.runs(runs, numbers, what)
    before = 0
    for _, part in ipairs(parts) do
        local own, count, extent = {}, 0, references.extent(part)
        for _, run in ipairs(kept) do
            local first, last = math.max(run[1] - before, 1), math.min(run[2] - before, extent)
            own[#own + 1] = first <= last and {first, last} or nil
            count = count + math.max(0, last - first + 1)
        end
        before = before + extent
        left[#left + 1] = count > 0 and tables.merged(part, {runs = own, count = count}) or nil
    end
    return left
end

--- Of a list with one value for each frame that the datasets have, those of the frames that are
-- read.
function references.picked(source, list)
    local kept, before = {}, 0
    for _, part in ipairs(source.parts) do
        for _, run in ipairs(part.runs or {{1, part.count}}) do
            table.move(list, before + run[1], before + run[2], #kept + 1, kept)
        end
        before = before + references.extent(part)
    end
    return kept
end

--- How many values such a list has.
function references.listed(source)
    local count = 0
    for _, part in ipairs(source.parts) do
        count = count + references.extent(part)
    end
    return count
end

--- A source whose frames in a dataset are those of another dataset, which has them decoded.
function references.moved(source, from, to)
    if not source then
        return nil
    end
    local parts = tables.mapped(source.parts, function(part)
        return part.dataset == from and tables.merged(part, {dataset = to}) or part
    end)
    return tables.merged(source, {parts = parts})
end

--- What a source is made of, as text: for the identity of a run.
function references.text(source)
    return not source and "none" or table.concat(tables.mapped(source.parts, function(part)
        local runs = tables.mapped(part.runs or {}, function(run)
            return ("%d-%d"):format(run[1], run[2])
        end)
        return part.constant and ("%.17g"):format(part.constant)
            or ("%s %s"):format(part.path or "?", table.concat(runs, ","))
    end), "; ")
end

-- ---- reading ----

-- Fills a view (frame, row, column), or (frame, column) of one row, with the frames of a dataset.
local function fill_of_dataset(part, view, rows, carrier)
    if #part.dataset.shape == 2 then
        local frame <close> = view:view(1)
        if carrier then
            carrier:carry(part.dataset, frame, rows)
        else
            part.dataset:read(rows, {out = frame})
        end
        return
    end
    local at = 1
    for _, run in ipairs(part.runs) do
        local n = run[2] - run[1] + 1
        local some <close> = view:view({at, at + n - 1})
        if carrier then
            carrier:carry(part.dataset, some, run, rows)
        else
            part.dataset:read(run, rows, {out = some})
        end
        at = at + n
    end
end

-- Fills a view with frames that are in memory, of an image or a constant.
local function fill_of_others(part, view, rows, carrier)
    if part.constant then
        core.op.run("fill", view, part.constant)
        return
    end
    local frames <close> = part.array and part.array:view(core.array.all, rows)
        or part.stored:part(core.array.all, rows, {device = view.device})
    if part.array and carrier and frames.dtype == view.dtype then
        carrier:carry(frames, view)
    elseif frames.device == view.device then
        core.op.run("convert", frames, view.dtype, {out = view})
    else
        local here <close> = frames:to(view.device)
        core.op.run("convert", here, view.dtype, {out = view})
    end
end

-- All frames in one array, made or given.
local function gather(source, rows, extent, columns, options)
    local shape = extent and {source.count, extent, columns} or {source.count, columns}
    local result = options.out or core.array.empty(shape, {device = options.device,
        dtype = options.dtype or source.dtype})
    local _ <close> = on_error(function()
        if not options.out then
            result:release()
        end
    end)
    if result.shape[1] ~= source.count then
        fail("shape", "scan.read", "out", "out has %d frames, but %d were read", result.shape[1],
            source.count)
    end
    local at = 1
    for _, part in ipairs(source.parts) do
        local view <close> = result:view({at, at + part.count - 1})
        local fill = part.dataset and fill_of_dataset or fill_of_others
        fill(part, view, rows, options.carrier)
        at = at + part.count
    end
    return result
end

-- The array in the type that is asked for, in its place.
local function as_type(array, dtype)
    if not dtype or dtype == array.dtype then
        return array
    end
    local stored <close> = array
    return stored:cast(dtype)
end

-- Some rows of frames that are in memory; by a carrier if there is one.
local function of_array(array, rows, options)
    local part <close> = array:view(core.array.all, rows)
    local device = options.device or core.device.default()
    if not options.carrier then
        return as_type(part:to(device), options.dtype)
    end
    local result = core.array.empty(part.shape, {device = device, dtype = array.dtype})
    local _ <close> = on_error(function() result:release() end)
    options.carrier:carry(part, result)
    return result
end

--- Some rows of all frames of a source: (frame, row, column), or (frame, column) of one row.
-- `extent`: how many rows that are, nil for one row; options: dtype, device, out, carrier.
function references.read(source, rows, extent, columns, options)
    local only = #source.parts == 1 and source.parts[1]
    if only and only.array and not options.out then
        return of_array(only.array, rows, options)
    elseif only and only.stored and not options.out then
        local part = only.stored:part(core.array.all, rows, options)
        return options.carrier and part or as_type(part, options.dtype)
    elseif only and only.dataset and #only.dataset.shape == 3 and #only.runs == 1
        and not options.carrier then
        return only.dataset:read(only.runs[1], rows, {dtype = options.dtype,
            device = options.device, out = options.out})
    end
    return gather(source, rows, extent, columns, options)
end

return references
