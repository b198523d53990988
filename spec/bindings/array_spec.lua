-- Arrays in Lua: making, viewing, reading, computing, releasing.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("making arrays", function()
    it("takes nested tables and numbers", function()
        local a <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        assert.same({ 2, 3 }, a.shape)
        assert.equal("f32", a.dtype)
        assert.equal(24, a.bytes)
        assert.equal(6, a.elements)
        assert.equal(2, a.rank)
        assert.same({ 3, 1 }, a.strides)
        assert.is_true(a.contiguous)
        assert.equal(mb.device("host"), a.device)
        assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, a:to_table())
        local scalar <close> = mb.array(7, { dtype = "i32" })
        assert.equal(0, scalar.rank)
        assert.equal(7, scalar:item())
        assert.equal(7, scalar:to_table())
        local empty <close> = mb.array {}
        assert.same({ 0 }, empty.shape)
        assert.same({}, empty:to_table())
        assert.equal("", empty:to_string())
    end)

    it("rounds and clamps to the element type", function()
        local a <close> = mb.array({ -1, 0.5, 1.5, 255.6, 300 }, { dtype = "u8" })
        assert.same({ 0, 0, 2, 255, 255 }, a:to_table())
        assert.equal("integer", math.type(a:item(1)))
    end)

    it("takes options that a table inherits", function()
        local defaults = setmetatable({}, {__index = {dtype = "u8", low = 3, high = 3}})
        local a <close> = mb.zeros({2}, defaults)
        local b <close> = mb.random({2}, defaults)
        local c <close> = mb.random({2}, setmetatable({dtype = "f64"}, getmetatable(defaults)))
        assert.same({"u8", "u8", "f64"}, {a.dtype, b.dtype, c.dtype})
        assert.same({3, 3}, b:to_table())
    end)

    it("writes complex elements as pairs", function()
        local a <close> = mb.array({ { 1, 2 }, { 3, -4 } }, { dtype = "c64" })
        assert.same({ 2 }, a.shape)
        assert.same({ 3, -4 }, { a:item(2) })
        assert.same({ { 1, 2 }, { 3, -4 } }, a:to_table())
    end)

    it("refuses ragged tables and other values", function()
        assert.matches("ragged", (helper.failure(mb.array, { { 1, 2 }, { 3 } })))
        assert.matches("ragged", (helper.failure(mb.array, { { 1, 2 }, 3 })))
        assert.matches("%[1%]%[2%] is a string", (helper.failure(mb.array, { { 1, "x" } })))
        assert.matches("not a string", (helper.failure(mb.array, "x")))
        assert.matches("{re, im}", (helper.failure(mb.array, { { 1, 2, 3 } }, { dtype = "c64" })),
            1, true)
        local cycle = {}
        cycle[1] = cycle
        assert.matches("deep", (helper.failure(mb.array, cycle)))
    end)

    it("fills", function()
        local zeros <close> = mb.zeros { 2, 3 }
        assert.equal(0, zeros:norm())
        local ones <close> = mb.ones({ 4 }, { dtype = "u16" })
        assert.equal(4, ones:sum())
        local full <close> = mb.full({ 2, 2 }, 2.5, { dtype = "f64" })
        assert.equal(10, full:sum())
        full:fill(-1)
        assert.equal(-4, full:sum())
        local one <close> = mb.zeros(5)
        assert.same({ 5 }, one.shape)
    end)

    it("counts", function()
        local a <close> = mb.arange(4)
        assert.same({ 1, 2, 3, 4 }, a:to_table())
        local b <close> = mb.arange(0, 1, 0.1, { dtype = "f64" })
        assert.same({ 11 }, b.shape)
        local c <close> = mb.arange(3, 1, -1, { dtype = "i32" })
        assert.same({ 3, 2, 1 }, c:to_table())
        local d <close> = mb.arange(3, 1)
        assert.same({ 0 }, d.shape)
        local e <close> = mb.linspace(-1, 1, 5)
        assert.same({ -1, -0.5, 0, 0.5, 1 }, e:to_table())
        assert.matches("step", (helper.failure(mb.arange, 1, 2, 0)))
    end)

    it("takes raw bytes", function()
        local a <close> = mb.from_string(string.pack("<i4i4", 7, -8), { 2 }, { dtype = "i32" })
        assert.same({ 7, -8 }, a:to_table())
        assert.equal(string.pack("<i4i4", 7, -8), a:to_string())
        assert.matches("takes 8", (helper.failure(mb.from_string, "abc", { 2 })))
    end)

    it("makes reproducible random numbers", function()
        local a <close> = mb.random({ 3, 1000 }, { seed = 5 })
        local b <close> = mb.random({ 3000 }, { seed = 5 })
        local c <close> = mb.random({ 3000 }, { seed = 6 })
        assert.equal(a:to_string(), b:to_string())
        assert.not_equal(b:to_string(), c:to_string())
        assert.truthy(math.abs(a:mean() - 0.5) < 0.02)
        assert.truthy(a:min() >= 0 and a:max() < 1)
        local d <close> = mb.random({ 10000 }, { dtype = "i32", low = -2, high = 2 })
        assert.equal(-2, d:min())
        assert.equal(2, d:max())
        local most <close> = mb.random({10}, {dtype = "u8", low = 1e29, high = 1e30})
        assert.equal(2550, most:sum())
        assert.matches("below low", (helper.failure(mb.random, { 1 }, { low = 2, high = 1 })))
    end)

    it("checks shapes and options", function()
        assert.matches("negative", (helper.failure(mb.zeros, { 2, -1 })))
        assert.matches("at most 6", (helper.failure(mb.zeros, { 1, 1, 1, 1, 1, 1, 1 })))
        assert.matches("integer", (helper.failure(mb.zeros, { 1.5 })))
        assert.matches("did you mean 'dtype'", (helper.failure(mb.zeros, { 1 }, { dtyp = "f32" })))
        assert.matches("not an element type", (helper.failure(mb.zeros, { 1 }, { dtype = "f31" })))
        local aliased <close> = mb.zeros({ 1 }, { dtype = "float64" })
        assert.equal("f64", aliased.dtype)
    end)
