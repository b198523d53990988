local mb = require "moonbeam"
local helper = require "spec.helper"

describe("convert", function()
    local function converted(values, from, to, options)
        local a <close> = mb.array(values, { dtype = from })
        local r <close> = mb.convert(a, to, options)
        assert.equal(to, r.dtype)
        return r:to_table()
    end

    it("rounds to nearest even and clamps to the type", function()
        assert.same({ 0, 0, 2, 2, 255, 0 }, converted({ 0.5, -0.5, 1.5, 2.5, 300, -7 }, "f32",
            "u8"))
        assert.same({ 65535, 0, 3 }, converted({ 1e9, -1, 3.4999 }, "f64", "u16"))
        assert.same({ 2147483647, -2147483648, -2 }, converted({ 3e9, -3e9, -2.5 }, "f64", "i32"))
    end)

    it("turns NaN into 0 for integers and infinities into the limits", function()
        assert.same({ 0, 255, 0 }, converted({ 0 / 0, math.huge, -math.huge }, "f32", "u8"))
        assert.same({ 0, 2147483647 }, converted({ 0 / 0, math.huge }, "f32", "i32"))
    end)

    it("keeps NaN and infinities of reals", function()
        local t = converted({ 0 / 0, math.huge, -2 }, "f64", "f32")
        assert.truthy(t[1] ~= t[1])
        assert.same({ math.huge, -2 }, { t[2], t[3] })
        t = converted({ 0 / 0, 1e6, 0.1 }, "f32", "f16")
        assert.truthy(t[1] ~= t[1])
        assert.equal(math.huge, t[2])
        assert.near(0.1, t[3], 5e-5)
    end)

    it("scales before it offsets", function()
        assert.same({ -1, 1, 3 }, converted({ 0, 1, 2 }, "u16", "f32", { scale = 2, offset = -1 }))
        assert.same({ { 4, 8 } }, converted({ { 1, 4 } }, "c64", "c128", { scale = 2, offset = 2 }))
    end)

    it("makes complex numbers of real ones", function()
        assert.same({ { 1.5, 0 }, { -2, 0 } }, converted({ 1.5, -2 }, "f32", "c64"))
    end)

    it("refuses to make real numbers of complex ones", function()
        local a <close> = mb.zeros({ 3 }, { dtype = "c64" })
        local text, err = helper.failure(mb.convert, a, "f32")
        assert.equal("dtype", err.code)
        assert.equal("dtype", err.arg)
        assert.truthy(text:find("view", 1, true))
    end)

    for _, dtype in ipairs { "u8", "i32", "f16", "f32", "f64", "c64" } do
        it("copies any view of " .. dtype, function()
            local a <close> = mb.random({ 3, 37, 41 }, { dtype = dtype, seed = 1, low = 0,
                high = 200 })
            local plain = a:to_table()
            for _, order in ipairs { { 1, 3, 2 }, { 3, 2, 1 }, { 2, 1, 3 }, { 3, 1, 2 } } do
                local view <close> = a:permute(table.unpack(order))
                local copy <close> = mb.convert(view, dtype)
                assert.truthy(copy.contiguous)
                local got = copy:to_table()
                local index = {}
                for i = 1, copy.shape[1] do
                    for j = 1, copy.shape[2] do
                        for k = 1, copy.shape[3] do
                            index[order[1]], index[order[2]], index[order[3]] = i, j, k
                            assert.same(plain[index[1]][index[2]][index[3]], got[i][j][k])
                        end
                    end
                end
            end
        end)
    end

    it("copies reversed, stepped and broadcast views, and writes into views", function()
        local a <close> = mb.array({ { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 } })
        local view <close> = a:view(mb.all, { 5, 1, -2 })
        local copy <close> = mb.convert(view, "f64")
        assert.same({ { 5, 3, 1 }, { 10, 8, 6 } }, copy:to_table())
        local row <close> = mb.array { 1, 2, 3 }
        local wide <close> = row:broadcast_to { 2, 3 }
        local both <close> = mb.convert(wide, "i32")
        assert.same({ { 1, 2, 3 }, { 1, 2, 3 } }, both:to_table())
        mb.convert(both, "f32", { out = view })
        assert.same({ { 3, 2, 2, 4, 1 }, { 3, 7, 2, 9, 1 } }, a:to_table())
    end)

    it("takes scalars and empty arrays", function()
        local s <close> = mb.full({}, 2.5)
        local r <close> = mb.convert(s, "u8")
        assert.equal(2, r:item())
        local e <close> = mb.zeros { 0, 4 }
        local f <close> = mb.convert(e, "u8")
        assert.same({ 0, 4 }, f.shape)
    end)
end)
