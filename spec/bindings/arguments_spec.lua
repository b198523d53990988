-- What functions written in Lua say of what they are given: the name, what it is, what it must be.
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("arguments of functions in Lua", function()
    local sino, angles

    before_each(function()
        sino, angles = mb.random({ 3, 12, 16 }, { seed = 1 }), mb.tomo.angles(12)
    end)

    after_each(function()
        sino:release()
    end)

    -- Refused with this text, as an error object, in the caller's name.
    local function refuses(pattern, f, ...)
        local text, err = helper.failure(f, ...)
        assert.matches(pattern, text)
        assert.equal("moonbeam.error", getmetatable(err).__name)
    end

    for _, name in ipairs { "fbp", "reconstruct" } do
        it("are checked by tomo." .. name, function()
            local f = mb.tomo[name]
            refuses("sino is missing; give an array", f)
            refuses("sino is a table; give an array", f, { 1, 2 }, angles)
            refuses("sino is 5; give an array", f, 5, angles)
            refuses("angles.*missing", f, sino)
            refuses("element 1 of angles is NaN", f, sino,
                { 0 / 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 })
            local empty <close> = mb.empty { 0, 12, 16 }
            refuses("sino is empty %(0 x 12 x 16%)", f, empty, angles)
            local line <close> = mb.ones { 16 }
            refuses("sino has 1 axis", f, line, angles)
            refuses("center is not a number", f, sino, angles, { center = 0 / 0 })
            refuses("scale is not a number", f, sino, angles, { scale = 0 / 0 })
            refuses("size must be a table of numbers", f, sino, angles, { size = "x" })
            refuses("roi has 2 numbers", f, sino, angles, { roi = { 0, 5 } })
            refuses("roi has 1 number", f, sino, angles, { roi = 4 })
            refuses("roi must be a table of numbers", f, sino, angles, { roi = "x" })
            refuses("accuracy has no choice 'best'", f, sino, angles, { accuracy = "best" })
            refuses("mode", f, sino, angles, { mode = "x" })
            f(sino, angles, { size = {} }):release()
        end)
    end

    it("are checked by tomo.reconstruct and choose_method alone", function()
        refuses("method is the string 'x'; it must be auto, fbp or fourier", mb.tomo.reconstruct,
            sino, angles, { method = "x" })
        refuses("out is 5; give an array", mb.tomo.reconstruct, sino, angles, { out = 5 })
        refuses("shape is missing", mb.tomo.choose_method)
        refuses("extent 3 of shape is %-16", mb.tomo.choose_method, { 3, 12, -16 }, angles)
        -- on the default device
        assert.equal("table", type(mb.tomo.choose_method({ 3, 12, 16 }, angles)))
    end)

    it("are checked where the rotation center is looked for", function()
        local slice <close> = mb.random({ 12, 16 }, { seed = 2 })
        local column <close> = mb.ones { 4, 1 }
        local narrow <close> = mb.ones { 12, 15 }
        refuses("first is missing", mb.tomo.find_center_pair)
        refuses("first has 3 axes", mb.tomo.find_center_pair, sino, sino)
        refuses("first is 12 x 16, opposite 12 x 15", mb.tomo.find_center_pair, slice, narrow)
        refuses("one column", mb.tomo.find_center_pair, column, column)
        refuses("min_overlap is 2", mb.tomo.find_center_pair, slice, slice, { min_overlap = 2 })
        refuses("sino has 3 axes", mb.tomo.find_center_metric, sino, angles)
        refuses("range is NaN", mb.tomo.find_center_metric, slice, angles, { range = 0 / 0 })
        refuses("guess is 500", mb.tomo.find_center_metric, slice, angles, { guess = 500 })
        refuses("unknown metric", mb.tomo.find_center_metric, slice, angles, { metric = 5 })
        refuses("metric gave a nil", mb.tomo.find_center_metric, slice, angles,
            { metric = function() end })
        local stack <close> = mb.ones { 12, 4, 16 }
        refuses("angles has 2 numbers; give 12", mb.tomo.find_center, stack, { 1, 2 })
        refuses("element 2 of angles is NaN", mb.tomo.opposite_pair, { 1, 0 / 0 })
        refuses("row is 50", mb.tomo.find_center, stack, angles, { row = 50 })
        refuses("method is the string 'x'", mb.tomo.find_center, stack, angles, { method = "x" })
    end)

    it("are checked by tomo.angles and line_integrals", function()
        refuses("count is missing", mb.tomo.angles)
        for _, count in ipairs { -1, 1.5, "x", 1e12 } do
            refuses("count is .*whole number", mb.tomo.angles, count)
        end
        refuses("span is NaN", mb.tomo.angles, 3, 0 / 0)
        refuses("data is missing", mb.tomo.line_integrals, nil, { consume = true })
        local doubles <close> = mb.ones({ 3, 4, 5 }, { dtype = "f64" })
        refuses('%(a:cast%("f32"%) converts%)', mb.tomo.line_integrals, doubles)
    end)

    for _, name in ipairs { "richardson_lucy", "landweber", "gradient_consensus", "wiener",
        "tikhonov" } do
        it("are checked by deconv." .. name, function()
            local f = mb.deconv[name]
            local image <close> = mb.random({ 4, 6, 8 }, { seed = 3, low = 1, high = 2 })
            local psf <close> = mb.ones { 3, 3, 3 }
            local empty <close> = mb.empty { 0, 6, 8 }
            refuses("image is missing; give an array", f)
            refuses("image is the string 'x'", f, "x", psf)
            refuses("psf is missing; give an array", f, image)
            refuses("image is empty %(0 x 6 x 8%)", f, empty, psf)
            refuses("psf is empty", f, image, empty)
            refuses("size is the string 'x'", f, image, psf, { size = "x" })
            refuses("size has 1 number; give 3", f, image, psf, { size = { 9 } })
            local nan <close> = mb.full({ 4, 6, 8 }, 0 / 0)
            refuses("192 of 192 values of the image are not finite", f, nan, psf)
            if name ~= "wiener" and name ~= "tikhonov" then
                refuses("iterations is the string 'x'", f, image, psf, { iterations = "x" })
                refuses("iterations is 1.5", f, image, psf, { iterations = 1.5 })
                refuses("on_iteration", f, image, psf, { on_iteration = 5 })
            end
        end)
    end

    it("are checked by convolution, deconv.transfer and deconv.layout", function()
        local psf <close> = mb.ones { 3, 3, 3 }
        refuses("image is missing", mb.convolution)
        refuses("shape is missing", mb.deconv.transfer, psf)
        refuses("shape is missing", mb.deconv.layout)
        refuses("size is the string 'x'", mb.deconv.layout, { 9, 9, 9 }, psf, { size = "x" })
    end)
end)

