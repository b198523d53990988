-- The help of functions: modules, search, and examples that run.

local mb = require "moonbeam"
local documentation = require "moonbeam.internal.documentation"
local examples = require "moonbeam.internal.prompt.examples"
local files = require "spec.support.files"
local help = require "moonbeam.help"
local helper = require "spec.helper"

-- All records: {name, operator}.
local function each_record(f)
    for _, name in ipairs(mb.op.list()) do
        f(name, true)
    end
    for _, record in ipairs((documentation.root())) do
        f(record.name)
    end
    for _, module in ipairs(documentation.modules()) do
        for _, record in ipairs(documentation.members(module)) do
            f(record.name)
        end
    end
end

describe("help", function()
    it("lists the modules with what they are for", function()
        local text = help.text()
        for _, name in ipairs(documentation.modules()) do
            local line = text:match("\n  " .. name .. " +([^\n]+)")
            assert(line and #line > 10, name)
        end
    end)

    it("finds words of names, options, summaries and texts", function()
        assert.matches("backproject", help.text "backproj")
        assert.matches("ramp_filter", help.text "parzen") -- only in its text
        assert.matches("mb.median_filter", help.text "median", 1, true)
        assert.matches("step paganin", help.text "paganin")
        assert.matches("there is no help on 'xyzzy'; help%(%) lists topics", (helper.failure(help.text, "xyzzy")))
    end)

    it("has the texts of all arguments in one column", function()
        local text = help.text "tomo.fbp"
        local column = #text:match "\n(  half_acquisition +)%S"
        for name, own in text:match "\narguments.*\nexample":gmatch "\n(  ([%l_]+) +)%f[%S]" do
            assert.equal(column, #name, own)
        end
        assert.matches("\n  size         odd extents", help.text "median_filter") -- 12 at least
    end)

    it("says a default once, as what it is", function()
        local text = help.text "tomo.fbp"
        assert.matches('center +rotation axis on the detector, 0%-based pixel centers\n.- default '
            .. '"auto", %(cols %- 1%) / 2\n', text)
        assert.matches("y1 and x1 are excluded\n.-; default the full slice\n", text)
        assert.is_nil(text:find "; default [^\n]*\n[^\n]*; default \"?auto\"?\n")
        assert.is_nil(text:find "[^\n]+; default [^\n]+\n[^\n]*default not given")
    end)

    it("shows an example of functions, methods and operators", function()
        assert.matches("\nexample\n  sino = mb.random%(.-\n  slices = mb.tomo.fbp%(sino, ",
            help.text "tomo.fbp")
        assert.matches('\nexample\n  mb.ramp_filter(mb.random({3, 5, 16}), {filter = "hann"})',
            help.text "ramp_filter", 1, true)
        assert.matches("\nexample\n  file = mb.h5.open", help.text "h5:read")
        assert.matches("\nexample\n  mb.random%(", help.text "array:view")
    end)

    it("has an example for every function, method and operator", function()
        each_record(function(name, operator)
            assert(examples(name, operator), name .. " has no example (internal/prompt/)")
        end)
    end)

    it("has examples that run as they are", function()
        local folder <close> = setmetatable({name = files.folder()}, {__close = function(self)
            files.remove(self.name)
        end})
        local text, status = helper.run_program(
            ("simulate %s/scan.h5 --size 64 --rows 4 --angles 30 "
            .. "--quiet"):format(folder.name))
        assert.equal(0, status, text)
        local calls, seen = {}, {}
        each_record(function(name, operator)
            local example = examples(name, operator)
            if example and not seen[name] then
                seen[name] = true
                calls[#calls + 1] = ("try(%q, %q)"):format(name, example)
            end
        end)
        assert.is_true(#calls > 350)
        files.write(folder.name .. "/all.lua", [[
            local mb = require "moonbeam"
            mb.images.write("stack.tif", mb.random({4, 16, 16}))
            local out = mb.result.create("volume.h5", {shape = {4, 8, 8}})
            out:write(mb.zeros({4, 8, 8}), 1)
            out:finish()
            local count, failed = 0, {}
            -- At the prompt an expression needs no return: so here.
            local function compiled(text, name, env)
                local last = text:match("([^\n]*)$")
                return load(text, "=" .. name, "t", env)
                    or load(text:sub(1, #text - #last) .. "return " .. last, "=" .. name, "t", env)
                    or assert(load("return " .. text, "=" .. name, "t", env))
            end
            local function try(name, text)
                local env = setmetatable({mb = mb, print = function() end}, {__index = _G})
                local ok, err = pcall(compiled(text, name, env))
                if not ok then
                    failed[#failed + 1] = ("; %s: %s"):format(name, tostring(err):gsub("\n", " "))
                end
                count = count + (ok and 1 or 0)
                for _, value in pairs(env) do
                    pcall(function() value:close() end)
                end
                mb.collect()
            end
        ]] .. table.concat(calls, "\n") .. "\nprint('ran ' .. count .. table.concat(failed))\n")
        text = helper.run_program(
            ("-c \"cd '%s' && '%s' all.lua 2>&1 >out.txt; tail -n 1 out.txt\""):format(
            folder.name, helper.program), nil, "sh")
        assert.equal(("ran %d\n"):format(#calls), text)
    end)
end)
