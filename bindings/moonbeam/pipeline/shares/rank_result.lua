--- The result of a run on several ranks: rank 0 makes the file, with everything but the volume in
-- it, and all ranks write their slices at known places of it. In the end rank 0 adds what was
-- measured, and gives the file its name.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local disk_space = require "moonbeam.pipeline.disk_space"
local fail = require "moonbeam.internal.fail"
local open_files = require "moonbeam.result.open_files"
local volumes = require "moonbeam.volumes"

local rank_result = {}

-- Files that are opened for each piece of what a carrier has, beyond so many of them.
local MANY <const> = 64

-- What ranks after the first write to: the fields and methods of a result (result/init.lua) that a
-- run uses.
local methods = {}
local metatable = {__index = methods, __close = function(self)
    self:close()
end}

function methods.prepare() end
function methods.await() end
function methods.arrived() end
function methods.have() end
function methods.scaling() end
function methods.parameters() end
function methods.provenance() end
function methods.finish() end

function methods:carry(carrier, array, first)
    local last = first + array.shape[1] - 1
    for _, place in ipairs(self.places) do
        local from, to = math.max(first, place.first), math.min(last, place.last)
        if from <= to then
            local own <close> = array:view {from - first + 1, to - first + 1}
            carrier:carry(self.files:file(place.path), own, place.offset
                + (from - place.first) * self.steps[1], self.steps)
        end
    end
end

function methods:close()
    self.files:close()
end

-- Where all ranks write: dense slices at places of files.
local function places_of(result, path, options)
    result:prepare(1, result.shape[1]) -- all files of their own, if there are several
    local places, next_slice = result:skeleton() or {}, 1
    for i, place in ipairs(places) do
        if place.first ~= next_slice then
            break
        end
        next_slice = place.last + 1
        places[i] = {path = core.system.real_path(place.path), offset = place.offset,
            first = place.first, last = place.last}
    end
    if next_slice ~= result.shape[1] + 1 and options.slices_per_file then
        fail("argument", "result.create", "slices_per_file", "rank 0 cannot have %d files open; "
            .. "give a larger slices_per_file than %d", result.shape[1] // options.slices_per_file,
            options.slices_per_file)
    elseif next_slice ~= result.shape[1] + 1 then
        fail("argument", "result.create", "output", "only libhdf5 knows where the bytes of '%s' "
            .. "go, so that several ranks cannot write it", path)
    end
    return places
end

--- Why ranks on `nodes` machines cannot write a result of `slices_per_file` (nil: one file), in
-- blocks of so many rows, to a file system ({network}: disk_space.facts); nil if they can. Pages of
-- a file that two machines write at a time on NFS lose what one of them wrote.
function rank_result.problem(space, nodes, slices_per_file, rows)
    if nodes == 1 or not space.network or slices_per_file and rows % slices_per_file == 0 then
        return nil
    end
    return ("%d nodes cannot write the same file of a network file system (NFS): give "
        .. "slices_per_file, and rows at a time (block, --chunk) that are whole files; or a folder "
        .. "on a parallel file system"):format(nodes)
end

--- The result `path` of a team, written in blocks of so many rows: that of mb.result.create on rank
-- 0, and what the others write to. `finish` of all ranks completes it.
function rank_result.create(team, path, options, rows)
    if team.size == 1 then
        return mb.result.create(path, options)
    end
    local problem = rank_result.problem(disk_space.facts(disk_space.folder_of(path)),
        core.cluster.place().nodes, options.slices_per_file
            or options.zarr_layout == "chunks" and 1 or nil, rows)
    if problem then
        fail("argument", "result.create", "output", "'%s': %s", path, problem)
    end
    local own
    local places = team.once(function()
        own = mb.result.create(path, options)
        return places_of(own, path, options)
    end)
    if team.rank > 0 then
        own = setmetatable({places = places, files = open_files.new(#places > MANY),
            shape = options.shape,
            steps = volumes.dense_steps(options.shape, options.dtype)}, metatable)
    end
    return own
end

--- Says that all slices are written, by whichever rank.
function rank_result.complete(team, result)
    if team.size == 1 then
        return
    end
    if team.rank > 0 then
        result:close()
    end
    team.gather(true)
    result:have(1, result.shape[1])
end

return rank_result
