-- Scans that are still being written, or that are not there yet. What tells: the flags that a
-- writer sets in the head of an HDF5 file while it has it open, the lock that it holds (where the
-- system lists locks), and frames that are missing. Nothing is locked here, so that no writer is
-- disturbed.

local axes = require "moonbeam.scan.statements.axes"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local input_file = require "moonbeam.internal.files.input_file"
local ranges = require "moonbeam.scan.series.ranges"

local growing = {}

-- Between two looks at a file. A file that has not been changed for so long, and is not open for
-- writing, is not being written: what is wrong with it stays wrong.
local PAUSE <const>, QUIET <const> = 0.25, 60

-- Between two lines about it, in seconds.
local TELL <const> = 10

-- Bits of the flags in superblocks of version 2 and later.
local WRITER <const>, SWMR <const> = 1, 4

-- The flags in the head of an HDF5 file; 0 where there are none.
local function flags_of(path)
    local file <close> = input_file.open(path)
    local head = file and file:read(12) or ""
    return #head == 12 and head:sub(1, 8) == "\137HDF\r\n\26\n" and head:byte(9) >= 2
        and head:byte(12) or 0
end

-- The process that holds a lock for writing on a file, or nil.
local function writer_of(facts)
    local file <close> = io.open "/proc/locks"
    for line in (file and file:read "a" or ""):gmatch "[^\n]+" do
        local pid, major, minor, inode = line:match
            "^%d+: %S+%s+%S+%s+WRITE%s+(%d+)%s+(%x+):(%x+):(%d+)"
        if tonumber(inode) == facts.inode
            and tonumber(major, 16) == (facts.device >> 8 & 0xfff)
            and tonumber(minor, 16) == (facts.device & 0xff | facts.device >> 12 & 0xfff00) then
            return math.tointeger(tonumber(pid))
        end
    end
end

-- The frames that a file has by now, as far as other processes may see them.
local function frames_of(path, data)
    local file <close> = core.h5.open(path, {swmr = true})
    local ok, count = pcall(function()
        return axes.extents(file:dataset(data or "/exchange/data").shape)[1]
    end)
    if ok or data then
        return ok and count or nil
    end
    ok, count = pcall(function()
        for _, object in ipairs(file:walk "/") do
            if axes.are_frames(object) then
                return axes.extents(object.shape)[1]
            end
        end
    end)
    return ok and count or nil
end

--- Is a file open for writing? {text, flags, writer}, or nil. `data`: its dataset of frames, if it
-- has another name than usual.
function growing.state(path, data)
    local facts = core.system.stat(path)
    if not facts or facts.kind ~= "file" or facts.bytes == 0 then
        return nil
    end
    local flags, writer = flags_of(path), writer_of(facts)
    local age = math.max(0, os.time() - facts.modified)
    if flags & (WRITER | SWMR) ~= 0 then
        local frames = flags & SWMR ~= 0 and frames_of(path, data)
        return {flags = flags, writer = writer, text = ("it is open for writing%s%s; its last "
            .. "change is %.0f s old"):format(flags & SWMR ~= 0 and " (SWMR)" or "",
            frames and (", with %d frames so far"):format(frames) or "", age)}
    elseif writer then
        return {flags = 0, writer = writer,
            text = ("process %d has it open for writing"):format(writer)}
    end
end

--- Was a file or folder changed a short while ago, so that more may come?
function growing.is_fresh(path)
    local facts = path and core.system.stat(path)
    return facts ~= nil and os.time() - facts.modified < QUIET
end

-- May what failed be right later? Frames that are missing may come; a file that was just changed
-- and cannot be read may be readable.
local function may_grow(problem, path)
    if type(problem) ~= "table" then
        return false
    elseif problem.arg == "allow_missing"
        or problem.arg == "angles" and problem.code == "shape" then
        return true
    end
    return problem.code == "io" and growing.is_fresh(path)
        and (problem.message or ""):find(path, 1, true) ~= nil
end

-- What is said of a file with these flags.
local function refusal(path, state, waited)
    local ok, problem = pcall(fail, "io", "scan.open", "wait", "'%s' is still being written: %s; %s"
        .. "; if its writer has ended without closing it, 'h5clear -s %s' makes it readable", path,
        state.text, waited or "the option wait = SECONDS waits for it", path)
    return not ok and problem or nil
end

-- A failure, with what was seen of its file beside it.
local function told(problem, state, waited)
    if type(problem) == "table" and (state or waited) then
        problem.message = problem.message .. (state and "; " .. state.text or "")
            .. "; " .. (waited or "the option wait = SECONDS waits for it")
    end
    return problem
end

-- Will a file be there later? A pattern (frames/*.tif) names what is there already.
local function may_come(path)
    return not path:find "[*?]" and not core.system.stat(path)
end

--- Calls attempt() (a scan; or nil and what is wrong) until it has a scan that nobody writes, for
-- options.wait seconds at most: of a file that is not there, too. Returns what it returned last.
-- options.tell is told in a line what is waited for.
function growing.wait(path, options, attempt)
    path = ranges.parts(path)
    local began, wait, last, told_at = core.system.clock(), options.wait or 0, nil, 0
    while true do
        local state, made, problem = growing.state(path, options.data), nil, nil
        if not (state and state.flags ~= 0) then
            made, problem = attempt()
            if made and not state then
                return made
            elseif not state and not may_grow(problem, path)
                and not (wait > 0 and may_come(path)) then
                return nil, problem
            end
        end
        local passed = core.system.clock() - began
        if passed >= wait then
            local waited = wait > 0 and ("waited for %g s"):format(wait) or nil
            if made then
                made:warn(("'%s' is read as it is now: %s"):format(path, state.text))
                return made
            end
            return nil, state and state.flags ~= 0 and refusal(path, state, waited)
                or told(problem, state, waited)
        elseif made then
            made:close()
        end
        local seen = state and state.text or may_come(path) and "it is not there yet"
            or problem.problem or problem.message
        if options.tell and (not last or seen ~= last and passed - told_at >= TELL) then
            told_at = passed
            options.tell(("waiting for '%s', %.0f s of %g s: %s"):format(path, passed, wait, seen))
            last = seen
        end
        core.system.sleep(math.min(PAUSE, wait - passed))
    end
end

return growing
