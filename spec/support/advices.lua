-- Texts in the sources that advise an option: what specs follow (spec/scripts/advice).

local files = require "spec.support.files"

local advices = {}

-- What an advice has: an option as it is typed, or by its name in the library; and what is to be
-- done with it.
local FORMS <const> = {"%-%-%l[%l-]+", "the option %l", "%-%-%%s"}
local VERBS <const> = {"[gG]ive ", "[lL]eave ", "[uU]se ", "[aA]dd ", "[nN]ame ", "[tT]ry ", "[sS]ay ",
    "says so", "takes it", "[gG]o on with", "start anew", "make it by", "or %-%-", "or the option",
    "[;:,] %-%-%l", "[;:,] the option", "%(%-%-%l", "needs? %-%-", "needs? the option",
    "which is not given", "is missing", "take the option", "[wW]rite ", "compare with", "^the option",
    "^%-%-set", "^%-%-method", "the step", "%-%-axes", "%-%-plan"}

-- The literals of a Lua or C text that are joined to one, with what is before each: a list of
-- {text, before, line}.
local function literals(text, is_c)
    local list, at, line, last_end, joins = {}, 1, 1, 0, false
    local function count(piece)
        line = line + select(2, piece:gsub("\n", ""))
    end
    while at <= #text do
        local comment = is_c and (text:match("^//[^\n]*", at) or text:match("^/%*.-%*/", at))
            or not is_c and (text:match("^%-%-%[%[.-%]%]", at) or text:match("^%-%-[^\n]*", at))
        local quote = text:match("^[\"']", at)
        local long = not is_c and text:match("^%[%[.-%]%]", at)
        if comment then
            count(comment)
            at = at + #comment
        elseif long then
            count(long)
            list[#list + 1] = {text = long:sub(3, -3), before = text:sub(at - 40, at - 1),
                line = line}
            at, last_end = at + #long, at + #long
        elseif quote then
            local stop = at + 1
            while text:sub(stop, stop) ~= quote do
                stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
            end
            local own, between = text:sub(at + 1, stop - 1), text:sub(last_end, at - 1)
            local joined = between:find(is_c and "^%s*$" or "^%s*%.%.%s*$")
            if joined and joins then
                list[#list].text = list[#list].text .. own
            else
                list[#list + 1] = {text = own, before = text:sub(math.max(1, at - 40), at - 1),
                    line = line}
            end
            at, last_end, joins = stop + 1, stop + 1, true
        else
            line = line + (text:sub(at, at) == "\n" and 1 or 0)
            at = text:find(is_c and "[\"'/\n]" or "[\"'%-%[\n]", at + 1) or #text + 1
        end
    end
    return list
end

local function is_advice(literal)
    if literal.before:find "doc = [^\n]-$" or literal.before:find "notes = [^\n]-$"
        or literal.before:find "summary = %(?$" or not literal.text:find " " then
        return false
    end
    local function has(patterns)
        for _, pattern in ipairs(patterns) do
            if literal.text:find(pattern) then
                return true
            end
        end
        return false
    end
    return has(FORMS) and has(VERBS)
end

-- All source files of messages.
local function sources()
    local list = {}
    local found = files.run("find bindings scripts runtime -name '*.lua' -o -name '*.c'")
    for name in found:gmatch "[^\n]+" do
        if not name:find "^scripts/bench" and not name:find "^scripts/fuzz"
            and not name:find "^scripts/quality" and not name:find "^scripts/examples"
            and not name:find "/prompt/" and not name:find "recipes/" then
            list[#list + 1] = name
        end
    end
    table.sort(list)
    return list
end

--- All texts: {text, file, line, advises (an option)} each.
function advices.all()
    local list = {}
    for _, name in ipairs(sources()) do
        for _, literal in ipairs(literals(files.read(name), name:find "%.c$" ~= nil)) do
            list[#list + 1] = {text = literal.text:gsub("\\n", " "):gsub("\\(.)", "%1"),
                file = name, line = literal.line, advises = is_advice(literal)}
        end
    end
    return list
end

return advices
