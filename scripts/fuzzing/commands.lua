--- Seeds that whole commands read: .npy files, Zarr arrays as scans, lists, recipes, and what an
-- interrupted run has left.
--
-- A seed is one of texts.lua, with `try`, which makes the runs of a mutant and judges them, and
-- `prepare`, which notes what the undamaged seed gives. Most have `runs`, {name, words of the
-- command line ...}, in which @ is the folder of the mutant and = the result.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local files = require "scripts.fuzzing.files"
local read = require("scripts.fuzzing.report").read

local commands = {}

-- ---- runs ----

local function words_of(campaign, words, path)
    local list = {}
    for i = 2, #words do
        list[#list + 1] = (words[i]:gsub("@", path):gsub("^=$", campaign.folder .. "/result.h5"))
    end
    return table.unpack(list)
end

-- A run of a mutant, and the sum of its volume.
local function once(campaign, seed, words, path)
    local result = files.run(campaign, words_of(campaign, words, path))
    local verdict = files.verdict(campaign, result)
    local sum = words[1] == "real" and verdict == "accepted" and files.sum_of(campaign) or nil
    if verdict == "accepted" and words[1] == "real" then
        verdict = not sum and "accepted, without a result" or seed.sum and sum ~= seed.sum
            and "accepted, other pixels" or "accepted, right"
    end
    return {run = words[1], verdict = verdict, result = result,
        left = files.clean(campaign, result.code == 0 and "result.h5" or nil)}, sum
end

local function try(campaign, seed, path)
    local entries = {}
    for i, words in ipairs(seed.runs) do
        entries[i] = once(campaign, seed, words, path)
    end
    return entries
end

local function prepare(seed, campaign, path)
    for _, words in ipairs(seed.runs) do
        local entry, sum = once(campaign, seed, words, path)
        if entry.result.code ~= 0 then
            error(("the undamaged %s fails: %s"):format(seed.name, entry.result.err), 0)
        end
        seed.sum = sum or seed.sum
    end
end

local RECONSTRUCT <const> = {"scripts/reconstruct.lua", "--center", "7.5", "--device", "host"}

-- The planned and the real run of a reconstruction with these words.
local function reconstructions(...)
    local runs = {}
    for _, run in ipairs {{"plan", "--plan"}, {"real", "-q", "-o", "="}} do
        local words = table.move(RECONSTRUCT, 1, #RECONSTRUCT, 2, {run[1]})
        table.move({...}, 1, select("#", ...), #words + 1, words)
        runs[#runs + 1] = table.move(run, 2, #run, #words + 1, words)
    end
    return runs
end

local function seed_of(name, kind, parts, runs, damaged)
    return {name = name, kind = kind, extension = kind, parts = parts, values = {}, protected = {},
        runs = runs, damaged = damaged, try = try, prepare = prepare}
end

-- ---- .npy ----

local function npy_part(folder, name, shape, dtype)
    local path = folder .. "/" .. name
    local values <close> = mb.random(shape, {seed = 4, low = 100, high = 900})
    local array <close> = values:cast(dtype)
    mb.npy.write(path, array)
    local text = read(path)
    return {name = name, text = text, binary = true, head = 10 + string.unpack("<I2", text, 9)}
end

local function npy_seeds(folder)
    local stack = npy_part(folder, "stack.npy", {24, 4, 16}, "u16")
    local psf = npy_part(folder, "psf.npy", {3, 3, 5}, "f32")
    local deconvolve = {{"real", "scripts/deconvolve.lua", "@/stack.npy", "@/psf.npy", "--device",
        "host", "--iterations", "2", "--pixel", "100", "--step", "100", "-q", "-o", "="}}
    return {
        seed_of("npy scan", "npy", {stack}, reconstructions("@/stack.npy", "--angles", "0:172.5",
            "--angle-unit", "deg", "--flats", "1000", "--darks", "10")),
        seed_of("npy image and PSF", "npy", {stack, psf}, deconvolve),
    }
end

-- ---- Zarr ----

-- The folders of images as scans of three angles.
local function zarr_seeds(list)
    local made = {}
    for _, seed in ipairs(list) do
        if seed.extension == "zarr" and seed.kind == "image" then
            local parts, damaged = {}, {}
            for i, part in ipairs(seed.parts) do
                local text = part.name:find "json$" or ("/" .. part.name):find "/%.z"
                parts[i] = {name = part.name, text = part.text, binary = not text}
                damaged[part.name] = text and true or nil
            end
            made[#made + 1] = seed_of(seed.name .. " as a scan", "zarr", parts, reconstructions("@",
                "--angles", "0:120", "--angle-unit", "deg", "--no-log"), damaged)
        end
    end
    return made
end

-- ---- lists and recipes ----

local function list_seeds(scan)
    local angles, shifts = {}, {}
    for i = 1, 24 do
        angles[i], shifts[i] = ("%.2f"):format((i - 1) * 7.5), ("%d"):format(i % 3)
    end
    local scan_part = {name = "scan.h5", text = scan}
    local made = {}
    for _, case in ipairs {
        {"angles", "\n", "--angles-path", "@/list.txt", "--angle-unit", "deg"},
        {"angles in a line", ", ", "--angles-path", "@/list.txt", "--angle-unit", "deg"},
        {"shifts", "\n", "--vertical-shifts", "@/list.txt"},
        {"weights", "\n", "--angle-weights", "@/list.txt"},
    } do
        local values = case[1]:find "^angles" and angles or shifts
        if case[1] == "weights" then
            values = {}
            for i = 1, 24 do
                values[i] = i % 2 == 0 and "1.25" or "0.75"
            end
        end
        made[#made + 1] = seed_of("list of " .. case[1], "list", {scan_part, {name = "list.txt",
            text = table.concat(values, case[2]) .. "\n"}}, reconstructions("@/scan.h5",
            table.unpack(case, 3)), {["list.txt"] = true})
    end
    return made
end

local RECIPES <const> = {
    [[return {
    {"flat_field"}, {"minus_log"},
    {"stripes_sorting", size = 5},
    {"fbp", filter = "hann", center = 7.5},
}
]],
    [[-- a recipe
return {{"flat_field"}, {"median", size = 3},
    {"minus_log"}, {"fourier", center = 7.5, size = 12}, {"gaussian", sigma = 0.7}}
]],
}

-- Only planned: another number in a recipe may ask for hours of work.
local function recipe_seeds(scan)
    local made = {}
    for i, text in ipairs(RECIPES) do
        local words = {"plan", "scripts/reconstruct.lua", "@/scan.h5", "--recipe", "@/recipe.lua",
            "--device", "host", "--plan"}
        local printed = {"print", "scripts/reconstruct.lua", "@/scan.h5", "--recipe",
            "@/recipe.lua", "--print-recipe"}
        made[i] = seed_of("recipe " .. i, "recipe", {{name = "scan.h5", text = scan},
            {name = "recipe.lua", text = text}}, {words, printed}, {["recipe.lua"] = true})
    end
    return made
end

-- ---- journals ----

local UNFINISHED <const>, CHANGED <const> = "result.h5.unfinished", "2026-01-02 03:04:05"

-- Runs a reconstruction that is killed at a step of its writing, or none.
local KILLED <const> = [[
local mb = require "moonbeam"
mb.debug.fail_step(%s)
arg = {"%s/scan.h5", "--center", "7.5", "--device", "host", "--chunk", "1", "-q", "-o",
    "%s/result.h5"}
dofile "scripts/reconstruct.lua"
]]

local function set_time(path)
    os.execute(("touch -d '%s' '%s/scan.h5'"):format(CHANGED, path))
end

local function parts_of(path)
    local parts = {}
    for _, below in ipairs {"", UNFINISHED .. "/"} do
        local names = core.system.folder(path .. "/" .. below)
        table.sort(names)
        for _, name in ipairs(names) do
            if core.system.stat(path .. "/" .. below .. name).kind == "file" then
                parts[#parts + 1] = {name = below .. name, text = read(path .. "/" .. below
                    .. name), binary = not name:find "^journal$"}
            end
        end
    end
    return parts
