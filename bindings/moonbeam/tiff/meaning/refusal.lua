--- Refusals of pages whose meaning is not known, with the ways out.

local fail = require "moonbeam.internal.fail"

local refusal = {}

refusal.WAY = "say what the pages are with the option axes (from slow to fast, such as Z, or TZC2 "
    .. "where there are 2 channels), and which pages with the option pages"

--- Raises the refusal of a file's pages.
function refusal.pages(name, format, ...)
    fail("io", "tiff", "axes", "%s: %s: %s", name, format:format(...), refusal.WAY)
end

--- "2 channels x 4 slices x 1 times".
function refusal.counts(meta)
    return ("%d channels x %d slices x %d times"):format(meta.channels, meta.slices, meta.frames)
end

return refusal