describe("lists that are proxies (__len and __index)", function()
    local function proxy(list)
        return setmetatable({}, {
            __len = function() return #list end,
            __index = function(_, i) return type(list[i]) == "table" and proxy(list[i])
            or list[i] end,
        })
    end

    it("are shapes, tables of numbers, ranges, axes and vectors like any other", function()
        local function same(expected, made)
            local a <close> = made
            assert.same(expected, a:to_table())
        end
        local z <close> = mb.zeros(proxy { 2, 3 })
        assert.same({ 2, 3 }, z.shape)
        same({ { 1, 2 }, { 3, 4 } }, mb.array(proxy { { 1, 2 }, { 3, 4 } }))
        same({ { 1, 2 }, { 3, 4 } }, mb.array(proxy { { { 1, 2 }, { 3, 4 } } },
            { dtype = "c64" }):view(1))
        local a <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        same({ { 2, 3 }, { 5, 6 } }, a:view(nil, proxy { 2, 3 }))
        same({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, a:permute(proxy { 2, 1 }))
        same({ 6, 4, 2 }, mb.pad(mb.array { 6, 4, 2 }, { before = proxy { 0 } }))
        local sino <close> = mb.ones { 3, 16 }
        local expected <close> = mb.backproject(sino, { 0, 1, 2 })
        local got <close> = mb.backproject(sino, proxy { 0, 1, 2 })
        assert.same(expected:to_table(), got:to_table())
        assert.equal(mb.op.estimate("backproject", { { 3, 16 } }, { angles = { 0, 1, 2 } }).peak,
            mb.op.estimate("backproject", proxy { proxy { 3, 16 } },
                { angles = proxy { 0, 1, 2 } }).peak)
    end)

    it("that say nonsense of their length are refused", function()
        local function refuses(f, ...)
            local text, err = helper.failure(f, ...)
            assert.truthy(text:find "the length of a list is %-?%d+; it must be from 0 to"
                or text:find("the length of a list must be an integer", 1, true), text)
            assert.equal("argument", err.code)
        end
        for _, length in ipairs { -1, 1 << 40, 1 << 61, 0.5, "text", false, {} } do
            local list = setmetatable({}, { __len = function() return length end })
            refuses(mb.zeros, list)
            refuses(mb.array, list)
            local sino <close> = mb.ones { 3, 16 }
            refuses(mb.backproject, sino, list)
        end
    end)

    it("are not read without an end where their length is only a claim", function()
        local sino <close> = mb.ones { 3, 16 }
        local endless = setmetatable({}, { __len = function() return (1 << 31) - 1 end,
            __index = function() return 1 end })
        local text = helper.failure(mb.backproject, sino, endless)
        assert.truthy(text:find("angles has 2147483647 numbers; give at most 16777216", 1, true), text)
    end)
end)

describe("ranges of numbers", function()
    local arguments = require "moonbeam.internal.arguments"
    local cli = require "moonbeam.internal.cli"

    it("have or leave out their ends, in the same words for arguments and command lines", function()
        for words, case in pairs {
            [", 0 or more"] = {{min = 0}, {0, 1e9}, {-1e-9, 0 / 0}},
            [" above 0"] = {{above = 0}, {1e-9}, {0, math.huge}},
            [" between 0 and 2"] = {{above = 0, below = 2}, {1}, {0, 2}},
            [" from 0 to less than 1"] = {{min = 0, below = 1}, {0, 0.5}, {1, -1}},
            [" from 1 to 2"] = {{min = 1, max = 2}, {1, 2}, {0.5, 2.5}},
            [""] = {{}, {-1, 5}, {"5"}},
        } do
            local range, good, bad = table.unpack(case)
            assert.equal(words, arguments.range_text(range))
            for _, value in ipairs(good) do
                assert.is_true(arguments.within(value, range))
                assert.equal(value, (cli.bounded(range)(tostring(value))))
            end
            for _, value in ipairs(bad) do
                assert.is_false(arguments.within(value, range))
            end
            assert.equal("a number" .. words, select(2, cli.bounded(range)("x")))
        end
    end)

    it("of an option on a command line are those of its declaration", function()
        local declared = require "moonbeam.internal.declared"
        local step = declared.of(mb.deconv.landweber).options.step
        local option = cli.option(step, {"relaxation", default = false, of = "landweber"})
        assert.equal("relaxation", option[1])
        assert.is_nil(option.default)
        assert.equal(("landweber: %s (default %s)"):format(step.doc, step.default), option.doc)
        assert.same({nil, "a number between 0 and 2"}, {option.type "2"})
        assert.equal(1.5, option.type "1.5")
    end)
end)
