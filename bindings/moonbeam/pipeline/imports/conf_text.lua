--- Configuration files of sections and keys, as nabu.conf is one:
--
--   [section]
--   # comment
--   key = value
--
-- A value is the rest of its line; a comment begins a line. A key of a section stands once. Time
-- and memory grow with the length of the text only.

local imported = require "moonbeam.pipeline.imports.imported"

local conf_text = {}

local MOST_KEYS <const> = 10000

--- {section = {key = {value = text, line = number}}} of a text; `where` is its name in messages.
-- Errors: argument, with the line.
function conf_text.parse(text, where)
    local sections, section, number, count = {}, nil, 0, 0
    for line in (text .. "\n"):gmatch "([^\n]*)\n" do
        number = number + 1
        local word = line:match "^%s*(.-)%s*$"
        local title = word:match "^%[([^%[%]]*)%]$"
        if title then
            section = title:match "^%s*(.-)%s*$"
            sections[section] = sections[section] or {}
        elseif word ~= "" and not word:find "^[#;]" then
            local key, value = word:match "^([%w_.-]+)%s*[=:]%s*(.*)$"
            count = count + 1
            if not key then
                imported.refuse(where, number, "'%.40s' is neither [section] nor key = value", word)
            elseif not section then
                imported.refuse(where, number, "'%.40s' stands before the first [section]", key)
            elseif sections[section][key] then
                imported.refuse(where, number, "'%.40s' is given twice in [%.40s]; remove one", key,
                    section)
            elseif count > MOST_KEYS then
                imported.refuse(where, number, "there are more than %d keys", MOST_KEYS)
            end
            sections[section][key] = {value = value, line = number}
        end
    end
    return sections
end

return conf_text
