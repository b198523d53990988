-- The prompt, driven by a fake reader; and the help that it shows.

local mb = require "moonbeam"
local repl = require "moonbeam.internal.repl"
local helper = require "spec.helper"

-- Feeds lines to the prompt and returns what it wrote, and the prompts it showed; both without what
-- they say about memory. Then both as they were.
local function session(lines, env)
    local written, prompts, raw_prompts = {}, {}, {}
    local at = 0
    env = env or setmetatable({}, { __index = _G })
    repl.run {
        env = env,
        read = function(prompt)
            raw_prompts[#raw_prompts + 1] = prompt
            prompts[#prompts + 1] = prompt:gsub("^%d+: ?", ""):gsub(
                "^[%d.]+ %a*B/[%d.]+ %a*B(> )$", "%1")
            at = at + 1
            if lines[at] == "^C" then
                return nil, "interrupted"
            end
            return lines[at]
        end,
        write = function(text)
            written[#written + 1] = text
        end,
    }
    local raw = table.concat(written)
    local output = ("\n" .. raw):gsub("\n%-%- [^\n]*", ""):sub(2)
    return output, prompts, raw, raw_prompts
end

describe("memory at the prompt", function()
    it("is in the prompt, and after every statement that allocated", function()
        local device = mb.device("host")
        local original = device:budget()
        mb.collect()
        device:budget(1 << 30)
        local _, _, output, prompts = session { "a = mb.zeros{1024}",
            "b = a:cast('f64') b:release()", "1 + 1", "a:release()",
            "local f = nil" }
        device:budget(original)
        assert.equal("-- host: +4 KiB, peak +4 KiB\n-- host: +0 B, peak +8 KiB\n2\n-- host: -4 KiB, peak +0 B\n\n", output)
        assert.same({ "1: 0 B/1 GiB> ", "2: 4 KiB/1 GiB> ", "3: 4 KiB/1 GiB> ", "4: 4 KiB/1 GiB> ",
            "5: 0 B/1 GiB> ", "6: 0 B/1 GiB> " }, prompts)
    end)

    it("shows the open tags, which a later line can end", function()
        local _, prompts = session { "mb.pool.tag('filter')", "mb.pool.tag('inner')",
            "mb.pool.end_tag()", "mb.pool.end_tag('filter')" }
        local shown = {}
        for i, prompt in ipairs(prompts) do
            shown[i] = prompt:match "%[.-%] " or ""
        end
        assert.same({ "", "[filter] ", "[filter, inner] ", "[filter] ", "" }, shown)
    end)

    it("can be listed: names, shapes, bytes, ages, lines", function()
        local first = mb.zeros { 3, 5 }
        local holder = { row = first[2] }
        local list = mb.mem()
        assert.equal(2, #list)
        assert.equal("first", list[1].name)
        assert.equal("holder.row", list[2].name)
        assert.same({ 3, 5 }, list[1].shape)
        assert.is_false(list[1].view)
        assert.is_true(list[2].view)
        assert.equal(512, list.bytes)
        assert.equal(2, list[1].references)
        assert.matches("repl_spec.lua:%d+", list[1].owner)
        assert.is_true(list[1].age >= 0 and list[1].age < 100)
        assert.matches("^name +array +bytes +age +line\nfirst +f32 3 x 5 +512 B +%d+ ms +[^\n]+\nholder.row +f32 5 +view",
            tostring(list))
        assert.matches("\n2 arrays, 512 B$", tostring(list))
        first:release()
        holder.row:release()
        assert.equal("no arrays", tostring(mb.mem()))
    end)

    it("can be planned before an expression runs", function()
        local env = setmetatable({}, { __index = _G })
        local _, _, output = session({ "mb.plan(\"mb.zeros{256} + 1\")" }, env)
        assert.matches("2 +binary +plan:1 +1 KiB[^\n]+<%- peak", output)
        assert.matches("peak 2 KiB %(2048 bytes%), not run\n", output)
        assert.equal(1024, mb.plan(function(n) mb.zeros { n }:release() end, 256).peak)
        assert.matches("plan:1", (helper.failure(mb.plan, "1 +")))
    end)
end)

describe("the prompt", function()
    it("shows values and runs statements", function()
        assert.equal("3\n\n", session { "1 + 2" })
        assert.equal("3\n\n", session { "=1 + 2" })
        assert.equal("1\ta\tnil\n\n", session { "1, 'a', nil" })
        assert.equal("\n", session { "" })
        assert.equal("5\n\n", session { "x = 5", "x" })
        assert.equal("{1, 2, a = {3}}\n\n", session { "{1, 2, a = {3}}" })
        assert.equal("1\n\n", session { "1;" })
    end)

    it("goes on over several lines", function()
        local output, prompts = session { "for i = 1, 2 do", "y = i", "end", "y", "1 +", "2" }
        assert.equal("2\n3\n\n", output)
        assert.same({ "> ", ">> ", ">> ", "> ", "> ", ">> ", "> " }, prompts)
    end)

    it("numbers the lines of the session, so that owners tell which line", function()
        local env = setmetatable({}, { __index = _G })
        local _, _, raw, prompts = session({ "1", "a = mb.zeros{2}", "x = {", "b = mb.zeros{3}",
            "}",
            "y y", "mb.mem()[1].owner, mb.mem()[2].owner", "a:release() x.b:release()" }, env)
        assert.matches("stdin:2\tstdin:4\n", raw)
        assert.matches("\nstdin:6: .*near 'y'\n", raw)
        assert.matches("^3: ", prompts[3])
        assert.equal(">> ", prompts[4])
        assert.matches("^6: ", prompts[6])
        assert.matches("^7: ", prompts[7])
    end)

    it("shows the user's lines that led to an error of the library", function()
        local output = session { "function f(x)", "return (mb.binary(x, 'add'))", "end",
            "function g(x) local y = f(x) return y end", "g(1)" }
        assert.matches("^stdin:2: binary: [^\n]+\n  called from stdin:4, stdin:5\n\n$", output)
        assert.is_nil(session({ "mb.binary(1)" }):find "called from")
    end)

    it("does what is meant by words that are not Lua", function()
        local shown = {}
        local original = mb.help
        rawset(mb, "help", function(subject) shown[#shown + 1] = subject or "overview" end)
        local ok, why = pcall(session, { "?tomo.fbp", "?", "help", "help tomo.fbp", "? array:view",
            "help 'pad'" })
        rawset(mb, "help", original)
        assert(ok, why)
        assert.same({ "tomo.fbp", "overview", "overview", "tomo.fbp", "array:view", "pad" }, shown)
        for _, word in ipairs { "exit", "quit", "exit()", " quit ;" } do
            assert.equal("1\n\n", (session { "1", word, "2" }))
        end
        assert.equal("3\n\n", (session { "exit = 3", "exit" })) -- a variable of that name
        assert.equal("7\n\n", (session { "return", "7" }))
    end)

    it("takes an expression that ends in a comment", function()
        assert.equal("3\n\n", (session { "1 + 2 -- three" }))
    end)

    it("shows errors in one line, with a traceback for others", function()
        assert.matches("^stdin:1: .*near 'x'\n\n$", (session { "x x" }))
        local output = session { "mb.zeros({2}, {dtpye = 'f32'})" }
        assert.equal("stdin:1: zeros: unknown option 'dtpye'; did you mean 'dtype'?\n\n", output)
        output = session { "error('boom')" }
        assert.matches("^stdin:1: boom\nstack traceback:\n", output)
        assert.is_nil(output:find("repl.lua", 1, true))
        assert.matches("^oops\n\n$",
            (session { "error(setmetatable({}, {__tostring = function() return 'oops' end}))" }))
    end)

    it("blames the line that was typed for an error of the Lua half", function()
        local output = session {'mb.images.write("x.tif")'}
        assert.matches("stdin:1: images.write: array is missing", output, 1, true)
    end)

    it("drops a line on Ctrl-C, and goes on after one in running code", function()
        local output, prompts = session { "for i = 1, 2 do", "^C", "7" }
        assert.equal("\n7\n\n", output)
        assert.same({ "> ", ">> ", "> ", "> " }, prompts)
        -- Not os.execute, during which the program ignores the signal.
        output = session { "io.popen('kill -INT ' .. mb.system.pid()):close() while true do end",
            "8" }
        assert.equal("stdin:1: interrupted by Ctrl-C\n8\n\n", output)
        assert.is_false(mb.system.cancelled())
    end)

    it("shows a corner of an array", function()
        local env = setmetatable({}, { __index = _G })
        local output = session({ "a = mb.arange(960):reshape(3, 16, 20)", "a",
            "a[1][1]:view({1, 3})",
            "a:release()", "a", "mb.zeros{0, 3}", "mb.array(5)",
            "mb.array({{1, -2}}, {dtype = 'c64'})",
        }, env)
        local lines = {}
        for line in output:gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.equal("f32 3 x 16 x 20, 3.75 KiB, host at [1, :, :]", lines[1])
        assert.equal("    1    2    3    4    5    6    7    8  ...", lines[2])
        assert.equal("  101  102  103  104  105  106  107  108  ...", lines[7])
        assert.equal("  ...", lines[8])
        assert.equal("f32 3, 12 B, host", lines[9])
        assert.equal("  1  2  3", lines[10])
        assert.equal("released array", lines[11])
        assert.equal("f32 0 x 3, 0 B, host", lines[12])
        assert.equal("  5", lines[14])
        assert.equal("  1-2i", lines[16])
    end)

    it("offers mb and help, and custom prompts", function()
        local env = setmetatable({ _PROMPT = "moon> " }, { __index = _G })
        local output, prompts = session({ "type(mb), type(help)" }, env)
        assert.equal("table\tfunction\n\n", output)
        assert.equal("moon> ", prompts[1])
    end)
end)

describe("the history of the prompt", function()
    local files = require "spec.support.files"

    -- What a terminal shows when these keys are typed, in a home folder.
    local function terminal(home, keys)
        local program = helper.program
        files.write(home .. "/keys", keys)
        return helper.run_program(
            ("-c \"(sleep 0.5; cat '%s/keys'; sleep 1) | HOME='%s' TERM=xterm "
            .. "script -qec '%s' /dev/null\""):format(home, home, program), nil, "sh")
    end

    it("keeps the line breaks of a statement, also for the next session", function()
        if not os.execute "script -qec true /dev/null >/dev/null 2>&1 </dev/null" then
            pending "there is no script(1), or no pseudo-terminal"
        end
        local home <close> = setmetatable({name = files.folder()}, {__close = function(self)
            files.remove(self.name)
        end})
        local shown = terminal(home.name, "for i = 41, 41 do -- why\nprint(i + 1)\nend\n")
        assert.matches("42\r?\n", shown)
        local file = io.open(home.name .. "/.moonbeam_history")
        if not file then
            pending "there is no line editor"
        end
        assert.equal("for i = 41, 41 do -- why\vprint(i + 1)\vend\n", file:read "a")
        file:close()
        shown = terminal(home.name, "\27[A\n")
        assert.matches("42\r?\n", shown)
        shown = terminal(home.name, "\16\n") -- Ctrl-P
        assert.matches("42\r?\n", shown)
    end)
end)

describe("completion", function()
    local array
    local env = {}

    before_each(function()
        array = mb.zeros { 3 }
        env = { mb = mb, volume = array, text = "x" }
    end)

    after_each(function()
        array:release()
    end)

    local function has(list, name)
        for _, candidate in ipairs(list) do
            if candidate == name then
                return true
            end
        end
        return false
    end

    it("knows names, members and methods", function()
        assert.same({ "volume" }, repl.complete("vol", "", env))
        assert.truthy(has(repl.complete("mb.", "", env), "mb.zeros"))
        assert.truthy(has(repl.complete("mb.pl", "", env), "mb.plan"))
        assert.truthy(has(repl.complete("mb.pool.st", "x = ", env), "mb.pool.stats"))
        assert.same({ "volume:transpose" }, repl.complete("volume:tr", "", env))
        assert.truthy(has(repl.complete("volume.", "", env), "volume.shape"))
        assert.is_false(has(repl.complete("volume:", "", env), "volume:shape"))
        assert.truthy(has(repl.complete("text:", "", env), "text:upper"))
        assert.same({ "while" }, repl.complete("whi", "", env))
        assert.same({}, repl.complete("nothing.at.all", "", env))
    end)

    it("knows the options of operators", function()
        assert.same({ "offset = ", "out = " }, repl.complete("o", "y = mb.convert(volume, 'f32', {",
            env))
        assert.same({ "scale = " }, repl.complete("sc", "mb.convert(f(1, {2}), 'f32', {out = x, ",
            env))
        assert.same({ "volume" }, repl.complete("vol", "mb.convert(", env))
    end)

    it("knows the options of functions and methods", function()
        assert.same({ "half_acquisition = " }, repl.complete("half", "mb.tomo.fbp(a, b, {", env))
        assert.same({ "scale = " }, repl.complete("sc", "volume:cast('f32', {", env))
    end)

    it("knows the values of options and arguments", function()
        assert.same({ "hamming", "hann" }, repl.complete("ha", 'mb.ramp_filter(a, {filter = "',
            env))
        assert.same({ "hann" }, repl.complete("hann", "mb.tomo.fbp(a, b, {mode = 'fast', filter='",
            env))
        assert.same({ "lak" }, repl.complete("l", 'mb.ramp_filter(a, {filter = "ram-', env))
        assert.same({ "mul" }, repl.complete("mu", 'mb.binary(a, "', env))
        assert.same({}, repl.complete("ha", 'mb.ramp_filter(a, {nothing = "', env))
        assert.same({}, repl.complete("ha", 'print("', env))
    end)

    it("knows what help knows", function()
        assert.same({ "tomo.fbp" }, repl.complete("tomo.fbp", "?", env))
        assert.truthy(has(repl.complete("ramp_f", 'help("', env), "ramp_filter"))
        assert.truthy(has(repl.complete("array:vi", "help ", env), "array:view"))
    end)
end)

describe("help", function()
    local help = require "moonbeam.help"

    it("comes from the descriptors", function()
        local text = help.text("convert")
        assert.matches("^result = mb.convert%(a, dtype %[, {", text)
        assert.matches("scale", text)
        assert.matches("default 1", text)
        assert.equal(text, help.text(mb.convert))
        for _, name in ipairs(mb.op.list()) do
            assert.truthy(help.text():find(name, 1, true))
        end
    end)

    it("knows topics, functions and modules", function()
        assert.matches("array.zeros.*array:view", help.text("array"))
        assert.matches("largest n", help.text(mb.plan.max_count))
        assert.matches("largest n", help.text("plan.max_count"))
        assert.matches("peak", help.text(mb.plan))
        assert.matches("scan.open.*tomo.reconstruct", help.text("tomography"))
        assert.matches("h5.open", help.text("files"))
        assert.matches("did you mean 'convert'", (helper.failure(help.text, "convrt")))
    end)

    it("finds words that users of other programs bring", function()
        for word, ours in pairs {convolve = "mb.convolution", ifftshift = "mb.fft.ifftshift",
            padding = "tomo.fbp", paganin = "mb.phase_filter", used_bytes = "mb.pool.stats",
            estimate = "mb.op.estimate", calc_max_slices = "mb.op.max_slices",
            muladd = "mb.mul_add", wrap = "boundary"} do
            assert.truthy(help.text(word):find(ours, 1, true), word)
        end
        assert.matches("fourier_reconstruct", help.text("pad_width")) -- an option
        assert.matches("backproject", help.text("backproj"))
    end)

    it("lists what a word is part of the name of, before what only speaks of it", function()
        local text = help.text("read")
        assert.matches("^mb.scan.open for scans", text)
        assert.matches("\n  h5:read  +Reads a dataset", text)
        assert.matches("\n  images.read ", text)
        for _, other in ipairs {"stream.", "volumes.", "otf", "array:to"} do
            assert.is_nil(text:find("\n  " .. other, 1, true), other)
        end
        assert.matches("gradient_consensus .*rl_split_ratio ", help.text("photons"))
    end)

    it("knows methods, also by a dot", function()
        assert.matches("scan:projections([rows, options])", help.text("scan:projections"), 1, true)
        assert.equal(help.text("h5:read"), help.text("h5.read"))
    end)

    it("suggests names for mistyped ones, and what there is for those of other programs", function()
        assert.matches("did you mean 'tomo.fbp'?", (helper.failure(mb.help.text, "tomo.fpb")),
            1, true)
        assert.matches("moonbeam has no 'convolve'; mb.convolution(image, psf) convolves",
            (helper.failure(function() return mb.convolve end)), 1, true)
    end)

    it("names functions as they are called, and says what each of a module does", function()
        assert.matches("^mb.tomo.reconstruct%(sino, angles %[, options%]%)\n",
            help.text("tomo.reconstruct"))
        assert.matches("tomo.fbp +Filtered back%-projection", help.text("tomo"))
        for name, member in pairs(mb.tomo) do
            assert.truthy(type(member) ~= "function"
                or not help.text("tomo"):find(name .. " +function\n"))
        end
    end)

    it("says of reconstructions their shapes, units, formula and errors", function()
        for _, name in ipairs { "tomo.reconstruct", "tomo.fbp", "fourier_reconstruct",
            "backproject" } do
            local text = help.text(name)
            for _, words in ipairs { { "angle, column", "angles, columns" },
                { "radians", "%(rad%)" }, { "%(row, y, x%)" },
                -- the year of a paper is a source
                { "per pixel" }, { "%f[%d][12][90]%d%d%f[%D]" }, { "Errors: " } } do
                local found = false
                for _, pattern in ipairs(words) do
                    found = found or text:find(pattern) ~= nil
                end
                assert.is_true(found, name .. " lacks " .. words[1])
            end
        end
    end)
end)
