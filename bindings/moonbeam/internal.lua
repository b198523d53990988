--- Modules that are parts of others. The library's files reach them by require; scripts do not,
-- as mb.<name>.

local internal = {}
for name in ([[arguments axis_moments axis_pairs axis_register center cli deconv_grid fbp file_name finite gradient_consensus init
    internal lean method on_error options pick process_memory result_parts sandbox scan_angles scan_arrays scan_center scan_frames
    scan_layout scan_memory scan_missing scan_plan scan_values scan_work script tiff_metadata tile_search unknown unpack whole]])
    :gmatch "%S+" do
    internal[name] = true
end

return internal
