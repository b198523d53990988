---@meta moonbeam
-- Written by scripts/document.lua from the sources.

---@class moonbeam
local mb = {}

mb.array = {}
mb.beads = {}
mb.chunked = {}
mb.cluster = {}
mb.convolution = {}
mb.debug = {}
mb.deconv = {}
mb.device = {}
mb.fft = {}
mb.h5 = {}
mb.help = {}
mb.images = {}
mb.ledger = {}
mb.mem = {}
mb.metrics = {}
mb.npy = {}
mb.op = {}
mb.phantom = {}
mb.picture = {}
mb.pipeline = {}
mb.plan = {}
mb.plot = {}
mb.pool = {}
mb.progress = {}
mb.psf = {}
mb.recon = {}
mb.result = {}
mb.scan = {}
mb.show = {}
mb.statistics = {}
mb.stream = {}
mb.system = {}
mb.tiff = {}
mb.tiled_deconv = {}
mb.tiles = {}
mb.tomo = {}
mb.usage = {}
mb.view = {}
mb.volumes = {}
mb.zarr = {}

---first, first + step, ...
---@param ... any 
function mb.arange(...) end

---mb.bound(bound, fn, ...): what fn(...) returns; in a dry run, where fn may ask for values that do not exist, the bound.
---@param bound any 
---@param fn function 
function mb.bound(bound, fn) end

---Frees what Lua no longer refers to.
function mb.collect() end

---The device that is used where none is named; sets it when given.
---@param id? moonbeam.device|string 
function mb.default_device(id) end

---The ids of the available devices.
function mb.devices() end

---mb.dry_run(fn, ...): the ledger that mb.ledger(fn, ...) would give, without running.
---@param fn function 
function mb.dry_run(fn) end

---@class moonbeam.options.empty
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array with elements of no defined value.
---@param shape integer[] 
---@param options? moonbeam.options.empty
function mb.empty(shape, options) end

---An error object, as `raise` raises it.
---@param code string 
---@param message string 
---@param fields? table 
function mb.error(code, message, fields) end

---@class moonbeam.options.from_string
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array from its raw elements, last axis fastest.
---@param bytes string 
---@param shape integer[] 
---@param options? moonbeam.options.from_string
function mb.from_string(bytes, shape, options) end

---An array of this shape with every element equal to value.
---@param shape any 
---@param value any 
---@param options any 
function mb.full(shape, value, options) end

---The rows in which two ledgers differ: a list of {step, a, b}, where a or b is nil beyond the end of one.
---@param a moonbeam.ledger 
---@param b moonbeam.ledger 
function mb.ledger_diff(a, b) end

---n values from first to last, both included.
---@param first any 
---@param last any 
---@param n any 
---@param options any 
function mb.linspace(first, last, n, options) end

---@class moonbeam.options.ones
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array with every element 1.
---@param shape integer[] 
---@param options? moonbeam.options.ones
function mb.ones(shape, options) end

---Raises an error object with this code ("argument", "shape", "io", ...) and message.
---@param code string 
---@param message string 
---@param fields? table 
function mb.raise(code, message, fields) end

---@class moonbeam.options.random
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy
---@field seed? integer numbers of one seed are the same
---@field low? number the least number
---@field high? number the end of the numbers

---Uniform random numbers in [low, high), the same on every device; integers in low to high.
---@param shape integer[] 
---@param options? moonbeam.options.random
function mb.random(shape, options) end

---@class moonbeam.options.zeros
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array of zeros.
---@param shape integer[] 
---@param options? moonbeam.options.zeros
function mb.zeros(shape, options) end

---@class moonbeam.options.array_arange
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---The numbers first, first + step, ...
---@param first? number 
---@param last number 
---@param step? number 
---@param options? moonbeam.options.array_arange
function mb.array.arange(first, last, step, options) end

---@class moonbeam.options.array_empty
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array with elements of no defined value.
---@param shape integer[] 
---@param options? moonbeam.options.array_empty
function mb.array.empty(shape, options) end

---@class moonbeam.options.array_from_string
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array from its raw elements, last axis fastest.
---@param bytes string 
---@param shape integer[] 
---@param options? moonbeam.options.array_from_string
function mb.array.from_string(bytes, shape, options) end

---@class moonbeam.options.array_full
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array with every element equal to a number.
---@param shape integer[] 
---@param value number 
---@param options? moonbeam.options.array_full
function mb.array.full(shape, value, options) end

---Whether the value is an array.
---@param value any 
function mb.array.is_array(value) end

---@class moonbeam.options.array_linspace
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---Numbers at equal distances from first to last, both included.
---@param first number 
---@param last number 
---@param n integer 
---@param options? moonbeam.options.array_linspace
function mb.array.linspace(first, last, n, options) end

---@class moonbeam.options.array_ones
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array with every element 1.
---@param shape integer[] 
---@param options? moonbeam.options.array_ones
function mb.array.ones(shape, options) end

---@class moonbeam.options.array_random
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy
---@field seed? integer numbers of one seed are the same
---@field low? number the least number
---@field high? number the end of the numbers

---Uniform random numbers in [low, high), the same on every device; integers in low to high.
---@param shape integer[] 
---@param options? moonbeam.options.array_random
function mb.array.random(shape, options) end

---@class moonbeam.options.array_zeros
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field pinned? any true or a device: host memory that carriers move without a copy

---An array of zeros.
---@param shape integer[] 
---@param options? moonbeam.options.array_zeros
function mb.array.zeros(shape, options) end

---@class moonbeam.array
---@field shape integer[] the extents
---@field rank integer the number of axes
---@field dtype string the element type
---@field bytes integer what the elements take
---@field elements integer the number of elements
---@field device moonbeam.device|string where the array is
---@field strides integer[] elements from one to the next, by axis
---@field contiguous boolean are the elements without gaps, in row-major order?
---@field references integer views and arrays of the same memory
---@field pinned boolean is it pinned host memory?
---@field released boolean is the memory free?
local array = {}

---@class moonbeam.options.array_abs
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_abs
function array:abs(options) end

---A view with axes of extent 1 repeated, as arithmetic does by itself.
---@param shape integer[] 
function array:broadcast_to(shape) end

---@class moonbeam.options.array_cast
---@field scale? number factor applied to every value before the offset
---@field offset? number added to the (real part of the) scaled value

---A copy with another element type; each value becomes value * scale + offset.
---@param dtype string 
---@param options? moonbeam.options.array_cast
function array:cast(dtype, options) end

---A dense copy on the same device.
function array:copy() end

---The array itself if it is dense, otherwise a dense copy.
function array:dense() end

---@class moonbeam.options.array_exp
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_exp
function array:exp(options) end

---Sets every element, in place.
---@param value number 
---@param imag? number 
function array:fill(value, imag) end

---One element as a number, a complex one as two numbers.
---@param index integer 
---@param ... any 
function array:item(index, ...) end

---@class moonbeam.options.array_log
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_log
function array:log(options) end

---Reduces all elements to a number, or one axis: an f64 array without that axis.
---@param axis? integer 
function array:max(axis) end

---Reduces all elements to a number, or one axis: an f64 array without that axis.
---@param axis? integer 
function array:mean(axis) end

---Reduces all elements to a number, or one axis: an f64 array without that axis.
---@param axis? integer 
function array:min(axis) end

---Reduces all elements to a number, or one axis: an f64 array without that axis.
---@param axis? integer 
function array:norm(axis) end

---Whether two arrays share a byte.
---@param other moonbeam.array 
function array:overlaps(other) end

---A view with the axes in another order.
---@param axis integer 
---@param ... any 
function array:permute(axis, ...) end

---@class moonbeam.options.array_reciprocal
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_reciprocal
function array:reciprocal(options) end

---A view of the same bytes as other elements, along a dense last axis: pairs of f32 as c64.
---@param dtype string 
function array:reinterpret(dtype) end

---Frees the memory at once; `local a <close> = ...` does it when the scope ends.
function array:release() end

---A view of the same elements with other extents; one extent may be -1.
---@param shape integer[] 
function array:reshape(shape) end

---Views along axis 1, for a loop: `for i, slice in a:slices() do`.
function array:slices() end

---@class moonbeam.options.array_sqrt
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_sqrt
function array:sqrt(options) end

---@class moonbeam.options.array_square
---@field out? moonbeam.array the array for the result

---The function of every element, as a new array; an option `out` names the destination.
---@param options? moonbeam.options.array_square
function array:square(options) end

---Reduces all elements to a number, or one axis: an f64 array without that axis.
---@param axis? integer 
function array:sum(axis) end

---A dense copy on a device, also if the array is there already.
---@param device moonbeam.device|string 
function array:to(device) end

---The raw elements in row-major order, as a string.
function array:to_string() end

---The elements as nested tables; complex elements are {re, im}.
function array:to_table() end

---A view with the last two axes exchanged.
function array:transpose() end

---A view of a part, in the same memory: one range for each axis, the whole axis if left out.
---@param range any 
---@param ... any 
function array:view(range, ...) end

---@class moonbeam.options.beads_psf
---@field size? integer[] odd extents of the box of a bead, {z, y, x}, or {y, x} of a plane
---@field bead_diameter? number of the beads; 0: points
---@field spacing? number[] distances of samples, {z, y, x}, or {y, x} of a plane, in the unit of bead_diameter
---@field saturation? number value from which the camera is saturated
---@field step? any a function that is called for every bead and round of alignment

---The PSF of an image of beads, (z, y, x) or (y, x): beads.psf(image [, options]).
---@param image moonbeam.array 
---@param options? moonbeam.options.beads_psf
function mb.beads.psf(image, options) end

---@class moonbeam.options.chunked_plan
---@field axis? integer the axis along which the inputs are cut
---@field params? table the parameters of an operator, by name
---@field needs? function for a function: needs(first, last) returns the first and the last row of input for these rows of the result; it may exceed the ends of the inputs
---@field halo? any for a function: rows of input that are needed before and after those of the result, a number or {before, after}
---@field packet? integer rows that are treated together: blocks are whole packets
---@field rows? integer for a function: rows of the result
---@field result_axis? integer for a function: the axis of the result that has these rows
---@field whole? table names or numbers of inputs that are not cut
---@field combine? "sum"|"min"|"max" how the results of blocks become one, of the same shape
---@field devices? any devices that share the blocks: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the blocks: the next block goes to the device that is free, or block i to device i mod n. What is combined, or goes to a function, is fixed
---@field ranks? boolean all ranks of the run (mb.cluster) make this call and share the blocks: what is combined all of them get, and a function as sink gets the blocks of its rank
---@field budget? integer|string the limit for the blocks on each device
---@field block? integer rows of a block
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field sink? any where the result goes: an array on the host, an HDF5 dataset, a result (mb.result) or a function(block, first, last)

---What `mb.chunked` will take with these arguments.
---@param fn any an operator, or a function of a block
---@param inputs any the arrays, datasets and scans that it is applied to
---@param options? moonbeam.options.chunked_plan
---@return any # {block (rows), blocks, packet, overlap, peak = bytes by device id, the host included, pinned, result = {shape, dtype, axis}, sink_bytes (of the new array for the result if there is no sink), kept_bytes (of the results of blocks that a rank keeps beside the pools until all ranks are over), basis (the source of a planned device's figures)}.
function mb.chunked.plan(fn, inputs, options) end

---Ends all ranks with exit status 1.
---@param text string why
function mb.cluster.abort(text) end

---Raises the same error on all ranks if they do not have the same value.
---@param value? any a number, a string, a boolean, or a table of these
---@param what string what it is, for the message
function mb.cluster.agree(value, what) end

---Returns when all ranks have come here.
---@return any # when all ranks have come here.
function mb.cluster.barrier() end

---Begins to deal the elements of a list, which is the same on all ranks: returns a function that returns the next element that no rank has got yet, or nil if all have gone.
---@param list table what is dealt
function mb.cluster.deal(list) end

---How much work of the latest deal all ranks have told of.
function mb.cluster.done() end

---Gives a value to all ranks, and returns the list of the values of all ranks, in their order.
---@param value? any this rank's value
---@param waiting? function a function
function mb.cluster.gather(value, waiting) end

---@class moonbeam.options.cluster_next
---@field packet? integer rows that stay together
---@field file? integer rows of a file, if there are several
---@field count? integer rows at a time

---The next range of rows (or slices, or whatever is counted) that no rank has got yet: its first and last one; or nil when all have gone.
---@param first integer the first row
---@param last integer the last row
---@param options? moonbeam.options.cluster_next
function mb.cluster.next(first, last, options) end

---Calls fn() on rank 0 alone, and returns there and on all other ranks what it returned: numbers, strings, booleans, nil, or tables of these.
---@param fn function a function
function mb.cluster.once(fn) end

---Adds the partial results of all ranks in the order of their packets, and returns the sum on all ranks.
---@param parts table partial results by the numbers of packets
---@param combine? function a function of two partial results
function mb.cluster.sum(parts, combine) end

---Grid := H grid (or its adjoint), in the grid's own memory.
---@param grid moonbeam.array 
---@param otf moonbeam.array 
---@param n integer 
function mb.convolution.apply(grid, otf, n) end

---@class moonbeam.options.convolution_convolve
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field mode? "same"|"full"|"valid" extents of the result: same as the image, full: n + k - 1, valid: n - k + 1
---@field correlate? boolean the adjoint
---@field normalize? boolean the PSF is made to sum to 1
---@field consume? boolean release the image as soon as it is in the grid
---@field out? moonbeam.array the array for the result; it may be the image
---@field view? boolean return a view of the grid instead of a dense copy
---@field otf? moonbeam.array from convolution.transfer for this layout's grid; kept

---Convolves an image with a PSF, by FFT.
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.convolution_convolve
---@return any # the result, f32.
function mb.convolution.convolve(image, psf, options) end

---@class moonbeam.options.convolution_correlate
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field mode? "same"|"full"|"valid" extents of the result: same as the image, full: n + k - 1, valid: n - k + 1
---@field correlate? boolean the adjoint
---@field normalize? boolean the PSF is made to sum to 1
---@field consume? boolean release the image as soon as it is in the grid
---@field out? moonbeam.array the array for the result; it may be the image
---@field view? boolean return a view of the grid instead of a dense copy
---@field otf? moonbeam.array from convolution.transfer for this layout's grid; kept

---The adjoint of convolve with the same center.
---@param image moonbeam.array as for convolve
---@param psf moonbeam.array as for convolve
---@param options? moonbeam.options.convolution_correlate
function mb.convolution.correlate(image, psf, options) end

---The in-place grid as a spectrum (a view of the same memory).
---@param grid moonbeam.array 
---@param n integer 
function mb.convolution.forward(grid, n) end

---@class moonbeam.options.convolution_layout
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field size? number[] the extents of the FFT grid
---@field mode? "same"|"full"|"valid" extents of the result: same as the image, full: n + k - 1, valid: n - k + 1
---@field correlate? boolean the adjoint
---@field device? moonbeam.device|string where the grid is to be good

---What a convolution looks like before any memory is taken: extents only.
---@param shape integer[] of the image
---@param kernel integer[] of the PSF
---@param center table coordinates of the PSF's center
---@param options? moonbeam.options.convolution_layout
---@return any # {grid, before, first, shape, boundary}: extents of the FFT grid, where the image starts in it (0-based), where the result starts (0-based), its extents, and the boundary in force.
function mb.convolution.layout(shape, kernel, center, options) end

---The product of a list of numbers, such as extents.
---@param values number[] what is multiplied
function mb.convolution.product(values) end

---Ranges for a:view from 0-based firsts and extents.
---@param first integer[] 
---@param shape integer[] 
function mb.convolution.ranges(first, shape) end

---@class moonbeam.options.convolution_transfer
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field form? "auto"|"whole"|"planes" what of the spectrum is kept

---The transfer function of a PSF on a grid, with the 1/N of the inverse transform folded in.
---@param psf moonbeam.array a point spread function
---@param grid integer[] of the FFT grid
---@param options? moonbeam.options.convolution_transfer
function mb.convolution.transfer(psf, grid, options) end

---Overwrites a byte of the guard before or after the array's block, `distance` bytes from the block.
---@param array moonbeam.array 
---@param after boolean 
---@param distance integer 
function mb.debug.break_guard(array, after, distance) end

---The n-th allocation from now on fails.
---@param n integer 
---@param device? moonbeam.device|string 
function mb.debug.fail_nth(n, device) end

---The n-th step from now on that changes the name of a file, or syncs a file, kills the process.
---@param n integer 
---@param errno? integer 
function mb.debug.fail_step(n, errno) end

---The n-th call of the device from now on that asks for, queues or waits for work loses the device, as a fault of a GPU does, and takes `delay` seconds more (usually 0).
---@param device moonbeam.device|string 
---@param n integer 
---@param delay? number 
function mb.debug.lose_device(device, n, delay) end

---Seconds that an allocation and its release take through the C API, while `live` blocks exist.
---@param live integer 
---@param pairs integer 
---@param device? moonbeam.device|string 
function mb.debug.pair_seconds(live, pairs, device) end

---The device reports as free what its pool leaves of `bytes`, as if other programs had the rest.
---@param bytes integer|string 
---@param device? moonbeam.device|string 
function mb.debug.pretend_memory(bytes, device) end

---The device refuses the next n commitments of memory.
---@param n integer 
---@param device? moonbeam.device|string 
function mb.debug.refuse_commits(n, device) end

---The system refuses the next n requests for pinned memory.
---@param n integer 
---@param device? moonbeam.device|string 
function mb.debug.refuse_pins(n, device) end

---Guard words around blocks, without the patterns of `mb.pool.debug`.
---@param on boolean 
---@param device? moonbeam.device|string 
function mb.debug.set_guards(on, device) end

---How many steps have changed the name of a file, or synced a file, since the process began.
function mb.debug.steps() end

---@class moonbeam.options.deconv_find_iterations
---@field iterations? integer how many at most
---@field gain? number counts per photon of the image as it is given
---@field offset? number counts without light in the image as it is given
---@field seed? integer how the photons are dealt out
---@field on_iteration? function a function (k), after each iteration of the search
---@field acceleration? "none"|"heavy_ball"|"biggs_andrews" momentum; heavy_ball takes one array more, biggs_andrews two
---@field total_variation? number weight of that regularization, such as 0.002 to 0.01
---@field spacing? any distance of voxels along the axes, for total_variation
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1
---@field weights? moonbeam.array f32, the image's shape, 0 at bad pixels; boundary zero or circular
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves

---After how many iterations richardson_lucy with the same options should end.
---@param source any an array or a volume, as richardson_lucy takes it
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_find_iterations
---@return any # {iterations, reliable, why, limited, because, held_out, gain, offset, tried, curve, noise, first, extents}: limited is true if the largest number was reached; because is "held_out", "noise", "zero" or nil; held_out is the part of the photons, gain and offset what they were counted by; tried is the number of iterations that the search made; curve is a list of {iterations =, held_out =}, the I-divergence of the held-out photons after 4 and more iterations; noise is what deconv.noise returned, nil with `gain`; first (0-based) and extents are the box. A dry run needs no values, and takes the memory of the search.
function mb.deconv.find_iterations(source, psf, options) end

---@class moonbeam.options.deconv_gradient_consensus
---@field iterations? integer how many at most
---@field seed? integer how the photons are dealt out; each seed has random numbers of its own
---@field smooth? boolean judge agreement after blurring with |H|^2, the scale that the microscope can see
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1
---@field otf? moonbeam.array from deconv.transfer, for many images of one shape
---@field start? any flat, image or an array
---@field weights? moonbeam.array f32, the image's shape, 0 at bad pixels; boundary zero or circular
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves

---Richardson-Lucy that goes on only where two halves of the photons agree, and stops by itself.
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_gradient_consensus
---@return any # the estimate, f32, and {iterations =, stopped =, mean =, clipped =, metrics = {{first =, second =, flux =, change =}, ...}}: mean is that of the image, so photons per voxel; first and second are the I-divergences of the two halves before the iteration (always), flux and change those after it (with metrics). stopped is false if `iterations` ended it.
function mb.deconv.gradient_consensus(image, psf, options) end

---@class moonbeam.options.deconv_landweber
---@field iterations? integer how many at most
---@field step? number step length; the largest eigenvalue of H'H is at most 1
---@field positive? boolean no negative values
---@field tolerance? number stop when the relative change falls below
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1
---@field otf? moonbeam.array from deconv.transfer, for many images of one shape
---@field start? any flat, image or an array
---@field weights? moonbeam.array f32, the image's shape, 0 at bad pixels; boundary zero or circular
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released

