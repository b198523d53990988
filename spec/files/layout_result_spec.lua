-- Results under the paths of nabu and HTTomo, beside our own: by reconstruct with and without a
-- recipe, after a resume, in several files; and what is refused.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local shell

local function must(more, output, scan)
    return commands.must("reconstruct.lua", ("%s -c 23.5 -q --overwrite %s %s"):format(
        shell:path(scan or "scan.h5"), output and "-o " .. shell:path(output) or "", more))
end

-- The values of a dataset of a file in the folder.
local function values(name, path)
    local file <close> = assert(mb.h5.open(shell:path(name)))
    local array <close> = file:read(path, {device = "host"})
    return array:to_table()
end

describe("a result in the layout of another program", function()
    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5"
            .. " --size 48 --rows 3 --angles 60 --quiet")
        commands.must("simulate.lua", shell:path "nx.h5"
            .. " --size 48 --rows 3 --angles 60 --format nxtomo --quiet")
        files.write(shell:path "r.lua", '{{"flat_field", interpolation = "mean"}, "minus_log", '
            .. '{"center", column = 23.5}, {"fbp"}}')
    end)

    teardown(function()
        shell:remove()
    end)

    it("has the volume at nabu's path and under its name", function()
        must "--layout nabu"
        local own = values("scan_rec.hdf5", "/entry/data/data")
        assert.same(own, values("scan_rec.hdf5", "/entry0000/reconstruction/results/data"))
        assert.is_true(#own == 3 and #own[1] == 48)
        must("--layout nabu", nil, "nx.h5")
        assert.same(values("nx_rec.hdf5", "/entry/data/data"),
            values("nx_rec.hdf5", "/entry/reconstruction/results/data"))
        must("--layout nabu --slices-per-file 2", "parts.h5")
        assert.same(own, values("parts.h5", "/entry0000/reconstruction/results/data"))
    end)

    it("has the volume and the angles at HTTomo's paths, with and without a recipe", function()
        must("--layout httomo", "a.h5")
        commands.must("reconstruct.lua", ("%s -o %s -q --recipe %s --layout httomo"):format(
            shell:path "scan.h5", shell:path "b.h5", shell:path "r.lua"))
        for _, name in ipairs {"a.h5", "b.h5"} do
            assert.same(values(name, "/entry/data/data"), values(name, "/data"))
            local angles = values(name, "/angles")
            assert.equal(60, #angles)
            assert.near(math.pi / 60, angles[2] - angles[1], 1e-6)
            assert.same({0, 0}, values(name, "/data_dims/detector_x_y"))
        end
    end)

    it("is stored once", function()
        must("", "plain.h5")
        must("--layout nabu", "linked.h5")
        local one, two = mb.system.stat(shell:path "plain.h5"), mb.system.stat(shell:path "linked.h5")
        assert.is_true(two.bytes - one.bytes < 3 * 48 * 48 * 4 / 2)
    end)

    it("is refused where it cannot be", function()
        for more, words in pairs {["-o x.tif --layout nabu"] = "%-%-layout is for HDF5 files",
            ["--layout nabbu"] = '"nabbu" is not one of nabu, httomo; did you mean nabu'} do
            local status, text = commands.run("reconstruct.lua", shell:path "scan.h5" .. " " .. more)
            assert.equal(2, status)
            assert.matches("^reconstruct: [^\n]*" .. words, text)
        end
        assert.matches("layout is for HDF5 files", (helper.failure(mb.result.create,
            shell:path "n.zarr", {shape = {1, 2, 2}, layout = "nabu"})))
    end)
end)
