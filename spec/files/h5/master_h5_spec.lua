-- Masters: HDF5 scans whose parts are links to other files, to one or several, or behind a group of
-- another file. Links are made by h5_hostile.c.

local check = require "spec.support.step_check"
local files = require "spec.support.files"
local helper = require "spec.helper"
local made = require "spec.support.frame_scans"
local mb = require "moonbeam"

local linker = helper.program:gsub("[^/]*$", "h5_hostile")
local PARTS <const> = {"data", "data_white", "data_dark", "theta"}

describe("a master of a scan", function()
    local folder

    before_each(function()
        folder = files.folder()
        assert(mb.system.mkdir(folder .. "/scan"))
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function at(name)
        return folder .. "/scan/" .. name
    end

    -- Adds links {path, file, object} to a file, which is made where it is not there.
    local function link(name, links)
        local words = {}
        for _, each in ipairs(links) do
            for _, word in ipairs(each) do
                words[#words + 1] = ("'%s'"):format(word)
            end
        end
        local output, ok = files.run(("%s link '%s' %s"):format(linker, at(name),
            table.concat(words, " ")))
        assert.is_true(ok, output)
        return at(name)
    end

    -- The names of what this process has open in the folder.
    local function held()
        return (files.run(("ls -l /proc/%d/fd 2>/dev/null | grep -c '%s/scan'"):format(
            tonumber((io.open("/proc/self/stat"):read "n")), folder)):match "%d+")
    end

    local function of_parts(file_of)
        local links = {}
        for i, name in ipairs(PARTS) do
            links[i] = {"/exchange/" .. name, file_of(name), "/exchange/" .. name}
        end
        return links
    end

    -- Asserts that a master is the scan itself, that a recipe, and the command with these arguments,
    -- make the same of both, and that nothing stays open.
    local function is_whole(path, options, arguments)
        local original = made.write(folder .. "/original.h5", made.exchange())
        assert.equal("0", held())
        do
            local scan <close> = assert(mb.scan.open(path, options))
            local whole <close> = assert(mb.scan.open(original))
            assert.same({made.N, 4, 2}, {scan.n_angles, scan.n_flats, scan.n_darks})
            assert.same(whole.angles, scan.angles)
            local want <close> = check.result(whole, {"flat_field"})
            local _ <close> = check.gives(want, scan, {"flat_field"})
            assert.is_true(held() ~= "0")
        end
        collectgarbage()
        assert.equal("0", held())
        if arguments then
            assert.is_true(made.volume(original, "--pixel-size 1")
                == made.volume(path, "--pixel-size 1 " .. arguments))
        end
    end

    it("is read where all its parts are in one other file", function()
        made.write(at "parts.h5", made.exchange())
        is_whole(link("master.h5", of_parts(function() return "parts.h5" end)), nil, "")
    end)

    it("is read where its parts are in several files", function()
        for _, name in ipairs(PARTS) do
            local path = "/exchange/" .. name
            made.write(at(name .. ".h5"), {[path] = made.exchange()[path]})
        end
        is_whole(link("master.h5", of_parts(function(name) return name .. ".h5" end)))
    end)

    for _, part in ipairs {"data_white", "data_dark", "theta"} do
        it("is read where one part is a link: " .. part, function()
            local path = "/exchange/" .. part
            made.write(at "part.h5", {["/p"] = made.exchange()[path]})
            made.write(at "master.h5", made.exchange {[path] = false})
            is_whole(link("master.h5", {{path, "part.h5", "/p"}}))
        end)
    end

    it("is read behind a linked group, and links behind each other", function()
        made.write(at "parts.h5", made.exchange())
        link("between.h5", {{"/some/where", "parts.h5", "/exchange"}})
        is_whole(link("master.h5", {{"/exchange", "between.h5", "/some/where"}}))
    end)

    it("is not read from elsewhere, unless that is allowed", function()
        made.write(folder .. "/parts.h5", made.exchange())
        local path = link("master.h5", of_parts(function() return "../parts.h5" end))
        local scan, problem = mb.scan.open(path)
        assert.is_nil(scan)
        assert.is_truthy(tostring(problem):find("outside the file's folder", 1, true),
            tostring(problem))
        is_whole(path, {allow_external = true}, "--allow-external")
    end)

    it("is read while one of its files is open by itself", function()
        made.write(at "parts.h5", made.exchange())
        local path = link("master.h5", of_parts(function() return "parts.h5" end))
        local file <close> = assert(mb.h5.open(at "parts.h5"))
        local own <close> = file:dataset "/exchange/data"
        local scan <close> = assert(mb.scan.open(path, {flats = at "parts.h5"
            .. ":/exchange/data_white"}))
        local flats <close> = scan:flats()
        local frames <close> = own:read()
        local projections <close> = scan:projections()
        assert.equal(4, flats.shape[1])
        assert.equal(frames:to_string(), projections:to_string())
    end)

    it("has the bytes of the file that a link leads to, also where they move by themselves",
        function()
        made.write(at "parts.h5", made.exchange())
        local padding <close> = mb.full({1 << 20}, 7, {dtype = "u16", device = "host"})
        made.write(at "master.h5", {["/padding"] = padding})
        is_whole(link("master.h5", of_parts(function() return "parts.h5" end)), nil, "--chunk 1")
    end)

    it("tells where a linked file is cut off while it is read", function()
        made.write(at "parts.h5", made.exchange())
        local path = link("master.h5", of_parts(function() return "parts.h5" end))
        local scan <close> = assert(mb.scan.open(path))
        local _, ok = files.run(("truncate -s 4096 '%s'"):format(at "parts.h5"))
        assert.is_true(ok)
        local text = helper.failure(scan.projections, scan)
        assert.is_truthy(text:find("parts.h5' was truncated after it was opened", 1, true), text)
    end)

    describe("in NXtomo", function()
        local function is_nxtomo(path, entry)
            local original = made.write(folder .. "/original.h5", (made.nxtomo()))
            do
                local scan <close> = assert(mb.scan.open(path))
                local whole <close> = assert(mb.scan.open(original))
                assert.equal("NXtomo", scan.format)
                assert.equal(entry .. "/instrument/detector/data", scan.data_path)
                local recipe = {{"flat_field", interpolation = "linear"}}
                local want <close> = check.result(whole, recipe)
                local _ <close> = check.gives(want, scan, recipe)
            end
            collectgarbage()
            assert.equal("0", held())
        end

        it("is read where the entry is a group of another file", function()
            made.write(at "scan.nx", (made.nxtomo()))
            is_nxtomo(link("master.h5", {{"/entry_0001", "scan.nx", "/entry"}}), "/entry_0001")
        end)

        it("is read where groups of the entry are", function()
            made.write(at "scan.nx", (made.nxtomo()))
            made.write(at "master.h5", {["/scan"] = {group = "NXentry"},
                ["/scan/definition"] = "NXtomo"})
            is_nxtomo(link("master.h5", {{"/scan/instrument", "scan.nx", "/entry/instrument"},
                {"/scan/sample", "scan.nx", "/entry/sample"}}), "/scan")
        end)

        it("is read where the keys and angles are links", function()
            made.write(at "scan.nx", (made.nxtomo()))
            local objects = made.nxtomo {["/instrument/detector/image_key"] = false,
                ["/sample/rotation_angle"] = false}
            made.write(at "master.h5", objects)
            is_nxtomo(link("master.h5", {{"/entry/instrument/detector/image_key", "scan.nx",
                "/entry/instrument/detector/image_key"}, {"/entry/sample/rotation_angle", "scan.nx",
                "/entry/sample/rotation_angle"}}), "/entry")
        end)

        it("has several, of which an option names one; circles end", function()
            made.write(at "scan.nx", (made.nxtomo()))
            made.write(at "other.nx", (made.nxtomo()))
            local path = link("master.h5", {{"/a", "scan.nx", "/entry"}, {"/b", "other.nx",
                "/entry"}, {"/self", "master.h5", "/"}})
            link("scan.nx", {{"/entry/master", "master.h5", "/"}})
            local scan <close> = assert(mb.scan.open(path))
            assert.equal("/a/instrument/detector/data", scan.data_path)
            local named <close> = assert(mb.scan.open(path, {entry = "/b"}))
            assert.equal("/b/instrument/detector/data", named.data_path)
            assert.equal(0, #named.warnings, table.concat(named.warnings, "\n"))
        end)
    end)
end)
