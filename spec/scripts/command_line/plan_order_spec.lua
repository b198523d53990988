-- --plan and --device before the name of a command and behind it, as docs/memory.md has it.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"

describe("--plan and --device", function()
    local shell

    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "s.h5"
            .. " --size 32 --rows 4 --angles 20 --quiet")
    end)

    teardown(function()
        shell:remove()
    end)

    local function run(words)
        local text, ok = files.run(("'%s' %s 2>&1"):format(mb.system.program(), words))
        return text, ok
    end

    local MODEL <const> = "--na 1.2 --wavelength 500 --pixel 100 --step 200"
    local LINES <const> = {
        reconstruct = "S -o R.h5", simulate = "R.h5 --size 32 --rows 4 --angles 20",
        psf = "-o R.npy " .. MODEL, deconvolve = "I -o R.npy --iterations 2 " .. MODEL,
        convolve = "-i I -o R.npy",
    }

    for name, line in pairs(LINES) do
        it("of " .. name .. " stand before its name or behind it", function()
            local image <close> = mb.ones {6, 8, 9}
            mb.npy.write(shell:path "i.npy", image, {overwrite = true})
            line = line:gsub("%f[%w]S%f[%W]", shell:path "s.h5"):gsub("%f[%w]I%f[%W]",
                shell:path "i.npy"):gsub("%f[%w]R%.", shell:path "r.")
            for _, form in ipairs {"--plan --device planned:h200 %s %s",
                "--plan %s %s --device planned:h200", "--device planned:h200 %s %s --plan",
                "%s %s --device planned:h200 --plan", "%s %s --plan --device planned:h200"} do
                local text, ok = run(form:format(name, line))
                assert.is_true(ok, form .. "\n" .. text)
                assert.matches("peak[^\n]*%(%d+ bytes%)", text)
                for _, ending in ipairs {"h5", "npy"} do
                    assert.is_false(commands.exists(shell:path("r." .. ending)), form)
                end
            end
        end)
    end

    it("of batch are those of reconstruct, or said to be", function()
        local line = ("batch '%s' --into '%s'"):format(shell:path "s.h5", shell.folder .. "/v")
        mb.system.mkdir(shell.folder .. "/v")
        local text, ok = run("--plan " .. line)
        assert.is_false(ok)
        assert.matches("plan one scan with reconstruct", text)
        text, ok = run("--device planned:h200 " .. line)
        assert.is_false(ok)
        assert.matches("planned:h200 .* not here", text)
        text, ok = run("--device planned:h200 " .. line .. " -- --device host")
        assert.is_true(ok, text)
        text, ok = run("--device=host --budget=20K " .. line .. " -- --overwrite")
        assert.is_false(ok)
        assert.matches("19.53 KiB are available; give %-%-budget", text)
        text, ok = run("--device=host --budget 200M " .. line .. " -- --overwrite")
        assert.is_true(ok, text)
    end)
end)
