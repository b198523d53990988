-- Scans of strangers: random statements in the layouts of beamlines, reconstructed as their users
-- do. A slice is right, or the scan is refused or warned of by name; nothing is wrong without a
-- word ("silent"), and a statement that is obeyed is told of (else "untold"). The axis counts in
-- the stored frame (else "misplaced"). Clean scans have no line that they need not have.
--
--   STRANGERS=500 scripts/test spec/scripts/strangers    # more of them; SEED=7 draws others
--
-- The files of what fails stay in build/strangers, and each failure says its number, which
-- STRANGER=NUMBER runs alone.

local files = require "spec.support.files"
local judge = require "spec.support.strangers.stranger_judge"
local layouts = require "spec.support.strangers.stranger_layouts"
local mb = require "moonbeam"
local scans = require "spec.support.strangers.stranger_scans"
local shots = require "spec.support.strangers.stranger_shots"

local SEED <const> = tonumber(os.getenv "SEED" or "") or 28
local COUNT <const> = tonumber(os.getenv "STRANGERS" or "") or 60
local ONE <const> = tonumber(os.getenv "STRANGER" or "")
local CLEAN <const> = COUNT > 60 and 200 or 24
local MOST_REFUSED <const> = 0.05
local FINE <const> = {right = true, warned = true, refused = true}

-- Labels of lines of the report of a clean scan, as of a scan of the simulator; those before the
-- axis say what the file was taken for.
local LABELS <const> = {scan = true, frames = true, reference = true, angles = true, pixel = true,
    axis = true, device = true, volume = true, chunks = true, time = true, memory = true, wrote = true}
local MOST_HEAD <const> = 5

-- A third of the scans run by a recipe that does what the options do; nil for the others.
local function recipe_of(shot, turn)
    if turn % 3 ~= 1 then
        return nil
    end
    return shot.random(2) == 1 and 'return {"flat_field", "minus_log", "center", "fourier"}'
        or 'return {{"flat_field", mode = "mean"}, "minus_log", {"center"}, {"fourier"}}'
end

