-- Layouts of single beamlines: where their frames, angles, pixels and energy are.
local mb = require "moonbeam"
local files = require "spec.support.files"
local scans = require "spec.support.frame_scans"

describe("the scan of a beamline", function()
    local folder, path

    setup(function()
        folder = files.folder()
        path = folder .. "/scan.h5"
    end)

    teardown(function()
        files.remove(folder)
    end)

    -- A scan as FXI of NSLS-II writes it, with changes.
    local function fxi(changes)
        local objects = {["/img_tomo"] = scans.data(), ["/img_bkg"] = scans.flats(1, 4),
            ["/img_dark"] = scans.darks(1, 2), ["/img_bkg_avg"] = scans.flats(9, 9),
            ["/img_dark_avg"] = scans.darks(9, 9), ["/angle"] = scans.degrees(), ["/X_eng"] = 8.4,
            ["/Pixel Size"] = "1000.0nm", ["/scan_id"] = 7, ["/note"] = "none"}
        for name, object in pairs(changes or {}) do
            objects[name] = object
        end
        return scans.write(path, objects)
    end

    it("is that of FXI", function()
        local wanted = scans.volume(scans.write(folder .. "/usual.h5", scans.exchange()))
        local volume, text = scans.volume(fxi())
        assert(wanted == volume)
        assert.is_nil(text:find("warning", 1, true), text)
        local s <close> = assert(mb.scan.open(path))
        assert.same({"NSLS-II FXI", scans.N, 4, 2}, {s.format, s.n_angles, s.n_flats, s.n_darks})
        assert.near(1e-6, s.pixel_size, 1e-15)
        assert.near(8400, s.says.energy, 1e-9)
        assert.is_truthy(s:describe():find("NSLS-II FXI defines degrees", 1, true))
        assert.same({}, s.warnings)
    end)

    it("is that of FXI without single frames, units or angles", function()
        fxi {["/img_bkg"] = false, ["/img_dark"] = false}
        local s <close> = assert(mb.scan.open(path))
        assert.same({1, 1}, {s.n_flats, s.n_darks})
        for _, size in ipairs {20.5, "20.5", "wide", "20.5 parsec"} do
            fxi {["/Pixel Size"] = size}
            local one <close> = assert(mb.scan.open(path))
            assert.is_nil(one.pixel_size)
            assert.equal(1, #one.warnings)
            assert.is_truthy(one.warnings[1]:find("option pixel_size", 1, true))
        end
        fxi {["/angle"] = false}
        local none, problem = mb.scan.open(path)
        assert.is_nil(none)
        assert.same({"argument", "angles"}, {problem.code, problem.arg})
    end)
end)
