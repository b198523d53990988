--- The image that moonbeam deconvolve is given: its channels and times, the size of its voxels, and
-- its volumes as counts or as photons.

local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local units = require "moonbeam.internal.quantities.units"

local given_image = {}
local methods = {}
local metatable = {__index = methods}

local opening = declared.of(mb.images.open).options

-- "A:B" with both ends.
local function both_ends(text)
    local range, problem = cli.range(text)
    return range and range[1] and range[2] and range or nil, problem
        or "a range A:B of pages (1-based, inclusive), such as 1:40"
end

--- The options that say what the pages of an image are.
given_image.OPTIONS = {
    cli.option(opening.axes, {value = "ZC"}),
    cli.option(opening.pages, {value = "A:B", type = both_ends}),
    cli.option(opening.image, {"image-number", also = {"image", "series"}}),
}

--- The options of mb.images.open by those of a command line; `changes` instead of some.
function given_image.opening(options, changes)
    local made = {channel = options.channel, frame = options.frame, axes = options.axes,
        pages = options.pages, image = options.image_number}
    return tables.merged(made, changes)
end

--- What to do where an image is flat, and a stack is wanted: its planes may be slices. A text, or
-- nil.
function given_image.slices_told(meta, shape, name)
    local planes = (meta.channels or 1) * (meta.frames or 1)
    if #shape ~= 2 or planes == 1 or meta.axes then
        return nil
    end
    return ("%s has %s and %s of one plane; where these are slices, --axes Z says so"):format(name,
        counted(meta.channels, "channel"), counted(meta.frames, "time"))
end

-- Ends the program where a length of the file cannot be that of a microscope's voxel.
local function check_length(name, nm, options)
    if not units.microscopic(nm * 1e-9) then
        cli.wrong("%s says that its %s is %.4g nm; a microscope's is from 1 nm to 0.1 mm: give "
            .. "--%s in nm", options.image, name, nm, name)
    end
end

--- Pixel and step in nm: what is typed, else what the file of options.image says (`meta`), which
-- goes into the options. `flat`: the image has no step. Returns what is typed and not in the file,
-- in m, which goes to the result (tiff.voxel.said); says what is taken.
function given_image.voxel(options, meta, flat, say)
    local typed, named = {}, {}
    for _, name in ipairs {"pixel", "step"} do
        local own = (meta.voxel or {})[name]
        local nm = own and own * 1e9
        if options[name] and (not nm or math.abs(options[name] / nm - 1) > 0.01) then
            typed[name] = options[name] * 1e-9
        end
        if nm and typed[name] then
            cli.warn("--%s is %.4g nm, but %s says %.4g nm: the typed one is taken, and the result "
                .. "says it", name, options[name], options.image, nm)
        elseif nm and not options[name] then
            if name ~= "step" or not flat then
                check_length(name, nm, options)
            end
            options[name] = nm
            named[#named + 1] = ("%s %.4g nm"):format(name, nm)
        end
        if not meta.kind and options[name] then
            typed[name] = options[name] * 1e-9 -- no metadata of a TIFF say it
        end
    end
    local row, column = (meta.voxel or {}).row, (meta.voxel or {}).pixel
    if row and column and math.abs(row / column - 1) > 0.01 then
        cli.warn("%s says that pixels are %.4g nm wide and %.4g nm high; models of the PSF have "
            .. "square ones", options.image, column * 1e9, row * 1e9)
    end
    if #named > 0 then
        say("voxel      %s: %s", table.concat(named, ", "), options.image)
    end
    return typed
end

--- The extents of the volumes of an image (mb.images.open), and how many channels and times of it
-- are worked on, one after another.
function given_image.series(source, options)
    local meta, shape = source.meta, source.shape
    local channels = not options.channel and meta.channels or 1
    local frames = not options.frame and meta.frames or 1
    if channels * frames > 1 then
        local flat = (meta.axes or meta.slices > 1 and 3 or 2) == 2
        shape = flat and {shape[#shape - 1], shape[#shape]}
            or {meta.slices, shape[#shape - 1], shape[#shape]}
    end
    return shape, channels, frames
end

--- Ends the program where the file of --mask cannot be opened, or has other extents than the image.
function given_image.check_mask(name, shape)
    local mask <close> = cli.tried({}, mb.images.open, name)
    if table.concat(mask.shape, " ") ~= table.concat(shape, " ") then
        cli.wrong("--mask is %s, the image %s", table.concat(mask.shape, " x "),
            table.concat(shape, " x "))
    end
end

--- Says what the file of an image says otherwise than it is read.
function given_image.warn(meta)
    for _, line in ipairs(meta.warnings or {}) do
        cli.warn("%s", line)
    end
end

--- Opens options.image, or ends the program. Puts the size of its voxels into the options.
-- Fields: shape (of a volume), voxels (of it), dtype, meta, channels, frames (to be worked on, one
-- after another), typed ({pixel, step}, m).
function given_image.open(options, say)
    local source <close> = cli.tried({}, mb.images.open, options.image,
        given_image.opening(options))
    if not options.into then
        given_image.warn(source.meta)
    end
    local shape, channels, frames = given_image.series(source, options)
    local self = setmetatable({options = options, meta = source.meta, dtype = source.dtype,
        channels = channels, frames = frames}, metatable)
    self.shape = shape
    self.typed = given_image.voxel(options, source.meta, #shape == 2, say)
    self.voxels = tables.product(shape)
    return self
end

--- Has it several volumes?
function methods:is_series()
    return self.channels * self.frames > 1
end

--- The volume of a channel and time as it is stored; closed by the caller.
function methods:stored(channel, frame)
    local options = self.options
    return mb.images.open(options.image, given_image.opening(options, {
        channel = options.channel or self.channels > 1 and channel or self.frames > 1 and 1 or nil,
        frame = options.frame or self.frames > 1 and frame or self.channels > 1 and 1 or nil}))
end

--- The same in photons, if the options say offset or gain. Values below 0 stay: methods for Poisson
-- noise count them as 0 and say how many there are; others take them as they are.
function methods:volume(channel, frame)
    local options, stored = self.options, self:stored(channel, frame)
    if not (options.offset or options.gain) then
        return stored
    end
    return mb.volumes.map(stored, "f32", function(block)
        local real = block:cast("f32")
        mb.binary(real, "sub", {scalar = options.offset or 0, out = real})
        return mb.binary(real, "div", {scalar = options.gain or 1, out = real})
    end)
end

return given_image
