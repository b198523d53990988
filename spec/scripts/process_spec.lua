-- What the scripts say that the process takes in all, against what it took.
local helper = require "spec.helper"
local mb = require "moonbeam"

local MIB = 1 << 20

-- A sanitizer has memory of its own, several times the program's: its figures say nothing.
local sanitized = helper.program:match("/sanitize/") ~= nil

-- Prints the most that the process has had, when the Lua state is closed.
local PROBE = [[-e 'PROBE = setmetatable({}, {__gc = function() print("most", ]]
    .. [[select(2, require("moonbeam.internal.process_memory").resident())) end})' ]]

describe("the process", function()
    local folder

    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    -- Runs a script, and checks the bound that it prints.
    local function check(arguments)
        local text, status = helper.run_program(PROBE .. "scripts/" .. arguments
            .. (arguments:find "^convolve" and "" or " --verbose"))
        assert.equal(0, status, text)
        local bound = tonumber(text:match("process +at most [^\n]+%-%-mem=(%d+)M")) * MIB
        local most = tonumber(text:match("most\t(%d+)"))
        if sanitized then
            return bound, text
        end
        assert.is_true(most <= bound, ("%s takes %d bytes, at most %d are said"):format(arguments,
            most, bound))
        -- Rings that are larger than a small scan stay in part untouched.
        local rings = tonumber(text:match "\npinned +predicted (%d+) bytes") or 0
        assert.is_true(bound - rings <= math.max(1.5 * most, most + 64 * MIB),
            ("%d bytes are said, %d of them rings, %d taken"):format(bound, rings, most))
        return bound, text
    end

    it("stays within what reconstruct.lua says, whatever the budget and the pinned memory",
        function()
        local scan = folder .. "/scan.h5"
        local text, status = helper.run_program(("scripts/simulate.lua %s -n 256 --rows 48 -a "
            .. "200 --center 120 -q -d host"):format(scan))
        assert.equal(0, status, text)
        for _, more in ipairs {"", "-b 30M", "-b 30M --method fbp --no-overlap --pinned 8M",
            "--output-dtype uint16 -b 60M"} do
            local bound
            bound, text = check(("reconstruct.lua %s -d host -o %s/v.h5 --overwrite %s"):format(
                scan, folder, more))
            local plan = helper.run_program(("scripts/reconstruct.lua %s -d host --plan %s"):format(
                scan, more))
            local planned = tonumber(plan:match("process +at most [^\n]+%-%-mem=(%d+)M")) * MIB
            -- The program is as large, but for what it has loaded by then; both are rounded up to 16
            -- MiB.
            assert.is_true(sanitized or math.abs(planned - bound) <= 16 * MIB)
            assert.matches("resident +[%d.]+ MiB at most", text)
        end
    end)

    it("tells the memory of each of several devices, promised and taken", function()
        local text, status = helper.run_program(("scripts/reconstruct.lua %s/scan.h5 -d "
            .. "host:1,host:2 -b 30M -o %s/v.h5 --overwrite"):format(folder, folder))
        assert.equal(0, status, text)
        helper.kept_promise(text)
        local predicted, measured =
            text:match "\n +predicted (%d+) bytes, measured (%d+) bytes on host:2\n"
        assert.equal(predicted, measured)
        assert.is_true(tonumber(predicted) > 1 << 20)
    end)

    it("stays within what deconvolve.lua and convolve.lua say, in tiles and without", function()
        local volume <close> = mb.random({24, 128, 128}, {seed = 1})
        mb.npy.write(folder .. "/image.npy", volume)
        local psf <close> = mb.psf.gaussian({7, 7, 7}, {2, 2, 2})
        mb.npy.write(folder .. "/psf.npy", psf)
        for _, more in ipairs {"", "--budget 8M"} do
            check(("deconvolve.lua %s/image.npy %s/psf.npy -d host --iterations 2 --overwrite -o %s/o.npy "
                .. "%s"):format(folder, folder, folder, more))
            os.remove(folder .. "/c.npy")
            check(("convolve.lua --image %s/image.npy --psf %s/psf.npy -d host -o %s/c.npy %s"):format(folder, folder, folder, more))
        end
    end)

    it("is told of in --help", function()
        for _, name in ipairs {"reconstruct", "deconvolve", "convolve"} do
            local text = helper.run_program(("scripts/%s.lua --help"):format(name))
            assert.matches("what to give a batch system", (text:gsub("%s+", " ")), 1, true)
        end
    end)
end)
