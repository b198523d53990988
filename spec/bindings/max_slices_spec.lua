-- How much fits: op.max_slices for operators, plan.max_slices and plan.max_chunk for functions and
-- reconstructions.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("op.max_slices", function()
    it("comes to the textbook's numbers", function()
        local function count(op, options)
            options.granularity = 1
            return mb.op.max_slices(op, options)
        end
        local n, dtype, bytes = count("unary", {pattern = "projection", dims = {10, 20},
            dtype = "f32", available = 14450,
            params = {fn = "exp"}})
        assert.equal(9, n)
        assert.equal("f32", dtype)
        assert.equal(14400, bytes)
        local available = (5 * 2560 * 200 + 42) * 2
        n, dtype = count("convert", {pattern = "sinogram", dims = {5, 2560}, dtype = "u16",
            available = available,
            params = {dtype = "u16"}})
        assert.equal(100, n)
        assert.equal("u16", dtype)
        n, dtype = count("convert", {dim = 2, dims = {5, 2560}, dtype = "f32",
            available = available, params = {dtype = "f32"}})
        assert.equal(50, n)
        assert.equal("f32", dtype)
        n, dtype = count("convert", {dim = 1, dims = {5, 2560}, dtype = "u16",
            available = available, params = {dtype = "f32"}})
        assert.equal(66, n)
        assert.equal("f32", dtype)
    end)

    it("counts what the pool takes unless told otherwise", function()
        local options = {pattern = "projection", dims = {10, 20}, available = 14450,
            params = {fn = "exp"}}
        -- 9 slices are 7200 bytes, 7680 in units, twice
        assert.equal(8, (mb.op.max_slices("unary", options)))
        options.available = 2 * 7680
        assert.equal(9, (mb.op.max_slices("unary", options)))
        options.available = "1K"
        assert.equal(0, (mb.op.max_slices("unary", options)))
    end)

    it("is 0 where no piece fits with its neighbors, as mb.chunked finds", function()
        local _ <close> = setmetatable({}, {__close = function()
            mb.pool.shutdown "host:1"
        end})
        for name, case in pairs {
            box_filter = {packet = 64, beside = 66, params = {size = 5}},
            gaussian_filter = {packet = 1, beside = 64, params = {sigma = 8}},
        } do
            local options = {dim = 1, dims = {64, 64}, available = "1M", params = case.params,
                device = "host:1"}
            local n, dtype, bytes, _, before, after, packet, whole = mb.op.max_slices(name, options)
            assert.same({0, "f32", 0}, {n, dtype, bytes})
            assert.same({case.beside, case.packet}, {before + after, packet})
            assert.is_true(whole > 20 and whole < before + after + packet, whole)
            -- As a whole array these run, one more does not.
            for more = 0, 1 do
                local inputs = {{"f32", whole + more, 64, 64}}
                assert.equal(more == 0, mb.op.estimate(name, inputs, case.params).peak
                    + (whole + more) * 64 * 64 * 4 <= 1000000)
            end
            -- The least number of bytes with which a piece fits is the one that mb.chunked takes.
            local low, high = 1000000, 16000000
            while high - low > 512 do
                options.available = (low + high) // 1024 * 512
                if mb.op.max_slices(name, options) > 0 then
                    high = options.available
                else
                    low = options.available
                end
            end
            options.available = high
            n, _, bytes, _, before, after, packet, whole = mb.op.max_slices(name, options)
            assert.same({before + after + packet, high, n}, {n, bytes // 512 * 512, whole})
            local source <close> = mb.random {400, 64, 64}
            local given = {params = case.params, devices = "host:1", budget = high,
                overlap = false}
            assert.equal(packet, mb.chunked.plan(name, {source}, given).block)
            given.budget = high - 512
            local _, err = helper.failure(mb.chunked.plan, name, {source}, given)
            assert.equal("budget", err.code)
        end
    end)

    it("says how many of the slices are a halo", function()
        local options = {dim = 1, dims = {10, 20}, available = "1M", params = {size = {6, 1, 1}}}
        local n, _, bytes, basis, before, after = mb.op.max_slices("box_filter", options)
        assert.same({64, 3}, {before, after}) -- means come in packets of 64 rows
        assert.is_nil(basis)
        assert.is_true(n > 67 and bytes <= 1 << 20)
        -- what lies beyond an end is at the other one: a piece needs everything
        local fits = n
        options.params.mode = "wrap"
        local whole
        n, _, bytes, _, before, after, _, whole = mb.op.max_slices("box_filter", options)
        assert.same({0, 0}, {n, bytes})
        assert.same({fits, fits, fits}, {before, after, whole})
        n, _, _, _, before, after = mb.op.max_slices("unary",
            {dim = 1, dims = {10, 20}, available = 1, params = {fn = "exp"}})
        assert.same({0, 0, 0}, {n, before, after})
    end)

    it("takes a pattern of either axis, and says how many slices go together", function()
        local function count(pattern, op, options)
            options.pattern = pattern
            return mb.op.max_slices(op, options)
        end
        local options = {dims = {10, 24}, available = "1M", dtype = "u16",
            params = {dtype = "f32"}}
        local n = count("all", "convert", options)
        assert.equal(n, (count("projection", "convert", options)))
        assert.equal(n, (count("sinogram", "convert", options)))
        -- rows that are filtered along axis 2 need neighbors only there
        options = {dims = {10, 24}, available = "1M", params = {size = {1, 9, 1}}}
        local _, _, _, _, before = count("projection", "box_filter", options)
        assert.equal(0, before)
        _, _, _, _, before = count("sinogram", "box_filter", options)
        assert.equal(64, before)
        assert.equal(2, (select(7, mb.op.max_slices("fourier_reconstruct", {dim = 1,
            dims = {5, 17}, available = "1M", params = {angles = {0, 1, 2, 3, 4}}}))))
        assert.matches("cannot be cut along axis 2", (helper.failure(mb.op.max_slices,
            "backproject", {pattern = "all", extent = 5, dims = {5, 5}, available = "1M",
            params = {angles = {1, 2, 3, 4, 5}}})))
    end)

    it("explains what it cannot do", function()
        local function failure(op, options)
            return helper.failure(mb.op.max_slices, op, options)
        end
        assert.matches("cannot be cut along axis 3; it can along 1 %(where there are three axes%)",
            (failure("backproject", {dim = 3, dims = {5, 5},
            available = 1000, params = {angles = {0, 1, 2, 3, 4}}})))
        assert.matches("fft cannot be cut along axis 3 with these arguments; it can along 1 "
            .. "(where the axis is not transformed), 2",
                (failure("fft", {dim = 3, dims = {5, 5}, dtype = "c64",
            available = 1000})), 1, true)
        assert.matches("otf cannot be cut: it is one transform over all axes",
            (failure("otf", {dim = 1, dims = {5, 5}, available = 1000,
            params = {size = {8, 8, 8}}})))
        assert.matches("unknown option 'dimension'", (failure("unary", {dimension = 1})))
        assert.matches("available", (failure("unary", {dim = 1, dims = {5}})))
        assert.matches("pattern", (failure("unary", {pattern = "row", dims = {5}})))
    end)

    -- The axes along which the inputs of a sample are cut, by number; none: it cannot be cut there.
    local function axes_of(name, sample, axis)
        local axes, number = {}, 0
        for _, split in ipairs(mb.op.estimate(name, sample.inputs, sample.params).split) do
            if split.axis == axis then
                for _, arg in ipairs(mb.op.describe(name).args) do
                    if arg.kind == "in" or arg.kind == "inout" then
                        number = number + 1
                        axes[number] = split.arrays[arg.name]
                    end
                end
            end
        end
        return axes
    end

    -- For every operator that can be cut, every axis, every sample: run it, take the peak, ask with
    -- that peak. What is answered runs in these bytes, and one slice more does not; bare counts the
    -- same without rounding.
    for _, name in ipairs(mb.op.list()) do
        local descriptor = mb.op.describe(name)
        local most = 0
        for _, text in ipairs(descriptor.samples) do
            local first = (assert(load("return " .. text))().inputs or {})[1]
            most = math.max(most, first and #first - 1 or 0)
        end
        for axis = 1, math.min(most, #descriptor.split) do
            local split = descriptor.split[axis]
            it(("gives the true number for %s along axis %d"):format(name, split.axis), function()
                local tried = 0
                for _, text in ipairs(descriptor.samples) do
                    local sample = assert(load("return " .. text))()
                    local first = sample.inputs and sample.inputs[1]
                    if first and #first - 1 >= split.axis then
                        local dims = {table.unpack(first, 2)}
                        local extent = table.remove(dims, split.axis)
                        local axes = axes_of(name, sample, split.axis)
                        local others = {}
                        for key, spec in pairs(sample.inputs) do
                            if key ~= 1 then
                                others[key] = {table.unpack(spec)}
                                if axes[key] then
                                    others[key][axes[key] + 1] = -1
                                end
                            end
                        end
                        local function shape_of(key, n)
                            local shape = {table.unpack(sample.inputs[key], 2)}
                            if axes[key] then
                                shape[axes[key]] = n
                            end
                            return shape
                        end
                        local function work(device, n, params)
                            local inputs = {}
                            for key, spec in pairs(sample.inputs) do
                                inputs[key] = mb.empty(shape_of(key, n),
                                    {dtype = spec[1], device = device})
                            end
                            local positional, options, input = {}, {}, 0
                            for _, arg in ipairs(descriptor.args) do
                                local value
                                if arg.kind == "in" or arg.kind == "inout" then
                                    input = input + 1
                                    value = inputs[arg.name] or inputs[input]
                                elseif arg.kind ~= "out" then
                                    value = (params or sample.params or {})[arg.name]
                                end
                                if arg.required and arg.kind ~= "out" then
                                    positional[#positional + 1] = value
                                else
                                    options[arg.name] = value
                                end
                            end
                            positional[#positional + 1] = options
                            local results = table.pack(mb.op.run(name, table.unpack(positional)))
                            return inputs, results
                        end
                        -- A larger array is refused where the parameters belong to the extent.
                        local any = pcall(mb.plan.peak, work, "host", 7 * extent + 1)
                            and pcall(mb.plan.peak, work, "host", 1)
                        for _, slices in ipairs(axes[1] and {extent, 7 * extent + 1} or {}) do
                            if any then
                                local peak = mb.plan.peak(work, "host", slices).peak
                                local found, _, _, _, before, after, packet, n =
                                    mb.op.max_slices(name, {dim = split.axis, dims = dims,
                                    dtype = first[1], available = peak, params = sample.params,
                                    inputs = others})
                                tried = tried + 1
                                local fits = before + after == 0 or n - before - after >= packet
                                assert.equal(fits and n or 0, found)
                                assert.is_true(n >= slices,
                                    ("%d slices fit, found %d"):format(slices, n))
                                assert.equal(n, (mb.plan.max_count(work,
                                    {available = peak, limit = n + 100})))
                            end
                        end
                        -- Of a whole with its parameters: all slices, or fewer.
                        if axes[1] then
                            local options = {dim = split.axis, dims = dims, dtype = first[1],
                                extent = extent, available = "1G", params = sample.params,
                                inputs = others}
                            local n, _, bytes = mb.op.max_slices(name, options)
                            local rows
                            for _, known in ipairs(mb.op.estimate(name, sample.inputs,
                                sample.params).split) do
                                rows = known.axis == split.axis and known.rows or rows
                            end
                            local piece = mb.op.piece(name, sample.inputs, sample.params,
                                {axis = split.axis, first = 1, last = rows})
                            assert.equal(rows, n)
                            assert.equal(bytes, mb.plan.peak(function(device)
                                return work(device, piece.last - piece.first + 1, piece.params)
                            end, "host").peak)
                            options.available = bytes - 1
                            assert.is_true(mb.op.max_slices(name, options) < rows)
                            tried = tried + 1
                        end
                    end
                end
                assert.is_true(tried > 0 or split.when ~= nil)
            end)
        end
    end
end)

describe("plan", function()
    it("finds the largest input of any function", function()
        local function double(a)
            local b <close> = a * 2
            return b:cast("f64")
        end
        local function input(n, device)
            return mb.empty({n, 128}, {device = device})
        end
        assert.equal(10, (mb.plan.max_slices(double, input, 10 * 512 * 4)))
        assert.equal(9, (mb.plan.max_slices(double, input, 10 * 512 * 4 - 1)))
    end)

    it("knows what a whole reconstruction takes, and how much fits", function()
        local options = {shape = {30, 20, 48}, center = 23.5}
        local need = mb.plan.required_memory(6, options)
        -- The parts are what they say, measured.
        local angles = mb.tomo.angles(30)
        for _, method in ipairs {"fourier", "fbp"} do
            local measured = mb.pool.peak(function()
                local sinograms <close> = mb.zeros {6, 30, 48}
                mb.tomo.reconstruct(sinograms, angles,
                    {method = method, center = 23.5, consume = true}):release()
            end)
            assert.equal(measured, mb.plan.required_memory(6,
                {shape = {30, 20, 48}, center = 23.5, method = method}).sinogram)
            assert.is_true(method == "fbp" or measured == need.sinogram)
        end
        local measured = mb.pool.peak(function()
            local darks <close> = mb.zeros({10, 20, 48}, {dtype = "u16"})
            local flats <close> = mb.ones({10, 20, 48}, {dtype = "u16"})
            local frames = mb.ones({6, 20, 48}, {dtype = "u16"})
            local projections, counts = mb.tomo.line_integrals(frames,
                {darks = darks, flats = flats, consume = true})
            projections:release()
            counts:release()
        end)
        assert.equal(measured, need.projection)
        assert.is_true(need.all >= need.sinogram)

        options.available = need.all
        local counts, peaks = mb.plan.max_chunk(options)
        assert.is_true(counts.all >= 6 and counts.all <= 20)
        assert.is_true(peaks.all <= need.all)
        if counts.all < 20 then
            assert.is_true(mb.plan.required_memory(counts.all + 1, options).all > need.all)
        end
        options.available = need.all - 512
        local fewer = mb.plan.max_chunk(options)
        assert.is_true(fewer.all < 6 or mb.plan.required_memory(fewer.all, options).all < need.all)
        assert.equal(0, (mb.plan.max_chunk {shape = {30, 20, 48}, center = 23.5,
            available = 1024}).all)
        assert.matches("shape", (helper.failure(mb.plan.required_memory, 1, {})))
    end)

    it("knows it where the axis has to be found, too", function()
        for _, shape in ipairs {{30, 20, 48}, {180, 64, 128}} do
            local need = mb.plan.required_memory(6, {shape = shape})
            local counts, peaks = mb.plan.max_chunk {shape = shape, available = need.all}
            assert.is_true(counts.all >= 6)
            assert.is_true(peaks.all <= need.all)
        end
    end)

    -- Frames, flats and darks, released together.
    local function arrays()
        local raw = mb.random({30, 20, 48}, {seed = 1, dtype = "u16", low = 500, high = 900})
        local flats = mb.random({10, 20, 48}, {seed = 2, dtype = "u16", low = 1000, high = 1100})
        local made = {raw = raw, flats = flats, darks = mb.ones({10, 20, 48}, {dtype = "u16"})}
        return setmetatable(made, {__close = function()
            for _, array in pairs(made) do
                array:release()
            end
        end})
    end

    it("says of a whole reconstruction what recon.plan says, and the run takes", function()
        local scan <close> = arrays()
        local angles = mb.tomo.angles(30)
        for _, case in ipairs {{}, {method = "fbp"}, {method = "fbp", mode = "in_place"},
            {overlap = false}, {output_dtype = "u16",
            range = {-1, 1}}, {center = false}, {padding = "zero", circle = 0.9,
            method = "fourier", accuracy = "exact"},
            {axis_tilt = 0.02}, {method = "cgls", iterations = 2},
            {method = "sirt", iterations = 2, start = "fbp", center = false},
            {method = "cgls", iterations = 2, start = 0.5}} do
            local own, run = {shape = {30, 20, 48}}, {quiet = true, flats = scan.flats,
                darks = scan.darks, pinned = "1Mi"}
            for name, value in pairs(case) do
                own[name] = value
                run[name == "output_dtype" and "dtype" or name] = value
            end
            own.center = case.center == nil and 20.25 or nil
            run.center = own.center
            run.overlap = case.overlap == nil and true or case.overlap
            for _, chunk in ipairs {3, 20} do
                run.chunk = chunk
                local volume, report = mb.recon.reconstruct(scan.raw, angles, run)
                local need = mb.plan.required_memory(chunk, own)
                assert.equal(need.all, report.plan.at_most)
                assert.equal(report.peak, report.plan.run_peak)
                if own.center then
                    assert.equal(need.all, report.plan.peak)
                    assert.equal(need.all, math.max(report.peak, report.plan.range_peak or 0))
                end
                volume:release()
            end
        end
    end)

    it("knows the iterative methods, about a known axis and about any", function()
        local angles = mb.tomo.angles(30)
        local names = {"cgls", "landweber", "fista", "admm_tv", "sirt", "sart", "mlem", "osem"}
        for i, method in ipairs(names) do
            local own = {shape = {30, 20, 48}, method = method, iterations = 2,
                start = i % 2 == 1 and "fbp" or nil}
            local function measured(center)
                return mb.pool.peak(function()
                    local sinograms <close> = mb.zeros {5, 30, 48}
                    mb.tomo[method](sinograms, angles, {center = center, iterations = 2,
                        start = own.start}):release()
                end)
            end
            for _, center in ipairs {23.5, 30, 8} do
                own.center = center
                assert.equal(measured(center), mb.plan.required_memory(5, own).sinogram, method)
            end
            own.center = nil
            local need, most = mb.plan.required_memory(5, own), 0
            for center = 16, 31, 3 do
                most = math.max(most, measured(center))
            end
            assert.is_true(need.sinogram >= most, method)
            if i % 3 == 1 then
                own.available = need.all
                local counts, peaks = mb.plan.max_chunk(own)
                assert.is_true(counts.all >= 5 and peaks.all <= need.all, method)
                assert.is_true(peaks.sinogram <= need.all, method)
                own.available = nil
                assert.is_true(counts.sinogram == 20 or mb.plan.required_memory(
                    counts.sinogram + 1, own).sinogram > need.all, method)
            end
        end
    end)

    it("knows iterative methods of half acquisitions", function()
        local shape, turn = {60, 6, 48}, {}
        for i = 1, 60 do
            turn[i] = (i - 1) * math.pi / 30
        end
        for _, method in ipairs {"cgls", "sirt"} do
            local own = {shape = shape, method = method, iterations = 2, half_acquisition = true,
                center = 10.25, start = method == "cgls" and "fbp" or nil}
            local start = own.start
            local measured = mb.pool.peak(function()
                local sinograms <close> = mb.zeros {3, 60, 48}
                mb.tomo[method](sinograms, turn, {center = 10.25, iterations = 2,
                    half_acquisition = true, start = start}):release()
            end)
            assert.equal(measured, mb.plan.required_memory(3, own).sinogram)
            local known = mb.plan.required_memory(3, own).all
            own.center = nil
            assert.is_true(mb.plan.required_memory(3, own).all > known)
        end
    end)

    it("takes no option that a reconstruction does not have", function()
        for _, f in ipairs {mb.plan.max_chunk, function(options) return mb.plan.required_memory(2,
            options) end} do
            local message, err = helper.failure(f, {shape = {30, 20, 48}, overlapp = true})
            assert.matches("unknown option 'overlapp'; did you mean 'overlap'", message, 1, true)
            assert.equal("argument", err.code)
        end
        assert.matches("count", (helper.failure(mb.plan.required_memory, 0,
            {shape = {30, 20, 48}})))
    end)
end)
