-- Stacks whose files say in many forms which page is which plane: OME-XML, ImageJ's lines, tifffile's
-- JSON, sets of files, and what acquisition programs say in tags of their own. Each plane has a
-- value that says which it is.

local tiff_encoder = require "spec.support.tiff_encoder"

local page_forms = {}

--- The value of a plane, all 0-based.
function page_forms.value(c, z, t)
    return 1 + 100 * c + 10 * z + t
end

--- A page of 2 x 3 of it.
function page_forms.page(c, z, t)
    local v = page_forms.value(c, z, t)
    return {{v, v, v}, {v, v, v}}
end

--- Calls fn(c, z, t) for all planes, in an order of C, Z and T, the fastest first.
function page_forms.each_plane(order, counts, fn)
    local index = {}
    local function along(k)
        if k == 0 then
            return fn(index.C, index.Z, index.T)
        end
        local axis = order:sub(k, k)
        for i = 0, counts[axis] - 1 do
            index[axis] = i
            along(k - 1)
        end
    end
    along(3)
end

--- The pages in an order.
function page_forms.pages_in(order, counts)
    local list = {}
    page_forms.each_plane(order, counts, function(c, z, t)
        list[#list + 1] = page_forms.page(c, z, t)
    end)
    return list
end

page_forms.HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
    .. '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"%s>'

function page_forms.image(order, counts, inside, more)
    return ('<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XY%s" Type="uint16" '
        .. 'SizeX="3" SizeY="2" SizeC="%d" SizeZ="%d" SizeT="%d"%s>%s</Pixels></Image>'):format(
        order, counts.C, counts.Z, counts.T, more or "", inside)
end

function page_forms.ome(order, counts, inside, more)
    return page_forms.HEAD:format "" .. page_forms.image(order, counts, inside, more) .. "</OME>"
end

function page_forms.imagej(counts, more)
    return ("ImageJ=1.53t\nimages=%d\nchannels=%d\nslices=%d\nframes=%d\nhyperstack=true\n%s")
        :format(counts.C * counts.Z * counts.T, counts.C, counts.Z, counts.T, more or "")
end

-- ---- forms, each of a number for a choice, an order and counts ----

local each_plane, page, pages_in, ome = page_forms.each_plane, page_forms.page,
    page_forms.pages_in, page_forms.ome

local ORDERS <const> = {"CZT", "CTZ", "ZCT", "ZTC", "TCZ", "TZC"}

--- Random whole numbers: random(n) is one from 1 to n. The same seed gives the same ones.
function page_forms.random(seed)
    local state = seed
    return function(n)
        state = (state * 1103515245 + 12345) & 0x7fffffff
        return (state >> 8) % n + 1
    end
end

local function shuffled(random, list)
    for i = #list, 2, -1 do
        local k = random(i)
        list[i], list[k] = list[k], list[i]
    end
    return list
end

-- All planes, {c, z, t}, in any order.
local function any_order(random, counts)
    local planes = {}
    each_plane("CZT", counts, function(c, z, t)
        planes[#planes + 1] = {c, z, t}
    end)
    return shuffled(random, planes)
end

local FORMS = {}

function FORMS.follow(_, order, counts)
    return {pages = pages_in(order, counts), texts = {ome(order, counts, "<TiffData/>")}}
end

function FORMS.silent(_, order, counts)
    return {pages = pages_in(order, counts), texts = {ome(order, counts, "")}}
end

function FORMS.each(random, order, counts)
    local pages, blocks = {}, {}
    for i, plane in ipairs(any_order(random, counts)) do
        pages[i] = page(table.unpack(plane))
        blocks[i] = ('<TiffData FirstC="%d" FirstZ="%d" FirstT="%d" IFD="%d"%s/>'):format(plane[1],
            plane[2], plane[3], i - 1, random(2) == 1 and ' PlaneCount="1"' or "")
    end
    return {pages = pages, texts = {ome(order, counts, table.concat(shuffled(random, blocks)))}}
end

-- Blocks along the fastest axis.
function FORMS.blocks(random, order, counts)
    local planes, pages, blocks = {}, {}, {}
    local fast = order:sub(1, 1)
    local first = {C = counts.C, Z = counts.Z, T = counts.T}
    first[fast] = 1
    each_plane(order, first, function(c, z, t)
        planes[#planes + 1] = {C = c, Z = z, T = t}
    end)
    for _, plane in ipairs(shuffled(random, planes)) do
        blocks[#blocks + 1] = ('<TiffData FirstC="%d" FirstZ="%d" FirstT="%d" IFD="%d" '
            .. 'PlaneCount="%d"/>'):format(plane.C, plane.Z, plane.T, #pages, counts[fast])
        for i = 0, counts[fast] - 1 do
            plane[fast] = i
            pages[#pages + 1] = page(plane.C, plane.Z, plane.T)
        end
    end
    return {pages = pages, texts = {ome(order, counts, table.concat(blocks))}}
end

function FORMS.lines(_, order, counts)
    return {pages = pages_in(order, counts), texts = {page_forms.imagej(counts, "order="
        .. order:lower() .. "\n")}}
end

function FORMS.scifio(_, _, counts)
    return {pages = pages_in("CZT", counts), texts = {(page_forms.imagej(counts):gsub(
        "ImageJ=[^\n]*", "SCIFIO=0.42.0\naxes=X,Y,Channel,Z,Time\nbitsPerPixel=16"))}}
end

function FORMS.two(_, order, counts)
    return {pages = pages_in(order, counts), texts = {ome(order, counts, "<TiffData/>"),
        page_forms.imagej(counts)}}
end

function FORMS.shaped(random, order, counts)
    local shape, axes, sample = {}, "", random(4) == 1
    for axis in order:reverse():gmatch "." do
        if counts[axis] > 1 or random(2) == 1 then
            shape[#shape + 1], axes = counts[axis], axes .. axis
        end
    end
    return {pages = pages_in(order, counts), texts = {('{"shape": [%s2, 3%s], "axes": "%sYX%s"}')
        :format(#shape > 0 and table.concat(shape, ", ") .. ", " or "", sample and ", 1" or "",
        axes, sample and "S" or "")}}
end

-- A file for each time, all named in all, some with a path, which counts for nothing.
function FORMS.set(random, order, counts)
    local blocks, made = {}, {}
    each_plane("ZCT", counts, function(c, z, t)
        blocks[#blocks + 1] = ('<TiffData FirstC="%d" FirstZ="%d" FirstT="%d" IFD="%d" '
            .. 'PlaneCount="1"><UUID FileName="s%d.ome.tif">urn:uuid:%d</UUID></TiffData>'):format(
            c, z, t, counts.Z * c + z, t, t)
    end)
    local inside = page_forms.image(order, counts, table.concat(shuffled(random, blocks)))
    local first = random(counts.T) - 1
    for t = 0, counts.T - 1 do
        local pages = {}
        each_plane("ZCT", {C = counts.C, Z = counts.Z, T = 1}, function(c, z)
            pages[#pages + 1] = page(c, z, t)
        end)
        local own = {name = ("s%d.ome.tif"):format(t), pages = pages, texts = {page_forms.HEAD
            :format((' UUID="urn:uuid:%d"'):format(t)) .. inside .. "</OME>"}}
        if t == first then
            made.name, made.pages, made.texts = own.name, own.pages, own.texts
        else
            made[#made + 1] = own
        end
    end
    return made
end

function FORMS.companion(_, order, counts)
    return {pages = pages_in(order, counts), texts = {page_forms.HEAD:format ' UUID="urn:uuid:2"'
        .. '<BinaryOnly MetadataFile="c.companion.ome" UUID="urn:uuid:1"/></OME>'},
        name = "c.ome.tif", beside = {["c.companion.ome"] = ome(order, counts,
        ('<TiffData IFD="0" PlaneCount="%d"><UUID FileName="c.ome.tif">urn:uuid:2</UUID>'
        .. "</TiffData>"):format(counts.C * counts.Z * counts.T))}}
end

-- ---- tags of programs ----

-- Of an order whose fastest axes are these.
local function only(counts, axes)
    return {C = axes:find "C" and counts.C or 1, Z = axes:find "Z" and counts.Z or 1,
        T = axes:find "T" and counts.T or 1}
end

--- The tag of Zeiss LSM.
function page_forms.lsm(scan, slices, channels, times, positions)
    local text = ("<I4i4i4i4i4i4i4i4i4i4dddddd"):pack(0x00400494c, 500, 3, 2, slices, channels,
        times, 2, 0, 0, 1e-7, 1e-7, 3e-7, 0, 0, 0) .. ("<I2"):pack(scan)
    text = text .. ("\0"):rep(264 - #text) .. ("<i4i4"):pack(positions or 0, 0)
    return text .. ("\0"):rep(500 - #text)
end

function FORMS.lsm(random, _, counts)
    local tag = {1, page_forms.lsm(counts.T > 1 and 6 or random(2) == 1 and 6 or 0, counts.Z,
        counts.C, counts.T)}
    if counts.C == 1 then
        return {pages = pages_in("ZTC", counts), order = "<", extra = {[34412] = tag}}
    end
    local pages, bits = {}, {}
    each_plane("ZTC", {C = 1, Z = counts.Z, T = counts.T}, function(_, z, t)
        local lines = {}
        for c = 0, counts.C - 1 do
            table.move(page(c, z, t), 1, 2, #lines + 1, lines)
            bits[c + 1] = 16
        end
        pages[#pages + 1] = lines
    end)
    return {pages = pages, order = "<", plain = true, rows = 2, extra = {[34412] = tag,
        [257] = {4, {2}}, [258] = {3, bits}, [277] = {3, {counts.C}}, [284] = {3, {2}}}}
end

--- The tag of FluoView: axes as {{name, count}, ...}, behind x and y.
function page_forms.fluoview(order, axes)
    local parts = {(order .. "i2I1c257I4i4I4I4i4I4"):pack(0, 1, "image", 0, 0, 0, 0, 0, 0)}
    local all = {{"X", 3}, {"Y", 2}, table.unpack(axes)}
    for i = 1, 10 do
        local name, count = table.unpack(all[i] or {"", 1})
        parts[#parts + 1] = (order .. "c16i4ddc64"):pack(name, count, 0, #name == 1 and 0.1 or 1,
            #name == 1 and "um" or "")
    end
    local text = table.concat(parts)
    return text .. ("\0"):rep(1454 - #text)
end

local FLUOVIEW <const> = {Z = "Z", T = "Time", C = "Ch"}

function FORMS.fluoview(random, order, counts)
    local axes, byte_order = {}, random(2) == 1 and "<" or ">"
    for axis in order:gmatch "." do
        if counts[axis] > 1 then
            axes[#axes + 1] = {FLUOVIEW[axis], counts[axis]}
        end
    end
    return {pages = pages_in(order, counts), order = byte_order, extra = {
        [34361] = {1, page_forms.fluoview(byte_order, axes)}, [34362] = {12, ("\0"):rep(64), 8}}}
end

function FORMS.scanimage(_, _, counts)
    local saved = {}
    for c = 1, counts.C do
        saved[c] = c
    end
    local text = ("SI.VERSION_MAJOR = 2020\nSI.hChannels.channelSave = [%s]\n"
        .. "SI.hStackManager.framesPerSlice = %d\n"):format(table.concat(saved, ";"), counts.T)
    return {pages = pages_in("CTZ", counts), extra = {[305] = {2, text .. "\0"}}}
end

function FORMS.qpi(_, _, counts)
    counts = only(counts, "C")
    return {pages = pages_in("CZT", counts), counts = counts,
        extra = {[305] = {2, "PerkinElmer-QPI\0"}}}
end

-- MetaMorph's planes behind one directory: those of a strip.
function FORMS.metamorph(random, _, counts)
    counts = only(counts, random(2) == 1 and "Z" or "T")
    local uic, pages = {}, pages_in("ZTC", counts)
    if #pages == 1 then
        return FORMS.qpi(random, "", counts)
    end
    local lines = {}
    for i, each in ipairs(pages) do
        uic[i] = ("<I4I4I4I4I4I4"):pack(counts.Z > 1 and i or 0, 10, 1, 50 * i, 0, 0)
        table.move(each, 1, 2, #lines + 1, lines)
    end
    return {pages = {lines}, counts = counts, order = "<", plain = true, extra = {
        [257] = {4, {2}}, [278] = {4, {2}}, [279] = {4, {12}}, -- of the first plane
        [33628] = {4, ("\0"):rep(8), 2}, [33629] = {5, table.concat(uic), #pages}}}
end

-- Nothing at all: a stack.
function FORMS.untold(_, _, counts)
    counts = only(counts, "Z")
    return {pages = pages_in("ZCT", counts), counts = counts}
end

-- ---- Micro-Manager ----

-- The offsets of the directories of a classic file.
local function directories_of(text)
    local list, at = {}, string.unpack("<I4", text, 5)
    while at ~= 0 do
        list[#list + 1] = at
        at = string.unpack("<I4", text, at + 3 + 12 * string.unpack("<I2", text, at + 1))
    end
    return list
end

--- A file with Micro-Manager's map of places {c, z, t, position} of its pages.
function page_forms.mapped(pages, places, summary)
    local head = ("<I4I4I4I4I4I4I4s4"):pack(54773648, 0, 483765892, 0, 99384722, 0, 2355492,
        summary)
    local text = tiff_encoder.encode(pages, {dtype = "u16", head = head,
        extra = {[51123] = {2, "{\"a\": 1}\0"}}})
    local index = {("<I4I4"):pack(3453623, #pages)}
    for i, at in ipairs(directories_of(text)) do
        local place = places[i]
        index[i + 1] = ("<I4I4I4I4I4"):pack(place[1], place[2], place[3], place[4] or 0, at)
    end
    return text:sub(1, 12) .. ("<I4"):pack(#text) .. text:sub(17) .. table.concat(index)
end

function page_forms.summary(counts)
    return ('{"MicroManagerVersion": "2.0", "Channels": %d, "Slices": %d, "Frames": %d}'):format(
        counts.C, counts.Z, counts.T)
end

function FORMS.map(random, _, counts)
    local places, pages = any_order(random, counts), {}
    for i, place in ipairs(places) do
        pages[i] = page(table.unpack(place))
    end
    return {text = page_forms.mapped(pages, places, page_forms.summary(counts))}
end

--- An NDTiff data set: files, {name = text}, of images {axes (JSON), page} for each name.
function page_forms.ndtiff(images)
    local index, made = {}, {}
    for name, list in pairs(images) do
        local pages = {}
        for i, each in ipairs(list) do
            pages[i] = each[2]
            index[#index + 1] = {each[3], ("<s4s4I4i4i4i4i4I4i4i4"):pack(each[1], name,
                8 + 20 + 12 * (i - 1), 3, 2, 1, 0, 0, 0, 0)}
        end
        made[name] = tiff_encoder.encode(pages, {dtype = "u16",
            head = ("<I4I4I4I4I4"):pack(483729, 3, 0, 2355492, 0),
            extra = {[51123] = {2, "{\"a\": 1}\0"}}})
    end
    table.sort(index, function(a, b) return a[1] < b[1] end)
    for i, each in ipairs(index) do
        index[i] = each[2]
    end
    made["NDTiff.index"] = table.concat(index)
    return made
end

function FORMS.ndtiff(random, _, counts)
    local images, number = {}, 0
    local names, first = {"a_NDTiffStack.tif", "a_NDTiffStack_1.tif"}, random(3)
    -- Words count as they come, so that the channels of the first images come in their order.
    each_plane("CZT", counts, function(c, z, t)
        number = number + 1
        local name = names[number > first and random(2) or 1]
        images[name] = images[name] or {}
        table.insert(images[name], {('{"channel": "%s", "z": %d, "time": %d}'):format(
            ({"DAPI", "GFP", "Cy5"})[c + 1], z - 1, t), page(c, z, t), number})
    end)
    return {beside = page_forms.ndtiff(images), name = names[images[names[2]] and random(2) or 1]}
end

-- ---------------------------------------------------------------------------------------------

--- The names of all forms.
page_forms.NAMES = {}
for name in pairs(FORMS) do
    table.insert(page_forms.NAMES, name)
end
table.sort(page_forms.NAMES)

-- How the pixels of a file are laid out.
local function laid_out(random, made, dtype)
    local options = {dtype = made.plain and "u16" or dtype, order = made.order or random(2) == 1 and ">" or "<",
        texts = made.texts, extra = made.extra, rows = made.rows}
    if not made.plain then
        options.big = random(4) == 1
        options.method = ({"none", "none", "lzw", "deflate", "packbits"})[random(5)]
        options.tile = random(4) == 1 and {16, 16} or nil
        options.rows = random(2)
    end
    return options
end

local function encoded(random, made, dtype)
    if made.text then
        return made.text
    end
    return tiff_encoder.encode(made.pages, laid_out(random, made, dtype))
end

-- Forms in which fewer pages are another image.
local UNCOUNTED <const> = {untold = true, qpi = true, metamorph = true, scanimage = true}

--- The files of a form at random: {name (that to open), files ({name = text}), counts, said (what it
-- is), aborted}. `aborted`: the last pages may be missing; whether they are is in the result.
function page_forms.made(random, form, aborted)
    local order = ORDERS[random(#ORDERS)]
    local counts = {C = random(3), Z = random(4), T = random(3)}
    local made = FORMS[form](random, order, counts)
    local dtype = ({"u16", "u16", "i16", "i32", "f32", "u32"})[random(6)]
    local all = {name = made.name or "r.tif", counts = made.counts or counts,
        files = made.beside or {}}
    if aborted and made.pages and #made.pages > 1 and not UNCOUNTED[form] then
        all.aborted = true
        made.pages = table.move(made.pages, 1, random(#made.pages - 1), 1, {})
    end
    if made.pages or made.text then
        all.files[all.name] = encoded(random, made, dtype)
    end
    for _, other in ipairs(made) do
        all.files[other.name] = encoded(random, other, dtype)
    end
    all.said = ("%s %s %d channels, %d slices, %d times%s"):format(form, order, all.counts.C,
        all.counts.Z, all.counts.T, all.aborted and ", aborted" or "")
    return all
end

return page_forms
