--- The parts of a run put together: checked against each other, and copied to one result.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local differing = require "moonbeam.result.differing"
local fail = require "moonbeam.internal.fail"
local part_record = require "moonbeam.pipeline.shares.part_record"
local records = require "moonbeam.result.records"
local scan_values = require "moonbeam.scan.values"
local work = require "moonbeam.pipeline.work"

local joined_parts = {}

-- ---- which parts ----

local function refuse(...)
    fail("argument", "join", "part", ...)
end

-- The value of a name in an identity.
local function told(identity, name)
    for _, each in ipairs(identity) do
        if each[1] == name then
            return each[2]
        end
    end
end

-- How a file of the scan of one part is another one than that of another part, nil if it is not: a
-- copy elsewhere is the same. A file of one machine that has changed meanwhile is not.
local function other_file(first, other, a, b)
    if a.bytes ~= b.bytes then
        return ("'%s' with %s bytes, '%s' with %s"):format(a.path, a.bytes or "no", b.path,
            b.bytes or "no")
    elseif not a.bytes and a.path:match "[^/]*$" ~= b.path:match "[^/]*$" then
        return ("'%s', '%s'"):format(a.path, b.path) -- a pattern, or ranges
    elseif a.hash ~= b.hash then
        return ("'%s' and '%s' have other contents"):format(a.path, b.path)
    elseif a.path == b.path and first.host == other.host and a.modified ~= b.modified then
        return ("'%s' was written to between the parts"):format(a.path)
    end
end

