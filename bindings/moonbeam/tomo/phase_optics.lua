--- The physics and the options that the steps of phase retrieval share: from energy, distances and
-- pixel size to the operator phase_filter.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local obeyed = require "moonbeam.scan.statements.obeyed"
local tables = require "moonbeam.internal.tables"
local units = require "moonbeam.scan.units"

local phase_optics = {}


--- Options of the beam, of the object, and of the padding.
phase_optics.options = declared.options(
    {"energy", "number", "photon energy of the beam", unit = "eV", min = 1e3, max = 1e7,
        usual = "as the scan says"},
    {"distance", "number", "from the object to the detector", unit = "m", above = 0, max = 1e4,
        usual = "as the scan says"},
    {"source_distance", "vector", "from the source to the object, where the beam diverges: one "
        .. "number, or {rows, columns} of an astigmatic beam", unit = "m", above = 0, max = 1e6,
        usual = "a parallel beam"},
    {"pixel_size", "number", "of the detector", unit = "m", above = 0, max = 0.1,
        usual = "as the scan says"},
    {"delta_beta", "number", "delta / beta of the material", min = 1e-6, max = 1e12},
    declared.from("phase_filter", {"padding", doc = "what is around a frame"}, "value"),
    {"size", "choice", "padded extents. auto: powers of two that leave room for the filter, power: "
        .. "the next power of two, fresnel: that with room for pi * wavelength * distance / pixel "
        .. "size, double: products of 2, 3, 5 and 7 of at least twice the extent",
        choices = {"auto", "power", "fresnel", "double"}, default = "auto"})

local MEANINGS <const> = {energy = "photon energy in eV", distance = "from the object to the "
    .. "detector in m", pixel_size = "in m"}

local MOST <const> = 3 -- places that are named

-- "no energy in A, B".
local function absent(name, looked)
    return ("no %s in %s%s"):format(name, table.concat(looked, ", ", 1, math.min(MOST, #looked)),
        #looked > MOST and (", nor in %d more places"):format(#looked - MOST) or "")
end

-- "a, b and c".
local function listed(names)
    return #names == 1 and names[1]
        or table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names]
end

-- Where the scan was asked for what is missing, or what is wrong with what it says.
local function reason_of(names, g)
    local stated, reasons = g.stated or {}, {}
    for _, name in ipairs(names) do
        local problems = stated.problems and stated.problems[name]
        local looked = stated.looked and stated.looked[name]
        reasons[#reasons + 1] = problems and table.concat(problems, ", ")
            or looked and looked[1] and absent(name, looked) or nil
    end
    return reasons[1] and (" (%s)"):format(table.concat(reasons, "; ")) or ""
end

--- The options, where they lack energy, distance or pixel size with those of the scan. What is
-- missing in both is named at once, with `more`, a list of {name, doc} that the step misses too.
-- Errors: argument.
function phase_optics.prepared(options, g, more)
    local own = tables.merged(options)
    local said = obeyed.optics(g.says or {}, options.source_distance)
    own.energy, own.distance = options.energy or said.energy, options.distance or said.distance
    own.pixel_size = options.pixel_size or g.pixel_size
    local names, remedies = {}, {}
    for _, name in ipairs {"energy", "distance", "pixel_size"} do
        if not own[name] then
            names[#names + 1] = name
            remedies[#remedies + 1] = ("%s = ..., %s"):format(name, MEANINGS[name])
        end
    end
    local reason = reason_of(names, g)
    for _, each in ipairs(names[1] and more or {}) do
        names[#names + 1] = each[1]
        remedies[#remedies + 1] = ("%s = ..., %s"):format(each[1], each[2])
    end
    if names[1] then
        fail("argument", nil, names[1], "%s %s missing, and the scan does not say %s%s; give %s",
            listed(names), #names == 1 and "is" or "are",
            #names == 1 and "it" or "them", reason, table.concat(remedies, "; "))
    end
    return own
end

--- wavelength * distance / pixel size^2, of {rows, columns}. In a beam from a source at z1, the
-- distance z2 counts as z1 z2 / (z1 + z2), and a pixel as z1 / (z1 + z2) of its size, with the
-- larger magnification of both axes.
function phase_optics.fresnel(options, g)
    local source, distance = options.source_distance, options.distance
    local wavelength = units.ENERGY_LENGTH / options.energy
    local of_axes, most = type(source) == "table" and source or {source, source}, 1
    for i = 1, source and 2 or 0 do
        most = math.max(most, (of_axes[i] + distance) / of_axes[i])
    end
    local result = {}
    for i = 1, 2 do
        local z1 = of_axes[i]
        local path = z1 and z1 * distance / (z1 + distance) or distance
        local pixel = options.pixel_size / most * (i == 1 and g.row_step / g.column_step or 1)
        result[i] = wavelength * path / (pixel * pixel)
    end
    return result
end

local function power(least)
    local size = 2
    while size < least do
        size = 2 * size
    end
    return size
end

local function smooth(least)
    while true do
        local rest = least
        for _, prime in ipairs {2, 3, 5, 7} do
            while rest % prime == 0 do
                rest = rest // prime
            end
        end
        if rest == 1 and least % 2 == 0 then
            return least
        end
        least = least + 1
    end
end

--- The padded extents {rows, columns} of frames with these extents; nil: the operator chooses.
function phase_optics.padded(options, fresnel, rows, columns)
    local size, result = options.size, {}
    if size == "auto" or options.padding == "none" then
        return nil
    end
    for i, n in ipairs {rows, columns} do
        result[i] = size == "power" and power(n + 1) or size == "double" and smooth(2 * n)
            or power(n + math.ceil(math.pi * fresnel[i]))
    end
    return result
end

--- Checks source_distance, and that the operator takes frames of this shape. `parameters(options,
-- geometry, rows, columns)` returns fresnel and the operator's other parameters.
function phase_optics.check(options, shape, g, parameters)
    local source = options.source_distance
    if type(source) == "table" and #source ~= 2 then
        fail("argument", nil, "source_distance", "source_distance has %d numbers; give one, or "
            .. "{rows, columns}", #source)
    end
    local fresnel, own = parameters(options, g, shape[2], shape[3])
    own.fresnel = fresnel
    mb.op.estimate("phase_filter", {{"f32", 1, shape[2], shape[3]}}, own)
end

return phase_optics
