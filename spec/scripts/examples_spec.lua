-- The programs of scripts/examples: each runs on a small phantom, and one fact of what it prints
-- or writes is checked.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local EXAMPLES = "scripts/examples"
local MOST_LINES = 40

describe("examples", function()
    local folder

    setup(function()
        folder = files.folder()
        local text, status = helper.run_program(("scripts/simulate.lua %s/scan.h5 --size 64 "
            .. "--rows 8 --center 33.25 -d host -q"):format(folder))
        assert.equal(0, status, text)
    end)

    teardown(function()
        files.remove(folder)
    end)

    -- Runs an example; %s in the arguments is the folder of the files. Returns what it prints.
    local function run(name, arguments)
        local text, status = helper.run_program(("--device host %s/%s.lua %s"):format(EXAMPLES,
            name, (arguments or ""):gsub("%%s", folder)))
        assert.equal(0, status, text)
        return text
    end

    local function number(text, pattern)
        return assert(tonumber(text:match(pattern)), text)
    end

    -- The size of a PNG file in pixels.
    local function png_size(name)
        local bytes = files.read(folder .. "/" .. name)
        assert.equal("\x89PNG\r\n\x1a\n", bytes:sub(1, 8))
        return (">I4I4"):unpack(bytes, 17)
    end

    -- What each example must say. All examples have one: see the last specs.
    local facts = {}

    function facts.fbp_phantom()
        local text = run("fbp_phantom", "96 %s/fbp.png")
        assert.is_true(number(text, "relative error ([%d.]+)") < 0.2)
        assert.equal(96, (png_size "fbp.png"))
    end

    function facts.predict_convolution()
        local text = run "predict_convolution"
        local predicted = number(text, "predicted +(%d+) bytes")
        assert.equal(predicted, number(text, "measured +(%d+) bytes, difference 0\n"))
        assert.is_true(predicted > 3 * number(text, "image +(%d+) bytes"))
    end

    function facts.clean_scan()
        local text = run("clean_scan", "%s/scan.h5 4 %s/before.png %s/after.png")
        for _, method in ipairs {"registration", "vo", "phase_correlation", "entropy"} do
            local column = number(text, method .. " +axis at column ([%d.]+)")
            assert.is_true(math.abs(column - 33.25) < 1.5, text)
        end
        assert.equal(32, (png_size "before.png"))
        assert.equal(32, (png_size "after.png"))
    end

    function facts.gather_frames()
        local scans = require "spec.support.frame_scans"
        local objects = {["/als"] = {group = "NXcollection"}}
        local function add(pattern, list)
            for i, frame in ipairs(list) do
                objects["/als/" .. pattern:format(i - 1)] = {frame}
            end
        end
        add("als_0000_%04d.tif", scans.data())
        add("alsbak_%04d_0000.tif", scans.flats(1, 4))
        add("alsdrk_%04d_0011.tif", scans.darks(1, 2))
        scans.write(folder .. "/als.h5", objects)
        local none, problem = mb.scan.open(folder .. "/als.h5")
        assert.is_nil(none)
        assert.same({"unsupported", "data"}, {problem.code, problem.arg})
        local remedy = problem.message:match "'moonbeam (scripts/examples[^']*) NAME.h5'"
        assert.equal(("%s/gather_frames.lua %s/als.h5 /als"):format(EXAMPLES, folder), remedy)
        local text = run("gather_frames", "%s/als.h5 /als gathered.h5")
        assert.matches("12 frames in /exchange/data\n", text)
        local usual = scans.volume(scans.write(folder .. "/usual.h5", scans.exchange()))
        assert.is_true(usual == (scans.volume(folder .. "/gathered.h5",
            "--angles 0:165 --angle-unit deg --pixel-size 1")))
        os.remove(folder .. "/gathered.h5")
    end

    function facts.own_step()
        files.write(folder .. "/own.lua", '{"flat_field", "minus_log", "center", "fbp", '
            .. '"remove_background"}')
        local text, status = helper.run_program(("scripts/reconstruct.lua %s/scan.h5 --device "
            .. "host --steps %s/own_step.lua --recipe %s/own.lua -o %s/own.h5"):format(folder,
            EXAMPLES, folder, folder))
        assert.equal(0, status, text)
        assert.equal(number(text, "memory +predicted (%d+)"), number(text, "measured (%d+)"))
    end

    function facts.convolve_in_slabs()
        local text = run("convolve_in_slabs", "4M")
        assert.is_true(number(text, "(%d+) slabs") > 1)
        assert.is_true(number(text, "at most (%d+) bytes") <= 4000000)
        assert.is_true(number(text, "relative: (%S+)\n") < 1e-6)
    end

    function facts.filter_in_blocks()
        local text = run("filter_in_blocks", "%s/scan.h5 /exchange/data %s/filtered.h5 400K")
        local planned = number(text, "operator: %d+ blocks of %d rows, planned (%d+) bytes")
        assert.equal(planned, number(text, "measured (%d+)\n"))
        assert.is_true(planned <= 400000)
        assert.matches("function: %d+ blocks of %d+ frames, result u16 95 x 8 x 64", text)
        local file <close> = assert(mb.h5.open(folder .. "/filtered.h5"))
        assert.equal(8, file:dataset("/data").shape[2])
    end

    function facts.find_axis()
        local text = run("find_axis", "%s/scan.h5")
        assert.is_true(math.abs(number(text, "column ([%d.]+) of 64") - 33.25) < 0.2, text)
        assert.matches("verdict: found", text)
    end

    function facts.richardson_lucy()
        local text = run("richardson_lucy", "20 %s/sharp.png")
        local before, after = text:match("error ([%d.]+) %-> ([%d.]+)")
        assert.is_true(tonumber(after) < 0.8 * tonumber(before), text)
        assert.equal(96 + 4 + 2 * 24, (png_size "sharp.png"))
    end

    function facts.half_acquisition()
        local text = run("half_acquisition", "%s/half.png")
        assert.matches("detector 96 columns, slice 161 x 161", text)
        assert.is_true(number(text, "relative error ([%d.]+)") < 0.2)
        assert.equal(161, (png_size "half.png"))
    end

    function facts.memory_timeline()
        local text = run("memory_timeline", "%s/memory.png 4 60 64")
        assert.matches("backproject[^\n]+<%- peak", text)
        assert.matches("\npeak [^\n]+ bytes%), not run\n$", text)
        local _, steps = text:gsub("\n%d+ +%S", "")
        assert.equal(steps * 24 + 4, (png_size "memory.png"))
    end

    function facts.read_scan()
        local text = run("read_scan", "%s/scan.h5 %s/slice.png")
        assert.is_true(math.abs(number(text, "column ([%d.]+) %(found%)") - 33.25) < 0.2, text)
        assert.matches("f32 array 1 x 64 x 64", text)
        assert.equal(64, (png_size "slice.png"))
    end

    function facts.max_slices()
        local text = run("max_slices", "100 128")
        local previous = 0
        for budget, slices, bytes in text:gmatch("(%d+)Gi [^\n]+FBP +(%d+) slices, (%d+) bytes") do
            local limit = tonumber(budget) << 30
            assert.is_true(tonumber(slices) > previous)
            assert.is_true(tonumber(bytes) <= limit and tonumber(bytes) > 0.99 * limit, text)
            previous = tonumber(slices)
        end
        assert.is_true(previous > 0, text)
    end

    function facts.reconstruct_in_chunks()
        local text = run("reconstruct_in_chunks", "%s/scan.h5 %s/volume.h5 33.25 1M")
        local rows, predicted, measured = text:match("of (%d+) rows, predicted (%d+) bytes, "
            .. "measured (%d+)")
        assert.is_true(tonumber(rows) < 8, text)
        assert.is_not_nil(predicted)
        assert.equal(predicted, measured)
        local file <close> = assert(mb.h5.open(folder .. "/volume.h5"))
        local volume <close> = file:read "/entry/data/data"
        assert.same({8, 64, 64}, volume.shape)
        assert.is_true(volume:max() > 0)
    end

    function facts.few_angles()
        local text = run("few_angles", "64 20 180 %s/few.png")
        assert.is_true(number(text, "fista +relative error ([%d.]+)")
            < 0.8 * number(text, "fbp +relative error ([%d.]+)"), text)
        assert.equal(4 * 64, (png_size "few.png"))
    end

    function facts.few_projections()
        local text = run("few_projections", "%s/scan.h5 10 %s/part.png 0.01")
        assert.is_true(number(text, "fista of 10 projections: [%a ]+([%d.]+)") > 0.8, text)
        assert.equal(3 * 16, (png_size "part.png"))
    end

    it("few_projections: a tooth from 40 projections is nearer to that from all by fista",
        function()
        local tooth = files.data("tooth.h5")
        if not tooth then
            pending("tooth.h5 is not here (set MOONBEAM_DATA to its folder)")
            return
        end
        local text = run("few_projections", tooth .. " 40 %s/tooth.png")
        assert.is_true(number(text, "fista of 40 projections: [%a ]+([%d.]+)")
            > 2 * number(text, "fbp of 40 projections: [%a ]+([%d.]+)"), text)
    end)

    for name, fact in pairs(facts) do
        it(name .. " does what its first lines say", fact)
    end

    it("answer --help with their first lines, and wrong use with the line of usage", function()
        for name in pairs(facts) do
            local file = ("%s/%s.lua"):format(EXAMPLES, name)
            local head = files.read(file):match("^(.-)\nlocal mb"):gsub("%-%- ", "") .. "\n"
            if name ~= "own_step" then -- no program
                local text, status = helper.run_program(file .. " --help")
                assert.same({head, 0}, {text, status})
                text, status = helper.run_program(file .. " 1 2 3 4 5")
                assert.equal(2, status, text)
                assert.equal(('there is one argument too many, "%d"; %s'):format(
                    select(2, head:match("%.lua.*"):gsub(" %[?%u", "")) + 1,
                    head:match("usage: .*")), text)
            end
        end
        local text, status = helper.run_program(EXAMPLES .. "/read_scan.lua scan.h5")
        assert.equal(2, status)
        assert.matches("^PNG is missing; usage: moonbeam [^\n]*/read_scan.lua SCAN PNG\n$", text)
        text, status = helper.run_program(EXAMPLES .. "/predict_convolution.lua 8 8.5")
        assert.equal(2, status)
        assert.matches('^HEIGHT is "8.5"; it must be an integer; usage: ', text)
        text, status = helper.run_program(EXAMPLES .. "/reconstruct_in_chunks.lua a.h5 b.h5 x")
        assert.equal(2, status)
        assert.matches('^CENTER is "x"; it must be a number; usage: ', text)
    end)

    it("have one of these specs each, and few lines", function()
        local count = 0
        for _, file in ipairs(files.list(EXAMPLES)) do
            local name = file:match("^(.+)%.lua$")
            if name then -- the C program has c_api_spec.lua
                assert(facts[name], file .. " has no spec")
                local text = files.read(EXAMPLES .. "/" .. file)
                local _, lines = text:gsub("\n", "")
                assert.is_true(lines <= MOST_LINES, file)
                assert.matches("^%-%- ", text)
                assert.matches("\n%-%- usage: moonbeam [^\n]*scripts/examples/" .. file, text)
                count = count + 1
            end
        end
        assert.is_true(count >= 12, count)
    end)
end)
