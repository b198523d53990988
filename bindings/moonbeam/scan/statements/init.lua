--- What a scan's file states about its geometry and optics: scan.says, in a form ready to use.
-- The statements are rows of data (statements/definitions.lua); what is said of them in the report
-- is in statements/told.lua.
--
-- scan.says has half_acquisition (boolean), flip ({rows, columns}, booleans), axis (0-based column
-- of the stored frame), energy (eV), distance, propagation_distance and source_distance (m),
-- reversed_rotation (true), announced (projections), and translations (a list, see
-- reading.translation). What the file does not say is nil. scan.stated has the rest: {[field] =
-- {path, name}}, `problems` (of a field: texts), `looked` (of a field: paths), `axes` (the columns
-- that the axis may mean), `coordinates` (what x, y and z are, if that is known), `pixel_size` (a
-- text).

local definitions = require "moonbeam.scan.statements.definitions"
local reading = require "moonbeam.scan.statements.reading"
local source = require "moonbeam.scan.source"

local statements = {}

local function class_of(object)
    return object and object.attributes and object.attributes.NX_class
end

-- The groups of an entry that statements are in: {name = path}. Objects are those of a walk.
local function groups_of(layout)
    local groups = {entry = layout.entry, detector = layout.detector, sample = layout.sample,
        angles = type(layout.angles) == "string" and layout.angles or nil}
    local by_class = {NXsource = "source", NXbeam = "beam", NXmonochromator = "monochromator",
        NXinstrument = "instrument"}
    local outer = layout.entry:match "^(.+)/[^/]*$"
    for _, root in ipairs {layout.entry, outer} do
        for _, object in ipairs(layout.objects) do
            local name = object.kind == "group" and by_class[class_of(object)]
            if name and not groups[name] and object.path:sub(1, #root + 1) == root .. "/" then
                groups[name] = object.path
            end
        end
    end
    for _, object in ipairs(layout.objects) do
        for _, owner in ipairs {"detector", "sample"} do
            if class_of(object) == "NXtransformations" and object.path:match "^(.*)/[^/]*$"
                == groups[owner] then
                groups[owner .. "_transformations"] = object.path
            end
        end
    end
    for _, owner in ipairs {"detector", "sample"} do
        local name = owner .. "_transformations"
        groups[name] = groups[name] or groups[owner] .. "/transformations"
    end
    local instrument = groups.instrument or layout.entry .. "/instrument"
    groups.source = groups.source or instrument .. "/source"
    groups.monochromator = groups.monochromator or instrument .. "/monochromator"
    return groups
end

-- The paths of a statement: those of its table, with the groups' names in it.
local function paths_of(row, format, groups, file)
    local list = {}
    for _, path in ipairs(format == "NXtomo" and row.nxtomo or format == "Data Exchange"
        and row.exchange or {}) do
        if path:find "^{beam}" and not groups.beam then
            for _, beam in ipairs {groups.entry .. "/beam", groups.entry .. "/instrument/beam"} do
                list[#list + 1] = path:gsub("{beam}", beam)
            end
        else
            local full = path:gsub("{([%w_]+)}", groups)
            list[#list + 1] = not full:find("{", 1, true) and full or nil
        end
    end
    local there = {}
    for _, path in ipairs(list) do
        there[#there + 1] = file:exists(path) and path or nil
    end
    return list, there
end

-- What the axes of the file's coordinates are. The beam is along z and y is upright, as NeXus
-- defines; in NXtomo of the ESRF before version 2 the beam is along x and z is upright.
local function axes_of(file, layout)
    local system, version, esrf
    if layout.format == "NXtomo" then
        system = file:attribute(layout.entry, "NeXus_Coordinate_System")
        version = tonumber(file:attribute(layout.entry, "version"))
        esrf = type(system) == "string" and system:lower() == "esrf"
            or system == nil and version and version < 2
    end
    return esrf and {"beam", "lateral", "vertical"} or {"lateral", "vertical", "beam"},
        system ~= nil or version ~= nil
end

-- The members of a group of transformations, in the order of their names.
local function members_of(layout, path)
    local members = {}
    for _, object in ipairs(layout.objects or {}) do
        local kind = object.attributes and object.attributes.transformation_type
        if object.kind == "dataset" and kind and object.path:sub(1, #path + 1) == path .. "/" then
            members[#members + 1] = {path = object.path, type = kind,
                vector = object.attributes.vector}
        end
    end
    table.sort(members, function(a, b)
        return a.path < b.path
    end)
    return members
end

local NEAR <const> = 0.01 -- part by which numbers may differ that say the same

local function same(a, b)
    if type(a) == "table" then
        return a.rows == b.rows and a.columns == b.columns
    elseif type(a) == "number" then
        return math.abs(a - b) <= NEAR * math.max(math.abs(a), math.abs(b))
    end
    return a == b
end

-- Notes what a place says: the first one of a field is taken, another one may differ.
local function note(s, row, path, value)
    local says, stated, field = s.says, s.stated, row.gives
    if field == "translations" then
        says.translations = says.translations or {}
        for _, each in ipairs(value.path and {value} or value) do
            each.name = row.name
            table.insert(says.translations, each)
        end
    elseif says[field] == nil then
        says[field], stated[field] = value, {path = path, name = row.name}
    elseif field ~= "axis" and not same(says[field], value) then
        s:warn(("'%s' and '%s' say different things: the former is taken"):format(
            stated[field].path, path))
    end
end

local function problem_of(s, row, path, problem)
    local list = s.stated.problems[row.gives] or {}
    s.stated.problems[row.gives] = list
    list[#list + 1] = ("'%s' %s"):format(path, problem)
end

-- Fields whose statements must be understood: what is not understood is said when the scan is
-- opened. The others are needed by few steps, which say it.
local ALWAYS <const> = {
    half_acquisition = "the option half_acquisition or half_acquisition = false says whether it is "
        .. "a half acquisition",
    flip = "the option flip says how the frames are mirrored",
}

local MEMBERS <const> = {transformations = true, moved = true}

-- The energy of a layout that defines its unit: `factor` electronvolts.
local function defined_energy(s, place)
    s.stated.looked.energy = {place.path}
    local value = s.file:exists(place.path) and source.number(s.file, place.path)
    if value and value > 0 and value < math.huge then
        s.says.energy = value * place.factor
        s.stated.energy = {path = place.path, name = place.path:match "[^/]*$"}
    end
end

local function read_row(s, layout, groups, row, context)
    local list, there = paths_of(row, layout.format, groups, s.file)
    local looked = s.stated.looked[row.gives] or {}
    s.stated.looked[row.gives] = table.move(list, 1, #list, #looked + 1, looked)
    if row.kind == "flipped" and there[1] then
        local paths = {}
        for _, path in ipairs(there) do
            paths[path:match "[^/]*$"] = path
        end
        context.paths, there = paths, {there[1]}
    end
    for _, path in ipairs(there) do
        local members = MEMBERS[row.kind] and members_of(layout, path) or nil
        local ok, value, problem = pcall(reading[row.kind], {file = s.file, path = path,
            paths = context.paths, members = members}, context)
        if not ok then
            value, problem = nil, "cannot be read"
        end
        if value ~= nil then
            note(s, row, path, value)
        elseif problem then
            problem_of(s, row, path, problem)
            if ALWAYS[row.gives] then
                s:warn(("'%s' %s, and was not used: %s"):format(path, problem, ALWAYS[row.gives]))
            end
        end
    end
end

-- The column of the axis, and the other columns that the statement may mean. NXtomo does not say
-- where the position counts from: the ESRF's is the distance from the middle of upright frames.
-- 0 is what is written where nothing is known.
local function place_axis(s, layout, marked)
    local value, axis = s.says.axis, s.stated.axis
    if not value or value == 0 then
        s.says.axis, s.stated.axis = nil, nil
        return
    end
    local middle, last = (s.cols - 1) / 2, s.cols - 1
    local absolute = layout.format == "Data Exchange"
    local relative = not absolute and (axis.name == "estimated_cor_from_motor" or marked
        or value < 0 or value > last)
    local mirrored = s.says.flip and s.says.flip.columns
    local columns = {}
    columns[1] = not relative and value or nil
    if not absolute then
        columns[#columns + 1] = middle + (mirrored and -value or value)
        columns[#columns + 1] = mirrored and middle + value or nil
    end
    s.says.axis, s.stated.axes = columns[1], columns
end

--- Reads the statements of a scan that is being opened, whose frames are known: sets `says` and
-- `stated`.
function statements.read(s, layout)
    s.says, s.stated = {}, {problems = {}, looked = {}}
    if layout.energy then
        defined_energy(s, layout.energy)
    end
    if layout.format ~= "Data Exchange" and not layout.detector then
        return
    end
    local groups = layout.entry and groups_of(layout) or {}
    local axes, marked = axes_of(s.file, layout)
    local context = {scan = s, axes = axes, warn = function(text)
        s:warn(text)
    end}
    for _, row in ipairs(definitions) do
        read_row(s, layout, groups, row, context)
    end
    local flip = s.says.flip
    s.says.flip = flip and (flip.rows or flip.columns) and flip or nil
    s.stated.coordinates = (marked or layout.format == "Data Exchange") and axes or nil
    place_axis(s, layout, marked)
end

return statements
