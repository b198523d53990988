-- Makes one scan of a group with a dataset for each frame (ALS 8.3.2), as a file beside it.
-- usage: moonbeam scripts/examples/gather_frames.lua SCAN GROUP NAME
local mb = require "moonbeam"

local scan, group, name = mb.usage()
local source <close> = assert(mb.h5.open(scan))
local kinds = {data = {}, data_white = {}, data_dark = {}}
for _, object in ipairs(source:walk(group)) do                  -- in the order of names
    if object.kind == "dataset" and object.dtype then
        local last = object.path:match "[^/]*$"
        local list = kinds[last:find "bak" and "data_white" or last:find "drk" and "data_dark"
            or "data"]
        list[#list + 1] = {file = scan:match "[^/]*$", path = object.path, first = #list + 1,
            last = #list + 1, object = object}
    end
end

local folder = scan:match "^(.*/)" or ""
local master <close> = assert(mb.h5.create(folder .. name))
master:group "/exchange"
for kind, list in pairs(kinds) do
    local first = list[1] and list[1].object
    for _, each in ipairs(list) do
        each.object = nil
    end
    if first then                                               -- frames are (1, row, column)
        master:create_virtual("/exchange/" .. kind, {dtype = first.dtype, sources = list,
            shape = {#list, table.unpack(first.shape, #first.shape - 1)}})
    end
    print(("%d frames in /exchange/%s"):format(#list, kind))
end
master:finish()
