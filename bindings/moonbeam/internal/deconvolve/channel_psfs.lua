--- The PSFs of the channels of moonbeam deconvolve, measured or models, and their transfer
-- functions.

local cli = require "moonbeam.internal.cli"
local given_image = require "moonbeam.internal.deconvolve.given_image"
local mb = require "moonbeam"
local measured_psf = require "moonbeam.internal.command_line.measured_psf"
local psf_options = require "moonbeam.internal.command_line.psf_options"
local top = require "moonbeam.psf.top"

local channel_psfs = {}
local methods = {}

--- Releases them.
function methods:release()
    for _, each in pairs(self.list) do
        each:release()
    end
    self.list = {}
end
local metatable = {__index = methods, __close = methods.release}

-- Does the PSF have less than this part of the light of a plane, that is said.
local ENOUGH <const> = 0.98

-- The size of the models for an image of this shape (three extents): what was typed, or what holds
-- nearly all light. Says what it leaves out, and what the grid becomes.
local function model_size(options, shape, channels, say)
    local typed = options.psf_size
    local function told(n)
        local light, height = psf_options.light_within(options, n, channels)
        return light, ("%.3g %% of the light of each plane%s"):format(100 * light, light < 0.995
            and n[1] > 1 and (" at least (%.4g um from the focus)"):format(math.abs(height) / 1000)
            or " at least")
    end
    local best = psf_options.size_for(options, shape, channels)
    if not typed then
        local grid = 1
        for i, n in ipairs(shape) do
            grid = grid * (n + best[i] - 1) / n
        end
        local _, text = told(best)
        say("extent     %s px hold %s%s%s: --psf-size changes it", table.concat(best, " x "), text,
            (best[2] == 2 * shape[2] - 1 or best[3] == 2 * shape[3] - 1)
            and "; the image sees no more" or "", grid >= 8
            and ("; the grid is %.3g times the image"):format(grid) or "")
        return best
    end
    local size = #typed == 1 and {2 * shape[1] - 1, typed[1], typed[1]}
        or #typed == 2 and {1, typed[1], typed[2]} or typed
    if size[2] < best[2] or size[3] < best[3] then
        local light, text = told(size)
        if light < ENOUGH then
            say("extent     %s px hold %s: --psf-size %d holds more", table.concat(size, " x "),
                text, math.max(best[2], best[3]))
        end
    end
    return size
end

-- The model of the PSF of a channel; of two axes where the image has two.
local function model(options, shape, id, channel)
    local size = options.model_size
    if #shape == 3 then
        return psf_options.make(options, size, id, channel)
    end
    local made <close> = psf_options.make(options, size, id, channel)
    return made:reshape {size[2], size[3]}
end

-- Says by how much a measured PSF was shifted, where it was.
local function say_shift(from, to, say)
    local texts, most = {}, 0
    for i, value in ipairs(from) do
        texts[i] = ("%.2f"):format(to[i] - value)
        most = math.max(most, math.abs(to[i] - value))
    end
    if most > 0 then
        say("PSF        shifted by (%s) voxels: its center lay between voxels (--center)",
            table.concat(texts, ", "))
    end
end

-- The PSF of a channel, ready to be used. Where it was cropped or is a model, options.center is the
-- middle; where it was found from values, the voxel to which it was brought.
local function spread_of(options, shape, id, say, channel)
    local spread = options.psf and measured_psf.read(options, id, say, #shape)
        or model(options, shape, id, channel)
    if not options.psf then
        options.center = "middle"
    end
    if options.center == "maximum" or options.center == "mass" then
        local owned <close> = spread
        local center = mb.psf.center(owned, options.center)
        spread, options.center = top.placed(owned, center)
        say_shift(center, options.center, say)
    end
    if options.psf_crop then
        local owned <close> = spread
        spread = mb.psf.crop(owned, {energy = options.psf_crop, center = options.center})
        options.center = "middle"
    end
    return spread
end

-- Has every channel a PSF of its own?
local function several(options, image)
    return not options.psf and psf_options.count(options, image.meta.channels or 1) > 1
end

--- Ends the program where the PSF and its options do not fit the image (given_image), or its file
-- cannot be opened. Reads and makes nothing.
function channel_psfs.check(options, image)
    if options.psf then
        measured_psf.check(options, #image.shape, given_image.slices_told(image.meta,
            image.shape, options.image), true)
    elseif several(options, image) and options.psf_crop then
        cli.wrong("--psf-crop would cut the PSFs of several wavelengths to boxes that differ: "
            .. "leave it out, give a smaller --psf-size, or deconvolve the channels one by one "
            .. "(--channel)")
    end
end

--- The PSFs on a device, to be closed; says what they are. With one wavelength for each channel
-- every channel has a PSF of its own, else all have the first. Fields: shape, center.
function channel_psfs.make(options, image, id, say)
    local own = several(options, image)
    local self = setmetatable({own = own, only = options.channel, list = {}}, metatable)
    local shape = image.shape
    if not options.psf then
        local channels = {}
        for channel = 1, own and image.channels or 1 do
            channels[channel] = self:number(channel)
        end
        options.model_size = model_size(options, #shape == 2 and {1, shape[1], shape[2]} or shape,
            channels, say)
    end
    for channel = 1, own and image.channels or 1 do
        local number = self:number(channel)
        self.list[number] = spread_of(options, image.shape, id, say, number)
    end
    local first, texts = self:of(1), {}
    self.shape, self.center = first.shape, mb.psf.center(first, options.center)
    for i, value in ipairs(self.center) do
        texts[i] = ("%.4g"):format(value)
    end
    say("PSF        %s, %s, center (%s)", table.concat(self.shape, " x "),
        options.psf or options.model, table.concat(texts, ", "))
    if not options.psf and (#shape == 2 or shape[1] == 1) then
        say("           the image is one plane: the PSF is the plane in focus")
    end
    psf_options.tell_plane(say, self.shape, shape, "deconvolved")
    for channel = 1, own and image.channels or 0 do
        say("           channel %d: %s", self:number(channel),
            psf_options.text(options, self:number(channel)))
    end
    return self
end

--- The number of the PSF of a channel.
function methods:number(channel)
    return self.own and (self.only or channel) or 1
end

--- The PSF of a channel.
function methods:of(channel)
    return self.list[self:number(channel)]
end

-- ---- transfer functions ----

local transfers = {}
transfers.__index = transfers

function transfers:__close()
    if self.otf then
        self.otf:release()
        self.otf, self.number = nil, nil
    end
end
transfers.release = transfers.__close

--- Keeps the transfer function of one channel at a time, to be closed: that of several volumes in a
-- row with the same PSF is computed once.
function methods:transfers(shape, boundary)
    return setmetatable({psfs = self, shape = shape, boundary = boundary}, transfers)
end

--- The transfer function of a channel.
function transfers:of(channel)
    local psfs = self.psfs
    local number = psfs:number(channel)
    if self.number ~= number then
        self:release()
        self.number, self.otf = number, mb.deconv.transfer(psfs.list[number], self.shape,
            {center = psfs.center, boundary = self.boundary})
    end
    return self.otf
end

return channel_psfs
