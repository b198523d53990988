--- The documentation of functions and methods that are written in C, or made by a loop in Lua, for
-- help and the reference pages. These functions check their arguments themselves.
--
-- native("module.function(name: kind, name: kind?)", options); a method is "type:name". Kinds are
-- those of declared.lua.

local declared = require "moonbeam.internal.declared"

local native = declared.native
local list = declared.options

local DEVICE = {"device", "device", "where the array is made", usual = "the default device"}
local DTYPE = {"dtype", "string", "u8, u16, i32, f16, f32, f64, c64 or c128", usual = "f32"}
local NEW = list(DTYPE, DEVICE,
    {"pinned", "any", "true or a device: host memory that carriers move without a copy"})

-- ---- arrays: constructors ----

--- An array from nested tables or a number: `mb.array({{1, 2}, {3, 4}})`.
native("array(values: any, options)", NEW)
--- An array with elements of no defined value.
native("array.empty(shape: extents, options)", NEW)
--- An array of zeros.
native("array.zeros(shape: extents, options)", NEW)
--- An array with every element 1.
native("array.ones(shape: extents, options)", NEW)
--- An array with every element equal to a number.
native("array.full(shape: extents, value: number, options)", NEW)
--- Uniform random numbers in [low, high), the same on every device; integers in low to high.
native("array.random(shape: extents, options)", list(NEW,
    {"seed", "count", "numbers of one seed are the same", default = 0},
    {"low", "number", "the least number", default = 0},
    {"high", "number", "the end of the numbers", default = 1}))
--- The numbers first, first + step, ... up to and including last if a step lands on it.
-- `mb.arange(n)` is 1 to n.
native("array.arange(first: number?, last: number, step: number?, options)", NEW)
--- Numbers at equal distances from first to last, both included.
native("array.linspace(first: number, last: number, n: count, options)", NEW)
--- An array from its raw elements, last axis fastest.
native("array.from_string(bytes: string, shape: extents, options)", NEW)
--- Whether the value is an array.
native "array.is_array(value: any)"

-- ---- arrays: methods ----

--- A view of a part, in the same memory: one range for each axis, the whole axis if left out. A
-- range is an integer (drops its axis), mb.all, or {first, last [, step]}, both included; negative
-- numbers count from the end. {k, k - 1} has no elements; every other range that ends before it
-- begins is an error.
-- `a[i]` is a view of element i of axis 1.
native "array:view(range: any, ...)"
--- A view with the axes in another order.
native "array:permute(axis: count, ...)"
--- A view with the last two axes exchanged.
native "array:transpose()"
--- A view of the same elements with other extents; one extent may be -1.
native "array:reshape(shape: extents)"
--- A view with axes of extent 1 repeated, as arithmetic does by itself.
native "array:broadcast_to(shape: extents)"
--- A view of the same bytes as other elements, along a dense last axis: pairs of f32 as c64.
native "array:reinterpret(dtype: string)"
--- Whether two arrays share a byte.
native "array:overlaps(other: array)"
--- One element as a number, a complex one as two numbers. Waits for the device.
native "array:item(index: count, ...)"
--- The elements as nested tables; complex elements are {re, im}. Waits for the device.
native "array:to_table()"
--- The raw elements in row-major order, as a string. Waits for the device.
native "array:to_string()"
--- Frees the memory at once; `local a <close> = ...` does it when the scope ends.
native "array:release()"
--- A dense copy on the same device.
native "array:copy()"
--- The array itself if it is dense, otherwise a dense copy.
native "array:dense()"
--- A dense copy on a device, also if the array is there already.
native "array:to(device: device)"
--- A copy with another element type; each value becomes value * scale + offset.
native("array:cast(dtype: string, options)", declared.from("convert"))
--- Sets every element, in place. Returns the array.
native "array:fill(value: number, imag: number?)"
--- Views along axis 1, for a loop: `for i, slice in a:slices() do`. A view is released when the
-- loop continues; `slice:view()` keeps one.
native "array:slices()"
for _, fn in ipairs {"sum", "min", "max", "mean", "norm"} do
    --- Reduces all elements to a number, or one axis: an f64 array without that axis.
    native(("array:%s(axis: count?)"):format(fn))
