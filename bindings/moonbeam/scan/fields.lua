--- What scans answer to the names of fields and methods: an unknown one is an error, with the
-- nearest.

local strict = require "moonbeam.internal.strict"

-- Fields that a scan may lack: what its file does not say, what only one kind of scan has, and what
-- a run notes in it.
local MAY_LACK <const> = {}
for _, name in ipairs {"pixel_size", "step_deg", "span_deg", "turns", "angle_note", "angle_unit",
    "angle_ends", "chunk_rows", "decoding_bytes", "timeline", "currents", "flat_source",
    "dark_source", "path", "file", "files", "data", "data_path", "n_frames", "n_projections",
    "positions", "arrays", "values_found", "counts_as", "walked", "unpack_seconds", "says",
    "stated", "numbers", "keyed", "left_out", "constants", "exposures", "order", "axes_given"} do
    MAY_LACK[name] = true
end

local COUNTS <const> = "n_angles projections of rows x cols pixels"
local ANGLES <const> = "angles are its angles, in radians"
local INSTEAD <const> = {
    'mb.help("scan") lists its functions, print(s:describe()) what it has',
    theta = ANGLES, angle = ANGLES, frame = "projections() reads frames",
    shape = COUNTS, size = COUNTS, width = "cols are the columns of the detector",
    height = "rows are those of the detector", columns = "cols are the columns of the detector",
    n_cols = "cols are the columns of the detector", n_rows = "rows are those of the detector",
    pixel = "pixel_size is in meters", flat = "flats() reads them, n_flats is their number",
    dark = "darks() reads them, n_darks is their number", white = "flats() reads them",
    projection = "projections() reads frames", read = "projections(), flats() and darks() read",
}

--- The __index of scans with these methods.
return function(methods)
    return strict.object("a scan", methods, MAY_LACK, INSTEAD)
end
