-- Bessel functions of the first kind of orders 0, 1 and 2 (M. Abramowitz, I. A. Stegun, 9.4.1 to
-- 9.4.6).

local bessel = {}

--- Bessel function of the first kind, order 0 (M. Abramowitz, I. A. Stegun, 9.4.1 and 9.4.3, error
-- below 1e-7).
function bessel.j0(x)
    x = math.abs(x)
    if x <= 3 then
        local t = (x / 3) ^ 2
        return 1 + t * (-2.2499997 + t * (1.2656208
            + t * (-0.3163866 + t * (0.0444479 + t * (-0.0039444 + t * 0.00021)))))
    end
    local t = 3 / x
    local f = 0.79788456 + t * (-0.00000077
        + t * (-0.0055274 + t * (-0.00009512 + t * (0.00137237 + t * (-0.00072805
        + t * 0.00014476)))))
    local theta = x - 0.78539816 + t * (-0.04166397
        + t * (-0.00003954 + t * (0.00262573 + t * (-0.00054125
        + t * (-0.00029333 + t * 0.00013558)))))
    return f * math.cos(theta) / math.sqrt(x)
end

-- J1(x) / x for x >= 0, which is 1 / 2 at 0.
local function j1_over(x)
    if x <= 3 then
        local t = (x / 3) ^ 2
        return 0.5 + t * (-0.56249985 + t * (0.21093573
            + t * (-0.03954289 + t * (0.00443319 + t * (-0.00031761 + t * 0.00001109)))))
    end
    local t = 3 / x
    local f = 0.79788456 + t * (0.00000156
        + t * (0.01659667 + t * (0.00017105 + t * (-0.00249511 + t * (0.00113653
        - t * 0.00020033)))))
    local theta = x - 2.35619449 + t * (0.12499612
        + t * (0.0000565 + t * (-0.00637879 + t * (0.00074348
        + t * (0.00079824 - t * 0.00029166)))))
    return f * math.cos(theta) / (x * math.sqrt(x))
end

--- J0(x), J1(x) and J2(x) for x >= 0.
function bessel.three(x)
    local zero, part = bessel.j0(x), j1_over(x)
    return zero, x * part, 2 * part - zero
end

return bessel