end
for _, fn in ipairs {"abs", "exp", "log", "sqrt", "square", "reciprocal"} do
    --- The function of every element, as a new array; an option `out` names the destination.
    native(("array:%s(options)"):format(fn), list {"out", "array", "the array for the result"})
end

-- ---- devices ----

--- Opens a device: "host", "cuda:0", "planned:h200" (a GPU that is not here: dry runs and plans
-- only), "host:1" (another device on the host, with a pool of its own) or "auto" (the chosen
-- default, otherwise the first GPU, otherwise the host).
native("device(id: string, options)", list {"budget", "bytes", "limit on live bytes",
    unit = "bytes", usual = "90 % of what is free"})
--- Opens a device by its id, as `mb.device`, without "auto".
native("device.open(id: string, options)", list {"budget", "bytes", "limit on live bytes",
    unit = "bytes", usual = "90 % of what is free"})
--- Opens several devices and returns a list of them: "all" (the GPUs of the model of the first),
-- "cuda:0,cuda:1", "2xplanned:h200", or a list of ids and devices. The budget is that of each. They
-- must be of one kind. Devices of different models may work together, but then the same bits as on
-- one of them are not promised.
native("device.several(devices: any, options)", list {"budget", "bytes",
    "limit on live bytes of each device", unit = "bytes", usual = "90 % of what is free"})
--- The ids of the available devices. Opens none.
native "device.list()"
--- The devices in use so far.
native "device.opened()"
--- The ids of devices that can be planned for without being available.
native "device.planned()"
--- The device that is used where none is named; sets it when given.
native "device.default(id: device?)"
--- Is a dry run going on?
native "device.dry()"
--- Why no CUDA device is available, or nil if one is.
native "device.cuda_problem()"
--- A size as a number: "8G" is 8e9 bytes, "8Gi" is 8 * 2^30.
native "device.bytes(size: bytes)"
--- A number of bytes as text: 1342177280 is "1.25 GiB", whole megabytes are in decimal units, as
-- sizes are typed ("8 GB"). With `like`, in the units of that size: of a budget, for example.
native "device.format_bytes(bytes: count, like: count?)"
--- Free and total bytes, as the system or the driver reports them.
native "device:memory()"
--- Waits for the queued work.
native "device:sync()"
--- Whether the device is lost, and the cause if it is. Each call of a lost device fails with the
-- code "device"; its arrays can be released, and other devices go on.
native "device:lost()"
--- Bytes that the backend holds outside the pool: on the device, and pinned on the host.
native "device:overhead()"
--- The limit on live bytes; sets it when given.
native "device:budget(bytes: bytes?)"
--- Pinned host memory in use, its peak and its limit; sets the limit when given.
native "device:pinned(limit: bytes?)"

-- ---- operators ----

--- The names of all operators.
native "op.list()"
--- The descriptor of an operator: arguments, results, how it can be cut, samples.
native "op.describe(name: string)"
--- What a call of an operator would take: results, scratch and peak bytes. Nothing runs.
-- `inputs` are arrays or {dtype, extent, ...}.
native("op.estimate(name: string, inputs: table, params: table?, options)", list(DEVICE))
--- Whether a device has this operator.
native "op.supported(name: string, device: device?)"
--- Runs an operator by its name; `mb.<name>(...)` is the same.
native "op.run(name: string, ...)"
--- A piece of a call: what is needed for rows first to last of the first result, if the call is cut
-- along an axis of its first array. Nothing runs. The result is a table: first, last (the rows of
-- the arrays that are cut), arrays (by name, the axis along which each is cut; other arrays are
-- whole for every piece), params (of the call on the piece), skip (rows of its result before the
-- first requested row), packet (rows that are treated together), result_axis, and combine, if the
-- result lacks the axis: how it is made from the results of the pieces.
native("op.piece(name: string, inputs: table, params: table?, options)", list(
    {"axis", "count", "the axis of the first array that is cut", required = true},
    {"first", "count", "first row of the result", required = true},
    {"last", "count", "last row of the result", required = true},
    DEVICE))
