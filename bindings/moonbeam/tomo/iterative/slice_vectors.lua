--- Vectors of the iterative methods: volumes and sinograms whose first axis are slices. Sums and
-- factors are one number per slice and stay on the device; a sum has a fixed order and knows its
-- own slice alone, so results do not depend on the slices beside it.

local mb = require "moonbeam"

local slice_vectors = {}

--- Room for one f64 number per slice.
function slice_vectors.numbers(rows, device)
    return mb.zeros({rows}, {dtype = "f64", device = device})
end

--- out[z] = the sum of squares of slice z.
function slice_vectors.square(a, out)
    local flat <close> = a:reshape({a.shape[1], -1})
    mb.reduce(flat, "norm", {axis = 2, out = out})
    mb.binary(out, "mul", {b = out, out = out})
end

--- The same of sinograms that may be a view; takes memory for a number per row.
function slice_vectors.square_of_rays(rays, out)
    local lines <close> = mb.reduce(rays, "norm", {axis = 3})
    slice_vectors.square(lines, out)
end

--- out[z] = the sum of slice z.
function slice_vectors.sum(a, out)
    local flat <close> = a:reshape({a.shape[1], -1})
    mb.reduce(flat, "sum", {axis = 2, out = out})
end

--- out[z] = <a, b> of slice z; `work` is a volume to use, which may be a or b.
function slice_vectors.dot(a, b, work, out)
    mb.binary(a, "mul", {b = b, out = work})
    slice_vectors.sum(work, out)
end

--- out = a / b, numbers per slice; 0 where b is 0, as of a slice without anything in it.
function slice_vectors.ratio(a, b, out)
    mb.binary(b, "max", {scalar = 1e-300, out = out})
    mb.binary(a, "div", {b = out, out = out})
end

--- a[z] = a[z] * factor[z]. `single` is room for the factors as f32 (row, 1, 1).
function slice_vectors.scale(a, factor, single, out)
    local flat <close> = single:reshape({single.shape[1]})
    mb.convert(factor, "f32", {out = flat})
    mb.binary(a, "mul", {b = single, out = out or a})
end

return slice_vectors
