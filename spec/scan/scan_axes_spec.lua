-- Frames whose dataset has more axes than three, or rows before frames: what is read, what is
-- refused.
local core = require "moonbeam.core"
local mb = require "moonbeam"
local files = require "spec.support.files"
local scans = require "spec.support.frame_scans"

local N <const>, ROWS <const>, COLS <const> = scans.N, scans.ROWS, scans.COLS
local DATA <const>, WHITE <const>, DARK <const> = "/exchange/data", "/exchange/data_white",
    "/exchange/data_dark"

describe("axes of frames", function()
    local folder, path, usual

    -- The number of flats is not that of rows.
    local function exchange()
        return scans.exchange {[WHITE] = scans.flats(1, 3)}
    end

    setup(function()
        folder = files.folder()
        path = folder .. "/scan.h5"
        usual = scans.volume(scans.write(folder .. "/usual.h5", exchange()))
    end)

    teardown(function()
        files.remove(folder)
    end)

    -- Writes the usual scan with datasets {name = function(array) -> an array, attributes,
    -- options}.
    local function write(changed)
        local objects = exchange()
        local arrays = {}
        for name in pairs(changed) do
            arrays[name], objects[name] = objects[name], false
        end
        scans.write(folder .. "/part.h5", objects)
        local file <close> = assert(mb.h5.create(path, {overwrite = true}))
        for name, object in pairs(objects) do
            if object and not arrays[name] then
                local source <close> = assert(mb.h5.open(folder .. "/part.h5"))
                if name:find "data" then
                    local array <close> = source:read(name)
                    file:write(name, array)
                else
                    file:write(name, source:value(name),
                        {attributes = type(object) == "table" and object.attributes or nil})
                end
            end
        end
        for name, change in pairs(changed) do
            local array <close> = mb.array(arrays[name].value or arrays[name], {dtype = "u16",
                device = "host"})
            local made, attributes, how = change(array)
            local own <close> = made
            how = how or {}
            how.attributes = attributes
            file:write(name, own, how)
        end
        file:finish()
        return path
    end

    -- Datasets with axes of extent 1 at these places of their shape.
    local function with_ones(places, how)
        return function(array)
            local shape = {table.unpack(array.shape)}
            for _, place in ipairs(places) do
                table.insert(shape, place, 1)
            end
            local copy = array:copy()
            return copy:reshape(table.unpack(shape)), nil, how and how(shape)
        end
    end

    -- Rows before frames.
    local function turned(attribute, how)
        return function(array)
            local view <close> = array:permute(2, 1, 3)
            return view:copy(), attribute and {axes = attribute}, how and how(view.shape)
        end
    end

    local function all(change)
        return {[DATA] = change, [WHITE] = change, [DARK] = change}
    end

    -- Volumes are too long for a message.
    local function same_bytes(wanted, volume, what)
        assert(wanted == volume, ("the volumes differ: %s"):format(what or ""))
    end

    -- The code, argument and text of the refusal of the file, opened with options.
    local function refusal(options)
        local made, problem = mb.scan.open(path, options)
        assert.is_nil(made)
        return {problem.code, problem.arg}, problem.message
    end

    -- Asserts that the file, opened with options, has the frames of the usual scan and no warning.
    local function is_usual(options)
        local given <close> = assert(mb.scan.open(folder .. "/usual.h5"))
        local s <close> = assert(mb.scan.open(path, options))
        assert.same({}, s.warnings)
        for _, name in ipairs {"projections", "flats", "darks"} do
            local wanted <close> = given[name](given)
            local found <close> = s[name](s)
            assert.same(wanted.shape, found.shape)
            assert.is_true(wanted:to_string() == found:to_string(), name)
        end
    end

    for _, places in ipairs {{1}, {2}, {4}, {1, 5}} do
        it(("of extent 1 at %s are left out"):format(table.concat(places, " and ")), function()
            write(all(with_ones(places)))
            is_usual()
            if places[1] == 1 and not places[2] then
                local volume, text = scans.volume(path)
                same_bytes(usual, volume)
                assert.is_nil(text:find("warning", 1, true), text)
            end
        end)
    end

    it("of extent 1 are left out of chunks, compressed or not, of rows and by recipes", function()
        for _, deflate in ipairs {0, 4} do
            write(all(with_ones({1}, function(shape)
                return {chunks = {1, 1, shape[3], shape[4]}, deflate = deflate}
            end)))
            same_bytes(usual, (scans.volume(path, "--chunk 2")))
        end
        local part = scans.volume(path, "--rows 2:3")
        same_bytes(usual:sub(COLS * COLS * 4 + 1, 3 * COLS * COLS * 4), part)
        local recipe = folder .. "/recipe.lua"
        files.write(recipe,
            "return {'flat_field', 'minus_log', {'fbp', center = 7.5}}\n")
        same_bytes((scans.volume(folder .. "/usual.h5", "--recipe " .. recipe)),
            (scans.volume(path, "--recipe " .. recipe)))
    end)

    it("of extent 1 do not hide frames that were never written", function()
        local file <close> = assert(mb.h5.create(path, {overwrite = true}))
        local frames <close> = mb.array(scans.data(), {dtype = "u16", device = "host"})
        local some <close> = frames:view {1, 9}
        local own <close> = some:copy():reshape(1, 9, ROWS, COLS)
        local dataset = file:create_dataset(DATA, {shape = {1, N, ROWS, COLS}, dtype = "u16",
            chunks = {1, 1, ROWS, COLS}, deflate = 1})
        dataset:write(own, mb.all, {1, 9})
        file:write("/exchange/theta", scans.degrees(), {attributes = {units = "deg"}})
        file:finish()
        local code, text = refusal {}
        assert.same({"io", "allow_missing"}, code)
        assert.is_truthy(text:find("3 of the 12 frames", 1, true), text)
        local s <close> = assert(mb.scan.open(path, {allow_missing = true}))
        assert.equal(9, s.n_angles)
    end)

    it("that are longer than 1 and more than three are refused with the shape", function()
        write {[DATA] = function(array)
            return array:copy():reshape(2, N // 2, ROWS, COLS)
        end}
        local code, text = refusal {}
        assert.same({"shape", "data"}, code)
        assert.is_truthy(text:find(("2 x %d x %d x %d"):format(N // 2, ROWS, COLS), 1, true), text)
    end)

    it("are read as y:theta:x where the attribute says so", function()
        local volume, text = scans.volume(write(all(turned "y:theta:x")))
        same_bytes(usual, volume)
        assert.is_nil(text:find("warning", 1, true), text)
        assert.is_truthy(text:find("stored as y:theta:x", 1, true), text)
        assert.equal(usual:sub(COLS * COLS * 4 + 1, 3 * COLS * COLS * 4),
            (scans.volume(path, "--rows 2:3")))
        write {[DATA] = turned "row:angle:column", [WHITE] = turned(), [DARK] = turned "y:theta:x"}
        is_usual()
        write {[DATA] = turned "y:theta:x"} -- flats and darks in the usual order
        is_usual()
    end)

    -- The projections of some rows, read at once and by a carrier with slots of few lines.
    local function projections(s, rows)
        local host = mb.device "host"
        local carrier <close> = core.carrier.open {device = host, threads = 2, pinned = 4 * 65536,
            slot = 65536}
        local carried <close> = s:projections(rows, {device = host, carrier = carrier})
        carrier:wait()
        local read <close> = s:projections(rows, {device = host})
        assert.is_true(read:to_string() == carried:to_string())
        return read:to_string()
    end

    it("are read as y:theta:x of chunks of any form", function()
        local given <close> = assert(mb.scan.open(folder .. "/usual.h5"))
        for _, form in ipairs {{1, N, COLS}, {2, 5, COLS}, {ROWS, 1, COLS}, {3, 4, 5}} do
            for _, deflate in ipairs {0, 3} do
                write {[DATA] = turned("y:theta:x", function()
                    return {chunks = form, deflate = deflate}
                end)}
                local s <close> = assert(mb.scan.open(path))
                for _, rows in ipairs {{1, ROWS}, {2, 3}, {ROWS, ROWS}, {1, 3, 2}} do
                    assert.is_true(projections(given, rows) == projections(s, rows))
                end
            end
        end
        same_bytes(usual, (scans.volume(path, "--chunk 3")))
    end)

    it("are read as y:theta:x in parts of frames and lines", function()
        -- Lines of 9000 bytes: a slot holds seven, a frame has nine.
        local values = {}
        for k = 1, 300 do
            values[k] = {}
            for r = 1, 9 do
                values[k][r] = k * 10 + r
            end
        end
        local lines <close> = mb.array(values, {dtype = "u16", device = "host"})
        local column <close> = lines:reshape(300, 9, 1)
        local wide <close> = mb.ones({1, 1, 4500}, {dtype = "u16", device = "host"})
        local frames <close> = column * wide
        local view <close> = frames:permute(2, 1, 3)
        local own <close> = view:copy()
        local file <close> = assert(mb.h5.create(path, {overwrite = true}))
        file:write(DATA, own, {attributes = {axes = "y:theta:x"}})
        file:write("/exchange/theta", scans.degrees(300, 0.6), {attributes = {units = "deg"}})
        file:finish()
        local s <close> = assert(mb.scan.open(path))
        local all_rows = projections(s, {1, 9})
        assert.is_true(frames:to_string() == all_rows)
        local some <close> = frames:view(mb.all, {2, 6}, mb.all):copy()
        assert.is_true(some:to_string() == projections(s, {2, 6}))
    end)

    it("say y:theta:x only where that fits, and are asked for otherwise", function()
        write(all(turned()))
        local code, text = refusal {}
        assert.same({"argument", "axes"}, code)
        assert.is_truthy(text:find("theta:y:x they have 12 and 3 rows, as y:theta:x both 4", 1, true),
            text)
        is_usual {axes = "y:theta:x"}
        write {[DATA] = turned()}
        code = refusal {flats = false, darks = false}
        assert.same({"argument", "axes"}, code)
    end)

    it("of as many flats as rows are those of the projections, which is told", function()
        local flats = scans.flats(1, ROWS)
        local file <close> = assert(mb.h5.create(path, {overwrite = true}))
        for name, values in pairs {[DATA] = scans.data(), [WHITE] = flats,
            [DARK] = scans.darks(1, 2)} do
            local array <close> = mb.array(values, {dtype = "u16", device = "host"})
            local view <close> = array:permute(2, 1, 3)
            local own <close> = view:copy()
            file:write(name, own, {attributes = name == DATA and {axes = "y:theta:x"} or nil})
        end
        file:write("/exchange/theta", scans.degrees(), {attributes = {units = "deg"}})
        file:finish()
        local wanted <close> = mb.array(flats, {dtype = "u16", device = "host"})
        for _, options in ipairs {{}, {axes = "y:theta:x"}} do
            options.pixel_size = 1e-6
            local s <close> = assert(mb.scan.open(path, options))
            local found <close> = s:flats()
            assert.is_true(wanted:to_string() == found:to_string())
            assert.equal(options.axes and 0 or 1, #s.warnings)
            assert.is_truthy(options.axes
                or s.warnings[1]:find("does not say the order of its axes", 1, true))
        end
    end)

    it("are those of the option, which is told where the attribute says others", function()
        write(all(turned "theta:y:x"))
        local code = refusal {}
        assert.same({"argument", "axes"}, code)
        local s <close> = assert(mb.scan.open(path, {axes = "y:theta:x"}))
        assert.same({N, ROWS, COLS}, {s.n_angles, s.rows, s.cols})
        assert.equal(1, #s.warnings)
        assert.is_truthy(s.warnings[1]:find("theta:y:x", 1, true))
        write {[DATA] = turned "y:x:theta"}
        code = refusal {}
        assert.same({"unsupported", "axes"}, code)
        same_bytes(usual, (scans.volume(path, "--axes y:theta:x")))
    end)
end)
