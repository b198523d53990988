-- Volumes that go on beyond their edges, for exact tiles: what is read may lie anywhere.
-- "circular" takes it from the other side, in pieces, which are put together on the device;
-- "reflect", "mirror" and "replicate" take one piece at the edge and pad it (moonbeam.convolution
-- has what they mean). Blocks inside are read as they are. Nothing is kept: only what a tile reads
-- is in memory.

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"

local continued = {}

local methods = {}
methods.__index = methods

-- The modes of mb.pad.
local MODES <const> = {reflect = "symmetric", mirror = "reflect", replicate = "edge"}

-- Runs of the elements first ... first + count - 1 of an axis that repeats n elements: {from, take,
-- to}, where a run is, how long it is, and where it goes.
local function runs_of(first, count, n)
    local runs, done = {}, 0
    while done < count do
        local from = (first + done) % n
        local take = math.min(n - from, count - done)
        runs[#runs + 1] = {from, take, done}
        done = done + take
    end
    return runs
end

-- Every combination of runs of the axes: {first, extents, to}, each a list with a number per axis.
local function pieces_of(axes)
    local pieces = {{first = {}, extents = {}, to = {}}}
    for i, runs in ipairs(axes) do
        local longer = {}
        for _, piece in ipairs(pieces) do
            for _, run in ipairs(runs) do
                local one = {}
                for n, name in ipairs {"first", "extents", "to"} do
                    one[name] = table.move(piece[name], 1, i - 1, 1, {})
                    one[name][i] = run[n]
                end
                longer[#longer + 1] = one
            end
        end
        pieces = longer
    end
    return pieces
end

-- One axis of n elements, of which low ... high are wanted: {from, take, before, after, at}, a run
-- inside, how much is padded to it, and where the wanted ones are in that. A run that is long
-- enough is padded as the whole axis is.
local function padded_axis(low, high, n, boundary)
    local more = boundary == "mirror" and 1 or 0
    local function depth(beyond) -- the last element that is needed for so many beyond the edge
        return boundary == "replicate" and 0 or beyond - 1 + more
    end
    local before, after = math.max(0, -low), math.max(0, high - n + 1)
    local from, to = math.max(0, math.min(low, n - 1)), math.max(0, math.min(high, n - 1))
    if before > 0 then
        to = math.max(to, depth(before))
    end
    if after > 0 then
        from = math.min(from, n - 1 - depth(after))
    end
    if from < 0 or to > n - 1 or before > 0 and after > 0 then
        from, to = 0, n - 1
    end
    return {from, to - from + 1, before, after, low - (from - before)}
end

-- Where a block comes from: {pieces, pad (nil: they are the block's own elements)}.
local function places_of(self, first, extents)
    local axes, pad = {}, {before = {}, after = {}, at = {}}
    local any = false
    for i, n in ipairs(self.inner.shape) do
        local low = first[i] - self.before[i]
        if self.boundary == "circular" then
            axes[i] = runs_of(low, extents[i], n)
        else
            local from, take, before, after, at = table.unpack(padded_axis(low,
                low + extents[i] - 1, n, self.boundary))
            axes[i] = {{from, take, 0}}
            pad.before[i], pad.after[i], pad.at[i] = before, after, at
            any = any or before + after > 0
        end
    end
    return {pieces = pieces_of(axes), pad = any and pad or nil, extents = extents}
end

local function is_plain(places)
    return #places.pieces == 1 and not places.pad
end

-- The block of pieces, which are given and released one after the other.
local function joined(self, places, device, piece_of)
    if places.pad then
        local piece <close> = piece_of(1)
        local padded <close> = mb.pad(piece, {before = places.pad.before,
            after = places.pad.after, mode = MODES[self.boundary]})
        return padded:view(convolution.ranges(places.pad.at, places.extents))
    end
    local block = mb.empty(places.extents, {dtype = self.dtype, device = device})
    local _ <close> = on_error(function() block:release() end)
    for i, each in ipairs(places.pieces) do
        local piece <close> = piece_of(i)
        local part <close> = block:view(convolution.ranges(each.to, each.extents))
        mb.convert(piece, self.dtype, {out = part})
    end
    return block
end

function methods:read(first, extents, device, host)
    local places = places_of(self, first, extents)
    local function piece_of(i)
        local piece = places.pieces[i]
        return self.inner:read(piece.first, piece.extents, device, host)
    end
    return is_plain(places) and piece_of(1) or joined(self, places, device, piece_of)
end

function methods:carries(device)
    return self.inner:carries(device)
end

-- Blocks on their way that will be put together.
local parcel = {__index = {}}

function parcel.__index:release()
    self.blocks:release()
end

function methods:fetch(carrier, first, extents, device)
    local places = places_of(self, first, extents)
    local blocks = tables.group()
    local _ <close> = on_error(function() blocks:release() end)
    for i, piece in ipairs(places.pieces) do
        blocks[i] = self.inner:fetch(carrier, piece.first, piece.extents, device)
    end
    if is_plain(places) then
        return blocks[1]
    end
    return setmetatable({blocks = blocks, places = places, device = device}, parcel)
end

function methods:incoming(block)
    if getmetatable(block) ~= parcel then
        return self.inner:incoming(block)
    end
    local blocks <close> = block.blocks
    return joined(self, block.places, block.device, function(i)
        local piece = self.inner:incoming(blocks[i])
        blocks[i] = nil
        return piece
    end)
end

--- A volume to be read, also beyond the edges of `inner`, whose element 0 is at `before` of it
-- (nil: at 0).
function continued.of(inner, boundary, before)
    local zero = {}
    for i = 1, #inner.shape do
        zero[i] = 0
    end
    return setmetatable({inner = inner, shape = inner.shape, dtype = inner.dtype,
        place = inner.place, array = inner.array, boundary = boundary, before = before or zero},
        methods)
end

return continued
