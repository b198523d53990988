-- What a result says beside its volume: values of any kind in groups, written at once or, while the
-- file is closed, kept for later.

local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local notes = {}
local methods = {}
local metatable = { __index = methods }

-- ---------------------------------------------------------------------------------------------
-- Values of any kind into groups

local function is_list(value)
    local n = #value
    if n == 0 then
        return false
    end
    local kind = type(value[1])
    for _, item in ipairs(value) do
        if type(item) ~= kind or (kind ~= "number" and kind ~= "string") then
            return false
        end
    end
    for key in pairs(value) do
        if math.type(key) ~= "integer" or key > n then
            return false
        end
    end
    return true
end

-- Tables in tables, and tables in all, beyond which it is a mistake: HDF5 gets slow with the square
-- of the depth.
local DEEPEST, MOST_TABLES = 16, 10000

-- Raises where tables lie too deep in each other, or in themselves. `above` are those that this one
-- lies in, `seen` counts them all.
local function check_tables(values, op, above, seen)
    above[values], above.depth, seen.count = true, above.depth + 1, seen.count + 1
    if above.depth > DEEPEST or seen.count > MOST_TABLES then
        fail("argument", op, nil,
            "tables are nested more than %d deep, or there are more than %d of them", DEEPEST,
            MOST_TABLES)
    end
    for name, value in pairs(values) do
        if type(value) == "table" and not is_list(value) and getmetatable(value) == nil then
            if above[value] then
                fail("argument", op, nil, "the table '%s' contains itself", tostring(name))
            end
            check_tables(value, op, above, seen)
        end
    end
    above[values], above.depth = nil, above.depth - 1
end

--- Raises where a table is not one that can be written: `op` is the function that got it.
function notes.check(values, op)
    check_tables(values, op, { depth = 0 }, { count = 0 })
end

local function write_value(file, path, value)
    local kind = type(value)
    if kind == "table" and not is_list(value) and getmetatable(value) == nil then
        file:group(path, "NXcollection")
        notes.write_table(file, path, value)
    elseif kind == "boolean" then
        file:write(path, value and "true" or "false")
    elseif kind == "number" or kind == "string" or kind == "table" and is_list(value) then
        file:write(path, value)
    elseif value ~= nil then
        file:write(path, tostring(value))
    end
end

--- Writes the members of a table into a group, in the order of their names, so that equal runs give
-- equal files.
function notes.write_table(file, path, values)
    for _, name in ipairs(tables.keys(values)) do
        write_value(file, path .. "/" .. tostring(name):gsub("/", "_"), values[name])
    end
end

-- ---------------------------------------------------------------------------------------------
-- Now or later

--- What is written to `file` (core.h5), which is open: has its methods for groups, values,
-- attributes and datasets.
function notes.new(file)
    return setmetatable({ file = file, kept = {}, paths = {} }, metatable)
end

--- From now on what is written is kept, where `on`: the file is closed.
function methods:keep(on)
    self.keeping = on
end

--- Writes what has been kept.
function methods:write_kept()
    for _, entry in ipairs(self.kept) do
        self.file[entry[1]](self.file, table.unpack(entry, 2, entry.n))
    end
    self.kept, self.keeping = {}, false
end

local function now_or_later(self, method, ...)
    if not self.keeping then
        return self.file[method](self.file, ...)
    end
    self.kept[#self.kept + 1] = table.pack(method, ...)
end

-- A path is written once; what is kept must not fail in the end.
local function take_path(self, path)
    if self.paths[path] then
        fail("argument", "result", "path", "'%s' already exists in '%s'", path, self.file.path)
    end
    self.paths[path] = true
end

function methods:group(path, class)
    return now_or_later(self, "group", path, class)
end

function methods:write(path, ...)
    take_path(self, path)
    return now_or_later(self, "write", path, ...)
end

function methods:set_attribute(...)
    return now_or_later(self, "set_attribute", ...)
end

function methods:link(target, path)
    take_path(self, path)
    return now_or_later(self, "link", target, path)
end

function methods:create_dataset(path, ...)
    take_path(self, path)
    return self.file:create_dataset(path, ...)
end

function methods:create_virtual(path, ...)
    take_path(self, path)
    return self.file:create_virtual(path, ...)
end

return notes
