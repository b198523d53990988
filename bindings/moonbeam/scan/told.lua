--- Lines of what is known of a scan, which scans in HDF5 and scans of images have in common.

local core = require "moonbeam.core"
local surface = require "moonbeam.internal.command_line.surface"

local told = {}

--- A line with its name.
function told.line(name, ...)
    return core.error.printable(("%-11s"):format(name) .. string.format(...))
end

--- The angles: from the first to the last one, step and span, and the unit that was read.
function told.angles(s)
    return told.line("angles", "%.4f to %.4f degrees%s%s, read as %s%s", s.angle_ends[1],
        s.angle_ends[2],
        s.step_deg and (", step %.4f, span %.3f"):format(s.step_deg, s.span_deg) or "",
        s.turns and s.turns > 2 and (" (%.1f turns, taken within one)"):format(s.turns) or "",
        s.angle_unit == "deg" and "degrees" or "radians",
        s.angle_note and " (" .. s.angle_note .. ")" or "")
end

--- The size of a pixel.
function told.pixel(s)
    return told.line("pixel", "%s", s.pixel_size and surface.length(s.pixel_size)
        or "size not known")
end

return told
