-- The inputs of `mb.chunked`: arrays, HDF5 datasets and scans. Each is a source of blocks along an
-- axis, or is given whole to every block.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local scan_frames = require "moonbeam.tomo.scan_frames"
local tables = require "moonbeam.internal.tables"
local unpack = require "moonbeam.internal.unpack"

local inputs = {}

local OP <const> = "chunked"

-- The most axes that a carrier can move.
local MOST_AXES <const> = 3

-- The ranges of all axes: {first, last} for `axis`, everything for the others.
local function ranges_along(rank, axis, first, last)
    local ranges = {}
    for i = 1, rank do
        ranges[i] = i == axis and {first, last} or core.array.all
    end
    return ranges
end

local function shape_of_part(shape, axis, count)
    local part = table.move(shape, 1, #shape, 1, {})
    part[axis] = count
    return part
end

-- An array that `carry(array)` fills; it is released if that fails.
local function filled(shape, dtype, device, carry)
    local array = core.array.empty(shape, {dtype = dtype, device = device})
    local _ <close> = on_error(function() array:release() end)
    carry(array)
    return array
end

-- ---- arrays ----

local of_array = {}
of_array.__index = of_array

-- Whether a carrier can move this host array: dense along the last axis, forward along the others.
local function movable(array)
    local strides = array.strides
    for axis, stride in ipairs(strides) do
        if array.shape[axis] > 1 and (axis == #strides and stride ~= 1 or stride < 1) then
            return false
        end
    end
    return true
end

function of_array:read(axis, first, last, device, carrier)
    local view <close> = self.array:view(table.unpack(
        ranges_along(#self.shape, axis, first, last)))
    if self.array.device.kind == "host" and movable(self.array) then
        return filled(view.shape, self.dtype, device, function(array)
            carrier:carry(view, array)
        end)
    end
    return view:to(device)
end

function of_array:whole(device)
    return self.array.device == device and self.array:view(core.array.all)
        or self.array:to(device)
end

-- ---- datasets ----

local of_dataset = {}
of_dataset.__index = of_dataset

function of_dataset:read(axis, first, last, device, carrier)
    return filled(shape_of_part(self.shape, axis, last - first + 1), self.dtype, device,
        function(array)
            carrier:carry(self.dataset, array,
                table.unpack(ranges_along(#self.shape, axis, first, last)))
        end)
end

function of_dataset:whole(device)
    return self.dataset:read {device = device}
end

-- ---- scans ----

-- A block of a scan: projections, flats and darks of some rows, or some projections.
local block_metatable = {__index = {release = function(block)
    for _, name in ipairs {"data", "flats", "darks"} do
        if block[name] then
            block[name]:release()
        end
    end
end}}
block_metatable.__close = block_metatable.__index.release

local ANGLES <const>, ROWS <const> = 1, 2

local of_scan = {}
of_scan.__index = of_scan

-- Flats and darks of all rows, which all blocks of projections share.
function of_scan:hold(axis, device)
    return axis == ANGLES and scan_frames.references(self.scan, device) or nil
end

local function view_of(array)
    return array and array:view(core.array.all)
end

function of_scan:read(axis, first, last, device, carrier, held)
    local scan, block = self.scan, setmetatable({}, block_metatable)
    local _ <close> = on_error(function() block:release() end)
    if axis == ROWS then
        local frames = scan_frames.read(scan, device, {first, last}, nil, carrier)
        block.data, block.flats, block.darks = frames.raw, frames.flats, frames.darks
    else
        block.flats, block.darks = view_of(held.flats), view_of(held.darks)
        block.data = scan_frames.projections(scan, device, {first, last}, carrier)
    end
    block.rows = axis == ROWS and {first, last} or {1, scan.rows}
    block.angles = axis == ROWS and scan.angles or table.move(scan.angles, first, last, 1, {})
    return block
end

-- Decodes the frames once, if the blocks would decode them more than once.
function of_scan:prepare(axis, blocks)
    local ranges = tables.mapped(blocks, "input")
    local decoded = axis == ROWS and unpack.if_needed(self.scan, ranges)
    if decoded then
        self.scan = decoded
    end
    return decoded or nil
end

-- ---- choosing the source ----

--- The source of a value: {name, shape, dtype, host (whether it is an array in host memory)}, or an
-- error. `name` is what messages call it.
function inputs.of(value, name)
    local class, source = arguments.class_of(value), nil
    if class == "moonbeam.array" then
        source = setmetatable({array = value, shape = value.shape, dtype = value.dtype,
            host = value.device.kind == "host" and value or nil}, of_array)
    elseif class == "moonbeam.h5dataset" then
        source = setmetatable({dataset = value, shape = value.shape, dtype = value.dtype},
            of_dataset)
    elseif class == "moonbeam.scan" then
        source = setmetatable({scan = value, shape = {value.n_angles, value.rows, value.cols},
            dtype = value.dtype, is_scan = true}, of_scan)
    else
        fail("argument", OP, name, "%s is %s; give an array, an HDF5 dataset or a scan", name,
            value == nil and "missing" or class or "a " .. type(value))
    end
    if #source.shape > MOST_AXES then
        fail("shape", OP, name, "%s has %d axes; arrays of one to three are cut into blocks", name,
            #source.shape)
    end
    source.name = name
    return source
end

--- All inputs: {list = sources in order, by = sources by name or number, single = whether there is
-- only one}. `given` is one input or a table of inputs; `whole` lists those that are not cut.
function inputs.all(given, whole)
    local by, names = {}, {}
    local single = type(given) ~= "table" or arguments.class_of(given) == "moonbeam.scan"
    if single then
        names[1], by[1] = 1, inputs.of(given, "inputs")
    else
        names = tables.keys(given)
    end
    if #names == 0 then
        fail("argument", OP, "inputs", "there are no inputs; give an array, an HDF5 dataset, a "
            .. "scan, or a table of them")
    end
    local list = {}
    for i, name in ipairs(names) do
        by[name] = by[name] or inputs.of(given[name], type(name) == "number"
            and ("input %d"):format(name) or name)
        by[name].key = name
        list[i] = by[name]
    end
    for _, name in ipairs(whole or {}) do
        if not by[name] then
            fail("argument", OP, "whole", "there is no input '%s'", tostring(name))
        end
        by[name].uncut = true
    end
    return {list = list, by = by, single = single}
end

return inputs
