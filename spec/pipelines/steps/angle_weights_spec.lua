-- The weights of the angles from end to end: flags and recipes, parts, and what the report says.
local mb = require "moonbeam"
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"

local must, run = commands.must, commands.run
local shell

local function path(name)
    return shell:path(name)
end

-- What reconstruct prints, and the bits of the volume; the memory is what was predicted.
local function made(scan, options)
    local text = must("reconstruct.lua", ("%s -o %s --overwrite --device host %s"):format(path(scan),
        path("out.h5"), options))
    helper.kept_promise(text)
    local file <close> = assert(mb.h5.open(path("out.h5")))
    local volume <close> = file:read("/entry/data/data")
    return text, volume:to_string(), volume:to_table()
end

-- How far two volumes are from each other, as a part of the second.
local function apart(one, other)
    local off, all = 0, 0
    for z, slice in ipairs(other) do
        for y, row in ipairs(slice) do
            for x, value in ipairs(row) do
                off, all = off + (one[z][y][x] - value) ^ 2, all + value ^ 2
            end
        end
    end
    return math.sqrt(off / all)
end

describe("weights of the angles", function()
    local half

    setup(function()
        shell = commands.folder()
        local size = " --size 64 --rows 3 --photons 0 --quiet "
        must("simulate.lua", path("half.h5") .. size .. "--angles 90 --span 180")
        must("simulate.lua", path("arc.h5") .. size .. "--angles 135 --span 270")
        must("simulate.lua", path("wedge.h5") .. size .. "--angles 80 --span 160")
        must("simulate.lua", path("wide.h5") .. size .. "--angles 190 --span 380 --center 48")
        must("simulate.lua", path("short.h5") .. size .. "--angles 172 --span 344 --center 48")
        local _
        _, _, half = made("half.h5", "-c 31.5")
    end)

    teardown(function()
        shell:remove()
    end)

    it("make an arc of 270 degrees what half a turn is, without a word", function()
        for _, method in ipairs {"fourier", "fbp"} do
            local _, _, right = made("half.h5", "-c 31.5 -m " .. method)
            local text, bits, arc = made("arc.h5", "-c 31.5 -m " .. method)
            assert.is_nil(text:find("warning", 1, true))
            assert.is_true(apart(arc, right) < 0.01)
            local _, _, plain = made("arc.h5", "-c 31.5 --angle-weights none -m " .. method)
            assert.is_true(apart(plain, right) > 0.1)
            local _, again = made("arc.h5", ("-c 31.5 --chunk 2 -m %s"):format(method))
            assert.is_true(again == bits)
        end
        assert.is_true(apart(half, half) == 0)
    end)

    it("are those of step fbp and step fourier", function()
        for _, method in ipairs {"fourier", "fbp"} do
            for _, weights in ipairs {"auto", "none"} do
                local _, flags = made("arc.h5", ("-c 31.5 -m %s --angle-weights %s"):format(method,
                    weights))
                files.write(path "steps.lua", ("return {\"flat_field\", \"minus_log\", {\"%s\", "
                    .. "center = 31.5, weights = %q}}"):format(method, weights))
                local text, recipe = made("arc.h5", "--recipe " .. path "steps.lua")
                assert.is_nil(text:find("warning", 1, true))
                assert.is_true(flags == recipe)
            end
        end
        files.write(path "steps.lua", 'return {"flat_field", "minus_log", {"fbp", center = 31.5}}')
        local _, none = made("arc.h5", "-c 31.5 -m fbp --angle-weights none")
        local _, set = made("arc.h5", "--set fbp.weights=none --recipe " .. path "steps.lua")
        assert.is_true(none == set)
        files.write(path "steps.lua", 'return {"flat_field", "minus_log", {"fbp", center = 31.5, '
            .. "weights = {1, 2}}}")
        local status, text = run("reconstruct.lua", ("%s -o %s --overwrite --device host --recipe "
            .. "%s"):format(path "arc.h5", path "out.h5", path "steps.lua"))
        assert.is_true(status > 0)
        assert.matches("weights has 2 numbers; there are 135 projections", text, 1, true)
    end)

    it("may be a file of numbers, which wins", function()
        local list = {}
        for i = 1, 135 do
            list[i] = (i <= 45 or i > 90) and 0.75 or 1.5
        end
        files.write(path "weights.txt", table.concat(list, "\n"))
        for _, method in ipairs {"fourier", "fbp"} do
            local _, _, auto = made("arc.h5", "-c 31.5 -m " .. method)
            local _, _, given = made("arc.h5", ("-c 31.5 -m %s --angle-weights %s"):format(method,
                path "weights.txt"))
            assert.is_true(apart(given, auto) < 1e-5)
        end
        list[1] = 20
        files.write(path "weights.txt", table.concat(list, ", "))
        local _, _, given = made("arc.h5", "-c 31.5 --angle-weights " .. path "weights.txt")
        assert.is_true(apart(given, half) > 0.05)
        local status, text = run("reconstruct.lua", ("%s --plan --device host --angle-weights %s")
            :format(path "half.h5", path "weights.txt"))
        assert.is_true(status > 0)
        assert.matches("has 135 weights; the scan has 90 projections", text, 1, true)
    end)

    it("are not for iterative methods", function()
        local status, text = run("reconstruct.lua", ("%s --plan --device host -m sirt "
            .. "--angle-weights none"):format(path "arc.h5"))
        assert.equal(2, status)
        assert.matches("--angle-weights is for the direct methods", text, 1, true)
        local scan <close> = assert(mb.scan.open(path "arc.h5"))
        local message, err = helper.failure(mb.recon.plan, scan, {method = "sirt", center = 31.5,
            angle_weights = {1}})
        assert.equal("argument", err.code)
        assert.equal("angle_weights", err.arg)
        assert.matches("angle_weights is a list, which method sirt does not have", message, 1, true)
    end)

    it("leave a wedge that was not recorded, which is said in one line", function()
        local text, bits = made("wedge.h5", "-c 31.5")
        assert.equal(1, select(2, text:gsub("warning", "")))
        assert.matches("no projection between 158 and 180 degrees (modulo 180), a gap of 22", text,
            1, true)
        local _, plain = made("wedge.h5", "-c 31.5 --angle-weights none")
        assert.is_true(bits == plain)
    end)

    it("count each side of a half acquisition by itself", function()
        local text, _, wide = made("wide.h5", "-c 48 --half-acquisition")
        assert.is_nil(text:find("warning", 1, true))
        local _, _, plain = made("wide.h5", "-c 48 --half-acquisition --angle-weights none")
        must("simulate.lua", path "turn.h5"
            .. " --size 64 --rows 3 --photons 0 --quiet --angles 180 --span 360 --center 48")
        local _, _, right = made("turn.h5", "-c 48 --half-acquisition")
        assert.is_true(apart(wide, right) < 0.01)
        assert.is_true(apart(plain, right) > 0.05)
        files.write(path "steps.lua", 'return {"flat_field", "minus_log", "half_acquisition", '
            .. '{"fbp", center = 48}}')
        for _, more in ipairs {"-c 48 --half-acquisition", "--recipe " .. path "steps.lua"} do
            local short = made("short.h5", more)
            assert.equal(1, select(2, short:gsub("warning", "")))
            assert.matches("no projection between 342 and 360 degrees (modulo 360), a gap of 18 "
                .. "where the usual step is 2: 4 % of the directions", short, 1, true)
        end
    end)

    it("are those of the projections that steps have left", function()
        files.write(path "steps.lua", 'return {"flat_field", "minus_log", {"select", angles = '
            .. '{0, 4.0}}, {"fbp", center = 31.5}}')
        local text, _, some = made("arc.h5", "--recipe " .. path "steps.lua")
        assert.is_nil(text:find("warning", 1, true))
        local _, _, right = made("half.h5", "-c 31.5 -m fbp")
        assert.is_true(apart(some, right) < 0.01)
        files.write(path "steps.lua", 'return {"flat_field", "minus_log", {"select", angles = '
            .. '{0, 2}}, {"fbp", center = 31.5}}')
        text = made("arc.h5", "--recipe " .. path "steps.lua")
        assert.equal(1, select(2, text:gsub("warning", "")))
        assert.matches("no projection between 114 and 180 degrees (modulo 180)", text, 1, true)
    end)
end)
