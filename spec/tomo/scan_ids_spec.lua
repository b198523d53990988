-- Angles of a scan by their first and their step, and by the ids of its frames.

local files = require "spec.support.files"
local made = require "spec.support.frame_scans"
local mb = require "moonbeam"

local N <const> = made.N
local ROTATION <const> = "/process/acquisition/rotation/"
local IDS <const> = "/defaults/NDArrayUniqueId"
-- Those of N projections of which 3 were lost after the fifth.
local LEFT <const> = {0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14}

describe("the angles of a scan", function()
    local folder

    before_each(function()
        folder = files.folder()
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function written(objects)
        return made.write(folder .. "/scan.h5", objects)
    end

    local function opened(objects, options)
        local scan, problem = mb.scan.open(written(objects), options)
        return assert(scan, tostring(problem))
    end

    local function refused(objects, code, argument, ...)
        local scan, problem = mb.scan.open(written(objects))
        assert.is_nil(scan)
        assert.same({code, argument}, {problem.code, problem.arg}, tostring(problem))
        for _, words in ipairs {...} do
            assert.is_truthy(tostring(problem):find(words, 1, true), tostring(problem))
        end
    end

    -- Asserts the angles, in degrees, and that nothing is warned of, or this alone.
    local function has(scan, degrees, warning)
        assert.equal(#degrees, #scan.angles)
        for i, angle in ipairs(degrees) do
            assert.near(math.rad(angle), scan.angles[i], 1e-9)
        end
        local list = {}
        for _, text in ipairs(scan.warnings) do
            if not text:find("the angles span", 1, true) and not text:find("a gap of", 1, true) then
                list[#list + 1] = text
            end
        end
        assert.equal(warning and 1 or 0, #list, table.concat(list, "\n"))
        assert.is_truthy(not warning or list[1]:find(warning, 1, true), list[1])
    end

    local function says(scan, words)
        assert.is_truthy(scan:describe():find(words, 1, true), scan:describe())
    end

    local function by_ids(ids, step, first)
        local list = {}
        for i, id in ipairs(ids) do
            list[i] = (id - (first or 0)) * (step or 12)
        end
        return list
    end

    local function nominal(changes)
        local objects = made.exchange {["/exchange/theta"] = false,
            [ROTATION .. "rotation_start"] = 5.0, [ROTATION .. "rotation_step"] = 15.0,
            [ROTATION .. "num_angles"] = N}
        for name, value in pairs(changes or {}) do
            objects[name] = value
        end
        return objects
    end

    local function expected(first, step)
        local list = {}
        for i = 1, N do
            list[i] = first + (i - 1) * step
        end
        return list
    end

    it("are told with the least and the greatest", function()
        local scan <close> = opened(made.exchange {["/exchange/theta"] = {value = {0, 15, 30, 45, 60,
            75, 90, 105, 120, 135, 150, 0}, attributes = {units = "deg"}}})
        says(scan, "angles     0.0000 to 150.0000 degrees")
    end)

    describe("by their first and their step", function()
        it("are those of the file where it has no list, in degrees unless it says otherwise",
            function()
            local scan <close> = opened(nominal())
            has(scan, expected(5, 15))
            says(scan, "by rotation_start and rotation_step")
            local list <close> = opened(nominal {["/exchange/theta"] = made.degrees()})
            has(list, made.degrees())
            local radians <close> = opened(nominal {[ROTATION .. "rotation_start"] = 0,
                [ROTATION .. "rotation_step"] = {value = math.pi / N,
                    attributes = {units = "radians"}}})
            has(radians, made.degrees())
            local typed <close> = opened(nominal(), {angles = {0, 165}, angle_unit = "deg"})
            has(typed, made.degrees())
            local other <close> = opened(nominal {[ROTATION .. "num_angles"] = false,
                [ROTATION .. "rotation_start"] = false, [ROTATION .. "rotation_step"] = false,
                [ROTATION .. "start"] = 0, [ROTATION .. "step"] = -15})
            has(other, expected(0, -15))
        end)

        it("make the volume of the same angles in a list", function()
            local by_steps = made.volume(written(nominal {[ROTATION .. "rotation_start"] = 0}))
            assert.is_true(by_steps == made.volume(written(made.exchange())))
        end)

        it("are refused where they cannot be right", function()
            refused(nominal {[ROTATION .. "num_angles"] = N + 3}, "shape", "angles",
                "says 15 angles", "has 12 projections", "give the option angles")
            refused(nominal {[ROTATION .. "rotation_step"] = 0}, "io", "angles", "is 0")
            refused(nominal {[ROTATION .. "rotation_start"] = 0 / 0}, "io", "angles",
                "rotation_start' in ")
            refused(nominal {[ROTATION .. "rotation_step"] = false}, "argument", "angles",
                "has no angles")
        end)

        it("say which is the first, where ids that begin at 1 leave it open", function()
            local from_one, open = {}, "if ids count from 0, the first frame was lost"
            for i, id in ipairs(LEFT) do
                from_one[i] = id + 1
            end
            local function with(ids, total, options)
                return opened(nominal {[ROTATION .. "num_angles"] = total,
                    [ROTATION .. "rotation_start"] = 0, [ROTATION .. "rotation_step"] = 12,
                    [IDS] = ids}, options)
            end
            local scan <close> = with(from_one, N + 4)
            has(scan, by_ids(from_one, 12, 1))
            says(scan, open)
            local typed <close> = with(from_one, N + 4, {angles = {12, 180}, angle_unit = "deg"})
            has(typed, by_ids(from_one, 12))
            for _, clear in ipairs {{from_one, N + 3}, {LEFT, N + 4}, {LEFT, N + 3}} do
                local one <close> = with(clear[1], clear[2])
                has(one, by_ids(clear[1], 12, clear[1][1]))
                assert.is_nil(one:describe():find(open, 1, true))
            end
        end)

        it("leave out what the ids of the frames say was lost", function()
            for _, total in ipairs {N + 3, false} do
                local scan <close> = opened(nominal {[ROTATION .. "num_angles"] = total,
                    [ROTATION .. "rotation_start"] = 0, [ROTATION .. "rotation_step"] = 12,
                    [IDS] = LEFT})
                has(scan, by_ids(LEFT))
                says(scan, "3 projections were lost, by the ids of the frames in '" .. IDS .. "'")
            end
            local all <close> = opened(nominal {[IDS] = LEFT, [ROTATION .. "rotation_start"] = 0})
            has(all, made.degrees(), "the ids of the frames in '" .. IDS .. "' leave 3 numbers out, "
                .. "the first after projection 5")
        end)
    end)

    describe("by the ids of the frames", function()
        local function longer(ids, count, changes)
            local objects = made.exchange {["/exchange/theta"] = {
                value = made.degrees(count or N + 3, 12), attributes = {units = "deg"}}, [IDS] = ids}
            for name, value in pairs(changes or {}) do
                objects[name] = value
            end
            return objects
        end

        it("are picked out of a longer list", function()
            local scan <close> = opened(longer(LEFT))
            has(scan, by_ids(LEFT))
            says(scan, "12 of 15, by the ids of the frames in '" .. IDS .. "'")
            local from_one = {}
            for i, id in ipairs(LEFT) do
                from_one[i] = id + 1
            end
            local second <close> = opened(longer(from_one))
            has(second, by_ids(LEFT))
            local from_many = {}
            for i, id in ipairs(LEFT) do
                from_many[i] = id + 71
            end
            local third <close> = opened(longer(from_many)) -- they span all 15
            has(third, by_ids(LEFT))
            local last <close> = opened(longer({3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15}))
            has(last, by_ids({3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15}, 12, 1))
        end)

        it("are those of the projections alone, where the file says where each frame is", function()
            local ids, places = {7, 8, 9, 10, 11}, {"/exchange/data_white", "/exchange/data_white",
                "/exchange/data_white", "/exchange/data_white", "/exchange/data_dark"}
            for i, id in ipairs(LEFT) do
                ids[#ids + 1], places[5 + i] = id, "/exchange/data"
            end
            local objects = longer(ids, nil, {["/defaults/HDF5FrameLocation"] = places})
            local scan <close> = opened(objects)
            has(scan, by_ids(LEFT))
            objects["/defaults/HDF5FrameLocation"] = false
            refused(objects, "shape", "angles", "15 angles", "12 frames",
                "there are 17 for 12 projections")
        end)

        it("are refused where the ids do not say which they are", function()
            refused(longer({0, 1, 2, 3, 4, 4, 9, 10, 11, 12, 13, 14}), "shape", "angles",
                "do not ascend as whole numbers (the one of projection 6 is 4)")
            refused(longer({0, 1, 2, 3, 4.5, 5, 9, 10, 11, 12, 13, 14}), "shape", "angles",
                "the one of projection 5 is 4.5")
            refused(longer({5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17}), "shape", "angles",
                "which leaves open which of the 15 angles the first belongs to")
            refused(longer({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15}), "shape", "angles",
                "over more numbers than the 15 angles")
        end)

        it("are told where there are as many angles as frames, unless their steps have the gaps",
            function()
            local scan <close> = opened(longer(LEFT, N, {["/exchange/theta"] = made.degrees()}))
            has(scan, made.degrees(), "leave 3 numbers out, the first after projection 5, and "
                .. "'/exchange/theta' does not")
            local gaps <close> = opened(longer(LEFT, N, {["/exchange/theta"] = by_ids(LEFT)}))
            has(gaps, by_ids(LEFT))
            local unset <close> = opened(longer({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, N,
                {["/exchange/theta"] = made.degrees()}))
            has(unset, made.degrees())
        end)

        it("leave places out between a first and a last that are typed", function()
            local scan <close> = opened(longer(LEFT), {angles = {0, 168}, angle_unit = "deg"})
            has(scan, by_ids(LEFT))
            says(scan, "3 projections were lost")
        end)

        it("are picked in NXtomo, where the ids count flats and darks as well", function()
            local place = "/instrument/NDAttributes/NDArrayUniqueId"
            local ids, list = {}, {}
            for i = 0, N + 5 do
                ids[i + 1] = i < 9 and i or i + 3
            end
            for i = 1, N + 3 do
                list[i] = (i - 1) * 12
            end
            local theta = {value = list, attributes = {units = "deg"}}
            local scan <close> = opened((made.nxtomo {["/sample/rotation_angle"] = theta,
                [place] = ids}))
            has(scan, by_ids(LEFT))
            local all = {}
            for i = 1, N + 9 do
                all[i] = (i - 1) * 12
            end
            local every <close> = opened((made.nxtomo {[place] = ids,
                ["/sample/rotation_angle"] = {value = all, attributes = {units = "deg"}}}))
            has(every, by_ids(LEFT, 12, -4))
        end)
    end)
end)
