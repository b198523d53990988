--- The options of command lines that say what a model of a PSF is made of, in nanometers.

local mb = require "moonbeam"
local channel_light = require "moonbeam.tiff.channel_light"
local cli = require "moonbeam.internal.cli"
local declared = require "moonbeam.internal.declared"
local tables = require "moonbeam.internal.tables"

local psf_options = {}

local LEAST_LIGHT <const> = 2 -- nm: less was meant in micrometers
local LEAST_PART <const> = 1 / 100 -- of a wavelength, as the size of a voxel: the same

-- NA / n up to which the focus of scalar, paraxial waves is that of a lens. Differences from the
-- vectorial PSF of psfmodels 0.3.3, sum of |difference| of PSFs of sum 1 at NA 1.4 and n 1.515:
-- born_wolf 0.73, gibson_lanni 0.18, richards_wolf 0.002.
local PARAXIAL <const> = 0.7

local MODELS <const> = {"born_wolf", "gibson_lanni", "richards_wolf", "confocal", "two_photon",
    "light_sheet"}
local SYNONYMS <const> = {widefield = "born_wolf", airy = "born_wolf", ["born-wolf"] = "born_wolf",
    ["gibson-lanni"] = "gibson_lanni", ["richards-wolf"] = "richards_wolf",
    vectorial = "richards_wolf", ["two-photon"] = "two_photon", ["2p"] = "two_photon",
    ["light-sheet"] = "light_sheet", lightsheet = "light_sheet"}

-- What only some models have, in the order of the help.
local OWN <const> = {"index_sample", "depth", "wavelength", "excitation", "pinhole", "sheet",
    "sheet_na", "field", "polarization"}

local declarations = {}
for _, model in ipairs(MODELS) do
    declarations[model] = declared.of(mb.psf[model]).options
end

-- The models that have an option, as text.
local function models_with(name)
    local list = {}
    for _, model in ipairs(MODELS) do
        list[#list + 1] = declarations[model][name] and model or nil
    end
    return table.concat(list, ", ")
end

local function own(model, name, changes)
    changes.of = changes.of or model
    changes.default = false
    return cli.option(declarations[model][name], changes)
end

-- "488,561" -> {488, 561}.
local function wavelengths(text)
    local list = cli.numbers(text)
    for _, value in ipairs(list or {}) do
        list = value > 0 and value < math.huge and list or nil
    end
    if not list or #list == 0 then
        return nil, "a number above 0, or a list of them, such as 488,561"
    end
    return list
end

--- The options.
function psf_options.list()
    local shared = declarations.gibson_lanni
    local list = {
        {"model", value = "NAME", type = cli.choice(MODELS[1], MODELS[2], MODELS[3], MODELS[4],
            MODELS[5], MODELS[6], SYNONYMS),
            doc = ("of the PSF: born_wolf (widefield), richards_wolf (the same, vectorial), "
                .. "gibson_lanni (sample and immersion differ), confocal, two_photon, light_sheet "
                .. "(default: richards_wolf where NA / n is above %g, gibson_lanni with --depth or "
                .. "--index-sample, else born_wolf)"):format(PARAXIAL)},
        cli.option(shared.na, {of = "model", also = {"numerical-aperture"}}),
        cli.option(shared.index, {of = "model", also = {"ri", "ni", "refractive-index",
            "immersion"}}),
        own("gibson_lanni", "index_sample", {}),
        own("gibson_lanni", "depth", {value = "NM"}),
        {"wavelength", value = "NM,...", type = wavelengths, also = {"emission", "lambda-em", "em"},
            doc = "model: of the emission in vacuum; one for all channels, or one for each"},
        {"excitation", value = "NM,...", type = wavelengths, also = {"lambda-ex", "ex"},
            doc = "confocal, two_photon, light_sheet: wavelength of the excitation, in the same "
                .. "way"},
        own("confocal", "pinhole", {value = "AU"}),
        own("light_sheet", "sheet", {value = "NM"}),
        own("light_sheet", "sheet_na", {}),
        own("confocal", "field", {of = "confocal, two_photon, light_sheet"}),
        own("richards_wolf", "polarization", {}),
    }
    list[#list + 1] = cli.option(shared.pixel, {value = "NM", also = {"pixel-size", "dxy", "xy"}})
    list[#list + 1] = cli.option(shared.step, {value = "NM", also = {"z-step", "dz", "z-spacing",
        "slice-distance"}})
    return list
