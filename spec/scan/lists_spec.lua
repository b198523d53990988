-- Lists that options give: typed, in texts as people and instruments write them, in datasets.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local lists = require "moonbeam.scan.lists"
local mb = require "moonbeam"

describe("a list", function()
    local shell

    setup(function()
        shell = commands.folder()
    end)

    teardown(function()
        shell:remove()
    end)

    local function facts(count)
        return {op = "scan.open", option = "angles", what = "angles", most = 1000,
            fits = function(n) return n == count end}
    end

    -- The numbers of a text, of which `count` are expected; `column`: ":2".
    local function read(text, count, column)
        files.write(shell:path "list.txt", text)
        return lists.written(shell:path "list.txt" .. (column or ""), facts(count))
    end

    local function refused(text, count, column)
        local message, problem = helper.failure(read, text, count, column)
        assert.equal("angles", problem.arg)
        return message, problem.code
    end

    it("may be typed", function()
        assert.same({0, 0, 180, 180}, lists.written("0,0,180,180", facts(4)))
        assert.same({-1.5, 2e3, 0.5}, lists.written("-1.5, 2e3;.5", facts(3)))
        assert.same({7}, lists.written("7", facts(1)))
        for _, text in ipairs {"0,x", "nan", "0x10", "1:2", "", ",", "angles", "1e999"} do
            assert.is_nil(lists.typed(text))
        end
        local message = helper.failure(lists.read, {files = {}}, "0,1,oops", facts(3))
        assert.matches("cannot read the angles: '0,1,oops' is neither a list of numbers nor a file "
            .. "nor a dataset", message, 1, true)
    end)

    it("in a text is between spaces, commas, tabs, semicolons or line ends", function()
        local expected = {0, 0.5, 1}
        for _, text in ipairs {"0 0.5 1", "0,0.5,1", "0, 0.5, 1\n", "0\n0.5\n1\n", "0\r\n0.5\r\n1",
            "0\t0.5\t1", "0;0.5;1;", "# angles\n0 # first\n\n0.5\n1\n", "\239\187\1910\n0.5\n1",
            "angle (deg)\n0\n0.5\n1", "\239\187\191Angle\r\n0\r\n0.5\r\n1\r\n", "0\r0.5\r1",
            "0,0\n0,5\n1,0\n", "0,00\n0,50\n1,00", '"0"\n"0.5"\n"1"', "0;0,5;1", "0,0 0,5 1,0",
            "0.000000000000000000e+00\n5.000000000000000000e-01\n1.0e+00\n"} do
            assert.same(expected, read(text, 3), text)
        end
    end)

    it("of several columns is the one that does not count the lines", function()
        for _, text in ipairs {"0 10.5\n1 20.5\n2 30.5", "1,10.5\n2,20.5\n3,30.5",
            "10.5\t1\n20.5\t2\n30.5\t3", "1;10,5\n2;20,5\n3;30,5\n", "n;angle\n1;10,5\n2;20,5\n3;30,5",
            "0 10,5\n1 20,5\n2 30,5", "0 1 10.5\n1 2 20.5\n2 3 30.5"} do
            assert.same({10.5, 20.5, 30.5}, read(text, 3), text)
        end
        assert.same({0, 1, 2}, read("0 0.000\n1 1.000\n2 2.000", 3))
        assert.same({0, 1, 2}, read("1 0.0\n2 1.0\n3 2.0", 3))
        assert.same({0, 1, 2}, read("0,000\n1,000\n2,000", 3))
        assert.same({1, 2, 3, 4}, read("1 2\n3 4", 4)) -- no columns: so many are expected
        assert.same({1, 3, 2, 4, 5}, read("1 3\n2 4\n5", 5))
        -- a list that is longer than what there is, as of a scan that is being written
        assert.same({10.5, 20.5, 30.5}, read("1 10.5\n2 20.5\n3 30.5", 2))
    end)

    -- A list of numbers as somebody may write it: the text, and the numbers.
    local function random_list(random)
        local function one_of(list)
            return list[random(#list)]
        end
        local count, form = random(3, 90), one_of {"%.3f", "%.1f", "%.6e", "%g", "%05.1f"}
        local first, step = one_of {0, -90, 1, 33.3}, one_of {1, 0.5, -1, 2, 180 / count, 137.5}
        local decimal = random(3) == 1
        local between = one_of(decimal and {" ", "\t", ";", "; "} or {" ", "\t", ";", ",", ", "})
        local lines, numbers, columns = {}, {}, one_of {"one", "before", "behind", "wrapped"}
        for i = 1, count do
            local word = form:format(first + step * (i - 1))
            numbers[i] = tonumber(word)
            word = decimal and word:gsub("%.", ",") or word
            lines[i] = columns == "before" and i .. between .. word
                or columns == "behind" and word .. between .. i - 1
                or word .. (columns == "wrapped" and i % 7 > 0 and between or "")
        end
        for i = 7, columns == "wrapped" and count or 0, 7 do
            lines[i] = lines[i] .. "\n"
        end
        local text = table.concat(lines, columns ~= "wrapped" and "\r\n" or nil)
        return one_of {"", "\239\187\191", "angle\n", "# n\n"} .. text, numbers
    end

    it("of any form is read, or refused as unclear, and never read wrongly", function()
        local seed, refusals = 1, 0
        local function random(low, high)
            seed = seed * 6364136223846793005 + 1442695040888963407
            local value = seed >> 33
            return high and low + value % (high - low + 1) or 1 + value % low
        end
        for _ = 1, 400 do
            local text, numbers = random_list(random)
            local ok, got = pcall(read, text, #numbers)
            if ok then
                assert.same(numbers, got, text)
            else
                assert.matches("name the column, %S+:%d$", (tostring(got)
                    :gsub("name one of them, such as", "name the column,")))
                refusals = refusals + 1
            end
        end
        assert.is_true(refusals <= 12, refusals)
    end)

    it("may be a column that is named", function()
        local text = "5 10.5 7\n6 20.5 8\n9 30.5 1\n"
        assert.same({10.5, 20.5, 30.5}, read(text, 3, ":2"))
        assert.same({7, 8, 1}, read(text, 3, ":3"))
        assert.same({1, 2, 3}, read("0,1\n1,2\n2,3", 3, ":2"))
        local message, code = refused(text, 3, ":4")
        assert.matches("list.txt', line 1: '5 10.5 7' has no column 4", message, 1, true)
        assert.equal("argument", code)
        assert.matches("has 3 columns (line 1 is '5 10.5 7'): name one of them, such as ",
            refused(text, 3), 1, true)
        -- the remedy of a message is followed
        local name = refused("0 1\n1 2\n2 3", 3):match "such as (%S+:2)"
        assert.same({1, 2, 3}, lists.written(name, facts(3)))
    end)

    it("that may be read in two ways is refused, with the way out", function()
        local message = refused("0,10\n1,11\n2,12", 3)
        assert.matches("line 1: '0,10' may be a number with a decimal comma, or two columns",
            message, 1, true)
        assert.same({10, 11, 12}, lists.written(message:match "name the column, (%S+:2)", facts(3)))
        assert.matches("may be a number with a decimal comma", refused("0,1\n1,2\n2,3", 3), 1, true)
        assert.same({0.1, 0.2, 0.3}, read("0,1\n0,2\n0,3", 3))
        assert.same({0.10, 1.11, 2.12}, read("0.10\n1.11\n2.12", 3))
    end)

    it("that is not understood is told with the line", function()
        for text, expected in pairs {["1\n2\nthree\n"] = "line 3: 'three' is not a number",
            ["1 2 three"] = "line 1: 'three' is not a number (the line is '1 2 three')",
            ["1\nnan\n"] = "line 2: 'nan' is not a number", ["nan\n1\n"] = "line 1: 'nan'",
            ["-inf 1"] = "line 1: '-inf'", ["1\n1e999"] = "line 2: '1e999'", ["0x10\n1"] =
            "line 1: '0x10'", [""] = "has no numbers", ["# nothing\n"] = "has no numbers",
            ["angle\n"] = "has no numbers, but 'angle'", ["1\0002"] = "has bytes of 0",
            ["\255\2541\0"] = "is text in UTF-16: save it as UTF-8",
            ["\137HDF\r\n\26\n"] = "is an HDF5 file: name its dataset"} do
            assert.matches(expected, refused(text, 2), 1, true)
        end
        assert.matches("'" .. ("x"):rep(40) .. "...'", refused("1\n" .. ("x"):rep(90), 2), 1, true)
    end)

    it("is read from ordinary files, and from what a shell pipes", function()
        assert(mb.system.mkdir(shell:path "folder"))
        assert.matches("is a folder, not a list of angles", (helper.failure(lists.written,
            shell:path "folder", facts(3))), 1, true)
        assert(os.execute(("mkfifo '%s'"):format(shell:path "pipe")))
        for _, name in ipairs {"/dev/zero", "/dev/null", shell:path "pipe"} do
            assert.matches("is not an ordinary file; copy it to one", (helper.failure(
                lists.written, name, facts(3))), 1, true)
        end
        files.write(shell:path "piped.lua", [[
            local lists = require "moonbeam.scan.lists"
            for _ = 1, 2 do
                print(table.concat(lists.written(arg[1], {what = "angles", fits = function(n)
                    return n == 3 end}), " "))
            end]])
        local text, ok = files.run(([[bash -c "'%s' '%s' <(seq 3)"]]):format(helper.program,
            shell:path "piped.lua"))
        assert.is_true(ok, text)
        assert.equal("1 2 3\n1 2 3\n", text)
    end)

    it("may be an array of NumPy or a dataset", function()
        local array <close> = mb.array({1, 2.5, 3}, {dtype = "f64", device = "host"})
        mb.npy.write(shell:path "list.npy", array)
        assert.same({1, 2.5, 3}, lists.written(shell:path "list.npy", facts(3)))
        do
            local file <close> = mb.h5.create(shell:path "list.h5")
            file:write("/a/list", array)
            file:finish()
        end
        local s <close> = setmetatable({files = {}, access = {}}, {__close = function(s)
            for _, file in ipairs(s.files) do
                file:close()
            end
        end})
        local values, file, path = lists.read(s, shell:path "list.h5" .. ":/a/list", facts(3))
        assert.same({{1, 2.5, 3}, "/a/list"}, {values, path})
        assert.equal(shell:path "list.h5", file.path)
    end)
end)
