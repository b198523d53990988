-- Holds data between two sections: in an array in host memory if that fits, otherwise in a file
-- without a name in the scratch folder, which is deleted when it is closed or the process ends. (A
-- run that others can go on with gives the file a name.)
--
-- A store that several ranks fill and read is in the memory of all of them if the share of a rank
-- fits there: rank r keeps the elements of the first axis from r * share on, whoever makes them
-- (runtime/cluster/spread.h). So what a rank takes is known beforehand, and is the same on all.
--
-- What a store takes is planned (`store.plan`) and taken when the store is opened: memory is
-- touched, and disk space is reserved if the file system can do that. After that nothing can be
-- refused. A store is written and read in blocks by carriers (runtime/stream/carrier.h), along any
-- axis: frames that are read by rows are sinograms.

local core = require "moonbeam.core"
local disk_space = require "moonbeam.pipeline.disk_space"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"

local store = {}
local methods = {}
local metatable = {__name = "moonbeam.store", __index = methods}

local OPTIONS = declared.options({"shape", "any", "one to three extents"},
    {"dtype", "string", "element type", default = "f32"},
    {"host_budget", "bytes", "that it may take", usual = "what the budget of the host leaves"},
    {"scratch", "string", "the folder of its file, if that is not enough"},
    {"ranks", "count", "the ranks that fill and read it together", min = 1, default = 1},
    {"pinned", "any", "true or a device: memory that moves to that device without a ring"},
    {"what", "string", "its name in messages", default = "a store between two sections"})

-- Bytes of ranks travel in pieces of at most so many. A store has four of them (spread.h), which
-- together take no more than its share.
local PIECE <const> = 16 << 20
local PIECES <const> = 4

-- The most axes that a carrier can move.
local MOST_AXES <const> = 3

local function check_shape(shape, op)
    if type(shape) ~= "table" or #shape < 1 or #shape > MOST_AXES then
        fail("shape", op, "shape", "shape must be a list of one to three extents")
    end
    for axis, extent in ipairs(shape) do
        if math.type(extent) ~= "integer" or extent < 1 then
            fail("shape", op, "shape", "extent %d of shape is %s; it must be an integer above 0",
                axis, tostring(extent))
        end
    end
end

local function bytes_of(shape, dtype)
    return core.pool.element_bytes(dtype) * tables.product(shape)
end

-- The bytes that the host's budget leaves.
local function left_on_host()
    local stats = core.pool.stats("host")
    return stats.budget - stats.live
end

-- Raises an error if the scratch folder is not suitable.
local function check_scratch(options, bytes, budget, op)
    local what = options.what
    local left = disk_space.text(math.max(0, budget))
    -- Refuses with what there is to do: more memory, or `otherwise`.
    local function refuse(of, but, otherwise)
        local problem = ("%s needs %s%s; %s of host memory is left for it%s"):format(what,
            disk_space.text(bytes), of, left, but)
        local err = core.error.new("budget", ("%s: give more by the option host_budget, or %s")
            :format(problem, otherwise), {op = op, arg = "host_budget"})
        local limited = options.host_budget ~= nil
        err.problem, err.also, err.device = problem, ", or give " .. otherwise, "host"
        err.enough = bytes + (limited and 0 or core.pool.stats("host").live)
        err.limited_by = limited and "host_budget" or nil
        error(err, 0)
    end
    if not options.scratch and options.ranks > 1 then
        refuse(" of each rank", "", "a folder on a disk that they share by the option scratch")
    elseif not options.scratch then
        refuse("", "", "a folder for scratch files by the option scratch")
    elseif disk_space.facts(options.scratch, op, "scratch").memory then
        refuse("", (", and '%s' is itself in memory (tmpfs)"):format(options.scratch),
            "a scratch folder on a disk")
    end
end

