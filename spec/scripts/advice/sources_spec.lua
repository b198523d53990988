-- Each text in the sources that advises an option is followed by a row (the files *_rows.lua here),
-- or there is a reason why it is not (unfollowed.lua).

local advices = require "spec.support.advices"
local files = require "spec.support.files"

local function plain(text)
    return (text:gsub("%s+", " "))
end

-- {fragment of a text = where it is followed, or why it is not}
local function known()
    local list = {}
    for _, name in ipairs {"reconstruct", "scan", "image", "other"} do
        for _, row in ipairs(require("spec.scripts.advice." .. name .. "_rows")) do
            for _, source in ipairs(type(row.source) == "table" and row.source or {row.source}) do
                list[plain(source)] = name .. "_rows.lua"
            end
        end
    end
    for reason, fragments in pairs(require "spec.scripts.advice.unfollowed") do
        for _, fragment in ipairs(fragments) do
            assert(not list[fragment], fragment)
            list[plain(fragment)] = reason
        end
    end
    return list
end

describe("a text that advises an option", function()
    if not require("moonbeam").system.stat "bindings" then
        it("is looked for where the sources are", function()
            pending "the sources are not here"
        end)
        return
    end

    it("is followed by a row, or has a reason why not", function()
        local list, missing, texts = known(), {}, {}
        for _, each in ipairs(advices.all()) do
            local text, found = plain(each.text), not each.advises
            texts[#texts + 1] = text
            for fragment in pairs(found and {} or list) do
                found = found or text:find(fragment, 1, true)
            end
            missing[#missing + 1] = not found and ("%s:%d: %s"):format(each.file, each.line,
                each.text) or nil
        end
        assert(#missing == 0, "give these texts a row in spec/scripts/advice:\n"
            .. table.concat(missing, "\n"))
        local all = table.concat(texts, "\0")
        for fragment, where in pairs(list) do
            missing[#missing + 1] = not all:find(fragment, 1, true)
                and ("'%s' (%s)"):format(fragment, where) or nil
        end
        table.sort(missing)
        assert(#missing == 0, "no text has these parts:\n" .. table.concat(missing, "\n"))
    end)

    it("is provoked by a spec where the reason is one", function()
        for reason in pairs(require "spec.scripts.advice.unfollowed") do
            for name in reason:gmatch "spec/[%w_/]+%.lua" do
                assert(files.read(name), name)
            end
        end
    end)
end)
