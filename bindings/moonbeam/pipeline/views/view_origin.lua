--- Where the data of a view come from: the detector whose defects a search for the axis leaves out.
--
-- The defects are filled in before the first step if the view reads the scan. Where it reads what
-- an earlier section has stored, they are in it, spread by the steps of that section. How far is
-- seen by passing a few frames through these steps twice, with the defects and without.

local mb = require "moonbeam"
local block = require "moonbeam.pipeline.block"
local geometry_of = require "moonbeam.pipeline.geometry"
local on_error = require "moonbeam.internal.on_error"
local work = require "moonbeam.pipeline.work"

local view_origin = {}

local REACHED = 0.05 -- of the standard deviation of a frame: what a defect changes counts
local TILTED = 0.1 -- of the rows: a column that was turned counts where it is in so many
local BESIDE = 2 -- columns beside a defect where nothing is known of how far it was spread

-- The sections before a view's, the first one first, and its own.
local function sections_of(self)
    local list, section = {}, self.section
    while section do
        table.insert(list, 1, section)
        section = section.source.before
    end
    return list
end

-- The steps before a view, from the scan on.
local function steps_of(self, list)
    local steps = {}
    for i, section in ipairs(list) do
        for k = 1, i == #list and self.before or #section.steps do
            steps[#steps + 1] = section.steps[k]
        end
    end
    return steps
end

-- ---- columns ----

-- For 0-based columns of data with the geometry `from`, the columns of data with the geometry `to`
-- that they are in; and how many of the first are in any.
local function remapped(list, from, to, cols)
    local reach = (math.abs(from.column_step) + math.abs(to.column_step)) / 2
    reach = math.max(reach, math.abs(from.column_step)) - 1e-6
    local flags, made, count = {}, {}, 0
    for _, x in ipairs(list) do
        local column, any = geometry_of.column(from, x), false
        local middle = geometry_of.element(to, column)
        local side = math.ceil(reach / math.abs(to.column_step)) + 1
        for element = math.floor(middle) - side, math.ceil(middle) + side do
            if element >= 0 and element < cols
                and math.abs(geometry_of.column(to, element) - column) < reach then
                flags[element], any = true, true
            end
        end
        count = count + (any and 1 or 0)
    end
    for x = 0, cols - 1 do
        made[#made + 1] = flags[x] and x or nil
    end
    return made, count
end

-- The columns that a step which turns or warps frames makes of some; `rows` are those of its result
-- that count.
local function warped(step, list, rows, device)
    local shape, line = step.shape_before, {}
    for x = 1, shape[3] do
        line[x] = 0
    end
    for _, x in ipairs(list) do
        line[x + 1] = 1
    end
    local columns <close> = mb.array({{line}}, {device = device})
    local frame <close> = mb.zeros({1, shape[2], shape[3]}, {device = device})
    mb.binary(frame, "add", {b = columns, out = frame})
    local turned <close> = step.def.warp(step, frame)
    if not turned then
        return {}
    end
    local first = math.max(1, math.min(shape[2], math.floor(rows[1])))
    local last = math.max(first, math.min(shape[2], math.ceil(rows[2])))
    local part <close> = turned:view(1, {first, last}, mb.all)
    local means <close> = mb.reduce(part, "mean", {axis = 1})
    local made = {}
    for x, value in ipairs(mb.bound({}, means.to_table, means)) do
        made[#made + 1] = value > TILTED and x - 1 or nil
    end
    return made
end

-- The columns of a view, 0-based, that show some columns of the scan in some rows of it; and how
-- many columns of the scan these are.
local function columns_of(self, steps, list, device, rows)
    local to, at = self.geometry, self.section.source.geometry
    if steps[1] then
        at = steps[1].geometry_before
    end
    local most = #list
    for _, step in ipairs(steps) do
        if step.def.warp then
            local g = step.geometry_before
            list = remapped(list, at, g, step.shape_before[3])
            local own = {}
            for i, row in ipairs(rows) do
                own[i] = geometry_of.row_element(g, to.first_row + (row - 1) * to.row_step
                    + (to.row_step - 1) / 2)
            end
            table.sort(own)
            list, at = warped(step, list, own, device), step.geometry
        end
    end
    local made, count = remapped(list, at, to, self.shape[3])
    return made, math.min(count, most)
end

-- ---- what was spread ----

-- Frame `i` that the first section makes, which is cut along frames: all rows of it, to be closed.
local function frame_of(first, i, self, bad)
    local made = work.read(first, self.device, {i, i}, {})
    if bad then
        local _ <close> = on_error(function()
            made:drop_references()
            made.data:release()
        end)
        bad:fill_source(made, {1, first.source.scan.rows})
    end
    return work.compute(first, made, self.values)
end

-- Rows of the frames {first, last} that the first section makes, to be closed.
local function gathered(first, rows, frames, self, bad)
    local count = frames[2] - frames[1] + 1
    local made = mb.empty({count, rows[2] - rows[1] + 1, first.shape[3]}, {device = self.device})
    local _ <close> = on_error(function() made:release() end)
    for i = 1, count do
        local frame <close> = frame_of(first, frames[1] + i - 1, self, bad)
        local part <close> = frame:view(mb.all, rows, mb.all)
        local there <close> = made:view({i, i})
        mb.convert(part, "f32", {out = there})
    end
    return made
end

-- Some frames of a view that reads what the first section has stored, made anew from the scan
-- without the defects `bad` (nil: with them); to be closed.
local function some_of(self, first, rows, frames, bad)
    local section, before = self.section, self.before
    local along = section.cut == "rows" and rows or frames
    local ranges = work.ranges(section, along[1], along[2], before)
    local made = {cut = section.cut, layout = section.source.layout, device = self.device,
        quantity = section.source.kind, geometry = section.source.geometry, ranges = ranges,
        rows = ranges.read}
    if section.cut == "rows" then
        made.frames = work.source_frames(section, frames, before)
        made.data = gathered(first, ranges.read, made.frames, self, bad)
        return work.compute(section, block.new(made), self.values, nil, nil, before)
    end
    made.frames = ranges.read
    made.data = gathered(first, {1, section.source.shape[2]}, ranges.read, self, bad)
    local whole <close> = work.compute(section, block.new(made), self.values, nil, nil, before)
    local part <close> = whole:view(mb.all, rows, mb.all)
    return part:copy()
end

-- Does a view read what a section of whole frames has stored, so that a few can be made anew?
local function is_made_of_frames(list)
    return #list == 2 and list[1].cut == "frames" and not list[1].reduced
        and list[1].layout == "frames" and list[1].dtype == "f32"
end

-- Marks what the defects change in a frame of what a view reads.
local function mark(mask, self, first, i, rows, bad)
    local with <close> = some_of(self, first, rows, {i, i})
    local without <close> = some_of(self, first, rows, {i, i}, bad)
    local norm <close> = mb.reduce(without, "norm")
    local sum <close> = mb.reduce(without, "sum")
    local count = without.shape[1] * without.shape[2] * without.shape[3]
    local mean, square = mb.bound(0, sum.item, sum) / count, mb.bound(1, norm.item, norm) ^ 2
    local least = REACHED * math.sqrt(math.max(0, square / count - mean ^ 2))
    mb.binary(with, "sub", {b = without, out = with})
    mb.unary(with, "abs", {out = with})
    local limit <close> = mb.full(with.shape, least == least and least or math.huge,
        {device = mask.device})
    local found <close>, counts = mb.dead_pixels(limit, {darks = with, least = 0})
    counts:release()
    mb.binary(mask, "max", {b = found, out = mask})
end

-- The mask of the rows of a view that the defects of the detector have reached, to be closed.
local function reached(self, list, device, rows, bad)
    local cols = self.shape[3]
    local line = {}
    for x = 1, cols do
        line[x] = 0
    end
    for _, x in ipairs(bad.listed) do
        for near = math.max(0, x - BESIDE), math.min(cols - 1, x + BESIDE) do
            line[near + 1] = 1
        end
    end
    local mask = mb.zeros({rows[2] - rows[1] + 1, cols}, {dtype = "u8", device = device})
    local _ <close> = on_error(function() mask:release() end)
    local columns <close> = mb.array({line}, {dtype = "u8", device = device})
    mb.binary(mask, "max", {b = columns, out = mask})
    if is_made_of_frames(list) then
        local count = self.shape[1]
        for _, i in ipairs {1, (count + 1) // 2, count} do
            mark(mask, self, list[1], i, rows, bad)
        end
    end
    return mask
end

--- The origin of a view: {scan, settings, alone (its references do not count), rows_of(rows), the
-- rows of the scan that rows of the view need; columns_of(list, device, rows), the 0-based columns
-- of the view that show columns of the scan, and how many of these it shows; some(rows, frames,
-- bad), rows of some frames made anew without the defects, where the view reads a store of whole
-- frames; reached(device, rows, bad), where it reads any store: the mask of what the defects have
-- reached}.
function view_origin.of(self)
    local list = sections_of(self)
    local source = list[1].source
    local steps = steps_of(self, list)
    local direct = #list == 1
    local origin = {scan = source.scan, alone = source.kind ~= "counts",
        settings = {log = source.kind ~= "line integrals"}}
    function origin.rows_of(rows)
        if direct and self.section.cut == "rows" then
            return work.ranges(self.section, rows[1], rows[2], self.before).read
        end
        return {1, source.scan.rows}
    end
    function origin.columns_of(columns, device, rows)
        return columns_of(self, steps, columns, device, rows)
    end
    if is_made_of_frames(list) then
        function origin.some(rows, frames, bad)
            return some_of(self, list[1], rows, frames, bad)
        end
    end
    if not direct then
        function origin.reached(device, rows, bad)
            return reached(self, list, device, rows, bad)
        end
    end
    return source.scan and origin or nil
end

return view_origin
