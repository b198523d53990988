--- Campaigns on damaged files: every mutant goes through the program as a user would send it,
-- planned and for real.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local mutate = require "scripts.fuzzing.mutate"
local read = require("scripts.fuzzing.report").read
local texts = require "scripts.fuzzing.texts"

local files = {}

local RESIDENT_KIB = 300000  -- beyond which memory counts as a surprise; not under a sanitizer
local SOUND <const> = 5      -- of so many mutants about one is not damaged
local SANITIZER_STATUS = 77  -- what the sanitizers end with, see scripts/fuzz

local function write(path, text)
    local file <close> = assert(io.open(path, "wb"))
    assert(file:write(text))
end

-- Writes a seed, with one of its parts as `changed` ({[number] = text}; false: without that part).
local function write_parts(path, parts, changed)
    for i, part in ipairs(parts) do
        local text = part.text
        if changed[i] ~= nil then
            text = changed[i]
        end
        local inner = path .. "/" .. part.name
        assert(core.system.mkdir(inner:match("^(.*)/")))
        if text then
            write(inner, text)
        end
    end
end

-- Writes a seed: its parts, of which some are `changed`, or its text; anew.
local function write_seed(path, seed, changed, text)
    os.execute(("rm -rf '%s'"):format(path))
    if seed.parts then
        write_parts(path, seed.parts, changed)
    else
        write(path, text)
    end
end