-- ---- memory ----

--- Live, peak, budget, largest hole and counts of a device's pool.
native "pool.stats(device: device?)"
--- The bytes that a request of this size takes: whole units of 512 bytes.
native "pool.round(bytes: bytes)"
--- The bytes of one element of a type.
native "pool.element_bytes(dtype: string)"
--- A block by hand, as an array of one axis. 0 bytes are legal and take no memory.
native("pool.alloc(bytes: bytes, options)", list(DTYPE, DEVICE))
--- From now on, `stats().reach_arrays` and `.reach_scratch` count from where the blocks reach now.
native "pool.reset_reach(device: device?)"
--- Gives the memory of holes back to the device.
native "pool.trim(device: device?)"
--- Guard words around blocks, and patterns in new and freed ones.
native "pool.debug(on: boolean, device: device?)"
--- nil if the pool is consistent, otherwise what is wrong.
native "pool.check(device: device?)"
--- Live blocks in address order, with the lines that made them.
-- Returns a list of {offset, bytes, requested, pitch_waste, sequence, age (s), end, thread, owner,
-- tag}.
native "pool.blocks(device: device?)"
--- The views that were made under a tag and are not released: {offset (of the block), sequence,
-- owner, tag}.
native "pool.views(device: device?)"
--- The latest events of the trace, oldest first.
-- Returns a list of {action, ns, offset, bytes, live, owner, tag, thread, end, block}.
native "pool.events(device: device?)"
--- Replays the trace: the memory that would have been enough.
-- Returns the peak of live bytes, the memory that would have been enough (committed on demand), and
-- the size of one fixed range that would have been enough.
native "pool.smallest(device: device?)"
--- Measures from here on: `scope:finish()` returns the peak above entry and what was live at entry.
native "pool.scope(device: device?)"
--- Names what the next blocks are for, until the returned value is closed:
-- `local _ <close> = mb.pool.tag("x")`.
native "pool.tag(name: string)"
--- The names of the open tags, outermost first.
native "pool.tags()"
--- Ends the innermost tag, or the innermost tag of that name and all tags inside it.
native "pool.end_tag(name: string?)"
--- Frees what Lua no longer refers to. `mb.collect` is the same.
native "pool.collect()"

-- ---- failures on purpose ----

--- The n-th allocation from now on fails. With n = 0 no allocation fails.
native "debug.fail_nth(n: count, device: device?)"
--- The device refuses the next n commitments of memory.
native "debug.refuse_commits(n: count, device: device?)"
--- The system refuses the next n requests for pinned memory.
native "debug.refuse_pins(n: count, device: device?)"
--- The device reports as free what its pool leaves of `bytes`, as if other programs had the rest.
-- With 0 bytes it reports what is free.
native "debug.pretend_memory(bytes: bytes, device: device?)"
--- The n-th call of the device from now on that asks for, queues or waits for work loses the
-- device, as a fault of a GPU does, and takes `delay` seconds more (usually 0). With n = 0 no call
-- does. A lost device stays lost.
native "debug.lose_device(device: device, n: count, delay: number?)"
--- Guard words around blocks, without the patterns of `mb.pool.debug`. Can be switched only while
-- nothing is live on the device.
native "debug.set_guards(on: boolean, device: device?)"
--- Overwrites a byte of the guard before or after the array's block, `distance` bytes from the
-- block. `mb.pool.damage` must find it.
native "debug.break_guard(array: array, after: boolean, distance: count)"
--- Seconds that an allocation and its release take through the C API, while `live` blocks exist.
native "debug.pair_seconds(live: count, pairs: count, device: device?)"
--- The n-th step from now on that changes the name of a file, or syncs a file, kills the process.
-- With `errno` the step fails with that error of the system instead. With n = 0 no step fails.
native "debug.fail_step(n: count, errno: count?)"
--- How many steps have changed the name of a file, or synced a file, since the process began.
native "debug.steps()"

