-- The memory pool of each device: statistics, measured peaks, blocks by hand in the manner of the
-- classic image-processing pool, traces, checks. Functions take a device (or its id) as their last
-- argument; without one they mean the default device.

local core = require "moonbeam.core"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local formats = require "moonbeam.pool.trace"
local strict = require "moonbeam.internal.strict"
local tables = require "moonbeam.internal.tables"
local text_file = require "moonbeam.internal.files.text_file"
local timeline = require "moonbeam.pool.timeline"

local pool = {}
for name, f in pairs(core.pool) do
    pool[name] = f
end
pool.collect = core.garbage.collect
pool.note_pitch = nil -- of a block's bytes, how many lie between rows: alloc_pitched alone knows

local note_pitch = core.pool.note_pitch
local device_stats = core.pool.stats
local UNIT = core.pool.round(1)

local function open(device)
    return device and core.device.open(device) or core.device.open(core.device.default())
end

local stats_metatable = {__index = strict.object("mb.pool.stats()", {}, {}, {
    used = "live are the bytes in use", allocated = "live are the bytes in use",
    peak = "live_peak are the most bytes so far", max = "live_peak are the most bytes so far",
    total = "budget is the limit on live bytes", limit = "budget is the limit on live bytes",
    available = "free is what the budget leaves"})}