end

-- Ends the program where a typed length is less than `least` nm, which says `what`.
local function check_length(options, name, least, what)
    local typed = options.given[name] and options[name]
    for _, length in ipairs(type(typed) == "table" and typed or {typed or nil}) do
        if length < least then
            cli.wrong("--%s is %g nm, which %s; lengths are in nanometers: give --%s %g for %g um",
                name, length, what, name, length * 1000, length)
        end
    end
end

-- Ends the program where a length was typed in micrometers.
local function check_lengths(options)
    local light = (options.wavelength or options.excitation or {0})[1]
    for _, name in ipairs {"wavelength", "excitation"} do
        check_length(options, name, LEAST_LIGHT, "is no light")
    end
    for _, name in ipairs {"pixel", "step"} do
        check_length(options, name, LEAST_PART * light, "no light resolves")
    end
end

--- Ends the program where a PSF was given and an option that only models have.
function psf_options.refuse(options)
    for _, name in ipairs {"na", "index", "model", "psf_size", table.unpack(OWN)} do
        if options.given[name] then
            cli.wrong("--%s is for a model of the PSF, and the PSF %s is given: leave one of them "
                .. "out", name:gsub("_", "-"), options.psf)
        end
    end
end

-- Chooses the model where none was typed, and notes why.
local function choose(options)
    if options.given.model then
        return
    elseif options.depth or options.index_sample then
        options.model, options.model_why = "gibson_lanni", ("--%s is for it"):format(options.depth
            and "depth" or "index-sample")
    elseif options.polarization then
        options.model, options.model_why = "richards_wolf", "--polarization is for it"
    elseif options.na and options.na / options.index > PARAXIAL then
        options.model, options.model_why = "richards_wolf", ("NA / n is %.3g, above %g"):format(
            options.na / options.index, PARAXIAL)
    else
        options.model, options.model_why = "born_wolf", options.na and ("NA / n is %.3g, not above "
            .. "%g"):format(options.na / options.index, PARAXIAL)
    end
end

--- Warns of the model born_wolf where it is not for the aperture.
function psf_options.warn(options)
    if options.model == "born_wolf" and options.na / options.index > PARAXIAL then
        cli.warn("--model born_wolf is scalar and paraxial, and NA / n is %.3g, above %g: the "
            .. "light of such a lens is shorter along z; --model richards_wolf has it",
            options.na / options.index, PARAXIAL)
    end
end

--- Says which model was chosen and why, or warns of one that was typed and is not for the aperture.
function psf_options.tell(options, say)
    if options.model_why then
        say("model      %s: %s (--model)", options.model, options.model_why)
    end
    psf_options.warn(options)
end

--- Ends the program where an option is given that the chosen model does not have. Chooses the model
-- where none is given: it is in options.model then.
function psf_options.check(options)
    choose(options)
    local has = declarations[options.model]
    check_lengths(options)
    for _, name in ipairs(OWN) do
        if options[name] and not has[name] then
            cli.wrong("--%s is for --model %s; the model is %s", name:gsub("_", "-"),
                models_with(name), options.model)
        end
    end
end

