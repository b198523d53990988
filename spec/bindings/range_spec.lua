-- One rule of ranges for arrays, datasets in files, carriers and scans (bindings/lua_range.h).

local files = require "spec.support.files"
local helper = require "spec.helper"
local core = require "moonbeam.core"
local mb = require "moonbeam"

local ROWS = 6

-- {range, the rows that it selects}; nil rows: an error. `forward`: files refuse it.
local CASES = {
    {nil, {1, 2, 3, 4, 5, 6}},
    {mb.all, {1, 2, 3, 4, 5, 6}},
    {3, {3}, integer = true},
    {-1, {6}, integer = true},
    {{2, 4}, {2, 3, 4}},
    {{-2, -1}, {5, 6}},
    {{5}, {5, 6}},
    {{nil, 2}, {1, 2}},
    {{1, 6, 2}, {1, 3, 5}},
    {{2, 5, 9}, {2}},
    {{3, 2}, {}},
    {{1, 0}, {}},
    {{7, 6}, {}},
    {{4, 2, -1}, {4, 3, 2}, backward = true},
    {{6, 1, -4}, {6, 2}, backward = true},
    {{5, 2}, error = "{5, 2, 1} ends before it begins; a range without elements is {5, 4}"},
    {{2, 5, -1}, error = "ends before it begins"},
    {{8, 7}, error = "range {8, 7} is outside"},
    {{1, 7}, error = "range {1, 7} is outside"},
    {{0, 2}, error = "range {0, 2} is outside"},
    {{-7, 2}, error = "range {-7, 2} is outside"},
    {0, error = "index 0 is outside"},
    {7, error = "which has 6 elements"},
    {-7, error = "index -7 is outside"},
    {{1, 2, 0}, error = "the step of a range must not be 0"},
    {{1, 2, 1, 1}, error = "at most first, last and step"},
    {{1.5, 2}, error = "integer"},
    {"x", error = "a range is an integer, mb.all or {first, last [, step]}, not a string"},
}

-- Their users: how each gets rows of (frame, row, column) of which every value is the row's number.
local USERS = {}

function USERS.array(given)
    return given.values:view(mb.all, given.range)
end

function USERS.dataset(given)
    return given.dataset:read(mb.all, given.range)
end

function USERS.carrier(given)
    local like <close> = given.dataset:read(mb.all, given.range)
    local carrier <close> = core.carrier.open {device = "host", threads = 1, pinned = "1Mi"}
    local got = mb.zeros(like.shape, {device = "host", dtype = "u16"})
    carrier:carry(given.dataset, got, mb.all, given.range)
    carrier:wait()
    return got
end

USERS["scan in a file"] = function(given)
    return given.scan:projections(given.range)
end

USERS["scan of arrays"] = function(given)
    return given.arrays:projections(given.range)
end

-- Writes {2, ROWS, 3} values, each the number of its row, as a scan.
local function write_scan(path)
    local row <close> = mb.arange(ROWS)
    local column <close> = row:reshape(1, ROWS, 1)
    local wide <close> = column:broadcast_to(2, ROWS, 3)
    local values = wide:cast("u16")
    local file <close> = mb.h5.create(path)
    file:write("/exchange/data", values)
    file:write("/exchange/theta", {0, 90})
    file:finish()
    return values
end

describe("ranges", function()
    local folder, given

    before_each(function()
        folder = files.folder()
        local path = folder .. "/scan.h5"
        given = {values = write_scan(path), file = assert(mb.h5.open(path)),
            scan = assert(mb.scan.open(path))}
        given.dataset = given.file:dataset("/exchange/data")
        given.arrays = mb.scan.of_arrays(given.values, {0, math.pi / 2})
    end)
    after_each(function()
        given.dataset:close()
        given.file:close()
        given.scan:close()
        given.values:release()
        files.remove(folder)
    end)

    local function rows_of(array, integer)
        local rows = {}
        local extent = integer and 1 or array.shape[2]
        for i = 1, extent do
            rows[i] = integer and array:item(1, 1) or array:item(1, i, 1)
        end
        return rows
    end

    for name, user in pairs(USERS) do
        it("mean the same for: " .. name, function()
            local in_file = name ~= "array" and name ~= "scan of arrays"
            for i, case in ipairs(CASES) do
                given.range = case[1]
                if case.error or case.backward and in_file then
                    local text = helper.failure(user, given)
                    assert.is_truthy(text:find(case.error or "must be positive, got", 1, true),
                        ("case %d: %s"):format(i, text))
                else
                    local part <close> = user(given)
                    assert.same(case[2], rows_of(part, case.integer), "case " .. i)
                end
            end
        end)
    end

    it("have no named members", function()
        assert.matches("a range has no 'first'", (helper.failure(given.values.view, given.values,
            {first = 1})))
    end)

    it("select projections of a scan", function()
        for _, scan in ipairs {given.scan, given.arrays} do
            local last <close> = scan:projections(1, {angles = {-1, -1}})
            assert.same({1, 3}, last.shape)
            assert.matches("range {1, 3} is outside", (helper.failure(scan.projections, scan, 1,
                {angles = {1, 3}})))
        end
    end)
end)
