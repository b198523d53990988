--- Refusals of pages whose meaning is not known, with the ways out.

local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"

local refusal = {}

refusal.WAY = "say what the pages are with the option axes (from slow to fast, such as Z, or TZC2 "
    .. "where there are 2 channels), and which pages with the option pages"

--- Raises the refusal of a file's pages.
function refusal.pages(name, format, ...)
    fail("io", "tiff", "axes", "%s: %s: %s", name, format:format(...), refusal.WAY)
end

--- Raises the refusal of a file that ends before its pages do.
function refusal.truncated(name, format, ...)
    fail("io", "tiff", "pages", "%s: the file is truncated: %s: read these with the option pages",
        name, format:format(...))
end

--- Raises the refusal of a file that has `count` of what the option image chooses, of which none
-- was named (`number` nil), or one that there is not.
function refusal.image(name, count, what, number)
    if number then
        fail("argument", "tiff", "image", "%s: there is no image %d: the file has %d", name, number,
            count)
    end
    fail("argument", "tiff", "image", "%s has %d %s: say which with the option image (1 to %d)",
        name, count, what, count)
end

--- "2 channels x 4 slices x 1 times".
function refusal.counts(meta)
    return ("%s x %s x %s"):format(counted(meta.channels, "channel"), counted(meta.slices, "slice"),
        counted(meta.frames, "time"))
end

return refusal
