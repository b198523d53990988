local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local eigen = require "moonbeam.tomo.eigen"
local fail = require "moonbeam.internal.fail"

local LARGEST <const> = 3e38

-- The most components for this many flats.
local function most_of(options, flats)
    return math.min(options.components, flats)
end

local function zeros(count)
    local list = {}
    for i = 1, count do
        list[i] = 0
    end
    return list
end

-- Calls make() unless the step has the result for this key, which is the bytes that make works on:
-- a section's blocks all have the same flats.
local function remembered(step, name, key, make)
    local known = step[name]
    if not (known and known.key == key) then
        known = {key = key, value = make()}
        step[name] = known
    end
    return known.value
end

-- The factors of the flats in each component, one component after the other, from their inner
-- products: eigenvectors, scaled so that a component has a mean square of 1 over the pixels. They
-- are zero beyond those that stand out.
local function weights_of(products, options, pixels)
    local values, vectors = eigen.symmetric(products)
    if not values then
        fail("argument", "step flat_field_eigen", nil, "the flats hold values that are not finite "
            .. "or, less the dark, not positive; use step flat_field")
    end
    local n, weights = #products, {}
    local noise = math.abs(values[math.max(1, n - 1)])
    for k = 1, most_of(options, n) do
        local kept = values[k] > 0 and (k == 1 or values[k] > options.nsigma * noise)
        for j = 1, n do
            weights[#weights + 1] = kept and vectors[k][j] * math.sqrt(pixels / values[k]) or 0
        end
    end
    return weights
end

-- The inner products of frames, or of their columns first to last, as an array.
local function products_of(frames, first, last)
    local part <close> = frames:view(mb.all, mb.all, {first, last})
    return mb.gram_matrix(part)
end

-- Minus the logarithms of the flats: their mean, and what each is beside it.
local function logarithms(block, options)
    local flats, tally = mb.flat_field(block.flats, {darks = block.darks, floor = options.floor})
    tally:release()
    mb.minus_log(flats, {min = options.floor, max = LARGEST, out = flats})
    local mean = mb.mean_projection(flats)
    mb.binary(flats, "sub", {b = mean, out = flats})
    return mean, flats
end

-- What a beam consists of beside the mean (images, row, column).
local function basis_of(block, options, flats)
    local n, step = flats.shape[1], block.step
    local products <close> = mb.gram_matrix(flats)
    local weights = mb.bound(zeros(n * most_of(options, n)), function()
        return remembered(step, "weights", products:to_string(), function()
            return weights_of(products:to_table(), options, flats.shape[2] * flats.shape[3])
        end)
    end)
    return mb.eigen_flats(flats, weights)
end

-- The inverse of the inner products of the basis over both strips, row after row.
local function inverse_of(block, basis, width)
    local m, columns, step = basis.shape[1], basis.shape[3], block.step
    local products <close> = products_of(basis, 1, width)
    local right <close> = products_of(basis, columns - width + 1, columns)
    mb.binary(products, "add", {b = right, out = products})
    return mb.bound(zeros(m * m), function()
        return remembered(step, "inverse", products:to_string(), function()
            local list = {}
            for _, row in ipairs(eigen.inverse(products:to_table())) do
                table.move(row, 1, m, #list + 1, list)
            end
            return list
        end)
    end)
end

local function dark_of(block)
    if not block.darks then
        return nil
    end
    local frames <close> = block.darks:cast "f32"
    return mb.mean_projection(frames)
end

-- Arrays by name that are released together.
local owned = {__index = {}}
owned.__close = function(arrays)
    for _, name in ipairs {"flats", "basis", "dark"} do
        arrays:drop(name)
    end
end

function owned.__index.drop(arrays, name)
    local array = rawget(arrays, name)
    if array then
        arrays[name] = nil
        array:release()
    end
end

return {
    name = "flat_field_eigen",
    summary = "Counts to transmission, by a flat that is made for each projection out of eigen "
        .. "flats.",
    doc = "For a beam that moves and flickers. The logarithms of the flats, less the mean dark, "
        .. "are taken apart into principal components. A component counts if its eigenvalue is "
        .. "above nsigma times the second smallest, which is noise; the first always does. For "
        .. "each projection, the components, a constant and gradients along rows and columns are "
        .. "fitted by least squares on strips at the left and the right edge, which must see "
        .. "nothing but the beam. The projection is divided by the beam that comes out. Values "
        .. "that are not finite become 1. Put dezinger before it, which takes outliers of flats "
        .. "out, too.\n"
        .. "nabu takes the median of darks, and the result of its own filter of outliers is not "
        .. "used.",
    reference = "C. Jailin et al., J. Synchrotron Rad. 24 (2017) 220",
    options = declared.options(
        {"nsigma", "number", "least eigenvalue of a component", unit = "the second smallest",
            min = 0, max = 1e6, default = 3},
        {"components", "count", "most components; memory for as many is taken", min = 1, max = 20,
            default = 10},
        {"strips", "number", "width of each strip", unit = "the columns of the detector", above = 0,
            max = 0.5, default = 0.125},
        declared.from("eigen_flat_field", "floor", "nonfinite")),
    presets = {nabu = {nsigma = 3, strips = 0.125}},
    takes = {quantity = "counts", layout = "frames", dtypes = {"u8", "u16", "i32", "f16"}},
    gives = {quantity = "transmission", layout = "same"},
    cuts = {"frames"},
    prepare = function(options, _, source)
        local flats = source.scan and source.scan.n_flats
        if flats and (flats < 3 or flats > 512) then
            fail("argument", nil, nil, "the scan has %d flats; principal components need 3 to 512: "
                .. "use step flat_field", flats)
        end
        return options
    end,
    run = function(block, options)
        local mean <close>, flats = logarithms(block, options)
        local made <close> = setmetatable({flats = flats}, owned)
        made.basis = basis_of(block, options, flats)
        made:drop "flats"
        local columns = block.data.shape[3]
        local width = math.max(1, math.floor(options.strips * columns))
        local inverse = inverse_of(block, made.basis, width)
        made.dark = dark_of(block)
        local result, counts = mb.eigen_flat_field(block.data, mean, made.basis, inverse,
            {dark = made.dark, width = width, floor = options.floor,
                nonfinite = options.nonfinite})
        block:replace(result)
        block.mended = counts
        block:drop_references()
    end,
}
