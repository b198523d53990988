-- HDF5 scans that are damaged, incomplete, or lead to files of the reader: each is refused in one
-- line, with status 1, and nothing is left; none takes memory or time by the size that it claims.
-- The files are made by h5_hostile.c.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

local hostile = helper.program:gsub("[^/]*$", "h5_hostile")
local sanitized = helper.program:match("/sanitize/") ~= nil
local MOST_KIB = 300 * 1024

-- What a message says of a file that is refused, by the kind of the file.
local refused = {
    ["never-contiguous"] = "'/exchange/data' in '[^']*' has no frames: it was never written",
    ["never-theta"] = "'/exchange/theta' in '[^']*' has no data: it was never written",
    ["never-white"] = "'/exchange/data_white' in '[^']*' has no frames: "
        .. "it was never written",
    ["half-chunks"] = "5 of the 24 frames of '/exchange/data' in '[^']*' are missing; the first "
        .. "is 11: only 19 of its 24 chunks were written; "
        .. "the option allow_missing leaves them out",
    ["half-packed"] = "12 of the 24 frames of .* the first is 13: only 6 of its 12 chunks were "
        .. "written",
    ["huge-extent"] = "has 2147483648 frames, and at most 1048576 can be read: the file is damaged",
    ["huge-element"] = "'/exchange/data' in '[^']*' holds u8388608, not numbers",
    ["odd-bias"] = "'/exchange/data' in '[^']*' holds [^']*, not numbers",
    ["bomb"] = "a chunk of '/exchange/data' of '[^']*' takes 1073741824 bytes, "
        .. "but all its data take 3072",
    ["long-text"] = "pixel_size' in '[^']*' takes 67108864 bytes, too many for a value",
    ["link-outside"] = "it refers to '[^']*/outside.h5', which is outside the file's folder "
    .. "'[^']*': if you trust the file, give "
        .. "the option allow_external",
    ["link-by-symlink"] = "it refers to '[^']*/outside.h5', which is outside the file's folder",
    ["link-dangling"] =
    "'/exchange/data' of '[^']*': it refers to the file 'gone.h5', which is missing",
    ["link-no-object"] = "it refers to '/other' in '[^']*/p0.h5', which has no such object",
    ["link-pipe"] = "it refers to 'pipe.h5', which is not an ordinary file",
    ["link-circle"] = "more than 8 links to other files follow each other: they probably form a "
        .. "circle",
    ["virtual-half"] = "12 of the 24 frames of .* the first is 13: it is a virtual dataset, and "
        .. "its sources",
    ["virtual-no-file"] =
    "12 of the 24 frames of .* it refers to the file 'p%%9.h5', which is missing",
    ["virtual-no-dataset"] =
    "12 of the 24 frames of .* its source '[^']*/p0.h5' has no dataset '/other' that can be opened",
    ["virtual-not-hdf5"] = "12 of the 24 frames of .* its source '[^']*/p1.h5' cannot be opened: "
    .. "HDF5 says \"file signature not found\"",
    ["virtual-small-source"] =
    "12 of the 24 frames of .* the dataset '/d' of its source '[^']*/p1.h5' is too small",
    ["virtual-never-written"] =
    "12 of the 24 frames of .* its source '[^']*/p1.h5' is incomplete: it was never written",
    ["virtual-nested"] =
    "12 of the 24 frames of .* it refers to the file 'gone.h5', which is missing",
    ["virtual-self"] = "more than 4 virtual datasets refer to each other: they probably form a "
        .. "circle",
    ["virtual-outside"] = "it refers to '[^']*/outside.h5', which is outside the file's folder",
}

-- Frame f and column c, from 1, of every scan, in all rows.
local function pixel(f, c)
    return 9000 + 37 * (c - 1) + f - 1
end

