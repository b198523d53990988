-- What acquisition programs say of a TIFF file's pages in tags of their own: read, or refused by the
-- name of the kind. spec/files/page_meaning_spec.lua has random files of each that is read.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local page_forms = require "spec.support.page_forms"
local tiff_encoder = require "spec.support.tiff_encoder"

local value, pages_in = page_forms.value, page_forms.pages_in
local COUNTS <const> = {C = 2, Z = 3, T = 2}

local folder

local function path(name)
    return folder .. "/" .. name
end

local function write(pages, extra, more)
    local options = {dtype = "u16", extra = extra}
    for key, each in pairs(more or {}) do
        options[key] = each
    end
    files.write(path "p.tif", tiff_encoder.encode(pages, options))
end

-- The values of all planes in their order of slices, channels and times; and the metadata.
local function planes(options, name)
    local list, first <close> = {}, mb.images.open(path(name or "p.tif"), options)
    local meta = first.meta
    for t = 1, meta.frames do
        for c = 1, meta.channels do
            local own = {channel = c, frame = t}
            for key, each in pairs(options or {}) do
                own[key] = each
            end
            local volume <close> = mb.images.open(path(name or "p.tif"), own)
            local all <close> = mb.volumes.load(volume, "host")
            for z = 1, meta.slices do
                list[#list + 1] = #all.shape == 3 and all:item(z, 1, 1) or all:item(1, 1)
            end
        end
    end
    return list, meta
end

local function expected(counts)
    local list = {}
    page_forms.each_plane("ZCT", counts, function(c, z, t)
        list[#list + 1] = value(c, z, t)
    end)
    return list
end

local function refused(pattern, options, name, arg)
    local message, err = helper.failure(mb.images.open, path(name or "p.tif"), options)
    assert.matches(pattern, message)
    assert.equal(arg or "axes", err.arg)
    return message
end

local function text_tag(text)
    return {2, text .. "\0"}
end

describe("pages that a program describes in tags", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("are Zeiss LSM's, with its voxel, and complete times where it was aborted", function()
        local counts = {C = 1, Z = 3, T = 3}
        local all = pages_in("ZTC", counts)
        write(all, {[34412] = {1, page_forms.lsm(6, 3, 1, 3)}})
        local list, meta = planes()
        assert.same(expected(counts), list)
        assert.same({100e-9, 100e-9, 300e-9}, {meta.voxel.pixel, meta.voxel.row, meta.voxel.step})
        write({table.unpack(all, 1, 8)}, {[34412] = {1, page_forms.lsm(6, 3, 1, 3)}})
        list, meta = planes()
        assert.same(expected {C = 1, Z = 3, T = 2}, list)
        assert.matches("2 of 3 times are complete", meta.warnings[1])
        write(all, {[34412] = {1, page_forms.lsm(6, 3, 1, 1, 3)}})
        refused "Zeiss LSM says 3 %(positions%) x 1 %(T%) x 3 %(Z%), of which channels"
        write(all, {[34412] = {1, page_forms.lsm(1, 9, 1, 1)}})
        refused "Zeiss LSM says scan type 1, and stacks of planes are read"
        assert.equal(9, #planes {axes = "Z"}) -- the way out
    end)

    it("are FluoView's", function()
        local counts = {C = 1, Z = 3, T = 2}
        write(pages_in("TZC", counts), {[34361] = {1, page_forms.fluoview("<", {{"T", 2},
            {"Z", 3}})}})
        local list, meta = planes()
        assert.same(expected(counts), list)
        assert.near(100e-9, meta.voxel.pixel, 1e-15)
        write(pages_in("TZC", counts), {[34361] = {1, page_forms.fluoview("<", {{"XY", 2},
            {"Z", 3}})}})
        refused "FluoView says 3 %(Z%) x 2 %(XY%), of which channels, slices and times are read"
    end)

    it("are ScanImage's channels, or those of an older version refused", function()
        local text = "SI.hChannels.channelSave = [1 3]\nSI.hStackManager.framesPerSlice = Inf\n"
        local counts = {C = 2, Z = 1, T = 4}
        write(pages_in("CTZ", counts), {[305] = text_tag(text)})
        assert.same(expected(counts), (planes()))
        write(pages_in("CTZ", counts), {[305] = text_tag(text:gsub("Inf", "1")
            .. "SI.hFastZ.enable = true\nSI.hFastZ.numVolumes = 2\n"
            .. "SI.hStackManager.numSlices = 2\n")})
        refused "ScanImage says 2 volumes of 2 slices"
        write(pages_in("CTZ", counts), {[305] = text_tag(text:gsub("%[1 3%]", "[]"))})
        refused "it is of ScanImage, whose text names no channel that was saved"
        for _, old in ipairs {"state.acq.numberOfChannelsSave=2\r", "scanimage.SI4.x = 1"} do
            write(pages_in("CTZ", counts), nil, {text = old})
            refused "it is of ScanImage, whose text does not say"
        end
    end)

    it("are Olympus SIS's bands, and PerkinElmer's channels", function()
        local counts = {C = 2, Z = 3, T = 1}
        write(pages_in("ZCT", counts), {[33471] = text_tag "[Dimension]\nBand=2\nZ=3\n[Z]\nZPos1=0"})
        assert.same(expected(counts), (planes()))
        write(pages_in("ZCT", counts), {[33471] = text_tag "[Dimension]\nFoo=2\nZ=3\n[Z]\n"})
        refused "Olympus SIS says 2 %(Foo%) x 3 %(Z%)"
        counts = {C = 5, Z = 1, T = 1}
        write(pages_in("CZT", counts), {[305] = text_tag "PerkinElmer-QPI"})
        assert.same(expected(counts), (planes()))
    end)

    it("are on Micro-Manager's map, whatever their order", function()
        local places, all = {}, {}
        page_forms.each_plane("ZCT", COUNTS, function(c, z, t)
            table.insert(places, {c, z, t})
            table.insert(all, page_forms.page(c, z, t))
        end)
        local function mapped(first, last)
            files.write(path "p.tif", page_forms.mapped({table.unpack(all, first, last)},
                {table.unpack(places, first, last)}, page_forms.summary(COUNTS)))
        end
        mapped(1, 9)
        local list, meta = planes()
        assert.same(expected {C = 2, Z = 3, T = 1}, list)
        assert.matches("1 of 2 times are complete.*9 of 12 planes are there", meta.warnings[1])
        mapped(1, 5)
        refused "says 2 channels x 3 slices x 2 times, but 5 of these 12 planes are there"
        for i, place in ipairs(places) do -- times as positions
            places[i] = {place[1], place[2], 0, place[3]}
        end
        files.write(path "p.tif", page_forms.mapped(all, places, page_forms.summary {C = 2, Z = 3,
            T = 1}))
        refused("has 2 positions: say which with the option image %(1 to 2%)", nil, nil, "image")
        refused("there is no image 3: the file has 2", {image = 3}, nil, "image")
        list = planes {image = 2}
        assert.same({table.unpack(expected(COUNTS), 7, 12)}, list)
        -- A run that was aborted before the map was written.
        write(all, {[51123] = text_tag '{"a": 1}'})
        refused "it is of the kind Micro%-Manager without a map of its pages, whose 12 pages"
        assert.same(expected(COUNTS), (planes {axes = "T2C2Z"}))
    end)

    it("are in NDTiff.index, which must be there and whole", function()
        local images = {}
        page_forms.each_plane("CZT", COUNTS, function(c, z, t)
            table.insert(images, {('{"z": %d, "channel": "c%d", "time": %d}'):format(z, c, t),
                page_forms.page(c, z, t), #images})
        end)
        local function set(list)
            for name, text in pairs(page_forms.ndtiff {["p.tif"] = list}) do
                files.write(path(name), text)
            end
        end
        set(images)
        assert.same(expected(COUNTS), (planes()))
        local index = files.read(path "NDTiff.index")
        files.write(path "NDTiff.index", index:sub(1, -2)) -- as a run that ends leaves it
        assert.matches("1 of 2 times", select(2, planes()).warnings[1])
        files.write(path "NDTiff.index", index:sub(1, 20))
        refused "NDTiff.index, which says what the pages are, is damaged"
        os.remove(path "NDTiff.index")
        refused "it is of an NDTiff data set, and NDTiff.index, .* is not there"
        for _, each in ipairs(images) do
            each[1] = each[1]:gsub('"time"', '"row"')
        end
        set(images)
        refused 'NDTiff.index has 2 values of the axis "row"'
        for _, each in ipairs(images) do
            each[1] = each[1]:gsub('"row"', '"position"')
        end
        set(images)
        refused("has 2 positions", nil, nil, "image")
        assert.same({table.unpack(expected(COUNTS), 7, 12)}, (planes {image = 2}))
        os.remove(path "NDTiff.index")
    end)

    it("of other kinds are refused by their names, unless axes or pages are given", function()
        local pages = pages_in("ZCT", {C = 1, Z = 3, T = 1})
        for kind, how in pairs {
            ["Leica SCN"] = {text = '<?xml version="1.0"?>\n<scn xmlns="x"></scn>'},
            ["Aperio SVS"] = {text = "Aperio Fluorescence\r\n8x6"},
            ["Ventana BIF"] = {{[305] = text_tag "ScanOutputManager 1", [700] = {1, "<iScan "}}},
            ["Argos AVS"] = {{[65000] = text_tag "<Argos/>"}},
            ["Hamamatsu NDPI"] = {{[65420] = {4, {1}}, [271] = text_tag "Hamamatsu"}},
            ["Philips DP"] = {{[305] = text_tag "Philips DP v1"}},
            ["Indica Labs"] = {{[305] = text_tag "IndicaLabsImageWriter v1"}},
            ["Agilent"] = {{[285] = text_tag "DAPI", [37701] = {7, "abcdef"}}},
            ["MetaMorph without a count of planes"] = {{[33628] = {4, {8}}}},
        } do
            write(pages, how[1], {text = how.text})
            refused("it is of the kind " .. kind .. ", whose 3 pages are no stack that is known")
            assert.same({1, 11, 21}, (planes {axes = "Z"}))
            assert.same({1, 11}, (planes {pages = {1, 2}}))
            write({pages[1]}, how[1], {text = how.text})
            assert.same({1}, (planes()), kind) -- one page is one page
        end
        for form, word in pairs {[2] = "squared and scaled", [128] = "scaled"} do
            write({pages[1]}, {[33445] = {4, {form}}})
            local message = helper.failure(mb.images.open, path "p.tif")
            assert.matches(("it is of the kind MD Gel (%d), whose values have to be %s"):format(
                form, word), message, 1, true)
        end
    end)

    it("of OME-XML whose slices are of several angles, too, are refused", function()
        local counts = {C = 1, Z = 6, T = 1}
        local text = page_forms.ome("ZCT", counts, "<TiffData/>"):gsub("</Image></OME>",
            '<AnnotationRef ID="Annotation:3"/></Image><StructuredAnnotations><XMLAnnotation '
            .. 'ID="Annotation:3"><Value><Modulo><ModuloAlongZ Type="angle" Start="0" End="1"/>'
            .. "</Modulo></Value></XMLAnnotation></StructuredAnnotations></OME>")
        write(pages_in("ZCT", counts), nil, {text = text})
        refused 'its slices are of several values of "angle", too %(ModuloAlongZ%)'
        assert.equal(3, #planes {pages = {1, 3}})
        write(pages_in("ZCT", counts), nil, {text = text:gsub("AlongZ", "AlongT")})
        assert.same(expected(counts), (planes()))
    end)

    it("whose pixels are not read are refused for that, whatever their text", function()
        for _, text in ipairs {page_forms.ome("ZCT", {C = 3, Z = 1, T = 1}, "<TiffData/>"),
            '{"shape": [2, 3, 3], "axes": "YXS"}', page_forms.imagej {C = 3, Z = 1, T = 1}} do
            write({page_forms.page(0, 0, 0)}, {[277] = {3, {3}}}, {text = text})
            local message = helper.failure(mb.images.open, path "p.tif")
            assert.matches("a pixel has 3 samples; only gray images are read", message)
        end
        write({page_forms.page(0, 0, 0)}, {[259] = {3, {34934}}})
        assert.matches("the compression JPEG XR %(method 34934%)",
            (helper.failure(mb.images.open, path "p.tif")))
    end)

    it("are not taken from what describes them, where a run ended after the first", function()
        for _, text in ipairs {page_forms.imagej {C = 3, Z = 1, T = 1},
            '{"shape": [3, 2, 3], "axes": "CYX", "truncated": true}'} do
            write({page_forms.page(0, 0, 0)}, nil, {text = text .. ("\n"):rep(99)})
            refused "says 3 channels x 1 slice x 1 time, and the file has 1 page"
        end
        local uic = ("<I4I4I4I4I4I4"):rep(3):pack(1, 1, 1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 3, 1, 1, 3, 1, 1)
        write({page_forms.page(0, 0, 0)}, {[33629] = {5, uic, 3}})
        refused "says 1 channel x 3 slices x 1 time, and the file has 1 page"
    end)

    it("behind one directory of which some are missing can be read as far as they go", function()
        local text = page_forms.imagej {C = 1, Z = 6, T = 1}
        write({{{1, 1, 1}, {1, 1, 1}, {2, 2, 2}, {2, 2, 2}, {3, 3, 3}, {3, 3, 3}}}, {[257] = {4, {2}},
            [278] = {4, {2}}, [279] = {4, {12}}}, {text = text})
        -- The pixels behind everything, as ImageJ has them.
        local bytes = files.read(path "p.tif")
        local pixels = ("<I2I2I2I2I2I2"):rep(3):pack(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3,
            3)
        local at = bytes:find("\17\1\4\0\1\0\0\0", 1, true) -- the entry of tag 273
        bytes = bytes:sub(1, at + 7) .. ("<I4"):pack(#bytes) .. bytes:sub(at + 12) .. pixels
        files.write(path "p.tif", bytes)
        refused("truncated: ImageJ says that it has 6 images, of which 3 are in its", nil, nil,
            "pages")
        assert.same({1, 2, 3}, (planes {pages = {1, 3}}))
        assert.same({2, 3}, (planes {pages = {2, 3}}))
        refused("pages is 1:4, and the file has pages 1 to 3", {pages = {1, 4}}, nil, "pages")
    end)

    it("that are more than any file has are refused at once", function()
        for _, counts in ipairs {{C = 1, Z = 1 << 31, T = 1 << 31}, {C = 1 << 20, Z = 1 << 22,
            T = 1 << 22}, {C = 1, Z = 1, T = 2000000000}} do
            for _, text in ipairs {page_forms.ome("ZCT", counts, "<TiffData/>"),
                page_forms.ome("ZCT", counts, ""), page_forms.ome("ZCT", counts,
                '<TiffData FirstT="1" IFD="0"/>'), page_forms.imagej(counts)} do
                write(pages_in("ZCT", {C = 1, Z = 2, T = 1}), nil, {text = text})
                local before = os.clock()
                refused "times"
                assert.is_true(os.clock() - before < 0.5)
            end
        end
    end)
end)
