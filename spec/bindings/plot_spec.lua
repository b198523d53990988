-- Charts and pictures: what they draw, how terminals get it, and the memory that they take.

local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local svg = require "moonbeam.plot.svg"
local chart = require "moonbeam.plot.chart"
local raster = require "moonbeam.plot.raster"
local scale = require "moonbeam.plot.scale"
local terminal = require "moonbeam.plot.terminal"
local timeline = require "moonbeam.pool.timeline"

-- What a function prints and writes to the standard output.
local function printed(f, ...)
    local original, stream, text = print, io.stdout, {}
    _G.print = function(line) text[#text + 1] = tostring(line) .. "\n" end
    -- luacheck: push ignore 122
    io.stdout = {write = function(_, piece) text[#text + 1] = piece end}
    local results = table.pack(pcall(f, ...))
    _G.print, io.stdout = original, stream
    -- luacheck: pop
    assert(results[1], results[2])
    return table.concat(text)
end

describe("charts", function()
    local folder
    before_each(function() folder = files.folder() end)
    after_each(function() files.remove(folder) end)

    it("have round numbers on their axes", function()
        assert.same({{0, 20, 40, 60, 80, 100}, {"0", "20", "40", "60", "80", "100"}},
            {scale.ticks(0, 100, 5)})
        assert.same({"-0.2", "-0.1", "0", "0.1", "0.2"}, (select(2, scale.ticks(-0.2, 0.2, 4))))
        assert.same({"0 B", "8 MiB", "16 MiB", "24 MiB"},
            (select(2, scale.ticks(0, 25 << 20, 4, "bytes"))))
        assert.same({"0", "1", "2"}, (select(2, scale.ticks(0, 2, 20, "whole"))))
        assert.same({0, 1}, {scale.range {{0 / 0, math.huge}}})
        assert.same({-2, 3}, {scale.range {{3, 0 / 0, -2}, {1}}})
    end)

    it("have logarithms on an axis, if that is wanted", function()
        assert.same({"1", "2", "5", "10", "20", "50"}, (select(2, scale.ticks(0, 1.9, 9, "log"))))
        assert.same({"0.1", "1", "10", "100"}, (select(2, scale.ticks(-1, 2, 4, "log"))))
        assert.same({"1", "1000"}, (select(2, scale.ticks(0, 5, 2, "log"))))
    end)

    it("write titles and levels beyond the chart one above the other", function()
        local shapes = chart.layout({bands = {{values = {1, 2}}}, title = "title",
            levels = {{100, "budget"}}}, {width = 200, height = 100, letter_width = 2,
            letter_height = 4})
        local at = {}
        for _, shape in ipairs(shapes) do
            at[shape.text or ""] = shape.y
        end
        assert.is_true(at["budget, beyond the chart"] - at.title >= 4)
    end)

    it("draw lines where the values are", function()
        local shapes = chart.layout({lines = {{x = {0, 10}, y = {0, 1}}}}, {width = 200,
            height = 100, letter_width = 2, letter_height = 4})
        local line
        for _, shape in ipairs(shapes) do
            line = shape.kind == "line" and #shape.points == 4 and shape or line
        end
        local canvas = raster.drawn({line}, 200, 100, {})
        local first, last = 2 * (199 * 100), -1
        for place = 0, 200 * 100 - 1 do
            if canvas[place] then
                first, last = math.min(first, place), math.max(last, place)
            end
        end
        assert.is_true(first % 200 > 190 and first // 200 < 8) -- the top right, and the bottom left
        assert.is_true(last % 200 < 15 and last // 200 > 85)
    end)

    it("lose no peak where many samples share a column of points", function()
        local values = {}
        for i = 1, 10000 do
            values[i] = i == 7777 and 9 or 1
        end
        local shapes = chart.layout({bands = {{values = values}}, y = {low = 0, high = 10}},
            {width = 120, height = 110, letter_width = 1, letter_height = 5})
        local highest = math.huge
        for _, shape in ipairs(shapes) do
            for _, y in ipairs(shape.kind == "columns" and shape.high or {}) do
                highest = math.min(highest, y)
            end
        end
        assert.near(5 + (100 - 5) * 0.1, highest, 0.01)
    end)

    it("are SVG files that name what they show", function()
        local path = folder .. "/a.svg"
        mb.plot.areas({{1, 2, 3}, {2, 2, 1}}, {file = path, names = {"<arrays>", "scratch"},
            x_label = "step"})
        local text = files.read(path)
        assert.matches('^<svg xmlns="http://www.w3.org/2000/svg" width="960" height="440"', text)
        assert.truthy(text:find(">&lt;arrays&gt;<", 1, true) and text:find(">step<", 1, true))
        local open, close = select(2, text:gsub("<%a", "")), select(2, text:gsub("</%a", ""))
            + select(2, text:gsub("/>", ""))
        assert.equal(open, close)
        assert.is_true(#text < 5000) -- equal columns are one step
        assert.matches("exists", (helper.failure(mb.plot.areas, {{1}}, {file = path})))
        mb.plot.areas({{1}}, {file = path, overwrite = true})
    end)

    it("are PNG files of the size that was asked for", function()
        local path = folder .. "/l.png"
        mb.plot({1, 4, 2}, {file = path, width = 320, height = 200})
        local bytes = files.read(path)
        assert.equal("\137PNG", bytes:sub(1, 4))
        assert.same({320, 200, 25}, {(">I4I4"):unpack(bytes, 17)})
        assert.matches("'.*l.jpg' must end in .png or .svg",
            (helper.failure(mb.plot, {1}, {file = folder .. "/l.jpg"})))
    end)

    it("are text of letters and dots", function()
        local text = mb.plot({0, 1}, {text = true, width = 40, height = 10})
        assert.is_nil(text:find "\27")
        local lines = {}
        for line in (text .. "\n"):gmatch "(.-)\n" do
            lines[#lines + 1] = line
            assert.is_true(utf8.len(line) <= 40)
        end
        assert.equal(10, #lines)
        assert.matches("1⡇", lines[2])
        assert.matches("^   0⠉", lines[9])
    end)

    it("show names of any bytes and numbers of any size", function()
        local path = folder .. "/names.svg"
        mb.plot({1, 2}, {file = path, names = {("\u{e9}"):rep(30)}, title = "\xff and \u{b5}m"})
        local text = files.read(path)
        assert.truthy(utf8.len(text))
        assert.truthy(text:find("..." .. ("\u{e9}"):rep(23) .. "<", 1, true))
        assert.truthy(text:find(">? and ??m<", 1, true))
        for _, values in ipairs {{0 / 0}, {1e308, -1e308}, {1e-320, 2e-320}, {1e16, 1e16 + 2}} do
            assert.truthy(utf8.len(mb.plot(values, {text = true, names = {"\xe9"}})))
        end
        assert.truthy(mb.plot.areas({{1e300, 0}}, {text = true, form = "bytes"}))
    end)

    it("are one line where there is no terminal", function()
        assert.equal("1 line of at most 4 values from 1 to 9; file = \"plot.svg\" draws them\n",
            printed(mb.plot, {1, 9, 3, 0 / 0}))
        local a <close> = mb.arange(100)
        assert.matches("^100 values from 1 to 100 in 10 bars;", printed(mb.plot.histogram, a,
            {bins = 10}))
    end)

    it("show what is wrong with their values", function()
        assert.matches("value 2 of values is a string", (helper.failure(mb.plot, {1, "x"})))
        assert.matches("values has no numbers", (helper.failure(mb.plot, {})))
        assert.matches("x has 2 numbers, line 1 has 3", (helper.failure(mb.plot, {1, 2, 3},
            {x = {1, 2}})))
        local volume <close> = mb.zeros {2, 3, 4}
        assert.matches("values has 3 axes", (helper.failure(mb.plot, volume)))
        assert.matches("band 2 has 1 numbers, band 1 has 2",
            (helper.failure(mb.plot.areas, {{1, 2}, {1}})))
        assert.matches("bands are numbers of 0 or more", (helper.failure(mb.plot.areas, {{-1}})))
        local bad <close> = mb.array {1, 0 / 0, math.huge}
        assert.matches("give range = {low, high}", (helper.failure(mb.plot.histogram, bad)))
        assert.matches("3 values from 0 to 2 in 4 bars; 1 .*; 1 ", printed(mb.plot.histogram, bad,
            {range = {0, 2}, bins = 4}))
    end)

    it("take of the pools what a dry run says, and keep nothing", function()
        local number = 0
        local function work()
            number = number + 1
            local a <close> = mb.random({40, 50}, {dtype = "f64"})
            mb.plot.histogram(a, {file = ("%s/h%d.png"):format(folder, number), width = 100,
                height = 80})
            mb.plot(a[3], {file = ("%s/p%d.png"):format(folder, number), width = 200, height = 100})
            mb.pool.plot {file = ("%s/t%d.png"):format(folder, number), width = 200, height = 100}
            mb.show(a)
            mb.show(a, {protocol = "blocks", width = 30, height = 10})
        end
        local dry, real
        printed(function() dry = mb.dry_run(work) end)
        assert.is_nil(mb.system.stat(folder .. "/h1.png"))
        printed(function() real = mb.ledger(work) end)
        assert.same({}, mb.ledger_diff(dry, real))
        assert.is_true(real.peak >= 200 * 100 * 3)
        assert.truthy(mb.system.stat(folder .. "/t2.png"))
    end)
end)

describe("the memory over time", function()
    it("is stacked so that the bands are what is live", function()
        local events = {
            {action = "free", bytes = 512, live = 1536, block = 1, owner = "x:1", tag = ""},
            {action = "alloc", bytes = 1024, live = 2560, block = 2, owner = "x:2", tag = "filter"},
            {action = "refused", bytes = 9, live = 2560, owner = "x:9", tag = ""},
            {action = "alloc", bytes = 512, live = 3072, block = 3, owner = "x:3", tag = ""},
            {action = "free", bytes = 1024, live = 2048, block = 2, owner = "x:7", tag = ""},
        }
        local made = timeline.chart(events, "tag", "events", 4096)
        assert.equal(3072, made.peak)
        assert.equal(4, made.at)
        assert.same({3.5, 3072, "peak 3 KiB, event 4: x:3"}, made.marks[1])
        assert.same({4096, "budget 4 KiB"}, made.levels[1])
        assert.equal("before", made.bands[1].name)
        local by_name = {}
        for _, band in ipairs(made.bands) do
            by_name[band.name] = band.values
        end
        assert.same({0, 1024, 1024, 1024, 0}, by_name.filter)
        assert.same({0, 0, 0, 512, 512}, by_name["no tag"])
    end)

    it("is that of the pool, by owner, tag and end", function()
        local kept <close> = mb.zeros {1000}
        for i = 1, 12 do -- more owners than bands
            local make = load(("\n"):rep(i) .. "return require('moonbeam').zeros {256 * " .. i
                .. "}",
                "=many")
            make():release()
        end
        local _ <close> = mb.gaussian_filter(kept, {3})
        local events = mb.pool.trace()
        for _, by in ipairs {"owner", "tag", "end"} do
            local made = timeline.chart(events, by, "time", 1 << 30)
            assert.is_true(#made.bands <= 7)
            for i, event in ipairs(events) do
                local sum = 0
                for _, band in ipairs(made.bands) do
                    sum = sum + band.values[i]
                end
                assert.equal(event.live, sum)
            end
        end
        assert.matches("^peak .* bytes%) at event %d+ of %d+, by .*; budget ",
            printed(mb.pool.plot))
        local text = mb.pool.plot {text = true, by = "end", width = 90}
        assert.matches("budget", text)
        assert.matches("peak", text)
        assert.matches("scratch", text)
        assert.matches("by is the string 'colour'; it must be owner, tag or end",
            (helper.failure(mb.pool.plot, {by = "colour"})))
    end)

    it("names the budget and the peak in a file", function()
        local events = {{action = "alloc", bytes = 1 << 20, live = 1 << 20, block = 1,
            owner = "a.lua:1", tag = ""}}
        local made = timeline.chart(events, "owner", "events", 2 << 20)
        local text = svg.text(function(metrics) return chart.layout(made, metrics) end)
        assert.truthy(text:find(">budget 2 MiB<", 1, true))
        assert.truthy(text:find(">peak 1 MiB, event 1: a.lua:1<", 1, true))
        assert.truthy(text:find("stroke-dasharray", 1, true))
        made = timeline.chart(events, "owner", "events", 200 << 20)
        text = svg.text(function(metrics) return chart.layout(made, metrics) end)
        assert.truthy(text:find(">budget 200 MiB, beyond the chart<", 1, true))
    end)
end)

describe("pictures in the terminal", function()
    local picture = {width = 5, height = 7, channels = 1, bytes = ""}
    for i = 0, 34 do
        picture.bytes = picture.bytes .. string.char(i * 7)
    end

    it("are what the terminal says it can show", function()
        assert.equal("kitty", terminal.read_answer "\27_Gi=31;OK\27\\\27[?62;4c")
        assert.equal("sixel", terminal.read_answer "\27[?62;22;4c")
        assert.equal("blocks", terminal.read_answer "\27[?1;2c")
        assert.equal("blocks", terminal.read_answer "\27_Gi=31;ENOTSUP\27\\\27[?64;1c")
        assert.equal("blocks", terminal.read_answer(nil))
    end)

    it("are in base 64 for kitty, in chunks", function()
        assert.equal("TW9vbmJlYW0=", terminal.base64 "Moonbeam")
        assert.equal("TQ==", terminal.base64 "M")
        assert.equal("", terminal.base64 "")
        local large = {width = 80, height = 60, channels = 3, bytes = ("\1\2\3"):rep(4800)}
        local data, count = {}, 0
        for keys, part in terminal.text(large, "kitty"):gmatch "\27_G([^;]*);([^\27]*)\27\\" do
            count = count + 1
            assert.equal(count == 1, keys:find "a=T,f=24,q=2,s=80,v=60" ~= nil)
            assert.equal(#part == 4096 and "1" or "0", keys:match "m=(%d)")
            data[count] = part
        end
        assert.equal(5, count)
        assert.equal(terminal.base64(large.bytes), table.concat(data))
    end)

    it("are sixels that decode to the picture", function()
        local text = terminal.text(picture, "sixel")
        local palette = {}
        for number, r, g, b in text:gmatch "#(%d+);2;(%d+);(%d+);(%d+)" do
            assert.is_true(r == g and g == b)
            palette[tonumber(number)] = tonumber(r) * 255 / 100
        end
        local body = text:match "#63;2;100;100;100(.*)\27\\"
        local top, x, color, seen = 0, 0, nil, 0
        local function put(letter, times)
            for _ = 1, times do
                for dy = 0, 5 do
                    if letter:byte() - 63 >> dy & 1 == 1 then
                        local at = (top + dy) * picture.width + x + 1
                        assert.near(picture.bytes:byte(at), palette[color], 4.1)
                        seen = seen + 1
                    end
                end
                x = x + 1
            end
        end
        while body ~= "" do
            local times, letter, rest = body:match "^!(%d+)([?-~])(.*)$"
            if not times then
                times, letter, rest = 1, body:match "^([?-~])(.*)$"
            end
            if letter then
                put(letter, tonumber(times))
            else
                local what
                what, rest = body:match "^([#$-]%d*)(.*)$"
                color = tonumber(what:match "#(%d+)") or color
                x = what:find "^[$-]" and 0 or x
                top = what == "-" and top + 6 or top
            end
            body = rest
        end
        assert.equal(picture.width * picture.height, seen)
    end)

    it("are half blocks of two colors, also in 256 colors, and letters without color", function()
        local text = terminal.text(picture, "blocks", "full")
        local y = 0
        for line in text:gmatch "([^\n]+)\n" do
            local front, back, x = nil, nil, 0
            for kind, gray, letter in line:gsub("\27%[49m",
                ""):gmatch "\27%[([34]8);2;(%d+);%d+;%d+m()" do
                front, back = kind == "38" and gray or front, kind == "48" and gray or back
                if line:gsub("\27%[49m", ""):sub(letter, letter + 2) == "▀" then
                    assert.equal(picture.bytes:byte(y * 5 + x + 1), tonumber(front))
                    if y + 1 < picture.height then
                        assert.equal(picture.bytes:byte((y + 1) * 5 + x + 1), tonumber(back))
                    end
                    x = x + 1
                end
            end
            assert.equal(5, x)
            assert.equal("\27[0m", line:sub(-4))
            y = y + 2
        end
        assert.equal(8, y)
        assert.equal("\27[38;2;0;0;0m\27[48;2;255;255;255m▀\27[0m\n",
            terminal.text({width = 1, height = 2, channels = 1, bytes = "\0\255"}, "blocks",
                "full"))
        assert.is_nil(terminal.text(picture, "blocks", true):find ";2;")
        assert.is_nil(terminal.text(picture, "blocks", false):find "\27")
        local ramp = {width = 2, height = 1, channels = 1, bytes = "\0\255"}
        assert.equal(" @\n", terminal.text(ramp, "text"))
    end)

    it("are one line of text elsewhere", function()
        local volume <close> = mb.arange(24):reshape(2, 3, 4)
        assert.equal("f32 array 2 x 3 x 4, 96 B, host: min 1, mean 12.5, max 24\n",
            printed(mb.show, volume))
        local empty <close> = mb.zeros {0, 3}
        assert.matches("array is empty %(0 x 3%)", (helper.failure(mb.show, empty)))
    end)

    it("show the slice that was asked for, in its window", function()
        local volume <close> = mb.zeros {3, 8, 8}
        volume[2]:view({1, 4}):fill(10)
        local text = printed(mb.show, volume, {protocol = "text", width = 8, height = 4})
        assert.equal("@@@@@@@@\n@@@@@@@@\n\n\nf32 array 3 x 8 x 8, 768 B, host, slice 2 of 3; "
            .. "black 0, white 10\n", text)
        text = printed(mb.show, volume, {protocol = "text", width = 8, height = 4, slice = 1,
            range = {-1, 1}})
        assert.equal(("========\n"):rep(4), text:sub(1, 36):gsub("[^=\n]", "="))
        assert.matches("slice 1 of 3; black %-1, white 1", text)
        assert.matches("slice is 4; the array has 3", (helper.failure(mb.show, volume,
            {slice = 4, protocol = "text"})))
        local color <close> = mb.zeros({4, 4, 3}, {dtype = "u8"})
        text = printed(mb.show, color, {protocol = "sixel"})
        assert.matches("^\27P0;1q", text)
        local complex <close> = mb.zeros({2, 2}, {dtype = "c64"})
        assert.matches("a:abs", (helper.failure(mb.show, complex)))
        local values <close> = mb.arange(6)
        assert.matches("1 line of at most 6 values", printed(mb.show, values))
        assert.equal(printed(mb.show, color, {protocol = "sixel"}),
            printed(mb.plot.image, color, {protocol = "sixel"}))
        assert.matches("plot.image: array.*has 1 ax", (helper.failure(mb.plot.image, values)))
    end)

    it("are asked from a real terminal, which says sixel, or nothing", function()
        if not os.execute "command -v script >/dev/null 2>&1" then
            pending "there is no script(1)"
        end
        local folder <close> = setmetatable({name = files.folder()}, {__close = function(self)
            files.remove(self.name)
        end})
        files.write(folder.name .. "/show.lua", "local mb = require 'moonbeam'\n"
            .. "mb.show(mb.arange(64):reshape(8, 8))\nprint('then', io.read(2))\n")
        local function shown(answer)
            return (helper.run_program(("-c \"(sleep 0.4; printf '%s'; sleep 1.2; echo ok; sleep "
                .. "0.3) | TERM=xterm script -qec '%s %s/show.lua' /dev/null\""):format(answer,
                helper.program, folder.name), nil, "sh"))
        end
        local text = shown "\\\\033[?62;4c"
        assert.matches("\27P0;1q", text)
        assert.matches("then\tok", text)
        text = shown "\\\\033[?62c"
        assert.is_nil(text:find("\27P0;1q", 1, true))
        assert.matches("▀", text)
        assert.matches("then\tok", text)
    end)
end)
