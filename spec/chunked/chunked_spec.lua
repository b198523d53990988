-- mb.chunked: the whole at once, cut into blocks; what it takes is what its plan says.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local SHAPE = {23, 18, 33}

-- The greatest difference of two arrays of one shape.
local function difference(a, b)
    local from <close> = a:to("host")
    local to <close> = b:to("host")
    local difference_of <close> = mb.binary(from, "sub", {b = to})
    local absolute <close> = mb.unary(difference_of, "abs")
    return absolute:max()
end

local function kept(report)
    assert.is_true(report.as_planned)
    for id, bytes in pairs(report.plan.peak) do
        assert.equal(bytes, report.peak[id])
    end
    assert.equal(report.plan.pinned, report.pinned)
end

helper.each_device(function(device, test)
    describe("chunked on " .. device, function()
        local folder, values

        before_each(function()
            folder = files.folder()
            values = mb.random(SHAPE, {dtype = "f32", low = -1, high = 1, seed = 3,
                device = "host"})
            local file <close> = mb.h5.create(folder .. "/in.h5")
            file:write("/data", values)
            file:write("/packed", values, {chunks = {1, 18, 33}, deflate = 1})
            file:finish()
        end)
        after_each(function()
            values:release()
            files.remove(folder)
        end)

        local function chunked(fn, inputs, options)
            options.devices = {device}
            options.pinned, options.threads = options.pinned or "2Mi", options.threads or 2
            return mb.chunked(fn, inputs, options)
        end

        for axis = 1, 3 do
            test("is the whole to the bit along axis " .. axis, function()
                local input <close> = values:to(device)
                local whole <close> = mb.gaussian_filter(input, 1.5)
                for _, count in ipairs {1, 4, 7, 100} do
                    for _, overlap in ipairs {true, false} do
                        local got <close>, report = chunked("gaussian_filter", values,
                            {params = {sigma = 1.5}, axis = axis, block = count,
                            overlap = overlap})
                        assert.equal(0, difference(whole, got))
                        assert.equal(math.ceil(SHAPE[axis] / count), report.plan.blocks)
                        assert.equal(overlap, report.plan.overlap)
                        kept(report)
                    end
                end
            end)
        end

        -- name, params, axis, further inputs, block: rows whose parameters are their own, results
        -- of another extent or without the axis, inputs that are cut elsewhere or not at all.
        local CASES = {
            {"crop", {before = {3, 2, 0}, after = {1, 0, 5}}, 1, {}, 4},
            {"pad", {before = {9, 0, 1}, after = 3, mode = "edge"}, 1, {}, 4},
            {"pad", {shape = {40, 18, 33}, where = "center"}, 1, {}, 3},
            {"roll", {shift = {5, 0, 2}}, 1, {}, 4},
            {"embed", {size = {30, 20, 36}, before = {4, 1, 0}}, 2, {}, 3},
            {"binary", {fn = "mul"}, 2, {b = {18, 1}}, 5},
            {"binary", {fn = "add"}, 1, {b = {18, 33}}, 5},
            {"reduce", {fn = "mean", axis = 1}, 2, {}, 4},
            {"reduce", {fn = "max", axis = 1}, 1, {}, 4},
            {"maximum_projection", {axis = 3}, 2, {}, 4},
            {"flat_field", {}, 1, {darks = {2, 18, 33}, flats = {3, 18, 33}}, 4},
            {"flat_field", {}, 2, {darks = {2, 18, 33}, flats = {3, 18, 33}}, 4},
            {"rfft", {}, 2, {}, 4},
        }

        for number, case in ipairs(CASES) do
            local name, params, axis, others, count = table.unpack(case)
            local here = name ~= "rfft" or device == "host" -- a GPU's library chooses by the batch
            local run = here and test or function() end
            run(("gives %s of pieces, to the bit (%d)"):format(name, number), function()
                local args = mb.op.describe(name).args
                local inputs, own, group = {[args[1].name] = values}, {}, {}
                local _ <close> = setmetatable(group, {__close = function()
                    for _, array in ipairs(group) do
                        array:release()
                    end
                end})
                for key, shape in pairs(others) do
                    inputs[key] = mb.random(shape, {seed = #key, device = "host"})
                    own[key] = inputs[key]:to(device)
                    table.move({inputs[key], own[key]}, 1, 2, #group + 1, group)
                end
                for key, value in pairs(params) do
                    own[key] = value
                end
                local input <close> = values:to(device)
                local required = {}
                for _, a in ipairs(args) do
                    if a.required and a.kind ~= "in" then
                        required[#required + 1], own[a.name] = own[a.name], nil
                    end
                end
                required[#required + 1] = own
                local results = table.pack(mb.op.run(name, input, table.unpack(required)))
                local first = results[1]
                table.move(results, 1, results.n, #group + 1, group)
                local got <close>, report = chunked(name, inputs, {params = params, axis = axis,
                    block = count})
                assert.same(first.shape, got.shape)
                assert.is_true(first:to_string() == got:to_string())
                assert.is_true(report.plan.blocks > 1)
                kept(report)
            end)
        end

        test("takes as many rows as fit the budget", function()
            for axis = 1, 3 do
                local before = 0
                for _, budget in ipairs {180000, 240000, 300000, 2000000} do
                    local options = {params = {sigma = 1}, axis = axis, budget = budget,
                        overlap = false}
                    local got <close>, report = chunked(mb.gaussian_filter, values, options)
                    kept(report)
                    assert.is_true(report.peak[device] <= budget)
                    assert.is_true(report.plan.block >= before)
                    before = report.plan.block
                    if report.plan.block < SHAPE[axis] then
                        options.block, options.budget = report.plan.block + 1, nil
                        assert.is_true(mb.chunked.plan(mb.gaussian_filter, values, options)
                            .peak[device] > budget)
                    end
                    assert.equal(SHAPE[axis], got.shape[axis])
                end
                assert.equal(SHAPE[axis], before)
            end
        end)

        test("keeps the budget where one block in the middle needs more than the others", function()
            local wide <close> = mb.zeros({400, 64}, {device = "host"})
            local got <close>, report = chunked(function(block)
                return mb.binary(block, "add", {scalar = 1})
            end, wide, {budget = 20000, needs = function(first, last)
                return first - (first > 70 and last < 110 and 20 or 0), last
            end})
            kept(report)
            assert.is_true(report.peak[device] <= 20000)
            assert.same({400, 64}, got.shape)
        end)

        test("goes without overlap where the budget asks for it, and says what is too little",
            function()
                local least = mb.chunked.plan("gaussian_filter", values, {devices = {device},
                    params = {sigma = 1}, block = 1, overlap = false}).peak[device]
                local got <close>, report = chunked("gaussian_filter", values,
                    {params = {sigma = 1}, budget = least})
                assert.is_false(report.plan.overlap)
                assert.equal(1, report.plan.block)
                assert.equal(least, report.peak[device])
                assert.same(SHAPE, got.shape)
                local text, err = helper.failure(chunked, "gaussian_filter", values,
                    {params = {sigma = 1}, budget = least - 512})
                assert.equal("budget", err.code)
                assert.matches(("blocks of 1 row along axis 1 take %d bytes on %s without overlap, "
                    .. "but %d are available; give the option budget at least "):format(least, device,
                    least - 512), text, 1, true)
                assert.equal(least, err.enough)
            end)

        test("reads datasets and writes datasets, results and functions", function()
            local input <close> = values:to(device)
            local doubled <close> = mb.binary(input, "mul", {scalar = 2})
            local file <close> = assert(mb.h5.open(folder .. "/in.h5"))
            for _, name in ipairs {"/data", "/packed"} do
                for axis = 1, 3 do
                    local out <close> = mb.h5.create(folder .. "/out.h5", {overwrite = true})
                    local dataset = out:create_dataset("/data", {shape = SHAPE})
                    local sink, report = chunked("convert", file:dataset(name), {axis = axis,
                        params = {dtype = "f32", scale = 2}, sink = dataset, block = 5})
                    assert.equal(dataset, sink)
                    kept(report)
                    out:finish()
                    local written <close> = assert(mb.h5.open(folder .. "/out.h5"))
                    local got <close> = written:read("/data")
                    assert.equal(0, difference(doubled, got))
                end
            end
            local result <close> = mb.result.create(folder .. "/result.h5", {shape = SHAPE,
                slices_per_file = 4})
            local _, report = chunked("convert", values, {params = {dtype = "f32", scale = 2},
                sink = result, block = 5})
            kept(report)
            result:finish()
            local written <close> = assert(mb.h5.open(folder .. "/result.h5"))
            local got <close> = written:read("/entry/data/data")
            assert.equal(0, difference(doubled, got))
            local next_row = 1
            local nothing, seen = chunked("convert", values, {params = {dtype = "f32", scale = 2},
                block = 5, sink = function(block, first, last)
                    assert.equal(next_row, first)
                    next_row = last + 1
                    local own <close> = doubled:view({first, last})
                    assert.equal(0, difference(own, block))
                end})
            assert.is_nil(nothing)
            assert.equal(24, next_row)
            assert.is_true(seen.as_planned)
        end)

        test("calls functions with the rows that they need", function()
            local calls = {}
            local input <close> = values:to(device)
            local whole <close> = mb.gaussian_filter(input, {0, 0, 2})
            local got <close>, report = chunked(function(blocks, part)
                calls[#calls + 1] = ("%d-%d of %d, from %d-%d"):format(part.first, part.last,
                    part.rows, part.input[1], part.input[2])
                assert.equal(part.input[2] - part.input[1] + 1, blocks.data.shape[1])
                assert.same({18, 33}, blocks.weights.shape)
                local smooth = mb.gaussian_filter(blocks.data, {0, 0, 2})
                return smooth, mb.zeros({3}, {device = blocks.data.device})
            end, {data = values, weights = values:view(1)}, {halo = {2, 1}, packet = 4, block = 8,
                whole = {"weights"}})
            assert.equal(0, difference(whole, got))
            kept(report)
            local n = #calls
            assert.same({"1-8 of 23, from 1-9", "9-16 of 23, from 7-17", "17-23 of 23, from 15-23"},
                {calls[n - 2], calls[n - 1], calls[n]})
        end)

        test("makes results with other rows, and in place", function()
            local got <close>, report = chunked(function(block, part)
                local list = {}
                for i = 1, part.last - part.first + 1 do
                    list[i] = block:view({2 * i - 1, 2 * i})
                end
                local sums = mb.empty({#list, 1, 33}, {device = block.device})
                for i, pair in ipairs(list) do
                    local sum <close> = pair:max(1)
                    local most <close> = sum:max(1)
                    local single <close> = most:cast("f32")
                    local row <close> = sums:view(i)
                    local flat <close> = row:reshape(33)
                    mb.convert(single, "f32", {out = flat})
                    pair:release()
                end
                return sums
            end, values:view({1, 22}), {rows = 11, needs = function(first, last)
                return 2 * first - 1, 2 * last
            end, block = 3})
            assert.same({11, 1, 33}, got.shape)
            kept(report)
            local pair <close> = values:view({9, 10})
            local flat <close> = pair:reshape(36, 33)
            local most <close> = flat:max(1)
            for i = 1, 33 do
                assert.equal((most:item(i)), (got:item(5, 1, i)))
            end
            local place <close> = chunked(function(block)
                return mb.binary(block, "add", {scalar = 1, out = block})
            end, values, {block = 7})
            local expected <close> = mb.binary(values, "add", {scalar = 1})
            assert.equal(0, difference(expected, place))
        end)

        test("combines results", function()
            for how, name in pairs {sum = "sum", min = "min", max = "max"} do
                local got <close>, report = chunked(function(block)
                    local whole <close> = mb.convert(block, "i32", {scale = 1000})
                    local reduced <close> = mb.reduce(whole, name, {axis = 1})
                    return reduced:cast("f64")
                end, values, {combine = how, block = 4})
                local rounded <close> = mb.convert(values, "i32", {scale = 1000})
                local expected <close> = mb.reduce(rounded, name, {axis = 1})
                local wide <close> = expected:cast("f64")
                assert.same(wide:to_table(), got:to_table())
                kept(report)
            end
        end)

        test("takes scans by rows and by projections", function()
            local flats <close> = mb.full({3, 18, 33}, 2, {device = "host"})
            local darks <close> = mb.zeros({2, 18, 33}, {device = "host"})
            local angles = mb.tomo.angles(23)
            local scan = mb.scan.of_arrays(values, angles, {flats = flats, darks = darks})
            for axis, count in pairs {5, 7} do
                local first_angles = {}
                local got <close>, report = chunked(function(block, part)
                    first_angles[part.first] = #block.angles
                    local corrected, counts = mb.flat_field(block.data, {
                        darks = block.darks, flats = block.flats})
                    counts:release()
                    return corrected
                end, scan, {axis = axis, block = count})
                local data <close> = values:to(device)
                local white <close> = flats:to(device)
                local dark <close> = darks:to(device)
                local expected <close>, counts = mb.flat_field(data, {darks = dark, flats = white})
                counts:release()
                assert.equal(0, difference(expected, got))
                assert.equal(axis == 1 and 3 or 23, first_angles[axis == 1 and 21 or 15])
                kept(report)
            end
        end)

        test("decodes the compressed frames of a scan once", function()
            local name = folder .. "/scan.h5"
            do
                local frames <close> = mb.convert(values, "u16", {scale = 1000, offset = 1000})
                local ones <close> = mb.full({2, 18, 33}, 4000, {dtype = "u16", device = "host"})
                local file <close> = mb.h5.create(name)
                file:write("/exchange/data", frames, {chunks = {1, 18, 33}, deflate = 1})
                file:write("/exchange/data_white", ones)
                file:write("/exchange/data_dark", ones)
                file:write("/exchange/theta", mb.arange(0, 22, {dtype = "f32"}), {
                    attributes = {units = "deg"}})
                file:finish()
            end
            local scan <close> = assert(mb.scan.open(name))
            local whole <close> = scan:projections(mb.all, {device = "host"})
            for _, axis in ipairs {1, 2} do
                local got <close>, report = chunked(function(block)
                    return block.data:copy()
                end, scan, {axis = axis, block = 5})
                assert.equal("u16", got.dtype)
                local exact <close> = got:cast("f32")
                local expected <close> = whole:cast("f32")
                assert.equal(0, difference(exact, expected))
                kept(report)
                -- Bands of rows are read from decoded frames, without libhdf5.
                local times = report.times
                assert.equal(axis == 2, times.raw_bytes == times.read_bytes + times.write_bytes)
            end
        end)

        test("is planned row by row in a dry run", function()
            local function work()
                local got = chunked("gaussian_filter", values, {params = {sigma = 1},
                    block = 6})
                got:release()
            end
            local real, dry = mb.ledger(work), mb.dry_run(work)
            assert.same({}, mb.ledger_diff(real, dry))
            assert.equal(real.peak, dry.peak)
            assert.is_true(#real:rows() > 12)
        end)

        test("takes vectors, and memory that no carrier moves", function()
            local long <close> = mb.random({1 << 20}, {seed = 4, device = "host"})
            local got <close>, report = chunked("convert", long, {params = {dtype = "f32", scale = 3},
                budget = "4Mi", pinned = "2Mi", threads = 2})
            assert.is_true(report.plan.blocks > 1)
            kept(report)
            local expected <close> = mb.binary(long, "mul", {scalar = 3})
            assert.equal(0, difference(expected, got))
            local turned <close> = values:permute(3, 2, 1)
            local dense <close> = turned:copy()
            local other <close> = chunked("gaussian_filter", turned, {params = {sigma = 1},
                block = 6, axis = 2})
            local at_device <close> = dense:to(device)
            local whole <close> = mb.gaussian_filter(at_device, 1)
            assert.equal(0, difference(whole, other))
        end)

        test("leaves nothing when the function fails", function()
            local calls = 0
            local _, err = helper.failure(chunked, function(block, part)
                calls = calls + 1
                if part.first == 9 then
                    error "enough"
                end
                return mb.binary(block, "add", {scalar = 1})
            end, values, {block = 4})
            assert.matches("enough", tostring(err))
        end)
    end)
end)

describe("chunked", function()
    it("gives blocks to several devices in turn, each with what its plan says", function()
        local values <close> = mb.random(SHAPE, {seed = 5, device = "host"})
        local whole <close> = mb.gaussian_filter(values, 1.5)
        for axis = 1, 3 do
            local seen = {}
            local got <close>, report = mb.chunked(function(block, part)
                seen[part.first] = part.device.id
                return mb.gaussian_filter(block, 1.5)
            end, values, {halo = 6, axis = axis, block = 3, schedule = "fixed",
                devices = {"host:1", "host:2", "host"}})
            assert.equal(0, difference(whole, got))
            assert.same({"host:1", "host:2", "host", "host:1"}, {seen[1], seen[4], seen[7],
                seen[10]})
            for _, id in ipairs {"host:1", "host:2", "host"} do
                assert.is_true(report.plan.peak[id] > 0)
            end
            kept(report)
        end
        local sums <close>, report = mb.chunked(function(block)
            local wide <close> = mb.convert(block, "i32", {scale = 1000})
            return mb.reduce(wide, "max", {axis = 1})
        end, values, {combine = "max", block = 4, devices = {"host:1", "host:2"}})
        assert.same({18, 33}, sums.shape)
        assert.is_true(report.plan.peak.host > 0) -- the partial results
        kept(report)
    end)

    it("refuses what it cannot do, before it begins", function()
        local a <close> = mb.zeros({6, 7, 8}, {device = "host"})
        local b <close> = mb.zeros({5, 7, 8}, {device = "host"})
        local function refused(pattern, ...)
            assert.matches(pattern, (helper.failure(mb.chunked, ...)))
        end
        local function same(block)
            return mb.binary(block, "add", {scalar = 1})
        end
        refused("no operator 'gausian_filter'.*gaussian_filter", "gausian_filter", a)
        refused("fn is a table", {}, a)
        refused("inputs is a number", same, 5)
        refused("there are no inputs", same, {})
        refused("input 2 has 5 rows along axis 1, but input 1 has 6: name it in whole", same, {a, b})
        refused("did you mean 'budget'", same, a, {buget = 1})
        refused("axis is 5", same, a, {axis = 5})
        refused("there is no input 'c'", same, {a = a}, {whole = {"c"}})
        refused("all inputs are whole", same, {a = a}, {whole = {"a"}})
        refused("block is 5 rows; it must be a multiple of the packet, 2", same, a, {block = 5, packet = 2})
        refused("halo is a whole number", same, a, {halo = -1})
        refused("must return the first and the last row", same, a, {needs = function()
            return 3
        end})
        refused("need rows of input that do not exist", same, a, {needs = function()
            return 8, 9
        end})
        refused("returns nothing; it must return an array", function() end, a)
        refused("has 3 rows along axis 1 for rows 1 to 2; it must have these 2, or one "
            .. "for each of the 4", function()
                return mb.zeros {3, 7, 8}
            end, a, {block = 2, halo = 2})
        refused("the array is 5 x 7 x 8, but the result is 6 x 7 x 8", same, a, {sink = b})
        refused("sink is a string", same, a, {sink = "out.h5"})
        local name = os.tmpname() .. ".h5"
        local result <close> = mb.result.create(name, {shape = {6, 7, 8}})
        refused("takes slices, blocks along axis 1", same, a, {axis = 2, sink = result})
        refused("devices is an empty list", same, a, {devices = {}})
    end)
end)