end

-- What a run that was killed after some blocks has left. Its journal tells the place of the scan,
-- so all mutants have the same one, and these mutants are not the same in another folder.
local function journal_seed(folder, scan)
    local path, script = folder .. "/runs/journal", folder .. "/killed.lua"
    for step = 24, 60, 2 do
        os.execute(("rm -rf '%s'"):format(path))
        assert(mb.system.mkdir(path))
        for name, text in pairs {[path .. "/scan.h5"] = scan,
            [script] = KILLED:format(step, path, path)} do
            local file <close> = assert(io.open(name, "wb"))
            file:write(text)
        end
        set_time(path)
        os.execute(("'%s' '%s' >/dev/null 2>&1"):format(core.system.program(), script))
        local parts, journal = parts_of(path), ""
        for _, part in ipairs(parts) do
            journal = part.name == UNFINISHED .. "/journal" and part.text or journal
        end
        if select(2, journal:gsub('"rows"', "")) >= 2 and #parts >= 4 then
            os.execute(("rm -rf '%s'"):format(path))
            return parts, path
        end
    end
    error("no run was killed after two blocks", 0)
end

local function resume(campaign, path, option)
    set_time(path)
    local result = files.run(campaign, "scripts/reconstruct.lua", path .. "/scan.h5", "--center",
        "7.5", "--device", "host", "--chunk", "1", "-q", "-o", path .. "/result.h5", option)
    local verdict = files.verdict(campaign, result)
    return verdict, result, verdict == "accepted" and files.sum_of(campaign, path .. "/result.h5")
