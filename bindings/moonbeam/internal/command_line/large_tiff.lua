--- What commands say of TIFF results above 4 GB.

local cli = require "moonbeam.internal.cli"
local compose = require "moonbeam.tiff.meaning.compose"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local large = require "moonbeam.tiff.large"
local volumes = require "moonbeam.volumes"

local large_tiff = {}

--- The option of commands.
large_tiff.OPTION = cli.option(declared.options(large.option).tiff_layout)

--- Ends the program where --tiff-layout was given and the result `name` (nil: none) is no TIFF
-- file.
function large_tiff.check(options, name)
    if name and options.given.tiff_layout and file_name.problem(name, file_name.TIFF) then
        cli.wrong("--tiff-layout is for TIFF files; --output is %s: give one that ends in .tif, "
            .. "or leave --tiff-layout out", name)
    end
end

--- Says which readers take the result `name` where it is a TIFF file above 4 GB, or ends the
-- program where it cannot have the layout. `shape`, `dtype` of a volume; `count`: how many there
-- are (default 1); `meta`: of the image that it is made from, or nil.
function large_tiff.tell(say, options, name, volume, meta)
    if not name or file_name.problem(name, file_name.TIFF)
        or not large.is_file(volume.shape, volumes.ITEM_BYTES[volume.dtype], volume.count or 1)
        then
        return
    end
    local is_ome = compose.is_ome(name, meta or {})
    cli.tried({}, large.check, "images.create", name, options.tiff_layout, is_ome)
    say("tiff       " .. large.readers(options.tiff_layout, is_ome))
end

return large_tiff
