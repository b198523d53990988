-- Mistakes in steps of one's own: each is told with the step, the function and what it should be,
-- before or while it runs, and nothing is left.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("a step of one's own", function()
    local scan, arrays

    before_each(function()
        arrays = {mb.random({6, 9, 8}, {dtype = "u16", low = 300, high = 900, seed = 1}),
            mb.ones({1, 9, 8}, {dtype = "u16"})}
        scan = mb.scan.of_arrays(arrays[1], mb.tomo.angles(6), {flats = arrays[2]})
    end)
    after_each(function()
        for _, array in ipairs(arrays) do
            array:release()
        end
    end)

    local function definition(changes)
        local def = {name = "own", summary = "S.", run = function() end,
            takes = {quantity = "any", layout = "frames"}}
        for field, value in pairs(changes) do
            def[field] = value
        end
        return def
    end

    -- Runs a recipe with a step that differs from a good one by `changes`.
    local function run(changes, recipe)
        mb.pipeline(scan, recipe or {"flat_field", "own", "minus_log", {"fbp", center = 3.5}},
            {steps = {definition(changes)}, quiet = true}):run(function() end)
    end

    local function wrong(part, changes, recipe)
        mb.collect()
        local live = mb.pool.stats("host").live
        local text = helper.failure(run, changes, recipe)
        assert.is_truthy(text:find(part, 1, true), text)
        assert.is_truthy(text:find("step own", 1, true) or text:find("step 'own'", 1, true), text)
        assert.equal(live, mb.pool.stats("host").live)
    end

    local function returns(...)
        local values = table.pack(...)
        return function()
            return table.unpack(values, 1, values.n)
        end
    end

    it("runs where it is right", function()
        run {}
        run {needs = function(_, first, last) return first - 1.0, last + 1.0 end,
            packet = returns(2.0), cuts = {"rows"}}
    end)

    it("names itself in an error, and where that is", function()
        wrong("its function run fails: ", {run = function() error "boom" end})
        wrong("own_step_spec.lua:", {run = function(block) return block.nothing.at end})
        wrong("element 1 of sigma is -1", {run = function(block)
            mb.gaussian_filter(block.data, {-1, 0, 0})
        end})
        wrong("its function needs fails: ", {needs = function() error "boom" end})
    end)

    it("is told what data it leaves that it should not", function()
        wrong("array is missing; give an array", {run = function(block) block:replace(nil) end})
        wrong("run leaves no array in block.data", {run = function(block) block.data:release() end})
        wrong("run leaves no array in block.data", {run = function(block)
            block.data:release()
            block.data = {1, 2}
        end})
        wrong("run leaves f32 6 x 9 x 7; shape and gives say f32 6 x 9 x 8", {run = function(block)
            block:replace(mb.crop(block.data, {before = {0, 0, 1}, after = {0, 0, 0}}))
        end})
        wrong("run leaves u16 6 x 9 x 8; shape and gives say f32", {run = function(block)
            block:replace(block.data:cast "u16")
        end})
        wrong("run leaves f32 6 x 9 x 8; shape and gives say f32 6 x 9 x 9",
            {shape = returns {6, 9, 9}})
        wrong("it leaves rows 2 to 9, of which 1 to 9 are needed: its function needs must ask for",
            {cuts = {"rows"}, needs = function(_, first, last) return first + 1, last end})
    end)

    it("leaves nothing where it fails or yields in a later block", function()
        local function late(f)
            local count = 0
            return {run = function(block)
                count = count + (block.device.dry and 0 or 1)
                local left = block.data * 2
                if count == 1 and not block.device.dry then
                    f(left)
                end
            end}
        end
        wrong("its function run fails: spec/pipelines/own_step_spec.lua", late(function()
            error "late"
        end))
        for _, f in ipairs {coroutine.yield, function() coroutine.yield() end} do
            wrong("its function run yields (spec/pipelines/own_step_spec.lua:", late(f))
            coroutine.wrap(wrong)("its function run yields (spec/", late(f))
        end
        wrong("run leaves f32 1 x 2 x 3; shape and gives say f32 6 x 9 x 8",
            {run = function(block)
                if not block.device.dry then
                    block:replace(mb.zeros {1, 2, 3})
                end
            end})
    end)

    it("is told what its functions return that they should not", function()
        wrong("needs returns 'a', 'b'; give the first and the last row", {needs = returns("a", "b")})
        wrong("needs returns 14, -4; give", {needs = returns(14, -4)})
        wrong("packet returns 0; give how many rows", {packet = returns(0)})
        wrong("packet returns 1.5; give how many rows", {packet = returns(1.5)})
        wrong("cuts is {}; give {\"rows\"}", {cuts = {}})
        wrong("cuts is {'columns'}; give", {cuts = {"columns"}})
        wrong("cuts is nil; give", {cuts = returns(nil)})
        wrong("shape returns {1, 2}; give a list of three extents", {shape = returns {1, 2}})
        wrong("geometry returns a table without angles", {geometry = returns {}})
        wrong("gives returns nil; give {quantity", {gives = returns(nil)})
        wrong("takes returns nil; give {quantity", {takes = returns(nil)})
        wrong("ways returns nil; give a list of tables", {ways = returns(nil)})
        wrong("reduce.passes is nil; give how often", {reduce = {start = returns(nil),
            add = returns(nil), finish = returns(nil)}})
    end)

    it("is told what it measures that it should not", function()
        local recipe = {"flat_field", "minus_log", "own", "fourier"}
        local function measures(value)
            return {measure = returns(value), bounds = returns {1, 5}, gives_value = "center"}
        end
        run(measures(3.5), recipe)
        wrong("measure returns 30, and bounds {1, 5}: the plan holds for", measures(30), recipe)
        wrong("measure returns 'a', and bounds {1, 5}", measures "a", recipe)
        wrong("measure returns nil, and bounds {1, 5}", measures(nil), recipe)
        wrong("bounds returns nil; give {low, high}",
            {measure = returns(3), bounds = returns(nil), gives_value = "center"}, recipe)
        wrong("bounds is missing", {measure = returns(3)})
    end)

    -- Runs in blocks of so many rows with a step that keeps what `keep` says, as a run without
    -- MOONBEAM_STRICT does.
    local function warnings_of(count, keep)
        local name = os.tmpname()
        files.write(name, ([[
            local mb = require "moonbeam"
            local kept = {before = mb.ones {4, 4}}
            local scan = mb.scan.of_arrays(mb.random({6, 9, 8}, {dtype = "u16", low = 300,
                high = 900, seed = 1}), mb.tomo.angles(6), {flats = mb.ones({1, 9, 8},
                {dtype = "u16"})})
            local report = mb.pipeline(scan, {"flat_field", "own", "minus_log",
                {"fbp", center = 3.5}}, {steps = {{name = "own", summary = "S.", run = function(b)
                    %s
                end, takes = {quantity = "any", layout = "frames"}}}, block = %d,
                quiet = true}):run(function() end)
            for _, text in ipairs(report.warnings) do
                print(text)
            end
        ]]):format(keep, count))
        local text, status = helper.run_program(name, "", "env -u MOONBEAM_STRICT "
            .. helper.program)
        os.remove(name)
        assert.equal(0, status, text)
        return text, name
    end

    it("that keeps arrays is named, with the line, in any number of blocks", function()
        for count, bytes in pairs {[1] = "9 arrays of 4.5 KiB", [3] = "3 arrays of 3 KiB",
            [9] = "1 array of 2 KiB"} do
            local text, name = warnings_of(count, "kept[#kept + 1] = b.data:copy()")
            assert.equal(("step own keeps %s in all, made at %s:8: the plan counts what a step makes "
                .. "for one block only; let it release what it makes\n"):format(bytes, name), text)
        end
        -- A view of the block holds the memory of the block, whoever made that.
        for _, view in ipairs {"b.data:view(1)", "b.data:reshape(-1)", "b.data[1]",
            "b.data:transpose()"} do
            for count, bytes in pairs {[3] = "3 arrays of ", [9] = "1 array of "} do
                local text, name = warnings_of(count, ("kept[#kept + 1] = %s"):format(view))
                assert.matches(("^step own keeps %s%%S+ KiB in all, made at %s:8: "):format(bytes,
                    (name:gsub("%p", "%%%0"))), text)
                assert.not_matches("defect", text)
            end
        end
        assert.equal("", (warnings_of(3, "local v = b.data:view(1) v:fill(1)")))
        assert.equal("", (warnings_of(3, "kept[#kept + 1] = kept.before:view(1)")))
        -- What it releases, replaces or leaves to the collector is not kept.
        assert.equal("", (warnings_of(1, "local c <close> = b.data:copy()")))
        assert.equal("", (warnings_of(3, "b:replace(b.data:copy())")))
        assert.equal("", (warnings_of(9, "local c = b.data:copy() c:fill(1)")))
        if os.getenv "MOONBEAM_STRICT" then -- an error of the step, not of the library
            local kept = {}
            local _, err = helper.failure(run, {run = function(block)
                kept[#kept + 1] = block.data:copy()
            end})
            for _, array in ipairs(kept) do
                array:release()
            end
            assert.equal("argument", err.code)
            assert.matches("step own keeps 1 array .*own_step_spec.lua", err.message)
        end
    end)

    it("is told what it declares that it should not", function()
        wrong("the default of an option: n is the string 'a'; it must be a whole number",
            {options = {{"n", "count", "doc", default = "a"}}})
        wrong("options is no list", {options = {n = 3}})
        wrong("reduce.start is missing", {reduce = {}})
    end)
end)
