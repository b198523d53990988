--- Letters of 5 x 7 points for pictures. A letter is seven digits of base 32, one for each row from
-- the top; the bits of a digit are the points from left to right.

local LETTERS = {}

for letters, rows in pairs {
    ["0123456789"] = "ehjlphe4c4444eeh1248vv2421he26aiv22vgu11he68guhhev124888ehhehheehhf12c",
    ABCDEFGHI = "ehhvhhhuhhuhhuehggghesihhhisvgguggvvggugggehgnhhfhhhvhhhe44444e",
    JKLMNOPQR = "72222ichikokihggggggvhrllhhhhhpljhhehhhhheuhhugggehhhliduhhukih",
    STUVWXYZ = "fgge11uv444444hhhhhhehhhhha4hhhlllahha4ahhhhha444v1248gv",
    abcdefghi = "00e1fhfggmphhu00egghe11djhhf00ehvge698s8880fhhf1eggmphhh40c444e",
    jklmnopqr = "20622icggikokic44444e00qllhh00mphhh00ehhhe00uhugg00djf1100mpggg",
    stuvwxyz = "00ege1u88s889600hhhjd00hhha400hhlla00ha4ah00hhf1e00v248v",
    [".,:;-+*/=_ "] = "00000cc0000c480cc0cc00cc0c48000v000044v44004lel4001248g000v0v00000000v"
        .. "0000000",
    ["()[]{}<>|"] = "24888428422248e88888ee22222e24484428442448248g84284212484444444",
    ["%'\"#!?@&"] = "op248j3c480000aaa0000aavavaa4444004eh12404eh1dllecik8lid",
    ["~$^`\\"] = "008l2004fke5u44ah000084200000g84210",
} do
    for i = 1, #letters do
        local bits = {}
        for row = 1, 7 do
            bits[row] = tonumber(rows:sub(7 * i - 7 + row, 7 * i - 7 + row), 32)
        end
        LETTERS[letters:sub(i, i)] = bits
    end
end

local font = {WIDTH = 6, HEIGHT = 7} -- with the gap to the next letter

--- Calls point(x, y) for every point of a line of text, from 0, 0 at its top left.
function font.points(text, point)
    local at = 0
    for letter in text:gmatch(utf8.charpattern) do
        for y, bits in ipairs(LETTERS[letter] or LETTERS["?"]) do
            for x = 0, 4 do
                if bits >> (4 - x) & 1 == 1 then
                    point(at + x, y - 1)
                end
            end
        end
        at = at + font.WIDTH
    end
end

return font
