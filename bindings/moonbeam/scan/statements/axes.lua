--- The axes of a dataset of frames. A dataset may have axes of extent 1 beside the three of its
-- frames, as areaDetector writes them, and rows before frames (y:theta:x, sinograms). The dataset
-- is shown as (frame, row, column) then, and is read in the order that the file has.
--
-- What the order is, an option says, else the attribute `axes` of the dataset.

local fail = require "moonbeam.internal.fail"
local source = require "moonbeam.scan.source"

local axes = {}

--- The orders that can be read.
axes.ORDERS = {"theta:y:x", "y:theta:x"}
local USUAL <const>, TURNED <const> = axes.ORDERS[1], axes.ORDERS[2]

-- What the names of an axis begin with.
local NAMES <const> = {
    theta = {"theta", "angle", "rotation_angle", "frame", "image", "projection"},
    y = {"y", "row"}, x = {"x", "col"},
}

-- The axes of a shape without those of extent 1 that are too many; nil where more than three are
-- left. Of frames with channels the last one goes, else the first.
local function kept(shape)
    local list = {}
    for axis = 1, #shape do
        list[axis] = axis
    end
    while #list > 3 and shape[#list] == 1 do
        list[#list] = nil
    end
    local at = 1
    while #list > 3 and list[at] do
        if shape[list[at]] == 1 then
            table.remove(list, at)
        else
            at = at + 1
        end
    end
    return #list <= 3 and list or nil
end

--- The extents of a shape as it is read, or the shape where it cannot be.
function axes.extents(shape)
    local list, extents = kept(shape), {}
    for i, axis in ipairs(list or {}) do
        extents[i] = shape[axis]
    end
    return list and extents or shape
end

--- Is an object of a walk a dataset of frames (frame, row, column)?
function axes.are_frames(object)
    return object.kind == "dataset" and object.dtype ~= nil and #axes.extents(object.shape) == 3
end

--- Extents as text.
function axes.text(shape)
    return table.concat(shape, " x ")
end

local function meaning(name)
    for short, beginnings in pairs(NAMES) do
        for _, beginning in ipairs(beginnings) do
            if name == beginning or #beginning > 1 and name:sub(1, #beginning) == beginning then
                return short
            end
        end
    end
end

-- What the attribute of a dataset says, as text, and the order that it means: one of ORDERS, false
-- for another one, nil where it has none or is not understood. `list`: the axes that are kept.
local function stated(file, path, list, rank)
    local value = file:attribute(path, "axes")
    local text = type(value) == "table" and table.concat(value, ":") or value
    if type(text) ~= "string" then
        return nil
    end
    local names, own, count = {}, {}, 0
    for name in text:lower():gmatch "[^%s:,%[%]()]+" do
        names[#names + 1] = name
    end
    for i = 1, 3 do
        local name = #names == rank and names[list[i]] or #names == 3 and names[i]
        local short = name and meaning(name)
        count = count + (short and not own[short] and 1 or 0)
        own[i] = short or "?"
        own[own[i]] = true
    end
    local order = table.concat(own, ":", 1, 3)
    if count < 3 then
        return source.shown(text)
    end
    return source.shown(text), (order == USUAL or order == TURNED) and order
end

-- The order of flats or darks of which no attribute says it: that of the projections, where the
-- rows fit it.
local function fitting(s, path, shape, list)
    if s.order == USUAL or shape[list[1]] ~= s.rows then
        return USUAL
    elseif shape[list[2]] == s.rows and not s.axes_given then
        s:warn(("'%s' (%s) does not say the order of its axes, and is read as %s, as the "
            .. "projections are: the option axes = %s says so"):format(path, axes.text(shape),
            TURNED, TURNED))
    end
    return TURNED
end

-- The order of projections.
local function order_of_data(s, path, text, order)
    if s.axes_given then
        if order ~= nil and order ~= s.axes_given then
            s:warn(("the option axes = %s is taken; by its attribute '%s' has the axes '%s'")
                :format(s.axes_given, path, text))
        end
        return s.axes_given
    elseif order == false or text and order == nil and s.format == "Data Exchange" then
        fail("unsupported", "scan.open", "axes", "'%s' in '%s' has the axes '%s'; %s and %s can be "
            .. "read: give the option axes where it has one of these, else write the dataset "
            .. "again in one of these orders", path, s.path, text, USUAL, TURNED)
    end
    return order or USUAL
end

--- Has a dataset shown as (frame, row, column) where it has three axes that are longer than 1, and
-- others; or rows before frames. `what`: "data", "flats" or "darks". Sets s.order for the
-- projections.
function axes.show(s, file, dataset, what)
    local shape, path = dataset.shape, dataset.path
    local list = dataset.dtype and kept(shape)
    if not list or #list ~= 3 then
        return
    end
    local text, order = stated(file, path, list, #shape)
    if what == "data" then
        order = order_of_data(s, path, text, order)
        s.order = order
    elseif s.axes_given or not order then
        order = fitting(s, path, shape, list)
    end
    if order == TURNED then
        dataset:show {list[2], list[1], list[3]}
    elseif #shape > 3 then
        dataset:show(list)
    end
end

--- Raises where `count` values for each frame do not fit the frames of a scan, but would if its
-- dataset had the other order of axes.
function axes.refuse_order(s, count)
    if s.data and not s.axes_given and count == s.rows and count ~= s.n_frames then
        local other = s.order == TURNED and USUAL or TURNED
        fail("argument", "scan.open", "axes", "'%s' in '%s' has %d x %d x %d values and there are "
            .. "%d angles: as %s it has %d frames of %d rows, as %s %d frames of %d rows: give the "
            .. "option axes, %s or %s", s.data_path, s.path,
            s.order == TURNED and s.rows or s.n_frames, s.order == TURNED and s.n_frames or s.rows,
            s.cols, count, s.order, s.n_frames, s.rows, other, s.rows, s.n_frames, USUAL,
            TURNED)
    end
end

--- Raises where flats or darks do not fit the rows of the projections, but both would fit in the
-- other order of axes. `shape`: theirs, as it is read.
function axes.refuse_rows(s, file, path, shape)
    if #shape == 3 and not s.axes_given and s.order == USUAL and s.data and s.n_frames
        and shape[1] == s.n_frames and shape[3] == s.cols then
        fail("argument", "scan.open", "axes", "'%s' in '%s' is %s and '%s' in '%s' %s: as %s they "
            .. "have %d and %d rows, as %s both %d: give the option axes, %s or %s", s.data_path,
            s.path, axes.text(s.data.shape), path, file.path, axes.text(shape), USUAL, s.rows,
            shape[2], TURNED, s.n_frames, USUAL, TURNED)
    end
end

return axes