-- How the scan of a part is another one than that of the first; nil if it is the same.
local function other_scan(first, other)
    if #first.files ~= #other.files then
        return ("%d files, %d files"):format(#first.files, #other.files)
    end
    for i, file in ipairs(first.files) do
        local text = other_file(first, other, file, other.files[i])
        if text then
            return text
        end
    end
end

-- How a part is of another run than the first one: a list of texts.
local function differences(first, other)
    local list = {}
    local function compare(name, a, b)
        if records.text {a} ~= records.text {b} then
            list[#list + 1] = ("%s (%s, %s)"):format(name, differing(a, b))
        end
    end
    compare("the number of parts", first.count, other.count)
    local scan = other_scan(first, other)
    list[#list + 1] = scan and ("scan (%s)"):format(scan) or nil
    local names = {}
    for _, each in ipairs(first.identity) do
        names[each[1]] = true
        compare(each[1], each[2], told(other.identity, each[1]))
    end
    for _, each in ipairs(other.identity) do
        if not names[each[1]] then
            compare(each[1], nil, each[2])
        end
    end
    compare("the stored scale", first.scaling or false, other.scaling or false)
    compare("what was measured", first.values or {}, other.values or {})
    return list
end

-- The parts by number; raises where one is of another run, or there twice.
local function by_number(list)
    local first, parts = list[1], {}
    for _, each in ipairs(list) do
        local differ = differences(first, each)
        if #differ > 0 then
            refuse("'%s' is of another run than '%s'; what differs: %s. Give the parts of one run",
                each.path, first.path, table.concat(differ, "; "))
        elseif parts[each.number] then
            refuse("'%s' and '%s' are both part %d of %d: leave one of them out",
                parts[each.number].path, each.path, each.number, each.count)
        end
        parts[each.number] = each
    end
    return parts
end

-- The file that a missing part probably has; nil where the known one was renamed.
local function name_of_missing(known, number)
    local name, found = known.path:gsub("%-part%-%d+%-of%-", ("-part-%d-of-"):format(number))
    return found > 0 and name ~= known.path and name or nil
end

-- Raises where parts are missing.
local function check_missing(parts, first)
    local missing = {}
    for number = 1, first.count do
        missing[#missing + 1] = not parts[number] and number or nil
    end
    if #missing == 0 then
        return
    end
    local name = name_of_missing(first, missing[1])
    local remedy = name and core.system.stat(name) and ("give '%s', too"):format(name)
        or name and core.unfinished.exists(name) and ("it was interrupted: go on with it by "
            .. "--part %d/%d --resume"):format(missing[1], first.count)
        or ("make it by --part %d/%d"):format(missing[1], first.count)
    refuse("part%s %s of %d %s missing: %s", #missing > 1 and "s" or "",
        table.concat(missing, ", "), first.count, #missing > 1 and "are" or "is",
        #missing > 1 and ("begin with part %d; %s"):format(missing[1], remedy) or remedy)
end

-- Raises where the rows of the parts leave a hole or are there twice, or the slices are not those
-- of the records. Opens the volumes.
local function check_slices(parts)
    local next_row, shape = parts[1].whole[1], nil
    for _, part in ipairs(parts) do
        part.volume = mb.images.open(part.path .. ":/entry/data/data")
        local own = part.volume.shape
        shape = shape or own
        if part.first ~= next_row or own[1] ~= part.last - part.first + 1 or own[2] ~= shape[2]
            or own[3] ~= shape[3] or part.volume.dtype ~= parts[1].volume.dtype then
            refuse("'%s' has rows %d to %d, %s %s; expected were rows from %d on, %d x %d %s: make "
                .. "the part again", part.path, part.first, part.last, table.concat(own, " x "),
                part.volume.dtype, next_row, shape[2], shape[3], parts[1].volume.dtype)
        end
        next_row = part.last + 1
    end
    if next_row ~= parts[1].whole[2] + 1 then
        refuse("the parts end with row %d, the run without parts with row %d: make them again",
            next_row - 1, parts[1].whole[2])
    end
end

--- Opens the parts of a run, files in any order: {parts (in the order of their rows, each with its
-- record and its volume), shape, dtype}, to be closed. Raises where one is missing, there twice, or
-- of another run.
function joined_parts.open(paths)
    local list = {}
    for i, path in ipairs(paths) do
        list[i] = part_record.read(path)
    end
    local parts = by_number(list)
    check_missing(parts, list[1])
    local self = setmetatable({parts = parts}, {__close = function()
        for _, part in ipairs(parts) do
            if part.volume then
                part.volume:close()
            end
        end
    end})
    local ok, problem = pcall(check_slices, parts)
    if not ok then
        getmetatable(self).__close()
        error(problem, 0)
    end
    local whole, first = parts[1].whole, parts[1].volume
    self.dtype = first.dtype
    self.shape = {whole[2] - whole[1] + 1, first.shape[2], first.shape[3]}
    return self
end

-- ---- one result ----

-- Calls fn(part, first slice of it from 0, count, first slice of the result from 1).
local function each_piece(parts, most, fn)
    local done = 0
    for _, part in ipairs(parts) do
        for z = 0, part.volume.shape[1] - 1, most do
            local count = math.min(most, part.volume.shape[1] - z)
            fn(part, z, count, done + z + 1)
        end
        done = done + part.volume.shape[1]
    end
end

--- Copies the slices to a result, at most so many at a time; `step` is told how many.
function joined_parts.copy(self, result, most, step)
    local host <const> = mb.device "host"
    each_piece(self.parts, most, function(part, z, count, to)
        local own = part.volume
        local block <close> = own:read({z, 0, 0}, {count, own.shape[2], own.shape[3]}, host, host)
        result:write(block, to)
        step(count)
    end)
end

--- How many slices of a volume of this shape are copied at a time: 64 MiB, or one slice.
function joined_parts.most(shape, dtype)
    local slice = shape[2] * shape[3] * mb.pool.element_bytes(dtype)
    return math.max(1, math.min(shape[1], (64 << 20) // slice))
end

--- The bytes of host memory that copying so many slices at a time takes: a dry run.
function joined_parts.peak(self, most)
    return mb.plan.peak(function()
        joined_parts.copy(self, {write = function() end}, most, function() end)
    end, mb.device "host").peak
end

-- What all parts have counted; raises where everything was lost. Returns {name = count} for the
-- provenance, and warnings.
local function counts_of(parts)
    local totals, sizes = work.no_tallies(), {values = 0, pixels = 0, voxels = 0}
    for _, part in ipairs(parts) do
        work.add(totals, part.totals or {})
        for name in pairs(sizes) do
            sizes[name] = sizes[name] + (part.sizes[name] or 0)
        end
    end
    local mended, clipped = totals.mended, totals.clipped
    local warnings = scan_values.losses(totals, sizes, parts[1].log)
    return {nonfinite_values = mended[1], clamped_pixels = mended[2],
        nonpositive_values = mended[3], clipped_below = clipped[1], clipped_above = clipped[2],
        not_numbers = clipped[3], slices_not_finite = totals.spoiled[1]}, warnings
end

local function facts_of(part)
    return {file = part.path, rows = part.making.parameters and part.making.parameters.rows
        or ("%d:%d"):format(part.first, part.last), host = part.host,
        seconds = part.seconds, measured_peak_bytes = part.peak,
        measured_pinned_bytes = part.pinned}
end

-- How many projections show each slice by rows from outside the detector; nil where none does.
local function outside_of(parts)
    local list, any = {}, false
    for _, part in ipairs(parts) do
        local own = part.making.outside
        any = any or own ~= nil
        for z = 1, part.last - part.first + 1 do
            list[#list + 1] = own and own[z] or 0
        end
    end
    return any and list or nil
end

--- The result of the parts, as mb.result.create takes it: its options, without the name. `changes`
-- replaces some. It tells of the scan as it was when the first part read it: the scan need not be
-- here.
function joined_parts.making(self, changes)
    local first = self.parts[1]
    local making = {}
    for name, value in pairs(first.making) do
        making[name] = value
    end
    making.shape, making.dtype = self.shape, self.dtype
    making.input_was = making.input and first.files[1] or nil
    making.outside = outside_of(self.parts)
    making.parameters = {}
    for name, value in pairs(first.making.parameters or {}) do
        making.parameters[name] = value
    end
    making.parameters.rows = first.whole_rows
        or ("%d:%d"):format(first.whole[1], first.whole[2]) -- of a part of an earlier program
    for name, value in pairs(changes) do
        making[name] = value
    end
    return making
end

--- Writes the parts to a result that joined_parts.making made. Options: most (slices at a time),
-- step, predicted (bytes, for the provenance). Returns the bytes that it took, and warnings.
function joined_parts.write(self, result, options)
    local counts, warnings = counts_of(self.parts)
    local first = self.parts[1]
    if first.scaling then
        result:scaling(first.scaling[1], first.scaling[2])
    end
    if first.values and next(first.values) then
        result:parameters {measured = first.values}
    end
    local taken <close> = mb.pool.scope(mb.device "host")
    joined_parts.copy(self, result, options.most, options.step)
    local measured = taken:finish()
    counts.parts = {}
    for i, part in ipairs(self.parts) do
        counts.parts["part_" .. i] = facts_of(part)
    end
    counts.predicted_peak_bytes, counts.measured_peak_bytes = options.predicted, measured
    result:provenance(counts)
    return measured, warnings
end

return joined_parts
