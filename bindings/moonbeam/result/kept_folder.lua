-- What is in the folder of an unfinished run (unfinished.lua): which names a run makes there, and
-- which it does not. Nothing else is ever removed.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local kept_folder = {}

-- Names of files that are the same whatever the result is called. A file on a network that is open
-- and was removed has the last one until it is closed.
local FILES <const> = {"^lock$", "^journal$", "^journal%-%d+$", "^zarr%.json$", "^psf%-%d+$",
    "^volume%d+%.%w[%w-]*$", "^slices%-%d+%-%d+%.h5%.head$", "^%.nfs%x+$"}

-- Names of files in a folder of slices, and of files and folders in one of Zarr.
local SLICES <const> = {"^slices%-%d+%-%d+%.h5$", "^slices%-%d+%-%d+%.h5%.unfinished$",
    "^slices%-%d+%-%d+%.h5%.part%-"}
local ZARR <const> = {"^zarr%.json$", "^%d+$", "^c$"}

local function fits(name, patterns)
    for _, pattern in ipairs(patterns) do
        if name:find(pattern) then
            return true
        end
    end
    return false
end

-- The first path in a folder that these patterns do not fit; nil where all are fitting.
local function odd_one(folder, patterns, inside)
    for name, kind in pairs(core.unfinished.entries(folder)) do
        if not fits(name, patterns) then
            return inside .. name
        end
        local found = kind == "folder"
            and odd_one(folder .. "/" .. name, patterns, inside .. name .. "/")
        if found then
            return found
        end
    end
end

-- What no run has made of an entry: its path in the folder; nil: it is a run's.
local function foreign_entry(folder, base, name, kind)
    local stem = base:gsub("%.[^.]*$", "")
    local within = folder .. "/" .. name
    if name == base .. ".swap" then
        return nil -- a result that was replaced
    elseif kind == "folder" and name:sub(1, #stem + 8) == stem .. "-slices-"
        and name:find("^%x+$", #stem + 9) then
        return odd_one(within, SLICES, name .. "/")
    elseif kind == "folder" and name == base then
        return odd_one(within, ZARR, name .. "/")
    elseif kind == "folder" then
        return next(core.unfinished.entries(within)) and name or nil
    end
    local own = name == base or name == base .. ".head"
        or name:sub(1, #base + 6) == base .. ".part-" or fits(name, FILES)
    return not own and name or nil
end

--- What no run of the result `path` has made in its folder: names there, sorted, and the first path
-- in the folder.
function kept_folder.others(path)
    local folder, base, names, first = path .. ".unfinished", path:match "[^/]*$", {}, nil
    for name, kind in pairs(core.unfinished.entries(folder)) do
        local odd = foreign_entry(folder, base, name, kind)
        if odd then
            names[#names + 1] = name
            first = (not first or odd < first) and odd or first
        end
    end
    table.sort(names)
    return names, first
end

--- Raises where the folder has what no run has made: it would be removed.
function kept_folder.check(path)
    local names, first = kept_folder.others(path)
    if #names > 0 then
        fail("io", nil, "path", "'%s.unfinished' has what no run has made, such as '%s': move that "
            .. "elsewhere, and start again", path, first)
    end
end

return kept_folder
