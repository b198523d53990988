-- op.piece: what a piece of a call needs, and its parameters.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("op.piece", function()
    it("gives the rows beside a piece, within the array", function()
        local function rows(first, last, mode)
            local piece = mb.op.piece("gaussian_filter", {{50, 20}}, {sigma = {0.75, 0},
                mode = mode}, {axis = 1, first = first, last = last})
            return {piece.first, piece.last, piece.skip}
        end
        assert.same({8, 23, 3}, rows(11, 20))
        assert.same({1, 5, 1}, rows(2, 2))
        assert.same({44, 50, 3}, rows(47, 50))
        assert.same({1, 50, 46}, rows(47, 50, "wrap"))
    end)

    it("names the arrays that are cut, and along which axes", function()
        local function arrays(...)
            return mb.op.piece(...).arrays
        end
        local third = {axis = 1, first = 2, last = 3}
        assert.same({data = 1, result = 1}, arrays("flat_field", {{"u16", 9, 4, 5}, {"u16", 2, 4, 5},
            {"u16", 3, 4, 5}}, nil, third))
        third.axis = 2
        assert.same({data = 2, darks = 2, result = 2}, arrays("flat_field", {{"u16", 9, 4, 5},
            {"u16", 2, 4, 5}}, nil, third))
        -- broadcast: b has the last axes; the result has an axis more than a
        assert.same({a = 2, b = 1, result = 2}, arrays("binary", {{3, 5, 7}, {5, 1}}, {fn = "add"},
            third))
        third.axis = 1
        assert.same({a = 1, result = 2}, arrays("binary", {{5, 7}, {4, 1, 7}}, {fn = "add"}, third))
        assert.same({a = 1}, arrays("reduce", {{5, 7}}, {fn = "max", axis = 1}, third))
        assert.same({a = 1, result = 1}, arrays("reduce", {{5, 7}}, {fn = "max", axis = 2}, third))
    end)

    it("takes the parameters that count rows from those of the whole", function()
        local function params(axis, first, last, name, input, given)
            local piece = mb.op.piece(name, {input}, given, {axis = axis, first = first, last = last})
            return piece.params, piece
        end
        assert.same({shifts = {2.5, -1}}, (params(1, 2, 3, "vertical_shift", {4, 8, 8},
            {shifts = {0, 2.5, -1, 7}})))
        assert.same({shifts = {1, 2}, indices = {2}}, (params(1, 3, 3, "vertical_shift", {3, 8, 8},
            {shifts = {1, 2}, indices = {1, 1, 2}})))
        assert.same({slice_shifts = {3}, filter = "hann"}, (params(1, 3, 3, "ramp_filter",
            {3, 8, 64}, {slice_shifts = {1, 2, 3}, filter = "hann"})))
        assert.same({seed = 4, first = 30}, (params(1, 3, 5, "poisson", {9, 15}, {seed = 4})))
        -- a piece of a cropped axis has the rows that stay, and loses none
        local own, piece = params(1, 2, 4, "crop", {10, 6}, {before = 2, after = {3, 0}})
        assert.same({before = {0, 2}, after = {0, 0}}, own)
        assert.same({4, 6, 0}, {piece.first, piece.last, piece.skip})
        own, piece = params(1, 2, 5, "pad", {3, 6}, {shape = {9, 8}, where = "center"})
        assert.same({2, 1}, own.before)
        assert.same({0, 1}, own.after)
        assert.same({1, 2, 0}, {piece.first, piece.last, piece.skip})
        -- rows that lie wholly in the padding still have a row of the array
        own, piece = params(1, 1, 2, "pad", {3, 6}, {before = {4, 0}, mode = "edge"})
        assert.same({1, 1, 0}, {piece.first, piece.last, piece.skip})
        assert.same({4, 0}, own.before)
        -- what rolls over the end needs the whole axis
        own, piece = params(1, 1, 2, "roll", {5, 4}, {shift = {1, 2}})
        assert.same({{shift = {1, 2}}, 1, 5, 0}, {own, piece.first, piece.last, piece.skip})
        own, piece = params(1, 2, 3, "roll", {5, 4}, {shift = {1, 2}})
        assert.same({{shift = {0, 2}}, 1, 2, 0}, {own, piece.first, piece.last, piece.skip})
    end)

    it("says what goes together and how results are joined", function()
        local piece = mb.op.piece("fourier_reconstruct", {{8, 3, 16}}, {angles = {0, 1, 2}},
            {axis = 1, first = 3, last = 6})
        assert.equal(2, piece.packet)
        assert.equal(8, piece.rows)
        piece = mb.op.piece("quantize", {{8, 16}}, {dtype = "u8", low = 0, high = 1},
            {axis = 2, first = 3, last = 6})
        assert.equal("sum", piece.combine)
        assert.is_nil(piece.arrays.counts)
    end)

    it("explains what it cannot do", function()
        local function failure(...)
            return (helper.failure(mb.op.piece, ...))
        end
        assert.matches("fft cannot be cut along axis 2 of these arguments",
            failure("fft", {{"c64", 4, 8}}, nil, {axis = 2, first = 1, last = 2}))
        assert.matches("pad cannot be cut along axis 1", failure("pad", {{4, 8}},
            {before = 2, mode = "reflect"}, {axis = 1, first = 1, last = 2}))
        assert.matches("last is 9; the rows along this axis are 1 to 8", failure("unary", {{8}},
            {fn = "abs"}, {axis = 1, first = 1, last = 9}))
        assert.matches("last is 2 and first is 3", failure("unary", {{8}}, {fn = "abs"},
            {axis = 1, first = 3, last = 2}))
        assert.matches("unknown option 'rows'", failure("unary", {{8}}, {fn = "abs"}, {rows = 1}))
    end)
end)
