--- Part of an option table, to pass on: pick(options, {names...}) -> a new table.

return function(options, names)
    local picked = {}
    for _, name in ipairs(names) do
        picked[name] = options[name]
    end
    return picked
end