-- What a rank takes of a store: the shape of its share, and the bytes of a piece.
local function share_of(shape, dtype, ranks)
    local share = table.move(shape, 1, #shape, 1, {})
    share[1] = (shape[1] + ranks - 1) // ranks
    local bytes = bytes_of(share, dtype)
    local line = #shape > 1 and shape[#shape] * core.pool.element_bytes(dtype) or 1
    return share, math.max(line, math.min(bytes // PIECES, PIECE))
end

--- What a store will take, exactly: {place = "memory" (with ranks > 1: of all ranks) or "file",
-- shape, dtype, bytes (of the elements), host_bytes (of the host's pool, of one rank) or
-- pinned_bytes (of pinned memory), disk_bytes, scratch, what, ranks, share (the shape of what a
-- rank keeps), piece (the bytes that travel at a time)}. A scratch folder in memory (tmpfs) is
-- refused, because it would take the memory that is missing. Takes nothing.
function store.plan(options)
    local op <const> = "store.plan"
    options = declared.checked(OPTIONS, options, op)
    check_shape(options.shape, op)
    local dtype, bytes = options.dtype, bytes_of(options.shape, options.dtype)
    local budget = options.host_budget and core.device.bytes(options.host_budget)
        or left_on_host()
    local plan = {shape = table.move(options.shape, 1, #options.shape, 1, {}), dtype = dtype,
        bytes = bytes, host_bytes = 0, pinned_bytes = 0, disk_bytes = 0,
        what = options.what, ranks = options.ranks}
    local taken = options.pinned and bytes or core.pool.round(bytes)
    if plan.ranks > 1 then
        plan.share, plan.piece = share_of(plan.shape, dtype, plan.ranks)
        taken = core.pool.round(bytes_of(plan.share, dtype)) + core.pool.round(PIECES * plan.piece)
    end
    if taken <= budget then
        plan.place, plan.pinned = "memory", options.pinned
        plan[options.pinned and "pinned_bytes" or "host_bytes"] = taken
    else
        check_scratch(options, taken, budget, op)
        plan.place, plan.scratch, plan.disk_bytes = "file", options.scratch, bytes
    end
    return plan
end

--- Raises an error if the disks lack room for the files of the stores in `places` (plans by any
-- key) and for `others`, {folder, bytes, what} each. Takes nothing.
function store.check_disks(places, others, op)
    if core.dry.on() then
        return
    end
    local files = table.move(others or {}, 1, #(others or {}), 1, {})
    for _, plan in pairs(places) do
        if plan.place == "file" then
            files[#files + 1] = {folder = plan.scratch, bytes = plan.disk_bytes, what = plan.what}
        end
    end
    table.sort(files, function(a, b) return a.what < b.what end)
    disk_space.check(files, op)
end

-- Steps in bytes of a dense row-major array.
local function dense_steps(shape, dtype)
    local steps, step = {}, core.pool.element_bytes(dtype)
    for axis = #shape, 1, -1 do
        steps[axis] = step
        step = step * shape[axis]
    end
    return steps
end

-- The file of a store. With a `path` it has that name, and stays.
local function open_file(plan, path)
    local file = path and core.rawfile.keep(path) or core.rawfile.scratch(plan.scratch .. "/.")
    local ok, problem = true, nil
    if file:bytes() ~= plan.disk_bytes then
        ok, problem = pcall(file.resize, file, plan.disk_bytes)
    end
    if not ok then
        file:close()
        error(problem, 0)
    end
    return file
end

-- The share of this rank in a store of several.
local function open_share(self, plan)
    local count = core.cluster.place().size
    if count ~= plan.ranks and not core.dry.on() then
        fail("argument", "store.open", "ranks", "%s is planned for %d ranks, and there are %d",
            plan.what, plan.ranks, count)
    end
    self.share = core.array.empty(plan.share, {dtype = plan.dtype, device = "host"})
    local _ <close> = on_error(function() self:close() end)
    self.pieces = core.array.empty({PIECES * plan.piece}, {dtype = "u8", device = "host"})
    self.share:fill(0)
    self.pieces:fill(0)
    if not core.dry.on() then
        self.spread = core.cluster.spread(plan.bytes, self.share, self.pieces)
    end
end

--- Opens a store from its plan (or from the options of store.plan): takes its memory and touches
-- it, or reserves its file, which is called `path` if that is given, and then stays with what is in
-- it. In a dry run memory is counted, and there is no file. All ranks open a store of several, and
-- none uses it before all have. The caller closes the store (<close>).
-- Errors: budget; io (the scratch folder, a full disk).
function store.open(plan, path)
    if not plan.place then
        plan = store.plan(plan)
    end
    local self = setmetatable({plan = plan, place = plan.place, shape = plan.shape,
        dtype = plan.dtype, written = 0, read_bytes = 0,
        steps = dense_steps(plan.shape, plan.dtype)}, metatable)
    if plan.place == "memory" and plan.ranks > 1 then
        open_share(self, plan)
    elseif plan.place == "memory" then
        self.array = core.array.empty(plan.shape, {dtype = plan.dtype,
            device = not plan.pinned and "host" or nil, pinned = plan.pinned})
        self.array:fill(0)
    elseif not core.dry.on() then
        self.file = open_file(plan, path)
    end
    return self
end

-- The ranges of all axes as {first, last}. `given` may omit axes or contain mb.all.
local function ranges_of(self, given, op)
    local ranges = {}
    for axis, extent in ipairs(self.shape) do
        local range = given[axis]
        if range == nil or range == core.array.all then
            range = {1, extent}
        end
        local first, last = range[1], range[2]
        if math.type(first) ~= "integer" or math.type(last) ~= "integer" or first < 1
            or last < first or last > extent then
            fail("argument", op, "ranges", "range %d is {%s, %s}; the store has 1 to %d", axis,
                tostring(first), tostring(last), extent)
        end
        ranges[axis] = {first, last}
    end
    return ranges
end

local function check_array(self, array, ranges, op)
    local same = array.dtype == self.dtype and #array.shape == #self.shape
    for axis, range in ipairs(ranges) do
        same = same and array.shape[axis] == range[2] - range[1] + 1
    end
    if not same then
        local shape = tables.mapped(ranges, function(range) return range[2] - range[1] + 1 end)
        fail("shape", op, "array", "the array is %s %s; this part of the store is %s %s",
            array.dtype, table.concat(array.shape, " x "), self.dtype, table.concat(shape, " x "))
    end
end

-- Moves a block between the store and an array. Without a carrier the array must be on the host,
-- and the block is moved at once.
local function move(self, carrier, array, ranges, writing)
    if self.array then
        local own <close> = self.array:view(table.unpack(ranges))
        if carrier then
            carrier:carry(own, array)
        else
            local from, to = array, own
            if not writing then
                from, to = own, array
            end
            from:cast(self.dtype, {out = to})
        end
    elseif self.file or self.spread then
        local other, offset = self.file or self.spread, 0
        for axis, range in ipairs(ranges) do
            offset = offset + (range[1] - 1) * self.steps[axis]
        end
        if carrier then
            carrier:carry(other, array, offset, self.steps)
        else
            other[writing and "write" or "read"](other, array, offset, self.steps)
        end
    elseif not core.dry.on() then
        fail("argument", writing and "store:write" or "store:read", nil,
            "this store has been closed")
    end
end

--- Writes an array as elements `first` to `last` along `axis` (default 1). The carrier queues the
-- write: the array may be released after carrier:wait, and the store may be read after
-- carrier:finish.
-- Errors: shape, argument; io by the carrier.
function methods:write(carrier, array, first, last, axis)
    local ranges = ranges_of(self, {[axis or 1] = {first, last}}, "store:write")
    check_array(self, array, ranges, "store:write")
    move(self, carrier, array, ranges, true)
    self.written = self.written + array.bytes
end

--- Reads a block into an array: `ranges` has {first, last} or mb.all for each axis (default: all).
-- The carrier queues the read.
function methods:read(carrier, array, ranges)
    ranges = ranges_of(self, ranges or {}, "store:read")
    check_array(self, array, ranges, "store:read")
    move(self, carrier, array, ranges, false)
    self.read_bytes = self.read_bytes + array.bytes
end

--- Frees memory and disk space. May be called again. No carrier may still use the store.
function methods:close()
    if self.array then
        self.array:release()
    end
    if self.file then
        self.file:close()
    end
    if self.spread then
        self.spread:close()
    end
    for _, array in ipairs {self.share or false, self.pieces or false} do
        if array then
            array:release()
        end
    end
    self.array, self.file, self.spread, self.share, self.pieces = nil, nil, nil, nil, nil
end
metatable.__close = methods.close

return store
