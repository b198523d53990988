-- Chains: what binds, with which kinds, shapes and geometry, and what is refused, with the step's
-- name and what to do.

require "moonbeam"
local helper = require "spec.helper"
local chain = require "moonbeam.pipeline.chain"
local recipe = require "moonbeam.pipeline.recipe"

-- A scan that nobody can read: 180 projections over half a turn, 64 rows, 96 columns.
local function scan_of(changes)
    local scan = {n_angles = 180, rows = 64, cols = 96, dtype = "u16", n_flats = 10, n_darks = 10,
        angles = {}, pixel_size = 1e-6}
    for name, value in pairs(changes or {}) do
        scan[name] = value
    end
    for i = 1, scan.n_angles do
        scan.angles[i] = (i - 1) * (scan.turn or math.pi) / scan.n_angles
    end
    return scan
end

local function bind(text, changes, options)
    return chain.bind(recipe.parse("{" .. text .. "}"),
        chain.source_of(scan_of(changes), changes), options)
end

-- A recipe, what its error must contain, and changes of the scan.
local REFUSED = {
    {"", "pipeline: the recipe is empty; give its steps, such as"},
    {"'flat_feld'", "pipeline: there is no step 'flat_feld'; did you mean 'flat_field'?"},
    {"'flat_field', 'minus_log', 'minus_log'", "step minus_log#2: it takes transmission, and the "
        .. "data are line integrals since step minus_log; step minus_log has done it already: "
        .. "leave one of the two out"},
    {"'flat_field', 'flat_field'", "step flat_field#2: it takes counts",
        "step flat_field has done it already"},
    {"'minus_log'", "step minus_log: it takes transmission, and the data are counts",
        "put \"flat_field\" before it"},
    {"{'fbp', center = 40}", "step fbp: it takes line integrals or phase",
        "put \"flat_field\" and \"minus_log\" before it"},
    {"'flat_field', {'fbp', center = 40}", "step fbp:", "put \"minus_log\" before it"},
    {"'flat_field', 'minus_log', 'fbp'", "step fbp: center is not known; put \"center\" before it"},
    {"'flat_field', 'minus_log', 'center', {'fbp', center = 40}",
        "step fbp: center = 40 is given, and step center finds it too; leave one of the two out"},
    {"'flat_field', 'center', 'center'", "step center#2: step center finds the center already"},
    {"'flat_field', 'minus_log', 'center', 'fbp', 'fourier'",
        "step fourier: it takes frames, and the data are slices since step fbp"},
    {"'flat_field', 'minus_log', 'center', {'fbp', filter = 'han'}",
        "step fbp: filter is the string 'han'; give ram-lak", "did you mean 'hann'?"},
    {"'flat_field', 'minus_log', 'center', {'fbp', filtr = 'hann'}",
        "step fbp: unknown option 'filtr'; did you mean 'filter'?"},
    {"{'crop', columns = {10, 200}}", "step crop: columns are 10 to 200; there are 1 to 96"},
}

describe("chain.bind", function()
    it("binds the usual chain", function()
        local bound = bind("{'crop', columns = {11, -11}}, 'flat_field', 'minus_log', 'center', "
            .. "'fbp', {'rescale', dtype = 'uint8', percentiles = {0.1, 99.9}}")
        assert.same({quantity = "scaled", layout = "slices"}, bound.kind)
        assert.same({64, 76, 76}, bound.shape)
        assert.equal("u8", bound.dtype)
        assert.equal(11, bound.geometry.first_column)
        assert.same({center = "center"}, bound.steps[5].values)
        assert.equal("shepp-logan", bound.steps[5].options.filter)
        assert.same({180, 64, 76}, bound.steps[1].shape)
    end)

    for _, case in ipairs(REFUSED) do
        it("refuses " .. case[1], function()
            local text = helper.failure(bind, case[1], case.scan)
            for i = 2, #case do
                assert.is_truthy(text:find(case[i], 1, true), text)
            end
        end)
    end
end)
