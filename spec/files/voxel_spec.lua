-- The size of a voxel in the metadata of TIFF stacks.

local compose = require "moonbeam.tiff.meaning.compose"
local meaning = require "moonbeam.tiff.meaning"
local voxel = require "moonbeam.tiff.voxel"

-- Metadata of a new file with the text that these compose.
local function again(meta)
    local made = meaning.said(compose.text(meta, {channels = 1, slices = 3, frames = 1},
        "u16"))
    made.resolution = meta.resolution
    return made
end

local function near(expected, got)
    for name, size in pairs(expected) do
        assert.near(size, got[name], 1e-9 * size)
    end
    for name in pairs(got) do
        assert.is_number(expected[name], name)
    end
end

describe("the size of a voxel", function()
    it("is that of ImageJ's lines and resolution, in its unit", function()
        for _, unit in ipairs {"micron", "um", "\u{b5}m", "\u{3bc}m", "\\u00B5m", "Microns"} do
            local meta = meaning.said("ImageJ=1.54f\nimages=3\nslices=3\nunit=" .. unit
                .. "\nspacing=0.3\n")
            near({step = 3e-7}, voxel.of(meta))
            meta.resolution = {x = {100, 13}, y = {100, 26}, unit = 1}
            near({step = 3e-7, pixel = 1.3e-7, row = 2.6e-7}, voxel.of(meta))
        end
        for unit, size in pairs {nm = 1e-9, mm = 1e-3, cm = 1e-2, inch = 0.0254} do
            local meta = meaning.said("ImageJ=1.54f\nunit=" .. unit .. "\nspacing=-2\n")
            near({step = 2 * size}, voxel.of(meta))
        end
    end)

    it("is nothing where the file does not say it, or says nonsense", function()
        for _, text in ipairs {"", "ImageJ=1\n", "ImageJ=1\nspacing=3\n",
            "ImageJ=1\nunit=pixel\nspacing=3\n", "ImageJ=1\nunit=um\nspacing=0\n",
            "ImageJ=1\nunit=um\nspacing=nan\n", "ImageJ=1\nunit=um\nspacing=1e999\n",
            '<OME><Image><Pixels SizeZ="3" PhysicalSizeX="x" PhysicalSizeY="-1" '
            .. 'PhysicalSizeZ="2" PhysicalSizeZUnit="pixel"></Pixels></Image></OME>'} do
            local meta = meaning.said(text)
            meta.resolution = {x = {0, 0}, y = {0, 5}, unit = 2}
            assert.same({}, voxel.of(meta))
        end
    end)

    it("is that of OME-XML, with its units", function()
        local meta = meaning.said('<OME><Image><Pixels SizeC="1" SizeZ="3" SizeT="1" '
            .. 'PhysicalSizeX="130" PhysicalSizeXUnit="nm" PhysicalSizeY="0.14" '
            .. "PhysicalSizeZ='3e-4' PhysicalSizeZUnit='mm'></Pixels></Image></OME>")
        near({pixel = 1.3e-7, row = 1.4e-7, step = 3e-7}, voxel.of(meta))
        local own = again(voxel.said(meta, {pixel = 1e-7}))
        near({pixel = 1e-7, row = 1e-7, step = 3e-7}, voxel.of(own))
        near({pixel = 1e-7, row = 1e-7, step = 2e-7}, voxel.of(again(voxel.said(meta,
            {pixel = 1e-7, step = 2e-7}))))
    end)

    it("is said in place of what a file says, or where it says nothing", function()
        local text = "ImageJ=1.54f\nimages=3\nslices=3\nunit=nm\nspacing=250\nfinterval=1.5\n"
        local meta = meaning.said(text)
        meta.resolution = {x = {1, 130}, y = {1, 130}, unit = 1}
        near({pixel = 1.3e-7, row = 1.3e-7, step = 2.5e-7}, voxel.of(meta))
        local own = again(voxel.said(meta, {step = 3e-7}))
        near({pixel = 1.3e-7, row = 1.3e-7, step = 3e-7}, voxel.of(own))
        assert.matches("finterval=1.5", own.text)
        assert.equal(text, meta.text)
        near({pixel = 1e-7, row = 1e-7, step = 2.5e-7}, voxel.of(again(voxel.said(meta,
            {pixel = 1e-7}))))
        near({pixel = 1e-7, row = 1e-7}, voxel.of(again(voxel.said({}, {pixel = 1e-7}))))
        near({step = 1e-6}, voxel.of(again(voxel.said({}, {step = 1e-6}))))
    end)
end)
