local input_file = require "moonbeam.internal.files.input_file"
local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local frame_warp = require "moonbeam.pipeline.frame_warp"
local geometry = require "moonbeam.pipeline.geometry"
local tables = require "moonbeam.internal.tables"

local MOST_BYTES <const> = 65536 -- of a file of coefficients

-- The numbers of a file of coefficients: the last word of each line.
local function numbers_of(path)
    local facts = mb.system.stat(path)
    local file <close> = facts and facts.kind == "file" and input_file.open(path) or nil
    local text, numbers = file and file:read(MOST_BYTES), {}
    if not text then
        fail("io", nil, "file", "file is '%s', which cannot be read", path)
    end
    for line in text:gmatch "[^\r\n]+" do
        local word = line:match "(%S+)%s*$"
        if word then
            numbers[#numbers + 1] = tonumber(word) or fail("argument", nil, "file", "file is '%s', "
                .. "in which '%s' is not a number; each line ends with one: the column of the "
                .. "center, its row, and the factors", path, word)
        end
    end
    if #numbers < 3 then
        fail("argument", nil, "file", "file is '%s', with %d numbers; it has the column of the "
            .. "center, its row, and at least one factor", path, #numbers)
    end
    return numbers
end

return frame_warp.step({
    name = "distortion",
    summary = "Takes the radial distortion of the lens out of frames.",
    doc = "A pixel of the result at the distance r from the center has the value that the frame "
        .. "has at center + f(r) (pixel - center), with f(r) = f1 + f2 r + f3 r^2 and so on: the "
        .. "backward model of Discorpy, whose files of coefficients are read as they are. Center "
        .. "and distances are those of the scan, also after a crop or a binning. A row needs "
        .. "rows beside it. Pixels that need a NaN become NaN.",
    reference = "N. T. Vo et al., Opt. Express 23 (2015) 32859",
    presets = {httomo = {order = 3, mode = "edge"}, algotom = {order = 1, mode = "edge"}},
    options = declared.options(
        {"file", "string", "file of coefficients: one on each line, after its name: the column of "
            .. "the center, its row, and the factors", path = true},
        {"center", "list", "{row, column} of the center of distortion, from 0", unit = "px",
            count = 2},
        {"factors", "list", "factors of the polynomial, from the constant"},
        frame_warp.options "undistort"),
    prepare = function(options)
        local own = tables.merged(options)
        if options.file and (options.center or options.factors) then
            fail("argument", nil, "file", "file and %s both give coefficients; remove one",
                options.center and "center" or "factors")
        elseif options.file then
            local numbers = numbers_of(options.file)
            own.center = {numbers[2], numbers[1]}
            own.factors = table.move(numbers, 3, #numbers, 1, {})
            own.file = nil
        end
        return own
    end,
    check = function(options)
        if not options.center or not options.factors then
            local missing = options.center and "factors" or "center"
            fail("argument", nil, missing, "%s is missing; give file = ..., or center = {row, "
                .. "column} and factors = {...}", missing)
        elseif #options.factors > 12 or (options.factors[1] or 0) <= 0 then
            fail("argument", nil, "factors", "factors has %d numbers and begins with %g; give 1 to "
                .. "12, of which the first, the magnification at the center, is about 1",
                #options.factors, options.factors[1] or 0)
        end
    end,
}, {
    operator = "undistort",
    required = {"center", "factors"},
    parameters = function(options, g)
        local center = {geometry.row_element(g, options.center[1] + 1) - 1,
            geometry.element(g, options.center[2])}
        return {center = center, factors = options.factors, scale = {math.abs(g.row_step),
            g.column_step}}
    end,
})
