--- Campaign on limits of memory: commands with options at random, in control groups and under
-- ulimit -v and -d with limits at random. A command ends well within its limit, or is refused
-- before anything is written, and then works with the limit that its message names.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local read = require("scripts.fuzzing.report").read

local limits = {}

local MIB <const> = 1 << 20
local SMALLEST <const>, LARGEST <const> = 48, 640 -- limits, MiB

local function write(path, text)
    local file = io.open(path, "w")
    local ok = file and file:write(text) and file:close()
    return ok ~= nil and ok ~= false
end

-- ---- control groups ----

-- The files of a group: version 1 and version 2.
local VERSIONS <const> = {
    {root = "/sys/fs/cgroup/memory", limit = "memory.limit_in_bytes",
        most = "memory.max_usage_in_bytes", events = "memory.oom_control"},
    {root = "/sys/fs/cgroup", limit = "memory.max", most = "memory.peak",
        events = "memory.events"},
}

local made = 0

--- Makes a control group with a limit in bytes. Returns it: folder, and the methods enter() (shell
-- that puts itself into it), most() (bytes that it had), killed() (processes that the system
-- ended); close it. nil where no group can be made.
function limits.group(bytes)
    for _, version in ipairs(VERSIONS) do
        made = made + 1
        local folder = ("%s/moonbeam_fuzz_%d_%d"):format(version.root, core.system.pid(), made)
        local parent <close> = io.open(version.root .. "/cgroup.procs")
        if parent and os.execute(("mkdir '%s' 2>/dev/null"):format(folder)) then
            local function remove()
                os.execute(("rmdir '%s' 2>/dev/null"):format(folder))
            end
            if write(("%s/%s"):format(folder, version.limit), ("%d"):format(bytes)) then
                write(folder .. "/memory.swap.max", "0")
                return setmetatable({folder = folder, enter = function()
                    return ("echo $$ >'%s/cgroup.procs'"):format(folder)
                end, most = function()
                    return tonumber(read(("%s/%s"):format(folder, version.most))) or 0
                end, killed = function()
                    return tonumber(read(("%s/%s"):format(folder, version.events))
                        :match "oom_kill (%d+)") or 0
                end}, {__close = remove})
            end
            remove()
        end
    end
    return nil
end

-- The shell command under a limit of so many MiB, and the group if it is one.
local function limited(kind, megabytes)
    if kind == "group" then
        local group = limits.group(megabytes * MIB)
        return group and group:enter(), group
    end
    return ("ulimit -%s %d"):format(kind, megabytes << 10)
end

--- The kinds of limits that there are here.
function limits.kinds()
    local group <close> = limits.group(SMALLEST * MIB)
    return {group and "group" or "v", "v", group and "group" or "d", "d"}
end

-- ---- calls ----

