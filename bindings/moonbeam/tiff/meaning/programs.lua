--- What programs say of a file's pages in tags and texts of their own: Zeiss LSM, FluoView,
-- ScanImage, Olympus SIS, PerkinElmer QPI, Micro-Manager and NDTiff; and the kinds of which pages
-- that follow one another are no stack, which are refused by their names.
--
-- Which kinds there are, and what the axes of each mean, is as tifffile (C. Gohlke) has it.

local fail = require "moonbeam.internal.fail"
local micromanager = require "moonbeam.tiff.meaning.micromanager"
local order = require "moonbeam.tiff.meaning.order"
local refusal = require "moonbeam.tiff.meaning.refusal"
local units = require "moonbeam.internal.quantities.units"
local voxel = require "moonbeam.tiff.voxel"

local programs = {}

local SOFTWARE <const>, MAKE <const>, PAGE_NAME <const>, XMP <const> = 305, 271, 285, 700
local LSM <const>, FLUOVIEW <const>, SIS <const>, GEL <const> = 34412, 34361, 33471, 33445

local function positive(value)
    return value > 0 and value < math.huge and value or nil
end

local function text_of(file, tag)
    local value = file.tags[tag]
    return type(value) == "string" and value or ""
end

-- The bytes of a tag of which the place is kept; nil where it has fewer.
local function bytes_of(file, tag, count)
    local placed = file.tags[tag]
    return placed and placed.count >= (count or 5) and file.part(placed.at, count or placed.count)
        or nil
end