-- ---- transforms ----

--- Complex Fourier transform over the last axes: the operator `fft`.
native("fft(a: array, options)", declared.from("fft"))
--- The bytes of the work area that a transform takes, and the source of that number.
native("fft.work(kind: string, dims: extents, options)", list(DEVICE,
    {"batch", "count", "transforms at a time", default = 1},
    {"in_place", "boolean", "in the memory of its input"}))
--- Name and version of the library that computes the transforms.
native "fft.library(device: device?)"
--- The limit on what the library holds for plans, or nil. Sets it when given; "none" removes it.
native "fft.limit(bytes: bytes?, device: device?)"
--- Drops idle plans, oldest first, except `keep` of them. Returns how many were dropped.
native "fft.drop(device: device?, keep: count?)"
--- Bytes that the library holds for plans.
native "fft.library_bytes(device: device?)"

-- ---- plans and ledgers ----

--- The ledger of a function, or of an expression as text, without running it: as `mb.dry_run`.
native "plan(fn: callable, ...)"
--- The ledger of fn(...) without running it: a row for each step.
native "ledger.dry_run(fn: callable, ...)"
--- Is a dry run going on?
native "ledger.dry()"
--- A carrier by itself: threads that move blocks between files and arrays.
native "stream.carrier(options: table)"

-- ---- HDF5 ----

local STORED = {"dtype", "string", "u8, u16, i32, f16, f32, f64, c64 or c128", usual = "as stored"}

--- Opens an HDF5 file. Returns the file, or nil and an error object.
native("h5.open(path: string, options)", list(
    {"mode", "choice", "r: read; r+: also write", choices = {"r", "r+"}, default = "r"},
    {"allow_external", "boolean", "read data that the file refers to outside its own folder"},
    {"allow_missing", "boolean", "read data with parts that were never written"},
    {"swmr", "boolean", "read a file that its writer shares (HDF5's single writer, multiple "
        .. "readers), as it is when it is opened"},
    {"replaceable", "boolean", "it is no input: what is written later may replace it"}))
--- A file without a name, which is deleted when it is closed.
native "h5.scratch(folder: string)"
--- A new HDF5 file. `file:finish()` gives it its name.
native("h5.create(path: string, options)",
    list {"overwrite", "boolean", "replace an existing file"})
--- Makes the folder of slices beside a created file. Returns its path.
native "h5:make_folder()"
--- Makes libhdf5 close a created file until something other than the bytes of its datasets is
-- written; those bytes go to known places in the file. Returns whether the file is closed: not if
-- it has a compressed dataset.
native "h5:rest()"
--- Completes a created file and gives it its name; `marker` is the path of its completion time.
native("h5:finish(marker: string?, options)", list(
    {"sync", "boolean", "wait for the disk", default = true},
    {"hold", "boolean", "keep what the file replaced until close; returns its name"}))
--- Closes the file. A created file that was not finished is deleted.
native "h5:close()"
--- All objects below a path: a list of {path, kind, shape, dtype, stored, chunks, filters, ...}.
native("h5:walk(path: string?, options)",
    list {"attributes", "boolean", "also the attributes"})
--- Whether the file has an object of that path.
native "h5:exists(path: string)"
--- Makes a group, and those above it, with an NX_class.
native "h5:group(path: string, nxclass: string?)"
--- Makes a link at `path` to `target`.
native("h5:link(target: string, path: string, options)",
    list {"soft", "boolean", "a link by name"})
--- A dataset of the file, to be read or written in parts.
native "h5:dataset(path: string)"
--- Reads a dataset, or a part of it, into an array.
native("h5:read(path: string, ...: any, options)", list(STORED, DEVICE,
    {"out", "array", "the array for the result"}))
