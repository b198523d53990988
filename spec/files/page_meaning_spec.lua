-- What the pages of a TIFF file are: all descriptions, sets of files, refusals and the ways out.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local page_forms = require "spec.support.page_forms"
local tiff_encoder = require "spec.support.tiff_encoder"

local value, page, each_plane, pages_in = page_forms.value, page_forms.page, page_forms.each_plane,
    page_forms.pages_in
local HEAD, image, ome, imagej = page_forms.HEAD, page_forms.image, page_forms.ome, page_forms.imagej

local folder

local function path(name)
    return folder .. "/" .. name
end

local function write(name, pages, ...)
    files.write(path(name), tiff_encoder.encode(pages, {dtype = "u16", texts = {...}}))
end

local function planes_of(name, options)
    local volume <close> = mb.images.open(path(name), options)
    local all <close> = mb.volumes.load(volume, "host")
    local list = {}
    for z = 1, #all.shape == 3 and all.shape[1] or 1 do
        list[z] = #all.shape == 3 and all:item(z, 1, 1) or all:item(1, 1)
    end
    return list, volume.meta
end

-- Every channel and time has its slices in their order.
local function check(name, counts, said)
    local volume <close> = mb.images.open(path(name))
    local meta = volume.meta
    assert.same({counts.C, counts.Z, counts.T}, {meta.channels, meta.slices, meta.frames},
        said)
    for t = 0, counts.T - 1 do
        for c = 0, counts.C - 1 do
            local want = {}
            for z = 0, counts.Z - 1 do
                want[z + 1] = value(c, z, t)
            end
            assert.same(want, (planes_of(name, {channel = c + 1, frame = t + 1})), said)
        end
    end
    return meta
end

local function refused(pattern, name, options, arg)
    local message, err = helper.failure(mb.images.open, path(name), options)
    assert.matches(pattern, message)
    assert.equal(arg or "axes", err.arg)
    return message
end

local COUNTS <const> = {C = 2, Z = 4, T = 2}

