--- Where a chart goes: a PNG or SVG file, the terminal, or, where there is no terminal, one line
-- that says what would be shown.

local chart = require "moonbeam.plot.chart"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local dots = require "moonbeam.plot.dots"
local file_name = require "moonbeam.internal.file_name"
local raster = require "moonbeam.plot.raster"
local svg = require "moonbeam.plot.svg"
local text_file = require "moonbeam.internal.files.text_file"
local view = require "moonbeam.view"

local output = {}

local COLUMNS, ROWS <const> = 100, 20 -- letters, where the terminal is larger
local WIDTH, HEIGHT <const> = 960, 440 -- pixels

--- The options of every chart.
output.OPTIONS = declared.options(
    {"file", "string", "write a picture: FILE.png or FILE.svg", usual = "the terminal"},
    {"overwrite", "boolean", "replace an existing file"},
    {"width", "count", "of a file in pixels, in a terminal in letters", min = 40, max = 10000,
        usual = "960, or that of the terminal, at most 100"},
    {"height", "count", "of a file in pixels, in a terminal in letters", min = 10, max = 10000,
        usual = "440, or 20"},
    {"title", "string", "a line above"},
    {"text", "boolean", "return the text for a terminal, without colors, and print nothing"})

--- Colors of the terminal: false, true (256) or "full".
function output.colors()
    local name, depth = os.getenv("TERM") or "", os.getenv("COLORTERM") or ""
    if os.getenv("NO_COLOR") or name == "" or name == "dumb" then
        return false
    end
    return (depth == "truecolor" or depth == "24bit" or name:find "kitty" or name:find "direct")
        and "full" or true
end

--- Is the standard output a terminal that shows more than plain text?
function output.terminal()
    return core.system.isatty("stdout") and (os.getenv("TERM") or "dumb") ~= "dumb"
end

--- Writes a picture (row, column, 3) from its bytes as a PNG. The array is on the host, and counts
-- there while the file is written.
function output.png(path, bytes, height, width, options)
    local picture <close> = core.array.from_string(core.dry.on()
        and ("\0"):rep(height * width * 3) or bytes(), {height, width, 3},
        {dtype = "u8", device = "host"})
    view.save(path, picture, {overwrite = options.overwrite, legend = options.title})
end

--- Shows a chart (chart.lua) as the options say; `summary` is its text in words.
function output.put(plot, options, summary)
    plot.title = options.title or plot.title
    local function layout(metrics)
        return chart.layout(plot, metrics)
    end
    if options.file then
        file_name.check(options.file, {"png", "svg"}, "charts are PNG or SVG files", "plot")
        local width, height = options.width or WIDTH, options.height or HEIGHT
        if file_name.extension(options.file) == "png" then
            output.png(options.file, function()
                local shapes = layout {width = width, height = height, letter_width = 12,
                    letter_height = 16, grid = true}
                return raster.rgb(raster.drawn(shapes, width, height, {pen = 2, dash = 6,
                    letter = 2}))
            end, height, width, {overwrite = options.overwrite, title = plot.title})
        elseif not core.dry.on() then
            text_file.write(options.file, svg.text(layout, width, height), options.overwrite)
        end
        return
    elseif core.dry.on() then
        return
    end
    local terminal = output.terminal()
    if not options.text and not terminal then
        print(summary)
        return
    end
    local size = terminal and core.system.terminal_pixels() or {columns = COLUMNS, rows = ROWS + 2}
    local columns = options.width or math.max(40, math.min(size.columns - 1, COLUMNS))
    local rows = options.height or math.max(10, math.min(size.rows - 2, ROWS))
    local text = dots.text(layout, columns, rows, not options.text and output.colors())
    if options.text then
        return text
    end
    print(text)
end

return output
