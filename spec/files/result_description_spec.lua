-- What the description of a result says: that of its own format, once, and what the result is,
-- whatever its input was. Of the input it has the size of a voxel, the interval of times and what is
-- told of channels, as far as its format has words for them.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"
local page_forms = require "spec.support.page_forms"
local tiff_encoder = require "spec.support.tiff_encoder"

local value = page_forms.value
local COUNTS <const> = {C = 2, Z = 3, T = 2}
local CHANNELS <const> = '<Channel ID="Channel:0:0" Name="DAPI" EmissionWavelength="460"/>'
    .. '<Channel ID="Channel:0:1" Name="GFP" EmissionWavelength="520"/>'
local SIZES <const> = ' PhysicalSizeX="0.1" PhysicalSizeY="0.12" PhysicalSizeZ="0.3" '
    .. 'TimeIncrement="2.5"'
local NAMED <const> = {{"DAPI", 460e-9}, {"GFP", 520e-9}}

local folder

-- Rationals of the resolution: pixels along x and y for each unit, and the unit.
local function resolution(x, y, unit)
    return {[282] = {5, string.pack("<I4I4", x, 1)}, [283] = {5, string.pack("<I4I4", y, 3)},
        [296] = {3, {unit}}}
end

local function tiff(order, texts, extra, counts)
    return function(path)
        files.write(path, tiff_encoder.encode(page_forms.pages_in(order, counts or COUNTS),
            {dtype = "u16", texts = texts, extra = extra}))
    end
end

local function ome(inside)
    return page_forms.ome("ZTC", COUNTS, CHANNELS .. inside, SIZES)
end

local IMAGEJ <const> = page_forms.imagej(COUNTS, "order=zct\nunit=um\nspacing=0.3\n"
    .. "finterval=2.5\nmin=5\nmax=9\nloop=true\n")

-- Inputs: what writes them, and what they say: {pixel, row, step} (m), interval (s), channels.
local INPUTS <const> = {
    {"imagej.tif", tiff("ZCT", {IMAGEJ}, resolution(10, 25, 1)), {1e-7, 1.2e-7, 3e-7}, 2.5},
    {"ome.ome.tif", tiff("ZTC", {ome '<TiffData/>'}), {1e-7, 1.2e-7, 3e-7}, 2.5, NAMED},
    {"mm.ome.tif", tiff("ZTC", {ome '<TiffData/>', IMAGEJ}, resolution(100000, 250000, 3)),
        {1e-7, 1.2e-7, 3e-7}, 2.5, NAMED},
    {"two.ome.tif", function(path)
        local pages = page_forms.pages_in("ZTC", COUNTS)
        pages[13] = page_forms.page(9, 9, 9)
        files.write(path, tiff_encoder.encode(pages, {dtype = "u16", texts = {(ome('<TiffData IFD="0" PlaneCount="12"><UUID '
        .. 'FileName="two.ome.tif">urn:uuid:1</UUID></TiffData>'):gsub("</OME>", '<Image '
        .. 'ID="Image:1"><Pixels ID="Pixels:1" DimensionOrder="XYZCT" Type="uint16" SizeX="3" '
        .. 'SizeY="2" SizeC="1" SizeZ="1" SizeT="1"><TiffData IFD="12"/></Pixels></Image></OME>'))}}))
    end, {1e-7, 1.2e-7, 3e-7}, 2.5, NAMED, image = 1},
    {"map.tif", function(path)
        local places, pages = {}, {}
        page_forms.each_plane("CZT", COUNTS, function(c, z, t)
            table.insert(places, {c, z, t})
            table.insert(pages, page_forms.page(c, z, t))
        end)
        files.write(path, page_forms.mapped(pages, places, page_forms.summary(COUNTS)))
    end, {}},
    {"shaped.tif", tiff("ZCT", {'{"shape": [2, 2, 3, 2, 3], "axes": "TCZYX"}'},
        resolution(100000, 250000, 3)), {1e-7, 1.2e-7}},
    {"lsm.tif", tiff("ZTC", nil, {[34412] = {1, page_forms.lsm(6, 3, 1, 2)}},
        {C = 1, Z = 3, T = 2}), {1e-7, 1e-7, 3e-7}, nil, nil, channels = 1},
    {"plain.tif", tiff("ZCT", nil, resolution(100000, 250000, 3), {C = 1, Z = 3, T = 1}),
        {1e-7, 1.2e-7}, nil, nil, channels = 1, frames = 1},
    {"image.zarr", function(path)
        tiff("ZTC", {ome '<TiffData/>'})(folder .. "/source.ome.tif")
        local volume <close> = mb.images.open(folder .. "/source.ome.tif")
        local made <close> = mb.images.create(path, {shape = {3, 2, 3}, dtype = "u16",
            channels = 2, frames = 2, meta = volume.meta})
        page_forms.each_plane("CTZ", {C = 2, Z = 1, T = 2}, function(c, _, t)
            local one <close> = mb.images.open(folder .. "/source.ome.tif", {channel = c + 1,
                frame = t + 1})
            local all <close> = mb.volumes.load(one, "host")
            mb.volumes.store(made:volume(c + 1, t + 1), all)
        end)
        made:finish()
    end, {1e-7, 1.2e-7, 3e-7}, 2.5, NAMED},
    {"array.npy", function(path)
        local all <close> = mb.ones({3, 2, 3}, {dtype = "u16"})
        mb.npy.write(path, all)
    end, {}, nil, nil, channels = 1, frames = 1},
}