describe("the pages of a TIFF file", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("are what their descriptions say, whatever the form and the order", function()
        local random = page_forms.random(5)
        for i = 1, 4 * #page_forms.NAMES do
            local made = page_forms.made(random, page_forms.NAMES[(i - 1) % #page_forms.NAMES + 1])
            for name, text in pairs(made.files) do
                files.write(path(name), text)
            end
            assert.same({}, check(made.name, made.counts, made.said).warnings, made.said)
            for name in pairs(made.files) do
                os.remove(path(name))
            end
        end
    end)

    it("are those of OME-XML that no pattern would find", function()
        local pages = pages_in("ZCT", COUNTS)
        local own = image("ZCT", COUNTS, "<TiffData/>", ' PhysicalSizeX="130" '
            .. 'PhysicalSizeXUnit="nm" PhysicalSizeZ="0.3" PhysicalSizeZUnit="&#181;m"')
        local comment = '<!-- <Pixels SizeC="9" SizeZ="1" SizeT="1"> is an example -->'
        for _, text in ipairs {
            HEAD:format "" .. comment .. own .. "</OME>",
            HEAD:format ' Creator="a > b"' .. own .. "</OME>",
            (HEAD:format "" .. own .. "</OME>"):gsub("<(/?)(%u)", "<%1o:%2"):gsub("xmlns=",
                "xmlns:o="),
            HEAD:format "" .. "<Note><![CDATA[<Pixels SizeC='7'/>]]></Note>" .. own .. "</OME>"} do
            write("x.ome.tif", pages, text)
            local meta = check("x.ome.tif", COUNTS, text)
            assert.near(130e-9, meta.voxel.pixel, 1e-15)
            assert.near(300e-9, meta.voxel.step, 1e-15)
            assert.same({}, meta.warnings)
        end
        write("x.ome.tif", pages, '<!DOCTYPE OME [<!ENTITY a "b">]><OME>&a;</OME>')
        refused("its OME%-XML is damaged: line 1, column %d+: it defines an entity", "x.ome.tif")
        write("x.ome.tif", pages, ome("ZCT", COUNTS, "<TiffData/>"):sub(1, -8))
        refused("its OME%-XML is damaged: line 1", "x.ome.tif")
        write("x.ome.tif", pages, "<OME>" .. ("<a>"):rep(100) .. ("</a>"):rep(100) .. "</OME>")
        refused("nested too deeply", "x.ome.tif")
    end)

    it("have the voxel of all texts, in the unit of the tag where it is one", function()
        local pages = pages_in("ZCT", {C = 1, Z = 4, T = 1})
        local function resolution(unit, per)
            return {[282] = {5, string.pack("<I4I4", per, 1000)},
                [283] = {5, string.pack("<I4I4", per, 1000)}, [296] = unit and {3, {unit}} or nil}
        end
        local function voxel(extra, ...)
            files.write(path "v.tif", tiff_encoder.encode(pages, {dtype = "u16", texts = {...},
                extra = extra}))
            local volume <close> = mb.images.open(path "v.tif")
            return volume.meta.voxel
        end
        local text = "ImageJ=1.52\nslices=4\nunit=um\nspacing=0.3\n"
        local um, cm <const> = 7692, 76923077 -- per unit, in thousands: 130 nm
        assert.near(130e-9, voxel(resolution(3, cm), text).pixel, 1e-12)
        assert.near(130e-9, voxel(resolution(1, um), text).pixel, 1e-11)
        assert.near(130e-9, voxel(resolution(nil, um), text).pixel, 1e-11)
        assert.near(130e-9, voxel(resolution(2, um), text).pixel, 1e-11) -- the default of writers
        assert.near(130e-9, voxel(resolution(3, cm)).pixel, 1e-12) -- no text at all
        assert.near(130e-9, voxel(resolution(2, 195384615)).pixel, 1e-12)
        for _, missing in ipairs {282, 283} do
            for unit, per in pairs {[3] = cm, [2] = 195384615} do
                local one = resolution(unit, per)
                one[missing] = nil
                local size = voxel(one)
                assert.near(130e-9, size.pixel or 0, 1e-12)
                assert.near(130e-9, size.row or 0, 1e-12)
            end
        end
        assert.is_nil(voxel(resolution(2, 300000)).pixel) -- a printer's 300 dots per inch
        local both = voxel(resolution(3, cm), ome("ZCT", {C = 1, Z = 4, T = 1}, "<TiffData/>"),
            text)
        assert.near(130e-9, both.pixel, 1e-12)
        assert.near(300e-9, both.step, 1e-15)
    end)

    it("of an aborted run are those of its complete times, which is said", function()
        local all = pages_in("ZCT", COUNTS)
        local left = {table.unpack(all, 1, 11)}
        for _, text in ipairs {ome("ZCT", COUNTS, "<TiffData/>"),
            imagej(COUNTS, "order=zct\n"), '{"shape": [2, 2, 4, 2, 3], "axes": "TCZYX"}'} do
            write("a.tif", left, text)
            local meta = check("a.tif", {C = 2, Z = 4, T = 1}, text)
            assert.equal(1, #meta.warnings)
            assert.matches("1 of 2 times are complete", meta.warnings[1])
            write("a.tif", {table.unpack(all, 1, 7)}, text)
            refused("2 channels x 4 slices x 2 times", "a.tif")
            write("a.tif", {page(0, 0, 0), table.unpack(all)}, text)
            refused(" 17 pages", "a.tif")
        end
    end)

    it("are those of all files of a set", function()
        local function set(more)
            local blocks = {}
            each_plane("ZCT", COUNTS, function(c, z, t)
                blocks[#blocks + 1] = ('<TiffData FirstC="%d" FirstZ="%d" FirstT="%d" IFD="%d" '
                    .. 'PlaneCount="1"><UUID FileName="%s%d.ome.tif">urn:uuid:%d</UUID></TiffData>')
                    :format(c, z, t, 4 * c + z, more, t, t)
            end)
            return image("ZCT", COUNTS, table.concat(blocks)) .. "</OME>"
        end
        local all = pages_in("ZCT", COUNTS)
        for t = 0, 1 do
            write(("m_%d.ome.tif"):format(t), {table.unpack(all, 8 * t + 1, 8 * t + 8)},
                HEAD:format((' UUID="urn:uuid:%d"'):format(t)) .. set "m_")
        end
        for t = 0, 1 do
            assert.same({}, check(("m_%d.ome.tif"):format(t), COUNTS, "set").warnings)
        end
        -- All at once, from two files, and a block of it.
        local volume <close> = mb.images.open(path "m_1.ome.tif")
        assert.same({16, 2, 3}, volume.shape)
        local block <close> = volume:read({6, 1, 1}, {4, 1, 2}, mb.device "host")
        assert.same({value(1, 2, 0), value(1, 3, 0), value(0, 0, 1), value(0, 1, 1)},
            {block:item(1, 1, 1), block:item(2, 1, 1), block:item(3, 1, 2), block:item(4, 1, 1)})
        os.remove(path "m_0.ome.tif")
        local list, meta = planes_of("m_1.ome.tif", {channel = 2})
        assert.same({value(1, 0, 1), value(1, 1, 1), value(1, 2, 1), value(1, 3, 1)}, list)
        assert.matches("1 of 2 times are complete.*not there: m_0.ome.tif", meta.warnings[1])
        -- A name that leads out of the folder.
        write("out.ome.tif", all, HEAD:format "" .. set "../m_")
        refused("no file of this folder", "out.ome.tif")
    end)

    it("of each file are its own in a series, whatever set the files name", function()
        local counts, blocks = {C = 1, Z = 2, T = 1}, {}
        assert(mb.system.mkdir(path "set"))
        for z = 0, 1 do
            blocks[z + 1] = ('<TiffData FirstZ="%d" IFD="0"><UUID FileName="s%d.tif">urn:uuid:%d'
                .. "</UUID></TiffData>"):format(z, z, z)
        end
        for z = 0, 1 do
            write(("set/s%d.tif"):format(z), {page(0, z, 0)},
                HEAD:format((' UUID="urn:uuid:%d"'):format(z)) .. image("ZCT", counts,
                table.concat(blocks)) .. "</OME>")
        end
        assert.same({value(0, 0, 0), value(0, 1, 0)}, (planes_of "set"))
        assert.same({value(0, 0, 0), value(0, 1, 0)}, (planes_of "set/s1.tif"))
    end)

    it("are in a companion file, which must be there", function()
        local all = pages_in("ZCT", COUNTS)
        local text = HEAD:format "" .. '<BinaryOnly MetadataFile="c.companion.ome" '
            .. 'UUID="urn:uuid:1"/></OME>'
        write("c.ome.tif", all, text)
        refused("the companion file 'c.companion.ome', which is not there", "c.ome.tif")
        local own = '<TiffData IFD="0" PlaneCount="16"><UUID FileName="c.ome.tif">urn:uuid:1'
            .. "</UUID></TiffData>"
        files.write(path "c.companion.ome", ome("ZCT", COUNTS, own))
        check("c.ome.tif", COUNTS, "companion")
    end)

    it("of several images are those of one, which an option names", function()
        local counts = {C = 1, Z = 2, T = 1}
        local small, wide = {{7, 8}, {9, 10}}, page(0, 0, 0)
        local function images(first, second)
            return HEAD:format "" .. image("CZT", counts, first) .. image("CZT", counts, second)
                .. "</OME>"
        end
        local both = images('<TiffData IFD="0" PlaneCount="2"/>',
            '<TiffData IFD="2" PlaneCount="2"/>')
        local pages = {wide, page(0, 1, 0), page(0, 2, 0), page(0, 3, 0)}
        write("i.ome.tif", pages, both)
        refused("has 2 images", "i.ome.tif", nil, "image")
        assert.same({value(0, 0, 0), value(0, 1, 0)}, (planes_of("i.ome.tif", {image = 1})))
        assert.same({value(0, 2, 0), value(0, 3, 0)}, (planes_of("i.ome.tif", {image = 2})))
        refused("there is no image 3", "i.ome.tif", {image = 3}, "image")
        write("i.ome.tif", pages, images("", ""))
        refused("does not say which pages are whose", "i.ome.tif", {image = 1})
        -- Of several sizes, without a text.
        local one = tiff_encoder.encode({wide, wide, small}, {dtype = "u16"})
        files.write(path "s.tif", one)
        local ok = pcall(mb.images.open, path "s.tif")
        assert.is_true(ok) -- the encoder has one size for all
    end)

    it("are MetaMorph's behind one directory", function()
        local text, uic = {}, {}
        for z = 1, 3 do
            text[z] = ("<I2I2I2I2I2I2"):pack(z, z, z, z, z, z)
            uic[z] = ("<I4I4I4I4I4I4"):pack(z, 10, 1, z, 1, z)
        end
        local entries = {{256, 4, 1, 3}, {257, 4, 1, 2}, {258, 3, 1, 16}, {259, 3, 1, 1},
            {262, 3, 1, 1}, {273, 4, 1, 8}, {277, 3, 1, 1}, {278, 4, 1, 2}, {279, 4, 1, 12},
            {33629, 5, 3, 44}}
        local head = ("<I2"):pack(#entries)
        for _, entry in ipairs(entries) do
            head = head .. ("<I2I2I4I4"):pack(table.unpack(entry))
        end
        files.write(path "m.tif", ("<c2I2I4"):pack("II", 42, 8 + 36 + 72) .. table.concat(text)
            .. table.concat(uic) .. head .. ("<I4"):pack(0))
        local list, meta = planes_of "m.tif"
        assert.same({1, 2, 3}, list)
        assert.same({1, 3, 1}, {meta.channels, meta.slices, meta.frames})
        assert.same({}, meta.voxel) -- the distances are 0.1, 0.2 and 0.3 um
    end)

    -- A MetaMorph file of three planes: their distances, each {over, under}, and what pairs say.
    local function metamorph(name, distances, calibrated, unit, order)
        order = order or "<"
        local text, uic, at = {}, {}, 8 + 36
        for z = 1, 3 do
            text[z] = (order .. "I2I2I2I2I2I2"):pack(z, z, z, z, z, z)
            uic[z] = (order .. "I4I4I4I4I4I4"):pack(distances[z][1], distances[z][2], 1, z, 1, z)
        end
        local sizes = (order .. "I4I4I4I4"):pack(13, 100, 3, 25)
        local words = (order .. "I4"):pack(#unit) .. unit
        words = words .. ("\0"):rep(-#words % 4)
        local pairs_at = at + 72 + #sizes + #words
        local list = (order .. ("I4"):rep(10)):pack(3, calibrated, 4, at + 72, 5, at + 80, 6,
            at + 88, 1, 7)
        local entries = {{256, 4, 1, 3}, {257, 4, 1, 2}, {258, 3, 1, 16}, {259, 3, 1, 1},
            {262, 3, 1, 1}, {273, 4, 1, 8}, {277, 3, 1, 1}, {278, 4, 1, 2}, {279, 4, 1, 12},
            {33628, 4, 5, pairs_at}, {33629, 5, 3, at}}
        local head = (order .. "I2"):pack(#entries)
        for _, entry in ipairs(entries) do
            local tag, kind, count, own = table.unpack(entry)
            head = head .. (order .. "I2I2I4"):pack(tag, kind, count)
                .. (kind == 3 and (order .. "I2I2"):pack(own, 0) or (order .. "I4"):pack(own))
        end
        files.write(path(name), (order == "<" and "II" or "MM") .. (order .. "I2I4"):pack(42,
            pairs_at + #list) .. table.concat(text) .. table.concat(uic) .. sizes .. words .. list
            .. head .. (order .. "I4"):pack(0))
        local _, meta = planes_of(name)
        return meta.voxel
    end

    it("of MetaMorph have the sizes of its calibration", function()
        local even, first = {{3, 10}, {3, 10}, {3, 10}}, {{0, 1}, {3, 10}, {3, 10}}
        local uneven = {{3, 10}, {3, 10}, {4, 10}}
        for _, order in ipairs {"<", ">"} do
            for unit, factor in pairs {um = 1e-6, ["\xB5m"] = 1e-6, ["\u{B5}m\0"] = 1e-6,
                nm = 1e-9, microns = 1e-6} do
                local size = metamorph("c.stk.tif", even, 1, unit, order)
                assert.near(0.13 * factor, size.pixel or 0, 1e-6 * factor, unit)
                assert.near(0.12 * factor, size.row or 0, 1e-6 * factor, unit)
                assert.near(3e-7, size.step or 0, 1e-13, unit)
            end
        end
        for unit, calibrated in pairs {pixels = 1, um = 0} do
            local size = metamorph("c.stk.tif", even, calibrated, unit)
            assert.is_nil(size.pixel)
            assert.near(3e-7, size.step or 0, 1e-13)
        end
        assert.is_nil(metamorph("c.stk.tif", uneven, 1, "um").step)
        assert.is_nil(metamorph("c.stk.tif", first, 1, "um").step) -- all at one time would be z
    end)

    it("are what the options say, whatever the file says", function()
        local all = pages_in("CZT", COUNTS)
        write("o.tif", all, '{"shape": [2, 4, 2, 2, 3]}')
        refused("the description says 2 x 4 x 2 x 2 x 3 and not what the axes are", "o.tif")
        local function volume(options, c, t)
            options.channel, options.frame = c, t
            return (planes_of("o.tif", options))
        end
        for _, axes in ipairs {"TZC2", "T2ZC2", "t2z4c"} do
            if axes ~= "TZC2" then
                assert.same({value(1, 0, 1), value(1, 1, 1), value(1, 2, 1), value(1, 3, 1)},
                    volume({axes = axes}, 2, 2), axes)
            end
        end
        refused("give the counts but one, as in TZ2C2", "o.tif", {axes = "TZC2"})
        refused("not a multiple of 3", "o.tif", {axes = "ZC3"})
        refused("letters from slow to fast", "o.tif", {axes = "ZQ"})
        refused("letters from slow to fast", "o.tif", {axes = "ZZ"})
        assert.equal(16, #volume {axes = "Z"})
        assert.same({value(1, 0, 0), value(0, 1, 0), value(1, 1, 0)}, volume {pages = {2, 4}})
        assert.same({value(1, 0, 0), value(1, 1, 0)}, volume({pages = {1, 4}, axes = "ZC2"}, 2))
        refused("the file has pages 1 to 16", "o.tif", {pages = {3, 17}}, "pages")
        -- The counts of a text that does not add up in another way.
        write("o.tif", all, imagej(COUNTS))
        assert.same({value(1, 0, 1), value(1, 1, 1), value(1, 2, 1), value(1, 3, 1)},
            volume({axes = "TZC"}, 2, 2))
        local array <close> = mb.ones {2, 3, 4}
        mb.npy.write(path "n.npy", array)
        refused("the option axes is for TIFF files", "n.npy", {axes = "Z"})
    end)

    it("are described anew in a result, by its own form", function()
        local array <close> = mb.random({4, 2, 3}, {seed = 1})
        local function text_of(name, meta)
            mb.tiff.write(path(name), array, {meta = meta, overwrite = true})
            local volume <close> = mb.tiff.open(path(name))
            assert.same({4, 2, 3}, volume.shape)
            return volume.meta.description, volume.meta
        end
        write("in.tif", pages_in("ZCT", {C = 1, Z = 4, T = 1}),
            "ImageJ=1.5\nimages=4\nslices=4\norder=zct\nunit=um\nspacing=0.3\nmin=1\nmax=2\n")
        local volume <close> = mb.images.open(path "in.tif")
        local text, meta = text_of("described.ome.tif", volume.meta)
        assert.matches("^<%?xml", text)
        assert.near(300e-9, meta.voxel.step, 1e-15)
        text = text_of("x.tif", volume.meta)
        assert.matches("spacing=0.3\n", text)
        assert.is_nil(text:find "order=" or text:find "min=1\n" or text:find "max=2\n")
        assert.matches("\nmin=0%.%d+\nmax=0%.%d+\n$", text) -- of the result's own values
        -- Of OME-XML what it says of other things, and nothing twice.
        local source = HEAD:format ' UUID="urn:uuid:1"' .. '<!-- <Pixels SizeC="1"> -->'
            .. '<Instrument ID="Instrument:0"/><Image ID="Image:0" Name="a &lt; b"><Pixels '
            .. 'ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="9" SizeY="9" SizeC="1" '
            .. 'SizeZ="4" SizeT="1" PhysicalSizeX="0.1"><Channel ID="Channel:0:0" Name="D"/><TiffData IFD="0" '
            .. 'PlaneCount="4"/><Plane TheC="0" TheT="0" TheZ="0"/></Pixels></Image></OME>'
        write("in.ome.tif", pages_in("ZCT", {C = 1, Z = 4, T = 1}), source)
        local from <close> = mb.images.open(path "in.ome.tif")
        text = text_of("y.tif", from.meta)
        local tree = core.xml.read(text)
        assert.equal("OME", tree.name)
        assert.is_nil(tree.attributes.UUID)
        local names, pixels = {}, nil
        for _, each in ipairs(tree) do
            names[#names + 1] = each.name
            pixels = each.name == "Image" and each[1] or pixels
            assert.equal(each.name == "Image" and "a < b" or nil, each.attributes.Name)
        end
        assert.same({"Instrument", "Image"}, names)
        assert.same({"0.1", "\u{b5}m"}, {pixels.attributes.PhysicalSizeX, -- the schema's default
            pixels.attributes.PhysicalSizeXUnit})
        assert.is_nil(pixels.attributes.PhysicalSizeZUnit)
        assert.same({"3", "2", "4", "float", "XYZCT"}, {pixels.attributes.SizeX,
            pixels.attributes.SizeY, pixels.attributes.SizeZ, pixels.attributes.Type,
            pixels.attributes.DimensionOrder})
        names = {}
        for i, each in ipairs(pixels) do
            names[i] = each.name
        end
        assert.same({"Channel", "TiffData", "Plane"}, names)
    end)
end)
