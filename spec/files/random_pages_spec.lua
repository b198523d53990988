-- Descriptions and orders of pages at random, through the command: deconvolved by a PSF of one
-- voxel, each plane comes back, as the plane that it is, or the file is refused in a line.
--
-- MOONBEAM_RANDOM_PAGES=300 tries so many. Where tifffile is (scripts/setup --oracles), it reads the
-- same files and the results, too: of the files that mean to it what they mean by construction, at
-- most 10 % are refused.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local page_forms = require "spec.support.page_forms"
local python = require "spec.support.python"

local COUNT <const> = tonumber(os.getenv "MOONBEAM_RANDOM_PAGES") or 30

local folder, cases

local run = helper.programs_in(function() return folder end)

-- The values of the planes of a result: channels and times of slices.
local function values_of(path, counts)
    local list = {}
    for t = 1, counts.T do
        for c = 1, counts.C do
            local volume <close> = mb.images.open(path, {channel = c, frame = t})
            local all <close> = mb.volumes.load(volume, "host")
            for z = 1, counts.Z do
                local plane <close> = #all.shape == 3 and all[z] or all:view()
                assert.near(plane:min(), plane:max(), 1e-4 * plane:max()) -- a page has one value
                list[#list + 1] = plane:item(2, 2)
            end
        end
    end
    return list
end

local function expected(counts)
    local list = {}
    page_forms.each_plane("ZCT", counts, function(c, z, t)
        list[#list + 1] = page_forms.value(c, z, t)
    end)
    return list
end

local function check_result(case)
    local counts = case.counts
    do
        local volume <close> = mb.images.open(case.result)
        local meta = volume.meta
        if case.aborted then -- complete times of them
            assert.matches("of " .. counts.T .. " times are complete", case.text, case.said)
            assert.is_true(meta.frames < counts.T, case.said)
            counts = {C = counts.C, Z = counts.Z, T = meta.frames}
            case.counts = counts
        else
            assert.is_nil(case.text:find("complete", 1, true), case.said)
        end
        assert.same({counts.C, counts.Z, counts.T}, {meta.channels, meta.slices, meta.frames},
            case.said)
    end
    local list, want = values_of(case.result, counts), expected(counts)
    assert.equal(#want, #list)
    for i, value in ipairs(want) do
        assert.is_true(math.abs(list[i] - value) <= 1e-5 * value, ("%s: plane %d: %g for %g")
            :format(case.said, i, list[i], value))
    end
end

describe("pages at random", function()
    setup(function()
        folder, cases = files.folder(), {}
        for name, shape in pairs {d2 = {3, 3}, d3 = {3, 3, 3}} do
            local delta <close> = mb.zeros(shape)
            delta:view(table.unpack({2, 2, 2}, 1, #shape)):fill(1)
            mb.npy.write(("%s/%s.npy"):format(folder, name), delta)
        end
        for seed = 1, COUNT do
            local random = page_forms.random(seed * 7919)
            local name = page_forms.NAMES[random(#page_forms.NAMES)]
            cases[seed] = page_forms.made(random, name, random(6) == 1)
            cases[seed].folder = ("%s/%d"):format(folder, seed)
            assert(mb.system.mkdir(cases[seed].folder))
            for each, text in pairs(cases[seed].files) do
                files.write(cases[seed].folder .. "/" .. each, text)
            end
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("come back as the planes that they are, or are refused", function()
        for _, case in ipairs(cases) do
            case.result = case.folder .. "/result.tif"
            local text, status = run("scripts/deconvolve.lua -d host --iterations 1 '%s/%s' "
                .. "FOLDER/%s.npy -o '%s'", case.folder, case.name,
                case.counts.Z > 1 and "d3" or "d2", case.result)
            case.text, case.refused = text, status ~= 0
            if case.refused then
                assert.is_true(status == 1 or status == 2, text)
                assert.equal(1, select(2, text:gsub("[^\n]+", "")), text)
                assert.matches("%-%-[ap]", text) -- a way out: --axes, or --pages
                assert.is_nil(mb.system.stat(case.result))
                assert.is_true(case.aborted, case.said .. ": " .. text)
            else
                check_result(case)
            end
        end
    end)

    it("are to tifffile what they are here, and so are the results", function()
        local lines = {}
        for i, case in ipairs(cases) do
            lines[i] = ("%s/%s\t%s"):format(case.folder, case.name,
                case.refused and "" or case.result)
        end
        files.write(folder .. "/list", table.concat(lines, "\n"))
        local text = python.prints({"tifffile"}, ([[
import logging, tifffile
logging.disable(50)
def planes(path):
    if not path: return "nothing"
    try:
        with tifffile.TiffFile(path) as f:
            s = f.series[0]
            axes, a = s.get_axes(squeeze=False), s.asarray(squeeze=False)
        axes = "".join("Z" if x in "IQ" and "Z" not in axes else x for x in axes)
        for i in reversed(range(len(axes))):
            if a.shape[i] == 1 and axes[i] not in "YX":
                a, axes = a.reshape(a.shape[:i] + a.shape[i + 1:]), axes[:i] + axes[i + 1:]
        for x in "ZCT":
            if x not in axes: a, axes = a[None], x + axes
        a = a.transpose([axes.index(x) for x in "TCZYX"])[..., 1, 1]
        return "%%dx%%dx%%d " %% a.shape + " ".join("%%d" %% round(float(x)) for x in a.ravel())
    except Exception as e:
        return "nothing"
for line in open("%s/list"):
    given, made = line.rstrip("\n").split("\t")
    print(planes(given) + "\t" + planes(made))
]]):format(folder))
        local i, understood, refused = 0, 0, 0
        for given, made in text:gmatch "([^\t\n]*)\t([^\n]*)" do
            i = i + 1
            local counts = cases[i].counts
            local want = ("%dx%dx%d "):format(counts.T, counts.C, counts.Z)
                .. table.concat(expected(counts), " ")
            if given == want then
                understood = understood + 1
                refused = refused + (cases[i].refused and 1 or 0)
            end
            if not cases[i].refused then
                assert.equal(want, made, cases[i].said)
            end
        end
        assert.equal(COUNT, i)
        if os.getenv "MOONBEAM_RANDOM_PAGES" then
            local all = 0
            for _, case in ipairs(cases) do
                all = all + (case.refused and 1 or 0)
            end
            print(("%d files: %d refused; tifffile understands %d, of which %d are refused")
                :format(COUNT, all, understood, refused))
        end
        assert.is_true(understood > COUNT / 2, understood .. " are understood")
        assert.is_true(refused <= 0.1 * understood, ("%d of %d"):format(refused, understood))
    end)
end)
