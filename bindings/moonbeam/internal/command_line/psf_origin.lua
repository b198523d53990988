--- Whether the PSF of a file is a model that moonbeam psf has made: its file says so, unless it is
-- .npy. What lies at the edges of a model is its light, never the offset of a camera.

local core = require "moonbeam.core"
local file_name = require "moonbeam.internal.file_name"
local input_file = require "moonbeam.internal.files.input_file"
local mb = require "moonbeam"

local HEAD <const> = 1 << 18 -- bytes in which TIFF and Zarr files say how they were made
local PARAMETERS <const> = "/entry/reconstruction/parameters/"

-- HDF5: the parameters of the optics are there.
local function in_hdf5(path)
    local file <close> = mb.h5.open(path)
    return file and file:exists(PARAMETERS .. "model") and file:exists(PARAMETERS .. "na") or false
end

-- TIFF, of ImageJ (UTF-16) or OME (escaped), and Zarr have JSON of them.
local function in_json(path)
    local file <close> = input_file.open(path)
    local text = (file and file:read(HEAD) or ""):gsub("%z", ""):gsub("&quot;", '"')
    for parameters in text:gmatch '"parameters":(%b{})' do
        if parameters:find('"model":', 1, true) and parameters:find('"na":', 1, true)
            and not parameters:find('"method":', 1, true) then -- a deconvolved image
            return true
        end
    end
    return false
end

--- Is it one of ours?
return function(name)
    local path = file_name.without_member(name):gsub("/+$", "")
    local facts, extension = core.system.stat(path), file_name.extension(path)
    if facts and facts.kind == "folder" then
        return in_json(path .. "/zarr.json")
    elseif extension == "h5" or extension == "hdf5" then
        return in_hdf5(path)
    end
    return (extension == "tif" or extension == "tiff") and in_json(path)
end
