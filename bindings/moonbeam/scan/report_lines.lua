--- Lines of what is known of a scan, which scans in HDF5 and scans of images have in common. An
-- `ending`, if there is one, ends the line.

local core = require "moonbeam.core"
local surface = require "moonbeam.internal.command_line.surface"

local report_lines = {}

--- A line with its name.
function report_lines.line(name, ...)
    return core.error.printable(("%-11s"):format(name) .. string.format(...))
end

--- The angles: from the least to the greatest one, step and span, and the unit that was read.
function report_lines.angles(s, ending)
    return report_lines.line("angles", "%.4f to %.4f degrees%s%s, read as %s%s%s", s.angle_ends[1],
        s.angle_ends[2],
        s.step_deg and (", step %.4f, span %.3f"):format(s.step_deg, s.span_deg) or "",
        s.turns and s.turns > 2 and (" (%.1f turns, taken within one)"):format(s.turns) or "",
        s.angle_unit == "deg" and "degrees" or "radians",
        s.angle_note and " (" .. s.angle_note .. ")" or "", ending or "")
end

--- The size of a pixel.
function report_lines.pixel(s, ending)
    return report_lines.line("pixel", "%s%s", s.pixel_size and surface.length(s.pixel_size)
        or "size not known", ending or "")
end

return report_lines