end

-- What is in the folder of the unfinished run, as a text.
local function names_in(path)
    local names = core.system.stat(path .. "/" .. UNFINISHED)
        and core.system.folder(path .. "/" .. UNFINISHED) or {}
    table.sort(names)
    return table.concat(names, " ")
end

-- Goes on with the run: to the bits of one that was not interrupted, or with an error that loses
-- nothing and after which --discard makes the result.
local function try_journal(campaign, seed, path)
    local before = names_in(path)
    local verdict, result, sum = resume(campaign, path, "--resume")
    if verdict == "accepted" then
        return {{run = "resume", result = result, verdict = not sum and "accepted, without a result"
            or sum == seed.sum and "accepted, right" or "accepted, wrong"}}
    end
    if verdict == "clean error" and (names_in(path) ~= before
        or core.system.stat(path .. "/result.h5")) then
        verdict = "lost what was kept"
    end
    local again, other, right = resume(campaign, path, "--discard")
    return {{run = "resume", result = result, verdict = verdict}, {run = "discard", result = other,
        verdict = again ~= "accepted" and again ~= "crash" and again ~= "hang" and "advice failed"
        or again == "accepted" and (right == seed.sum and "accepted, right" or "accepted, wrong")
        or again}}
end

local function journal_seeds(folder, scan)
    local parts, path = journal_seed(folder, scan)
    local damaged = {}
    for _, part in ipairs(parts) do
        damaged[part.name] = part.name ~= "scan.h5" or nil
    end
    return {{name = "journal", kind = "journal", extension = "journal", parts = parts,
        fixed = path, working = "^result%.h5", damaged = damaged, try = try_journal, values = {},
        protected = {},
        prepare = function(seed, campaign)
            local _, result, sum = resume(campaign, path, "--resume")
            seed.sum = sum or error("the undamaged journal fails: " .. result.err, 0)
        end}}
end

--- All these seeds, made in a folder; `list` has those of scans and images.
function commands.seeds(folder, list)
    local made, scan = {}, nil
    for _, seed in ipairs(list) do
        scan = scan or seed.kind == "scan" and seed.text
    end
    for _, more in ipairs {npy_seeds(folder), zarr_seeds(list), list_seeds(scan),
        recipe_seeds(scan), journal_seeds(folder, scan)} do
        table.move(more, 1, #more, #made + 1, made)
    end
    return made
end

return commands
