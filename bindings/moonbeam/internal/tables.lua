--- What is done with tables everywhere: copies, sorted keys, lists of what is made of others,
-- products, release.

local tables = {}

--- A new table with the members of all of these (nil: none). Of one name the last one counts.
function tables.merged(...)
    local all = {}
    for i = 1, select("#", ...) do
        for name, value in pairs((select(i, ...)) or {}) do
            all[name] = value
        end
    end
    return all
end

--- The keys of a table, sorted: numbers before texts.
function tables.keys(t)
    local keys = {}
    for key in pairs(t) do
        keys[#keys + 1] = key
    end
    table.sort(keys, function(a, b)
        if type(a) ~= type(b) then
            return type(a) < type(b)
        elseif type(a) == "number" then
            return a < b
        end
        return tostring(a) < tostring(b)
    end)
    return keys
end

--- A list of f(value) for each value of a list; f may be the name of a field of the values.
function tables.mapped(list, f)
    local made = {}
    for i, value in ipairs(list) do
        if type(f) == "function" then
            made[i] = f(value)
        else
            made[i] = value[f]
        end
    end
    return made
end

--- A list of f(one, other) for each value of a list with each value of another, which goes fastest.
function tables.combined(list, others, f)
    local made = {}
    for _, one in ipairs(list) do
        for _, other in ipairs(others) do
            made[#made + 1] = f(one, other)
        end
    end
    return made
end

--- A new list of these values in rising order.
function tables.sorted(values)
    local list = table.move(values, 1, #values, 1, {})
    table.sort(list)
    return list
end

--- The product of a list of numbers, such as extents; 1 without any.
function tables.product(list)
    local product = 1
    for _, n in ipairs(list) do
        product = product * n
    end
    return product
end

local group = {__index = {}}

function group.__index:release()
    for _, each in pairs(self) do
        each:release()
    end
end
group.__close = group.__index.release

--- A new table of things that are released together, to be closed; `things` are the first ones.
function tables.group(things)
    return setmetatable(things or {}, group)
end

return tables
