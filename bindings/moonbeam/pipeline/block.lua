--- The block that the steps of a pipeline work on: the data of some rows or frames on a device, and
-- facts about them.
--
-- A block has data (frames: angle, row, column; slices: row, y, x), flats and darks (for counts),
-- cut ("rows" or "frames"), rows (its first and last row, or its first and last frame if it is cut
-- along frames, numbered as in the step's input), wanted (those that the step must leave),
-- frames (the first and last projection), layout, raw (whether the data are as they were read),
-- geometry, device, step, and the tallies (scan_frames.TALLIES): arrays of three counts that a step
-- sets. It owns its arrays.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local scan_frames = require "moonbeam.tomo.scan_frames"

-- Raises an error unless a block has data.
local function check_data(op, self)
    if not self.data then
        fail("argument", op, "self", "the block has no data; they were released or handed over, "
            .. "and can be used only before that")
    end
end

-- Raises an error unless these are rows (frames) that a block has.
local function check_part(op, self, first, last)
    check_data(op, self)
    local low, high = self.rows[1], self.rows[2]
    if first < low or first > last or last > high then
        fail("argument", op, "first", "%s %d to %d are no part of the block, which has %s %d to "
            .. "%d; they are numbered as in block.rows", self.cut, first, last, self.cut, low, high)
    end
end

local block = {}
local methods = declared.class("block", {replace = "array: array",
    note_cut = {"counted: any?", check_data}, note_spoiled = {"", check_data},
    hand_over = "", drop_references = "", part = {"first: count, last: count", check_part},
    trim = {"first: count, last: count", check_data}, finite = {"open: number?", check_data},
    release = ""}, {})
methods.__index = methods

local ARRAYS = {"data", "flats", "darks", table.unpack(scan_frames.TALLIES)}

--- A block with these fields.
function block.new(fields)
    return setmetatable(fields, methods)
end

--- The axis of the data that a block is cut along.
function block.axis(cut, layout)
    return cut == "rows" and layout == "frames" and 2 or 1
end

--- Replaces its data by an array and releases the old data.
function methods:replace(array)
    local before = self.data
    self.data = array
    if before and before ~= array then
        before:release()
    end
end

-- The part of the detector that is its edge; and the part of the most attenuation, and the least
-- line integral there, that say that an object is cut off. All in the mean over angles.
local EDGE <const>, CUT <const>, LEAST <const> = 32, 0.05, 0.02

-- f32 numbers, one per row of projections: 1 where the object reaches an edge of the detector.
local function cut_rows(frames)
    local cols = frames.shape[3]
    local means <close> = mb.reduce(frames, "mean", {axis = 1})
    local most <close> = mb.reduce(means, "max", {axis = 2})
    local width = math.max(1, cols // EDGE)
    local first <close> = means:view(mb.all, {1, width})
    local last <close> = means:view(mb.all, {cols - width + 1, cols})
    local edge <close> = mb.reduce(first, "mean", {axis = 2})
    local other <close> = mb.reduce(last, "mean", {axis = 2})
    mb.binary(edge, "max", {b = other, out = edge})
    mb.binary(most, "mul", {scalar = CUT, out = most})
    mb.binary(most, "max", {scalar = LEAST, out = most})
    mb.binary(edge, "sub", {b = most, out = edge})
    mb.binary(edge, "max", {scalar = 0, out = edge})
    mb.binary(edge, "mul", {scalar = 1e30, out = edge})
    mb.binary(edge, "min", {scalar = 1, out = edge})
    return mb.convert(edge, "f32")
end

--- Notes in how many of the rows that the step has to leave the object reaches an edge of the
-- detector, if they are to be `counted`: which may depend on values that are measured, and what is
-- taken must not. The data are projections.
function methods:note_cut(counted)
    local low, wanted = self.rows[1], self.wanted or self.rows
    local frames <close> = self.data:view(mb.all, {wanted[1] - low + 1, wanted[2] - low + 1})
    local flags <close> = cut_rows(frames)
    if not counted then
        mb.fill(flags, 0)
    end
    local codes, counts = mb.quantize(flags, "u8", {high = 0.5})
    codes:release()
    self.spoiled = counts
end

--- Notes how many of the slices that the step has to leave have values that are not finite.
function methods:note_spoiled()
    local low, wanted = self.rows[1], self.wanted or self.rows
    local slices <close> = self.data:view {wanted[1] - low + 1, wanted[2] - low + 1}
    local sizes <close> = mb.slice_dot(slices, slices)
    mb.binary(sizes, "pow", {scalar = 0.25, out = sizes}) -- so that float32 holds what is finite
    local narrow <close> = mb.convert(sizes, "f32")
    local codes, counts = mb.quantize(narrow, "u8", {nonfinite = 0})
    local _ <close> = counts
    codes:release()
    local replaced <close> = counts:view {3, 3}
    local made = mb.pad(replaced, {before = 0, after = 2})
    if self.spoiled then
        mb.binary(self.spoiled, "add", {b = made, out = self.spoiled})
        made:release()
    else
        self.spoiled = made
    end
end

--- Returns the data, which the caller owns from then on.
function methods:hand_over()
    local data = self.data
    self.data = nil
    return data
end

--- Releases flats and darks.
function methods:drop_references()
    for _, name in ipairs {"flats", "darks"} do
        if self[name] then
            self[name]:release()
            self[name] = nil
        end
    end
end

--- Part of the data along the axis of the cut: a view, which the caller closes. Rows are numbered
-- as in `self.rows`.
function methods:part(first, last)
    local ranges = {}
    for i = 1, self.data.rank do
        ranges[i] = {1, self.data.shape[i]}
    end
    local low = self.rows[1]
    ranges[block.axis(self.cut, self.layout)] = {first - low + 1, last - low + 1}
    return self.data:view(table.unpack(ranges))
end

local function trimmed(array, axis, first, last)
    local ranges = {}
    for i = 1, array.rank do
        ranges[i] = {1, array.shape[i]}
    end
    ranges[axis] = {first, last}
    local view = array:view(table.unpack(ranges))
    array:release()
    return view
end

--- Keeps only these rows.
function methods:trim(first, last)
    local low, high = self.rows[1], self.rows[2]
    if first == low and last == high then
        return
    elseif first < low or last > high then
        fail("argument", self.step and "step " .. self.step.label or "pipeline", nil, "it leaves "
            .. "%s %d to %d, of which %d to %d are needed: its function needs must ask for more",
            self.cut, low, high, first, last)
    end
    local from, to = first - low + 1, last - low + 1
    self.data = trimmed(self.data, block.axis(self.cut, self.layout), from, to)
    if self.cut == "rows" then
        for _, name in ipairs {"flats", "darks"} do
            self[name] = self[name] and trimmed(self[name], 2, from, to)
        end
    end
    self.rows = {first, last}
end

--- Converts data as they were read to float32. Counts stay as they are. Other values that are not
-- finite become `open`, the value of an unattenuated beam.
function methods:finite(open)
    if self.raw then
        self.raw = false
        if open then
            self.data, self.mended = scan_frames.finite(self:hand_over(), open)
        elseif self.data.dtype ~= "f32" then
            self:replace(self.data:cast "f32")
        end
    end
end

--- Releases all its arrays.
function methods:release()
    for _, name in ipairs(ARRAYS) do
        local array = self[name]
        self[name] = nil
        if type(array) == "userdata" then -- and nothing that a step has put there
            array:release()
        end
    end
end
methods.__close = methods.release

return block