-- The image of an input as f32, written under a name; `one`: its last channel and time alone.
local function convert(input, name, one)
    local from, image = folder .. "/" .. input[1], input.image
    local source <close> = mb.images.open(from, {image = image})
    local meta = source.meta
    local channels, frames = input.channels or 2, input.frames or 2
    local several = channels * frames > 1
    local made <close> = mb.images.create(folder .. "/" .. name, {shape = {3, 2, 3}, dtype = "f32",
        channels = not one and channels or nil, frames = not one and frames or nil,
        meta = one and several and mb.images.open(from, {channel = channels, frame = frames,
            image = image}).meta or meta, overwrite = true})
    for t = 1, frames do
        for c = 1, channels do
            local last = c == channels and t == frames
            if not one or last then
                local volume <close> = mb.images.open(from, {channel = several and c or nil,
                    frame = several and t or nil, image = image})
                local all <close> = mb.volumes.load(volume, "host")
                mb.volumes.store(made:volume(not one and c or 1, not one and t or 1), all)
            end
        end
    end
    made:finish()
    return one and 1 or channels, one and 1 or frames, channels, frames
end

-- The directories of a classic TIFF file: {[tag] = list of the texts or places of its entries}.
local function directories_of(path)
    local bytes, list = files.read(path), {}
    assert.equal("II*\0", bytes:sub(1, 4))
    local at = string.unpack("<I4", bytes, 5)
    while at ~= 0 do
        local count, tags = string.unpack("<I2", bytes, at + 1), {}
        for i = 0, count - 1 do
            local tag, kind, n, place = string.unpack("<I2I2I4I4", bytes, at + 3 + 12 * i)
            tags[tag] = tags[tag] or {}
            table.insert(tags[tag], kind == 2 and bytes:sub(place + 1, place + n - 1) or place)
        end
        list[#list + 1], at = tags, string.unpack("<I4", bytes, at + 3 + 12 * count)
    end
    return list
end

-- Tags that a result may have: those of TIFF 6.0, and ImageJ's.
local OWN_TAGS <const> = {[256] = true, [257] = true, [258] = true, [259] = true, [262] = true,
    [270] = true, [273] = true, [277] = true, [278] = true, [279] = true, [282] = true,
    [283] = true, [296] = true, [339] = true, [50838] = true, [50839] = true}

-- The only description of a file, which all its pages have.
local function description_of(path, pages)
    local directories, text = directories_of(path), nil
    assert.equal(pages, #directories)
    for _, tags in ipairs(directories) do
        assert.equal(1, #tags[270])
        text = text or tags[270][1]
        assert.equal(text, tags[270][1])
        for tag in pairs(tags) do
            assert.is_true(OWN_TAGS[tag], tag)
        end
    end
    return text
end

local function check_imagej(text, channels, frames)
    assert.equal(1, select(2, text:gsub("ImageJ=", "")))
    assert.is_nil(text:find "[<{]")
    local said = {}
    for key, each in text:gmatch "([%w_]+)=([^\n]*)" do
        assert.is_nil(said[key], key)
        said[key] = each
    end
    assert.equal(tostring(3 * channels * frames), said.images)
    assert.equal("3", said.slices)
    assert.equal(channels, tonumber(said.channels or 1))
    assert.equal(frames, tonumber(said.frames or 1))
    assert.is_nil(said.order)
    assert.equal("false", said.loop)
    assert.is_true(tonumber(said.max) ~= 9)
end

local function check_ome(text, channels, frames)
    assert.matches("^<%?xml", text)
    assert.is_nil(text:find "ImageJ")
    assert.is_nil(text:find "UUID")
    for _, element in ipairs {"OME", "Image", "Pixels", "TiffData"} do
        assert.equal(1, select(2, text:gsub("<" .. element .. "[%s>]", "")), element)
    end
    local _, count = text:gsub("<Channel[%s]", "")
    assert.equal(channels, count)
    for name, each in pairs {SizeX = 3, SizeY = 2, SizeZ = 3, SizeC = channels, SizeT = frames,
        Type = "float", BigEndian = "false", IFD = 0, PlaneCount = 3 * channels * frames} do
        local _, times = text:gsub('%s' .. name .. '="[^"]*"', "")
        assert.equal(1, times, name)
        assert.equal(tostring(each), text:match('%s' .. name .. '="([^"]*)"'), name)
    end
end

local function check_zarr(path, channels, frames)
    local text = files.read(path .. "/zarr.json")
    assert.is_nil(text:find "ImageJ")
    assert.is_nil(text:find "<OME")
    local axes = text:match '"axes":%s*(%b[])'
    local _, count = axes:gsub('"name"', "")
    assert.equal(3 + (channels > 1 and 1 or 0) + (frames > 1 and 1 or 0), count)
    local omero = text:match '"omero":%s*(%b{})'
    assert.equal(channels, select(2, omero:gsub('"label"', "")))
end

-- What a result says of its voxels, times and channels: what the input says.
local function check_meta(input, name, channels, frames, one)
    local result <close> = mb.images.open(folder .. "/" .. name)
    local meta = result.meta
    assert.same({channels, 3, frames}, {meta.channels, meta.slices, meta.frames})
    for i, key in ipairs {"pixel", "row", "step"} do
        local expected = input[3][i]
        if expected then
            assert.near(expected, (meta.voxel or {})[key] or 0, 1e-6 * expected, key)
        else
            assert.is_nil(meta.voxel[key], key)
        end
    end
    assert.equal(frames > 1 and input[4] or nil, frames > 1 and meta.interval or nil)
    if input[5] and (name:find "%.zarr$" or name:find "%.ome%.tif$"
        or input[1]:find "%.ome%.tif$") then
        local expected = one and {input[5][2]} or input[5]
        for c, each in ipairs(expected) do
            assert.equal(each[1], meta.named[c].label)
            assert.near(each[2], meta.named[c].Emission, 1e-12)
        end
    end
end

local function check_planes(input, name, channels, frames, first_channel, first_frame)
    for t = 1, frames do
        for c = 1, channels do
            local several = channels * frames > 1
            local volume <close> = mb.images.open(folder .. "/" .. name, {
                channel = several and c or nil, frame = several and t or nil})
            local all <close> = mb.volumes.load(volume, "host")
            for z = 1, 3 do
                assert.equal(input[1] == "array.npy" and 1
                    or value(first_channel + c - 2, z - 1, first_frame + t - 2), all:item(z, 2, 3))
            end
        end
    end
end

describe("the description of a result", function()
    setup(function()
        folder = files.folder()
        for _, input in ipairs(INPUTS) do
            input[2](folder .. "/" .. input[1])
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    for _, input in ipairs(INPUTS) do
        for _, name in ipairs {"o.tif", "o.ome.tif", "o.zarr", "o.h5", "o.npy"} do
            for _, one in ipairs {false, true} do
                if one or name ~= "o.h5" and name ~= "o.npy" then
                    it(("is its own: of %s as %s%s"):format(input[1], name, one
                        and ", of one volume" or ""), function()
                        local channels, frames, last_channel, last_frame = convert(input, name, one)
                        local path, pages = folder .. "/" .. name, 3 * channels * frames
                        if name == "o.h5" or name == "o.npy" then
                            local bytes = files.read(path)
                            assert.is_nil(bytes:find("ImageJ", 1, true))
                            assert.is_nil(bytes:find("<OME", 1, true))
                            local all <close> = mb.images.read(path, "host")
                            assert.same({3, 2, 3}, all.shape)
                            return
                        elseif name == "o.zarr" then
                            check_zarr(path, channels, frames)
                        elseif name == "o.ome.tif" or input[1]:find "%.ome%.tif$" then
                            check_ome(description_of(path, pages), channels, frames)
                        else
                            check_imagej(description_of(path, pages), channels, frames)
                        end
                        check_meta(input, name, channels, frames, one)
                        check_planes(input, name, channels, frames, one and last_channel or 1,
                            one and last_frame or 1)
                    end)
                end
            end
        end
    end

    it("is the same each time", function()
        for _, name in ipairs {"o.tif", "o.ome.tif"} do
            for _, input in ipairs(INPUTS) do
                local text
                for _ = 1, 3 do
                    local channels, frames = convert(input, name, false)
                    local own = description_of(folder .. "/" .. name, 3 * channels * frames)
                    text = text or own
                    assert.equal(text, own)
                end
            end
        end
    end)

    it("has no size that is none", function()
        for _, text in ipairs {"nan", "abc", "-0.1", "0", "inf", "1e999", ""} do
            local said = page_forms.ome("ZTC", COUNTS, CHANNELS .. "<TiffData/>",
                (' PhysicalSizeX="%s" PhysicalSizeXUnit="nm" PhysicalSizeY="0.12" '
                    .. 'PhysicalSizeZ="%s"'):format(text, text))
            tiff("ZTC", {said})(folder .. "/odd.ome.tif")
            local channels, frames = convert({"odd.ome.tif"}, "odd_o.ome.tif", false)
            local own = description_of(folder .. "/odd_o.ome.tif", 3 * channels * frames)
            assert.matches(' PhysicalSizeY="0.12"', own)
            assert.is_nil(own:find("PhysicalSizeX", 1, true), own)
            assert.is_nil(own:find("PhysicalSizeZ", 1, true), own)
        end
    end)

    it("is its own where commands write it", function()
        local psf <close> = mb.ones {1, 1, 1}
        mb.npy.write(folder .. "/psf.npy", psf)
        assert(mb.system.mkdir(folder .. "/into"))
        local list = ""
        for _, input in ipairs {INPUTS[1], INPUTS[2], INPUTS[6], INPUTS[9]} do
            list = ("%s FOLDER/%s"):format(list, input[1])
        end
        local _, must = helper.programs_in(function() return folder end)
        must("scripts/deconvolve.lua" .. list .. " --psf FOLDER/psf.npy --psf-background none "
            .. "--into FOLDER/into --iterations 1 -d host")
        must("scripts/deconvolve.lua FOLDER/imagej.tif FOLDER/psf.npy --psf-background none "
            .. "-o FOLDER/into/j.ome.tif --iterations 1 -d host")
        must("scripts/convolve.lua --image FOLDER/lsm.tif --psf FOLDER/psf.npy --frame 2 "
            .. "-o FOLDER/into/lsm.tif -d host")
        for name, check in pairs {["imagej.tif"] = check_imagej, ["ome.tif"] = check_ome,
            ["shaped.tif"] = check_imagej, ["image.tif"] = check_imagej,
            ["j.ome.tif"] = check_ome} do
            check(description_of(folder .. "/into/" .. name, 12), 2, 2)
        end
        check_imagej(description_of(folder .. "/into/lsm.tif", 3), 1, 1)
        check_meta({nil, nil, {1e-7, 1e-7, 3e-7}}, "into/lsm.tif", 1, 1)
        check_meta(INPUTS[6], "into/shaped.tif", 2, 2)
        check_meta(INPUTS[9], "into/image.tif", 2, 2)
    end)

    it("means the same to tifffile", function()
        oracle.needs "tifffile"
        local names = {}
        for i, input in ipairs(INPUTS) do
            for _, form in ipairs {"t%d.tif", "t%d.ome.tif"} do
                names[#names + 1] = form:format(i)
                convert(input, names[#names], false)
            end
        end
        files.write(folder .. "/t.py", ([[
import tifffile
for name in "%s".split():
    t = tifffile.TiffFile("%s/" + name)
    s = t.series[0]
    sizes = dict(zip(s.axes, s.shape))
    kinds = [k for k in ("ome", "imagej", "shaped", "stk", "lsm", "micromanager")
        if getattr(t, "is_" + k)]
    print(name, len(t.series), kinds, sizes.get("C", 1), sizes.get("Z", 1), sizes.get("T", 1))
]]):format(table.concat(names, " "), folder))
        local text, ok = files.run(("%s %s/t.py"):format(os.getenv "MOONBEAM_ORACLES"
            or "build/oracles/bin/python", folder))
        assert.is_true(ok, text)
        for i, input in ipairs(INPUTS) do
            local counts = ("%d 3 %d"):format(input.channels or 2, input.frames or 2)
            for form, kind in pairs {["t%d.tif"] = input[1]:find "%.ome%.tif$" and "ome"
                or "imagej", ["t%d.ome.tif"] = "ome"} do
                assert.matches(("%s 1 ['%s'] %s\n"):format(form:format(i), kind, counts), text, 1,
                    true)
            end
        end
    end)
end)
