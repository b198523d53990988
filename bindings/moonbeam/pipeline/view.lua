--- The data that a measuring step reads: rows or frames after the steps before it.

local mb = require "moonbeam"
local geometry_of = require "moonbeam.pipeline.geometry"
local on_error = require "moonbeam.internal.on_error"
local view_origin = require "moonbeam.pipeline.views.view_origin"
local work = require "moonbeam.pipeline.work"

local view = {}
local methods = {}
methods.__index = methods

--- A view of a section's data after its first `before` steps. Fields: shape, layout, quantity,
-- geometry, device, values (measured before), and rows ({first, last}: the rows that the result
-- needs). If the search for the axis knows the steps before, the fields `scan` and `settings` let
-- scan_center and scan_values read the scan themselves.
function view.of(section, before, device, values)
    local last = section.steps[before]
    local source = section.source
    local self = setmetatable({section = section, before = before, device = device,
        values = values, shape = last and last.shape or source.shape,
        layout = last and last.kind.layout or source.layout,
        quantity = last and last.kind.quantity or source.kind,
        geometry = last and last.geometry or source.geometry}, methods)
    self.rows = section.cut == "rows" and (section.whole or {section.first, section.last})
        or {1, self.shape[2]}
    local after = section.geometry
    if section.cut == "rows" and (after.row_step < 0) ~= (self.geometry.row_step < 0) then
        self.rows = geometry_of.row_elements(self.geometry, geometry_of.rows_of(after,
            self.rows[1], self.rows[2]), self.shape[2]) -- a later step flips them
    end
    return self
end

-- What a section of the view's chain reads for some rows or frames of it, without the defects of
-- the detector (defects.lua) if `bad` is given.
local function read_of(self, range, frames, bad)
    local made = work.read(self.section, self.device, range, {frames = frames,
        count = self.before})
    local _ <close> = on_error(function()
        made:drop_references()
        made.data:release()
    end)
    if bad and bad.source and self.section.source.scan then
        bad:fill_source(made, self.section.cut == "rows" and made.ranges.read
            or {1, self.section.source.scan.rows})
    end
    return made
end

--- The data of these rows ({first, last}), and of only these frames if they are given; the caller
-- closes them. In a section that is cut along frames, the steps work on all rows. `bad`: the
-- defects of the detector that are filled in before the first step.
function methods:data(rows, frames, bad)
    local section = self.section
    if section.cut == "rows" then
        return work.compute(section, read_of(self, rows, frames, bad), self.values, nil, nil,
            self.before)
    end
    frames = frames or {1, self.shape[1]}
    local whole <close> = work.compute(section, read_of(self, frames, nil, bad), self.values, nil,
        nil, self.before)
    local part <close> = whole:view(mb.all, rows, mb.all)
    return part:copy()
end

-- The settings with which scan_center.lua reads the scan itself, if it knows all steps before;
-- otherwise nil.
local function plain_settings(self)
    local source, settings = self.section.source, {device = self.device}
    if not source.scan then
        return nil
    elseif source.kind == "line integrals" then
        settings.log = false
    end
    for k = 1, self.before do
        local step = self.section.steps[k]
        if not step.def.plain or not step.def.plain(step.options, settings, step) then
            return nil
        end
    end
    return settings
end

-- The view without steps that compare projections: of a few projections these would make
-- something else than of all, and of all what misleads the ways that judge a sinogram.
local function of_projections(self)
    local section, steps, packets = self.section, {}, {}
    for k = 1, self.before do
        local step = section.steps[k]
        local across = step.def.across_angles
        if type(across) == "function" then
            across = across(step.options)
        end
        if not across then
            steps[#steps + 1], packets[#packets + 1] = step, section.packets[k]
        end
    end
    if #steps == self.before then
        return self
    end
    return setmetatable({before = #steps, section = setmetatable({steps = steps,
        packets = packets}, {__index = section})}, {__index = self})
end

--- The data as a scan, and the settings with which a search reads it: the scan itself if the search
-- knows the steps before, otherwise a scan whose frames come from `self:data`. That has an origin
-- (views/view_origin.lua). Steps that compare projections (stripes) are left out.
function methods:as_scan()
    self = of_projections(self)
    local settings = plain_settings(self)
    local geometry = self.geometry
    if settings then
        settings.rows = geometry_of.rows_of(geometry, self.rows[1], self.rows[2])
        return self.section.source.scan, settings
    end
    local scan = {n_angles = #geometry.angles, angles = geometry.angles, rows = self.shape[2],
        cols = self.shape[3], dtype = "f32", n_flats = 0, n_darks = 0,
        origin = view_origin.of(self)}
    function scan.chain(rows, frames, bad)
        if scan.origin and scan.origin.some and frames then
            return scan.origin.some(rows, frames, bad)
        end
        return self:data(rows, frames, bad)
    end
    scan.middle_row = geometry_of.row_element(geometry, (geometry.rows + 1) / 2)
    scan.place = {cols = geometry.cols, step = geometry.column_step, column_of = function(element)
        return geometry_of.column(geometry, element)
    end, element_of = function(column)
        return geometry_of.element(geometry, column)
    end, row_of = function(row)
        return geometry.first_row + (row - 1) * geometry.row_step
    end, row_element = function(row)
        return geometry_of.row_element(geometry, row)
    end}
    return scan, {device = self.device, rows = self.rows, log = self.quantity == "transmission",
        half_acquisition = geometry.half_acquisition or not geometry.never_half and nil,
        axis_tilt = geometry.lean ~= 0
            and math.atan(geometry.lean * geometry.row_step / geometry.column_step) or nil}
end

return view