---Landweber iteration with positivity: x := max(x + step H'(y - H x), 0).
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_landweber
---@return any # the estimate and a report, as richardson_lucy does.
function mb.deconv.landweber(image, psf, options) end

---@class moonbeam.options.deconv_layout
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid

---The grid of a deconvolution, without running it.
---@param shape number[] the extents of the image
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_layout
function mb.deconv.layout(shape, psf, options) end

---The gain and the offset of the camera, estimated from an image or volume of raw counts.
---@param source any an array or a volume, (z, y, x) or (y, x)
---@return any # {reliable, why, gain, gain_error, offset, offset_error, tiles, silent, bins}: gain in counts per photon, offset in counts, each with its standard error; reliable is false where they should not be used, and `why` says so in words. `tiles` counts the tiles with a variance, `silent` those that say nothing (saturated, all pixels equal, not finite). In a dry run nothing is known. The offset is where the variance would be 0: the camera's own, less the variance of its readout noise over the gain, with which (image - offset) / gain has its mean as its variance. Structure as fine as the pixels raises the gain. Neighboring pixels that share noise (binned, filtered or lossily compressed images) lower it.
function mb.deconv.noise(source) end

---The I-divergence per element that noise alone leaves between an image and its true mean, in the image's unit.
---@param found table what deconv.noise returned
---@param offset? number counts that were subtracted
---@param gain? number counts per photon, by which the image was divided
function mb.deconv.noise_divergence(found, offset, gain) end

---@class moonbeam.options.deconv_richardson_lucy
---@field iterations? integer how many at most
---@field acceleration? "none"|"heavy_ball"|"biggs_andrews" momentum; heavy_ball takes one array more, biggs_andrews two
---@field total_variation? number weight of that regularization, such as 0.002 to 0.01
---@field spacing? any distance of voxels along the axes, for total_variation
---@field tolerance? number stop when the relative change falls below
---@field held_out? moonbeam.array other photons of the same image, of its shape: metrics say how well they are predicted; takes another working grid
---@field judge? function with held_out: a function (done, misfit) before each iteration, which ends them by false; misfit() is the I-divergence of the held-out photons, misfit("image") that of the image
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1
---@field otf? moonbeam.array from deconv.transfer, for many images of one shape
---@field start? any flat, image or an array
---@field weights? moonbeam.array f32, the image's shape, 0 at bad pixels; boundary zero or circular
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves

---Richardson-Lucy: maximum likelihood for Poisson noise.
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_richardson_lucy
---@return any # the estimate, f32, with the image's shape, and a table {iterations =, metrics = {{divergence =, flux =, change =}, ...}, clipped = {image =, psf =}}: the part of the image's values, and of the PSF's |sum|, that was below 0.
function mb.deconv.richardson_lucy(image, psf, options) end

---@class moonbeam.options.deconv_tikhonov
---@field lambda? number weight of the regularization
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field out? moonbeam.array the array for the result
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1
---@field operator? "laplacian"|"identity" L: the Laplacian (the regularized inverse filter) or the identity

---Tikhonov regularization: least squares with lambda |L x|^2.
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_tikhonov
---@return any # the estimate, f32.
function mb.deconv.tikhonov(image, psf, options) end

---@class moonbeam.options.deconv_transfer
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1

---The transfer function for a deconvolution, for many images of one shape: option `otf` of richardson_lucy and landweber.
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param shape number[] the extents of the image
---@param options? moonbeam.options.deconv_transfer
function mb.deconv.transfer(psf, shape, options) end

---@class moonbeam.options.deconv_wiener
---@field lambda? number weight of the regularization
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field out? moonbeam.array the array for the result
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field size? number[] the extents of the FFT grid
---@field normalize? boolean the PSF is made to sum to 1

---Wiener filter with a constant ratio of noise power to signal power, `lambda`.
---@param image moonbeam.array u8, u16 or f32, (z, y, x), (y, x) or (x)
---@param psf moonbeam.array a point spread function of as many axes as the image
---@param options? moonbeam.options.deconv_wiener
---@return any # the estimate, f32.
function mb.deconv.wiener(image, psf, options) end

---A size as a number: "8G" is 8e9 bytes, "8Gi" is 8 * 2^30.
---@param size integer|string 
function mb.device.bytes(size) end

---Why no CUDA device is available, or nil if one is.
function mb.device.cuda_problem() end

---The device that is used where none is named; sets it when given.
---@param id? moonbeam.device|string 
function mb.device.default(id) end

---Is a dry run going on?
function mb.device.dry() end

---A number of bytes as text: 1342177280 is "1.25 GiB", whole megabytes are in decimal units, as sizes are typed ("8 GB").
---@param bytes integer 
---@param like? integer 
function mb.device.format_bytes(bytes, like) end

---The ids of the available devices.
function mb.device.list() end

---@class moonbeam.options.device_open
---@field budget? integer|string limit on live bytes

---Opens a device by its id, as `mb.device`, without "auto".
---@param id string 
---@param options? moonbeam.options.device_open
function mb.device.open(id, options) end

---The devices in use so far.
function mb.device.opened() end

---The ids of devices that can be planned for without being available.
function mb.device.planned() end

---@class moonbeam.options.device_several
---@field budget? integer|string limit on live bytes of each device

---Opens several devices and returns a list of them: "all" (the GPUs of the model of the first), "cuda:0,cuda:1", "2xplanned:h200", or a list of ids and devices.
---@param devices any 
---@param options? moonbeam.options.device_several
function mb.device.several(devices, options) end

---@class moonbeam.device
---@field id string host, cuda:0, ...
---@field name string the model
---@field kind string host or cuda
---@field total integer bytes of memory
---@field threads integer threads of the host
---@field capability integer compute capability of a GPU, such as 90
---@field pci string the PCI address of a GPU
---@field node integer the NUMA node of a GPU; nil if all processors are alike
---@field processors string the processors on which its threads run, such as "16-31"
---@field planned boolean is it a GPU that is not here?
---@field basis string the source of a planned device's figures
local device = {}

---The limit on live bytes; sets it when given.
---@param bytes? integer|string 
function device:budget(bytes) end

---Whether the device is lost, and the cause if it is.
function device:lost() end

---Free and total bytes, as the system or the driver reports them.
function device:memory() end

---Bytes that the backend holds outside the pool: on the device, and pinned on the host.
function device:overhead() end

---Pinned host memory in use, its peak and its limit; sets the limit when given.
---@param limit? integer|string 
function device:pinned(limit) end

---Waits for the queued work.
function device:sync() end

---Drops idle plans, oldest first, except `keep` of them.
---@param device? moonbeam.device|string 
---@param keep? integer 
function mb.fft.drop(device, keep) end

---@class moonbeam.options.fft_fftn
---@field axes? any the axes, a number or a list; negative: from the end
---@field normalize? boolean divide by the number of points

---Complex transform over named axes (default all): fft.fftn(a [, {axes =}]).
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_fftn
function mb.fft.fftn(a, options) end

---@class moonbeam.options.fft_fftshift
---@field axes? any the axes, a number or a list; negative: from the end
---@field out? moonbeam.array the array for the result

---Brings element 1 (the zero frequency) to the middle, n/2 (rounded down) elements on: fft.fftshift(a [, {axes =, out =}]).
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_fftshift
function mb.fft.fftshift(a, options) end

---@class moonbeam.options.fft_good_grid
---@field device? moonbeam.device|string where the transform runs
---@field given? table extents with given[i] stay as they are

---Extents >= least (a list of one to three) for a real transform over all axes: as good_size, but for the axes together.
---@param least any 
---@param options? moonbeam.options.fft_good_grid
function mb.fft.good_grid(least, options) end

---@class moonbeam.options.fft_good_size
---@field device? moonbeam.device|string where the transform runs
---@field axis? "row"|"column" row: the last axis; column: one above it
---@field explain? boolean return the reason and the candidates, too

---The size >= n that is best for a transform on the device: even, with no prime factor above 7.
---@param n any 
---@param options? moonbeam.options.fft_good_size
---@return any # the size; with explain also the reason as text, and the candidates: a list of {size =, ps = picoseconds per point, work = 1 where a work area as large as the data is needed}.
function mb.fft.good_size(n, options) end

---@class moonbeam.options.fft_ifftn
---@field axes? any the axes, a number or a list; negative: from the end
---@field normalize? boolean divide by the number of points

---Its inverse, divided by the number of points unless normalize = false: fft.ifftn(a [, {axes =, normalize =}]).
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_ifftn
function mb.fft.ifftn(a, options) end

---@class moonbeam.options.fft_ifftshift
---@field axes? any the axes, a number or a list; negative: from the end
---@field out? moonbeam.array the array for the result

---Undoes fftshift, for odd extents too.
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_ifftshift
function mb.fft.ifftshift(a, options) end

---@class moonbeam.options.fft_irfftn
---@field axes? any the axes, a number or a list; negative: from the end
---@field normalize? boolean divide by the number of points
---@field n? integer samples along the last axis named

---Its inverse: fft.irfftn(a [, {axes =, n =, normalize =}]).
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_irfftn
function mb.fft.irfftn(a, options) end

---Name and version of the library that computes the transforms.
---@param device? moonbeam.device|string 
function mb.fft.library(device) end

---Bytes that the library holds for plans.
---@param device? moonbeam.device|string 
function mb.fft.library_bytes(device) end

---The limit on what the library holds for plans, or nil.
---@param bytes? integer|string 
---@param device? moonbeam.device|string 
function mb.fft.limit(bytes, device) end

---The plans in the cache as a list, the latest used first, of {kind, shape, batch, in_place, work_bytes, library_bytes, in_use, last_use}.
---@param device? moonbeam.device|string 
function mb.fft.plans(device) end

---@class moonbeam.options.fft_rfftn
---@field axes? any the axes, a number or a list; negative: from the end

---Real-to-complex transform: fft.rfftn(a [, {axes =}]).
---@param a moonbeam.array 
---@param options? moonbeam.options.fft_rfftn
function mb.fft.rfftn(a, options) end

---@class moonbeam.options.fft_work
---@field device? moonbeam.device|string where the array is made
---@field batch? integer transforms at a time
---@field in_place? boolean in the memory of its input

---The bytes of the work area that a transform takes, and the source of that number.
---@param kind string 
---@param dims integer[] 
---@param options? moonbeam.options.fft_work
function mb.fft.work(kind, dims, options) end

---@class moonbeam.options.h5_create
---@field overwrite? boolean replace an existing file

---A new HDF5 file.
---@param path string 
---@param options? moonbeam.options.h5_create
function mb.h5.create(path, options) end

---@class moonbeam.h5.dataset
local h5_dataset = {}

---Closes the dataset.
function h5_dataset:close() end

---Indices of axis 1 that were never written, a list of {first, last}, and why.
function h5_dataset:missing() end

---Where the bytes of a contiguous dataset are in its file, {offset, bytes}, if they are moved without libhdf5; otherwise nil, and why, if that is known.
function h5_dataset:place() end

---@class moonbeam.options.h5_dataset_read
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result

---Reads the dataset, or a part of it.
---@param ... any 
function h5_dataset:read(...) end

---Shows the dataset as (frame, row, column): the numbers of these axes in the file, whose other axes have extent 1.
---@param axes number[] 
function h5_dataset:show(axes) end

---The other files that its data are in, by links or as parts of a virtual dataset: a list.
function h5_dataset:sources() end

---Takes the bits of the elements for unsigned integers (how = "unsigned") or for numbers in the other byte order ("swapped"), although the file says something else.
---@param how string 
function h5_dataset:take(how) end

---Writes an array into a part of the dataset.
---@param array moonbeam.array 
---@param ... any 
function h5_dataset:write(array, ...) end

---@class moonbeam.options.h5_open
---@field mode? "r"|"r+" r: read; r+: also write
---@field allow_external? boolean read data that the file refers to outside its own folder
---@field allow_missing? boolean read data with parts that were never written
---@field swmr? boolean read a file that its writer shares (HDF5's single writer, multiple readers), as it is when it is opened
---@field replaceable? boolean it is no input: what is written later may replace it

---Opens an HDF5 file.
---@param path string 
---@param options? moonbeam.options.h5_open
function mb.h5.open(path, options) end

---A file without a name, which is deleted when it is closed.
---@param folder string 
function mb.h5.scratch(folder) end

---@class moonbeam.h5
local h5 = {}

---An attribute of an object, or nil.
---@param path string 
---@param name string 
function h5:attribute(path, name) end

---All attributes of an object, by name.
---@param path string 
function h5:attributes(path) end

---Closes the file.
function h5:close() end

---@class moonbeam.options.h5_create_dataset
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field shape? integer[] its extents
---@field chunks? integer[] extents of a chunk
---@field deflate? integer compression, 0 to 9
---@field sparse? boolean parts that are never written take no space
---@field early? boolean its place in the file is fixed at once, however small it is
---@field attributes? table by name

---Makes a dataset to be written in parts.
---@param path string 
---@param options? moonbeam.options.h5_create_dataset
function h5:create_dataset(path, options) end

---@class moonbeam.options.h5_create_virtual
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field shape? integer[] its extents
---@field sources? table a list of {file =, path =, first =, last =}
---@field attributes? table by name

---Makes a dataset that shows datasets of other files as one: each source is indices first to last of axis 1.
---@param path string 
---@param options? moonbeam.options.h5_create_virtual
function h5:create_virtual(path, options) end

---A dataset of the file, to be read or written in parts.
---@param path string 
function h5:dataset(path) end

---Whether the file has an object of that path.
---@param path string 
function h5:exists(path) end

---@class moonbeam.options.h5_finish
---@field sync? boolean wait for the disk
---@field hold? boolean keep what the file replaced until close; returns its name

---Completes a created file and gives it its name; `marker` is the path of its completion time.
---@param marker? string 
---@param options? moonbeam.options.h5_finish
function h5:finish(marker, options) end

---Makes a group, and those above it, with an NX_class.
---@param path string 
---@param nxclass? string 
function h5:group(path, nxclass) end

---@class moonbeam.options.h5_link
---@field soft? boolean a link by name

---Makes a link at `path` to `target`.
---@param target string 
---@param path string 
---@param options? moonbeam.options.h5_link
function h5:link(target, path, options) end

---Makes the folder of slices beside a created file.
function h5:make_folder() end

---@class moonbeam.options.h5_read
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result

---Reads a dataset, or a part of it, into an array.
---@param path string 
---@param ... any 
function h5:read(path, ...) end

---Makes libhdf5 close a created file until something other than the bytes of its datasets is written; those bytes go to known places in the file.
function h5:rest() end

---Sets an attribute of an object.
---@param path string 
---@param name string 
---@param value any 
function h5:set_attribute(path, name, value) end

---The value of a small dataset: a number, a string or a list.
---@param path string 
function h5:value(path) end

---@class moonbeam.options.h5_walk
---@field attributes? boolean also the attributes

---All objects below a path: a list of {path, kind, shape, dtype, stored, chunks, filters, ...}.
---@param path? string 
---@param options? moonbeam.options.h5_walk
function h5:walk(path, options) end

---@class moonbeam.options.h5_write
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field chunks? integer[] extents of a chunk
---@field deflate? integer compression, 0 to 9
---@field attributes? table by name

---Writes an array, number, string or list as a dataset.
---@param path string 
---@param value any 
---@param options? moonbeam.options.h5_write
function h5:write(path, value, options) end

---Help on a name, a word, a function, a module or an array, as text.
---@param subject? any a name, a function, a module or a value
function mb.help.text(subject) end

---@class moonbeam.options.images_create
---@field overwrite? boolean replace an existing file
---@field spacing? number of voxels, for TIFF
---@field unit? string of the spacing, for TIFF
---@field meta? table what the file that it was made from says (tiff.open): for TIFF; for Zarr its voxel, interval of frames and names of channels
---@field origin? table how it was made: {title, input, parameters}, but for .npy
---@field voxel? table its size in m: {pixel, step}, for Zarr
---@field tiff_layout? "bigtiff"|"imagej" of a .tif result above 4 GB: bigtiff, which ImageJ opens by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone
---@field inside? string a folder that a Zarr folder is made in, which the caller removes
---@field shape? integer[] of one volume
---@field dtype? string element type; TIFF files hold u8, u16 and f32
---@field channels? integer how many, for TIFF and Zarr
---@field frames? integer how many, for TIFF and Zarr

---A new image file to be written block by block; its name decides the format: an object with volume(channel, frame), finish() and close(); without finish nothing is left.
---@param name string 
---@param options? moonbeam.options.images_create
function mb.images.create(name, options) end

---@class moonbeam.options.images_open
---@field channel? integer of a TIFF hyperstack or OME-Zarr
---@field frame? integer of a TIFF hyperstack or OME-Zarr
---@field axes? string of a TIFF file: what its pages are, Z, C and T from slow to fast, whatever the file says: Z, ZC, or ZC2 where there are 2 channels
---@field pages? table of a TIFF file: the first and the last of its pages to be read; without axes they are slices
---@field image? integer of a TIFF file that has several
---@field threads? integer of decoding; bounds its scratch

---An image file as a volume, with `meta`: what the file says ({spacing, unit, channels, frames, ...}).
---@param name string 
---@param options? moonbeam.options.images_open
function mb.images.open(name, options) end

---Reads an image onto a device (default: the default device).
---@param name string 
---@param device? moonbeam.device|string 
function mb.images.read(name, device) end

---@class moonbeam.options.images_write
---@field overwrite? boolean replace an existing file
---@field spacing? number of voxels, for TIFF
---@field unit? string of the spacing, for TIFF
---@field meta? table what the file that it was made from says (tiff.open): for TIFF; for Zarr its voxel, interval of frames and names of channels
---@field origin? table how it was made: {title, input, parameters}, but for .npy
---@field voxel? table its size in m: {pixel, step}, for Zarr
---@field tiff_layout? "bigtiff"|"imagej" of a .tif result above 4 GB: bigtiff, which ImageJ opens by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone
---@field inside? string a folder that a Zarr folder is made in, which the caller removes

---Writes an image; its name decides the format.
---@param name string 
---@param array moonbeam.array 
---@param options? moonbeam.options.images_write
function mb.images.write(name, array, options) end

---mb.bound(bound, fn, ...): what fn(...) returns; in a dry run, where fn may ask for values that do not exist, the bound.
---@param bound any 
---@param fn function 
function mb.ledger.bound(bound, fn) end

---Predicted beside measured: a line per step with both peaks and their difference.
---@param predicted moonbeam.ledger 
---@param measured moonbeam.ledger 
function mb.ledger.comparison(predicted, measured) end

---The rows in which two ledgers differ: a list of {step, a, b}, where a or b is nil beyond the end of one.
---@param a moonbeam.ledger 
---@param b moonbeam.ledger 
function mb.ledger.diff(a, b) end

---Is a dry run going on?
function mb.ledger.dry() end

---mb.dry_run(fn, ...): the ledger that mb.ledger(fn, ...) would give, without running.
---@param fn function 
function mb.ledger.dry_run(fn) end

---ledger.found(bound, value): the value that a real run has found; in a dry run, which cannot find it, the bound: of the values that are possible the one for which what follows takes most.
---@param bound any 
---@param value any 
function mb.ledger.found(bound, value) end

---Calls fn(...).
---@param fn function 
function mb.ledger.observe(fn) end

---Calls fn(...) and returns the ledger of that, then what fn returned.
---@param fn function 
function mb.ledger.record(fn) end

---Calls fn(...) with dry runs that know the values that `observe` found.
---@param finds table 
---@param fn function 
function mb.ledger.replay(finds, fn) end

---@class moonbeam.ledger
local ledger = {}

---The first row with the highest peak, and its number; nil for an empty ledger.
function ledger:peak_step() end

---@class moonbeam.options.ledger_print
---@field limit? integer rows at most

---Prints the text.
---@param options? moonbeam.options.ledger_print
function ledger:print(options) end

---The rows: {kind, device, label, owner, tag, keep, temp, work, live, peak}.
function ledger:rows() end

---@class moonbeam.options.ledger_text
---@field limit? integer rows at most

---The ledger as text: a row per step; the peak's row is marked.
---@param options? moonbeam.options.ledger_text
function ledger:text(options) end

---The ledger as JSON: {"dry":, "peak":, "basis":, "beyond":[...], "rows":[...]}; basis only where a device was planned for without being here, beyond only where the budget is too small.
function ledger:to_json() end

---mb.mem(): a list, oldest first, of {name, dtype, shape, bytes, storage, age (s), owner, device, references, view}; its text is a table.
---@param env any 
function mb.mem.list(env) end

---@class moonbeam.options.metrics_i_divergence
---@field eps? number the least value of a

---I-divergence of the reference y from the model a: sum of y log(y / a) - y + a; a is bounded below by eps (default 1e-12).
---@param a moonbeam.array 
---@param y moonbeam.array 
---@param options? moonbeam.options.metrics_i_divergence
function mb.metrics.i_divergence(a, y, options) end

---Normalized cross-correlation about the means (Pearson's): 1 for images that differ by a factor and an offset.
---@param a moonbeam.array 
---@param b moonbeam.array 
function mb.metrics.ncc(a, b) end

---@class moonbeam.options.metrics_psnr
---@field range? number greatest less least value

---Peak signal-to-noise ratio in dB; the peak is that of the reference, greatest less least, or options.range.
---@param a moonbeam.array 
---@param b moonbeam.array 
---@param options? moonbeam.options.metrics_psnr
function mb.metrics.psnr(a, b, options) end

---Root of the mean squared difference.
---@param a moonbeam.array 
---@param b moonbeam.array 
function mb.metrics.rmse(a, b) end

---@class moonbeam.options.metrics_ssim
---@field range? number greatest less least value

---Structural similarity (Z.
---@param a moonbeam.array 
---@param b moonbeam.array 
---@param options? moonbeam.options.metrics_ssim
function mb.metrics.ssim(a, b, options) end

---@class moonbeam.options.npy_create
---@field shape? number[] its extents
---@field dtype? "u8"|"u16"|"i32"|"f16"|"f32"|"f64"|"c64"|"c128" its element type
---@field overwrite? boolean replace an existing file

---A new file to be written block by block: an object with volume(), finish() and close(); without finish nothing is left.
---@param name string 
---@param options? moonbeam.options.npy_create
function mb.npy.create(name, options) end

---The elements of a file as a volume.
---@param name any 
function mb.npy.open(name) end

---The array in a .npy file, on the host.
---@param name any 
function mb.npy.read(name) end

---@class moonbeam.options.npy_write
---@field overwrite? boolean replace an existing file

---Writes an array (any device) as a .npy file; the file gets its name when it is complete.
---@param name string 
---@param array moonbeam.array 
---@param options? moonbeam.options.npy_write
function mb.npy.write(name, array, options) end

---The descriptor of an operator: arguments, results, how it can be cut, samples.
---@param name string 
function mb.op.describe(name) end

---@class moonbeam.options.op_estimate
---@field device? moonbeam.device|string where the array is made

---What a call of an operator would take: results, scratch and peak bytes.
---@param name string 
---@param inputs table 
---@param params? table 
---@param options? moonbeam.options.op_estimate
function mb.op.estimate(name, inputs, params, options) end

---The names of all operators.
function mb.op.list() end

---@class moonbeam.options.op_max_slices
---@field pattern? "projection"|"sinogram"|"all" projection: axis 1 is cut; sinogram: axis 2; all: either, the smaller n
---@field dim? integer the axis of the first input that is cut, instead of pattern
---@field dims? table the extents of its other axes, in their order
---@field dtype? string of the first input
---@field available? integer|string what there is
---@field params? table the operator's parameters
---@field extent? integer slices of the whole, where parameters count them (a shift for each projection, a shape); n is then of the result, and what n slices need is counted with them
---@field inputs? table its other inputs by name or number, {dtype, extent, ...}; -1 is n
---@field granularity? integer 1 counts bare bytes
---@field device? moonbeam.device|string whose FFT work areas count

---How many slices an operator can take at a time: the largest n whose inputs, results and scratch fit: n slices run in that many bytes, and n + 1 do not.
---@param name string an operator
---@param options? moonbeam.options.op_max_slices
---@return any # n (0: not even one, or not one packet of the result with its neighbors), the dtype of the first result, the bytes that n slices take, the basis of that number for a planned device (otherwise nil), how many of the n a piece needs before and after its own slices (inside an array, n slices give n - before - after slices of the result), how many slices of the result are treated together (the size of a piece is a multiple of that number), and how many slices fit as a whole array, which has no neighbors.
function mb.op.max_slices(name, options) end

---@class moonbeam.options.op_piece
---@field axis? integer the axis of the first array that is cut
---@field first? integer first row of the result
---@field last? integer last row of the result
---@field device? moonbeam.device|string where the array is made

---A piece of a call: what is needed for rows first to last of the first result, if the call is cut along an axis of its first array.
---@param name string 
---@param inputs table 
---@param params? table 
---@param options? moonbeam.options.op_piece
function mb.op.piece(name, inputs, params, options) end

---Runs an operator by its name; `mb.<name>(...)` is the same.
---@param name string 
---@param ... any 
function mb.op.run(name, ...) end

---Whether a device has this operator.
---@param name string 
---@param device? moonbeam.device|string 
function mb.op.supported(name, device) end

---A single ball, for density checks: phantom.ball(density, radius [, x, y, z]).
---@param density number 
---@param radius number 
---@param x? number 
---@param y? number 
---@param z? number 
function mb.phantom.ball(density, radius, x, y, z) end

---Heights of `rows` detector rows above the middle, row 1 on top.
---@param rows integer 
function mb.phantom.heights(rows) end

---Flat vector in pixels.
---@param ellipsoids table 
---@param half_width number 
---@param half_height? number 
---@param density? number 
function mb.phantom.scale(ellipsoids, half_width, half_height, density) end

---@class moonbeam.options.phantom_spheres
---@field count? integer the number of spheres
---@field radius? any {least, greatest} or one number
---@field flatten? number height over width: below 1 if planes are further apart than pixels
---@field density? any {least, greatest} or one number; added where spheres overlap
---@field margin? number how far centers stay from the faces; 0: some spheres are cut
---@field background? number added everywhere
---@field seed? integer spheres of one seed are the same
---@field subsamples? integer points per voxel edge
---@field device? moonbeam.device|string where the volume is made

---A volume with spheres at random places, voxels that an edge crosses in proportion.
---@param size any 
---@param options? moonbeam.options.phantom_spheres
---@return any # the volume, f32, of extents size = {nz, ny, nx}, and the spheres: a list of {density =, radius =, height =, center = {z, y, x}}, centers 0-based.
function mb.phantom.spheres(size, options) end

---Values at percentiles of the finite elements, and how many elements are finite.
---@param array moonbeam.array 
---@param percentiles number[] 
function mb.picture.percentiles(array, percentiles) end

---@class moonbeam.options.picture_write_png
---@field bits? table bits of a value: 8 or 16
---@field low? number the value that becomes black
---@field high? number the value that becomes white
---@field gamma? number above 1 is brighter
---@field text? string a line that is kept inside the file
---@field overwrite? boolean replace an existing file

---Writes (row, column), or (row, column, 3) of u8, as a PNG.
---@param path string 
---@param array moonbeam.array 
---@param options? moonbeam.options.picture_write_png
function mb.picture.write_png(path, array, options) end

---@class moonbeam.options.pipeline_new
---@field devices? any where the work is done: a device, a list of them, "all" or "cuda:0,cuda:1" (mb.device.several)
---@field budget? integer|string the limit for each device
---@field host_budget? integer|string what stores between sections may take of host memory
---@field scratch? string the folder for stores that do not fit there
---@field rows? table rows of the result, {first, last}
---@field part? number[] {K, N}: only the K-th of N shares of these rows, which the command join puts together
---@field block? integer rows at a time
---@field overlap? any read and write while computing; "auto": if that fits
---@field threads? integer threads that read, and as many that write
---@field pinned? integer|string pinned host memory for reading and writing
---@field schedule? "free"|"fixed" how several devices share the blocks: the next block goes to the device that is free, or block i to device i mod n
---@field order? number[] a fixed schedule: the number of the device for each block; the list repeats
---@field input? string what the values are if the scan does not say: transmission or line integrals
---@field steps? any files with the user's own steps, or a list of definitions
---@field ranks? any false: this rank of an MPI run works alone; a number: plans for so many; ranks that share a file leave this out (mb.cluster)
---@field quiet? boolean no progress

---Binds a recipe to a scan and to devices.
---@param scan table the result of mb.scan.open or mb.scan.of_arrays
---@param recipe any the steps, the name of a file that contains them, or of a recipe of the library
---@param options? moonbeam.options.pipeline_new
---@return any # a pipeline: p:plan(), p:part(), p:run(), p:slices().
function mb.pipeline.new(scan, recipe, options) end

---@class moonbeam.pipeline
local pipeline = {}

---The same pipeline with changed options, such as {rows = {1, 2}}: options of mb.pipeline but for devices, input, steps and ranks.
---@param changes table 
function pipeline:part(changes) end

---What a run will take: {sections, peaks (by device), peak, at_most, exact, pinned, scratch}.
function pipeline:plan() end

---Runs the pipeline: into a file, {output = "fossil.h5", overwrite, slices_per_file, tiff_layout, zarr_layout, each, resume, discard} (default output: the file that step save names), or through a function(block, first), which is called with each block of the result and must not use it after it returns; of several ranks each calls it with its own blocks.
---@param options? any 
---@return any # the report: {seconds, peaks, as_planned, values, verdicts, warnings, sections, ...}.
function pipeline:run(options) end

---The result of the whole chain for the rows {first, last}: an array on the host, which the caller closes.
---@param rows? table 
function pipeline:slices(rows) end

---@class moonbeam.options.plan_max_chunk
---@field shape? integer[] {angles, rows, columns}
---@field dtype? "u8"|"u16"|"i32"|"f16"|"f32"|"f64" type of the frames
---@field flats? integer the number of frames without the sample
---@field darks? integer the number of frames without the beam
---@field output_dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---The largest counts for which those parts fit: {all = rows, projection = frames, sinogram = rows}, at most what the scan has; and their peaks, each with `basis` on a planned device.
---@param options? moonbeam.options.plan_max_chunk
function mb.plan.max_chunk(options) end

---@class moonbeam.options.plan_max_count
---@field device? moonbeam.device|string where fn is planned
---@field available? integer|string what there is
---@field limit? integer the largest n
---@field granularity? integer n is a multiple of it

---The largest n for which fn(device, n) stays within the available bytes, and its peak.
---@param fn function a function of a device and n
---@param options? moonbeam.options.plan_max_count
---@return any # 0 and the error if not even the first n fits.
function mb.plan.max_count(fn, options) end

---The largest number of slices that fits: the largest n for which fn(make_input(n, device), device) stays within the available bytes, input included, and its peak.
---@param fn function a function of an array and a device
---@param make_input function a function of n and a device that returns the array
---@param available? integer|string what there is
---@param device? moonbeam.device|string where fn is planned
function mb.plan.max_slices(fn, make_input, available, device) end

---The memory that a function needs: plans fn(device, ...), which takes none.
---@param fn function a function of a device and more
---@param device? moonbeam.device|string where fn is planned
---@return any # {peak =, live =, reach =, pinned =, results =, basis =}: the most bytes that fn has at a time beyond those that are live already, those that are left at the end, how far the pool is taken from its low and its high end ({low, high}, for pool.activate), the most pinned host memory, what fn returned (arrays as {dtype, shape, bytes}), and on a planned device what the figures rest on.
function mb.plan.peak(fn, device) end

---The memory that a function needs on several devices: plans fn(device, ..., ...) on those of the list and the host.
---@param fn function a function of the devices and more
---@param devices table a list of devices; the first one is the default device meanwhile
---@return any # {peak =, live =, reach =, results =, basis =} as plan.peak, but peak, live and reach are tables by device: {["cuda:0"] = 4096, host = 512}. peak.pinned is that of pinned host memory.
function mb.plan.peaks(fn, devices) end

---@class moonbeam.options.plan_required_memory
---@field shape? integer[] {angles, rows, columns}
---@field dtype? "u8"|"u16"|"i32"|"f16"|"f32"|"f64" type of the frames
---@field flats? integer the number of frames without the sample
---@field darks? integer the number of frames without the beam
---@field output_dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---The peaks of a reconstruction, in bytes: {all, projection, sinogram}, and on a planned device `basis`: what they rest on.
---@param count integer rows or frames at a time
---@param options? moonbeam.options.plan_required_memory
function mb.plan.required_memory(count, options) end

---@class moonbeam.options.plot_areas
---@field names? table names of the bands
---@field x_label? string below the chart
---@field form? "number"|"bytes" how values are written
---@field file? string write a picture: FILE.png or FILE.svg
---@field overwrite? boolean replace an existing file
---@field width? integer of a file in pixels, in a terminal in letters
---@field height? integer of a file in pixels, in a terminal in letters
---@field title? string a line above
---@field text? boolean return the text for a terminal, without colors, and print nothing

---Bands stacked on each other: lists of as many numbers, none below 0, the lowest band first.
---@param values table a list of lists of numbers
---@param options? moonbeam.options.plot_areas
function mb.plot.areas(values, options) end

---@class moonbeam.options.plot_histogram
---@field bins? integer bars
---@field range? number[] {low, high}, where the first bar begins and the last ends
---@field x_label? string below the chart
---@field file? string write a picture: FILE.png or FILE.svg
---@field overwrite? boolean replace an existing file
---@field width? integer of a file in pixels, in a terminal in letters
---@field height? integer of a file in pixels, in a terminal in letters
---@field title? string a line above
---@field text? boolean return the text for a terminal, without colors, and print nothing

---How often values occur in an array, counted exactly where the array is.
---@param array moonbeam.array values, any shape
---@param options? moonbeam.options.plot_histogram
function mb.plot.histogram(array, options) end

---@class moonbeam.options.plot_image
---@field slice? integer of axis 1, from 1, where there are three axes
---@field range? number[] {black, white}, two values
---@field percentiles? number[] {black, white}, of the finite values of the picture
---@field protocol? "kitty"|"sixel"|"blocks"|"text" how the terminal shows it
---@field width? integer columns of the terminal at most
---@field height? integer rows of the terminal at most
---@field file? string write a PNG picture in full size instead
---@field overwrite? boolean replace an existing file

---An array of two axes as a gray picture, of three axes one slice, (row, column, 3) of u8 in colors: in the terminal as mb.show shows it, or with `file` as a PNG picture in full size.
---@param array moonbeam.array what to show
---@param options? moonbeam.options.plot_image
function mb.plot.image(array, options) end

---@class moonbeam.options.plot_lines
---@field x? any where the values lie: as many numbers
---@field names? table names of the lines
---@field x_label? string below the chart
---@field file? string write a picture: FILE.png or FILE.svg
---@field overwrite? boolean replace an existing file
---@field width? integer of a file in pixels, in a terminal in letters
---@field height? integer of a file in pixels, in a terminal in letters
---@field title? string a line above
---@field text? boolean return the text for a terminal, without colors, and print nothing

---Lines over x: of a list of numbers, an array of one axis, or a list of these (of an array of two axes up to 16 rows).
---@param values any the values of a line, or a list of lines
---@param options? moonbeam.options.plot_lines
function mb.plot.lines(values, options) end

---Lines that add up to what the system or driver reports as used on the device: live (arrays, scratch, FFT work areas), idle (the pool's other committed memory), fft_plans (the library's own), library (the backend's context and modules), other (everything else: other processes; on the host also this program); used is their sum, total what there is.
---@param device? moonbeam.device|string 
function mb.pool.accounting(device) end

---activate(bytes [, device]): commits memory up front, so that arrays up to that many bytes need no system call.
---@param bytes any 
---@param device any 
function mb.pool.activate(bytes, device) end

---Has the pool been activated, and not shut down since?
---@param device? moonbeam.device|string 
function mb.pool.active(device) end

---@class moonbeam.options.pool_alloc
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made

---A block by hand, as an array of one axis.
---@param bytes integer|string 
---@param options? moonbeam.options.pool_alloc
function mb.pool.alloc(bytes, options) end

---@class moonbeam.options.pool_alloc_pitched
---@field dtype? string element type
---@field device? moonbeam.device|string where the block is
---@field pitch? integer bytes from row to row, whole elements

---Rows at a pitch: an array (height, width), and the pitch in bytes.
---@param width integer 
---@param height integer 
---@param options? moonbeam.options.pool_alloc_pitched
function mb.pool.alloc_pitched(width, height, options) end

---Live blocks in address order, with the lines that made them.
---@param device? moonbeam.device|string 
---@return any # a list of {offset, bytes, requested, pitch_waste, sequence, age (s), end, thread, owner, tag}.
function mb.pool.blocks(device) end

---The limit on live bytes; sets it when bytes (or "8G") are given.
---@param bytes? integer|string 
---@param device? moonbeam.device|string 
function mb.pool.budget(bytes, device) end

---What a block of that many bytes takes: whole units of 512.
---@param bytes integer|string 
function mb.pool.ceil_1d(bytes) end

---What alloc_pitched takes: rows of width_bytes at a pitch of whole units.
---@param width_bytes integer 
---@param height integer 
function mb.pool.ceil_2d(width_bytes, height) end

---nil if the pool is consistent, otherwise what is wrong.
---@param device? moonbeam.device|string 
function mb.pool.check(device) end

---Frees what Lua no longer refers to.
function mb.pool.collect() end

---Damaged guards, of blocks freed since the pool was made and of live ones: {owner, freed, offset, bytes, after, distance, value}; its text is a report.
---@param device? moonbeam.device|string 
function mb.pool.damage(device) end

---Guard words around blocks, and patterns in new and freed ones.
---@param on boolean 
---@param device? moonbeam.device|string 
function mb.pool.debug(on, device) end

---The bytes of one element of a type.
---@param dtype string 
function mb.pool.element_bytes(dtype) end

---Ends the innermost tag, or the innermost tag of that name and all tags inside it.
---@param name? string 
function mb.pool.end_tag(name) end

---The latest events of the trace, oldest first.
---@param device? moonbeam.device|string 
---@return any # a list of {action, ns, offset, bytes, live, owner, tag, thread, end, block}.
function mb.pool.events(device) end

---free(block): releases it.
---@param block any 
function mb.pool.free(block) end

---What is live after a collection, by owner and tag: as usage, and its text is a report.
---@param device? moonbeam.device|string 
function mb.pool.leaks(device) end

---A picture of the address range, as text: the low end (arrays), the central gap, the high end (scratch), with their blocks below.
---@param device? moonbeam.device|string 
function mb.pool.map(device) end

---Calls fn(...) and returns the highest live bytes during the call above those before it, then what fn returned.
---@param fn function 
---@param device? moonbeam.device|string 
---@param ...? any 
function mb.pool.peak(fn, device, ...) end

---@class moonbeam.options.pool_plot
---@field by? "owner"|"tag"|"end" what the bands are: source lines and operators, tags (mb.pool.tag), or the arrays' and the scratch's end of the pool
---@field over? "events"|"time" the axis: the events one after the other, or their times
---@field device? moonbeam.device|string whose pool
---@field file? string write a picture: FILE.png or FILE.svg
---@field overwrite? boolean replace an existing file
---@field width? integer of a file in pixels, in a terminal in letters
---@field height? integer of a file in pixels, in a terminal in letters
---@field title? string a line above
---@field text? boolean return the text for a terminal, without colors, and print nothing

---A chart of the memory of a pool over its latest events (up to 16384): live bytes stacked by owner, tag or end, the budget as a dashed line, the peak marked.
---@param options? moonbeam.options.pool_plot
function mb.pool.plot(options) end

---From now on, `stats().reach_arrays` and `.reach_scratch` count from where the blocks reach now.
---@param device? moonbeam.device|string 
function mb.pool.reset_reach(device) end

---The bytes that a request of this size takes: whole units of 512 bytes.
---@param bytes integer|string 
function mb.pool.round(bytes) end

---Measures from here on: `scope:finish()` returns the peak above entry and what was live at entry.
---@param device? moonbeam.device|string 
function mb.pool.scope(device) end

---Returns the leak report, releases what is still live (its arrays then say so) and gives all memory back.
---@param device? moonbeam.device|string 
---@return any # the leak report, releases what is still live (its arrays then say so) and gives all memory back. The pool can be used and activated again; nothing of the past reappears.
function mb.pool.shutdown(device) end

---Replays the trace: the memory that would have been enough.
---@param device? moonbeam.device|string 
---@return any # the peak of live bytes, the memory that would have been enough (committed on demand), and the size of one fixed range that would have been enough.
function mb.pool.smallest(device) end

---Live, peak, budget, largest hole and counts of a device's pool.
---@param device? moonbeam.device|string 
function mb.pool.stats(device) end

---Names what the next blocks are for, until the returned value is closed: `local _ <close> = mb.pool.tag("x")`.
---@param name string 
function mb.pool.tag(name) end

---The names of the open tags, outermost first.
function mb.pool.tags() end

---@class moonbeam.options.pool_trace
---@field device? moonbeam.device|string whose pool
---@field format? "csv"|"json"|"chrome" text instead of a list: csv is RMM's replay log, chrome a timeline for Chrome and Perfetto
---@field file? string writes the text there
---@field overwrite? boolean replace an existing file

---The latest events of the pool (up to 16384), oldest first: {action = "alloc", "free" or "refused", ns, offset, bytes, live, owner, tag, thread, end, block}.
---@param options? moonbeam.options.pool_trace
function mb.pool.trace(options) end

---Gives the memory of holes back to the device.
---@param device? moonbeam.device|string 
function mb.pool.trim(device) end

---What is live, by "owner" (source line or operator; the default), "tag" or "end" (array, scratch), most bytes first: {<by>, bytes, blocks, requested, first, age}, where first is the number of the oldest allocation and age its seconds.
---@param by? string 
---@param device? moonbeam.device|string 
function mb.pool.usage(by, device) end

---The views that were made under a tag and are not released: {offset (of the block), sequence, owner, tag}.
---@param device? moonbeam.device|string 
function mb.pool.views(device) end

---Ends the line; returns the seconds it took.
function mb.progress.finish() end

---@class moonbeam.options.progress_new
---@field unit? string what is counted
---@field quiet? boolean show nothing
---@field form? "bar"|"line"|"json"|"none" how it is shown

---Begins to show progress.
---@param label? string what is done
---@param total? any how many items there are, or a list of sections
---@param options? moonbeam.options.progress_new
function mb.progress.new(label, total, options) end

---The part of all work that is done, 0 to 1, and the seconds that the rest will take, nil where nothing tells yet.
function mb.progress.remaining() end

---Section `number` begins; those before it are done.
---@param number integer 
function mb.progress.section(number) end

---`count` more are done.
---@param count number 
function mb.progress.step(count) end

---@class moonbeam.options.progress_watch
---@field quiet? boolean show nothing

---Shows what work says of itself until the returned value is closed, which leaves no line: "searching the axis: trial slice 12 of 65".
---@param label string what is done
---@param options? moonbeam.options.progress_watch
function mb.progress.watch(label, options) end

---What lies under a measured PSF, such as a camera's offset: {level, the median of its faces; share, the part of the PSF's sum that a background of this level is; flat, whether the faces are a pedestal}.
---@param a moonbeam.array 
function mb.psf.background(a) end

---Bessel function of the first kind, order 0 (M.
---@param x number 
function mb.psf.bessel_j0(x) end

---@class moonbeam.options.psf_born_wolf
---@field na? number numerical aperture
---@field wavelength? number emission wavelength in vacuum; all lengths have one unit
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field area? boolean a sample is the mean over its pixel, as a camera sees it; false: the light at its center

---Widefield PSF of Born and Wolf (Principles of Optics, 8.8), the mean over each pixel about the middle, sum 1, f32 (z, y, x): h(r, z) = |integral over rho from 0 to 1 of J0(k NA r rho) exp(-i k NA^2 z rho^2 / (2 n)) rho drho|^2, k = 2 pi / wavelength.
---@param size any 
---@param options? moonbeam.options.psf_born_wolf
function mb.psf.born_wolf(size, options) end

---The center of a PSF: `how` is "middle" (default), "fft" (n / 2 rounded down), "maximum" (the centroid of the top, with fractions: of what is above half of the maximum, less that), "mass" (with fractions), or a list of coordinates, which is checked and returned.
---@param a moonbeam.array 
function mb.psf.center(a) end

---@class moonbeam.options.psf_confocal
---@field na? number numerical aperture
---@field wavelength? number emission wavelength in vacuum; all lengths have one unit
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field excitation? number excitation wavelength in vacuum
---@field pinhole? number diameter of the pinhole in Airy units of the emission (1.22 wavelength / na); 0: a point
---@field field? "vector"|"scalar" focus of polarized waves, right for all apertures, or the scalar paraxial one

---Confocal PSF: excitation times detection through the pinhole.
---@param size any 
---@param options? moonbeam.options.psf_confocal
function mb.psf.confocal(size, options) end

---@class moonbeam.options.psf_crop
---@field energy? number part of the sum to keep along every axis
---@field center? any middle, fft, maximum, mass or coordinates (psf.center)

---The smallest box around the center, symmetric about it, that holds `energy` (default 0.99) of the sum along every axis.
---@param a moonbeam.array 
---@param options? moonbeam.options.psf_crop
function mb.psf.crop(a, options) end

---@class moonbeam.options.psf_gaussian
---@field center? number|number[] 0-based position of the peak; default (n - 1) / 2 rounded down, the default center of otf
---@field normalize? boolean true: the sum is 1; false: the peak is 1
---@field device? moonbeam.device|string where the PSF is made
---@field out? moonbeam.array the array for the result

---Gaussian PSF: psf.gaussian(size, sigma [, {center, normalize, device}]): the operator psf_gaussian.
---@param size any 
---@param sigma any 
---@param options? moonbeam.options.psf_gaussian
function mb.psf.gaussian(size, sigma, options) end

---@class moonbeam.options.psf_gibson_lanni
---@field na? number numerical aperture
---@field wavelength? number emission wavelength in vacuum; all lengths have one unit
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field index_design? number of the immersion that the objective is made for
---@field working_distance? number of the objective, where those two differ
---@field index_sample? number refractive index of the sample
---@field depth? number depth of the emitter under the coverslip
---@field index_glass? number of the coverslip
---@field index_glass_design? number of the coverslip that the objective is made for
---@field glass? number thickness of the coverslip, where it is not that of the design
---@field glass_design? number thickness of that of the design
---@field area? boolean a sample is the mean over its pixel, as a camera sees it; false: the light at its center

---Widefield PSF through layers of different refractive index (S.
---@param size any 
---@param options? moonbeam.options.psf_gibson_lanni
function mb.psf.gibson_lanni(size, options) end

---@class moonbeam.options.psf_light_sheet
---@field na? number numerical aperture
---@field wavelength? number emission wavelength in vacuum; all lengths have one unit
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field field? "vector"|"scalar" focus of polarized waves, right for all apertures, or the scalar paraxial one
---@field sheet? number thickness of the light sheet, full width at half maximum
---@field sheet_na? number numerical aperture of the sheet's beam
---@field excitation? number excitation wavelength in vacuum, with sheet_na
---@field area? boolean a sample is the mean over its pixel, as a camera sees it; false: the light at its center

---Light-sheet PSF: the widefield PSF of the detection times the sheet's profile along z.
---@param size any 
---@param options? moonbeam.options.psf_light_sheet
function mb.psf.light_sheet(size, options) end

---The share of light that a model of this size {nz, ny, nx} holds, 0 to 1: that of the plane which loses most, in a square of the smaller lateral extent; at most 17 planes are looked at.
---@param model string 
---@param size any 
---@param optics any 
function mb.psf.light_within(model, size, optics) end

---A copy, f32, that sums to 1.
---@param a moonbeam.array 
function mb.psf.normalize(a) end

---A PSF whose center lies on a voxel, the nearest one: psf.on_voxel(a, center), center a list of coordinates as psf.center returns it.
---@param a moonbeam.array 
---@param center number[] 
function mb.psf.on_voxel(a, center) end

---@class moonbeam.options.psf_recenter
---@field center? any middle, fft, maximum, mass or coordinates (psf.center)

---Shifts a PSF so that its center (option `center`, default "mass") comes to the middle voxel, by phase: sub-pixel and circular, in single precision.
---@param a moonbeam.array 
---@param options? moonbeam.options.psf_recenter
function mb.psf.recenter(a, options) end

---@class moonbeam.options.psf_resample
---@field center? any what comes to the middle voxel: middle, fft, maximum, mass or coordinates (psf.center)
---@field size? any the result's extents

---A PSF at other distances of samples: psf.resample(a, from, to [, options]), both one number per axis in one unit, such as a measured PSF at the image's voxels.
---@param a moonbeam.array 
---@param from any 
---@param to any 
---@param options? moonbeam.options.psf_resample
function mb.psf.resample(a, from, to, options) end

---@class moonbeam.options.psf_richards_wolf
---@field na? number numerical aperture
---@field wavelength? number emission wavelength in vacuum; all lengths have one unit
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field polarization? "none"|"x"|"y" of the light, along x or y; none: of emitters that turn freely
---@field area? boolean a sample is the mean over its pixel, as a camera sees it; false: the light at its center

---Widefield PSF of a lens of any aperture: the vectorial focus of an aplanatic lens.
---@param size any 
---@param options? moonbeam.options.psf_richards_wolf
function mb.psf.richards_wolf(size, options) end

---The size {nz, ny, nx} of a model for an image of this shape (z, y, x): all distances of two of its planes, and the fewest pixels, an odd number, that hold `share` (default 0.98) of the light of every plane (psf.light_within), but no more than the distances of two of its pixels.
---@param model string 
---@param shape any 
---@param optics any 
---@param share? number 
function mb.psf.size_for(model, shape, optics, share) end

---A PSF without its background: subtracts `level` (default that of psf.background), negative values become 0, also with a level of 0.
---@param a moonbeam.array 
---@param level? number 
function mb.psf.subtract_background(a, level) end

---The sum of all elements; 1 in a dry run.
---@param a moonbeam.array 
function mb.psf.sum(a) end

---@class moonbeam.options.psf_two_photon
---@field na? number numerical aperture
---@field pixel? number lateral distance of samples
---@field step? number axial distance of samples
---@field index? number refractive index of the immersion
---@field device? moonbeam.device|string where the PSF is made
---@field excitation? number excitation wavelength in vacuum
---@field field? "vector"|"scalar" focus of polarized waves, right for all apertures, or the scalar paraxial one

---Two-photon PSF: the square of the excitation's intensity, all emitted light being collected.
---@param size any 
---@param options? moonbeam.options.psf_two_photon
function mb.psf.two_photon(size, options) end

---@class moonbeam.options.recon_center_bounds
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---The 0-based columns {low, high}, inclusive, between which `recon.find_center` returns the axis for any frames of this scan (same options).
---@param scan table 
---@param options? moonbeam.options.recon_center_bounds
function mb.recon.center_bounds(scan, options) end

---@class moonbeam.options.recon_center_picture
---@field overwrite? boolean replace an existing file

---Writes a PNG of how well opposite projections match for each column of the axis, from the table that `recon.find_center` returned.
---@param path string 
---@param details table 
---@param options? moonbeam.options.recon_center_picture
function mb.recon.center_picture(path, details, options) end

---Warns on the standard error if `bytes` differ from `promised` (or if `kept` is given and false).
---@param what string 
---@param bytes integer 
---@param promised integer 
function mb.recon.check_bytes(what, bytes, promised) end

---@class moonbeam.options.recon_check_values
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---Checks the values of a few frames before a scan is reconstructed: {kind = "flats", "transmission" or "line integrals", text, warnings}.
---@param scan table 
---@param options? moonbeam.options.recon_check_values
function mb.recon.check_values(scan, options) end

---Reads and reconstructs one chunk of rows: `recon.chunk(scan, device, first, last, settings)`.
---@param scan table 
---@param device moonbeam.device|string 
---@param first integer 
---@param last integer 
---@param settings table 
function mb.recon.chunk(scan, device, first, last, settings) end

---Returns the scan with its compressed frames decoded (see unpack.lua), which the caller closes (<close>), if the chunks of `plan` and a preceding search for the axis (`searched`) would decode them more than once; otherwise the scan itself.
---@param scan table 
---@param options? table 
---@param plan? table 
---@param searched? any 
---@return any # the scan with its compressed frames decoded (see unpack.lua), which the caller closes (<close>), if the chunks of `plan` and a preceding search for the axis (`searched`) would decode them more than once; otherwise the scan itself. Without `plan`, all rows of the options are read.
function mb.recon.decoded(scan, options, plan, searched) end

---@class moonbeam.options.recon_describe
---@field level? "run"|"plan"|"all" how much is told: what matters in a run, what matters before it, all

---Text of a plan, for people.
---@param plan table 
---@param options? moonbeam.options.recon_describe
function mb.recon.describe(plan, options) end

---@class moonbeam.options.recon_expected_values
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---What `recon.check_values` can say without reading frames: the kind and a line of text.
---@param scan table 
---@param options? moonbeam.options.recon_expected_values
function mb.recon.expected_values(scan, options) end

---@class moonbeam.options.recon_find_center
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---Finds the rotation axis of a scan by registering opposite projections, and checks it in other ways.
---@param scan table 
---@param options? moonbeam.options.recon_find_center
---@return any # the 0-based column, a line of text that says how it was found, and a table: verdict ("found"; "differ": the two ways do not agree; "edge" of the search; "ambiguous": two columns match, or opposite projections match worse than noise explains, or the column is beside one that shows no sample, and no second way confirms it; "flat": they have nothing in common; "mass": there are no opposite projections, and centers of mass decide; "slices": only trial slices decide), remedy (a sentence, if the verdict needs one), pair, mass and slices (the column of each way), residual (0: opposite projections match; about 1: they have nothing in common), uncertainty (px), curve (of residuals over columns), notice (a sentence, if the scan looks like a half acquisition), searched (where the scan says a column: the first and the last one that are searched), left_out ({pixels, columns}: how many pixels were filled in, and how many columns of which half are).
function mb.recon.find_center(scan, options) end

---@class moonbeam.options.recon_find_range
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---The range {low, high} for storing a scan's slices as `options.dtype`.
---@param scan table 
---@param options? moonbeam.options.recon_find_range
function mb.recon.find_range(scan, options) end

---@class moonbeam.options.recon_find_tilt
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---The tilt of the axis in the plane of the detector, in radians: the option axis_tilt of a scan whose axis leans.
---@param scan table 
---@param options? moonbeam.options.recon_find_tilt
---@return any # the angle (positive: further right in lower rows), and a table: verdict ("found"; "differ": the columns are more than half a pixel off the line; "few": only two heights tell; "flat": less than two do; "low": the scan has less than 8 rows), remedy (a sentence, if the verdict needs one), centers (a list of {row, column, residual, uncertainty}), apart (px, the largest distance of a column from the line).
function mb.recon.find_tilt(scan, options) end

---Queues the reading of what a chunk of rows needs (1-based, inclusive; vertical shifts need more rows): the input of `recon.slices`.
---@param scan table 
---@param device moonbeam.device|string 
---@param first integer 
---@param last integer 
---@param settings table 
---@param carrier? table 
function mb.recon.frames(scan, device, first, last, settings, carrier) end

---@class moonbeam.options.recon_plan
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---What a reconstruction will take: method, chunk height, number of chunks, bytes.
---@param scan table 
---@param options? moonbeam.options.recon_plan
function mb.recon.plan(scan, options) end

---@class moonbeam.options.recon_range_codes
---@field device? any where the work is done
---@field devices? any several devices, as for mb.device.several
---@field available? any bytes that it may take
---@field chunk? any rows at a time
---@field rows? any {first, last} of the detector's rows, from 1
---@field part? any {K, N}: only the K-th of N shares of these rows (the command join puts their results together)
---@field ranks? any the number of ranks of an MPI run that share the chunks (mb.cluster.size)
---@field center? any 0-based column of the rotation axis, halfway down the detector
---@field axis_tilt? number angle between the axis and the detector's columns; positive: further right in lower rows
---@field vertical_shifts? number[] rows to shift each projection by: one number per projection
---@field shifted_rows? any rows that vertical shifts take from outside the detector: "mark" in the result, or "leave_out"
---@field flip? any how the frames are stored: "none" (upright), "rows" (upside down), "columns" (mirrored) or "both"
---@field reverse_rotation? any true: the stage turns the other way than the angles say
---@field flat_mode? any how flats and darks are averaged: "mean" or "median"
---@field flat_interpolation? any "mean": all flats are averaged; "linear": between groups of flats, by frame number (step flat_field)
---@field normalize_current? "no"|"yes"|"if_known" divide by the ring current: no, yes, or if_known, where the scan has it
---@field log? any false: the frames are line integrals already
---@field overlap? any read and write beside the computing, which takes a second set of chunks on the device; "auto": where that fits
---@field threads? any threads that read, and as many that write
---@field pinned? any pinned host memory for reading and writing
---@field dtype? any how the slices are stored: "f32", "f16" or "u16"
---@field range? number[] {low, high}: what is stored as 0 and as the largest value
---@field slices_per_file? any the result's, where the volume goes to several files
---@field out? any the array on the host that the slices go to, where that is no result
---@field quiet? any no progress
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? any fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked; or an iterative one: cgls, landweber, fista, admm_tv, sirt, sart, mlem, osem
---@field mode? any of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field angle_weights? any of direct methods: one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field half_acquisition? any a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field iterations? any of an iterative method: steps; with noise in the data fewer are better
---@field tikhonov? any of cgls, landweber and fista: weight of |x|^2 / 2, in squared pixels
---@field preconditioner? any of cgls and fista: with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field beyond? any of cgls, landweber, fista and admm_tv: rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field margin? any of an iterative method: pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field start? any of an iterative method: value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field tolerance? any of an iterative method: a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? any of cgls, landweber, fista, admm_tv, sirt and sart: standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? any of an iterative method: iterations between two checks of a rule, such as tolerance; each waits for the device
---@field model? any of an iterative method: of the rays: fourier is band-limited, without the artifacts of linear interpolation, and has a normal operator; pixel spreads pixels over two bins
---@field weights? any of cgls, landweber, fista, admm_tv, sirt and sart: of rays; poisson: the transmission, in inverse proportion to the variance of line integrals of counted photons
---@field relaxation? any of landweber, sirt and sart: factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field nonnegative? any of landweber, fista, admm_tv, sirt and sart: no value below 0
---@field lambda? any of fista and admm_tv: weight of the total variation of values per pixel; 0: none
---@field tv_iterations? any of fista and admm_tv: iterations of the denoising in each step
---@field dimensions? any of fista and admm_tv: of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field slab? any of fista and admm_tv: 3 dimensions: slices that are made together, with those beside them, an approximation
---@field slab_overlap? any of fista and admm_tv: 3 dimensions: slices on both sides of a slab that it takes into account
---@field inner? any of admm_tv: steps of conjugate gradients in each
---@field rho? any of admm_tv: weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field taper? any of sirt and sart: how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field subsets? any of sart and osem: parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field negative? any of mlem and osem: negative data: refuse is an error, zero counts them as 0
---@field discrepancy? any of mlem and osem: a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted

---How many of the 65536 codes of u16 the slices use when they are stored with `options.range`; fewer than one is an error.
---@param scan table 
---@param options? moonbeam.options.recon_range_codes
function mb.recon.range_codes(scan, options) end

---Vertical shifts, one number a projection, in rows; with unit "columns" horizontal ones, with unit "weights" factors: from a list that is typed ("0,0.5,1") or in a text file (numbers between spaces, commas or line ends; # starts a comment; "FILE:2" is the second column), a dataset of the scan's file ("/path"), or one of another file ("other.h5:/path").
---@param scan table 
---@param where string 
---@param unit? string 
function mb.recon.read_shifts(scan, where, unit) end

---Reconstructs projections in host memory into a volume in host memory, in chunks of rows that fit the device and are moved there and back while it computes.
---@param projections any 
---@param angles any 
---@param options any 
function mb.recon.reconstruct(projections, angles, options) end

---Runs a plan; a plan that is not exact is settled first.
---@param scan table 
---@param plan table 
---@param sink? table 
---@param each? function 
function mb.recon.run(scan, plan, sink, each) end

---Makes a plan without `center` exact: the same method and chunks, with a `peak` that is exact to the byte and never more than `at_most`, the peak of the earlier plan.
---@param scan table 
---@param plan table 
---@return any # the plan, and the results of find_center, {center, how, details}.
function mb.recon.settle(scan, plan) end

---`recon.slices(scan, frames, first, last, settings)`: the slices of a chunk of rows from its frames, which it normalizes, shifts, reconstructs and releases.
---@param scan table 
---@param frames table 
---@param first integer 
---@param last integer 
---@param settings table 
---@return any # the slices (z, y, x) on the device and the counts of mended values (in all rows read).
function mb.recon.slices(scan, frames, first, last, settings) end

---@class moonbeam.options.result_create
---@field shape? integer[] {nz, ny, nx} of the volume
---@field dtype? string element type of the volume
---@field units? string of the values
---@field pixel_size? number edge of a detector pixel
---@field slice_distance? number between neighboring slices
---@field first_row? integer row of the detector that slice 1 is of
---@field upward? boolean each slice is of the row above the one before
---@field outside? number[] of each slice: how many projections show it by rows from outside the detector
---@field projections? integer of how many projections
---@field axis? table what slices are that are not rows: {name, values (numbers, or texts, one for each slice)}
---@field parameters? table what the reconstruction was done with
---@field input? string the scan's file
---@field input_was? table what is said of it: {path, bytes, modified (s)}
---@field script? string a file name or a text
---@field title? string of the entry
---@field sample? string name of the sample
---@field overwrite? boolean replace an existing result
---@field chunks? integer[] of an HDF5 volume in one file
---@field deflate? integer compression of an HDF5 volume in one file, 0 to 9
---@field slices_per_file? integer the volume goes to files of that many slices in a folder "<path without .h5>-slices-<8 digits>", a new one in every run; the result's file shows them as one dataset, which is written faster
---@field layout? "nabu"|"httomo" where another program's readers look for the volume of an HDF5 file, beside our own place: nabu: /ENTRY/reconstruction/results/data; httomo: /data, /angles
---@field entry? string ENTRY of the layout nabu
---@field angles? any of the projections, in radians, for the layout httomo
---@field tiff_layout? "bigtiff"|"imagej" of a .tif result above 4 GB: bigtiff, which ImageJ opens by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone
---@field unfinished? any what keeps the result of a run that is interrupted; pipelines make it

---A new result file for a volume (z, y, x).
---@param path string its name: an HDF5 file, a TIFF stack, or an OME-Zarr folder
---@param options? moonbeam.options.result_create
function mb.result.create(path, options) end

---@class moonbeam.options.result_disk_bytes
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone

---The bytes that the files of a result will take, nearly: more than its volume's for a pyramid.
---@param path string its name
---@param shape integer[] {nz, ny, nx} of the volume
---@param dtype string element type of the volume
---@param options? moonbeam.options.result_disk_bytes
function mb.result.disk_bytes(path, shape, dtype, options) end

---@class moonbeam.result
local result = {}

---Queues the writing of slices by a carrier (mb.stream).
---@param carrier table 
---@param array moonbeam.array 
---@param z_first any 
function result:carry(carrier, array, z_first) end

---Closes the file.
function result:close() end

---Completes the file: verifies it, and gives it its name.
function result:finish() end

---Adds to the parameters of the reconstruction, such as what was found on the way: a table as `provenance` takes it.
---@param values table 
function result:parameters(values) end

---Adds to the provenance block: a table of numbers, strings, lists and tables of them.
---@param values table 
function result:provenance(values) end

---Says what the stored integers mean: value = stored * scale + offset.
---@param scale number 
---@param offset number 
function result:scaling(scale, offset) end

---Writes slices: an array (z, y, x), or (y, x) for one, from slice z_first (1-based) on.
---@param array moonbeam.array 
---@param z_first any 
function result:write(array, z_first) end

---@class moonbeam.options.scan_of_arrays
---@field flats? moonbeam.array (frame, row, column)
---@field darks? moonbeam.array (frame, row, column)
---@field pixel_size? number edge of a detector pixel
---@field flat_positions? number[] how many projections were taken before each flat
---@field current? number[] ring current of each projection
---@field flats_current? number[] ring current of each flat
---@field flats_exposure? number how many times longer flats were exposed than projections; 1: equally

---A scan whose frames are arrays on the host: `projections` (angle, row, column), as the detector gave them or as line integrals, `angles` in radians.
---@param projections moonbeam.array (angle, row, column)
---@param angles number[]|moonbeam.array in radians, one for each projection
---@param options? moonbeam.options.scan_of_arrays
function mb.scan.of_arrays(projections, angles, options) end

---@class moonbeam.options.scan_open
---@field data? string dataset with the projections
---@field flats? any dataset with the flats, or several (a list, or between commas): of two, the first was taken before the projections, the second after them
---@field darks? any dataset with the darks, or several
---@field angles? any the angles: numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a dataset (/PATH or FILE:/PATH)
---@field angle_unit? string unit of the angles, where the file does not say: deg or rad
---@field image_key? any image keys of all frames (0 projection, 1 flat, 2 dark): numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a dataset (/PATH or FILE:/PATH); frames whose image_key_control is not their key are then taken, too
---@field pixel_size? number edge of a detector pixel
---@field flats_file? string a file of their own for the flats, HDF5 or images, also with ranges, or several between commas; or a number, the counts of every pixel without the sample
---@field darks_file? string the same for the darks
---@field flat_positions? any how many projections were taken before each flat: numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a dataset (/PATH or FILE:/PATH)
---@field current? any ring current of each projection, or of all frames: numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a dataset (/PATH or FILE:/PATH)
---@field flats_current? any ring current of each flat: numbers such as 0,0,180,180, a text file (FILE:2 is its second column), or a dataset (/PATH or FILE:/PATH)
---@field flats_exposure? number how many times longer flats were exposed than projections; 1: equally
---@field bad_flats? any flats to leave out: a number or a list, which count in the dataset or stack that has them, from 1, and from one of several datasets on in the next
---@field bad_darks? any darks to leave out, in the same way
---@field bad_projections? any projections to leave out: a number or a list, which count among the projections, from 1; the others keep their angles
---@field counts_as? "unsigned"|"swapped" what the counts are, where the file says the wrong type: unsigned numbers that it calls signed, or numbers in the other byte order (swapped)
---@field axes? "theta:y:x"|"y:theta:x" the order of the axes of frames in the file, where it does not say it or says another one
---@field entry? string the NXtomo entry, where the file has several
---@field allow_external? boolean read data that the file refers to outside its own folder; only for files that you trust
---@field allow_missing? boolean leave out frames that the file says it has and that were never written, as of a broken-off acquisition; of a series of files, those whose numbers lack: the others keep the angles of their numbers
---@field wait? number how long a scan that is still being written, or not there yet, is waited for
---@field tell? function gets a line where the wait begins, and when it sees more

---Opens a scan: the scan, or nil and an error object.
---@param path string HDF5 file, Data Exchange or NXtomo; or a stack of images: TIFF, a folder or pattern of TIFF files, Zarr, .npy, each with ranges of its frames, or all
---@param options? moonbeam.options.scan_open
function mb.scan.open(path, options) end

---@class moonbeam.scan
local scan = {}

---Closes the files of the scan.
function scan:close() end

---@class moonbeam.options.scan_darks
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result
---@field carrier? table a carrier fills the array; the array is complete after its wait

---Darks (frame, row, column) of some rows, or nil if the scan has none.
---@param rows? any 
---@param options? moonbeam.options.scan_darks
function scan:darks(rows, options) end

---What was found in the file, as text of several lines; the warnings are a list of their own.
function scan:describe() end

---@class moonbeam.options.scan_flats
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result
---@field carrier? table a carrier fills the array; the array is complete after its wait

---Flats (frame, row, column) of some rows, or nil if the scan has none.
---@param rows? any 
---@param options? moonbeam.options.scan_flats
function scan:flats(rows, options) end

---@class moonbeam.options.scan_frame
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result

---One projection (row, column).
---@param i any 
---@param options? moonbeam.options.scan_frame
function scan:frame(i, options) end

---@class moonbeam.options.scan_projections
---@field dtype? string u8, u16, i32, f16, f32, f64, c64 or c128
---@field device? moonbeam.device|string where the array is made
---@field out? moonbeam.array the array for the result
---@field carrier? table a carrier fills the array; the array is complete after its wait
---@field angles? any {first, last} of the projections

---Projections as an array (angle, row, column).
---@param rows? any 
---@param options? moonbeam.options.scan_projections
function scan:projections(rows, options) end

---@class moonbeam.options.show_array
---@field slice? integer of axis 1, from 1, where there are three axes
---@field range? number[] {black, white}, two values
---@field percentiles? number[] {black, white}, of the finite values of the picture
---@field protocol? "kitty"|"sixel"|"blocks"|"text" how the terminal shows it
---@field width? integer columns of the terminal at most
---@field height? integer rows of the terminal at most
---@field file? string write a PNG picture in full size instead
---@field overwrite? boolean replace an existing file

---Shows an array in the terminal: two axes as a gray picture, of three axes one slice, (row, column, 3) of u8 in colors, one axis as a line.
---@param array moonbeam.array what to show
---@param options? moonbeam.options.show_array
function mb.show.array(array, options) end

---Percentiles from the counts of both passes: `high`, and `low` for the prefixes of these percents (statistics.prefixes).
---@param high table 
---@param low table 
---@param percents table 
function mb.statistics.from_counts(high, low, percents) end

---Exact percentiles: what numpy.nanpercentile gives, with linear interpolation between the two nearest order statistics, in double precision.
---@param source any 
---@param percents table 
function mb.statistics.percentiles(source, percents) end

---The prefixes for the second pass of mb.histogram, bits = "low": two for each percent.
---@param high table 
---@param percents table 
function mb.statistics.prefixes(high, percents) end

---A carrier by itself: threads that move blocks between files and arrays.
---@param options table 
function mb.stream.carrier(options) end

---The same as text for people.
---@param times table 
function mb.stream.describe(times) end

---@class moonbeam.options.stream_open
---@field overlap? boolean read and write while computing
---@field threads? integer threads in each direction, of all devices together
---@field pinned? integer|string pinned host memory for the rings of all devices
---@field writes? any false: results are not moved off the device
---@field files? any there are several files to write to
---@field slot? any bytes that a slot of the ring must have room for
---@field source? any the host arrays that are read, if nothing else is read; pinned arrays need no ring
---@field sink? any the host array that is written to; a pinned array needs no ring
---@field tallies? integer numbers that compute counts for each block
---@field hashes? boolean hash the bytes of each block
---@field schedule? "fixed"|"free" how several devices share the blocks: block i goes to device i mod n, or the next block to the device that is free
---@field order? any a fixed schedule: the number of the device that each block goes to, a list that repeats
---@field lists? any the blocks of each device, {{blocks} by round} by device
---@field sums? boolean devices sum over their blocks
---@field sharing? integer how many devices share the threads and the pinned memory

---stream.open(devices, options): the carriers of one device or a list of devices, for several runs, one after the other.
---@param devices any 
---@param options? moonbeam.options.stream_open
function mb.stream.open(devices, options) end

---@class moonbeam.options.stream_pinned_bytes
---@field overlap? boolean read and write while computing
---@field threads? integer threads in each direction, of all devices together
---@field pinned? integer|string pinned host memory for the rings of all devices
---@field writes? any false: results are not moved off the device
---@field files? any there are several files to write to
---@field slot? any bytes that a slot of the ring must have room for
---@field source? any the host arrays that are read, if nothing else is read; pinned arrays need no ring
---@field sink? any the host array that is written to; a pinned array needs no ring
---@field tallies? integer numbers that compute counts for each block
---@field hashes? boolean hash the bytes of each block
---@field schedule? "fixed"|"free" how several devices share the blocks: block i goes to device i mod n, or the next block to the device that is free
---@field order? any a fixed schedule: the number of the device that each block goes to, a list that repeats
---@field lists? any the blocks of each device, {{blocks} by round} by device
---@field sums? boolean devices sum over their blocks
---@field sharing? integer how many devices share the threads and the pinned memory

---The pinned bytes that a run on a device, or on a list of devices, takes with these options.
---@param devices any 
---@param options? moonbeam.options.stream_pinned_bytes
function mb.stream.pinned_bytes(devices, options) end

---@class moonbeam.options.stream_run
---@field overlap? boolean read and write while computing
---@field threads? integer threads in each direction, of all devices together
---@field pinned? integer|string pinned host memory for the rings of all devices
---@field writes? any false: results are not moved off the device
---@field files? any there are several files to write to
---@field slot? any bytes that a slot of the ring must have room for
---@field source? any the host arrays that are read, if nothing else is read; pinned arrays need no ring
---@field sink? any the host array that is written to; a pinned array needs no ring
---@field tallies? integer numbers that compute counts for each block
---@field hashes? boolean hash the bytes of each block
---@field schedule? "fixed"|"free" how several devices share the blocks: block i goes to device i mod n, or the next block to the device that is free
---@field order? any a fixed schedule: the number of the device that each block goes to, a list that repeats
---@field lists? any the blocks of each device, {{blocks} by round} by device
---@field sums? boolean devices sum over their blocks
---@field sharing? integer how many devices share the threads and the pinned memory

---stream.run(devices, blocks, steps, options): works on all blocks, on one device or a list of devices (or on what stream.open returned).
---@param devices any 
---@param blocks table 
---@param steps table 
---@param options? moonbeam.options.stream_run
---@return any # {wall, read, upload, compute, download, write, read_bytes, write_bytes, raw_bytes, waits..., lanes, stopped}: seconds and bytes, sums over devices; lanes has the same by device, with the number of blocks, and lists (of its blocks). stopped: not all blocks were begun.
function mb.stream.run(devices, blocks, steps, options) end

---A summary of the times of a run: {wall_seconds, read_seconds, ..., gigabytes per second of each step, idle_part (of the time, in which nothing was computed), bottleneck (the busiest step), devices (text: the blocks, bytes and seconds of each one of several)}.
---@param times table 
function mb.stream.summary(times) end

---Seconds since the process began, to about 10 ms; nil if the system does not say.
function mb.system.age() end

---Writes a query, which ends with "\27[c", to the terminal and returns its answer; nil if there is no terminal, if the process is in the background, or if no answer comes in these seconds.
---@param query string 
---@param seconds number 
function mb.system.ask_terminal(query, seconds) end

---Calls fn(...) as pcall does, but interruptible and with tracebacks.
---@param fn function 
---@param ... any 
function mb.system.call(fn, ...) end

---Sets the flag that Ctrl-C sets, or clears it with false.
---@param on? boolean 
function mb.system.cancel(on) end

---Whether Ctrl-C has been pressed.
function mb.system.cancelled() end

---Seconds of a clock that never goes back.
function mb.system.clock() end

---The working folder.
function mb.system.cwd() end

---How many files the process may have open; raises the limit as far as the system allows.
function mb.system.file_limit() end

---The names in a folder, or nil if it does not exist.
---@param path string 
function mb.system.folder(path) end

---With true, the first Ctrl-C (SIGTERM, SIGHUP) waits, and a second one does not.
---@param on boolean 
function mb.system.hold_stop(on) end

---The name of the machine.
function mb.system.hostname() end

---Whether a stream ("stdin", "stdout", "stderr") is a terminal.
---@param stream? string 
function mb.system.isatty(stream) end

---What control groups and resource limits allow the process: {most, left, name}, nil if nothing limits it.
---@param root? string 
function mb.system.memory_limits(root) end

---Makes a folder and its parents; also true if the folder exists.
---@param name string 
function mb.system.mkdir(name) end

---The number of the process.
function mb.system.pid() end

---The limits on the memory that the process uses, and on its addresses: {used, addresses, kept, processes, available}.
function mb.system.process_limits() end

---How many processors the process may use.
function mb.system.processors() end

---The absolute name of the running program.
function mb.system.program() end

---The absolute name of a file, without links.
---@param name string 
function mb.system.real_path(name) end

---Where the module's own Lua files are; called by the module itself.
---@param folder string 
function mb.system.set_home(folder) end

---Sleeps; returns early if a signal comes.
---@param seconds number 
function mb.system.sleep(seconds) end

---The file system of a folder, {free, total, memory, network}: the bytes that may still be written to it, its size, and whether it is in memory (tmpfs) or a network's (NFS, SMB).
---@param folder string 
function mb.system.space(folder) end

---What a file is: {kind, bytes, modified, device, inode}, or nil and an error.
---@param name string 
function mb.system.stat(name) end

---The number of the signal that stopped the last call, or nil.
function mb.system.stop_signal() end

---Whether a stop waits (hold_stop).
function mb.system.stop_waits() end

---Waits until everything written to the file system of a folder is on the disk.
---@param path string 
function mb.system.sync_files(path) end

---Makes the names in a folder survive a power cut, as far as the file system can.
---@param path string 
function mb.system.sync_folder(path) end

---The size of the terminal that is the standard output: {columns, rows, width, height}; width and height are in pixels, 0 where the terminal does not say.
function mb.system.terminal_pixels() end

---Columns of a terminal, or nil if the stream is not a terminal.
---@param stream? string 
function mb.system.terminal_width(stream) end

---@class moonbeam.options.tiff_create
---@field overwrite? boolean replace an existing file
---@field spacing? number of voxels, for TIFF
---@field unit? string of the spacing, for TIFF
---@field meta? table what the file that it was made from says (tiff.open): for TIFF; for Zarr its voxel, interval of frames and names of channels
---@field origin? table how it was made: {title, input, parameters}, but for .npy
---@field voxel? table its size in m: {pixel, step}, for Zarr
---@field tiff_layout? "bigtiff"|"imagej" of a .tif result above 4 GB: bigtiff, which ImageJ opens by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone
---@field inside? string a folder that a Zarr folder is made in, which the caller removes
---@field shape? integer[] of one volume
---@field dtype? string element type; TIFF files hold u8, u16 and f32
---@field channels? integer how many, for TIFF and Zarr
---@field frames? integer how many, for TIFF and Zarr

---A new stack to be written block by block: an object with volume(channel, frame), finish() and close(); without finish nothing is left.
---@param name string 
---@param options? moonbeam.options.tiff_create
function mb.tiff.create(name, options) end

---@class moonbeam.options.tiff_open
---@field channel? integer of a TIFF hyperstack or OME-Zarr
---@field frame? integer of a TIFF hyperstack or OME-Zarr
---@field axes? string of a TIFF file: what its pages are, Z, C and T from slow to fast, whatever the file says: Z, ZC, or ZC2 where there are 2 channels
---@field pages? table of a TIFF file: the first and the last of its pages to be read; without axes they are slices
---@field image? integer of a TIFF file that has several
---@field threads? integer of decoding; bounds its scratch

---A stack as a volume (moonbeam.volumes), with `meta`: {kind, text, channels, slices, frames, order, spacing, unit, resolution, voxel (its sizes in m: {pixel, row, step}, as far as they are told), named (the channels), warnings (lines: what is not as the file says)}.
---@param name string 
---@param options? moonbeam.options.tiff_open
function mb.tiff.open(name, options) end

---@class moonbeam.options.tiff_read
---@field channel? integer of a TIFF hyperstack or OME-Zarr
---@field frame? integer of a TIFF hyperstack or OME-Zarr
---@field axes? string of a TIFF file: what its pages are, Z, C and T from slow to fast, whatever the file says: Z, ZC, or ZC2 where there are 2 channels
---@field pages? table of a TIFF file: the first and the last of its pages to be read; without axes they are slices
---@field image? integer of a TIFF file that has several
---@field device? moonbeam.device|string where the array is made

---Reads a stack: (page, row, column), or (row, column) for one page.
---@param name string 
---@param options? moonbeam.options.tiff_read
function mb.tiff.read(name, options) end

---@class moonbeam.options.tiff_write
---@field overwrite? boolean replace an existing file
---@field spacing? number of voxels, for TIFF
---@field unit? string of the spacing, for TIFF
---@field meta? table what the file that it was made from says (tiff.open): for TIFF; for Zarr its voxel, interval of frames and names of channels
---@field origin? table how it was made: {title, input, parameters}, but for .npy
---@field voxel? table its size in m: {pixel, step}, for Zarr
---@field tiff_layout? "bigtiff"|"imagej" of a .tif result above 4 GB: bigtiff, which ImageJ opens by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page
---@field zarr_layout? "shards"|"chunks" of a .zarr result: shards, few files, of which readers fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone
---@field inside? string a folder that a Zarr folder is made in, which the caller removes

---Writes u8, u16 or f32, (page, row, column) or (row, column).
---@param name string 
---@param array moonbeam.array 
---@param options? moonbeam.options.tiff_write
function mb.tiff.write(name, array, options) end

---@class moonbeam.options.tiled_deconv_journal
---@field inputs? table the names of the files that are read
---@field also? table what else must be the same in a run that goes on: {{name, text}, ...}
---@field resume? boolean go on with an interrupted run
---@field discard? boolean first remove what an interrupted run has left
---@field overwrite? boolean replace an existing result
---@field plan? boolean for plans alone: nothing is written
---@field ranks? integer with plan: how many ranks share the tiles
---@field tell? function a function (text) that gets what is kept

---What keeps an interrupted deconvolution into the file `path`, for the option journal: the folder "<path>.unfinished".
---@param path string 
---@param options? moonbeam.options.tiled_deconv_journal
function mb.tiled_deconv.journal(path, options) end

---@class moonbeam.options.tiled_deconv_plan
---@field mode? "exact"|"blended" exact seams, or blended independent tiles
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field iterations? integer how many at most
---@field acceleration? "none"|"heavy_ball"|"biggs_andrews" momentum; heavy_ball takes one array more, biggs_andrews two
---@field total_variation? number weight of that regularization, such as 0.002 to 0.01
---@field spacing? any distance of voxels along the axes, for total_variation
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released
---@field tolerance? number stop when the relative change falls below
---@field place? "device"|"host"|"file" where image, estimate and ratio are
---@field scratch? string the name of a file beside which scratch files may go
---@field keep? boolean the transfer functions stay in the plan, for the next volume with this PSF and this plan, until plan.kept:release()
---@field margin? integer elements around a tile that are worked on with it, at least
---@field on_tile? function a function (iteration, number, total)
---@field journal? any what journal returns: an interrupted run can go on

---How a deconvolution would be done and what it would take, without running: {mode, place, tile, counts, grid, total, overlap, peak, host_peak, peaks, pinned, work, seconds, candidates}, see tiles.convolve_volume.
---@param source table 
---@param psf moonbeam.array 
---@param sink? table 
---@param options? moonbeam.options.tiled_deconv_plan
function mb.tiled_deconv.plan(source, psf, sink, options) end

---@class moonbeam.options.tiled_deconv_richardson_lucy
---@field mode? "exact"|"blended" exact seams, or blended independent tiles
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field iterations? integer how many at most
---@field acceleration? "none"|"heavy_ball"|"biggs_andrews" momentum; heavy_ball takes one array more, biggs_andrews two
---@field total_variation? number weight of that regularization, such as 0.002 to 0.01
---@field spacing? any distance of voxels along the axes, for total_variation
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released
---@field tolerance? number stop when the relative change falls below
---@field place? "device"|"host"|"file" where image, estimate and ratio are
---@field scratch? string the name of a file beside which scratch files may go
---@field keep? boolean the transfer functions stay in the plan, for the next volume with this PSF and this plan, until plan.kept:release()
---@field margin? integer elements around a tile that are worked on with it, at least
---@field on_tile? function a function (iteration, number, total)
---@field journal? any what journal returns: an interrupted run can go on

---Deconvolves an array by tiles.
---@param image moonbeam.array 
---@param psf moonbeam.array 
---@param options? moonbeam.options.tiled_deconv_richardson_lucy
function mb.tiled_deconv.richardson_lucy(image, psf, options) end

---@class moonbeam.options.tiled_deconv_richardson_lucy_volume
---@field mode? "exact"|"blended" exact seams, or blended independent tiles
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field iterations? integer how many at most
---@field acceleration? "none"|"heavy_ball"|"biggs_andrews" momentum; heavy_ball takes one array more, biggs_andrews two
---@field total_variation? number weight of that regularization, such as 0.002 to 0.01
---@field spacing? any distance of voxels along the axes, for total_variation
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field eps? number least blurred value to divide by
---@field floor? number voxels whose normalizer is at most this were not seen and become min
---@field min? number lower bound
---@field background? number counts that lie under the blurred estimate in the image: the model is H x + background, and the light is at most what it leaves
---@field metrics? boolean record the metrics of every iteration
---@field on_iteration? function a function (k, metric or nil, look): return false to stop; look(first, extents), 0-based, returns a block of the estimate, to be released
---@field tolerance? number stop when the relative change falls below
---@field place? "device"|"host"|"file" where image, estimate and ratio are
---@field scratch? string the name of a file beside which scratch files may go
---@field keep? boolean the transfer functions stay in the plan, for the next volume with this PSF and this plan, until plan.kept:release()
---@field margin? integer elements around a tile that are worked on with it, at least
---@field on_tile? function a function (iteration, number, total)
---@field journal? any what journal returns: an interrupted run can go on

---Deconvolves a volume into another of the same extents (moonbeam.volumes).
---@param source table 
---@param psf moonbeam.array 
---@param sink table 
---@param options? moonbeam.options.tiled_deconv_richardson_lucy_volume
function mb.tiled_deconv.richardson_lucy_volume(source, psf, sink, options) end

---The seam metric of a volume cut by `axes` (moonbeam.tiles.search): mean |difference| of neighbors across tile faces over that of neighbors within tiles.
---@param volume table 
---@param axes table 
---@param device moonbeam.device|string 
---@param host moonbeam.device|string 
function mb.tiled_deconv.seam(volume, axes, device, host) end

---@class moonbeam.options.tiles_convolve
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field correlate? boolean the adjoint
---@field on_tile? function a function (number, total), called after each tile
---@field out? moonbeam.array the array for the result

---Convolves an array tile by tile; mode "same".
---@param image moonbeam.array 
---@param psf moonbeam.array 
---@param options? moonbeam.options.tiles_convolve
function mb.tiles.convolve(image, psf, options) end

---@class moonbeam.options.tiles_convolve_volume
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field correlate? boolean the adjoint
---@field on_tile? function a function (number, total), called after each tile

---Convolves a volume into another of the same extents, tile by tile; mode "same".
---@param source table 
---@param psf moonbeam.array 
---@param sink table 
---@param options? moonbeam.options.tiles_convolve_volume
function mb.tiles.convolve_volume(source, psf, sink, options) end

---@class moonbeam.options.tiles_plan
---@field tile? integer[] largest extents of a tile
---@field budget? integer|string what the tiles may take on each device
---@field host_budget? integer|string what they may take on the host beside GPUs
---@field device? moonbeam.device|string where the tiles are worked on
---@field devices? any devices that share the tiles: a list, or names such as "all" or "cuda:0,cuda:1" (mb.device.several)
---@field schedule? "free"|"fixed" how several devices share the tiles: the next one goes to the device that is free, or tile i to device i mod n. Blended tiles are fixed
---@field overlap? boolean read and write while computing, which takes a second set of blocks
---@field pinned? integer|string pinned memory for reading and writing
---@field threads? integer threads that read, and as many that write
---@field plan? table what plan returned for the same volumes and options
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" what continues the image
---@field center? any the center of the PSF: a name or coordinates (psf.center)
---@field normalize? boolean the PSF is made to sum to 1
---@field correlate? boolean the adjoint
---@field on_tile? function a function (number, total), called after each tile

---What convolve_volume would do, and the bytes: the plan, without running.
---@param source table 
---@param psf moonbeam.array 
---@param sink? table 
---@param options? moonbeam.options.tiles_plan
function mb.tiles.plan(source, psf, sink, options) end

---The table of the candidates that the search looked at, as text: tiles, block, bytes, whether reading and writing overlap with the work, voxels transformed for each of the image, seconds.
---@param plan table 
function mb.tiles.table(plan) end

---@class moonbeam.options.tomo_admm_tv
---@field iterations? integer alternations
---@field inner? integer steps of conjugate gradients in each
---@field rho? number weight of the splitting, per angle: larger ones follow the denoised slices, smaller ones the data; the limit does not depend on it
---@field lambda? number weight of the total variation of values per pixel; 0: none
---@field tv_iterations? integer iterations of the denoising in each alternation
---@field dimensions? integer of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field nonnegative? boolean no value below 0
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field beyond? "nothing"|"unknown" rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices that minimize sum w (A x - b)^2 / 2 + lambda TV(x) by alternating directions (ADMM), A being the model of the rays, b the sinograms and w the weights of the rays.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_admm_tv
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.admm_tv(sinograms, angles, options) end

---Angles equally spaced over a span, the end left out.
---@param count integer the number of angles
---@param span? number the angle from the first one to the end
---@return any # a table of numbers.
function mb.tomo.angles(count, span) end

---@class moonbeam.options.tomo_cgls
---@field iterations? integer steps; with noise in the data fewer are better
---@field tikhonov? number weight of |x|^2 / 2, in squared pixels
---@field preconditioner? number with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field beyond? "nothing"|"unknown" rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 by conjugate gradients (CGLS), A being the model of the rays, b the sinograms and w the weights of the rays.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_cgls
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.cgls(sinograms, angles, options) end

---@class moonbeam.options.tomo_choose_method
---@field method? "auto"|"fbp"|"fourier" fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked
---@field mode? "auto"|"fast"|"in_place" of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field consume? boolean give the sinogram up: fbp filters it in place, the Fourier method releases it
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field roi? number|number[] part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default the full slice
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field circle_value? number value outside the mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field weights? number[]|"auto"|"none" one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field out? moonbeam.array the array for the slices
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field slice_shifts? any one per row: the axis of row z lies at center + slice_shifts[z]; the filter moves the rows, as far as its padding goes
---@field pairs? integer most pairs of slices computed together; fewer take less scratch; 0: automatic
---@field device? moonbeam.device|string where the work would be done
---@field available? integer|string for all but the sinograms

---Which way `tomo.reconstruct` takes for sinograms of some shape.
---@param shape number[] {rows, angles, columns} or {angles, columns}
---@param angles number[]|moonbeam.array one per projection
---@param options? moonbeam.options.tomo_choose_method
---@return any # {method = "fbp" or "fourier", mode = "fast" or "in_place", reason = text, peak (bytes beside the sinograms, exact), fits} and the list of all ways that the options allow, with the same fields and `taken`: whether `tomo.reconstruct` may take that way.
function mb.tomo.choose_method(shape, angles, options) end

---@class moonbeam.options.tomo_fbp
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field roi? number|number[] part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default the full slice
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field circle_value? number value outside the mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field weights? number[]|"auto"|"none" one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field out? moonbeam.array the array for the slices
---@field mode? "fast"|"in_place"|"auto" fast: everything at once; of a sinogram that is kept, 1 GiB is copied at a time, or 64 slices. in_place: in parts, for the least memory, slower. auto: fast if it fits the budget, else in_place if the values are the same
---@field consume? boolean filter the sinogram where it stands, which destroys it but needs no second one
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field slice_shifts? any one per row: the axis of row z lies at center + slice_shifts[z]; the filter moves the rows, as far as its padding goes

---Filtered back-projection of line integrals.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param angles number[]|moonbeam.array one per projection, in any order
---@param options? moonbeam.options.tomo_fbp
---@return any # the slices (row, y, x), or (y, x), f32.
function mb.tomo.fbp(sino, angles, options) end

---@class moonbeam.options.tomo_find_center
---@field method? "auto"|"pair"|"metric" pair: register opposite projections; metric: trial slices; auto: both
---@field row? integer the row of the trial slices
---@field metric? any as in tomo.find_center_metric
---@field min_overlap? number the least part of the width that both projections of a pair must see
---@field guess? number where the search begins, a 0-based column
---@field range? number how far the search goes to either side
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout

---Rotation axis of a set of projections: registration of opposite projections, and trial slices.
---@param projections moonbeam.array line integrals (angle, row, column)
---@param angles number[]|moonbeam.array one per projection
---@param options? moonbeam.options.tomo_find_center
---@return any # the 0-based column and a table {verdict =, pair =, residual =, uncertainty =, metric =, angles = {i, j}, curve =} that says how it came about.
function mb.tomo.find_center(projections, angles, options) end

---@class moonbeam.options.tomo_find_center_metric
---@field guess? number where the search begins, a 0-based column
---@field range? number how far the search goes to either side
---@field metric? any negativity, sharpness, or a function of a slice (ny, nx) that returns a number
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout

---Rotation center by trial reconstruction: the candidate whose slice minimizes a metric.
---@param sino moonbeam.array line integrals (angle, column)
---@param angles number[]|moonbeam.array one per projection
---@param options? moonbeam.options.tomo_find_center_metric
---@return any # the 0-based column, and {edge = whether it is at the end of the range}.
function mb.tomo.find_center_metric(sino, angles, options) end

---@class moonbeam.options.tomo_find_center_overlap
---@field window? integer columns that are compared: as wide as the overlap, at most
---@field side? "auto"|"left"|"right" the side of the first image that the second one overlaps; auto: the one with the sharper valley
---@field denoise? boolean smooth both by a Gaussian of 2 pixels before
---@field normalize? boolean scale rows to equal mean magnitudes
---@field blend? boolean compare both with their blend, too

---Rotation axis near an edge of the detector, from a sinogram over a whole turn.
---@param sino moonbeam.array line integrals or transmissions (angle, column) over a whole turn
---@param options? moonbeam.options.tomo_find_center_overlap
---@return any # the 0-based column, and a table: verdict (as in `tomo.find_overlap`), overlap (columns), side ("left" or "right"), position, columns and metric.
function mb.tomo.find_center_overlap(sino, options) end

---@class moonbeam.options.tomo_find_center_pair
---@field min_overlap? number the least part of the width that both projections of a pair must see

---Rotation axis from a pair of projections half a turn apart.
---@param first moonbeam.array line integrals (row, column)
---@param opposite moonbeam.array line integrals (row, column), half a turn on
---@param options? moonbeam.options.tomo_find_center_pair
---@return any # the 0-based column, the relative residual there (0: mirror images; about 1: nothing in common), and a table with more: uncertainty (px), verdict ("found", "ambiguous", "edge", "flat"), curve, match and common (see axis_register.lua).
function mb.tomo.find_center_pair(first, opposite, options) end

---@class moonbeam.options.tomo_find_center_phase_correlation
---@field tolerance? number steps at which the axis is found

---Rotation axis by phase correlation of two projections half a turn apart.
---@param first moonbeam.array line integrals or transmissions (row, column)
---@param opposite moonbeam.array the same half a turn on
---@param options? moonbeam.options.tomo_find_center_phase_correlation
---@return any # the 0-based column, and a table: verdict ("found"; "flat": the peak is no higher than chance; "ambiguous": `other` is nearly as high; "edge": at an end of the middle half), peak (standard deviations), columns and metric (minus the correlation), shift (rows between the two at the peak).
function mb.tomo.find_center_phase_correlation(first, opposite, options) end

---@class moonbeam.options.tomo_find_center_slices
---@field metric? "sharpness"|"entropy" sharpness: the mean gradient, which streaks of a wrong axis enlarge; entropy: that of the histogram of the values, which a right axis concentrates
---@field guess? number where the search begins, a 0-based column
---@field range? number how far the coarse search goes to either side
---@field coarse_step? number between trials of the coarse search
---@field radius? number how far the fine search goes to either side of what the coarse one finds
---@field step? number between trials of the fine search
---@field sigma? number of a Gaussian along the columns of the sinogram, before
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout

---Rotation axis by trial slices: the column whose slice has the least mean gradient or entropy.
---@param sino moonbeam.array line integrals (angle, column)
---@param angles number[]|moonbeam.array one per projection
---@param options? moonbeam.options.tomo_find_center_slices
---@return any # the 0-based column, and a table: verdict ("found"; "edge": the lowest value is at an end of the range; "flat": no value stands out; "ambiguous": `other` is nearly as good), columns and metric of the coarse search, fine_columns and fine_metric.
function mb.tomo.find_center_slices(sino, angles, options) end

---@class moonbeam.options.tomo_find_center_vo
---@field guess? number where the search begins, a 0-based column
---@field range? number how far the coarse search goes to either side
---@field radius? number how far the fine search goes to either side of what the coarse one finds
---@field step? number between trials of the fine search
---@field coarse_step? number between trials of the coarse search
---@field downsample? boolean search coarsely in a smaller sinogram: columns are averaged where there are more than 1000, in groups of a 640th of them, and so are more than 1000 angles, in groups of a 900th
---@field ratio? number width of the object, a part of that of the sinogram
---@field drop? integer rows of the spectrum on either side of frequency 0 that do not count; at most a tenth of the angles

---Rotation axis by Vo's double wedge, from a sinogram over half a turn.
---@param sino moonbeam.array line integrals or transmissions (angle, column) over half a turn
---@param options? moonbeam.options.tomo_find_center_vo
---@return any # the 0-based column, and a table: verdict ("found"; "edge": the lowest value is at an end of the range; "flat": no value stands out; "ambiguous": `other` is nearly as good), columns and metric of the coarse search, fine_columns and fine_metric, and trial, the best of these columns.
function mb.tomo.find_center_vo(sino, options) end

---@class moonbeam.options.tomo_find_overlap
---@field window? integer columns that are compared: as wide as the overlap, at most
---@field side? "auto"|"left"|"right" the side of the first image that the second one overlaps; auto: the one with the sharper valley
---@field denoise? boolean smooth both by a Gaussian of 2 pixels before
---@field normalize? boolean scale rows to equal mean magnitudes
---@field blend? boolean compare both with their blend, too

---By how many columns two images overlap, and on which side of the first.
---@param first moonbeam.array image or sinogram
---@param second moonbeam.array image or sinogram of as many rows
---@param options? moonbeam.options.tomo_find_overlap
---@return any # the overlap in columns, the side ("left" or "right"), and a table: position (of the middle of the window in the first image), verdict ("found"; "flat": the images have little in common; "edge": at an end of the search; "ambiguous": another place is nearly as good), metric (of windows from each column on), curvature.
function mb.tomo.find_overlap(first, second, options) end

---@class moonbeam.options.tomo_fista
---@field iterations? integer steps of the gradient
---@field lambda? number weight of the total variation of values per pixel; 0: none
---@field tv_iterations? integer iterations of the denoising in each step
---@field dimensions? integer of the total variation: 2, each slice by itself, or 3, the slices as a volume
---@field tikhonov? number weight of |x|^2 / 2, in squared pixels
---@field nonnegative? boolean no value below 0
---@field preconditioner? number with a convolution as normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with which fewer iterations do; 0: none
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field beyond? "nothing"|"unknown" rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 + lambda TV(x) by FISTA, A being the model of the rays, b the sinograms and w the weights of the rays.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_fista
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.fista(sinograms, angles, options) end

---@class moonbeam.options.tomo_landweber
---@field iterations? integer steps of the gradient
---@field relaxation? number factor of a correction; 1 makes the step of landweber one over a bound of the largest eigenvalue of A' A
---@field tikhonov? number weight of |x|^2 / 2, in squared pixels
---@field nonnegative? boolean no value below 0
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field beyond? "nothing"|"unknown" rays that miss the detector, about an axis off its middle or of a mask that is wider: nothing, they are 0, for objects that are in view at every angle, so that A'A is a convolution; or unknown, they are left out, for larger objects (see margin) and half acquisitions, with a projection and a back-projection in each iteration. With weights or model "pixel" they are left out
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 by steps of the gradient, A being the model of the rays, b the sinograms and w the weights of the rays.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_landweber
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.landweber(sinograms, angles, options) end

---@class moonbeam.options.tomo_line_integrals
---@field darks? moonbeam.array raw frames without beam (frame, row, column)
---@field flats? moonbeam.array raw frames without sample (frame, row, column)
---@field log? boolean false leaves the logarithm out
---@field consume? boolean release the raw frames, or reuse them if they are f32
---@field mode? "mean"|"median" how flats, and darks, are combined into one frame each
---@field dark_mode? "same"|"mean"|"median" how darks are combined; same: as flats
---@field floor? number least denominator; a smaller flat - dark is raised to it
---@field nonfinite? number replaces results that are NaN or infinite
---@field groups? number|number[] flats in each group, in the order of flats; default: one group
---@field positions? number|number[] where each group lies in the scan, ascending; for several groups
---@field frames? number|number[] where each frame of data lies in the scan; for several groups
---@field scale? number|number[] factor of each frame of data, such as usual / own current of the ring
---@field flat_scale? number|number[] factor of each frame of flats
---@field min? number lower clip bound, positive
---@field max? number upper clip bound, above min

---Raw frames to line integrals: flat field and -ln.
---@param data moonbeam.array raw frames (angle, row, column)
---@param options? moonbeam.options.tomo_line_integrals
---@return any # the projections, f32 (angle, row, column), and the counts of what had to be mended: {nonfinite, clamped, nonpositive} as an array of three.
function mb.tomo.line_integrals(data, options) end

---@class moonbeam.options.tomo_mlem
---@field iterations? integer corrections by all rays
---@field start? number|"fbp" value of all pixels at the start, if there is no x0; or fbp: a direct reconstruction, where it is less than a hundredth of its mean, that
---@field model? any how rays are modeled: "pixel", or a table of operators with no negative weights (ray_model.lua)
---@field negative? "refuse"|"zero" negative data: refuse is an error, zero counts them as 0
---@field discrepancy? number a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices of greatest likelihood for Poisson data, such as emission or fluorescence: x = x / (A' 1) A' (b / (A x)).
---@param sinograms moonbeam.array counts or line integrals, 0 or more (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_mlem
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.mlem(sinograms, angles, options) end

---The two projections whose angles differ by half a turn most exactly: indices and by how much they miss it (rad).
---@param angles any 
function mb.tomo.opposite_pair(angles) end

---@class moonbeam.options.tomo_osem
---@field iterations? integer passes over all rays
---@field subsets? integer parts of the angles, every n-th one; at most the number of angles
---@field start? number|"fbp" value of all pixels at the start, if there is no x0; or fbp: a direct reconstruction, where it is less than a hundredth of its mean, that
---@field model? any how rays are modeled: "pixel", or a table of operators with no negative weights (ray_model.lua)
---@field negative? "refuse"|"zero" negative data: refuse is an error, zero counts them as 0
---@field discrepancy? number a slice is done when its data differ from A x by no more: twice the sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the data are counts, and less is noise that is fitted
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Like mlem, by one part of the angles after the other: about as many times faster as there are parts, but with noise it ends in a cycle.
---@param sinograms moonbeam.array counts or line integrals, 0 or more (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_osem
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.osem(sinograms, angles, options) end

---@class moonbeam.options.tomo_reconstruct
---@field method? "auto"|"fbp"|"fourier" fourier: the direct Fourier method, sharp and fast; fbp: filtered back-projection, less memory, smooths fine detail and noise a little; auto: fourier, or fbp if only that can do what is asked
---@field mode? "auto"|"fast"|"in_place" of fbp: in_place needs less memory than fast and is slower; auto: fast if it fits
---@field consume? boolean give the sinogram up: fbp filters it in place, the Fourier method releases it
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field roi? number|number[] part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default the full slice
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field circle_value? number value outside the mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field weights? number[]|"auto"|"none" one factor per angle, of mean 1; auto: by how densely its direction is covered, nothing where that is even; none: every angle counts the same
---@field out? moonbeam.array the array for the slices
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: the slices are up to twice as wide as it
---@field slice_shifts? any one per row: the axis of row z lies at center + slice_shifts[z]; the filter moves the rows, as far as its padding goes
---@field pairs? integer most pairs of slices computed together; fewer take less scratch; 0: automatic

---Reconstructs slices from line integrals, by the method that suits.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param angles number[]|moonbeam.array one per projection, in any order
---@param options? moonbeam.options.tomo_reconstruct
---@return any # the slices (row, y, x), or (y, x), f32, and the way taken as `tomo.choose_method` describes it.
function mb.tomo.reconstruct(sino, angles, options) end

---@class moonbeam.options.tomo_sart
---@field iterations? integer passes over all rays
---@field subsets? integer parts of the angles, every n-th one; the slices are corrected by one part after the other. The number of angles: SART proper; at most that many
---@field relaxation? number factor of a correction
---@field taper? number how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field nonnegative? boolean no value below 0
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices by corrections from one part of the angles after the other: SART, or SIRT with ordered subsets.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_sart
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.sart(sinograms, angles, options) end

---@class moonbeam.options.tomo_sirt
---@field iterations? integer corrections by all rays
---@field relaxation? number factor of a correction
---@field taper? number how much more the middle of a ray is corrected than its ends: the power of 1 - (r / radius)^2 that weights its pixels; 0: all alike
---@field nonnegative? boolean no value below 0
---@field weights? any weight of each ray, 0 to 1: an array (angle, column), or one weight for each slice (row, angle, column), f32; "poisson": the transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals of counted photons
---@field size? integer pixels of a side of the slice
---@field margin? integer pixels by which the grid is larger than the slice on every side, for objects that are larger than the field of view; they are cut off at the end
---@field circle? number radius of the circular mask; 0: no mask. With a margin the whole grid has a mask of its own
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field model? any how rays are modeled: "fourier", band-limited, or "pixel", linear interpolation between two bins; or a table of operators (ray_model.lua)
---@field x0? moonbeam.array slices to start from (row, y, x), f32, with the margin; they are not changed
---@field start? number|"fbp" value of all pixels at the start (unless an array x0 is given); or fbp: a direct reconstruction, from which a few iterations do
---@field half_acquisition? boolean a whole turn with the axis, center, near an edge of the detector: slices of the whole field of view, which any of its rays has seen
---@field tolerance? number a slice is done when its objective changes by less than this part of it between two checks; slices of three-dimensional total variation together
---@field noise? number standard deviation of the noise of a ray: a slice is done when the root mean square of A x - b is no more (the discrepancy principle); slices of three-dimensional total variation together. With weights: of a ray of weight 1; rays of weight 0 do not count
---@field check? integer iterations between two checks of a rule, such as tolerance; each waits for the device
---@field history? boolean return the objective of each slice where each iteration begins, as far as the work went
---@field callback? function called after each iteration with its number, the slices as they are and {objective = array}; true ends the work. What it gets is valid during the call

---Slices by the simultaneous iterative reconstruction technique: corrections by all rays at once, divided by the lengths of the rays and by the sums of weights of the pixels.
---@param sinograms moonbeam.array line integrals (row, angle, column)
---@param angles number[] one per angle
---@param options? moonbeam.options.tomo_sirt
---@return any # the slices (row, y, x), and {iterations, done = how many slices a rule ended, history = objectives (iteration, row), f64, if asked for}.
function mb.tomo.sirt(sinograms, angles, options) end

---Angles within one turn: each angle modulo 2 pi.
---@param angles number[] one per projection
---@return any # a new table.
function mb.tomo.wrapped(angles) end

---@class moonbeam.options.view_projections
---@field sxy? integer factor that stretches the plane
---@field sz? integer factor that stretches the axis
---@field gap? integer between the parts
---@field range? any {black, white}
---@field percentiles? any of the finite values, {black, white}
---@field bits? any 8 or 16
---@field gamma? number above 1 is brighter
---@field legend? string a line that is kept inside the file, beside the window
---@field overwrite? boolean replace an existing file

---Maximum projections of a volume (z, y, x) as one picture: XY, at its right ZY, below it XZ.
---@param path? any 
---@param volume moonbeam.array 
---@param options? moonbeam.options.view_projections
function mb.view.projections(path, volume, options) end

---@class moonbeam.options.view_save
---@field range? any {black, white}
---@field percentiles? any of the finite values, {black, white}
---@field bits? any 8 or 16
---@field gamma? number above 1 is brighter
---@field legend? string a line that is kept inside the file, beside the window
---@field overwrite? boolean replace an existing file

---Writes a slice (row, column) as a gray PNG, or (row, column, 3) of u8 as a colored one.
---@param path any 
---@param array moonbeam.array 
---@param options? moonbeam.options.view_save
function mb.view.save(path, array, options) end

---The window of an array: the values at two percentiles of its finite elements (default 0.5 and 99.5).
---@param array moonbeam.array 
function mb.view.window(array) end

---Bytes of all elements.
---@param volume table 
function mb.volumes.bytes(volume) end

---Writes the only volume of a file that is being written, and completes the file.
---@param file table 
---@param array moonbeam.array 
function mb.volumes.complete(file, array) end

---Steps in bytes of a dense row-major array of elements.
---@param shape integer[] 
---@param dtype table 
function mb.volumes.dense_steps(shape, dtype) end

---A class of volumes in files: methods fill(block, first) and take(block, first) move dense host blocks.
---@param methods table 
function mb.volumes.file_class(methods) end

---A dataset of an open file (closed with the volume); `dataset` is nil in a dry run that creates it.
---@param file any 
---@param dataset? any 
---@param shape integer[] 
---@param dtype table 
function mb.volumes.hdf5(file, dataset, shape, dtype) end

---All of a volume as one array on a device.
---@param volume table 
---@param device? moonbeam.device|string 
function mb.volumes.load(volume, device) end

---All of a volume as transforms take it.
---@param volume table 
---@param device? moonbeam.device|string 
function mb.volumes.load_real(volume, device) end

---A volume to be read: the blocks of another through a function that returns a new array of that dtype.
---@param volume table 
---@param dtype string 
---@param fn function 
function mb.volumes.map(volume, dtype, fn) end

---An array as a volume; the array stays its maker's.
---@param array moonbeam.array 
function mb.volumes.of_array(array) end

---Some pages of a volume in a file, to be read: `pages` are their numbers from 1, ascending.
---@param volume table 
---@param pages table 
function mb.volumes.pages(volume, pages) end

---A volume that a plan takes for a file which does not exist yet.
---@param shape integer[] 
---@param dtype table 
function mb.volumes.planned(shape, dtype) end

---Elements of a rawfile: {file, shape, dtype, offset, steps (default: dense), swap (big-endian), samples (what is stored, where that is widened to dtype: "i8" and "i16" to i32; "u32", "i64" and "u64" to f64)}.
---@param facts table 
function mb.volumes.raw(facts) end

---An array as transforms take it: itself if it is u8, u16 or f32, else a copy as f32 in its place.
---@param array moonbeam.array 
function mb.volumes.real(array) end

---A volume in a file without a name in the folder of `beside`; it is gone when it is closed, or with the process.
---@param beside string 
---@param shape integer[] 
---@param dtype table 
function mb.volumes.scratch(beside, shape, dtype) end

---An array into a volume of its shape, slab by slab.
---@param volume table 
---@param array moonbeam.array 
function mb.volumes.store(volume, array) end

---A volume to be written that remembers `least` and `greatest` of what is written to it.
---@param volume table 
function mb.volumes.watch(volume) end

---A class of files that are being written, with `file` (nil in a dry run): finish() gives the complete file its name, close() without that leaves nothing.
---@param methods table 
function mb.volumes.writer_class(methods) end

---Does a name mean a Zarr array or group, rather than a file?
---@param name string 
function mb.zarr.is(name) end

---@class moonbeam.options.zarr_open
---@field channel? integer of a TIFF hyperstack or OME-Zarr
---@field frame? integer of a TIFF hyperstack or OME-Zarr
---@field axes? string of a TIFF file: what its pages are, Z, C and T from slow to fast, whatever the file says: Z, ZC, or ZC2 where there are 2 channels
---@field pages? table of a TIFF file: the first and the last of its pages to be read; without axes they are slices
---@field image? integer of a TIFF file that has several
---@field threads? integer of decoding; bounds its scratch

---A Zarr array as a volume (moonbeam.volumes): FOLDER.zarr (the finest level of an OME-Zarr image, or the array itself) or FOLDER.zarr/PATH.
---@param name string 
---@param options? moonbeam.options.zarr_open
function mb.zarr.open(name, options) end

---@class moonbeam.options.binary
---@field b? moonbeam.array right operand, same dtype as a
---@field scalar? number right operand if b is absent; takes the dtype of a
---@field reverse? boolean swap the operands: fn(b, a)
---@field out? moonbeam.array the array for the result

---Elementwise arithmetic of two arrays, or of an array and a number.
---@param a moonbeam.array left operand
---@param fn "add"|"sub"|"mul"|"div"|"min"|"max"|"pow" the function
---@param options? moonbeam.options.binary
---@return moonbeam.array
function mb.binary(a, fn, options) end

---@class moonbeam.options.convert
---@field scale? number factor applied to every value before the offset
---@field offset? number added to the (real part of the) scaled value
---@field out? moonbeam.array the array for the result

---Changes the element type, with optional linear scaling; also copies any view.
---@param a moonbeam.array array to convert or copy; any strides
---@param dtype "u8"|"u16"|"i32"|"f16"|"f32"|"f64"|"c64"|"c128" element type of the result
---@param options? moonbeam.options.convert
---@return moonbeam.array
function mb.convert(a, dtype, options) end

---@class moonbeam.options.crop
---@field before? number|number[] elements to take off in front: one number per axis, or one for all; default 0
---@field after? number|number[] elements to take off behind: one number per axis, or one for all; default 0
---@field shape? number|number[] extents of the result, instead of before and after
---@field where? "start"|"center"|"end" with shape: position of the smaller array in the larger one; center: the elements (n - 1) / 2, rounded down, coincide
---@field out? moonbeam.array the array for the result

---A dense copy of the middle of an array.
---@param a moonbeam.array array to crop; any strides
---@param options? moonbeam.options.crop
---@return moonbeam.array
function mb.crop(a, options) end

---@class moonbeam.options.fill
---@field imag? number imaginary part; complex arrays only
---@field out? moonbeam.array the array for the result

---Sets every element of an array to one value, in place.
---@param a moonbeam.array array to fill; any strides
---@param value number the value; for integers rounded to nearest even and clamped, NaN becomes 0
---@param options? moonbeam.options.fill
---@return moonbeam.array
function mb.fill(a, value, options) end

---@class moonbeam.options.maximum_projection
---@field axis? integer axis to project along; 1-based, negative from the end
---@field out? moonbeam.array the array for the result

---Maximum along one axis, in the type of the array.
---@param a moonbeam.array array; any strides
---@param options? moonbeam.options.maximum_projection
---@return moonbeam.array
function mb.maximum_projection(a, options) end

---@class moonbeam.options.mul_add
---@field a? number factor of dst; 0 overwrites dst, even NaN
---@field b? number factor of other
---@field region? number|number[] part of dst, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default all of dst
---@field other_region? number|number[] part of other, {y0, y1, x0, x1}, of the same size; default all of other
---@field out? moonbeam.array the array for the result

---Weighted sum of two images in place: dst[D] = a dst[D] + b other[O].
---@param dst moonbeam.array image that is changed inside its region (row, column)
---@param other moonbeam.array image that is added (row, column); not dst itself
---@param options? moonbeam.options.mul_add
---@return moonbeam.array
function mb.mul_add(dst, other, options) end

---@class moonbeam.options.pad
---@field before? number|number[] elements to add in front: one number per axis, or one for all; default 0
---@field after? number|number[] elements to add behind: one number per axis, or one for all; default 0
---@field shape? number|number[] extents of the result, instead of before and after
---@field where? "start"|"center"|"end" with shape: position of the smaller array in the larger one; center: the elements (n - 1) / 2, rounded down, coincide
---@field mode? "constant"|"edge"|"reflect"|"symmetric"|"wrap"|"custom" values of the new elements, as in numpy.pad; custom: sources from rows_index and cols_index
---@field value? number|number[] mode constant: the constant (default 0), or {before, after}, or one such pair per axis, {{1, 2}, {3, 4}}; a corner takes the constant of the last axis
---@field rows_index? number|number[] mode custom: 1-based source row of each result row
---@field cols_index? number|number[] mode custom: 1-based source column of each result column
---@field out? moonbeam.array the array for the result

---Grows an array on every side: constant, edge, reflect, symmetric or wrap.
---@param a moonbeam.array array to pad; any strides
---@param options? moonbeam.options.pad
---@return moonbeam.array
function mb.pad(a, options) end

---@class moonbeam.options.quantize
---@field low? number the value that is stored as 0
---@field high? number the value that is stored as the largest integer, or as 1 in f16; above low
---@field rounding? "nearest"|"down" of integers: to the nearest, ties to even, or down
---@field nonfinite? number what NaN and infinities count as; default: NaN becomes 0, infinities the ends
---@field out? moonbeam.array the array for the result

---Stores f32 values in fewer bits and counts those that do not fit.
---@param a moonbeam.array values
---@param dtype "u8"|"u16"|"f16" element type of the result
---@param options? moonbeam.options.quantize
---@return moonbeam.array
---@return moonbeam.array
function mb.quantize(a, dtype, options) end

---@class moonbeam.options.reduce
---@field axis? integer axis to reduce; 1-based, negative from the end; 0: all elements
---@field out? moonbeam.array the array for the result

---Sum, minimum, maximum, mean or norm, over all elements or along one axis.
---@param a moonbeam.array the array; any strides
---@param fn "sum"|"min"|"max"|"mean"|"norm"|"positive" the reduction; norm is sqrt(sum |x|^2), positive the sum without finite values below 0
---@param options? moonbeam.options.reduce
---@return moonbeam.array
function mb.reduce(a, fn, options) end

---Circular shift along any axes.
---@param a moonbeam.array array; any strides
---@param shift number|number[] shift towards higher indices: one number per axis, or one for all
---@return moonbeam.array
function mb.roll(a, shift) end

---Elementwise functions: neg, abs, exp, log, sqrt, square, reciprocal.
---@param a moonbeam.array the array; exp, log, sqrt and reciprocal need f32 or f64; neg takes no unsigned integers
---@param fn "neg"|"abs"|"exp"|"log"|"sqrt"|"square"|"reciprocal" the function
---@return moonbeam.array
function mb.unary(a, fn) end

---@class moonbeam.options.double_wedge
---@field ratio? number width of the object, a part of that of the sinogram
---@field drop? integer rows of the spectrum on either side of frequency 0 that do not count; at most a tenth of the angles
---@field column_drop? integer columns of the spectrum on either side of frequency 0 that do not count
---@field out? moonbeam.array the array for the result

---The metric by which Vo's method finds the rotation axis, for many trial columns of a sinogram.
---@param sino moonbeam.array sinograms (angle, column) or (row, angle, column) over half a turn, both ends included
---@param centers number|number[] trial columns of the axis, 0-based, ascending
---@param options? moonbeam.options.double_wedge
---@return moonbeam.array
function mb.double_wedge(sino, centers, options) end

---@class moonbeam.options.overlap_metric
---@field window? integer columns that are compared
---@field side? "left"|"right" the side of the first image on which the second one meets it
---@field mirror? boolean take the second image mirrored, its last column first
---@field normalize? boolean scale each row of the first image's window to the mean magnitude of the second one's
---@field blend? boolean compare both with their blend, too
---@field out? moonbeam.array the array for the result

---How well the end of an image matches each window of another one.
---@param first moonbeam.array image or sinogram
---@param second moonbeam.array image or sinogram of as many rows
---@param options? moonbeam.options.overlap_metric
---@return moonbeam.array
function mb.overlap_metric(first, second, options) end

---@class moonbeam.options.circular_mask
---@field radius? number radius of the circle as a fraction of half the smaller side
---@field value? number value outside the circle
---@field size? number|number[] whole slice {ny, nx} or n; default that of a
---@field origin? number|number[] {y, x} of the first pixel of a in the whole slice, 0-based; default {0, 0}
---@field out? moonbeam.array the array for the result

---Sets what lies outside a circle around the middle of a slice.
---@param a moonbeam.array slices (z, y, x), or one (y, x); any strides
---@param options? moonbeam.options.circular_mask
---@return moonbeam.array
function mb.circular_mask(a, options) end

---@class moonbeam.options.dead_pixels
---@field darks? moonbeam.array frames without beam (m, h, w); without them the dark is 0
---@field rule? "dim"|"constant" dim: the mean of frames less that of darks is at most least; constant: all frames have the same value there, and there are two at least
---@field least? number of the rule dim
---@field out? moonbeam.array the array for the result

---Finds the pixels of a detector that see no light, or whose value never changes.
---@param frames moonbeam.array flat fields, or for the rule constant projections (n, h, w)
---@param options? moonbeam.options.dead_pixels
---@return moonbeam.array
---@return moonbeam.array
function mb.dead_pixels(frames, options) end

---@class moonbeam.options.eigen_flat_field
---@field dark? moonbeam.array mean frame without beam (h, w); default 0
---@field width? integer columns of each strip, at most half of a frame
---@field floor? number samples of the strips with data - dark below it are left out of the fit
---@field nonfinite? number replaces results that are NaN or infinite
---@field out? moonbeam.array the array for the result

---Raw frames to transmission, by a flat that is fitted to each frame.
---@param data moonbeam.array raw frames (n, h, w): projection, row, column
---@param mean moonbeam.array mean of -ln(flat - dark) over flats (h, w)
---@param basis moonbeam.array what -ln of a flat consists of beside the mean (m, h, w), at most 24 images
---@param inverse number|number[] inverse (m, m) of the inner products of the basis over both strips, row after row
---@param options? moonbeam.options.eigen_flat_field
---@return moonbeam.array
---@return moonbeam.array
function mb.eigen_flat_field(data, mean, basis, inverse, options) end

---Weighted sums of frames, then a constant and two gradients.
---@param a moonbeam.array frames (n, row, column); rows anywhere
---@param weights number|number[] factors of the n frames for each component, one component after the other
---@return moonbeam.array
function mb.eigen_flats(a, weights) end

---@class moonbeam.options.flat_field
---@field darks? moonbeam.array frames without beam (nd, h, w); without them the dark is 0
---@field flats? moonbeam.array frames without sample (nf, h, w); without them the denominator is 1
---@field mode? "mean"|"median" how flats, and darks, are combined into one frame each
---@field dark_mode? "same"|"mean"|"median" how darks are combined; same: as flats
---@field floor? number least denominator; a smaller flat - dark is raised to it
---@field nonfinite? number replaces results that are NaN or infinite
---@field count_raised? boolean count detector pixels with a raised denominator; false for further angles of a scan in pieces
---@field groups? number|number[] flats in each group, in the order of flats; default: one group
---@field positions? number|number[] where each group lies in the scan, ascending; for several groups
---@field frames? number|number[] where each frame of data lies in the scan; for several groups
---@field scale? number|number[] factor of each frame of data, such as usual / own current of the ring
---@field flat_scale? number|number[] factor of each frame of flats
---@field out? moonbeam.array the array for the result

---Raw frames to transmission: (data - dark) / (flat - dark).
---@param data moonbeam.array raw frames (n, h, w): projection, row, column
---@param options? moonbeam.options.flat_field
---@return moonbeam.array
---@return moonbeam.array
function mb.flat_field(data, options) end

---@class moonbeam.options.half_acquisition_weight
---@field extend? boolean add columns of zeros beyond the axis, to the width of the whole field of view
---@field out? moonbeam.array the array for the result

---Weights the columns that a half acquisition sees twice, so that both views add up to one.
---@param sino moonbeam.array sinograms over a whole turn; the last axis is the detector
---@param center number rotation axis, 0-based, at least a pixel from the middle of the detector
---@param options? moonbeam.options.half_acquisition_weight
---@return moonbeam.array
function mb.half_acquisition_weight(sino, center, options) end

---@class moonbeam.options.mean_projection
---@field transmission? boolean the mean of exp(-a), for line integrals
---@field out? moonbeam.array the array for the result

---The mean over all frames of a stack.
---@param a moonbeam.array frames (angle, row, column); any strides
---@param options? moonbeam.options.mean_projection
---@return moonbeam.array
function mb.mean_projection(a, options) end

---@class moonbeam.options.minus_log
---@field min? number lower clip bound, positive
---@field max? number upper clip bound, above min
---@field out? moonbeam.array the array for the result

---Transmission to attenuation: -ln(clip(a, min, max)).
---@param a moonbeam.array transmission; any strides
---@param options? moonbeam.options.minus_log
---@return moonbeam.array
function mb.minus_log(a, options) end

---@class moonbeam.options.normalize_background
---@field method? "edges"|"chebyshev" edges: a line through the means of both edges; chebyshev: the parabola that fits the whole row best
---@field operation? "divide"|"subtract" divide: for transmission; subtract: for line integrals
---@field width? integer columns of each edge, at most half of the row
---@field floor? number least divisor; a smaller one is raised to it
---@field out? moonbeam.array the array for the result

---Takes the background of each row out: what its edges have, or its slow part.
---@param a moonbeam.array rows (..., row, column): projections or sinograms; rows anywhere
---@param options? moonbeam.options.normalize_background
---@return moonbeam.array
function mb.normalize_background(a, options) end

---A polynomial of each element: c0 + c1 a + c2 a^2 + ...
---@param a moonbeam.array values; any strides
---@param coefficients number|number[] factors of the powers 0, 1, 2, ... of a value; at most 16
---@return moonbeam.array
function mb.polynomial(a, coefficients) end

---@class moonbeam.options.stitch_half_acquisition
---@field half? integer number of angles in half a turn; 0: half of all angles, rounded up
---@field out? moonbeam.array the array for the result

---Joins the two halves of a half acquisition into sinograms of the whole field of view.
---@param sino moonbeam.array sinograms over a whole turn (row, angle, column), or one (angle, column)
---@param center number rotation axis, 0-based, at least a pixel from the middle of the detector
---@param options? moonbeam.options.stitch_half_acquisition
---@return moonbeam.array
function mb.stitch_half_acquisition(sino, center, options) end

---@class moonbeam.options.vertical_shift
---@field indices? number|number[] for a subset of projections: 1-based index of the shift of each projection
---@field out? moonbeam.array the array for the result

---Moves each projection vertically by its own fractional number of rows.
---@param a moonbeam.array projections (angle, row, column), or one (row, column)
---@param shifts number|number[] one per projection; a positive shift moves the content to lower row numbers
---@param options? moonbeam.options.vertical_shift
---@return moonbeam.array
function mb.vertical_shift(a, shifts, options) end

---@class moonbeam.options.extrapolate
---@field alpha? number length of the continuation, in steps
---@field min? number lower bound of the prediction
---@field out? moonbeam.array the array for the result

---Momentum: continues the estimate along its last step, in place.
---@param estimate moonbeam.array new estimate; becomes the prediction
---@param previous moonbeam.array previous estimate; becomes the new estimate
---@param target moonbeam.array padded rows; also receive the prediction
---@param options? moonbeam.options.extrapolate
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.extrapolate(estimate, previous, target, options) end

---@class moonbeam.options.gradient_step
---@field step? number factor of the gradient
---@field min? number lower bound of the estimate; default none
---@field metrics? boolean return sums of the estimate and its change
---@field out? moonbeam.array the array for the result

---Least squares: a step along the gradient, bounded below, in place, with sums.
---@param estimate moonbeam.array estimate on the grid
---@param gradient moonbeam.array back-projected residual, padded rows; becomes the new estimate
---@param options? moonbeam.options.gradient_step
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.gradient_step(estimate, gradient, options) end

---@class moonbeam.options.psf_gaussian
---@field center? number|number[] 0-based position of the peak; default (n - 1) / 2 rounded down, the default center of otf
---@field normalize? boolean true: the sum is 1; false: the peak is 1
---@field out? moonbeam.array the array for the result

---Gaussian point spread function with a width for each axis.
---@param size number|number[] extents, one per axis (one to three)
---@param sigma number|number[] standard deviations, one per axis or one for all
---@param options? moonbeam.options.psf_gaussian
---@return moonbeam.array
function mb.psf_gaussian(size, sigma, options) end

---@class moonbeam.options.residual
---@field weights? moonbeam.array like image: factors of the residual, 0 for bad pixels
---@field metrics? boolean return the sum of squares
---@field out? moonbeam.array the array for the result

---Least squares: measured image minus blurred estimate, in place, with its square.
---@param blurred moonbeam.array blurred estimate on the grid, padded rows; becomes the residual
---@param image moonbeam.array measured image, at the origin of the grid
---@param options? moonbeam.options.residual
---@return moonbeam.array
---@return moonbeam.array
function mb.residual(blurred, image, options) end

---@class moonbeam.options.rl_consensus
---@field table? moonbeam.array summed_area of the normalized PSF: gives the normalizer
---@field normalizer? moonbeam.array normalizer on the grid: the back-projected weights
---@field window? number|number[] with table: extents of the image, which is at the origin of the grid
---@field center? number|number[] with table: 0-based position of the origin in the PSF, whole numbers
---@field floor? number nothing was measured where the normalizer is at most this value
---@field out? moonbeam.array the array for the result

---Gradient consensus: the mean of two corrections, and whether they agree.
---@param first moonbeam.array back-projected ratio of the first half, padded rows; becomes the mean of both
---@param second moonbeam.array back-projected ratio of the second half; becomes the product of the gradients
---@param n integer samples of a row, which has 2 * (n/2 + 1) elements
---@param options? moonbeam.options.rl_consensus
---@return moonbeam.array
---@return moonbeam.array
function mb.rl_consensus(first, second, n, options) end

---@class moonbeam.options.rl_ratio
---@field weights? moonbeam.array like image: factors of the ratio, 0 for bad pixels
---@field eps? number least value of blurred to divide by
---@field background? number counts that lie under every value of blurred: they are added to it
---@field tile? boolean blurred is a part of the estimate and has the shape of image
---@field metrics? boolean return the misfit
---@field out? moonbeam.array the array for the result

---Richardson-Lucy: measured image over blurred estimate, in place, with the misfit.
---@param blurred moonbeam.array blurred estimate on the grid, padded rows; becomes the ratio
---@param image moonbeam.array measured image, at the origin of the grid
---@param options? moonbeam.options.rl_ratio
---@return moonbeam.array
---@return moonbeam.array
function mb.rl_ratio(blurred, image, options) end

---@class moonbeam.options.rl_split_ratio
---@field weights? moonbeam.array like image: factors of the ratios, 0 for bad pixels
---@field seed? integer the same seed gives the same halves
---@field eps? number least value of blurred to divide by
---@field background? number counts that lie under every value of blurred: they are added to it
---@field out? moonbeam.array the array for the result

---Gradient consensus: the image's photons in two random halves, over half of blurred.
---@param blurred moonbeam.array blurred estimate on the grid, padded rows; becomes the ratio of the first half
---@param second moonbeam.array like blurred; is overwritten by the ratio of the second half
---@param image moonbeam.array measured counts of photons, at the origin of the grid
---@param options? moonbeam.options.rl_split_ratio
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.rl_split_ratio(blurred, second, image, options) end

---@class moonbeam.options.rl_step
---@field weights? moonbeam.array like image: factors of the ratio, 0 for bad pixels
---@field table? moonbeam.array summed_area of the normalized PSF: gives the normalizer
---@field normalizer? moonbeam.array normalizer on the grid: the back-projected weights
---@field window? number|number[] with table: extents of the image, which is at the origin of the grid
---@field center? number|number[] with table: 0-based position of the origin in the PSF, whole numbers
---@field floor? number nothing was measured where the normalizer is at most this value
---@field eps? number least value of the blurred estimate to divide by
---@field min? number lower bound of the estimate, and its value where nothing was measured
---@field background? number counts that lie under every value of blurred: they are added to it
---@field metrics? boolean return the misfit and sums of the estimate and its change
---@field gradient? moonbeam.array like estimate: the change of the previous call; becomes the change of this one
---@field out? moonbeam.array the array for the result

---Richardson-Lucy: one iteration, in place, with its metrics.
---@param estimate moonbeam.array estimate on the grid
---@param work moonbeam.array the estimate on padded rows (embed); becomes the input of the next step
---@param otf moonbeam.array half spectrum of the PSF on the grid, with the factor 1/N, as otf makes it
---@param image moonbeam.array measured image, at the origin of the grid
---@param options? moonbeam.options.rl_step
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.rl_step(estimate, work, otf, image, options) end

---@class moonbeam.options.rl_total_variation
---@field lambda? number weight of the total variation
---@field epsilon? number gradients far below this value count as flat
---@field flat? number gradients below flat lambda x sum(1 / spacing^2) have this length: above 2 the step is stable, with momentum above 3
---@field spacing? number|number[] distance of voxels, one number per axis or one for all; default 1
---@field start? number|number[] 0-based element of the grid with which the estimate begins; it goes on across the grid's end
---@field extent? number|number[] extents of the estimate: nothing is known beyond; default those of the grid
---@field at? number|number[] correction is a tile of the estimate, and begins there, 0-based
---@field out? moonbeam.array the array for the result

---Richardson-Lucy: divides the correction by the total-variation term.
---@param estimate moonbeam.array estimate on the grid
---@param correction moonbeam.array back-projected ratio, padded rows; becomes the quotient
---@param options? moonbeam.options.rl_total_variation
---@return moonbeam.array
function mb.rl_total_variation(estimate, correction, options) end

---@class moonbeam.options.rl_update
---@field table? moonbeam.array summed_area of the normalized PSF: gives the normalizer
---@field normalizer? moonbeam.array normalizer on the grid: the back-projected weights
---@field consensus? moonbeam.array like correction: the estimate stays where it is negative (rl_consensus)
---@field window? number|number[] with table: extents of the image, which is at the origin of the grid
---@field center? number|number[] with table: 0-based position of the origin in the PSF, whole numbers
---@field floor? number nothing was measured where the normalizer is at most this value
---@field first? number|number[] 0-based position of the first element of a tile in the image; may be negative
---@field min? number lower bound of the estimate, and its value where nothing was measured
---@field metrics? boolean return sums of the estimate and its change
---@field gradient? moonbeam.array like estimate: the change of the previous call; becomes the change of this one
---@field out? moonbeam.array the array for the result

---Richardson-Lucy: estimate times correction over normalizer, in place, with sums.
---@param estimate moonbeam.array estimate on the grid, or a tile of it
---@param correction moonbeam.array back-projected ratio, padded rows; becomes the new estimate, except for a tile
---@param options? moonbeam.options.rl_update
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.rl_update(estimate, correction, options) end

---@class moonbeam.options.wiener_filter
---@field lambda? number regularization: the ratio of noise power to signal power
---@field laplacian? boolean multiply lambda by the squared Laplacian: prefer smooth images to small values
---@field scale? number factor, such as 1/N of the inverse transform
---@field n? integer samples of a row of the real grid; 0: 2 * (m - 1)
---@field out? moonbeam.array the array for the result

---Applies the regularized inverse of a transfer function to a spectrum, in place.
---@param a moonbeam.array half spectrum of the image
---@param otf moonbeam.array transfer function, same shape; 1 at frequency 0 for a PSF of sum 1
---@param options? moonbeam.options.wiener_filter
---@return moonbeam.array
function mb.wiener_filter(a, otf, options) end

---@class moonbeam.options.bilateral_filter
---@field sigma_spatial? number standard deviation of the weight of distances
---@field radius? integer neighbors on each side along an axis; 0: 3 sigma_spatial, rounded up, at least 2
---@field dimensions? integer 2: each slice by itself; 3: the volume as a whole
---@field mode? "constant"|"edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field value? number constant of mode constant
---@field out? moonbeam.array the array for the result

---Smooths with weights for distance and for difference of values: edges stay.
---@param a moonbeam.array image, stack of slices or volume (z, y, x)
---@param sigma_value number standard deviation of the weight of values, in units of the data
---@param options? moonbeam.options.bilateral_filter
---@return moonbeam.array
function mb.bilateral_filter(a, sigma_value, options) end

---@class moonbeam.options.total_variation
---@field iterations? integer number of iterations
---@field dimensions? integer 2: each slice by itself; 3: the volume as a whole
---@field method? "primal_dual"|"rof" primal_dual converges to the minimum; rof takes explicit steps in time toward it
---@field tau? number primal_dual: step of the image; default 1 / (4 dimensions sigma)
---@field sigma? number primal_dual: step of the dual field; default 1 / (4 dimensions tau), or 1 / sqrt(4 dimensions) for both
---@field step? number rof: step in time
---@field epsilon? number rof: added to the square of the gradient
---@field nonnegative? boolean no result is below 0
---@field out? moonbeam.array the array for the result

---Removes noise and keeps edges: total-variation denoising.
---@param a moonbeam.array image, stack of slices or volume (z, y, x)
---@param lambda number weight of the total variation, in units of the data; 0 changes nothing
---@param options? moonbeam.options.total_variation
---@return moonbeam.array
function mb.total_variation(a, lambda, options) end

---@class moonbeam.options.total_variation_sweep
---@field state? moonbeam.array what the sweep before has left (z, 4 y, x); default: this is the first
---@field steps? integer number of steps
---@field tau? number step of the image, as of total_variation
---@field sigma? number step of the dual field, as of total_variation
---@field nonnegative? boolean no value of the image is below 0 after the first step
---@field out? moonbeam.array the array for the result

---Some steps of total-variation denoising of a volume, from a state to a state.
---@param a moonbeam.array volume (z, y, x)
---@param lambda number weight of the total variation, in units of the data
---@param options? moonbeam.options.total_variation_sweep
---@return moonbeam.array
function mb.total_variation_sweep(a, lambda, options) end

---@class moonbeam.options.apply_otf
---@field n? integer samples per row; 0: the last extent less 2, which is even
---@field conj? boolean multiply by the conjugate of otf: the adjoint
---@field both? boolean multiply by otf and by its conjugate
---@field scale? number factor; 1/N if otf does not contain it
---@field out? moonbeam.array the array for the result

---Convolves or correlates a grid with a transfer function, in place.
---@param grid moonbeam.array padded rows of 2 * (n/2 + 1) floats, n of them samples; becomes the convolution
---@param otf moonbeam.array half spectrum (..., n/2 + 1), or planes of it, as otf makes them
---@param options? moonbeam.options.apply_otf
---@return moonbeam.array
function mb.apply_otf(grid, otf, options) end

---@class moonbeam.options.complex_multiply
---@field conj? boolean multiply by the conjugate of b: the adjoint
---@field scale? number real factor, such as 1/N of the inverse transform
---@field out? moonbeam.array the array for the result

---Multiplies a spectrum by a transfer function, or by its conjugate, in place.
---@param a moonbeam.array spectrum; becomes the product
---@param b moonbeam.array factor; its extents are those of the last axes of a; leading axes of a are a batch
---@param options? moonbeam.options.complex_multiply
---@return moonbeam.array
function mb.complex_multiply(a, b, options) end

---@class moonbeam.options.embed
---@field before? number|number[] where the image starts in the grid, one per axis; default 0
---@field boundary? "zero"|"circular"|"reflect"|"mirror"|"replicate" values outside the image
---@field out? moonbeam.array the array for the result

---Copies an image into the padded rows of an in-place transform, with a boundary.
---@param a moonbeam.array image; any strides
---@param size number|number[] extents of the grid, one per axis
---@param options? moonbeam.options.embed
---@return moonbeam.array
function mb.embed(a, size, options) end

---@class moonbeam.options.irfft
---@field axes? integer how many trailing axes to transform
---@field n? integer samples per row of the result; 0: 2 * (m - 1), which is even
---@field consume? boolean destroy the contents of a, which saves a scratch copy
---@field in_place? boolean out is the memory of a, viewed as real: rows of 2 * (n/2 + 1), n of them samples
---@field normalize? boolean divide by the number of points of the result
---@field out? moonbeam.array the array for the result

---Complex-to-real Fourier transform over the last one, two or three axes: the inverse of rfft.
---@param a moonbeam.array spectrum (..., n/2 + 1)
---@param options? moonbeam.options.irfft
---@return moonbeam.array
function mb.irfft(a, options) end

---@class moonbeam.options.otf
---@field center? number|number[] 0-based position of the origin in psf; default (n - 1) / 2 rounded down; fractions shift by phase
---@field scale? number factor; 1 / sum normalizes, 1 / N saves the scaling after the inverse transform
---@field form? "whole"|"planes"|"auto" whole: the half spectrum; planes: only the planes that the PSF reaches, without the transform along z; auto: planes where they are few
---@field reach? integer in planes: at least so many on either side of the center; more are kept if the PSF reaches further
---@field out? moonbeam.array the array for the result

---Transfer function of a point spread function on a grid of any size.
---@param psf moonbeam.array point spread function; may be larger than the grid (it wraps)
---@param size number|number[] extents of the real grid, one per axis of psf
---@param options? moonbeam.options.otf
---@return moonbeam.array
function mb.otf(psf, size, options) end

---@class moonbeam.options.rfft
---@field axes? integer how many trailing axes to transform
---@field in_place? boolean out is the memory of a, viewed as complex
---@field n? integer in_place: samples per row; 0: the last extent less 2, which is even
---@field out? moonbeam.array the array for the result

---Real-to-complex Fourier transform over the last one, two or three axes.
---@param a moonbeam.array real array; with in_place its last extent is 2 * (n/2 + 1)
---@param options? moonbeam.options.rfft
---@return moonbeam.array
function mb.rfft(a, options) end

---@class moonbeam.options.adaptive_threshold
---@field axes? number|number[] axes to filter; 1-based, negative from the end; default all
---@field mode? "constant"|"edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field value? number constant of mode constant
---@field method? "gaussian"|"mean" local level: mean weighted by a Gaussian of sigma (size - 1) / 6, or mean of the box
---@field offset? number subtracted from the local level before the comparison
---@field foreground? integer result where the element is above the level; 255 suits a picture
---@field invert? boolean mark the elements that are not above the level, such as dark objects
---@field out? moonbeam.array the array for the result

---Marks elements that are brighter than their surroundings: a > local level - offset.
---@param a moonbeam.array image, volume or stack
---@param size number|number[] odd extents of the neighborhood: one number, or one for each filtered axis
---@param options? moonbeam.options.adaptive_threshold
---@return moonbeam.array
function mb.adaptive_threshold(a, size, options) end

---@class moonbeam.options.box_filter
---@field axes? number|number[] axes to filter; 1-based, negative from the end; default all
---@field mode? "constant"|"edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field value? number constant of mode constant
---@field out? moonbeam.array the array for the result

---Mean over a box around every element; any axes, any size at the same cost.
---@param a moonbeam.array image, volume or stack
---@param size number|number[] extents of the box: one number, or one per filtered axis; 1 leaves an axis unfiltered
---@param options? moonbeam.options.box_filter
---@return moonbeam.array
function mb.box_filter(a, size, options) end

---@class moonbeam.options.dezinger
---@field relative? boolean the threshold is a part of the median's magnitude
---@field which? "both"|"bright"|"dark" values above the median (bright), below it (dark), or both
---@field mode? "edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field counted? number|number[] {first, last} of each axis: where replaced values are counted; default everywhere, for pieces of an array their own part
---@field out? moonbeam.array the array for the result

---Replaces outliers, such as zingers: values far from the median of their window.
---@param a moonbeam.array image, stack of images or volume
---@param size number|number[] odd extents of the window: one number, or one for each axis; {1, 3, 3} filters each image of a stack
---@param threshold number a value farther from the median than this is replaced; in the unit of the values, or with relative a part of the median
---@param options? moonbeam.options.dezinger
---@return moonbeam.array
---@return moonbeam.array
function mb.dezinger(a, size, threshold, options) end

---@class moonbeam.options.gaussian_filter
---@field axes? number|number[] axes to filter; 1-based, negative from the end; default all
---@field mode? "constant"|"edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field value? number constant of mode constant
---@field truncate? number where the Gaussian is cut off; the radius is truncate * sigma, rounded
---@field out? moonbeam.array the array for the result

---Gaussian smoothing with a width for each axis.
---@param a moonbeam.array image, volume or stack
---@param sigma number|number[] standard deviations: one number, or one per filtered axis; 0 leaves an axis unfiltered
---@param options? moonbeam.options.gaussian_filter
---@return moonbeam.array
function mb.gaussian_filter(a, sigma, options) end

---@class moonbeam.options.median_filter
---@field mode? "edge"|"reflect"|"symmetric"|"wrap" values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest)
---@field out? moonbeam.array the array for the result

---Median of a window around every element, in two or three dimensions.
---@param a moonbeam.array image, stack of images or volume
---@param size number|number[] odd extents of the window: one number, or one for each axis; {1, 3, 3} filters each image of a stack
---@param options? moonbeam.options.median_filter
---@return moonbeam.array
function mb.median_filter(a, size, options) end

---@class moonbeam.options.mend
---@field mask? moonbeam.array pixels to replace in each image: not 0 where (row, column) is bad
---@field method? "median"|"mean" median or mean of the valid neighbors; the median of an even number is the mean of the middle two
---@field reach? integer how far valid neighbors may be along rows and columns
---@field nonfinite? boolean replace NaN and infinities, too
---@field counted? number|number[] {first, last} of each axis: where replaced values are counted; default everywhere, for pieces of an array their own part
---@field out? moonbeam.array the array for the result

---Replaces values that are not finite, and the pixels of a mask, by their neighbors.
---@param a moonbeam.array image or stack of images
---@param options? moonbeam.options.mend
---@return moonbeam.array
---@return moonbeam.array
function mb.mend(a, options) end

---@class moonbeam.options.summed_area
---@field scale? number factor of every sum, such as 1 / the sum of all elements
---@field out? moonbeam.array the array for the result

---Summed-area table: sums over boxes by look-ups.
---@param a moonbeam.array array
---@param options? moonbeam.options.summed_area
---@return moonbeam.array
function mb.summed_area(a, options) end

---@class moonbeam.options.bin
---@field rest? "drop"|"keep" what becomes of the elements at the end of an axis that do not fill a bin: they are left out, or are a smaller bin
---@field out? moonbeam.array the array for the result

---Means of blocks of elements.
---@param a moonbeam.array frames (frame, row, column), one frame, or a line
---@param sizes number|number[] elements that become one: a whole number for each axis
---@param options? moonbeam.options.bin
---@return moonbeam.array
function mb.bin(a, sizes, options) end

---Joins the images of two cameras that lie side by side in each frame.
---@param a moonbeam.array frames (frame, row, column), or one (row, column)
---@param seam integer columns of the image on the left
---@param overlap integer columns that both images show: the last of the left, the first of the right
---@return moonbeam.array
function mb.blend_seam(a, seam, overlap) end

---@class moonbeam.options.horizontal_shift
---@field indices? number|number[] for a subset of projections: 1-based index of the shift of each projection
---@field mode? "constant"|"edge" columns beyond the edges: value, or the edge
---@field value? number constant of mode constant
---@field out? moonbeam.array the array for the result

---Moves each projection horizontally by its own fractional number of columns.
---@param a moonbeam.array projections (angle, row, column), or one (row, column)
---@param shifts number|number[] one per projection; a positive shift moves the content to lower column numbers
---@param options? moonbeam.options.horizontal_shift
---@return moonbeam.array
function mb.horizontal_shift(a, shifts, options) end

---@class moonbeam.options.remap
---@field order? integer 1: linear interpolation; 3: cubic splines
---@field mode? "constant"|"edge"|"reflect"|"symmetric" values beyond the edges, as in pad
---@field value? number constant of mode constant
---@field part? number|number[] where a is a part of frames: {row of the frame, from 1, that is its first, rows of the frame}
---@field out? moonbeam.array the array for the result

---Takes each pixel of frames from a place that two arrays give.
---@param a moonbeam.array frames (frame, row, column), or one (row, column)
---@param rows moonbeam.array for each pixel of the result, its row in a frame, from 0
---@param columns moonbeam.array and its column, from 0
---@param options? moonbeam.options.remap
---@return moonbeam.array
function mb.remap(a, rows, columns, options) end

---@class moonbeam.options.resample
---@field method? "box"|"linear" box: means over the area of a new pixel; linear: the value at its middle
---@field part? number|number[] where a is a part of frames: {row of the frame, from 1, that is its first, rows of the frame}
---@field rows? number|number[] {first, last}: rows of the result to make, from 1; default all
---@field out? moonbeam.array the array for the result

---Frames with another number of rows and columns.
---@param a moonbeam.array frames (frame, row, column), or one (row, column)
---@param size number|number[] {rows, columns} of the result
---@param options? moonbeam.options.resample
---@return moonbeam.array
function mb.resample(a, size, options) end

---@class moonbeam.options.rotate
---@field center? number|number[] {row, column} that stays, from 0; default the middle of the frame
---@field order? integer 1: linear interpolation; 3: cubic splines
---@field mode? "constant"|"edge"|"reflect"|"symmetric" values beyond the edges, as in pad
---@field value? number constant of mode constant
---@field part? number|number[] where a is a part of frames: {row of the frame, from 1, that is its first, rows of the frame}
---@field rows? number|number[] {first, last}: rows of the frame to make, from 1; default those of a
---@field out? moonbeam.array the array for the result

---Turns frames about a point.
---@param a moonbeam.array frames (frame, row, column), or one (row, column)
---@param angle number counterclockwise, with row 1 at the top
---@param options? moonbeam.options.rotate
---@return moonbeam.array
function mb.rotate(a, angle, options) end

---@class moonbeam.options.stitch_turn
---@field half? integer how many frames are half a turn; 0: half of all, rounded down
---@field gap? "linear"|"edge" what fills columns that none sees: a line from edge to edge, or the edge on the left
---@field before? integer columns added on the left, which repeat the edge
---@field after? integer columns added on the right, which repeat the edge
---@field out? moonbeam.array the array for the result

---Joins the frames of a whole turn into frames of half a turn and up to twice the width.
---@param a moonbeam.array frames over a whole turn (angle, row, column)
---@param overlap number columns that both halves see; negative: columns between them that none sees
---@param side "left"|"right" of the detector where the axis is
---@param options? moonbeam.options.stitch_turn
---@return moonbeam.array
function mb.stitch_turn(a, overlap, side, options) end

---@class moonbeam.options.undistort
---@field scale? number|number[] {row, column}: size of a pixel of a, where the factors are of other pixels; default 1
---@field inverse? boolean put the distortion in
---@field order? integer 1: linear interpolation; 3: cubic splines
---@field mode? "constant"|"edge"|"reflect"|"symmetric" values beyond the edges, as in pad
---@field value? number constant of mode constant
---@field part? number|number[] where a is a part of frames: {row of the frame, from 1, that is its first, rows of the frame}
---@field rows? number|number[] {first, last}: rows of the frame to make, from 1; default those of a
---@field out? moonbeam.array the array for the result

---Takes the radial distortion of a lens out of frames, or puts it in.
---@param a moonbeam.array frames (frame, row, column), or one (row, column)
---@param center number|number[] {row, column} of the center of distortion, from 0
---@param factors number|number[] of the polynomial in the distance from the center, px
---@param options? moonbeam.options.undistort
---@return moonbeam.array
function mb.undistort(a, center, factors, options) end

---@class moonbeam.options.cgls_update
---@field over? moonbeam.array what growth is divided by; a step over 0 is 0
---@field circle? number radius of the circle as a fraction of half the smaller side; 0: no circle; what x and r have outside stays
---@field out? moonbeam.array the array for the result

---The step of conjugate gradients in place: x += f p, r -= f q, and r squared.
---@param x moonbeam.array slices (z, y, x), or one (y, x); rows dense
---@param r moonbeam.array residual of the normal equations, like x
---@param p moonbeam.array direction, like x
---@param q moonbeam.array normal operator of p, like x
---@param growth moonbeam.array the step, a number for each slice
---@param options? moonbeam.options.cgls_update
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.cgls_update(x, r, p, q, growth, options) end

---@class moonbeam.options.normal_kernel
---@field size? number|number[] slice {ny, nx} or n that the grid is for; default cols x cols
---@field weights? number|number[] of the squares, one per angle: the operator is A'WA; default 1
---@field period? integer samples of a padded row of the detector, even; 0: twice the width
---@field scale? number factor on the sum over angles
---@field padded? number|number[] the grid {py, px} or p instead: even products of 2, 3, 5 and 7, at least twice the slice
---@field out? moonbeam.array the array for the result

---Spectrum of the normal operator A'A of parallel beams, for normal_operator.
---@param angles number|number[] one per projection, any order
---@param cols integer width of the detector
---@param options? moonbeam.options.normal_kernel
---@return moonbeam.array
function mb.normal_kernel(angles, cols, options) end

---@class moonbeam.options.normal_operator
---@field growth? moonbeam.array with direction: its factor, a number for each slice
---@field over? moonbeam.array with growth: what it is divided by; a factor over 0 is 0
---@field circle? number radius of the circle as a fraction of half the smaller side; 0: no circle; outside, a counts as 0 and the result is 0
---@field dot? boolean return the sums of squares <p, q> too, one for each slice
---@field direction? moonbeam.array like a: becomes a + growth / over * direction inside the circle, and the operator works on it instead of a
---@field out? moonbeam.array the array for the result

---Applies the normal operator A'A of parallel beams, a convolution, to slices.
---@param a moonbeam.array slices (z, y, x), or one (y, x); rows dense
---@param kernel moonbeam.array spectrum (px / 2 + 1, py) of normal_kernel or ramp_preconditioner
---@param options? moonbeam.options.normal_operator
---@return moonbeam.array
---@return moonbeam.array
---@return moonbeam.array
function mb.normal_operator(a, kernel, options) end

---@class moonbeam.options.ramp_preconditioner
---@field floor? number of the frequency; smaller: fewer iterations, and noise earlier
---@field padded? number|number[] the grid {py, px} or p instead: even products of 2, 3, 5 and 7, at least twice the slice
---@field out? moonbeam.array the array for the result

---Spectrum sqrt(|k|^2 + floor^2), a preconditioner of the normal operator.
---@param size number|number[] slice {ny, nx} or n that the grid is for
---@param options? moonbeam.options.ramp_preconditioner
---@return moonbeam.array
function mb.ramp_preconditioner(size, options) end

---@class moonbeam.options.slice_axpy
---@field over? moonbeam.array what growth is divided by; a factor over 0 is 0
---@field less? moonbeam.array like dst, and not dst itself: subtracted from what the factor multiplies
---@field scale? number one more factor, of all slices
---@field of? "other"|"dst" what it multiplies: other, dst + f other; dst, other + f dst
---@field circle? number radius of the circle as a fraction of half the smaller side; 0: no circle; what dst has outside stays
---@field out? moonbeam.array the array for the result

---Adds a multiple of one stack to another in place, a factor for each slice.
---@param dst moonbeam.array slices (z, y, x), or one (y, x); rows dense
---@param other moonbeam.array like dst, and not dst itself
---@param growth moonbeam.array the factor, a number for each slice
---@param options? moonbeam.options.slice_axpy
---@return moonbeam.array
function mb.slice_axpy(dst, other, growth, options) end

---@class moonbeam.options.slice_dot
---@field circle? number radius of the circle as a fraction of half the smaller side; 0: no circle; what is outside is left out
---@field out? moonbeam.array the array for the result

---Dot products of two stacks, slice by slice.
---@param a moonbeam.array slices (z, y, x), or one (y, x); rows dense
---@param b moonbeam.array like a; may be a: sums of squares
---@param options? moonbeam.options.slice_dot
---@return moonbeam.array
function mb.slice_dot(a, b, options) end

---@class moonbeam.options.ellipsoid_projections
---@field center? number 0-based column of the rotation axis; default (cols - 1) / 2
---@field shifts? number|number[] horizontal shift of each projection
---@field subrays? integer rays averaged in each bin
---@field out? moonbeam.array the array for the result

---Exact line integrals of a sum of ellipsoids: an analytic tomography scan.
---@param ellipsoids number|number[] 8 numbers each: density per px, half axes a, b, c, center x, y, z, rotation phi about the vertical
---@param angles number|number[] projection angles
---@param heights number|number[] height of each detector row above the middle
---@param cols integer detector columns
---@param options? moonbeam.options.ellipsoid_projections
---@return moonbeam.array
function mb.ellipsoid_projections(ellipsoids, angles, heights, cols, options) end

---@class moonbeam.options.ellipsoid_volume
---@field subsamples? integer points per side of a pixel that an edge crosses
---@field subslices? integer sections averaged over the 1 px height of a slice; 1: the section at its middle
---@field out? moonbeam.array the array for the result

---Anti-aliased volume of a sum of ellipsoids: the result of a perfect reconstruction.
---@param ellipsoids number|number[] 8 numbers each: density per px, half axes a, b, c, center x, y, z, rotation phi about the vertical
---@param heights number|number[] height of each slice above the middle
---@param size number|number[] slice extents ny, nx, or one number for both
---@param options? moonbeam.options.ellipsoid_volume
---@return moonbeam.array
function mb.ellipsoid_volume(ellipsoids, heights, size, options) end

---@class moonbeam.options.poisson
---@field seed? integer the same seed gives the same counts
---@field first? integer index of the first element in the whole data set, for work in chunks
---@field out? moonbeam.array the array for the result

---Photon noise: a Poisson-distributed count for every mean.
---@param mean moonbeam.array means; negative and non-finite means give 0
---@param options? moonbeam.options.poisson
---@return moonbeam.array
function mb.poisson(mean, options) end

---@class moonbeam.options.phase_filter
---@field method? "paganin"|"generalized"|"ctf"|"farago" the filter, see below
---@field delta_beta? number delta / beta of the material
---@field low? number ctf: regularization of low frequencies
---@field high? number ctf: regularization of high frequencies
---@field padding? "edge"|"reflect"|"symmetric"|"constant"|"none" what is around a frame; none: the frame repeats itself
---@field value? number of constant padding; 1 is the open beam
---@field size? "power"|"smooth" the padded extents: powers of two, or the next products of 2, 3, 5 and 7
---@field padded? number|number[] the padded extents instead: one number, or one for rows and one for columns
---@field log? boolean return -ln of the filtered values: line integrals
---@field min? number smallest value before the logarithm
---@field out? moonbeam.array the array for the result

---Phase retrieval from one distance: Paganin, generalized Paganin, CTF, Farago.
---@param image moonbeam.array frames of transmission (..., row, column); the last axis dense
---@param fresnel number|number[] wavelength * distance / pixel size^2, the inverse Fresnel number of a pixel: one number, or one for rows and one for columns
---@param options? moonbeam.options.phase_filter
---@return moonbeam.array
function mb.phase_filter(image, fresnel, options) end

---Inner products of all pairs of frames.
---@param a moonbeam.array frames (n, row, column), at most 512; rows anywhere
---@return moonbeam.array
function mb.gram_matrix(a) end

---@class moonbeam.options.histogram
---@field bits? "value"|"high"|"low" what the bins are of: values, or the high or the low half of their 32 ordered bits
---@field bins? integer bins between low and high, for values
---@field low? number where the first bin begins, for values
---@field high? number where the last bin ends, inclusive, for values; above low
---@field prefix? number|number[] for the low half: the high halves, 1 to 16 of them, of the values to count
---@field into? moonbeam.array counts that these are added to, in place of a new array
---@field out? moonbeam.array the array for the result

---Counts values in bins, exactly; counts of parts add up to those of the whole.
---@param a moonbeam.array values
---@param options? moonbeam.options.histogram
---@return moonbeam.array
---@return moonbeam.array
function mb.histogram(a, options) end

---@class moonbeam.options.stripes_all
---@field large_size? integer window for dead columns and wide stripes
---@field small_size? integer window for all other stripes
---@field snr? number how far a stripe stands out of the noise; less finds more
---@field drop_ratio? number part of a column's values that its mean leaves out, half of it at each end
---@field normalize? boolean divide the columns that are no stripes by their factors, too
---@field out? moonbeam.array the array for the result

---Removes stripes of sinograms of all kinds: dead, wide and small ones.
---@param sino moonbeam.array sinograms (row, angle, column), or one
---@param options? moonbeam.options.stripes_all
---@return moonbeam.array
function mb.stripes_all(sino, options) end

---@class moonbeam.options.stripes_dead
---@field size? integer window of the median; wider than the stripes
---@field snr? number how far a stripe stands out of the noise; less finds more
---@field residual? boolean remove wide stripes afterwards, as stripes_large does
---@field out? moonbeam.array the array for the result

---Fills in columns of sinograms that do not respond, or that fluctuate.
---@param sino moonbeam.array sinograms (row, angle, column), or one
---@param options? moonbeam.options.stripes_dead
---@return moonbeam.array
function mb.stripes_dead(sino, options) end

---@class moonbeam.options.stripes_large
---@field size? integer window of the median; wider than the stripes
---@field snr? number how far a stripe stands out of the noise; less finds more
---@field drop_ratio? number part of a column's values that its mean leaves out, half of it at each end
---@field normalize? boolean divide the columns that are no stripes by their factors, too
---@field out? moonbeam.array the array for the result

---Removes wide stripes of sinograms: finds them, and replaces them alone.
---@param sino moonbeam.array sinograms (row, angle, column), or one
---@param options? moonbeam.options.stripes_large
---@return moonbeam.array
function mb.stripes_large(sino, options) end

---@class moonbeam.options.stripes_mean
---@field mode? "subtract"|"divide" what is done with the filtered mean
---@field low_sigma? number standard deviation of a Gaussian that smooths the mean; 0: it is not smoothed
---@field high_sigma? number what a Gaussian of this standard deviation keeps of the mean is no stripe; 0: all of the mean is one
---@field out? moonbeam.array the array for the result

---Removes stripes from sinograms: subtracts the filtered mean over the angles, or divides by it.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param options? moonbeam.options.stripes_mean
---@return moonbeam.array
function mb.stripes_mean(sino, options) end

---@class moonbeam.options.stripes_raven
---@field cutoff? number frequency along the columns above which is removed (u): smaller values remove wider stripes
---@field order? integer order of the Butterworth filter (n)
---@field rows? integer greatest frequency along the angles that is filtered (v)
---@field padding? "none"|"edge"|"mean" how angles are padded; columns are padded with edge values, unless it is none
---@field pad? integer width of the padding on each side; 0: a tenth of the smaller extent, at most 150
---@field origin? integer 1: filters are centered one frequency off where an extent is even
---@field out? moonbeam.array the array for the result

---Removes stripes from sinograms: low rows of the Fourier transform are filtered.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param options? moonbeam.options.stripes_raven
---@return moonbeam.array
function mb.stripes_raven(sino, options) end

---@class moonbeam.options.stripes_sorting
---@field size? integer window of the median; wider than the stripes
---@field out? moonbeam.array the array for the result

---Removes stripes of sinograms by sorting: full, partial and small ones.
---@param sino moonbeam.array sinograms (row, angle, column), or one
---@param options? moonbeam.options.stripes_sorting
---@return moonbeam.array
function mb.stripes_sorting(sino, options) end

---@class moonbeam.options.stripes_titarenko
---@field beta? number regularization: smaller values remove wider stripes; 1 removes nothing
---@field out? moonbeam.array the array for the result

---Removes stripes from sinograms: the mean over the angles is regularized.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param options? moonbeam.options.stripes_titarenko
---@return moonbeam.array
function mb.stripes_titarenko(sino, options) end

---@class moonbeam.options.stripes_wavelet
---@field wavelet? "db1"|"db2"|"db3"|"db4"|"db5"|"db6"|"db7"|"db8"|"db9"|"db10"|"db11"|"db12"|"db13"|"db14"|"db15"|"db16"|"db17"|"db18"|"db19"|"db20"|"sym2"|"sym3"|"sym4"|"sym5"|"sym6"|"sym7"|"sym8"|"sym9"|"sym10"|"sym11"|"sym12"|"sym13"|"sym14"|"sym15"|"sym16"|"sym17"|"sym18"|"sym19"|"sym20" Daubechies' wavelets db1 (Haar) to db20, and his least asymmetric ones
---@field sigma? number width of the damping along the angles: greater values remove shorter stripes
---@field level? integer levels of the transform: greater values remove wider stripes; 0: as many as the greater extent can be halved
---@field boundary? "symmetric"|"periodic" how sinograms go on beyond their edges in the transform
---@field padding? "none"|"angles"|"columns"|"both" angles: zeros, an eighth in all; columns: edge values, half the width on both sides; both: a tenth of the smaller extent, at most 150, with means and edge values
---@field origin? number center of the damping in bands with an even number of rows; 0 removes constant stripes, other values leave a part
---@field out? moonbeam.array the array for the result

---Removes stripes from sinograms: vertical details of a wavelet transform are damped.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column)
---@param options? moonbeam.options.stripes_wavelet
---@return moonbeam.array
function mb.stripes_wavelet(sino, options) end

---@class moonbeam.options.backproject
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field roi? number|number[] part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default the full slice
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field circle_value? number value outside the mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field accuracy? "fast"|"exact" fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout
---@field method? "pixel"|"distance" how the two bins beside u share a pixel: linearly, or by overlap with its shadow
---@field out? moonbeam.array the array for the result

---Parallel-beam back-projection with linear interpolation.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column); a permuted view of projections is accepted
---@param angles number|number[] one per angle, any order
---@param options? moonbeam.options.backproject
---@return moonbeam.array
function mb.backproject(sino, angles, options) end

---@class moonbeam.options.fourier_project
---@field cols? integer detector columns; 0: nx of the full slice
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field size? number|number[] full slice {ny, nx} or n; default that of the volume
---@field roi? number|number[] the part of the full slice that the volume holds, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; the rest is 0; needs size
---@field circle? number ignore pixels outside this fraction of half the smaller side; 0: use all pixels
---@field scale? number factor of the sums; 1 gives line integrals in pixel units
---@field accuracy? "fast"|"exact" error of the gridding: fast 7e-5, exact 1e-6
---@field pairs? integer most pairs of slices computed together; fewer take less scratch; 0: automatic
---@field period? integer length after which rows repeat, even, at least the columns; 0: so long that no pixel sees a repetition
---@field out? moonbeam.array the array for the result

---Parallel-beam projection by the direct Fourier method: 2-D FFT, rays, 1-D FFTs.
---@param volume moonbeam.array slices (row, y, x), or one (y, x); with roi that part of them
---@param angles number|number[] any number of angles in any order
---@param options? moonbeam.options.fourier_project
---@return moonbeam.array
function mb.fourier_project(volume, angles, options) end

---@class moonbeam.options.fourier_reconstruct
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field weights? number|number[] one factor per angle, for uneven angles; default 1
---@field size? number|number[] full slice {ny, nx} or n; default cols x cols
---@field roi? number|number[] part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default the full slice
---@field circle? number radius of the circular mask as a fraction of half the smaller side; 0: no mask
---@field circle_value? number value outside the mask
---@field scale? number factor on the sum over angles; default pi / angles
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field accuracy? "fast"|"exact" error of the gridding: fast 7e-5, exact 1e-6
---@field pairs? integer most pairs of slices computed together; fewer take less scratch; 0: automatic
---@field period? integer length after which rows repeat, even, at least the columns; 0: so long that no pixel sees a repetition
---@field out? moonbeam.array the array for the result

---Filtered back-projection by the direct Fourier method: filter, gridding, 2-D FFT.
---@param sino moonbeam.array sinograms (row, angle, column), or one (angle, column); a permuted view of projections is accepted
---@param angles number|number[] one per angle, any order
---@param options? moonbeam.options.fourier_reconstruct
---@return moonbeam.array
function mb.fourier_reconstruct(sino, angles, options) end

---@class moonbeam.options.project
---@field cols? integer detector columns; 0: nx
---@field center? number rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2
---@field shifts? number|number[] added to the detector coordinate, one per angle
---@field circle? number ignore pixels outside this fraction of half the smaller side; 0: use all pixels
---@field scale? number factor of the sums; 1 gives line integrals in pixel units
---@field method? "pixel"|"distance" how the two bins beside u share a pixel: linearly, or by overlap with its shadow
---@field out? moonbeam.array the array for the result

---Parallel-beam projection, the matched forward operator of backproject.
---@param volume moonbeam.array slices (row, y, x), or one (y, x)
---@param angles number|number[] any number of angles in any order
---@param options? moonbeam.options.project
---@return moonbeam.array
function mb.project(volume, angles, options) end

---@class moonbeam.options.ramp_filter
---@field filter? "ram-lak"|"shepp-logan"|"cosine"|"hamming"|"hann"|"tukey"|"lanczos"|"parzen"|"none" window that multiplies the ramp; none: no ramp either
---@field cutoff? number where the window ends; the response is 0 above; more than 1: a part of the window
---@field padding? "zero"|"edge" what rows are padded with
---@field pad_width? integer padded width, a multiple of 4, at least the width; 0: the smallest power of two that is at least 2 * width
---@field scale? number factor of the filter
---@field slice_shifts? number|number[] added to the detector coordinate; one per slice of a 3-D sinogram, else one number
---@field weights? number|number[] one factor per angle (row of a slice), for uneven angles; default 1
---@field out? moonbeam.array the array for the result

---The ramp filter of filtered back-projection along the detector axis, with a choice of windows.
---@param sino moonbeam.array sinograms; the last axis is the detector
---@param options? moonbeam.options.ramp_filter
---@return moonbeam.array
function mb.ramp_filter(sino, options) end

return mb
