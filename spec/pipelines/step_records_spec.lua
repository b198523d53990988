-- What help and the reference say of steps comes from their definitions.

local mb = require "moonbeam"
local catalog = require "moonbeam.pipeline.catalog"
local helper = require "spec.helper"
local step_records = require "moonbeam.pipeline.definitions.step_records"

describe("help on steps", function()
    it("shows a step with its options, defaults and units", function()
        local text = mb.help.text "step gaussian"
        for _, part in ipairs {'{"gaussian", sigma = ..., ...}', "numbers in [0, 1000000] (px); "
            .. "required", "default 4", "It takes transmission, line integrals", "gives the same"} do
            assert.is_truthy(text:find(part, 1, true), part)
        end
        assert.is_truthy(mb.help.text("step fbp"):find("gives attenuation, as slices", 1, true))
        assert.matches("did you mean 'fbp'?", (helper.failure(mb.help.text, "step fpb")), 1, true)
    end)

    it("lists all of them, and finds their options by a word", function()
        local list = mb.help.text "steps"
        for _, name in ipairs(catalog.new():names()) do
            assert.is_truthy(list:find("step " .. name, 1, true), name)
        end
        assert.is_truthy(mb.help.text("circle_value"):find("step fbp", 1, true))
        assert.equal(mb.help.text "step vertical_shift", mb.help.text "helical") -- the only one
    end)

    it("has a summary, a kind and documented options for each", function()
        for _, record in ipairs(step_records.all()) do
            assert.matches("%.$", record.summary)
            assert.matches("[Ii]t takes .*, and gives .*%.$", record.notes[1])
            for _, entry in ipairs(record.options) do
                assert.is_string(entry.doc, record.name .. "." .. entry.name)
            end
        end
    end)
end)