--- The options that the chosen model needs and that are not given. options.one_plane: the PSF has
-- one plane, and needs no --step.
function psf_options.missing(options)
    local names = {}
    for _, entry in ipairs(declarations[options.model]) do
        if entry.required and not options[entry.name]
            and not (entry.name == "step" and options.one_plane) then
            names[#names + 1] = "--" .. entry.name
        end
    end
    return names
end

--- Ends the program where the chosen model refuses its options, all of which are there: makes the
-- PSF of one voxel.
function psf_options.try(options)
    cli.checked(psf_options.make, options, {1, 1, 1}, "host", 1):release()
end

--- Takes the wavelengths that the image's metadata say of its channels and that are not typed, and
-- compares what is typed with them. Returns a text of what was taken, or nil.
function psf_options.from_file(options, meta)
    local taken = {}
    for name, which in pairs {wavelength = "Emission", excitation = "Excitation"} do
        local told = declarations[options.model][name] and channel_light.wavelengths(meta, which)
        for i, meters in ipairs(told or {}) do
            told[i] = math.floor(meters * 1e12 + 0.5) / 1e3
        end
        local typed = told and options[name]
        if told and not typed then
            local texts = tables.mapped(told, function(nm) return ("%g"):format(nm) end)
            options[name] = told
            taken[#taken + 1] = ("%s %s nm"):format(name, table.concat(texts, ", "))
        end
        for i, nm in ipairs(typed and told or {}) do
            if math.abs((typed[i] or typed[1]) / nm - 1) > 0.05 then
                cli.warn("--%s of channel %d is %g nm, but the image says %g nm: the typed one is "
                    .. "taken", name, i, typed[i] or typed[1], nm)
            end
        end
    end
    table.sort(taken)
    return #taken > 0 and table.concat(taken, "; ") or nil
end

--- How many PSFs the wavelengths name: 1, or one for each of the channels. Ends the program where
-- that are not as many as `channels`, if these are given.
function psf_options.count(options, channels)
    local count = 1
    for _, name in ipairs {"wavelength", "excitation"} do
        local own_count = options[name] and #options[name] or 1
        if own_count > 1 and channels and own_count ~= channels then
            cli.wrong("--%s has %d wavelengths, and there %s %d channel%s: give one, or one for "
                .. "each channel", name, own_count, channels == 1 and "is" or "are", channels,
                channels == 1 and "" or "s")
        end
        count = math.max(count, own_count)
    end
    return count
end

--- What the chosen model takes for a channel (from 1): a table of its options.
function psf_options.settings(options, channel)
    local settings = declared.part(declarations[options.model], options)
    settings.step = settings.step or options.one_plane and settings.pixel or nil
    for _, name in ipairs {"wavelength", "excitation"} do
        local list = settings[name]
        settings[name] = list and (list[channel] or list[1])
    end
    return settings
end

--- The PSF of a channel, of these extents.
function psf_options.make(options, size, device, channel)
    local settings = psf_options.settings(options, channel)
    settings.device = device
    return mb.psf[options.model](size, settings)
end

--- The size of a PSF for an image of this shape (z, y, x): what holds nearly all light, for all of
-- `channels`, a list.
function psf_options.size_for(options, shape, channels)
    local size
    for _, channel in ipairs(channels) do
        local own_size = cli.checked(mb.psf.size_for, options.model, shape,
            psf_options.settings(options, channel))
        size = size or own_size
        for i, n in ipairs(own_size) do
            size[i] = math.max(size[i], n)
        end
    end
    return size
end

--- The least share of the light of a plane that a PSF of this size holds, of all `channels`, and
-- the height of the plane, in nm.
function psf_options.light_within(options, size, channels)
    local least, height = 1, 0
    for _, channel in ipairs(channels) do
        local share, at = mb.psf.light_within(options.model, size,
            psf_options.settings(options, channel))
        if share < least then
            least, height = share, at
        end
    end
    return least, height
end

--- Says that a PSF of one plane, measured or a model, serves a stack, where it does. `psf` and
-- `image`: their extents; `done`: what is done with each plane, "deconvolved".
function psf_options.tell_plane(say, psf, image, done)
    if #image == 3 and image[1] > 1 and (#psf == 2 or psf[1] == 1) then
        say("           one plane: every plane of the stack is %s by itself", done)
    end
end

--- What the model of a channel is, in a few words.
function psf_options.text(options, channel)
    local settings, parts = psf_options.settings(options, channel), {}
    for _, each in ipairs {{"wavelength", "%g nm"}, {"excitation", "excited at %g nm"}} do
        parts[#parts + 1] = settings[each[1]] and each[2]:format(settings[each[1]])
    end
    return ("%s, NA %g, %s"):format(options.model, options.na, table.concat(parts, ", "))
end

return psf_options