end)

describe("views", function()
    local function sample()
        local a <close> = mb.arange(24)
        return a:reshape(2, 3, 4)
    end

    it("take ranges", function()
        local a <close> = sample()
        local v <close> = a:view(2, { 2, 3 }, mb.all)
        assert.same({ { 17, 18, 19, 20 }, { 21, 22, 23, 24 } }, v:to_table())
        local w <close> = a:view(mb.all, -1, { -2, -1 })
        assert.same({ { 11, 12 }, { 23, 24 } }, w:to_table())
        local r <close> = a:view(1, 1, { 4, 1, -2 })
        assert.same({ 4, 2 }, r:to_table())
        local whole <close> = a:view()
        assert.equal(a:to_string(), whole:to_string())
        local none <close> = a:view({ 2, 1 })
        assert.same({ 0, 3, 4 }, none.shape)
        local back <close> = a:view(mb.all, mb.all, { -1, 1, -1 })
        assert.equal(4, back:item(1, 1, 1))
        assert.is_false(back.contiguous)
        assert.equal(string.pack("<f", 4), back:to_string():sub(1, 4))
    end)

    it("refuse ranges outside", function()
        local a <close> = sample()
        assert.matches("outside axis 1", (helper.failure(a.view, a, { 1, 3 })))
        assert.matches("outside axis 2", (helper.failure(a.view, a, 1, 4)))
        assert.matches("outside axis 2", (helper.failure(a.view, a, 1, 0)))
        assert.matches("outside axis 2", (helper.failure(a.view, a, 1, -4)))
        assert.matches("step", (helper.failure(a.view, a, { 1, 2, 0 })))
        assert.matches("4 ranges", (helper.failure(a.view, a, 1, 1, 1, 1)))
        assert.matches("mb.all", (helper.failure(a.view, a, "x")))
        assert.matches("outside axis 3", (helper.failure(a.item, a, 1, 1, 5)))
    end)

    it("come from integer indices", function()
        local a <close> = sample()
        local first <close> = a[1]
        assert.same({ 3, 4 }, first.shape)
        local last <close> = a[-1]
        assert.equal(13, last:item(1, 1))
        assert.equal(2, #a)
        assert.matches("index 3 is outside axis 1", (helper.failure(function()
            return a[3]
        end)))
    end)

    it("change shape without copying", function()
        local a <close> = sample()
        local t <close> = a:transpose()
        assert.same({ 2, 4, 3 }, t.shape)
        assert.equal(5, t:item(1, 1, 2))
        local p <close> = a:permute(3, 1, 2)
        assert.same({ 4, 2, 3 }, p.shape)
        assert.equal(a:item(2, 3, 4), p:item(4, 2, 3))
        local r <close> = a:reshape(6, -1)
        assert.same({ 6, 4 }, r.shape)
        local row <close> = r[1]
        local b <close> = row:broadcast_to(3, 4)
        assert.same({ { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4 } }, b:to_table())
        assert.equal("shape", select(2, helper.failure(a.reshape, a, 5, 5)).code)
        assert.equal("shape", select(2, helper.failure(t.reshape, t, 24)).code)
        assert.matches("twice", (helper.failure(a.permute, a, 1, 1, 2)))
        assert.matches("axis 4 does not exist", (helper.failure(a.permute, a, 1, 2, 4)))
        local pairs_of_floats <close> = a:reshape(6, 4)
        local complex <close> = pairs_of_floats:reinterpret("c64")
        assert.same({ 6, 2 }, complex.shape)
        assert.same({ 3, 4 }, { complex:item(1, 2) })
    end)

    it("see the same bytes as other elements, where rows, pitch and offset are whole ones",
        function()
        local block <close> = mb.pool.alloc(3 * 16)
        local floats <close> = block:reinterpret("f32")
        assert.same({ 12 }, floats.shape)
        floats:fill(1) -- 0x3F800000
        assert.same({ 0, 0, 128, 63 }, { block:item(1), block:item(2), block:item(3),
            block:item(4) })
        local rows <close> = block:reshape(3, 16)
        local middle <close> = rows:view(mb.all, { 5, 12 })
        local pairs_of_rows <close> = middle:reinterpret("f32")
        assert.same({ 3, 2 }, pairs_of_rows.shape)
        assert.same({ 4, 1 }, pairs_of_rows.strides)
        assert.same({ { 1, 1 }, { 1, 1 }, { 1, 1 } }, pairs_of_rows:to_table())
        local bytes <close> = pairs_of_rows:reinterpret("u8")
        assert.same({ 3, 8 }, bytes.shape)
        assert.same({ 16, 1 }, bytes.strides)
        for _, ranges in ipairs { { 4, 11 }, { 5, 11 } } do -- offset, then width
            local odd <close> = rows:view(mb.all, ranges)
            assert.matches("not a whole number of f32",
                (helper.failure(odd.reinterpret, odd, "f32")))
        end
        local turned <close> = rows:transpose()
        assert.matches("last axis must be dense",
            (helper.failure(turned.reinterpret, turned, "f32")))
    end)

    it("share their data, and live without the array they came from", function()
        local a = sample()
        local v <close> = a[2]
        v:fill(0)
        assert.equal(78, a:sum())
        a:release()
        assert.equal(0, v:sum())
    end)

    it("iterate, and are released on the way", function()
        local a <close> = sample()
        local sums, kept = {}, nil
        for i, slice in a:slices() do
            sums[i] = slice:sum()
            kept = slice
        end
        assert.same({ 78, 222 }, sums)
        assert.is_true(kept.released)
        for _, slice in a:slices() do -- luacheck: ignore 512
            kept = slice
            break
        end
        assert.is_true(kept.released)
    end)
end)

describe("computing", function()
    it("has arithmetic with arrays and numbers", function()
        local a <close> = mb.array { { 1, 2 }, { 3, 4 } }
        local b <close> = mb.array { 10, 20 }
        local cases = {
            { a + b, { { 11, 22 }, { 13, 24 } } },
            { a - 1, { { 0, 1 }, { 2, 3 } } },
            { 1 - a, { { 0, -1 }, { -2, -3 } } },
            { a * 2, { { 2, 4 }, { 6, 8 } } },
            { 12 / a, { { 12, 6 }, { 4, 3 } } },
            { a / 2, { { 0.5, 1 }, { 1.5, 2 } } },
            { a ^ 2, { { 1, 4 }, { 9, 16 } } },
            { 2 ^ a, { { 2, 4 }, { 8, 16 } } },
            { -a, { { -1, -2 }, { -3, -4 } } },
        }
        for _, case in ipairs(cases) do
            assert.same(case[2], case[1]:to_table())
            case[1]:release()
        end
        assert.is_true(a == a)
        local same <close> = a:copy()
        assert.is_false(rawequal(a, same))
        assert.matches("number or an array", (helper.failure(function()
            return a + {}
        end)))
        assert.matches("number or an array", (helper.failure(function()
            return "1" .. a + "x"
        end)))
    end)

    it("reduces", function()
        local a <close> = mb.array { { 1, -2, 3 }, { 4, 5, -6 } }
        assert.equal(5, a:sum())
        assert.equal(-6, a:min())
        assert.equal(5, a:max())
        assert.equal(5 / 6, a:mean())
        assert.equal(math.sqrt(91), a:norm())
        local rows <close> = a:sum(2)
        assert.same({ 2, 3 }, rows:to_table())
        local columns <close> = a:max(1)
        assert.same({ 4, 5, 3 }, columns:to_table())
        local whole <close> = mb.array({ 1, 2 }, { dtype = "u16" })
        assert.equal("integer", math.type(whole:sum()))
    end)

    it("copies and converts", function()
        local a <close> = mb.array { { 1.4, 2.6 }, { 3, 300 } }
        local t <close> = a:transpose()
        local c <close> = t:copy()
        assert.is_true(c.contiguous)
        assert.equal(t:to_string(), c:to_string())
        local u <close> = a:cast("u8")
        assert.same({ { 1, 3 }, { 3, 255 } }, u:to_table())
        local scaled <close> = a:cast("i32", { scale = 10, offset = 1 })
        assert.same({ { 15, 27 }, { 31, 3001 } }, scaled:to_table())
        assert.equal(a, a:dense())
        local d <close> = t:dense()
        assert.is_false(rawequal(t, d))
        local moved <close> = t:to("host")
        assert.equal(t:to_string(), moved:to_string())
    end)

    helper.gpu_it("moves to the GPU and back", function()
        local a <close> = mb.random({ 3, 5, 7 }, { seed = 1 })
        local t <close> = a:permute(2, 3, 1)
        local g <close> = t:to("cuda:0")
        assert.equal("cuda:0", g.device.id)
        assert.equal(t:to_string(), g:to_string())
        local v <close> = g:view({ 5, 1, -2 }, mb.all, 2)
        local w <close> = t:view({ 5, 1, -2 }, mb.all, 2)
        assert.same(w:to_table(), v:to_table())
        local back <close> = v:to("host")
        assert.same(w:to_table(), back:to_table())
        assert.equal("argument", select(2, helper.failure(function()
            return a + g
        end)).code)
    end)
end)

describe("an array", function()
    it("prints what it is", function()
        local a <close> = mb.zeros { 3, 5, 16 }
        assert.equal("f32 array 3 x 5 x 16, 960 B, host", tostring(a))
        a:release()
        assert.equal("released array", tostring(a))
    end)

    it("has no finalizer once it was released, and nothing else less", function()
        local live <close>, a = mb.zeros {2}, mb.zeros {2}
        local metatable = debug.getmetatable(a)
        assert.equal(debug.getmetatable(live), metatable)
        a:release()
        local left = debug.getmetatable(a)
        for name, value in pairs(metatable) do
            assert.equal(name ~= "__gc" and value or nil, rawget(left, name), name)
        end
        for name in pairs(left) do
            assert.is_not_nil(metatable[name], name)
        end
        assert.equal(debug.getmetatable(live), metatable)
        assert.is_true(mb.array.is_array(a) and mb.array.is_array(live))
        assert.is_false(mb.array.is_array(io.stdout) or mb.array.is_array(metatable))
        assert.is_false(mb.array.is_array())
    end)

    it("says so when it was released", function()
        local a = mb.zeros { 3 }
        local other <close> = mb.zeros { 3 }
        assert.is_false(a.released)
        a:release()
        a:release()
        assert.is_true(a.released)
        for _, f in ipairs {
            function() return a.shape end,
            function() return a[1] end,
            function() return #a end,
            function() return a:item(1) end,
            function() return a + 1 end,
            function() return other + a end,
            function() return a:sum() end,
        } do
            assert.matches("released", (helper.failure(f)))
        end
    end)

    it("names the nearest member", function()
        local a <close> = mb.zeros { 3 }
        assert.matches("did you mean 'shape'", (helper.failure(function()
            return a.shpae
        end)))
        assert.matches("did you mean 'transpose'", (helper.failure(function()
            return a:transpos()
        end)))
        assert.matches("cannot be assigned by index", (helper.failure(function()
            a[1] = 0
        end)))
        assert.matches("2 indices", (helper.failure(a.item, a, 1, 1)))
        assert.matches("outside axis 1", (helper.failure(a.item, a, 4)))
    end)

    it("are told apart where they are parts of one array without a common element", function()
        local whole <close> = mb.zeros {6, 10}
        local held = {}
        local function part(...)
            local view = whole:view(...)
            held[#held + 1] = view
            return view
        end
        local left, right = part(mb.all, {1, 5}), part(mb.all, {6, 10})
        local odd, even = part({1, 6, 2}, mb.all), part({2, 6, 2}, mb.all)
        local function add(a, out)
            mb.binary(a, "add", {scalar = 1, out = out})
        end
        add(left, right)
        add(right, left)
        add(odd, even)
        add(left, left)
        for _, case in ipairs {{left, part(mb.all, {5, 9})}, {part(mb.all, {2, 6}), left},
            {odd, part({1, 3}, mb.all)}, {part({4, 6}, mb.all), even},
            {part(mb.all, {10, 1, -1}), whole}} do
            assert.matches("result overlaps a", (helper.failure(add, case[1], case[2])))
        end
        assert.equal(4, whole:max())
        for _, view in ipairs(held) do
            view:release()
        end
    end)

    it("say what to use for comparisons of arrays, and for extents without braces", function()
        local a <close> = mb.zeros {3}
        local b <close> = mb.zeros {3}
        assert.matches("array_spec.lua:%d+: arrays cannot be compared by == or ~=, .*%(a %- b%):abs",
            (helper.failure(function() return a == b end)))
        assert.matches("compared by ==", (helper.failure(function() return a ~= b end)))
        assert.is_true(a == a) -- luacheck: ignore
        assert.is_false(a == 1)
        for _, compare in ipairs {function() return a > 0 end, function() return 0 <= a end,
            function() return a < b end} do
            assert.matches("compared by < or >.*a:max%(%)", (helper.failure(compare)))
        end
        assert.matches("write mb.random({4, 30, 64})", (helper.failure(mb.random, 4, 30, 64)), 1,
            true)
        assert.matches("write mb.zeros({4, 30})", (helper.failure(mb.zeros, 4, 30, {dtype = "u8"})),
            1, true)
        assert.matches("write mb.ones({4,", (helper.failure(mb.ones, 4, 30)), 1, true)
        assert.matches("write mb.full({4,", (helper.failure(mb.full, 4, 30, 64, 1)), 1, true)
    end)
end)
