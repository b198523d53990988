--- Which step of a recipe does what somebody asks for in words of their own: "remove-rings" is the
-- step stripes_all.

local catalog = require "moonbeam.pipeline.catalog"

local step_search = {}

-- Words that say nothing about which step is meant.
local EMPTY <const> = {}
for word in ([[apply correct correction data do enable file filter image input method mode number
    output remove removal retrieve size the type use value with]]):gmatch "%a+" do
    EMPTY[word] = true
end

-- What programs and papers call the subjects of steps.
local SUBJECTS <const> = {denoise = "noise", deringer = "rings", dering = "rings", tie = "phase",
    tv = "total_variation",
    savu = "paganin", fw = "wavelet", vo = "stripes", binning = "bin", dff = "flat_field",
    flatfield = "flat_field", ffc = "flat_field", outliers = "zingers", hotpixels = "dead_pixels",
    energy = "paganin", deltabeta = "paganin", delta = "paganin", sharpen = "unsharp",
    spikes = "zingers", roll = "rotate", cast = "rescale", downsample = "resample"}

-- The words of a text, in small letters and without a plural.
local function words_of(text)
    local words = {}
    for word in text:lower():gmatch "%a+" do
        if not EMPTY[word] and #word >= 2 then
            words[#words + 1] = (word:gsub("ings?$", ""):gsub("s$", ""))
        end
    end
    return words
end

-- Whether one of two words begins with the other.
local function alike(a, b)
    return a == b or #a >= 3 and #b >= 3 and (a:find(b, 1, true) == 1 or b:find(a, 1, true) == 1)
end

-- How well the words of a step answer those of the question: whole words of its name count most.
local function score_of(asked, def)
    local score = 0
    local name, summary = words_of(def.name), words_of(def.summary)
    for _, word in ipairs(asked) do
        for _, own in ipairs(name) do
            score = score + (word == own and 8 or alike(word, own) and 4 or 0)
        end
        for i, own in ipairs(summary) do
            if alike(word, own) then
                score = score + (i <= 4 and 3 or 2)
                break
            end
        end
    end
    return score
end

-- Steps that are usual: they come before others that answer about as well.
local FIRST <const> = {stripes_all = true, paganin = true, flat_field = true, dezinger = true}

--- The name of the step that these words are about, or nil. `least` (default 1) is how well it must
-- answer: a word of its name is worth 8, one of its summary 2 or 3.
function step_search.find(text, least)
    local word = text:lower():gsub("[-_ ]", "")
    local asked = words_of(SUBJECTS[word] or text:gsub("%a+", function(part)
        return SUBJECTS[part:lower()]
    end))
    local best, most, known = nil, (least or 1) - 1, catalog.new()
    for _, name in ipairs(known:names()) do
        local score = score_of(asked, known:find(name))
        score = score > 0 and FIRST[name] and score + 3 or score
        if score > most then
            best, most = name, score
        end
    end
    return best
end

-- Is a word the name of a step, or a subject of steps?
local function is_known(word)
    for _, name in ipairs(catalog.new():names()) do
        if name == word:gsub("-", "_") then
            return true
        end
    end
    return SUBJECTS[(word:gsub("[-_ ]", ""))] ~= nil
end

--- What a command line says about an unknown option that is a step of a recipe; nil: none is.
-- `exact`: only if it is the name of a step or what programs call a subject of steps.
function step_search.suggestion(text, exact)
    if exact and not is_known(text:lower()) then
        return nil
    end
    local name = step_search.find(text)
    return name and ("the step %s of a recipe (--recipe FILE)"):format(name)
end

return step_search
