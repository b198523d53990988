-- Scans that are still being written are waited for, or refused with what was seen and the remedy:
-- HDF5 with and without SWMR, series of TIFF files, Zarr.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local FRAMES <const>, ROWS <const>, COLS <const> = 12, 3, 16

local shell

local function path(name)
    return shell:path(name)
end

-- A writer of a scan in HDF5: FRAMES frames, one every `pause` seconds, after `before` at once; how:
-- "swmr", "grown", "fixed" (has its full size at once), "dies" (ends without closing, SWMR).
local WRITER <const> = [[
import h5py, numpy as np, os, sys, time
path, how, before, pause = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
swmr = how in ("swmr", "dies")
f = h5py.File(path + ".new", "w", libver="latest" if swmr else None)
f["/exchange/data_white"] = np.full((2, %d, %d), 9, "u2")
f["/exchange/data_dark"] = np.full((2, %d, %d), 1, "u2")
f["/exchange/theta"] = np.arange(%d) * 15.0
f["/exchange/theta"].attrs["units"] = "deg"
shape = (%d, %d, %d)
d = f.create_dataset("/exchange/data", (shape if how == "fixed" else (0,) + shape[1:]),
    maxshape=(None,) + shape[1:], chunks=(1,) + shape[1:], dtype="u2")
if swmr:
    f.swmr_mode = True
for i in range(shape[0]):
    if how != "fixed":
        d.resize(i + 1, axis=0)
    d[i] = 2 + i %% 5
    f.flush()
    if i + 1 == before:
        os.rename(path + ".new", path)
        if how == "dies":
            os._exit(0)
    if i + 1 >= before:
        time.sleep(pause)
f.close()
]]

-- Starts a writer and waits until the file is there.
local function writer(name, how, before, pause)
    local script = path "writer.py"
    files.write(script, WRITER:format(ROWS, COLS, ROWS, COLS, FRAMES, FRAMES, ROWS, COLS))
    os.execute(("%s %s %s %s %d %g >%s.log 2>&1 &"):format(
        os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python", script, path(name), how,
        before, pause, path(name)))
    local began = mb.system.clock()
    while not mb.system.stat(path(name)) and mb.system.clock() - began < 30 do
        mb.system.sleep(0.02)
    end
end

