--- TIFF files above 4 GB, beyond the reach of 32-bit offsets: two layouts, and who reads them.
--
-- BigTIFF has 64-bit offsets. ImageJ's own layout has a classic file's one directory, of the first
-- page, with all pages behind it: who does not know it sees one page.

local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local large = {}

--- The option of whatever writes TIFF files.
large.option = {"tiff_layout", "choice", "of a .tif result above 4 GB: bigtiff, which ImageJ opens "
    .. "by Bio-Formats alone; imagej, ImageJ's own, of which libtiff and PIL see one page",
    choices = {"bigtiff", "imagej"}, usual = "bigtiff"}

local REACH <const> = 0xffffffff -- of offsets in classic files
local ROOM <const> = 1 << 20 -- for texts, so that these decide nothing
local DIRECTORY <const> = 2 + 12 * 16 + 4

--- Is a file above 4 GB, whatever its texts? `pages`: their number; `page_bytes`: of one.
function large.is(pages, page_bytes)
    return ROOM + pages * (DIRECTORY + page_bytes) > REACH
end

--- The same for volumes: `shape` of one, and their count.
function large.is_file(shape, item_bytes, count)
    return large.is(#shape == 3 and count * shape[1] or count,
        item_bytes * tables.product({shape[#shape - 1], shape[#shape]}))
end

--- Raises an error where a file has OME-XML, which readers do not look for in ImageJ's layout.
function large.check(op, name, layout, is_ome)
    if layout == "imagej" and is_ome then
        fail("argument", op, "tiff_layout", "'%s': ImageJ's layout above 4 GB is for files with "
            .. "ImageJ's text, and this one has OME-XML: leave the option out", name)
    end
end

--- Raises an error where the layout was named for a file of another format.
function large.check_name(op, name, layout)
    if layout == "imagej" and not name:lower():find "%.tiff?$" then
        fail("argument", op, "tiff_layout", "'%s': the option tiff_layout is for TIFF files: "
            .. "leave it out", name)
    end
end

--- Which readers take a file above 4 GB.
function large.readers(layout, is_ome)
    if layout == "imagej" then
        return "ImageJ's layout above 4 GB: ImageJ and tifffile read all pages, libtiff and PIL "
            .. "the first one"
    end
    return "BigTIFF above 4 GB: tifffile, libtiff, PIL and Bio-Formats read it, ImageJ alone does "
        .. "not" .. (is_ome and "" or "; --tiff-layout imagej is for ImageJ")
end

return large
