-- Formats by file name: a file is never written under the name of another format.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local file_name = {}

--- The extensions of a format, the usual one first.
file_name.HDF5 = {"h5", "hdf5", "hdf", "nxs", "nx"}
file_name.TIFF = {"tif", "tiff"}
--- Those under which programs write TIFF, as tifffile (C. Gohlke) has them; they are read only.
file_name.TIFF_INPUTS = {"tif", "tiff", "stk", "lsm", "tf2", "tf8", "btf", "qptiff", "qpi",
    "pcoraw", "ptif", "ptiff", "gel", "seq", "svs", "avs", "scn", "zif", "ndpi", "bif", "eer",
    "flex"}
file_name.NPY = {"npy"}
file_name.PNG = {"png"}
file_name.ZARR = {"zarr"}
file_name.RESULTS = {"h5", "hdf5", "hdf", "nxs", "nx", "tif", "tiff", "zarr"}
file_name.IMAGES = {"tif", "tiff", "npy", "h5", "hdf5", "zarr"}

-- Extensions by which readers recognize other formats. No HDF5 file is written under them.
local FOREIGN = {tif = 1, tiff = 1, npy = 1, npz = 1, zarr = 1, png = 1, jpg = 1, jpeg = 1,
    gif = 1, bmp = 1, pdf = 1, mrc = 1,
    raw = 1, vol = 1, txt = 1, csv = 1, zip = 1, edf = 1, cbf = 1}

--- The extension of a file name in lower case, or nil.
function file_name.extension(path)
    local extension = path:match("%.(%w+)$")
    return extension and extension:lower()
end

--- Does a file name end in one of these extensions?
function file_name.has(path, extensions)
    local own = file_name.extension(path)
    for _, extension in ipairs(extensions) do
        if own == extension then
            return true
        end
    end
    return false
end

--- The last part of a path.
function file_name.base(path)
    return path:match "[^/]*/*$"
end

--- The file of FILE.h5:/PATH, which may also be the name of a file.
function file_name.without_member(name)
    return (name:gsub(":/.*$", ""))
end

--- Are two names those of one file or folder that exists? Of FILE.h5:/PATH the paths count, too.
function file_name.same(one, other)
    local function parts(name)
        local file, member = name:match "^(.+%.%w+):(/.*)$"
        return core.system.stat(file or name), member or ""
    end
    local a, a_member = parts(one)
    local b, b_member = parts(other)
    return a and b and a.device == b.device and a.inode == b.inode and a_member == b_member or false
end

--- nil if the name ends in one of these extensions, otherwise what is wrong with it. `what` is a
-- reason such as "results are HDF5 files".
function file_name.problem(path, extensions, what)
    if file_name.has(path, extensions) then
        return nil
    end
    local names = "." .. table.concat(extensions, ", ."):gsub(", (%.%w+)$", " or %1")
    return ("'%s' must end in %s%s"):format(path, names, what and ": " .. what or "")
end

--- Raises an error if the name does not end in one of these extensions.
function file_name.check(path, extensions, what, op)
    if type(path) ~= "string" then
        fail("argument", op, "path", "a file name must be a string, not a %s", type(path))
    end
    local problem = file_name.problem(path, extensions, what)
    if problem then
        fail("argument", op, "path", "%s", problem)
    end
end

--- Raises an error if an HDF5 file would have the name of another format.
function file_name.check_hdf5(path, op)
    if type(path) == "string" and (path == "-" or FOREIGN[file_name.extension(path)]) then
        fail("argument", op, "path",
            "'%s' is not a name for an HDF5 file; give one that ends in .h5",
            path)
    end
end

return file_name