--- Writes an array, number, string or list as a dataset.
native("h5:write(path: string, value: any, options)", list(DTYPE,
    {"chunks", "extents", "extents of a chunk"}, {"deflate", "count", "compression, 0 to 9"},
    {"attributes", "table", "by name"}))
--- Makes a dataset to be written in parts.
native("h5:create_dataset(path: string, options)", list(DTYPE,
    {"shape", "extents", "its extents", required = true},
    {"chunks", "extents", "extents of a chunk"}, {"deflate", "count", "compression, 0 to 9"},
    {"sparse", "boolean", "parts that are never written take no space"},
    {"early", "boolean", "its place in the file is fixed at once, however small it is"},
    {"attributes", "table", "by name"}))
--- Makes a dataset that shows datasets of other files as one: each source is indices first to last
-- of axis 1.
native("h5:create_virtual(path: string, options)", list(DTYPE,
    {"shape", "extents", "its extents", required = true},
    {"sources", "table", "a list of {file =, path =, first =, last =}", required = true},
    {"attributes", "table", "by name"}))
--- The value of a small dataset: a number, a string or a list.
native "h5:value(path: string)"
--- An attribute of an object, or nil.
native "h5:attribute(path: string, name: string)"
--- All attributes of an object, by name.
native "h5:attributes(path: string)"
--- Sets an attribute of an object.
native "h5:set_attribute(path: string, name: string, value: any)"
--- Reads the dataset, or a part of it.
native("h5.dataset:read(...: any, options)", list(STORED, DEVICE,
    {"out", "array", "the array for the result"}))
--- Writes an array into a part of the dataset.
native "h5.dataset:write(array: array, ...: any)"
--- Indices of axis 1 that were never written, a list of {first, last}, and why.
native "h5.dataset:missing()"
--- Takes the bits of the elements for unsigned integers (how = "unsigned") or for numbers in the
-- other byte order ("swapped"), although the file says something else.
native "h5.dataset:take(how: string)"
--- Shows the dataset as (frame, row, column): the numbers of these axes in the file, whose other
-- axes have extent 1. The columns come last.
native "h5.dataset:show(axes: list)"
--- The other files that its data are in, by links or as parts of a virtual dataset: a list.
native "h5.dataset:sources()"
--- Where the bytes of a contiguous dataset are in its file, {offset, bytes}, if they are moved
-- without libhdf5; otherwise nil, and why, if that is known.
native "h5.dataset:place()"
--- Closes the dataset.
native "h5.dataset:close()"

-- ---- pictures ----

--- Writes (row, column), or (row, column, 3) of u8, as a PNG. `mb.view.save` chooses the window.
native("picture.write_png(path: string, array: array, options)", list(
    {"bits", "choice", "bits of a value: 8 or 16", usual = "8"},
    {"low", "number", "the value that becomes black"},
    {"high", "number", "the value that becomes white"},
    {"gamma", "number", "above 1 is brighter", default = 1},
    {"text", "string", "a line that is kept inside the file"},
    {"overwrite", "boolean", "replace an existing file"}))
--- Values at percentiles of the finite elements, and how many elements are finite.
native "picture.percentiles(array: array, percentiles: list)"

-- ---- the system ----

