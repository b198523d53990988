-- What the command lines of all scripts have in common: one letter has one meaning, types have one
-- name, messages are in the words of the command line.
local helper = require "spec.helper"
local cli = require "moonbeam.internal.cli"
local files = require "spec.support.files"
local mb = require "moonbeam"
local step_search = require "moonbeam.pipeline.imports.step_search"
local surface = require "moonbeam.internal.command_line.surface"

-- The declaration of a script's command line: the script is run until it parses its arguments.
local function declaration_of(path)
    local parse, caught, saved = cli.parse, nil, rawget(_G, "arg")
    cli.parse = function(_, spec)
        caught = spec
        error("parsed", 0)
    end
    rawset(_G, "arg", {[0] = path})
    pcall(assert(loadfile(path)))
    cli.parse = parse
    rawset(_G, "arg", saved)
    return caught
end

-- The options of all scripts: {script, option}, lists in the declaration flattened.
local function all_options()
    local list, scripts = {}, 0
    for _, name in ipairs(files.list "scripts") do
        local spec = name:find "%.lua$" and declaration_of("scripts/" .. name)
        scripts = scripts + (spec and 1 or 0)
        for _, item in ipairs(spec or {}) do
            for _, option in ipairs(type(item[1]) == "table" and item or {item}) do
                list[#list + 1] = {script = name, option = option}
            end
        end
    end
    return list, scripts
end

describe("the command lines", function()
    local options, scripts = all_options()

    it("are all read", function()
        assert.is_true(scripts >= 7, scripts .. " scripts parse their arguments")
        assert.is_true(#options > 150)
    end)

    it("give a letter one meaning", function()
        local meaning, wrong = {h = {name = "help", script = "all"}}, {}
        for _, each in ipairs(options) do
            local letter, name = each.option.short, each.option[1]
            local known = meaning[letter]
            if known and known.name ~= name then
                wrong[#wrong + 1] = ("-%s is --%s of %s and --%s of %s"):format(letter, name,
                    each.script, known.name, known.script)
            elseif letter then
                meaning[letter] = {name = name, script = each.script}
            end
        end
        assert.same({}, wrong)
        assert.equal("budget", meaning.b.name)
    end)

    it("give an option that has a letter the same one everywhere", function()
        local letters, wrong = {}, {}
        for _, each in ipairs(options) do
            letters[each.option[1]] = letters[each.option[1]] or each.option.short
        end
        for _, each in ipairs(options) do
            local name = each.option[1]
            -- these are something else in the two kinds of scripts
            local other = name == "angles" or name == "rows" or name == "center"
            if each.option.short ~= letters[name] and not each.option.positional and not other then
                wrong[#wrong + 1] = ("--%s of %s has no -%s"):format(name, each.script,
                    letters[name])
            end
        end
        assert.same({}, wrong)
    end)

    it("name types as their users do", function()
        for _, each in ipairs(options) do
            local kind = each.option.type
            for _, choice in ipairs(type(kind) == "table" and kind.choices or {}) do
                assert.is_nil(surface.TYPES[choice], ("--%s %s of %s"):format(each.option[1],
                    choice, each.script))
            end
        end
    end)
end)

describe("messages of the library on a command line", function()
    local names = surface.names({{"angle-unit", value = "UNIT"}, {"angles-path", value = "PATH",
        library = "angles = PATH"}, {"no-log", library = {"log", "log = false"}}, {"resume"},
        {"data-path", value = "PATH", library = "data"}, {"budget", value = "SIZE"},
        {"out", positional = true}}, {extra = "the step extra"})

    it("name its options, with their values", function()
        for text, expected in pairs {
            ["give the option angle_unit = 'deg'"] = "give --angle-unit deg",
            ["give the option angle_unit ('deg' or 'rad')"] = "give --angle-unit deg or rad",
            ["the option angles = PATH"] = "--angles-path PATH",
            ["give the option log = false"] = "give --no-log",
            ["go on with the option resume = true"] = "go on with --resume",
            ["name one with the option data"] = "name one with --data-path",
            ["use the option extra"] = "use the step extra",
            ["the option out or the option other"] = "the option out or the option other",
        } do
            assert.equal(expected, surface.spoken(text, names))
        end
    end)

    it("name the option of a wrong argument, and sizes that can be typed", function()
        local problem = mb.error("argument", "data is 3; give a string", {op = "scan.open",
            arg = "data"})
        surface.speak(problem, names)
        assert.equal("--data-path is 3; give a string", tostring(problem))
        local _, err = helper.failure(function()
            mb.zeros({1 << 21}, {device = mb.device("host:7", {budget = "1M"})})
        end)
        surface.speak(err, names)
        assert.matches("^[^\n]*8.389 MB do not fit: 0 B live of a budget of 1 MB; "
            .. "give %-%-budget 8.39M or more %(8388608 bytes%)$",
            surface.line(err))
        mb.device("host:7"):close()
    end)

    it("show lengths in units that people use", function()
        for meters, text in pairs {[1e-6] = "1 um", [6.5e-6] = "6.5 um", [0.2e-9] = "0.2 nm",
            [1.3e-3] = "1.3 mm", [2] = "2 m", [9.9999e-7] = "1 um", [1e-7] = "100 nm"} do
            assert.equal(text, surface.length(meters))
        end
    end)
end)

describe("sizes", function()
    it("are shown as they were typed", function()
        for typed, shown in pairs {["8G"] = "8 GB", ["95M"] = "95 MB", ["1.5G"] = "1.5 GB",
            ["512Mi"] = "512 MiB", ["2Gi"] = "2 GiB", ["900T"] = "900 TB"} do
            assert.equal(shown, mb.device.format_bytes(mb.device.bytes(typed)))
        end
        assert.equal("33.55 MB", mb.device.format_bytes(1 << 25, 64000000))
        assert.equal("61.04 MiB", mb.device.format_bytes(64000000, 1 << 25))
    end)
end)

describe("the search for a step", function()
    it("answers in the words of other programs", function()
        for asked, step in pairs {["remove-rings"] = "stripes_all",
            ["ring-removal"] = "stripes_all",
            paganin = "paganin", ["phase-retrieval"] = "paganin", binning = "bin", crop = "crop",
            ["remove-zingers"] = "dezinger", denoise = "total_variation", median = "median",
            ["flat-field"] = "flat_field", ["retrieve-phase-method"] = "paganin",
            ["remove-stripe-method"] = "stripes_all", ["beam-hardening"] = "beam_hardening"} do
            assert.equal(step, step_search.find(asked))
        end
        assert.is_nil(step_search.find "xyzzy")
        assert.is_nil(step_search.find "")
    end)
end)
