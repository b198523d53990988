--- What a measuring step sees: rows or frames of the data, taken through the steps before it.

local mb = require "moonbeam"
local geometry_of = require "moonbeam.pipeline.geometry"
local work = require "moonbeam.pipeline.work"

local view = {}
local methods = {}
methods.__index = methods

--- A view of a section's data after its first `before` steps. Fields: shape, layout, quantity,
-- geometry, device, values (what was measured before), rows ({first, last}: those that the result
-- needs), and, where the steps before are known to it, `scan` and `settings`, from which
-- scan_center and scan_values read by themselves.
function view.of(section, before, device, values)
    local last = section.steps[before]
    local source = section.source
    local self = setmetatable({section = section, before = before, device = device,
        values = values, shape = last and last.shape or source.shape,
        layout = last and last.kind.layout or source.layout,
        quantity = last and last.kind.quantity or source.kind,
        geometry = last and last.geometry or source.geometry}, methods)
    self.rows = section.cut == "rows" and {section.first, section.last} or {1, self.shape[2]}
    return self
end

--- The data of these rows ({first, last}), and of these frames alone where they are given; to be
-- closed. Of a section that is cut along frames all rows are worked on.
function methods:data(rows, frames)
    local section = self.section
    if section.cut == "rows" then
        local made = work.read(section, self.device, rows, {frames = frames, count = self.before})
        return work.compute(section, made, self.values, nil, nil, self.before)
    end
    frames = frames or {1, self.shape[1]}
    local made = work.read(section, self.device, frames, {count = self.before})
    local whole <close> = work.compute(section, made, self.values, nil, nil, self.before)
    local part <close> = whole:view(mb.all, rows, mb.all)
    return part:copy()
end

-- The settings by which scan_center.lua reads the scan by itself, where the steps before are no
-- more than it knows; else nil.
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

--- The data as a scan, and the settings by which a search reads it: the scan itself where the
-- steps before are those that the search knows, else one whose frames are `self:data`.
function methods:as_scan()
    local settings = plain_settings(self)
    local geometry = self.geometry
    if settings then
        settings.rows = self.rows
        return self.section.source.scan, settings
    end
    local scan = {n_angles = #geometry.angles, angles = geometry.angles, rows = self.shape[2],
        cols = self.shape[3], dtype = "f32", n_flats = 0, n_darks = 0}
    function scan.chain(rows, frames)
        return self:data(rows, frames)
    end
    scan.middle_row = geometry_of.row_element(geometry, (geometry.rows + 1) / 2)
    scan.place = {column_of = function(element)
        return geometry_of.column(geometry, element)
    end, row_of = function(row)
        return geometry.first_row + (row - 1) * geometry.row_step
    end}
    return scan, {device = self.device, rows = self.rows, log = self.quantity == "transmission",
        axis_tilt = geometry.lean ~= 0
            and math.atan(geometry.lean * geometry.row_step / geometry.column_step) or nil}
end

return view
