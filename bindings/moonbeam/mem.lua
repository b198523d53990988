--- The arrays there are: `mb.mem()` lists them with names, shapes, bytes, ages and the lines that
-- made them.

local arguments = require "moonbeam.internal.arguments"
local columns = require "moonbeam.internal.columns"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

local mem = {}

local function add_name(names, value, name)
    local id = core.garbage.id(value)
    if not names[id] then
        names[id] = name
    end
end

-- Arrays in a table: directly, and one table further down.
local function search(names, t, prefix, deeper)
    for key, value in next, t do
        if type(key) == "string" and key:match("^[%a_][%w_]*$") or math.type(key) == "integer" then
            local name = math.type(key) == "integer" and ("%s[%d]"):format(prefix, key)
                or prefix ~= "" and prefix .. "." .. key or key
            if arguments.is_array(value) then
                add_name(names, value, name)
            elseif deeper and type(value) == "table" and debug.getmetatable(value) == nil
                and value ~= t and value ~= _G and value ~= package.loaded then
                search(names, value, name, false)
            end
        end
    end
end

-- Names by array: the locals and upvalues of the functions that run, then globals. The first one
-- found counts.
local function find_names(env)
    local names = {}
    for level = 3, 60 do
        local info = debug.getinfo(level, "f")
        if not info then
            break
        end
        local locals = {}
        for i = 1, 200 do
            local name, value = debug.getlocal(level, i)
            if not name then
                break
            end
            locals[name] = value -- a later one hides an earlier one
        end
        for i = 1, 255 do
            local name, value = debug.getupvalue(info.func, i)
            if not name then
                break
            elseif locals[name] == nil and name ~= "_ENV" then
                locals[name] = value
            end
        end
        search(names, locals, "", true)
    end
    search(names, env or _G, "", true)
    return names
end

local function age_text(seconds)
    if seconds < 1 then
        return ("%.0f ms"):format(seconds * 1000)
    elseif seconds < 120 then
        return ("%.1f s"):format(seconds)
    end
    return ("%.0f min"):format(seconds / 60)
end

local metatable = {}

function metatable.__tostring(list)
    if #list == 0 then
        return "no arrays"
    end
    local cells = {{"name", "array", "bytes", "age", "line"}}
    for i, row in ipairs(list) do
        cells[i + 1] = {row.name or "-", ("%s %s%s"):format(row.dtype,
            table.concat(row.shape, " x "), row.device ~= "host" and " on " .. row.device or ""),
            row.view and "view" or core.device.format_bytes(row.storage), age_text(row.age),
            row.owner}
    end
    local lines = columns(cells, function(i) return i == 3 or i == 4 end)
    lines[#lines + 1] = ("%d array%s, %s"):format(#list, #list == 1 and "" or "s",
        core.device.format_bytes(list.bytes))
    return table.concat(lines, "\n")
end

--- mb.mem(): a list, oldest first, of {name, dtype, shape, bytes, storage, age (s), owner, device,
-- references, view}; its text is a table. `storage` is what the array's block takes in the pool;
-- where arrays share one, all but the first are views. `bytes` of the list is the sum. What nobody
-- refers to any more is freed before. `env`: where to look for names besides the variables of
-- running functions (default: the globals).
function mem.list(env)
    if env ~= nil and type(env) ~= "table" then
        fail("argument", "mem", "env", "env is a %s; give a table", type(env))
    end
    local names = find_names(env)
    local rows, seen = core.garbage.arrays(), {}
    local list = setmetatable({bytes = 0}, metatable)
    for i, row in ipairs(rows) do
        row.name = names[row.id]
        row.view = seen[row.storage_id] or false
        if not row.view then
            list.bytes = list.bytes + row.storage
            seen[row.storage_id] = true
        end
        row.id, row.storage_id = nil, nil
        list[i] = row
    end
    return list
end

return declared.module(mem, "mem", nil, function(_, env)
    return mem.list(env)
end)
