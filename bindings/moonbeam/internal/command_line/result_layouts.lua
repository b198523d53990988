--- Layouts of results that commands offer, and what they say of them: TIFF above 4 GB, and OME-Zarr
-- with a file for each chunk.

local cli = require "moonbeam.internal.cli"
local compose = require "moonbeam.tiff.meaning.compose"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local large = require "moonbeam.tiff.large"
local mb = require "moonbeam"
local shards = require "moonbeam.zarr.shards"
local volumes = require "moonbeam.volumes"
local zarr_volume = require "moonbeam.result.zarr_volume"

local result_layouts = {}

local DECLARED <const> = declared.options(large.option, shards.option)

--- The options of commands.
result_layouts.OPTIONS = {cli.option(DECLARED.tiff_layout), cli.option(DECLARED.zarr_layout)}

local function is_zarr(name)
    return not file_name.problem(name:gsub("/+$", ""), file_name.ZARR)
end

--- Ends the program where a layout was given that the result `name` (nil: none) cannot have.
function result_layouts.check(options, name)
    if name and options.given.tiff_layout and file_name.problem(name, file_name.TIFF) then
        cli.wrong("--tiff-layout is for TIFF files; --output is %s: give one that ends in .tif, "
            .. "or leave --tiff-layout out", name)
    elseif name and options.given.zarr_layout and not is_zarr(name) then
        cli.wrong("--zarr-layout is for OME-Zarr; --output is %s: give one that ends in .zarr, "
            .. "or leave --zarr-layout out", name)
    end
end

-- Says how many files a result of chunks has, where it is one. `volume`: as for `tell`.
local function tell_chunks(say, options, name, volume)
    if options.zarr_layout ~= "chunks" or not is_zarr(name) or #volume.shape ~= 3 then
        return
    end
    local count = volume.count or 1
    local files, most = zarr_volume.files(volume.shape, volume.dtype, "chunks", count)
    say(("zarr       %d files, one for each slice of each level, of at most %s, %s in all"):format(
        files, mb.device.format_bytes(most), mb.device.format_bytes(count
            * zarr_volume.disk_bytes(volume.shape, volume.dtype, "chunks"))))
end

--- Says which readers take the result `name` where it is a TIFF file above 4 GB, or ends the
-- program where it cannot have the layout; and how many files an OME-Zarr result of chunks has.
-- `shape`, `dtype` of a volume; `count`: how many there are (default 1); `meta`: of the image that
-- it is made from, or nil.
function result_layouts.tell(say, options, name, volume, meta)
    if not name then
        return
    end
    tell_chunks(say, options, name, volume)
    if file_name.problem(name, file_name.TIFF)
        or not large.is_file(volume.shape, volumes.ITEM_BYTES[volume.dtype], volume.count or 1)
        then
        return
    end
    local is_ome = compose.is_ome(name, meta or {})
    cli.tried({}, large.check, "images.create", name, options.tiff_layout, is_ome)
    say("tiff       " .. large.readers(options.tiff_layout, is_ome))
end

return result_layouts
