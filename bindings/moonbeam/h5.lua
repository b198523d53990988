-- HDF5 files: datasets, groups, attributes, links (lua_h5.c). In a dry run, files are read but not
-- written.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"

local h5 = {}
for name, f in pairs(core.h5) do
    h5[name] = f
end

-- What create gives in a dry run: every method does nothing and returns it.
local nowhere = {}
nowhere.__index = function()
    return function(self)
        return self
    end
end
nowhere.__close = function() end

function h5.create(path, ...)
    file_name.check_hdf5(path, "h5.create")
    if core.dry.on() then
        return setmetatable({}, nowhere)
    end
    return core.h5.create(path, ...)
end

return declared.module(h5, "h5")
