--- The angles of a scan of images, which are given: computed from the first and the last, or a
-- list. Files whose numbers lack are noticed by the names of the others (series/numbering.lua).

local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local growing = require "moonbeam.scan.growing"
local lists = require "moonbeam.scan.lists"
local numbering = require "moonbeam.scan.series.numbering"
local picked = require "moonbeam.scan.picked"

local pairing = {}

local MOST_NAMED <const> = 3 -- names, or gaps, that a message lists

-- "60 to 89, 120".
local function gaps_text(gaps)
    local words = {}
    for i, gap in ipairs(gaps) do
        words[i] = gap.first == gap.last and tostring(gap.first)
            or ("%d to %d"):format(gap.first, gap.last)
        if i == MOST_NAMED and #gaps > i then
            words[i + 1] = ("and %d more"):format(#gaps - i)
            break
        end
    end
    return table.concat(words, ", ")
end

local function bare(name)
    return name:match "[^/]*$"
end

local function names_text(names)
    local words = {}
    for i = 1, math.min(#names, MOST_NAMED) do
        words[i] = ("'%s'"):format(core.error.printable(bare(names[i])))
    end
    return table.concat(words, ", ") .. (#names > MOST_NAMED
        and (" and %d more"):format(#names - MOST_NAMED) or "")
end

-- "30 of 180 numbers lack: 60 to 89".
local function missing_text(numbered, count)
    return ("%d of %d numbers in its names lack: %s"):format(numbered.full - count, numbered.full,
        gaps_text(numbered.gaps))
end

-- Names that are not of the series, and names of one number: refused where only the number of
-- files says which angle a file has, else told.
local function check_names(s, numbered, refused)
    local text
    if #numbered.strangers > 0 then
        text = ("%d of %d files of '%s' %s not named like the others: %s"):format(
            #numbered.strangers, s.n_projections, s.path, #numbered.strangers == 1 and "is"
            or "are", names_text(numbered.strangers))
    elseif numbered.twice then
        text = ("'%s' has two files of the number %d, '%s' and '%s'"):format(s.path,
            numbered.twice.number, bare(numbered.twice[1]), bare(numbered.twice[2]))
    end
    if text and refused then
        fail("argument", "scan.open", "path", "%s: name the projections by a pattern, such as "
            .. "FOLDER/img_*.tif, or by ranges, FOLDER:FIRST:LAST; a list of one angle a file "
            .. "(the option angles = PATH) takes all", text)
    elseif text then
        s:warn(text)
    end
end

-- The code of an error about files that lack: with "shape" they are waited for (growing.lua).
local function waits(options)
    return (options.wait or 0) > 0 and "shape" or "argument"
end

-- Angles from the first to the last, each file at its place among those that there would be.
local function computed(s, ends, numbered, options)
    local count = s.n_projections
    check_names(s, numbered, true)
    if numbered.full == count then
        return ends
    elseif not options.allow_missing then
        fail(waits(options), "scan.open", "angles", "'%s' has %d files, and %s: angles from the "
            .. "first to the last would be spread over those that are there; the option "
            .. "allow_missing pairs files and angles by number, and a list (the option angles = "
            .. "PATH) has an angle for each file or for each number", s.path, count,
            missing_text(numbered, count))
    end
    s:warn(missing_text(numbered, count) .. "; each file has the angle of its number")
    local list = {}
    for i, place in ipairs(numbered.places) do
        list[i] = ends[1] + (ends[2] - ends[1]) * (place - 1) / (numbered.full - 1)
    end
    return list
end

-- The numbers that begin or end a list of so many angles: where the files are in it, or nil where
-- that is not known.
local function place_in(numbered, count)
    local numbers = numbered.numbers
    if not numbers or #numbers == 0 or numbered.step ~= 1 then
        return nil
    end
    local low, high = numbers[1], numbers[#numbers]
    if low == 0 and high < count then
        return 0
    elseif low >= 1 and high == count then
        return 1
    end
    return low == 1 and high < count and 1 or nil
end

-- A list of more angles than there are files or numbers: files at an end lack.
local function longer(s, list, numbered, options)
    local count = s.n_projections
    local base = options.allow_missing and place_in(numbered, #list)
    if base then
        s:warn(("'%s' has %s for %s; each file has the angle of its number, which "
            .. "counts from %d"):format(s.path, counted(count, "file"),
            counted(#list, "angle"), base))
        local own = {}
        for i, number in ipairs(numbered.numbers) do
            own[i] = list[number - base + 1]
        end
        return own
    end
    local fresh = growing.is_fresh(s.last_file or s.path) or growing.is_fresh(s.place)
    local wait = fresh or waits(options) == "shape"
    fail(wait and "shape" or "argument", "scan.open", "angles", "'%s' has %s for %s: "
        .. "frames %d to %d are missing%s%s", s.path, counted(count, "frame"),
        counted(#list, "angle"), count + 1, #list,
        s.last_file and ("; the last file is '%s'"):format(s.last_file) or "", fresh
        and "; the option wait = SECONDS waits for them" or wait and "" or ", or it is the list of "
        .. "another scan")
end

-- The list of angles that the options give: numbers, or nil.
local function given(s, numbered, options)
    local angles = options.angles
    if angles == nil then
        fail("argument", "scan.open", "angles", "'%s' is a stack of images, which has no angles: "
            .. "give the option angles (the first and the last) and the option angle_unit, or the "
            .. "option angles = PATH", s.path)
    elseif type(angles) ~= "string" then
        return angles
    end
    local list, file, path = lists.read(s, angles, {op = "scan.open", option = "angles",
        what = "angles", most = 1 << 24, fits = function(count)
            return count == s.n_projections or count == numbered.full or count == s.n_frames
        end})
    if list.count then
        fail("argument", "scan.open", "angles", "'%s' has %d elements, and there are %d frames",
            angles, list.count, s.n_frames)
    elseif #list == 2 and s.n_projections ~= 2 then
        fail("argument", "scan.open", "angles", "'%s' has 2 angles for %d projections",
            angles, s.n_projections)
    end
    return list, file and {file, path}
end

--- The angles of the projections, as scan/stored_angles.lua takes them: one for each, or the first
-- and the last. `s`: path, n_projections, n_frames (of the series, with flats and darks), chosen
-- (the projections among them), names (all files of the series, or nil), indices (of the
-- projections among the names), last_file, place (the folder or file), warn. Returns also {file,
-- path} where they are from a dataset.
function pairing.angles(s, options)
    local count = s.n_projections
    local numbered = s.names and numbering.of(s.names, s.indices)
        or {strangers = {}, gaps = {}, full = count}
    local list, from = given(s, numbered, options)
    if #list == 2 and count ~= 2 then
        return computed(s, list, numbered, options)
    elseif #list == count then
        check_names(s, numbered, false)
        return list, from
    elseif #list == numbered.full and numbered.full > count then
        check_names(s, numbered, true)
        if waits(options) == "shape" and not options.allow_missing then
            fail("shape", "scan.open", "angles", "'%s' has %s for %s: %s", s.path,
                counted(count, "file"), counted(#list, "angle"), missing_text(numbered, count))
        end
        s:warn(missing_text(numbered, count) .. "; each file has the angle of its number")
        return picked(list, numbered.places), from
    elseif #list == s.n_frames then
        return picked(list, s.chosen), from
    elseif #list > count then
        return longer(s, list, numbered, options), from
    end
    fail("argument", "scan.open", "angles", "%d angles were given for %d projections", #list, count)
end

return pairing
