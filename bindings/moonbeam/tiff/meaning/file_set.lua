--- Files of one image: those that a description names, beside the file that is opened, and the
-- times of the image that are complete in those that are there.

local core = require "moonbeam.core"
local order = require "moonbeam.tiff.meaning.order"
local refusal = require "moonbeam.tiff.meaning.refusal"

local file_set = {}

--- A set: {name (of the file that is opened), own (without folders), directories (its pages),
-- files, absent (names of files that are not there)}. `file`: as meaning.of takes it.
function file_set.new(file)
    return {name = file.name, own = file_set.base(file.name), directories = file.directories,
        read = file.read, files = {}, absent = {}}
end

--- A name without its folders.
function file_set.base(name)
    return name:match "[^/\\]*$"
end

--- A file that a description names, in the folder of the file with that name.
function file_set.beside(name, other)
    if other:find "[/\\]" or other == "" or other == ".." then
        refusal.pages(name, "the description refers to '%s', which is no file of this folder",
            other:sub(1, 80))
    end
    return (name:match "^(.*/)" or "") .. other
end

--- The pages of a file of the set (nil: of the one that is opened); nil where it is not there.
function file_set.directories(set, file)
    if not file or file == set.own then
        return set.directories
    end
    local path = file_set.beside(set.name, file)
    if set.files[path] == nil then
        set.files[path] = core.system.stat(path) and set.read(path) or false
        if not set.files[path] then
            set.absent[#set.absent + 1] = file
        end
    end
    return set.files[path] or nil
end

--- The planes of an image of which some may be missing: those of complete times, which is said, and
-- of which `meta` then has the number.
function file_set.completed(set, meta, planes, warn)
    local total, there = order.count(meta), 0
    for _ in pairs(planes) do
        there = there + 1
    end
    if there == total then
        return planes
    end
    local files = #set.absent > 0 and ("; files that are not there: %s%s"):format(
        table.concat(set.absent, ", ", 1, math.min(3, #set.absent)), #set.absent > 3 and ", ..."
        or "") or ""
    local left, frames = order.complete(meta, planes)
    if not left then
        refusal.pages(set.name, "the description says %s, but %d of these %d planes are there, and "
            .. "no time is complete%s", refusal.counts(meta), there, total, files)
    end
    warn("%s: %d of %d times are complete, and these are read: %d of %d planes are there%s",
        set.name, frames, meta.frames, there, total, files)
    meta.frames = frames
    return left
end

return file_set
