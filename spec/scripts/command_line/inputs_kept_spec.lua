-- No command overwrites, or appends to, what it reads: files of the command line, and those that
-- they lead to.

local core = require "moonbeam.core"
local helper = require "spec.helper"
local files = require "spec.support.files"
local mb = require "moonbeam"

local hostile = helper.program:gsub("[^/]*$", "h5_hostile")

describe("a command leaves as it is", function()
    local folder

    local function path(name)
        return folder .. "/" .. name
    end

    local function write_series(name)
        assert(mb.system.mkdir(path(name)))
        for i = 1, 4 do
            local plane <close> = mb.random({12, 12}, {seed = i})
            mb.images.write(("%s/p%03d.tif"):format(path(name), i), plane)
        end
    end

    setup(function()
        folder = files.folder()
        local _, status = helper.run_program(("scripts/simulate.lua %s --size 32 --rows 4 "
            .. "--angles 24 --device host --quiet"):format(path "scan.h5"))
        assert.equal(0, status)
        local image <close> = mb.random({ 4, 12, 12 }, { seed = 1 })
        mb.npy.write(path "image.npy", image)
        mb.images.write(path "image.zarr", image)
        local psf <close> = mb.ones { 3, 3, 3 }
        mb.npy.write(path "psf.npy", psf)
        write_series "series"
        files.write(path "recipe.lua", '{"fbp"}\n')
        files.write(path "shifts.txt", ("0.5\n"):rep(24))
        for _, kind in ipairs { "link-beside", "virtual-sound", "external-storage" } do
            assert(mb.system.mkdir(path(kind)))
            local storage = path(kind .. "/storage.h5")
            if kind == "external-storage" then
                files.write(storage, ("ab"):rep(24 * 64))
            end
            assert(os.execute(("'%s' %s '%s' '%s'"):format(hostile, kind, path(kind), storage)))
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    -- All files with their contents, by a sum of each.
    local function state()
        local text = files.run(("cd '%s' && find . -type f -exec cksum {} + && find . | sort")
            :format(folder))
        return text
    end

    -- Runs `moonbeam` with these arguments, in which NAMES in braces are files of the folder.
    local function refused(arguments, status)
        local before = state()
        local text, got = helper.run_program("scripts/" .. arguments:gsub("{(.-)}", path))
        assert.equal(status or 1, got, arguments .. "\n" .. text)
        assert.matches("choose another name", text)
        assert.equal(before, state(), arguments)
    end

    -- The files that a scan or image of a kind has its data in.
    local function sources(kind)
        local list = {}
        for _, name in ipairs(files.list(path(kind))) do
            list[#list + 1] = name ~= "s.h5" and kind .. "/" .. name or nil
        end
        assert.is_true(#list > 0, kind)
        return list
    end

    it("what links, virtual datasets and external storage lead to", function()
        for _, kind in ipairs { "link-beside", "virtual-sound", "external-storage" } do
            for _, source in ipairs(sources(kind)) do
                local target = source:gsub("%.%w+$", "") .. ".h5"
                if target ~= source then -- results have the ending of their format
                    assert(os.execute(("ln '%s' '%s'"):format(path(source), path(target))))
                end
                refused(("reconstruct.lua {%s/s.h5} -m fbp -c 3.5 -o {%s} --overwrite -q -d host "
                    .. "--allow-external"):format(kind, target))
            end
        end
    end)

    it("the members of a series, and links to them", function()
        refused "deconvolve.lua {series} {psf.npy} -o {series/p003.tif} --overwrite -d host"
        assert(os.execute(("ln -s series/p002.tif '%s'"):format(path "link.tif")))
        refused "deconvolve.lua {series} {psf.npy} -o {link.tif} --overwrite -d host"
    end)

    it("the array in the folder of the result, and the folder with the array", function()
        refused "deconvolve.lua {image.zarr/0} {psf.npy} -o {image.zarr} --overwrite -d host"
        refused "convolve.lua --image {image.zarr/0} --psf {psf.npy} -o {image.zarr} --overwrite"
        refused "deconvolve.lua {image.zarr} {psf.npy} -o {image.zarr/0/x.zarr} --overwrite"
    end)

    it("what --log would be appended to", function()
        for _, name in ipairs { "image.npy", "psf.npy", "scan.h5", "series/p001.tif",
            "recipe.lua", "shifts.txt" } do
            refused(("deconvolve.lua {image.npy} {psf.npy} -o {d.npy} -d host --log {%s}")
                :format(name))
        end
    end)

    it("nothing but a log of its own, to which it appends", function()
        local log = path "run.log"
        for i = 1, 2 do
            local text, status = helper.run_program(("scripts/deconvolve.lua %s %s -o %s -d host "
                .. "--iterations 2 --overwrite --log %s"):format(path "image.npy", path "psf.npy",
                path "d.npy", log))
            assert.equal(0, status, text)
            assert.equal(i, select(2, files.read(log):gsub("end of the program", "")))
        end
    end)

    it("a pipe that nobody reads, without a wait", function()
        assert(os.execute(("mkfifo '%s'"):format(path "pipe")))
        local text, status = helper.run_program(("scripts/deconvolve.lua %s %s -o %s -d host "
            .. "--log %s"):format(path "image.npy", path "psf.npy", path "e.npy", path "pipe"))
        assert.equal(1, status)
        assert.matches("it is a pipe that nobody reads", text)
        assert.is_nil(core.system.stat(path "e.npy"))
    end)

    it("an input of a script", function()
        local before = files.read(path "image.npy")
        local text, _, status = files.run_script(folder, ([[
            local mb = require "moonbeam"
            local image <close> = mb.npy.read("%s")
            mb.npy.write("%s", image, {overwrite = true})
        ]]):format(path "image.npy", path "image.npy"))
        assert.not_equal(0, status)
        assert.matches("inputs are never overwritten", text)
        assert.equal(before, files.read(path "image.npy"))
    end)

    it("nothing that a script has written itself", function()
        local text, _, status = files.run_script(folder, ([[
            local mb = require "moonbeam"
            local name = "%s"
            local image <close> = mb.ones {2, 3}
            mb.npy.write(name, image)
            local again <close> = mb.npy.read(name)
            mb.npy.write(name, again, {overwrite = true})
        ]]):format(path "own.npy"))
        assert.equal(0, status, text)
    end)

    it("chunks that a link leads out of an array's folder to, which it does not read", function()
        local image <close> = mb.random({ 2, 6, 6 }, { seed = 1 })
        mb.images.write(path "linked.zarr", image)
        local shard = files.run(("find '%s' -type f -path '*/c/*'"):format(path "linked.zarr"))
            :match "[^\n]+"
        assert(os.execute(("mv '%s' '%s' && ln -s '%s' '%s'"):format(shard, path "secret",
            path "secret", shard)))
        local text, status = helper.run_program(("scripts/deconvolve.lua %s %s -o %s -d host")
            :format(path "linked.zarr", path "psf.npy", path "l.npy"))
        assert.equal(1, status)
        assert.matches("is a link to '[^']*secret', which is not in the folder of the array: copy "
            .. "the file there", text)
    end)

    it("a recipe that an import cannot replace", function()
        files.write(path "n.conf", "[reconstruction]\nmethod = FBP\n")
        files.write(path "keep.lua", '{"fbp"}\n')
        local _, status = helper.run_program(("scripts/import_recipe.lua %s -o %s --overwrite")
            :format(path "n.conf", path "keep.lua"), "", "ulimit -f 0; " .. helper.program)
        assert.not_equal(0, status)
        assert.equal('{"fbp"}\n', files.read(path "keep.lua"))
    end)
end)