-- Opens a scan; returns the number of its projections, or nil and the error as text, and the lines
-- that were told.
local function open(name, options)
    local told = {}
    options.tell = function(line)
        told[#told + 1] = line
    end
    local scan <close>, problem = mb.scan.open(path(name), options)
    return scan and scan.n_angles, tostring(problem), told, scan and scan.warnings
end

describe("a scan that is still being written", function()
    setup(function()
        shell = commands.folder()
    end)

    teardown(function()
        shell:remove()
    end)

    it("with SWMR is refused with the frames so far, and waited for", function()
        oracle.needs "h5py"
        writer("swmr.h5", "swmr", 5, 0.12)
        local count, problem = open("swmr.h5", {})
        assert.is_nil(count)
        assert.matches("swmr.h5' is still being written: it is open for writing %(SWMR%), with "
            .. "%d+ frames so far; its last change is %d+ s old; the option wait = SECONDS waits "
            .. "for it; if its writer [^\n]*'h5clear %-s [^\n]*swmr.h5'", problem)
        local told
        count, problem, told = open("swmr.h5", {wait = 60})
        assert.equal(FRAMES, count, problem)
        assert.matches("^waiting for [^\n]*swmr.h5', 0 s of 60 s: it is open for writing", told[1])
        assert.is_true(#told <= 3)
    end)

    it("without SWMR is known by the lock of its writer", function()
        oracle.needs "h5py"
        for _, how in ipairs {"grown", "fixed"} do
            local name = how .. ".h5"
            writer(name, how, 5, 0.12)
            local count, problem = open(name, {})
            assert.is_nil(count)
            assert.matches(how == "grown" and "has 12 angles in [^\n]* for %d+ frames[^\n]*; process "
                .. "%d+ has it open for writing; the option wait = SECONDS waits for it"
                or "of the 12 frames of [^\n]* are missing; the first is %d+[^\n]*; process %d+ has "
                .. "it open for writing; the option wait = SECONDS", problem)
            count, problem = open(name, {wait = 60})
            assert.equal(FRAMES, count, problem)
        end
    end)

    it("whose writer keeps it open is read where all frames are there, with a warning", function()
        oracle.needs "h5py"
        writer("open.h5", "fixed", FRAMES, 0.8)
        local count, problem, _, warnings = open("open.h5", {})
        assert.equal(FRAMES, count, problem)
        assert.matches("is read as it is now: process %d+ has it open for writing",
            table.concat(warnings, "\n"))
        count, _, _, warnings = open("open.h5", {wait = 60})
        assert.equal(FRAMES, count)
        assert.is_nil(table.concat(warnings, "\n"):find "open for writing")
    end)

    it("whose writer has died is refused when the time is over, with the remedy", function()
        oracle.needs "h5py"
        writer("dead.h5", "dies", 7, 0)
        local began = mb.system.clock()
        local count, problem = open("dead.h5", {wait = 0.6})
        assert.is_true(mb.system.clock() - began >= 0.6)
        assert.is_nil(count)
        assert.matches("with 7 frames so far; [^\n]*; waited for 0.6 s; if its writer has ended "
            .. "without closing it, 'h5clear", problem)
    end)

    it("reads what a writer shares as it is when it is opened", function()
        oracle.needs "h5py"
        writer("shared.h5", "dies", 7, 0)
        assert.is_nil((mb.h5.open(path "shared.h5")))
        local file <close> = assert(mb.h5.open(path "shared.h5", {swmr = true}))
        local frames <close> = file:read("/exchange/data", 7)
        assert.equal(2 + 6 % 5, frames:max())
    end)

    -- Frames of 16-bit TIFF, and a list of their angles.
    local function series(first, last)
        if not mb.system.stat(path "frames") then
            mb.system.mkdir(path "frames")
        end
        for i = first, last do
            local frame <close> = mb.full({ROWS, COLS}, i, {dtype = "u16"})
            mb.images.write(path(("frames/p_%d.tif"):format(i)), frame)
        end
    end
    local angles = {}
    for i = 1, FRAMES do
        angles[i] = (i - 1) * 15.0
    end

    it("as TIFF files is refused with the last file, and waited for", function()
        series(1, 9)
        local options = {angles = angles, angle_unit = "deg", flats = false, darks = false}
        local count, problem = open("frames", options)
        assert.is_nil(count)
        assert.matches("frames' has 9 frames for 12 angles: frames 10 to 12 are missing; the last "
            .. "file is '[^\n]*p_9.tif'; the option wait = SECONDS", problem)
        mb.system.mkdir(path "later")
        for i = 10, 12 do
            local frame <close> = mb.full({ROWS, COLS}, i, {dtype = "u16"})
            mb.images.write(path(("later/p_%d.tif"):format(i)), frame)
        end
        os.execute(("(sleep 0.2; mv %s/* %s) &"):format(path "later", path "frames"))
        options.wait = 60
        count, problem = open("frames", options)
        assert.equal(FRAMES, count, problem)
    end)

    it("as Zarr is refused with the first frame that was never written", function()
        mb.system.mkdir(path "scan.zarr")
        files.write(path "scan.zarr/.zarray", ('{"zarr_format": 2, "shape": [%d, %d, %d], '
            .. '"chunks": [1, %d, %d], "dtype": "<u2", "compressor": null, "filters": null, '
            .. '"fill_value": 0, "order": "C"}'):format(FRAMES, ROWS, COLS, ROWS, COLS))
        for i = 0, 8 do
            files.write(path(("scan.zarr/%d.0.0"):format(i)), ("\1\0"):rep(ROWS * COLS))
        end
        local options = {angles = angles, angle_unit = "deg", flats = false, darks = false}
        local count, problem = open("scan.zarr", options)
        assert.is_nil(count)
        assert.matches("3 of the 12 frames of '[^\n]*scan.zarr' are missing, the first is 10: they "
            .. "were never written; the option wait = SECONDS", problem)
        for i = 9, 11 do
            files.write(path(("part.%d"):format(i)), ("\1\0"):rep(ROWS * COLS))
        end
        os.execute(("(sleep 0.2; for i in 9 10 11; do mv %s.$i %s/$i.0.0; done) &"):format(
            path "part", path "scan.zarr"))
        options.wait = 60
        count, problem = open("scan.zarr", options)
        assert.equal(FRAMES, count, problem)
    end)

    it("is waited for where it is not there yet, by the command, too", function()
        commands.must("simulate.lua", path "made.h5" .. " --size 32 --rows 2 --angles 20 --quiet")
        local count, problem, told = open("new.h5", {wait = 0.3})
        assert.is_nil(count)
        assert.matches("cannot open '[^\n]*new.h5'[^\n]*; waited for 0.3 s$", problem)
        assert.matches("^waiting for '[^\n]*new.h5', 0 s of 0.3 s: it is not there yet$", told[1])
        os.execute(("(sleep 0.3; cp %s %s) &"):format(path "made.h5", path "new.h5"))
        count, problem = open("new.h5", {wait = 60})
        assert.equal(20, count, problem)
        local arguments = path "newer.h5" .. " --plan -d host "
        local status, text = commands.run("reconstruct.lua", arguments)
        assert.equal(1, status)
        assert.matches("^reconstruct: cannot open '[^\n]*check the name[^\n]*\n$", text)
        status, text = commands.run("reconstruct.lua", arguments .. "--wait 0.3")
        assert.equal(1, status)
        assert.matches("newer.h5', 0 s of 0.3 s: it is not there yet\nreconstruct: cannot open "
            .. "'[^\n]*newer.h5'[^\n]*; waited for 0.3 s\n$", text)
        os.execute(("(sleep 0.3; cp %s %s) &"):format(path "made.h5", path "newer.h5"))
        assert.matches("20 projections of 2 rows",
            commands.must("reconstruct.lua", arguments .. "--wait 60"))
    end)

    it("is told in the words of the command, which waits, too", function()
        local status, text = commands.run("reconstruct.lua", path "frames" .. " --angles-path "
            .. path "none.txt --angle-unit deg --wait 0.3 -o " .. path "r.h5")
        assert.equal(1, status)
        assert.matches("^reconstruct: cannot read the angles", text)
        files.write(path "angles.txt", "0 15 30 45 60 75 90 105 120 135 150 165 170 175")
        status, text = commands.run("reconstruct.lua", path "frames" .. " --angles-path "
            .. path "angles.txt --angle-unit deg --wait 0.3 -o " .. path "r.h5")
        assert.equal(1, status)
        assert.matches("waiting for [^\n]*frames', 0 s of 0.3 s: [^\n]*\nreconstruct: [^\n]* has 12 "
            .. "frames for 14 angles: frames 13 to 14 are missing; [^\n]*; waited for 0.3 s\n$",
            text)
        assert.matches("a number", (helper.failure(mb.scan.open, path "frames", {wait = -1})))
    end)
end)
