--- The sections of a pipeline: steps that run one after the other on the same blocks.
--
-- A section ends if the next step cannot be cut in the same way as the steps before it, before a
-- step that needs a value of all data (a reduction), and between the parts of a step (chain.lua).
-- Between two sections the data are in a store.

local block = require "moonbeam.pipeline.block"
local fail = require "moonbeam.internal.fail"

local sections = {}

-- The cuts that a step allows, as a set.
local function cuts_of(step)
    local cuts = step.def.cuts
    if type(cuts) == "function" then
        cuts = cuts(step.options, step)
    end
    cuts = cuts or (step.kind_before.layout == "frames" and step.kind.layout == "frames"
        and {"rows", "frames"} or {"rows"})
    local set = {}
    for _, cut in ipairs(cuts) do
        set[cut] = true
    end
    return set
end

local function new_section(number, source)
    return {number = number, source = source, steps = {}, measures = {}, reductions = {},
        packets = {}, options = {}, allowed = {rows = true, frames = true}, dtype = source.dtype,
        shape = source.shape, layout = source.layout, kind = source.kind,
        geometry = source.geometry}
end

-- The section that continues with the data that this one has stored.
local function following(section)
    section.stored = true
    return new_section(section.number + 1, {section = section.number, before = section,
        shape = section.shape,
        dtype = section.dtype, layout = section.layout, kind = section.kind,
        geometry = section.geometry})
end

local function both(a, b)
    local set = {rows = a.rows and b.rows, frames = a.frames and b.frames}
    return (set.rows or set.frames) and set or nil
end

-- Whether the step must measure something before it runs, or sum over all data.
local function measures(step)
    return step.def.measure and (not step.def.measuring or step.def.measuring(step.options, step))
end

local function reduces(step)
    return step.def.reduce and (not step.def.reducing or step.def.reducing(step.options, step))
end

-- The flats and darks of counts are not stored with them: raises an error if a step needs them in
-- a section that reads a store. `before` is the last step of the section before.
local function check_references(section, step, before)
    local first = section.steps[1]
    if section.source.kind ~= "counts" or not section.source.section
        or step.takes.quantity ~= "counts" or reduces(step) then
        return
    elseif first then
        fail("argument", "step " .. step.label, nil, "it needs flats and darks, but counts are "
            .. "stored without them before step %s: put step %s after step %s", first.label,
            first.label, step.label)
    end
    fail("argument", "step " .. step.label, nil, "it needs flats and darks, but counts are stored "
        .. "without them before it, because step %s is cut in another way: put step %s after it",
        before.label, before.label)
end

local function add(section, step, device)
    section.steps[#section.steps + 1] = step
    section.packets[#section.steps] = step.def.packet
        and step.def.packet(step.options, step, device) or 1
    section.dtype = step.dtype
    step.takes_raw = step.takes.dtypes ~= nil
    section.shape, section.geometry = step.shape, step.geometry
    section.layout, section.kind = step.kind.layout, step.kind.quantity
end

--- The list of the sections of a chain (chain.lua). `device` is one of the devices of the run.
function sections.of(chain, device)
    local source = chain.source
    local section = new_section(1, {scan = source.scan, shape = source.shape, dtype = source.dtype,
        layout = "frames", kind = source.kind.quantity, geometry = source.geometry})
    local list = {section}
    local function next_section()
        section = following(section)
        list[#list + 1] = section
    end
    -- A value is measured where it is needed: in the section of the next step, before that step.
    local waiting = {}
    local function place_measures()
        for _, step in ipairs(waiting) do
            section.measures[#section.measures + 1] = {step = step, before = #section.steps}
        end
        waiting = {}
    end
    local before -- the last step of the section before
    for _, step in ipairs(chain.steps) do
        if step.def.run then
            local allowed = both(section.allowed, cuts_of(step))
            if reduces(step) then
                section.reduced = section.reduced or {}
                section.reduced[#section.reduced + 1] = {step = step, def = step.def}
                allowed = nil
            end
            if not allowed or step.stored_before then
                before = section.steps[#section.steps]
                next_section()
                allowed = cuts_of(step)
            end
            section.allowed = allowed
            check_references(section, step, before)
        end
        waiting[#waiting + 1] = measures(step) and step or nil
        if step.def.run then
            place_measures()
            add(section, step, device)
        end
    end
    place_measures()
    -- Results are written along their first axis.
    if section.layout == "frames" then
        if not section.allowed.frames then
            next_section()
        end
        section.allowed = {frames = true}
    end
    for _, each in ipairs(list) do
        each.cut = each.allowed.rows and "rows" or "frames"
        each.axis = block.axis(each.cut, each.layout)
        each.rows = each.shape[each.axis]
    end
    return list
end

--- Sets `first` and `last` of each section: the rows of its result that the later sections need.
-- `rows`, {first, last}, are those of the last section.
function sections.require(list, rows, ranges_of)
    for i = #list, 1, -1 do
        local section, later = list[i], list[i + 1]
        if later == nil then
            section.first, section.last = table.unpack(rows or {1, section.rows})
        elseif section.cut == "frames" or later.cut == "frames" then
            section.first, section.last = 1, section.rows
        else
            local read = ranges_of(later, later.first, later.last).read
            section.first, section.last = table.unpack(read)
        end
    end
end

--- The smallest number of rows for which a block is whole packets of every step.
function sections.packet(section)
    local common = 1
    for _, packet in ipairs(section.packets) do
        local a, b = common, packet
        while b ~= 0 do
            a, b = b, a % b
        end
        common = common // a * packet
    end
    return common
end

return sections