describe("a hostile HDF5 scan", function()
    local folder, scan, out

    before_each(function()
        folder = files.folder()
        scan, out = folder .. "/scan", folder .. "/out"
        assert(mb.system.mkdir(scan))
        assert(mb.system.mkdir(out))
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function make(kind, other)
        local output, ok = files.run(("%s %s '%s' %s"):format(hostile, kind, scan, other or ""))
        assert.is_true(ok, output)
        return scan .. "/s.h5"
    end

    -- Runs reconstruct.lua: status, KiB, what it said on its error stream.
    local function reconstruct(path, options)
        local said = folder .. "/said"
        local output = files.run(("(%s measure %s scripts/reconstruct.lua '%s' -q -o '%s/o.h5' "
            .. "%s 2>'%s')"):format(hostile,
            helper.program, path, out, options or "", said))
        local status, kib = output:match("(%-?%d+) (%d+)\n$")
        return tonumber(status), tonumber(kib), files.read(said)
    end

    -- The errors of a run: its lines without warnings.
    local function check_refused(path, pattern, options)
        local status, kib, said = reconstruct(path, options)
        assert.equal(1, status, said)
        assert.matches(pattern, said)
        assert.equal("", said:match("\n(.*)$"), said)
        assert.same({}, files.list(out))
        assert.is_true(sanitized or kib <= MOST_KIB, kib .. " KiB")
    end

    for kind, pattern in pairs(refused) do
        it("is refused: " .. kind, function()
            local opened, err = mb.scan.open(make(kind))
            assert.is_nil(opened)
            assert.matches(pattern, err.message)
            assert.is_nil(err.message:find("\n", 1, true))
        end)
    end

    -- Those of which the program might take what they claim, wait, or crash.
    for _, run in ipairs {
        { "huge-extent" }, { "huge-extent", "--plan" }, { "bomb" }, { "bomb", "--plan" },
            { "long-text" }, { "link-pipe" },
        { "virtual-self" }, { "never-white", "--plan" },
    } do
        it("ends the program with status 1, in one line: " .. table.concat(run, " "), function()
            check_refused(make(run[1]), refused[run[1]], run[2])
        end)
    end

    it("names the options of the shell", function()
        check_refused(make "half-chunks", "%-%-allow%-missing leaves them out")
        check_refused(make "link-outside", "if you trust the file, give %-%-allow%-external")
    end)

    it("does not get other files of the reader by external storage", function()
        local secret = folder .. "/secret.txt"
        files.write(secret, ("not yours "):rep(1000))
        local path = make("external-storage", secret)
        check_refused(path, "its bytes are in another file, '" .. secret
            .. "' %(external storage%): if you trust the file, give "
            .. "%-%-allow%-external")
        local file <close> = assert(mb.h5.open(path))
        assert.matches("external storage", (helper.failure(file.read, file, "/exchange/data")))
        local trusted <close> = assert(mb.h5.open(path, { allow_external = true }))
        local data <close> = trusted:read("/exchange/data", 1, 1, { 1, 2 }, { dtype = "i32" })
        assert.same({ string.unpack("<I2I2", "not ") },
            { data:to_table()[1], data:to_table()[2], 5 })
    end)

    it("may have its bytes in a file beside it if the reader allows that, and if it is long "
        .. "enough", function()
        local storage = scan .. "/storage.raw"
        files.write(storage, ("ab"):rep(24 * 64))
        local path = make("external-storage", storage)
        check_refused(path, "external storage")
        do
            local file <close> = assert(mb.h5.open(path, { allow_external = true }))
            local data <close> = file:read("/exchange/data")
            assert.equal(string.unpack("<I2", "ab"), data:min())
        end
        files.write(storage, ("ab"):rep(24 * 64 - 1))
        check_refused(path, "storage.raw', which is shorter than it should be", "--allow-external")
    end)

    -- All projections, as they were written.
    local function check_projections(s, frames)
        local data <close> = s:projections()
        local values = data:to_table()
        assert.equal(#frames, #values)
        for i, f in ipairs(frames) do
            assert.equal(pixel(f, 1), values[i][1][1])
            assert.equal(pixel(f, 16), values[i][4][16])
        end
    end

    for _, kind in ipairs { "link-beside", "link-outside", "link-by-symlink", "virtual-sound" } do
        it("is read where it is sound, or trusted: " .. kind, function()
            local s <close> = assert(mb.scan.open(make(kind),
                { allow_external = kind:match("^link%-[ob]") ~= nil }))
            local half = kind == "virtual-sound"
            local data <close> = s:projections({ 1, 1 })
            local values = data:to_table()
            for i = 1, 24 do
                local f = half and i > 12 and i - 12 or i
                assert.equal(pixel(f, 1), values[i][1][1])
            end
        end)
    end

    it("is read from a file for each frame", function()
        local path = make("virtual-blocks")
        do
            local s <close> = assert(mb.scan.open(path))
            assert.equal(24, s.n_angles)
        end
        os.remove(scan .. "/p7.h5")
        local _, err = mb.scan.open(path) -- HDF5 itself ends it there
        assert.matches("24 angles in '/exchange/theta' for 7 frames: the file is incomplete",
            err.message)
    end)

    it("is reconstructed without the frames that are missing, where that is allowed", function()
        local path = make "half-chunks"
        local s <close> = assert(mb.scan.open(path, { allow_missing = true }))
        local frames = {}
        for f = 1, 24 do
            if f <= 10 or f >= 13 and f <= 21 then
                frames[#frames + 1] = f
            end
        end
        assert.same(frames, s.frames)
        assert.equal(#frames, s.n_angles)
        for i, f in ipairs(frames) do
            assert.equal(math.rad(180 * (f - 1) / 24), s.angles[i])
        end
        check_projections(s, frames)
        assert.matches("5 of the 24 frames", table.concat(s.warnings, "\n"))
        local given <close> = assert(mb.scan.open(path,
            { allow_missing = true, angles = { 0, 23 }, angle_unit = "deg" }))
        assert.equal(math.rad(20), given.angles[#frames])
        local status, _, said = reconstruct(path, "--allow-missing")
        assert.equal(0, status)
        assert.matches("warning: 5 of the 24 frames", said)
    end)

    it("reads as zeros only for those who ask for it", function()
        local file <close> = assert(mb.h5.open(make "half-chunks"))
        local dataset <close> = file:dataset "/exchange/data"
        local runs, why = dataset:missing()
        assert.same({ { 11, 12 }, { 22, 24 } }, runs)
        assert.equal("only 19 of its 24 chunks were written", why)
        local there <close> = dataset:read({ 13, 21 })
        assert.equal(pixel(13, 1), there:min())
        assert.matches("frames of .* are missing", (helper.failure(dataset.read, dataset,
            { 12, 13 })))
        local anyhow <close> = assert(mb.h5.open(scan .. "/s.h5", { allow_missing = true }))
        local all <close> = anyhow:read("/exchange/data")
        assert.equal(777, all:min())
    end)

    it("of NXtomo names the part that is a link to nothing", function()
        local path = scan .. "/n.h5"
        local f <close> = mb.h5.create(path)
        f:group("/entry", "NXentry")
        f:write("/entry/definition", "NXtomo")
        f:group("/entry/instrument/detector", "NXdetector")
        f:link("/gone", "/entry/instrument/detector/data", { soft = true })
        f:finish()
        local _, err = mb.scan.open(path)
        assert.matches("there is no '/entry/instrument/detector/data' in '[^']*/n.h5'", err.message)
    end)

    it("of thousands of small chunks does not wait for all of them to be looked up", function()
        local path = scan .. "/c.h5"
        local f <close> = mb.h5.create(path)
        local a <close> = mb.ones({ 30000, 1, 4 }, { dtype = "u16" })
        f:write("/d", a, { chunks = { 1, 1, 4 } })
        f:finish()
        local carrier <close> = core.carrier.open { device = "host", pinned = 1 << 20 }
        local g <close> = assert(mb.h5.open(path))
        local d <close> = g:dataset "/d"
        local got <close> = mb.zeros({ 100, 1, 4 }, { dtype = "u16" })
        local begun = os.clock()
        carrier:carry(d, got, { 101, 200 }, mb.all)
        carrier:wait()
        assert.equal(400, got:sum())
        -- of this process's own time; 30 s where each is looked up
        assert.is_true(os.clock() - begun < 5)
    end)

    for _, kind in ipairs { "sound", "virtual-sound" } do
        it("that is cut off after it was opened is an error, not zeros: " .. kind, function()
            local s <close> = assert(mb.scan.open(make(kind)))
            s:projections():release()
            local cut = kind == "sound" and "s.h5" or "p0.h5"
            assert.is_true(os.execute(("truncate -s 2100 '%s/%s'"):format(scan, cut)))
            assert.matches("was truncated after it was opened",
                (helper.failure(s.projections, s)))
            local carrier <close> = core.carrier.open { device = "host", pinned = 1 << 20 }
            assert.matches("truncated", (helper.failure(function()
                local array <close> = s:projections(nil, { carrier = carrier })
                carrier:wait()
                return array:sum()
            end)))
        end)
    end
end)