-- The lines of a report that say what a file was taken for.
local function head_of(out)
    local lines = {}
    for line in out:gmatch "[^\n]+" do
        local label = line:match "^(%S+)"
        if ({axis = true, volume = true, device = true})[label] then
            break
        end
        lines[#lines + 1] = line
    end
    return lines
end

-- The warnings that a scan need not have which has nothing odd.
local function warnings_of(run, shot)
    local found = {}
    for _, line in ipairs(run:lines()) do
        if not (not shot.pixel and line:find("no pixel size was found", 1, true)) then
            found[#found + 1] = line
        end
    end
    return found
end

-- Is there nothing to warn of?
local function is_quiet(shot)
    if shot.layout.clean == false then
        return false
    end
    for _, statement in ipairs(shot.statements) do
        if not statement.quiet then
            return false
        end
    end
    return true
end

-- The lines that a clean scan need not have.
local function new_lines(run, shot)
    local found = warnings_of(run, shot)
    for line in run.out:gmatch "[^\n]+" do
        if not LABELS[line:match "^(%S+)"] then
            found[#found + 1] = line
        end
    end
    if #head_of(run.out) > MOST_HEAD then
        found[#found + 1] = ("%d lines say what the file is"):format(#head_of(run.out))
    end
    return found
end

-- Whether a text names a statement of the shot.
local function named(shot, text)
    local lower = text:lower()
    for _, stated in ipairs {shot.layout, table.unpack(shot.statements)} do
        for _, word in ipairs(stated.words or {}) do
            if lower:find(word) then
                return true
            end
        end
    end
    return false
end

-- Whether a run that obeys a statement has said nothing of it.
local function untold(shot, text)
    for _, statement in ipairs(shot.statements) do
        if statement.told and not named({layout = {}, statements = {statement}}, text) then
            return true
        end
    end
    return false
end

-- The error of the slices of a run; the worst of two rows.
local function worst_of(run, shot)
    if run.status ~= 0 then
        return math.huge
    end
    local scan = shot.scan
    local shape = run:shape()
    if shape[3] ~= scan.cols and not shot.half then
        return math.huge
    end
    local lifted = scan.lifts and 4 or 0 -- rows at the ends are partly beyond the detector
    local worst = 0
    for _, row in ipairs(scan.rows == 1 and {0} or {lifted, scan.rows - 1 - lifted}) do
        worst = math.max(worst, run:error_of(scan, row, {size = shape[3], scale = run:scale()
            and shot.pixel or 1, radius = shot.radius}))
    end
    if shot.half and shape[3] < 1.4 * scan.cols then
        return math.huge
    end
    return worst
end

-- Writes and reconstructs a shot: outcome, error, run.
local function judged(shot, folder)
    local name, words = shot.layout.write(shot, folder, shot.random)
    shots.release(shot)
    if shot.recipe then
        files.write(folder .. "/recipe.lua", shot.recipe)
        words = words .. " --recipe recipe.lua"
    end
    files.write(folder .. "/words", name .. " " .. words .. "\n")
    local run = judge.reconstruct(folder, name, words)
    local worst = worst_of(run, shot)
    if os.getenv "STRANGERS_ALL" then
        print(shot.layout.name, shots.names(shot), shot.photons, worst, shot.recipe and "recipe")
    end
    if worst <= (shot.right or scans.RIGHT) then
        if is_quiet(shot) and #warnings_of(run, shot) > 0 then
            return "new line", worst, run
        end
        local off = run:axis() and math.abs(run:axis() - shots.stored_center(shot)) or 0
        return untold(shot, run:said()) and "untold" or off > 0.3 and "misplaced" or "right", worst,
            run
    elseif run.status == 0 then
        return named(shot, table.concat(run:lines(), "\n")) and "warned" or "silent", worst, run
    end
    local told = (run.status == 1 or run.status == 2) and named(shot, run.err)
    return told and "refused" or "unnamed", worst, run
end

-- Keeps the files of a shot that failed; returns a line about it.
local function failure(shot, number, outcome, worst, run, folder)
    local kept = ("build/strangers/%d-%d"):format(shot.seed, number)
    files.run(("mkdir -p build/strangers; rm -rf '%s'; cp -r '%s' '%s'"):format(kept, folder, kept))
    return ("%d (%s: %s) %s, error %.3f, in %s\n%s"):format(number, shot.layout.name,
        shots.names(shot), outcome, worst, kept, run:said())
end

describe("strangers' scans (seed " .. SEED .. ")", function()
    local table_of = {} -- by layout, by outcome: a count

    local function note(shot, outcome)
        local counts = table_of[shot.layout.name] or {}
        table_of[shot.layout.name] = counts
        counts[outcome] = (counts[outcome] or 0) + 1
    end

    local function print_table(title)
        local outcomes = {"right", "warned", "refused", "unnamed", "silent", "untold",
            "misplaced", "new line"}
        local lines = {title, ("%-20s"):format "layout" .. (("%10s"):rep(#outcomes)):format(
            table.unpack(outcomes))}
        for _, layout in ipairs(layouts) do
            local counts, cells = table_of[layout.name], {}
            if counts then
                for i, outcome in ipairs(outcomes) do
                    cells[i] = ("%10s"):format(counts[outcome] or "")
                end
                lines[#lines + 1] = ("%-20s"):format(layout.name) .. table.concat(cells)
            end
        end
        print(table.concat(lines, "\n"))
        table_of = {}
    end

    -- Runs the shots first to last, of which `make(number)` is one.
    local function each(first, last, make, f)
        for number = ONE or first, ONE or last do
            local folder = files.folder()
            local shot = make(number)
            local outcome, worst, run = judged(shot, folder)
            f(shot, number, outcome, worst, run, folder)
            files.remove(folder)
            mb.collect()
        end
    end

    it("are right, refused or warned of by name", function()
        local failures, refused, total = {}, 0, 0
        each(1, COUNT, function(number)
            math.randomseed(SEED, number)
            local shot = shots.make(layouts[(number - 1) % #layouts + 1], SEED, number, 3)
            shot.recipe = recipe_of(shot, (number - 1) // #layouts)
            return shot
        end, function(shot, number, outcome, worst, run, folder)
            note(shot, outcome)
            total, refused = total + 1, refused + (outcome == "refused" and 1 or 0)
            if not FINE[outcome] then
                failures[#failures + 1] = failure(shot, number, outcome, worst, run, folder)
            end
        end)
        print_table(("seed %d: %d scans, %.1f %% refused"):format(SEED, total,
            100 * refused / total))
        assert.equal(0, #failures, table.concat(failures, "\n"))
        assert.is_true(ONE ~= nil or refused <= MOST_REFUSED * total, refused)
    end)

    it("have no new line where nothing is odd", function()
        local plain, failures = {}, {}
        for _, layout in ipairs(layouts) do
            plain[#plain + 1] = layout.clean ~= false and layout or nil
        end
        each(1, CLEAN, function(number)
            return shots.make(plain[(number - 1) % #plain + 1], SEED + 1, number, 0)
        end, function(shot, number, outcome, worst, run, folder)
            local lines = new_lines(run, shot)
            if outcome == "right" and #lines > 0 then
                outcome = "new line"
            end
            note(shot, outcome)
            if outcome ~= "right" then
                failures[#failures + 1] = failure(shot, number, outcome, worst, run, folder)
                    .. table.concat(lines, "\n")
            end
        end)
        print_table(("seed %d: %d clean scans"):format(SEED + 1, CLEAN))
        assert.equal(0, #failures, table.concat(failures, "\n"))
    end)

    it("say the same by --plan", function()
        for i, layout in ipairs(layouts) do
            if layout.clean ~= false and not ONE then
                local folder = files.folder()
                local shot = shots.make(layout, SEED + 2, i, 0)
                local name, words = layout.write(shot, folder, shot.random)
                shots.release(shot)
                local run = judge.reconstruct(folder, name, words)
                local plan = judge.reconstruct(folder, name, words .. " --plan")
                assert.same({0, 0}, {run.status, plan.status}, run.err .. plan.err)
                assert.same(head_of(run.out), head_of(plan.out), layout.name)
                files.remove(folder)
            end
        end
    end)
end)
