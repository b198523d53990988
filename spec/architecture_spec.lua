-- The structure of the sources: which layer may know which, no circles, folders of one subject.
-- docs/architecture.md says what the layers are.

local sources = require "spec.support.sources"

-- From the ground up. A file may include files of its own layer and of those before it. A folder
-- belongs to the longest entry that it begins with; a file in none is in a place without a rule.
local LAYERS = {
    "runtime/core", "runtime/cluster", "runtime/memory", "runtime/device", "runtime/array", "runtime/ops",
    "runtime/files", "runtime/stream", "runtime", "bindings",
}

-- The plug-in knows the runtime's headers up to the operators'; its own folders are layers too.
local PLUGIN = {"cuda/backend", "cuda/shared", "cuda"}
local PLUGIN_KNOWS = {["runtime/core"] = true, ["runtime/memory"] = true,
    ["runtime/device"] = true, ["runtime/array"] = true, ["runtime/ops"] = true}

-- The plug-in for MPI knows what an engine is, and nothing else.
local ENGINE <const> = "mpi"

local MOST_FILES <const> = 25
local MOST_BYTES <const> = 40 * 1024

local function layer_of(path, layers)
    local best
    for i, layer in ipairs(layers) do
        if path:sub(1, #layer + 1) == layer .. "/" and (not best or #layer > #layers[best]) then
            best = i
        end
    end
    return best
end

-- Families of operators are units of their own; the parts of other layers are not.
local function unit_of(path)
    local family = path:match "^(runtime/ops/%w+)/" or path:match "^(runtime/files/h5)/"
        or path:match "^(cuda/%w+)/"
    return family or LAYERS[layer_of(path, LAYERS)] or path:match "^(.*)/"
end

local function wrong_arrow(from, to)
    if from:find(ENGINE .. "/", 1, true) == 1 then
        return to ~= "runtime/cluster/engine.h"
    end
    local low, high = layer_of(to, LAYERS), layer_of(from, LAYERS)
    if low and high then
        return low > high
    end
    local own_low, own_high = layer_of(to, PLUGIN), layer_of(from, PLUGIN)
    if own_high and own_low then
        return own_low > own_high
    end
    return not (own_high and low and PLUGIN_KNOWS[LAYERS[low]])
end

describe("the architecture", function()
    local texts, paths, graph, arrows
    setup(function()
        local here = io.open "runtime/ops/op.h"
        if here then
            here:close()
            texts, paths = sources.read({"runtime", "bindings", "cuda", "mpi"},
                {c = true, h = true, cu = true, cuh = true})
            graph, arrows = sources.includes(texts, paths, {"runtime/", "cuda/", "bindings/",
                "mpi/"})
            sources.add_calls(graph, texts, paths)
        end
    end)

    local function needs_sources()
        if not texts then
            pending "the sources are not here"
        end
    end

    local function none(list)
        assert(#list == 0, "\n" .. table.concat(list, "\n"))
    end

    it("has a layer for every C file", function()
        needs_sources()
        local wrong = {}
        for _, path in ipairs(paths) do
            if not (layer_of(path, LAYERS) or layer_of(path, PLUGIN)
                or layer_of(path, {ENGINE})) then
                wrong[#wrong + 1] = path
            end
        end
        assert.is_true(#paths > 250)
        none(wrong)
    end)

    it("has includes that point down", function()
        needs_sources()
        local wrong = {}
        for _, arrow in ipairs(arrows) do
            if wrong_arrow(arrow.from, arrow.to) then
                wrong[#wrong + 1] = ("%s includes %s"):format(arrow.from, arrow.to)
            end
        end
        assert.is_true(#arrows > 400)
        none(wrong)
    end)

    it("has calls that point down", function()
        needs_sources()
        local wrong = {}
        for from, list in pairs(graph) do
            for to, why in pairs(list) do
                if wrong_arrow(from, to) then
                    wrong[#wrong + 1] = ("%s %s of %s"):format(from, why, to)
                end
            end
        end
        table.sort(wrong)
        none(wrong)
    end)

    it("keeps Lua in bindings/, CUDA in cuda/ and MPI in mpi/", function()
        needs_sources()
        local wrong = {}
        for _, path in ipairs(paths) do
            local bare = texts[path]
            if bare:find "#include <l[ua][ua]x?[%w]*%.h>" and not path:find "^bindings/"
                or bare:find "#include <cu[%w_]+%.h>" and not path:find "^cuda/"
                or bare:find "#include <mpi%.h>" and not path:find "^mpi/" then
                wrong[#wrong + 1] = path
            end
        end
        none(wrong)
    end)

    it("has no circle between C files", function()
        needs_sources()
        local found = {}
        for _, circle in ipairs(sources.circles(graph)) do
            found[#found + 1] = sources.describe(circle, graph)
        end
        none(found)
    end)

    it("has no circle between folders of C files", function()
        needs_sources()
        local folders, found = sources.units(graph, unit_of), {}
        for _, circle in ipairs(sources.circles(folders)) do
            found[#found + 1] = sources.describe(circle, folders)
        end
        none(found)
    end)

    it("has no circle between Lua modules", function()
        needs_sources()
        local lua, names = sources.read({"bindings/moonbeam"}, {lua = true})
        local requires, found = sources.requires(lua, names, "bindings/moonbeam/"), {}
        assert.is_true(#names > 50)
        for _, circle in ipairs(sources.circles(requires)) do
            found[#found + 1] = sources.describe(circle, requires)
        end
        none(found)
    end)

    it("has folders of one subject and files of a size to read", function()
        needs_sources()
        local all, names = sources.read({"runtime", "bindings", "cuda", "scripts", "spec", "docs"},
            {c = true, h = true, cu = true, cuh = true, lua = true, md = true})
        local count, wrong = {}, {}
        for _, path in ipairs(names) do
            local folder = path:match "^(.*)/"
            count[folder] = (count[folder] or 0) + 1
            local code = path:find "%.[ch]$" or path:find "%.cuh?$"
                or path:find "^bindings/.*%.lua$"
            if code and #all[path] > MOST_BYTES then
                wrong[#wrong + 1] = ("%s has %d bytes"):format(path, #all[path])
            end
        end
        for folder, n in pairs(count) do
            if n > MOST_FILES then
                wrong[#wrong + 1] = ("%s has %d files"):format(folder, n)
            end
        end
        none(wrong)
    end)

    it("has base names that are unique, for Premake 4", function()
        needs_sources()
        local seen, wrong = {}, {}
        for _, path in ipairs(paths) do
            local name = path:match "([^/]+)$"
            if seen[name] then
                wrong[#wrong + 1] = path .. " and " .. seen[name]
            end
            seen[name] = path
        end
        none(wrong)
    end)

    it("has operators whose category is the folder that they are in", function()
        needs_sources()
        local op = require "moonbeam.op"
        local wrong, operators = {}, 0
        for _, path in ipairs(paths) do
            local family, name = path:match "^runtime/ops/(%w+)/op_([%w_]+)%.c$"
            local category = family and op.describe(name).category
            operators = operators + (family and 1 or 0)
            if category ~= family then
                wrong[#wrong + 1] = ("%s says %s"):format(path, tostring(category))
            end
        end
        assert.is_true(operators > 40)
        none(wrong)
    end)
end)
