--- The recipes of the library: files in the folder recipes, found by their names.

local core = require "moonbeam.core"

local shipped = {}

local function folder()
    return (package.searchpath("moonbeam.pipeline.shipped", package.path):gsub(
        "pipeline/shipped%.lua$", "recipes/"))
end

--- The names of all recipes of the library, sorted.
function shipped.names()
    local names = {}
    for _, entry in ipairs(core.system.folder(folder()) or {}) do
        names[#names + 1] = entry:match "^([%w_]+)%.lua$"
    end
    table.sort(names)
    return names
end

--- The file of a recipe: `name` itself if there is such a file, otherwise that of the library's
-- recipe with this name; nil and what there is if there is neither.
function shipped.path_of(name)
    if core.system.stat(name) then
        return name
    end
    local path = folder() .. name .. ".lua"
    if name:find "^[%w_]+$" and core.system.stat(path) then
        return path
    end
    local names = shipped.names()
    local near = core.error.nearest(name, names)
    return nil, ("there is no file '%s', and no recipe of the library with this name%s"):format(
        core.error.printable(name), near and ("; did you mean '%s'?"):format(near)
            or "; its recipes are " .. table.concat(names, ", "))
end

return shipped
