--- A plan as text for people, and as options for a batch system.

local mb = require "moonbeam"
local deals = require "moonbeam.plan.deals"
local geometry = require "moonbeam.pipeline.geometry"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local process_memory = require "moonbeam.internal.process_memory"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local schedule = require "moonbeam.stream.schedule"
local sections = require "moonbeam.pipeline.sections"
local surface = require "moonbeam.internal.command_line.surface"
local several_devices = require "moonbeam.internal.several_devices"
local tables = require "moonbeam.internal.tables"

local report = {}

local function labels(list)
    local names = {}
    for i, each in ipairs(list) do
        names[i] = (each.step or each).label
    end
    return table.concat(names, ", ")
end

local function bytes_text(bytes)
    return ("%s (%d bytes)"):format(mb.device.format_bytes(bytes), bytes)
end

-- "one, with all 8 rows", "13 blocks, with up to 8 rows each".
local function blocks_text(section)
    local total, what = section.last - section.first + 1, section.cut
    local count = math.ceil(total / section.count)
    return (count == 1 and ("one block with all %d %s"):format(total, what)
        or ("%d blocks, with up to %d %s each"):format(count, section.count, what))
        .. (section.overlap and ", reading and writing while computing" or "")
end

-- So many rows or frames.
local function count_text(section, count)
    return ("%d %s"):format(count, count == 1 and section.cut:sub(1, -2) or section.cut)
end

-- Why a section has fewer blocks than there are devices.
local function few_text(section, devices)
    local total, packet = section.last - section.first + 1, sections.packet(section)
    if math.ceil(total / packet) >= devices then
        return ("because blocks of %s were asked for"):format(count_text(section, section.count))
    elseif packet == 1 then
        return ("because there %s"):format((total == 1 and "is " or "are ")
            .. count_text(section, total))
    end
    return ("because its %s are made %s"):format(count_text(section, total),
        packet < total and packet .. " together" or "together")
end

-- What each of several devices gets of a section's blocks.
local function share_text(made, section)
    local devices, blocks, order = made.job.devices, section.blocks, {}
    local fixed = schedule.order_of(#devices, made.job.options)
    if not fixed and #blocks >= #devices then
        return "one block each, and the next one where the oldest one has left"
    end
    for k in ipairs(devices) do
        order[k] = k
    end
    local shares, idle = {}, {}
    for k, rounds in ipairs(deals.fixed(blocks, fixed or order, #devices)) do
        local rows, count, id = 0, #rounds[1], devices[k].id
        for _, block in ipairs(rounds[1]) do
            rows = rows + block[2] - block[1] + 1
        end
        shares[#shares + 1] = count > 0 and ("%s %d block%s, %s"):format(id, count,
            count == 1 and "" or "s", count_text(section, rows)) or nil
        idle[#idle + 1] = count == 0 and id or nil
    end
    local none = idle[1] and ("; nothing for %s, %s"):format(table.concat(idle, ", "),
        #blocks < #devices and few_text(section, #devices)
        or "because of the order that is given") or ""
    return table.concat(shares, "; ") .. none
end

local function section_lines(made, section, line)
    line("run", ("section %d"):format(section.number), "%s: %s", labels(section.steps),
        blocks_text(section))
    local part = part_rows.text(section, made.job.options.part)
    if part then
        line("run", "  part", "%s", part)
    end
    if #section.measures > 0 then
        line("plan", "  measures", "%s", labels(section.measures))
    end
    if section.reduced then
        line("plan", "  sums up", "all values for %s", labels(section.reduced))
    end
    if #made.job.devices > 1 then
        line("plan", "  devices", "%s", share_text(made, section))
    end
    line("all", "  moves", "%s in, %s out", mb.device.format_bytes(section.read_bytes),
        mb.device.format_bytes(section.write_bytes))
    if section.reason then
        line("all", "  method", "%s", section.reason)
    end
    local devices = made.job.devices
    local most = schedule.order_of(#devices, made.job.options) and "" or "at most "
    for _, device in ipairs(devices) do
        local peak, reserved = section.peaks[device.id], section.reserved[device.id]
        line("all", "  peak", "%s%s on %s%s", most, bytes_text(peak), device.id, reserved > peak
            and (", at most %s if another device is lost"):format(bytes_text(reserved)) or "")
    end
    line("all", "  pinned", "%s of host memory%s", bytes_text(section.pinned),
        #devices > 1 and (", shared by %d devices"):format(#devices) or "")
    local place = made.job.places[section.number]
    if place then
        line("plan", "  store", "%s %s, %s", table.concat(place.shape, " x "),
            surface.TYPES[place.dtype] or place.dtype, rank_plan.place_text(place))
    end
end

--- A bound for the resident bytes of the whole process; nil if a device is a planned one.
function report.process(made)
    for _, device in ipairs(made.job.devices) do
        if device.planned then
            return nil -- the process on another machine is not known
        end
    end
    return rank_plan.process(made)
end

local LEVELS <const> = {run = 1, plan = 2, all = 3}

--- The text of a plan. The option level says how much of it: "run" is what matters when it runs,
-- "plan" what matters before it runs, "all" (the default) the rest too.
function report.text(made, options)
    local lines, first = {}, made.job.devices[1]
    local level = LEVELS[options and options.level or "all"]
    local function line(least, name, format, ...)
        if level >= LEVELS[least] then
            lines[#lines + 1] = ("%-11s"):format(name) .. format:format(...)
        end
    end
    line("run", "device", "%s (%s)", table.concat(tables.mapped(made.job.devices, "id"), ", "),
        first.name)
    for _, section in ipairs(made.sections) do
        section_lines(made, section, line)
    end
    local last = made.sections[#made.sections]
    local outside = last.layout == "slices"
        and geometry.outside_text(last.geometry, last.first, last.last)
    if outside then
        line("run", "outside", "%s", outside)
    end
    for _, device in ipairs(made.job.devices) do
        line("plan", "peak", "%s%s on %s%s", made.exact and "" or "at most ",
            bytes_text(made.peaks[device.id]), device.id,
            made.exact and "" or ", whatever is measured")
    end
    if first.id ~= "host" and (made.peaks.host or 0) > 0 then
        line("plan", "host", "%s", bytes_text(made.peaks.host))
    end
    line("plan", "pinned", "%s of host memory", bytes_text(made.pinned))
    if made.scratch > 0 then
        line("plan", "scratch", "%s in %s", bytes_text(made.scratch), made.job.options.scratch)
    end
    local process = not (options and options.ranks) and report.process(made) -- else: of a rank
    lines[#lines + 1] = process and level >= LEVELS.plan and process_memory.text(process) or nil
    local differ = several_devices.difference(made.job.devices)
    if differ then
        line("run", "devices", "%s", differ)
    end
    lines[#lines + 1] = level >= LEVELS.plan and first.basis or nil
    return table.concat(lines, "\n")
end

return report
