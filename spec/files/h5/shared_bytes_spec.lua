-- Datasets of a damaged file that have bytes of one another: an address leads into another dataset,
-- whose values look like sound ones.

local files = require "spec.support.files"
local mb = require "moonbeam"

local ANGLES <const> = {}
for i = 1, 24 do
    ANGLES[i] = (i - 1) * 7.5 + 0.123456
end
local PIXEL <const> = 3.14159265

describe("an HDF5 file whose datasets share bytes", function()
    local folder, text

    -- Where in the file the elements of a dataset are that begin with this number.
    local function place_of(value)
        local first = assert(text:find(string.pack("<d", value), 1, true))
        assert.is_nil(text:find(string.pack("<d", value), first + 1, true))
        return first - 1
    end

    -- Writes the file with another address for the elements of the pixel size.
    local function damaged(name, address)
        local stored = string.pack("<I8", place_of(PIXEL))
        local first = assert(text:find(stored, 1, true))
        local own = text:sub(1, first - 1) .. string.pack("<I8", address) .. text:sub(first + 8)
        files.write(folder .. "/" .. name, own)
        return folder .. "/" .. name
    end

    setup(function()
        folder = files.folder()
        local file <close> = mb.h5.create(folder .. "/sound.h5", {overwrite = true})
        file:group "/exchange"
        file:write("/exchange/theta", mb.array(ANGLES, {dtype = "f64"}))
        file:write("/exchange/pixel", mb.array({PIXEL}, {dtype = "f64"}))
        file:finish()
        text = files.read(folder .. "/sound.h5")
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("is refused where the second of them is opened, in both orders", function()
        for _, at in ipairs {0, 8, 23 * 8, 23 * 8 + 1} do
            local path = damaged(("d%d.h5"):format(at), place_of(ANGLES[1]) + at)
            for _, names in ipairs {{"theta", "pixel"}, {"pixel", "theta"}} do
                local file <close> = assert(mb.h5.open(path))
                file:value("/exchange/" .. names[1])
                for _, read in ipairs {file.value, file.read, file.dataset} do
                    local ok, problem = pcall(read, file, "/exchange/" .. names[2])
                    assert.is_false(ok)
                    assert.equal("io", problem.code)
                    assert.truthy(problem.message:find(("'/exchange/%s' in '%s' has bytes of the "
                        .. "file that another dataset has, too"):format(names[2], path), 1, true),
                        problem.message)
                end
            end
        end
    end)

    it("is sound where they lie beside each other, and where two names mean one", function()
        for _, at in ipairs {-8, 24 * 8} do
            local file <close> = assert(mb.h5.open(damaged("beside.h5", place_of(ANGLES[1]) + at)))
            for _ = 1, 2 do
                assert.equal(ANGLES[24], file:value("/exchange/theta")[24])
                assert.is_number(file:value("/exchange/pixel")[1])
            end
        end
        local path <const> = folder .. "/linked.h5"
        do
            local file <close> = mb.h5.create(path, {overwrite = true})
            file:write("/theta", mb.array(ANGLES, {dtype = "f64"}))
            file:link("/theta", "/again")
            file:finish()
        end
        local file <close> = assert(mb.h5.open(path))
        assert.same(file:value "/theta", file:value "/again")
    end)
end)
