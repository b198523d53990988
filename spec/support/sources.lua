-- The sources of the project as graphs: which file includes, calls or requires which.

local sources = {}

-- Files under the folders, sorted, as {path = text}, and the list of paths.
function sources.read(folders, extensions)
    local texts, paths = {}, {}
    local pipe = assert(io.popen("find " .. table.concat(folders, " ")
        .. " -type f | LC_ALL=C sort"))
    for path in pipe:lines() do
        if extensions[path:match "%.([%w]+)$"] then
            local file = assert(io.open(path, "rb"))
            texts[path], paths[#paths + 1] = file:read "a", path
            file:close()
        end
    end
    pipe:close()
    return texts, paths
end

-- C without comments, and with the insides of strings gone.
function sources.bare_c(text)
    text = text:gsub("/%*.-%*/", " "):gsub("//[^\n]*", "")
    return (text:gsub('\\"', ""):gsub('"[^"\n]*"', function(literal)
        return literal:match '^"[%w_./]+%.c?u?h"$' and literal or '""'
    end))
end

-- {from = {to = "why"}}: files by includes, and the arrows as a list. `roots`: the folders that an
-- include may begin at.
function sources.includes(texts, paths, roots)
    local graph, arrows = {}, {}
    for _, path in ipairs(paths) do
        graph[path] = graph[path] or {}
        for name in texts[path]:gmatch '#include "([^"]+)"' do
            local target = path:match "^(.*/)" .. name
            for _, root in ipairs(roots) do
                target = texts[target] and target or root .. name
            end
            if texts[target] then
                arrows[#arrows + 1] = {from = path, to = target}
                graph[path][target] = "includes"
            end
        end
    end
    return graph, arrows
end

-- Adds to the graph of includes an arrow for every use of a function that another file defines.
function sources.add_calls(graph, texts, paths)
    local home, bare = {}, {}
    for _, path in ipairs(paths) do
        if path:match "%.cu?$" then
            bare[path] = sources.bare_c(texts[path])
            for head, name in ("\n" .. bare[path]):gmatch "\n(%a[%w_ %*]-)([%a_][%w_]*)%b()%s*{" do
                if not head:find("static", 1, true) then
                    home[name] = path
                end
            end
        end
    end
    for path, text in pairs(bare) do
        for name in text:gmatch "%f[%w_][%a_][%w_]*%f[^%w_]" do
            local to = home[name]
            if to and to ~= path then
                graph[path][to] = graph[path][to] or "calls " .. name
            end
        end
    end
    return graph
end

-- The graph of units (folders, mostly) that a graph of files makes; unit_of(path) names a file's.
function sources.units(graph, unit_of)
    local units = {}
    for from, list in pairs(graph) do
        local a = unit_of(from)
        units[a] = units[a] or {}
        for to, why in pairs(list) do
            local b = unit_of(to)
            if a ~= b then
                units[a][b] = ("%s %s %s"):format(from, why, to)
            end
        end
    end
    return units
end

-- The circles of a graph: its strongly connected parts of more than one node (Tarjan), each a
-- sorted list of nodes.
function sources.circles(graph)
    local index, low, on, stack, count, circles = {}, {}, {}, {}, 0, {}
    local function visit(node)
        count = count + 1
        index[node], low[node], on[node] = count, count, true
        stack[#stack + 1] = node
        for next in pairs(graph[node] or {}) do
            if not index[next] then
                visit(next)
                low[node] = math.min(low[node], low[next])
            elseif on[next] then
                low[node] = math.min(low[node], index[next])
            end
        end
        if low[node] == index[node] then
            local part = {}
            repeat
                local member = table.remove(stack)
                on[member] = nil
                part[#part + 1] = member
            until member == node
            if #part > 1 then
                table.sort(part)
                circles[#circles + 1] = part
            end
        end
    end
    local nodes = {}
    for node in pairs(graph) do
        nodes[#nodes + 1] = node
    end
    table.sort(nodes)
    for _, node in ipairs(nodes) do
        if not index[node] then
            visit(node)
        end
    end
    return circles
end

-- A circle as text, with the arrows inside it.
function sources.describe(circle, graph)
    local inside, lines = {}, {}
    for _, node in ipairs(circle) do
        inside[node] = true
    end
    for _, from in ipairs(circle) do
        for to, why in pairs(graph[from] or {}) do
            if inside[to] then
                lines[#lines + 1] = ("  %s -> %s (%s)"):format(from, to, why)
            end
        end
    end
    table.sort(lines)
    return ("a circle of %d:\n%s"):format(#circle, table.concat(lines, "\n"))
end

-- The graph of Lua modules: `require "moonbeam.x"` anywhere, and mb.<module> for a public module.
-- require "moonbeam" itself is no arrow: what a file uses of it is.
function sources.requires(texts, paths, root)
    local graph, file_of = {}, {}
    for _, path in ipairs(paths) do
        local name = path:sub(#root + 1):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
        file_of[name] = path
    end
    for _, path in ipairs(paths) do
        graph[path] = {}
        local text = texts[path]:gsub("%-%-%[%[.-%]%]", ""):gsub("%-%-[^\n]*", "")
        local function arrow(name, why)
            local to = file_of[name]
            if to and to ~= path then
                graph[path][to] = graph[path][to] or why
            end
        end
        for name in text:gmatch 'require%s*%(?%s*"moonbeam%.([%w_.]+)"' do
            arrow(name, "requires")
        end
        if text:find 'mb = require "moonbeam"' then
            for name in text:gmatch "%f[%w_]mb%.([%w_]+)" do
                arrow(name, "uses mb." .. name)
            end
        end
    end
    return graph
end

return sources
