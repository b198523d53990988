-- Parts of a run (--part K/N), and moonbeam join: the bits of a run without parts.

local commands = require "spec.support.commands"
local core = require "moonbeam.core"
local differing = require "moonbeam.result.differing"
local files = require "spec.support.files"
local joined_parts = require "moonbeam.pipeline.shares.joined_parts"
local mb = require "moonbeam"
local part_rows = require "moonbeam.pipeline.shares.part_rows"

-- Steps of a script: the one smooths whole frames, the other takes three slices together.
local OWN <const> = {
    {
        name = "smooth_frames", summary = "Smooths whole frames.",
        takes = {quantity = "any", layout = "frames"},
        gives = {quantity = "same", layout = "same"}, cuts = {"frames"},
        run = function(block)
            block:replace(mb.gaussian_filter(block.data, {0, 1.5, 1.5}))
        end,
    },
    {
        name = "mean_of_three", summary = "Takes the mean of three slices from each.",
        takes = {quantity = "any", layout = "slices"},
        gives = {quantity = "same", layout = "same"},
        packet = function()
            return 3
        end,
        run = function(block)
            for first = 1, block.data.shape[1], 3 do
                local last = math.min(first + 2, block.data.shape[1])
                local own <close> = block.data:view {first, last}
                mb.binary(own, "sub", {scalar = mb.bound(0, own.mean, own), out = own})
            end
        end,
    },
}

-- Recipes that measure and sum at different places, with the parts that they are made in.
local CASES <const> = {
    {name = "of one section, with a search for the axis", parts = 3, rows = {2, 13},
        recipe = {"flat_field", "minus_log", {"center"}, "fbp"}},
    {name = "in packets of three", parts = 4,
        recipe = {"flat_field", "minus_log", {"fbp", center = 15.5}, "mean_of_three"}},
    {name = "with neighbors of rows", parts = 5,
        recipe = {{"dezinger", size = 3, threshold = 50}, "flat_field", "minus_log", {"fbp", center = 15.5}}},
    {name = "with an axis that is searched after whole frames", parts = 2,
        recipe = {"flat_field", "smooth_frames", "minus_log", {"center"}, "fbp"}},
    {name = "with percentiles of all values", parts = 3,
        recipe = {"flat_field", "minus_log", {"fbp", center = 15.5},
            {"rescale", dtype = "uint16", percentiles = {1, 99}}}},
    {name = "with the range of three slices", parts = 3, rows = {3, 12},
        recipe = {"flat_field", "minus_log", {"fbp", center = 15.5},
            {"rescale", dtype = "uint16", sample = 3}}},
}