-- Counters of the pool (bytes, unless named otherwise), with those of the garbage list. `free` is
-- what the budget leaves, `fragmentation` the part of it that no single request can have.
function pool.stats(device)
    local stats = device_stats(device)
    local garbage = core.garbage.counts()
    stats.pool_points, stats.collected = garbage.points, garbage.collected
    stats.waiting, stats.arrays = garbage.waiting, garbage.arrays
    stats.fragmentation = stats.free >= UNIT
        and 1 - stats.largest_hole / (stats.free // UNIT * UNIT) or 0
    return setmetatable(stats, stats_metatable)
end

-- The limit on live bytes; sets it when bytes (or "8G") are given.
function pool.budget(bytes, device)
    return open(device):budget(bytes)
end

-- Calls fn(...) and returns the highest live bytes during the call above those before it, then what
-- fn returned. The garbage of earlier code is freed first, so that it does not count.
function pool.peak(fn, device, ...)
    core.garbage.collect()
    local scope <close> = core.pool.scope(device)
    local results = table.pack(fn(...))
    local peak = scope:finish()
    return peak, table.unpack(results, 1, results.n)
end

-- ---------------------------------------------------------------------------------------------
-- One allocation, many uses

local activated = {}

-- activate(bytes [, device]): commits memory up front, so that arrays up to that many bytes need no
-- system call. activate({low, high} [, device]) commits both ends, the one of arrays and the one of
-- operators' scratch, as far as plan.peaks says that a function reaches. Raises when the budget or
-- the system does not allow it. Any number of times: more is committed, nothing is lost. (The
-- device may also stand first.)
function pool.activate(bytes, device)
    if type(bytes) == "userdata" or type(bytes) == "string" and not bytes:match("^%s*[%d.]") then
        bytes, device = device, bytes
    end
    device = open(device)
    if type(bytes) == "table" then
        core.pool.activate(device, bytes[1] or 0, bytes[2] or 0)
    else
        core.pool.activate(device, bytes, 0)
    end
    activated[device.id] = true
end

-- Has the pool been activated, and not shut down since?
function pool.active(device)
    return activated[open(device).id] == true
end

local report_metatable = {
    __tostring = function(report)
        if #report == 0 then
            return "no leaks"
        end
        local lines = { ("%d bytes in %d blocks were still live:"):format(report.bytes,
            report.blocks) }
        for i, row in ipairs(report) do
            lines[i + 1] = ("  %d bytes in %d block%s made at %s%s, the oldest %.1f s ago"):format(
                row.bytes, row.blocks,
                row.blocks == 1 and "" or "s", row.owner, row.tag ~= ""
                    and (" (%s)"):format(row.tag) or "", row.age)
        end
        return table.concat(lines, "\n")
    end,
}

-- Live blocks in groups, most bytes first. `members`: the names of what is equal within a group.
local function grouped(blocks, members)
    local by_key, list = {}, { bytes = 0, blocks = 0 }
    for _, block in ipairs(blocks) do
        local parts = tables.mapped(members, function(member) return block[member] end)
        local key = table.concat(parts, "\0")
        local row = by_key[key]
        if not row then
            row = { bytes = 0, blocks = 0, requested = 0, first = block.sequence, age = 0 }
            for i, member in ipairs(members) do
                row[member] = parts[i]
            end
            by_key[key] = row
            list[#list + 1] = row
        end
        row.bytes, row.blocks = row.bytes + block.bytes, row.blocks + 1
        row.requested = row.requested + block.requested
        row.first, row.age = math.min(row.first, block.sequence), math.max(row.age, block.age)
        list.bytes, list.blocks = list.bytes + block.bytes, list.blocks + 1
    end
    table.sort(list, function(a, b)
        if a.bytes ~= b.bytes then
            return a.bytes > b.bytes
        end
        return a.first < b.first
    end)
    return list
end

local GROUPS = { owner = true, tag = true, ["end"] = true }

-- What is live, by "owner" (source line or operator; the default), "tag" or "end" (array, scratch),
-- most bytes first: {<by>, bytes, blocks, requested, first, age}, where first is the number of the
-- oldest allocation and age its seconds. `bytes` and `blocks` of the list are the sums: those of
-- the pool.
function pool.usage(by, device)
    by = by or "owner"
    if not GROUPS[by] then
        fail("argument", "pool.usage", "by", "blocks are grouped by owner, tag or end, not by '%s'",
            tostring(by))
    end
    return grouped(core.pool.blocks(device), { by })
end

-- What is live after a collection, by owner and tag: as usage, and its text is a report.
function pool.leaks(device)
    core.garbage.collect()
    return setmetatable(grouped(core.pool.blocks(device), { "owner", "tag" }), report_metatable)
end

--- tag(name): what the running coroutine allocates until the returned value is closed has this tag:
--   local _ <close> = mb.pool.tag("filter")
-- It is in block lists, traces, ledgers and usage("tag"); an inner tag hides an outer one. At the
-- prompt a tag stays open over several lines, until end_tag() or its close().
pool.tag = core.tag.begin

--- tags(): the names of the tags that are open in the running coroutine, innermost last.
pool.tags = core.tag.open

--- end_tag([name]): ends the innermost tag, or the innermost one of that name with those inside it.
pool.end_tag = core.tag.finish

-- Returns the leak report, releases what is still live (its arrays then say so) and gives all
-- memory back. The pool can be used and activated again; nothing of the past reappears.
function pool.shutdown(device)
    device = open(device)
    local report = pool.leaks(device)
    core.garbage.forget(device)
    core.pool.trim(device)
    activated[device.id] = nil
    return report
end

-- ---------------------------------------------------------------------------------------------
-- Blocks by hand. One block can hold many pitched images, which every filter takes, and several
-- blocks of different types:
--
--   local width, height = 1920, 1080
--   local rows <close> = mb.pool.alloc_pitched(width, 2 * height, {dtype = "f32"})
--   local image <close> = rows:view({1, height}, mb.all)
--   local smooth <close> = rows:view({height + 1, 2 * height}, mb.all)
--   local mask <close> = mb.pool.alloc_pitched(width, height)
--   for frame = 1, frames do
--       fill(image, frame)
--       mb.box_filter(image, 5, {out = smooth})
--       mb.adaptive_threshold(smooth, 11, {out = mask})
--   end
--
-- After the first turn of that loop the pool commits nothing more. block:reinterpret(dtype) is a
-- view of the same bytes as other elements.

-- What a block of that many bytes takes: whole units of 512.
function pool.ceil_1d(bytes)
    return core.pool.round(bytes)
end

-- What alloc_pitched takes: rows of width_bytes at a pitch of whole units.
function pool.ceil_2d(width_bytes, height)
    local pitch = core.pool.round(width_bytes)
    if height > 0 and pitch > math.maxinteger // height then
        fail("argument", "pool.ceil_2d", "height",
            "%d rows of %d bytes are more than can be addressed", height, pitch)
    end
    return pitch * height
end

-- element_bytes(dtype): what one element takes.

-- alloc(bytes [, device]), alloc(bytes, {device =, dtype =}): a block, as an array of one axis;
-- of u8 without dtype, of bytes / element_bytes(dtype) elements with it. A block of 0 bytes is
-- legal and takes no memory.
pool.alloc = core.pool.alloc

-- Rows at a pitch: an array (height, width), and the pitch in bytes.
function pool.alloc_pitched(width, height, options)
    local dtype, size = options.dtype, core.pool.element_bytes(options.dtype)
    local pitch = options.pitch or core.pool.round(width * size)
    arguments.count(pitch, "pool.alloc_pitched", "pitch", width * size, math.maxinteger)
    if pitch % size ~= 0 then
        fail("argument", "pool.alloc_pitched", "pitch",
            "a pitch of %d bytes is no whole number of %s (%d bytes each)", pitch, dtype, size)
    end
    local whole <close> = core.array.empty({height, pitch // size},
        {dtype = dtype, device = options.device})
    note_pitch(whole, (pitch - width * size) * height)
    return whole:view(core.array.all, {1, width}), pitch
end

-- free(block): releases it. One that was released before is an error that names both places.
function pool.free(block)
    if not core.array.is_array(block) then
        fail("argument", "pool.free", "block", "block is %s; give what pool.alloc returned",
            block == nil and "missing" or "a " .. type(block))
    end
    return core.garbage.free(block)
end

-- ---------------------------------------------------------------------------------------------
-- Traces

local TRACE = declared.options({"device", "device", "whose pool", usual = "the default device"},
    {"format", "choice", "text instead of a list: csv is RMM's replay log, chrome a timeline for "
        .. "Chrome and Perfetto", choices = {"csv", "json", "chrome"}, usual = "csv with file"},
    {"file", "string", "writes the text there"},
    {"overwrite", "boolean", "replace an existing file", default = false})

--- The latest events of the pool (up to 16384), oldest first: {action = "alloc", "free" or
-- "refused", ns, offset, bytes, live, owner, tag, thread, end, block}.
--
-- With `format` it returns a text, with `file` the number of events. A device in place of the
-- options is the option `device`.
declared.native("pool.trace(options)", TRACE)
function pool.trace(options)
    if type(options) ~= "table" then
        return core.pool.events(options)
    end
    options = declared.checked(TRACE, options, "pool.trace")
    local events = core.pool.events(options.device)
    if not options.format and not options.file then
        return events
    end
    local text = formats[options.format or "csv"](events)
    if not options.file then
        return text
    end
    if not core.dry.on() then
        text_file.write(options.file, text, options.overwrite)
    end
    return #events
end

--- A chart of the memory of a pool over its latest events (up to 16384): live bytes stacked by
-- owner, tag or end, the budget as a dashed line, the peak marked. In the terminal, or with `file`
-- as PNG or SVG. It takes no memory of a device; a PNG is an array on the host while it is written.
pool.plot = declared("pool.plot", {options = timeline.OPTIONS}, function(options)
    return timeline.plot(options)
end)

-- ---------------------------------------------------------------------------------------------
-- Debug mode

-- debug(on [, device]): a guard unit on either side of every block, and fill patterns: new blocks
-- are NaN, freed ones 0xDD. Can be switched only while nothing is live on the device.

local damage_metatable = {
    __tostring = function(list)
        local lines = {}
        for i, row in ipairs(list) do
            local form = "the %d bytes %s the block of %d bytes made at %s were written to "
                .. "(%s: 0x%02X), found %s"
            lines[i] = form:format(UNIT, row.after and "behind" or "before", row.bytes, row.owner,
                row.distance == 0 and "next to it" or row.distance .. " bytes away", row.value,
                row.freed and "when it was freed at " .. row.freed or "while it is live")
        end
        return #lines > 0 and table.concat(lines, "\n") or "no damage"
    end,
}

local find_damage = core.pool.damage

-- Damaged guards, of blocks freed since the pool was made and of live ones: {owner, freed, offset,
-- bytes, after, distance, value}; its text is a report. `freed` is where the block was freed, nil
-- for a live one.
function pool.damage(device)
    return setmetatable(find_damage(device), damage_metatable)
end

-- ---------------------------------------------------------------------------------------------
-- Where the bytes are

local LINES = { "live", "idle", "fft_plans", "library", "other" }

local accounting_metatable = {
    __tostring = function(self)
        local lines, bytes = {}, core.device.format_bytes
        for i, name in ipairs(LINES) do
            lines[i] = ("%-10s %s"):format(name, bytes(self[name]))
            if name == "fft_plans" and self.plans > 0 then
                lines[i] = ("%s in %d plans%s"):format(lines[i], self.plans, self.plan_limit
                    and ", at most " .. bytes(self.plan_limit) or "")
            end
        end
        lines[#lines + 1] = ("%-10s %s of %s"):format("used", bytes(self.used), bytes(self.total))
        return table.concat(lines, "\n")
    end,
}

-- Lines that add up to what the system or driver reports as used on the device: live (arrays,
-- scratch, FFT work areas), idle (the pool's other committed memory), fft_plans (the library's
-- own), library (the backend's context and modules), other (everything else: other processes; on
-- the host also this program); used is their sum, total what there is. `plans` is the number of
-- FFT plans, `plan_limit` the limit on their bytes, where there is one. Its text is a table.
-- fft_plans and library were measured as differences of what was free, in which another process may
-- have had a part that it has given back since: no line has more than those before it leave of
-- used.
function pool.accounting(device)
    device = open(device)
    local stats = device_stats(device)
    local free, total = device:memory()
    local plans = core.fft.plans(device)
    local left = math.max(0, total - free)
    local lines = {used = left, total = total, plans = plans.count, plan_limit = plans.limit}
    for i, bytes in ipairs {stats.live, stats.committed - stats.live, plans.library_bytes,
        device:overhead(), math.huge} do
        lines[LINES[i]] = math.min(bytes, left)
        left = left - lines[LINES[i]]
    end
    return setmetatable(lines, accounting_metatable)
end

pool.map = require "moonbeam.pool.map"

local WHERE = "device: device?"

return declared.module(pool, "pool", {
    budget = "bytes: bytes?, device: device?", peak = "fn: callable, device: device?, ...: any?",
    active = WHERE, leaks = WHERE, shutdown = WHERE, damage = WHERE, accounting = WHERE,
    map = WHERE, usage = "by: string?, device: device?", ceil_1d = "bytes: bytes",
    ceil_2d = "width_bytes: count, height: count",
    alloc_pitched = {"width: count, height: count", declared.options(
        {"dtype", "string", "element type", default = "u8"},
        {"device", "device", "where the block is", usual = "the default device"},
        {"pitch", "count", "bytes from row to row, whole elements", unit = "bytes",
            usual = "a row's bytes rounded up to 512"})},
})
