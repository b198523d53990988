--- Numbers in [0, 1) that depend on a seed alone (a linear congruential generator of 48 bits, as
-- drand48): returns a function that returns the next one.
return function(seed)
    local state = ((seed << 16) + 0x330e) & 0xffffffffffff
    return function()
        state = (state * 0x5deece66d + 0xb) & 0xffffffffffff
        return state / (1 << 48)
    end
end
