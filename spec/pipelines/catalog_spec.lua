-- Steps of one's own: from files and from scripts, recorded with source and hash.

require "moonbeam"
local catalog = require "moonbeam.pipeline.catalog"
local files = require "spec.support.files"
local helper = require "spec.helper"

describe("a catalog of steps", function()
    local folder
    before_each(function() folder = files.folder() end)
    after_each(function() files.remove(folder) end)

    local function written(name, text)
        local path = folder .. "/" .. name
        local file <close> = assert(io.open(path, "wb"))
        file:write(text)
        return path
    end

    local function refused(part, files_, steps)
        local text = helper.failure(catalog.new, files_, steps)
        assert.is_truthy(text:find(part, 1, true), text)
    end

    local STEP <const> = [[{name = "%s", summary = "S.", run = function() end,
        takes = {quantity = "any", layout = "frames"}}]]

    it("has the library's steps, each with what the engine asks for", function()
        local known = catalog.new()
        local names = known:names()
        assert.is_true(#names >= 13)
        for _, name in ipairs(names) do
            local def = known:find(name)
            assert.equal(name, def.name)
            assert.is_function(def.run or def.measure or def.reduce)
            assert.is_string(def.summary)
        end
    end)

    it("reads several steps of a file, and records it with its hash", function()
        local text = "return {" .. STEP:format "one" .. ", " .. STEP:format "two" .. "}"
        local path = written("own.lua", text)
        local known = catalog.new {path, written("more.lua", "return " .. STEP:format "three")}
        assert.equal("two", known:find("two").name)
        local records = known:recorded {"flat_field", {"two"}, "one"}
        assert.equal(1, #records)
        assert.same({path = path, text = text, hash = catalog.hash(text), names = {"one", "two"}},
            records[1])
        assert.equal(2, #known:recorded {"one", "three"})
        assert.same({}, known:recorded {"flat_field", "fbp"})
        local names = known:names()
        assert.is_truthy((" " .. table.concat(names, " ") .. " "):find " three .* two ")
        for i = 2, #names do
            assert.is_true(names[i - 1] < names[i])
        end
    end)

    it("has hashes that tell one character", function()
        assert.equal("fnv1a64:cbf29ce484222325", catalog.hash "") -- the published values
        assert.equal("fnv1a64:af63dc4c8601ec8c", catalog.hash "a")
        assert.equal("fnv1a64:85944171f73967e8", catalog.hash "foobar")
    end)

    it("takes definitions of a script", function()
        local known = catalog.new(nil, load("return " .. STEP:format "mine")())
        assert.equal("mine", known:find("mine").name)
        assert.is_nil(known:recorded({"mine"})[1].hash)
        assert.is_nil(catalog.new().own.mine) -- of this catalog alone
        assert.matches("there is no step 'mine'", (helper.failure(function()
            catalog.new():find "mine"
        end)))
    end)

    it("names the file and the step in what is wrong with it", function()
        refused("'" .. folder .. "/no.lua' is not a file of steps", {folder .. "/no.lua"})
        refused("'" .. folder .. "' is not a file of steps", {folder})
        refused("the file of steps is not Lua: " .. folder .. "/bad.lua:1:",
            {written("bad.lua", "return {")})
        refused("the file of steps is not Lua", {written("code.lua", string.dump(function() end))})
        refused("returns a nil; a file of steps returns one definition, or a list",
            {written("none.lua", "local x = 1")})
        refused("the file of steps fails: " .. folder .. "/bad.lua:1: no", {written("bad.lua", "error 'no'")})
        refused("the step 'fbp' of " .. folder .. "/f.lua: the library has a step of this name",
            {written("f.lua", "return " .. STEP:format "fbp")})
        refused("another step has this name, from " .. folder .. "/one.lua",
            {written("one.lua", "return " .. STEP:format "one"),
                written("again.lua", "return " .. STEP:format "one")})
    end)

    it("checks definitions", function()
        local function wrong(part, changes)
            local def = {name = "own", summary = "S.", run = function() end,
                takes = {quantity = "any", layout = "frames"}}
            for field, value in pairs(changes) do
                def[field] = value ~= "none" and value or nil
            end
            refused(part, nil, def)
        end
        wrong("unknown field 'need'; did you mean 'needs'?", {need = print})
        wrong("name must be a word in small letters", {name = "Own Step"})
        wrong("summary is missing", {summary = "none"})
        wrong("run is missing; give the function that does the work", {run = "none"})
        wrong("takes is missing", {takes = "none"})
        wrong("run is a table; give a function", {run = {}})
        wrong("takes.quantity is 'transmision'; give counts, transmission",
            {takes = {quantity = "transmision"}})
        wrong("gives.layout is 'slice'; give frames, slices, image, or \"same\"; did you mean "
            .. "'slices'?", {gives = {layout = "slice"}})
        wrong("option 'size' has the kind 'integer'; there are any, bool",
            {options = {{"size", "integer", "doc"}}})
        wrong("an option is {name, kind, text, field = value}, not ", {options = {{1, 2}}})
        wrong("an option cannot have the name 'preset'", {options = {{"preset", "string", "doc"}}})
        wrong("preset 'a': there is no option 'sise'", {options = {{"size", "count", "doc"}},
            presets = {a = {sise = 3}}})
        wrong("preset 'a': size is 1.5; it must be a whole number",
            {options = {{"size", "count", "doc"}}, presets = {a = {size = 1.5}}})
    end)
end)
