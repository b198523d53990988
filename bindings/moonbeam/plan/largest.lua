--- The largest n from 1 to `limit` that fits, found by doubling and then by bisection; 0 if not
-- even 1 does. `fits(n)` returns what is told of an n that fits (a peak, true); what is told of the
-- largest is returned with it.

return function(limit, fits)
    local low, told, high, n = 0, nil, limit + 1, 1
    while high - low > 1 do
        local found = fits(n)
        if found then
            low, told = n, found
        else
            high = n
        end
        n = high > limit and math.min(2 * n, limit) or (low + high) // 2
    end
    return low, told
end
