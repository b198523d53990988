--- The bounded sample of a scan that is looked at before it is reconstructed: some rows of some
-- projections, and a few of these rows of the flats and darks.
--
-- Each group of frames is read once, and what is read follows from the scan alone, so that a dry
-- run takes the same steps. Of references in a file all frames are read, because one odd frame
-- spoils their mean; of frames in memory at most MOST_REFERENCES.

local mb = require "moonbeam"

local sample = {}

local LEAST_FRAMES, MOST_FRAMES = 5, 16 -- of the projections; one of a hundred
local ROWS, REFERENCE_ROWS = 8, 4 -- looked at; never more bytes than one sinogram
local MOST_REFERENCES = 64
local PIXELS = 768 -- of a frame that references and transmissions are judged by

-- `count` whole numbers spread from 1 to `last`; all, where there are no more.
local function spread(last, count)
    local list = {}
    for i = 1, math.min(count, last) do
        list[i] = count < last and 1 + (last - 1) * (2 * i - 1) // (2 * count) or i
    end
    return list
end

-- The rows of the settings as far as the scan has them; what is wrong with them the plan says.
local function rows_of(scan, settings)
    local first, last = table.unpack(settings.rows or {1, scan.rows})
    if first > scan.rows or last < 1 or first > last then
        return 1, scan.rows
    end
    return math.max(1, first), math.min(scan.rows, last)
end

-- Rows with even steps: {first, step, count}.
local function rows_looked_at(scan, settings)
    local first, last = rows_of(scan, settings)
    local step = math.max(1, (last - first + 1) // ROWS)
    return {first = first, step = step, count = math.min(ROWS, (last - first) // step + 1)}
end

-- What to read of a frame: of a file all rows at once, because compressed frames are decoded for
-- each reading; of arrays row by row, because a device takes no strided parts.
local function parts_of(scan, rows)
    local final = rows.first + (rows.count - 1) * rows.step
    if not scan.arrays then
        return {{rows.first, final, rows.step}}
    end
    local parts = {}
    for row = rows.first, final, rows.step do
        parts[#parts + 1] = {row, row}
    end
    return parts
end

-- The values of an array (frame, row, column) as lists; none in a dry run.
local function lists_of(array)
    local own <close> = array
    return mb.bound({}, own.to_table, own)
end

-- Adds rows of frames to frames: into[first + i][n] for each row.
local function add(into, first, lists)
    for i, rows in ipairs(lists) do
        into[first + i] = into[first + i] or {}
        table.move(rows, 1, #rows, #into[first + i] + 1, into[first + i])
    end
end

--- Reads the projections of the sample: {frames = their numbers, rows = {first, step, count},
-- lines = {[frame][row] = values of all columns}}. In a dry run there are no lines, but the steps
-- are the same.
function sample.projections(scan, settings)
    local rows, count = rows_looked_at(scan, settings), scan.n_angles // 100
    local made = {rows = rows, lines = {}, frames = spread(scan.n_angles,
        math.max(LEAST_FRAMES, math.min(MOST_FRAMES, count)))}
    local device <const> = settings.device or "host"
    for i, frame in ipairs(made.frames) do
        for _, part in ipairs(parts_of(scan, rows)) do
            add(made.lines, i - 1, lists_of(scan:projections(part, {device = device,
                angles = {frame, frame}})))
        end
    end
    return made
end

-- A few of the rows of the projections, for `count` frames.
local function reference_rows(scan, rows, count)
    local most = math.max(1, math.min(REFERENCE_ROWS, rows.count, scan.n_angles // count))
    local step = rows.count // most
    local skipped = (step + 1) // 2 - 1
    return {first = rows.first + skipped * rows.step, step = step * rows.step, count = most,
        at = skipped + 1, every = step}
end

--- Reads flats or darks (`name`) in rows of the projections: {numbers = those of the frames, rows
-- (at and every: which of the projections' rows), lines}, or nil where the scan has none.
function sample.references(scan, settings, name, rows)
    local count = scan["n_" .. name]
    if count == 0 then
        return nil
    end
    local numbers = spread(count, scan.arrays and MOST_REFERENCES or count)
    local made = {numbers = numbers, rows = reference_rows(scan, rows, #numbers), lines = {}}
    local device <const> = settings.device or "host"
    local parts = parts_of(scan, made.rows)
    if not scan.arrays then
        add(made.lines, 0, lists_of(scan[name](scan, parts[1], {device = device})))
        return made
    end
    for i, number in ipairs(numbers) do
        for _, part in ipairs(parts) do
            add(made.lines, i - 1, lists_of(scan[name](scan, part, {device = device,
                angles = {number, number}})))
        end
    end
    return made
end

--- Of the lines of a projection those in the rows of references (sample.references).
function sample.shared(made, lines)
    local own = {}
    for k = 1, made.rows.count do
        own[k] = lines[made.rows.at + (k - 1) * made.rows.every]
    end
    return own
end

--- The mean of each column over the rows of frames first to last.
function sample.profile(frames, first, last)
    local sums, count = {}, 0
    for column = 1, #frames[first][1] do
        sums[column] = 0
    end
    for i = first, last do
        for _, line in ipairs(frames[i]) do
            count = count + 1
            for column = 1, #line do
                sums[column] = sums[column] + line[column]
            end
        end
    end
    for column = 1, #sums do
        sums[column] = sums[column] / count
    end
    return sums
end

--- Which columns of the lines of `rows` rows are judged by.
function sample.columns(cols, rows)
    local step, list = (cols * rows + PIXELS - 1) // PIXELS, {}
    for column = 1, cols, step do
        list[#list + 1] = column
    end
    return list
end

--- The values of lines in these columns, row by row.
function sample.pixels(lines, columns)
    local list = {}
    for _, line in ipairs(lines) do
        for _, column in ipairs(columns) do
            list[#list + 1] = line[column]
        end
    end
    return list
end

return sample