-- Metadata of pages along axes, {{letter, extent}, ...} from slow to fast, those of one element
-- left out; refuses axes of other letters by the name of the program.
local function along(file, axes, who)
    local list, names = {}, {}
    for _, axis in ipairs(axes) do
        if axis[2] < 1 or axis[2] >= 1 << 24 then
            refusal.pages(file.name, "%s says that there are %d along an axis", who, axis[2])
        end
        list[#list + 1] = axis[2] > 1 and axis or nil
        names[#names + 1] = ("%d (%s)"):format(axis[2], axis[3] or axis[1])
    end
    local meta = order.along(list) or refusal.pages(file.name, "%s says %s, of which channels, "
        .. "slices and times are read", who, table.concat(names, " x "))
    meta.kind = who
    return meta
end

-- Adds the size of a voxel in m to metadata.
local function sized(meta, size)
    meta.voxel = {pixel = size.pixel, row = size.row or size.pixel, step = size.step}
    meta.unit = "micron"
    meta.spacing = size.step and size.step * 1e6
    meta.resolution = size.pixel and voxel.resolution(size.pixel)
    return meta
end

-- ---------------------------------------------------------------------------------------------
-- Zeiss LSM

-- Axes of scans in planes, from slow to fast.
local LSM_SCANS <const> = {[0] = "Z", [3] = "T", [6] = "TZ", [7] = "TZ"}

local function of_lsm(file)
    local text = bytes_of(file, LSM, 90)
    if not text then
        return nil
    end
    local magic, _, _, _, slices, _, times = string.unpack("<I4i4i4i4i4i4i4", text)
    local x, y, z = string.unpack("<ddd", text, 41)
    local scan = string.unpack("<I2", text, 89)
    if magic ~= 0x00300494c and magic ~= 0x00400494c then
        return nil
    elseif not LSM_SCANS[scan] then
        refusal.pages(file.name, "Zeiss LSM says scan type %d, and stacks of planes are read", scan)
    elseif file.pages[1].problem and not file.pages[1].apart then
        error(file.pages[1].problem, 0)
    end
    local more = bytes_of(file, LSM, 280)
    local positions, tiles = string.unpack("<i4i4", more or ("\0"):rep(8), more and 265 or 1)
    local extents, axes = {Z = slices, T = times}, {}
    for letter in LSM_SCANS[scan]:gmatch "." do
        axes[#axes + 1] = {letter, extents[letter]}
    end
    if positions > 1 or tiles > 1 then
        table.insert(axes, 1, {"P", math.max(positions, 1) * math.max(tiles, 1), "positions"})
    end
    local pages
    if file.pages[1].apart then -- channels
        pages, axes[#axes + 1] = {}, {"C", #file.pages[1].apart}
        for _, page in ipairs(file.pages) do
            table.move(page.apart or {page}, 1, page.apart and #page.apart or 1, #pages + 1, pages)
        end
    end
    local meta = along(file, axes, "Zeiss LSM")
    meta.pages = pages
    return sized(meta, {pixel = positive(x), row = positive(y), step = positive(z)})
end

-- ---------------------------------------------------------------------------------------------
-- Olympus

local FLUOVIEW_AXES <const> = {Z = "Z", T = "T", TIME = "T", CH = "C", WAVELENGTH = "C"}

local function of_fluoview(file)
    local text = bytes_of(file, FLUOVIEW, 1284)
    if not text then
        return nil
    end
    local axes, size = {}, {}
    for i = 0, 9 do
        local at = 284 + 100 * i
        local name, count, _, step, unit = string.unpack(file.byte_order .. "c16i4ddc64", text,
            at + 1)
        name = name:gsub("%z.*", ""):match "^%s*(.-)%s*$"
        local meters = units.meters((unit:gsub("%z.*", ""):match "^%s*(.-)%s*$"))
        local axis = ({X = "pixel", Y = "row", Z = "step"})[name:upper()]
        if axis and meters then
            size[axis] = positive(math.abs(step) * meters)
        end
        if name ~= "" and axis ~= "pixel" and axis ~= "row" and count > 1 then
            table.insert(axes, 1, {FLUOVIEW_AXES[name:upper()] or "?", count, name})
        end
    end
    return sized(along(file, axes, "FluoView"), size)
end

local SIS_AXES <const> = {Z = "Z", Time = "T", Band = "C"}

local function of_sis(file)
    local text = bytes_of(file, SIS)
    local inside = text and text:match "%[Dimension%]([^%[%z]*)"
    if not inside then
        return nil
    end
    local axes = {}
    for name, count in inside:gmatch "([%w ]+)=[ \t]*(%d+)" do
        count = math.tointeger(tonumber(count)) or 0
        axes[#axes + 1] = {SIS_AXES[name] or "?", count, name}
    end
    return along(file, axes, "Olympus SIS")
end

-- ---------------------------------------------------------------------------------------------
-- ScanImage

local function of_scanimage(file)
    local text, old = text_of(file, SOFTWARE), false
    if not text:find "^SI%." then
        text = nil
        for _, each in ipairs(file.descriptions) do
            text = text or (each:find("SI.hChannels.channelSave", 1, true)
                or each:find("scanimage.SI", 1, true) or each:find "^state%.") and each or nil
        end
        old = text ~= nil
    end
    if not text or #file.pages == 1 then
        return nil
    end
    local function said(name)
        return text:match("SI%." .. name:gsub("%.", "%%.") .. "%s*=%s*([^\r\n]*)")
    end
    local saved = said "hChannels.channelSave"
    if not saved then
        refusal.pages(file.name, "it is of ScanImage, whose text does not say %s",
            old and "what is read of older versions" or "which channels were saved")
    end
    for _, name in ipairs {"hStackManager.actualNumVolumes", "hStackManager.numVolumes",
        "hFastZ.numVolumes"} do
        local volumes, slices = tonumber(said(name) or ""), tonumber(said
            "hStackManager.actualNumSlices" or said "hStackManager.numSlices" or "") or 1
        local fast = said "hFastZ.enable" or said "hStackManager.enable" or ""
        if volumes and volumes > 1 and slices > 1 and fast:find "^[t1]" then
            refusal.pages(file.name, "ScanImage says %d volumes of %d slices", volumes, slices)
        end
    end
    local _, channels = saved:gsub("%d+", "")
    local each = math.tointeger(tonumber(said "hStackManager.framesPerSlice" or ""))
    if channels == 0 then
        refusal.pages(file.name, "it is of ScanImage, whose text names no channel that was saved")
    end
    local count = #file.pages // channels
    if not each or each < 1 then -- it went on until it was stopped
        each = count
    end
    return along(file, {{"Z", math.max(1, count // each)}, {"T", each}, {"C", channels}},
        "ScanImage")
end

-- ---------------------------------------------------------------------------------------------
-- PerkinElmer QPI

-- The pages of one size with which it begins are channels; behind them are smaller ones of these.
local function of_qpi(file)
    if not text_of(file, SOFTWARE):find "^PerkinElmer%-QPI" then
        return nil
    end
    local first, pages = file.pages[1], {}
    for _, page in ipairs(file.pages) do
        if first.problem or page.rows ~= first.rows or page.columns ~= first.columns
            or page.dtype ~= first.dtype then
            break
        end
        pages[#pages + 1] = page
    end
    if first.problem then
        error(first.problem, 0)
    end
    local meta = along(file, {{"C", #pages}}, "PerkinElmer QPI")
    meta.pages = pages
    return meta
end

-- ---------------------------------------------------------------------------------------------
-- Kinds that are refused

local function begins(file, pattern)
    return (file.descriptions[1] or ""):find(pattern) ~= nil
end

-- Is a file of this kind? Of pages whose values or order need its program.
local REFUSED <const> = {
    {"Leica SCN", function(file)
        return begins(file, "^%s*<scn[%s>]") or begins(file, "^%s*<%?xml.*<scn[%s>]")
    end},
    {"Aperio SVS", function(file) return begins(file, "^Aperio ") end},
    {"Ventana BIF", function(file)
        local software = text_of(file, SOFTWARE)
        return file.tags[XMP] ~= nil and (software:find "Ventana" or software:find
            "^ScanOutputManager") ~= nil
    end},
    {"Argos AVS", function(file) return text_of(file, 65000):find "^<Argos" ~= nil end},
    {"Hamamatsu NDPI", function(file)
        return file.tags[65420] ~= nil and file.tags[MAKE] ~= nil
    end},
    {"Philips DP", function(file) return text_of(file, SOFTWARE):find "^Philips DP" ~= nil end},
    {"Indica Labs", function(file)
        return text_of(file, SOFTWARE):find "^IndicaLabsImageWriter" ~= nil
    end},
    {"Agilent", function(file) return file.tags[PAGE_NAME] ~= nil and file.tags[37701] ~= nil end},
    {"MetaMorph without a count of planes", function(file) return file.tags[33628] ~= nil end},
    {"Micro-Manager without a map of its pages", function(file) return file.tags[51123] ~= nil end},
}

-- Refuses a file by its kind.
local function refuse(file, options)
    local gel = file.tags[GEL]
    local form = type(gel) == "table" and gel[1]
    if options.meaning == false then
        return
    elseif form == 2 or form == 128 then
        fail("unsupported", "tiff", nil, "%s: it is of the kind MD Gel (%d), whose values have to "
            .. "be %s by its program: save it as float of 32 bits", file.name, form,
            form == 2 and "squared and scaled" or "scaled")
    elseif #file.pages > 1 then
        for _, kind in ipairs(REFUSED) do
            if kind[2](file) then
                refusal.pages(file.name, "it is of the kind %s, whose %d pages are no stack that "
                    .. "is known", kind[1], #file.pages)
            end
        end
    end
end

-- ---------------------------------------------------------------------------------------------

--- What comes before all texts but OME-XML: metadata with `planes`, or nil.
function programs.first(file, options, warn)
    if not file.tags then
        return nil
    end
    return micromanager.map(file, options, warn) or micromanager.ndtiff(file, options, warn)
end

--- What comes after all texts: metadata and the `pages` that they are of (nil: all); nil where
-- nothing is known. Raises refusals of kinds that are not read.
function programs.last(file, options)
    if not file.tags then
        return nil
    end
    for _, read in ipairs {of_lsm, of_fluoview, of_scanimage, of_sis, of_qpi} do
        local meta = read(file)
        if meta then
            return meta
        end
    end
    refuse(file, options)
    return nil
end

return programs
