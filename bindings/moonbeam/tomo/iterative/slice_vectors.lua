--- Vectors of the iterative methods: volumes and sinograms whose first axis are slices. Sums and
-- factors are one number per slice and stay on the device; a sum has a fixed order and knows its
-- own slice alone, so results do not depend on the slices beside it.

local mb = require "moonbeam"

local slice_vectors = {}

--- Room for one f64 number per slice.
function slice_vectors.numbers(rows, device)
    return mb.zeros({rows}, {dtype = "f64", device = device})
end

--- out[z] = <a, b> of slice z.
function slice_vectors.dot(a, b, out)
    mb.slice_dot(a, b, {out = out})
end

--- out[z] = the sum of squares of slice z.
function slice_vectors.square(a, out)
    mb.slice_dot(a, a, {out = out})
end

--- out[z] = the sum of slice z.
function slice_vectors.sum(a, out)
    local flat <close> = a:reshape({a.shape[1], -1})
    mb.reduce(flat, "sum", {axis = 2, out = out})
end

--- out = 1 where a is above 0, and 0 where it is 0; a is not negative.
function slice_vectors.indicate(a, out)
    mb.binary(a, "min", {scalar = 1e-6, out = out})
    mb.binary(out, "mul", {scalar = 1e30, out = out})
    mb.binary(out, "min", {scalar = 1, out = out})
end

--- out = a / b, numbers per slice; 0 where b is 0, as of a slice without anything in it.
function slice_vectors.ratio(a, b, out)
    mb.binary(b, "max", {scalar = 1e-300, out = out})
    mb.binary(a, "div", {b = out, out = out})
end

--- a = 0 where it is not above b; `work` is to use.
function slice_vectors.cut(a, b, work)
    mb.binary(a, "sub", {b = b, out = work})
    mb.binary(work, "max", {scalar = 0, out = work})
    mb.binary(work, "mul", {scalar = 1e300, out = work})
    mb.binary(work, "min", {scalar = 1, out = work})
    mb.binary(a, "mul", {b = work, out = a})
end

--- to[z] = to[z] + scale growth[z] / over[z] (a[z] - less[z]), 0 where over is 0; over may be nil:
-- 1, and less: 0.
function slice_vectors.add(to, a, growth, over, scale, less)
    mb.slice_axpy(to, a, growth, {over = over, scale = scale, less = less})
end

--- to[z] = a[z] + scale growth[z] / over[z] (to[z] - less[z]), 0 where over is 0; over may be nil:
-- 1, and less: 0.
function slice_vectors.follow(to, a, growth, over, scale, less)
    mb.slice_axpy(to, a, growth, {over = over, scale = scale, of = "dst", less = less})
end

return slice_vectors
