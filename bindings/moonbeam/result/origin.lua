-- Where a result comes from: what every format says about how it was made.

local core = require "moonbeam.core"
local input_file = require "moonbeam.internal.files.input_file"
local ranges = require "moonbeam.scan.series.ranges"
local tables = require "moonbeam.internal.tables"

local origin = {}

local function quote(word)
    if word:match("^[%w%-%._/=:,+@%%]+$") then
        return word
    end
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The command line of the running program, or nil.
local function command_line()
    local words = {}
    if type(arg) ~= "table" then
        return nil
    end
    local first = 0
    while arg[first - 1] do
        first = first - 1
    end
    for i = first, #arg do
        words[#words + 1] = quote(tostring(arg[i]))
    end
    return table.concat(words, " ")
end

local function read_all(name)
    local file = input_file.open(name)
    if not file then
        return nil
    end
    local text = file:read "a"
    file:close()
    return text
end

-- `script`: a file name or the text itself; by default the program's own script.
local function script_of(script)
    local own = type(arg) == "table" and type(arg[0]) == "string" and arg[0] or nil
    local name = script or own
    local facts = name and #name < 4096 and not name:find("[\n%z]") and core.system.stat(name)
    if facts and facts.kind == "file" and facts.bytes < 1 << 20 then
        return name, read_all(name)
    end
    return nil, script
end

-- `device`: the id of the one that computes, or nil for the default device.
local function versions(device)
    return { moonbeam = core.version, hdf5 = core.h5.version, lua = _VERSION,
        fft = (core.fft.library(device)) }
end

local function iso_time(seconds)
    return os.date("!%Y-%m-%dT%H:%M:%S+00:00", seconds and math.floor(seconds))
end

-- The whole path of an input, with the ranges that its name may have (FOLDER:1:20).
local function path_of(input)
    local place, text = ranges.parts(input)
    return (core.system.real_path(place) or place) .. (text and ":" .. text or "")
end

-- Identity of the input: enough to tell whether a file is still the one that was read.
local function input_facts(options)
    local input, was = options.input, options.input_was
    if was then
        return {path = was.path, bytes = was.bytes, modified = was.modified
            and iso_time(was.modified)}
    end
    local facts, err = core.system.stat((ranges.parts(input)))
    if not facts and input:find "[*?]" then
        return {path = input} -- a pattern of files
    end
    if not facts then
        error(err, 0)
    end
    return {
        path = path_of(input),
        bytes = facts.bytes,
        modified = iso_time(facts.modified),
    }
end

--- A time as text; nil: now.
origin.time = iso_time

--- What a result was reconstructed with: a table for parameters.
function origin.parameters(options)
    local parameters = tables.merged(options.parameters)
    if options.input_was then
        parameters.raw_file = options.input_was.path
    elseif options.input then
        parameters.raw_file = path_of(options.input)
    end
    return parameters
end

--- How it came about: a table for provenance.
function origin.provenance(options)
    local script_name, script = script_of(options.script)
    return {
        command_line = command_line(),
        folder = core.system.cwd and core.system.cwd(),
        host = core.system.hostname and core.system.hostname(),
        script_name = script_name,
        script = script,
        input = options.input and input_facts(options),
        versions = versions(options.parameters and options.parameters.device),
    }
end

--- The unit of the values.
function origin.units(options)
    return options.units or (options.pixel_size and "1/m" or "1/pixel")
end

--- All that one text says about a volume, as formats without groups have it.
function origin.facts(options)
    return {program = "moonbeam", version = core.version, title = options.title,
        sample = options.sample, units = origin.units(options), pixel_size = options.pixel_size,
        first_row = not options.axis and options.first_row or nil,
        projections_outside = options.outside,
        upward = options.upward and not options.axis or nil, axis = options.axis,
        date = origin.time(),
        parameters = origin.parameters(options), provenance = origin.provenance(options)}
end

return origin