describe("parts of a run", function()
    local shell, path

    setup(function()
        shell = commands.folder()
        path = shell:path "scan.h5"
        commands.must("simulate.lua", path .. " --size 32 --rows 13 --angles 40 --quiet")
    end)
    teardown(function()
        shell:remove()
    end)
    before_each(function()
        files.run(("cd '%s' && rm -rf v* w* x*"):format(shell.folder))
    end)

    -- Runs a recipe into a file, or the part {number, count} of it.
    local function run(case, output, part, options)
        local scan <close> = assert(mb.scan.open(path))
        local pipeline = mb.pipeline(scan, case.recipe, {steps = OWN, rows = case.rows,
            part = part, block = case.block, quiet = true})
        local own = {output = shell:path(output)}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        return pipeline:run(own)
    end

    -- Runs all parts; returns their files.
    local function run_parts(case, output)
        local list = {}
        for number = 1, case.parts do
            local done = run(case, output, {number, case.parts})
            assert.is_true(done.as_planned)
            list[number] = done.output
            assert.equal(part_rows.path(shell:path(output), {number, case.parts}), done.output)
        end
        return list
    end

    local function join(list, output, more)
        local words = {}
        for i = #list, 1, -1 do -- in any order
            words[#words + 1] = ("'%s'"):format(list[i])
        end
        return commands.run("join.lua", ("%s -o '%s' %s"):format(table.concat(words, " "),
            shell:path(output), more or "--quiet"))
    end

    local function bytes_of(name)
        local volume <close> = mb.images.open(name)
        local array <close> = mb.volumes.load(volume, mb.device "host")
        return array:to_string(), table.concat(array.shape, " ") .. array.dtype
    end

    local function facts(name)
        local file <close> = assert(mb.h5.open(name))
        local list = {}
        for _, own in ipairs {"/entry/data/z", "/entry/data/y", "/entry/reconstruction/parameters"
            .. "/rows", "/entry/reconstruction/parameters/recipe", "/entry/title"} do
            local value = file:value(own)
            list[own] = value
        end
        for _, attribute in ipairs {"units", "scale_factor", "add_offset", "pixel_size"} do
            list[attribute] = file:attribute("/entry/data/data", attribute) or "none"
        end
        return list
    end

    for _, case in ipairs(CASES) do
        it("have the bits of a run without parts, " .. case.name, function()
            run(case, "w.h5")
            local list = run_parts(case, "v.h5")
            local status, text = join(list, "v.h5")
            assert.equal(0, status, text)
            local expected, shape = bytes_of(shell:path "w.h5")
            local found, own = bytes_of(shell:path "v.h5")
            assert.equal(shape, own)
            assert.is_true(expected == found, "other bits")
            assert.same(facts(shell:path "w.h5"), facts(shell:path "v.h5"))
        end)
    end

    it("are made and joined by the command line, into files of any format", function()
        local options = "'" .. path .. "' --output-dtype uint16 --rows 2:12 --quiet -o "
        commands.must("reconstruct.lua", options .. shell:path "w.tif")
        commands.must("reconstruct.lua", options .. shell:path "w.zarr")
        local list = {}
        for number = 1, 3 do
            commands.must("reconstruct.lua", ("%s %s --part %d/3"):format(options,
                shell:path "v.tif", number))
            list[number] = shell:path(("v-part-%d-of-3.h5"):format(number))
        end
        local known
        for _, name in ipairs {".tif", ".zarr", ".h5"} do
            assert.equal(0, (join(list, "v" .. name)))
            local expected, shape = bytes_of(shell:path(name == ".h5" and "w.tif" or "w" .. name))
            local found, own = bytes_of(shell:path("v" .. name))
            assert.equal(shape, own)
            assert.is_true(expected == found, "other bits in " .. name)
            known = known or found
            assert.is_true(known == found)
        end
    end)

    it("are joined where the scan is not", function()
        local case = {recipe = CASES[1].recipe, parts = 2}
        local list = run_parts(case, "v.h5")
        local function told(name)
            local file <close> = assert(mb.h5.open(shell:path(name)))
            return {file:value "/entry/reconstruction/parameters/raw_file",
                file:value "/entry/provenance/input/path",
                file:value "/entry/provenance/input/bytes",
                file:value "/entry/provenance/input/modified"}
        end
        assert.equal(0, (join(list, "v1.h5")))
        local away = shell:path "xaway.h5"
        assert(os.rename(path, away))
        local status, text = join(list, "v2.h5")
        assert(os.rename(away, path))
        assert.equal(0, status, text)
        assert.same(told "v1.h5", told "v2.h5")
        assert.equal(4, #told "v2.h5")
        assert.is_true(bytes_of(shell:path "v1.h5") == bytes_of(shell:path "v2.h5"))
    end)

    it("go on where they were interrupted", function()
        local case = {recipe = CASES[1].recipe, rows = {2, 13}, parts = 2, block = 1}
        run(case, "w.h5")
        local seen = 0
        local ok = pcall(run, case, "v.h5", {2, 2}, {each = function()
            seen = seen + 1
            assert(seen < 4, "as if something failed")
        end})
        local kept = shell:path "v-part-2-of-2.h5"
        assert.is_false(ok)
        assert.is_true(core.unfinished.exists(kept))
        local other = run(case, "v.h5", {1, 2})
        local status, text = join({other.output}, "v.h5")
        assert.equal(1, status)
        assert.matches("part 2 of 2 is missing: it was interrupted: go on with it by --part 2/2 "
            .. "--resume", text, 1, true)
        local done = run(case, "v.h5", {2, 2}, {resume = true})
        assert.equal(0, (join({other.output, done.output}, "v.h5")))
        assert.is_true(bytes_of(shell:path "w.h5") == bytes_of(shell:path "v.h5"))
    end)

    it("are refused where one is missing, there twice, or of another run", function()
        local case = {recipe = CASES[2].recipe, parts = 3}
        local list = run_parts(case, "v.h5")
        local other = run({recipe = {"flat_field", "minus_log", {"fbp", center = 15}}}, "w.h5",
            {2, 3}).output
        local halves = run({recipe = case.recipe}, "x.h5", {1, 2}).output
        files.run(("cp '%s' '%s'"):format(list[1], shell:path "w-copy.h5"))
        local function refused(given, expected)
            local status, text = join(given, "v.h5")
            assert.equal(1, status, text)
            assert.matches(expected, text, 1, true)
            assert.matches("^[^\n]*\n$", text)
            assert.is_false(commands.exists(shell:path "v.h5"))
        end
        refused({list[1], list[3]}, "part 2 of 3 is missing: give '" .. list[2] .. "', too")
        refused({list[2]}, "parts 1, 3 of 3 are missing")
        refused({list[2], shell:path "w-copy.h5"}, "part 3 of 3 is missing: make it by --part 3/3")
        os.remove(list[2])
        refused({list[1], list[3]}, "part 2 of 3 is missing: make it by --part 2/3")
        refused({list[1], list[3], shell:path "w-copy.h5"}, "are both part 1 of 3")
        refused({list[1], other, list[3]}, "is of another run than")
        refused({list[1], other, list[3]}, "recipe (")
        refused({list[1], list[3], halves}, "the number of parts (")
        refused({list[1], path}, "is no part of a run")
        refused({list[1], shell:path "nothing.h5"}, "nothing.h5")
        for _, name in ipairs(files.list(shell.folder)) do
            assert.is_nil(name:match "^v%.h5", name)
        end
    end)

    it("may be made from copies of the scan", function()
        local options = "'%s' --output-dtype uint16 --quiet -o " .. shell:path "v.h5"
            .. " --part %d/2"
        commands.must("reconstruct.lua", ("'%s' --output-dtype uint16 --quiet -o %s"):format(path,
            shell:path "w.h5"))
        assert(mb.system.mkdir(shell:path "x"))
        local copy = shell:path "x/copy.h5"
        files.run(("cp '%s' '%s' && touch -d 2020-01-01 '%s'"):format(path, copy, copy))
        commands.must("reconstruct.lua", options:format(path, 1))
        local list = {shell:path "v-part-1-of-2.h5", shell:path "v-part-2-of-2.h5"}
        local function again(scan)
            os.remove(list[2])
            commands.must("reconstruct.lua", options:format(scan, 2))
        end
        again(copy)
        assert.equal(0, (join(list, "v.h5")))
        assert.is_true(bytes_of(shell:path "w.h5") == bytes_of(shell:path "v.h5"))
        os.remove(shell:path "v.h5")

        local function refused(expected)
            local status, text = join({list[2], list[1]}, "v.h5")
            assert.equal(1, status, text)
            assert.matches("what differs: scan (" .. expected, text, 1, true)
        end
        local bytes = files.read(copy)
        local at = #bytes // 2
        files.write(copy, bytes:sub(1, at) .. string.char(bytes:byte(at + 1) ~ 1)
            .. bytes:sub(at + 2))
        again(copy) -- its last bit of a value is another one
        refused(("'%s' and '%s' have other contents)"):format(path, copy))
        files.write(copy, bytes .. "more")
        again(copy)
        refused(("'%s' with %d bytes, '%s' with %d)"):format(path, #bytes, copy, #bytes + 4))
        files.run(("touch -d 2020-01-01 '%s'"):format(path))
        again(path)
        refused(("'%s' was written to between the parts)"):format(path))
    end)

    it("say in plain numbers how they differ", function()
        local case = {recipe = CASES[2].recipe, parts = 2}
        local list = run_parts(case, "v.h5")
        local other = run({recipe = {"flat_field", "minus_log", {"fbp", center = 15.25},
            "mean_of_three"}}, "w.h5", {2, 2}).output
        local status, text = join({other, list[1]}, "v.h5")
        assert.equal(1, status)
        assert.matches("recipe %('[^\n]*center = 15.5[^\n]*', '[^\n]*center = 15.25", text)
        assert.is_nil(text:find("another one", 1, true), text)
        assert.is_nil(text:find("0x1", 1, true), text)
        local two, three = differing({center = 15.25, 1}, {center = 0.1, 1, "b"})
        assert.same({"{1, center = 15.25}", "{1, b, center = 0.1}"}, {two, three})
        assert.same({"nothing", "'a'"}, {differing(nil, "a")})
        status, text = join(list, "v.h5", "--plan --budget 5000")
        assert.equal(0, status, text)
        assert.matches("available, 1 slice at a time\n", text, 1, true)
    end)

    it("leave nothing where a part is damaged", function()
        local list = run_parts({recipe = CASES[2].recipe, parts = 2}, "v.h5")
        local bytes = files.read(list[2])
        files.write(list[2], bytes:sub(1, #bytes // 2))
        local status, text = join(list, "v.h5")
        assert.equal(1, status)
        assert.matches(list[2], text, 1, true)
        local spoilt, count = bytes:gsub("(moonbeam%-part.-)identity", "%1identitx")
        assert.equal(1, count)
        files.write(list[2], spoilt)
        status, text = join(list, "v.h5")
        assert.equal(1, status)
        assert.matches("'" .. list[2] .. "' is damaged: what it says of its part", text, 1, true)
        assert.same({"scan.h5", "v-part-1-of-2.h5", "v-part-2-of-2.h5"}, files.list(shell.folder))
    end)

    it("are joined in the memory that is predicted, whatever the budget", function()
        local list = run_parts({recipe = CASES[2].recipe, parts = 2}, "v.h5")
        local all = joined_parts.open(list)
        local one, most = joined_parts.peak(all, 1), joined_parts.peak(all, 5)
        getmetatable(all).__close()
        assert.is_true(one < most)
        local status, text = join(list, "v.h5", ("--budget %d"):format(most - 1))
        assert.equal(0, status, text)
        local predicted, measured = text:match "predicted (%d+) bytes, measured (%d+) bytes"
        assert.equal(predicted, measured)
        assert.is_true(tonumber(measured) < most and tonumber(measured) >= one)
        status, text = join(list, "v2.h5", ("--budget %d"):format(one - 1))
        assert.equal(1, status)
        local typed, enough = text:match "; give %-%-budget (%S+) or more %((%d+) bytes%)\n$"
        assert.equal(one, math.tointeger(enough), text)
        assert.is_false(commands.exists(shell:path "v2.h5"))
        status, text = join(list, "v2.h5", "--plan --budget 1000")
        assert.equal(1, status)
        assert.matches(("or more (%d bytes)"):format(one), text, 1, true)
        status, text = join(list, "v2.h5", "--budget " .. typed)
        assert.equal(0, status, text)
        assert.matches(("measured %d bytes"):format(one), text, 1, true)
    end)

    it("are refused where there are more than packets, and with what is of the whole", function()
        local status, text = commands.run("reconstruct.lua", ("'%s' -o '%s' --center 15 --part 14/14")
            :format(path, shell:path "v.h5"))
        assert.equal(2, status)
        assert.matches("give at most %d+ parts", text)
        status, text = commands.run("reconstruct.lua", ("'%s' -o '%s' --part 3/2"):format(path,
            shell:path "v.h5"))
        assert.equal(2, status)
        assert.matches("K/N, the K-th of N parts", text, 1, true)
        status, text = commands.run("reconstruct.lua", ("'%s' -o '%s' --part 1/2 --preview '%s'")
            :format(path, shell:path "v.h5", shell:path "v.png"))
        assert.equal(2, status)
        assert.matches("--preview cannot be used with --part", text, 1, true)
        local function raised(fn, expected)
            local ok, problem = pcall(fn)
            assert.is_false(ok)
            assert.equal("argument", problem.code)
            assert.equal(expected, problem.message)
        end
        raised(function()
            run(CASES[2], "v.h5", {0, 2})
        end, "part is 0/2; it must be K/N, two whole numbers, K from 1 to N")
        raised(function() -- slices that depend on each other
            run({recipe = {"flat_field", "minus_log", {"fista", center = 15.5, iterations = 1,
                dimensions = 3}}}, "v.h5", {1, 2})
        end, "part is 1/2; the result has 13 rows, which are made 13 together: give at most 1 part")
        local scan, arrays = require "spec.support.pipelines".open_scan()
        local _ <close> = arrays
        raised(function()
            mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 15.5}},
                {part = {1, 2}, quiet = true}):run {output = shell:path "v.h5"}
        end, "a part needs a scan from a file: nobody can tell whether arrays are those of the "
            .. "other parts")
    end)

    it("measure in all rows of a compressed scan", function()
        local scan <close> = assert(mb.h5.open(path))
        local packed = shell:path "w-packed.h5"
        do
            local file <close> = mb.h5.create(packed)
            for _, name in ipairs {"data", "data_white", "data_dark"} do
                local array <close> = scan:read("/exchange/" .. name)
                local dataset = file:create_dataset("/exchange/" .. name, {shape = array.shape,
                    dtype = array.dtype, chunks = {1, array.shape[2], array.shape[3]},
                    deflate = 3})
                dataset:write(array)
                dataset:close()
            end
            file:write("/exchange/theta", scan:value "/exchange/theta",
                {dtype = "f64", attributes = {units = "deg"}})
            file:finish()
        end
        local options = "'" .. packed .. "' --output-dtype uint16 --quiet -o "
        commands.must("reconstruct.lua", options .. shell:path "w.h5")
        local list = {}
        for number = 1, 2 do
            commands.must("reconstruct.lua", ("%s %s --part %d/2"):format(options,
                shell:path "v.h5", number))
            list[number] = shell:path(("v-part-%d-of-2.h5"):format(number))
        end
        assert.equal(0, (join(list, "v.h5")))
        assert.is_true(bytes_of(shell:path "w.h5") == bytes_of(shell:path "v.h5"))
    end)
end)
