-- What messages of the commands for images advise works.

local advised = require "spec.support.advised"
local files = require "spec.support.files"
local mb = require "moonbeam"
local page_forms = require "spec.support.page_forms"
local tiff_encoder = require "spec.support.tiff_encoder"

-- A file of an image with what its description says.
local function write(folder, name, shape, meta, fn)
    local array <close> = mb.random(shape, {seed = 1, device = "host"})
    local scaled <close> = array * 100
    local own <close> = fn and fn(scaled) or scaled:cast "f32"
    mb.images.write(folder .. "/" .. name, own, meta)
end

describe("an advice for images", function()
    advised.specs(require "spec.scripts.advice.image_rows", function(folder)
        for _, name in ipairs {"out", "ser"} do
            assert(mb.system.mkdir(folder .. "/" .. name))
        end
        for _, name in ipairs {"i.tif", "k.tif"} do
            write(folder, name, {8, 16, 16})
        end
        write(folder, "few.tif", {8, 16, 16}, nil, function(scaled) return scaled * 0.005 end)
        for i = 1, 8 do
            write(folder, ("ser/p%d.tif"):format(i), {16, 16})
        end
        write(folder, "p.tif", {3, 5, 5})
        files.run(("cd '%s' && '%s' psf -o q.tif --na 0.5 --index 1 --wavelength 500 --pixel 200 "
            .. "--step 500 --size 3,7,7 -d host -q"):format(folder, os.getenv "MOONBEAM_BIN"
            or mb.system.program()))
        do
            local model <close> = mb.images.read(folder .. "/q.tif", "host")
            local raised <close> = model + 0.001
            mb.images.write(folder .. "/flat.tif", raised)
            local small <close> = model:view({}, {3, 5}, {3, 5})
            mb.images.write(folder .. "/one.tif", small)
            local focus <close> = model:view(2, mb.all, mb.all)
            mb.images.write(folder .. "/flat1.tif", focus)
        end
        local counts = {C = 2, Z = 3, T = 2}
        local function pages(name, order, own, ...)
            files.write(folder .. "/" .. name, tiff_encoder.encode(page_forms.pages_in(order, own),
                {dtype = "u16", texts = {...}}))
        end
        pages("two.tif", "CZT", counts, page_forms.imagej(counts))
        pages("times.tif", "CZT", {C = 1, Z = 1, T = 6}, page_forms.imagej {C = 1, Z = 1, T = 6})
        pages("lost.tif", "CZT", {C = 1, Z = 6, T = 1}, page_forms.imagej {C = 1, Z = 8, T = 1})
        local half = {C = 1, Z = 3, T = 1}
        pages("images.ome.tif", "CZT", {C = 1, Z = 6, T = 1}, page_forms.HEAD:format ""
            .. page_forms.image("CZT", half, '<TiffData IFD="0" PlaneCount="3"/>')
            .. page_forms.image("CZT", half, '<TiffData IFD="3" PlaneCount="3"/>') .. "</OME>")
        write(folder, "line.npy", {64})
        write(folder, "line_psf.npy", {5})
    end)
end)
