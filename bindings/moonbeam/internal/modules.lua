--- The public modules: the files, and the folders with an init.lua, beside the module's init.lua,
-- and two modules that are written only in C.

local core = require "moonbeam.core"

local modules = {}

--- Returns the names of the public modules, sorted: "array" of array.lua, "tomo" of tomo/init.lua.
function modules.names()
    local folder = package.searchpath("moonbeam", package.path):match("^(.*)init%.lua$")
    local names = {"picture", "system"}
    for _, entry in ipairs(core.system.folder(folder)) do
        local name = entry:match("^([%w_]+)%.lua$")
        if name ~= "init" and (name
            or package.searchpath("moonbeam." .. entry, package.path)) then
            names[#names + 1] = name or entry
        end
    end
    table.sort(names)
    return names
end

return modules
