--- How the kinds of statements are read: a function(found, context) for each kind, which returns
-- the value, or nil and why it cannot be used. `found` is {file, path, paths}: the place, or all
-- places of the statement that are there, by their last names. `context` is {scan, axes}: what the
-- axes of the file's coordinates are.

local source = require "moonbeam.scan.source"
local units = require "moonbeam.scan.units"

local reading = {}

local MOST <const> = 1 << 24 -- numbers of a list

-- The number at a path, from a scalar, or from a list whose elements are all equal.
local function number_at(file, path)
    local value = file:value(path)
    if type(value) == "string" then -- "10x"
        value = tonumber(value:match "^%s*([%d.]+)%s*[xX]?%s*$") or value
    end
    if type(value) == "table" then
        local list = source.numbers(file, path, MOST)
        for _, each in ipairs(list) do
            if each ~= list[1] then
                return nil, "varies"
            end
        end
        value = list[1]
    end
    if type(value) ~= "number" then
        return nil, "is not a number"
    elseif value ~= value or math.abs(value) == math.huge then
        return nil, ("is %g"):format(value)
    end
    return value
end

function reading.number(found)
    return number_at(found.file, found.path)
end

-- A kind of positive numbers with units.
local function quantity(kind)
    return function(found)
        local value, problem = number_at(found.file, found.path)
        if not value then
            return nil, problem
        end
        local factor, unit = units.factor(found.file, found.path, kind)
        if not factor then
            return nil, ("is %g and %s"):format(value, unit)
        elseif value == 0 then
            return nil, "is 0"
        end
        return math.abs(value) * factor
    end
end

reading.length = quantity(units.length)
reading.energy = quantity(units.energy)

function reading.wavelength(found)
    local meters, problem = reading.length(found)
    return meters and units.ENERGY_LENGTH / meters, problem
end

local FLAGS <const> = {["true"] = true, yes = true, ["1"] = true, ["false"] = false, no = false,
    ["0"] = false}

local function flag_at(file, path)
    local value = file:value(path)
    while type(value) == "table" and #value == 1 do
        value = value[1]
    end
    if value == 0 or value == 1 then
        return value == 1
    elseif type(value) == "string" and FLAGS[value:lower()] ~= nil then
        return FLAGS[value:lower()]
    end
    return nil, ("is %s, neither true nor false"):format(type(value) == "string"
        and ("'%s'"):format(source.shown(value)) or tostring(value))
end

function reading.flag(found)
    return flag_at(found.file, found.path)
end

function reading.field_of_view(found)
    local value = found.file:value(found.path)
    if type(value) == "table" and #value == 1 then
        value = value[1]
    end
    local word = type(value) == "string" and value:lower():match "^%s*(.-)%s*$"
    if word == "half" or word == "full" then
        return word == "half"
    end
    return nil, ("is %s, neither Full nor Half"):format(type(value) == "string"
        and ("'%s'"):format(source.shown(value)) or tostring(value))
end

function reading.flipped(found)
    local flip = {rows = false, columns = false}
    for name, field in pairs {x_flipped = "columns", y_flipped = "rows"} do
        if found.paths[name] then
            local value, problem = flag_at(found.file, found.paths[name])
            if value == nil then
                return nil, problem
            end
            flip[field] = value
        end
    end
    return flip
end

-- Which axis a vector is along: 1, 2 or 3.
local function axis_of(vector)
    local along
    for i = 1, 3 do
        local part = type(vector) == "table" and tonumber(vector[i])
        if part and math.abs(part) > 0.99 then
            along = i
        end
    end
    return along
end

local NEAR <const> = 0.01 -- degrees

-- How a rotation flips frames: nil and a text for one that is no flip.
local function flip_of(found, member, axes)
    local value, problem = number_at(found.file, member.path)
    local factor = value and (units.factor(found.file, member.path, units.angle))
    if not value then
        return nil, ("'%s' %s"):format(member.path, problem)
    elseif not factor then
        return value == 0 and {} or nil, ("'%s' is a rotation by %g in no known unit"):format(
            member.path, value)
    end
    local degrees = value * factor % 360
    local along = axis_of(member.vector)
    if math.min(degrees, 360 - degrees) <= NEAR then
        return {}
    elseif math.abs(degrees - 180) > NEAR or not along then
        return nil, ("'%s' turns the frames by %g degrees"):format(member.path, value * factor)
    end
    return {rows = axes[along] ~= "vertical", columns = axes[along] ~= "lateral", any = true}
end

-- Rotations of a detector, and how they flip frames: those about several axes one after the other.
function reading.transformations(found, context)
    local flip, problem, known = {rows = false, columns = false}, nil, false
    for _, member in ipairs(found.members) do
        if member.type == "rotation" then
            local each, text = flip_of(found, member, context.axes)
            problem = problem or text
            known = known or each ~= nil
            if each and each.any then
                flip.rows = flip.rows ~= each.rows
                flip.columns = flip.columns ~= each.columns
            end
        end
    end
    if problem then
        context.warn(("%s, which is not undone: turn them before"):format(problem))
    end
    return known and flip or nil
end

--- {path, low, high, meters}: the least and the greatest of the projections, in meters if the unit
-- is known (nil: as they are); nothing where they do not vary.
function reading.translation(found, context)
    local scan = context.scan
    local list = source.numbers(found.file, found.path, MOST)
    local picked = #list == scan.n_frames and scan.frames
        or #list == scan.n_projections and scan.positions
    local low, high = math.huge, -math.huge
    for _, index in ipairs(picked or {}) do
        local value = list[index]
        if type(value) == "number" and value == value then
            low, high = math.min(low, value), math.max(high, value)
        end
    end
    if low >= high then
        return nil
    end
    local factor = units.factor(found.file, found.path, units.length)
    return {path = found.path, low = low * (factor or 1), high = high * (factor or 1),
        meters = factor ~= nil}
end

--- The translations of a group that vary, a list, or nil; each with the way of its vector.
function reading.moved(found, context)
    local list = {}
    for _, member in ipairs(found.members) do
        local each = member.type == "translation"
            and reading.translation({file = found.file, path = member.path}, context)
        if each then
            each.way = context.axes[axis_of(member.vector) or 0]
            list[#list + 1] = each
        end
    end
    return list[1] and list
end

--- Whether the axis of the rotation points down; nil where it is not said.
function reading.downward(found, context)
    local vector = found.file:attribute(found.path, "vector")
    local along = axis_of(vector)
    if along and context.axes[along] == "vertical" then
        return tonumber(vector[along]) < 0 or nil
    end
end

return reading
