--- Lists of numbers in texts, as people and instruments write them: numbers between spaces, tabs,
-- commas, semicolons or line ends; decimal points or decimal commas; a head of words; columns, of
-- which one counts the lines; # starts a comment.
--
-- `facts`: name (of the file), fits (a function: may a list have so many numbers?), column (that
-- the user named, or nil), flat (all numbers are meant, those of all columns, or none), wrong (a
-- function(format, ...) that raises).

local text = {}

-- What a message shows of a line.
local function shown(line)
    return #line > 40 and line:sub(1, 40) .. "..." or line
end

--- The number that a word is, finite; or nil.
function text.number(word)
    local value = word:find "^[+-]?%.?%d[%d%.eE+-]*$" and tonumber(word)
    return value and math.abs(value) < math.huge and value or nil
end

-- Words that mean a number which is none.
local NO_NUMBERS <const> = {nan = true, inf = true, infinity = true}

-- Is a word meant as a number? Then the head is over.
local function is_number_like(word)
    return word:find "^[+-]?%.?%d" or NO_NUMBERS[word:lower():gsub("^[+-]", "")]
end

-- The words of a line; `decimal`: commas are in numbers, rather than between them.
local function words_of(line, decimal)
    local words = {}
    for word in line:gmatch(decimal and "[^%s;]+" or "[^%s,;]+") do
        word = word:match '^"(.*)"$' or word
        words[#words + 1] = decimal and word:gsub("^([+-]?%d*),(%d+)", "%1.%2") or word
    end
    return words
end

-- The lines that say something, without comments and the head: {number, text}.
local function lines_of(content, facts)
    local lines, number, begun = {}, 0, facts.flat
    content = content:gsub("^\239\187\191", ""):gsub("\r\n?", "\n")
    for line in (content .. "\n"):gmatch "([^\n]*)\n" do
        number = number + 1
        local bare = line:gsub("#.*", ""):match "^[%s,;]*(.-)[%s,;]*$"
        for _, decimal in ipairs {false, true} do
            for _, word in ipairs(words_of(bare, decimal)) do
                begun = begun or is_number_like(word)
            end
        end
        if bare ~= "" and begun then
            lines[#lines + 1] = {number = number, text = bare}
        elseif bare ~= "" then
            lines.head = lines.head or line
        end
    end
    if #lines == 0 and not facts.flat then
        facts.wrong("'%s' has no numbers%s", facts.name, lines.head
            and (", but '%s'"):format(shown(lines.head)) or "")
    end
    return lines
end

-- The lines as lists of words, all of them numbers; or nil, the line and the word that is none.
local function rows_of(lines, decimal)
    local rows = {}
    for i, line in ipairs(lines) do
        local words = words_of(line.text, decimal)
        for _, word in ipairs(words) do
            if not text.number(word) then
                return nil, line, word
            end
        end
        rows[i] = words
    end
    return rows
end

-- How many words each row has, or nil where rows differ; and how many there are in all.
local function columns_of(rows)
    local columns, total = #rows[1], 0
    for _, row in ipairs(rows) do
        columns = #row == columns and columns or nil
        total = total + #row
    end
    return columns, total
end

-- Does a column count the rows, from 0 or from 1?
local function counts(rows, column)
    local first = text.number(rows[1][column])
    for i, row in ipairs(rows) do
        if text.number(row[column]) ~= first + i - 1 then
            return false
        end
    end
    return #rows > 1 and (first == 0 or first == 1)
end

local function is_constant(rows, column)
    for _, row in ipairs(rows) do
        if text.number(row[column]) ~= text.number(rows[1][column]) then
            return false
        end
    end
    return true
end

local function is_whole(rows, column)
    for _, row in ipairs(rows) do
        if not row[column]:find "^[+-]?%d+$" then
            return false
        end
    end
    return true
end

local function same(rows, one, other)
    for _, row in ipairs(rows) do
        if text.number(row[one]) ~= text.number(row[other]) then
            return false
        end
    end
    return true
end

-- The only column that does not count the rows, or nil. Of two that both count, the one that is
-- written with decimals has the values.
local function value_column(rows, columns)
    local values, indices = {}, {}
    for column = 1, columns do
        local list = counts(rows, column) and indices or values
        list[#list + 1] = column
    end
    if #values == 1 and #indices > 0 then
        return values[1]
    elseif columns == 2 and #indices == 2 then
        local one, other = is_whole(rows, 1), is_whole(rows, 2)
        return (same(rows, 1, 2) or one and not other) and 2 or other and not one and 1 or nil
    end
end

local function numbers_of(rows, column)
    local list = {}
    for _, row in ipairs(rows) do
        for i = column or 1, column or #row do
            list[#list + 1] = text.number(row[i])
        end
    end
    return list
end

-- ---- decimal commas ----

-- May a text have decimal commas? Where it has decimal points it has none.
local function decimal_rows(lines)
    local commas = false
    for _, line in ipairs(lines) do
        commas = commas or line.text:find "%d,%d" ~= nil
        if line.text:find "%." then
            return nil
        end
    end
    return commas and rows_of(lines, true) or nil
end

-- Do the digits behind commas begin with 0 somewhere, before others? No whole number does.
local function has_leading_zeros(lines)
    for _, line in ipairs(lines) do
        if line.text:find ",0%d" then
            return true
        end
    end
    return false
end

-- Which of two readings of commas is meant: true where they are decimal.
local function are_decimal(lines, plain, decimal, facts)
    local columns = columns_of(plain)
    local decimal_columns, decimal_total = columns_of(decimal)
    if decimal_total > #lines then -- something else is between the numbers
        local _, total = columns_of(plain)
        local function fits(rows, sum)
            return facts.fits(sum) or facts.fits(#rows)
        end
        return fits(decimal, decimal_total) or not fits(plain, total)
    elseif #lines == 1 or facts.column and (decimal_columns or 0) < facts.column then
        return false
    elseif columns ~= 2 or has_leading_zeros(lines) then
        return true
    elseif facts.column then
        return false
    end
    local column = value_column(plain, 2)
    if column and #lines > 2 and is_constant(plain, column)
        or not (column or counts(plain, 1) or counts(plain, 2)) then
        return true
    end
    facts.wrong("'%s', line %d: '%s' may be a number with a decimal comma, or two columns: write "
        .. "decimal points, or name the column, %s:%d", facts.name, lines[1].number,
        shown(lines[1].text), facts.name, column or 2)
end

-- ---- columns ----

local function named(rows, lines, facts)
    for i, row in ipairs(rows) do
        if not row[facts.column] then
            facts.wrong("'%s', line %d: '%s' has no column %d", facts.name, lines[i].number,
                shown(lines[i].text), facts.column)
        end
    end
    return numbers_of(rows, facts.column)
end

--- The numbers of a text. Raises what cannot be understood, with the line.
function text.numbers(content, facts)
    local lines = lines_of(content, facts)
    local plain, line, word = rows_of(lines, false)
    local decimal = not facts.flat and decimal_rows(lines) or nil
    local rows = plain
    if decimal and (not plain or are_decimal(lines, plain, decimal, facts)) then
        rows = decimal
    elseif not plain then
        facts.wrong("'%s', line %d: '%s' is not a number%s", facts.name, line.number, shown(word),
            word == line.text and "" or (" (the line is '%s')"):format(shown(line.text)))
    end
    if facts.column then
        return named(rows, lines, facts)
    elseif facts.flat then
        return numbers_of(rows)
    end
    local columns, total = columns_of(rows)
    if (columns or 1) == 1 or #rows == 1 or facts.fits(total) and not facts.fits(#rows) then
        return numbers_of(rows)
    end
    local column = value_column(rows, columns)
    if not column and facts.fits(#rows) then
        facts.wrong("'%s' has %d columns (line %d is '%s'): name one of them, such as %s:%d",
            facts.name, columns, lines[1].number, shown(lines[1].text), facts.name, columns)
    end
    return numbers_of(rows, column)
end

return text