-- A mutant of a folder: one of its files is damaged, more often one that describes the others, or
-- is missing.
local function damaged_parts(seed)
    local described, at = {}, math.random(#seed.parts)
    for i, part in ipairs(seed.parts) do
        described[#described + 1] = (part.name:find("zarr%.json$") or part.name:find("%.z%a+$"))
            and i or nil
    end
    if #described > 0 and math.random(3) > 1 then
        at = described[math.random(#described)]
    end
    local text = seed.parts[at].text
    return {[at] = math.random(20) > 1 and #text > 0 and mutate.structure(text, {})}
end

--- Runs campaign.program with these arguments, for campaign.seconds at most. Returns {how =
-- "exit", code = 0, seconds, kib, out, err}.
function files.run(campaign, ...)
    local words = {campaign.measure, tostring(campaign.seconds), campaign.folder .. "/out",
        campaign.folder .. "/err", campaign.program, ...}
    for i, word in ipairs(words) do
        words[i] = ("'%s'"):format(word)
    end
    local pipe <close> = assert(io.popen(table.concat(words, " ")))
    local line = pipe:read("l") or ""
    local how, rest = line:match("^(%a+) (.*)$")
    local numbers = {}
    for number in (rest or ""):gmatch("%S+") do
        numbers[#numbers + 1] = tonumber(number)
    end
    local code = #numbers == 3 and table.remove(numbers, 1) or nil
    return {how = how or "lost", code = code, seconds = numbers[1] or 0, kib = numbers[2] or 0,
        out = read(campaign.folder .. "/out"), err = read(campaign.folder .. "/err")}
end

local function warnings_and_lines(text)
    local warnings, lines = 0, 0
    for line in text:gmatch("[^\n]+") do
        if line:find("^[%w_]*:? ?warning: ") then
            warnings = warnings + 1
        else
            lines = lines + 1
        end
    end
    return warnings, lines
end

--- Removes all that a run has left beside the mutant, and returns what should not be there.
function files.clean(campaign, expected)
    local left = {}
    for _, name in ipairs(core.system.folder(campaign.folder)) do
        if name:find("^result") then
            if name ~= expected then
                left[#left + 1] = name
            end
            os.execute(("rm -rf '%s/%s'"):format(campaign.folder, name))
        end
    end
    return left
end

--- How a run ended, as a word of the report.
function files.verdict(campaign, result)
    local _, lines = warnings_and_lines(result.err)
    if result.how == "hang" then
        return "hang"
    elseif result.how ~= "exit" then
        return "crash"
    elseif result.code == SANITIZER_STATUS then
        return "sanitizer"
    elseif not campaign.sanitized and result.kib > RESIDENT_KIB then
        return "memory"
    elseif result.code == 0 then
        return "accepted"
    elseif result.err:find("stack traceback", 1, true) then
        return "traceback"
    elseif result.code ~= 1 and result.code ~= 2 then
        return "status"
    end
    return lines == 1 and "clean error" or "several lines"
end

local function same_angles(a, b)
    if #a ~= #b then
        return false
    end
    local step = math.pi / #a
    for i = 1, #a do
        if a[i] ~= a[i] or math.abs(a[i] - b[i]) > step / 4 then
            return false
        end
    end
    return true
end

-- The names of the facts in which a mutant differs from its seed.
local function changed(facts, true_facts)
    local names = {}
    for _, name in ipairs {"n_angles", "rows", "cols", "dtype", "pixel_size", "flats", "darks",
        "shape", "spacing", "unit",
        "channels", "frames"} do
        if facts[name] ~= true_facts[name] then
            names[#names + 1] = name
        end
    end
    if facts.angles and not same_angles(facts.angles, true_facts.angles) then
        names[#names + 1] = "angles"
    end
    return names
end

local function facts_of(campaign, seed, path)
    local result = files.run(campaign, "scripts/fuzzing/facts.lua", seed.kind == "scan" and "scan"
        or "image", path .. (seed.open and "/" .. seed.open or ""))
    local chunk = result.how == "exit" and result.code == 0 and load(result.out, "=facts", "t", {})
    return chunk and chunk(), result
end

--- The sum of the volume that a run has written (default: result.h5), nil if there is none.
function files.sum_of(campaign, path)
    local file <close> = mb.h5.open(path or campaign.folder .. "/result.h5")
    local volume <close> = file and file:read("/entry/data/data", {device = "host"})
    return volume and volume:sum()
end

-- What an accepted scan became: the word of the report, and the facts that changed.
local function judge_scan(campaign, seed, path, result)
    local facts, sum = facts_of(campaign, seed, path), files.sum_of(campaign)
    local right = sum == seed.sum
    local names = facts and changed(facts, seed.facts) or {}
    if #names > 0 then
        return warnings_and_lines(result.err) > 0 and "accepted, changed and said so"
            or "accepted, changed in silence", names
    elseif not sum then
        return "accepted, without a result"
    elseif not facts and not right then
        return "accepted, not read again"
    end
    return right and "accepted, right" or "accepted, other pixels"
end

-- Reconstructs a scan; `...` are further words of the command line.
local function reconstruct(campaign, path, ...)
    return files.run(campaign, "scripts/reconstruct.lua", path, "--center", "7.5", "--device",
        "host", ...)
end

-- The two runs of a scan: planned, and for real.
local function try_scan(campaign, seed, path)
    local planned = reconstruct(campaign, path, "--plan")
    local result = reconstruct(campaign, path, "-o", campaign.folder .. "/result.h5", "-q")
    local first, second = files.verdict(campaign, planned), files.verdict(campaign, result)
    local names
    if second == "accepted" then
        second, names = judge_scan(campaign, seed, path, result)
    end
    local left = files.clean(campaign, result.code == 0 and "result.h5" or nil)
    return {{run = "plan", verdict = first, result = planned},
        {run = "real", verdict = second, result = result, names = names, left = left}}
end

local function try_image(campaign, seed, path)
    local facts, result = facts_of(campaign, seed, path)
    local word, names = files.verdict(campaign, result), nil
    if word == "accepted" then
        names = changed(facts, seed.facts)
        word = #names > 0 and "accepted, other tags" or facts.sum == seed.facts.sum
            and "accepted, right" or "accepted, other pixels"
    end
    return {{run = "read", verdict = word, result = result, names = names,
        left = files.clean(campaign)}}
end

--- What the undamaged seeds give: their facts and, of scans, the sum of the volume. Raises where
-- one of them fails.
function files.prepare(campaign, seeds)
    for _, seed in ipairs(seeds) do
        local path = seed.fixed or ("%s/seed.%s"):format(campaign.folder, seed.extension)
        write_seed(path, seed, {}, seed.text)
        if seed.try then
            seed:prepare(campaign, path)
        else
            local facts, result = facts_of(campaign, seed, path)
            seed.facts = facts or error(("the undamaged %s is refused: %s"):format(seed.name,
                result.err), 0)
        end
        if seed.kind == "scan" then
            local made = reconstruct(campaign, path, "-o", campaign.folder .. "/result.h5", "-q")
            if made.code ~= 0 then
                error(("the undamaged %s fails: %s"):format(seed.name, made.err), 0)
            end
            seed.sum = assert(files.sum_of(campaign))
        end
        files.clean(campaign)
        os.execute(("rm -rf '%s'"):format(path))
    end
end

-- The parts that differ in a mutant, {} for a seed of one file, and its text.
local function made(seed, kind, sound)
    if sound then
        return {}, seed.text
    elseif not seed.parts then
        return {}, kind == "values" and mutate.values(seed.text, seed.values)
            or mutate.structure(seed.text, seed.protected)
    end
    return seed.kind == "image" and damaged_parts(seed) or texts.damaged_parts(seed)
end

-- Does a mutant have the bytes that were written? What `seed.working` matches is no input.
local function unchanged(path, seed, parts, text)
    if text then
        return read(path) == text
    end
    for i, part in ipairs(seed.parts) do
        local own = parts[i] == nil and part.text or parts[i] or ""
        if not (seed.working and part.name:find(seed.working))
            and read(path .. "/" .. part.name) ~= own then
            return false
        end
    end
    return true
end

local function try_of(seed)
    return seed.try or seed.kind == "scan" and try_scan or try_image
end

--- Tries mutant number `index` of a seed, made by `kind` ("structure" or "values"); `note` gets
-- every run. A fifth of them is the seed itself, which must be accepted. A mutant whose runs are
-- worth looking at is kept in campaign.keep, if that is a folder.
function files.try(campaign, seed, kind, index, note)
    math.randomseed(campaign.seed, index)
    local sound = math.random(SOUND) == 1
    local parts, text = made(seed, kind, sound)
    local name = ("mutant-%s-%d-%d.%s"):format(seed.name:gsub("%W", "-"), campaign.seed, index,
        seed.extension)
    local path = seed.fixed or campaign.folder .. "/" .. name
    write_seed(path, seed, parts, text)
    local entries = try_of(seed)(campaign, seed, path)
    for _, entry in ipairs(entries) do
        entry.name = name
        if sound and entry.verdict ~= "accepted" and entry.verdict ~= "accepted, right" then
            entry.verdict = "sound input: " .. entry.verdict
        end
    end
    if not unchanged(path, seed, parts, text) then
        entries[#entries].verdict = "input changed"
    end
    write_seed(path, seed, parts, text)
    for _, entry in ipairs(entries) do
        if note(entry) and campaign.keep then
            os.execute(("cp -r '%s' '%s/%s'"):format(path, campaign.keep, name))
            write(("%s/%s.%s.txt"):format(campaign.keep, name, entry.run), entry.verdict .. "\n"
                .. entry.result.err)
        end
    end
    os.execute(("rm -rf '%s'"):format(path))
end

return files
