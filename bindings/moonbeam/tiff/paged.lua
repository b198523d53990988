-- Volumes whose planes are pages that have to be decoded or widened, or lie anywhere.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local volumes = require "moonbeam.volumes"

local paged = volumes.file_class {}

-- The file that has a page: this one, or another of its set, of which one is open at a time.
local function file_of(self, page)
    if not page.path then
        return self.file
    elseif self.other_path ~= page.path then
        local opened = core.rawfile.open(page.path, "tiff.open")
        if self.other then
            self.other:close()
        end
        self.other, self.other_path = opened, page.path
    end
    return self.other
end

-- Where a page lies in the volume, whose slice `z` from 0 it is, for errors of its samples; nil
-- where there are none, or the page is the whole.
local function place_of(page, z)
    return z and (page.samples == "i64" or page.samples == "u64")
        and {origin = {z, 0, 0}, extents = {1, page.rows, page.columns}} or nil
end

-- `scratch`: bytes for decoding; nil: they are allocated.
function paged:fill(block, first, scratch)
    local flat, pages = #self.shape == 2, self.pages
    local own <close> = not scratch and self.decoding > 0 and mb.empty({self.decoding},
        {dtype = "u8", device = block.device}) or nil
    scratch = scratch or own
    for i = 1, flat and 1 or block.shape[1] do
        local own_page <close> = flat and block:view() or block:view(i)
        local page = pages[flat and 1 or first[1] + i]
        page.place = place_of(page, not flat and first[1] + i - 1 or nil)
        file_of(self, page):read_tiff(own_page, page, first[#first - 1], first[#first], scratch)
    end
end

function paged:close()
    self.file:close()
    if self.other then
        self.other:close()
    end
end

--- A volume {file, shape, dtype, pages (as read_tiff takes them), decoding (bytes of scratch),
-- compressed}.
function paged.volume(made)
    return setmetatable(made, paged)
end

return paged
