--- Lists of detector pixels, {row, column, row, column ...} from 1: from a text, an image, a
-- dataset of the scan's file or of another one.

local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"

local pixel_list = {}

local IMAGES = {npy = true, tif = true, tiff = true}

-- The pixels of a mask, an array (row, column), that are not 0.
local function of_mask(mask, scan, where)
    local rows, columns = mask.shape[1], mask.shape[2]
    if rows ~= scan.rows or columns ~= scan.cols then
        fail("shape", nil, "pixels", "pixels is '%s', a mask of %d x %d pixels; the scan's frames "
            .. "have %d x %d", where, rows, columns, scan.rows, scan.cols)
    end
    local list = {}
    for y, row in ipairs(mask:to_table()) do
        for x, value in ipairs(row) do
            if value ~= 0 then
                list[#list + 1], list[#list + 2] = y, x
            end
        end
    end
    return list
end

-- An array of one axis is a list; of two axes, a mask, or pairs where it has two columns and the
-- scan has more.
local function of_array(array, scan, where)
    local shape = array.shape
    if #shape == 1 then
        return array:to_table()
    elseif #shape == 2 and shape[2] == 2 and scan.cols ~= 2 then
        local list = {}
        for _, pair in ipairs(array:to_table()) do
            list[#list + 1], list[#list + 2] = pair[1], pair[2]
        end
        return list
    elseif #shape == 2 then
        return of_mask(array, scan, where)
    end
    fail("shape", nil, "pixels", "pixels is '%s', which has %s; give a mask (row, column), a "
        .. "list, or pairs", where, counted(#shape, "axis", "axes"))
end

local function of_text(where)
    return lists.written(where, {option = "pixels", what = "pixels", flat = true})
        or fail("io", nil, "pixels", "pixels is '%s', which is no text of numbers; give one, an "
        .. "image, a dataset \"/path\", or FILE:/path", where)
end

--- The pixels that `where` names: a typed list, a text file (numbers between spaces, commas or
-- line ends; # starts a comment), an image (.npy, .tif; a mask of the frames' size, not 0 where a
-- pixel is meant), a dataset of the scan's file ("/path") or of another one ("other.h5:/path"):
-- such a mask, a list, or pairs.
function pixel_list.read(scan, where)
    local name, path = where:match "^(.+):(/.*)$"
    if not name and where:find "^/" and not mb.system.stat(where) then
        name, path = scan.path, where
    end
    if path then
        local opened, problem = mb.h5.open(name)
        local file <close> = opened or error(problem, 0)
        if not file:exists(path) then
            fail("argument", nil, "pixels", "pixels is '%s', but %s has no dataset %s", where, name,
                path)
        end
        local array <close> = file:read(path, {device = "host"})
        return of_array(array, scan, where)
    elseif IMAGES[(where:match "%.(%w+)$" or ""):lower()] then
        local array <close> = mb.images.read(where, "host")
        local plane <close> = array.rank == 3 and array.shape[1] == 1 and array:view(1) or nil
        return of_array(plane or array, scan, where)
    end
    return of_text(where)
end

return pixel_list
