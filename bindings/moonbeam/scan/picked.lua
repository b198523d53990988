--- The values of a list at these indices, in their order.
return function(values, indices)
    local part = {}
    for i, index in ipairs(indices) do
        part[i] = values[index]
    end
    return part
end
