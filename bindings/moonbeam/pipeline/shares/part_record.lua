--- What the file of a part says about the run that it is of, so that its parts can be put together:
-- a record (result/records.lua) in its provenance. Numbers are exact.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local journal = require "moonbeam.pipeline.journal"
local records = require "moonbeam.result.records"

local part_record = {}

-- The format of the record, and its version.
local FORMAT <const>, VERSION <const> = "moonbeam-part", 2

-- Where it is in the file, and under which name in the provenance.
local NAME <const> = "part_of_a_run"
local AT <const> = "/entry/provenance/" .. NAME

-- What a result of the whole needs no more, or gets anew.
local OWN <const> = {unfinished = true, overwrite = true, shape = true, tiff_layout = true,
    zarr_layout = true}

-- Which run it is, but for the part, the places of the scan (files_of) and of scripts.
local function identity_of(made, options)
    local list = {}
    for _, each in ipairs(journal.identity(made, options)) do
        local name = each[1]:gsub("^steps of .*/", "steps of ")
        list[#list + 1] = name ~= "part" and name ~= "scan" and {name, each[2]} or nil
    end
    return list
end

-- A scan is looked at in so many pieces of so many bytes, at least two of each of its files.
local PIECES <const>, BYTES <const> = 1024, 4096

-- The hash of pieces of a file, from its beginning to its end. Copies have the same.
local function fingerprint(path, bytes, pieces)
    local each = math.min(BYTES, bytes)
    local count = math.max(1, math.min(pieces, math.ceil(bytes / BYTES)))
    return bytes > 0 and core.unfinished.hash(path, {offset = 0, base = 0, frames = 1,
        frame_pitch = bytes, lines = count, line_bytes = each,
        line_pitch = count > 1 and (bytes - each) // (count - 1) or each}) or 0
end

-- The files of a scan, for a comparison with those of another part: {path, bytes, modified, hash}
-- each. The hash is that of pieces, so that it takes no time.
local function files_of(scan)
    local list = {}
    local names = journal.scan_files(scan)
    for i, name in ipairs(names) do
        local facts = core.system.stat(name)
        list[i] = {path = core.system.real_path(name) or name, bytes = facts and facts.bytes,
            modified = facts and facts.modified,
            hash = facts and fingerprint(name, facts.bytes, math.max(2, PIECES // #names))}
    end
    return list
end

--- Raises an error if parts of this scan could not be compared.
function part_record.check(scan)
    if not scan.path then
        fail("argument", "pipeline:run", "part", "a part needs a scan from a file: nobody can tell "
            .. "whether arrays are those of the other parts")
    end
end

--- Adds the record to the provenance of a result. `made`: the plan that ran; `making`: the options
-- of mb.result.create; `facts`: {options (of the run), values (what was measured, by name), scaling
-- ({scale, offset} or nil), report (of run.execute)}.
function part_record.add(result, made, making, facts)
    local last, part, own = made.sections[#made.sections], made.job.options.part, {}
    for name, value in pairs(making) do
        own[name] = not OWN[name] and value or nil
    end
    local report = facts.report
    result:provenance {[NAME] = records.text {FORMAT, VERSION, {number = part[1], count = part[2],
        first = last.first, last = last.last, whole = last.whole,
        whole_rows = ("%d:%d"):format(geometry.told_rows(last, table.unpack(last.whole))),
        making = own, identity = identity_of(made, facts.options), values = facts.values,
        files = files_of(made.job.chain.source.scan),
        scaling = facts.scaling, totals = report.totals, sizes = report.sizes,
        log = report.logarithm, peak = report.peak, pinned = report.pinned,
        seconds = report.seconds}}}
end

-- The types of what every record has.
local TYPES <const> = {number = "number", count = "number", first = "number", last = "number",
    whole = "table", making = "table", identity = "table", files = "table", sizes = "table"}

-- Has a record what every record has?
local function is_whole(record)
    for name, kind in pairs(TYPES) do
        if type(record) ~= "table" or type(record[name]) ~= kind then
            return false
        end
    end
    return true
end

--- The record of a file, with its path; raises where the file is no part.
function part_record.read(path)
    local file, problem = mb.h5.open(path)
    if not file then
        error(problem, 0)
    end
    local opened <close> = file
    if not opened:exists(AT) then
        fail("argument", "join", "part", "'%s' is no part of a run: give files that 'reconstruct "
            .. "--part K/N' has written; moonbeam stitch joins volumes of different heights", path)
    end
    local list = records.list(opened:value(AT))
    local known = list and list[1] == FORMAT
    if not known or list[2] == VERSION and not is_whole(list[3]) then
        fail("io", "join", "part", "'%s' is damaged: what it says of its part cannot be read; make "
            .. "the part again", path)
    elseif list[2] ~= VERSION then
        fail("argument", "join", "part", "'%s' has version %s of the format of parts; this program "
            .. "knows %d: join with the program that made it", path, tostring(list[2]), VERSION)
    end
    local record = list[3]
    record.path, record.host = path, opened:exists "/entry/provenance/host"
        and opened:value "/entry/provenance/host" or nil
    return record
end

return part_record