local function one_of(list)
    return list[math.random(#list)]
end

-- A scan of a size at random, of few, as a file.
local function scan_of(campaign)
    local columns, rows, angles = one_of {65, 200, 512}, one_of {2, 15, 64}, one_of {90, 241}
    local path = ("%s/scan-%d-%d-%d.h5"):format(campaign.folder, columns, rows, angles)
    if not io.open(path) then
        assert(os.execute(("'%s' simulate '%s' --size %d --rows %d --angles %d --device host -q "
            .. ">'%s/out' 2>&1"):format(campaign.program, path, columns, rows, angles,
            campaign.folder)), read(campaign.folder .. "/out"))
    end
    return path
end

-- An image of a shape at random, of few, as a file.
local function image_of(campaign, shape)
    local path = ("%s/image-%s.npy"):format(campaign.folder, table.concat(shape, "-"))
    if not io.open(path) then
        local image <close> = mb.random(shape, {seed = 5, low = 1, high = 9, device = "host"})
        mb.npy.write(path, image)
    end
    return path
end

local function shapes()
    return one_of {{{640, 701}, {15, 15}}, {{33, 128, 130}, {7, 9, 9}}, {{48, 200, 200}, {9, 9, 9}}}
end

local function output_of(campaign, extension)
    return ("%s/result.%s"):format(campaign.folder, extension)
end

local CHUNKED <const> = [[
local mb = require "moonbeam"
local data <close> = mb.npy.read(arg[1])
local out = mb.chunked("gaussian_filter", {data}, {params = {sigma = 1}%s})
print(out.shape[1])
out:release()
]]

local MAKERS <const> = {
    function(campaign)
        local path, out = scan_of(campaign), output_of(campaign, one_of {"h5", "tif", "zarr"})
        local words = {"reconstruct", path, "-o", out, "--device", one_of {"host", "host", "host",
            "host:1,host:2"}}
        for _, more in ipairs {one_of {{}, {"--method", "fbp"}, {"--method", "sirt",
            "--iterations", "2"}}, one_of {{}, {}, {"--pinned", "16M"}, {"--pinned", "200M"}},
            one_of {{}, {}, {"--threads", "8"}}, one_of {{}, {}, {"--no-overlap"}},
            one_of {{}, {}, {}, {"--budget", "40M"}, {"--budget", "400M"}},
            one_of {{}, {}, {"--center", "32"}}} do
            table.move(more, 1, #more, #words + 1, words)
        end
        return words, out
    end,
    function(campaign)
        local shape = shapes()
        local out = output_of(campaign, one_of {"npy", "tif"})
        local words = {"deconvolve", image_of(campaign, shape[1]), image_of(campaign, shape[2]),
            "-o", out, "--iterations", "2", "--device", "host"}
        local more = one_of {{}, {}, {"--tiles", "exact"}, {"--tiles", "blended", "-o",
            output_of(campaign, "h5")}, {"--budget", "300M"}}
        table.move(more, 1, #more, #words + 1, words)
        return words, more[3] == "-o" and more[4] or out
    end,
    function(campaign)
        local shape, out = shapes(), output_of(campaign, "npy")
        local words = {"convolve", "--image", image_of(campaign, shape[1]), "--psf",
            image_of(campaign, shape[2]), "-o", out, "--device", "host"}
        local more = one_of {{}, {}, {"--tiles", "always"}}
        table.move(more, 1, #more, #words + 1, words)
        return words, out
    end,
    function(campaign)
        local script = campaign.folder .. "/chunked.lua"
        write(script, CHUNKED:format(one_of {"", ", pinned = '100Mi'", ", devices = 'host:1'",
            ", axis = 2"}))
        return {script, image_of(campaign, shapes()[1])}
    end,
}

local function quoted(words)
    local list = {}
    for i, word in ipairs(words) do
        list[i] = ("'%s'"):format(word)
    end
    return table.concat(list, " ")
end

-- What is in the folder of a campaign beside its inputs.
local function left_of(campaign)
    local left = {}
    for _, name in ipairs(core.system.folder(campaign.folder)) do
        left[#left + 1] = name:find "^result" and name or nil
    end
    table.sort(left)
    return left
end

-- Runs words under a limit. Returns {how, code, seconds, kib, out, err}, and whether the system has
-- ended a process of the group.
local function run(campaign, words, kind, megabytes)
    os.execute(("rm -rf '%s'/result*"):format(campaign.folder))
    local enter, group = limited(kind, megabytes)
    local _ <close> = group
    local out, err = campaign.folder .. "/out", campaign.folder .. "/err"
    local line = ("%s; exec %s"):format(enter, quoted {campaign.measure,
        tostring(campaign.seconds), out, err, campaign.program, table.unpack(words)})
    local pipe <close> = assert(io.popen(line))
    local how, rest = (pipe:read "l" or ""):match "^(%a+) (.*)$"
    local numbers = {}
    for number in (rest or ""):gmatch "%S+" do
        numbers[#numbers + 1] = tonumber(number)
    end
    local code = #numbers == 3 and table.remove(numbers, 1) or nil
    return {how = how or "lost", code = code, seconds = numbers[1] or 0, kib = numbers[2] or 0,
        out = read(out), err = read(err)}, group ~= nil and group.killed() > 0
end

-- How a run ended; of one that was refused, also the limit in MiB that its message names.
local function verdict_of(campaign, result, killed)
    if killed or result.how == "signal" then
        return "killed"
    elseif result.how ~= "exit" then
        return result.how
    elseif result.code == 0 then
        return "done"
    end
    if result.code == 2 and result.err:find "%(ulimit %-v%)" then
        return "refused budget" -- a larger one was typed than the limit leaves addresses for
    elseif result.code == 1 and (result.err:find "the program alone needs about"
        or result.err:find "leaves too little to plan the work") then
        return "refused program"
    end
    local advised = tonumber(result.err:match "raise the limit to at least (%d+) MiB")
    if not advised then
        return "failed in another way"
    end
    return #left_of(campaign) == 0 and "refused" or "left behind", advised
end

--- Makes call number `index`: campaign has program, measure, folder (of its own), seconds, seed and
-- kinds (limits.kinds). `tell` is called with an entry {name, run, verdict, result}.
function limits.try(campaign, index, tell)
    math.randomseed(campaign.seed, index)
    local words = one_of(MAKERS)(campaign)
    local kind = one_of(campaign.kinds)
    local megabytes = math.random(SMALLEST, LARGEST)
    local name = ("%s under %s of %d MiB"):format(table.concat(words, " "), kind, megabytes)
    local result, killed = run(campaign, words, kind, megabytes)
    local verdict, advised = verdict_of(campaign, result, killed)
    tell {name = name, run = kind, verdict = verdict, result = result}
    if verdict == "refused" then
        local again, killed_then = run(campaign, words, kind, advised)
        local second, more = verdict_of(campaign, again, killed_then)
        -- A message of the library speaks of one call of a script; the next one may need more.
        for _ = 1, words[1]:find "%.lua$" and second == "refused" and more > advised and 3 or 0 do
            again, killed_then = run(campaign, words, kind, more)
            second, more = verdict_of(campaign, again, killed_then)
            if second ~= "refused" then
                break
            end
        end
        tell {name = ("%s, as advised with %d MiB"):format(name, advised), run = kind .. " advised",
            verdict = second == "done" and second or "advice failed", result = again}
    end
end

return limits
