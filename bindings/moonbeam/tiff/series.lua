--- A series of TIFF files, one page each, as one volume (moonbeam.volumes): a folder, or a pattern
-- such as "frames/proj_*.tif". Files follow one another by the numbers in their names: a_9 is
-- before a_10.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local tiff = require "moonbeam.tiff"
local volumes = require "moonbeam.volumes"

local series = {}

-- A name so that texts compare as names with numbers do.
local function sortable(name)
    return (name:gsub("%d+", function(digits)
        digits = digits:gsub("^0+(%d)", "%1")
        return ("%04d%s"):format(#digits, digits)
    end))
end

-- The pattern of Lua that a name with * and ? means.
local function matcher(text)
    return "^" .. text:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".")
        .. "$"
end

--- The files of a series, in order: of a folder those that end in .tif or .tiff.
function series.names(name)
    local folder, pattern = name, nil
    if name:find "[*?]" then
        folder, pattern = name:match "^(.-)/?([^/]*)$"
        folder = folder ~= "" and folder or name:sub(1, 1) == "/" and "/" or "."
    end
    if folder:find "[*?]" then
        fail("argument", "images.open", "name", "%s: only the last part of a name may have * or ?",
            name)
    end
    local facts = core.system.stat(folder)
    if not facts or facts.kind ~= "folder" then
        fail("io", "images.open", "name", "%s: there is no folder '%s'", name, folder)
    end
    local list = core.system.folder(folder)
    local names, keys, others, match = {}, {}, {}, pattern and matcher(pattern)
    for _, each in ipairs(list) do
        if match and each:find(match) or not match and file_name.has(each, file_name.TIFF) then
            names[#names + 1], keys[each] = each, sortable(each)
        elseif file_name.has(each, file_name.TIFF_INPUTS) then
            others[#others + 1] = each
        end
    end
    if #names == 0 and not pattern and others[1] then
        table.sort(others)
        fail("io", "images.open", "name", "%s: the folder has no files that end in .tif or .tiff, "
            .. "and %s of other names, such as %s: give a pattern, such as %s/*%s, or one of these "
            .. "files", name, counted(#others, "TIFF file"), others[1], folder,
            others[1]:match "%.%w+$")
    elseif #names == 0 then
        fail("io", "images.open", "name", pattern and "%s: no file has such a name"
            or "%s: the folder has no TIFF files (.tif, .tiff)", name)
    end
    table.sort(names, function(a, b)
        return keys[a] < keys[b] or keys[a] == keys[b] and a < b
    end)
    for i, each in ipairs(names) do
        names[i] = folder .. "/" .. each
    end
    return names
end

local volume = volumes.file_class {}

-- The page of a file, checked against the others.
local function open_page(self, number)
    local name = self.names[number]
    -- Its own pages, whatever other files its text may name.
    local page = tiff.open(name, {threads = self.threads, axes = "Z"})
    local expected = self.page
    if #page.shape ~= 2 or expected and (page.dtype ~= expected.dtype
        or page.shape[1] ~= expected.shape[1] or page.shape[2] ~= expected.shape[2]) then
        local shape, dtype = table.concat(page.shape, " x "), page.dtype
        page:close()
        if #page.shape ~= 2 then
            fail("shape", "images.open", "name", "%s has %d pages; a file of a series has one: "
                .. "open it by itself", name, page.shape[1])
        end
        fail("shape", "images.open", "name", "%s is %s %s, but the first file of the series, %s, "
            .. "is %s %s", name, shape, dtype, self.names[1],
            table.concat(expected.shape, " x "), expected.dtype)
    end
    return page
end

function volume:fill(block, first)
    local scratch <close> = self.decoding > 0 and mb.empty({self.decoding}, {dtype = "u8",
        device = block.device}) or nil
    for i = 1, block.device.dry and 0 or block.shape[1] do
        local page <close> = open_page(self, first[1] + i)
        local own <close> = block:view(i)
        page:fill(own, {first[2], first[3]}, scratch)
    end
end

function volume.close() end

--- The series as a volume (page, row, column), with the `names` of its files and the first one's
-- `meta`. All files are looked at: they have one page each, of one size and type. `names`: those of
-- some files of a series.
function series.open(name, options, names)
    local self = setmetatable({names = names or series.names(name), threads = options.threads,
        place = "file"}, volume)
    do
        local page <close> = open_page(self, 1)
        self.page = {shape = page.shape, dtype = page.dtype}
        self.decoding, self.compressed = page.decoding or 0, page.compressed
        self.meta = {resolution = page.meta.resolution, unit = page.meta.unit,
            spacing = page.meta.spacing}
    end
    for number = 2, #self.names do
        local page <close> = open_page(self, number)
        self.decoding = math.max(self.decoding, page.decoding or 0)
        self.compressed = self.compressed or page.compressed
    end
    self.dtype = self.page.dtype
    self.shape = {#self.names, self.page.shape[1], self.page.shape[2]}
    return self
end

return series