--- Seconds since the process began, to about 10 ms; nil if the system does not say.
native "system.age()"
--- Calls fn(...) as pcall does, but interruptible and with tracebacks.
native "system.call(fn: callable, ...)"
--- Sets the flag that Ctrl-C sets, or clears it with false.
native "system.cancel(on: boolean?)"
--- Whether Ctrl-C has been pressed.
native "system.cancelled()"
--- Seconds of a clock that never goes back.
native "system.clock()"
--- The working folder.
native "system.cwd()"
--- How many files the process may have open; raises the limit as far as the system allows.
native "system.file_limit()"
--- The names in a folder, or nil if it does not exist.
native "system.folder(path: string)"
--- With true, the first Ctrl-C (SIGTERM, SIGHUP) waits, and a second one does not. With false, one
-- that has waited is raised. The end of `call` ends it, too.
native "system.hold_stop(on: boolean)"
--- The name of the machine.
native "system.hostname()"
--- Whether a stream ("stdin", "stdout", "stderr") is a terminal.
native "system.isatty(stream: string?)"
--- What control groups and resource limits allow the process: {most, left, name}, nil if nothing
-- limits it.
native "system.memory_limits(root: string?)"
--- Makes a folder and its parents; also true if the folder exists.
native "system.mkdir(name: string)"
--- The number of the process.
native "system.pid()"
--- The limits on the memory that the process uses, and on its addresses: {used, addresses, kept,
-- processes, available}. used and addresses are nil or {most, left, name}; kept: addresses that a
-- pool leaves to the rest of the process; processes: those of a run that share the machine;
-- available: bytes on the machine.
native "system.process_limits()"
--- How many processors the process may use.
native "system.processors()"
--- The absolute name of the running program.
native "system.program()"
--- The absolute name of a file, without links.
native "system.real_path(name: string)"
--- Where the module's own Lua files are; called by the module itself.
native "system.set_home(folder: string)"
--- Sleeps; returns early if a signal comes.
native "system.sleep(seconds: number)"
--- The file system of a folder, {free, total, memory, network}: the bytes that may still be written
-- to it, its size, and whether it is in memory (tmpfs) or a network's (NFS, SMB). Or nil and an
-- error.
native "system.space(folder: string)"
--- What a file is: {kind, bytes, modified, device, inode}, or nil and an error.
native "system.stat(name: string)"
--- The number of the signal that stopped the last call, or nil.
native "system.stop_signal()"
--- Whether a stop waits (hold_stop).
native "system.stop_waits()"
--- Waits until everything written to the file system of a folder is on the disk.
native "system.sync_files(path: string)"
--- Makes the names in a folder survive a power cut, as far as the file system can.
native "system.sync_folder(path: string)"
--- Columns of a terminal, or nil if the stream is not a terminal.
native "system.terminal_width(stream: string?)"
--- The size of the terminal that is the standard output: {columns, rows, width, height}; width and
-- height are in pixels, 0 where the terminal does not say. nil if it is not a terminal.
native "system.terminal_pixels()"
--- Writes a query, which ends with "\27[c", to the terminal and returns its answer; nil if there is
-- no terminal, if the process is in the background, or if no answer comes in these seconds. Keys
-- that are pressed meanwhile are lost.
native "system.ask_terminal(query: string, seconds: number)"

-- ---- the module itself ----

--- Raises an error object with this code ("argument", "shape", "io", ...) and message. `fields` are
-- op, arg, need, limit and others.
native "raise(code: string, message: string, fields: table?)"
--- An error object, as `raise` raises it.
native "error(code: string, message: string, fields: table?)"
--- Frees what Lua no longer refers to.
native "collect()"

-- ---- properties ----

return {fields = {
    array = list({"shape", "extents", "the extents"}, {"rank", "count", "the number of axes"},
        {"dtype", "string", "the element type"}, {"bytes", "count", "what the elements take"},
        {"elements", "count", "the number of elements"},
        {"device", "device", "where the array is"},
        {"strides", "extents", "elements from one to the next, by axis"},
        {"contiguous", "boolean", "are the elements without gaps, in row-major order?"},
        {"references", "count", "views and arrays of the same memory"},
        {"pinned", "boolean", "is it pinned host memory?"},
        {"released", "boolean", "is the memory free?"}),
    device = list({"id", "string", "host, cuda:0, ..."}, {"name", "string", "the model"},
        {"kind", "string", "host or cuda"}, {"total", "count", "bytes of memory"},
        {"threads", "count", "threads of the host"},
        {"capability", "count", "compute capability of a GPU, such as 90"},
        {"pci", "string", "the PCI address of a GPU"},
        {"node", "count", "the NUMA node of a GPU; nil if all processors are alike"},
        {"processors", "string", "the processors on which its threads run, such as \"16-31\""},
        {"planned", "boolean", "is it a GPU that is not here?"},
        {"basis", "string", "the source of a planned device's figures"}),
}}
