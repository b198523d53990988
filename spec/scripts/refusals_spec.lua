-- What the commands refuse, in one line and before any work: names that would cost data or time, and
-- values that mean nothing.
local helper = require "spec.helper"
local files = require "spec.support.files"
local mb = require "moonbeam"

local folder

local function path(name)
    return folder .. "/" .. name
end

local function run(script, format, ...)
    local text, status = helper.run_program(("scripts/%s %s"):format(script, format:format(...)))
    return status, text
end

local function must(script, ...)
    local status, text = run(script, ...)
    assert(status == 0, text)
    return text
end

local function refuses(status, pattern, script, ...)
    local got, text = run(script, ...)
    assert.matches(pattern, text)
    assert.equal(status, got)
    local _, lines = ("\n" .. text):gsub("\n%w+: warning: [^\n]*", ""):gsub("\n", "")
    assert.equal(2, lines, text) -- warnings, and one line that says why
end

local function bytes_of(name)
    return files.read(path(name))
end

describe("commands refuse", function()
    setup(function()
        folder = files.folder()
        must("simulate.lua", "%s --size 32 --rows 4 --angles 24 --device host --quiet",
            path "scan.h5")
        local image <close> = mb.random({ 4, 12, 12 }, { seed = 1 })
        mb.npy.write(path "image.npy", image)
        local psf <close> = mb.ones { 3, 3, 3 }
        mb.npy.write(path "psf.npy", psf)
        assert(os.execute(("ln -s scan.h5 '%s'"):format(path "link.h5")))
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("devices that there cannot be, budgets beyond them and numbers without a meaning, with "
        .. "status 2", function()
        local scan, image = path "scan.h5", path "image.npy"
        local scripts = { ["reconstruct.lua"] = scan .. " -o " .. path "v.h5",
            ["deconvolve.lua"] = ("%s %s -o %s"):format(image, image, path "d.npy"),
            ["simulate.lua"] = path "s.h5", ["bench.lua"] = "", ["convolve.lua"] = "-o "
            .. path "c.npy" }
        for script, arguments in pairs(scripts) do
            refuses(2, 'unknown device "nowhere"; valid names are "host"', script,
                "%s --device nowhere", arguments)
            refuses(2, 'no record of "abacus"', script, "%s --device planned:abacus", arguments)
        end
        for _, script in ipairs { "reconstruct.lua", "deconvolve.lua", "convolve.lua" } do
            refuses(2, "a budget of 900 TB exceeds the pool's address range", script,
                "%s --budget 900T",
                scripts[script])
        end
        -- there could be
        refuses(1, "no device cuda:31", "reconstruct.lua", "%s --device cuda:31",
            scripts["reconstruct.lua"])
        refuses(2, '%-%-pinned: "1" is not a size of 1 MiB or more', "reconstruct.lua",
            "%s --pinned 1", scripts["reconstruct.lua"])
        for _, option in ipairs { "--method wiener --lambda", "--method tikhonov --lambda",
            "--total-variation", "--tolerance" } do
            refuses(2, '"%-1" is not a number, 0 or more', "deconvolve.lua", "%s %s -1",
                scripts["deconvolve.lua"], option)
        end
        refuses(2, '"2" is not a number between 0 and 2', "deconvolve.lua",
            "%s --method landweber --relaxation 2",
            scripts["deconvolve.lua"])
        for _, option in ipairs { "na", "index", "wavelength", "pixel", "step" } do
            local range = option == "index" and "from 1 to 5" or "above 0"
            refuses(2, option .. ': "0" is not a number ' .. range, "deconvolve.lua", "%s --%s 0",
                scripts["deconvolve.lua"], option)
            refuses(2, option .. ': "0" is not a number ' .. range, "convolve.lua", "%s --%s 0",
                scripts["convolve.lua"], option)
        end
    end)

    it("to write over what they read", function()
        local scan, image, psf = bytes_of "scan.h5", bytes_of "image.npy", bytes_of "psf.npy"
        local before = files.list(folder)
        for _, names in ipairs { { "scan.h5", "scan.h5" }, { "link.h5", "scan.h5" },
            { "scan.h5", "link.h5" } } do
            refuses(1, "is a file that is read", "reconstruct.lua", "%s -o %s --overwrite -d host",
                path(names[1]), path(names[2]))
        end
        refuses(1, "is a file that is read", "deconvolve.lua", "%s %s -o %s --overwrite -d host",
            path "image.npy", path "psf.npy",
            path "image.npy")
        refuses(1, "is a file that is read", "deconvolve.lua", "%s %s -o %s --overwrite -d host",
            path "image.npy", path "psf.npy",
            path "psf.npy")
        refuses(1, "is a file that is read", "convolve.lua",
            "-i %s --psf %s -o %s --overwrite -d host", path "image.npy",
            path "psf.npy", path "image.npy")
        files.write(path "shifts.h5", ("0.5\n"):rep(24))
        refuses(1, "is a file that is read", "reconstruct.lua",
            "%s -o %s --vertical-shifts %s --overwrite -d host", path "scan.h5",
            path "shifts.h5", path "shifts.h5")
        assert(os.remove(path "shifts.h5"))
        assert.is_true(scan == bytes_of "scan.h5" and image == bytes_of "image.npy"
            and psf == bytes_of "psf.npy")
        assert.same(before, files.list(folder))
    end)

    it("to replace a file without being told, or with a picture", function()
        refuses(1, "already exists; .*%-%-overwrite", "convolve.lua", "-n 4,8,8 -d host -o %s",
            path "image.npy")
        refuses(1, "already exists; .*%-%-overwrite", "simulate.lua", "%s -d host", path "scan.h5")
        refuses(2, "must end in .png", "reconstruct.lua", "%s -o %s -d host --preview %s",
            path "scan.h5", path "v.h5", path "scan.h5")
        refuses(1, "no/p.png cannot be written: folder .*No such file", "reconstruct.lua",
            "%s -o %s -d host --preview %s", path "scan.h5",
            path "v.h5", path "no/p.png")
        assert(mb.system.mkdir(path "folder.h5"))
        refuses(1, "is a folder", "reconstruct.lua", "%s -o %s -d host", path "scan.h5",
            path "folder.h5")
        assert(os.remove(path "folder.h5"))
        refuses(2, "is not a file name", "reconstruct.lua", "%s -o '' -d host", path "scan.h5")
        assert.is_nil(mb.system.stat(path "v.h5"))
    end)

    it("numbers out of range, whole or not", function()
        for _, case in ipairs {
            { "reconstruct.lua", "%s --rows 99999999999999999999:3", "is not a range" },
            { "reconstruct.lua", "%s --threads 1000", "from 1 to 64" },
            { "reconstruct.lua", "%s --axis-tilt 50", "between %-45 and 45" },
            { "reconstruct.lua", "%s --pixel-size 0", "between 1e%-07 and 1e%+06" },
            { "reconstruct.lua", "%s --cutoff 1e999", "is not a number" },
            { "reconstruct.lua", "%s --center 1,2,3 -d host -o %s", "give a column number" },
            { "simulate.lua", "%s.new.h5 --size 1000000000", "from 1 to 1048576" },
            { "simulate.lua", "%s.new.h5 --angles 1000000000000", "from 1 to 1048576" },
            { "simulate.lua", "%s.new.h5 --photons -5", "from 0 to 59900" },
            { "simulate.lua", "%s.new.h5 --rings 2", "less than 1" },
            { "simulate.lua", "%s.new.h5 --transmission 1", "between 0 and 1" },
            { "convolve.lua", "-n 8,16", "3 whole numbers" },
            { "convolve.lua", "-n 0,1,1", "3 whole numbers" },
            { "bench.lua", "convolution --volume 1.5,8,8", "3 whole numbers" },
            { "compare_phantom.lua", "%s x --radius 0", "above 0" },
            { "deconvolve.lua", "%s %s", "the result is missing; give it with %-o" },
        } do
            refuses(2, case[3], case[1], case[2], path "scan.h5", path "v.h5")
        end
    end)

    it("images and PSFs with values that are not finite, leaving no result", function()
        local image <close> = mb.random({ 4, 12, 12 }, { seed = 1 })
        image:view(3, 5, { 5, 5 }):fill(0 / 0)
        mb.npy.write(path "nan.npy", image)
        local psf <close> = mb.ones { 3, 3, 3 }
        psf:view(3, 3, { 3, 3 }):fill(0 / 0)
        mb.npy.write(path "nan-psf.npy", psf)
        local before = files.list(folder)
        local function spread(script, image_name, psf_name, more, words)
            local status, text = run(script, "%s -o %s -d host %s", (script == "convolve.lua"
                and "-i %s --psf %s" or "%s %s")
                :format(path(image_name), path(psf_name)), path "bad.npy", more)
            assert.equal(1, status)
            assert.matches("1 of %d+ values of " .. words .. ".* are not finite", text)
            assert.same(before, files.list(folder))
        end
        for _, tiles in ipairs { "none", "always" } do
            spread("convolve.lua", "nan.npy", "psf.npy", "-t " .. tiles, "the image")
            spread("convolve.lua", "image.npy", "nan-psf.npy", "-t " .. tiles, "the PSF")
        end
        for _, method in ipairs { "rl -t none", "rl -t exact", "wiener", "tikhonov", "landweber",
            "gradient_consensus" } do
            local count = (method == "wiener" or method == "tikhonov") and "" or "--iterations 2 "
            spread("deconvolve.lua", "nan.npy", "psf.npy", count .. "-m " .. method, "the image")
        end
    end)

    it("a gain of 0, and a mask that leaves nothing", function()
        local zeros <close> = mb.zeros { 4, 12, 12 }
        mb.npy.write(path "zeros.npy", zeros)
        local named = ("%s %s -o %s -d host"):format(path "image.npy", path "psf.npy",
            path "bad.npy")
        refuses(2, "%-%-gain: \"0\" is not a number above 0", "deconvolve.lua", "%s --gain 0",
            named)
        refuses(2, "zeros.npy is 0 everywhere", "deconvolve.lua", "%s -q --mask %s", named,
            path "zeros.npy")
        refuses(2, "%-%-spheres", "convolve.lua", "-d host --spheres 1000000000 -o %s",
            path "bad.npy")
    end)

    it("pipes, which would wait for a writer", function()
        local scan <const> = path "scan.h5" .. " -d host -o %s "
        local frames <const> = "%s --angles 0:180 --angle-unit deg --no-log -d host -o %s"
        assert(mb.system.mkdir(path "pipe.zarr"))
        for _, case in ipairs {
            { "pipe.h5", "reconstruct.lua %s -d host -o %s" },
            { "pipe.npy", "deconvolve.lua %s psf.npy -d host -o %s" },
            { "pipe.tif", "deconvolve.lua %s psf.npy -d host -o %s" },
            { "pipe.npy", "reconstruct.lua " .. frames },
            { "pipe.zarr/zarr.json", "reconstruct.lua " .. frames, "pipe.zarr" },
            { "pipe.lua", "reconstruct.lua " .. scan .. "--recipe %s", swap = true },
            { "pipe.txt", "reconstruct.lua " .. scan .. "--angles-path %s --angle-unit deg",
                swap = true },
            { "pipe.conf", "import_recipe.lua %s -o %s.lua" },
        } do
            local name = case[1]
            assert(os.execute(("mkfifo '%s'"):format(path(name))))
            local input, result = path(case[3] or name), path "new.h5"
            local program = case[2]:format(case.swap and result or input,
                case.swap and input or result)
            local text, status = helper.run_program("scripts/" .. program, nil,
                "timeout 20 " .. helper.program)
            assert.equal(1, status)
            assert.matches(name == "pipe.zarr/zarr.json" and "it is no file"
                or "not an ordinary file", text)
            os.remove(path(name))
        end
    end)

    it("vertical shifts that are no list, or longer than the detector", function()
        local command = "%s --plan -d host --vertical-shifts "
        local _, text = run("reconstruct.lua", command .. "/exchange/data", path "scan.h5")
        assert.matches("has 3 axes; vertical shifts are a list", text)
        files.write(path "far.txt", ("1 "):rep(23) .. "nan\n")
        _, text = run("reconstruct.lua", command .. path "far.txt", path "scan.h5")
        assert.matches("'nan' is not a number", text)
        files.write(path "far.txt", ("1 "):rep(23) .. "1e9\n")
        _, text = run("reconstruct.lua", command .. path "far.txt", path "scan.h5")
        assert.matches("shift 24 is 1e%+09", text)
    end)

    it("a result that is none, and say so", function()
        refuses(1, "is not a result of moonbeam reconstruct", "compare_phantom.lua", "%s %s",
            path "scan.h5", path "scan.h5")
    end)
end)

describe("reconstruct.lua", function()
    it("warns where the two projections in which it looks for the axis have nothing in common",
        function()
        folder = files.folder()
        must("simulate.lua", "%s --size 32 --rows 64 --angles 90 --photons 0 --device host --quiet",
            path "scan.h5")
        local command = "%s -o %s -d host --overwrite --quiet --rows "
        assert.matches("warning: opposite projections hardly match %(residual 1",
            must("reconstruct.lua", command .. "1:2", path "scan.h5",
            path "v.h5"))
        assert.not_matches("warning", must("reconstruct.lua", command .. "24:40", path "scan.h5",
            path "v.h5"))
        files.remove(folder)
    end)
end)

describe("compare_phantom.lua", function()
    it("takes NXtomo scans, and volumes of every stored type", function()
        folder = files.folder()
        must("simulate.lua", "%s --size 32 --rows 4 --angles 48 --format nxtomo --photons 0 --device host --quiet", path "nx.h5")
        local errors = {}
        for i, dtype in ipairs { "float32", "float16", "uint16" } do
            must("reconstruct.lua", "%s -o %s --device host --overwrite --quiet --output-dtype %s",
                path "nx.h5", path "v.h5", dtype)
            errors[i] = tonumber(must("compare_phantom.lua", "%s %s", path "nx.h5",
                path "v.h5"):match("error%s+([%d.]+)"))
        end
        files.remove(folder)
        assert.is_true(errors[1] < 0.4)
        assert.near(errors[1], errors[2], 1e-3)
        -- a few values lie beyond the range of the middle slice
        assert.near(errors[1], errors[3], 0.02)
    end)
end)
