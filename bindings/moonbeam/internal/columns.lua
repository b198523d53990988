--- Formats cells, a list of rows of texts, as lines of aligned columns, two spaces apart.
-- `right(i)` tells whether column i is aligned to the right (default: no column).

return function(cells, right)
    local widths, lines = {}, {}
    for _, row in ipairs(cells) do
        for i, text in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, #text)
        end
    end
    for n, row in ipairs(cells) do
        local parts = {}
        for i, text in ipairs(row) do
            local space = (" "):rep(widths[i] - #text)
            parts[i] = right and right(i) and space .. text or text .. space
        end
        lines[n] = (table.concat(parts, "  "):gsub("%s+$", ""))
    end
    return lines
end
